/* Checks the plan's invariants after fusion and splitting. */
#include "plan/launch.h"

#include <stdlib.h>
#include <string.h>

typedef struct Checker {
    const Plan *plan;
    Arena *arena;
    uint32_t *written_by; /* per buffer: 1 + kernel of the last store; 0: not complete yet */
    bool **has_piece;     /* per buffer that holds a concat in place: per operand */
    NodeId *holds;        /* per buffer that is written: the value that is there */
    uint32_t *lost_in;    /* per node: the buffer in which an update took its place, plus 1 */
    const char *fault;
} Checker;

static void fault(Checker *c, const Kernel *kernel, const char *what, uint32_t number) {
    if (!c->fault)
        c->fault = str_format(c->arena, "kernel %s %s number %u", kernel->name, what, number);
}

static void check_loads(Checker *c, const Kernel *kernel, uint32_t k) {
    bool *live = kernel_live_scalars(c->arena, kernel);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (!live[id] || s->kind != SCALAR_LOAD) continue;
        if (s->buffer >= c->plan->buffers.n) {
            fault(c, kernel, "reads unknown", s->buffer);
            continue;
        }
        BufferKind kind = c->plan->buffers.data[s->buffer].kind;
        bool is_bound = kind == BUFFER_INPUT || kind == BUFFER_PARAM;
        uint32_t writer = c->written_by[s->buffer];
        if (!is_bound && (writer == 0 || writer == k + 1))
            fault(c, kernel, "reads not yet written", s->buffer);
        if (kernel->is_init && kind != BUFFER_PARAM && kind != BUFFER_PREPARED)
            fault(c, kernel, "is an init step, but reads", s->buffer);
    }
}

/* A kernel that computes a value from another one, but not that one, reads it from memory. */
static void check_overwritten(Checker *c, const Kernel *kernel) {
    const Graph *graph = c->plan->graph;
    for (uint32_t i = 0; i < kernel->nodes.n; i++) {
        const Node *node = graph_node(graph, kernel->nodes.data[i]);
        for (uint32_t a = graph_is_update(graph, kernel->nodes.data[i]); a < node->n_args; a++) {
            uint32_t lost = c->lost_in[node->args[a]];
            if (lost && !vec_has(&kernel->nodes, node->args[a]) &&
                kernel_find_arg(kernel, lost - 1) != NO_ARG)
                fault(c, kernel, "reads what was overwritten in", lost - 1);
        }
    }
}

/* What is updated must be in the buffer, or where the update copies it from, before the kernel. */
static void check_update(Checker *c, const Kernel *kernel, uint32_t k, const Store *store) {
    uint32_t from = store->copied ? store->copied - 1 : store->buffer;
    const Buffer *buffer = &c->plan->buffers.data[from];
    bool is_bound = buffer->kind == BUFFER_INPUT || buffer->kind == BUFFER_PARAM;
    NodeId old = graph_node(c->plan->graph, store->node)->args[0];
    if (!is_bound && (c->written_by[from] == 0 || c->written_by[from] == k + 1))
        fault(c, kernel, "updates what is not yet in", from);
    else if ((is_bound ? buffer->node : c->holds[from]) != old)
        fault(c, kernel, "updates another value of", from);
    if (!store->copied) c->lost_in[old] = from + 1;
}

/* Operands of a concat do not overlap, so storing each operand once stores the whole concat
 * once. */
static bool check_piece(Checker *c, const Kernel *kernel, const Store *store) {
    const Node *whole = graph_node(c->plan->graph, c->plan->buffers.data[store->buffer].node);
    bool **has = &c->has_piece[store->buffer];
    if (op_info(whole->op)->cls != CLASS_CONCAT || store->piece > whole->n_args ||
        whole->args[store->piece - 1] != store->node) {
        fault(c, kernel, "writes no piece of", store->buffer);
        return false;
    }
    if (!*has) *has = arena_array(c->arena, bool, whole->n_args);
    if ((*has)[store->piece - 1]) fault(c, kernel, "writes a piece again of", store->buffer);
    (*has)[store->piece - 1] = true;
    for (uint32_t i = 0; i < whole->n_args; i++)
        if (!(*has)[i]) return false;
    return true;
}

