/* Rights that the shim takes from a task: system calls (shim/seccomp.c), and a writable machine
 * (shim/readonly.c). Called with an argument, this program is the task: it makes calls and prints their
 * errors. */
#include "host/launch/fixture.h"

#include <elf.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Each fails harmlessly without a filter too, with another error. */
static const struct call {
    const char *name;
    long number, first, second;
    int filtered; /* the error */
} calls[] = {
    {"unshare", SYS_unshare, 1L << 40, 0, EPERM},
    {"clone", SYS_clone, CLONE_NEWUSER | CLONE_NEWNS | CLONE_FS, 0, EPERM},
    {"clone3", SYS_clone3, 0, 0, ENOSYS},
    {"io_uring_setup", SYS_io_uring_setup, 0, 0, EPERM},
    {"perf_event_open", SYS_perf_event_open, 0, 0, EPERM},
    {"keyctl", SYS_keyctl, 99, 0, EPERM},
    {"userfaultfd", SYS_userfaultfd, 1L << 30, 0, EPERM},
    {"bpf", SYS_bpf, 999, 0, EPERM},
    {"fsopen", SYS_fsopen, 0, 0, EPERM},
    {"socket", SYS_socket, AF_VSOCK, 99, EPERM},
};
enum { CALLS = sizeof calls / sizeof *calls };

static int be_a_task(void)
{
    for (int i = 0; i < CALLS; i++) {
        long result = syscall(calls[i].number, calls[i].first, calls[i].second, 0, 0, 0);
        printf("%s %d\n", calls[i].name, result < 0 ? errno : 0);
    }
    printf("personality %d\n", personality(PER_LINUX) < 0 ? errno : 0);
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    int status = 0;
    waitpid(child, &status, 0);
    printf("fork %d\n", WEXITSTATUS(status));
#ifdef __x86_64__
    long result; /* getpid of the ABI of 32 bits */
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    printf("i386 %s\n", result == -EPERM ? "refused" : "served");
#endif
    return 0;
}

static char *self(char path[static 512])
{
    ssize_t len = readlink("/proc/self/exe", path, 511);
    assert_true(len > 0);
    path[len] = 0;
    return path;
}

static char *run_calls(struct fixture *f, uint64_t uid, bool filtered, bool bound, uint64_t capabilities)
{
    struct task_args args;
    char path[512], text[600];
    snprintf(text, sizeof text, "exec %s task", self(path));
    script(f, &args, uid, text);
    args.spec.no_new_privileges = true;
    args.spec.filtered = filtered;
    args.spec.bound = bound;
    args.spec.capabilities = capabilities;
    spawn(f, &args.spec);
    const struct seen *seen = await(f, LAUNCH_EXITED, uid);
    if (seen->event.exit.exit_code != 0)
        fail_msg("%s", seen->text);
    return log_of(f, uid);
}

static int error_of(const char *log, const char *name)
{
    char line[64];
    snprintf(line, sizeof line, "%s ", name);
    const char *at = strstr(log, line);
    assert_non_null(at);
    return (int)strtol(at + strlen(line), NULL, 10);
}

static void calls_are_blocked(void **state)
{
    struct fixture *f = *state;
    char *log = run_calls(f, 1, true, false, 0), *open = run_calls(f, 2, false, false, 0);
    for (int i = 0; i < CALLS; i++)
        if (error_of(log, calls[i].name) != calls[i].filtered)
            fail_msg("%s", log);
    assert_int_equal(error_of(log, "personality"), 0);
    assert_int_equal(error_of(log, "fork"), 7);
    assert_null(strstr(log, "served"));
    /* Without the filter the kernel answers: it looks at the arguments first. */
    assert_int_equal(error_of(open, "unshare"), EINVAL);
    assert_int_not_equal(error_of(open, "clone3"), ENOSYS);
    free(log);
    free(open);
}

static void a_capability_gives_calls_back(void **state)
{
    struct fixture *f = *state;
    char *log = run_calls(f, 1, true, true, UINT64_C(1) << 21);
    assert_int_equal(error_of(log, "unshare"), EINVAL);
    assert_int_not_equal(error_of(log, "clone3"), ENOSYS);
    assert_int_equal(error_of(log, "keyctl"), EPERM);
    free(log);
}

static void the_filter_is_seen(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    script(f, &args, 1, "grep -E '^Seccomp:' /proc/self/status");
    args.spec.no_new_privileges = true;
    args.spec.filtered = true;
    spawn(f, &args.spec);
    await(f, LAUNCH_EXITED, 1);
    char *log = log_of(f, 1);
    assert_string_equal(log, "Seccomp:\t2\n");
    free(log);
}

/* A user without privileges has namespaces where the machine allows them, as do containers of others. */
static bool may_mount(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0);
    int status = 0;
    return waitpid(child, &status, 0) == child && status == 0;
}

static void the_root_is_read_only(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    char text[1024], data[256], fixed[256];
    if (!may_mount())
        skip();
    snprintf(data, sizeof data, "%s/data", f->directory);
    snprintf(fixed, sizeof fixed, "%s/fixed", f->directory);
    assert_int_equal(mkdir(data, 0777), 0);
    assert_int_equal(mkdir(fixed, 0777), 0);
    const struct launch_mount mounts[] = {{.source = data, .target = data},
                                          {.source = fixed, .target = fixed, .read_only = true}};
    snprintf(text, sizeof text,
             "try() { if (: >\"$1\") 2>/dev/null; then echo yes; else echo no; fi; }; try %s/a; try %s/a; "
             "try %s/here; try /dev/null; cat /proc/self/comm",
             data, fixed, f->directory);
    script(f, &args, 1, text);
    args.spec.mounts = mounts;
    args.spec.mount_count = 2;
    args.spec.read_only_root = true;
    spawn(f, &args.spec);
    const struct seen *seen = await(f, LAUNCH_EXITED, 1);
    if (seen->event.exit.exit_code != 0)
        fail_msg("%s", seen->text);
    char *log = log_of(f, 1);
    assert_string_equal(log, "yes\nno\nno\nyes\ncat\n");
    free(log);
}

