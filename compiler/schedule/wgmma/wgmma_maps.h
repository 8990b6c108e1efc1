/* The operands of a GEMM by wgmma: whether the copy engine can fetch them, and by which maps. */
#ifndef FUSEC_SCHEDULE_WGMMA_WGMMA_MAPS_H
#define FUSEC_SCHEDULE_WGMMA_WGMMA_MAPS_H

#include "schedule/gemm.h"

typedef struct Side {
    ScalarId value;
    uint32_t axis; /* m or n */
    bool is_mn_major;
    TensorMap map; /* without the box */
} Side;

typedef struct Wgmma {
    const Plan *plan;
    const Kernel *kernel;
    IndexTab *tab;
    DimTab *dims;
    Dtype dtype; /* of the operands in memory */
    Side sides[2];
    GemmLaunch launch;
    int64_t n_processors;        /* over which the blocks of a launch are spread */
    uint32_t block_shared_bytes; /* of the target */
} Wgmma;

/* False: the operands cannot have tensor maps. */
bool wgmma_init(Wgmma *g, const Plan *plan, const Kernel *kernel, GemmLaunch launch);
/* The same of the rhs alone. */
bool wgmma_init_right(Wgmma *g, const Plan *plan, const Kernel *kernel);
/* Whether the elements are a multiple of a dynamic pitch. */
bool wgmma_has_run_pitch(const Wgmma *g, DimId elems);
/* Whether the maps can be made whenever pointers are aligned and the GEMM is not small. */
bool wgmma_maps_fit(const Plan *plan, const Kernel *kernel);

#endif
