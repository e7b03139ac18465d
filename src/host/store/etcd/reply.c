/* reply.c - reads answers of etcd's gateway, and maps refusals to error codes. */
#include "base/base64.h"
#include "host/store/etcd/internal.h"

/* gRPC codes that etcd uses (https://grpc.github.io/grpc/core/md_doc_statuscodes.html). */
enum grpc_code {
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_PERMISSION = 7,
    GRPC_EXHAUSTED = 8,
    GRPC_PRECONDITION = 9,
    GRPC_UNAVAILABLE = 14,
    GRPC_UNAUTHENTICATED = 16,
};

static bool says(struct str text, const char *part)
{
    return text.len > 0 && memmem(text.data, text.len, part, strlen(part)) != NULL;
}

static enum error_code refusal_code(int64_t code, struct str text)
{
    switch (code) {
    case GRPC_EXHAUSTED:
        return says(text, "space exceeded") ? ERROR_NO_SPACE : ERROR_UNAVAILABLE;
    case GRPC_CANCELLED:
    case GRPC_UNKNOWN:
    case GRPC_DEADLINE:
    case GRPC_UNAVAILABLE:
        return ERROR_UNAVAILABLE;
    case GRPC_NOT_FOUND:
        return ERROR_NOT_FOUND;
    case GRPC_PERMISSION:
    case GRPC_UNAUTHENTICATED:
        return ERROR_DENIED;
    case GRPC_PRECONDITION:
        return says(text, "lease already exists") ? ERROR_EXISTS : ERROR_INVALID;
    case GRPC_INVALID_ARGUMENT:
        if (says(text, "too large") || says(text, "too many operations"))
            return ERROR_LIMIT;
        /* Etcd with authentication refuses a request without a user in this way. */
        return says(text, "user name is empty") ? ERROR_DENIED : ERROR_INVALID;
    default:
        return ERROR_INVALID;
    }
}

int etcd_refusal(const struct doc *reply, const char *member, struct error *error)
{
    const struct doc *inner = doc_get(reply, "error");
    struct str text = doc_str(inner, doc_str(doc_get(reply, "message"), STR("")));
    int64_t code = doc_int(doc_get(reply, "code"), GRPC_UNKNOWN);
    if (inner && inner->kind == DOC_OBJECT) { /* the error of a stream */
        text = doc_str(doc_get(inner, "message"), STR(""));
        code = doc_int(doc_get(inner, "grpc_code"), GRPC_UNKNOWN);
    }
    return error_set(error, refusal_code(code, text), "etcd %s: " STR_FORMAT, member, STR_ARG(text));
}

int64_t etcd_number(const struct doc *node)
{
    int64_t value = 0;
    if (node && node->kind == DOC_STRING)
        return str_to_i64(node->text, INT64_MIN, INT64_MAX, &value) ? value : 0;
    return doc_int(node, 0);
}

int64_t etcd_revision(const struct doc *reply)
{
    return etcd_number(doc_path(reply, "header", "revision", NULL));
}

/* Decodes base64 into the arena. Returns false if it is malformed. */
static bool take_bytes(const struct doc *node, struct arena *arena, struct str *ret)
{
    struct buf bytes BUF_CLEANUP = {0};
    if (!node) {
        *ret = (struct str){0};
        return true;
    }
    if (node->kind != DOC_STRING || !base64_decode(node->text, &bytes))
        return false;
    *ret = arena_str(arena, buf_str(&bytes));
    return true;
}

int etcd_pair_at(const struct doc *range, size_t index, struct arena *arena, struct etcd_pair *ret_pair,
                 struct error *error)
{
    const struct doc *kv = doc_at(doc_get(range, "kvs"), index);
    struct etcd_pair pair;
    if (!kv)
        return 0;
    if (!take_bytes(doc_get(kv, "key"), arena, &pair.key) ||
        !take_bytes(doc_get(kv, "value"), arena, &pair.value))
        return error_set(error, ERROR_CORRUPT, "etcd's answer has a key or value that is not base64");
    pair.mod_revision = etcd_number(doc_get(kv, "mod_revision"));
    pair.lease = etcd_number(doc_get(kv, "lease"));
    *ret_pair = pair;
    return 1;
}

bool etcd_succeeded(const struct doc *reply)
{
    return doc_bool(doc_get(reply, "succeeded"), false);
}

const struct doc *etcd_txn_range(const struct doc *reply, size_t index)
{
    return doc_get(doc_at(doc_get(reply, "responses"), index), "response_range");
}
