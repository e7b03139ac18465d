/* scenario.c - reads a scenario; scenario_cluster.c writes the cluster's document. */
#include "sim/capacity/scenario.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/words/signal.h"
#include "doc/json.h"
#include "sim/capacity/field.h"
#include "sim/capacity/scenario_queues.h"

#define DAY_S      86400.0
#define YEAR_S     (366 * DAY_S)
#define HOUR_NS    (INT64_C(3600) * 1000000000)
#define SPAN_MAX_S (10 * YEAR_S)

const char *const failure_kind_names[FAILURE_KINDS] = {"crash", "fault", "false-alarm", "process",
                                                       "corruption"};

void sim_scenario_paper_mix(struct workload_model *workload)
{
    /* Per mille of jobs and of chip-time; the sums are 1,000. */
    static const struct {
        uint32_t chips, jobs, time;
    } sizes[] = {{1, 4200, 15},   {2, 800, 7},    {4, 800, 8},     {8, 3300, 60},  {16, 300, 30},
                 {32, 220, 40},   {64, 160, 70},  {128, 100, 110}, {256, 60, 140}, {512, 30, 150},
                 {1024, 18, 150}, {2048, 8, 100}, {4096, 4, 120}};
    workload->jobs_per_day = 7200;
    workload->chip_hours = 44.3;
    workload->runtime_sigma = 1;
    workload->runtime_max_s = 7 * DAY_S;
    workload->failed = 0.27;
    workload->cancelled = 0.035;
    workload->size_count = sizeof sizes / sizeof *sizes;
    for (uint32_t i = 0; i < workload->size_count; i++)
        workload->sizes[i] =
            (struct job_size){sizes[i].chips, sizes[i].jobs / 10000.0, sizes[i].time / 1000.0};
}

/* --- the cluster ------------------------------------------------------------------------------------ */

static void scenario_read_cluster(struct reader *reader, struct sim_scenario *scenario,
                                  const struct place *cluster)
{
    static const char *const known[] = {"machines",      "chips", "machinesPerRack",
                                        "sparesPerRack", "spec",  NULL};
    struct place machines = field_of(cluster, "machines"), chips = field_of(cluster, "chips");
    struct place racks = field_of(cluster, "machinesPerRack"), spares = field_of(cluster, "sparesPerRack");
    struct place spec = field_of(cluster, "spec");
    int64_t count = 0, of_machine = 8, of_rack = 2, spare = 0;
    bool by_trace = scenario->trace.file[0] && scenario->trace.format == TRACE_PHALANX;
    bool is_object = field_object(reader, cluster, known);
    if ((cluster->doc && !is_object) || (!machines.doc && !by_trace)) {
        field_wrong(reader, cluster->doc ? &machines : cluster, "the number of machines");
        return;
    }
    field_count(reader, &machines, 1, SCENARIO_MACHINES_MAX, &count);
    field_count(reader, &chips, 1, 64, &of_machine);
    field_count(reader, &racks, 1, 1024, &of_rack);
    field_count(reader, &spares, 0, of_rack - 1, &spare);
    if (spec.doc && spec.doc->kind != DOC_OBJECT)
        field_wrong(reader, &spec, "an object");
    scenario->machines = machines.doc ? (uint32_t)count : 0;
    scenario->has_racks = racks.doc || spares.doc;
    scenario->chips = (uint32_t)of_machine;
    scenario->machines_per_rack = (uint32_t)(of_rack < count || !machines.doc ? of_rack : count);
    scenario->spares_per_rack = (uint32_t)spare;
    scenario->spec = spec.doc ? doc_clone(&scenario->arena, spec.doc) : NULL;
}

/* --- failures --------------------------------------------------------------------------------------- */

/* Reads `rate`, failures of a machine in 1,000 days as in the paper, or `life`, a distribution. */
static void scenario_read_life(struct reader *reader, const struct place *failure, struct draw *ret)
{
    struct place rate = field_of(failure, "rate"), life = field_of(failure, "life");
    double per_kilo_day = 0;
    if (rate.doc && life.doc)
        field_says(reader, &life, "rate and life exclude each other");
    else if (!rate.doc && !life.doc)
        field_wrong(reader, &rate, "failures in 1,000 days, or life in place of it");
    field_number(reader, &rate, 1e-6, 1e6, &per_kilo_day);
    if (rate.doc && per_kilo_day > 0)
        *ret = (struct draw){.kind = DRAW_EXPONENTIAL, .a = 1000 * DAY_S / per_kilo_day};
    field_draw(reader, &life, ret);
    if (!reader->failed && draw_mean(ret) < 1)
        field_says(reader, &life, "expected a mean of at least a second");
}

