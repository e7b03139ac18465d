/* match.c - patterns of log lines: cheap and linear in practice; no line can make the cost explode. */
#include "host/probes/internal.h"

enum { NAME_BYTES_MAX = 64 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return (unsigned char)c > ' ' && !strchr(",;'\"()[]{}<>", c);
}

/* Returns the length of `pattern` up to the next special byte. */
static size_t literal_len(const char *pattern)
{
    return strcspn(pattern, "*%@&~");
}

static size_t word_len(struct str text)
{
    size_t len = 0;
    while (len < text.len && is_word(text.data[len]))
        len++;
    while (len > 0 && strchr(":.*", text.data[len - 1]))
        len--;
    return len;
}

static size_t number_len(struct str text)
{
    size_t len = 0;
    while (len < text.len && is_digit(text.data[len]))
        len++;
    return len;
}

/* Returns the length of a process's name, which may have blanks and brackets: all up to the literal at the
 * beginning of `next`. */
static size_t name_len(struct str text, const char *next)
{
    size_t len = literal_len(next);
    const char *end = text.len && len > 0 ? memmem(text.data, text.len, next, len) : NULL;
    return end && end - text.data <= NAME_BYTES_MAX ? (size_t)(end - text.data) : 0;
}

/* Matches `pattern` at the beginning of `text`. Each star ends at the first place of the literal after it and
 * never backtracks, so the cost is one search for each literal. */
static bool match_here(const char *pattern, struct str text, struct str *captures, size_t max)
{
    size_t captured = 0;
    while (*pattern) {
        size_t len = literal_len(pattern), take;
        if (len > 0) {
            if (text.len < len || memcmp(text.data, pattern, len) != 0)
                return false;
            take = len;
            pattern += len;
        } else if (*pattern == '~') {
            return text.len == 0;
        } else if (*pattern == '*') {
            pattern++;
            len = literal_len(pattern);
            if (len == 0)
                return *pattern == 0 ||
                       match_here(pattern, (struct str){text.data + text.len, 0}, captures, max);
            const char *found = text.len ? memmem(text.data, text.len, pattern, len) : NULL;
            if (!found)
                return false;
            take = (size_t)(found - text.data);
        } else {
            take = *pattern == '%'   ? number_len(text)
                   : *pattern == '&' ? name_len(text, pattern + 1)
                                     : word_len(text);
            pattern++;
            if (take == 0)
                return false;
            if (captured < max)
                captures[captured++] = (struct str){text.data, take};
        }
        text.data += take;
        text.len -= take;
    }
    return true;
}

/* Returns the word before `end`. */
static struct str word_before(struct str text, const char *end)
{
    const char *start = end;
    while (start > text.data && is_word(start[-1]))
        start--;
    return (struct str){start, (size_t)(end - start)};
}

bool match(const char *pattern, struct str text, struct str captures[CAPTURES_MAX])
{
    bool before = *pattern == '@';
    pattern += before;
    captures += before;
    size_t len = literal_len(pattern);
    CHECK(len > 0); /* the literal to search for */
    for (int tries = 0; tries < 8 && text.len >= len; tries++) {
        const char *found = memmem(text.data, text.len, pattern, len);
        if (!found)
            return false;
        struct str rest = {found, text.len - (size_t)(found - text.data)};
        if (match_here(pattern, rest, captures, (size_t)(CAPTURES_MAX - before))) {
            if (before)
                captures[-1] = word_before(text, found);
            return !before || captures[-1].len > 0;
        }
        text = (struct str){rest.data + 1, rest.len - 1};
    }
    return false;
}
