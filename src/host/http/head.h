/* head.h - the head of an HTTP/1.1 request, and the framing of a body in chunks (RFC 9112). Pure: bytes in,
 * values out. For the server, and for who passes requests on (host/standby/bounds.h).
 *
 * A head is taken if and only if nobody can read it in two ways:
 *   - every line ends in CRLF, and no control character but a tab stands in it;
 *   - the request line is METHOD SP TARGET SP HTTP/1.x, the target printable ASCII without a space;
 *   - a header is NAME ":" VALUE, NAME a token, and no line continues the one before it;
 *   - the body has one framing: a Content-Length, or Transfer-Encoding: chunked, or none of both;
 *   - HTTP/1.1 has one Host.
 * A target in absolute form ("http://HOST/PATH", as for a proxy) is taken apart: the path and query become the
 * target, and HOST stands in the place of the Host header's value (RFC 9112 section 3.2.2).
 */
#ifndef PHX_HOST_HTTP_HEAD_H
#define PHX_HOST_HTTP_HEAD_H

#include "host/http/http.h"

/* Reads a request's head, whose bytes *ret_head points into; *ret_len: its bytes with the empty line, and
 * empty lines that came before it. `scanned`: how many bytes from the start are known to hold no end; see
 * http_head_unfinished(). `head_max`: the bytes that a head with its empty line may have. Returns 1: it is
 * whole; 0: more has to come; negative: the status (less its sign) that refuses it. */
int http_head_parse(struct str bytes, size_t scanned, size_t head_max, struct http_head *ret_head,
                    size_t *ret_len);

/* The decoder of a body in chunks. All zero is the start. */
struct http_chunks {
    uint64_t left; /* of a chunk's data, or the size so far */
    uint16_t line; /* bytes of the line so far: a size with its extensions, or of the trailer */
    uint8_t at;    /* enum in head.c */
};
/* Takes bytes from the front of *text: *ret_data is the body's part of them (empty: none yet). Call until
 * *text is empty or the body has ended. Returns 1: the body has ended, the rest of *text is the next
 * request's; 0: it goes on; negative: as http_head_parse(). */
int http_chunks_take(struct http_chunks *chunks, struct str *text, struct str *ret_data);

#endif
