/* phalanx qualify: tests this machine, or this one and another, against golden thresholds. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/client.h"
#include "cmd/usage.h"
#include "cmd/cmd.h"
#include "cmd/settings_file.h"
#include "host/qualify/qualify.h"

static const char usage[] =
    "Usage: phalanx qualify [OPTIONS] [TEST...]\n"
    "       phalanx qualify pair --listen ADDRESS:PORT | --connect ADDRESS:PORT [OPTIONS]\n"
    "\n"
    "Measures what a training job needs of this machine, and compares it with thresholds. TEST is cpu,\n"
    "memory, disk, loopback or gpu; without any, all of them.\n"
    "  --seconds N       about how long each test takes (5)\n"
    "  --golden FILE     thresholds: figures and numbers under \"golden\" (docs/qualify.md)\n"
    "  --learn N         run N times and write thresholds to the golden FILE (standard output if none)\n"
    "  --dir DIR         where the disk's test writes its file (.)\n"
    "  --memory SIZE     memory to test, such as 4Gi (an eighth of what is free, at most 1Gi)\n"
    "  --disk SIZE       the most that is written to the disk (256Mi)\n"
    "  --threads N       CPUs to use (all)\n"
    "  --cuda LIB, --cublas LIB   libraries of the GPU's test, when not by their usual names\n"
    "  -o json           one JSON object\n"
    "  --help            this text\n"
    "\n"
    "Of a pair, one listens and the other connects, in any order:\n"
    "  --epoch N         refuse a peer with another number (0)\n"
    "  --deadline N      seconds within which both must finish (30)\n"
    "  --bytes SIZE      sent in each direction (64Mi)\n"
    "\n"
    "  --order JSON      all of this as the body of an errand; the output is JSON\n"
    "\n"
    "Exit status: 0 all passed, 1 a test failed, 2 wrong usage.\n";

enum qualify_option {
    OPTION_SECONDS = 256,
    OPTION_GOLDEN,
    OPTION_LEARN,
    OPTION_DIR,
    OPTION_MEMORY,
    OPTION_DISK,
    OPTION_THREADS,
    OPTION_CUDA,
    OPTION_CUBLAS,
    OPTION_LISTEN,
    OPTION_CONNECT,
    OPTION_EPOCH,
    OPTION_DEADLINE,
    OPTION_BYTES,
    OPTION_ORDER,
};

static const struct option long_options[] = {
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"golden", required_argument, NULL, OPTION_GOLDEN},
    {"learn", required_argument, NULL, OPTION_LEARN},
    {"dir", required_argument, NULL, OPTION_DIR},
    {"memory", required_argument, NULL, OPTION_MEMORY},
    {"disk", required_argument, NULL, OPTION_DISK},
    {"threads", required_argument, NULL, OPTION_THREADS},
    {"cuda", required_argument, NULL, OPTION_CUDA},
    {"cublas", required_argument, NULL, OPTION_CUBLAS},
    {"listen", required_argument, NULL, OPTION_LISTEN},
    {"connect", required_argument, NULL, OPTION_CONNECT},
    {"epoch", required_argument, NULL, OPTION_EPOCH},
    {"deadline", required_argument, NULL, OPTION_DEADLINE},
    {"bytes", required_argument, NULL, OPTION_BYTES},
    {"order", required_argument, NULL, OPTION_ORDER},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

enum { LEARN_MAX = 1000, GOLDEN_BYTES_MAX = 64 * 1024 };

struct arguments {
    struct qualify_options options;
    struct arena arena;
    const char *golden, *order;
    int64_t learn; /* 0: no */
    bool pair, json, help, ends;
};

/* --- the command line ----------------------------------------------------------------------------------- */

static bool take_size(const char *text, uint64_t *ret_bytes)
{
    int64_t milli;
    if (!quantity_parse_milli(str_from(text), &milli) || milli < 1000)
        return false;
    *ret_bytes = (uint64_t)milli / 1000;
    return true;
}

static bool take_end(struct arguments *arguments, bool listens, const char *text)
{
    struct qualify_pair *pair = &arguments->options.pair;
    struct str host, port;
    int64_t number;
    if (arguments->ends || !str_cut(str_from(text), ':', &host, &port) ||
        !str_to_i64(port, 1, UINT16_MAX, &number))
        return false;
    arguments->ends = true;
    pair->listens = listens;
    pair->host = arena_strdup(&arguments->arena, host);
    pair->port = (uint16_t)number;
    return true;
}

static bool take_pair_option(struct arguments *arguments, int option, const char *value)
{
    struct qualify_pair *pair = &arguments->options.pair;
    int64_t number = 0;
    switch (option) {
    case OPTION_LISTEN:
    case OPTION_CONNECT:
        return take_end(arguments, option == OPTION_LISTEN, value);
    case OPTION_EPOCH:
        if (!str_to_i64(str_from(value), 0, INT64_MAX, &number))
            return false;
        pair->epoch = (uint64_t)number;
        return true;
    case OPTION_DEADLINE:
        if (!str_to_i64(str_from(value), 1, QUALIFY_SECONDS_MAX, &number))
            return false;
        pair->deadline_ns = number * NS_PER_SECOND;
        return true;
    default:
        return take_size(value, &pair->bytes);
    }
}

