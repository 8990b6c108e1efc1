/* See part.h. Kernels are tried with parts and constants; they keep those that differ between
 * kernels which then have the same code. Their scalars stay as they were, for everything but the
 * key of the code (launch/dedup.h), the code itself and the manifest. */
#include "launch/part.h"

#include "launch/dedup.h"
#include "plan/launch.h"

#include <string.h>

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

/* Adds the parts of a kernel's buffers. Returns their number. */
static uint32_t add_parts(const Plan *plan, const Launch *launch, const Kernel *kernel,
                          const bool *live, KernelParts *parts) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        parts->begins[i] = begin_of(plan, launch, kernel, live, i);
        n += parts->begins[i] != DIM_NONE;
    }
    return n;
}

/* Whether the kernels have as many arguments as code can have: code generation refuses others. */
static bool may_have_code(const Plan *plan, const Launch *launch) {
    bool may = true;
    for (uint32_t k = 0; k < launch->n && may; k++)
        may = launch_kernel(plan, launch, k)->args.n <= MAX_KERNEL_ARGS;
    return may;
}

static bool may_have_parts(const Plan *plan, const Launch *launch) {
    bool may = may_have_code(plan, launch);
    for (uint32_t k = 0; k < launch->n && may; k++)
        may = !has_windows(launch_kernel(plan, launch, k));
    return may;
}

/* Constants. */

enum {
    PARAM_BYTES = 4096, /* all arguments of a kernel, on any GPU */
    MAP_BYTES = 128     /* one tensor map */
};

/* Whether the code of the launch is the same for any value of its constants. Kernels beside each
 * other have one body if they are equal, and rows after a wgmma GEMM look at the factor of their
 * scores. */
static bool may_have_constants(const Plan *plan, const Launch *launch) {
    bool may = may_have_code(plan, launch) && (launch->n == 1 || launch_shares_blocks(launch));
    for (uint32_t k = 0; k < launch->n && may; k++) {
        const Kernel *kernel = launch_kernel(plan, launch, k);
        for (uint32_t v = 0; v < kernel->n_variants; v++)
            may = may && !template_info(kernel->variants[v].sched.template)->uses_copy_engine;
    }
    return may;
}

/* How many constants the launch can take beside its other arguments. */
static uint32_t room_for_constants(const Plan *plan, const Launch *launch) {
    uint32_t n_bytes = 8 * DIM_MAX_SYMBOLS;
    for (uint32_t k = 0; k < launch->n; k++) {
        const Kernel *kernel = launch_kernel(plan, launch, k);
        uint32_t n_maps = 0;
        for (uint32_t v = 0; v < kernel->n_variants; v++)
            if (kernel->variants[v].n_maps > n_maps) n_maps = kernel->variants[v].n_maps;
        n_bytes += 8 * kernel->args.n + MAP_BYTES * n_maps;
    }
    uint32_t n_room = n_bytes < PARAM_BYTES ? (PARAM_BYTES - n_bytes) / 8 : 0;
    return n_room < MAX_LAUNCH_GIVEN ? n_room : MAX_LAUNCH_GIVEN;
}

static void forbid_store(void *user, const Store *store) {
    bool *is_fixed = user;
    is_fixed[store->value] = true;
}

/* Adds the kernel's constants of 32 or 64 bits that only primitives of one instruction read: the
 * code of others may depend on the value. */
static void add_constants(Arena *scratch, const Kernel *kernel, const bool *live,
                          KernelParts *parts) {
    const ScalarTab *scalars = kernel->scalars;
    uint32_t n = scalar_count(scalars);
    bool *is_fixed = arena_array(scratch, bool, n + (size_t)1);
    bool *is_read = arena_array(scratch, bool, n + (size_t)1);
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        is_fixed[reduce->value] = is_fixed[reduce->rhs] = is_fixed[reduce->arg_index] = true;
        is_fixed[reduce->factor] = true;
        for (uint32_t k = 0; reduce->join && k < reduce->join->n; k++)
            is_fixed[reduce->join->elements[k]] = true;
    }
    kernel_each_store(kernel, forbid_store, is_fixed);
    for (ScalarId id = 1; id <= n; id++) {
        const Scalar *s = scalar_get(scalars, id);
        bool is_plain = s->kind == SCALAR_PRIM && prim_info(s->prim)->cost <= 1;
        for (int i = 0; i < 3 && live[id]; i++) (is_plain ? is_read : is_fixed)[s->args[i]] = true;
    }
    for (ScalarId id = 1; id <= n; id++) {
        const Scalar *s = scalar_get(scalars, id);
        bool is_number = s->kind == SCALAR_CONST && s->number == s->number;
        if (is_number && dtype_bytes(s->dtype) >= 4 && is_read[id] && !is_fixed[id])
            vec_push(scratch, &parts->constants, id);
    }
}

