/* Folders of one's own in places where others may write, and the removal of trees while others move them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/folder.h"

enum { SOMEBODY = 4711, MAKERS = 8, FOLDERS = 500 };

static char place[32];

static const char *in_place(const char *name)
{
    static char paths[4][64];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, 64, "%s/%s", place, name);
    return path;
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    return info.st_mode;
}

static int begin(void **state)
{
    snprintf(place, sizeof place, "/tmp/phx-folder-XXXXXX");
    return mkdtemp(place) ? 0 : -1;
}

static int end(void **state)
{
    os_folder_remove(AT_FDCWD, place);
    return access(place, F_OK) < 0 ? 0 : -1;
}

static void a_folder_gets_its_mode(void **state)
{
    struct error error;
    mode_t before = umask(077);
    assert_int_equal(os_folder_private(in_place("own"), 0711, &error), 0);
    umask(before);
    assert_int_equal(mode_of(in_place("own")), S_IFDIR | 0711);
    assert_int_equal(chmod(in_place("own"), 01777), 0);
    assert_int_equal(os_folder_private(in_place("own"), 0700, &error), 0); /* its own, from before */
    assert_int_equal(mode_of(in_place("own")), S_IFDIR | 0700);
}

static void what_is_no_folder_is_refused(void **state)
{
    struct error error;
    assert_int_equal(mkdir(in_place("victim"), 0755), 0);
    assert_int_equal(symlink("victim", in_place("link")), 0);
    assert_int_equal(os_folder_private(in_place("link"), 0777, &error), ERROR_DENIED);
    assert_non_null(strstr(error.text, "is a link or a file"));
    assert_int_equal(mode_of(in_place("victim")), S_IFDIR | 0755);
    close(open(in_place("file"), O_CREAT | O_WRONLY, 0644));
    assert_int_equal(os_folder_private(in_place("file"), 0777, &error), ERROR_DENIED);
    assert_int_equal(mode_of(in_place("file")), S_IFREG | 0644);
    assert_int_equal(os_folder_private(in_place("no/folder"), 0700, &error), ERROR_IO);
}

static void another_users_folder_is_refused(void **state)
{
    struct error error;
    int fd;
    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir(in_place("foreign"), 0755), 0);
    assert_int_equal(chown(in_place("foreign"), SOMEBODY, SOMEBODY), 0);
    assert_int_equal(os_folder_private(in_place("foreign"), 0700, &error), ERROR_DENIED);
    assert_non_null(strstr(error.text, "belongs to user 4711, expected user 0"));
    assert_int_equal(mode_of(in_place("foreign")), S_IFDIR | 0755);
    /* Made for somebody, and found again. */
    int at = open(place, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 2; i++) {
        struct stat info;
        assert_int_equal(os_folder_make(at, "theirs", 0700, SOMEBODY, 100, &fd, &error), 0);
        assert_int_equal(fstat(fd, &info), 0);
        assert_int_equal(info.st_uid, SOMEBODY);
        assert_int_equal(info.st_gid, 100);
        assert_int_equal(info.st_mode, S_IFDIR | 0700);
        close(fd);
    }
    assert_int_equal(os_folder_make(at, "theirs", 0700, 0, 0, &fd, &error), ERROR_DENIED);
    close(at);
}

static void a_folder_that_its_maker_did_not_give_away_is_given(void **state)
{
    struct error error;
    struct stat info;
    int fd;
    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir(in_place("begun"), 01700), 0); /* and its maker was killed */
    assert_int_equal(stat(in_place("begun"), &info), 0);
    assert_true(os_folder_is_unfinished(&info));
    assert_int_equal(os_folder_make(AT_FDCWD, in_place("begun"), 02770, SOMEBODY, 100, &fd, &error), 0);
    assert_int_equal(fstat(fd, &info), 0);
    close(fd);
    assert_false(os_folder_is_unfinished(&info));
    assert_int_equal(info.st_uid, SOMEBODY);
    assert_int_equal(info.st_gid, 100);
    assert_int_equal(info.st_mode, S_IFDIR | 02770);
    /* A folder of root's own is nobody else's. */
    assert_int_equal(mkdir(in_place("roots"), 0700), 0);
    assert_int_equal(os_folder_make(AT_FDCWD, in_place("roots"), 0700, SOMEBODY, 100, &fd, &error),
                     ERROR_DENIED);
}

/* Makes all folders as soon as the pipe's other end is closed; 0 when every one was made. */
static int make_many(int starts)
{
    struct error error;
    char name[16], byte;
    int at = open(place, O_RDONLY | O_DIRECTORY), fd, bad = at < 0 || read(starts, &byte, 1) != 0;
    for (int i = 0; i < FOLDERS && !bad; i++) {
        snprintf(name, sizeof name, "folder-%d", i);
        bad = os_folder_make(at, name, 0700, SOMEBODY, 100, &fd, &error) != 0;
        if (bad)
            fprintf(stderr, "%s\n", error.text);
        else
            close(fd);
    }
    return bad;
}

