/* snapshot_ends.c - parts of a JobSet in snapshots: the signatures and faults of its ends, the answers to
 * them, and its ranks' step times. */
#include "core/agent/codec_pb.h"
#include "core/job/facts.h"
#include "core/log/snapshot.h"

enum { RANK_NUMBERS = 5 }; /* of struct pace_rank, in Pace.ranks */

static Snapshot__EndSignature **write_signatures(struct arena *arena, const struct end_signatures *signatures,
                                                 size_t *ret_count)
{
    CHECK(signatures->count <= END_SIGNATURES_MAX);
    Snapshot__EndSignature **list = ARENA_ARRAY(arena, Snapshot__EndSignature *, signatures->count);
    *ret_count = signatures->count;
    for (size_t i = 0; i < signatures->count; i++) {
        const struct end_signature *signature = &signatures->items[i];
        CHECK(signature->kind < SIGNATURE_KINDS && signature->tasks > 0);
        Snapshot__EndSignature *item = list[i] = ARENA_NEW(arena, Snapshot__EndSignature);
        snapshot__end_signature__init(item);
        item->kind = signature->kind;
        item->stopped = signature->stopped;
        item->many = signature->many;
        item->rank = signature->rank;
        item->tasks = signature->tasks;
        item->at_ns = signature->at_ns;
        item->machine = codec_text(arena, str_from(signature->machine));
        item->line = codec_text(arena, str_from(signature->line));
    }
    return list;
}

static bool read_signatures(Snapshot__EndSignature *const *list, size_t count, int64_t now_ns,
                            struct end_signatures *ret)
{
    if (count > END_SIGNATURES_MAX)
        return false;
    ret->items = count ? mem_alloc(count * sizeof(*ret->items)) : NULL;
    for (size_t i = 0; i < count; i++) {
        const Snapshot__EndSignature *item = list[i];
        struct signature said = {(enum signature_kind)item->kind, str_from(item->line)};
        if (item->kind >= SIGNATURE_KINDS || !signature_is_valid(&said) || item->at_ns > now_ns ||
            item->tasks == 0)
            return false;
        struct end_signature *signature = &ret->items[ret->count++];
        *signature = (struct end_signature){.kind = said.kind,
                                            .stopped = item->stopped,
                                            .many = item->many,
                                            .rank = item->rank,
                                            .tasks = item->tasks,
                                            .at_ns = item->at_ns};
        restart_copy_text(signature->machine, sizeof(signature->machine), str_from(item->machine));
        restart_copy_text(signature->line, sizeof(signature->line), str_from(item->line));
    }
    return true;
}

static Snapshot__EndFault **write_faults(struct arena *arena, const struct end_faults *faults,
                                         size_t *ret_count)
{
    CHECK(faults->count <= END_FAULTS_MAX);
    Snapshot__EndFault **list = ARENA_ARRAY(arena, Snapshot__EndFault *, faults->count);
    *ret_count = faults->count;
    for (size_t i = 0; i < faults->count; i++) {
        const struct end_fault *found = &faults->items[i];
        CHECK(found->level < LEVELS && found->domain < DOMAINS && found->at_ns <= found->last_ns);
        Snapshot__EndFault *item = list[i] = ARENA_NEW(arena, Snapshot__EndFault);
        snapshot__end_fault__init(item);
        item->fault = found->fault;
        item->level = found->level;
        item->domain = found->domain;
        item->software = found->software;
        item->at_ns = found->at_ns;
        item->last_ns = found->last_ns;
        item->code = codec_text(arena, str_from(found->code));
        item->machine = codec_text(arena, str_from(found->machine));
        item->user = codec_text(arena, str_from(found->user));
        item->name = codec_text(arena, str_from(found->name));
        item->evidence = codec_text(arena, str_from(found->evidence));
    }
    return list;
}

static bool read_faults(Snapshot__EndFault *const *list, size_t count, int64_t now_ns, struct end_faults *ret)
{
    if (count > END_FAULTS_MAX)
        return false;
    ret->items = count ? mem_alloc(count * sizeof(*ret->items)) : NULL;
    for (size_t i = 0; i < count; i++) {
        const Snapshot__EndFault *item = list[i];
        if (item->level >= LEVELS || item->domain >= DOMAINS || item->at_ns > item->last_ns ||
            item->last_ns > now_ns || !item->code[0])
            return false;
        struct end_fault *found = &ret->items[ret->count++];
        *found = (struct end_fault){.fault = item->fault,
                                    .level = (enum fault_level)item->level,
                                    .domain = (enum fault_domain)item->domain,
                                    .software = item->software,
                                    .at_ns = item->at_ns,
                                    .last_ns = item->last_ns};
        restart_copy_text(found->code, sizeof(found->code), str_from(item->code));
        restart_copy_text(found->machine, sizeof(found->machine), str_from(item->machine));
        restart_copy_text(found->user, sizeof(found->user), str_from(item->user));
        restart_copy_text(found->name, sizeof(found->name), str_from(item->name));
        restart_copy_text(found->evidence, sizeof(found->evidence), str_from(item->evidence));
    }
    return true;
}

