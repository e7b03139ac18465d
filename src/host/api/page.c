#include "host/api/page.h"

#include <stdio.h>
#include <stdlib.h>

#define TOKEN_START "1:"

static bool refuse(struct api_request *request, const char *why)
{
    answer_status(request, 422, "Invalid", "ListOptions.meta.k8s.io \"\" is invalid: %s", why);
    return false;
}

bool page_allows_watch(struct api_request *request)
{
    if (request_query(request, "sendInitialEvents").len)
        return refuse(request,
                      "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the "
                      "WatchList feature gate is enabled");
    if (request_query(request, "resourceVersionMatch").len)
        return refuse(request, "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch "
                               "unless sendInitialEvents is provided");
    return true;
}

/* Parses "1:VERSION:NAMESPACE/NAME". */
static bool read_token(struct str token, struct page *page)
{
    struct str version, place;
    int64_t number;
    if (!str_starts(token, STR(TOKEN_START)))
        return false;
    token = (struct str){token.data + strlen(TOKEN_START), token.len - strlen(TOKEN_START)};
    if (!str_cut(token, ':', &version, &place) || !str_to_i64(version, 1, INT64_MAX, &number) ||
        !str_cut(place, '/', &page->after.namespace_, &page->after.name) || page->after.name.len == 0)
        return false;
    page->version = (uint64_t)number;
    page->continues = true;
    return true;
}

static bool check_match(struct api_request *request, struct str match, struct str version, bool continues)
{
    if (match.len == 0)
        return true;
    if (continues)
        return refuse(request,
                      "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue "
                      "is provided");
    if (version.len == 0)
        return refuse(request, "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
                               "resourceVersion is provided");
    if (!str_is(match, "Exact") && !str_is(match, "NotOlderThan"))
        return refuse(request, "resourceVersionMatch: Unsupported value: supported values: \"Exact\", "
                               "\"NotOlderThan\", \"\"");
    if (str_is(match, "Exact") && str_is(version, "0"))
        return refuse(request,
                      "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for "
                      "resourceVersion \"0\"");
    return true;
}

/* Checks the version that a list asks for. Only the newest state can be listed. */
static bool check_version(struct api_request *request, struct str match, struct str text)
{
    int64_t version = 0;
    uint64_t seq = core_seq(request_core(request));
    if (text.len && !str_to_i64(text, 0, INT64_MAX, &version)) {
        answer_status(request, 400, "BadRequest", "resourceVersion is a decimal number");
        return false;
    }
    if ((uint64_t)version > seq) {
        request->retry_after_s = 1;
        answer_status(request, 504, "Timeout", "Too large resource version: %lld, current: %llu",
                      (long long)version, (unsigned long long)seq);
        return false;
    }
    if (str_is(match, "Exact") && (uint64_t)version != seq) {
        answer_status(request, 410, "Expired", "The resourceVersion for the provided list is too old.");
        return false;
    }
    return true;
}

bool page_read(struct api_request *request, struct page *ret_page)
{
    struct str limit = request_query(request, "limit"), token = request_query(request, "continue");
    struct str version = request_query(request, "resourceVersion");
    struct str match = request_query(request, "resourceVersionMatch");
    struct page page = {0};
    int64_t number = 0;
    if (!check_match(request, match, version, token.len > 0) || !check_version(request, match, version))
        return false;
    if (limit.len && !str_to_i64(limit, 0, INT64_MAX, &number)) {
        answer_status(request, 400, "BadRequest", "limit is a number that is not negative");
        return false;
    }
    if (token.len && version.len && !str_is(version, "0")) {
        answer_status(request, 400, "BadRequest",
                      "specifying resource version is not allowed when using continue");
        return false;
    }
    if (token.len && !read_token(token, &page)) {
        answer_status(request, 400, "BadRequest", "continue key is not valid");
        return false;
    }
    /* As in Kubernetes: a list of any version is answered completely. */
    page.limit = str_is(version, "0") && !token.len ? 0 : (uint64_t)number;
    *ret_page = page;
    return true;
}

/* --- choosing ------------------------------------------------------------------------------------------- */

static int compare(const struct page_place *a, const struct page_place *b)
{
    int order = str_compare(a->namespace_, b->namespace_);
    return order ? order : str_compare(a->name, b->name);
}

static int compare_places(const void *a, const void *b)
{
    return compare(a, b);
}

/* Restores the heap of a full page's places, whose first is the greatest: a smaller place replaces it. */
static void sift_down(struct page *page, size_t at)
{
    struct page_place *places = page->places.items;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= page->places.len)
            return;
        if (child + 1 < page->places.len && compare(&places[child + 1], &places[child]) > 0)
            child++;
        if (compare(&places[child], &places[at]) <= 0)
            return;
        struct page_place other = places[at];
        places[at] = places[child];
        places[child] = other;
        at = child;
    }
}

void page_add(struct page *page, struct arena *names, struct str namespace_, struct str name)
{
    struct page_place place = {namespace_, name};
    bool full = page->limit && page->places.len == page->limit;
    if (page->continues && compare(&place, &page->after) <= 0)
        return;
    if (full && page->left_out++ == 0)
        for (size_t i = page->places.len / 2; i-- > 0;)
            sift_down(page, i);
    if (full && compare(&place, &page->places.items[0]) >= 0)
        return;
    place = (struct page_place){arena_str(names, namespace_), arena_str(names, name)};
    if (!full) {
        vec_push(&page->places, place);
        return;
    }
    page->places.items[0] = place;
    sift_down(page, 0);
}

void page_end(struct page *page)
{
    CHECK(page->limit == 0 || page->places.len <= page->limit);
    if (page->places.len > 1 && (page->left_out || page->continues))
        qsort(page->places.items, page->places.len, sizeof *page->places.items, compare_places);
}

void page_put_metadata(const struct page *page, struct json_writer *out, uint64_t seq, bool exact)
{
    char text[64];
    uint64_t version = page->version ? page->version : seq;
    snprintf(text, sizeof text, "%llu", (unsigned long long)version);
    json_pair_text(out, "resourceVersion", text);
    if (page->left_out == 0)
        return;
    const struct page_place *last = &vec_last(&page->places);
    struct buf token BUF_CLEANUP = {0};
    buf_printf(&token, TOKEN_START "%s:" STR_FORMAT "/" STR_FORMAT, text, STR_ARG(last->namespace_),
               STR_ARG(last->name));
    json_pair_str(out, "continue", buf_str(&token));
    if (exact)
        json_pair_int(out, "remainingItemCount", (int64_t)page->left_out);
}

void page_done(struct page *page)
{
    vec_done(&page->places);
}
