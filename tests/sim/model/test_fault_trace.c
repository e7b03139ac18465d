/* Histories of faults: what is refused, a small one by hand, and a year of 400 servers in ../shared/data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "doc/json.h"
#include "sim/model/ettr_forms.h"
#include "sim/model/fault_trace.h"

static void near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("found %.6f, expected %.6f +- %g", found, expected, tolerance);
}

static void event(struct buf *text, const char *machine, double days, const char *type, const char *level)
{
    buf_printf(text,
               "%s{\"node_id\":\"%s\",\"event_time\":%.4f,\"event_type\":\"fault_%s\",\"fault_type\":{"
               "\"Level\":\"%s\",\"Class\":\"GPU\",\"Desc\":\"d\"}}",
               text->len > 1 ? ",\n" : "", machine, days, type, level);
}

/* --- what is refused ------------------------------------------------------------------------------------ */

#define EVENT(time, type, more)                                                                              \
    "{\"node_id\":\"a\",\"event_time\":" time ",\"event_type\":\"" type "\",\"fault_type\":{\"Level\":"      \
    "\"Hardware Failure\",\"Class\":\"GPU\",\"Desc\":\"d\"}" more "}"

static void bad_histories_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{}", "1:1: expected an array of events"},
        {"[]", "1:1: expected an array of events"},
        {"[3]", "1:2: expected an event, an object with node_id"},
        {"[\n {\"node_id\": 3}]", "2:2: node_id: expected a string"},
        {"[" EVENT("-1", "fault_start", "") "]", "1:2: event_time: expected days, a number from 0"},
        {"[" EVENT("\"1\"", "fault_start", "") "]", "1:2: event_time: expected days, a number from 0"},
        {"[" EVENT("1", "fault", "") "]", "1:2: event_type: expected fault_start or fault_end"},
        {"[" EVENT("1", "fault_end", "") "]",
         "1:2: fault_end: no fault of this type has begun on the machine"},
        {"[" EVENT("2", "fault_start", "") ",\n" EVENT("1", "fault_end", "") "]",
         "2:1: event_time: expected events in the order of time, this one is before the last"},
        {"[{\"node_id\":\"a\",\"event_time\":1,\"event_type\":\"fault_start\"}]",
         "1:2: fault_type: expected strings Level, Class and Desc"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena ARENA_CLEANUP arena = {0};
        struct doc *doc;
        struct fault_trace trace = {.count = 77};
        struct error error = {0};
        assert_int_equal(json_parse(&arena, str_from(cases[i].text), &doc, &error), 0);
        assert_int_equal(fault_trace_read(&arena, doc, &trace, &error), ERROR_INVALID);
        assert_string_equal(error.text, cases[i].why);
        assert_int_equal(trace.count, 77);
    }
}

static void read_text(struct arena *arena, struct str text, struct fault_trace *trace)
{
    struct doc *doc;
    struct error error = {0};
    if (json_parse(arena, text, &doc, &error) < 0 || fault_trace_read(arena, doc, trace, &error) < 0)
        fail_msg("%s", error.text);
}

static void limits_hold(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct buf BUF_CLEANUP text = {0};
    struct doc *doc;
    struct fault_trace trace;
    struct error error = {0};
    buf_add_char(&text, '[');
    for (int i = 0; i <= FAULT_TRACE_OPEN_MAX; i++)
        event(&text, "a", i, "start", "x");
    buf_add_char(&text, ']');
    assert_int_equal(json_parse(&arena, buf_str(&text), &doc, &error), 0);
    assert_int_equal(fault_trace_read(&arena, doc, &trace, &error), ERROR_LIMIT);
    arena.limit_bytes = arena.used_bytes + 100;
    assert_int_equal(fault_trace_read(&arena, doc, &trace, &error), ERROR_LIMIT);
}

/* --- a small one ---------------------------------------------------------------------------------------- */

/* Four machines: a is down from 1 to 3 by two faults that overlap, b from 2 to 6, the end of the trace. */
static void read_small(struct arena *arena, struct fault_trace *trace)
{
    struct buf BUF_CLEANUP text = {0};
    buf_add_char(&text, '[');
    event(&text, "a", 1, "start", "Hardware Failure");
    event(&text, "a", 1.5, "start", "Software Failure");
    event(&text, "b", 2, "start", "Hardware Failure");
    event(&text, "a", 2, "end", "Software Failure");
    event(&text, "a", 3, "end", "Hardware Failure");
    event(&text, "c", 6, "start", "Hardware Failure");
    buf_add_char(&text, ']');
    read_text(arena, arena_str(arena, buf_str(&text)), trace);
}

static void facts_by_hand(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct fault_trace trace;
    struct fault_trace_facts facts;
    read_small(&arena, &trace);
    assert_int_equal(trace.count, 4);
    assert_int_equal(trace.machines, 3);
    assert_int_equal(trace.cause_count, 1);
    fault_trace_facts(&trace, 4, 10, &facts);
    near(facts.rate, 100, 1e-9);
    near(facts.hardware_rate, 75, 1e-9);
    assert_int_equal(facts.most, 2);
    near(facts.none, .25, 1e-12);
    near(facts.top_5, 1, 1e-12);
    near(facts.repair_days, (2 + .5 + 4 + 0) / 4, 1e-12);
    near(facts.repair_max_days, 4, 1e-12);
    near(facts.gap_days, 5.0 / 3, 1e-12);
    near(facts.down, (2 + 4) / 5.0, 1e-12); /* a for two days, b for four, in five */
    assert_int_equal(facts.down_max, 2);
    assert_int_equal(facts.down_p50, 1);
}

