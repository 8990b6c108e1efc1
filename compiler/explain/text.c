/* The ledger as text. See explain.h. */
#include "explain/explain.h"

#include "plan/launch.h"
#include "plan/rewrite.h"

typedef struct Ledger {
    const ExplainInput *input;
    const Plan *plan;
    const Graph *graph;
    DimTab *dims;
    Text *out;
    EdgeCosts edges;
} Ledger;

/* `dim` may be DIM_NONE: a sum that left the range of dims. */
static void print_bytes(const Ledger *l, DimId dim) {
    if (dim == DIM_NONE)
        text_puts(l->out, "more than 2^62");
    else
        dim_print(l->dims, dim, l->out);
    text_puts(l->out, " bytes");
}

static DimId add(const Ledger *l, DimId a, DimId b) {
    return a == DIM_NONE || b == DIM_NONE ? DIM_NONE : dim_add(l->dims, a, b);
}

static DimId value_bytes(const Ledger *l, NodeId id) {
    const Node *node = graph_node(l->graph, id);
    return dim_mul_const(l->dims, shape_n_elems(l->dims, &node->shape), dtype_bytes(node->dtype));
}

/* `h (line 7:3)`, or the op where the value has no name. */
static void print_node(const Ledger *l, NodeId id) {
    const Node *node = graph_node(l->graph, id);
    text_puts(l->out, node->name ? node->name : op_info(node->op)->name);
    if (!l->graph->source || !node->span.end) return;
    Position at = source_position(l->graph->source, node->span.begin);
    text_printf(l->out, " (line %u:%u)", at.line, at.column);
}

static void print_us(const Ledger *l, double us) {
    advice_put_us(l->out, us);
}

static void print_edge(const Ledger *l, uint32_t i) {
    const Edge *edge = &l->plan->edges.data[i];
    const ReasonInfo *reason = reason_info(edge->reason);
    EdgeCost cost = edge_cost(&l->edges, edge);
    text_puts(l->out, "  ");
    print_node(l, edge->producer);
    text_puts(l->out, " -> ");
    if (edge->consumer == NODE_NONE)
        text_printf(l->out, "output %s", l->graph->outputs.data[edge->output].name);
    else
        print_node(l, edge->consumer);
    text_printf(l->out, ": %s  [%s]  %s, ", edge->verdict == EDGE_FUSED ? "fused" : "stored",
                reason->id, reason->text);
    print_bytes(l, value_bytes(l, edge->producer));
    if (cost.unfused_us > 0) {
        text_puts(l->out, "; apart ");
        print_us(l, cost.unfused_us);
        if (cost.fused_us > 0) {
            text_puts(l->out, ", together ");
            print_us(l, cost.fused_us);
        }
    }
    text_puts(l->out, "\n");
    if (edge->verdict == EDGE_STORED && edge->consumer != NODE_NONE)
        advice_put(l->out, l->plan, "fuse them", &l->input->advices[i], explain_totals(l->input));
}

/* An output that is stored is an edge of its own, which fusion cannot remove. */
static void print_edges(const Ledger *l, uint32_t *n_fused, uint32_t *n_stored) {
    *n_fused = *n_stored = 0;
    text_puts(l->out, "edges:\n");
    for (uint32_t i = 0; i < l->plan->edges.n; i++) {
        const Edge *edge = &l->plan->edges.data[i];
        bool is_source = graph_class(l->graph, edge->producer) == CLASS_SOURCE;
        if (!is_source && edge->consumer != NODE_NONE)
            ++*(edge->verdict == EDGE_FUSED ? n_fused : n_stored);
        print_edge(l, i);
    }
}

/* By name; what may be copied with what is read at these extents first. */
static void print_buffer(const Ledger *l, uint32_t id, bool written) {
    const Buffer *buffer = &l->plan->buffers.data[id];
    uint32_t source = plan_read_buffer(l->plan, id, l->input->cost->dims);
    text_printf(l->out, " %s", l->plan->buffers.data[written ? id : source].name);
    if (buffer->space != BUFFER_GLOBAL) text_puts(l->out, " (on chip)");
    if (written && buffer->takes_over)
        text_printf(l->out, " (in place of %s)",
                    l->plan->buffers.data[buffer->takes_over - 1].name);
    if (written || !buffer->choice) return;
    if (source == id)
        text_printf(l->out, " (a copy of %s)", l->plan->buffers.data[buffer->source].name);
    else
        text_printf(l->out, " (its copy %s where there is one)", buffer->name);
}

static void print_buffers(const Ledger *l, const Kernel *kernel, bool written) {
    DimId bytes = dim_const(l->dims, 0);
    text_printf(l->out, "    %s", written ? "writes" : "reads");
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        const Buffer *buffer = &l->plan->buffers.data[kernel->args.data[i]];
        if (kernel_stores_to(kernel, kernel->args.data[i]) != written) continue;
        print_buffer(l, kernel->args.data[i], written);
        if (buffer->space != BUFFER_GLOBAL) continue;
        bytes = add(l, bytes, kernel_buffer_bytes(l->plan, kernel, kernel->args.data[i]));
    }
    text_puts(l->out, ": ");
    print_bytes(l, bytes);
    text_puts(l->out, "\n");
}

