/* Running and timing a prepared exec, and the device helpers of the public API. */
#include "host/error.h"
#include "exec/exec.h"
#include "host/mem.h"

#include <stdlib.h>

frt_status frt_prepare(frt_exec *exec, frt_error *err) {
    if (!exec) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no exec");
    }
    Device *device = &exec->program->device;
    DeviceScope scope;
    frt_status status = device->ops->enter(device, &scope, err);
    if (status) {
        return status;
    }
    status = exec_prepare(exec, err);
    device->ops->leave(device, &scope);
    return status;
}

frt_status frt_run(frt_exec *exec, void *stream, frt_error *err) {
    if (!exec) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no exec");
    }
    Device *device = &exec->program->device;
    DeviceScope scope;
    frt_status status = device->ops->enter(device, &scope, err);
    if (status) {
        return status;
    }
    status = exec_prepare_if_needed(exec, err);
    if (!status) {
        status = exec_launch(exec, stream, err);
    }
    device->ops->leave(device, &scope);
    return status;
}

int32_t frt_exec_variant(const frt_exec *exec, int32_t step) {
    bool is_good =
        exec && exec->is_prepared && step >= 0 && (uint32_t)step < exec->program->graph->n_steps;
    return is_good ? exec->plan.steps[step].variant : -1;
}

enum { MAX_TIMED = 1 << 20 };

static frt_status time_runs(frt_exec *exec, void *stream, int32_t n, float *ms, frt_error *err) {
    Device *device = &exec->program->device;
    void *timer = NULL;
    frt_status status = exec_prepare_if_needed(exec, err);
    if (!status) {
        status = device->ops->timer_create(device, n + 1, &timer, err);
    }
    if (status) {
        return status;
    }
    status = device->ops->timer_mark(device, timer, 0, stream, err);
    for (int32_t i = 0; !status && i < n; i++) {
        status = exec_launch(exec, stream, err);
        if (!status) {
            status = device->ops->timer_mark(device, timer, i + 1, stream, err);
        }
    }
    if (!status) {
        status = device->ops->timer_read(device, timer, ms, err);
    }
    device->ops->timer_free(device, timer);
    return status;
}

/* One run with a time stamp after each step; row[i] receives the milliseconds of step i. */
static frt_status time_steps_once(frt_exec *exec, void *stream, void *timer, float *row,
                                  frt_error *err) {
    frt_program *program = exec->program;
    Device *device = &program->device;
    frt_status status = device->ops->timer_mark(device, timer, 0, stream, err);
    for (uint32_t i = 0; !status && i < program->graph->n_steps; i++) {
        status = plan_enqueue(program, &exec->plan, i, STEP_ALONE, stream, err);
        if (!status) {
            status = device->ops->timer_mark(device, timer, (int32_t)i + 1, stream, err);
        }
    }
    return status ? status : device->ops->timer_read(device, timer, row, err);
}

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

/* rows: n runs of n_steps times each. column: scratch for n times. */
static void take_medians(const frt_exec *exec, const float *rows, float *column, int32_t n,
                         float *ms) {
    uint32_t n_steps = exec->program->graph->n_steps;
    for (uint32_t i = 0; i < n_steps; i++) {
        for (int32_t k = 0; k < n; k++) {
            column[k] = rows[(size_t)k * n_steps + i];
        }
        qsort(column, (size_t)n, sizeof *column, compare_floats);
        ms[i] = exec->plan.steps[i].is_idle ? 0.0f : column[n / 2];
    }
}

