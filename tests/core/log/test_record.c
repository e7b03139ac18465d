/* Events as log records: every kind goes there and back; what an older or newer version wrote. */
#include "core/harness.h"

#include "core/log/record.h"
#include "proto/log.pb-c.h"

static struct task_report reports[] = {
    {.kind = REPORT_STARTED, .task = 5, .started_ns = 1, .pid = 77},
    {.kind = REPORT_EXITED,
     .task = 6,
     .exit_code = -1,
     .signal = 9,
     .oom = true,
     .fenced = true,
     .started_ns = 1,
     .finished_ns = -2},
    {.kind = REPORT_START_FAILED, .task = UINT64_MAX, .message = {"no such file", 12}},
    {.kind = REPORT_SHARD_SAVED, .task = 7, .step = INT64_MAX},
    {.kind = REPORT_PEER_GONE, .task = 8, .peer_rank = UINT32_MAX},
};
enum { REPORTS = sizeof(reports) / sizeof(*reports) };

enum { EVENT_LAST = EVENT_LEVEL };

static void of_levels(struct event events[EVENT_LAST + 1])
{
    events[EVENT_BOOT].boot.place = STR("10.0.0.1:7070");
    events[EVENT_LEVEL].level = LEVEL_NEWEST;
}

static struct write_event any_write(void)
{
    return (struct write_event){.verb = WRITE_DELETE,
                                .object = OBJECT_POD,
                                .namespace_ = STR("ns"),
                                .name = STR("name"),
                                .body = STR("{}"),
                                .if_version = 17,
                                .uid_text = STR("uid"),
                                .grace_s = -1,
                                .user = STR("somebody"),
                                .propagation = PROPAGATION_FOREGROUND,
                                .evict = true,
                                .draw = UINT64_MAX,
                                .request = STR("16 bytes, no one"),
                                .content = UINT64_MAX};
}

static void each_kind(struct event events[EVENT_LAST + 1])
{
    memset(events, 0, (EVENT_LAST + 1) * sizeof(*events));
    for (int kind = EVENT_BOOT; kind <= EVENT_LAST; kind++)
        events[kind].kind = (enum event_kind)kind;
    events[EVENT_BOOT].boot.epoch = 9;
    events[EVENT_BOOT].boot.restored = true;
    events[EVENT_BOOT].boot.version = STR("0.1");
    events[EVENT_BOOT].boot.identity = UINT64_MAX;
    events[EVENT_BOOT].boot.secret = STR("32 bytes that nobody else can see");
    events[EVENT_BOOT].boot.secret.len = GANG_KEY_BYTES;
    events[EVENT_BOOT].boot.paused = true;
    events[EVENT_CLUSTER].cluster.document = STR("{\"a\":1}");
    events[EVENT_WRITE].write = any_write();
    events[EVENT_MACHINE_HELLO].machine_hello.hello = (struct hello){.version = WIRE_VERSION,
                                                                     .machine = STR("m-1"),
                                                                     .incarnation = 3,
                                                                     .connection = 2,
                                                                     .chips = 4,
                                                                     .cpu_milli = 8000,
                                                                     .memory_bytes = 1 << 30,
                                                                     .software = STR("phalanx 0.1"),
                                                                     .reports = reports,
                                                                     .report_count = REPORTS};
    for (int kind = EVENT_MACHINE_AWAY; kind <= EVENT_MACHINE_SILENT; kind++) {
        events[kind].machine.machine = STR("m-1");
        events[kind].machine.evidence = STR("no heartbeat for 3.3 s");
    }
    events[EVENT_REPORTS].reports.machine = STR("m-1");
    events[EVENT_REPORTS].reports.reports =
        (struct reports){.number = 12, .items = reports, .count = REPORTS};
    events[EVENT_PROGRESS].progress =
        (struct progress_event){.jobset = 3, .attempt = 2, .step = -1, .total = 100, .metric_count = 1};
    events[EVENT_PROGRESS].progress.metrics[0] = (struct step_metric){STR("loss"), -5};
    static uint32_t own_us[] = {0, 7, UINT32_MAX};
    events[EVENT_PACE].pace =
        (struct pace_event){.jobset = 3, .attempt = 4, .window_ns = 5, .own_us = own_us, .count = 3};
    events[EVENT_HOLD_OVER].hold_over = 77;
    static struct circuit_result results[] = {{{1, 65}, false, CIRCUIT_UNDONE},
                                              {{SWITCH_PORTS_MAX, 66}, true, CIRCUIT_NOT_APPLIED}};
    static struct circuit present[] = {{1, 65}, {2, 67}, {64, 128}};
    events[EVENT_SWITCH_REPORT].switch_report = (struct switch_report){.name = STR("pod-1-x5"),
                                                                       .operation = UINT64_MAX,
                                                                       .outcome = SWITCH_PARTLY,
                                                                       .results = results,
                                                                       .result_count = 2,
                                                                       .read = true,
                                                                       .present = present,
                                                                       .present_count = 3,
                                                                       .reason = STR("port 66 is busy")};
    static struct str alarms[] = {{"FAN", 3}, {"", 0}};
    static uint16_t bad_ports[] = {1, SWITCH_PORTS_MAX};
    events[EVENT_SWITCH_HEALTH].switch_health = (struct switch_health){.name = STR("pod-1-x5"),
                                                                       .state = SWITCH_DEGRADED,
                                                                       .alarms = alarms,
                                                                       .alarm_count = 2,
                                                                       .bad_ports = bad_ports,
                                                                       .bad_port_count = 2,
                                                                       .reason = STR("a fan stands")};
}

