/* See compiled.h. */
#include "lib/compiled.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

Compiled compiled_new(const char *source, TargetId target) {
    return compiled_as(source, target, COMPILE_FUSED);
}

Compiled compiled_as(const char *source, TargetId target, CompileMode mode) {
    Compiled compiled;
    bool ok = compile_source(&compiled, source, target_get(target), mode);
    cr_assert(ok, "%s\n%s", compiled.messages, source);
    return compiled;
}

bool compiled_assemble(const Compiled *compiled, PtxOptions options, PtxReport *report) {
    options.target = compiled->driver.options.target->name;
    return ptx_assemble(compiled->driver.arena, compiled->bytes, compiled->n_bytes, options,
                        report);
}

bool compiled_is_in_registers(const Compiled *compiled) {
    PtxReport report;
    return !compiled_assemble(compiled, (PtxOptions){0}, &report) || ptx_is_in_registers(&report);
}

const char *compiled_function(const Compiled *compiled, const Kernel *kernel, uint32_t variant) {
    return ptx_function_text(compiled->driver.arena, compiled->bytes,
                             kernel->variants[variant].symbol);
}

void compiled_open(const Compiled *compiled, Rig *rig, const char *graph) {
    RigOptions options = RIG_OPTIONS_INIT;
    cr_assert(rig_open(rig, compiled->bytes, compiled->n_bytes, graph, &options) &&
                  rig_place(rig, compiled->module->dims, NULL),
              "%s", rig->error);
}

void compiled_set(Rig *rig, const char *name, const void *elements, size_t n_bytes) {
    size_t n_own;
    uint8_t *contents = rig_contents(rig, name, &n_own);
    cr_assert(contents && n_own == n_bytes, "%s has %zu bytes, not %zu", name, n_own, n_bytes);
    memcpy(contents, elements, n_bytes);
}

void compiled_expect_numbers(const Rig *rig, const char *name, Dtype dtype, const double *want) {
    size_t n_bytes, elem_bytes = dtype_bytes(dtype);
    const uint8_t *bytes = rig_result(rig, name, &n_bytes);
    for (size_t k = 0; k < n_bytes / elem_bytes; k++) {
        double got = dtype_load(dtype, bytes + elem_bytes * k);
        cr_expect(got == dtype_round(dtype, want[k]) || (isnan(got) && isnan(want[k])),
                  "%s at %zu: %g, not %g", name, k, got, want[k]);
    }
}
