/* Values: elements known while importing, and nodes made of them. */
#include "onnx/call/import_state.h"

#include <math.h>

/* Elements of tensors in the file. */

static bool is_below(const char *location) {
    return location && location[0] && location[0] != '/' && !strstr(location, "..");
}

/* Finds the elements of a tensor that lie in the file, or beside it. */
static bool raw_elems(Import *im, const OnnxTensor *tensor, Bytes *bytes, const char **why) {
    size_t n_bytes = elem_info(tensor->type)->n_bytes;
    *bytes = tensor->raw;
    if (tensor->is_external) {
        const OnnxSource *source = im->source;
        *why = "its external data must lie in the model's folder, or below";
        if (!is_below(tensor->location)) return false;
        *why = "its external data cannot be read";
        if (!source->external || !source->external(source->user, tensor->location, bytes))
            return false;
        *why = "its external data lie outside their file";
        if (tensor->offset < 0 || (uint64_t)tensor->offset > bytes->n) return false;
        *bytes = (Bytes){bytes->data + tensor->offset, bytes->n - (size_t)tensor->offset};
        if (tensor->length >= 0 && (uint64_t)tensor->length > bytes->n) return false;
        if (tensor->length >= 0) bytes->n = (size_t)tensor->length;
    }
    *why = "its elements are of a type that is not supported";
    if (n_bytes == 0) return false;
    *why = "it has fewer or more elements than its shape says";
    return tensor->n_elems <= SIZE_MAX / n_bytes && bytes->n == tensor->n_elems * n_bytes;
}

static uint64_t read_bits(const uint8_t *at, size_t n_bytes) {
    uint64_t bits = 0;
    for (size_t i = 0; i < n_bytes; i++) bits |= (uint64_t)at[i] << (8 * i);
    return bits;
}

/* int32_data holds elements of narrow types, too: floats as bits. */
static bool pack_ints(Import *im, const OnnxTensor *tensor, Bytes *bytes) {
    size_t n_bytes = elem_info(tensor->type)->n_bytes;
    if (tensor->ints.n != tensor->n_elems || n_bytes == 0) return false;
    uint8_t *packed = arena_try_alloc(im->arena, tensor->n_elems * n_bytes + 1);
    for (size_t i = 0; packed && i < tensor->n_elems; i++)
        for (size_t k = 0; k < n_bytes && k < 8; k++)
            packed[i * n_bytes + k] = (uint8_t)((uint64_t)tensor->ints.data[i] >> (8 * k));
    *bytes = (Bytes){packed, tensor->n_elems * n_bytes};
    return packed != NULL;
}

static bool pack_floats(Import *im, const OnnxTensor *tensor, Bytes *bytes) {
    Dtype dtype;
    if (tensor->floats.n != tensor->n_elems || !elem_dtype(tensor->type, &dtype)) return false;
    uint8_t *packed = arena_try_alloc(im->arena, tensor->n_elems * dtype_bytes(dtype) + 1);
    for (size_t i = 0; packed && i < tensor->n_elems; i++)
        dtype_store(dtype, dtype_round(dtype, tensor->floats.data[i]),
                    packed + i * dtype_bytes(dtype));
    *bytes = (Bytes){packed, tensor->n_elems * dtype_bytes(dtype)};
    return packed != NULL;
}

/* The elements as they lie in memory. */
static bool tensor_bytes(Import *im, const OnnxTensor *tensor, Bytes *bytes, const char **why) {
    if (tensor->ints.n && pack_ints(im, tensor, bytes)) return true;
    if (tensor->floats.n && pack_floats(im, tensor, bytes)) return true;
    return raw_elems(im, tensor, bytes, why);
}

static int64_t sign_extended(uint64_t bits, size_t n_bytes) {
    unsigned shift = (unsigned)(64 - 8 * n_bytes);
    uint64_t top = bits << shift;
    return shift == 0 ? (int64_t)top : (int64_t)top / ((int64_t)1 << shift);
}

static DimId known_dim(Import *im, const ElemInfo *info, uint64_t bits) {
    int64_t value = info->kind == ELEM_IS_INT ? sign_extended(bits, info->n_bytes) : (int64_t)bits;
    if (info->kind == ELEM_IS_BOOL) value = bits != 0;
    if (value > DIM_LIMIT) value = DIM_LIMIT;
    if (value < -DIM_LIMIT) value = -DIM_LIMIT;
    return dim_const(im->b->dims, value);
}

