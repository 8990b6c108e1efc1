/* Launches of kernels that pass rows on, such as the three of softmax between two matmuls:
 *
 *     scores = lhs rhs^T    a matmul [.., m, n]
 *     rows                  a row kernel on its result
 *     result = rows values  a matmul of the row kernel's result */
#ifndef FUSEC_LAUNCH_TRIO_H
#define FUSEC_LAUNCH_TRIO_H

#include "machine/target.h"
#include "template/gemm_rows_gemm.h"

typedef struct Trio {
    const Plan *plan;
    const uint32_t *n_users; /* see plan_count_users */
    const Target *target;
    Arena *scratch;
    DimTab *dims;
    uint32_t at[GEMM_ROWS_GEMM_KERNELS]; /* launches */
    uint32_t
        passed[GEMM_ROWS_GEMM_KERNELS - 1]; /* buffers: the scores; results of the row kernel */
} Trio;

/* The kernel of launch `at[i]`. */
const Kernel *trio_kernel(const Trio *t, uint32_t i);
/* Whether the launch has one kernel, which runs in every run. */
bool trio_is_alone(const Trio *t, uint32_t launch);
/* Finds the launch of the only kernel beside the maker, which is alone, that loads the temporary.
 * Returns false if there are several or the buffer is no temporary. */
bool trio_find_reader(const Trio *t, uint32_t maker, uint32_t buffer, uint32_t *reader);
/* Whether the store is at the row-major position of the kernel's first axes. */
bool trio_is_plain_store(const Trio *t, const Kernel *kernel, const Store *store, uint32_t n_axes);
/* Whether it is a matmul on tensor cores with 16-bit operands, or one of a CPU that shares units
 * with other kernels. */
bool trio_is_gemm(const Trio *t, const Kernel *kernel);
/* Whether it is such a matmul of at least one and at most `most_k` k, whose one store is plain. */
bool trio_are_scores(const Trio *t, const Kernel *kernel, int64_t most_k);
/* Finds the launches of the other two kernels, if that of the scores, which are some, is known. */
bool trio_find(Trio *t, uint32_t scores, int64_t most_k, int64_t most_columns,
               bool (*are_rows)(const Trio *, const Kernel *));

#endif
