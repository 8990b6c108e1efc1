/* A run as a CUDA graph. It is recorded from a stream of its own, so it contains all work that the
 * steps enqueue, overlapping launches included. See device.h. */
#include "device/device_cuda.h"
#include "host/error.h"

bool cuda_has_graphs(const CudaApi *api) {
    return api->cuStreamCreate && api->cuStreamDestroy && api->cuStreamIsCapturing &&
           api->cuStreamBeginCapture && api->cuStreamEndCapture &&
           api->cuGraphInstantiateWithFlags && api->cuGraphLaunch && api->cuGraphExecDestroy &&
           api->cuGraphDestroy;
}

frt_status cuda_graph_begin(Device *device, DeviceGraph *graph, frt_error *err) {
    CudaState *state = device->state;
    const CudaApi *api = &state->api;
    int result = CUDA_SUCCESS;
    if (!graph->stream) {
        result = api->cuStreamCreate(&graph->stream, CUDA_STREAM_NON_BLOCKING);
    }
    if (result == CUDA_SUCCESS) {
        result = api->cuStreamBeginCapture(graph->stream, CUDA_CAPTURE_RELAXED);
    }
    return cuda_check(state, result, "beginning to record a run", err);
}

/* An executable graph of the same kernels takes new parameters. If the driver cannot update it, it
 * is instantiated anew. */
static int renew(const CudaApi *api, DeviceGraph *graph, void *recorded) {
    CudaGraphUpdate outcome;
    if (graph->exec && api->cuGraphExecUpdate &&
        api->cuGraphExecUpdate(graph->exec, recorded, &outcome) == CUDA_SUCCESS) {
        return CUDA_SUCCESS;
    }
    if (graph->exec) {
        api->cuGraphExecDestroy(graph->exec);
        graph->exec = NULL;
    }
    return api->cuGraphInstantiateWithFlags(&graph->exec, recorded, 0);
}

frt_status cuda_graph_end(Device *device, DeviceGraph *graph, bool failed, frt_error *err) {
    CudaState *state = device->state;
    const CudaApi *api = &state->api;
    void *recorded = NULL;
    int result = api->cuStreamEndCapture(graph->stream, &recorded);
    if (result == CUDA_SUCCESS && !failed) {
        result = renew(api, graph, recorded);
    }
    if (recorded) {
        api->cuGraphDestroy(recorded);
    }
    if (failed) { /* the caller has reported its error */
        return FRT_OK;
    }
    return cuda_check(state, result, "making a CUDA graph of a run", err);
}

frt_status cuda_graph_launch(Device *device, const DeviceGraph *graph, void *stream,
                             frt_error *err) {
    CudaState *state = device->state;
    int result = state->api.cuGraphLaunch(graph->exec, stream);
    return result == CUDA_SUCCESS
               ? FRT_OK
               : cuda_fail(state, result, FRT_E_LAUNCH, "launching the CUDA graph of a run", err);
}

/* If the driver does not answer, the steps are enqueued and report the error. */
bool cuda_is_recording(Device *device, void *stream) {
    CudaState *state = device->state;
    int status = CUDA_CAPTURE_NONE;
    return state->api.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
           status != CUDA_CAPTURE_NONE;
}

void cuda_graph_free(Device *device, DeviceGraph *graph) {
    CudaState *state = device->state;
    if (graph->exec) {
        state->api.cuGraphExecDestroy(graph->exec);
    }
    if (graph->stream) {
        state->api.cuStreamDestroy(graph->stream);
    }
    *graph = (DeviceGraph){0};
}
