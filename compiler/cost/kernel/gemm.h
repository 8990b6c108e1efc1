/* The cost of GEMMs, and of a row kernel in the same blocks: how often tiles read their operands,
 * loads in flight, waves of tiles, and the rates of the engines. */
#ifndef FUSEC_COST_KERNEL_GEMM_H
#define FUSEC_COST_KERNEL_GEMM_H

#include "cost/kernel/template.h"

/* Whether the kernel is a tiled GEMM. */
bool cost_gemm_has_tiles(const Pricing *p);
/* How often a tiled GEMM reads an operand that depends on these axes alone. */
double cost_gemm_reads(const Coster *c, const Pricing *p, uint32_t axes);
/* How often a tiled GEMM reads an operand of `bytes` that depends on these axes alone from DRAM,
 * given the cache. Tiles run in groups of rows of tiles. */
double cost_gemm_dram_reads(const Coster *c, const Pricing *p, uint32_t axes, double bytes);

/* The registers of a thread whose mainloop takes `mainloop`; the epilogue reuses them. */
double cost_gemm_registers(const ThreadUse *use, double mainloop);

/* How busy the processors with the most blocks are, which finish last, if each wanted `wanted`
 * warps. */
double cost_gemm_use_of_busy(const Coster *c, const Pricing *p, double wanted);
/* The average share of processors that work, since the last round of blocks leaves some idle. */
double cost_gemm_balance(const Coster *c, const Pricing *p);
/* The kernel's share of the tiles of its launch. */
double cost_gemm_share(const Coster *c, const Pricing *p);
/* The waves of tiles per block: with a fractional last wave, and rounded up. */
double cost_gemm_part_waves(const Coster *c, const Pricing *p);
double cost_gemm_waves(const Coster *c, const Pricing *p);
/* The least time of a GEMM that a row kernel follows; 0: none does. */
double cost_gemm_least_us(const Coster *c, const Pricing *p);

/* The rate in 10^12 operations per second of the engine on long sums of the kernel's dtype (two
 * operations per multiply-add); and that of `mma.sync`. */
double cost_gemm_peak(const Card *card, const Kernel *kernel, GemmEngine engine);
double cost_mma_tflops(const Card *card, const Kernel *kernel);
/* Corrects `us` of a row kernel that continues a GEMM on a GPU. */
void cost_gemm_time_rows(const Coster *c, Pricing *p);

#endif
