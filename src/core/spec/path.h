/* path.h - where in a document we are, as a chain on the stack: "spec.replicatedJobs[0].name" costs nothing
 * until an error needs it. Private to spec.
 *
 *     check_job(errors, AT(AT_INDEX(rjobs, i), "template"), ...);
 * The links live as long as the block in which AT was written; a callee must not keep them.
 */
#ifndef PHX_CORE_SPEC_PATH_H
#define PHX_CORE_SPEC_PATH_H

#include "core/spec/spec.h"

enum path_step { PATH_FIELD, PATH_INDEX, PATH_KEY };
struct field_path {
    const struct field_path *up; /* NULL: this is the first step */
    enum path_step step;
    struct str name; /* PATH_FIELD, PATH_KEY */
    size_t index;    /* PATH_INDEX */
};

#define AT(parent, field)     AT_STR(parent, str_from(field))
#define AT_STR(parent, field) (&(struct field_path){.up = (parent), .step = PATH_FIELD, .name = (field)})
#define AT_INDEX(parent, i)   (&(struct field_path){.up = (parent), .step = PATH_INDEX, .index = (i)})
#define AT_KEY(parent, key)   (&(struct field_path){.up = (parent), .step = PATH_KEY, .name = (key)})

/* "a.b[3].c[key]"; NULL gives "". */
struct str path_text(struct arena *arena, const struct field_path *path);

/* Returns `s` in double quotes, escaped and shortened to 256 bytes, for messages. */
struct str path_quote(struct arena *arena, struct str s);

/* field_error_add with the path given as a chain. */
void path_error(struct field_errors *errors, const struct field_path *path, const char *reason,
                const struct doc *place, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The forms that occur everywhere: `Invalid value: "x": why`, `Invalid value: 7: why`, `Required value[:
 * why]`, `Unsupported value: "x": supported values: "A", "B"` (values given as "A,B"), `Duplicate value:
 * "x"`, `Forbidden: why`, `Too many: 300: must have at most 256 items`. */
void path_invalid(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                  struct str value, const char *why);
void path_invalid_int(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                      int64_t value, const char *why);
void path_required(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                   const char *why);
void path_unsupported(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                      struct str value, const char *values);
void path_duplicate(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                    struct str value);
void path_forbidden(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                    const char *why);
void path_too_many(struct field_errors *errors, const struct field_path *path, const struct doc *place,
                   size_t count, size_t count_max);

/* Whether `value` is one of the comma-separated `values`. */
bool path_one_of(struct str value, const char *values);

#endif