const char *explain_form_name(KernelForm form) {
    return form_info(form)->title;
}

static void print_price(const Ledger *l, const KernelCost *cost) {
    text_puts(l->out, "    takes ");
    print_us(l, cost->us);
    text_puts(l->out, ": launch ");
    print_us(l, cost->launch_us);
    text_puts(l->out, ", memory ");
    print_us(l, cost->memory_us);
    text_puts(l->out, ", arithmetic ");
    print_us(l, cost->arithmetic_us);
    if (cost->tensor_us > 0) {
        text_puts(l->out, ", tensor cores ");
        print_us(l, cost->tensor_us);
    }
    if (cost->spill_us > 0) {
        text_puts(l->out, ", registers kept in memory ");
        print_us(l, cost->spill_us);
    }
    text_printf(l->out, "; %.0f bytes from and to memory\n",
                cost->read_bytes + cost->written_bytes);
    const Pressure *p = &cost->pressure;
    if (!l->input->cost->card->has->blocks) return;
    text_printf(l->out, "    about %u registers a thread%s, %u bytes shared, occupancy %.0f %%\n",
                p->registers, p->spills ? ", more than there are" : "", p->shared_bytes,
                100 * p->occupancy);
}

/* Where other kernels start in the place of this one. */
static void print_choice(const Ledger *l, const Kernel *kernel) {
    bool is_gemm = form_info(kernel->form)->multiplies;
    text_puts(l->out, "    where ");
    condition_print(&kernel->choice->condition, l->dims, l->out);
    text_printf(l->out, ", %s: the next %u start in its place\n",
                is_gemm ? "copies of factors pay" : "rows are few and long",
                plan_n_alternatives(l->plan, kernel->choice));
}

/* What a rewritten kernel is held to, at these extents. */
static void print_rewrite(const Ledger *l, uint32_t k) {
    Rewrite rewrite;
    const Kernel *kernel = &l->plan->kernels.data[k];
    if (!rewrite_of(l->plan, k, &rewrite)) return;
    const Node *product = graph_node(l->graph, rewrite.gemm);
    double n = dim_number(l->dims, kernel_n_reduced(kernel), l->input->cost->dims);
    RewriteBound bound = rewrite_bound(&rewrite, n);
    text_printf(l->out, "    %s: `%s`", ONLINE_NAME, op_info(product->op)->name);
    if (product->name) text_printf(l->out, " that makes `%s`", product->name);
    text_printf(l->out,
                " is within %.3g of the sum of weight times |value|, and %.3g of that of |value|, "
                "before it is rounded\n",
                bound.relative, bound.absolute);
}

/* Kernels [first, end) of the plan. */
static void print_kernels(const Ledger *l, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        const Kernel *kernel = &l->plan->kernels.data[i];
        const Sched *sched = &kernel->variants[l->input->cost->kernels[i].variant].sched;
        text_printf(l->out, "  %s: %s%s", kernel->name, explain_form_name(kernel->form),
                    template_info(sched->template)->transposes_loads ? " in tiles" : "");
        bool is_online = kernel_is_rewritten(l->plan, i);
        uint32_t n_passes = is_online ? 1 : kernel->stages.n;
        if (form_info(kernel->form)->reduces)
            text_printf(l->out, ", %u %s%s", n_passes, n_passes == 1 ? "pass" : "passes",
                        kernel->segment_axis == NO_AXIS ? "" : ", partial results of segments");
        text_puts(l->out, kernel_launch_info(l->plan, i)->text);
        if (is_online) text_printf(l->out, ", rewritten: %s", ONLINE_NAME);
        text_puts(l->out, "\n");
        print_rewrite(l, i);
        print_buffers(l, kernel, false);
        print_buffers(l, kernel, true);
        if (l->input->cost->kernels[i].starts)
            print_price(l, &l->input->cost->kernels[i]);
        else
            text_puts(l->out, "    does not start at these extents\n");
        if (kernel_has_alternative(kernel)) print_choice(l, kernel);
    }
}

/* The traffic of a run that takes the default of each choice, without init steps. */
static DimId traffic(const Ledger *l, const Plan *plan) {
    DimId total = dim_const(l->dims, 0);
    for (uint32_t i = plan_n_init(plan); i < plan->kernels.n; i++)
        if (!kernel_is_alternative(&plan->kernels.data[i]))
            total = add(l, total, kernel_bytes(plan, &plan->kernels.data[i]));
    return total;
}