/* The number of points of the loops inside the range, `*kept`, out of `*all`. Returns false if
 * unknown. */
static bool count_range(IndexTab *tab, const Guard *guard, DimId *kept, DimId *all) {
    DimTab *dims = indextab_dims(tab);
    if (!index_is_affine(tab, guard->index)) return false;
    DimId max = index_max(tab, guard->index), min = index_min(tab, guard->index);
    if (!max || !min) return false;
    DimId last = dim_sub(dims, max, min), one = dim_const(dims, 1);
    *all = dim_add(dims, last, one);
    *kept = dim_sub(dims, guard->hi, guard->lo);
    return *all != DIM_NONE && *kept != DIM_NONE;
}

/* If each range of a guard depends on axes of its own, the number of points inside the guard must
 * equal the number of elements of the stored value. */
static void check_guard(Checker *c, const Kernel *kernel, const Store *store, bool is_row) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    DimId places = kernel_n_rows(kernel),
          elems = shape_n_elems(dims, &graph_node(c->plan->graph, store->node)->shape);
    if (!is_row) places = dim_mul(dims, places, kernel_n_reduced(kernel));
    uint32_t seen = 0;
    for (GuardId g = store->guard; g; g = guard_get(kernel->scalars, g).next) {
        Guard guard = guard_get(kernel->scalars, g);
        uint32_t axes = index_axes(tab, guard.index);
        DimId kept, all;
        if ((axes & seen) || !count_range(tab, &guard, &kept, &all)) return;
        seen |= axes;
        places = dim_mul(dims, places, kept);
        elems = dim_mul(dims, elems, all);
        if (places == DIM_NONE || elems == DIM_NONE) return;
    }
    if (places != elems) fault(c, kernel, "leaves out the wrong places of", store->buffer);
}

static void check_store(Checker *c, const Kernel *kernel, uint32_t k, const Store *store,
                        bool is_row) {
    if (store->buffer >= c->plan->buffers.n) {
        fault(c, kernel, "writes unknown", store->buffer);
        return;
    }
    const Buffer *buffer = &c->plan->buffers.data[store->buffer];
    if (buffer->kind == BUFFER_INPUT || buffer->kind == BUFFER_PARAM)
        fault(c, kernel, "writes read-only", store->buffer);
    if (kernel->is_init != (buffer->kind == BUFFER_PREPARED))
        fault(c, kernel, kernel->is_init ? "is an init step, but writes" : "is none, but prepares",
              store->buffer);
    bool has_old = store->is_update && !store->copied; /* the value that it updates lies there */
    if (has_old != (c->written_by[store->buffer] != 0))
        fault(c, kernel, has_old ? "updates nothing in" : "writes again", store->buffer);
    if (store->is_update) check_update(c, kernel, k, store);
    c->holds[store->buffer] = store_holds(c->plan, store);
    if (store->guard) check_guard(c, kernel, store, is_row);
    if (scalar_get(kernel->scalars, store->value)->dtype != buffer->dtype)
        fault(c, kernel, "writes another dtype to", store->buffer);
    bool is_whole = !store->piece && !c->has_piece[store->buffer];
    if (!store->piece && !is_whole) fault(c, kernel, "writes again", store->buffer);
    if (is_whole || (store->piece && check_piece(c, kernel, store)))
        c->written_by[store->buffer] = k + 1;
}

