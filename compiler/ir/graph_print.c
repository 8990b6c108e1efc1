/* Prints graphs as source text. Each node is one statement in function-call form with its
 * attributes. Unique names are kept; other nodes are named v<number>. */
#include "base/number.h"
#include "ir/loop.h"
#include "ir/node_flags.h"

#include <math.h>

/* The state of one printing. */
typedef struct Printer {
    const Graph *graph;
    Text *out;
    Str *names; /* one per node */
} Printer;

/* Names: a small hash set of texts with open addressing. */
typedef struct NameSet {
    Arena *arena;
    Str *slots;
    uint32_t n_slots; /* a power of two, never half full */
} NameSet;

static bool nameset_add(NameSet *set, Str name) {
    uint64_t hash = hash_bytes(STR_HASH_SEED, name, strlen(name));
    for (uint32_t i = (uint32_t)hash;; i++) {
        Str *slot = &set->slots[i & (set->n_slots - 1)];
        if (*slot && strcmp(*slot, name) == 0) return false;
        if (*slot) continue;
        *slot = name;
        return true;
    }
}

static NameSet nameset_new(Arena *arena, uint32_t n_names) {
    NameSet set = {.arena = arena, .n_slots = 64};
    while (set.n_slots < n_names * 4) set.n_slots *= 2;
    set.slots = arena_array(arena, Str, set.n_slots);
    return set;
}

/* Inputs, params and outputs keep their names; then each node gets its own name or v<number>. */
static Str *choose_names(const Graph *graph, Arena *arena) {
    Str *names = arena_array(arena, Str, graph->nodes.n + 1);
    NameSet set = nameset_new(arena, graph->nodes.n + graph->outputs.n + DIM_MAX_SYMBOLS + 32);
    for (uint32_t i = 0; i < dim_n_symbols(graph->dims); i++)
        nameset_add(&set, dim_symbol_info(graph->dims, i)->name);
    const GraphInput *given[2] = {graph->inputs.data, graph->params.data};
    const uint32_t n_given[2] = {graph->inputs.n, graph->params.n};
    for (int kind = 0; kind < 2; kind++)
        for (uint32_t i = 0; i < n_given[kind]; i++) {
            names[given[kind][i].node] = given[kind][i].name;
            nameset_add(&set, given[kind][i].name);
        }
    for (uint32_t i = 0; i < graph->outputs.n; i++) {
        const GraphOutput *output = &graph->outputs.data[i];
        Str own = graph_node(graph, output->node)->name;
        bool is_new = nameset_add(&set, output->name);
        if (is_new && !names[output->node] && (!own || strcmp(own, output->name) == 0))
            names[output->node] = output->name;
    }
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        Str name = names[id] ? names[id] : graph_node(graph, id)->name;
        if (names[id]) continue;
        if (!name || !graph_is_name(name) || !nameset_add(&set, name)) {
            name = str_format(arena, "v%u", id);
            for (uint32_t k = 1; !nameset_add(&set, name); k++)
                name = str_format(arena, "v%u_%u", id, k);
        }
        names[id] = name;
    }
    return names;
}

/* Attributes. */

/* Prints the fewest digits that read back as the same element. */
static void print_float(Dtype dtype, double number, Text *out) {
    Text digits = {.arena = out->arena};
    for (int n = 1; n <= 17; n++) {
        double read = 0;
        digits.n_bytes = 0;
        number_print(fabs(number), n, &digits);
        if (!isfinite(number) || (number_parse(digits.data, digits.n_bytes, &read) &&
                                  dtype_round(dtype, read) == fabs(number)))
            break;
    }
    text_printf(out, "%s%s", signbit(number) && !isnan(number) ? "-" : "", text_str(&digits));
}

/* An integer beyond the limit of integer literals was written with a point. */
static void print_int(const Attrs *attrs, Text *out) {
    bool is_literal = attrs->whole >= -DIM_LIMIT && attrs->whole <= DIM_LIMIT;
    if (is_literal)
        text_printf(out, "%lld", (long long)attrs->whole);
    else
        text_printf(out, "%.1f", attrs->number);
}

static void print_number(Dtype dtype, const Attrs *attrs, Text *out) {
    switch (dtype_kind(dtype)) {
    case KIND_BOOL:
        text_puts(out, attrs->number != 0 ? "true" : "false");
        return;
    case KIND_INT:
        print_int(attrs, out);
        return;
    case KIND_FLOAT:
        print_float(dtype, attrs->number, out);
        return;
    }
}

