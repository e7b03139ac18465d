/* qualify.h - end-to-end tests of whether this machine performs as a training job needs: they measure figures
 * and compare them with golden thresholds (docs/qualify.md). core/model/qualification.h defines tests and
 * figures.
 *
 *     struct qualify_options options = {.budget_ns = 5 * NS_PER_SECOND, .directory = "."};
 *     options.tests[QUALIFY_CPU] = true;
 *     struct qualify_report report;
 *     qualify_run(&options, &report);          // blocks; report.ok
 *
 * Each test runs in its own child process with a time limit: a child that hangs or dies of a signal fails
 * that test and nothing else. The calling process must have no other threads.
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
    uint64_t epoch;      /* a peer of another epoch is refused */
    int64_t deadline_ns; /* from the start: both ends must finish within it */
    uint64_t bytes;      /* sent in each direction; 0: 64 MiB */
};

struct qualify_options {
    bool tests[QUALIFY_TESTS];
    int64_t budget_ns;         /* about how long each test takes */
    const char *directory;     /* where the disk test writes its file */
    uint64_t memory_bytes;     /* 0: an eighth of the available memory, at most 1 GiB */
    uint64_t disk_bytes;       /* at most; 0: 256 MiB */
    uint32_t threads;          /* 0: one for each CPU that the process may use */
    const char *cuda, *cublas; /* libraries; NULL: the usual names */
    uint32_t gpu_size;         /* rows of the GPU's matrices; 0: 2048 */
    int64_t patience_ns;       /* added to twice the time of a test before it counts as hung; 0: 20 s */
    struct qualify_pair pair;
    struct qualify_golden golden;
};

struct qualify_result {
    bool ran;     /* the test was requested */
    bool skipped; /* nothing to test, for the reason in `why` */
    bool ok;
    int64_t took_ns, limit_ns;
    int64_t work_ns;           /* PAIR: how long the work itself took, for comparisons; else 0 */
    char why[QUALIFY_WHY_MAX]; /* of a failure or skip; else "" */
};
struct qualify_report {
    bool ok; /* nothing failed */
    struct qualify_result tests[QUALIFY_TESTS];
    bool measured[QUALIFY_FIGURES];
    double figures[QUALIFY_FIGURES];
};

/* Runs the requested tests one after another and judges their figures. Blocks. */
void qualify_run(const struct qualify_options *options, struct qualify_report *ret);

/* Reads thresholds from {"cpu/gflops": 50, ...}. ERROR_INVALID names the figure and its place. */
int qualify_golden_read(const struct doc *doc, struct qualify_golden *ret, struct error *error);
/* Reads the body of an errand (docs/qualify.md) and sets its fields in `options`; `pair`: the body is that of
 * one end of a pair. Strings are in `arena`. ERROR_INVALID names the field. */
int qualify_order_read(struct str body, bool pair, struct arena *arena, struct qualify_options *options,
                       struct error *error);

void qualify_report_json(const struct qualify_report *report, const struct qualify_golden *golden,
                         struct buf *out); /* one object */
void qualify_report_text(const struct qualify_report *report, const struct qualify_golden *golden,
                         struct buf *out); /* a line a test and a line a figure */

/* Writes thresholds learned from `count` reports of good machines, as YAML with a member "golden" that
 * qualify_golden_read reads. A threshold is the median less (or plus) the larger of a twentieth of it and
 * three standard deviations, which the median absolute deviation estimates; for gpu/devices it is the
 * median. */
void qualify_learn(const struct qualify_report *reports, size_t count, struct buf *out);

#endif