static void scenario_read_lemons(struct reader *reader, const struct place *lemons,
                                 struct failure_model *model)
{
    static const char *const known[] = {"share", "factor", NULL};
    struct place share = field_of(lemons, "share"), factor = field_of(lemons, "factor");
    if (!field_object(reader, lemons, known))
        return;
    field_number(reader, &share, 0, 1, &model->lemon_share);
    field_number(reader, &factor, 1, 1e6, &model->lemon_factor);
}

static void scenario_read_infant(struct reader *reader, const struct place *infant,
                                 struct failure_model *model)
{
    static const char *const known[] = {"time", "factor", NULL};
    struct place time = field_of(infant, "time"), factor = field_of(infant, "factor");
    if (!field_object(reader, infant, known))
        return;
    field_span(reader, &time, 0, SPAN_MAX_S, &model->infant_s);
    field_number(reader, &factor, 1, 1e6, &model->infant_factor);
}

static bool scenario_signal_is_code(const char *code)
{
    struct signal signal = {.code = str_from(code),
                            .assertion = SIGNAL_OCCUR,
                            .severity = SEVERITY_MAJOR,
                            .chip = -1,
                            .count = 1};
    return signal_is_valid(&signal);
}

static void scenario_read_planned(struct reader *reader, struct sim_scenario *scenario,
                                  const struct place *item, uint32_t model)
{
    static const char *const known[] = {"machine", "time", "repair", NULL};
    struct place machine = field_of(item, "machine"), time = field_of(item, "time");
    struct place repair = field_of(item, "repair");
    struct planned_failure planned = {.model = model, .repair_s = -1};
    int64_t number = 1;
    if (!field_object(reader, item, known) || !machine.doc || !time.doc) {
        field_says(reader, item, "expected machine and time");
        return;
    }
    field_count(reader, &machine, 1, scenario->machines, &number);
    field_span(reader, &time, 0, SPAN_MAX_S, &planned.at_s);
    field_span(reader, &repair, 0, SPAN_MAX_S, &planned.repair_s);
    planned.machine = (uint32_t)number - 1;
    vec_push(&scenario->planned, planned);
}

/* Reads when failures occur: `rate` or `life` for random ones, or `at`, a list of machines and times. */
static void scenario_read_when(struct reader *reader, struct sim_scenario *scenario,
                               const struct place *failure, uint32_t number)
{
    struct failure_model *model = &scenario->failures[number];
    struct place at = field_of(failure, "at"), rate = field_of(failure, "rate");
    struct place life = field_of(failure, "life");
    model->planned = at.doc != NULL;
    if (!model->planned) {
        scenario_read_life(reader, failure, &model->life);
        return;
    }
    if (rate.doc || life.doc)
        field_says(reader, &at, "at excludes rate and life");
    if (model->of_racks)
        field_says(reader, &at, "at names machines: scope: rack is for rate and life");
    for (size_t i = 0; field_array(reader, &at) && i < doc_len(at.doc) && !reader->failed; i++) {
        struct place item = field_item(&at, i);
        scenario_read_planned(reader, scenario, &item, number);
    }
}

/* Reads how a corruption is found: at least one of detection, tests and validation. */
static void scenario_read_tests(struct reader *reader, const struct place *failure,
                                struct failure_model *model)
{
    static const char *const known[] = {"interval", "coverage", NULL};
    struct place tests = field_of(failure, "tests"), validation = field_of(failure, "validation");
    struct place interval = field_of(&tests, "interval"), coverage = field_of(&tests, "coverage");
    struct corruption_tests *ret = &model->tests;
    if (model->kind != FAILURE_CORRUPTION) {
        if (tests.doc || validation.doc)
            field_says(reader, tests.doc ? &tests : &validation, "of kind: corruption alone");
        return;
    }
    *ret = (struct corruption_tests){.coverage = 1,
                                     .validates = validation.doc != NULL,
                                     .detects = field_of(failure, "detection").doc != NULL};
    if (field_object(reader, &tests, known)) {
        if (!interval.doc)
            field_wrong(reader, &interval, "the time between two tests of a machine");
        field_span(reader, &interval, 1, SPAN_MAX_S, &ret->interval_s);
        field_number(reader, &coverage, 1e-3, 1, &ret->coverage);
    }
    field_draw(reader, &validation, &ret->validation);
    if (!tests.doc && !ret->validates && !ret->detects)
        field_says(reader, failure, "expected tests, validation or detection: nothing finds the corruption");
    snprintf(model->signal, sizeof model->signal, "qualify/gpu"); /* unless the file gives another */
}

