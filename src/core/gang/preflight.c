#include "core/gang/preflight.h"

#include <stdlib.h>

#include "doc/json.h"

#define PREFLIGHT_KEY "phalanx.dev/preflight"

/* --- machines ------------------------------------------------------------------------------------------- */

static enum preflight_mode mode_of(const struct step *step, const struct jobset *jobset)
{
    const struct doc *annotations = doc_path(jobset->document, "metadata", "annotations", NULL);
    enum preflight_mode mode = step->cluster->qualification.preflight;
    (void)preflight_mode_find(doc_str(doc_get(annotations, PREFLIGHT_KEY), STR("")), &mode);
    return mode;
}

bool preflight_is_valid(const struct step *step, const struct gang *gang, int64_t tested_ns)
{
    if (tested_ns == 0)
        return false;
    return tested_ns >= gang->placed_ns || step->now_ns - tested_ns <= step->cluster->qualification.valid_ns;
}

bool preflight_is_quiet(const struct step *step, const struct machine *machine)
{
    list_for_each(node, &step->jobs->machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        if (task->state != TASK_PLACED || !task->gang || !task->gang->preflight)
            return false;
    }
    return true;
}

/* Returns whether a task that is not ending runs on the machine, so that it cannot be tested. */
static bool is_at_work(const struct step *step, const struct machine *machine)
{
    list_for_each(node, &step->jobs->machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        bool waits = task->state == TASK_PLACED && task->gang && task->gang->preflight;
        if (!waits && task->state != TASK_STOPPING && !task->doomed)
            return true;
    }
    return false;
}

static int compare_machines(const void *a, const void *b)
{
    machine_id x = *(const machine_id *)a, y = *(const machine_id *)b;
    return (x > y) - (x < y);
}

/* Calls qsort, which is not defined for an empty array. */
static void sort(void *items, size_t count, size_t size, int (*compare)(const void *a, const void *b))
{
    if (count > 1)
        qsort(items, count, size, compare);
}

static void collect_machines(const struct gang *gang, struct preflight *preflight)
{
    vec_clear(&preflight->machines);
    preflight->alive = gang->alive;
    for (size_t t = 0; t < gang->tasks.len; t++)
        if (!task_ended(gang->tasks.items[t]->state) && gang->tasks.items[t]->machine != MACHINE_NONE)
            vec_push(&preflight->machines, gang->tasks.items[t]->machine);
    machine_id *items = preflight->machines.items;
    sort(items, preflight->machines.len, sizeof *items, compare_machines);
    size_t kept = 0;
    for (size_t i = 0; i < preflight->machines.len; i++)
        if (kept == 0 || items[kept - 1] != items[i])
            items[kept++] = items[i];
    preflight->machines.len = kept;
}

static bool has_machine(const struct preflight *preflight, machine_id machine)
{
    return preflight->machines.len > 0 && bsearch(&machine, preflight->machines.items,
                                                  preflight->machines.len, sizeof machine, compare_machines);
}

/* Returns whether every machine that is tested in pairs still has a living task of the gang. Another one may
 * leave the cluster before the round has ended. */
static bool has_members(const struct preflight *preflight)
{
    for (size_t i = 0; i < preflight->members.len; i++)
        if (!has_machine(preflight, preflight->members.items[i].machine))
            return false;
    return true;
}

/* --- the lists ------------------------------------------------------------------------------------------ */

/* Adds the gang in the order of uids, which a restored core has as well. */
static void list_gang(struct job_store *store, struct gang *gang)
{
    CHECK(gang->preflight && gang->state == GANG_PLACED);
    size_t at = store->preflights.len;
    vec_push(&store->preflights, gang);
    for (; at > 0 && store->preflights.items[at - 1]->uid > gang->uid; at--)
        store->preflights.items[at] = store->preflights.items[at - 1];
    store->preflights.items[at] = gang;
}

static void list_testing(struct job_store *store, machine_id machine)
{
    CHECK(machine < store->machine_count);
    size_t at = store->testing.len;
    vec_push(&store->testing, machine);
    for (; at > 0 && store->testing.items[at - 1] > machine; at--)
        store->testing.items[at] = store->testing.items[at - 1];
    store->testing.items[at] = machine;
}

