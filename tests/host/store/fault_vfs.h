/* fault_vfs.h - a SQLite VFS for tests: files in memory, a trace of every change, a disk that fills up or
 * fails or is slow, and power loss at any point of the trace.
 *
 * What power loss leaves is a choice of the seed, within what a disk promises: everything up to a file's last
 * sync is there; of what was written since, any subset survives, whole or in single sectors; a length change,
 * a creation or a removal since then happened or did not. Bytes beside a torn write are untouched
 * (SQLITE_IOCAP_POWERSAFE_OVERWRITE, as SQLite assumes of today's disks).
 *
 * Included by one test program at a time; one connection at a time, on one thread.
 */
#ifndef PHX_TESTS_HOST_STORE_FAULT_VFS_H
#define PHX_TESTS_HOST_STORE_FAULT_VFS_H

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include "base/rng.h"
#include "base/str.h"
#include "base/vec.h"
#include "host/store/gate.h"

enum { FAULT_SECTOR = 512, FAULT_INODES = 256, FAULT_REGIONS = 64 };

enum fault_kind { FAULT_CREATE, FAULT_WRITE, FAULT_TRUNCATE, FAULT_SYNC, FAULT_REMOVE };
struct fault_op {
    enum fault_kind kind;
    int inode;
    size_t at, len; /* FAULT_TRUNCATE: `at` is the new length */
    char *data;
    bool durable; /* FAULT_REMOVE: the folder was synced */
};
struct fault_inode {
    char name[256];
    struct buf bytes;
    bool linked; /* the name leads to it */
};

/* All of the VFS's state. */
static struct {
    struct fault_inode inodes[FAULT_INODES];
    int inodes_len;
    VEC(struct fault_op) trace;
    bool tracing;
    int64_t room;     /* bytes that may still be written; negative: no limit */
    int64_t sync_at;  /* this many syncs from now one fails; negative: none */
    int64_t write_at; /* the same for writes */
    struct gate *gate; /* where syncs wait; NULL: they do not */
    int errno_value;
    void *regions[FAULT_REGIONS]; /* the shared memory of the one connection's WAL index */
    size_t region_bytes;
} fault = {.room = -1, .sync_at = -1, .write_at = -1};

struct fault_file {
    sqlite3_file base;
    int inode;
};

static inline void fault_note(struct fault_op op, const void *data)
{
    if (!fault.tracing)
        return;
    if (data) {
        op.data = mem_alloc(op.len ? op.len : 1);
        memcpy(op.data, data, op.len);
    }
    vec_push(&fault.trace, op);
}

static inline void fault_trace_clear(void)
{
    for (size_t i = 0; i < fault.trace.len; i++)
        mem_free(fault.trace.items[i].data);
    vec_clear(&fault.trace);
}

static inline int fault_find(const char *name)
{
    for (int i = 0; i < fault.inodes_len; i++)
        if (fault.inodes[i].linked && strcmp(fault.inodes[i].name, name) == 0)
            return i;
    return -1;
}

static inline int fault_create(const char *name)
{
    CHECK(fault.inodes_len < FAULT_INODES && strlen(name) < sizeof fault.inodes[0].name);
    struct fault_inode *inode = &fault.inodes[fault.inodes_len];
    *inode = (struct fault_inode){.linked = true};
    memcpy(inode->name, name, strlen(name));
    fault_note((struct fault_op){.kind = FAULT_CREATE, .inode = fault.inodes_len, .len = strlen(name) + 1},
               name);
    return fault.inodes_len++;
}

static inline void fault_resize(struct buf *bytes, size_t len)
{
    if (len > bytes->len) {
        buf_reserve(bytes, len - bytes->len + 1);
        memset(bytes->data + bytes->len, 0, len - bytes->len);
    }
    bytes->len = len;
}

static inline void fault_put(struct buf *bytes, size_t at, const void *data, size_t len)
{
    if (at + len > bytes->len)
        fault_resize(bytes, at + len);
    if (len > 0)
        memcpy(bytes->data + at, data, len);
}

/* Forgets all files; the trace stays. */
static inline void fault_format(void)
{
    for (int i = 0; i < fault.inodes_len; i++)
        buf_done(&fault.inodes[i].bytes);
    fault.inodes_len = 0;
    fault.room = fault.sync_at = fault.write_at = -1;
}

/* --- power loss --- */

