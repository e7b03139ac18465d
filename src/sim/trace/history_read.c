/* history_read.c - a strict reader of histories. A line is a directive, its words, and members KEY=VALUE. */
#include "sim/trace/internal.h"

#include <stdio.h>

#include "base/map.h"
#include "base/units.h"
#include "sim/trace/history.h"

enum { HISTORY_WORDS_MAX = 2, HISTORY_KEYS_MAX = 18 };

struct history_reader {
    struct trace_reader lines;
    struct history *history;
    struct str_map machines; /* name -> 1 + index */
    bool began, ended;
};

/* The members that a line may have. */
struct history_rule {
    const char *name;
    const char *words[HISTORY_WORDS_MAX + 1];
    const char *keys[HISTORY_KEYS_MAX + 1]; /* the first `required` ones must be present */
    size_t required;
    int (*take)(struct history_reader *reader, const struct str *words, const struct str *values);
};

enum { KEY_UNTIL, KEY_CODE, KEY_KILLS };
enum { KEY_CHIPS, KEY_RACK, KEY_SPARE };
enum {
    KEY_RANKS,
    KEY_RANK_CHIPS,
    KEY_RUN,
    KEY_END,
    KEY_LAUNCH,
    KEY_LOAD,
    KEY_STOP,
    KEY_SAVE,
    KEY_WRITE,
    KEY_KEEPS,
    KEY_CRASHES,
    KEY_QUEUE,
    KEY_PRIORITY,
    KEY_RECOVERY,
    KEY_WAIT,
    KEY_HELD,
    KEY_RESTARTS,
    KEY_REDONE
};

/* --- values --------------------------------------------------------------------------------------- */

static int history_wrong(struct history_reader *reader, struct str value, const char *what,
                         const char *wanted)
{
    return trace_wrong(&reader->lines, value, what, wanted);
}

/* Reads seconds with up to six decimals, as microseconds. Returns false if the text is not such a number, or
 * too large. */
static bool history_time_parse(struct str text, int64_t *ret_us)
{
    struct str whole = text, fraction = {0};
    int64_t seconds, micro = 0;
    bool has_point = str_cut(text, '.', &whole, &fraction);
    if (!str_to_i64(whole, 0, HISTORY_TIME_MAX_US / 1000000, &seconds) || (whole.len && whole.data[0] == '+'))
        return false;
    if (has_point && (fraction.len < 1 || fraction.len > 6))
        return false;
    for (size_t i = 0; i < 6; i++) {
        char digit = i < fraction.len ? fraction.data[i] : '0';
        if (digit < '0' || digit > '9')
            return false;
        micro = 10 * micro + (digit - '0');
    }
    *ret_us = seconds * 1000000 + micro;
    return *ret_us <= HISTORY_TIME_MAX_US;
}

/* Reads a time. An absent value leaves *ret_us as it is. */
static int history_take_time(struct history_reader *reader, struct str value, const char *what,
                             int64_t *ret_us)
{
    if (!value.data || history_time_parse(value, ret_us))
        return 0;
    return history_wrong(reader, value, what, "seconds with at most six decimals");
}

static int history_take_count(struct history_reader *reader, struct str value, const char *what, int64_t min,
                              int64_t max, int64_t *ret)
{
    char wanted[64];
    if (!value.data || str_to_i64(value, min, max, ret))
        return 0;
    snprintf(wanted, sizeof wanted, "a number from %lld to %lld", (long long)min, (long long)max);
    return history_wrong(reader, value, what, wanted);
}

