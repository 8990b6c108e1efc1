/* See point_fma.h. */
#include "codegen/scalar/point_fma.h"

static void count_store(void *user, const Store *store) {
    uint32_t *uses = user;
    uses[store->value] += 2;
}

/* Per ScalarId: its number of uses by live scalars. A store or reduction counts as two, because its
 * value must be rounded and cannot be contracted. */
static uint32_t *count_uses(const Lower *lower) {
    const Kernel *kernel = lower->kernel;
    uint32_t n = scalar_count(kernel->scalars);
    uint32_t *uses = arena_array(lower->k->arena, uint32_t, n + (size_t)1);
    const bool *live = kernel_live_scalars(lower->k->arena, kernel);
    for (ScalarId id = 1; id <= n; id++)
        for (int i = 0; i < 3 && live[id]; i++) uses[scalar_get(kernel->scalars, id)->args[i]]++;
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        uses[kernel->reduces.data[i].value] += 2;
        uses[kernel->reduces.data[i].rhs] += 2;
        uses[kernel->reduces.data[i].factor] += 2;
    }
    kernel_each_store(kernel, count_store, uses);
    return uses;
}

/* A multiplication with a single use whose value has not been emitted. */
static bool is_single_use(const Point *point, ScalarId id) {
    Lower *lower = point->lower;
    const Scalar *s = scalar_get(lower->kernel->scalars, id);
    if (s->kind != SCALAR_PRIM || s->prim != PRIM_MUL || point->values[id]) return false;
    if (!lower->uses) lower->uses = count_uses(lower);
    return lower->uses[id] == 1;
}

Val point_contracted(Point *point, const Scalar *s) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    bool subtracts = s->prim == PRIM_SUB;
    if (!lower->plan->graph->is_fast || !dtype_is_float(s->dtype) ||
        (s->prim != PRIM_ADD && !subtracts))
        return NULL;
    uint32_t at = is_single_use(point, s->args[0]) ? 0 : 1;
    if (at == 1 && !is_single_use(point, s->args[1])) return NULL;
    const Scalar *product = scalar_get(lower->kernel->scalars, s->args[at]);
    Val v[3];
    for (int i = 0; i < 3; i++)
        v[i] = point_value(point, i < 2 ? product->args[i] : s->args[1 - at]);
    bool any_vector = k_is_vector(v[0]) || k_is_vector(v[1]) || k_is_vector(v[2]);
    for (int i = 0; i < 3 && any_vector; i++) v[i] = k_splat(k, v[i], point->lanes);
    int negated = at == 0 ? 2 : 0; /* a - bc negates the product, ab - c the other operand */
    if (subtracts) v[negated] = k_fneg(k, v[negated]);
    return math_fma(k, v[0], v[1], v[2]);
}