static inline void fault_apply(struct buf *bytes, const struct fault_op *op, struct rng *rng)
{
    if (op->kind == FAULT_TRUNCATE) {
        if (!rng || rng_chance(rng, 500000))
            fault_resize(bytes, op->at);
        return;
    }
    if (!rng || rng_chance(rng, 400000)) {
        fault_put(bytes, op->at, op->data, op->len);
        return;
    }
    if (rng_chance(rng, 500000))
        return; /* lost */
    for (size_t i = 0; i < op->len;) {
        size_t part = FAULT_SECTOR - (op->at + i) % FAULT_SECTOR;
        part = part < op->len - i ? part : op->len - i;
        if (rng_chance(rng, 500000))
            fault_put(bytes, op->at + i, op->data + i, part);
        i += part;
    }
}

/* Replaces all files by what the first `count` operations of the trace, begun on an empty disk, leave after
 * power loss. The trace stays. */
static inline void fault_power_loss(size_t count, uint64_t seed)
{
    struct fault_inode old[FAULT_INODES];
    int old_len = fault.inodes_len;
    size_t synced[FAULT_INODES] = {0}, any_sync = 0;
    uint64_t how;
    struct rng rng;
    rng_seed(&rng, seed);
    how = rng_below(&rng, 4); /* 0: all lost, 1: all kept, else a subset */
    memcpy(old, fault.inodes, sizeof old);
    memset(fault.inodes, 0, sizeof fault.inodes);
    fault.inodes_len = 0;
    for (size_t i = 0; i < count; i++) {
        if (fault.trace.items[i].kind == FAULT_SYNC) {
            synced[fault.trace.items[i].inode] = i;
            any_sync = i;
        }
    }
    for (size_t i = 0; i < count; i++) {
        const struct fault_op *op = &fault.trace.items[i];
        struct fault_inode *inode = &fault.inodes[op->inode];
        bool folder_safe = i < any_sync || op->durable || how == 1;
        bool happened = folder_safe || (how >= 2 && rng_chance(&rng, 500000));
        if (op->kind == FAULT_CREATE) {
            memcpy(inode->name, op->data, op->len);
            inode->linked = happened;
            fault.inodes_len = op->inode + 1;
        } else if (op->kind == FAULT_REMOVE) {
            inode->linked = inode->linked && !happened;
        } else if (op->kind != FAULT_SYNC && (i < synced[op->inode] || how == 1)) {
            fault_apply(&inode->bytes, op, NULL);
        } else if (op->kind != FAULT_SYNC && how >= 2) {
            fault_apply(&inode->bytes, op, &rng);
        }
    }
    for (int i = 0; i < old_len; i++)
        buf_done(&old[i].bytes);
}

/* --- SQLite's side --- */

static inline struct buf *fault_bytes(sqlite3_file *file)
{
    return &fault.inodes[((struct fault_file *)file)->inode].bytes;
}

static int fault_close(sqlite3_file *file)
{
    return SQLITE_OK;
}

static int fault_read(sqlite3_file *file, void *out, int len, sqlite3_int64 at)
{
    struct buf *bytes = fault_bytes(file);
    size_t have = (size_t)at < bytes->len ? bytes->len - (size_t)at : 0;
    have = have < (size_t)len ? have : (size_t)len;
    if (have > 0)
        memcpy(out, bytes->data + at, have);
    memset((char *)out + have, 0, (size_t)len - have);
    return have == (size_t)len ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int fault_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    if (fault.write_at >= 0 && fault.write_at-- == 0) {
        fault.errno_value = EIO;
        return SQLITE_IOERR_WRITE;
    }
    size_t fits = (size_t)len;
    if (fault.room >= 0) {
        fits = (int64_t)fits <= fault.room ? fits : (size_t)fault.room;
        fault.room -= (int64_t)fits;
    }
    if (fits > 0) {
        fault_put(fault_bytes(file), (size_t)at, data, fits);
        fault_note((struct fault_op){.kind = FAULT_WRITE,
                                     .inode = ((struct fault_file *)file)->inode,
                                     .at = (size_t)at,
                                     .len = fits},
                   data);
    }
    fault.errno_value = fits == (size_t)len ? 0 : ENOSPC;
    return fits == (size_t)len ? SQLITE_OK : SQLITE_FULL;
}

static int fault_truncate(sqlite3_file *file, sqlite3_int64 len)
{
    fault_resize(fault_bytes(file), (size_t)len);
    fault_note((struct fault_op){.kind = FAULT_TRUNCATE,
                                 .inode = ((struct fault_file *)file)->inode,
                                 .at = (size_t)len},
               NULL);
    return SQLITE_OK;
}

