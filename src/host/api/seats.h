/* seats.h - fair admission of expensive work: which requests run now, which wait, and which are refused.
 * Pure; one thread.
 *
 * As in Kubernetes' API Priority and Fairness there are few seats. A user may hold fewer than all of them,
 * and waits in a separate queue. A free seat goes to the waiting users in turn, so a user with a thousand
 * requests delays the next user by one piece of work at most. Work that any user may request without a role
 * is a class of its own: all its users together have few seats and a part of the queues.
 *
 *     enum seat seat = seats_ask(&seats, hash of the user's name, SEAT_OF_ROLE, 1, &ticket);
 *     SEAT_TAKEN: work, then seats_leave(); SEAT_WAITS: seats_leave() of another will return the ticket;
 *     SEAT_REFUSED: its queue, or all queues together, are full: 429.
 */
#ifndef PHX_HOST_API_SEATS_H
#define PHX_HOST_API_SEATS_H

#include <stdint.h>

#include "base/list.h"

enum {
    SEATS = 3,              /* libuv's pool has four threads, and one is left for files and names */
    SEATS_OF_A_USER = 2,    /* held at once by one user */
    SEATS_WITHOUT_ROLE = 1, /* held at once by all requests that need no role (access reviews) */
    SEATS_WAITING_MAX = 16, /* waiting requests of one user; each may have a body of 1.5 MiB */
    SEATS_WITHOUT_ROLE_WAITING_MAX = 64,
    SEATS_ALL_WAITING_MAX = 256,
    /* Bytes of parsed requests that wait for the loop: of one user, and of all. */
    SEATS_LOOP_WAITING_MAX = 32 * 1024 * 1024,
    SEATS_LOOP_ALL_WAITING_MAX = 64 * 1024 * 1024,
};

enum seat { SEAT_TAKEN, SEAT_WAITS, SEAT_REFUSED };
enum seat_class { SEAT_OF_ROLE, SEAT_OF_ANYBODY, SEAT_CLASSES };

struct seat_limits {
    uint32_t seats, of_user, of_class[SEAT_CLASSES];                   /* at once */
    uint32_t waiting, waiting_of_user, waiting_of_class[SEAT_CLASSES]; /* weights */
};
extern const struct seat_limits seats_of_pool, seats_of_loop;

struct seat_user;
/* A piece of work. Its owner must not move it between seats_ask() and seats_leave() or seats_drop(). */
struct seat_ticket {
    struct seat_user *user; /* NULL: the ticket neither has a seat nor waits */
    enum seat_class of;
    uint32_t weight;       /* in the queue */
    struct list_node node; /* in the user's queue while the ticket waits */
};

struct seats {
    const struct seat_limits *limits;
    struct list_node users; /* users that have seats or wait; the first is served next */
    uint32_t taken, taken_of[SEAT_CLASSES];
    uint32_t waiting, waiting_of[SEAT_CLASSES]; /* weights */
};

void seats_init(struct seats *seats, const struct seat_limits *limits);
/* Asks for a seat for a user, named by a hash. `weight` (above 0) counts against the limits while the ticket
 * waits. */
enum seat seats_ask(struct seats *seats, uint64_t user, enum seat_class of, uint32_t weight,
                    struct seat_ticket *ticket);
/* Gives back the ticket's seat. Returns the waiting ticket that now has a seat, or NULL if none may have
 * it. */
struct seat_ticket *seats_leave(struct seats *seats, struct seat_ticket *ticket);
/* Removes a waiting ticket from its queue. */
void seats_drop(struct seats *seats, struct seat_ticket *ticket);

#endif
