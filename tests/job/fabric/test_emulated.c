/* The driver of emulated chips against the emulator on real sockets, in all of its forms: one emulator for a
 * cube, one for each machine, and the same over links that damage frames. What it shows, one session over all
 * machines, light that goes, and clients, machines and switches that are broken or gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <pthread.h>

#include "base/arena.h"
#include "job/fabric/chipwire.h"
#include "job/fabric/internal.h"
#include "sim/fabric/chips_serve.h"
#include "sim/fabric/light_serve.h"
#include "sim/fabric/machine.h"
#include "sim/fabric/machinewire.h"

enum { MEMORY = 64 << 10, LENGTH = 10000 };
#define DRIVER (&fabric_emulated)

enum form { ONE_POD, MACHINES, BAD_MACHINES };

/* An emulated cube whose switches join its own faces, served by a thread. */
struct bed {
    enum form form;
    char folder[64];
    struct chips_serve
        *serve; /* of the pod; NULL: each machine has an emulator, and the switches give light */
    struct light_serve *light;
    struct machine *emulators[CUBE_MACHINES];
    struct ocs ocs[POD_SWITCHES];
    pthread_t thread;
    int wake[2], told[2];
    struct phx_chips *machines[CUBE_MACHINES];
};

/* The orders to the thread: one byte for what, one for which. */
enum { ORDER_END = 'q', ORDER_SWITCH_DIES = 's', ORDER_KILL = 'k', ORDER_REVIVE = 'r' };

static void start_emulator(struct bed *bed, uint32_t machine)
{
    struct machine_settings settings = {.network = bed->folder,
                                        .machine = machine,
                                        .memory_bytes = MEMORY,
                                        .loss_ppm = bed->form == BAD_MACHINES ? 20000 : 0};
    assert_int_equal(machine_open(&settings, &bed->emulators[machine], NULL), 0);
}

static void follow_switch(struct bed *bed, uint32_t number)
{
    if (bed->serve)
        chips_serve_follow(bed->serve, number, &bed->ocs[number]);
    else
        light_serve_follow(bed->light, number, &bed->ocs[number]);
}

static void carry_out_order(struct bed *bed, const char order[2])
{
    uint32_t which = (uint8_t)order[1];
    if (order[0] == ORDER_SWITCH_DIES) {
        bed->ocs[which].dead = true;
        follow_switch(bed, which);
    } else if (order[0] == ORDER_KILL) {
        machine_close(bed->emulators[which]);
        bed->emulators[which] = NULL;
    } else if (order[0] == ORDER_REVIVE) {
        start_emulator(bed, which);
    }
    assert_int_equal(write(bed->told[1], order, 1), 1);
}

enum { FDS_MAX = 4096 };

/* Fills in what all parts wait for; returns how many. */
static uint32_t watch_all(struct bed *bed, struct pollfd *fds, int64_t *ret_wake_ns)
{
    uint32_t count = 0;
    *ret_wake_ns = INT64_MAX;
    if (bed->serve) {
        chips_serve_watch(bed->serve, fds);
        return chips_serve_fds(bed->serve);
    }
    light_serve_watch(bed->light, fds);
    count += light_serve_fds(bed->light);
    for (uint32_t i = 0; i < CUBE_MACHINES; i++) {
        int64_t wake_ns;
        if (!bed->emulators[i])
            continue;
        machine_watch(bed->emulators[i], fds + count, &wake_ns);
        count += machine_fds(bed->emulators[i]);
        *ret_wake_ns = wake_ns < *ret_wake_ns ? wake_ns : *ret_wake_ns;
    }
    assert_true(count < FDS_MAX);
    return count;
}

static void turn_all(struct bed *bed, const struct pollfd *fds)
{
    if (bed->serve) {
        chips_serve_turn(bed->serve, fds);
        return;
    }
    light_serve_turn(bed->light, fds);
    fds += light_serve_fds(bed->light);
    for (uint32_t i = 0; i < CUBE_MACHINES; i++)
        if (bed->emulators[i]) {
            machine_turn(bed->emulators[i], fds);
            fds += machine_fds(bed->emulators[i]);
        }
}

