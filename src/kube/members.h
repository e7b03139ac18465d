/* members.h - looking up many members of one object without walking it for each.
 *
 *     struct members members MEMBERS_CLEANUP = members_of(object);
 *     members_get(&members, key); members_set(arena, &members, key, value);
 * Small objects are searched, large ones get an index: a client may send an object with 100,000 keys. Keys
 * are not copied. One of these at a time for one object, which nobody else adds to meanwhile.
 */
#ifndef PHX_KUBE_MEMBERS_H
#define PHX_KUBE_MEMBERS_H

#include "doc/doc.h"
#include "base/map.h"

struct members {
    struct doc *object;   /* NULL: has no members */
    struct str_map index; /* key -> place + 1; empty while the object is small */
    bool searched;        /* gets no index */
};
struct members members_of(struct doc *object);
/* For a few questions: the object is searched, however large it is. */
struct members members_searched(struct doc *object);
struct doc *members_get(const struct members *members, struct str key); /* NULL: absent */
void members_set(struct arena *arena, struct members *members, struct str key, struct doc *value);
void members_done(struct members *members);
#define MEMBERS_CLEANUP __attribute__((cleanup(members_done)))

#endif
