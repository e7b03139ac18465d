/* phalanx up: a whole cluster on this machine: one controller and one agent process for each machine of the
 * cluster file, watched over until SIGINT, SIGTERM or SIGHUP. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "cmd/cluster_file.h"
#include "cmd/cmd.h"
#include "cmd/keeper.h"
#include "cmd/local.h"
#include "cmd/log_options.h"
#include "cmd/processes.h"
#include "cmd/usage.h"
#include "host/access/folder.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/namespace.h"

static const char usage[] =
    "Usage: phalanx up [--cluster FILE] [--data DIR] [options]\n"
    "\n"
    "Runs a whole cluster on this machine: a controller, and for every machine of the cluster file an\n"
    "agent process with that machine's address. A controller that dies is started again at once, an\n"
    "agent too while tasks of its machine live; a machine whose every process is dead comes back after\n"
    "--revive. Stops everything at SIGINT, SIGTERM or SIGHUP (not under nohup), at its own death, and\n"
    "by `phalanx down`.\n"
    "\n"
    "Options:\n"
    "  --cluster FILE         the cluster file (default: six machines of four chips,\n"
    "                         written to DIR/default-cluster.yaml)\n"
    "  --data DIR             where log, machines and checkpoints are kept (default ./phalanx-data)\n"
    "  --state-dir DIR        where machines keep their state, --data's machines becoming a link to it:\n"
    "                         with a file system in memory tasks start sooner (default: no link)\n"
    "  --api ADDRESS:PORT     where the API listens (default 127.0.0.1:7070; port 0: any)\n"
    "  --api-host NAME        a name by which clients ask for the API over plain HTTP, beside loopback\n"
    "                         names and its address\n"
    "  --agents ADDRESS:PORT  where agents connect (default 127.0.0.1:7071; port 0: any)\n"
    "  --secure               HTTPS alone: without the plain HTTP by which commands of this user on this\n"
    "                         computer reach the API with a token that they find by themselves\n"
    "  --insecure             no credentials, for anybody: who reaches the API, as every user of this\n"
    "                         computer does, runs commands as you\n"
    "  --revive DURATION      a dead machine comes back after this (default 10s; 0: never)\n"
    "  --log-bytes SIZE       a container's log is rotated at this size, such as 64Mi (default 10Mi)\n"
    "  --log-files N          files kept of each container's log, 1 to 100 (default 5)\n"
    "  --probe-root DIR       each machine's probes look below DIR/NAME: for tests; without it no\n"
    "                         probes run, because all machines are this computer\n"
    "  --probe-settings FILE  limits of the probes (docs/probes.md)\n"
    "  --checkpoint-store S   s3://... or file:///...: the agents' (docs/checkpoints.md)\n"
    "  --task-user USER       the agents', which run as root if this program does (docs/security.md)\n"
    "  --allow-root-tasks     likewise: tasks run as root; needed where they could not reach their files\n"
    "                         as users of their own, because a folder is closed to them\n"
    "  --isolation MODE       likewise: try (default), require or off\n"
    "  --seccomp MODE         likewise: on (default) or off\n"
    "  --hide PATH            likewise; may be repeated\n"
    "  --pod-security LEVEL   the controller's: what namespaces without a label enforce\n"
    "  --handshakes N         the controller's: TLS connections that may shake hands at once\n"
    "  --handshakes-per-address N\n"
    "                         likewise, of one source address\n"
    "  --hooks DIR            scripts that repair machines (docs/repair.md)\n"
    "  --emulate-chips        a process for the chips of each machine whose pod has chips: emulated:DIR/\n"
    "                         {cube}-{machine}; light comes from phalanx switch-sim --light DIR\n"
    "                         (docs/fabric.md)\n"
    "  --quiet                no messages of machines coming and going\n"
    "  --help                 this text\n"
    "\n"
    "The API and the agents have TLS and credentials: DIR/access gets a certificate authority, a client\n"
    "certificate for you and one for each agent; roles come from DIR/access/roles.yaml, whenever it is\n"
    "made; DIR/audit.log gets a line for each request.\n"
    "\n"
    "DIR/ready appears, with the API's URL in it, when every machine has been started; DIR/kubeconfig\n"
    "serves kubectl.\n"
    "\n"
    "Exit status: 0 stopped by a signal, 1 failed, 2 usage.\n";

/* A machine is judged a moment after its agent's end: a kill of everything on it takes a moment too. */
enum {
    RESTART_DELAY_MS = 20,
    CHIPS_DELAY_MS = 200,
    JUDGE_DELAY_MS = 20,
    PATH_BYTES = 4096,
    LONG_PATH_BYTES = PATH_BYTES + 512,
    HIDDEN = 7,
    HANDED_ON_MAX = 24, /* options of one kind */
};
#define HANDED_ON "uRISDLxX"