void preflight_free(struct preflight *preflight)
{
    if (!preflight)
        return;
    vec_done(&preflight->machines);
    vec_done(&preflight->members);
    vec_done(&preflight->pairs);
    mem_free(preflight);
}

void preflight_drop(struct step *step, struct gang *gang)
{
    CHECK(gang->preflight);
    preflight_pairs_cancel(step, gang->preflight);
    preflight_free(gang->preflight);
    gang->preflight = NULL;
    buf_clear(&gang->why_text);
    gang->why = (struct str){0};
    for (size_t i = 0; i < step->jobs->preflights.len; i++)
        if (step->jobs->preflights.items[i] == gang) {
            vec_remove(&step->jobs->preflights, i);
            break;
        }
    jobset_mark(step, gang->jobset); /* the next attempt or an absent replica may have waited for the test */
}

/* --- beginning ------------------------------------------------------------------------------------------ */

static bool wants_test(const struct step *step, const struct gang *gang, const struct machine *machine,
                       bool in_pairs)
{
    return !preflight_is_valid(step, gang, machine->qualified_ns) ||
           (in_pairs && !preflight_is_valid(step, gang, machine->paired_ns));
}

void preflight_begin(struct step *step, struct gang *gang)
{
    CHECK(gang->state == GANG_PLACED && !gang->preflight);
    enum preflight_mode mode = mode_of(step, gang->jobset);
    if (mode == PREFLIGHT_OFF)
        return;
    struct preflight *preflight = mem_alloc(sizeof *preflight);
    size_t wanting = 0;
    preflight->phase = PREFLIGHT_ALONE;
    preflight->begun_ns = step->now_ns;
    collect_machines(gang, preflight);
    preflight->in_pairs = mode == PREFLIGHT_PAIRS && preflight->machines.len > 1;
    for (size_t i = 0; i < preflight->machines.len; i++)
        wanting += wants_test(step, gang, &step->cluster->machines[preflight->machines.items[i]],
                              preflight->in_pairs);
    if (wanting == 0) {
        preflight_free(preflight);
        return;
    }
    gang->preflight = preflight;
    list_gang(step->jobs, gang);
    step_note(step, false, "PreflightStarted", ref_jobset(gang->jobset),
              "%zu of %zu machines are to be tested before the gang starts", wanting,
              preflight->machines.len);
}

/* --- progress ------------------------------------------------------------------------------------------- */

static void say_why(struct step *step, struct gang *gang, size_t testing)
{
    const struct preflight *preflight = gang->preflight;
    struct buf text = {0};
    if (preflight->phase == PREFLIGHT_ALONE)
        buf_printf(&text, "preflight: %zu of %zu machines are being tested", testing,
                   preflight->machines.len);
    else
        buf_printf(&text, "preflight: %zu of %zu machines are being tested in pairs, round %d of %d",
                   2 * preflight->pairs.len, preflight->machines.len,
                   preflight->phase - PREFLIGHT_NEIGHBOURS + 1, PREFLIGHT_ROUNDS);
    if (str_equal(gang->why, buf_str(&text))) {
        buf_done(&text);
        return;
    }
    buf_done(&gang->why_text);
    gang->why_text = text;
    gang->why = buf_str(&gang->why_text);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(gang->jobset));
}

static void test_alone(struct step *step, struct gang *gang, struct machine *machine)
{
    CHECK(machine->id < step->cluster->machine_count);
    const struct qualification *settings = &step->cluster->qualification;
    machine->qualifying =
        errand_begin(step, &(struct errand_order){.machine = machine->id,
                                                  .kind = ERRAND_QUALIFY,
                                                  .owner = ERRAND_OF_PREFLIGHT,
                                                  .about = gang->uid,
                                                  .body = qualify_class_of(settings, machine)->body,
                                                  .timeout_ns = settings->timeout_ns});
    list_testing(step->jobs, machine->id);
}

/* Returns whether the gang waits for the machine's test, and begins the test if possible. */
static bool waits_for(struct step *step, struct gang *gang, struct machine *machine)
{
    if (preflight_is_valid(step, gang, machine->qualified_ns))
        return false;
    if (machine->qualifying || machine->state != MACHINE_READY)
        return true; /* an AWAY machine reconnects, or is lost */
    if (!machine->errands || is_at_work(step, machine))
        return false; /* the machine cannot be tested */
    if (preflight_is_quiet(step, machine))
        test_alone(step, gang, machine);
    return true; /* if not tested now, the gang waits for ending tasks first */
}

