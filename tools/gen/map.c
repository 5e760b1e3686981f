/* Wafer maps: a disc of dies, each bad with a probability that depends on where it is and on the
 * pattern; see gen.h. */
#include "tools/gen/gen.h"

#include <math.h>
#include <string.h>

enum { OFF = 0, GOOD = 1, BAD = 2 };
enum pattern { NONE, CENTER, DONUT, EDGE_LOC, EDGE_RING, LOC, RANDOM, SCRATCH, NEAR_FULL };

const struct wt_gen_class wt_gen_map_classes[WT_GEN_MAP_CLASSES] = {
    {"none", 0.70},     {"center", 0.055},    {"donut", 0.015},
    {"edge-loc", 0.06}, {"edge-ring", 0.075}, {"loc", 0.05},
    {"random", 0.02},   {"scratch", 0.02},    {"near-full", 0.005},
};

struct form { /* of the pattern on this wafer; the wafer's radius is 1 */
    enum pattern pattern;
    double base;         /* bad dies outside of the pattern */
    double strength;     /* and inside */
    double x, y, radius; /* centre and size */
    double width, angle;
};

static struct form draw_form(enum pattern pattern, struct wt_rng *rng) {
    struct form f = {.pattern = pattern};
    f.base = wt_rng_between(rng, 0.01, 0.08);
    f.strength = wt_rng_between(rng, 0.65, 0.95);
    f.angle = wt_rng_between(rng, -M_PI, M_PI);
    double off = wt_rng_between(rng, 0.25, 0.6);
    bool at_side = pattern == LOC;
    f.x = at_side ? off * cos(f.angle) : wt_rng_between(rng, -0.08, 0.08);
    f.y = at_side ? off * sin(f.angle) : wt_rng_between(rng, -0.08, 0.08);
    f.radius = pattern == DONUT ? wt_rng_between(rng, 0.35, 0.6) : wt_rng_between(rng, 0.15, 0.38);
    f.width = pattern == EDGE_LOC ? wt_rng_between(rng, 0.3, 0.9) : wt_rng_between(rng, 0.08, 0.2);
    return f;
}

static double probability(const struct form *f, double x, double y) {
    double r = sqrt(x * x + y * y), from = sqrt((x - f->x) * (x - f->x) + (y - f->y) * (y - f->y));
    bool in = false;
    switch (f->pattern) {
    case CENTER:
    case LOC:
        in = from < f->radius;
        break;
    case DONUT:
        in = fabs(from - f->radius) < f->width;
        break;
    case EDGE_RING:
        in = r > 1 - f->width;
        break;
    case EDGE_LOC:
        in = r > 0.78 && fabs(remainder(atan2(y, x) - f->angle, 2 * M_PI)) < f->width;
        break;
    case RANDOM:
        return f->base + 0.35 * f->strength;
    case NEAR_FULL:
        return 0.9;
    default:
        break;
    }
    return in ? f->strength : f->base;
}

/* A bent line of bad dies. */
static void scratch(const struct form *f, uint32_t height, uint32_t width, struct wt_rng *rng,
                    uint8_t *out) {
    double x = wt_rng_between(rng, -0.5, 0.5), y = wt_rng_between(rng, -0.5, 0.5);
    double angle = f->angle, bend = wt_rng_between(rng, -1, 1),
           length = wt_rng_between(rng, 0.5, 1.3);
    double step = 0.7 / (height > width ? height : width);
    for (double done = 0; done < length; done += step) {
        x += step * cos(angle);
        y += step * sin(angle);
        angle += bend * step;
        double col = (x + 1) / 2 * width, row = (y + 1) / 2 * height;
        if (col < 0 || row < 0 || col >= width || row >= height)
            return;
        uint8_t *die = &out[(uint64_t)row * width + (uint64_t)col];
        if (*die != OFF && wt_rng_unit(rng) < 0.95)
            *die = BAD;
    }
}

void wt_gen_map(uint32_t cls, uint32_t height, uint32_t width, struct wt_rng *rng, uint8_t *out) {
    struct form f = draw_form((enum pattern)cls, rng);
    for (uint32_t row = 0; row < height; row++) {
        double y = (row + 0.5) / height * 2 - 1;
        for (uint32_t col = 0; col < width; col++) {
            double x = (col + 0.5) / width * 2 - 1;
            uint8_t *die = &out[(uint64_t)row * width + col];
            if (x * x + y * y > 1)
                *die = OFF;
            else
                *die = wt_rng_unit(rng) < probability(&f, x, y) ? BAD : GOOD;
        }
    }
    if (f.pattern == SCRATCH)
        scratch(&f, height, width, rng, out);
}
