/* Switches behind a SAI library (stub_sai.c), through the driver's table: ports that are found or created,
 * batches and what a switch refuses, shutters, the factory's data, and libraries that answer nonsense. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/check.h"
#include "host/fabric/internal.h"

enum { SIDE = 8 };

static char built[4096], folder[] = "/tmp/phx-sai-XXXXXX";

/* Writes the address of a library that this process has not loaded yet: a copy of the stub. */
static void fresh_address(char address[256], const char *settings)
{
    static int number;
    char path[128], bytes[4096];
    snprintf(path, sizeof path, "%s/libsai%d.so", folder, ++number);
    FILE *from = fopen(built, "rb"), *to = fopen(path, "wb");
    CHECK(from && to);
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, from)) > 0;)
        CHECK(fwrite(bytes, 1, got, to) == got);
    fclose(from);
    CHECK(fclose(to) == 0);
    snprintf(address, 256, "%s%s", path, settings);
}

static const struct phx_switch_driver *driver_of(const char *name)
{
    const struct phx_switch_driver *driver;
    assert_int_equal(driver_find(name, &driver, NULL), 0);
    return driver;
}

static int open_sized(const char *address, uint32_t side, struct phx_switch **ret_switch,
                      struct phx_switch_error *error)
{
    struct phx_switch_config config = {address, NULL, NULL, 100, side, side};
    *error = (struct phx_switch_error){0};
    return driver_of("sai")->open(&config, ret_switch, error);
}

static struct phx_switch *open_switch(const char *address)
{
    struct phx_switch *sw = NULL;
    struct phx_switch_error error;
    if (open_sized(address, SIDE, &sw, &error) < 0)
        fail_msg("%s", error.message);
    return sw;
}

static struct phx_switch *open_fresh(const char *settings)
{
    char address[256];
    fresh_address(address, settings);
    return open_switch(address);
}

