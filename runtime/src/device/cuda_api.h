/* The CUDA driver as a table of functions, found at run time. Building needs neither CUDA headers
 * nor libcuda. Constants are those of cuda.h 13.0. */
#ifndef FRT_CUDA_API_H
#define FRT_CUDA_API_H

#include <fusert.h>

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,

    CUDA_JIT_ERROR_LOG_BUFFER = 5,
    CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    CUDA_JIT_SPLIT_COMPILE = 34, /* threads that compile the functions of one module */

    CUDA_DEVICE_CLOCK_KHZ = 13,
    CUDA_DEVICE_N_PROCESSORS = 16,
    CUDA_DEVICE_MAJOR = 75,
    CUDA_DEVICE_MINOR = 76,
    CUDA_DEVICE_MAX_SHARED_OPTIN = 97,

    CUDA_FUNC_SHARED_BYTES = 1,
    CUDA_FUNC_LOCAL_BYTES = 3,
    CUDA_FUNC_N_REGISTERS = 4,
    CUDA_FUNC_MAX_DYNAMIC_SHARED = 8,

    /* for cuTensorMapEncodeTiled and -Im2col: no interleaving, zeros outside the tensor */
    CUDA_MAP_INTERLEAVE_NONE = 0,
    CUDA_MAP_L2_PROMOTION_256 = 3,
    CUDA_MAP_FILL_ZEROS = 0,

    CUDA_LINK_INPUT_PTX = 1,

    CUDA_LAUNCH_OVERLAP = 6, /* programmatic stream serialization */

    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_CAPTURE_NONE = 0,    /* status of a stream */
    CUDA_CAPTURE_RELAXED = 2, /* the mode that forbids no other call */

    CUDA_OVERLAP_DRIVER = 12030, /* first version that can capture overlapping launches */
    CUDA_SPLIT_DRIVER = 13000,   /* first version with CUDA_JIT_SPLIT_COMPILE */
    CUDA_OLDEST_DRIVER = 11030   /* first version with cuGetProcAddress */
};

/* CUlaunchAttribute with an int, CUlaunchConfig, CUgraphExecUpdateResultInfo. */
typedef struct CudaLaunchAttribute {
    _Alignas(8) int id;
    int unused;
    int value;
    char rest[60];
} CudaLaunchAttribute;

typedef struct CudaLaunchConfig {
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    void *stream;
    CudaLaunchAttribute *attributes;
    unsigned n_attributes;
} CudaLaunchConfig;

typedef struct CudaGraphUpdate {
    int result;
    void *node, *from_node;
} CudaGraphUpdate;

typedef struct CudaApi {
#define X(base, symbol, version, required, params) int(*base) params;
#include "device/cuda_api.def"
#undef X
} CudaApi;

/* Fills `api` from libcuda.so.1, once per process, or from the caller's lookup. FRT_E_NO_DRIVER,
 * _DRIVER_OLD, _DRIVER_SYMBOL. */
frt_status cuda_api_load(CudaApi *api, const frt_program_options *options, frt_error *err);

#endif
