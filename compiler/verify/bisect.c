/* The bisection. See bisect.h. */
#include "verify/bisect.h"
#include "plan/launch.h"

#include "interp/index_eval.h"
#include "interp/interp.h"
#include "verify/verify.h"

#include <inttypes.h>

enum { MAX_PROBES = 12, MAX_PROBE_ELEMS = 1 << 24, MAX_TRIALS = 100 };
#define MAX_TRIAL_BYTES ((int64_t)1 << 29)
#define SPOT_NONE UINT32_MAX

typedef enum {
    SPOT_UNKNOWN,
    SPOT_RIGHT,
    SPOT_WRONG,
    SPOT_BLIND /* no probe can show it, or its right value is unknown */
} SpotState;

/* A value of a kernel: one trace. */
typedef struct Spot {
    uint32_t kernel; /* the first kernel with this trace */
    uint32_t trace;
    SpotState state;
    Probe probe;
    int64_t n_bytes; /* of its probe */
    /* The first wrong element; -1: the kernel computes an element that the node does not have. */
    int64_t element;
    double actual, expected;
} Spot;

typedef struct Search {
    const Bisect *in;
    const Plan *plan;
    const Graph *graph;
    Arena *arena;
    Vec(Spot) spots;
    uint32_t *first_spot; /* per kernel: the index of its first trace's spot */
    bool *is_seen;        /* per spot: visited in this walk */
    Vec(uint32_t) order;  /* the suspects of this walk, operands before users */
    const Store *root;    /* the store of the output; NULL: not found */
    uint32_t root_kernel;
    uint32_t wrong; /* the earliest spot known to be wrong; SPOT_NONE: only the output itself */
    uint32_t n_values, n_trials;
    bool is_broken, is_gone;
    Text text;
} Search;

const char *bisect_shown_name(void) {
    return ".shown";
}

void bisect_apply(const BisectTrial *trial, Arena *arena, Plan *plan) {
    probe_store(arena, plan, trial->probes, trial->n_probes);
    if (trial->shown == UINT32_MAX) return;
    probe_show(arena, plan, trial->shown, bisect_shown_name());
}

/* Spots. */

static const Kernel *kernel_at(const Search *s, uint32_t kernel) {
    return &s->plan->kernels.data[kernel];
}

static const Trace *trace_of(const Search *s, uint32_t spot) {
    const Spot *at = &s->spots.data[spot];
    return &kernel_at(s, at->kernel)->traces.data[at->trace];
}

/* Bytes of the probe's buffers, over all its scalars; -1 beyond any limit. */
static int64_t probe_bytes(const Search *s, const Probe *probe) {
    const Kernel *kernel = kernel_at(s, probe->kernel);
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    int64_t n = 1, extent, elem_bytes = 0;
    for (uint32_t k = 0; k < probe->n_axes; k++) {
        DimId dim = index_axis_extent(tab, probe->axes[k]);
        if (!dim_eval(s->graph->dims, dim, s->in->symbol_values, &extent)) return -1;
        if (extent > 0 && n > MAX_PROBE_ELEMS / extent) return -1;
        n *= extent;
    }
    for (uint32_t i = 0; i < probe->scalars.n; i++)
        elem_bytes += dtype_bytes(scalar_get(kernel->scalars, probe->scalars.data[i])->dtype);
    return n * elem_bytes;
}

/* Whether the node has no elements: it cannot be wrong, and its memory must not be read. */
static bool is_empty(const Search *s, NodeId node) {
    Tensor type;
    const char *error = NULL;
    return interp_shape(s->graph, node, s->in->symbol_values, &type, s->arena, &error) &&
           tensor_n_elems(&type) == 0;
}

/* Whether no store depends on the trace. A kernel and the kernels that it was split into have the
 * same traces. */
static bool is_idle(const Search *s, const Spot *spot) {
    const Trace *traces = kernel_at(s, spot->kernel)->traces.data;
    for (uint32_t k = spot->kernel; k < s->plan->kernels.n; k++)
        if (kernel_at(s, k)->traces.data == traces &&
            !probe_is_idle(s->arena, kernel_at(s, k), spot->trace))
            return false;
    return true;
}

