/* api.c - the table of functions; errors and events. */
#include "flow/plugin/plugin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

/* --- errors --------------------------------------------------------------------------------------------- */

struct pjrt_error *plugin_error(enum pjrt_code code, const char *format, ...)
{
    struct pjrt_error *error = mem_alloc(sizeof *error);
    error->code = code;
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return error;
}

struct pjrt_error *plugin_error_of(const struct error *error)
{
    enum pjrt_code code = error->code == ERROR_UNSUPPORTED   ? PJRT_CODE_UNIMPLEMENTED
                          : error->code == ERROR_LIMIT       ? PJRT_CODE_RESOURCE_EXHAUSTED
                          : error->code == ERROR_NOT_FOUND   ? PJRT_CODE_NOT_FOUND
                          : error->code == ERROR_UNAVAILABLE ? PJRT_CODE_UNAVAILABLE
                                                             : PJRT_CODE_INVALID_ARGUMENT;
    return plugin_error(code, "%s", error->text);
}

struct pjrt_error *plugin_too_small(void)
{
    return plugin_error(PJRT_CODE_INVALID_ARGUMENT,
                        "a structure is smaller than expected: the caller is older than PJRT %d.%d",
                        PJRT_MAJOR, PJRT_MINOR_LEAST);
}

static struct pjrt_error *error_destroy(void *args)
{
    mem_free(((struct pjrt_about *)args)->object);
    return NULL;
}

static struct pjrt_error *error_message(void *args)
{
    struct pjrt_about_text *about = args;
    const struct pjrt_error *error = about->object;
    about->text = error->text;
    about->len = strlen(error->text);
    return NULL;
}

static struct pjrt_error *error_code(void *args)
{
    struct pjrt_about_int *about = args;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    about->answer = (int)((const struct pjrt_error *)about->object)->code;
    return NULL;
}

/* --- the plugin ----------------------------------------------------------------------------------------- */

static struct pjrt_error *plugin_initialize(void *args)
{
    (void)args;
    return NULL;
}

static struct pjrt_error *plugin_attributes(void *args)
{
    struct pjrt_plugin_attributes *about = args;
    if (!PLUGIN_KNOWS(about, count))
        return plugin_too_small();
    about->attributes = NULL;
    about->count = 0;
    return NULL;
}

/* --- events --------------------------------------------------------------------------------------------- */

struct pjrt_event *plugin_event(const struct error *error)
{
    struct pjrt_event *event = mem_alloc(sizeof *event);
    if (error)
        event->error = *error;
    return event;
}

static struct pjrt_error *event_destroy(void *args)
{
    mem_free(((struct pjrt_about *)args)->object);
    return NULL;
}

static struct pjrt_error *event_is_ready(void *args)
{
    struct pjrt_about_bool *about = args;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    about->answer = true;
    return NULL;
}

static struct pjrt_error *event_await(void *args)
{
    const struct pjrt_event *event = ((struct pjrt_about *)args)->object;
    return event->error.code < 0 ? plugin_error_of(&event->error) : NULL;
}

static struct pjrt_error *event_on_ready(void *args)
{
    struct pjrt_event_on_ready *about = args;
    if (!PLUGIN_KNOWS(about, arg))
        return plugin_too_small();
    about->callback(about->event->error.code < 0 ? plugin_error_of(&about->event->error) : NULL, about->arg);
    return NULL;
}

/* --- the table ------------------------------------------------------------------------------------------ */

__attribute__((visibility("default"))) const struct pjrt_api *GetPjrtApi(void);

