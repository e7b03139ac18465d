/* gang_threads.c - a gang whose members are threads of one process. */
#include "flow/exec/gang_threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* A collective in progress: the members of a group give their bytes, and receive those of all. */
struct meeting {
    struct meeting *next;
    uint64_t key;
    uint32_t *group;
    uint32_t count, arrived, left;
    size_t size;
    char *bytes; /* count * size */
};

struct gang_threads {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct meeting *meetings;
    uint32_t members, waiting, finished; /* all; in an incomplete meeting; finished with their programs */
    bool broken;                         /* a member has failed, or the gang is stuck */
    bool stuck;                          /* all members wait in different collectives */
};

struct member {
    struct flow_gang gang;
    struct gang_threads *threads;
    struct interpretation run;
    const struct ir_function *program;
    struct tensor *const *args;
    struct tensor **results;
    uint64_t collectives, work;
    struct error error;
    int code;
    pthread_t thread;
};

static struct meeting *meeting_find(struct gang_threads *threads, const uint32_t *group, uint32_t count,
                                    uint64_t key)
{
    for (struct meeting *meeting = threads->meetings; meeting; meeting = meeting->next)
        if (meeting->key == key && meeting->count == count &&
            memcmp(meeting->group, group, count * sizeof *group) == 0)
            return meeting;
    return NULL;
}

static struct meeting *meeting_new(struct gang_threads *threads, const uint32_t *group, uint32_t count,
                                   uint64_t key, size_t size)
{
    struct meeting *meeting = calloc(1, sizeof *meeting);
    uint32_t *ids = malloc(count * sizeof *ids);
    char *bytes = malloc(count * size + 1);
    if (!meeting || !ids || !bytes) {
        free(meeting), free(ids), free(bytes);
        return NULL;
    }
    memcpy(ids, group, count * sizeof *ids);
    *meeting = (struct meeting){
        .next = threads->meetings, .key = key, .group = ids, .count = count, .size = size, .bytes = bytes};
    threads->meetings = meeting;
    return meeting;
}

static void meeting_free(struct gang_threads *threads, struct meeting *meeting)
{
    struct meeting **at = &threads->meetings;
    while (*at != meeting)
        at = &(*at)->next;
    *at = meeting->next;
    free(meeting->group), free(meeting->bytes), free(meeting);
}

/* Breaks a gang if every member waits or has finished: their programs then disagree about the collectives.
 * The caller holds the mutex. */
static void gang_look(struct gang_threads *threads)
{
    CHECK(threads->waiting + threads->finished <= threads->members);
    if (threads->waiting == 0 || threads->waiting + threads->finished < threads->members)
        return;
    threads->broken = threads->stuck = true;
    pthread_cond_broadcast(&threads->changed);
}

static int gang_broken(const struct gang_threads *threads, struct error *error)
{
    return threads->stuck ? error_set(error, ERROR_INVALID,
                                      "the members of the gang wait for each other in different collectives")
                          : error_set(error, ERROR_UNAVAILABLE, "another member of the gang has failed");
}

/* The caller holds the mutex. */
static int meeting_attend(struct gang_threads *threads, const struct flow_gang *gang, const uint32_t *group,
                          uint32_t count, uint64_t key, const void *mine, size_t size, void *all,
                          struct error *error)
{
    struct meeting *meeting = meeting_find(threads, group, count, key);
    if (!meeting && !(meeting = meeting_new(threads, group, count, key, size)))
        return error_set(error, ERROR_LIMIT, "no memory for a collective of %u", count);
    uint32_t own = gang->replica * gang->partitions + gang->partition, place = 0;
    while (place < count && group[place] != own)
        place++;
    CHECK(place < count);
    if (meeting->size != size)
        return error_set(error, ERROR_INVALID, "members bring %zu and %zu bytes to one collective", size,
                         meeting->size);
    mem_copy(meeting->bytes + place * size, mine, size);
    if (++meeting->arrived == meeting->count) {
        threads->waiting -= meeting->count - 1;
        pthread_cond_broadcast(&threads->changed);
    } else {
        threads->waiting++;
        gang_look(threads);
    }
    while (meeting->arrived < meeting->count && !threads->broken)
        pthread_cond_wait(&threads->changed, &threads->mutex);
    bool complete = meeting->arrived == meeting->count;
    if (complete)
        mem_copy(all, meeting->bytes, count * size);
    if (++meeting->left == meeting->arrived && complete)
        meeting_free(threads, meeting);
    return complete ? 0 : gang_broken(threads, error);
}