static void expect_joined(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count)
{
    struct phx_crossconnect now[PHX_SWITCH_PORTS_MAX];
    struct phx_switch_error error = {0};
    uint32_t now_count;
    if (driver_of("sai")->list(sw, now, PHX_SWITCH_PORTS_MAX, &now_count, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(now_count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(now[i].a, pairs[i].a);
        assert_int_equal(now[i].b, pairs[i].b);
    }
}

/* Pairs of an A port and a B port, by their numbers on the side. */
#define PAIR(a, b) ((struct phx_crossconnect){(a), SIDE + (b)})

static void ports_are_created_once_and_the_switch_tells_what_it_is(void **state)
{
    char address[256];
    struct phx_switch_identity identity;
    struct phx_switch_error error;
    struct phx_switch *sw;
    const struct phx_switch_driver *driver = driver_of("sai");
    fresh_address(address, "?ocs0");
    assert_int_equal(open_sized(address, 0, &sw, &error), PHX_SWITCH_INVALID); /* how many to create? */
    assert_non_null(strstr(error.message, "0 A ports"));
    sw = open_switch(address);
    assert_int_equal(driver->identify(sw, &identity, &error), PHX_SWITCH_OK);
    assert_int_equal(identity.a_ports, SIDE);
    assert_int_equal(identity.b_ports, SIDE);
    assert_string_equal(identity.serial, "ocs0");
    assert_string_equal(identity.firmware, "2.7");
    assert_non_null(strstr(identity.vendor, "libsai"));
    driver->close(sw);
    assert_int_equal(open_sized(address, 0, &sw, &error), PHX_SWITCH_OK);
    assert_int_equal(driver->identify(sw, &identity, &error), PHX_SWITCH_OK);
    assert_int_equal(identity.a_ports, SIDE); /* found, in place of created again */
    driver->close(sw);
    assert_int_equal(open_sized(address, SIDE - 1, &sw, &error), PHX_SWITCH_INVALID);
    assert_non_null(strstr(error.message, "has 8 and 8 ports: expected 7 and 7"));
    assert_null(driver->alarms); /* SAI has none */
}

static void what_is_joined_outlives_a_session(void **state)
{
    char address[256];
    const struct phx_switch_driver *driver = driver_of("sai");
    struct phx_crossconnect pairs[] = {PAIR(2, 7), PAIR(1, 1)}, sorted[] = {PAIR(1, 1), PAIR(2, 7)};
    struct phx_switch_error error = {0};
    int statuses[2];
    fresh_address(address, "?ocs0&PORTS=8");
    struct phx_switch *sw = open_switch(address);
    assert_int_equal(driver->add(sw, pairs, 2, PHX_SWITCH_SAFE, statuses, &error), PHX_SWITCH_OK);
    assert_true(statuses[0] == PHX_SWITCH_OK && statuses[1] == PHX_SWITCH_OK);
    driver->close(sw);
    sw = open_switch(address);
    expect_joined(sw, sorted, 2);
    assert_int_equal(driver->add(sw, pairs, 1, PHX_SWITCH_SAFE, statuses, &error), PHX_SWITCH_OK);
    assert_int_equal(statuses[0], PHX_SWITCH_OK); /* joined already */
    struct phx_crossconnect parted[] = {PAIR(1, 1), PAIR(1, 2), {SIDE + 1, 1}};
    int ends[3];
    assert_int_equal(driver->remove(sw, parted, 3, ends, &error), PHX_SWITCH_OK);
    assert_int_equal(ends[0], PHX_SWITCH_OK);
    assert_int_equal(ends[1], PHX_SWITCH_ABSENT);
    assert_int_equal(ends[2], PHX_SWITCH_INVALID);
    expect_joined(sw, &sorted[1], 1);
    driver->close(sw);
}

static void a_busy_port_is_refused_or_stolen(void **state)
{
    const struct phx_switch_driver *driver = driver_of("sai");
    struct phx_switch *sw = open_fresh("?PORTS=8");
    struct phx_crossconnect first[] = {PAIR(1, 1), PAIR(2, 2)};
    struct phx_crossconnect next[] = {PAIR(1, 2), PAIR(5, 5), PAIR(1, SIDE + 1)};
    struct phx_switch_error error = {0};
    int statuses[3];
    assert_int_equal(driver->add(sw, first, 2, PHX_SWITCH_SAFE, statuses, &error), PHX_SWITCH_OK);
    assert_int_equal(driver->add(sw, next, 3, PHX_SWITCH_SAFE, statuses, &error), PHX_SWITCH_OK);
    assert_int_equal(statuses[0], PHX_SWITCH_BUSY);
    assert_int_equal(statuses[1], PHX_SWITCH_OK);
    assert_int_equal(statuses[2], PHX_SWITCH_INVALID);
    expect_joined(sw, (struct phx_crossconnect[]){PAIR(1, 1), PAIR(2, 2), PAIR(5, 5)}, 3);
    assert_int_equal(driver->add(sw, next, 1, PHX_SWITCH_STEAL, statuses, &error), PHX_SWITCH_OK);
    assert_int_equal(statuses[0], PHX_SWITCH_OK); /* 1A-1B and 2A-2B went first */
    expect_joined(sw, (struct phx_crossconnect[]){PAIR(1, 2), PAIR(5, 5)}, 2);
    struct phx_crossconnect twice[] = {PAIR(1, 3), PAIR(1, 4)}; /* the later one stands */
    error = (struct phx_switch_error){0};
    assert_int_equal(driver->add(sw, twice, 2, PHX_SWITCH_STEAL, statuses, &error), PHX_SWITCH_OK);
    assert_string_equal(error.message, "");
    assert_int_equal(statuses[0], PHX_SWITCH_FAILED);
    assert_int_equal(statuses[1], PHX_SWITCH_OK);
    expect_joined(sw, (struct phx_crossconnect[]){PAIR(1, 4), PAIR(5, 5)}, 2);
    driver->close(sw);
}

/* SAI lets its user name the B port first. */
static void a_pair_the_other_way_round_is_listed(void **state)
{
    const struct phx_switch_driver *driver = driver_of("sai");
    struct phx_switch *sw = open_fresh("?PORTS=8&FAULT=reversed");
    struct phx_crossconnect pair = PAIR(1, 2);
    struct phx_switch_error error = {0};
    int status;
    assert_int_equal(driver->add(sw, &pair, 1, PHX_SWITCH_SAFE, &status, &error), PHX_SWITCH_OK);
    expect_joined(sw, &pair, 1);
    driver->close(sw);
}

/* 3A fails after it was joined, 4A is refused at once: the members around them are joined all the same,
 * whether the library goes on after a failure, stops, or has no bulk calls. */
static void a_failing_member_does_not_stop_the_others(void **state)
{
    static const char *const settings[] = {"?PORTS=8", "?PORTS=8&FAULT=stops", "?PORTS=8&FAULT=no-bulk"};
    const struct phx_switch_driver *driver = driver_of("sai");
    struct phx_crossconnect pairs[] = {PAIR(1, 1), PAIR(3, 3), PAIR(4, 4), PAIR(6, 6)};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct phx_switch *sw = open_fresh(settings[i]);
        struct phx_switch_error error = {0};
        int statuses[4];
        assert_int_equal(driver->add(sw, pairs, 4, PHX_SWITCH_SAFE, statuses, &error), PHX_SWITCH_OK);
        assert_int_equal(statuses[0], PHX_SWITCH_OK);
        assert_int_equal(statuses[1], PHX_SWITCH_FAILED);
        assert_int_equal(statuses[2], PHX_SWITCH_FAILED);
        assert_int_equal(statuses[3], PHX_SWITCH_OK);
        assert_non_null(strstr(error.message, "create_ocs_cross_connect"));
        assert_non_null(strstr(error.message, "4A-4B: SAI_STATUS_INSUFFICIENT_RESOURCES (-4)"));
        expect_joined(sw, (struct phx_crossconnect[]){PAIR(1, 1), PAIR(6, 6)}, 2);
        driver->close(sw);
    }
}

static void mirrors_that_do_not_settle_are_taken_back(void **state)
{
    const struct phx_switch_driver *driver = driver_of("sai");
    struct phx_switch *sw = open_fresh("?PORTS=8&FAULT=slow");
    struct phx_crossconnect pair = PAIR(1, 1);
    struct phx_switch_error error = {0};
    int status;
    assert_int_equal(driver->add(sw, &pair, 1, PHX_SWITCH_SAFE, &status, &error), PHX_SWITCH_OK);
    assert_int_equal(status, PHX_SWITCH_FAILED);
    assert_non_null(strstr(error.message, "1A-1B: the mirrors did not settle"));
    expect_joined(sw, NULL, 0);
    driver->close(sw);
}

static void shutters_and_states_of_ports_are_those_of_sai(void **state)
{
    const struct phx_switch_driver *driver = driver_of("sai");
    struct phx_switch *sw = open_fresh("?PORTS=8");
    struct phx_crossconnect pair = PAIR(2, 5);
    struct phx_switch_port ports[2 * SIDE];
    struct phx_switch_error error = {0};
    uint32_t shut[] = {2}, odd[] = {1, 2 * SIDE + 1};
    int status;
    assert_int_equal(driver->add(sw, &pair, 1, PHX_SWITCH_SAFE, &status, &error), PHX_SWITCH_OK);
    assert_int_equal(driver->shutter(sw, shut, 1, 1, &error), PHX_SWITCH_OK);
    assert_int_equal(driver->ports(sw, 1, 2 * SIDE, ports, &error), PHX_SWITCH_OK);
    assert_int_equal(ports[0].state, PHX_PORT_BLOCKED);
    assert_int_equal(ports[1].state, PHX_PORT_BLOCKED);
    assert_int_equal(ports[1].peer, SIDE + 5);
    assert_true(ports[1].shutter_closed && !ports[SIDE + 4].shutter_closed);
    assert_int_equal(ports[SIDE + 4].state, PHX_PORT_TUNED);
    assert_int_equal(ports[SIDE + 4].port, SIDE + 5);
    assert_int_equal(ports[SIDE + 4].power_mdbm, PHX_POWER_UNKNOWN);
    assert_int_equal(driver->shutter(sw, shut, 1, 0, &error), PHX_SWITCH_OK);
    assert_int_equal(driver->ports(sw, 2, 1, ports, &error), PHX_SWITCH_OK);
    assert_true(ports[0].state == PHX_PORT_TUNED && !ports[0].shutter_closed);
    assert_int_equal(driver->shutter(sw, odd, 2, 1, &error), PHX_SWITCH_INVALID);
    assert_int_equal(driver->ports(sw, 1, 1, ports, &error), PHX_SWITCH_OK);
    assert_false(ports[0].shutter_closed); /* nothing of a request that is wrong is done */
    assert_int_equal(driver->ports(sw, 2, 2 * SIDE, ports, &error), PHX_SWITCH_INVALID);
    assert_int_equal(driver->ports(sw, UINT32_MAX, 2, ports, &error), PHX_SWITCH_INVALID);
    driver->close(sw);

    sw = open_fresh("?PORTS=8&FAULT=no-override"); /* a library without overrides has no shutters */
    assert_int_equal(driver->shutter(sw, shut, 1, 1, &error), PHX_SWITCH_UNSUPPORTED);
    assert_non_null(strstr(error.message, "2A: SAI_STATUS_ATTR_NOT_IMPLEMENTED_0 (-196608)"));
    assert_int_equal(driver->ports(sw, 1, 1, ports, &error), PHX_SWITCH_OK);
    driver->close(sw);
    sw = open_fresh("?PORTS=8&FAULT=odd-status");
    assert_int_equal(driver->ports(sw, 1, 1, ports, &error), PHX_SWITCH_OK);
    assert_int_equal(ports[0].state, PHX_PORT_UNKNOWN);
    driver->close(sw);
}

static void the_loss_nearest_to_a_frequency_is_given(void **state)
{
    const struct phx_switch_driver *driver = driver_of("sai");
    struct phx_switch *sw = open_fresh("?PORTS=8");
    struct phx_crossconnect pairs[] = {PAIR(2, 1), PAIR(1, 2)}, unknown[] = {PAIR(1, 1), PAIR(5, 5)};
    struct phx_switch_loss losses[2] = {{.a = 99}};
    struct phx_switch_error error = {0};
    assert_int_equal(driver->loss(sw, unknown, 2, 193400, losses, &error), PHX_SWITCH_UNSUPPORTED);
    assert_non_null(strstr(error.message, "5A-5B"));
    assert_int_equal(losses[0].a, 99);
    assert_int_equal(driver->loss(sw, pairs, 2, 193400, losses, &error), PHX_SWITCH_OK);
    assert_int_equal(losses[0].a, 2);
    assert_int_equal(losses[0].b, SIDE + 1);
    assert_int_equal(losses[0].frequency_ghz, 193500);
    assert_int_equal(losses[0].temperature_mc, 25000);
    assert_int_equal(losses[0].loss_mdb, 1230);
    assert_int_equal(losses[0].accuracy_mdb, 50);
    assert_int_equal(driver->loss(sw, pairs, 1, 230000, losses, &error), PHX_SWITCH_OK);
    assert_int_equal(losses[0].loss_mdb, 1450);
    driver->close(sw);
    sw = open_fresh("?PORTS=8&FAULT=odd-lists");
    assert_int_equal(driver->loss(sw, pairs, 1, 230000, losses, &error), PHX_SWITCH_GARBLED);
    driver->close(sw);
}

static void a_library_holds_several_switches_with_settings_of_their_own(void **state)
{
    char address[256], other[256], again[256], absent[256];
    const struct phx_switch_driver *driver = driver_of("sai");
    struct phx_crossconnect pair = PAIR(1, 1);
    struct phx_switch_error error;
    struct phx_switch *third;
    int status;
    fresh_address(address, "");
    snprintf(other, sizeof other, "%.200s?ocs1&FAULT=no-override", address);
    snprintf(again, sizeof again, "%.200s?ocs1&PORTS=4", address);
    snprintf(absent, sizeof absent, "%.200s?absent", address);
    struct phx_switch *one = open_switch(address), *two = open_switch(other);
    struct phx_switch_port port;
    uint32_t shut = 2;
    assert_int_equal(driver->shutter(one, &shut, 1, 1, &error), PHX_SWITCH_OK);
    assert_int_equal(driver->shutter(two, &shut, 1, 1, &error),
                     PHX_SWITCH_UNSUPPORTED); /* as its setting says */
    assert_int_equal(driver->ports(one, 2, 1, &port, &error), PHX_SWITCH_OK);
    assert_true(port.shutter_closed);
    assert_int_equal(driver->add(two, &pair, 1, PHX_SWITCH_SAFE, &status, &error), PHX_SWITCH_OK);
    expect_joined(one, NULL, 0);
    expect_joined(two, &pair, 1);
    assert_int_equal(open_sized(again, SIDE, &third, &error), PHX_SWITCH_INVALID);
    assert_non_null(strstr(error.message, "has been opened with other settings"));
    assert_int_equal(open_sized(absent, SIDE, &third, &error), PHX_SWITCH_FAILED);
    assert_non_null(strstr(error.message, "create_switch(): absent: SAI_STATUS_INSUFFICIENT_RESOURCES (-4)"));
    driver->close(one);
    driver->close(two);
}

static void *join_one(void *context)
{
    struct phx_crossconnect pair = PAIR(1, 1);
    struct phx_switch_error error = {0};
    int status = 7;
    int rc = driver_of("sai")->add(context, &pair, 1, PHX_SWITCH_SAFE, &status, &error);
    return (void *)(intptr_t)(rc < 0 ? rc : status);
}

/* A call of one switch hangs: another switch of the library is refused after its timeout, and answers
 * later. */
static void a_library_that_hangs_is_waited_for_no_longer_than_the_timeout(void **state)
{
    char address[256], other[256], gate[64], in[80], out[80], settings[128], byte = 'x';
    const struct phx_switch_driver *driver = driver_of("sai");
    struct phx_switch_error error = {0};
    struct phx_crossconnect pair;
    pthread_t thread;
    uint32_t count;
    void *status;
    snprintf(gate, sizeof gate, "%s/gate", folder);
    snprintf(in, sizeof in, "%s.in", gate);
    snprintf(out, sizeof out, "%s.out", gate);
    assert_true(mkfifo(in, 0600) == 0 && mkfifo(out, 0600) == 0);
    fresh_address(address, "");
    snprintf(settings, sizeof settings, "?ocs1&GATE=%s", gate);
    snprintf(other, sizeof other, "%.120s%s", address, settings);
    struct phx_switch *free_one = open_switch(address), *hangs = open_switch(other);
    assert_int_equal(pthread_create(&thread, NULL, join_one, hangs), 0);
    int in_fd = open(in, O_RDONLY | O_CLOEXEC), out_fd = open(out, O_WRONLY | O_CLOEXEC);
    assert_int_equal(read(in_fd, &byte, 1), 1); /* the library is inside of the call */
    assert_int_equal(driver->list(free_one, &pair, 1, &count, &error), PHX_SWITCH_TIMEOUT);
    assert_non_null(strstr(error.message, "busy with another call for 100 ms"));
    struct phx_switch_config config = {other, NULL, NULL, 50, SIDE, SIDE};
    struct phx_switch *third;
    assert_int_equal(driver->open(&config, &third, &error), PHX_SWITCH_TIMEOUT);
    assert_int_equal(write(out_fd, &byte, 1), 1);
    pthread_join(thread, &status);
    assert_null(status);
    expect_joined(free_one, NULL, 0);
    close(in_fd);
    close(out_fd);
    unlink(in);
    unlink(out);
    driver->close(free_one);
    driver->close(hangs);
}

static void *join_and_part(void *context)
{
    const struct phx_switch_driver *driver = driver_of("sai");
    struct phx_crossconnect pairs[] = {PAIR(1, 1), PAIR(2, 2), PAIR(6, 6)};
    struct phx_switch_error error = {0};
    int statuses[3];
    intptr_t bad = 0;
    for (int i = 0; i < 20; i++) {
        bad += driver->add(context, pairs, 3, PHX_SWITCH_SAFE, statuses, &error) < 0 || statuses[2] < 0;
        bad += driver->remove(context, pairs, 3, statuses, &error) < 0 || statuses[2] < 0;
    }
    return (void *)bad;
}

static void calls_to_a_library_come_one_at_a_time(void **state)
{
    char address[256], other[256];
    const struct phx_switch_driver *driver = driver_of("sai");
    struct phx_switch_port port;
    struct phx_switch_error error;
    pthread_t threads[2];
    fresh_address(address, "");
    snprintf(other, sizeof other, "%.200s?ocs1", address);
    struct phx_switch *switches[2] = {open_switch(address), open_switch(other)};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, join_and_part, switches[i]), 0);
    for (int i = 0; i < 2; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
    assert_int_equal(driver->ports(switches[0], 5, 1, &port, &error), PHX_SWITCH_OK);
    assert_int_equal(port.state, PHX_PORT_BLOCKED); /* FAILED: the stub saw two calls at once */
    driver->close(switches[0]);
    driver->close(switches[1]);
}

