/* fixture.h - a launcher in a scratch directory, with real processes; everything waits on events, never on
 * time. */
#ifndef PHX_TESTS_HOST_LAUNCH_FIXTURE_H
#define PHX_TESTS_HOST_LAUNCH_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "host/launch/launch.h"
#include "host/patience.h"
#include "host/process.h"

enum { EVENTS_MAX = 256 };

struct seen { /* an event, its strings copied */
    struct launch_event event;
    char text[512]; /* exit.message or note */
};

struct fixture {
    char directory[128];
    char words[160]; /* FIFO on which tasks say where they are */
    int words_fd;
    char shim[160]; /* in the place of ours; empty: ours */
    uv_loop_t loop;
    struct patience patience;
    bool closed;
    struct launcher *launcher;
    struct launcher_options options;
    struct seen seen[EVENTS_MAX];
    size_t seen_len;
};

static inline const char *shim_path(void)
{
    static char path[512];
    const char *build = getenv("PHX_BUILD");
    if (build) {
        snprintf(path, sizeof path, "%s/phalanx-shim", build);
        return path;
    }
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 32);
    path[len > 0 ? len : 0] = 0;
    snprintf(strrchr(path, '/'), 32, "/phalanx-shim");
    return path;
}

static inline void record_event(void *context, const struct launch_event *event)
{
    struct fixture *f = context;
    assert_true(f->seen_len < EVENTS_MAX);
    struct seen *seen = &f->seen[f->seen_len++];
    seen->event = *event;
    snprintf(seen->text, sizeof seen->text, "%s",
             event->kind == LAUNCH_EXITED ? event->exit.message
             : event->note                ? event->note
                                          : "");
}

static inline void launcher_open(struct fixture *f)
{
    struct error error = {0};
    assert_int_equal(uv_loop_init(&f->loop), 0);
    patience_init(&f->patience, &f->loop);
    f->options.directory = f->directory;
    f->options.shim = f->shim[0] ? f->shim : shim_path();
    f->options.on_event = record_event;
    f->options.context = f;
    f->seen_len = 0;
    if (launcher_new(&f->loop, &f->options, &f->launcher, &error) < 0)
        fail_msg("%s", error.text);
}

static inline void on_closed(void *context)
{
    ((struct fixture *)context)->closed = true;
}

static inline void launcher_shut(struct fixture *f)
{
    f->closed = false;
    launch_shutdown(f->launcher, on_closed, f);
    patience_done(&f->patience);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(f->closed);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    f->launcher = NULL;
}

/* Directory and FIFO only. */
static inline struct fixture *fixture_bare(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    const char *base = getenv("TMPDIR");
    snprintf(f->directory, sizeof f->directory, "%.80s/phx-launch-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(f->directory));
    assert_int_equal(chmod(f->directory, 0755), 0);
    snprintf(f->words, sizeof f->words, "%s/words", f->directory);
    assert_int_equal(mkfifo(f->words, 0666), 0);
    assert_int_equal(chmod(f->words, 0666), 0);
    f->words_fd = open(f->words, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(f->words_fd >= 0);
    return f;
}

static inline int fixture_setup(void **state)
{
    struct fixture *f = fixture_bare();
    launcher_open(f);
    assert_int_equal(launch_adopt(f->launcher, NULL), 0);
    *state = f;
    return 0;
}

static inline int remove_tree(const char *path)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/rm", "rm", "-rf", path, (char *)NULL);
        _exit(1);
    }
    int status = 0;
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

/* ---- waiting ---- */

static inline struct seen *find_event(struct fixture *f, enum launch_event_kind kind, uint64_t uid)
{
    for (size_t i = 0; i < f->seen_len; i++)
        if (f->seen[i].event.kind == kind && f->seen[i].event.uid == uid)
            return &f->seen[i];
    return NULL;
}

static inline struct seen *await(struct fixture *f, enum launch_event_kind kind, uint64_t uid)
{
    struct seen *seen;
    PATIENT_UNTIL(&f->patience, (seen = find_event(f, kind, uid)));
    return seen;
}

/* No task outlives its test: what still runs meets a fence that has passed. */
static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    if (!f->launcher) {
        launcher_open(f);
        launch_adopt(f->launcher, NULL);
    }
    launch_set_fence(f->launcher, 1);
    for (size_t i = 0; i < f->seen_len; i++)
        if (f->seen[i].event.kind == LAUNCH_STARTED || f->seen[i].event.kind == LAUNCH_ADOPTED)
            await(f, LAUNCH_EXITED, f->seen[i].event.uid);
    launcher_shut(f);
    close(f->words_fd);
    int result = remove_tree(f->directory);
    free(f);
    return result;
}