const struct pjrt_api *GetPjrtApi(void)
{
    static const struct pjrt_api API = {
        .size = sizeof API,
        .version = {sizeof API.version, NULL, PJRT_MAJOR, PJRT_MINOR},
        .slots = {[PJRT_ERROR_DESTROY] = error_destroy,
                  [PJRT_ERROR_MESSAGE] = error_message,
                  [PJRT_ERROR_CODE] = error_code,
                  [PJRT_PLUGIN_INITIALIZE] = plugin_initialize,
                  [PJRT_PLUGIN_ATTRIBUTES] = plugin_attributes,
                  [PJRT_EVENT_DESTROY] = event_destroy,
                  [PJRT_EVENT_IS_READY] = event_is_ready,
                  [PJRT_EVENT_ERROR] = event_await,
                  [PJRT_EVENT_AWAIT] = event_await,
                  [PJRT_EVENT_ON_READY] = event_on_ready,
                  [PJRT_CLIENT_CREATE] = plugin_client_create,
                  [PJRT_CLIENT_DESTROY] = plugin_client_destroy,
                  [PJRT_CLIENT_PLATFORM_NAME] = plugin_client_platform_name,
                  [PJRT_CLIENT_PROCESS_INDEX] = plugin_client_process_index,
                  [PJRT_CLIENT_PLATFORM_VERSION] = plugin_client_platform_version,
                  [PJRT_CLIENT_DEVICES] = plugin_client_devices,
                  [PJRT_CLIENT_ADDRESSABLE_DEVICES] = plugin_client_devices,
                  [PJRT_CLIENT_ADDRESSABLE_MEMORIES] = plugin_client_memories,
                  [PJRT_CLIENT_COMPILE] = plugin_compile,
                  [PJRT_CLIENT_BUFFER_FROM_HOST] = plugin_buffer_from_host,
                  [PJRT_DESCRIPTION_ID] = plugin_device_id,
                  [PJRT_DESCRIPTION_PROCESS_INDEX] = plugin_device_process_index,
                  [PJRT_DESCRIPTION_KIND] = plugin_device_kind,
                  [PJRT_DESCRIPTION_DEBUG_STRING] = plugin_device_text,
                  [PJRT_DESCRIPTION_TO_STRING] = plugin_device_text,
                  [PJRT_DEVICE_DESCRIPTION] = plugin_device_description,
                  [PJRT_DEVICE_IS_ADDRESSABLE] = plugin_device_is_addressable,
                  [PJRT_DEVICE_LOCAL_HARDWARE_ID] = plugin_device_id,
                  [PJRT_DEVICE_ADDRESSABLE_MEMORIES] = plugin_device_memories,
                  [PJRT_DEVICE_DEFAULT_MEMORY] = plugin_device_default_memory,
                  [PJRT_MEMORY_ID] = plugin_memory_id,
                  [PJRT_MEMORY_KIND] = plugin_memory_kind,
                  [PJRT_EXECUTABLE_DESTROY] = plugin_executable_destroy,
                  [PJRT_EXECUTABLE_NAME] = plugin_executable_name,
                  [PJRT_EXECUTABLE_REPLICAS] = plugin_executable_one,
                  [PJRT_EXECUTABLE_PARTITIONS] = plugin_executable_one,
                  [PJRT_EXECUTABLE_OUTPUTS] = plugin_executable_outputs,
                  [PJRT_EXECUTABLE_OUTPUT_TYPES] = plugin_executable_output_types,
                  [PJRT_EXECUTABLE_OUTPUT_DIMENSIONS] = plugin_executable_output_dimensions,
                  [PJRT_EXECUTABLE_MEMORY_STATS] = plugin_executable_memory_stats,
                  [PJRT_LOADED_DESTROY] = plugin_loaded_destroy,
                  [PJRT_LOADED_EXECUTABLE] = plugin_loaded_executable,
                  [PJRT_LOADED_ADDRESSABLE_DEVICES] = plugin_loaded_devices,
                  [PJRT_LOADED_DELETE] = plugin_loaded_delete,
                  [PJRT_LOADED_IS_DELETED] = plugin_loaded_is_deleted,
                  [PJRT_LOADED_EXECUTE] = plugin_execute,
                  [PJRT_BUFFER_DESTROY] = plugin_buffer_destroy,
                  [PJRT_BUFFER_TYPE] = plugin_buffer_type,
                  [PJRT_BUFFER_DIMENSIONS] = plugin_buffer_dimensions,
                  [PJRT_BUFFER_SIZE] = plugin_buffer_size,
                  [PJRT_BUFFER_DEVICE] = plugin_buffer_device,
                  [PJRT_BUFFER_MEMORY] = plugin_buffer_memory,
                  [PJRT_BUFFER_DELETE] = plugin_buffer_delete,
                  [PJRT_BUFFER_IS_DELETED] = plugin_buffer_is_deleted,
                  [PJRT_BUFFER_TO_HOST] = plugin_buffer_to_host,
                  [PJRT_BUFFER_IS_ON_CPU] = plugin_buffer_is_on_cpu,
                  [PJRT_BUFFER_READY_EVENT] = plugin_buffer_ready_event},
    };
    return &API;
}