Known *known_new(Import *im, int64_t type, uint32_t rank, const int64_t *dims) {
    int64_t n = 1;
    if (rank > MAX_RANK) return NULL;
    for (uint32_t k = 0; k < rank; k++) {
        if (dims[k] < 0 || (dims[k] && n > MAX_KNOWN / dims[k])) return NULL;
        n *= dims[k];
    }
    Known *known = arena_array(im->arena, Known, 1);
    *known = (Known){.type = type, .rank = rank, .n = (uint32_t)n};
    if (rank) memcpy(known->dims, dims, rank * sizeof *dims);
    if (elem_info(type)->kind == ELEM_IS_OTHER) return NULL;
    if (elem_info(type)->kind == ELEM_IS_FLOAT)
        known->floats = arena_array(im->arena, double, known->n + 1);
    else
        known->ints = arena_array(im->arena, DimId, known->n + 1);
    return known;
}

Known *known_list(Import *im, uint32_t n) {
    int64_t dims[1] = {n};
    return known_new(im, ELEM_INT64, 1, dims);
}

bool known_int(Import *im, const Known *known, uint32_t i, int64_t *value) {
    return known->ints && i < known->n && dim_is_const(im->b->dims, known->ints[i], value);
}

Known *tensor_known(Import *im, const OnnxTensor *tensor) {
    const ElemInfo *info = elem_info(tensor->type);
    const char *why;
    Bytes bytes;
    Dtype dtype;
    if (tensor->n_elems > MAX_KNOWN || info->n_bytes > 8 || !info->n_bytes) return NULL;
    Known *known = known_new(im, tensor->type, tensor->dims.n, tensor->dims.data);
    if (!known || !tensor_bytes(im, tensor, &bytes, &why)) return NULL;
    if (known->floats && !elem_dtype(tensor->type, &dtype)) return NULL;
    for (uint32_t i = 0; i < known->n; i++) {
        const uint8_t *at = bytes.data + (size_t)i * info->n_bytes;
        if (known->floats)
            known->floats[i] = dtype_load(dtype, at);
        else
            known->ints[i] = known_dim(im, info, read_bits(at, info->n_bytes));
    }
    return known;
}

const double *tensor_numbers(Import *im, const OnnxTensor *tensor) {
    size_t n_bytes = elem_info(tensor->type)->n_bytes;
    const char *why;
    Bytes bytes;
    Dtype dtype;
    if (!tensor->n_elems || !elem_dtype(tensor->type, &dtype) || !n_bytes ||
        !tensor_bytes(im, tensor, &bytes, &why))
        return NULL;
    double *values = arena_array(im->arena, double, tensor->n_elems);
    for (size_t i = 0; i < tensor->n_elems; i++)
        values[i] = dtype_load(dtype, bytes.data + i * n_bytes);
    return values;
}

const Known *value_known(Import *im, Value *value) {
    if (!value->known && value->tensor) value->known = tensor_known(im, value->tensor);
    return value->known;
}

/* Nodes. */

static NodeId weight_node(Call *c, const char *name, Dtype dtype, uint32_t rank,
                          const int64_t *extents, Bytes bytes) {
    Import *im = c->im;
    OnnxWeight weight = {.key = name, .dtype = dtype, .rank = rank, .bytes = bytes};
    DimId dims[MAX_RANK];
    for (uint32_t k = 0; k < rank; k++) dims[k] = number(c, weight.dims[k] = extents[k]);
    weight.name = onnx_unique_name(im, name, "weight");
    if (!name[0] || onnx_scope_find(c->scope, strtab_intern_z(im->strings, name)) == NULL ||
        c->scope->is_repeated)
        weight.key = weight.name;
    weight.key = onnx_unique_key(im, weight.key, weight.name);
    vec_push(im->arena, &im->result->weights, weight);
    return build_param(im->b, weight.name, weight.key, dtype, (DimList){rank, dims});
}

static bool fail_elems(Call *c, int64_t type) {
    return onnx_fail(c, DIAG_UNSUPPORTED_DTYPE, "the language has no dtype for elements of %s",
                     elem_info(type)->name);
}

NodeId tensor_node(Call *c, const char *name, const OnnxTensor *tensor) {
    Dtype dtype;
    const char *why;
    Bytes bytes;
    if (!elem_dtype(tensor->type, &dtype)) {
        fail_elems(c, tensor->type);
        return NODE_NONE;
    }
    if (!tensor_bytes(c->im, tensor, &bytes, &why)) {
        onnx_fail(c, DIAG_SYNTAX, "tensor `%s` cannot be read: %s", name, why);
        return NODE_NONE;
    }
    if (tensor->dims.n > MAX_GIVEN_RANK) {
        onnx_fail(c, DIAG_LIMIT, "tensor `%s` has more than 8 axes", name);
        return NODE_NONE;
    }
    return weight_node(c, name, dtype, tensor->dims.n, tensor->dims.data, bytes);
}

/* One number for all elements. */
static NodeId filled_node(Call *c, const Known *known, Dtype dtype, double value) {
    Operand operand = operand_float(value);
    DimId dims[MAX_RANK];
    if (known->ints) operand = operand_int(known->ints[0]);
    if (dtype_is_bool(dtype)) operand = operand_bool(value != 0);
    NodeId node = build_const(c->im->b, &operand, dtype);
    for (uint32_t k = 0; k < known->rank; k++) dims[k] = number(c, known->dims[k]);
    return known->rank ? build_expand(c->im->b, node, (DimList){known->rank, dims}) : node;
}