/* A command line that grows; zeroed it is empty, and it always ends with NULL. */
struct words {
    char *items[80];
    size_t len;
};
#define ADD_WORDS(line, list) add_words((line), (list), sizeof(list) / sizeof(*(list)))

static void add_words(struct words *line, const char *const *words, size_t count)
{
    CHECK(line->len + count < sizeof(line->items) / sizeof(*line->items));
    for (size_t i = 0; i < count; i++)
        line->items[line->len++] = (char *)words[i];
}

/* Frees the words of a list that owns them. */
static void free_words(struct words *line)
{
    while (line->len > 0)
        mem_free(line->items[--line->len]);
}

struct up;
struct child {
    struct up *up;
    enum { CHILD_CONTROLLER, CHILD_AGENT, CHILD_CHIPS } role;
    const struct machine *machine; /* NULL: the controller's */
    uv_process_t process;
    uv_timer_t timer;
    bool running;
};
struct up {
    uv_loop_t loop;
    uv_signal_t signals[3];
    struct keeper keeper;
    char self_pid[16];
    uv_pipe_t ready;
    struct buf ready_text;
    const char *cluster_path, *api, *agents, *state_dir; /* state_dir NULL: DATA/machines */
    const char *probe_root, *probe_settings;             /* NULL: no probes; the defaults */
    const char *checkpoint_store;                        /* NULL: none */
    const char *hooks;                                   /* NULL: the agents' default */
    const char *api_host;                                /* NULL: loopback names and addresses alone */
    char default_cluster[PATH_BYTES + 64];               /* the file of the cluster that is built in */
    char data[PATH_BYTES], self[PATH_BYTES];
    char memory[64]; /* the agents' --memory-dir: goes with the cluster */
    char own_group[INJECT_PATH_MAX], groups[KEEPER_GROUPS_BYTES]; /* control groups; empty: none */
    char api_at[128], agents_at[128];                             /* with the ports that were taken */
    const char *log_bytes, *log_files;                            /* options of the agents */
    struct words to_agents, to_controller;                        /* options that are handed on; owned */
    int64_t revive_ns;
    enum { UP_FOUND, UP_SECURE, UP_INSECURE } access_mode; /* UP_FOUND: commands find the credentials */
    bool quiet, stopping, up;
    bool emulates_chips;
    bool task_user, root_tasks;  /* the options of these names were given */
    bool bridges;                /* agents can lead tasks of other users past a closed folder */
    mode_t way;                  /* of folders on the way to what tasks reach */
    char token[PKI_TOKEN_TEXT];  /* of this run, with UP_FOUND */
    char access[PATH_BYTES + 8]; /* the folder of credentials; see folder.h */
    int status;
    struct cluster cluster;
    struct child controller;
    struct child *machines; /* their agents */
    struct child *chips;    /* of each machine */
    size_t running;
};

static void start_child(struct child *child);

