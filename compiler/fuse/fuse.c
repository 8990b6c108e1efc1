/* From grouping to plan: buffers, inlined kernels, splits of long reductions, and the ledger's
 * edges. See fuse.h. */
#include "fuse/fuse.h"

#include "base/diag.h"
#include "fuse/alike_kernels.h"
#include "fuse/group.h"
#include "fuse/group_memo.h"
#include "fuse/hoist.h"
#include "layout/order.h"
#include "layout/pad.h"
#include "template/sort.h"

#include <string.h>

#define MAX_SCALARS_FINAL UINT32_MAX

/* A group that cannot be a kernel: the reason, and the nodes for which it was opened. */
typedef struct FuseFailure {
    InlineFailure why;
    bool is_fixed;    /* a `kernel` block of the source */
    bool is_reported; /* the plan has too many buffers */
    VecU32 nodes;
} FuseFailure;

typedef struct Fuser {
    Arena *arena, *scratch;
    const Graph *graph;
    const Decisions *decisions; /* FuseOptions */
    Grouping *grouping;
    Plan *plan;
    bool has_im2col, has_f8_mma, has_traces, has_cores;
    uint32_t *buffer_of_node;
    uint32_t *buffer_of_output;
    VecU32 *makers;      /* per node: the groups whose kernels compute it, ascending */
    uint32_t *loaded_by; /* per buffer: the last kernel that loads it, plus 1 */
} Fuser;

static uint32_t add_buffer(Fuser *f, BufferKind kind, uint32_t ordinal, NodeId id, Str name) {
    const Node *node = graph_node(f->graph, id);
    vec_push(f->arena, &f->plan->buffers,
             (Buffer){.kind = kind,
                      .ordinal = ordinal,
                      .dtype = node->dtype,
                      .shape = node->shape,
                      .node = id,
                      .name = name,
                      .offset_bytes = dim_const(f->graph->dims, 0)});
    return f->plan->buffers.n - 1;
}

/* Per node, one more than the last group that may read it but to update it. A value without a group
 * is computed where it is read, and one with a group may be computed again. */
static uint32_t *last_readers(const Fuser *f) {
    uint32_t n = f->graph->nodes.n, *last = arena_array(f->scratch, uint32_t, n);
    for (NodeId id = n; id-- > 0;) {
        const Node *node = graph_node(f->graph, id);
        uint32_t group = f->grouping->group_of[id],
                 own = group != GROUP_NONE ? group + 1 : last[id];
        for (uint32_t i = graph_is_update(f->graph, id); i < node->n_args; i++)
            if (own > last[node->args[i]]) last[node->args[i]] = own;
    }
    for (uint32_t i = 0; i < f->grouping->groups.n; i++) {
        const Group *group = &f->grouping->groups.data[i];
        for (uint32_t k = 0; k < group->loads.n; k++)
            if (i + 1 > last[group->loads.data[k]]) last[group->loads.data[k]] = i + 1;
    }
    return last;
}

static bool has_must(const Graph *graph) {
    for (uint32_t i = 0; i < graph->fixed_kernels.n; i++)
        if (graph->fixed_kernels.data[i].kind == BLOCK_MUST)
            return true; /* computes values again */
    return false;
}

/* An update that may be made where its first argument lies: no kernel reads the argument once the
 * update is made. Such updates and what they update share one buffer. */
enum { SHARES_BUFFER };

static NodeFlags flag_shared(const Fuser *f) {
    const Graph *graph = f->graph;
    NodeFlags flags = f->grouping->flags;
    const uint32_t *last = last_readers(f);
    uint32_t *n_updates = arena_array(f->scratch, uint32_t, graph->nodes.n);
    NodeFlags shared = node_flags_new(f->scratch, graph->nodes.n);
    for (NodeId id = 0; id < graph->nodes.n; id++)
        if (graph_is_update(graph, id)) n_updates[graph_node(graph, id)->args[0]]++;
    bool may = !has_must(graph);
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        if (!graph_is_update(graph, id) || !may) continue;
        NodeId old = graph_node(graph, id)->args[0];
        bool may_go = !graph_is_bound(graph, old) && !node_has(flags, old, GROUPING_OUTPUT) &&
                      !node_has(flags, old, GROUPING_CAN_PREPARE) &&
                      !node_has(flags, old, GROUPING_IN_PLACE);
        if (may_go && n_updates[old] == 1 && last[old] <= f->grouping->group_of[id])
            node_add(shared, id, SHARES_BUFFER);
    }
    return shared;
}