static void scenario_read_failure(struct reader *reader, struct sim_scenario *scenario,
                                  const struct place *failure, uint32_t number)
{
    static const char *const known[] = {"at",     "name",   "kind",       "rate",      "life",
                                        "scope",  "lemons", "infant",     "detection", "repair",
                                        "signal", "tests",  "validation", NULL};
    static const char *const scopes[] = {"machine", "rack"};
    struct place kind = field_of(failure, "kind"), name = field_of(failure, "name");
    struct place scope = field_of(failure, "scope"), lemons = field_of(failure, "lemons");
    struct place infant = field_of(failure, "infant"), detection = field_of(failure, "detection");
    struct place repair = field_of(failure, "repair"), signal = field_of(failure, "signal");
    struct failure_model *model = &scenario->failures[number];
    int which = FAILURE_CRASH, scope_at = 0;
    *model = (struct failure_model){.detection = {DRAW_CONSTANT, 4, 0},
                                    .repair = {DRAW_LOGNORMAL, 4 * 3600, 1},
                                    .lemon_factor = 1,
                                    .infant_factor = 1,
                                    .signal = "xid/79"};
    if (!field_object(reader, failure, known)) {
        field_wrong(reader, failure, "an object");
        return;
    }
    field_choice(reader, &kind, failure_kind_names, FAILURE_KINDS, &which);
    model->kind = (enum failure_kind)which;
    snprintf(model->name, sizeof model->name, "%s", failure_kind_names[which]);
    field_text(reader, &name, model->name, sizeof model->name);
    field_choice(reader, &scope, scopes, 2, &scope_at);
    model->of_racks = scope_at == 1;
    scenario_read_when(reader, scenario, failure, number);
    scenario_read_lemons(reader, &lemons, model);
    scenario_read_infant(reader, &infant, model);
    field_draw(reader, &detection, &model->detection);
    field_draw(reader, &repair, &model->repair);
    scenario_read_tests(reader, failure, model);
    field_text(reader, &signal, model->signal, sizeof model->signal);
    if (!scenario_signal_is_code(model->signal))
        field_wrong(reader, &signal, "a code such as xid/79");
}

static void scenario_read_failures(struct reader *reader, struct sim_scenario *scenario,
                                   const struct place *list)
{
    if (!field_array(reader, list))
        return;
    if (doc_len(list->doc) > SCENARIO_FAILURES_MAX) {
        field_says(reader, list, "expected at most %d failures, got %zu", SCENARIO_FAILURES_MAX,
                   doc_len(list->doc));
        return;
    }
    scenario->failure_count = (uint32_t)doc_len(list->doc);
    for (uint32_t i = 0; i < scenario->failure_count; i++) {
        struct place item = field_item(list, i);
        scenario_read_failure(reader, scenario, &item, i);
    }
}

/* --- work ------------------------------------------------------------------------------------------- */

