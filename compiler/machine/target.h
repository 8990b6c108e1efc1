/* Targets, expanded from targets.def: the limits and capabilities that passes may ask for. Code
 * generation itself belongs to codegen. */
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
    const char *triple, *layout;
    uint32_t row_chains;
    bool blocks, launches, tile_copies, cores, narrow_floats;
} DeviceTraits;
extern const DeviceTraits device_traits[DEVICE_COUNT];

typedef enum {
#define TARGET(sym, ...) TARGET_##sym,
#include "machine/targets.def"
    TARGET_COUNT
} TargetId;

typedef struct Target {
    const char *name;
    DeviceClass device;
    const DeviceTraits *has;
    uint32_t n_processors;       /* of the card for which schedules are made, whichever card runs
                                  * them */
    const char *machine;         /* the name in LLVM or in ptxas */
    const char *ptx_version;     /* NULL: the code is no PTX */
    uint32_t vector_bytes;       /* widest memory access (GPU) or vector register (CPU) */
    bool has_bf16;               /* packed bf16 arithmetic */
    bool has_large_f64_mma;      /* f64 mma instructions larger than m8n8k4 */
    bool has_tf32_rounding;      /* an instruction that rounds f32 to tf32 */
    const char *f8_ptx_version;  /* of code that uses tensor cores for 8-bit floats; NULL: the
                                  * target has none */
    bool has_wgmma;              /* wgmma and tensor maps */
    uint32_t max_cluster;        /* GPU: largest cluster, in blocks; 1: no clusters */
    uint32_t block_shared_bytes; /* shared memory that a block may have on every card of the
                                  * target; CPU: 0 */
    bool has_pdl;                /* programmatic dependent launch */
    bool has_load_hints;         /* loads that bypass L1 */
    const char *features;        /* CPU: beyond those of `machine`; or NULL */
    bool has_int_dots;           /* CPU: VNNI */
    bool has_amx;                /* CPU: tile registers */
    const char *doc;
} Target;

const Target *target_get(TargetId id);
/* The levels of a target, best first (machine/levels.def). */
uint32_t target_n_levels(const Target *target);
const Target *target_level(const Target *target, uint32_t i);
/* NULL when no target has this name. */
const Target *target_by_name(const char *name);

#endif
