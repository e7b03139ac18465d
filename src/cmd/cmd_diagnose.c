/* phalanx diagnose: finds the rank that made the collectives of a job hang, from the dumps that its ranks
 * have written. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "doc/json.h"
#include "doc/pickle.h"
#include "cmd/usage.h"
#include "cmd/diagnose.h"
#include "host/collect/collect.h"

static const char usage[] =
    "Usage: phalanx diagnose [options] DIR\n"
    "       phalanx diagnose [options] jobset/NAME|job/NAME\n"
    "\n"
    "Finds the rank that the other ranks of a job wait for, says why, and what to do. In a folder, the\n"
    "command reads flight-recorder dumps (one per rank, named PREFIX and the rank, pickle or JSON, as\n"
    "TORCH_FR_DUMP_TEMP_FILE and TORCH_NCCL_DUMP_ON_TIMEOUT leave them) and, for ranks without a dump,\n"
    "the watchdog's lines in *.log. For a running job, the agents collect what libphalanx and PyTorch\n"
    "have recorded so far and what the kernel reports of the processes. The job itself is not\n"
    "disturbed.\n"
    "\n"
    "Options:\n"
    "  --ranks N              folder: the job has ranks 0 to N-1 (default: those that the dumps name)\n"
    "  --save DIR             running job: keep the records; `phalanx diagnose DIR` reads them again\n"
    "  -o, --output json      one JSON object for each world of the job (also --json)\n"
    "  -v, --verbose          print every finding, and the files that were skipped\n" CLIENT_HELP "\n"
    "Exit status: 0 no hang, 1 a hang, 2 wrong usage, 3 not found or nothing readable, 4 no\n"
    "controller answers, 5 timed out.\n";

/* Limit of one dump; the largest seen have some MB. */
#define FILE_BYTES_MAX   ((size_t)256 << 20)
#define MEMORY_BYTES_MAX ((size_t)4 << 30)
enum { LOG_PART = 4 << 20, FINDINGS_SHOWN = 24, COLUMNS = 100 };

struct file {
    struct str name;
    int64_t rank; /* -1: none in its name */
};
struct folder {
    struct arena arena;
    VEC(struct file) dumps, logs;
    size_t read, refused, lines;
};

/* Parses the command line. Returns 0, 1 if help was shown, or -1 after a message. */
static int parse(struct diagnose_options *options, int argc, char **argv)
{
    static const struct option known[] = {
        {"order", required_argument, NULL, 'O'},
        {"ranks", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},
        {"output", required_argument, NULL, 'o'},
        {"save", required_argument, NULL, 'S'},
        {"verbose", no_argument, NULL, 'v'},
        CLIENT_LONG_OPTIONS,
        {0},
    };
    int option;
    int64_t number;
    while ((option = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "vo:", known, NULL)) != -1) {
        switch (option) {
        case 'O': /* for agents: collect the records of a task on this machine */
            options->order = optarg;
            return 0;
        case 'r':
            if (!str_to_i64(str_from(optarg), 1, FLIGHT_RANKS_MAX, &number)) {
                say("--ranks takes a number from 1 to %d", FLIGHT_RANKS_MAX);
                return -1;
            }
            options->ranks = (uint32_t)number;
            break;
        case 'j':
            options->json = true;
            break;
        case 'o':
            if (!usage_json(optarg, &options->json))
                return -1;
            break;
        case 'S':
            options->save = optarg;
            break;
        case 'v':
            options->verbose = true;
            break;
        default:
            if (!client_option(&options->client, option, optarg)) {
                usage_wrong(usage, NULL);
                return -1;
            }
        }
    }
    if (options->client.help) {
        fputs(usage, stdout);
        return 1;
    }
    if (argc - optind != 1) {
        usage_wrong(usage, "one of DIR, jobset/NAME and job/NAME is needed");
        return -1;
    }
    options->folder = argv[optind];
    return 0;
}