static void say(const struct up *up, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct up *up, const char *format, ...)
{
    if (up->quiet)
        return;
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

static void remove_ready(const struct up *up)
{
    char path[PATH_BYTES + 16];
    snprintf(path, sizeof(path), "%s/ready", up->data);
    unlink(path);
}

/* --- stopping ------------------------------------------------------------------------------------------- */

static void close_if_open(uv_handle_t *handle, void *context)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void stop(struct up *up, int status)
{
    if (up->stopping)
        return;
    up->stopping = true;
    up->status = status;
    remove_ready(up);
    for (size_t i = 0; i < up->cluster.machine_count; i++)
        if (up->machines[i].running)
            uv_process_kill(&up->machines[i].process, SIGTERM);
    for (size_t i = 0; i < up->cluster.machine_count; i++)
        if (up->chips[i].running)
            uv_process_kill(&up->chips[i].process, SIGTERM);
    /* The controller goes last, so that the ends of tasks reach its log; on_exit sees to it. */
    if (up->running == (size_t)up->controller.running) {
        if (up->controller.running)
            uv_process_kill(&up->controller.process, SIGTERM);
        else
            uv_walk(&up->loop, close_if_open, NULL);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    stop(handle->data, 0);
}

/* --- watching over -------------------------------------------------------------------------------------- */

static bool machine_has_tasks(const struct up *up, const struct machine *machine)
{
    char state[PATH_BYTES + 300];
    snprintf(state, sizeof(state), "%s/machines/" STR_FORMAT, up->data, STR_ARG(machine->name));
    return processes_exist(state);
}

static void on_timer(uv_timer_t *timer)
{
    struct child *child = timer->data;
    if (!child->up->stopping)
        start_child(child);
}

static void restart_after(struct child *child, int64_t delay_ns)
{
    uv_timer_start(&child->timer, on_timer, (uint64_t)(delay_ns / NS_PER_MS), 0);
}

static void judge_machine(uv_timer_t *timer)
{
    struct child *child = timer->data;
    struct up *up = child->up;
    if (up->stopping)
        return;
    if (machine_has_tasks(up, child->machine)) {
        say(up, STR_FORMAT ": its agent died, its tasks live; starting the agent again",
            STR_ARG(child->machine->name));
        start_child(child);
    } else if (up->revive_ns > 0) {
        say(up, STR_FORMAT ": down; it comes back in %.0f s", STR_ARG(child->machine->name),
            (double)up->revive_ns / 1e9);
        restart_after(child, up->revive_ns);
    } else {
        say(up, STR_FORMAT ": down", STR_ARG(child->machine->name));
    }
}

static void on_controller_exit(struct up *up, int64_t status, int signal_number)
{
    if (!up->up && signal_number == 0 && status != 0) {
        stop(up, 1); /* the controller has printed the reason */
        return;
    }
    say(up, "controller ended (%s %lld); starting it again", signal_number ? "signal" : "status",
        signal_number ? (long long)signal_number : (long long)status);
    restart_after(&up->controller, RESTART_DELAY_MS * NS_PER_MS);
}

static void on_chips_exit(struct child *child, int64_t status, int signal_number)
{
    if (signal_number)
        restart_after(child, CHIPS_DELAY_MS * NS_PER_MS);
    else /* it has printed the reason */
        say(child->up, STR_FORMAT ": its chips are not emulated: status %lld", STR_ARG(child->machine->name),
            (long long)status);
}

static void on_exit_child(uv_process_t *process, int64_t status, int signal_number)
{
    struct child *child = process->data;
    struct up *up = child->up;
    child->running = false;
    up->running--;
    uv_close((uv_handle_t *)process, NULL);
    if (up->stopping) {
        if (up->running == 1 && up->controller.running)
            uv_process_kill(&up->controller.process, SIGTERM);
        else if (up->running == 0)
            uv_walk(&up->loop, close_if_open, NULL);
        return;
    }
    if (child->role == CHILD_AGENT)
        uv_timer_start(&child->timer, judge_machine, JUDGE_DELAY_MS, 0);
    else if (child->role == CHILD_CHIPS)
        on_chips_exit(child, status, signal_number);
    else
        on_controller_exit(up, status, signal_number);
}

/* --- starting ------------------------------------------------------------------------------------------- */

static bool spawn(struct child *child, char **argv, int ready_fd)
{
    struct up *up = child->up;
    uv_stdio_container_t stdio[4] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = 1},
        {.flags = UV_INHERIT_FD, .data.fd = 2},
        {.flags = UV_INHERIT_FD, .data.fd = ready_fd},
    };
    uv_process_options_t options = {
        .file = up->self,
        .args = argv,
        .exit_cb = on_exit_child,
        .stdio = stdio,
        .stdio_count = ready_fd >= 0 ? 4 : 3,
        .flags = UV_PROCESS_DETACHED, /* a terminal's Ctrl-C is ours to pass on */
    };
    child->process.data = child;
    int rc = uv_spawn(&up->loop, &child->process, &options);
    if (rc < 0) {
        fprintf(stderr, "phalanx: up: starting %s: %s\n", argv[1], uv_strerror(rc));
        stop(up, 1);
        return false;
    }
    child->running = true;
    up->running++;
    return true;
}

/* --- control groups ------------------------------------------------------------------------------------- */

/* Each machine has one of its own where we may make them, with no limits: so that its network can be cut
 * (`phalanx inject partition`). Sockets belong to the group in which they were made. */
static void make_groups(struct up *up)
{
    if (!keeper_groups(up->data, up->own_group, up->groups))
        return;
    if (mkdir(up->groups, 0755) < 0 && errno != EEXIST)
        up->groups[0] = 0;
}

static void group_of(const struct up *up, const struct machine *machine, char ret_path[LONG_PATH_BYTES])
{
    snprintf(ret_path, LONG_PATH_BYTES, "%s/" STR_FORMAT, up->groups, STR_ARG(machine->name));
}

static bool enter_group(const char *group)
{
    char path[LONG_PATH_BYTES + 32];
    snprintf(path, sizeof(path), "%s/cgroup.procs", group);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool entered = fd >= 0 && write(fd, "0", 1) == 1;
    if (fd >= 0)
        close(fd);
    return entered;
}

/* A child is born in the group of its parent. */
static void spawn_in_group(struct child *child, char **argv)
{
    struct up *up = child->up;
    char path[LONG_PATH_BYTES];
    group_of(up, child->machine, path);
    bool entered = up->groups[0] && (mkdir(path, 0755) == 0 || errno == EEXIST) && enter_group(path);
    spawn(child, argv, -1);
    if (entered && !enter_group(up->own_group))
        fprintf(stderr, "phalanx: up: %s: %s\n", up->own_group, strerror(errno));
}

