/* phalanx ettr: estimates what failures cost a job of a given size, and how often it should save. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/model/ettr_forms.h"
#include "sim/model/rate.h"
#include "doc/json.h"
#include "base/units.h"
#include "cmd/client.h"
#include "cmd/usage.h"
#include "cmd/cmd.h"

static const char usage[] =
    "Usage: phalanx ettr (--machines N --rate R | --mttf DURATION) [OPTIONS]\n"
    "\n"
    "Estimates the share of its time that a job spends on training, given how often it fails, and the\n"
    "best interval between checkpoints (docs/ettr.md has the formulas and their sources).\n"
    "  --machines N         machines of the job; the loss of one stops it\n"
    "  --rate R             failures per machine in 1,000 days (6.5 and 2.34 are published figures)\n"
    "  --mttf DURATION      time between two failures of the job, instead of the two above\n"
    "  --interval DURATION  time between checkpoints; auto: the best one (auto)\n"
    "  --write DURATION     how long a checkpoint stops the job (10s)\n"
    "  --restart DURATION   time from a failure to the next step (5m)\n"
    "  --queue DURATION     time spent waiting for machines after each failure (0s)\n"
    "  --target E           also print the longest interval that still gives this ETTR, such as 0.9\n"
    "  -o json              one JSON object; durations are seconds (also --json)\n"
    "  --help               this text\n"
    "Confidence bounds of a measured rate, instead of the above:\n"
    "  --failures N         failures counted ...\n"
    "  --exposure DURATION  ... in this time, of one machine or summed over several\n"
    "  --confidence C       confidence of the bounds (0.9)\n"
    "\n"
    "Exit status: 0 done, 2 wrong usage.\n";

enum setting {
    MACHINES,
    RATE,
    MTTF,
    INTERVAL,
    WRITE,
    RESTART,
    QUEUE,
    TARGET,
    FAILURES,
    EXPOSURE,
    CONFIDENCE,
    SETTINGS
};
enum value_kind { COUNT, POSITIVE, SHARE, SPAN, SPAN_OR_AUTO, SPAN_POSITIVE };
static const struct {
    const char *name, *wanted;
    enum value_kind kind;
} kinds[SETTINGS] = {
    [MACHINES] = {"machines", "a number above 0", POSITIVE},
    [RATE] = {"rate", "a number above 0", POSITIVE},
    [MTTF] = {"mttf", "a duration above 0, such as 3h", SPAN_POSITIVE},
    [INTERVAL] = {"interval", "auto, or a duration above 0, such as 30m", SPAN_OR_AUTO},
    [WRITE] = {"write", "a duration such as 10s", SPAN},
    [RESTART] = {"restart", "a duration such as 5m", SPAN},
    [QUEUE] = {"queue", "a duration such as 1m", SPAN},
    [TARGET] = {"target", "a number between 0 and 1", SHARE},
    [FAILURES] = {"failures", "a number from 0", COUNT},
    [EXPOSURE] = {"exposure", "a duration above 0, such as 28d", SPAN_POSITIVE},
    [CONFIDENCE] = {"confidence", "a number between 0 and 1", SHARE},
};

struct asked {
    bool given[SETTINGS], json;
    double value[SETTINGS]; /* durations in seconds */
};

static bool number_parse(const char *text, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    return end != text && !*end && isfinite(*ret);
}

static bool span_parse(const char *text, double *ret)
{
    int64_t span_ns;
    if (!duration_parse(str_from(text), &span_ns))
        return false;
    *ret = (double)span_ns / (double)NS_PER_SECOND;
    return true;
}

static bool value_parse(enum value_kind kind, const char *text, double *ret)
{
    switch (kind) {
    case COUNT: {
        int64_t count;
        bool fine = str_to_i64(str_from(text), 0, 1000000000, &count);
        *ret = (double)count;
        return fine;
    }
    case POSITIVE:
        return number_parse(text, ret) && *ret > 0;
    case SHARE:
        return number_parse(text, ret) && *ret > 0 && *ret < 1;
    case SPAN:
        return span_parse(text, ret);
    case SPAN_OR_AUTO:
        *ret = 0;
        return strcmp(text, "auto") == 0 || (span_parse(text, ret) && *ret > 0);
    case SPAN_POSITIVE:
        return span_parse(text, ret) && *ret > 0;
    }
    return false;
}

static int complain(const char *what)
{
    return usage_wrong(usage, "%s", what);
}

