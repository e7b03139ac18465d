#include "sim/fabric/chips_serve.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/str.h"
#include "job/fabric/chipwire.h"
#include "sim/fabric/chips.h"
#include "sim/fabric/station.h"

enum {
    MACHINE_CHIPS = CUBE_CHIPS / CUBE_MACHINES,
    SEAT_FDS = 2,
    READ_BYTES = 64 << 10,
    PINGS = 4,          /* between processes: round trips of which the best counts */
    LOOK_NS = 10000000, /* time until a waiting look is tried again */
};

/* A machine's socket and its client. */
struct seat {
    int listen_fd, fd; /* -1: none */
    struct buf in, out;
    bool waits;                    /* its next request is a look, which waits for links in training */
    uint32_t chips[MACHINE_CHIPS]; /* labels */
};
struct chips_serve {
    struct chips_serve_settings settings;
    struct chips *net;
    struct stations *stations;
    struct seat *seats;    /* [16 x cube + machine of the cube - first] */
    uint32_t first, count; /* machines */
    bool light_changed;    /* since the last turn */
};

/* --- opening and closing ------------------------------------------------------------------------------- */

/* Fills in the labels of a machine's chips, along X first, then Y: it has 2x2x1. */
static void label_chips(uint32_t number, uint32_t labels[MACHINE_CHIPS])
{
    uint32_t machine = number % CUBE_MACHINES, count = 0;
    for (uint32_t chip = 0; chip < CUBE_CHIPS; chip++)
        if (cube_chip_machine(chip) == machine) {
            CHECK(count < MACHINE_CHIPS);
            labels[count++] = number / CUBE_MACHINES * CUBE_CHIPS + chip;
        }
    CHECK(count == MACHINE_CHIPS);
}

static int socket_address(const struct chips_serve *serve, uint32_t number, struct sockaddr_un *ret_at)
{
    *ret_at = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(ret_at->sun_path, sizeof ret_at->sun_path, "%s/%u-%u", serve->settings.folder,
                       number / CUBE_MACHINES, number % CUBE_MACHINES);
    return len < (int)sizeof ret_at->sun_path ? 0 : -1;
}