static struct timespec time_until(int64_t wake_ns)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t wait_ns = wake_ns - (now.tv_sec * INT64_C(1000000000) + now.tv_nsec);
    wait_ns = wait_ns < 0 ? 0 : wait_ns > 3600000000000 ? 3600000000000 : wait_ns;
    return (struct timespec){wait_ns / 1000000000, wait_ns % 1000000000};
}

static void *serve_all(void *context)
{
    struct bed *bed = context;
    struct pollfd *fds = mem_alloc(FDS_MAX * sizeof *fds);
    char order[2] = {0};
    for (bool told = false; order[0] != ORDER_END;) {
        int64_t wake_ns;
        uint32_t count = watch_all(bed, fds, &wake_ns);
        struct timespec wait = time_until(told ? 0 : wake_ns);
        fds[count] = (struct pollfd){bed->wake[0], POLLIN, 0};
        assert_true(ppoll(fds, count + 1, &wait, NULL) >= 0);
        turn_all(bed, fds);
        told = fds[count].revents && read(bed->wake[0], order, 2) == 2;
        if (told)
            carry_out_order(bed, order); /* what comes of it is told in the next turn */
    }
    mem_free(fds);
    return NULL;
}

/* Returns when the order has been carried out. */
static void bed_order(struct bed *bed, char what, uint32_t which)
{
    const char order[2] = {what, (char)which};
    char done;
    assert_int_equal(write(bed->wake[1], order, 2), 2);
    assert_int_equal(read(bed->told[0], &done, 1), 1);
}

static struct phx_chips *open_machine(const struct bed *bed, uint32_t machine)
{
    char path[128];
    struct phx_chips *chips;
    struct phx_error error;
    snprintf(path, sizeof path, "%s/0-%u", bed->folder, machine);
    assert_int_equal(DRIVER->open(path, &chips, &error), 0);
    return chips;
}

/* Waits until all ports of all chips that have a client have light: machines find each other by and by. */
static void await_light(const struct bed *bed)
{
    for (uint32_t machine = 0; machine < CUBE_MACHINES; machine++)
        for (uint32_t i = 0; i < PHX_SLICE_CHIPS; i++)
            for (uint32_t lit = 0; lit < PHX_CHIP_PORTS;) {
                struct phx_chip_about about;
                assert_int_equal(DRIVER->look(bed->machines[machine], i, &about, NULL), 0);
                for (lit = 0; lit < PHX_CHIP_PORTS && about.ports[lit].light;)
                    lit++;
            }
}

static int set_up(void **state, enum form form)
{
    struct bed *bed = mem_alloc(sizeof *bed);
    struct ocs_settings ports = {.a_ports = 64, .b_ports = 64};
    bed->form = form;
    snprintf(bed->folder, sizeof bed->folder, "/tmp/phalanx-chips-XXXXXX");
    assert_non_null(mkdtemp(bed->folder));
    struct chips_serve_settings pod = {.folder = bed->folder, .cubes = 1, .memory_bytes = MEMORY};
    struct light_serve_settings light = {.folder = bed->folder, .cubes = 1};
    if (form == ONE_POD)
        assert_int_equal(chips_serve_open(&pod, &bed->serve, NULL), 0);
    else
        assert_int_equal(light_serve_open(&light, &bed->light, NULL), 0);
    for (uint32_t i = 0; i < CUBE_MACHINES && form != ONE_POD; i++)
        start_emulator(bed, i);
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        ocs_init(&bed->ocs[i], &ports);
        ocs_join(&bed->ocs[i], 1, 65, 0);
        follow_switch(bed, i);
    }
    assert_int_equal(pipe(bed->wake) + pipe(bed->told), 0);
    assert_int_equal(pthread_create(&bed->thread, NULL, serve_all, bed), 0);
    for (uint32_t i = 0; i < CUBE_MACHINES; i++)
        bed->machines[i] = open_machine(bed, i);
    await_light(bed);
    *state = bed;
    return 0;
}

static int set_up_pod(void **state)
{
    return set_up(state, ONE_POD);
}

static int set_up_machines(void **state)
{
    return set_up(state, MACHINES);
}

