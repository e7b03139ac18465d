/* names.c - a stack of names with a hash index of chains, newest first. */
#include "flow/ir/names.h"

#include "base/hash.h"

static uint32_t *names_bucket(const struct names *names, struct str text)
{
    return &names->buckets.items[hash_words(0, text.data, text.len) & (names->buckets.len - 1)];
}

const struct name *names_find(const struct names *names, struct str text)
{
    if (names->buckets.len == 0)
        return NULL;
    for (uint32_t at = *names_bucket(names, text); at; at = names->list.items[at - 1].next) {
        if (str_equal(names->list.items[at - 1].text, text))
            return &names->list.items[at - 1];
    }
    return NULL;
}

static void names_link(struct names *names, uint32_t index)
{
    struct name *name = &names->list.items[index];
    uint32_t *bucket = names_bucket(names, name->text);
    name->next = *bucket;
    *bucket = index + 1;
}

void names_push(struct names *names, struct str text, void *value, uint32_t count)
{
    CHECK(names->list.len < UINT32_MAX - 1);
    vec_push(&names->list, ((struct name){.text = text, .value = value, .count = count}));
    if (names->list.len <= names->buckets.len) {
        names_link(names, (uint32_t)names->list.len - 1);
        return;
    }
    size_t buckets = names->buckets.len ? names->buckets.len * 2 : 64;
    vec_reserve(&names->buckets, buckets);
    names->buckets.len = buckets;
    memset(names->buckets.items, 0, buckets * sizeof *names->buckets.items);
    for (uint32_t i = 0; i < names->list.len; i++)
        names_link(names, i);
}

void names_cut(struct names *names, size_t len)
{
    while (names->list.len > len) {
        struct name *name = &names->list.items[names->list.len - 1];
        uint32_t *bucket = names_bucket(names, name->text);
        CHECK(*bucket == names->list.len);
        *bucket = name->next;
        names->list.len--;
    }
}

void ir_names_done(struct names *names)
{
    vec_done(&names->list);
    vec_done(&names->buckets);
}
