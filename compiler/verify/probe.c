/* Placing and adding probes. See probe.h. */
#include "verify/probe.h"

#include "fuse/inline.h"
#include "verify/probe_map.h"

typedef struct Roots {
    Arena *arena;
    const Kernel *kernel;
    Vec(ScalarId) values;
} Roots;

static void add_root(void *user, const Store *store) {
    Roots *roots = user;
    if (!store->trace) return;
    vec_push(roots->arena, &roots->values, roots->kernel->traces.data[store->trace - 1].value);
}

/* Values that are computed or should be. In a wrong plan a store may hold another value than its
 * node's. */
static const bool *live_scalars(Arena *arena, const Kernel *kernel) {
    bool *live = kernel_live_scalars(arena, kernel);
    Roots roots = {.arena = arena, .kernel = kernel};
    kernel_each_store(kernel, add_root, &roots);
    const bool *said = kernel_needed_scalars(arena, kernel, roots.values.data, roots.values.n);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
        live[id] = live[id] || said[id];
    return live;
}

static void add_scalar(Arena *arena, Probe *tap, ScalarId id) {
    for (uint32_t i = 0; i < tap->scalars.n; i++)
        if (tap->scalars.data[i] == id) return;
    vec_push(arena, &tap->scalars, id);
}

static void add_gathered(Arena *arena, const IndexTab *tab, IndexId id, const bool *live,
                         Probe *tap) {
    IndexExpr expr = index_expr(tab, id);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        if (atom.kind == ATOM_VALUE && live[atom.value]) add_scalar(arena, tap, atom.value);
        if (atom.kind == ATOM_DIV || atom.kind == ATOM_MOD)
            add_gathered(arena, tab, atom.operand, live, tap);
    }
}

/* Fills probe->scalars, and returns the axes that these and the value's coordinates depend on. An
 * unused gather index stays out: the kernel does not wait for it, and an init kernel would read
 * memory that no run has written. */
static uint32_t collect(Arena *arena, const Plan *plan, const Kernel *kernel, const Trace *trace,
                        const bool *live, Probe *tap) {
    const ScalarTab *scalars = kernel->scalars;
    const IndexTab *tab = scalartab_indices(scalars);
    uint32_t rank = graph_node(plan->graph, trace->node)->shape.rank;
    uint32_t axes = scalar_get(scalars, trace->value)->axes | guard_axes(scalars, trace->guard);
    vec_push(arena, &tap->scalars, trace->value);
    for (uint32_t k = 0; k < rank; k++) {
        axes |= index_axes(tab, trace->coords[k]);
        add_gathered(arena, tab, trace->coords[k], live, tap);
    }
    for (GuardId g = trace->guard; g; g = guard_get(scalars, g).next)
        add_gathered(arena, tab, guard_get(scalars, g).index, live, tap);
    return axes;
}

static void add_axes(Probe *tap, uint32_t first, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) tap->axes[tap->n_axes++] = first + k;
}

/* Orders the axes so that the innermost is contiguous in memory. A separate map has only the axes
 * that it depends on. */
static void choose_axes(Probe *tap, const Kernel *kernel, uint32_t needed) {
    for (uint32_t k = 0; tap->is_own_map && k < MAX_AXES; k++)
        if (needed >> k & 1) add_axes(tap, k, 1);
    if (tap->is_own_map) return;
    bool is_column = form_info(kernel->form)->reduces_columns;
    if (!tap->is_row && is_column) add_axes(tap, kernel->first_reduced, kernel->n_reduced);
    add_axes(tap, 0, kernel->n_parallel);
    if (!tap->is_row && !is_column) add_axes(tap, kernel->first_reduced, kernel->n_reduced);
}

static DimId n_elems(const Kernel *kernel, const Probe *tap) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    DimId n = dim_const(indextab_dims(tab), 1);
    for (uint32_t k = 0; k < tap->n_axes && n; k++)
        n = dim_mul(indextab_dims(tab), n, index_axis_extent(tab, tap->axes[k]));
    return n;
}

bool probe_is_idle(Arena *arena, const Kernel *kernel, uint32_t trace) {
    return !live_scalars(arena, kernel)[kernel->traces.data[trace].value];
}

bool probe_place(Arena *arena, const Plan *plan, uint32_t k, uint32_t trace, Probe *tap) {
    const Kernel *kernel = &plan->kernels.data[k];
    uint32_t parallel = kernel_parallel_axes(kernel);
    uint32_t inner = parallel | ((1u << kernel->n_reduced) - 1) << kernel->first_reduced;
    *tap = (Probe){.kernel = k, .trace = trace};
    const bool *live = live_scalars(arena, kernel);
    if (!live[kernel->traces.data[trace].value]) return false;
    uint32_t axes = collect(arena, plan, kernel, &kernel->traces.data[trace], live, tap);
    const uint32_t *stage = inline_scalar_stages(arena, kernel);
    for (uint32_t i = 0; i < tap->scalars.n; i++)
        if (stage[tap->scalars.data[i]] > tap->stage) tap->stage = stage[tap->scalars.data[i]];
    /* A kernel of partial results has accumulators but no results. */
    if (tap->stage > 0 && kernel->segment_axis != NO_AXIS) return false;
    tap->is_row = form_info(kernel->form)->reduces && (axes & ~parallel) == 0;
    tap->is_own_map = !tap->is_row && form_info(kernel->form)->multiplies;
    if (tap->is_own_map && tap->stage > 0) return false;
    if (!tap->is_row && ((axes & ~inner) != 0 || tap->stage > kernel->stages.n)) return false;
    choose_axes(tap, kernel, axes);
    return n_elems(kernel, tap) != DIM_NONE;
}