static void assert_same_reports(const struct task_report *a, const struct task_report *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_true(str_equal(a[i].message, b[i].message));
        assert_true(a[i].kind == b[i].kind && a[i].task == b[i].task && a[i].exit_code == b[i].exit_code &&
                    a[i].signal == b[i].signal && a[i].oom == b[i].oom && a[i].fenced == b[i].fenced &&
                    a[i].started_ns == b[i].started_ns && a[i].finished_ns == b[i].finished_ns &&
                    a[i].step == b[i].step && a[i].peer_rank == b[i].peer_rank && a[i].pid == b[i].pid);
    }
}

static void assert_same_switch_reports(const struct switch_report *a, const struct switch_report *b)
{
    assert_true(str_equal(a->name, b->name) && str_equal(a->reason, b->reason) &&
                a->operation == b->operation && a->outcome == b->outcome && a->read == b->read &&
                a->result_count == b->result_count && a->present_count == b->present_count);
    for (size_t i = 0; i < a->result_count; i++)
        assert_true(circuit_equal(a->results[i].circuit, b->results[i].circuit) &&
                    a->results[i].make == b->results[i].make && a->results[i].status == b->results[i].status);
    for (size_t i = 0; i < a->present_count; i++)
        assert_true(circuit_equal(a->present[i], b->present[i]));
}

static void assert_same_switch_health(const struct switch_health *a, const struct switch_health *b)
{
    assert_true(str_equal(a->name, b->name) && str_equal(a->reason, b->reason) && a->state == b->state &&
                a->alarm_count == b->alarm_count && a->bad_port_count == b->bad_port_count);
    for (size_t i = 0; i < a->alarm_count; i++)
        assert_true(str_equal(a->alarms[i], b->alarms[i]));
    assert_memory_equal(a->bad_ports, b->bad_ports, a->bad_port_count * sizeof *a->bad_ports);
}

