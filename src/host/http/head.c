#include "host/http/head.h"

#include <strings.h>

#include "base/check.h"

enum { EMPTY_LINES_MAX = 2, CHUNK_LINE_MAX = 1024, TRAILER_BYTES_MAX = 8 * 1024 };

/* --- headers ------------------------------------------------------------------------------------------- */

/* RFC 9110 section 5.6.2. */
static bool head_token_char(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool head_is_token(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!head_token_char(text.data[i]))
            return false;
    return text.len > 0;
}

static bool head_is_value(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

bool http_is_word(struct str text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.data, word, text.len) == 0;
}

/* Returns whether a list of words, separated by commas, has this word. */
static bool head_has_word(struct str list, const char *word)
{
    struct str part, rest;
    while (str_cut(list, ',', &part, &rest)) {
        if (http_is_word(str_trim(part), word))
            return true;
        list = rest;
    }
    return http_is_word(str_trim(list), word);
}

struct str http_head_value(const struct http_head *head, const char *name)
{
    for (size_t i = 0; i < head->header_count; i++)
        if (http_is_word(head->headers[i].name, name))
            return head->headers[i].value;
    return (struct str){0};
}

/* The headers that determine the framing and the life of the connection. */
struct framing {
    bool length, chunked;
    int hosts;
    struct str *host; /* value of the Host header; NULL: none */
};

static int head_take_header(struct http_head *head, struct framing *framing, struct http_header header)
{
    int64_t length;
    switch (header.name.len) { /* each relevant header has a different length */
    case 4:
        if (http_is_word(header.name, "Host")) {
            framing->hosts++;
            framing->host = &head->headers[head->header_count - 1].value;
        }
        break;
    case 6:
        if (http_is_word(header.name, "Expect"))
            head->continues = head->minor >= 1 && http_is_word(header.value, "100-continue");
        break;
    case 10:
        if (http_is_word(header.name, "Connection"))
            head->keeps = head->keeps && !head_has_word(header.value, "close");
        break;
    case 14:
        if (!http_is_word(header.name, "Content-Length"))
            break;
        if (str_starts(header.value, STR("-")) || /* other implementations reject "-0" */
            !str_to_i64(header.value, 0, INT64_MAX, &length) ||
            (framing->length && length != head->content_length))
            return -400;
        framing->length = true;
        head->content_length = length;
        break;
    case 17:
        if (!http_is_word(header.name, "Transfer-Encoding"))
            break;
        if (framing->chunked)
            return -400;
        if (!http_is_word(header.value, "chunked"))
            return -501;
        framing->chunked = true;
        break;
    }
    return 0;
}

/* Replaces the Host header's value by the host of an absolute target, or adds one to an HTTP/1.0 request. */
static int head_set_host(struct http_head *head, struct str *host, struct str authority)
{
    if (!authority.data)
        return 0;
    if (!host && head->header_count == HTTP_HEADERS_MAX)
        return -431;
    if (host)
        *host = authority;
    else
        head->headers[head->header_count++] = (struct http_header){STR("Host"), authority};
    return 0;
}

/* `authority` is the host of an absolute target; .data is NULL if the target has none. */
static int head_headers(struct str lines, struct str authority, struct http_head *head)
{
    struct framing framing = {0};
    while (lines.len) {
        struct str line, rest;
        struct http_header header;
        CHECK(str_cut(lines, '\n', &line, &rest));
        lines = rest;
        if (line.len == 0 || line.data[line.len - 1] != '\r')
            return -400;
        line.len--;
        if (!str_cut(line, ':', &header.name, &header.value) || !head_is_token(header.name) ||
            !head_is_value(header.value))
            return -400;
        header.value = str_trim(header.value);
        if (head->header_count == HTTP_HEADERS_MAX)
            return -431;
        head->headers[head->header_count++] = header;
        int rc = head_take_header(head, &framing, header);
        if (rc < 0)
            return rc;
    }
    if ((framing.chunked && (framing.length || head->minor == 0)) || framing.hosts > 1 ||
        (framing.hosts == 0 && head->minor >= 1))
        return -400;
    if (framing.chunked)
        head->content_length = HTTP_CHUNKED;
    return head_set_host(head, framing.host, authority);
}

