#include "core/agent/codec_pb.h"

#include "base/check.h"
#include "core/words/limits.h"

_Static_assert((int)REPORT_STARTED == WIRE__REPORT_KIND__REPORT_KIND_STARTED &&
                   (int)REPORT_EXITED == WIRE__REPORT_KIND__REPORT_KIND_EXITED &&
                   (int)REPORT_START_FAILED == WIRE__REPORT_KIND__REPORT_KIND_START_FAILED &&
                   (int)REPORT_JOINED == WIRE__REPORT_KIND__REPORT_KIND_JOINED &&
                   (int)REPORT_SHARD_SAVED == WIRE__REPORT_KIND__REPORT_KIND_SHARD_SAVED,
               "kinds of reports");

static Wire__Signature **write_signatures(struct arena *arena, const struct signature *signatures,
                                          size_t count)
{
    CHECK(count <= SIGNATURES_MAX);
    if (count == 0)
        return NULL;
    Wire__Signature **list = ARENA_ARRAY(arena, Wire__Signature *, count);
    for (size_t i = 0; i < count; i++) {
        CHECK(signature_is_valid(&signatures[i]));
        list[i] = ARENA_NEW(arena, Wire__Signature);
        wire__signature__init(list[i]);
        list[i]->kind = signatures[i].kind;
        list[i]->line = codec_text(arena, signatures[i].line);
    }
    return list;
}

Wire__RankRoutes *codec_write_routes(struct arena *arena, const struct rank_routes *routes)
{
    CHECK(routes->session > 0 || !routes->open);
    if (routes->session == 0)
        return NULL;
    Wire__RankRoutes *ret = ARENA_NEW(arena, Wire__RankRoutes);
    wire__rank_routes__init(ret);
    ret->session = routes->session;
    ret->open = routes->open;
    ret->tables = routes->tables;
    ret->without = routes->without;
    ret->wrong = routes->wrong;
    return ret;
}

struct rank_routes codec_read_routes(const Wire__RankRoutes *pb)
{
    if (!pb || pb->session == 0)
        return (struct rank_routes){0};
    return (struct rank_routes){pb->session, pb->open, pb->tables, pb->without, pb->wrong};
}

static void write_report(struct arena *arena, const struct task_report *report, Wire__TaskReport *ret)
{
    CHECK(report->kind >= REPORT_STARTED && report->kind <= REPORT_ROUTES);
    wire__task_report__init(ret);
    ret->kind = (Wire__ReportKind)report->kind;
    ret->task = report->task;
    ret->exit_code = report->exit_code;
    ret->signal = (uint32_t)report->signal;
    ret->oom = report->oom;
    ret->fenced = report->fenced;
    ret->started_ns = report->started_ns;
    ret->finished_ns = report->finished_ns;
    ret->step = report->step;
    ret->peer_rank = report->peer_rank;
    ret->pid = report->pid;
    ret->message = codec_text(arena, report->message);
    ret->not_ready = report->not_ready;
    ret->n_containers = report->container_count;
    if (report->container_count > 0)
        ret->containers = codec_write_statuses(arena, report->containers, report->container_count);
    ret->reason = codec_text(arena, report->reason);
    ret->warning = report->warning;
    ret->n_signatures = report->signature_count;
    ret->signatures = write_signatures(arena, report->signatures, report->signature_count);
    ret->attempt_plus_1 = report->attempt_plus_1;
    ret->can_rejoin = report->can_rejoin;
    ret->spare = report->spare;
    ret->routes = codec_write_routes(arena, &report->routes);
}

static Wire__TaskReport **write_report_list(struct arena *arena, const struct task_report *reports,
                                            size_t count)
{
    CHECK(reports || count == 0);
    if (count == 0)
        return NULL;
    Wire__TaskReport *items = ARENA_ARRAY(arena, Wire__TaskReport, count);
    Wire__TaskReport **list = ARENA_ARRAY(arena, Wire__TaskReport *, count);
    for (size_t i = 0; i < count; i++) {
        write_report(arena, &reports[i], &items[i]);
        list[i] = &items[i];
    }
    return list;
}

