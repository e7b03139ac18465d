/* page.h - which objects of a list are shown: all, or a page of `limit` and where the next begins. Private
 * to api.
 *
 * Pages are in the order of namespace and name. The token says the last of a page and the version of the
 * first one, which all pages say: what changed between them, a watch from that version tells. So a token
 * never expires; a page shows its objects as they are when it is asked for. Finding a page looks at every
 * object, but keeps `limit` names only.
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
    struct page_place after; /* continues: the last place of the previous page */
    VEC(struct page_place) places;
    size_t left_out; /* behind this page */
};

/* limit, continue, resourceVersion and resourceVersionMatch of the query, `after` in the request's
 * memory; false: an error was answered. */
bool page_read(struct api_request *request, struct page *ret_page);
/* A watch knows no sendInitialEvents, and so no resourceVersionMatch; false: an error was answered. */
bool page_allows_watch(struct api_request *request);

/* Offers an object of the list, in any order; kept names are copied into `names`. */
void page_add(struct page *page, struct arena *names, struct str namespace_, struct str name);
void page_end(struct page *page); /* all were added */
/* "resourceVersion", and "continue" and "remainingItemCount" where there is more; `exact`: no selector. */
void page_put_metadata(const struct page *page, struct json_writer *out, uint64_t seq, bool exact);
void page_done(struct page *page);

#endif
