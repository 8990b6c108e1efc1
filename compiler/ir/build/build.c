/* The builder's state: errors, dims, declarations, blocks, limits, and what numbers become beside
 * tensors. See build.h. */
#include "ir/build/build.h"

#include "base/number.h"

#include <math.h>

/* Errors. */

BuildError *build_fail(Builder *b, DiagId id, BuildPlace at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    BuildError error = {.id = id, .at = at, .message = str_vformat(b->arena, format, args)};
    va_end(args);
    b->n_errors++;
    vec_push(b->arena, &b->errors, error);
    return &b->errors.data[b->errors.n - 1];
}

bool build_take_error(Builder *b, BuildError *error) {
    if (!b->errors.n) return false;
    *error = b->errors.data[0];
    b->errors.n--;
    memmove(b->errors.data, b->errors.data + 1, b->errors.n * sizeof *error);
    return true;
}

/* Nodes. */

Builder *build_new(Arena *arena, DimTab *dims, const Source *source, Str name) {
    Builder *b = arena_array(arena, Builder, 1);
    *b = (Builder){.arena = arena, .dims = dims, .graph = graph_new(arena, dims, source, name)};
    return b;
}

static void count_extents(Builder *b, const Shape *shape) {
    for (uint32_t i = 0; i < shape->rank; i++) {
        DimId extent = shape->dims[i];
        while (b->is_counted.n <= extent) vec_push(b->arena, &b->is_counted, false);
        bool is_new = extent != DIM_NONE && !b->is_counted.data[extent];
        uint32_t n_terms = is_new ? dim_n_terms(b->dims, extent) : 0;
        b->is_counted.data[extent] = true;
        b->n_extents += n_terms > 0;
        b->n_terms += n_terms;
    }
}

/* Places of temporaries are compared by their sizes, so that thousands of different sizes with
 * symbols take long. */
static bool has_room(Builder *b, BuildPlace at, const Node *node) {
    count_extents(b, &node->shape);
    if (b->graph->nodes.n >= MAX_NODES)
        build_fail(b, DIAG_LIMIT, at, "graph of more than %d nodes", MAX_NODES);
    else if (b->n_extents > MAX_EXTENTS || b->n_terms > MAX_EXTENT_TERMS)
        build_fail(
            b, DIAG_LIMIT, at,
            "graph of more than %d different extents with dims, or more than %d terms of these",
            MAX_EXTENTS, MAX_EXTENT_TERMS);
    else
        return true;
    b->is_full = true;
    return false;
}

NodeId build_node(Builder *b, BuildPlace at, Node node) {
    if (b->is_full || !has_room(b, at, &node)) return NODE_NONE;
    if (!node.span.end) node.span = b->span;
    node.call = b->call;
    vec_push(b->arena, &b->graph->kernel_of, b->block);
    vec_push(b->arena, &b->online_of, b->online);
    return graph_add(b->graph, node);
}

NodeId build_checked_node(Builder *b, Node node) {
    return build_check_shape(b, &node.shape) ? build_node(b, (BuildPlace){0}, node) : NODE_NONE;
}

void build_name(Builder *b, NodeId id, Str name) {
    if (id == NODE_NONE) return;
    Node *node = graph_node(b->graph, id);
    if (!node->name) node->name = name;
}

/* Shapes and axes. */

bool build_check_rank(Builder *b, uint32_t rank) {
    if (rank <= MAX_RANK) return true;
    build_fail(b, DIAG_LIMIT, (BuildPlace){0}, "rank %u, but at most %d is supported", rank,
               MAX_RANK);
    return false;
}

bool build_check_given_rank(Builder *b, uint32_t rank) {
    if (rank <= MAX_GIVEN_RANK) return true;
    build_fail(b, DIAG_LIMIT, (BuildPlace){0},
               "rank %u, but an input, param or output has at most %d axes", rank, MAX_GIVEN_RANK);
    return false;
}

bool build_check_n_axes(Builder *b, uint32_t n) {
    if (n <= MAX_RANK) return true;
    build_fail(b, DIAG_LIMIT, (BuildPlace){0}, "%u axes, but at most %d are supported", n,
               MAX_RANK);
    return false;
}

bool build_shape(Builder *b, DimList list, Shape *shape) {
    if (!build_check_n_axes(b, list.n)) return false;
    *shape = (Shape){.rank = list.n};
    for (uint32_t k = 0; k < list.n; k++) shape->dims[k] = list.dims[k];
    return true;
}

