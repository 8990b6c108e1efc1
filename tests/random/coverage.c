/* Coverage of graphs: counting, gaps, printing. */
#include "random/coverage.h"

#include "random/random_state.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static bool is_view(OpId op) {
    return op_info(op)->cls == CLASS_VIEW || op_info(op)->cls == CLASS_CONCAT;
}

/* The column of a consumer: each view has its own, other ops share one per class. */
static OpId column_of(OpId op) {
    if (is_view(op)) return op;
    for (OpId first = OP_NONE + 1; first < OP_COUNT; first++)
        if (op_info(first)->cls == op_info(op)->cls) return first;
    return op;
}

static const char *column_name(OpId column) {
    static const char *const classes[] = {
        [CLASS_SOURCE] = "source", [CLASS_ELTWISE] = "eltwise",     [CLASS_CAST] = "cast",
        [CLASS_REDUCE] = "reduce", [CLASS_ARGREDUCE] = "argreduce", [CLASS_SCAN] = "scan",
        [CLASS_SORT] = "sort",     [CLASS_SEGMENT] = "segment",     [CLASS_VIEW] = "view",
        [CLASS_ONLINE] = "online", [CLASS_CONCAT] = "concat",       [CLASS_MATMUL] = "contract",
        [CLASS_UPDATE] = "update", [CLASS_LOOP] = "loop",           [CLASS_SCAN_BY] = "scan by"};
    if (column == OP_COUNT) return "output";
    return is_view(column) ? op_info(column)->name : classes[op_info(column)->cls];
}

static Dtype data_dtype(const Graph *graph, const Node *node) {
    const OpInfo *info = op_info(node->op);
    bool is_second = info->result == RESULT_SELECT || info->cls == CLASS_ONLINE;
    if (info->cls == CLASS_SOURCE) return node->dtype;
    return graph_node(graph, node->args[is_second])->dtype;
}

/* Counting. */

static AxisPosition axis_position(uint32_t axes, uint32_t rank) {
    if (axes == (1u << rank) - 1) return POSITION_ALL;
    if (axes & (axes - 1)) return POSITION_SEVERAL;
    if (axes == 1) return POSITION_FIRST;
    return axes == 1u << (rank - 1) ? POSITION_LAST : POSITION_INNER;
}

static bool is_symbolic(const Graph *graph, DimId dim) {
    return dim_symbols_used(graph->dims, dim) != 0;
}

static void count_shape(Coverage *c, const Graph *graph, const Shape *shape) {
    c->ranks[shape->rank < COVERAGE_MAX_RANK ? shape->rank : COVERAGE_MAX_RANK]++;
    for (uint32_t k = 0; k < shape->rank; k++) {
        bool is_zero = dim_equals_const(graph->dims, shape->dims[k], 0);
        bool is_one = dim_equals_const(graph->dims, shape->dims[k], 1);
        c->extents[is_zero ? EXTENT_ZERO : is_one ? EXTENT_ONE : EXTENT_OTHER]++;
        if (!is_symbolic(graph, shape->dims[k])) continue;
        if (k == 0) c->symbols[SYMBOL_LEADING]++;
        if (k > 0 && k + 1 < shape->rank) c->symbols[SYMBOL_INNER]++;
        if (k > 0 && k + 1 == shape->rank) c->symbols[SYMBOL_LAST]++;
    }
}

static void count_broadcasts(Coverage *c, const Graph *graph, const Node *node) {
    for (uint32_t i = 0; i < node->n_args; i++) {
        const Shape *arg = &graph_node(graph, node->args[i])->shape;
        BroadcastKind kind = BROADCAST_NONE;
        if (arg->rank < node->shape.rank) kind = arg->rank ? BROADCAST_RANK : BROADCAST_SCALAR;
        uint32_t lead = node->shape.rank - arg->rank;
        for (uint32_t k = 0; k < arg->rank; k++)
            if (arg->dims[k] != node->shape.dims[lead + k]) kind = BROADCAST_ONE;
        c->broadcasts[kind]++;
    }
}

