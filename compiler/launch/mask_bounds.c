/* See mask_bounds.h. The values of masks over one domain are programs in one table, so equal values
 * have equal ids. */
#include "launch/mask_bounds.h"

#include "machine/tuning.h"
#include "plan/launch.h"
#include "plan/rebuild.h"
#include "schedule/schedule.h"
#include "template/mask.h"

enum { LEAST, GREATEST, N_EXTREMES };

/* The extremes of a value, and the row kernel that stores them. */
typedef struct Extremes {
    ScalarId value; /* in the table of its domain */
    Str maker;      /* name of the kernel */
    uint32_t buffers[N_EXTREMES];
    uint32_t zeros; /* what the kernel stores too, i32, an element for each row; or NO_BUFFER */
} Extremes;

/* Values over the same axes: batches, blocks of keys, keys of a block. */
typedef struct Domain {
    DimId batches[MAX_AXES], n_keys;
    uint32_t n_batches, reduced; /* the number of batch axes; the axis of keys in a block */
    IndexId key;
    ScalarTab *scalars;
    Vec(Extremes) known;
} Domain;

enum { MOST_VALUES = 8 }; /* of a launch's masks */

typedef struct Bounder {
    Arena *arena;
    Plan *plan;
    const Target *target;
    Vec(Domain) domains;
    /* Of the launch at hand: indices into the plan's launches and kernels, the latter of the online
     * kernel and of the one that makes its scores. */
    uint32_t launch, online, maker;
    uint32_t row_axis, key_axis; /* of the maker */
    uint32_t n_args, n_made;     /* arguments of its kernels; row kernels in front of it */
    ScalarId values[MOST_VALUES];
    uint32_t n_values;
} Bounder;

static Kernel *maker_of(const Bounder *b) {
    return &b->plan->kernels.data[b->maker];
}

/* Domains. */

/* The batch axes on which the value depends, ascending. Returns their number. */
static uint32_t batch_axes(const Bounder *b, ScalarId value, uint32_t *axes) {
    uint32_t all = scalar_get(maker_of(b)->scalars, value)->axes, n = 0;
    for (uint32_t axis = 0; axis < b->row_axis; axis++)
        if (all >> axis & 1) axes[n++] = axis;
    return n;
}

static DimId n_keys(const Bounder *b) {
    return kernel_axis_extent(maker_of(b), b->key_axis);
}

static DimId n_blocks(const Bounder *b) {
    return dim_ceil_div(b->plan->graph->dims, n_keys(b), ONLINE_BLOCK);
}

/* Whether the value varies along batches and keys alone. */
static bool has_bounds(const Bounder *b, ScalarId value) {
    uint32_t axes = scalar_get(maker_of(b)->scalars, value)->axes;
    uint32_t batches = (1u << b->row_axis) - 1, key = 1u << b->key_axis;
    return axes & key && !(axes & ~(batches | key));
}

/* The position of a key: in the last block, the last one again where there are no more. */
static IndexId key_position(const Domain *domain, uint32_t blocks, uint32_t in_block) {
    IndexTab *tab = scalartab_indices(domain->scalars);
    DimTab *dims = indextab_dims(tab);
    IndexId first = index_scale(tab, index_axis(tab, blocks), dim_const(dims, ONLINE_BLOCK));
    IndexId key = index_add(tab, first, index_axis(tab, in_block));
    if (dim_multiple(dims, domain->n_keys) % ONLINE_BLOCK == 0) return key;
    IndexId end = index_dim(tab, dim_sub(dims, domain->n_keys, dim_const(dims, 1)));
    ScalarId last = scalar_index(domain->scalars, end);
    ScalarId at = scalar_clamp_index(domain->scalars, scalar_index(domain->scalars, key), last);
    return scalar_as_index(domain->scalars, at, domain->n_keys);
}

