/* errors.c - lists of broken rules: adding, printing, and Kubernetes' standard wordings. */
#include "core/spec/path.h"

#include "doc/json.h"

enum { QUOTED_BYTES_MAX = 256 };

static void add(struct field_errors *errors, struct str path, const char *reason, const struct doc *place,
                const char *format, va_list args)
{
    CHECK(errors->arena && reason && format);
    if (errors->list.len >= FIELD_ERRORS_MAX) {
        errors->dropped++;
        return;
    }
    BUF_CLEANUP struct buf message = {0};
    buf_vprintf(&message, format, args);
    struct field_error error = {
        .path = arena_str(errors->arena, path),
        .reason = reason,
        .message = arena_str(errors->arena, buf_str(&message)),
        .line = place ? place->line : 0,
        .column = place ? place->column : 0,
    };
    vec_push(&errors->list, error);
    CHECK(errors->list.len <= FIELD_ERRORS_MAX);
}

void field_error_add(struct field_errors *errors, struct str path, const char *reason,
                     const struct doc *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(errors, path, reason, place, format, args);
    va_end(args);
}

void field_errors_print(const struct field_errors *errors, struct buf *out)
{
    CHECK(errors->list.len == FIELD_ERRORS_MAX || errors->dropped == 0);
    for (size_t i = 0; i < errors->list.len; i++) {
        const struct field_error *error = &errors->list.items[i];
        if (error->line > 0)
            buf_printf(out, "%u:%u: ", error->line, error->column);
        if (error->path.len > 0)
            buf_printf(out, STR_FORMAT ": ", STR_ARG(error->path));
        buf_add_str(out, error->message);
        buf_add_char(out, '\n');
    }
    if (errors->dropped > 0)
        buf_printf(out, "and %zu more\n", errors->dropped);
}

void field_errors_done(struct field_errors *errors)
{
    vec_done(&errors->list);
    errors->dropped = 0;
}

static void path_print(struct buf *out, const struct field_path *path)
{
    if (!path)
        return;
    path_print(out, path->up);
    switch (path->step) {
    case PATH_FIELD:
        if (out->len > 0)
            buf_add_char(out, '.');
        buf_add_str(out, path->name);
        break;
    case PATH_INDEX:
        buf_printf(out, "[%zu]", path->index);
        break;
    case PATH_KEY:
        buf_add_char(out, '[');
        buf_add_str(out, path->name);
        buf_add_char(out, ']');
        break;
    }
}

struct str path_text(struct arena *arena, const struct field_path *path)
{
    BUF_CLEANUP struct buf text = {0};
    path_print(&text, path);
    return arena_str(arena, buf_str(&text));
}

struct str path_quote(struct arena *arena, struct str s)
{
    BUF_CLEANUP struct buf text = {0};
    if (s.len > QUOTED_BYTES_MAX) {
        size_t cut = QUOTED_BYTES_MAX;
        while (cut > 0 && ((unsigned char)s.data[cut] & 0xc0) == 0x80)
            cut--;
        BUF_CLEANUP struct buf shortened = {0};
        buf_add(&shortened, s.data, cut);
        buf_add_str(&shortened, STR("..."));
        json_write_str(&text, buf_str(&shortened));
    } else {
        json_write_str(&text, s);
    }
    return arena_str(arena, buf_str(&text));
}

void path_error(struct field_errors *errors, const struct field_path *path, const char *reason,
                const struct doc *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    BUF_CLEANUP struct buf text = {0};
    if (errors->list.len < FIELD_ERRORS_MAX)
        path_print(&text, path);
    add(errors, buf_str(&text), reason, place, format, args);
    va_end(args);
}

void path_invalid(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                  struct str value, const char *why)
{
    CHECK(why && why[0]);
    struct str quoted = path_quote(errors->arena, value);
    path_error(errors, path, "FieldValueInvalid", place, "Invalid value: " STR_FORMAT ": %s", STR_ARG(quoted),
               why);
}

void path_invalid_int(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                      int64_t value, const char *why)
{
    CHECK(why && why[0]);
    path_error(errors, path, "FieldValueInvalid", place, "Invalid value: %lld: %s", (long long)value, why);
}

void path_required(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                   const char *why)
{
    if (why)
        path_error(errors, path, "FieldValueRequired", place, "Required value: %s", why);
    else
        path_error(errors, path, "FieldValueRequired", place, "Required value");
}

void path_unsupported(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                      struct str value, const char *values)
{
    CHECK(values && values[0]);
    BUF_CLEANUP struct buf list = {0};
    struct str rest = str_from(values), head;
    while (str_cut(rest, ',', &head, &rest))
        buf_printf(&list, "\"" STR_FORMAT "\", ", STR_ARG(head));
    buf_printf(&list, "\"" STR_FORMAT "\"", STR_ARG(rest));
    struct str quoted = path_quote(errors->arena, value);
    path_error(errors, path, "FieldValueNotSupported", place,
               "Unsupported value: " STR_FORMAT ": supported values: %s", STR_ARG(quoted), list.data);
}

void path_duplicate(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                    struct str value)
{
    struct str quoted = path_quote(errors->arena, value);
    path_error(errors, path, "FieldValueDuplicate", place, "Duplicate value: " STR_FORMAT, STR_ARG(quoted));
}

void path_forbidden(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                    const char *why)
{
    CHECK(why && why[0]);
    path_error(errors, path, "FieldValueForbidden", place, "Forbidden: %s", why);
}

void path_too_many(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                   size_t count, size_t count_max)
{
    CHECK(count > count_max);
    path_error(errors, path, "FieldValueTooMany", place, "Too many: %zu: must have at most %zu items", count,
               count_max);
}

bool path_one_of(struct str value, const char *values)
{
    CHECK(values && values[0]);
    struct str rest = str_from(values), head;
    while (str_cut(rest, ',', &head, &rest)) {
        if (str_equal(head, value))
            return true;
    }
    return str_equal(rest, value);
}