/* Options about what tasks are and what they see. The files of the controller lie beside the agents'. */
static void add_isolation(const struct up *up, struct words *argv, char (*paths)[LONG_PATH_BYTES])
{
    static const char *const hidden[HIDDEN] = {"access",     "kubeconfig", "log.db",  "log.db-wal",
                                               "log.db-shm", "audit.log",  "machines"};
    add_words(argv, (const char *const *)up->to_agents.items, up->to_agents.len);
    for (size_t i = 0; i < HIDDEN; i++) {
        snprintf(paths[i], LONG_PATH_BYTES, "%s/%s", up->data, hidden[i]);
        const char *words[] = {"--hide", paths[i]};
        ADD_WORDS(argv, words);
    }
}

static void start_agent(struct child *child)
{
    struct up *up = child->up;
    const struct machine *machine = child->machine;
    char name[NAME_MAX_BYTES + 1], address[64], state[PATH_BYTES + 300], chips[16];
    char volumes[LONG_PATH_BYTES], root[PATH_BYTES + 300];
    snprintf(volumes, sizeof(volumes), "%s/volumes", up->data);
    snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(machine->name));
    snprintf(root, sizeof(root), "%s/%s", up->probe_root ? up->probe_root : "", name);
    snprintf(address, sizeof(address), STR_FORMAT, STR_ARG(machine->address));
    snprintf(state, sizeof(state), "%s/machines/%s", up->data, name);
    snprintf(chips, sizeof(chips), "%u", machine->chip_count);
    char cert[LONG_PATH_BYTES], key[LONG_PATH_BYTES], ca[LONG_PATH_BYTES], hidden[HIDDEN][LONG_PATH_BYTES];
    snprintf(ca, sizeof(ca), "%s/ca.crt", up->access);
    snprintf(cert, sizeof(cert), "%s/agents/%s.crt", up->access, name);
    snprintf(key, sizeof(key), "%s/agents/%s.key", up->access, name);
    /* clang-format off */
    const char *words[] = {"phalanx", "agent", "--machine", name, "--controller", up->agents_at,
                           "--state", state, "--address", address, "--chips", chips, "--volumes-dir", volumes,
                           "--memory-dir", up->memory, "--stop-tasks", "--follow", up->self_pid,
                           "--log-bytes", up->log_bytes, "--log-files", up->log_files};
    const char *rooted[] = {"--probe-root", root}, *unprobed[] = {"--no-probes"};
    const char *settings[] = {"--probe-settings", up->probe_settings};
    const char *hooks[] = {"--hooks", up->hooks};
    const char *store[] = {"--checkpoint-store", up->checkpoint_store};
    const char *tls[] = {"--tls-ca", ca, "--tls-cert", cert, "--tls-key", key};
    /* clang-format on */
    struct words argv = {0};
    ADD_WORDS(&argv, words);
    if (up->probe_root)
        ADD_WORDS(&argv, rooted);
    else
        ADD_WORDS(&argv, unprobed);
    if (up->probe_settings)
        ADD_WORDS(&argv, settings);
    if (up->hooks)
        ADD_WORDS(&argv, hooks);
    if (up->checkpoint_store)
        ADD_WORDS(&argv, store);
    if (up->access_mode != UP_INSECURE)
        ADD_WORDS(&argv, tls);
    add_isolation(up, &argv, hidden);
    spawn_in_group(child, argv.items);
}

static void write_text(const struct up *up, const char *name, const char *text)
{
    char path[PATH_BYTES + 64];
    struct error error;
    snprintf(path, sizeof(path), "%s/%s", up->data, name);
    if (pki_write_file(path, str_from(text), 0600, true, &error) < 0)
        fprintf(stderr, "phalanx: up: %s\n", error.text);
}

static bool write_config(const struct up *up, const char *path, const struct folder_config *config)
{
    struct error error;
    bool written = folder_kubeconfig(path, config, &error) == 0;
    if (!written)
        fprintf(stderr, "phalanx: up: %s\n", error.text);
    return written;
}

/* Leaves the address and the token of this run where commands of this user look (local.h). A loopback address
 * is asked over plain HTTP, for which a command need not load libraries of TLS. */
static bool announce_locally(const struct up *up, const char *kubeconfig)
{
    char url[256], path[PATH_BYTES + 64];
    const char *colon = strrchr(up->api_at, ':');
    bool loopback = strncmp(up->api_at, "127.", 4) == 0 || strncmp(up->api_at, "0.0.0.0:", 8) == 0;
    snprintf(url, sizeof(url), "http://127.0.0.1%s", colon ? colon : "");
    snprintf(path, sizeof(path), "%s/local.kubeconfig", up->access);
    if (loopback && !write_config(up, path, &(struct folder_config){.server = url, .token = up->token}))
        return false;
    return local_announce(up->api_at, loopback ? path : kubeconfig);
}

