/* When a thread may look at rings before it sleeps, and that nothing rings for it meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "flow/wire/spin.h"
#include "flow/wire/wire.h"

static void runnable_threads_are_counted(void **state)
{
    assert_int_equal(spin_runnable("13.37 14.56 16.22 21/324 10635\n"), 21);
    assert_int_equal(spin_runnable("0.00 0.01 0.05 1/97 4242\n"), 1);
    assert_int_equal(spin_runnable("0.00 0.01 0.05 0/97 4242\n"), 0);
    static const char *const wrong[] = {
        "", "0.1 0.2 0.3", "0.1 0.2 0.3 2", "0.1 0.2 0.3 x/5 6", "0.1 0.2 0.3 -1/5 6", "a b c 1/2 3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(spin_runnable(wrong[i]), INT32_MAX);
}

/* The machine is as the file says, and is asked again after a while, not each time. */
static void only_while_cores_are_free(void **state)
{
    enum { MS = 1000 * 1000 };
    char path[] = "/tmp/test-spin-XXXXXX";
    struct spin spin;
    spin_init(&spin);
    spin_done(&spin);
    spin.fd = mkstemp(path);
    spin.cores = 4;
    assert_true(spin.fd >= 0);
    unlink(path);
    static const char *const lines[] = {"0.1 0.1 0.1 4/100 5\n", "0.1 0.1 0.1 5/100 5\n",
                                        "0.1 0.1 0.1 1/100 5\n"};
    for (int i = 0; i < 3; i++) {
        bool free_core = i != 1;
        assert_int_equal(pwrite(spin.fd, lines[i], strlen(lines[i]), 0), strlen(lines[i]));
        if (i > 0) /* 1 ms after the last look: what was found then */
            assert_int_equal(spin_may(&spin, i * 100 * MS + MS), !free_core);
        assert_int_equal(spin_may(&spin, (i + 1) * 100 * MS), free_core);
    }
    spin_done(&spin);
    assert_int_equal(spin_may(&spin, INT64_MAX), true); /* as it was found last */
    spin.may = false;
    assert_false(spin_may(&spin, INT64_MAX));
}

static void *raise_flag(void *arg)
{
    atomic_store((_Atomic bool *)arg, true);
    return NULL;
}

/* A thread that looks leaves its core to one that waits for it, rather than keep it until its time is over:
 * on one core, the other thread gets to run after a few looks. */
static void a_look_gives_way(void **state)
{
    enum { LOOKS_MAX = 2000 };
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &before))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    _Atomic bool flag = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, raise_flag, (void *)&flag), 0);
    int looks = 0;
    while (!atomic_load(&flag) && spin_lasts(INT64_MAX))
        looks++;
    assert_in_range(looks, 0, LOOKS_MAX);
    pthread_join(thread, NULL);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_false(spin_lasts(1));
}

static bool count_entry(void *context, const struct flow_entry *entry, struct str tail)
{
    (*(int *)context)++;
    return true;
}

static void put_one(struct wire *wire)
{
    flow_wire_put(wire, &(struct flow_entry){.kind = ENTRY_DATA}, STR("some bytes"), NULL);
    assert_int_equal(flow_wire_flush(wire), 0);
}

/* Without dozing a message costs no call of the kernel; dozing again misses nothing. */
static void no_bell_for_who_looks(void **state)
{
    char folder[] = "/tmp/test-spin-XXXXXX", address[64];
    int listener, entries = 0;
    struct error error;
    struct wire *a;
    assert_non_null(mkdtemp(folder));
    snprintf(address, sizeof address, "unix:%s/s", folder);
    assert_int_equal(flow_wire_listen(address, &listener, &error), 0);
    assert_int_equal(flow_wire_connect(address, &a, &error), 0);
    struct wire *b = flow_wire_accept(listener);
    assert_non_null(b);
    put_one(a);
    assert_int_equal(flow_wire_read(b, count_entry, &entries, NULL), 0);
    assert_int_equal(entries, 1);
    struct pollfd bell = {.fd = b->fd, .events = POLLIN};

    put_one(a); /* b sleeps */
    assert_int_equal(poll(&bell, 1, 10000), 1);
    assert_int_equal(flow_wire_read(b, count_entry, &entries, NULL), 0);
    assert_int_equal(entries, 2);

    assert_true(b->ops->doze(b, false) && !b->ops->is_ready(b));
    put_one(a);
    assert_int_equal(poll(&bell, 1, 0), 0);
    assert_true(b->ops->is_ready(b));
    assert_false(b->ops->doze(b, true)); /* there is something already */
    assert_int_equal(flow_wire_read(b, count_entry, &entries, NULL), 0);
    assert_int_equal(entries, 3);

    assert_true(b->ops->doze(b, false) && b->ops->doze(b, true));
    put_one(a);
    assert_int_equal(poll(&bell, 1, 10000), 1);
    assert_int_equal(flow_wire_read(b, count_entry, &entries, NULL), 0);
    assert_int_equal(entries, 4);
    flow_wire_free(a);
    flow_wire_free(b);
    close(listener);
    unlink(address + 5);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runnable_threads_are_counted),
        cmocka_unit_test(only_while_cores_are_free),
        cmocka_unit_test(a_look_gives_way),
        cmocka_unit_test(no_bell_for_who_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