static int thread_all_gather(struct flow_gang *gang, const uint32_t *group, uint32_t count, uint64_t key,
                             const void *mine, size_t size, void *all, struct error *error)
{
    struct gang_threads *threads = ((struct member *)gang)->threads; /* `gang` is the first field */
    pthread_mutex_lock(&threads->mutex);
    int code = threads->broken ? gang_broken(threads, error)
                               : meeting_attend(threads, gang, group, count, key, mine, size, all, error);
    pthread_mutex_unlock(&threads->mutex);
    return code;
}

static void *member_main(void *arg)
{
    struct member *member = arg;
    member->code = interpret_function(&member->run, member->program, member->args, member->results);
    struct gang_threads *threads = member->threads;
    pthread_mutex_lock(&threads->mutex);
    if (member->code < 0) {
        threads->broken = true;
        pthread_cond_broadcast(&threads->changed);
    } else if (!threads->broken) {
        threads->finished++;
        gang_look(threads);
    }
    pthread_mutex_unlock(&threads->mutex);
    return NULL;
}

/* Starts the members. A member that cannot be started breaks the gang. */
static void members_start(struct member *members, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        struct member *member = &members[k];
        if (pthread_create(&member->thread, NULL, member_main, member) == 0)
            continue;
        member->code = error_set(&member->error, ERROR_LIMIT, "no thread for a member of the gang");
        pthread_mutex_lock(&member->threads->mutex);
        member->threads->broken = true;
        pthread_cond_broadcast(&member->threads->changed);
        pthread_mutex_unlock(&member->threads->mutex);
        member->program = NULL; /* marks a member that was not started */
    }
}

/* Returns the member whose failure is the cause: preferably not one that only reports another member's. */
static const struct member *members_failure(const struct member *members, uint32_t count)
{
    const struct member *failed = NULL;
    for (uint32_t k = 0; k < count; k++)
        if (members[k].code < 0 && (!failed || failed->code == ERROR_UNAVAILABLE))
            failed = &members[k];
    return failed;
}

int gang_threads_run(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                     struct tensor **results)
{
    uint32_t replicas = op->attributes.parallel.replicas, partitions = op->attributes.parallel.partitions;
    uint32_t count = replicas * partitions, args = 0, outs = 0;
    struct member *members = calloc(count + 1, sizeof *members);
    if (!members)
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for %u members", count);
    struct gang_threads threads = {
        .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .members = count};
    for (uint32_t k = 0; k < count; k++) {
        struct member *member = &members[k];
        member->gang = (struct flow_gang){.replica = k / partitions,
                                          .partition = k % partitions,
                                          .replicas = replicas,
                                          .partitions = partitions,
                                          .all_gather = thread_all_gather};
        member->threads = &threads;
        member->program = op->attributes.parallel.programs[k];
        member->work = run->work ? *run->work : 0;
        member->run = (struct interpretation){.module = run->module,
                                              .plans = run->plans,
                                              .dense = run->dense,
                                              .work = run->work ? &member->work : NULL,
                                              .gang = &member->gang,
                                              .collectives = &member->collectives,
                                              .error = &member->error};
        member->args = operands + args;
        member->results = results + outs;
        args += member->program->body.arg_count;
        outs += member->program->result_count;
    }
    members_start(members, count);
    for (uint32_t k = 0; k < count; k++)
        if (members[k].program)
            pthread_join(members[k].thread, NULL);
    const struct member *failed = members_failure(members, count);
    int code = failed ? failed->code : 0;
    if (failed && run->error)
        *run->error = failed->error;
    for (uint32_t k = 0; k < count && failed; k++) /* results of the members that succeeded */
        for (uint32_t r = 0; members[k].code == 0 && r < members[k].program->result_count; r++)
            tensor_unref(members[k].results[r]);
    while (threads.meetings)
        meeting_free(&threads, threads.meetings);
    free(members);
    return code;
}
