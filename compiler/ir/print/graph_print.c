/* Prints graphs as source text. Each node is one statement in function-call form with its
 * attributes. Unique names are kept; other nodes are named v<number>. Loops that were unrolled are
 * printed as loops again where that can be done (reroll.h). */
#include "base/number.h"
#include "ir/loop.h"
#include "ir/print/reroll.h"
#include "ir/print/step_text.h"

#include <math.h>

/* Functions of scans, in the order in which graphs read them. They are printed as defs. */
typedef Vec(const Graph *) Functions;

static uint32_t find_function(const Functions *functions, const Graph *function) {
    uint32_t k = 0;
    while (k < functions->n && functions->data[k] != function) k++;
    return k;
}

static void add_functions(const Graph *graph, Arena *arena, Functions *functions) {
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Graph *function = graph_node(graph, id)->attrs.function;
        if (function && find_function(functions, function) == functions->n)
            vec_push(arena, functions, function);
    }
}

/* The state of one printing. */
typedef struct Printer {
    const Graph *graph;
    Text *out;
    Reroll *r;
    const Functions *functions; /* of scans */
} Printer;

bool nameset_add(NameSet *set, Str name) {
    uint64_t hash = hash_bytes(STR_HASH_SEED, name, strlen(name));
    for (uint32_t i = (uint32_t)hash;; i++) {
        Str *slot = &set->slots[i & (set->n_slots - 1)];
        if (*slot && strcmp(*slot, name) == 0) return false;
        if (*slot) continue;
        *slot = name;
        return true;
    }
}

NameSet nameset_new(Arena *arena, uint32_t n_names) {
    NameSet set = {.n_slots = 64};
    while (set.n_slots < n_names * 4) set.n_slots *= 2;
    set.slots = arena_array(arena, Str, set.n_slots);
    return set;
}

