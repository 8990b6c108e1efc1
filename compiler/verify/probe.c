/* Placing and adding probes. See probe.h. */
#include "verify/probe.h"

#include "fuse/inline/inline.h"
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

static void add_scalar(Arena *arena, Probe *probe, ScalarId id) {
    for (uint32_t i = 0; i < probe->scalars.n; i++)
        if (probe->scalars.data[i] == id) return;
    vec_push(arena, &probe->scalars, id);
}

static void add_gathered(Arena *arena, const IndexTab *tab, IndexId id, const bool *live,
                         Probe *probe) {
    IndexExpr expr = index_expr(tab, id);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        if (atom.kind == ATOM_VALUE && live[atom.value]) add_scalar(arena, probe, atom.value);
        if (atom.kind == ATOM_DIV || atom.kind == ATOM_MOD)
            add_gathered(arena, tab, atom.operand, live, probe);
    }
}

/* Fills probe->scalars, and returns the axes that these and the value's coordinates depend on. An
 * unused gather index stays out: the kernel does not wait for it, and an init kernel would read
 * memory that no run has written. */
static uint32_t collect(Arena *arena, const Plan *plan, const Kernel *kernel, const Trace *trace,
                        const bool *live, Probe *probe) {
    const ScalarTab *scalars = kernel->scalars;
    const IndexTab *tab = scalartab_indices(scalars);
    uint32_t rank = graph_node(plan->graph, trace->node)->shape.rank;
    uint32_t axes = scalar_get(scalars, trace->value)->axes | guard_axes(scalars, trace->guard);
    vec_push(arena, &probe->scalars, trace->value);
    for (uint32_t k = 0; k < rank; k++) {
        axes |= index_axes(tab, trace->coords[k]);
        add_gathered(arena, tab, trace->coords[k], live, probe);
    }
    for (GuardId g = trace->guard; g; g = guard_get(scalars, g).next)
        add_gathered(arena, tab, guard_get(scalars, g).index, live, probe);
    return axes;
}

static void add_axes(Probe *probe, uint32_t first, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) probe->axes[probe->n_axes++] = first + k;
}

/* Orders the axes so that the innermost is contiguous in memory. A separate map has only the axes
 * that it depends on. */
static void choose_axes(Probe *probe, const Kernel *kernel, uint32_t needed) {
    for (uint32_t k = 0; probe->is_own_map && k < MAX_AXES; k++)
        if (needed >> k & 1) add_axes(probe, k, 1);
    if (probe->is_own_map) return;
    bool is_column = form_info(kernel->form)->reduces_columns;
    if (!probe->is_row && is_column) add_axes(probe, kernel->first_reduced, kernel->n_reduced);
    add_axes(probe, 0, kernel->n_parallel);
    if (!probe->is_row && !is_column) add_axes(probe, kernel->first_reduced, kernel->n_reduced);
}

static DimId n_elems(const Kernel *kernel, const Probe *probe) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    DimId n = dim_const(indextab_dims(tab), 1);
    for (uint32_t k = 0; k < probe->n_axes && n; k++)
        n = dim_mul(indextab_dims(tab), n, index_axis_extent(tab, probe->axes[k]));
    return n;
}

bool probe_is_idle(Arena *arena, const Kernel *kernel, uint32_t trace) {
    return !live_scalars(arena, kernel)[kernel->traces.data[trace].value];
}

bool probe_place(Arena *arena, const Plan *plan, uint32_t k, uint32_t trace, Probe *probe) {
    const Kernel *kernel = &plan->kernels.data[k];
    uint32_t parallel = kernel_parallel_axes(kernel);
    uint32_t inner = parallel | ((1u << kernel->n_reduced) - 1) << kernel->first_reduced;
    *probe = (Probe){.kernel = k, .trace = trace};
    const bool *live = live_scalars(arena, kernel);
    if (!live[kernel->traces.data[trace].value]) return false;
    uint32_t axes = collect(arena, plan, kernel, &kernel->traces.data[trace], live, probe);
    const uint32_t *stage = inline_scalar_stages(arena, kernel);
    for (uint32_t i = 0; i < probe->scalars.n; i++)
        if (stage[probe->scalars.data[i]] > probe->stage)
            probe->stage = stage[probe->scalars.data[i]];
    /* A kernel of partial results has accumulators but no results. */
    if (probe->stage > 0 && kernel->segment_axis != NO_AXIS) return false;
    const FormInfo *form = form_info(kernel->form);
    /* Where each point has its own result, nothing is stored once per row. */
    probe->is_row = form->reduces && !form->each_point && (axes & ~parallel) == 0;
    /* The loops of a matmul, of segments and of softmax and product visit an element several times,
     * or never. */
    probe->is_own_map = !probe->is_row && (form->multiplies || form->divides || form->weighs);
    if (probe->is_own_map && probe->stage > 0) return false;
    if (!probe->is_row && ((axes & ~inner) != 0 || probe->stage > kernel->stages.n)) return false;
    choose_axes(probe, kernel, axes);
    return n_elems(kernel, probe) != DIM_NONE;
}

