/* held.h - a rank's checkpoints in memory: slots, each a file in a folder that the machine's agent keeps on a
 * file system in memory. Slots outlive the process.
 *
 *     DIR/rank-<R>.0 ... .3    each a shard file (shard.h), of the step that was held there last
 *     DIR/rank-<R>.fence       struct held_mark: the newest attempt that has opened the slots, and the newest
 *                              checkpoint of which every peer has a copy
 *
 * Two slots are used in turn. The others get memory only while a slot is being sent to storage or to a peer,
 * while it holds the checkpoint of which every peer has a copy, or while a shard arrives from elsewhere.
 *
 * A slot may hold a shard that a rank of this number kept in another world ("left"). The shard is not this
 * rank's, but other ranks may read it, by the file's name.
 *
 * A slot is valid ("sealed") while its header is whole. Writing removes the header, copies the data and
 * computes its checksum on the way, and puts the header back, so a crash at any point leaves the other slots
 * as they were. The training waits for the copy only. A slot is as long as the largest state that it has
 * held, so its pages are allocated once.
 *
 * The fence. The agent ends an attempt before it starts the next one on the same chips. If an old process
 * survives nevertheless, it finds a newer attempt in the fence before it copies and before it seals, and
 * stops. The checksum reveals data that it overwrites between the two.
 *
 * No state but the struct; its owner prevents two threads from using one slot. Blocks only in page faults.
 */
#ifndef PHX_JOB_CHECKPOINT_HELD_H
#define PHX_JOB_CHECKPOINT_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "job/checkpoint/shard_format.h"
#include "phalanx/phalanx.h"

#define HELD_SLOTS 4

struct held_slot {
    int fd; /* -1: none */
    uint8_t *map;
    size_t mapped; /* bytes mapped: the whole file */
    size_t paged;  /* bytes whose pages are allocated */
    bool left;     /* a shard of another world, of which step and attempt are valid */
    bool sealed;   /* the fields below are valid */
    uint64_t step;
    uint32_t attempt;
    uint32_t data_crc; /* valid for copied data that is not sealed yet, too */
    size_t len;
    uint64_t key;
    uint64_t checked; /* 1 + the last attempt in which this process sealed or verified the data; 0: never */
};

/* Shared by the successive processes of this rank on one machine, so its integers are native. */
struct held_mark {
    uint32_t fence;
    uint32_t copied_attempt; /* the attempt + 1; 0: nothing is copied */
    uint64_t copied_step;
};

struct held {
    char dir[3072];
    uint32_t rank, world, attempt;
    struct held_mark *mark; /* mapped */
    struct held_slot slots[HELD_SLOTS];
};

/* Returns 0 if the folder belongs to this user: another user could have created it under a guessed name.
 * `make` and errors are as in held_open. */
int held_folder(const char *dir, bool make, struct phx_error *error);

/* Opens the folder: raises the fence to `attempt` and reads the headers of the slots. `make` creates an
 * absent folder, for this user alone; without it, an absent or empty folder is PHX_ERROR_NONE. Returns
 * PHX_ERROR_FENCED if a newer attempt has raised the fence, and PHX_ERROR_IO, also for a folder of another
 * user. */
int held_open(struct held *ret_held, const char *dir, bool make, uint32_t rank, uint32_t world,
              uint32_t attempt, struct phx_error *error);
/* Continues with a newer attempt of the same process and rank: raises the fence and reads the headers again;
 * maps stay. Errors are as in held_open; PHX_ERROR_NONE if the folder was cleared in the meantime. Closed
 * after an error. */
int held_renew(struct held *held, uint32_t attempt, struct phx_error *error);
void held_close(struct held *held);   /* the files stay */
/* deletes this rank's files, and the folder if it is then empty; closes */
void held_discard(struct held *held);

/* Returns the slot with the checkpoint, according to the headers; -1 if there is none. */
int held_find(const struct held *held, uint64_t step, uint32_t attempt);
/* Returns true if this slot holds that checkpoint as a shard of another world. */
bool held_left(const struct held *held, int slot, uint64_t step, uint32_t attempt);
/* Changes step and attempt to those of the newest checkpoint that is older (a lower step, or the same and a
 * lower attempt). Returns false if there is none. */
bool held_find_older(const struct held *held, uint64_t *step, uint32_t *attempt);
/* Returns true if the data of this sealed slot has the right checksum; otherwise the slot is no longer valid.
 * Reads all data, once in an attempt. */
bool held_verify(struct held *held, int slot);
/* Returns true if this process has sealed or verified the slot, in any attempt. Then only a fault of the
 * memory can have changed it. */
bool held_known(const struct held *held, int slot);
/* Copies a sealed slot's data. PHX_ERROR_SPACE sets *ret_len too. */
int held_read(const struct held *held, int slot, void *buf, size_t cap, size_t *ret_len,
              struct phx_error *error);

/* Records that every rank's copy of this checkpoint is at its peer. The record outlives the process; a fenced
 * process does not write it. */
void held_copied(struct held *held, uint64_t step, uint32_t attempt);
/* Forgets the copied checkpoint: the gang has restored an older one. */
void held_forget_copied(struct held *held);
/* Finds the checkpoint that held_copied recorded last. Returns false if there is none, or the process died
 * while it wrote the record. */
bool held_last_copied(const struct held *held, uint64_t *ret_step, uint32_t *ret_attempt);

/* Reads the header of a slot again that another process has written. */
int held_reload(struct held *held, int slot, struct phx_error *error);

/* Removes the slot's header, extends the slot if it is too short, and copies `count` parts, one after the
 * other. Returns PHX_ERROR_SPACE if there is no memory for them. */
int held_copy(struct held *held, int slot, const struct iovec *data, size_t count, struct phx_error *error);
/* Returns the data of a slot. */
uint8_t *held_data(const struct held *held, int slot);
/* Makes the copied data valid, as a checkpoint of this attempt. key: shard_format.h. */
int held_seal(struct held *held, int slot, uint64_t step, size_t len, uint64_t key, struct phx_error *error);

/* Allocates, in advance, a piece of the memory that `len` bytes need in a slot, whose contents stay. Returns
 * false if all is allocated, or there is no more memory. */
bool held_prepare(struct held *held, int slot, size_t len);

/* Prepares a slot for `len` bytes that arrive from elsewhere: removes the header and allocates the memory.
 * The caller then writes to held_data. */
int held_reserve(struct held *held, int slot, size_t len, struct phx_error *error);
/* Makes that data valid under the step, attempt, key, length and checksum of `header`, as this rank's. The
 * caller has verified the checksum. */
int held_adopt(struct held *held, int slot, const struct shard_header *header, struct phx_error *error);
/* Returns the slot whose loss costs least among those that have memory for `len` bytes; never one that holds
 * (keep_step, keep_attempt), the newest copied checkpoint, or a shard of another world. Returns -1 if there
 * is none. */
int held_ready(const struct held *held, size_t len, uint64_t keep_step, uint32_t keep_attempt);
/* Returns the slot whose loss costs least: an unsealed one, otherwise the oldest, but never (step, attempt)
 * or the newest copied checkpoint. Returns -1 if there is none. */
int held_spare(const struct held *held, uint64_t step, uint32_t attempt);

#endif
