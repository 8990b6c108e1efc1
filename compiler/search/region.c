/* Which kernels have candidates, and the subgraph that a candidate concerns. See search_state.h. */
#include "search/search_state.h"
#include "plan/must.h"
#include "machine/tuning.h"

#include "fuse/gemm_slice.h"

#include <math.h>

/* Which kernels have candidates. */

/* The largest value of the dim at the points that count. */
static double most(const Searcher *c, DimId dim) {
    double greatest = 0;
    for (uint32_t i = 0; i < c->points.n; i++)
        greatest = fmax(greatest, dim_number(c->graph->dims, dim, c->points.dims[i]));
    return greatest;
}

/* Several passes that each read long rows again, or passes over columns by few blocks. Storing
 * elements also keeps a single pass from being split. */
static bool has_long_passes(const Searcher *c, const Kernel *kernel) {
    const FormInfo *form = form_info(kernel->form);
    bool is_row = form->reduces_rows, is_column = form->reduces_columns;
    bool is_whole = kernel->stages.n > 1 || kernel_stores_inner(kernel);
    int least = is_column ? SEARCH_LONG_COLUMN : c->target->has->blocks ? SEARCH_LONG_ROW : 0;
    return (is_row || is_column) && is_whole && most(c, kernel_n_reduced(kernel)) > least;
}

/* The arguments (bit set) from which the value is computed in its stage. */
static uint64_t loads_below(const Searcher *c, const Kernel *kernel, ScalarId value) {
    const bool *is_reached = scalar_reached(c->scratch, kernel->scalars, value);
    uint64_t loads = 0;
    for (ScalarId id = 1; id <= value; id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (is_reached[id] && s->kind == SCALAR_LOAD)
            loads |= (uint64_t)1 << kernel_find_arg(kernel, s->buffer);
    }
    return loads;
}

/* Whether the kernel's first pass reduces tensors that have nothing in common. */
static bool has_merged_rows(const Searcher *c, const Kernel *kernel) {
    const Stage *first = &kernel->stages.data[0];
    for (uint32_t i = 0; i < first->reduces.n && form_info(kernel->form)->reduces_rows; i++)
        for (uint32_t k = 0; k < i; k++) {
            const Reduce *one = stage_reduce(kernel, first, i);
            const Reduce *other = stage_reduce(kernel, first, k);
            if (!(loads_below(c, kernel, one->value) & loads_below(c, kernel, other->value)))
                return true;
        }
    return false;
}

/* Whether the operand is loaded from an address that depends on axes only. */
static bool is_plain_load(const Kernel *kernel, ScalarId operand) {
    const Scalar *s = scalar_get(kernel->scalars, gemm_unrounded(kernel, operand));
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    return s->kind == SCALAR_LOAD && !s->guard && index_is_affine(tab, s->index);
}

/* Whether the kernel computes the operand, and whether storing the operand for all its matmuls has
 * not been priced yet. */
static bool is_computed(const Searcher *c, const Kernel *kernel, uint32_t side) {
    const Reduce *reduce = &kernel->reduces.data[0];
    NodeId operand = graph_node(c->graph, reduce->node)->args[side];
    while (graph_class(c->graph, operand) == CLASS_VIEW)
        operand = graph_node(c->graph, operand)->args[0];
    return !node_has(c->marks, operand, MARK_ASKED) &&
           !is_plain_load(kernel, side ? reduce->rhs : reduce->value);
}

static const Scalar *operand_of(const Kernel *kernel, uint32_t side) {
    const Reduce *reduce = &kernel->reduces.data[0];
    ScalarId operand = side ? reduce->rhs : reduce->value;
    return scalar_get(kernel->scalars, gemm_unrounded(kernel, operand));
}

/* Whether the GEMM reads the buffer as an operand. */
static bool multiplies(const Kernel *kernel, uint32_t buffer) {
    bool is_operand = false;
    for (uint32_t side = 0; side < 2 && form_info(kernel->form)->multiplies; side++) {
        const Scalar *load = operand_of(kernel, side);
        is_operand = is_operand || (load->kind == SCALAR_LOAD && load->buffer == buffer);
    }
    return is_operand;
}

