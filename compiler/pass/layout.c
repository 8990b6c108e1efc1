/* Preparing factors of contractions. See layout.h. */
#include "pass/layout.h"

#include "pass/prepare.h"
#include "pass/rebuild.h"
#include "pass/sched_gemm.h"

#include <string.h>

enum {
    ACCESS_BYTES = 16, /* GPU: the widest access, which wants addresses that are its multiples */
    LINE_BYTES = 128,  /* GPU: what rows are padded to */
    MAX_GROWTH = 2,    /* how many times as large padding may make a matrix */
    MAX_SHARED_SCALARS = 16
};

/* A layout of a factor, as a function of its own axis (m or n), k and the batch. */
typedef struct Wish {
    bool is_left;
    uint32_t axis;
    bool in_panels;
    uint32_t inner; /* rows: the axis along which elements lie side by side */
    int64_t width;  /* panels: columns of one; rows: padded to a multiple of this */
} Wish;

/* A prepared factor, and the text of how it is computed. */
typedef struct Made {
    const char *text;
    uint32_t buffer;
} Made;

typedef struct Layout {
    Arena *arena;
    Plan *plan;
    const Target *target;
    DimTab *dims;
    Vec(Made) made;
} Layout;

/* The kernel that prepares a factor, being made, and the address at which the contraction finds
 * an element. */
typedef struct Packer {
    Layout *layout;
    const Kernel *gemm;
    Wish wish;
    ScalarId value;
    IndexTab *from, *to;
    ScalarTab *scalars;
    Rebuild rebuild;
    Shape shape;
    IndexId store, load; /* addresses, in `to` and in `from` */
} Packer;

static ScalarId *factor_of(const Kernel *gemm, const Wish *wish) {
    Reduce *reduce = &gemm->reduces.data[0];
    return wish->is_left ? &reduce->value : &reduce->factor;
}

/* Whether the factor is read from params and what init steps make of them, and nothing else. */
static bool comes_from_params(const Layout *l, const Kernel *gemm, ScalarId value) {
    Kernel part = {.scalars = gemm->scalars};
    vec_push(l->arena, &part.reduces, (Reduce){.value = value});
    const bool *live = kernel_live_scalars(l->arena, &part);
    bool any = false;
    for (ScalarId id = 1; id <= scalar_count(gemm->scalars); id++) {
        const Scalar *s = scalar_get(gemm->scalars, id);
        if (!live[id]) continue;
        if (s->kind == SCALAR_STAGE || s->kind == SCALAR_EXTREME) return false;
        if (s->kind != SCALAR_LOAD) continue;
        BufferKind kind = l->plan->buffers.data[s->buffer].kind;
        if (kind != BUFFER_PARAM && kind != BUFFER_PREPARED) return false;
        any = true;
    }
    return any;
}

/* One more axis of the prepared buffer, inside the ones so far. Returns the index along it in `to`;
 * `at` is the same in `from`. */
static IndexId add_axis(Packer *p, DimId extent, IndexId at) {
    IndexId own = index_axis(p->to, index_new_axis(p->to, extent));
    p->store = index_add(p->to, index_scale(p->to, p->store, extent), own);
    p->load = index_add(p->from, index_scale(p->from, p->load, extent), at);
    p->shape.dims[p->shape.rank++] = extent;
    return own;
}

