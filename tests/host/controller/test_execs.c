/* Commands beside tasks between a websocket client and an agent: what flows, what is held back, and how it
 * ends when either side goes. */
#include "net/websocket.h"
#include "host/controller/world.h"

enum { CHUNK = 16 * 1024, BOUND_BYTES = 24 * 1024 * 1024 };

struct run { /* one command of one agent's task */
    struct world w;
    struct fake *agent;
    struct http *client;
    uint64_t stream;
};

static bool client_has(const struct run *run, const char *text)
{
    const struct buf *answer = &run->client->answer;
    return answer->len && memmem(answer->data, answer->len, text, strlen(text)) != NULL;
}

static void prepare(struct run *run)
{
    world_init(&run->w);
    run->agent = fake_new(&run->w, "m-1");
    fake_join(run->agent);
    assert_int_equal(world_create(&run->w, "train", 1), 201);
    RUN_UNTIL(&run->w, world_tasks(&run->w, TASK_RUNNING) == 1);
}

static struct http *ask(struct run *run, const char *query)
{
    const struct task *task =
        jobs_find_task(core_jobs(run->w.controller->core), run->agent->running.items[0]);
    char path[512];
    snprintf(path, sizeof path, "/api/v1/namespaces/default/pods/" STR_FORMAT "/exec?%s", STR_ARG(task->name),
             query);
    struct http *client = http_begin(&run->w, "GET", path, "");
    buf_clear(&client->request);
    buf_printf(&client->request,
               "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
               "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n",
               path);
    return client;
}

static void begin(struct run *run)
{
    prepare(run);
    run->client = ask(run, "command=cat&stdin=true&stdout=true&stderr=true");
    RUN_UNTIL(&run->w, fake_count(run->agent, FROM_CONTROLLER_EXEC_OPEN) == 1);
    run->stream = fake_last(run->agent, FROM_CONTROLLER_EXEC_OPEN)->number;
    RUN_UNTIL(&run->w, client_has(run, "101 Switching"));
}

static void finish(struct run *run)
{
    if (run->client)
        http_end(&run->w, run->client);
    RUN_UNTIL(&run->w, run->w.controller->execs.len == 0);
    world_done(&run->w);
}

static void say(struct run *run, struct exec_data data)
{
    struct from_agent message = {.kind = FROM_AGENT_EXEC_DATA, .exec_data = data};
    message.exec_data.stream = run->stream;
    wire_send_agent(run->agent->conn, &message);
}

static void say_end(struct run *run, int code, const char *why)
{
    struct from_agent message = {.kind = FROM_AGENT_EXEC_END, .exec_end = {run->stream, code, str_from(why)}};
    wire_send_agent(run->agent->conn, &message);
}

static void on_written(uv_write_t *write, int status)
{
    struct buf *frame = write->data;
    buf_done(frame);
    mem_free(frame);
    mem_free(write);
}

/* One message of the client on `channel`. */
static void type(struct run *run, char channel, const char *data, size_t len)
{
    static const uint8_t mask[4] = {1, 2, 3, 4};
    struct buf *frame = mem_alloc(sizeof *frame);
    websocket_put(frame, WEBSOCKET_BINARY, mask, (struct str){&channel, 1}, (struct str){data, len});
    uv_write_t *write = mem_alloc(sizeof *write);
    uv_buf_t buffer = uv_buf_init(frame->data, (unsigned)frame->len);
    write->data = frame;
    assert_int_equal(uv_write(write, (uv_stream_t *)&run->client->tcp, &buffer, 1, on_written), 0);
}