/* A map whose results only GEMMs read, all of them as operands or none of them. */
typedef struct Maker {
    const Kernel *kernel; /* NULL: there is no such map */
    const Kernel *readers[SEARCH_MOST_READERS];
    uint32_t n_readers;
} Maker;

/* Adds the readers of the buffer that read it as an operand, or those that do not. Returns false if
 * there are others or too many. */
static bool add_readers(const Searcher *c, const Plan *plan, Maker *maker, uint32_t buffer,
                        bool as_operand) {
    const VecU32 *users = &c->buffer_users[buffer];
    for (uint32_t u = 0; u < users->n; u++) {
        const Kernel *k = &plan->kernels.data[users->data[u]];
        if (k <= maker->kernel) continue;
        if (multiplies(k, buffer) != as_operand) return false;
        bool is_known = false;
        for (uint32_t i = 0; i < maker->n_readers; i++)
            is_known = is_known || maker->readers[i] == k;
        if (is_known) continue;
        if (maker->n_readers == SEARCH_MOST_READERS) return false;
        maker->readers[maker->n_readers++] = k;
    }
    return true;
}

/* The map that computes this operand only for this GEMM and others like it. */
static Maker maker_of_operand(const Searcher *c, const Plan *plan, const Kernel *kernel,
                              uint32_t side) {
    const Maker none = {.kernel = NULL};
    const Scalar *load = operand_of(kernel, side);
    Maker maker = none;
    if (load->kind != SCALAR_LOAD || plan->buffers.data[load->buffer].kind != BUFFER_TEMP)
        return none;
    const VecU32 *users = &c->buffer_users[load->buffer];
    for (uint32_t i = 0; i < users->n && !maker.kernel; i++) {
        const Kernel *k = &plan->kernels.data[users->data[i]];
        if (k < kernel && !form_info(k->form)->reduces && !k->is_init &&
            kernel_stores_to(k, load->buffer))
            maker.kernel = k;
    }
    for (uint32_t i = 0; maker.kernel && i < maker.kernel->args.n; i++) {
        uint32_t buffer = maker.kernel->args.data[i];
        if (!kernel_stores_to(maker.kernel, buffer)) continue;
        if (plan->buffers.data[buffer].kind != BUFFER_TEMP ||
            !add_readers(c, plan, &maker, buffer, true))
            return none;
    }
    return maker;
}

/* Whether recomputing the map in the GEMMs has been priced already, for the first of them. */
static bool is_asked(const Plan *plan, const Searcher *c, const Maker *maker) {
    for (uint32_t i = 0; i < maker->kernel->args.n; i++) {
        uint32_t buffer = maker->kernel->args.data[i];
        if (kernel_stores_to(maker->kernel, buffer))
            return node_has(c->marks, plan->buffers.data[buffer].node, MARK_ASKED);
    }
    return false;
}

/* Whether the kernel stores the buffer, and the buffer is a temporary. */
static bool stores_temp(const Plan *plan, const Kernel *kernel, uint32_t buffer) {
    return plan->buffers.data[buffer].kind == BUFFER_TEMP && kernel_stores_to(kernel, buffer);
}

/* Finds the readers of a map whose results are temporaries that only a few kernels read, none of
 * them as an operand. */
static bool find_users(const Searcher *c, const Plan *plan, const Kernel *kernel, Maker *maker) {
    *maker = (Maker){.kernel = kernel};
    for (uint32_t i = 0; i < kernel->args.n && !form_info(kernel->form)->reduces; i++) {
        uint32_t buffer = kernel->args.data[i];
        if (stores_temp(plan, kernel, buffer) && !add_readers(c, plan, maker, buffer, false))
            return false;
    }
    return maker->n_readers > 0;
}

/* Flags the elementwise nodes of one reader where several stored values first meet. Each stored
 * value has a bit in `from`. */
static bool flag_joined(const Searcher *c, const Kernel *reader, const uint64_t *from,
                        NodeFlags flags) {
    uint64_t *below = arena_copy(c->scratch, from, c->graph->nodes.n * sizeof *from);
    bool any = false;
    for (uint32_t k = 0; k < reader->nodes.n; k++) {
        NodeId id = reader->nodes.data[k];
        const Node *node = graph_node(c->graph, id);
        OpClass cls = graph_class(c->graph, id);
        bool is_point = cls == CLASS_ELTWISE || cls == CLASS_CAST;
        if (from[id] || (!is_point && cls != CLASS_VIEW)) continue;
        bool is_behind = false;
        for (uint32_t i = 0; i < node->n_args; i++) {
            uint64_t own = below[node->args[i]];
            below[id] |= own;
            is_behind = is_behind || (own & (own - 1));
        }
        bool meets = is_point && !is_behind && (below[id] & (below[id] - 1));
        if (meets) node_add(flags, id, REGION_JOINED);
        any = any || meets;
    }
    return any;
}

