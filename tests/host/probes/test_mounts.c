/* File systems: made-up tables, a tmpfs that is really full, and a FUSE server that really does not answer.
 * */
#include "fixture.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#define TABLE "/proc/self/mountinfo"

static void tables(void **state)
{
    struct fixture *f = *state;
    put(f, TABLE,
        "22 27 0:21 / /proc rw - proc proc rw\n"
        "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,errors=remount-ro\n"
        "30 27 0:50 / /data\\040set rw,relatime - nfs4 filer:/x rw,vers=4.2\n"
        "31 27 0:51 / /snap ro,nodev - ext4 /dev/loop1 ro\n");
    put(f, "/data set/file", "x");
    put(f, "/snap/file", "x");
    begin(f, "mounts", NULL);
    look_after(f, 0);
    expect_none(f);
    put(f, TABLE,
        "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda ro,errors=remount-ro\n"
        "30 27 0:50 / /data\\040set ro,relatime - nfs4 filer:/x rw,vers=4.2\n"
        "31 27 0:51 / /snap ro,nodev - ext4 /dev/loop1 ro\n");
    look_after(f, 30);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_OCCUR, "mount/read-only", "mount//");
    expect(f, 1, SIGNAL_OCCUR, "mount/read-only", "mount//data set");
    put(f, TABLE, "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,errors=remount-ro\nnonsense\n");
    look_after(f, 30); /* one is writable again, the other one gone by somebody's will */
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_RECOVER, "mount/read-only", "mount//");
    expect(f, 1, SIGNAL_RECOVER, "mount/read-only", "mount//data set");
}

static void manifest(void **state)
{
    struct fixture *f = *state;
    put(f, TABLE,
        "30 27 0:50 / /data rw - ext4 /dev/x rw\n31 27 0:51 / /models ro - ext4 /dev/y ro\n"
        "31 27 0:52 / /set ro - ext4 /dev/z ro\n");
    begin(f, "mounts",
          "manifest:\n  mounts:\n  - {path: /data, type: lustre}\n  - {path: /scratch}\n  - {path: /models}\n"
          "  - {path: /set, readOnly: true}\n");
    look_after(f, 0);
    assert_int_equal(f->kept.len, 3);
    expect(f, 0, SIGNAL_OCCUR, "mount/read-only", "mount//models");
    expect(f, 1, SIGNAL_OCCUR, "mount/missing", "mount//data");
    expect(f, 2, SIGNAL_OCCUR, "mount/missing", "mount//scratch");
    put(f, TABLE,
        "30 27 0:50 / /data rw - lustre mgs:/x rw\n31 27 0:51 / /models rw - ext4 /dev/y rw\n"
        "31 27 0:52 / /set ro - ext4 /dev/z ro\n33 27 0:54 / /scratch rw - ext4 /dev/z rw\n");
    put(f, "/sys/fs/lustre/health_check", "healthy\n");
    look_after(f, 30);
    assert_int_equal(f->kept.len, 3);
    put(f, "/sys/fs/lustre/health_check", "device work-OST0001 reported unhealthy\nNOT HEALTHY\n");
    look_after(f, 30);
    expect_one(f, SIGNAL_OCCUR, "fs/health", "lustre");
    look_after(f, 30);
    expect_none(f);
    put(f, "/sys/fs/lustre/health_check", "healthy\n");
    look_after(f, 30);
    expect_one(f, SIGNAL_RECOVER, "fs/health", "lustre");
}

/* --- real ones ------------------------------------------------------------------------------------ */

/* Whether we may mount at all; in a name space of our own, so that nothing is left. */
static bool may_mount(const char *name)
{
    static int may = -1;
    if (may < 0)
        may = geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
              mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    if (!may)
        print_message("skip %s: mounting needs root\n", name);
    return may;
}

static struct statvfs space_of(const char *path)
{
    struct statvfs about;
    assert_int_equal(statvfs(path, &about), 0);
    return about;
}