static int parse(struct asked *asked, int argc, char **argv)
{
    struct option options[SETTINGS + 4] = {0};
    for (int i = 0; i < SETTINGS; i++)
        options[i] = (struct option){kinds[i].name, required_argument, NULL, 256 + i};
    options[SETTINGS] = (struct option){"json", no_argument, NULL, 'j'};
    options[SETTINGS + 1] = (struct option){"help", no_argument, NULL, 'h'};
    options[SETTINGS + 2] = (struct option){"output", required_argument, NULL, 'o'};
    for (int letter; (letter = usage_option(argc, argv, "ho:", options, NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return -1;
        } else if (letter == 'j') {
            asked->json = true;
        } else if (letter == 'o') {
            if (!usage_json(optarg, &asked->json))
                return EXIT_USAGE;
        } else if (letter < 256) {
            return usage_wrong(usage, NULL);
        } else {
            int which = letter - 256;
            asked->given[which] = true;
            if (!value_parse(kinds[which].kind, optarg, &asked->value[which])) {
                say("--%s %s: expected %s", kinds[which].name, optarg, kinds[which].wanted);
                return EXIT_USAGE;
            }
        }
    }
    return optind < argc ? complain("expected no argument") : EXIT_OK;
}

/* --- what is printed ------------------------------------------------------------------------------ */

struct answer {
    bool json;
    struct buf out;
    struct json_writer writer;
};

static void answer_number(struct answer *answer, const char *key, const char *words, double value, int digits)
{
    if (answer->json) {
        json_key(&answer->writer, key);
        json_put_float(&answer->writer, value);
    } else {
        buf_printf(&answer->out, "%-44s %.*f\n", words, digits, value);
    }
}

static void answer_span(struct answer *answer, const char *key, const char *words, double seconds)
{
    char text[24];
    if (answer->json) {
        answer_number(answer, key, words, seconds, 0);
        return;
    }
    /* Days at most: a span that int64_t nanoseconds cannot hold is as good as for ever. */
    if (seconds > 9e9)
        buf_printf(&answer->out, "%-44s %.3g days\n", words, seconds / 86400);
    else if (seconds >= 86400)
        buf_printf(&answer->out, "%-44s %.2f days\n", words, seconds / 86400);
    else if (seconds >= 3600)
        buf_printf(&answer->out, "%-44s %.2f h\n", words, seconds / 3600);
    else {
        duration_format((int64_t)(seconds * (double)NS_PER_SECOND), text);
        buf_printf(&answer->out, "%-44s %s\n", words, text);
    }
}

static void answer_bounds(struct answer *answer, const struct asked *asked)
{
    double low, high, exposure = asked->value[EXPOSURE], failures = asked->value[FAILURES];
    mttf_bounds((uint64_t)failures, exposure, asked->value[CONFIDENCE], &low, &high);
    if (failures > 0)
        answer_span(answer, "mttf", "mean time to failure", exposure / failures);
    answer_span(answer, "mttfLow", "  at least", low);
    if (isfinite(high))
        answer_span(answer, "mttfHigh", "  at most", high);
    answer_number(answer, "confidence", "  confidence", asked->value[CONFIDENCE], 3);
    double days = exposure / 86400;
    answer_number(answer, "rate", "failures in 1,000 days", failures / days * 1000, 3);
    answer_number(answer, "rateLow", "  at least", isfinite(high) ? 86400000 / high : 0, 3);
    answer_number(answer, "rateHigh", "  at most", 86400000 / low, 3);
}

static void answer_ettr(struct answer *answer, const struct asked *asked)
{
    struct ettr_terms terms = {
        .failures_per_s = asked->given[MTTF]
                              ? 1 / asked->value[MTTF]
                              : ettr_failures_per_s(asked->value[MACHINES], asked->value[RATE]),
        .write_s = asked->value[WRITE],
        .restart_s = asked->value[RESTART],
        .queue_s = asked->value[QUEUE],
        .interval_s = asked->value[INTERVAL],
    };
    answer_span(answer, "mttf", "mean time to failure of the job", 1 / terms.failures_per_s);
    if (terms.write_s > 0) { /* else: always */
        double best_s = ettr_best_interval(&terms);
        answer_span(answer, "bestInterval", "best interval between checkpoints", best_s);
        answer_span(answer, "youngInterval", "  by Young", ettr_young_interval(&terms));
        answer_span(answer, "dalyInterval", "  by Daly", ettr_daly_interval(&terms));
        if (terms.interval_s == 0)
            terms.interval_s = best_s;
    }
    answer_span(answer, "interval", "interval", terms.interval_s);
    answer_number(answer, "ettr", "  ETTR", ettr_exact(&terms), 4);
    answer_number(answer, "ettrLinear", "  ETTR by the paper's linear formula", ettr_linear(&terms), 4);
    if (asked->given[TARGET]) {
        double longest_s = ettr_interval_for(&terms, asked->value[TARGET], false);
        answer_number(answer, "target", "wanted ETTR", asked->value[TARGET], 4);
        if (longest_s > 0)
            answer_span(answer, "targetInterval", "  longest interval that reaches it", longest_s);
        else if (!answer->json)
            buf_printf(&answer->out, "  no interval reaches it\n");
    }
}

int cmd_ettr(int argc, char **argv)
{
    struct asked asked = {.value = {[WRITE] = 10, [RESTART] = 300, [CONFIDENCE] = 0.9}};
    int status = parse(&asked, argc, argv);
    if (status != EXIT_OK)
        return status < 0 ? EXIT_OK : status;
    bool bounds = asked.given[FAILURES] || asked.given[EXPOSURE];
    if (bounds && !(asked.given[FAILURES] && asked.given[EXPOSURE]))
        return complain("--failures and --exposure go together");
    if (!bounds && !asked.given[MTTF] && !(asked.given[MACHINES] && asked.given[RATE]))
        return complain("expected --machines and --rate, or --mttf");
    if (!bounds && asked.given[MTTF] && (asked.given[MACHINES] || asked.given[RATE]))
        return complain("--mttf replaces --machines and --rate; give one or the other");
    if (!bounds && asked.value[WRITE] == 0 && asked.value[INTERVAL] == 0)
        return complain("checkpoints that cost nothing have no best interval: give --interval");
    struct answer answer = {.json = asked.json};
    answer.writer.out = &answer.out;
    if (asked.json)
        json_begin_object(&answer.writer);
    if (bounds)
        answer_bounds(&answer, &asked);
    else
        answer_ettr(&answer, &asked);
    if (asked.json)
        json_end_object(&answer.writer);
    buf_printf(&answer.out, "%s", asked.json ? "\n" : "");
    fwrite(answer.out.data, 1, answer.out.len, stdout);
    buf_done(&answer.out);
    return EXIT_OK;
}