static int history_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes a text with %XX escapes into the history's arena. An absent value leaves *ret as it is. */
static int history_take_text(struct history_reader *reader, struct str value, const char *what,
                             struct str *ret)
{
    char text[HISTORY_NAME_MAX + 1];
    size_t len = 0;
    if (!value.data)
        return 0;
    for (size_t i = 0; i < value.len; i++) {
        char c = value.data[i];
        if (c == '%') {
            int high = i + 2 < value.len ? history_hex(value.data[i + 1]) : -1;
            int low = i + 2 < value.len ? history_hex(value.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return history_wrong(reader, (struct str){value.data + i, value.len - i}, what,
                                     "two hexadecimal digits behind %");
            c = (char)(16 * high + low);
            i += 2;
        } else if (c <= ' ' || c > '~') {
            return history_wrong(reader, (struct str){value.data + i, value.len - i}, what,
                                 "printable ASCII, and %XX for other bytes");
        }
        if (len == HISTORY_NAME_MAX)
            return history_wrong(reader, value, what, "at most 511 bytes");
        text[len++] = c;
    }
    if (len == 0)
        return history_wrong(reader, value, what, "a text");
    *ret = arena_str(&reader->history->arena, (struct str){text, len});
    return 0;
}

/* --- lines ---------------------------------------------------------------------------------------- */

static int history_take_begin(struct history_reader *reader, const struct str *words,
                              const struct str *values)
{
    (void)values;
    if (reader->began)
        return history_wrong(reader, reader->lines.line, "begin", "one begin");
    if (!time_parse(words[0], &reader->history->begin_ns))
        return history_wrong(reader, words[0], "begin", "a time such as 2026-03-01T12:00:00Z");
    reader->began = true;
    return 0;
}

static int history_take_end(struct history_reader *reader, const struct str *words, const struct str *values)
{
    (void)values;
    if (reader->ended)
        return history_wrong(reader, reader->lines.line, "end", "one end");
    reader->ended = true;
    return history_take_time(reader, words[0], "end", &reader->history->end_us);
}

static int history_take_policy(struct history_reader *reader, const struct str *words,
                               const struct str *values)
{
    (void)values;
    struct history_policy policy = {0};
    int rc = history_take_text(reader, words[0], "policy", &policy.path);
    if (rc == 0)
        rc = history_take_text(reader, words[1], "policy", &policy.value);
    if (rc == 0)
        vec_push(&reader->history->policy, policy);
    return rc;
}

static int history_take_machine(struct history_reader *reader, const struct str *words,
                                const struct str *values)
{
    struct history *history = reader->history;
    struct history_machine machine = {0};
    int64_t chips = 0, spare = 0;
    int rc = history_take_text(reader, words[0], "machine", &machine.name);
    if (rc == 0)
        rc = history_take_count(reader, values[KEY_CHIPS], "chips", 1, HISTORY_CHIPS_MAX, &chips);
    if (rc == 0)
        rc = history_take_text(reader, values[KEY_RACK], "rack", &machine.rack);
    if (rc == 0)
        rc = history_take_count(reader, values[KEY_SPARE], "spare", 0, 1, &spare);
    if (rc < 0)
        return rc;
    if (str_map_get(&reader->machines, machine.name))
        return history_wrong(reader, words[0], "machine", "a name of its own");
    if (history->machines.len == HISTORY_MACHINES_MAX)
        return error_set(reader->lines.error, ERROR_LIMIT, "%s:%u: more than %d machines", reader->lines.file,
                         reader->lines.number, HISTORY_MACHINES_MAX);
    machine.chips = (uint32_t)chips;
    machine.spare = spare == 1;
    vec_push(&history->machines, machine);
    str_map_put(&reader->machines, machine.name, (void *)(uintptr_t)history->machines.len);
    return 0;
}

/* Reads the end of an entry that began at `at_us`; "-" means that it is open. */
static int history_take_until(struct history_reader *reader, struct str value, int64_t at_us,
                              bool may_be_open, int64_t *ret_us)
{
    *ret_us = -1;
    if (may_be_open && str_is(value, "-"))
        return 0;
    int rc = history_take_time(reader, value, "until", ret_us);
    if (rc == 0 && *ret_us < at_us)
        return history_wrong(reader, value, "until", "a time that is not before the beginning");
    return rc;
}

static int history_take_out(struct history_reader *reader, const struct str *words, const struct str *values,
                            bool fault)
{
    struct history_outage outage = {0};
    struct str name = {0};
    int64_t kills = 0;
    int rc = history_take_time(reader, words[0], "time", &outage.at_us);
    if (rc == 0)
        rc = history_take_text(reader, words[1], "machine", &name);
    uintptr_t place = rc == 0 ? (uintptr_t)str_map_get(&reader->machines, name) : 1;
    if (place == 0)
        return history_wrong(reader, words[1], "machine", "the name of a machine of an earlier line");
    if (rc == 0)
        rc = history_take_until(reader, values[KEY_UNTIL], outage.at_us, true, &outage.until_us);
    if (rc == 0 && fault)
        rc = history_take_text(reader, values[KEY_CODE], "code", &outage.code);
    if (rc == 0 && fault)
        rc = history_take_count(reader, values[KEY_KILLS], "kills", 0, 1, &kills);
    if (rc < 0)
        return rc;
    outage.machine = (uint32_t)(place - 1);
    outage.kills = kills == 1;
    vec_push(&reader->history->outages, outage);
    return 0;
}

static int history_take_down(struct history_reader *reader, const struct str *words, const struct str *values)
{
    return history_take_out(reader, words, values, false);
}

static int history_take_fault(struct history_reader *reader, const struct str *words,
                              const struct str *values)
{
    return history_take_out(reader, words, values, true);
}

static int history_take_gap(struct history_reader *reader, const struct str *words, const struct str *values)
{
    struct history_gap gap = {0};
    int rc = history_take_time(reader, words[0], "time", &gap.at_us);
    if (rc == 0)
        rc = history_take_until(reader, values[KEY_UNTIL], gap.at_us, false, &gap.until_us);
    if (rc == 0)
        vec_push(&reader->history->gaps, gap);
    return rc;
}

/* --- jobs ----------------------------------------------------------------------------------------- */

static int history_take_crashes(struct history_reader *reader, struct str value, struct history_job *job)
{
    size_t count = value.data ? 1 : 0;
    for (size_t i = 0; i < value.len; i++)
        count += value.data[i] == ',';
    if (count > HISTORY_CRASHES_MAX)
        return history_wrong(reader, value, "crashes", "at most 10000 times");
    job->crashes_us = ARENA_ARRAY(&reader->history->arena, int64_t, count);
    while (job->crash_count < count) {
        struct str item = value, rest = {0};
        str_cut(value, ',', &item, &rest);
        int64_t *at = &job->crashes_us[job->crash_count];
        int rc = history_take_time(reader, item, "crashes", at);
        if (rc < 0)
            return rc;
        if (job->crash_count > 0 && at[0] < at[-1])
            return history_wrong(reader, item, "crashes", "times that never fall");
        job->crash_count++;
        value = rest;
    }
    return 0;
}

static int history_take_fate(struct history_reader *reader, const struct str *values, struct history_job *job)
{
    job->seen.wait_us = -1;
    job->is_seen = values[KEY_WAIT].data != NULL;
    if (!job->is_seen)
        return values[KEY_HELD].data ? history_wrong(reader, values[KEY_HELD], "held", "wait beside it")
               : values[KEY_RESTARTS].data
                   ? history_wrong(reader, values[KEY_RESTARTS], "restarts", "wait beside it")
               : values[KEY_REDONE].data
                   ? history_wrong(reader, values[KEY_REDONE], "redone", "wait beside it")
                   : 0;
    int rc = 0;
    if (!str_is(values[KEY_WAIT], "-"))
        rc = history_take_time(reader, values[KEY_WAIT], "wait", &job->seen.wait_us);
    if (rc == 0)
        rc = history_take_time(reader, values[KEY_HELD], "held", &job->seen.held_us);
    if (rc == 0)
        rc = history_take_count(reader, values[KEY_RESTARTS], "restarts", 0, INT32_MAX, &job->seen.restarts);
    if (rc == 0)
        rc = history_take_time(reader, values[KEY_REDONE], "redone", &job->seen.redone_us);
    return rc;
}

static int history_take_times(struct history_reader *reader, const struct str *values,
                              struct history_job *job)
{
    job->launch_us = job->load_us = job->stop_us = job->save_us = -1;
    int rc = history_take_time(reader, values[KEY_RUN], "run", &job->run_us);
    if (rc == 0)
        rc = history_take_time(reader, values[KEY_LAUNCH], "launch", &job->launch_us);
    if (rc == 0)
        rc = history_take_time(reader, values[KEY_LOAD], "load", &job->load_us);
    if (rc == 0)
        rc = history_take_time(reader, values[KEY_STOP], "stop", &job->stop_us);
    if (rc == 0)
        rc = history_take_time(reader, values[KEY_SAVE], "save", &job->save_us);
    if (rc == 0)
        rc = history_take_time(reader, values[KEY_WRITE], "write", &job->write_us);
    if (rc == 0 && job->save_us == 0)
        return history_wrong(reader, values[KEY_SAVE], "save", "more than 0");
    if (rc == 0)
        rc = history_take_crashes(reader, values[KEY_CRASHES], job);
    return rc;
}

static int history_take_job(struct history_reader *reader, const struct str *words, const struct str *values)
{
    struct history_job job = {0};
    int64_t ranks = 0, chips = 0, keeps = 0;
    int end = 0;
    int rc = history_take_time(reader, words[0], "time", &job.submit_us);
    if (rc == 0)
        rc = history_take_text(reader, words[1], "job", &job.name);
    if (rc == 0)
        rc = history_take_count(reader, values[KEY_RANKS], "ranks", 1, HISTORY_RANKS_MAX, &ranks);
    if (rc == 0)
        rc = history_take_count(reader, values[KEY_RANK_CHIPS], "chips", 0, HISTORY_CHIPS_MAX, &chips);
    if (rc == 0)
        rc = history_take_times(reader, values, &job);
    while (end < HISTORY_ENDS && !str_is(values[KEY_END], history_end_names[end]))
        end++;
    if (rc == 0 && end == HISTORY_ENDS)
        return history_wrong(reader, values[KEY_END], "end", "completed, failed, cancelled or running");
    if (rc == 0)
        rc = history_take_text(reader, values[KEY_QUEUE], "queue", &job.queue);
    if (rc == 0)
        rc =
            history_take_count(reader, values[KEY_PRIORITY], "priority", INT32_MIN, INT32_MAX, &job.priority);
    if (rc == 0)
        rc = history_take_text(reader, values[KEY_RECOVERY], "recovery", &job.recovery);
    if (rc == 0)
        rc = history_take_count(reader, values[KEY_KEEPS], "keeps", 0, 1, &keeps);
    if (rc == 0)
        rc = history_take_fate(reader, values, &job);
    if (rc < 0)
        return rc;
    job.ranks = (uint32_t)ranks;
    job.chips = (uint32_t)chips;
    job.keeps = keeps == 1;
    job.end = (enum history_end)end;
    vec_push(&reader->history->jobs, job);
    return 0;
}

/* --- the whole ------------------------------------------------------------------------------------ */

static const struct history_rule history_rules[] = {
    {"begin", {"date"}, {0}, 0, history_take_begin},
    {"end", {"time"}, {0}, 0, history_take_end},
    {"policy", {"path", "value"}, {0}, 0, history_take_policy},
    {"machine", {"name"}, {"chips", "rack", "spare"}, 1, history_take_machine},
    {"down", {"time", "machine"}, {"until"}, 1, history_take_down},
    {"fault", {"time", "machine"}, {"until", "code", "kills"}, 2, history_take_fault},
    {"gap", {"time"}, {"until"}, 1, history_take_gap},
    {"job",
     {"time", "name"},
     {"ranks", "chips", "run", "end", "launch", "load", "stop", "save", "write", "keeps", "crashes", "queue",
      "priority", "recovery", "wait", "held", "restarts", "redone"},
     4,
     history_take_job},
};
enum { HISTORY_RULES = sizeof history_rules / sizeof *history_rules };

/* Takes the next word, up to a blank. Returns false at the end of the line. */
static bool history_next_word(struct str *rest, struct str *ret)
{
    struct str head, tail;
    if (rest->len == 0)
        return false;
    if (!str_cut(*rest, ' ', &head, &tail)) {
        head = *rest;
        tail = (struct str){rest->data + rest->len, 0};
    }
    *ret = head;
    *rest = tail;
    return true;
}

static int history_take_member(struct history_reader *reader, const struct history_rule *rule,
                               struct str word, struct str *values)
{
    struct str key, value;
    size_t at = 0;
    if (!str_cut(word, '=', &key, &value))
        return history_wrong(reader, word, rule->name, "KEY=VALUE, after one blank");
    while (rule->keys[at] && !str_is(key, rule->keys[at]))
        at++;
    if (!rule->keys[at])
        return history_wrong(reader, key, rule->name, "a key that this line may have");
    if (values[at].data)
        return history_wrong(reader, key, rule->name, "each key once");
    values[at] = value;
    return 0;
}

static int history_line(struct history_reader *reader)
{
    struct str rest = reader->lines.line, name, word, words[HISTORY_WORDS_MAX] = {0};
    struct str values[HISTORY_KEYS_MAX] = {0};
    size_t at = 0;
    history_next_word(&rest, &name);
    while (at < HISTORY_RULES && !str_is(name, history_rules[at].name))
        at++;
    if (at == HISTORY_RULES)
        return history_wrong(reader, name, "line",
                             "begin, end, policy, machine, down, fault, gap or job at its beginning");
    const struct history_rule *rule = &history_rules[at];
    for (size_t i = 0; rule->words[i]; i++)
        if (!history_next_word(&rest, &words[i]) || words[i].len == 0)
            return history_wrong(reader, rest, rule->words[i], "a word, after one blank");
    while (history_next_word(&rest, &word)) {
        int rc = history_take_member(reader, rule, word, values);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < rule->required; i++)
        if (!values[i].data)
            return history_wrong(reader, rest, rule->keys[i], "a value");
    return rule->take(reader, words, values);
}

/* Checks that `begin` and `end` are present, and that no entry is after the end. */
static int history_check(struct history_reader *reader)
{
    const struct history *history = reader->history;
    const char *missing = !reader->began ? "begin" : !reader->ended ? "end" : NULL;
    int64_t last_us = 0;
    if (missing)
        return error_set(reader->lines.error, ERROR_INVALID, "%s:%u:1: expected a line \"%s\", got the end",
                         reader->lines.file, reader->lines.number + 1, missing);
    for (size_t i = 0; i < history->outages.len; i++) {
        const struct history_outage *outage = &history->outages.items[i];
        last_us = outage->at_us > last_us ? outage->at_us : last_us;
        last_us = outage->until_us > last_us ? outage->until_us : last_us;
    }
    for (size_t i = 0; i < history->gaps.len; i++)
        last_us = history->gaps.items[i].until_us > last_us ? history->gaps.items[i].until_us : last_us;
    for (size_t i = 0; i < history->jobs.len; i++)
        last_us = history->jobs.items[i].submit_us > last_us ? history->jobs.items[i].submit_us : last_us;
    if (last_us > history->end_us)
        return error_set(
            reader->lines.error, ERROR_INVALID,
            "%s:%u:1: end: expected a time that no line passes, got %lld.%06lld before %lld.%06lld",
            reader->lines.file, reader->lines.number, (long long)(history->end_us / 1000000),
            (long long)(history->end_us % 1000000), (long long)(last_us / 1000000),
            (long long)(last_us % 1000000));
    return 0;
}

static int history_read_lines(struct history_reader *reader)
{
    struct trace_reader *lines = &reader->lines;
    if (!trace_next_line(lines) || !str_is(lines->line, HISTORY_HEAD)) {
        lines->number = lines->number ? lines->number : 1;
        return history_wrong(reader, lines->line, "first line", "\"" HISTORY_HEAD "\"");
    }
    while (trace_next_line(lines)) {
        if (lines->number > HISTORY_LINES_MAX)
            return error_set(lines->error, ERROR_LIMIT, "%s: more than %d lines", lines->file,
                             HISTORY_LINES_MAX);
        int rc = lines->line.len > 0 && lines->line.data[0] != '#' ? history_line(reader) : 0;
        if (rc < 0)
            return rc;
    }
    return history_check(reader);
}

bool history_is(struct str text)
{
    return str_starts(text, STR("phalanx-trace "));
}

int history_read(struct history *ret_history, struct str text, const char *file, struct error *error)
{
    struct history history = {0};
    struct history_reader reader = {.lines = {.file = file, .error = error, .text = text},
                                    .history = &history};
    int rc = history_read_lines(&reader);
    str_map_done(&reader.machines);
    if (rc < 0) {
        history_done(&history);
        return rc;
    }
    history_order(&history);
    *ret_history = history;
    return 0;
}
