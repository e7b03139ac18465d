/* burst COUNT ROUNDS PROGRAM [ARGUMENT...]: the physical limits of starting processes.
 *
 * Starts PROGRAM COUNT times with fork and exec, one after the other from this one parent, and waits for all;
 * ROUNDS times. Each finds its number in RANK. Prints two lines a round: when it began (CLOCK_MONOTONIC
 * in ns), and how long it took until the last had ended. When the first instructions were, the programs say
 * themselves (first.c).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void become(long number, char **argv)
{
    char text[24];
    snprintf(text, sizeof text, "%ld", number);
    setenv("RANK", text, 1);
    execv(argv[0], argv);
    _exit(127);
}

/* False when one of them failed. */
static int start_and_wait(long count, char **argv)
{
    int good = 1;
    for (long i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0)
            become(i, argv);
        good &= pid > 0;
    }
    for (long i = 0; i < count; i++) {
        int status;
        if (wait(&status) < 0 || status != 0)
            good = 0;
    }
    return good;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    long count = strtol(argv[1], NULL, 10), rounds = strtol(argv[2], NULL, 10);
    for (long round = 0; round < rounds; round++) {
        int64_t start_ns = now_ns();
        printf("%lld\n", (long long)start_ns);
        fflush(stdout);
        start_ns = now_ns();
        if (!start_and_wait(count, argv + 3))
            return 1;
        printf("%lld\n", (long long)(now_ns() - start_ns));
    }
    return 0;
}
