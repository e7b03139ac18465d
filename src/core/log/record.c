#include "core/log/record.h"

#include "core/core.h"
#include "core/job/job.h"

#include <inttypes.h>

#include "base/check.h"
#include "core/agent/codec_pb.h"
#include "core/words/limits.h"
#include "core/object/object.h"
#include "core/receipt/receipt.h"
#include "core/log/record_switch.h"
#include "proto/log.pb-c.h"

/* The kinds are the field numbers of the oneof, so they can only be added to. */
_Static_assert((int)EVENT_BOOT == LOG__EVENT__KIND_BOOT && (int)EVENT_CLUSTER == LOG__EVENT__KIND_CLUSTER &&
                   (int)EVENT_TICK == LOG__EVENT__KIND_TICK && (int)EVENT_WRITE == LOG__EVENT__KIND_WRITE,
               "kinds of records");
_Static_assert((int)EVENT_MACHINE_HELLO == LOG__EVENT__KIND_MACHINE_HELLO &&
                   (int)EVENT_MACHINE_AWAY == LOG__EVENT__KIND_MACHINE_AWAY &&
                   (int)EVENT_MACHINE_GONE == LOG__EVENT__KIND_MACHINE_GONE &&
                   (int)EVENT_MACHINE_SILENT == LOG__EVENT__KIND_MACHINE_SILENT,
               "kinds of records");
_Static_assert((int)EVENT_REPORTS == LOG__EVENT__KIND_REPORTS &&
                   (int)EVENT_PROGRESS == LOG__EVENT__KIND_PROGRESS &&
                   (int)EVENT_PACE == LOG__EVENT__KIND_PACE,
               "kinds of records");
_Static_assert((int)EVENT_SWITCH_REPORT == LOG__EVENT__KIND_SWITCH_REPORT &&
                   (int)EVENT_SWITCH_HEALTH == LOG__EVENT__KIND_SWITCH_HEALTH &&
                   (int)EVENT_HOLD_OVER == LOG__EVENT__KIND_HOLD_OVER &&
                   (int)EVENT_LEVEL == LOG__EVENT__KIND_LEVEL,
               "kinds of records");

/* --- writing -------------------------------------------------------------------------------------------- */

static void write_write(struct arena *arena, const struct write_event *write, Log__Event *pb)
{
    CHECK(write->object >= OBJECT_JOBSET && write->object < OBJECT_KINDS);
    CHECK(write->request.len == 0 || write->request.len == REQUEST_ID_BYTES);
    Log__Write *ret = pb->write = ARENA_NEW(arena, Log__Write);
    log__write__init(ret);
    ret->verb = write->verb;
    ret->object = write->object;
    ret->namespace_ = codec_text(arena, write->namespace_);
    ret->name = codec_text(arena, write->name);
    ret->body = codec_text(arena, write->body);
    ret->if_version = write->if_version;
    ret->uid = codec_text(arena, write->uid_text);
    ret->grace_s = write->grace_s;
    ret->user = codec_text(arena, write->user);
    ret->propagation = write->propagation;
    ret->evict = write->evict;
    ret->draw = write->draw;
    ret->request.data = (uint8_t *)(uintptr_t)write->request.data; /* only read */
    ret->request.len = write->request.len;
    ret->content = write->content;
}

static Log__MachineNews *write_news(struct arena *arena, const struct event *event)
{
    CHECK(event->kind == EVENT_MACHINE_AWAY || event->kind == EVENT_MACHINE_GONE ||
          event->kind == EVENT_MACHINE_SILENT);
    Log__MachineNews *ret = ARENA_NEW(arena, Log__MachineNews);
    log__machine_news__init(ret);
    ret->machine = codec_text(arena, event->machine.machine);
    ret->evidence = codec_text(arena, event->machine.evidence);
    return ret;
}

static void write_progress(struct arena *arena, const struct progress_event *progress, Log__Event *pb)
{
    CHECK(progress->metric_count <= METRICS_MAX);
    Log__Progress *ret = pb->progress = ARENA_NEW(arena, Log__Progress);
    log__progress__init(ret);
    ret->jobset = progress->jobset;
    ret->attempt = progress->attempt;
    ret->step = progress->step;
    ret->total = progress->total;
    ret->source = progress->source;
    ret->first_plus_1 = progress->first_plus_1;
    ret->n_metrics = progress->metric_count;
    ret->metrics = ARENA_ARRAY(arena, Wire__StepMetric *, progress->metric_count);
    for (size_t i = 0; i < progress->metric_count; i++) {
        ret->metrics[i] = ARENA_NEW(arena, Wire__StepMetric);
        wire__step_metric__init(ret->metrics[i]);
        ret->metrics[i]->name = codec_text(arena, progress->metrics[i].name);
        ret->metrics[i]->micro = progress->metrics[i].micro;
    }
}

