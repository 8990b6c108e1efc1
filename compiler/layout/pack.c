/* Kernels that copy operands. See pack.h. */
#include "layout/pack.h"
#include "machine/tuning.h"
#include "plan/plan.h"

#include "plan/rebuild.h"

#include <string.h>

/* The copy kernel under construction, and the address at which the GEMM reads an element. */
typedef struct Packer {
    Packing *packing;
    const Kernel *gemm;
    PackRequest request;
    ScalarId value;
    IndexTab *from, *to;
    ScalarTab *scalars;
    Rebuild rebuild;
    Shape shape;
    IndexId store, load; /* addresses in `to` and in `from` */
} Packer;

/* Adds an axis to the new buffer, inside its axes so far. The reader steps over the axis by
 * `pitch`. Returns the index along the axis in `to`; `at` is the same index in `from`. */
static IndexId add_pitched_axis(Packer *p, DimId extent, DimId pitch, IndexId at) {
    IndexId own = index_axis(p->to, index_new_axis(p->to, extent));
    p->store = index_add(p->to, index_scale(p->to, p->store, extent), own);
    p->load = index_add(p->from, index_scale(p->from, p->load, pitch), at);
    p->shape.dims[p->shape.rank++] = extent;
    return own;
}

static IndexId add_axis(Packer *p, DimId extent, IndexId at) {
    return add_pitched_axis(p, extent, extent, at);
}

/* Adds the batch axes that the operand depends on, as one axis of the buffer's shape. */
static void add_batches(Packer *p) {
    DimTab *dims = p->packing->dims;
    uint32_t axes = scalar_get(p->gemm->scalars, p->value)->axes;
    for (uint32_t b = 0; b + 2 < p->gemm->n_parallel; b++) {
        if (!(axes >> b & 1)) continue;
        uint32_t rank = p->shape.rank;
        p->rebuild.axes[b] = add_axis(p, index_axis_extent(p->from, b), index_axis(p->from, b));
        if (rank == 0) continue;
        p->shape.dims[0] = dim_mul(dims, p->shape.dims[0], p->shape.dims[1]);
        p->shape.rank = 1;
    }
}

/* Returns the guard of the elements that are not padding. */
static GuardId add_panels(Packer *p) {
    DimTab *dims = p->packing->dims;
    DimId width = dim_const(dims, p->request.width), zero = dim_const(dims, 0);
    uint32_t axis = p->request.axis, k = gemm_axis_k(p->gemm);
    DimId extent = index_axis_extent(p->from, axis);
    IndexId column = index_axis(p->from, axis);
    DimId n_panels = dim_ceil_div(dims, extent, p->request.width);
    IndexId panel = add_axis(p, n_panels, index_div(p->from, column, width));
    p->rebuild.axes[k] = add_axis(p, index_axis_extent(p->from, k), index_axis(p->from, k));
    IndexId lane = add_axis(p, width, index_mod(p->from, column, width));
    p->rebuild.axes[axis] = index_add(p->to, index_scale(p->to, panel, width), lane);
    return guard_and(p->scalars, GUARD_NONE, p->rebuild.axes[axis], zero, extent);
}

static GuardId add_rows(Packer *p) {
    DimTab *dims = p->packing->dims;
    uint32_t k = gemm_axis_k(p->gemm), inner = p->request.inner,
             outer = inner == k ? p->request.axis : k;
    DimId extent = index_axis_extent(p->from, inner);
    p->rebuild.axes[outer] =
        add_axis(p, index_axis_extent(p->from, outer), index_axis(p->from, outer));
    IndexId at =
        add_pitched_axis(p, p->request.stored, p->request.pitch, index_axis(p->from, inner));
    p->rebuild.axes[inner] = at;
    return guard_and(p->scalars, GUARD_NONE, at, dim_const(dims, 0), extent);
}

/* The operand's elements, with zeros in the padding. */
static ScalarId add_value(Packer *p) {
    p->store = index_dim(p->to, dim_const(p->packing->dims, 0));
    p->load = index_dim(p->from, dim_const(p->packing->dims, 0));
    add_batches(p);
    p->rebuild.guard = p->request.in_panels ? add_panels(p) : add_rows(p);
    ScalarId value = rebuild_scalar(&p->rebuild, p->value);
    ScalarId zero = scalar_const(p->scalars, scalar_get(p->scalars, value)->dtype, 0);
    return scalar_prim(p->scalars, PRIM_SELECT, scalar_inside(p->scalars, p->rebuild.guard), value,
                       zero);
}