static void count_axes(Coverage *c, const Graph *graph, const Node *node) {
    const Shape *arg = &graph_node(graph, node->args[0])->shape;
    AxisPosition position = axis_position(node->attrs.axes, arg->rank);
    c->reductions[node->op][position][data_dtype(graph, node)]++;
    for (uint32_t k = 0; k < arg->rank; k++)
        if ((node->attrs.axes >> k & 1) && is_symbolic(graph, arg->dims[k]))
            c->symbols[SYMBOL_REDUCED]++;
}

static void count_structure(Coverage *c, const Graph *graph, const Node *node) {
    const Shape *arg = node->n_args ? &graph_node(graph, node->args[0])->shape : NULL;
    Dtype factor = node->n_args ? graph_node(graph, node->args[0])->dtype : node->dtype;
    switch (op_info(node->op)->cls) {
    case CLASS_SOURCE:
    case CLASS_UPDATE:
    case CLASS_LOOP:
        break;
    case CLASS_ELTWISE:
        count_broadcasts(c, graph, node);
        break;
    case CLASS_CAST:
        c->casts[data_dtype(graph, node)][node->dtype] += node->op == OP_CAST;
        break;
    case CLASS_REDUCE:
    case CLASS_ARGREDUCE:
    case CLASS_SCAN:
    case CLASS_SCAN_BY:
    case CLASS_SORT:
    case CLASS_SEGMENT:
        count_axes(c, graph, node);
        break;
    case CLASS_VIEW:
        for (uint32_t k = 0; node->op == OP_SLICE && k < arg->rank; k++)
            c->symbols[SYMBOL_SLICE] +=
                arg->dims[k] != node->shape.dims[k] && is_symbolic(graph, node->shape.dims[k]);
        break;
    case CLASS_CONCAT:
        c->symbols[SYMBOL_CONCAT] += is_symbolic(graph, arg->dims[node->attrs.axis]);
        break;
    case CLASS_ONLINE:
        c->symbols[SYMBOL_CONTRACTED] += is_symbolic(graph, arg->dims[arg->rank - 1]);
        break;
    case CLASS_MATMUL:
        c->precisions[node->attrs.precision]++;
        c->wide_products[factor] += node->dtype != factor;
        c->symbols[SYMBOL_CONTRACTED] += is_symbolic(graph, arg->dims[arg->rank - 1]);
        break;
    }
}

static void count_uses(Coverage *c, const Graph *graph, const Node *node, uint32_t *n_uses) {
    for (uint32_t i = 0; i < node->n_args; i++) {
        OpId producer = graph_node(graph, node->args[i])->op;
        if (is_view(producer)) c->views[producer][column_of(node->op)]++;
        c->shared += n_uses[node->args[i]]++ == 1;
    }
}

/* Per node: its origins. */
typedef struct Origin {
    uint64_t sources;    /* inputs and params, a bit set of their numbers modulo 64 */
    NodeId first_result; /* the reduction or GEMM that it comes from through elementwise ops; or
                          * NODE_NONE */
} Origin;

static Origin origin_of(const Graph *graph, NodeId id, const Origin *origins) {
    const Node *node = graph_node(graph, id);
    OpClass cls = op_info(node->op)->cls;
    bool is_result = cls == CLASS_REDUCE || cls == CLASS_MATMUL;
    bool is_plain = cls == CLASS_ELTWISE || cls == CLASS_CAST;
    Origin own = {.sources = 0, .first_result = is_result ? id : NODE_NONE};
    if (cls == CLASS_SOURCE && node->op != OP_CONST) own.sources = (uint64_t)1 << id % 64;
    for (uint32_t i = 0; i < node->n_args; i++) {
        own.sources |= origins[node->args[i]].sources;
        if (is_plain && own.first_result == NODE_NONE)
            own.first_result = origins[node->args[i]].first_result;
    }
    return own;
}

