/* Trials find what the gang finds in the same step; terms and reservations act, and survive a snapshot. */
#include "core/gang/trial.h"

#include "core/job/story.h"

#include "base/rng.h"
#include "core/step.h"

/* The tests act between two steps, as admission does in one. */
static struct step step_of(struct harness *h)
{
    h->twins.off = true; /* nobody tells them */
    return (struct step){.cluster = (struct cluster *)core_cluster(h->core),
                         .jobs = (struct job_store *)core_jobs(h->core),
                         .now_ns = h->now_ns};
}

static void wake(struct harness *h) /* something that makes the scheduler look again */
{
    harness_news(h, EVENT_MACHINE_AWAY, core_cluster(h->core)->machines[0].name.data);
    harness_hello(h, core_cluster(h->core)->machines[0].name.data, NULL, 0);
}

/* Changes made by hand are in no log: only the snapshot is compared. */
static void done(struct harness *h)
{
    struct buf bytes = {0};
    core_snapshot_write(h->core, &bytes);
    struct core *copy = core_new();
    struct error error = {0};
    if (core_snapshot_read(copy, buf_str(&bytes), &error) < 0)
        fail_msg("%s", error.text);
    assert_true(core_digest(copy) == core_digest(h->core));
    core_free(copy);
    buf_done(&bytes);
    core_free(h->core);
    twins_done(&h->twins);
    vec_done(&h->effects.list);
    vec_done(&h->told);
    buf_done(&h->log);
}

static bool try(struct harness *h, const struct jobset *jobset, const struct trial *trial,
                struct placement *places, const char *why)
{
    struct buf text BUF_CLEANUP = {0};
    bool found = jobset_trial(core_jobs(h->core), core_cluster(h->core), jobset, trial, places, &text);
    assert_true(found == (text.len == 0));
    if (why)
        assert_string_equal(text.data, why);
    return found;
}

static struct jobset *create(struct harness *h, const char *name, bool suspend, int jobs, int tasks,
                             int chips)
{
    char yaml[1024];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s}\nspec: {suspend: %s, "
             "replicatedJobs: [{name: w, replicas: %d, template: {spec: {parallelism: %d, completions: %d, "
             "template: {spec: {restartPolicy: Never, containers: [{name: main, image: none, "
             "resources: {limits: {google.com/tpu: %d}}}]}}}}}]}\n",
             name, suspend ? "true" : "false", jobs, tasks, tasks, chips);
    return harness_create(h, yaml);
}

static void resume(struct harness *h, const char *name, int jobs, int tasks, int chips)
{
    char yaml[1024];
    snprintf(
        yaml, sizeof(yaml),
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s}\nspec: {suspend: false, "
        "replicatedJobs: [{name: w, replicas: %d, template: {spec: {parallelism: %d, completions: %d, "
        "template: {spec: {restartPolicy: Never, containers: [{name: main, image: none, "
        "resources: {limits: {google.com/tpu: %d}}}]}}}}}]}\n",
        name, jobs, tasks, tasks, chips);
    assert_int_equal(harness_write(h, WRITE_REPLACE, name, yaml), 200);
}

/* A trial and a placement agree task by task; a gang that is refused waits with the same words. */
static void trial_is_the_gang(void **state)
{
    struct rng rng;
    rng_seed(&rng, 7);
    for (int round = 0; round < 60; round++) {
        struct harness h;
        harness_init(&h, 2 + (int)rng_below(&rng, 8), 4, 0);
        if (rng_below(&rng, 2))
            create(&h, "busy", false, 1, 1 + (int)rng_below(&rng, 6), 1 + (int)rng_below(&rng, 4));
        int jobs = 1 + (int)rng_below(&rng, 3), tasks = 1 + (int)rng_below(&rng, 4);
        int chips = (int)rng_below(&rng, 5);
        struct jobset *jobset = create(&h, "a", true, jobs, tasks, chips);
        struct placement places[12];
        struct trial trial = {0};
        assert_int_equal(rjob_task_count(&jobset->spec.rjobs[0]), jobs * tasks);
        struct buf why BUF_CLEANUP = {0};
        bool found = jobset_trial(core_jobs(h.core), core_cluster(h.core), jobset, &trial, places, &why);
        resume(&h, "a", jobs, tasks, chips);
        const struct gang *gang = jobset->gangs.items[0];
        assert_int_equal((int)gang->tasks.len, jobs * tasks);
        assert_true(found == (gang->state != GANG_QUEUED));
        if (!found)
            assert_true(str_equal(gang->why, buf_str(&why)));
        for (size_t t = 0; found && t < gang->tasks.len; t++) {
            assert_int_equal((int)gang->tasks.items[t]->machine, (int)places[t].machine);
            assert_true(gang->tasks.items[t]->chips == places[t].chips);
        }
        harness_done(&h);
    }
}

