/* phalanx model: computes the rate and cost of failures, and the effect of remedies, by formulas. */
#include <stdio.h>
#include <string.h>

#include "cmd/model_asked.h"
#include "cmd/usage.h"

static const char usage[] =
    "Usage: phalanx model ettr|interval|mttf|spares|availability [OPTIONS]\n"
    "\n"
    "Models of reliability: how much of its time a large job trains, how often it should save, how often\n"
    "machines fail and how sure that is, how many spares it takes, and how much of a pod works.\n"
    "docs/models.md explains them; `phalanx model ACTION --help` has the options of one.\n"
    "\n";

struct action_row {
    const char *name;
    enum model_action action;
    int (*run)(struct model_asked *);
    const char *synopsis; /* after the name */
    const char *brief;
    const char *about;
    const char *examples;
};

static const struct action_row actions[] = {
    {"ettr", MODEL_ETTR, model_run_ettr, "(--machines N|--gpus N) --rate R | --mttf DURATION [OPTIONS]",
     "estimates the share of its time that a job trains",
     "By the exact formula and by each published one. With --target, says how far each term alone may go,\n"
     "the others kept: interval, write, restart, queue, rate and size.\n",
     "  phalanx model ettr --gpus 16000 --rate 6.5 --interval 1h --write 0s\n"
     "  phalanx model ettr --gpus 100000 --rate 2.34 --write 0s --interval 2m --restart 2m --queue 1m \\\n"
     "    --trials 200000\n"
     "  phalanx model ettr --gpus 16384 --rate 3.79 --target 0.95\n"},
    {"interval", MODEL_INTERVAL, model_run_interval,
     "(--machines N|--gpus N) --rate R | --mttf DURATION [OPTIONS]",
     "finds how often to save, and with --target which intervals and restarts reach it",
     "The best interval beside Young's and Daly's. With --target: the pairs of restart and longest\n"
     "interval that reach it, and the one where both are the same.\n",
     "  phalanx model interval --gpus 100000 --rate 2.34 --write 0s --queue 1m --target 0.9\n"
     "  phalanx model interval --mttf 110m --write 10s\n"},
    {"mttf", MODEL_MTTF, model_run_mttf,
     "--rate R | --failures N --exposure DURATION | --jobs FILE [OPTIONS]",
     "prints the mean time to failure by size, with bounds where failures were counted",
     "--jobs reads a log of jobs and counts r_f as published: jobs that ended in NODE_FAIL, and FAILED\n"
     "ones with a critical check (--checks) around their end. Times are RFC 3339 or seconds.\n",
     "  phalanx model mttf --rate 6.5\n"
     "  phalanx model mttf --failures 10 --exposure 1000d --confidence 0.95\n"
     "  phalanx model mttf --jobs jobs.csv --checks checks.csv\n"},
    {"spares", MODEL_SPARES, model_run_spares, "(--machines N|--gpus N) --rate R --repair DURATION [OPTIONS]",
     "says how many spare machines keep a job from waiting",
     "For --target, the share of time in which the job has its machines (0.99). With --spares, the longest\n"
     "repair with which so many do.\n",
     "  phalanx model spares --machines 1024 --rate 6.5 --repair 2d\n"
     "  phalanx model spares --gpus 16384 --rate 3.79 --repair 12h --target 0.999 --cold\n"},
    {"availability", MODEL_AVAILABILITY, model_run_availability,
     "--host P | --rate R --repair DURATION [OPTIONS]",
     "prints how often a slice of a pod has its machines, with switches and without",
     "Of hosts that fail --rate times and are repaired in --repair. With --target, the host and the repair\n"
     "that each size needs. `phalanx fabric availability` draws every host by chance, too.\n",
     "  phalanx model availability --rate 6.5 --repair 1d\n"
     "  phalanx model availability --host 0.99 --slice 50\n"
     "  phalanx model availability --rate 6.5 --repair 1d --target 0.95\n"},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static const struct action_row *action_named(const char *word)
{
    for (size_t i = 0; i < ACTIONS; i++)
        if (strcmp(word, actions[i].name) == 0)
            return &actions[i];
    return NULL;
}

/* Prints the help of the action that the command line names, or of all actions. */
static int model_help(int argc, char **argv)
{
    struct buf BUF_CLEANUP out = {0};
    const struct action_row *row = NULL;
    for (int i = 1; i < argc && !row; i++)
        row = action_named(argv[i]);
    if (row) {
        buf_printf(&out, "Usage: phalanx model %s %s\n\n%c%s.\n%s\n", row->name, row->synopsis,
                   row->brief[0] - 'a' + 'A', row->brief + 1, row->about);
        model_options_help(&out, row->action);
    } else {
        buf_printf(&out, "%s", usage);
        for (size_t i = 0; i < ACTIONS; i++)
            buf_printf(&out, "  %-14s %s\n", actions[i].name, actions[i].brief);
        buf_printf(&out, "\nOptions of all actions:\n");
        model_options_help(&out, MODEL_ACTIONS_ALL);
    }
    buf_printf(&out, "\nExamples:\n%s\nExit status: 0 done, 1 a file cannot be read, 2 wrong usage.\n",
               row ? row->examples
                   : "  phalanx model ettr --gpus 16000 --rate 6.5 --interval 1h --write 0s\n"
                     "  phalanx model interval --gpus 100000 --rate 2.34 --write 0s --queue 1m --target 0.9\n"
                     "  phalanx model spares --machines 1024 --rate 6.5 --repair 2d\n");
    output_write(&out);
    return EXIT_OK;
}

int cmd_model(int argc, char **argv)
{
    struct model_asked asked;
    model_asked_default(&asked);
    asked.usage = usage;
    const struct option *options = model_options(MODEL_ACTIONS_ALL);
    for (int letter; (letter = usage_option(argc, argv, "ho:", options, NULL)) != -1;) {
        if (letter == 'h')
            return model_help(argc, argv);
        if (letter == '?')
            return usage_wrong(usage, NULL);
        if (model_take_option(&asked, letter, optarg) != EXIT_OK)
            return EXIT_USAGE;
    }
    if (optind == argc)
        return usage_wrong(usage, "expected an action, such as ettr");
    const struct action_row *row = action_named(argv[optind]);
    if (!row) {
        const char *names[ACTIONS];
        for (size_t i = 0; i < ACTIONS; i++)
            names[i] = actions[i].name;
        usage_unknown("action", str_from(argv[optind]), names, ACTIONS);
        return usage_wrong(usage, NULL);
    }
    if (optind + 1 < argc)
        return usage_wrong(usage, "unexpected argument \"%s\"", argv[optind + 1]);
    asked.action = row->action;
    if (!model_options_fit(&asked, row->name))
        return usage_wrong(usage, NULL);
    return row->run(&asked);
}