/* Finds a row kernel that stores several values for a few kernels which all combine them to one
 * value first. */
static bool find_joined(const Searcher *c, const Plan *plan, const Kernel *kernel, Maker *maker,
                        NodeFlags flags) {
    *maker = (Maker){.kernel = kernel};
    if (!form_info(kernel->form)->reduces_rows || kernel->is_init ||
        kernel->segment_axis != NO_AXIS)
        return false;
    uint64_t *from = arena_array(c->scratch, uint64_t, c->graph->nodes.n);
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t buffer = kernel->args.data[i];
        if (!stores_temp(plan, kernel, buffer)) continue;
        if (!add_readers(c, plan, maker, buffer, false)) return false;
        from[plan->buffers.data[buffer].node] = (uint64_t)1 << i;
    }
    bool any = false;
    for (uint32_t i = 0; i < maker->n_readers; i++)
        any = flag_joined(c, maker->readers[i], from, flags) || any;
    return any;
}

static bool has_joined(const Searcher *c, const Plan *plan, const Kernel *kernel) {
    Maker maker;
    return find_joined(c, plan, kernel, &maker, node_flags_new(c->scratch, c->graph->nodes.n));
}

static bool has_transposed(const Searcher *c, const Kernel *kernel) {
    return search_find_transposes(c, kernel, node_flags_new(c->scratch, c->graph->nodes.n));
}

/* Whether a CPU GEMM, whose work units may be few, has costly other work. */
static bool has_costly_stores(const Searcher *c, const Kernel *kernel) {
    bool is_costly = false;
    for (uint32_t i = 0; i < kernel->nodes.n; i++) {
        const Node *node = graph_node(c->graph, kernel->nodes.data[i]);
        bool is_rounded = dtype_is_soft(node->dtype) && op_info(node->op)->cls == CLASS_ELTWISE;
        is_costly = is_costly || is_rounded || c->op_cost[node->op] >= SEARCH_COSTLY_PRIMS;
    }
    return is_costly && c->target->has->cores;
}

/* Whether a map contains a concat: its lanes may go one by one, whereas a map per operand could use
 * vectors. */
static bool joins_tensors(const Searcher *c, const Kernel *kernel) {
    if (form_info(kernel->form)->reduces || kernel->nodes.n < 2) return false;
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        if (graph_class(c->graph, kernel->nodes.data[i]) == CLASS_CONCAT) return true;
    return false;
}

/* Flags the views above that value which vectors of a CPU read one by one: they have guards, or
 * bring elements together that are apart in memory. Returns false if there are none. */
static bool flag_costly_views(const Searcher *c, const Graph *graph, NodeId id, NodeFlags flags) {
    bool any = false;
    for (; c->target->has->cores && graph_is_moved(graph, id);
         id = graph_node(graph, id)->args[0]) {
        if (!search_view_is_costly(graph, id)) continue;
        node_add(flags, id, REGION_BROADCAST);
        if (!any) node_add(flags, id, REGION_OUTER_VIEW);
        any = true;
    }
    return any;
}

/* Whether an op with one element of the argument per element of its own reads elements again. */
static bool repeats(const Searcher *c, const Graph *graph, const Node *node, NodeId arg) {
    DimId from = shape_n_elems(graph->dims, &graph_node(graph, arg)->shape),
          to = shape_n_elems(graph->dims, &node->shape);
    bool is_point = op_info(node->op)->cls == CLASS_ELTWISE ||
                    (op_info(node->op)->cls == CLASS_VIEW && node->n_args == 1);
    for (uint32_t i = 0; i < c->points.n && is_point; i++)
        if (dim_number(graph->dims, from, c->points.dims[i]) <
            dim_number(graph->dims, to, c->points.dims[i]))
            return true;
    return false;
}