static void count_meeting(Coverage *c, const Graph *graph, const Origin *origins, NodeId one,
                          NodeId other) {
    if (one == NODE_NONE || other == NODE_NONE || one == other) return;
    const Node *a = graph_node(graph, one), *b = graph_node(graph, other);
    OpClass cls = op_info(a->op)->cls;
    if (op_info(b->op)->cls != cls) return;
    const Shape *of_a = &graph_node(graph, a->args[0])->shape,
                *of_b = &graph_node(graph, b->args[0])->shape;
    if (cls == CLASS_MATMUL)
        c->patterns[PATTERN_PAIR] += a->args[0] == b->args[0];
    else
        c->patterns[PATTERN_ROWS] += a->attrs.axes == b->attrs.axes && shape_equal(of_a, of_b) &&
                                     !(origins[one].sources & origins[other].sources);
}

static void count_patterns(Coverage *c, const Graph *graph, NodeId id, const Origin *origins) {
    const Node *node = graph_node(graph, id);
    OpClass cls = op_info(node->op)->cls;
    for (uint32_t i = 0; i < node->n_args; i++) {
        OpClass of_arg = op_info(graph_node(graph, node->args[i])->op)->cls;
        if (cls == CLASS_MATMUL)
            c->patterns[PATTERN_FACTOR] += of_arg == CLASS_ELTWISE || of_arg == CLASS_CAST;
        for (uint32_t k = 0; k < i && cls == CLASS_ELTWISE; k++)
            count_meeting(c, graph, origins, origins[node->args[k]].first_result,
                          origins[node->args[i]].first_result);
    }
}

static PartsKind parts_kind(const Graph *graph, NodeId whole, const uint32_t *depths) {
    switch (op_info(graph_node(graph, whole)->op)->cls) {
    case CLASS_MATMUL:
        return PARTS_OF_PRODUCT;
    case CLASS_REDUCE:
    case CLASS_ARGREDUCE:
        return PARTS_OF_REDUCTION;
    case CLASS_SOURCE:
    case CLASS_ELTWISE:
    case CLASS_CAST:
    case CLASS_SCAN:
    case CLASS_SCAN_BY:
    case CLASS_SORT:
    case CLASS_SEGMENT:
    case CLASS_VIEW:
    case CLASS_CONCAT:
    case CLASS_UPDATE:
    case CLASS_LOOP:
    case CLASS_ONLINE:
        break;
    }
    return depths[whole] ? PARTS_OF_ROWS : PARTS_OF_MAP;
}

/* Counts a value once, when its second slice is met. An input has no maker. */
static void count_parts(Coverage *c, const Graph *graph, const Node *node, uint32_t *n_slices,
                        const uint32_t *depths) {
    if (node->op != OP_SLICE || ++n_slices[node->args[0]] != 2) return;
    if (!graph_is_bound(graph, node->args[0])) c->parts[parts_kind(graph, node->args[0], depths)]++;
}

static uint32_t stage_depth(const Graph *graph, const Node *node, const uint32_t *depths) {
    uint32_t depth = 0;
    for (uint32_t i = 0; i < node->n_args; i++)
        if (depths[node->args[i]] > depth) depth = depths[node->args[i]];
    NodeId id = (NodeId)(node - graph->nodes.data);
    return depth + graph_is_reduction(graph, id);
}

void coverage_add(Coverage *c, const Graph *graph) {
    Arena *arena = arena_new(NULL);
    uint32_t *n_uses = arena_array(arena, uint32_t, graph->nodes.n), deepest = 0;
    uint32_t *depths = arena_array(arena, uint32_t, graph->nodes.n);
    Origin *origins = arena_array(arena, Origin, graph->nodes.n);
    uint32_t *n_slices = arena_array(arena, uint32_t, graph->nodes.n);
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        c->ops[node->op][data_dtype(graph, node)]++;
        count_shape(c, graph, &node->shape);
        count_structure(c, graph, node);
        count_uses(c, graph, node, n_uses);
        origins[id] = origin_of(graph, id, origins);
        count_patterns(c, graph, id, origins);
        count_parts(c, graph, node, n_slices, depths);
        depths[id] = stage_depth(graph, node, depths);
        if (depths[id] > deepest) deepest = depths[id];
    }
    for (uint32_t i = 0; i < graph->outputs.n; i++) {
        OpId producer = graph_node(graph, graph->outputs.data[i].node)->op;
        if (is_view(producer)) c->views[producer][OP_COUNT]++;
    }
    c->stages[deepest < COVERAGE_MAX_STAGES ? deepest : COVERAGE_MAX_STAGES]++;
    c->n_graphs++;
    c->n_nodes += graph->nodes.n;
    arena_free(arena);
}

