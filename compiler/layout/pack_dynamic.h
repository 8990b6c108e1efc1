/* Two versions of a GEMM, with and without copies of its operands, for copies that pay only for
 * large extents. The plan holds the kernel, the copies, and a second kernel that reads the copies.
 * An extent decides at the start of a run which version runs: the grids and copies of the other
 * version have size 0 (Kernel.choice). Both versions have the same bits. */
#ifndef FUSEC_LAYOUT_PACK_DYNAMIC_H
#define FUSEC_LAYOUT_PACK_DYNAMIC_H

#include "layout/pack.h"
#include "pipeline/pipeline.h"

/* Adds the copies and the second version after kernel `gemm` if the copies pay from some value of
 * one symbol on. Returns false and changes nothing otherwise. */
bool layout_where_it_pays(const Planning *p, Packing *packing, uint32_t gemm,
                          const PackRequest *requests, uint32_t n_requests);

#endif
