/* replicas.c - the annotations phalanx.dev/replica-size and min-replicas: the division of a workload's ranks
 * into data-parallel replicas, some of which may be given up after a loss (core/recover/shrink.c). An
 * annotation is read from the workload, else from the first Pod template that has it. */
#include "core/words/limits.h"
#include "core/spec/read.h"
#include "core/spec/validate.h"

#include <stdio.h>

#define SIZE_KEY "phalanx.dev/replica-size"
#define MIN_KEY  "phalanx.dev/min-replicas"

static struct str word_of(const struct jobset_spec *spec, struct str key)
{
    struct str text = labels_get(&spec->annotations, key, (struct str){0});
    for (size_t r = 0; r < spec->rjob_count && !text.data; r++)
        text = labels_get(&spec->rjobs[r].job.pod.annotations, key, text);
    return text;
}

/* Returns the number of the workload's ranks, or 0 if they do not form one world with fixed indexes. */
static int64_t world_of(const struct jobset_spec *spec)
{
    int64_t world = 0;
    for (size_t r = 0; r < spec->rjob_count; r++) {
        const struct rjob_spec *rjob = &spec->rjobs[r];
        const struct job_spec *job = &rjob->job;
        if (!job->indexed || job->completions < 0 || job->parallelism < job->completions ||
            job->pod.node_name.len || !str_equal(rjob->group, spec->rjobs[0].group))
            return 0;
        if (__builtin_add_overflow(world, (int64_t)job->completions * rjob->replicas, &world))
            return 0; /* more than any limit: refused below */
    }
    return world;
}

void read_replicas(struct jobset_spec *spec)
{
    int64_t size = 0, least = 1, world = world_of(spec); /* an invalid value is refused below */
    (void)str_to_i64(word_of(spec, STR(SIZE_KEY)), 1, TASKS_PER_JOBSET_MAX, &size);
    (void)str_to_i64(word_of(spec, STR(MIN_KEY)), 1, TASKS_PER_JOBSET_MAX, &least);
    CHECK(size >= 0 && size <= TASKS_PER_JOBSET_MAX && least > 0 && least <= TASKS_PER_JOBSET_MAX);
    spec->replica_size = size > 0 && world > 0 && world % size == 0 ? (uint32_t)size : 0;
    spec->min_replicas = (uint32_t)least;
    CHECK(spec->replica_size == 0 || world >= spec->replica_size);
}

/* Returns the annotation's number, or 0 if it is absent or malformed (reported). */
static int64_t check_number(const struct doc *meta, const char *name, const struct field_path *path,
                            struct field_errors *errors)
{
    const struct doc *node = doc_get_str(doc_get(meta, "annotations"), str_from(name));
    int64_t number = 0;
    char why[64];
    if (node && !str_to_i64(doc_str(node, STR("")), 1, TASKS_PER_JOBSET_MAX, &number)) {
        snprintf(why, sizeof why, "must be a number from 1 to %d", TASKS_PER_JOBSET_MAX);
        path_invalid(errors, AT_KEY(AT(path, "annotations"), str_from(name)), node, doc_str(node, STR("")),
                     why);
        return 0;
    }
    return node ? number : 0;
}

void validate_replicas(const struct doc *meta, const struct field_path *path, struct field_errors *errors)
{
    check_number(meta, SIZE_KEY, path, errors);
    check_number(meta, MIN_KEY, path, errors);
}

/* Returns whether the annotations, and the sizes that they divide, equal those of `old`. */
static bool world_is_kept(const struct jobset_spec *spec, const struct jobset_spec *old)
{
    if (!old || spec->rjob_count != old->rjob_count ||
        !str_equal(word_of(spec, STR(SIZE_KEY)), word_of(old, STR(SIZE_KEY))) ||
        !str_equal(word_of(spec, STR(MIN_KEY)), word_of(old, STR(MIN_KEY))))
        return false;
    for (size_t r = 0; r < spec->rjob_count; r++) {
        const struct rjob_spec *now = &spec->rjobs[r], *was = &old->rjobs[r];
        if (now->replicas != was->replicas || now->job.parallelism != was->job.parallelism ||
            now->job.completions != was->job.completions)
            return false;
    }
    return true;
}

void workload_validate_replicas(const struct doc *object, const struct jobset_spec *spec,
                                const struct jobset_spec *before, struct field_errors *errors)
{
    const struct doc *meta = doc_get(object, "metadata"), *notes = doc_get(meta, "annotations");
    const struct doc *node = doc_get(notes, SIZE_KEY);
    const struct field_path *path = AT(NULL, "metadata");
    const struct field_path *at = AT_KEY(AT(path, "annotations"), STR(SIZE_KEY));
    int64_t size = check_number(meta, SIZE_KEY, path, errors);
    int64_t least = check_number(meta, MIN_KEY, path, errors), world = world_of(spec);
    char why[96];
    if (size == 0 || world_is_kept(spec, before))
        return;
    if (world == 0) {
        path_invalid(errors, at, node, node->text,
                     "needs Indexed Jobs of one group whose parallelism equals their completions");
    } else if (world % size) {
        snprintf(why, sizeof why, "must divide the world of %lld ranks", (long long)world);
        path_invalid(errors, at, node, node->text, why);
    } else if (least > world / size) {
        const struct doc *min = doc_get(notes, MIN_KEY);
        snprintf(why, sizeof why, "must not be more than the %lld replicas there are",
                 (long long)(world / size));
        path_invalid(errors, AT_KEY(AT(path, "annotations"), STR(MIN_KEY)), min, min->text, why);
    }
}
