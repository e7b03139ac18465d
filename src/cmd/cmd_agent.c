/* phalanx agent: one machine of a cluster, or many simulated ones. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "cmd/client.h"
#include "cmd/usage.h"
#include "cmd/cmd.h"
#include "cmd/keeper.h"
#include "cmd/log_options.h"
#include "cmd/settings_file.h"
#include "os/file.h"
#include "host/agent/agent_host.h"

static const char usage[] =
    "Usage: phalanx agent --machine NAME --controller HOST:PORT --state DIR [options]\n"
    "       phalanx agent --simulate --machines N --controller HOST:PORT [options]\n"
    "\n"
    "Runs the agent of a machine: starts and stops its tasks for the controller.\n"
    "\n"
    "  --machine NAME        name in the cluster file\n"
    "  --controller H:PORT[,H:PORT...]\n"
    "                        the controller's address for agents; of several controllers, all\n"
    "  --state DIR           directory for tasks, logs and sockets; made if absent\n"
    "  --volumes-dir DIR     PersistentVolumeClaims are directories DIR/NAMESPACE/CLAIM; put it on a\n"
    "                        shared file system when tasks move between machines\n"
    "  --memory-dir DIR      on a file system in memory: tasks hold checkpoints below it (default\n"
    "                        /dev/shm); none: they hold none\n"
    "  --checkpoint-store S  s3://BUCKET/PREFIX?OPTIONS or file:///DIR: tasks' checkpoints go there,\n"
    "                        not into a directory, by way of --memory-dir (docs/checkpoints.md)\n"
    "  --hooks DIR           operators' scripts that the controller may run (default\n"
    "                        /etc/phalanx/hooks; docs/errands.md)\n"
    "  --task-user USER      user of the tasks of an agent that runs as root: a name, a number, or\n"
    "                        FROM-TO, of which each namespace gets ids of its own (default: ids from\n"
    "                        200000 on)\n"
    "  --allow-root-tasks    tasks may run as root and as any user, and do unless they say otherwise\n"
    "  --isolation MODE      try (default): hide files of the agent and of other tasks where the machine\n"
    "                        allows it; require: start no task without; off\n"
    "  --seccomp MODE        on (default): block the system calls that containers may not make by\n"
    "                        default, where the kernel can; off\n"
    "  --hide PATH           no task sees this file or folder; may be given several times\n"
    "  --allow-injection     let the controller inject faults into this machine (docs/inject.md)\n"
    "  --probe-link-local    let containers' probes ask link-local addresses, as of metadata services\n"
    "  --address A           own address: connections leave from it\n"
    "  --chips N             chips of this machine (default 0)\n"
    "  --cpu MILLI           thousandths of a CPU it offers (default: all)\n"
    "  --memory BYTES        memory it offers, such as 64Gi (default: all)\n"
    "  --log-bytes SIZE      a container's log is rotated at this size, such as 64Mi (default 10Mi)\n"
    "  --log-files N         files kept of each container's log, 1 to 100 (default 5)\n"
    "  --shim PATH           phalanx-shim (default: beside this program)\n"
    "  --stop-tasks          at SIGTERM stop the tasks too; without it they go on\n"
    "                        until the lease ends or an agent takes them over\n"
    "  --follow PID          end as at SIGTERM when process PID, the parent, ends\n"
    "  --no-probes           do not look after this machine's health\n"
    "  --probe-settings FILE limits of the probes, and what the machine should have (docs/probes.md)\n"
    "  --probe-root DIR      probes look below DIR instead of /: for tests\n"
    "  --tls-ca FILE         speak TLS, with a controller whose certificate this authority signed\n"
    "  --tls-cert FILE       this machine's certificate: CN=system:node:NAME, O=system:nodes\n"
    "  --tls-key FILE        its key\n"
    "  --metrics ADDR:PORT   answer GET /metrics there, in the clear (docs/agent.md)\n"
    "  --quiet               print nothing but errors\n"
    "  --help                this text\n"
    "\n"
    "Many machines in one process, with real connections and simulated tasks:\n"
    "  --simulate            tasks are simulated: PHX_SIM_RUN_MS, PHX_SIM_STEP_MS\n"
    "  --machines N          how many\n"
    "  --name-pattern P      their names; {n} is the number (default m-{n})\n"
    "  --first N             number of the first (default 0)\n"
    "\n"
    "Exit status: 0 ended by SIGTERM or SIGINT, 1 failed, 2 wrong usage.\n";

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum agent_option {
    OPTION_MACHINE = 256,
    OPTION_CONTROLLER,
    OPTION_STATE,
    OPTION_VOLUMES,
    OPTION_HOOKS,
    OPTION_ALLOW_INJECTION,
    OPTION_PROBE_LINK_LOCAL,
    OPTION_TASK_USER,
    OPTION_ALLOW_ROOT,
    OPTION_ISOLATION,
    OPTION_SECCOMP,
    OPTION_HIDE,
    OPTION_MEMORY_DIR,
    OPTION_CHECKPOINT_STORE,
    OPTION_ADDRESS,
    OPTION_CHIPS,
    OPTION_CPU,
    OPTION_MEMORY,
    OPTION_LOG_BYTES,
    OPTION_LOG_FILES,
    OPTION_SHIM,
    OPTION_STOP_TASKS,
    OPTION_FOLLOW,
    OPTION_QUIET,
    OPTION_SIMULATE,
    OPTION_MACHINES,
    OPTION_PATTERN,
    OPTION_FIRST,
    OPTION_NO_PROBES,
    OPTION_PROBE_SETTINGS,
    OPTION_PROBE_ROOT,
    OPTION_TLS_CA,
    OPTION_TLS_CERT,
    OPTION_TLS_KEY,
    OPTION_METRICS,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"machine", required_argument, NULL, OPTION_MACHINE},
    {"controller", required_argument, NULL, OPTION_CONTROLLER},
    {"state", required_argument, NULL, OPTION_STATE},
    {"volumes-dir", required_argument, NULL, OPTION_VOLUMES},
    {"memory-dir", required_argument, NULL, OPTION_MEMORY_DIR},
    {"checkpoint-store", required_argument, NULL, OPTION_CHECKPOINT_STORE},
    {"hooks", required_argument, NULL, OPTION_HOOKS},
    {"task-user", required_argument, NULL, OPTION_TASK_USER},
    {"allow-root-tasks", no_argument, NULL, OPTION_ALLOW_ROOT},
    {"isolation", required_argument, NULL, OPTION_ISOLATION},
    {"seccomp", required_argument, NULL, OPTION_SECCOMP},
    {"hide", required_argument, NULL, OPTION_HIDE},
    {"allow-injection", no_argument, NULL, OPTION_ALLOW_INJECTION},
    {"probe-link-local", no_argument, NULL, OPTION_PROBE_LINK_LOCAL},
    {"address", required_argument, NULL, OPTION_ADDRESS},
    {"chips", required_argument, NULL, OPTION_CHIPS},
    {"cpu", required_argument, NULL, OPTION_CPU},
    {"memory", required_argument, NULL, OPTION_MEMORY},
    {"log-bytes", required_argument, NULL, OPTION_LOG_BYTES},
    {"log-files", required_argument, NULL, OPTION_LOG_FILES},
    {"shim", required_argument, NULL, OPTION_SHIM},
    {"stop-tasks", no_argument, NULL, OPTION_STOP_TASKS},
    {"follow", required_argument, NULL, OPTION_FOLLOW},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"simulate", no_argument, NULL, OPTION_SIMULATE},
    {"machines", required_argument, NULL, OPTION_MACHINES},
    {"name-pattern", required_argument, NULL, OPTION_PATTERN},
    {"first", required_argument, NULL, OPTION_FIRST},
    {"no-probes", no_argument, NULL, OPTION_NO_PROBES},
    {"probe-settings", required_argument, NULL, OPTION_PROBE_SETTINGS},
    {"probe-root", required_argument, NULL, OPTION_PROBE_ROOT},
    {"tls-ca", required_argument, NULL, OPTION_TLS_CA},
    {"tls-cert", required_argument, NULL, OPTION_TLS_CERT},
    {"tls-key", required_argument, NULL, OPTION_TLS_KEY},
    {"metrics", required_argument, NULL, OPTION_METRICS},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

enum { HIDDEN_MAX = 16 };

struct arguments {
    struct agent_host_options host;
    char controller[256], metrics[64];
    char other_names[AGENT_HOST_CONTROLLERS_MAX][256];
    struct agent_host_place others[AGENT_HOST_CONTROLLERS_MAX];
    const char *probe_settings; /* a file; NULL: none */
    const char *hidden[HIDDEN_MAX];
    struct arena arena; /* strings of the settings */
    bool stop_tasks, help;
};

