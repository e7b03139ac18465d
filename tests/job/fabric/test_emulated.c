/* The driver of emulated chips against the emulator on real sockets: what it shows, one session over all
 * machines of a cube, light that goes, and clients that are broken or gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include <pthread.h>

#include "base/arena.h"
#include "job/fabric/chipwire.h"
#include "job/fabric/internal.h"
#include "sim/fabric/chips_serve.h"

enum { MEMORY = 64 << 10, LENGTH = 10000 };
#define DRIVER (&fabric_emulated)

/* An emulated cube whose switches join its own faces, served by a thread. */
struct bed {
    char folder[64];
    struct chips_serve *serve;
    struct ocs ocs[POD_SWITCHES];
    pthread_t thread;
    int wake[2];
    struct phx_chips *machines[CUBE_MACHINES];
};

/* Each byte is an order: 'q' ends, any other is 1 + the number of a switch that dies. */
static void *serve_all(void *context)
{
    struct bed *bed = context;
    uint32_t count = chips_serve_fds(bed->serve);
    struct pollfd *fds = mem_alloc((count + 1) * sizeof *fds);
    char order = 0;
    while (order != 'q') {
        chips_serve_watch(bed->serve, fds);
        fds[count] = (struct pollfd){bed->wake[0], POLLIN, 0};
        assert_true(poll(fds, count + 1, -1) > 0);
        if (fds[count].revents && read(bed->wake[0], &order, 1) == 1 && order != 'q') {
            bed->ocs[order - 1].dead = true;
            chips_serve_follow(bed->serve, (uint32_t)order - 1, &bed->ocs[order - 1]);
        }
        chips_serve_turn(bed->serve, fds);
    }
    mem_free(fds);
    return NULL;
}

static void bed_order(struct bed *bed, char order)
{
    assert_int_equal(write(bed->wake[1], &order, 1), 1);
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

static int set_up(void **state)
{
    struct bed *bed = mem_alloc(sizeof *bed);
    struct ocs_settings ports = {.a_ports = 64, .b_ports = 64};
    snprintf(bed->folder, sizeof bed->folder, "/tmp/phalanx-chips-XXXXXX");
    assert_non_null(mkdtemp(bed->folder));
    struct chips_serve_settings settings = {.folder = bed->folder, .cubes = 1, .memory_bytes = MEMORY};
    assert_int_equal(chips_serve_open(&settings, &bed->serve, NULL), 0);
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        ocs_init(&bed->ocs[i], &ports);
        ocs_join(&bed->ocs[i], 1, 65, 0);
        chips_serve_follow(bed->serve, i, &bed->ocs[i]);
    }
    assert_int_equal(pipe(bed->wake), 0);
    assert_int_equal(pthread_create(&bed->thread, NULL, serve_all, bed), 0);
    for (uint32_t i = 0; i < CUBE_MACHINES; i++)
        bed->machines[i] = open_machine(bed, i);
    *state = bed;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    for (uint32_t i = 0; i < CUBE_MACHINES; i++)
        if (bed->machines[i])
            DRIVER->close(bed->machines[i]);
    bed_order(bed, 'q');
    pthread_join(bed->thread, NULL);
    close(bed->wake[0]);
    close(bed->wake[1]);
    chips_serve_close(bed->serve);
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

/* Each chip writes to the one opposite, all at once; all that is written arrives. */
static void write_all(const struct bed *bed, uint32_t session)
{
    static uint8_t bytes[LENGTH], got[LENGTH];
    for (uint16_t number = 0; number < CUBE_CHIPS; number++) {
        uint32_t index;
        struct phx_chips *machine = machine_of_chip(bed, number, &index);
        memset(bytes, (int)(number + session), sizeof bytes);
        assert_int_equal(DRIVER->write(machine, index, number ^ 63, 100, bytes, sizeof bytes, number, NULL),
                         0);
    }
    struct phx_chip_event none;
    for (uint32_t machine = 0; machine < CUBE_MACHINES; machine++)
        if (DRIVER->next(bed->machines[machine], &none, NULL) == 1) /* sends what is not sent yet */
            assert_int_equal(none.kind, PHX_CHIP_ARRIVED);
    for (uint32_t machine = 0; machine < CUBE_MACHINES; machine++)
        for (uint32_t i = 0; i < PHX_SLICE_CHIPS; i++) {
            struct phx_chip_about about;
            assert_int_equal(DRIVER->look(bed->machines[machine], i, &about, NULL), 0);
            uint8_t expected = (uint8_t)((about.label ^ 63) + session);
            do
                assert_int_equal(DRIVER->read(bed->machines[machine], i, 100, got, sizeof got, NULL), 0);
            while (got[LENGTH - 1] != expected); /* it arrives: the emulator delivers within its turn */
            for (uint32_t k = 0; k < LENGTH; k++)
                assert_int_equal(got[k], expected);
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
    bed_order(bed, (char)(1 + 21));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_machine_shows_its_chips, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_session_carries_data, set_up, tear_down),
        cmocka_unit_test_setup_teardown(light_that_goes_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nonsense_ends_its_connection_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(chips_of_a_dead_client_take_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
