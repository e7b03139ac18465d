/* probes.c - the table of all probes, their schedule, and their cost limits. */
#include "host/probes/internal.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static const struct probe_kind *const kinds[] = {
    &probe_kmsg,      &probe_edac,  &probe_pcie,   &probe_infiniband, &probe_ethernet, &probe_mounts,
    &probe_disk,      &probe_smart, &probe_memory, &probe_thermal,    &probe_clock,    &probe_files,
    &probe_processes, &probe_tcp,   &probe_nvml,   &probe_external,
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* If a round is this late, this process was stopped (or its machine was moved), and so were the children. */
#define STOOD_STILL_NS (2 * NS_PER_SECOND)

size_t probes_count(void)
{
    return KINDS;
}

static int64_t clock_of(clockid_t id)
{
    struct timespec time;
    clock_gettime(id, &time);
    return (int64_t)time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

static int64_t wall_now(const struct probes *all)
{
    return all->options.wall_ns ? all->options.wall_ns(all->options.context) : clock_of(CLOCK_REALTIME);
}

static int64_t cost_now(const struct probes *all)
{
    return all->options.cost_ns ? all->options.cost_ns(all->options.context)
                                : clock_of(CLOCK_THREAD_CPUTIME_ID);
}

/* --- one run -------------------------------------------------------------------------------------- */

static void switch_off(struct probe *probe)
{
    char name[64];
    snprintf(name, sizeof name, "probe/%s", probe->kind->name);
    probe->off_until_ns = probe->all->now_ns + PROBES_OFF_NS;
    if (probe->kind->paused)
        probe->kind->paused(probe);
    probe_oncef(probe, "os/probe-cost", name, SEVERITY_MINOR, 1,
                "a run took %.1f ms of processor time, more than %.1f ms: off for %lld s",
                (double)probe->cost_ns / 1e6, (double)probe->cost_max_ns / 1e6,
                (long long)(PROBES_OFF_NS / NS_PER_SECOND));
}

void probe_ended(struct probe *probe, int64_t child_cost_ns, bool late)
{
    struct probes_standing *standing = &probe->standing;
    probe->running = child_running(probe);
    if (late)
        return;
    probe->cost_ns += child_cost_ns;
    standing->runs++;
    standing->cost_ns = probe->cost_ns;
    standing->cost_sum_ns += probe->cost_ns;
    if (probe->cost_ns > standing->cost_most_ns)
        standing->cost_most_ns = probe->cost_ns;
    standing->wall_ns = clock_of(CLOCK_MONOTONIC) - probe->begun_ns;
    if (probe->cost_ns > probe->cost_max_ns)
        switch_off(probe);
    probe->cost_ns = 0;
}

/* Reports "os/probe-hung" of a probe whose look did not end; the mounts probe has its own code. */
static void set_hung(struct probe *probe, bool on, const char *evidence)
{
    char name[64];
    snprintf(name, sizeof name, "probe/%s", probe->kind->name);
    probe_condition(probe, "os/probe-hung", name, on, SEVERITY_MINOR, "%s", evidence);
}

void probe_answered(struct probe *probe, const char *key, struct str facts)
{
    int64_t before_ns = cost_now(probe->all);
    if (!probe->kind->failed)
        set_hung(probe, false, "it answers");
    probe->kind->judge(probe, key, facts);
    probe->cost_ns += cost_now(probe->all) - before_ns;
}

void probe_failed(struct probe *probe, const char *key, bool hung, struct str facts)
{
    probe->running = child_running(probe);
    if (probe->kind->failed)
        probe->kind->failed(probe, key, hung, facts);
    else
        set_hung(probe, true, hung ? "its look did not end in time" : "its look crashed");
}

static void begin(struct probe *probe)
{
    struct probes *all = probe->all;
    int64_t before_ns = cost_now(all);
    probe->due_ns = all->now_ns + probe->period_ns;
    probe->begun_ns = clock_of(CLOCK_MONOTONIC);
    if (probe->kind->run)
        probe->kind->run(probe);
    else
        child_look(probe, "", probe->timeout_ns, false);
    probe->cost_ns += cost_now(all) - before_ns;
    if (probe->kind->run && !probe->running)
        probe_ended(probe, 0, false);
}

static bool is_due(const struct probe *probe)
{
    const struct probes *all = probe->all;
    if (!probe->enabled || all->now_ns < probe->off_until_ns)
        return false;
    return all->hurry || probe->kind->always || all->now_ns >= probe->due_ns;
}

/* Returns the scheduled time of the next run of a probe or the end of a child's time limit. */
static int64_t next_due(const struct probes *all)
{
    int64_t next_ns = child_next_ns(all);
    for (size_t i = 0; i < all->count; i++) {
        const struct probe *probe = &all->list[i];
        int64_t due_ns = probe->due_ns > probe->off_until_ns ? probe->due_ns : probe->off_until_ns;
        if (probe->enabled && due_ns < next_ns)
            next_ns = due_ns;
    }
    return next_ns;
}

void probes_round(struct probes *all, int64_t now_ns, probes_sink *sink, void *context)
{
    CHECK(!all->in_round);
    int64_t late_ns = now_ns - next_due(all);
    if (all->now_ns > 0 && late_ns > STOOD_STILL_NS)
        child_excuse(all, late_ns);
    all->in_round = true;
    all->now_ns = now_ns;
    all->wall_ns = wall_now(all);
    child_round(all);
    for (size_t i = 0; i < all->count; i++)
        if (is_due(&all->list[i]))
            begin(&all->list[i]);
    all->hurry = false;
    emit_flush(all, sink, context);
    all->in_round = false;
}

int64_t probes_next_ns(const struct probes *all)
{
    return all->hurry || all->queue.len > 0 ? all->now_ns : next_due(all);
}

int probes_fd(const struct probes *all)
{
    return all->epoll_fd;
}

void probes_hurry(struct probes *all)
{
    all->hurry = true;
}

bool probes_busy(const struct probes *all)
{
    bool busy = all->hurry;
    for (size_t i = 0; i < all->count; i++)
        busy = busy || all->list[i].running;
    return busy;
}

/* --- what others may know ------------------------------------------------------------------------- */

static struct probe *by_kind(const struct probes *all, const struct probe_kind *kind)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].kind == kind)
            return &all->list[i];
    CHECK_UNREACHABLE();
}

