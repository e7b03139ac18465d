/* The options of phalanx model: the actions that have them, their values, and their help. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "cmd/model_asked.h"
#include "cmd/usage.h"
#include "core/fabric/wiring.h"
#include "sim/model/spares.h"

enum takes {
    TAKES_FLAG,
    TAKES_FILE,
    TAKES_COUNT,
    TAKES_POSITIVE,
    TAKES_SHARE,
    TAKES_SPAN,
    TAKES_AUTO,
    TAKES_LONG
};

enum {
    FORMULAS = MODEL_ETTR | MODEL_INTERVAL,
    SIZED = FORMULAS | MODEL_SPARES | MODEL_MTTF,
    RATED = SIZED | MODEL_AVAILABILITY,
    LETTER_BASE = 256, /* val of the first row's struct option */
    LETTER_JSON = LETTER_BASE + MODEL_SETTINGS,
};

struct option_row {
    const char *name, *value; /* value: its name in --help; NULL: the option takes none */
    uint32_t actions;
    enum takes takes;
    const char *wanted; /* "expected ..." */
    double least, most; /* of TAKES_COUNT */
    const char *help;
};

static const struct option_row rows[MODEL_SETTINGS] = {
    [MODEL_MACHINES] = {"machines", "N", MODEL_SHORT | SIZED, TAKES_POSITIVE, "a number above 0", 0, 0,
                        "machines of the job; the loss of one stops it"},
    [MODEL_GPUS] = {"gpus", "N", SIZED, TAKES_POSITIVE, "a number above 0", 0, 0, "GPUs of the job, instead"},
    [MODEL_PER_MACHINE] = {"gpus-per-machine", "N", SIZED, TAKES_POSITIVE, "a number above 0", 0, 0,
                           "of --gpus (8)"},
    [MODEL_RATE] = {"rate", "R", MODEL_SHORT | RATED, TAKES_POSITIVE, "a number above 0", 0, 0,
                    "failures of a machine in 1,000 days (6.5 and 2.34 are published)"},
    [MODEL_JOB_MTTF] = {"mttf", "DURATION", MODEL_SHORT | FORMULAS, TAKES_LONG,
                        "a duration above 0, such as 3h", 0, 0,
                        "time between two failures of the job, instead of size and rate"},
    [MODEL_EVERY] = {"interval", "DURATION", MODEL_SHORT | MODEL_ETTR, TAKES_AUTO,
                     "auto, or a duration above 0, such as 30m", 0, 0,
                     "time between checkpoints; auto: the best one (auto)"},
    [MODEL_WRITE] = {"write", "DURATION", MODEL_SHORT | FORMULAS, TAKES_SPAN, "a duration such as 10s", 0, 0,
                     "how long a checkpoint stops the job (10s)"},
    [MODEL_RESTART] = {"restart", "DURATION", MODEL_SHORT | FORMULAS, TAKES_SPAN, "a duration such as 5m", 0,
                       0, "from a failure to the next step (5m)"},
    [MODEL_QUEUE] = {"queue", "DURATION", MODEL_SHORT | FORMULAS, TAKES_SPAN, "a duration such as 1m", 0, 0,
                     "wait for machines after each failure (0s)"},
    [MODEL_RUN] = {"run", "DURATION", MODEL_ETTR, TAKES_LONG, "a duration above 0, such as 7d", 0, 0,
                   "productive time of a run: counts its first start, too"},
    [MODEL_TARGET] = {"target", "E", MODEL_SHORT | FORMULAS | MODEL_SPARES | MODEL_AVAILABILITY, TAKES_SHARE,
                      "a number between 0 and 1", 0, 0,
                      "what is to be reached, such as 0.9: says which terms reach it"},
    [MODEL_TRIALS] = {"trials", "N", MODEL_ETTR | MODEL_SPARES, TAKES_COUNT, "a number from 2 to 100000000",
                      2, 1e8, "also lives through N failures, drawn by chance"},
    [MODEL_SEED] = {"seed", "N", MODEL_ETTR | MODEL_SPARES, TAKES_COUNT, "a number from 0", 0, 9e15,
                    "of what is drawn (1)"},
    [MODEL_FAILURES] = {"failures", "N", MODEL_SHORT | MODEL_MTTF, TAKES_COUNT, "a number from 0", 0, 1e9,
                        "failures counted ..."},
    [MODEL_EXPOSURE] = {"exposure", "DURATION", MODEL_SHORT | MODEL_MTTF, TAKES_LONG,
                        "a duration above 0, such as 28d", 0, 0,
                        "... in this time, of one machine or summed over several"},
    [MODEL_CONFIDENCE] = {"confidence", "C", MODEL_SHORT | MODEL_MTTF, TAKES_SHARE,
                          "a number between 0 and 1", 0, 0, "of the bounds (0.9)"},
    [MODEL_JOBS] = {"jobs", "FILE", MODEL_MTTF, TAKES_FILE, NULL, 0, 0,
                    "counts failures of jobs: CSV with job,machines,start,end,state"},
    [MODEL_CHECKS] = {"checks", "FILE", MODEL_MTTF, TAKES_FILE, NULL, 0, 0,
                      "critical health checks: CSV with job,time"},
    [MODEL_BEFORE] = {"before", "DURATION", MODEL_MTTF, TAKES_SPAN, "a duration such as 10m", 0, 0,
                      "a check explains a job that fails so long after it (10m)"},
    [MODEL_AFTER] = {"after", "DURATION", MODEL_MTTF, TAKES_SPAN, "a duration such as 5m", 0, 0,
                     "... or failed so long before it (5m)"},
    [MODEL_ABOVE] = {"above", "N", MODEL_MTTF, TAKES_COUNT, "a number from 0 to 1000000", 0, 1e6,
                     "rate of jobs on more than N machines (16)"},
    [MODEL_REPAIR] = {"repair", "DURATION", MODEL_SPARES | MODEL_AVAILABILITY, TAKES_LONG,
                      "a duration above 0, such as 2d", 0, 0, "mean time until a failed machine is back"},
    [MODEL_COUNT] = {"spares", "N", MODEL_SPARES, TAKES_COUNT, "a number from 0 to 100000", 0, SPARES_MAX,
                     "spare machines that there are: says the longest repair"},
    [MODEL_COLD] = {"cold", NULL, MODEL_SPARES, TAKES_FLAG, NULL, 0, 0, "idle machines do not fail"},
    [MODEL_HOST] = {"host", "P", MODEL_AVAILABILITY, TAKES_SHARE, "a number between 0 and 1", 0, 0,
                    "the probability that a host is up, instead of --rate and --repair"},
    [MODEL_POD] = {"pod", "N", MODEL_AVAILABILITY, TAKES_COUNT, "a number from 1 to 150", 1, POD_CUBES_MAX,
                   "cubes of 16 hosts in the pod (64)"},
    [MODEL_SLICE] = {"slice", "N", MODEL_AVAILABILITY, TAKES_COUNT, "a number from 1 to 150", 1,
                     POD_CUBES_MAX, "cubes of the slice, instead of a table of sizes"},
};

