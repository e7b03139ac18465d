/* Frames through shared memory, between processes of one host.
 *
 * The connecting side of a unix socket offers a pair of rings (net/ring.h) in a memfd, with its first bytes:
 *
 *     "PHXR" u32 capacity of each ring, u64 0        and the descriptor, as SCM_RIGHTS
 *
 * The memfd contains the ring of the connecting side, then that of the accepting side. It is sealed against
 * shrinking, so that a peer cannot remove memory that the other side is about to access. An offer without the
 * seals or of another size ends the connection. The socket stays open: a byte on it is the bell that wakes a
 * sleeper, and its end is the peer's end.
 */
#include "flow/wire/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/ring.h"

enum { RING_CAPACITY = 1 << 20, RING_CAPACITY_MAX = 1 << 26, RING_BELLS = 256, RING_FDS_MAX = 4 };
#define RING_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct ring_offer {
    char magic[4];
    uint32_t capacity;
    uint64_t zero;
};
_Static_assert(sizeof(struct ring_offer) == 16, "an offer has 16 bytes, as a frame's header");

/* The rings of a wire whose bytes go through shared memory. */
struct wire_rings {
    struct ring out, in;
    void *memory;
    size_t size;
    bool ended; /* the peer has closed the socket */
};

static void bell_ring(const struct wire *wire)
{
    /* A full socket has enough bells in it; the reader detects a broken one. */
    (void)!send(wire->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Takes the bells from the socket. Returns false if the peer has closed it. Poll reports bells that are
 * left. */
static bool bells_take(const struct wire *wire)
{
    char bells[RING_BELLS];
    ssize_t got = recv(wire->fd, bells, sizeof bells, MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static ssize_t ring_carrier_read(struct wire *wire, void *data, size_t len)
{
    struct wire_rings *rings = wire->carrier;
    for (;;) {
        size_t got = ring_read(&rings->in, data, len);
        if (got > 0) {
            if (ring_wake_writer(&rings->in))
                bell_ring(wire);
            return (ssize_t)got;
        }
        if (ring_is_broken(&rings->in) || rings->ended)
            return -1;
        /* The loop then reads the bytes that the peer wrote before it closed the socket. */
        rings->ended = !bells_take(wire);
        if (!rings->ended && ring_sleep_reader(&rings->in))
            return 0;
    }
}

static ssize_t ring_carrier_write(struct wire *wire, const void *data, size_t len)
{
    struct wire_rings *rings = wire->carrier;
    for (;;) {
        size_t sent = ring_write(&rings->out, data, len);
        if (sent > 0) {
            if (ring_wake_reader(&rings->out))
                bell_ring(wire);
            return (ssize_t)sent;
        }
        if (ring_is_broken(&rings->out))
            return -1;
        if (ring_sleep_writer(&rings->out))
            return 0;
    }
}

static bool ring_carrier_is_ready(struct wire *wire)
{
    struct wire_rings *rings = wire->carrier;
    return !ring_is_empty(&rings->in) || ring_is_broken(&rings->in);
}

static bool ring_carrier_doze(struct wire *wire, bool dozes)
{
    struct wire_rings *rings = wire->carrier;
    if (dozes)
        return ring_sleep_reader(&rings->in);
    ring_stay_awake(&rings->in);
    return true;
}

static void ring_carrier_close(struct wire *wire)
{
    struct wire_rings *rings = wire->carrier;
    munmap(rings->memory, rings->size);
    mem_free(rings);
    close(wire->fd);
}

static const struct wire_ops wire_rings = {.name = "rings",
                                           .read = ring_carrier_read,
                                           .write = ring_carrier_write,
                                           .close = ring_carrier_close,
                                           .is_ready = ring_carrier_is_ready,
                                           .doze = ring_carrier_doze};

/* Returns the bytes of one ring in the memfd, rounded up to whole pages. */
static size_t ring_pages(size_t capacity)
{
    return (ring_size(capacity) + 4095) / 4096 * 4096;
}

/* Maps the memfd and hands its rings to the wire. */
static bool rings_attach(struct wire *wire, int memfd, size_t capacity, bool offered)
{
    size_t size = 2 * ring_pages(capacity);
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    if (memory == MAP_FAILED)
        return false;
    struct wire_rings *rings = mem_alloc(sizeof *rings);
    rings->memory = memory;
    rings->size = size;
    ring_attach(offered ? &rings->in : &rings->out, memory, capacity);
    ring_attach(offered ? &rings->out : &rings->in, memory + ring_pages(capacity), capacity);
    ring_sleep_reader(&rings->in); /* the owner begins with poll */
    wire->carrier = rings;
    wire->ops = &wire_rings;
    return true;
}

static bool offer_send(int fd, int memfd)
{
    struct ring_offer offer = {{'P', 'H', 'X', 'R'}, RING_CAPACITY, 0};
    struct iovec bytes = {&offer, sizeof offer};
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &memfd, sizeof memfd);
    return sendmsg(fd, &message, MSG_NOSIGNAL) ==
           sizeof offer; /* the socket's buffer is empty, so the offer is sent whole or not at all */
}

bool wire_ring_offer(struct wire *wire)
{
    int memfd = memfd_create("phalanx-flow", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memfd < 0)
        return true; /* frames go over the socket instead */
    bool sound = true;
    if (ftruncate(memfd, (off_t)(2 * ring_pages(RING_CAPACITY))) == 0 &&
        fcntl(memfd, F_ADD_SEALS, RING_SEALS) == 0 && rings_attach(wire, memfd, RING_CAPACITY, false))
        sound = offer_send(wire->fd, memfd);
    close(memfd);
    return sound;
}

/* Removes an offer from the socket, and returns its descriptor, or -1. */
static int offer_take(int fd, struct ring_offer *offer)
{
    struct iovec bytes = {offer, sizeof *offer};
    union {
        char room[CMSG_SPACE(RING_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int fds[RING_FDS_MAX];
    size_t count = 0;
    for (struct cmsghdr *head = got < 0 ? NULL : CMSG_FIRSTHDR(&message); head;
         head = CMSG_NXTHDR(&message, head)) {
        size_t len = head->cmsg_len - CMSG_LEN(0);
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
            len > sizeof fds - count * sizeof *fds)
            continue;
        memcpy(fds + count, CMSG_DATA(head), len);
        count += len / sizeof *fds;
    }
    if (count == 1 && got == sizeof *offer)
        return fds[0];
    while (count > 0)
        close(fds[--count]);
    return -1;
}

static bool offer_is_sound(const struct ring_offer *offer, int memfd)
{
    size_t capacity = offer->capacity;
    struct stat info;
    if (memfd < 0 || capacity < RING_CAPACITY_MIN || capacity > RING_CAPACITY_MAX ||
        (capacity & (capacity - 1)) != 0 || offer->zero != 0)
        return false;
    int seals = fcntl(memfd, F_GET_SEALS);
    return seals >= 0 && (seals & RING_SEALS) == RING_SEALS && fstat(memfd, &info) == 0 &&
           info.st_size == (off_t)(2 * ring_pages(capacity));
}

int wire_ring_accept(struct wire *wire)
{
    struct ring_offer offer;
    ssize_t seen = recv(wire->fd, &offer, sizeof offer, MSG_DONTWAIT | MSG_PEEK);
    if (seen <= 0)
        return seen < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    if (memcmp(offer.magic, "PHXR", (size_t)seen < 4 ? (size_t)seen : 4) != 0)
        return 1;
    if (seen < (ssize_t)sizeof offer)
        return -1; /* an offer arrives in one piece */
    int memfd = offer_take(wire->fd, &offer);
    bool sound = offer_is_sound(&offer, memfd) && rings_attach(wire, memfd, offer.capacity, true);
    if (memfd >= 0)
        close(memfd);
    return sound ? 1 : -1;
}
