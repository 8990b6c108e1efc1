/* Expands targets.def. */
#include "machine/target.h"
#include "machine/card.h"

#include <string.h>

const DeviceTraits device_traits[DEVICE_COUNT] = {
#define DEVICE(sym, artifact, runtime, llvm_triple, llvm_layout, n_chains, own_blocks, \
               own_launches, copies, own_cores, narrow)                                \
    [DEVICE_##sym] = {.triple = llvm_triple,                                           \
                      .layout = llvm_layout,                                           \
                      .row_chains = n_chains,                                          \
                      .blocks = own_blocks,                                            \
                      .launches = own_launches,                                        \
                      .tile_copies = copies,                                           \
                      .cores = own_cores,                                              \
                      .narrow_floats = narrow},
#include "machine/devices.def"
};

static const Target targets[TARGET_COUNT] = {
#define TARGET(sym, nm, dev, card, priced, least, mach, ptx, bytes, bf16, f64_mma, tf32, f8, \
               wgmma, cluster, overlap, once, more, dots, amx, d)                            \
    [TARGET_##sym] = {.name = nm,                                                            \
                      .n_processors = CARD_PROCESSORS_##card,                                \
                      .device = DEVICE_##dev,                                                \
                      .has = &device_traits[DEVICE_##dev],                                   \
                      .machine = mach,                                                       \
                      .ptx_version = ptx,                                                    \
                      .vector_bytes = bytes,                                                 \
                      .has_bf16 = bf16,                                                      \
                      .has_large_f64_mma = f64_mma,                                          \
                      .has_tf32_rounding = tf32,                                             \
                      .f8_ptx_version = f8,                                                  \
                      .has_wgmma = wgmma,                                                    \
                      .max_cluster = cluster,                                                \
                      .block_shared_bytes = CARD_SHARED_##least,                             \
                      .has_pdl = overlap,                                                    \
                      .has_load_hints = once,                                                \
                      .features = more,                                                      \
                      .has_int_dots = dots,                                                  \
                      .has_amx = amx,                                                        \
                      .doc = d},
#include "machine/targets.def"
};

const Target *target_get(TargetId id) {
    return &targets[id];
}

static const struct {
    TargetId target, level;
} levels[] = {
#define LEVEL(target, level) {TARGET_##target, TARGET_##level},
#include "machine/levels.def"
};
enum { N_LEVELS = sizeof levels / sizeof *levels };

uint32_t target_n_levels(const Target *target) {
    uint32_t n = 0;
    for (uint32_t row = 0; row < N_LEVELS; row++) n += target == &targets[levels[row].target];
    return n ? n : 1;
}

const Target *target_level(const Target *target, uint32_t i) {
    for (uint32_t row = 0; row < N_LEVELS; row++)
        if (target == &targets[levels[row].target] && i-- == 0) return &targets[levels[row].level];
    return target;
}

const Target *target_by_name(const char *name) {
    for (int id = 0; id < TARGET_COUNT; id++)
        if (strcmp(targets[id].name, name) == 0) return &targets[id];
    return NULL;
}
