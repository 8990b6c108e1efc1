/* Values that a kernel cannot store where it computes them, the operands of a contraction: a map of
 * its own computes them by a copy of the kernel's scalar program. It reads what the kernel reads,
 * just before it, so that nothing else moves. See tap.h. */
#include "pass/tap_map.h"

#include "pass/rebuild.h"

#include <string.h>

static void insert(Arena *arena, Plan *plan, uint32_t at, Kernel kernel) {
    vec_push(arena, &plan->kernels, kernel);
    Kernel *kernels = plan->kernels.data;
    memmove(kernels + at + 1, kernels + at, (plan->kernels.n - 1 - at) * sizeof *kernels);
    kernels[at] = kernel;
}

void tap_map(Arena *arena, Plan *plan, const Kernel *kernel, const Tap *tap,
             const uint32_t *buffers) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    IndexTab *indices = indextab_new(arena, indextab_dims(tab));
    Rebuild rebuild = {.arena = arena, .from = kernel->scalars};
    rebuild.to = scalartab_new(arena, indices);
    Kernel map = {.name = str_format(arena, "%s_tap%u", kernel->name, tap->trace),
                  .span = kernel->span,
                  .form = FORM_MAP,
                  .n_parallel = tap->n_axes,
                  .first_reduced = tap->n_axes,
                  .segment_axis = NO_AXIS,
                  .scalars = rebuild.to};

    IndexId at = index_dim(indices, dim_const(indextab_dims(tab), 0));
    for (uint32_t k = 0; k < tap->n_axes; k++) {
        DimId extent = index_axis_extent(tab, tap->axes[k]);
        uint32_t axis = index_new_axis(indices, extent);
        rebuild.axes[tap->axes[k]] = index_axis(indices, axis);
        at = index_add(indices, index_scale(indices, at, extent), rebuild.axes[tap->axes[k]]);
    }
    Stage stage = {.reduces = {.n = 0}};
    for (uint32_t i = 0; i < tap->scalars.n; i++)
        vec_push(arena, &stage.stores,
                 (Store){.buffer = buffers[i],
                         .address = at,
                         .value = rebuild_scalar(&rebuild, tap->scalars.data[i]),
                         .node = kernel->traces.data[tap->trace].node});
    vec_push(arena, &map.stages, stage);
    kernel_note_interface(arena, &map);
    insert(arena, plan, tap->kernel, map);
}
