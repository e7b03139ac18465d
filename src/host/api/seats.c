#include "host/api/seats.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/check.h"

struct seat_user {
    uint64_t hash;
    uint32_t taken, waiting;
    struct list_node queue; /* of tickets */
    struct list_node node;  /* in seats->users */
};

void seats_init(struct seats *seats)
{
    *seats = (struct seats){0};
    list_init(&seats->users);
}

/* Few users have work at once: SEATS and those that wait. */
static struct seat_user *user_of(struct seats *seats, uint64_t hash)
{
    list_for_each(node, &seats->users)
    {
        struct seat_user *user = container_of(node, struct seat_user, node);
        if (user->hash == hash)
            return user;
    }
    struct seat_user *user = mem_alloc(sizeof *user);
    user->hash = hash;
    list_init(&user->queue);
    list_append(&seats->users, &user->node);
    return user;
}

static void forget_idle(struct seat_user *user)
{
    if (user->taken || user->waiting)
        return;
    list_remove(&user->node);
    mem_free(user);
}

static void sit_down(struct seats *seats, struct seat_user *user, struct seat_ticket *ticket)
{
    CHECK(seats->taken < SEATS && user->taken < ticket->most);
    ticket->user = user;
    user->taken++;
    seats->taken++;
}

enum seat seats_ask(struct seats *seats, uint64_t hash, uint32_t most, struct seat_ticket *ticket)
{
    CHECK(most > 0 && !ticket->user);
    struct seat_user *user = user_of(seats, hash);
    list_init(&ticket->node);
    ticket->most = most;
    if (!user->waiting && user->taken < most && seats->taken < SEATS) {
        sit_down(seats, user, ticket);
        return SEAT_TAKEN;
    }
    if (user->waiting >= SEATS_WAITING_MAX || seats->waiting >= SEATS_ALL_WAITING_MAX) {
        forget_idle(user);
        return SEAT_REFUSED;
    }
    ticket->user = user;
    user->waiting++;
    seats->waiting++;
    list_append(&user->queue, &ticket->node);
    return SEAT_WAITS;
}

static struct seat_ticket *take_first(struct seats *seats, struct seat_user *user)
{
    if (list_empty(&user->queue))
        return NULL;
    struct seat_ticket *ticket = container_of(user->queue.next, struct seat_ticket, node);
    if (user->taken >= ticket->most)
        return NULL;
    list_remove(&ticket->node);
    user->waiting--;
    seats->waiting--;
    return ticket;
}

/* The users stand in the order in which they were served: the one that is served now goes to the end. */
static struct seat_ticket *serve_next(struct seats *seats)
{
    list_for_each(node, &seats->users)
    {
        struct seat_user *user = container_of(node, struct seat_user, node);
        struct seat_ticket *ticket = take_first(seats, user);
        if (!ticket)
            continue;
        list_remove(&user->node);
        list_append(&seats->users, &user->node);
        sit_down(seats, user, ticket);
        return ticket;
    }
    return NULL;
}

struct seat_ticket *seats_leave(struct seats *seats, struct seat_ticket *ticket)
{
    struct seat_user *user = ticket->user;
    CHECK(user && user->taken > 0 && seats->taken > 0);
    ticket->user = NULL;
    user->taken--;
    seats->taken--;
    struct seat_ticket *next = serve_next(seats);
    forget_idle(user);
    return next;
}

void seats_drop(struct seats *seats, struct seat_ticket *ticket)
{
    struct seat_user *user = ticket->user;
    CHECK(user && user->waiting > 0 && seats->waiting > 0);
    list_remove(&ticket->node);
    ticket->user = NULL;
    user->waiting--;
    seats->waiting--;
    forget_idle(user);
}
