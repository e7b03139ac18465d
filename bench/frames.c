/* A frame with one entry, 64 bytes, there and back between two processes by each carrier of src/flow/wire:
 * rings, TCP sockets and UCX; and a tensor of 16 MiB one way. "looks": both ends look at the carrier all the
 * time and give the processor away between two looks; "sleeps": both wait in poll. UCX goes over what it
 * finds, which UCX_TLS can restrict. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flow/wire/hub.h"
#include "timing.h"

enum { ROUNDS = 1000, WARM_UP = 100, BULK_ROUNDS = 5, BULK_BYTES = 16 << 20 };

/* An end of the connection that is measured. */
struct end {
    struct wire *wire;
    struct wire_hub *hub; /* NULL: not over UCX */
    bool by_ucx, looks;
    uint64_t heard; /* entries */
};

static void frames_must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static bool end_heard(void *context, const struct flow_entry *entry, struct str tail)
{
    ((struct end *)context)->heard++;
    return true;
}

/* Reads and writes what can be, and waits if nothing came. False: the peer has ended. */
static bool end_turn(struct end *end)
{
    uint64_t before = end->heard;
    bool rests = !end->hub || wire_hub_turn(end->hub), pending;
    while (end->hub && wire_hub_next(end->hub))
        rests = false;
    if (flow_wire_flush(end->wire) < 0 || flow_wire_read(end->wire, end_heard, end, NULL) < 0)
        return false;
    pending = flow_wire_is_pending(end->wire) && !end->wire->ops->is_ready;
    if (end->looks) {
        sched_yield();
    } else if (end->heard == before && rests) {
        struct pollfd polled[2] = {{.fd = end->wire->fd, .events = pending ? POLLIN | POLLOUT : POLLIN},
                                   {.fd = end->hub ? wire_hub_fd(end->hub) : -1, .events = POLLIN}};
        poll(polled, 2, 1000);
    }
    return true;
}

static void end_say(struct end *end, struct tensor *payload)
{
    flow_wire_put(end->wire, &(struct flow_entry){.kind = ENTRY_DATA}, (struct str){0}, payload);
    frames_must(flow_wire_flush(end->wire) >= 0, "the peer has ended");
}

/* Answers every entry until the peer ends. */
static void be_peer(int listener, struct end *end)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct error error;
    frames_must(!end->by_ucx || wire_hub_new(WIRE_BY_UCX, &end->hub, &error) == 0, "no UCX");
    poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, -1);
    end->wire = flow_wire_accept(listener);
    uint64_t answered = 0;
    while (end_turn(end)) {
        if (end->hub)
            wire_hub_offer(end->hub, end->wire);
        for (; answered < end->heard; answered++)
            end_say(end, NULL);
    }
    flow_wire_free(end->wire);
    wire_hub_free(end->hub);
    _exit(0);
}

static void row(const char *carrier, const char *what, const char *manner, double value, double best,
                const char *unit)
{
    printf("{\"bench\":\"frames\",\"case\":\"%s, "
           "%s%s\",\"value\":%.3g,\"unit\":\"%s\",\"best\":%.3g}\n",
           what, carrier, manner, value, unit, best);
    fflush(stdout);
}

static void measure(const char *carrier, struct end *end)
{
    static int64_t samples[ROUNDS];
    double speeds[BULK_ROUNDS];
    const char *manner = end->looks ? ", looks" : ", sleeps";
    for (int i = -WARM_UP; i < ROUNDS; i++) { /* the first ones move the connection to UCX */
        uint64_t before = end->heard;
        int64_t begin_ns = now_ns();
        end_say(end, NULL);
        while (end->heard == before)
            frames_must(end_turn(end), "the peer has ended");
        if (i >= 0)
            samples[i] = now_ns() - begin_ns;
    }
    frames_must(!end->hub || strcmp(end->wire->ops->name, "ucx") == 0, "the connection has not moved to UCX");
    double middle = (double)median_ns(samples, ROUNDS) / 1e3;
    row(carrier, "64 bytes there and back", manner, middle, (double)samples[ROUNDS / 100] / 1e3, "us");
    struct tensor *bulk = tensor_new(&(struct ir_type){IR_U8, 1, {BULK_BYTES}});
    memset(bulk->data, 1, BULK_BYTES);
    for (int i = 0; i < BULK_ROUNDS; i++) {
        uint64_t before = end->heard;
        int64_t begin_ns = now_ns();
        end_say(end, bulk);
        while (end->heard == before)
            frames_must(end_turn(end), "the peer has ended");
        speeds[i] = (double)BULK_BYTES / (double)(now_ns() - begin_ns);
    }
    tensor_unref(bulk);
    middle = median(speeds, BULK_ROUNDS);
    row(carrier, "16 MiB one way", manner, middle, speeds[BULK_ROUNDS - 1], "GB/s");
}

static void carrier_rows(const char *carrier, const char *address, bool ucx, bool looks)
{
    struct error error;
    int listener;
    char name[256];
    struct end end = {.by_ucx = ucx, .looks = looks};
    frames_must(flow_wire_listen(address, &listener, &error) == 0, error.text);
    flow_wire_name(listener, address, name, sizeof name);
    pid_t pid = fork();
    if (pid == 0)
        be_peer(listener, &end); /* starts UCX itself: what was started before does not live on in a fork */
    close(listener);
    frames_must(!ucx || wire_hub_new(WIRE_BY_UCX, &end.hub, &error) == 0, error.text);
    frames_must(wire_hub_connect(end.hub, name, &end.wire, &error) == 0, error.text);
    measure(carrier, &end);
    flow_wire_free(end.wire);
    wire_hub_free(end.hub);
    waitpid(pid, NULL, 0);
}

/* UCX in a process of its own: its threads do not live on in a fork. False: it failed. */
static bool ucx_rows(bool looks)
{
    pid_t pid = fork();
    if (pid == 0) {
        carrier_rows("UCX", "127.0.0.1:0", true, looks);
        _exit(0);
    }
    int status = 1;
    waitpid(pid, &status, 0);
    return status == 0;
}

/* Arguments: carriers to measure; none: all. */
int main(int argc, char **argv)
{
    char folder[] = "/tmp/bench-frames-XXXXXX", ring[64];
    bool all = argc == 1, rings = all, tcp = all, ucx = all;
    for (int i = 1; i < argc; i++) {
        rings |= strcmp(argv[i], "rings") == 0;
        tcp |= strcmp(argv[i], "tcp") == 0;
        ucx |= strcmp(argv[i], "ucx") == 0;
    }
    frames_must(mkdtemp(folder) != NULL, "no folder");
    snprintf(ring, sizeof ring, "unix:%s/s", folder);
    for (int looks = 0; looks < 2; looks++) {
        if (rings)
            carrier_rows("rings", ring, false, looks);
        if (tcp)
            carrier_rows("TCP", "127.0.0.1:0", false, looks);
        if (ucx && !ucx_rows(looks) && !all)
            return 1; /* where all are asked for, UCX may be missing: it was said why */
    }
    unlink(ring + 5);
    rmdir(folder);
    return 0;
}
