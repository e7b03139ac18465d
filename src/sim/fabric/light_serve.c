#include "sim/fabric/light_serve.h"

#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/fabric/wiring.h"
#include "sim/fabric/machinewire.h"

/* connections that have not said HELLO */
enum { GUESTS_MAX = 16 };

/* The end of an optical link at a chip. */
struct fibre {
    uint32_t joined; /* index of the end with which a switch joins it; CHIPS_NONE: none */
    uint32_t epoch;
    bool lit; /* its machine was told that it has light */
};
struct light_serve {
    struct light_serve_settings settings;
    int listen_fd;
    uint32_t machine_count, fibre_count;
    struct machinewire_stream *machines; /* [16 x cube + machine of the cube] */
    struct fibre *fibres;                /* [chip x CHIP_PORTS + port]; those of copper are not used */
    struct machinewire_stream guests[GUESTS_MAX];
};

/* --- opening and closing ------------------------------------------------------------------------------- */

int light_serve_open(const struct light_serve_settings *settings, struct light_serve **ret_serve,
                     struct error *error)
{
    int fd, status = machinewire_listen(settings->folder, MACHINEWIRE_SWITCHES, &fd, error);
    if (status < 0)
        return status;
    CHECK(settings->cubes >= 1 && settings->cubes <= POD_CUBES_MAX);
    struct light_serve *serve = mem_alloc(sizeof *serve);
    serve->settings = *settings;
    serve->listen_fd = fd;
    serve->machine_count = settings->cubes * CUBE_MACHINES;
    serve->fibre_count = settings->cubes * CUBE_CHIPS * CHIP_PORTS;
    serve->machines = mem_alloc(serve->machine_count * sizeof *serve->machines);
    serve->fibres = mem_alloc(serve->fibre_count * sizeof *serve->fibres);
    for (uint32_t i = 0; i < serve->machine_count; i++)
        serve->machines[i].fd = -1;
    for (uint32_t i = 0; i < GUESTS_MAX; i++)
        serve->guests[i].fd = -1;
    for (uint32_t i = 0; i < serve->fibre_count; i++)
        serve->fibres[i].joined = CHIPS_NONE;
    *ret_serve = serve;
    return 0;
}

void light_serve_close(struct light_serve *serve)
{
    struct sockaddr_un at;
    for (uint32_t i = 0; i < serve->machine_count; i++)
        machinewire_close(&serve->machines[i]);
    for (uint32_t i = 0; i < GUESTS_MAX; i++)
        machinewire_close(&serve->guests[i]);
    close(serve->listen_fd);
    if (machinewire_address(serve->settings.folder, MACHINEWIRE_SWITCHES, &at, NULL) == 0)
        unlink(at.sun_path);
    mem_free(serve->machines);
    mem_free(serve->fibres);
    mem_free(serve);
}

/* --- light --------------------------------------------------------------------------------------------- */

static struct machinewire_stream *stream_of(struct light_serve *serve, uint32_t fibre)
{
    return &serve->machines[chips_machine(fibre / CHIP_PORTS)];
}

static struct machinewire_end end_of(const struct light_serve *serve, uint32_t fibre)
{
    return (struct machinewire_end){fibre / CHIP_PORTS, fibre % CHIP_PORTS, serve->fibres[fibre].epoch};
}

static void tell_light(struct light_serve *serve, uint32_t number, bool lit)
{
    struct fibre *fibre = &serve->fibres[number];
    fibre->lit = lit;
    fibre->epoch += lit;
    if (stream_of(serve, number)->fd >= 0)
        machinewire_put_light(stream_of(serve, number), end_of(serve, number), lit);
}

static void darken(struct light_serve *serve, uint32_t number)
{
    if (!serve->fibres[number].lit)
        return;
    uint32_t other = serve->fibres[number].joined;
    tell_light(serve, number, false);
    tell_light(serve, other, false);
}

/* Gives light to a fibre and the one joined with it, if both machines are connected. */
static void lighten(struct light_serve *serve, uint32_t number)
{
    uint32_t other = serve->fibres[number].joined;
    if (other == CHIPS_NONE || serve->fibres[number].lit || stream_of(serve, number)->fd < 0 ||
        stream_of(serve, other)->fd < 0)
        return;
    tell_light(serve, number, true);
    tell_light(serve, other, true);
}

