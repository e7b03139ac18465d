/* sim_compare.c - compares a base and a variant of it, side by side. */
#include <math.h>
#include <stdio.h>

#include "cmd/client.h"
#include "cmd/sim.h"

enum { COMPARE_BASE, COMPARE_OTHER };

/* Returns a figure as recorded in the log; NAN if a log does not have it. */
static double compare_recorded(const struct history *history, const struct history_facts *facts,
                               enum study_figure figure)
{
    const struct history_seen_sum *seen = &facts->seen;
    double chip_s = (double)facts->chips * (double)history->end_us / 1e6;
    if (seen->jobs == 0)
        return (double)NAN;
    switch (figure) {
    case FIGURE_ETTR:
        return seen->held_chip_s > 0 ? seen->work_chip_s / seen->held_chip_s : (double)NAN;
    case FIGURE_ETTR_WITH_QUEUE:
        return seen->lived_chip_s > 0 ? seen->work_chip_s / seen->lived_chip_s : (double)NAN;
    case FIGURE_GOODPUT:
        return chip_s > 0 ? seen->work_chip_s / chip_s : (double)NAN;
    case FIGURE_WAIT:
        return seen->started > 0 ? seen->wait_s / (double)seen->started : (double)NAN;
    case FIGURE_COMPLETED:
        return (double)seen->completed;
    case FIGURE_RESTARTS:
        return (double)seen->restarts;
    case FIGURE_REDONE:
        return seen->redone_chip_s / 3600;
    default:
        return (double)NAN;
    }
}

static bool compare_is_share(enum study_figure figure)
{
    return figure <= FIGURE_DOWN;
}

static struct str compare_text(struct arena *arena, struct study_mean mean, enum study_figure figure)
{
    int digits = compare_is_share(figure) ? 4 : figure == FIGURE_WAIT || figure == FIGURE_REDONE ? 3 : 1;
    if (figure >= FIGURE_FAILURES && figure < FIGURE_REDONE && !isfinite(mean.half))
        digits = 0;
    if (!isfinite(mean.mean))
        return STR("-");
    if (!isfinite(mean.half))
        return arena_printf(arena, "%.*f", digits, mean.mean);
    return arena_printf(arena, "%.*f ± %.*f", digits, mean.mean, digits, mean.half);
}

static struct str compare_difference(struct arena *arena, double difference, enum study_figure figure)
{
    int digits = compare_is_share(figure) ? 4 : figure == FIGURE_WAIT || figure == FIGURE_REDONE ? 3 : 1;
    if (!isfinite(difference))
        return STR("-");
    return fabs(difference) < 0.5 * pow(10, -digits) ? STR("=")
                                                     : arena_printf(arena, "%+.*f", digits, difference);
}

static void compare_row(struct text_table *table, const struct study *study, const struct history *history,
                        const struct history_facts *facts, enum study_figure figure)
{
    struct study_mean base = study_figure(study, COMPARE_BASE, figure);
    struct study_mean other = study_figure(study, COMPARE_OTHER, figure);
    struct study_mean recorded = {.half = (double)NAN};
    table_add(table, str_from(study_figure_names[figure]));
    if (history) {
        recorded.mean = compare_recorded(history, facts, figure);
        table_add(table, compare_text(&table->arena, recorded, figure));
    }
    table_add(table, compare_text(&table->arena, base, figure));
    table_add(table, compare_text(&table->arena, other, figure));
    table_add(table, compare_difference(&table->arena, other.mean - base.mean, figure));
}

static void compare_put_change(struct buf *out, const struct study *study, size_t field)
{
    buf_printf(out, STR_FORMAT ": ", STR_ARG(study->fields[field]));
    for (size_t point = COMPARE_BASE; point <= COMPARE_OTHER; point++) {
        struct buf value BUF_CLEANUP = {0};
        study_value_at(study, point, field, &value);
        buf_printf(out, "%s" STR_FORMAT, point ? " -> " : "", STR_ARG(buf_str(&value)));
    }
    buf_add_char(out, '\n');
}