static int fault_sync(sqlite3_file *file, int flags)
{
    if (fault.gate)
        gate_pass(fault.gate);
    if (fault.sync_at >= 0 && fault.sync_at-- == 0) {
        fault.errno_value = EIO;
        return SQLITE_IOERR_FSYNC;
    }
    fault_note((struct fault_op){.kind = FAULT_SYNC, .inode = ((struct fault_file *)file)->inode}, NULL);
    return SQLITE_OK;
}

static int fault_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    *ret_size = (sqlite3_int64)fault_bytes(file)->len;
    return SQLITE_OK;
}

static int fault_lock(sqlite3_file *file, int level)
{
    return SQLITE_OK;
}

static int fault_reserved(sqlite3_file *file, int *ret_taken)
{
    *ret_taken = 0;
    return SQLITE_OK;
}

static int fault_control(sqlite3_file *file, int op, void *argument)
{
    return SQLITE_NOTFOUND;
}

static int fault_sector(sqlite3_file *file)
{
    return 4096;
}

static int fault_traits(sqlite3_file *file)
{
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int fault_shm_map(sqlite3_file *file, int region, int bytes, int extend, void volatile **ret_region)
{
    CHECK(region < FAULT_REGIONS);
    if (!fault.regions[region] && extend)
        fault.regions[region] = mem_alloc((size_t)bytes);
    *ret_region = fault.regions[region];
    return SQLITE_OK;
}

static int fault_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return SQLITE_OK;
}

static void fault_shm_barrier(sqlite3_file *file)
{
}

static int fault_shm_unmap(sqlite3_file *file, int remove)
{
    for (int i = 0; i < FAULT_REGIONS; i++) {
        mem_free(fault.regions[i]);
        fault.regions[i] = NULL;
    }
    return SQLITE_OK;
}

static int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    static const sqlite3_io_methods methods = {
        .iVersion = 2,
        .xClose = fault_close,
        .xRead = fault_read,
        .xWrite = fault_write,
        .xTruncate = fault_truncate,
        .xSync = fault_sync,
        .xFileSize = fault_size,
        .xLock = fault_lock,
        .xUnlock = fault_lock,
        .xCheckReservedLock = fault_reserved,
        .xFileControl = fault_control,
        .xSectorSize = fault_sector,
        .xDeviceCharacteristics = fault_traits,
        .xShmMap = fault_shm_map,
        .xShmLock = fault_shm_lock,
        .xShmBarrier = fault_shm_barrier,
        .xShmUnmap = fault_shm_unmap,
    };
    CHECK(name != NULL);
    file->pMethods = NULL;
    int inode = fault_find(name);
    if (inode < 0 && !(flags & SQLITE_OPEN_CREATE))
        return SQLITE_CANTOPEN;
    ((struct fault_file *)file)->inode = inode < 0 ? fault_create(name) : inode;
    file->pMethods = &methods;
    if (ret_flags)
        *ret_flags = flags;
    return SQLITE_OK;
}

static int fault_remove(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    int inode = fault_find(name);
    if (inode < 0)
        return SQLITE_IOERR_DELETE_NOENT;
    fault.inodes[inode].linked = false;
    fault_note((struct fault_op){.kind = FAULT_REMOVE, .inode = inode, .durable = sync_folder != 0}, NULL);
    return SQLITE_OK;
}

static int fault_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret_yes)
{
    *ret_yes = fault_find(name) >= 0;
    return SQLITE_OK;
}

static int fault_full_path(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    CHECK(strlen(name) < (size_t)size);
    memcpy(out, name, strlen(name) + 1);
    return SQLITE_OK;
}

static int fault_last_error(sqlite3_vfs *vfs, int size, char *out)
{
    return fault.errno_value;
}

/* Registers the VFS "fault". */
static inline void fault_register(void)
{
    static sqlite3_vfs vfs;
    vfs = *sqlite3_vfs_find(NULL);
    vfs.zName = "fault";
    vfs.szOsFile = sizeof(struct fault_file);
    vfs.pNext = NULL;
    vfs.xOpen = fault_open;
    vfs.xDelete = fault_remove;
    vfs.xAccess = fault_access;
    vfs.xFullPathname = fault_full_path;
    vfs.xGetLastError = fault_last_error;
    CHECK(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
}

#endif
