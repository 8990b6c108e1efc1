/* Copies operands of GEMMs into a better layout. See layout.h. */
#include "layout/layout.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "layout/pack.h"
#include "layout/pack_dynamic.h"
#include "layout/pad.h"
#include "layout/pad_dynamic.h"
#include "layout/price.h"
#include "template/wgmma.h"
#include "schedule/gemm.h"
#include "template/find_im2col.h"

typedef struct Layout {
    const Planning *planning;
    Packing packing;
    const Target *target;
} Layout;

/* Whether the operand depends only on params and on prepared buffers. */
static bool comes_from_params(const Packing *p, const Kernel *gemm, ScalarId value) {
    const bool *live = kernel_needed_scalars(p->arena, gemm, &value, 1);
    bool any = false;
    for (ScalarId id = 1; id <= scalar_count(gemm->scalars); id++) {
        const Scalar *s = scalar_get(gemm->scalars, id);
        if (!live[id]) continue;
        if (s->kind == SCALAR_STAGE || s->kind == SCALAR_EXTREME) return false;
        if (s->kind != SCALAR_LOAD) continue;
        BufferKind kind = p->plan->buffers.data[s->buffer].kind;
        if (kind != BUFFER_PARAM && kind != BUFFER_PREPARED) return false;
        any = true;
    }
    return any;
}

static bool prepare_operand(Layout *l, uint32_t gemm, PackRequest request) {
    const Kernel *kernel = &l->packing.plan->kernels.data[gemm];
    ScalarId value = *gemm_operand(kernel, request.is_left);
    return comes_from_params(&l->packing, kernel, value) &&
           pack_operand(&l->packing, gemm, request);
}

static bool lay_out_cpu(Layout *l, uint32_t gemm) {
    Kernel *kernel = &l->packing.plan->kernels.data[gemm];
    GemmPanel panel;
    if (!sched_cpu_gemm_panel(kernel, l->target, &panel)) return false;
    PackRequest request = {.is_left = panel.axis == gemm_axis_m(kernel),
                           .axis = panel.axis,
                           .in_panels = true,
                           .width = panel.width};
    int64_t n_columns;
    DimId extent = kernel_axis_extent(kernel, panel.axis);
    bool is_thin = dim_is_const(l->packing.dims, extent, &n_columns) &&
                   LAYOUT_MOST_GROWTH * n_columns < (int64_t)panel.width;
    if (is_thin || !prepare_operand(l, gemm, request)) return false;
    l->packing.plan->kernels.data[gemm].panel_columns = panel.width;
    return true;
}

/* Copies an operand made of params whose rows are not aligned. Extents of params are usually known.
 * If one is unknown, the operand stays as it is, because an init kernel could not decide either. */
static bool prepare_rows(Layout *l, uint32_t gemm, bool is_left) {
    const Kernel *kernel = &l->packing.plan->kernels.data[gemm];
    DimTab *dims = l->packing.dims;
    OperandRows rows = gemm_operand_rows(kernel, is_left);
    if (!rows.is_plain || rows.fit) return false;
    DimId pitch = dim_round_up(dims, rows.extent, LINE_BYTES / rows.elem_bytes);
    uint32_t k = gemm_axis_k(kernel), across = rows.inner == k ? rows.axis : k;
    DimId n_elems = dim_mul(dims, pitch, kernel_axis_extent(kernel, across));
    bool is_small =
        n_elems != DIM_NONE && dim_hi(dims, n_elems) <= LAYOUT_SMALL_BYTES / rows.elem_bytes;
    if (pitch == DIM_NONE ||
        (!is_small && dim_hi(dims, pitch) > LAYOUT_MOST_GROWTH * dim_lo(dims, rows.extent)))
        return false;
    return prepare_operand(l, gemm,
                           (PackRequest){.is_left = is_left,
                                         .axis = rows.axis,
                                         .inner = rows.inner,
                                         .pitch = pitch,
                                         .stored = pitch});
}

static PackRequest along_k(const Packing *p, const Kernel *gemm, bool is_left) {
    uint32_t k = gemm_axis_k(gemm);
    DimId extent = kernel_axis_extent(gemm, k);
    DimId pitch = pad_pitch(p->dims, extent, gemm_operand_dtype(gemm));
    return (PackRequest){.is_left = is_left,
                         .axis = is_left ? gemm_axis_m(gemm) : gemm_axis_n(gemm),
                         .inner = k,
                         .pitch = pitch,
                         .stored = pitch};
}

/* Finds the layout along k, the only one in which tensor cores read 32-bit and 8-bit operands.
 * False if the operand already has this layout. */
