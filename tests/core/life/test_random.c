/* Random JobSets under random events, with what must hold after every one of them:
 *   - no CHECK fails, whatever agents say; every write gets exactly one reply, nothing else gets one;
 *   - watchers see each object ADDED, then MODIFIED, then DELETED once and nothing after it;
 *   - a chip is held by one task, free masks say so, and both books of the ledger balance and agree;
 *   - a host name is told to start on one machine at a time;
 *   - a core restored from a snapshot at any point goes on exactly like the one that wrote it.
 *     PHX_SEED=17 core_life_test_random     runs one seed
 */
#include "../harness.h"

#include <inttypes.h>

#include "base/rng.h"
#include "core/health/fault.h"
#include "core/life/life.h"

enum { MACHINES = 6, CHIPS = 4, SEEDS = 60, EVENTS = 160 };

struct seen {
    obj_id uid;
    enum change_type last;
};

struct trial {
    struct harness h;
    struct rng rng;
    uint64_t seed;
    struct u64_map objects; /* uid -> struct seen */
    VEC(struct seen *) all;
    int machines, created, refused, names;
};

static uint64_t below(struct trial *t, uint64_t bound)
{
    return rng_below(&t->rng, bound);
}

static bool chance(struct trial *t, int percent)
{
    return below(t, 100) < (uint64_t)percent;
}

static void broken(const struct trial *t, const char *condition)
{
    fail_msg("seed %" PRIu64 ", event %" PRIu64 ": %s", t->seed, core_seq(t->h.core), condition);
}
#define REQUIRE(condition) ((condition) ? (void)0 : broken(t, #condition))

/* --- what must hold --------------------------------------------------------------------------- */

static void check_change(struct trial *t, const struct effect *effect)
{
    struct object_name name = object_name(effect->changed.object);
    struct seen *seen = u64_map_get(&t->objects, name.uid);
    if (effect->changed.type == CHANGE_ADDED) {
        REQUIRE(!seen);
        seen = mem_alloc(sizeof(*seen));
        *seen = (struct seen){name.uid, CHANGE_ADDED};
        u64_map_put(&t->objects, name.uid, seen);
        vec_push(&t->all, seen);
        return;
    }
    REQUIRE(seen);
    REQUIRE(seen->last != CHANGE_DELETED);
    seen->last = effect->changed.type;
    if (name.kind != OBJECT_EVENT)
        REQUIRE(name.version == core_seq(t->h.core));
}

/* No other task with this name may be alive on another machine. */
static void check_start(struct trial *t, const struct task *task)
{
    REQUIRE(task->state == TASK_STARTING ||
            task->state == TASK_STOPPING); /* stopped at once by what came after */
    for (size_t i = 0; i < t->h.told.len; i++) {
        const struct told *told = &t->h.told.items[i];
        const struct task *other = jobs_find_task(core_jobs(t->h.core), told->task);
        if (told->ended || !other || other == task || other->job->jobset != task->job->jobset)
            continue;
        if (str_equal(other->hostname, task->hostname))
            REQUIRE(told->machine == task->machine);
    }
}

static void check_effects(struct trial *t, const struct event *event)
{
    int replies = 0;
    for (size_t i = 0; i < t->h.effects.list.len; i++) {
        const struct effect *effect = &t->h.effects.list.items[i];
        REQUIRE(effect->seq == event->seq && effect->index == i);
        replies += effect->kind == EFFECT_REPLY;
        if (effect->kind == EFFECT_CHANGED)
            check_change(t, effect);
        else if (effect->kind == EFFECT_TASK_START)
            check_start(t, effect->start);
    }
    REQUIRE(replies == (event->kind == EVENT_WRITE));
}

struct holding {
    struct trial *t;
    uint64_t held[2 * MACHINES];
};

static void add_holding(void *context, const struct task *task)
{
    struct holding *holding = context;
    struct trial *t = holding->t;
    REQUIRE(task->chips == 0 || task->holds);
    REQUIRE(!task->holds || !task_ended(task->state));
    if (!task->holds)
        return;
    REQUIRE((holding->held[task->machine] & task->chips) == 0);
    holding->held[task->machine] |= task->chips;
}