/* --- files ---------------------------------------------------------------------------------------- */

/* Returns the number at the end of a name without the format's ending; -1 if there is none. */
static int64_t rank_of(struct str name)
{
    static const char *const endings[] = {".json", ".pickle", ".pkl"};
    int64_t rank;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (str_ends(name, str_from(endings[i])))
            name.len -= strlen(endings[i]);
    size_t start = name.len;
    while (start > 0 && name.data[start - 1] >= '0' && name.data[start - 1] <= '9')
        start--;
    struct str digits = {name.data + start, name.len - start};
    return str_to_i64(digits, 0, FLIGHT_RANKS_MAX - 1, &rank) ? rank : -1;
}

static int compare_files(const void *a, const void *b)
{
    const struct file *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return str_compare(x->name, y->name);
}

static bool list_folder(const struct diagnose_options *options, struct folder *folder)
{
    DIR *dir = opendir(options->folder);
    if (!dir) {
        say("%s: %s", options->folder, strerror(errno));
        return false;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct str name = arena_str(&folder->arena, str_from(entry->d_name));
        struct file file = {name, rank_of(name)};
        if (str_is(name, ".") || str_is(name, ".."))
            continue;
        if (str_ends(name, STR(".log")))
            vec_push(&folder->logs, file);
        else if (file.rank >= 0)
            vec_push(&folder->dumps, file);
        else if (options->verbose)
            say(STR_FORMAT ": skipped: its name does not end with a rank", STR_ARG(name));
    }
    closedir(dir);
    if (folder->dumps.len)
        qsort(folder->dumps.items, folder->dumps.len, sizeof(struct file), compare_files);
    if (folder->logs.len)
        qsort(folder->logs.items, folder->logs.len, sizeof(struct file), compare_files);
    return true;
}

static FILE *open_file(const struct diagnose_options *options, struct str name)
{
    struct buf path BUF_CLEANUP = {0};
    buf_printf(&path, "%s/" STR_FORMAT, options->folder, STR_ARG(name));
    FILE *file = fopen(path.data, "re");
    if (!file)
        say("%s: %s", path.data, strerror(errno));
    return file;
}

/* Reads the whole file; false after a message. */
static bool read_file(const struct diagnose_options *options, struct str name, struct buf *bytes)
{
    size_t part = 1 << 16, got = 1;
    FILE *file = open_file(options, name);
    buf_clear(bytes);
    if (!file)
        return false;
    while (got > 0 && bytes->len <= FILE_BYTES_MAX) {
        buf_reserve(bytes, part);
        got = fread(bytes->data + bytes->len, 1, part, file);
        bytes->len += got;
        part = part < (1 << 22) ? part * 2 : part;
    }
    bool failed = ferror(file);
    if (failed)
        say(STR_FORMAT ": %s", STR_ARG(name), strerror(errno));
    else if (bytes->len > FILE_BYTES_MAX)
        say(STR_FORMAT ": larger than %zu bytes", STR_ARG(name), FILE_BYTES_MAX);
    fclose(file);
    return !failed && bytes->len <= FILE_BYTES_MAX;
}

/* Takes a dump. A dump that cannot be read is named in a message and counts as missing; the others are
 * judged. */
static void take_dump(const struct diagnose_options *options, struct folder *folder, const struct file *file,
                      struct flight *flight, struct buf *bytes)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = MEMORY_BYTES_MAX};
    struct error error = {0};
    struct doc *doc = NULL;
    if (!read_file(options, file->name, bytes)) {
        folder->refused++;
        return;
    }
    struct str text = buf_str(bytes),
               start = str_trim((struct str){text.data, text.len < 64 ? text.len : 64});
    bool pickle = pickle_is(text);
    if (!pickle && !str_starts(start, STR("{"))) {
        if (options->verbose)
            say(STR_FORMAT ": skipped: neither a pickle of protocol 2 nor a JSON object",
                STR_ARG(file->name));
        return;
    }
    int code =
        pickle ? pickle_parse(&arena, text, &doc, &error) : json_parse_python(&arena, text, &doc, &error);
    if (code == 0)
        code = flight_add_dump(flight, (uint32_t)file->rank, doc, &error);
    if (code == 0) {
        folder->read++;
        if (error.code != ERROR_NONE)
            say(STR_FORMAT ": skipped: %s", STR_ARG(file->name), error.text);
    } else {
        say(STR_FORMAT ": %s", STR_ARG(file->name), error.text);
        folder->refused++;
    }
}

