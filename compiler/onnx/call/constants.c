/* Inputs that are given to the import as constants. */
#include "interp/npy.h"
#include "ir/node_flags.h"
#include "onnx/call/import_state.h"

#include <errno.h>
#include <stdlib.h>

static bool fail_constant(Import *im, const OnnxConstant *given, const char *why) {
    return diag_report(im->diags, DIAG_BAD_ARGUMENT, NULL, (Span){0}, "%s: --constant=%s: %s",
                       im->source->name, given->name, why);
}

/* A number of a list; false: the text has none. `rest` is behind it. */
static bool read_number(OnnxTensor *tensor, Arena *arena, const char *text, char **rest) {
    bool is_float = elem_info(tensor->type)->kind == ELEM_IS_FLOAT;
    errno = 0;
    if (is_float)
        vec_push(arena, &tensor->floats, strtod(text, rest));
    else
        vec_push(arena, &tensor->ints, strtoll(text, rest, 10));
    return *rest != text && !errno && (**rest == ',' || !**rest);
}

static bool read_text(Import *im, const OnnxConstant *given, uint32_t rank, OnnxTensor *tensor) {
    const char *text = given->text;
    if (rank > 1)
        return fail_constant(im, given,
                             "a tensor of more than one axis must come from a .npy file");
    while (*text) {
        char *rest;
        if (!read_number(tensor, im->arena, text, &rest))
            return fail_constant(im, given, "its value is no list of numbers, as 1,2,3");
        text = *rest ? rest + 1 : rest;
    }
    tensor->n_elems = tensor->ints.n + tensor->floats.n;
    if (rank == 1) vec_push(im->arena, &tensor->dims, (int64_t)tensor->n_elems);
    return rank == 1 || tensor->n_elems == 1 || fail_constant(im, given, "it is one number");
}

static bool read_file(Import *im, const OnnxConstant *given, uint32_t rank, OnnxTensor *tensor) {
    NpyArray array;
    const char *why;
    Dtype dtype;
    if (!npy_read(im->arena, (const char *)given->file.data, given->file.n, &array, &why))
        return fail_constant(im, given, why);
    if (!elem_dtype(tensor->type, &dtype) || !dtype_in(dtype, array.dtypes) || array.rank != rank)
        return fail_constant(
            im, given,
            str_format(im->arena, "the model wants %s of rank %u, not %s of rank %u",
                       elem_info(tensor->type)->name, rank, dtype_name(array.dtype), array.rank));
    tensor->n_elems = 1;
    for (uint32_t k = 0; k < rank; k++) {
        vec_push(im->arena, &tensor->dims, array.dims[k]);
        tensor->n_elems *= (size_t)array.dims[k];
    }
    tensor->raw = (Bytes){array.bytes, array.n_bytes};
    return true;
}

static const OnnxConstant *find_constant(const Import *im, const char *name) {
    for (uint32_t i = 0; i < im->source->n_constants; i++)
        if (strcmp(im->source->constants[i].name, name) == 0) return &im->source->constants[i];
    return NULL;
}

bool onnx_is_constant(Import *im, const OnnxValueInfo *info) {
    return find_constant(im, info->name) || find_constant(im, onnx_plain_name(im, info->name, "x"));
}

bool onnx_add_constant(Import *im, Scope *scope, const OnnxValueInfo *info) {
    const OnnxConstant *given = find_constant(im, info->name);
    if (!given) given = find_constant(im, onnx_plain_name(im, info->name, "x"));
    OnnxTensor *tensor = arena_array(im->arena, OnnxTensor, 1);
    *tensor = (OnnxTensor){.name = info->name, .type = info->type, .length = -1};
    bool good = given->text ? read_text(im, given, info->dims.n, tensor)
                            : read_file(im, given, info->dims.n, tensor);
    for (uint32_t k = 0; good && k < info->dims.n; k++)
        if (info->dims.data[k].value >= 0 && info->dims.data[k].value != tensor->dims.data[k])
            good = fail_constant(im, given, "its extents are not those of the model's input");
    if (good) onnx_scope_add(im, scope, info->name)->tensor = tensor;
    return good;
}

bool onnx_check_constants(Import *im) {
    const OnnxGraph *graph = im->model->graph;
    for (uint32_t i = 0; i < im->source->n_constants; i++) {
        const OnnxConstant *given = &im->source->constants[i];
        bool is_input = false;
        for (uint32_t k = 0; k < graph->inputs.n && !is_input; k++)
            is_input =
                strcmp(graph->inputs.data[k].name, given->name) == 0 ||
                strcmp(onnx_plain_name(im, graph->inputs.data[k].name, "x"), given->name) == 0;
        if (!is_input) return fail_constant(im, given, "the model has no input of this name");
    }
    return true;
}

/* Inputs that a value is computed from. */

enum { IS_NEEDED };

static NodeFlags needed_for(Import *im, NodeId from) {
    const Graph *graph = im->b->graph;
    NodeFlags flags = node_flags_new(im->arena, graph->nodes.n);
    node_add(flags, from, IS_NEEDED);
    for (NodeId k = from + 1; k-- > 0;)
        for (uint32_t i = 0; node_has(flags, k, IS_NEEDED) && i < graph_node(graph, k)->n_args; i++)
            node_add(flags, graph_node(graph, k)->args[i], IS_NEEDED);
    return flags;
}

/* Whether the import could take the input: it is needed and small. */
static bool can_be_known(Import *im, const GraphInput *from, NodeFlags flags) {
    int64_t n;
    DimId elems = shape_n_elems(im->b->dims, build_shape_of(im->b, from->node));
    return node_has(flags, from->node, IS_NEEDED) && elems != DIM_NONE &&
           dim_is_const(im->b->dims, elems, &n) && n <= MAX_KNOWN;
}

static void list_inputs(Import *im, NodeFlags flags, bool takes_floats, Text *text) {
    const Graph *graph = im->b->graph;
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        const GraphInput *from = &graph->inputs.data[i];
        if (dtype_is_float(graph_node(graph, from->node)->dtype) == takes_floats &&
            can_be_known(im, from, flags))
            text_printf(text, "%s--constant=%s=VALUES", text->n_bytes ? ", " : "", from->name);
    }
}

const char *onnx_constants_needed(Import *im, NodeId node) {
    Text text = {.arena = im->arena};
    if (node == NODE_NONE) return "";
    NodeFlags flags = needed_for(im, node);
    list_inputs(im, flags, false, &text);
    if (!text.n_bytes) list_inputs(im, flags, true, &text);
    if (!text.n_bytes) return "";
    return str_format(im->arena, "; give it as a constant: %s", text_str(&text));
}
