/* board.h - shared memory through which the workers of one machine exchange the parts of collectives.
 *
 *     int fd = board_make(); board_publish(fd, "unix:/run/flow/head.sock");      // the head
 *     int fd = board_find("unix:/run/flow/head.sock");                           // a worker
 *     struct board *board = board_join(fd, devices);
 *     board_compose(board, &entry, tail);  board_post(board, seat);  board_flush(board);
 *     board_take(board, &entry, &tail);
 *
 * A worker that joins takes a seat. There are BOARD_SEATS seats, and none is used twice. Each pair of seats
 * has a ring (net/ring.h) in each direction. A message that does not fit its ring is refused, and the sender
 * sends it through its loop instead. No thread waits for space, and the order of messages does not matter.
 *
 * Waiting. A reader yields its core and polls while board_yield allows it. Then it calls board_expect with
 * the number of missing messages, polls once more, and sleeps on its bell; the sender of the last message
 * rings it. No wake-up is lost, because counts, bells and rings are sequentially consistent. A surplus
 * message wakes the reader early, which is harmless.
 *
 * The memory is a memfd that is sealed against shrinking. The head's link to it is PATH.board next to the
 * head's socket PATH, and points through /proc to the head's descriptor. The memory is freed with the last
 * process that has it open. A process that may open the link may use the head's socket as well.
 *
 * Calls on one board must not overlap, except board_yield, board_sleep, board_bell and board_ring.
 */
#ifndef PHX_FLOW_HOST_BOARD_H
#define PHX_FLOW_HOST_BOARD_H

#include "base/str.h"
#include "flow/island/entry.h"

enum { BOARD_SEATS = 64, BOARD_RING = 16384, BOARD_MESSAGE_MAX = BOARD_RING / 4 };

/* Returns the descriptor of a new board, or -1 if the kernel cannot make one. */
int board_make(void);
/* Links the board next to a head's unix socket, and replaces a stale link. Does nothing if the head listens
 * elsewhere. */
void board_publish(int fd, const char *listen);
/* Removes the link. */
void board_withdraw(const char *listen);
/* Opens the board of the head at that address. Returns -1 if there is none, or this process may not open
 * it. */
int board_find(const char *head);

struct board;
/* Maps the board and takes a seat; the descriptor stays the caller's. `threads` is the number of threads that
 * will run here. Returns NULL if the descriptor is not a board, or all seats are taken. */
struct board *board_join(int fd, uint32_t threads);
void board_leave(struct board *board); /* NULL allowed */
/* Returns a number that identifies board and seat to other hosts; never 0. */
uint64_t board_place(const struct board *board);
/* Returns the seat of another host's place, or -1 if that host is not on this board. */
int board_seat(const struct board *board, uint64_t place);

/* Prepares a message for board_post, to any number of seats. Returns false if it is too large for the
 * board. */
bool board_compose(struct board *board, const struct flow_entry *entry, struct str tail);
/* Sends the prepared message to a seat. Returns false if its ring is full. board_flush then wakes the readers
 * that have all the messages they expect. A sender to several seats flushes after the last one. Otherwise the
 * next message of the first reader could wake others that still lack this message. */
bool board_post(struct board *board, int seat);
void board_flush(struct board *board);
/* Takes the next message of any seat; the tail is valid until the next call. Returns false if there is
 * none. */
bool board_take(struct board *board, struct flow_entry *ret_entry, struct str *ret_tail);
bool board_is_empty(struct board *board);

/* Requests a ring of the bell when that many messages have been posted. */
void board_expect(struct board *board, uint32_t messages);
/* Returns the state of the bell, for board_sleep. */
uint32_t board_bell(const struct board *board);
/* Yields the core before a sleep. Returns false if the caller should sleep now. If the machine has fewer
 * cores than the board has threads, the other threads need the core anyway, and a thread that yields runs
 * again without a futex wake-up. The caller polls for messages between two calls, for up to 0.2 ms. If the
 * core was returned late before, because other programs need it, the caller should sleep. *since_ns is 0 at
 * the first call, then the callee's. */
bool board_yield(struct board *board, int64_t *since_ns);
/* Sleeps until the bell differs from `bell`, at most timeout_ns (-1: no limit). Spins for up to 20 us first
 * if the machine has a core for every thread of the board. Returns false if the time has expired. */
bool board_sleep(struct board *board, uint32_t bell, int64_t timeout_ns);
/* Wakes the threads that sleep on this board's own bell. */
void board_ring(struct board *board);

#endif
