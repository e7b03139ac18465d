/* phalanx flow trace: records what the devices of a flow runtime do, in a file for chrome://tracing and
 * Perfetto.
 *
 * The file is the Trace Event Format in its JSON form: a process for each host with a thread for each device
 * (complete events, one a run), a process for each client with its launches (async events: queued, then the
 * launch), transfers between hosts as async events of the receiver. Events are written as they arrive, so the
 * memory of this command does not grow with the trace.
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/map.h"
#include "base/units.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/usage.h"
#include "flow/host/watch.h"

static const char flow_trace_usage[] =
    "Usage: phalanx flow trace ADDRESS -o FILE [--time TIME] [--token-file FILE]\n"
    "\n"
    "Records what the devices of the head at ADDRESS do, for 5 s or until SIGINT, and writes it to FILE, "
    "which\n"
    "https://ui.perfetto.dev and chrome://tracing show: the runs of each device, named by their function "
    "and\n"
    "coloured by client, the launches of each client, and transfers between hosts.\n"
    "\n"
    "  -o, --output FILE      the file; \"-\": standard output\n"
    "      --time TIME        how long to record (default 5s; 0: until SIGINT)\n"
    "      --token-file FILE  the head's token (default: as for clients)\n"
    "      --help             this text\n";

/* Numbers of processes in the file: hosts from 1, clients from this one. */
enum { TRACE_CLIENT_PID = 1000000 };

struct trace_client {
    uint32_t id;
    char name[STATUS_NAME_MAX + 1];
    struct u64_map functions; /* handle → name, of the arena */
};

struct flow_tracing {
    FILE *out;
    int64_t began_ns; /* wall-clock time that is time 0 of the file */
    struct buf line;
    struct arena arena;
    VEC(struct trace_client *) clients;
    struct u64_map client_index, hosts; /* clients; hosts and devices already named in the file */
    struct u64_map devices;
    uint64_t events, runs;
    bool some; /* an event has been written: the next one begins with a comma */
};

static void trace_line_end(struct flow_tracing *tracing)
{
    fputs(tracing->some ? ",\n" : "\n", tracing->out);
    fwrite(tracing->line.data, 1, tracing->line.len, tracing->out);
    buf_clear(&tracing->line);
    tracing->some = true;
}

/* Begins an event; the caller adds further members and ends the object. */
static void trace_event(struct flow_tracing *tracing, struct json_writer *writer, const char *phase,
                        int64_t pid, int64_t tid, int64_t at_ns)
{
    *writer = (struct json_writer){.out = &tracing->line};
    json_begin_object(writer);
    json_pair_text(writer, "ph", phase);
    json_pair_int(writer, "pid", pid);
    json_pair_int(writer, "tid", tid);
    if (at_ns >= 0) {
        json_key(writer, "ts"); /* microseconds */
        json_put_fixed(writer, at_ns, 3);
    }
    tracing->events++;
}

/* Metadata: the name of a process ("process_name") or thread ("thread_name"). */
static void trace_name(struct flow_tracing *tracing, const char *what, int64_t pid, int64_t tid,
                       struct str name)
{
    struct json_writer writer;
    trace_event(tracing, &writer, "M", pid, tid, -1);
    tracing->events--; /* metadata does not count as an event */
    json_pair_text(&writer, "name", what);
    json_key(&writer, "args");
    json_begin_object(&writer);
    json_pair_str(&writer, "name", name);
    json_end_object(&writer);
    json_end_object(&writer);
    trace_line_end(tracing);
}

static void trace_took_host(void *context, uint32_t host, struct str address)
{
    struct flow_tracing *tracing = context;
    char name[128];
    if (u64_map_put(&tracing->hosts, host, tracing))
        return;
    snprintf(name, sizeof name, "host %u (%.*s)", host, (int)(address.len < 80 ? address.len : 80),
             address.data);
    trace_name(tracing, "process_name", (int64_t)host + 1, 0, str_from(name));
    trace_name(tracing, "thread_name", (int64_t)host + 1, 0, STR("clients"));
}

static struct trace_client *trace_client_of(struct flow_tracing *tracing, uint32_t id)
{
    struct trace_client *client = u64_map_get(&tracing->client_index, id);
    if (client)
        return client;
    client = mem_alloc(sizeof *client);
    client->id = id;
    snprintf(client->name, sizeof client->name, "client %u", id);
    vec_push(&tracing->clients, client);
    u64_map_put(&tracing->client_index, id, client);
    return client;
}