/* The batches that the factor depends on, as one axis of the buffer's shape. */
static void add_batches(Packer *p) {
    DimTab *dims = p->layout->dims;
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

/* Returns what guards the elements that are no padding. */
static GuardId add_panels(Packer *p) {
    DimTab *dims = p->layout->dims;
    DimId width = dim_const(dims, p->wish.width), zero = dim_const(dims, 0);
    uint32_t axis = p->wish.axis, k = gemm_axis_k(p->gemm);
    DimId extent = index_axis_extent(p->from, axis);
    IndexId column = index_axis(p->from, axis);
    DimId n_panels = dim_ceil_div(dims, extent, p->wish.width);
    IndexId panel = add_axis(p, n_panels, index_div(p->from, column, width));
    p->rebuild.axes[k] = add_axis(p, index_axis_extent(p->from, k), index_axis(p->from, k));
    IndexId lane = add_axis(p, width, index_mod(p->from, column, width));
    p->rebuild.axes[axis] = index_add(p->to, index_scale(p->to, panel, width), lane);
    return guard_and(p->scalars, GUARD_NONE, p->rebuild.axes[axis], zero, extent);
}

static DimId padded(DimTab *dims, DimId extent, int64_t width) {
    DimId blocks = dim_ceil_div(dims, extent, width);
    return blocks == DIM_NONE ? DIM_NONE : dim_mul_const(dims, blocks, width);
}

static GuardId add_rows(Packer *p) {
    DimTab *dims = p->layout->dims;
    uint32_t k = gemm_axis_k(p->gemm), inner = p->wish.inner, outer = inner == k ? p->wish.axis : k;
    DimId extent = index_axis_extent(p->from, inner);
    p->rebuild.axes[outer] =
        add_axis(p, index_axis_extent(p->from, outer), index_axis(p->from, outer));
    DimId pitch = padded(dims, extent, p->wish.width);
    IndexId at = add_axis(p, pitch, index_axis(p->from, inner));
    p->rebuild.axes[inner] = at;
    return guard_and(p->scalars, GUARD_NONE, at, dim_const(dims, 0), extent);
}

/* The factor's elements, zeros in the padding. */
static ScalarId add_value(Packer *p) {
    p->store = index_dim(p->to, dim_const(p->layout->dims, 0));
    p->load = index_dim(p->from, dim_const(p->layout->dims, 0));
    add_batches(p);
    p->rebuild.guard = p->wish.in_panels ? add_panels(p) : add_rows(p);
    ScalarId value = rebuild_scalar(&p->rebuild, p->value);
    ScalarId zero = scalar_const(p->scalars, scalar_get(p->scalars, value)->dtype, 0);
    return scalar_prim(p->scalars, PRIM_SELECT, scalar_inside(p->scalars, p->rebuild.guard), value,
                       zero);
}

static Str pack_name(const Layout *l, const Kernel *gemm, const Wish *wish) {
    Str name = str_format(l->arena, "%s_%s", gemm->name, wish->is_left ? "left" : "right");
    for (uint32_t i = 0; i < l->plan->kernels.n; i++)
        if (strcmp(l->plan->kernels.data[i].name, name) == 0)
            return str_format(l->arena, "%s_own", name);
    return name;
}

/* The text of a short program; NULL of one that is too long to be compared. */
static const char *text_of(const Packer *p, ScalarId value) {
    Text text = {.arena = p->layout->arena};
    if (scalar_count(p->scalars) > MAX_SHARED_SCALARS) return NULL;
    for (uint32_t axis = 0; axis < index_n_axes(p->to); axis++)
        text_printf(&text, "%u ", index_axis_extent(p->to, axis));
    scalar_print(p->scalars, value, &text);
    return text_str(&text);
}

static uint32_t find_made(const Layout *l, const char *text) {
    for (uint32_t i = 0; text && i < l->made.n; i++)
        if (l->made.data[i].text && strcmp(l->made.data[i].text, text) == 0)
            return l->made.data[i].buffer;
    return UINT32_MAX;
}

/* Adds the init kernel and its buffer; UINT32_MAX when the value needs a dim that params leave
 * open, or would be too large. */
static uint32_t add_init(Packer *p, ScalarId value) {
    Layout *l = p->layout;
    Buffer buffer = {.kind = BUFFER_PREPARED,
                     .dtype = scalar_get(p->scalars, value)->dtype,
                     .shape = p->shape,
                     .node = p->gemm->reduces.data[0].node,
                     .offset_bytes = dim_const(l->dims, 0)};
    Kernel pack = {.name = pack_name(l, p->gemm, &p->wish),
                   .span = p->gemm->span,
                   .is_init = true,
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
    bool is_open = (pack.symbols & ~graph_param_symbols(l->plan->graph)) != 0;
    if (is_open || buffer_bytes(l->dims, &buffer) == DIM_NONE) return UINT32_MAX;
    vec_push(l->arena, &l->plan->buffers, buffer);
    vec_push(l->arena, &l->plan->kernels, pack);
    return l->plan->buffers.n - 1;
}

static bool prepare_factor(Layout *l, uint32_t gemm, Wish wish) {
    Kernel kernel = l->plan->kernels.data[gemm];
    ScalarId *factor = factor_of(&kernel, &wish);
    if (!comes_from_params(l, &kernel, *factor)) return false;
    Packer p = {.layout = l,
                .gemm = &kernel,
                .wish = wish,
                .value = *factor,
                .from = scalartab_indices(kernel.scalars),
                .to = indextab_new(l->arena, l->dims)};
    p.scalars = scalartab_new(l->arena, p.to);
    p.rebuild = (Rebuild){.arena = l->arena, .from = kernel.scalars, .to = p.scalars};
    ScalarId value = add_value(&p);
    const char *text = text_of(&p, value);
    uint32_t buffer = find_made(l, text);
    if (buffer == UINT32_MAX) {
        buffer = add_init(&p, value);
        if (buffer == UINT32_MAX) return false;
        vec_push(l->arena, &l->made, (Made){text, buffer});
    }
    Dtype dtype = l->plan->buffers.data[buffer].dtype;
    *factor = scalar_load(kernel.scalars, dtype, buffer, p.load, GUARD_NONE);
    kernel_note_interface(l->arena, &l->plan->kernels.data[gemm]);
    return true;
}

static bool lay_out_cpu(Layout *l, uint32_t gemm) {
    const Kernel *kernel = &l->plan->kernels.data[gemm];
    GemmPanel panel = sched_gemm_cpu_panel(kernel, l->target);
    Wish wish = {.is_left = panel.axis == gemm_axis_m(kernel),
                 .axis = panel.axis,
                 .in_panels = true,
                 .width = panel.width};
    int64_t n_columns;
    DimId extent = index_axis_extent(scalartab_indices(kernel->scalars), panel.axis);
    bool is_thin =
        dim_is_const(l->dims, extent, &n_columns) && MAX_GROWTH * n_columns < (int64_t)panel.width;
    if (is_thin || !prepare_factor(l, gemm, wish)) return false;
    l->plan->kernels.data[gemm].panel_columns = panel.width;
    return true;
}

/* Whether the factor is a plain matrix with rows along `axis` that wide accesses cannot follow. */
static bool has_odd_rows(const Layout *l, const Kernel *gemm, ScalarId value, uint32_t axis) {
    const Scalar *s = scalar_get(gemm->scalars, value);
    IndexTab *tab = scalartab_indices(gemm->scalars);
    int64_t wide = ACCESS_BYTES / dtype_bytes(s->dtype);
    if (s->kind != SCALAR_LOAD || s->guard) return false;
    if (index_lane_motion(tab, s->index, axis, 2) != LANES_CONTIGUOUS) return false;
    DimId extent = index_axis_extent(tab, axis);
    DimId pitch = padded(l->dims, extent, LINE_BYTES / dtype_bytes(s->dtype));
    return pitch && dim_hi(l->dims, pitch) <= MAX_GROWTH * dim_lo(l->dims, extent) &&
           !index_is_multiple(tab, s->index, axis, wide);
}

static bool lay_out_gpu(Layout *l, uint32_t gemm) {
    bool any = false;
    if (!sched_gemm_gpu_copies(l->plan, &l->plan->kernels.data[gemm])) return false;
    for (int is_left = 0; is_left < 2; is_left++) {
        const Kernel *kernel = &l->plan->kernels.data[gemm];
        uint32_t own = is_left ? gemm_axis_m(kernel) : gemm_axis_n(kernel);
        const uint32_t inner[2] = {gemm_axis_k(kernel), own};
        Wish wish = {.is_left = is_left == 1, .axis = own};
        ScalarId value = *factor_of(kernel, &wish);
        for (int i = 0; i < 2; i++) {
            if (!has_odd_rows(l, kernel, value, inner[i])) continue;
            wish.inner = inner[i];
            wish.width = LINE_BYTES / dtype_bytes(scalar_get(kernel->scalars, value)->dtype);
            any = prepare_factor(l, gemm, wish) || any;
            break;
        }
    }
    return any;
}

void layout_plan(Arena *arena, Plan *plan, const Target *target) {
    Layout l = {.arena = arena, .plan = plan, .target = target, .dims = plan->graph->dims};
    bool any = false;
    for (uint32_t i = 0, n = plan->kernels.n; i < n; i++) {
        const Kernel *kernel = &plan->kernels.data[i];
        if (kernel->form != FORM_CONTRACT || kernel->is_init) continue;
        any = (target->device == DEVICE_CPU ? lay_out_cpu(&l, i) : lay_out_gpu(&l, i)) || any;
    }
    if (any) prepare_order(arena, plan);
}
