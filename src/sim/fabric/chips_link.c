/* An end of a link: training, credits, frames that are kept until acknowledged, and turns of sources. */
#include "sim/fabric/chips_private.h"

static struct link_frame frame_of(enum link_frame_kind kind)
{
    return (struct link_frame){.kind = (uint8_t)kind};
}

void link_send(struct chips *net, uint32_t index, const struct link_frame *frame, int64_t at_ns)
{
    const struct chip_link *link = &net->links[index];
    if (link->light == LIGHT_OUTSIDE) {
        struct chips_outgoing outgoing = {index, link->generation, *frame};
        if (frame->kind == LINK_DATA)
            frame->packet.cargo->refs++;
        vec_push(&net->outgoing, outgoing);
    } else if (link->light == LIGHT_INSIDE) {
        struct chips_event *event =
            chips_schedule(net, CHIPS_FRAME, link->far, at_ns + net->links[index].flight_ns);
        event->generation = net->links[link->far].generation;
        event->frame = *frame;
    }
}

/* --- light and training -------------------------------------------------------------------------------- */

static void send_train(struct chips *net, uint32_t index)
{
    const struct chip_link *link = &net->links[index];
    struct link_frame train = frame_of(LINK_TRAIN);
    train.label = index / CHIP_PORTS;
    train.port = (uint8_t)(index % CHIP_PORTS);
    train.number = (uint64_t)net->now_ns;
    for (uint32_t vc = 0; vc < ROUTE_VCS; vc++)
        train.credits[vc] = (uint8_t)(net->settings.buffers - link->held[vc] - link->in[vc].count);
    link_send(net, index, &train, net->now_ns);
}

void link_light(struct chips *net, uint32_t index, enum link_light light, uint32_t far, uint32_t flight_ns)
{
    struct chip_link *link = &net->links[index];
    CHECK(link->light == LIGHT_NONE && light != LIGHT_NONE && link->acked == link->next);
    link->light = light;
    link->far = far;
    link->flight_ns = flight_ns;
    link->generation++;
    link->lit_ns = net->now_ns;
    link->rtt_ns = INT64_MAX;
    link->pings = 0;
    link->met = link->trained = link->far_asked = false;
    link->next = link->acked = link->again = link->expected = 0;
    /* credits of packets that still wait here are held back when they leave */
    for (uint32_t vc = 0; vc < ROUTE_VCS; vc++) {
        uint32_t free = net->settings.buffers - link->in[vc].count,
                 wanted = net->settings.buffers - link->room;
        link->held[vc] = wanted < free ? wanted : free;
    }
    chips_schedule(net, CHIPS_TRAINED, index, net->now_ns + CHIPS_TRAIN_NS)->generation = link->generation;
}

void link_begin(struct chips *net, uint32_t index)
{
    send_train(net, index);
}

void link_dark(struct chips *net, uint32_t index, uint64_t accepted)
{
    struct chip_link *link = &net->links[index];
    CHECK(link->light != LIGHT_NONE);
    for (; link->acked < link->next; link->acked++) {
        struct packet *packet = &link->kept[link->acked % net->window];
        if (link->acked >= accepted)
            packet_lose(net, packet);
        cargo_release(packet->cargo);
    }
    link->again = link->next;
    link->generation++;
    link->light = LIGHT_NONE;
    link->met = link->trained = link->far_asked = false;
}

static void send_ask(struct chips *net, uint32_t index)
{
    struct link_frame ask = frame_of(LINK_ASK);
    ask.label = net->links[index].asked;
    link_send(net, index, &ask, net->now_ns);
}

void link_settle(struct chips *net, uint32_t index)
{
    struct chip_link *link = &net->links[index];
    uint32_t pings = net->settings.pings ? net->settings.pings : 1;
    if (link->light == LIGHT_NONE || link->trained || !link->met || link->pings < pings ||
        link->rtt_ns > CHIPS_RTT_MAX_NS || net->now_ns < link->lit_ns + CHIPS_TRAIN_NS)
        return;
    link->trained = true;
    link->free_ns = net->now_ns;
    if (link->asked)
        send_ask(net, index);
    link_try(net, index);
}

void link_ask(struct chips *net, uint32_t index, bool asked)
{
    struct chip_link *link = &net->links[index];
    if (link->asked == asked)
        return;
    link->asked = asked;
    if (link->trained)
        send_ask(net, index);
    link_try(net, index);
}

