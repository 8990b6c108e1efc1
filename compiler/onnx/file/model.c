/* The messages of an ONNX file. Field numbers are those of onnx.proto. See model.h. */
#include "onnx/file/model.h"

#include "base/checked.h"

static const ElemInfo elems[ELEM_COUNT] = {
    [ELEM_NONE] = {"an unknown element type", "", 0, ELEM_IS_OTHER},
#define ELEM(sym, number, name, dtype, n_bytes, kind) \
    [ELEM_##sym] = {name, dtype, n_bytes, ELEM_IS_##kind},
#include "onnx/file/onnx_types.def"
};

const ElemInfo *elem_info(int64_t type) {
    return &elems[type > 0 && type < ELEM_COUNT ? type : ELEM_NONE];
}

bool elem_dtype(int64_t type, Dtype *dtype) {
    const ElemInfo *info = elem_info(type);
    return info->kind != ELEM_IS_BIASED && dtype_by_name(info->dtype, dtype);
}

bool elem_biased(int64_t type, Dtype *dtype) {
    const ElemInfo *info = elem_info(type);
    return info->kind == ELEM_IS_BIASED && dtype_by_name(info->dtype, dtype);
}

ElemType elem_of_dtype(Dtype dtype) {
    for (int type = 1; type < ELEM_COUNT; type++)
        if (elems[type].kind != ELEM_IS_BIASED && strcmp(elems[type].dtype, dtype_name(dtype)) == 0)
            return (ElemType)type;
    return ELEM_NONE;
}

/* The state of one reading. The first fault ends it. */
typedef struct Reader {
    Arena *arena;
    StrTab *strings;
    const char *why;
    uint32_t depth; /* of messages inside each other */
} Reader;

enum { MAX_DEPTH = 64 };

static bool fault(Reader *r, const char *why) {
    if (!r->why) r->why = why;
    return false;
}

/* The next field; false at the end and after a fault. */
static bool next(Reader *r, Bytes *message, WireField *field) {
    if (r->why) return false;
    if (wire_next(message, field)) return true;
    if (message->n) fault(r, "its bytes end within a field, or are no fields");
    return false;
}

static Str text(Reader *r, const WireField *field) {
    if (field->type != WIRE_BYTES) fault(r, "a name is no text");
    if (field->bytes.n && memchr(field->bytes.data, 0, field->bytes.n))
        fault(r, "a name has a byte of 0");
    if (r->why) return "";
    return strtab_intern(r->strings, field->bytes.n ? (const char *)field->bytes.data : "",
                         field->bytes.n);
}

static Bytes message_of(Reader *r, const WireField *field) {
    if (field->type != WIRE_BYTES) fault(r, "a message is a number");
    return field->bytes;
}

static double bits_number(uint64_t bits, size_t n_bytes) {
    float single;
    double number;
    uint32_t low = (uint32_t)bits;
    memcpy(&single, &low, sizeof single);
    memcpy(&number, &bits, sizeof number);
    return n_bytes == sizeof single ? (double)single : number;
}

/* Repeated numbers, packed or one by one. */
static void read_ints(Reader *r, const WireField *field, VecInt *ints) {
    Bytes bytes = field->bytes;
    uint64_t value = field->value;
    if (field->type == WIRE_VARINT) vec_push(r->arena, ints, (int64_t)value);
    while (field->type == WIRE_BYTES && bytes.n) {
        if (!wire_varint(&bytes, &value)) {
            fault(r, "a list of integers is cut off");
            return;
        }
        vec_push(r->arena, ints, (int64_t)value);
    }
}

static void read_floats(Reader *r, const WireField *field, size_t n_bytes, VecDouble *floats) {
    Bytes bytes = field->bytes;
    uint64_t value = field->value;
    if (field->type != WIRE_BYTES) vec_push(r->arena, floats, bits_number(value, n_bytes));
    while (field->type == WIRE_BYTES && bytes.n) {
        if (!wire_fixed(&bytes, n_bytes, &value)) {
            fault(r, "a list of floats is cut off");
            return;
        }
        vec_push(r->arena, floats, bits_number(value, n_bytes));
    }
}

/* float_data or double_data. A packed list is raw elements. */
static void read_packed(Reader *r, const WireField *field, size_t n_bytes, OnnxTensor *tensor) {
    if (field->type == WIRE_BYTES && !tensor->raw.n && !tensor->floats.n)
        tensor->raw = field->bytes;
    else
        read_floats(r, field, n_bytes, &tensor->floats);
}

static bool decimal(Str digits, int64_t *value) {
    *value = 0;
    for (const char *c = digits; *c; c++)
        if (*c < '0' || *c > '9' || !checked_mul(*value, 10, value) ||
            !checked_add(*value, *c - '0', value))
            return false;
    return digits[0] != 0;
}

static void read_external(Reader *r, Bytes entry, OnnxTensor *tensor) {
    WireField field;
    Str key = "", value = "";
    while (next(r, &entry, &field)) {
        if (field.number == 1) key = text(r, &field);
        if (field.number == 2) value = text(r, &field);
    }
    if (strcmp(key, "location") == 0) tensor->location = value;
    if (strcmp(key, "offset") == 0 && !decimal(value, &tensor->offset))
        fault(r, "the offset of external data is no number");
    if (strcmp(key, "length") == 0 && !decimal(value, &tensor->length))
        fault(r, "the length of external data is no number");
}

static void count_elems(Reader *r, OnnxTensor *tensor) {
    int64_t n = 1;
    for (uint32_t k = 0; k < tensor->dims.n; k++) {
        if (tensor->dims.data[k] < 0 || !checked_mul(n, tensor->dims.data[k], &n)) {
            fault(r, "a tensor has a negative extent, or too many elements");
            return;
        }
    }
    tensor->n_elems = (size_t)n;
}

static OnnxTensor read_tensor(Reader *r, Bytes message) {
    OnnxTensor tensor = {.name = "", .length = -1};
    WireField field;
    while (next(r, &message, &field)) {
        switch (field.number) {
        case 1:
            read_ints(r, &field, &tensor.dims);
            break;
        case 2:
            tensor.type = (int64_t)field.value;
            break;
        case 4:
            read_packed(r, &field, 4, &tensor);
            break;
        case 5:
        case 7:
        case 11:
            read_ints(r, &field, &tensor.ints);
            break;
        case 8:
            tensor.name = text(r, &field);
            break;
        case 9:
            tensor.raw = message_of(r, &field);
            break;
        case 10:
            read_packed(r, &field, 8, &tensor);
            break;
        case 13:
            read_external(r, message_of(r, &field), &tensor);
            break;
        case 14:
            tensor.is_external = field.value == 1;
            break;
        default:
            break;
        }
    }
    count_elems(r, &tensor);
    return tensor;
}

static OnnxGraph *read_graph(Reader *r, Bytes message);

static void read_attr_list(Reader *r, const WireField *field, OnnxAttr *attr) {
    switch (field->number) {
    case 7:
        read_floats(r, field, 4, &attr->floats);
        break;
    case 8:
        read_ints(r, field, &attr->ints);
        break;
    case 9:
        vec_push(r->arena, &attr->strings, text(r, field));
        break;
    case 20:
        attr->type = (int64_t)field->value;
        break;
    case 21:
        attr->reference = text(r, field);
        break;
    default:
        break;
    }
}

static OnnxAttr read_attr(Reader *r, Bytes message) {
    OnnxAttr attr = {.name = "", .string = ""};
    WireField field;
    while (next(r, &message, &field)) {
        switch (field.number) {
        case 1:
            attr.name = text(r, &field);
            break;
        case 2:
            attr.number = bits_number(field.value, 4);
            break;
        case 3:
            attr.integer = (int64_t)field.value;
            break;
        case 4:
            attr.string = text(r, &field);
            break;
        case 5:
            attr.tensor = arena_array(r->arena, OnnxTensor, 1);
            *attr.tensor = read_tensor(r, message_of(r, &field));
            break;
        case 6:
            attr.graph = read_graph(r, message_of(r, &field));
            break;
        default:
            read_attr_list(r, &field, &attr);
            break;
        }
    }
    return attr;
}

static OnnxNode read_node(Reader *r, Bytes message) {
    OnnxNode node = {.name = "", .op = "", .domain = ""};
    WireField field;
    while (next(r, &message, &field)) {
        switch (field.number) {
        case 1:
            vec_push(r->arena, &node.inputs, text(r, &field));
            break;
        case 2:
            vec_push(r->arena, &node.outputs, text(r, &field));
            break;
        case 3:
            node.name = text(r, &field);
            break;
        case 4:
            node.op = text(r, &field);
            break;
        case 5:
            vec_push(r->arena, &node.attrs, read_attr(r, message_of(r, &field)));
            break;
        case 7:
            node.domain = text(r, &field);
            break;
        default:
            break;
        }
    }
    return node;
}

static void read_shape(Reader *r, Bytes message, OnnxValueInfo *info) {
    WireField field, part;
    info->has_shape = true;
    while (next(r, &message, &field)) {
        if (field.number != 1) continue;
        OnnxDim dim = {.value = -1};
        Bytes bytes = message_of(r, &field);
        while (next(r, &bytes, &part)) {
            if (part.number == 1) dim.value = (int64_t)part.value;
            if (part.number == 2) dim.param = text(r, &part);
        }
        vec_push(r->arena, &info->dims, dim);
    }
}

static void read_type(Reader *r, Bytes message, OnnxValueInfo *info) {
    WireField field, part;
    while (next(r, &message, &field)) {
        if (field.number != 1) continue;
        info->is_tensor = true;
        Bytes bytes = message_of(r, &field);
        while (next(r, &bytes, &part)) {
            if (part.number == 1) info->type = (int64_t)part.value;
            if (part.number == 2) read_shape(r, message_of(r, &part), info);
        }
    }
}

static OnnxValueInfo read_value_info(Reader *r, Bytes message) {
    OnnxValueInfo info = {.name = ""};
    WireField field;
    while (next(r, &message, &field)) {
        if (field.number == 1) info.name = text(r, &field);
        if (field.number == 2) read_type(r, message_of(r, &field), &info);
    }
    return info;
}

static OnnxGraph *read_graph(Reader *r, Bytes message) {
    OnnxGraph *graph = arena_array(r->arena, OnnxGraph, 1);
    WireField field;
    graph->name = "";
    if (++r->depth > MAX_DEPTH) fault(r, "its graphs lie in each other more than 64 deep");
    while (next(r, &message, &field)) {
        switch (field.number) {
        case 1:
            vec_push(r->arena, &graph->nodes, read_node(r, message_of(r, &field)));
            break;
        case 2:
            graph->name = text(r, &field);
            break;
        case 5:
            vec_push(r->arena, &graph->initializers, read_tensor(r, message_of(r, &field)));
            break;
        case 11:
            vec_push(r->arena, &graph->inputs, read_value_info(r, message_of(r, &field)));
            break;
        case 12:
            vec_push(r->arena, &graph->outputs, read_value_info(r, message_of(r, &field)));
            break;
        case 15:
            graph->n_sparse++;
            break;
        default:
            break;
        }
    }
    r->depth--;
    return graph;
}

static OnnxOpset read_opset(Reader *r, Bytes message) {
    OnnxOpset opset = {.domain = ""};
    WireField field;
    while (next(r, &message, &field)) {
        if (field.number == 1) opset.domain = text(r, &field);
        if (field.number == 2) opset.version = (int64_t)field.value;
    }
    return opset;
}

static OnnxFunction read_function(Reader *r, Bytes message) {
    OnnxFunction function = {.name = "", .domain = ""};
    WireField field;
    while (next(r, &message, &field)) {
        switch (field.number) {
        case 1:
            function.name = text(r, &field);
            break;
        case 4:
            vec_push(r->arena, &function.inputs, text(r, &field));
            break;
        case 5:
            vec_push(r->arena, &function.outputs, text(r, &field));
            break;
        case 7:
            vec_push(r->arena, &function.nodes, read_node(r, message_of(r, &field)));
            break;
        case 9:
            vec_push(r->arena, &function.opsets, read_opset(r, message_of(r, &field)));
            break;
        case 10:
            function.domain = text(r, &field);
            break;
        case 11:
            vec_push(r->arena, &function.defaults, read_attr(r, message_of(r, &field)));
            break;
        default:
            break;
        }
    }
    return function;
}

OnnxModel *onnx_model_read(Arena *arena, StrTab *strings, Bytes file, const char **why) {
    Reader reader = {.arena = arena, .strings = strings}, *r = &reader;
    OnnxModel *model = arena_array(arena, OnnxModel, 1);
    WireField field;
    while (next(r, &file, &field)) {
        if (field.number == 1) model->ir_version = (int64_t)field.value;
        if (field.number == 7) model->graph = read_graph(r, message_of(r, &field));
        if (field.number == 8)
            vec_push(arena, &model->opsets, read_opset(r, message_of(r, &field)));
        if (field.number == 25)
            vec_push(arena, &model->functions, read_function(r, message_of(r, &field)));
    }
    if (!r->why && !model->graph) fault(r, "it has no graph");
    if (!r->why && !model->opsets.n) fault(r, "it imports no opset");
    *why = r->why;
    return r->why ? NULL : model;
}