static void print_axes(uint32_t axes, Text *out) {
    text_puts(out, ", axis=[");
    for (uint32_t k = 0, n = 0; k < MAX_RANK; k++)
        if (axes >> k & 1) text_printf(out, "%s%u", n++ ? ", " : "", k);
    text_puts(out, "]");
}

static void print_dims(const Printer *p, const char *word, const DimId *dims, uint32_t n) {
    text_printf(p->out, ", %s=", word);
    Shape shape = {.rank = n};
    memcpy(shape.dims, dims, n * sizeof *dims);
    shape_print(p->graph->dims, &shape, p->out);
}

static void print_slice_attrs(const Printer *p, const Node *node) {
    uint32_t rank = node->shape.rank;
    bool has_steps = false;
    print_dims(p, "begin", node->attrs.per_axis->begin, rank);
    print_dims(p, "shape", node->shape.dims, rank);
    for (uint32_t k = 0; k < rank; k++) has_steps = has_steps || node->attrs.per_axis->step[k] != 1;
    if (!has_steps) return;
    text_puts(p->out, ", step=[");
    for (uint32_t k = 0; k < rank; k++)
        text_printf(p->out, "%s%lld", k ? ", " : "", (long long)node->attrs.per_axis->step[k]);
    text_puts(p->out, "]");
}

static void print_pad_attrs(const Printer *p, const Node *node) {
    DimTab *dims = p->graph->dims;
    const Shape *from = &graph_node(p->graph, node->args[0])->shape;
    DimId high[MAX_RANK];
    for (uint32_t k = 0; k < node->shape.rank; k++)
        high[k] = dim_sub(dims, dim_sub(dims, node->shape.dims[k], from->dims[k]),
                          node->attrs.per_axis->begin[k]);
    print_dims(p, "low", node->attrs.per_axis->begin, node->shape.rank);
    print_dims(p, "high", high, node->shape.rank);
    text_puts(p->out, ", value=");
    print_number(node->dtype, &node->attrs, p->out);
}

/* The numbers of the window axes. */
static void print_of_axes(const Printer *p, const char *word, uint32_t axes,
                          const int64_t *numbers) {
    text_printf(p->out, ", %s=[", word);
    for (uint32_t k = 0, n = 0; k < MAX_RANK; k++)
        if (axes >> k & 1) text_printf(p->out, "%s%lld", n++ ? ", " : "", (long long)numbers[k]);
    text_puts(p->out, "]");
}

static void print_windows_attrs(const Printer *p, const Node *node) {
    uint32_t axes = node->attrs.axes, n = 0;
    DimId size[MAX_RANK];
    for (uint32_t k = 0; k < MAX_RANK; k++)
        if (axes >> k & 1) size[n++] = node->shape.dims[windows_tap_axis(axes, k)];
    print_dims(p, "size", size, n);
    print_axes(axes, p->out);
    print_of_axes(p, "stride", axes, node->attrs.per_axis->step);
    print_of_axes(p, "dilation", axes, node->attrs.per_axis->dilation);
}

static void print_view_attrs(const Printer *p, const Node *node) {
    if (node->op == OP_SLICE) print_slice_attrs(p, node);
    if (node->op == OP_PAD) print_pad_attrs(p, node);
    if (node->op == OP_WINDOWS) print_windows_attrs(p, node);
    if (node->op == OP_GATHER) text_printf(p->out, ", axis=%d", (int)node->attrs.axis);
    if (node->op == OP_RESHAPE || node->op == OP_EXPAND) {
        text_puts(p->out, ", ");
        shape_print(p->graph->dims, &node->shape, p->out);
    }
    if (node->op != OP_TRANSPOSE) return;
    text_puts(p->out, ", perm=[");
    for (uint32_t k = 0; k < node->shape.rank; k++)
        text_printf(p->out, "%s%u", k ? ", " : "", node->attrs.per_axis->perm[k]);
    text_puts(p->out, "]");
}

static uint32_t only_axis(uint32_t axes) {
    uint32_t axis = 0;
    while (axis + 1 < MAX_RANK && !(axes >> axis & 1)) axis++;
    return axis;
}