struct running {
    uv_loop_t loop;
    uv_signal_t term, interrupt;
    struct agent_host *host;
    bool stop_tasks, stopping;
};

/* --- the command line ----------------------------------------------------------------------------- */

static bool number(const char *text, int64_t max, int64_t *ret_value)
{
    return str_to_i64(str_from(text), 0, max, ret_value);
}

static bool take_number(struct arguments *arguments, int option, const char *text)
{
    int64_t value = 0;
    bool fits =
        option == OPTION_MEMORY
            ? quantity_parse_milli(str_from(text), &value)
            : number(text, option == OPTION_CHIPS ? 64 : AGENT_HOST_MACHINES_MAX * INT64_C(1000), &value);
    if (option == OPTION_CHIPS)
        arguments->host.chips = (uint32_t)value;
    else if (option == OPTION_CPU)
        arguments->host.cpu_milli = value;
    else if (option == OPTION_MEMORY)
        arguments->host.memory_bytes = value / 1000;
    else if (option == OPTION_MACHINES)
        arguments->host.machines = (uint32_t)value;
    else
        arguments->host.first = (uint32_t)value;
    return fits;
}

static bool take_isolation(struct agent_host_options *host, const char *value)
{
    host->isolation_off = strcmp(value, "off") == 0;
    host->isolation_required = strcmp(value, "require") == 0;
    return host->isolation_off || host->isolation_required || strcmp(value, "try") == 0;
}

