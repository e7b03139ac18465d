/* release.h - which release this build is: the numbers by which neighbouring releases know each other
 * (docs/upgrade.md).
 *
 * Code reads `this_release` instead of the constants, so two releases differ in one object file.
 * CMakeLists.txt generates the file that defines it, and links all other objects a second time with that of
 * the next release (build/next). Upgrades are tested against that build.
 */
#ifndef PHX_CORE_WORDS_RELEASE_H
#define PHX_CORE_WORDS_RELEASE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LEVEL_NEWEST = 2, /* the last of the log's levels (core/log/record.h) */
    WIRE_VERSION = 1, /* of the wire between controllers and agents (docs/formats/wire.md) */
};

_Static_assert(WIRE_VERSION > 0, "the version of a peer that says none is 0");

struct release {
    const char *version;    /* "0.1.0" */
    const char *software;   /* "phalanx 0.1.0", as an agent sends it */
    const char *user_agent; /* "phalanx/0.1.0", as a client sends it */
    const char *package;    /* "phalanx-0.1.0", as Nodes show it */
    uint32_t level;         /* the highest level of the log that it reads */
    uint32_t wire;          /* the version of the wire that it speaks */
};
extern const struct release this_release;

/* Returns whether a peer with this version of the wire has our release, the previous one or the next one. */
static inline bool release_speaks(uint32_t wire)
{
    return wire <= this_release.wire + 1 && this_release.wire <= wire + 1;
}

#endif