static void print_attrs(const Printer *p, const Node *node) {
    switch (op_info(node->op)->cls) {
    case CLASS_CAST:
        text_printf(p->out, ", %s", dtype_name(node->dtype));
        return;
    case CLASS_REDUCE:
        print_axes(node->attrs.axes, p->out);
        if (node->attrs.keep) text_puts(p->out, ", keep=true");
        return;
    case CLASS_ARGREDUCE:
        text_printf(p->out, ", axis=%u", only_axis(node->attrs.axes));
        if (node->attrs.keep) text_puts(p->out, ", keep=true");
        return;
    case CLASS_SCAN:
    case CLASS_SORT:
        text_printf(p->out, ", axis=%u", only_axis(node->attrs.axes));
        return;
    case CLASS_SEGMENT: {
        uint32_t axis = only_axis(node->attrs.axes);
        text_puts(p->out, ", ");
        dim_print(p->graph->dims, node->shape.dims[axis], p->out);
        text_printf(p->out, ", axis=%u", axis);
        return;
    }
    case CLASS_CONCAT:
        text_printf(p->out, ", axis=%d", (int)node->attrs.axis);
        return;
    case CLASS_VIEW:
        print_view_attrs(p, node);
        return;
    case CLASS_ONLINE:
        if (node->dtype != graph_node(p->graph, node->args[1])->dtype)
            text_printf(p->out, ", out=%s", dtype_name(node->dtype));
        return;
    case CLASS_MATMUL:
        if (node->attrs.precision != PRECISION_FULL)
            text_printf(p->out, ", precision=\"%s\"", precision_name(node->attrs.precision));
        if (node->dtype != graph_node(p->graph, node->args[0])->dtype)
            text_printf(p->out, ", out=%s", dtype_name(node->dtype));
        return;
    case CLASS_LOOP:
        if (node->op != OP_LOOP_RESULT) return;
        text_puts(p->out, ", ");
        dim_print(p->graph->dims, loop_count(node), p->out);
        text_printf(p->out, ", %d", (int)node->attrs.axis);
        return;
    case CLASS_SOURCE:
    case CLASS_ELTWISE:
    case CLASS_UPDATE:
        return;
    }
}

/* Statements. */

static void print_source(const Printer *p, const Node *node) {
    if (node->op == OP_IOTA) {
        text_puts(p->out, "iota(");
        shape_print(p->graph->dims, &node->shape, p->out);
        text_printf(p->out, ", axis=%d", (int)node->attrs.axis);
        if (node->dtype != DT_I32) text_printf(p->out, ", dtype=%s", dtype_name(node->dtype));
        text_puts(p->out, ")");
        return;
    }
    text_puts(p->out, "const(");
    print_number(node->dtype, &node->attrs, p->out);
    text_printf(p->out, ", %s)", dtype_name(node->dtype));
}

static void print_call(const Printer *p, const Node *node) {
    const OpInfo *info = op_info(node->op);
    bool is_result = node->op == OP_LOOP_RESULT, is_list = info->cls == CLASS_CONCAT || is_result;
    uint32_t middle = is_result ? node->n_args / 2 : 0; /* carries, then what follows them */
    text_printf(p->out, "%s(%s", info->name, is_list ? "[" : "");
    for (uint32_t k = 0; k < node->n_args; k++)
        text_printf(p->out, "%s%s", !k ? "" : k == middle ? "], [" : ", ", p->names[node->args[k]]);
    if (is_list) text_puts(p->out, "]");
    print_attrs(p, node);
    text_puts(p->out, ")");
}

static void print_type(const Printer *p, const Node *node) {
    text_puts(p->out, dtype_name(node->dtype));
    shape_print(p->graph->dims, &node->shape, p->out);
}

static void print_param(const Printer *p, NodeId id) {
    for (uint32_t i = 0; i < p->graph->params.n; i++) {
        const GraphInput *param = &p->graph->params.data[i];
        if (param->node != id) continue;
        text_printf(p->out, "param %s: ", param->name);
        print_type(p, graph_node(p->graph, id));
        text_printf(p->out, " = \"%s\"", param->key);
    }
}

static void print_stmt(const Printer *p, NodeId id, bool in_kernel) {
    const Node *node = graph_node(p->graph, id);
    if (node->op == OP_INPUT) return;
    text_puts(p->out, in_kernel ? "    " : "  ");
    if (node->op == OP_PARAM) {
        print_param(p, id);
    } else {
        text_printf(p->out, "%s = ", p->names[id]);
        if (op_info(node->op)->cls == CLASS_SOURCE)
            print_source(p, node);
        else
            print_call(p, node);
    }
    text_puts(p->out, "\n");
}

/* The order of statements: nodes in order, except that the nodes of a fixed kernel come together,
 * as soon as all values that the kernel reads are printed. */

static uint32_t kernel_of(const Graph *graph, NodeId id) {
    return graph->kernel_of.n ? graph->kernel_of.data[id] : 0;
}

enum { NODE_PRINTED };

static bool is_printed(NodeFlags flags, NodeId id) {
    return node_has(flags, id, NODE_PRINTED);
}