static void pass(struct step *step, struct gang *gang)
{
    CHECK(gang->preflight && gang->state == GANG_PLACED);
    int64_t took_ns = step->now_ns - gang->preflight->begun_ns;
    char took[24];
    duration_format(took_ns - took_ns % NS_PER_MS, took);
    step_note(step, false, "PreflightPassed", ref_jobset(gang->jobset), "%zu machines, after %s",
              gang->preflight->machines.len, took);
    preflight_drop(step, gang);
    for (size_t t = 0; t < gang->tasks.len; t++)
        task_start_if_free(step, gang->tasks.items[t]);
    if (jobset_parks(gang->jobset)) /* other tasks waited for this test */
        jobset_mark(step, gang->jobset);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(gang->jobset));
}

static void go_on_alone(struct step *step, struct gang *gang)
{
    const struct preflight *preflight = gang->preflight;
    size_t testing = 0;
    for (size_t i = 0; i < preflight->machines.len; i++)
        testing += waits_for(step, gang, &step->cluster->machines[preflight->machines.items[i]]);
    if (testing > 0 || step->jobs->verdicts.len > 0)
        say_why(step, gang, testing);
    else if (!preflight->in_pairs || !preflight_pairs_begin(step, gang))
        pass(step, gang);
}

static bool round_is_over(const struct preflight *preflight)
{
    for (size_t i = 0; i < preflight->pairs.len; i++)
        if (preflight->pairs.items[i].errands[0] || preflight->pairs.items[i].errands[1])
            return false;
    return true;
}

/* Cancels tests of machines that no gang waits for any more. */
static void cancel_unneeded(struct step *step)
{
    struct job_store *store = step->jobs;
    for (size_t i = store->testing.len; i-- > 0;) {
        struct machine *machine = &step->cluster->machines[store->testing.items[i]];
        bool needed = false;
        for (size_t g = 0; g < store->preflights.len && !needed; g++)
            needed = has_machine(store->preflights.items[g]->preflight, machine->id);
        if (machine->qualifying && needed)
            continue;
        if (machine->qualifying)
            errand_cancel(step, machine->qualifying);
        machine->qualifying = 0;
        vec_remove(&store->testing, i);
    }
}

void preflight_settle(struct step *step)
{
    struct job_store *store = step->jobs;
    for (size_t i = store->preflights.len; i-- > 0;) {
        struct gang *gang = store->preflights.items[i];
        if (gang->state != GANG_PLACED) {
            preflight_drop(step, gang); /* the gang has ended */
        } else if (gang->preflight->alive != gang->alive) {
            collect_machines(gang, gang->preflight);
            if (!has_members(gang->preflight))
                preflight_pairs_give_up(step, gang->preflight);
        }
    }
    for (size_t i = 0; i < store->preflights.len;) {
        struct gang *gang = store->preflights.items[i];
        if (gang->preflight->phase != PREFLIGHT_ALONE && round_is_over(gang->preflight))
            preflight_pairs_go_on(step, gang);
        if (gang->preflight->phase == PREFLIGHT_ALONE)
            go_on_alone(step, gang);
        if (gang->preflight && gang->preflight->phase != PREFLIGHT_ALONE)
            say_why(step, gang, 0);
        i += i < store->preflights.len && store->preflights.items[i] == gang;
    }
    cancel_unneeded(step);
}

/* --- verdicts ------------------------------------------------------------------------------------------- */

void preflight_blame(struct step *step, machine_id machine, const char *test, struct str evidence)
{
    struct preflight_verdict verdict = {.machine = machine};
    buf_printf(&verdict.code, "qualify/%s", test);
    buf_add_str(&verdict.evidence, str_head_utf8(evidence, SIGNAL_EVIDENCE_MAX));
    vec_push(&step->jobs->verdicts, verdict);
}

bool preflight_next_verdict(struct step *step, struct preflight_verdict *ret)
{
    if (step->jobs->verdicts.len == 0)
        return false;
    *ret = step->jobs->verdicts.items[0];
    vec_remove(&step->jobs->verdicts, 0);
    return true;
}

void preflight_excuse(struct step *step, struct machine *machine)
{
    machine->qualified_ns = machine->paired_ns = step->now_ns;
}