static void announce(struct up *up)
{
    char url[256], path[PATH_BYTES + 64];
    bool secure = up->access_mode != UP_INSECURE;
    snprintf(url, sizeof(url), "%s://%s", secure ? "https" : "http", up->api_at);
    snprintf(path, sizeof(path), "%s/kubeconfig", up->data);
    struct folder_config config = {.server = url};
    if (secure) {
        config.folder = up->access;
        config.user = "admin";
    }
    write_config(up, path, &config);
    bool found = up->access_mode == UP_FOUND ? announce_locally(up, path) : local_announce(up->api_at, NULL);
    say(up, "cluster " STR_FORMAT " is up: %zu machines, %llu chips; API at %s", STR_ARG(up->cluster.name),
        up->cluster.machine_count, (unsigned long long)up->cluster.chip_count, url);
    if (found && strcmp(url, "https://127.0.0.1:7070") == 0)
        say(up, "  export KUBECONFIG=%s", path);
    else
        say(up, "  export KUBECONFIG=%s %s=%s", path, secure && !found ? "PHALANX_CONFIG" : "PHALANX_SERVER",
            secure && !found ? path : url);
    snprintf(path, sizeof(path), "%s\n", url);
    write_text(up, "ready", path);
}

/* The controller has announced its ports; the first time, starts the machines. */
static void controller_ready(struct up *up)
{
    unsigned api_port, agent_port;
    if (sscanf(up->ready_text.data, "%u %u", &api_port, &agent_port) != 2)
        return;
    snprintf(up->api_at, sizeof(up->api_at), "%.*s:%u", (int)strcspn(up->api, ":"), up->api, api_port);
    snprintf(up->agents_at, sizeof(up->agents_at), "%.*s:%u", (int)strcspn(up->agents, ":"), up->agents,
             agent_port);
    if (up->up)
        return;
    up->up = true;
    for (size_t i = 0; i < up->cluster.machine_count && !up->stopping; i++)
        start_agent(&up->machines[i]);
    announce(up);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
    struct up *up = handle->data;
    buf_reserve(&up->ready_text, 256);
    *ret = uv_buf_init(up->ready_text.data + up->ready_text.len, 255);
}

static void on_ready(uv_stream_t *stream, ssize_t count, const uv_buf_t *data)
{
    struct up *up = stream->data;
    if (count < 0) {
        uv_close((uv_handle_t *)stream, NULL);
        return;
    }
    up->ready_text.len += (size_t)count;
    up->ready_text.data[up->ready_text.len] = 0;
    if (memchr(up->ready_text.data, '\n', up->ready_text.len))
        controller_ready(up);
}

static void start_controller(struct child *child)
{
    struct up *up = child->up;
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0) {
        fprintf(stderr, "phalanx: up: pipe: %s\n", strerror(errno));
        stop(up, 1);
        return;
    }
    char cert[LONG_PATH_BYTES], key[LONG_PATH_BYTES], ca[LONG_PATH_BYTES], tokens[LONG_PATH_BYTES];
    char audit[LONG_PATH_BYTES], roles[LONG_PATH_BYTES];
    snprintf(cert, sizeof(cert), "%s/server.crt", up->access);
    snprintf(key, sizeof(key), "%s/server.key", up->access);
    snprintf(ca, sizeof(ca), "%s/ca.crt", up->access);
    snprintf(tokens, sizeof(tokens), "%s/tokens.csv", up->access);
    snprintf(roles, sizeof(roles), "%s/roles.yaml", up->access);
    snprintf(audit, sizeof(audit), "%s/audit.log", up->data);
    /* clang-format off */
    const char *words[] = {"phalanx", "controller", "--data", up->data, "--cluster", up->cluster_path,
                           "--api", up->api_at, "--agents", up->agents_at, "--ready-fd", "3",
                           "--follow", up->self_pid};
    const char *named[] = {"--api-host", up->api_host};
    const char *found[] = {"--loopback-http"};
    const char *secured[] = {"--tls-cert", cert, "--tls-key", key, "--client-ca", ca, "--tokens", tokens,
                             "--audit-log", audit, "--roles", roles};
    /* clang-format on */
    struct words argv = {0};
    ADD_WORDS(&argv, words);
    add_words(&argv, (const char *const *)up->to_controller.items, up->to_controller.len);
    if (up->api_host)
        ADD_WORDS(&argv, named);
    if (up->access_mode != UP_INSECURE)
        ADD_WORDS(&argv, secured);
    if (up->access_mode == UP_FOUND)
        ADD_WORDS(&argv, found);
    bool spawned = spawn(child, argv.items, pipes[1]);
    close(pipes[1]);
    if (!spawned) {
        close(pipes[0]);
        return;
    }
    buf_clear(&up->ready_text);
    uv_pipe_init(&up->loop, &up->ready, 0);
    up->ready.data = up;
    uv_pipe_open(&up->ready, pipes[0]);
    uv_read_start((uv_stream_t *)&up->ready, on_alloc, on_ready);
}

