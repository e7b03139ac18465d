/* readers.c - log streams: from the agent that has the log file to the API's reader. */
#include "host/controller/internal.h"

#include <stdio.h>

int readers_unreachable(const struct controller *controller, const struct task *task, struct error *error)
{
    if (task->machine == MACHINE_NONE)
        return error_set(error, ERROR_UNAVAILABLE, "the task has not been placed on a machine yet");
    struct str name = core_cluster(controller->core)->machines[task->machine].name;
    return error_set(error, ERROR_UNAVAILABLE,
                     "machine " STR_FORMAT " of the task is not connected: try again when its agent is back",
                     STR_ARG(name));
}

static void ask(struct controller *controller, machine_id machine, const struct task *task,
                const struct api_log_options *options, struct api_stream *reader, bool likely)
{
    struct arena arena ARENA_CLEANUP = {0};
    bool earlier = options->attempt >= 0;
    struct log_stream stream = {.number = ++controller->next_stream,
                                .machine = machine,
                                .reader = reader,
                                .task = task->uid,
                                .first = true,
                                .earlier = earlier,
                                .likely = likely,
                                .options = *options};
    vec_push(&controller->streams, stream);
    struct from_controller message = {
        .kind = FROM_CONTROLLER_LOG_OPEN,
        .log_open = {.stream = stream.number,
                     .task = task->uid,
                     .follow = options->follow,
                     .previous = options->previous,
                     .tail_lines = options->tail_lines,
                     .since_ns = options->since_ns,
                     .limit_bytes = options->limit_bytes,
                     .container = options->container,
                     .timestamps = options->timestamps,
                     .attempt = options->attempt,
                     .after = task->job->jobset->uid},
    };
    if (earlier)
        message.log_open.earlier =
            arena_printf(&arena, STR_FORMAT "." STR_FORMAT, STR_ARG(task->job->jobset->namespace_),
                         STR_ARG(task->hostname));
    CHECK(peers_send(controller, machine, &message));
}

/* Marks the machine if it is connected. */
static void mark(const struct controller *controller, machine_id machine, bool *marks)
{
    if (machine != MACHINE_NONE && driver_session(controller->driver, machine))
        marks[machine] = true;
}

static void mark_named(const struct controller *controller, const char *name, bool *marks)
{
    const struct cluster *cluster = core_cluster(controller->core);
    const struct machine *machine = cluster_find(cluster, str_from(name));
    if (machine)
        mark(controller, (machine_id)(machine - cluster->machines), marks);
}

/* Marks the machines that ran, or may have run, the task's index according to its records: the present and
 * the last one, those that ended later attempts, and those with signatures of later attempts. */
static void mark_likely(const struct controller *controller, const struct task *task, int32_t attempt,
                        bool *marks)
{
    const struct jobset *jobset = task->job->jobset;
    const struct restart_history *restarts = &jobset->history;
    uint32_t slot = task->job->first_slot + (uint32_t)task->index;
    mark(controller, task->machine, marks);
    if (task->job->index_count && slot < jobset->slots.count)
        mark(controller, jobset->slots.last_machines[slot], marks);
    for (size_t i = 0; i < restarts->suspect_count; i++)
        mark(controller, restarts->suspects[i], marks);
    for (uint32_t i = 0; i < restarts->record_count && i < RESTART_RECORDS_MAX; i++) {
        const struct restart_record *record = &restarts->records[i];
        if (record->attempt <= attempt)
            continue;
        mark_named(controller, record->machine, marks);
        for (size_t k = 0; k < record->signatures.count; k++)
            mark_named(controller, record->signatures.items[k].machine, marks);
    }
}

/* Asks the likely machines, or all connected ones. Returns false if there is none. */
static bool ask_machines(struct controller *controller, const struct task *task,
                         const struct api_log_options *options, struct api_stream *reader, bool likely)
{
    struct arena arena ARENA_CLEANUP = {0};
    size_t count = core_cluster(controller->core)->machine_count;
    bool *marks = arena_alloc(&arena, count * sizeof *marks), any = false;
    memset(marks, 0, count * sizeof *marks);
    if (likely)
        mark_likely(controller, task, options->attempt, marks);
    else
        for (machine_id m = 0; m < count; m++)
            mark(controller, m, marks);
    for (machine_id m = 0; m < count; m++) {
        if (!marks[m])
            continue;
        ask(controller, m, task, options, reader, likely);
        any = true;
    }
    return any;
}

/* Asks for the log of an earlier attempt. Records may not show where that attempt ran, so the likely
 * machines are asked first; if none of them has the log, all others are. One answers. */
static bool ask_all(struct controller *controller, const struct task *task,
                    const struct api_log_options *options, struct api_stream *reader)
{
    return ask_machines(controller, task, options, reader, true) ||
           ask_machines(controller, task, options, reader, false);
}

