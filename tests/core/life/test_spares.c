/* Tasks that wait for a rank: made, ready, given one, lost, given up; warm and cold. */
#include "core/job/story.h"
#include "core/launch/launch.h"

#include "base/rng.h"

#define TRAIN(annotations, spec)                                                                             \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"                                                   \
    "metadata: {name: a, annotations: {" annotations "}}\nspec: {" spec                                      \
    "replicatedJobs: [{name: w, replicas: 1, template: {spec: {parallelism: 3, completions: 3, "             \
    "completionMode: Indexed, backoffLimit: 0, " POD_OF("", "4") "}}}]}\n"
#define ONE TRAIN("phalanx.dev/spares: '1'", "failurePolicy: {maxRestarts: 1}, ")
#define TWO TRAIN("phalanx.dev/spares: '2'", "failurePolicy: {maxRestarts: 1}, ")
#define COLD                                                                                                 \
    TRAIN("phalanx.dev/spares: '1', phalanx.dev/spare-kind: cold", "failurePolicy: {maxRestarts: 1}, ")
#define WHOLE_MACHINE "{name: x, template: {spec: {parallelism: 1, completions: 1, " POD_OF("", "4") "}}}"
#define NONE          TRAIN("", "failurePolicy: {maxRestarts: 1}, ")

struct seen {
    size_t rejoins, starts;
    bool ranks[8];
    struct task_rejoin last;
};

static void count_effects(struct harness *h, const struct event *event)
{
    struct seen *seen = h->context;
    for (size_t i = 0; i < h->effects.list.len; i++) {
        const struct effect *effect = &h->effects.list.items[i];
        seen->starts += effect->kind == EFFECT_TASK_START;
        if (effect->kind != EFFECT_TASK_REJOIN)
            continue;
        struct arena arena = {0};
        task_rejoin_build(effect->rejoin, core_cluster(h->core), &arena, &seen->last);
        seen->ranks[seen->last.rank % 8] = true;
        arena_done(&arena);
        seen->rejoins++;
    }
}

static struct jobset *begin(struct harness *h, struct seen *seen, int machines, const char *yaml)
{
    harness_init(h, machines, 4, 0);
    h->context = seen;
    h->after = count_effects;
    struct jobset *jobset = harness_create(h, yaml);
    all_join_with_spares(h, jobset);
    *seen = (struct seen){0};
    return jobset;
}

static const char *machine_name(struct harness *h, const struct task *task)
{
    return core_cluster(h->core)->machines[task->machine].name.data;
}

static struct task *spare_of(const struct jobset *jobset, size_t which)
{
    assert_true(which < jobset->jobs[0]->spares.len);
    return jobset->jobs[0]->spares.items[which];
}

static void assert_counts(struct harness *h, const struct jobset *jobset, uint32_t wanted, uint32_t ready)
{
    struct spare_counts counts = jobset_spares(jobset, core_cluster(h->core));
    assert_int_equal(counts.wanted, wanted);
    assert_int_equal(counts.ready, ready);
}

static struct str variable(const struct task_launch *launch, const char *name)
{
    for (size_t i = 0; i < launch->env_count; i++)
        if (str_is(launch->env[i].name, name))
            return launch->env[i].value;
    return (struct str){0};
}

