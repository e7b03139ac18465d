/* Whole files: their bytes, their limit, and files that cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/file.h"

static void write_temporary(char path[64], size_t bytes)
{
    snprintf(path, 64, "/tmp/phalanx-file-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(write(fd, &(char){(char)(i * 7)}, 1), 1);
    close(fd);
}

static void a_file_comes_whole(void **state)
{
    (void)state;
    char path[64];
    write_temporary(path, 10000);
    struct buf text BUF_CLEANUP = {0};
    buf_add_str(&text, STR("what was there before"));
    assert_int_equal(os_file_read(path, 10000, &text, NULL), 0);
    assert_int_equal(text.len, 10000);
    for (size_t i = 0; i < text.len; i++)
        assert_int_equal(text.data[i], (char)(i * 7));
    unlink(path);
}

static void a_larger_file_is_refused_by_name(void **state)
{
    (void)state;
    char path[64];
    write_temporary(path, 5000);
    struct buf text BUF_CLEANUP = {0};
    struct error error;
    buf_add_str(&text, STR("kept"));
    assert_int_equal(os_file_read(path, 4999, &text, &error), ERROR_LIMIT);
    assert_non_null(strstr(error.text, path));
    assert_true(str_is(buf_str(&text), "kept"));
    unlink(path);
}

static void a_file_is_replaced_whole(void **state)
{
    (void)state;
    char path[64];
    struct stat info;
    struct error error;
    write_temporary(path, 5000);
    struct buf text BUF_CLEANUP = {0};
    assert_int_equal(os_file_replace(path, STR("new\n"), 0640, NULL), 0);
    assert_int_equal(os_file_read(path, 10, &text, NULL), 0);
    assert_true(str_is(buf_str(&text), "new\n"));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    unlink(path);
    assert_int_equal(os_file_replace(path, STR("made"), 0600, NULL), 0);
    unlink(path);
    assert_int_equal(os_file_replace("/nonexistent/file", STR("lost"), 0600, &error), ERROR_IO);
    assert_non_null(strstr(error.text, "/nonexistent/file"));
}

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    struct buf text BUF_CLEANUP = {0};
    struct error error;
    assert_int_equal(os_file_read("/nonexistent/file", 10, &text, &error), ERROR_IO);
    assert_non_null(strstr(error.text, "/nonexistent/file"));
    assert_int_equal(os_file_read("/", 10, &text, &error), ERROR_IO);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

static void a_folder_is_its_users_own(void **state)
{
    (void)state;
    char top[] = "/tmp/phalanx-own-XXXXXX", path[64], link[64];
    struct error error;
    assert_non_null(mkdtemp(top));
    snprintf(path, sizeof path, "%s/a/b", top);
    assert_int_equal(os_folder_own(path, 0700, &error), 0);
    assert_int_equal(mode_of(path), 0700);
    assert_int_equal(chmod(path, 0755), 0); /* closed to others; through root's they pass as before */
    assert_int_equal(os_folder_own(path, 0700, &error), 0);
    assert_int_equal(mode_of(path), geteuid() == 0 ? 0711 : 0700);
    static const mode_t open_to_others[] = {0777, 01777, 0720, 0702};
    for (size_t i = 0; i < sizeof open_to_others / sizeof *open_to_others; i++) {
        assert_int_equal(chmod(path, open_to_others[i]), 0);
        assert_int_equal(os_folder_own(path, 0700, &error), ERROR_CONFLICT);
        assert_non_null(strstr(error.text, "chmod go-w"));
        assert_int_equal(mode_of(path), open_to_others[i]);
    }
    assert_int_equal(chmod(path, 0700), 0);
    snprintf(link, sizeof link, "%s/link", top);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(os_folder_own(link, 0700, &error), 0);
    if (geteuid() == 0) {
        assert_int_equal(lchown(link, 65534, 65534), 0);
        assert_int_equal(os_folder_own(link, 0700, &error), ERROR_CONFLICT);
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(os_folder_own(path, 0700, &error), ERROR_CONFLICT);
        assert_non_null(strstr(error.text, "belongs to user 65534"));
    }
    assert_int_equal(os_folder_own("", 0700, &error), ERROR_INVALID);
    unlink(link);
    rmdir(path);
    snprintf(path, sizeof path, "%s/a", top);
    rmdir(path);
    rmdir(top);
}

