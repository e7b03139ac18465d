/* path.h - the path of a field in a document, as a chain on the stack. Private to spec. The text, such as
 * "spec.replicatedJobs[0].name", is made only when an error needs it.
 *
 *     check_job(errors, AT(AT_INDEX(rjobs, i), "template"), ...);
 *
 * A step of the chain lives until the end of the block in which AT was written; a callee must not keep it.
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

/* Returns the path as text, "a.b[3].c[key]"; NULL gives "". */
struct str path_text(struct arena *arena, const struct field_path *path);

/* Returns `s` in double quotes and escaped, for messages. A text above 256 bytes is cut, and "..." added. */
struct str path_quote(struct arena *arena, struct str s);

/* Calls field_error_add with the text of the path. */
void path_error(struct field_errors *errors, const struct field_path *path, const char *reason,
                const struct doc *place, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Each of the following adds an error in one of Kubernetes' standard wordings:
 *     path_invalid, path_invalid_int   `Invalid value: "x": why`, `Invalid value: 7: why`
 *     path_required                    `Required value`, or `Required value: why`
 *     path_unsupported                 `Unsupported value: "x": supported values: "A", "B"`, given as "A,B"
 *     path_duplicate, path_forbidden   `Duplicate value: "x"`, `Forbidden: why`
 *     path_too_many                    `Too many: 300: must have at most 256 items` */
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

/* Returns whether `value` is one of the comma-separated `values`. */
bool path_one_of(struct str value, const char *values);

#endif
