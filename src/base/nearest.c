#include "base/nearest.h"

enum { ABBREVIATION_MIN = 3 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned edit_distance(struct str a, struct str b)
{
    unsigned rows[3][NEAREST_WORD_MAX + 1];
    unsigned *before = rows[0], *above = rows[1], *row = rows[2];
    if (a.len > NEAREST_WORD_MAX || b.len > NEAREST_WORD_MAX)
        return NEAREST_WORD_MAX + 1;
    for (unsigned k = 0; k <= b.len; k++)
        above[k] = k;
    for (unsigned i = 1; i <= a.len; i++) {
        row[0] = i;
        for (unsigned k = 1; k <= b.len; k++) {
            bool same = lower(a.data[i - 1]) == lower(b.data[k - 1]);
            row[k] = least(above[k - 1] + !same, least(above[k], row[k - 1]) + 1);
            if (i > 1 && k > 1 && lower(a.data[i - 1]) == lower(b.data[k - 2]) &&
                lower(a.data[i - 2]) == lower(b.data[k - 1]))
                row[k] = least(row[k], before[k - 2] + 1);
        }
        unsigned *free_row = before;
        before = above;
        above = row;
        row = free_row;
    }
    return above[b.len];
}

struct nearest nearest_to(struct str word)
{
    return (struct nearest){.word = word, .distance = NEAREST_WORD_MAX + 1};
}

static bool begins(struct str word, struct str part)
{
    return part.len <= word.len && edit_distance((struct str){word.data, part.len}, part) == 0;
}

void nearest_offer(struct nearest *nearest, struct str candidate)
{
    size_t longer = nearest->word.len > candidate.len ? nearest->word.len : candidate.len;
    unsigned distance = edit_distance(nearest->word, candidate);
    bool near =
        distance <= longer / 3 || (nearest->word.len >= ABBREVIATION_MIN && begins(candidate, nearest->word));
    if (!near || candidate.len == 0 || distance >= nearest->distance)
        return;
    nearest->best = candidate;
    nearest->distance = distance;
}
