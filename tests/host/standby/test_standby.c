/* Standbys on a real etcd: one of two leads, the other follows, and takes over when the first hands over; the
 * first follows on, and takes over in its turn. */
#include "host/store/etcd/members.h"

#include "host/patience.h"
#include "host/standby/internal.h"

static struct members members;

struct bed {
    uv_loop_t loop;
    struct patience patience;
    struct standby *standby;
};

static void not_lost(const char *why)
{
    fail_msg("lost: %s", why);
}

static void bed_open(struct bed *bed)
{
    struct standby_options options = {.etcd = members.options, .api_address = "127.0.0.1", .lost = not_lost};
    struct error error;
    assert_int_equal(uv_loop_init(&bed->loop), 0);
    if (standby_new(&bed->loop, &options, &bed->standby, &error) < 0)
        fail_msg("%s", error.text);
}

static void bed_close(struct bed *bed)
{
    standby_close(bed->standby);
    uv_run(&bed->loop, UV_RUN_DEFAULT);
    standby_free(bed->standby);
    assert_int_equal(uv_loop_close(&bed->loop), 0);
}

static void the_first_leads(void **state)
{
    struct bed first = {0}, second = {0};
    bed_open(&first);
    uv_run(&first.loop, UV_RUN_DEFAULT); /* until it leads */
    assert_true(standby_leads(first.standby));
    bed_open(&second);
    for (int i = 0; i < 100; i++)
        uv_run(&second.loop, UV_RUN_NOWAIT);
    assert_false(standby_leads(second.standby));
    const struct controller_shared *shared = standby_shared(first.standby);
    assert_true(shared->leads_until_ns(shared->context) > 0);
    shared->hands_over(shared->context);
    shared->resign(shared->context);
    assert_false(standby_leads(first.standby));
    uv_run(&second.loop, UV_RUN_DEFAULT);
    assert_true(standby_leads(second.standby));
    standby_follow_on(first.standby); /* what it knows is the log's state: nothing is read again */
    for (int i = 0; i < 100; i++)
        uv_run(&first.loop, UV_RUN_NOWAIT);
    assert_false(standby_leads(first.standby));
    shared = standby_shared(second.standby);
    shared->hands_over(shared->context);
    shared->resign(shared->context);
    uv_run(&first.loop, UV_RUN_DEFAULT);
    assert_true(standby_leads(first.standby));
    standby_leave(second.standby); /* its clients are none: the loop ends */
    uv_run(&second.loop, UV_RUN_DEFAULT);
    assert_false(standby_leads(second.standby));
    bed_close(&first);
    bed_close(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_leads),
    };
    members_need();
    members_start(&members, 1, NULL);
    members.options.lease_s = 120;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    members_stop(&members);
    return failed;
}
