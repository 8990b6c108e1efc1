/* Fills the ledger. See ledger.h. */
#include "explain/ledger.h"

#include "interp/interp.h"
#include "ir/dim/dim_sum.h"

typedef struct Filler {
    Arena *arena;
    const LedgerInput *input;
    const PlanCost *cost;
    const Plan *plan;
    const Graph *graph;
    DimTab *dims;
    Ledger *ledger;
    LedgerBytes *sizes; /* per node, filled when first asked for */
} Filler;

/* Prints the dim; DIM_NONE: a sum of more than dims can count. */
static const char *dim_text(const Filler *f, DimId dim) {
    return dim == DIM_NONE ? "more than 2^62" : dim_str(f->dims, f->arena, dim);
}

static LedgerBytes bytes_of(const Filler *f, DimId dim) {
    return (LedgerBytes){.text = dim_text(f, dim), .n = dim_number(f->dims, dim, f->cost->dims)};
}

static DimId add(const Filler *f, DimId a, DimId b) {
    return a == DIM_NONE || b == DIM_NONE ? DIM_NONE : dim_add(f->dims, a, b);
}

static Position position_of(const Graph *graph, Span span) {
    if (!graph->source || !span.end) return (Position){0, 0};
    return source_position(graph->source, span.begin);
}

static LedgerValue value_of(const Filler *f, NodeId id) {
    const Node *node = graph_node(f->graph, id);
    return (LedgerValue){.node = id,
                         .name = node->name,
                         .op = op_info(node->op)->name,
                         .at = position_of(f->graph, node->span)};
}

/* The bytes as text and as a number, which is right for sizes beyond the range of dims too. */
static LedgerBytes value_bytes(const Filler *f, NodeId id) {
    LedgerBytes *size = &f->sizes[id];
    if (size->text) return *size;
    const Node *node = graph_node(f->graph, id);
    DimId elems = shape_n_elems(f->dims, &node->shape);
    uint32_t n_bytes = dtype_bytes(node->dtype);
    return *size = (LedgerBytes){.text = dim_text(f, dim_mul_const(f->dims, elems, n_bytes)),
                                 .n = dim_number(f->dims, elems, f->cost->dims) * n_bytes};
}

static LedgerAdvice advice_of(const Filler *f, const Advice *advice) {
    AdviceTotals now = {.us = f->cost->us, .n_launches = f->cost->n_launches};
    LedgerAdvice filled = {.advice = advice};
    if (advice->n_steps) filled.text = advice_text(f->arena, f->graph, advice);
    filled.price = advice_price_text(f->arena, f->plan, advice, now);
    return filled;
}

/* Edges. */

/* A stored output is an edge without consumer, which fusion cannot remove. */
static void count_edge(const Filler *f, const Edge *edge) {
    if (graph_class(f->graph, edge->producer) == CLASS_SOURCE || edge->consumer == NODE_NONE)
        return;
    ++*(edge->verdict == EDGE_FUSED ? &f->ledger->n_fused : &f->ledger->n_stored);
}

static void fill_edges(const Filler *f) {
    EdgeCosts costs = edge_costs(f->arena, f->cost, f->input->unfused_cost);
    vec_reserve(f->arena, &f->ledger->edges, f->plan->edges.n);
    for (uint32_t i = 0; i < f->plan->edges.n; i++) {
        const Edge *edge = &f->plan->edges.data[i];
        const Advice *advice = &f->input->advices[i];
        bool is_advised = !f->input->advises_stored_only ||
                          (edge->verdict == EDGE_STORED && edge->consumer != NODE_NONE);
        LedgerEdge filled = {.from = value_of(f, edge->producer),
                             .is_literal = graph_node(f->graph, edge->producer)->op == OP_CONST,
                             .is_fused = edge->verdict == EDGE_FUSED,
                             .reason = reason_info(edge->reason),
                             .size = value_bytes(f, edge->producer),
                             .cost = edge_cost(&costs, edge),
                             .advice = {.advice = advice}};
        if (is_advised) filled.advice = advice_of(f, advice);
        if (edge->consumer == NODE_NONE)
            filled.output = f->graph->outputs.data[edge->output].name;
        else
            filled.to = value_of(f, edge->consumer);
        vec_push(f->arena, &f->ledger->edges, filled);
        count_edge(f, edge);
    }
}

