#include "cmd/fabric_availability.h"

#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "doc/json.h"
#include "cmd/client.h"
#include "cmd/picture.h"

struct study {
    const struct availability_order *order;
    uint32_t slices[AVAILABILITY_SLICES_MAX]; /* cubes */
    uint32_t count;
    double sigma_max; /* largest deviation of the Monte Carlo results, in standard deviations */
};

/* Chooses slice sizes: powers of two, the values halfway between them, and the whole pod. */
static void choose_slices(struct study *study)
{
    uint32_t cubes = study->order->cubes;
    for (uint32_t size = 1; size <= cubes; size *= 2) {
        study->slices[study->count++] = size;
        if (size >= 8 && size + size / 2 < cubes)
            study->slices[study->count++] = size + size / 2;
    }
    if (study->slices[study->count - 1] != cubes)
        study->slices[study->count++] = cubes;
    CHECK(study->count <= AVAILABILITY_SLICES_MAX);
}

static double sigmas(double mean, double exact, double deviation, uint32_t trials)
{
    double off = fabs(mean - exact);
    return off < 1e-12 ? 0 : off / (deviation / sqrt(trials) + 1e-12);
}

static void compare(struct study *study, const struct availability *means, double host_up)
{
    for (uint32_t i = 0; i < study->count; i++) {
        struct availability exact = availability_exact(study->order->cubes, study->slices[i], host_up),
                            one = availability_deviation(study->order->cubes, study->slices[i], host_up);
        double off[] = {
            sigmas(means[i].slice, exact.slice, one.slice, study->order->trials),
            sigmas(means[i].slice_static, exact.slice_static, one.slice_static, study->order->trials),
            sigmas(means[i].goodput, exact.goodput, one.goodput, study->order->trials),
            sigmas(means[i].goodput_static, exact.goodput_static, one.goodput_static, study->order->trials)};
        for (int k = 0; k < 4; k++)
            study->sigma_max = off[k] > study->sigma_max ? off[k] : study->sigma_max;
    }
}

static void draw_pods(struct study *study, uint32_t host, struct availability *means)
{
    const struct availability_order *order = study->order;
    if (order->trials == 0)
        return;
    availability_draw(order->cubes, study->slices, study->count, order->hosts[host], order->trials,
                      order->seed + host, means);
    compare(study, means, order->hosts[host]);
}

/* --- text and JSON ---------------------------------------------------------------------------------- */

static void put_host_text(struct buf *out, struct study *study, uint32_t host)
{
    const struct availability_order *order = study->order;
    struct availability means[AVAILABILITY_SLICES_MAX];
    double up = order->hosts[host];
    draw_pods(study, host, means);
    buf_printf(out, "\nhosts up %.5g: a cube is whole with %.4f, and %u of %u cubes are with %.4g\n", up,
               pow(up, CUBE_MACHINES), availability_whole_cubes(order->cubes, up, order->confidence),
               order->cubes, order->confidence);
    buf_printf(out, "%6s %6s   %-31s %s\n", "", "", "a slice finds its cubes", "goodput of the pod");
    buf_printf(out, "%6s %6s   %-15s %-15s %-15s %s\n", "cubes", "chips", "switched", "static", "switched",
               "static");
    for (uint32_t i = 0; i < study->count; i++) {
        struct availability exact = availability_exact(order->cubes, study->slices[i], up);
        double values[] = {exact.slice, exact.slice_static, exact.goodput, exact.goodput_static};
        double drawn[] = {means[i].slice, means[i].slice_static, means[i].goodput, means[i].goodput_static};
        buf_printf(out, "%6u %6u  ", study->slices[i], study->slices[i] * CUBE_CHIPS);
        for (int k = 0; k < 4 && order->trials; k++)
            buf_printf(out, " %.4f (%.4f)", values[k], drawn[k]);
        for (int k = 0; k < 4 && !order->trials; k++)
            buf_printf(out, " %.4f         ", values[k]);
        while (out->data[out->len - 1] == ' ')
            out->data[--out->len] = 0;
        buf_add_char(out, '\n');
    }
}