static frt_status time_steps(frt_exec *exec, void *stream, int32_t n, float *ms, frt_error *err) {
    Device *device = &exec->program->device;
    uint32_t n_steps = exec->program->graph->n_steps;
    size_t n_times = (size_t)n * (n_steps + (size_t)1);
    void *timer = NULL;
    frt_status status = exec_prepare_if_needed(exec, err);
    if (status) {
        return status;
    }
    float *times = mem_alloc(n_times, sizeof *times);
    if (!times) {
        return frt_fail_memory(err, n_times * sizeof *times);
    }
    status = device->ops->timer_create(device, (int32_t)n_steps + 1, &timer, err);
    for (int32_t k = 0; !status && k < n; k++) {
        status = time_steps_once(exec, stream, timer, times + (size_t)k * n_steps, err);
    }
    if (!status) {
        take_medians(exec, times, times + (size_t)n * n_steps, n, ms);
    }
    if (timer) {
        device->ops->timer_free(device, timer);
    }
    mem_free(times);
    return status;
}

typedef frt_status Timing(frt_exec *exec, void *stream, int32_t n, float *ms, frt_error *err);

static frt_status time_on_device(Timing *timing, frt_exec *exec, void *stream, int32_t n, float *ms,
                                 frt_error *err) {
    if (!exec || n < 1 || n > MAX_TIMED || !ms) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT,
                        "no exec, no place for times, or not 1 to %d runs", MAX_TIMED);
    }
    Device *device = &exec->program->device;
    DeviceScope scope;
    frt_status status = device->ops->enter(device, &scope, err);
    if (status) {
        return status;
    }
    status = timing(exec, stream, n, ms, err);
    device->ops->leave(device, &scope);
    return status;
}

frt_status frt_time_runs(frt_exec *exec, void *stream, int32_t n, float *ms, frt_error *err) {
    return time_on_device(time_runs, exec, stream, n, ms, err);
}

frt_status frt_time_launches(frt_exec *exec, void *stream, int32_t n, float *ms, frt_error *err) {
    return time_on_device(time_steps, exec, stream, n, ms, err);
}

frt_status frt_device_alloc(frt_program *program, size_t n_bytes, void **data, frt_error *err) {
    if (!program || !data) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no program or no place for the address");
    }
    Device *device = &program->device;
    DeviceScope scope;
    frt_status status = device->ops->enter(device, &scope, err);
    if (status) {
        return status;
    }
    status = device_alloc(device, n_bytes, data, err);
    device->ops->leave(device, &scope);
    return status;
}

void frt_device_free(frt_program *program, void *data, size_t n_bytes) {
    if (!program || !data) {
        return;
    }
    Device *device = &program->device;
    DeviceScope scope;
    bool is_inside = device->ops->enter(device, &scope, NULL) == FRT_OK;
    device_free(device, data, n_bytes);
    if (is_inside) {
        device->ops->leave(device, &scope);
    }
}

static frt_status move(frt_program *program, bool is_upload, void *to, const void *from,
                       size_t n_bytes, frt_error *err) {
    if (!program) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no program");
    }
    if ((!to || !from) && n_bytes > 0) {
        return frt_fail(err, FRT_E_NULL, "a copy of %zu bytes from or to NULL", n_bytes);
    }
    Device *device = &program->device;
    DeviceScope scope;
    frt_status status = n_bytes ? device->ops->enter(device, &scope, err) : FRT_OK;
    if (status || n_bytes == 0) {
        return status;
    }
    status = is_upload ? device->ops->upload(device, to, from, n_bytes, err)
                       : device->ops->download(device, to, from, n_bytes, err);
    device->ops->leave(device, &scope);
    return status;
}

frt_status frt_copy_to_device(frt_program *program, void *to, const void *from, size_t n_bytes,
                              frt_error *err) {
    return move(program, true, to, from, n_bytes, err);
}

frt_status frt_copy_from_device(frt_program *program, void *to, const void *from, size_t n_bytes,
                                frt_error *err) {
    return move(program, false, to, from, n_bytes, err);
}

frt_status frt_sync(frt_program *program, void *stream, frt_error *err) {
    if (!program) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no program");
    }
    Device *device = &program->device;
    DeviceScope scope;
    frt_status status = device->ops->enter(device, &scope, err);
    if (status) {
        return status;
    }
    status = device->ops->sync(device, stream, err);
    device->ops->leave(device, &scope);
    return status;
}
