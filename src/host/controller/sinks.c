/* sinks.c - the driver's output, to the API and to readers of streams. */
#include <stdio.h>

#include "host/controller/internal.h"

/* Prints the core's warnings about a new cluster file, and about a machine that differs from the file, for
 * the operator who started the controller. */
static void tell_operator(const struct object_ref *object, bool of_file)
{
    if (object->kind == OBJECT_EVENT && object->note->warning &&
        (of_file || str_is(object->note->reason, "InventoryMismatch")))
        fprintf(stderr, "warning: " STR_FORMAT ": " STR_FORMAT "\n", STR_ARG(object->note->reason),
                STR_ARG(object->note->message));
}

static void changed(void *context, const struct event *cause, const struct effect *effect)
{
    struct controller *controller = context;
    if (cause->kind == EVENT_CLUSTER || cause->kind == EVENT_MACHINE_HELLO)
        tell_operator(&effect->changed.object, cause->kind == EVENT_CLUSTER);
    if (controller->api)
        api_changed(controller->api, effect);
}

static struct api_request *request_of(drive_request request)
{
    return (struct api_request *)(uintptr_t)request;
}

static void reply(void *context, drive_request request, const struct effect *effect)
{
    api_reply(request_of(request), effect);
}

static void refuse(void *context, drive_request request, int code, const char *reason, const char *why)
{
    api_reply_error(request_of(request), code, reason, why);
}

static void said(void *context, machine_id machine, const struct from_agent *message)
{
    struct controller *controller = context;
    switch (message->kind) {
    case FROM_AGENT_LOG_DATA:
        readers_data(controller, machine, &message->log_data);
        break;
    case FROM_AGENT_EXEC_DATA:
        execs_data(controller, machine, &message->exec_data);
        break;
    case FROM_AGENT_EXEC_END:
        execs_end(controller, machine, &message->exec_end);
        break;
    case FROM_AGENT_HEARTBEAT:
        if (controller->api)
            api_usage(controller->api, machine, &message->heartbeat.usage);
        break;
    default:
        CHECK_UNREACHABLE();
    }
}

static void session_over(void *context, machine_id machine)
{
    readers_machine_gone(context, machine);
    execs_machine_gone(context, machine);
}

static void before_step(void *context, const struct event *event)
{
    lease_lend(context);
}

static void after_step(void *context, const struct event *event, const struct drive_record *record,
                       const struct effects *effects)
{
    if (event->kind == EVENT_CLUSTER)
        switches_follow(context);
    (void)lease_take(context);
}

struct sink_port sink_port(struct controller *controller)
{
    return (struct sink_port){.context = controller,
                              .reply = reply,
                              .refuse = refuse,
                              .changed = changed,
                              .said = said,
                              .before_step = before_step,
                              .after_step = after_step,
                              .session_over = session_over};
}
