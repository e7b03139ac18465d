/* phalanx inject run: runs a scenario against a running cluster. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "cmd/inject_watch.h"
#include "os/file.h"

enum { FILE_BYTES_MAX = 1 << 20, LOOK_MS = 20 };
#define HOUR_NS (3600 * NS_PER_SECOND)

struct pending {
    const struct scenario_step *step;
    uint32_t left;  /* repetitions */
    int64_t due_ns; /* client_clock(); INT64_MAX: the previous step is not done */
    bool armed;     /* its condition has occurred, or its time is known */
};
struct healing {
    int64_t record, due_ns; /* INT64_MAX: at the end */
};
struct running {
    struct ground *ground;
    const struct run_options *options;
    struct scenario scenario;
    struct job_watch watch;
    struct pending *steps;
    size_t done;
    VEC(struct healing) healings;
    int64_t began_ns;
    uint64_t seed;
};

static volatile sig_atomic_t asked_to_end;

static void on_end(int number)
{
    asked_to_end = number;
}

static struct str name_of(const struct running *running, const struct scenario_step *step,
                          struct arena *arena)
{
    if (step->name.len)
        return step->name;
    return arena_printf(arena, "step %zu", (size_t)(step - running->scenario.steps) + 1);
}

/* Prints progress to standard output or, if JSON is wanted there, to standard error. */
static void tell(const struct running *running, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void tell(const struct running *running, const char *format, ...)
{
    FILE *to = running->options->json ? stderr : stdout;
    va_list args;
    fprintf(to, "%8.3f s  ", (double)(client_clock() - running->began_ns) / 1e9);
    va_start(args, format);
    vfprintf(to, format, args);
    va_end(args);
    fputc('\n', to);
    fflush(to);
}

/* --- doing a step --------------------------------------------------------------------------------------- */

static int resolve(struct running *running, const struct scenario_step *step, target_list *targets)
{
    struct inject_selector chosen[SCENARIO_OBJECTS_MAX];
    size_t count = step->pick ? step->pick : step->object_count;
    for (size_t i = 0; i < step->object_count; i++)
        chosen[i] = step->objects[i];
    for (size_t i = 0; i < count; i++) {
        size_t other = step->pick ? i + (size_t)rng_below(&running->ground->rng, step->object_count - i) : i;
        struct inject_selector one = chosen[other];
        chosen[other] = chosen[i];
        chosen[i] = one;
        int rc = ground_resolve(running->ground, &one, targets);
        if (rc != EXIT_OK)
            return rc;
    }
    return EXIT_OK;
}

static void note_fault(struct running *running, const struct scenario_step *step, const target_list *targets,
                       const process_list *survivors, const struct injected *done)
{
    struct done_fault fault = {.step = name_of(running, step, &running->watch.arena),
                               .action = step->action,
                               .count = done->count,
                               .at_ns = done->at_ns,
                               .survivors = *survivors};
    for (size_t i = 0; i < targets->len; i++) {
        char text[TARGET_NAME_MAX + 32];
        target_text(&targets->items[i], text);
        buf_printf(&fault.objects, "%s%s", i ? ", " : "", text);
    }
    struct buf count BUF_CLEANUP = {0};
    put_count(&count, (int64_t)done->count, done->noun);
    tell(running, STR_FORMAT ": %s %s (" STR_FORMAT ")", STR_ARG(fault.step),
         inject_action_names[step->action], fault.objects.data ? fault.objects.data : "",
         STR_ARG(buf_str(&count)));
    vec_push(&running->watch.faults, fault);
    for (size_t i = 0; i < done->records.len; i++) {
        struct healing healing = {done->records.items[i],
                                  step->how.for_ns ? client_clock() + step->how.for_ns : INT64_MAX};
        vec_push(&running->healings, healing);
    }
}

/* Returns the options of a step. Orders to machines must have an end: an injection without a time lasts as
 * long as the scenario may, and is undone when the scenario ends. */
static struct inject_how how_of(const struct running *running, const struct scenario_step *step)
{
    struct inject_how how = step->how;
    int64_t longest_ns = running->scenario.timeout_ns < HOUR_NS ? running->scenario.timeout_ns : HOUR_NS;
    if (running->ground->where == GROUND_API && inject_stands(step->action) && !how.for_ns)
        how.for_ns = longest_ns;
    return how;
}

/* Carries out a step. Returns EXIT_NOT_FOUND if no object matches now. */
static int perform(struct running *running, const struct scenario_step *step)
{
    target_list targets = {0};
    process_list survivors = {0};
    struct injected done = {0};
    int rc = resolve(running, step, &targets);
    if (rc == EXIT_OK)
        job_watch_processes(&running->watch, running->ground, &targets, &survivors);
    struct inject_how how = how_of(running, step);
    if (rc == EXIT_OK)
        rc = inject_do(running->ground, step->action, &how, &targets, &done);
    if (rc == EXIT_OK)
        note_fault(running, step, &targets, &survivors, &done);
    else
        vec_done(&survivors);
    injected_done(&done);
    vec_done(&targets);
    return rc;
}

static void arm_next(struct running *running, const struct pending *pending)
{
    size_t next = (size_t)(pending - running->steps) + 1;
    if (next < running->scenario.step_count && !running->steps[next].armed &&
        running->steps[next].step->moment == MOMENT_AFTER) {
        running->steps[next].armed = true;
        running->steps[next].due_ns = client_clock() + running->steps[next].step->at_ns;
    }
}

static int try_step(struct running *running, struct pending *pending)
{
    const struct scenario_step *step = pending->step;
    if (!pending->armed && step->moment == MOMENT_STEP)
        pending->armed = job_watch_step(&running->watch, running->ground, step->job) >= step->step;
    else if (!pending->armed && step->moment == MOMENT_CONDITION)
        pending->armed = job_watch_condition(&running->watch, running->ground, step->job, step->condition);
    if (!pending->armed || client_clock() < pending->due_ns)
        return EXIT_OK;
    int rc = perform(running, step);
    if (rc == EXIT_NOT_FOUND || rc == EXIT_UNREACHABLE)
        return EXIT_OK; /* for example between two attempts: the step is tried again */
    if (rc != EXIT_OK)
        return rc;
    int64_t jitter_ns = step->jitter_ns ? rng_range(&running->ground->rng, 0, step->jitter_ns) : 0;
    pending->due_ns = client_clock() + step->every_ns + jitter_ns;
    if (--pending->left == 0) {
        running->done++;
        arm_next(running, pending);
    }
    return EXIT_OK;
}

/* --- the run -------------------------------------------------------------------------------------------- */

static int heal_due(struct running *running, bool all)
{
    int rc = EXIT_OK;
    for (size_t i = 0; i < running->healings.len;) {
        struct healing healing = running->healings.items[i];
        if (!all && client_clock() < healing.due_ns) {
            i++;
            continue;
        }
        vec_remove(&running->healings, i);
        int one = inject_heal(running->ground, healing.record);
        tell(running, "%s what stood under %lld", one == EXIT_OK ? "undid" : "could not undo",
             (long long)healing.record);
        rc = one == EXIT_OK ? rc : EXIT_FAILED;
    }
    return rc;
}

static bool waits_for_end(const struct running *running)
{
    for (size_t i = 0; i < running->scenario.expect_count; i++)
        if (running->scenario.expects[i].what == EXPECT_COMPLETES ||
            running->scenario.expects[i].what == EXPECT_FILE)
            return true;
    return false;
}

static bool heals_later(const struct running *running)
{
    for (size_t i = 0; i < running->healings.len; i++)
        if (running->healings.items[i].due_ns != INT64_MAX)
            return true;
    return false;
}

/* Returns the number of restarts that must be seen before the run can be judged. */
static size_t awaited_restarts(const struct running *running)
{
    size_t count = 0;
    for (size_t i = 0; i < running->scenario.expect_count; i++) {
        const struct scenario_expect *expect = &running->scenario.expects[i];
        bool some = expect->what == EXPECT_RECOVERED || expect->what == EXPECT_SURVIVORS ||
                    expect->what == EXPECT_RUNG;
        size_t wanted = expect->what == EXPECT_RESTARTS ? (size_t)expect->low : some;
        count = wanted > count ? wanted : count;
    }
    return count;
}

static bool is_over(const struct running *running)
{
    if (running->watch.state[0])
        return true;
    return running->done == running->scenario.step_count && !heals_later(running) &&
           !waits_for_end(running) && running->watch.restarts.len >= awaited_restarts(running) &&
           job_watch_recovered(&running->watch);
}

static int loop(struct running *running, bool *ret_timed_out)
{
    int64_t until_ns = running->began_ns + running->scenario.timeout_ns;
    int rc = EXIT_OK;
    while (rc == EXIT_OK && !asked_to_end) {
        job_watch_look(&running->watch, running->ground);
        rc = heal_due(running, false);
        if (is_over(running))
            break;
        if (client_clock() > until_ns) {
            *ret_timed_out = true;
            break;
        }
        for (size_t i = 0; i < running->scenario.step_count && rc == EXIT_OK; i++)
            if (running->steps[i].left)
                rc = try_step(running, &running->steps[i]);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * NS_PER_MS}, NULL);
    }
    if (asked_to_end)
        rc = EXIT_FAILED;
    int healed = heal_due(running, true);
    if (running->ground->where == GROUND_API)
        (void)remote_heal_run(running->ground); /* unreachable machines undo their injections in time */
    return rc == EXIT_OK ? healed : rc;
}

