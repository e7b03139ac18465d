/* load_qualification.c - spec.qualification: the tests that machines must pass, and their thresholds. */
#include "doc/json.h"
#include "core/model/load.h"

#define VALID_DEFAULT_NS   (24 * 3600 * NS_PER_SECOND)
#define VALID_MAX_NS       (365 * 24 * 3600 * NS_PER_SECOND)
#define TIMEOUT_DEFAULT_NS (120 * NS_PER_SECOND)
#define PAIR_DEFAULT_NS    (30 * NS_PER_SECOND)
#define TIMEOUT_MIN_NS     (1 * NS_PER_SECOND)
#define TIMEOUT_MAX_NS     (3600 * NS_PER_SECOND)
enum { PAIR_PORT_DEFAULT = 29400 };
enum { STRAGGLER_DEFAULT = 200, STRAGGLER_MIN = 101, STRAGGLER_MAX = 100000 }; /* percent */

/* The settings that a class may have; others are inherited. */
struct terms {
    const struct doc *tests; /* NULL: the defaults */
    const struct doc *golden;
    int64_t seconds;
};

static void check_tests(struct loader *loader, const struct field *tests)
{
    if (!load_list(loader, tests))
        return;
    for (size_t i = 0; i < doc_len(tests->doc); i++) {
        struct field item = field_at(tests, i);
        enum qualify_test test;
        struct str text;
        if (load_text(loader, &item, &text) && (!qualify_test_find(text, &test) || test == QUALIFY_PAIR))
            load_fail(loader, &item, "FieldValueNotSupported",
                      "Unsupported value: \"" STR_FORMAT
                      "\": supported values: \"cpu\", \"memory\", \"disk\", \"loopback\", \"gpu\"",
                      STR_ARG(load_excerpt(text)));
    }
}

static void check_golden(struct loader *loader, const struct field *golden)
{
    if (!load_present(golden))
        return;
    if (golden->doc->kind != DOC_OBJECT) {
        load_fail(loader, golden, "FieldValueTypeInvalid",
                  "Invalid value: %s: must be an object of figures and thresholds",
                  doc_kind_name(golden->doc->kind));
        return;
    }
    for (size_t i = 0; i < golden->doc->object.len; i++) {
        const struct doc_member *member = &golden->doc->object.members[i];
        struct field value = {.parent = golden, .key = load_excerpt(member->key), .doc = member->value};
        bool number = member->value->kind == DOC_INT || member->value->kind == DOC_FLOAT;
        if (!qualify_figure_find(member->key))
            load_fail(loader, &value, "FieldValueNotSupported",
                      "Unsupported value: no test gives this figure");
        else if (!number || (member->value->kind == DOC_INT && member->value->integer < 0) ||
                 (member->value->kind == DOC_FLOAT && !(member->value->number >= 0)))
            load_fail(loader, &value, "FieldValueInvalid", "Invalid value: must be a number, not below 0");
    }
}

static void read_terms(struct loader *loader, const struct field *field, const struct terms *above,
                       struct terms *ret)
{
    struct field tests = field_get(field, "tests"), golden = field_get(field, "golden");
    struct field seconds = field_get(field, "seconds");
    *ret = *above;
    check_tests(loader, &tests);
    check_golden(loader, &golden);
    load_int(loader, &seconds, QUALIFY_SECONDS_MIN, QUALIFY_SECONDS_MAX, &ret->seconds);
    if (load_present(&tests))
        ret->tests = tests.doc;
    if (load_present(&golden))
        ret->golden = golden.doc;
}

/* Returns the thresholds as JSON. Numbers are copied as text: the core uses no floats. */
static struct str golden_json(struct arena *arena, const struct doc *golden)
{
    struct buf text BUF_CLEANUP = {0};
    if (golden)
        json_write(&text, golden);
    else
        buf_printf(&text, "{}");
    return arena_str(arena, buf_str(&text));
}

static struct str body_json(struct arena *arena, const struct terms *terms, struct str golden)
{
    struct buf text BUF_CLEANUP = {0};
    struct json_writer json = {.out = &text};
    json_begin_object(&json);
    if (terms->tests) {
        json_key(&json, "tests");
        json_put_doc(&json, terms->tests);
    }
    json_pair_int(&json, "seconds", terms->seconds);
    json_key(&json, "golden");
    json_put_raw(&json, golden);
    json_end_object(&json);
    return arena_str(arena, buf_str(&text));
}

static void add_class(struct loader *loader, struct str name, struct labels labels, const struct terms *terms)
{
    struct arena *arena = &loader->cluster->arena;
    struct qualification *settings = &loader->cluster->qualification;
    struct str golden = loader->failures ? STR("{}") : golden_json(arena, terms->golden);
    settings->classes[settings->class_count++] =
        (struct qualify_class){.name = name,
                               .labels = labels,
                               .body = loader->failures ? STR("{}") : body_json(arena, terms, golden),
                               .golden = golden,
                               .seconds = terms->seconds};
}

