/* selector.c - parses selectors and the parameters of actions. */
#include <stdio.h>

#include "base/units.h"
#include "host/inject/inject.h"

const char *const inject_kind_names[] = {"controller", "machine", "agent", "rack",  "rank",
                                         "checkpoint", "chip",    "link",  "switch"};
const char *const inject_action_names[] = {"kill", "stop", "continue", "partition", "slow",      "corrupt",
                                           "chip", "link", "switch",   "lie",       "fill-disk", "oom"};

enum { RANK_MAX = 1 << 20, PART_MAX = 63 };

static bool is_part(enum inject_kind kind)
{
    return kind >= INJECT_CHIP;
}

bool inject_action_find(struct str name, enum inject_action *ret)
{
    for (int i = 0; i < INJECT_ACTIONS; i++)
        if (str_is(name, inject_action_names[i])) {
            *ret = (enum inject_action)i;
            return true;
        }
    return false;
}

const char *inject_action_refuses(enum inject_action action, enum inject_kind kind)
{
    static const enum inject_action own[] = {ACTION_CHIP, ACTION_LINK, ACTION_SWITCH};
    bool machines = kind == INJECT_MACHINE || kind == INJECT_RACK;
    if (is_part(kind))
        return action == ACTION_LIE || action == own[kind - INJECT_CHIP]
                   ? NULL
                   : "chips and links can be killed and slow, switches killed";
    switch (action) {
    case ACTION_KILL:
    case ACTION_STOP:
    case ACTION_CONTINUE:
        return kind == INJECT_CHECKPOINT ? "a checkpoint is not a process; `corrupt` damages it" : NULL;
    case ACTION_PARTITION:
        return machines ? NULL : "machines and racks can be cut off";
    case ACTION_SLOW:
        return machines || kind == INJECT_RANK || kind == INJECT_AGENT
                   ? NULL
                   : "machines, racks, agents and ranks can be slow";
    case ACTION_CORRUPT:
        return kind == INJECT_CHECKPOINT ? NULL : "checkpoints can be damaged: checkpoint of rank N";
    case ACTION_FILL:
        return machines || kind == INJECT_CHECKPOINT ? NULL
                                                     : "the disks of machines and of checkpoints can be full";
    case ACTION_OOM:
        return kind == INJECT_RANK ? NULL : "a rank can run out of its memory limit";
    default:
        return machines ? NULL : "it is told of a machine";
    }
}

/* Returns the action that reports a failed or slow part as its driver or a probe would. */
static enum inject_action part_action(enum inject_kind kind, enum inject_action action,
                                      struct inject_how *how)
{
    static const struct {
        enum inject_action action;
        const char *slow; /* code; NULL: no probe sees that */
    } parts[] = {{ACTION_CHIP, "gpu/clocks"}, {ACTION_LINK, "ib/rate"}, {ACTION_SWITCH, NULL}};
    const char *slow = is_part(kind) ? parts[kind - INJECT_CHIP].slow : NULL;
    bool slows = action == ACTION_SLOW && slow;
    if (slows && !how->code.len)
        how->code = str_from(slow);
    return is_part(kind) && (action == ACTION_KILL || slows) ? parts[kind - INJECT_CHIP].action : action;
}

const char *inject_settle(const struct inject_selector *objects, size_t count, enum inject_action *action,
                          struct inject_how *how, size_t *ret_which)
{
    enum inject_action settled = *action;
    for (size_t i = 0; i < count; i++) {
        enum inject_action own = part_action(objects[i].kind, *action, how);
        const char *why = inject_action_refuses(own, objects[i].kind);
        *ret_which = i;
        if (why)
            return why;
        if (i > 0 && (own != settled || is_part(objects[i].kind) != is_part(objects[0].kind)))
            return "chips, links and switches are broken apart from each other and from all else";
        settled = own;
    }
    *action = settled;
    return NULL;
}

bool inject_stands(enum inject_action action)
{
    return action != ACTION_KILL && action != ACTION_CONTINUE && action != ACTION_CORRUPT &&
           action != ACTION_OOM;
}

/* --- selectors ------------------------------------------------------------------------------------------ */

static bool take_word(struct str *rest, struct str *ret_word)
{
    struct str text = str_trim(*rest);
    size_t len = 0;
    while (len < text.len && text.data[len] != ' ')
        len++;
    *ret_word = (struct str){text.data, len};
    *rest = str_trim((struct str){text.data + len, text.len - len});
    return len > 0;
}

static bool kind_of_word(struct str word, enum inject_kind *ret)
{
    for (int i = 0; i < INJECT_KINDS; i++)
        if (str_is(word, inject_kind_names[i])) {
            *ret = (enum inject_kind)i;
            return true;
        }
    return false;
}

/* Returns the selector's word for a kind as `get -o name` and kubectl write kinds: "machine" for node and
 * nodes, "jobset" for jobset.jobset.x-k8s.io. */
