/* bench/hang - a gang of 16,384 ranks that stops making steps, from the suspicion to the fault of the
 * culprit's machine, through the controller's core.
 *
 * Every rank answers with a record of three groups (all, a tensor group of 8, a data group of 2,048), as
 * agents sum them up: some operations that are finished, and one that is open on every rank but one. The
 * limit of judging is json_parse of all records.
 */
#include "core.h"

#include "core/hang/hang.h"
#include "core/health/fault.h"

enum { RANKS = MACHINES, TP = 8, SEQ = 1000, CULPRIT = 5003, FINISHED = 4 };

static void say(const char *name, double value, double limit, const char *unit)
{
    printf("{\"bench\":\"hang\",\"case\":\"%s\",\"value\":%.4g,\"unit\":\"%s\"", name, value, unit);
    if (limit > 0)
        printf(",\"limit\":%.4g,\"ratio_limit\":%.3f", limit, value / limit);
    printf("}\n");
    fflush(stdout);
}

static void put_op(struct buf *out, const char *group, int seq, bool open)
{
    buf_printf(
        out,
        "%s{\"record_id\":%d,\"process_group\":[\"%s\",\"g\"],\"collective_seq_id\":%d,\"profiling_name\":"
        "\":all_reduce\",\"is_p2p\":false,\"input_sizes\":[[1048576]],\"input_dtypes\":[\"Half\"],"
        "\"state\":\"%s\",\"time_created_ns\":1700000000000000000}",
        out->data[out->len - 1] == '[' ? "" : ",", seq, group, seq, open ? "started" : "completed");
}

static void put_record(struct buf *out, uint32_t rank)
{
    char tensor[16], data[16];
    uint32_t first = rank / TP * TP;
    snprintf(tensor, sizeof tensor, "%u", 1 + rank / TP);
    snprintf(data, sizeof data, "%u", 1 + RANKS / TP + rank % TP);
    buf_clear(out);
    buf_printf(
        out,
        "{\"ranks\":[{\"rank\":%u,\"state\":\"S\",\"step\":4,\"flight\":{\"pg_config\":{\"0\":{\"name\":"
        "\"0\","
        "\"desc\":\"g\",\"ranks\":\"[0-%d]\"},\"%s\":{\"name\":\"%s\",\"desc\":\"g\",\"ranks\":\"[%u-%u]\"},"
        "\"%s\":{\"name\":\"%s\",\"desc\":\"g\",\"ranks\":\"[%u-%u/%d]\"}},\"entries\":[",
        rank, RANKS - 1, tensor, tensor, first, first + TP - 1, data, data, rank % TP, RANKS - TP + rank % TP,
        TP);
    for (int i = 0; i < FINISHED; i++) {
        put_op(out, tensor, SEQ + i, false);
        put_op(out, data, SEQ + i, false);
    }
    if (rank != CULPRIT)
        put_op(out, "0", SEQ, true);
    buf_printf(out, "]}}]}");
}

struct told {
    obj_id errand;
    machine_id machine;
    struct buf record;
};

/* Returns the errands that agents were told, with their answers. */
static struct told *told_errands(const struct bench *bench, size_t *ret_bytes)
{
    struct told *told = mem_alloc(RANKS * sizeof *told);
    const struct hang_watch *watch = hang_at(core_hang_watches(bench->core), 0);
    CHECK(watch->part_count == RANKS);
    for (size_t i = 0; i < RANKS; i++) {
        const struct hang_part *part = &watch->parts[i];
        told[i].errand = part->errand;
        told[i].machine = cluster_find(core_cluster(bench->core), part->machine)->id;
        put_record(&told[i].record, part->rank);
        *ret_bytes += told[i].record.len;
    }
    return told;
}

static void answer(struct bench *bench, const struct told *told)
{
    struct errand_end end = {told->errand, ERRAND_OK, 0, buf_str(&told->record)};
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = core_cluster(bench->core)->machines[told->machine].name;
    event.reports.reports = (struct reports){.number = 1, .errands = &end, .errand_count = 1};
    apply(bench, &event);
}

static double parse_all(const struct told *told)
{
    int64_t begin_ns = now_ns();
    for (size_t i = 0; i < RANKS; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct doc *doc;
        CHECK(json_parse(&arena, buf_str(&told[i].record), &doc, NULL) == 0);
    }
    return (double)(now_ns() - begin_ns) / 1e9;
}

/* Until it is suspected. */
static void hang(struct bench *bench, struct buf *json)
{
    VEC(obj_id) live = {0};
    create(bench, jobset_json(json, 0, 1, RANKS, 4, ""));
    jobs_visit_tasks(core_jobs(bench->core), collect, &live);
    report_all(bench, live.items, live.len, REPORT_STARTED, 0, 0);
    report_all(bench, live.items, live.len, REPORT_JOINED, 0, 0);
    for (int step = 1; step <= 4; step++)
        progress(bench, core_jobs(bench->core)->jobsets.items[0], step);
    bench->now_ns += core_cluster(bench->core)->policy.hangs.minimum_ns;
    vec_done(&live);
    struct event tick = {.kind = EVENT_TICK};
    int64_t begin_ns = now_ns();
    apply(bench, &tick);
    say("suspicion: all 16384 ranks are asked", (double)(now_ns() - begin_ns) / 1e6, 0, "ms");
}

int main(void)
{
    struct bench bench;
    struct buf json BUF_CLEANUP = {0};
    size_t bytes = 0;
    start(&bench);
    hello_all(&bench);
    hang(&bench, &json);
    struct told *told = told_errands(&bench, &bytes);
    double limit_s = parse_all(told);
    say("record of a rank", (double)bytes / RANKS, 0, "bytes");
    int64_t begin_ns = now_ns();
    for (size_t i = 0; i + 1 < RANKS; i++)
        answer(&bench, &told[i]);
    say("a rank's answer is taken", (double)(now_ns() - begin_ns) / 1e3 / (RANKS - 1), 0, "us");
    begin_ns = now_ns();
    answer(&bench, &told[RANKS - 1]);
    say("judge 16384 ranks, last answer to fault", (double)(now_ns() - begin_ns) / 1e9, limit_s, "s");
    const struct hang_watch *watch = hang_at(core_hang_watches(bench.core), 0);
    CHECK(watch->verdict == HANG_MACHINES && fault_count(core_health(bench.core)) == 1);
    for (size_t i = 0; i < RANKS; i++)
        buf_done(&told[i].record);
    mem_free(told);
    stop(&bench);
    return 0;
}
