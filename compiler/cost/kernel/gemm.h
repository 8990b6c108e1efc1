/* What GEMMs take, and rows that follow one in its blocks: how often tiles bring in their
 * operands, what is on its way meanwhile, the waves of tiles, and the rates of the engines. */
#ifndef FUSEC_COST_KERNEL_GEMM_H
#define FUSEC_COST_KERNEL_GEMM_H

#include "cost/kernel/template.h"

/* Whether the kernel is a GEMM by tiles. */
bool cost_gemm_has_tiles(const Pricing *p);
/* How often such a one has what depends on these axes alone. */
double cost_gemm_reads(const Coster *c, const Pricing *p, uint32_t axes);
/* How often memory beyond the cache is read for an operand of `bytes` of such a one that depends on
 * these axes alone: tiles come group by group of rows of them. */
double cost_gemm_dram_reads(const Coster *c, const Pricing *p, uint32_t axes, double bytes);

/* Fields of TemplateCost (cost/kernel/template.h). cost_gemm_load is of operands that come in
 * tiles; cost_gemm_compute of one chain of multiply-adds per output, on any device. */
void cost_gemm_count(const Coster *c, Pricing *p, bool *const *live);
void cost_gemm_load(const Coster *c, Pricing *p, bool *const *live);
double cost_gemm_use(const Coster *c, const Pricing *p, double wanted);
void cost_gemm_compute(const Coster *c, Pricing *p, double prims_per_us);
double cost_gemm_bared_us(const Coster *c, const Pricing *p, double busy);
/* The registers of a thread whose loop over k takes `mainloop`, which the epilogue takes over. */
double cost_gemm_registers(const ThreadUse *use, double mainloop);
/* Tiles of both operands, for each stage. */
uint32_t cost_gemm_shared_bytes(Arena *arena, const Kernel *kernel, const Variant *variant);

/* How busy processors are that have most blocks, and work last, were each with `wanted` warps. */
double cost_gemm_use_of_busy(const Coster *c, const Pricing *p, double wanted);
/* The last round of blocks may leave processors idle: the share of them that work. */
double cost_gemm_balance(const Coster *c, const Pricing *p);
/* The kernel's own tiles, of the tiles of all kernels of its launch. */
double cost_gemm_share(const Coster *c, const Pricing *p);
/* How many tiles each block has, the last wave being whole or not; in whole waves. */
double cost_gemm_part_waves(const Coster *c, const Pricing *p);
double cost_gemm_waves(const Coster *c, const Pricing *p);
/* The least that a product takes which rows follow; 0: none do. */
double cost_gemm_least_us(const Coster *c, const Pricing *p);

/* 10^12 operations per second that the engine reaches on long sums of the kernel's products, which
 * are two operations each; those of `mma.sync`. */
double cost_gemm_peak(const Card *card, const Kernel *kernel, GemmEngine engine);
double cost_mma_tflops(const Card *card, const Kernel *kernel);
/* Sets the times of a GEMM on tensor cores by `mma.sync`. */
void cost_mma_compute(const Coster *c, Pricing *p, double prims_per_us);
double cost_mma_registers(const ThreadUse *use);
/* Corrects `us` of rows that continue a product on a GPU. */
void cost_gemm_time_rows(const Coster *c, Pricing *p);

#endif
