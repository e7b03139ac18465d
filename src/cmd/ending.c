#include "cmd/ending.h"

static volatile sig_atomic_t ending_heard;

static void hear_ending(int number)
{
    (void)number;
    ending_heard = 1;
}

const volatile sig_atomic_t *ending_await(void)
{
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    sigprocmask(SIG_BLOCK, &both, NULL);
    signal(SIGINT, hear_ending);
    signal(SIGTERM, hear_ending);
    return &ending_heard;
}