static void place_spot(Search *s, Spot *spot) {
    const Trace *traces = kernel_at(s, spot->kernel)->traces.data;
    NodeId node = traces[spot->trace].node;
    spot->state = is_empty(s, node) || is_idle(s, spot) ? SPOT_RIGHT : SPOT_BLIND;
    if (spot->state == SPOT_RIGHT || !s->in->expected[node]) return;
    for (uint32_t k = spot->kernel; k < s->plan->kernels.n; k++) {
        if (kernel_at(s, k)->traces.data != traces) continue;
        if (!probe_place(s->arena, s->plan, k, spot->trace, &spot->probe)) continue;
        spot->n_bytes = probe_bytes(s, &spot->probe);
        if (spot->n_bytes >= 0) spot->state = SPOT_UNKNOWN;
        return;
    }
}

static void list_spots(Search *s) {
    uint32_t n = s->plan->kernels.n;
    s->first_spot = arena_array(s->arena, uint32_t, n);
    for (uint32_t k = 0; k < n; k++) {
        const Kernel *kernel = kernel_at(s, k);
        s->first_spot[k] = s->spots.n;
        for (uint32_t before = 0; before < k; before++)
            if (kernel->traces.n && kernel_at(s, before)->traces.data == kernel->traces.data)
                s->first_spot[k] = s->first_spot[before];
        if (s->first_spot[k] != s->spots.n) continue;
        for (uint32_t t = 0; t < kernel->traces.n; t++) {
            Spot spot = {.kernel = k, .trace = t};
            place_spot(s, &spot);
            vec_push(s->arena, &s->spots, spot);
        }
    }
    s->is_seen = arena_array(s->arena, bool, s->spots.n);
}

/* Store number `n` of those that write `node`, or slices of it, into `buffer` (UINT32_MAX: any),
 * and its kernel; NULL: there are fewer. */
static const Store *find_store(const Search *s, NodeId node, uint32_t buffer, uint32_t number,
                               uint32_t *where) {
    for (uint32_t k = 0; k < s->plan->kernels.n; k++) {
        const Kernel *kernel = kernel_at(s, k);
        for (uint32_t i = 0; i <= kernel->stages.n; i++) {
            bool is_row = i == kernel->stages.n;
            const Store *stores =
                is_row ? kernel->row_stores.data : kernel->stages.data[i].stores.data;
            uint32_t n = is_row ? kernel->row_stores.n : kernel->stages.data[i].stores.n;
            for (uint32_t j = 0; j < n; j++) {
                if (store_holds(s->plan, &stores[j]) != node || !stores[j].trace) continue;
                if (buffer != UINT32_MAX && stores[j].buffer != buffer) continue;
                if (number-- > 0) continue;
                *where = k;
                return &stores[j];
            }
        }
    }
    return NULL;
}

static uint32_t spot_of_store(const Search *s, const Store *store, uint32_t kernel) {
    return s->first_spot[kernel] + store->trace - 1;
}

static void walk(Search *s, uint32_t spot);

/* Walks the stores that hold the value, or slices of it. An input has none. An update stores a part
 * of its value, and keeps the rest of its first argument. */
static void walk_stores(Search *s, NodeId node, uint32_t buffer) {
    uint32_t kernel = 0;
    const Store *store;
    if (graph_is_update(s->graph, node))
        walk_stores(s, graph_node(s->graph, node)->args[0], UINT32_MAX);
    for (uint32_t i = 0; (store = find_store(s, node, buffer, i, &kernel)); i++)
        walk(s, spot_of_store(s, store, kernel));
}

/* Lists the suspects: values that `spot` depends on, up to values known to be right. */
static void walk(Search *s, uint32_t spot) {
    if (s->is_seen[spot] || s->spots.data[spot].state == SPOT_RIGHT) return;
    s->is_seen[spot] = true;
    const Trace *trace = trace_of(s, spot);
    if (trace->is_loaded) walk_stores(s, trace->node, UINT32_MAX);
    for (uint32_t i = 0; i < trace->operands.n; i++)
        walk(s, s->first_spot[s->spots.data[spot].kernel] + trace->operands.data[i]);
    vec_push(s->arena, &s->order, spot);
}