/* Orders the axes of temporaries as their readers want, and pads rows for tile copies. */
static void lay_out_temps(Fuser *f, FuseOptions options) {
    NodeFlags flags = f->grouping->flags;
    StoredValues stored = {.values = flags,
                           .stored = GROUPING_STORED,
                           .output = GROUPING_OUTPUT,
                           .prepared = GROUPING_CAN_PREPARE};
    OrderOptions order = {.off = options.off,
                          .has_cores = options.has_cores,
                          .given = f->decisions ? f->decisions->inner : NULL};
    const uint32_t *inner = order_axes(f->scratch, f->graph, stored, order);
    const DimId *pitches = NULL;
    if (options.pads_rows) pitches = pad_rows(f->scratch, f->graph, flags, GROUPING_STORED, inner);
    for (uint32_t i = 0; i < f->plan->buffers.n; i++) {
        Buffer *buffer = &f->plan->buffers.data[i];
        if (inner[buffer->node]) buffer_put_inside(buffer, inner[buffer->node] - 1);
        if (pitches && buffer->kind == BUFFER_TEMP) buffer->pitch = pitches[buffer->node];
    }
}

static void make_buffers(Fuser *f) {
    const Graph *graph = f->graph;
    NodeFlags shared = flag_shared(f);
    uint32_t n_temps = 0, most = graph->inputs.n + graph->params.n + graph->outputs.n;
    for (NodeId id = 0; id < graph->nodes.n; id++)
        most += node_has(f->grouping->flags, id, GROUPING_STORED);
    vec_reserve(f->arena, &f->plan->buffers, most);
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        const GraphInput *input = &graph->inputs.data[i];
        f->buffer_of_node[input->node] = add_buffer(f, BUFFER_INPUT, i, input->node, input->name);
    }
    for (uint32_t i = 0; i < graph->params.n; i++) {
        const GraphInput *param = &graph->params.data[i];
        f->buffer_of_node[param->node] = add_buffer(f, BUFFER_PARAM, i, param->node, param->name);
    }
    for (uint32_t i = 0; i < graph->outputs.n; i++) {
        const GraphOutput *output = &graph->outputs.data[i];
        f->buffer_of_output[i] = add_buffer(f, BUFFER_OUTPUT, i, output->node, output->name);
        if (node_has(f->grouping->flags, output->node, GROUPING_STORED))
            f->buffer_of_node[output->node] = f->buffer_of_output[i];
    }
    for (NodeId id = graph->nodes.n; id-- > 0;)
        if (f->buffer_of_node[id] != UINT32_MAX && node_has(shared, id, SHARES_BUFFER))
            f->buffer_of_node[graph_node(graph, id)->args[0]] = f->buffer_of_node[id];
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        if (!node_has(f->grouping->flags, id, GROUPING_STORED) ||
            f->buffer_of_node[id] != UINT32_MAX)
            continue;
        if (node_has(shared, id, SHARES_BUFFER)) {
            f->buffer_of_node[id] = f->buffer_of_node[graph_node(graph, id)->args[0]];
            continue;
        }
        Str name = str_format(f->arena, "t%u", n_temps);
        f->buffer_of_node[id] = add_buffer(f, BUFFER_TEMP, n_temps++, id, name);
    }
}

/* The name that a profiler shows: graph, last op of the kernel, source line. */
static Str kernel_name(const Fuser *f, const Group *group, uint32_t index, Span *span) {
    const Graph *graph = f->graph;
    NodeId last = group->targets.n ? group->targets.data[group->targets.n - 1].node
                                   : group->reduces.data[group->reduces.n - 1];
    const Node *node = graph_node(graph, last);
    *span = node->span;
    uint32_t line = graph->source ? source_position(graph->source, node->span.begin).line : 0;
    if (group->fixed) return graph->fixed_kernels.data[group->fixed - 1].name;
    const char *name = str_format(f->arena, "%s_%u_%s_l%u", graph->name, index,
                                  node->name ? node->name : op_info(node->op)->name, line);
    for (uint32_t i = 0; i < graph->fixed_kernels.n; i++)
        if (graph->fixed_kernels.data[i].kind == BLOCK_KERNEL &&
            strcmp(graph->fixed_kernels.data[i].name, name) == 0)
            return str_format(f->arena, "%s_own", name);
    return name;
}