static void show_moment(const struct scenario_step *step, char ret_text[96])
{
    char time[24];
    duration_format(step->at_ns, time);
    if (step->moment == MOMENT_STEP)
        snprintf(ret_text, 96, "when step %lld is reached", (long long)step->step);
    else if (step->moment == MOMENT_CONDITION)
        snprintf(ret_text, 96, "when it is " STR_FORMAT,
                 (int)(step->condition.len < 60 ? step->condition.len : 60), step->condition.data);
    else
        snprintf(ret_text, 96, "%s %s", step->moment == MOMENT_AT ? "at" : "after", time);
}

/* Shows what each step would hit if it ran now. */
static int show(struct running *running)
{
    for (size_t i = 0; i < running->scenario.step_count; i++) {
        const struct scenario_step *step = &running->scenario.steps[i];
        target_list targets = {0};
        char moment[96], text[TARGET_NAME_MAX + 32];
        show_moment(step, moment);
        int rc = resolve(running, step, &targets);
        struct str name = name_of(running, step, &running->watch.arena);
        struct buf line BUF_CLEANUP = {0};
        buf_printf(&line, STR_FORMAT ": %s, %s", STR_ARG(name), moment, inject_action_names[step->action]);
        for (size_t k = 0; k < targets.len; k++) {
            target_text(&targets.items[k], text);
            buf_printf(&line, "%s %s", k ? "," : "", text);
        }
        buf_printf(&line, "%s", rc == EXIT_OK ? "" : " (no object matches now)");
        if (step->repeat > 1)
            buf_printf(&line, ", %u times", step->repeat);
        buf_add_str(&line, STR("\n"));
        output_write(&line);
        vec_done(&targets);
    }
    return EXIT_OK;
}