/* Whether a map reads elements again through costly views. */
static bool repeats_views(const Searcher *c, const Kernel *kernel) {
    NodeFlags flags = node_flags_new(c->scratch, c->graph->nodes.n);
    bool any = false;
    for (uint32_t i = 0; i < kernel->nodes.n; i++) {
        const Node *node = graph_node(c->graph, kernel->nodes.data[i]);
        any = any || (node->n_args == 1 && repeats(c, c->graph, node, node->args[0]) &&
                      flag_costly_views(c, c->graph, node->args[0], flags));
    }
    return any;
}

/* Whether few threads of a GPU, one for each result of segments, gather long runs. */
static bool gathers_segments(const Searcher *c, const Kernel *kernel) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    bool any = false;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        any = any || (s->kind == SCALAR_LOAD && index_is_gathered(tab, s->index));
    }
    return any && form_info(kernel->form)->divides && c->target->has->blocks &&
           most(c, kernel_n_reduced(kernel)) > SEARCH_LONG_ROW &&
           most(c, kernel_n_rows(kernel)) < SEARCH_FEW_RESULTS;
}

NodeId search_main_node(const Kernel *kernel) {
    return kernel->reduces.n ? kernel->reduces.data[0].node
                             : kernel->stages.data[0].stores.data[0].node;
}

/* A matmul that kernels read slices of. */
typedef struct Sliced {
    GemmSlices slices;
    const Kernel *readers[SEARCH_MOST_READERS];
    uint32_t n_readers;
} Sliced;

/* Whether the store is of the matmul or a slice of it, into a temporary. */
static bool is_sliced_temp(const Plan *plan, const Sliced *sliced, const Store *store) {
    return plan->buffers.data[store->buffer].kind == BUFFER_TEMP &&
           (vec_has(&sliced->slices.inside, store->node) ||
            vec_has(&sliced->slices.slices, store->node));
}

/* Returns false if too many kernels read the slices. */
static bool add_slice_readers(const Plan *plan, const Kernel *kernel, Sliced *sliced) {
    for (const Kernel *k = kernel + 1; k < plan->kernels.data + plan->kernels.n; k++) {
        bool reads = false;
        for (uint32_t i = 0; i < kernel->row_stores.n && !reads; i++) {
            const Store *store = &kernel->row_stores.data[i];
            reads =
                is_sliced_temp(plan, sliced, store) && kernel_find_arg(k, store->buffer) != NO_ARG;
        }
        if (!reads) continue;
        if (sliced->n_readers == SEARCH_MOST_READERS) return false;
        sliced->readers[sliced->n_readers++] = k;
    }
    return sliced->n_readers > 0;
}

static bool find_sliced(const Searcher *c, const Plan *plan, const Kernel *kernel, Sliced *sliced) {
    *sliced = (Sliced){.n_readers = 0};
    if (!form_info(kernel->form)->multiplies || kernel->segment_axis != NO_AXIS) return false;
    NodeId gemm = kernel->reduces.data[0].node;
    const GemmSlices *slices = &sliced->slices;
    return !decisions_ask(c->decisions, gemm, DIRECTIVE_GEMM_SLICE) &&
           !node_has(c->marks, gemm, MARK_SLICED) &&
           gemm_slice_find(c->scratch, c->graph, c->users, c->leads, gemm, &sliced->slices) &&
           slices->slices.n > 1 && slices->slices.n <= SEARCH_MOST_READERS &&
           gemm_slices_are_alike(c->graph, slices) && add_slice_readers(plan, kernel, sliced);
}

static uint32_t n_ops(const Graph *graph, const Kernel *kernel) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        n += graph_class(graph, kernel->nodes.data[i]) != CLASS_SOURCE;
    return n;
}

