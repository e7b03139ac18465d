#include "core/receipt/receipt.h"

#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "core/words/limits.h"

struct entry {
    struct list_node node; /* by age */
    struct receipt receipt;
    char bytes[]; /* id and name */
};

struct receipts {
    struct list_node oldest;
    struct u64_map by_id; /* the first eight bytes of an id -> its entry */
    size_t count;
    int64_t since_ns;
};

struct receipts *receipts_new(void)
{
    struct receipts *receipts = mem_alloc(sizeof *receipts);
    list_init(&receipts->oldest);
    receipts->since_ns = INT64_MAX;
    return receipts;
}

/* Returns the first eight bytes of the id. Ids are parts of cryptographic hashes, so eight bytes suffice. */
static uint64_t map_key(struct str id)
{
    uint64_t key;
    CHECK(id.len == REQUEST_ID_BYTES);
    memcpy(&key, id.data, sizeof key);
    return key ? key : 1;
}

static void drop(struct receipts *receipts, struct entry *entry)
{
    uint64_t key = map_key(entry->receipt.id);
    if (u64_map_get(&receipts->by_id, key) == entry)
        u64_map_remove(&receipts->by_id, key);
    list_remove(&entry->node);
    receipts->count--;
    mem_free(entry);
}

void receipts_free(struct receipts *receipts)
{
    if (!receipts)
        return;
    list_for_each_safe(node, after, &receipts->oldest) drop(receipts, container_of(node, struct entry, node));
    CHECK(receipts->count == 0);
    u64_map_done(&receipts->by_id);
    mem_free(receipts);
}

void receipts_begin(struct receipts *receipts, int64_t stamp_ns)
{
    CHECK(stamp_ns >= 0);
    if (receipts->since_ns == INT64_MAX)
        receipts->since_ns = stamp_ns;
}

int64_t receipts_since(const struct receipts *receipts)
{
    return receipts->since_ns;
}

static struct entry *newest(const struct receipts *receipts)
{
    return list_empty(&receipts->oldest) ? NULL : container_of(receipts->oldest.prev, struct entry, node);
}

static void append(struct receipts *receipts, const struct receipt *receipt)
{
    const struct entry *last = newest(receipts);
    CHECK(receipt->id.len == REQUEST_ID_BYTES && receipt->code >= 200 && receipt->code < 300);
    CHECK(!last || last->receipt.stamp_ns <= receipt->stamp_ns);
    struct entry *entry = mem_alloc(sizeof *entry + REQUEST_ID_BYTES + receipt->name.len + 1);
    entry->receipt = *receipt;
    mem_copy(entry->bytes, receipt->id.data, REQUEST_ID_BYTES);
    mem_copy(entry->bytes + REQUEST_ID_BYTES, receipt->name.data, receipt->name.len);
    entry->receipt.id.data = entry->bytes;
    entry->receipt.name.data = entry->bytes + REQUEST_ID_BYTES;
    list_append(&receipts->oldest, &entry->node);
    (void)u64_map_put(&receipts->by_id, map_key(receipt->id), entry);
    receipts->count++;
}

void receipts_add(struct receipts *receipts, const struct receipt *receipt)
{
    CHECK(receipts->since_ns != INT64_MAX && !receipts_find(receipts, receipt->id));
    append(receipts, receipt);
    for (;;) {
        struct entry *first = container_of(receipts->oldest.next, struct entry, node);
        if (receipts->count <= RECEIPTS_MAX && receipt->stamp_ns - first->receipt.stamp_ns <= RECEIPT_AGE_NS)
            return;
        receipts->since_ns = first->receipt.stamp_ns;
        drop(receipts, first);
    }
}

const struct receipt *receipts_find(const struct receipts *receipts, struct str id)
{
    const struct entry *entry = u64_map_get(&receipts->by_id, map_key(id));
    return entry && str_equal(entry->receipt.id, id) ? &entry->receipt : NULL;
}

size_t receipts_count(const struct receipts *receipts)
{
    return receipts->count;
}

const struct receipt *receipts_next(const struct receipts *receipts, const struct receipt *receipt)
{
    const struct list_node *next =
        receipt ? container_of(receipt, struct entry, receipt)->node.next : receipts->oldest.next;
    return next == &receipts->oldest ? NULL : &container_of(next, struct entry, node)->receipt;
}

/* --- snapshots ------------------------------------------------------------------------------------------ */

bool receipts_restore_since(struct receipts *receipts, int64_t now_ns, int64_t since_ns)
{
    if (receipts->count > 0 || since_ns < 0 || (since_ns > now_ns && since_ns != INT64_MAX))
        return false;
    receipts->since_ns = since_ns;
    return true;
}

bool receipts_restore(struct receipts *receipts, int64_t now_ns, const struct receipt *receipt)
{
    const struct entry *last = newest(receipts);
    if (receipt->id.len != REQUEST_ID_BYTES || receipt->code < 200 || receipt->code >= 300 ||
        receipt->name.len > NAME_MAX_BYTES || receipts->count >= RECEIPTS_MAX ||
        receipts->since_ns == INT64_MAX || receipt->stamp_ns < receipts->since_ns ||
        receipt->stamp_ns > now_ns || (last && last->receipt.stamp_ns > receipt->stamp_ns) ||
        receipts_find(receipts, receipt->id))
        return false;
    append(receipts, receipt);
    return true;
}

void receipts_check(const struct receipts *receipts)
{
    size_t count = 0;
    int64_t before_ns = 0;
    for (const struct receipt *receipt = NULL; (receipt = receipts_next(receipts, receipt)); count++) {
        CHECK(receipt->stamp_ns >= before_ns && receipt->stamp_ns >= receipts->since_ns);
        CHECK(receipts_find(receipts, receipt->id) == receipt);
        before_ns = receipt->stamp_ns;
    }
    CHECK(count == receipts->count && count <= RECEIPTS_MAX);
}
