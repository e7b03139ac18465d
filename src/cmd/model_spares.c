/* phalanx model spares and availability: computes how often a job or a slice has all its machines. */
#include <math.h>
#include <stdio.h>

#include "cmd/model_asked.h"
#include "sim/capacity/availability.h"
#include "sim/model/spares.h"

enum { MACHINES_MAX = 10000000 };

static struct spares_terms spares_terms_of(const struct model_asked *asked)
{
    return (struct spares_terms){.machines = (uint32_t)ceil(model_machines(asked) - 1e-9),
                                 .failures_per_s = ettr_failures_per_s(1, asked->value[MODEL_RATE]),
                                 .repair_s = asked->value[MODEL_REPAIR],
                                 .cold = asked->given[MODEL_COLD]};
}

/* --- spares --------------------------------------------------------------------------------------------- */

static void answer_spares(struct model_answer *answer, const struct model_asked *asked,
                          const struct spares_terms *terms, uint32_t enough)
{
    static const struct model_column columns[] = {{"SPARES", "spares"},
                                                  {"HAS ITS MACHINES", "share"},
                                                  {"WAITS, IN 30 DAYS", "waits"},
                                                  {"DRAWN", "drawn"}};
    /* Shows about nine rows around the answer. */
    uint32_t step = enough / 20 + 1, last = enough + 3 * step;
    bool draws = asked->given[MODEL_TRIALS] && terms->machines + last <= SPARES_DRAWN_MAX;
    reply_gap(answer);
    reply_table(answer, "rows", columns, draws ? 4 : 3);
    for (uint32_t spares = enough > 5 * step ? enough - 5 * step : enough % step; spares <= last;
         spares += step) {
        double waiting = spares_waiting(terms, spares);
        reply_cell(answer, spares, 0);
        reply_cell(answer, 1 - waiting, 6);
        reply_cell_span(answer, waiting * 30 * 86400);
        if (draws)
            reply_cell(answer,
                       1 - spares_draw(terms, spares, (uint32_t)asked->value[MODEL_TRIALS],
                                       (uint64_t)asked->value[MODEL_SEED]),
                       6);
    }
    reply_table_end(answer);
    if (asked->given[MODEL_TRIALS] && !draws)
        reply_text(answer, "nothing is drawn of more than %d machines", SPARES_DRAWN_MAX);
}

int model_run_spares(struct model_asked *asked)
{
    struct model_answer answer;
    double target = asked->given[MODEL_TARGET] ? asked->value[MODEL_TARGET] : .99;
    if (asked->given[MODEL_MACHINES] == asked->given[MODEL_GPUS])
        return model_complain(asked, "expected --machines or --gpus");
    if (!asked->given[MODEL_RATE] || !(asked->given[MODEL_REPAIR] || asked->given[MODEL_COUNT]))
        return model_complain(asked, "expected --rate, and --repair or --spares");
    if (model_machines(asked) > MACHINES_MAX)
        return model_complain(asked, "expected 10000000 machines at most");
    struct spares_terms terms = spares_terms_of(asked);
    reply_begin(&answer, asked->json);
    reply_number(&answer, "machines", "machines of the job", terms.machines, 0);
    reply_number(&answer, "target", "wanted share of time with all of them", target, 4);
    if (asked->given[MODEL_COUNT])
        reply_span(&answer, "repairMost", "longest mean repair that reaches it",
                   spares_repair_for(&terms, (uint32_t)asked->value[MODEL_COUNT], target));
    if (asked->given[MODEL_REPAIR]) {
        uint32_t enough = spares_for(&terms, target);
        reply_number(&answer, "away", "machines in repair, on average",
                     terms.machines * terms.failures_per_s * terms.repair_s, 2);
        if (enough <= SPARES_MAX) {
            reply_number(&answer, "spares", "spares that reach it", enough, 0);
            answer_spares(&answer, asked, &terms, enough);
        } else {
            reply_text(&answer, "more than %d spares would be needed", SPARES_MAX);
        }
    }
    return reply_end(&answer);
}

