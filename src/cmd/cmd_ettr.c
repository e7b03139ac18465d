/* phalanx ettr: the short form of phalanx model ettr, interval and mttf, for one job. */
#include <stdio.h>

#include "cmd/model_asked.h"
#include "cmd/usage.h"

static const char usage[] =
    "Usage: phalanx ettr (--machines N --rate R | --mttf DURATION) [OPTIONS]\n"
    "\n"
    "Estimates the share of its time that a job spends on training, given how often it fails, and the\n"
    "best interval between checkpoints (docs/ettr.md has the formulas and their sources). The short form\n"
    "of `phalanx model`, which has more forms, sizes and questions.\n"
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

int cmd_ettr(int argc, char **argv)
{
    struct model_asked asked;
    model_asked_default(&asked);
    asked.usage = usage;
    asked.action = MODEL_SHORT;
    for (int letter; (letter = usage_option(argc, argv, "ho:", model_options(MODEL_SHORT), NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        if (letter == '?')
            return usage_wrong(usage, NULL);
        if (model_take_option(&asked, letter, optarg) != EXIT_OK)
            return EXIT_USAGE;
    }
    return optind < argc ? model_complain(&asked, "expected no argument") : model_run_short(&asked);
}
