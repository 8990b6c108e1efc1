/* The ledger and the fused graph. See explain.h. */
#include "pass/explain.h"

typedef struct Ledger {
    const Plan *plan;
    const Graph *graph;
    DimTab *dims;
    Text *out;
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

/* `h (line 7)`, or the op where the value has no name. */
static void print_node(const Ledger *l, NodeId id) {
    const Node *node = graph_node(l->graph, id);
    text_puts(l->out, node->name ? node->name : op_info(node->op)->name);
    if (l->graph->source && node->span.end)
        text_printf(l->out, " (line %u)", source_position(l->graph->source, node->span.begin).line);
}

static Str output_name(const Ledger *l, NodeId id) {
    for (uint32_t i = 0; i < l->graph->outputs.n; i++)
        if (l->graph->outputs.data[i].node == id) return l->graph->outputs.data[i].name;
    return "?";
}

static void print_edge(const Ledger *l, const Edge *edge) {
    const ReasonInfo *reason = reason_info(edge->reason);
    text_puts(l->out, "  ");
    print_node(l, edge->producer);
    text_puts(l->out, " -> ");
    if (edge->consumer == NODE_NONE)
        text_printf(l->out, "output %s", output_name(l, edge->producer));
    else
        print_node(l, edge->consumer);
    text_printf(l->out, ": %s  [%s]  %s, ", edge->verdict == EDGE_FUSED ? "fused" : "stored",
                reason->id, reason->text);
    print_bytes(l, value_bytes(l, edge->producer));
    text_puts(l->out, "\n");
}

/* An output that is stored is an edge of its own, which fusion cannot remove. */
static void print_edges(const Ledger *l, uint32_t *n_fused, uint32_t *n_stored) {
    *n_fused = *n_stored = 0;
    text_puts(l->out, "edges:\n");
    for (uint32_t i = 0; i < l->plan->edges.n; i++) {
        const Edge *edge = &l->plan->edges.data[i];
        bool is_source = op_info(graph_node(l->graph, edge->producer)->op)->cls == CLASS_SOURCE;
        if (!is_source) ++*(edge->verdict == EDGE_FUSED ? n_fused : n_stored);
        print_edge(l, edge);
    }
}

typedef struct Wanted {
    uint32_t buffer;
    bool is_found;
} Wanted;

static void compare_store(void *user, const Store *store) {
    Wanted *wanted = user;
    wanted->is_found = wanted->is_found || store->buffer == wanted->buffer;
}

static bool stores_to(const Kernel *kernel, uint32_t buffer) {
    Wanted wanted = {.buffer = buffer};
    kernel_each_store(kernel, compare_store, &wanted);
    return wanted.is_found;
}

static void print_buffers(const Ledger *l, const Kernel *kernel, bool written) {
    DimId bytes = dim_const(l->dims, 0);
    text_printf(l->out, "    %s", written ? "writes" : "reads");
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        const Buffer *buffer = &l->plan->buffers.data[kernel->args.data[i]];
        if (stores_to(kernel, kernel->args.data[i]) != written) continue;
        text_printf(l->out, " %s%s", buffer->name, buffer->is_on_chip ? " (on chip)" : "");
        if (buffer->is_on_chip) continue;
        bytes = add(l, bytes, buffer_bytes(l->dims, buffer));
    }
    text_puts(l->out, ": ");
    print_bytes(l, bytes);
    text_puts(l->out, "\n");
}

/* Kernels [first, end) of the plan. */
static void print_kernels(const Ledger *l, uint32_t first, uint32_t end) {
    static const char *const forms[] = {[FORM_MAP] = "map",
                                        [FORM_ROW] = "reduction along rows",
                                        [FORM_COLUMN] = "reduction along columns",
                                        [FORM_CONTRACT] = "matmul"};
    for (uint32_t i = first; i < end; i++) {
        const Kernel *kernel = &l->plan->kernels.data[i];
        text_printf(l->out, "  %s: %s", kernel->name, forms[kernel->form]);
        if (kernel->form != FORM_MAP)
            text_printf(l->out, ", %u %s%s", kernel->stages.n,
                        kernel->stages.n == 1 ? "pass" : "passes",
                        kernel->segment_axis == NO_AXIS ? "" : ", partial results of segments");
        text_puts(l->out, kernel->link == LINK_PART    ? ", in the launch of the one before\n"
                          : kernel->link == LINK_PHASE ? ", in the blocks of the one before\n"
                                                       : "\n");
        print_buffers(l, kernel, false);
        print_buffers(l, kernel, true);
    }
}

