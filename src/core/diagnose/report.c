/* report.c - judges a flight, and writes the diagnosis as text and as JSON. */
#include <stdlib.h>

#include "base/check.h"
#include "doc/json.h"
#include "base/units.h"
#include "core/diagnose/judge.h"

_Static_assert(FINDING_STOPPED < FINDING_BEHIND && FINDING_BEHIND + 1 == FINDING_ORDER,
               "the findings that blame a rank come first");

static int compare_findings(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;
    bool culprit_x = finding_blames(x->kind), culprit_y = finding_blames(y->kind);
    if (culprit_x != culprit_y)
        return culprit_x ? -1 : 1;
    if (x->rank_count && y->rank_count && x->ranks[0] != y->ranks[0])
        return x->ranks[0] < y->ranks[0] ? -1 : 1;
    int names = str_compare(x->group, y->group);
    return names ? names : x->seq < y->seq ? -1 : x->seq > y->seq;
}

void flight_judge(struct flight *flight, struct diagnosis *ret_diagnosis)
{
    struct diagnosis *out = ret_diagnosis;
    *out = (struct diagnosis){.groups = flight->groups.len, .operations = flight->operations};
    struct judge judge = {.flight = flight, .out = out};
    for (size_t i = 0; i < flight->ranks.len; i++)
        flight->ranks.items[i]->visit = 0;
    for (size_t i = 0; i < flight->groups.len; i++)
        flight->groups.items[i]->lane.visit = 0;
    judge_blame(&judge);
    judge_facts(&judge);
    judge_lanes_done(&judge);
    for (size_t i = 0; i < flight->ranks.len; i++) {
        const struct rank_record *record = flight->ranks.items[i];
        out->ranks += record->mentioned;
        out->dumped += record->dumped;
        out->logged += record->logged && !record->dumped;
        if (record->mentioned && record_silent(record))
            vec_push(&out->silent, record->rank);
    }
    CHECK(out->ranks == out->dumped + out->logged + out->silent.len && out->ranks <= flight->ranks.len);
    CHECK(out->findings.len <= DIAGNOSIS_FINDINGS_MAX);
    if (out->findings.len > 1)
        qsort(out->findings.items, out->findings.len, sizeof *out->findings.items, compare_findings);
    CHECK(out->hang || out->findings.len == 0);
}

void diagnosis_done(struct diagnosis *diagnosis)
{
    vec_done(&diagnosis->findings);
    vec_done(&diagnosis->culprits);
    vec_done(&diagnosis->silent);
    arena_done(&diagnosis->arena);
}

const char *finding_kind_name(enum finding_kind kind)
{
    static const char *const names[] = {"absent", "stuck", "silent", "stopped",  "behind", "order",
                                        "type",   "size",  "dtype",  "deadlock", "network",
                                        "undecided"};
    _Static_assert(sizeof names / sizeof *names == FINDING_UNDECIDED + 1, "a name for each kind");
    CHECK((unsigned)kind < sizeof names / sizeof *names);
    return names[kind];
}

const char *finding_action_name(enum finding_action action)
{
    static const char *const names[] = {"restart-process", "replace-machine", "fix-program", "check-network"};
    _Static_assert(sizeof names / sizeof *names == ACTION_CHECK_NETWORK + 1, "a name for each action");
    CHECK((unsigned)action < sizeof names / sizeof *names);
    return names[action];
}

