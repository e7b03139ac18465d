/* snapshot_errand.c - errands in snapshots. */
#include "core/agent/codec_pb.h"
#include "core/errand/errand.h"
#include "core/model/model.h"
#include "core/log/snapshot.h"

void snapshot_write_errands(const struct errands *errands,
                            void (*put)(void *context, Snapshot__Record *record), void *context)
{
    for (size_t i = 0; i < errands_count(errands); i++) {
        const struct errand *errand = errands_at(errands, i);
        CHECK(errand->body.len <= ERRAND_BODY_MAX && errand->timeout_ns > 0);
        struct arena arena ARENA_CLEANUP = {0};
        Snapshot__Record record = SNAPSHOT__RECORD__INIT;
        Snapshot__Errand pb = SNAPSHOT__ERRAND__INIT;
        record.kind_case = SNAPSHOT__RECORD__KIND_ERRAND;
        record.errand = &pb;
        pb.uid = errand->uid;
        pb.machine = codec_text(&arena, errand->machine);
        pb.kind = errand->kind;
        pb.owner = errand->owner;
        pb.about = errand->about;
        pb.tag = errand->tag;
        pb.body = codec_text(&arena, errand->body);
        pb.timeout_ns = errand->timeout_ns;
        pb.begun_ns = errand->begun_ns;
        put(context, &record);
    }
}

bool snapshot_read_errand(struct errands *errands, const struct cluster *cluster, int64_t now_ns,
                          const Snapshot__Errand *pb)
{
    const struct machine *machine = cluster_find(cluster, str_from(pb->machine));
    if (!machine || (machine->state != MACHINE_READY && machine->state != MACHINE_AWAY) ||
        (machine->state == MACHINE_READY && !machine->errands) || pb->kind < ERRAND_HOOK ||
        pb->kind > ERRAND_INJECT || pb->owner < ERRAND_OF_REPAIR || pb->owner > ERRAND_OF_INJECTION ||
        pb->timeout_ns <= 0 || pb->timeout_ns > ERRAND_TIMEOUT_MAX_NS || pb->begun_ns > now_ns ||
        pb->begun_ns < 0 || errands_count(errands) >= ERRANDS_MAX)
        return false;
    struct errand saved = {.uid = pb->uid,
                           .machine = str_from(pb->machine),
                           .kind = (enum errand_kind)pb->kind,
                           .owner = (enum errand_owner)pb->owner,
                           .about = pb->about,
                           .tag = pb->tag,
                           .body = str_from(pb->body),
                           .timeout_ns = pb->timeout_ns,
                           .begun_ns = pb->begun_ns};
    return saved.body.len <= ERRAND_BODY_MAX && errands_restore(errands, &saved);
}