static void part(struct light_serve *serve, uint32_t number)
{
    uint32_t other = serve->fibres[number].joined;
    if (other == CHIPS_NONE)
        return;
    darken(serve, number);
    serve->fibres[number].joined = serve->fibres[other].joined = CHIPS_NONE;
}

void light_serve_follow(struct light_serve *serve, uint32_t switch_number, const struct ocs *ocs)
{
    struct pod_switch which = pod_switch_at(switch_number);
    const struct link_end plus = {0, which.axis, which.index, POLARITY_PLUS},
                          minus = {0, which.axis, which.index, POLARITY_MINUS};
    for (int pass = 0; pass < 2; pass++) /* first take all old light, then give the new */
        for (uint16_t cube = 0; cube < serve->settings.cubes; cube++) {
            uint32_t joined = chips_joined(serve->settings.cubes, switch_number, ocs, cube);
            uint32_t one = (cube * CUBE_CHIPS + link_end_chip(plus)) * CHIP_PORTS + 2u * which.axis;
            uint32_t other =
                joined == CHIPS_NONE || joined >= serve->settings.cubes
                    ? CHIPS_NONE
                    : (joined * CUBE_CHIPS + link_end_chip(minus)) * CHIP_PORTS + 2u * which.axis + 1;
            if (serve->fibres[one].joined == other)
                continue;
            if (pass == 0)
                part(serve, one);
            if (pass == 1 && other != CHIPS_NONE) {
                serve->fibres[one].joined = other;
                serve->fibres[other].joined = one;
                lighten(serve, one);
            }
        }
}

/* --- machines ------------------------------------------------------------------------------------------ */

static void for_fibres_of(struct light_serve *serve, uint32_t machine,
                          void (*act)(struct light_serve *serve, uint32_t fibre))
{
    uint32_t first = machine / CUBE_MACHINES * CUBE_CHIPS * CHIP_PORTS;
    for (uint32_t i = first; i < first + CUBE_CHIPS * CHIP_PORTS; i++)
        if (chips_machine(i / CHIP_PORTS) == machine)
            act(serve, i);
}

static void end_machine(struct light_serve *serve, uint32_t machine)
{
    struct machinewire_stream *stream = &serve->machines[machine];
    if (stream->fd < 0)
        return;
    machinewire_close(stream);
    for_fibres_of(serve, machine, darken);
}

/* Makes a guest the connection of the machine that it names. Returns false if its first frame is not a valid
 * HELLO. */
static bool seat_guest(struct light_serve *serve, struct machinewire_stream *guest)
{
    struct jobwire_reader frame;
    uint32_t machine;
    int found = machinewire_next(guest, &frame);
    if (found == 0)
        return true;
    if (found < 0 || jobwire_get(&frame, 1) != MACHINEWIRE_HELLO ||
        !machinewire_get_hello(&frame, &machine) || machine >= serve->machine_count)
        return false;
    end_machine(serve, machine);
    serve->machines[machine] = *guest;
    *guest = (struct machinewire_stream){.fd = -1};
    for_fibres_of(serve, machine, lighten);
    return true;
}

/* Returns the fibre at a link end of a machine, or CHIPS_NONE if the end is another machine's or has no
 * fibre. */
static uint32_t fibre_at(const struct light_serve *serve, uint32_t machine, const struct machinewire_end *end)
{
    struct link_end optical;
    if (end->chip >= serve->settings.cubes * CUBE_CHIPS || chips_machine(end->chip) != machine ||
        !cube_chip_optical((uint16_t)(end->chip / CUBE_CHIPS), end->chip % CUBE_CHIPS, end->port, &optical))
        return CHIPS_NONE;
    return end->chip * CHIP_PORTS + end->port;
}

