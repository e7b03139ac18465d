/* The carrier over UCX. */
#include "flow/wire/ucx.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "flow/wire/socket.h"

enum {
    UCX_COPY_MAX = 32768,     /* bytes of one copied message */
    UCX_TENSOR_MAX = 1 << 20, /* bytes of one message sent from a tensor's memory */
    UCX_TENSOR_MIN = 65536,   /* smaller rests are copied: a rendezvous costs a round trip */
};

/* Handles bytes that arrived on the socket after the move. Returns false if they are not END. */
static bool carrier_heard(struct ucx_carrier *carrier, const char *data, size_t len)
{
    if (len > sizeof carrier->last - carrier->last_len)
        return false;
    memcpy(carrier->last + carrier->last_len, data, len);
    carrier->last_len += len;
    if (carrier->last_len < sizeof carrier->last)
        return true;
    struct wire_header header;
    memcpy(&header, carrier->last, sizeof header);
    carrier->ended = true;
    carrier->ends_at = header.bytes;
    return memcmp(header.magic, "PHXU", 4) == 0 && header.entries == WIRE_END;
}

bool carrier_hear(struct ucx_carrier *carrier)
{
    char bytes[sizeof carrier->last + 1];
    ssize_t got = recv(carrier->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    return carrier_heard(carrier, bytes, (size_t)got);
}

static ssize_t carrier_read(struct wire *wire, void *data, size_t len)
{
    struct ucx_carrier *carrier = wire->carrier;
    if (!carrier->reads)
        return carrier->broken ? -1 : wire_socket_read(wire, data, len);
    size_t got = stream_read(&carrier->stream, data, len);
    if (got > 0) {
        if (stream_owes(&carrier->stream))
            hub_send(carrier, UCX_CREDIT, stream_tell(&carrier->stream), NULL, 0);
        return (ssize_t)got;
    }
    hub_settle(carrier->hub, carrier);
    if (carrier->broken || (carrier->ended && carrier->stream.taken >= carrier->ends_at))
        return -1;
    if (carrier_hear(carrier)) /* END may have arrived after all the bytes */
        return carrier->ended && carrier->stream.taken >= carrier->ends_at ? -1 : 0;
    ucx_api.ucp_worker_progress(carrier->hub->worker); /* fetch the last bytes of a peer that has died */
    got = stream_read(&carrier->stream, data, len);
    return got > 0 ? (ssize_t)got : -1;
}

static ssize_t carrier_write(struct wire *wire, const void *data, size_t len)
{
    struct ucx_carrier *carrier = wire->carrier;
    if (carrier->broken)
        return -1;
    if (!carrier->writes)
        return wire_socket_write(wire, data, len);
    size_t room = stream_room(&carrier->stream);
    len = len < UCX_COPY_MAX ? len : UCX_COPY_MAX;
    len = len < room ? len : room;
    if (len == 0)
        return 0;
    uint64_t at = carrier->stream.sent;
    stream_sent(&carrier->stream, len);
    hub_send(carrier, UCX_DATA, at, data, len);
    return (ssize_t)len;
}

static ssize_t carrier_write_tensor(struct wire *wire, struct tensor *tensor, size_t from)
{
    struct ucx_carrier *carrier = wire->carrier;
    size_t left = (size_t)ir_type_bytes(&tensor->type) - from, room = stream_room(&carrier->stream);
    if (left < UCX_TENSOR_MIN || carrier->broken || !carrier->writes)
        return carrier_write(wire, (const char *)tensor->data + from, left);
    size_t len = left < UCX_TENSOR_MAX ? left : UCX_TENSOR_MAX;
    if (len > room) /* only whole pieces are sent */
        return 0;
    uint64_t at = carrier->stream.sent;
    stream_sent(&carrier->stream, len);
    hub_send_tensor(carrier, at, tensor, from, len);
    return (ssize_t)len;
}

/* Whether wire_hub_next will return the wire. */
static bool carrier_is_ready(struct wire *wire)
{
    struct ucx_carrier *carrier = wire->carrier;
    ucx_api.ucp_worker_progress(carrier->hub->worker);
    return carrier->ready;
}

static bool carrier_doze(struct wire *wire, bool dozes)
{
    struct ucx_carrier *carrier = wire->carrier;
    return !dozes || !carrier->ready; /* wire_hub_turn arms the hub's descriptor */
}

static void carrier_close(struct wire *wire)
{
    struct ucx_carrier *carrier = wire->carrier;
    if (carrier->writes) {
        struct wire_header end = {{'P', 'H', 'X', 'U'}, WIRE_END, carrier->stream.sent};
        (void)!send(carrier->fd, &end, sizeof end, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    hub_let_go(carrier->hub, carrier);
}

static int carrier_step(struct wire *wire, enum wire_step step, struct str data, struct str rest);
static void carrier_moved(struct wire *wire);

/* The carrier until this side's frames go over UCX; poll reports space to write. */
static const struct wire_ops ucx_moving = {.name = "moving to ucx",
                                           .read = carrier_read,
                                           .write = carrier_write,
                                           .close = carrier_close,
                                           .write_tensor = carrier_write_tensor,
                                           .step = carrier_step,
                                           .moved = carrier_moved};
static const struct wire_ops ucx_moved = {.name = "ucx",
                                          .read = carrier_read,
                                          .write = carrier_write,
                                          .close = carrier_close,
                                          .is_ready = carrier_is_ready,
                                          .doze = carrier_doze,
                                          .write_tensor = carrier_write_tensor,
                                          .step = carrier_step,
                                          .moved = carrier_moved};

static struct ucx_carrier *carrier_new(struct wire_hub *hub, struct wire *wire)
{
    struct ucx_carrier *carrier = mem_alloc(sizeof *carrier);
    carrier->hub = hub;
    carrier->wire = wire;
    carrier->fd = wire->fd;
    hub_add(hub, carrier);
    wire->carrier = carrier;
    wire->ops = &ucx_moving;
    return carrier;
}

/* Adds an OFFER or ANSWER to the wire. */
static void carrier_greet(struct ucx_carrier *carrier, enum wire_step step, bool moves)
{
    struct buf bytes BUF_CLEANUP = {0};
    buf_add(&bytes, &carrier->own, sizeof carrier->own);
    buf_add(&bytes, carrier->hub->address, carrier->hub->address_len);
    flow_wire_put_step(carrier->wire, step, buf_str(&bytes), moves);
}

static bool carrier_is_greeted(struct ucx_carrier *carrier, struct str data)
{
    struct ucx_greeting *peer = &carrier->peer;
    if (data.len <= sizeof *peer || carrier->endpoint)
        return false;
    memcpy(peer, data.data, sizeof *peer);
    struct str address = {data.data + sizeof *peer, data.len - sizeof *peer};
    return peer->version == UCX_VERSION && peer->zero == 0 && hub_reach(carrier->hub, carrier, address);
}

static int carrier_step(struct wire *wire, enum wire_step step, struct str data, struct str rest)
{
    struct ucx_carrier *carrier = wire->carrier;
    if (step == WIRE_OFFER && !carrier->offered && carrier_is_greeted(carrier, data)) {
        carrier_greet(carrier, WIRE_ANSWER, true);
        return 0;
    }
    bool answers = step == WIRE_ANSWER && carrier->offered && carrier_is_greeted(carrier, data);
    bool switches =
        step == WIRE_SWITCH && !carrier->offered && carrier->endpoint && !carrier->reads && data.len == 0;
    if (!answers && !switches)
        return -1;
    if (answers)
        flow_wire_put_step(wire, WIRE_SWITCH, (struct str){0}, true);
    carrier->reads = true;
    hub_wake(carrier->hub, carrier); /* frames over UCX may have arrived before this step */
    return carrier_heard(carrier, rest.data, rest.len) ? 1 : -1;
}

static void carrier_moved(struct wire *wire)
{
    struct ucx_carrier *carrier = wire->carrier;
    carrier->writes = true;
    wire->ops = &ucx_moved;
}

int wire_hub_connect(struct wire_hub *hub, const char *address, struct wire **ret_wire, struct error *error)
{
    bool on_one_host = strncmp(address, "unix:", 5) == 0;
    if (!hub || (hub->hosts_alone && on_one_host))
        return flow_wire_connect(address, ret_wire, error);
    int rc = wire_socket_connect(address, ret_wire, error);
    if (rc < 0)
        return rc;
    carrier_new(hub, *ret_wire);
    flow_wire_put_step(*ret_wire, WIRE_ANNOUNCE, (struct str){0}, false);
    return 0;
}

void wire_hub_offer(struct wire_hub *hub, struct wire *wire)
{
    if (!hub || !wire->announced || wire->carrier)
        return;
    struct ucx_carrier *carrier = carrier_new(hub, wire);
    carrier->offered = true;
    carrier_greet(carrier, WIRE_OFFER, false);
}