static void full_tmpfs(void **state)
{
    struct fixture *f = *state;
    char path[256], file[512];
    if (!may_mount("full_tmpfs"))
        skip();
    put(f, "/full/x", "x");
    snprintf(path, sizeof path, "%s/full", f->root);
    assert_int_equal(mount("tmpfs", path, "tmpfs", 0, "size=4m,nr_inodes=50"), 0);
    put(f, TABLE, "30 27 0:50 / /full rw - tmpfs tmpfs rw\n");
    begin(f, "mounts", NULL);
    look_after(f, 0);
    expect_none(f);
    char *bytes = calloc(1, 1 << 20);
    for (int i = 0; i < 4; i++) {
        snprintf(file, sizeof file, "%s/big%d", path, i);
        int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_true(fd >= 0 && write(fd, bytes, 1 << 20) > 0);
        close(fd);
    }
    free(bytes);
    assert_true(space_of(path).f_bavail == 0);
    look_after(f, 30);
    expect_one(f, SIGNAL_OCCUR, "fs/full", "mount//full");
    for (int i = 0; i < 4; i++) {
        snprintf(file, sizeof file, "%s/big%d", path, i);
        assert_int_equal(unlink(file), 0);
    }
    for (int i = 0; space_of(path).f_favail > 0; i++) {
        snprintf(file, sizeof file, "%s/small%d", path, i);
        int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        close(fd);
    }
    look_after(f, 30);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_RECOVER, "fs/full", "mount//full");
    expect(f, 1, SIGNAL_OCCUR, "fs/inodes", "mount//full");
    assert_int_equal(umount2(path, MNT_DETACH), 0);
}

/* A FUSE server that answers INIT and then nothing more. */
struct fuse_in_header {
    uint32_t len, opcode;
    uint64_t unique, node;
    uint32_t uid, gid, pid, padding;
};
struct fuse_out_header {
    uint32_t len;
    int32_t error;
    uint64_t unique;
};
enum { FUSE_INIT = 26 };

/* Says 'i' when it has answered INIT and 'q' for each question that it leaves without an answer. */
static pid_t fuse_server(int fd, int ready_fd)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    union {
        struct fuse_in_header header;
        char bytes[1 << 17];
    } *request = malloc(sizeof *request);
    for (ssize_t len; (len = read(fd, request, sizeof *request)) > 0 || errno == EINTR || errno == ENOENT;) {
        struct {
            struct fuse_out_header header;
            uint32_t body[16];
        } answer = {{sizeof answer, 0, len > 0 ? request->header.unique : 0}, {7, 31, 65536, 0, 0, 4096}};
        bool init = len > 0 && request->header.opcode == FUSE_INIT;
        if ((init && write(fd, &answer, sizeof answer) < 0) ||
            (len > 0 && write(ready_fd, init ? "i" : "q", 1) < 0))
            _exit(1);
    }
    _exit(0);
}

static struct probes_standing standing_of_mounts(struct fixture *f)
{
    struct probes_standing standing = {0};
    for (size_t i = 0; i < probes_count() && (!standing.name || strcmp(standing.name, "mounts") != 0); i++)
        probes_standing(f->probes, i, &standing);
    return standing;
}

/* Our clock goes on, so that what hangs runs out of time. */
static void settle_in_time(struct fixture *f)
{
    for (int i = 0; i < 2000; i++) {
        probes_round(f->probes, f->now_ns, keep, f);
        if (!probes_busy(f->probes))
            return;
        struct pollfd ready = {probes_fd(f->probes), POLLIN, 0};
        poll(&ready, 1, 50);
        f->now_ns += 50 * NS_PER_MS;
    }
    fail_msg("it does not come to rest");
}

static void look_again(struct fixture *f)
{
    f->now_ns += 30 * NS_PER_SECOND;
    probes_hurry(f->probes);
    settle_in_time(f);
}