static bool has_candidates(const Searcher *c, const Plan *plan, const Kernel *kernel) {
    bool is_partial = kernel->segment_axis != NO_AXIS && !form_info(kernel->form)->multiplies &&
                      !kernel_stores_inner(kernel);
    if (kernel->is_init || is_partial || node_has(c->marks, search_main_node(kernel), MARK_SETTLED))
        return false;
    Maker map;
    if (c->asks_all && n_ops(c->graph, kernel) > 1) return true;
    if (!form_info(kernel->form)->multiplies)
        return has_long_passes(c, kernel) || has_merged_rows(c, kernel) ||
               joins_tensors(c, kernel) || find_users(c, plan, kernel, &map) ||
               has_joined(c, plan, kernel) || has_transposed(c, kernel) ||
               repeats_views(c, kernel) || gathers_segments(c, kernel);
    for (uint32_t side = 0; side < 2; side++) {
        Maker maker = maker_of_operand(c, plan, kernel, side);
        if (is_computed(c, kernel, side) || (maker.kernel && !is_asked(plan, c, &maker)))
            return true;
    }
    return has_costly_stores(c, kernel);
}

bool search_has_candidates(const Searcher *c, const Plan *plan, const Kernel *kernel) {
    ArenaMark mark = arena_mark(c->scratch);
    bool has = has_candidates(c, plan, kernel);
    arena_rewind(c->scratch, mark);
    return has;
}

bool search_has_gemm_slices(const Searcher *c, const Plan *plan, const Kernel *kernel) {
    ArenaMark mark = arena_mark(c->scratch);
    Sliced sliced;
    bool has = !kernel->is_init && find_sliced(c, plan, kernel, &sliced);
    arena_rewind(c->scratch, mark);
    return has;
}

/* Making regions. */

/* A region under construction. */
typedef struct Draft {
    const Searcher *c;
    const Plan *plan;
    NodeFlags flags; /* of the graph: the subgraph's and RegionFlag */
} Draft;

static void mark_stored(void *user, const Store *store) {
    const Draft *d = user;
    node_add(d->flags, store->node, SUBGRAPH_OUT);
}

/* Flags the kernel's ops. Returns false if a `kernel` block contains one of them. */
static bool add_nodes(Draft *d, const Kernel *kernel, unsigned flag) {
    const Graph *graph = d->c->graph;
    for (uint32_t i = 0; i < kernel->nodes.n; i++) {
        NodeId id = kernel->nodes.data[i];
        if (graph_block(graph, id, BLOCK_KERNEL)) return false;
        if (graph_class(graph, id) != CLASS_SOURCE) node_add(d->flags, id, flag);
    }
    return true;
}

/* Adds a GEMM. Partial results of split-k are taken together with the finishing kernel. */
static bool add_gemm(Draft *d, const Kernel *kernel) {
    Kernel stores = *kernel;
    const Kernel *last = kernel;
    while (last->segment_axis != NO_AXIS) last++;
    stores.row_stores = last->row_stores;
    kernel_each_store(&stores, mark_stored, d);
    return add_nodes(d, kernel, SUBGRAPH_IN);
}

static bool add_maker(Draft *d, const Maker *maker, uint32_t side) {
    for (uint32_t i = 0; i < maker->kernel->nodes.n; i++)
        node_add(d->c->marks, maker->kernel->nodes.data[i], MARK_ASKED);
    return add_nodes(d, maker->kernel, SUBGRAPH_IN) &&
           add_nodes(d, maker->kernel, side ? REGION_RIGHT : REGION_LEFT);
}

/* Adds the map that computes this operand, all its readers, and the maps that compute only their
 * other operands. */
static bool add_operand(Draft *d, const Kernel *kernel, uint32_t side) {
    const Searcher *c = d->c;
    Maker maker = maker_of_operand(c, d->plan, kernel, side);
    NodeId operand = graph_node(c->graph, kernel->reduces.data[0].node)->args[side];
    node_set(d->flags, operand, side ? REGION_COMPUTED_RIGHT : REGION_COMPUTED_LEFT,
             is_computed(c, kernel, side));
    if (!maker.kernel || is_asked(d->plan, c, &maker)) return true;
    if (!add_maker(d, &maker, side)) return false;
    for (uint32_t i = 0; i < maker.n_readers; i++) {
        const Kernel *reader = maker.readers[i];
        if (!add_gemm(d, reader)) return false;
        for (uint32_t own = 0; own < 2 && reader != kernel; own++) {
            Maker other = maker_of_operand(c, d->plan, reader, own);
            bool is_own = other.kernel && other.n_readers == 1 && !is_asked(d->plan, c, &other);
            if (is_own && !add_maker(d, &other, own)) return false;
        }
    }
    return true;
}