/* Handles a TRAIN frame: the other end names itself, and gives its credits. */
static bool train_comes(struct chips *net, uint32_t index, const struct link_frame *frame)
{
    struct chip_link *link = &net->links[index];
    struct link_frame echo = frame_of(LINK_ECHO);
    if (frame->label >= POD_CUBES_MAX * CUBE_CHIPS || frame->port >= CHIP_PORTS ||
        (link->met && (frame->label != link->far_label || frame->port != link->far_port)))
        return false;
    for (uint32_t vc = 0; vc < ROUTE_VCS && !link->met; vc++) {
        if (frame->credits[vc] > net->settings.buffers)
            return false;
        link->credits[vc] = frame->credits[vc];
    }
    link->met = true;
    link->far_label = frame->label;
    link->far_port = frame->port;
    echo.number = frame->number;
    link_send(net, index, &echo, net->now_ns);
    link_settle(net, index);
    return true;
}

static bool echo_comes(struct chips *net, uint32_t index, const struct link_frame *frame)
{
    struct chip_link *link = &net->links[index];
    if (frame->number < (uint64_t)link->lit_ns || frame->number > (uint64_t)net->now_ns)
        return false;
    if (link->trained)
        return true;
    int64_t rtt_ns = net->now_ns - (int64_t)frame->number;
    rtt_ns = rtt_ns > 0 ? rtt_ns : 1;
    link->rtt_ns = rtt_ns < link->rtt_ns ? rtt_ns : link->rtt_ns;
    link->pings += link->pings < UINT8_MAX;
    if (link->pings < net->settings.pings || link->rtt_ns > CHIPS_RTT_MAX_NS)
        send_train(net, index);
    link_settle(net, index);
    return true;
}

/* --- sending --------------------------------------------------------------------------------------- */

static struct packet_queue *queue_of(struct chips *net, uint32_t chip, uint32_t source)
{
    if (source == SOURCE_BORN)
        return &net->chips[chip].born;
    return &net->links[chip * CHIP_PORTS + source / ROUTE_VCS].in[source % ROUTE_VCS];
}

static void put_on_link(struct chips *net, uint32_t index, uint64_t number)
{
    struct chip_link *link = &net->links[index];
    struct link_frame data = frame_of(LINK_DATA);
    data.packet = link->kept[number % net->window];
    data.number = number;
    data.vc = (uint8_t)route_vc(data.packet.entry);
    link->free_ns = net->now_ns;
    if (net->settings.packet_ns) {
        link->free_ns += 1 + net->settings.packet_ns * data.packet.len / CHIPS_PACKET_BYTES;
        chips_schedule(net, CHIPS_FREE, index, link->free_ns)->generation = link->generation;
    }
    link_send(net, index, &data, link->free_ns);
}

static void send_credit(struct chips *net, uint32_t index, uint32_t vc)
{
    struct link_frame credit = frame_of(LINK_CREDIT);
    credit.vc = (uint8_t)vc;
    link_send(net, index, &credit, net->now_ns);
}

/* Returns a credit to the sender of the link on which a packet arrived, or holds it back. */
static void return_credit(struct chips *net, uint32_t chip, uint32_t source)
{
    if (source == SOURCE_BORN)
        return;
    uint32_t index = chip * CHIP_PORTS + source / ROUTE_VCS, vc = source % ROUTE_VCS;
    struct chip_link *link = &net->links[index];
    if (link->held[vc] < net->settings.buffers - link->room)
        link->held[vc]++;
    else
        send_credit(net, index, vc);
}

void link_set_room(struct chips *net, uint32_t index, uint32_t room)
{
    struct chip_link *link = &net->links[index];
    CHECK(room >= 1 && room <= net->settings.buffers);
    link->room = room;
    for (uint32_t vc = 0; vc < ROUTE_VCS; vc++)
        for (; link->held[vc] > net->settings.buffers - room; link->held[vc]--)
            send_credit(net, index, vc);
}

void link_flush(struct chips *net, uint32_t chip)
{
    for (uint32_t source = 0; source < SOURCES; source++)
        for (struct packet_queue *queue = queue_of(net, chip, source); queue->count;) {
            struct packet packet = packet_take(queue);
            packet_refuse(net, &packet);
            cargo_release(packet.cargo);
            return_credit(net, chip, source);
        }
}

