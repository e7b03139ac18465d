/* head.h - the head of an HTTP/1.1 request, and the framing of a body in chunks (RFC 9112). Pure: bytes in,
 * values out. For the server, and for the forwarder of host/standby (bounds.h).
 *
 * A head is accepted if and only if it cannot be read in two ways:
 *   - every line ends in CRLF, and contains no control character but a tab;
 *   - the request line is METHOD SP TARGET SP HTTP/1.x, the target printable ASCII without a space;
 *   - a header is NAME ":" VALUE, NAME a token, and no line continues the one before it;
 *   - the body has one framing: a Content-Length, or Transfer-Encoding: chunked, or neither;
 *   - HTTP/1.1 has one Host.
 * A target in absolute form ("http://HOST/PATH", as for a proxy) is split: the path and query become the
 * target, and HOST replaces the Host header's value (RFC 9112 section 3.2.2).
 */
#ifndef PHX_HOST_HTTP_HEAD_H
#define PHX_HOST_HTTP_HEAD_H

#include "host/http/http.h"

/* Reads the head of a request. Returns 1 if it is complete: *ret_head then points into `bytes`, and *ret_len
 * is its length, with the empty line at its end and empty lines before it. Returns 0 if more bytes are
 * needed, or the negated HTTP status that refuses the request. The first `scanned` bytes are known to hold no
 * end of a head: pass the length of `bytes` in the last call that returned 0. `head_max` limits the
 * length. */
int http_head_parse(struct str bytes, size_t scanned, size_t head_max, struct http_head *ret_head,
                    size_t *ret_len);

/* The decoder of a body in chunks. All zero is the start. */
struct http_chunks {
    uint64_t left; /* bytes left of a chunk's data, or the size read so far */
    uint16_t line; /* bytes of the line so far: a size with its extensions, or of the trailer */
    uint8_t at;    /* enum in head.c */
};
/* Takes bytes from the front of *text, and sets *ret_data to those that belong to the body (may be empty).
 * Call it until *text is empty or the body has ended. Returns 1 if the body has ended: the rest of *text
 * belongs to the next request. Returns 0 if it continues, or a negative value as http_head_parse(). */
int http_chunks_take(struct http_chunks *chunks, struct str *text, struct str *ret_data);

#endif
