#include "job/loop/auto.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job/link/error.h"

#define PLAN_MAX   80 /* bytes of a plan's text */
#define LONGER_MAX 3  /* times a step; a longer delay has another cause */

static double seconds_since(int64_t began_ns)
{
    return (double)(job_now_ns() - began_ns) / 1e9;
}

struct job_auto job_auto_new(const struct job_settings *settings, uint64_t *hold_every, uint64_t *save_every)
{
    bool can_hold = settings->memory_dir[0] != '\0' && settings->worlds == 1;
    bool can_save = settings->checkpoint_dir[0] != '\0' || settings->store;
    struct job_auto chosen = {.hold = *hold_every == PHX_AUTO, .save = *save_every == PHX_AUTO};
    if (chosen.hold)
        *hold_every = can_hold ? settings->interval : 0;
    if (chosen.save)
        *save_every = can_save ? settings->interval : 0;
    chosen.hold = chosen.hold && can_hold && settings->interval == 0;
    chosen.save = chosen.save && can_save && settings->interval == 0;
    uint32_t ranks = settings->world > 0 ? settings->world : 1;
    chosen.measured.mttf_s =
        settings->mttf_s > 0 ? (double)settings->mttf_s : INTERVAL_MACHINE_MTTF_S / (double)ranks;
    chosen.measured.restart_s = INTERVAL_RESTART_S;
    return chosen;
}

void job_auto_begin(struct job_auto *chosen, uint64_t step)
{
    chosen->plan = (struct interval_plan){.next = step};
    chosen->held = chosen->saved = step;
    chosen->round = 0;
    chosen->behind = NULL;
    chosen->behind_s = 0;
}

void job_auto_lost(struct job_auto *chosen)
{
    if (chosen->lost_ns == 0)
        chosen->lost_ns = job_now_ns();
}

/* Returns true while the newest checkpoint is being sealed, stored, or sent. */
static bool is_under_way(phx_context *ctx)
{
    const struct job_keep *keep = &ctx->keep;
    const struct job_peer *peer = &keep->peer;
    pthread_mutex_lock(&ctx->mutex);
    bool copied = !peer->any || (peer->any_told && peer->told >= peer->step); /* the copies of all ranks */
    bool under_way = keep->state != KEEP_IDLE || keep->storing >= 0 || !copied;
    pthread_mutex_unlock(&ctx->mutex);
    return under_way;
}

static void end_behind(struct job_auto *chosen)
{
    if (chosen->behind != NULL)
        interval_add(chosen->behind, chosen->behind_s);
    chosen->behind = NULL;
    chosen->behind_s = 0;
}

void job_auto_stepped(struct job_auto *chosen, phx_context *ctx, int64_t began_ns)
{
    double seconds = seconds_since(began_ns), quiet = chosen->quiet_s;
    interval_add(&chosen->measured.step, seconds);
    if (chosen->behind != NULL) {
        chosen->behind_s += fmin(seconds - quiet, quiet * LONGER_MAX);
        if (!is_under_way(ctx))
            end_behind(chosen);
    }
    if (chosen->lost_ns != 0)
        chosen->measured.restart_s = (double)(began_ns - chosen->lost_ns) / 1e9;
    chosen->lost_ns = 0;
}

void job_auto_kept(struct job_auto *chosen, uint64_t step, bool hold, bool save, int64_t began_ns)
{
    struct interval_tier *tier = save ? &chosen->measured.save : &chosen->measured.hold;
    end_behind(chosen);
    interval_add(&tier->still, seconds_since(began_ns));
    chosen->behind = &tier->behind;
    chosen->quiet_s = interval_median(&chosen->measured.step);
    if (hold)
        chosen->held = step;
    if (save)
        chosen->saved = step;
}

/* Computes the figures that describe the plan: cost, interval and expected ETTR. */
static void weigh(struct job_auto *chosen)
{
    const struct interval_measured *measured = &chosen->measured;
    bool saves = chosen->plan.save_every > 0;
    uint64_t every = saves ? chosen->plan.save_every : chosen->plan.hold_every;
    chosen->ettr = 0;
    if (every == 0 || (saves ? measured->save.still.count : measured->hold.still.count) == 0)
        return;
    chosen->write_s = interval_cost(saves ? &measured->save : &measured->hold);
    chosen->interval_s = (double)every * interval_median(&measured->step);
    chosen->ettr = interval_ettr(measured, chosen->write_s, every);
}

