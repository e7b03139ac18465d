/* memory.c - memory patterns: each is written to all of the memory, then read back and compared; a thread on
 * every CPU tests its own part. */
#include "host/qualify/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY_MAX (UINT64_C(1) << 30)
enum { PATTERNS = 6, MEMORY_MIN = 1 << 20 };

struct region {
    uint64_t *words;
    size_t count;
};

static inline __attribute__((always_inline)) uint64_t pattern(int which, size_t index)
{
    switch (which) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return index & 1 ? UINT64_C(0x5555555555555555) : UINT64_C(0xaaaaaaaaaaaaaaaa);
    case 3:
        return UINT64_C(1) << (index & 63);
    case 4:
        return ~(UINT64_C(1) << (index & 63));
    default:
        return index * UINT64_C(0x9e3779b97f4a7c15);
    }
}

static void fill(uint64_t *words, size_t begin, size_t end, int which)
{
    for (size_t i = begin; i < end; i++)
        words[i] = pattern(which, i);
}

static bool compare(struct test_thread *thread, const uint64_t *words, size_t begin, size_t end, int which)
{
    for (size_t i = begin; i < end; i++)
        if (words[i] != pattern(which, i)) {
            snprintf(thread->why, sizeof thread->why,
                     "memory gave back 0x%016llx instead of 0x%016llx (pattern %d, word %zu, CPU %d)",
                     (unsigned long long)words[i], (unsigned long long)pattern(which, i), which, i,
                     thread->cpu);
            return false;
        }
    return true;
}

static void work(struct test_thread *thread)
{
    const struct region *region = thread->shared;
    size_t begin = region->count / thread->count * thread->index;
    size_t end = thread->index + 1 == thread->count ? region->count : begin + region->count / thread->count;
    int64_t begun_ns = test_now_ns();
    bool good = true;
    for (int round = 0; good && (round < 1 || test_now_ns() < thread->until_ns); round++)
        for (int which = 0; which < PATTERNS && good; which++) {
            fill(region->words, begin, end, which);
            __asm__ volatile("" ::: "memory");
            good = compare(thread, region->words, begin, end, which);
            thread->amount += 2.0 * 8 * (double)(end - begin);
            if (which >= 2 && test_now_ns() >= thread->until_ns)
                break; /* at least zeros, ones and checkers */
        }
    thread->took_ns = test_now_ns() - begun_ns;
}

static uint64_t bytes_of(const struct qualify_options *options)
{
    if (options->memory_bytes > 0)
        return options->memory_bytes < MEMORY_MIN ? MEMORY_MIN : options->memory_bytes;
    uint64_t bytes = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 8;
    bytes = bytes < MEMORY_MAX ? bytes : MEMORY_MAX;
    return bytes < MEMORY_MIN ? MEMORY_MIN : bytes;
}

bool test_memory(const struct qualify_options *options, struct test_answer *answer)
{
    struct region region = {.count = bytes_of(options) / sizeof(uint64_t)};
    size_t bytes = region.count * sizeof(uint64_t);
    double rate;
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return test_fail(answer, "%zu bytes of memory are not to be had: %s", bytes, strerror(errno));
    region.words = memory;
    bool good = test_threads(options, work, &region, &rate, answer);
    munmap(memory, bytes);
    if (good)
        test_figure(answer, "memory/mb-per-s", rate / 1e6);
    return good;
}