/* Inputs, params and outputs keep their names; then each node gets its own name or v<number>. */
static Str *choose_names(const Graph *graph, NameSet *taken, Arena *arena) {
    Str *names = arena_array(arena, Str, graph->nodes.n + 1);
    for (uint32_t i = 0; i < dim_n_symbols(graph->dims); i++)
        nameset_add(taken, dim_symbol_info(graph->dims, i)->name);
    const GraphInput *given[2] = {graph->inputs.data, graph->params.data};
    const uint32_t n_given[2] = {graph->inputs.n, graph->params.n};
    for (int kind = 0; kind < 2; kind++)
        for (uint32_t i = 0; i < n_given[kind]; i++) {
            names[given[kind][i].node] = given[kind][i].name;
            nameset_add(taken, given[kind][i].name);
        }
    for (uint32_t i = 0; i < graph->outputs.n; i++) {
        const GraphOutput *output = &graph->outputs.data[i];
        Str own = graph_node(graph, output->node)->name;
        bool is_new = nameset_add(taken, output->name);
        if (is_new && !names[output->node] && (!own || strcmp(own, output->name) == 0))
            names[output->node] = output->name;
    }
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        Str name = names[id] ? names[id] : graph_node(graph, id)->name;
        if (names[id]) continue;
        if (!name || !graph_is_name(name) || !nameset_add(taken, name)) {
            name = str_format(arena, "v%u", id);
            for (uint32_t k = 1; !nameset_add(taken, name); k++)
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

/* What differs from the defaults of an ONLINE op. */
static void print_quantize(const Printer *p, const Node *node) {
    const QuantizeMap *map = &node->attrs.quantize;
    const Node *values = graph_node(p->graph, node->args[1]);
    if (op_info(node->op)->power || op_info(node->op)->row) return;
    if (map->scale != 1) {
        text_puts(p->out, ", scale=");
        print_float(online_compute(values->dtype), map->scale, p->out);
    }
    if (map->least != -INFINITY) {
        text_puts(p->out, ", least=");
        print_float(online_compute(values->dtype), map->least, p->out);
    }
    if (map->dtype != values->dtype) text_printf(p->out, ", dtype=%s", dtype_name(map->dtype));
    if (map->rounds) text_puts(p->out, ", round=true");
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
    case CLASS_SCAN_BY:
        text_printf(p->out, ", combine=combine_%u, axis=%u, result=%d",
                    find_function(p->functions, node->attrs.function), only_axis(node->attrs.axes),
                    (int)node->attrs.axis);
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
        print_quantize(p, node);
        if (node->dtype != online_dtype(node->op, graph_node(p->graph, node->args[1])->dtype))
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

static void print_type(const Printer *p, const Node *node) {
    text_puts(p->out, dtype_name(node->dtype));
    shape_print(p->graph->dims, &node->shape, p->out);
}

/* The type and the key. */
static void print_param(const Printer *p, NodeId id) {
    for (uint32_t i = 0; i < p->graph->params.n; i++) {
        const GraphInput *param = &p->graph->params.data[i];
        if (param->node != id) continue;
        text_puts(p->out, ": ");
        print_type(p, graph_node(p->graph, id));
        text_printf(p->out, " = \"%s\"", param->key);
    }
}

static void print_source(const Printer *p, const Node *node) {
    if (node->op == OP_IOTA) {
        text_puts(p->out, "iota(");
        shape_print(p->graph->dims, &node->shape, p->out);
        text_printf(p->out, ", axis=%d", (int)node->attrs.axis);
        if (node->dtype != DT_I32) text_printf(p->out, ", dtype=%s", dtype_name(node->dtype));
    } else {
        text_puts(p->out, "const(");
        print_number(node->dtype, &node->attrs, p->out);
        text_printf(p->out, ", %s", dtype_name(node->dtype));
    }
}

/* What a statement has besides names. */
static const char *text_of(const Printer *p, NodeId id) {
    const Node *node = graph_node(p->graph, id);
    Text text = {.arena = p->out->arena};
    const Printer printer = {.graph = p->graph, .out = &text, .functions = p->functions};
    if (node->op == OP_PARAM)
        print_param(&printer, id);
    else if (op_info(node->op)->cls == CLASS_SOURCE)
        print_source(&printer, node);
    else
        print_attrs(&printer, node);
    return text_str(&text);
}

static void print_args(const Printer *p, NodeId id) {
    const Node *node = graph_node(p->graph, id);
    const OpInfo *info = op_info(node->op);
    bool is_result = node->op == OP_LOOP_RESULT;
    bool is_list = info->cls == CLASS_CONCAT || info->cls == CLASS_SCAN_BY || is_result;
    uint32_t middle = is_result ? node->n_args / 2 : 0; /* carries, then what follows them */
    text_printf(p->out, "%s(%s", info->name, is_list ? "[" : "");
    for (uint32_t k = 0; k < node->n_args; k++)
        text_printf(p->out, "%s%s",
                    !k            ? ""
                    : k == middle ? "], ["
                                  : ", ",
                    reroll_text(p->r, p->r->args[id][k]));
    if (is_list) text_puts(p->out, "]");
}

static void print_indent(const Printer *p, uint32_t depth) {
    for (uint32_t i = 0; i < depth; i++) text_puts(p->out, "  ");
}

/* `depth` counts the blocks and loops around the statement, and the graph. */
static void print_stmt(const Printer *p, NodeId id, uint32_t depth) {
    const Node *node = graph_node(p->graph, id);
    Reroll *r = p->r;
    bool is_source = op_info(node->op)->cls == CLASS_SOURCE, is_param = node->op == OP_PARAM;
    r->shown[id] = r->names[id];
    if (node->op == OP_INPUT) return;
    print_indent(p, depth);
    text_printf(p->out, is_param ? "param %s" : "%s = ", r->names[id]);
    if (!is_source) print_args(p, id);
    step_text_print(r->texts[id] ? r->texts[id] : text_of(p, id), p->out);
    text_puts(p->out, is_param ? "\n" : ")\n");
}

/* Loops. */

static void print_rolled(const Printer *p, const Rolled *rolled, uint32_t depth);

static void print_step(const Printer *p, const Rolled *rolled, uint32_t depth) {
    NodeId end = 0; /* of the loop in this one that was printed last */
    for (uint32_t i = 0; i < rolled->nodes.n; i++) {
        NodeId id = rolled->nodes.data[i];
        if (id < end) continue;
        const Rolled *inner = reroll_at(p->r, id, rolled);
        if (inner) {
            print_rolled(p, inner, depth);
            end = inner->loop->end;
            continue;
        }
        if (graph_node(p->graph, id)->op == OP_PARAM) reroll_name_param(p->r, id);
        print_stmt(p, id, depth);
    }
}

/* Prints the values of a loop or of its step, with what is carried first. */
static void print_values(const Printer *p, const Rolled *rolled, bool in_step) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rolled->carries.n; i++, n++) {
        const RolledCarry *carry = &rolled->carries.data[i];
        Str last = carry->last == NODE_NONE ? "_" : p->r->names[carry->last];
        text_printf(p->out, "%s%s", n ? ", " : "", in_step ? reroll_text(p->r, carry->next) : last);
    }
    for (uint32_t i = 0; i < rolled->lists.n; i++, n++) {
        const RolledList *list = &rolled->lists.data[i];
        text_printf(p->out, "%s%s", n ? ", " : "",
                    in_step ? reroll_text(p->r, list->node) : list->name);
    }
}

static void print_rolled(const Printer *p, const Rolled *rolled, uint32_t depth) {
    const LoopSteps *loop = rolled->loop;
    long long begin = loop->begin, by = loop->by, end = begin + by * loop->n_steps;
    for (uint32_t i = 0; i < rolled->items.n; i++) {
        print_indent(p, depth);
        text_printf(p->out, "%s = %s\n", rolled->items.data[i].name, rolled->items.data[i].text);
    }
    print_indent(p, depth);
    print_values(p, rolled, false);
    text_printf(p->out, " = loop %s in %lld:%lld", rolled->index, begin, end);
    if (by != 1) text_printf(p->out, ":%lld", by);
    for (uint32_t i = 0; i < rolled->carries.n; i++) {
        const RolledCarry *carry = &rolled->carries.data[i];
        text_printf(p->out, "%s%s = %s", i ? ", " : " with ", reroll_text(p->r, carry->ref),
                    reroll_text(p->r, carry->first));
    }
    text_puts(p->out, " {\n");
    print_step(p, rolled, depth + 1);
    print_indent(p, depth + 1);
    text_puts(p->out, "return ");
    print_values(p, rolled, true);
    text_puts(p->out, "\n");
    print_indent(p, depth);
    text_puts(p->out, "}\n");
    reroll_close(p->r, rolled);
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
        Str name = reroll_text(p->r, output->node);
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
        print_stmt(p, id, 2);
        node_add(flags, id, NODE_PRINTED);
    }
    print_copies(p, k);
    text_puts(p->out, "  }\n");
}