static void put_text(struct buf *out, struct study *study)
{
    const struct availability_order *order = study->order;
    buf_printf(out, "pod of %u cubes, %d hosts each", order->cubes, CUBE_MACHINES);
    if (order->trials)
        buf_printf(out, "; in brackets: means of %u simulated pods", order->trials);
    buf_printf(out, "\nall 48 switches are up with %.5f, all but one with %.5f (each with %.5g)\n",
               availability_switches(order->switch_up, 0), availability_switches(order->switch_up, 1),
               order->switch_up);
    for (uint32_t host = 0; host < order->host_count; host++)
        put_host_text(out, study, host);
    if (order->trials)
        buf_printf(
            out, "\nsimulation and closed forms differ by %.1f standard deviations at most, in %u figures\n",
            study->sigma_max, 4 * study->count * order->host_count);
}

static void put_figures(struct json_writer *writer, const char *key, const struct availability *of)
{
    json_key(writer, key);
    json_begin_object(writer);
    json_pair_float(writer, "slice", of->slice);
    json_pair_float(writer, "sliceStatic", of->slice_static);
    json_pair_float(writer, "goodput", of->goodput);
    json_pair_float(writer, "goodputStatic", of->goodput_static);
    json_end_object(writer);
}

static void put_host_json(struct json_writer *writer, struct study *study, uint32_t host)
{
    const struct availability_order *order = study->order;
    struct availability means[AVAILABILITY_SLICES_MAX];
    double up = order->hosts[host];
    draw_pods(study, host, means);
    json_begin_object(writer);
    json_pair_float(writer, "hostUp", up);
    json_pair_float(writer, "cubeWhole", pow(up, CUBE_MACHINES));
    json_pair_int(writer, "cubesWhole", availability_whole_cubes(order->cubes, up, order->confidence));
    json_key(writer, "slices");
    json_begin_array(writer);
    for (uint32_t i = 0; i < study->count; i++) {
        struct availability exact = availability_exact(order->cubes, study->slices[i], up);
        json_begin_object(writer);
        json_pair_int(writer, "cubes", study->slices[i]);
        json_pair_int(writer, "chips", study->slices[i] * CUBE_CHIPS);
        put_figures(writer, "exact", &exact);
        if (order->trials)
            put_figures(writer, "simulated", &means[i]);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}

static void put_json(struct buf *out, struct study *study)
{
    const struct availability_order *order = study->order;
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_pair_int(&writer, "cubes", order->cubes);
    json_pair_float(&writer, "confidence", order->confidence);
    json_pair_float(&writer, "switchUp", order->switch_up);
    json_pair_float(&writer, "allSwitchesUp", availability_switches(order->switch_up, 0));
    json_pair_float(&writer, "allButOneSwitchUp", availability_switches(order->switch_up, 1));
    json_pair_int(&writer, "trials", order->trials);
    json_key(&writer, "hosts");
    json_begin_array(&writer);
    for (uint32_t host = 0; host < order->host_count; host++)
        put_host_json(&writer, study, host);
    json_end_array(&writer);
    json_pair_float(&writer, "sigmaMax", study->sigma_max);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

/* --- plot -------------------------------------------------------------------------------------------- */

enum { PLOT_X = 520, PLOT_Y = 300, PLOT_LEFT = 56, PLOT_TOP = 40, PLOT_BOTTOM = 48, PLOT_RIGHT = 170 };
static const char *const plot_colors[AVAILABILITY_HOSTS_MAX] = {"#c0392b", "#e08e0b", "#2a7d4f", "#2b5fa8",
                                                                "#7d3c98", "#555555", "#118a8a", "#8a5a11"};

static void put_curve(struct buf *out, const struct study *study, uint32_t host, bool fixed)
{
    const struct availability_order *order = study->order;
    buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", plot_colors[host],
               fixed ? " stroke-dasharray=\"5 4\"" : "");
    for (uint32_t slice = 1; slice <= order->cubes; slice++) {
        struct availability exact = availability_exact(order->cubes, slice, order->hosts[host]);
        buf_printf(out, "%.1f,%.1f ", PLOT_LEFT + (double)PLOT_X * slice / order->cubes,
                   PLOT_TOP + PLOT_Y * (1 - (fixed ? exact.goodput_static : exact.goodput)));
    }
    buf_printf(out, "\"/>\n");
}

static void put_axes(struct buf *out, uint32_t cubes)
{
    for (int tenth = 0; tenth <= 10; tenth += 2) {
        int y = PLOT_TOP + PLOT_Y - PLOT_Y * tenth / 10;
        buf_printf(out,
                   "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#ddd\"/>\n<text x=\"%d\" y=\"%d\" "
                   "text-anchor=\"end\">%d %%</text>\n",
                   PLOT_LEFT, y, PLOT_LEFT + PLOT_X, y, PLOT_LEFT - 6, y + 4, 10 * tenth);
    }
    for (uint32_t slice = 0; slice <= cubes; slice += cubes > 80 ? 16 : cubes > 16 ? 8 : 1)
        buf_printf(out, "<text x=\"%u\" y=\"%d\" text-anchor=\"middle\">%u</text>\n",
                   PLOT_LEFT + PLOT_X * slice / cubes, PLOT_TOP + PLOT_Y + 16, slice);
    buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">cubes of a slice</text>\n",
               PLOT_LEFT + PLOT_X / 2, PLOT_TOP + PLOT_Y + 36);
}

