/* What products on a GPU's ordinary units take beside memory. */
#ifndef FUSEC_COST_KERNEL_SIMT_H
#define FUSEC_COST_KERNEL_SIMT_H

#include "cost/kernel/pricing.h"

/* An output is one chain along k, so a step of k takes a block the longest of four: starting its
 * instructions, reading fragments from shared memory, waiting for those, and waiting for the sum
 * before. Blocks that share a processor take turns in the first two. Microseconds. */
double cost_simt_us(const Coster *c, const Pricing *p);

#endif