static void test_both_ways(void **state)
{
    struct run run = {0};
    begin(&run);
    say(&run, (struct exec_data){.channel = EXEC_STDIN, .credit = 100});
    say(&run, (struct exec_data){.channel = EXEC_STDOUT, .bytes = STR("hello")});
    say(&run, (struct exec_data){.channel = EXEC_STDERR, .bytes = STR("oops")});
    RUN_UNTIL(&run.w, client_has(&run, "\1hello") && client_has(&run, "\2oops"));
    type(&run, 0, "some input", 10);
    RUN_UNTIL(&run.w, run.agent->exec_input.len == 10);
    assert_memory_equal(run.agent->exec_input.data, "some input", 10);
    type(&run, 4, "{\"Width\":80,\"Height\":24}", 24);
    RUN_UNTIL(&run.w, fake_count(run.agent, FROM_CONTROLLER_EXEC_RESIZE) == 1);
    assert_false(run.agent->exec_input_end);
    type(&run, (char)255, "\0", 1); /* v5: standard input ends */
    RUN_UNTIL(&run.w, run.agent->exec_input_end);
    say_end(&run, 7, "");
    RUN_UNTIL(&run.w, client_has(&run, "NonZeroExitCode"));
    assert_true(client_has(&run, "\"message\":\"7\""));
    assert_int_equal(run.w.controller->execs.len, 0);
    say(&run, (struct exec_data){.channel = EXEC_STDOUT, .bytes = STR("too late")});
    static const uint8_t mask[4] = {0};
    struct buf goodbye BUF_CLEANUP = {0};
    websocket_put_close(&goodbye, mask, WEBSOCKET_NORMAL, STR(""));
    uv_buf_t buffer = uv_buf_init(goodbye.data, (unsigned)goodbye.len);
    assert_int_equal(uv_try_write((uv_stream_t *)&run.client->tcp, &buffer, 1), (int)goodbye.len);
    RUN_UNTIL(&run.w, run.client->ended); /* the server closes the connection */
    assert_false(client_has(&run, "too late"));
    finish(&run);
}

/* Input that the agent has not asked for waits at the client. */
static void test_input_waits_for_credit(void **state)
{
    struct run run = {0};
    begin(&run);
    char *text = mem_alloc(1024 * 1024);
    memset(text, 'x', 1024 * 1024);
    for (int i = 0; i < 8; i++)
        type(&run, 0, text, 1024 * 1024);
    type(&run, (char)255, "\0", 1);
    world_wait(&run.w, 100);
    assert_int_equal(run.agent->exec_input.len, 0);
    for (size_t given = 0; given < 8 * 1024 * 1024;) {
        say(&run, (struct exec_data){.channel = EXEC_STDIN, .credit = 512 * 1024});
        given += 512 * 1024;
        RUN_UNTIL(&run.w, run.agent->exec_input.len == given);
        assert_true(run.agent->exec_input_end == (given == 8 * 1024 * 1024) || given == 8 * 1024 * 1024);
    }
    RUN_UNTIL(&run.w, run.agent->exec_input_end);
    mem_free(text);
    run.client->ended = true;
    finish(&run);
}

/* Writes as much as it may, as an agent does. */
static size_t pour(struct run *run, size_t left)
{
    static char zeros[CHUNK];
    size_t poured = 0;
    while (run->agent->exec_credit > 0 && poured < left) {
        size_t len = run->agent->exec_credit < CHUNK ? (size_t)run->agent->exec_credit : CHUNK;
        len = len < left - poured ? len : left - poured;
        say(run, (struct exec_data){.channel = EXEC_STDOUT, .bytes = {zeros, len}});
        run->agent->exec_credit -= len;
        poured += len;
    }
    return poured;
}

/* A client that does not read gets no more than its socket and one window hold; then all of it. */
static void test_output_of_a_stalled_client_is_bounded(void **state)
{
    struct run run = {0};
    const size_t whole = 2 * BOUND_BYTES;
    begin(&run);
    uv_read_stop((uv_stream_t *)&run.client->tcp);
    size_t sent = 0, before = 1;
    while (sent != before) {
        before = sent;
        for (int i = 0; i < 20; i++) {
            sent += pour(&run, whole - sent);
            world_wait(&run.w, 5);
        }
    }
    assert_true(sent >= API_EXEC_WINDOW_BYTES);
    assert_true(sent < BOUND_BYTES); /* most of it in the kernel's buffers of two sockets */
    uv_read_start((uv_stream_t *)&run.client->tcp, http_alloc, http_read);
    RUN_UNTIL(&run.w, (sent += pour(&run, whole - sent)) == whole);
    RUN_UNTIL(&run.w, run.client->answer.len > whole);
    say_end(&run, 0, "");
    RUN_UNTIL(&run.w, client_has(&run, "\"Success\""));
    run.client->ended = true;
    finish(&run);
}