static void negative_extent(Builder *b, DimId dim) {
    const char *text = dim_str(b->dims, b->arena, dim);
    long long lo = (long long)dim_lo(b->dims, dim);
    if (dim_prove_le(b->dims, dim_const(b->dims, 0), dim))
        build_fail(b, DIAG_BAD_DIM, (BuildPlace){0},
                   "the terms of extent `%s`, each by itself, reach down to %lld", text, lo)
            ->help = "Narrow the dims' ranges until they do not.";
    else
        build_fail(b, DIAG_BAD_DIM, (BuildPlace){0}, "extent `%s` can be negative: down to %lld",
                   text, lo);
}

bool build_check_shape(Builder *b, const Shape *shape) {
    DimId n_bytes = dim_const(b->dims, 8); /* of the widest dtype, so that casts are safe */
    for (uint32_t k = 0; k < shape->rank; k++) {
        DimId dim = shape->dims[k];
        if (dim != DIM_NONE && dim_lo(b->dims, dim) < 0) {
            negative_extent(b, dim);
            return false;
        }
        bool is_empty = dim && dim_equals_const(b->dims, dim, 0); /* strides pass the others */
        n_bytes = !dim ? DIM_NONE : is_empty ? n_bytes : dim_mul(b->dims, n_bytes, dim);
    }
    if (n_bytes != DIM_NONE) return true;
    build_fail(b, DIAG_DIM_OVERFLOW, (BuildPlace){0}, "a tensor of shape %s can pass 2^62 bytes",
               shape_str(b->dims, b->arena, shape));
    return false;
}

bool build_check_per_axis(Builder *b, BuildPlace at, const char *what, uint32_t n, uint32_t rank) {
    if (n == rank) return true;
    build_fail(b, DIAG_BAD_ARGUMENT, at, "`%s` lists %u numbers for a tensor of rank %u", what, n,
               rank);
    return false;
}

bool build_check_axis(Builder *b, BuildPlace at, int64_t number, uint32_t rank, uint32_t *axis) {
    if (number < -(int64_t)rank || number >= (int64_t)rank) {
        build_fail(b, DIAG_BAD_AXIS, at, "axis %lld is out of range for rank %u", (long long)number,
                   rank);
        return false;
    }
    *axis = (uint32_t)(number < 0 ? number + (int64_t)rank : number);
    return true;
}

bool build_next_axis(Builder *b, BuildPlace at, int64_t number, uint32_t rank, const char *list,
                     uint32_t *axes, uint32_t *axis) {
    if (!build_check_axis(b, at, number, rank, axis)) return false;
    if (*axes >> *axis & 1) {
        build_fail(b, DIAG_BAD_AXIS, at, "axis %u is given twice%s%s%s", *axis, list ? " in `" : "",
                   list ? list : "", list ? "`" : "");
        return false;
    }
    *axes |= 1u << *axis;
    return true;
}

/* Numbers. */

Dtype build_dtype_of(const Builder *b, const Operand *operand) {
    switch (operand->kind) {
    case OPERAND_TENSOR:
        return graph_node(b->graph, operand->node)->dtype;
    case OPERAND_INT:
        return DT_I32;
    case OPERAND_FLOAT:
        return DT_F32;
    case OPERAND_BOOL:
        break;
    }
    return DT_BOOL;
}

const char *build_describe(const Builder *b, const Operand *operand) {
    switch (operand->kind) {
    case OPERAND_TENSOR: {
        const Node *node = graph_node(b->graph, operand->node);
        return str_format(b->arena, "a tensor %s",
                          shape_type_str(b->dims, b->arena, node->dtype, &node->shape));
    }
    case OPERAND_INT: {
        int64_t number;
        bool is_const = dim_is_const(b->dims, operand->dim, &number);
        return str_format(b->arena, "the %s `%s`", is_const ? "integer" : "dim expression",
                          dim_str(b->dims, b->arena, operand->dim));
    }
    case OPERAND_FLOAT: {
        Text text = {.arena = b->arena};
        text_puts(&text, "the number ");
        number_print(operand->number, 17, &text);
        return text_str(&text);
    }
    case OPERAND_BOOL:
        break;
    }
    return operand->number != 0 ? "`true`" : "`false`";
}

/* A number as an element of dtype, if it is one. */
/* Whether a number, or infinity, is nearer to what would follow the largest number of the dtype. */
static bool rounds_beyond(Dtype dtype, double number) {
    double most = dtype_max(dtype);
    return fabs(number) > most + dtype_ulp(dtype, most) / 2;
}