static void put_plot(struct buf *out, const struct study *study)
{
    const struct availability_order *order = study->order;
    int width = PLOT_LEFT + PLOT_X + PLOT_RIGHT, height = PLOT_TOP + PLOT_Y + PLOT_BOTTOM;
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
               "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" "
               "fill=\"white\"/>\n<text x=\"%d\" y=\"22\" font-size=\"13\">Goodput of a pod of %u cubes by "
               "the size of its slices</text>\n",
               width, height, width, height, PLOT_LEFT, order->cubes);
    put_axes(out, order->cubes);
    for (uint32_t host = 0; host < order->host_count; host++) {
        uint32_t y = PLOT_TOP + 12 + 34 * host;
        put_curve(out, study, host, false);
        put_curve(out, study, host, true);
        buf_printf(out,
                   "<text x=\"%d\" y=\"%u\" fill=\"%s\">hosts up %.4g: switched</text>\n<text x=\"%d\" "
                   "y=\"%u\" fill=\"%s\">dashed: static</text>\n",
                   PLOT_LEFT + PLOT_X + 12, y, plot_colors[host], order->hosts[host], PLOT_LEFT + PLOT_X + 12,
                   y + 14, plot_colors[host]);
    }
    buf_printf(out, "</svg>\n");
}

int fabric_availability(struct availability_order *order)
{
    struct buf out BUF_CLEANUP = {0}, plot BUF_CLEANUP = {0};
    struct study study = {.order = order};
    if (order->whole > order->cubes) {
        say("--whole %u: the pod has %u cubes", order->whole, order->cubes);
        return EXIT_FAILED;
    }
    if (order->whole)
        order->hosts[order->host_count++] =
            availability_host_for(order->cubes, order->whole, order->confidence);
    for (int i = 0; order->host_count == 0 && i < 3; i++)
        order->hosts[i] = (double[]){.99, .995, .999}[i];
    order->host_count = order->host_count ? order->host_count : 3;
    choose_slices(&study);
    if (order->json)
        put_json(&out, &study);
    else
        put_text(&out, &study);
    output_write(&out);
    if (!order->plot)
        return EXIT_OK;
    put_plot(&plot, &study);
    return picture_write(order->plot, "--plot", &plot);
}
