/* client.c - client, devices and memories. */
#include "flow/plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define PLATFORM "phalanx"

/* --- client --------------------------------------------------------------------------------------------- */

static struct pjrt_error *client_choose_executor(struct pjrt_client *client)
{
    const char *name = getenv("PHX_PJRT_EXECUTOR");
    client->executor = executor_named(name ? name : "onednn");
    if (!client->executor && !name)
        client->executor = executor_named("interpreter");
    return client->executor
               ? NULL
               : plugin_error(PJRT_CODE_NOT_FOUND, "PHX_PJRT_EXECUTOR: no executor is named %.100s", name);
}

static struct pjrt_error *client_count_devices(struct pjrt_client *client)
{
    const char *text = getenv("PHX_PJRT_DEVICES");
    char *end = NULL;
    long count = text ? strtol(text, &end, 10) : 1;
    if (text && (end == text || *end || count < 1 || count > PLUGIN_DEVICES_MAX))
        return plugin_error(PJRT_CODE_INVALID_ARGUMENT, "PHX_PJRT_DEVICES: expected 1 to %d, got %.100s",
                            PLUGIN_DEVICES_MAX, text);
    client->device_count = (size_t)count;
    return NULL;
}

struct pjrt_error *plugin_client_create(void *args)
{
    struct pjrt_client_create *create = args;
    if (!PLUGIN_KNOWS(create, client))
        return plugin_too_small();
    struct pjrt_client *client = mem_alloc(sizeof *client);
    struct pjrt_error *error = client_choose_executor(client);
    if (!error)
        error = client_count_devices(client);
    if (error) {
        mem_free(client);
        return error;
    }
    for (size_t i = 0; i < client->device_count; i++) {
        struct pjrt_device *device = &client->devices[i];
        *device =
            (struct pjrt_device){.id = (int)i, .client = client, .memory = {.device = device, .id = (int)i}};
        device->memories[0] = &device->memory;
        snprintf(device->text, sizeof device->text, PLATFORM ":%zu", i);
        client->device_list[i] = device;
        client->memory_list[i] = &device->memory;
    }
    create->client = client;
    return NULL;
}

struct pjrt_error *plugin_client_destroy(void *args)
{
    mem_free(((struct pjrt_about *)args)->object);
    return NULL;
}

static struct pjrt_error *about_text(void *args, const char *text)
{
    struct pjrt_about_text *about = args;
    if (!PLUGIN_KNOWS(about, len))
        return plugin_too_small();
    about->text = text;
    about->len = strlen(text);
    return NULL;
}

static struct pjrt_error *about_int(void *args, int number)
{
    struct pjrt_about_int *about = args;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    about->answer = number;
    return NULL;
}

static struct pjrt_error *about_list(void *args, void *items, size_t count)
{
    struct pjrt_about_list *about = args;
    if (!PLUGIN_KNOWS(about, count))
        return plugin_too_small();
    about->items = items;
    about->count = count;
    return NULL;
}

static struct pjrt_error *about_object(void *args, void *object)
{
    struct pjrt_about_object *about = args;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    about->answer = object;
    return NULL;
}

struct pjrt_error *plugin_client_platform_name(void *args)
{
    return about_text(args, PLATFORM);
}

struct pjrt_error *plugin_client_platform_version(void *args)
{
    return about_text(args, PHX_VERSION);
}

struct pjrt_error *plugin_client_process_index(void *args)
{
    return about_int(args, 0);
}

struct pjrt_error *plugin_client_devices(void *args)
{
    struct pjrt_client *client = ((struct pjrt_about *)args)->object;
    return about_list(args, client->device_list, client->device_count);
}

struct pjrt_error *plugin_client_memories(void *args)
{
    struct pjrt_client *client = ((struct pjrt_about *)args)->object;
    return about_list(args, client->memory_list, client->device_count);
}

/* --- devices and memories ------------------------------------------------------------------------------- */

struct pjrt_error *plugin_device_description(void *args)
{
    return about_object(args, ((struct pjrt_about *)args)->object);
}

struct pjrt_error *plugin_device_id(void *args)
{
    return about_int(args, ((struct pjrt_device *)((struct pjrt_about *)args)->object)->id);
}

struct pjrt_error *plugin_device_process_index(void *args)
{
    return about_int(args, 0);
}

struct pjrt_error *plugin_device_kind(void *args)
{
    return about_text(args, "processor");
}

struct pjrt_error *plugin_device_text(void *args)
{
    return about_text(args, ((struct pjrt_device *)((struct pjrt_about *)args)->object)->text);
}

struct pjrt_error *plugin_device_is_addressable(void *args)
{
    struct pjrt_about_bool *about = args;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    about->answer = true;
    return NULL;
}

struct pjrt_error *plugin_device_memories(void *args)
{
    struct pjrt_device *device = ((struct pjrt_about *)args)->object;
    return about_list(args, device->memories, 1);
}

struct pjrt_error *plugin_device_default_memory(void *args)
{
    struct pjrt_device *device = ((struct pjrt_about *)args)->object;
    return about_object(args, &device->memory);
}

struct pjrt_error *plugin_memory_id(void *args)
{
    return about_int(args, ((struct pjrt_memory *)((struct pjrt_about *)args)->object)->id);
}

struct pjrt_error *plugin_memory_kind(void *args)
{
    return about_text(args, "device");
}