static void libraries_that_lack_something_are_refused_by_name(void **state)
{
    static const struct {
        const char *settings;
        enum phx_switch_status status;
        const char *why;
    } wrong[] = {
        {"?FAULT=init", PHX_SWITCH_FAILED, "sai_api_initialize(): SAI_STATUS_FAILURE (-1)"},
        {"?FAULT=no-ocs", PHX_SWITCH_UNSUPPORTED,
         "sai_api_query(): SAI_API_OCS: SAI_STATUS_NOT_IMPLEMENTED (-15)"},
        {"?FAULT=null-ocs", PHX_SWITCH_GARBLED,
         "sai_api_query(): SAI_API_OCS: the library returned no table"},
        {"?FAULT=poor-ocs", PHX_SWITCH_UNSUPPORTED, "its tables lack a function"},
        {"?PORTS=8&FAULT=odd-name", PHX_SWITCH_GARBLED, "get_ocs_port_attribute(): a port is called \"1Z\""},
        {"?PORTS=8&FAULT=long-name", PHX_SWITCH_GARBLED, "the name of a port has 4000000000 bytes"},
        {"?ocs0&init", PHX_SWITCH_INVALID, "\"init\": expected NAME=VALUE"},
        {"?ocs0&PORTS=8&PORTS=9", PHX_SWITCH_INVALID, "\"PORTS=9\": the setting is given twice"},
    };
    char address[256], text[PHX_SWITCH_MESSAGE_MAX];
    struct phx_switch_error error;
    struct phx_switch *sw;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fresh_address(address, wrong[i].settings);
        for (int tries = 0; tries < 2; tries++) { /* a second try says the same */
            assert_int_equal(open_sized(address, SIDE, &sw, &error), wrong[i].status);
            if (!strstr(error.message, wrong[i].why))
                fail_msg("\"%s\": expected \"%s\"", error.message, wrong[i].why);
        }
    }
    fresh_address(address, "?FAULT=init"); /* settings that have been corrected are taken */
    assert_int_equal(open_sized(address, SIDE, &sw, &error), PHX_SWITCH_FAILED);
    *strchr(address, '?') = 0;
    driver_of("sai")->close(open_switch(address));
    snprintf(text, sizeof text, "%.200s/nowhere.so", folder);
    assert_int_equal(open_sized(text, SIDE, &sw, &error), PHX_SWITCH_INVALID);
    assert_non_null(strstr(error.message, "nowhere.so"));
    assert_int_equal(open_sized("?ocs0", SIDE, &sw, &error), PHX_SWITCH_INVALID);
    char *slash = strrchr(built, '/');
    snprintf(address, sizeof address, "%.*s/stub_switch.so", (int)(slash - built), built);
    assert_int_equal(open_sized(address, SIDE, &sw, &error), PHX_SWITCH_UNSUPPORTED);
    assert_non_null(
        strstr(error.message, "stub_switch.so: no SAI library: it has no symbol sai_api_initialize"));
}

