/* An exec's own CUDA graph: the prepared steps, recorded once and launched as one. */
#include "host/error.h"
#include "exec/exec.h"

frt_status exec_launch(frt_exec *exec, void *stream, frt_error *err) {
    Device *device = &exec->program->device;
    if (exec->is_recorded && !device->ops->is_recording(device, stream)) {
        return device->ops->graph_launch(device, &exec->own_graph, stream, err);
    }
    return plan_run(exec->program, &exec->plan, stream, err);
}

frt_status exec_record(frt_exec *exec, frt_error *err) {
    Device *device = &exec->program->device;
    exec->is_recorded = false;
    if (!exec->keeps_graph) {
        return FRT_OK;
    }
    frt_status status = device->ops->graph_begin(device, &exec->own_graph, err);
    if (status) {
        return status;
    }
    status = plan_run(exec->program, &exec->plan, exec->own_graph.stream, err);
    frt_status ended = device->ops->graph_end(device, &exec->own_graph, status != FRT_OK, err);
    status = status ? status : ended;
    exec->is_recorded = !status;
    return status;
}

void exec_free_graph(frt_exec *exec) {
    Device *device = &exec->program->device;
    DeviceScope scope;
    exec->is_recorded = false;
    if (!exec->own_graph.stream) {
        return;
    }
    bool is_inside = device->ops->enter(device, &scope, NULL) == FRT_OK;
    device->ops->graph_free(device, &exec->own_graph);
    if (is_inside) {
        device->ops->leave(device, &scope);
    }
}

frt_status frt_exec_keep_graph(frt_exec *exec, bool keep, frt_error *err) {
    if (!exec) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no exec");
    }
    const frt_program *program = exec->program;
    keep = keep && target_info(program->m->target)->has_launches;
    if (keep && !program->device.has_graphs) {
        return frt_fail(err, FRT_E_DRIVER_OLD,
                        "the CUDA driver is too old to keep a graph of a run: CUDA 11.4 is needed");
    }
    exec->is_prepared = exec->is_prepared && exec->keeps_graph == keep;
    exec->keeps_graph = keep;
    if (!exec->keeps_graph) {
        exec_free_graph(exec);
    }
    return FRT_OK;
}