static Wire__AttemptSeen **write_seen(struct arena *arena, const struct attempt_seen *seen, size_t count)
{
    CHECK(count <= ATTEMPTS_SEEN_MAX);
    Wire__AttemptSeen *items = ARENA_ARRAY(arena, Wire__AttemptSeen, count);
    Wire__AttemptSeen **list = ARENA_ARRAY(arena, Wire__AttemptSeen *, count);
    for (size_t i = 0; i < count; i++) {
        wire__attempt_seen__init(&items[i]);
        items[i].jobset = seen[i].jobset;
        items[i].attempt = seen[i].attempt;
        items[i].epoch = seen[i].epoch;
        list[i] = &items[i];
    }
    return list;
}

void codec_write_hello(struct arena *arena, const struct hello *hello, Wire__Hello *ret)
{
    wire__hello__init(ret);
    ret->version = hello->version;
    ret->machine = codec_text(arena, hello->machine);
    ret->incarnation = hello->incarnation;
    ret->connection = hello->connection;
    ret->chips = hello->chips;
    ret->cpu_milli = hello->cpu_milli;
    ret->memory_bytes = hello->memory_bytes;
    ret->software = codec_text(arena, hello->software);
    ret->rank_tables = hello->rank_tables;
    ret->n_reports = hello->report_count;
    ret->reports = write_report_list(arena, hello->reports, hello->report_count);
    ret->errands = hello->errands;
    ret->n_errand_ids = hello->errand_count;
    ret->errand_ids = hello->errand_ids;
    ret->injection = hello->injection;
    ret->n_seen = hello->seen_count;
    ret->seen = write_seen(arena, hello->seen, hello->seen_count);
    ret->cluster = hello->cluster;
}

void codec_write_reports(struct arena *arena, const struct reports *reports, Wire__Reports *ret)
{
    wire__reports__init(ret);
    ret->number = reports->number;
    ret->n_items = reports->count;
    ret->items = write_report_list(arena, reports->items, reports->count);
    ret->n_signals = reports->signal_count;
    ret->signals = codec_write_signals(arena, reports->signals, reports->signal_count);
    ret->n_errands = reports->errand_count;
    ret->errands = codec_write_errand_ends(arena, reports->errands, reports->errand_count);
}

static Wire__TaskStep *write_step(struct arena *arena, const struct task_step *step)
{
    CHECK(step->metric_count <= METRICS_MAX);
    Wire__TaskStep *ret = ARENA_NEW(arena, Wire__TaskStep);
    wire__task_step__init(ret);
    ret->task = step->task;
    ret->step = step->step;
    ret->total = step->total;
    ret->source = step->source;
    ret->first_plus_1 = step->first_plus_1;
    ret->attempt_plus_1 = step->attempt_plus_1;
    ret->n_metrics = step->metric_count;
    if (step->metric_count > 0)
        ret->metrics = ARENA_ARRAY(arena, Wire__StepMetric *, step->metric_count);
    for (size_t i = 0; i < step->metric_count; i++) {
        Wire__StepMetric *metric = ret->metrics[i] = ARENA_NEW(arena, Wire__StepMetric);
        wire__step_metric__init(metric);
        metric->name = codec_text(arena, step->metrics[i].name);
        metric->micro = step->metrics[i].micro;
    }
    if (step->pace.steps > 0) {
        ret->pace = ARENA_NEW(arena, Wire__Pace);
        wire__pace__init(ret->pace);
        ret->pace->steps = (uint64_t)step->pace.steps;
        ret->pace->elapsed_us = (uint64_t)step->pace.elapsed_us;
        ret->pace->own_us = (uint64_t)step->pace.own_us;
    }
    return ret;
}

static Wire__Usage *write_usage(struct arena *arena, const struct usage *usage)
{
    CHECK(usage->item_count <= USAGE_ITEMS_MAX);
    Wire__Usage *ret = ARENA_NEW(arena, Wire__Usage);
    wire__usage__init(ret);
    ret->window_ns = usage->window_ns;
    ret->cpu_nano = usage->cpu_nano;
    ret->memory_bytes = usage->memory_bytes;
    ret->n_items = usage->item_count;
    if (usage->item_count > 0)
        ret->items = ARENA_ARRAY(arena, Wire__ContainerUsage *, usage->item_count);
    for (size_t i = 0; i < usage->item_count; i++) {
        Wire__ContainerUsage *item = ret->items[i] = ARENA_NEW(arena, Wire__ContainerUsage);
        wire__container_usage__init(item);
        item->task = usage->items[i].task;
        item->container = usage->items[i].container;
        item->cpu_nano = usage->items[i].cpu_nano;
        item->memory_bytes = usage->items[i].memory_bytes;
    }
    return ret;
}

