/* Any bytes between the processes that emulate a pod: from a neighbour over copper, from the switches, from a
 * machine to the switches, and as frames at the link ends of a machine's net. No crash; what is nonsense ends
 * its connection or its light, and the counts of packets still add up. The first byte chooses. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/error.h"
#include "sim/fabric/light_serve.h"
#include "sim/fabric/machine.h"
#include "sim/fabric/machinewire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MACHINE = 1, NEIGHBOUR = 0, FDS_MAX = 256, TURNS = 4 };

static struct {
    char folder[64], apart[64]; /* with switches; and without, for a machine whose switches are the input */
    struct light_serve *light;
    struct ocs ocs;
    int switches_fd; /* listens in `apart` */
} bed;

static void remove_sockets(void)
{
    struct sockaddr_un at;
    light_serve_close(bed.light);
    close(bed.switches_fd);
    if (machinewire_address(bed.apart, MACHINEWIRE_SWITCHES, &at, NULL) == 0)
        unlink(at.sun_path);
    rmdir(bed.folder);
    rmdir(bed.apart);
}

static void open_bed(void)
{
    struct ocs_settings ports = {.a_ports = 64, .b_ports = 64};
    snprintf(bed.folder, sizeof bed.folder, "/tmp/phalanx-machinewire-XXXXXX");
    snprintf(bed.apart, sizeof bed.apart, "/tmp/phalanx-machinewire-XXXXXX");
    CHECK(mkdtemp(bed.folder) && mkdtemp(bed.apart));
    struct light_serve_settings settings = {.folder = bed.folder, .cubes = 1};
    CHECK(light_serve_open(&settings, &bed.light, NULL) == 0);
    CHECK(machinewire_listen(bed.apart, MACHINEWIRE_SWITCHES, &bed.switches_fd, NULL) == 0);
    ocs_init(&bed.ocs, &ports);
    ocs_join(&bed.ocs, 1, 65, 0);
    for (uint32_t i = 0; i < POD_SWITCHES; i++)
        light_serve_follow(bed.light, i, &bed.ocs);
    atexit(remove_sockets);
}

static void turn_machine(struct machine *machine)
{
    struct pollfd fds[FDS_MAX];
    int64_t wake_ns;
    CHECK(machine_fds(machine) <= FDS_MAX);
    machine_watch(machine, fds, &wake_ns);
    CHECK(poll(fds, machine_fds(machine), 0) >= 0);
    machine_turn(machine, fds);
}

static void turn_switches(void)
{
    struct pollfd fds[FDS_MAX];
    CHECK(light_serve_fds(bed.light) <= FDS_MAX);
    light_serve_watch(bed.light, fds);
    CHECK(poll(fds, light_serve_fds(bed.light), 0) >= 0);
    light_serve_turn(bed.light, fds);
}

static struct machine *open_machine(const char *network)
{
    struct machine_settings settings = {.network = network, .machine = MACHINE, .memory_bytes = 8192};
    struct machine *machine;
    CHECK(machine_open(&settings, &machine, NULL) == 0);
    return machine;
}

static void be_neighbour(const uint8_t *data, size_t size)
{
    struct machine *machine = open_machine(bed.folder);
    struct machinewire_stream stream = {.fd = machinewire_connect(bed.folder, MACHINE)};
    machinewire_put_hello(&stream, NEIGHBOUR);
    buf_add(&stream.out, data, size);
    machinewire_send(&stream);
    for (int i = 0; i < TURNS; i++) {
        turn_machine(machine);
        turn_switches();
    }
    machinewire_close(&stream);
    turn_machine(machine);
    machine_close(machine);
}

static void be_switches(const uint8_t *data, size_t size)
{
    struct machine *machine = open_machine(bed.apart);
    turn_machine(machine); /* connects */
    struct machinewire_stream stream = {.fd = machinewire_accept(bed.switches_fd)};
    CHECK(stream.fd >= 0);
    buf_add(&stream.out, data, size);
    machinewire_send(&stream);
    for (int i = 0; i < TURNS; i++)
        turn_machine(machine);
    machinewire_close(&stream);
    turn_machine(machine);
    machine_close(machine);
}

static void be_machine(const uint8_t *data, size_t size)
{
    struct machinewire_stream stream = {.fd = machinewire_connect(bed.folder, MACHINEWIRE_SWITCHES)};
    machinewire_put_hello(&stream, NEIGHBOUR);
    buf_add(&stream.out, data, size);
    machinewire_send(&stream);
    for (int i = 0; i < TURNS; i++)
        turn_switches();
    machinewire_close(&stream);
    turn_switches();
}

/* A machine's net does steps: u8 what, u8 length, bytes. */
static void be_link_ends(const uint8_t *data, size_t size)
{
    static uint8_t table[16];
    struct chips_settings settings = {.cubes = 1, .one_machine = true, .memory_bytes = 8192, .buffers = 2};
    struct chips *net = chips_new(&settings);
    struct buf sent = {0};
    struct chips_counts counts;
    for (uint32_t i = 0; i < sizeof table; i++)
        table[i] = (uint8_t)(i % CHIP_PORTS | i % ROUTE_VCS << 3);
    for (size_t at = 0; at + 2 <= size;) {
        uint32_t what = data[at], chip = what & 1 ? 5 : 0, port = what / 2 % CHIP_PORTS; /* of machine 0 */
        size_t len = data[at + 1], left = size - at - 2;
        const uint8_t *bytes = data + at + 2;
        len = len < left ? len : left;
        at += 2 + len;
        if (what >= 250)
            chips_run(net, chips_now_ns(net) + CHIPS_TRAIN_NS);
        else if (what >= 240)
            chips_load_own(net, chip, (uint16_t)(what % 16), 1, sizeof table, table, NULL);
        else if (what >= 230 && len > 0)
            chips_write(net, chip, bytes[0], bytes[0] * 16u, bytes, (uint32_t)len, what);
        else if (what >= 200)
            chips_ask(net, chip, port, what >= 210);
        else if (chips_leads_outside(net, chip, port) && what >= 100)
            chips_light(net, chip, port, what < 190);
        else if (chips_leads_outside(net, chip, port))
            (void)chips_put_frame(net, chip, port, bytes, len);
        enum chip_port from;
        while (chips_take_frame(net, &chip, &from, &sent))
            buf_clear(&sent);
        for (struct chips_lost lost; chips_take_lost(net, &lost);)
            chips_put_lost(net, &lost);
    }
    chips_count(net, &counts);
    CHECK(counts.waiting < 1u << 20);
    buf_done(&sent);
    chips_free(net);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const roles[])(const uint8_t *data, size_t size) = {be_neighbour, be_switches, be_machine,
                                                                      be_link_ends};
    if (!bed.light)
        open_bed();
    if (size > 1 && size < 8192)
        roles[data[0] % 4](data + 1, size - 1);
    return 0;
}