static void one_waits_beside_the_gang(void **state)
{
    struct harness h;
    harness_init(&h, 5, 4, 0);
    struct jobset *jobset = harness_create(&h, ONE);
    struct job *job = jobset->jobs[0];
    assert_int_equal((int)job->spares.len, 0); /* the ranks come first */
    harness_run_all(&h);
    struct task *spare = spare_of(jobset, 0);
    assert_counts(&h, jobset, 1, 0);
    assert_true(task_is_spare(spare) && str_starts(spare->name, STR("a-w-0-spare-0-")));
    assert_int_equal(spare->state, TASK_RUNNING);
    for (size_t t = 0; t < job->tasks.len; t++)
        assert_true(job->tasks.items[t]->machine != spare->machine);
    assert_true(job->active == 3 && job->ready == 3 && jobset->rjob_status[0].ready == 1);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_SPARE], 4);
    task_joins(&h, spare);
    assert_counts(&h, jobset, 1, 1);
    assert_int_equal(notes(&h, "SpareReady"), 1);
    struct arena arena = {0};
    struct labels labels = job_labels(job, spare, &arena);
    struct labels annotations = job_annotations(job, spare, &arena);
    struct str index = STR("batch.kubernetes.io/job-completion-index");
    assert_true(str_is(labels_get(&labels, STR("phalanx.dev/spare"), STR("")), "true"));
    assert_int_equal((int)labels_get(&labels, index, STR("")).len, 0);
    assert_int_equal((int)labels_get(&annotations, index, STR("")).len, 0);
    struct task_launch launch;
    task_launch_build(spare, core_cluster(h.core), &arena, &launch);
    assert_true(str_is(variable(&launch, "PHX_SPARE"), "1"));
    static const char *const absent[] = {"RANK", "PHX_RANK", "JOB_COMPLETION_INDEX", "MASTER_ADDR"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_int_equal((int)variable(&launch, absent[i]).len, 0);
    assert_int_equal((int)launch.rank_table.count, 3);
    arena_done(&arena);
    harness_check_replay(&h);
    harness_done(&h);
}

static void it_takes_the_rank_of_a_lost_machine(void **state)
{
    for (int rank = 0; rank < 3; rank++) {
        struct harness h;
        struct seen seen;
        struct jobset *jobset = begin(&h, &seen, 5, ONE);
        char host[16];
        snprintf(host, sizeof host, "a-w-0-%d", rank);
        struct task *spare = spare_of(jobset, 0), *peer = harness_task(&h, rank ? "a-w-0-0" : "a-w-0-1");
        obj_id uid = spare->uid, pod = spare->pod_uid, peer_uid = peer->uid;
        struct str name = spare->name;
        harness_lose(&h, machine_name(&h, harness_task(&h, host)));
        assert_true(harness_task(&h, host) == spare && spare->uid == uid && spare->pod_uid == pod);
        assert_true(spare->index == rank && spare->rank == (uint32_t)rank && str_equal(spare->name, name));
        assert_true(!jobset_parks(jobset) && jobset->attempt == 1);
        assert_int_equal((int)seen.rejoins, 3); /* all of them, at once */
        assert_int_equal((int)seen.starts, 1);  /* of the next spare: no rank waits for a process to start */
        assert_true(seen.ranks[0] && seen.ranks[1] && seen.ranks[2]);
        assert_true(peer->uid == peer_uid && peer->state == TASK_RUNNING);
        assert_int_equal(notes(&h, "SpareActivated"), 1);
        assert_int_equal(jobset->recovery.in_place_counted + jobset->restarts_counted, 0);
        assert_int_equal((int)core_ledger(h.core)->chips[OWNER_SPARE],
                         4); /* another one has its place already */
        struct arena arena = {0};
        struct labels labels = job_labels(spare->job, spare, &arena);
        assert_int_equal((int)labels_get(&labels, STR("phalanx.dev/spare"), STR("")).len, 0);
        arena_done(&arena);
        harness_check_replay(&h);
        all_join_with_spares(&h, jobset);
        progress_to(&h, jobset, 8);
        assert_counts(&h, jobset, 1, 1);
        harness_check_replay(&h);
        harness_done(&h);
    }
}

/* Two are lost in one incident, one spare waits: the other one is placed anew, in the same attempt. */
static void more_are_lost_than_there_are_spares(void **state)
{
    struct harness h;
    struct seen seen;
    struct jobset *jobset = begin(&h, &seen, 4, ONE);
    struct task *spare = spare_of(jobset, 0);
    const char *second = machine_name(&h, harness_task(&h, "a-w-0-2"));
    harness_lose(&h, machine_name(&h, harness_task(&h, "a-w-0-0")));
    assert_int_equal(jobset->attempt, 1);
    harness_lose(&h, second); /* before the first one is over: nothing is free */
    assert_true(jobset_parks(jobset) && spare->rank == 0);
    assert_int_equal(harness_task(&h, "a-w-0-2")->state, TASK_PENDING);
    harness_hello(&h, second, NULL, 0);
    assert_true(!jobset_parks(jobset));
    all_join_with_spares(&h, jobset);
    progress_to(&h, jobset, 9);
    assert_int_equal(jobset->attempt, 2);
    assert_int_equal(jobset->restarts, 0);
    assert_true(spare->joined && spare->index == 0);
    harness_check_replay(&h);
    harness_done(&h);
}