static void check_chips(struct trial *t)
{
    struct holding holding = {.t = t};
    jobs_visit_tasks(core_jobs(t->h.core), add_holding, &holding);
    const struct cluster *cluster = core_cluster(t->h.core);
    for (size_t i = 0; i < cluster->machine_count; i++) {
        const struct machine *machine = &cluster->machines[i];
        REQUIRE(holding.held[i] == (machine_all_chips(machine) & ~machine->free_mask));
    }
}

static void check_ledger(struct trial *t)
{
    const struct ledger *ledger = core_ledger(t->h.core);
    REQUIRE(ledger_balanced(ledger));
    int64_t chips[LEDGER_OWNERS] = {0}, all = 0;
    const struct job_store *store = core_jobs(t->h.core);
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        struct ledger_account account = jobset_account(jobset, t->h.now_ns);
        REQUIRE(ledger_account_balanced(&account));
        for (size_t g = 0; g < jobset->gangs.len; g++) {
            const struct gang *gang = jobset->gangs.items[g];
            REQUIRE(ledger_account_balanced(&gang->account));
            REQUIRE(gang->state != GANG_ENDED && gang->tasks.len > 0);
            if (gang->state != GANG_QUEUED)
                chips[gang->account.owner] += gang->account.chips;
            for (size_t k = 0; k < gang->tasks.len; k++)
                REQUIRE(gang->tasks.items[k]->gang == gang);
        }
    }
    const struct cluster *cluster = core_cluster(t->h.core);
    for (size_t i = 0; i < cluster->machine_count; i++) {
        const struct machine *machine = &cluster->machines[i];
        uint64_t reserved = machine_free_reserved(machine);
        chips[OWNER_RESERVED] += __builtin_popcountll(reserved);
        chips[machine_free_owner(machine)] += __builtin_popcountll(machine->free_mask & ~reserved);
        all += machine->chip_count;
    }
    int64_t sum = 0;
    for (int owner = 0; owner < LEDGER_OWNERS; owner++) {
        REQUIRE(ledger->chips[owner] == chips[owner]);
        sum += chips[owner];
    }
    REQUIRE(sum == all);
}

static void after(struct harness *h, const struct event *event)
{
    struct trial *t = h->context;
    check_effects(t, event);
    core_check_invariants(t->h.core);
    check_chips(t);
    check_ledger(t);
}

/* --- random JobSets --------------------------------------------------------------------------- */

static void add_pod_failure_policy(struct trial *t, struct buf *out)
{
    static const char *const actions[] = {"FailJob", "Ignore", "Count"};
    buf_printf(out,
               "\"podFailurePolicy\":{\"rules\":[{\"action\":\"%s\",\"onExitCodes\":{\"operator\":\"%s\","
               "\"values\":[3]}}",
               actions[below(t, 3)], chance(t, 50) ? "In" : "NotIn");
    buf_printf(out, ",{\"action\":\"%s\",\"onPodConditions\":[{\"type\":\"DisruptionTarget\"}]}]},",
               actions[below(t, 3)]);
}

