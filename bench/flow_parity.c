/* How long a computation has to be until one controller keeps up with processes that loop by themselves:
 * single calls of the flow runtime, each of some work, a scalar all-reduce and an addition on the result of
 * the one before, on 2 to 16 worker processes, beside the same loop without a controller (flow_loops.h). Both
 * sides run in turns; figures are medians. Parity is a share of 0.95 of the loops' rate. The smallest
 * computation at parity is the first from which on no longer one has less; its length is that in the loops.
 * `bench_flow_parity FILE.svg` also draws the shares. */
#include <math.h>

#include "flow_chain.h"
#include "flow_loops.h"

enum { TURNS = 5, SIZES = 9, HOST_COUNTS = 4, PROBES = 64, CALLS_LEAST = 32, CALLS_MAX = 4000 };
#define TURN_US 200000.0
#define PARITY  0.95

static const int elements_of[SIZES] = {0, 512, 2048, 4096, 8192, 16384, 32768, 65536, 131072};

/* A length of computation: its times by both sides, and the runtime's share of the loops' rate. */
struct parity_point {
    double runtime_us, loops_us, share;
};

static struct parity_point parity_measure(struct runtime *runtime, unsigned hosts, int elements)
{
    static char text[TEXT_MAX];
    double rates[TURNS], loops[TURNS], shares[TURNS];
    bench_text(text, hosts, 1, elements);
    phx_flow_program *program = runtime_chain(runtime, text, 1);
    runtime_rate(runtime, program, 1, 1);
    double calls = loops_rate(text, hosts, 1, PROBES, 1) * TURN_US / 1e6;
    int count = calls < CALLS_LEAST ? CALLS_LEAST : calls > CALLS_MAX ? CALLS_MAX : (int)calls;
    for (int turn = 0; turn < TURNS; turn++) {
        rates[turn] = runtime_rate(runtime, program, count, 1);
        loops[turn] = loops_rate(text, hosts, 1, count, 1);
        shares[turn] = rates[turn] / loops[turn];
    }
    phx_flow_program_free(program);
    return (struct parity_point){1e6 / median(rates, TURNS), 1e6 / median(loops, TURNS),
                                 median(shares, TURNS)};
}

/* The first point from which on all have parity; SIZES: the longest has none. */
static int parity_first(const struct parity_point points[SIZES])
{
    int first = SIZES;
    while (first > 0 && points[first - 1].share >= PARITY)
        first--;
    return first;
}

static void parity_rows(struct parity_point points[SIZES], unsigned hosts)
{
    struct runtime runtime;
    runtime_start(&runtime, hosts, 1);
    for (int i = 0; i < SIZES; i++) {
        points[i] = parity_measure(&runtime, hosts, elements_of[i]);
        printf(
            "{\"bench\":\"flow_parity\",\"case\":\"a computation over %d elements, %u hosts\",\"value\":%.4g,"
            "\"unit\":\"us\",\"peer\":\"processes that loop\",\"peer_value\":%.4g,\"ratio_peer\":%.3f}\n",
            elements_of[i], hosts, points[i].runtime_us, points[i].loops_us, points[i].share);
        fflush(stdout);
    }
    runtime_stop(&runtime);
    int first = parity_first(points);
    printf("{\"bench\":\"flow_parity\",\"case\":\"%s, %u hosts\",\"value\":%.4g,\"unit\":\"us\"}\n",
           first < SIZES ? "smallest computation at parity" : "no parity up to", hosts,
           points[first < SIZES ? first : SIZES - 1].loops_us);
    fflush(stdout);
}

/* ---- the picture ---- */

enum { LEFT = 50, TOP = 12, WIDTH = 640, HEIGHT = 280, DECADES = 5 };
#define SHARE_MAX 1.4

/* A fifth of the width is a decade; the first begins at 0.1 us. */
static double picture_x(double us)
{
    double decades = log10(us) + 1;
    return LEFT + WIDTH * (decades < 0 ? 0 : decades > DECADES ? DECADES : decades) / DECADES;
}

static double picture_y(double share)
{
    return TOP + HEIGHT * (1 - (share > SHARE_MAX ? SHARE_MAX : share) / SHARE_MAX);
}

static void picture_axes(FILE *out)
{
    static const char *const lengths[] = {"0.1 us", "1 us", "10 us", "0.1 ms", "1 ms", "10 ms"};
    for (int d = 0; d <= DECADES; d++)
        fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", LEFT + WIDTH * d / DECADES,
                TOP + HEIGHT + 18, lengths[d]);
    for (int tenth = 0; tenth <= 12; tenth += 2)
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.1f</text>\n", LEFT - 6,
                picture_y(tenth / 10.0) + 4, tenth / 10.0);
    fprintf(out, "<path d=\"M%d %d V%d H%d\" fill=\"none\" stroke=\"#888\"/>\n", LEFT, TOP, TOP + HEIGHT,
            LEFT + WIDTH);
    fprintf(out, "<path d=\"M%d %.1f H%d\" stroke=\"#888\" stroke-dasharray=\"4\"/>\n", LEFT,
            picture_y(PARITY), LEFT + WIDTH);
}

/* A line for each number of hosts: the share by the length of a computation. */
static bool picture_write(const char *path, struct parity_point points[HOST_COUNTS][SIZES])
{
    static const char *const colours[HOST_COUNTS] = {"#4269d0", "#efb118", "#3ca951", "#ff725c"};
    FILE *out = fopen(path, "we");
    if (!out)
        return false;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n",
            LEFT + WIDTH + 30, TOP + HEIGHT + 30);
    picture_axes(out);
    for (int h = 0; h < HOST_COUNTS; h++) {
        fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colours[h]);
        for (int i = 0; i < SIZES; i++)
            fprintf(out, "%.1f,%.1f ", picture_x(points[h][i].loops_us), picture_y(points[h][i].share));
        fprintf(out, "\"/>\n<text x=\"%d\" y=\"%d\" fill=\"%s\">%d hosts</text>\n", LEFT + WIDTH - 60,
                TOP + HEIGHT - 70 + 16 * h, colours[h], 2 << h);
    }
    fprintf(out, "</svg>\n");
    return fclose(out) == 0;
}

int main(int argc, char **argv)
{
    static struct parity_point points[HOST_COUNTS][SIZES];
    for (int h = 0; h < HOST_COUNTS; h++)
        parity_rows(points[h], 2u << h);
    if (argc > 1 && !picture_write(argv[1], points)) {
        fprintf(stderr, "bench: %s cannot be written\n", argv[1]);
        return 1;
    }
    return 0;
}
