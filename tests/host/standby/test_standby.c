/* Standbys on a real etcd: one of two leads, the other follows, and takes over when the first hands over;
 * clients of a standby reach the leader, and wait while there is none. */
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
    shared->resign(shared->context);
    uv_run(&second.loop, UV_RUN_DEFAULT);
    assert_true(standby_leads(second.standby));
    core_free(shared->core);
    shared->log.close(shared->log.context);
    bed_close(&first);
    bed_close(&second);
}

/* --- clients ------------------------------------------------------------------------------------------ */

/* A leader that says back what it hears. */
static void echo_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    static char room[4096];
    *buf = uv_buf_init(room, sizeof room);
}

static void echo_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    uv_buf_t out = uv_buf_init(buf->base, count > 0 ? (unsigned)count : 0);
    if (count > 0)
        assert_int_equal(uv_try_write(stream, &out, 1), count);
    else if (count < 0)
        uv_close((uv_handle_t *)stream, NULL);
}

static uv_tcp_t echo_peer;

static void echo_accept(uv_stream_t *listener, int status)
{
    assert_int_equal(uv_tcp_init(listener->loop, &echo_peer), 0);
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&echo_peer), 0);
    uv_read_start((uv_stream_t *)&echo_peer, echo_room, echo_read);
}

static void clients_wait_for_a_leader(void **state)
{
    uv_loop_t loop;
    uv_tcp_t echo;
    struct patience patience;
    struct forward *forward;
    struct sockaddr_storage place = {0};
    struct sockaddr_in at;
    struct error error;
    char answer[16] = "";
    int len = sizeof place;
    uv_loop_init(&loop);
    patience_init(&patience, &loop);
    assert_int_equal(forward_new(&loop, "127.0.0.1", 0, &forward, &error), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    uv_ip4_addr("127.0.0.1", forward_port(forward), &at);
    (void)connect(fd, (struct sockaddr *)&at, sizeof at);
    PATIENT_UNTIL(&patience, write(fd, "hello", 5) == 5); /* nobody leads yet: it is kept */
    uv_tcp_init(&loop, &echo);
    uv_ip4_addr("127.0.0.1", 0, &at);
    assert_int_equal(uv_tcp_bind(&echo, (struct sockaddr *)&at, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&echo, 8, echo_accept), 0);
    assert_int_equal(uv_tcp_getsockname(&echo, (struct sockaddr *)&place, &len), 0);
    forward_to(forward, &place);
    PATIENT_UNTIL(&patience, read(fd, answer, 5) == 5);
    assert_string_equal(answer, "hello");
    forward_to(forward, NULL); /* those that are joined stay */
    assert_int_equal(write(fd, "again", 5), 5);
    PATIENT_UNTIL(&patience, read(fd, answer, 5) == 5);
    assert_string_equal(answer, "again");
    close(fd);
    forward_close(forward);
    uv_close((uv_handle_t *)&echo, NULL);
    patience_done(&patience);
    uv_run(&loop, UV_RUN_DEFAULT);
    forward_free(forward);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_leads),
        cmocka_unit_test(clients_wait_for_a_leader),
    };
    members_need();
    members_start(&members, 1, NULL);
    members.options.lease_s = 120;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    members_stop(&members);
    return failed;
}