static struct str plain_kind(struct str kind)
{
    static const struct {
        const char *written, *plain;
    } others[] = {{"node", "machine"},     {"nodes", "machine"}, {"no", "machine"},
                  {"machines", "machine"}, {"pods", "pod"},      {"po", "pod"},
                  {"jobsets", "jobset"},   {"racks", "rack"},    {"agents", "agent"}};
    struct str group;
    str_cut(kind, '.', &kind, &group);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (str_is(kind, others[i].written))
            return str_from(others[i].plain);
    return kind;
}

static bool is_name(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
              c == '.' || c == '_'))
            return false;
    }
    return text.len > 0 && text.len <= 253 && text.data[0] != '.';
}

static bool is_job(struct str text)
{
    struct str namespace_, name;
    return str_cut(text, '/', &namespace_, &name) ? is_name(namespace_) && is_name(name) : is_name(text);
}

static int no_object(struct str text, struct error *error)
{
    return error_set(
        error, ERROR_INVALID,
        "\"" STR_FORMAT "\" names no object: controller, machine/NAME, agent/NAME, rack/NAME, "
        "pod/NAME, jobset/NAME, chip/MACHINE/N, link/MACHINE/N, switch/NAME, rank N, machine of rank N, "
        "checkpoint of rank N, random machine, random rank, ...",
        (int)(text.len < 100 ? text.len : 100), text.data);
}

/* Parses a part: chip/m-2/3, switch/rack-1. `name` is the text after the kind. */
static bool parse_part(struct str name, struct inject_selector *found)
{
    int64_t number;
    found->name = name;
    if (str_cut(name, '/', &found->name, &found->part) &&
        (!is_name(found->part) || found->part.len > PART_MAX))
        return false;
    return (found->part.len || found->kind == INJECT_SWITCH) &&
           (found->kind != INJECT_CHIP || str_to_i64(found->part, 0, PART_MAX, &number));
}

/* Parses KIND/NAME. */
static int parse_named(struct str text, struct str word, struct inject_selector *ret, struct error *error)
{
    struct str kind, name;
    struct inject_selector found = {.kind = INJECT_KINDS, .choice = CHOICE_NAME};
    bool named = str_cut(word, '/', &kind, &name);
    kind = named ? plain_kind(kind) : STR("");
    if (!named) {
        found.kind = INJECT_MACHINE;
        found.name = word;
    } else if (str_is(kind, "pod") || str_is(kind, "checkpoint")) { /* what a Pod's task keeps */
        found.kind = str_is(kind, "pod") ? INJECT_RANK : INJECT_CHECKPOINT;
        found.by_pod = true;
        found.name = name;
    } else if (str_is(kind, "jobset")) {
        found.kind = INJECT_RANK;
        found.choice = CHOICE_ALL;
        found.by_rank = true;
        found.job = name;
    } else if (str_is(kind, "cube")) {
        found.kind = INJECT_RACK;
        found.name = name;
    } else if (kind_of_word(kind, &found.kind) && is_part(found.kind)) {
        if (!parse_part(name, &found))
            return no_object(text, error);
    } else if (found.kind >= INJECT_MACHINE && found.kind <= INJECT_RACK) {
        found.name = name;
    } else {
        return no_object(text, error);
    }
    bool namespaced = found.by_pod || found.by_rank;
    struct str checked = found.by_rank ? found.job : found.name;
    if (!(namespaced ? is_job(checked) : is_name(checked)))
        return no_object(text, error);
    *ret = found;
    return 0;
}

/* Parses the text after "rank", or after "random rank": [N] [of jobset/NAME]. */
static bool parse_rank(struct str rest, bool numbered, struct inject_selector *found)
{
    struct str word, kind, name;
    found->by_rank = true;
    found->choice = numbered ? CHOICE_RANK : CHOICE_RANDOM;
    if (numbered && (!take_word(&rest, &word) || !str_to_i64(word, 0, RANK_MAX, &found->rank)))
        return false;
    if (!take_word(&rest, &word))
        return true;
    if (!str_is(word, "of") || !take_word(&rest, &word) || rest.len)
        return false;
    if (!str_cut(word, '/', &kind, &name) || !str_is(plain_kind(kind), "jobset") || !is_job(name))
        return false;
    found->job = name;
    return true;
}

int inject_selector_parse(struct str text, struct inject_selector *ret, struct error *error)
{
    struct inject_selector found = {.kind = INJECT_MACHINE};
    struct str rest = str_trim(text), word, whole = rest;
    if (!take_word(&rest, &word))
        return no_object(text, error);
    if (str_is(word, "controller") && !rest.len) {
        *ret = (struct inject_selector){.kind = INJECT_CONTROLLER};
        return 0;
    }
    if (!rest.len)
        return parse_named(text, whole, ret, error);
    if (str_is(word, "random") && (str_is(rest, "machine") || str_is(rest, "agent"))) {
        found.kind = str_is(rest, "agent") ? INJECT_AGENT : INJECT_MACHINE;
        found.choice = CHOICE_RANDOM;
        *ret = found;
        return 0;
    }
    if (!str_is(word, "rank") && !str_is(word, "random")) { /* KIND of ... */
        struct str of;
        if (!kind_of_word(word, &found.kind) || found.kind == INJECT_CONTROLLER || is_part(found.kind) ||
            !take_word(&rest, &of) || !str_is(of, "of") || !take_word(&rest, &word))
            return no_object(text, error);
    } else {
        found.kind = INJECT_RANK;
    }
    bool random = str_is(word, "random");
    if (random && !take_word(&rest, &word))
        return no_object(text, error);
    if (!str_is(word, "rank") || !parse_rank(rest, !random, &found))
        return no_object(text, error);
    *ret = found;
    return 0;
}