/* Adds a verdict for each test that the output reports as failed. Returns false if it reports none. */
static bool blame_failed_tests(struct step *step, machine_id machine, struct str output)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *report = NULL;
    bool any = false;
    if (json_parse(&arena, output, &report, NULL) < 0)
        return false;
    const struct doc *tests = doc_get(report, "tests");
    for (size_t i = 0; i < doc_len(tests); i++) {
        const struct doc *one = doc_at(tests, i);
        enum qualify_test test;
        if (!str_is(doc_str(doc_get(one, "result"), STR("")), "failed") ||
            !qualify_test_find(doc_str(doc_get(one, "test"), STR("")), &test))
            continue;
        preflight_blame(step, machine, qualify_test_name(test), doc_str(doc_get(one, "why"), STR("failed")));
        any = true;
    }
    return any;
}

/* Returns whether the command could not run or be understood, which is not a failure of the machine. */
static bool is_unable(const struct errand_end *end)
{
    return end->outcome == ERRAND_FAILED && (end->exit_code == -1 || end->exit_code == 2);
}

static void alone_ended(struct step *step, struct machine *machine, const struct errand_end *end)
{
    machine->qualifying = 0;
    if (end->outcome == ERRAND_OK || machine->state != MACHINE_READY)
        return; /* react/errands.c has booked a passed test */
    if (is_unable(end) || !machine->errands) {
        step_note(step, true, "PreflightUnable", ref_machine(machine),
                  "the machine is let through untested: " STR_FORMAT,
                  STR_ARG(str_head_utf8(end->output, SIGNAL_EVIDENCE_MAX)));
        preflight_excuse(step, machine);
    } else if (end->outcome != ERRAND_FAILED || !blame_failed_tests(step, machine->id, end->output)) {
        struct buf why BUF_CLEANUP = {0};
        buf_printf(&why, "%s: " STR_FORMAT,
                   end->outcome == ERRAND_TIMED_OUT ? "its tests took too long"
                   : end->outcome == ERRAND_LOST    ? "its tests gave no answer"
                                                    : "its tests broke off",
                   STR_ARG(end->output));
        preflight_blame(step, machine->id, "unanswered", buf_str(&why));
    }
}

void preflight_errand_ended(struct step *step, const struct errand *errand, const struct errand_end *end)
{
    struct machine *machine = cluster_find(step->cluster, errand->machine);
    if (errand->kind == ERRAND_QUALIFY && machine && machine->qualifying == errand->uid)
        alone_ended(step, machine, end);
    for (size_t i = 0; errand->kind == ERRAND_PAIR && i < step->jobs->preflights.len; i++)
        if (step->jobs->preflights.items[i]->uid == errand->about)
            preflight_pair_ended(step, step->jobs->preflights.items[i], errand, end);
}

/* --- leaving -------------------------------------------------------------------------------------------- */

/* Releases the gang's places; the gang waits for others, with the same tasks. */
static void give_up_places(struct step *step, struct gang *gang, const struct machine *machine,
                           struct str why)
{
    step_note(step, true, "PreflightFailed", ref_jobset(gang->jobset),
              "machine " STR_FORMAT " is replaced before the gang starts: " STR_FORMAT,
              STR_ARG(machine->name), STR_ARG(why));
    preflight_drop(step, gang);
    gang_unplace(step, gang);
}

void preflight_leave(struct step *step, const struct machine *machine, struct str why)
{
    struct job_store *store = step->jobs;
    for (size_t i = 0; i < store->preflights.len;) {
        struct gang *gang = store->preflights.items[i];
        if (gang->state == GANG_PLACED && gang->alive > 0 && has_machine(gang->preflight, machine->id))
            give_up_places(step, gang, machine, why);
        else
            i++;
    }
}

/* --- restored and remapped ------------------------------------------------------------------------------ */

static bool errand_fits(const struct errands *errands, obj_id uid, enum errand_kind kind)
{
    const struct errand *errand = errand_find(errands, uid);
    return errand && errand->kind == kind && errand->owner == ERRAND_OF_PREFLIGHT;
}

