/* internal.h - a loaded plugin, for the files of this folder.
 *
 *   host.c     loading, calls, errors, events
 *   program.c  compiling a function, and its launches
 */
#ifndef PHX_FLOW_PJRT_INTERNAL_H
#define PHX_FLOW_PJRT_INTERNAL_H

#include "flow/pjrt/host.h"
#include "flow/pjrt/types.h"

/* A plugin is never freed. */
struct pjrt_plugin {
    struct executor executor; /* first */
    char *path;
    const struct pjrt_api *api;
    struct pjrt_client *client;
    struct pjrt_device *device; /* its first device */
    struct pjrt_plugin *next;
};

/* Returns whether the plugin's table has the function. */
bool plugin_has(const struct pjrt_api *api, enum pjrt_slot slot);
/* Calls a function. Converts its error to ours, with the path before its text. */
int plugin_call(const struct pjrt_plugin *plugin, enum pjrt_slot slot, void *args, struct error *error);
/* Calls a function that destroys `object`; errors are ignored. Does nothing for NULL. */
void plugin_destroy(const struct pjrt_plugin *plugin, enum pjrt_slot slot, void *object);
/* Waits for the event and destroys it. Returns 0 at once if it is NULL. */
int plugin_await(const struct pjrt_plugin *plugin, struct pjrt_event *event, struct error *error);

/* program.c: the functions of the executor's table. */
int program_compile(const struct executor *executor, const struct ir_module *module,
                    const struct ir_function *function, struct executable **executable, struct error *error);
void program_launch(struct executable *executable, const struct flow_launch *launch);
void program_release(struct executable *executable);
void program_evict(struct tensor *tensor);
int64_t program_peak_bytes(const struct executable *executable);

#endif
