/* injections.c - injected faults (docs/inject.md) that are in force on this machine, each with a record:
 * <state>/injections/N.json. Separate processes undo them in time and outlive this agent, so the next agent
 * leaves them alone. If such a process has died, or its injection is overdue, an agent undoes the injection,
 * at its start and once a minute (cmd/inject_order.c).
 */
#include <dirent.h>
#include <stdio.h>

#include "host/agent/internal.h"

enum { LOOK_MS = 60 * 1000 };

/* Returns whether an injection is in force, or has ended while no agent ran. */
static bool any_stands(const struct live *live)
{
    char path[PATH_BYTES + 64];
    bool any = false;
    snprintf(path, sizeof path, "%s/injections", live->directory);
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && !any && (entry = readdir(directory));)
        any = str_ends(str_from(entry->d_name), STR(".json")) ||
              str_ends(str_from(entry->d_name), STR(".over"));
    if (directory)
        closedir(directory);
    return any;
}

static void on_look(uv_timer_t *timer)
{
    struct live *live = timer->data;
    if (any_stands(live))
        local_errand_heal(live);
}

void local_injections_init(struct live *live)
{
    uv_timer_init(live->machine->host->loop, &live->injection_timer);
    live->injection_timer.data = live;
    live->injecting = true;
    live->machine->host->open_parts++;
    uv_timer_start(&live->injection_timer, on_look, 0, LOOK_MS);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct live *live = handle->data;
    local_part_closed(live->machine->host);
}

void local_injections_close(struct live *live)
{
    if (live->injecting)
        uv_close((uv_handle_t *)&live->injection_timer, on_timer_closed);
    live->injecting = false;
}