static bool take_hidden(struct arguments *arguments, const char *path)
{
    arguments->host.hidden = arguments->hidden;
    if (arguments->host.hidden_count < HIDDEN_MAX)
        arguments->hidden[arguments->host.hidden_count++] = path;
    return path[0] == '/';
}

/* Takes the options about the users, isolation and limits of tasks. */
static bool take_task_option(struct arguments *arguments, int option, const char *value)
{
    struct agent_host_options *host = &arguments->host;
    if (option == OPTION_ALLOW_ROOT)
        return host->allow_root_tasks = true;
    if (option == OPTION_ISOLATION)
        return take_isolation(host, value);
    if (option == OPTION_SECCOMP) {
        host->seccomp_off = strcmp(value, "off") == 0;
        return host->seccomp_off || strcmp(value, "on") == 0;
    }
    if (option == OPTION_HIDE)
        return take_hidden(arguments, value);
    if (option != OPTION_TASK_USER)
        return take_number(arguments, option, value);
    host->task_user = value;
    return value[0] != 0;
}

/* Reads "HOST:PORT" of the controller, or a list of several separated by commas. */
static bool parse_controllers(struct arguments *arguments, const char *text)
{
    struct agent_host_options *host = &arguments->host;
    struct str rest = str_from(text), one, tail;
    size_t count = 0;
    while (rest.len > 0) {
        char place[300];
        tail = (struct str){0};
        one = rest;
        (void)str_cut(rest, ',', &one, &tail);
        rest = tail;
        if (one.len >= sizeof place || count == AGENT_HOST_CONTROLLERS_MAX)
            return false;
        snprintf(place, sizeof place, STR_FORMAT, STR_ARG(one));
        if (count == 0 &&
            !usage_place(place, arguments->controller, sizeof arguments->controller, &host->port))
            return false;
        if (count > 0) {
            struct agent_host_place *other = &arguments->others[count - 1];
            other->controller = arguments->other_names[count - 1];
            if (!usage_place(place, arguments->other_names[count - 1], sizeof arguments->other_names[0],
                             &other->port))
                return false;
        }
        count++;
    }
    host->controller = arguments->controller;
    host->others = arguments->others;
    host->other_count = count > 0 ? count - 1 : 0;
    return count > 0;
}