/* Whether all values that kernel `k` reads from outside are printed. */
static bool kernel_is_ready(const Graph *graph, uint32_t k, NodeFlags flags) {
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        for (uint32_t i = 0; kernel_of(graph, id) == k && i < node->n_args; i++)
            if (!is_printed(flags, node->args[i]) && kernel_of(graph, node->args[i]) != k)
                return false;
    }
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        if (graph->outputs.data[i].copied_by == k &&
            !is_printed(flags, graph->outputs.data[i].node))
            return false;
    return true;
}

static bool node_is_ready(const Graph *graph, NodeId id, NodeFlags flags) {
    const Node *node = graph_node(graph, id);
    for (uint32_t i = 0; i < node->n_args; i++)
        if (!is_printed(flags, node->args[i])) return false;
    return true;
}

/* Prints outputs that are second names of nodes, in kernel `k`, or (0) in no kernel. */
static void print_copies(const Printer *p, uint32_t k) {
    for (uint32_t i = 0; i < p->graph->outputs.n; i++) {
        const GraphOutput *output = &p->graph->outputs.data[i];
        Str name = p->names[output->node];
        if (output->copied_by != k || strcmp(name, output->name) == 0) continue;
        text_printf(p->out, "%s%s = %s\n", k ? "    " : "  ", output->name, name);
    }
}

static void print_kernel(const Printer *p, uint32_t k, NodeFlags flags) {
    const FixedKernel *block = &p->graph->fixed_kernels.data[k - 1];
    text_printf(p->out, "  %s %s {\n", block->kind == BLOCK_KERNEL ? "kernel" : "fuse",
                block->name);
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        if (kernel_of(p->graph, id) != k) continue;
        print_stmt(p, id, true);
        node_add(flags, id, NODE_PRINTED);
    }
    print_copies(p, k);
    text_puts(p->out, "  }\n");
}

/* One pass in order that prints statements whose arguments are printed. Returns false if there were
 * none. */
static bool print_ready(const Printer *p, NodeFlags flags) {
    bool progress = false;
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        uint32_t k = kernel_of(p->graph, id);
        if (is_printed(flags, id)) continue;
        if (k && kernel_is_ready(p->graph, k, flags)) {
            print_kernel(p, k, flags);
            progress = true;
        } else if (!k && node_is_ready(p->graph, id, flags)) {
            print_stmt(p, id, false);
            progress = node_add(flags, id, NODE_PRINTED);
        }
    }
    return progress;
}

static void print_body(const Printer *p, Arena *arena) {
    NodeFlags flags = node_flags_new(arena, p->graph->nodes.n);
    while (print_ready(p, flags)) continue;
    /* Nodes are left over only if kernels depend on each other, which graph_verify reports. */
    for (NodeId id = 0; id < p->graph->nodes.n; id++)
        if (!is_printed(flags, id)) print_stmt(p, id, false);
}

static void print_decls(const Printer *p, bool outputs) {
    uint32_t n = outputs ? p->graph->outputs.n : p->graph->inputs.n;
    text_puts(p->out, "(");
    for (uint32_t i = 0; i < n; i++) {
        Str name = outputs ? p->graph->outputs.data[i].name : p->graph->inputs.data[i].name;
        NodeId id = outputs ? p->graph->outputs.data[i].node : p->graph->inputs.data[i].node;
        text_printf(p->out, "%s%s: ", i ? ", " : "", name);
        print_type(p, graph_node(p->graph, id));
    }
    text_puts(p->out, ")");
}

void graph_print(const Graph *graph, Text *out) {
    Arena *arena = out->arena;
    Printer printer = {.graph = graph, .out = out, .names = choose_names(graph, arena)};
    text_printf(out, "graph %s", graph->name);
    print_decls(&printer, false);
    text_puts(out, " -> ");
    print_decls(&printer, true);
    text_puts(out, " {\n");
    print_body(&printer, arena);
    print_copies(&printer, 0);
    text_puts(out, "}\n");
}

void module_print(const Module *module, Text *out) {
    if (module->weights) text_printf(out, "weights \"%s\"\n", module->weights);
    for (uint32_t i = 0; i < dim_n_symbols(module->dims); i++) {
        const DimSymbol *symbol = dim_symbol_info(module->dims, i);
        if (symbol->rule) continue;
        text_printf(out, "dim %s in %lld..%lld", symbol->name, (long long)symbol->lo,
                    (long long)symbol->hi);
        if (symbol->multiple != 1) text_printf(out, " mult %lld", (long long)symbol->multiple);
        text_puts(out, "\n");
    }
    for (uint32_t i = 0; i < module->graphs.n; i++) {
        if (i || text_str(out)[0]) text_puts(out, "\n");
        graph_print(module->graphs.data[i], out);
    }
}