/* --- the whole head ------------------------------------------------------------------------------------ */

/* Splits an absolute target: *target becomes its path and query. Refuses user names in the target (RFC 9110
 * section 4.2.4), a fragment, and a query without a path, which few implementations can read. */
static int head_take_apart(struct str *target, struct str *ret_authority)
{
    static const struct str schemes[] = {{"http://", 7}, {"https://", 8}};
    struct str rest = {0}, authority, path;
    for (int i = 0; i < 2; i++)
        if (target->len >= schemes[i].len && strncasecmp(target->data, schemes[i].data, schemes[i].len) == 0)
            rest = (struct str){target->data + schemes[i].len, target->len - schemes[i].len};
    if (!rest.data)
        return 0;
    bool has_path = str_cut(rest, '/', &authority, &path);
    if (!has_path)
        authority = rest;
    for (size_t i = 0; i < authority.len; i++)
        if (memchr("@?#\\%", authority.data[i], 5))
            return -400;
    if (authority.len == 0)
        return -400;
    *ret_authority = authority;
    *target = has_path ? (struct str){path.data - 1, path.len + 1} : STR("/");
    return 0;
}

static int head_request_line(struct str line, struct http_head *head)
{
    struct str rest, version;
    if (!str_cut(line, ' ', &head->method, &rest) || !str_cut(rest, ' ', &head->target, &version) ||
        !head_is_token(head->method) || head->target.len == 0)
        return -400;
    for (size_t i = 0; i < head->target.len; i++)
        if (head->target.data[i] <= ' ' || head->target.data[i] == 0x7f)
            return -400;
    if (version.len != 8 || !str_starts(version, STR("HTTP/")) || version.data[6] != '.')
        return -400;
    if (version.data[5] != '1' || version.data[7] < '0' || version.data[7] > '9')
        return -505;
    head->minor = version.data[7] - '0';
    head->keeps = head->minor >= 1;
    return 0;
}

/* Returns the negated status for a head that is too long: because of its target, or of its headers. */
static int head_too_long(struct str bytes)
{
    return memchr(bytes.data, '\n', bytes.len) ? -431 : -414;
}

int http_head_parse(struct str bytes, size_t scanned, size_t head_max, struct http_head *ret_head,
                    size_t *ret_len)
{
    size_t start = 0, from = scanned > 3 ? scanned - 3 : 0;
    for (int i = 0;
         i < EMPTY_LINES_MAX && bytes.len - start >= 2 && memcmp(bytes.data + start, "\r\n", 2) == 0; i++)
        start += 2;
    if (from < start)
        from = start;
    const char *end = bytes.len > from ? memmem(bytes.data + from, bytes.len - from, "\r\n\r\n", 4) : NULL;
    size_t len = end ? (size_t)(end - bytes.data) : bytes.len;
    /* Up to three bytes of the end may be here already: the limit must not depend on how bytes arrive. */
    size_t most = end ? head_max - 3 : head_max;
    if (len - start > most)
        return head_too_long((struct str){bytes.data + start, head_max});
    /* Bytes that cannot begin a request, such as a ClientHello, are refused at once: their sender may be
     * waiting. */
    if (!end && bytes.len > start && bytes.data[start] != '\r' &&
        !head_is_token((struct str){bytes.data + start, 1}))
        return -400;
    if (!end)
        return 0;
    struct str head = {bytes.data + start, len + 2 - start}, line, lines;
    CHECK(str_cut(head, '\n', &line, &lines));
    if (line.len == 0 || line.data[line.len - 1] != '\r')
        return -400;
    line.len--;
    ret_head->header_count = 0;
    ret_head->content_length = 0;
    ret_head->continues = false;
    struct str authority = {0};
    int rc = head_request_line(line, ret_head);
    if (rc == 0)
        rc = head_take_apart(&ret_head->target, &authority);
    if (rc == 0)
        rc = head_headers(lines, authority, ret_head);
    *ret_len = len + 4;
    return rc < 0 ? rc : 1;
}

/* --- chunks -------------------------------------------------------------------------------------------- */

