/* keys.h - the keys of all ranks of a world (regions.h): equal keys mark replicas of each other. A new
 * process knows its own key only after it has registered its regions, and that is after the gang has agreed
 * on the checkpoint; so the ranks tell each other their keys, and keep them in their machine's folder in
 * memory:
 *
 *     DIR/keys   "PHXKEYS1", u32 attempt, u32 world, u64 each, u32 CRC-32C of all that (little-endian)
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
    uint32_t attempt; /* that has registered them */
};

/* From the 8 bytes each that messages between ranks carry; false: their length is no world's, or there is
 * no memory, and *ret_keys stays. */
bool keys_decode(const uint8_t *bytes, size_t len, uint32_t attempt, struct keys *ret_keys);
/* Owned by the caller; NULL: no memory. */
uint8_t *keys_encode(const struct keys *keys, size_t *ret_len);
void keys_done(struct keys *keys);

/* The folder must exist. The file appears whole or not at all. */
int keys_save(const char *dir, const struct keys *keys, struct phx_error *error);
/* False: there is no whole one. */
bool keys_load(const char *dir, struct keys *ret_keys);

#endif
