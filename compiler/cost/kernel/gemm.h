/* What GEMMs take, and rows that follow one in its blocks: how often tiles bring in their
 * operands, what is on its way meanwhile, the waves of tiles, and the rates of the engines. */
#ifndef FUSEC_COST_KERNEL_GEMM_H
#define FUSEC_COST_KERNEL_GEMM_H

#include "cost/kernel/pricing.h"

/* Whether the kernel is a GEMM by tiles. */
bool cost_gemm_has_tiles(const Pricing *p);
/* How often such a one has what depends on these axes alone. */
double cost_gemm_reads(const Coster *c, const Pricing *p, uint32_t axes);
/* How often memory beyond the cache is read for an operand of `bytes` of such a one that depends on
 * these axes alone: tiles come group by group of rows of them. */
double cost_gemm_dram_reads(const Coster *c, const Pricing *p, uint32_t axes, double bytes);
/* Sets n_flops and adds to n_prims. `live`: per stage, and of the stores after the last, what it
 * has. */
void cost_gemm_count(const Coster *c, Pricing *p, bool *const *live);
/* Of one thread; not of GEMM_NAIVE, which has no tiles and whose loads tell. */
double cost_gemm_bytes_in_flight(const Pricing *p);
/* What a thread of GEMM_NAIVE has loads of at once. */
double cost_gemm_plain_steps(const Pricing *p);
/* The part of the machine that has work, were each of its processors busy with `wanted` warps. */
double cost_gemm_use(const Coster *c, const Pricing *p, double wanted);
/* Sets tensor_us, or adds to arithmetic_us. `prims_per_us`: of the part that has work. */
void cost_gemm_time(const Coster *c, Pricing *p, double prims_per_us);
/* What memory waits for while blocks store results, where those take longer than the products. */
double cost_gemm_bared_us(const Coster *c, const Pricing *p);
/* 10^12 operations per second that the engine reaches on long sums of the kernel's products, which
 * are two operations each. */
double cost_gemm_peak(const Card *card, const Kernel *kernel, GemmEngine engine);
/* Whether the kernel is rows that follow a product in its blocks. */
bool cost_is_row_phase(const Coster *c, const Kernel *kernel);
/* Corrects `us` of such a one on a GPU. */
void cost_gemm_time_rows(const Coster *c, Pricing *p);

#endif