/* The target is a link in a volume that leads to the volume's own place. So the mount covers the link, and
 * its path then leads where the mounted folder says: not to the mount that has to be read-only. */
static void a_read_only_mount_is_the_one_that_was_made(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    char text[1024], paths[4][256], link[300], target[300];
    static const char *const names[] = {"volume", "fixed", "other", "place"};
    if (!may_mount())
        skip();
    for (int i = 0; i < 4; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s", f->directory, names[i]);
        assert_int_equal(mkdir(paths[i], 0777), 0);
    }
    const char *volume = paths[0], *fixed = paths[1], *other = paths[2], *place = paths[3];
    snprintf(link, sizeof link, "%s/in", volume);
    assert_int_equal(symlink(".", link), 0);
    snprintf(link, sizeof link, "%s/in", fixed);
    assert_int_equal(symlink(other, link), 0);
    snprintf(target, sizeof target, "%s/in", place);
    const struct launch_mount mounts[] = {{.source = other, .target = other},
                                          {.source = volume, .target = place},
                                          {.source = fixed, .target = target, .read_only = true}};
    snprintf(text, sizeof text,
             "try() { if (: >\"$1\") 2>/dev/null; then echo yes; else echo no; fi; }; try %s/a; try %s/a",
             place, other);
    script(f, &args, 1, text);
    args.spec.mounts = mounts;
    args.spec.mount_count = 3;
    spawn(f, &args.spec);
    const struct seen *seen = await(f, LAUNCH_EXITED, 1);
    if (seen->event.exit.exit_code != 0)
        fail_msg("%s", seen->text);
    char *log = log_of(f, 1);
    assert_string_equal(log, "no\nyes\n");
    free(log);
}

/* Two folders are hidden with the same empty folder, which no task may fill for others; in one of them
 * another mount lies, whose place is made in the cover. */
static void hidden_folders_are_empty(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    char text[1200], paths[4][256], file[300], inner[300];
    static const char *const names[] = {"empty", "secret", "outer", "within"};
    if (!may_mount())
        skip();
    for (int i = 0; i < 4; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s", f->directory, names[i]);
        assert_int_equal(mkdir(paths[i], 0777), 0);
        snprintf(file, sizeof file, "%s/file", paths[i]);
        int fd = i == 0 ? -1 : open(file, O_WRONLY | O_CREAT, 0666);
        assert_true(i == 0 || (fd >= 0 && close(fd) == 0));
    }
    const char *empty = paths[0], *secret = paths[1], *outer = paths[2], *within = paths[3];
    snprintf(inner, sizeof inner, "%s/in/it", outer);
    const struct launch_mount mounts[] = {{.source = empty, .target = outer, .hidden = true},
                                          {.source = within, .target = inner},
                                          {.source = empty, .target = secret, .hidden = true}};
    snprintf(text, sizeof text,
             "ls -A %s | wc -l; if (: >%s/a) 2>/dev/null; then echo filled; fi; cd %s; echo *; echo in/it/*",
             secret, secret, outer);
    script(f, &args, 1, text);
    args.spec.mounts = mounts;
    args.spec.mount_count = 3;
    spawn(f, &args.spec);
    const struct seen *seen = await(f, LAUNCH_EXITED, 1);
    if (seen->event.exit.exit_code != 0)
        fail_msg("%s", seen->text);
    char *log = log_of(f, 1);
    assert_string_equal(log, "0\nin\nin/it/file\n");
    free(log);
    assert_int_equal(rmdir(empty), 0); /* it is still empty */
}

/* The launcher makes a cover where it is given none, or one that is gone. */
static void a_cover_is_made_where_none_is_given(void **state)
{
    struct fixture *f = *state;
    char secret[256], file[300], gone[256];
    if (!may_mount())
        skip();
    snprintf(gone, sizeof gone, "%s/gone", f->directory);
    snprintf(secret, sizeof secret, "%s/secret", f->directory);
    snprintf(file, sizeof file, "%s/file", secret);
    assert_int_equal(mkdir(secret, 0777), 0);
    int fd = open(file, O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0 && close(fd) == 0);
    for (uint64_t uid = 1; uid <= 2; uid++) {
        struct task_args args;
        char text[300];
        const struct launch_mount mount = {
            .source = uid == 1 ? NULL : gone, .target = secret, .hidden = true};
        snprintf(text, sizeof text, "ls -A %s | wc -l", secret);
        script(f, &args, uid, text);
        args.spec.mounts = &mount;
        args.spec.mount_count = 1;
        spawn(f, &args.spec);
        assert_int_equal(await(f, LAUNCH_EXITED, uid)->event.exit.exit_code, 0);
        char *log = log_of(f, uid);
        assert_string_equal(log, "0\n");
        free(log);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return be_a_task();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_are_blocked, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_capability_gives_calls_back, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_filter_is_seen, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_root_is_read_only, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_read_only_mount_is_the_one_that_was_made, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(hidden_folders_are_empty, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_cover_is_made_where_none_is_given, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