static void scenario_read_sizes(struct reader *reader, struct workload_model *workload,
                                const struct place *list)
{
    static const char *const known[] = {"chips", "jobs", "time", NULL};
    double jobs = 0, time = 0;
    if (!field_array(reader, list))
        return;
    size_t count = doc_len(list->doc);
    if (count < 1 || count > SCENARIO_SIZES_MAX) {
        field_says(reader, list, "expected 1 to %d sizes, got %zu", SCENARIO_SIZES_MAX, count);
        return;
    }
    workload->size_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct place item = field_item(list, i), chips = field_of(&item, "chips");
        struct place job_share = field_of(&item, "jobs"), time_share = field_of(&item, "time");
        struct job_size *size = &workload->sizes[i];
        int64_t number = 0;
        *size = (struct job_size){0};
        if (!field_object(reader, &item, known) || !chips.doc || !job_share.doc || !time_share.doc) {
            field_says(reader, &item, "expected chips, jobs and time");
            return;
        }
        field_count(reader, &chips, 1, 8 * SCENARIO_MACHINES_MAX, &number);
        field_number(reader, &job_share, 1e-9, 1e9, &size->job_share);
        field_number(reader, &time_share, 1e-9, 1e9, &size->time_share);
        size->chips = (uint32_t)number;
        jobs += size->job_share;
        time += size->time_share;
    }
    for (size_t i = 0; i < count && !reader->failed; i++) {
        workload->sizes[i].job_share /= jobs;
        workload->sizes[i].time_share /= time;
    }
}

static void scenario_read_checkpoint(struct reader *reader, struct workload_model *workload,
                                     const struct place *checkpoint)
{
    static const char *const known[] = {"interval", "write", "fromChips", NULL};
    struct place interval = field_of(checkpoint, "interval"), write = field_of(checkpoint, "write");
    struct place from = field_of(checkpoint, "fromChips");
    int64_t chips = workload->checkpoint_chips;
    if (!field_object(reader, checkpoint, known))
        return;
    field_span(reader, &interval, 1, SPAN_MAX_S, &workload->interval_s);
    field_span(reader, &write, 0, DAY_S, &workload->write_s);
    field_count(reader, &from, 0, INT32_MAX, &chips);
    workload->checkpoint_chips = (uint32_t)chips;
}

static void scenario_read_runtime(struct reader *reader, struct workload_model *workload,
                                  const struct place *place)
{
    struct place failed = field_of(place, "failed"), cancelled = field_of(place, "cancelled");
    struct place launch = field_of(place, "launch"), load = field_of(place, "load");
    struct place stop = field_of(place, "stop"), sigma = field_of(place, "runtimeSigma");
    struct place most = field_of(place, "runtimeMax");
    field_number(reader, &failed, 0, 1, &workload->failed);
    field_number(reader, &cancelled, 0, 1 - workload->failed, &workload->cancelled);
    struct place rejoins = field_of(place, "rejoins");
    field_bool(reader, &rejoins, &workload->rejoins);
    field_span(reader, &launch, 0.001, DAY_S, &workload->launch_s);
    field_span(reader, &load, 0, DAY_S, &workload->load_s);
    field_span(reader, &stop, 0.001, DAY_S, &workload->stop_s);
    field_number(reader, &sigma, 0, 10, &workload->runtime_sigma);
    field_span(reader, &most, 1, SPAN_MAX_S, &workload->runtime_max_s);
}

/* Reads annotations, which replace all default ones. */
static void scenario_read_annotations(struct reader *reader, struct sim_scenario *scenario,
                                      const struct place *place)
{
    struct buf json BUF_CLEANUP = {0};
    if (!place->doc)
        return;
    if (place->doc->kind != DOC_OBJECT) {
        field_wrong(reader, place, "an object");
        return;
    }
    for (size_t i = 0; i < place->doc->object.len; i++)
        if (place->doc->object.members[i].value->kind != DOC_STRING) {
            struct place value = {.doc = place->doc->object.members[i].value};
            snprintf(value.path, sizeof value.path, "%.170s[%zu]", place->path, i);
            field_wrong(reader, &value, "a text");
        }
    json_write(&json, place->doc);
    scenario->workload.annotations = arena_str(&scenario->arena, buf_str(&json));
}

/* Reads the words of a command line, which is used only on real machines. */
static void scenario_read_command(struct reader *reader, struct sim_scenario *scenario,
                                  const struct place *place)
{
    struct buf json BUF_CLEANUP = {0};
    if (!field_array(reader, place))
        return;
    for (size_t i = 0; i < doc_len(place->doc); i++) {
        struct place word = field_item(place, i);
        if (word.doc->kind != DOC_STRING)
            field_wrong(reader, &word, "a text");
    }
    if (doc_len(place->doc) == 0)
        field_wrong(reader, place, "a list of words");
    json_write(&json, place->doc);
    scenario->workload.command = arena_str(&scenario->arena, buf_str(&json));
}

