/* execs.c - commands in tasks' containers: between the API client and the agent of the task's machine. */
#include "host/controller/internal.h"

#include <stdio.h>

static struct exec_stream *find_reader(struct controller *controller, const struct api_exec *reader)
{
    for (size_t i = 0; i < controller->execs.len; i++)
        if (controller->execs.items[i].reader == reader)
            return &controller->execs.items[i];
    return NULL;
}

static void forget(struct controller *controller, const struct exec_stream *stream)
{
    vec_remove(&controller->execs, (size_t)(stream - controller->execs.items));
}

/* --- from the client ------------------------------------------------------------------------------ */

void execs_open(void *context, const struct task *task, const struct api_exec_options *options,
                struct api_exec *reader)
{
    struct controller *controller = context;
    if (task->machine == MACHINE_NONE || !driver_session(controller->driver, task->machine)) {
        struct error why;
        (void)readers_unreachable(controller, task, &why);
        api_exec_end(reader, -1, why.text);
        return;
    }
    struct exec_stream stream = {++controller->next_stream, task->machine, reader};
    vec_push(&controller->execs, stream);
    struct from_controller message = {.kind = FROM_CONTROLLER_EXEC_OPEN,
                                      .exec_open = {.stream = stream.number,
                                                    .task = task->uid,
                                                    .container = options->container,
                                                    .argv = options->argv,
                                                    .argc = options->argc,
                                                    .tty = options->tty,
                                                    .input = options->input,
                                                    .credit = API_EXEC_WINDOW_BYTES}};
    CHECK(peers_send(controller, task->machine, &message));
}

static void send_data(struct controller *controller, const struct api_exec *reader, struct exec_data data)
{
    const struct exec_stream *stream = find_reader(controller, reader);
    CHECK(stream);
    struct from_controller message = {.kind = FROM_CONTROLLER_EXEC_INPUT, .exec_data = data};
    message.exec_data.stream = stream->number;
    (void)peers_send(controller, stream->machine, &message);
}

void execs_input(void *context, struct api_exec *reader, struct str bytes, bool end)
{
    send_data(context, reader, (struct exec_data){.channel = EXEC_STDIN, .bytes = bytes, .end = end});
}

void execs_credit(void *context, struct api_exec *reader, uint64_t bytes)
{
    send_data(context, reader, (struct exec_data){.channel = EXEC_STDIN, .credit = bytes});
}

void execs_resize(void *context, struct api_exec *reader, uint16_t width, uint16_t height)
{
    struct controller *controller = context;
    const struct exec_stream *stream = find_reader(controller, reader);
    CHECK(stream);
    (void)peers_send(controller, stream->machine,
                     &(struct from_controller){.kind = FROM_CONTROLLER_EXEC_RESIZE,
                                               .exec_resize = {stream->number, width, height}});
}

void execs_closed(void *context, struct api_exec *reader)
{
    struct controller *controller = context;
    const struct exec_stream *stream = find_reader(controller, reader);
    CHECK(stream);
    (void)peers_send(controller, stream->machine,
                     &(struct from_controller){.kind = FROM_CONTROLLER_EXEC_CLOSE, .number = stream->number});
    forget(controller, stream);
}

/* --- from the agent ------------------------------------------------------------------------------- */

static struct exec_stream *find_number(struct controller *controller, machine_id machine, uint64_t number)
{
    for (size_t i = 0; i < controller->execs.len; i++) {
        struct exec_stream *stream = &controller->execs.items[i];
        if (stream->number == number && stream->machine == machine)
            return stream;
    }
    return NULL; /* closed here; the agent will learn of it */
}

void execs_data(struct controller *controller, machine_id machine, const struct exec_data *data)
{
    const struct exec_stream *stream = find_number(controller, machine, data->stream);
    if (!stream)
        return;
    struct api_exec *reader = stream->reader;
    if (data->bytes.len && !api_exec_output(reader, data->channel == EXEC_STDERR, data->bytes)) {
        (void)peers_send(
            controller, machine,
            &(struct from_controller){.kind = FROM_CONTROLLER_EXEC_CLOSE, .number = data->stream});
        forget(controller, stream);
        api_exec_end(reader, -1, "the machine's agent sent more than it was asked for");
        return;
    }
    if (data->credit)
        api_exec_credit(reader, data->credit);
}

void execs_end(struct controller *controller, machine_id machine, const struct exec_end *end)
{
    const struct exec_stream *stream = find_number(controller, machine, end->stream);
    if (!stream)
        return;
    struct api_exec *reader = stream->reader;
    char why[ERROR_TEXT_MAX];
    snprintf(why, sizeof(why), STR_FORMAT, STR_ARG(end->error));
    forget(controller, stream);
    api_exec_end(reader, end->exit_code, why);
}

void execs_finish(struct controller *controller, const char *why)
{
    while (controller->execs.len) {
        struct exec_stream stream = controller->execs.items[0];
        vec_remove(&controller->execs, 0);
        api_exec_end(stream.reader, -1, why);
    }
}

void execs_machine_gone(struct controller *controller, machine_id machine)
{
    for (size_t i = 0; i < controller->execs.len;) {
        struct exec_stream stream = controller->execs.items[i];
        if (stream.machine != machine) {
            i++;
            continue;
        }
        vec_remove(&controller->execs, i);
        api_exec_end(stream.reader, -1, "the connection to the task's machine broke");
    }
}
