#include "sim/capacity/study.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/model/model.h"
#include "doc/json.h"
#include "sim/capacity/field.h"

const char *const study_figure_names[STUDY_FIGURES] = {
    "ETTR",     "ETTR with queue", "goodput", "chips at work", "chips out", "wait s",
    "failures", "completed",       "stops",   "restarts",      "preempted", "redone chip-hours"};

/* --- points --------------------------------------------------------------------------------------- */

struct study_axis {
    const struct doc *values;
    size_t count;
};

/* Expands short names of the fields that studies vary most. */
static struct str study_path(struct str key)
{
    static const struct {
        const char *name;
        struct str path;
    } names[] = {{"checkpoint", {"workload.checkpoint.interval", 28}},
                 {"spares", {"cluster.sparesPerRack", 21}},
                 {"machines", {"cluster.machines", 16}}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(key, names[i].name))
            return names[i].path;
    return key;
}

/* Cuts a key such as "failures[0]" into name and index, which is -1 without brackets. Returns false if the
 * key is malformed. */
static bool study_cut_index(struct str *name, int64_t *ret_index)
{
    struct str head, tail, number, rest;
    *ret_index = -1;
    if (!str_cut(*name, '[', &head, &tail))
        return name->len > 0;
    if (!str_cut(tail, ']', &number, &rest) || rest.len > 0 || !str_to_i64(number, 0, 10000, ret_index))
        return false;
    *name = head;
    return true;
}

/* Sets the value at a path of the document, and creates missing objects on the way. */
static bool study_set(struct arena *arena, struct doc *root, struct str path, struct doc *value)
{
    struct doc *at = root;
    for (;;) {
        struct str name = path, rest = {0};
        int64_t index;
        bool more = str_cut(path, '.', &name, &rest);
        if (at->kind != DOC_OBJECT || !study_cut_index(&name, &index) || (!more && index >= 0))
            return false;
        if (!more) {
            doc_set(arena, at, name, value);
            return true;
        }
        struct doc *next = doc_get_str(at, name);
        if (index >= 0) {
            next = doc_at(next, (size_t)index);
        } else if (!next) {
            next = doc_new(arena, DOC_OBJECT);
            doc_set(arena, at, name, next);
        }
        if (!next)
            return false;
        at = next;
        path = rest;
    }
}

static struct str study_show(struct arena *arena, const struct doc *value)
{
    struct buf json BUF_CLEANUP = {0};
    if (value->kind == DOC_STRING)
        return arena_str(arena, value->text);
    json_write(&json, value);
    return arena_str(arena, buf_str(&json));
}

static void study_read_axes(struct reader *reader, struct study *study, const struct place *sweep,
                            struct study_axis *axes, size_t *ret_points)
{
    size_t points = 1;
    if (sweep->doc && (sweep->doc->kind != DOC_OBJECT || doc_len(sweep->doc) > STUDY_SWEEP_MAX)) {
        field_says(reader, sweep, "expected an object of at most %d fields", STUDY_SWEEP_MAX);
        return;
    }
    study->field_count = doc_len(sweep->doc);
    for (size_t i = 0; i < study->field_count; i++) {
        const struct doc_member *member = &sweep->doc->object.members[i];
        struct place values = {.doc = member->value};
        snprintf(values.path, sizeof values.path, "sweep.%.*s",
                 (int)(member->key.len < 150 ? member->key.len : 150), member->key.data);
        if (!field_array(reader, &values) || doc_len(values.doc) == 0) {
            field_wrong(reader, &values, "a list of values");
            return;
        }
        study->fields[i] = arena_str(&study->arena, study_path(member->key));
        axes[i] = (struct study_axis){values.doc, doc_len(values.doc)};
        points *= axes[i].count;
        if (points > STUDY_POINTS_MAX) {
            field_says(reader, &values, "the sweep has more than %d points", STUDY_POINTS_MAX);
            return;
        }
    }
    *ret_points = points;
}

