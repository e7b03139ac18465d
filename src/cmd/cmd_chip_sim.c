/* phalanx chip-sim: emulates the chips of machines, in a process for each machine. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/ending.h"
#include "cmd/usage.h"
#include "core/fabric/wiring.h"
#include "sim/fabric/chips_serve.h"
#include "sim/fabric/machine.h"

static const char usage[] =
    "Usage: phalanx chip-sim --network DIR (--machine CUBE-MACHINE | --cubes N) [OPTIONS]\n"
    "\n"
    "Emulates the four chips of a machine for tasks that use libphalanx_fabric, as a process among those\n"
    "of the other machines (docs/fabric.md): their links run over sockets in DIR, copper from machine to\n"
    "machine, and light through the switches of `phalanx switch-sim --light DIR`. A task finds its chips\n"
    "at DIR/CUBE-MACHINE. Links of a process that is killed go dark at the others, and come back with it.\n"
    "  --network DIR            the folder of the sockets; is made, if it is missing\n"
    "  --machine CUBE-MACHINE   both counted from 0, as in 1-15\n"
    "  --cubes N                a process for each machine of N cubes; one that dies is started again\n"
    "  --loss-ppm N             frames of a million that arrive damaged, and are sent again (0)\n"
    "  --quiet                  no line for each process that serves\n"
    "  --help                   this text\n"
    "\n"
    "Examples:\n"
    "  phalanx switch-sim --port 5100 --protocol scpi --cubes 2 --light /tmp/phalanx-chips &\n"
    "  phalanx chip-sim --network /tmp/phalanx-chips --cubes 2 &\n"
    "  phalanx up --cluster clusters/pod2.yaml\n"
    "  phalanx chip-sim --network /tmp/phalanx-chips --machine 0-3      one machine alone\n"
    "\n"
    "Exit status: 0 interrupted, 1 failed: the reason is printed, 2 wrong usage.\n";

enum { CHIP_NETWORK = 256, CHIP_MACHINE, CHIP_CUBES, CHIP_LOSS, CHIP_QUIET, RESTART_MS = 200 };

struct chip_options {
    struct machine_settings machine;
    bool has_machine, quiet;
    uint32_t cubes; /* 0: one machine */
};

/* --- a machine ----------------------------------------------------------------------------------------- */

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Waits once and serves the ready descriptors. Returns false if ppoll() failed. */
static bool turn(struct machine *machine, struct pollfd *fds)
{
    sigset_t none;
    int64_t wake_ns, now_ns = monotonic_ns();
    sigemptyset(&none);
    machine_watch(machine, fds, &wake_ns);
    int64_t wait_ns = wake_ns == INT64_MAX ? 3600LL * 1000000000 : wake_ns > now_ns ? wake_ns - now_ns : 0;
    struct timespec wait = {wait_ns / 1000000000, wait_ns % 1000000000};
    /* Signals are blocked everywhere else, so none is lost between the test and the wait. */
    if (ppoll(fds, machine_fds(machine), &wait, &none) < 0)
        return errno == EINTR;
    machine_turn(machine, fds);
    return true;
}

static int serve_machine(const struct machine_settings *settings, bool quiet)
{
    struct machine *machine;
    struct error error = {0};
    uint32_t cube = settings->machine / CUBE_MACHINES, number = settings->machine % CUBE_MACHINES;
    if (machine_open(settings, &machine, &error) < 0) {
        say("machine %u-%u: %s", cube, number, error.text);
        return EXIT_FAILED;
    }
    struct pollfd *fds = mem_alloc(machine_fds(machine) * sizeof *fds);
    if (!quiet)
        printf("machine %u-%u: process %d\n", cube, number, (int)getpid());
    fflush(stdout);
    const volatile sig_atomic_t *ends = ending_await();
    while (!*ends && turn(machine, fds))
        ;
    mem_free(fds);
    machine_close(machine);
    return EXIT_OK;
}

/* --- a process for each machine ------------------------------------------------------------------------ */

/* Starts the process of a machine. Returns its pid, or -1. */
static pid_t start_process(const struct chip_options *options, uint32_t number)
{
    struct machine_settings settings = options->machine;
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    settings.machine = number;
    _exit(getppid() == parent ? serve_machine(&settings, options->quiet) : EXIT_FAILED);
}

static void end_processes(const pid_t *processes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (processes[i] > 0)
            kill(processes[i], SIGTERM);
    for (uint32_t i = 0; i < count; i++)
        if (processes[i] > 0)
            waitpid(processes[i], NULL, 0);
}

