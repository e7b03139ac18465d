/* answer.h - the XML that S3 servers answer with, as far as it is needed: elements and their text. Bytes from
 * outside: what is no XML ends the reading; nothing is looked up, declared or fetched.
 *
 * Pure, but for memory.
 */
#ifndef PHX_HOST_OBJECTSTORE_ANSWER_H
#define PHX_HOST_OBJECTSTORE_ANSWER_H

#include "host/objectstore/objectstore.h"

/* Called for each element that ends, from the inside out: its parent's name (empty: none), its own, and its
 * text, which is decoded and empty where there were elements in it. */
typedef void answer_element(void *context, struct str parent, struct str name, struct str text);
/* False: it is no XML, deeper than 16 elements, or cut short; what came before has been called. */
bool answer_walk(struct str xml, answer_element *element, void *context);

struct answer_error {
    char code[64], message[256]; /* printable; empty: the answer is no error */
};
void answer_error(struct str xml, struct answer_error *ret);

/* Reads the upload id from the answer of CreateMultipartUpload. False: there is none, or it is too long. */
bool answer_upload_id(struct str xml, char ret_id[STORE_ID_MAX]);

/* A page of ListObjectsV2 or ListMultipartUploads: entries are appended, with their prefix. */
struct answer_page {
    bool truncated;
    struct str next_token;            /* ListObjectsV2 */
    struct str next_key, next_upload; /* ListMultipartUploads */
};
bool answer_list(struct str xml, struct arena *arena, struct object_list *list, struct answer_page *ret);

#endif