/* Kernels. */

/* A buffer that a kernel may read as a copy has the name of the buffer that it reads at these
 * extents. */
static LedgerBuffer buffer_of(const Filler *f, uint32_t id, bool is_written) {
    const Buffer *buffers = f->plan->buffers.data, *given = &buffers[id];
    uint32_t source = is_written ? id : plan_read_buffer(f->plan, id, f->cost->dims);
    LedgerBuffer filled = {
        .name = buffers[source].name,
        .n_bytes = dim_number(f->dims, buffer_bytes(f->dims, &buffers[source]), f->cost->dims),
        .space = buffers[source].space};
    if (is_written && given->in_place_of) filled.replaces = buffers[given->in_place_of - 1].name;
    if (is_written || !given->choice) return filled;
    if (source == id)
        filled.copy_of = buffers[given->source].name;
    else
        filled.copy = given->name;
    return filled;
}

static LedgerBuffers buffers_of(const Filler *f, const Kernel *kernel, bool are_written) {
    LedgerBuffers filled = {.moved = {0}};
    DimId bytes = dim_const(f->dims, 0);
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t id = kernel->args.data[i];
        if (kernel_stores_to(kernel, id) != are_written) continue;
        vec_push(f->arena, &filled.list, buffer_of(f, id, are_written));
        if (f->plan->buffers.data[id].space == BUFFER_GLOBAL)
            bytes = add(f, bytes, kernel_buffer_bytes(f->plan, kernel, id));
    }
    filled.moved = bytes_of(f, bytes);
    return filled;
}

static VecU32 nodes_of(const Filler *f, const Kernel *kernel) {
    VecU32 nodes = {0};
    if (kernel_lays_out(f->plan, kernel))
        vec_push(f->arena, &nodes, plan_laid_out(f->plan, kernel));
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        vec_push(f->arena, &nodes, kernel->nodes.data[i]);
    return nodes;
}

static LedgerKernel kernel_of(const Filler *f, uint32_t k) {
    const Kernel *kernel = &f->plan->kernels.data[k];
    const KernelCost *cost = &f->cost->kernels[k];
    const Variant *variant = &kernel->variants[cost->variant];
    const Launch *launch = plan_launch_of(f->plan, k);
    LedgerKernel filled = {.name = kernel->name,
                           .at = position_of(f->graph, kernel->span),
                           .form = form_info(kernel->form),
                           .is_tiled = template_info(variant->sched.template)->transposes_loads,
                           .n_passes = kernel->stages.n,
                           .is_partial = kernel->segment_axis != NO_AXIS,
                           .is_joined = launch->first != k,
                           .mode = launch_mode_info(launch->mode),
                           .variant = variant->symbol,
                           .nodes = nodes_of(f, kernel),
                           .reads = buffers_of(f, kernel, false),
                           .writes = buffers_of(f, kernel, true),
                           .cost = *cost};
    if (!kernel_has_alternative(kernel)) return filled;
    Text condition = {.arena = f->arena};
    condition_print(&kernel->choice->condition, f->dims, &condition);
    filled.n_alternatives = plan_n_alternatives(f->plan, kernel->choice);
    filled.condition = text_str(&condition);
    return filled;
}

/* Numbers launches of init steps and launches of a run separately. */
static void fill_kernels(const Filler *f) {
    const Plan *plan = f->plan;
    uint32_t n_init = f->cost->n_init;
    vec_reserve(f->arena, &f->ledger->kernels, plan->kernels.n);
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        LedgerKernel filled = kernel_of(f, k);
        filled.launch =
            plan_launch_index(plan, k) - plan_launch_index(plan, k < n_init ? 0 : n_init);
        vec_push(f->arena, &f->ledger->kernels, filled);
    }
}