/* Takes a log. Logs may be long, so they are read in parts, of whole lines. */
static void take_log(const struct diagnose_options *options, struct folder *folder, const struct file *file,
                     struct flight *flight, struct buf *bytes)
{
    FILE *stream = open_file(options, file->name);
    size_t lines = 0, got = 1;
    buf_clear(bytes);
    while (stream && got > 0) {
        buf_reserve(bytes, LOG_PART);
        got = fread(bytes->data + bytes->len, 1, LOG_PART, stream);
        bytes->len += got;
        const char *last = bytes->len ? memrchr(bytes->data, '\n', bytes->len) : NULL;
        size_t whole = got == 0 || bytes->len > 4 * (size_t)LOG_PART ? bytes->len
                       : last                                        ? (size_t)(last - bytes->data) + 1
                                                                     : 0;
        lines += flight_add_log(flight, (struct str){bytes->data, whole});
        buf_drop_front(bytes, whole);
    }
    if (stream)
        fclose(stream);
    folder->lines += lines;
    if (options->verbose)
        say(STR_FORMAT ": %zu watchdog lines of ranks without a dump", STR_ARG(file->name), lines);
}

/* --- text ----------------------------------------------------------------------------------------- */

static void add_wrapped(struct buf *out, const char *indent, struct str text)
{
    size_t column = COLUMNS;
    for (struct str word, rest = text; rest.len;) {
        if (!str_cut(rest, ' ', &word, &rest)) {
            word = rest;
            rest.len = 0;
        }
        bool fits = column + 1 + word.len <= COLUMNS;
        buf_printf(out,
                   fits                                                               ? " "
                   : column == COLUMNS && out->len && out->data[out->len - 1] == '\n' ? "%s"
                                                                                      : "\n%s",
                   indent);
        column = fits ? column + 1 : strlen(indent);
        buf_add_str(out, word);
        column += word.len;
    }
    buf_add_char(out, '\n');
}

static void add_finding(struct buf *out, const struct finding *finding)
{
    const char *red = color_of(STR("Failed")), *yellow = color_of(STR("Pending"));
    bool culprit = finding_blames(finding->kind);
    buf_printf(out, "\n%s", culprit ? red : yellow);
    if (finding->kind == FINDING_UNDECIDED) {
        ranks_describe_one(out, finding->ranks, finding->rank_count);
    } else {
        buf_printf(out, finding->rank_count == 1 ? "rank " : "ranks ");
        ranks_describe(out, finding->ranks, finding->rank_count, 16);
    }
    buf_printf(out, "  %s%s  %s\n", finding_kind_name(finding->kind), color_end(),
               finding_action_name(finding->action));
    add_wrapped(out, "    ", finding->evidence);
    add_wrapped(out, "    ", finding->advice);
}

