#include "host/api/podexec.h"

#include <stdio.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes percent-encoding; '+' is a space in queries. Returns false if the text is malformed, contains NUL
 * or is not UTF-8. */
static bool decode(struct arena *arena, struct str text, bool query, struct str *ret_text)
{
    char *out = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex_digit(text.data[i + 1]) : -1;
            int low = i + 2 < text.len ? hex_digit(text.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && query) {
            c = ' ';
        }
        if (c == 0)
            return false;
        out[len++] = c;
    }
    out[len] = 0;
    *ret_text = (struct str){out, len};
    return str_is_utf8(*ret_text);
}

static size_t parameters(struct str query)
{
    size_t count = 1;
    for (size_t i = 0; i < query.len; i++)
        count += query.data[i] == '&';
    return count;
}

static bool parse_query(struct api_request *request, struct str text)
{
    request->query = ARENA_ARRAY(&request->arena, struct query_item, parameters(text));
    while (text.len) {
        struct str item = text, rest = {0}, name, value;
        if (str_cut(text, '&', &item, &rest))
            text = rest;
        else
            text = (struct str){0};
        if (item.len == 0)
            continue;
        if (!str_cut(item, '=', &name, &value)) {
            name = item;
            value = STR("");
        }
        struct query_item *query = &request->query[request->query_count];
        if (!decode(&request->arena, name, true, &query->name) ||
            !decode(&request->arena, value, true, &query->value))
            return false;
        request->query_count++;
    }
    return true;
}

void request_init(struct api_request *request, struct api *api, enum method method, struct str url)
{
    *request = (struct api_request){.api = api, .method = method};
    list_init(&request->node);
    if (api->access)
        request->uri = arena_str(&request->arena, url);
    struct str path = url, query = {0};
    if (!str_cut(url, '?', &path, &query))
        path = url;
    request->long_url = url.len > URL_BYTES_MAX || parameters(query) > QUERY_MAX;
    if (request->long_url || !decode(&request->arena, path, false, &request->path) ||
        !parse_query(request, query)) {
        request->bad_url = true;
        request->path = STR("/");
    }
}

void request_done(struct api_request *request)
{
    request_forget_write(request);
    list_remove(&request->node);
    if (request->exec)
        exec_free(request->exec);
    request->exec = NULL;
    if (request->stream)
        request->stream->free(request->stream);
    request->stream = NULL;
    buf_done(&request->body);
    buf_done(&request->live.text);
    buf_done(&request->answer);
    arena_done(&request->arena);
}

struct str request_query(const struct api_request *request, const char *name)
{
    for (size_t i = 0; i < request->query_count; i++)
        if (str_is(request->query[i].name, name))
            return request->query[i].value;
    return (struct str){0};
}

bool request_flag(const struct api_request *request, const char *name)
{
    struct str value = request_query(request, name);
    return value.data &&
           (value.len == 0 || str_is(value, "true") || str_is(value, "1") || str_is(value, "True"));
}

/* Headers must fit the connection's buffer, so warnings are few and short. */
void request_warn(struct api_request *request, const char *format, ...)
{
    if (request->warning_count == WARNINGS_MAX)
        return;
    if (!request->warnings)
        request->warnings = ARENA_ARRAY(&request->arena, struct str, WARNINGS_MAX);
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    struct str warning = buf_str(&text);
    if (warning.len > WARNING_BYTES_MAX) {
        warning.len = WARNING_BYTES_MAX;
        while (warning.len && ((unsigned char)warning.data[warning.len] & 0xc0) == 0x80)
            warning.len--;
    }
    request->warnings[request->warning_count++] = arena_str(&request->arena, warning);
}

bool request_selector(struct api_request *request, struct selector *ret_selector)
{
    struct error error = {0};
    if (select_parse(&request->arena, request->resource, request_query(request, "labelSelector"),
                     request_query(request, "fieldSelector"), ret_selector, &error) < 0) {
        answer_status(request, 400, "BadRequest", "unable to parse the selector: %s", error.text);
        return false;
    }
    return true;
}

/* Chooses the first form in the client's order that we have, as kubectl sends them; q values are ignored. */
struct answer_form request_form(const struct api_request *request)
{
    struct answer_form form = {.version = "v1"};
    struct str accept = request->accept, part, rest;
    while (accept.len) {
        if (!str_cut(accept, ',', &part, &rest)) {
            part = accept;
            rest = (struct str){0};
        }
        accept = rest;
        part = str_trim(part);
        bool table = false, partial = false, v1beta1 = false;
        struct str piece, params = part;
        if (!str_cut(part, ';', &piece, &params)) {
            piece = part;
            params = (struct str){0};
        }
        bool json = str_is(piece, "application/json") || str_is(piece, "*/*");
        while (params.len) {
            if (!str_cut(params, ';', &piece, &rest)) {
                piece = params;
                rest = (struct str){0};
            }
            params = rest;
            table |= str_is(piece, "as=Table");
            partial |= str_starts(piece, STR("as=")) && !str_is(piece, "as=Table");
            v1beta1 |= str_is(piece, "v=v1beta1");
        }
        if (!json || partial)
            continue;
        form.table = table;
        form.version = table && v1beta1 ? "v1beta1" : "v1";
        break;
    }
    struct str include = request_query(request, "includeObject");
    if (str_is(include, "Object"))
        form.include = INCLUDE_OBJECT;
    else if (str_is(include, "None"))
        form.include = INCLUDE_NONE;
    return form;
}
