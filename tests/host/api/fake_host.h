/* fake_host.h - a controller without log and agents: a real core, a real API server, and machines whose
 * tasks obey at once. */
#ifndef PHX_TESTS_HOST_API_FAKE_HOST_H
#define PHX_TESTS_HOST_API_FAKE_HOST_H

#include <stdio.h>
#include <time.h>

#include "doc/json.h"
#include "doc/yaml.h"
#include "host/api/api.h"
#include "host/patience.h"

struct fake_write {
    struct write_event event; /* strings belong to the request */
    struct api_request *request;
};
struct fake_host {
    uv_loop_t loop;
    uv_prepare_t commit;
    uv_timer_t tick;
    struct patience patience;
    struct core *core;
    struct api *api;
    uint64_t seq;
    int64_t clock_ns;              /* added to the wall clock */
    VEC(struct fake_write) writes; /* submitted, not yet committed */
    VEC(obj_id) starts, stops;     /* what the core asked for */
    bool hold_commits, disk_full, hold_tasks;
    bool lent;                 /* the API has begun a piece of work that may take long */
    struct api_stream *stream; /* the last log asked for; NULL when it was closed */
    struct api_log_options log_options;
    int logs_closed;
    struct api_exec *exec; /* the last command asked for; NULL when it was closed */
    int execs_closed;
    uint32_t connections_of_address_max; /* of api_options; set before fake_start() */
    bool log_answers_itself; /* a log is "line 1..3" of its task */
};

static int64_t fake_now(void *context)
{
    struct fake_host *host = context;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec + host->clock_ns;
}

static struct core *fake_core(void *context)
{
    return ((struct fake_host *)context)->core;
}

/* Steps the core and carries its effects out; the reply goes to `request` (NULL: none). */
static void fake_step(struct fake_host *host, struct event *event, struct api_request *request)
{
    struct effects effects = {0};
    event->seq = ++host->seq;
    event->stamp_ns = fake_now(host);
    if (event->stamp_ns < core_now(host->core))
        event->stamp_ns = core_now(host->core);
    core_step(host->core, event, &effects);
    for (size_t i = 0; i < effects.list.len; i++) {
        const struct effect *effect = &effects.list.items[i];
        if (effect->kind == EFFECT_CHANGED && host->api)
            api_changed(host->api, effect);
        else if (effect->kind == EFFECT_REPLY && request)
            api_reply(request, effect);
        else if (effect->kind == EFFECT_TASK_START)
            vec_push(&host->starts, effect->start->uid);
        else if (effect->kind == EFFECT_TASK_STOP)
            vec_push(&host->stops, effect->stop.stop.task);
    }
    vec_done(&effects.list);
}

static void fake_report(struct fake_host *host, obj_id uid, struct task_report report)
{
    const struct task *task = jobs_find_task(core_jobs(host->core), uid);
    if (!task || task->machine == MACHINE_NONE)
        return;
    report.task = uid;
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = core_cluster(host->core)->machines[task->machine].name;
    event.reports.reports = (struct reports){.number = host->seq + 1, .items = &report, .count = 1};
    fake_step(host, &event, NULL);
}

/* Carries out what was asked for: tasks start, and end when they are told to. */
static void fake_obey(struct fake_host *host)
{
    while (!host->hold_tasks && (host->starts.len || host->stops.len)) {
        obj_id uid = host->starts.len ? host->starts.items[0] : host->stops.items[0];
        bool start = host->starts.len > 0;
        if (start)
            vec_remove(&host->starts, 0);
        else
            vec_remove(&host->stops, 0);
        struct task_report report = {.kind = start ? REPORT_STARTED : REPORT_EXITED,
                                     .started_ns = fake_now(host),
                                     .finished_ns = fake_now(host),
                                     .exit_code = -1,
                                     .signal = start ? 0 : 15};
        fake_report(host, uid, report);
    }
}

static void fake_commit(uv_prepare_t *prepare)
{
    struct fake_host *host = prepare->data;
    if (host->hold_commits)
        return;
    while (host->writes.len) {
        struct fake_write write = host->writes.items[0];
        vec_remove(&host->writes, 0);
        struct event event = {.kind = EVENT_WRITE, .write = write.event};
        if (host->disk_full)
            api_reply_error(write.request, 507, "InsufficientStorage", "the disk is full");
        else
            fake_step(host, &event, write.request);
        prepared_write_free(write.event.prepared);
    }
    fake_obey(host);
    api_flush(host->api);
}

static void fake_tick(uv_timer_t *timer)
{
    struct fake_host *host = timer->data;
    if (core_deadline(host->core) > fake_now(host))
        return;
    struct event event = {.kind = EVENT_TICK};
    fake_step(host, &event, NULL);
    fake_obey(host);
}

static void fake_begins(void *context)
{
    struct fake_host *host = context;
    CHECK(!host->lent);
    host->lent = true;
}

static void fake_ends(void *context)
{
    struct fake_host *host = context;
    CHECK(host->lent);
    host->lent = false;
}