/* Waits for processes that end, and starts killed ones again. Returns false if a process could not serve. */
static bool restart_dead(const struct chip_options *options, pid_t *processes, uint32_t count)
{
    int status;
    pid_t gone;
    while ((gone = waitpid(-1, &status, WNOHANG)) > 0)
        for (uint32_t i = 0; i < count; i++) {
            if (processes[i] != gone)
                continue;
            processes[i] = 0;
            if (WIFEXITED(status))
                return false;
            nanosleep(&(struct timespec){0, RESTART_MS * 1000000L}, NULL);
            processes[i] = start_process(options, i);
            if (processes[i] < 0) {
                say("a process for machine %u-%u: %m", i / CUBE_MACHINES, i % CUBE_MACHINES);
                return false;
            }
        }
    return true;
}

static int serve_all(const struct chip_options *options)
{
    uint32_t count = options->cubes * CUBE_MACHINES;
    pid_t *processes = mem_alloc(count * sizeof *processes);
    bool good = true;
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGINT);
    sigaddset(&awaited, SIGTERM);
    sigprocmask(SIG_BLOCK, &awaited, NULL);
    for (uint32_t i = 0; i < count && good; i++) {
        processes[i] = start_process(options, i);
        good = processes[i] > 0;
        if (!good)
            say("a process for machine %u-%u: %m", i / CUBE_MACHINES, i % CUBE_MACHINES);
    }
    for (int number = SIGCHLD; good && number == SIGCHLD;) {
        good = sigwait(&awaited, &number) == 0;
        if (good && number == SIGCHLD)
            good = restart_dead(options, processes, count);
    }
    end_processes(processes, count);
    mem_free(processes);
    return good ? EXIT_OK : EXIT_FAILED;
}

/* --- the command --------------------------------------------------------------------------------------- */

static bool take_machine(struct chip_options *options, const char *value)
{
    struct str cube, machine;
    int64_t cube_number, number;
    if (!str_cut(str_from(value), '-', &cube, &machine) ||
        !str_to_i64(cube, 0, POD_CUBES_MAX - 1, &cube_number) ||
        !str_to_i64(machine, 0, CUBE_MACHINES - 1, &number))
        return usage_value(false);
    options->machine.machine = (uint32_t)(cube_number * CUBE_MACHINES + number);
    options->has_machine = true;
    return true;
}

static bool take_option(struct chip_options *options, int letter, const char *value)
{
    int64_t number = 0;
    switch (letter) {
    case CHIP_NETWORK:
        options->machine.network = value;
        return true;
    case CHIP_MACHINE:
        return take_machine(options, value);
    case CHIP_CUBES:
        if (!usage_value(str_to_i64(str_from(value), 1, POD_CUBES_MAX, &number)))
            return false;
        options->cubes = (uint32_t)number;
        return true;
    case CHIP_QUIET:
        options->quiet = true;
        return true;
    case CHIP_LOSS:
        if (!usage_value(str_to_i64(str_from(value), 0, 900000, &number)))
            return false;
        options->machine.loss_ppm = (uint32_t)number;
        return true;
    }
    return false;
}

int cmd_chip_sim(int argc, char **argv)
{
    static const struct option options[] = {{"network", required_argument, NULL, CHIP_NETWORK},
                                            {"machine", required_argument, NULL, CHIP_MACHINE},
                                            {"cubes", required_argument, NULL, CHIP_CUBES},
                                            {"loss-ppm", required_argument, NULL, CHIP_LOSS},
                                            {"quiet", no_argument, NULL, CHIP_QUIET},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct chip_options asked = {.machine = {.memory_bytes = CHIPS_SERVE_MEMORY}};
    for (int letter; (letter = usage_option(argc, argv, "h", options, NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        if (!take_option(&asked, letter, optarg))
            return usage_wrong(usage, NULL);
    }
    if (optind != argc)
        return usage_wrong(usage, "unexpected argument \"%s\"", argv[optind]);
    if (!asked.machine.network)
        return usage_wrong(usage, "--network DIR is missing: the folder of the sockets");
    if (asked.has_machine == (asked.cubes > 0))
        return usage_wrong(usage, "expected either --machine, or --cubes for all machines of so many cubes");
    (void)ending_await(); /* blocks signals before anything is started */
    return asked.cubes ? serve_all(&asked) : serve_machine(&asked.machine, asked.quiet);
}
