/* processes.c - /proc: processes that wait for a device for minutes (state D), zombies, load.
 *
 * A process counts as blocked when every look for `blockedFor` found it in state D; the kernel's own
 * threads do not count.
 */
#include "host/probes/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKED_MAX = 4096 };
#define KERNEL_THREAD 0x00200000 /* PF_KTHREAD */

struct blocked {
    uint64_t pid, begun; /* begun: ticks since boot; the pair identifies a process for ever */
    int64_t since_ns;
    bool still;
};
struct processes {
    int64_t zombies, load, blocked_ns;
    VEC(struct blocked) list;
};

static int start(struct probe *probe, struct error *error)
{
    struct processes *state = probe->state = mem_alloc(sizeof *state);
    int rc = probe_setting(probe, "zombies", 1, 1000000, 200, &state->zombies, error);
    if (rc == 0)
        rc = probe_setting(probe, "loadPerProcessor", 1, 100000, 20, &state->load, error);
    if (rc == 0)
        rc = settings_duration(doc_get(probe->settings, "blockedFor"), "blockedFor", 300 * NS_PER_SECOND,
                               &state->blocked_ns, error);
    return rc;
}

/* Reads "pid (any name) S ppid ... flags ... starttime ...": the fields after the last ')'. */
static void look_process(const struct probes *all, const char *pid, struct buf *facts, uint64_t *zombies)
{
    struct text text;
    if (!file_read(all, &text, "/proc/%s/stat", pid))
        return;
    const char *open = strchr(text.data, '('), *close = strrchr(text.data, ')');
    if (!open || !close || close < open || close[1] != ' ')
        return;
    if (close[2] == 'Z')
        ++*zombies;
    if (close[2] != 'D')
        return;
    struct str rest = str_from(close + 2), word, tail;
    uint64_t fields[20] = {0};
    for (int i = 0; i < 20 && str_cut(rest, ' ', &word, &tail); i++, rest = tail)
        str_to_u64(word, &fields[i]); /* [0] is the state */
    if (fields[6] & KERNEL_THREAD)
        return;
    fact_put(facts, pid, "blocked", "%llu %.*s", (unsigned long long)fields[19], (int)(close - open - 1),
             open + 1);
}

static void look(const struct probe *probe, const char *key, struct buf *facts)
{
    (void)key;
    struct names list NAMES_CLEANUP = {0};
    struct text text;
    uint64_t zombies = 0;
    file_list(probe->all, &list, "", "/proc");
    for (size_t i = 0; i < list.list.len; i++)
        if (list.list.items[i][0] >= '0' && list.list.items[i][0] <= '9')
            look_process(probe->all, list.list.items[i], facts, &zombies);
    fact_put(facts, "", "zombies", "%llu", (unsigned long long)zombies);
    if (file_read(probe->all, &text, "/proc/loadavg"))
        fact_put(facts, "", "load", "%s", text.data);
}

static void judge_blocked(struct probe *probe, const struct fact *fact)
{
    struct processes *state = probe->state;
    struct str begun, name;
    struct blocked *found = NULL, key = {.since_ns = probe->all->now_ns, .still = true};
    if (!str_to_u64(fact->place, &key.pid) || !str_cut(fact->value, ' ', &begun, &name) ||
        !str_to_u64(begun, &key.begun))
        return;
    for (size_t i = 0; i < state->list.len && !found; i++)
        if (state->list.items[i].pid == key.pid && state->list.items[i].begun == key.begun)
            found = &state->list.items[i];
    if (!found && state->list.len < BLOCKED_MAX)
        vec_push(&state->list, key);
    if (!found)
        return;
    found->still = true;
    int64_t since_ns = probe->all->now_ns - found->since_ns;
    if (since_ns >= state->blocked_ns)
        probe_condition(probe, "cpu/d-state", place_of("process/" STR_FORMAT, STR_ARG(name)).text, true,
                        SEVERITY_MAJOR, "process " STR_FORMAT " waits for a device for %lld s",
                        STR_ARG(fact->place), (long long)(since_ns / NS_PER_SECOND));
}

static void judge_load(struct probe *probe, struct str value)
{
    struct processes *state = probe->state;
    struct str one, five, rest;
    uint64_t load;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (!str_cut(value, ' ', &one, &rest) || !str_cut(rest, '.', &five, &rest) || !str_to_u64(five, &load))
        return;
    uint64_t limit = (uint64_t)state->load * (uint64_t)(processors > 0 ? processors : 1);
    bool on = load >= limit || (probe_is_on(probe, "os/load", "") && load >= limit / 2);
    probe_condition(probe, "os/load", "", on, SEVERITY_NOTICE, "load " STR_FORMAT " on %ld processors",
                    STR_ARG(value), processors);
}

static void judge(struct probe *probe, const char *key, struct str facts)
{
    (void)key;
    struct processes *state = probe->state;
    for (size_t i = 0; i < state->list.len; i++)
        state->list.items[i].still = false;
    probe_sweep_begin(probe);
    for (struct fact fact; fact_next(&facts, &fact);) {
        uint64_t count;
        if (str_is(fact.name, "blocked")) {
            judge_blocked(probe, &fact);
        } else if (str_is(fact.name, "load")) {
            judge_load(probe, fact.value);
        } else if (str_is(fact.name, "zombies") && str_to_u64(fact.value, &count)) {
            bool on = count >= (uint64_t)state->zombies ||
                      (probe_is_on(probe, "os/zombies", "") && count >= (uint64_t)state->zombies / 2);
            probe_condition(probe, "os/zombies", "", on, SEVERITY_NOTICE, "%llu zombies",
                            (unsigned long long)count);
        }
    }
    probe_sweep_end(probe);
    for (size_t i = state->list.len; i-- > 0;)
        if (!state->list.items[i].still)
            vec_remove(&state->list, i);
}

static void stop(struct probe *probe)
{
    struct processes *state = probe->state;
    vec_done(&state->list);
}

const struct probe_kind probe_processes = {.name = "processes",
                                           .period_ns = 60 * NS_PER_SECOND,
                                           .cost_ns = 1 * NS_PER_SECOND,
                                           .timeout_ns = 30 * NS_PER_SECOND,
                                           .keys = " zombies loadPerProcessor blockedFor ",
                                           .start = start,
                                           .look = look,
                                           .judge = judge,
                                           .stop = stop};
