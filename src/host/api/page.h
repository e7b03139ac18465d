/* page.h - selects the objects of a list: all of them, or a page of `limit` and a token for the next page.
 * Private to api.
 *
 * Pages are in the order of namespace and name. The token holds the last place of a page and the version of
 * the first page. All pages report that version, so a watch from it shows what changed between them. A token
 * never expires; a page shows its objects as they are when it is requested. Selecting a page visits every
 * object, but keeps only `limit` names.
 *
 * Source of the rules: Kubernetes API concepts, "Resource versions" and "Retrieving large results sets in
 * chunks"; apimachinery's ValidateListOptions.
 */
#ifndef PHX_HOST_API_PAGE_H
#define PHX_HOST_API_PAGE_H

#include "host/api/request.h"

struct page_place {
    struct str namespace_, name;
};
struct page {
    uint64_t limit;   /* 0: none */
    uint64_t version; /* of the list's first page; 0: this is the first */
    bool continues;
    struct page_place after; /* if `continues`: the last place of the previous page */
    VEC(struct page_place) places;
    size_t left_out; /* objects after this page */
};

/* Reads limit, continue, resourceVersion and resourceVersionMatch from the query. `after` points into the
 * request's memory. Returns false if an error was answered. */
bool page_read(struct api_request *request, struct page *ret_page);
/* Refuses the list options that a watch does not support: sendInitialEvents and resourceVersionMatch. Returns
 * false if an error was answered. */
bool page_allows_watch(struct api_request *request);

/* Offers an object of the list, in any order. Names that are kept are copied into `names`. */
void page_add(struct page *page, struct arena *names, struct str namespace_, struct str name);
/* Sorts the page, after all objects were added. */
void page_end(struct page *page);
/* Writes "resourceVersion", and "continue" if more objects follow. `exact` (there is no selector) also writes
 * "remainingItemCount". `seq` is the version of a first page. */
void page_put_metadata(const struct page *page, struct json_writer *out, uint64_t seq, bool exact);
void page_done(struct page *page);

#endif