/* Init kernels come before all others and know only the dims of params. */
static void check_init(Checker *c, const Kernel *kernel, uint32_t k) {
    if (!kernel->is_init) return;
    if (k > 0 && !c->plan->kernels.data[k - 1].is_init)
        fault(c, kernel, "is an init step, but comes after kernel", k - 1);
    if (!kernel->symbols) return;
    uint64_t open = kernel->symbols & ~graph_param_symbols(c->plan->graph);
    for (uint32_t i = 0; i < DIM_MAX_SYMBOLS; i++)
        if (open >> i & 1) fault(c, kernel, "is an init step, but no param fixes dim", i);
}

static void check_stages(Checker *c, const Kernel *kernel) {
    bool *done = arena_array(c->arena, bool, kernel->reduces.n + 1);
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        for (uint32_t r = 0; r < kernel->stages.data[i].reduces.n; r++) {
            uint32_t slot = kernel->stages.data[i].reduces.data[r];
            if (slot >= kernel->reduces.n || done[slot])
                fault(c, kernel, "misplaces slot", slot);
            else
                done[slot] = true;
        }
    for (uint32_t slot = 0; slot < kernel->reduces.n; slot++)
        if (!done[slot]) fault(c, kernel, "never runs slot", slot);
    if (!form_info(kernel->form)->reduces &&
        (kernel->reduces.n || kernel->row_stores.n || kernel->stages.n != 1))
        fault(c, kernel, "is a malformed map, slot", 0);
}

typedef struct Again {
    Checker *checker;
    const Kernel *kernel;
} Again;

/* Whether the buffer is a temporary that only kernels of the same version of the choice have. */
static bool is_read_by_version(const Plan *plan, uint32_t buffer, const Kernel *of) {
    for (uint32_t i = 0; i < plan->kernels.n; i++) {
        const Kernel *kernel = &plan->kernels.data[i];
        bool is_same = kernel->choice == of->choice && kernel->version == of->version;
        if (!is_same && kernel_find_arg(kernel, buffer) != NO_ARG) return false;
    }
    return plan->buffers.data[buffer].kind == BUFFER_TEMP;
}

/* The alternative of a choice writes again what the default writes. */
static void forget_store(void *user, const Store *store) {
    const Again *again = user;
    Checker *c = again->checker;
    if (is_read_by_version(c->plan, store->buffer, again->kernel)) return;
    c->written_by[store->buffer] = 0;
    if (store->piece) c->has_piece[store->buffer][store->piece - 1] = false;
}

static void check_again(void *user, const Store *store) {
    const Again *again = user;
    const Checker *c = again->checker;
    bool is_written = store->piece ? c->has_piece[store->buffer][store->piece - 1]
                                   : c->written_by[store->buffer] != 0;
    if (!is_written && !is_read_by_version(c->plan, store->buffer, again->kernel))
        fault(again->checker, again->kernel, "alone, not those that stand for it, writes",
              store->buffer);
}

enum { N_PROBES = 24 };

/* Values of all symbols: probe 0 has all at their least, the last probe all at their largest, and
 * the others lie between, with a different step per symbol. */
static void probe(const DimTab *dims, uint32_t n, int64_t *values) {
    for (uint32_t i = 0; i < dim_n_symbols(dims); i++) {
        const DimSymbol *symbol = dim_symbol_info(dims, i);
        int64_t least = (symbol->lo + symbol->multiple - 1) / symbol->multiple;
        int64_t span = symbol->hi / symbol->multiple - least;
        uint32_t step = n * (n + 1 < N_PROBES ? 2 * i + 1 : 1) % N_PROBES;
        int64_t more = step + 1 == N_PROBES ? span : span >> (2 * (N_PROBES - 1 - step) / 3);
        values[i] = (least + more) * symbol->multiple;
    }
    dim_follow_rules(dims, values);
}

/* The factors of a choice, which the manifest uses, are 1 where the version is taken and 0
 * elsewhere. */