/* Edges of the ledger. An edge is fused if a kernel computes both of its ends. */

static bool contains(const VecU32 *list, uint32_t value) {
    uint32_t low = 0, high = list->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list->data[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < list->n && list->data[low] == value;
}

static bool any_kernel_makes_both(const Fuser *f, NodeId producer, NodeId consumer) {
    const VecU32 *few = &f->makers[producer], *many = &f->makers[consumer];
    if (few->n > many->n) {
        const VecU32 *swapped = few;
        few = many;
        many = swapped;
    }
    for (uint32_t i = 0; i < few->n; i++)
        if (contains(many, few->data[i])) return true;
    return false;
}

/* Whether the edge leads from a value that params determine to one that they do not. */
static bool leaves_params(const Fuser *f, NodeId producer, NodeId consumer) {
    NodeFlags flags = f->grouping->flags;
    return node_has(flags, producer, GROUPING_CAN_PREPARE) &&
           !node_has(flags, consumer, GROUPING_CAN_PREPARE);
}

/* Whether a kernel that computes the consumer loads the producer. An index into an axis of one
 * element, for example, needs no load. */
static bool is_read(const Fuser *f, NodeId producer, NodeId consumer) {
    const VecU32 *readers = &f->makers[consumer];
    for (uint32_t i = 0; i < readers->n; i++) {
        const Group *group = &f->grouping->groups.data[readers->data[i]];
        for (uint32_t k = 0; k < group->loads.n; k++)
            if (group->loads.data[k] == producer) return true;
    }
    return false;
}

/* The reason why no kernel computes both the producer and the consumer, if only that keeps them
 * apart. An output too is read from memory by a kernel that by price does not store it. */
static ReasonId why_refused(const Fuser *f, NodeId producer, NodeId consumer) {
    ReasonId why = f->grouping->why_stored[producer], apart = f->grouping->why_apart[producer];
    bool is_priced = why == REASON_OUTPUT && apart == REASON_SLOWER;
    if (why != apart && !is_priced) return why;
    const Refusal *refusals = f->grouping->refusals.data;
    for (uint32_t i = f->grouping->last_refusal[producer]; i; i = refusals[i - 1].of_load)
        if (contains(&f->makers[consumer], refusals[i - 1].group)) why = refusals[i - 1].reason;
    return why; /* the first reason */
}

/* Whether a kernel computes a slice of the matmul for the consumer only. */
static bool is_gemm_slice(const Fuser *f, NodeId producer, NodeId consumer) {
    return f->grouping->gemm_slice_of[consumer] != NODE_NONE &&
           graph_node(f->graph, consumer)->args[0] == producer;
}

/* Whether the consumer replaces a part of the value in memory. */
static bool is_updated(const Graph *graph, NodeId producer, NodeId consumer) {
    return graph_is_update(graph, consumer) && graph_node(graph, consumer)->args[0] == producer;
}

static Edge judge_edge(const Fuser *f, NodeId producer, NodeId consumer) {
    NodeFlags flags = f->grouping->flags;
    OpClass of_producer = graph_class(f->graph, producer);
    Edge edge = {.producer = producer, .consumer = consumer, .verdict = EDGE_FUSED};
    if (of_producer == CLASS_SOURCE && graph_node(f->graph, producer)->op != OP_IOTA)
        edge.reason = REASON_SOURCE;
    else if (is_updated(f->graph, producer, consumer))
        edge.verdict = EDGE_STORED, edge.reason = REASON_UPDATED;
    else if (node_has(flags, consumer, GROUPING_IN_PLACE))
        edge.reason = REASON_CONCAT_IN_PLACE;
    else if (any_kernel_makes_both(f, producer, consumer))
        edge.reason = node_has(flags, consumer, GROUPING_DROPS_REST) ? REASON_SLICE_STORE
                      : is_gemm_slice(f, producer, consumer)         ? REASON_MATMUL_SLICE
                      : of_producer == CLASS_VIEW || of_producer == CLASS_CONCAT ? REASON_VIEW
                      : leaves_params(f, producer, consumer)                     ? REASON_CHEAP
                      : graph_is_reduction(f->graph, producer) && of_producer != CLASS_MATMUL
                          ? REASON_SAME_PASS
                          : REASON_INLINED;
    else {
        edge.verdict = EDGE_STORED;
        bool is_apart = graph_block(f->graph, producer, BLOCK_NEVER) ||
                        graph_block(f->graph, consumer, BLOCK_NEVER);
        edge.reason = why_refused(f, producer, consumer);
        if (edge.reason == REASON_OPERAND &&
            decisions_ask(f->decisions, producer, DIRECTIVE_PRICED))
            edge.reason = REASON_SLOWER;
        if (edge.reason == REASON_FUSION_OFF) return edge;
        if (is_apart)
            edge.reason = REASON_NEVER;
        else if (!is_read(f, producer, consumer))
            edge.verdict = EDGE_FUSED, edge.reason = REASON_UNREAD;
    }
    return edge;
}

static bool is_first_use(const Node *node, uint32_t arg) {
    for (uint32_t i = 0; i < arg; i++)
        if (node->args[i] == node->args[arg]) return false;
    return true;
}

/* Makes one edge for each pair of ops, even if one reads the other several times. */
static void make_edges(Fuser *f) {
    for (NodeId id = 0; id < f->graph->nodes.n; id++) {
        const Node *node = graph_node(f->graph, id);
        for (uint32_t i = 0; i < node->n_args; i++)
            if (is_first_use(node, i))
                vec_push(f->arena, &f->plan->edges, judge_edge(f, node->args[i], id));
    }
    for (uint32_t i = 0; i < f->graph->outputs.n; i++) {
        Edge edge = {.producer = f->graph->outputs.data[i].node,
                     .consumer = NODE_NONE,
                     .output = i,
                     .verdict = EDGE_STORED,
                     .reason = REASON_OUTPUT};
        vec_push(f->arena, &f->plan->edges, edge);
    }
}

/* Removes loads that no scalar uses, such as the index into an axis of one element. */
static void drop_dead_loads(Fuser *f, const Kernel *kernel, Group *group) {
    ArenaMark mark = arena_mark(f->scratch);
    const bool *live = kernel_live_scalars(f->scratch, kernel);
    uint32_t number = f->plan->kernels.n + 1;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (live[id] && s->kind == SCALAR_LOAD) f->loaded_by[s->buffer] = number;
    }
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < group->loads.n; i++)
        if (f->loaded_by[f->buffer_of_node[group->loads.data[i]]] == number)
            group->loads.data[n_kept++] = group->loads.data[i];
    group->loads.n = n_kept;
    arena_rewind(f->scratch, mark);
}

