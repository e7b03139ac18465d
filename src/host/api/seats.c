#include "host/api/seats.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/check.h"

const struct seat_limits seats_of_pool = {
    .seats = SEATS,
    .of_user = SEATS_OF_A_USER,
    .of_class = {[SEAT_OF_ROLE] = SEATS, [SEAT_OF_ANYBODY] = SEATS_WITHOUT_ROLE},
    .waiting = SEATS_ALL_WAITING_MAX,
    .waiting_of_user = SEATS_WAITING_MAX,
    .waiting_of_class =
        {[SEAT_OF_ROLE] = SEATS_ALL_WAITING_MAX, [SEAT_OF_ANYBODY] = SEATS_WITHOUT_ROLE_WAITING_MAX},
};

const struct seat_limits seats_of_loop = {
    .seats = 1,
    .of_user = 1,
    .of_class = {[SEAT_OF_ROLE] = 1},
    .waiting = SEATS_LOOP_ALL_WAITING_MAX,
    .waiting_of_user = SEATS_LOOP_WAITING_MAX,
    .waiting_of_class = {[SEAT_OF_ROLE] = SEATS_LOOP_ALL_WAITING_MAX},
};

struct seat_user {
    uint64_t hash;
    uint32_t taken, waiting;
    struct list_node queues[SEAT_CLASSES]; /* of waiting tickets */
    struct list_node node;                 /* in seats->users */
};

void seats_init(struct seats *seats, const struct seat_limits *limits)
{
    *seats = (struct seats){.limits = limits};
    list_init(&seats->users);
}

/* Finds or adds a user. Few users have work at once: those with seats and those that wait. */
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
    for (int of = 0; of < SEAT_CLASSES; of++)
        list_init(&user->queues[of]);
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

/* Moves a user to the end: users are in the order in which they were served. */
static void go_last(struct seats *seats, struct seat_user *user)
{
    list_remove(&user->node);
    list_append(&seats->users, &user->node);
}

static bool may_sit(const struct seats *seats, const struct seat_user *user, enum seat_class of)
{
    const struct seat_limits *limits = seats->limits;
    return seats->taken < limits->seats && seats->taken_of[of] < limits->of_class[of] &&
           user->taken < limits->of_user;
}

static void sit_down(struct seats *seats, struct seat_user *user, struct seat_ticket *ticket)
{
    CHECK(may_sit(seats, user, ticket->of));
    ticket->user = user;
    user->taken++;
    seats->taken++;
    seats->taken_of[ticket->of]++;
}

/* Returns whether the queues have space for the ticket. */
static bool may_wait(const struct seats *seats, const struct seat_user *user,
                     const struct seat_ticket *ticket)
{
    const struct seat_limits *limits = seats->limits;
    uint32_t of_class = seats->waiting_of[ticket->of], of_class_max = limits->waiting_of_class[ticket->of];
    return ticket->weight <= limits->waiting - seats->waiting &&
           ticket->weight <= limits->waiting_of_user - user->waiting &&
           ticket->weight <= of_class_max - of_class;
}

enum seat seats_ask(struct seats *seats, uint64_t hash, enum seat_class of, uint32_t weight,
                    struct seat_ticket *ticket)
{
    CHECK(weight > 0 && !ticket->user && seats->limits->of_class[of] > 0);
    struct seat_user *user = user_of(seats, hash);
    list_init(&ticket->node);
    ticket->of = of;
    ticket->weight = weight;
    if (list_empty(&user->queues[of]) && may_sit(seats, user, of)) {
        sit_down(seats, user, ticket);
        return SEAT_TAKEN;
    }
    if (!may_wait(seats, user, ticket)) {
        forget_idle(user);
        return SEAT_REFUSED;
    }
    ticket->user = user;
    user->waiting += weight;
    seats->waiting += weight;
    seats->waiting_of[of] += weight;
    list_append(&user->queues[of], &ticket->node);
    return SEAT_WAITS;
}

static void leave_queue(struct seats *seats, struct seat_user *user, struct seat_ticket *ticket)
{
    CHECK(user->waiting >= ticket->weight && seats->waiting_of[ticket->of] >= ticket->weight);
    list_remove(&ticket->node);
    user->waiting -= ticket->weight;
    seats->waiting -= ticket->weight;
    seats->waiting_of[ticket->of] -= ticket->weight;
}

static struct seat_ticket *take_first(struct seats *seats, struct seat_user *user)
{
    for (int of = 0; of < SEAT_CLASSES; of++) {
        if (list_empty(&user->queues[of]) || !may_sit(seats, user, (enum seat_class)of))
            continue;
        struct seat_ticket *ticket = container_of(user->queues[of].next, struct seat_ticket, node);
        leave_queue(seats, user, ticket);
        return ticket;
    }
    return NULL;
}

static struct seat_ticket *serve_next(struct seats *seats)
{
    list_for_each(node, &seats->users)
    {
        struct seat_user *user = container_of(node, struct seat_user, node);
        struct seat_ticket *ticket = take_first(seats, user);
        if (!ticket)
            continue;
        go_last(seats, user);
        sit_down(seats, user, ticket);
        return ticket;
    }
    return NULL;
}

struct seat_ticket *seats_leave(struct seats *seats, struct seat_ticket *ticket)
{
    struct seat_user *user = ticket->user;
    CHECK(user && user->taken > 0 && seats->taken > 0 && seats->taken_of[ticket->of] > 0);
    ticket->user = NULL;
    user->taken--;
    seats->taken--;
    seats->taken_of[ticket->of]--;
    go_last(seats, user);
    struct seat_ticket *next = serve_next(seats);
    forget_idle(user);
    return next;
}

void seats_drop(struct seats *seats, struct seat_ticket *ticket)
{
    struct seat_user *user = ticket->user;
    CHECK(user);
    leave_queue(seats, user, ticket);
    ticket->user = NULL;
    forget_idle(user);
}
