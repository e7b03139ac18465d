#include "host/fabric/sai_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/check.h"
#include "host/fabric/line.h"

struct sai_library {
    struct sai_library *next;
    void *handle;
    char file[64];
    pthread_mutex_t busy; /* held during calls to the library */
    bool initialised;     /* SAI allows this only once, even if a table then lacks a function */
    sai_initialize_fn *initialize;
    sai_query_fn *query;
    sai_keys_fn *keys;
    const struct sai_switch_table *table;
    const struct sai_ocs_table *ocs;
    struct sai_device *devices; /* oldest first; entries are added under `busy` and stay */
    uint32_t device_count;
};

static pthread_mutex_t registry_busy = PTHREAD_MUTEX_INITIALIZER;
static struct sai_library *registry;
/* The library that this thread calls. SAI's services have no context that could name it. */
static _Thread_local const struct sai_library *called;

const char *sai_hardware(const struct sai_device *device)
{
    return device->settings;
}

const char *sai_file(const struct sai_device *device)
{
    return device->library->file;
}

/* --- locks ------------------------------------------------------------------------------------------ */

static int lock_within(pthread_mutex_t *mutex, uint32_t timeout_ms, const char *file,
                       struct phx_switch_error *error)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int rc = pthread_mutex_timedlock(mutex, &until);
    CHECK(rc == 0 || rc == ETIMEDOUT);
    if (rc == 0)
        return PHX_SWITCH_OK;
    return switch_fail(error, PHX_SWITCH_TIMEOUT,
                       "%.60s: the library has been busy with another call for %u ms", file, timeout_ms);
}

int sai_enter(struct sai_device *device, uint32_t timeout_ms, struct phx_switch_error *error)
{
    int rc = lock_within(&device->library->busy, timeout_ms, sai_file(device), error);
    if (rc == PHX_SWITCH_OK)
        called = device->library;
    return rc;
}

void sai_leave(struct sai_device *device)
{
    called = NULL;
    pthread_mutex_unlock(&device->library->busy);
}

/* --- settings --------------------------------------------------------------------------------------- */

/* Returns the first "NAME=VALUE" after HARDWARE, or NULL. */
static const char *first_setting(const char *settings)
{
    const char *at = settings + strlen(settings) + 1;
    return at[0] ? at : NULL;
}

static const char *next_setting(const char *setting)
{
    setting += strlen(setting) + 1;
    return setting[0] ? setting : NULL;
}

