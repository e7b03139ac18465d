/* The link layer: light, training, credits, frames that are kept until acknowledged, and turns of sources. */
#include "sim/fabric/chips_private.h"

static bool link_flows(const struct chips *net, const struct chip_link *link)
{
    return link->far != CHIPS_NONE && link->asked && net->links[link->far].asked &&
           net->now_ns >= link->trained_ns;
}

static void begin_end(struct chips *net, uint32_t index, uint32_t far, uint32_t flight_ns)
{
    struct chip_link *link = &net->links[index];
    CHECK(link->far == CHIPS_NONE && link->acked == link->next);
    link->far = far;
    link->generation++;
    link->flight_ns = flight_ns;
    link->trained_ns = net->now_ns + CHIPS_TRAIN_NS;
    link->free_ns = link->trained_ns;
    link->next = link->acked = link->again = link->expected = 0;
    for (uint32_t vc = 0; vc < ROUTE_VCS; vc++)
        link->credits[vc] = net->settings.buffers - net->links[far].in[vc].count;
    chips_schedule(net, CHIPS_FREE, index, link->trained_ns)->generation = link->generation;
}

void link_light(struct chips *net, uint32_t one, uint32_t other, uint32_t flight_ns)
{
    begin_end(net, one, other, flight_ns);
    if (other != one)
        begin_end(net, other, one, flight_ns);
}

/* Loses the frames that the other end has not accepted. */
static void end_end(struct chips *net, struct chip_link *link, uint64_t accepted)
{
    for (uint64_t frame = link->acked; frame < link->next; frame++)
        if (frame >= accepted) {
            net->counts.lost++;
            packet_end(net, &link->kept[frame % net->window], false);
        }
    link->acked = link->again = link->next;
    link->generation++;
}

void link_dark(struct chips *net, uint32_t one)
{
    struct chip_link *link = &net->links[one], *far = &net->links[link->far];
    uint64_t accepted[2] = {far->expected, link->expected};
    CHECK(link->far != CHIPS_NONE && far->far == one);
    end_end(net, link, accepted[0]);
    if (far != link)
        end_end(net, far, accepted[1]);
    far->far = CHIPS_NONE;
    link->far = CHIPS_NONE;
}

/* --- sending --------------------------------------------------------------------------------------- */

static struct packet_queue *queue_of(struct chips *net, uint32_t chip, uint32_t source)
{
    if (source == SOURCE_BORN)
        return &net->chips[chip].born;
    return &net->links[chip * CHIP_PORTS + source / ROUTE_VCS].in[source % ROUTE_VCS];
}

static void put_on_link(struct chips *net, uint32_t index, uint64_t frame)
{
    struct chip_link *link = &net->links[index];
    const struct packet *packet = &link->kept[frame % net->window];
    uint32_t send_ns = 1 + net->settings.packet_ns * packet->len / CHIPS_PACKET_BYTES;
    link->free_ns = net->now_ns + send_ns;
    chips_schedule(net, CHIPS_FREE, index, link->free_ns)->generation = link->generation;
    struct chips_event *arrives =
        chips_schedule(net, CHIPS_ARRIVES, link->far, link->free_ns + link->flight_ns);
    arrives->generation = net->links[link->far].generation;
    arrives->frame = frame;
    arrives->vc = route_vc(packet->entry);
    arrives->packet = *packet;
}

/* Gives a credit back to the sender at the other end of the link on which a packet came. */
static void return_credit(struct chips *net, uint32_t chip, uint32_t source)
{
    if (source == SOURCE_BORN)
        return;
    const struct chip_link *came = &net->links[chip * CHIP_PORTS + source / ROUTE_VCS];
    if (came->far == CHIPS_NONE)
        return;
    struct chips_event *credit = chips_schedule(net, CHIPS_CREDIT, came->far, net->now_ns + came->flight_ns);
    credit->generation = net->links[came->far].generation;
    credit->vc = source % ROUTE_VCS;
}

