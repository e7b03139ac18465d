/* A PJRT plugin that is wrong in the way that PHX_STUB names. It computes nothing: a function has one result
 * of two f32, which are the first argument's. */
#include <stdlib.h>
#include <string.h>

#include "flow/pjrt/abi.h"

static int is(const char *wrong)
{
    const char *name = getenv("PHX_STUB");
    return name && strcmp(name, wrong) == 0;
}

static int things[8], alive;
static float kept[2];

static struct pjrt_error *error_destroy(void *args)
{
    (void)args;
    return NULL;
}

static struct pjrt_error *error_message(void *args)
{
    struct pjrt_about_text *about = args;
    about->text = "the device is on fire, says nobody"; /* without an end where `len` says */
    about->len = 21;
    return NULL;
}

static struct pjrt_error *error_code(void *args)
{
    ((struct pjrt_about_int *)args)->answer =
        is("memory") ? PJRT_CODE_RESOURCE_EXHAUSTED : PJRT_CODE_INTERNAL;
    return NULL;
}

static struct pjrt_error *failure(void)
{
    return (struct pjrt_error *)&things[0];
}

static struct pjrt_error *gone(void *args)
{
    (void)args;
    alive--;
    return NULL;
}

static struct pjrt_error *await(void *args)
{
    (void)args;
    return is("late") ? failure() : NULL;
}

static struct pjrt_error *client_create(void *args)
{
    ((struct pjrt_client_create *)args)->client = (struct pjrt_client *)&things[1];
    return is("client") ? failure() : NULL;
}

static struct pjrt_error *devices(void *args)
{
    static void *list[] = {&things[2]};
    struct pjrt_about_list *about = args;
    about->items = list;
    about->count = !is("device");
    return NULL;
}

static struct pjrt_error *compile(void *args)
{
    ((struct pjrt_client_compile *)args)->loaded = (struct pjrt_loaded *)&things[3];
    if (is("compile"))
        return failure();
    alive++;
    return NULL;
}

static struct pjrt_error *executable(void *args)
{
    ((struct pjrt_about_object *)args)->answer = &things[4];
    alive++;
    return NULL;
}

static struct pjrt_error *outputs(void *args)
{
    ((struct pjrt_about_size *)args)->answer = is("outputs") ? 2 : 1;
    return NULL;
}

static struct pjrt_error *output_types(void *args)
{
    static int types[1];
    struct pjrt_output_types *about = args;
    types[0] = is("type") ? PJRT_TYPE_F64 : PJRT_TYPE_F32;
    about->types = types;
    about->count = 1;
    return NULL;
}

static struct pjrt_error *output_dimensions(void *args)
{
    static int64_t dims[1];
    static size_t ranks[1];
    struct pjrt_output_dimensions *about = args;
    dims[0] = is("dims") ? 3 : 2;
    ranks[0] = is("rank") ? 0 : 1;
    about->count = 1;
    about->dims = dims;
    about->dim_counts = ranks;
    return NULL;
}

static struct pjrt_error *memory_stats(void *args)
{
    ((struct pjrt_memory_stats *)args)->temporary = is("stats") ? -5 : 100;
    return NULL;
}

static struct pjrt_error *from_host(void *args)
{
    struct pjrt_buffer_from_host *send = args;
    if (is("send"))
        return failure();
    memcpy(kept, send->data, sizeof kept);
    send->buffer = (struct pjrt_buffer *)&things[5];
    send->done_with_host = NULL; /* there is nothing to wait for */
    alive++;
    return NULL;
}

static struct pjrt_error *execute(void *args)
{
    struct pjrt_execute *order = args;
    if (is("execute") || is("memory"))
        return failure();
    order->outputs[0][0] = (struct pjrt_buffer *)&things[6];
    order->complete[0] = (struct pjrt_event *)&things[7];
    alive += 2;
    return NULL;
}

static struct pjrt_error *to_host(void *args)
{
    struct pjrt_buffer_to_host *fetch = args;
    if (is("fetch"))
        return failure();
    memcpy(fetch->to, kept, sizeof kept);
    fetch->event = NULL;
    return NULL;
}

int stub_alive(void); /* objects that were made and not destroyed */
int stub_alive(void)
{
    return alive;
}

const struct pjrt_api *GetPjrtApi(void);
const struct pjrt_api *GetPjrtApi(void)
{
    static struct pjrt_api api;
    api = (struct pjrt_api){
        .size = sizeof api,
        .version = {sizeof api.version, NULL, 0, 90},
        .slots = {[PJRT_ERROR_DESTROY] = error_destroy,
                  [PJRT_ERROR_MESSAGE] = error_message,
                  [PJRT_ERROR_CODE] = error_code,
                  [PJRT_EVENT_DESTROY] = gone,
                  [PJRT_EVENT_AWAIT] = await,
                  [PJRT_CLIENT_CREATE] = client_create,
                  [PJRT_CLIENT_ADDRESSABLE_DEVICES] = devices,
                  [PJRT_CLIENT_COMPILE] = compile,
                  [PJRT_CLIENT_BUFFER_FROM_HOST] = from_host,
                  [PJRT_EXECUTABLE_DESTROY] = gone,
                  [PJRT_EXECUTABLE_OUTPUTS] = outputs,
                  [PJRT_EXECUTABLE_OUTPUT_TYPES] = output_types,
                  [PJRT_EXECUTABLE_OUTPUT_DIMENSIONS] = output_dimensions,
                  [PJRT_EXECUTABLE_MEMORY_STATS] = memory_stats,
                  [PJRT_LOADED_DESTROY] = gone,
                  [PJRT_LOADED_EXECUTABLE] = executable,
                  [PJRT_LOADED_EXECUTE] = execute,
                  [PJRT_BUFFER_DESTROY] = gone,
                  [PJRT_BUFFER_TO_HOST] = to_host},
    };
    if (is("major"))
        api.version.major = 1;
    if (is("minor"))
        api.version.minor = 56;
    if (is("short"))
        api.size = offsetof(struct pjrt_api, slots) + 60 * sizeof api.slots[0];
    if (is("missing"))
        api.slots[PJRT_LOADED_EXECUTE] = NULL;
    if (is("optional"))
        api.slots[PJRT_EXECUTABLE_MEMORY_STATS] = api.slots[PJRT_ERROR_CODE] = NULL;
    return is("null") ? NULL : &api;
}
