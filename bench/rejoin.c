/* bench/rejoin - a gang of 4,096 ranks whose processes live through the loss of one of them, through the
 * controller's core: the step that decides and tells, what it says to whom, and the joins that follow.
 *
 * The limit of deciding is a look at every task; that of telling, the bytes of the messages copied once.
 */
#include "core.h"

#include "core/agent/codec.h"
#include "core/launch/launch.h"

enum { RANKS = 4096, ROUNDS = 8 }; /* within the budget of replace-machine */

static void say(const char *what, int replicas, double value, double limit, const char *unit)
{
    printf("{\"bench\":\"rejoin\",\"case\":\"%s, %d x %d ranks\",\"value\":%.4g,\"unit\":\"%s\"", what,
           replicas, RANKS / replicas, value, unit);
    if (limit > 0)
        printf(",\"limit\":%.4g,\"ratio_limit\":%.3f", limit, value / limit);
    printf("}\n");
    fflush(stdout);
}

static void count_running(void *context, const struct task *task)
{
    *(size_t *)context += task->state == TASK_RUNNING && task->joined;
}

static void report(struct bench *bench, const struct task *task, enum report_kind kind)
{
    struct task_report report = {.kind = kind,
                                 .task = task->uid,
                                 .exit_code = kind == REPORT_EXITED,
                                 .attempt_plus_1 = kind == REPORT_JOINED ? (uint32_t)task->attempt + 1 : 0,
                                 .can_rejoin = kind == REPORT_JOINED};
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = core_cluster(bench->core)->machines[task->machine].name;
    event.reports.reports = (struct reports){.number = 1, .items = &report, .count = 1};
    apply(bench, &event);
}

static const struct task *task_of(const struct jobset *jobset, uint32_t rank)
{
    const struct job *first = jobset->jobs[0];
    const struct job *job = jobset->jobs[rank / first->index_count];
    return job->indexes[rank % first->index_count].task;
}

/* Starts every rank that is told to start, and lets all join. Returns microseconds per join. */
static double all_join(struct bench *bench, const struct jobset *jobset)
{
    size_t joins = 0;
    int64_t spent_ns = 0;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        if (task_of(jobset, rank)->state == TASK_STARTING)
            report(bench, task_of(jobset, rank), REPORT_STARTED);
        if (task_of(jobset, rank)->joined)
            continue;
        int64_t begin_ns = now_ns();
        report(bench, task_of(jobset, rank), REPORT_JOINED);
        spent_ns += now_ns() - begin_ns;
        joins++;
    }
    CHECK(joins > 0);
    return (double)spent_ns / 1e3 / (double)joins;
}

struct told {
    size_t rejoins, starts, others;
    double encode_ms, copy_ms;
    size_t bytes;
};

/* Encodes the step's messages to agents as frames. */
static void tell(struct bench *bench, struct told *told)
{
    struct buf frames BUF_CLEANUP = {0};
    struct arena arena ARENA_CLEANUP = {0};
    int64_t begin_ns = now_ns();
    for (size_t i = 0; i < bench->effects.list.len; i++) {
        const struct effect *effect = &bench->effects.list.items[i];
        told->starts += effect->kind == EFFECT_TASK_START;
        told->others += effect->kind == EFFECT_TASK_STOP || effect->kind == EFFECT_TASK_NOTICE;
        if (effect->kind != EFFECT_TASK_REJOIN)
            continue;
        struct from_controller message = {.kind = FROM_CONTROLLER_REJOIN};
        task_rejoin_build(effect->rejoin, core_cluster(bench->core), &arena, &message.rejoin);
        CHECK(codec_put_controller(&frames, &message, NULL) == 0);
        told->rejoins++;
    }
    told->encode_ms += (double)(now_ns() - begin_ns) / 1e6;
    told->bytes += frames.len;
    char *copy = mem_alloc(frames.len + 1);
    begin_ns = now_ns();
    memcpy(copy, frames.data, frames.len);
    told->copy_ms += (double)(now_ns() - begin_ns) / 1e6;
    CHECK(copy[0] == frames.data[0]);
    mem_free(copy);
}

static double look_ms(const struct bench *bench)
{
    size_t running = 0;
    int64_t begin_ns = now_ns();
    jobs_visit_tasks(core_jobs(bench->core), count_running, &running);
    CHECK(running == RANKS);
    return (double)(now_ns() - begin_ns) / 1e6;
}

static void lose(struct bench *bench, const struct task *task, bool machine)
{
    if (!machine) {
        report(bench, task, REPORT_EXITED);
        return;
    }
    struct event event = {.kind = EVENT_MACHINE_GONE};
    event.machine.machine = core_cluster(bench->core)->machines[task->machine].name;
    event.machine.evidence = STR("bench");
    apply(bench, &event);
}

static void incidents(int replicas, bool machine)
{
    struct bench bench;
    struct buf json BUF_CLEANUP = {0};
    struct told told = {0};
    double decide_ms = 0, worst_ms = 0, limit_ms = 0, join_us = 0;
    start(&bench);
    hello_all(&bench);
    create(&bench, jobset_json(&json, 0, replicas, RANKS / replicas, 4, ""));
    struct jobset *jobset = core_jobs(bench.core)->jobsets.items[0];
    all_join(&bench, jobset);
    for (int round = 0; round < ROUNDS; round++) {
        progress(&bench, jobset, 10 * (round + 1));
        jobset->recovery.in_place_counted = 0; /* maxRestarts is not what is measured */
        limit_ms += look_ms(&bench);
        int64_t begin_ns = now_ns();
        lose(&bench, task_of(jobset, (uint32_t)(round * 397) % RANKS), machine);
        double ms = (double)(now_ns() - begin_ns) / 1e6;
        decide_ms += ms;
        worst_ms = ms > worst_ms ? ms : worst_ms;
        tell(&bench, &told);
        CHECK(jobset->attempt == round + 1 && jobset->recovery.state != RECOVERY_PARKED && told.others == 0);
        join_us += all_join(&bench, jobset);
    }
    CHECK(told.rejoins == (size_t)ROUNDS * (RANKS - 1) && told.starts == ROUNDS);
    const char *what = machine ? "machine lost" : "process ended";
    char name[64];
    snprintf(name, sizeof name, "decide and tell, %s", what);
    say(name, replicas, decide_ms / ROUNDS, limit_ms / ROUNDS, "ms");
    snprintf(name, sizeof name, "the slowest, %s", what);
    say(name, replicas, worst_ms, limit_ms / ROUNDS, "ms");
    snprintf(name, sizeof name, "messages a rank, %s", what);
    say(name, replicas, (double)(told.rejoins + told.starts) / ROUNDS / RANKS, 1, "messages");
    snprintf(name, sizeof name, "make all Rejoins, %s", what);
    say(name, replicas, told.encode_ms / ROUNDS, told.copy_ms / ROUNDS, "ms");
    snprintf(name, sizeof name, "bytes of a Rejoin, %s", what);
    say(name, replicas, (double)told.bytes / (double)told.rejoins, 0, "B");
    snprintf(name, sizeof name, "a rank joins again, %s", what);
    say(name, replicas, join_us / ROUNDS, 0, "us");
    stop(&bench);
}

int main(void)
{
    for (int machine = 0; machine < 2; machine++) {
        incidents(1, machine);
        incidents(RANKS, machine);
    }
    return 0;
}
