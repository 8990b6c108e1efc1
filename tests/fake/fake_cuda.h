/* A CUDA driver for tests: device memory is host memory, kernels are C functions, every call is
 * logged and any call can be made to fail. Threads may load and launch at once; what says `last`,
 * and streams and graphs, are of one thread at a time. A module whose PTX has entries has those
 * kernels, one without has all. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "fake/fake_map.h"

#include <stddef.h>
#include <stdint.h>

/* A kernel: `params` as cuLaunchKernel got them. */
typedef void (*FakeKernel)(void **params, unsigned grid, unsigned block);

typedef struct FakeCuda {
    /* What the device is; reset sets a healthy sm_90. */
    int driver_version;
    int n_devices;
    int major, minor, n_processors;
    const char *missing; /* symbol that the driver lacks, or NULL */
    const char *refused; /* entry that the compiler does not take, or NULL */
    long compile_us;     /* what compiling PTX takes at least */
    int n_compilers;     /* threads that the last module was to be compiled by; 0: not said */

    /* Failure: the nth call from now (1 = the next) returns `fail_code`. 0 = none. */
    long fail_at;
    int fail_code;
    int has_failed;
    const char *failed_in; /* name of the call that failed */

    /* What is held. */
    _Atomic long n_contexts, n_modules, n_blocks, n_events;
    _Atomic long n_links, n_streams, n_graphs; /* graphs and what was instantiated of them */
    _Atomic size_t n_bytes;

    /* What was called. */
    _Atomic long n_calls, n_launches, n_syncs;
    long n_compiling, most_compiling; /* modules of PTX, now, and at most at once */
    const char *log[4096];            /* names, the first of them */
    unsigned grid, block, shared;     /* of the last launch */
    void *stream;                     /* of the last launch or copy */
    int max_dynamic_shared;           /* of the last cuFuncSetAttribute */
    const void *image;                /* of the last module; gone when it was a cubin */
    char image_text[64];              /* its beginning */
    int overlaps;       /* the last launch might begin before what is ahead had ended */
    long n_overlapping; /* such launches */
    void *capturing;    /* the stream that records, or NULL */
} FakeCuda;

extern FakeCuda fake_cuda;

/* Healthy device, empty log, nothing held but the caller's context. */
void fake_cuda_reset(void);

void fake_cuda_add_kernel(const char *symbol, FakeKernel kernel);
/* The same for a kernel whose first `n_values` parameters are 8 bytes each: a graph keeps those as
 * they were when it was recorded. */
void fake_cuda_add_valued_kernel(const char *symbol, FakeKernel kernel, int n_values);

/* What linking makes of PTX: this before its first bytes. */
#define FAKE_CUBIN "fake cubin of "

/* For frt_program_options.cuda_lookup. */
void *fake_cuda_lookup(void *ctx, const char *symbol);

/* Calls named `name` in the log. */
long fake_cuda_count(const char *name);

/* How often an entry was loaded since the reset: 0 for what a module without entries has. */
long fake_cuda_loads(const char *symbol);

/* How many contexts are current in this thread, one on the other; the bottom is its own. */
int fake_cuda_depth(void);

#endif