static void add_job(struct trial *t, struct buf *out)
{
    static const int chips[] = {0, 1, 2, 4};
    static const char *const topologies[] = {
        "\"annotations\":{\"kueue.x-k8s.io/podset-required-topology\":\"phalanx.dev/rack\"}",
        "\"annotations\":{\"kueue.x-k8s.io/podset-preferred-topology\":\"kubernetes.io/hostname\"}",
        ("\"annotations\":{\"kueue.x-k8s.io/podset-required-topology\":\"phalanx.dev/rack\","
         "\"kueue.x-k8s.io/podset-group-name\":\"g\"}")};
    static const char *const named[] = {"", "\"nodeName\":\"m-1\",", "\"nodeName\":\"m-3\",",
                                        "\"nodeName\":\"nowhere\","};
    size_t named_one = chance(t, 6) ? 1 + below(t, 3) : 0;
    uint64_t parallelism = 1 + below(t, 4);
    bool queue = chance(t, 8);
    buf_printf(out, "\"template\":{\"metadata\":{%s},\"spec\":{\"parallelism\":%" PRIu64 ",",
               chance(t, 8)
                   ? "\"annotations\":{\"alpha.jobset.sigs.k8s.io/exclusive-topology\":\"phalanx.dev/rack\"}"
                   : "",
               parallelism);
    if (queue)
        buf_printf(out, "\"completionMode\":\"NonIndexed\",");
    else
        buf_printf(out, "\"completions\":%" PRIu64 ",", parallelism + (chance(t, 20) ? below(t, 3) : 0));
    if (!queue && chance(t, 15))
        buf_printf(out, "\"backoffLimitPerIndex\":%" PRIu64 ",\"maxFailedIndexes\":%" PRIu64 ",", below(t, 2),
                   below(t, 3));
    else
        buf_printf(out, "\"backoffLimit\":%" PRIu64 ",", below(t, 3));
    if (chance(t, 20))
        add_pod_failure_policy(t, out);
    if (chance(t, 10))
        buf_printf(out, "\"activeDeadlineSeconds\":%" PRIu64 ",", below(t, 30));
    buf_printf(out,
               "\"template\":{\"metadata\":{%s},\"spec\":{\"restartPolicy\":\"Never\",%s%s\"containers\":[{"
               "\"name\":\"main\","
               "\"image\":\"none\","
               "\"command\":[\"run\"],\"resources\":{\"limits\":{\"google.com/tpu\":%d}}}]}}}}",
               chance(t, 30) ? topologies[below(t, 3)] : "",
               chance(t, 20) ? "\"priorityClassName\":\"high\"," : "", named[named_one], chips[below(t, 4)]);
}

static void add_failure_policy(struct trial *t, struct buf *out)
{
    static const char *const actions[] = {"FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts",
                                          "RestartJob", "RestartJobAndIgnoreMaxRestarts"};
    buf_printf(out, "\"failurePolicy\":{\"maxRestarts\":%" PRIu64 ",\"restartStrategy\":\"%s\"", below(t, 4),
               chance(t, 30) ? "BlockingRecreate" : "Recreate");
    if (chance(t, 50)) {
        buf_printf(out, ",\"rules\":[{\"name\":\"r0\",\"action\":\"%s\"", actions[below(t, 5)]);
        if (chance(t, 50))
            buf_printf(out, ",\"onJobFailureReasons\":[\"%s\"]",
                       chance(t, 50) ? "PodFailurePolicy" : "BackoffLimitExceeded");
        if (chance(t, 30))
            buf_printf(out, ",\"targetReplicatedJobs\":[\"j0\"]");
        if (chance(t, 20))
            buf_printf(out, ",\"onJobFailureMessagePatterns\":[\"back.ff|code [0-9]+\"]");
        buf_printf(out, "}]");
    }
    buf_printf(out, "},");
}