static void list_suspects(Search *s) {
    s->order.n = 0;
    memset(s->is_seen, 0, s->spots.n * sizeof *s->is_seen);
    if (s->wrong == SPOT_NONE)
        walk_stores(s, store_holds(s->plan, s->root), s->root->buffer);
    else
        walk(s, s->wrong);
}

/* Comparing a probe with the right values. */

typedef struct Judge {
    const Search *search;
    const Probe *probe;
    const uint8_t *const *bytes; /* per scalar of the probe */
    int64_t at;                  /* the current element of the probe */
    const IndexCode *coords[MAX_RANK];
    Vec(const IndexCode *) guards;
    Vec(int64_t) bounds; /* lo and hi per guard */
} Judge;

/* The value of a gathered index; 0 for an unused index, which no probe scalar has. */
static int64_t gathered(void *user, uint32_t scalar) {
    const Judge *j = user;
    const ScalarTab *scalars = kernel_at(j->search, j->probe->kernel)->scalars;
    for (uint32_t i = 1; i < j->probe->scalars.n; i++) {
        if (j->probe->scalars.data[i] != scalar) continue;
        Dtype dtype = scalar_get(scalars, scalar)->dtype;
        double value = dtype_load(dtype, j->bytes[i] + (size_t)j->at * dtype_bytes(dtype));
        return isfinite(value) ? (int64_t)value : -1;
    }
    return 0;
}

static bool compile_place(const Search *s, const Kernel *kernel, const Trace *trace, Judge *j) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    uint32_t rank = graph_node(s->graph, trace->node)->shape.rank;
    for (uint32_t k = 0; k < rank; k++) {
        j->coords[k] = index_compile(s->arena, tab, trace->coords[k], s->in->symbol_values);
        if (!j->coords[k]) return false;
    }
    for (GuardId g = trace->guard; g; g = guard_get(kernel->scalars, g).next) {
        Guard guard = guard_get(kernel->scalars, g);
        const IndexCode *index = index_compile(s->arena, tab, guard.index, s->in->symbol_values);
        int64_t lo, hi;
        if (!index || !dim_eval(s->graph->dims, guard.lo, s->in->symbol_values, &lo) ||
            !dim_eval(s->graph->dims, guard.hi, s->in->symbol_values, &hi))
            return false;
        vec_push(s->arena, &j->guards, index);
        vec_push(s->arena, &j->bounds, lo);
        vec_push(s->arena, &j->bounds, hi);
    }
    return true;
}

/* The node's element at the point; -1: outside the guard, -2: outside the node. */
static int64_t element_at(const Judge *j, const Tensor *type, const IndexPoint *point) {
    int64_t element = 0;
    for (uint32_t i = 0; i < j->guards.n; i++) {
        int64_t index = index_eval(j->guards.data[i], point);
        if (index < j->bounds.data[2 * i] || index >= j->bounds.data[2 * i + 1]) return -1;
    }
    for (uint32_t k = 0; k < type->rank; k++) {
        int64_t index = index_eval(j->coords[k], point);
        if (index < 0 || index >= type->dims[k]) return -2;
        element = element * type->dims[k] + index;
    }
    return element;
}

/* Compares one element. False: it is wrong, and the spot records it. */
static bool judge_element(const Search *s, const Judge *j, Spot *spot, const Tensor *type,
                          int64_t element) {
    size_t n_bytes = dtype_bytes(type->dtype);
    if (element == -1) return true;
    spot->state = SPOT_WRONG;
    spot->element = -1;
    if (element < 0) return false;
    const uint8_t *actual = j->bytes[0] + (size_t)j->at * n_bytes;
    const uint8_t *expected = s->in->expected[trace_of(s, (uint32_t)(spot - s->spots.data))->node] +
                              (size_t)element * n_bytes;
    bool is_same = verify_bits(type->dtype, actual, expected, n_bytes) < 0;
    if (is_same) spot->state = SPOT_RIGHT;
    if (is_same) return true;
    spot->element = element;
    spot->actual = dtype_load(type->dtype, actual);
    spot->expected = dtype_load(type->dtype, expected);
    return false;
}

