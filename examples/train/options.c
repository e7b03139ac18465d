#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phalanx/phalanx.h"

static const char help[] =
    "Usage: train [OPTION]...\n"
    "Trains a small character-level transformer on all ranks of a job (data parallel), on libphalanx.\n"
    "Without Phalanx it runs alone, or as RANK of WORLD_SIZE with MASTER_ADDR and MASTER_PORT.\n"
    "\n"
    "  --text FILE           learn from FILE (default /usr/share/common-licenses/GPL-3)\n"
    "  --steps N             stop after N steps (400)\n"
    "  --batch N             sequences per step, over all ranks together (160)\n"
    "  --rate X              learning rate (0.01)\n"
    "  --seed N              start weights and data order (1)\n"
    "  --checkpoint-every N  save every N steps; 0 never; auto: as often as pays (20)\n"
    "  --hold-every N        keep the state in the machine's memory every N steps; likewise (0)\n"
    "  --state-mb N          carry N MB more in the state, for measurements (0)\n"
    "  --no-rejoin           end when another rank is lost, instead of going on in this process\n"
    "  --spoil-at N          after N steps the last rank loses its weights, once, and asks to go back\n"
    "  --step-ms N           begin a step at the earliest N ms after the one before, so that small steps\n"
    "                        leave the processor to others (0)\n"
    "  --fabric              sum over the chips of the job's slice, instead of TCP (docs/fabric.md)\n"
    "  --log-every N         print a line every N steps; 0 never (20)\n"
    "  --hash-file FILE      rank 0 writes the last line there too\n"
    "  --check-gradients     compare backpropagation with finite differences, and end\n"
    "  --help                print this\n"
    "\n"
    "The result depends on text, steps, batch, rate and seed alone: not on the number of ranks, nor on\n"
    "interruptions. The last line is `final step N loss L weights-hash HEX`.\n"
    "\n"
    "Exit status: 0 done; 1 failure; 2 wrong arguments; 75 another rank is lost or this attempt is over,\n"
    "so that the job has to be started again.\n";

static int parse_number(const char *name, const char *text, uint64_t least, uint64_t *ret_value)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || value < least || value > 1000000000) {
        fprintf(stderr, "train: --%s %s: not a number from %llu to 1000000000\n", name, text,
                (unsigned long long)least);
        return -1;
    }
    *ret_value = value;
    return 0;
}

static int parse_interval(const char *name, const char *text, uint64_t *ret_value)
{
    if (strcmp(text, "auto") == 0) {
        *ret_value = PHX_AUTO;
        return 0;
    }
    int status = parse_number(name, text, 0, ret_value);
    if (status != 0)
        fprintf(stderr, "train: --%s takes auto, too\n", name);
    return status;
}

static int parse_rate(const char *text, double *ret_value)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value > 0 && value <= 1)) {
        fprintf(stderr, "train: --rate %s: not a number above 0 and up to 1\n", text);
        return -1;
    }
    *ret_value = value;
    return 0;
}

static void take_flag(struct options *options, int letter)
{
    options->no_rejoin |= letter == 'n';
    options->fabric |= letter == 'f';
    options->check_gradients |= letter == 'g';
}

static const struct option table[] = {
    {"text", required_argument, NULL, 't'},
    {"steps", required_argument, NULL, 's'},
    {"batch", required_argument, NULL, 'b'},
    {"rate", required_argument, NULL, 'r'},
    {"seed", required_argument, NULL, 'S'},
    {"checkpoint-every", required_argument, NULL, 'c'},
    {"hold-every", required_argument, NULL, 'm'},
    {"state-mb", required_argument, NULL, 'M'},
    {"no-rejoin", no_argument, NULL, 'n'},
    {"spoil-at", required_argument, NULL, 'x'},
    {"step-ms", required_argument, NULL, 'p'},
    {"fabric", no_argument, NULL, 'f'},
    {"log-every", required_argument, NULL, 'l'},
    {"hash-file", required_argument, NULL, 'h'},
    {"check-gradients", no_argument, NULL, 'g'},
    {"help", no_argument, NULL, 'H'},
    {NULL, 0, NULL, 0},
};

int options_parse(struct options *ret_options, int argc, char **argv)
{
    struct options options = {.text = "/usr/share/common-licenses/GPL-3",
                              .steps = 400,
                              .batch = 160,
                              .checkpoint_every = 20,
                              .log_every = 20,
                              .seed = 1,
                              .rate = 0.01};
    int letter, index = 0, status = 0;
    while (status == 0 && (letter = getopt_long(argc, argv, "", table, &index)) >= 0) {
        const char *name = letter == '?' ? "" : table[index].name;
        switch (letter) {
        case 't':
            options.text = optarg;
            break;
        case 's':
            status = parse_number(name, optarg, 0, &options.steps);
            break;
        case 'b':
            status = parse_number(name, optarg, 1, &options.batch);
            break;
        case 'r':
            status = parse_rate(optarg, &options.rate);
            break;
        case 'S':
            status = parse_number(name, optarg, 0, &options.seed);
            break;
        case 'c':
            status = parse_interval(name, optarg, &options.checkpoint_every);
            break;
        case 'm':
            status = parse_interval(name, optarg, &options.hold_every);
            break;
        case 'M':
            status = parse_number(name, optarg, 0, &options.state_mb);
            break;
        case 'x':
            status = parse_number(name, optarg, 1, &options.spoil_at);
            break;
        case 'p':
            status = parse_number(name, optarg, 0, &options.step_ms);
            break;
        case 'l':
            status = parse_number(name, optarg, 0, &options.log_every);
            break;
        case 'h':
            options.hash_file = optarg;
            break;
        case 'n':
        case 'f':
        case 'g':
            take_flag(&options, letter);
            break;
        case 'H':
            fputs(help, stdout);
            return 1;
        default: /* getopt_long has said what is wrong */
            status = -1;
        }
    }
    if (status == 0 && optind < argc) {
        fprintf(stderr, "train: unexpected argument %s\n", argv[optind]);
        status = -1;
    }
    if (status == 0)
        *ret_options = options;
    return status;
}