/* --- options -------------------------------------------------------------------------------------------- */

struct inject_how inject_how_default(void)
{
    return (struct inject_how){.direction = DIRECTION_BOTH, .chip = -1};
}

/* Parses "15%" or "0.5%" to millionths. */
static bool parse_share(struct str text, uint32_t *ret_ppm)
{
    int64_t milli;
    if (text.len < 2 || text.data[text.len - 1] != '%' ||
        !quantity_parse_milli((struct str){text.data, text.len - 1}, &milli) || milli < 1 || milli > 100000)
        return false;
    *ret_ppm = (uint32_t)milli * 10;
    return true;
}

static const char *const directions[] = {"in", "out", "both"};

static bool set_direction(struct inject_how *how, struct str value)
{
    for (int i = 0; i < 3; i++)
        if (str_is(value, directions[i])) {
            how->direction = (enum inject_direction)(i + 1);
            return true;
        }
    return false;
}

int inject_how_set(struct inject_how *how, struct str name, struct str value, struct error *error)
{
    bool good = value.len > 0;
    uint32_t ppm = 0;
    const char *wanted = "text";
    if (str_is(name, "direction")) {
        good = set_direction(how, value);
        wanted = "in, out or both";
    } else if (str_is(name, "for")) {
        good = duration_parse(value, &how->for_ns) && how->for_ns > 0;
        wanted = "a duration such as 5s";
    } else if (str_is(name, "cpu")) {
        good = parse_share(value, &ppm) && ppm >= 10000 && ppm <= 990000;
        how->cpu_percent = ppm / 10000;
        wanted = "the share of its time in which it stands still, 1% to 99%";
    } else if (str_is(name, "loss")) {
        good = parse_share(value, &how->loss_ppm);
        wanted = "a share of packets such as 15%";
    } else if (str_is(name, "tier")) {
        good = str_is(value, "memory") || str_is(value, "storage");
        how->tier = str_is(value, "storage") ? TIER_STORAGE : TIER_MEMORY;
        wanted = "memory or storage";
    } else if (str_is(name, "code")) {
        how->code = value;
    } else if (str_is(name, "place")) {
        how->place = value;
    } else if (str_is(name, "chip")) {
        good = str_to_i64(value, 0, INT32_MAX, &how->chip);
        wanted = "a number";
    } else {
        return error_set(error, ERROR_NOT_FOUND, "unknown option \"" STR_FORMAT "\"", STR_ARG(name));
    }
    return good ? 0
                : error_set(error, ERROR_INVALID, STR_FORMAT ": \"" STR_FORMAT "\" is not %s", STR_ARG(name),
                            (int)(value.len < 60 ? value.len : 60), value.data, wanted);
}

/* Formats a duration such as "5s", in the largest unit of which it is a multiple. */
static struct str write_duration(struct arena *arena, int64_t ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"h", 3600 * NS_PER_SECOND}, {"m", 60 * NS_PER_SECOND}, {"s", NS_PER_SECOND}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (ns % units[i].ns == 0)
            return arena_printf(arena, "%lld%s", (long long)(ns / units[i].ns), units[i].name);
    return arena_printf(arena, "%lldms", (long long)((ns - 1) / NS_PER_MS + 1));
}

void inject_how_write(const struct inject_how *how, struct arena *arena, struct doc *spec)
{
    struct {
        const char *key;
        struct str value; /* empty: the default */
    } texts[] = {
        {"direction", how->direction && how->direction != DIRECTION_BOTH
                          ? str_from(directions[how->direction - 1])
                          : STR("")},
        {"for", how->for_ns ? write_duration(arena, how->for_ns) : STR("")},
        {"cpu", how->cpu_percent ? arena_printf(arena, "%u%%", how->cpu_percent) : STR("")},
        {"loss", how->loss_ppm
                     ? arena_printf(arena, "%u.%04u%%", how->loss_ppm / 10000, how->loss_ppm % 10000)
                     : STR("")},
        {"tier", how->tier == TIER_STORAGE ? STR("storage") : STR("")},
        {"code", how->code},
        {"place", how->place},
        {"chip", how->chip >= 0 ? arena_printf(arena, "%lld", (long long)how->chip) : STR("")},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].value.len)
            doc_set(arena, spec, str_from(texts[i].key), doc_new_str(arena, texts[i].value));
}
