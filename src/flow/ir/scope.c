/* scope.c - a stack of names with a hash index of chains, newest first. */
#include "flow/ir/scope.h"

#include "base/hash.h"

static uint32_t *scope_bucket(const struct scope *scope, struct str text)
{
    return &scope->buckets.items[hash_words(0, text.data, text.len) & (scope->buckets.len - 1)];
}

const struct scope_name *scope_find(const struct scope *scope, struct str text)
{
    if (scope->buckets.len == 0)
        return NULL;
    for (uint32_t at = *scope_bucket(scope, text); at; at = scope->list.items[at - 1].next) {
        if (str_equal(scope->list.items[at - 1].text, text))
            return &scope->list.items[at - 1];
    }
    return NULL;
}

static void scope_link(struct scope *scope, uint32_t index)
{
    struct scope_name *name = &scope->list.items[index];
    uint32_t *bucket = scope_bucket(scope, name->text);
    name->next = *bucket;
    *bucket = index + 1;
}

void scope_push(struct scope *scope, struct str text, void *value, uint32_t count)
{
    CHECK(scope->list.len < UINT32_MAX - 1);
    vec_push(&scope->list, ((struct scope_name){.text = text, .value = value, .count = count}));
    if (scope->list.len <= scope->buckets.len) {
        scope_link(scope, (uint32_t)scope->list.len - 1);
        return;
    }
    size_t buckets = scope->buckets.len ? scope->buckets.len * 2 : 64;
    vec_reserve(&scope->buckets, buckets);
    scope->buckets.len = buckets;
    memset(scope->buckets.items, 0, buckets * sizeof *scope->buckets.items);
    for (uint32_t i = 0; i < scope->list.len; i++)
        scope_link(scope, i);
}

void scope_cut(struct scope *scope, size_t len)
{
    while (scope->list.len > len) {
        struct scope_name *name = &scope->list.items[scope->list.len - 1];
        uint32_t *bucket = scope_bucket(scope, name->text);
        CHECK(*bucket == scope->list.len);
        *bucket = name->next;
        scope->list.len--;
    }
}

void scope_done(struct scope *scope)
{
    vec_done(&scope->list);
    vec_done(&scope->buckets);
}
