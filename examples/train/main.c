/* train - data-parallel training of a character language model on libphalanx (README.md; train --help).
 *
 * The shape that a program under Phalanx has: join, say what the state is, give phx_run_steps what one step
 * is and how the ranks connect, leave. On the loss of a peer the process goes on as soon as another one has
 * taken the place; with --no-rejoin it ends, and Phalanx starts the whole gang again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "options.h"
#include "phalanx/phalanx.h"
#include "ring.h"
#include "text.h"
#include "trainer.h"

#define EXIT_AGAIN 75

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct job {
    struct trainer trainer;
    struct ring ring;
    struct phx_metric loss;
    uint32_t attempts; /* that this process has been in */
    bool spoiled;      /* once is enough */
    uint64_t logged;   /* the last step that a line was printed of, and when */
    double logged_s;
    double step_s; /* the beginning of the newest step */
    uint32_t session; /* of the fabric, as it was told last; 0: none */
};

/* ---- what phx_run_steps calls ---- */

static int reset(void *argument, phx_context *ctx, struct phx_error *error)
{
    struct job *job = argument;
    (void)ctx;
    (void)error;
    trainer_reset(&job->trainer);
    return 0;
}

static int begin(void *argument, phx_context *ctx, uint64_t step, struct phx_error *error)
{
    struct job *job = argument;
    struct trainer *trainer = &job->trainer;
    if (!trainer_fits(trainer, step)) {
        *error = (struct phx_error){.code = PHX_ERROR_INVALID, .rank = -1};
        snprintf(error->message, sizeof error->message,
                 "the checkpoint is of another text, seed, rate or batch");
        return error->code;
    }
    if (job->attempts++ > 0)
        printf("rank %u of %u, attempt %u, from step %llu, same process\n", phx_rank(ctx),
               phx_world_size(ctx), phx_attempt(ctx), (unsigned long long)step);
    else if (phx_rank(ctx) == 0)
        printf("rank 0 of %u, attempt %u, %zu weights, from step %llu\n", phx_world_size(ctx),
               phx_attempt(ctx), trainer->count, (unsigned long long)step);
    job->logged = step;
    job->logged_s = now_s();
    return trainer->options->fabric ? ring_init_fabric(&job->ring, ctx, error)
                                    : ring_init(&job->ring, ctx, trainer_vector(trainer), error);
}

/* Says how the chips are linked, at the beginning and whenever that changes. */
static void tell_fabric(struct job *job, phx_context *ctx, uint64_t step)
{
    struct phx_fabric_about about;
    phx_fabric_get(job->ring.fabric, &about);
    if (about.session == job->session)
        return;
    job->session = about.session;
    if (phx_rank(ctx) == 0)
        printf("fabric session %u at step %llu: %u chips, %u links, %u dark, %u reroutes\n", about.session,
               (unsigned long long)step, about.chips, about.links, about.dark, about.reroutes);
    if (about.cache_note[0] != '\0')
        printf("fabric session %u: %s\n", about.session, about.cache_note);
    for (int bit = 0; phx_rank(ctx) == 0 && bit < 48; bit++)
        if (about.wrong >> bit & 1)
            printf("fabric session %u: wires of switch %c%d are wrong\n", about.session, "xyz"[bit / 16],
                   bit % 16);
}

/* As a program does whose device reports that memory is gone. */
static int spoil(struct job *job, struct phx_error *error)
{
    job->spoiled = true;
    trainer_spoil(&job->trainer);
    *error = (struct phx_error){.code = PHX_ERROR_RETRY, .rank = -1};
    snprintf(error->message, sizeof error->message, "the weights are gone (--spoil-at)");
    return error->code;
}

/* Begins a step: waits until the one before has had its least time. */
static void keep_pace(struct job *job)
{
    double wait_s = job->step_s + (double)job->trainer.options->step_ms * 1e-3 - now_s();
    if (wait_s > 0) {
        struct timespec wait = {.tv_sec = (time_t)wait_s,
                                .tv_nsec = (long)((wait_s - (double)(time_t)wait_s) * 1e9)};
        nanosleep(&wait, NULL);
    }
    job->step_s = now_s();
}

static int make_step(void *argument, phx_context *ctx, uint64_t step, struct phx_error *error)
{
    struct job *job = argument;
    const struct options *options = job->trainer.options;
    bool is_last = phx_rank(ctx) + 1 == phx_world_size(ctx);
    if (options->spoil_at > 0 && step == options->spoil_at && is_last && !job->spoiled)
        return spoil(job, error);
    keep_pace(job);
    int status = trainer_step(&job->trainer, step, &job->ring, error);
    if (status != 0)
        return status;
    job->loss.value = trainer_loss(&job->trainer);
    step++;
    if (job->ring.fabric != NULL)
        tell_fabric(job, ctx, step);
    if (phx_rank(ctx) == 0 && options->log_every > 0 && step % options->log_every == 0) {
        double time_s = now_s();
        printf("step %llu/%llu loss %.4f %.1f steps/s\n", (unsigned long long)step,
               (unsigned long long)options->steps, job->loss.value,
               (double)(step - job->logged) / (time_s - job->logged_s));
        job->logged = step;
        job->logged_s = time_s;
    }
    return 0;
}