static void check_factors(Checker *c, const Kernel *kernel) {
    const DimTab *dims = c->plan->graph->dims;
    for (uint32_t i = 0; i < N_PROBES; i++) {
        int64_t values[DIM_MAX_SYMBOLS];
        const PredicateAt at = {.dims = dims, .values = values};
        probe(dims, i, values);
        Version taken = choice_taken(kernel->choice, &at);
        for (int v = 0; v < N_VERSIONS; v++)
            if (dim_number(dims, kernel->choice->factors[v], values) != (v == (int)taken))
                fault(c, kernel, "starts against its condition at probe", i);
    }
}

/* Whether kernel `k` is the last alternative of its choice. */
static bool is_last_alternative(const Plan *plan, uint32_t k) {
    const Kernel *kernels = plan->kernels.data;
    if (!kernel_is_alternative(&kernels[k])) return false;
    for (uint32_t next = k + 1; next < plan->kernels.n; next++)
        if (kernels[next].choice == kernels[k].choice) return false;
    return true;
}

/* The alternative must store everything that the default stores. */
static void check_choice(Checker *c, uint32_t k) {
    const Kernel *kernels = c->plan->kernels.data, *kernel = &kernels[k];
    if (kernel_has_alternative(kernel)) {
        check_factors(c, kernel);
        Again again = {c, kernel};
        kernel_each_store(kernel, forget_store, &again);
    }
    if (!is_last_alternative(c->plan, k)) return;
    for (uint32_t i = 0; i < k; i++) {
        Again again = {c, &kernels[i]};
        if (kernels[i].choice == kernel->choice && kernel_has_alternative(&kernels[i]))
            kernel_each_store(&kernels[i], check_again, &again);
    }
}

static int compare_names(const void *a, const void *b) {
    const Kernel *x = *(const Kernel *const *)a, *y = *(const Kernel *const *)b;
    return strcmp(x->name, y->name);
}

static void check_names(Checker *c) {
    uint32_t n = c->plan->kernels.n;
    const Kernel **sorted = arena_array(c->arena, const Kernel *, n);
    for (uint32_t k = 0; k < n; k++) sorted[k] = &c->plan->kernels.data[k];
    qsort(sorted, n, sizeof *sorted, compare_names);
    for (uint32_t k = 1; k < n; k++)
        if (strcmp(sorted[k - 1]->name, sorted[k]->name) == 0)
            fault(c, sorted[k], "shares its name with kernel",
                  (uint32_t)(sorted[k - 1] - c->plan->kernels.data));
}

const char *plan_verify(const Plan *plan, Arena *arena) {
    Checker c = {.plan = plan, .arena = arena};
    c.written_by = arena_array(arena, uint32_t, plan->buffers.n);
    c.has_piece = arena_array(arena, bool *, plan->buffers.n);
    c.holds = arena_array(arena, NodeId, plan->buffers.n);
    c.lost_in = arena_array(arena, uint32_t, plan->graph->nodes.n);
    check_names(&c);
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        check_stages(&c, kernel);
        check_init(&c, kernel, k);
        check_loads(&c, kernel, k);
        check_overwritten(&c, kernel);
        for (uint32_t i = 0; i < kernel->stages.n; i++)
            for (uint32_t s = 0; s < kernel->stages.data[i].stores.n; s++)
                check_store(&c, kernel, k, &kernel->stages.data[i].stores.data[s], false);
        for (uint32_t s = 0; s < kernel->row_stores.n; s++)
            check_store(&c, kernel, k, &kernel->row_stores.data[s], true);
        check_loads(&c, kernel, k); /* checked first: a kernel must not read what it writes */
        check_choice(&c, k);
    }
    for (uint32_t b = 0; b < plan->buffers.n && !c.fault; b++)
        if (plan->buffers.data[b].kind == BUFFER_OUTPUT && !c.written_by[b])
            c.fault = str_format(arena, "output %s is never written", plan->buffers.data[b].name);
    return c.fault;
}

/* Places in the workspace. */