/* Adds the readers of the map, which would recompute it. */
static bool add_users(Draft *d, const Maker *map) {
    for (uint32_t i = 0; i < map->kernel->args.n; i++) {
        const Buffer *buffer = &d->plan->buffers.data[map->kernel->args.data[i]];
        bool is_stored = kernel_stores_to(map->kernel, map->kernel->args.data[i]);
        if (is_stored && buffer->kind != BUFFER_TEMP)
            node_add(d->flags, buffer->node, SUBGRAPH_OUT);
    }
    for (uint32_t i = 0; i < map->n_readers; i++)
        if (!add_gemm(d, map->readers[i])) return false;
    return add_nodes(d, map->kernel, SUBGRAPH_IN) && add_nodes(d, map->kernel, REGION_LEFT);
}

/* Adds the readers that combine values of the row kernel, if there are any. */
static bool add_joined(Draft *d, const Kernel *kernel) {
    Maker rows;
    if (!find_joined(d->c, d->plan, kernel, &rows, d->flags)) return true;
    for (uint32_t i = 0; i < rows.n_readers; i++)
        if (!add_gemm(d, rows.readers[i])) return false;
    for (uint32_t i = 0; i < kernel->args.n; i++)
        if (stores_temp(d->plan, kernel, kernel->args.data[i]))
            node_drop(d->flags, d->plan->buffers.data[kernel->args.data[i]].node, SUBGRAPH_OUT);
    return true;
}

/* The online kernel that alone reads the matmul's result as its scores; NULL: there is none. */
static const Kernel *online_reader(const Searcher *c, const Plan *plan, const Kernel *kernel) {
    if (!form_info(kernel->form)->multiplies || kernel->row_stores.n != 1) return NULL;
    uint32_t buffer = kernel->row_stores.data[0].buffer;
    const VecU32 *users = &c->buffer_users[buffer];
    if (plan->buffers.data[buffer].kind != BUFFER_TEMP || users->n != 2) return NULL;
    const Kernel *reader = &plan->kernels.data[users->data[1]];
    return form_info(reader->form)->weighs ? reader : NULL;
}

/* Adds that kernel: a launch of both needs operands that are stored. */
static bool add_online(Draft *d, const Kernel *kernel, const Kernel *online) {
    node_drop(d->flags, kernel->row_stores.data[0].node, SUBGRAPH_OUT);
    return add_gemm(d, online);
}

/* Adds the readers of slices of the kernel's matmul. */
static bool add_sliced(Draft *d, const Kernel *kernel) {
    Sliced sliced;
    if (!find_sliced(d->c, d->plan, kernel, &sliced)) return false;
    node_add(d->flags, kernel->reduces.data[0].node, REGION_MAY_SLICE);
    for (uint32_t i = 0; i < sliced.n_readers; i++)
        if (!add_gemm(d, sliced.readers[i])) return false;
    for (uint32_t i = 0; i < kernel->row_stores.n; i++) {
        const Store *store = &kernel->row_stores.data[i];
        if (is_sliced_temp(d->plan, &sliced, store)) node_drop(d->flags, store->node, SUBGRAPH_OUT);
    }
    return true;
}

/* Whether the concat may be stored in place. A dump shows copies in no block, so a concat with more
 * than one copied operand is left to fusion's own rules. A concat in a `fuse must` block belongs to
 * one kernel. A piece in a `fuse never` block is stored as if there were no concat, which a
 * subgraph that only reads the piece cannot know. */
static bool may_place(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    uint32_t n_copies = 0;
    bool has_never = false;
    for (uint32_t i = 0; i < node->n_args; i++) {
        n_copies += graph_is_bound(graph, node->args[i]);
        has_never = has_never || graph_block(graph, node->args[i], BLOCK_NEVER);
    }
    return graph_class(graph, id) == CLASS_CONCAT && n_copies <= 1 && !has_never &&
           !must_block(graph, id);
}

/* Whether a `fuse must` block contains nodes inside and outside the region, and the value between
 * them would be stored. */
static bool breaks_block(const Searcher *c, NodeFlags flags) {
    const Graph *graph = c->graph;
    for (NodeId id = 0; graph->fixed_kernels.n && id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        for (uint32_t i = 0; i < node->n_args; i++)
            if (node_has(flags, id, SUBGRAPH_IN) != node_has(flags, node->args[i], SUBGRAPH_IN) &&
                !decisions_ask(c->decisions, node->args[i], DIRECTIVE_MUST_HOLD) &&
                must_shares(graph, node->args[i], id))
                return true;
    }
    return false;
}

