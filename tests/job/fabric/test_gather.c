/* The words of all ranks reach all ranks of a slice: each rank is a process of its own, with the
 * library's rendezvous on real sockets, in worlds of one rank to several groups of them, the last of
 * which is not full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/arena.h"
#include "job/fabric/gather.h"

enum { GENERATIONS = 4, WORLD_MAX = 200 };

/* A port that stays bound, without listening, so that the kernel gives it to nobody else. */
static int take_port(int *ret_fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int on = 1;
    *ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(*ret_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal(bind(*ret_fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(*ret_fd, (struct sockaddr *)&address, &size), 0);
    return ntohs(address.sin_port);
}

static void set_number(const char *name, const char *format, uint32_t number)
{
    char text[64];
    snprintf(text, sizeof text, format, number);
    setenv(name, text, 1);
}

static struct fabric_word word_of(uint32_t rank, uint32_t generation)
{
    struct fabric_word word = {.done = rank * 7u + generation, .tables = rank, .without = rank % 48};
    for (uint32_t i = 0; i < PHX_SLICE_CHIPS; i++) {
        word.chips[i].label = rank * PHX_SLICE_CHIPS + i;
        word.chips[i].ports[generation % PHX_CHIP_PORTS] =
            (struct phx_chip_port){.light = 1, .port = 3, .chip = rank + i, .rtt_ns = 400};
    }
    return word;
}

static bool is_word(const struct fabric_word *word, uint32_t rank, uint32_t generation)
{
    struct fabric_word want = word_of(rank, generation);
    bool same = word->done == want.done && word->tables == want.tables && word->without == want.without;
    for (uint32_t i = 0; i < PHX_SLICE_CHIPS && same; i++) {
        const struct phx_chip_port *port = &word->chips[i].ports[generation % PHX_CHIP_PORTS];
        same = word->chips[i].label == want.chips[i].label && port->light && port->chip == rank + i &&
               !word->chips[i].ports[(generation + 1) % PHX_CHIP_PORTS].light;
    }
    return same;
}

/* A rank's process: 0 when it heard all others in each generation. */
static int take_part(uint32_t rank, uint32_t world)
{
    struct phx_error error = {0};
    phx_context *ctx;
    set_number("PHX_RANK", "%u", rank);
    if (phx_join(NULL, &ctx, &error) != 0)
        return fprintf(stderr, "rank %u: %s\n", rank, error.message), 1;
    struct fabric_ranks ranks = {.ctx = ctx, .rank = rank, .world = world};
    struct fabric_word *words = mem_alloc(world * sizeof *words);
    int status = 0;
    for (ranks.generation = 1; ranks.generation <= GENERATIONS && status == 0; ranks.generation++) {
        struct fabric_word word = word_of(rank, ranks.generation);
        status = fabric_gather(&ranks, &word, words, &error);
        for (uint32_t other = 0; other < world && status == 0; other++)
            status = is_word(&words[other], other, ranks.generation) ? 0 : 2;
    }
    if (status < 0)
        fprintf(stderr, "rank %u: %s\n", rank, error.message);
    mem_free(words);
    return phx_leave(ctx, NULL) == 0 && status == 0 ? 0 : 1;
}

static void gather_in(uint32_t world)
{
    pid_t pids[WORLD_MAX];
    int fd, status, failed = 0;
    assert_true(world <= WORLD_MAX);
    unsetenv("PHX_AGENT_SOCKET");
    set_number("PHX_WORLD_SIZE", "%u", world);
    set_number("PHX_RENDEZVOUS", "127.0.0.1:%u", (uint32_t)take_port(&fd));
    for (uint32_t rank = 0; rank < world; rank++) {
        pids[rank] = fork();
        assert_true(pids[rank] >= 0);
        if (pids[rank] == 0)
            _exit(take_part(rank, world));
    }
    for (uint32_t rank = 0; rank < world; rank++)
        failed += waitpid(pids[rank], &status, 0) != pids[rank] || status != 0;
    close(fd);
    assert_int_equal(failed, 0);
}

static void every_rank_hears_all_others(void **state)
{
    static const uint32_t worlds[] = {1, 2, 16, 17, 33, WORLD_MAX};
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++)
        gather_in(worlds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_rank_hears_all_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
