#include "cmd/lemons_import.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "doc/json.h"
#include "base/vec.h"
#include "cmd/client.h"
#include "cmd/cluster_file.h"
#include "core/health/table.h"
#include "core/lemon/history.h"

enum { FIELDS = 5, COLUMNS_MAX = 64 };

static const char *const field_names[FIELDS] = {"machine", "start", "end", "cause", "domain"};

struct failure {
    struct str machine; /* in the file's text */
    int64_t start_ns, end_ns;
    bool counts; /* a failure of hardware */
};

struct verdict {
    struct str machine;
    int64_t at_ns;
    bool again; /* the machine failed again within the window */
};

struct history {
    const char *path;
    struct arena text; /* fields */
    bool headed;       /* the first line names the columns */
    uint8_t fields[COLUMNS_MAX]; /* `headed`: the field in each column; FIELDS: an unknown one */
    struct fault_table *table;
    VEC(struct failure) failures;
    VEC(struct verdict) verdicts; /* machines that became lemons, by time */
    struct cluster cluster;       /* settings */
    struct lemon_history *lemons;
    struct str_map out; /* machine -> struct failure: the newest that took the machine out of service */
    size_t machines;    /* number of machines in the history */
};

static bool wrong(const struct history *history, uint32_t line, const char *field, struct str value,
                  const char *wanted)
{
    say("%s:%u: %s \"" STR_FORMAT "\": must be %s", history->path, line, field, STR_ARG(value), wanted);
    return false;
}

/* --- a line --------------------------------------------------------------------------------------------- */

/* Takes the next field from *rest. A quoted field may contain commas, and "" for a quote. */
static struct str next_field(struct arena *arena, struct str *rest)
{
    struct str text = *rest, head, tail = {0};
    if (!text.len || text.data[0] != '"') {
        bool more = str_cut(text, ',', &head, &tail);
        *rest = more ? tail : (struct str){0};
        return str_trim(more ? head : text);
    }
    char *copy = arena_alloc(arena, text.len);
    size_t len = 0, at = 1;
    for (; at < text.len; at++) {
        if (text.data[at] == '"' && (at + 1 == text.len || text.data[at + 1] != '"'))
            break;
        at += text.data[at] == '"';
        copy[len++] = text.data[at];
    }
    while (at < text.len && text.data[at] != ',')
        at++;
    *rest = at < text.len ? (struct str){text.data + at + 1, text.len - at - 1} : (struct str){0};
    return (struct str){copy, len};
}

static bool read_time(struct arena *arena, struct str text, int64_t *ret_ns)
{
    int64_t seconds;
    if (str_to_i64(text, 0, INT64_MAX / NS_PER_SECOND, &seconds)) {
        *ret_ns = seconds * NS_PER_SECOND;
        return true;
    }
    struct str day, hour;
    if (str_cut(text, ' ', &day, &hour))
        text = arena_printf(arena, STR_FORMAT "T" STR_FORMAT "%sZ", STR_ARG(day), STR_ARG(hour),
                            hour.len == 5 ? ":00" : "");
    else if (text.len == 10)
        text = arena_printf(arena, STR_FORMAT "T00:00:00Z", STR_ARG(text));
    return time_parse(text, ret_ns) && *ret_ns >= 0;
}

static bool is_word(struct str text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.data ? text.data : "", word, text.len) == 0;
}

static enum fault_domain domain_of_cause(const struct history *history, struct str cause)
{
    static const struct {
        const char *word;
        enum fault_domain domain;
    } words[] = {
        {"hardware", DOMAIN_HARDWARE},
        {"software", DOMAIN_SOFTWARE},
        {"user", DOMAIN_USER},
        {"human error", DOMAIN_USER},
        {"human", DOMAIN_USER},
        {"network", DOMAIN_UNKNOWN},
        {"environment", DOMAIN_UNKNOWN},
        {"facilities", DOMAIN_UNKNOWN},
        {"undetermined", DOMAIN_UNKNOWN},
        {"unknown", DOMAIN_UNKNOWN},
        {"", DOMAIN_UNKNOWN},
        /* Causes that are acts of people or controllers, and not failures of the machine. */
        {"injected", DOMAIN_USER},
        {"injection", DOMAIN_USER},
        {"drain", DOMAIN_USER},
        {"maintenance", DOMAIN_USER},
        {"planned", DOMAIN_USER},
        {"shutdown", DOMAIN_USER},
        {"preempted", DOMAIN_USER},
        {"preemption", DOMAIN_USER},
        {"controller-away", DOMAIN_SOFTWARE},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(cause, words[i].word))
            return words[i].domain;
    struct str family, name;
    if (str_cut(cause, '/', &family, &name))
        return fault_table_rule(history->table, cause, SEVERITY_MAJOR)->domain;
    return DOMAIN_HARDWARE;
}

