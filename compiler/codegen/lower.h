/* Lowering plans to LLVM modules: function interfaces and the choice of template. */
#ifndef FUSEC_CODEGEN_LOWER_H
#define FUSEC_CODEGEN_LOWER_H

#include "codegen/llvm/build.h"
#include "plan/plan.h"

/* A plan's functions: one per kernel variant that does not share another kernel's, in their order.
 * lower_function adds number `i`. */
uint32_t lower_n_functions(const Plan *plan);
void lower_function(Codegen *k, const Plan *plan, uint32_t function);

#endif
