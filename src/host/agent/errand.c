/* errand.c - errands of the controller (core/errand/errand.h): each is a child process in its own process
 * group, with the state directory as its working directory. An errand ends with all processes that it
 * started.
 *
 *   HOOK            the script HOOKS/NAME that its body names, with the body's variables as environment
 *   QUALIFY, PAIR   this program: phalanx qualify --order BODY, phalanx qualify pair --order BODY
 *   DIAGNOSE        this program: phalanx diagnose --order BODY
 *   INJECT          this program: phalanx inject --order BODY, if the agent allows it (docs/inject.md)
 *
 * The child's standard output and error are the errand's output; beyond ERRAND_OUTPUT_MAX it is discarded. At
 * the time-out, or when the errand is stopped, the whole group is killed. The child dies with its agent.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doc/json.h"
#include "host/agent/internal.h"

enum { HOOK_NAME_MAX = 64, HOOK_VARIABLES_MAX = 64 };
#define HOOKS_DEFAULT "/etc/phalanx/hooks"
/* The uid of the agent's own errands, which the controller does not know. */
#define NOBODYS         0
#define HEAL_TIMEOUT_NS (60 * NS_PER_SECOND)
#define HOOK_PATH       "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct errand_run {
    struct live *live;
    struct list_node node;
    obj_id uid;
    pid_t pid;     /* 0: it has none (any more) */
    int fd, pidfd; /* its output; -1: closed */
    bool gone;
    int handles;
    uv_timer_t timer;
    uv_poll_t output, exit;
    bool polled;
    struct buf said;
    struct errand_start start; /* texts in `arena` */
    struct arena arena;
};

/* The parts of a child's command line; all are in the run's arena. */
struct command {
    const char *path;
    const char **argv, **env; /* NULL at the end; env NULL: the agent's */
};

/* --- the end -------------------------------------------------------------------------------------------- */

static void handle_gone(uv_handle_t *handle)
{
    struct errand_run *run = handle->data;
    CHECK(run->handles > 0);
    if (--run->handles > 0)
        return;
    struct agent_host *host = run->live->machine->host;
    buf_done(&run->said);
    arena_done(&run->arena);
    mem_free(run);
    local_part_closed(host);
}

/* Kills the rest of the process group, and reaps the child unless that is done. */
static void end_processes(struct errand_run *run)
{
    if (run->pid <= 0)
        return;
    kill(-run->pid, SIGKILL);
    kill(run->pid, SIGKILL);
    while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    run->pid = 0;
}

static void let_go(struct errand_run *run)
{
    CHECK(!run->gone);
    run->gone = true;
    list_remove(&run->node);
    end_processes(run);
    uv_close((uv_handle_t *)&run->timer, handle_gone);
    if (run->polled) {
        uv_close((uv_handle_t *)&run->output, handle_gone);
        uv_close((uv_handle_t *)&run->exit, handle_gone);
    }
    if (run->fd >= 0)
        close(run->fd);
    if (run->pidfd >= 0)
        close(run->pidfd);
    run->fd = run->pidfd = -1;
}

/* Replaces bytes that the controller does not accept, which takes UTF-8 without NUL. */
static void clean(struct buf *text)
{
    size_t at = 0;
    while (at < text->len) {
        size_t size = str_utf8_len(text->data + at, text->len - at);
        if (size == 0 || text->data[at] == 0)
            text->data[at] = '?';
        at += size > 0 ? size : 1;
    }
}

static void tell_end(struct errand_run *run, enum errand_outcome outcome, int32_t exit_code)
{
    struct local_machine *machine = run->live->machine;
    struct buf said = run->said;
    run->said = (struct buf){0};
    clean(&said);
    struct errand_end end = {
        .errand = run->uid, .outcome = outcome, .exit_code = exit_code, .output = buf_str(&said)};
    let_go(run);
    if (end.errand != NOBODYS)
        local_step(machine, (struct agent_event){.kind = AGENT_ERRAND_ENDED, .errand_ended = &end});
    else if (outcome != ERRAND_OK)
        local_note(machine, end.output);
    buf_done(&said);
}

static void fail(struct errand_run *run, const struct error *error)
{
    buf_clear(&run->said);
    buf_printf(&run->said, "%s", error->text);
    tell_end(run, ERRAND_FAILED, -1);
}

static void take_output(struct errand_run *run)
{
    char chunk[4096];
    ssize_t count;
    while (run->fd >= 0 && (count = read(run->fd, chunk, sizeof chunk)) > 0) {
        size_t room = ERRAND_OUTPUT_MAX - run->said.len;
        buf_add(&run->said, chunk, (size_t)count < room ? (size_t)count : room);
    }
}

static void on_output(uv_poll_t *poll, int status, int events)
{
    struct errand_run *run = poll->data;
    char chunk[4096];
    ssize_t count = read(run->fd, chunk, sizeof chunk);
    size_t room = ERRAND_OUTPUT_MAX - run->said.len;
    if (count > 0)
        buf_add(&run->said, chunk, (size_t)count < room ? (size_t)count : room);
    else if (count == 0 || status < 0 || (errno != EAGAIN && errno != EINTR))
        uv_poll_stop(poll); /* closed; its end comes apart */
}