void probes_clock_offset(struct probes *all, int64_t offset_ns, int64_t error_ns)
{
    struct probe *probe = by_kind(all, &probe_clock);
    all->wall_ns = wall_now(all);
    if (probe->enabled)
        clock_offset(probe, offset_ns, error_ns);
}

void probes_position(const struct probes *all, char ret_text[PROBES_POSITION_MAX])
{
    kmsg_position(by_kind(all, &probe_kmsg), ret_text);
}

void probes_standing(const struct probes *all, size_t index, struct probes_standing *ret_standing)
{
    CHECK(index < all->count);
    const struct probe *probe = &all->list[index];
    *ret_standing = probe->standing;
    ret_standing->name = probe->kind->name;
    ret_standing->enabled = probe->enabled;
    ret_standing->off = all->now_ns < probe->off_until_ns;
    ret_standing->period_ns = probe->period_ns;
    ret_standing->cost_max_ns = probe->cost_max_ns;
    ret_standing->note = probe->note;
}

const char *probes_speaking(const struct probes *all)
{
    return all->speaking;
}

/* --- begin and end -------------------------------------------------------------------------------- */

void probes_find_gpus(struct probes *all)
{
    const struct doc *list = doc_get(all->manifest, "gpus");
    struct names names NAMES_CLEANUP = {0};
    file_list(all, &names, "", "/proc/driver/nvidia/gpus");
    bool listed = doc_len(list) > 0;
    if (!listed && names.list.len == 0)
        return;
    all->gpu_count = listed ? doc_len(list) : names.list.len;
    all->gpus = ARENA_ARRAY(&all->arena, char *, all->gpu_count);
    for (size_t i = 0; i < all->gpu_count; i++)
        all->gpus[i] = arena_strdup(&all->arena, listed ? doc_str(doc_at(list, i), STR(""))
                                                        : str_from(names.list.items[i]));
}

static bool chosen(const char *only, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = only; (at = strstr(at, name)) != NULL; at += len)
        if ((at == only || at[-1] == ',') && (at[len] == 0 || at[len] == ','))
            return true;
    return false;
}

static int choose(struct probes *all, const char *only, struct error *error)
{
    struct str rest = str_from(only), name, tail;
    for (bool more = rest.len > 0; more; rest = tail) {
        more = str_cut(rest, ',', &name, &tail);
        name = more ? name : rest;
        bool known = false;
        for (size_t i = 0; i < KINDS; i++)
            known = known || str_is(name, kinds[i]->name);
        if (!known)
            return error_set(error, ERROR_NOT_FOUND, "unknown probe \"" STR_FORMAT "\"", STR_ARG(name));
        if (!more)
            break;
    }
    for (size_t i = 0; i < all->count; i++)
        all->list[i].enabled =
            rest.data && only[0] ? chosen(only, all->list[i].kind->name) : all->list[i].enabled;
    return 0;
}

static int set_up(struct probes *all, struct error *error)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct probe *probe = &all->list[i];
        *probe = (struct probe){.kind = kinds[i],
                                .all = all,
                                .enabled = true,
                                .period_ns = kinds[i]->period_ns,
                                .timeout_ns = kinds[i]->timeout_ns,
                                .cost_max_ns = kinds[i]->cost_ns};
    }
    all->count = KINDS;
    int rc = settings_read(all, error);
    if (rc == 0 && all->options.only)
        rc = choose(all, all->options.only, error);
    if (rc < 0)
        return rc;
    probes_find_gpus(all);
    for (size_t i = 0; i < all->count; i++) {
        struct probe *probe = &all->list[i];
        if (probe->kind->start && (rc = probe->kind->start(probe, error)) < 0)
            return error_wrap(error, "probes.%s", probe->kind->name);
    }
    return 0;
}

struct probes *probes_new(const struct probes_options *options, struct error *error)
{
    struct probes *all = mem_alloc(sizeof *all);
    all->options = *options;
    all->root = arena_strdup(&all->arena, str_from(options->root));
    all->list = ARENA_ARRAY(&all->arena, struct probe, KINDS);
    if (options->settings)
        all->options.settings = doc_clone(&all->arena, options->settings);
    all->wall_ns = wall_now(all);
    all->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int rc = all->epoll_fd < 0 ? error_set(error, ERROR_LIMIT, "no file is left for the probes")
                               : set_up(all, error);
    all->options.settings = NULL;
    all->options.only = all->options.resume = all->options.root = NULL;
    if (rc < 0) {
        probes_free(all);
        return NULL;
    }
    return all;
}

void probes_free(struct probes *all)
{
    child_done(all);
    for (size_t i = 0; i < all->count; i++) {
        if (all->list[i].kind->stop && all->list[i].state)
            all->list[i].kind->stop(&all->list[i]);
        mem_free(all->list[i].state);
    }
    emit_done(all);
    if (all->epoll_fd >= 0)
        close(all->epoll_fd);
    arena_done(&all->arena);
    mem_free(all);
}