static void build_jobset(struct trial *t, struct buf *out, int number, bool suspend)
{
    bool in_order = chance(t, 15), depends = !in_order && chance(t, 20);
    buf_printf(out,
               "{\"apiVersion\":\"jobset.x-k8s.io/"
               "v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"s%d\"%s},\"spec\":{",
               number, chance(t, 5) ? ",\"finalizers\":[\"a.b/c\"]" : "");
    if (chance(t, 70))
        add_failure_policy(t, out);
    if (in_order)
        buf_printf(out, "\"startupPolicy\":{\"startupPolicyOrder\":\"InOrder\"},");
    if (chance(t, 20))
        buf_printf(out, "\"successPolicy\":{\"operator\":\"%s\",\"targetReplicatedJobs\":[\"j0\"]},",
                   chance(t, 50) ? "All" : "Any");
    if (chance(t, 30))
        buf_printf(out, "\"ttlSecondsAfterFinished\":%" PRIu64 ",", chance(t, 30) ? 0 : below(t, 40));
    if (suspend)
        buf_printf(out, "\"suspend\":true,");
    buf_printf(out, "\"replicatedJobs\":[");
    uint64_t rjobs = 1 + below(t, 3), replicas = 0;
    for (uint64_t r = 0; r < rjobs; r++) {
        uint64_t here = chance(t, 10) ? 0 : 1 + below(t, 2);
        replicas += here;
        buf_printf(out, "%s{\"name\":\"j%" PRIu64 "\",\"replicas\":%" PRIu64 ",", r ? "," : "", r, here);
        if (chance(t, 20))
            buf_printf(out, "\"groupName\":\"g%" PRIu64 "\",", below(t, 2));
        if (depends && r > 0)
            buf_printf(out, "\"dependsOn\":[{\"name\":\"j%" PRIu64 "\",\"status\":\"%s\"}],", r - 1,
                       chance(t, 60) ? "Ready" : "Complete");
        add_job(t, out);
        buf_printf(out, "}");
    }
    buf_printf(out, "]");
    if (replicas && chance(t, 25))
        buf_printf(out, ",\"scheduling\":{\"schedulingPolicy\":%s}",
                   chance(t, 40) ? "{\"basic\":{}}" : "{\"gang\":{\"minCount\":1}}");
    buf_printf(out, "}}");
}

static int submit(struct trial *t, struct write_event write)
{
    write.namespace_ = STR("default");
    uint64_t before = core_digest(t->h.core);
    struct effects effects = {0};
    bool would = core_check_write(t->h.core, &write, t->h.now_ns, &effects, NULL);
    vec_done(&effects.list);
    REQUIRE(core_digest(t->h.core) == before);
    struct event event = {.kind = EVENT_WRITE, .write = write};
    harness_step(&t->h, &event);
    REQUIRE(would == (t->h.last_code < 400));
    return t->h.last_code;
}

static void create(struct trial *t)
{
    if (core_jobs(t->h.core)->jobsets.len >= 8)
        return;
    struct buf json BUF_CLEANUP = {0};
    build_jobset(t, &json, t->names++, chance(t, 10));
    int code =
        submit(t, (struct write_event){
                      .verb = WRITE_CREATE, .object = OBJECT_JOBSET, .body = buf_str(&json), .grace_s = -1});
    t->created += code == 201;
    t->refused += code != 201;
}

static struct jobset *any_jobset(struct trial *t)
{
    const struct job_store *store = core_jobs(t->h.core);
    return store->jobsets.len ? store->jobsets.items[below(t, store->jobsets.len)] : NULL;
}

/* Suspends or resumes, or takes the finalizers away. */
static void replace(struct trial *t)
{
    const struct jobset *jobset = any_jobset(t);
    if (!jobset)
        return;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document = doc_clone(&arena, jobset->document);
    if (chance(t, 30)) {
        struct doc *template =
            (struct doc *)workload_pod_template(document, below(t, jobset->spec.rjob_count));
        struct doc *container = (struct doc *)doc_at(doc_path(template, "spec", "containers", NULL), 0);
        doc_set(&arena, doc_path(container, "resources", "limits", NULL), STR("google.com/tpu"),
                doc_new_int(&arena, (int64_t)below(t, 3)));
    }
    if (chance(t, 70))
        doc_set(&arena, doc_get(document, "spec"), STR("suspend"),
                doc_new_bool(&arena, !jobset->spec.suspend));
    else
        doc_unset(doc_get(document, "metadata"), "finalizers");
    struct buf json BUF_CLEANUP = {0}, name BUF_CLEANUP = {0};
    json_write(&json, document);
    buf_add_str(&name, jobset->name);
    submit(t, (struct write_event){.verb = WRITE_REPLACE,
                                   .object = OBJECT_JOBSET,
                                   .name = buf_str(&name),
                                   .body = buf_str(&json),
                                   .grace_s = -1});
}