static bool find_along_k(const Packing *p, uint32_t gemm, bool is_left, PackRequest *request) {
    const Kernel *kernel = &p->plan->kernels.data[gemm];
    OperandRows rows = gemm_operand_rows(kernel, is_left);
    if (rows.is_plain && rows.inner == gemm_axis_k(kernel) && rows.fit) return false;
    if (is_left &&
        im2col_find(kernel, p->plan->buffers.data, wgmma_depth(gemm_operand_dtype(kernel))))
        return false;
    bool is_param = comes_from_params(p, kernel, *gemm_operand(kernel, is_left));
    *request = along_k(p, kernel, is_left);
    request->phase = is_param ? PACK_INIT : PACK_RUN;
    return true;
}

/* Whether the copies that every run makes are faster at all cost points. */
static bool pays(Layout *l, uint32_t gemm, const PackRequest *requests, uint32_t n) {
    CostPoints points = cost_points(l->packing.arena, l->packing.dims, l->target->has);
    LayoutPrices prices;
    bool is_copied = false;
    for (uint32_t i = 0; i < n; i++) is_copied = is_copied || requests[i].phase == PACK_RUN;
    return !is_copied ||
           (layout_price(l->planning, &l->packing, gemm, requests, n, &points, &prices) &&
            prices_are_better(&points, &prices.as_is, &prices.laid_out, &prices.as_is));
}

/* Returns the number of operands that need another layout; 0 also if one of them cannot be copied,
 * because the other copy alone is of no use. */
static uint32_t find_requests(const Packing *p, uint32_t gemm,
                              PackRequest requests[MAX_PACK_REQUESTS]) {
    uint32_t n = 0;
    for (int is_left = 0; is_left < 2; is_left++) {
        if (!find_along_k(p, gemm, is_left, &requests[n])) continue;
        if (requests[n++].pitch == DIM_NONE) return 0;
    }
    return n;
}

/* Copies both operands so that they lie along k, or neither. */
static bool lay_out_along_k(Layout *l, uint32_t gemm) {
    PackRequest requests[MAX_PACK_REQUESTS];
    uint32_t n = find_requests(&l->packing, gemm, requests);
    bool any = false;
    if (!n || !pays(l, gemm, requests, n)) return false;
    for (uint32_t i = 0; i < n; i++) any = pack_operand(&l->packing, gemm, requests[i]) || any;
    return any;
}

/* Whether the GEMM wants both operands along k: bytes for any tensor cores, tf32 for wgmma. */
static bool wants_along_k(const Layout *l, const Kernel *kernel) {
    if (!form_info(kernel->form)->multiplies || kernel->is_init) return false;
    bool is_tf32 = kernel->reduces.data[0].precision == PRECISION_TF32;
    return ((is_tf32 && l->target->has_wgmma) || dtype_bytes(gemm_operand_dtype(kernel)) == 1) &&
           sched_gpu_gemm_copies(l->packing.plan, kernel);
}

/* For GEMMs whose operands were left as they are: adds copies that pay at some extents only. The
 * loop runs from the last kernel, because an addition moves the kernels after it. */
static bool lay_out_at_some(Layout *l) {
    Plan *plan = l->packing.plan;
    bool any = false;
    for (uint32_t k = plan->kernels.n; k-- > 0;) {
        PackRequest requests[MAX_PACK_REQUESTS];
        if (!wants_along_k(l, &plan->kernels.data[k])) continue;
        uint32_t n = find_requests(&l->packing, k, requests);
        Packing own = {.arena = l->packing.arena, .plan = plan, .dims = l->packing.dims};
        any = (n && layout_where_it_pays(l->planning, &own, k, requests, n)) || any;
    }
    return any;
}

static bool lay_out_gpu(Layout *l, uint32_t gemm) {
    const Kernel *kernel = &l->packing.plan->kernels.data[gemm];
    if (!sched_gpu_gemm_copies(l->packing.plan, kernel)) return false;
    if (wants_along_k(l, kernel)) return lay_out_along_k(l, gemm);
    bool right = prepare_rows(l, gemm, false);
    bool left = prepare_rows(l, gemm, true);
    bool copied = pad_dynamic_copy_operands(&l->packing, gemm, l->target);
    return right || left || copied;
}

bool layout_pass(const Planning *p, PlanUnit *unit) {
    Plan *plan = unit->plan;
    const Target *target = p->target;
    Layout l = {.planning = p,
                .packing = {.arena = p->arena, .plan = plan, .dims = plan->graph->dims},
                .target = target};
    bool any = false;
    uint32_t n = plan->kernels.n;
    for (uint32_t i = 0; i < n; i++) {
        const Kernel *kernel = &plan->kernels.data[i];
        if (!form_info(kernel->form)->multiplies || kernel->is_init) continue;
        any = (target->has->tile_copies ? lay_out_gpu(&l, i) : lay_out_cpu(&l, i)) || any;
    }
    if (any) pad_dynamic_place_copies(p->scratch, plan, n);
    any = (target->has->tile_copies && lay_out_at_some(&l)) || any;
    if (any) plan_order_init(p->arena, plan);
    return true;
}
