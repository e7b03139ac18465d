/* text.h - the training text as symbols 0 .. vocabulary - 1: the bytes that occur in it, in order of their
 * value. */
#ifndef TRAIN_TEXT_H
#define TRAIN_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
    uint8_t *symbols;
    size_t len, vocabulary;
    uint64_t hash; /* of the file: a checkpoint belongs to one text */
};

/* Reads at least `least` bytes; -1 with a message in `why`. */
int text_load(struct text *ret_text, const char *path, size_t least, char *why, size_t why_size);
void text_free(struct text *text);

/* Where sequence `index` of step `step` starts: a function of its arguments alone, so it is the same after a
 * restart and for every number of ranks. `span` symbols from there are inside the text. */
size_t text_pick(const struct text *text, uint64_t seed, uint64_t step, uint64_t index, size_t span);

#endif
