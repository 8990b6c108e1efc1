/* Expands targets.def. */
#include "machine/target.h"

#include <string.h>

static const Target targets[TARGET_COUNT] = {
#define TARGET(sym, nm, dev, mach, ptx, bytes, bf16, f64_mma, tf32, wgmma, cluster, overlap, once, \
               d)                                                                                  \
    [TARGET_##sym] = {.name = nm,                                                                  \
                      .device = DEVICE_##dev,                                                      \
                      .machine = mach,                                                             \
                      .ptx_version = ptx,                                                          \
                      .vector_bytes = bytes,                                                       \
                      .has_bf16 = bf16,                                                            \
                      .has_large_f64_mma = f64_mma,                                                \
                      .has_tf32_rounding = tf32,                                                   \
                      .has_wgmma = wgmma,                                                          \
                      .max_cluster = cluster,                                                      \
                      .has_pdl = overlap,                                                          \
                      .has_load_hints = once,                                                      \
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
