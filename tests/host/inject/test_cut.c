/* A group whose packets are dropped, and healed. Skipped where we may not make control groups. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/inject/inject.h"

static char own[INJECT_PATH_MAX], group[INJECT_PATH_MAX + 64];

static bool enter(const char *path)
{
    char procs[INJECT_PATH_MAX + 128];
    snprintf(procs, sizeof procs, "%s/cgroup.procs", path);
    FILE *file = fopen(procs, "we");
    bool entered = file && fputs("0", file) >= 0;
    return file && fclose(file) == 0 && entered;
}

/* Two ends of UDP, each of the group in which it was made: what is sent is there at once, or never. */
static bool passes(int from, int to)
{
    char byte;
    (void)send(from, "x", 1, 0);
    return recv(to, &byte, 1, MSG_DONTWAIT) == 1;
}

static void a_group_is_cut_off_and_healed(void **state)
{
    struct error error;
    size_t count = 0;
    if (!inject_cgroup_of(getpid(), own))
        skip();
    snprintf(group, sizeof group, "%s/phalanx-test-%d", own, (int)getpid());
    if (mkdir(group, 0755) < 0)
        skip();
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int outside = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(enter(group));
    int inside = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(enter(own));
    assert_int_equal(bind(inside, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(inside, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(connect(outside, (struct sockaddr *)&address, len), 0);
    address.sin_port = 0;
    assert_int_equal(getsockname(outside, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(connect(inside, (struct sockaddr *)&address, len), 0);
    assert_true(passes(outside, inside) && passes(inside, outside));
    bool may = inject_cut(group, DIRECTION_IN, 1000000, &error) == 0;
    if (may) {
        assert_true(!passes(outside, inside) && passes(inside, outside));
        assert_int_equal(inject_cut(group, DIRECTION_BOTH, 1000000, &error), 0);
        assert_true(!passes(outside, inside) && !passes(inside, outside));
        assert_int_equal(inject_cut_heal(group, &count, &error), 0);
        assert_int_equal(count, 2);
        assert_int_equal(inject_cut(group, DIRECTION_OUT, 500000, &error), 0);
        int passed = 0;
        for (int i = 0; i < 400; i++)
            passed += passes(inside, outside);
        assert_true(passed > 100 && passed < 300); /* of 400 half: sigma is 10 */
        assert_int_equal(inject_cut_heal(group, &count, &error), 0);
        assert_true(passes(outside, inside) && passes(inside, outside));
    }
    close(inside);
    close(outside);
    assert_int_equal(rmdir(group), 0);
    if (!may)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_group_is_cut_off_and_healed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