void model_asked_default(struct model_asked *ret_asked)
{
    *ret_asked = (struct model_asked){.value = {[MODEL_PER_MACHINE] = 8,
                                                [MODEL_WRITE] = 10,
                                                [MODEL_RESTART] = 300,
                                                [MODEL_SEED] = 1,
                                                [MODEL_CONFIDENCE] = .9,
                                                [MODEL_BEFORE] = 600,
                                                [MODEL_AFTER] = 300,
                                                [MODEL_ABOVE] = 16,
                                                [MODEL_POD] = 64}};
}

int model_complain(const struct model_asked *asked, const char *what)
{
    return usage_wrong(asked->usage, "%s", what);
}

const struct option *model_options(uint32_t actions)
{
    static struct option options[MODEL_SETTINGS + 4];
    size_t count = 0;
    for (int i = 0; i < MODEL_SETTINGS; i++)
        if (rows[i].actions & actions)
            options[count++] = (struct option){rows[i].name, rows[i].value ? required_argument : no_argument,
                                               NULL, LETTER_BASE + i};
    options[count++] = (struct option){"json", no_argument, NULL, LETTER_JSON};
    options[count++] = (struct option){"output", required_argument, NULL, 'o'};
    options[count++] = (struct option){"help", no_argument, NULL, 'h'};
    options[count] = (struct option){0};
    return options;
}