/* --- availability --------------------------------------------------------------------------------------- */

/* Returns the mean repair time with which a host of this failure rate is up with probability `host_up`. */
static double repair_for(const struct model_asked *asked, double host_up)
{
    if (!asked->given[MODEL_RATE])
        return NAN;
    return (1 / host_up - 1) / ettr_failures_per_s(1, asked->value[MODEL_RATE]);
}

static void answer_slice(struct model_answer *answer, const struct model_asked *asked, uint32_t slice,
                         double host_up)
{
    uint32_t cubes = (uint32_t)asked->value[MODEL_POD];
    struct availability exact = availability_exact(cubes, slice, host_up);
    reply_cell(answer, slice, 0);
    reply_cell(answer, slice * CUBE_CHIPS, 0);
    reply_cell(answer, exact.slice, 4);
    reply_cell(answer, exact.slice_static, 4);
    reply_cell(answer, exact.goodput, 4);
    reply_cell(answer, exact.goodput_static, 4);
    if (!asked->given[MODEL_TARGET])
        return;
    double host = availability_host_for(cubes, slice, asked->value[MODEL_TARGET]);
    reply_cell(answer, host, 5);
    reply_cell_span(answer, repair_for(asked, host));
}

static void answer_slices(struct model_answer *answer, const struct model_asked *asked, double host_up)
{
    static const struct model_column columns[] = {{"CUBES", "cubes"},
                                                  {"CHIPS", "chips"},
                                                  {"SLICE UP", "slice"},
                                                  {"IF STATIC", "sliceStatic"},
                                                  {"GOODPUT", "goodput"},
                                                  {"IF STATIC", "goodputStatic"},
                                                  {"HOST NEEDED", "hostNeeded"},
                                                  {"REPAIR AT MOST", "repairMost"}};
    uint32_t cubes = (uint32_t)asked->value[MODEL_POD];
    reply_gap(answer);
    reply_table(answer, "slices", columns, asked->given[MODEL_TARGET] ? 8 : 6);
    if (asked->given[MODEL_SLICE]) {
        answer_slice(answer, asked, (uint32_t)asked->value[MODEL_SLICE], host_up);
    } else {
        for (uint32_t slice = 1; slice < cubes; slice *= 2) {
            answer_slice(answer, asked, slice, host_up);
            if (slice >= 8 && slice + slice / 2 < cubes)
                answer_slice(answer, asked, slice + slice / 2, host_up);
        }
        answer_slice(answer, asked, cubes, host_up);
    }
    reply_table_end(answer);
}

int model_run_availability(struct model_asked *asked)
{
    struct model_answer answer;
    bool rate = asked->given[MODEL_RATE], repair = asked->given[MODEL_REPAIR];
    if (asked->given[MODEL_HOST] ? rate || repair : !(rate && repair))
        return model_complain(asked, "expected --host, or --rate and --repair");
    if (asked->given[MODEL_SLICE] && asked->value[MODEL_SLICE] > asked->value[MODEL_POD])
        return model_complain(asked, "the slice has more cubes than the pod (--pod)");
    double host_up = asked->value[MODEL_HOST];
    if (!asked->given[MODEL_HOST])
        host_up = 1 / (1 + ettr_failures_per_s(1, asked->value[MODEL_RATE]) * asked->value[MODEL_REPAIR]);
    reply_begin(&answer, asked->json);
    reply_number(&answer, "cubes", "cubes of the pod", asked->value[MODEL_POD], 0);
    reply_number(&answer, "hostUp", "a host is up with", host_up, 6);
    reply_number(&answer, "cubeWhole", "a cube of 16 hosts is whole with", pow(host_up, CUBE_MACHINES), 6);
    if (asked->given[MODEL_TARGET])
        reply_number(&answer, "target", "a switched slice is to be up with", asked->value[MODEL_TARGET], 4);
    answer_slices(&answer, asked, host_up);
    return reply_end(&answer);
}