/* ---- one plan for all ranks ---- */

static int tell(struct job_auto *chosen, phx_context *ctx, const char *key, struct phx_error *error)
{
    const struct interval_plan *plan = &chosen->plan;
    char text[PLAN_MAX];
    int len = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " %" PRIu64, plan->hold_every,
                       plan->save_every, plan->next);
    return phx_kv_put(ctx, key, text, (size_t)len, error);
}

static int hear(struct job_auto *chosen, phx_context *ctx, const char *key, uint64_t step,
                struct phx_error *error)
{
    struct interval_plan plan;
    char text[PLAN_MAX] = "";
    size_t len;
    int status = phx_kv_get(ctx, key, text, sizeof text - 1, &len, -1, error);
    if (status != 0)
        return status;
    if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &plan.hold_every, &plan.save_every, &plan.next) !=
            3 ||
        plan.next <= step)
        return job_fail(error, PHX_ERROR_INVALID,
                        "\"%s\" is not a checkpoint plan: the ranks run different versions", key);
    chosen->plan = plan;
    return 0;
}

static int agree(struct job_auto *chosen, phx_context *ctx, uint64_t step, struct phx_error *error)
{
    char key[64];
    int status = 0;
    snprintf(key, sizeof key, "phalanx/interval/%" PRIu64, chosen->round++);
    if (phx_rank(ctx) != 0)
        return hear(chosen, ctx, key, step, error);
    chosen->plan = interval_decide(&chosen->measured, step, chosen->hold, chosen->save);
    weigh(chosen);
    if (phx_world_size(ctx) > 1)
        status = tell(chosen, ctx, key, error);
    return status;
}

/* Changes the phase, since waiting for rank 0 is not this rank's own work. Returns the previous one. */
static enum phx_phase change_phase(phx_context *ctx, enum phx_phase phase)
{
    pthread_mutex_lock(&ctx->mutex);
    phase = job_pace_phase(&ctx->pace, phase, job_now_ns());
    pthread_mutex_unlock(&ctx->mutex);
    return phase;
}

int job_auto_due(struct job_auto *chosen, phx_context *ctx, uint64_t step, bool *hold, bool *save,
                 struct phx_error *error)
{
    const struct interval_plan *plan = &chosen->plan;
    if (!chosen->hold && !chosen->save)
        return 0;
    *hold = *hold || (plan->hold_every > 0 && step - chosen->held >= plan->hold_every);
    *save = *save || (plan->save_every > 0 && step - chosen->saved >= plan->save_every);
    if (step != plan->next)
        return 0;
    enum phx_phase phase = change_phase(ctx, PHX_PHASE_COMMUNICATE);
    int status = agree(chosen, ctx, step, error);
    change_phase(ctx, phase);
    return status;
}

/* ---- figures for the metrics ---- */

size_t job_auto_metrics(const struct job_auto *chosen, const struct phx_metric *given, size_t count,
                        struct phx_metric ret[PHX_METRICS_MAX])
{
    const struct interval_plan *plan = &chosen->plan;
    if (count > 0)
        memcpy(ret, given, count * sizeof *given);
    if (chosen->ettr <= 0 || count + 7 > PHX_METRICS_MAX)
        return count;
    ret[count++] = (struct phx_metric){"checkpoint_mttf_s", chosen->measured.mttf_s};
    ret[count++] = (struct phx_metric){"checkpoint_restart_s", chosen->measured.restart_s};
    ret[count++] = (struct phx_metric){"checkpoint_hold_steps", (double)plan->hold_every};
    ret[count++] = (struct phx_metric){"checkpoint_save_steps", (double)plan->save_every};
    ret[count++] = (struct phx_metric){"checkpoint_write_s", chosen->write_s};
    ret[count++] = (struct phx_metric){"checkpoint_interval_s", chosen->interval_s};
    ret[count++] = (struct phx_metric){"checkpoint_ettr", chosen->ettr};
    return count;
}
