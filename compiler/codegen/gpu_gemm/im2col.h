/* Windows over images as the copy engine fetches them: PTX ISA, cp.async.bulk.tensor, .im2col. */
#ifndef FUSEC_CODEGEN_GPU_GEMM_IM2COL_H
#define FUSEC_CODEGEN_GPU_GEMM_IM2COL_H

#include "codegen/llvm/build.h"
#include "lowering/im2col.h"

typedef struct WindowsCopy {
    const Im2col *windows;
    Val map;         /* encoded, a parameter of the kernel */
    Val to, barrier; /* ptr addrspace(3) */
    Val row, k;      /* i32: the first row, and k, within one tap */
} WindowsCopy;

/* Starts copying as many rows and channels as the map says. */
void gpu_im2col_copy(const Codegen *k, const WindowsCopy *copy);

#endif
