/* plugin.h - libphalanx_pjrt.so: flow's executors on the processor as a PJRT plugin (flow/pjrt/abi.h).
 *
 * Any host of PJRT can run StableHLO text on it: flow's own (flow/pjrt/host.h), whose tests use it, or
 * another one. PHX_PJRT_EXECUTOR names the executor, "interpreter" or "onednn"; the default is the fastest of
 * the build. PHX_PJRT_DEVICES is the number of devices, which share the processor; the default is 1.
 *
 * All functions are synchronous, so every event is ready at once. Functions may be called by several threads;
 * an object must not be destroyed while another call uses it. Functions outside this scope return
 * UNIMPLEMENTED or are NULL in the table: programs over several devices, formats other than text, layouts,
 * donation, transfers between devices.
 *
 *   api.c       the table; errors, events
 *   client.c    client, devices, memories
 *   compile.c   programs and their executables, execution
 *   buffer.c    values on devices
 */
#ifndef PHX_FLOW_PLUGIN_PLUGIN_H
#define PHX_FLOW_PLUGIN_PLUGIN_H

#include "flow/exec/executor.h"
#include "flow/pjrt/types.h"

enum { PLUGIN_DEVICES_MAX = 64 };

struct pjrt_error {
    enum pjrt_code code;
    char text[512];
};
struct pjrt_event {
    struct error error; /* code 0: success */
};
struct pjrt_memory {
    struct pjrt_device *device;
    int id;
};
/* Device and its description. */
struct pjrt_device {
    int id;
    char text[32]; /* "phalanx:0" */
    struct pjrt_client *client;
    struct pjrt_memory memory;
    struct pjrt_memory *memories[1];
};
struct pjrt_client {
    const struct executor *executor;
    struct pjrt_device devices[PLUGIN_DEVICES_MAX];
    struct pjrt_device *device_list[PLUGIN_DEVICES_MAX];
    struct pjrt_memory *memory_list[PLUGIN_DEVICES_MAX];
    size_t device_count;
};
struct pjrt_buffer {
    struct tensor *tensor; /* NULL: deleted */
    struct pjrt_device *device;
};

/* --- api.c ---------------------------------------------------------------------------------------------- */

/* Returns whether the caller's structure is as large as we read it; its last member is `member`. */
#define PLUGIN_KNOWS(args, member)                                                                           \
    ((args)->size >= offsetof(__typeof__(*(args)), member) + sizeof((args)->member))
struct pjrt_error *plugin_error(enum pjrt_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct pjrt_error *plugin_error_of(const struct error *error);
struct pjrt_error *plugin_too_small(void); /* the caller's structure has an unknown, older version */
struct pjrt_event *plugin_event(const struct error *error); /* a ready event; error NULL: success */

/* --- functions of the table ----------------------------------------------------------------------------- */

pjrt_function plugin_client_create, plugin_client_destroy, plugin_client_platform_name,
    plugin_client_platform_version, plugin_client_process_index, plugin_client_devices,
    plugin_client_memories;
pjrt_function plugin_device_description, plugin_device_id, plugin_device_kind, plugin_device_text,
    plugin_device_process_index, plugin_device_is_addressable, plugin_device_memories,
    plugin_device_default_memory, plugin_memory_id, plugin_memory_kind;
pjrt_function plugin_compile, plugin_loaded_destroy, plugin_loaded_executable, plugin_loaded_devices,
    plugin_loaded_delete, plugin_loaded_is_deleted, plugin_execute, plugin_executable_destroy,
    plugin_executable_name, plugin_executable_one, plugin_executable_outputs, plugin_executable_output_types,
    plugin_executable_output_dimensions, plugin_executable_memory_stats;
pjrt_function plugin_buffer_from_host, plugin_buffer_to_host, plugin_buffer_destroy, plugin_buffer_type,
    plugin_buffer_dimensions, plugin_buffer_size, plugin_buffer_device, plugin_buffer_memory,
    plugin_buffer_delete, plugin_buffer_is_deleted, plugin_buffer_is_on_cpu, plugin_buffer_ready_event;

#endif
