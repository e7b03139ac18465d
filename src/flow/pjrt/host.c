/* host.c - loads a plugin and calls its functions. */
#include "flow/pjrt/internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "base/check.h"

/* --- calls ---------------------------------------------------------------------------------------------- */

bool plugin_has(const struct pjrt_api *api, enum pjrt_slot slot)
{
    size_t end = offsetof(struct pjrt_api, slots) + ((size_t)slot + 1) * sizeof api->slots[0];
    return end <= api->size && api->slots[slot];
}

static enum error_code code_from_plugin(int code)
{
    switch (code) {
    case PJRT_CODE_RESOURCE_EXHAUSTED:
        return ERROR_LIMIT;
    case PJRT_CODE_UNIMPLEMENTED:
        return ERROR_UNSUPPORTED;
    case PJRT_CODE_NOT_FOUND:
        return ERROR_NOT_FOUND;
    case PJRT_CODE_PERMISSION_DENIED:
        return ERROR_DENIED;
    case PJRT_CODE_CANCELLED:
    case PJRT_CODE_UNAVAILABLE:
        return ERROR_UNAVAILABLE;
    default:
        return ERROR_INVALID;
    }
}

/* Converts the plugin's error to ours, and destroys it. */
static int plugin_take_error(const struct pjrt_plugin *plugin, struct pjrt_error *theirs, struct error *error)
{
    struct pjrt_about_text message = {.size = sizeof message, .object = theirs};
    struct pjrt_about_int code = {.size = sizeof code, .object = theirs};
    plugin->api->slots[PJRT_ERROR_MESSAGE](&message);
    int len = message.text && message.len < 400 ? (int)message.len : message.text ? 400 : 0;
    if (plugin_has(plugin->api, PJRT_ERROR_CODE)) {
        struct pjrt_error *again = plugin->api->slots[PJRT_ERROR_CODE](&code);
        plugin_destroy(plugin, PJRT_ERROR_DESTROY, again);
    }
    int rc = error_set(error, code_from_plugin(code.answer), "%.200s: %.*s", plugin->path, len,
                       message.text ? message.text : "");
    plugin_destroy(plugin, PJRT_ERROR_DESTROY, theirs);
    return rc;
}

int plugin_call(const struct pjrt_plugin *plugin, enum pjrt_slot slot, void *args, struct error *error)
{
    CHECK(plugin_has(plugin->api, slot));
    struct pjrt_error *theirs = plugin->api->slots[slot](args);
    return theirs ? plugin_take_error(plugin, theirs, error) : 0;
}

void plugin_destroy(const struct pjrt_plugin *plugin, enum pjrt_slot slot, void *object)
{
    struct pjrt_about args = {.size = sizeof args, .object = object};
    if (!object)
        return;
    struct pjrt_error *error = plugin->api->slots[slot](&args);
    if (error && slot != PJRT_ERROR_DESTROY) /* PJRT_Error_Destroy returns nothing */
        plugin_destroy(plugin, PJRT_ERROR_DESTROY, error);
}

int plugin_await(const struct pjrt_plugin *plugin, struct pjrt_event *event, struct error *error)
{
    struct pjrt_about args = {.size = sizeof args, .object = event};
    if (!event)
        return 0;
    int rc = plugin_call(plugin, PJRT_EVENT_AWAIT, &args, error);
    plugin_destroy(plugin, PJRT_EVENT_DESTROY, event);
    return rc;
}

/* --- loading -------------------------------------------------------------------------------------------- */

static const struct {
    enum pjrt_slot slot;
    const char *name;
} NEEDED[] = {
    {PJRT_ERROR_DESTROY, "PJRT_Error_Destroy"},
    {PJRT_ERROR_MESSAGE, "PJRT_Error_Message"},
    {PJRT_EVENT_DESTROY, "PJRT_Event_Destroy"},
    {PJRT_EVENT_AWAIT, "PJRT_Event_Await"},
    {PJRT_CLIENT_CREATE, "PJRT_Client_Create"},
    {PJRT_CLIENT_ADDRESSABLE_DEVICES, "PJRT_Client_AddressableDevices"},
    {PJRT_CLIENT_COMPILE, "PJRT_Client_Compile"},
    {PJRT_CLIENT_BUFFER_FROM_HOST, "PJRT_Client_BufferFromHostBuffer"},
    {PJRT_EXECUTABLE_DESTROY, "PJRT_Executable_Destroy"},
    {PJRT_EXECUTABLE_OUTPUTS, "PJRT_Executable_NumOutputs"},
    {PJRT_EXECUTABLE_OUTPUT_TYPES, "PJRT_Executable_OutputElementTypes"},
    {PJRT_EXECUTABLE_OUTPUT_DIMENSIONS, "PJRT_Executable_OutputDimensions"},
    {PJRT_LOADED_DESTROY, "PJRT_LoadedExecutable_Destroy"},
    {PJRT_LOADED_EXECUTABLE, "PJRT_LoadedExecutable_GetExecutable"},
    {PJRT_LOADED_EXECUTE, "PJRT_LoadedExecutable_Execute"},
    {PJRT_BUFFER_DESTROY, "PJRT_Buffer_Destroy"},
    {PJRT_BUFFER_TO_HOST, "PJRT_Buffer_ToHostBuffer"},
};

