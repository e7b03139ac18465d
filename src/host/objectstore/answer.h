/* answer.h - parses the XML of S3 servers' answers as far as needed: elements and their text. The bytes are
 * untrusted: malformed XML ends the parse, and entities are never declared or fetched.
 *
 * Pure, except for memory.
 */
#ifndef PHX_HOST_OBJECTSTORE_ANSWER_H
#define PHX_HOST_OBJECTSTORE_ANSWER_H

#include "host/objectstore/objectstore.h"

/* Called at the end of each element, inner ones first, with its parent's name (empty: none), its own name,
 * and its decoded text, which is empty if the element contains others. The strings are valid during the
 * call. */
typedef void answer_element(void *context, struct str parent, struct str name, struct str text);
/* Parses `xml` and calls `element` for each element. Returns false if the text is malformed, deeper than 16
 * elements or cut short; `element` was called for the elements before that point. */
bool answer_walk(struct str xml, answer_element *element, void *context);

struct answer_error {
    char code[64], message[256]; /* printable; empty: the answer is no error */
};
/* Reads the code and message of an <Error> answer, as far as the text is well-formed. */
void answer_error(struct str xml, struct answer_error *ret);

/* Reads the upload id from the answer of CreateMultipartUpload. Returns false if it is missing or too
 * long. */
bool answer_upload_id(struct str xml, char ret_id[STORE_ID_MAX]);

/* A page of ListObjectsV2 or ListMultipartUploads. */
struct answer_page {
    bool truncated;
    struct str next_token;            /* ListObjectsV2 */
    struct str next_key, next_upload; /* ListMultipartUploads */
};
/* Reads a page and appends its entries to `list`, keys with their prefix; strings are in `arena`. Returns
 * false if the answer is malformed; entries may have been appended. */
bool answer_list(struct str xml, struct arena *arena, struct object_list *list, struct answer_page *ret);

#endif
