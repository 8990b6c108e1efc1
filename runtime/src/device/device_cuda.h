/* The CUDA device: its state, its error reports, and the functions in files of their own, for code
 * (device_cuda_code.c) and graphs (device_cuda_graph.c). */
#ifndef FRT_DEVICE_CUDA_H
#define FRT_DEVICE_CUDA_H

#include "code/cubin_cache.h"
#include "device/cuda_api.h"
#include "device/device.h"

typedef struct CudaState {
    CudaApi api;
    int device;
    void *context;
    bool is_primary; /* the runtime has retained the primary context */
    int sm;          /* 90 for compute capability 9.0 */
    int max_shared;  /* limit of a block in bytes, static and dynamic */
    int driver_version;
    int n_compilers; /* threads of the driver's compiler for one module; 1: the driver has no such
                      * option */
    CubinCache cache;
    _Atomic int lost; /* the fatal CUresult after which every call fails, or 0 */
} CudaState;

/* Report `result` of the driver while `doing` an action. `otherwise` is the status if the error has
 * no more specific one. */
frt_status cuda_fail(CudaState *state, int result, frt_status otherwise, const char *doing,
                     frt_error *err);

/* FRT_OK, or cuda_fail with FRT_E_DRIVER. */
frt_status cuda_check(CudaState *state, int result, const char *doing, frt_error *err);

/* DeviceOps.load and .unload. */
frt_status cuda_load(Device *device, const frt_module *module, const uint32_t *pieces, uint32_t n,
                     DeviceCode *code, frt_error *err);
void cuda_unload(Device *device, void *handle);

/* The DeviceOps of graphs. */
bool cuda_has_graphs(const CudaApi *api);
frt_status cuda_graph_begin(Device *device, DeviceGraph *graph, frt_error *err);
frt_status cuda_graph_end(Device *device, DeviceGraph *graph, bool failed, frt_error *err);
frt_status cuda_graph_launch(Device *device, const DeviceGraph *graph, void *stream,
                             frt_error *err);
bool cuda_is_recording(Device *device, void *stream);
void cuda_graph_free(Device *device, DeviceGraph *graph);

#endif