static int study_read_point(struct study *study, const struct doc *document, const char *file,
                            const struct study_axis *axes, size_t number, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *root = doc_clone(&arena, document);
    struct study_point point = {0};
    for (size_t i = study->field_count; i-- > 0;) {
        struct doc *value = doc_at(axes[i].values, number % axes[i].count);
        number /= axes[i].count;
        point.values[i] = study_show(&study->arena, value);
        if (!study_set(&arena, root, study->fields[i], doc_clone(&arena, value)))
            return axes[i].values->line == 0
                       ? error_set(error, ERROR_INVALID,
                                   "--set: \"" STR_FORMAT "\" is not the path of a field",
                                   STR_ARG(study->fields[i]))
                       : error_set(error, ERROR_INVALID,
                                   "%s:%u:%u: sweep: \"" STR_FORMAT "\" is not the path of a field", file,
                                   axes[i].values->line, axes[i].values->column, STR_ARG(study->fields[i]));
    }
    int rc = sim_scenario_read(&point.scenario, root, file, error);
    if (rc < 0)
        return rc;
    if (!sim_scenario_is_open(&point.scenario))
        rc = simulation_check(&point.scenario, file, error);
    if (rc < 0) {
        sim_scenario_done(&point.scenario);
        return rc;
    }
    vec_push(&study->points, point);
    return 0;
}

int study_read(struct study *ret_study, const struct doc *document, const char *file, struct error *error)
{
    struct study study = {0};
    struct reader reader = {.file = file, .error = error};
    struct place root = {.doc = document}, sweep = field_of(&root, "sweep");
    struct study_axis axes[STUDY_FIELDS_MAX] = {0};
    size_t points = 0;
    study_read_axes(&reader, &study, &sweep, axes, &points);
    int rc = reader.failed ? ERROR_INVALID : 0;
    for (size_t i = 0; i < points && rc == 0; i++)
        rc = study_read_point(&study, document, file, axes, i, error);
    if (rc < 0)
        study_done(&study);
    else
        *ret_study = study;
    return rc;
}

/* --- a base and what differs from it -------------------------------------------------------------- */

#define STUDY_POLICY STR("policy.")
#define STUDY_SPEC   "cluster.spec."

/* Returns whether the simulated world sets this constant itself (scenario_cluster.c). */
static bool study_is_worlds(struct str path)
{
    return str_is(path, "settings.lease") || str_is(path, "settings.heartbeat") ||
           str_starts(path, STR("settings.hangs."));
}

/* Finds the path in the scenario that a change names. */
static int study_change_path(struct arena *arena, struct str path, struct str *ret_path, struct error *error)
{
    struct str constant = {path.data + STUDY_POLICY.len, path.len - STUDY_POLICY.len};
    if (!str_starts(path, STUDY_POLICY)) {
        *ret_path = arena_str(arena, study_path(path));
        return 0;
    }
    if (study_is_worlds(constant))
        return error_set(error, ERROR_INVALID, "--set: \"" STR_FORMAT "\" is set by the simulated world",
                         STR_ARG(path));
    for (size_t i = 0; i < policy_field_count; i++)
        if (str_is(constant, policy_fields[i].path)) {
            *ret_path = arena_printf(arena, STUDY_SPEC STR_FORMAT, STR_ARG(constant));
            return 0;
        }
    return error_set(error, ERROR_INVALID,
                     "--set: \"" STR_FORMAT "\" is no constant of the policy; `phalanx cluster policy "
                     "--markdown` lists them",
                     STR_ARG(path));
}

/* Makes a list of one value, which has no place in a file. */
static struct doc *study_change_value(struct arena *arena, struct str text)
{
    struct doc *value, *list = doc_new(arena, DOC_ARRAY);
    if (json_parse(arena, text, &value, NULL) < 0) {
        value = doc_new(arena, DOC_STRING);
        value->text = arena_str(arena, text);
    }
    doc_push(arena, list, value);
    list->line = 0;
    return list;
}

int study_read_beside(struct study *ret_study, const struct doc *document, const char *file,
                      const struct study_change *changes, size_t count, struct error *error)
{
    struct study study = {0};
    struct study_axis axes[STUDY_FIELDS_MAX];
    int rc = 0;
    CHECK(count >= 1 && count <= STUDY_FIELDS_MAX);
    if (doc_get(document, "sweep"))
        return error_set(error, ERROR_INVALID, "%s: sweep: expected none beside --set", file);
    for (size_t i = 0; i < count && rc == 0; i++) {
        axes[i] = (struct study_axis){study_change_value(&study.arena, changes[i].value), 1};
        rc = study_change_path(&study.arena, changes[i].path, &study.fields[i], error);
    }
    if (rc == 0)
        rc = study_read_point(&study, document, file, NULL, 0, error);
    study.field_count = count;
    if (rc == 0)
        rc = study_read_point(&study, document, file, axes, 0, error);
    if (rc < 0) {
        study_done(&study);
        return rc;
    }
    for (size_t i = 0; i < count; i++)
        study.points.items[0].values[i] = STR("default");
    for (size_t i = 0; i < count; i++) {
        const struct doc *at = document;
        struct str path = study.fields[i], name, rest;
        while (at && str_cut(path, '.', &name, &rest)) {
            at = doc_get_str(at, name);
            path = rest;
        }
        at = at ? doc_get_str(at, path) : NULL;
        if (at)
            study.points.items[0].values[i] = study_show(&study.arena, at);
    }
    *ret_study = study;
    return 0;
}

