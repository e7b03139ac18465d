/* Streams that pass through the controller without an event for each item: steps, coalesced, and logs. */
#include "host/controller/world.h"

static void train_of_three(struct world *w, struct fake **agents)
{
    world_train(w, agents);
    for (int i = 0; i < 3; i++)
        assert_int_equal(agents[i]->running.len, 1);
}

static struct jobset *train(const struct world *w)
{
    return jobs_find(core_jobs(w->controller->core), STR("default"), STR("train"));
}

/* --- steps ------------------------------------------------------------------------------------ */

static void say_step(struct fake *agent, int64_t number)
{
    struct task_step step = {.task = agent->running.items[0],
                             .step = number,
                             .total = 1000,
                             .metrics = {{STR("loss"), 1000000 - number}},
                             .metric_count = 1};
    struct from_agent message = {.kind = FROM_AGENT_STEPS, .heartbeat = {.steps = &step, .step_count = 1}};
    wire_send_agent(agent->conn, &message);
}

static void join_job(struct world *w, struct fake **agents)
{
    for (int i = 0; i < 3; i++) {
        uint64_t acked = agents[i]->acked;
        fake_report(agents[i], REPORT_JOINED, agents[i]->running.items[0], 0);
        RUN_UNTIL(w, agents[i]->acked > acked);
    }
}

static void test_first_step_at_once_then_coalesced(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_init(&w);
    train_of_three(&w, agents);
    join_job(&w, agents);
    uint64_t seq = core_seq(w.controller->core);
    say_step(agents[0], 1);
    say_step(agents[1], 1);
    world_wait(&w, 20);
    assert_true(core_seq(w.controller->core) == seq); /* a step counts when every rank has made it */
    int64_t began_ns = controller_mono_ns(), stalled_ns = w.stalled_ns;
    say_step(agents[2], 1);
    RUN_UNTIL(&w, train(&w)->progress.step == 1);
    assert_true(world_took_ns(&w, began_ns, stalled_ns) < 300 * NS_PER_MS);
    for (int step = 2; step <= 200; step++)
        for (int i = 0; i < 3; i++)
            say_step(agents[i], step);
    RUN_UNTIL(&w, train(&w)->progress.step == 200);
    uint64_t halves =
        (uint64_t)((controller_mono_ns() - began_ns) / (500 * NS_PER_MS)); /* one each at most */
    assert_true(core_seq(w.controller->core) <= seq + 4 + halves);
    assert_string_equal(train(&w)->progress.metric_names[0], "loss");
    /* One rank lags behind: what counts is its step, however far the others are. */
    seq = core_seq(w.controller->core);
    for (int step = 201; step <= 300; step++)
        say_step(agents[0], step), say_step(agents[1], step);
    say_step(agents[2], 201);
    RUN_UNTIL(&w, train(&w)->progress.step == 201);
    world_wait(&w, 600);
    assert_int_equal(train(&w)->progress.step, 201);
    assert_true(core_seq(w.controller->core) == seq + 1);
    world_done(&w);
}

static void test_steps_are_booked_before_the_end(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_init(&w);
    train_of_three(&w, agents);
    join_job(&w, agents);
    for (int step = 1; step <= 2; step++)
        for (int i = 0; i < 3; i++)
            say_step(agents[i], step);
    RUN_UNTIL(&w, train(&w)->progress.step >= 1);
    for (int i = 0; i < 3; i++)
        say_step(agents[i], 10);
    for (int i = 0; i < 3; i++)
        fake_report(agents[i], REPORT_EXITED, agents[i]->running.items[0], 0);
    RUN_UNTIL(&w, train(&w)->conditions[CONDITION_COMPLETED].status);
    assert_int_equal(train(&w)->progress.step, 10);
    world_done(&w);
}