static void two_take_two_ranks(void **state)
{
    struct harness h;
    struct seen seen;
    struct jobset *jobset = begin(&h, &seen, 5, TWO);
    struct task *first = spare_of(jobset, 0), *second = spare_of(jobset, 1);
    assert_counts(&h, jobset, 2, 2);
    assert_true(first->machine != second->machine && !str_equal(first->name, second->name));
    const char *lost[] = {machine_name(&h, harness_task(&h, "a-w-0-0")),
                          machine_name(&h, harness_task(&h, "a-w-0-2"))};
    harness_lose(&h, lost[0]);
    harness_lose(&h, lost[1]);
    assert_true(!task_is_spare(first) && !task_is_spare(second) && first->rank != second->rank);
    assert_true(!jobset_parks(jobset) && seen.starts == 0);
    all_join_with_spares(&h, jobset);
    progress_to(&h, jobset, 9);
    assert_int_equal((int)jobset->jobs[0]->active, 3);
    harness_check_replay(&h);
    harness_done(&h);
}

static void its_own_loss_is_nobodys_failure(void **state)
{
    struct harness h;
    struct seen seen;
    struct jobset *jobset = begin(&h, &seen, 5, ONE);
    struct task *spare = spare_of(jobset, 0);
    obj_id uid = spare->uid;
    harness_lose(&h, machine_name(&h, spare));
    assert_true(jobset->attempt == 0 && jobset->history.record_count == 0 && seen.rejoins == 0);
    assert_true(spare_of(jobset, 0)->uid != uid);
    all_join_with_spares(&h, jobset);
    assert_counts(&h, jobset, 1, 1);
    assert_int_equal(notes(&h, "SpareLost"), 1);
    /* No machine is left for another one: the job does not mind. */
    harness_lose(&h, machine_name(&h, spare_of(jobset, 0)));
    assert_int_equal(spare_of(jobset, 0)->state, TASK_PENDING);
    assert_counts(&h, jobset, 1, 0);
    for (int i = 0; i < 3; i++) {
        char host[16];
        snprintf(host, sizeof host, "a-w-0-%d", i);
        exits(&h, host, 0);
    }
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    core_check_invariants(h.core);
    harness_done(&h);
}

static void one_that_ends_by_itself_is_made_later(void **state)
{
    struct harness h;
    struct seen seen;
    struct jobset *jobset = begin(&h, &seen, 5, NONE);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", ONE), 200); /* live */
    for (int i = 0; i < 3; i++) {
        harness_run_all(&h);
        harness_exit(&h, spare_of(jobset, 0), i); /* no code is a good one */
        assert_int_equal((int)jobset->jobs[0]->spares.len, 0);
        harness_wait(&h, (10 << i) * NS_PER_SECOND - 1);
        assert_int_equal((int)jobset->jobs[0]->spares.len, 0);
        harness_check_replay(&h);
        harness_wait(&h, 1);
        assert_int_equal((int)jobset->jobs[0]->spares.len, 1);
    }
    assert_true(jobset->attempt == 0 && jobset->jobs[0]->failed == 0);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", NONE), 200);
    harness_run_all(&h);
    assert_int_equal((int)jobset->jobs[0]->spares.len, 0);
    harness_done(&h);
}