typedef struct Places {
    const Plan *plan;
    Arena *arena;
    uint32_t *first, *last; /* per buffer: launches, numbered by their first kernel */
    DimId *ends;            /* per buffer that is placed: the byte after its last */
    int64_t *at;            /* per buffer that is placed: its offset at the first probe */
    VecU32 placed;          /* that live */
    VecU32 stacked;         /* of these, so that each ends at or before the offset of the next */
    bool *is_stacked;       /* per buffer */
    uint32_t unseen;        /* a buffer that a step copies and that is in no memory; NO_BUFFER */
} Places;

/* What an update copies is read before its kernel. */
static void see_copy(void *user, const Store *store) {
    Places *p = user;
    uint32_t launch = p->last[store->buffer], from = store->copied - 1;
    if (!store->copied) return;
    if (p->last[from] < launch) p->last[from] = launch;
    if (p->plan->buffers.data[from].space != BUFFER_GLOBAL) p->unseen = from;
}

static void find_lives(Places *p) {
    for (uint32_t b = 0; b < p->plan->buffers.n; b++) p->first[b] = UINT32_MAX;
    const Launch *launches = p->plan->launches.data;
    for (uint32_t k = 0, l = 0; k < p->plan->kernels.n; k++) {
        const Kernel *kernel = &p->plan->kernels.data[k];
        while (!launch_has(&launches[l], k)) l++;
        uint32_t launch = launches[l].first;
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            uint32_t b = kernel->args.data[i];
            if (p->first[b] == UINT32_MAX) p->first[b] = launch;
            p->last[b] = launch;
        }
        kernel_each_store(kernel, see_copy, p);
    }
}

/* Whether a stage after the one that stores `buffer`, or a row's own store, loads `old`, or no
 * stage has the store. Computed from the needs of each stage, independently of the placer. */
static bool is_read_later(const Places *p, const Kernel *kernel, uint32_t old, uint32_t buffer) {
    bool is_stored = false, is_late = false;
    for (uint32_t i = 0; i <= kernel->stages.n; i++) {
        const bool *live = stage_live_scalars(p->arena, kernel, (RowCache){.n = 0}, i);
        for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
            const Scalar *s = scalar_get(kernel->scalars, id);
            is_late =
                is_late || (is_stored && live[id] && s->kind == SCALAR_LOAD && s->buffer == old);
        }
        for (uint32_t k = 0; i < kernel->stages.n && k < kernel->stages.data[i].stores.n; k++)
            is_stored = is_stored || kernel->stages.data[i].stores.data[k].buffer == buffer;
    }
    return is_late || !is_stored;
}

/* Whether a row or column kernel, which visits all points in every stage, visits each element of
 * the buffer at one point only: the store's index determines every axis. */
static bool is_once_a_stage(const Places *p, const Kernel *kernel, const Store *store) {
    DimTab *dims = p->plan->graph->dims;
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    DimId elems = shape_n_elems(dims, &p->plan->buffers.data[store->buffer].shape);
    for (uint32_t axis = 0; axis < index_n_axes(tab); axis++) {
        bool is_loop = axis != kernel->segment_axis &&
                       (axis < kernel->n_parallel || axis >= kernel->first_reduced);
        bool is_one = dim_equals_const(dims, index_axis_extent(tab, axis), 1);
        if (is_loop && !is_one && !(index_axes(tab, store->address) >> axis & 1)) return false;
    }
    return dim_mul(dims, kernel_n_reduced(kernel), kernel_n_rows(kernel)) == elems;
}

