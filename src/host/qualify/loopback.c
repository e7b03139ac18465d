/* loopback.c - a TCP connection of this machine to itself, the other end in a child. */
#include "host/qualify/internal.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 2000 };
#define LOOPBACK_BYTES (UINT64_C(64) << 20)

static _Noreturn void be_peer(uint16_t port, struct net_end end)
{
    struct test_answer nobody = {0};
    struct net_work work;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    end.fd = net_connect("127.0.0.1", port, end.deadline_ns);
    _exit(end.fd >= 0 && net_do(&end, false, &work, &nobody) ? 0 : 1);
}

bool test_loopback(const struct qualify_options *options, struct test_answer *answer)
{
    uint16_t port = 0;
    /* A busy machine is slow, which its figures show; this limit is for a peer that never connects. */
    int64_t most_ns = 2 * options->budget_ns + test_patience_ns(options) / 2;
    struct net_end end = {.deadline_ns = test_now_ns() + most_ns, .bytes = LOOPBACK_BYTES, .rounds = ROUNDS};
    struct net_work work;
    int listener = net_listen("127.0.0.1", 0, &port, answer);
    if (listener < 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        be_peer(port, end);
    end.fd = pid > 0 ? net_accept(listener, end.deadline_ns) : -1;
    bool good = end.fd >= 0 ? net_do(&end, true, &work, answer) : test_fail(answer, "no connection");
    if (end.fd >= 0)
        close(end.fd);
    close(listener);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    if (!good)
        return false;
    test_figure(answer, "loopback/mb-per-s", work.mb_per_s);
    test_figure(answer, "loopback/latency-us", work.latency_us);
    return true;
}
