/* Watches the job of a scenario's run, and checks the scenario's expectations. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cmd/inject_watch.h"
#include "os/file.h"

#define JOBSETS "/apis/jobset.x-k8s.io/v1alpha2/namespaces/"
enum { ASK_MS = 2000, FILE_BYTES_MAX = 1 << 20 };

void job_watch_begin(struct job_watch *watch, const struct scenario *scenario, const char *job)
{
    *watch = (struct job_watch){
        .scenario = scenario, .began_ns = client_wall(), .attempt = -1, .first_attempt = -1, .step = -1};
    snprintf(watch->job, sizeof watch->job, "%s", job);
}

void job_watch_done(struct job_watch *watch)
{
    for (size_t i = 0; i < watch->faults.len; i++) {
        buf_done(&watch->faults.items[i].objects);
        vec_done(&watch->faults.items[i].survivors);
    }
    vec_done(&watch->faults);
    vec_done(&watch->restarts);
    arena_done(&watch->arena);
}

/* --- processes ------------------------------------------------------------------------------------------ */

/* Returns when a process was started, in ticks since boot; 0 if it has ended. */
static uint64_t start_of(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    size_t len = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[len] = 0;
    const char *at = strrchr(text, ')'); /* the name before it may contain any characters */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at && text[0] ? strtoull(at, NULL, 10) : 0;
}

static bool is_hit(const target_list *targets, const struct ground_pod *pod)
{
    for (size_t i = 0; i < targets->len; i++) {
        const struct target *target = &targets->items[i];
        bool whole = target->kind == INJECT_MACHINE;
        if (whole ? strcmp(target->machine, pod->machine) == 0 : strcmp(target->name, pod->name) == 0)
            return true;
    }
    return false;
}

static bool checks_survivors(const struct job_watch *watch)
{
    for (size_t i = 0; i < watch->scenario->expect_count; i++)
        if (watch->scenario->expects[i].what == EXPECT_SURVIVORS)
            return true;
    return false;
}

void job_watch_processes(const struct job_watch *watch, struct ground *ground, const target_list *targets,
                         process_list *ret_processes)
{
    pid_list pids = {0};
    if (!checks_survivors(watch) || ground_look(ground) != EXIT_OK)
        return;
    for (size_t i = 0; i < ground->pods.len; i++) {
        const struct ground_pod *pod = &ground->pods.items[i];
        struct target rank = {.kind = INJECT_RANK, .rank = pod->rank};
        if (strcmp(pod->job, watch->job) != 0 || is_hit(targets, pod))
            continue;
        memcpy(rank.name, pod->name, sizeof rank.name);
        ground_processes(ground, &rank, &pids);
        for (size_t k = 0; k < pids.len; k++) {
            struct seen_process seen = {pids.items[k], pod->rank, start_of(pids.items[k])};
            vec_push(ret_processes, seen);
        }
    }
    vec_done(&pids);
}

/* Counts the survivors of each fault, once the recovery has ended: a restart after the fault has made a
 * step. */
static void check_survivors(struct job_watch *watch)
{
    for (size_t i = 0; i < watch->faults.len; i++) {
        struct done_fault *fault = &watch->faults.items[i];
        bool over = false;
        for (size_t k = 0; k < watch->restarts.len && !fault->checked; k++)
            over |= watch->restarts.items[k].stepped_ns > fault->at_ns;
        if (!over || fault->checked)
            continue;
        fault->checked = true;
        for (size_t k = 0; k < fault->survivors.len; k++)
            fault->restarted += start_of(fault->survivors.items[k].pid) != fault->survivors.items[k].started;
    }
}

/* --- the job -------------------------------------------------------------------------------------------- */

static int64_t time_at(const struct doc *object, const char *path)
{
    int64_t time_ns = 0;
    return time_parse(doc_text(object, path), &time_ns) ? time_ns : 0;
}