/* Advances the loops of a probe; false after the last point. */
static bool next_point(const Probe *probe, const int64_t *extents, int64_t *axes) {
    for (uint32_t k = probe->n_axes; k-- > 0;) {
        if (++axes[probe->axes[k]] < extents[k]) return true;
        axes[probe->axes[k]] = 0;
    }
    return false;
}

static void judge_spot(Search *s, Spot *spot, const uint8_t *const *bytes) {
    const Probe *probe = &spot->probe;
    const Kernel *kernel = kernel_at(s, probe->kernel);
    const Trace *trace = &kernel->traces.data[spot->trace];
    Judge j = {.search = s, .probe = probe, .bytes = bytes};
    Tensor type;
    const char *error = NULL;
    int64_t axes[MAX_AXES] = {0}, extents[MAX_AXES], n = 1;
    IndexPoint point = {.axes = axes, .value_at = gathered, .user = &j};
    bool is_known =
        compile_place(s, kernel, trace, &j) &&
        interp_shape(s->graph, trace->node, s->in->symbol_values, &type, s->arena, &error);
    for (uint32_t k = 0; k < probe->n_axes && is_known; k++) {
        DimId extent = kernel_axis_extent(kernel, probe->axes[k]);
        is_known = dim_eval(s->graph->dims, extent, s->in->symbol_values, &extents[k]);
        n *= extents[k];
    }
    spot->state = is_known ? SPOT_RIGHT : SPOT_BLIND;
    bool goes_on = is_known && n > 0;
    while (goes_on) {
        if (!judge_element(s, &j, spot, &type, element_at(&j, &type, &point))) return;
        j.at++;
        goes_on = next_point(probe, extents, axes);
    }
}

/* Trials. */

static bool has_room(const Search *s, const Probe *chosen, uint32_t n, const Spot *spot,
                     int64_t n_bytes) {
    const Kernel *kernel = kernel_at(s, spot->probe.kernel);
    uint32_t n_args = kernel->args.n + spot->probe.scalars.n;
    for (uint32_t i = 0; i < n && !spot->probe.is_own_map; i++)
        if (chosen[i].kernel == spot->probe.kernel && !chosen[i].is_own_map)
            n_args += chosen[i].scalars.n;
    return n < MAX_PROBES && n_args <= MAX_KERNEL_ARGS &&
           (n == 0 || n_bytes + spot->n_bytes <= MAX_TRIAL_BYTES);
}

/* Chooses some of the suspects, spread evenly from the first to the last. */
static uint32_t choose(Search *s, Probe *probes, uint32_t *spots) {
    uint32_t n_unknown = 0, n = 0, at = 0;
    int64_t n_bytes = 0;
    for (uint32_t i = 0; i < s->order.n; i++)
        n_unknown += s->spots.data[s->order.data[i]].state == SPOT_UNKNOWN;
    uint32_t stride = n_unknown > MAX_PROBES ? n_unknown / MAX_PROBES : 1;
    for (uint32_t i = 0; i < s->order.n; i++) {
        Spot *spot = &s->spots.data[s->order.data[i]];
        if (spot->state != SPOT_UNKNOWN || at++ % stride) continue;
        if (!has_room(s, probes, n, spot, n_bytes)) {
            /* Its probe needs more arguments than a kernel has. */
            if (n == 0) spot->state = SPOT_BLIND;
            continue;
        }
        n_bytes += spot->n_bytes;
        spots[n] = s->order.data[i];
        probes[n++] = spot->probe;
    }
    return n;
}

static bool run(Search *s, BisectTrial *trial) {
    s->n_trials++;
    if (s->n_trials <= MAX_TRIALS && s->in->run(s->in->user, trial)) return true;
    s->is_broken = true;
    return false;
}

