/* qualification.h - the tests of machines before work: the vocabulary of the cluster file's section
 * spec.qualification, of `phalanx qualify`, and of the body of its errands (docs/qualify.md).
 *
 * A test measures figures. A golden threshold is the lowest or, for some figures, the highest value that
 * passes.
 */
#ifndef PHX_CORE_MODEL_QUALIFICATION_H
#define PHX_CORE_MODEL_QUALIFICATION_H

#include "doc/doc.h"
#include "core/spec/spec.h"

/* The tests, in the order in which they run. The first five test a machine alone; pair tests two machines. */
enum qualify_test {
    QUALIFY_CPU,
    QUALIFY_MEMORY,
    QUALIFY_DISK,
    QUALIFY_LOOPBACK,
    QUALIFY_GPU,
    QUALIFY_PAIR,
    QUALIFY_TESTS
};
enum { QUALIFY_SECONDS_MIN = 1, QUALIFY_SECONDS_MAX = 3600, QUALIFY_SECONDS_DEFAULT = 5 };

struct qualify_figure {
    const char *name; /* "cpu/gflops" */
    enum qualify_test test;
    bool at_most; /* the threshold is an upper limit; otherwise a lower one */
    const char *unit;
};
enum { QUALIFY_FIGURES = 11 };
extern const struct qualify_figure qualify_figures[QUALIFY_FIGURES];

const char *qualify_test_name(enum qualify_test test); /* "cpu"; in fault codes "qualify/cpu" */
bool qualify_test_find(struct str name, enum qualify_test *ret_test);
const struct qualify_figure *qualify_figure_find(struct str name); /* NULL: unknown */

/* Whether a gang's machines are tested before it starts. */
enum preflight_mode {
    PREFLIGHT_OFF,
    PREFLIGHT_ON,    /* each machine alone */
    PREFLIGHT_PAIRS, /* each machine alone, then in pairs */
};
bool preflight_mode_find(struct str text, enum preflight_mode *ret_mode); /* "true", "false", "pairs" */

/* Machines of one kind, and their thresholds. */
struct qualify_class {
    struct str name;
    struct labels labels; /* labels of the machines in the class */
    struct str body;   /* of an errand that tests one machine: {"tests":[...],"seconds":N,"golden":{...}} */
    struct str golden; /* the golden thresholds as JSON, for errands that test a pair */
    int64_t seconds;
};
struct qualification {
    enum preflight_mode preflight;       /* for gangs without a setting of their own */
    int64_t valid_ns;                    /* how long a passed test is valid */
    int64_t timeout_ns, pair_timeout_ns; /* of a machine's tests; of a round of pairs */
    int64_t straggler_percent; /* of the median: a machine whose network test takes longer is a straggler */
    int64_t pair_port;         /* the first of QUALIFY_PAIR_PORTS ports on each machine */
    struct qualify_class *classes; /* the last one has no labels, and fits every machine */
    size_t class_count;
};
enum { QUALIFY_CLASSES_MAX = 64, QUALIFY_PAIR_PORTS = 64 };

struct machine;
/* Returns the first class whose labels the machine has. */
const struct qualify_class *qualify_class_of(const struct qualification *settings,
                                             const struct machine *machine);

#endif
