/* Whether copies of a GEMM's operands pay, by the prices of both ways. */
#ifndef FUSEC_LAYOUT_PRICE_H
#define FUSEC_LAYOUT_PRICE_H

#include "layout/pack.h"
#include "cost/compare.h"

enum { MAX_PACK_REQUESTS = 2 };

/* What the GEMM takes as it is, and with its operands laid out so, the copies included that
 * runs make; at each point, with nothing else around. False: it cannot be laid out so. */
typedef struct LayoutPrices {
    Prices as_is, laid_out;
} LayoutPrices;
bool layout_price(const Planning *p, Packing *packing, uint32_t gemm, const PackRequest *requests,
                  uint32_t n_requests, const CostPoints *points, LayoutPrices *prices);

/* The GEMM with programs of its own, in which nothing is traced. */
Kernel layout_twin(Arena *arena, const Plan *plan, const Kernel *gemm);

#endif