/* Runs one trial; false when the search has ended. */
static bool step(Search *s) {
    Probe probes[MAX_PROBES];
    uint32_t spots[MAX_PROBES];
    list_suspects(s);
    uint32_t n = choose(s, probes, spots);
    BisectTrial trial = {.probes = probes, .n_probes = n, .shown = UINT32_MAX};
    if (n == 0 || !run(s, &trial)) return false;
    s->n_values += n;
    s->is_gone = !trial.is_wrong;
    uint32_t earliest = SPOT_NONE;
    for (uint32_t i = n; i-- > 0;) {
        judge_spot(s, &s->spots.data[spots[i]], trial.bytes[i]);
        if (s->spots.data[spots[i]].state == SPOT_WRONG) earliest = spots[i];
    }
    if (earliest != SPOT_NONE) s->wrong = earliest;
    return !s->is_gone || earliest != SPOT_NONE;
}

/* The report. */

static void put_difference(Search *s, NodeId node, int64_t element, double actual,
                           double expected) {
    Tensor type;
    const char *error = NULL;
    if (element < 0 || !interp_shape(s->graph, node, s->in->symbol_values, &type, s->arena, &error))
        text_puts(&s->text, "it has a place outside the tensor");
    else
        verify_describe(&type, element, actual, expected, &s->text);
}

static void put_node(Search *s, NodeId node) {
    verify_name_node(s->graph, node, &s->text);
}

/* Reports values between a wrong and a right one that no probe could show. */
static void put_blind(Search *s) {
    list_suspects(s);
    bool is_first = true;
    for (uint32_t i = 0; i < s->order.n; i++) {
        if (s->spots.data[s->order.data[i]].state != SPOT_BLIND) continue;
        text_puts(&s->text, is_first ? "  or what could not be looked into: " : "; ");
        if (trace_of(s, s->order.data[i])->is_loaded) text_puts(&s->text, "reading ");
        put_node(s, trace_of(s, s->order.data[i])->node);
        is_first = false;
    }
    if (!is_first) text_puts(&s->text, "\n");
}

/* The nearest later op in the kernel that uses the value. */
static NodeId user_of(const Search *s, uint32_t spot) {
    const Spot *at = &s->spots.data[spot];
    const Kernel *kernel = kernel_at(s, at->kernel);
    for (uint32_t t = at->trace + 1; t < kernel->traces.n; t++)
        for (uint32_t i = 0; i < kernel->traces.data[t].operands.n; i++)
            if (kernel->traces.data[t].operands.data[i] == at->trace)
                return kernel->traces.data[t].node;
    return trace_of(s, spot)->node;
}

/* Whether two temporaries share a byte at these dims. */
static bool overlaps(const Search *s, const Buffer *a, const Buffer *b) {
    DimTab *dims = s->graph->dims;
    int64_t at[2], n[2];
    const Buffer *both[2] = {a, b};
    for (int i = 0; i < 2; i++)
        if (!dim_eval(dims, both[i]->offset_bytes, s->in->symbol_values, &at[i]) ||
            !dim_eval(dims, buffer_bytes(dims, both[i]), s->in->symbol_values, &n[i]))
            return false;
    return at[0] < at[1] + n[1] && at[1] < at[0] + n[0];
}

/* The position in the lowered plan of a kernel of the fused plan. */
static uint32_t launched_at(const Search *s, uint32_t kernel) {
    const Plan *placed = s->in->placed;
    uint32_t k = 0;
    while (k < placed->kernels.n &&
           strcmp(placed->kernels.data[k].name, kernel_at(s, kernel)->name) != 0)
        k++;
    return k;
}

/* Argument `i` of the kernel, if it and `a` are temporaries that share a byte; else NULL. */
static const Buffer *find_sharer(const Search *s, const Kernel *kernel, uint32_t i,
                                 const Buffer *a) {
    const Buffer *b = &s->in->placed->buffers.data[kernel->args.data[i]];
    bool are_temps = a->kind == BUFFER_TEMP && b->kind == BUFFER_TEMP;
    bool are_in_memory = a->space == BUFFER_GLOBAL && b->space == BUFFER_GLOBAL;
    return a != b && are_temps && are_in_memory && overlaps(s, a, b) ? b : NULL;
}