/* The store of an init kernel goes to a prepared buffer, which gets its name with the other
 * prepared ones. */
static uint32_t add_buffer(Arena *arena, Plan *plan, const Kernel *kernel, const Probe *tap,
                           ScalarId value, Str name) {
    BufferKind kind = kernel->is_init ? BUFFER_PREPARED : BUFFER_OUTPUT;
    Buffer buffer = {.kind = kind,
                     .dtype = scalar_get(kernel->scalars, value)->dtype,
                     .shape = {.rank = 1, .dims = {n_elems(kernel, tap)}},
                     .node = kernel->traces.data[tap->trace].node,
                     .name = name};
    return plan_add_buffer(arena, plan, buffer);
}

static IndexId address(const Kernel *kernel, const Probe *tap) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    IndexId at = index_dim(tab, dim_const(indextab_dims(tab), 0));
    for (uint32_t k = 0; k < tap->n_axes; k++) {
        at = index_scale(tab, at, index_axis_extent(tab, tap->axes[k]));
        at = index_add(tab, at, index_axis(tab, tap->axes[k]));
    }
    return at;
}

/* Kernels made by a split share their stages, so this kernel gets its own copy. */
static void own_stages(Arena *arena, Kernel *kernel) {
    Kernel copy = {.n_parallel = 0};
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const Stage *from = &kernel->stages.data[i];
        Stage stage = {.reduces = from->reduces};
        for (uint32_t k = 0; k < from->stores.n; k++)
            vec_push(arena, &stage.stores, from->stores.data[k]);
        vec_push(arena, &copy.stages, stage);
    }
    kernel->stages.data = copy.stages.data;
    kernel->stages.capacity = copy.stages.capacity;
}

/* A place that depends on the last stage's results needs a stage after it. */
static void store_inside(Arena *arena, Kernel *kernel, const Probe *tap, const uint32_t *buffers) {
    own_stages(arena, kernel);
    if (!tap->is_row && tap->stage == kernel->stages.n)
        vec_push(arena, &kernel->stages, (Stage){.reduces = {.n = 0}});
    for (uint32_t i = 0; i < tap->scalars.n; i++) {
        Store store = {.buffer = buffers[i],
                       .value = tap->scalars.data[i],
                       .address = address(kernel, tap),
                       .node = kernel->traces.data[tap->trace].node};
        if (tap->is_row)
            vec_push(arena, &kernel->row_stores, store);
        else
            vec_push(arena, &kernel->stages.data[tap->stage].stores, store);
    }
    kernel_note_interface(arena, kernel);
}

void probe_show(Arena *arena, Plan *plan, uint32_t buffer, Str name) {
    Buffer *shown = &plan->buffers.data[buffer];
    if (shown->kind == BUFFER_PREPARED) {
        probe_copy(arena, plan, buffer, name);
        return;
    }
    shown->ordinal = plan_n_buffers(plan, BUFFER_OUTPUT);
    shown->kind = BUFFER_OUTPUT;
    shown->name = name;
}

Str probe_name(Arena *arena, uint32_t tap, uint32_t scalar) {
    return str_format(arena, ".p%u.%u", tap, scalar);
}

/* Every run must write the outputs, so the buffer of an init kernel is copied to one. */
static void show_prepared(Arena *arena, Plan *plan, const Probe *tap, uint32_t t,
                          const uint32_t *buffers) {
    for (uint32_t i = 0; i < tap->scalars.n; i++)
        if (plan->buffers.data[buffers[i]].kind == BUFFER_PREPARED)
            probe_show(arena, plan, buffers[i], probe_name(arena, t, i));
}

/* Every run takes the default from now on; the kernels of the alternative are removed. */
static void drop_alternatives(Plan *plan, const Choice *choice) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        Kernel kernel = plan->kernels.data[k];
        if (kernel.choice == choice && kernel_is_alternative(&kernel)) continue;
        if (kernel.choice == choice) kernel.choice = NULL;
        plan->kernels.data[n++] = kernel;
    }
    plan->kernels.n = n;
}

/* Separate maps are added last, from the last kernel to the first, because each shifts the kernels
 * after it. */
void probe_store(Arena *arena, Plan *plan, const Probe *taps, uint32_t n_taps) {
    uint32_t **buffers = arena_array(arena, uint32_t *, n_taps);
    const Choice **choices = arena_array(arena, const Choice *, n_taps);
    for (uint32_t t = 0; t < n_taps; t++) {
        Kernel *kernel = &plan->kernels.data[taps[t].kernel];
        buffers[t] = arena_array(arena, uint32_t, taps[t].scalars.n);
        for (uint32_t i = 0; i < taps[t].scalars.n; i++)
            buffers[t][i] = add_buffer(arena, plan, kernel, &taps[t], taps[t].scalars.data[i],
                                       probe_name(arena, t, i));
        if (!taps[t].is_own_map) store_inside(arena, kernel, &taps[t], buffers[t]);
        choices[t] = kernel->choice;
    }
    for (uint32_t k = plan->kernels.n; k-- > 0;) {
        Kernel kernel = plan->kernels.data[k];
        for (uint32_t t = 0; t < n_taps; t++)
            if (taps[t].is_own_map && taps[t].kernel == k)
                probe_map(arena, plan, &kernel, &taps[t], buffers[t]);
    }
    for (uint32_t t = 0; t < n_taps; t++)
        if (choices[t]) drop_alternatives(plan, choices[t]);
    for (uint32_t t = 0; t < n_taps; t++) show_prepared(arena, plan, &taps[t], t, buffers[t]);
    if (plan_n_buffers(plan, BUFFER_PREPARED)) plan_order_init(arena, plan);
}
