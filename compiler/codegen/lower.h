/* Lowering plans to LLVM modules: function interfaces and the choice of template. */
#ifndef FUSEC_CODEGEN_LOWER_H
#define FUSEC_CODEGEN_LOWER_H

#include "codegen/llvm/build.h"
#include "plan/plan.h"

/* The functions of a plan: one per kernel variant that does not share the function of another
 * kernel, in order. lower_function adds one of them by its number, and returns it. */
uint32_t lower_n_functions(const Plan *plan);
Val lower_function(Codegen *k, const Plan *plan, uint32_t function);

#endif
