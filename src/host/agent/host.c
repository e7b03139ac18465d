#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "host/agent/internal.h"

/* Simulated machines boot at 10,000 a second, so that their first connections do not overrun the listener's
 * queue. */
#define BOOT_SPACING_NS (100 * NS_PER_US)

int64_t local_boot_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

int64_t local_wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* --- the timer ------------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer)
{
    struct agent_host *host = timer->data;
    host->armed_ns = INT64_MAX;
    int64_t now_ns = local_boot_ns();
    local_sim_run_due(host, now_ns);
    struct heap_node *node;
    while (!host->closing && (node = heap_min(&host->due)) && node->key <= now_ns) {
        heap_remove(&host->due, node);
        local_tick(container_of(node, struct local_machine, due));
    }
    local_arm(host);
}

void local_arm(struct agent_host *host)
{
    const struct heap_node *machine = heap_min(&host->due), *task = heap_min(&host->sim_due);
    int64_t due_ns = machine ? machine->key : INT64_MAX;
    if (task && task->key < due_ns)
        due_ns = task->key;
    if (host->closing || due_ns >= host->armed_ns)
        return; /* an earlier wake-up looks again */
    host->armed_ns = due_ns;
    int64_t wait_ns = due_ns - local_boot_ns();
    uv_update_time(host->loop); /* the timer counts from the loop's cached time */
    uv_timer_start(&host->timer, on_timer,
                   wait_ns > 0 ? (uint64_t)((wait_ns + NS_PER_MS - 1) / NS_PER_MS) : 0, 0);
}

/* --- start ---------------------------------------------------------------------------------------- */

static char *copy_text(const char *text)
{
    if (!text)
        return NULL;
    size_t len = strlen(text);
    char *copy = mem_alloc(len + 1);
    memcpy(copy, text, len);
    return copy;
}

/* Makes a machine's name: "{n}" becomes the number. */
static char *machine_name(const char *pattern, uint32_t number)
{
    struct buf name = {0};
    const char *hole = strstr(pattern, "{n}");
    if (hole)
        buf_printf(&name, "%.*s%u%s", (int)(hole - pattern), pattern, number, hole + 3);
    else
        buf_printf(&name, "%s", pattern);
    return name.data;
}

static void machine_init(struct agent_host *host, uint32_t index, uint64_t cluster,
                         const struct agent_host_options *options)
{
    struct local_machine *machine = &host->machines[index];
    machine->host = host;
    machine->kept_tether = machine->next_tether = -1;
    machine->name = machine_name(options->machine, options->first + index);
    list_init(&machine->sim_tasks);
    struct agent_config config = {.machine = str_from(machine->name),
                                  .software = str_from(this_release.software),
                                  .incarnation = (uint64_t)local_wall_ns(),
                                  .chips = options->chips,
                                  .cpu_milli = options->cpu_milli,
                                  .memory_bytes = options->memory_bytes,
                                  .injection = options->injection && !options->simulate,
                                  .controllers = host->place_count,
                                  .cluster = cluster};
    if (config.cpu_milli == 0)
        config.cpu_milli = (int64_t)sysconf(_SC_NPROCESSORS_ONLN) * 1000;
    if (config.memory_bytes == 0)
        config.memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    uint64_t seed = options->seed ? options->seed : config.incarnation ^ (uint64_t)getpid() << 40;
    config.seed = seed + index * UINT64_C(0x9e3779b97f4a7c15);
    machine->agent = agent_new(&config);
    local_machine_drive(machine);
    machine->due.tie = index;
}

static int check_options(const struct agent_host_options *options, struct error *error)
{
    uint32_t count = options->machines ? options->machines : 1;
    if (!options->machine || !options->machine[0] || strlen(options->machine) > 240)
        return error_set(error, ERROR_INVALID, "a machine needs a name of at most 240 bytes");
    if (count > AGENT_HOST_MACHINES_MAX)
        return error_set(error, ERROR_INVALID, "%u machines, at most %d", count, AGENT_HOST_MACHINES_MAX);
    if (count > 1 && (!options->simulate || !strstr(options->machine, "{n}")))
        return error_set(error, ERROR_INVALID,
                         "several machines in one process must be simulated, and \"{n}\" must "
                         "stand in their name");
    if (options->chips > 64)
        return error_set(error, ERROR_INVALID, "%u chips, at most 64", options->chips);
    if (!options->controller || !options->port)
        return error_set(error, ERROR_INVALID, "the controller's address is needed");
    if (options->other_count >= AGENT_HOST_CONTROLLERS_MAX)
        return error_set(error, ERROR_INVALID, "more than %d controllers", (int)AGENT_HOST_CONTROLLERS_MAX);
    if (!options->tls_ca != !options->tls_cert || !options->tls_ca != !options->tls_key)
        return error_set(error, ERROR_INVALID, "TLS takes an authority, a certificate and its key");
    if (!options->simulate && !options->state)
        return error_set(error, ERROR_INVALID, "a state directory is needed");
    return 0;
}

