#include "sim/fabric/machine.h"

#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/fabric/wiring.h"
#include "sim/fabric/chips_serve.h"
#include "sim/fabric/machinewire.h"

enum { NEIGHBOURS_MAX = 4, GUESTS_MAX = 8, COPPER_EPOCH = 0 };

/* A machine at the other end of copper. */
struct neighbour {
    uint32_t machine;
    struct machinewire_stream stream;
    bool met; /* it has said who it is: the links have light */
};

struct machine {
    struct machine_settings settings;
    struct chips_serve *serve;
    struct chips *net; /* of `serve` */
    int listen_fd;
    struct neighbour neighbours[NEIGHBOURS_MAX];
    uint32_t neighbour_count;
    struct machinewire_stream switches;
    struct machinewire_stream guests[GUESTS_MAX]; /* connections that have not said whose they are */
    uint32_t epochs[CUBE_CHIPS * CHIP_PORTS];     /* of fibres, by link end of the cube */
    struct buf frame;
    int64_t retry_ns; /* when those that are not there are tried again */
};

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- where links lead ---------------------------------------------------------------------------------- */

/* The machine at the other end of a copper link of this machine; CHIPS_NONE: the link is none. */
static uint32_t copper_leads_to(const struct machine *machine, uint32_t chip, uint32_t port)
{
    uint32_t next = chips_copper(chip, port);
    if (chips_machine(chip) != machine->settings.machine || next == CHIPS_NONE ||
        chips_machine(next) == machine->settings.machine)
        return CHIPS_NONE;
    return chips_machine(next);
}

/* For each link end of the cube; those of other machines lead nowhere. */
#define FOR_LINK_ENDS(machine, chip, port)                                                                   \
    for (uint32_t chip = (machine)->settings.machine / CUBE_MACHINES * CUBE_CHIPS, end_ = chip + CUBE_CHIPS; \
         chip < end_; chip++)                                                                                \
        for (uint32_t port = 0; port < CHIP_PORTS; port++)

static struct neighbour *find_neighbour(struct machine *machine, uint32_t number)
{
    for (uint32_t i = 0; i < machine->neighbour_count; i++)
        if (machine->neighbours[i].machine == number)
            return &machine->neighbours[i];
    return NULL;
}

static void find_neighbours(struct machine *machine)
{
    FOR_LINK_ENDS(machine, chip, port)
    {
        uint32_t number = copper_leads_to(machine, chip, port);
        if (number == CHIPS_NONE || find_neighbour(machine, number))
            continue;
        CHECK(machine->neighbour_count < NEIGHBOURS_MAX);
        machine->neighbours[machine->neighbour_count++] =
            (struct neighbour){.machine = number, .stream = {.fd = -1}};
    }
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
    find_neighbours(machine);
    int status =
        machinewire_listen(settings->network, (int32_t)settings->machine, &machine->listen_fd, error);
    if (status == 0)
        status = chips_serve_open(&serve, &machine->serve, error);
    if (status < 0) {
        machine_close(machine);
        return status;
    }
    machine->net = chips_serve_net(machine->serve);
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

static void light_copper(struct machine *machine, const struct neighbour *neighbour, bool light)
{
    FOR_LINK_ENDS(machine, chip, port)
    if (copper_leads_to(machine, chip, port) == neighbour->machine)
        chips_light(machine->net, chip, port, light);
    chips_serve_look_at_light(machine->serve);
}

static void end_neighbour(struct machine *machine, struct neighbour *neighbour)
{
    machinewire_close(&neighbour->stream);
    if (neighbour->met)
        light_copper(machine, neighbour, false);
    neighbour->met = false;
}

/* A neighbour has said who it is, which the neighbour with the lower number does first. */
static bool meet_neighbour(struct machine *machine, struct neighbour *neighbour,
                           struct jobwire_reader *reader)
{
    uint32_t number;
    if (!machinewire_get_hello(reader, &number) || number != neighbour->machine)
        return false;
    neighbour->met = true;
    light_copper(machine, neighbour, true);
    return true;
}

/* A frame at the end of a copper link; false: the link is not to this neighbour, or the frame is none. */
static bool copper_frame(struct machine *machine, const struct neighbour *neighbour,
                         struct jobwire_reader *reader)
{
    struct machinewire_end end;
    if (!machinewire_get_frame(reader, &end) ||
        copper_leads_to(machine, end.chip, end.port) != neighbour->machine)
        return false;
    return chips_put_frame(machine->net, end.chip, end.port, reader->data + reader->pos,
                           reader->len - reader->pos) == 0;
}

/* Takes what a neighbour has sent; false: its connection is to end. */
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

/* Takes a guest as the neighbour that it says it is, in place of an earlier connection; false: it says no
 * such thing. */
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
    light_copper(machine, neighbour, true);
    if (!serve_neighbour(machine, neighbour))
        end_neighbour(machine, neighbour);
    return true;
}

