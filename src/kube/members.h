/* members.h - looks up many members of one object without searching it each time.
 *
 *     struct members members MEMBERS_CLEANUP = members_of(object);
 *     members_get(&members, key); members_set(arena, &members, key, value);
 * Small objects are searched, large ones get an index: a client may send an object with 100,000 keys. Keys
 * are not copied. An object has only one struct members at a time, and members are added only through it.
 */
#ifndef PHX_KUBE_MEMBERS_H
#define PHX_KUBE_MEMBERS_H

#include "doc/doc.h"
#include "base/map.h"

struct members {
    struct doc *object;   /* NULL: has no members */
    struct str_map index; /* key -> index + 1; empty while the object is small */
    bool searched;        /* never gets an index */
};
struct members members_of(struct doc *object);
/* As members_of, for a few look-ups: the object is searched, however large it is. */
struct members members_searched(struct doc *object);
struct doc *members_get(const struct members *members, struct str key); /* NULL: absent */
/* Adds or replaces a member; the object must not be NULL. */
void members_set(struct arena *arena, struct members *members, struct str key, struct doc *value);
void members_done(struct members *members);
#define MEMBERS_CLEANUP __attribute__((cleanup(members_done)))

#endif
