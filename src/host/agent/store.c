/* store.c - checkpoints in an object store: the agent moves shards between it and the slots of its tasks
 * (job/link/wire.h: STORE, FETCH), and deletes shards that are no longer kept.
 *
 * Two threads, one for uploads and one for downloads, so that a restart never waits behind an upload; each
 * moves one shard at a time, its parts in parallel (objectstore/transfer.h). The threads get copies from the
 * loop and answer through one async handle; they touch nothing else.
 *
 *     PREFIX/<namespace>/<JobSet>-<uid>/step-<N>/attempt-<A>-rank-<R>.shard
 *     <state>/uploads/<JobSet's uid>-<R>-<N>-<A>    the record of an upload that has not finished
 *
 * The upload of a shard ends when the rank stores another one: its step will not be committed. Rank 0's agent
 * deletes for all ranks when a step is committed, so objects of lost machines are deleted too.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/agent/internal.h"
#include "host/objectstore/transfer.h"
#include "job/link/wire.h"

enum { NAME_MAX_BYTES = 128 };

struct store_job {
    struct list_node node;
    uint16_t type; /* JOBWIRE_STORE, JOBWIRE_FETCH, JOBWIRE_CHECKPOINT_COMMITTED: delete */
    uint64_t client;
    uint32_t rank;
    struct jobwire_slot slot; /* of a deletion: step and attempt that were committed */
    struct retention retention;
    char folder[SHARD_KEY_MAX - 128]; /* in the store, ends with "/" */
    char memory[PATH_BYTES + 64];     /* the JobSet's folder */
    char uploads[PATH_BYTES + 64], record[NAME_MAX_BYTES];
    struct jobwire_moved answer;
    struct error error; /* for the note; code 0: it went well */
};

struct store_lane {
    struct store_keeper *keeper;
    uv_thread_t thread;
    uv_cond_t changed;
    struct list_node jobs;
};

struct store_keeper {
    struct live *live;
    struct store_place place;
    atomic_bool stop;
    uv_mutex_t mutex; /* of the lists */
    struct store_lane up, down;
    struct list_node done;
    uv_async_t wake;
};

/* --- a lane's thread ------------------------------------------------------------------------------ */

/* Opens a slot. The task's user owns the folder, so no link in it is followed. */
static int open_slot(const struct store_job *job, int flags, struct error *error)
{
    char name[32];
    struct stat info;
    int folder = open(job->memory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (job->slot.copy_of > 0)
        snprintf(name, sizeof name, "peer-%u.%u", job->slot.copy_of - 1, job->slot.slot);
    else
        snprintf(name, sizeof name, "rank-%u.%u", job->rank, job->slot.slot);
    int fd = folder < 0 ? -1 : openat(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int reason = errno;
    if (folder >= 0)
        close(folder);
    if (fd < 0)
        return error_set_errno(error, reason, "opening slot %s", name);
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1)
        return fd;
    close(fd);
    return error_set(error, ERROR_INVALID, "slot %s is not a regular file", name);
}

/* Aborts the uploads that the rank began before this one. */
static void drop_others(const struct store_job *job, const struct store_keeper *keeper)
{
    size_t common = strlen(job->record);
    while (common > 0 && job->record[common - 1] != '-')
        common--; /* attempt */
    while (common > 1 && job->record[common - 2] != '-')
        common--; /* step */
    common--;
    DIR *directory = opendir(job->uploads);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char path[sizeof job->uploads + 260];
        snprintf(path, sizeof path, "%s/%s", job->uploads, entry->d_name);
        if (strncmp(entry->d_name, job->record, common) == 0 && strcmp(entry->d_name, job->record) != 0)
            shard_upload_drop(&keeper->place, &keeper->stop, path);
    }
    if (directory)
        closedir(directory);
}