static void free_all(struct agent_host *host)
{
    for (uint32_t i = 0; i < host->machine_count; i++) {
        local_sim_free(&host->machines[i]);
        machine_driver_done(&host->machines[i].driver);
        local_tasks_free(host->machines[i].live);
        agent_free(host->machines[i].agent);
        mem_free(host->machines[i].name);
    }
    heap_done(&host->due); /* touches the nodes, which are in the machines */
    heap_done(&host->sim_due);
    mem_free(host->machines);
    machine_shared_free(host->shared);
    wire_tls_free(host->tls);
    mem_free(host->controller);
    for (uint32_t i = 1; i < host->place_count; i++)
        mem_free(host->places[i].controller);
    mem_free(host->address);
    void (*closed)(void *) = host->closed;
    void *context = host->closed_context;
    mem_free(host);
    if (closed)
        closed(context);
}

void local_part_closed(struct agent_host *host)
{
    CHECK(host->open_parts > 0);
    if (--host->open_parts == 0)
        free_all(host);
}

static void on_timer_closed(uv_handle_t *handle)
{
    local_part_closed(handle->data);
}

static void host_close(struct agent_host *host)
{
    host->closing = true;
    for (uint32_t i = 0; i < host->machine_count; i++) {
        machine_drop(&host->machines[i].driver);
        local_close_tethers(&host->machines[i]);
        if (host->machines[i].live)
            local_tasks_close(host->machines[i].live);
    }
    wire_shutdown(host->wire);
    uv_close((uv_handle_t *)&host->timer, on_timer_closed);
}

int agent_host_new(uv_loop_t *loop, const struct agent_host_options *options, struct agent_host **ret_host,
                   struct error *error)
{
    int rc = check_options(options, error);
    if (rc < 0)
        return rc;
    uint64_t cluster = 0;
    if (!options->simulate)
        rc = local_cluster_read(options->state, &cluster, error);
    if (rc < 0)
        return rc;
    struct wire_tls *tls = NULL;
    if (options->tls_ca) {
        struct wire_tls_options files = {options->tls_ca, options->tls_cert, options->tls_key};
        rc = wire_tls_new(&files, &tls, error);
        if (rc < 0)
            return rc;
    }
    struct agent_host *host = mem_alloc(sizeof *host);
    host->shared = machine_shared_new();
    host->tls = tls;
    host->loop = loop;
    host->controller = copy_text(options->controller);
    host->address = copy_text(options->address);
    host->probe_link_local = options->probe_link_local;
    host->port = options->port;
    host->places[0] = (struct local_place){host->controller, host->port};
    host->place_count = 1;
    for (size_t i = 0; i < options->other_count; i++)
        host->places[host->place_count++] =
            (struct local_place){copy_text(options->others[i].controller), options->others[i].port};
    host->simulate = options->simulate;
    host->quiet = options->quiet;
    host->announce = options->announce;
    host->armed_ns = INT64_MAX;
    host->machine_count = options->machines ? options->machines : 1;
    host->machines = mem_alloc(host->machine_count * sizeof *host->machines);
    host->wire = wire_new(loop);
    uv_timer_init(loop, &host->timer);
    host->timer.data = host;
    host->open_parts = 1;
    for (uint32_t i = 0; i < host->machine_count; i++)
        machine_init(host, i, cluster, options);
    if (!host->simulate) {
        rc = local_tasks_new(&host->machines[0], options, error);
        if (rc == 0)
            rc = local_tasks_adopt(host->machines[0].live, error);
    }
    if (rc < 0) {
        host_close(host);
        return rc;
    }
    int64_t now_ns = local_boot_ns();
    for (uint32_t i = 0; i < host->machine_count; i++) {
        CHECK(!heap_has(&host->machines[i].due)); /* before BOOT an agent wants no ticks */
        host->machines[i].due.key = now_ns + i * BOOT_SPACING_NS;
        heap_insert(&host->due, &host->machines[i].due);
    }
    local_arm(host);
    *ret_host = host;
    return 0;
}

/* --- end ------------------------------------------------------------------------------------------ */

void local_tasks_ended(struct agent_host *host)
{
    if (!host->waiting_for_tasks || host->closing)
        return;
    wire_flush(host->wire); /* the last reports */
    host_close(host);
}

/* Tells the controller that the agent stops, so that the consequences are not taken for a failure of the
 * machine. */
static void tell_stop(struct agent_host *host, struct live *live, bool stop_tasks)
{
    int64_t now_ns = local_wall_ns();
    struct signal signal = {.code = STR("agent/stop"),
                            .evidence = stop_tasks ? STR("the agent was told to end, and its tasks with it")
                                                   : STR("the agent was told to end; its tasks go on"),
                            .assertion = SIGNAL_ONCE,
                            .severity = SEVERITY_NOTICE,
                            .chip = -1,
                            .first_ns = now_ns,
                            .last_ns = now_ns,
                            .count = 1};
    local_saw(live, &signal);
    wire_flush(host->wire);
}

void agent_host_shutdown(struct agent_host *host, bool stop_tasks, void (*closed)(void *context),
                         void *context)
{
    if (host->closing)
        return;
    host->closed = closed;
    host->closed_context = context;
    struct live *live = host->machines[0].live;
    if (live && !host->waiting_for_tasks)
        tell_stop(host, live, stop_tasks);
    if (!stop_tasks || !live || live->running.len == 0) {
        host_close(host);
        return;
    }
    host->waiting_for_tasks = true;
    local_tasks_stop_all(live);
}

uint32_t agent_host_welcome_count(const struct agent_host *host)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < host->machine_count; i++)
        count += agent_is_welcome(host->machines[i].agent);
    return count;
}