/* A copy with the kernel's scalars for these parts and constants. */
static const KernelParts *parts_new(Arena *arena, const Kernel *kernel, KernelParts parts) {
    parts.scalars = scalartab_copy(arena, kernel->scalars);
    for (uint32_t i = 0; i < kernel->args.n; i++)
        if (parts.begins[i])
            scalartab_move_loads(parts.scalars, kernel->args.data[i], parts.begins[i]);
    for (uint32_t i = 0; i < parts.constants.n; i++)
        scalartab_give(parts.scalars, parts.constants.data[i], i);
    return arena_copy(arena, &parts, sizeof parts);
}

/* Both. */

/* Gives kernels parts and constants, on the scratch arena. Returns the number of parts. */
static uint32_t try_parts(Arena *scratch, const Plan *plan) {
    uint32_t n_parts = 0;
    for (uint32_t l = 0; l < plan->launches.n; l++) {
        const Launch *launch = &plan->launches.data[l];
        bool has_parts = may_have_parts(plan, launch);
        bool has_constants = may_have_constants(plan, launch);
        uint32_t n_room = room_for_constants(plan, launch);
        for (uint32_t k = 0; k < launch->n; k++) {
            Kernel *kernel = &plan->kernels.data[launch->first + k];
            const bool *live = kernel_live_scalars(scratch, kernel);
            KernelParts parts = {.scalars = NULL};
            uint32_t n = has_parts ? add_parts(plan, launch, kernel, live, &parts) : 0;
            if (has_constants) add_constants(scratch, kernel, live, &parts);
            if (launch_n_given(plan, launch, k) + parts.constants.n > n_room) parts.constants.n = 0;
            kernel->parts = n || parts.constants.n ? parts_new(scratch, kernel, parts) : NULL;
            n_parts += n;
        }
    }
    return n_parts;
}

/* All kernels of all plans, each with the number of its code without parts and constants. */
typedef struct Coded {
    const Plan *plan;
    const Launch *launch;
    Kernel *kernel;
    uint32_t before;
} Coded;
typedef Vec(Coded) Kernels;

/* What differs between the kernels of one code. */
typedef struct Class {
    uint32_t first; /* the first kernel, plus 1 */
    bool differs;   /* their codes without parts and constants */
    bool has_parts; /* their parts */
    bool *slots;    /* per slot: their constants */
    bool has_slots; /* any of them */
} Class;

static void note_slots(Class *class, const Kernel *a, const Kernel *b) {
    for (uint32_t i = 0; i < kernel_n_given(a); i++) {
        const Scalar *one = scalar_get(a->scalars, a->parts->constants.data[i]);
        const Scalar *other = scalar_get(b->scalars, b->parts->constants.data[i]);
        bool differs = memcmp(&one->number, &other->number, sizeof one->number) != 0 ||
                       one->whole != other->whole;
        class->slots[i] = class->slots[i] || differs;
        class->has_slots = class->has_slots || differs;
    }
}

static bool parts_differ(const Kernel *a, const Kernel *b) {
    bool differ = false;
    for (uint32_t i = 0; i < a->args.n; i++)
        differ = differ || kernel_part_begin(a, i) != kernel_part_begin(b, i);
    return differ;
}