static Domain *add_domain(Bounder *b, const Domain *like) {
    Domain domain = *like;
    IndexTab *tab = indextab_new(b->arena, b->plan->graph->dims);
    domain.scalars = scalartab_new(b->arena, tab);
    for (uint32_t i = 0; i < domain.n_batches; i++) index_new_axis(tab, domain.batches[i]);
    uint32_t blocks = index_new_axis(tab, n_blocks(b));
    domain.reduced = index_new_axis(tab, dim_const(b->plan->graph->dims, ONLINE_BLOCK));
    domain.key = key_position(&domain, blocks, domain.reduced);
    vec_push(b->arena, &b->domains, domain);
    return &b->domains.data[b->domains.n - 1];
}

/* The domain of the value, which stays until another one is added. */
static Domain *domain_of(Bounder *b, ScalarId value) {
    uint32_t axes[MAX_AXES];
    Domain domain = {.n_keys = n_keys(b), .n_batches = batch_axes(b, value, axes)};
    for (uint32_t i = 0; i < domain.n_batches; i++)
        domain.batches[i] = kernel_axis_extent(maker_of(b), axes[i]);
    for (uint32_t d = 0; d < b->domains.n; d++) {
        Domain *known = &b->domains.data[d];
        if (known->n_keys == domain.n_keys && known->n_batches == domain.n_batches &&
            !memcmp(known->batches, domain.batches, domain.n_batches * sizeof *domain.batches))
            return known;
    }
    return add_domain(b, &domain);
}

/* The value in the table of its domain, as a dtype of indices. */
static ScalarId in_domain(const Bounder *b, const Domain *domain, ScalarId value) {
    uint32_t axes[MAX_AXES], n = batch_axes(b, value, axes);
    Rebuild rebuild = {.arena = b->arena,
                       .from = maker_of(b)->scalars,
                       .to = domain->scalars,
                       .buffer = NO_BUFFER,
                       .instead = NO_BUFFER};
    for (uint32_t i = 0; i < n; i++)
        rebuild.axes[axes[i]] = index_axis(scalartab_indices(domain->scalars), i);
    rebuild.axes[b->key_axis] = domain->key;
    ScalarId copy = rebuild_scalar(&rebuild, value);
    bool is_bool = dtype_is_bool(scalar_get(domain->scalars, copy)->dtype);
    return is_bool ? scalar_cvt(domain->scalars, copy, DT_I32) : copy;
}

/* The row kernels. */

static Kernel new_kernel(const Bounder *b, const Domain *domain) {
    const Kernel *online = &b->plan->kernels.data[b->online];
    Str number = b->n_made ? str_format(b->arena, "%u", b->n_made + 1) : "";
    return (Kernel){.name = str_format(b->arena, "%s_bounds%s", online->name, number),
                    .span = online->span,
                    .form = FORM_ROW,
                    .n_parallel = domain->reduced,
                    .first_reduced = domain->reduced,
                    .n_reduced = 1,
                    .segment_axis = NO_AXIS,
                    .scalars = domain->scalars};
}

static NodeId node_of(const Bounder *b) {
    return b->plan->kernels.data[b->online].reduces.data[0].node;
}

/* Lets the row kernel reduce the value. */
static Extremes add_extremes(const Bounder *b, ScalarId value, Kernel *kernel, uint32_t zeros) {
    static const OpId ops[N_EXTREMES] = {[LEAST] = OP_MIN, [GREATEST] = OP_MAX};
    Extremes extremes = {.value = value, .maker = kernel->name, .zeros = zeros};
    for (uint32_t i = 0; i < N_EXTREMES; i++) {
        ScalarId result = kernel_reduce(b->arena, kernel, node_of(b), ops[i], value);
        extremes.buffers[i] = plan_store_rows(b->arena, b->plan, kernel, node_of(b), result);
    }
    return extremes;
}

/* Lets the row kernel store zeros. Returns their buffer. */
static uint32_t add_zeros(const Bounder *b, Kernel *kernel) {
    ScalarId zero = scalar_const(kernel->scalars, DT_I32, 0);
    return plan_store_rows(b->arena, b->plan, kernel, node_of(b), zero);
}