static bool read_answers(const Snapshot__Jobset *pb, struct jobset *jobset)
{
    CHECK(jobset->history.records || pb->n_records == 0);
    for (size_t i = 0; i < pb->n_records && i < RESTART_RECORDS_MAX; i++) {
        const Snapshot__Restart *record = pb->records[i];
        if (record->rung >= RUNGS || strlen(record->passed) >= LADDER_WHY_MAX)
            return false;
        restart_record_decided(&jobset->history.records[i], (enum rung)record->rung,
                               str_from(record->passed));
    }
    return true;
}

void snapshot_write_ends(struct arena *arena, const struct jobset *jobset, Snapshot__Jobset *pb)
{
    CHECK(pb->n_records <= RESTART_RECORDS_MAX);
    pb->signatures = write_signatures(arena, &jobset->history.signatures, &pb->n_signatures);
    pb->faults = write_faults(arena, &jobset->history.faults, &pb->n_faults);
    for (size_t i = 0; i < pb->n_records; i++) {
        Snapshot__Restart *record = pb->records[i];
        record->signatures =
            write_signatures(arena, &jobset->history.records[i].signatures, &record->n_signatures);
        record->faults = write_faults(arena, &jobset->history.records[i].faults, &record->n_faults);
    }
}

bool snapshot_read_ends(int64_t now_ns, struct jobset *jobset, const Snapshot__Jobset *pb)
{
    bool read = read_signatures(pb->signatures, pb->n_signatures, now_ns, &jobset->history.signatures) &&
                read_faults(pb->faults, pb->n_faults, now_ns, &jobset->history.faults);
    for (size_t i = 0; read && i < pb->n_records && i < RESTART_RECORDS_MAX; i++) {
        const Snapshot__Restart *item = pb->records[i];
        read = read_signatures(item->signatures, item->n_signatures, now_ns,
                               &jobset->history.records[i].signatures) &&
               read_faults(item->faults, item->n_faults, now_ns, &jobset->history.records[i].faults);
    }
    return read && read_answers(pb, jobset);
}

void snapshot_write_pace(const struct jobset *jobset, void (*put)(void *context, Snapshot__Record *record),
                         void *context)
{
    const struct pace *pace = &jobset->pace;
    if (!pace->ranks)
        return;
    struct arena arena ARENA_CLEANUP = {0};
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Pace pb = SNAPSHOT__PACE__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_PACE;
    record.pace = &pb;
    pb.attempt = pace->attempt;
    pb.n_ranks = pace->count * RANK_NUMBERS;
    pb.ranks = ARENA_ARRAY(&arena, uint64_t, pb.n_ranks);
    for (size_t i = 0; i < pace->count; i++) {
        const struct pace_rank *rank = &pace->ranks[i];
        const uint64_t numbers[RANK_NUMBERS] = {rank->known, rank->sum, rank->squares,
                                                rank->bad + (uint64_t)rank->slow * (PACE_WINDOWS + 1),
                                                rank->good};
        mem_copy(pb.ranks + i * RANK_NUMBERS, numbers, sizeof(numbers));
    }
    put(context, &record);
}

bool snapshot_read_pace(struct jobset *jobset, const Snapshot__Pace *pb)
{
    struct pace *pace = &jobset->pace;
    if (pace->ranks || pb->n_ranks % RANK_NUMBERS || pb->n_ranks / RANK_NUMBERS > TASKS_PER_JOBSET_MAX)
        return false;
    pace->attempt = pb->attempt;
    pace->count = pb->n_ranks / RANK_NUMBERS;
    pace->ranks = mem_alloc(pace->count * sizeof(*pace->ranks));
    for (size_t i = 0; i < pace->count; i++) {
        const uint64_t *numbers = pb->ranks + i * RANK_NUMBERS;
        if (numbers[0] > UINT32_MAX || numbers[3] > 2 * PACE_WINDOWS + 1 || numbers[4] > PACE_WINDOWS)
            return false;
        pace->ranks[i] = (struct pace_rank){.known = (uint32_t)numbers[0],
                                            .sum = numbers[1],
                                            .squares = numbers[2],
                                            .bad = (uint8_t)(numbers[3] % (PACE_WINDOWS + 1)),
                                            .slow = numbers[3] > PACE_WINDOWS,
                                            .good = (uint8_t)numbers[4]};
        if (!pace_rank_is_valid(&pace->ranks[i]))
            return false;
    }
    return true;
}
