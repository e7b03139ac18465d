#include "sim/fabric/machine.h"

#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/fabric/wiring.h"
#include "sim/fabric/chips_serve.h"
#include "sim/fabric/machinewire.h"

enum { NEIGHBOURS_MAX = 4, GUESTS_MAX = 8, WIRES_MAX = CUBE_CHIPS / CUBE_MACHINES * CHIP_PORTS };

/* A machine at the other end of copper links. */
struct neighbour {
    uint32_t machine;
    struct machinewire_stream stream;
    bool met; /* it has said HELLO: the links have light */
};

/* A link end that leads outside. */
struct wire {
    uint32_t chip, port;
    uint32_t neighbour; /* the machine at the other end of copper; CHIPS_NONE: the wire is a fibre */
    uint32_t epoch;     /* epoch of its light; 0 on copper */
};

struct machine {
    struct machine_settings settings;
    struct chips_serve *serve;
    struct chips *net; /* belongs to `serve` */
    int listen_fd;
    struct wire wires[WIRES_MAX];
    struct neighbour neighbours[NEIGHBOURS_MAX];
    uint32_t wire_count, neighbour_count;
    struct machinewire_stream switches;
    struct machinewire_stream guests[GUESTS_MAX]; /* connections that have not said HELLO */
    struct buf frame;
    int64_t retry_ns; /* when missing neighbours and switches are tried again */
};

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- where links lead ---------------------------------------------------------------------------------- */

static struct neighbour *find_neighbour(struct machine *machine, uint32_t number)
{
    for (uint32_t i = 0; i < machine->neighbour_count; i++)
        if (machine->neighbours[i].machine == number)
            return &machine->neighbours[i];
    return NULL;
}

/* Returns NULL if this is not a link end of this machine that leads outside. */
static struct wire *find_wire(struct machine *machine, uint32_t chip, uint32_t port)
{
    for (uint32_t i = 0; i < machine->wire_count; i++)
        if (machine->wires[i].chip == chip && machine->wires[i].port == port)
            return &machine->wires[i];
    return NULL;
}

static void add_wire(struct machine *machine, uint32_t chip, uint32_t port)
{
    uint32_t next = chips_copper(chip, port),
             neighbour = next == CHIPS_NONE ? CHIPS_NONE : chips_machine(next);
    if (!chips_leads_outside(machine->net, chip, port))
        return;
    CHECK(machine->wire_count < WIRES_MAX);
    machine->wires[machine->wire_count++] = (struct wire){chip, port, neighbour, 0};
    if (neighbour == CHIPS_NONE || find_neighbour(machine, neighbour))
        return;
    CHECK(machine->neighbour_count < NEIGHBOURS_MAX);
    machine->neighbours[machine->neighbour_count++] =
        (struct neighbour){.machine = neighbour, .stream = {.fd = -1}};
}

static void find_wires(struct machine *machine)
{
    uint32_t first = machine->settings.machine / CUBE_MACHINES * CUBE_CHIPS;
    for (uint32_t chip = first; chip < first + CUBE_CHIPS; chip++)
        for (uint32_t port = 0; port < CHIP_PORTS; port++)
            add_wire(machine, chip, port);
}

/* Gives or takes the light of all wires to a neighbour, or of all fibres for CHIPS_NONE. */
static void light_wires(struct machine *machine, uint32_t neighbour, bool light)
{
    for (uint32_t i = 0; i < machine->wire_count; i++)
        if (machine->wires[i].neighbour == neighbour)
            chips_light(machine->net, machine->wires[i].chip, machine->wires[i].port, light);
    chips_serve_look_at_light(machine->serve);
}

/* --- opening and closing ------------------------------------------------------------------------------- */

int machine_open(const struct machine_settings *settings, struct machine **ret_machine, struct error *error)
{
    struct chips_serve_settings serve = {.folder = settings->network,
                                         .cubes = settings->machine / CUBE_MACHINES + 1,
                                         .memory_bytes = settings->memory_bytes,
                                         .loss_ppm = settings->loss_ppm,
                                         .one_machine = true,
                                         .machine = settings->machine};
    CHECK(settings->machine < POD_CUBES_MAX * CUBE_MACHINES);
    struct machine *machine = mem_alloc(sizeof *machine);
    machine->settings = *settings;
    machine->listen_fd = machine->switches.fd = -1;
    for (uint32_t i = 0; i < GUESTS_MAX; i++)
        machine->guests[i].fd = -1;
    int status =
        machinewire_listen(settings->network, (int32_t)settings->machine, &machine->listen_fd, error);
    if (status == 0)
        status = chips_serve_open(&serve, &machine->serve, error);
    if (status < 0) {
        machine_close(machine);
        return status;
    }
    machine->net = chips_serve_net(machine->serve);
    find_wires(machine);
    *ret_machine = machine;
    return 0;
}

