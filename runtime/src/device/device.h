/* The interface of devices. Two kinds implement it: CUDA (device_cuda.c) and the CPU
 * (device_cpu.c). Between enter and leave the calling thread is set up for the device: its CUDA
 * context is current, its floating-point state is that of the kernels. Every call below except
 * open, close, enter and leave must happen in between. */
#ifndef FRT_DEVICE_H
#define FRT_DEVICE_H

#include "code/module.h"
#include "device/tensor_map.h"

/* One kernel launch, complete. */
typedef struct Launch {
    const char *label; /* for messages */
    void *kernel;
    int64_t grid; /* blocks, or work units on the CPU; more than 0 */
    int32_t block;
    int32_t shared; /* CUDA: bytes */
    int64_t worth;  /* CPU: the least number of units for a thread of its own; at least 1 */
    bool overlaps;  /* PDL: it may begin while the launch before it ends, and waits at its entry */
    void **args;    /* tensor addresses */
    int64_t *dims;
    void **params; /* addresses of the args, dims and maps, in kernel parameter order */
} Launch;

enum { MAP_ALIGN_BYTES = 64 };

typedef struct Device Device;

/* A run as a CUDA graph, and the stream that it is recorded from. Both NULL: not made. */
typedef struct DeviceGraph {
    void *stream;
    void *exec;
} DeviceGraph;

typedef struct DeviceScope {
    uint32_t fp; /* the floating-point state that leave restores */
} DeviceScope;

/* Code on a device, made of one or several pieces. */
typedef struct DeviceCode {
    void *handle;
    bool is_compiled; /* the driver just compiled it from PTX */
    bool is_cached;   /* it was read from the cache, or stored in it */
} DeviceCode;

typedef struct DeviceOps {
    /* Find the device and check that it can run the module. On failure it holds no resource. */
    frt_status (*open)(Device *device, const frt_module *module, const frt_program_options *options,
                       frt_error *err);
    void (*close)(Device *device);
    frt_status (*enter)(Device *device, DeviceScope *scope, frt_error *err);
    void (*leave)(Device *device, const DeviceScope *scope);

    /* Load `n` pieces of the module as one code. Several threads may call it at once. */
    frt_status (*load)(Device *device, const frt_module *module, const uint32_t *pieces, uint32_t n,
                       DeviceCode *code, frt_error *err);
    void (*unload)(Device *device, void *handle);
    /* `max_shared`: dynamic shared memory in bytes if it is constant, or -1. */
    frt_status (*find)(Device *device, void *handle, const char *symbol, int64_t max_shared,
                       void **kernel, frt_error *err);
    /* Fills `info` except struct_size. */
    frt_status (*describe)(const Device *device, void *kernel, frt_kernel_info *info,
                           frt_error *err);

    frt_status (*alloc)(Device *device, size_t n_bytes, void **data, frt_error *err);
    void (*free)(Device *device, void *data);
    frt_status (*upload)(Device *device, void *to, const void *from, size_t n, frt_error *err);
    frt_status (*download)(Device *device, void *to, const void *from, size_t n, frt_error *err);

    /* Write FRT_MAP_BYTES at `map`, which is aligned to MAP_ALIGN_BYTES. Only if has_maps. */
    frt_status (*encode_map)(Device *device, const MapSpec *spec, void *map, frt_error *err);
    frt_status (*launch)(Device *device, const Launch *launch, void *stream, frt_error *err);
    frt_status (*copy)(Device *device, void *to, const void *from, size_t n_bytes, void *stream,
                       frt_error *err);
    frt_status (*sync)(Device *device, void *stream, frt_error *err);
    frt_status (*sync_all)(Device *device, frt_error *err);

    /* Only if has_graphs. Work enqueued to graph->stream between graph_begin and graph_end is
     * recorded and does not run. graph_end makes or updates the graph unless `failed`. */
    frt_status (*graph_begin)(Device *device, DeviceGraph *graph, frt_error *err);
    frt_status (*graph_end)(Device *device, DeviceGraph *graph, bool failed, frt_error *err);
    frt_status (*graph_launch)(Device *device, const DeviceGraph *graph, void *stream,
                               frt_error *err);
    bool (*is_recording)(Device *device, void *stream);
    void (*graph_free)(Device *device, DeviceGraph *graph);

    /* n time stamps. timer_read waits, and gives the n - 1 intervals in milliseconds. */
    frt_status (*timer_create)(Device *device, int32_t n, void **timer, frt_error *err);
    frt_status (*timer_mark)(Device *device, void *timer, int32_t i, void *stream, frt_error *err);
    frt_status (*timer_read)(Device *device, void *timer, float *ms, frt_error *err);
    void (*timer_free)(Device *device, void *timer);
} DeviceOps;

extern const DeviceOps device_cpu_ops;
extern const DeviceOps device_cuda_ops;

struct Device {
    const DeviceOps *ops; /* NULL: the device is not open */
    void *state;
    frt_allocator allocator;
    int32_t n_threads;    /* threads that run kernels */
    bool loads_together;  /* pieces needed at the same time become one code */
    int32_t n_loaders;    /* if not loads_together: threads that load pieces */
    frt_device_info info; /* without struct_size */
    uint32_t levels;      /* bit set of the manifest's levels whose variants may be chosen */
    bool has_maps;        /* variants with tensor maps may be chosen */
    bool has_overlap;
    bool has_graphs;
    char name[128];
};

/* Copies the caller's options, and gives defaults to fields that the caller's version lacks. */
frt_status options_read(const frt_program_options *options, frt_program_options *full,
                        frt_error *err);

frt_status device_open(Device *device, const frt_module *module, const frt_program_options *options,
                       frt_error *err);
void device_close(Device *device);

/* Memory through the caller's allocator if there is one. 0 bytes become FRT_ALIGNMENT. */
frt_status device_alloc(Device *device, size_t n_bytes, void **data, frt_error *err);
void device_free(Device *device, void *data, size_t n_bytes);

#endif
