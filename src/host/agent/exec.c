/* exec.c - commands beside tasks: EXEC_OPEN and the messages of its stream (core/agent/message.h).
 *
 * The command is the shim's child (launch_exec); this file moves bytes between the controller and the
 * command's three pipes, or its terminal. Memory is bounded: the controller may send only INPUT_BYTES more
 * than the agent has written; the agent sends output at once, never more than the controller has offered to
 * take. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/agent/internal.h"

enum {
    EXECS_MAX = 64, /* of one machine */
    INPUT_BYTES = 256 * 1024,
    GRANT_BYTES = 64 * 1024, /* credit is returned in pieces of this size */
    CHUNK_BYTES = 16 * 1024,
    TURN_CHUNKS = 16, /* of one command before others have their turn */
};

enum end { END_INPUT, END_OUTPUT, END_ERRORS, END_COUNT };

struct exec {
    struct live *live;
    struct list_node node;
    uint64_t number;
    obj_id task;
    struct launch_exec *launch; /* NULL: over */
    int fds[END_COUNT];         /* ours; -1: closed */
    uv_poll_t polls[END_COUNT];
    bool polled[END_COUNT];
    int handles;
    struct buf input;
    size_t written; /* of `input` */
    bool tty, input_over, ended, gone;
    int exit_code;
    uint64_t credit; /* bytes that the controller still takes */
    uint64_t owed;   /* credit that we have not returned yet */
};

static void pump(struct exec *exec);

/* --- sending -------------------------------------------------------------------------------------- */

static void send_data(struct exec *exec, struct exec_data data)
{
    struct from_agent message = {.kind = FROM_AGENT_EXEC_DATA, .exec_data = data};
    message.exec_data.stream = exec->number;
    if (exec->live->machine->conn)
        wire_send_agent(exec->live->machine->conn, &message);
}

static void send_end(struct live *live, uint64_t stream, int exit_code, const char *why)
{
    struct from_agent message = {.kind = FROM_AGENT_EXEC_END, .exec_end = {stream, exit_code, str_from(why)}};
    if (live->machine->conn)
        wire_send_agent(live->machine->conn, &message);
}

/* --- the end -------------------------------------------------------------------------------------- */

static void exec_free(struct exec *exec)
{
    struct agent_host *host = exec->live->machine->host;
    buf_done(&exec->input);
    mem_free(exec);
    local_part_closed(host);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct exec *exec = handle->data;
    if (--exec->handles == 0 && exec->gone)
        exec_free(exec);
}

static void close_end(struct exec *exec, enum end end)
{
    if (exec->fds[end] < 0)
        return;
    if (exec->polled[end])
        uv_close((uv_handle_t *)&exec->polls[end], on_poll_closed);
    exec->polled[end] = false;
    close(exec->fds[end]);
    exec->fds[end] = -1;
}

static void exec_close(struct exec *exec)
{
    if (exec->launch)
        launch_exec_close(exec->launch);
    exec->launch = NULL;
    for (int end = 0; end < END_COUNT; end++)
        close_end(exec, (enum end)end);
    list_remove(&exec->node);
    exec->live->exec_count--;
    exec->gone = true;
    if (exec->handles == 0)
        exec_free(exec);
}

static void on_launch_event(void *context, enum launch_exec_kind kind, int value, const char *why)
{
    struct exec *exec = context;
    if (kind == LAUNCH_EXEC_STARTED)
        return;
    exec->launch = NULL;
    if (kind == LAUNCH_EXEC_FAILED && value < 0) {
        send_end(exec->live, exec->number, -1, why);
        exec_close(exec);
        return;
    }
    if (kind == LAUNCH_EXEC_FAILED) { /* as a shell tells it */
        BUF_CLEANUP struct buf text = {0};
        buf_printf(&text, "phalanx: %s\n", why);
        send_data(exec, (struct exec_data){.channel = exec->tty ? EXEC_STDOUT : EXEC_STDERR,
                                           .bytes = buf_str(&text)});
        exec->credit -= text.len < exec->credit ? text.len : exec->credit;
    }
    exec->ended = true;
    exec->exit_code = value;
    pump(exec);
}

/* --- input ---------------------------------------------------------------------------------------- */

static void give_credit(struct exec *exec, size_t used)
{
    exec->owed += used;
    if (exec->owed < GRANT_BYTES && exec->written < exec->input.len)
        return;
    send_data(exec, (struct exec_data){.channel = EXEC_STDIN, .credit = exec->owed});
    exec->owed = 0;
}

/* Writes input to the command. Returns true if all received input has been written. */
static bool write_input(struct exec *exec)
{
    while (exec->written < exec->input.len) {
        size_t left = exec->input.len - exec->written;
        ssize_t count = exec->fds[END_INPUT] < 0
                            ? (ssize_t)left /* no process reads the pipe any more */
                            : write(exec->fds[END_INPUT], exec->input.data + exec->written, left);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            return false;
        if (count < 0) {
            close_end(exec, END_INPUT);
            continue;
        }
        exec->written += (size_t)count;
        give_credit(exec, (size_t)count);
    }
    buf_done(&exec->input);
    exec->written = 0;
    return true;
}

