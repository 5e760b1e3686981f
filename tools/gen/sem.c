/*
 * SEM-like images: a periodic pattern with bright edges, a defect, and shot noise; see gen.h. The
 * pattern is drawn row by row from one period, the noise costs about a nanosecond a pixel:
 * generating keeps up with a disk.
 */
#include "tools/gen/gen.h"

#include <math.h>
#include <string.h>

enum defect { NONE, BRIDGE, BREAK, PARTICLE, PIT, SCRATCH };
enum { PERIOD_MAX = 64 };

const struct wt_gen_class wt_gen_sem_classes[WT_GEN_SEM_CLASSES] = {
    {"none", 0.70},     {"bridge", 0.08}, {"break", 0.08},
    {"particle", 0.08}, {"pit", 0.04},    {"scratch", 0.02},
};

struct image {
    uint32_t height, width;
    uint8_t *data;
};

struct texture {
    uint32_t period, line; /* pixels; line: width of the bright part, or diameter of a hole */
    uint8_t dark, bright, edge;
    uint32_t phase_x, phase_y;
    bool holes, upright;
};

static struct texture draw_texture(const struct image *im, struct wt_rng *rng) {
    uint32_t small = im->height < im->width ? im->height : im->width;
    uint32_t most = small / 4 < 8 ? 8 : small / 4 > PERIOD_MAX ? PERIOD_MAX : small / 4;
    struct texture t = {.period = 8 + wt_rng_below(rng, most - 8 + 1)};
    t.line = (uint32_t)(t.period * wt_rng_between(rng, 0.4, 0.6));
    t.dark = (uint8_t)(50 + wt_rng_below(rng, 40));
    t.bright = (uint8_t)(120 + wt_rng_below(rng, 50));
    t.edge = (uint8_t)(30 + wt_rng_below(rng, 40));
    t.phase_x = wt_rng_below(rng, t.period);
    t.phase_y = wt_rng_below(rng, t.period);
    t.holes = wt_rng_below(rng, 3) == 0;
    t.upright = wt_rng_below(rng, 4) != 0;
    return t;
}

/* inside: how far from the edge, positive on the bright side. */
static uint8_t shade(const struct texture *t, double inside) {
    double level = inside > 0 ? t->bright : t->dark;
    double near = 1 - fabs(inside) / 2;
    return (uint8_t)(level + (near > 0 ? near * t->edge : 0));
}

/* Edge roughness: how far each row is shifted. A slow walk that stays within two pixels. */
static uint32_t next_shift(uint32_t shift, struct wt_rng *rng) {
    uint32_t r = wt_rng_below(rng, 8);
    return r == 0 && shift > 0 ? shift - 1 : r == 1 && shift < 4 ? shift + 1 : shift;
}

/* Repeats [0, period) of out up to width. */
static void repeat(uint8_t *out, uint32_t period, uint32_t width) {
    for (uint32_t have = period; have < width; have *= 2)
        memcpy(out + have, out, have < width - have ? have : width - have);
}

static void draw_lines(const struct image *im, const struct texture *t, struct wt_rng *rng) {
    uint8_t profile[2 * PERIOD_MAX];
    for (uint32_t x = 0; x < t->period; x++)
        profile[x] = profile[x + t->period] =
            shade(t, t->line / 2.0 - fabs(x + 0.5 - t->period / 2.0));
    uint32_t shift = 2;
    for (uint32_t y = 0; y < im->height; y++) {
        uint8_t *row = im->data + (uint64_t)y * im->width;
        if (!t->upright) {
            memset(row, profile[(y + t->phase_y) % t->period], im->width);
            continue;
        }
        shift = next_shift(shift, rng);
        uint32_t n = t->period < im->width ? t->period : im->width;
        memcpy(row, profile + (t->phase_x + shift) % t->period, n);
        repeat(row, n, im->width);
    }
}

static void draw_holes(const struct image *im, const struct texture *t) {
    for (uint32_t y = 0; y < im->height; y++) {
        uint8_t *row = im->data + (uint64_t)y * im->width;
        double dy = (y + t->phase_y) % t->period + 0.5 - t->period / 2.0;
        uint32_t n = t->period < im->width ? t->period : im->width;
        for (uint32_t x = 0; x < n; x++) {
            double dx = (x + t->phase_x) % t->period + 0.5 - t->period / 2.0;
            row[x] = shade(t, sqrt(dx * dx + dy * dy) - t->line / 2.0);
        }
        repeat(row, n, im->width);
    }
}

static void fill(const struct image *im, int64_t y0, int64_t x0, int64_t h, int64_t w,
                 uint8_t level) {
    for (int64_t y = y0 < 0 ? 0 : y0; y < y0 + h && y < im->height; y++)
        for (int64_t x = x0 < 0 ? 0 : x0; x < x0 + w && x < im->width; x++)
            im->data[y * im->width + x] = level;
}

static void disc(const struct image *im, double cy, double cx, double radius, uint8_t inner,
                 uint8_t rim) {
    for (int64_t y = (int64_t)(cy - radius); y <= (int64_t)(cy + radius) + 1; y++)
        for (int64_t x = (int64_t)(cx - radius); x <= (int64_t)(cx + radius) + 1; x++) {
            double r =
                sqrt(((double)y - cy) * ((double)y - cy) + ((double)x - cx) * ((double)x - cx));
            if (r <= radius && y >= 0 && x >= 0 && y < im->height && x < im->width)
                im->data[y * im->width + x] = r > radius - 1.5 ? rim : inner;
        }
}

