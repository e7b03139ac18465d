/* Shared memory of the workers of one machine. Its layout:
 *
 *     head: magic, id, counts │ seats, a cache line each │ rings [from][to]
 */
#include "flow/host/board.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/units.h"
#include "base/vec.h"
#include "flow/wire/clock.h"
#include "net/ring.h"

enum { BOARD_IDLE = 1 << 30, BOARD_SEAT_BITS = 8 };
enum {
    BOARD_SPIN_NS = 20 * 1000,
    BOARD_YIELD_NS = 200 * 1000,
    /* A yield that takes so long shows that other programs need the core. */
    BOARD_AWAY_NS = 500 * 1000,
    BOARD_REST_NS = 20 * 1000 * 1000,
};
#define BOARD_MAGIC UINT64_C(0x3244524f42584850) /* "PHXBORD2" */
#define BOARD_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct board_seat {
    _Alignas(RING_LINE) _Atomic int32_t missing; /* messages until the bell is rung */
    _Atomic uint32_t bell;                       /* a futex */
    _Atomic uint32_t asleep;                     /* threads that wait for the futex */
    _Atomic uint32_t threads;                    /* of the worker in this seat; 0: it has left */
};
struct board_shared {
    uint64_t magic, id;
    _Atomic uint32_t seats_taken;
    struct board_seat seats[BOARD_SEATS];
    _Alignas(RING_LINE) unsigned char rings[];
};
_Static_assert(sizeof(struct board_shared) % RING_LINE == 0, "rings begin at a cache line");

struct board {
    struct board_shared *shared;
    uint64_t id;
    uint32_t seat;
    uint32_t cores;
    uint32_t attached; /* seats whose rings are attached */
    uint32_t next;     /* the seat from which board_take continues */
    int64_t rests_ns;  /* no thread yields until this time */
    uint32_t to_wake;  /* number of seats in `wake` */
    uint8_t wake[BOARD_SEATS];
    struct ring out[BOARD_SEATS], in[BOARD_SEATS];
    size_t message_len; /* of the prepared message */
    unsigned char message[sizeof(struct flow_entry) + BOARD_MESSAGE_MAX], taken[BOARD_MESSAGE_MAX];
};

static size_t board_bytes(void)
{
    return sizeof(struct board_shared) + (size_t)BOARD_SEATS * BOARD_SEATS * ring_size(BOARD_RING);
}