/* Possible cells. */

static bool counts(const Coverage *c, OpId op) {
    return op_info(op)->cls != CLASS_MATMUL || !c->without_matmul;
}

static bool can_be(const Coverage *c, OpId op, Dtype dtype) {
    if (op_info(op)->cls == CLASS_SOURCE) return op != OP_IOTA || dtype_in(dtype, DTS_INDEX);
    if (op == OP_BITCAST) return random_bitcasts(dtype);
    if (op_info(op)->cls == CLASS_LOOP) return dtype_in(dtype, DTS_FLOAT); /* as loops are drawn */
    if (op_info(op)->cls == CLASS_SCAN_BY) return false; /* tests/front/test_scan_function.c */
    return counts(c, op) && dtype_in(dtype, op_info(op)->dtypes);
}

/* Whether the op has a column of its own among the consumers of views. */
static bool is_column(const Coverage *c, OpId op) {
    if (op == OP_COUNT) return true;
    OpClass cls = op_info(op)->cls;
    return cls != CLASS_SOURCE && cls != CLASS_LOOP && cls != CLASS_SCAN_BY &&
           column_of(op) == op && counts(c, op);
}

static bool can_reduce(OpId op, AxisPosition position) {
    OpClass cls = op_info(op)->cls;
    if (cls == CLASS_REDUCE) return true;
    /* A result for each element, or segment: whether its axis is the last one is all that kernels
     * see. */
    if (cls == CLASS_SCAN || cls == CLASS_SORT || cls == CLASS_SEGMENT)
        return position == POSITION_FIRST || position == POSITION_LAST;
    return cls == CLASS_ARGREDUCE && position != POSITION_SEVERAL;
}

/* Gaps. */

typedef struct Gaps {
    uint32_t n;
    Text *out;
} Gaps;

STR_PRINTF(3, 4)
static void look(Gaps *gaps, uint64_t count, const char *format, ...) {
    if (count) return;
    gaps->n++;
    if (!gaps->out) return;
    va_list args;
    va_start(args, format);
    text_printf(gaps->out, "never: %s\n", str_vformat(gaps->out->arena, format, args));
    va_end(args);
}

static const char *const position_names[] = {"the first axis", "an inner axis", "the last axis",
                                             "several axes", "all axes"};
static const char *const symbol_names[] = {"leading",     "inner",      "last",      "reduced",
                                           "in a concat", "in a slice", "contracted"};
static const char *const broadcast_names[] = {"none", "of a scalar", "of missing axes",
                                              "of an extent 1"};
static const char *const parts_names[] = {"a product", "a reduction", "rows", "a map"};
static const char *const extent_names[] = {"0", "1", "other"};
static const char *const pattern_names[] = {"gated pairs", "rows of two tensors",
                                            "computed operands"};

static void look_at_ops(const Coverage *c, Gaps *gaps) {
    for (OpId op = OP_NONE + 1; op < OP_COUNT; op++)
        for (Dtype d = (Dtype)0; d < DT_COUNT; d++) {
            if (can_be(c, op, d))
                look(gaps, c->ops[op][d], "%s on %s", op_info(op)->name, dtype_name(d));
            for (int p = 0; p < POSITION_COUNT; p++)
                if (can_be(c, op, d) && can_reduce(op, (AxisPosition)p))
                    look(gaps, c->reductions[op][p][d], "%s over %s on %s", op_info(op)->name,
                         position_names[p], dtype_name(d));
        }
    for (int from = 0; from < DT_COUNT; from++)
        for (int to = 0; to < DT_COUNT; to++)
            if (from != to)
                look(gaps, c->casts[from][to], "cast from %s to %s", dtype_name((Dtype)from),
                     dtype_name((Dtype)to));
}

static void look_at_views(const Coverage *c, Gaps *gaps) {
    for (OpId view = OP_NONE + 1; view < OP_COUNT; view++)
        for (OpId op = OP_NONE + 1; is_view(view) && op <= OP_COUNT; op++)
            if (is_column(c, op))
                look(gaps, c->views[view][op], "%s read by %s", op_info(view)->name,
                     column_name(op));
}

