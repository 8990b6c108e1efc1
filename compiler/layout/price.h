/* Prices of a GEMM with and without copies of its operands. */
#ifndef FUSEC_LAYOUT_PRICE_H
#define FUSEC_LAYOUT_PRICE_H

#include "layout/pack.h"
#include "cost/compare.h"

enum { MAX_PACK_REQUESTS = 2 };

/* The prices of the GEMM as it is, and with its operands laid out as requested, including the
 * copies that every run makes; at each point, without other kernels. Returns false if an operand
 * cannot be laid out so. */
typedef struct LayoutPrices {
    Prices as_is, laid_out;
} LayoutPrices;
bool layout_price(const Planning *p, const Packing *packing, uint32_t gemm,
                  const PackRequest *requests, uint32_t n_requests, const CostPoints *points,
                  LayoutPrices *prices);

/* A clone of the GEMM's kernel, with programs of its own and without traces. */
Kernel layout_clone_gemm(Arena *arena, const Plan *plan, const Kernel *gemm);

#endif
