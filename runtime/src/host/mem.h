/* Host memory of the runtime. All allocations go through these functions, so that a test can link
 * other definitions that count or fail. */
#ifndef FRT_MEM_H
#define FRT_MEM_H

#include <stddef.h>

/* Zeroed memory for n elements; NULL when memory is out or n * size overflows. */
void *mem_alloc(size_t n, size_t size);

/* At least `n_bytes`, aligned to FRT_ALIGNMENT, not zeroed. */
void *mem_alloc_aligned(size_t n_bytes);

/* Resizes to n elements. On failure it returns NULL and leaves `data` untouched. */
void *mem_resize(void *data, size_t n, size_t size);

/* Frees a result of the functions above; NULL is ignored. */
void mem_free(void *data);

#endif