void codec_write_heartbeat(struct arena *arena, const struct heartbeat *heartbeat, Wire__Heartbeat *ret)
{
    CHECK(heartbeat->steps || heartbeat->step_count == 0);
    wire__heartbeat__init(ret);
    ret->sent_ns = heartbeat->sent_ns;
    ret->wall_ns = heartbeat->wall_ns;
    ret->grant = heartbeat->grant;
    ret->n_steps = heartbeat->step_count;
    if (heartbeat->step_count > 0)
        ret->steps = ARENA_ARRAY(arena, Wire__TaskStep *, heartbeat->step_count);
    for (size_t i = 0; i < heartbeat->step_count; i++)
        ret->steps[i] = write_step(arena, &heartbeat->steps[i]);
    if (heartbeat->usage.window_ns > 0)
        ret->usage = write_usage(arena, &heartbeat->usage);
}

/* --- reading -------------------------------------------------------------------------------------- */

static bool report_kind_known(Wire__ReportKind kind)
{
    return kind >= WIRE__REPORT_KIND__REPORT_KIND_STARTED && kind <= WIRE__REPORT_KIND__REPORT_KIND_ROUTES;
}

/* Kinds of signatures that only a later agent knows are left out. */
static int read_signatures(struct arena *arena, const Wire__TaskReport *pb, struct task_report *ret,
                           struct error *error)
{
    if (pb->n_signatures > SIGNATURES_MAX)
        return error_set(error, ERROR_LIMIT, "report of task %llu: %zu signatures (SIGNATURES_MAX is %d)",
                         (unsigned long long)pb->task, pb->n_signatures, SIGNATURES_MAX);
    ret->signatures = codec_try_array(arena, pb->n_signatures, sizeof *ret->signatures, error);
    if (!ret->signatures)
        return ERROR_LIMIT;
    for (size_t i = 0; i < pb->n_signatures; i++) {
        struct signature signature = {(enum signature_kind)pb->signatures[i]->kind,
                                      str_from(pb->signatures[i]->line)};
        if (pb->signatures[i]->kind >= SIGNATURE_KINDS)
            continue;
        if (!signature_is_valid(&signature))
            return error_set(error, ERROR_INVALID, "report of task %llu: signature %zu is malformed",
                             (unsigned long long)pb->task, i);
        ret->signatures[ret->signature_count++] = signature;
    }
    return 0;
}

static int read_report(struct arena *arena, const Wire__TaskReport *pb, struct task_report *ret,
                       struct error *error)
{
    if (pb->task == 0)
        return error_set(error, ERROR_INVALID, "report without a task");
    if (pb->signal > 64 || pb->exit_code < -1 || pb->exit_code > 255)
        return error_set(error, ERROR_INVALID, "report of task %llu: exit code %d, signal %u",
                         (unsigned long long)pb->task, pb->exit_code, pb->signal);
    if (pb->attempt_plus_1 > INT32_MAX)
        return error_set(error, ERROR_INVALID, "report of task %llu: attempt %u",
                         (unsigned long long)pb->task, pb->attempt_plus_1);
    *ret = (struct task_report){.kind = (enum report_kind)pb->kind,
                                .task = pb->task,
                                .exit_code = pb->exit_code,
                                .signal = (int32_t)pb->signal,
                                .oom = pb->oom,
                                .fenced = pb->fenced,
                                .started_ns = pb->started_ns,
                                .finished_ns = pb->finished_ns,
                                .step = pb->step,
                                .peer_rank = pb->peer_rank,
                                .pid = pb->pid,
                                .message = str_from(pb->message),
                                .not_ready = pb->not_ready,
                                .container_count = pb->n_containers,
                                .reason = str_from(pb->reason),
                                .warning = pb->warning,
                                .attempt_plus_1 = pb->attempt_plus_1,
                                .can_rejoin = pb->can_rejoin,
                                .spare = pb->spare,
                                .routes = codec_read_routes(pb->routes)};
    int rc = pb->n_signatures ? read_signatures(arena, pb, ret, error) : 0;
    if (rc < 0 || pb->n_containers == 0)
        return rc;
    return codec_read_statuses(arena, pb->containers, pb->n_containers, &ret->containers, error);
}