/* As the agents of all machines of a job do on shared storage. */
static void many_make_one_folder_at_once(void **state)
{
    int starts[2], ended, failed = 0;
    if (geteuid() != 0)
        skip();
    assert_int_equal(pipe(starts), 0);
    for (int i = 0; i < MAKERS; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            close(starts[1]);
            _exit(make_many(starts[0]));
        }
    }
    close(starts[0]);
    close(starts[1]);
    for (int i = 0; i < MAKERS; i++) {
        assert_true(wait(&ended) > 0);
        failed += ended != 0;
    }
    assert_int_equal(failed, 0);
}

static void links_are_removed_not_followed(void **state)
{
    char path[64];
    assert_int_equal(mkdir(in_place("victim"), 0755), 0);
    close(open(in_place("victim/kept"), O_CREAT | O_WRONLY, 0644));
    assert_int_equal(mkdir(in_place("tree"), 0755), 0);
    snprintf(path, sizeof path, "%s", in_place("tree"));
    for (int i = 0; i < 5; i++) {
        snprintf(path + strlen(path), sizeof path - strlen(path), "/%d", i);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    assert_int_equal(symlink("../victim", in_place("tree/link")), 0);
    os_folder_remove(AT_FDCWD, in_place("tree"));
    assert_int_not_equal(access(in_place("tree"), F_OK), 0);
    assert_int_equal(symlink("victim", in_place("link")), 0);
    os_folder_remove(AT_FDCWD, in_place("link"));
    assert_int_not_equal(access(in_place("link"), F_OK), 0);
    assert_int_equal(access(in_place("victim/kept"), F_OK), 0);
    os_folder_remove(AT_FDCWD, in_place("absent"));
}

static void folders_closed_by_their_mode_are_removed(void **state)
{
    if (geteuid() == 0 && chown(place, 4711, 4711) < 0)
        skip();
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(4711) < 0 || setuid(4711) < 0))
            _exit(2);
        if (mkdir(in_place("tree"), 0755) < 0 || mkdir(in_place("tree/closed"), 0755) < 0 ||
            mkdir(in_place("tree/closed/inner"), 0) < 0 || chmod(in_place("tree/closed"), 0) < 0)
            _exit(3);
        os_folder_remove(AT_FDCWD, in_place("tree"));
        _exit(access(in_place("tree"), F_OK) == 0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_path_gets_its_modes(void **state)
{
    struct error error;
    mode_t before = umask(077);
    assert_int_equal(os_folder_path(in_place("a/b/c"), 0700, 0777, &error), 0);
    umask(before);
    assert_int_equal(mode_of(in_place("a/b")) & 07777, 0700);
    assert_int_equal(mode_of(in_place("a/b/c")) & 07777, 0777);
    assert_int_equal(os_folder_path(in_place("a/b/c"), 0700, 0700, &error), 0); /* it stays as it is */
    assert_int_equal(mode_of(in_place("a/b/c")) & 07777, 0777);
    assert_int_not_equal(os_folder_path("", 0700, 0700, &error), 0);
}

/* Whether it opens, or its code. */
static int inside(int root, const char *path)
{
    struct error error;
    int fd = -1, rc = os_folder_inside(root, path, 0750, &fd, &error);
    if (rc == 0)
        close(fd);
    return rc;
}

static void no_link_leads_out(void **state)
{
    struct error error;
    assert_int_equal(os_folder_private(in_place("volume"), 0700, &error), 0);
    assert_int_equal(os_folder_private(in_place("outside"), 0700, &error), 0);
    int root = open(in_place("volume"), O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(inside(root, "a//b/c/"), 0);
    assert_int_equal(mode_of(in_place("volume/a/b")) & 07777, 0750);
    assert_int_equal(symlink("a", in_place("volume/in")), 0);
    assert_int_equal(inside(root, "in/b/d"), 0);
    assert_true(S_ISDIR(mode_of(in_place("volume/a/b/d"))));
    assert_int_equal(symlink("../outside", in_place("volume/up")), 0);
    assert_int_equal(symlink(in_place("outside"), in_place("volume/far")), 0);
    static const char *const out[] = {"up", "up/x",         "up/x/y",    "far", "far/x",
                                      "..", "../outside/x", "a/../../x", "/tmp"};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        assert_int_equal(inside(root, out[i]), ERROR_DENIED);
    assert_int_not_equal(inside(root, ""), 0);
    assert_int_equal(rmdir(in_place("outside")), 0); /* nothing was made in it */
    close(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_gets_its_mode, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_folder_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(another_users_folder_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_path_gets_its_modes, begin, end),
        cmocka_unit_test_setup_teardown(no_link_leads_out, begin, end),
        cmocka_unit_test_setup_teardown(a_folder_that_its_maker_did_not_give_away_is_given, begin, end),
        cmocka_unit_test_setup_teardown(many_make_one_folder_at_once, begin, end),
        cmocka_unit_test_setup_teardown(links_are_removed_not_followed, begin, end),
        cmocka_unit_test_setup_teardown(folders_closed_by_their_mode_are_removed, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