/* Puts the kernel and a launch of it in front of the launch. */
static void insert(Bounder *b, Kernel kernel) {
    Plan *plan = b->plan;
    kernel_note_interface(b->arena, &kernel);
    sched_kernel(b->arena, plan, &kernel, b->target);
    plan_insert_launch(b->arena, plan, b->launch++, &kernel);
    b->online++, b->maker++;
    b->n_made++;
}

/* Whether a kernel between the maker of the extremes, if it is in the plan, and the launch changes
 * an operand of the maker. */
static bool is_stale(const Bounder *b, const Extremes *extremes) {
    const Plan *plan = b->plan;
    uint32_t k = 0, end = plan->launches.data[b->launch].first;
    while (k < end && plan->kernels.data[k].name != extremes->maker) k++;
    const Kernel *maker = &plan->kernels.data[k];
    for (k++; k < end; k++)
        for (uint32_t i = 0; i < maker->args.n; i++)
            if (kernel_only_reads(maker, maker->args.data[i]) &&
                kernel_stores_to(&plan->kernels.data[k], maker->args.data[i]))
                return true;
    return false;
}

static const Extremes *find_extremes(const Bounder *b, const Domain *domain, ScalarId value) {
    for (uint32_t i = domain->known.n; i-- > 0;)
        if (domain->known.data[i].value == value)
            return is_stale(b, &domain->known.data[i]) ? NULL : &domain->known.data[i];
    return NULL;
}

/* The launches. */

/* The element of the extremes at a key of a block. */
static ScalarId load(const Bounder *b, const Domain *domain, ScalarId value,
                     const Extremes *extremes, uint32_t i) {
    ScalarTab *scalars = maker_of(b)->scalars;
    IndexTab *tab = scalartab_indices(scalars);
    DimTab *dims = indextab_dims(tab);
    uint32_t axes[MAX_AXES], n = batch_axes(b, value, axes);
    IndexId at = index_dim(tab, dim_const(dims, 0)), key = index_axis(tab, b->key_axis);
    for (uint32_t k = 0; k < n; k++) {
        at = index_scale(tab, at, domain->batches[k]);
        at = index_add(tab, at, index_axis(tab, axes[k]));
    }
    at = index_scale(tab, at, n_blocks(b));
    at = index_add(tab, at, index_div(tab, key, dim_const(dims, ONLINE_BLOCK)));
    Dtype dtype = scalar_get(domain->scalars, extremes->value)->dtype;
    return scalar_load(scalars, dtype, extremes->buffers[i], at, GUARD_NONE);
}

static void add_bounds(Bounder *b, const Domain *domain, ScalarId value, const Extremes *extremes) {
    Bounds bounds = {.value = value};
    bounds.least = load(b, domain, value, extremes, LEAST);
    bounds.greatest = load(b, domain, value, extremes, GREATEST);
    Kernel *kernel = maker_of(b);
    vec_push(b->arena, &kernel->bounds, bounds);
    /* Behind the other arguments: conditions of variants number these. */
    for (uint32_t i = 0; i < N_EXTREMES; i++)
        vec_push(b->arena, &kernel->args, extremes->buffers[i]);
    b->n_args += N_EXTREMES;
}

/* Lets the blocks of the launch count the tiles that they take, in the first of the zeros. */
static void count_tiles(Bounder *b, uint32_t zeros) {
    Kernel *kernel = maker_of(b);
    if (zeros == NO_BUFFER || kernel->tiles_taken || b->n_args == MAX_KERNEL_ARGS) return;
    IndexTab *tab = scalartab_indices(kernel->scalars);
    IndexId first = index_dim(tab, dim_const(b->plan->graph->dims, 0));
    kernel->tiles_taken = scalar_load(kernel->scalars, DT_I32, zeros, first, GUARD_NONE);
    vec_push(b->arena, &kernel->args, zeros);
    b->n_args++;
}