static int read_report_list(struct arena *arena, Wire__TaskReport *const *list, size_t count,
                            struct task_report **ret_reports, size_t *ret_count, struct error *error)
{
    if (count > REPORTS_PER_EVENT_MAX)
        return error_set(error, ERROR_LIMIT, "%zu task reports in one message (REPORTS_PER_EVENT_MAX is %d)",
                         count, REPORTS_PER_EVENT_MAX);
    struct task_report *reports = codec_try_array(arena, count, sizeof *reports, error);
    if (!reports)
        return ERROR_LIMIT;
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        if (!report_kind_known(list[i]->kind))
            continue; /* a kind that only a later agent knows */
        int rc = read_report(arena, list[i], &reports[known], error);
        if (rc < 0)
            return rc;
        known++;
    }
    CHECK(known <= count && known <= REPORTS_PER_EVENT_MAX);
    *ret_reports = reports;
    *ret_count = known;
    return 0;
}

static int read_seen(struct arena *arena, const Wire__Hello *pb, struct hello *hello, struct error *error)
{
    if (pb->n_seen > ATTEMPTS_SEEN_MAX)
        return error_set(error, ERROR_LIMIT,
                         "hello of " STR_FORMAT ": attempts of %zu JobSets (ATTEMPTS_SEEN_MAX is %d)",
                         STR_ARG(hello->machine), pb->n_seen, ATTEMPTS_SEEN_MAX);
    hello->seen = ARENA_ARRAY(arena, struct attempt_seen, pb->n_seen);
    hello->seen_count = pb->n_seen;
    for (size_t i = 0; i < pb->n_seen; i++) {
        const Wire__AttemptSeen *item = pb->seen[i];
        if (item->attempt < 0 || item->attempt == INT32_MAX)
            return error_set(error, ERROR_INVALID, "hello of " STR_FORMAT ": attempt %d",
                             STR_ARG(hello->machine), item->attempt);
        hello->seen[i] = (struct attempt_seen){item->jobset, item->attempt, item->epoch};
    }
    return 0;
}

int codec_read_hello(struct arena *arena, const Wire__Hello *pb, struct hello *ret, struct error *error)
{
    struct hello hello = {.version = pb->version,
                          .machine = str_from(pb->machine),
                          .incarnation = pb->incarnation,
                          .connection = pb->connection,
                          .chips = pb->chips,
                          .cpu_milli = pb->cpu_milli,
                          .memory_bytes = pb->memory_bytes,
                          .software = str_from(pb->software),
                          .rank_tables = pb->rank_tables,
                          .errands = pb->errands,
                          .errand_ids = pb->errand_ids,
                          .errand_count = pb->n_errand_ids,
                          .injection = pb->injection,
                          .cluster = pb->cluster};
    if (hello.machine.len == 0 || hello.machine.len > NAME_MAX_BYTES)
        return error_set(error, ERROR_INVALID, "hello: machine name of %zu bytes", hello.machine.len);
    if (hello.cpu_milli < 0 || hello.memory_bytes < 0)
        return error_set(error, ERROR_INVALID, "hello of " STR_FORMAT ": negative cpu or memory",
                         STR_ARG(hello.machine));
    if (hello.errand_count > ERRANDS_PER_MACHINE_MAX)
        return error_set(error, ERROR_LIMIT,
                         "hello of " STR_FORMAT ": %zu errands (ERRANDS_PER_MACHINE_MAX is %d)",
                         STR_ARG(hello.machine), hello.errand_count, ERRANDS_PER_MACHINE_MAX);
    int rc = read_report_list(arena, pb->reports, pb->n_reports, &hello.reports, &hello.report_count, error);
    if (rc == 0)
        rc = read_seen(arena, pb, &hello, error);
    if (rc < 0)
        return rc;
    *ret = hello;
    return 0;
}

int codec_read_reports(struct arena *arena, const Wire__Reports *pb, struct reports *ret, struct error *error)
{
    struct reports reports = {.number = pb->number};
    int rc = read_report_list(arena, pb->items, pb->n_items, &reports.items, &reports.count, error);
    if (rc == 0)
        rc = codec_read_signals(arena, pb->signals, pb->n_signals, &reports.signals, &reports.signal_count,
                                error);
    if (rc == 0)
        rc = codec_read_errand_ends(arena, pb->errands, pb->n_errands, &reports.errands,
                                    &reports.errand_count, error);
    if (rc < 0)
        return rc;
    *ret = reports;
    return 0;
}