/* Launches that could start together, and blocks of the source. */

static void fill_unjoined(const Filler *f) {
    static const Advice none = {.n_steps = 0};
    for (uint32_t i = 0; i < f->plan->unjoined.n; i++) {
        const Unjoined *apart = &f->plan->unjoined.data[i];
        const Advice *advices = f->input->launch_advices;
        LedgerUnjoined filled = {.kernel = apart->kernel,
                                 .other = apart->other,
                                 .reason = reason_info(apart->reason),
                                 .prices = apart->prices,
                                 .advice = advice_of(f, advices ? &advices[i] : &none)};
        filled.n_slower = advice_count_slower(&apart->prices, &filled.slower);
        Text at = {.arena = f->arena};
        if (filled.n_slower) advice_put_point(&at, f->plan, filled.slower->dims, 0);
        filled.slower_at = text_str(&at);
        vec_push(f->arena, &f->ledger->unjoined, filled);
    }
}

static void fill_blocks(const Filler *f) {
    for (uint32_t i = 0; i < f->input->blocks.n; i++) {
        const BlockPrice *price = &f->input->blocks.data[i];
        Span span = f->graph->fixed_kernels.data[price->block].span;
        LedgerBlock filled = {.at = position_of(f->graph, span), .without = price->without};
        vec_push(f->arena, &f->ledger->blocks, filled);
    }
}

static void fill_softmaxes(const Filler *f) {
    for (uint32_t i = 0; i < f->graph->softmaxes.n; i++) {
        const SoftmaxNote *note = &f->graph->softmaxes.data[i];
        LedgerSoftmax filled = {.value = {.node = NODE_NONE,
                                          .name = note->name,
                                          .op = op_info(note->op)->name,
                                          .at = position_of(f->graph, note->span)},
                                .why_left = note->why_left};
        if (!note->why_left)
            filled.bound =
                interp_online_bound(note->values, dim_number(f->dims, note->n_keys, f->cost->dims));
        vec_push(f->arena, &f->ledger->softmaxes, filled);
    }
}

static void fill_dims(const Filler *f) {
    const Plan *unfused = f->input->unfused_cost->plan;
    uint64_t used = 0, given = f->input->given_dims;
    for (uint32_t k = 0; k < unfused->kernels.n; k++) used |= unfused->kernels.data[k].symbols;
    for (uint32_t i = 0; i < dim_n_symbols(f->dims); i++) {
        const DimSymbol *symbol = dim_symbol_info(f->dims, i);
        LedgerDim filled = {.name = symbol->name,
                            .symbol = i,
                            .value = f->cost->dims[i],
                            .is_given = given >> i & 1,
                            .is_used = used >> i & 1};
        if (!symbol->rule) vec_push(f->arena, &f->ledger->dims, filled);
    }
    Text at = {.arena = f->arena};
    advice_put_point(&at, f->plan, f->cost->dims, ~given);
    f->ledger->priced_at = text_str(&at);
}

/* Totals. */

/* The memory traffic of a run that takes the default of each choice, without init steps. */
static DimId traffic(const Filler *f, const Plan *plan) {
    DimSum total = dim_sum_new(f->dims);
    for (uint32_t i = plan_n_init(plan); i < plan->kernels.n; i++)
        if (!kernel_is_alternative(&plan->kernels.data[i]))
            dim_sum_add(&total, kernel_bytes(plan, &plan->kernels.data[i]));
    return dim_sum_total(&total);
}

/* Per buffer: whether it has a copy. */
static bool *find_copied(const Filler *f) {
    bool *is_copied = arena_array(f->arena, bool, f->plan->buffers.n);
    for (uint32_t b = 0; b < f->plan->buffers.n; b++)
        if (f->plan->buffers.data[b].choice) is_copied[f->plan->buffers.data[b].source] = true;
    return is_copied;
}

