#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (64u * 1024 * 1024)

static int read_file(struct text *text, FILE *file)
{
    size_t cap = 0, got;
    do {
        if (text->len == cap) {
            cap = cap == 0 ? 65536 : cap * 2;
            uint8_t *larger = cap > TEXT_MAX ? NULL : realloc(text->symbols, cap);
            if (larger == NULL) {
                errno = cap > TEXT_MAX ? EFBIG : ENOMEM;
                return -1;
            }
            text->symbols = larger;
        }
        got = fread(text->symbols + text->len, 1, cap - text->len, file);
        text->len += got;
    } while (got > 0);
    return ferror(file) ? -1 : 0;
}

static void number_symbols(struct text *text)
{
    uint8_t numbers[256] = {0}, seen[256] = {0};
    text->hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < text->len; i++) {
        text->hash = (text->hash ^ text->symbols[i]) * 0x100000001b3u;
        seen[text->symbols[i]] = 1;
    }
    for (size_t byte = 0; byte < 256; byte++)
        if (seen[byte])
            numbers[byte] = (uint8_t)text->vocabulary++;
    for (size_t i = 0; i < text->len; i++)
        text->symbols[i] = numbers[text->symbols[i]];
}

int text_load(struct text *ret_text, const char *path, size_t least, char *why, size_t why_size)
{
    struct text text = {0};
    FILE *file = fopen(path, "re");
    int status = file == NULL ? -1 : read_file(&text, file);
    if (status != 0)
        snprintf(why, why_size, "%s: %s", path, strerror(errno));
    if (file != NULL)
        fclose(file);
    if (status == 0 && text.len < least) {
        snprintf(why, why_size, "%s: %zu bytes are too few to learn from, %zu are needed", path, text.len,
                 least);
        status = -1;
    }
    if (status != 0) {
        free(text.symbols);
        return -1;
    }
    number_symbols(&text);
    *ret_text = text;
    return 0;
}

void text_free(struct text *text)
{
    free(text->symbols);
    *text = (struct text){0};
}

static uint64_t mix(uint64_t value) /* the finaliser of splitmix64 */
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

size_t text_pick(const struct text *text, uint64_t seed, uint64_t step, uint64_t index, size_t span)
{
    uint64_t drawn = mix(mix(mix(seed + 0x9e3779b97f4a7c15u) + step) + index);
    return (size_t)(drawn % (text->len - span + 1));
}
