/* A namespace that the kernel refuses is told from one that it allows. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/namespace.h"

static int exit_status_of(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_chroot_allows_none(void **state)
{
    (void)state;
    if (geteuid() != 0 || os_mounts_refused())
        skip();
    pid_t child = fork();
    if (child == 0)
        _exit(chroot("/usr") == 0 && chdir("/") == 0 ? os_mounts_refused() : 0);
    assert_int_equal(exit_status_of(child), EINVAL);
}

static void test_other_users_need_a_right(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    pid_t child = fork();
    if (child == 0)
        _exit(setuid(4711) == 0 ? os_mounts_refused() : 0);
    assert_int_equal(exit_status_of(child), EPERM);
}

static void test_roots_are_tried(void **state)
{
    (void)state;
    char place[] = "/var/tmp/phx-root-XXXXXX";
    if (geteuid() != 0 || os_mounts_refused())
        skip();
    assert_int_equal(os_root_refused("/no/such/place"), ENOENT);
    assert_non_null(mkdtemp(place));
    int refused = os_root_refused(place);
    assert_true(refused == 0 || refused == EINVAL ||
                refused == ENODEV);    /* the machine may have no overlays */
    assert_int_equal(rmdir(place), 0); /* nothing was left */
    pid_t child = fork();
    if (child == 0)
        _exit(chroot("/usr") == 0 && chdir("/") == 0 ? os_root_refused("/lib") : 0);
    assert_int_equal(exit_status_of(child), EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chroot_allows_none),
        cmocka_unit_test(test_other_users_need_a_right),
        cmocka_unit_test(test_roots_are_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
