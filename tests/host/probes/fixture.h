/* fixture.h - probes on a made-up root, under a clock of the test's own; every signal is kept. */
#ifndef PHX_TESTS_HOST_PROBES_FIXTURE_H
#define PHX_TESTS_HOST_PROBES_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/vec.h"
#include "doc/yaml.h"
#include "host/probes/probes.h"

struct kept {
    char code[SIGNAL_CODE_MAX + 1], place[SIGNAL_PLACE_MAX + 1], evidence[SIGNAL_EVIDENCE_MAX + 1];
    enum signal_assertion assertion;
    enum signal_severity severity;
    int32_t chip;
    uint32_t count;
    int64_t first_ns, last_ns;
};
struct fixture {
    char root[128];
    struct probes *probes;
    int64_t now_ns;
    int64_t cost_ns; /* of the test's own clock of processor time; < 0: the real one */
    struct probes_clock clock;
    bool has_clock;
    VEC(struct kept) kept;
};

static inline int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about;
    (void)kind;
    (void)where;
    return remove(path);
}

/* Writes a file below the root, with its folders. */
static inline void put(struct fixture *f, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline void put_bytes(struct fixture *f, const char *path, const void *data, size_t len, bool append)
{
    char full[1024];
    CHECK(snprintf(full, sizeof full, "%s%s", f->root, path) < (int)sizeof full);
    for (char *at = full + strlen(f->root) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        CHECK(mkdir(full, 0755) == 0 || errno == EEXIST);
        *at = '/';
    }
    int fd = open(full, O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0644);
    CHECK(fd >= 0 && write(fd, data, len) == (ssize_t)len);
    close(fd);
}
static inline void put(struct fixture *f, const char *path, const char *format, ...)
{
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    put_bytes(f, path, text.data ? text.data : "", text.len, false);
}
static inline void add_line(struct fixture *f, const char *path, const char *line)
{
    put_bytes(f, path, line, strlen(line), true);
    put_bytes(f, path, "\n", 1, true);
}
static inline void take_away(struct fixture *f, const char *path)
{
    char full[1024];
    CHECK(snprintf(full, sizeof full, "%s%s", f->root, path) < (int)sizeof full);
    nftw(full, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void keep(void *context, const struct signal *signal)
{
    struct fixture *f = context;
    CHECK(signal_is_valid(signal));
    struct kept kept = {.assertion = signal->assertion,
                        .severity = signal->severity,
                        .chip = signal->chip,
                        .count = signal->count,
                        .first_ns = signal->first_ns,
                        .last_ns = signal->last_ns};
    snprintf(kept.code, sizeof kept.code, STR_FORMAT, STR_ARG(signal->code));
    snprintf(kept.place, sizeof kept.place, STR_FORMAT, STR_ARG(signal->place));
    snprintf(kept.evidence, sizeof kept.evidence, STR_FORMAT, STR_ARG(signal->evidence));
    vec_push(&f->kept, kept);
}

#define TEST_WALL_NS (INT64_C(1700000000) * NS_PER_SECOND)
static inline int64_t fixture_wall(void *context)
{
    return TEST_WALL_NS + ((struct fixture *)context)->now_ns;
}
static inline int64_t fixture_cost(void *context)
{
    struct fixture *f = context;
    struct timespec time;
    if (f->cost_ns >= 0)
        return f->cost_ns;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (int64_t)time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}
static inline bool fixture_clock(void *context, struct probes_clock *ret_clock)
{
    struct fixture *f = context;
    *ret_clock = f->clock;
    return f->has_clock;
}

/* NULL with the message in `error` when the settings are refused. */
static inline struct probes *probes_with(struct fixture *f, const char *settings, const char *only,
                                         struct error *error)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc_list documents = {0};
    if (settings)
        CHECK(yaml_parse_all(&arena, str_from(settings), &documents, NULL) == 0);
    struct probes_options options = {.root = f->root,
                                     .settings = documents.len ? documents.items[0] : NULL,
                                     .only = only,
                                     .wall_ns = fixture_wall,
                                     .cost_ns = fixture_cost,
                                     .clock = fixture_clock,
                                     .context = f};
    return probes_new(&options, error);
}

static inline void begin(struct fixture *f, const char *only, const char *settings)
{
    struct error error = {0};
    f->probes = probes_with(f, settings, only, &error);
    if (!f->probes)
        fail_msg("%s", error.text);
}

/* Rounds, at the test's time, until every child has answered or is past its time. */
static inline void settle(struct fixture *f)
{
    for (;;) {
        probes_round(f->probes, f->now_ns, keep, f);
        if (!probes_busy(f->probes))
            return;
        struct pollfd ready = {probes_fd(f->probes), POLLIN, 0};
        poll(&ready, 1, 100);
    }
}
/* Our clock goes on, with rounds as it goes. */
static inline void advance(struct fixture *f, int64_t seconds)
{
    for (int64_t end_ns = f->now_ns + seconds * NS_PER_SECOND; f->now_ns < end_ns;) {
        f->now_ns += NS_PER_SECOND / 2;
        probes_round(f->probes, f->now_ns, keep, f);
    }
}
/* All probes once, `seconds` later. */
static inline void look_after(struct fixture *f, int64_t seconds)
{
    vec_clear(&f->kept);
    f->now_ns += seconds * NS_PER_SECOND;
    probes_hurry(f->probes);
    settle(f);
}

/* The n-th signal is this one. */
static inline const struct kept *expect(struct fixture *f, size_t n, enum signal_assertion assertion,
                                        const char *code, const char *place)
{
    if (n >= f->kept.len)
        fail_msg("no signal %zu: %s %s is missing", n, code, place);
    const struct kept *kept = &f->kept.items[n];
    if (strcmp(kept->code, code) != 0 || strcmp(kept->place, place) != 0 || kept->assertion != assertion)
        fail_msg("signal %zu is %d %s %s (%s), not %d %s %s", n, (int)kept->assertion, kept->code,
                 kept->place, kept->evidence, (int)assertion, code, place);
    return kept;
}
/* The only one. */
static inline const struct kept *expect_one(struct fixture *f, enum signal_assertion assertion,
                                            const char *code, const char *place)
{
    const struct kept *kept = expect(f, 0, assertion, code, place);
    if (f->kept.len != 1)
        fail_msg("%zu signals, the second is %s %s (%s)", f->kept.len, f->kept.items[1].code,
                 f->kept.items[1].place, f->kept.items[1].evidence);
    return kept;
}
static inline void expect_none(struct fixture *f)
{
    if (f->kept.len > 0)
        fail_msg("%zu signals, the first is %d %s %s: %s", f->kept.len, (int)f->kept.items[0].assertion,
                 f->kept.items[0].code, f->kept.items[0].place, f->kept.items[0].evidence);
}

static inline int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const char *base = getenv("TMPDIR");
    f->cost_ns = 0;
    snprintf(f->root, sizeof f->root, "%.80s/phx-probes-XXXXXX", base ? base : "/tmp");
    CHECK(mkdtemp(f->root));
    *state = f;
    return 0;
}
static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    if (f->probes)
        probes_free(f->probes);
    take_away(f, "");
    vec_done(&f->kept);
    free(f);
    return 0;
}
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

#endif