/* Flags what ops would compute again. */
static void flag_broadcast(const Searcher *c, const Graph *graph, NodeFlags flags) {
    for (NodeId id = graph->nodes.n; id-- > 0;) {
        const Node *node = graph_node(graph, id);
        bool is_repeated = node_has(flags, id, REGION_REPEATED);
        for (uint32_t i = 0; i < node->n_args; i++) {
            NodeId arg = node->args[i], value = graph_below_views(graph, arg);
            bool is_last = !is_repeated && repeats(c, graph, node, arg);
            if (is_repeated || is_last) {
                node_add(flags, arg, REGION_REPEATED);
                node_add(flags, value, REGION_REPEATED);
            }
            if (is_last && graph_class(graph, value) != CLASS_SOURCE)
                node_add(flags, value, REGION_BROADCAST);
            if (is_last) flag_costly_views(c, graph, arg, flags);
        }
    }
}

/* The storage orders of the plan's temporaries that are inputs or outputs of the subgraph. A node's
 * first temporary is its value; parts of a split reduction follow. */
static uint32_t *orders_of(const Searcher *c, const Plan *plan, const Subgraph *subgraph) {
    uint32_t n = subgraph->graph->nodes.n;
    uint32_t *inner = arena_array(c->scratch, uint32_t, n);
    uint32_t *of_node = arena_array(c->scratch, uint32_t, c->graph->nodes.n);
    for (uint32_t i = 0; i < plan->buffers.n; i++)
        if (plan->buffers.data[i].kind == BUFFER_TEMP && plan->buffers.data[i].inner)
            of_node[plan->buffers.data[i].node] = plan->buffers.data[i].inner;
    for (uint32_t i = 0; i < subgraph->graph->inputs.n; i++) {
        NodeId id = subgraph->graph->inputs.data[i].node;
        inner[id] = of_node[subgraph->of[id]];
    }
    for (uint32_t i = 0; i < subgraph->graph->outputs.n; i++) {
        NodeId id = subgraph->graph->outputs.data[i].node;
        inner[id] = of_node[subgraph->of[id]];
    }
    return inner;
}

bool search_make_region(const Searcher *c, const Plan *plan, const Kernel *kernel,
                        bool has_gemm_slices, Region *region) {
    const Graph *graph = c->graph;
    Draft d = {.c = c, .plan = plan, .flags = node_flags_new(c->scratch, graph->nodes.n)};
    for (uint32_t side = 0; side < 2 && form_info(kernel->form)->multiplies && !has_gemm_slices;
         side++)
        if (!add_operand(&d, kernel, side)) return false;
    Maker map;
    bool has_users = !has_gemm_slices && find_users(c, plan, kernel, &map);
    if (has_users ? !add_users(&d, &map) : !add_gemm(&d, kernel) || !add_joined(&d, kernel))
        return false;
    const Kernel *online = has_users || has_gemm_slices ? NULL : online_reader(c, plan, kernel);
    if (online && !add_online(&d, kernel, online)) return false;
    if (!has_gemm_slices) search_find_transposes(c, kernel, d.flags);
    if ((has_gemm_slices && !add_sliced(&d, kernel)) || breaks_block(c, d.flags)) return false;
    region->has_gemm_slices = has_gemm_slices;
    region->subgraph = subgraph_of(c->scratch, graph, d.flags);
    region->flags = node_flags_new(c->scratch, region->subgraph.graph->nodes.n);
    for (NodeId id = 0; id < region->flags.n; id++) {
        NodeId of = region->subgraph.of[id];
        if (!node_has(d.flags, of, SUBGRAPH_IN)) continue;
        region->flags.bits[id] = d.flags.bits[of];
        if (may_place(graph, of)) node_add(region->flags, id, REGION_MAY_PLACE);
    }
    region->inner = orders_of(c, plan, &region->subgraph);
    /* A mask that is stored would hide no tile. */
    if (!online) flag_broadcast(c, region->subgraph.graph, region->flags);
    return true;
}