static void scenario_read_job(struct reader *reader, struct sim_scenario *scenario, const struct place *item)
{
    static const char *const known[] = {"submit", "chips", "runtime",  "count",
                                        "fails",  "queue", "priority", NULL};
    struct place submit = field_of(item, "submit"), chips = field_of(item, "chips");
    struct place runtime = field_of(item, "runtime"), count = field_of(item, "count");
    struct place fails = field_of(item, "fails"), queue = field_of(item, "queue");
    struct place priority = field_of(item, "priority");
    struct listed_job job = {0};
    int64_t size = 0, alike = 1;
    if (!field_object(reader, item, known) || !chips.doc || !runtime.doc) {
        field_says(reader, item, "expected chips and runtime");
        return;
    }
    field_span(reader, &submit, 0, SPAN_MAX_S, &job.submit_s);
    field_count(reader, &chips, 1, 8 * SCENARIO_MACHINES_MAX, &size);
    field_span(reader, &runtime, 1, SPAN_MAX_S, &job.runtime_s);
    field_count(reader, &count, 1, 100000, &alike);
    field_bool(reader, &fails, &job.fails);
    scenario_read_queue_name(reader, scenario, &queue, &job.queue);
    if (job.queue)
        job.priority = scenario->queues.items[job.queue - 1].priority;
    scenario_read_priority(reader, scenario, &priority, &job.priority);
    job.chips = (uint32_t)size;
    for (int64_t i = 0; i < alike && !reader->failed; i++)
        vec_push(&scenario->jobs, job);
}

int scenario_by_submit(const void *a, const void *b)
{
    const struct listed_job *first = a, *second = b;
    if (first->submit_s != second->submit_s)
        return first->submit_s < second->submit_s ? -1 : 1;
    if (first->chips != second->chips)
        return first->chips < second->chips ? -1 : 1;
    if (first->runtime_s != second->runtime_s)
        return first->runtime_s < second->runtime_s ? -1 : 1;
    if (first->queue != second->queue)
        return first->queue < second->queue ? -1 : 1;
    if (first->priority != second->priority)
        return first->priority > second->priority ? -1 : 1;
    return (first->known > second->known) -
           (first->known < second->known); /* by their order in the history */
}

static void scenario_read_trace(struct reader *reader, struct sim_scenario *scenario,
                                const struct place *place)
{
    static const char *const known[] = {"file",  "format",   "processorsPerChip", "chipsPerNode",
                                        "queue", "priority", "priorities",        NULL};
    static const char *const columns[] = {"none", "column"};
    struct trace_source *source = &scenario->trace;
    struct place file = field_of(place, "file"), format = field_of(place, "format");
    struct place processors = field_of(place, "processorsPerChip"), chips = field_of(place, "chipsPerNode");
    struct place queue = field_of(place, "queue"), priority = field_of(place, "priority");
    struct place classes = field_of(place, "priorities");
    int64_t per_chip = 1, per_node = 8;
    int which = -1, tag = TRACE_QUEUE, column = 0;
    if (!field_object(reader, place, known))
        return;
    field_text(reader, &file, source->file, sizeof source->file);
    field_choice(reader, &format, trace_format_names, TRACE_FORMATS, &which);
    field_count(reader, &processors, 1, 1000000, &per_chip);
    field_count(reader, &chips, 1, 64, &per_node);
    field_choice(reader, &queue, trace_tag_names, TRACE_TAGS, &tag);
    field_choice(reader, &priority, columns, 2, &column);
    scenario_read_classes(reader, scenario, &classes);
    if (!file.doc || !source->file[0])
        field_wrong(reader, &file, "the name of a file");
    if (!format.doc)
        field_wrong(reader, &format, "one of swf, sacct, phalanx, helios, acme, alibaba, philly");
    if (column && classes.doc)
        field_says(reader, &priority, "the column excludes priorities by QoS");
    if (reader->failed)
        return;
    source->format = (enum trace_format)which;
    source->queue = (enum trace_tag)tag;
    source->terms = (struct trace_terms){(uint32_t)per_chip, (uint32_t)per_node, column == 1};
}