static void look_at_rest(const Coverage *c, Gaps *gaps) {
    for (int i = 0; i < PRECISION_COUNT && !c->without_matmul; i++)
        look(gaps, c->precisions[i], "matmul of precision %s", precision_name((Precision)i));
    for (Dtype d = (Dtype)0; d < DT_COUNT && !c->without_matmul; d++)
        if (dtype_in(d, DTS_NUM) && dtype_compute(d) != d)
            look(gaps, c->wide_products[d], "matmul of %s with out=%s", dtype_name(d),
                 dtype_name(dtype_compute(d)));
    for (int i = 0; i < SYMBOL_COUNT; i++)
        if (i != SYMBOL_CONTRACTED || !c->without_matmul)
            look(gaps, c->symbols[i], "a symbolic dim %s", symbol_names[i]);
    for (int i = 0; i < PARTS_COUNT; i++)
        if (i != PARTS_OF_PRODUCT || !c->without_matmul)
            look(gaps, c->parts[i], "parts of %s", parts_names[i]);
    for (int i = 0; i < BROADCAST_COUNT; i++)
        look(gaps, c->broadcasts[i], "broadcast %s", broadcast_names[i]);
    for (int i = 0; i <= COVERAGE_MAX_RANK; i++) look(gaps, c->ranks[i], "rank %d", i);
    for (int i = 0; i < EXTENT_COUNT; i++) look(gaps, c->extents[i], "extent %s", extent_names[i]);
    for (int i = 0; i <= COVERAGE_MAX_STAGES; i++)
        look(gaps, c->stages[i], "%d reductions in a row", i);
    look(gaps, c->shared, "a value used twice");
    for (int i = 0; i < PATTERN_COUNT; i++)
        if (i == PATTERN_ROWS || !c->without_matmul)
            look(gaps, c->patterns[i], "%s", pattern_names[i]);
}

uint32_t coverage_n_zero_cells(const Coverage *c, Text *out) {
    Gaps gaps = {.out = out};
    look_at_ops(c, &gaps);
    look_at_views(c, &gaps);
    look_at_rest(c, &gaps);
    return gaps.n;
}

/* Printing. */

static void print_cell(bool is_possible, uint64_t count, Text *out) {
    if (is_possible)
        text_printf(out, "%10llu", (unsigned long long)count);
    else
        text_printf(out, "%10s", "-");
}

static void print_ops(const Coverage *c, Text *out) {
    text_printf(out, "%-14s", "op");
    for (Dtype d = (Dtype)0; d < DT_COUNT; d++) text_printf(out, "%10s", dtype_name(d));
    for (OpId op = OP_NONE + 1; op < OP_COUNT; op++) {
        text_printf(out, "\n%-14s", op_info(op)->name);
        for (Dtype d = (Dtype)0; d < DT_COUNT; d++)
            print_cell(can_be(c, op, d), c->ops[op][d], out);
    }
    text_printf(out, "\n\n%-14s", "cast from");
    for (Dtype d = (Dtype)0; d < DT_COUNT; d++) text_printf(out, "%10s", dtype_name(d));
    for (Dtype from = (Dtype)0; from < DT_COUNT; from++) {
        text_printf(out, "\n%-14s", dtype_name(from));
        for (Dtype to = (Dtype)0; to < DT_COUNT; to++)
            print_cell(from != to, c->casts[from][to], out);
    }
}

static void print_views(const Coverage *c, Text *out) {
    text_printf(out, "\n\n%-14s", "view read by");
    for (OpId op = OP_NONE + 1; op <= OP_COUNT; op++)
        if (is_column(c, op)) text_printf(out, "%10s", column_name(op));
    for (OpId view = OP_NONE + 1; view < OP_COUNT; view++) {
        if (!is_view(view)) continue;
        text_printf(out, "\n%-14s", op_info(view)->name);
        for (OpId op = OP_NONE + 1; op <= OP_COUNT; op++)
            if (is_column(c, op)) print_cell(true, c->views[view][op], out);
    }
}