static bool read_domain(const struct history *history, uint32_t line, struct str text, struct str cause,
                        enum fault_domain *ret)
{
    *ret = domain_of_cause(history, cause);
    if (!text.len)
        return true;
    for (int domain = 0; domain < DOMAINS; domain++)
        if (str_is(text, fault_domain_names[domain])) {
            *ret = (enum fault_domain)domain;
            return true;
        }
    return wrong(history, line, "domain", text, "hardware, software, user, unknown, or empty");
}

static bool read_line(struct history *history, uint32_t number, struct str line)
{
    struct str fields[FIELDS + 1] = {0}, rest = line;
    for (size_t i = 0; i < (history->headed ? COLUMNS_MAX : FIELDS); i++)
        fields[history->headed ? history->fields[i] : i] = next_field(&history->text, &rest);
    struct failure failure = {.machine = fields[0]};
    enum fault_domain domain;
    if (rest.len)
        return wrong(history, number, "field 6", rest, "absent: a line is machine,start,end,cause[,domain]");
    if (!failure.machine.len || failure.machine.len > NAME_MAX_BYTES)
        return wrong(history, number, "machine", failure.machine, "a name of 1 to 253 bytes");
    if (!read_time(&history->text, fields[1], &failure.start_ns))
        return wrong(history, number, "start", fields[1],
                     "a time such as 2026-03-01T04:00:00Z, 2026-03-01 04:00, or seconds since 1970");
    failure.end_ns = failure.start_ns;
    if (fields[2].len &&
        (!read_time(&history->text, fields[2], &failure.end_ns) || failure.end_ns < failure.start_ns))
        return wrong(history, number, "end", fields[2], "empty, or a time that is not before start");
    if (!read_domain(history, number, fields[4], fields[3], &domain))
        return false;
    failure.counts = domain == DOMAIN_HARDWARE;
    vec_push(&history->failures, failure);
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct failure *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return str_compare(x->machine, y->machine);
}

/* Reads the names of the columns from the first line. Returns false if that line is a failure already. */
static bool read_heading(struct history *history, struct str line)
{
    bool machine = false, start = false;
    for (size_t i = 0; i < COLUMNS_MAX; i++) {
        struct str name = next_field(&history->text, &line);
        uint8_t field = 0;
        while (field < FIELDS && !(name.len == strlen(field_names[field]) &&
                                   strncasecmp(name.data, field_names[field], name.len) == 0))
            field++;
        history->fields[i] = field;
        machine = machine || field == 0;
        start = start || field == 1;
    }
    history->headed = machine && start;
    return history->headed;
}

static bool read_history(struct history *history, struct str text)
{
    struct str mark = STR("\xef\xbb\xbf"); /* the byte order mark of spreadsheets */
    uint32_t number = 0;
    if (str_starts(text, mark))
        text = (struct str){text.data + mark.len, text.len - mark.len};
    while (text.len) {
        struct str line = text, rest = {0};
        if (str_cut(text, '\n', &line, &rest))
            text = rest;
        else
            text = (struct str){0};
        line = str_trim(line);
        if (++number == 1 && read_heading(history, line))
            continue;
        if (line.len && line.data[0] != '#' && !read_line(history, number, line))
            return false;
    }
    if (!history->failures.len) {
        say("%s: contains no failure; expected lines machine,start,end,cause[,domain]", history->path);
        return false;
    }
    qsort(history->failures.items, history->failures.len, sizeof *history->failures.items, by_start);
    return true;
}

/* --- judging -------------------------------------------------------------------------------------------- */

static void take_verdicts(struct history *history, int64_t now_ns)
{
    struct str machine;
    while (lemon_history_next(history->lemons, &machine)) {
        struct verdict became = {arena_str(&history->text, machine), now_ns, false};
        vec_push(&history->verdicts, became);
    }
}

static int64_t window_ns(const struct history *history)
{
    return history->cluster.policy.lemons.window_days * LEMON_DAY_NS;
}

