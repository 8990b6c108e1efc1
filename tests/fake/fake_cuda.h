/* A CUDA driver for tests: device memory is host memory, kernels are C functions, every call is
 * logged and any call can be made to fail. Threads may load and launch concurrently; `last` fields,
 * streams and graphs are for one thread at a time. A module whose PTX has entries has those
 * kernels, one without entries has all. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "fake/fake_map.h"

#include <stddef.h>
#include <stdint.h>

/* A kernel; `params` are those of cuLaunchKernel. */
typedef void (*FakeKernel)(void **params, unsigned grid, unsigned block);

typedef struct FakeCuda {
    /* Properties of the device; reset sets a healthy sm_90. */
    int driver_version;
    int n_devices;
    int major, minor, n_processors;
    const char *missing; /* symbol that the driver lacks, or NULL */
    const char *refused; /* entry that the compiler rejects, or NULL */
    long compile_us;     /* least time of compiling PTX */
    int n_compilers;     /* threads for compiling the last module; 0: not given */

    /* Failure: the nth call from now (1 = the next) returns `fail_code`. 0 = none. */
    long fail_at;
    int fail_code;
    int has_failed;
    const char *failed_in; /* name of the failed call */

    /* Resources that are held. */
    _Atomic long n_contexts, n_modules, n_blocks, n_events;
    _Atomic long n_links, n_streams, n_graphs; /* graphs and their executable forms */
    _Atomic size_t n_bytes;

    /* Calls so far. */
    _Atomic long n_calls, n_launches, n_syncs;
    long n_compiling, most_compiling; /* PTX modules being compiled now, and the largest number at
                                       * any time */
    const char *log[4096];            /* names of the first calls */
    unsigned grid, block, shared;     /* of the last launch */
    void *stream;                     /* of the last launch or copy */
    int max_dynamic_shared;           /* of the last cuFuncSetAttribute */
    const void *image;                /* of the last module; dangling after a cubin */
    char image_text[64];              /* its first bytes */
    int overlaps;                     /* whether the last launch may overlap the one before (PDL) */
    long n_overlapping;               /* number of such launches */
    void *capturing;                  /* the stream that is being captured, or NULL */
} FakeCuda;

extern FakeCuda fake_cuda;

/* Resets to a healthy device, an empty log, and no resources but the caller's context. */
void fake_cuda_reset(void);

void fake_cuda_add_kernel(const char *symbol, FakeKernel kernel);
/* Adds a kernel whose first `n_values` parameters are 8 bytes each. A graph keeps their values from
 * the time of recording. `has_more`: another parameter follows, of which a graph keeps the place.
 */
void fake_cuda_add_valued_kernel(const char *symbol, FakeKernel kernel, int n_values,
                                 bool has_more);

/* Linking returns this text followed by the first bytes of the PTX. */
#define FAKE_CUBIN "fake cubin of "

/* For frt_program_options.cuda_lookup. */
void *fake_cuda_lookup(void *ctx, const char *symbol);

/* The number of calls of `name` in the log. */
long fake_cuda_count(const char *name);

/* How often an entry was loaded since the reset; 0 for kernels of a module without entries. */
long fake_cuda_loads(const char *symbol);

/* The number of contexts on this thread's stack; the bottom one is its own. */
int fake_cuda_depth(void);

#endif
