/* retry.c - writes that their clients send again, because no answer came.
 *
 * The header Idempotency-Key (draft-ietf-httpapi-idempotency-key-header) identifies a write. A client that
 * sends the write again adds "Phalanx-Resent: MS", the time since it first sent it. The write is applied once
 * (core/receipt/receipt.h): a repetition gets the code of the first answer, and the object as it is now.
 */
#include "host/api/request.h"

#include "base/hash.h"
#include "core/receipt/receipt.h"
#include "core/log/record.h"

enum { KEY_BYTES_MAX = 255 };
#define RESENT_MS_MAX INT64_C(86400000)

/* Returns whether the request is a write of one object, which is logged. */
static bool may_have_id(const struct api_request *request)
{
    bool one = request->method == METHOD_POST || request->method == METHOD_PUT ||
               request->method == METHOD_PATCH || (request->method == METHOD_DELETE && request->name.len > 0);
    return one && request->retry.key.len > 0 && !str_is(request_query(request, "dryRun"), "All");
}

static void make_id(struct api_request *request)
{
    struct request_retry *retry = &request->retry;
    struct str user = request->user ? request->user->name : (struct str){0};
    struct buf text BUF_CLEANUP = {0};
    uint8_t sum[SHA256_SIZE];
    buf_add_str(&text, user);
    buf_add(&text, "", 1); /* no name contains NUL */
    buf_add_str(&text, retry->key);
    sha256(text.data, text.len, sum);
    retry->id = arena_str(&request->arena, (struct str){(const char *)sum, REQUEST_ID_BYTES});
    retry->content = hash64((uint64_t)request->method, request->uri.data, request->uri.len);
    retry->content = hash_words(retry->content, request->body.data, request->body.len);
}

/* Returns whether there are receipts for all writes since the client first sent this one. */
static bool receipts_reach(const struct api_request *request, int64_t resent_ms)
{
    int64_t first_ns = request_now(request) - resent_ms * NS_PER_MS;
    return receipts_since(core_receipts(request_core(request))) < first_ns;
}

/* Returns whether the user may see the object as it is now: the right to create it does not include that. */
static bool may_see(const struct api_request *request, const struct receipt *receipt)
{
    struct access_attributes what = request->what;
    if (request->method != METHOD_POST || !request->api->access)
        return true;
    what.verb = STR("get");
    what.name = receipt->name;
    return access_allows(request->api->access, request->user, &what);
}

void retry_answer(struct api_request *request, const struct receipt *receipt)
{
    struct object_ref object = {0};
    bool removes = request->method == METHOD_DELETE || str_is(request->subresource, "eviction");
    bool there =
        !removes && receipt->name.len > 0 &&
        resource_get(request->resource, request_core(request), request->namespace_, receipt->name, &object) &&
        object_name(object).uid == receipt->object;
    if (there && may_see(request, receipt))
        answer_object(request, (int)receipt->code, object, receipt->name);
    else
        answer_success(request, receipt->object);
    request->code = (int)receipt->code;
}

bool retry_accept(struct api_request *request)
{
    struct request_retry *retry = &request->retry;
    int64_t resent_ms = 0;
    if (!may_have_id(request))
        return true;
    if (retry->key.len > KEY_BYTES_MAX) {
        answer_status(request, 400, "BadRequest", "Idempotency-Key is longer than %d bytes", KEY_BYTES_MAX);
        return false;
    }
    if (retry->resent.data && !str_to_i64(retry->resent, 0, RESENT_MS_MAX, &resent_ms)) {
        answer_status(request, 400, "BadRequest", "Phalanx-Resent is no number of milliseconds up to %lld",
                      (long long)RESENT_MS_MAX);
        return false;
    }
    if (retry->id.len == 0)
        make_id(request);
    const struct receipt *receipt = receipts_find(core_receipts(request_core(request)), retry->id);
    if (receipt && receipt->content == retry->content) {
        retry_answer(request, receipt);
        return false;
    }
    if (retry->resent.data && !receipt && !receipts_reach(request, resent_ms)) {
        answer_status(request, 409, "Conflict",
                      "it cannot be told any more whether this request was carried out when it was sent "
                      "first: look at the object, and send the request with another Idempotency-Key");
        return false;
    }
    return true;
}