static int move_shard(struct store_keeper *keeper, struct store_job *job)
{
    bool up = job->type == JOBWIRE_STORE;
    char key[SHARD_KEY_MAX], record[sizeof job->uploads + NAME_MAX_BYTES];
    uint64_t bytes = 0;
    int fd = open_slot(job, up ? O_RDONLY : O_RDWR, &job->error);
    if (fd < 0)
        return fd;
    uint32_t rank = !up && job->slot.copy_of > 0 ? job->slot.copy_of - 1 : job->rank;
    shard_key(job->folder, job->slot.step, job->slot.attempt, rank, key);
    snprintf(record, sizeof record, "%s/%s", job->uploads, job->record);
    struct shard_transfer transfer = {&keeper->place, &keeper->stop,     key,       fd,
                                      job->slot.step, job->slot.attempt, rank,      record};
    if (up)
        drop_others(job, keeper);
    int rc =
        up ? shard_upload(&transfer, &bytes, &job->error) : shard_download(&transfer, &bytes, &job->error);
    close(fd);
    job->answer.bytes = bytes;
    return rc;
}

static int delete_old(struct store_keeper *keeper, struct store_job *job)
{
    struct object_store *store = NULL;
    struct object_list list = {0};
    struct arena arena ARENA_CLEANUP = {0};
    char start[SHARD_KEY_MAX];
    snprintf(start, sizeof start, "%sstep-", job->folder);
    int rc = object_store_open(&keeper->place, &keeper->stop, &store, &job->error);
    if (rc == 0)
        rc = bucket_list(store, start, &arena, &list, &job->error);
    for (size_t i = 0; i < list.entries.len && rc == 0; i++) {
        struct str key = list.entries.items[i].key;
        size_t folder = strlen(job->folder);
        uint64_t step;
        uint32_t attempt, rank;
        if (shard_key_parse((struct str){key.data + folder, key.len - folder}, &step, &attempt, &rank) &&
            attempt <= job->slot.attempt && !retention_keeps(&job->retention, step))
            rc = bucket_delete(store, arena_strdup(&arena, key), &job->error);
    }
    vec_done(&list.entries);
    object_store_close(store);
    return rc;
}

static void answer(struct store_job *job, int rc)
{
    struct jobwire_moved *moved = &job->answer;
    moved->step = job->slot.step;
    moved->attempt = job->slot.attempt;
    moved->slot = job->slot.slot;
    moved->copy_of = job->slot.copy_of;
    bool down = job->type == JOBWIRE_FETCH;
    moved->status = rc == 0                         ? JOBWIRE_MOVED
                    : down && rc == ERROR_NOT_FOUND ? JOBWIRE_MOVE_MISSING
                    : down && rc == ERROR_CORRUPT   ? JOBWIRE_MOVE_DAMAGED
                                                    : JOBWIRE_MOVE_FAILED;
    for (size_t i = 0; rc < 0 && job->error.text[i] && i + 1 < sizeof moved->reason; i++)
        moved->reason[i] = isprint((unsigned char)job->error.text[i]) ? job->error.text[i] : '?';
}

static struct store_job *next_job(struct store_lane *lane)
{
    struct store_keeper *keeper = lane->keeper;
    struct store_job *job = NULL;
    uv_mutex_lock(&keeper->mutex);
    while (list_empty(&lane->jobs) && !atomic_load(&keeper->stop))
        uv_cond_wait(&lane->changed, &keeper->mutex);
    if (!atomic_load(&keeper->stop)) {
        job = container_of(lane->jobs.next, struct store_job, node);
        list_remove(&job->node);
    }
    uv_mutex_unlock(&keeper->mutex);
    return job;
}

static void serve(void *context)
{
    struct store_lane *lane = context;
    struct store_keeper *keeper = lane->keeper;
    for (struct store_job *job; (job = next_job(lane));) {
        int rc =
            job->type == JOBWIRE_CHECKPOINT_COMMITTED ? delete_old(keeper, job) : move_shard(keeper, job);
        job->error.code = rc < 0 ? (enum error_code)rc : ERROR_NONE;
        answer(job, rc);
        uv_mutex_lock(&keeper->mutex);
        list_append(&keeper->done, &job->node);
        uv_mutex_unlock(&keeper->mutex);
        uv_async_send(&keeper->wake);
    }
}