/* Passes a frame to the other end of its fibre. Returns false if the machine may not send it. */
static bool pass_on(struct light_serve *serve, uint32_t machine, struct jobwire_reader *reader)
{
    struct machinewire_end end;
    uint32_t number = machinewire_get_frame(reader, &end) ? fibre_at(serve, machine, &end) : CHIPS_NONE;
    if (number == CHIPS_NONE)
        return false;
    const struct fibre *fibre = &serve->fibres[number];
    if (fibre->lit && fibre->epoch == end.epoch)
        machinewire_put_frame(stream_of(serve, fibre->joined), end_of(serve, fibre->joined),
                              reader->data + reader->pos, reader->len - reader->pos);
    return true;
}

static bool retrain(struct light_serve *serve, uint32_t machine, struct jobwire_reader *reader)
{
    struct machinewire_end end;
    uint32_t number = machinewire_get_retrain(reader, &end) ? fibre_at(serve, machine, &end) : CHIPS_NONE;
    if (number == CHIPS_NONE)
        return false;
    if (serve->fibres[number].lit && serve->fibres[number].epoch == end.epoch) {
        darken(serve, number);
        lighten(serve, number);
    }
    return true;
}

static bool pass_lost(struct light_serve *serve, struct jobwire_reader *reader)
{
    struct chips_lost lost;
    if (!machinewire_get_lost(reader, &lost) || lost.from >= serve->settings.cubes * CUBE_CHIPS)
        return false;
    struct machinewire_stream *writer = &serve->machines[chips_machine(lost.from)];
    if (writer->fd >= 0)
        machinewire_put_lost(writer, &lost);
    return true;
}

static bool serve_machine(struct light_serve *serve, uint32_t machine)
{
    struct machinewire_stream *stream = &serve->machines[machine];
    struct jobwire_reader frame;
    int found;
    while ((found = machinewire_next(stream, &frame)) == 1) {
        uint64_t type = jobwire_get(&frame, 1);
        bool good = type == MACHINEWIRE_FRAME     ? pass_on(serve, machine, &frame)
                    : type == MACHINEWIRE_RETRAIN ? retrain(serve, machine, &frame)
                    : type == MACHINEWIRE_LOST    ? pass_lost(serve, &frame)
                                                  : false;
        if (!good)
            return false;
    }
    return found == 0;
}

/* --- the loop's side ----------------------------------------------------------------------------------- */

static void take_guest(struct light_serve *serve)
{
    uint32_t place = 0;
    int fd = machinewire_accept(serve->listen_fd);
    if (fd < 0)
        return;
    while (place < GUESTS_MAX - 1 && serve->guests[place].fd >= 0)
        place++;
    machinewire_close(&serve->guests[place]); /* the last place always takes the newest */
    serve->guests[place].fd = fd;
}

uint32_t light_serve_fds(const struct light_serve *serve)
{
    return 1 + GUESTS_MAX + serve->machine_count;
}

void light_serve_watch(const struct light_serve *serve, struct pollfd *fds)
{
    fds[0] = (struct pollfd){serve->listen_fd, POLLIN, 0};
    for (uint32_t i = 0; i < GUESTS_MAX; i++)
        fds[1 + i] = machinewire_poll(&serve->guests[i]);
    for (uint32_t i = 0; i < serve->machine_count; i++)
        fds[1 + GUESTS_MAX + i] = machinewire_poll(&serve->machines[i]);
}

static bool is_ready(const struct machinewire_stream *stream, const struct pollfd *fd)
{
    return stream->fd >= 0 && stream->fd == fd->fd && (fd->revents & ~POLLOUT);
}

void light_serve_turn(struct light_serve *serve, const struct pollfd *fds)
{
    for (uint32_t i = 0; i < serve->machine_count; i++)
        if (is_ready(&serve->machines[i], &fds[1 + GUESTS_MAX + i]) &&
            (!machinewire_receive(&serve->machines[i]) || !serve_machine(serve, i)))
            end_machine(serve, i);
    for (uint32_t i = 0; i < GUESTS_MAX; i++)
        if (is_ready(&serve->guests[i], &fds[1 + i]) &&
            (!machinewire_receive(&serve->guests[i]) || !seat_guest(serve, &serve->guests[i])))
            machinewire_close(&serve->guests[i]);
    if (fds[0].revents)
        take_guest(serve);
    for (uint32_t i = 0; i < serve->machine_count; i++)
        if (serve->machines[i].fd >= 0 && !machinewire_send(&serve->machines[i]))
            end_machine(serve, i);
}
