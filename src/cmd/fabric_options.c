/* The options of phalanx fabric: the actions that have them, their values, and their help. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/units.h"
#include "cmd/client.h"
#include "cmd/fabric_asked.h"
#include "cmd/fabric_collective.h"
#include "cmd/usage.h"
#include "core/fabric/defrag.h"
#include "sim/capacity/packing.h"
#include "sim/capacity/torus3d.h"

enum takes { TAKES_NOTHING, TAKES_TEXT, TAKES_LIST, TAKES_NUMBER, TAKES_SHARE, TAKES_OTHER };

enum {
    LIVE = FABRIC_LIVE,
    SWITCHES = FABRIC_ON_SWITCHES,
    TABLES = FABRIC_ROUTE | FABRIC_SIMULATE | FABRIC_COLLECTIVE,
    ALL = FABRIC_ACTIONS_ALL,
    LINKS_MAX = SLICE_CHIPS_MAX * AXES,
    LETTER_BASE = 256, /* of the first row: val of its struct option */
};

struct option_row {
    const char *name, *value; /* value: its name in --help; NULL: the option takes none */
    uint32_t actions;
    enum takes takes;
    size_t offset;     /* of its field in struct fabric_asked; not for TAKES_OTHER */
    int64_t low, high; /* of TAKES_NUMBER */
    const char *help;  /* lines */
};

#define FIELD(name) offsetof(struct fabric_asked, name)

enum {
    ROW_FORMAT,
    ROW_TIMEOUT,
    ROW_TRAFFIC,
    ROW_BYTES,
    ROW_HOST,
    ROW_CONFIDENCE,
    ROW_PACKETS,
    ROW_CYCLES,
};