/* Whether blocks of the online kernel take tiles of rows until there are none. */
static bool walks_over_tiles(const Bounder *b) {
    const Variant *variant = &b->plan->kernels.data[b->online].variants[0];
    return variant->is_persistent;
}

/* Gives the values of the launch that are over this domain their bounds, and takes them off the
 * list. */
static void bound_values(Bounder *b, Domain *domain) {
    Kernel kernel = new_kernel(b, domain);
    uint32_t n = 0, zeros = NO_BUFFER;
    vec_push(b->arena, &kernel.stages, (Stage){.reduces = {0}});
    for (uint32_t i = 0; i < b->n_values; i++) {
        ScalarId value = b->values[i];
        if (domain_of(b, value) != domain) {
            b->values[n++] = value;
            continue;
        }
        ScalarId copy = in_domain(b, domain, value);
        if (!find_extremes(b, domain, copy)) {
            if (!kernel.reduces.n && walks_over_tiles(b)) zeros = add_zeros(b, &kernel);
            Extremes extremes = add_extremes(b, copy, &kernel, zeros);
            vec_push(b->arena, &domain->known, extremes);
        }
        const Extremes *extremes = find_extremes(b, domain, copy);
        add_bounds(b, domain, value, extremes);
        count_tiles(b, extremes->zeros);
    }
    b->n_values = n;
    if (kernel.reduces.n) insert(b, kernel);
}

static void note_value(void *user, ScalarId id) {
    Bounder *b = user;
    bool fits = b->n_values < MOST_VALUES &&
                b->n_args + N_EXTREMES * (b->n_values + 1) + 1 <= MAX_KERNEL_ARGS;
    if (has_bounds(b, id) && fits && !vec_among(b->values, b->n_values, id))
        b->values[b->n_values++] = id;
}

/* Whether the keys of the kernel at hand may be so many that the bounds pay. */
static bool has_many_keys(const Bounder *b) {
    const DimTab *dims = b->plan->graph->dims;
    return dim_lo(dims, n_keys(b)) > 0 && dim_hi(dims, n_keys(b)) > LAUNCH_BOUNDS_KEYS;
}

/* Takes online kernel `k` of the plan, which is in the launch at hand. */
static void take_online(Bounder *b, uint32_t k) {
    const Launch *launch = &b->plan->launches.data[b->launch];
    const Kernel *kernels = b->plan->kernels.data;
    bool has_scores = launch_is_tiled(launch) && k > launch->first;
    ScoreProgram program = score_program(has_scores ? &kernels[k - 1] : NULL, &kernels[k]);
    Mask masks[MOST_MASKS];
    b->online = k, b->maker = has_scores ? k - 1 : k;
    b->row_axis = program.row_axis, b->key_axis = program.key_axis;
    if (kernels[k].is_init || maker_of(b)->bounds.n || !has_many_keys(b)) return;
    b->n_args = 0;
    for (uint32_t i = 0; i < launch->n; i++) b->n_args += kernels[launch->first + i].args.n;
    uint32_t n_masks = masks_find(program.kernel->scalars, program.root, masks);
    for (uint32_t i = 0; i < n_masks; i++)
        mask_each_value(program.kernel->scalars, masks[i].shows, note_value, b);
    while (b->n_values) bound_values(b, domain_of(b, b->values[0]));
}

/* Whether its template looks at masks by bounds. */
static bool is_online(const Kernel *kernel) {
    return form_info(kernel->form)->weighs &&
           engine_info(sched_engine(&kernel->variants[0].sched))->uses_tensor_cores;
}

bool mask_bounds_pass(const Planning *p, PlanUnit *unit) {
    Bounder b = {.arena = p->arena, .plan = unit->plan, .target = p->target};
    if (!p->target->has->launches) return true;
    for (; b.launch < b.plan->launches.n; b.launch++) {
        b.n_made = 0;
        uint32_t n = b.plan->launches.data[b.launch].n;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t k = b.plan->launches.data[b.launch].first + i;
            if (is_online(&b.plan->kernels.data[k])) take_online(&b, k);
        }
    }
    return true;
}