static int read_step(const Wire__TaskStep *pb, struct task_step *ret, struct error *error)
{
    if (pb->step < 0 || pb->total < 0 || pb->first_plus_1 < 0)
        return error_set(error, ERROR_INVALID, "step of task %llu: negative", (unsigned long long)pb->task);
    if (pb->n_metrics > METRICS_MAX)
        return error_set(error, ERROR_INVALID, "step of task %llu: %zu metrics (METRICS_MAX is %d)",
                         (unsigned long long)pb->task, pb->n_metrics, METRICS_MAX);
    *ret = (struct task_step){.task = pb->task,
                              .step = pb->step,
                              .total = pb->total,
                              .source = (enum step_source)pb->source,
                              .first_plus_1 = pb->first_plus_1,
                              .metric_count = pb->n_metrics,
                              .attempt_plus_1 = pb->attempt_plus_1};
    if (pb->pace) {
        if (pb->pace->steps > INT64_MAX || pb->pace->elapsed_us > INT64_MAX || pb->pace->own_us > INT64_MAX)
            return error_set(error, ERROR_INVALID, "pace of task %llu: too large",
                             (unsigned long long)pb->task);
        ret->pace = (struct pace_sums){(int64_t)pb->pace->steps, (int64_t)pb->pace->elapsed_us,
                                       (int64_t)pb->pace->own_us};
    }
    for (size_t i = 0; i < pb->n_metrics; i++)
        ret->metrics[i] =
            (struct step_metric){.name = str_from(pb->metrics[i]->name), .micro = pb->metrics[i]->micro};
    return 0;
}

static int read_usage(struct arena *arena, const Wire__Usage *pb, struct usage *ret, struct error *error)
{
    if (pb->window_ns < 0 || pb->cpu_nano < 0 || pb->memory_bytes < 0)
        return error_set(error, ERROR_INVALID, "usage: negative");
    if (pb->n_items > USAGE_ITEMS_MAX)
        return error_set(error, ERROR_LIMIT, "usage of %zu containers (USAGE_ITEMS_MAX is %d)", pb->n_items,
                         USAGE_ITEMS_MAX);
    struct usage usage = {.window_ns = pb->window_ns,
                          .cpu_nano = pb->cpu_nano,
                          .memory_bytes = pb->memory_bytes,
                          .item_count = pb->n_items};
    usage.items = codec_try_array(arena, pb->n_items, sizeof *usage.items, error);
    if (!usage.items)
        return ERROR_LIMIT;
    for (size_t i = 0; i < pb->n_items; i++) {
        const Wire__ContainerUsage *item = pb->items[i];
        if (item->cpu_nano < 0 || item->memory_bytes < 0)
            return error_set(error, ERROR_INVALID, "usage of task %llu: negative",
                             (unsigned long long)item->task);
        usage.items[i] = (struct container_usage){
            item->task, item->container, item->cpu_nano, item->memory_bytes};
    }
    *ret = usage;
    return 0;
}

int codec_read_heartbeat(struct arena *arena, const Wire__Heartbeat *pb, struct heartbeat *ret,
                         struct error *error)
{
    struct heartbeat heartbeat = {.sent_ns = pb->sent_ns, .wall_ns = pb->wall_ns, .grant = pb->grant};
    heartbeat.steps = codec_try_array(arena, pb->n_steps, sizeof *heartbeat.steps, error);
    if (!heartbeat.steps)
        return ERROR_LIMIT;
    for (size_t i = 0; i < pb->n_steps; i++) {
        if (pb->steps[i]->source >= STEP_SOURCES)
            continue; /* a source that only a later agent knows */
        int rc = read_step(pb->steps[i], &heartbeat.steps[heartbeat.step_count], error);
        if (rc < 0)
            return rc;
        heartbeat.step_count++;
    }
    if (pb->usage) {
        int rc = read_usage(arena, pb->usage, &heartbeat.usage, error);
        if (rc < 0)
            return rc;
    }
    *ret = heartbeat;
    return 0;
}
