/* seats.h - who may have work done beside the loop now, who waits, and who is refused. Pure; one thread.
 *
 * As with Kubernetes' API Priority and Fairness there are few seats, each user has fewer of them than there
 * are and waits in a queue of its own. A free seat goes to the users that wait, in turn, so a user who asks a
 * thousand times delays the next one by one piece of work at most.
 *
 *     enum seat seat = seats_ask(&seats, hash of the user's name, SEATS_OF_A_USER, &ticket);
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
    SEATS_WITHOUT_ROLE = 1, /* at once, of a request that anybody may make (an access review) */
    SEATS_WAITING_MAX = 16, /* of one user; each may have a body of 1.5 MiB */
    SEATS_ALL_WAITING_MAX = 256,
};

enum seat { SEAT_TAKEN, SEAT_WAITS, SEAT_REFUSED };

struct seat_user;
/* One piece of work; its owner keeps it in place from seats_ask() to seats_leave() or seats_drop(). */
struct seat_ticket {
    struct seat_user *user; /* NULL: neither has it a seat nor does it wait */
    uint32_t most;          /* seats that its user may have when it sits down */
    struct list_node node;  /* in the user's queue while it waits */
};

struct seats {
    struct list_node users; /* that have seats or wait; the next to be served first */
    uint32_t taken, waiting;
};

void seats_init(struct seats *seats);
/* Asks for a seat for a user, of which it may have `most`. */
enum seat seats_ask(struct seats *seats, uint64_t user, uint32_t most, struct seat_ticket *ticket);
/* Gives the ticket's seat back. Returns the ticket that has taken it; NULL: nobody who waits may sit down. */
struct seat_ticket *seats_leave(struct seats *seats, struct seat_ticket *ticket);
/* The ticket waits no more. */
void seats_drop(struct seats *seats, struct seat_ticket *ticket);

#endif