static void take_restart(struct job_watch *watch, const struct doc *record)
{
    struct seen_restart seen = {.attempt = doc_number(record, "attempt", 0),
                                .fault_ns = time_at(record, "faultTime"),
                                .started_ns = time_at(record, "startedTime"),
                                .stepped_ns = time_at(record, "steppedTime"),
                                .step_at_fault = doc_number(record, "stepAtFault", -1),
                                .resumed_from = doc_number(record, "resumedFrom", 0)};
    if (seen.stepped_ns <= 0) /* the time is not known yet */
        seen.resumed_from = seen.step_at_fault;
    struct str cause = doc_text(record, "cause"), machine = doc_text(record, "machine");
    struct str rung = doc_text(record, "rung");
    snprintf(seen.cause, sizeof seen.cause, STR_FORMAT, STR_ARG(cause));
    snprintf(seen.machine, sizeof seen.machine, STR_FORMAT, STR_ARG(machine));
    snprintf(seen.rung, sizeof seen.rung, STR_FORMAT, STR_ARG(rung));
    if (seen.attempt <= watch->first_attempt)
        return; /* from before the run */
    size_t at = 0;
    while (at < watch->restarts.len && watch->restarts.items[at].attempt != seen.attempt)
        at++;
    if (at == watch->restarts.len)
        vec_push(&watch->restarts, seen);
    else
        watch->restarts.items[at] = seen;
}

/* Gets the JobSet "namespace/name". Returns false if there is none, or no controller answers. */
static bool ask(struct ground *ground, struct str job, struct client_reply *ret)
{
    struct str namespace_, name;
    struct buf path BUF_CLEANUP = {0};
    if (!str_cut(job, '/', &namespace_, &name)) {
        namespace_ = STR("default");
        name = job;
    }
    buf_printf(&path, JOBSETS STR_FORMAT "/jobsets/" STR_FORMAT, STR_ARG(namespace_), STR_ARG(name));
    ground->client.quiet = true;
    struct client_request request = {.path = buf_str(&path), .timeout_ms = ASK_MS};
    if (!name.len || client_call(&ground->client, &request, ret) != EXIT_OK)
        return false;
    if (ret->code < 400 && ret->doc)
        return true;
    client_reply_done(ret);
    return false;
}

void job_watch_look(struct job_watch *watch, struct ground *ground)
{
    struct client_reply reply;
    if (!watch->job[0] || !ask(ground, str_from(watch->job), &reply))
        return;
    int64_t attempt = doc_number(reply.doc, "status.phalanx.attempt", 0);
    struct str state = doc_text(reply.doc, "status.terminalState");
    if (!watch->seen)
        watch->first_attempt = attempt;
    watch->seen = true;
    watch->attempt = attempt;
    watch->step = doc_number(reply.doc, "status.phalanx.step", -1);
    const struct doc *records = doc_dotted(reply.doc, "status.phalanx.restarts");
    for (size_t i = 0; i < doc_len(records); i++)
        take_restart(watch, doc_at(records, i));
    check_survivors(watch);
    if (state.len && !watch->state[0]) {
        snprintf(watch->state, sizeof watch->state, STR_FORMAT, STR_ARG(state));
        watch->finished_ns = client_wall();
    }
    client_reply_done(&reply);
}

bool job_watch_condition(struct job_watch *watch, struct ground *ground, struct str job, struct str name)
{
    struct client_reply reply;
    if (!ask(ground, job.len ? job : str_from(watch->job), &reply))
        return false;
    bool holds = str_equal(doc_text(reply.doc, "status.terminalState"), name) ||
                 str_equal(doc_text(reply.doc, "status.phalanx.state"), name);
    const struct doc *conditions = doc_dotted(reply.doc, "status.conditions");
    for (size_t i = 0; i < doc_len(conditions); i++)
        holds |= str_equal(doc_text(doc_at(conditions, i), "type"), name) &&
                 str_is(doc_text(doc_at(conditions, i), "status"), "True");
    client_reply_done(&reply);
    return holds;
}

int64_t job_watch_step(struct job_watch *watch, struct ground *ground, struct str job)
{
    struct client_reply reply;
    if (!job.len)
        return watch->step;
    if (!ask(ground, job, &reply))
        return -1;
    int64_t step = doc_number(reply.doc, "status.phalanx.step", -1);
    client_reply_done(&reply);
    return step;
}

bool job_watch_recovered(const struct job_watch *watch)
{
    if (watch->state[0] || watch->restarts.len == 0)
        return true;
    int64_t newest = 0, stepped = 0;
    for (size_t i = 0; i < watch->restarts.len; i++)
        if (watch->restarts.items[i].attempt >= newest) {
            newest = watch->restarts.items[i].attempt;
            stepped = watch->restarts.items[i].stepped_ns;
        }
    return stepped > 0;
}

/* --- the cost of a fault -------------------------------------------------------------------------------- */

