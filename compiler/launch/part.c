/* See part.h. Kernels are tried with parts; they keep them if kernels with other places then have
 * the same code. Their scalars stay as they were, for everything but the key of the code
 * (launch/dedup.h), the code itself and the manifest. */
#include "launch/part.h"

#include "launch/dedup.h"
#include "plan/launch.h"

/* The bytes of which a part's begin is a multiple, so that its pointer is aligned as the buffer's
 * is, as far as any kernel of the launch asks. */
static int64_t alignment_of(const Plan *plan, const Launch *launch) {
    int64_t most = 1;
    for (uint32_t k = 0; k < launch->n; k++) {
        const Kernel *kernel = launch_kernel(plan, launch, k);
        for (uint32_t v = 0; v < kernel->n_variants; v++) {
            const PredicateTerm *term;
            if (kernel->variants[v].n_maps && most < MAP_STEP_BYTES) most = MAP_STEP_BYTES;
            for (uint32_t n = 0;
                 (term = predicate_term(&kernel->variants[v].predicate, TERM_ALIGNED, n)); n++)
                if (term->of > most) most = term->of;
        }
    }
    return most;
}

/* Whether the launch gets the whole buffer: kernels that pass tiles on may read it by the pointer
 * of one of them, and a copy in shared memory is whole. */
static bool is_whole(const Plan *plan, const Launch *launch, uint32_t buffer) {
    uint32_t n_users = 0;
    if (launch_copies(launch, buffer)) return true;
    for (uint32_t k = 0; k < launch->n; k++)
        n_users += kernel_find_arg(launch_kernel(plan, launch, k), buffer) != NO_ARG;
    return launch_shares_blocks(launch) && !launch_has_one_block(launch) && n_users > 1;
}

/* The least offset of the kernel's loads of the buffer; DIM_NONE if it is not known which is. */
static DimId least_offset(const Kernel *kernel, const bool *live, uint32_t buffer) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    DimId least = DIM_NONE;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (!live[id] || s->kind != SCALAR_LOAD || s->buffer != buffer) continue;
        DimId offset = index_expr(tab, s->index).offset;
        if (!least || dim_prove_le(dims, offset, least))
            least = offset;
        else if (!dim_prove_le(dims, least, offset))
            return DIM_NONE;
    }
    return least;
}

/* Where the kernel's pointer to an argument may begin; DIM_NONE: at its first element. The part has
 * an element at least: a load whose guard is off reads where it begins. */
static DimId begin_of(const Plan *plan, const Launch *launch, const Kernel *kernel,
                      const bool *live, uint32_t arg) {
    DimTab *dims = plan->graph->dims;
    const Buffer *buffer = &plan->buffers.data[kernel->args.data[arg]];
    int64_t unit = alignment_of(plan, launch), constant;
    DimId one = dim_const(dims, 1);
    if (buffer->space != BUFFER_GLOBAL || buffer->choice || buffer->pitch ||
        !kernel_only_reads(kernel, kernel->args.data[arg]) ||
        is_whole(plan, launch, kernel->args.data[arg]))
        return DIM_NONE;
    DimId begin = least_offset(kernel, live, kernel->args.data[arg]);
    unit = unit > dtype_bytes(buffer->dtype) ? unit / dtype_bytes(buffer->dtype) : 1;
    if (begin && dim_is_const(dims, begin, &constant))
        begin = constant < unit ? DIM_NONE : dim_const(dims, constant / unit * unit);
    if (!begin || dim_multiple(dims, begin) % unit || dim_lo(dims, begin) < 0) return DIM_NONE;
    bool has_element =
        dim_prove_le(dims, dim_add(dims, begin, one), shape_n_elems(dims, &buffer->shape));
    return has_element ? begin : DIM_NONE;
}

static bool has_windows(const Kernel *kernel) {
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        for (uint32_t i = 0; i < kernel->variants[v].n_maps; i++)
            if (kernel->variants[v].maps[i].im2col) return true;
    return false;
}

