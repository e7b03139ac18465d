/* phalanx inject: injects failures into a cluster, on this computer (`phalanx up`) or by its API. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cmd/usage.h"
#include "cmd/inject.h"

static const char usage[] =
    "Usage: phalanx inject ACTION OBJECT... [--data DIR] [options]\n"
    "       phalanx inject list [--data DIR] [-o json]\n"
    "       phalanx inject heal NUMBER...|NAME...|all [--data DIR]\n"
    "       phalanx inject run FILE [--data DIR] [--dry-run] [--seed N] [-o json]\n"
    "\n"
    "Breaks parts of a cluster on purpose (docs/inject.md): with --data DIR the cluster that `phalanx\n"
    "up` runs in that folder, otherwise the cluster behind the API, on machines whose agents run with\n"
    "--allow-injection. All objects are hit at the same moment.\n"
    "\n"
    "Objects: controller, machine/NAME (or NAME), agent/NAME, rack/NAME, pod/NAME, jobset/NAME (all of\n"
    "its ranks), \"rank 2\", \"machine of rank 2\", \"agent of rank 2\", \"rack of rank 2\",\n"
    "\"checkpoint of rank 2\"; \"random rank\" instead of \"rank 2\"; \"random machine\"; cube/NAME,\n"
    "chip/MACHINE/N, link/MACHINE/N, switch/MACHINE/N, switch/RACK: for these, the fault is reported\n"
    "that a driver or a probe would report if the part had failed (kill) or were slow.\n"
    "\n"
    "Actions:\n"
    "  kill        SIGKILL; of a machine: to all its processes at once, and its memory is lost, as when\n"
    "              power fails\n"
    "  kill-agent  kill agent/NAME\n"
    "  stop        SIGSTOP: the object goes silent;  continue: SIGCONT, it comes back\n"
    "  partition   machines: packets are dropped, --direction in, out or both (default)\n"
    "  slow        --cpu 70%: stop the object for this share of the time; --loss 15%: drop this share\n"
    "              of a machine's packets\n"
    "  corrupt     flip bits of a checkpoint, --tier memory (default) or storage\n"
    "  chip, link, switch   report such a fault of a machine: --chip N, --code C, --place P\n"
    "  lie         report a fault that the machine does not have: --code C\n"
    "  fill-disk   fill the disk of a machine's state or of a checkpoint's storage, if at most 2 GiB are\n"
    "              free there\n"
    "  oom         make a rank exceed its memory limit\n"
    "\n"
    "Options:\n"
    "  --data DIR        the cluster's folder\n"
    "  --server URL      the controller; also $PHALANX_SERVER, $PHALANX_CONFIG\n"
    "  --job NAME        the JobSet whose ranks are meant; --rank N: this rank of OBJECT jobset/NAME\n"
    "  --for DURATION    undo the fault after this time, or at Ctrl-C, then exit; without --data at\n"
    "                    most 1h and required for lasting faults, which the machine itself undoes\n"
    "  --yes             go ahead even if more machines are hit than --max-share allows\n"
    "  --max-share N%    refuse to hit a larger share of all machines (default 25%)\n"
    "  --silent          do not tell the controller that this is done on purpose\n"
    "  --seed N          make the same random choices again\n"
    "  --dry-run         print what would be hit, and hit nothing\n"
    "  -o, --output json JSON on standard output\n"
    "  -h, --help        this text\n"
    "\n"
    "Prints how many processes (or files, faults, ...) were hit, and when.\n"
    "\n"
    "Exit status: 0 done, 1 failed or refused, 2 wrong usage, 3 nothing of that name runs (run: an\n"
    "expectation is not met), 4 no controller answers.\n";

typedef VEC(struct inject_selector) selector_list;

struct arguments {
    const char *data, *job;
    struct client_options client; /* without `data` */
    struct order_options order;   /* body NULL: none */
    int64_t rank;                 /* -1: none */
    double max_share;
    bool sure, silent;
    struct inject_how how;
    struct run_options run;
};

/* The last three are for agents only (inject_order.c). */
enum { OPTION_HOW = 256, OPTION_SERVER, OPTION_ORDER, OPTION_MACHINE, OPTION_MEMORY };

