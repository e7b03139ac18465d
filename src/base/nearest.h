/* nearest.h - finds the known word that a misspelt word most probably means.
 *
 *     struct nearest nearest = nearest_to(word);
 *     for (size_t i = 0; i < count; i++)
 *         nearest_offer(&nearest, known[i]);
 *     if (nearest.best.len)
 *         "did you mean nearest.best?"
 *
 * Candidates are views: they outlive the struct. Upper and lower case count as equal. Among equally near
 * candidates the first that was offered wins.
 */
#ifndef PHX_BASE_NEAREST_H
#define PHX_BASE_NEAREST_H

#include "base/str.h"

enum { NEAREST_WORD_MAX = 64 }; /* longer words have no neighbours */

/* Returns the least number of letters to insert, remove, replace or swap with the next one that makes `b` of
 * `a` (optimal string alignment, bytes, ASCII case ignored); NEAREST_WORD_MAX + 1 if either is longer than
 * NEAREST_WORD_MAX. */
unsigned edit_distance(struct str a, struct str b);

struct nearest {
    struct str word;
    struct str best;   /* empty: no candidate is near enough */
    unsigned distance; /* of `best` */
};
struct nearest nearest_to(struct str word);
/* Takes the candidate as `best` if it is nearer than the present one, and near enough to be a slip: one
 * letter in three may differ. An abbreviation of three letters or more ("parallel" of "parallelism") is near
 * too. */
void nearest_offer(struct nearest *nearest, struct str candidate);

#endif