/* Tries the link of a source's next packet, which may be another one that is idle. */
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
        link->again = link->next + 1;
        put_on_link(net, index, link->next++);
        link->turn = source + 1;
        return_credit(net, chip, source);
        wake_next(net, chip, source, port);
        return true;
    }
    return false;
}

static bool send_next(struct chips *net, uint32_t index)
{
    struct chip_link *link = &net->links[index];
    if (link->again < link->next) {
        net->counts.resent++;
        put_on_link(net, index, link->again++);
        return true;
    }
    return link->next - link->acked < net->window && send_new(net, index);
}

void link_try(struct chips *net, uint32_t index)
{
    const struct chip_link *link = &net->links[index];
    while (link->trained && link->asked && link->far_asked && net->now_ns >= link->free_ns &&
           send_next(net, index))
        ;
}

/* --- receiving ------------------------------------------------------------------------------------- */

static void answer(struct chips *net, uint32_t index, enum link_frame_kind kind)
{
    struct link_frame frame = frame_of(kind);
    frame.number = net->links[index].expected;
    link_send(net, index, &frame, net->now_ns);
}

static bool data_comes(struct chips *net, uint32_t index, const struct link_frame *frame)
{
    struct chip_link *link = &net->links[index];
    uint32_t chip = index / CHIP_PORTS;
    struct packet packet = frame->packet;
    if (!link->trained || frame->vc >= ROUTE_VCS || packet.cargo->from >= net->chip_count)
        return false;
    if (frame->number != link->expected)
        return true; /* after a damaged frame: it will be sent again */
    if (rng_chance(&net->rng, net->settings.loss_ppm)) {
        answer(net, index, LINK_NACK);
        return true;
    }
    struct packet_queue *in = &link->in[frame->vc];
    if (in->count >= net->settings.buffers)
        return false; /* sent without a credit */
    link->expected++;
    net->counts.hops++;
    net->counts.waiting += link->light == LIGHT_OUTSIDE;
    answer(net, index, LINK_ACK);
    if (!packet_route(net, chip, &packet, false)) {
        return_credit(net, chip, index % CHIP_PORTS * ROUTE_VCS + frame->vc);
        return true;
    }
    packet.cargo->refs++;
    packet_put(in, &packet);
    if (in->count == 1)
        link_try(net, chip * CHIP_PORTS + route_port(packet.entry));
    return true;
}

/* Releases the frames before `number`, which the other end has accepted. */
static void forget_kept(struct chips *net, struct chip_link *link, uint64_t number)
{
    for (; link->acked < number; link->acked++) {
        cargo_release(link->kept[link->acked % net->window].cargo);
        net->counts.waiting -= link->light == LIGHT_OUTSIDE;
    }
    if (link->again < link->acked)
        link->again = link->acked;
}

static bool answer_comes(struct chips *net, uint32_t index, const struct link_frame *frame)
{
    struct chip_link *link = &net->links[index];
    bool damaged = frame->kind == LINK_NACK;
    if (frame->number < link->acked || frame->number > link->next - damaged || (damaged && link->next == 0))
        return false;
    forget_kept(net, link, frame->number);
    if (damaged)
        link->again = frame->number;
    link_try(net, index);
    return true;
}

static bool credit_comes(struct chips *net, uint32_t index, const struct link_frame *frame)
{
    struct chip_link *link = &net->links[index];
    if (!link->met || frame->vc >= ROUTE_VCS || link->credits[frame->vc] >= net->settings.buffers)
        return false;
    link->credits[frame->vc]++;
    link_try(net, index);
    return true;
}

bool link_take(struct chips *net, uint32_t index, const struct link_frame *frame)
{
    struct chip_link *link = &net->links[index];
    CHECK(link->light != LIGHT_NONE);
    switch ((enum link_frame_kind)frame->kind) {
    case LINK_TRAIN:
        return train_comes(net, index, frame);
    case LINK_ECHO:
        return echo_comes(net, index, frame);
    case LINK_ASK:
        link->far_asked = frame->label == 1;
        link_try(net, index);
        return link->met && frame->label <= 1;
    case LINK_DATA:
        return data_comes(net, index, frame);
    case LINK_ACK:
    case LINK_NACK:
        return answer_comes(net, index, frame);
    case LINK_CREDIT:
        return credit_comes(net, index, frame);
    case LINK_START:
        start_arrives(net, index / CHIP_PORTS, frame->label);
        return link->met;
    }
    return false;
}