/* False: an element is no number, but follows from dims. */
static bool known_numbers(Call *c, const Known *known, double *numbers, bool *is_same) {
    *is_same = known->n > 0;
    for (uint32_t i = 0; i < known->n; i++) {
        int64_t value = 0;
        if (known->ints && !known_int(c->im, known, i, &value)) return false;
        numbers[i] = known->ints ? (double)value : known->floats[i];
        *is_same = *is_same && memcmp(&numbers[i], &numbers[0], sizeof *numbers) == 0;
    }
    return true;
}

/* Elements of which some follow from dims. */
static NodeId dims_node(Call *c, const Known *known, Dtype dtype) {
    enum { MAX_DIMS = 256 };
    NodeId parts[MAX_DIMS];
    if (known->n > MAX_DIMS || !dtype_is_int(dtype)) {
        onnx_fail(c, DIAG_NO_LOWERING,
                  "it needs a tensor of %u elements that follow from dims, or of %s", known->n,
                  dtype_name(dtype));
        return NODE_NONE;
    }
    for (uint32_t i = 0; i < known->n; i++)
        parts[i] = cast_to(c, number_node(c, known->ints[i], DT_I64), dtype);
    return reshape_const(c, stacked(c, known->n, parts, 0), known->rank, known->dims);
}

static NodeId known_node(Call *c, const char *name, const Known *known) {
    Dtype dtype;
    bool is_same;
    double *numbers = arena_array(c->im->arena, double, known->n + 1);
    if (!elem_dtype(known->type, &dtype)) {
        fail_elems(c, known->type);
        return NODE_NONE;
    }
    if (!known_numbers(c, known, numbers, &is_same)) return dims_node(c, known, dtype);
    if (is_same && isfinite(numbers[0])) return filled_node(c, known, dtype, numbers[0]);
    size_t size = dtype_bytes(dtype);
    uint8_t *bytes = arena_alloc(c->im->arena, known->n * size + 1);
    for (uint32_t i = 0; i < known->n; i++)
        dtype_store(dtype, dtype_round(dtype, numbers[i]), bytes + i * size);
    return weight_node(c, name, dtype, known->rank, known->dims, (Bytes){bytes, known->n * size});
}

/* The node that the call of a function gives it. */
static NodeId given_node(Call *c, const Value *value) {
    Call outer = *c;
    outer.scope = value->given_scope;
    NodeId node = value_node(&outer, value->given);
    c->has_failed = outer.has_failed;
    return node;
}

NodeId value_node(Call *c, Value *value) {
    if (value->node == NODE_NONE && value->given) value->node = given_node(c, value);
    if (value->node != NODE_NONE) return value->node;
    const Known *known =
        value->tensor && value->tensor->n_elems > 1 ? NULL : value_known(c->im, value);
    if (known)
        value->node = known_node(c, value->name, known);
    else if (value->tensor)
        value->node = tensor_node(c, value->name, value->tensor);
    return value->node;
}

int64_t held_type(const Import *im, NodeId node) {
    for (uint32_t i = 0; i < im->held.n; i++)
        if (im->held.data[i].node == node) return im->held.data[i].type;
    return ELEM_NONE;
}

NodeId held_as(Import *im, NodeId node, int64_t type) {
    if (node != NODE_NONE) vec_push(im->arena, &im->held, (HeldNode){node, type});
    return node;
}

bool value_type(Import *im, const Value *value, int64_t *type) {
    *type = value->tensor                                            ? value->tensor->type
            : value->known                                           ? value->known->type
            : value->node != NODE_NONE && held_type(im, value->node) ? held_type(im, value->node)
            : value->node != NODE_NONE
                ? (int64_t)elem_of_dtype(graph_node(im->b->graph, value->node)->dtype)
                : ELEM_NONE;
    return *type != ELEM_NONE;
}

static void constant_shape(Import *im, uint32_t rank, const int64_t *dims, Shape *shape) {
    shape->rank = rank;
    for (uint32_t k = 0; k < rank; k++) shape->dims[k] = dim_const(im->b->dims, dims[k]);
}

bool value_shape(Import *im, const Value *value, Shape *shape) {
    if (value->node != NODE_NONE)
        *shape = graph_node(im->b->graph, value->node)->shape;
    else if (value->known)
        constant_shape(im, value->known->rank, value->known->dims, shape);
    else if (value->tensor && value->tensor->dims.n <= MAX_RANK)
        constant_shape(im, value->tensor->dims.n, value->tensor->dims.data, shape);
    else
        return false;
    return true;
}