/* Per code. */
static Class *find_classes(Arena *scratch, const Kernels *kernels) {
    uint32_t n_codes = 0;
    for (uint32_t i = 0; i < kernels->n; i++)
        if (kernels->data[i].kernel->code >= n_codes) n_codes = kernels->data[i].kernel->code + 1;
    Class *classes = arena_array(scratch, Class, n_codes);
    for (uint32_t i = 0; i < kernels->n; i++) {
        const Kernel *kernel = kernels->data[i].kernel;
        Class *class = &classes[kernel->code];
        if (!class->first) {
            class->first = i + 1;
            class->slots = arena_array(scratch, bool, kernel_n_given(kernel));
        }
        const Coded *first = &kernels->data[class->first - 1];
        class->differs = class->differs || first->before != kernels->data[i].before;
        class->has_parts = class->has_parts || parts_differ(first->kernel, kernel);
        note_slots(class, first->kernel, kernel);
    }
    return classes;
}

/* Leaves the kernel what differs in its class, on the arena. */
static const KernelParts *useful_parts(Arena *arena, const Kernel *kernel, const Class *class) {
    KernelParts parts = {.scalars = NULL};
    if (!kernel->parts || !class->differs) return NULL;
    if (class->has_parts) memcpy(parts.begins, kernel->parts->begins, sizeof parts.begins);
    for (uint32_t i = 0; i < kernel_n_given(kernel); i++)
        if (class->slots[i]) vec_push(arena, &parts.constants, kernel->parts->constants.data[i]);
    return class->has_parts || class->has_slots ? parts_new(arena, kernel, parts) : NULL;
}

/* Whether the artifact may name so many parts beside its other tensors. */
static bool has_room(const Plan *plan, uint32_t n_parts) {
    uint32_t n_pieces = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        for (uint32_t i = 0; i < plan->kernels.data[k].args.n; i++)
            n_pieces += kernel_arg_begin(&plan->kernels.data[k], i) != DIM_NONE;
    return plan->buffers.n + n_pieces + n_parts <= PLAN_MAX_TENSORS;
}

static void drop_parts(Arena *scratch, const Plan *plan) {
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        Kernel *kernel = &plan->kernels.data[k];
        KernelParts parts = {.scalars = NULL};
        if (kernel->parts) parts.constants = kernel->parts->constants;
        kernel->parts = parts.constants.n ? parts_new(scratch, kernel, parts) : NULL;
    }
}

static Kernels list_kernels(Arena *scratch, const Plan *const *plans, uint32_t n_plans) {
    Kernels kernels = {0};
    for (uint32_t p = 0; p < n_plans; p++)
        for (uint32_t l = 0; l < plans[p]->launches.n; l++) {
            const Launch *launch = &plans[p]->launches.data[l];
            for (uint32_t k = 0; k < launch->n; k++)
                vec_push(scratch, &kernels,
                         ((Coded){.plan = plans[p],
                                  .launch = launch,
                                  .kernel = &plans[p]->kernels.data[launch->first + k]}));
        }
    return kernels;
}

/* Sets Kernel.code: without parts and constants it is known. */
static void set_codes(DedupCodes *codes, const Kernels *kernels) {
    for (uint32_t i = 0; i < kernels->n; i++) {
        const Coded *coded = &kernels->data[i];
        coded->kernel->code = coded->before;
        if (coded->kernel->parts)
            coded->kernel->code = dedup_code(codes, coded->plan, coded->launch, coded->kernel);
    }
}

void parts_classify(const Planning *planning, const Plan *const *plans, uint32_t n_plans) {
    Arena *scratch = planning->scratch;
    DedupCodes *codes = dedup_codes_new(scratch, planning->target->has_pdl);
    Kernels kernels = list_kernels(scratch, plans, n_plans);
    for (uint32_t i = 0; i < kernels.n; i++) {
        Coded *coded = &kernels.data[i];
        coded->before = dedup_code(codes, coded->plan, coded->launch, coded->kernel);
    }
    for (uint32_t p = 0; p < n_plans; p++) {
        uint32_t n = try_parts(scratch, plans[p]);
        if (n && !has_room(plans[p], n)) drop_parts(scratch, plans[p]);
    }
    set_codes(codes, &kernels);
    const Class *classes = find_classes(scratch, &kernels);
    for (uint32_t i = 0; i < kernels.n; i++) {
        Kernel *kernel = kernels.data[i].kernel;
        kernel->parts = useful_parts(planning->arena, kernel, &classes[kernel->code]);
    }
    set_codes(codes, &kernels);
}