static Str pack_name(const Packing *l, const Kernel *gemm, const PackRequest *request) {
    Str name = str_format(l->arena, "%s_%s", gemm->name, request->is_left ? "left" : "right");
    for (uint32_t i = 0; i < l->plan->kernels.n; i++)
        if (strcmp(l->plan->kernels.data[i].name, name) == 0)
            return str_format(l->arena, "%s_own", name);
    return name;
}

/* A text of the operand's program by which equal copies are found; NULL if the program is too long
 * to compare. */
static const char *text_of(const Packer *p, ScalarId value) {
    Text text = {.arena = p->packing->arena};
    if (scalar_count(p->scalars) > LAYOUT_SHARED_SCALARS) return NULL;
    for (uint32_t axis = 0; axis < index_n_axes(p->to); axis++)
        text_printf(&text, "%u ", index_axis_extent(p->to, axis));
    scalar_print(p->scalars, value, &text);
    return text_str(&text);
}

static uint32_t find_made(const Packing *l, const char *text) {
    for (uint32_t i = 0; text && i < l->packed.n; i++)
        if (l->packed.data[i].text && strcmp(l->packed.data[i].text, text) == 0)
            return l->packed.data[i].buffer;
    return UINT32_MAX;
}

/* Adds the kernel and its buffer. Returns UINT32_MAX if the buffer would be too large, or if a
 * prepared buffer needs a dim that params do not determine. */
static uint32_t add_kernel(Packer *p, ScalarId value) {
    Packing *l = p->packing;
    bool is_init = p->request.phase == PACK_INIT;
    Buffer buffer = {.kind = is_init ? BUFFER_PREPARED : BUFFER_TEMP,
                     .dtype = scalar_get(p->scalars, value)->dtype,
                     .shape = p->shape,
                     .node = p->gemm->reduces.data[0].node,
                     .offset_bytes = dim_const(l->dims, 0),
                     .choice = p->request.choice,
                     .source = p->request.source};
    Kernel pack = {.name = pack_name(l, p->gemm, &p->request),
                   .span = p->gemm->span,
                   .is_init = is_init,
                   .form = FORM_MAP,
                   .n_parallel = index_n_axes(p->to),
                   .first_reduced = index_n_axes(p->to),
                   .segment_axis = NO_AXIS,
                   .scalars = p->scalars};
    Stage stage = {0};
    vec_push(l->arena, &stage.stores,
             (Store){.buffer = l->plan->buffers.n,
                     .address = p->store,
                     .value = value,
                     .node = buffer.node});
    vec_push(l->arena, &pack.stages, stage);
    kernel_note_interface(l->arena, &pack);
    bool is_open =
        is_init && pack.symbols && (pack.symbols & ~graph_param_symbols(l->plan->graph)) != 0;
    if (is_open || buffer_bytes(l->dims, &buffer) == DIM_NONE) return UINT32_MAX;
    vec_push(l->arena, &l->plan->buffers, buffer);
    vec_push(l->arena, &l->plan->kernels, pack);
    return l->plan->buffers.n - 1;
}

bool pack_operand(Packing *l, uint32_t gemm, PackRequest request) {
    Kernel kernel = l->plan->kernels.data[gemm];
    ScalarId *operand = gemm_operand(&kernel, request.is_left);
    Packer p = {.packing = l,
                .gemm = &kernel,
                .request = request,
                .value = *operand,
                .from = scalartab_indices(kernel.scalars),
                .to = indextab_new(l->arena, l->dims)};
    p.scalars = scalartab_new(l->arena, p.to);
    p.rebuild = (Rebuild){.arena = l->arena, .from = kernel.scalars, .to = p.scalars};
    ScalarId value = add_value(&p);
    const char *text = text_of(&p, value);
    uint32_t buffer = find_made(l, text);
    if (buffer == UINT32_MAX) {
        buffer = add_kernel(&p, value);
        if (buffer == UINT32_MAX) return false;
        vec_push(l->arena, &l->packed, (PackedOperand){text, buffer});
    }
    Dtype dtype = l->plan->buffers.data[buffer].dtype;
    *operand = scalar_load(kernel.scalars, dtype, buffer, p.load, GUARD_NONE);
    kernel_note_interface(l->arena, &l->plan->kernels.data[gemm]);
    return true;
}
