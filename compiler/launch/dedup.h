/* Sharing code between kernels of the same structure, in all graphs of a module. Requires
 * schedules. */
#ifndef FUSEC_LAUNCH_DEDUP_H
#define FUSEC_LAUNCH_DEDUP_H

#include "pipeline/pipeline.h"

/* The structures of kernels that have been looked up. */
typedef struct DedupCodes DedupCodes;
/* `has_pdl`: of the target, where loads of given arguments are others. */
DedupCodes *dedup_codes_new(Arena *arena, bool has_pdl);
/* A number that is equal for kernels of the same structure. */
uint32_t dedup_code(DedupCodes *codes, const Plan *plan, const Launch *launch,
                    const Kernel *kernel);
/* Sets Kernel.code of all kernels to that number. */
void dedup_classify(Arena *arena, bool has_pdl, const Plan *const *plans, uint32_t n_plans);
/* Gives launches with equal codes one function: sets Variant.symbol of later launches to that of
 * the first and marks them shared. Requires composed launches. */
void dedup_functions(Arena *arena, const Plan *const *plans, uint32_t n_plans);

bool dedup_pass(const Planning *p);

#endif