static void a_cold_one_keeps_room(void **state)
{
    struct harness h;
    struct seen seen;
    struct jobset *jobset = begin(&h, &seen, 4, COLD);
    struct task *spare = spare_of(jobset, 0);
    machine_id room = spare->machine;
    assert_true(spare->state == TASK_PLACED && spare->holds);
    assert_counts(&h, jobset, 1, 1);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_IDLE], 0);
    harness_create(&h, JOBSET("b", "", RJOB("x", 1, "", 1, ""))); /* of the same priority: it waits */
    assert_int_equal(harness_task(&h, "b-x-0-0")->state, TASK_PENDING);
    harness_lose(&h, machine_name(&h, harness_task(&h, "a-w-0-1")));
    assert_true(harness_task(&h, "a-w-0-1") == spare && spare->machine == room && !jobset_parks(jobset));
    assert_int_equal(spare->state, TASK_STARTING);
    assert_int_equal((int)seen.rejoins, 2);
    assert_int_equal((int)seen.starts, 1);
    all_join_with_spares(&h, jobset);
    progress_to(&h, jobset, 9);
    assert_int_equal(jobset->attempt, 1);
    harness_check_replay(&h);
    harness_done(&h);
}

static void it_yields_to_a_higher_priority(void **state)
{
    for (int cold = 0; cold < 2; cold++) {
        struct harness h;
        struct seen seen;
        struct jobset *jobset = begin(&h, &seen, 4, cold ? COLD : ONE);
        machine_id room = spare_of(jobset, 0)->machine;
        harness_create(&h, JOBSET("b", "", RJOB("x", 1, "", 1, "")));
        assert_false(spare_of(jobset, 0)->doomed);
        harness_create(&h, JOBSET("c", "",
                                  "{name: x, template: {spec: {parallelism: 1, completions: 1, "
                                  "completionMode: Indexed, backoffLimit: 0, " POD_OF(
                                      "priorityClassName: high, ", "2") "}}}"));
        assert_int_equal(notes(&h, "SpareLeft"), 1);
        harness_run_all(&h);
        struct task *other = harness_task(&h, "c-x-0-0");
        assert_true(other->state == TASK_RUNNING && other->machine == room);
        assert_int_equal(harness_task(&h, "b-x-0-0")->state,
                         TASK_RUNNING);       /* what is left is for others first */
        harness_wait(&h, 10 * NS_PER_SECOND); /* another one comes later, and waits behind all others */
        assert_int_equal(spare_of(jobset, 0)->state, TASK_PENDING);
        assert_int_equal(jobset->attempt, 0);
        harness_check_replay(&h);
        harness_done(&h);
    }
}

/* A spare would come to a machine that only replacements may use while no rank of its Job has one. That
 * machine would be the Job's domain then, where the next rank may not go. */
static void it_gives_up_the_domain_of_its_job(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 1);
    harness_create(&h, JOBSET("b", "", WHOLE_MACHINE));
    harness_run_all(&h);
    struct jobset *jobset = harness_create(
        &h, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: "
            "{alpha.jobset.sigs.k8s.io/exclusive-topology: kubernetes.io/hostname, "
            "phalanx.dev/spares: '1'}}\n"
            "spec: {replicatedJobs: [{name: w, template: {spec: {parallelism: 1, completions: 2, "
            "completionMode: Indexed, " POD_OF("", "4") "}}}]}\n");
    harness_run_all(&h);
    assert_int_equal(spare_of(jobset, 0)->state, TASK_PENDING); /* it would be beside a rank */
    harness_create(&h, JOBSET("c", "", WHOLE_MACHINE));
    exits(&h, "a-w-0-0", 0); /* and c takes its machine */
    harness_run_all(&h);
    assert_int_equal(notes(&h, "SpareLeft"), 1);
    assert_int_equal((int)jobset->jobs[0]->spares.len, 0);
    assert_int_equal(harness_task(&h, "a-w-0-1")->state, TASK_PENDING);
    exits(&h, "b-x-0-0", 0);
    harness_run_all(&h);
    assert_int_equal(harness_task(&h, "a-w-0-1")->state, TASK_RUNNING);
    core_check_invariants(h.core);
    harness_check_replay(&h);
    harness_done(&h);
}

/* A rank waits for the room of its own Job's spare, behind more gangs that fit nowhere than one pass looks
 * at for others. */
