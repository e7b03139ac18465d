/* One suite for every driver of optical switches that Phalanx brings: SCPI and TL1 against the emulated
 * switch on a socket, SAI against the library of stub_sai.c. All switches have 8 and 8 ports; the mirror of
 * A port 3 is stuck, and no light enters A port 7 of an emulated switch. What a protocol has beyond the
 * others, and what it lacks, is checked as well. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/check.h"
#include "host/fabric/internal.h"
#include "sim/fabric/ocs_session.h"

enum { SIDE = 8, STUCK = 3, DARK = 7, TUNING_MS = 3 };
#define PAIR(a, b) ((struct phx_crossconnect){(a), SIDE + (b)})

/* --- an emulated switch on a socket ----------------------------------------------------------------- */

struct emulator {
    int listener;
    enum ocs_protocol protocol;
    bool echoes; /* commands come back before their answers */
    const char *user, *password;
    struct ocs ocs;
    pthread_t thread;
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Serves one client until that leaves. */
static void serve_client(struct emulator *emulator, int fd)
{
    struct ocs_session session;
    char bytes[4096];
    ocs_session_init(&session, emulator->protocol);
    for (bool open = true; open && !session.ended;) {
        struct buf out BUF_CLEANUP = {0};
        int64_t wake_ns = ocs_session_next(&session, &emulator->ocs, now_ns(), &out);
        CHECK(!out.len || write(fd, out.data, out.len) == (ssize_t)out.len);
        struct pollfd at = {fd, POLLIN, 0};
        int64_t wait_ms = wake_ns == OCS_NEVER ? -1 : (wake_ns - now_ns()) / 1000000 + 1;
        if (poll(&at, 1, (int)wait_ms) <= 0)
            continue;
        ssize_t got = read(fd, bytes, sizeof bytes);
        open = got > 0;
        if (open && emulator->echoes)
            CHECK(write(fd, bytes, (size_t)got) == got);
        if (open)
            ocs_session_take(&session, (struct str){bytes, (size_t)got});
    }
    ocs_session_done(&session);
    close(fd);
}

static void *serve(void *context)
{
    struct emulator *emulator = context;
    for (int fd; (fd = accept(emulator->listener, NULL, NULL)) >= 0;)
        serve_client(emulator, fd);
    return NULL;
}

static void start_emulator(struct emulator *emulator, enum ocs_protocol protocol, char address[256])
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct ocs_settings settings = {.a_ports = SIDE,
                                    .b_ports = SIDE,
                                    .tuning_ns = TUNING_MS * 1000000,
                                    .seed = 7,
                                    .user = emulator->user,
                                    .password = emulator->password};
    socklen_t size = sizeof where;
    emulator->protocol = protocol;
    ocs_init(&emulator->ocs, &settings);
    emulator->ocs.port[STUCK].stuck = true;
    emulator->ocs.port[DARK].dark = true;
    emulator->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(emulator->listener >= 0 && bind(emulator->listener, (struct sockaddr *)&where, size) == 0 &&
          listen(emulator->listener, 4) == 0 &&
          getsockname(emulator->listener, (struct sockaddr *)&where, &size) == 0);
    snprintf(address, 256, "127.0.0.1:%u", ntohs(where.sin_port));
    CHECK(pthread_create(&emulator->thread, NULL, serve, emulator) == 0);
}

static void stop_emulator(struct emulator *emulator)
{
    shutdown(emulator->listener, SHUT_RDWR);
    pthread_join(emulator->thread, NULL);
    close(emulator->listener);
}

/* --- the driver under test -------------------------------------------------------------------------- */

struct subject {
    const char *name;
    const struct phx_switch_driver *driver;
    struct emulator emulator;
    char address[256];
    struct phx_switch *sw;
};

static int open_subject(struct subject *subject, uint32_t side, struct phx_switch_error *error)
{
    struct phx_switch_config config = {subject->address, NULL, NULL, 2000, side, side};
    *error = (struct phx_switch_error){0};
    return subject->driver->open(&config, &subject->sw, error);
}