/* Reports temporaries in the same memory that a kernel between the store and the load writes. */
static void put_overlaps(Search *s, uint32_t buffer, uint32_t writer, uint32_t reader) {
    const Plan *placed = s->in->placed;
    uint32_t last = launched_at(s, reader);
    for (uint32_t k = launched_at(s, writer); k <= last && k < placed->kernels.n; k++) {
        const Kernel *kernel = &placed->kernels.data[k];
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            const Buffer *b = find_sharer(s, kernel, i, &placed->buffers.data[buffer]);
            if (!b) continue;
            text_printf(&s->text, "  kernel %s has `%s` in the same place, for ", kernel->name,
                        b->name);
            put_node(s, b->node);
            text_puts(&s->text, "\n");
        }
    }
}

/* A value in memory between the kernel that stores it, or its last slice, and the loading one. */
typedef struct Transit {
    uint32_t load; /* its spot */
    const Store *store;
    uint32_t writer, reader; /* indices of kernels */
    /* The outcome with the temporary in memory of its own. */
    bool is_stored_wrong, is_cured;
} Transit;

/* False for an input, which no kernel stores. */
static bool find_transit(const Search *s, uint32_t load, Transit *transit) {
    *transit = (Transit){.load = load, .reader = s->spots.data[load].kernel};
    NodeId node = trace_of(s, load)->node;
    const Store *store;
    uint32_t writer;
    for (uint32_t i = 0; (store = find_store(s, node, UINT32_MAX, i, &writer)); i++) {
        if (transit->store && launched_at(s, writer) < launched_at(s, transit->writer)) continue;
        transit->store = store;
        transit->writer = writer;
    }
    return transit->store != NULL;
}

/* Runs again with the temporary as an output, in memory of its own, where its value is visible, and
 * with a probe of the wrong value, unless only the output itself is wrong. */
static void look_into(Search *s, Transit *transit) {
    Spot *spot = s->wrong == SPOT_NONE ? NULL : &s->spots.data[s->wrong];
    const Buffer *buffer = &s->plan->buffers.data[transit->store->buffer];
    BisectTrial trial = {.shown = transit->store->buffer};
    if (spot) trial = (BisectTrial){&spot->probe, 1, .shown = trial.shown};
    const uint8_t *expected = s->in->expected[store_holds(s->plan, transit->store)];
    int64_t n_bytes;
    bool is_shown = buffer->kind == BUFFER_TEMP || buffer->kind == BUFFER_PREPARED;
    if (!is_shown || !expected ||
        !dim_eval(s->graph->dims, buffer_bytes(s->graph->dims, buffer), s->in->symbol_values,
                  &n_bytes) ||
        !run(s, &trial))
        return;
    transit->is_stored_wrong =
        verify_bits(buffer->dtype, trial.shown_bytes, expected, (size_t)n_bytes) >= 0;
    transit->is_cured = !trial.is_wrong;
    if (!spot) return;
    Spot kept = *spot;
    judge_spot(s, spot, trial.bytes[0]);
    transit->is_cured = spot->state == SPOT_RIGHT;
    *spot = kept;
}

static void put_stored(Search *s, const Transit *transit, const char *what) {
    text_puts(&s->text, "  first wrong: ");
    put_node(s, store_holds(s->plan, transit->store));
    text_printf(&s->text, ": its value is right in kernel %s, but %s\n",
                kernel_at(s, transit->writer)->name, what);
}

/* Whether the reader does not wait for the writer, as between parallel kernels of a launch. */
static bool is_early(const Search *s, const Transit *transit) {
    uint32_t writer = launched_at(s, transit->writer), reader = launched_at(s, transit->reader);
    if (reader <= writer) return reader < writer;
    const Launch *launch = plan_launch_of(s->in->placed, writer);
    return !launch_shares_blocks(launch) && launch_has(launch, reader);
}

