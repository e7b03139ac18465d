/* answer.c - adds to a flight an agent's answer about one task of a running job: for each of the task's ranks
 * its flight record, if it has one, and the kernel's view of its process. The kernel's view explains a hang
 * where the records do not. */
#include <stdlib.h>

#include "base/check.h"
#include "doc/json.h"
#include "core/diagnose/judge.h"

enum { ANSWER_RANKS_MAX = 4096, WAIT_NAME_MAX = 64 };
/* Ranks of a healthy job do not make a step at the same moment: their steps may differ for this long. */
#define STEP_AGE_MS 5000

/* --- reading -------------------------------------------------------------------------------------- */

static bool is_name(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < 0x21 || text.data[i] > 0x7e)
            return false;
    return text.len <= WAIT_NAME_MAX;
}

static int take_rank(struct flight *flight, const struct doc *item, size_t index, struct error *error)
{
    const struct doc *number = doc_get(item, "rank"), *dump = doc_get(item, "flight");
    int64_t rank = doc_int(number, -1);
    if (!number || number->kind != DOC_INT || rank < 0 || rank >= FLIGHT_RANKS_MAX)
        return error_set(error, ERROR_INVALID, "ranks[%zu].rank: a number below %d is expected", index,
                         FLIGHT_RANKS_MAX);
    struct str state = doc_str(doc_get(item, "state"), STR("")),
               waits = doc_str(doc_get(item, "waitsIn"), STR(""));
    if (state.len > 1 || !is_name(state) || !is_name(waits))
        return error_set(error, ERROR_INVALID, "ranks[%zu]: state is one letter, waitsIn a function's name",
                         index);
    struct rank_record *record = flight_rank(flight, (uint32_t)rank);
    if (record->facts.known)
        return error_set(error, ERROR_EXISTS, "ranks[%zu]: rank %lld was said before", index,
                         (long long)rank);
    if (dump && dump->kind != DOC_NULL) {
        int code = flight_add_dump(flight, (uint32_t)rank, dump, error);
        if (code < 0)
            return code;
    }
    record->mentioned = true;
    record->facts = (struct rank_facts){
        .known = true,
        .state = state.len ? state.data[0] : 0,
        .waits_in = arena_str(&flight->arena, waits),
        .step = number_checked(doc_int(doc_get(item, "step"), -1)),
        .step_age_ms = doc_int(doc_get(item, "stepAgeMs"), 0),
    };
    flight->answered++;
    CHECK(flight->answered <= flight->ranks.len && record->rank == (uint32_t)rank);
    return 0;
}

int flight_add_answer(struct flight *flight, struct str text, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = (size_t)64 << 20};
    struct doc *answer = NULL;
    int code = json_parse(&arena, text, &answer, error);
    if (code < 0)
        return code;
    const struct doc *ranks = doc_get(answer, "ranks");
    if (!ranks || ranks->kind != DOC_ARRAY || ranks->array.len > ANSWER_RANKS_MAX)
        return error_set(error, ERROR_INVALID, "ranks: a list of at most %d is expected", ANSWER_RANKS_MAX);
    for (size_t i = 0; i < ranks->array.len && code == 0; i++)
        code = take_rank(flight, ranks->array.items[i], i, error);
    return code < 0 ? code : (int)ranks->array.len;
}

/* --- judging -------------------------------------------------------------------------------------- */

/* Whether the process cannot run: it is stopped, traced, dead, or in an uninterruptible sleep. */
static bool is_held(const struct rank_record *record)
{
    char state = record->facts.state;
    return record->facts.known &&
           (state == 'T' || state == 't' || state == 'Z' || state == 'X' || state == 'D');
}

static const char *state_word(char state)
{
    switch (state) {
    case 'T':
        return "stopped by a signal";
    case 't':
        return "stopped by a debugger";
    case 'D':
        return "waiting in the kernel, for a device or a file system";
    default:
        return "dead";
    }
}

static bool is_mute(const struct rank_record *record)
{
    return record->mentioned && !record->facts.known && !record->dumped && !record->logged;
}

struct steps {
    int64_t lowest, highest, age_ms; /* age: of the newest step of all ranks */
    size_t known, at_lowest;
};

static struct steps look_at_steps(const struct flight *flight)
{
    struct steps steps = {INT64_MAX, -1, INT64_MAX, 0, 0};
    for (size_t i = 0; i < flight->ranks.len; i++) {
        const struct rank_facts *facts = &flight->ranks.items[i]->facts;
        if (!facts->known || facts->step == NUMBER_NONE)
            continue;
        steps.known++;
        steps.age_ms = facts->step_age_ms < steps.age_ms ? facts->step_age_ms : steps.age_ms;
        steps.at_lowest = facts->step < steps.lowest ? 1 : steps.at_lowest + (facts->step == steps.lowest);
        steps.lowest = facts->step < steps.lowest ? facts->step : steps.lowest;
        steps.highest = facts->step > steps.highest ? facts->step : steps.highest;
    }
    CHECK(steps.at_lowest <= steps.known && (steps.at_lowest > 0) == (steps.known > 0));
    CHECK(steps.known == 0 || steps.lowest <= steps.highest);
    return steps;
}