/* Reads labels that select machines; they may be labels that the controller sets. */
static struct labels read_selector(struct loader *loader, const struct field *field)
{
    struct arena *arena = &loader->cluster->arena;
    struct labels labels = {0};
    if (!load_present(field) || field->doc->kind != DOC_OBJECT || field->doc->object.len == 0) {
        load_required(loader, field, "labels of the class's machines");
        return labels;
    }
    labels.items = ARENA_ARRAY(arena, struct label, field->doc->object.len);
    for (size_t i = 0; i < field->doc->object.len; i++) {
        const struct doc_member *member = &field->doc->object.members[i];
        struct field value = {.parent = field, .key = load_excerpt(member->key), .doc = member->value};
        if (!name_is_label_key(member->key) || member->value->kind != DOC_STRING ||
            !name_is_label_value(member->value->text))
            load_fail(loader, &value, "FieldValueInvalid",
                      "Invalid value: must be a label's key and value (quote numbers, true and false)");
        else
            labels.items[labels.len++] =
                (struct label){arena_str(arena, member->key), arena_str(arena, member->value->text)};
    }
    return labels;
}

static void read_class(struct loader *loader, const struct field *field, const struct terms *above)
{
    static const char *const known[] = {"name", "labels", "tests", "seconds", "golden", NULL};
    struct field name = field_get(field, "name"), labels = field_get(field, "labels");
    struct terms terms;
    struct str text = STR("");
    load_object(loader, field, known);
    if (!load_present(&name))
        load_required(loader, &name, "the class's name");
    load_text(loader, &name, &text);
    struct labels selector = read_selector(loader, &labels);
    read_terms(loader, field, above, &terms);
    add_class(loader, arena_str(&loader->cluster->arena, text), selector, &terms);
}

static void read_mode(struct loader *loader, const struct field *mode)
{
    struct qualification *settings = &loader->cluster->qualification;
    if (!load_present(mode))
        return;
    if (mode->doc->kind == DOC_BOOL)
        settings->preflight = mode->doc->boolean ? PREFLIGHT_ON : PREFLIGHT_OFF;
    else if (!preflight_mode_find(doc_str(mode->doc, STR("")), &settings->preflight))
        load_fail(loader, mode, "FieldValueNotSupported",
                  "Unsupported value: supported values: true, false, pairs");
}

void load_qualification(struct loader *loader, const struct field *field)
{
    static const char *const known[] = {"preflight", "validFor", "timeout", "pairTimeout", "pairPort",
                                        "tests",     "seconds",  "golden",  "classes",     "stragglerPercent",
                                        NULL};
    struct qualification *settings = &loader->cluster->qualification;
    struct field mode = field_get(field, "preflight"), valid = field_get(field, "validFor");
    struct field timeout = field_get(field, "timeout"), pair = field_get(field, "pairTimeout");
    struct field straggler = field_get(field, "stragglerPercent");
    struct field port = field_get(field, "pairPort"), classes = field_get(field, "classes");
    struct terms defaults = {.seconds = QUALIFY_SECONDS_DEFAULT}, terms;
    *settings = (struct qualification){.valid_ns = VALID_DEFAULT_NS,
                                       .timeout_ns = TIMEOUT_DEFAULT_NS,
                                       .pair_timeout_ns = PAIR_DEFAULT_NS,
                                       .straggler_percent = STRAGGLER_DEFAULT,
                                       .pair_port = PAIR_PORT_DEFAULT};
    load_object(loader, field, known);
    read_mode(loader, &mode);
    load_duration(loader, &valid, 0, VALID_MAX_NS, &settings->valid_ns);
    load_duration(loader, &timeout, TIMEOUT_MIN_NS, TIMEOUT_MAX_NS, &settings->timeout_ns);
    load_duration(loader, &pair, TIMEOUT_MIN_NS, TIMEOUT_MAX_NS, &settings->pair_timeout_ns);
    load_int(loader, &straggler, STRAGGLER_MIN, STRAGGLER_MAX, &settings->straggler_percent);
    load_int(loader, &port, 1024, UINT16_MAX - QUALIFY_PAIR_PORTS, &settings->pair_port);
    read_terms(loader, field, &defaults, &terms);
    size_t count = load_list(loader, &classes) ? doc_len(classes.doc) : 0;
    if (count > QUALIFY_CLASSES_MAX) {
        load_fail(loader, &classes, "FieldValueTooLong", "Too many: %zu classes: at most %d", count,
                  QUALIFY_CLASSES_MAX);
        count = 0;
    }
    settings->classes = ARENA_ARRAY(&loader->cluster->arena, struct qualify_class, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct field item = field_at(&classes, i);
        read_class(loader, &item, &terms);
    }
    add_class(loader, STR("default"), (struct labels){0}, &terms);
}
