/* scenario.c - reads scenario files; docs/inject.md describes them for users.
 *
 * A document is a scenario if and only if every member is known at its level and has the right type, and each
 * step has an action, an object to which the action applies, and at most one moment. */
#include <stdio.h>

#include "base/units.h"
#include "doc/yaml.h"
#include "host/inject/inject.h"

enum { ARENA_BYTES_MAX = 16 << 20 };

struct reading {
    struct arena *arena;
    struct error *error;
};

static int wrong(struct reading *reading, const struct doc *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int wrong(struct reading *reading, const struct doc *node, const char *format, ...)
{
    char why[ERROR_TEXT_MAX / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return error_set(reading->error, ERROR_INVALID, "%u:%u: %s", node ? node->line : 1,
                     node ? node->column : 1, why);
}

static int wrong_key(struct reading *reading, const struct doc_member *member, const char *where)
{
    return error_set(reading->error, ERROR_INVALID, "%u:%u: %s has no member \"" STR_FORMAT "\"",
                     member->line, member->column, where, (int)(member->key.len < 60 ? member->key.len : 60),
                     member->key.data);
}

static int take_text(struct reading *reading, const struct doc *node, const char *what, struct str *ret)
{
    if (node->kind != DOC_STRING || node->text.len == 0)
        return wrong(reading, node, "%s is a text, not %s", what, doc_kind_name(node->kind));
    *ret = node->text;
    return 0;
}

static int take_number(struct reading *reading, const struct doc *node, const char *what, int64_t low,
                       int64_t high, int64_t *ret)
{
    if (node->kind != DOC_INT || node->integer < low || node->integer > high)
        return wrong(reading, node, "%s is a whole number from %lld to %lld", what, (long long)low,
                     (long long)high);
    *ret = node->integer;
    return 0;
}

static int take_duration(struct reading *reading, const struct doc *node, const char *what, int64_t *ret)
{
    int64_t value = node->kind == DOC_INT && node->integer >= 0 && node->integer <= INT32_MAX
                        ? node->integer * NS_PER_SECOND
                        : -1;
    if (value < 0 && (node->kind != DOC_STRING || !duration_parse(node->text, &value)))
        return wrong(reading, node, "%s is a duration such as 500ms, 5s or 2m", what);
    *ret = value;
    return 0;
}

static int need_object(struct reading *reading, const struct doc *node, const char *what)
{
    return node->kind == DOC_OBJECT && doc_len(node) > 0
               ? 0
               : wrong(reading, node, "%s is a list of members, not %s", what, doc_kind_name(node->kind));
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static int read_when(struct reading *reading, const struct doc *node, struct scenario_step *step)
{
    int rc = need_object(reading, node, "when");
    bool told = false;
    for (size_t i = 0; i < doc_len(node) && rc == 0; i++) {
        const struct doc_member *member = &node->object.members[i];
        bool moment = str_is(member->key, "step") || str_is(member->key, "condition");
        if (moment && told)
            return wrong(reading, member->value, "when has a step or a condition, not both");
        told |= moment;
        if (str_is(member->key, "step")) {
            step->moment = MOMENT_STEP;
            rc = take_number(reading, member->value, "step", 0, INT64_MAX / 2, &step->step);
        } else if (str_is(member->key, "condition")) {
            step->moment = MOMENT_CONDITION;
            rc = take_text(reading, member->value, "condition", &step->condition);
        } else if (str_is(member->key, "job")) {
            rc = take_text(reading, member->value, "job", &step->job);
        } else {
            rc = wrong_key(reading, member, "when");
        }
    }
    return rc == 0 && !told ? wrong(reading, node, "when needs a step or a condition") : rc;
}

static int read_object(struct reading *reading, struct doc *node, struct scenario_step *step)
{
    struct error why = {0};
    struct str text = {0};
    int rc = take_text(reading, node, "object", &text);
    if (rc < 0)
        return rc;
    if (step->object_count == SCENARIO_OBJECTS_MAX)
        return wrong(reading, node, "at most %d objects in a step", SCENARIO_OBJECTS_MAX);
    step->object_nodes[step->object_count] = node;
    if (inject_selector_parse(text, &step->objects[step->object_count++], &why) < 0)
        return wrong(reading, node, "%s", why.text);
    return 0;
}

static int read_objects(struct reading *reading, struct doc *node, struct scenario_step *step)
{
    size_t room = node->kind == DOC_ARRAY ? doc_len(node) : 1;
    room = room < SCENARIO_OBJECTS_MAX ? room : SCENARIO_OBJECTS_MAX;
    step->objects = ARENA_ARRAY(reading->arena, struct inject_selector, room);
    step->object_nodes = ARENA_ARRAY(reading->arena, struct doc *, room);
    step->object_count = 0;
    if (node->kind != DOC_ARRAY)
        return read_object(reading, node, step);
    int rc = doc_len(node) ? 0 : wrong(reading, node, "object names nothing");
    for (size_t i = 0; i < doc_len(node) && rc == 0; i++)
        rc = read_object(reading, doc_at(node, i), step);
    return rc;
}

static int read_option(struct reading *reading, const struct doc_member *member, struct scenario_step *step)
{
    struct error why = {0};
    struct str value = {0};
    if (member->value->kind == DOC_INT)
        value = arena_printf(reading->arena, "%lld", (long long)member->value->integer);
    else if (member->value->kind == DOC_STRING)
        value = member->value->text;
    int rc = inject_how_set(&step->how, member->key, value, &why);
    if (rc == ERROR_NOT_FOUND)
        return wrong_key(reading, member, "a step");
    return rc < 0 ? wrong(reading, member->value, "%s", why.text) : 0;
}

static int read_step_member(struct reading *reading, const struct doc_member *member,
                            struct scenario_step *step)
{
    struct str key = member->key, text;
    struct doc *value = member->value;
    int64_t number = 0;
    int rc;
    if (str_is(key, "name"))
        return take_text(reading, value, "name", &step->name);
    if (str_is(key, "at") || str_is(key, "after")) {
        step->moment = str_is(key, "at") ? MOMENT_AT : MOMENT_AFTER;
        return take_duration(reading, value, str_is(key, "at") ? "at" : "after", &step->at_ns);
    }
    if (str_is(key, "when"))
        return read_when(reading, value, step);
    if (str_is(key, "object"))
        return read_objects(reading, value, step);
    if (str_is(key, "every"))
        return take_duration(reading, value, "every", &step->every_ns);
    if (str_is(key, "jitter"))
        return take_duration(reading, value, "jitter", &step->jitter_ns);
    if (str_is(key, "repeat")) {
        rc = take_number(reading, value, "repeat", 1, SCENARIO_REPEAT_MAX, &number);
        step->repeat = (uint32_t)number;
        return rc;
    }
    if (str_is(key, "pick")) {
        rc = take_number(reading, value, "pick", 1, SCENARIO_OBJECTS_MAX, &number);
        step->pick = (size_t)number;
        return rc;
    }
    if (!str_is(key, "action"))
        return read_option(reading, member, step);
    rc = take_text(reading, value, "action", &text);
    if (rc == 0 && !inject_action_find(text, &step->action))
        rc = wrong(reading, value, "\"" STR_FORMAT "\" is not an action",
                   (int)(text.len < 60 ? text.len : 60), text.data);
    return rc;
}

static int check_step(struct reading *reading, const struct doc *node, struct scenario_step *step)
{
    bool slow = step->how.cpu_percent || step->how.loss_ppm;
    size_t which;
    const char *action = inject_action_names[step->action];
    const char *why = inject_settle(step->objects, step->object_count, &step->action, &step->how, &which);
    if (why)
        return wrong(reading, step->object_nodes[which], "%s: %s", action, why);
    if (step->pick > step->object_count)
        return wrong(reading, node, "pick is more than there are objects");
    if (step->action == ACTION_SLOW && !slow)
        return wrong(reading, node, "slow needs cpu or loss");
    if (step->action == ACTION_LIE && !step->how.code.len)
        return wrong(reading, node, "lie needs a code, the fault to report");
    if (step->how.for_ns && !inject_stands(step->action))
        return wrong(reading, node, "%s cannot be undone: no \"for\"", inject_action_names[step->action]);
    if (step->repeat > 1 && !step->every_ns)
        return wrong(reading, node, "repeat needs \"every\"");
    return 0;
}

static int read_step(struct reading *reading, const struct doc *node, struct scenario_step *step)
{
    *step = (struct scenario_step){.how = inject_how_default(), .repeat = 1, .moment = MOMENT_AFTER};
    step->line = node->line;
    step->column = node->column;
    int rc = need_object(reading, node, "a step"), moments = 0;
    for (size_t i = 0; i < doc_len(node) && rc == 0; i++) {
        const struct doc_member *member = &node->object.members[i];
        moments += str_is(member->key, "at") || str_is(member->key, "after") || str_is(member->key, "when");
        rc = moments > 1 ? wrong(reading, member->value, "a step has one of at, after and when")
                         : read_step_member(reading, member, step);
    }
    if (rc == 0 && (!doc_get(node, "action") || !doc_get(node, "object")))
        rc = wrong(reading, node, "a step needs an action and an object");
    return rc == 0 ? check_step(reading, node, step) : rc;
}

static int read_steps(struct reading *reading, const struct doc *node, struct scenario *scenario)
{
    if (node->kind != DOC_ARRAY || doc_len(node) == 0)
        return wrong(reading, node, "steps is a list with at least one step");
    if (doc_len(node) > SCENARIO_STEPS_MAX)
        return wrong(reading, node, "at most %d steps", SCENARIO_STEPS_MAX);
    scenario->steps = ARENA_ARRAY(reading->arena, struct scenario_step, doc_len(node));
    int rc = 0;
    for (size_t i = 0; i < doc_len(node) && rc == 0; i++)
        rc = read_step(reading, doc_at(node, i), &scenario->steps[scenario->step_count++]);
    return rc;
}

/* --- expectations --------------------------------------------------------------------------------------- */

static int read_file_expect(struct reading *reading, const struct doc *node, struct scenario_expect *expect)
{
    int rc = need_object(reading, node, "file");
    for (size_t i = 0; i < doc_len(node) && rc == 0; i++) {
        const struct doc_member *member = &node->object.members[i];
        if (str_is(member->key, "path"))
            rc = take_text(reading, member->value, "path", &expect->path);
        else if (str_is(member->key, "equals"))
            rc = take_text(reading, member->value, "equals", &expect->text);
        else if (str_is(member->key, "sameAs"))
            rc = take_text(reading, member->value, "sameAs", &expect->same_as);
        else
            rc = wrong_key(reading, member, "file");
    }
    if (rc == 0 && (!expect->path.len || !expect->text.len == !expect->same_as.len))
        rc = wrong(reading, node, "file needs a path, and equals or sameAs");
    return rc;
}

static int read_restarts(struct reading *reading, const struct doc *node, struct scenario_expect *expect)
{
    int rc = need_object(reading, node, "restarts");
    expect->high = INT64_MAX;
    for (size_t i = 0; i < doc_len(node) && rc == 0; i++) {
        const struct doc_member *member = &node->object.members[i];
        if (str_is(member->key, "atLeast"))
            rc = take_number(reading, member->value, "atLeast", 0, INT32_MAX, &expect->low);
        else if (str_is(member->key, "atMost"))
            rc = take_number(reading, member->value, "atMost", 0, INT32_MAX, &expect->high);
        else
            rc = wrong_key(reading, member, "restarts");
    }
    return rc;
}

static int read_expect(struct reading *reading, const struct doc *node, struct scenario_expect *expect)
{
    *expect = (struct scenario_expect){.line = node->line, .column = node->column};
    int rc = need_object(reading, node, "an expectation");
    if (rc < 0)
        return rc;
    if (doc_len(node) != 1)
        return wrong(reading, node, "an expectation has one member");
    const struct doc_member *member = &node->object.members[0];
    const struct doc *value = member->value;
    if (str_is(member->key, "completes")) {
        expect->what = EXPECT_COMPLETES;
        return take_duration(reading, value, "completes", &expect->ns);
    }
    if (str_is(member->key, "file")) {
        expect->what = EXPECT_FILE;
        return read_file_expect(reading, value, expect);
    }
    if (str_is(member->key, "recoveredWithin")) {
        expect->what = EXPECT_RECOVERED;
        return take_duration(reading, value, "recoveredWithin", &expect->ns);
    }
    if (str_is(member->key, "survivorsKeepTheirProcesses")) {
        expect->what = EXPECT_SURVIVORS;
        return value->kind == DOC_BOOL && value->boolean
                   ? 0
                   : wrong(reading, value, "survivorsKeepTheirProcesses is true, or is left out");
    }
    if (str_is(member->key, "rung")) {
        expect->what = EXPECT_RUNG;
        return take_text(reading, value, "rung", &expect->text);
    }
    if (str_is(member->key, "restarts")) {
        expect->what = EXPECT_RESTARTS;
        return read_restarts(reading, value, expect);
    }
    if (str_is(member->key, "stepsLost")) {
        expect->what = EXPECT_STEPS_LOST;
        return take_number(reading, value, "stepsLost", 0, INT32_MAX, &expect->high);
    }
    return wrong_key(reading, member, "an expectation");
}

static int read_expects(struct reading *reading, const struct doc *node, struct scenario *scenario)
{
    if (node->kind != DOC_ARRAY || doc_len(node) > SCENARIO_EXPECT_MAX)
        return wrong(reading, node, "expect is a list of at most %d", SCENARIO_EXPECT_MAX);
    scenario->expects = ARENA_ARRAY(reading->arena, struct scenario_expect, doc_len(node));
    int rc = 0;
    for (size_t i = 0; i < doc_len(node) && rc == 0; i++)
        rc = read_expect(reading, doc_at(node, i), &scenario->expects[scenario->expect_count++]);
    return rc;
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static int read_member(struct reading *reading, const struct doc_member *member, struct scenario *scenario)
{
    struct str key = member->key;
    int64_t number = 0;
    if (str_is(key, "name"))
        return take_text(reading, member->value, "name", &scenario->name);
    if (str_is(key, "job"))
        return take_text(reading, member->value, "job", &scenario->job);
    if (str_is(key, "timeout"))
        return take_duration(reading, member->value, "timeout", &scenario->timeout_ns);
    if (str_is(key, "steps"))
        return read_steps(reading, member->value, scenario);
    if (str_is(key, "expect"))
        return read_expects(reading, member->value, scenario);
    if (!str_is(key, "seed"))
        return wrong_key(reading, member, "a scenario");
    int rc = take_number(reading, member->value, "seed", 0, INT64_MAX, &number);
    scenario->has_seed = true;
    scenario->seed = (uint64_t)number;
    return rc;
}

int scenario_read(struct arena *arena, struct str text, struct scenario *ret, struct error *error)
{
    struct reading reading = {arena, error};
    struct scenario scenario = {.timeout_ns = 600 * NS_PER_SECOND};
    struct doc_list documents = {0};
    arena->limit_bytes = ARENA_BYTES_MAX;
    int rc = yaml_parse_all(arena, text, &documents, error);
    if (rc < 0)
        return rc;
    if (documents.len != 1)
        return error_set(error, ERROR_INVALID, "1:1: expected one document, got %zu", documents.len);
    const struct doc *root = documents.items[0];
    rc = need_object(&reading, root, "a scenario");
    for (size_t i = 0; i < doc_len(root) && rc == 0; i++)
        rc = read_member(&reading, &root->object.members[i], &scenario);
    if (rc == 0 && !scenario.step_count)
        rc = wrong(&reading, root, "a scenario needs steps");
    if (rc == 0)
        *ret = scenario;
    return rc;
}
