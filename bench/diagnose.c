/* bench/diagnose - how long it takes to judge a hang of 16,384 ranks, beside reading the same dumps only.
 *
 * The job: tensor 8, pipeline 16, data 128; every rank has two dozen operations open, and each dump names all
 * ranks of the job once, as PyTorch's do. Dumps are made one at a time, outside the time that is taken:
 * together they have about 2 GB. The limit of judging is pickle_parse of all of them; that of reading is one
 * copy of the bytes.
 */
#include <stdio.h>

#include "doc/pickle.h"
#include "base/units.h"
#include "core/diagnose/diagnose.h"

#include "timing.h"

enum { TP = 8, PP = 16, DP = 128, RANKS = TP * PP * DP, OPEN = 24, SEQ = 1000, CULPRIT = 5003 };
enum fault { PROCESS_STOPS, DEVICE_STOPS, MACHINE_DIES };

struct text {
    struct buf out;
    struct buf world; /* "[0, 1, ...]" */
};
struct times {
    int64_t copy_ns, parse_ns, take_ns, judge_ns;
    size_t bytes;
};

/* --- pickles -------------------------------------------------------------------------------------- */

static void put_text(struct buf *out, const char *data, size_t len)
{
    char head[5] = {'X', (char)len, (char)(len >> 8), (char)(len >> 16), (char)(len >> 24)};
    buf_add(out, head, sizeof head);
    buf_add(out, data, len);
}

static void put(struct buf *out, const char *text)
{
    put_text(out, text, strlen(text));
}

static void put_int(struct buf *out, int64_t value)
{
    char bytes[10] = {(char)0x8a, 8};
    memcpy(bytes + 2, &value, 8);
    buf_add(out, bytes, sizeof bytes);
}

static void put_pair(struct buf *out, const char *key, int64_t value)
{
    put(out, key);
    put_int(out, value);
}

static void put_list(struct buf *out, const char *key, const char *items, size_t len)
{
    put(out, key);
    buf_add(out, "](", 2);
    buf_add(out, items, len);
    buf_add(out, "e", 1);
}

/* --- the job -------------------------------------------------------------------------------------- */

/* Groups by name: 0 all; then tensor groups, data groups, and pairs of neighbours in the pipeline. */
static uint32_t tensor_group(uint32_t rank)
{
    return 1 + rank / TP;
}
static uint32_t data_group(uint32_t rank)
{
    return 1 + RANKS / TP + rank % (TP * PP);
}
static uint32_t pair_group(uint32_t lower)
{
    return 1 + RANKS / TP + TP * PP + lower;
}
static uint32_t stage(uint32_t rank)
{
    return rank / TP % PP;
}

static void put_group(struct buf *out, uint32_t name, uint32_t first, uint32_t count, uint32_t stride)
{
    struct buf BUF_CLEANUP ranks = {0};
    char text[16];
    snprintf(text, sizeof text, "%u", name);
    for (uint32_t i = 0; i < count; i++)
        buf_printf(&ranks, i ? ", %u" : "[%u", first + i * stride);
    buf_add_char(&ranks, ']');
    put(out, text);
    buf_add(out, "}(", 2);
    put(out, "name");
    put(out, text);
    put(out, "desc");
    put(out, "SOME_PARALLEL_GROUP");
    put(out, "ranks");
    put_text(out, ranks.data, ranks.len);
    buf_add(out, "u", 1);
}

static void put_groups(struct text *text, uint32_t rank)
{
    struct buf *out = &text->out;
    put(out, "pg_config");
    buf_add(out, "}(", 2);
    put(out, "0");
    buf_add(out, "}(", 2);
    put(out, "name");
    put(out, "0");
    put(out, "desc");
    put(out, "default_pg");
    put(out, "ranks");
    put_text(out, text->world.data, text->world.len);
    buf_add(out, "u", 1);
    put_group(out, tensor_group(rank), rank / TP * TP, TP, 1);
    put_group(out, data_group(rank), rank % (TP * PP), DP, TP * PP);
    if (stage(rank) + 1 < PP)
        put_group(out, pair_group(rank), rank, 2, TP);
    if (stage(rank) > 0)
        put_group(out, pair_group(rank - TP), rank - TP, 2, TP);
    buf_add(out, "u", 1);
}

