/* sigv4.h - AWS Signature Version 4 of one request, in the Authorization header.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
 *
 * Pure, except for memory.
 */
#ifndef PHX_HOST_OBJECTSTORE_SIGV4_H
#define PHX_HOST_OBJECTSTORE_SIGV4_H

#include "base/str.h"

enum { SIGV4_DATE_SIZE = 17, SIGV4_HEX_SIZE = 65 };

struct sigv4_pair { /* of a query, not encoded; or a header, with its name in lower case */
    const char *name, *value;
};

struct sigv4_request {
    const char *method;
    struct str path;                          /* encoded, from the first "/" on */
    const struct sigv4_pair *query, *headers; /* each sorted by name; all headers are signed */
    size_t query_count, header_count;
    const char *payload; /* SHA-256 of the body as hex */
    const char *date;    /* "20130524T000000Z" */
    const char *region, *service, *access_key, *secret_key;
};

/* Percent-encodes all but unreserved characters (RFC 3986); in a path "/" stays too. */
void sigv4_encode(struct buf *out, struct str text, bool path);
/* Appends "a=1&b=", encoded as it is signed and must be sent. */
void sigv4_query(struct buf *out, const struct sigv4_pair *query, size_t count);
void sigv4_hash(struct str bytes, char ret_hex[SIGV4_HEX_SIZE]); /* SHA-256 */
/* Appends the header's value: "AWS4-HMAC-SHA256 Credential=...". */
void sigv4_authorization(struct buf *out, const struct sigv4_request *request);

#endif