static int open_seat(struct chips_serve *serve, uint32_t number, struct error *error)
{
    struct sockaddr_un at;
    struct seat *seat = &serve->seats[number - serve->first];
    if (socket_address(serve, number, &at) < 0)
        return error_set(error, ERROR_INVALID, "%.100s: too long for sockets in it", serve->settings.folder);
    unlink(at.sun_path); /* left by an emulator that was killed */
    seat->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (seat->listen_fd < 0 || bind(seat->listen_fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        chmod(at.sun_path, 0666) < 0 || listen(seat->listen_fd, 4) < 0) /* tasks may run as any user */
        return error_set_errno(error, errno, "listening at %s", at.sun_path);
    return 0;
}

int chips_serve_open(const struct chips_serve_settings *settings, struct chips_serve **ret_serve,
                     struct error *error)
{
    struct chips_settings net = {.cubes = settings->cubes,
                                 .one_machine = settings->one_machine,
                                 .machine = settings->machine,
                                 .memory_bytes = settings->memory_bytes,
                                 .buffers = 16,
                                 .packet_ns = settings->one_machine ? 0 : 82,
                                 .copper_ns = 20,
                                 .optical_ns = 200,
                                 .loss_ppm = settings->loss_ppm,
                                 .pings = settings->one_machine ? PINGS : 1,
                                 .seed = 1 + settings->machine};
    if (mkdir(settings->folder, 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "making the folder %.200s", settings->folder);
    struct chips_serve *serve = mem_alloc(sizeof *serve);
    serve->settings = *settings;
    serve->net = chips_new(&net);
    serve->stations = stations_new(serve->net, settings->cubes);
    serve->first = settings->one_machine ? settings->machine : 0;
    serve->count = settings->one_machine ? 1 : settings->cubes * CUBE_MACHINES;
    serve->seats = mem_alloc(serve->count * sizeof *serve->seats);
    for (uint32_t i = 0; i < serve->count; i++) {
        serve->seats[i].listen_fd = serve->seats[i].fd = -1;
        label_chips(serve->first + i, serve->seats[i].chips);
    }
    int rc = 0;
    for (uint32_t i = 0; i < serve->count && rc == 0; i++)
        rc = open_seat(serve, serve->first + i, error);
    if (rc < 0) {
        chips_serve_close(serve);
        return rc;
    }
    *ret_serve = serve;
    return 0;
}

static void end_client(struct chips_serve *serve, struct seat *seat)
{
    if (seat->fd < 0)
        return;
    close(seat->fd);
    seat->fd = -1;
    seat->waits = false;
    buf_clear(&seat->in);
    buf_clear(&seat->out);
    for (uint32_t i = 0; i < MACHINE_CHIPS; i++)
        stations_unload(serve->stations, seat->chips[i]);
}

void chips_serve_close(struct chips_serve *serve)
{
    for (uint32_t i = 0; i < serve->count; i++) {
        struct sockaddr_un at;
        struct seat *seat = &serve->seats[i];
        end_client(serve, seat);
        if (seat->listen_fd >= 0) {
            close(seat->listen_fd);
            if (socket_address(serve, serve->first + i, &at) == 0)
                unlink(at.sun_path);
        }
        buf_done(&seat->in);
        buf_done(&seat->out);
    }
    stations_free(serve->stations);
    chips_free(serve->net);
    mem_free(serve->seats);
    mem_free(serve);
}

/* --- frames -------------------------------------------------------------------------------------------- */

static void put(struct buf *out, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        buf_add_char(out, (char)(value >> (8 * i)));
}

static void put_head(struct seat *seat, enum chipwire_type type, size_t fields)
{
    put(&seat->out, 1 + fields, 4);
    put(&seat->out, type, 1);
}

/* Answers an order: `why` is the reason for a refusal, or NULL if it was carried out. */
static void put_done(struct seat *seat, const char *why)
{
    size_t len = why ? strlen(why) : 0;
    put_head(seat, CHIPWIRE_DONE, 1 + len);
    put(&seat->out, why != NULL, 1);
    buf_add(&seat->out, why, len);
}

static void put_event(struct seat *seat, const struct phx_chip_event *event)
{
    put_head(seat, CHIPWIRE_EVENT, 1 + 1 + 1 + 4 + 8);
    put(&seat->out, event->kind, 1);
    put(&seat->out, event->chip, 1);
    put(&seat->out, event->port, 1);
    put(&seat->out, event->session, 4);
    put(&seat->out, event->tag, 8);
}

/* Sends an event to the client of a chip's machine, if there is one. */
static void tell(struct chips_serve *serve, uint32_t label, struct phx_chip_event event)
{
    uint32_t machine = chips_machine(label);
    CHECK(machine >= serve->first && machine - serve->first < serve->count);
    struct seat *seat = &serve->seats[machine - serve->first];
    for (uint32_t i = 0; i < MACHINE_CHIPS; i++)
        if (seat->fd >= 0 && seat->chips[i] == label) {
            event.chip = (uint8_t)i;
            put_event(seat, &event);
        }
}

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Runs the net: a whole pod in its own time, a machine's net in real time. */
static void run_net(struct chips_serve *serve)
{
    chips_run(serve->net, serve->settings.one_machine ? monotonic_ns() : INT64_MAX);
}

/* --- requests ------------------------------------------------------------------------------------------ */

static void look(struct chips_serve *serve, struct seat *seat, uint32_t label)
{
    uint8_t fields[CHIPWIRE_ABOUT_BYTES];
    struct jobwire_writer writer = {.data = fields, .cap = sizeof fields};
    struct phx_chip_about about = {.label = label,
                                   .session = stations_session(serve->stations, label),
                                   .memory_bytes = serve->settings.memory_bytes};
    struct fabric_neighbour seen[CHIP_PORTS];
    stations_look(serve->stations, label, seen);
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        about.ports[port] = (struct phx_chip_port){.light = seen[port].light,
                                                   .port = seen[port].port,
                                                   .chip = seen[port].chip,
                                                   .rtt_ns = seen[port].rtt_ns};
    chipwire_put_about(&writer, &about);
    put_head(seat, CHIPWIRE_LOOKED, sizeof fields);
    buf_add(&seat->out, fields, sizeof fields);
}

/* Loads a chip. Returns false if the frame is malformed. */
static bool load(struct chips_serve *serve, struct seat *seat, uint32_t label, struct jobwire_reader *reader)
{
    uint32_t session = (uint32_t)jobwire_get(reader, 4);
    uint16_t number = (uint16_t)jobwire_get(reader, 2);
    jobwire_get(reader, 1); /* the parent, from which a start arrives */
    uint8_t children = (uint8_t)jobwire_get(reader, 1);
    int64_t wait_ns = (int64_t)jobwire_get(reader, 8);
    uint32_t buffer_bytes[CHIP_PORTS];
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        buffer_bytes[port] = (uint32_t)jobwire_get(reader, 4);
    uint16_t chips = (uint16_t)jobwire_get(reader, 2);
    const uint8_t *transit = jobwire_get_bytes(reader, chips), *inject = jobwire_get_bytes(reader, chips);
    if (reader->broken || reader->pos != reader->len)
        return false;
    if (session == 0 || number >= chips || chips > SLICE_CHIPS_MAX || children >> CHIP_PORTS || wait_ns < 0 ||
        wait_ns > INT64_C(1000000000)) {
        put_done(seat, "a load whose numbers no session has");
        return true;
    }
    stations_load(serve->stations, label, session, children, wait_ns);
    chips_load_own(serve->net, label, number, session, chips, transit, inject);
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        chips_set_buffer(serve->net, label, port, buffer_bytes[port]);
    put_done(seat, NULL);
    return true;
}

static bool start(struct chips_serve *serve, struct seat *seat, uint32_t label, struct jobwire_reader *reader)
{
    uint32_t session = (uint32_t)jobwire_get(reader, 4);
    if (reader->broken || reader->pos != reader->len)
        return false;
    bool begun = stations_start(serve->stations, label, session);
    put_done(seat, begun ? NULL : "the chip is not loaded for this session");
    return true;
}

static bool write_to(struct chips_serve *serve, uint32_t label, struct jobwire_reader *reader)
{
    uint16_t to = (uint16_t)jobwire_get(reader, 2);
    uint32_t address = (uint32_t)jobwire_get(reader, 4);
    uint64_t tag = jobwire_get(reader, 8);
    size_t len = reader->len - reader->pos;
    const uint8_t *bytes = jobwire_get_bytes(reader, len);
    if (reader->broken || len == 0 || len > CHIPWIRE_DATA_MAX)
        return false;
    chips_write(serve->net, label, to, address, bytes, (uint32_t)len, tag);
    return true;
}

static bool read_from(struct chips_serve *serve, struct seat *seat, uint32_t label,
                      struct jobwire_reader *reader)
{
    uint32_t address = (uint32_t)jobwire_get(reader, 4), len = (uint32_t)jobwire_get(reader, 4);
    if (reader->broken || reader->pos != reader->len || len == 0 || len > CHIPWIRE_DATA_MAX)
        return false;
    if (address > serve->settings.memory_bytes || len > serve->settings.memory_bytes - address) {
        put_done(seat, "a read beyond the chip's memory");
        return true;
    }
    put_head(seat, CHIPWIRE_DATA, len);
    buf_add(&seat->out, chips_memory(serve->net, label) + address, len);
    return true;
}

/* Carries out one request. Returns false if it is malformed. */
static bool carry_out(struct chips_serve *serve, struct seat *seat, const uint8_t *frame, size_t len)
{
    struct jobwire_reader reader = {.data = frame, .len = len};
    uint64_t type = jobwire_get(&reader, 1), chip = jobwire_get(&reader, 1);
    if (reader.broken || chip >= MACHINE_CHIPS)
        return false;
    uint32_t label = seat->chips[chip];
    switch (type) {
    case CHIPWIRE_LOOK:
        look(serve, seat, label);
        return reader.pos == reader.len;
    case CHIPWIRE_LOAD:
        return load(serve, seat, label, &reader);
    case CHIPWIRE_START:
        return start(serve, seat, label, &reader);
    case CHIPWIRE_UNLOAD:
        stations_unload(serve->stations, label);
        put_done(seat, NULL);
        return reader.pos == reader.len;
    case CHIPWIRE_WRITE:
        return write_to(serve, label, &reader);
    case CHIPWIRE_READ:
        return read_from(serve, seat, label, &reader);
    default:
        return false;
    }
}

/* --- the loop's side ----------------------------------------------------------------------------------- */

/* Lets packets arrive, and reports chips that have started and writes that have ended. */
static void deliver(struct chips_serve *serve)
{
    run_net(serve);
    for (struct chips_begun begun; stations_take_started(serve->stations, &begun);)
        tell(serve, begun.chip, (struct phx_chip_event){.kind = PHX_CHIP_STARTED, .session = begun.number});
    for (struct chips_done done; chips_take_done(serve->net, &done);)
        tell(serve, done.delivered ? done.at : done.from,
             (struct phx_chip_event){.kind = done.delivered ? PHX_CHIP_ARRIVED : PHX_CHIP_LOST,
                                     .session = done.session,
                                     .tag = done.tag});
}

struct chips *chips_serve_net(struct chips_serve *serve)
{
    return serve->net;
}

void chips_serve_look_at_light(struct chips_serve *serve)
{
    serve->light_changed = true;
}

void chips_serve_follow(struct chips_serve *serve, uint32_t switch_number, const struct ocs *ocs)
{
    serve->light_changed |= chips_follow(serve->net, switch_number, ocs);
}

/* Tells clients of lost light; new light trains first. */
static void tell_dark(struct chips_serve *serve)
{
    for (uint32_t i = 0; i < serve->count * MACHINE_CHIPS; i++) {
        uint32_t label = serve->seats[i / MACHINE_CHIPS].chips[i % MACHINE_CHIPS];
        for (uint8_t gone = stations_dark(serve->stations, label); gone; gone &= (uint8_t)(gone - 1))
            tell(serve, label,
                 (struct phx_chip_event){.kind = PHX_CHIP_DARK,
                                         .session = stations_session(serve->stations, label),
                                         .port = (uint8_t)__builtin_ctz(gone)});
    }
    serve->light_changed = false;
}

static void take_client(struct chips_serve *serve, struct seat *seat)
{
    int fd = accept4(seat->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    end_client(serve, seat);
    seat->fd = fd;
    put_head(seat, CHIPWIRE_HELLO, 3);
    put(&seat->out, CHIPWIRE_VERSION, 2);
    put(&seat->out, MACHINE_CHIPS, 1);
}

/* Returns whether a request is a look that must wait until links have trained. */
static bool must_wait(struct chips_serve *serve, const struct seat *seat, const uint8_t *frame, size_t len)
{
    if (len < 2 || frame[0] != CHIPWIRE_LOOK || frame[1] >= MACHINE_CHIPS)
        return false;
    run_net(serve);
    return !stations_may_look(serve->stations, seat->chips[frame[1]]);
}

/* Carries out the requests that have arrived whole. Returns false if the client sent a malformed one. */
static bool serve_requests(struct chips_serve *serve, struct seat *seat)
{
    size_t used = 0;
    seat->waits = false;
    while (seat->in.len - used >= CHIPWIRE_HEAD && !seat->waits) {
        const uint8_t *at = (const uint8_t *)seat->in.data + used;
        struct jobwire_reader reader = {.data = at, .len = CHIPWIRE_HEAD};
        size_t len = (size_t)jobwire_get(&reader, CHIPWIRE_HEAD);
        if (len == 0 || len > CHIPWIRE_BYTES_MAX)
            return false;
        if (len > seat->in.len - used - CHIPWIRE_HEAD)
            break;
        seat->waits = must_wait(serve, seat, at + CHIPWIRE_HEAD, len);
        if (!seat->waits && !carry_out(serve, seat, at + CHIPWIRE_HEAD, len))
            return false;
        used += seat->waits ? 0 : CHIPWIRE_HEAD + len;
    }
    buf_drop_front(&seat->in, used);
    return true;
}

/* Reads once. Returns false if the client has closed the connection. */
static bool read_some(struct seat *seat)
{
    char bytes[READ_BYTES];
    ssize_t got = recv(seat->fd, bytes, sizeof bytes, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        return false;
    buf_add(&seat->in, bytes, got > 0 ? (size_t)got : 0);
    return true;
}

static bool send_some(struct seat *seat)
{
    if (seat->out.len == 0)
        return true;
    ssize_t sent = send(seat->fd, seat->out.data, seat->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return false;
    buf_drop_front(&seat->out, sent > 0 ? (size_t)sent : 0);
    return seat->out.len <= CHIPS_SERVE_OUT_MAX;
}

uint32_t chips_serve_fds(const struct chips_serve *serve)
{
    return serve->count * SEAT_FDS;
}

void chips_serve_watch(const struct chips_serve *serve, struct pollfd *fds)
{
    for (uint32_t i = 0; i < serve->count; i++) {
        const struct seat *seat = &serve->seats[i];
        fds[SEAT_FDS * i] = (struct pollfd){seat->listen_fd, POLLIN, 0};
        short events = (short)((seat->waits ? 0 : POLLIN) | (seat->out.len ? POLLOUT : 0));
        fds[SEAT_FDS * i + 1] = (struct pollfd){seat->fd, events, 0};
    }
}

int64_t chips_serve_wake_ns(const struct chips_serve *serve)
{
    int64_t wake_ns = chips_next_ns(serve->net), soon_ns = monotonic_ns() + LOOK_NS;
    for (uint32_t i = 0; i < serve->count; i++)
        if (serve->seats[i].waits && soon_ns < wake_ns)
            wake_ns = soon_ns;
    return wake_ns;
}

static void serve_seat(struct chips_serve *serve, struct seat *seat, const struct pollfd fds[SEAT_FDS])
{
    const struct pollfd *client = &fds[1];
    bool ready = seat->fd >= 0 && seat->fd == client->fd && (client->revents & ~POLLOUT);
    if ((ready && !read_some(seat)) || ((ready || seat->waits) && !serve_requests(serve, seat)))
        end_client(serve, seat);
    if (fds[0].revents)
        take_client(serve, seat);
}

void chips_serve_turn(struct chips_serve *serve, const struct pollfd *fds)
{
    deliver(serve);
    if (serve->light_changed)
        tell_dark(serve);
    for (uint32_t i = 0; i < serve->count; i++)
        serve_seat(serve, &serve->seats[i], &fds[SEAT_FDS * i]);
    deliver(serve);
    for (uint32_t i = 0; i < serve->count; i++)
        if (serve->seats[i].fd >= 0 && !send_some(&serve->seats[i]))
            end_client(serve, &serve->seats[i]);
}