static void counts_and_victims(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    create(&h, "victim", false, 1, 3, 4);
    struct jobset *jobset = create(&h, "a", true, 1, 2, 4);
    struct trial trial = {0};
    assert_false(try(&h, jobset, &trial, NULL,
                     "needs 2 machines with 4 free google.com/tpu chips; 1 of 4 has them: 3 taken by "
                     "default/victim"));
    int32_t one = 1;
    trial.counts = &one;
    assert_true(try(&h, jobset, &trial, NULL, NULL));
    trial.counts = NULL;
    uint64_t may_free[4] = {0};
    const struct task *task = harness_task(&h, "victim-w-0-1");
    may_free[task->machine] = task->chips;
    trial.may_free = may_free;
    struct placement places[2];
    assert_true(try(&h, jobset, &trial, places, NULL));
    assert_true(places[0].machine == task->machine || places[1].machine == task->machine);
    done(&h);
}

static void terms_bind(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    struct jobset *jobset = create(&h, "a", true, 1, 1, 4);
    struct label label = {STR("kubernetes.io/hostname"), core_cluster(h.core)->machines[2].name};
    struct toleration toleration = {STR("k"), STR("Exists"), STR(""), STR("NoSchedule")};
    struct str level = STR("phalanx.dev/rack");
    struct rjob_terms terms = {.node_labels = {&label, 1},
                               .tolerations = &toleration,
                               .toleration_count = 1,
                               .levels = &level,
                               .level_count = 1};
    struct trial trial = {.terms = &terms};
    struct placement place;
    assert_true(try(&h, jobset, &trial, &place, NULL));
    assert_int_equal((int)place.machine, 2);
    struct step step = step_of(&h);
    jobset_set_terms(&step, jobset, &terms);
    assert_true(step.schedule);
    resume(&h, "a", 1, 1, 4);
    assert_int_equal((int)harness_task(&h, "a-w-0-0")->machine, 2);
    jobset_set_terms(&step, jobset, jobset->grant.terms); /* its own copy */
    assert_string_equal(jobset->grant.terms[0].node_labels.items[0].value.data, label.value.data);
    done(&h);
}

static void reservation_keeps_others_out(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *owner = create(&h, "owner", true, 1, 2, 4);
    struct step step = step_of(&h);
    struct room rooms[2] = {{.chips = 0xf}, {0}};
    jobset_reserve(&step, owner, rooms);
    struct jobset *other = create(&h, "other", false, 1, 2, 4);
    const struct gang *gang = other->gangs.items[0];
    assert_int_equal(gang->state, GANG_QUEUED);
    assert_string_equal(gang->why.data, "needs 2 machines with 4 free google.com/tpu chips; 1 of 2 has them: "
                                        "1 reserved for others (m-1)");
    struct trial trial = {0};
    assert_true(try(&h, owner, &trial, NULL, NULL)); /* it is kept for whom it is kept */
    rooms[0].chips = 0;
    rooms[1].chips = 0x3;
    jobset_reserve(&step, owner, rooms); /* a new one replaces it */
    struct jobset *small = create(&h, "small", false, 1, 1, 4);
    assert_int_equal(small->gangs.items[0]->state, GANG_PLACED);
    assert_int_equal((int)harness_task(&h, "small-w-0-0")->machine, 0);
    struct buf bytes = {0}; /* it survives a snapshot, and another inventory */
    core_snapshot_write(h.core, &bytes);
    struct core *copy = core_new();
    assert_int_equal(core_snapshot_read(copy, buf_str(&bytes), NULL), 0);
    const struct jobset *kept = jobs_find(core_jobs(copy), STR("default"), STR("owner"));
    assert_int_equal((int)kept->grant.reserved_count, 1);
    assert_int_equal((int)kept->grant.reserved[0].machine, 1);
    assert_true(kept->grant.reserved[0].chips == 0x3);
    assert_true(core_cluster(copy)->machines[1].reserved_mask == 0x3);
    assert_int_equal((int)core_ledger(copy)->chips[OWNER_RESERVED], 2);
    core_free(copy);
    buf_done(&bytes);
    jobset_reserve(&step, owner, NULL);
    assert_int_equal((int)core_jobs(h.core)->reserving.len, 0);
    harness_run_all(&h);
    exits(&h, "small-w-0-0", 0);
    assert_int_equal(gang->state, GANG_PLACED);
    done(&h);
}