static void put_lost(Search *s, const Transit *transit, BisectVerdict *verdict) {
    const Buffer *buffer = &s->in->placed->buffers.data[transit->store->buffer];
    const char *reader = kernel_at(s, transit->reader)->name;
    verdict->kind = buffer->space != BUFFER_GLOBAL ? BISECT_SMEM : BISECT_OVERLAP;
    put_stored(
        s, transit,
        buffer->space != BUFFER_GLOBAL
            ? str_format(s->arena,
                         "lost in shared memory before kernel %s, in the same launch, reads it",
                         reader)
            : str_format(s->arena, "overwritten in `%s` before kernel %s reads it", buffer->name,
                         reader));
    if (buffer->space == BUFFER_GLOBAL)
        put_overlaps(s, transit->store->buffer, transit->writer, transit->reader);
}

/* Whether the value is lost between store and load; reports it if so. */
static bool judge_transit(Search *s, uint32_t load, BisectVerdict *verdict) {
    Transit transit;
    if (!find_transit(s, load, &transit)) return false;
    const char *reader = kernel_at(s, transit.reader)->name;
    verdict->node = store_holds(s->plan, transit.store);
    verdict->kind = BISECT_ORDER;
    if (is_early(s, &transit)) {
        put_stored(s, &transit, str_format(s->arena, "kernel %s reads it before that", reader));
        return true;
    }
    look_into(s, &transit);
    verdict->kind = BISECT_STORE;
    if (transit.is_cured)
        put_lost(s, &transit, verdict);
    else if (transit.is_stored_wrong)
        put_stored(s, &transit, "not in memory: it is stored at the wrong place");
    return transit.is_cured || transit.is_stored_wrong;
}

/* Whether the kernel that reads the temporary has another argument in the same memory. */
static bool is_gone_over(const Search *s, const Transit *transit) {
    const Plan *placed = s->in->placed;
    uint32_t k = launched_at(s, transit->reader), n = 0;
    for (uint32_t i = 0; k < placed->kernels.n && i < placed->kernels.data[k].args.n; i++)
        n += find_sharer(s, &placed->kernels.data[k], i,
                         &placed->buffers.data[transit->store->buffer]) != NULL;
    return n > 0;
}

/* Whether the loading kernel itself overwrites the value before its last read; reports it if so. A
 * probe may still have seen the right value. */
static bool judge_gone_over(Search *s, uint32_t load, BisectVerdict *verdict) {
    Transit transit;
    if (!trace_of(s, load)->is_loaded || s->n_trials == MAX_TRIALS ||
        !find_transit(s, load, &transit) || !is_gone_over(s, &transit))
        return false;
    look_into(s, &transit);
    if (!transit.is_cured) return false;
    verdict->node = store_holds(s->plan, transit.store);
    put_lost(s, &transit, verdict);
    return true;
}

/* judge_gone_over for all loads, or for those before the wrong op in its kernel. */
static bool judge_all_gone_over(Search *s, BisectVerdict *verdict) {
    bool is_op = s->wrong != SPOT_NONE;
    uint32_t from = is_op ? s->first_spot[s->spots.data[s->wrong].kernel] : 0;
    for (uint32_t i = from; i < (is_op ? s->wrong : s->spots.n); i++)
        if (judge_gone_over(s, i, verdict)) return true;
    return false;
}

static void finish_load(Search *s, BisectVerdict *verdict) {
    const Spot *spot = &s->spots.data[s->wrong];
    NodeId node = trace_of(s, s->wrong)->node;
    if (judge_transit(s, s->wrong, verdict)) return;
    verdict->kind = BISECT_READ;
    verdict->node = user_of(s, s->wrong);
    text_puts(&s->text, "  first wrong: ");
    put_node(s, verdict->node);
    text_printf(&s->text, ", in kernel %s, reads its operand ",
                kernel_at(s, spot->probe.kernel)->name);
    put_node(s, node);
    text_puts(&s->text, ", at the wrong place: ");
    put_difference(s, node, spot->element, spot->actual, spot->expected);
    text_puts(&s->text, "\n");
}

