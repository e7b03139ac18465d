/* verdict.c - the verdict from the records of a JobSet's ranks, and its consequences. */
#include "core/diagnose/diagnose.h"
#include "core/hang/internal.h"

enum { TEXT_MAX = 1024, FINDINGS_TOLD_MAX = 4 };

/* Fault codes by finding. */
static const char *const codes[] = {
    [FINDING_ABSENT] = "hang/absent",   [FINDING_STUCK] = "hang/stuck",   [FINDING_SILENT] = "hang/silent",
    [FINDING_STOPPED] = "hang/stopped", [FINDING_BEHIND] = "hang/behind", [FINDING_NETWORK] = "hang/network",
    [FINDING_UNDECIDED] = "hang/undecided",
};

size_t hang_world_end(const struct hang_part *parts, size_t count, size_t first)
{
    CHECK(first <= count);
    size_t end = first;
    while (end < count && parts[end].world == parts[first].world)
        end++;
    return end;
}

/* Makes the ranks of an undecided finding culprits if all belong to one task, and so to one machine. */
static void decide_by_task(struct diagnosis *diagnosis, uint32_t per_task)
{
    CHECK(per_task > 0);
    for (size_t i = 0; i < diagnosis->findings.len; i++) {
        struct finding *finding = &diagnosis->findings.items[i];
        uint32_t first = finding->rank_count ? finding->ranks[0] : 0;
        uint32_t last = finding->rank_count ? finding->ranks[finding->rank_count - 1] : 0;
        if (finding->kind != FINDING_UNDECIDED || first / per_task != last / per_task)
            continue;
        finding->kind = FINDING_SILENT;
        for (size_t r = 0; r < finding->rank_count; r++) {
            size_t place = diagnosis->culprits.len;
            vec_push(&diagnosis->culprits, finding->ranks[r]);
            for (; place > 0 && diagnosis->culprits.items[place - 1] > finding->ranks[r]; place--)
                diagnosis->culprits.items[place] = diagnosis->culprits.items[place - 1];
            diagnosis->culprits.items[place] = finding->ranks[r];
        }
    }
}

struct flight *hang_judge_world(const struct hang_part *parts, size_t count, struct diagnosis *ret_diagnosis,
                                size_t *ret_bad, uint32_t *ret_per_task)
{
    struct flight *flight = flight_new();
    *ret_bad = 0;
    *ret_per_task = 1;
    for (size_t i = 0; i < count; i++) {
        struct error error;
        int ranks = parts[i].answered ? flight_add_answer(flight, parts[i].record, &error) : 0;
        *ret_bad += ranks < 0;
        if (ranks > (int)*ret_per_task)
            *ret_per_task = (uint32_t)ranks;
    }
    /* If some tasks have already succeeded, it is not known which ranks are missing. */
    if (count > 0 && parts[0].size == count && (uint64_t)count * *ret_per_task <= FLIGHT_RANKS_MAX)
        flight_expect(flight, (uint32_t)count * *ret_per_task, NULL);
    flight_judge(flight, ret_diagnosis);
    decide_by_task(ret_diagnosis, *ret_per_task);
    return flight;
}

/* Returns the task of a rank, or NULL if there is none. Ranks of one task are consecutive, as torchrun
 * numbers them. */
static const struct hang_part *part_of(const struct hang_part *parts, size_t count, uint32_t rank,
                                       uint32_t per_task)
{
    CHECK(per_task > 0);
    size_t at = sorted_place(count, i, parts[i].rank, rank / per_task); /* by rank (collect.c) */
    return at < count && parts[at].rank == rank / per_task ? &parts[at] : NULL;
}

/* --- consequences --------------------------------------------------------------------------------------- */

struct judging {
    struct step *step;
    struct hang_watch *watch;
    struct hang_order *order;
    VEC(struct hang_blame) blamed;
    struct buf text;
    size_t told;
};

static struct task *living(const struct judging *judging, const struct hang_part *part)
{
    struct task *task = part ? jobs_find_task(judging->step->jobs, part->task) : NULL;
    return task && !task_ended(task->state) && task->machine != MACHINE_NONE ? task : NULL;
}

static void blame(struct judging *judging, struct task *task, const struct finding *finding)
{
    CHECK((size_t)finding->kind < sizeof(codes) / sizeof(*codes) && codes[finding->kind]);
    bool known = judging->blamed.len >= HANG_BLAMED_MAX;
    for (size_t i = 0; i < judging->blamed.len && !known; i++)
        known = judging->blamed.items[i].task == task;
    if (known)
        return;
    struct str evidence = arena_str(&judging->step->hangs->order, finding->evidence);
    struct hang_blame one = {task, codes[finding->kind], str_head_utf8(evidence, SIGNAL_EVIDENCE_MAX)};
    vec_push(&judging->blamed, one);
}

static enum hang_verdict verdict_of(const struct finding *finding)
{
    if (finding_blames(finding->kind))
        return HANG_MACHINES;
    return finding->action == ACTION_FIX_PROGRAM ? HANG_PROGRAM : HANG_NETWORK;
}

