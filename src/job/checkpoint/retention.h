/* retention.h - which committed checkpoints are kept: PHX_CHECKPOINT_KEEP, "last=3,every=1000" (the last
 * three, and every step that is a multiple of 1000, for ever). For the library, which deletes files of a
 * directory, and for the agent, which deletes objects.
 *
 * Only checkpoints older than the `last`-th newest known commit are deleted. A process that knows of fewer
 * commits deletes nothing, so at least `last` checkpoints are always kept.
 *
 * Header-only; no state but the struct.
 */
#ifndef PHX_JOB_CHECKPOINT_RETENTION_H
#define PHX_JOB_CHECKPOINT_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RETENTION_LAST_DEFAULT 2
#define RETENTION_LAST_MAX     64

struct retention {
    uint32_t last;                        /* 1 .. RETENTION_LAST_MAX */
    uint64_t every;                       /* 0: none are kept for ever */
    uint64_t commits[RETENTION_LAST_MAX]; /* steps, newest first */
    uint32_t commit_count;
};

static inline const char *retention_number(const char *text, uint64_t max, uint64_t *ret_value)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > (max - digit) / 10)
            return NULL;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return at == text || value == 0 ? NULL : at;
}

/* Reads "last=N", "every=N", or both with a comma between; NULL or "" means the defaults. Returns false, with
 * the result untouched, for any other text. */
static inline bool retention_parse(const char *text, struct retention *ret_retention)
{
    struct retention retention = {.last = RETENTION_LAST_DEFAULT};
    bool last_seen = false;
    while (text != NULL && *text != '\0') {
        uint64_t value;
        bool last = strncmp(text, "last=", 5) == 0, every = strncmp(text, "every=", 6) == 0;
        if ((!last && !every) || (last ? last_seen : retention.every > 0))
            return false;
        text = retention_number(text + (last ? 5 : 6), last ? RETENTION_LAST_MAX : UINT64_MAX / 16, &value);
        if (text == NULL || (*text != '\0' && (*text != ',' || text[1] == '\0')))
            return false;
        if (last)
            retention.last = (uint32_t)value;
        else
            retention.every = value;
        last_seen = last_seen || last;
        text += *text == ',';
    }
    *ret_retention = retention;
    return true;
}

/* Records a commit. A step below the newest one (after a restart from an older checkpoint) replaces the
 * commits above it. */
static inline void retention_commit(struct retention *retention, uint64_t step)
{
    uint32_t above = 0;
    while (above < retention->commit_count && retention->commits[above] >= step)
        above++;
    uint32_t rest = retention->commit_count - above;
    if (rest >= retention->last)
        rest = retention->last - 1;
    memmove(retention->commits + 1, retention->commits + above, rest * sizeof *retention->commits);
    retention->commits[0] = step;
    retention->commit_count = rest + 1;
}

/* Returns the step below which checkpoints may be deleted, except multiples of `every`; 0: none may. */
static inline uint64_t retention_floor(const struct retention *retention)
{
    return retention->commit_count == retention->last ? retention->commits[retention->last - 1] : 0;
}

static inline bool retention_keeps(const struct retention *retention, uint64_t step)
{
    return step >= retention_floor(retention) || (retention->every > 0 && step % retention->every == 0);
}

#endif
