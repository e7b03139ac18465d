#include "sim/capacity/field.h"

#include <math.h>
#include <stdio.h>

#include "base/nearest.h"
#include "base/units.h"
#include "doc/json.h"

enum { VALUE_SHOWN_MAX = 60 };

/* Writes the value as JSON, cut to `size` bytes, or "nothing" if it is absent. */
static void field_show(const struct doc *doc, char *ret_text, size_t size)
{
    struct buf json BUF_CLEANUP = {0};
    if (!doc) {
        snprintf(ret_text, size, "nothing");
        return;
    }
    if (doc->kind == DOC_ARRAY || doc->kind == DOC_OBJECT) {
        snprintf(ret_text, size, "%s", doc->kind == DOC_ARRAY ? "a list" : "an object");
        return;
    }
    json_write(&json, doc);
    struct str head = str_head_utf8(buf_str(&json), VALUE_SHOWN_MAX);
    snprintf(ret_text, size, STR_FORMAT "%s", STR_ARG(head), head.len < json.len ? "..." : "");
}

void field_says(struct reader *reader, const struct place *place, const char *format, ...)
{
    if (reader->failed)
        return;
    reader->failed = true;
    char why[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    const struct doc *at = place->doc ? place->doc : place->parent;
    error_set(reader->error, ERROR_INVALID, "%s:%u:%u: %s: %s", reader->file, at ? at->line : 1,
              at ? at->column : 1, place->path[0] ? place->path : "the document", why);
}

void field_wrong(struct reader *reader, const struct place *place, const char *wanted)
{
    char value[VALUE_SHOWN_MAX + 8];
    field_show(place->doc, value, sizeof value);
    field_says(reader, place, "expected %s, got %s", wanted, value);
}

struct place field_of(const struct place *object, const char *key)
{
    struct place place = {.doc = object->doc && object->doc->kind == DOC_OBJECT ? doc_get(object->doc, key)
                                                                                : NULL,
                          .parent = object->doc ? object->doc : object->parent};
    if (place.doc && place.doc->kind == DOC_NULL)
        place.doc = NULL;
    snprintf(place.path, sizeof place.path, "%.120s%s%.70s", object->path, object->path[0] ? "." : "", key);
    return place;
}

struct place field_item(const struct place *array, size_t index)
{
    struct place place = {.doc = doc_at(array->doc, index), .parent = array->doc};
    snprintf(place.path, sizeof place.path, "%.170s[%zu]", array->path, index);
    return place;
}

static void field_unknown(struct reader *reader, const struct place *place, const struct doc_member *member,
                          const char *const *known)
{
    struct doc at = {.line = member->line, .column = member->column};
    struct place where = {.doc = &at};
    struct nearest nearest = nearest_to(member->key);
    for (; *known; known++)
        nearest_offer(&nearest, str_from(*known));
    struct str key = str_head_utf8(member->key, 70);
    snprintf(where.path, sizeof where.path, "%.120s%s" STR_FORMAT, place->path, place->path[0] ? "." : "",
             STR_ARG(key));
    if (nearest.best.len)
        field_says(reader, &where, "unknown field; did you mean \"" STR_FORMAT "\"?", STR_ARG(nearest.best));
    else
        field_says(reader, &where, "unknown field");
}

bool field_object(struct reader *reader, const struct place *place, const char *const *known)
{
    if (!place->doc)
        return false;
    if (place->doc->kind != DOC_OBJECT) {
        field_wrong(reader, place, "an object");
        return false;
    }
    for (size_t i = 0; i < place->doc->object.len; i++) {
        const struct doc_member *member = &place->doc->object.members[i];
        bool found = false;
        for (const char *const *name = known; *name && !found; name++)
            found = str_is(member->key, *name);
        if (!found)
            field_unknown(reader, place, member, known);
    }
    return true;
}

bool field_array(struct reader *reader, const struct place *place)
{
    if (place->doc && place->doc->kind != DOC_ARRAY)
        field_wrong(reader, place, "a list");
    return place->doc && place->doc->kind == DOC_ARRAY;
}

void field_count(struct reader *reader, const struct place *place, int64_t min, int64_t max, int64_t *ret)
{
    char wanted[80];
    if (!place->doc)
        return;
    snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld", (long long)min, (long long)max);
    if (place->doc->kind != DOC_INT || place->doc->integer < min || place->doc->integer > max)
        field_wrong(reader, place, wanted);
    else
        *ret = place->doc->integer;
}

void field_number(struct reader *reader, const struct place *place, double min, double max, double *ret)
{
    char wanted[80];
    if (!place->doc)
        return;
    double value = place->doc->kind == DOC_INT     ? (double)place->doc->integer
                   : place->doc->kind == DOC_FLOAT ? place->doc->number
                                                   : (double)NAN;
    snprintf(wanted, sizeof wanted, "a number from %g to %g", min, max);
    if (!(value >= min && value <= max))
        field_wrong(reader, place, wanted);
    else
        *ret = value;
}

void field_bool(struct reader *reader, const struct place *place, bool *ret)
{
    if (!place->doc)
        return;
    if (place->doc->kind != DOC_BOOL)
        field_wrong(reader, place, "true or false");
    else
        *ret = place->doc->boolean;
}

void field_text(struct reader *reader, const struct place *place, char *ret, size_t size)
{
    if (!place->doc)
        return;
    struct str text = place->doc->text;
    bool fine = place->doc->kind == DOC_STRING && text.len < size;
    for (size_t i = 0; fine && i < text.len; i++)
        fine = text.data[i] >= ' ' && text.data[i] <= '~';
    char wanted[80];
    snprintf(wanted, sizeof wanted, "a text of at most %zu printable characters", size - 1);
    if (!fine)
        field_wrong(reader, place, wanted);
    else
        snprintf(ret, size, STR_FORMAT, STR_ARG(text));
}

static bool field_read_span(const struct doc *doc, double *ret_s)
{
    int64_t span_ns = 0;
    if (doc && doc->kind == DOC_INT && doc->integer >= 0 && doc->integer < INT64_MAX / NS_PER_SECOND) {
        *ret_s = (double)doc->integer;
        return true;
    }
    if (doc && doc->kind == DOC_FLOAT && doc->number >= 0 && isfinite(doc->number)) {
        *ret_s = doc->number;
        return true;
    }
    if (!doc || doc->kind != DOC_STRING || !duration_parse(doc->text, &span_ns))
        return false;
    *ret_s = (double)span_ns / 1e9;
    return true;
}

void field_span(struct reader *reader, const struct place *place, double min_s, double max_s, double *ret_s)
{
    double span_s;
    if (!place->doc)
        return;
    if (!field_read_span(place->doc, &span_s) || span_s < min_s || span_s > max_s) {
        char wanted[100];
        snprintf(wanted, sizeof wanted, "a duration such as 30s or 2h, from %g to %g seconds", min_s, max_s);
        field_wrong(reader, place, wanted);
    } else {
        *ret_s = span_s;
    }
}

/* --- distributions -------------------------------------------------------------------------------- */

static void field_pair(struct reader *reader, const struct place *place, const char *span_key,
                       const char *shape_key, enum draw_kind kind, struct draw *ret)
{
    const char *const known[] = {span_key, shape_key, NULL};
    struct place span = field_of(place, span_key), shape = field_of(place, shape_key);
    struct draw draw = {.kind = kind};
    if (!field_object(reader, place, known)) {
        field_wrong(reader, place, "an object");
        return;
    }
    if (!span.doc)
        field_wrong(reader, &span, "a duration");
    if (!shape.doc)
        field_wrong(reader, &shape, "a number");
    field_span(reader, &span, 0, DRAW_SECONDS_MAX, &draw.a);
    field_number(reader, &shape, kind == DRAW_WEIBULL ? 0.05 : 0, 20, &draw.b);
    if (!reader->failed)
        *ret = draw;
}

static void field_uniform(struct reader *reader, const struct place *place, struct draw *ret)
{
    struct place low = field_item(place, 0), high = field_item(place, 1);
    struct draw draw = {.kind = DRAW_UNIFORM};
    if (place->doc->kind != DOC_ARRAY || doc_len(place->doc) != 2) {
        field_wrong(reader, place, "a list of two durations");
        return;
    }
    field_span(reader, &low, 0, DRAW_SECONDS_MAX, &draw.a);
    field_span(reader, &high, draw.a, DRAW_SECONDS_MAX, &draw.b);
    if (!reader->failed)
        *ret = draw;
}

void field_draw(struct reader *reader, const struct place *place, struct draw *ret)
{
    static const char *const known[] = {"constant", "uniform", "exponential", "weibull", "lognormal", NULL};
    if (!place->doc)
        return;
    struct draw draw = {.kind = DRAW_CONSTANT};
    if (place->doc->kind != DOC_OBJECT) {
        field_span(reader, place, 0, DRAW_SECONDS_MAX, &draw.a);
    } else if (doc_len(place->doc) != 1) {
        field_says(reader, place,
                   "expected a duration, or one of constant, uniform, exponential, weibull and "
                   "lognormal");
    } else if (field_object(reader, place, known) && !reader->failed) {
        int kind = 0;
        while (!str_is(place->doc->object.members[0].key, known[kind]))
            kind++;
        struct place value = field_of(place, known[kind]);
        draw.kind = (enum draw_kind)kind;
        if (!value.doc)
            field_wrong(reader, &value, "a duration");
        else if (draw.kind == DRAW_UNIFORM)
            field_uniform(reader, &value, &draw);
        else if (draw.kind == DRAW_WEIBULL)
            field_pair(reader, &value, "scale", "shape", DRAW_WEIBULL, &draw);
        else if (draw.kind == DRAW_LOGNORMAL)
            field_pair(reader, &value, "median", "sigma", DRAW_LOGNORMAL, &draw);
        else
            field_span(reader, &value, 0, DRAW_SECONDS_MAX, &draw.a);
    }
    if (!reader->failed)
        *ret = draw;
}

void field_choice(struct reader *reader, const struct place *place, const char *const *names, int count,
                  int *ret)
{
    char wanted[160] = "one of";
    if (!place->doc)
        return;
    for (int i = 0; i < count; i++) {
        if (place->doc->kind == DOC_STRING && str_is(place->doc->text, names[i])) {
            *ret = i;
            return;
        }
        size_t len = strlen(wanted);
        snprintf(wanted + len, sizeof wanted - len, "%s %s", i ? "," : "", names[i]);
    }
    field_wrong(reader, place, wanted);
}