void diagnosis_summary(struct buf *out, const struct diagnosis *diagnosis)
{
    bool program = false, network = false;
    const struct finding *undecided = NULL;
    for (size_t i = 0; i < diagnosis->findings.len; i++) {
        if (diagnosis->findings.items[i].kind == FINDING_UNDECIDED)
            undecided = &diagnosis->findings.items[i];
        program = program || diagnosis->findings.items[i].action == ACTION_FIX_PROGRAM;
        network = network || diagnosis->findings.items[i].action == ACTION_CHECK_NETWORK;
    }
    if (!diagnosis->hang)
        buf_printf(out, "No hang was found: every recorded operation is finished.");
    else if (diagnosis->culprits.len) {
        buf_printf(out, diagnosis->culprits.len == 1 ? "Rank " : "Ranks ");
        ranks_describe(out, diagnosis->culprits.items, diagnosis->culprits.len, 32);
        buf_printf(out, " made the job hang.");
    } else if (undecided) {
        buf_printf(out, "The rank that made the job hang is ");
        ranks_describe_one(out, undecided->ranks, undecided->rank_count);
        buf_printf(out, ": the records do not say which.");
    } else if (program) {
        buf_printf(out, "The program makes itself hang: no machine is to blame.");
    } else if (network) {
        buf_printf(out, "Operations that all ranks joined make no progress: the network, or a device.");
    } else {
        buf_printf(out, "Operations are open, but the records do not say for whom they wait.");
    }
}

static void put_ranks(struct json_writer *writer, const char *key, const uint32_t *ranks, size_t count)
{
    json_key(writer, key);
    json_begin_array(writer);
    for (size_t i = 0; i < count; i++)
        json_put_int(writer, ranks[i]);
    json_end_array(writer);
}

static void put_time(struct json_writer *writer, const char *key, int64_t time_ns)
{
    char text[40];
    if (time_ns <= 0)
        return;
    time_format_micro(time_ns, text);
    json_pair_text(writer, key, text);
}

static void put_finding(struct json_writer *writer, const struct finding *finding)
{
    json_begin_object(writer);
    json_pair_text(writer, "kind", finding_kind_name(finding->kind));
    json_pair_text(writer, "action", finding_action_name(finding->action));
    put_ranks(writer, "ranks", finding->ranks, finding->rank_count);
    json_key(writer, "group");
    json_begin_object(writer);
    json_pair_str(writer, "name", finding->group);
    json_pair_str(writer, "description", finding->group_desc);
    json_pair_int(writer, "size", (int64_t)finding->group_size);
    json_end_object(writer);
    json_pair_str(writer, "operation", finding->op);
    json_pair_int(writer, "sequence", finding->seq);
    json_pair_bool(writer, "pointToPoint", finding->p2p);
    if (finding_blames(finding->kind)) {
        json_pair_int(writer, "waiting", (int64_t)finding->waiting);
        json_pair_int(writer, "waitingInAll", (int64_t)finding->waiting_all);
    }
    put_time(writer, "firstWaitTime", finding->first_ns);
    put_time(writer, "lastWaitTime", finding->last_ns);
    json_pair_str(writer, "evidence", finding->evidence);
    json_pair_str(writer, "advice", finding->advice);
    json_end_object(writer);
}

void diagnosis_write_json(struct buf *out, const struct diagnosis *diagnosis)
{
    struct json_writer writer = {.out = out};
    struct buf BUF_CLEANUP summary = {0};
    diagnosis_summary(&summary, diagnosis);
    json_begin_object(&writer);
    json_pair_bool(&writer, "hang", diagnosis->hang);
    json_pair_str(&writer, "summary", buf_str(&summary));
    put_ranks(&writer, "culprits", diagnosis->culprits.items, diagnosis->culprits.len);
    json_key(&writer, "findings");
    json_begin_array(&writer);
    for (size_t i = 0; i < diagnosis->findings.len; i++)
        put_finding(&writer, &diagnosis->findings.items[i]);
    json_end_array(&writer);
    json_pair_int(&writer, "findingsLeftOut", (int64_t)diagnosis->findings_left_out);
    json_pair_int(&writer, "ranks", (int64_t)diagnosis->ranks);
    json_pair_int(&writer, "dumps", (int64_t)diagnosis->dumped);
    json_pair_int(&writer, "logs", (int64_t)diagnosis->logged);
    json_pair_int(&writer, "waiting", (int64_t)diagnosis->waiting);
    json_pair_int(&writer, "groups", (int64_t)diagnosis->groups);
    json_pair_int(&writer, "operations", (int64_t)diagnosis->operations);
    put_ranks(&writer, "silent", diagnosis->silent.items, diagnosis->silent.len);
    json_end_object(&writer);
}
