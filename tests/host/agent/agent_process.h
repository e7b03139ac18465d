/* agent_process.h - for tests of agents: one in a process of its own, which is this program again.
 *
 *     int main(int argc, char **argv)
 *     {
 *         agent_process_main(argc, argv); // does not come back in the agent, nor where there is no shim
 *         ...
 *     pid_t agent = agent_spawn(fake.port, directory);
 *     assert_int_equal(agent_end(agent, SIGTERM), 0);
 */
#ifndef PHX_TESTS_HOST_AGENT_AGENT_PROCESS_H
#define PHX_TESTS_HOST_AGENT_AGENT_PROCESS_H

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/agent/agent_host.h"

static char agent_shim[PATH_MAX]; /* path of phalanx-shim, from the root: an agent starts it elsewhere */

#define AGENT_ADDRESS    "127.0.0.9"
#define AGENT_STOP_TASKS "STOP_TASKS" /* a variable: SIGTERM ends the agent's tasks too */
#define AGENT_ISOLATES   "ISOLATES"   /* likewise: tasks do not see the machine as it is */
#define AGENT_ASKS_FIRST "ASKS_FIRST" /* likewise: the port of another controller, which it tries first */

static void agent_on_term(uv_signal_t *handle, int number)
{
    agent_host_shutdown(handle->data, getenv(AGENT_STOP_TASKS) != NULL, NULL, NULL);
    uv_close((uv_handle_t *)handle, NULL);
}

/* argv: agent PORT STATE */
static int agent_run(char **argv)
{
    uv_loop_t loop;
    uv_signal_t term;
    struct agent_host *host;
    struct error error;
    char hooks[512], memory[512];
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&loop);
    snprintf(hooks, sizeof hooks, "%s/hooks", argv[3]);
    snprintf(memory, sizeof memory, "%s/memory", argv[3]); /* only a test makes do with a disk */
    mkdir(memory, 0755);
    struct agent_host_options options = {
        .allow_root_tasks = true,
        .isolation_off = !getenv(AGENT_ISOLATES), /* tasks meet the test in the state folder */
        .machine = "m-1",
        .controller = "127.0.0.1",
        .address = AGENT_ADDRESS,
        .port = (uint16_t)strtol(argv[2], NULL, 10),
        .state = argv[3],
        .shim = agent_shim,
        .hooks_dir = hooks,
        .memory_dir = memory,
        .chips = 4,
        .quiet = true};
    const char *first = getenv(AGENT_ASKS_FIRST);
    struct agent_host_place other = {options.controller, options.port};
    if (first) {
        options.port = (uint16_t)strtol(first, NULL, 10);
        options.others = &other;
        options.other_count = 1;
    }
    int rc = agent_host_new(&loop, &options, &host, &error);
    if (rc < 0) {
        fprintf(stderr, "%s\n", error.text);
        uv_run(&loop, UV_RUN_DEFAULT);
        return 1;
    }
    uv_signal_init(&loop, &term);
    term.data = host;
    uv_signal_start(&term, agent_on_term, SIGTERM);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop) == 0 ? 0 : 3;
}

/* The agent dies with this process: a test that failed leaves none behind. */
static pid_t agent_spawn(uint16_t port, const char *state)
{
    char number[8];
    snprintf(number, sizeof number, "%u", port);
    pid_t parent = getpid(), pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            execl("/proc/self/exe", "agent", "agent", number, state, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* Returns the agent's exit code, or minus the signal that ended it. Signal 0: the agent ends by itself. */
static int agent_end(pid_t pid, int signal_number)
{
    int status;
    kill(pid, signal_number);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int agent_remove_one(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    return remove(path);
}

/* The state directory, after the agent's end. */
static void agent_remove_state(const char *path)
{
    nftw(path, agent_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void agent_process_main(int argc, char **argv)
{
    enum { SKIPPED = 77 };
    const char *build = getenv("PHX_BUILD");
    char path[512];
    snprintf(path, sizeof path, "%s/phalanx-shim", build ? build : "build");
    bool there = realpath(path, agent_shim) && access(agent_shim, X_OK) == 0;
    if (argc == 4 && strcmp(argv[1], "agent") == 0)
        exit(agent_run(argv));
    if (!there) {
        fprintf(stderr, "skipped: no %s\n", path);
        exit(SKIPPED);
    }
}

#endif