static void assert_same(const struct event *a, const struct event *b)
{
    switch (a->kind) {
    case EVENT_BOOT:
        assert_true(a->boot.epoch == b->boot.epoch && a->boot.restored == b->boot.restored &&
                    str_equal(a->boot.version, b->boot.version) && a->boot.identity == b->boot.identity &&
                    str_equal(a->boot.secret, b->boot.secret) && str_equal(a->boot.place, b->boot.place));
        break;
    case EVENT_CLUSTER:
        assert_true(str_equal(a->cluster.document, b->cluster.document));
        break;
    case EVENT_TICK:
        break;
    case EVENT_WRITE:
        assert_true(a->write.verb == b->write.verb && a->write.object == b->write.object &&
                    a->write.if_version == b->write.if_version && a->write.grace_s == b->write.grace_s &&
                    a->write.propagation == b->write.propagation && a->write.draw == b->write.draw);
        assert_true(str_equal(a->write.namespace_, b->write.namespace_) &&
                    str_equal(a->write.name, b->write.name) && str_equal(a->write.body, b->write.body) &&
                    str_equal(a->write.uid_text, b->write.uid_text) &&
                    str_equal(a->write.user, b->write.user) &&
                    str_equal(a->write.request, b->write.request) && a->write.content == b->write.content);
        break;
    case EVENT_MACHINE_HELLO: {
        const struct hello *x = &a->machine_hello.hello, *y = &b->machine_hello.hello;
        assert_true(x->version == y->version && x->incarnation == y->incarnation && x->chips == y->chips &&
                    x->cpu_milli == y->cpu_milli && x->memory_bytes == y->memory_bytes &&
                    x->report_count == y->report_count);
        assert_true(str_equal(x->machine, y->machine) && str_equal(x->software, y->software));
        assert_same_reports(x->reports, y->reports, x->report_count);
        break;
    }
    case EVENT_MACHINE_AWAY:
    case EVENT_MACHINE_GONE:
    case EVENT_MACHINE_SILENT:
        assert_true(str_equal(a->machine.machine, b->machine.machine) &&
                    str_equal(a->machine.evidence, b->machine.evidence));
        break;
    case EVENT_REPORTS:
        assert_true(str_equal(a->reports.machine, b->reports.machine));
        assert_int_equal((int)a->reports.reports.count, (int)b->reports.reports.count);
        assert_same_reports(a->reports.reports.items, b->reports.reports.items, a->reports.reports.count);
        break;
    case EVENT_PROGRESS:
        assert_true(a->progress.jobset == b->progress.jobset && a->progress.attempt == b->progress.attempt &&
                    a->progress.step == b->progress.step && a->progress.total == b->progress.total &&
                    a->progress.metric_count == b->progress.metric_count);
        assert_true(str_equal(a->progress.metrics[0].name, b->progress.metrics[0].name) &&
                    a->progress.metrics[0].micro == b->progress.metrics[0].micro);
        break;
    case EVENT_PACE:
        assert_true(a->pace.jobset == b->pace.jobset && a->pace.attempt == b->pace.attempt &&
                    a->pace.window_ns == b->pace.window_ns && a->pace.count == b->pace.count);
        assert_memory_equal(a->pace.own_us, b->pace.own_us, a->pace.count * sizeof *a->pace.own_us);
        break;
    case EVENT_SWITCH_REPORT:
        assert_same_switch_reports(&a->switch_report, &b->switch_report);
        break;
    case EVENT_SWITCH_HEALTH:
        assert_same_switch_health(&a->switch_health, &b->switch_health);
        break;
    case EVENT_HOLD_OVER:
        assert_true(a->hold_over == b->hold_over);
        break;
    case EVENT_LEVEL:
        assert_int_equal(a->level, b->level);
        break;
    }
}

static void there_and_back(void **state)
{
    struct event events[EVENT_LAST + 1];
    each_kind(events);
    of_levels(events);
    for (int kind = EVENT_BOOT; kind <= EVENT_LAST; kind++) {
        struct buf bytes = {0}, again = {0}, line = {0};
        struct arena arena = {0};
        struct event back = {.seq = 3, .stamp_ns = 4};
        record_encode(&bytes, &events[kind]);
        assert_int_equal(record_decode(&arena, buf_str(&bytes), &back, NULL), 0);
        assert_int_equal(back.kind, kind);
        assert_same(&events[kind], &back);
        record_encode(&again, &back);
        assert_true(str_equal(buf_str(&bytes), buf_str(&again)));
        record_describe(&line, &back);
        assert_true(line.len > 3 && !memchr(line.data, '\n', line.len));
        for (size_t cut = 0; cut < bytes.len;
             cut++) { /* a part of a record is an error or another record, never a crash */
            struct event part;
            struct error error = {0};
            int rc = record_decode(&arena, (struct str){bytes.data, cut}, &part, &error);
            assert_true(rc == 0 || error.text[0]);
        }
        arena_done(&arena);
        buf_done(&bytes);
        buf_done(&again);
        buf_done(&line);
    }
}

