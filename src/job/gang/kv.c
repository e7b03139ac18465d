#include "job/gang/kv.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "phalanx/phalanx.h"

static bool same(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len)
{
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

void job_kv_done(struct job_kv *kv)
{
    for (size_t i = 0; i < JOB_KV_BUCKETS; i++) {
        while (kv->buckets[i] != NULL) {
            struct job_kv_entry *entry = kv->buckets[i];
            kv->buckets[i] = entry->next;
            free(entry->value);
            free(entry);
        }
    }
    while (kv->waiters != NULL) {
        struct job_kv_waiter *waiter = kv->waiters;
        kv->waiters = waiter->next;
        free(waiter);
    }
    kv->bytes = 0;
}

static struct job_kv_entry **find(const struct job_kv *kv, const uint8_t *key, uint32_t key_len)
{
    size_t bucket = crc32c(0, key, key_len) % JOB_KV_BUCKETS;
    struct job_kv_entry **at = (struct job_kv_entry **)&kv->buckets[bucket];
    while (*at != NULL && !same((*at)->key, (*at)->key_len, key, key_len))
        at = &(*at)->next;
    return at;
}

int job_kv_put(struct job_kv *kv, const uint8_t *key, uint32_t key_len, const uint8_t *value,
               uint32_t value_len)
{
    struct job_kv_entry **at = find(kv, key, key_len), *entry = *at;
    size_t old = entry == NULL ? 0 : (size_t)entry->value_len + key_len;
    size_t bytes = kv->bytes - old + key_len + value_len;
    if (value_len > PHX_VALUE_MAX || bytes > PHX_KV_MAX)
        return PHX_ERROR_SPACE;
    uint8_t *copy = malloc(value_len > 0 ? value_len : 1);
    if (copy != NULL && entry == NULL && (entry = calloc(1, sizeof *entry + key_len)) != NULL) {
        entry->key_len = key_len;
        memcpy(entry->key, key, key_len);
        *at = entry;
    }
    if (copy == NULL || entry == NULL) {
        free(copy);
        return PHX_ERROR_MEMORY;
    }
    if (value_len > 0)
        memcpy(copy, value, value_len);
    free(entry->value);
    entry->value = copy;
    entry->value_len = value_len;
    kv->bytes = bytes;
    return 0;
}

const struct job_kv_entry *job_kv_get(const struct job_kv *kv, const uint8_t *key, uint32_t key_len)
{
    return *find(kv, key, key_len);
}

int job_kv_wait(struct job_kv *kv, const uint8_t *key, uint32_t key_len, uint32_t rank, uint64_t id)
{
    struct job_kv_waiter *waiter = calloc(1, sizeof *waiter + key_len);
    if (waiter == NULL)
        return PHX_ERROR_MEMORY;
    waiter->rank = rank;
    waiter->id = id;
    waiter->key_len = key_len;
    memcpy(waiter->key, key, key_len);
    waiter->next = kv->waiters;
    kv->waiters = waiter;
    return 0;
}

void job_kv_cancel(struct job_kv *kv, uint32_t rank, uint64_t id)
{
    struct job_kv_waiter **at = &kv->waiters;
    while (*at != NULL && ((*at)->rank != rank || (*at)->id != id))
        at = &(*at)->next;
    struct job_kv_waiter *waiter = *at;
    if (waiter != NULL) {
        *at = waiter->next;
        free(waiter);
    }
}

struct job_kv_waiter *job_kv_take_waiter(struct job_kv *kv, const uint8_t *key, uint32_t key_len)
{
    struct job_kv_waiter **at = &kv->waiters;
    while (*at != NULL && !same((*at)->key, (*at)->key_len, key, key_len))
        at = &(*at)->next;
    struct job_kv_waiter *waiter = *at;
    if (waiter != NULL)
        *at = waiter->next;
    return waiter;
}
