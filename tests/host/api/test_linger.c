/* Connections that were answered before their request was whole: the answer arrives, what comes still is
 * thrown away, and none of it is kept for long. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/api/linger.h"
#include "host/patience.h"

struct bed {
    uv_loop_t loop;
    struct patience patience;
    struct lingering linger;
};

static void bed_init(struct bed *bed)
{
    assert_int_equal(uv_loop_init(&bed->loop), 0);
    patience_init(&bed->patience, &bed->loop);
    linger_init(&bed->linger, &bed->loop);
}

static void bed_done(struct bed *bed)
{
    linger_close(&bed->linger);
    patience_done(&bed->patience);
    assert_int_equal(uv_run(&bed->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&bed->loop), 0);
}

struct link {
    int client, server;
};

/* Over TCP, which alone knows resets. */
static struct link connect_both(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct link link = {.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(listener >= 0 && link.client >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(connect(link.client, (struct sockaddr *)&address, sizeof address), 0);
    link.server = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(link.server >= 0);
    close(listener);
    return link;
}

/* As the server does it: the owner closes its descriptor right afterwards. */
static void hand_over(struct bed *bed, struct link *link, bool early)
{
    linger_take(&bed->linger, link->server, early);
    close(link->server);
    link->server = -1;
}

/* What the client gets until the end of the stream; an error fails. */
static void expect_answer(struct link *link, const char *answer)
{
    char got[64] = "";
    size_t len = 0;
    ssize_t count;
    while ((count = recv(link->client, got + len, sizeof got - 1 - len, 0)) > 0)
        len += (size_t)count;
    assert_int_equal(count, 0);
    assert_string_equal(got, answer);
}

static void say(struct link *link, const char *text)
{
    assert_int_equal(send(link->client, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void test_answer_survives_unread_bytes(void **state)
{
    struct bed bed;
    struct link link = connect_both();
    bed_init(&bed);
    say(&link, "half a request");
    struct pollfd unread = {link.server, POLLIN, 0};
    assert_int_equal(poll(&unread, 1, PATIENCE_S * 1000), 1);
    assert_int_equal(send(link.server, "no", 2, MSG_NOSIGNAL), 2);
    hand_over(&bed, &link, false);
    assert_int_equal(bed.linger.count, 1);
    for (int i = 0; i < 50; i++) { /* the rest of it, long after the answer */
        say(&link, "more of the same request");
        uv_run(&bed.loop, UV_RUN_NOWAIT);
    }
    expect_answer(&link, "no");
    assert_int_equal(bed.linger.count, 1);
    close(link.client);
    PATIENT_UNTIL(&bed.patience, bed.linger.count == 0);
    bed_done(&bed);
}

static void test_who_lingers(void **state)
{
    struct bed bed;
    bed_init(&bed);
    struct link quiet = connect_both(), early = connect_both(), gone = connect_both();
    hand_over(&bed, &quiet, false); /* all was said and read */
    assert_int_equal(bed.linger.count, 0);
    expect_answer(&quiet, "");
    hand_over(&bed, &early, true); /* its client may be saying something just now */
    assert_int_equal(bed.linger.count, 1);
    expect_answer(&early, "");
    say(&early, "late");
    close(gone.client);
    struct pollfd closed = {gone.server, POLLIN, 0};
    assert_int_equal(poll(&closed, 1, PATIENCE_S * 1000), 1);
    hand_over(&bed, &gone, true);
    assert_int_equal(bed.linger.count, 1);
    close(early.client);
    close(quiet.client);
    PATIENT_UNTIL(&bed.patience, bed.linger.count == 0);
    bed_done(&bed);
}

/* However many come and however long they stay. */
static void test_bounds(void **state)
{
    struct bed bed;
    struct link links[LINGER_MAX + 5];
    bed_init(&bed);
    for (int i = 0; i < LINGER_MAX + 5; i++) {
        links[i] = connect_both();
        hand_over(&bed, &links[i], true);
        assert_int_equal(bed.linger.count, i < LINGER_MAX ? i + 1 : LINGER_MAX);
    }
    for (int i = 0; i < LINGER_TICKS; i++)
        linger_tick(&bed.linger);
    assert_int_equal(bed.linger.count, LINGER_MAX);
    linger_tick(&bed.linger);
    assert_int_equal(bed.linger.count, 0);
    for (int i = 0; i < LINGER_MAX + 5; i++)
        close(links[i].client);
    bed_done(&bed);
}

/* Closed with sockets left, it leaves nothing behind (the sanitizer looks), and takes no more. */
static void test_close(void **state)
{
    struct bed bed;
    struct link first = connect_both(), second = connect_both();
    bed_init(&bed);
    hand_over(&bed, &first, true);
    linger_close(&bed.linger);
    assert_int_equal(bed.linger.count, 0);
    hand_over(&bed, &second, true);
    assert_int_equal(bed.linger.count, 0);
    expect_answer(&first, "");
    expect_answer(&second, "");
    close(first.client);
    close(second.client);
    bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer_survives_unread_bytes),
        cmocka_unit_test(test_who_lingers),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
