/* nearest.h - finds the known word that a misspelt word most probably means.
 *
 *     struct nearest nearest = nearest_to(word);
 *     for (size_t i = 0; i < count; i++)
 *         nearest_offer(&nearest, known[i]);
 *     if (nearest.best.len)
 *         "did you mean nearest.best?"
 *
 * The word and the candidates must outlive the struct, which does not copy them. Upper and lower case count
 * as equal. Among equally near candidates the first that was offered wins.
 */
#ifndef PHX_BASE_NEAREST_H
#define PHX_BASE_NEAREST_H

#include "base/str.h"

enum { NEAREST_WORD_MAX = 64 }; /* longer words have no neighbours */

/* Returns the least number of letters to insert, remove, replace or swap with the next one that turns `a`
 * into `b` (optimal string alignment, bytes, ASCII case ignored); NEAREST_WORD_MAX + 1 if either is longer
 * than NEAREST_WORD_MAX. */
unsigned edit_distance(struct str a, struct str b);

struct nearest {
    struct str word;
    struct str best;   /* empty: no candidate is near enough */
    unsigned distance; /* of `best` */
};
struct nearest nearest_to(struct str word);
/* Takes the candidate as `best` if it is nearer than the present one, and near enough for a typing error: one
 * letter in three may differ. A word that is an abbreviation of the candidate, of at least three letters, is
 * near too ("parallel" of "parallelism"). */
void nearest_offer(struct nearest *nearest, struct str candidate);

#endif