static void fake_submit(void *context, const struct write_event *write, struct api_request *request)
{
    struct fake_host *host = context;
    CHECK(host->lent); /* checking a write takes long */
    struct fake_write item = {*write, request};
    vec_push(&host->writes, item);
}

static void fake_logs(void *context, const struct task *task, const struct api_log_options *options,
                      struct api_stream *stream)
{
    struct fake_host *host = context;
    host->log_options = *options;
    host->stream = stream;
    if (!host->log_answers_itself)
        return;
    char text[256];
    int len = snprintf(text, sizeof text, "line 1 of " STR_FORMAT "\nline 2\nline 3\n", STR_ARG(task->name));
    host->stream = NULL;
    api_log_data(stream, (struct str){text, (size_t)len}, !options->follow, NULL);
}

static void fake_logs_closed(void *context, struct api_stream *stream)
{
    struct fake_host *host = context;
    host->logs_closed++;
    if (host->stream == stream)
        host->stream = NULL;
}

static void fake_exec(void *context, const struct task *task, const struct api_exec_options *options,
                      struct api_exec *exec)
{
    ((struct fake_host *)context)->exec = exec;
}

static void fake_exec_input(void *context, struct api_exec *exec, struct str bytes, bool end)
{
}

static void fake_exec_credit(void *context, struct api_exec *exec, uint64_t bytes)
{
}

static void fake_exec_resize(void *context, struct api_exec *exec, uint16_t width, uint16_t height)
{
}

/* All but m-2's agent have confirmed the hold of the leases. */
static bool fake_hold_counts(void *context, machine_id machine)
{
    return machine != 1;
}

static void fake_exec_closed(void *context, struct api_exec *exec)
{
    struct fake_host *host = context;
    host->execs_closed++;
    host->exec = NULL;
}

static void fake_hello(struct fake_host *host, const struct machine *machine)
{
    struct event event = {.kind = EVENT_MACHINE_HELLO};
    event.machine_hello.hello = (struct hello){.version = WIRE_VERSION,
                                               .machine = machine->name,
                                               .incarnation = 1,
                                               .chips = machine->chip_count,
                                               .software = STR("fake")};
    fake_step(host, &event, NULL);
}

/* Loads a cluster file and says hello for every machine. */
static void fake_load_cluster(struct fake_host *host, const char *path)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf text BUF_CLEANUP = {0}, json BUF_CLEANUP = {0};
    struct doc_list docs;
    struct error error = {0};
    char chunk[4096];
    size_t len;
    FILE *file = fopen(path, "rb");
    CHECK(file);
    while ((len = fread(chunk, 1, sizeof chunk, file)) > 0)
        buf_add(&text, chunk, len);
    fclose(file);
    CHECK(yaml_parse_all(&arena, buf_str(&text), &docs, &error) == 0 && docs.len == 1);
    json_write(&json, docs.items[0]);
    struct event event = {.kind = EVENT_CLUSTER};
    event.cluster.document = buf_str(&json);
    fake_step(host, &event, NULL);
    const struct cluster *cluster = core_cluster(host->core);
    for (size_t i = 0; i < cluster->machine_count; i++)
        fake_hello(host, &cluster->machines[i]);
}

static void fake_start(struct fake_host *host, const char *cluster_path, uint16_t port)
{
    struct error error = {0};
    CHECK(uv_loop_init(&host->loop) == 0);
    host->core = core_new();
    struct event boot = {.kind = EVENT_BOOT};
    boot.boot.epoch = 1;
    boot.boot.version = STR("test");
    fake_step(host, &boot, NULL);
    fake_load_cluster(host, cluster_path);
    struct api_options options = {.port = port,
                                  .connections_of_address_max = host->connections_of_address_max,
                                  .hooks = {host, fake_core, fake_now, fake_submit, fake_logs,
                                            fake_logs_closed, fake_exec, fake_exec_input, fake_exec_credit,
                                            fake_exec_resize, fake_exec_closed, fake_hold_counts, fake_begins,
                                            fake_ends}};
    if (api_new(&host->loop, &options, &host->api, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        CHECK_UNREACHABLE();
    }
    uv_prepare_init(&host->loop, &host->commit);
    uv_timer_init(&host->loop, &host->tick);
    host->commit.data = host->tick.data = host;
    uv_prepare_start(&host->commit, fake_commit);
    uv_timer_start(&host->tick, fake_tick, 20, 20);
    patience_init(&host->patience, &host->loop);
}

#define RUN_UNTIL(host, condition) PATIENT_UNTIL(&(host)->patience, condition)

static void fake_stop(struct fake_host *host)
{
    api_close(host->api, NULL, NULL);
    uv_close((uv_handle_t *)&host->commit, NULL);
    uv_close((uv_handle_t *)&host->tick, NULL);
    patience_done(&host->patience);
    CHECK(uv_run(&host->loop, UV_RUN_DEFAULT) == 0);
    CHECK(uv_loop_close(&host->loop) == 0);
    core_free(host->core);
    for (size_t i = 0; i < host->writes.len; i++)
        prepared_write_free(host->writes.items[i].event.prepared);
    vec_done(&host->writes);
    vec_done(&host->starts);
    vec_done(&host->stops);
}

#endif
