/* fuzz_http_head.c - any bytes as requests of HTTP/1.1: heads and bodies in chunks mean the same however they
 * are cut, and nothing that is taken can be read in two ways.
 *
 * Input: the first byte says in which pieces the others come.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "host/http/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD_MAX = 2048 };

/* Checks the promises of a head that was taken; see head.h. */
static void check_head(const struct http_head *head, struct str bytes)
{
    int hosts = 0, lengths = 0, codings = 0;
    CHECK(head->method.len && head->target.len && head->header_count <= HTTP_HEADERS_MAX);
    for (size_t i = 0; i < head->header_count; i++) {
        struct http_header header = head->headers[i];
        /* The host of an absolute target may stand in a header that was not sent. */
        CHECK((header.name.data >= bytes.data || str_is(header.name, "Host")) &&
              header.value.len <= bytes.len);
        CHECK(!memchr(header.value.data, '\r', header.value.len) &&
              !memchr(header.value.data, '\n', header.value.len) &&
              !memchr(header.value.data, 0, header.value.len));
        hosts += http_is_word(header.name, "Host");
        lengths += http_is_word(header.name, "Content-Length");
        codings += http_is_word(header.name, "Transfer-Encoding");
    }
    CHECK(!str_starts(head->target, STR("http://")) && !str_starts(head->target, STR("https://")));
    CHECK(hosts <= 1 && (hosts == 1 || head->minor == 0));
    CHECK(codings <= 1 && (codings == 0 || lengths == 0));
    CHECK((head->content_length == HTTP_CHUNKED) == (codings == 1));
    CHECK(head->content_length == 0 || codings || lengths);
}

/* As a connection does: more and more bytes, of which all but the last piece hold no end. */
static int parse_in_pieces(struct str bytes, size_t step, struct http_head *head, size_t *ret_len)
{
    int rc = 0;
    for (size_t len = 0, scanned = 0; rc == 0 && len < bytes.len; scanned = len) {
        len = bytes.len - len < step ? bytes.len : len + step;
        rc = http_head_parse((struct str){bytes.data, len}, scanned, HEAD_MAX, head, ret_len);
    }
    return rc;
}

/* Returns as http_chunks_take() does; the bytes of the body, their sum, and the bytes taken. */
static int take_body(struct str bytes, size_t step, uint64_t *ret_sum, size_t *ret_used)
{
    struct http_chunks chunks = {0};
    int rc = 0;
    *ret_sum = *ret_used = 0;
    while (rc == 0 && *ret_used < bytes.len) {
        size_t left = bytes.len - *ret_used, len = left < step ? left : step;
        struct str piece = {bytes.data + *ret_used, len}, part;
        while (rc == 0 && piece.len) {
            size_t before = piece.len;
            rc = http_chunks_take(&chunks, &piece, &part);
            CHECK(piece.len < before && part.len <= before - piece.len);
            for (size_t i = 0; i < part.len; i++)
                *ret_sum = *ret_sum * 31 + 1 + (unsigned char)part.data[i];
        }
        *ret_used += len - piece.len;
    }
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_head once, pieces;
    if (size < 1)
        return 0;
    size_t step = 1 + data[0] % 64, len = 0, piece_len = 0, used, piece_used;
    uint64_t sum, piece_sum;
    struct str bytes = {(const char *)data + 1, size - 1};
    struct str body = bytes;
    int rc = http_head_parse(bytes, 0, HEAD_MAX, &once, &len);
    int piece_rc = parse_in_pieces(bytes, step, &pieces, &piece_len);
    CHECK(rc == piece_rc || (rc < 0 && piece_rc < 0)); /* a long head's target may end in a later piece */
    if (rc == 1) {
        check_head(&once, bytes);
        CHECK(len <= bytes.len && len == piece_len && once.content_length == pieces.content_length &&
              once.keeps == pieces.keeps && once.continues == pieces.continues);
        body = (struct str){bytes.data + len, bytes.len - len};
    }
    rc = take_body(body, SIZE_MAX, &sum, &used);
    CHECK(take_body(body, step, &piece_sum, &piece_used) == rc && sum == piece_sum && used == piece_used);
    return 0;
}
