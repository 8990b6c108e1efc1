/* A GEMM in two ways. Copies of operands that pay for much work and not for little are made
 * where there is much: the plan holds beside the kernel the copies and the same kernel that reads
 * them. Which of the two start follows from an extent when a run is prepared: grids of the others
 * are 0 then, and so are the copies (Kernel.choice). The bits are the same. */
#ifndef FUSEC_LAYOUT_PACK_DYNAMIC_H
#define FUSEC_LAYOUT_PACK_DYNAMIC_H

#include "layout/pack.h"
#include "pipeline/pipeline.h"

/* Puts what stands for kernel `gemm` behind it, where its operands laid out so are faster from some
 * value of one symbol on. False: nothing has changed. */
bool layout_where_it_pays(const Planning *p, Packing *packing, uint32_t gemm,
                          const PackRequest *requests, uint32_t n_requests);

#endif
