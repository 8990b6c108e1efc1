/* Variants: the schedules with which a kernel is lowered. When the dims and pointers of a run are
 * known, the runtime takes the first variant whose predicate holds; in a group of variants with
 * prices it takes the cheapest. */
#ifndef FUSEC_PLAN_VARIANT_H
#define FUSEC_PLAN_VARIANT_H

#include "ir/predicate.h"
#include "lowering/sched.h"

/* The price of a variant, by which the runtime compares the variants of a group:
 *
 *     block = fixed + sum of weights[i] * measures[i]
 *     price = block * (percent / 100 * blocks + (1 - percent / 100) * waves * per_wave)
 *
 * where `waves` is blocks / per_wave, rounded up. The unit is arbitrary. The variants of a group
 * are adjacent and have the same measures. */
enum { MAX_MEASURES = 3 };
typedef struct Price {
    uint32_t group;   /* from 1; 0: the variant has no price */
    DimId blocks;     /* of the grid */
    int64_t per_wave; /* blocks that run at once */
    int64_t percent;  /* share of the time in proportion to blocks; the rest to waves */
    int64_t fixed, weights[MAX_MEASURES];
    DimId measures[MAX_MEASURES];
    uint32_t n_measures;
} Price;

/* One of the schedules of a kernel. The last variant has no terms in its predicate. */
typedef struct Variant {
    Str symbol;     /* of the function in the artifact */
    bool is_shared; /* the function is that of another kernel with the same structure */
    Sched sched;
    DimId grid;            /* blocks (GPU) or work units (CPU) */
    bool is_persistent;    /* GPU: persistent blocks, at most sched.min_blocks per SM (0: one), that
                            * share    the grid's work */
    uint32_t shared_bytes; /* GPU: dynamic shared memory of the template */
    uint32_t kept_shared_bytes; /* GPU: dynamic shared memory behind it, of buffers that the launch
                                 * keeps there (BUFFER_SHARED); the launch's first kernel has it */
    TensorMap maps[MAX_MAPS];
    uint32_t n_maps;
    Predicate predicate; /* the variant applies where it holds and the maps can be made */
    Price price;
    RowCache row_cache;
} Variant;

enum { SMEM_ALIGN_BYTES = 16, SMEM_LANES = 4, MAX_CLUSTER = 8 };
enum { SMEM_ACCESS_BYTES = SMEM_LANES * 8 }; /* the most that lanes read of one buffer there */
enum { MAX_VARIANTS = 24, MAX_KERNEL_ARGS = 60 };

typedef struct Plan Plan;
typedef struct Kernel Kernel;

/* The arguments (bit set) that the runtime must check for this term of a variant's predicate; the
 * others are known to be aligned. */
uint64_t variant_open_args(const Plan *plan, const Kernel *kernel, const PredicateTerm *term);
/* Whether the runtime must evaluate a condition before it takes the variant. False: the variant
 * always applies, and no later variant is ever taken. */
bool variant_has_conditions(const Plan *plan, const Kernel *kernel, const Variant *variant);
/* The variant that the runtime takes at values of the dims (by symbol), with aligned pointers. For
 * `n` kernels of one launch it is the number of the first variant that applies to all of them or,
 * if that variant has a price, of the cheapest in its group. */
uint32_t variant_taken(const Plan *plan, const Kernel *kernels, uint32_t n, const int64_t *values);

#endif