void machine_close(struct machine *machine)
{
    struct sockaddr_un at;
    for (uint32_t i = 0; i < machine->neighbour_count; i++)
        machinewire_close(&machine->neighbours[i].stream);
    for (uint32_t i = 0; i < GUESTS_MAX; i++)
        machinewire_close(&machine->guests[i]);
    machinewire_close(&machine->switches);
    if (machine->serve)
        chips_serve_close(machine->serve);
    if (machine->listen_fd >= 0) {
        close(machine->listen_fd);
        if (machinewire_address(machine->settings.network, (int32_t)machine->settings.machine, &at, NULL) ==
            0)
            unlink(at.sun_path);
    }
    buf_done(&machine->frame);
    mem_free(machine);
}

/* --- copper -------------------------------------------------------------------------------------------- */

static void end_neighbour(struct machine *machine, struct neighbour *neighbour)
{
    machinewire_close(&neighbour->stream);
    if (neighbour->met)
        light_wires(machine, neighbour->machine, false);
    neighbour->met = false;
}

/* Handles the HELLO of a neighbour; the neighbour with the lower number says it first. */
static bool meet_neighbour(struct machine *machine, struct neighbour *neighbour,
                           struct jobwire_reader *reader)
{
    uint32_t number;
    if (!machinewire_get_hello(reader, &number) || number != neighbour->machine)
        return false;
    neighbour->met = true;
    light_wires(machine, neighbour->machine, true);
    return true;
}

/* Takes a frame of a copper link. Returns false if the link is not to this neighbour, or the frame is
 * malformed. */
static bool copper_frame(struct machine *machine, const struct neighbour *neighbour,
                         struct jobwire_reader *reader)
{
    struct machinewire_end end;
    if (!machinewire_get_frame(reader, &end))
        return false;
    const struct wire *wire = find_wire(machine, end.chip, end.port);
    if (!wire || wire->neighbour != neighbour->machine)
        return false;
    return chips_put_frame(machine->net, end.chip, end.port, reader->data + reader->pos,
                           reader->len - reader->pos) == 0;
}

/* Takes the frames of a neighbour. Returns false if its connection must end. */
static bool serve_neighbour(struct machine *machine, struct neighbour *neighbour)
{
    struct jobwire_reader frame;
    int found;
    while ((found = machinewire_next(&neighbour->stream, &frame)) == 1) {
        uint64_t type = jobwire_get(&frame, 1);
        bool good = neighbour->met ? type == MACHINEWIRE_FRAME && copper_frame(machine, neighbour, &frame)
                                   : type == MACHINEWIRE_HELLO && meet_neighbour(machine, neighbour, &frame);
        if (!good)
            return false;
    }
    return found == 0;
}

/* Makes a guest the connection of the neighbour that it names, in place of an earlier one. Returns false if
 * its first frame is not a valid HELLO. */
static bool seat_guest(struct machine *machine, struct machinewire_stream *guest)
{
    struct jobwire_reader frame;
    uint32_t number;
    int found = machinewire_next(guest, &frame);
    if (found == 0)
        return true;
    struct neighbour *neighbour = NULL;
    if (found == 1 && jobwire_get(&frame, 1) == MACHINEWIRE_HELLO && machinewire_get_hello(&frame, &number) &&
        number < machine->settings.machine)
        neighbour = find_neighbour(machine, number);
    if (!neighbour)
        return false;
    end_neighbour(machine, neighbour);
    neighbour->stream = *guest;
    *guest = (struct machinewire_stream){.fd = -1};
    machinewire_put_hello(&neighbour->stream, machine->settings.machine);
    neighbour->met = true;
    light_wires(machine, neighbour->machine, true);
    if (!serve_neighbour(machine, neighbour))
        end_neighbour(machine, neighbour);
    return true;
}

/* --- the switches -------------------------------------------------------------------------------------- */