/* Whether no element of `old` is needed after the kernel has stored the same element of `new`. */
static bool goes_over(const Places *p, const Kernel *kernel, uint32_t old, uint32_t new) {
    const Buffer *a = &p->plan->buffers.data[old], *b = &p->plan->buffers.data[new];
    const Store *store = kernel_find_store(kernel, new);
    bool is_once = form_info(kernel->form)->one_pass;
    if (!store || store->guard || store->piece || store->is_update ||
        kernel_stores_to(kernel, old) || dtype_bytes(a->dtype) != dtype_bytes(b->dtype) ||
        buffer_bytes(p->plan->graph->dims, a) != buffer_bytes(p->plan->graph->dims, b))
        return false;
    if (!is_once && (!is_once_a_stage(p, kernel, store) || is_read_later(p, kernel, old, new)))
        return false;
    const bool *is_operand = is_once ? kernel_reduced_scalars(p->arena, kernel) : NULL;
    const bool *live = kernel_live_scalars(p->arena, kernel);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (live[id] && s->kind == SCALAR_LOAD && s->buffer == old &&
            ((is_operand && is_operand[id]) || s->index != store->address))
            return false;
    }
    return true;
}

static bool are_disjoint_at(const DimTab *dims, const DimId *offsets, const DimId *ends,
                            const int64_t *values) {
    int64_t from[2], to[2];
    for (int i = 0; i < 2; i++)
        if (!dim_eval(dims, offsets[i], values, &from[i]) ||
            !dim_eval(dims, ends[i], values, &to[i]))
            return true; /* more points than can exist */
    return to[0] <= from[1] || to[1] <= from[0];
}

/* Whether the buffers share no byte: by the ranges of the dims or, if ranges do not tell (as for
 * products of differences), at many values. */
static bool are_disjoint(const Places *p, uint32_t a, uint32_t b) {
    DimTab *dims = p->plan->graph->dims;
    const Buffer *buffers = p->plan->buffers.data;
    const DimId offsets[2] = {buffers[a].offset_bytes, buffers[b].offset_bytes};
    const DimId ends[2] = {p->ends[a], p->ends[b]};
    int64_t values[DIM_MAX_SYMBOLS];
    if (!ends[0] || !ends[1]) return false;
    if (dim_always_le(dims, ends[0], offsets[1]) || dim_always_le(dims, ends[1], offsets[0]))
        return true;
    for (uint32_t n = 0; n < N_PROBES; n++) {
        probe(dims, n, values);
        if (!are_disjoint_at(dims, offsets, ends, values)) return false;
    }
    return true;
}

/* Whether kernel `k`, the first with `buffer`, may store it over `other`, which was there
 * before. */
static bool may_lie_there(const Places *p, uint32_t k, uint32_t buffer, uint32_t other) {
    const Buffer *new = &p->plan->buffers.data[buffer], *old = &p->plan->buffers.data[other];
    if (are_disjoint(p, other, buffer)) return true;
    return p->last[other] == k && plan_launch_of(p->plan, k)->n == 1 &&
           old->offset_bytes ==
               new->offset_bytes &&goes_over(p, &p->plan->kernels.data[k], other, buffer);
}

static bool takes_room(const Plan *plan, const Buffer *buffer) {
    return buffer->kind == BUFFER_TEMP && buffer->space == BUFFER_GLOBAL &&
           !dim_equals_const(plan->graph->dims, buffer_bytes(plan->graph->dims, buffer), 0);
}

static DimId end_of(const Plan *plan, const Buffer *buffer) {
    DimTab *dims = plan->graph->dims;
    DimId bytes = dim_round_up(dims, buffer_bytes(dims, buffer), WORKSPACE_ALIGN_BYTES);
    return dim_add(dims, buffer->offset_bytes, bytes);
}

/* Drops the buffers that are dead when the launch starts, and so in all later launches. */
static void drop_dead(const Places *p, VecU32 *placed, uint32_t launch) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < placed->n; i++)
        if (p->last[placed->data[i]] >= launch) placed->data[n++] = placed->data[i];
    placed->n = n;
}

/* The position of the buffer among the stacked ones. */
static uint32_t position_of(const Places *p, uint32_t buffer) {
    uint32_t low = 0, high = p->stacked.n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->at[p->stacked.data[middle]] <= p->at[buffer])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void unstack(Places *p, uint32_t at) {
    p->is_stacked[p->stacked.data[at]] = false;
    p->stacked.n--;
    for (uint32_t i = at; i < p->stacked.n; i++) p->stacked.data[i] = p->stacked.data[i + 1];
}

