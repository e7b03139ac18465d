#include "kube/members.h"

#include "base/check.h"

enum { SMALL = 32 };

struct members members_of(struct doc *object)
{
    struct members members = {.object = object && object->kind == DOC_OBJECT ? object : NULL};
    if (doc_len(members.object) > SMALL)
        for (size_t i = 0; i < object->object.len; i++)
            str_map_put(&members.index, object->object.members[i].key, (void *)(uintptr_t)(i + 1));
    return members;
}

struct members members_searched(struct doc *object)
{
    return (struct members){.object = object && object->kind == DOC_OBJECT ? object : NULL, .searched = true};
}

static struct doc_member *find(const struct members *members, struct str key)
{
    if (members->index.len) {
        uintptr_t place = (uintptr_t)str_map_get(&members->index, key);
        return place ? &members->object->object.members[place - 1] : NULL;
    }
    for (size_t i = 0; members->object && i < members->object->object.len; i++)
        if (str_equal(members->object->object.members[i].key, key))
            return &members->object->object.members[i];
    return NULL;
}

struct doc *members_get(const struct members *members, struct str key)
{
    struct doc_member *member = find(members, key);
    return member ? member->value : NULL;
}

void members_set(struct arena *arena, struct members *members, struct str key, struct doc *value)
{
    struct doc_member *member = find(members, key);
    CHECK(members->object);
    if (member) {
        member->value = value;
        return;
    }
    CHECK(doc_try_add(arena, members->object, (struct doc_member){.key = key, .value = value}));
    if (members->index.len)
        str_map_put(&members->index, key, (void *)(uintptr_t)members->object->object.len);
    else if (members->object->object.len > SMALL && !members->searched)
        *members = members_of(members->object);
}

void members_done(struct members *members)
{
    str_map_done(&members->index);
}