/* The op's operands are right, except that some may be lost in memory, which no probe shows. */
static void finish_op(Search *s, BisectVerdict *verdict) {
    const Spot *spot = &s->spots.data[s->wrong];
    const Trace *trace = trace_of(s, s->wrong);
    list_suspects(s);
    for (uint32_t i = 0; i < s->order.n; i++) {
        uint32_t suspect = s->order.data[i];
        if (s->spots.data[suspect].state == SPOT_BLIND && trace_of(s, suspect)->is_loaded &&
            judge_transit(s, suspect, verdict))
            return;
    }
    if (judge_all_gone_over(s, verdict)) return;
    verdict->kind = BISECT_OP;
    verdict->node = trace->node;
    text_puts(&s->text, "  first wrong: ");
    put_node(s, trace->node);
    text_printf(&s->text, ", in kernel %s: ", kernel_at(s, spot->probe.kernel)->name);
    put_difference(s, trace->node, spot->element, spot->actual, spot->expected);
    text_puts(&s->text, trace->operands.n ? "; what it is made of is right\n" : "\n");
    put_blind(s);
}

/* The first slice of the output that is not known to be right, if any. */
static const Spot *find_suspect(Search *s) {
    uint32_t kernel = 0, buffer = s->root->buffer;
    NodeId held = store_holds(s->plan, s->root);
    const Store *store;
    for (uint32_t i = 0; (store = find_store(s, held, buffer, i, &kernel)); i++) {
        const Spot *spot = &s->spots.data[spot_of_store(s, store, kernel)];
        if (spot->state == SPOT_RIGHT) continue;
        s->root = store;
        s->root_kernel = kernel;
        return spot;
    }
    return &s->spots.data[spot_of_store(s, s->root, s->root_kernel)];
}

/* The output is wrong, but no probe shows a wrong value. */
static void finish_output(Search *s, BisectVerdict *verdict) {
    const Spot *spot = find_suspect(s);
    const char *kernel = kernel_at(s, s->root_kernel)->name;
    if (s->is_gone && judge_all_gone_over(s, verdict)) return;
    verdict->kind = s->is_gone ? BISECT_SCHEDULE : BISECT_STORE;
    verdict->node = spot->state == SPOT_RIGHT ? store_holds(s->plan, s->root) : s->root->node;
    text_puts(&s->text, "  first wrong: ");
    put_node(s, verdict->node);
    text_printf(&s->text, ", in kernel %s", kernel);
    if (s->is_gone)
        text_puts(&s->text, " or before it: with the values of its ops stored beside it the output "
                            "is right, so it is no op that is wrong but how a kernel is scheduled");
    else if (spot->state == SPOT_RIGHT)
        text_puts(&s->text, ": its value is right, but stored at the wrong place or not at all");
    text_puts(&s->text, "\n");
    put_blind(s);
}

static void finish(Search *s, BisectVerdict *verdict) {
    if (s->wrong == SPOT_NONE)
        finish_output(s, verdict);
    else if (trace_of(s, s->wrong)->is_loaded)
        finish_load(s, verdict);
    else
        finish_op(s, verdict);
}

BisectVerdict bisect_find(const Bisect *bisect) {
    Search s = {.in = bisect,
                .plan = bisect->plan,
                .graph = bisect->plan->graph,
                .arena = bisect->arena,
                .wrong = SPOT_NONE,
                .text = {.arena = bisect->arena}};
    BisectVerdict verdict = {.kind = BISECT_FAILED, .text = ""};
    s.root = find_store(&s, s.plan->buffers.data[bisect->buffer].node, bisect->buffer, 0,
                        &s.root_kernel);
    if (!s.root) return verdict;
    list_spots(&s);
    while (step(&s)) {
    }
    if (!s.is_broken) finish(&s, &verdict);
    if (s.is_broken) verdict.kind = BISECT_FAILED;
    verdict.kernel = s.wrong == SPOT_NONE ? s.root_kernel : s.spots.data[s.wrong].probe.kernel;
    verdict.n_values = s.n_values;
    verdict.n_trials = s.n_trials;
    verdict.text = text_str(&s.text);
    return verdict;
}