static void note_failure(const Fuser *f, const Group *group, FuseFailure *failure) {
    failure->is_fixed = group->fixed != 0;
    vec_push(f->scratch, &failure->nodes, failure->why.node);
    if (group->gemm_slice) vec_push(f->scratch, &failure->nodes, group->gemm_slice - 1);
    for (uint32_t i = 0; i < group->reduces.n; i++)
        vec_push(f->scratch, &failure->nodes, group->reduces.data[i]);
    for (uint32_t i = 0; i < group->targets.n; i++)
        vec_push(f->scratch, &failure->nodes, group->targets.data[i].node);
}

/* Whether the kernel has several ops and a directive of a test forbids one of them. */
static bool is_unlowered(const Fuser *f, const Kernel *kernel, InlineFailure *why) {
    for (uint32_t i = 0; kernel->nodes.n > 1 && i < kernel->nodes.n; i++)
        if (decisions_ask(f->decisions, kernel->nodes.data[i], DIRECTIVE_UNLOWERED))
            *why = (InlineFailure){.reason = REASON_OTHER_DOMAIN, .node = kernel->nodes.data[i]};
    return why->reason != REASON_NONE;
}

/* Gives a sort memory for two orders of each row, unless all rows are short (SORT_LOCAL) or few
 * places of an order are kept. To the plan it is one more store of the kernel. Code may read one
 * item behind the orders. */