/* Confirms the verdicts on this machine whose window includes this failure. */
static void confirm(struct history *history, const struct failure *failure)
{
    for (size_t i = 0; i < history->verdicts.len; i++) {
        struct verdict *verdict = &history->verdicts.items[i];
        verdict->again |= str_equal(verdict->machine, failure->machine) &&
                          failure->start_ns - verdict->at_ns <= window_ns(history);
    }
}

static void judge(struct history *history)
{
    for (size_t i = 0; i < history->failures.len; i++) {
        struct failure *failure = &history->failures.items[i];
        const struct failure *before = str_map_get(&history->out, failure->machine);
        history->machines += !before;
        lemon_history_at(history->lemons, failure->start_ns);
        take_verdicts(history, failure->start_ns);
        bool out = before && failure->start_ns < before->end_ns;
        if (!before || failure->end_ns > before->end_ns) {
            str_map_remove(&history->out, failure->machine);
            str_map_put(&history->out, failure->machine, failure);
        }
        if (!failure->counts || out)
            continue;
        confirm(history, failure);
        lemon_history_failed(history->lemons, failure->machine);
        take_verdicts(history, failure->start_ns);
    }
}

/* --- output --------------------------------------------------------------------------------------------- */

struct listing {
    struct history *history;
    VEC(const struct lemon *) lemons;
    bool all;
};

static void list(void *context, const struct lemon *lemon)
{
    struct listing *listing = context;
    if (listing->all || lemon->is_lemon)
        vec_push(&listing->lemons, lemon);
}

static int worst_first(const void *a, const void *b, void *context)
{
    const struct lemon *x = *(const struct lemon *const *)a, *y = *(const struct lemon *const *)b;
    const struct lemon_settings *settings = context;
    int64_t left = lemon_score(x, settings), right = lemon_score(y, settings);
    if (x->is_lemon != y->is_lemon)
        return x->is_lemon ? -1 : 1;
    if (left != right)
        return left > right ? -1 : 1;
    return str_compare(x->machine, y->machine);
}

static struct str since_text(struct arena *arena, const struct lemon *lemon)
{
    char text[32];
    if (!lemon->is_lemon)
        return STR("-");
    time_format(lemon->since_ns, text);
    return arena_printf(arena, "%s", text);
}

static void put_table(const struct listing *listing, struct buf *out)
{
    static const char *const names[] = {"MACHINE", "LEMON", "SCORE", "SINCE", "EVIDENCE"};
    const struct lemon_settings *settings = &listing->history->cluster.policy.lemons;
    struct text_table table = {.columns = sizeof names / sizeof *names};
    table_heads(&table, names);
    for (size_t i = 0; i < listing->lemons.len; i++) {
        const struct lemon *lemon = listing->lemons.items[i];
        struct buf why BUF_CLEANUP = {0};
        lemon_describe(lemon, settings, &why);
        table_add(&table, lemon->machine);
        table_add(&table, lemon->is_lemon ? STR("yes") : STR("no"));
        table_add(&table, arena_printf(&table.arena, "%lld%%", (long long)lemon_score(lemon, settings)));
        table_add(&table, since_text(&table.arena, lemon));
        table_add(&table, arena_str(&table.arena, buf_str(&why)));
    }
    if (listing->lemons.len)
        table_print(&table, out, output_colors());
    table_done(&table);
}

/* Counts the verdicts whose window the history covers, and how many of them a failure in that window
 * confirmed. */
static void count_confirmed(const struct history *history, size_t *ret_judged, size_t *ret_again)
{
    int64_t last_ns = vec_last(&history->failures).start_ns;
    *ret_judged = *ret_again = 0;
    for (size_t i = 0; i < history->verdicts.len; i++) {
        bool covered = last_ns - history->verdicts.items[i].at_ns >= window_ns(history);
        *ret_judged += covered;
        *ret_again += covered && history->verdicts.items[i].again;
    }
}

/* Returns the number of machines that were ever lemons. */
static size_t count_lemons(const struct history *history)
{
    size_t count = 0;
    for (size_t i = 0; i < history->verdicts.len; i++) {
        bool known = false;
        for (size_t k = 0; k < i && !known; k++)
            known = str_equal(history->verdicts.items[k].machine, history->verdicts.items[i].machine);
        count += !known;
    }
    return count;
}