/* A new attempt counts from its own first step; a JobSet that is gone leaves nothing. */
static void test_steps_of_a_new_attempt(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_init(&w);
    train_of_three(&w, agents);
    join_job(&w, agents);
    for (int i = 0; i < 3; i++)
        say_step(agents[i], 50);
    RUN_UNTIL(&w, train(&w)->progress.step == 50);
    obj_id old = agents[1]->running.items[0];
    fake_report(agents[0], REPORT_EXITED, agents[0]->running.items[0], 9);
    agents[0]->running.len = 0;
    RUN_UNTIL(&w,
              train(&w)->attempt == 1 && world_tasks(&w, TASK_RUNNING) == 3 && agents[0]->running.len == 1);
    RUN_UNTIL(&w, agents[1]->running.len == 1 && agents[1]->running.items[0] != old);
    join_job(&w, agents);
    struct task_step late = {.task = old, .step = 99};
    struct from_agent message = {.kind = FROM_AGENT_STEPS, .heartbeat = {.steps = &late, .step_count = 1}};
    wire_send_agent(agents[1]->conn, &message);
    for (int i = 0; i < 3; i++)
        say_step(agents[i], 41);
    RUN_UNTIL(&w, train(&w)->progress.attempt == 1);
    assert_int_equal(train(&w)->progress.step, 41);
    assert_int_equal(w.controller->driver->job_steps.len, 1);
    assert_int_equal(world_http(&w, "DELETE", JOBSETS "/train", ""), 200);
    RUN_UNTIL(&w, !train(&w));
    assert_int_equal(w.controller->driver->job_steps.len, 0);
    world_done(&w);
}

/* --- logs ------------------------------------------------------------------------------------- */

static const struct task *task_of(const struct world *w, const struct fake *agent)
{
    return jobs_find_task(core_jobs(w->controller->core), agent->running.items[0]);
}

static struct http *open_log(struct world *w, struct fake *agent, const char *query, uint64_t *ret_stream)
{
    char path[256];
    snprintf(path, sizeof(path), "/api/v1/namespaces/default/pods/" STR_FORMAT "/log%s",
             STR_ARG(task_of(w, agent)->name), query);
    size_t before = fake_count(agent, FROM_CONTROLLER_LOG_OPEN);
    struct http *http = http_begin(w, "GET", path, "");
    RUN_UNTIL(w, fake_count(agent, FROM_CONTROLLER_LOG_OPEN) > before);
    *ret_stream = fake_last(agent, FROM_CONTROLLER_LOG_OPEN)->number;
    return http;
}

static void say_log(struct fake *agent, uint64_t stream, const char *text, bool end)
{
    struct from_agent message = {.kind = FROM_AGENT_LOG_DATA,
                                 .log_data = {stream, str_from(text), end, STR("")}};
    wire_send_agent(agent->conn, &message);
}

static bool has(const struct buf *answer, const char *text)
{
    return answer->len && strstr(answer->data, text);
}

static void test_log_streams(void **state)
{
    struct world w;
    struct fake *agents[3];
    uint64_t stream;
    world_init(&w);
    train_of_three(&w, agents);
    struct http *http = open_log(&w, agents[0], "?follow=true", &stream);
    say_log(agents[1], stream, "not yours\n", false); /* of another machine */
    say_log(agents[0], stream + 7, "nobody's\n", false);
    say_log(agents[0], stream, "line 1\n", false);
    RUN_UNTIL(&w, has(&http->answer, "line 1"));
    say_log(agents[0], stream, "line 2\n", true);
    assert_int_equal(http_end(&w, http), 200);
    assert_true(has(&w.answer, "line 2") && !has(&w.answer, "yours") && !has(&w.answer, "nobody"));
    assert_int_equal(w.controller->streams.len, 0);
    say_log(agents[0], stream, "too late\n", false);
    world_done(&w);
}

static void test_agent_dies_while_its_log_is_read(void **state)
{
    struct world w;
    struct fake *agents[3];
    uint64_t stream;
    world_init(&w);
    train_of_three(&w, agents);
    struct http *followed = open_log(&w, agents[0], "?follow=true", &stream);
    say_log(agents[0], stream, "line 1\n", false);
    RUN_UNTIL(&w, has(&followed->answer, "line 1"));
    struct http *begun = open_log(&w, agents[0], "", &stream);
    fake_cut(agents[0], &agents[0]->conn, false);
    assert_int_equal(http_end(&w, followed), 200);
    assert_true(has(&w.answer, "connection to the task's machine broke"));
    assert_true(http_end(&w, begun) >= 500);
    assert_int_equal(w.controller->streams.len, 0);
    /* While it is away an answer comes at once. */
    char path[256];
    snprintf(path, sizeof(path), "/api/v1/namespaces/default/pods/" STR_FORMAT "/log",
             STR_ARG(task_of(&w, agents[0])->name));
    assert_true(world_http(&w, "GET", path, "") >= 500);
    assert_true(has(&w.answer, "not connected"));
    world_done(&w);
}

