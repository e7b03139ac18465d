/* board.h - shared memory in which the workers of one machine pass the parts of collectives.
 *
 *     int fd = board_make(); board_publish(fd, "unix:/run/flow/head.sock");      // the head
 *     int fd = board_find("unix:/run/flow/head.sock");                           // a worker
 *     struct board *board = board_join(fd, devices);
 *     board_compose(board, &entry, tail);  board_post(board, seat);  board_flush(board);
 *     board_take(board, &entry, &tail);
 *
 * A worker that joins takes a seat; seats are not used twice, and their number is BOARD_SEATS. Each pair of
 * seats has a ring (net/ring.h) in each direction. A message that finds no room is refused, and its sender
 * uses the loop instead: nobody waits for room, and the order of messages does not matter.
 *
 * Waiting. A reader yields its core and looks, as long as board_yield lets it. Then it says with
 * board_expect how many messages it lacks, looks once more, and sleeps on its bell; the sender of the last
 * of them rings. No wake-up is lost: counts, bells and rings are sequentially consistent. A message too many
 * wakes the reader early and does no harm.
 *
 * The memory is a memfd that is sealed against shrinking. The head's link to it lies beside the head's
 * socket as PATH.board and leads through /proc to the head's descriptor, so that the memory goes with the
 * last process that has it. A process that may open it may use the head's socket as well.
 *
 * Calls of one board must not overlap, but for board_yield, board_sleep, board_bell and board_ring.
 */
#ifndef PHX_FLOW_HOST_BOARD_H
#define PHX_FLOW_HOST_BOARD_H

#include "base/str.h"
#include "flow/island/entry.h"

enum { BOARD_SEATS = 64, BOARD_RING = 16384, BOARD_MESSAGE_MAX = BOARD_RING / 4 };

/* A new board's descriptor, or -1: the kernel makes none. */
int board_make(void);
/* Links the board beside a head's unix socket, in place of a link that is left over; nothing for a head that
 * listens elsewhere. */
void board_publish(int fd, const char *listen);
void board_withdraw(const char *listen);
/* Opens the board of the head at that address; -1: it has none for this process. */
int board_find(const char *head);

struct board;
/* Maps the board and takes a seat; the descriptor stays the caller's. `threads`: how many will run. NULL: the
 * descriptor is no board, or all seats are taken. */
struct board *board_join(int fd, uint32_t threads);
void board_leave(struct board *board); /* NULL allowed */
/* Names board and seat to other hosts; never 0. */
uint64_t board_place(const struct board *board);
/* The seat of another host's place; -1: it is on no board, or on another one. */
int board_seat(const struct board *board, uint64_t place);

/* Makes a message ready to be posted, to any number of seats; false: it is too large for the board. */
bool board_compose(struct board *board, const struct flow_entry *entry, struct str tail);
/* Sends what was composed to a seat; false: no room. A reader that has all it lacks by then is woken by
 * board_flush. A sender to several seats flushes after the last message, lest the first reader's next message
 * wakes others that still lack this one. */
bool board_post(struct board *board, int seat);
void board_flush(struct board *board);
/* The next message of any seat; the tail is valid until the next call. False: none. */
bool board_take(struct board *board, struct flow_entry *ret_entry, struct str *ret_tail);
bool board_is_empty(struct board *board);

/* Asks to be rung for when that many messages have come. */
void board_expect(struct board *board, uint32_t messages);
uint32_t board_bell(const struct board *board);
/* Gives the core away for a turn, before a sleep; false: sleep now. While the machine has fewer cores than
 * the board has threads, each of the others needs a turn anyway, and a thread that yields has its next turn
 * without a futex that wakes it. The caller looks for messages between two yields, for up to 0.2 ms; not
 * where the core has come back late before, as other programs want it. `since_ns`: 0 at first, then the
 * callee's. */
bool board_yield(struct board *board, int64_t *since_ns);
/* Sleeps until the bell is no longer at `bell`, at most timeout_ns (-1: no limit). Spins for up to 20 us
 * first if the machine has a core for every thread of the board. False: the time is over. */
bool board_sleep(struct board *board, uint32_t bell, int64_t timeout_ns);
/* Wakes this board's own sleeper. */
void board_ring(struct board *board);

#endif
