/* pair.c - one end of a pair of machines. Both know the round's epoch: a peer of another round, late or
 * early, is refused, and both keep waiting for the right one until the deadline. */
#include "host/qualify/internal.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 500 };
#define PAIR_BYTES (UINT64_C(64) << 20)
#define AGAIN_NS   (50 * NS_PER_MS)
#define GREETING_NS (5 * NS_PER_SECOND) /* a silent peer delays the test no longer than this */

struct greeting {
    char magic[8];
    uint64_t epoch, bytes;
};

static struct greeting greeting_of(const struct qualify_pair *pair, uint64_t bytes)
{
    struct greeting greeting = {.epoch = pair->epoch, .bytes = bytes};
    memcpy(greeting.magic, "phxpair1", sizeof greeting.magic);
    return greeting;
}

/* Exchanges the rounds. Returns whether the peer is of the same one. */
static bool is_ours(const struct qualify_pair *pair, const struct net_end *end)
{
    struct greeting own = greeting_of(pair, end->bytes), other;
    struct net_end soon = *end;
    int64_t limit_ns = test_now_ns() + GREETING_NS;
    soon.deadline_ns = limit_ns < end->deadline_ns ? limit_ns : end->deadline_ns;
    return net_write(&soon, &own, sizeof own) && net_read(&soon, &other, sizeof other) &&
           memcmp(&own, &other, sizeof own) == 0;
}

static void pause_for(int64_t ns)
{
    struct timespec wait = {0, ns};
    nanosleep(&wait, NULL);
}

/* Connects to the right peer. Returns the descriptor, or -1 if there is none by the deadline. */
static int meet(const struct qualify_pair *pair, struct net_end *end, int listener)
{
    while (test_now_ns() < end->deadline_ns) {
        end->fd = pair->listens ? net_accept(listener, end->deadline_ns)
                                : net_connect(pair->host, pair->port, end->deadline_ns);
        if (end->fd >= 0 && is_ours(pair, end))
            return end->fd;
        if (end->fd >= 0)
            close(end->fd);
        end->fd = -1;
        if (!pair->listens)
            pause_for(AGAIN_NS);
    }
    return -1;
}

bool test_pair(const struct qualify_options *options, struct test_answer *answer)
{
    const struct qualify_pair *pair = &options->pair;
    struct net_end end = {.fd = -1,
                          .deadline_ns = test_now_ns() + pair->deadline_ns,
                          .bytes = pair->bytes ? pair->bytes : PAIR_BYTES,
                          .rounds = ROUNDS};
    struct net_work work;
    int listener = -1;
    uint16_t port;
    if (pair->listens) {
        listener = net_listen(pair->host, pair->port, &port, answer);
        if (listener < 0)
            return false;
    }
    bool good = meet(pair, &end, listener) >= 0
                    ? net_do(&end, pair->listens, &work, answer)
                    : test_fail(answer, "no peer of epoch %llu at %s:%u by the deadline",
                                (unsigned long long)pair->epoch, pair->host, pair->port);
    if (end.fd >= 0)
        close(end.fd);
    if (listener >= 0)
        close(listener);
    if (!good)
        return false;
    answer->work_ns = work.work_ns;
    test_figure(answer, "pair/mb-per-s", work.mb_per_s);
    test_figure(answer, "pair/latency-us", work.latency_us);
    return true;
}
