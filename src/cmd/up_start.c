#include "cmd/up.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HIDDEN = 7 };

void words_add(struct words *line, const char *const *words, size_t count)
{
    CHECK(line->len + count < sizeof(line->items) / sizeof(*line->items));
    for (size_t i = 0; i < count; i++)
        line->items[line->len++] = (char *)words[i];
}

/* Frees the words of a list that owns them. */
void words_free(struct words *line)
{
    while (line->len > 0)
        mem_free(line->items[--line->len]);
}

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
        .exit_cb = up_child_ended,
        .stdio = stdio,
        .stdio_count = ready_fd >= 0 ? 4 : 3,
        .flags = UV_PROCESS_DETACHED, /* this process passes on a terminal's Ctrl-C */
    };
    child->process.data = child;
    int rc = uv_spawn(&up->loop, &child->process, &options);
    if (rc < 0) {
        fprintf(stderr, "phalanx: up: starting %s: %s\n", argv[1], uv_strerror(rc));
        up_stop(up, 1);
        return false;
    }
    child->running = true;
    up->running++;
    return true;
}

/* --- control groups ------------------------------------------------------------------------------------- */

/* Makes a control group for each machine, without limits, if this process may. With its own group, a
 * machine's network can be cut (`phalanx inject partition`). Sockets belong to the group in which they were
 * created. */
void up_make_groups(struct up *up)
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

/* Starts the child in its group: enters the group for the moment of the fork, because a child inherits it. */
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

/* --- command lines -------------------------------------------------------------------------------------- */

/* Adds the options about the users and the isolation of tasks. The controller's files are next to the
 * agents'. */
static void add_isolation(const struct up *up, struct words *argv, char (*paths)[LONG_PATH_BYTES])
{
    static const char *const hidden[HIDDEN] = {"access",     "kubeconfig", "log.db",  "log.db-wal",
                                               "log.db-shm", "audit.log",  "machines"};
    words_add(argv, (const char *const *)up->to_agents.items, up->to_agents.len);
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

static void start_controller(struct child *child)
{
    struct up *up = child->up;
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0) {
        fprintf(stderr, "phalanx: up: pipe: %s\n", strerror(errno));
        up_stop(up, 1);
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
    words_add(&argv, (const char *const *)up->to_controller.items, up->to_controller.len);
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
    up_read_ready(up, pipes[0]);
}

/* Starts the emulator of a machine's chips, if the cluster file says that the chips are emulated, and
 * where. */
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

void up_start(struct child *child)
{
    if (child->role == CHILD_AGENT)
        start_agent(child);
    else if (child->role == CHILD_CHIPS)
        start_chips(child);
    else
        start_controller(child);
}