static void compare_put_text(struct buf *out, const struct study *study, const struct history *history,
                             const struct history_facts *facts, uint64_t seed)
{
    static const char *const heads[] = {"", "RECORDED", "BASE", "WHAT IF", "DIFFERENCE"};
    const struct sim_scenario *scenario = &study->points.items[COMPARE_BASE].scenario;
    struct text_table table = {.columns = history ? 5 : 4};
    buf_printf(out, "%s: %u machines, %.4g days, %zu seed%s from %llu on\n", scenario->name,
               scenario->machines, (double)scenario->duration_ns / 86400e9, study->seeds,
               study->seeds > 1 ? "s" : "", (unsigned long long)seed);
    for (size_t field = 0; field < study->field_count; field++)
        compare_put_change(out, study, field);
    buf_add_char(out, '\n');
    for (size_t i = 0; i < 5; i++)
        if (i != 1 || history)
            table_add(&table, str_from(heads[i]));
    for (int figure = 0; figure < STUDY_FIGURES; figure++)
        compare_row(&table, study, history, facts, (enum study_figure)figure);
    table_print(&table, out, false);
    table_done(&table);
    buf_printf(out, "\ndigests of seed %llu: %016llx and %016llx\n", (unsigned long long)seed,
               (unsigned long long)study->points.items[COMPARE_BASE].outcomes[0]->digest,
               (unsigned long long)study->points.items[COMPARE_OTHER].outcomes[0]->digest);
}

static void compare_put_json(struct buf *out, const struct study *study, const struct history *history,
                             const struct history_facts *facts, uint64_t seed)
{
    static const char *const names[] = {"base", "whatIf"};
    struct json_writer json = {.out = out};
    json_begin_object(&json);
    json_pair_text(&json, "name", study->points.items[COMPARE_BASE].scenario.name);
    json_pair_int(&json, "seed", (int64_t)seed);
    json_pair_int(&json, "seeds", (int64_t)study->seeds);
    json_key(&json, "set");
    json_begin_object(&json);
    for (size_t field = 0; field < study->field_count; field++) {
        json_key_str(&json, study->fields[field]);
        json_begin_object(&json);
        for (size_t point = COMPARE_BASE; point <= COMPARE_OTHER; point++) {
            struct buf value BUF_CLEANUP = {0};
            study_value_at(study, point, field, &value);
            json_pair_str(&json, names[point], buf_str(&value));
        }
        json_end_object(&json);
    }
    json_end_object(&json);
    for (int figure = 0; figure < STUDY_FIGURES; figure++) {
        json_key(&json, study_figure_names[figure]);
        json_begin_object(&json);
        if (history)
            json_pair_float(&json, "recorded", compare_recorded(history, facts, (enum study_figure)figure));
        for (size_t point = COMPARE_BASE; point <= COMPARE_OTHER; point++)
            json_pair_float(&json, names[point], study_figure(study, point, (enum study_figure)figure).mean);
        json_end_object(&json);
    }
    json_key(&json, "digests");
    json_begin_object(&json);
    for (size_t point = COMPARE_BASE; point <= COMPARE_OTHER; point++) {
        char digest[24];
        snprintf(digest, sizeof digest, "%016llx",
                 (unsigned long long)study->points.items[point].outcomes[0]->digest);
        json_pair_text(&json, names[point], digest);
    }
    json_end_object(&json);
    json_end_object(&json);
}

void sim_compare(struct buf *out, const struct study *study, const struct history *history, uint64_t seed,
                 bool as_json)
{
    struct history_facts facts = {0};
    if (history)
        history_sum(history, &facts);
    if (as_json)
        compare_put_json(out, study, history, &facts, seed);
    else
        compare_put_text(out, study, history, &facts, seed);
}