/* --- the loop's thread ---------------------------------------------------------------------------- */

static void say(struct store_keeper *keeper, const struct store_job *job)
{
    struct error note;
    if (job->error.code == 0 || atomic_load(&keeper->stop))
        return;
    error_set(&note, job->error.code, "checkpoint store, step %llu of rank %u: %s",
              (unsigned long long)job->slot.step, job->rank, job->error.text);
    local_note(keeper->live->machine, str_from(note.text));
}

static void on_done(uv_async_t *async)
{
    struct store_keeper *keeper = async->data;
    for (;;) {
        uv_mutex_lock(&keeper->mutex);
        struct list_node *node = list_empty(&keeper->done) ? NULL : keeper->done.next;
        if (node)
            list_remove(node);
        uv_mutex_unlock(&keeper->mutex);
        if (!node)
            return;
        struct store_job *job = container_of(node, struct store_job, node);
        struct jobwire_message message = {
            .type = job->type == JOBWIRE_STORE ? JOBWIRE_STORED : JOBWIRE_FETCHED, .moved = job->answer};
        say(keeper, job);
        if (job->type != JOBWIRE_CHECKPOINT_COMMITTED)
            local_clients_moved(keeper->live, job->client, &message);
        mem_free(job);
    }
}

const char *local_store_env(const struct live *live)
{
    return live->store && live->memory_dir ? "PHX_CHECKPOINT_STORE=agent" : NULL;
}

static struct store_job *job_of(struct live *live, const struct store_client *client)
{
    struct arena arena ARENA_CLEANUP = {0};
    const struct task_launch *launch = local_tasks_launch_of(live, client->task, &arena);
    struct store_job *job = launch ? mem_alloc(sizeof *job) : NULL;
    if (!job)
        return NULL;
    job->client = client->id;
    job->rank = client->rank;
    snprintf(job->folder, sizeof job->folder, STR_FORMAT "/" STR_FORMAT "/", STR_ARG(launch->namespace_),
             STR_ARG(launch->checkpoint_folder));
    snprintf(job->memory, sizeof job->memory, "%s/%llu", live->memory_dir ? live->memory_dir : "",
             (unsigned long long)launch->jobset);
    snprintf(job->uploads, sizeof job->uploads, "%s/uploads", live->directory);
    return job;
}

static void hand_over(struct store_lane *lane, struct store_job *job)
{
    uv_mutex_lock(&lane->keeper->mutex);
    list_append(&lane->jobs, &job->node);
    uv_cond_signal(&lane->changed);
    uv_mutex_unlock(&lane->keeper->mutex);
}

void local_store_move(struct live *live, const struct store_client *client, uint16_t type,
                      const struct jobwire_slot *slot)
{
    struct store_job *job = live->store && client->welcome ? job_of(live, client) : NULL;
    if (!job) {
        struct jobwire_message refusal = {.type = type == JOBWIRE_STORE ? JOBWIRE_STORED : JOBWIRE_FETCHED};
        refusal.moved = (struct jobwire_moved){.step = slot->step,
                                               .attempt = slot->attempt,
                                               .slot = slot->slot,
                                               .status = JOBWIRE_MOVE_FAILED,
                                               .reason = "this machine's agent has no object store",
                                               .copy_of = slot->copy_of};
        local_clients_moved(live, client->id, &refusal);
        return;
    }
    job->type = type;
    job->slot = *slot;
    unsigned long long jobset = strtoull(strrchr(job->memory, '/') + 1, NULL, 10);
    snprintf(job->record, sizeof job->record, "%llu-%u-%llu-%u", jobset, client->rank,
             (unsigned long long)slot->step, slot->attempt);
    hand_over(type == JOBWIRE_STORE ? &live->store->up : &live->store->down, job);
}