static struct wire *find_fibre(struct machine *machine, const struct machinewire_end *end)
{
    struct wire *wire = find_wire(machine, end->chip, end->port);
    return wire && wire->neighbour == CHIPS_NONE ? wire : NULL;
}

static void end_switches(struct machine *machine)
{
    machinewire_close(&machine->switches);
    light_wires(machine, CHIPS_NONE, false);
}

static bool light_changes(struct machine *machine, struct jobwire_reader *reader)
{
    struct machinewire_end end;
    bool light;
    struct wire *fibre = machinewire_get_light(reader, &end, &light) ? find_fibre(machine, &end) : NULL;
    if (!fibre)
        return false;
    fibre->epoch = end.epoch;
    chips_light(machine->net, end.chip, end.port, light);
    chips_serve_look_at_light(machine->serve);
    return true;
}

static bool fibre_frame(struct machine *machine, struct jobwire_reader *reader)
{
    struct machinewire_end end;
    const struct wire *fibre = machinewire_get_frame(reader, &end) ? find_fibre(machine, &end) : NULL;
    if (!fibre)
        return false;
    if (end.epoch == fibre->epoch &&
        chips_put_frame(machine->net, end.chip, end.port, reader->data + reader->pos,
                        reader->len - reader->pos) < 0) {
        machinewire_put_retrain(&machine->switches, end);
        chips_serve_look_at_light(machine->serve);
    }
    return true;
}

static bool lost_comes(struct machine *machine, struct jobwire_reader *reader)
{
    struct chips_lost lost;
    if (!machinewire_get_lost(reader, &lost))
        return false;
    chips_put_lost(machine->net, &lost);
    return true;
}

static bool serve_switches(struct machine *machine)
{
    struct jobwire_reader frame;
    int found;
    while ((found = machinewire_next(&machine->switches, &frame)) == 1) {
        uint64_t type = jobwire_get(&frame, 1);
        bool good = type == MACHINEWIRE_FRAME   ? fibre_frame(machine, &frame)
                    : type == MACHINEWIRE_LIGHT ? light_changes(machine, &frame)
                    : type == MACHINEWIRE_LOST  ? lost_comes(machine, &frame)
                                                : false;
        if (!good)
            return false;
    }
    return found == 0;
}

/* --- the loop's side ----------------------------------------------------------------------------------- */

/* Tries to reach missing neighbours and the switches. Of two neighbours, the one with the lower number
 * connects. */
static void reach_others(struct machine *machine, int64_t now_ns)
{
    if (now_ns < machine->retry_ns)
        return;
    machine->retry_ns = INT64_MAX;
    for (uint32_t i = 0; i < machine->neighbour_count; i++) {
        struct neighbour *neighbour = &machine->neighbours[i];
        if (neighbour->machine < machine->settings.machine || neighbour->stream.fd >= 0)
            continue;
        neighbour->stream.fd = machinewire_connect(machine->settings.network, (int32_t)neighbour->machine);
        if (neighbour->stream.fd >= 0)
            machinewire_put_hello(&neighbour->stream, machine->settings.machine);
        else
            machine->retry_ns = now_ns + MACHINE_RETRY_NS;
    }
    if (machine->switches.fd < 0) {
        machine->switches.fd = machinewire_connect(machine->settings.network, MACHINEWIRE_SWITCHES);
        if (machine->switches.fd >= 0)
            machinewire_put_hello(&machine->switches, machine->settings.machine);
        else
            machine->retry_ns = now_ns + MACHINE_RETRY_NS;
    }
}

static void retry_soon(struct machine *machine)
{
    int64_t soon_ns = monotonic_ns() + MACHINE_RETRY_NS;
    machine->retry_ns = soon_ns < machine->retry_ns ? soon_ns : machine->retry_ns;
}

/* Puts a frame of the net on its wire. If the wire has lost its connection meanwhile, the frame is lost. */
static void carry_frame(struct machine *machine, const struct wire *wire)
{
    struct machinewire_end end = {wire->chip, wire->port, wire->epoch};
    struct machinewire_stream *stream = &machine->switches;
    if (wire->neighbour != CHIPS_NONE) { /* a frame on copper names the other end */
        end.chip = chips_copper(wire->chip, wire->port);
        end.port = wire->port ^ 1u;
        stream = &find_neighbour(machine, wire->neighbour)->stream;
    }
    if (stream->fd >= 0)
        machinewire_put_frame(stream, end, machine->frame.data, machine->frame.len);
}

