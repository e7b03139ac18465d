/* snapshot_health.c - faults, and the state of the breaker, in snapshots. */
#include "core/agent/codec_pb.h"
#include "core/health/sender.h"
#include "core/log/snapshot.h"

struct writing_faults {
    void (*put)(void *context, Snapshot__Record *record);
    void *context;
};

static void write_lists(struct arena *arena, const struct fault *fault, Snapshot__Fault *pb)
{
    CHECK(fault->recent.len <= FAULT_TIMES_MAX && fault->job_count <= FAULT_JOBS_MAX);
    pb->n_recent = fault->recent.len;
    pb->recent = fault->recent.items;
    pb->n_jobs = fault->job_count;
    pb->jobs = ARENA_ARRAY(arena, char *, fault->job_count);
    for (uint32_t i = 0; i < fault->job_count; i++)
        pb->jobs[i] = codec_text(arena, fault->jobs[i]);
}

static void write_times(const struct fault *fault, Snapshot__Fault *pb)
{
    CHECK(fault->first_ns <= fault->last_ns && fault->open == (fault->closed_ns == 0));
    pb->first_ns = fault->first_ns;
    pb->last_ns = fault->last_ns;
    pb->opened_ns = fault->opened_ns;
    pb->closed_ns = fault->closed_ns;
    pb->recovered_ns = fault->recovered_ns;
    pb->created_ns = fault->created_ns;
    pb->shown_ns = fault->shown_ns;
}

static void write_fault(void *context, const struct fault *fault)
{
    CHECK(fault->level < LEVELS && fault->domain < DOMAINS && fault->count > 0);
    struct writing_faults *writing = context;
    struct arena arena ARENA_CLEANUP = {0};
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Fault pb = SNAPSHOT__FAULT__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_FAULT;
    record.fault = &pb;
    pb.uid = fault->uid;
    pb.name = codec_text(&arena, fault->name);
    pb.machine = codec_text(&arena, fault->machine);
    pb.code = codec_text(&arena, fault->code);
    pb.place = codec_text(&arena, fault->place);
    pb.evidence = codec_text(&arena, buf_str(&fault->evidence));
    pb.remedy = codec_text(&arena, fault->remedy);
    pb.user = codec_text(&arena, fault->user);
    pb.sender = codec_text(&arena, fault->sender);
    pb.chip = fault->chip;
    pb.severity = fault->severity;
    pb.domain = fault->domain;
    pb.high = fault->high;
    pb.open = fault->open;
    pb.software = fault->software;
    pb.level = fault->level;
    pb.own = fault->own;
    pb.reason = fault->reason;
    pb.action = fault->action;
    pb.count = fault->count;
    pb.job = fault->job;
    pb.jobs_more = fault->jobs_more;
    pb.changed_seq = fault->changed_seq;
    pb.unshown = fault->unshown;
    write_times(fault, &pb);
    write_lists(&arena, fault, &pb);
    writing->put(writing->context, &record);
}

static void write_sender(void *context, const struct sender *sender)
{
    CHECK(sender->name.len > 0);
    struct writing_faults *writing = context;
    struct arena arena ARENA_CLEANUP = {0};
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__FaultSender pb = SNAPSHOT__FAULT_SENDER__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_FAULT_SENDER;
    record.fault_sender = &pb;
    pb.name = codec_text(&arena, sender->name);
    pb.busy_ns = sender->busy_ns;
    writing->put(writing->context, &record);
}

