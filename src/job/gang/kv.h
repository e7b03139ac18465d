/* kv.h - the coordinator's key-value store: a hash table with chains, and the calls that wait for a key.
 *
 * At most PHX_KV_MAX bytes of keys and values together, plus a struct job_kv_entry per key. Not
 * thread-safe. */
#ifndef PHX_JOB_GANG_KV_H
#define PHX_JOB_GANG_KV_H

#include <stddef.h>
#include <stdint.h>

struct job_kv_entry {
    struct job_kv_entry *next;
    uint8_t *value;
    uint32_t value_len, key_len;
    uint8_t key[]; /* no NUL */
};

struct job_kv_waiter {
    struct job_kv_waiter *next;
    uint32_t rank;
    uint64_t id; /* number of the rank's call */
    uint32_t key_len;
    uint8_t key[];
};

#define JOB_KV_BUCKETS 1024

struct job_kv {
    struct job_kv_entry *buckets[JOB_KV_BUCKETS];
    struct job_kv_waiter *waiters;
    size_t bytes;
};

void job_kv_done(struct job_kv *kv);

/* Stores copies of key and value, in place of the key's earlier value. Returns 0, PHX_ERROR_SPACE if the
 * limit would be exceeded, or PHX_ERROR_MEMORY. */
int job_kv_put(struct job_kv *kv, const uint8_t *key, uint32_t key_len, const uint8_t *value,
               uint32_t value_len);

/* Returns the entry of a key, valid until the next put; NULL if the key is absent. */
const struct job_kv_entry *job_kv_get(const struct job_kv *kv, const uint8_t *key, uint32_t key_len);

/* Adds a waiter for the key: call `id` of `rank`. Returns 0 or PHX_ERROR_MEMORY. */
int job_kv_wait(struct job_kv *kv, const uint8_t *key, uint32_t key_len, uint32_t rank, uint64_t id);
/* Removes that waiter, if it still waits. */
void job_kv_cancel(struct job_kv *kv, uint32_t rank, uint64_t id);

/* Takes one waiter for the key out of the list, for the caller to free. Returns NULL if there is none. */
struct job_kv_waiter *job_kv_take_waiter(struct job_kv *kv, const uint8_t *key, uint32_t key_len);

#endif