static void nonsense_is_garbled_and_named(void **state)
{
    static const struct {
        const char *settings, *why;
    } wrong[] = {
        {"?PORTS=8&FAULT=many", "sai_get_object_key(): the library lists 4000000000 objects"},
        {"?PORTS=8&FAULT=silent",
         "create_ocs_cross_connects(): the library reports success without a status"},
        {"?PORTS=8&FAULT=no-id", "create_ocs_cross_connects(): the library reports success without a status"},
        {"?PORTS=8&FAULT=odd-pair", "get_ocs_cross_connect_attribute(): the switch joins ports 0 and 0"},
    };
    const struct phx_switch_driver *driver = driver_of("sai");
    struct phx_crossconnect pair = PAIR(1, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct phx_switch *sw = open_fresh(wrong[i].settings);
        struct phx_switch_error error = {0};
        int status = 7, rc = driver->add(sw, &pair, 1, PHX_SWITCH_SAFE, &status, &error);
        if (rc == PHX_SWITCH_OK) /* the switch is odd only once something is joined */
            rc = driver->remove(sw, &pair, 1, &status, &error);
        assert_int_equal(rc, PHX_SWITCH_GARBLED);
        assert_int_equal(status, PHX_SWITCH_GARBLED);
        if (!strstr(error.message, wrong[i].why))
            fail_msg("\"%s\": expected \"%s\"", error.message, wrong[i].why);
        assert_non_null(strstr(error.message, "libsai"));
        driver->close(sw);
    }
}