/* Stacks the buffer if it is proven to lie between its two neighbours. It is then disjoint from all
 * stacked buffers, because no size is negative. The buffer takes the place of one that dies. */
static void stack(Places *p, uint32_t buffer) {
    DimTab *dims = p->plan->graph->dims;
    const Buffer *buffers = p->plan->buffers.data;
    uint32_t at = position_of(p, buffer), before = at ? p->stacked.data[at - 1] : buffer;
    bool is_over = at && p->last[before] == p->first[buffer] &&
                   buffers[before].offset_bytes == buffers[buffer].offset_bytes;
    if (is_over) unstack(p, --at);
    uint32_t n = p->stacked.n;
    const uint32_t *next = p->stacked.data + at;
    if ((at > 0 && !dim_always_le(dims, p->ends[next[-1]], buffers[buffer].offset_bytes)) ||
        (at < n && !dim_always_le(dims, p->ends[buffer], buffers[*next].offset_bytes)))
        return;
    vec_push(p->arena, &p->stacked, buffer);
    for (uint32_t i = n; i > at; i--) p->stacked.data[i] = p->stacked.data[i - 1];
    p->stacked.data[at] = buffer;
    p->is_stacked[buffer] = true;
}

/* Places a buffer that kernel `k` is the first to have. Returns a buffer that it may not lie over;
 * UINT32_MAX: there is none. */
static uint32_t place(Places *p, uint32_t k, uint32_t buffer) {
    int64_t values[DIM_MAX_SYMBOLS];
    const Buffer *placed = &p->plan->buffers.data[buffer];
    probe(p->plan->graph->dims, 0, values);
    p->ends[buffer] = end_of(p->plan, placed);
    p->at[buffer] = INT64_MAX;
    (void)dim_eval(p->plan->graph->dims, placed->offset_bytes, values, &p->at[buffer]);
    drop_dead(p, &p->placed, p->first[buffer]);
    drop_dead(p, &p->stacked, p->first[buffer]);
    stack(p, buffer);
    for (uint32_t i = 0; i < p->placed.n; i++) {
        uint32_t other = p->placed.data[i];
        bool is_apart = p->is_stacked[buffer] && p->is_stacked[other];
        if (!is_apart && !may_lie_there(p, k, buffer, other)) return other;
    }
    vec_push(p->arena, &p->placed, buffer);
    return UINT32_MAX;
}

const char *plan_verify_places(const Plan *plan, Arena *arena) {
    Places p = {.plan = plan, .arena = arena, .unseen = NO_BUFFER};
    p.at = arena_array(arena, int64_t, plan->buffers.n);
    p.is_stacked = arena_array(arena, bool, plan->buffers.n);
    p.ends = arena_array(arena, DimId, plan->buffers.n);
    p.first = arena_array(arena, uint32_t, plan->buffers.n);
    p.last = arena_array(arena, uint32_t, plan->buffers.n);
    bool *is_placed = arena_array(arena, bool, plan->buffers.n);
    find_lives(&p);
    if (p.unseen != NO_BUFFER)
        return str_format(arena, "an update copies %s, which a launch keeps for itself",
                          plan->buffers.data[p.unseen].name);
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        for (uint32_t i = 0; i < plan->kernels.data[k].args.n; i++) {
            uint32_t b = plan->kernels.data[k].args.data[i];
            if (is_placed[b] || !takes_room(plan, &plan->buffers.data[b])) continue;
            uint32_t other = place(&p, k, b);
            if (other != UINT32_MAX)
                return str_format(arena, "kernel %s stores %s over %s", plan->kernels.data[k].name,
                                  plan->buffers.data[b].name, plan->buffers.data[other].name);
            is_placed[b] = true;
        }
    return NULL;
}