/* Of a run: init steps are none of it. */
static DimId traffic(const Ledger *l, const Plan *plan) {
    DimId total = dim_const(l->dims, 0);
    for (uint32_t i = plan_n_init(plan); i < plan->kernels.n; i++)
        total = add(l, total, kernel_bytes(plan, &plan->kernels.data[i]));
    return total;
}

/* What any program must move in a run: everything bound or prepared that is used, once. */
static DimId least_traffic(const Ledger *l) {
    DimId total = dim_const(l->dims, 0);
    for (uint32_t b = 0; b < l->plan->buffers.n; b++) {
        const Buffer *buffer = &l->plan->buffers.data[b];
        bool is_used = false;
        for (uint32_t i = plan_n_init(l->plan); i < l->plan->kernels.n; i++)
            for (uint32_t k = 0; k < l->plan->kernels.data[i].args.n; k++)
                is_used = is_used || l->plan->kernels.data[i].args.data[k] == b;
        if (buffer->kind != BUFFER_TEMP && is_used)
            total = add(l, total, buffer_bytes(l->dims, buffer));
    }
    return total;
}

static void print_total(const Ledger *l, const char *what, DimId bytes) {
    text_printf(l->out, "  %-34s ", what);
    print_bytes(l, bytes);
    text_puts(l->out, "\n");
}

/* Of a run. */
static uint32_t n_launches(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = plan_n_init(plan); i < plan->kernels.n; i += plan_launch(plan, i).n) n++;
    return n;
}

static void print_totals(const Ledger *l, const Plan *unfused, uint32_t n_fused,
                         uint32_t n_stored) {
    text_puts(l->out, "totals:\n");
    uint32_t n_init = plan_n_init(l->plan);
    text_printf(l->out, "  %-34s %u", "launches", n_launches(l->plan));
    if (unfused) text_printf(l->out, " (%u without fusion)", n_launches(unfused));
    text_printf(l->out, "\n  %-34s %u fused, %u stored\n", "edges between ops", n_fused, n_stored);
    print_total(l, "moved", traffic(l, l->plan));
    if (unfused) print_total(l, "moved without fusion", traffic(l, unfused));
    print_total(l, "least: inputs and outputs once", least_traffic(l));
    print_total(l, "workspace", l->plan->workspace_bytes);
    print_total(l, "workspace without reuse", l->plan->peak_bytes_unshared);
    if (!n_init) return;
    text_printf(l->out, "  %-34s %u\n", "init steps, not in a run", n_init);
    print_total(l, "prepared by them", plan_prepared_bytes(l->plan));
}

void explain_print(const Plan *plan, const Plan *unfused, Arena *arena, Text *out) {
    Text own = {.arena = arena};
    Ledger l = {.plan = plan, .graph = plan->graph, .dims = plan->graph->dims, .out = &own};
    uint32_t n_fused, n_stored;
    text_printf(&own, "graph %s\n", plan->graph->name);
    print_edges(&l, &n_fused, &n_stored);
    uint32_t n_init = plan_n_init(plan);
    if (n_init) text_puts(&own, "init steps:\n");
    print_kernels(&l, 0, n_init);
    text_puts(&own, "kernels:\n");
    print_kernels(&l, n_init, plan->kernels.n);
    print_totals(&l, unfused, n_fused, n_stored);
    text_puts(out, text_str(&own));
}

/* The fused graph. */

typedef struct Cloner {
    Arena *arena;
    const Graph *from;
    Graph *to;
    NodeId *in_memory; /* per node of `from`: the clone that every kernel may read */
    NodeId *in_kernel; /* per node of `from`: its clone in the current kernel */
} Cloner;