static void put_summary(const struct history *history, struct buf *out)
{
    size_t judged, again, lemons = count_lemons(history);
    count_confirmed(history, &judged, &again);
    buf_printf(out, "%zu of the %zu machines that failed were lemons at some time", lemons,
               history->machines);
    if (judged)
        buf_printf(out, "; %zu of %zu lemons failed again within %lld days (%zu %%)", again, judged,
                   (long long)history->cluster.policy.lemons.window_days,
                   (again * 100 + judged / 2) / judged);
    buf_add_char(out, '\n');
}

static void put_json(const struct listing *listing, struct buf *out)
{
    const struct history *history = listing->history;
    const struct lemon_settings *settings = &history->cluster.policy.lemons;
    struct json_writer json = {.out = out};
    struct arena arena ARENA_CLEANUP = {0};
    size_t judged, again;
    count_confirmed(history, &judged, &again);
    json_begin_object(&json);
    json_key(&json, "items");
    json_begin_array(&json);
    for (size_t i = 0; i < listing->lemons.len; i++) {
        const struct lemon *lemon = listing->lemons.items[i];
        struct buf why BUF_CLEANUP = {0};
        lemon_describe(lemon, settings, &why);
        json_begin_object(&json);
        json_pair_str(&json, "machine", lemon->machine);
        json_pair_bool(&json, "lemon", lemon->is_lemon);
        json_pair_int(&json, "score", lemon_score(lemon, settings));
        if (lemon->is_lemon)
            json_pair_str(&json, "since", since_text(&arena, lemon));
        json_pair_str(&json, "evidence", buf_str(&why));
        json_end_object(&json);
    }
    json_end_array(&json);
    json_pair_int(&json, "machines", (int64_t)history->machines);
    json_pair_int(&json, "everLemons", (int64_t)count_lemons(history));
    json_pair_int(&json, "judged", (int64_t)judged);
    json_pair_int(&json, "failedAgain", (int64_t)again);
    json_end_object(&json);
    buf_add_char(out, '\n');
}

static void show(struct history *history, bool all, bool json)
{
    struct buf out BUF_CLEANUP = {0};
    struct listing listing = {.history = history, .all = all};
    lemon_visit(lemon_history_store(history->lemons), list, &listing);
    if (listing.lemons.len > 1)
        qsort_r(listing.lemons.items, listing.lemons.len, sizeof(*listing.lemons.items), worst_first,
                &history->cluster.policy.lemons);
    if (json) {
        put_json(&listing, &out);
    } else {
        put_table(&listing, &out);
        put_summary(history, &out);
    }
    output_write(&out);
    vec_done(&listing.lemons);
}

/* --- the command ---------------------------------------------------------------------------------------- */

static bool load_settings(const char *cluster_path, struct cluster *ret_cluster)
{
    static const char plain[] =
        "{\"apiVersion\":\"phalanx.dev/"
        "v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"imported\"},\"spec\":{"
        "\"machineNames\":\"m-{n}\",\"addresses\":\"10.0.0.1\",\"pods\":[{\"racks\":[{\"machines\":1,"
        "\"chips\":1}]}]}}";
    struct buf text BUF_CLEANUP = {0};
    if (cluster_path)
        return cluster_file_load(cluster_path, ret_cluster, &text);
    struct arena arena ARENA_CLEANUP = {0};
    struct field_errors errors = {.arena = &arena};
    struct doc *document;
    CHECK(json_parse(&arena, str_from(plain), &document, NULL) == 0);
    CHECK(cluster_load(document, ret_cluster, &errors));
    field_errors_done(&errors);
    return true;
}

int lemons_import(const char *path, const char *cluster_path, bool all, bool json)
{
    struct buf text BUF_CLEANUP = {0};
    struct history history = {.path = path};
    if (!load_settings(cluster_path, &history.cluster))
        return EXIT_FAILED;
    history.table = fault_table_new(NULL);
    history.lemons = lemon_history_new(&history.cluster.policy.lemons);
    bool read = cluster_file_text(path, &text) && read_history(&history, buf_str(&text));
    if (read) {
        judge(&history);
        show(&history, all, json);
    }
    lemon_history_free(history.lemons);
    fault_table_free(history.table);
    cluster_done(&history.cluster);
    vec_done(&history.failures);
    vec_done(&history.verdicts);
    str_map_done(&history.out);
    arena_done(&history.text);
    return read ? EXIT_OK : EXIT_FAILED;
}
