/* field.h - typed fields of a scenario's document, with the place of each in messages. Private to
 * src/sim/capacity.
 *
 * The first mistake is kept in reader->error, and later ones are ignored, so a caller reads all fields and
 * looks at reader->failed once. A reading function leaves *ret untouched if the field is absent or wrong.
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
    const struct doc *parent; /* where it would be */
    char path[FIELD_PATH_MAX];
};

/* "FILE:LINE:COLUMN: path: expected WANTED, got VALUE". */
void field_wrong(struct reader *reader, const struct place *place, const char *wanted);
/* The same with a sentence of its own behind the path. */
void field_says(struct reader *reader, const struct place *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
struct place field_of(const struct place *object, const char *key);
struct place field_item(const struct place *array, size_t index);
/* Whether it is there and an object (an array): a wrong kind fails; an absent one is false. */
bool field_object(struct reader *reader, const struct place *place, const char *const *known);
bool field_array(struct reader *reader, const struct place *place);

void field_count(struct reader *reader, const struct place *place, int64_t min, int64_t max, int64_t *ret);
void field_number(struct reader *reader, const struct place *place, double min, double max, double *ret);
void field_bool(struct reader *reader, const struct place *place, bool *ret);
/* Printable ASCII that fits `size` bytes with its NUL. */
void field_text(struct reader *reader, const struct place *place, char *ret, size_t size);
/* A duration such as "30s" or a bare number of seconds, in seconds. */
void field_span(struct reader *reader, const struct place *place, double min_s, double max_s, double *ret_s);
/* A duration, or an object of one member that names a distribution: {exponential: 2h}, {uniform: [1h, 2h]},
 * {weibull: {scale: 2h, shape: 0.7}}, {lognormal: {median: 2h, sigma: 1}}. */
void field_draw(struct reader *reader, const struct place *place, struct draw *ret);
/* Reads one of names[0 .. count - 1]; *ret is its index. */
void field_choice(struct reader *reader, const struct place *place, const char *const *names, int count,
                  int *ret);

#endif