static int make_folder(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char path[128];
    for (int number = 1; number < 100; number++) {
        snprintf(path, sizeof path, "%s/libsai%d.so", folder, number);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const char *build = getenv("PHX_BUILD");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_are_created_once_and_the_switch_tells_what_it_is),
        cmocka_unit_test(what_is_joined_outlives_a_session),
        cmocka_unit_test(a_busy_port_is_refused_or_stolen),
        cmocka_unit_test(a_pair_the_other_way_round_is_listed),
        cmocka_unit_test(a_failing_member_does_not_stop_the_others),
        cmocka_unit_test(mirrors_that_do_not_settle_are_taken_back),
        cmocka_unit_test(shutters_and_states_of_ports_are_those_of_sai),
        cmocka_unit_test(the_loss_nearest_to_a_frequency_is_given),
        cmocka_unit_test(a_library_holds_several_switches_with_settings_of_their_own),
        cmocka_unit_test(a_library_that_hangs_is_waited_for_no_longer_than_the_timeout),
        cmocka_unit_test(calls_to_a_library_come_one_at_a_time),
        cmocka_unit_test(libraries_that_lack_something_are_refused_by_name),
        cmocka_unit_test(nonsense_is_garbled_and_named),
    };
    snprintf(built, sizeof built, "%s/stub_sai.so", build ? build : "build");
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