static int set_up_bad_machines(void **state)
{
    return set_up(state, BAD_MACHINES);
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    for (uint32_t i = 0; i < CUBE_MACHINES; i++)
        if (bed->machines[i])
            DRIVER->close(bed->machines[i]);
    bed_order(bed, ORDER_END, 0);
    pthread_join(bed->thread, NULL);
    for (int i = 0; i < 2; i++) {
        close(bed->wake[i]);
        close(bed->told[i]);
    }
    for (uint32_t i = 0; i < CUBE_MACHINES; i++)
        if (bed->emulators[i])
            machine_close(bed->emulators[i]);
    if (bed->serve)
        chips_serve_close(bed->serve);
    if (bed->light)
        light_serve_close(bed->light);
    assert_int_equal(rmdir(bed->folder), 0); /* no socket is left */
    mem_free(bed);
    return 0;
}

/* --- a session over all machines ----------------------------------------------------------------------- */

/* A chip of a 4x4x4 slice has the number that it has in its cube. */
static struct phx_chips *machine_of_chip(const struct bed *bed, uint32_t number, uint32_t *ret_index)
{
    *ret_index = number % 2 + 2 * (number / 4 % 2);
    return bed->machines[cube_chip_machine(number)];
}

static struct phx_chip_event await_event(struct phx_chips *chips, uint32_t kind)
{
    struct phx_chip_event event = {0};
    int found;
    while ((found = DRIVER->next(chips, &event, NULL)) == 0 || event.kind != kind) {
        struct pollfd fd = {.fd = DRIVER->fd(chips), .events = POLLIN};
        assert_true(found >= 0 && (found == 1 || poll(&fd, 1, 30000) == 1));
    }
    return event;
}

/* Loads every chip with tables that avoid a switch; its clock tree is a line along the copper of the cube. */
static void load_all(const struct bed *bed, uint32_t session, int without)
{
    struct torus torus;
    struct route route;
    struct slice_shape shape = {.extent = {4, 4, 4}};
    uint8_t transit[CUBE_CHIPS], inject[CUBE_CHIPS];
    torus_init(&torus, &shape);
    if (without >= 0)
        torus_kill_switch(&torus, pod_switch_at((uint32_t)without));
    assert_int_equal(route_build(&torus, &route, NULL), 0);
    for (uint16_t number = 0; number < CUBE_CHIPS; number++) {
        uint32_t index, x = number % 4, y = number / 4 % 4, z = number / 16;
        struct phx_chips *machine = machine_of_chip(bed, number, &index);
        struct phx_chip_load load = {
            .session = session, .number = number, .chips = CUBE_CHIPS, .transit = transit, .inject = inject};
        load.children = (uint8_t)((x < 3) << PORT_X_PLUS | (x == 0 && y < 3) << PORT_Y_PLUS |
                                  (x == 0 && y == 0 && z < 3) << PORT_Z_PLUS);
        route_chip_table(&route, number, false, transit);
        route_chip_table(&route, number, true, inject);
        assert_int_equal(DRIVER->load(machine, index, &load, NULL), 0);
    }
    route_done(&route);
    torus_done(&torus);
    assert_int_equal(DRIVER->start(bed->machines[0], 0, session, NULL), 0);
    for (uint32_t machine = 0; machine < CUBE_MACHINES; machine++)
        for (uint32_t i = 0; i < PHX_SLICE_CHIPS; i++)
            assert_int_equal(await_event(bed->machines[machine], PHX_CHIP_STARTED).session, session);
}

static struct phx_chip_event await_session_event(struct phx_chips *chips, uint32_t kind, uint32_t session)
{
    struct phx_chip_event event;
    do
        event = await_event(chips, kind);
    while (event.session != session);
    return event;
}