/* As a user other than root: a folder that others could pass through is closed, and none is made so. */
static void others_pass_through_folders_of_root_alone(void **state)
{
    (void)state;
    char top[] = "/tmp/phalanx-own-XXXXXX", path[64];
    struct error error;
    assert_non_null(mkdtemp(top));
    snprintf(path, sizeof path, "%s/made", top);
    if (geteuid() == 0) {
        assert_int_equal(chown(top, 65534, 65534), 0);
        assert_int_equal(setresuid(-1, 65534, 0), 0);
    }
    assert_int_equal(os_folder_own(path, 0711, &error), 0);
    assert_int_equal(mode_of(path), 0700);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(os_folder_own(path, 0711, &error), 0);
    assert_int_equal(mode_of(path), 0700);
    if (getuid() == 0)
        assert_int_equal(setresuid(-1, 0, -1), 0);
    rmdir(path);
    rmdir(top);
}

static void a_path_is_below_its_folders(void **state)
{
    assert_true(os_path_is_below("/a/b", "/a/b") && os_path_is_below("/a/b/c", "/a/b"));
    assert_false(os_path_is_below("/a/bc", "/a/b") || os_path_is_below("/a", "/a/b"));
}

static void a_closed_folder_is_in_the_way(void **state)
{
    (void)state;
    char place[32] = "/tmp/phalanx-file-XXXXXX", inner[64], path[96], barrier[PATH_MAX] = "";
    assert_non_null(mkdtemp(place)); /* 0700, our own */
    snprintf(inner, sizeof inner, "%s/inner", place);
    snprintf(path, sizeof path, "%s/file", inner);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_false(os_path_barrier(path, geteuid(), getegid(), barrier));
    assert_true(os_path_barrier(path, (uid_t)-1, (gid_t)-1, barrier));
    assert_string_equal(barrier, place);
    assert_int_equal(chmod(place, 0711), 0);
    assert_true(os_path_barrier(path, (uid_t)-1, (gid_t)-1, barrier));
    assert_string_equal(barrier, inner);
    assert_int_equal(chmod(inner, 0710), 0);
    assert_false(os_path_barrier(path, (uid_t)-1, getegid(), barrier));
    assert_false(
        os_path_barrier(inner, (uid_t)-1, (gid_t)-1, barrier)); /* the path itself is not in its way */
    rmdir(inner);
    rmdir(place);
}

static void a_seed_is_made_once(void **state)
{
    (void)state;
    char folder[] = "/tmp/phalanx-seed-XXXXXX", path[64], other[64], link[64];
    uint64_t first, again, another;
    struct error error;
    struct stat info;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a", folder);
    snprintf(other, sizeof other, "%s/b", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(os_file_seed(path, &first, &error), 0);
    assert_int_equal(os_file_seed(path, &again, &error), 0);
    assert_int_equal(os_file_seed(other, &another, &error), 0);
    assert_true(first == again && first != another);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(truncate(path, 3), 0); /* its maker was killed */
    assert_int_equal(os_file_seed(path, &again, &error), 0);
    assert_true(first != again);
    assert_int_equal(symlink(other, link), 0);
    assert_int_not_equal(os_file_seed(link, &again, &error), 0);
    assert_non_null(strstr(error.text, link));
    unlink(path), unlink(other), unlink(link);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_comes_whole),
        cmocka_unit_test(a_closed_folder_is_in_the_way),
        cmocka_unit_test(a_larger_file_is_refused_by_name),
        cmocka_unit_test(a_file_is_replaced_whole),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(a_folder_is_its_users_own),
        cmocka_unit_test(others_pass_through_folders_of_root_alone),
        cmocka_unit_test(a_path_is_below_its_folders),
        cmocka_unit_test(a_seed_is_made_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