/* The emulator of a machine's chips, if the cluster file says where these are and that they are emulated. */
static void start_chips(struct child *child)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct str at = machine_chips_at(&child->up->cluster, child->machine, &arena), driver, path;
    size_t slash;
    if (!str_cut(at, ':', &driver, &path) || !str_is(driver, "emulated"))
        return;
    for (slash = path.len; slash > 0 && path.data[slash - 1] != '/';)
        slash--;
    struct str folder = slash > 0 ? (struct str){path.data, slash - 1} : STR("."),
               name = {path.data + slash, path.len - slash};
    char *argv[] = {child->up->self,
                    "chip-sim",
                    "--quiet",
                    "--network",
                    (char *)arena_printf(&arena, STR_FORMAT, STR_ARG(folder)).data,
                    "--machine",
                    (char *)arena_printf(&arena, STR_FORMAT, STR_ARG(name)).data,
                    NULL};
    spawn(child, argv, -1);
}

static void start_child(struct child *child)
{
    if (child->role == CHILD_AGENT)
        start_agent(child);
    else if (child->role == CHILD_CHIPS)
        start_chips(child);
    else
        start_controller(child);
}

static void init_child(struct up *up, struct child *child, const struct machine *machine)
{
    child->up = up;
    child->role = machine ? CHILD_AGENT : CHILD_CONTROLLER;
    child->machine = machine;
    uv_timer_init(&up->loop, &child->timer);
    child->timer.data = child;
}

static bool failed(const char *path)
{
    fprintf(stderr, "phalanx: up: %s: %s\n", path, strerror(errno));
    return false;
}

/* Others pass through folders where tasks are other users. With --allow-root-tasks a task is another user
 * only if it asks to be: where agents can bridge a closed folder for it, folders are closed. */
static void choose_way(struct up *up)
{
    up->bridges = up->bridges && (geteuid() != 0 || os_mounts_refused() == 0);
    up->way = up->root_tasks && !up->task_user && up->bridges ? 0700 : os_folder_way();
}

/* Makes the folder or takes one that is this user's alone. os_folder_own leaves it to the folder whether
 * others pass; here they do not where tasks are this user, and they do where nothing bridges the folder. */
static bool own_folder(const struct up *up, const char *path, char ret_real[PATH_BYTES])
{
    struct error error;
    int rc = os_folder_own(path, up->way, &error);
    if (rc == 0 && !realpath(path, ret_real))
        return failed(path);
    if (rc == 0 && (up->way == 0700 || !up->bridges))
        rc = os_folder_private(ret_real, up->way, &error);
    if (rc < 0)
        fprintf(stderr, "phalanx: up: %s\n", error.text);
    return rc == 0;
}

/* Makes DATA/machines: a folder, or with --state-dir a link to that folder, so that every program finds a
 * machine's state in one place. */
static bool make_state_folder(const struct up *up)
{
    char path[PATH_BYTES + 32], target[PATH_BYTES], now[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/machines", up->data);
    if (!up->state_dir)
        return mkdir(path, 0755) == 0 || errno == EEXIST || failed(path);
    if (!own_folder(up, up->state_dir, target))
        return false;
    if (symlink(target, path) == 0)
        return true;
    if (errno != EEXIST)
        return failed(path);
    if (realpath(path, now) && strcmp(now, target) == 0)
        return true;
    fprintf(stderr, "phalanx: up: %s exists and is not %s: move it away first\n", path, target);
    return false;
}

/* Makes the folder in memory that agents use. Agents would keep it for their next life; a cluster here
 * removes it when it ends. */
static void make_memory(struct up *up)
{
    struct error error;
    if (keeper_memory(up->data, up->memory, &error) && os_folder_private(up->memory, up->way, &error) == 0)
        return;
    fprintf(stderr, "phalanx: up: tasks can hold no checkpoints in memory: %s\n", error.text);
    snprintf(up->memory, sizeof(up->memory), "none");
}

static bool make_folders(struct up *up, const char *data)
{
    if (!own_folder(up, data, up->data))
        return false;
    if (!keeper_start(&up->keeper, up->data))
        return false;
    if (!make_state_folder(up)) {
        keeper_end(&up->keeper);
        return false;
    }
    remove_ready(up);
    make_memory(up);
    make_groups(up);
    return true;
}

/* Makes credentials for the controller, the agents and the user; valid ones stay. */
static bool make_credentials(struct up *up)
{
    char host[128], name[NAME_MAX_BYTES + 1];
    struct error error;
    snprintf(host, sizeof(host), "%.*s", (int)strcspn(up->api, ":"), up->api);
    const char *hosts[] = {"localhost", "127.0.0.1", "::1", host};
    bool more = strcmp(host, "127.0.0.1") != 0 && strcmp(host, "localhost") != 0 && *host;
    snprintf(up->access, sizeof(up->access), "%s/access", up->data);
    if (up->access_mode == UP_INSECURE) {
        fprintf(stderr,
                "phalanx: up: warning: --insecure: who reaches the API at %s, as every user of this computer "
                "does, may do everything, and run commands as this user\n",
                up->api);
        return true;
    }
    int rc = folder_init(up->access, hosts, more ? 4 : 3, &error);
    for (size_t i = 0; rc == 0 && i < up->cluster.machine_count; i++) {
        snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(up->cluster.machines[i].name));
        rc = folder_agent(up->access, name, &error);
    }
    if (rc == 0)
        rc = folder_session_token(up->access, up->token, &error);
    if (rc < 0)
        fprintf(stderr, "phalanx: up: %s\n", error.text);
    return rc == 0;
}