static void print_reductions(const Coverage *c, Text *out) {
    text_printf(out, "\n\n%-14s", "reduction over");
    for (int p = 0; p < POSITION_COUNT; p++) text_printf(out, "%16s", position_names[p]);
    for (OpId op = OP_NONE + 1; op < OP_COUNT; op++) {
        if (!can_reduce(op, POSITION_LAST)) continue;
        text_printf(out, "\n%-14s", op_info(op)->name);
        for (int p = 0; p < POSITION_COUNT; p++) {
            uint64_t n = 0;
            for (int d = 0; d < DT_COUNT; d++) n += c->reductions[op][p][d];
            text_printf(out, "%16llu", (unsigned long long)n);
        }
    }
}

static void print_row(const char *title, const char *const *names, const uint64_t *counts_of, int n,
                      Text *out) {
    text_printf(out, "\n%-14s", title);
    for (int i = 0; i < n; i++)
        text_printf(out, "%s%s %llu", i ? ", " : " ", names[i], (unsigned long long)counts_of[i]);
}

void coverage_print(const Coverage *c, Text *out) {
    static const char *const numbers[] = {"0:", "1:", "2:", "3:", "4:"};
    text_printf(out, "%llu graphs, %llu nodes, %llu shared values\n\n",
                (unsigned long long)c->n_graphs, (unsigned long long)c->n_nodes,
                (unsigned long long)c->shared);
    print_ops(c, out);
    print_views(c, out);
    print_reductions(c, out);
    text_puts(out, "\n");
    const char *precisions[PRECISION_COUNT], *dtypes[DT_COUNT];
    for (int i = 0; i < DT_COUNT; i++) dtypes[i] = dtype_name((Dtype)i);
    for (int i = 0; i < PRECISION_COUNT; i++) precisions[i] = precision_name((Precision)i);
    print_row("precisions", precisions, c->precisions, PRECISION_COUNT, out);
    print_row("with out=, of", dtypes, c->wide_products, DT_COUNT, out);
    print_row("symbolic dims", symbol_names, c->symbols, SYMBOL_COUNT, out);
    print_row("parts of", parts_names, c->parts, PARTS_COUNT, out);
    print_row("broadcasts", broadcast_names, c->broadcasts, BROADCAST_COUNT, out);
    print_row("extents", extent_names, c->extents, EXTENT_COUNT, out);
    print_row("ranks", numbers, c->ranks, COVERAGE_MAX_RANK + 1, out);
    print_row("stages", numbers, c->stages, COVERAGE_MAX_STAGES + 1, out);
    print_row("patterns", pattern_names, c->patterns, PATTERN_COUNT, out);
    text_puts(out, "\n");
}

/* Sums of tables from several processes. */

enum { N_CELLS = (sizeof(Coverage) - offsetof(Coverage, n_graphs)) / sizeof(uint64_t) };

static const char LINE_START[] = "coverage";

void coverage_write(const Coverage *c, Text *out) {
    uint64_t cells[N_CELLS];
    memcpy(cells, (const char *)c + offsetof(Coverage, n_graphs), sizeof cells);
    text_printf(out, "%s %d", LINE_START, (int)N_CELLS);
    for (int i = 0; i < N_CELLS; i++) text_printf(out, " %llu", (unsigned long long)cells[i]);
    text_puts(out, "\n");
}

bool coverage_merge(Coverage *c, const char *line) {
    uint64_t cells[N_CELLS];
    size_t n_start = sizeof LINE_START - 1;
    if (strncmp(line, LINE_START, n_start) != 0) return false;
    char *end;
    bool is_good = strtoull(line + n_start, &end, 10) == N_CELLS;
    memcpy(cells, (const char *)c + offsetof(Coverage, n_graphs), sizeof cells);
    for (int i = 0; i < N_CELLS && is_good; i++) {
        const char *begin = end;
        cells[i] += strtoull(begin, &end, 10);
        is_good = end > begin;
    }
    is_good = is_good && (*end == '\n' || !*end);
    if (is_good) memcpy((char *)c + offsetof(Coverage, n_graphs), cells, sizeof cells);
    return is_good;
}
