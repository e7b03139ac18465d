/* sources.c - when failures strike. Each source is a failure model and the machines that it strikes at the
 * same time: one machine, or those of a rack.
 *
 * A source's life is drawn again when its machine returns from a repair, whatever the failure was, so lives
 * with a memory (Weibull, infant mortality) start again with a repaired machine. Lives are drawn in the
 * machine's own age, which runs faster while the machine is young. */
#include "sim/capacity/internal.h"

/* Returns the true time from a return until the machine's own age is `life_s`. */
static double source_true_time(const struct failure_model *model, double life_s)
{
    double infancy_s = model->infant_s * model->infant_factor;
    return life_s < infancy_s ? life_s / model->infant_factor : model->infant_s + life_s - infancy_s;
}

static void source_arm(struct simulation_world *world, struct source *source)
{
    const struct failure_model *model = &world->scenario->failures[source->model];
    double life_s = draw_seconds(&model->life, &world->lives) / source->factor;
    double wait_s = source_true_time(model, life_s);
    due_drop(world, &source->due);
    if (wait_s * 1e9 < (double)(world->end_ns - world->now_ns))
        due_set(world, &source->due, DUE_STRIKE, world->now_ns + (int64_t)(wait_s * 1e9) + 1);
}

void sources_due(struct simulation_world *world, struct source *source)
{
    bool well = world->nodes[source->first].condition == MACHINE_WELL;
    if (source->planned) {
        fleet_strike(world, source->first, source->model, source->planned);
        return;
    }
    for (uint32_t i = 0; i < source->count; i++)
        fleet_strike(world, source->first + i, source->model, NULL);
    /* The source of a machine that was struck starts again when the machine returns. */
    if (world->scenario->failures[source->model].of_racks || !well)
        source_arm(world, source);
}

void sources_renew(struct simulation_world *world, uint32_t machine)
{
    const struct sim_scenario *scenario = world->scenario;
    size_t at = 0;
    for (uint32_t model = 0; model < scenario->failure_count; model++) {
        if (scenario->failures[model].planned)
            continue;
        if (!scenario->failures[model].of_racks) {
            source_arm(world, &world->sources[at + machine]);
            at += scenario->machines;
        } else {
            at += (scenario->machines + scenario->machines_per_rack - 1) / scenario->machines_per_rack;
        }
    }
}

/* Lemons are drawn before the first event, so a seed has the same ones under every policy. */
static double source_factor(struct simulation_world *world, const struct failure_model *model)
{
    return model->lemon_share > 0 && rng_unit(&world->lives) < model->lemon_share ? model->lemon_factor : 1;
}

static void source_plan(struct simulation_world *world, const struct planned_failure *planned)
{
    struct source *source = &world->sources[world->source_count++];
    *source = (struct source){
        .model = planned->model, .first = planned->machine, .count = 1, .factor = 1, .planned = planned};
    if (planned->at_s * 1e9 < (double)(world->end_ns - world->now_ns))
        due_set(world, &source->due, DUE_STRIKE, world->now_ns + (int64_t)(planned->at_s * 1e9));
}

void sources_begin(struct simulation_world *world)
{
    const struct sim_scenario *scenario = world->scenario;
    uint32_t per_rack = scenario->machines_per_rack, racks = (scenario->machines + per_rack - 1) / per_rack;
    size_t count = 0;
    for (uint32_t model = 0; model < scenario->failure_count; model++)
        count += scenario->failures[model].planned    ? 0
                 : scenario->failures[model].of_racks ? racks
                                                      : scenario->machines;
    count += scenario->planned.len;
    world->sources = mem_alloc((count + 1) * sizeof *world->sources);
    for (uint32_t model = 0; model < scenario->failure_count; model++) {
        bool of_racks = scenario->failures[model].of_racks;
        if (scenario->failures[model].planned)
            continue;
        for (uint32_t i = 0; i < (of_racks ? racks : scenario->machines); i++) {
            struct source *source = &world->sources[world->source_count++];
            uint32_t first = of_racks ? i * per_rack : i, left = scenario->machines - first;
            *source = (struct source){.model = model,
                                      .first = first,
                                      .count = !of_racks         ? 1
                                               : left < per_rack ? left
                                                                 : per_rack};
            source->factor = source_factor(world, &scenario->failures[model]);
            source_arm(world, source);
        }
    }
    for (size_t i = 0; i < scenario->planned.len; i++)
        source_plan(world, &scenario->planned.items[i]);
    CHECK(world->source_count == count);
}

void sources_done(struct simulation_world *world)
{
    mem_free(world->sources);
}