static void scenario_read_workload(struct reader *reader, struct sim_scenario *scenario,
                                   const struct place *place)
{
    static const char *const known[] = {"mix",       "jobsPerDay",   "chipHours",  "sizes",       "failed",
                                        "cancelled", "checkpoint",   "launch",     "rejoins",     "load",
                                        "stop",      "runtimeSigma", "runtimeMax", "annotations", "jobs",
                                        "trace",     "command",      "queue",      "priority",    NULL};
    static const char *const mixes[] = {"none", "rsc-1"};
    struct workload_model *workload = &scenario->workload;
    struct place mix = field_of(place, "mix"), sizes = field_of(place, "sizes");
    struct place rate = field_of(place, "jobsPerDay"), hours = field_of(place, "chipHours");
    struct place checkpoint = field_of(place, "checkpoint"), jobs = field_of(place, "jobs");
    struct place annotations = field_of(place, "annotations"), command = field_of(place, "command");
    struct place queue = field_of(place, "queue"), priority = field_of(place, "priority");
    int which = 0;
    if (!field_object(reader, place, known))
        return;
    field_choice(reader, &mix, mixes, 2, &which);
    if (which == 1)
        sim_scenario_paper_mix(workload);
    field_number(reader, &rate, 0, 1e7, &workload->jobs_per_day);
    field_number(reader, &hours, 1e-6, 1e9, &workload->chip_hours);
    scenario_read_sizes(reader, workload, &sizes);
    scenario_read_checkpoint(reader, workload, &checkpoint);
    scenario_read_runtime(reader, workload, place);
    scenario_read_annotations(reader, scenario, &annotations);
    scenario_read_command(reader, scenario, &command);
    scenario_read_queue_name(reader, scenario, &queue, &workload->queue);
    if (workload->queue)
        workload->priority = scenario->queues.items[workload->queue - 1].priority;
    scenario_read_priority(reader, scenario, &priority, &workload->priority);
    if (workload->jobs_per_day > 0 && workload->size_count == 0)
        field_wrong(reader, &sizes, "the sizes of jobs, or mix: rsc-1");
    if (!field_array(reader, &jobs))
        return;
    for (size_t i = 0; i < doc_len(jobs.doc) && !reader->failed; i++) {
        struct place item = field_item(&jobs, i);
        scenario_read_job(reader, scenario, &item);
    }
}

/* Returns the number of chips that jobs can use together. */
static uint64_t scenario_chips(const struct sim_scenario *scenario)
{
    uint32_t racks = scenario->machines / scenario->machines_per_rack;
    return (uint64_t)scenario->chips * (scenario->machines - (uint64_t)racks * scenario->spares_per_rack);
}

/* Sets the queue and the priority of a trace's job. */
static int scenario_place(struct sim_scenario *scenario, const struct trace *trace, const char *file,
                          const struct trace_job *job, struct listed_job *listed, struct error *error)
{
    struct str name = trace->names.items[job->tags[scenario->trace.queue]];
    bool found;
    listed->queue = scenario_queue_of(scenario, name, &found);
    if (!found)
        return scenario_no_queue(scenario, name, error);
    listed->priority = job->priority;
    if (!scenario_class_of(scenario, trace->names.items[job->tags[TRACE_QOS]], &listed->priority) &&
        !scenario->trace.terms.priorities && listed->queue)
        listed->priority = scenario->queues.items[listed->queue - 1].priority;
    int rc = scenario_note_priority(scenario, listed->priority, error);
    return rc < 0 ? error_wrap(error, "%s", file) : 0;
}

int sim_scenario_take_trace(struct sim_scenario *scenario, const struct trace *trace, const char *file,
                            size_t *ret_left_out, struct error *error)
{
    size_t left_out = 0;
    for (size_t i = 0; i < trace->jobs.len; i++) {
        const struct trace_job *job = &trace->jobs.items[i];
        struct listed_job listed = {.submit_s = job->submit_s,
                                    .runtime_s = job->runtime_s,
                                    .chips = job->chips,
                                    .fails = job->end == TRACE_FAILED,
                                    .cancelled = job->end == TRACE_CANCELLED};
        bool in_time = job->submit_s * 1e9 < (double)scenario->duration_ns;
        left_out += job->chips > scenario_chips(scenario);
        if (job->chips > scenario_chips(scenario) || !in_time)
            continue;
        int rc = scenario_place(scenario, trace, file, job, &listed, error);
        if (rc < 0)
            return rc;
        vec_push(&scenario->jobs, listed);
    }
    if (scenario->jobs.len > 1)
        qsort(scenario->jobs.items, scenario->jobs.len, sizeof *scenario->jobs.items, scenario_by_submit);
    *ret_left_out = left_out;
    return 0;
}