static const char *setting_value(const char *settings, const char *name, size_t length)
{
    for (const char *at = first_setting(settings); at; at = next_setting(at))
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

static const struct sai_device *device_of_profile(uint32_t profile)
{
    const struct sai_device *device = called ? called->devices : NULL;
    while (device && device->profile != profile)
        device = device->next;
    return device;
}

static const char *give_value(uint32_t profile, const char *name)
{
    const struct sai_device *device = device_of_profile(profile);
    return device && name ? setting_value(device->settings, name, strlen(name)) : NULL;
}

/* Iterates over the settings. *name is NULL at first, then what the previous call returned. */
static int give_next(uint32_t profile, const char **name, const char **value)
{
    static _Thread_local char word[SAI_ADDRESS_MAX];
    const struct sai_device *device = device_of_profile(profile);
    if (!device || !name || !value)
        return -1;
    const char *at = first_setting(device->settings);
    if (*name) {
        size_t length = strlen(*name);
        while (at && (strncmp(at, *name, length) != 0 || at[length] != '='))
            at = next_setting(at);
        at = at ? next_setting(at) : NULL;
    }
    if (!at)
        return -1;
    const char *equals = strchr(at, '=');
    snprintf(word, sizeof word, "%.*s", (int)(equals - at), at);
    *name = word;
    *value = equals + 1;
    return 0;
}

/* Splits "PATH?HARDWARE&NAME=VALUE...". A name may occur only once: give_next() continues after the first
 * setting of a name, so a repeated name would make a library iterate forever. */
static int split_address(const char *address, char path[SAI_ADDRESS_MAX], char settings[SAI_ADDRESS_MAX],
                         struct phx_switch_error *error)
{
    const char *mark = strchr(address, '?');
    size_t length = mark ? (size_t)(mark - address) : strlen(address);
    if (!length || strlen(address) > SAI_ADDRESS_MAX - 2)
        return switch_fail(error, PHX_SWITCH_INVALID,
                           "address \"%.60s\": expected PATH[?HARDWARE[&NAME=VALUE]...] of a SAI library",
                           address);
    memcpy(path, address, length);
    path[length] = 0;
    memset(settings, 0, SAI_ADDRESS_MAX);
    char *at = settings;
    for (const char *item = mark ? mark + 1 : ""; *item;) {
        size_t size = strcspn(item, "&");
        bool first = at == settings, named = memchr(item, '=', size) && item[0] != '=';
        if (!first && !named)
            return switch_fail(error, PHX_SWITCH_INVALID, "address: \"%.*s\": expected NAME=VALUE",
                               (int)(size < 60 ? size : 60), item);
        if (named && setting_value(settings, item, strcspn(item, "=")))
            return switch_fail(error, PHX_SWITCH_INVALID, "address: \"%.*s\": the setting is given twice",
                               (int)(size < 60 ? size : 60), item);
        if (first && named)
            at++; /* no HARDWARE */
        memcpy(at, item, size);
        at += size + 1;
        item += size + (item[size] == '&');
    }
    return PHX_SWITCH_OK;
}

/* --- libraries -------------------------------------------------------------------------------------- */

static int find_symbols(struct sai_library *library, const char *path, struct phx_switch_error *error)
{
    const struct {
        const char *name;
        void **to;
    } symbols[] = {
        {"sai_api_initialize", (void **)&library->initialize},
        {"sai_api_query", (void **)&library->query},
        {"sai_get_object_key", (void **)&library->keys},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        *symbols[i].to = dlsym(library->handle, symbols[i].name);
        if (!*symbols[i].to)
            return switch_fail(error, PHX_SWITCH_UNSUPPORTED, "%.160s: no SAI library: it has no symbol %s",
                               path, symbols[i].name);
    }
    return PHX_SWITCH_OK;
}

/* Finds or loads the library of a path. The caller holds the registry. */
static int load_library(const char *path, struct sai_library **ret_library, struct phx_switch_error *error)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return switch_fail(error, PHX_SWITCH_INVALID, "driver sai: %.200s", dlerror());
    for (struct sai_library *at = registry; at; at = at->next)
        if (at->handle == handle) {
            dlclose(handle);
            *ret_library = at;
            return PHX_SWITCH_OK;
        }
    struct sai_library *library = mem_alloc(sizeof *library);
    const char *slash = strrchr(path, '/');
    library->handle = handle;
    snprintf(library->file, sizeof library->file, "%.63s", slash ? slash + 1 : path);
    pthread_mutex_init(&library->busy, NULL);
    int rc = find_symbols(library, path, error);
    if (rc < 0) {
        dlclose(handle);
        mem_free(library);
        return rc;
    }
    library->next = registry;
    registry = library;
    *ret_library = library;
    return PHX_SWITCH_OK;
}

static int query_table(struct sai_device *device, int32_t number, const char *name, const void **ret_table,
                       struct phx_switch_error *error)
{
    void *table = NULL;
    sai_status status = device->library->query(number, &table);
    if (status != SAI_OK)
        return sai_fail(error, device, "sai_api_query", name, status);
    if (!table)
        return sai_garbled(error, device, "sai_api_query", "%s: the library returned no table", name);
    *ret_table = table;
    return PHX_SWITCH_OK;
}

/* Gets the tables of functions, and checks those that the driver requires. */
static int query_tables(struct sai_device *device, struct phx_switch_error *error)
{
    const void *table, *ocs_table;
    int rc = query_table(device, SAI_TABLE_SWITCH, "SAI_API_SWITCH", &table, error);
    if (rc == PHX_SWITCH_OK)
        rc = query_table(device, SAI_TABLE_OCS, "SAI_API_OCS", &ocs_table, error);
    if (rc < 0)
        return rc;
    const struct sai_switch_table *switches = table;
    const struct sai_ocs_table *ocs = ocs_table;
    if (!switches->create || !ocs->get_port || !ocs->get_cross_connect ||
        (!ocs->create_cross_connect && !ocs->create_cross_connects) ||
        (!ocs->remove_cross_connect && !ocs->remove_cross_connects))
        return switch_fail(error, PHX_SWITCH_UNSUPPORTED,
                           "%.60s: its tables lack a function: expected create_switch, "
                           "get_ocs_port_attribute, and to get, create and remove cross-connects",
                           sai_file(device));
    device->library->table = switches;
    device->library->ocs = ocs;
    return PHX_SWITCH_OK;
}