/* --- output --------------------------------------------------------------------------------------- */

enum got { GOT_NOTHING, GOT_BYTES, GOT_END };

static enum got read_output(struct exec *exec, enum end end)
{
    static char chunk[CHUNK_BYTES];
    size_t want = exec->credit < sizeof chunk ? (size_t)exec->credit : sizeof chunk;
    if (exec->fds[end] < 0)
        return GOT_END;
    if (want == 0)
        return GOT_NOTHING;
    ssize_t count = read(exec->fds[end], chunk, want);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return GOT_NOTHING;
    if (count <= 0) { /* a terminal that no process has open gives EIO */
        close_end(exec, end);
        return GOT_END;
    }
    exec->credit -= (uint64_t)count;
    send_data(exec, (struct exec_data){.channel = end == END_OUTPUT ? EXEC_STDOUT : EXEC_STDERR,
                                       .bytes = {chunk, (size_t)count}});
    return GOT_BYTES;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    pump(poll->data);
}

static void want(struct exec *exec, enum end end, bool wanted, int events)
{
    if (exec->fds[end] < 0)
        return;
    if (!exec->polled[end]) {
        if (!wanted)
            return;
        CHECK(uv_poll_init(exec->live->machine->host->loop, &exec->polls[end], exec->fds[end]) == 0);
        exec->polls[end].data = exec;
        exec->polled[end] = true;
        exec->handles++;
    }
    if (wanted)
        uv_poll_start(&exec->polls[end], events, on_poll);
    else
        uv_poll_stop(&exec->polls[end]);
}

/* Moves all bytes that can be moved. After the command's end these are the bytes in its pipes, but no later
 * output of processes that it left. */
static void pump(struct exec *exec)
{
    bool written = write_input(exec);
    if (written && exec->input_over && !exec->tty)
        close_end(exec, END_INPUT);
    enum got output = GOT_BYTES, errors = GOT_BYTES;
    for (int i = 0; i < TURN_CHUNKS && (output == GOT_BYTES || errors == GOT_BYTES); i++) {
        output = read_output(exec, END_OUTPUT);
        errors = read_output(exec, END_ERRORS);
    }
    bool more = output == GOT_BYTES || errors == GOT_BYTES;
    bool open = exec->fds[END_OUTPUT] >= 0 || exec->fds[END_ERRORS] >= 0;
    if (exec->ended && !more && (exec->credit > 0 || !open)) {
        send_end(exec->live, exec->number, exec->exit_code, "");
        exec_close(exec);
        return;
    }
    want(exec, END_INPUT, !written, UV_WRITABLE);
    want(exec, END_OUTPUT, exec->credit > 0, UV_READABLE);
    want(exec, END_ERRORS, exec->credit > 0, UV_READABLE);
}

/* --- opening -------------------------------------------------------------------------------------- */

static int prepare_pipes(struct exec *exec, bool input, int theirs[3], struct error *error)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    for (int i = input ? 0 : 1; i < 3; i++)
        if (pipe2(pipes[i], O_CLOEXEC) < 0)
            pipes[i][0] = pipes[i][1] = -1;
    theirs[0] = input ? pipes[0][0] : open("/dev/null", O_RDONLY | O_CLOEXEC);
    theirs[1] = pipes[1][1];
    theirs[2] = pipes[2][1];
    exec->fds[END_INPUT] = pipes[0][1];
    exec->fds[END_OUTPUT] = pipes[1][0];
    exec->fds[END_ERRORS] = pipes[2][0];
    if (theirs[0] < 0 || theirs[1] < 0 || theirs[2] < 0)
        return error_set_errno(error, errno, "making the command's pipes");
    return 0;
}

/* Opens the terminal. Reading and writing are polled separately, which takes two descriptors. */
static int prepare_terminal(struct exec *exec, int theirs[3], struct error *error)
{
    char path[64];
    int main_end = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    exec->fds[END_OUTPUT] = main_end;
    if (main_end < 0 || grantpt(main_end) < 0 || unlockpt(main_end) < 0 ||
        ptsname_r(main_end, path, sizeof path) != 0)
        return error_set_errno(error, errno, "making a terminal");
    exec->fds[END_INPUT] = fcntl(main_end, F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < 3; i++)
        theirs[i] = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (theirs[0] < 0 || theirs[1] < 0 || theirs[2] < 0 || exec->fds[END_INPUT] < 0)
        return error_set_errno(error, errno, "opening a terminal");
    return 0;
}