/* Returns the restart that a fault caused: the first one after it and before the next fault. */
static const struct seen_restart *restart_of(const struct job_watch *watch, size_t number)
{
    const struct done_fault *fault = &watch->faults.items[number];
    int64_t next_ns = number + 1 < watch->faults.len ? watch->faults.items[number + 1].at_ns : INT64_MAX;
    const struct seen_restart *found = NULL;
    for (size_t i = 0; i < watch->restarts.len; i++) {
        const struct seen_restart *one = &watch->restarts.items[i];
        if (one->fault_ns >= fault->at_ns - NS_PER_MS && one->fault_ns < next_ns &&
            (!found || one->fault_ns < found->fault_ns))
            found = one;
    }
    return found;
}

/* Returns when all ranks made steps again after a restart, in its own attempt or in a later one that followed
 * it; 0 if not yet. */
static int64_t stepped_after(const struct job_watch *watch, const struct seen_restart *restart)
{
    int64_t best = 0;
    for (size_t i = 0; i < watch->restarts.len; i++) {
        const struct seen_restart *one = &watch->restarts.items[i];
        if (one->attempt >= restart->attempt && one->stepped_ns && (!best || one->stepped_ns < best))
            best = one->stepped_ns;
    }
    return best;
}

/* --- expectations --------------------------------------------------------------------------------------- */

struct judging {
    struct job_watch *watch;
    struct ground *ground;
    struct buf why;
};

static bool holds_completes(struct judging *judging, const struct scenario_expect *expect)
{
    const struct job_watch *watch = judging->watch;
    int64_t took_ns = watch->finished_ns - watch->began_ns;
    char took[24];
    duration_format(took_ns, took);
    if (!watch->state[0])
        buf_printf(&judging->why, "it has not ended");
    else
        buf_printf(&judging->why, "%s after %s", watch->state, took);
    return strcmp(watch->state, "Completed") == 0 && (!expect->ns || took_ns <= expect->ns);
}

static bool read_text(struct judging *judging, struct str name, struct buf *ret_text)
{
    struct buf path BUF_CLEANUP = {0};
    struct error error;
    if (name.data[0] != '/')
        buf_printf(&path, "%s/", judging->ground->data[0] ? judging->ground->data : ".");
    buf_add_str(&path, name);
    if (os_file_read(path.data, FILE_BYTES_MAX, ret_text, &error) == 0)
        return true;
    buf_printf(&judging->why, "%s", error.text);
    return false;
}

static bool holds_file(struct judging *judging, const struct scenario_expect *expect)
{
    struct buf text BUF_CLEANUP = {0}, other BUF_CLEANUP = {0};
    if (!read_text(judging, expect->path, &text) ||
        (expect->same_as.len && !read_text(judging, expect->same_as, &other)))
        return false;
    struct str is = str_trim(buf_str(&text)),
               wanted = expect->same_as.len ? str_trim(buf_str(&other)) : expect->text;
    bool equal = str_equal(is, wanted);
    buf_printf(&judging->why, "\"" STR_FORMAT "\"", (int)(is.len < 100 ? is.len : 100), is.data);
    if (!equal)
        buf_printf(&judging->why, ", not \"" STR_FORMAT "\"", (int)(wanted.len < 100 ? wanted.len : 100),
                   wanted.data);
    return equal;
}

static bool holds_recovered(struct judging *judging, const struct scenario_expect *expect)
{
    const struct job_watch *watch = judging->watch;
    int64_t longest_ns = 0;
    bool open = false;
    for (size_t i = 0; i < watch->restarts.len; i++) {
        const struct seen_restart *one = &watch->restarts.items[i];
        int64_t stepped_ns = stepped_after(watch, one), began_ns = one->fault_ns;
        for (size_t k = 0; k < watch->faults.len; k++)
            if (restart_of(watch, k) == one)
                began_ns = watch->faults.items[k].at_ns;
        if (!stepped_ns && strcmp(watch->state, "Completed") == 0)
            continue; /* the attempt ended before the next record was written */
        open |= !stepped_ns;
        if (stepped_ns && stepped_ns - began_ns > longest_ns)
            longest_ns = stepped_ns - began_ns;
    }
    char text[24];
    duration_format(longest_ns, text);
    buf_printf(&judging->why, "%zu restarts, the longest took %s%s", watch->restarts.len, text,
               open ? "; one has not made its next step" : "");
    return !open && longest_ns <= expect->ns;
}