static void trace_took_name(void *context, uint32_t id, uint64_t function, struct str name)
{
    struct flow_tracing *tracing = context;
    struct trace_client *client = trace_client_of(tracing, id);
    if (function != 0) {
        u64_map_put(&client->functions, function,
                    (void *)arena_printf(&tracing->arena, STR_FORMAT, STR_ARG(name)).data);
        return;
    }
    char text[128];
    snprintf(client->name, sizeof client->name, STR_FORMAT, STR_ARG(name));
    snprintf(text, sizeof text, "%.63s, client %u", client->name, id);
    trace_name(tracing, "process_name", TRACE_CLIENT_PID + (int64_t)id, 0, str_from(text));
}

/* Colours of chrome://tracing, one for each client in turn. */
static const char *trace_colour(const struct trace_record *record)
{
    static const char *const colours[] = {"thread_state_running",  "rail_animation",  "rail_load",
                                          "thread_state_iowait",   "cq_build_passed", "rail_response",
                                          "thread_state_runnable", "rail_idle"};
    return record->failed ? "terrible" : colours[record->client % (sizeof colours / sizeof *colours)];
}

static void trace_args(struct json_writer *writer, const struct trace_client *client,
                       const struct trace_record *record)
{
    json_key(writer, "args");
    json_begin_object(writer);
    json_pair_text(writer, "tenant", client->name);
    json_pair_int(writer, "client", client->id);
    if (record->launch)
        json_pair_int(writer, "launch", (int64_t)record->launch);
    if (record->program)
        json_pair_int(writer, "program", record->program);
    if (record->kind == TRACE_RUN)
        json_pair_int(writer, "node", record->node);
    else if (record->kind == TRACE_LAUNCH)
        json_pair_int(writer, "ticket", (int64_t)record->handle);
    else if (record->kind != TRACE_WAIT)
        json_pair_int(writer, "bytes", (int64_t)record->bytes);
    if (record->failed)
        json_pair_bool(writer, "failed", true);
    json_end_object(writer);
}

static void trace_run(struct flow_tracing *tracing, uint32_t host, const struct trace_client *client,
                      const struct trace_record *record)
{
    struct json_writer writer;
    int64_t pid = (int64_t)host + 1, tid = (int64_t)record->device + 1;
    if (!u64_map_put(&tracing->devices, (uint64_t)host << 32 | record->device, tracing)) {
        char name[40];
        snprintf(name, sizeof name, "device %u", record->device);
        trace_name(tracing, "thread_name", pid, tid, str_from(name));
    }
    const char *function = u64_map_get(&client->functions, record->handle);
    trace_event(tracing, &writer, "X", pid, tid, record->begin_ns);
    json_key(&writer, "dur");
    json_put_fixed(&writer, record->end_ns - record->begin_ns, 3);
    json_pair_text(&writer, "name", function ? function : "run");
    json_pair_text(&writer, "cat", client->name);
    json_pair_text(&writer, "cname", trace_colour(record));
    trace_args(&writer, client, record);
    json_end_object(&writer);
    trace_line_end(tracing);
    tracing->runs++;
}

/* Writes one end of an async event. */
static void trace_async(struct flow_tracing *tracing, const char *phase, const char *category,
                        const char *name, const char *id, int64_t pid, int64_t at_ns,
                        const struct trace_client *client, const struct trace_record *record)
{
    struct json_writer writer;
    trace_event(tracing, &writer, phase, pid, 0, at_ns);
    json_pair_text(&writer, "cat", category);
    json_pair_text(&writer, "name", name);
    json_pair_text(&writer, "id", id);
    if (phase[0] == 'b')
        trace_args(&writer, client, record);
    json_end_object(&writer);
    trace_line_end(tracing);
}

static void trace_launch(struct flow_tracing *tracing, const struct trace_client *client,
                         const struct trace_record *record)
{
    char id[64], name[64] = "queued";
    int64_t pid = TRACE_CLIENT_PID + (int64_t)client->id;
    snprintf(id, sizeof id, "%u.%llu", client->id, (unsigned long long)record->launch);
    if (record->kind == TRACE_LAUNCH)
        snprintf(name, sizeof name, "program %u", record->program);
    trace_async(tracing, "b", "launch", name, id, pid, record->begin_ns, client, record);
    trace_async(tracing, "e", "launch", name, id, pid, record->end_ns, client, record);
}

/* Writes one end of a transfer, which begins with its sender's record and ends with its receiver's. Viewers
 * match the two. */
static void trace_transfer(struct flow_tracing *tracing, uint32_t host, const struct trace_client *client,
                           const struct trace_record *record)
{
    bool sent = record->kind == TRACE_SENT;
    uint32_t from = sent ? host : record->peer, to = sent ? record->peer : host;
    char id[96], name[40];
    snprintf(id, sizeof id, "%u.%llu.%u.%u.%u", record->client, (unsigned long long)record->launch,
             record->node, from, to);
    snprintf(name, sizeof name, "from host %u", from);
    trace_async(tracing, sent ? "b" : "e", "transfer", name, id, (int64_t)to + 1, record->begin_ns, client,
                record);
}

