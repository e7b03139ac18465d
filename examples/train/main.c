/* train - data-parallel training of a character language model on libphalanx (README.md; train --help).
 *
 * The shape that a program under Phalanx has: join, restore, then steps with checkpoints between them, leave.
 * On the loss of a peer it just ends; Phalanx starts the gang again, and it goes on from the newest committed
 * checkpoint. */
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

/* The newest committed checkpoint, when there is one. */
static int restore(phx_context *ctx, struct trainer *trainer, uint64_t *ret_step, struct phx_error *error)
{
    size_t len;
    uint64_t step;
    int status = phx_checkpoint_find(ctx, &len, &step, error);
    if (status == PHX_ERROR_NONE)
        return 0;
    uint8_t *data = status == 0 ? malloc(len > 0 ? len : 1) : NULL;
    if (data != NULL) {
        status = phx_checkpoint_restore(ctx, data, len, &len, &step, error);
        if (status == 0 && trainer_restore(trainer, data, len) != 0) {
            *error = (struct phx_error){.code = PHX_ERROR_INVALID, .rank = -1};
            snprintf(error->message, sizeof error->message,
                     "the checkpoint is of another text, seed, rate or batch");
            status = error->code;
        }
        free(data);
    } else if (status == 0) {
        *error = (struct phx_error){PHX_ERROR_MEMORY, -1, "out of memory"};
        status = error->code;
    }
    if (status == 0)
        *ret_step = step;
    return status;
}

typedef int (*keeper)(phx_context *ctx, uint64_t step, const void *data, size_t len, struct phx_error *error);

/* By phx_checkpoint_save or phx_checkpoint_hold. */
static int keep(phx_context *ctx, keeper by, const struct trainer *trainer, uint64_t step,
                struct phx_error *error)
{
    size_t len;
    uint8_t *data = trainer_save(trainer, &len);
    if (data == NULL) {
        *error = (struct phx_error){PHX_ERROR_MEMORY, -1, "out of memory"};
        return error->code;
    }
    int status = by(ctx, step, data, len, error);
    free(data);
    return status;
}

/* Steps from *step to the last one. A notice (a drain, a preemption) is answered with one checkpoint more. */
static int train(phx_context *ctx, struct trainer *trainer, struct ring *ring, uint64_t *step,
                 double *ret_loss, struct phx_error *error)
{
    const struct options *options = trainer->options;
    bool noticed = false;
    uint64_t logged = *step;
    double logged_s = now_s();
    while (*step < options->steps) {
        bool any_noticed;
        int status = trainer_step(trainer, *step, ring, phx_notice(ctx, NULL), ret_loss, &any_noticed, error);
        if (status != 0)
            return status;
        ++*step;
        struct phx_metric metrics[] = {{"loss", *ret_loss}};
        status = phx_step(ctx, *step, metrics, 1, error);
        bool due = options->checkpoint_every > 0 &&
                   (*step % options->checkpoint_every == 0 || *step == options->steps);
        if (status == 0 && (due || (any_noticed && !noticed)))
            status = keep(ctx, phx_checkpoint_save, trainer, *step, error);
        if (status == 0 && options->hold_every > 0 && *step % options->hold_every == 0)
            status = keep(ctx, phx_checkpoint_hold, trainer, *step, error);
        if (status != 0)
            return status;
        noticed = noticed || any_noticed;
        if (ring->rank == 0 && options->log_every > 0 && *step % options->log_every == 0) {
            double time_s = now_s();
            printf("step %llu/%llu loss %.4f %.1f steps/s\n", (unsigned long long)*step,
                   (unsigned long long)options->steps, *ret_loss,
                   (double)(*step - logged) / (time_s - logged_s));
            logged = *step;
            logged_s = time_s;
        }
    }
    return 0;
}

/* The loss over the first batch behind the last step isn't known after a restore at the very end; it is
 * computed. */
static int final_loss(struct trainer *trainer, struct ring *ring, uint64_t step, double *ret_loss,
                      struct phx_error *error)
{
    int64_t *sums = trainer->sums;
    memset(sums, 0, trainer_vector(trainer) * sizeof *sums);
    for (uint64_t index = ring->rank; index < trainer->options->batch; index += ring->world) {
        size_t at = text_pick(trainer->text, trainer->options->seed, step, index, MODEL_CONTEXT + 1);
        (void)model_backward(trainer->model, trainer->text->symbols + at, sums);
    }
    int status = ring_sum(ring, sums, trainer_vector(trainer), error);
    if (status == 0)
        *ret_loss = (double)sums[trainer->count] /
                    (MODEL_FIXED_ONE * MODEL_CONTEXT * (double)trainer->options->batch);
    return status;
}

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
static int work(phx_context *ctx, struct trainer *trainer, struct phx_error *error)
{
    struct ring ring;
    uint64_t step = 0;
    double loss = 0;
    phx_set_total_steps(ctx, trainer->options->steps);
    int status = restore(ctx, trainer, &step, error);
    if (status == 0)
        status = ring_init(&ring, ctx, trainer_vector(trainer), error);
    if (status != 0)
        return status;
    if (ring.rank == 0)
        printf("rank 0 of %u, attempt %u, %zu weights, from step %llu\n", ring.world, phx_attempt(ctx),
               trainer->count, (unsigned long long)step);
    phx_step(ctx, step, NULL, 0, error);
    status = train(ctx, trainer, &ring, &step, &loss, error);
    if (status == 0)
        status = final_loss(trainer, &ring, step, &loss, error);
    if (status == 0)
        status = phx_barrier(ctx, 60000, error);
    if (status == 0 && report(trainer, ring.rank, step, loss) != 0)
        status = PHX_ERROR_IO;
    ring_done(&ring);
    return status;
}

static int run(const struct options *options, const struct text *text)
{
    struct phx_error error = {0};
    struct trainer trainer;
    phx_context *ctx;
    int status = phx_join(NULL, &ctx, &error);
    if (status == 0 && trainer_init(&trainer, options, text) != 0) {
        error = (struct phx_error){PHX_ERROR_MEMORY, -1, "out of memory"};
        phx_close(ctx);
        status = error.code;
    } else if (status == 0) {
        status = work(ctx, &trainer, &error);
        trainer_done(&trainer);
        if (status != 0)
            phx_close(ctx);
        else
            status = phx_leave(ctx, &error);
    }
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
