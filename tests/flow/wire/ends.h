/* ends.h - both ends of a connection in one test, over each carrier. */
#ifndef PHX_TESTS_FLOW_WIRE_ENDS_H
#define PHX_TESTS_FLOW_WIRE_ENDS_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "flow/wire/hub.h"
#include "flow/wire/wire.h"

enum { CARRIERS = 3 };
static const char *const carriers[CARRIERS] = {"sockets", "rings", "ucx"};

struct ends {
    char folder[64], address[128];
    struct wire *a, *b;             /* a has connected, b was accepted */
    struct wire_hub *hub_a, *hub_b; /* NULL: not over UCX */
    bool named_a, named_b;          /* by its hub, since the test waited for it */
};

/* Whether this build and machine have the carrier; says why not. */
static inline bool carrier_is_here(const char *carrier)
{
    struct wire_hub *hub;
    struct error error;
    if (strcmp(carrier, "ucx") != 0)
        return true;
    if (wire_hub_new(WIRE_BY_UCX, &hub, &error) < 0) {
        print_message("skipped over ucx: %s\n", error.text);
        return false;
    }
    wire_hub_free(hub);
    return true;
}

/* Connects without a move to UCX, for which both ends are ready if that is the carrier. */
static inline void connect_ends_unmoved(struct ends *ends, const char *carrier)
{
    int listener;
    struct error error;
    char name[128];
    *ends = (struct ends){0};
    snprintf(ends->folder, sizeof ends->folder, "/tmp/test-wire-XXXXXX");
    assert_non_null(mkdtemp(ends->folder));
    if (strcmp(carrier, "rings") == 0)
        snprintf(ends->address, sizeof ends->address, "unix:%s/s", ends->folder);
    else
        snprintf(ends->address, sizeof ends->address, "127.0.0.1:0");
    if (strcmp(carrier, "ucx") == 0) {
        assert_int_equal(wire_hub_new(WIRE_BY_UCX, &ends->hub_a, &error), 0);
        assert_int_equal(wire_hub_new(WIRE_BY_UCX, &ends->hub_b, &error), 0);
    }
    assert_int_equal(flow_wire_listen(ends->address, &listener, &error), 0);
    flow_wire_name(listener, ends->address, name, sizeof name);
    assert_int_equal(wire_hub_connect(ends->hub_a, name, &ends->a, &error), 0);
    assert_int_equal(poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, -1), 1);
    ends->b = flow_wire_accept(listener);
    assert_non_null(ends->b);
    close(listener);
}

static inline bool no_entry(void *context, const struct flow_entry *entry, struct str tail)
{
    fail_msg("an entry of kind %u that nobody has sent", entry->kind);
    return false;
}

/* Both ends write what they have, and read it. */
static inline void exchange(struct ends *ends)
{
    for (int side = 0; side < 2; side++) {
        assert_true(flow_wire_flush(side ? ends->b : ends->a) >= 0);
        assert_int_equal(flow_wire_read(side ? ends->a : ends->b, no_entry, NULL, NULL), 0);
    }
}

/* Moves both ends to UCX, over which nothing else is said meanwhile. */
static inline void move_ends(struct ends *ends)
{
    while (!ends->b->announced)
        exchange(ends);
    wire_hub_offer(ends->hub_b, ends->b);
    while (strcmp(ends->a->ops->name, "ucx") != 0 || strcmp(ends->b->ops->name, "ucx") != 0)
        exchange(ends);
    exchange(ends);
}

static inline void connect_ends(struct ends *ends, const char *carrier)
{
    connect_ends_unmoved(ends, carrier);
    if (ends->hub_a)
        move_ends(ends);
    assert_string_equal(ends->a->ops->name, carrier);
}

static inline void close_ends(struct ends *ends)
{
    flow_wire_free(ends->a);
    flow_wire_free(ends->b);
    /* Each hub waits for the other one's peer, which ends within its own turn. */
    for (int i = 0; ends->hub_a && i < 100; i++) {
        wire_hub_turn(ends->hub_a);
        wire_hub_turn(ends->hub_b);
    }
    wire_hub_free(ends->hub_a);
    wire_hub_free(ends->hub_b);
    unlink(ends->address + 5);
    rmdir(ends->folder);
}

/* Lets both hubs work. Returns whether to wait for their descriptors. */
static inline bool ends_turn(struct ends *ends)
{
    if (!ends->hub_a)
        return true;
    bool rests_a = wire_hub_turn(ends->hub_a), rests_b = wire_hub_turn(ends->hub_b);
    while (wire_hub_next(ends->hub_a))
        ends->named_a = true;
    while (wire_hub_next(ends->hub_b))
        ends->named_b = true;
    return rests_a && rests_b;
}

/* Waits as an owner does for one end or for either: for bytes, and for room if there is more to write. */
static inline void wait_for_any(struct ends *ends, bool a, bool b)
{
    enum { PATIENCE_MS = 10000 };
    const struct wire *const wires[2] = {a ? ends->a : NULL, b ? ends->b : NULL};
    const struct wire_hub *const hubs[2] = {ends->hub_a, ends->hub_b};
    bool *const named[2] = {&ends->named_a, &ends->named_b};
    struct pollfd polled[4];
    for (int i = 0; i < 2; i++) {
        bool room = wires[i] && flow_wire_is_pending(wires[i]) && !wires[i]->ops->is_ready;
        short events = room ? POLLIN | POLLOUT : POLLIN;
        polled[i] = (struct pollfd){.fd = wires[i] ? wires[i]->fd : -1, .events = events};
        polled[2 + i] = (struct pollfd){.fd = hubs[i] ? wire_hub_fd(hubs[i]) : -1, .events = POLLIN};
    }
    for (bool found = false; !found;) {
        bool rests = ends_turn(ends);
        found = (a && *named[0]) || (b && *named[1]);
        int wait_ms = found ? 0 : rests ? PATIENCE_MS : WIRE_HUB_AGAIN_MS;
        assert_true(poll(polled, 4, wait_ms) > 0 || wait_ms < PATIENCE_MS);
        found |= polled[0].revents || polled[1].revents;
    }
    for (int i = 0; i < 2; i++)
        if (wires[i])
            *named[i] = false;
}

static inline void wait_for(struct ends *ends, const struct wire *wire)
{
    wait_for_any(ends, wire == ends->a, wire == ends->b);
}

#endif