void study_value_at(const struct study *study, size_t point, size_t field, struct buf *out)
{
    struct str path = study->fields[field], name, rest;
    const struct doc *at = study->points.items[point].scenario.spec;
    if (!str_starts(path, STR(STUDY_SPEC))) {
        buf_add_str(out, study->points.items[point].values[field]);
        return;
    }
    path = (struct str){path.data + strlen(STUDY_SPEC), path.len - strlen(STUDY_SPEC)};
    for (size_t i = 0; i < policy_field_count; i++)
        if (str_is(path, policy_fields[i].path))
            policy_print_value(&policy_fields[i], policy_fields[i].fallback, out);
    while (at && str_cut(path, '.', &name, &rest)) {
        at = doc_get_str(at, name);
        path = rest;
    }
    at = at ? doc_get_str(at, path) : NULL;
    if (!at)
        return;
    buf_clear(out);
    if (at->kind == DOC_STRING)
        buf_add_str(out, at->text);
    else
        json_write(out, at);
}

void study_done(struct study *study)
{
    for (size_t i = 0; i < study->points.len; i++) {
        struct study_point *point = &study->points.items[i];
        for (size_t seed = 0; point->outcomes && seed < study->seeds; seed++)
            mem_free(point->outcomes[seed]);
        mem_free(point->outcomes);
        sim_scenario_done(&point->scenario);
    }
    vec_done(&study->points);
    arena_done(&study->arena);
}

/* --- processes ------------------------------------------------------------------------------------ */

struct study_worker {
    pid_t pid;
    int fd;
    size_t number; /* point x seeds + seed */
};
struct study_pool {
    struct study *study;
    const struct study_options *options;
    struct study_worker workers[STUDY_JOBS_MAX];
    size_t busy, next, ended;
};

static _Noreturn void study_work(const struct study_pool *pool, size_t number, int fd)
{
    const struct study *study = pool->study;
    struct simulation_outcome *outcome = mem_alloc(sizeof *outcome);
    struct simulation_options options = {.scenario = &study->points.items[number / study->seeds].scenario,
                                         .seed = pool->options->seed + number % study->seeds};
    simulation_run(&options, outcome);
    const char *at = (const char *)outcome;
    for (size_t left = sizeof *outcome; left > 0;) {
        ssize_t written = write(fd, at, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            _exit(1);
        at += written;
        left -= (size_t)written;
    }
    _exit(0);
}

static int study_start(struct study_pool *pool, struct error *error)
{
    int fds[2];
    if (pipe(fds) < 0)
        return error_set_errno(error, errno, "a pipe");
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        int code = errno;
        close(fds[0]);
        close(fds[1]);
        return error_set_errno(error, code, "a process for a run");
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* no process is left to read the result */
        close(fds[0]);
        study_work(pool, pool->next, fds[1]);
    }
    close(fds[1]);
    pool->workers[pool->busy++] = (struct study_worker){pid, fds[0], pool->next++};
    return 0;
}

/* Reads a whole outcome. Returns false if its process died before. */
static bool study_receive(int fd, struct simulation_outcome *ret)
{
    char *at = (char *)ret;
    size_t left = sizeof *ret;
    while (left > 0) {
        ssize_t count = read(fd, at, left);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        at += count;
        left -= (size_t)count;
    }
    return true;
}

static void study_reap(struct study_pool *pool, size_t i)
{
    struct study_worker *worker = &pool->workers[i];
    close(worker->fd);
    while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *worker = pool->workers[--pool->busy];
}

static int study_collect(struct study_pool *pool, size_t i, struct error *error)
{
    struct study *study = pool->study;
    size_t number = pool->workers[i].number;
    struct simulation_outcome *outcome = mem_alloc(sizeof *outcome);
    bool whole = study_receive(pool->workers[i].fd, outcome);
    study_reap(pool, i);
    if (!whole) {
        mem_free(outcome);
        return error_set(error, ERROR_IO, "the process of seed %llu died",
                         (unsigned long long)(pool->options->seed + number % study->seeds));
    }
    study->points.items[number / study->seeds].outcomes[number % study->seeds] = outcome;
    pool->ended++;
    if (pool->options->progress)
        pool->options->progress(pool->options->context,
                                (double)pool->ended / (double)(study->points.len * study->seeds));
    return 0;
}