static void pick_task(void *context, const struct task *task)
{
    VEC(const struct task *) *list = context;
    vec_push(list, task);
}

static const struct task *any_task(struct trial *t)
{
    VEC(const struct task *) list = {0};
    jobs_visit_tasks(core_jobs(t->h.core), pick_task, &list);
    const struct task *task = list.len ? list.items[below(t, list.len)] : NULL;
    vec_done(&list);
    return task;
}

static void delete_something(struct trial *t)
{
    struct buf name BUF_CLEANUP = {0};
    struct write_event write = {.verb = WRITE_DELETE, .grace_s = chance(t, 50) ? -1 : 0};
    uint64_t kind = below(t, 3);
    const struct jobset *jobset = any_jobset(t);
    const struct task *task = any_task(t);
    if (!jobset || !task)
        return;
    write.object = kind == 0 ? OBJECT_JOBSET : kind == 1 ? OBJECT_JOB : OBJECT_POD;
    buf_add_str(&name, kind == 0 ? jobset->name : kind == 1 ? task->job->name : task->name);
    write.name = buf_str(&name);
    submit(t, write);
}

/* --- the machines ----------------------------------------------------------------------------- */

static void report(struct trial *t, machine_id machine, struct task_report report)
{
    report.message = STR("no such file");
    harness_report(&t->h, &report, machine);
}

static struct told *any_told(struct trial *t)
{
    for (int i = 0; i < 20 && t->h.told.len; i++) {
        struct told *told = &t->h.told.items[below(t, t->h.told.len)];
        if (!told->ended)
            return told;
    }
    return NULL;
}

/* Nearly always its own; an older one, or none, now and then. */
static uint32_t attempt_said(struct trial *t, obj_id uid)
{
    const struct task *task = jobs_find_task(core_jobs(t->h.core), uid);
    return chance(t, 90) && task ? (uint32_t)task->attempt + 1 : (uint32_t)below(t, 3);
}

/* All ranks of most JobSets can rejoin, and none of the others. */
static bool can_rejoin(struct trial *t, obj_id uid)
{
    const struct task *task = jobs_find_task(core_jobs(t->h.core), uid);
    return task && (task->job->jobset->uid % 3 || chance(t, 10));
}

/* An agent does what a true agent would: starts, stops, lets processes end. */
static void agent_acts(struct trial *t)
{
    struct told *told = any_told(t);
    if (!told || core_cluster(t->h.core)->machines[told->machine].state != MACHINE_READY)
        return;
    obj_id uid = told->task;
    machine_id machine = told->machine;
    if (told->stopped) {
        told->ended = true;
        report(t, machine,
               (struct task_report){
                   .kind = REPORT_EXITED, .task = uid, .signal = chance(t, 70) ? 15 : 0, .exit_code = -1});
    } else if (!told->started) {
        told->started = true;
        told->ended = chance(t, 5);
        report(t, machine,
               (struct task_report){.kind = told->ended ? REPORT_START_FAILED : REPORT_STARTED, .task = uid});
    } else if (chance(t, 30)) {
        report(t, machine,
               (struct task_report){.kind = REPORT_JOINED,
                                    .task = uid,
                                    .attempt_plus_1 = attempt_said(t, uid),
                                    .can_rejoin = can_rejoin(t, uid)});
    } else if (chance(t, 40)) {
        report(t, machine,
               (struct task_report){.kind = REPORT_SHARD_SAVED,
                                    .task = uid,
                                    .step = (int64_t)below(t, 20),
                                    .attempt_plus_1 = attempt_said(t, uid)});
    } else {
        told->ended = true;
        int code = chance(t, 75) ? 0 : chance(t, 50) ? 3 : 1;
        report(
            t, machine,
            (struct task_report){.kind = REPORT_EXITED, .task = uid, .exit_code = code, .oom = chance(t, 3)});
    }
}

/* Reports that no true agent would make: any kind about any task from any machine. Lost peers are not among
 * them: they are believed, so a lie about them could start a name twice. */