static int start(struct exec *exec, const struct exec_open *open, struct error *error)
{
    static const char *const terminal[] = {"TERM=xterm", NULL};
    ARENA_CLEANUP struct arena arena = {0};
    int theirs[3] = {-1, -1, -1};
    const char **argv = ARENA_ARRAY(&arena, const char *, open->argc + 1);
    for (size_t i = 0; i < open->argc; i++)
        argv[i] = arena_strdup(&arena, open->argv[i]);
    int rc =
        open->tty ? prepare_terminal(exec, theirs, error) : prepare_pipes(exec, open->input, theirs, error);
    for (int i = 0; i < END_COUNT && rc == 0; i++)
        if (exec->fds[i] >= 0 && fcntl(exec->fds[i], F_SETFL, O_NONBLOCK) < 0)
            rc = error_set_errno(error, errno, "preparing the command's files");
    struct launch_exec_options options = {.argv = argv,
                                          .env = open->tty ? terminal : NULL,
                                          .fds = {theirs[0], theirs[1], theirs[2]},
                                          .tty = open->tty,
                                          .on_event = on_launch_event,
                                          .context = exec};
    uint64_t process = 0;
    if (rc == 0)
        rc = local_container_process(exec->live, open->task, open->container, &process, error);
    if (rc == 0 && open->tty)
        local_terminal_owner(exec->live, open->task, theirs[0]);
    if (rc == 0)
        rc = launch_exec(exec->live->launcher, process, &options, &exec->launch, error);
    for (int i = 0; i < 3; i++)
        if (theirs[i] >= 0)
            close(theirs[i]);
    return rc;
}

static void exec_open(struct live *live, const struct exec_open *open)
{
    struct error error;
    if (live->exec_count >= EXECS_MAX) {
        send_end(live, open->stream, -1, "too many commands run on this machine already");
        return;
    }
    struct exec *exec = mem_alloc(sizeof *exec);
    *exec = (struct exec){.live = live,
                          .number = open->stream,
                          .task = open->task,
                          .fds = {-1, -1, -1},
                          .tty = open->tty,
                          .credit = open->credit};
    list_append(&live->execs, &exec->node);
    live->exec_count++;
    live->machine->host->open_parts++;
    if (start(exec, open, &error) < 0) {
        send_end(live, open->stream, -1, error.text);
        exec_close(exec);
        return;
    }
    send_data(exec, (struct exec_data){.channel = EXEC_STDIN, .credit = INPUT_BYTES});
    pump(exec);
}

/* --- messages ------------------------------------------------------------------------------------- */

static struct exec *find(struct live *live, uint64_t number)
{
    list_for_each(node, &live->execs)
    {
        struct exec *exec = container_of(node, struct exec, node);
        if (exec->number == number)
            return exec;
    }
    return NULL; /* it has ended, and word of that is on its way */
}

static void exec_input(struct exec *exec, const struct exec_data *data)
{
    static const char end_of_file[] = {4}; /* VEOF of a new terminal */
    exec->credit += data->credit;
    if (exec->input.len - exec->written + data->bytes.len > INPUT_BYTES) {
        send_end(exec->live, exec->number, -1, "more input came than was asked for");
        exec_close(exec);
        return;
    }
    buf_drop_front(&exec->input, exec->written); /* a command that is always behind would let it grow */
    exec->written = 0;
    buf_add_str(&exec->input, data->bytes);
    if (data->end && !exec->input_over && exec->tty)
        buf_add(&exec->input, end_of_file, sizeof end_of_file);
    exec->input_over |= data->end;
    pump(exec);
}

void local_exec_message(struct local_machine *machine, const struct from_controller *message)
{
    struct live *live = machine->live;
    if (!live) {
        if (message->kind == FROM_CONTROLLER_EXEC_OPEN && machine->conn)
            wire_send_agent(machine->conn,
                            &(struct from_agent){.kind = FROM_AGENT_EXEC_END,
                                                 .exec_end = {message->exec_open.stream, -1,
                                                              STR("this machine is simulated")}});
        return;
    }
    uint64_t number = message->kind == FROM_CONTROLLER_EXEC_INPUT    ? message->exec_data.stream
                      : message->kind == FROM_CONTROLLER_EXEC_RESIZE ? message->exec_resize.stream
                                                                     : message->number;
    if (message->kind == FROM_CONTROLLER_EXEC_OPEN) {
        exec_open(live, &message->exec_open);
        return;
    }
    struct exec *exec = find(live, number);
    if (!exec)
        return;
    if (message->kind == FROM_CONTROLLER_EXEC_INPUT) {
        exec_input(exec, &message->exec_data);
    } else if (message->kind == FROM_CONTROLLER_EXEC_RESIZE) {
        struct winsize size = {.ws_col = message->exec_resize.width, .ws_row = message->exec_resize.height};
        if (exec->tty && exec->fds[END_OUTPUT] >= 0)
            ioctl(exec->fds[END_OUTPUT], TIOCSWINSZ, &size);
    } else {
        exec_close(exec);
    }
}

void local_exec_close_all(struct live *live)
{
    list_for_each_safe(node, after, &live->execs) exec_close(container_of(node, struct exec, node));
}