/* --- the switches -------------------------------------------------------------------------------------- */

static bool has_fibre(const struct machine *machine, const struct machinewire_end *end)
{
    return chips_machine(end->chip) == machine->settings.machine &&
           chips_copper(end->chip, end->port) == CHIPS_NONE;
}

static uint32_t *epoch_of(struct machine *machine, uint32_t chip, uint32_t port)
{
    return &machine->epochs[chip % CUBE_CHIPS * CHIP_PORTS + port];
}

static void end_switches(struct machine *machine)
{
    machinewire_close(&machine->switches);
    FOR_LINK_ENDS(machine, chip, port)
    {
        struct machinewire_end end = {chip, port, 0};
        if (has_fibre(machine, &end))
            chips_light(machine->net, chip, port, false);
    }
    chips_serve_look_at_light(machine->serve);
}

static bool light_changes(struct machine *machine, struct jobwire_reader *reader)
{
    struct machinewire_end end;
    bool light;
    if (!machinewire_get_light(reader, &end, &light) || !has_fibre(machine, &end))
        return false;
    *epoch_of(machine, end.chip, end.port) = end.epoch;
    chips_light(machine->net, end.chip, end.port, light);
    chips_serve_look_at_light(machine->serve);
    return true;
}

static bool fibre_frame(struct machine *machine, struct jobwire_reader *reader)
{
    struct machinewire_end end;
    if (!machinewire_get_frame(reader, &end) || !has_fibre(machine, &end))
        return false;
    if (end.epoch == *epoch_of(machine, end.chip, end.port) &&
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

/* Tries to reach those that are not there; of two neighbours, the one with the higher number is called. */
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

/* Puts the net's frames on their wires. Those of a link whose wire has gone meanwhile are lost with it. */
static void carry_frames(struct machine *machine)
{
    struct chips_lost lost;
    struct machinewire_end end;
    enum chip_port port;
    while (chips_take_frame(machine->net, &end.chip, &port, &machine->frame)) {
        end.port = port;
        uint32_t number = copper_leads_to(machine, end.chip, port);
        struct neighbour *neighbour = number == CHIPS_NONE ? NULL : find_neighbour(machine, number);
        struct machinewire_stream *stream = neighbour ? &neighbour->stream : &machine->switches;
        end.epoch = neighbour ? COPPER_EPOCH : *epoch_of(machine, end.chip, end.port);
        if (neighbour) { /* its end of the link */
            end.chip = chips_copper(end.chip, port);
            end.port = port ^ 1u;
        }
        if (stream->fd >= 0)
            machinewire_put_frame(stream, end, machine->frame.data, machine->frame.len);
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
    machinewire_close(&machine->guests[place]); /* the last place is that of the newest */
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
    chips_run(machine->net, now_ns); /* the frames that have come, come now */
    reach_others(machine, now_ns);
    receive_all(machine, fds);
    send_all(machine); /* answers to a measured round trip leave before the task is served */
    chips_serve_turn(machine->serve, &fds[2 + NEIGHBOURS_MAX + GUESTS_MAX]);
    send_all(machine);
}