void readers_open(void *context, const struct task *task, const struct api_log_options *options,
                  struct api_stream *reader)
{
    struct controller *controller = context;
    struct error why;
    if (options->attempt >= 0) {
        if (!ask_all(controller, task, options, reader))
            api_log_data(reader, STR(""), true, LOG_NOT_KEPT);
        return;
    }
    if (task->machine == MACHINE_NONE || !driver_session(controller->driver, task->machine)) {
        (void)readers_unreachable(controller, task, &why);
        api_log_data(reader, STR(""), true, why.text);
        return;
    }
    ask(controller, task->machine, task, options, reader, false);
}

static void close_at_agent(struct controller *controller, const struct log_stream *stream)
{
    struct from_controller message = {.kind = FROM_CONTROLLER_LOG_CLOSE, .number = stream->number};
    (void)peers_send(controller, stream->machine, &message);
}

/* Closes the reader's streams except one (0: all), at the agents too. */
static void drop_others(struct controller *controller, const struct api_stream *reader, uint64_t kept)
{
    for (size_t i = 0; i < controller->streams.len;) {
        const struct log_stream *stream = &controller->streams.items[i];
        if (stream->reader != reader || stream->number == kept) {
            i++;
            continue;
        }
        close_at_agent(controller, stream);
        vec_remove(&controller->streams, i);
    }
}

void readers_closed(void *context, struct api_stream *reader)
{
    drop_others(context, reader, 0);
}

static bool has_stream(const struct controller *controller, const struct api_stream *reader)
{
    for (size_t i = 0; i < controller->streams.len; i++)
        if (controller->streams.items[i].reader == reader)
            return true;
    return false;
}

/* Asks the unlikely machines for an earlier log, after no likely one had it. Returns false if the stream is
 * not of that kind, or no machine is connected. */
static bool ask_the_others(struct controller *controller, const struct log_stream *stream)
{
    const struct task *task = jobs_find_task(core_jobs(controller->core), stream->task);
    return stream->likely && task && ask_machines(controller, task, &stream->options, stream->reader, false);
}

/* Nothing has arrived: asks other places that may have the log. These are other machines, and the previous
 * attempt if a container has no previous run in this one. Returns false if there is none. */
static bool goes_on_elsewhere(struct controller *controller, const struct log_stream *stream,
                              struct str error)
{
    const struct task *task = jobs_find_task(core_jobs(controller->core), stream->task);
    if (stream->first && stream->earlier && str_is(error, LOG_NOT_KEPT) &&
        (has_stream(controller, stream->reader) || ask_the_others(controller, stream)))
        return true;
    if (!stream->first || !stream->options.previous || !task || task->attempt == 0 ||
        !str_is(error, "previous terminated container not found"))
        return false;
    struct api_log_options options = stream->options;
    options.follow = false; /* `previous` stays set: it decides the error message */
    options.attempt = task->attempt - 1;
    return ask_all(controller, task, &options, stream->reader);
}

static void pass_on(struct controller *controller, size_t at, const struct log_data *data)
{
    struct log_stream stream = controller->streams.items[at];
    bool empty = data->end && data->error.len > 0 && data->bytes.len == 0;
    char why[ERROR_TEXT_MAX];
    snprintf(why, sizeof(why), STR_FORMAT, STR_ARG(data->error));
    if (data->end)
        vec_remove(&controller->streams, at);
    if (empty && goes_on_elsewhere(controller, &stream, data->error))
        return;
    if (!data->end)
        controller->streams.items[at].first = false;
    if (stream.options.previous && stream.earlier && str_is(data->error, LOG_NOT_KEPT))
        snprintf(why, sizeof(why), "previous terminated container not found");
    if (stream.first && stream.earlier)
        drop_others(controller, stream.reader, stream.number);
    bool cut = api_log_data(stream.reader, data->bytes, data->end, data->error.len ? why : NULL) < 0;
    if (cut && !data->end)
        drop_others(controller, stream.reader, 0);
}

void readers_data(struct controller *controller, machine_id machine, const struct log_data *data)
{
    for (size_t i = 0; i < controller->streams.len; i++) {
        const struct log_stream *stream = &controller->streams.items[i];
        if (stream->number != data->stream || stream->machine != machine)
            continue;
        pass_on(controller, i, data);
        return;
    }
}

void readers_machine_gone(struct controller *controller, machine_id machine)
{
    for (size_t i = 0; i < controller->streams.len;) {
        struct log_stream stream = controller->streams.items[i];
        if (stream.machine != machine) {
            i++;
            continue;
        }
        vec_remove(&controller->streams, i);
        bool others = has_stream(controller, stream.reader) ||
                      (stream.first && stream.earlier && ask_the_others(controller, &stream));
        if (!others)
            api_log_data(stream.reader, STR(""), true,
                         stream.first && stream.earlier ? LOG_NOT_KEPT
                                                        : "the connection to the task's machine broke");
    }
}

void readers_end(struct controller *controller, const char *why)
{
    while (controller->streams.len) {
        struct api_stream *reader = controller->streams.items[0].reader;
        for (size_t i = 0; i < controller->streams.len;)
            if (controller->streams.items[i].reader == reader)
                vec_remove(&controller->streams, i);
            else
                i++;
        api_log_data(reader, STR(""), true, why);
    }
}
