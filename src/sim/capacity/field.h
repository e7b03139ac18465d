/* field.h - reads typed fields of a scenario's document, and names their place in messages. Private to
 * src/sim/capacity.
 *
 * The first mistake is kept in reader->error, and later ones are ignored, so a caller reads all fields and
 * then checks reader->failed once. A reading function leaves *ret untouched if the field is absent or wrong.
 */
#ifndef PHX_SIM_CAPACITY_FIELD_H
#define PHX_SIM_CAPACITY_FIELD_H

#include "base/error.h"
#include "doc/doc.h"
#include "sim/capacity/draw.h"

enum { FIELD_PATH_MAX = 200 };

struct reader {
    const char *file;
    struct error *error; /* may be NULL */
    bool failed;
};
/* A value of the document and its path. */
struct place {
    const struct doc *doc;    /* NULL: absent */
    const struct doc *parent; /* the object or array that contains it, or would */
    char path[FIELD_PATH_MAX];
};

/* Sets the error "FILE:LINE:COLUMN: path: expected WANTED, got VALUE". */
void field_wrong(struct reader *reader, const struct place *place, const char *wanted);
/* Sets the error "FILE:LINE:COLUMN: path: " followed by the formatted sentence. */
void field_says(struct reader *reader, const struct place *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
struct place field_of(const struct place *object, const char *key);
struct place field_item(const struct place *array, size_t index);
/* Return whether the value is present and an object or array. A value of another kind is a mistake; an absent
 * one is not. `known` lists the allowed members. */
bool field_object(struct reader *reader, const struct place *place, const char *const *known);
bool field_array(struct reader *reader, const struct place *place);

void field_count(struct reader *reader, const struct place *place, int64_t min, int64_t max, int64_t *ret);
void field_number(struct reader *reader, const struct place *place, double min, double max, double *ret);
void field_bool(struct reader *reader, const struct place *place, bool *ret);
/* Reads printable ASCII of at most `size` bytes, including the NUL. */
void field_text(struct reader *reader, const struct place *place, char *ret, size_t size);
/* Reads a duration such as "30s", or a plain number of seconds, in seconds. */
void field_span(struct reader *reader, const struct place *place, double min_s, double max_s, double *ret_s);
/* Reads a duration, or an object with one member that names a distribution: {exponential: 2h}, {uniform: [1h,
 * 2h]}, {weibull: {scale: 2h, shape: 0.7}}, {lognormal: {median: 2h, sigma: 1}}. */
void field_draw(struct reader *reader, const struct place *place, struct draw *ret);
/* Reads one of names[0 .. count - 1]. *ret is its index. */
void field_choice(struct reader *reader, const struct place *place, const char *const *names, int count,
                  int *ret);

#endif
