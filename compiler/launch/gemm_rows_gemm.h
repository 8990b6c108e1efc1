/* Gemm-rows-gemm launches (template/gemm_rows_gemm.h): a product, rows over it and a product of
 * what those make become one launch, in which neither the scores nor what the rows make of them is
 * in memory. Nothing is rewritten: scores are made anew for each pass of the rows, which costs as
 * many products, and no bit changes. */
#ifndef FUSEC_LAUNCH_GEMM_ROWS_GEMM_H
#define FUSEC_LAUNCH_GEMM_ROWS_GEMM_H

#include "cost/cost.h"
#include "machine/target.h"
#include "plan/plan.h"

/* Links what can be a gemm-rows-gemm launch, where the price agrees or `fuse must` insists: gives
 * the three kernels variants that go together and takes what passes between them out of memory.
 * Requires schedules; for GPUs. */
void gemm_rows_gemm_kernels(Arena *arena, Arena *scratch, Plan *plan, const Target *target,
                            const CostPoints *points);

#endif