/* Takes an option. Returns false if its value is not valid. */
static bool take_option(struct arguments *arguments, int option, const char *value)
{
    struct agent_host_options *host = &arguments->host;
    switch (option) {
    case OPTION_MACHINE:
    case OPTION_PATTERN:
        host->machine = value;
        return true;
    case OPTION_CONTROLLER:
        return parse_controllers(arguments, value);
    case OPTION_METRICS:
        host->metrics_address = arguments->metrics;
        return usage_place(value, arguments->metrics, sizeof arguments->metrics, &host->metrics_port);
    case OPTION_STATE:
        host->state = value;
        return true;
    case OPTION_VOLUMES:
        host->volumes_dir = value;
        return value[0] != 0;
    case OPTION_MEMORY_DIR:
        host->memory_dir = strcmp(value, "none") == 0 ? "" : value;
        return value[0] != 0;
    case OPTION_CHECKPOINT_STORE:
    case OPTION_HOOKS:
        *(option == OPTION_HOOKS ? &host->hooks_dir : &host->checkpoint_store) = value;
        return value[0] != 0;
    case OPTION_ADDRESS:
    case OPTION_SHIM:
        *(option == OPTION_SHIM ? &host->shim : &host->address) = value;
        return true;
    case OPTION_LOG_BYTES:
        return log_bytes_parse(value, &host->log_bytes);
    case OPTION_LOG_FILES:
        return log_files_parse(value, &host->log_files);
    case OPTION_NO_PROBES:
        host->probes = false;
        return true;
    case OPTION_PROBE_SETTINGS:
        arguments->probe_settings = value;
        return true;
    case OPTION_PROBE_ROOT:
    case OPTION_TLS_CA:
        *(option == OPTION_TLS_CA ? &host->tls_ca : &host->probes_root) = value;
        return true;
    case OPTION_TLS_CERT:
    case OPTION_TLS_KEY:
        *(option == OPTION_TLS_KEY ? &host->tls_key : &host->tls_cert) = value;
        return true;
    case OPTION_FOLLOW:
        host->announce = false; /* `phalanx up` announces when all are ready */
        return keeper_follow(value);
    case OPTION_STOP_TASKS:
        arguments->stop_tasks = true;
        return true;
    case OPTION_ALLOW_INJECTION:
    case OPTION_QUIET:
    case OPTION_PROBE_LINK_LOCAL:
        return *(option == OPTION_QUIET             ? &host->quiet
                 : option == OPTION_ALLOW_INJECTION ? &host->injection
                                                    : &host->probe_link_local) = true;
    case OPTION_SIMULATE:
        return host->simulate = true;
    case OPTION_HELP:
        return arguments->help = true;
    default:
        return take_task_option(arguments, option, value);
    }
}