static int begin(struct running *running)
{
    const struct scenario *scenario = &running->scenario;
    running->seed = running->options->has_seed ? running->options->seed
                    : scenario->has_seed       ? scenario->seed
                                               : (uint64_t)client_wall() & INT64_MAX;
    rng_seed(&running->ground->rng, running->seed);
    running->began_ns = client_clock();
    running->steps = mem_alloc(scenario->step_count * sizeof *running->steps);
    for (size_t i = 0; i < scenario->expect_count; i++)
        if (scenario->expects[i].what == EXPECT_SURVIVORS && running->ground->where == GROUND_API) {
            fprintf(stderr,
                    "%s:%u:%u: survivorsKeepTheirProcesses needs a cluster on this computer (--data)\n",
                    running->options->file, scenario->expects[i].line, scenario->expects[i].column);
            return EXIT_USAGE;
        }
    for (size_t i = 0; i < scenario->step_count; i++) {
        const struct scenario_step *step = &scenario->steps[i];
        bool first = i == 0 && step->moment == MOMENT_AFTER;
        bool timed = first || step->moment == MOMENT_AT;
        running->steps[i] = (struct pending){.step = step,
                                             .left = step->repeat,
                                             .armed = timed,
                                             .due_ns = timed ? running->began_ns + step->at_ns : 0};
    }
    if (scenario->job.len && snprintf(running->ground->job, sizeof running->ground->job, "%s" STR_FORMAT,
                                      memchr(scenario->job.data, '/', scenario->job.len) ? "" : "default/",
                                      STR_ARG(scenario->job)) >= (int)sizeof running->ground->job) {
        say("the job's name is too long");
        return EXIT_USAGE;
    }
    job_watch_begin(&running->watch, scenario, running->ground->job);
    return EXIT_OK;
}

int inject_run(struct ground *ground, const struct run_options *options)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf text BUF_CLEANUP = {0};
    struct running running = {.ground = ground, .options = options};
    struct error error;
    struct sigaction action = {.sa_handler = on_end};
    bool timed_out = false;
    if (os_file_read(options->file, FILE_BYTES_MAX, &text, &error) < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    if (scenario_read(&arena, buf_str(&text), &running.scenario, &error) < 0) {
        fprintf(stderr, "%s:%s\n", options->file, error.text);
        return EXIT_USAGE;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int rc = begin(&running);
    if (rc == EXIT_OK)
        tell(&running, "scenario " STR_FORMAT ", seed %llu", STR_ARG(running.scenario.name),
             (unsigned long long)running.seed);
    if (rc == EXIT_OK && options->dry)
        rc = show(&running);
    else if (rc == EXIT_OK && (rc = loop(&running, &timed_out)) == EXIT_OK &&
             !job_watch_report(&running.watch, ground, running.seed, timed_out, options->json))
        rc = EXIT_NOT_FOUND; /* exit status 3: an expectation did not hold */
    job_watch_done(&running.watch);
    vec_done(&running.healings);
    mem_free(running.steps);
    return rc;
}
