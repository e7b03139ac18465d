#include "sim/capacity/draw.h"

#include <math.h>

#include "base/check.h"

/* Returns a number in (0, 1), so that its logarithm is finite. */
static double draw_open_unit(struct rng *rng)
{
    return (double)(rng_next(rng) >> 12) * 0x1.0p-52 + 0x1.0p-53;
}

/* Returns a standard normal number (Box and Muller, 1958). The second of the pair is dropped. */
static double draw_normal(struct rng *rng)
{
    double radius = sqrt(-2 * log(draw_open_unit(rng)));
    return radius * cos(2 * 3.14159265358979323846 * draw_open_unit(rng));
}

double draw_seconds(const struct draw *draw, struct rng *rng)
{
    double seconds = 0;
    switch (draw->kind) {
    case DRAW_CONSTANT:
        seconds = draw->a;
        break;
    case DRAW_UNIFORM:
        seconds = draw->a + (draw->b - draw->a) * draw_open_unit(rng);
        break;
    case DRAW_EXPONENTIAL:
        seconds = -draw->a * log(draw_open_unit(rng));
        break;
    case DRAW_WEIBULL:
        seconds = draw->a * pow(-log(draw_open_unit(rng)), 1 / draw->b);
        break;
    case DRAW_LOGNORMAL:
        seconds = draw->a * exp(draw->b * draw_normal(rng));
        break;
    }
    if (!(seconds > 0))
        return 0;
    return seconds < DRAW_SECONDS_MAX ? seconds : DRAW_SECONDS_MAX;
}

int64_t draw_ns(const struct draw *draw, struct rng *rng)
{
    return (int64_t)(draw_seconds(draw, rng) * 1e9);
}

double draw_mean(const struct draw *draw)
{
    switch (draw->kind) {
    case DRAW_CONSTANT:
    case DRAW_EXPONENTIAL:
        return draw->a;
    case DRAW_UNIFORM:
        return (draw->a + draw->b) / 2;
    case DRAW_WEIBULL:
        return draw->a * tgamma(1 + 1 / draw->b);
    case DRAW_LOGNORMAL:
        return draw->a * exp(draw->b * draw->b / 2);
    }
    CHECK_UNREACHABLE();
}