static void a_replay_by_hand(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct fault_trace trace;
    struct fault_replay replay;
    read_small(&arena, &trace);
    /* Three of four: a is of the job or is its spare; b is lost at 2, when two are up until 3. The job runs
     * from 3 on, and loses c at 6 if it has the day's last machine. */
    struct fault_replay_terms terms = {
        .machines = 4, .needed = 3, .interval_days = .25, .restart_days = .5, .seed = 1};
    fault_trace_replay(&trace, &terms, &replay);
    near(replay.waiting, 1 / 5.0, 1e-12);
    assert_true(replay.interruptions >= 1);
    /* From 1 to 2 and from 3 to 6, less a restart each. */
    near(replay.ettr, (.5 + 2.5) / 5, 1e-12);
    terms.needed = 4;
    fault_trace_replay(&trace, &terms, &replay);
    near(replay.waiting, 1, 1e-12);
    near(replay.ettr, 0, 1e-12);
}

/* --- a real one ----------------------------------------------------------------------------------------- */

static bool read_real(struct arena *arena, struct fault_trace *trace)
{
    FILE *file = fopen("../shared/data/hbd-fault-trace.json", "re");
    struct buf BUF_CLEANUP text = {0};
    char part[4096];
    if (!file) {
        print_message("skip: no ../shared/data/hbd-fault-trace.json\n");
        return false;
    }
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;)
        buf_add(&text, part, got);
    fclose(file);
    read_text(arena, arena_str(arena, buf_str(&text)), trace);
    return true;
}

/* Acceptance target 13. */
static void facts_of_400_servers(void **state)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct fault_trace trace;
    struct fault_trace_facts facts;
    if (!read_real(&arena, &trace))
        skip();
    fault_trace_facts(&trace, 400, 348, &facts);
    assert_int_equal(trace.count, 584);
    assert_int_equal(trace.machines, 231);
    assert_int_equal(facts.hardware, 298);
    near(trace.first_days, 3.8955, 1e-9);
    near(trace.last_days, 348.9798, 1e-9);
    near(facts.rate, 4.195, 5e-4);
    near(facts.rate_low, 3.862, 5e-4);
    near(facts.rate_high, 4.550, 5e-4);
    near(facts.hardware_rate, 2.141, 5e-4);
    assert_int_equal(facts.most, 14);
    assert_int_equal(facts.with_five, 33);
    near(facts.top_5, .079, 5e-4);
    near(facts.top_20, .245, 5e-4);
    near(facts.top_40, .409, 5e-4);
    near(facts.variance_to_mean, 2.57, 5e-3);
    near(facts.none, .422, 6e-4);
    near(facts.gap_days, .592, 5e-4);
    near(facts.gap_cv, 1.76, 5e-3);
    assert_int_equal(facts.together, 55);
    near(facts.repair_days, 5.535, 5e-4);
    near(facts.repair_median_days, .850, 5e-4);
    near(facts.repair_p90_days, 13.0, .05);
    near(facts.repair_max_days, 131.0, .05);
    near(facts.down, 9.36, 5e-3);
    assert_int_equal(facts.down_p50, 7);
    assert_int_equal(facts.down_p95, 26);
    assert_int_equal(facts.down_p99, 31);
    assert_int_equal(facts.down_max, 35);
    uint32_t most = 0;
    for (uint32_t i = 0; i < trace.cause_count; i++)
        most = trace.causes[i].faults > most ? trace.causes[i].faults : most;
    near(100.0 * most / trace.count, 27.05, 5e-3); /* GPU */
}

static void jobs_of_400_servers(void **state)
{
    static const struct {
        uint32_t needed;
        double ettr, waiting;
    } rows[] = {{320, .983, 0}, {360, .978, 0}, {376, .922, .056}, {392, .601, .38}};
    struct arena ARENA_CLEANUP arena = {0};
    struct fault_trace trace;
    if (!read_real(&arena, &trace))
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint64_t seed = 1; seed <= 20; seed++) {
            struct fault_replay_terms terms = {.machines = 400,
                                               .needed = rows[i].needed,
                                               .interval_days = 60 / 1440.0,
                                               .restart_days = 5 / 1440.0,
                                               .seed = seed};
            struct fault_replay replay;
            fault_trace_replay(&trace, &terms, &replay);
            near(replay.ettr, rows[i].ettr, .003);
            near(replay.waiting, rows[i].waiting, .005);
            if (rows[i].needed == 320) /* the reference counts 295 */
                assert_in_range(replay.interruptions, 255, 305);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_histories_are_refused_with_their_place),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(facts_by_hand),
        cmocka_unit_test(a_replay_by_hand),
        cmocka_unit_test(facts_of_400_servers),
        cmocka_unit_test(jobs_of_400_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