static void agent_lies(struct trial *t)
{
    const struct task *task = any_task(t);
    obj_id uid = task && chance(t, 80) ? task->uid : 1 + below(t, 3);
    machine_id machine = (machine_id)below(t, (uint64_t)t->machines);
    if (task && task->machine != MACHINE_NONE && chance(t, 70))
        machine = task->machine;
    enum report_kind kind = (enum report_kind)(1 + below(t, 5));
    struct told *told = harness_told(&t->h, uid);
    if (told && told->machine == machine && (kind == REPORT_EXITED || kind == REPORT_START_FAILED))
        told->ended = true;
    report(t, machine,
           (struct task_report){.kind = kind,
                                .task = uid,
                                .exit_code = (int32_t)below(t, 3),
                                .step = (int64_t)below(t, 50),
                                .finished_ns = rng_range(&t->rng, -5, 5)});
}

static void machine_comes(struct trial *t, machine_id machine)
{
    struct task_report reports[64];
    size_t count = 0;
    for (size_t i = 0; i < t->h.told.len && count < 64; i++) {
        struct told *told = &t->h.told.items[i];
        if (told->machine != machine || told->ended || !told->started)
            continue;
        told->ended = chance(t, 20);
        reports[count++] =
            (struct task_report){.kind = told->ended ? REPORT_EXITED : REPORT_STARTED, .task = told->task};
        if (!told->ended)
            reports[count - 1].attempt_plus_1 = attempt_said(t, told->task);
    }
    /* Tasks that had not begun are told again; those that were stopped meanwhile, or of which a lie said that
     * they had begun, never come. */
    for (size_t i = 0; i < t->h.told.len; i++) {
        struct told *told = &t->h.told.items[i];
        const struct task *task = jobs_find_task(core_jobs(t->h.core), told->task);
        if (told->machine == machine && !told->started &&
            (told->stopped || !task || task->state != TASK_STARTING))
            told->ended = true;
    }
    harness_hello(&t->h, core_cluster(t->h.core)->machines[machine].name.data, reports, count);
}

static void machine_changes(struct trial *t)
{
    machine_id machine = (machine_id)below(t, (uint64_t)t->machines);
    const char *name = core_cluster(t->h.core)->machines[machine].name.data;
    uint8_t state = core_cluster(t->h.core)->machines[machine].state;
    if (state == MACHINE_READY && chance(t, 50)) {
        harness_news(&t->h, EVENT_MACHINE_AWAY, name);
    } else if (state == MACHINE_LOST || (state == MACHINE_AWAY && chance(t, 50)) || state == MACHINE_UNSEEN) {
        machine_comes(t, machine);
    } else if (chance(t, 50)) {
        harness_lose(&t->h, name);
    } else {
        for (size_t i = 0; i < t->h.told.len; i++)
            t->h.told.items[i].ended |= t->h.told.items[i].machine == machine; /* it fenced itself */
        harness_news(&t->h, EVENT_MACHINE_SILENT, name);
    }
}

static void cordon(struct trial *t)
{
    const struct machine *machine = &core_cluster(t->h.core)->machines[below(t, (uint64_t)t->machines)];
    struct buf json BUF_CLEANUP = {0}, name BUF_CLEANUP = {0};
    buf_add_str(&name, machine->name);
    buf_printf(&json, "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"unschedulable\":%s}}",
               machine->cordoned ? "false" : "true");
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){
        .verb = WRITE_REPLACE, .object = OBJECT_NODE, .name = buf_str(&name), .body = buf_str(&json)};
    harness_step(&t->h, &event);
}

static void controller_restarts(struct trial *t)
{
    struct event boot = {.kind = EVENT_BOOT};
    boot.boot.epoch = core_epoch(t->h.core) + 1;
    boot.boot.version = STR("test");
    harness_step(&t->h, &boot);
    for (int i = 0; i < t->machines; i++)
        if (core_cluster(t->h.core)->machines[i].state == MACHINE_AWAY && chance(t, 80))
            machine_comes(t, (machine_id)i);
}