static void write_pace(struct arena *arena, const struct event *event, Log__Event *pb)
{
    CHECK(event->pace.count <= TASKS_PER_JOBSET_MAX);
    Log__Pace *ret = pb->pace = ARENA_NEW(arena, Log__Pace);
    log__pace__init(ret);
    ret->jobset = event->pace.jobset;
    ret->attempt = event->pace.attempt;
    ret->window_ns = event->pace.window_ns;
    ret->n_own_us = event->pace.count;
    ret->own_us = event->pace.own_us;
}

static void write_event(struct arena *arena, const struct event *event, Log__Event *pb)
{
    log__event__init(pb);
    pb->kind_case = (Log__Event__KindCase)event->kind;
    switch (event->kind) {
    case EVENT_BOOT:
        pb->boot = ARENA_NEW(arena, Log__Boot);
        log__boot__init(pb->boot);
        pb->boot->epoch = event->boot.epoch;
        pb->boot->version = codec_text(arena, event->boot.version);
        pb->boot->identity = event->boot.identity;
        pb->boot->paused = event->boot.paused;
        pb->boot->restored = event->boot.restored;
        pb->boot->secret.data = (uint8_t *)(uintptr_t)event->boot.secret.data; /* only read */
        pb->boot->secret.len = event->boot.secret.len;
        pb->boot->place = codec_text(arena, event->boot.place);
        break;
    case EVENT_CLUSTER:
        pb->cluster = ARENA_NEW(arena, Log__Cluster);
        log__cluster__init(pb->cluster);
        pb->cluster->document = codec_text(arena, event->cluster.document);
        break;
    case EVENT_TICK:
        pb->tick = ARENA_NEW(arena, Log__Tick);
        log__tick__init(pb->tick);
        break;
    case EVENT_WRITE:
        write_write(arena, &event->write, pb);
        break;
    case EVENT_MACHINE_HELLO:
        pb->machine_hello = ARENA_NEW(arena, Wire__Hello);
        codec_write_hello(arena, &event->machine_hello.hello, pb->machine_hello);
        break;
    case EVENT_MACHINE_AWAY:
    case EVENT_MACHINE_GONE:
    case EVENT_MACHINE_SILENT:
        pb->machine_away = write_news(arena, event); /* the three kinds share the union's pointer */
        break;
    case EVENT_REPORTS:
        pb->reports = ARENA_NEW(arena, Log__MachineReports);
        log__machine_reports__init(pb->reports);
        pb->reports->machine = codec_text(arena, event->reports.machine);
        pb->reports->reports = ARENA_NEW(arena, Wire__Reports);
        codec_write_reports(arena, &event->reports.reports, pb->reports->reports);
        break;
    case EVENT_PROGRESS:
        write_progress(arena, &event->progress, pb);
        break;
    case EVENT_PACE:
        write_pace(arena, event, pb);
        break;
    case EVENT_SWITCH_REPORT:
        pb->switch_report = record_write_report(arena, &event->switch_report);
        break;
    case EVENT_SWITCH_HEALTH:
        pb->switch_health = record_write_health(arena, &event->switch_health);
        break;
    case EVENT_HOLD_OVER:
        pb->hold_over = ARENA_NEW(arena, Log__HoldOver);
        log__hold_over__init(pb->hold_over);
        pb->hold_over->number = event->hold_over;
        break;
    case EVENT_LEVEL:
        pb->level = ARENA_NEW(arena, Log__Level);
        log__level__init(pb->level);
        pb->level->level = event->level;
        break;
    }
}

void record_encode(struct buf *out, const struct event *event)
{
    struct arena scratch ARENA_CLEANUP = {0};
    record_encode_next(out, event, &scratch);
}