static int initialise_library(struct sai_device *device, struct phx_switch_error *error)
{
    static const struct sai_services services = {give_value, give_next};
    struct sai_library *library = device->library;
    if (!library->initialised) {
        sai_status status = library->initialize(0, &services);
        if (status != SAI_OK)
            return sai_fail(error, device, "sai_api_initialize", "", status);
        library->initialised = true;
    }
    return library->ocs ? PHX_SWITCH_OK : query_tables(device, error);
}

/* --- switches --------------------------------------------------------------------------------------- */

static int create_device(struct sai_device *device, struct phx_switch_error *error)
{
    struct sai_attribute attributes[3] = {{.number = SAI_SWITCH_INIT}};
    const char *init = setting_value(device->settings, "init", strlen("init"));
    uint32_t count = 1;
    attributes[0].truth = !init || strcmp(init, "false") != 0;
    if (sai_hardware(device)[0]) {
        attributes[count].number = SAI_SWITCH_HARDWARE;
        attributes[count].list.at = device->settings;
        attributes[count++].list.count = (uint32_t)strlen(device->settings) + 1;
    }
    if (device->profile && first_setting(device->settings)) {
        attributes[count].number = SAI_SWITCH_PROFILE;
        attributes[count++].u32 = device->profile;
    }
    sai_id id = 0;
    sai_status status = device->library->table->create(&id, count, attributes);
    if (status != SAI_OK)
        return sai_fail(error, device, "create_switch", sai_hardware(device), status);
    if (!id)
        return sai_garbled(error, device, "create_switch", "the library returned no switch");
    device->id = id;
    device->ocs = device->library->ocs;
    device->table = device->library->table;
    device->keys = device->library->keys;
    return PHX_SWITCH_OK;
}

/* Finds or makes the entry of a switch. The caller holds the library. */
static int enter_device(struct sai_library *library, const char *settings, struct sai_device **ret_device,
                        struct phx_switch_error *error)
{
    struct sai_device **end = &library->devices;
    for (; *end; end = &(*end)->next) {
        if (strcmp((*end)->settings, settings) != 0)
            continue;
        if (memcmp((*end)->settings, settings, SAI_ADDRESS_MAX) != 0)
            return switch_fail(error, PHX_SWITCH_INVALID,
                               "%.60s: switch \"%.60s\" has been opened with other settings", library->file,
                               settings);
        *ret_device = *end;
        return PHX_SWITCH_OK;
    }
    struct sai_device *device = mem_alloc(sizeof *device);
    device->library = library;
    device->profile = library->device_count++;
    memcpy(device->settings, settings, SAI_ADDRESS_MAX);
    *end = device;
    *ret_device = device;
    return PHX_SWITCH_OK;
}

/* Removes the newest entry, whose switch could not be created. */
static void drop_device(struct sai_library *library)
{
    struct sai_device **last = &library->devices;
    while ((*last)->next)
        last = &(*last)->next;
    CHECK(!(*last)->id);
    mem_free(*last);
    *last = NULL;
    library->device_count--;
}

static int attach_in_library(struct sai_library *library, const char *settings, uint32_t timeout_ms,
                             struct sai_device **ret_device, struct phx_switch_error *error)
{
    struct sai_device *device = NULL;
    int rc = lock_within(&library->busy, timeout_ms, library->file, error);
    if (rc < 0)
        return rc;
    called = library;
    rc = enter_device(library, settings, &device, error);
    if (rc == PHX_SWITCH_OK && !device->id) {
        rc = initialise_library(device, error);
        if (rc == PHX_SWITCH_OK)
            rc = create_device(device, error);
        if (rc < 0)
            drop_device(library);
    }
    if (rc == PHX_SWITCH_OK)
        *ret_device = device;
    called = NULL;
    pthread_mutex_unlock(&library->busy);
    return rc;
}

int sai_attach(const char *address, uint32_t timeout_ms, struct sai_device **ret_device,
               struct phx_switch_error *error)
{
    char path[SAI_ADDRESS_MAX], settings[SAI_ADDRESS_MAX];
    struct sai_library *library = NULL;
    int rc = split_address(address, path, settings, error);
    if (rc == PHX_SWITCH_OK)
        rc = lock_within(&registry_busy, timeout_ms, path, error);
    if (rc < 0)
        return rc;
    rc = load_library(path, &library, error);
    pthread_mutex_unlock(&registry_busy);
    return rc < 0 ? rc : attach_in_library(library, settings, timeout_ms, ret_device, error);
}