static void cluster_changes(struct trial *t)
{
    int count = MACHINES + (int)below(t, MACHINES);
    char json[1024];
    snprintf(
        json, sizeof(json),
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},\"spec\":{"
        "\"settings\":{\"priorityClasses\":{\"high\":1000}},\"machineNames\":\"m-{n}\",\"addresses\":\"127.0."
        "1.1\","
        "\"pods\":[{\"racks\":[{\"machines\":%d,\"chips\":4},{\"machines\":%d,\"chips\":%d}]}]}}",
        MACHINES, count - MACHINES + 1, chance(t, 50) ? 4 : 8);
    struct event event = {.kind = EVENT_CLUSTER};
    event.cluster.document = str_from(json);
    harness_step(&t->h, &event);
    t->machines = (int)core_cluster(t->h.core)->machine_count;
    /* Machines may have moved in the array. */
    for (size_t i = 0; i < t->h.told.len; i++) {
        const struct task *task = jobs_find_task(core_jobs(t->h.core), t->h.told.items[i].task);
        if (task && task->machine != MACHINE_NONE)
            t->h.told.items[i].machine = task->machine;
        else
            t->h.told.items[i].ended = true;
    }
}

static void progress(struct trial *t)
{
    const struct jobset *jobset = any_jobset(t);
    struct event event = {.kind = EVENT_PROGRESS};
    event.progress = (struct progress_event){.jobset = jobset ? jobset->uid : 1,
                                             .attempt = (jobset ? jobset->attempt : 0) - chance(t, 10),
                                             .step = rng_range(&t->rng, -2, 100),
                                             .total = 100,
                                             .metric_count = 1};
    event.progress.metrics[0] = (struct step_metric){STR("loss"), 5};
    harness_step(&t->h, &event);
}

static void something_happens(struct trial *t)
{
    uint64_t dice = below(t, 100);
    t->h.now_ns += (int64_t)below(t, 300) * NS_PER_MS;
    if (dice < 10)
        create(t);
    else if (dice < 14)
        replace(t);
    else if (dice < 18)
        delete_something(t);
    else if (dice < 76)
        agent_acts(t);
    else if (dice < 80)
        agent_lies(t);
    else if (dice < 86)
        machine_changes(t);
    else if (dice < 88)
        cordon(t);
    else if (dice < 89)
        controller_restarts(t);
    else if (dice < 90)
        cluster_changes(t);
    else if (dice < 95)
        progress(t);
    else
        harness_wait(&t->h, (int64_t)below(t, 20) * NS_PER_SECOND);
}

struct fault_search {
    obj_id uid;
    bool found;
};

static void look_at_fault(void *context, const struct fault *fault)
{
    struct fault_search *search = context;
    search->found |= fault->uid == search->uid;
}

static bool is_fault(const struct trial *t, obj_id uid)
{
    struct fault_search search = {.uid = uid};
    fault_visit(core_health(t->h.core), look_at_fault, &search);
    return search.found;
}

/* Afterwards everything heals: all machines are there, every JobSet is deleted, and all chips are free again.
 */