static void take_findings(struct judging *judging, const struct diagnosis *diagnosis,
                          const struct hang_part *parts, size_t count, uint32_t per_task)
{
    struct hang_order *order = judging->order;
    for (size_t i = 0; i < diagnosis->findings.len; i++) {
        const struct finding *finding = &diagnosis->findings.items[i];
        if (verdict_of(finding) != order->verdict)
            continue;
        if (judging->told++ < FINDINGS_TOLD_MAX)
            buf_printf(&judging->text, " " STR_FORMAT, STR_ARG(finding->evidence));
        for (size_t r = 0; r < finding->rank_count; r++) {
            struct task *task = living(judging, part_of(parts, count, finding->ranks[r], per_task));
            if (task && !order->first)
                order->first = task;
            if (task && order->verdict != HANG_PROGRAM)
                blame(judging, task, finding);
        }
    }
}

/* Returns the gravest verdict, because culprits explain the other findings. If most ranks are to blame,
 * nothing is explained. */
static enum hang_verdict weigh(const struct diagnosis *diagnosis)
{
    enum hang_verdict verdict = HANG_NOT_FOUND;
    if (diagnosis->culprits.len > 0)
        return diagnosis->culprits.len * 2 <= diagnosis->ranks ? HANG_MACHINES : HANG_NOT_FOUND;
    for (size_t i = 0; i < diagnosis->findings.len; i++) {
        enum hang_verdict one = verdict_of(&diagnosis->findings.items[i]);
        if (verdict == HANG_NOT_FOUND || one < verdict)
            verdict = one;
    }
    return verdict;
}

static void judge(struct judging *judging)
{
    const struct hang_watch *watch = judging->watch;
    struct hang_order *order = judging->order;
    for (size_t first = 0; first < watch->part_count;) {
        size_t end = hang_world_end(watch->parts, watch->part_count, first), bad;
        const struct hang_part *parts = &watch->parts[first];
        struct diagnosis diagnosis;
        uint32_t per_task;
        struct flight *flight = hang_judge_world(parts, end - first, &diagnosis, &bad, &per_task);
        enum hang_verdict verdict = weigh(&diagnosis);
        bool graver =
            order->verdict == HANG_NOT_FOUND || (verdict != HANG_NOT_FOUND && verdict < order->verdict);
        if (graver) {
            order->verdict = verdict;
            order->first = NULL;
            vec_clear(&judging->blamed);
            buf_clear(&judging->text);
            diagnosis_summary(&judging->text, &diagnosis);
            judging->told = 0;
        }
        if (verdict == order->verdict)
            take_findings(judging, &diagnosis, parts, end - first, per_task);
        diagnosis_done(&diagnosis);
        flight_free(flight);
        first = end;
    }
}

static struct task *first_living(const struct judging *judging)
{
    for (size_t i = 0; i < judging->watch->part_count; i++) {
        struct task *task = living(judging, &judging->watch->parts[i]);
        if (task)
            return task;
    }
    return NULL;
}

static bool own_limit_passed(const struct hang_watch *watch, const struct jobset *jobset)
{
    return !watch->asked && watch->stepped_ns && hang_own_limit(jobset) > 0;
}

/* Concludes one diagnosis and fills in its order. Returns false if the diagnosis has no consequences. */
static bool conclude(struct step *step, struct hang_watch *watch, struct hang_order *order)
{
    struct jobset *jobset = jobs_find_uid(step->jobs, watch->jobset);
    struct judging judging = {.step = step, .watch = watch, .order = order};
    *order = (struct hang_order){.jobset = jobset, .verdict = HANG_NOT_FOUND};
    judge(&judging);
    bool late = !jobset || (!watch->asked && watch->attempt != jobset->attempt);
    struct str text = str_head_utf8(buf_str(&judging.text), TEXT_MAX);
    watch->text = arena_str(&watch->arena, text);
    watch->verdict = late ? HANG_GOES_ON : order->verdict;
    watch->judged_ns = step->now_ns;
    order->text = arena_str(&step->hangs->order, text);
    order->blamed_count = judging.blamed.len;
    order->blamed = ARENA_ARRAY(&step->hangs->order, struct hang_blame, judging.blamed.len + 1);
    mem_copy(order->blamed, judging.blamed.items, judging.blamed.len * sizeof *order->blamed);
    order->first = order->first ? order->first : first_living(&judging);
    order->restart = jobset && own_limit_passed(watch, jobset);
    vec_done(&judging.blamed);
    buf_done(&judging.text);
    watch->unexplained += !watch->asked && !late && order->verdict == HANG_NOT_FOUND;
    CHECK(order->blamed_count <= HANG_BLAMED_MAX);
    bool asked = watch->asked;
    hang_go_on(step, watch, jobset);
    if (jobset)
        step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    return !late && !asked;
}

bool hangs_next_order(struct step *step, struct hang_order *ret_order)
{
    struct hangs *hangs = step->hangs;
    while (hangs->to_judge.len > 0) {
        struct hang_watch *watch = hang_of(hangs, vec_pop(&hangs->to_judge));
        if (watch && watch->phase == HANG_COLLECTING && conclude(step, watch, ret_order))
            return true;
    }
    return false;
}