static void test_reader_leaves(void **state)
{
    struct world w;
    struct fake *agents[3];
    uint64_t stream;
    world_init(&w);
    train_of_three(&w, agents);
    struct http *http = open_log(&w, agents[0], "?follow=true", &stream);
    say_log(agents[0], stream, "line 1\n", false);
    RUN_UNTIL(&w, has(&http->answer, "line 1"));
    http->ended = true; /* closes */
    http_end(&w, http);
    RUN_UNTIL(&w, fake_count(agents[0], FROM_CONTROLLER_LOG_CLOSE) == 1);
    assert_true(fake_last(agents[0], FROM_CONTROLLER_LOG_CLOSE)->number == stream);
    assert_int_equal(w.controller->streams.len, 0);
    world_done(&w);
}

static void say_not_kept(struct fake *agent)
{
    const struct heard *open = fake_last(agent, FROM_CONTROLLER_LOG_OPEN);
    struct from_agent message = {.kind = FROM_AGENT_LOG_DATA,
                                 .log_data = {open->number, STR(""), true, STR(LOG_NOT_KEPT)}};
    wire_send_agent(agent->conn, &message);
}

/* The log of an earlier attempt is asked for where the record says that the rank was, and elsewhere only if
 * it is not kept there. */
static void test_log_of_an_earlier_attempt(void **state)
{
    struct world w;
    struct fake *agents[3], *bystander;
    world_init(&w);
    bystander = fake_new(&w, "m-4");
    fake_join(bystander);
    train_of_three(&w, agents);
    fake_report(agents[0], REPORT_EXITED, agents[0]->running.items[0], 9);
    agents[0]->running.len = 0;
    RUN_UNTIL(&w,
              train(&w)->attempt == 1 && world_tasks(&w, TASK_RUNNING) == 3 && agents[0]->running.len == 1);
    char path[256];
    snprintf(path, sizeof path, "/api/v1/namespaces/default/pods/" STR_FORMAT "/log?attempt=0",
             STR_ARG(task_of(&w, agents[0])->name));
    struct http *http = http_begin(&w, "GET", path, "");
    RUN_UNTIL(&w, fake_count(agents[0], FROM_CONTROLLER_LOG_OPEN) == 1);
    say_log(agents[0], fake_last(agents[0], FROM_CONTROLLER_LOG_OPEN)->number, "attempt 0\n", true);
    assert_int_equal(http_end(&w, http), 200);
    assert_true(has(&w.answer, "attempt 0"));
    assert_int_equal(fake_count(bystander, FROM_CONTROLLER_LOG_OPEN), 0);
    /* None of the likely machines has it, so all are asked, and the bystander answers. */
    http = http_begin(&w, "GET", path, "");
    RUN_UNTIL(&w, fake_count(agents[0], FROM_CONTROLLER_LOG_OPEN) == 2);
    say_not_kept(agents[0]);
    RUN_UNTIL(&w, fake_count(bystander, FROM_CONTROLLER_LOG_OPEN) == 1);
    say_log(bystander, fake_last(bystander, FROM_CONTROLLER_LOG_OPEN)->number, "from elsewhere\n", true);
    assert_int_equal(http_end(&w, http), 200);
    assert_true(has(&w.answer, "from elsewhere"));
    assert_int_equal(w.controller->streams.len, 0);
    world_done(&w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_step_at_once_then_coalesced),
        cmocka_unit_test(test_steps_are_booked_before_the_end),
        cmocka_unit_test(test_steps_of_a_new_attempt),
        cmocka_unit_test(test_log_streams),
        cmocka_unit_test(test_agent_dies_while_its_log_is_read),
        cmocka_unit_test(test_reader_leaves),
        cmocka_unit_test(test_log_of_an_earlier_attempt),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