static const struct option options[] = {{"data", required_argument, NULL, 'd'},
                                        {"job", required_argument, NULL, 'j'},
                                        {"rank", required_argument, NULL, 'r'},
                                        {"yes", no_argument, NULL, 'y'},
                                        {"max-share", required_argument, NULL, 'm'},
                                        {"silent", no_argument, NULL, 'q'},
                                        {"seed", required_argument, NULL, 's'},
                                        {"dry-run", no_argument, NULL, 'n'},
                                        {"output", required_argument, NULL, 'o'},
                                        {"server", required_argument, NULL, OPTION_SERVER},
                                        {"order", required_argument, NULL, OPTION_ORDER},
                                        {"machine", required_argument, NULL, OPTION_MACHINE},
                                        {"memory", required_argument, NULL, OPTION_MEMORY},
                                        {"help", no_argument, NULL, 'h'},
                                        {"direction", required_argument, NULL, OPTION_HOW},
                                        {"for", required_argument, NULL, OPTION_HOW},
                                        {"cpu", required_argument, NULL, OPTION_HOW},
                                        {"loss", required_argument, NULL, OPTION_HOW},
                                        {"tier", required_argument, NULL, OPTION_HOW},
                                        {"code", required_argument, NULL, OPTION_HOW},
                                        {"place", required_argument, NULL, OPTION_HOW},
                                        {"chip", required_argument, NULL, OPTION_HOW},
                                        {0}};

/* Reads a share of machines, such as "25%". */
static bool take_share(const char *text, double *ret_share)
{
    char *end;
    double percent = strtod(text, &end);
    if (end == text || strcmp(end, "%") != 0 || !(percent >= 0 && percent <= 100))
        return false;
    *ret_share = percent / 100;
    return true;
}

static bool take_option(struct arguments *arguments, int option, const char *value)
{
    int64_t number = 0;
    switch (option) {
    case 'd':
        arguments->data = value;
        return true;
    case 'j':
        arguments->job = value;
        return value[0] != 0 && strlen(value) < 300;
    case 'r':
        return str_to_i64(str_from(value), 0, INT32_MAX, &arguments->rank);
    case 'y':
        return arguments->sure = true;
    case 'm':
        return take_share(value, &arguments->max_share);
    case 'q':
        return arguments->silent = true;
    case 's':
        arguments->run.has_seed = str_to_i64(str_from(value), 0, INT64_MAX, &number);
        arguments->run.seed = (uint64_t)number;
        return arguments->run.has_seed;
    case 'n':
        return arguments->run.dry = true;
    case OPTION_SERVER:
        arguments->client.server = value;
        return value[0] != 0;
    case OPTION_ORDER:
        arguments->order.body = value;
        return true;
    case OPTION_MACHINE:
        arguments->order.machine = value;
        return true;
    case OPTION_MEMORY:
        arguments->order.memory = value;
        return true;
    default: /* 'o' */
        arguments->run.json = strcmp(value, "json") == 0;
        return arguments->run.json;
    }
}