/* --- values --------------------------------------------------------------------------------------------- */

static bool span_parse(const char *text, double *ret)
{
    int64_t span_ns;
    if (!duration_parse(str_from(text), &span_ns))
        return false;
    *ret = (double)span_ns / (double)NS_PER_SECOND;
    return true;
}

static bool number_parse(const char *text, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    return end != text && !*end && isfinite(*ret);
}

static bool count_parse(const struct option_row *row, const char *text, double *ret)
{
    int64_t count;
    bool good = str_to_i64(str_from(text), (int64_t)row->least, (int64_t)row->most, &count);
    *ret = good ? (double)count : 0;
    return good;
}

static bool value_parse(const struct option_row *row, const char *text, double *ret)
{
    switch (row->takes) {
    case TAKES_FLAG:
    case TAKES_FILE:
        *ret = 1;
        return true;
    case TAKES_COUNT:
        return count_parse(row, text, ret);
    case TAKES_POSITIVE:
        return number_parse(text, ret) && *ret > 0;
    case TAKES_SHARE:
        return number_parse(text, ret) && *ret > 0 && *ret < 1;
    case TAKES_SPAN:
        return span_parse(text, ret);
    case TAKES_LONG:
        return span_parse(text, ret) && *ret > 0;
    case TAKES_AUTO:
        *ret = 0;
        return strcmp(text, "auto") == 0 || (span_parse(text, ret) && *ret > 0);
    }
    return false;
}

int model_take_option(struct model_asked *asked, int letter, const char *value)
{
    if (letter == 'o')
        return usage_json(value, &asked->json) ? EXIT_OK : EXIT_USAGE;
    if (letter == LETTER_JSON) {
        asked->json = true;
        return EXIT_OK;
    }
    CHECK(letter >= LETTER_BASE && letter < LETTER_JSON);
    enum model_setting which = (enum model_setting)(letter - LETTER_BASE);
    asked->given[which] = true;
    asked->text[which] = value;
    if (value_parse(&rows[which], value, &asked->value[which]))
        return EXIT_OK;
    say("--%s %s: expected %s", rows[which].name, value, rows[which].wanted);
    return EXIT_USAGE;
}

bool model_options_fit(const struct model_asked *asked, const char *action_name)
{
    for (int i = 0; i < MODEL_SETTINGS; i++)
        if (asked->given[i] && !(rows[i].actions & asked->action)) {
            say("%s takes no --%s", action_name, rows[i].name);
            return false;
        }
    return true;
}

void model_options_help(struct buf *out, uint32_t actions)
{
    char name[40];
    for (int i = 0; i < MODEL_SETTINGS; i++) {
        if (!(rows[i].actions & actions))
            continue;
        snprintf(name, sizeof name, "--%s%s%s", rows[i].name, rows[i].value ? " " : "",
                 rows[i].value ? rows[i].value : "");
        buf_printf(out, "  %-24s %s\n", name, rows[i].help);
    }
    buf_printf(out, "  %-24s %s\n  %-24s %s\n", "-o, --output json", "one JSON object; durations are seconds",
               "-h, --help", "this text");
}