/* Fields that this version does not know are left out; everything it knows is read. */
static void fields_of_a_later_version(void **state)
{
    struct event event = {.kind = EVENT_BOOT}, back;
    event.boot.epoch = 9;
    struct buf bytes = {0};
    struct arena arena = {0};
    record_encode(&bytes, &event);
    static const char extra[] = {(char)(15 << 3 | 2), 3, 'a', 'b', 'c'}; /* field 15 of Boot, a string */
    assert_int_equal(bytes.data[0], 1 << 3 | 2);
    bytes.data[1] = (char)(bytes.data[1] + (char)sizeof(extra));
    buf_add(&bytes, extra, sizeof(extra));
    assert_int_equal(record_decode(&arena, buf_str(&bytes), &back, NULL), 0);
    assert_int_equal((int)back.boot.epoch, 9);
    arena_done(&arena);
    buf_done(&bytes);
}

static void kinds_of_a_later_version(void **state)
{
    static const char record[] = {(char)(0x80 | (99 << 3 & 0x7f) | 2), (char)(99 >> 4),
                                  0}; /* kind 99, empty */
    struct arena arena = {0};
    struct event event;
    struct error error = {0};
    assert_int_equal(record_decode(&arena, (struct str){record, sizeof(record)}, &event, &error),
                     ERROR_UNSUPPORTED);
    assert_true(strstr(error.text, "does not know") != NULL);
    assert_int_equal(record_decode(&arena, STR(""), &event, &error), ERROR_UNSUPPORTED);
    assert_int_equal(record_decode(&arena, STR("\xff\xff\xff"), &event, &error), ERROR_CORRUPT);
    struct event write = {.kind = EVENT_WRITE};
    write.write = (struct write_event){.verb = WRITE_DELETE, .object = OBJECT_POD};
    struct buf bytes = {0};
    record_encode(&bytes, &write);
    assert_int_equal(bytes.data[3], WRITE_DELETE);
    bytes.data[3] = 9;
    assert_int_equal(record_decode(&arena, buf_str(&bytes), &event, &error), ERROR_UNSUPPORTED);
    buf_done(&bytes);
    arena_done(&arena);
}

/* The log was raised beyond what this version reads: it takes no part, and says which version does. */
static void levels_of_a_later_version(void **state)
{
    struct arena arena = {0};
    struct event event = {.kind = EVENT_LEVEL, .level = LEVEL_NEWEST + 1};
    struct error error = {0};
    struct buf bytes = {0};
    record_encode(&bytes, &event);
    assert_int_equal(record_decode(&arena, buf_str(&bytes), &event, &error), ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "raised to level"));
    buf_clear(&bytes);
    event.level = 0;
    record_encode(&bytes, &event);
    assert_int_equal(record_decode(&arena, buf_str(&bytes), &event, &error), ERROR_CORRUPT);
    buf_done(&bytes);
    arena_done(&arena);
}

