/* render_lemon.c - the counted failures of machines (core/lemon/lemon.h) as phalanx.dev shows them: each
 * machine with a count has a Lemon, whether it is a lemon node or not. */
#include "core/lemon/lemon.h"
#include "kube/render.h"

static const struct lemon *find(const struct core *core, const struct machine *machine)
{
    return lemon_find(core_lemons(core), machine->name);
}

bool lemon_is_shown(const struct core *core, const struct machine *machine)
{
    return find(core, machine) != NULL;
}

static struct str evidence_of(struct render *render, const struct lemon *lemon)
{
    struct buf text BUF_CLEANUP = {0};
    lemon_describe(lemon, &core_cluster(render->core)->policy.lemons, &text);
    return arena_str(render->scratch, buf_str(&text));
}

static void put_signals(struct render *render, const struct lemon *lemon)
{
    struct json_writer *out = &render->out;
    const struct lemon_settings *settings = &core_cluster(render->core)->policy.lemons;
    json_key(out, "signals");
    json_begin_object(out);
    for (int s = 0; s < LEMON_SIGNALS; s++) {
        json_key(out, lemon_signal_name((enum lemon_signal)s));
        json_begin_object(out);
        json_pair_int(out, "value", lemon_value(lemon, (enum lemon_signal)s));
        json_pair_int(out, "threshold", settings->thresholds[s]);
        json_pair_bool(out, "exceeded", lemon_exceeds(lemon, settings, (enum lemon_signal)s));
        json_end_object(out);
    }
    json_end_object(out);
}

void render_lemon(struct render *render, const struct machine *machine)
{
    struct json_writer *out = &render->out;
    const struct lemon *lemon = find(render->core, machine);
    const struct lemon_settings *settings = &core_cluster(render->core)->policy.lemons;
    CHECK(lemon);
    json_begin_object(out);
    render_type(render, "phalanx.dev/v1", "Lemon");
    render_metadata_begin(render, &(struct render_metadata){.name = machine->name,
                                                            .uid = machine->uid,
                                                            .version = lemon->changed_seq,
                                                            .created_ns = machine->created_ns});
    render_metadata_end(render);
    json_key(out, "status");
    json_begin_object(out);
    json_pair_bool(out, "lemon", lemon->is_lemon);
    json_pair_int(out, "score", lemon_score(lemon, settings));
    json_pair_str(out, "evidence", evidence_of(render, lemon));
    render_time(render, "since", lemon->since_ns);
    json_pair_int(out, "windowDays", settings->window_days);
    put_signals(render, lemon);
    json_end_object(out);
    json_end_object(out);
}

void render_lemon_condition(struct render *render, const struct machine *machine)
{
    const struct lemon *lemon = find(render->core, machine);
    if (lemon && lemon->is_lemon)
        render_condition(render, "Lemon", "True", lemon->since_ns, "FailsAgainAndAgain",
                         evidence_of(render, lemon));
}

void lemon_cells(struct render *render, const struct machine *machine)
{
    struct json_writer *out = &render->out;
    const struct lemon *lemon = find(render->core, machine);
    CHECK(lemon);
    json_put_str(out, machine->name);
    json_put_text(out, lemon->is_lemon ? "True" : "False");
    json_put_int(out, lemon_score(lemon, &core_cluster(render->core)->policy.lemons));
    json_put_str(out, evidence_of(render, lemon));
}
