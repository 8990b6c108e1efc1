/* See variant.h. */
#include "plan/variant.h"

#include "plan/plan.h"

#include <math.h>

/* The conditions of a tensor map, by the limits of cuTensorMapEncodeTiled. */

enum { MAX_MAP_TERMS = 3 + 3 * MAX_MAP_RANK };

/* A multiple of the alignment of addresses. */
static PredicateTerm stepped(DimId elems, int64_t elem_bytes) {
    return (PredicateTerm){.kind = TERM_MULTIPLE, .dim = elems, .of = MAP_STEP_BYTES / elem_bytes};
}

static PredicateTerm within(DimId dim, int64_t least, int64_t most) {
    return (PredicateTerm){.kind = TERM_RANGE, .dim = dim, .least = least, .most = most};
}

static int64_t elem_bytes_of(const Plan *plan, const Kernel *kernel, const TensorMap *map) {
    return dtype_bytes(plan->buffers.data[kernel->args.data[map->arg]].dtype);
}

static uint32_t map_terms(const Plan *plan, const Kernel *kernel, const TensorMap *map,
                          PredicateTerm terms[MAX_MAP_TERMS]) {
    const int64_t most_elems = INT64_C(1) << 31, most_bytes = INT64_C(1) << 40;
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    int64_t bytes = elem_bytes_of(plan, kernel, map);
    uint32_t n = 0;
    terms[n++] = (PredicateTerm){
        .kind = TERM_ALIGNED, .of = MAP_STEP_BYTES, .args = (uint64_t)1 << map->arg};
    terms[n++] = within(map->offset, 0, INT64_MAX);
    terms[n++] = stepped(map->offset, bytes);
    for (uint32_t i = 0; i < map->rank; i++) {
        DimId stride = map->axes[i].stride;
        terms[n++] = within(index_axis_extent(tab, map->axes[i].axis), 1, most_elems - 1);
        terms[n++] = within(stride, 1, most_bytes / bytes - 1);
        if (i > 0) terms[n++] = stepped(stride, bytes);
    }
    return n;
}

/* Whether the driver accepts the map for all values of the dims. */
static bool is_map_certain(const Plan *plan, const Kernel *kernel, const TensorMap *map) {
    PredicateTerm terms[MAX_MAP_TERMS];
    uint64_t own = kernel_own_args(plan, kernel);
    uint32_t n = map_terms(plan, kernel, map, terms);
    for (uint32_t i = 0; i < n; i++)
        if (!predicate_term_is_certain(&terms[i], plan->graph->dims, own)) return false;
    return true;
}

/* Whether the driver accepts the map's strides at these dims; sizes and the offset are assumed to
 * be acceptable. */
static bool are_strides_good(const Plan *plan, const Kernel *kernel, const TensorMap *map,
                             const PredicateAt *at) {
    for (uint32_t i = 1; i < map->rank; i++) {
        PredicateTerm term = stepped(map->axes[i].stride, elem_bytes_of(plan, kernel, map));
        if (!predicate_term_holds(&term, at)) return false;
    }
    return true;
}

/* Variants. */

/* The arguments (bit set) in global memory. */
static uint64_t global_args(const Plan *plan, const Kernel *kernel) {
    uint64_t args = 0;
    for (uint32_t i = 0; i < kernel->args.n; i++)
        args |= (uint64_t)(plan->buffers.data[kernel->args.data[i]].space == BUFFER_GLOBAL) << i;
    return args;
}

uint64_t variant_open_args(const Plan *plan, const Kernel *kernel, const PredicateTerm *term) {
    switch (term->kind) {
    case TERM_ALIGNED:
        return term->args & global_args(plan, kernel) & ~kernel_own_args(plan, kernel);
    case TERM_LEVEL:
    case TERM_MULTIPLE:
    case TERM_RANGE:
        break;
    }
    return 0;
}

bool variant_has_conditions(const Plan *plan, const Kernel *kernel, const Variant *variant) {
    bool has = predicate_asks_extents(&variant->predicate) || predicate_level(&variant->predicate);
    for (uint32_t i = 0; i < variant->predicate.n && !has; i++)
        has = variant_open_args(plan, kernel, &variant->predicate.terms[i]) != 0;
    for (uint32_t i = 0; i < variant->n_maps && !has; i++)
        has = !is_map_certain(plan, kernel, &variant->maps[i]);
    return has;
}

static bool applies(const Plan *plan, const Kernel *kernel, uint32_t v, const PredicateAt *at) {
    const Variant *variant = &kernel->variants[v];
    bool holds = predicate_holds_at(&variant->predicate, at);
    for (uint32_t i = 0; i < variant->n_maps && holds; i++)
        holds = are_strides_good(plan, kernel, &variant->maps[i], at);
    return holds;
}

static double price_at(const Price *price, const PredicateAt *at) {
    double blocks = dim_number(at->dims, price->blocks, at->values);
    double per_wave = (double)price->per_wave;
    double share = (double)price->percent / 100, each = (double)price->fixed;
    for (uint32_t i = 0; i < price->n_measures; i++)
        each += (double)price->weights[i] * dim_number(at->dims, price->measures[i], at->values);
    return each * (share * blocks + (1 - share) * per_wave * ceil(blocks / per_wave));
}

uint32_t variant_taken(const Plan *plan, const Kernel *kernels, uint32_t n, const int64_t *values) {
    const PredicateAt at = {.dims = plan->graph->dims, .values = values};
    const Variant *variants = kernels->variants;
    uint32_t n_variants = kernels->n_variants, taken = n_variants;
    double least = INFINITY;
    for (uint32_t v = 0; v < n_variants; v++) {
        const Price *price = &variants[v].price;
        if (taken < n_variants && price->group != variants[taken].price.group) break;
        bool all = true; /* the last variant has no conditions */
        for (uint32_t k = 0; k < n && all && v + 1 < n_variants; k++)
            all = applies(plan, &kernels[k], v, &at);
        if (!all) continue;
        if (!price->group) return v;
        double own = price_at(price, &at);
        if (taken < n_variants && own >= least) continue;
        taken = v;
        least = own;
    }
    return taken < n_variants ? taken : 0;
}