static void trace_took_record(void *context, uint32_t host, const struct trace_record *record)
{
    struct flow_tracing *tracing = context;
    const struct trace_client *client = trace_client_of(tracing, record->client);
    struct trace_record shifted = *record;
    struct json_writer writer;
    if (shifted.end_ns < tracing->began_ns)
        return;
    shifted.end_ns -= tracing->began_ns; /* events that began before the trace start with it */
    shifted.begin_ns = shifted.begin_ns < tracing->began_ns ? 0 : shifted.begin_ns - tracing->began_ns;
    switch ((enum trace_kind)record->kind) {
    case TRACE_RUN:
        trace_run(tracing, host, client, &shifted);
        break;
    case TRACE_WAIT:
    case TRACE_LAUNCH:
        trace_launch(tracing, client, &shifted);
        break;
    case TRACE_SENT:
    case TRACE_RECEIVED:
        trace_transfer(tracing, host, client, &shifted);
        break;
    case TRACE_PUT:
    case TRACE_FETCHED:
        trace_event(tracing, &writer, "i", (int64_t)host + 1, 0, shifted.begin_ns);
        json_pair_text(&writer, "s", "t");
        json_pair_text(&writer, "name", record->kind == TRACE_PUT ? "put" : "fetch");
        trace_args(&writer, client, &shifted);
        json_end_object(&writer);
        trace_line_end(tracing);
        break;
    case TRACE_NONE:
    case TRACE_KINDS:
        break;
    }
}

static void flow_tracing_done(struct flow_tracing *tracing)
{
    for (size_t i = 0; i < tracing->clients.len; i++) {
        u64_map_done(&tracing->clients.items[i]->functions);
        mem_free(tracing->clients.items[i]);
    }
    vec_done(&tracing->clients);
    u64_map_done(&tracing->client_index);
    u64_map_done(&tracing->hosts);
    u64_map_done(&tracing->devices);
    arena_done(&tracing->arena);
    buf_done(&tracing->line);
}

/* Records events and writes the file. Returns an exit code. */
static int flow_trace_write(struct flow_watch *watch, int64_t time_ns, const char *path)
{
    bool to_stdout = str_is(STR("-"), path);
    struct flow_tracing tracing = {.out = to_stdout ? stdout : fopen(path, "we")};
    struct timespec day;
    struct error error = {0};
    if (!tracing.out) {
        say("writing %s: %s", path, strerror(errno));
        return EXIT_FAILED;
    }
    clock_gettime(CLOCK_REALTIME, &day);
    tracing.began_ns = day.tv_sec * NS_PER_SECOND + day.tv_nsec;
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", tracing.out);
    struct flow_trace_sink sink = {&tracing, trace_took_host, trace_took_name, trace_took_record};
    int rc = flow_watch_trace(watch, time_ns ? time_ns : INT64_MAX, flow_stop_signals(), &sink, &error);
    fputs("\n]}\n", tracing.out); /* even if the head was lost: the events so far are useful */
    if (rc < 0)
        say("%s", error.text);
    bool wrote = !ferror(tracing.out);
    wrote = (to_stdout ? fflush(tracing.out) : fclose(tracing.out)) == 0 && wrote;
    if (!wrote)
        say("writing %s: %s", path, strerror(errno));
    else if (!to_stdout)
        printf("%s: %llu events, %llu of them runs, of %zu devices and %zu clients\n", path,
               (unsigned long long)tracing.events, (unsigned long long)tracing.runs, tracing.devices.len,
               tracing.clients.len);
    flow_tracing_done(&tracing);
    return rc < 0 || !wrote ? EXIT_FAILED : EXIT_OK;
}

int flow_trace(int argc, char **argv)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"time", required_argument, NULL, 'T'},
                                            {"token-file", required_argument, NULL, 't'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *path = NULL, *token_file = NULL;
    int64_t time_ns = 5 * NS_PER_SECOND;
    int letter;
    while ((letter = usage_option(argc, argv, "o:h", options, NULL)) != -1) {
        if (letter == 'h') {
            fputs(flow_trace_usage, stdout);
            return EXIT_OK;
        }
        if (letter == 'o')
            path = optarg;
        else if (letter == 't')
            token_file = optarg;
        else if (letter != 'T' || !usage_value(duration_parse(str_from(optarg), &time_ns)))
            return usage_wrong(flow_trace_usage, NULL);
    }
    if (optind + 1 != argc || !path)
        return usage_wrong(flow_trace_usage, optind == argc       ? "ADDRESS is missing"
                                             : optind + 1 != argc ? "too many arguments"
                                                                  : "-o FILE is missing");
    struct flow_watch *watch;
    struct error error;
    if (flow_watch_open(argv[optind], token_file, &watch, &error) < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    int code = flow_trace_write(watch, time_ns, path);
    flow_watch_close(watch);
    return code;
}