static int plugin_check_api(const char *path, const struct pjrt_api *api, struct error *error)
{
    if (!api || api->size < offsetof(struct pjrt_api, slots))
        return error_set(error, ERROR_UNSUPPORTED, "%.200s: " PJRT_ENTRY "() returns no table of functions",
                         path);
    if (api->version.major != PJRT_MAJOR || api->version.minor < PJRT_MINOR_LEAST)
        return error_set(error, ERROR_UNSUPPORTED, "%.200s: its PJRT API is %d.%d: expected %d.%d or later",
                         path, api->version.major, api->version.minor, PJRT_MAJOR, PJRT_MINOR_LEAST);
    for (size_t i = 0; i < sizeof NEEDED / sizeof *NEEDED; i++)
        if (!plugin_has(api, NEEDED[i].slot))
            return error_set(error, ERROR_UNSUPPORTED, "%.200s: it has no %s", path, NEEDED[i].name);
    return 0;
}

static int plugin_load(struct pjrt_plugin *plugin, struct error *error)
{
    void *library = dlopen(plugin->path, RTLD_NOW | RTLD_LOCAL);
    pjrt_entry *entry;
    if (!library)
        return error_set(error, ERROR_NOT_FOUND, "loading a PJRT plugin: %.400s", dlerror());
    *(void **)&entry = dlsym(library, PJRT_ENTRY);
    int rc = entry ? plugin_check_api(plugin->path, plugin->api = entry(), error)
                   : error_set(error, ERROR_UNSUPPORTED,
                               "%.200s: no PJRT plugin: it has no function " PJRT_ENTRY, plugin->path);
    if (rc < 0)
        dlclose(library);
    return rc;
}

static int plugin_start(struct pjrt_plugin *plugin, struct error *error)
{
    struct pjrt_about initialize = {.size = 2 * sizeof(size_t)};
    struct pjrt_client_create create = {.size = sizeof create};
    struct pjrt_about_list devices = {.size = sizeof devices};
    int rc = 0;
    if (plugin_has(plugin->api, PJRT_PLUGIN_INITIALIZE))
        rc = plugin_call(plugin, PJRT_PLUGIN_INITIALIZE, &initialize, error);
    if (rc == 0)
        rc = plugin_call(plugin, PJRT_CLIENT_CREATE, &create, error);
    if (rc < 0)
        return rc;
    plugin->client = create.client;
    devices.object = create.client;
    rc = plugin_call(plugin, PJRT_CLIENT_ADDRESSABLE_DEVICES, &devices, error);
    if (rc == 0 && (devices.count == 0 || !devices.items || !devices.items[0]))
        rc = error_set(error, ERROR_UNAVAILABLE, "%.200s: it has no device", plugin->path);
    if (rc == 0)
        plugin->device = devices.items[0];
    return rc;
}

static char *plugin_copy_path(const char *path)
{
    size_t len = strlen(path);
    char *copy = mem_alloc(len + 1);
    memcpy(copy, path, len);
    return copy;
}

const struct executor *executor_pjrt(const char *path, struct error *error)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct pjrt_plugin *plugins;
    pthread_mutex_lock(&mutex);
    struct pjrt_plugin *plugin = plugins;
    while (plugin && strcmp(plugin->path, path) != 0)
        plugin = plugin->next;
    if (!plugin) {
        plugin = mem_alloc(sizeof *plugin);
        *plugin = (struct pjrt_plugin){.executor = {.name = "pjrt",
                                                    .compile = program_compile,
                                                    .launch = program_launch,
                                                    .release = program_release,
                                                    .evict = program_evict,
                                                    .peak_bytes = program_peak_bytes},
                                       .path = plugin_copy_path(path),
                                       .next = plugins};
        if (plugin_load(plugin, error) == 0 && plugin_start(plugin, error) == 0) {
            plugins = plugin;
        } else {
            mem_free(plugin->path);
            mem_free(plugin);
            plugin = NULL;
        }
    }
    pthread_mutex_unlock(&mutex);
    return plugin ? &plugin->executor : NULL;
}