static void put_status(struct buf *out, uint32_t group, int64_t enqueued, int64_t completed)
{
    char text[16];
    snprintf(text, sizeof text, "%u", group);
    put(out, text);
    buf_add(out, "}(", 2);
    put_pair(out, "last_enqueued_collective", enqueued);
    put_pair(out, "last_started_collective", -1);
    put_pair(out, "last_completed_collective", completed);
    buf_add(out, "u", 1);
}

static void put_entry(struct buf *out, uint32_t group, int64_t seq, const char *name, bool p2p)
{
    char text[16];
    snprintf(text, sizeof text, "%u", group);
    buf_add(out, "}(", 2);
    put_pair(out, "record_id", seq);
    put_pair(out, "pg_id", group);
    put(out, "process_group");
    put(out, text);
    put(out, "SOME_PARALLEL_GROUP");
    buf_add(out, "\x86", 1);
    put(out, "thread_name");
    put(out, "python3");
    put_pair(out, "collective_seq_id", p2p ? 0 : seq);
    put_pair(out, "p2p_seq_id", p2p ? seq : 0);
    put_pair(out, "op_id", seq);
    put(out, "profiling_name");
    put(out, name);
    put_pair(out, "time_created_ns", 1758580155793872443 + seq);
    put_list(out, "input_sizes",
             "](M\x00\x08K\x01M\x00\x14"
             "e",
             11);
    put_list(out, "output_sizes",
             "](M\x00\x08K\x01M\x00\x14"
             "e",
             11);
    put_list(out, "input_dtypes",
             "X\x08\x00\x00\x00"
             "BFloat16",
             13);
    put_list(out, "output_dtypes",
             "X\x08\x00\x00\x00"
             "BFloat16",
             13);
    put(out, "state");
    put(out, "scheduled");
    put(out, "time_discovered_started_ns");
    buf_add(out, "N", 1);
    put(out, "time_discovered_completed_ns");
    buf_add(out, "N", 1);
    put(out, "retired");
    buf_add(out, "\x89", 1);
    put_pair(out, "timeout_ms", 600000);
    put(out, "is_p2p");
    buf_add(out, p2p ? "\x88" : "\x89", 1);
    buf_add(out, "u", 1);
}

/* The culprit's tensor group waits for it; its pipeline waits for that group from neighbour to neighbour; all
 * other pipelines are through and wait for this one where they sum gradients. */
static void put_entries(struct buf *out, uint32_t rank, enum fault fault)
{
    bool same = rank / (TP * PP) == CULPRIT / (TP * PP), near = rank / TP == CULPRIT / TP;
    int64_t open = SEQ; /* of its tensor group */
    put(out, "entries");
    buf_add(out, "](", 2);
    if (!same) {
        put_entry(out, data_group(rank), 7, "nccl:_reduce_scatter_base", false);
    } else if (near) {
        open = rank == CULPRIT && fault == DEVICE_STOPS ? SEQ - 1 : SEQ;
    } else {
        bool behind = stage(rank) > stage(CULPRIT);
        put_entry(out, pair_group(behind ? rank - TP : rank), 50,
                  behind ? "nccl:recv 1<-0" : "nccl:recv 0<-1", true);
    }
    for (int i = 0; i < OPEN && !(rank == CULPRIT && fault == PROCESS_STOPS); i++)
        put_entry(out, tensor_group(rank), open + i,
                  i % 2 ? "nccl:_all_gather_base" : "nccl:_reduce_scatter_base", false);
    buf_add(out, "e", 1);
}