static void carry_frames(struct machine *machine)
{
    struct chips_lost lost;
    uint32_t chip;
    enum chip_port port;
    while (chips_take_frame(machine->net, &chip, &port, &machine->frame)) {
        carry_frame(machine, find_wire(machine, chip, port));
        buf_clear(&machine->frame);
    }
    while (chips_take_lost(machine->net, &lost))
        if (machine->switches.fd >= 0)
            machinewire_put_lost(&machine->switches, &lost);
}

static void take_guest(struct machine *machine)
{
    uint32_t place = 0;
    int fd = machinewire_accept(machine->listen_fd);
    if (fd < 0)
        return;
    while (place < GUESTS_MAX - 1 && machine->guests[place].fd >= 0)
        place++;
    machinewire_close(&machine->guests[place]); /* the last place always takes the newest */
    machine->guests[place].fd = fd;
}

uint32_t machine_fds(const struct machine *machine)
{
    return 2 + NEIGHBOURS_MAX + GUESTS_MAX + chips_serve_fds(machine->serve);
}

void machine_watch(const struct machine *machine, struct pollfd *fds, int64_t *ret_wake_ns)
{
    int64_t wake_ns = chips_serve_wake_ns(machine->serve);
    *fds++ = (struct pollfd){machine->listen_fd, POLLIN, 0};
    *fds++ = machinewire_poll(&machine->switches);
    for (uint32_t i = 0; i < NEIGHBOURS_MAX; i++)
        *fds++ = i < machine->neighbour_count ? machinewire_poll(&machine->neighbours[i].stream)
                                              : (struct pollfd){-1, 0, 0};
    for (uint32_t i = 0; i < GUESTS_MAX; i++)
        *fds++ = machinewire_poll(&machine->guests[i]);
    chips_serve_watch(machine->serve, fds);
    *ret_wake_ns = machine->retry_ns < wake_ns ? machine->retry_ns : wake_ns;
}

static bool is_ready(const struct machinewire_stream *stream, const struct pollfd *fd)
{
    return stream->fd >= 0 && stream->fd == fd->fd && (fd->revents & ~POLLOUT);
}

static void receive_all(struct machine *machine, const struct pollfd *fds)
{
    if (is_ready(&machine->switches, &fds[1]) &&
        (!machinewire_receive(&machine->switches) || !serve_switches(machine))) {
        end_switches(machine);
        retry_soon(machine);
    }
    for (uint32_t i = 0; i < machine->neighbour_count; i++) {
        struct neighbour *neighbour = &machine->neighbours[i];
        if (is_ready(&neighbour->stream, &fds[2 + i]) &&
            (!machinewire_receive(&neighbour->stream) || !serve_neighbour(machine, neighbour))) {
            end_neighbour(machine, neighbour);
            retry_soon(machine);
        }
    }
    for (uint32_t i = 0; i < GUESTS_MAX; i++)
        if (is_ready(&machine->guests[i], &fds[2 + NEIGHBOURS_MAX + i]) &&
            (!machinewire_receive(&machine->guests[i]) || !seat_guest(machine, &machine->guests[i])))
            machinewire_close(&machine->guests[i]);
    if (fds[0].revents)
        take_guest(machine);
}

static void send_all(struct machine *machine)
{
    carry_frames(machine);
    if (machine->switches.fd >= 0 && !machinewire_send(&machine->switches)) {
        end_switches(machine);
        retry_soon(machine);
    }
    for (uint32_t i = 0; i < machine->neighbour_count; i++) {
        struct neighbour *neighbour = &machine->neighbours[i];
        if (neighbour->stream.fd >= 0 && !machinewire_send(&neighbour->stream)) {
            end_neighbour(machine, neighbour);
            retry_soon(machine);
        }
    }
}

void machine_turn(struct machine *machine, const struct pollfd *fds)
{
    int64_t now_ns = monotonic_ns();
    chips_run(machine->net, now_ns); /* frames that have arrived take effect now */
    reach_others(machine, now_ns);
    receive_all(machine, fds);
    send_all(machine); /* answers to a measured round trip leave before the task is served */
    chips_serve_turn(machine->serve, &fds[2 + NEIGHBOURS_MAX + GUESTS_MAX]);
    send_all(machine);
}
