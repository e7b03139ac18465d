/* The threads of a worker: two clients that bring one text get one executable, and metrics tell of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "flow/host/metrics.h"
#include "flow/host/runner.h"
#include "flow/island/machine.h"

enum { WANTED = 3 };

struct stand {
    struct loop *loop;
    struct runners *runners;
    struct flow_event events[WANTED];
    int count;
};

static void take_compiled(void *context)
{
    struct stand *stand = context;
    while (stand->count < WANTED && runners_next(stand->runners, &stand->events[stand->count]))
        stand->count++;
    if (stand->count == WANTED)
        loop_stop(stand->loop);
}

static void none_ticks(void *context)
{
}

static bool none_ran(void *context, const struct flow_event *event, struct flow_effect *ret_next)
{
    return false;
}

static void none_sent(void *context, uint32_t host, const struct flow_entry *entry, struct str tail)
{
}

static void two_clients_share(void **state)
{
    static const char tail[] = "main\0module {\n  func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
                               "    return %a : tensor<2xf32>\n  }\n}\n";
    struct stand stand = {0};
    struct loop_handler handler = {.context = &stand, .woken = take_compiled, .tick = none_ticks};
    struct error error;
    struct str text = {tail, sizeof tail - 1};
    struct gang_table *gangs = gang_table_new(none_sent, NULL);
    assert_int_equal(loop_new(&handler, &stand.loop, &error), 0);
    stand.runners = runners_new(&(struct runners_options){
        .devices = 2, .gangs = gangs, .loop = stand.loop, .ran = none_ran, .context = &stand});
    runners_compile(stand.runners, 10, text);
    runners_compile(stand.runners, 20, text);
    runners_compile(stand.runners, 21, (struct str){tail, 10}); /* no module: not the others' business */
    loop_run(stand.loop);
    assert_non_null(stand.events[0].executable);
    assert_false(stand.events[0].reused);
    assert_int_equal(stand.events[1].handle, 20);
    assert_ptr_equal(stand.events[1].executable, stand.events[0].executable);
    assert_true(stand.events[1].reused);
    assert_null(stand.events[2].executable);
    runners_drop(stand.events[0].executable);
    runners_free(stand.runners);
    runners_drop(stand.events[1].executable); /* as a worker does that ends */
    gang_table_free(gangs);
    loop_free(stand.loop);
}

/* The worker's machine counts both kinds, and its word of them comes to the metrics. */
static void metrics_tell(void **state)
{
    struct worker *worker = worker_new("main", "address", 1, 1000);
    struct flow_effects effects = {0};
    struct flow_entry welcome = {.kind = ENTRY_WELCOME, .args = {7, 8}};
    int made;
    worker_step(worker, &(struct flow_event){.kind = FLOW_OPENED, .peer = PEER_HEAD}, &effects);
    worker_step(worker, &(struct flow_event){.kind = FLOW_ENTRY, .peer = PEER_HEAD, .entry = &welcome},
                &effects);
    for (int i = 0; i < 3; i++)
        worker_step(worker, &(struct flow_event){.kind = FLOW_COMPILED, .executable = &made, .reused = i > 0},
                    &effects);
    flow_effects_clear(&effects);
    worker_step(worker, &(struct flow_event){.kind = FLOW_TICK}, &effects);
    assert_int_equal(effects.list.len, 1);
    assert_int_equal(effects.list.items[0].entry.kind, ENTRY_LOAD);

    struct head *head = head_new(&(struct head_options){.secret = 1});
    struct flow_effects said = {0};
    struct flow_entry hello = {.kind = ENTRY_HELLO_WORKER, .count = 1, .tail_bytes = 12};
    struct flow_entry load = effects.list.items[0].entry;
    load.tail_bytes = (uint32_t)effects.list.items[0].tail.len;
    head_step(head, &(struct flow_event){.kind = FLOW_OPENED, .peer = 1, .token = 5}, &said);
    head_step(
        head,
        &(struct flow_event){.kind = FLOW_ENTRY, .peer = 1, .entry = &hello, .tail = {"main\0address", 12}},
        &said);
    head_step(
        head,
        &(struct flow_event){
            .kind = FLOW_ENTRY, .peer = 1, .entry = &load, .tail = buf_str(&effects.list.items[0].tail)},
        &said);
    struct flow_status status = {0};
    struct buf text BUF_CLEANUP = {0};
    head_status(head, &status);
    flow_metrics_write(&status, &text);
    buf_add_char(&text, 0);
    assert_non_null(strstr(text.data, "phalanx_flow_compiled_functions_total{host=\"0\"} 1\n"));
    assert_non_null(strstr(text.data, "phalanx_flow_reused_functions_total{host=\"0\"} 2\n"));
    flow_status_done(&status);
    flow_effects_done(&said);
    head_free(head);
    flow_effects_clear(&effects);
    worker_free(worker, &effects);
    flow_effects_done(&effects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_clients_share),
        cmocka_unit_test(metrics_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
