/* Host memory of the runtime: the only door to malloc, so that tests can put a counting,
 * failing one in its place by linking another definition of these functions. */
#ifndef FRT_MEM_H
#define FRT_MEM_H

#include <stddef.h>

/* Zeroed memory for n elements; NULL when there is none or n * size overflows. */
void *mem_alloc(size_t n, size_t size);

/* At least `n_bytes`, aligned to FRT_ALIGNMENT, not zeroed. */
void *mem_alloc_aligned(size_t n_bytes);

/* Resize to n elements; on failure NULL, and `data` is untouched. */
void *mem_resize(void *data, size_t n, size_t size);

/* Frees what any of the above returned; NULL is ignored. */
void mem_free(void *data);

#endif