static void its_own_rank_comes_before_gangs_that_fit_nowhere(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 0);
    for (char name[] = "x1"; name[1] <= '8'; name[1]++) {
        char yaml[1024];
        snprintf(yaml, sizeof(yaml),
                 "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s}\nspec: "
                 "{replicatedJobs: [{name: w, template: {spec: {parallelism: 4, completions: 4, " POD_OF(
                     "", "4") "}}}]}\n",
                 name);
        harness_create(&h, yaml);
    }
    struct jobset *jobset = harness_create(
        &h, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: "
            "{phalanx.dev/spares: '1'}}\n"
            "spec: {replicatedJobs: [{name: w, template: {spec: {parallelism: 1, completions: 2, "
            "completionMode: Indexed, " POD_OF("", "4") "}}}]}\n");
    harness_create(&h, JOBSET("b", "", WHOLE_MACHINE));
    all_join_with_spares(&h, jobset);
    harness_create(&h, JOBSET("c", "", WHOLE_MACHINE)); /* takes the room that rank 0 leaves */
    machine_id room = spare_of(jobset, 0)->machine;
    exits(&h, "a-w-0-0", 0);
    harness_run_all(&h);
    struct task *rank = harness_task(&h, "a-w-0-1");
    assert_int_equal(rank->state, TASK_RUNNING);
    assert_int_equal(rank->machine, room);
    harness_check_replay(&h);
    harness_done(&h);
}

/* Ready processes that were told to stop are not the run that spares are made for. */
static void a_resumed_job_makes_none_before_its_ranks_run(void **state)
{
    struct harness h;
    struct seen seen;
    struct jobset *jobset = begin(&h, &seen, 4, COLD);
    harness_write(&h, WRITE_REPLACE, "a",
                  TRAIN("phalanx.dev/spares: '1', phalanx.dev/spare-kind: cold",
                        "suspend: true, failurePolicy: {maxRestarts: 1}, "));
    harness_wait(&h, 30 * NS_PER_SECOND);
    assert_int_equal((int)jobset->jobs[0]->spares.len, 0);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", COLD), 200);
    assert_int_equal((int)jobset->jobs[0]->spares.len, 0);
    all_join_with_spares(&h, jobset);
    assert_counts(&h, jobset, 1, 1);
    harness_check_replay(&h);
    harness_done(&h);
}

static void suspending_and_deleting_end_it(void **state)
{
    for (int how = 0; how < 4; how++) {
        struct harness h;
        struct seen seen;
        struct jobset *jobset = begin(&h, &seen, 5, how == 3 ? COLD : ONE);
        if (how == 0)
            assert_int_equal(harness_write(&h, WRITE_REPLACE, "a",
                                           TRAIN("phalanx.dev/spares: '1'",
                                                 "suspend: true, failurePolicy: {maxRestarts: 1}, ")),
                             200);
        else if (how == 1)
            assert_int_equal(harness_write(&h, WRITE_DELETE, "a", NULL), 200);
        for (int i = 0; how >= 2 && i < 3; i++) {
            char host[16];
            snprintf(host, sizeof host, "a-w-0-%d", i);
            exits(&h, host, 0);
        }
        core_check_invariants(h.core);
        harness_check_replay(&h);
        harness_wait(&h, how == 0 ? 30 * NS_PER_SECOND : 0); /* its ranks may save; they do not */
        harness_run_all(&h);
        for (size_t m = 0; m < 5; m++)
            assert_int_equal(core_cluster(h.core)->machines[m].task_count, 0);
        if (how >= 2)
            assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
        assert_int_equal((int)core_ledger(h.core)->chips[OWNER_SPARE], 0);
        harness_check_replay(&h);
        harness_done(&h);
    }
}