/* Whether all values are printed that nodes from `id` on, to the end of the loop that begins there,
 * read from before it. Without blocks they are. */
static bool loop_is_ready(const Printer *p, NodeId id, NodeFlags flags) {
    const Graph *graph = p->graph;
    uint32_t l = graph->fixed_kernels.n ? p->r->starts_at[id] : 0;
    NodeId end = l ? graph->loops.data[l - 1].end : id;
    for (NodeId own = id; own < end; own++)
        for (uint32_t i = 0; i < graph_node(graph, own)->n_args; i++) {
            NodeId arg = graph_node(graph, own)->args[i];
            if (arg < id && !is_printed(flags, arg)) return false;
        }
    return true;
}

static bool print_loop(const Printer *p, NodeId id, NodeFlags flags) {
    const Rolled *rolled = reroll_at(p->r, id, NULL);
    if (!rolled) return false;
    print_rolled(p, rolled, 1);
    for (NodeId own = id; own < rolled->loop->end; own++) node_add(flags, own, NODE_PRINTED);
    return true;
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
        } else if (!k && loop_is_ready(p, id, flags) && print_loop(p, id, flags)) {
            progress = true;
        } else if (!k && node_is_ready(p->graph, id, flags)) {
            print_stmt(p, id, 1);
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
        if (!is_printed(flags, id)) print_stmt(p, id, 1);
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

/* The texts that loops compare. */
static const char **texts_of(const Printer *p, Arena *arena) {
    const Graph *graph = p->graph;
    const char **texts = arena_array(arena, const char *, graph->nodes.n + 1);
    for (NodeId id = 0; id < graph->nodes.n && graph->loops.n; id++) texts[id] = text_of(p, id);
    return texts;
}

/* With room for the names of indices, carried values, lists and params of loops. */
static NameSet names_new(const Graph *graph, Arena *arena) {
    uint32_t n = graph->nodes.n + graph->outputs.n + DIM_MAX_SYMBOLS + 32;
    for (uint32_t l = 0; l < graph->loops.n; l++) n += 1 + graph->loops.data[l].n_carried;
    return nameset_new(arena, graph->loops.n ? n + 2 * graph->nodes.n : n);
}

static void print_graph(const Graph *graph, const Functions *functions, Text *out) {
    Arena *arena = out->arena;
    NameSet taken = names_new(graph, arena);
    for (uint32_t i = 0; i < functions->n; i++)
        nameset_add(&taken, str_format(arena, "combine_%u", i));
    Str *names = choose_names(graph, &taken, arena);
    Printer printer = {.graph = graph, .out = out, .functions = functions};
    printer.r = reroll_new(graph, &taken, names, texts_of(&printer, arena), arena);
    text_printf(out, "graph %s", graph->name);
    print_decls(&printer, false);
    text_puts(out, " -> ");
    print_decls(&printer, true);
    text_puts(out, " {\n");
    print_body(&printer, arena);
    print_copies(&printer, 0);
    text_puts(out, "}\n");
}

/* Prints a function as a def of two lists. */
static void print_function(const Graph *function, uint32_t number, Text *out) {
    Arena *arena = out->arena;
    const Functions none = {0};
    NameSet taken = nameset_new(arena, function->nodes.n + DIM_MAX_SYMBOLS);
    Str *names = choose_names(function, &taken, arena);
    Printer printer = {.graph = function, .out = out, .functions = &none};
    uint32_t n = function->outputs.n;
    for (uint32_t i = 0; i < 2 * n; i++)
        names[function->inputs.data[i].node] =
            str_format(arena, "%s[%u]", i < n ? "a" : "b", i < n ? i : i - n);
    printer.r = reroll_new(function, &taken, names, texts_of(&printer, arena), arena);
    text_printf(out, "def combine_%u(a, b) {\n", number);
    print_body(&printer, arena);
    text_puts(out, "  return ");
    for (uint32_t i = 0; i < n; i++)
        text_printf(out, "%s%s", i ? ", " : "", names[function->outputs.data[i].node]);
    text_puts(out, "\n}\n");
}

static void print_functions(const Functions *functions, Text *out) {
    for (uint32_t i = 0; i < functions->n; i++) {
        if (i || text_str(out)[0]) text_puts(out, "\n");
        print_function(functions->data[i], i, out);
    }
}

void graph_print(const Graph *graph, Text *out) {
    Functions functions = {0};
    add_functions(graph, out->arena, &functions);
    print_functions(&functions, out);
    if (functions.n) text_puts(out, "\n");
    print_graph(graph, &functions, out);
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
    Functions functions = {0};
    for (uint32_t i = 0; i < module->graphs.n; i++)
        add_functions(module->graphs.data[i], out->arena, &functions);
    print_functions(&functions, out);
    for (uint32_t i = 0; i < module->graphs.n; i++) {
        if (i || text_str(out)[0]) text_puts(out, "\n");
        print_graph(module->graphs.data[i], &functions, out);
    }
}