static void test_an_agent_that_sends_too_much_is_cut_off(void **state)
{
    static char zeros[API_EXEC_WINDOW_BYTES + 1];
    struct run run = {0};
    begin(&run);
    say(&run, (struct exec_data){.channel = EXEC_STDOUT, .bytes = {zeros, sizeof zeros}});
    RUN_UNTIL(&run.w, client_has(&run, "sent more than it was asked for"));
    assert_true(client_has(&run, "InternalError"));
    RUN_UNTIL(&run.w, fake_count(run.agent, FROM_CONTROLLER_EXEC_CLOSE) == 1);
    assert_int_equal(run.w.controller->execs.len, 0);
    run.client->ended = true;
    finish(&run);
}

static void test_agent_lost_in_the_middle(void **state)
{
    struct run run = {0};
    begin(&run);
    say(&run, (struct exec_data){.channel = EXEC_STDOUT, .bytes = STR("half")});
    RUN_UNTIL(&run.w, client_has(&run, "\1half"));
    fake_cut(run.agent, &run.agent->conn, false);
    RUN_UNTIL(&run.w, client_has(&run, "connection to the task's machine broke"));
    assert_true(client_has(&run, "\"Failure\"") && client_has(&run, "InternalError"));
    assert_int_equal(run.w.controller->execs.len, 0);
    run.client->ended = true;
    http_end(&run.w, run.client);
    /* Another one while it is away: an answer at once, which names the machine. */
    run.client = ask(&run, "command=cat&stdout=true");
    RUN_UNTIL(&run.w, client_has(&run, "machine m-1 of the task is not connected"));
    run.client->ended = true;
    finish(&run);
}

static void test_client_leaves(void **state)
{
    struct run run = {0};
    begin(&run);
    run.client->ended = true;
    http_end(&run.w, run.client);
    run.client = NULL;
    RUN_UNTIL(&run.w, fake_count(run.agent, FROM_CONTROLLER_EXEC_CLOSE) == 1);
    assert_true(fake_last(run.agent, FROM_CONTROLLER_EXEC_CLOSE)->number == run.stream);
    say(&run, (struct exec_data){.channel = EXEC_STDOUT, .bytes = STR("nobody reads it")});
    say_end(&run, 0, "");
    world_wait(&run.w, 20);
    finish(&run);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *query, *word;
    } cases[] = {
        {"stdout=true", "you must specify at least one command"},
        {"command=x", "at least one of stdin, stdout, stderr"},
        {"command=x&stdout=true&container=nope", "container nope is not valid for pod"},
    };
    struct run run = {0};
    prepare(&run);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run.client = ask(&run, cases[i].query);
        RUN_UNTIL(&run.w, client_has(&run, cases[i].word));
        assert_true(client_has(&run, "HTTP/1.1 400"));
        run.client->ended = true;
        http_end(&run.w, run.client);
    }
    run.client = NULL;
    assert_int_equal(fake_count(run.agent, FROM_CONTROLLER_EXEC_OPEN), 0);
    finish(&run);
}

/* The controller stops while a command runs: nothing is left behind (the sanitizer looks). */
static void test_stop_in_the_middle(void **state)
{
    struct run run = {0};
    begin(&run);
    say(&run, (struct exec_data){.channel = EXEC_STDOUT, .bytes = STR("half")});
    RUN_UNTIL(&run.w, client_has(&run, "\1half"));
    world_stop(&run.w);
    RUN_UNTIL(&run.w, run.client->ended);
    http_end(&run.w, run.client);
    world_start(&run.w);
    run.client = NULL;
    finish(&run);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_input_waits_for_credit),
        cmocka_unit_test(test_output_of_a_stalled_client_is_bounded),
        cmocka_unit_test(test_an_agent_that_sends_too_much_is_cut_off),
        cmocka_unit_test(test_agent_lost_in_the_middle),
        cmocka_unit_test(test_client_leaves),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_stop_in_the_middle),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