/* The next line that a task writes to $WORDS. */
static inline void await_word(struct fixture *f, char ret_word[64])
{
    size_t len = 0;
    uint64_t until_ns = uv_hrtime() + PATIENCE_S * (uint64_t)NS_PER_SECOND;
    for (;;) {
        struct pollfd fd = {f->words_fd, POLLIN, 0};
        poll(&fd, 1, 100);
        char c;
        while (read(f->words_fd, &c, 1) == 1) {
            if (c == '\n') {
                ret_word[len] = 0;
                return;
            }
            assert_true(len < 63);
            ret_word[len++] = c;
        }
        if (fd.revents & POLLHUP) /* nobody has it open for writing yet: let the loop and the clock go on */
            poll(NULL, 0, 1);
        assert_true(uv_hrtime() < until_ns);
    }
}

static inline pid_t await_pid(struct fixture *f)
{
    char word[64];
    await_word(f, word);
    return (pid_t)strtol(word, NULL, 10);
}

static inline bool is_dead(pid_t pid)
{
    return kill(pid, 0) < 0 && errno == ESRCH;
}

/* ---- tasks ---- */

struct task_args {
    struct launch_spec spec;
    const char *argv[8];
    char words[192];
    const char *env[8];
};

/* A task that runs a shell script; $WORDS is the FIFO. */
static inline void script(struct fixture *f, struct task_args *args, uint64_t uid, const char *text)
{
    *args = (struct task_args){.argv = {"/bin/sh", "-c", text}};
    snprintf(args->words, sizeof args->words, "WORDS=%s", f->words);
    args->env[0] = args->words;
    args->spec =
        (struct launch_spec){.uid = uid, .attempt = 3, .name = "job-0", .argv = args->argv, .env = args->env};
}

static inline void spawn(struct fixture *f, const struct launch_spec *spec)
{
    struct error error = {0};
    if (launch_spawn(f->launcher, spec, &error) < 0)
        fail_msg("%s", error.text);
}

static inline void spawn_script(struct fixture *f, uint64_t uid, const char *text)
{
    struct task_args args;
    script(f, &args, uid, text);
    spawn(f, &args.spec);
}

static inline struct seen *run_script(struct fixture *f, uint64_t uid, const char *text)
{
    spawn_script(f, uid, text);
    return await(f, LAUNCH_EXITED, uid);
}

/* The whole of a file, NUL-terminated; free() it. NULL: absent. */
static inline char *slurp(const char *path, size_t *ret_len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    struct stat info;
    assert_int_equal(fstat(fd, &info), 0);
    char *data = malloc((size_t)info.st_size + 1);
    ssize_t got = read(fd, data, (size_t)info.st_size);
    assert_int_equal(got, info.st_size);
    close(fd);
    data[got] = 0;
    if (ret_len)
        *ret_len = (size_t)got;
    return data;
}

static inline char *log_of(struct fixture *f, uint64_t uid)
{
    char path[LAUNCH_PATH_MAX];
    assert_int_equal(launch_log_path(f->launcher, uid, path, NULL), 0);
    char *text = slurp(path, NULL);
    assert_non_null(text);
    return text;
}

static inline uint64_t boottime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
