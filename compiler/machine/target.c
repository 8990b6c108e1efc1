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
#define TARGET(sym, nm, dev, card, priced, least, mach, ptx, bytes, bf16, f64_mma, tf32, wgmma, \
               cluster, overlap, once, d)                                                       \
    [TARGET_##sym] = {.name = nm,                                                               \
                      .n_processors = CARD_PROCESSORS_##card,                                   \
                      .device = DEVICE_##dev,                                                   \
                      .has = &device_traits[DEVICE_##dev],                                      \
                      .machine = mach,                                                          \
                      .ptx_version = ptx,                                                       \
                      .vector_bytes = bytes,                                                    \
                      .has_bf16 = bf16,                                                         \
                      .has_large_f64_mma = f64_mma,                                             \
                      .has_tf32_rounding = tf32,                                                \
                      .has_wgmma = wgmma,                                                       \
                      .max_cluster = cluster,                                                   \
                      .block_shared_bytes = CARD_SHARED_##least,                                \
                      .has_pdl = overlap,                                                       \
                      .has_load_hints = once,                                                   \
                      .doc = d},
#include "machine/targets.def"
};

const Target *target_get(TargetId id) {
    return &targets[id];
}

const Target *target_by_name(const char *name) {
    for (int id = 0; id < TARGET_COUNT; id++)
        if (strcmp(targets[id].name, name) == 0) return &targets[id];
    return NULL;
}
