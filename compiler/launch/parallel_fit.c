/* Variants of kernels in a parallel launch. See parallel_fit.h.
 *
 * Both sides have their variants in order of preference; the last has no conditions. The function
 * walks down both lists at once. After a variant with a condition on extents comes the next variant
 * of its own list. A variant with conditions on pointers only stays as long as the other list
 * continues. So the launch has variants for the sizes of both sides, and few for unaligned
 * pointers. */
#include "launch/parallel_fit.h"
#include "machine/tuning.h"

#include "schedule/schedule.h"

enum {
    MAX_BODY_TERMS = 4,
    MAX_TERMS = 64 /* terms of a condition: one per argument, and those of each body */
};

/* The largest number of tensor maps of a variant. In a parallel launch there are no narrow tail
 * tiles, which have a map of their own. */
static uint32_t most_maps(const Kernel *kernel) {
    uint32_t most = 0;
    for (uint32_t v = 0; v < kernel->n_variants; v++) {
        const Variant *variant = &kernel->variants[v];
        uint32_t n_maps = variant->n_maps - (sched_gemm(&variant->sched).tail_n > 0);
        if (n_maps > most) most = n_maps;
    }
    return most;
}

ReasonId parallel_limits(const Kernel *kernels, uint32_t n, const Kernel *kernel) {
    uint32_t n_args = kernel->args.n, n_maps = most_maps(kernel), n_codes = 1;
    uint32_t n_scalars = scalar_count(kernel->scalars);
    bool is_new = true;
    for (uint32_t k = 0; k < n; k++) {
        n_args += kernels[k].args.n;
        n_maps += most_maps(&kernels[k]);
        is_new = is_new && kernels[k].code != kernel->code;
        if (k == 0 || kernels[k].code == kernels[k - 1].code) continue;
        n_codes++;
        n_scalars += scalar_count(kernels[k].scalars);
    }
    if (is_new) {
        n_codes++;
        n_scalars += scalar_count(kernels->scalars);
    }
    bool fits = n_args <= MAX_KERNEL_ARGS && n_args + MAX_BODY_TERMS * n_codes <= MAX_TERMS &&
                n_maps <= MAX_LAUNCH_MAPS && n_codes <= LAUNCH_PARALLEL_BODIES &&
                (n_codes == 1 || n_scalars <= LAUNCH_PARALLEL_SCALARS);
    return fits ? REASON_NONE : REASON_LAUNCH_FULL;
}

/* Properties that all kernels of a launch share. */

/* Whether one loop can multiply the tiles of both kernels. */
static bool multiply_alike(const Kernel *a, const Variant *of_a, const Kernel *b,
                           const Variant *of_b) {
    const GemmSched *s = &of_a->sched.gemm, *t = &of_b->sched.gemm;
    bool is_same = s->tile_m == t->tile_m && s->tile_n == t->tile_n && s->stages == t->stages &&
                   s->n_gemms == t->n_gemms && s->store_warps == t->store_warps &&
                   of_a->is_resident == of_b->is_resident &&
                   gemm_operand_dtype(a) == gemm_operand_dtype(b);
    for (uint32_t i = 0; i < of_a->n_maps && is_same; i++)
        is_same = of_a->maps[i].axes[1].box == of_b->maps[i].axes[1].box &&
                  (of_a->maps[i].axes[0].axis == gemm_axis_k(a)) ==
                      (of_b->maps[i].axes[0].axis == gemm_axis_k(b));
    return is_same;
}

static ReasonId go_together(const Kernel *a, const Variant *of_a, const Kernel *b,
                            const Variant *of_b) {
    const Sched *s = &of_a->sched, *t = &of_b->sched;
    if (a->form != b->form || sched_engine(s) != sched_engine(t)) return REASON_OTHER_LOOPS;
    if (template_info(s->template)->uses_copy_engine && !multiply_alike(a, of_a, b, of_b))
        return REASON_OTHER_TILES;
    return s->threads == t->threads && s->cluster == t->cluster ? REASON_NONE : REASON_OTHER_BLOCKS;
}

/* Pairs of variants. */

typedef struct Pair {
    uint32_t own, other; /* of the launch's variants; of the new kernel's */
} Pair;

typedef struct Pairs {
    const Plan *plan;
    Kernel *kernels; /* the new kernel follows the n kernels */
    uint32_t n;
    Kernel *other;
    Pair pairs[MAX_VARIANTS];
    uint32_t n_pairs;
} Pairs;

/* The number of variants without the last one, which always applies; 1 if it is the only one. */
static uint32_t n_preferred(const Kernel *kernel) {
    return kernel->n_variants > 1 ? kernel->n_variants - 1 : 1;
}

static bool asks_extents(const Variant *variant) {
    return predicate_asks_extents(&variant->predicate) || variant->n_maps;
}

static bool any_asks_extents(const Kernel *kernels, uint32_t n, uint32_t v) {
    bool any = false;
    for (uint32_t k = 0; k < n; k++) any = any || asks_extents(&kernels[k].variants[v]);
    return any;
}

static ReasonId match(const Pairs *p, Pair pair) {
    return go_together(p->kernels, &p->kernels->variants[pair.own], p->other,
                       &p->other->variants[pair.other]);
}