static struct {
    pid_t server;
    int fd;
    char path[256];
} fuse = {0, -1, ""};

/* A process that waits in the mount is let go with an error. */
static void fuse_end(void)
{
    if (fuse.server > 0) {
        kill(fuse.server, SIGKILL);
        waitpid(fuse.server, NULL, 0);
    }
    if (fuse.fd >= 0)
        close(fuse.fd);
    fuse.server = 0;
    fuse.fd = -1;
}

static int mounts_teardown(void **state)
{
    struct fixture *f = *state;
    char path[256];
    fuse_end();
    if (fuse.path[0])
        umount2(fuse.path, MNT_DETACH);
    fuse.path[0] = 0;
    snprintf(path, sizeof path, "%s/full", f->root);
    umount2(path, MNT_DETACH);
    return fixture_teardown(state);
}

/* False: it cannot be here. */
static bool fuse_begin(struct fixture *f, int ready[2])
{
    char options[128], word;
    put(f, "/hangs/x", "x");
    put(f, "/well/x", "x");
    fuse.fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    snprintf(fuse.path, sizeof fuse.path, "%s/hangs", f->root);
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse.fd);
    if (fuse.fd < 0 || !may_mount("fuse_that_hangs") ||
        mount("test", fuse.path, "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
        fuse.path[0] = 0;
        print_message("skip fuse_that_hangs: %s\n", strerror(errno));
        return false;
    }
    assert_int_equal(pipe(ready), 0);
    fuse.server = fuse_server(fuse.fd, ready[1]);
    assert_int_equal(read(ready[0], &word, 1), 1);
    return true;
}

static void fuse_that_hangs(void **state)
{
    struct fixture *f = *state;
    int ready[2];
    char word;
    if (!fuse_begin(f, ready))
        skip();
    put(f, TABLE, "30 27 0:50 / /hangs rw - fuse test rw\n31 27 0:51 / /well rw - ext4 /dev/x rw\n");
    begin(f, "mounts", "probes: {mounts: {timeout: 1s}}");
    probes_round(f->probes, f->now_ns, keep, f);
    assert_int_equal(read(ready[0], &word, 1), 1); /* the child is in it */
    for (int i = 0; i < 19; i++)                   /* rounds do not wait for it */
        probes_round(f->probes, f->now_ns += 50 * NS_PER_MS, keep, f);
    expect_none(f);
    probes_round(f->probes, f->now_ns += 50 * NS_PER_MS, keep, f);
    const struct kept *kept = expect_one(f, SIGNAL_OCCUR, "mount/hung", "mount//hangs");
    assert_int_equal(kept->severity, SEVERITY_CRITICAL);
    settle_in_time(f); /* the other one was looked at behind it */
    vec_clear(&f->kept);
    for (int i = 0; i < 5; i++)
        look_again(f);
    expect_none(f); /* told once */
    print_message("%u children that SIGKILL does not end\n", standing_of_mounts(f).hung);
    assert_in_range(standing_of_mounts(f).hung, 0, 1); /* one for a mount, however often it was due */
    fuse_end();
    for (int i = 0; i < 100 && f->kept.len < 2; i++)
        look_again(f);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_RECOVER, "mount/hung", "mount//hangs");
    expect(f, 1, SIGNAL_OCCUR, "mount/error", "mount//hangs");
    vec_clear(&f->kept);
    put(f, TABLE, "31 27 0:51 / /well rw - ext4 /dev/x rw\n");
    look_again(f);
    expect_one(f, SIGNAL_RECOVER, "mount/error", "mount//hangs");
    assert_int_equal(standing_of_mounts(f).hung, 0);
    close(ready[0]);
    close(ready[1]);
}

#define REAL(name) cmocka_unit_test_setup_teardown(name, fixture_setup, mounts_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(tables), CASE(manifest), REAL(full_tmpfs), REAL(fuse_that_hangs)};
    alarm(240); /* rather than for ever, whatever the kernel does with us */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