/* Each chip writes to the one opposite, all at once; all that is written arrives, and its reader is told. */
static void write_all(const struct bed *bed, uint32_t session)
{
    static uint8_t bytes[LENGTH], got[LENGTH];
    uint32_t told[CUBE_MACHINES] = {0};
    for (uint16_t number = 0; number < CUBE_CHIPS; number++) {
        uint32_t index;
        struct phx_chips *machine = machine_of_chip(bed, number, &index);
        memset(bytes, (int)(number + session), sizeof bytes);
        assert_int_equal(DRIVER->write(machine, index, number ^ 63, 100, bytes, sizeof bytes, number, NULL),
                         0);
    }
    struct phx_chip_event event;
    for (uint32_t machine = 0; machine < CUBE_MACHINES; machine++)
        if (DRIVER->next(bed->machines[machine], &event, NULL) == 1) /* sends what is not sent yet */
            told[machine] += event.kind == PHX_CHIP_ARRIVED && event.session == session;
    for (uint32_t machine = 0; machine < CUBE_MACHINES; machine++) {
        for (; told[machine] < PHX_SLICE_CHIPS; told[machine]++)
            await_session_event(bed->machines[machine], PHX_CHIP_ARRIVED, session);
        for (uint32_t i = 0; i < PHX_SLICE_CHIPS; i++) {
            struct phx_chip_about about;
            assert_int_equal(DRIVER->look(bed->machines[machine], i, &about, NULL), 0);
            assert_int_equal(DRIVER->read(bed->machines[machine], i, 100, got, sizeof got, NULL), 0);
            for (uint32_t k = 0; k < LENGTH; k++)
                assert_int_equal(got[k], (uint8_t)((about.label ^ 63) + session));
        }
    }
}

/* --- cases --------------------------------------------------------------------------------------------- */

static void a_machine_shows_its_chips(void **state)
{
    const struct bed *bed = *state;
    bool seen[CUBE_CHIPS] = {false};
    for (uint32_t machine = 0; machine < CUBE_MACHINES; machine++) {
        assert_int_equal(DRIVER->count(bed->machines[machine]), PHX_SLICE_CHIPS);
        for (uint32_t i = 0; i < PHX_SLICE_CHIPS; i++) {
            struct phx_chip_about about;
            uint32_t index;
            assert_int_equal(DRIVER->look(bed->machines[machine], i, &about, NULL), 0);
            assert_ptr_equal(machine_of_chip(bed, about.label, &index), bed->machines[machine]);
            assert_int_equal(index, i);
            assert_false(seen[about.label]);
            seen[about.label] = true;
            assert_int_equal(about.memory_bytes, MEMORY);
            assert_int_equal(about.session, 0);
            for (uint32_t port = 0; port < PHX_CHIP_PORTS; port++) {
                assert_int_equal(about.ports[port].light, 1);
                assert_int_equal(about.ports[port].port, port ^ 1);
                assert_true(about.ports[port].rtt_ns > 0);
            }
        }
    }
}

static void a_session_carries_data(void **state)
{
    const struct bed *bed = *state;
    load_all(bed, 7, -1);
    write_all(bed, 7);
    struct phx_chip_about about;
    assert_int_equal(DRIVER->unload(bed->machines[5], 2, NULL), 0);
    assert_int_equal(DRIVER->look(bed->machines[5], 2, &about, NULL), 0);
    assert_int_equal(about.session, 7); /* it is kept, so that the next one has another number */
}

/* Packets that wait for the dead light do not stand in the way of the next session. */
static void light_that_goes_is_told(void **state)
{
    struct bed *bed = *state;
    struct pod_switch dead = pod_switch_at(21);
    struct link_end plus = {0, dead.axis, dead.index, POLARITY_PLUS};
    uint32_t index;
    struct phx_chips *machine = machine_of_chip(bed, link_end_chip(plus), &index);
    load_all(bed, 1, -1);
    bed_order(bed, ORDER_SWITCH_DIES, 21);
    struct phx_chip_event event = await_event(machine, PHX_CHIP_DARK);
    assert_int_equal(event.chip, index);
    assert_int_equal(event.port, 2 * dead.axis);
    assert_int_equal(event.session, 1);
    uint8_t byte = 1;
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(
            DRIVER->write(machine, index, (uint16_t)(link_end_chip(plus) ^ 63), 0, &byte, 1, i, NULL), 0);
    assert_true(DRIVER->next(machine, &event, NULL) >= 0);
    load_all(bed, 2, 21);
    write_all(bed, 2);
}