/* Takes an option. Returns false if its value is not valid. */
static bool take_option(struct arguments *arguments, int option, const char *value)
{
    struct qualify_options *options = &arguments->options;
    int64_t number;
    switch (option) {
    case OPTION_SECONDS:
        if (!str_to_i64(str_from(value), QUALIFY_SECONDS_MIN, QUALIFY_SECONDS_MAX, &number))
            return false;
        options->budget_ns = number * NS_PER_SECOND;
        return true;
    case OPTION_GOLDEN:
        arguments->golden = value;
        return value[0] != 0;
    case OPTION_LEARN:
        return str_to_i64(str_from(value), 1, LEARN_MAX, &arguments->learn);
    case OPTION_DIR:
        options->directory = value;
        return value[0] != 0;
    case OPTION_MEMORY:
        return take_size(value, &options->memory_bytes);
    case OPTION_DISK:
        return take_size(value, &options->disk_bytes);
    case OPTION_THREADS:
        if (!str_to_i64(str_from(value), 1, 65536, &number))
            return false;
        options->threads = (uint32_t)number;
        return true;
    case OPTION_CUDA:
        options->cuda = value;
        return value[0] != 0;
    case OPTION_CUBLAS:
        options->cublas = value;
        return value[0] != 0;
    case OPTION_ORDER:
        arguments->order = value;
        return true;
    case 'o':
        arguments->json = strcmp(value, "json") == 0;
        return arguments->json;
    case 'h':
        arguments->help = true;
        return true;
    default:
        return take_pair_option(arguments, option, value);
    }
}

static int take_tests(struct arguments *arguments, char **words, int count)
{
    bool *tests = arguments->options.tests;
    for (int i = 0; i < count; i++) {
        enum qualify_test test;
        if (!qualify_test_find(str_from(words[i]), &test) || (test == QUALIFY_PAIR && count > 1)) {
            say("unknown test \"%s\"", words[i]);
            return EXIT_USAGE;
        }
        tests[test] = true;
    }
    for (int i = 0; i < QUALIFY_PAIR && count == 0; i++)
        tests[i] = true;
    arguments->pair = tests[QUALIFY_PAIR];
    if (!arguments->order && arguments->pair != arguments->ends) {
        say("pair takes one of --listen and --connect, ADDRESS:PORT");
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

static int parse(struct arguments *arguments, int argc, char **argv)
{
    optind = 0; /* the dispatcher may have parsed before */
    for (;;) {
        int option = usage_option(argc, argv, "o:h", long_options, NULL);
        if (option == -1)
            break;
        if (option == '?')
            return EXIT_USAGE;
        if (!take_option(arguments, option, optarg)) {
            usage_value(false);
            return EXIT_USAGE;
        }
    }
    return arguments->help ? EXIT_OK : take_tests(arguments, argv + optind, argc - optind);
}

/* --- files ---------------------------------------------------------------------------------------------- */

static int read_golden(struct arguments *arguments, struct error *error)
{
    struct doc *file = NULL;
    int rc = settings_file_read(arguments->golden, GOLDEN_BYTES_MAX, &arguments->arena, &file, error);
    if (rc < 0)
        return rc;
    const struct doc *golden = doc_get(file, "golden");
    rc = qualify_golden_read(golden ? golden : file, &arguments->options.golden, error);
    return rc < 0 ? error_wrap(error, "%s", arguments->golden) : 0;
}

static int write_text(const char *path, struct str text)
{
    FILE *file = path ? fopen(path, "we") : stdout;
    bool good = file && fwrite(text.data, 1, text.len, file) == text.len;
    good = file && (path ? fclose(file) : fflush(file)) == 0 && good;
    if (!good)
        say("%s: %s", path ? path : "standard output", strerror(errno));
    return good ? EXIT_OK : EXIT_FAILED;
}

/* --- running -------------------------------------------------------------------------------------------- */

static int learn(const struct arguments *arguments)
{
    struct qualify_report *reports = mem_alloc((size_t)arguments->learn * sizeof *reports);
    struct buf text BUF_CLEANUP = {0};
    int code = EXIT_OK;
    for (int64_t i = 0; i < arguments->learn && code == EXIT_OK; i++) {
        qualify_run(&arguments->options, &reports[i]);
        if (reports[i].ok)
            continue;
        struct buf report BUF_CLEANUP = {0};
        qualify_report_text(&reports[i], &arguments->options.golden, &report);
        fprintf(stderr, "%sphalanx qualify: a test failed, so no thresholds were learnt\n", report.data);
        code = EXIT_FAILED;
    }
    if (code == EXIT_OK) {
        qualify_learn(reports, (size_t)arguments->learn, &text);
        code = write_text(arguments->golden, buf_str(&text));
    }
    mem_free(reports);
    return code;
}

static int run(struct arguments *arguments)
{
    struct error error;
    struct qualify_report report;
    struct buf text BUF_CLEANUP = {0};
    int rc = 0;
    if (arguments->order)
        rc = qualify_order_read(str_from(arguments->order), arguments->pair, &arguments->arena,
                                &arguments->options, &error);
    else if (arguments->golden && arguments->learn == 0)
        rc = read_golden(arguments, &error);
    if (rc < 0) {
        say("%s", error.text);
        return EXIT_USAGE;
    }
    if (arguments->learn > 0)
        return learn(arguments);
    qualify_run(&arguments->options, &report);
    if (arguments->json || arguments->order)
        qualify_report_json(&report, &arguments->options.golden, &text);
    else
        qualify_report_text(&report, &arguments->options.golden, &text);
    int code = write_text(NULL, buf_str(&text));
    return code == EXIT_OK && !report.ok ? EXIT_FAILED : code;
}

int cmd_qualify(int argc, char **argv)
{
    struct arguments arguments = {.options = {.budget_ns = QUALIFY_SECONDS_DEFAULT * NS_PER_SECOND,
                                              .directory = ".",
                                              .pair = {.deadline_ns = 30 * NS_PER_SECOND}}};
    int code = parse(&arguments, argc, argv);
    if (arguments.help)
        fputs(usage, stdout);
    else if (code == EXIT_OK)
        code = run(&arguments);
    else
        usage_wrong(usage, NULL);
    arena_done(&arguments.arena);
    return code;
}
