/* snapshot_terms.c - admission's state of a JobSet: placement terms and a reservation. */
#include "core/log/snapshot.h"

#include "core/agent/codec_pb.h"
#include "core/gang/trial.h"
#include "core/words/limits.h"

static Snapshot__Terms *write_terms(struct arena *arena, const struct rjob_terms *terms)
{
    CHECK(terms->spares.count <= SPARES_PER_JOB_MAX);
    Snapshot__Terms *pb = ARENA_NEW(arena, Snapshot__Terms);
    snapshot__terms__init(pb);
    pb->node_labels = snapshot_write_labels(arena, &terms->node_labels, &pb->n_node_labels);
    pb->labels = snapshot_write_labels(arena, &terms->labels, &pb->n_labels);
    pb->annotations = snapshot_write_labels(arena, &terms->annotations, &pb->n_annotations);
    pb->n_tolerations = terms->toleration_count;
    pb->tolerations = ARENA_ARRAY(arena, Snapshot__Toleration *, pb->n_tolerations);
    for (size_t i = 0; i < pb->n_tolerations; i++) {
        Snapshot__Toleration *item = pb->tolerations[i] = ARENA_NEW(arena, Snapshot__Toleration);
        snapshot__toleration__init(item);
        item->key = codec_text(arena, terms->tolerations[i].key);
        item->op = codec_text(arena, terms->tolerations[i].op);
        item->value = codec_text(arena, terms->tolerations[i].value);
        item->effect = codec_text(arena, terms->tolerations[i].effect);
    }
    pb->n_levels = terms->level_count;
    pb->levels = ARENA_ARRAY(arena, char *, pb->n_levels);
    for (size_t i = 0; i < pb->n_levels; i++)
        pb->levels[i] = codec_text(arena, terms->levels[i]);
    pb->spares = terms->spares.count;
    pb->cold_spares = terms->spares.cold;
    return pb;
}

void snapshot_write_terms(struct arena *arena, const struct jobset *jobset, Snapshot__Jobset *pb)
{
    CHECK(jobset->grant.reserved || jobset->grant.reserved_count == 0);
    pb->n_terms = jobset->grant.terms ? jobset->spec.rjob_count : 0;
    pb->terms = ARENA_ARRAY(arena, Snapshot__Terms *, pb->n_terms);
    for (size_t r = 0; r < pb->n_terms; r++)
        pb->terms[r] = write_terms(arena, &jobset->grant.terms[r]);
    pb->n_reserved_machines = pb->n_reserved_chips = jobset->grant.reserved_count;
    pb->n_reserved_cpu_milli = pb->n_reserved_memory_bytes = jobset->grant.reserved_count;
    pb->reserved_machines = ARENA_ARRAY(arena, uint32_t, jobset->grant.reserved_count);
    pb->reserved_chips = ARENA_ARRAY(arena, uint64_t, jobset->grant.reserved_count);
    pb->reserved_cpu_milli = ARENA_ARRAY(arena, int64_t, jobset->grant.reserved_count);
    pb->reserved_memory_bytes = ARENA_ARRAY(arena, int64_t, jobset->grant.reserved_count);
    const struct room *rooms = jobset->grant.reserved;
    for (size_t i = 0; i < jobset->grant.reserved_count; i++) {
        CHECK(i == 0 || rooms[i].machine > rooms[i - 1].machine); /* as read_rooms() wants them */
        pb->reserved_machines[i] = rooms[i].machine;
        pb->reserved_chips[i] = rooms[i].chips;
        pb->reserved_cpu_milli[i] = rooms[i].cpu_milli;
        pb->reserved_memory_bytes[i] = rooms[i].memory_bytes;
    }
}

static void read_terms(struct arena *arena, const Snapshot__Terms *pb, struct rjob_terms *terms)
{
    terms->node_labels = snapshot_read_labels(arena, pb->node_labels, pb->n_node_labels);
    terms->labels = snapshot_read_labels(arena, pb->labels, pb->n_labels);
    terms->annotations = snapshot_read_labels(arena, pb->annotations, pb->n_annotations);
    terms->toleration_count = pb->n_tolerations;
    terms->tolerations = ARENA_ARRAY(arena, struct toleration, pb->n_tolerations);
    for (size_t i = 0; i < pb->n_tolerations; i++) {
        const Snapshot__Toleration *item = pb->tolerations[i];
        terms->tolerations[i] = (struct toleration){str_from(item->key), str_from(item->op),
                                                    str_from(item->value), str_from(item->effect)};
    }
    terms->level_count = pb->n_levels;
    terms->levels = ARENA_ARRAY(arena, struct str, pb->n_levels);
    for (size_t i = 0; i < pb->n_levels; i++)
        terms->levels[i] = str_from(pb->levels[i]);
    terms->spares = (struct queue_spares){pb->spares, pb->cold_spares};
}

static bool read_rooms(struct arena *arena, const struct cluster *cluster, const Snapshot__Jobset *pb,
                       struct room **ret_rooms)
{
    size_t count = pb->n_reserved_machines;
    struct room *rooms = *ret_rooms = ARENA_ARRAY(arena, struct room, count);
    if (pb->n_reserved_chips != count || pb->n_reserved_cpu_milli != count ||
        pb->n_reserved_memory_bytes != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        rooms[i] = (struct room){pb->reserved_machines[i], pb->reserved_chips[i], pb->reserved_cpu_milli[i],
                                 pb->reserved_memory_bytes[i]};
        if (rooms[i].machine >= cluster->machine_count || (i && rooms[i].machine <= rooms[i - 1].machine) ||
            rooms[i].cpu_milli < 0 || rooms[i].memory_bytes < 0 || rooms[i].cpu_milli > INT64_MAX / 4 ||
            rooms[i].memory_bytes > INT64_MAX / 4)
            return false;
    }
    return true;
}

bool snapshot_read_terms(struct job_store *store, const struct cluster *cluster, struct jobset *jobset,
                         const Snapshot__Jobset *pb)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct room *rooms;
    for (size_t r = 0; r < pb->n_terms; r++)
        if (pb->terms[r]->spares > SPARES_PER_JOB_MAX)
            return false;
    if ((pb->n_terms && pb->n_terms != jobset->spec.rjob_count) || !read_rooms(&arena, cluster, pb, &rooms))
        return false;
    if (pb->n_terms) {
        struct rjob_terms *terms = ARENA_ARRAY(&arena, struct rjob_terms, pb->n_terms);
        for (size_t r = 0; r < pb->n_terms; r++)
            read_terms(&arena, pb->terms[r], &terms[r]);
        jobset_keep_terms(jobset, terms);
    }
    jobset_keep_reserved(store, jobset, rooms, pb->n_reserved_machines);
    return true;
}
