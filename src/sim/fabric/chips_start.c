/* The start of a session: frames travel along the clock tree; chips wait, then ask for data. */
#include "sim/fabric/chips_private.h"

void chips_arm(struct chips *net, uint32_t chip, uint32_t number, uint8_t children, int64_t wait_ns)
{
    CHECK(chip < net->chip_count && chip_here(net, chip) && wait_ns >= 0);
    struct chip *at = &net->chips[chip];
    at->armed = true;
    at->arming++;
    at->start_number = number;
    at->children = children;
    at->wait_ns = wait_ns;
}

void chips_disarm(struct chips *net, uint32_t chip)
{
    CHECK(chip < net->chip_count);
    net->chips[chip].armed = false;
    net->chips[chip].arming++; /* also drops a start that has arrived */
}

void start_arrives(struct chips *net, uint32_t chip, uint32_t number)
{
    struct chip *at = &net->chips[chip];
    struct link_frame start = {.kind = LINK_START, .label = number};
    if (!at->armed || at->start_number != number)
        return;
    at->armed = false; /* a chip starts once */
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        if (at->children >> port & 1 && net->links[chip * CHIP_PORTS + port].trained)
            link_send(net, chip * CHIP_PORTS + port, &start, net->now_ns);
    chips_schedule(net, CHIPS_BEGIN, chip, net->now_ns + at->wait_ns)->generation = at->arming;
}

void start_begins(struct chips *net, uint32_t chip, uint32_t arming)
{
    const struct chip *at = &net->chips[chip];
    if (at->arming != arming)
        return; /* the chip was loaded again, or unloaded, while it waited */
    struct chips_begun begun = {.chip = chip, .number = at->start_number, .at_ns = net->now_ns};
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        link_ask(net, chip * CHIP_PORTS + port, true);
    vec_push(&net->begun, begun);
}

bool chips_start(struct chips *net, uint32_t chip, uint32_t number)
{
    CHECK(chip < net->chip_count);
    bool armed = net->chips[chip].armed && net->chips[chip].start_number == number;
    start_arrives(net, chip, number);
    return armed;
}

bool chips_take_begun(struct chips *net, struct chips_begun *ret_begun)
{
    if (net->begun_taken == net->begun.len) {
        vec_clear(&net->begun);
        net->begun_taken = 0;
        return false;
    }
    *ret_begun = net->begun.items[net->begun_taken++];
    return true;
}
