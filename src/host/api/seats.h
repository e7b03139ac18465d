/* seats.h - who may have work done beside the loop now, who waits, and who is refused. Pure; one thread.
 *
 * As with Kubernetes' API Priority and Fairness there are few seats, each user has fewer of them than there
 * are and waits in a queue of its own. A free seat goes to the users that wait, in turn, so a user who asks a
 * thousand times delays the next one by one piece of work at most. Work that anybody may ask for has a class
 * of its own: all its users together have few seats and a part of the queues, however many users there are.
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
    SEATS = 3,              /* the loop's pool has four threads, and one is left for files and names */
    SEATS_OF_A_USER = 2,    /* at once */
    SEATS_WITHOUT_ROLE = 1, /* at once, of all requests that anybody may make (access reviews) */
    SEATS_WAITING_MAX = 16, /* of one user; each may have a body of 1.5 MiB */
    SEATS_WITHOUT_ROLE_WAITING_MAX = 64,
    SEATS_ALL_WAITING_MAX = 256,
    /* Bytes of the requests that wait for the loop, which have been parsed: of one user, and of all. */
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
/* One piece of work; its owner keeps it in place from seats_ask() to seats_leave() or seats_drop(). */
struct seat_ticket {
    struct seat_user *user; /* NULL: neither has it a seat nor does it wait */
    enum seat_class of;
    uint32_t weight;       /* in the queue */
    struct list_node node; /* in the user's queue while it waits */
};

struct seats {
    const struct seat_limits *limits;
    struct list_node users; /* that have seats or wait; the next to be served first */
    uint32_t taken, taken_of[SEAT_CLASSES];
    uint32_t waiting, waiting_of[SEAT_CLASSES]; /* weights */
};

void seats_init(struct seats *seats, const struct seat_limits *limits);
/* Asks for a seat for a user; `weight` is what the ticket counts for while it waits. */
enum seat seats_ask(struct seats *seats, uint64_t user, enum seat_class of, uint32_t weight,
                    struct seat_ticket *ticket);
/* Gives the ticket's seat back. Returns the ticket that has taken it; NULL: nobody who waits may sit down. */
struct seat_ticket *seats_leave(struct seats *seats, struct seat_ticket *ticket);
/* The ticket waits no more. */
void seats_drop(struct seats *seats, struct seat_ticket *ticket);

#endif
