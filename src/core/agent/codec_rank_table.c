/* codec_rank_table.c - a gang's rank table to and from bytes. The packed form consists of runs: ranks on
 * numbered machines that follow each other by the rule of RankTableRun (proto/wire.proto). The writer
 * compares each entry with the one that a reader would derive from the rule. */
#include "base/check.h"
#include "base/vec.h"
#include "core/agent/codec_pb.h"
#include "core/words/limits.h"

static void write_entry(struct arena *arena, const struct rank_table_entry *entry, Wire__RankTableEntry *ret)
{
    wire__rank_table_entry__init(ret);
    ret->hostname = codec_text(arena, entry->hostname);
    ret->address = codec_text(arena, entry->address);
    ret->machine = codec_text(arena, entry->machine);
    ret->chips = entry->chips;
    ret->rank = entry->rank;
}

static Wire__GangRankTable *write_head(struct arena *arena, const struct gang_rank_table *rank_table)
{
    CHECK(rank_table->entries || rank_table->count == 0);
    Wire__GangRankTable *ret = ARENA_NEW(arena, Wire__GangRankTable);
    wire__gang_rank_table__init(ret);
    ret->subdomain = codec_text(arena, rank_table->subdomain);
    ret->namespace_ = codec_text(arena, rank_table->namespace_);
    return ret;
}

Wire__GangRankTable *codec_write_rank_table(struct arena *arena, const struct gang_rank_table *rank_table)
{
    Wire__GangRankTable *ret = write_head(arena, rank_table);
    ret->n_entries = rank_table->count;
    Wire__RankTableEntry *entries = ARENA_ARRAY(arena, Wire__RankTableEntry, rank_table->count);
    ret->entries = ARENA_ARRAY(arena, Wire__RankTableEntry *, rank_table->count);
    for (size_t i = 0; i < rank_table->count; i++) {
        write_entry(arena, &rank_table->entries[i], &entries[i]);
        ret->entries[i] = &entries[i];
    }
    return ret;
}

/* --- the rule ------------------------------------------------------------------------------------------- */

enum { COUNT_DIGITS = 9, COUNTED_DIGITS_MAX = 20 };

/* A text that ends in a number; the texts of the following ranks have the next numbers. */
struct counted {
    struct str stem;
    uint64_t number;
    size_t digits; /* 0: there is no number, and only the text itself */
};

static struct counted counted_from(struct str text)
{
    struct counted counted = {.stem = text};
    uint64_t weight = 1;
    while (counted.stem.len > 0 && counted.digits < COUNT_DIGITS) {
        char last = counted.stem.data[counted.stem.len - 1];
        if (last < '0' || last > '9')
            break;
        counted.number += weight * (uint64_t)(last - '0');
        weight *= 10;
        counted.stem.len--;
        counted.digits++;
    }
    return counted;
}

/* Writes the digits, with leading zeros, of the text that is `index` places after the first. */
static size_t counted_digits(const struct counted *counted, uint32_t index, char ret[COUNTED_DIGITS_MAX])
{
    uint64_t rest = counted->number + index;
    char *at = ret + COUNTED_DIGITS_MAX;
    size_t len = 0;
    for (; len < counted->digits || (counted->digits > 0 && rest > 0); len++) {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    }
    return len;
}

static bool counts_to(const struct counted *counted, uint32_t index, struct str text)
{
    char digits[COUNTED_DIGITS_MAX];
    if (index > 0 && counted->digits == 0)
        return false;
    size_t len = counted_digits(counted, index, digits);
    return text.len == counted->stem.len + len && str_starts(text, counted->stem) &&
           memcmp(text.data + counted->stem.len, digits + COUNTED_DIGITS_MAX - len, len) == 0;
}

static uint64_t chips_of(uint64_t first, uint32_t place)
{
    uint64_t shift = (uint64_t)place * (uint64_t)__builtin_popcountll(first);
    return shift < 64 ? first << shift : 0;
}

/* --- packing -------------------------------------------------------------------------------------------- */

static size_t ranks_on_machine(const struct rank_table_entry *entries, size_t count)
{
    size_t same = 1;
    while (same < count && str_equal(entries[same].machine, entries[0].machine))
        same++;
    return same;
}

/* Returns how many of the entries follow the first by the rule. */
static size_t run_length(const struct rank_table_entry *entries, size_t count, size_t per_machine)
{
    const struct rank_table_entry *first = &entries[0];
    struct counted hostname = counted_from(first->hostname), machine = counted_from(first->machine),
                   address = counted_from(first->address);
    size_t length = 1;
    for (; length < count; length++) {
        const struct rank_table_entry *entry = &entries[length];
        uint32_t index = (uint32_t)length, on = (uint32_t)(length / per_machine);
        if (entry->rank != first->rank + index ||
            entry->chips != chips_of(first->chips, (uint32_t)(length % per_machine)) ||
            !counts_to(&hostname, index, entry->hostname) || !counts_to(&machine, on, entry->machine) ||
            !counts_to(&address, on, entry->address))
            break;
    }
    return length;
}