/* All of it restarts as its policy says: spares go with their Job, and the next one makes its own. */
static void a_restart_of_all_makes_new_ones(void **state)
{
    struct harness h;
    struct seen seen;
    struct jobset *jobset = begin(
        &h, &seen, 5,
        TRAIN("phalanx.dev/spares: '1', phalanx.dev/recovery: 'off'", "failurePolicy: {maxRestarts: 1}, "));
    obj_id uid = spare_of(jobset, 0)->uid;
    exits(&h, "a-w-0-1", 1);
    assert_int_equal(jobset->restarts, 1);
    all_join_with_spares(&h, jobset);
    all_join_with_spares(&h, jobset);
    assert_true(spare_of(jobset, 0)->uid != uid);
    assert_counts(&h, jobset, 1, 1);
    harness_check_replay(&h);
    harness_done(&h);
}

static void a_deleted_or_drained_one_is_made_anew(void **state)
{
    struct harness h;
    struct seen seen;
    struct jobset *jobset = begin(&h, &seen, 5, ONE);
    struct task *spare = spare_of(jobset, 0);
    obj_id uid = spare->uid;
    assert_int_equal(delete_object(&h, OBJECT_POD, spare->name), 200);
    harness_run_all(&h);
    all_join_with_spares(&h, jobset);
    assert_true(spare_of(jobset, 0)->uid != uid && jobset->attempt == 0);
    assert_counts(&h, jobset, 1, 1);
    harness_done(&h);
}

static void wrong_values_are_refused(void **state)
{
    static const char *const wrong[] = {"phalanx.dev/spares: '-1'", "phalanx.dev/spares: '65'",
                                        "phalanx.dev/spares: many", "phalanx.dev/spare-kind: hot"};
    struct harness h;
    harness_init(&h, 3, 4, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char yaml[1024], path[80];
        snprintf(
            yaml, sizeof yaml,
            "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: {%s}}\n"
            "spec: {replicatedJobs: [%s]}\n",
            wrong[i], RJOB("w", 1, "", 1, ""));
        snprintf(path, sizeof path, "metadata.annotations[%.*s]", (int)strcspn(wrong[i], ":"), wrong[i]);
        assert_int_equal(harness_write(&h, WRITE_CREATE, "a", yaml), 422);
        assert_non_null(strstr(h.last_message, path));
    }
    harness_done(&h);
}

/* --- whatever happens ------------------------------------------------------------------------- */

enum { WALKS = 40, EVENTS = 60, WALK_MACHINES = 9 };

struct walk {
    struct harness h;
    struct rng rng;
    struct u64_map ranks; /* uid of a run -> 1 + index that it has, or had */
};

/* A process that has a rank keeps it; a run has one index in its life. */
static void look_at_ranks(struct walk *w)
{
    const struct job_store *store = core_jobs(w->h.core);
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct job *job = store->jobsets.items[i]->jobs[0];
        uint32_t living = 0;
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            uintptr_t before = (uintptr_t)u64_map_get(&w->ranks, task->uid);
            assert_true(!before || before == (uintptr_t)task->index + 1);
            u64_map_put(&w->ranks, task->uid, (void *)((uintptr_t)task->index + 1));
        }
        for (size_t s = 0; job && s < job->spares.len; s++) {
            assert_null(u64_map_get(&w->ranks, job->spares.items[s]->uid));
            living += !job->spares.items[s]->doomed;
        }
        assert_true(living <= 2);
    }
    core_check_invariants(w->h.core);
}

static struct task *any_task(struct walk *w)
{
    const struct job_store *store = core_jobs(w->h.core);
    const struct jobset *jobset = store->jobsets.items[rng_below(&w->rng, store->jobsets.len)];
    const struct job *job = jobset->jobs[0];
    if (!job || job->tasks.len + job->spares.len == 0)
        return NULL;
    size_t which = rng_below(&w->rng, job->tasks.len + job->spares.len);
    return which < job->tasks.len ? job->tasks.items[which] : job->spares.items[which - job->tasks.len];
}

static void all_jobs_join(struct walk *w)
{
    const struct job_store *store = core_jobs(w->h.core);
    for (size_t i = 0; i < store->jobsets.len; i++)
        all_join_with_spares(&w->h, store->jobsets.items[i]);
}

