/* Host memory from the C library. */
#define _DEFAULT_SOURCE /* madvise */
#include "host/mem.h"

#include <fusert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* From this size on memory starts at a huge page and the kernel is asked for huge pages. Otherwise
 * a matrix with long rows costs a page walk for every few cache lines. */
enum { HUGE_BYTES = 2 << 20, HUGE_FROM_BYTES = 2 * HUGE_BYTES };

void *mem_alloc(size_t n, size_t size) {
    return calloc(n ? n : 1, size ? size : 1);
}

void *mem_alloc_aligned(size_t n_bytes) {
    size_t alignment = n_bytes < HUGE_FROM_BYTES ? FRT_ALIGNMENT : HUGE_BYTES;
    if (n_bytes > PTRDIFF_MAX - alignment) {
        return NULL;
    }
    size_t whole = (n_bytes + FRT_ALIGNMENT - 1) / FRT_ALIGNMENT * FRT_ALIGNMENT;
    void *memory = aligned_alloc(alignment, whole ? whole : FRT_ALIGNMENT);
    if (memory && alignment == HUGE_BYTES) {
        madvise(memory, whole, MADV_HUGEPAGE); /* on failure the memory has normal pages */
    }
    return memory;
}

void *mem_resize(void *data, size_t n, size_t size) {
    if (size && n > PTRDIFF_MAX / size) {
        return NULL;
    }
    size_t n_bytes = n * size;
    return realloc(data, n_bytes > 0 ? n_bytes : 1);
}

void mem_free(void *data) {
    free(data);
}