static NodeId clone_node(Cloner *c, NodeId id, uint32_t kernel);

/* What the current kernel reads as the value of `id`. */
static NodeId clone_arg(Cloner *c, NodeId id, uint32_t kernel) {
    if (c->in_kernel[id] != NODE_NONE) return c->in_kernel[id];
    if (c->in_memory[id] != NODE_NONE) return c->in_memory[id];
    return c->in_kernel[id] = clone_node(c, id, kernel);
}

static NodeId clone_node(Cloner *c, NodeId id, uint32_t kernel) {
    Node node = *graph_node(c->from, id);
    NodeId *args = arena_array(c->arena, NodeId, node.n_args);
    for (uint32_t i = 0; i < node.n_args; i++) args[i] = clone_arg(c, node.args[i], kernel);
    node.args = args;
    NodeId made = graph_add(c->to, node);
    vec_push(c->arena, &c->to->kernel_of, kernel);
    return made;
}

static void note_stored(Cloner *c, const Store *stores, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        NodeId id = stores[i].node;
        if (c->in_memory[id] == NODE_NONE) c->in_memory[id] = c->in_kernel[id];
    }
}

/* One block: a kernel, or a finishing kernel for itself and its partials. */
static void clone_kernel(Cloner *c, const Kernel *last) {
    vec_push(c->arena, &c->to->fixed_kernels,
             (FixedKernel){.name = last->name, .span = last->span});
    memset(c->in_kernel, 0xFF, c->from->nodes.n * sizeof *c->in_kernel);
    for (uint32_t i = 0; i < last->nodes.n; i++) {
        NodeId id = last->nodes.data[i];
        OpId op = graph_node(c->from, id)->op;
        if (op == OP_INPUT || op == OP_PARAM || c->in_kernel[id] != NODE_NONE) continue;
        c->in_kernel[id] = clone_node(c, id, c->to->fixed_kernels.n);
    }
    for (uint32_t i = 0; i < last->stages.n; i++)
        note_stored(c, last->stages.data[i].stores.data, last->stages.data[i].stores.n);
    note_stored(c, last->row_stores.data, last->row_stores.n);
}

Graph *explain_fused_graph(Arena *arena, StrTab *strings, const Plan *plan) {
    const Graph *from = plan->graph;
    Cloner c = {.arena = arena, .from = from};
    c.to = graph_new(arena, from->dims, from->source, strtab_intern_z(strings, from->name));
    c.to->span = from->span;
    c.in_memory = arena_array(arena, NodeId, from->nodes.n);
    c.in_kernel = arena_array(arena, NodeId, from->nodes.n);
    memset(c.in_memory, 0xFF, from->nodes.n * sizeof *c.in_memory);
    for (NodeId id = 0; id < from->nodes.n; id++) {
        OpId op = graph_node(from, id)->op;
        if (op == OP_INPUT || op == OP_PARAM) c.in_memory[id] = clone_node(&c, id, 0);
    }
    for (uint32_t i = 0; i < from->inputs.n; i++) {
        GraphInput input = from->inputs.data[i];
        input.node = c.in_memory[input.node];
        vec_push(arena, &c.to->inputs, input);
    }
    for (uint32_t i = 0; i < from->params.n; i++) {
        GraphInput param = from->params.data[i];
        param.node = c.in_memory[param.node];
        vec_push(arena, &c.to->params, param);
    }
    for (uint32_t i = 0; i < plan->kernels.n; i++)
        if (plan->kernels.data[i].segment_axis == NO_AXIS && plan->kernels.data[i].nodes.n)
            clone_kernel(&c, &plan->kernels.data[i]);
    for (uint32_t i = 0; i < from->outputs.n; i++) {
        GraphOutput output = from->outputs.data[i];
        output.node = c.in_memory[output.node];
        if (output.node == NODE_NONE)
            ice(arena, "output %s of graph %s is never stored", output.name, from->name);
        vec_push(arena, &c.to->outputs, output);
    }
    return c.to;
}