static void print_text(const struct diagnose_options *options, const struct diagnosis *diagnosis,
                       size_t refused)
{
    struct buf out BUF_CLEANUP = {0};
    const char *color = color_of(diagnosis->hang ? STR("Failed") : STR("Ready"));
    size_t shown = options->verbose || diagnosis->findings.len < FINDINGS_SHOWN ? diagnosis->findings.len
                                                                                : FINDINGS_SHOWN;
    buf_printf(&out, "%s", color);
    diagnosis_summary(&out, diagnosis);
    buf_printf(&out, "%s\n", *color ? color_end() : "");
    for (size_t i = 0; i < shown; i++)
        add_finding(&out, &diagnosis->findings.items[i]);
    size_t more = diagnosis->findings.len - shown + diagnosis->findings_left_out;
    if (more)
        buf_printf(&out, "\n%zu more findings%s\n", more, options->verbose ? "" : " (--verbose shows them)");
    buf_printf(&out, "\n%zu ranks: %zu left a dump, %zu a watchdog's line, %zu nothing", diagnosis->ranks,
               diagnosis->dumped, diagnosis->logged, diagnosis->silent.len);
    if (diagnosis->silent.len) {
        buf_printf(&out, " (");
        ranks_describe(&out, diagnosis->silent.items, diagnosis->silent.len, 16);
        buf_add_char(&out, ')');
    }
    buf_printf(&out, "; %zu wait. %zu groups, %zu operations.\n", diagnosis->waiting, diagnosis->groups,
               diagnosis->operations);
    if (refused)
        buf_printf(&out, "%zu dumps could not be read.\n", refused);
    output_write(&out);
}

int diagnose_report(const struct diagnose_options *options, const struct diagnosis *diagnosis, size_t refused)
{
    struct buf out BUF_CLEANUP = {0};
    if (options->json) {
        diagnosis_write_json(&out, diagnosis);
        buf_add_char(&out, '\n');
        output_write(&out);
    } else {
        print_text(options, diagnosis, refused);
    }
    return diagnosis->hang ? EXIT_FAILED : EXIT_OK;
}

/* --- the command ---------------------------------------------------------------------------------- */

static int diagnose(const struct diagnose_options *options, struct folder *folder, struct flight *flight)
{
    struct buf bytes BUF_CLEANUP = {0};
    struct diagnosis diagnosis;
    if (options->ranks)
        flight_expect(flight, options->ranks, NULL);
    for (size_t i = 0; i < folder->dumps.len; i++)
        take_dump(options, folder, &folder->dumps.items[i], flight, &bytes);
    for (size_t i = 0; i < folder->logs.len; i++)
        take_log(options, folder, &folder->logs.items[i], flight, &bytes);
    if (!folder->read && !folder->lines) {
        say("%s: contains no readable dump and no watchdog line", options->folder);
        return EXIT_NOT_FOUND;
    }
    flight_judge(flight, &diagnosis);
    int rc = diagnose_report(options, &diagnosis, folder->refused);
    diagnosis_done(&diagnosis);
    return rc;
}

/* Prints, for the agent, one line that the controller judges together with those of the other ranks. */
static int collect(const char *text)
{
    struct collect_order order;
    struct error error;
    struct buf out BUF_CLEANUP = {0};
    int code = collect_order_read(str_from(text), &order, &error);
    if (code == 0)
        code = collect_task(&order, &out, &error);
    if (code < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    output_write(&out);
    return EXIT_OK;
}

/* Returns true if the name is KIND/NAME of a running job, and not a folder. */
static bool is_live(const char *name)
{
    struct str kind, rest, text = str_from(name);
    return str_cut(text, '/', &kind, &rest) && rest.len && access(name, F_OK) < 0 && kind_find(kind);
}

int cmd_diagnose(int argc, char **argv)
{
    struct diagnose_options options = {0};
    int parsed = parse(&options, argc, argv);
    if (parsed != 0)
        return parsed > 0 ? EXIT_OK : EXIT_USAGE;
    if (options.order)
        return collect(options.order);
    if (is_live(options.folder))
        return diagnose_live(&options);
    struct folder folder = {0};
    struct flight *flight = flight_new();
    int code = list_folder(&options, &folder) ? diagnose(&options, &folder, flight) : EXIT_NOT_FOUND;
    flight_free(flight);
    vec_done(&folder.dumps);
    vec_done(&folder.logs);
    arena_done(&folder.arena);
    return code;
}