void link_flush(struct chips *net, uint32_t chip)
{
    for (uint32_t source = 0; source < SOURCES; source++)
        for (struct packet_queue *queue = queue_of(net, chip, source); queue->count;) {
            struct packet packet = packet_take(queue);
            net->counts.refused++;
            packet_end(net, &packet, false);
            return_credit(net, chip, source);
        }
}

/* The next packet of a source may go by another link, which may stand idle. */
static void wake_next(struct chips *net, uint32_t chip, uint32_t source, uint32_t but)
{
    struct packet *next = packet_first(queue_of(net, chip, source));
    if (next && route_port(next->entry) != but)
        link_try(net, chip * CHIP_PORTS + route_port(next->entry));
}

static bool send_new(struct chips *net, uint32_t index)
{
    struct chip_link *link = &net->links[index];
    uint32_t chip = index / CHIP_PORTS, port = index % CHIP_PORTS;
    for (uint32_t i = 0; i < SOURCES; i++) {
        uint32_t source = (link->turn + i) % SOURCES;
        struct packet_queue *queue = queue_of(net, chip, source);
        struct packet *packet = packet_first(queue);
        if (!packet || route_port(packet->entry) != port || !link->credits[route_vc(packet->entry)])
            continue;
        CHECK(link->next - link->acked < net->window);
        link->credits[route_vc(packet->entry)]--;
        link->kept[link->next % net->window] = packet_take(queue);
        put_on_link(net, index, link->next);
        link->again = ++link->next;
        link->turn = source + 1;
        return_credit(net, chip, source);
        wake_next(net, chip, source, port);
        return true;
    }
    return false;
}

void link_try(struct chips *net, uint32_t index)
{
    struct chip_link *link = &net->links[index];
    if (!link_flows(net, link) || net->now_ns < link->free_ns)
        return;
    if (link->again < link->next) {
        net->counts.resent++;
        put_on_link(net, index, link->again++);
    } else if (link->next - link->acked < net->window) {
        (void)send_new(net, index);
    }
}

/* --- receiving ------------------------------------------------------------------------------------- */

static void answer(struct chips *net, uint32_t index, enum chips_event_kind kind)
{
    const struct chip_link *link = &net->links[index];
    struct chips_event *event = chips_schedule(net, kind, link->far, net->now_ns + link->flight_ns);
    event->generation = net->links[link->far].generation;
    event->frame = link->expected;
}

static void frame_arrives(struct chips *net, const struct chips_event *event)
{
    struct chip_link *link = &net->links[event->link];
    uint32_t chip = event->link / CHIP_PORTS;
    struct packet packet = event->packet;
    if (event->frame != link->expected)
        return; /* behind a damaged frame: it comes again */
    if (rng_chance(&net->rng, net->settings.loss_ppm)) {
        answer(net, event->link, CHIPS_NACK);
        return;
    }
    link->expected++;
    net->counts.hops++;
    answer(net, event->link, CHIPS_ACK);
    if (!packet_route(net, chip, &packet, false)) {
        return_credit(net, chip, event->link % CHIP_PORTS * ROUTE_VCS + event->vc);
        return;
    }
    struct packet_queue *in = &link->in[event->vc];
    CHECK(in->count < net->settings.buffers);
    packet_put(in, &packet);
    if (in->count == 1)
        link_try(net, chip * CHIP_PORTS + route_port(packet.entry));
}

void link_event(struct chips *net, const struct chips_event *event)
{
    struct chip_link *link = &net->links[event->link];
    if (event->generation != link->generation)
        return; /* of a light that is gone */
    switch (event->kind) {
    case CHIPS_ARRIVES:
        frame_arrives(net, event);
        return;
    case CHIPS_ACK:
        if (event->frame > link->acked)
            link->acked = event->frame;
        break;
    case CHIPS_NACK:
        link->acked = event->frame;
        link->again = event->frame;
        break;
    case CHIPS_CREDIT:
        link->credits[event->vc]++;
        CHECK(link->credits[event->vc] <= net->settings.buffers);
        break;
    case CHIPS_FREE:
        break;
    }
    link_try(net, event->link);
}