static void what_cannot_be_is_refused(void **state)
{
    struct bed *bed = *state;
    struct phx_error error;
    uint8_t table[CUBE_CHIPS] = {0};
    struct phx_chip_load load = {
        .session = 1, .number = CUBE_CHIPS, .chips = CUBE_CHIPS, .transit = table, .inject = table};
    assert_int_equal(DRIVER->load(bed->machines[0], 0, &load, &error), PHX_ERROR_INVALID);
    assert_non_null(strstr(error.message, "a load whose numbers no session has"));
    assert_int_equal(DRIVER->start(bed->machines[0], 0, 9, &error), PHX_ERROR_INVALID);
    assert_int_equal(DRIVER->read(bed->machines[0], 0, MEMORY - 1, table, 2, &error), PHX_ERROR_INVALID);
    assert_non_null(strstr(error.message, "beyond the chip's memory"));
    assert_int_equal(DRIVER->read(bed->machines[0], 0, MEMORY - 1, table, 1, &error), 0);
    assert_int_equal(DRIVER->open("/nowhere/at/all", &bed->machines[0], &error), PHX_ERROR_IO);
}

/* Sends bytes to a machine's socket and waits until the emulator has closed it. */
static void send_nonsense(const struct bed *bed, const void *bytes, size_t len)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char room[256];
    snprintf(at.sun_path, sizeof at.sun_path, "%s/0-3", bed->folder);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
    while (recv(fd, room, sizeof room, 0) > 0)
        ;
    close(fd);
}

static void nonsense_ends_its_connection_alone(void **state)
{
    struct bed *bed = *state;
    static const uint8_t empty[] = {0, 0, 0, 0}, long_[] = {0xff, 0xff, 0xff, 0xff},
                         type[] = {2, 0, 0, 0, 99, 0}, chip[] = {2, 0, 0, 0, CHIPWIRE_LOOK, 4},
                         more[] = {3, 0, 0, 0, CHIPWIRE_LOOK, 0, 0},
                         less[] = {3, 0, 0, 0, CHIPWIRE_START, 0, 0},
                         none[] = {2, 0, 0, 0, CHIPWIRE_WRITE, 0};
    send_nonsense(bed, empty, sizeof empty);
    send_nonsense(bed, long_, sizeof long_);
    send_nonsense(bed, type, sizeof type);
    send_nonsense(bed, chip, sizeof chip);
    send_nonsense(bed, more, sizeof more);
    send_nonsense(bed, less, sizeof less);
    send_nonsense(bed, none, sizeof none);
    DRIVER->close(bed->machines[3]); /* the newest connection of a machine ends those before */
    bed->machines[3] = open_machine(bed, 3);
    load_all(bed, 4, -1);
    write_all(bed, 4);
}

static void chips_of_a_dead_client_take_nothing(void **state)
{
    struct bed *bed = *state;
    uint8_t byte = 1;
    load_all(bed, 3, -1);
    DRIVER->close(bed->machines[15]);
    bed->machines[15] = open_machine(bed, 15); /* the emulator has seen the end by then */
    assert_int_equal(DRIVER->write(bed->machines[0], 0, 63, 0, &byte, 1, 77, NULL), 0);
    load_all(bed, 4, -1); /* the write waited before the chips that ask for no data, and is refused now */
    assert_int_equal(DRIVER->read(bed->machines[15], 3, 0, &byte, 1, NULL), 0);
    assert_int_equal(byte, 0);
    write_all(bed, 4);
}

/* A write whose way is gone is told to the writer, wherever its packets were dropped. */
static void a_lost_write_is_told(void **state)
{
    struct bed *bed = *state;
    static const uint8_t bytes[2 * LENGTH];
    load_all(bed, 5, -1);
    assert_int_equal(DRIVER->write(bed->machines[0], 1, 63, MEMORY - 1, bytes, sizeof bytes, 99, NULL), 0);
    struct phx_chip_event event = await_event(bed->machines[0], PHX_CHIP_LOST);
    assert_int_equal(event.tag, 99);
    assert_int_equal(event.chip, 1);
    assert_int_equal(event.session, 5);
    write_all(bed, 5);
}

/* --- machines with emulators of their own -------------------------------------------------------------- */

