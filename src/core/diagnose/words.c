/* words.c - findings and their sentences for people. */
#include <stdlib.h>

#include "base/check.h"
#include "base/units.h"
#include "core/diagnose/judge.h"

enum {
    COUNTED_MAX = 16,
    SHOWN_MAX = 16
}; /* culprits whose indirect waits are counted; ranks named in a row */

static int compare_ranks(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

void ranks_describe(struct buf *out, const uint32_t *ranks, size_t count, size_t max)
{
    size_t at = 0, shown = 0;
    while (at < count && shown < max) {
        size_t end = at;
        while (end + 1 < count && ranks[end + 1] == ranks[end] + 1)
            end++;
        buf_printf(out, at ? ", %u" : "%u", ranks[at]);
        if (end > at)
            buf_printf(out, end == at + 1 ? ", %u" : "-%u", ranks[end]);
        shown++;
        at = end + 1;
    }
    CHECK(at <= count && shown <= max);
    if (at < count)
        buf_printf(out, " and %zu more", count - at);
}

static void describe_choice(struct buf *out, const uint32_t *ranks, size_t count)
{
    if (count == 2)
        buf_printf(out, "%u and %u", ranks[0], ranks[1]);
    else
        ranks_describe(out, ranks, count, SHOWN_MAX);
}

void ranks_describe_one(struct buf *out, const uint32_t *ranks, size_t count)
{
    buf_printf(out, "one of ");
    describe_choice(out, ranks, count);
}

void lane_describe(struct buf *out, const struct lane *lane, struct str op, int64_t seq)
{
    const struct group *group = lane->group;
    buf_add_str(out, lane->p2p && !str_is(op, "number") ? STR("send") : op);
    buf_printf(out, " %lld ", (long long)seq);
    if (lane->p2p)
        buf_printf(out, "from rank %u to rank %u ", lane->source, lane->target);
    buf_printf(out, "of group " STR_FORMAT " (", STR_ARG(group->name));
    if (group->desc.len)
        buf_printf(out, STR_FORMAT ", ", STR_ARG(group->desc));
    buf_printf(out, "%zu ranks)", group->lane.seats.len);
}

/* --- findings ------------------------------------------------------------------------------------- */

struct finding *finding_new(struct judge *judge, enum finding_kind kind, const struct lane *lane, int64_t seq,
                            struct str op)
{
    static const enum finding_action actions[] = {
        ACTION_RESTART,     ACTION_REPLACE,     ACTION_REPLACE,       ACTION_REPLACE,
        ACTION_RESTART,     ACTION_FIX_PROGRAM, ACTION_FIX_PROGRAM,   ACTION_FIX_PROGRAM,
        ACTION_FIX_PROGRAM, ACTION_FIX_PROGRAM, ACTION_CHECK_NETWORK, ACTION_RESTART,
    };
    _Static_assert(sizeof actions / sizeof *actions == FINDING_UNDECIDED + 1, "an action for each kind");
    struct diagnosis *out = judge->out;
    CHECK(kind <= FINDING_UNDECIDED && out->findings.len <= DIAGNOSIS_FINDINGS_MAX);
    if (out->findings.len == DIAGNOSIS_FINDINGS_MAX) {
        out->findings_left_out++;
        return NULL;
    }
    struct finding finding = {.kind = kind, .action = actions[kind], .seq = seq, .p2p = lane && lane->p2p};
    if (lane) {
        finding.group = arena_str(&out->arena, lane->group->name);
        finding.group_desc = arena_str(&out->arena, lane->group->desc);
        finding.group_size = lane->group->lane.seats.len;
        finding.op = arena_str(&out->arena, lane->p2p ? STR("send") : op);
    }
    vec_push(&out->findings, finding);
    return &vec_last(&out->findings);
}

void finding_set_ranks(struct judge *judge, struct finding *finding, const uint32_t *ranks, size_t count)
{
    CHECK(count > 0 && ranks);
    finding->ranks = ARENA_ARRAY(&judge->out->arena, uint32_t, count + 1);
    finding->rank_count = count;
    mem_copy(finding->ranks, ranks, count * sizeof *ranks);
    qsort(finding->ranks, count, sizeof *ranks, compare_ranks);
}

/* --- culprits ------------------------------------------------------------------------------------- */

/* Returns the operation at which the others wait: the oldest one open on them that the seat has not finished.
 * Sets the finding's times to the first and the last call of waiting ranks. */
static const struct op *awaited_op(const struct seat *seat, struct finding *finding)
{
    const struct lane *lane = seat->lane;
    const struct op *oldest = NULL;
    for (size_t i = lane->unknown; i < lane->seats.len; i++) {
        const struct seat *other = lane->seats.items[i];
        if (!other->first || other == seat || (seat->known && other->done < seat->done))
            continue;
        if (!oldest || other->first->seq < oldest->seq)
            oldest = other->first;
        int64_t created_ns = other->first->created_ns;
        if (!other->at_head || created_ns <= 0)
            continue;
        if (!finding->first_ns || created_ns < finding->first_ns)
            finding->first_ns = created_ns;
        if (created_ns > finding->last_ns)
            finding->last_ns = created_ns;
    }
    CHECK(finding->first_ns <= finding->last_ns && (!finding->first_ns || oldest));
    return oldest;
}

static void describe_stuck(struct buf *out, const struct seat *seat)
{
    const struct lane *lane = seat->lane;
    size_t done = 0, begun = 0;
    for (size_t i = lane->unknown; i < lane->seats.len; i++) {
        const struct seat *other = lane->seats.items[i];
        done += other->done >= seat->first->seq && other != seat;
        begun += other->first && other->first->seq == seat->first->seq && other->first->state == OP_STARTED;
    }
    buf_printf(out, "Rank %u has not finished ", seat->rank);
    lane_describe(out, lane, seat->first->name->text, seat->first->seq);
    if (done)
        buf_printf(out, ", which %zu of the others %s finished.", done, done == 1 ? "has" : "have");
    else
        buf_printf(out, ": it has not begun it, and %zu of the others %s.", begun,
                   begun == 1 ? "has" : "have");
    buf_printf(out, " It has called it and waits for no rank: its device or its stream makes no progress.");
}

static void describe_absent(struct buf *out, const struct rank_record *record, const struct seat *seat,
                            const struct op *op)
{
    buf_printf(out, "Rank %u never joined ", record->rank);
    lane_describe(out, seat->lane, op->name->text, op->seq);
    if (seat->known && seat->done > 0 && !seat->lane->p2p)
        buf_printf(out, "; the last that it called there is %lld", (long long)seat->done);
    buf_printf(out, record->dumped
                        ? ". Nothing is open on it, so its process hangs or has ended before that call."
                        : ". Its log names nothing that it waits for.");
}

static void describe_silent(struct buf *out, const struct rank_record *record, const struct seat *seat,
                            const struct op *op)
{
    buf_printf(out, "Rank %u left neither a dump nor a watchdog's line, and ", record->rank);
    buf_printf(out, seat->lane->unknown == 1 ? "it alone is missing at " : "others wait for it at ");
    lane_describe(out, seat->lane, op->name->text, op->seq);
    buf_add_char(out, '.');
}

static void describe_waiting(struct buf *out, const struct finding *finding)
{
    char first[40], last[40];
    if (!finding->waiting)
        return;
    buf_printf(out, " %zu %s for it", finding->waiting, finding->waiting == 1 ? "rank waits" : "ranks wait");
    if (finding->waiting_all > finding->waiting)
        buf_printf(out, " directly, %zu in all", finding->waiting_all);
    if (finding->first_ns) {
        time_format_micro(finding->first_ns, first);
        time_format_micro(finding->last_ns, last);
        buf_printf(out, "; what they wait at was called at %s", first);
        if (finding->last_ns > finding->first_ns)
            buf_printf(out, " and up to %s", last);
    }
    buf_add_char(out, '.');
}

void find_culprit(struct judge *judge, const struct rank_record *record)
{
    _Static_assert(FINDING_ABSENT == 0 && FINDING_STUCK == 1 && FINDING_SILENT == 2, "the order of advice");
    const struct seat *seat = record->blamed_at, *most = NULL;
    CHECK(record->culprit && seat->rank == record->rank && record->kind <= FINDING_SILENT);
    size_t direct, all;
    judge_count(judge, record->rank, judge->out->culprits.len <= COUNTED_MAX, &direct, &all, &most);
    if (most && record->kind == FINDING_ABSENT)
        seat = most;
    struct finding times = {0};
    const struct op *op = awaited_op(most && record->kind != FINDING_SILENT ? most : seat, &times);
    if (record->kind == FINDING_STUCK)
        op = seat->first;
    CHECK(op);
    struct finding *finding = finding_new(judge, record->kind, seat->lane, op->seq, op->name->text);
    if (!finding)
        return;
    struct buf BUF_CLEANUP out = {0};
    finding_set_ranks(judge, finding, &record->rank, 1);
    finding->waiting = direct;
    finding->waiting_all = all;
    finding->first_ns = times.first_ns;
    finding->last_ns = times.last_ns;
    if (record->kind == FINDING_STUCK)
        describe_stuck(&out, seat);
    else if (record->kind == FINDING_ABSENT)
        describe_absent(&out, record, seat, op);
    else
        describe_silent(&out, record, seat, op);
    describe_waiting(&out, finding);
    finding->evidence = arena_str(&judge->out->arena, buf_str(&out));
    static const char *const advice[] = {
        "Restart the process of rank %u; a stack trace of it, taken before, says what it does instead.",
        "Replace the machine of rank %u, and check its devices before it comes back.",
        "Restart rank %u; if its machine does not answer, replace it.",
    };
    finding->advice = arena_printf(&judge->out->arena, advice[record->kind], record->rank);
}

/* --- findings without a culprit ----------------------------------------------------------------------- */

static void set_members(struct judge *judge, struct finding *finding, const struct lane *lane)
{
    VEC(uint32_t) ranks = {0};
    for (size_t i = 0; i < lane->seats.len; i++)
        vec_push(&ranks, lane->seats.items[i]->rank);
    finding_set_ranks(judge, finding, ranks.items, ranks.len);
    vec_done(&ranks);
}

void find_network(struct judge *judge, struct lane *lane, int64_t seq, size_t at_it, size_t finished)
{
    const struct seat *first = lane_foremost(lane);
    CHECK(at_it > 0 && lane->unknown + at_it + finished <= lane->seats.len);
    struct finding *finding = finding_new(judge, FINDING_NETWORK, lane, seq, first->first->name->text);
    size_t begun = 0;
    if (!finding)
        return;
    struct buf BUF_CLEANUP out = {0}, advice = {0};
    set_members(judge, finding, lane);
    for (size_t i = lane->unknown; i < lane->unknown + at_it; i++)
        begun += lane->seats.items[i]->first->state == OP_STARTED;
    buf_printf(&out, "All %zu members joined ", lane->seats.len);
    lane_describe(&out, lane, first->first->name->text, seq);
    buf_printf(&out, finished ? ", and only %zu of them finished it." : ", and none has finished it.",
               finished);
    if (begun == 0)
        buf_printf(&out, " The dumps do not say who has begun it (TORCH_NCCL_ENABLE_TIMING=1 makes them).");
    else
        buf_printf(&out, " %zu have begun it.", begun);
    finding->evidence = arena_str(&judge->out->arena, buf_str(&out));
    buf_printf(&advice, "Check the network between the machines of ranks ");
    ranks_describe(&advice, finding->ranks, finding->rank_count, SHOWN_MAX);
    buf_printf(&advice, "; then their devices.");
    finding->advice = arena_str(&judge->out->arena, buf_str(&advice));
}

void find_undecided(struct judge *judge, const struct seat *seat, const uint32_t *ranks, size_t count)
{
    struct finding times = {0};
    const struct op *op = awaited_op(seat, &times);
    CHECK(op && count > 1);
    struct finding *finding = finding_new(judge, FINDING_UNDECIDED, seat->lane, op->seq, op->name->text);
    if (!finding)
        return;
    struct buf BUF_CLEANUP out = {0};
    finding_set_ranks(judge, finding, ranks, count);
    finding->first_ns = times.first_ns;
    finding->last_ns = times.last_ns;
    buf_printf(&out, "The rank that is missing is one of ");
    describe_choice(&out, finding->ranks, count);
    buf_printf(&out, ", at ");
    lane_describe(&out, seat->lane, op->name->text, op->seq);
    buf_printf(&out, ". None of them left a dump or a watchdog's line, and each may wait for another.");
    finding->evidence = arena_str(&judge->out->arena, buf_str(&out));
    finding->advice =
        STR("Look at these processes, or make them leave records; then restart the one that hangs.");
}

void find_deadlock(struct judge *judge, const uint32_t *circle, size_t count)
{
    CHECK(count > 1); /* no rank waits for itself */
    const struct op *head = flight_rank(judge->flight, circle[0])->head;
    struct lane lane = {
        .group = head->group, .p2p = head->p2p, .source = head->source, .target = head->target};
    struct finding *finding = finding_new(judge, FINDING_DEADLOCK, &lane, head->seq, head->name->text);
    if (!finding)
        return;
    struct buf BUF_CLEANUP out = {0};
    bool unsure = false;
    finding_set_ranks(judge, finding, circle, count);
    buf_printf(&out, "Ranks wait for each other in a circle: ");
    for (size_t i = 0; i < count && i < SHOWN_MAX / 2; i++) {
        const struct op *op = flight_rank(judge->flight, circle[i])->head;
        struct lane at = {.group = op->group, .p2p = op->p2p, .source = op->source, .target = op->target};
        unsure = unsure || !lane_numbered(&at);
        buf_printf(&out, i ? "; rank %u is at " : "rank %u is at ", circle[i]);
        lane_describe(&out, &at, op->name->text, op->seq);
        buf_printf(&out, " and waits for rank %u", circle[(i + 1) % count]);
    }
    buf_printf(&out, count > SHOWN_MAX / 2 ? "; and so on." : ".");
    finding->evidence = arena_str(&judge->out->arena, buf_str(&out));
    finding->advice =
        STR("Fix the program: these ranks call their groups in different orders; no machine is to blame.");
}
