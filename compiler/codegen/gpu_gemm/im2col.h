/* Copies of im2col windows by the copy engine: PTX ISA, cp.async.bulk.tensor, .im2col. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_IM2COL_H
#define FUSEC_CODEGEN_GPU_GEMM_IM2COL_H

#include "codegen/llvm/build.h"
#include "lowering/im2col.h"

typedef struct WindowsCopy {
    const Im2col *windows;
    Val map;         /* the encoded map, a kernel parameter */
    Val to, barrier; /* ptr addrspace(3) */
    Val row, k;      /* i32: the first row, and the first k, inside one tap */
} WindowsCopy;

/* Starts the copy of the map's box of rows and channels. */
void gpu_im2col_copy(const Codegen *k, const WindowsCopy *copy);

#endif
