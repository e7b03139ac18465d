/* readers.c - log streams: from the agent that has the file to the API reader who asked. */
#include "host/controller/internal.h"

#include <stdio.h>

int readers_unreachable(const struct controller *controller, const struct task *task, struct error *error)
{
    if (task->machine == MACHINE_NONE)
        return error_set(error, ERROR_UNAVAILABLE, "the task has not been placed on a machine yet");
    struct str name = core_cluster(controller->core)->machines[task->machine].name;
    return error_set(error, ERROR_UNAVAILABLE,
                     "machine " STR_FORMAT " of the task is not connected: what is there can be reached when "
                     "its agent is back",
                     STR_ARG(name));
}

void readers_open(void *context, const struct task *task, const struct api_log_options *options,
                  struct api_stream *reader)
{
    struct controller *controller = context;
    const struct link *link = task->machine == MACHINE_NONE ? NULL : &controller->links[task->machine];
    if (!link || !link->welcomed) {
        struct error why;
        (void)readers_unreachable(controller, task, &why);
        api_log_data(reader, STR(""), true, why.text);
        return;
    }
    struct log_stream stream = {++controller->next_stream, task->machine, reader};
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
                     .timestamps = options->timestamps},
    };
    wire_send_controller(link->conn, &message);
}

static void close_at_agent(struct controller *controller, const struct log_stream *stream)
{
    const struct link *link = &controller->links[stream->machine];
    struct from_controller message = {.kind = FROM_CONTROLLER_LOG_CLOSE, .number = stream->number};
    if (link->welcomed)
        wire_send_controller(link->conn, &message);
}

void readers_closed(void *context, struct api_stream *reader)
{
    struct controller *controller = context;
    for (size_t i = 0; i < controller->streams.len; i++) {
        if (controller->streams.items[i].reader != reader)
            continue;
        close_at_agent(controller, &controller->streams.items[i]);
        vec_remove(&controller->streams, i);
        return;
    }
}

void readers_data(struct controller *controller, machine_id machine, const struct log_data *data)
{
    for (size_t i = 0; i < controller->streams.len; i++) {
        struct log_stream stream = controller->streams.items[i];
        if (stream.number != data->stream || stream.machine != machine)
            continue;
        char why[ERROR_TEXT_MAX];
        snprintf(why, sizeof(why), STR_FORMAT, STR_ARG(data->error));
        bool cut = api_log_data(stream.reader, data->bytes, data->end, data->error.len ? why : NULL) < 0;
        if (cut)
            close_at_agent(controller, &stream);
        if (cut || data->end)
            vec_remove(&controller->streams, i);
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
        api_log_data(stream.reader, STR(""), true, "the connection to the task's machine broke");
    }
}