static bool has_stand_in(const Ledger *l, uint32_t buffer) {
    for (uint32_t b = 0; b < l->plan->buffers.n; b++)
        if (l->plan->buffers.data[b].choice && l->plan->buffers.data[b].source == buffer)
            return true;
    return false;
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

/* What the kernels of a run touch of a buffer: all of it, unless they agree on less, which is then
 * the same rows, or read parts of it that come to less. */
static DimId used_bytes(const Ledger *l, uint32_t buffer) {
    DimId used = DIM_NONE, all = buffer_bytes(l->dims, &l->plan->buffers.data[buffer]);
    if (has_stand_in(l, buffer)) return all;
    for (uint32_t i = plan_n_init(l->plan); i < l->plan->kernels.n; i++) {
        const Kernel *kernel = &l->plan->kernels.data[i];
        if (kernel_find_arg(kernel, buffer) == NO_ARG) continue;
        DimId own = kernel_buffer_bytes(l->plan, kernel, buffer);
        bool is_same = used == own && gathers(kernel, buffer);
        if (used != DIM_NONE && !is_same) own = add(l, used, own);
        if (kernel_stores_to(kernel, buffer) || !dim_always_le(l->dims, own, all)) return all;
        used = own;
    }
    return used == DIM_NONE ? dim_const(l->dims, 0) : used;
}

/* What any program must move in a run: everything bound or prepared that is used, once. */
static DimId least_traffic(const Ledger *l) {
    DimId total = dim_const(l->dims, 0);
    for (uint32_t b = 0; b < l->plan->buffers.n; b++) {
        if (l->plan->buffers.data[b].kind != BUFFER_TEMP) total = add(l, total, used_bytes(l, b));
    }
    return total;
}

static void print_total(const Ledger *l, const char *what, DimId bytes) {
    text_printf(l->out, "  %-34s ", what);
    print_bytes(l, bytes);
    text_puts(l->out, "\n");
}

static void print_dims(const Ledger *l) {
    text_printf(l->out, "priced for %s", l->input->cost->card->name);
    explain_put_point(l->input, l->input->cost->dims, true, l->out);
    text_puts(l->out, "\n");
}

static void print_pair(const Ledger *l, const char *what, double fused, double unfused) {
    text_printf(l->out, "  %-34s %.0f bytes (%.0f without fusion)\n", what, fused, unfused);
}

static void print_totals(const Ledger *l, uint32_t n_fused, uint32_t n_stored) {
    const ExplainInput *input = l->input;
    const PlanCost *cost = input->cost, *before = input->unfused_cost;
    text_puts(l->out, "totals:\n");
    text_printf(l->out, "  %-34s %u (%u without fusion)\n", "launches", cost->n_launches,
                before->n_launches);
    text_printf(l->out, "  %-34s %u fused, %u stored\n", "edges between ops", n_fused, n_stored);
    print_total(l, "in and out of kernels", traffic(l, l->plan));
    print_total(l, "the same without fusion", traffic(l, before->plan));
    print_total(l, "least: inputs and outputs once", least_traffic(l));
    text_printf(l->out, "  %-34s ", "workspace");
    dim_print_largest(l->dims, &l->plan->workspace, l->out);
    text_puts(l->out, " bytes\n");
    print_total(l, "workspace without reuse", l->plan->peak_bytes_unshared);
    print_dims(l);
    text_printf(l->out, "  %-34s ", "time");
    print_us(l, cost->us);
    text_puts(l->out, " (");
    print_us(l, before->us);
    text_puts(l->out, " without fusion)\n");
    print_pair(l, "of that past the cache, in DRAM", cost->read_bytes + cost->written_bytes,
               before->read_bytes + before->written_bytes);
    text_printf(l->out, "  %-34s %.0f bytes\n", "least, in DRAM", cost->least_bytes);
    print_pair(l, "peak of all tensors", cost->bound_bytes + cost->workspace_bytes,
               before->bound_bytes + before->workspace_bytes);
    if (!cost->n_init) return;
    text_printf(l->out, "  %-34s %u, ", "init steps, not in a run", cost->n_init_steps);
    print_us(l, cost->init_us);
    text_printf(l->out, ", %.0f bytes\n", cost->init_bytes);
    print_total(l, "prepared by them", plan_prepared_bytes(l->plan));
}

void explain_print(const ExplainInput *input, Arena *arena, Text *out) {
    Text own = {.arena = arena};
    const PlanCost *cost = input->cost;
    const Plan *plan = cost->plan;
    Ledger l = {.input = input,
                .plan = plan,
                .graph = plan->graph,
                .dims = plan->graph->dims,
                .out = &own,
                .edges = edge_costs(arena, input->cost, input->unfused_cost)};
    uint32_t n_fused, n_stored;
    text_printf(&own, "graph %s\n", plan->graph->name);
    print_edges(&l, &n_fused, &n_stored);
    if (cost->n_init) text_puts(&own, "init steps:\n");
    print_kernels(&l, 0, cost->n_init);
    text_puts(&own, "kernels:\n");
    print_kernels(&l, cost->n_init, plan->kernels.n);
    if (plan->unjoined.n) text_puts(&own, "apart though neither waits for the other:\n");
    for (uint32_t i = 0; i < plan->unjoined.n; i++) explain_put_unjoined(input, i, &own);
    if (input->blocks.n) text_puts(&own, "contracts:\n");
    for (uint32_t i = 0; i < input->blocks.n; i++) explain_put_block(input, i, &own);
    print_totals(&l, n_fused, n_stored);
    text_puts(out, text_str(&own));
}