/* A record whose numbers no switch can have is refused with the switch's name. */
static void switches_out_of_range(void **state)
{
    Log__Circuit port_0 = LOG__CIRCUIT__INIT, *present[] = {&port_0};
    Log__CircuitResult status_9 = LOG__CIRCUIT_RESULT__INIT, *results[] = {&status_9};
    status_9.plus = status_9.minus = 1;
    status_9.status = 9;
    Log__SwitchReport answers[4] = {LOG__SWITCH_REPORT__INIT, LOG__SWITCH_REPORT__INIT,
                                    LOG__SWITCH_REPORT__INIT, LOG__SWITCH_REPORT__INIT};
    answers[0].n_present = 1, answers[0].present = present;
    answers[1].n_results = 1, answers[1].results = results;
    answers[2].outcome = SWITCH_OUTCOMES;
    Log__CircuitResult good = LOG__CIRCUIT_RESULT__INIT, *many[SWITCH_RESULTS_MAX + 1];
    good.plus = good.minus = 1;
    for (size_t i = 0; i < SWITCH_RESULTS_MAX + 1; i++)
        many[i] = &good;
    answers[3].n_results = SWITCH_RESULTS_MAX + 1, answers[3].results = many;
    for (size_t i = 0; i < 4; i++) {
        answers[i].switch_ = (char[]){"pod-1-x5"};
        Log__Event pb = LOG__EVENT__INIT;
        pb.kind_case = LOG__EVENT__KIND_SWITCH_REPORT;
        pb.switch_report = &answers[i];
        static uint8_t bytes[65536];
        struct str packed = {(char *)bytes, log__event__pack(&pb, bytes)};
        struct arena arena = {0};
        struct event event;
        struct error error = {0};
        assert_int_equal(record_decode(&arena, packed, &event, &error), i == 3 ? ERROR_LIMIT : ERROR_INVALID);
        assert_non_null(strstr(error.text, "pod-1-x5"));
        arena_done(&arena);
    }
}

/* Kinds and numbers are part of the format: a log of years ago must mean the same. */
static void numbers_stay(void **state)
{
    assert_int_equal(EVENT_BOOT, LOG__EVENT__KIND_BOOT);
    assert_int_equal(EVENT_CLUSTER, LOG__EVENT__KIND_CLUSTER);
    assert_int_equal(EVENT_TICK, LOG__EVENT__KIND_TICK);
    assert_int_equal(EVENT_WRITE, LOG__EVENT__KIND_WRITE);
    assert_int_equal(EVENT_MACHINE_HELLO, LOG__EVENT__KIND_MACHINE_HELLO);
    assert_int_equal(EVENT_MACHINE_AWAY, LOG__EVENT__KIND_MACHINE_AWAY);
    assert_int_equal(EVENT_MACHINE_GONE, LOG__EVENT__KIND_MACHINE_GONE);
    assert_int_equal(EVENT_MACHINE_SILENT, LOG__EVENT__KIND_MACHINE_SILENT);
    assert_int_equal(EVENT_REPORTS, LOG__EVENT__KIND_REPORTS);
    assert_int_equal(EVENT_PROGRESS, LOG__EVENT__KIND_PROGRESS);
    assert_int_equal(EVENT_PACE, LOG__EVENT__KIND_PACE);
    assert_int_equal(EVENT_HOLD_OVER, LOG__EVENT__KIND_HOLD_OVER);
    assert_int_equal(EVENT_SWITCH_REPORT, LOG__EVENT__KIND_SWITCH_REPORT);
    assert_int_equal(EVENT_SWITCH_HEALTH, LOG__EVENT__KIND_SWITCH_HEALTH);
    assert_int_equal(EVENT_LEVEL, LOG__EVENT__KIND_LEVEL);
    static const char old[] =
        "\x22\x0c\x08\x01\x10\x01\x1a\x02ns*\x02{}"; /* a create of a JobSet, as version 0.1 wrote it */
    struct arena arena = {0};
    struct event event;
    assert_int_equal(record_decode(&arena, (struct str){old, sizeof(old) - 1}, &event, NULL), 0);
    assert_int_equal(event.kind, EVENT_WRITE);
    assert_int_equal(event.write.verb, WRITE_CREATE);
    assert_int_equal(event.write.object, OBJECT_JOBSET);
    assert_true(str_is(event.write.namespace_, "ns") && str_is(event.write.body, "{}"));
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),           cmocka_unit_test(fields_of_a_later_version),
        cmocka_unit_test(kinds_of_a_later_version), cmocka_unit_test(levels_of_a_later_version),
        cmocka_unit_test(switches_out_of_range),    cmocka_unit_test(numbers_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