static void one_event(struct walk *w)
{
    struct harness *h = &w->h;
    char name[16];
    snprintf(name, sizeof name, "m-%d", (int)rng_range(&w->rng, 1, WALK_MACHINES));
    const struct machine *machine = cluster_find(core_cluster(h->core), str_from(name));
    struct task *task = any_task(w);
    const struct job_store *store = core_jobs(h->core);
    switch (rng_below(&w->rng, 8)) {
    case 0:
    case 1:
        if (machine->state == MACHINE_READY)
            harness_lose(h, name);
        else
            harness_hello(h, name, NULL, 0);
        break;
    case 2:
        if (task && task->state == TASK_RUNNING)
            harness_exit(h, task, 1);
        break;
    case 3:
        if (task && !task_ended(task->state))
            delete_object(h, OBJECT_POD, task->name);
        break;
    case 4:
        harness_wait(h, rng_range(&w->rng, 1, 40) * NS_PER_SECOND);
        break;
    case 5:
        progress_to(h, store->jobsets.items[0], store->jobsets.items[0]->progress.step + 1);
        break;
    default:
        all_jobs_join(w);
    }
    look_at_ranks(w);
}

static void heal(struct walk *w)
{
    const struct cluster *cluster = core_cluster(w->h.core);
    for (int round = 0; round < 6; round++) {
        for (size_t m = 0; m < cluster->machine_count; m++)
            if (cluster->machines[m].state == MACHINE_LOST)
                harness_hello(&w->h, cluster->machines[m].name.data, NULL, 0);
        all_jobs_join(w);
        harness_wait(&w->h, 320 * NS_PER_SECOND);
        look_at_ranks(w);
    }
}

static void whatever_happens(void **state)
{
    uint64_t used = 0;
    for (uint64_t seed = 1; seed <= WALKS; seed++) {
        struct walk w = {0};
        rng_seed(&w.rng, seed);
        harness_init(&w.h, WALK_MACHINES, 4, 0);
        struct jobset *jobset = harness_create(
            &w.h, TRAIN("phalanx.dev/spares: '2', phalanx.dev/no-progress-attempts: '0', "
                        "phalanx.dev/recovery-budgets: 'restart-process=100/1s,replace-machine=100/1s'",
                        "failurePolicy: {maxRestarts: 1000000}, "));
        harness_create(&w.h,
                       "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: b, annotations: "
                       "{phalanx.dev/spares: '1', phalanx.dev/spare-kind: cold}}\nspec: {"
                       "failurePolicy: {maxRestarts: 1000000}, replicatedJobs: [" RJOB(
                           "x", 1, "", 2, "completionMode: Indexed, ") "]}\n");
        for (int i = 0; i < EVENTS; i++)
            one_event(&w);
        heal(&w);
        assert_false(jobset_parks(jobset));
        assert_int_equal((int)jobset->jobs[0]->ready, 3);
        assert_counts(&w.h, jobset, 2, 2);
        used += (uint64_t)notes(&w.h, "SpareActivated");
        harness_check_replay(&w.h);
        u64_map_done(&w.ranks);
        harness_done(&w.h);
    }
    assert_true(used > WALKS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_waits_beside_the_gang),
        cmocka_unit_test(it_takes_the_rank_of_a_lost_machine),
        cmocka_unit_test(more_are_lost_than_there_are_spares),
        cmocka_unit_test(two_take_two_ranks),
        cmocka_unit_test(its_own_loss_is_nobodys_failure),
        cmocka_unit_test(one_that_ends_by_itself_is_made_later),
        cmocka_unit_test(a_cold_one_keeps_room),
        cmocka_unit_test(it_yields_to_a_higher_priority),
        cmocka_unit_test(it_gives_up_the_domain_of_its_job),
        cmocka_unit_test(its_own_rank_comes_before_gangs_that_fit_nowhere),
        cmocka_unit_test(a_resumed_job_makes_none_before_its_ranks_run),
        cmocka_unit_test(suspending_and_deleting_end_it),
        cmocka_unit_test(a_restart_of_all_makes_new_ones),
        cmocka_unit_test(a_deleted_or_drained_one_is_made_anew),
        cmocka_unit_test(wrong_values_are_refused),
        cmocka_unit_test(whatever_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
