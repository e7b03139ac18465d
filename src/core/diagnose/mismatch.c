/* mismatch.c - whether the members of a group agree on one of its operations. */
#include "base/check.h"
#include "core/diagnose/judge.h"

/* A member's call of the operation. */
struct voter {
    const struct seat *seat;
    const struct op *op;
};
typedef VEC(struct voter) voters;
enum aspect { ASPECT_NAME, ASPECT_INPUT, ASPECT_OUTPUT, ASPECT_INPUT_TYPE, ASPECT_OUTPUT_TYPE, ASPECTS };

static bool contains(struct str text, const char *part)
{
    return text.len && memmem(text.data, text.len, part, strlen(part));
}

/* Returns the aspect of a call that must be equal on all members. Sizes compare by number of elements,
 * because shapes may differ. */
static int64_t value_of(const struct op *op, enum aspect aspect)
{
    struct str name = op->name->text;
    bool exchange = contains(name, "all_to_all") || contains(name, "alltoall");
    switch (aspect) {
    case ASPECT_NAME:
        return (int64_t)(uintptr_t)op->name;
    case ASPECT_INPUT:
        return !op->input || exchange || str_is(name, "scatter") ? -1 : op->input->elements;
    case ASPECT_OUTPUT:
        return !op->output || exchange || str_is(name, "gather") ? -1 : op->output->elements;
    case ASPECT_INPUT_TYPE:
        return str_is(name, "scatter") ? 0 : (int64_t)(uintptr_t)op->input_type;
    case ASPECT_OUTPUT_TYPE:
        return str_is(name, "gather") ? 0 : (int64_t)(uintptr_t)op->output_type;
    case ASPECTS:
        break;
    }
    CHECK_UNREACHABLE();
}

/* Finds the most frequent value (the first of equals) by Boyer and Moore's vote and a count. Returns false if
 * all agree. */
static bool majority(const voters *all, enum aspect aspect, int64_t *ret_value, size_t *ret_count)
{
    CHECK(all->len > 0);
    int64_t leader = value_of(all->items[0].op, aspect), first = leader;
    size_t lead = 0, count = 0;
    bool differ = false;
    for (size_t i = 0; i < all->len; i++) {
        int64_t value = value_of(all->items[i].op, aspect);
        differ = differ || value != first;
        if (lead == 0)
            leader = value;
        lead = value == leader ? lead + 1 : lead - 1;
    }
    for (size_t i = 0; i < all->len; i++)
        count += value_of(all->items[i].op, aspect) == leader;
    CHECK(count > 0 && (count < all->len) == differ);
    *ret_value = leader;
    *ret_count = count;
    return differ;
}

/* Whether the rank has called an operation of this name on the lane after `seq`. */
static bool calls_later(struct judge *judge, const struct voter *voter, const struct term *name)
{
    struct rank_record *record = flight_rank(judge->flight, voter->seat->rank);
    for (size_t i = 0; i < record->ops.len; i++) {
        const struct op *op = &record->ops.items[i];
        if (op->seat == voter->op->seat && !op->p2p && op->name == name && op->seq > voter->op->seq)
            return true;
    }
    return false;
}

static void describe_value(struct buf *out, const struct op *op, enum aspect aspect)
{
    const struct term *term = aspect == ASPECT_NAME         ? op->name
                              : aspect == ASPECT_INPUT      ? op->input
                              : aspect == ASPECT_OUTPUT     ? op->output
                              : aspect == ASPECT_INPUT_TYPE ? op->input_type
                                                            : op->output_type;
    struct str text = term ? term->text : STR("nothing");
    buf_add_str(out, str_head_utf8(text, 200));
}

