/* qualify.h - does this machine do what a training job needs of it? End-to-end tests that measure figures
 * and hold them against golden thresholds (docs/qualify.md). The words are core/model/qualification.h's.
 *
 *     struct qualify_options options = {.budget_ns = 5 * NS_PER_SECOND, .directory = "."};
 *     options.tests[QUALIFY_CPU] = true;
 *     struct qualify_report report;
 *     qualify_run(&options, &report);          // blocks; report.ok
 *
 * Each test runs in a child process of its own and has a time limit: what hangs, or dies of a signal, fails
 * that test and nothing else. One thread may call this; the calling process must have no other threads.
 */
#ifndef PHX_HOST_QUALIFY_QUALIFY_H
#define PHX_HOST_QUALIFY_QUALIFY_H

#include "doc/doc.h"
#include "base/error.h"
#include "base/units.h"
#include "core/model/qualification.h"

enum { QUALIFY_WHY_MAX = 240 };

/* Thresholds; a figure that is not `given` has none. */
struct qualify_golden {
    bool given[QUALIFY_FIGURES];
    double limit[QUALIFY_FIGURES];
};

/* An end of a pair. */
struct qualify_pair {
    bool listens; /* else it connects */
    const char *host;
    uint16_t port;
    uint64_t epoch;      /* a peer of another one is not ours */
    int64_t deadline_ns; /* from the start: until then both must be through */
    uint64_t bytes;      /* sent in each direction; 0: 64 MiB */
};

struct qualify_options {
    bool tests[QUALIFY_TESTS];
    int64_t budget_ns;         /* about how long each test takes */
    const char *directory;     /* where the disk's file goes */
    uint64_t memory_bytes;     /* 0: an eighth of the available memory, at most 1 GiB */
    uint64_t disk_bytes;       /* at most; 0: 256 MiB */
    uint32_t threads;          /* 0: one a CPU that it may use */
    const char *cuda, *cublas; /* libraries; NULL: the usual names */
    uint32_t gpu_size;         /* rows of the GPU's matrices; 0: 2048 */
    int64_t patience_ns;       /* added to twice the time of a test before it counts as hung; 0: 20 s */
    struct qualify_pair pair;
    struct qualify_golden golden;
};

struct qualify_result {
    bool ran;     /* was asked for */
    bool skipped; /* there is nothing to test, for the reason in `why` */
    bool ok;
    int64_t took_ns, limit_ns;
    int64_t work_ns;           /* PAIR: the time that the work itself took, for comparisons; else 0 */
    char why[QUALIFY_WHY_MAX]; /* of a failure or skip; else "" */
};
struct qualify_report {
    bool ok; /* nothing failed */
    struct qualify_result tests[QUALIFY_TESTS];
    bool measured[QUALIFY_FIGURES];
    double figures[QUALIFY_FIGURES];
};

void qualify_run(const struct qualify_options *options, struct qualify_report *ret);

/* {"cpu/gflops": 50, ...} into thresholds. ERROR_INVALID names the figure and its place. */
int qualify_golden_read(const struct doc *doc, struct qualify_golden *ret, struct error *error);
/* The body of an errand (docs/qualify.md) over `options`; `pair`: of one end of a pair. Strings from
 * `arena`. ERROR_INVALID names the field. */
int qualify_order_read(struct str body, bool pair, struct arena *arena, struct qualify_options *options,
                       struct error *error);

void qualify_report_json(const struct qualify_report *report, const struct qualify_golden *golden,
                         struct buf *out); /* one object */
void qualify_report_text(const struct qualify_report *report, const struct qualify_golden *golden,
                         struct buf *out); /* a line a test and a line a figure */

/* Thresholds from `count` reports of good machines: the median, less (or more) three standard deviations as
 * the median absolute deviation estimates them, or a twentieth where that is more, so that a quiet machine's
 * threshold is not hit by chance. As a file that qualify_golden_read takes. */
void qualify_learn(const struct qualify_report *reports, size_t count, struct buf *out);

#endif