static void add_scratch(Fuser *f, Kernel *kernel) {
    DimTab *dims = f->graph->dims;
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimId row = kernel_n_reduced(kernel);
    if (dim_hi(dims, row) <= SORT_LOCAL || sort_selects(kernel, f->has_cores)) return;
    uint32_t n_bytes = sort_item_bytes(kernel, f->has_cores);
    Dtype dtype = f->has_cores ? DT_I64 : DT_I32;
    DimId orders = dim_mul_const(dims, dim_mul(dims, kernel_n_rows(kernel), row), 2);
    DimId items = dim_add(dims, orders, dim_const(dims, 1));
    Shape shape = {.rank = 1, .dims = {dim_mul_const(dims, items, n_bytes / dtype_bytes(dtype))}};
    NodeId node = kernel->reduces.data[0].node;
    ScalarId number = scalar_stage(kernel->scalars, DT_I32, 0, (2u << kernel->n_parallel) - 1);
    Store store = {.buffer = plan_add_temp(f->arena, f->plan, node, dtype, shape),
                   .address = index_row_major(tab, kernel->n_parallel + 1),
                   .value = scalar_cvt(kernel->scalars, number, dtype),
                   .node = node,
                   .is_scratch = true};
    vec_push(f->arena, &kernel->stages.data[0].stores, store);
}

static bool compose_all(Fuser *f, NodeKinds *kinds, FuseFailure *failure) {
    uint32_t n_groups = f->grouping->groups.n;
    InlineMarks marks = inline_marks_new(f->scratch, f->graph);
    AlikeKernels *known = alike_kernels_new(f->scratch, kinds, f->graph);
    vec_reserve(f->arena, &f->plan->kernels, n_groups);
    f->makers = arena_array(f->scratch, VecU32, f->graph->nodes.n);
    f->loaded_by = arena_array(f->scratch, uint32_t, f->plan->buffers.n);
    for (uint32_t i = 0; i < n_groups; i++) {
        Group *group = &f->grouping->groups.data[i];
        InlineInput input = {.graph = f->graph,
                             .marks = &marks,
                             .scratch = f->scratch,
                             .group_of = f->grouping->group_of,
                             .group = i,
                             .flags = f->grouping->flags,
                             .decisions = f->decisions,
                             .buffer_of_node = f->buffer_of_node,
                             .buffer_of_output = f->buffer_of_output,
                             .buffers = f->plan->buffers.data,
                             .has_im2col = f->has_im2col,
                             .has_f8_mma = f->has_f8_mma,
                             .has_traces = f->has_traces,
                             .has_cores = f->has_cores,
                             .max_scalars = MAX_SCALARS_FINAL};
        Kernel kernel = {.name = NULL};
        if (!alike_kernels_inline(f->arena, known, &input, group, &kernel, &failure->why) ||
            is_unlowered(f, &kernel, &failure->why)) {
            note_failure(f, group, failure);
            return false;
        }
        drop_dead_loads(f, &kernel, group);
        if (form_info(kernel.form)->sorts) add_scratch(f, &kernel);
        kernel.name = kernel_name(f, group, i, &kernel.span);
        for (uint32_t k = 0; k < kernel.nodes.n; k++)
            vec_push(f->scratch, &f->makers[kernel.nodes.data[k]], i);
        vec_push(f->arena, &f->plan->kernels, kernel);
    }
    return true;
}

/* The position in the source; for an input or param that is an output, the position of the copy. */
static Span failed_span(const Graph *graph, NodeId id) {
    for (uint32_t i = 0; graph_is_bound(graph, id) && i < graph->outputs.n; i++)
        if (graph->outputs.data[i].node == id && graph->outputs.data[i].copied_by)
            return graph->outputs.data[i].span;
    return graph_node(graph, id)->span;
}

static Plan *report(const Graph *graph, Diags *diags, const FuseFailure *failure) {
    const Node *node = graph_node(graph, failure->why.node);
    if (failure->is_fixed)
        diag_report(diags, DIAG_FIXED_KERNEL, graph->source, failed_span(graph, failure->why.node),
                    "this cannot be in its `kernel` block: %s",
                    reason_info(failure->why.reason)->text);
    else
        diag_report(diags, DIAG_NO_LOWERING, graph->source, node->span,
                    "`%s` has no kernel template yet", op_info(node->op)->name);
    return NULL;
}

/* Options that follow from the target. */
static FuseOptions fuse_options_for(const Target *target) {
    return (FuseOptions){.pads_rows = target->has->tile_copies,
                         .has_im2col = target->has_wgmma,
                         .has_f8_mma = target->f8_ptx_version != NULL,
                         .has_cores = target->has->cores};
}

/* The least number of buffers of a plan without fusion, which may be too many: those of the values
 * that it stores in any case. */
static uint32_t least_buffers(const Graph *graph) {
    uint32_t n = graph->inputs.n + graph->params.n;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        OpClass cls = graph_class(graph, id);
        n += cls == CLASS_ELTWISE || cls == CLASS_CAST;
    }
    return n;
}