static void describe(struct judge *judge, struct finding *finding, const struct lane *lane,
                     const struct voter *odd, const struct voter *common, size_t odd_count,
                     size_t common_count, enum aspect aspect)
{
    static const char *const what[] = {"", "an input of ", "an output of ", "an input of type ",
                                       "an output of type "};
    _Static_assert(sizeof what / sizeof *what == ASPECTS, "words for each aspect");
    struct buf BUF_CLEANUP out = {0};
    CHECK(aspect < ASPECTS && odd_count > 0 && common_count > 0);
    bool even = odd_count >= common_count;
    buf_printf(&out, odd_count == 1 ? "Rank " : "Ranks ");
    ranks_describe(&out, finding->ranks, finding->rank_count, 16);
    buf_printf(&out, odd_count == 1 ? " calls %s" : " call %s", what[aspect]);
    describe_value(&out, odd->op, aspect);
    buf_printf(&out, " as ");
    lane_describe(&out, lane, aspect == ASPECT_NAME ? STR("number") : odd->op->name->text, odd->op->seq);
    buf_printf(&out, ", the other %zu %s", common_count, what[aspect]);
    describe_value(&out, common->op, aspect);
    buf_printf(&out, even ? "; there is no majority." : ".");
    finding->evidence = arena_str(&judge->out->arena, buf_str(&out));
    finding->advice = STR("Fix the program; no machine is to blame.");
}

/* Makes a finding about the members that differ from the majority, or about all members if no value has a
 * majority. */
static void find_odd(struct judge *judge, const struct lane *lane, const voters *all, enum aspect aspect,
                     int64_t common, size_t count)
{
    static const enum finding_kind kinds[] = {FINDING_TYPE, FINDING_SIZE, FINDING_SIZE, FINDING_DTYPE,
                                              FINDING_DTYPE};
    _Static_assert(sizeof kinds / sizeof *kinds == ASPECTS, "a kind for each aspect");
    const struct voter *odd = NULL, *usual = NULL;
    VEC(uint32_t) ranks = {0};
    for (size_t i = 0; i < all->len; i++) {
        const struct voter *voter = &all->items[i];
        bool same = value_of(voter->op, aspect) == common;
        if (same && !usual)
            usual = voter;
        if (!same && !odd)
            odd = voter;
        if (!same)
            vec_push(&ranks, voter->seat->rank);
    }
    CHECK(odd && usual);
    enum finding_kind kind = kinds[aspect];
    if (aspect == ASPECT_NAME && calls_later(judge, odd, usual->op->name) &&
        calls_later(judge, usual, odd->op->name))
        kind = FINDING_ORDER;
    size_t odd_count = ranks.len;
    CHECK(odd_count + count == all->len);
    for (size_t i = 0; odd_count >= count && i < all->len; i++)
        if (value_of(all->items[i].op, aspect) == common)
            vec_push(&ranks, all->items[i].seat->rank);
    struct finding *finding = finding_new(judge, kind, lane, odd->op->seq, usual->op->name->text);
    if (finding) {
        finding_set_ranks(judge, finding, ranks.items, odd_count);
        describe(judge, finding, lane, odd, usual, odd_count, count, aspect);
        finding_set_ranks(judge, finding, ranks.items, ranks.len);
    }
    vec_done(&ranks);
}

static bool compare_votes(struct judge *judge, const struct lane *lane, const voters *all)
{
    for (enum aspect aspect = ASPECT_NAME; aspect < ASPECTS; aspect++) {
        int64_t common;
        size_t count;
        bool differ = majority(all, aspect, &common, &count);
        if (!differ)
            continue;
        find_odd(judge, lane, all, aspect, common, count);
        return true;
    }
    return false;
}

/* Compares the sums of an exchange, where everything that is sent must be received. A difference proves a
 * mistake, but not which member made it. */
static bool compare_exchange(struct judge *judge, const struct lane *lane, const voters *all)
{
    CHECK(!lane->p2p && all->len > 1);
    const struct op *op = all->items[0].op;
    int64_t sent = 0, received = 0;
    if (all->len != lane->seats.len ||
        !(contains(op->name->text, "all_to_all") || contains(op->name->text, "alltoall")))
        return false;
    for (size_t i = 0; i < all->len; i++) {
        const struct op *at = all->items[i].op;
        if (!at->input || !at->output || __builtin_add_overflow(sent, at->input->elements, &sent) ||
            __builtin_add_overflow(received, at->output->elements, &received))
            return false;
    }
    if (sent == received)
        return false;
    struct finding *finding = finding_new(judge, FINDING_SIZE, lane, op->seq, op->name->text);
    if (!finding)
        return true;
    struct buf BUF_CLEANUP out = {0};
    VEC(uint32_t) ranks = {0};
    for (size_t i = 0; i < all->len; i++)
        vec_push(&ranks, all->items[i].seat->rank);
    finding_set_ranks(judge, finding, ranks.items, ranks.len);
    vec_done(&ranks);
    lane_describe(&out, lane, op->name->text, op->seq);
    buf_printf(&out, ": the members send %lld elements and receive %lld.", (long long)sent,
               (long long)received);
    finding->evidence = arena_str(&judge->out->arena, buf_str(&out));
    finding->advice = STR("Fix the program: split sizes must agree on all members; no machine is to blame.");
    return true;
}