static int study_wait(struct study_pool *pool, struct error *error)
{
    struct pollfd fds[STUDY_JOBS_MAX];
    for (size_t i = 0; i < pool->busy; i++)
        fds[i] = (struct pollfd){.fd = pool->workers[i].fd, .events = POLLIN};
    if (poll(fds, (nfds_t)pool->busy, -1) < 0)
        return errno == EINTR ? 0 : error_set_errno(error, errno, "waiting for runs");
    for (size_t i = pool->busy; i-- > 0;) {
        int rc = fds[i].revents ? study_collect(pool, i, error) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

int study_run(struct study *study, const struct study_options *options, struct error *error)
{
    CHECK(options->seeds >= 1 && options->seeds <= STUDY_SEEDS_MAX);
    CHECK(options->jobs >= 1 && options->jobs <= STUDY_JOBS_MAX);
    struct study_pool *pool = mem_alloc(sizeof *pool);
    pool->study = study;
    pool->options = options;
    study->seeds = options->seeds;
    size_t all = study->points.len * study->seeds;
    int rc = 0;
    for (size_t i = 0; i < study->points.len; i++)
        study->points.items[i].outcomes = mem_alloc(study->seeds * sizeof *study->points.items[i].outcomes);
    while (rc == 0 && pool->ended < all) {
        while (rc == 0 && pool->busy < options->jobs && pool->next < all)
            rc = study_start(pool, error);
        if (rc == 0)
            rc = study_wait(pool, error);
    }
    while (pool->busy > 0) { /* after a failure */
        kill(pool->workers[0].pid, SIGKILL);
        study_reap(pool, 0);
    }
    mem_free(pool);
    return rc;
}

/* --- figures -------------------------------------------------------------------------------------- */

double study_value(const struct simulation_outcome *outcome, enum study_figure figure)
{
    struct simulation_bucket all = simulation_sum(outcome, 1);
    switch (figure) {
    case FIGURE_ETTR:
        return simulation_ettr(&all);
    case FIGURE_ETTR_WITH_QUEUE:
        return all.chip_productive_s / all.chip_lived_s;
    case FIGURE_GOODPUT:
        return all.chip_productive_s / outcome->all_chip_s;
    case FIGURE_BUSY:
        return outcome->busy_chip_s / outcome->all_chip_s;
    case FIGURE_DOWN:
        return outcome->down_chip_s / outcome->all_chip_s;
    case FIGURE_WAIT:
        return all.wait_s / (double)all.jobs;
    case FIGURE_FAILURES:
        return (double)all.interruptions;
    case FIGURE_COMPLETED:
        return (double)all.fates[FATE_COMPLETED];
    case FIGURE_STOPS:
        return (double)all.preemptions;
    case FIGURE_RESTARTS:
        return (double)(all.starts - all.started);
    case FIGURE_PREEMPTED:
        return (double)outcome->preempted;
    case FIGURE_REDONE:
        return all.chip_lost_s / 3600;
    case STUDY_FIGURES:
        break;
    }
    CHECK_UNREACHABLE();
}

/* Returns the 97.5 % quantile of Student's t: from a table up to 30 degrees of freedom, then by the first
 * terms of its expansion about the normal quantile (error below 0.001). */
static double study_student(size_t freedom)
{
    static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                   2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                   2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
    double z = 1.959964;
    if (freedom <= sizeof table / sizeof *table)
        return table[freedom - 1];
    return z + (z * z * z + z) / (4 * (double)freedom);
}

struct study_mean study_figure(const struct study *study, size_t point, enum study_figure figure)
{
    struct simulation_outcome *const *outcomes = study->points.items[point].outcomes;
    struct study_mean mean = {.half = (double)NAN, .least = (double)INFINITY, .most = -(double)INFINITY};
    double count = (double)study->seeds, squares = 0;
    for (size_t seed = 0; seed < study->seeds; seed++) {
        double value = study_value(outcomes[seed], figure);
        mean.mean += value / count;
        mean.least = fmin(mean.least, value);
        mean.most = fmax(mean.most, value);
    }
    for (size_t seed = 0; seed < study->seeds; seed++)
        squares += pow(study_value(outcomes[seed], figure) - mean.mean, 2);
    if (study->seeds > 1)
        mean.half = study_student(study->seeds - 1) * sqrt(squares / (count - 1) / count);
    return mean;
}