static bool is_driver(const struct subject *subject, const char *name)
{
    return strcmp(subject->name, name) == 0;
}

/* Each case has a switch of its own that joins nothing. */
static int begin(void **state)
{
    struct subject *subject = *state;
    struct phx_switch_error error;
    static int number;
    CHECK(driver_find(subject->name, &subject->driver, NULL) == 0);
    if (is_driver(subject, "sai")) {
        const char *build = getenv("PHX_BUILD");
        snprintf(subject->address, sizeof subject->address, "%.180s/stub_sai.so?case%d",
                 build ? build : "build", ++number);
    } else {
        start_emulator(&subject->emulator, is_driver(subject, "tl1") ? OCS_TL1 : OCS_SCPI, subject->address);
    }
    if (open_subject(subject, SIDE, &error) < 0) {
        print_error("%s\n", error.message);
        return -1;
    }
    return 0;
}

static int end(void **state)
{
    struct subject *subject = *state;
    subject->driver->close(subject->sw);
    if (!is_driver(subject, "sai"))
        stop_emulator(&subject->emulator);
    return 0;
}

static void expect_joined(struct subject *subject, const struct phx_crossconnect *pairs, uint32_t count)
{
    struct phx_crossconnect now[SIDE];
    struct phx_switch_error error = {0};
    uint32_t now_count = 99;
    if (subject->driver->list(subject->sw, now, SIDE, &now_count, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(now_count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(now[i].a, pairs[i].a);
        assert_int_equal(now[i].b, pairs[i].b);
    }
}

/* Adds pairs, and compares the statuses of the members. */
static void expect_added(struct subject *subject, const struct phx_crossconnect *pairs, uint32_t count,
                         enum phx_batch_mode mode, const int *expected)
{
    struct phx_switch_error error = {0};
    int statuses[SIDE];
    if (subject->driver->add(subject->sw, pairs, count, mode, statuses, &error) < 0)
        fail_msg("%s", error.message);
    for (uint32_t i = 0; i < count; i++)
        if (statuses[i] != expected[i])
            fail_msg("member %u: %d, expected %d: %s", i, statuses[i], expected[i], error.message);
}

static const int all_good[SIDE];

/* --- cases ------------------------------------------------------------------------------------------ */

/* A batch of more members than driver.h allows is refused, and each member has a status. */
static void too_large_a_batch_is_refused(void **state)
{
    enum { TOO_MANY = PHX_SWITCH_PORTS_MAX + 1 };
    static struct phx_crossconnect pairs[TOO_MANY];
    static int statuses[TOO_MANY];
    struct subject *subject = *state;
    struct phx_switch_error error = {0};
    for (uint32_t i = 0; i < TOO_MANY; i++)
        pairs[i] = (struct phx_crossconnect){1, SIDE + 1};
    for (int which = 0; which < 2; which++) {
        memset(statuses, 0x55, sizeof statuses);
        int rc = which ? subject->driver->add(subject->sw, pairs, TOO_MANY, PHX_SWITCH_SAFE, statuses, &error)
                       : subject->driver->remove(subject->sw, pairs, TOO_MANY, statuses, &error);
        assert_int_equal(rc, PHX_SWITCH_INVALID);
        for (uint32_t i = 0; i < TOO_MANY; i++)
            assert_int_equal(statuses[i], PHX_SWITCH_INVALID);
    }
    expect_joined(subject, NULL, 0);
}

static void the_switch_tells_its_size(void **state)
{
    struct subject *subject = *state;
    struct phx_switch_identity identity;
    struct phx_switch_error error;
    assert_int_equal(subject->driver->identify(subject->sw, &identity, &error), PHX_SWITCH_OK);
    assert_int_equal(identity.a_ports, SIDE);
    assert_int_equal(identity.b_ports, SIDE);
    assert_true(identity.vendor[0] && identity.model[0]);
    if (is_driver(subject, "tl1")) /* the size is whatever is expected */
        return;
    subject->driver->close(subject->sw);
    assert_int_equal(open_subject(subject, SIDE - 1, &error), PHX_SWITCH_INVALID);
    assert_non_null(strstr(error.message, "8 and 8 ports: expected 7 and 7"));
    assert_int_equal(open_subject(subject, SIDE, &error), PHX_SWITCH_OK);
}

static void additions_stay_and_are_listed_in_order(void **state)
{
    struct subject *subject = *state;
    const struct phx_crossconnect pairs[] = {PAIR(6, 1), PAIR(1, 7)}, sorted[] = {PAIR(1, 7), PAIR(6, 1)};
    struct phx_crossconnect one;
    struct phx_switch_error error = {0};
    uint32_t count = 77;
    expect_joined(subject, NULL, 0);
    expect_added(subject, pairs, 2, PHX_SWITCH_SAFE, all_good);
    expect_joined(subject, sorted, 2);
    expect_added(subject, pairs, 2, PHX_SWITCH_SAFE, all_good); /* joined already */
    assert_int_equal(subject->driver->list(subject->sw, &one, 1, &count, &error), PHX_SWITCH_INVALID);
    assert_int_equal(count, 77);
    subject->driver->close(subject->sw);
    assert_int_equal(open_subject(subject, SIDE, &error), PHX_SWITCH_OK);
    expect_joined(subject, sorted, 2);
}

static void safe_refuses_and_steal_takes(void **state)
{
    struct subject *subject = *state;
    const struct phx_crossconnect first[] = {PAIR(1, 1), PAIR(2, 2)};
    const struct phx_crossconnect next[] = {PAIR(1, 2), PAIR(5, 5), {1, 2}, PAIR(6, SIDE + 1), {0, SIDE + 1}};
    const int statuses[] = {PHX_SWITCH_BUSY, PHX_SWITCH_OK, PHX_SWITCH_INVALID, PHX_SWITCH_INVALID,
                            PHX_SWITCH_INVALID};
    expect_added(subject, first, 2, PHX_SWITCH_SAFE, all_good);
    expect_added(subject, next, 5, PHX_SWITCH_SAFE, statuses);
    expect_joined(subject, (struct phx_crossconnect[]){PAIR(1, 1), PAIR(2, 2), PAIR(5, 5)}, 3);
    expect_added(subject, next, 1, PHX_SWITCH_STEAL, all_good);
    expect_joined(subject, (struct phx_crossconnect[]){PAIR(1, 2), PAIR(5, 5)}, 2);
}

static void a_stuck_mirror_fails_alone(void **state)
{
    struct subject *subject = *state;
    const struct phx_crossconnect pairs[] = {PAIR(1, 1), PAIR(STUCK, 3), PAIR(6, 6)};
    const int statuses[] = {PHX_SWITCH_OK, PHX_SWITCH_FAILED, PHX_SWITCH_OK};
    expect_added(subject, pairs, 3, PHX_SWITCH_SAFE, statuses);
    expect_joined(subject, (struct phx_crossconnect[]){PAIR(1, 1), PAIR(6, 6)}, 2);
}

/* A pair that a batch names twice ends both times as it stands in the end: refused, or stolen from. */
static void a_repeated_pair_ends_as_its_first(void **state)
{
    struct subject *subject = *state;
    const struct phx_crossconnect joined = PAIR(1, 1),
                                  twice[] = {PAIR(STUCK, 3), PAIR(STUCK, 3), PAIR(5, 5), PAIR(5, 5)};
    const int statuses[] = {PHX_SWITCH_FAILED, PHX_SWITCH_FAILED, PHX_SWITCH_OK, PHX_SWITCH_OK};
    expect_added(subject, &joined, 1, PHX_SWITCH_SAFE, all_good);
    expect_added(subject, twice, 4, PHX_SWITCH_SAFE, statuses);
    const struct phx_crossconnect stolen[] = {PAIR(1, 1), PAIR(1, 2)};
    const int ends[] = {PHX_SWITCH_FAILED, PHX_SWITCH_OK};
    expect_added(subject, stolen, 2, PHX_SWITCH_STEAL, ends);
    expect_joined(subject, (struct phx_crossconnect[]){PAIR(1, 2), PAIR(5, 5)}, 2);
}

static void removals_part_exactly_what_they_name(void **state)
{
    struct subject *subject = *state;
    const struct phx_crossconnect pairs[] = {PAIR(1, 1), PAIR(2, 2)};
    const struct phx_crossconnect parted[] = {PAIR(1, 2), PAIR(2, 2), PAIR(5, 5), {SIDE + 1, 1}};
    const int expected[] = {PHX_SWITCH_ABSENT, PHX_SWITCH_OK, PHX_SWITCH_ABSENT, PHX_SWITCH_INVALID};
    struct phx_switch_error error = {0};
    int statuses[4];
    expect_added(subject, pairs, 2, PHX_SWITCH_SAFE, all_good);
    assert_int_equal(subject->driver->remove(subject->sw, parted, 4, statuses, &error), PHX_SWITCH_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(statuses[i], expected[i]);
    expect_joined(subject, pairs, 1);
}

static void ports_have_peers_and_states(void **state)
{
    struct subject *subject = *state;
    const struct phx_crossconnect pair = PAIR(2, 5);
    struct phx_switch_port ports[2 * SIDE];
    struct phx_switch_error error = {0};
    expect_added(subject, &pair, 1, PHX_SWITCH_SAFE, all_good);
    assert_int_equal(subject->driver->ports(subject->sw, 1, 2 * SIDE, ports, &error), PHX_SWITCH_OK);
    for (uint32_t i = 0; i < 2 * SIDE; i++) {
        uint32_t peer = i == 1 ? SIDE + 5 : i == SIDE + 4 ? 2 : 0;
        assert_int_equal(ports[i].port, i + 1);
        assert_int_equal(ports[i].peer, peer);
        assert_int_equal(ports[i].state, peer ? PHX_PORT_TUNED : PHX_PORT_BLOCKED);
        assert_int_equal(ports[i].shutter_closed, 0);
    }
    assert_int_equal(subject->driver->ports(subject->sw, SIDE + 5, 1, ports, &error), PHX_SWITCH_OK);
    assert_true(ports[0].port == SIDE + 5 && ports[0].peer == 2);
    assert_int_equal(subject->driver->ports(subject->sw, 0, 1, ports, &error), PHX_SWITCH_INVALID);
    assert_int_equal(subject->driver->ports(subject->sw, 2, 2 * SIDE, ports, &error), PHX_SWITCH_INVALID);
    assert_int_equal(subject->driver->ports(subject->sw, UINT32_MAX, 2, ports, &error), PHX_SWITCH_INVALID);
}

/* TL1 measures light; the others say that they do not know. */
static void power_is_measured_or_unknown(void **state)
{
    struct subject *subject = *state;
    const struct phx_crossconnect pair = PAIR(2, 5);
    struct phx_switch_port ports[2 * SIDE];
    struct phx_switch_error error = {0};
    bool measures = is_driver(subject, "tl1");
    expect_added(subject, &pair, 1, PHX_SWITCH_SAFE, all_good);
    assert_int_equal(subject->driver->ports(subject->sw, 1, 2 * SIDE, ports, &error), PHX_SWITCH_OK);
    for (uint32_t i = 0; i < 2 * SIDE && !measures; i++)
        assert_int_equal(ports[i].power_mdbm, PHX_POWER_UNKNOWN);
    if (!measures)
        return;
    assert_int_equal(ports[0].power_mdbm, 0);         /* light enters A ports with 0 dBm */
    assert_int_equal(ports[SIDE].power_mdbm, -60000); /* 1B is dark */
    assert_true(ports[SIDE + 4].power_mdbm >= -2000 && ports[SIDE + 4].power_mdbm <= -800);
}

static void shutters_block_what_is_joined(void **state)
{
    struct subject *subject = *state;
    const struct phx_crossconnect pair = PAIR(2, 5), behind = PAIR(7, 8);
    const uint32_t shut[] = {2, 7}, odd[] = {1, 2 * SIDE + 1};
    struct phx_switch_port ports[SIDE];
    struct phx_switch_error error = {0};
    if (is_driver(subject, "scpi")) {
        assert_null(subject->driver->shutter);
        return;
    }
    expect_added(subject, &pair, 1, PHX_SWITCH_SAFE, all_good);
    assert_int_equal(subject->driver->shutter(subject->sw, shut, 2, 1, &error), PHX_SWITCH_OK);
    assert_int_equal(subject->driver->ports(subject->sw, 1, SIDE, ports, &error), PHX_SWITCH_OK);
    for (uint32_t i = 0; i < SIDE; i++)
        assert_int_equal(ports[i].shutter_closed, i == 1 || i == 6);
    assert_true(ports[1].state == PHX_PORT_BLOCKED && ports[1].peer == SIDE + 5); /* joined all the same */
    expect_added(subject, &behind, 1, PHX_SWITCH_SAFE, all_good); /* mirrors move behind a shutter as well */
    assert_int_equal(subject->driver->shutter(subject->sw, shut, 1, 0, &error), PHX_SWITCH_OK);
    assert_int_equal(subject->driver->shutter(subject->sw, odd, 2, 1, &error), PHX_SWITCH_INVALID);
    assert_int_equal(subject->driver->shutter(subject->sw, odd, 0, 1, &error), PHX_SWITCH_OK);
    assert_int_equal(subject->driver->ports(subject->sw, 1, SIDE, ports, &error), PHX_SWITCH_OK);
    assert_true(ports[1].state == PHX_PORT_TUNED && !ports[1].shutter_closed);
    assert_true(!ports[0].shutter_closed && ports[6].shutter_closed);
}

static void alarms_of_the_switch_are_told_most_severe_first(void **state)
{
    struct subject *subject = *state;
    const struct phx_crossconnect pairs[] = {PAIR(DARK, 5), PAIR(STUCK, 6)};
    const int statuses[] = {PHX_SWITCH_OK, PHX_SWITCH_FAILED};
    struct phx_switch_alarm alarms[4];
    struct phx_switch_error error = {0};
    uint32_t count = 9;
    if (!is_driver(subject, "tl1")) {
        assert_null(subject->driver->alarms);
        return;
    }
    assert_int_equal(subject->driver->alarms(subject->sw, alarms, 4, &count, &error), PHX_SWITCH_OK);
    assert_int_equal(count, 0);
    expect_added(subject, pairs, 2, PHX_SWITCH_SAFE, statuses);
    assert_int_equal(subject->driver->alarms(subject->sw, alarms, 4, &count, &error), PHX_SWITCH_OK);
    assert_int_equal(count, 2);
    assert_true(alarms[0].severity == PHX_ALARM_MAJOR && alarms[0].port == STUCK);
    assert_string_equal(alarms[0].condition, "MIRROR");
    assert_true(alarms[1].severity == PHX_ALARM_MINOR && alarms[1].port == DARK);
    assert_string_equal(alarms[1].condition, "LOS");
    assert_int_equal(subject->driver->alarms(subject->sw, alarms, 1, &count, &error), PHX_SWITCH_OK);
    assert_int_equal(count, 1);
    assert_int_equal(alarms[0].severity, PHX_ALARM_MAJOR); /* the most severe one, wherever it stands */
}

static void loss_is_the_factorys_or_absent(void **state)
{
    struct subject *subject = *state;
    const struct phx_crossconnect pair = PAIR(2, 1);
    struct phx_switch_loss loss;
    struct phx_switch_error error = {0};
    if (!is_driver(subject, "sai")) {
        assert_null(subject->driver->loss);
        return;
    }
    assert_int_equal(subject->driver->loss(subject->sw, &pair, 1, 193500, &loss, &error), PHX_SWITCH_OK);
    assert_true(loss.a == 2 && loss.b == SIDE + 1 && loss.loss_mdb == 1230);
}

/* --- logins of TL1 -------------------------------------------------------------------------------------- */

/* Opens a session with a switch of its own that wants admin's login; returns the status. */
static int log_in(const char *user, const char *secret, bool echoes, struct phx_switch_error *error)
{
    struct emulator emulator = {.echoes = echoes, .user = "admin", .password = "right"};
    char address[256];
    struct phx_switch *sw = NULL;
    *error = (struct phx_switch_error){0};
    start_emulator(&emulator, OCS_TL1, address);
    struct phx_switch_config config = {address, user, secret, 2000, SIDE, SIDE};
    int rc = driver_tl1.open(&config, &sw, error);
    if (rc == PHX_SWITCH_OK)
        driver_tl1.close(sw);
    stop_emulator(&emulator);
    return rc;
}

static void a_login_opens_the_session(void **state)
{
    struct phx_switch_error error;
    assert_int_equal(log_in("admin", "right", false, &error), PHX_SWITCH_OK);
    assert_int_equal(log_in(NULL, NULL, false, &error), PHX_SWITCH_DENIED);
    assert_non_null(strstr(error.message, "PLNA, Login not active"));
    assert_int_equal(log_in("admin", "ri;ght", false, &error), PHX_SWITCH_INVALID);
    assert_null(strstr(error.message, "ri;ght"));
}

/* Nor is a password told where a switch repeats the command. */
static void a_refused_login_is_told_without_the_password(void **state)
{
    struct phx_switch_error error;
    assert_int_equal(log_in("admin", "wrong", false, &error), PHX_SWITCH_DENIED);
    assert_string_equal(error.message, "the switch refuses the login of admin: PIUI");
    assert_int_equal(log_in("root", NULL, false, &error), PHX_SWITCH_DENIED);
    assert_string_equal(error.message, "the switch refuses the login of root: PIUI");
    assert_int_equal(log_in("admin", "wrong", true, &error), PHX_SWITCH_GARBLED);
    assert_string_equal(error.message, "the switch answers the login of admin in another form");
}

#define CASE(function, subject)                                                                              \
    {                                                                                                        \
#function, function, begin, end, subject                                                             \
    }
#define CASES(subject)                                                                                       \
    CASE(too_large_a_batch_is_refused, subject), CASE(the_switch_tells_its_size, subject),                   \
        CASE(additions_stay_and_are_listed_in_order, subject), CASE(safe_refuses_and_steal_takes, subject),  \
        CASE(a_stuck_mirror_fails_alone, subject), CASE(removals_part_exactly_what_they_name, subject),      \
        CASE(ports_have_peers_and_states, subject), CASE(power_is_measured_or_unknown, subject),             \
        CASE(shutters_block_what_is_joined, subject),                                                        \
        CASE(alarms_of_the_switch_are_told_most_severe_first, subject),                                      \
        CASE(loss_is_the_factorys_or_absent, subject), CASE(a_repeated_pair_ends_as_its_first, subject)

int main(void)
{
    static struct subject scpi = {.name = "scpi"}, tl1 = {.name = "tl1"}, sai = {.name = "sai"};
    const struct CMUnitTest scpi_tests[] = {CASES(&scpi)}, tl1_tests[] = {CASES(&tl1)},
                            sai_tests[] = {CASES(&sai)};
    const struct CMUnitTest login_tests[] = {
        cmocka_unit_test(a_login_opens_the_session),
        cmocka_unit_test(a_refused_login_is_told_without_the_password),
    };
    int failed = cmocka_run_group_tests_name("tl1 logins", login_tests, NULL, NULL);
    failed += cmocka_run_group_tests_name("scpi", scpi_tests, NULL, NULL);
    failed += cmocka_run_group_tests_name("tl1", tl1_tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("sai", sai_tests, NULL, NULL);
}
