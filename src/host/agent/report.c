#include "host/agent/report.h"

#include "doc/json.h"

enum { MEMORY_MAX = 4 * 1024 * 1024 };

static const char *const assertions[] = {"occur", "recover", "once"};
static const char *const severities[] = {"notice", "minor", "major", "critical"};

/* Returns the index of the member's text in `names`, `fallback` if it is absent, or -1 if it is none of
 * them. */
static int name_of(const struct doc *object, const char *key, const char *const *names, int count,
                   int fallback)
{
    const struct doc *node = doc_get(object, key);
    for (int i = 0; node && i < count; i++)
        if (str_is(doc_str(node, STR("")), names[i]))
            return i;
    return node ? -1 : fallback;
}

static int wrong(struct error *error, size_t index, const struct doc *place, const char *what)
{
    return error_set(error, ERROR_INVALID, "%u:%u: signal %zu: %s", place->line, place->column, index, what);
}

static int check_members(const struct doc *object, size_t index, struct error *error)
{
    static const char *const texts[] = {"code", "place", "evidence", "assertion", "severity"};
    if (object->kind != DOC_OBJECT)
        return wrong(error, index, object, "expected an object");
    for (size_t i = 0; i < object->object.len; i++) {
        const struct doc_member *member = &object->object.members[i];
        bool text = false;
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            text = text || str_is(member->key, texts[k]);
        if (!text && !str_is(member->key, "chip"))
            return error_set(error, ERROR_INVALID, "%u:%u: signal %zu: unknown member \"%.*s\"", member->line,
                             member->column, index, (int)(member->key.len < 40 ? member->key.len : 40),
                             member->key.data);
        if (member->value->kind != (text ? DOC_STRING : DOC_INT))
            return error_set(error, ERROR_INVALID, "%u:%u: signal %zu: \"" STR_FORMAT "\" is %s",
                             member->value->line, member->value->column, index, STR_ARG(member->key),
                             text ? "a text" : "a whole number");
    }
    return 0;
}

static int read_signal(const struct doc *object, size_t index, uint32_t chips, int64_t now_ns,
                       struct signal *ret, struct error *error)
{
    int rc = check_members(object, index, error);
    if (rc < 0)
        return rc;
    int assertion = name_of(object, "assertion", assertions, 3, 0);
    int severity = name_of(object, "severity", severities, 4, SEVERITY_MAJOR - 1);
    int64_t chip = doc_int(doc_get(object, "chip"), -1);
    if (assertion < 0)
        return wrong(error, index, doc_get(object, "assertion"), "assertion is occur, recover or once");
    if (severity < 0)
        return wrong(error, index, doc_get(object, "severity"),
                     "severity is notice, minor, major or critical");
    if (chip < -1 || chip >= (int64_t)chips)
        return wrong(error, index, doc_get(object, "chip"), "the machine has no such chip");
    struct signal signal = {.code = doc_str(doc_get(object, "code"), STR("")),
                            .assertion = (enum signal_assertion)(SIGNAL_OCCUR + assertion),
                            .severity = (enum signal_severity)(SEVERITY_NOTICE + severity),
                            .chip = (int32_t)chip,
                            .first_ns = now_ns,
                            .last_ns = now_ns,
                            .count = 1};
    if (!signal_is_valid(&signal))
        return wrong(error, index, object,
                     "code is a family and a name of lower case letters, digits and '-' with one '/' between "
                     "them, at most 63 bytes");
    signal.place = doc_str(doc_get(object, "place"), STR(""));
    if (!signal_is_valid(&signal))
        return wrong(error, index, doc_get(object, "place"), "place has at most 127 printable ASCII bytes");
    signal.evidence = doc_str(doc_get(object, "evidence"), STR(""));
    if (!signal_is_valid(&signal))
        return wrong(error, index, doc_get(object, "evidence"),
                     "evidence has at most 512 bytes, none of them 0");
    *ret = signal;
    return 0;
}

int report_parse(struct arena *arena, struct str text, uint32_t chips, int64_t now_ns,
                 struct signal **ret_signals, size_t *ret_count, struct error *error)
{
    struct doc *document;
    arena->limit_bytes = arena->used_bytes + MEMORY_MAX;
    int rc = json_parse(arena, text, &document, error);
    arena->limit_bytes = 0;
    if (rc < 0)
        return rc;
    bool list = document->kind == DOC_ARRAY;
    size_t count = list ? document->array.len : 1;
    if (count > REPORT_SIGNALS_MAX)
        return error_set(error, ERROR_LIMIT, "%zu signals at once, at most %d", count, REPORT_SIGNALS_MAX);
    struct signal *signals = ARENA_ARRAY(arena, struct signal, count);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = read_signal(list ? document->array.items[i] : document, i, chips, now_ns, &signals[i], error);
    if (rc < 0)
        return rc;
    *ret_signals = signals;
    *ret_count = count;
    return 0;
}
