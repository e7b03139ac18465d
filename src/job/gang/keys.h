/* keys.h - the keys of all ranks of a world (regions.h): equal keys mark replicas of each other. A new
 * process knows its own key only after it has registered its regions, which is after the gang has agreed on
 * the checkpoint. Ranks therefore send each other their keys, and keep them in their machine's folder in
 * memory:
 *
 *     DIR/keys   "PHXKEYS1", u32 attempt, u32 world, u64 each, u32 CRC-32C of all before (little-endian)
 *
 * No state but the struct. Any thread.
 */
#ifndef PHX_JOB_GANG_KEYS_H
#define PHX_JOB_GANG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phalanx/phalanx.h"

struct keys {
    uint64_t *list; /* [world], owned; NULL: none are known */
    uint32_t world;
    uint32_t attempt; /* the attempt in which the ranks registered them */
};

/* Reads keys in the form of messages between ranks, 8 bytes each. Returns false, with *ret_keys untouched, if
 * `len` does not fit a world or there is no memory. The caller frees the keys (keys_done). */
bool keys_decode(const uint8_t *bytes, size_t len, uint32_t attempt, struct keys *ret_keys);
/* Returns the keys in the form of messages; the caller frees them. Returns NULL if there is no memory. */
uint8_t *keys_encode(const struct keys *keys, size_t *ret_len);
void keys_done(struct keys *keys);

/* Writes the file, which appears whole or not at all. The folder must exist. */
int keys_save(const char *dir, const struct keys *keys, struct phx_error *error);
/* Reads the file. Returns false if it is missing or damaged. */
bool keys_load(const char *dir, struct keys *ret_keys);

#endif
