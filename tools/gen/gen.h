/*
 * Synthetic wafers as a source of samples, so that demo and tests need no download.
 *
 * map: a grid of dies with 0 (off the wafer), 1 (good), 2 (bad), in the nine defect patterns of
 * wafer map collections with a natural imbalance. sem: lines and spaces or contact holes as a
 * scanning electron microscope shows them, with shot noise and a defect or none. Sample i is a pure
 * function of (seed, i, options): the same on any number of threads.
 */
#ifndef WT_TOOLS_GEN_GEN_H
#define WT_TOOLS_GEN_GEN_H

#include "tools/gen/rng.h"
#include "tools/source.h"

enum wt_gen_kind { WT_GEN_MAP, WT_GEN_SEM };

struct wt_gen_opts {
    enum wt_gen_kind kind;
    uint32_t height, width;
    enum wt_dtype dtype; /* U8 or U16 */
    uint64_t seed, samples;
    uint32_t lots, wafers; /* wafers of a lot */
    bool unlabelled;       /* labels are left out */
};

struct wt_gen;
int wt_gen_open(const struct wt_gen_opts *opts, struct wt_gen **out, struct wt_err *err);
struct wt_source *wt_gen_source(struct wt_gen *g);
void wt_gen_close(struct wt_gen *g);

/* ---- the pictures ---- */

struct wt_gen_class {
    const char *name;
    double share; /* of the samples; they add up to 1 */
};
extern const struct wt_gen_class wt_gen_map_classes[];
extern const struct wt_gen_class wt_gen_sem_classes[];
enum { WT_GEN_MAP_CLASSES = 9, WT_GEN_SEM_CLASSES = 6 };

/* One byte a die. */
void wt_gen_map(uint32_t cls, uint32_t height, uint32_t width, struct wt_rng *rng, uint8_t *out);
/* Gray levels without noise, one byte a pixel. */
void wt_gen_sem(uint32_t cls, uint32_t height, uint32_t width, struct wt_rng *rng, uint8_t *out);
/* Shot noise over n levels; key: of its own stream. levels and out may be the same for u8. */
void wt_gen_noise_u8(uint64_t key, const uint8_t *levels, uint8_t *out, uint64_t n);
void wt_gen_noise_u16(uint64_t key, const uint8_t *levels, uint16_t *out, uint64_t n);

#endif