/* In the order of --help, except the first rows, which have names in the code. */
static const struct option_row rows[] = {
    [ROW_FORMAT] = {"output", "json", ALL, TAKES_OTHER, 0, 0, 0, "one JSON object; also -o json"},
    [ROW_TIMEOUT] = {"timeout", "TIME", SWITCHES | FABRIC_DEFRAG, TAKES_OTHER, 0, 0, 0,
                     "for an answer (2s); of defrag: for all moves (no limit)"},
    [ROW_TRAFFIC] = {"traffic", "PATTERN", FABRIC_SIMULATE, TAKES_OTHER, 0, 0, 0,
                     "all-to-all (the default), all-reduce, permutation, mirror or halfway"},
    [ROW_BYTES] = {"bytes", "N", FABRIC_COLLECTIVE, TAKES_OTHER, 0, 0, 0,
                   "of the array on each chip, such as 64M (16Mi), rounded up to whole\nnumbers of 4 bytes; "
                   "of all-to-all as many as chips"},
    [ROW_HOST] =
        {"host", "P", FABRIC_AVAILABILITY | FABRIC_PLACE, TAKES_OTHER, 0, 0, 0,
         "the probability that a host is up; may be repeated\n(0.99, 0.995, 0.999; of place 0.99, 0.999)"},
    [ROW_CONFIDENCE] = {"confidence", "P", FABRIC_AVAILABILITY, TAKES_OTHER, 0, 0, 0,
                        "with which cubes are whole (0.95)"},
    [ROW_PACKETS] = {"packets", "N", FABRIC_SIMULATE, TAKES_NUMBER, FIELD(packets), 1, 1000000,
                     "of 4 KiB, for each destination (4); of all-reduce: for each step"},
    [ROW_CYCLES] = {"cycles", "N", FABRIC_SIMULATE, TAKES_NUMBER, FIELD(cycles), 1, INT64_MAX / 1024,
                    "sends without end, and stops after N cycles; not with --packets"},
    {"cubes", "LIST", FABRIC_CHECK | FABRIC_PLAN | FABRIC_SESSION | LIVE, TAKES_TEXT, FIELD(cubes), 0, 0,
     "the cubes of the slice, such as 3,9; of check and session: by place"},
    {"pod", "N", FABRIC_PLAN | LIVE | FABRIC_AVAILABILITY, TAKES_NUMBER, FIELD(pod), 1, POD_CUBES_MAX,
     "cubes of the pod (64)"},
    {"switch-out", "NAME", FABRIC_PLAN | TABLES | FABRIC_SESSION | LIVE, TAKES_LIST, FIELD(switches), 0, 0,
     "a switch that is dead, such as x5; may be repeated"},
    {"cube-out", "N", FABRIC_PLAN | LIVE, TAKES_LIST, FIELD(cubes_out), 0, 0,
     "a cube that is out of service; may be repeated"},
    {"running", "SHAPE:LIST", FABRIC_PLAN | LIVE, TAKES_LIST, FIELD(running), 0, 0,
     "a slice that runs and must not be touched; may be repeated"},
    {"joined", "SHAPE:LIST", FABRIC_PLAN, TAKES_LIST, FIELD(joined), 0, 0,
     "cubes that are joined to a slice that has ended; may be repeated"},
    {"link-out", "X,Y,Z,PORT", TABLES, TAKES_LIST, FIELD(links), 0, 0,
     "a dead link at a port of a chip, such as 0,3,2,y+; may be repeated"},
    {"random-links", "N", TABLES, TAKES_NUMBER, FIELD(random_links), 0, LINKS_MAX,
     "kills N links, the same ones for the same --seed"},
    {"cache", "DIR", TABLES, TAKES_TEXT, FIELD(cache), 0, 0,
     "takes tables that are there, after their proof, and leaves new ones\nthere"},
    {"buffers", "N", FABRIC_SIMULATE, TAKES_NUMBER, FIELD(buffers), 1, CYCLE_BUFFERS_MAX,
     "packets in the buffer of one link and virtual channel (16)"},
    {"pace", "PERCENT", FABRIC_SIMULATE, TAKES_NUMBER, FIELD(pace_percent), 0, 100,
     "of the bound, at which chips send all-to-all (97); 0: as fast as they\ncan"},
    {"cross", "SWITCH:A,B", FABRIC_SESSION, TAKES_TEXT, FIELD(crossed), 0, 0,
     "crosses the wires of cubes A and B at a switch, such as z6:0,1"},
    {"switches", "FILE", SWITCHES, TAKES_TEXT, FIELD(switch_list), 0, 0,
     "names, drivers and addresses of the switches; phalanx switch-sim\n--write makes such a list"},
    {"cluster", "FILE", SWITCHES, TAKES_TEXT, FIELD(cluster), 0, 0,
     "takes them from a cluster file (spec.pods[].fabric) instead"},
    {"in", "POD", SWITCHES | FABRIC_DEFRAG, TAKES_TEXT, FIELD(in), 0, 0,
     "the pod of the cluster file, if several have switches; of defrag:\nlooks at this pod alone"},
    {"attempts", "N", SWITCHES, TAKES_NUMBER, FIELD(attempts), 1, 100,
     "sessions that are tried when one breaks (3)"},
    {"keep", NULL, FABRIC_APPLY | FABRIC_CLEAR, TAKES_NOTHING, FIELD(keep_partial), 0, 0,
     "leaves what was applied when a switch fails, rather than to take it\nback"},
    {"paths", NULL, FABRIC_OPTICS, TAKES_NOTHING, FIELD(paths), 0, 0,
     "adds a line for each cross-connect, with its light and loss"},
    {"frequency", "GHZ", FABRIC_OPTICS, TAKES_NUMBER, FIELD(frequency_ghz), 100000, 400000,
     "at which the factory's loss is wanted (193400, which is 1,550 nm)"},
    {"whole", "N", FABRIC_AVAILABILITY, TAKES_NUMBER, FIELD(whole), 1, POD_CUBES_MAX,
     "finds the P with which N cubes are whole"},
    {"switch-up", "P", FABRIC_AVAILABILITY, TAKES_SHARE, FIELD(switch_up), 0, 0,
     "the probability that a switch is up (0.9998)"},
    {"trials", "N", FABRIC_AVAILABILITY, TAKES_NUMBER, FIELD(trials), 0, 1000000,
     "pods that are simulated to check the formulas (10000); 0: none"},
    {"seed", "N", TABLES | FABRIC_AVAILABILITY | FABRIC_PLACE, TAKES_NUMBER, FIELD(seed), 0, INT64_MAX,
     "of what is drawn by chance (1)"},
    {"slices", "N", FABRIC_PLACE, TAKES_NUMBER, FIELD(slices), 1, PACKING_SLICES_MAX, "of the stream (1000)"},
    {"moves", "N", FABRIC_PLACE | FABRIC_DEFRAG, TAKES_NUMBER, FIELD(moves), 0, DEFRAG_MOVES_MAX,
     "small slices that may move for another one (8)"},
    {"move", NULL, FABRIC_DEFRAG, TAKES_NOTHING, FIELD(move), 0, 0,
     "moves the slices: drains the cubes that become free, and gives them\nback when their slices have left"},
    {"torus3d", "FILE", FABRIC_PLACE, TAKES_TEXT, FIELD(torus3d), 0, 0,
     "a topology.yaml of Slurm instead: lists its toruses"},
    {"nodes", "N", FABRIC_PLACE, TAKES_NUMBER, FIELD(nodes), 1, TORUS3D_CELLS_MAX,
     "of a job: prints the nodes that torus3d gives it; exit status 1: none"},
    {"busy", "LIST", FABRIC_PLACE, TAKES_TEXT, FIELD(busy), 0, 0,
     "nodes that are taken or down, such as m-[01-16],m-40"},
    {"server", "URL", FABRIC_DEFRAG, TAKES_TEXT, FIELD(server), 0, 0,
     "the controller (default: as of phalanx get)"},
    {"svg", "FILE", FABRIC_CHECK | FABRIC_PLAN | FABRIC_ROUTE | FABRIC_SIMULATE, TAKES_TEXT, FIELD(svg), 0, 0,
     "draws, as SVG: of check the cubes of the slice, of plan the mirrors\nof the switches, of route and "
     "simulate the load of every link"},
    {"plot", "FILE", FABRIC_AVAILABILITY, TAKES_TEXT, FIELD(plot), 0, 0,
     "draws the goodput by the size of slices, as SVG"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static uint64_t given; /* a bit for each row whose option was taken */

void fabric_options_default(struct fabric_asked *ret_asked)
{
    *ret_asked = (struct fabric_asked){.pod = SMALL_POD_CUBES,
                                       .seed = 1,
                                       .attempts = 3,
                                       .bytes = 16 << 20,
                                       .buffers = ((struct cycle_terms)CYCLE_TERMS_DEFAULT).buffers,
                                       .pace_percent = TRAFFIC_PACE_PERCENT,
                                       .trials = 10000,
                                       .slices = 1000,
                                       .moves = DEFRAG_MOVES_MAX,
                                       .confidence = .95,
                                       .switch_up = .9998};
}

const struct option *fabric_options(void)
{
    static struct option options[ROWS + 2];
    for (int i = 0; i < ROWS; i++)
        options[i] = (struct option){rows[i].name, rows[i].value ? required_argument : no_argument, NULL,
                                     LETTER_BASE + i};
    options[ROWS] = (struct option){"help", no_argument, NULL, 'h'};
    return options;
}

/* --- values ------------------------------------------------------------------------------------------- */

static bool expected(const struct option_row *row, const char *value, const char *what)
{
    say("--%s %.64s: expected %s", row->name, *value ? value : "\"\"", what);
    return false;
}

static bool take_number(const struct option_row *row, const char *value, int64_t *ret_number)
{
    int64_t number;
    if (!str_to_i64(str_from(value), row->low, row->high, &number)) {
        say("--%s %.64s: expected a number from %lld to %lld", row->name, *value ? value : "\"\"",
            (long long)row->low, (long long)row->high);
        return false;
    }
    *ret_number = number;
    return true;
}

static bool take_share(const struct option_row *row, const char *value, double *ret_share)
{
    char *end;
    double share = strtod(value, &end);
    if (!*value || *end || !isfinite(share) || share < 0 || share > 1)
        return expected(row, value, "a probability from 0 to 1");
    *ret_share = share;
    return true;
}

static bool take_word(const struct option_row *row, const char *value, struct fabric_words *words)
{
    if (words->count == FABRIC_WORDS_MAX) {
        say("--%s is given more than %d times", row->name, FABRIC_WORDS_MAX);
        return false;
    }
    words->items[words->count++] = value;
    return true;
}

static bool take_traffic(const char *value, enum traffic_pattern *ret_pattern)
{
    for (uint32_t i = 0; i < TRAFFIC_PATTERNS; i++)
        if (strcmp(value, traffic_names[i]) == 0) {
            *ret_pattern = i;
            return true;
        }
    usage_unknown("traffic", str_from(value), traffic_names, TRAFFIC_PATTERNS);
    return false;
}

static bool take_bytes(const struct option_row *row, const char *value, int64_t *ret_bytes)
{
    int64_t milli;
    if (!quantity_parse_milli(str_from(value), &milli) || milli < 1000 || milli / 1000 > COLLECTIVE_BYTES_MAX)
        return expected(row, value, "a size from 1 to 1Gi, such as 64M");
    *ret_bytes = milli / 1000;
    return true;
}

static bool take_other(struct fabric_asked *asked, int index, const char *value)
{
    const struct option_row *row = &rows[index];
    switch (index) {
    case ROW_FORMAT:
        return usage_json(value, &asked->json);
    case ROW_TIMEOUT:
        return (duration_parse(str_from(value), &asked->timeout_ns) &&
                asked->timeout_ns >= NS_PER_SECOND / 1000 && asked->timeout_ns <= 3600 * NS_PER_SECOND) ||
               expected(row, value, "a time from 1ms to 1h, such as 500ms");
    case ROW_TRAFFIC:
        return take_traffic(value, &asked->traffic);
    case ROW_BYTES:
        return take_bytes(row, value, &asked->bytes);
    case ROW_HOST:
        if (asked->host_count + 1 == AVAILABILITY_HOSTS_MAX) { /* one place is for --whole */
            say("--host is given more than %d times", AVAILABILITY_HOSTS_MAX - 1);
            return false;
        }
        return take_share(row, value, &asked->hosts[asked->host_count++]);
    default:
        CHECK(index == ROW_CONFIDENCE);
        return take_share(row, value, &asked->confidence) &&
               (asked->confidence < 1 || expected(row, value, "a probability below 1"));
    }
}

bool fabric_take_option(struct fabric_asked *asked, int letter, const char *value)
{
    int index = letter == 'o' ? ROW_FORMAT : letter - LETTER_BASE;
    if (index < 0 || index >= ROWS)
        return false; /* usage_option() has printed the reason */
    const struct option_row *row = &rows[index];
    void *field = (char *)asked + row->offset;
    given |= UINT64_C(1) << index;
    switch (row->takes) {
    case TAKES_NOTHING:
        return *(bool *)field = true;
    case TAKES_TEXT:
        *(const char **)field = value;
        return *value || expected(row, value, row->value);
    case TAKES_LIST:
        return take_word(row, value, field);
    case TAKES_NUMBER:
        return take_number(row, value, field);
    case TAKES_SHARE:
        return take_share(row, value, field);
    case TAKES_OTHER:
        break;
    }
    return take_other(asked, index, value);
}

bool fabric_options_fit(enum fabric_action action, const char *name)
{
    static_assert(ROWS <= 64, "a bit for each option");
    for (int i = 0; i < ROWS; i++)
        if ((given >> i & 1) && !(rows[i].actions & action)) {
            say("--%s is not an option of %s", rows[i].name, name);
            return false;
        }
    if ((given >> ROW_PACKETS & 1) && (given >> ROW_CYCLES & 1)) {
        say("--cycles sends without end: expected no --packets");
        return false;
    }
    return true;
}

/* --- help --------------------------------------------------------------------------------------------- */

static void put_help(struct buf *out, const struct option_row *row)
{
    struct str rest = str_from(row->help), line;
    char head[32];
    snprintf(head, sizeof head, "--%s%s%s", row->name, row->value ? " " : "", row->value ? row->value : "");
    for (bool more = true; more; head[0] = '\0') {
        more = str_cut(rest, '\n', &line, &rest);
        buf_printf(out, "  %-26s " STR_FORMAT "\n", head, STR_ARG(more ? line : rest));
    }
}

void fabric_options_help(struct buf *out, uint32_t actions)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < ROWS; i++)
            if ((rows[i].actions & actions) && (i == ROW_FORMAT) == (pass == 1))
                put_help(out, &rows[i]);
    buf_printf(out, "  %-26s %s\n", "--help", "this text");
}