static void end(void *argument, phx_context *ctx)
{
    struct job *job = argument;
    (void)ctx;
    ring_done(&job->ring);
}

/* ---- the result ---- */

static int write_result(const char *path, const char *line)
{
    char temporary[4096];
    int len = snprintf(temporary, sizeof temporary, "%s.tmp", path);
    FILE *file = len < 0 || (size_t)len >= sizeof temporary ? NULL : fopen(temporary, "we");
    if (file == NULL)
        return -1;
    bool written = fputs(line, file) >= 0;
    written = fclose(file) == 0 && written;
    return written && rename(temporary, path) == 0 ? 0 : -1;
}

static int report(const struct trainer *trainer, uint32_t rank, uint64_t step, double loss)
{
    char line[128];
    snprintf(line, sizeof line, "final step %llu loss %.6f weights-hash %016llx\n", (unsigned long long)step,
             loss, (unsigned long long)model_hash(trainer->model));
    fputs(line, stdout);
    if (rank != 0 || trainer->options->hash_file == NULL)
        return 0;
    if (write_result(trainer->options->hash_file, line) == 0)
        return 0;
    perror(trainer->options->hash_file);
    return -1;
}

/* Everything between join and leave. */
static int work(phx_context *ctx, struct job *job, struct phx_error *error)
{
    const struct options *options = job->trainer.options;
    struct phx_region regions[TRAINER_REGIONS_MAX];
    struct phx_loop loop = {.size = sizeof loop,
                            .steps = options->steps,
                            .hold_every = options->hold_every,
                            .save_every = options->checkpoint_every,
                            .job = job,
                            .reset = reset,
                            .begin = begin,
                            .step = make_step,
                            .end = end, /* nothing to abort: the ring's polls hear of a loss */
                            .metrics = &job->loss,
                            .metric_count = 1,
                            .whole_steps = 1};
    int status = phx_checkpoint_register(ctx, regions, trainer_regions(&job->trainer, regions), error);
    if (status == 0)
        status = phx_run_steps(ctx, &loop, error);
    ring_done(&job->ring);
    if (status != 0)
        return status;
    trainer_look_ahead(&job->trainer,
                       options->steps); /* its loss is the same wherever the last step was made */
    return report(&job->trainer, phx_rank(ctx), options->steps, trainer_loss(&job->trainer)) == 0
               ? 0
               : PHX_ERROR_IO;
}

static int run(const struct options *options, const struct text *text)
{
    struct phx_error error = {0};
    struct phx_options join = {.size = sizeof join, .rejoins = !options->no_rejoin};
    struct job job = {.ring = {.next_fd = -1, .previous_fd = -1}, .loss = {.name = "loss"}};
    phx_context *ctx;
    if (trainer_init(&job.trainer, options, text) != 0) {
        fprintf(stderr, "train: out of memory\n");
        return 1;
    }
    int status = phx_join(&join, &ctx, &error);
    if (status == 0) {
        status = work(ctx, &job, &error);
        if (status != 0)
            phx_close(ctx);
        else
            status = phx_leave(ctx, &error);
    }
    trainer_done(&job.trainer);
    if (status == 0)
        return 0;
    fprintf(stderr, "train: %s\n", error.message);
    return status == PHX_ERROR_PEER || status == PHX_ERROR_FENCED ? EXIT_AGAIN : 1;
}

static int check_gradients(const struct options *options, const struct text *text)
{
    struct model *model = model_new(text->vocabulary, options->seed);
    if (model == NULL)
        return 1;
    double error = model_check(model, text->symbols);
    printf("largest relative error of a gradient: %.4f\n", error);
    model_free(model);
    return error < 0.02 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct options options;
    struct text text;
    char why[512];
    setvbuf(stdout, NULL, _IOLBF, 0); /* a log shows lines as they come */
    int status = options_parse(&options, argc, argv);
    if (status != 0)
        return status > 0 ? 0 : 2;
    if (getenv("PHX_CHECKPOINT_DIR") == NULL && options.checkpoint_every > 0) {
        fprintf(stderr, "train: PHX_CHECKPOINT_DIR is not set: no checkpoints\n");
        options.checkpoint_every = 0;
    }
    if (getenv("PHX_MEMORY_DIR") == NULL && options.hold_every > 0) {
        fprintf(stderr, "train: PHX_MEMORY_DIR is not set: nothing is held\n");
        options.hold_every = 0;
    }
    if (text_load(&text, options.text, MODEL_CONTEXT + 1, why, sizeof why) != 0) {
        fprintf(stderr, "train: %s\n", why);
        return 2;
    }
    int code = options.check_gradients ? check_gradients(&options, &text) : run(&options, &text);
    text_free(&text);
    return code;
}