static void find(struct judge *judge, const struct rank_record *record, enum finding_kind kind,
                 struct str evidence, const char *advice)
{
    CHECK(finding_blames(kind));
    struct finding *finding = finding_new(judge, kind, NULL, 0, STR(""));
    vec_push(&judge->out->culprits, record->rank);
    judge->out->hang = true;
    if (!finding)
        return;
    finding_set_ranks(judge, finding, &record->rank, 1);
    finding->evidence = arena_str(&judge->out->arena, evidence);
    finding->advice = str_from(advice);
}

static void describe_held(struct buf *text, const struct rank_record *record)
{
    CHECK(is_held(record));
    buf_printf(text, "The process of rank %u is %s", record->rank, state_word(record->facts.state));
    if (record->facts.waits_in.len)
        buf_printf(text, " (in " STR_FORMAT ")", STR_ARG(record->facts.waits_in));
}

/* Adds the kernel's view of the process to the evidence of each culprit that cannot run. */
static void explain_culprits(struct judge *judge)
{
    for (size_t i = 0; i < judge->out->findings.len; i++) {
        struct finding *finding = &judge->out->findings.items[i];
        CHECK(finding->rank_count > 0 && finding->ranks[0] < judge->flight->ranks.len);
        const struct rank_record *record = judge->flight->ranks.items[finding->ranks[0]];
        struct buf text BUF_CLEANUP = {0};
        if (!finding_blames(finding->kind) || !is_held(record))
            continue;
        describe_held(&text, record);
        buf_printf(&text, ". " STR_FORMAT, STR_ARG(finding->evidence));
        finding->evidence = arena_str(&judge->out->arena, buf_str(&text));
    }
}

static void find_held(struct judge *judge, const struct rank_record *record)
{
    struct buf text BUF_CLEANUP = {0};
    describe_held(&text, record);
    buf_printf(&text, ", and the others are not.");
    find(judge, record, FINDING_STOPPED, buf_str(&text),
         "Take its machine out and look at it; restart the job.");
}

static void find_mute(struct judge *judge, const struct rank_record *record, size_t answered)
{
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, "Of rank %u nothing was heard, of %zu others it was.", record->rank, answered);
    find(judge, record, FINDING_SILENT, buf_str(&text),
         "Take its machine out and look at it; restart the job.");
}

static void find_behind(struct judge *judge, const struct rank_record *record, const struct steps *steps)
{
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, "The last step of rank %u is %lld; %zu ranks have made step %lld.", record->rank,
               (long long)record->facts.step, steps->known - steps->at_lowest, (long long)steps->highest);
    find(judge, record, FINDING_BEHIND, buf_str(&text),
         "Restart its process; a stack trace of it, taken before, says what it does instead.");
}

/* Drops findings that a rank which cannot run refutes: the network is not at fault then, and among several
 * ranks without a record, that rank is the culprit. */
static void drop_doubts(struct judge *judge)
{
    size_t kept = 0;
    for (size_t i = 0; i < judge->out->findings.len; i++)
        if (judge->out->findings.items[i].kind != FINDING_NETWORK &&
            judge->out->findings.items[i].kind != FINDING_UNDECIDED)
            judge->out->findings.items[kept++] = judge->out->findings.items[i];
    judge->out->findings.len = kept;
}

static bool blames_program(const struct diagnosis *out)
{
    for (size_t i = 0; i < out->findings.len; i++)
        if (out->findings.items[i].action == ACTION_FIX_PROGRAM)
            return true;
    return false;
}

void judge_facts(struct judge *judge)
{
    const struct flight *flight = judge->flight;
    struct steps steps = look_at_steps(flight);
    size_t held = 0, mute = 0;
    explain_culprits(judge);
    if (flight->answered == 0 || judge->out->culprits.len > 0 || blames_program(judge->out))
        return;
    for (size_t i = 0; i < flight->ranks.len; i++) {
        held += is_held(flight->ranks.items[i]);
        mute += is_mute(flight->ranks.items[i]);
    }
    CHECK(held <= flight->answered && flight->answered + mute <= flight->ranks.len);
    /* A property that most ranks have distinguishes none of them. */
    bool by_held = held > 0 && held * 2 <= flight->answered;
    bool by_mute = !by_held && mute > 0 && mute * 2 <= flight->answered + mute;
    bool behind = !by_held && !by_mute && judge->out->findings.len == 0 && steps.lowest < steps.highest &&
                  steps.age_ms >= STEP_AGE_MS && steps.at_lowest * 2 <= steps.known;
    if (by_held || by_mute)
        drop_doubts(judge);
    for (size_t i = 0; i < flight->ranks.len; i++) {
        const struct rank_record *record = flight->ranks.items[i];
        if (by_held && is_held(record))
            find_held(judge, record);
        else if (by_mute && is_mute(record))
            find_mute(judge, record, flight->answered);
        else if (behind && record->facts.known && record->facts.step == steps.lowest)
            find_behind(judge, record, &steps);
    }
}
