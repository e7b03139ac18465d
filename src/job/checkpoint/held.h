/* held.h - a rank's checkpoints in memory: slots, each a file of a folder that the machine's agent keeps on a
 * file system in memory, so that they outlive the process.
 *
 *     DIR/rank-<R>.0 ... .3    each a shard file (shard.h), of the step that was held there last
 *     DIR/rank-<R>.fence       struct held_mark: the newest attempt that has opened the slots, and the newest
 *                              checkpoint of which every peer has a copy
 *
 * Two slots are used in turn. The others get memory only while a slot is being sent to storage or to a peer,
 * while it holds the checkpoint of which every peer has a copy, or while a shard comes from elsewhere.
 *
 * A slot may hold a shard that a rank of this number kept in another world ("left"): it is not this rank's,
 * but others may read it, by the file's name.
 *
 * A slot counts while its header is whole ("sealed"). Writing removes the header, copies the data and sums it
 * on the way, and puts the header back, so a crash at any point leaves the other slot as it was. The training
 * waits for the copy only. A slot is as long as the largest state that it has held, so its pages are made
 * once.
 *
 * The fence. The agent ends an attempt before it starts the next one on the same chips. If an old process
 * lives on nevertheless, it finds a newer attempt in the fence before it copies and before it seals, and
 * stops; the checksum reveals data that it overwrites between the two.
 *
 * No state but the struct; its owner keeps two threads from one slot. Blocking only by page faults.
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
    size_t mapped; /* bytes, those of the file */
    size_t paged;  /* this many bytes have their pages mapped */
    bool left;     /* step and attempt hold, but of another world */
    bool sealed;   /* the following hold */
    uint64_t step;
    uint32_t attempt;
    uint32_t data_crc; /* also of data that was copied and is not sealed yet */
    size_t len;
    uint64_t key;
    uint64_t checked; /* 1 + the attempt in which this process last knew its data to be whole; 0: never */
};

/* Shared by the processes of one machine that are this rank, one after the other: native integers. */
struct held_mark {
    uint32_t fence;
    uint32_t copied_attempt; /* and 1; 0: nothing is copied */
    uint64_t copied_step;
};

struct held {
    char dir[3072];
    uint32_t rank, world, attempt;
    struct held_mark *mark; /* mapped */
    struct held_slot slots[HELD_SLOTS];
};

/* Is this a folder of this user's? Others could guess its name, in a place that they can write to. `make`: as
 * below. */
int held_folder(const char *dir, bool make, struct phx_error *error);

/* Raises the fence to `attempt` and reads the headers of the slots. `make`: creates an absent folder, for
 * this user alone; otherwise one that is absent or empty is PHX_ERROR_NONE. PHX_ERROR_FENCED: a newer attempt
 * has been here; PHX_ERROR_IO, also for a folder of another user. */
int held_open(struct held *ret_held, const char *dir, bool make, uint32_t rank, uint32_t world,
              uint32_t attempt, struct phx_error *error);
/* The same process and rank goes on as a newer attempt: raises the fence and reads the headers again; maps
 * stay. As held_open; PHX_ERROR_NONE if the folder was cleared in the meantime. Closed after an error. */
int held_renew(struct held *held, uint32_t attempt, struct phx_error *error);
void held_close(struct held *held);   /* the files stay */
void held_discard(struct held *held); /* and closes; an empty folder goes too */

/* The slot with the checkpoint, -1: none. By its header alone. */
int held_find(const struct held *held, uint64_t step, uint32_t attempt);
/* Does this slot hold that checkpoint as a shard of another world? */
bool held_left(const struct held *held, int slot, uint64_t step, uint32_t attempt);
/* Moves to the newest one that is older (a lower step, or the same and a lower attempt); false: none is. */
bool held_find_older(const struct held *held, uint64_t *step, uint32_t *attempt);
/* Compares the data of this sealed slot with its checksum; if they differ, the slot no longer counts. Reads
 * all data, once in an attempt. */
bool held_verify(struct held *held, int slot);
/* Has this process sealed the slot, or read it through, in whichever attempt? Then only the memory itself can
 * have changed it. */
bool held_known(const struct held *held, int slot);
/* Copies a sealed slot's data. PHX_ERROR_SPACE sets *ret_len too. */
int held_read(const struct held *held, int slot, void *buf, size_t cap, size_t *ret_len,
              struct phx_error *error);

/* Every rank's copy of this checkpoint is at its peer. That outlives the process; a fenced one says
 * nothing. */
void held_copied(struct held *held, uint64_t step, uint32_t attempt);
/* Forgets the copied checkpoint: the gang has restored an older one. */
void held_forget_copied(struct held *held);
/* Returns the checkpoint that held_copied recorded last. False: there is none, or the process died while it
 * recorded one. */
bool held_last_copied(const struct held *held, uint64_t *ret_step, uint32_t *ret_attempt);

/* Reads the header of a slot again that another process has written. */
int held_reload(struct held *held, int slot, struct phx_error *error);

/* Takes the header away, makes room where the slot is shorter, and copies `count` parts, one after the other.
 * PHX_ERROR_SPACE: there is no memory for it. */
int held_copy(struct held *held, int slot, const struct iovec *data, size_t count, struct phx_error *error);
/* The data of a slot that was copied or sealed. */
uint8_t *held_data(const struct held *held, int slot);
/* Makes the copied data count, as a checkpoint of this attempt. key: shard_format.h. */
int held_seal(struct held *held, int slot, uint64_t step, size_t len, uint64_t key, struct phx_error *error);

/* Makes a piece of the memory that `len` bytes need in a slot, before they come; its contents stay. False:
 * all is made, or there is no more memory. */
bool held_prepare(struct held *held, int slot, size_t len);

/* Room for `len` bytes that come from elsewhere: takes the header away; the caller writes to held_data. */
int held_reserve(struct held *held, int slot, size_t len, struct phx_error *error);
/* Makes it count under the step, attempt, key, length and checksum of `header`, as this rank's. The caller
 * has compared the checksum. */
int held_adopt(struct held *held, int slot, const struct shard_header *header, struct phx_error *error);
/* Returns the slot whose loss costs least among those that have memory for `len` bytes; never one that holds
 * (keep_step, keep_attempt), the newest copied checkpoint, or a shard of another world. -1: there is none. */
int held_ready(const struct held *held, size_t len, uint64_t keep_step, uint32_t keep_attempt);
/* Returns the slot whose loss costs least: an unsealed one, otherwise the oldest, but never (step, attempt)
 * or the newest copied checkpoint. -1: there is none. */
int held_spare(const struct held *held, uint64_t step, uint32_t attempt);

#endif
