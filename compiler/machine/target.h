/* Targets, expanded from targets.def: what passes may know of a machine (limits and classes). How
 * code is made for it is codegen's business. */
#ifndef FUSEC_MACHINE_TARGET_H
#define FUSEC_MACHINE_TARGET_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
#define DEVICE(sym, ...) DEVICE_##sym,
#include "machine/devices.def"
    DEVICE_COUNT
} DeviceClass;

/* See devices.def. */
typedef struct DeviceTraits {
    bool blocks, launches, tile_copies, cores;
} DeviceTraits;
extern const DeviceTraits device_traits[DEVICE_COUNT];

typedef enum {
#define TARGET(sym, name, device, card, machine, ptx_version, vector_bytes, bf16, f64_mma, tf32, \
               wgmma, cluster, overlap, once, doc)                                               \
    TARGET_##sym,
#include "machine/targets.def"
    TARGET_COUNT
} TargetId;

typedef struct Target {
    const char *name;
    DeviceClass device;
    const DeviceTraits *has;
    uint32_t n_processors;   /* that schedules are made for: of one card, whichever runs them */
    const char *machine;     /* as LLVM, or NVIDIA's assembler, calls it */
    const char *ptx_version; /* NULL: not a GPU */
    uint32_t vector_bytes;   /* widest memory access (GPU) or register (CPU) */
    bool has_bf16;           /* packed bf16 arithmetic */
    bool has_large_f64_mma;  /* tensor core instructions of f64 beyond m8n8k4 */
    bool has_tf32_rounding;  /* an instruction that rounds f32 to tf32, ties to even */
    bool has_wgmma;          /* tensor cores fed from shared memory, and tensor maps */
    uint32_t max_cluster;    /* GPU: blocks that can share their shared memory; 1: none */
    bool has_pdl;            /* a kernel can be launched while the one before it ends */
    bool has_load_hints;     /* loads that take no place in the nearest cache */
    const char *doc;
} Target;

const Target *target_get(TargetId id);
/* NULL when there is none of this name. */
const Target *target_by_name(const char *name);

#endif
