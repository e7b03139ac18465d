/* bench/core - events per second through the controller's core alone, and with the log before it.
 *
 * One JSON object a line (bench/run gives the form). 16,384 machines of four chips; a gang's task has the
 * four of one machine. "life" of a gang is everything that happens to it: created, placed, started, joined, a
 * checkpoint, ended; its figure is the time an event takes, which must not grow with the gang. With the log
 * the same writes are appended in groups of 100, durable, before each group is applied; the limit is the
 * store's append of those bytes alone. A write is checked and then applied, as a controller does.
 *
 *     bench_core [FOLDER [CASES]]        (FOLDER for the log; default: $TMPDIR or /var/tmp)
 *
 * CASES picks some, for a profile: the letters n (no-op jobs), m (many JobSets), q (behind a queue), p (past
 * a waiting gang), g (gangs), w (writes without the log), l (writes with it).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core.h"
#include "core/log/record.h"
#include "host/store/store.h"

enum { JOBSETS = 10000, GROUP = 100, NO_OPS = 4000 };

static void say(const char *name, double value, const char *unit)
{
    printf("{\"bench\":\"core\",\"case\":\"%s\",\"value\":%.1f,\"unit\":\"%s\"}\n", name, value, unit);
    fflush(stdout);
}

/* Events per second since `start_ns`, and starts counting anew. */
static void say_rate(struct bench *bench, const char *name, int64_t start_ns)
{
    say(name, (double)bench->events * 1e9 / (double)(now_ns() - start_ns), "events/s");
    bench->events = 0;
}

/* Created, run, one checkpoint, one restart of all, ended. Microseconds an event. */
static void gang_life(int replicas, int tasks, int chips)
{
    struct bench bench;
    struct buf json BUF_CLEANUP = {0};
    char name[96];
    VEC(obj_id) live = {0};
    start(&bench);
    hello_all(&bench);
    bench.events = 0;
    int64_t begin_ns = now_ns();
    create(&bench, jobset_json(&json, 0, replicas, tasks, chips, ""));
    snprintf(name, sizeof(name), "gang of %d x %d: create and place", replicas, tasks);
    say(name, (double)(now_ns() - begin_ns) / 1e6, "ms");
    const struct jobset *jobset = core_jobs(bench.core)->jobsets.items[0];
    for (int attempt = 0; attempt < 2; attempt++) {
        vec_clear(&live);
        jobs_visit_tasks(core_jobs(bench.core), collect, &live);
        report_all(&bench, live.items, live.len, REPORT_STARTED, 0, 0);
        report_all(&bench, live.items, live.len, REPORT_JOINED, 0, 0);
        progress(&bench, jobset, 10);
        report_all(&bench, live.items, live.len, REPORT_SHARD_SAVED, 10 * (attempt + 1), 0);
        CHECK(jobset->checkpoint.committed_step == 10 * (attempt + 1));
        report_all(&bench, live.items, live.len, REPORT_EXITED, 0, attempt == 0);
    }
    CHECK(jobset->restarts == 1 && jobset->terminal_state == TERMINAL_COMPLETED);
    int64_t spent_ns = now_ns() - begin_ns;
    snprintf(name, sizeof(name), "gang of %d x %d: life with a restart", replicas, tasks);
    say(name, (double)spent_ns / 1e3 / (double)bench.events, "us/event");
    vec_done(&live);
    stop(&bench);
}