static bool holds_survivors(struct judging *judging)
{
    const struct job_watch *watch = judging->watch;
    size_t gone = 0, looked = 0;
    for (size_t i = 0; i < watch->faults.len; i++) {
        gone += watch->faults.items[i].restarted;
        looked += watch->faults.items[i].checked ? watch->faults.items[i].survivors.len : 0;
    }
    buf_printf(&judging->why, "%zu of %zu processes that were not hit had ended after the recovery", gone,
               looked);
    return gone == 0 && looked > 0;
}

/* Returns true for an event "restart-process as attempt 2: ..." about this job since the run began. */
static bool decided(const struct job_watch *watch, const struct doc *event, struct str rung)
{
    struct str message = doc_text(event, "message"), namespace_, name;
    return str_is(doc_text(event, "reason"), "RecoveryDecided") &&
           str_cut(str_from(watch->job), '/', &namespace_, &name) &&
           str_equal(doc_text(event, "involvedObject.name"), name) &&
           str_equal(doc_text(event, "involvedObject.namespace"), namespace_) && str_starts(message, rung) &&
           message.len > rung.len && message.data[rung.len] == ' ';
}

/* Checks an expected rung, against the records of restarts and the events of the job. */
static bool holds_rung(struct judging *judging, const struct scenario_expect *expect)
{
    const struct job_watch *watch = judging->watch;
    struct client_reply reply;
    bool used = false;
    for (size_t i = 0; i < watch->restarts.len; i++)
        used |= str_is(expect->text, watch->restarts.items[i].rung);
    if (!used && client_get(&judging->ground->client, STR("/api/v1/events"), &reply) == EXIT_OK) {
        const struct doc *items = doc_get(reply.doc, "items");
        for (size_t i = 0; i < doc_len(items) && !used; i++)
            used = decided(watch, doc_at(items, i), expect->text);
        client_reply_done(&reply);
    }
    buf_printf(&judging->why, "the rung " STR_FORMAT " was %sused", STR_ARG(expect->text),
               used ? "" : "not ");
    return used;
}

static bool holds_steps_lost(struct judging *judging, const struct scenario_expect *expect)
{
    const struct job_watch *watch = judging->watch;
    int64_t most = 0;
    for (size_t i = 0; i < watch->restarts.len; i++) {
        const struct seen_restart *one = &watch->restarts.items[i];
        if (one->step_at_fault - one->resumed_from > most)
            most = one->step_at_fault - one->resumed_from;
    }
    buf_printf(&judging->why, "at most %lld steps were lost at a restart", (long long)most);
    return most <= expect->high;
}

static bool holds(struct judging *judging, const struct scenario_expect *expect)
{
    const struct job_watch *watch = judging->watch;
    int64_t restarts = watch->attempt - watch->first_attempt;
    switch (expect->what) {
    case EXPECT_COMPLETES:
        return holds_completes(judging, expect);
    case EXPECT_FILE:
        return holds_file(judging, expect);
    case EXPECT_RECOVERED:
        return holds_recovered(judging, expect);
    case EXPECT_SURVIVORS:
        return holds_survivors(judging);
    case EXPECT_RUNG:
        return holds_rung(judging, expect);
    case EXPECT_STEPS_LOST:
        return holds_steps_lost(judging, expect);
    default:
        buf_printf(&judging->why, "%lld restarts", (long long)restarts);
        return restarts >= expect->low && restarts <= expect->high;
    }
}

/* --- the report ----------------------------------------------------------------------------------------- */

static const char *const expectation_names[] = {
    "completes", "file", "recoveredWithin", "survivorsKeepTheirProcesses", "rung", "restarts", "stepsLost"};

static void put_ms(struct json_writer *json, const char *key, int64_t from_ns, int64_t to_ns)
{
    json_key(json, key);
    if (to_ns)
        json_put_fixed(json, (to_ns - from_ns) / 1000, 3);
    else
        json_put_null(json);
}