static void make_dump(struct text *text, uint32_t rank, enum fault fault)
{
    struct buf *out = &text->out;
    buf_clear(out);
    buf_add(out, "\x80\x02}(", 4);
    put(out, "version");
    put(out, "2.9");
    put_groups(text, rank);
    put(out, "pg_status");
    buf_add(out, "}(", 2);
    put_status(out, 0, 3, 3);
    put_status(out, tensor_group(rank), SEQ - 1, SEQ - 1);
    put_status(out, data_group(rank), 6, 6);
    if (stage(rank) + 1 < PP)
        put_status(out, pair_group(rank), 49, 49);
    if (stage(rank) > 0)
        put_status(out, pair_group(rank - TP), 49, 49);
    buf_add(out, "u", 1);
    put_entries(out, rank, fault);
    buf_add(out, "u.", 2);
}

/* --- the figures ---------------------------------------------------------------------------------- */

static void take(struct flight *flight, struct text *text, uint32_t rank, struct times *times)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 30};
    struct error error = {0};
    struct doc *doc = NULL;
    static char copy[1 << 20];
    CHECK(text->out.len <= sizeof copy);
    int64_t start = now_ns();
    memcpy(copy, text->out.data, text->out.len);
    int64_t copied = now_ns();
    CHECK(pickle_parse(&arena, (struct str){copy, text->out.len}, &doc, &error) == 0);
    int64_t parsed = now_ns();
    CHECK(flight_add_dump(flight, rank, doc, &error) == 0);
    times->take_ns += now_ns() - parsed;
    times->parse_ns += parsed - copied;
    times->copy_ns += copied - start;
    times->bytes += text->out.len;
}

static struct times measure(struct text *text, enum fault fault)
{
    struct times times = {0};
    struct flight *flight = flight_new();
    struct diagnosis diagnosis;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        if (fault == MACHINE_DIES && rank / TP == CULPRIT / TP)
            continue;
        make_dump(text, rank, fault);
        take(flight, text, rank, &times);
    }
    int64_t start = now_ns();
    flight_judge(flight, &diagnosis);
    times.judge_ns = now_ns() - start;
    CHECK(diagnosis.culprits.len == (fault == MACHINE_DIES ? TP : 1));
    CHECK(fault == MACHINE_DIES || diagnosis.culprits.items[0] == CULPRIT);
    CHECK(fault == MACHINE_DIES || diagnosis.findings.items[0].waiting_all == RANKS - 1);
    diagnosis_done(&diagnosis);
    flight_free(flight);
    return times;
}

static void report(const char *name, int64_t value_ns, int64_t limit_ns)
{
    printf("{\"bench\":\"diagnose\",\"case\":\"%s\",\"value\":%.4f,\"unit\":\"s\",\"limit\":%.4f,\"ratio_"
           "limit\":%.3f}"
           "\n",
           name, (double)value_ns / 1e9, (double)limit_ns / 1e9,
           (double)value_ns / (double)(limit_ns ? limit_ns : 1));
    fflush(stdout);
}

int main(void)
{
    static const char *const names[] = {"a process stops", "a device stops", "a machine of 8 leaves no dump"};
    struct text text = {0};
    for (uint32_t rank = 0; rank < RANKS; rank++)
        buf_printf(&text.world, rank ? ", %u" : "[%u", rank);
    buf_add_char(&text.world, ']');
    for (int fault = PROCESS_STOPS; fault <= MACHINE_DIES; fault++) {
        struct times times = measure(&text, (enum fault)fault);
        char name[80];
        snprintf(name, sizeof name, "judge %d ranks, %s", RANKS, names[fault]);
        report(name, times.judge_ns, times.parse_ns);
        if (fault == MACHINE_DIES) {
            snprintf(name, sizeof name, "read %d dumps of %zu KB each", RANKS, times.bytes / RANKS / 1000);
            report(name, times.parse_ns + times.take_ns, times.copy_ns);
        }
    }
    buf_done(&text.out);
    buf_done(&text.world);
    return 0;
}