/* Lines: a bridge fills the dark space between two of them, a break parts one. */
static void patch_lines(const struct image *im, const struct texture *t, double cy, double cx,
                        bool bridge) {
    int64_t period = t->period, space = period - t->line;
    int64_t width = (bridge ? space : t->line) + 4;
    int64_t from =
        bridge ? -space / 2 - 2
               : space / 2 - 2; /* from the start of the period; the line is in its middle */
    uint8_t level = bridge ? t->bright : t->dark;
    if (t->upright)
        fill(im, (int64_t)cy, (int64_t)cx - ((int64_t)cx + t->phase_x) % period + from, period / 2,
             width, level);
    else
        fill(im, (int64_t)cy - ((int64_t)cy + t->phase_y) % period + from, (int64_t)cx, width,
             period / 2, level);
}

/* Holes: a bridge is a dark channel between two of them, a break a hole that is not there. */
static void patch_holes(const struct image *im, const struct texture *t, double cy, double cx,
                        bool bridge) {
    int64_t period = t->period, channel = period / 4;
    int64_t row = (int64_t)cy - ((int64_t)cy + t->phase_y) % period,
            col = (int64_t)cx - ((int64_t)cx + t->phase_x) % period;
    if (bridge)
        fill(im, row + (period - channel) / 2, col + period / 2, channel, period, t->dark);
    else
        fill(im, row, col, period, period, t->bright);
}

static void scratch(const struct image *im, double y, double x, struct wt_rng *rng) {
    double angle = wt_rng_between(rng, -M_PI, M_PI), bend = wt_rng_between(rng, -0.01, 0.01);
    double length =
        wt_rng_between(rng, 0.3, 0.8) * (im->height < im->width ? im->height : im->width);
    for (double done = 0; done < length; done++) {
        fill(im, (int64_t)y, (int64_t)x, 2, 2, 25);
        y += sin(angle);
        x += cos(angle);
        angle += bend;
    }
}

static void draw_defect(const struct image *im, const struct texture *t, enum defect defect,
                        struct wt_rng *rng) {
    double cy = wt_rng_between(rng, 0.2, 0.8) * im->height,
           cx = wt_rng_between(rng, 0.2, 0.8) * im->width;
    double radius = t->period * wt_rng_between(rng, 0.3, 0.9);
    switch (defect) {
    case BRIDGE:
    case BREAK:
        (t->holes ? patch_holes : patch_lines)(im, t, cy, cx, defect == BRIDGE);
        break;
    case PARTICLE:
        disc(im, cy + 2, cx + 2, radius, 30, 30); /* its shadow */
        disc(im, cy, cx, radius, 200, 240);
        break;
    case PIT:
        disc(im, cy, cx, radius, 20, 110);
        break;
    case SCRATCH:
        scratch(im, cy, cx, rng);
        break;
    case NONE:
        break;
    }
}

void wt_gen_sem(uint32_t cls, uint32_t height, uint32_t width, struct wt_rng *rng, uint8_t *out) {
    struct image im = {height, width, out};
    struct texture t = draw_texture(&im, rng);
    if (t.holes)
        draw_holes(&im, &t);
    else
        draw_lines(&im, &t, rng);
    draw_defect(&im, &t, (enum defect)cls, rng);
}

/* Sixteen random bits as the sum of two bytes around 0 (a triangle, standard deviation 104), times
 * a straight line in place of the square root of the level, which it follows within a fifth over
 * the levels that are used; in 256ths of a level. */
static inline int32_t shot(uint32_t bits, int32_t level) {
    int32_t triangle = (int32_t)(bits & 255) + (int32_t)(bits >> 8 & 255) - 255;
    return triangle * (6 + level / 8);
}

static inline int32_t clamp(int32_t v, int32_t max) {
    return v < 0 ? 0 : v > max ? max : v;
}

void wt_gen_noise_u8(uint64_t key, const uint8_t *levels, uint8_t *out, uint64_t n) {
    for (uint64_t i = 0; i < n; i += 4) {
        uint64_t bits = wt_rng_mix(key + i * WT_RNG_STEP);
        uint64_t end = n - i < 4 ? n - i : 4;
        for (uint64_t k = 0; k < end; k++) {
            int32_t level = levels[i + k];
            out[i + k] = (uint8_t)clamp(
                (level * 256 + shot((uint32_t)(bits >> (16 * k)), level)) / 256, 255);
        }
    }
}

void wt_gen_noise_u16(uint64_t key, const uint8_t *levels, uint16_t *out, uint64_t n) {
    for (uint64_t i = 0; i < n; i += 4) {
        uint64_t bits = wt_rng_mix(key + i * WT_RNG_STEP);
        uint64_t end = n - i < 4 ? n - i : 4;
        for (uint64_t k = 0; k < end; k++) {
            int32_t level = levels[i + k];
            out[i + k] =
                (uint16_t)clamp(level * 256 + shot((uint32_t)(bits >> (16 * k)), level), 65535);
        }
    }
}
