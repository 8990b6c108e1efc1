/* The heap of the process. A compilation touches some 20 MiB of small objects once and ends: with
 * pages of 4 KiB the kernel's page faults take a quarter of its time. */
#define _DEFAULT_SOURCE
#include "cli/cli.h"

#ifdef __GLIBC__
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    FIRST_BYTES = 30 << 20,
    MMAP_BYTES = 32 << 20,
    HUGE_PAGE_BYTES = 2 << 20,
    THREAD_BYTES = 16 << 20
};

/* The heap begins with FIRST_BYTES of huge pages and keeps freed memory. That of another thread
 * begins with THREAD_BYTES: glibc would ask the kernel for each 4 KiB that it grows by, and threads
 * wait for each other there. Memory counts only where it is touched. A system without huge pages
 * ignores the advice, and a limit of address space that is lower leaves the heap as it was. */
void cli_prepare_heap(void) {
    mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
    mallopt(M_TRIM_THRESHOLD, 2 * FIRST_BYTES);
    uintptr_t begin = (uintptr_t)sbrk(0);
    void *volatile first = malloc(FIRST_BYTES); /* volatile: gcc would leave out the pair */
    free(first);
    mallopt(M_TOP_PAD, THREAD_BYTES);
    uintptr_t end = (uintptr_t)sbrk(0);
    begin = (begin + HUGE_PAGE_BYTES - 1) & ~(uintptr_t)(HUGE_PAGE_BYTES - 1);
    if (begin < end) madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}
#else
void cli_prepare_heap(void) {
}
#endif