void record_encode_next(struct buf *out, const struct event *event, struct arena *scratch)
{
    CHECK(event->kind >= EVENT_BOOT && event->kind <= EVENT_LEVEL);
    Log__Event pb;
    write_event(scratch, event, &pb);
    size_t size = log__event__get_packed_size(&pb);
    buf_reserve(out, size);
    size_t packed = log__event__pack(&pb, (uint8_t *)out->data + out->len);
    CHECK(packed == size);
    out->len += packed;
    out->data[out->len] = 0;
    arena_clear(scratch);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static bool is_verb(uint32_t verb)
{
    return verb >= WRITE_CREATE && verb <= WRITE_INJECT;
}

static int read_write(const Log__Write *pb, struct write_event *ret, struct error *error)
{
    if (!is_verb(pb->verb) || pb->object < OBJECT_JOBSET || pb->object >= OBJECT_KINDS ||
        pb->propagation > PROPAGATION_ORPHAN)
        return error_set(error, ERROR_UNSUPPORTED, "write with verb %u of object kind %u", pb->verb,
                         pb->object);
    if (pb->request.len != 0 && pb->request.len != REQUEST_ID_BYTES)
        return error_set(error, ERROR_CORRUPT, "write with a request id of %zu bytes (%d are expected)",
                         pb->request.len, REQUEST_ID_BYTES);
    *ret = (struct write_event){
        .verb = (enum write_verb)pb->verb,
        .object = (enum object_kind)pb->object,
        .namespace_ = str_from(pb->namespace_),
        .name = str_from(pb->name),
        .body = str_from(pb->body),
        .if_version = pb->if_version,
        .uid_text = str_from(pb->uid),
        .grace_s = pb->grace_s,
        .user = str_from(pb->user),
        .propagation = (enum propagation)pb->propagation,
        .evict = pb->evict,
        .draw = pb->draw,
        .request = {(const char *)pb->request.data, pb->request.len},
        .content = pb->content,
    };
    return 0;
}

static int read_progress(const Log__Progress *pb, struct progress_event *ret, struct error *error)
{
    if (pb->n_metrics > METRICS_MAX)
        return error_set(error, ERROR_INVALID, "progress with %zu metrics (METRICS_MAX is %d)", pb->n_metrics,
                         METRICS_MAX);
    if (pb->source >= STEP_SOURCES)
        return error_set(error, ERROR_INVALID, "progress of unknown source %u", pb->source);
    *ret = (struct progress_event){.jobset = pb->jobset,
                                   .attempt = pb->attempt,
                                   .step = pb->step,
                                   .total = pb->total,
                                   .source = (enum step_source)pb->source,
                                   .first_plus_1 = pb->first_plus_1,
                                   .metric_count = pb->n_metrics};
    for (size_t i = 0; i < pb->n_metrics; i++)
        ret->metrics[i] = (struct step_metric){str_from(pb->metrics[i]->name), pb->metrics[i]->micro};
    return 0;
}

static int read_pace(const Log__Pace *pb, struct pace_event *ret, struct error *error)
{
    if (pb->n_own_us > TASKS_PER_JOBSET_MAX)
        return error_set(error, ERROR_LIMIT, "a window of %zu ranks (TASKS_PER_JOBSET_MAX is %d)",
                         pb->n_own_us, TASKS_PER_JOBSET_MAX);
    *ret = (struct pace_event){pb->jobset, pb->attempt, pb->window_ns, pb->own_us, pb->n_own_us};
    return 0;
}

static int read_event(struct arena *arena, const Log__Event *pb, struct event *ret, struct error *error)
{
    CHECK((int)ret->kind == (int)pb->kind_case);
    switch (ret->kind) {
    case EVENT_BOOT:
        ret->boot.epoch = pb->boot->epoch;
        ret->boot.version = str_from(pb->boot->version);
        ret->boot.identity = pb->boot->identity;
        ret->boot.paused = pb->boot->paused;
        ret->boot.restored = pb->boot->restored;
        ret->boot.place = str_from(pb->boot->place);
        if (pb->boot->secret.len != 0 && pb->boot->secret.len != GANG_KEY_BYTES)
            return error_set(error, ERROR_CORRUPT, "boot with a secret of %zu bytes (%d are expected)",
                             pb->boot->secret.len, GANG_KEY_BYTES);
        ret->boot.secret = (struct str){(const char *)pb->boot->secret.data, pb->boot->secret.len};
        return 0;
    case EVENT_CLUSTER:
        ret->cluster.document = str_from(pb->cluster->document);
        return 0;
    case EVENT_TICK:
        return 0;
    case EVENT_WRITE:
        return read_write(pb->write, &ret->write, error);
    case EVENT_MACHINE_HELLO:
        return codec_read_hello(arena, pb->machine_hello, &ret->machine_hello.hello, error);
    case EVENT_MACHINE_AWAY:
    case EVENT_MACHINE_GONE:
    case EVENT_MACHINE_SILENT:
        ret->machine.machine = str_from(pb->machine_away->machine);
        ret->machine.evidence = str_from(pb->machine_away->evidence);
        return 0;
    case EVENT_REPORTS:
        ret->reports.machine = str_from(pb->reports->machine);
        if (!pb->reports->reports)
            return error_set(error, ERROR_INVALID, "reports of " STR_FORMAT " without content",
                             STR_ARG(ret->reports.machine));
        return codec_read_reports(arena, pb->reports->reports, &ret->reports.reports, error);
    case EVENT_PROGRESS:
        return read_progress(pb->progress, &ret->progress, error);
    case EVENT_PACE:
        return read_pace(pb->pace, &ret->pace, error);
    case EVENT_SWITCH_REPORT:
        return record_read_report(arena, pb->switch_report, &ret->switch_report, error);
    case EVENT_SWITCH_HEALTH:
        return record_read_health(arena, pb->switch_health, &ret->switch_health, error);
    case EVENT_HOLD_OVER:
        ret->hold_over = pb->hold_over->number;
        return 0;
    case EVENT_LEVEL:
        if (pb->level->level > this_release.level)
            return level_unread(pb->level->level, error);
        if (pb->level->level == 0)
            return error_set(error, ERROR_CORRUPT, "a raise of the level to 0");
        ret->level = pb->level->level;
        return 0;
    }
    return error_set(error, ERROR_UNSUPPORTED, "a record of a kind that this version does not know");
}

int record_decode(struct arena *arena, struct str bytes, struct event *ret_event, struct error *error)
{
    CHECK(bytes.data || bytes.len == 0);
    struct codec_memory memory;
    codec_memory_init(&memory, arena);
    Log__Event *pb = log__event__unpack(&memory.allocator, bytes.len, (const uint8_t *)bytes.data);
    if (!pb)
        return codec_unpack_error(&memory, bytes.len, error);
    struct event event = {.kind = (enum event_kind)pb->kind_case};
    int rc = read_event(arena, pb, &event, error);
    if (rc == 0)
        *ret_event = event;
    return rc;
}

/* --- levels -------------------------------------------------------------------------------------------- */

uint32_t level_of_event(const struct event *event)
{
    if (event->kind == EVENT_WRITE && event->write.request.len > 0)
        return LEVEL_RECEIPTS;
    return event->kind == EVENT_BOOT && event->boot.place.len > 0 ? LEVEL_PLACE : 0;
}

int level_unread(uint32_t level, struct error *error)
{
    CHECK(level > this_release.level);
    return error_set(error, ERROR_UNSUPPORTED,
                     "the log was raised to level %" PRIu32 ", and this version reads up to level %" PRIu32
                     ": run the version that raised it, or a newer one",
                     level, this_release.level);
}

/* --- for people ----------------------------------------------------------------------------------------- */

/* `core` may be NULL. */
static void describe_task(struct buf *out, obj_id uid, const struct core *core)
{
    const struct task *task = core ? jobs_find_task(core_jobs(core), uid) : NULL;
    if (task)
        buf_printf(out, " " STR_FORMAT "/" STR_FORMAT, STR_ARG(task->job->jobset->namespace_),
                   STR_ARG(task->name));
    else
        buf_printf(out, " %" PRIx64, uid);
}

static void describe_jobset(struct buf *out, obj_id uid, const struct core *core)
{
    const struct jobset *jobset = core ? jobs_find_uid(core_jobs(core), uid) : NULL;
    if (jobset)
        buf_printf(out, " " STR_FORMAT, STR_ARG(jobset->key));
    else
        buf_printf(out, " %" PRIx64, uid);
}

static void describe_reports(struct buf *out, const struct reports *reports, const struct core *core)
{
    CHECK(reports->items || reports->count == 0);
    static const char *const kinds[] = {"?",      "started",     "exited",    "start-failed",
                                        "joined", "shard-saved", "peer-gone", "preparing",
                                        "note",   "retry",       "routes"};
    _Static_assert(sizeof kinds / sizeof *kinds == REPORT_ROUTES + 1, "a name for each kind");
    for (size_t i = 0; i < reports->count; i++) {
        const struct task_report *report = &reports->items[i];
        buf_printf(out, " %s", kinds[report->kind <= REPORT_ROUTES ? report->kind : 0]);
        describe_task(out, report->task, core);
        if (report->kind == REPORT_EXITED)
            buf_printf(out, " (code %d, signal %d%s%s)", report->exit_code, report->signal,
                       report->oom ? ", oom" : "", report->fenced ? ", fenced" : "");
        if (report->kind == REPORT_SHARD_SAVED)
            buf_printf(out, " (step %" PRId64 ")", report->step);
    }
}

const char *record_verb_name(enum write_verb verb)
{
    static const char *const verbs[] = {"?",      "create",   "replace",  "delete",
                                        "status", "metadata", "diagnose", "inject"};
    _Static_assert(sizeof verbs / sizeof *verbs == WRITE_INJECT + 1, "a name for each verb");
    CHECK(is_verb(verb));
    return verbs[verb];
}

static void describe_write(struct buf *out, const struct write_event *write)
{
    static const char *const objects[OBJECT_KINDS] = {"?",    "jobset", "job",      "pod",
                                                      "node", "event",  "namespace"};
    CHECK(write->object < OBJECT_KINDS);
    buf_printf(out, "write %s %s " STR_FORMAT "/" STR_FORMAT " (%zu bytes)", record_verb_name(write->verb),
               objects[write->object] ? objects[write->object] : object_kind_name(write->object),
               STR_ARG(write->namespace_), STR_ARG(write->name), write->body.len);
    if (write->user.len)
        buf_printf(out, " by " STR_FORMAT, STR_ARG(write->user));
}

void record_describe(struct buf *out, const struct event *event)
{
    record_describe_named(out, event, NULL);
}

void record_describe_named(struct buf *out, const struct event *event, const struct core *core)
{
    switch (event->kind) {
    case EVENT_BOOT:
        buf_printf(out, "boot epoch %" PRIu64 " version " STR_FORMAT, event->boot.epoch,
                   STR_ARG(event->boot.version));
        if (event->boot.place.len)
            buf_printf(out, " at " STR_FORMAT, STR_ARG(event->boot.place));
        if (event->boot.restored)
            buf_printf(out, ", the log was restored");
        break;
    case EVENT_CLUSTER:
        buf_printf(out, "cluster (%zu bytes)", event->cluster.document.len);
        break;
    case EVENT_TICK:
        buf_printf(out, "tick");
        break;
    case EVENT_WRITE:
        describe_write(out, &event->write);
        break;
    case EVENT_MACHINE_HELLO:
        buf_printf(out, "machine-hello " STR_FORMAT " (%u chips, %zu tasks)",
                   STR_ARG(event->machine_hello.hello.machine), event->machine_hello.hello.chips,
                   event->machine_hello.hello.report_count);
        break;
    case EVENT_MACHINE_AWAY:
    case EVENT_MACHINE_GONE:
    case EVENT_MACHINE_SILENT:
        buf_printf(out, "machine-%s " STR_FORMAT ": " STR_FORMAT,
                   event->kind == EVENT_MACHINE_AWAY   ? "away"
                   : event->kind == EVENT_MACHINE_GONE ? "gone"
                                                       : "silent",
                   STR_ARG(event->machine.machine), STR_ARG(event->machine.evidence));
        break;
    case EVENT_REPORTS:
        buf_printf(out, "reports " STR_FORMAT ":", STR_ARG(event->reports.machine));
        describe_reports(out, &event->reports.reports, core);
        break;
    case EVENT_PROGRESS:
        buf_printf(out, "progress");
        describe_jobset(out, event->progress.jobset, core);
        buf_printf(out, " attempt %d step %" PRId64 " of %" PRId64, event->progress.attempt,
                   event->progress.step, event->progress.total);
        break;
    case EVENT_PACE:
        buf_printf(out, "pace");
        describe_jobset(out, event->pace.jobset, core);
        buf_printf(out, " attempt %d: %zu ranks", event->pace.attempt, event->pace.count);
        break;
    case EVENT_SWITCH_REPORT:
        record_describe_report(out, &event->switch_report);
        break;
    case EVENT_SWITCH_HEALTH:
        record_describe_health(out, &event->switch_health);
        break;
    case EVENT_HOLD_OVER:
        buf_printf(out, "hold-over %" PRIu64, event->hold_over);
        break;
    case EVENT_LEVEL:
        buf_printf(out, "level %" PRIu32, event->level);
        break;
    }
}
