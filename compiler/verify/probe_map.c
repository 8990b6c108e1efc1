/* Probes of values that a kernel cannot store where it computes them: operands of a GEMM. A
 * separate map computes them from a copy of the kernel's scalar program. It reads the kernel's
 * inputs just before the kernel runs, so no other kernel moves. Also copies of buffers that no run
 * writes. See probe.h. */
#include "verify/probe_map.h"

#include "plan/rebuild.h"

#include <string.h>

static Kernel new_map(Arena *arena, DimTab *dims, Str name, Span span) {
    return (Kernel){.name = name,
                    .span = span,
                    .form = FORM_MAP,
                    .segment_axis = NO_AXIS,
                    .scalars = scalartab_new(arena, indextab_new(arena, dims))};
}

static IndexId add_axis(Kernel *map, DimId extent) {
    IndexTab *tab = scalartab_indices(map->scalars);
    map->first_reduced = ++map->n_parallel;
    return index_axis(tab, index_new_axis(tab, extent));
}

/* Inserts a map with a stage of stores. */
static void insert(Arena *arena, Plan *plan, uint32_t at, Kernel map, Stage stage) {
    vec_push(arena, &map.stages, stage);
    kernel_note_interface(arena, &map);
    vec_push(arena, &plan->kernels, map);
    Kernel *kernels = plan->kernels.data;
    memmove(kernels + at + 1, kernels + at, (plan->kernels.n - 1 - at) * sizeof *kernels);
    kernels[at] = map;
}

void probe_map(Arena *arena, Plan *plan, const Kernel *kernel, const Probe *probe,
               const uint32_t *buffers) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    Kernel map = new_map(arena, dims, str_format(arena, "%s_tap%u", kernel->name, probe->trace),
                         kernel->span);
    IndexTab *own = scalartab_indices(map.scalars);
    Rebuild rebuild = {.arena = arena, .from = kernel->scalars, .to = map.scalars};
    IndexId at = index_dim(own, dim_const(dims, 0));
    map.is_init = kernel->is_init;
    for (uint32_t i = 0; i < probe->n_axes; i++) {
        DimId extent = index_axis_extent(tab, probe->axes[i]);
        IndexId axis = add_axis(&map, extent);
        rebuild.axes[probe->axes[i]] = axis;
        at = index_add(own, index_scale(own, at, extent), axis);
    }
    Stage stage = {.reduces = {.n = 0}};
    for (uint32_t i = 0; i < probe->scalars.n; i++)
        vec_push(arena, &stage.stores,
                 (Store){.buffer = buffers[i],
                         .address = at,
                         .value = rebuild_scalar(&rebuild, probe->scalars.data[i]),
                         .node = kernel->traces.data[probe->trace].node});
    insert(arena, plan, probe->kernel, map, stage);
}

void probe_copy(Arena *arena, Plan *plan, uint32_t buffer, Str name) {
    DimTab *dims = plan->graph->dims;
    Buffer output = plan->buffers.data[buffer];
    DimId n = dim_const(dims, 1);
    for (uint32_t k = 0; k < output.shape.rank; k++) n = dim_mul(dims, n, output.shape.dims[k]);
    output.kind = BUFFER_OUTPUT;
    output.name = name;
    output.shape = (Shape){.rank = 1, .dims = {n}};
    uint32_t to = plan_add_buffer(arena, plan, output);

    Str own = str_format(arena, "%s_copy%u", plan->graph->name, plan->kernels.n);
    Kernel map = new_map(arena, dims, own, (Span){0});
    IndexId at = add_axis(&map, n);
    Stage stage = {.reduces = {.n = 0}};
    vec_push(arena, &stage.stores,
             (Store){.buffer = to,
                     .address = at,
                     .value = scalar_load(map.scalars, output.dtype, buffer, at, GUARD_NONE),
                     .node = output.node});
    insert(arena, plan, plan->kernels.n, map, stage);
}