bool sim_scenario_is_open(const struct sim_scenario *scenario)
{
    return scenario->machines == 0;
}

/* Refuses jobs that are larger than the cluster, because they can never run. */
static void scenario_check_sizes(struct reader *reader, const struct sim_scenario *scenario,
                                 const struct place *workload)
{
    uint64_t most = scenario_chips(scenario);
    for (uint32_t i = 0; i < scenario->workload.size_count && scenario->workload.jobs_per_day > 0; i++)
        if (scenario->workload.sizes[i].chips > most)
            field_says(reader, workload, "jobs of %u chips never fit %llu", scenario->workload.sizes[i].chips,
                       (unsigned long long)most);
    for (size_t i = 0; i < scenario->jobs.len; i++)
        if (scenario->jobs.items[i].chips > most)
            field_says(reader, workload, "jobs of %u chips never fit %llu", scenario->jobs.items[i].chips,
                       (unsigned long long)most);
}

/* --- the whole -------------------------------------------------------------------------------------- */

static void scenario_read_all(struct reader *reader, struct sim_scenario *scenario, const struct place *root)
{
    static const char *const known[] = {"name",     "duration", "seed",   "cluster", "failures",
                                        "workload", "sweep",    "queues", NULL};
    struct place name = field_of(root, "name"), duration = field_of(root, "duration");
    struct place seed = field_of(root, "seed"), cluster = field_of(root, "cluster");
    struct place failures = field_of(root, "failures"), workload = field_of(root, "workload");
    struct place queues = field_of(root, "queues");
    int64_t number = 1;
    double duration_s = 30 * DAY_S;
    if (!field_object(reader, root, known)) {
        field_wrong(reader, root, "an object");
        return;
    }
    field_text(reader, &name, scenario->name, sizeof scenario->name);
    field_span(reader, &duration, 60, SPAN_MAX_S, &duration_s);
    field_count(reader, &seed, 0, INT64_MAX, &number);
    scenario->duration_ns = (int64_t)(duration_s * 1e9);
    scenario->has_duration = duration.doc != NULL;
    scenario->seed = (uint64_t)number;
    struct place trace = field_of(&workload, "trace");
    scenario_read_trace(reader, scenario, &trace);
    scenario_read_queues(reader, scenario, &queues);
    scenario_read_cluster(reader, scenario, &cluster);
    scenario_read_failures(reader, scenario, &failures);
    scenario_read_workload(reader, scenario, &workload);
    if (!reader->failed && !sim_scenario_is_open(scenario))
        scenario_check_sizes(reader, scenario, &workload);
    if (scenario->jobs.len > 1)
        qsort(scenario->jobs.items, scenario->jobs.len, sizeof *scenario->jobs.items, scenario_by_submit);
}

int sim_scenario_read(struct sim_scenario *ret_scenario, const struct doc *document, const char *file,
                      struct error *error)
{
    struct reader reader = {.file = file, .error = error};
    struct place root = {.doc = document};
    struct sim_scenario scenario = {
        .name = "scenario",
        .workload = {.chip_hours = 1,
                     .runtime_max_s = 7 * DAY_S,
                     .interval_s = 3600,
                     .write_s = 10,
                     .checkpoint_chips = 16,
                     .launch_s = 2,
                     .load_s = 298,
                     .stop_s = 5,
                     .command = STR("[\"run\"]"),
                     .annotations = STR("{\"phalanx.dev/recovery\":\"replace-machine,requeue\"}")},
    };
    scenario_read_all(&reader, &scenario, &root);
    if (reader.failed) {
        sim_scenario_done(&scenario);
        return ERROR_INVALID;
    }
    *ret_scenario = scenario;
    return 0;
}

void sim_scenario_done(struct sim_scenario *scenario)
{
    vec_done(&scenario->jobs);
    vec_done(&scenario->planned);
    vec_done(&scenario->racks);
    vec_done(&scenario->queues);
    vec_done(&scenario->priorities);
    vec_done(&scenario->trace.classes);
    arena_done(&scenario->arena);
}
