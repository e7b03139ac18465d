#include "host/qualify/internal.h"

#include "doc/json.h"

static int fail_at(struct error *error, const struct doc *doc, const char *field, const char *what)
{
    if (doc && doc->line)
        return error_set(error, ERROR_INVALID, "%u:%u: %s: %s", doc->line, doc->column, field, what);
    return error_set(error, ERROR_INVALID, "%s: %s", field, what);
}

int qualify_golden_read(const struct doc *doc, struct qualify_golden *ret, struct error *error)
{
    struct qualify_golden golden = {0};
    if (!doc || doc->kind != DOC_OBJECT)
        return fail_at(error, doc, "golden", "expected an object of figures and thresholds");
    for (size_t i = 0; i < doc->object.len; i++) {
        const struct doc_member *member = &doc->object.members[i];
        const struct qualify_figure *figure = qualify_figure_find(member->key);
        char name[64];
        size_t len = member->key.len < sizeof name ? member->key.len : sizeof name - 1;
        memcpy(name, member->key.data, len);
        name[len] = 0;
        if (!figure)
            return fail_at(error, member->value, name, "no test gives this figure");
        double limit = member->value->kind == DOC_INT     ? (double)member->value->integer
                       : member->value->kind == DOC_FLOAT ? member->value->number
                                                          : -1;
        if (!(limit >= 0))
            return fail_at(error, member->value, name, "expected a number from 0");
        golden.given[figure - qualify_figures] = true;
        golden.limit[figure - qualify_figures] = limit;
    }
    *ret = golden;
    return 0;
}

static int check_fields(const struct doc *body, const char *const *known, struct error *error)
{
    for (size_t i = 0; i < body->object.len; i++) {
        const struct doc_member *member = &body->object.members[i];
        size_t k = 0;
        while (known[k] && !str_is(member->key, known[k]))
            k++;
        if (!known[k])
            return error_set(error, ERROR_INVALID, "%u:%u: " STR_FORMAT ": unknown field", member->line,
                             member->column, STR_ARG(member->key));
    }
    return 0;
}

static int read_number(const struct doc *body, const char *field, int64_t min, int64_t max, int64_t *ret,
                       struct error *error)
{
    const struct doc *value = doc_get(body, field);
    if (!value)
        return 0;
    if (value->kind != DOC_INT || value->integer < min || value->integer > max)
        return error_set(error, ERROR_INVALID, "%u:%u: %s: expected a number from %lld to %lld", value->line,
                         value->column, field, (long long)min, (long long)max);
    *ret = value->integer;
    return 0;
}

static int read_tests(const struct doc *list, struct qualify_options *options, struct error *error)
{
    if (!list)
        return 0;
    if (list->kind != DOC_ARRAY)
        return fail_at(error, list, "tests", "expected a list");
    memset(options->tests, 0, sizeof options->tests);
    for (size_t i = 0; i < doc_len(list); i++) {
        enum qualify_test test;
        if (!qualify_test_find(doc_str(doc_at(list, i), STR("")), &test) || test == QUALIFY_PAIR)
            return fail_at(error, doc_at(list, i), "tests", "no such test of one machine");
        options->tests[test] = true;
    }
    return 0;
}

static int read_end(const struct doc *body, struct arena *arena, struct qualify_pair *pair,
                    struct error *error)
{
    const struct doc *listen = doc_get(body, "listen"), *connect = doc_get(body, "connect");
    struct str text = doc_str(listen ? listen : connect, STR("")), host, port;
    int64_t number;
    if (!listen == !connect)
        return error_set(error, ERROR_INVALID, "expected one of listen and connect");
    if (!str_cut(text, ':', &host, &port) || !str_to_i64(port, 1, UINT16_MAX, &number))
        return fail_at(error, listen ? listen : connect, listen ? "listen" : "connect",
                       "expected ADDRESS:PORT");
    pair->listens = listen != NULL;
    pair->host = arena_strdup(arena, host);
    pair->port = (uint16_t)number;
    return 0;
}

static int read_pair(const struct doc *body, struct arena *arena, struct qualify_options *options,
                     struct error *error)
{
    static const char *const known[] = {"listen", "connect", "epoch", "deadline", "bytes", "golden", NULL};
    int64_t epoch = 0, deadline = 30, bytes = 0;
    int rc = check_fields(body, known, error);
    if (rc == 0)
        rc = read_end(body, arena, &options->pair, error);
    if (rc == 0)
        rc = read_number(body, "epoch", 0, INT64_MAX, &epoch, error);
    if (rc == 0)
        rc = read_number(body, "deadline", 1, QUALIFY_SECONDS_MAX, &deadline, error);
    if (rc == 0)
        rc = read_number(body, "bytes", 1, INT64_C(1) << 40, &bytes, error);
    if (rc < 0)
        return rc;
    options->pair.epoch = (uint64_t)epoch;
    options->pair.deadline_ns = deadline * NS_PER_SECOND;
    options->pair.bytes = (uint64_t)bytes;
    memset(options->tests, 0, sizeof options->tests);
    options->tests[QUALIFY_PAIR] = true;
    return 0;
}

static int read_alone(const struct doc *body, struct qualify_options *options, struct error *error)
{
    static const char *const known[] = {"tests", "seconds", "golden", NULL};
    int64_t seconds = QUALIFY_SECONDS_DEFAULT;
    int rc = check_fields(body, known, error);
    if (rc == 0)
        rc = read_number(body, "seconds", QUALIFY_SECONDS_MIN, QUALIFY_SECONDS_MAX, &seconds, error);
    options->budget_ns = seconds * NS_PER_SECOND;
    return rc == 0 ? read_tests(doc_get(body, "tests"), options, error) : rc;
}

int qualify_order_read(struct str body, bool pair, struct arena *arena, struct qualify_options *options,
                       struct error *error)
{
    struct doc *doc;
    int rc = json_parse(arena, body, &doc, error);
    if (rc == 0 && doc->kind != DOC_OBJECT)
        rc = error_set(error, ERROR_INVALID, "expected an object");
    if (rc == 0)
        rc = pair ? read_pair(doc, arena, options, error) : read_alone(doc, options, error);
    if (rc == 0 && doc_get(doc, "golden"))
        rc = qualify_golden_read(doc_get(doc, "golden"), &options->golden, error);
    return rc < 0 ? error_wrap(error, "order") : 0;
}