/* Parses the command line. Returns -1 to continue, or an exit code, EXIT_USAGE after a message. */
static int parse(struct arguments *arguments, int argc, char **argv)
{
    int option, index;
    while ((option = usage_option(argc, argv, "ho:", options, &index)) != -1) {
        struct error error;
        if (option == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        if (option == '?')
            return usage_wrong(usage, NULL);
        if (option == OPTION_HOW) {
            if (inject_how_set(&arguments->how, str_from(options[index].name), str_from(optarg), &error) <
                0) {
                say("--%s", error.text);
                return EXIT_USAGE;
            }
        } else if (!take_option(arguments, option, optarg)) {
            usage_value(false);
            return EXIT_USAGE;
        }
    }
    if (arguments->order.body && arguments->order.machine && arguments->order.memory)
        return inject_order(&arguments->order);
    if (optind >= argc) {
        return usage_wrong(usage, "an action and an object are needed");
    }
    return -1;
}

/* --- one injection -------------------------------------------------------------------------------------- */

/* Reads all selectors, before the first one is resolved. */
static int read_objects(const struct arguments *arguments, enum inject_action action, bool agents,
                        char **texts, int count, selector_list *ret)
{
    for (int i = 0; i < count; i++) {
        struct inject_selector selector;
        struct error error;
        if (inject_selector_parse(str_from(texts[i]), &selector, &error) < 0) {
            say("%s", error.text);
            return EXIT_USAGE;
        }
        if (agents && selector.kind == INJECT_MACHINE)
            selector.kind = INJECT_AGENT;
        if (arguments->rank >= 0 && selector.choice == CHOICE_ALL) {
            selector.choice = CHOICE_RANK;
            selector.rank = arguments->rank;
        }
        if (selector.by_rank && selector.kind == INJECT_RANK && action == ACTION_CORRUPT)
            selector.kind = INJECT_CHECKPOINT;
        vec_push(ret, selector);
    }
    return EXIT_OK;
}

/* Resolves all selectors, one by one, so a mistake in the last one is found before the first object is
 * hit. */
static int resolve(struct ground *ground, const selector_list *selectors, char **texts, target_list *targets)
{
    for (size_t i = 0; i < selectors->len; i++) {
        int rc = ground_resolve(ground, &selectors->items[i], targets);
        const struct inject_selector *one = &selectors->items[i];
        bool said = one->choice == CHOICE_NAME && !one->by_pod &&
                    (one->kind == INJECT_MACHINE || one->kind == INJECT_AGENT);
        if (rc == EXIT_NOT_FOUND && !said)
            ground_say_missing(ground, one, texts[i]);
        if (rc != EXIT_OK)
            return rc;
    }
    return EXIT_OK;
}

static bool is_complete(enum inject_action action, const struct inject_how *how)
{
    if (action == ACTION_SLOW && !how->cpu_percent && !how->loss_ppm)
        say("slow needs --cpu or --loss");
    else if (action == ACTION_LIE && !how->code.len)
        say("lie needs --code, the fault to report");
    else if (how->for_ns && !inject_stands(action))
        say("%s cannot be undone: no --for", inject_action_names[action]);
    else
        return true;
    return false;
}

/* Waits for the given time or a signal to end, then undoes the injection. */
static int undo_after(struct ground *ground, const struct injected *done, int64_t for_ns)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    int64_t until_ns = client_clock() + for_ns, left_ns;
    fflush(stdout);
    while ((left_ns = until_ns - client_clock()) > 0) {
        struct timespec left = {left_ns / NS_PER_SECOND, left_ns % NS_PER_SECOND};
        if (sigtimedwait(&ends, NULL, &left) > 0)
            break;
    }
    int rc = EXIT_OK;
    for (size_t i = 0; i < done->records.len; i++)
        if (inject_heal(ground, done->records.items[i]) != EXIT_OK)
            rc = EXIT_FAILED;
    return rc;
}

/* Reads action and objects. Returns EXIT_USAGE, after a message, if they do not go together. */
static int read_words(struct arguments *arguments, char **words, int count, enum inject_action *ret_action,
                      selector_list *selectors)
{
    struct str name = str_from(words[0]);
    bool agents = str_is(name, "kill-agent");
    size_t which;
    *ret_action = ACTION_KILL;
    if (!agents && !inject_action_find(name, ret_action)) {
        usage_unknown("action", name, inject_action_names, INJECT_ACTIONS);
        return usage_wrong(usage, NULL);
    }
    if (count < 2) {
        return usage_wrong(usage, "an action and an object are needed");
    }
    int rc = read_objects(arguments, *ret_action, agents, words + 1, count - 1, selectors);
    if (rc != EXIT_OK)
        return rc;
    const char *why = inject_settle(selectors->items, selectors->len, ret_action, &arguments->how, &which);
    if (why)
        say("%s %s: %s", words[0], words[1 + which], why);
    return !why && is_complete(*ret_action, &arguments->how) ? EXIT_OK : EXIT_USAGE;
}

/* Prints a result such as "3 processes at 17:03:25.454714". */
static void tell(const struct arguments *arguments, enum inject_action action, const struct injected *done)
{
    struct buf out BUF_CLEANUP = {0};
    char time[40];
    if (arguments->run.json) {
        struct json_writer writer = {.out = &out};
        time_format_micro(done->at_ns, time);
        json_begin_object(&writer);
        json_pair_text(&writer, "action", inject_action_names[action]);
        json_pair_int(&writer, "count", (int64_t)done->count);
        json_pair_text(&writer, "hit", done->noun);
        json_pair_text(&writer, "time", time);
        json_end_object(&writer);
    } else {
        put_count(&out, (int64_t)done->count, done->noun);
        buf_add_str(&out, STR(" at "));
        put_clock(&out, done->at_ns);
    }
    buf_add_char(&out, '\n');
    output_write(&out);
}