/* Many JobSets at once: writes, progress, an end. */
static void many_jobsets(void)
{
    struct bench bench;
    struct buf json BUF_CLEANUP = {0};
    VEC(obj_id) live = {0};
    start(&bench);
    int64_t begin_ns = now_ns();
    hello_all(&bench);
    say_rate(&bench, "hello of 16384 machines", begin_ns);
    begin_ns = now_ns();
    for (int i = 0; i < JOBSETS; i++)
        create(&bench, jobset_json(&json, i, 1, 1, 4, ""));
    say_rate(&bench, "create 10000 JobSets of one task", begin_ns);
    jobs_visit_tasks(core_jobs(bench.core), collect, &live);
    begin_ns = now_ns();
    report_all(&bench, live.items, live.len, REPORT_STARTED, 0, 0);
    say_rate(&bench, "started, among 10000 JobSets", begin_ns);
    begin_ns = now_ns();
    for (int64_t step = 1; step <= 10; step++)
        for (size_t i = 0; i < JOBSETS; i++)
            progress(&bench, core_jobs(bench.core)->jobsets.items[i], step);
    say_rate(&bench, "progress, among 10000 JobSets", begin_ns);
    begin_ns = now_ns();
    report_all(&bench, live.items, live.len, REPORT_EXITED, 0, 0);
    say_rate(&bench, "exited, among 10000 JobSets", begin_ns);
    begin_ns = now_ns();
    struct buf bytes BUF_CLEANUP = {0};
    core_snapshot_write(bench.core, &bytes);
    say("snapshot of 10000 JobSets", (double)(now_ns() - begin_ns) / 1e6, "ms");
    vec_done(&live);
    stop(&bench);
}

enum { CREATED = 500 };

/* Small JobSets in a cluster that a gang has filled: `queued` of them wait already. */
static void behind_a_queue(int queued)
{
    struct bench bench;
    struct buf json BUF_CLEANUP = {0};
    char name[96];
    int number = 0;
    start(&bench);
    hello_all(&bench);
    create(&bench, jobset_json(&json, number++, 1, MACHINES, 4, ""));
    for (int i = 0; i < queued; i++)
        create(&bench, jobset_json(&json, number++, 1, 1, 4, ""));
    int64_t begin_ns = now_ns();
    bench.events = 0;
    for (int i = 0; i < CREATED; i++)
        create(&bench, jobset_json(&json, number++, 1, 1, 4, ""));
    snprintf(name, sizeof(name), "create a JobSet of one task, full, %d queued", queued);
    say_rate(&bench, name, begin_ns);
    stop(&bench);
}

/* Small JobSets that fit while a gang waits for more machines than are free. */
static void past_a_gang(void)
{
    struct bench bench;
    struct buf json BUF_CLEANUP = {0};
    int number = 0;
    start(&bench);
    hello_all(&bench);
    create(&bench, jobset_json(&json, number++, 1, MACHINES / 2, 4, ""));
    create(&bench, jobset_json(&json, number++, 1, MACHINES, 4, ""));
    int64_t begin_ns = now_ns();
    bench.events = 0;
    for (int i = 0; i < CREATED; i++)
        create(&bench, jobset_json(&json, number++, 1, 1, 4, ""));
    say_rate(&bench, "create a JobSet of one task past a waiting gang", begin_ns);
    stop(&bench);
}

/* --- small jobs ------------------------------------------------------------------------------- */

static void tick(struct bench *bench)
{
    struct event event = {.kind = EVENT_TICK};
    apply(bench, &event);
}

/* JobSets of one task that does nothing on one cube, WINDOW in flight: created, placed, started, ended, taken
 * away by the TTL. Microseconds of the core for each. */
static void no_op_jobs(int count)
{
    enum { WINDOW = 16 };
    static const char ttl[] = "\"ttlSecondsAfterFinished\":1,";
    struct bench bench;
    struct buf json BUF_CLEANUP = {0};
    VEC(obj_id) live = {0};
    start_on(&bench, "{count: 1, cubes: 1}", 16);
    hello_all(&bench);
    int64_t begin_ns = now_ns();
    for (int done = 0; done < count; done += WINDOW) {
        for (int i = 0; i < WINDOW; i++)
            create(&bench, jobset_json(&json, done + i, 1, 1, 4, ttl));
        vec_clear(&live);
        jobs_visit_tasks(core_jobs(bench.core), collect, &live);
        CHECK(live.len == WINDOW);
        report_all(&bench, live.items, live.len, REPORT_STARTED, 0, 0);
        report_all(&bench, live.items, live.len, REPORT_EXITED, 0, 0);
        bench.now_ns += NS_PER_SECOND;
        tick(&bench);
    }
    CHECK(core_jobs(bench.core)->jobsets.len == 0);
    double spent_us = (double)(now_ns() - begin_ns) / 1e3;
    say("no-op job, from its creation to its TTL, 16 in flight", spent_us / count, "us/job");
    vec_done(&live);
    stop(&bench);
}

/* --- with the log ----------------------------------------------------------------------------- */