static bool gathers(const Kernel *kernel, uint32_t buffer) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (s->kind == SCALAR_LOAD && s->buffer == buffer && index_is_gathered(tab, s->index))
            return true;
    }
    return false;
}

/* The bytes of a buffer that a run accesses. Kernels that gather equally many rows gather the same
 * rows. Different parts that kernels read add up, to the whole buffer at most. */
static DimId used_bytes(const Filler *f, const VecU32 *users, uint32_t buffer) {
    DimId used = DIM_NONE, all = buffer_bytes(f->dims, &f->plan->buffers.data[buffer]);
    for (uint32_t i = 0; i < users->n; i++) {
        const Kernel *kernel = &f->plan->kernels.data[users->data[i]];
        if (kernel->is_init) continue;
        DimId own = kernel_buffer_bytes(f->plan, kernel, buffer);
        bool is_same = used == own && gathers(kernel, buffer);
        if (used != DIM_NONE && !is_same) own = add(f, used, own);
        if (kernel_stores_to(kernel, buffer) || !dim_always_le(f->dims, own, all)) return all;
        used = own;
    }
    return used == DIM_NONE ? dim_const(f->dims, 0) : used;
}

/* The bytes that every plan of the graph must move in a run: the used parts of all buffers but
 * temporaries, once each. */
static DimId least_traffic(const Filler *f) {
    DimId total = dim_const(f->dims, 0);
    const VecU32 *users = plan_users(f->arena, f->plan);
    const bool *is_copied = find_copied(f);
    for (uint32_t b = 0; b < f->plan->buffers.n; b++) {
        const Buffer *buffer = &f->plan->buffers.data[b];
        if (buffer->kind == BUFFER_TEMP) continue;
        total = add(f, total,
                    is_copied[b] ? buffer_bytes(f->dims, buffer) : used_bytes(f, &users[b], b));
    }
    return total;
}

static LedgerTotals totals_of(const Filler *f, const PlanCost *cost) {
    return (LedgerTotals){.n_launches = cost->n_launches,
                          .us = cost->us,
                          .dram_bytes = cost->read_bytes + cost->written_bytes,
                          .workspace_bytes = cost->workspace_bytes,
                          .unshared_bytes = cost->unshared_bytes,
                          .peak_bytes = cost->bound_bytes + cost->workspace_bytes,
                          .moved = bytes_of(f, traffic(f, cost->plan))};
}

const Ledger *ledger_new(Arena *arena, const LedgerInput *input) {
    const PlanCost *cost = input->cost;
    const Plan *plan = cost->plan;
    Ledger *ledger = arena_alloc(arena, sizeof *ledger);
    Filler f = {.arena = arena,
                .sizes = arena_array(arena, LedgerBytes, plan->graph->nodes.n),
                .input = input,
                .cost = cost,
                .plan = plan,
                .graph = plan->graph,
                .dims = plan->graph->dims,
                .ledger = ledger};
    Text workspace = {.arena = arena};
    dim_print_largest(f.dims, &plan->workspace, &workspace);
    *ledger = (Ledger){.graph = plan->graph->name,
                       .card = cost->card,
                       .fused = totals_of(&f, cost),
                       .unfused = totals_of(&f, input->unfused_cost),
                       .least_text = dim_text(&f, least_traffic(&f)),
                       .least_bytes = cost->least_bytes,
                       .workspace_text = text_str(&workspace),
                       .unshared_text = dim_text(&f, plan->peak_bytes_unshared),
                       .n_refused = input->n_refused,
                       .n_init = cost->n_init,
                       .n_init_steps = cost->n_init_steps,
                       .init_us = cost->init_us,
                       .init_bytes = cost->init_bytes,
                       .prepared = bytes_of(&f, plan_prepared_bytes(plan))};
    fill_dims(&f);
    fill_edges(&f);
    fill_kernels(&f);
    fill_unjoined(&f);
    fill_blocks(&f);
    fill_softmaxes(&f);
    return ledger;
}