/* The controller reads a file too, now and whenever it is started again. */
static bool use_default_cluster(struct up *up, struct buf *json)
{
    snprintf(up->default_cluster, sizeof(up->default_cluster), "%s/default-cluster.yaml", up->data);
    write_text(up, "default-cluster.yaml", cluster_file_default);
    up->cluster_path = up->default_cluster;
    return cluster_file_load(up->cluster_path, &up->cluster, json);
}

static int run(struct up *up)
{
    uv_loop_init(&up->loop);
    up->machines = mem_alloc(up->cluster.machine_count * sizeof(*up->machines));
    init_child(up, &up->controller, NULL);
    for (size_t i = 0; i < up->cluster.machine_count; i++)
        init_child(up, &up->machines[i], &up->cluster.machines[i]);
    up->chips = mem_alloc(up->cluster.machine_count * sizeof(*up->chips));
    for (size_t i = 0; i < up->cluster.machine_count; i++) {
        init_child(up, &up->chips[i], &up->cluster.machines[i]);
        up->chips[i].role = CHILD_CHIPS;
    }
    int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction hangup;
    sigaction(SIGHUP, NULL, &hangup);
    int count = hangup.sa_handler == SIG_IGN ? 2 : 3; /* nohup: it outlives its terminal */
    for (int i = 0; i < count; i++) {
        uv_signal_init(&up->loop, &up->signals[i]);
        up->signals[i].data = up;
        uv_signal_start(&up->signals[i], on_signal, numbers[i]);
    }
    for (size_t i = 0; up->emulates_chips && i < up->cluster.machine_count; i++)
        start_child(&up->chips[i]);
    start_child(&up->controller);
    uv_run(&up->loop, UV_RUN_DEFAULT);
    uv_loop_close(&up->loop);
    mem_free(up->machines);
    mem_free(up->chips);
    buf_done(&up->ready_text);
    return up->status;
}

static bool take_log_option(struct up *up, int option, const char *text)
{
    bool bytes = option == 'b';
    uint64_t size;
    uint32_t files;
    if (!(bytes ? log_bytes_parse(text, &size) : log_files_parse(text, &files))) {
        fprintf(stderr, "phalanx: up: --log-%s: \"%s\" is not a valid value\n", bytes ? "bytes" : "files",
                text);
        return false;
    }
    *(bytes ? &up->log_bytes : &up->log_files) = text;
    return true;
}

static const struct option options[] = {
    {"cluster", required_argument, NULL, 'c'},
    {"data", required_argument, NULL, 'd'},
    {"api", required_argument, NULL, 'a'},
    {"agents", required_argument, NULL, 'g'},
    {"api-host", required_argument, NULL, 'H'},
    {"revive", required_argument, NULL, 'r'},
    {"emulate-chips", no_argument, NULL, 'e'},
    {"quiet", no_argument, NULL, 'q'},
    {"secure", no_argument, NULL, 's'},
    {"insecure", no_argument, NULL, 'i'},
    {"help", no_argument, NULL, 'h'},
    {"state-dir", required_argument, NULL, 'm'},
    {"log-bytes", required_argument, NULL, 'b'},
    {"log-files", required_argument, NULL, 'n'},
    {"probe-root", required_argument, NULL, 'p'},
    {"probe-settings", required_argument, NULL, 'o'},
    {"task-user", required_argument, NULL, 'u'},
    {"allow-root-tasks", no_argument, NULL, 'R'},
    {"isolation", required_argument, NULL, 'I'},
    {"seccomp", required_argument, NULL, 'S'},
    {"hide", required_argument, NULL, 'D'},
    {"pod-security", required_argument, NULL, 'L'},
    {"handshakes", required_argument, NULL, 'x'},
    {"handshakes-per-address", required_argument, NULL, 'X'},
    {"hooks", required_argument, NULL, 'k'},
    {"checkpoint-store", required_argument, NULL, 'K'},
    {0},
};

/* Takes an option of HANDED_ON, as --NAME=VALUE. The program that gets the option judges the value; here that
 * is done for values at which every agent would end at its start. */