static void put_fault(struct json_writer *json, const struct job_watch *watch, size_t number)
{
    const struct done_fault *fault = &watch->faults.items[number];
    const struct seen_restart *restart = restart_of(watch, number);
    json_begin_object(json);
    json_pair_str(json, "step", fault->step);
    json_pair_text(json, "action", inject_action_names[fault->action]);
    json_pair_str(json, "objects", buf_str(&fault->objects));
    json_pair_int(json, "hit", (int64_t)fault->count);
    json_key(json, "atSeconds");
    json_put_fixed(json, (fault->at_ns - watch->began_ns) / NS_PER_MS, 3);
    put_ms(json, "detectedMs", fault->at_ns, restart ? restart->fault_ns : 0);
    put_ms(json, "recoveredMs", fault->at_ns, restart ? stepped_after(watch, restart) : 0);
    if (restart) {
        json_pair_text(json, "cause", restart->cause);
        json_pair_int(json, "stepAtFault", restart->step_at_fault);
        json_pair_int(json, "resumedFrom", restart->resumed_from);
        if (restart->rung[0])
            json_pair_text(json, "rung", restart->rung);
    }
    json_end_object(json);
}

static void print_fault(struct text_table *table, const struct job_watch *watch, size_t number)
{
    const struct done_fault *fault = &watch->faults.items[number];
    const struct seen_restart *restart = restart_of(watch, number);
    char detected[24] = "-", recovered[24] = "-";
    if (restart)
        duration_format(restart->fault_ns > fault->at_ns ? restart->fault_ns - fault->at_ns : 0, detected);
    if (restart && stepped_after(watch, restart))
        duration_format(stepped_after(watch, restart) - fault->at_ns, recovered);
    table_add(table, fault->step);
    table_add(table, arena_printf(&table->arena, "%s " STR_FORMAT, inject_action_names[fault->action],
                                  STR_ARG(buf_str(&fault->objects))));
    table_add(table, arena_printf(&table->arena, "%s", detected));
    table_add(table, arena_printf(&table->arena, "%s", recovered));
    table_add(table, restart ? arena_printf(&table->arena, "%lld",
                                            (long long)(restart->step_at_fault - restart->resumed_from))
                             : STR("-"));
    table_add(table,
              restart ? arena_printf(&table->arena, "%s %s", restart->cause, restart->rung) : STR("-"));
}

static void print_faults(const struct job_watch *watch, struct buf *out)
{
    static const char *const names[] = {"STEP", "FAULT", "DETECTED", "RECOVERED", "STEPS LOST", "CAUSE"};
    struct text_table table = {.columns = sizeof names / sizeof *names};
    table_heads(&table, names);
    for (size_t i = 0; i < watch->faults.len; i++)
        print_fault(&table, watch, i);
    table_print(&table, out, output_colors());
    table_done(&table);
}

bool job_watch_report(struct job_watch *watch, struct ground *ground, uint64_t seed, bool timed_out,
                      bool json)
{
    struct judging judging = {watch, ground, {0}};
    struct buf out BUF_CLEANUP = {0}, plain BUF_CLEANUP = {0};
    struct json_writer writer = {.out = &out};
    bool all = !timed_out;
    json_begin_object(&writer);
    json_pair_str(&writer, "scenario", watch->scenario->name);
    json_pair_int(&writer, "seed", (int64_t)seed);
    json_pair_text(&writer, "job", watch->job);
    json_pair_text(&writer, "state", watch->state);
    json_pair_bool(&writer, "timedOut", timed_out);
    json_pair_int(&writer, "restarts", watch->attempt - watch->first_attempt);
    json_key(&writer, "faults");
    json_begin_array(&writer);
    for (size_t i = 0; i < watch->faults.len; i++)
        put_fault(&writer, watch, i);
    json_end_array(&writer);
    json_key(&writer, "expectations");
    json_begin_array(&writer);
    print_faults(watch, &plain);
    if (timed_out)
        buf_printf(&plain, "broken  the time of the scenario is over\n");
    for (size_t i = 0; i < watch->scenario->expect_count; i++) {
        const struct scenario_expect *expect = &watch->scenario->expects[i];
        buf_clear(&judging.why);
        bool held = holds(&judging, expect);
        all &= held;
        buf_printf(&plain, "%s  %s (line %u): %s\n", held ? "held  " : "broken",
                   expectation_names[expect->what], expect->line, judging.why.data ? judging.why.data : "");
        json_begin_object(&writer);
        json_pair_text(&writer, "what", expectation_names[expect->what]);
        json_pair_bool(&writer, "held", held);
        json_pair_str(&writer, "why", buf_str(&judging.why));
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_pair_bool(&writer, "held", all);
    json_end_object(&writer);
    buf_add_char(&out, '\n');
    output_write(json ? &out : &plain);
    buf_done(&judging.why);
    return all;
}
