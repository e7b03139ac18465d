/* fuzz_forward.c - any bytes as a request and its answer on their way through a forwarder: both end at the
 * same byte and read the same however they are cut, and no byte is taken twice or lost.
 *
 * Input: the first byte says in which pieces the others come and whether the forwarder closes; a 0 ends the
 * request and begins the answer.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "host/standby/bounds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct passed {
    int rc;
    size_t request_used, answer_used;
    bool request_whole, answer_whole;
    struct buf out;
};

static struct http_head scratch;

static void pass_request(struct str bytes, size_t step, struct request_bounds *request, struct passed *passed)
{
    size_t len = 0, at = 0;
    for (size_t scanned = 0; passed->rc == 0 && at < bytes.len; scanned = at) {
        at = bytes.len - at < step ? bytes.len : at + step;
        passed->rc = bounds_request_begin((struct str){bytes.data, at}, scanned, &scratch, request, &len);
    }
    if (passed->rc <= 0)
        return;
    CHECK(len <= at);
    while (!request->whole && len < bytes.len) {
        struct str piece = {bytes.data + len, bytes.len - len < step ? bytes.len - len : step};
        size_t used = 0;
        if (!bounds_request_take(request, piece, &used)) {
            passed->rc = -1;
            return;
        }
        CHECK(used == piece.len || request->whole);
        len += used;
    }
    passed->request_used = len;
    passed->request_whole = request->whole;
}

static void pass_answer(struct str bytes, size_t step, bool closes, const struct request_bounds *request,
                        struct passed *passed)
{
    struct answer_bounds answer;
    int rc = 0;
    bounds_answer_begin(&answer, request);
    while (rc == 0 && passed->answer_used < bytes.len && !bounds_answer_complete(&answer)) {
        size_t left = bytes.len - passed->answer_used, used = 0;
        struct str piece = {bytes.data + passed->answer_used, left < step ? left : step};
        rc = bounds_answer_take(&answer, piece, closes, &passed->out, &used);
        CHECK(rc < 0 || used == piece.len || bounds_answer_complete(&answer));
        passed->answer_used += used;
    }
    passed->answer_whole = rc == 0 && bounds_answer_complete(&answer);
    passed->rc = rc < 0 ? -1 : passed->rc;
    /* At most the line of our own connection is new. */
    CHECK(passed->out.len <= passed->answer_used + sizeof "Connection: close\r\n" || rc < 0);
    bounds_answer_done(&answer);
}

static void pass_all(struct str request_bytes, struct str answer_bytes, size_t step, bool closes,
                     struct passed *passed)
{
    struct request_bounds request = {0};
    pass_request(request_bytes, step, &request, passed);
    if (passed->rc > 0 && passed->request_whole)
        pass_answer(answer_bytes, step, closes, &request, passed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct str all = {(const char *)data + 1, size - 1}, request, answer = {0};
    struct passed once = {0}, pieces = {0};
    if (!str_cut(all, 0, &request, &answer))
        request = all;
    bool closes = data[0] & 1;
    pass_all(request, answer, SIZE_MAX / 2, closes, &once);
    pass_all(request, answer, 1 + data[0] / 2, closes, &pieces);
    CHECK((once.rc < 0) == (pieces.rc < 0) && once.request_whole == pieces.request_whole);
    if (once.rc >= 0) {
        CHECK(once.rc == pieces.rc && once.request_used == pieces.request_used &&
              once.answer_used == pieces.answer_used && once.answer_whole == pieces.answer_whole);
        CHECK(str_equal(buf_str(&once.out), buf_str(&pieces.out)));
    }
    buf_done(&once.out);
    buf_done(&pieces.out);
    return 0;
}