static bool pairs_fit(const struct preflight *preflight, const struct errands *errands)
{
    for (size_t i = 0; i < preflight->pairs.len; i++)
        for (int end = 0; end < 2; end++) {
            obj_id errand = preflight->pairs.items[i].errands[end];
            if (errand && !errand_fits(errands, errand, ERRAND_PAIR))
                return false;
        }
    return true;
}

/* Returns whether the gang is placed, its errands exist, and no process of the user runs yet. */
static bool gang_fits(const struct gang *gang, const struct errands *errands)
{
    if (gang->state != GANG_PLACED || !pairs_fit(gang->preflight, errands))
        return false;
    for (size_t t = 0; t < gang->tasks.len; t++)
        if (!task_ended(gang->tasks.items[t]->state) &&
            (gang->tasks.items[t]->state != TASK_PLACED || gang->tasks.items[t]->parked))
            return false;
    return gang->alive > 0;
}

bool preflight_restored(struct job_store *store, const struct cluster *cluster, const struct errands *errands)
{
    for (size_t i = 0; i < store->jobsets.len; i++)
        for (size_t g = 0; g < store->jobsets.items[i]->gangs.len; g++) {
            struct gang *gang = store->jobsets.items[i]->gangs.items[g];
            if (!gang->preflight)
                continue;
            if (!gang_fits(gang, errands))
                return false;
            collect_machines(gang, gang->preflight);
            list_gang(store, gang);
        }
    for (size_t i = 0; i < cluster->machine_count; i++) {
        obj_id errand = cluster->machines[i].qualifying;
        if (errand && !errand_fits(errands, errand, ERRAND_QUALIFY))
            return false;
        if (errand)
            list_testing(store, (machine_id)i);
    }
    return true;
}

void preflight_check(const struct job_store *store, const struct cluster *cluster,
                     const struct errands *errands)
{
    size_t listed = 0;
    CHECK(store->verdicts.len == 0);
    for (size_t i = 0; i < store->preflights.len; i++) {
        const struct gang *gang = store->preflights.items[i];
        CHECK(gang->preflight && gang_fits(gang, errands) && gang->why.len > 0);
        CHECK(i == 0 || store->preflights.items[i - 1]->uid < gang->uid);
        CHECK(gang->preflight->phase >= PREFLIGHT_ALONE && gang->preflight->phase < PREFLIGHT_PHASES);
        CHECK((gang->preflight->phase == PREFLIGHT_ALONE) == (gang->preflight->pairs.len == 0));
    }
    for (size_t i = 0; i < cluster->machine_count; i++) {
        if (!cluster->machines[i].qualifying)
            continue;
        CHECK(listed < store->testing.len && store->testing.items[listed] == i);
        CHECK(errand_fits(errands, cluster->machines[i].qualifying, ERRAND_QUALIFY));
        listed++;
    }
    CHECK(listed == store->testing.len);
}

static machine_id mapped(machine_id machine, const machine_id *map)
{
    return machine == MACHINE_NONE ? MACHINE_NONE : map[machine];
}

static int compare_members(const void *a, const void *b)
{
    machine_id x = ((const struct paired *)a)->machine, y = ((const struct paired *)b)->machine;
    return (x > y) - (x < y);
}

void preflight_remap(struct job_store *store, const machine_id *map)
{
    for (size_t i = 0; i < store->preflights.len; i++) {
        struct preflight *preflight = store->preflights.items[i]->preflight;
        collect_machines(store->preflights.items[i], preflight);
        for (size_t m = 0; m < preflight->members.len; m++) {
            struct paired *member = &preflight->members.items[m];
            member->machine = mapped(member->machine, map);
            for (int r = 0; r < PREFLIGHT_ROUNDS; r++)
                member->partners[r] = mapped(member->partners[r], map);
        }
        sort(preflight->members.items, preflight->members.len, sizeof *preflight->members.items,
             compare_members);
        for (size_t p = 0; p < preflight->pairs.len; p++)
            for (int e = 0; e < 2; e++)
                preflight->pairs.items[p].machines[e] = mapped(preflight->pairs.items[p].machines[e], map);
    }
    size_t kept = 0;
    for (size_t i = 0; i < store->testing.len; i++) {
        machine_id machine = mapped(store->testing.items[i], map);
        if (machine != MACHINE_NONE)
            store->testing.items[kept++] = machine;
    }
    store->testing.len = kept;
    sort(store->testing.items, kept, sizeof *store->testing.items, compare_machines);
}