static bool hand_on(struct up *up, int option, const char *name, const char *value)
{
    bool to_controller = strchr("LxX", option) != NULL;
    struct words *line = to_controller ? &up->to_controller : &up->to_agents;
    bool good = (option != 'I' || strcmp(value, "try") == 0 || strcmp(value, "require") == 0 ||
                 strcmp(value, "off") == 0) &&
                (option != 'S' || strcmp(value, "on") == 0 || strcmp(value, "off") == 0) &&
                (option != 'D' || value[0] == '/');
    if (!good || line->len >= HANDED_ON_MAX) {
        fprintf(stderr,
                good ? "phalanx: up: --%s: too many such options\n"
                     : "phalanx: up: --%s: \"%s\" is not a valid value\n",
                name, value);
        return false;
    }
    size_t bytes = strlen(name) + (value ? strlen(value) : 0) + 4;
    char *word = mem_alloc(bytes);
    snprintf(word, bytes, value ? "--%s=%s" : "--%s", name, value);
    add_words(line, (const char *const[]){word}, 1);
    up->task_user |= option == 'u';
    up->root_tasks |= option == 'R';
    if (option == 'I')
        up->bridges = strcmp(value, "off") != 0;
    return true;
}

static int parse(struct up *up, int argc, char **argv, const char **ret_data)
{
    int option, index = 0;
    while ((option = usage_option(argc, argv, "h", options, &index)) != -1) {
        if (strchr(HANDED_ON, option) && option != '?') {
            if (hand_on(up, option, options[index].name, optarg))
                continue;
            return -1;
        }
        switch (option) {
        case 'c':
            up->cluster_path = optarg;
            break;
        case 'd':
            *ret_data = optarg;
            break;
        case 'a':
            up->api = optarg;
            break;
        case 'g':
            up->agents = optarg;
            break;
        case 'r':
            if (!duration_parse(str_from(optarg), &up->revive_ns)) {
                fprintf(stderr, "phalanx: up: --revive: \"%s\" is not a duration\n", optarg);
                return -1;
            }
            break;
        case 'b':
        case 'n':
            if (take_log_option(up, option, optarg))
                break;
            return -1;
        case 'q':
        case 'e':
            *(option == 'q' ? &up->quiet : &up->emulates_chips) = true;
            break;
        case 'p':
        case 'o':
            *(option == 'p' ? &up->probe_root : &up->probe_settings) = optarg;
            break;
        case 'k':
            up->hooks = optarg;
            break;
        case 'K':
            up->checkpoint_store = optarg;
            break;
        case 'H':
            up->api_host = optarg;
            break;
        case 'm':
            up->state_dir = optarg;
            break;
        case 's':
        case 'i':
            up->access_mode = option == 's' ? UP_SECURE : UP_INSECURE;
            break;
        case 'h':
            fputs(usage, stdout);
            return 1;
        default:
            usage_wrong(usage, NULL);
            return -1;
        }
    }
    if (optind < argc) {
        usage_wrong(usage, "unexpected argument \"%s\"", argv[optind]);
        return -1;
    }
    return 0;
}

/* Tasks of root's cluster are users of their own: they have to reach their own files. */
static bool check_reach(const struct up *up)
{
    char why[LONG_PATH_BYTES];
    if (geteuid() != 0 || up->task_user || up->root_tasks ||
        (local_others_reach(up->data, why) && local_others_reach(up->self, why)))
        return true;
    fprintf(stderr,
            "phalanx: up: tasks have users of their own, who cannot reach their files: %s. Keep the program "
            "and --data where every user may go, or say --allow-root-tasks, with which tasks run as root\n",
            why);
    return false;
}

static int make_and_run(struct up *up, const char *data)
{
    os_umask_own();
    choose_way(up);
    ssize_t length = readlink("/proc/self/exe", up->self, sizeof(up->self) - 1);
    struct buf json BUF_CLEANUP = {0};
    if (length < 0 || (up->cluster_path && !cluster_file_load(up->cluster_path, &up->cluster, &json)) ||
        !make_folders(up, data))
        return EXIT_FAILED;
    up->self[length] = 0;
    snprintf(up->self_pid, sizeof(up->self_pid), "%d", (int)getpid());
    snprintf(up->api_at, sizeof(up->api_at), "%s", up->api);
    snprintf(up->agents_at, sizeof(up->agents_at), "%s", up->agents);
    int status = EXIT_FAILED;
    if (check_reach(up) && (up->cluster_path || use_default_cluster(up, &json)) && make_credentials(up))
        status = run(up);
    keeper_end(&up->keeper);
    cluster_done(&up->cluster);
    return status;
}

int cmd_up(int argc, char **argv)
{
    struct up up = {.api = "127.0.0.1:7070",
                    .agents = "127.0.0.1:7071",
                    .log_bytes = "10Mi",
                    .log_files = "5",
                    .revive_ns = 10 * NS_PER_SECOND,
                    .bridges = true};
    const char *data = "phalanx-data";
    int parsed = parse(&up, argc, argv, &data);
    int status = parsed > 0 ? EXIT_OK : EXIT_USAGE;
    if (parsed == 0)
        status = make_and_run(&up, data);
    free_words(&up.to_agents);
    free_words(&up.to_controller);
    return status;
}