static Plan *fuse_once(Arena *arena, Arena *scratch, const Graph *graph, FuseOptions options,
                       Diags *diags, FuseFailure *failure) {
    GroupFailure refused;
    *failure = (FuseFailure){.is_fixed = false};
    failure->is_reported =
        options.off && options.may_hold && !options.may_hold(graph, least_buffers(graph), diags);
    if (failure->is_reported) return NULL;
    Grouping *grouping = group_graph(scratch, graph, options, &refused);
    if (!grouping) {
        failure->why = refused.why;
        failure->is_fixed = refused.root == NODE_NONE && !options.off;
        vec_push(scratch, &failure->nodes, refused.why.node);
        if (refused.root != NODE_NONE) vec_push(scratch, &failure->nodes, refused.root);
        return NULL;
    }
    Plan *plan = arena_array(arena, Plan, 1);
    plan->graph = graph;
    plan->has_ties = grouping->has_ties;
    plan->peak_bytes_unshared = dim_const(graph->dims, 0);
    Fuser f = {.arena = arena,
               .scratch = scratch,
               .graph = graph,
               .grouping = grouping,
               .plan = plan,
               .decisions = options.decisions,
               .has_im2col = options.has_im2col,
               .has_f8_mma = options.has_f8_mma,
               .has_traces = options.has_traces,
               .has_cores = options.has_cores};
    f.buffer_of_node = arena_array(scratch, uint32_t, graph->nodes.n);
    f.buffer_of_output = arena_array(scratch, uint32_t, graph->outputs.n);
    memset(f.buffer_of_node, 0xFF, graph->nodes.n * sizeof *f.buffer_of_node);
    make_buffers(&f);
    lay_out_temps(&f, options);
    failure->is_reported = options.may_hold && !options.may_hold(graph, plan->buffers.n, diags);
    NodeKinds *kinds = group_memo_kinds(group_memo_of(options.memo, graph));
    if (failure->is_reported || !compose_all(&f, kinds, failure)) return NULL;
    make_edges(&f);
    return plan;
}

static bool ask_own_kernel(const Graph *graph, Decisions *decisions, NodeId id) {
    return !graph_block(graph, id, BLOCK_KERNEL) &&
           decisions_add(decisions, id, DIRECTIVE_OWN_KERNEL);
}

/* Makes each op of the failed group a kernel of its own; if they are already, each op of the graph.
 * Returns false if all are. */
static bool unfuse(Arena *arena, const Graph *graph, const FuseFailure *failure,
                   FuseOptions *options) {
    uint32_t n = graph->nodes.n;
    Decisions *decisions =
        options->decisions ? decisions_copy(arena, options->decisions) : decisions_new(arena, n);
    bool any = false;
    for (uint32_t i = 0; i < failure->nodes.n; i++)
        any = ask_own_kernel(graph, decisions, failure->nodes.data[i]) || any;
    bool is_known = any;
    for (NodeId id = 0; id < n && !is_known; id++)
        any = ask_own_kernel(graph, decisions, id) || any;
    options->decisions = decisions;
    return any;
}

Plan *fuse_graph(Arena *arena, Arena *scratch, const Graph *graph, FuseOptions options,
                 Diags *diags) {
    for (;;) {
        FuseFailure failure;
        ArenaMark mark = arena_mark(scratch);
        Plan *plan = fuse_once(arena, scratch, graph, options, diags, &failure);
        if (plan || failure.is_reported) return plan;
        bool may_unfuse = !failure.is_fixed && !options.off;
        if (!may_unfuse || !unfuse(arena, graph, &failure, &options))
            return report(graph, diags, &failure);
        arena_rewind(scratch, mark);
    }
}

bool fuse_pass(const Planning *p, PlanUnit *unit) {
    FuseOptions options = fuse_options_for(p->target);
    options.off = !mode_info(p->mode)->fuses;
    options.decisions = unit->decisions;
    options.has_traces = p->has_traces;
    options.may_hold = p->may_hold;
    options.op_cost = p->op_cost;
    options.work = p->grouped;
    options.memo = unit->group_memo ? unit->group_memo : p->group_memo;
    unit->plan = fuse_graph(p->arena, p->scratch, unit->graph, options, p->diags);
    return unit->plan != NULL;
}