static int parse(struct arguments *arguments, int argc, char **argv)
{
    optind = 0; /* the dispatcher or a test may have parsed before */
    for (;;) {
        int index = 0;
        int option = usage_option(argc, argv, "+h", long_options, &index);
        if (option == -1)
            break;
        if (option == '?')
            return EXIT_USAGE;
        if (option == 'h')
            option = OPTION_HELP;
        if (!take_option(arguments, option, optarg)) {
            say("--%s: \"%s\" is not a valid value", long_options[index].name, optarg);
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        say("unexpected argument \"%s\"", argv[optind]);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

enum { SETTINGS_BYTES_MAX = 1024 * 1024 };

static bool read_settings(struct arguments *arguments)
{
    const char *path = arguments->probe_settings;
    struct doc *settings = NULL;
    struct error error;
    if (!path)
        return true;
    int rc = settings_file_read(path, SETTINGS_BYTES_MAX, &arguments->arena, &settings, &error);
    if (rc == 0 && !settings)
        rc = error_set(&error, ERROR_INVALID, "%s: expected exactly one document", path);
    if (rc < 0)
        say("%s", error.text);
    arguments->host.probe_settings = settings;
    return rc == 0;
}

/* --- running -------------------------------------------------------------------------------------- */

static void on_host_closed(void *context)
{
    struct running *running = context;
    running->host = NULL;
    uv_close((uv_handle_t *)&running->term, NULL);
    uv_close((uv_handle_t *)&running->interrupt, NULL);
}

static void on_signal(uv_signal_t *handle, int number_)
{
    struct running *running = handle->data;
    if (!running->host)
        return;
    agent_host_shutdown(running->host, running->stop_tasks && !running->stopping, on_host_closed, running);
    running->stopping = true;
}

static int run(const struct arguments *arguments)
{
    struct running running = {.stop_tasks = arguments->stop_tasks};
    struct error error;
    signal(SIGPIPE, SIG_IGN);
    if (uv_loop_init(&running.loop) < 0)
        return EXIT_FAILED;
    uv_signal_init(&running.loop, &running.term);
    uv_signal_init(&running.loop, &running.interrupt);
    running.term.data = running.interrupt.data = &running;
    int rc = agent_host_new(&running.loop, &arguments->host, &running.host, &error);
    if (rc < 0) {
        say("%s", error.text);
        on_host_closed(&running);
    } else {
        uv_signal_start(&running.term, on_signal, SIGTERM);
        uv_signal_start(&running.interrupt, on_signal, SIGINT);
    }
    uv_run(&running.loop, UV_RUN_DEFAULT);
    uv_loop_close(&running.loop);
    return rc == 0 ? EXIT_OK : rc == ERROR_INVALID ? EXIT_USAGE : EXIT_FAILED;
}

/* Raises the limit of descriptors for simulated machines, whose connections exceed the usual limit of a
 * login. Real tasks inherit the limit, so it stays for them. */
static void raise_descriptor_limit(uint32_t machines)
{
    struct rlimit limit;
    rlim_t need = (rlim_t)machines + 256;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max < need) { /* root may raise the hard limit */
        struct rlimit more = {need, need};
        if (setrlimit(RLIMIT_NOFILE, &more) == 0)
            return;
        say("%llu descriptors are allowed, %llu are needed (ulimit -n)", (unsigned long long)limit.rlim_max,
            (unsigned long long)need);
    }
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* on failure, connecting reports a lack of descriptors */
}

/* Adds PREFIX/libexec/phalanx, where example programs such as `train` are installed, to the end of PATH for
 * tasks. */
static void add_libexec_path(void)
{
    char self[PATH_MAX], *slash;
    struct buf path BUF_CLEANUP = {0};
    struct stat info;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return;
    self[length] = 0;
    if (!(slash = strrchr(self, '/')))
        return;
    *slash = 0;
    if (!(slash = strrchr(self, '/')) || strcmp(slash, "/bin") != 0)
        return;
    *slash = 0;
    const char *now = getenv("PATH");
    buf_printf(&path, "%s:", now && *now ? now : PATH_DEFAULT);
    size_t own = path.len;
    buf_printf(&path, "%s/libexec/phalanx", self);
    if (stat(path.data + own, &info) == 0 && S_ISDIR(info.st_mode))
        setenv("PATH", path.data, 1);
}

int cmd_agent(int argc, char **argv)
{
    struct arguments arguments = {.host.probes = true, .host.announce = true};
    int code = parse(&arguments, argc, argv);
    if (arguments.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    if (code != EXIT_OK) {
        usage_wrong(usage, NULL);
        return code;
    }
    if (!read_settings(&arguments))
        return EXIT_USAGE;
    if (arguments.host.simulate) {
        raise_descriptor_limit(arguments.host.machines);
        if (!arguments.host.machine)
            arguments.host.machine = "m-{n}";
    }
    add_libexec_path();
    os_umask_own();
    code = run(&arguments);
    arena_done(&arguments.arena);
    return code;
}