/* clang-format off
 * CHUNK_START ─ digit ─► CHUNK_SIZE ─ CR ─► CHUNK_SIZE_LF ─ LF, size > 0 ► CHUNK_DATA ─► CHUNK_CR ─► CHUNK_LF
 *                            │ ";" (or blanks     ▲   └ LF, size 0 ─► TRAILER ─ CR ─► TRAILER_LF     start ◄┘
 *                            ▼  in CHUNK_SPACE)  │                      ▲  a line: LF ─┤
 *                      CHUNK_EXTENSION ─── CR ───┘                      └──────────────┴─ none: LF ─► over
 * clang-format on */
enum chunk_at {
    CHUNK_START,
    CHUNK_SIZE,
    CHUNK_SPACE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_CR,
    CHUNK_LF,
    TRAILER,
    TRAILER_LF
};

static int chunk_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* After the size: blanks, then ";" or the end of the line. */
static int chunk_space_char(struct http_chunks *chunks, char c)
{
    if (chunks->line > CHUNK_LINE_MAX || (c != '\r' && c != ';' && c != ' ' && c != '\t'))
        return -400;
    chunks->at = c == '\r' ? CHUNK_SIZE_LF : c == ';' ? CHUNK_EXTENSION : CHUNK_SPACE;
    return 0;
}

static int chunk_size_char(struct http_chunks *chunks, char c)
{
    /* an endless row of zeros is not a size */
    int digit = chunks->line > CHUNK_LINE_MAX ? -1 : chunk_digit(c);
    if (digit >= 0 && chunks->left >> 56 == 0) {
        chunks->left = chunks->left << 4 | (unsigned)digit;
        chunks->at = CHUNK_SIZE;
        return 0;
    }
    if (digit >= 0 || chunks->at == CHUNK_START)
        return -400;
    return chunk_space_char(chunks, c);
}

/* Skips trailers. `left` counts the bytes of the current line. */
static int chunk_trailer_char(struct http_chunks *chunks, char c)
{
    if (chunks->line > TRAILER_BYTES_MAX)
        return -431;
    if (c == '\r')
        chunks->at = TRAILER_LF;
    else
        chunks->left++;
    return c != '\r' && !head_is_value((struct str){&c, 1}) ? -400 : 0;
}

/* Takes one byte of the framing. */
static int chunk_char(struct http_chunks *chunks, char c)
{
    switch ((enum chunk_at)chunks->at) {
    case CHUNK_START:
    case CHUNK_SIZE:
        return chunk_size_char(chunks, c);
    case CHUNK_SPACE:
        return chunk_space_char(chunks, c);
    case CHUNK_EXTENSION:
        if (c == '\r')
            chunks->at = CHUNK_SIZE_LF;
        return (c != '\r' && !head_is_value((struct str){&c, 1})) || chunks->line > CHUNK_LINE_MAX ? -400 : 0;
    case CHUNK_SIZE_LF:
        chunks->at = chunks->left ? CHUNK_DATA : TRAILER;
        chunks->line = 0;
        return c == '\n' ? 0 : -400;
    case CHUNK_CR:
        chunks->at = CHUNK_LF;
        return c == '\r' ? 0 : -400;
    case CHUNK_LF:
        *chunks = (struct http_chunks){0};
        return c == '\n' ? 0 : -400;
    case TRAILER:
        return chunk_trailer_char(chunks, c);
    case TRAILER_LF: {
        bool empty = chunks->left == 0;
        chunks->left = 0;
        chunks->at = TRAILER;
        return c != '\n' ? -400 : empty;
    }
    case CHUNK_DATA:
        break;
    }
    CHECK_UNREACHABLE();
}

int http_chunks_take(struct http_chunks *chunks, struct str *text, struct str *ret_data)
{
    *ret_data = (struct str){0};
    while (text->len) {
        if (chunks->at == CHUNK_DATA) {
            size_t len = text->len < chunks->left ? text->len : (size_t)chunks->left;
            *ret_data = (struct str){text->data, len};
            chunks->left -= len;
            *text = (struct str){text->data + len, text->len - len};
            if (chunks->left == 0)
                chunks->at = CHUNK_CR;
            return 0;
        }
        char c = *text->data;
        *text = (struct str){text->data + 1, text->len - 1};
        chunks->line++;
        int rc = chunk_char(chunks, c);
        if (rc)
            return rc;
    }
    return 0;
}