struct encoded {
    struct event event;
    struct buf body, record;
};

static struct encoded *encode_writes(int count)
{
    static const char suspended[] = "\"suspend\":true,";
    struct encoded *items = mem_alloc((size_t)count * sizeof(*items));
    for (int i = 0; i < count; i++) {
        struct event *event = &items[i].event;
        event->kind = EVENT_WRITE;
        event->write = (struct write_event){.verb = WRITE_CREATE,
                                            .object = OBJECT_JOBSET,
                                            .namespace_ = STR("default"),
                                            .body = jobset_json(&items[i].body, i, 1, 1, 4, suspended),
                                            .grace_s = -1};
        record_encode(&items[i].record, event);
    }
    return items;
}

/* Writes per second, and per second of this process's processor time. */
struct rates {
    double wall, processor;
};

/* Without a core only the store's. */
static struct rates write_all(const char *path, struct bench *bench, struct encoded *items, int count)
{
    struct store *store = NULL;
    struct error error = {0};
    if (path && store_open(path, NULL, &store, &error) < 0) {
        fprintf(stderr, "bench_core: %s\n", error.text);
        exit(1);
    }
    int64_t begin_ns = now_ns(), spent_ns = processor_ns();
    for (int i = 0; i < count; i += GROUP) {
        struct store_record records[GROUP];
        for (int r = 0; r < GROUP; r++)
            records[r] =
                (struct store_record){(uint64_t)(i + r) + 1, begin_ns, buf_str(&items[i + r].record)};
        if (store && store_append(store, records, GROUP, &error) < 0)
            exit(1);
        for (int r = 0; bench && r < GROUP; r++)
            post(bench, &items[i + r].event);
    }
    struct rates rates = {(double)count * 1e9 / (double)(now_ns() - begin_ns),
                          (double)count * 1e9 / (double)(processor_ns() - spent_ns)};
    store_close(store);
    return rates;
}

static void remove_store(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        char name[600];
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
}

static void without_log(struct encoded *items)
{
    struct bench bench;
    start(&bench);
    struct rates rates = write_all(NULL, &bench, items, JOBSETS);
    say("writes without the log", rates.wall, "events/s");
    say("writes without the log, by processor time", rates.processor, "events/s");
    stop(&bench);
}

static void with_log(const char *folder, struct encoded *items)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/bench-core-%d.db", folder, (int)getpid());
    struct bench bench;
    double limit = write_all(path, NULL, items, JOBSETS).wall;
    remove_store(path);
    start(&bench);
    struct rates rates = write_all(path, &bench, items, JOBSETS);
    stop(&bench);
    remove_store(path);
    printf("{\"bench\":\"core\",\"case\":\"writes with the log, groups of "
           "%d\",\"value\":%.1f,\"unit\":\"events/s\","
           "\"limit\":%.1f,\"ratio_limit\":%.3f}\n",
           GROUP, rates.wall, limit, rates.wall / limit);
    say("writes with the log, by processor time", rates.processor, "events/s");
}

static void write_cases(const char *folder, const char *cases)
{
    struct encoded *items = encode_writes(JOBSETS);
    if (strchr(cases, 'w'))
        without_log(items);
    if (strchr(cases, 'l'))
        with_log(folder, items);
    for (int i = 0; i < JOBSETS; i++) {
        buf_done(&items[i].body);
        buf_done(&items[i].record);
    }
    mem_free(items);
}

static void gang_lives(void)
{
    gang_life(1, 1024, 4);
    gang_life(1, 16384, 4);
    gang_life(1, 65536, 1);
    gang_life(1024, 1, 4);
    gang_life(10000, 1, 4);
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : getenv("TMPDIR"), *cases = argc > 2 ? argv[2] : "nmqpgwl";
    if (strchr(cases, 'n'))
        no_op_jobs(NO_OPS);
    if (strchr(cases, 'm'))
        many_jobsets();
    if (strchr(cases, 'q'))
        behind_a_queue(10000);
    if (strchr(cases, 'p'))
        past_a_gang();
    if (strchr(cases, 'g'))
        gang_lives();
    if (strpbrk(cases, "wl"))
        write_cases(folder ? folder : "/var/tmp", cases);
    return 0;
}