/* In a pair, what one end sends must be what the other receives. */
static bool compare_pair(struct judge *judge, const struct lane *lane, const voters *all)
{
    CHECK(lane->p2p && all->len <= lane->seats.len);
    const struct voter *send = NULL, *receive = NULL;
    for (size_t i = 0; i < all->len; i++)
        *(all->items[i].seat->rank == lane->source ? &send : &receive) = &all->items[i];
    if (!send || !receive || !send->op->input || !receive->op->output || send->op->seq != receive->op->seq)
        return false; /* their numbers differ, so the two calls may not belong together */
    bool size = send->op->input->elements != receive->op->output->elements;
    bool type =
        send->op->input_type && receive->op->output_type && send->op->input_type != receive->op->output_type;
    if (!size && !type)
        return false;
    struct finding *finding =
        finding_new(judge, size ? FINDING_SIZE : FINDING_DTYPE, lane, send->op->seq, send->op->name->text);
    if (!finding)
        return true;
    struct buf BUF_CLEANUP out = {0};
    uint32_t ranks[] = {lane->source, lane->target};
    finding_set_ranks(judge, finding, ranks, 2);
    buf_printf(&out, "Rank %u sends ", lane->source);
    describe_value(&out, send->op, size ? ASPECT_INPUT : ASPECT_INPUT_TYPE);
    buf_printf(&out, " and rank %u receives ", lane->target);
    describe_value(&out, receive->op, size ? ASPECT_OUTPUT : ASPECT_OUTPUT_TYPE);
    buf_printf(&out, " as ");
    lane_describe(&out, lane, STR("number"), send->op->seq);
    buf_add_char(&out, '.');
    finding->evidence = arena_str(&judge->out->arena, buf_str(&out));
    finding->advice = STR("Fix the program; no machine is to blame.");
    return true;
}

/* Returns the member's call with this number; for a coalesced call, the part with this index; NULL: none. */
static const struct op *op_at(struct judge *judge, const struct lane *lane, const struct seat *seat,
                              int64_t seq, size_t part)
{
    if (lane->p2p)
        return part == 0 ? seat->first : NULL;
    const struct rank_record *record = flight_rank(judge->flight, seat->rank);
    for (size_t i = 0; i < record->ops.len; i++) {
        const struct op *op = &record->ops.items[i];
        if (op->seat == seat && !op->p2p && op->seq == seq && part-- == 0)
            return op;
    }
    return NULL;
}

/* Appends the call of each known member; returns how many members called the operation. */
static size_t collect_votes(struct judge *judge, const struct lane *lane, int64_t seq, size_t part,
                            voters *all)
{
    CHECK(all->len == 0 && lane->unknown <= lane->seats.len);
    for (size_t i = lane->unknown; i < lane->seats.len; i++) {
        struct voter voter = {lane->seats.items[i], op_at(judge, lane, lane->seats.items[i], seq, part)};
        /* A watchdog's line shows only that the operation was called, and has no arguments to compare. */
        if (voter.op && (voter.op->input || voter.op->output || lane->p2p))
            vec_push(all, voter);
    }
    CHECK(all->len <= lane->seats.len - lane->unknown);
    return all->len;
}

bool judge_mismatch(struct judge *judge, struct lane *lane, int64_t seq)
{
    voters all = {0};
    bool found = false;
    for (size_t part = 0; !found && collect_votes(judge, lane, seq, part, &all) > 1; part++) {
        found = lane->p2p ? compare_pair(judge, lane, &all)
                          : compare_votes(judge, lane, &all) || compare_exchange(judge, lane, &all);
        vec_clear(&all);
    }
    vec_done(&all);
    return found;
}
