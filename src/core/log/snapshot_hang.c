/* snapshot_hang.c - JobSets that are watched for hangs, with their last diagnosis, in snapshots. */
#include "core/agent/codec_pb.h"
#include "core/hang/hang.h"
#include "core/log/snapshot.h"

static Snapshot__HangPart **write_parts(struct arena *arena, const struct hang_watch *watch)
{
    CHECK(watch->parts || watch->part_count == 0);
    Snapshot__HangPart **list = ARENA_ARRAY(arena, Snapshot__HangPart *, watch->part_count + 1);
    for (size_t i = 0; i < watch->part_count; i++) {
        const struct hang_part *part = &watch->parts[i];
        Snapshot__HangPart *pb = list[i] = ARENA_NEW(arena, Snapshot__HangPart);
        snapshot__hang_part__init(pb);
        pb->task = part->task;
        pb->errand = part->errand;
        pb->pod = codec_text(arena, part->pod);
        pb->machine = codec_text(arena, part->machine);
        pb->world = part->world;
        pb->rank = part->rank;
        pb->size = part->size;
        pb->answered = part->answered;
        pb->record = codec_text(arena, part->record);
    }
    return list;
}

static void write_watch(const struct hang_watch *watch, void (*put)(void *context, Snapshot__Record *record),
                        void *context)
{
    CHECK((watch->phase == HANG_COLLECTING) == (watch->open > 0));
    CHECK(watch->open <= watch->part_count && watch->verdict < HANG_VERDICTS);
    struct arena arena ARENA_CLEANUP = {0};
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Hang pb = SNAPSHOT__HANG__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_HANG;
    record.hang = &pb;
    pb.jobset = watch->jobset;
    pb.attempt = watch->attempt;
    pb.phase = watch->phase;
    pb.since_ns = watch->since_ns;
    pb.stepped_ns = watch->stepped_ns;
    pb.longest_ns = watch->longest_ns;
    pb.saving = watch->saving;
    pb.unexplained = watch->unexplained;
    pb.due_ns = watch->due_ns;
    pb.number = watch->number;
    pb.asked = watch->asked;
    pb.begun_ns = watch->begun_ns;
    pb.judged_ns = watch->judged_ns;
    pb.verdict = watch->verdict;
    pb.text = codec_text(&arena, watch->text);
    pb.forgotten = watch->forgotten;
    pb.n_parts = watch->part_count;
    pb.parts = write_parts(&arena, watch);
    put(context, &record);
}

void snapshot_write_hangs(const struct hangs *hangs, void (*put)(void *context, Snapshot__Record *record),
                          void *context)
{
    for (size_t i = 0; i < hangs_count(hangs); i++)
        write_watch(hang_at(hangs, i), put, context);
}

static bool is_sane(const Snapshot__Hang *pb, int64_t now_ns)
{
    return pb->phase >= HANG_WATCHING && pb->phase <= HANG_COLLECTING && pb->attempt >= -1 &&
           pb->since_ns >= 0 && pb->since_ns <= now_ns && pb->stepped_ns >= 0 && pb->stepped_ns <= now_ns &&
           pb->longest_ns >= 0 && pb->longest_ns <= now_ns && pb->due_ns >= 0 && pb->begun_ns >= 0 &&
           pb->begun_ns <= now_ns && pb->judged_ns >= 0 && pb->judged_ns <= now_ns &&
           pb->verdict < HANG_VERDICTS && pb->unexplained <= INT32_MAX && pb->n_parts <= TASKS_PER_JOBSET_MAX;
}

bool snapshot_read_hang(struct hangs *hangs, int64_t now_ns, const Snapshot__Hang *pb)
{
    struct arena arena ARENA_CLEANUP = {0};
    if (!is_sane(pb, now_ns))
        return false;
    struct hang_part *parts = ARENA_ARRAY(&arena, struct hang_part, pb->n_parts + 1);
    for (size_t i = 0; i < pb->n_parts; i++) {
        const Snapshot__HangPart *part = pb->parts[i];
        parts[i] = (struct hang_part){.task = part->task,
                                      .errand = part->errand,
                                      .pod = str_from(part->pod),
                                      .machine = str_from(part->machine),
                                      .world = part->world,
                                      .rank = part->rank,
                                      .size = part->size,
                                      .answered = part->answered,
                                      .record = str_from(part->record)};
    }
    struct hang_watch saved = {.jobset = pb->jobset,
                               .attempt = pb->attempt,
                               .phase = (uint8_t)pb->phase,
                               .since_ns = pb->since_ns,
                               .stepped_ns = pb->stepped_ns,
                               .longest_ns = pb->longest_ns,
                               .saving = pb->saving,
                               .unexplained = pb->unexplained,
                               .due_ns = pb->due_ns,
                               .number = pb->number,
                               .asked = pb->asked,
                               .begun_ns = pb->begun_ns,
                               .judged_ns = pb->judged_ns,
                               .verdict = (enum hang_verdict)pb->verdict,
                               .text = str_from(pb->text),
                               .forgotten = pb->forgotten,
                               .parts = parts,
                               .part_count = pb->n_parts};
    for (size_t i = 0; i < pb->n_parts; i++)
        saved.open += parts[i].errand != 0;
    return hangs_restore(hangs, &saved);
}