int board_make(void)
{
    int fd = memfd_create("phalanx-flow-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    uint64_t head[2] = {BOARD_MAGIC, 0};
    bool good = fd >= 0 && ftruncate(fd, (off_t)board_bytes()) == 0 &&
                getrandom(&head[1], sizeof head[1], 0) == sizeof head[1] &&
                pwrite(fd, head, sizeof head, 0) == sizeof head && fcntl(fd, F_ADD_SEALS, BOARD_SEALS) == 0;
    if (!good && fd >= 0)
        close(fd);
    return good ? fd : -1;
}

/* Returns the path of the link in `ret`, or false if the address has none. */
static bool board_path(const char *address, char *ret, size_t len)
{
    return strncmp(address, "unix:", 5) == 0 && snprintf(ret, len, "%s.board", address + 5) < (int)len;
}

void board_publish(int fd, const char *listen)
{
    char path[PATH_MAX], target[64];
    board_withdraw(listen);
    if (fd < 0 || !board_path(listen, path, sizeof path))
        return;
    snprintf(target, sizeof target, "/proc/%d/fd/%d", (int)getpid(), fd);
    (void)!symlink(target, path); /* if that fails, collectives go through the loops */
}

void board_withdraw(const char *listen)
{
    char path[PATH_MAX];
    struct stat info;
    if (board_path(listen, path, sizeof path) && lstat(path, &info) == 0 && S_ISLNK(info.st_mode))
        unlink(path);
}

int board_find(const char *head)
{
    char path[PATH_MAX];
    return board_path(head, path, sizeof path) ? open(path, O_RDWR | O_CLOEXEC) : -1;
}

static bool board_is_sound(int fd)
{
    struct stat info;
    int seals = fd >= 0 ? fcntl(fd, F_GET_SEALS) : -1;
    return seals >= 0 && (seals & BOARD_SEALS) == BOARD_SEALS && fstat(fd, &info) == 0 &&
           info.st_size == (off_t)board_bytes();
}

struct board *board_join(int fd, uint32_t threads)
{
    if (!board_is_sound(fd))
        return NULL;
    struct board_shared *shared = mmap(NULL, board_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        return NULL;
    uint32_t seat = shared->magic == BOARD_MAGIC && atomic_load(&shared->seats_taken) < BOARD_SEATS
                        ? atomic_fetch_add(&shared->seats_taken, 1)
                        : BOARD_SEATS;
    if (seat >= BOARD_SEATS) {
        munmap(shared, board_bytes());
        return NULL;
    }
    struct board *board = mem_alloc(sizeof *board);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    board->shared = shared;
    board->id = shared->id >> BOARD_SEAT_BITS;
    board->seat = seat;
    board->cores = cores > 0 ? (uint32_t)cores : 1;
    atomic_store(&shared->seats[seat].missing, BOARD_IDLE);
    atomic_store(&shared->seats[seat].threads, threads);
    return board;
}

void board_leave(struct board *board)
{
    if (!board)
        return;
    atomic_store(&board->shared->seats[board->seat].threads, 0);
    munmap(board->shared, board_bytes());
    mem_free(board);
}

uint64_t board_place(const struct board *board)
{
    return board->id << BOARD_SEAT_BITS | (board->seat + 1);
}

int board_seat(const struct board *board, uint64_t place)
{
    uint32_t seat = place & ((1 << BOARD_SEAT_BITS) - 1);
    if (place >> BOARD_SEAT_BITS != board->id || seat == 0 || seat > BOARD_SEATS || seat - 1 == board->seat)
        return -1;
    return (int)seat - 1;
}

/* Attaches the rings of seats that were taken since the last call. */
static void board_attach(struct board *board)
{
    uint32_t taken = atomic_load_explicit(&board->shared->seats_taken, memory_order_relaxed);
    taken = taken < BOARD_SEATS ? taken : BOARD_SEATS;
    for (uint32_t s = board->attached; s < taken; s++) {
        size_t out = ((size_t)board->seat * BOARD_SEATS + s) * ring_size(BOARD_RING);
        size_t in = ((size_t)s * BOARD_SEATS + board->seat) * ring_size(BOARD_RING);
        ring_attach(&board->out[s], board->shared->rings + out, BOARD_RING);
        ring_attach(&board->in[s], board->shared->rings + in, BOARD_RING);
    }
    board->attached = taken;
}

static void board_wake(struct board_seat *seat)
{
    atomic_fetch_add(&seat->bell, 1);
    if (atomic_load(&seat->asleep) > 0)
        syscall(SYS_futex, &seat->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Whether a ring has space for a whole message. */
static bool board_has_room(struct ring *ring, size_t len)
{
    if (ring->own - ring->others + len > ring->capacity)
        ring->others = atomic_load(&ring->shared->read);
    return ring->own - ring->others <= ring->capacity && ring->own - ring->others + len <= ring->capacity;
}

bool board_compose(struct board *board, const struct flow_entry *entry, struct str tail)
{
    if (tail.len > BOARD_MESSAGE_MAX)
        return false;
    struct flow_entry sent = *entry;
    sent.tail_bytes = (uint32_t)tail.len;
    memcpy(board->message, &sent, sizeof sent);
    mem_copy(board->message + sizeof sent, tail.data, tail.len);
    board->message_len = sizeof sent + tail.len;
    return true;
}

bool board_post(struct board *board, int seat)
{
    board_attach(board);
    size_t len = board->message_len;
    CHECK(len > 0);
    if (seat < 0 || (uint32_t)seat >= board->attached || ring_is_broken(&board->out[seat]) ||
        !board_has_room(&board->out[seat], len))
        return false;
    CHECK(ring_write(&board->out[seat], board->message, len) == len);
    struct board_seat *other = &board->shared->seats[seat];
    /* A reader that calls board_expect from now on finds this message when it polls once more. */
    if (atomic_load(&other->missing) < BOARD_IDLE / 2 && atomic_fetch_sub(&other->missing, 1) == 1) {
        if (board->to_wake == BOARD_SEATS)
            board_flush(board);
        board->wake[board->to_wake++] = (uint8_t)seat;
    }
    return true;
}

void board_flush(struct board *board)
{
    for (uint32_t i = 0; i < board->to_wake; i++)
        board_wake(&board->shared->seats[board->wake[i]]);
    board->to_wake = 0;
}

/* Takes a message from a ring. A message is written as a whole, so a partial or invalid one breaks the
 * ring. */
static bool board_take_from(struct board *board, struct ring *ring, struct flow_entry *ret_entry,
                            struct str *ret_tail)
{
    if (!ring_peek(ring, 0, ret_entry, sizeof *ret_entry) || ret_entry->tail_bytes > BOARD_MESSAGE_MAX ||
        !entry_valid(ret_entry) || !ring_peek(ring, sizeof *ret_entry, board->taken, ret_entry->tail_bytes)) {
        ring->broken = true;
        return false;
    }
    ring_drop(ring, sizeof *ret_entry + ret_entry->tail_bytes);
    *ret_tail = (struct str){(const char *)board->taken, ret_entry->tail_bytes};
    return true;
}

bool board_take(struct board *board, struct flow_entry *ret_entry, struct str *ret_tail)
{
    board_attach(board);
    for (uint32_t i = 0; i < board->attached; i++) {
        uint32_t s = board->next < board->attached ? board->next : 0;
        struct ring *ring = &board->in[s];
        if (s != board->seat && !ring->broken && !ring_is_empty(ring) &&
            board_take_from(board, ring, ret_entry, ret_tail))
            return true;
        board->next = s + 1;
    }
    return false;
}

bool board_is_empty(struct board *board)
{
    board_attach(board);
    for (uint32_t s = 0; s < board->attached; s++)
        if (s != board->seat && !board->in[s].broken && !ring_is_empty(&board->in[s]))
            return false;
    return true;
}

void board_expect(struct board *board, uint32_t messages)
{
    atomic_store(&board->shared->seats[board->seat].missing,
                 messages == 0 || messages > BOARD_IDLE ? BOARD_IDLE : (int32_t)messages);
}

uint32_t board_bell(const struct board *board)
{
    return atomic_load(&board->shared->seats[board->seat].bell);
}

static bool board_may_spin(const struct board *board)
{
    uint32_t threads = 0, taken = atomic_load_explicit(&board->shared->seats_taken, memory_order_relaxed);
    for (uint32_t s = 0; s < taken && s < BOARD_SEATS && threads <= board->cores; s++)
        threads += atomic_load_explicit(&board->shared->seats[s].threads, memory_order_relaxed);
    return threads <= board->cores;
}

static bool board_spin(const struct board_seat *seat, uint32_t bell)
{
    for (int64_t end_ns = flow_now_ns() + BOARD_SPIN_NS; flow_now_ns() < end_ns;)
        for (int i = 0; i < 32; i++)
            if (atomic_load(&seat->bell) != bell)
                return true;
    return false;
}

bool board_yield(struct board *board, int64_t *since_ns)
{
    int64_t now_ns = flow_now_ns();
    if (*since_ns == 0 && (board_may_spin(board) || now_ns < board->rests_ns))
        return false;
    *since_ns = *since_ns ? *since_ns : now_ns;
    if (now_ns - *since_ns >= BOARD_YIELD_NS)
        return false;
    sched_yield();
    if (flow_now_ns() - now_ns >= BOARD_AWAY_NS)
        board->rests_ns = now_ns + BOARD_AWAY_NS + BOARD_REST_NS;
    return true;
}

bool board_sleep(struct board *board, uint32_t bell, int64_t timeout_ns)
{
    struct board_seat *seat = &board->shared->seats[board->seat];
    if (board_may_spin(board) && board_spin(seat, bell))
        return true;
    struct timespec timeout = {timeout_ns / NS_PER_SECOND, timeout_ns % NS_PER_SECOND};
    bool late = false;
    atomic_fetch_add(&seat->asleep, 1);
    while (!late && atomic_load(&seat->bell) == bell)
        late = syscall(SYS_futex, &seat->bell, FUTEX_WAIT, bell, timeout_ns < 0 ? NULL : &timeout, NULL, 0) <
                   0 &&
               errno == ETIMEDOUT;
    atomic_fetch_sub(&seat->asleep, 1);
    return !late;
}

void board_ring(struct board *board)
{
    board_wake(&board->shared->seats[board->seat]);
}
