/* sim_picture.c - draws the figure of a simulation. */
#include <math.h>

#include "cmd/sim.h"

enum { WIDTH = 760, LEFT = 64, RIGHT = 24, TOP = 44, PANEL = 220, GAP = 64, PLOT = WIDTH - LEFT - RIGHT };

static void picture_frame(struct buf *out, int top, const char *title, double most, const char *unit)
{
    buf_printf(out, "<text x=\"%d\" y=\"%d\" font-size=\"13\">%s</text>\n", LEFT, top - 10, title);
    for (int quarter = 0; quarter <= 4; quarter++) {
        int y = top + PANEL - PANEL * quarter / 4;
        buf_printf(out,
                   "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#ddd\"/>\n<text x=\"%d\" y=\"%d\" "
                   "text-anchor=\"end\">%.4g%s</text>\n",
                   LEFT, y, LEFT + PLOT, y, LEFT - 6, y + 4, most * quarter / 4, unit);
    }
}

static double picture_value(const struct simulation_sample *sample, int which, double chips,
                            double per_machine)
{
    switch (which) {
    case 0:
        return 100 * sample->busy_chips / chips;
    case 1:
        return 100 * sample->down_machines * per_machine / chips;
    default:
        return 100 * sample->queued_chips / chips;
    }
}

static void picture_series(struct buf *out, const struct sim_scenario *scenario,
                           const struct simulation_outcome *outcome, int which, const char *color)
{
    double chips = (double)scenario->machines * scenario->chips;
    buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", color);
    for (uint32_t i = 0; i < outcome->sample_count; i++) {
        const struct simulation_sample *sample = &outcome->samples[i];
        double value = picture_value(sample, which, chips, scenario->chips);
        value = value < 100 ? value : 100;
        buf_printf(out, "%.1f,%.1f ", LEFT + PLOT * sample->at_s / outcome->duration_s,
                   TOP + PANEL * (1 - value / 100));
    }
    buf_printf(out, "\"/>\n");
}

static void picture_time(struct buf *out, const struct sim_scenario *scenario,
                         const struct simulation_outcome *outcome)
{
    static const char *const names[] = {"at work", "on machines that are out", "waited for"};
    static const char *const colors[] = {"#2b5fa8", "#c0392b", "#999999"};
    double days = outcome->duration_s / 86400;
    picture_frame(out, TOP, "Chips over time", 100, " %");
    for (int which = 2; which >= 0; which--)
        picture_series(out, scenario, outcome, which, colors[which]);
    for (int i = 0; i < 3; i++)
        buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"%s\">%s</text>\n",
                   LEFT + PLOT - 4 - 150 * i, TOP - 10, colors[i], names[i]);
    for (int i = 0; i <= 6; i++)
        buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%.3g d</text>\n", LEFT + PLOT * i / 6,
                   TOP + PANEL + 16, days * i / 6);
}

static void picture_sizes(struct buf *out, const struct simulation_outcome *outcome)
{
    int top = TOP + PANEL + GAP, bars = 0, at = 0;
    picture_frame(out, top, "ETTR by the size of jobs (from their first start; grey: with the queue)", 1, "");
    for (int b = 0; b < SIMULATION_BUCKETS; b++)
        bars += outcome->buckets[b].jobs > 0;
    for (int b = 0; b < SIMULATION_BUCKETS; b++) {
        const struct simulation_bucket *bucket = &outcome->buckets[b];
        double ettr = simulation_ettr(bucket);
        if (bucket->jobs == 0)
            continue;
        double step = (double)PLOT / bars, x = LEFT + step * at++;
        double whole = bucket->chip_lived_s > 0 ? bucket->chip_productive_s / bucket->chip_lived_s : 0;
        if (isfinite(ettr))
            buf_printf(out,
                       "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#2b5fa8\"/>\n"
                       "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#bbbbbb\"/>\n",
                       x + step * 0.1, top + PANEL * (1 - ettr), step * 0.5, PANEL * ettr, x + step * 0.6,
                       top + PANEL * (1 - whole), step * 0.3, PANEL * whole);
        buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%u</text>\n", x + step / 2,
                   top + PANEL + 16, UINT32_C(1) << b);
    }
    buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">chips of a job, at most</text>\n",
               LEFT + PLOT / 2, top + PANEL + 36);
}

void sim_picture(struct buf *out, const struct sim_scenario *scenario,
                 const struct simulation_outcome *outcome)
{
    int height = TOP + 2 * PANEL + GAP + 52;
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
               "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" "
               "fill=\"white\"/>\n",
               WIDTH, height, WIDTH, height);
    picture_time(out, scenario, outcome);
    picture_sizes(out, outcome);
    buf_printf(out, "</svg>\n");
}