void local_store_joined(struct live *live, struct store_client *client)
{
    struct arena arena ARENA_CLEANUP = {0};
    const struct task_launch *launch = live->store ? local_tasks_launch_of(live, client->task, &arena) : NULL;
    const char *keep = "";
    client->welcome = true;
    for (size_t i = 0; launch && i < launch->env_count; i++)
        if (str_is(launch->env[i].name, "PHX_CHECKPOINT_KEEP"))
            keep = arena_strdup(&arena, launch->env[i].value);
    struct retention retention = {0};
    if (retention_parse(keep, &retention)) /* else the task has refused it */
        client->retention = retention;
}

void local_store_committed(struct live *live, struct store_client *client, uint64_t step, uint32_t attempt)
{
    if (!live->store || !client->welcome || client->rank != 0 || client->retention.last == 0)
        return;
    retention_commit(&client->retention, step);
    struct store_job *job = retention_floor(&client->retention) > 0 ? job_of(live, client) : NULL;
    if (!job)
        return;
    job->type = JOBWIRE_CHECKPOINT_COMMITTED;
    job->slot = (struct jobwire_slot){.step = step, .attempt = attempt};
    job->retention = client->retention;
    hand_over(&live->store->up, job);
}

/* --- begin and end -------------------------------------------------------------------------------- */

static int start_lane(struct store_keeper *keeper, struct store_lane *lane, struct error *error)
{
    lane->keeper = keeper;
    list_init(&lane->jobs);
    CHECK(uv_cond_init(&lane->changed) == 0);
    int rc = uv_thread_create(&lane->thread, serve, lane);
    return rc == 0 ? 0 : error_set(error, ERROR_LIMIT, "checkpoint store: a thread: %s", uv_strerror(rc));
}

int local_store_init(struct live *live, const char *address, struct error *error)
{
    struct store_place place;
    struct object_store *probe = NULL;
    if (!address)
        return 0;
    int rc = store_place_parse(address, &place, error);
    if (rc == 0)
        rc = object_store_open(&place, NULL, &probe, error); /* reports wrong credentials now */
    object_store_close(probe);
    if (rc < 0)
        return error_wrap(error, "--checkpoint-store");
    struct store_keeper *keeper = mem_alloc(sizeof *keeper);
    keeper->live = live;
    keeper->place = place;
    list_init(&keeper->done);
    CHECK(uv_mutex_init(&keeper->mutex) == 0);
    uv_async_init(live->machine->host->loop, &keeper->wake, on_done);
    keeper->wake.data = keeper;
    live->machine->host->open_parts++;
    live->store = keeper;
    rc = start_lane(keeper, &keeper->up, error);
    return rc == 0 ? start_lane(keeper, &keeper->down, error) : rc;
}

static void free_jobs(struct list_node *jobs)
{
    list_for_each_safe(node, after, jobs) mem_free(container_of(node, struct store_job, node));
}

static void on_closed(uv_handle_t *handle)
{
    struct store_keeper *keeper = handle->data;
    struct agent_host *host = keeper->live->machine->host;
    mem_free(keeper);
    local_part_closed(host);
}

static void end_lane(struct store_lane *lane)
{
    if (!lane->keeper)
        return;
    if (lane->thread)
        uv_thread_join(&lane->thread);
    uv_cond_destroy(&lane->changed);
    free_jobs(&lane->jobs);
}

void local_store_close(struct live *live)
{
    struct store_keeper *keeper = live->store;
    if (!keeper)
        return;
    live->store = NULL;
    uv_mutex_lock(&keeper->mutex);
    atomic_store(&keeper->stop, true);
    if (keeper->up.keeper)
        uv_cond_signal(&keeper->up.changed);
    if (keeper->down.keeper)
        uv_cond_signal(&keeper->down.changed);
    uv_mutex_unlock(&keeper->mutex);
    end_lane(&keeper->up); /* within moments: transfers test `stop` */
    end_lane(&keeper->down);
    free_jobs(&keeper->done);
    uv_mutex_destroy(&keeper->mutex);
    uv_close((uv_handle_t *)&keeper->wake, on_closed);
}