static void await_dark(struct phx_chips *chips, uint32_t port)
{
    while (await_event(chips, PHX_CHIP_DARK).port != port)
        ;
}

static void a_killed_machine_comes_back(void **state)
{
    struct bed *bed = *state;
    struct phx_chip_event event;
    struct phx_error error;
    load_all(bed, 1, -1);
    write_all(bed, 1);
    bed_order(bed, ORDER_KILL, 5);
    while (DRIVER->next(bed->machines[5], &event, &error) >= 0)
        ;
    await_dark(bed->machines[4], PORT_X_PLUS);
    await_dark(bed->machines[4], PORT_X_MINUS); /* light, round the cube */
    await_dark(bed->machines[1], PORT_Z_PLUS);
    await_dark(bed->machines[7], PORT_Y_PLUS); /* light again */
    DRIVER->close(bed->machines[5]);
    bed_order(bed, ORDER_REVIVE, 5);
    bed->machines[5] = open_machine(bed, 5);
    await_light(bed);
    load_all(bed, 2, -1);
    write_all(bed, 2);
}

/* Connects to a socket of the network, says `hello`, sends the bytes, and waits until it is let go. */
static void intrude(const struct bed *bed, int32_t at, int32_t as, const void *bytes, size_t len)
{
    struct machinewire_stream stream = {.fd = machinewire_connect(bed->folder, at)};
    struct pollfd fd = {.fd = stream.fd, .events = POLLIN};
    assert_true(stream.fd >= 0);
    if (as >= 0)
        machinewire_put_hello(&stream, (uint32_t)as);
    buf_add(&stream.out, bytes, len);
    machinewire_send(&stream);
    while (poll(&fd, 1, 30000) == 1 && machinewire_receive(&stream))
        ;
    machinewire_close(&stream);
}

static void intruders_are_let_go(void **state)
{
    struct bed *bed = *state;
    static const uint8_t empty[] = {0, 0, 0, 0}, long_[] = {0xff, 0xff, 0xff, 0xff},
                         type[] = {2, 0, 0, 0, 99, 0}, no_hello[] = {2, 0, 0, 0, MACHINEWIRE_FRAME, 0},
                         short_[] = {2, 0, 0, 0, MACHINEWIRE_FRAME, 0},
                         other[] = {11, 0, 0, 0, MACHINEWIRE_FRAME, 63, 0, 0, 0, 0, 0, 0, 0, 0, 5};
    for (int32_t at = MACHINEWIRE_SWITCHES; at <= 3; at += 4) {
        intrude(bed, at, -1, empty, sizeof empty);
        intrude(bed, at, -1, long_, sizeof long_);
        intrude(bed, at, -1, no_hello, sizeof no_hello);
        intrude(bed, at, 2399, NULL, 0);
        intrude(bed, at, 2, empty, sizeof empty);
        intrude(bed, at, 2, type, sizeof type);
        intrude(bed, at, 2, short_, sizeof short_);
        intrude(bed, at, 2, other, sizeof other); /* a link that machine 2 does not have */
    }
    /* The true machine 2 was thrown out by the one that spoke in its name, and comes again. */
    await_light(bed);
    load_all(bed, 6, -1);
    write_all(bed, 6);
}

#define CASE(name, form)                                                                                     \
    {                                                                                                        \
#name ": " #form, name, set_up_##form, tear_down, NULL                                               \
    }
#define OF_ALL_FORMS(name) CASE(name, pod), CASE(name, machines), CASE(name, bad_machines)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF_ALL_FORMS(a_machine_shows_its_chips),
        OF_ALL_FORMS(a_session_carries_data),
        OF_ALL_FORMS(light_that_goes_is_told),
        OF_ALL_FORMS(what_cannot_be_is_refused),
        OF_ALL_FORMS(nonsense_ends_its_connection_alone),
        OF_ALL_FORMS(chips_of_a_dead_client_take_nothing),
        OF_ALL_FORMS(a_lost_write_is_told),
        CASE(a_killed_machine_comes_back, machines),
        CASE(a_killed_machine_comes_back, bad_machines),
        CASE(intruders_are_let_go, machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