/* Whatever comes and goes: nobody but its owner gets a reserved chip. */
static void reserved_chips_stay_free(void **state)
{
    struct rng rng;
    rng_seed(&rng, 11);
    for (int round = 0; round < 20; round++) {
        struct harness h;
        harness_init(&h, 6, 4, 0);
        struct step step = step_of(&h);
        struct jobset *owner = create(&h, "owner", true, 1, 1, 4);
        struct room rooms[6] = {0};
        for (int m = 0; m < 6; m++)
            rooms[m].chips = rng_below(&rng, 2) ? rng_next(&rng) & 0xf : 0;
        jobset_reserve(&step, owner, rooms);
        for (int i = 0; i < 8; i++) {
            char name[8];
            snprintf(name, sizeof(name), "x%d", i);
            create(&h, name, false, 1 + (int)rng_below(&rng, 2), 1 + (int)rng_below(&rng, 3),
                   1 + (int)rng_below(&rng, 4));
            harness_run_all(&h);
            const struct job_store *store = core_jobs(h.core);
            const struct jobset *earlier = store->jobsets.items[rng_below(&rng, store->jobsets.len)];
            if (earlier != owner && rng_below(&rng, 2))
                delete_object(&h, OBJECT_JOBSET, earlier->name);
            harness_run_all(&h);
            for (machine_id m = 0; m < 6; m++)
                assert_true((core_cluster(h.core)->machines[m].free_mask & rooms[m].chips) == rooms[m].chips);
        }
        uint64_t any = 0;
        for (machine_id m = 0; m < 6; m++)
            any |= rooms[m].chips;
        assert_true(!any || owner->grant.reserved_count > 0);
        done(&h);
    }
}

/* A reservation ends with the placement of its owner, with its owner's deletion, and with its owner. */
static void reservation_ends(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct step step = step_of(&h);
    struct room rooms[2] = {{.chips = 0xf}, {.chips = 0xf}};
    struct jobset *first = create(&h, "first", true, 1, 1, 4);
    jobset_reserve(&step, first, rooms);
    create(&h, "other", false, 1, 1, 4);
    assert_int_equal(harness_task(&h, "other-w-0-0")->state, TASK_PENDING);
    resume(&h, "first", 1, 1, 4);
    assert_int_equal((int)first->grant.reserved_count, 0);
    assert_int_equal((int)core_jobs(h.core)->reserving.len, 0);
    assert_true(harness_task(&h, "other-w-0-0")->state != TASK_PENDING);
    harness_run_all(&h);
    exits(&h, "other-w-0-0", 0);
    struct jobset *second = create(&h, "second", true, 1, 1, 4);
    jobset_reserve(&step, second, rooms);
    create(&h, "third", false, 1, 1, 4);
    wake(&h);
    assert_int_equal(harness_task(&h, "third-w-0-0")->state, TASK_PENDING);
    delete_object(&h, OBJECT_JOBSET, STR("second"));
    assert_int_equal((int)core_jobs(h.core)->reserving.len, 0);
    assert_true(harness_task(&h, "third-w-0-0")->state != TASK_PENDING);
    done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trial_is_the_gang), cmocka_unit_test(counts_and_victims),
        cmocka_unit_test(terms_bind),        cmocka_unit_test(reservation_keeps_others_out),
        cmocka_unit_test(reservation_ends),  cmocka_unit_test(reserved_chips_stay_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