static KernelParts *parts_of(Arena *arena, Arena *scratch, const Plan *plan, const Launch *launch,
                             const Kernel *kernel) {
    KernelParts *parts = NULL;
    const bool *live = kernel_live_scalars(scratch, kernel);
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        DimId begin = begin_of(plan, launch, kernel, live, i);
        if (!begin) continue;
        if (!parts) parts = arena_array(arena, KernelParts, 1);
        parts->begins[i] = begin;
    }
    if (!parts) return NULL;
    parts->scalars = scalartab_copy(arena, kernel->scalars);
    for (uint32_t i = 0; i < kernel->args.n; i++)
        if (parts->begins[i])
            scalartab_move_loads(parts->scalars, kernel->args.data[i], parts->begins[i]);
    return parts;
}

static bool may_have_parts(const Plan *plan, const Launch *launch) {
    bool may = true;
    for (uint32_t k = 0; k < launch->n && may; k++)
        may = !has_windows(launch_kernel(plan, launch, k));
    return may;
}

/* Gives kernels parts. Returns the number of parts. */
static uint32_t try_parts(Arena *arena, Arena *scratch, const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t l = 0; l < plan->launches.n; l++) {
        const Launch *launch = &plan->launches.data[l];
        bool may = may_have_parts(plan, launch);
        for (uint32_t k = 0; k < launch->n && may; k++) {
            Kernel *kernel = &plan->kernels.data[launch->first + k];
            kernel->parts = parts_of(arena, scratch, plan, launch, kernel);
            for (uint32_t i = 0; kernel->parts && i < kernel->args.n; i++)
                n += kernel->parts->begins[i] != DIM_NONE;
        }
    }
    return n;
}

typedef Vec(Kernel *) Kernels;

/* Takes the parts away where all kernels of one code were equal before. `before`: the codes without
 * parts, per kernel. */
static void keep_useful(Arena *scratch, const Kernels *kernels, const uint32_t *before) {
    uint32_t n_codes = 0;
    for (uint32_t i = 0; i < kernels->n; i++)
        if (kernels->data[i]->code >= n_codes) n_codes = kernels->data[i]->code + 1;
    uint32_t *first = arena_array(scratch, uint32_t, n_codes); /* per code: a kernel, plus 1 */
    bool *differ = arena_array(scratch, bool, n_codes);
    for (uint32_t i = 0; i < kernels->n; i++) {
        uint32_t code = kernels->data[i]->code;
        if (!first[code]) first[code] = i + 1;
        differ[code] = differ[code] || before[first[code] - 1] != before[i];
    }
    for (uint32_t i = 0; i < kernels->n; i++)
        if (!differ[kernels->data[i]->code]) kernels->data[i]->parts = NULL;
}

/* Whether the artifact may name so many parts beside its other tensors. */
static bool has_room(const Plan *plan, uint32_t n_parts) {
    uint32_t n_pieces = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        for (uint32_t i = 0; i < plan->kernels.data[k].args.n; i++)
            n_pieces += kernel_arg_begin(&plan->kernels.data[k], i) != DIM_NONE;
    return plan->buffers.n + n_pieces + n_parts <= PLAN_MAX_TENSORS;
}

void parts_classify(const Planning *planning, const Plan *const *plans, uint32_t n_plans) {
    Arena *arena = planning->arena, *scratch = planning->scratch;
    bool has_pdl = planning->target->has_pdl;
    Kernels kernels = {0};
    uint32_t n_parts = 0;
    for (uint32_t p = 0; p < n_plans; p++)
        for (uint32_t k = 0; k < plans[p]->kernels.n; k++)
            vec_push(scratch, &kernels, &plans[p]->kernels.data[k]);
    dedup_classify(scratch, has_pdl, plans, n_plans);
    uint32_t *before = arena_array(scratch, uint32_t, kernels.n);
    for (uint32_t i = 0; i < kernels.n; i++) before[i] = kernels.data[i]->code;
    for (uint32_t p = 0; p < n_plans; p++) {
        uint32_t n = try_parts(arena, scratch, plans[p]);
        bool is_full = n && !has_room(plans[p], n);
        for (uint32_t k = 0; k < plans[p]->kernels.n && is_full; k++)
            plans[p]->kernels.data[k].parts = NULL;
        n_parts += n;
    }
    if (!n_parts) return;
    dedup_classify(scratch, has_pdl, plans, n_plans);
    keep_useful(scratch, &kernels, before);
    dedup_classify(scratch, has_pdl, plans, n_plans);
}
