/* Code common to both kinds of device: options and the allocator hook. */
#include "device/device.h"

#include "host/error.h"
#include "host/pool.h"

#include <string.h>

frt_status options_read(const frt_program_options *options, frt_program_options *full,
                        frt_error *err) {
    *full = (frt_program_options){.struct_size = sizeof *full};
    if (!options) {
        return FRT_OK;
    }
    size_t n = options->struct_size;
    if (n < sizeof n || n > sizeof *full) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT,
                        "options.struct_size is %zu, this runtime knows up to %zu", n,
                        sizeof *full);
    }
    memcpy(full, options, n);
    bool has_hook = full->allocator.alloc != NULL;
    if (has_hook != (full->allocator.free != NULL)) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT,
                        "options.allocator needs both alloc and free, or neither");
    }
    if (full->n_threads < 0 || full->n_threads > POOL_MAX_THREADS) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "options.n_threads is %d, not 0 to %d",
                        full->n_threads, POOL_MAX_THREADS);
    }
    return FRT_OK;
}

frt_status device_open(Device *device, const frt_module *module, const frt_program_options *options,
                       frt_error *err) {
    static const DeviceOps *const ops_of[] = {
#define TARGET(SYM, lower, ...) [FRT_TARGET_KIND_##SYM] = &device_##lower##_ops,
#include "manifest/targets.def"
    };
    const DeviceOps *ops = ops_of[module->manifest.target];
    *device = (Device){.allocator = options->allocator, .n_threads = 1, .n_loaders = 1};
    frt_status status = ops->open(device, module, options, err);
    if (!status) {
        device->ops = ops;
    }
    return status;
}

void device_close(Device *device) {
    if (device->ops) {
        device->ops->close(device);
        device->ops = NULL;
    }
}

/* A tensor without elements needs memory too: a kernel whose guards are off reads its start. */
static size_t allocated_bytes(size_t n_bytes) {
    return n_bytes ? n_bytes : FRT_ALIGNMENT;
}

frt_status device_alloc(Device *device, size_t n_bytes, void **data, frt_error *err) {
    size_t n = allocated_bytes(n_bytes);
    const frt_allocator *hook = &device->allocator;
    if (!hook->alloc) {
        return device->ops->alloc(device, n, data, err);
    }
    void *memory = hook->alloc(hook->ctx, n);
    if (!memory) {
        return frt_fail(err, FRT_E_OUT_OF_MEMORY,
                        "the caller's allocator has no %zu bytes of device memory", n);
    }
    if ((uintptr_t)memory % FRT_ALIGNMENT != 0) {
        hook->free(hook->ctx, memory, n);
        return frt_fail(err, FRT_E_ALIGNMENT,
                        "the caller's allocator gave memory that is not aligned to %d bytes",
                        FRT_ALIGNMENT);
    }
    *data = memory;
    return FRT_OK;
}

void device_free(Device *device, void *data, size_t n_bytes) {
    if (!data) {
        return;
    }
    if (device->allocator.free) {
        device->allocator.free(device->allocator.ctx, data, allocated_bytes(n_bytes));
    } else {
        device->ops->free(device, data);
    }
}