/* The store of an init kernel goes to a prepared buffer, which gets its name with the other
 * prepared ones. */
static uint32_t add_buffer(Arena *arena, Plan *plan, const Kernel *kernel, const Probe *probe,
                           ScalarId value, Str name) {
    BufferKind kind = kernel->is_init ? BUFFER_PREPARED : BUFFER_OUTPUT;
    Buffer buffer = {.kind = kind,
                     .dtype = scalar_get(kernel->scalars, value)->dtype,
                     .shape = {.rank = 1, .dims = {n_elems(kernel, probe)}},
                     .node = kernel->traces.data[probe->trace].node,
                     .name = name};
    return plan_add_buffer(arena, plan, buffer);
}

static IndexId address(const Kernel *kernel, const Probe *probe) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    IndexId at = index_dim(tab, dim_const(indextab_dims(tab), 0));
    for (uint32_t k = 0; k < probe->n_axes; k++) {
        at = index_scale(tab, at, index_axis_extent(tab, probe->axes[k]));
        at = index_add(tab, at, index_axis(tab, probe->axes[k]));
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
static void store_inside(Arena *arena, Kernel *kernel, const Probe *probe,
                         const uint32_t *buffers) {
    own_stages(arena, kernel);
    if (!probe->is_row && probe->stage == kernel->stages.n)
        vec_push(arena, &kernel->stages, (Stage){.reduces = {.n = 0}});
    for (uint32_t i = 0; i < probe->scalars.n; i++) {
        Store store = {.buffer = buffers[i],
                       .value = probe->scalars.data[i],
                       .address = address(kernel, probe),
                       .node = kernel->traces.data[probe->trace].node};
        if (probe->is_row)
            vec_push(arena, &kernel->row_stores, store);
        else
            vec_push(arena, &kernel->stages.data[probe->stage].stores, store);
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

Str probe_name(Arena *arena, uint32_t probe, uint32_t scalar) {
    return str_format(arena, ".p%u.%u", probe, scalar);
}

/* Every run must write the outputs, so the buffer of an init kernel is copied to one. */
static void show_prepared(Arena *arena, Plan *plan, const Probe *probe, uint32_t t,
                          const uint32_t *buffers) {
    for (uint32_t i = 0; i < probe->scalars.n; i++)
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
void probe_store(Arena *arena, Plan *plan, const Probe *probes, uint32_t n_probes) {
    uint32_t **buffers = arena_array(arena, uint32_t *, n_probes);
    const Choice **choices = arena_array(arena, const Choice *, n_probes);
    for (uint32_t t = 0; t < n_probes; t++) {
        Kernel *kernel = &plan->kernels.data[probes[t].kernel];
        buffers[t] = arena_array(arena, uint32_t, probes[t].scalars.n);
        for (uint32_t i = 0; i < probes[t].scalars.n; i++)
            buffers[t][i] = add_buffer(arena, plan, kernel, &probes[t], probes[t].scalars.data[i],
                                       probe_name(arena, t, i));
        if (!probes[t].is_own_map) store_inside(arena, kernel, &probes[t], buffers[t]);
        choices[t] = kernel->choice;
    }
    for (uint32_t k = plan->kernels.n; k-- > 0;) {
        Kernel kernel = plan->kernels.data[k];
        for (uint32_t t = 0; t < n_probes; t++)
            if (probes[t].is_own_map && probes[t].kernel == k)
                probe_map(arena, plan, &kernel, &probes[t], buffers[t]);
    }
    for (uint32_t t = 0; t < n_probes; t++)
        if (choices[t]) drop_alternatives(plan, choices[t]);
    for (uint32_t t = 0; t < n_probes; t++) show_prepared(arena, plan, &probes[t], t, buffers[t]);
    if (plan_n_buffers(plan, BUFFER_PREPARED)) plan_order_init(arena, plan);
}