static void heal(struct trial *t)
{
    for (int round = 0; round < 200 && core_jobs(t->h.core)->jobsets.len; round++) {
        for (int i = 0; i < t->machines; i++)
            if (core_cluster(t->h.core)->machines[i].state != MACHINE_READY)
                machine_comes(t, (machine_id)i);
        struct jobset *jobset = core_jobs(t->h.core)->jobsets.items[0];
        struct buf name BUF_CLEANUP = {0}, json BUF_CLEANUP = {0};
        buf_add_str(&name, jobset->name);
        struct arena arena ARENA_CLEANUP = {0};
        struct doc *document = doc_clone(&arena, jobset->document);
        doc_unset(doc_get(document, "metadata"), "finalizers");
        json_write(&json, document);
        submit(t, (struct write_event){.verb = WRITE_REPLACE,
                                       .object = OBJECT_JOBSET,
                                       .name = buf_str(&name),
                                       .body = buf_str(&json)});
        submit(t, (struct write_event){
                      .verb = WRITE_DELETE, .object = OBJECT_JOBSET, .name = buf_str(&name), .grace_s = 0});
        harness_run_all(&t->h);
    }
    REQUIRE(core_jobs(t->h.core)->jobsets.len == 0);
    for (size_t i = 0; i < t->all.len; i++) {
        const struct seen *seen = t->all.items[i];
        bool machine = false;
        for (int m = 0; m < t->machines; m++)
            machine |= core_cluster(t->h.core)->machines[m].uid == seen->uid;
        bool note = false;
        const struct note_ring *ring = core_notes(t->h.core);
        for (uint64_t slot = ring->first; slot < ring->next; slot++)
            note |= note_at(ring, slot)->uid == seen->uid;
        bool budget = object_find_uid(core_objects(t->h.core), seen->uid) != NULL;
        bool fault = is_fault(t, seen->uid); /* of a machine: it stays */
        REQUIRE(machine || note || budget || fault || seen->last == CHANGE_DELETED);
    }
}

/* Writes a budget, whose status must be right after every step (an invariant). */
static void put_budget(struct trial *t)
{
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){
        .verb = WRITE_CREATE,
        .object = OBJECT_DISRUPTION_BUDGET,
        .namespace_ = STR("default"),
        .body = STR("{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":"
                    "\"all\"},\"spec\":{\"maxUnavailable\":\"25%\",\"selector\":{}}}")};
    harness_step(&t->h, &event);
    REQUIRE(t->h.last_code == 201);
}

static void run_seed(uint64_t seed, int *created, int *refused)
{
    struct trial trial = {.seed = seed}, *t = &trial;
    rng_seed(&t->rng, seed);
    harness_init(&t->h, MACHINES, CHIPS, 1);
    t->machines = MACHINES;
    /* Objects that harness_init made are known already. */
    for (int i = 0; i < MACHINES; i++) {
        struct seen *seen = mem_alloc(sizeof(*seen));
        *seen = (struct seen){core_cluster(t->h.core)->machines[i].uid, CHANGE_ADDED};
        u64_map_put(&t->objects, seen->uid, seen);
        vec_push(&t->all, seen);
    }
    const struct note_ring *ring = core_notes(t->h.core);
    for (uint64_t slot = ring->first; slot < ring->next; slot++) {
        struct seen *seen = mem_alloc(sizeof(*seen));
        *seen = (struct seen){note_at(ring, slot)->uid, CHANGE_ADDED};
        u64_map_put(&t->objects, seen->uid, seen);
        vec_push(&t->all, seen);
    }
    t->h.after = after;
    t->h.twins.seed = t->seed;
    t->h.context = t;
    put_budget(t);
    for (int i = 0; i < EVENTS; i++)
        something_happens(t);
    heal(t);
    harness_done(&t->h);
    for (size_t i = 0; i < t->all.len; i++)
        mem_free(t->all.items[i]);
    vec_done(&t->all);
    u64_map_done(&t->objects);
    *created += t->created;
    *refused += t->refused;
}

static void random_lives(void **state)
{
    int created = 0, refused = 0;
    const char *only = getenv("PHX_SEED"), *many = getenv("PHX_SEEDS");
    uint64_t seeds = many ? strtoull(many, NULL, 10) : SEEDS;
    if (only) {
        run_seed(strtoull(only, NULL, 10), &created, &refused);
        return;
    }
    for (uint64_t seed = 1; seed <= seeds; seed++)
        run_seed(seed, &created, &refused);
    /* Each of these found something once. */
    static const uint64_t found[] = {171, 307, 325, 743};
    for (size_t i = 0; i < sizeof found / sizeof *found && seeds == SEEDS; i++)
        run_seed(found[i], &created, &refused);
    print_message("%d JobSets created, %d refused\n", created, refused);
    assert_true(created > 9 * refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_lives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