void codec_pack_rank_table(struct buf *out, const struct gang_rank_table *rank_table)
{
    ARENA_CLEANUP struct arena arena = {0};
    Wire__GangRankTable *pb = write_head(&arena, rank_table);
    VEC(Wire__RankTableRun *) runs = {0};
    for (size_t i = 0; i < rank_table->count;) {
        const struct rank_table_entry *entries = &rank_table->entries[i];
        Wire__RankTableRun *run = ARENA_NEW(&arena, Wire__RankTableRun);
        wire__rank_table_run__init(run);
        run->first = ARENA_NEW(&arena, Wire__RankTableEntry);
        write_entry(&arena, entries, run->first);
        run->per_machine = (uint32_t)ranks_on_machine(entries, rank_table->count - i);
        run->count = (uint32_t)run_length(entries, rank_table->count - i, run->per_machine);
        i += run->count;
        vec_push(&runs, run);
    }
    pb->n_runs = runs.len;
    pb->runs = runs.items;
    size_t len = wire__gang_rank_table__get_packed_size(pb);
    buf_reserve(out, len);
    size_t packed = wire__gang_rank_table__pack(pb, (uint8_t *)out->data + out->len);
    CHECK(packed == len);
    out->len += len;
    vec_done(&runs);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static int count_entries(const Wire__GangRankTable *pb, size_t *ret_count, struct error *error)
{
    uint64_t count = pb->n_entries;
    for (size_t i = 0; i < pb->n_runs; i++) {
        const Wire__RankTableRun *run = pb->runs[i];
        if (!run->first || run->count == 0 || run->per_machine == 0)
            return error_set(error, ERROR_INVALID, "rank table: run %zu is empty", i);
        count += run->count;
    }
    if (count > TASKS_PER_JOBSET_MAX)
        return error_set(error, ERROR_LIMIT,
                         "rank table of %llu ranks (TASKS_PER_JOBSET_MAX is %d)",
                         (unsigned long long)count, TASKS_PER_JOBSET_MAX);
    *ret_count = (size_t)count;
    return 0;
}

static struct rank_table_entry read_entry(const Wire__RankTableEntry *pb)
{
    return (struct rank_table_entry){.hostname = str_from(pb->hostname),
                                     .address = str_from(pb->address),
                                     .machine = str_from(pb->machine),
                                     .chips = pb->chips,
                                     .rank = pb->rank};
}

static int count_up(struct arena *arena, const struct counted *counted, uint32_t index, struct str *ret,
                    struct error *error)
{
    char digits[COUNTED_DIGITS_MAX];
    size_t len = counted_digits(counted, index, digits);
    char *text = codec_try_array(arena, counted->stem.len + len + 1, 1, error);
    if (!text)
        return ERROR_LIMIT;
    mem_copy(text, counted->stem.data, counted->stem.len);
    mem_copy(text + counted->stem.len, digits + COUNTED_DIGITS_MAX - len, len);
    *ret = (struct str){text, counted->stem.len + len};
    return 0;
}

static int read_run(struct arena *arena, const Wire__RankTableRun *pb, struct rank_table_entry *ret,
                    struct error *error)
{
    ret[0] = read_entry(pb->first);
    struct counted hostname = counted_from(ret[0].hostname), machine = counted_from(ret[0].machine),
                   address = counted_from(ret[0].address);
    for (uint32_t i = 1; i < pb->count; i++) {
        uint32_t on = i / pb->per_machine, place = i % pb->per_machine;
        ret[i] = ret[i - 1];
        ret[i].rank = ret[0].rank + i;
        ret[i].chips = chips_of(ret[0].chips, place);
        int rc = count_up(arena, &hostname, i, &ret[i].hostname, error);
        if (rc == 0 && place == 0)
            rc = count_up(arena, &machine, on, &ret[i].machine, error);
        if (rc == 0 && place == 0)
            rc = count_up(arena, &address, on, &ret[i].address, error);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int codec_read_rank_table(struct arena *arena, const Wire__GangRankTable *pb, struct gang_rank_table *ret,
                          struct error *error)
{
    struct gang_rank_table rank_table = {.subdomain = str_from(pb->subdomain),
                                         .namespace_ = str_from(pb->namespace_)};
    int rc = count_entries(pb, &rank_table.count, error);
    if (rc < 0)
        return rc;
    rank_table.entries = codec_try_array(arena, rank_table.count, sizeof *rank_table.entries, error);
    if (!rank_table.entries)
        return ERROR_LIMIT;
    for (size_t i = 0; i < pb->n_entries; i++)
        rank_table.entries[i] = read_entry(pb->entries[i]);
    size_t next = pb->n_entries;
    for (size_t i = 0; rc == 0 && i < pb->n_runs; i++) {
        rc = read_run(arena, pb->runs[i], &rank_table.entries[next], error);
        next += pb->runs[i]->count;
    }
    if (rc == 0)
        *ret = rank_table;
    return rc;
}

int codec_unpack_rank_table(struct arena *arena, struct str bytes, struct gang_rank_table *ret_rank_table,
                            struct error *error)
{
    struct codec_memory memory;
    codec_memory_init(&memory, arena);
    Wire__GangRankTable *pb =
        wire__gang_rank_table__unpack(&memory.allocator, bytes.len, (const uint8_t *)bytes.data);
    if (!pb)
        return codec_unpack_error(&memory, bytes.len, error);
    return codec_read_rank_table(arena, pb, ret_rank_table, error);
}