static void on_exit_(uv_poll_t *poll, int status, int events)
{
    struct errand_run *run = poll->data;
    int how = 0;
    pid_t pid = waitpid(run->pid, &how, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR))
        return;
    kill(-run->pid, SIGKILL); /* the processes that it left */
    run->pid = 0;
    take_output(run);
    int32_t code = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    tell_end(run, code == 0 ? ERRAND_OK : ERRAND_FAILED, code);
}

static void on_late(uv_timer_t *timer)
{
    struct errand_run *run = timer->data;
    end_processes(run);
    take_output(run);
    tell_end(run, ERRAND_TIMED_OUT, 0);
}

/* --- the child ------------------------------------------------------------------------------------------ */

static _Noreturn void become(const struct command *command, const char *directory, pid_t parent, int fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
    setpgid(0, 0);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null_fd = open("/dev/null", O_RDONLY);
    if (chdir(directory) < 0 || dup2(null_fd, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
        _exit(126);
    if (syscall(SYS_close_range, 3U, ~0U, 0) < 0)
        for (int i = 3; i < 65536; i++)
            close(i);
    if (command->env)
        execve(command->path, (char *const *)command->argv, (char *const *)command->env);
    else
        execv(command->path, (char *const *)command->argv);
    static const char refused[] = "it cannot be executed\n";
    if (write(1, refused, sizeof refused - 1) < 0)
        _exit(126);
    _exit(127);
}

/* Starts the processes. Returns 0 or an error; let_go closes the opened descriptors in both cases. */
static int spawn(struct errand_run *run, const struct command *command, struct error *error)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_set_errno(error, errno, "making the errand's pipe");
    run->fd = fds[0];
    fcntl(fds[1], F_SETFL, 0); /* the child's end waits as any would */
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(command, run->live->directory, parent, fds[1]);
    close(fds[1]);
    if (pid < 0)
        return error_set_errno(error, errno, "starting the errand's process");
    run->pid = pid;
    setpgid(pid, pid); /* parent and child both do this, in either order */
    run->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (run->pidfd < 0)
        return error_set_errno(error, errno, "watching the errand's process");
    uv_loop_t *loop = run->live->machine->host->loop;
    CHECK(uv_poll_init(loop, &run->output, run->fd) == 0 && uv_poll_init(loop, &run->exit, run->pidfd) == 0);
    run->output.data = run->exit.data = run;
    run->polled = true;
    run->handles += 2;
    uv_poll_start(&run->output, UV_READABLE, on_output);
    uv_poll_start(&run->exit, UV_READABLE, on_exit_);
    return 0;
}

/* --- what to run ---------------------------------------------------------------------------------------- */

static bool hook_name_is_sane(struct str name)
{
    if (name.len == 0 || name.len > HOOK_NAME_MAX || name.data[0] == '.')
        return false;
    return !memchr(name.data, '/', name.len) && !memchr(name.data, 0, name.len);
}

static int hook_environment(struct errand_run *run, const struct doc *env, struct command *command,
                            struct error *error)
{
    size_t count = doc_len(env), at = 0;
    if ((env && env->kind != DOC_OBJECT) || count > HOOK_VARIABLES_MAX)
        return error_set(error, ERROR_INVALID, "env: expected an object of at most %d variables",
                         HOOK_VARIABLES_MAX);
    command->env = ARENA_ARRAY(&run->arena, const char *, count + 3);
    command->env[at++] = HOOK_PATH;
    command->env[at++] = arena_printf(&run->arena, "PHX_MACHINE=%s", run->live->machine->name).data;
    for (size_t i = 0; i < count; i++) {
        const struct doc_member *member = &env->object.members[i];
        struct str value = doc_str(member->value, (struct str){0});
        bool named = member->key.len > 0 && !memchr(member->key.data, '=', member->key.len);
        if (!named || !value.data || strlen(value.data) != value.len)
            return error_set(error, ERROR_INVALID, "env." STR_FORMAT ": expected a string",
                             STR_ARG(member->key));
        command->env[at++] =
            arena_printf(&run->arena, STR_FORMAT "=" STR_FORMAT, STR_ARG(member->key), STR_ARG(value)).data;
    }
    return 0;
}

static int hook_command(struct errand_run *run, const struct doc *body, struct command *command,
                        struct error *error)
{
    struct str name = doc_str(doc_get(body, "hook"), (struct str){0});
    if (!hook_name_is_sane(name))
        return error_set(error, ERROR_INVALID, "hook: expected the name of a file in the hooks directory");
    const char *hooks = run->live->hooks_dir ? run->live->hooks_dir : HOOKS_DEFAULT;
    struct str path = arena_printf(&run->arena, "%s/" STR_FORMAT, hooks, STR_ARG(name));
    if (access(path.data, X_OK) < 0)
        return error_set_errno(error, errno, "the hook %s", path.data);
    command->path = path.data;
    command->argv = ARENA_ARRAY(&run->arena, const char *, 2);
    command->argv[0] = path.data;
    return hook_environment(run, doc_get(body, "env"), command, error);
}

static int qualify_command(struct errand_run *run, struct command *command, struct error *error)
{
    const char *words[] = {"phalanx", "qualify", "pair", "--order", run->start.body.data};
    size_t at = 0;
    command->path = "/proc/self/exe";
    command->argv = ARENA_ARRAY(&run->arena, const char *, sizeof words / sizeof *words + 1);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (i != 2 || run->start.kind == ERRAND_PAIR)
            command->argv[at++] = words[i];
    return 0;
}

static int diagnose_command(struct errand_run *run, struct command *command, struct error *error)
{
    static const char *const words[] = {"phalanx", "diagnose", "--order"};
    enum { WORDS = sizeof words / sizeof *words };
    command->path = "/proc/self/exe";
    command->argv = ARENA_ARRAY(&run->arena, const char *, WORDS + 2);
    mem_copy(command->argv, words, sizeof words);
    command->argv[WORDS] = run->start.body.data;
    return 0;
}

/* Makes the command that injects a fault, or undoes one. An injection is undone in any case. */
static int inject_command(struct errand_run *run, const struct doc *body, struct command *command,
                          struct error *error)
{
    const struct live *live = run->live;
    const char *words[] = {"phalanx",   "inject",
                           "--order",   run->start.body.data,
                           "--machine", live->machine->name,
                           "--memory",  live->memory_dir ? live->memory_dir : "none"};
    enum { WORDS = sizeof words / sizeof *words };
    if (!live->injection && !str_is(doc_str(doc_path(body, "spec", "action", NULL), STR("")), "heal"))
        return error_set(error, ERROR_DENIED, "this agent was started without --allow-injection");
    command->path = "/proc/self/exe";
    command->argv = ARENA_ARRAY(&run->arena, const char *, WORDS + 1);
    mem_copy(command->argv, words, sizeof words);
    return 0;
}

static int make_command(struct errand_run *run, struct command *command, struct error *error)
{
    struct doc *body = NULL;
    int rc = json_parse(&run->arena, run->start.body, &body, error);
    if (rc == 0 && body->kind != DOC_OBJECT)
        rc = error_set(error, ERROR_INVALID, "expected an object");
    if (rc < 0)
        return error_wrap(error, "the errand's body");
    switch (run->start.kind) {
    case ERRAND_HOOK:
        return hook_command(run, body, command, error);
    case ERRAND_QUALIFY:
    case ERRAND_PAIR:
        return qualify_command(run, command, error);
    case ERRAND_DIAGNOSE:
        return diagnose_command(run, command, error);
    case ERRAND_INJECT:
        return inject_command(run, body, command, error);
    }
    return error_set(error, ERROR_UNSUPPORTED, "this agent knows no errand of kind %d", (int)run->start.kind);
}

/* --- begin and stop ------------------------------------------------------------------------------------- */

/* Called from the loop, because an end must not be fed while effects are carried out. */
static void on_begin(uv_timer_t *timer)
{
    struct errand_run *run = timer->data;
    struct command command = {0};
    struct error error;
    int rc = make_command(run, &command, &error);
    if (rc == 0)
        rc = spawn(run, &command, &error);
    if (rc < 0)
        fail(run, &error);
    else
        uv_timer_start(timer, on_late, (uint64_t)((run->start.timeout_ns + NS_PER_MS - 1) / NS_PER_MS), 0);
}

void local_errand_start(struct live *live, const struct errand_start *start)
{
    struct agent_host *host = live->machine->host;
    struct errand_run *run = mem_alloc(sizeof *run);
    *run = (struct errand_run){.live = live, .uid = start->errand, .start = *start, .fd = -1, .pidfd = -1};
    run->start.body = arena_str(&run->arena, start->body);
    list_append(&live->errands, &run->node);
    host->open_parts++;
    uv_timer_init(host->loop, &run->timer);
    run->timer.data = run;
    run->handles = 1;
    uv_timer_start(&run->timer, on_begin, 0, 0);
}

void local_errand_heal(struct live *live)
{
    static const char body[] = "{\"spec\":{\"action\":\"heal\",\"object\":\"abandoned\"}}";
    local_errand_start(live, &(struct errand_start){.errand = NOBODYS,
                                                    .kind = ERRAND_INJECT,
                                                    .body = str_from(body),
                                                    .timeout_ns = HEAL_TIMEOUT_NS});
}

void local_errand_stop(struct live *live, obj_id errand)
{
    list_for_each_safe(node, after, &live->errands)
    {
        struct errand_run *run = container_of(node, struct errand_run, node);
        if (run->uid == errand)
            let_go(run);
    }
}

void local_errand_close_all(struct live *live)
{
    list_for_each_safe(node, after, &live->errands) let_go(container_of(node, struct errand_run, node));
}