static const char *float_problem(double given, Dtype dtype, double *number, int64_t *whole) {
    *number = dtype_round(dtype, given);
    switch (dtype_kind(dtype)) {
    case KIND_BOOL:
        return "is not true or false";
    case KIND_INT:
        *whole = dtype_saturate(dtype, given);
        if (*number == given && given < 0x1p63) return NULL;
        return isfinite(given) && floor(given) == given ? "is out of range" : "is not an integer";
    case KIND_FLOAT:
        if (isfinite(given) && !isfinite(*number)) return "is out of range";
        if (!dtype_info(dtype)->has_infinity && rounds_beyond(dtype, given))
            return "is out of range";
        return given != 0 && *number == 0 ? "rounds to 0" : NULL;
    }
    return NULL;
}

static const char *int_problem(const Builder *b, const Operand *value, Dtype dtype, double *number,
                               int64_t *whole) {
    int64_t integer;
    if (!dim_is_const(b->dims, value->dim, &integer))
        return "is known only at run time and cannot be a number";
    if (value->is_inexact && dtype_is_float(dtype))
        return "comes from an integer division that was rounded down; write one side with a point";
    if (!dtype_is_int(dtype)) return float_problem((double)integer, dtype, number, whole);
    *number = (double)integer;
    *whole = integer;
    return dtype_wrap(dtype, integer) == integer ? NULL : "is out of range";
}

const char *build_literal_problem(const Builder *b, const Operand *value, Dtype dtype,
                                  double *number, int64_t *whole) {
    int64_t unused;
    if (!whole) whole = &unused;
    *whole = 0;
    switch (value->kind) {
    case OPERAND_INT:
        return int_problem(b, value, dtype, number, whole);
    case OPERAND_FLOAT:
        return float_problem(value->number, dtype, number, whole);
    case OPERAND_BOOL:
        *number = value->number;
        return dtype_is_bool(dtype) ? NULL : "is no number";
    case OPERAND_TENSOR:
        break;
    }
    return "is no number";
}

bool build_literal(Builder *b, BuildPlace at, const Operand *value, Dtype dtype, double *number,
                   int64_t *whole) {
    const char *problem = build_literal_problem(b, value, dtype, number, whole);
    if (problem)
        build_fail(b, DIAG_LITERAL_RANGE, at, "%s, taken as %s, %s", build_describe(b, value),
                   dtype_name(dtype), problem)
            ->taken_as = dtype;
    return problem == NULL;
}

NodeId build_const_at(Builder *b, BuildPlace at, const Operand *value, Dtype dtype) {
    int64_t number;
    if (value->kind == OPERAND_TENSOR) return value->node;
    if (value->kind == OPERAND_INT && dtype_in(dtype, DTS_INDEX) && value->dim &&
        !dim_is_const(b->dims, value->dim, &number))
        return build_dim_value(b, value->dim, dtype);
    Node node = {.op = OP_CONST, .dtype = dtype, .span = value->span};
    if (!build_literal(b, at, value, dtype, &node.attrs.number, &node.attrs.whole))
        return NODE_NONE;
    return build_node(b, at, node);
}

Operand build_stated(const Builder *b, const Operand *value, Dtype dtype) {
    int64_t number;
    bool is_bit = value->kind == OPERAND_INT && dtype_is_bool(dtype) &&
                  dim_is_const(b->dims, value->dim, &number) && (number == 0 || number == 1);
    if (!is_bit) return *value;
    return (Operand){.kind = OPERAND_BOOL, .span = value->span, .number = (double)number};
}

NodeId build_const(Builder *b, const Operand *value, Dtype dtype) {
    const Operand stated = build_stated(b, value, dtype);
    return build_const_at(b, (BuildPlace){.arg = 1}, &stated, dtype);
}

NodeId build_tensor(Builder *b, const Operand *value) {
    return build_const(b, value, build_dtype_of(b, value));
}

/* Dims and declarations. */

bool build_check_n_dims(Builder *b) {
    if (dim_n_symbols(b->dims) < DIM_MAX_SYMBOLS) return true;
    build_fail(b, DIAG_LIMIT, (BuildPlace){0}, "more than %d dims", DIM_MAX_SYMBOLS);
    return false;
}