void snapshot_write_health(const struct health *health, void (*put)(void *context, Snapshot__Record *record),
                           void *context)
{
    struct writing_faults writing = {put, context};
    fault_visit(health, write_fault, &writing);
    sender_visit(health, write_sender, &writing);
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Breaker pb = SNAPSHOT__BREAKER__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_BREAKER;
    record.breaker = &pb;
    pb.isolations = (int64_t *)health_isolations(health, &pb.n_isolations);
    pb.dropped = fault_dropped(health);
    if (pb.n_isolations || pb.dropped)
        put(context, &record);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static bool is_sane(const Snapshot__Fault *pb, int64_t now_ns)
{
    return pb->severity >= SEVERITY_NOTICE && pb->severity <= SEVERITY_CRITICAL && pb->domain < DOMAINS &&
           pb->level < LEVELS && pb->own < LEVELS && pb->reason < FAULT_REASONS &&
           pb->action < FAULT_ACTIONS && pb->chip >= -1 && pb->n_recent <= FAULT_TIMES_MAX &&
           pb->n_jobs <= FAULT_JOBS_MAX && pb->open == (pb->closed_ns == 0) && pb->count > 0 &&
           pb->first_ns >= 0 && pb->first_ns <= pb->last_ns && pb->last_ns <= now_ns &&
           pb->opened_ns <= now_ns && pb->closed_ns <= now_ns && pb->shown_ns <= now_ns &&
           pb->recovered_ns >= 0 && pb->recovered_ns <= now_ns && (pb->open || !pb->recovered_ns) &&
           (!pb->open || pb->level >= pb->own) && (!pb->software || pb->n_recent == 0);
}

static void read_times(const Snapshot__Fault *pb, struct fault *fault)
{
    fault->first_ns = pb->first_ns;
    fault->last_ns = pb->last_ns;
    fault->opened_ns = pb->opened_ns;
    fault->closed_ns = pb->closed_ns;
    fault->recovered_ns = pb->recovered_ns;
    fault->created_ns = pb->created_ns;
    fault->shown_ns = pb->shown_ns;
}

static void read_numbers(const Snapshot__Fault *pb, struct fault *fault)
{
    fault->chip = pb->chip;
    fault->severity = (enum signal_severity)pb->severity;
    fault->domain = (enum fault_domain)pb->domain;
    fault->high = pb->high;
    fault->open = pb->open;
    fault->software = pb->software;
    fault->level = (enum fault_level)pb->level;
    fault->own = (enum fault_level)pb->own;
    fault->reason = (enum fault_reason)pb->reason;
    fault->action = (enum fault_action)pb->action;
    fault->count = pb->count;
    fault->job = pb->job;
    fault->jobs_more = pb->jobs_more;
    fault->changed_seq = pb->changed_seq;
    fault->unshown = pb->unshown;
}

bool snapshot_read_fault(struct health *health, int64_t now_ns, const Snapshot__Fault *pb)
{
    if (!is_sane(pb, now_ns))
        return false;
    struct str evidence = str_from(pb->evidence);
    struct fault saved = {
        .uid = pb->uid,
        .name = str_from(pb->name),
        .machine = str_from(pb->machine),
        .code = str_from(pb->code),
        .place = str_from(pb->place),
        .remedy = str_from(pb->remedy),
        .user = str_from(pb->user),
        .sender = str_from(pb->sender),
        .created_ns = pb->created_ns,
        .evidence = {.data = (char *)evidence.data, .len = evidence.len},
        .recent = {.items = pb->recent, .len = pb->n_recent},
        .job_count = (uint32_t)pb->n_jobs,
    };
    read_numbers(pb, &saved);
    read_times(pb, &saved);
    for (size_t i = 0; i < pb->n_jobs; i++)
        saved.jobs[i] = str_from(pb->jobs[i]);
    return health_restore(health, &saved);
}

bool snapshot_read_breaker(struct health *health, int64_t now_ns, const Snapshot__Breaker *pb)
{
    for (size_t i = 0; i < pb->n_isolations; i++)
        if (pb->isolations[i] > now_ns || (i > 0 && pb->isolations[i] < pb->isolations[i - 1]))
            return false;
    health_restore_breaker(health, pb->isolations, pb->n_isolations, pb->dropped);
    return true;
}

/* Reads a sender; its stamp is at most a whole burst ahead of now. */
bool snapshot_read_sender(struct health *health, int64_t now_ns, const Snapshot__FaultSender *pb)
{
    int64_t ahead_ns = (FAULT_PUBLIC_MAX + 1) * NS_PER_SECOND;
    return pb->busy_ns >= 0 && pb->busy_ns - now_ns <= ahead_ns &&
           sender_restore(health, str_from(pb->name), pb->busy_ns);
}