/* Finds the next pair of variants from `at` on that can run together. Returns false if none of the
 * preferred variants can. */
static bool find_match(const Pairs *p, Pair *at) {
    uint32_t n_own = n_preferred(p->kernels), n_other = n_preferred(p->other);
    for (uint32_t away = 0; away < n_own + n_other; away++)
        for (uint32_t i = 0; i <= away; i++) {
            Pair pair = {at->own + away - i, at->other + i};
            if (pair.own >= n_own || pair.other >= n_other || match(p, pair)) continue;
            *at = pair;
            return true;
        }
    return false;
}

static bool has_conditions(const Pairs *p, Pair pair) {
    bool has = variant_has_conditions(p->plan, p->other, &p->other->variants[pair.other]);
    for (uint32_t k = 0; k < p->n; k++)
        has = has ||
              variant_has_conditions(p->plan, &p->kernels[k], &p->kernels[k].variants[pair.own]);
    return has;
}

/* Advances the lists that can continue, or only those with a condition on extents. Returns false at
 * the end of both. */
static bool go_on(const Pairs *p, Pair *at) {
    bool own = at->own + 1 < n_preferred(p->kernels);
    bool other = at->other + 1 < n_preferred(p->other);
    bool own_asks = own && any_asks_extents(p->kernels, p->n, at->own);
    bool other_asks = other && asks_extents(&p->other->variants[at->other]);
    bool any_asks = own_asks || other_asks;
    at->own += any_asks ? own_asks : own;
    at->other += any_asks ? other_asks : other;
    return own || other;
}

static void find_pairs(Pairs *p) {
    const Pair last = {p->kernels->n_variants - 1, p->other->n_variants - 1};
    Pair at = {0, 0};
    while (p->n_pairs + 1 < MAX_VARIANTS && find_match(p, &at)) {
        p->pairs[p->n_pairs++] = at;
        if (!has_conditions(p, at) && !p->kernels->variants[at.own].price.group) return;
        if (!go_on(p, &at)) break;
    }
    p->pairs[p->n_pairs++] = last;
}

/* One loop counts the tiles of all kernels, so all use wide indices if one does. */
static void widen_alike(const Pairs *p, uint32_t v) {
    bool is_wide = p->other->variants[v].sched.is_wide;
    for (uint32_t k = 0; k < p->n; k++)
        is_wide = is_wide || p->kernels[k].variants[v].sched.is_wide;
    for (uint32_t k = 0; k <= p->n; k++) p->kernels[k].variants[v].sched.is_wide = is_wide;
}

static void set_variants(const Pairs *p, const Composer *c) {
    Str symbol = p->kernels->variants[0].symbol;
    for (uint32_t k = 0; k <= p->n; k++) {
        Kernel *kernel = &p->kernels[k];
        Variant paired[MAX_VARIANTS];
        for (uint32_t v = 0; v < p->n_pairs; v++)
            paired[v] = kernel->variants[k < p->n ? p->pairs[v].own : p->pairs[v].other];
        kernel_set_variants(c->scratch, kernel, paired, p->n_pairs);
    }
    for (uint32_t v = 0; v < p->n_pairs; v++) {
        p->kernels->variants[v].symbol = v ? str_format(c->arena, "%s_v%u", symbol, v) : symbol;
        if (template_info(p->kernels->variants[v].sched.template)->uses_copy_engine)
            widen_alike(p, v);
    }
}

/* Takes the variants of a kernel with the same code, because they are one body. Returns false if
 * there is none. */
static bool take_variants(const Composer *c, Kernel *kernels, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        if (kernels[k].code != kernels[n].code) continue;
        kernel_set_variants(c->scratch, &kernels[n], kernels[k].variants, kernels[k].n_variants);
        return true;
    }
    return false;
}

static ReasonId pair_variants(const Composer *c, const Plan *plan, Kernel *kernels, uint32_t n) {
    Pairs p = {.plan = plan, .kernels = kernels, .n = n, .other = &kernels[n]};
    if (take_variants(c, kernels, n)) return REASON_NONE;
    ReasonId reason = match(&p, (Pair){kernels->n_variants - 1, p.other->n_variants - 1});
    if (reason != REASON_NONE) return reason;
    find_pairs(&p);
    set_variants(&p, c);
    return REASON_NONE;
}

/* Together the GEMMs fill the machine with other tiles than each alone. */
ReasonId parallel_add(const Composer *c, const Plan *plan, Kernel *kernels, uint32_t n) {
    if (kernels->form != kernels[n].form) return REASON_OTHER_LOOPS;
    if (!form_info(kernels->form)->multiplies) return pair_variants(c, plan, kernels, n);
    bool has_maps = most_maps(kernels) || most_maps(&kernels[n]);
    for (uint32_t k = 0; k <= n; k++)
        sched_in_launch(c->arena, c->scratch, plan, &kernels[k],
                        (GemmLaunch){.n_gemms = 1, .n_kernels = n + 1, .kernels = kernels},
                        c->target);
    ReasonId reason = REASON_NONE;
    for (uint32_t k = 1; k <= n && reason == REASON_NONE; k++)
        reason = pair_variants(c, plan, kernels, k);
    return reason == REASON_NONE && has_maps && !most_maps(kernels) ? REASON_OTHER_TILES : reason;
}
