/* Signals and kills for `phalanx inject`. A process counts as killed once it is seen to have ended.
 *
 * Each victim is watched through a pidfd, so a process with a reused pid is not mistaken for it. When all
 * have ended, the targets' processes are listed again. A process that began before the kill and was missed is
 * killed as well; one that began later is the restart that the kill was meant to cause. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cmd/inject.h"
#include "cmd/processes.h"

/* A process that has not ended this long after SIGKILL waits in the kernel, or is frozen. */
#define END_WITHIN_NS (5 * NS_PER_SECOND)

struct victim {
    pid_t pid;
    int watch;
    struct process_facts facts;
};
struct killing {
    VEC(struct victim) victims; /* processes that were sent the signal and may still live */
    uint64_t began;             /* missed processes started before this time */
    int64_t deadline_ns;
    size_t ended, left; /* left: processes that survive */
};

/* --- signals -------------------------------------------------------------------------------------------- */

static bool is_agent(pid_t pid)
{
    char path[64], line[64] = {0};
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(line, 1, sizeof(line) - 1, file) : 0;
    if (file)
        fclose(file);
    size_t first = strnlen(line, got);
    return first + 1 < got && strcmp(line + first + 1, "agent") == 0;
}

int inject_signal(const pid_list *pids, int number)
{
    int rc = 0;
    for (int agents = 0; agents < 2; agents++)
        for (size_t i = 0; i < pids->len; i++) {
            pid_t pid = pids->items[i];
            if (is_agent(pid) == agents && kill(pid, number) < 0 && errno != ESRCH) {
                say("process %d: %s", (int)pid, strerror(errno));
                rc = -1;
            }
        }
    return rc;
}

void inject_processes(const struct ground *ground, const target_list *targets, pid_list *ret_pids)
{
    pid_list some = {0};
    vec_clear(ret_pids);
    for (size_t i = 0; i < targets->len; i++) {
        ground_processes(ground, &targets->items[i], &some);
        for (size_t k = 0; k < some.len; k++)
            vec_push(ret_pids, some.items[k]);
    }
    vec_done(&some);
}

/* Stops all processes before the first is killed. When the power of a machine fails, all of its processes end
 * at the same moment: none may see and report the end of another, or start a new process. */
static int stop_all(const struct ground *ground, const target_list *targets, pid_list *pids)
{
    size_t before;
    do {
        before = pids->len;
        if (inject_signal(pids, SIGSTOP) < 0) {
            (void)inject_signal(pids, SIGCONT); /* continues the stopped processes */
            return -1;
        }
        inject_processes(ground, targets, pids);
    } while (pids->len > before);
    return 0;
}

/* --- killing -------------------------------------------------------------------------------------------- */

static void lives_on(struct killing *killing, const struct victim *victim, const char *why)
{
    say("process %d (%s): %s", (int)victim->pid, victim->facts.name, why);
    killing->left++;
}

/* Kills a process. `again`: it was not in the first list, or was hit before. */
static void strike(struct killing *killing, pid_t pid, bool again)
{
    struct victim victim = {.pid = pid, .watch = process_watch(pid)};
    if (victim.watch < 0 && errno != ESRCH) {
        lives_on(killing, &victim, strerror(errno));
        return;
    }
    if (victim.watch < 0 || !process_facts(pid, &victim.facts)) {
        killing->ended += !again; /* the process has ended with another one */
    } else if (!again || victim.facts.started < killing->began) {
        if (kill(pid, SIGKILL) == 0 || errno == ESRCH) {
            vec_push(&killing->victims, victim);
            return;
        }
        lives_on(killing, &victim, strerror(errno));
    }
    if (victim.watch >= 0)
        close(victim.watch);
}

static void await_all(struct killing *killing)
{
    char why[80];
    for (size_t i = 0; i < killing->victims.len; i++) {
        struct victim *victim = &killing->victims.items[i];
        if (process_await(victim->watch, killing->deadline_ns)) {
            killing->ended++;
        } else {
            struct process_facts now = victim->facts;
            (void)process_facts(victim->pid, &now);
            snprintf(why, sizeof why, "has not ended %lld s after SIGKILL (state %c)",
                     (long long)(END_WITHIN_NS / NS_PER_SECOND), now.state);
            lives_on(killing, victim, why);
        }
        close(victim->watch);
    }
    vec_clear(&killing->victims);
}

enum { KILL_OTHERS = 1 << 0, KILL_AGENTS = 1 << 1 };

/* Kills the processes that `whom` selects, agents last; then the missed processes, until none is left or one
 * survives. Does not wait for any end before the last process has its signal, because from then
 * on the machine's peers can see its death. */
static void kill_those(struct killing *killing, const struct ground *ground, const target_list *targets,
                       pid_list *pids, unsigned whom)
{
    bool again = false;
    size_t before;
    do {
        before = killing->ended;
        for (unsigned part = KILL_OTHERS; part <= KILL_AGENTS; part <<= 1)
            for (size_t i = 0; i < pids->len && (whom & part); i++)
                if (is_agent(pids->items[i]) == (part == KILL_AGENTS))
                    strike(killing, pids->items[i], again);
        await_all(killing);
        inject_processes(ground, targets, pids);
        again = true;
    } while (killing->ended > before && !killing->left);
}

int inject_kill(const struct ground *ground, const target_list *targets, struct injected *ret)
{
    struct killing killing = {0};
    pid_list pids = {0};
    inject_processes(ground, targets, &pids);
    int rc = stop_all(ground, targets, &pids);
    for (size_t i = 0; i < targets->len && rc == 0 && pids.len; i++)
        if (targets->items[i].kind == INJECT_MACHINE) /* cleared now: later processes find nothing */
            harm_memory(ground, targets->items[i].name);
    ret->at_ns = client_wall();
    killing.began = processes_now();
    killing.deadline_ns = client_clock() + END_WITHIN_NS;
    bool ordered = ground->where == GROUND_MACHINE; /* the agent reports processes that survive */
    if (rc == 0)
        kill_those(&killing, ground, targets, &pids, ordered ? KILL_OTHERS : KILL_OTHERS | KILL_AGENTS);
    if (ordered && killing.left)
        (void)inject_signal(&pids, SIGCONT);
    else if (ordered && rc == 0)
        kill_those(&killing, ground, targets, &pids, KILL_AGENTS);
    ret->count = killing.ended;
    vec_done(&killing.victims);
    vec_done(&pids);
    return rc < 0 || killing.left ? EXIT_FAILED : ret->count ? EXIT_OK : EXIT_NOT_FOUND;
}
