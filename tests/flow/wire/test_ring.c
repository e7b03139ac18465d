/* Peers that offer shared memory which is none, or write nonsense into it: the connection ends, and no signal
 * comes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/rng.h"
#include "flow/wire/wire.h"
#include "net/ring.h"

enum { CAPACITY = 4096, PAGE = 4096, SIZE = 2 * (CAPACITY + PAGE), FDS = 8 };
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct offer {
    char magic[4];
    uint32_t capacity;
    uint64_t zero;
};

struct stand {
    char folder[64], address[128];
    int listener, peer;
    struct wire *wire;
};

static void stand_begin(struct stand *stand)
{
    struct error error;
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    snprintf(stand->folder, sizeof stand->folder, "/tmp/test-ring-XXXXXX");
    assert_non_null(mkdtemp(stand->folder));
    snprintf(stand->address, sizeof stand->address, "unix:%s/s", stand->folder);
    assert_int_equal(flow_wire_listen(stand->address, &stand->listener, &error), 0);
    snprintf(where.sun_path, sizeof where.sun_path, "%s/s", stand->folder);
    stand->peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(stand->peer, (struct sockaddr *)&where, sizeof where), 0);
    stand->wire = flow_wire_accept(stand->listener);
    assert_non_null(stand->wire);
}

static void stand_end(struct stand *stand)
{
    flow_wire_free(stand->wire);
    close(stand->peer);
    close(stand->listener);
    unlink(stand->address + 5);
    rmdir(stand->folder);
}

static int memory_make(off_t size, int seals)
{
    int memfd = memfd_create("offer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(memfd >= 0);
    assert_int_equal(ftruncate(memfd, size), 0);
    if (seals)
        assert_int_equal(fcntl(memfd, F_ADD_SEALS, seals), 0);
    return memfd;
}

/* Sends `len` bytes of the offer, and the descriptor `count` times. */
static void send_offer(const struct stand *stand, const struct offer *offer, size_t len, int memfd,
                       size_t count)
{
    struct iovec bytes = {(void *)offer, len};
    union {
        char room[CMSG_SPACE(FDS * sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(count * sizeof(int));
        for (size_t i = 0; i < count; i++)
            memcpy(CMSG_DATA(head) + i * sizeof(int), &memfd, sizeof memfd);
    }
    assert_int_equal(sendmsg(stand->peer, &message, 0), (ssize_t)len);
}

static bool count_entry(void *context, const struct flow_entry *entry, struct str tail)
{
    (*(uint64_t *)context)++;
    return true;
}

static int open_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Offers once; the connection must end, and leave no descriptor open. */
static void check_refused(const char *what, const struct offer *offer, size_t len, int memfd, size_t count)
{
    struct stand stand;
    uint64_t entries = 0;
    struct error error = {0};
    int before = open_descriptors();
    stand_begin(&stand);
    send_offer(&stand, offer, len, memfd, count);
    if (flow_wire_read(stand.wire, count_entry, &entries, &error) != ERROR_UNAVAILABLE)
        fail_msg("%s: the offer was taken", what);
    stand_end(&stand);
    if (open_descriptors() != before)
        fail_msg("%s: a descriptor is left open", what);
}

static void unsound_offers_end_the_connection(void **state)
{
    struct offer good = {{'P', 'H', 'X', 'R'}, CAPACITY, 0};
    int sealed = memory_make(SIZE, SEALS), shrinks = memory_make(SIZE, F_SEAL_GROW | F_SEAL_SEAL);
    int open_seals = memory_make(SIZE, F_SEAL_SHRINK | F_SEAL_GROW), bare = memory_make(SIZE, 0);
    int small = memory_make(SIZE - PAGE, SEALS), large = memory_make(SIZE + PAGE, SEALS);
    int empty = memory_make(0, SEALS), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    check_refused("no descriptor", &good, sizeof good, -1, 0);
    check_refused("two descriptors", &good, sizeof good, sealed, 2);
    check_refused("eight descriptors", &good, sizeof good, sealed, FDS);
    check_refused("part of an offer", &good, sizeof good - 1, sealed, 1);
    check_refused("memory that may shrink", &good, sizeof good, shrinks, 1);
    check_refused("seals that may change", &good, sizeof good, open_seals, 1);
    check_refused("no seals", &good, sizeof good, bare, 1);
    check_refused("small memory", &good, sizeof good, small, 1);
    check_refused("large memory", &good, sizeof good, large, 1);
    check_refused("empty memory", &good, sizeof good, empty, 1);
    check_refused("a device", &good, sizeof good, null, 1);
    static const uint32_t capacities[] = {0, 1, 2048, 4097, 6144, 8192, 1u << 26, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        struct offer other = good;
        other.capacity = capacities[i];
        check_refused("another capacity", &other, sizeof other, sealed, 1);
    }
    struct offer other = good;
    other.zero = 1;
    check_refused("unknown fields", &other, sizeof other, sealed, 1);
    int all[] = {sealed, shrinks, open_seals, bare, small, large, empty, null};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        close(all[i]);
}

static void flip_bits(struct rng *rng, unsigned char *memory)
{
    for (int i = 0; i < 3; i++) {
        size_t at = rng_chance(rng, 700000) ? rng_below(rng, 2 * RING_LINE) : rng_below(rng, SIZE);
        if (rng_chance(rng, 300000))
            at += PAGE + CAPACITY;
        uint64_t word = rng_chance(rng, 500000) ? rng_next(rng) : rng_below(rng, 2 * CAPACITY);
        memcpy(memory + (at < SIZE - 8 ? at : SIZE - 8) / 8 * 8, &word, sizeof word);
    }
}

/* The offer is sound; then the peer writes what it likes, at any time. */
static void nonsense_in_shared_memory_does_no_harm(void **state)
{
    struct rng rng;
    int ended = 0;
    rng_seed(&rng, 11);
    for (int round = 0; round < 2000; round++) {
        struct stand stand;
        struct offer good = {{'P', 'H', 'X', 'R'}, CAPACITY, 0};
        uint64_t entries = 0;
        int memfd = memory_make(SIZE, SEALS), rc = 0;
        unsigned char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
        assert_ptr_not_equal(memory, MAP_FAILED);
        stand_begin(&stand);
        send_offer(&stand, &good, sizeof good, memfd, 1);
        for (int i = 0; i < 20 && rc == 0; i++) {
            flip_bits(&rng, memory);
            rc = flow_wire_read(stand.wire, count_entry, &entries, NULL);
            for (uint64_t k = rng_below(&rng, 4); k > 0; k--)
                flow_wire_put(stand.wire, &(struct flow_entry){.kind = ENTRY_DATA}, STR("some bytes"), NULL);
            if (rc == 0 && flow_wire_flush(stand.wire) < 0)
                rc = ERROR_UNAVAILABLE;
        }
        ended += rc != 0;
        stand_end(&stand);
        munmap(memory, SIZE);
        close(memfd);
    }
    assert_true(ended > 1000);
}

/* A peer that has offered its memory cannot take it away. */
static void memory_stays(void **state)
{
    struct stand stand;
    struct offer good = {{'P', 'H', 'X', 'R'}, CAPACITY, 0};
    uint64_t entries = 0;
    int memfd = memory_make(SIZE, SEALS);
    stand_begin(&stand);
    send_offer(&stand, &good, sizeof good, memfd, 1);
    assert_int_equal(flow_wire_read(stand.wire, count_entry, &entries, NULL), 0);
    assert_string_equal(stand.wire->ops->name, "rings");
    assert_int_equal(ftruncate(memfd, 0), -1);
    assert_int_equal(fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE), 0);
    assert_int_equal(flow_wire_read(stand.wire, count_entry, &entries, NULL), 0);
    flow_wire_put(stand.wire, &(struct flow_entry){.kind = ENTRY_DATA}, STR("some bytes"), NULL);
    assert_int_equal(flow_wire_flush(stand.wire), 0);
    close(memfd);
    stand_end(&stand);
}

/* An old client on a unix socket sends frames at once: sockets carry them. */
static void frames_without_an_offer(void **state)
{
    struct stand stand;
    uint64_t entries = 0;
    stand_begin(&stand);
    struct {
        char magic[4];
        uint32_t entries;
        uint64_t bytes;
        struct flow_entry entry;
    } frame = {{'P', 'H', 'X', 'F'}, 1, sizeof(struct flow_entry), {.kind = ENTRY_DATA}};
    assert_int_equal(send(stand.peer, &frame, sizeof frame, 0), sizeof frame);
    assert_int_equal(flow_wire_read(stand.wire, count_entry, &entries, NULL), 0);
    assert_int_equal(entries, 1);
    assert_string_equal(stand.wire->ops->name, "sockets");
    stand_end(&stand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsound_offers_end_the_connection),
        cmocka_unit_test(nonsense_in_shared_memory_does_no_harm),
        cmocka_unit_test(memory_stays),
        cmocka_unit_test(frames_without_an_offer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