static int hit(struct ground *ground, const struct arguments *arguments, enum inject_action action,
               const target_list *targets)
{
    struct injected done = {0};
    int rc = inject_do(ground, action, &arguments->how, targets, &done);
    bool told = ground->where == GROUND_API && !done.count; /* remote_do has printed the machines' answers */
    /* some processes survive; the others have ended */
    bool some = rc == EXIT_FAILED && action == ACTION_KILL && done.at_ns;
    if ((rc == EXIT_OK || some || (rc == EXIT_NOT_FOUND && action <= ACTION_CONTINUE)) && !told)
        tell(arguments, action, &done);
    if (rc == EXIT_OK && arguments->how.for_ns && ground->where == GROUND_UP)
        rc = undo_after(ground, &done, arguments->how.for_ns);
    injected_done(&done);
    return rc;
}

static int inject_one(struct ground *ground, struct arguments *arguments, char **words, int count)
{
    enum inject_action action;
    target_list targets = {0};
    selector_list selectors = {0};
    int rc = read_words(arguments, words, count, &action, &selectors);
    if (rc == EXIT_OK)
        rc = resolve(ground, &selectors, words + 1, &targets);
    for (size_t i = 0; i < targets.len && rc == EXIT_OK && arguments->run.dry; i++) {
        char text[TARGET_NAME_MAX + 32];
        target_text(&targets.items[i], text);
        printf("%s %s\n", inject_action_names[action], text);
    }
    if (rc == EXIT_OK && !arguments->run.dry)
        rc = hit(ground, arguments, action, &targets);
    vec_done(&selectors);
    vec_done(&targets);
    return rc;
}

/* --- list, heal, run ------------------------------------------------------------------------------------ */

static int heal(struct ground *ground, char **words, int count)
{
    record_list standing = {0};
    int rc = EXIT_OK, one;
    int64_t number;
    if (count == 1 && strcmp(words[0], "all") == 0) {
        inject_standing(ground, &standing);
    } else {
        for (int i = 0; i < count && rc == EXIT_OK; i++) {
            if (str_to_i64(str_from(words[i]), 1, INT32_MAX, &number)) {
                vec_push(&standing, number);
            } else {
                say("heal: \"%s\" is not the number of an injection; `phalanx inject list` shows them",
                    words[i]);
                rc = EXIT_USAGE;
            }
        }
        if (count == 0) {
            say("heal: expected a number of `phalanx inject list`, or all");
            rc = EXIT_USAGE;
        }
    }
    for (size_t i = 0; i < standing.len && rc != EXIT_USAGE; i++)
        if ((one = inject_heal(ground, standing.items[i])) != EXIT_OK)
            rc = one;
    vec_done(&standing);
    return rc;
}

int cmd_inject(int argc, char **argv)
{
    struct arguments arguments = {.rank = -1, .max_share = 0.25, .how = inject_how_default()};
    struct ground ground;
    int rc = parse(&arguments, argc, argv);
    if (rc >= 0)
        return rc;
    char **words = argv + optind;
    int count = argc - optind;
    rc = arguments.data ? ground_open(&ground, arguments.data, arguments.job)
                        : ground_open_api(&ground, &arguments.client, arguments.job);
    if (rc != EXIT_OK)
        return rc;
    ground.max_share = arguments.max_share;
    ground.sure = arguments.sure;
    ground.silent = arguments.silent;
    if (arguments.run.has_seed)
        rng_seed(&ground.rng, arguments.run.seed);
    bool remote = ground.where == GROUND_API;
    if (strcmp(words[0], "list") == 0 && remote) {
        rc = remote_print_standing(&ground, arguments.run.json);
    } else if (strcmp(words[0], "heal") == 0 && count > 1 && remote) {
        rc = remote_heal(&ground, words + 1, count - 1);
    } else if (strcmp(words[0], "list") == 0) {
        inject_print_standing(&ground, arguments.run.json);
    } else if (strcmp(words[0], "heal") == 0) {
        rc = heal(&ground, words + 1, count - 1);
    } else if (strcmp(words[0], "run") == 0 && count == 2) {
        arguments.run.file = words[1];
        rc = inject_run(&ground, &arguments.run);
    } else {
        rc = inject_one(&ground, &arguments, words, count);
    }
    ground_close(&ground);
    return rc;
}