DimId build_dim(Builder *b, Str name, int64_t lo, int64_t hi, int64_t multiple) {
    if (!build_check_n_dims(b)) return DIM_NONE;
    for (uint32_t i = 0; i < dim_n_symbols(b->dims); i++) {
        if (strcmp(dim_symbol_info(b->dims, i)->name, name) != 0) continue;
        build_fail(b, DIAG_REDEFINITION, (BuildPlace){0}, "dim `%s` is declared already", name);
        return DIM_NONE;
    }
    if (lo < 0 || hi < lo) {
        build_fail(b, DIAG_BAD_DIM, (BuildPlace){0}, "`%s` ranges over %lld..%lld, which is %s",
                   name, (long long)lo, (long long)hi, lo < 0 ? "negative" : "empty");
        return DIM_NONE;
    }
    if (multiple < 1) {
        build_fail(b, DIAG_BAD_DIM, (BuildPlace){0},
                   "`%s` has the multiple %lld, which is not positive", name, (long long)multiple);
        return DIM_NONE;
    }
    int64_t rest = lo % multiple, up = rest ? multiple - rest : 0, last = hi - hi % multiple;
    if (up > last - lo) {
        build_fail(b, DIAG_BAD_DIM, (BuildPlace){0}, "no multiple of %lld in %lld..%lld for `%s`",
                   (long long)multiple, (long long)lo, (long long)hi, name);
        return DIM_NONE;
    }
    DimSymbol symbol = {.name = name, .lo = lo + up, .hi = last, .multiple = multiple};
    uint32_t index = dim_declare(b->dims, symbol);
    return symbol.lo == symbol.hi ? dim_const(b->dims, symbol.lo) : dim_symbol(b->dims, index);
}

/* An input or a param, in no block. */
static NodeId declare(Builder *b, OpId op, Str name, Dtype dtype, DimList shape) {
    Node node = {.op = op, .dtype = dtype, .name = name};
    uint32_t block = b->block;
    if (!build_check_given_rank(b, shape.n) || !build_shape(b, shape, &node.shape))
        return NODE_NONE;
    b->block = 0;
    NodeId id = build_checked_node(b, node);
    b->block = block;
    return id;
}

NodeId build_input(Builder *b, Str name, Dtype dtype, DimList shape) {
    NodeId id = declare(b, OP_INPUT, name, dtype, shape);
    GraphInput input = {.name = name, .node = id, .span = b->span};
    if (id != NODE_NONE) vec_push(b->arena, &b->graph->inputs, input);
    return id;
}

NodeId build_param(Builder *b, Str name, Str key, Dtype dtype, DimList shape) {
    NodeId id = declare(b, OP_PARAM, name, dtype, shape);
    GraphInput param = {.name = name, .node = id, .key = key ? key : name, .span = b->span};
    if (id != NODE_NONE) vec_push(b->arena, &b->graph->params, param);
    return id;
}

bool build_output(Builder *b, Str name, NodeId node, uint32_t block) {
    if (node == NODE_NONE || !build_check_given_rank(b, build_shape_of(b, node)->rank))
        return false;
    GraphOutput output = {.name = name, .node = node, .span = b->span};
    bool is_kernel = block && b->graph->fixed_kernels.data[block - 1].kind == BLOCK_KERNEL;
    if (is_kernel && graph_is_bound(b->graph, node)) output.copied_by = block;
    vec_push(b->arena, &b->graph->outputs, output);
    return true;
}

/* Blocks. */

uint32_t build_block(Builder *b, BlockKind kind, Str name) {
    Graph *graph = b->graph;
    for (uint32_t i = 0; i < graph->fixed_kernels.n && kind == BLOCK_KERNEL; i++) {
        const FixedKernel *other = &graph->fixed_kernels.data[i];
        if (other->kind == BLOCK_KERNEL && strcmp(other->name, name) == 0)
            build_fail(b, DIAG_REDEFINITION, (BuildPlace){0}, "a second kernel `%s`", name)->block =
                i + 1;
    }
    FixedKernel block = {.kind = kind, .name = name, .span = b->span};
    if (kind != BLOCK_KERNEL) block.name = block_word(kind);
    vec_push(b->arena, &graph->fixed_kernels, block);
    b->block = graph->fixed_kernels.n;
    return b->block;
}

void build_end_block(Builder *b) {
    b->block = 0;
}

uint32_t build_begin_online(Builder *b) {
    uint32_t before = b->online;
    if (before) return before;
    vec_push(b->arena, &b->online_blocks, b->span);
    b->online = b->online_blocks.n;
    return before;
}

void build_end_online(Builder *b, uint32_t before) {
    b->online = before;
}
