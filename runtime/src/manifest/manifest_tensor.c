/* The fields of the manifest's tensor lines, such as `input NAME 0 DTYPE EXTENT...`. */
#include "manifest/manifest_text.h"

enum { PLACE = 4 };

static frt_status read_dtype(TextReader *r, Slice s, frt_dtype *dtype) {
    for (int i = 0; i < FRT_DTYPE_COUNT; i++) {
        if (slice_is(s, frt_dtype_name((frt_dtype)i))) {
            *dtype = (frt_dtype)i;
            return FRT_OK;
        }
    }
    return text_fail(r, "dtype `%.*s` is not known", (int)(s.n < 40 ? s.n : 40), s.bytes);
}

frt_status text_extents(TextReader *r, Tensor *tensor, uint32_t first, uint32_t end) {
    if (end - first > FRT_MAX_RANK) {
        return text_fail(r, "tensor `%s` has rank %u, more than %d", tensor->name, end - first,
                         FRT_MAX_RANK);
    }
    for (uint32_t i = first; i < end; i++) {
        Expr *extent = &tensor->extents[tensor->rank++];
        frt_status status = text_expr(r, r->fields[i], "extent", extent);
        int64_t value;
        if (status) {
            return status;
        }
        if (expr_is_const(r->m->tokens, *extent, &value) && value < 0) {
            return text_fail(r, "tensor `%s` has a negative extent", tensor->name);
        }
    }
    return FRT_OK;
}

frt_status text_tensor_head(TextReader *r, Tensor *tensor) {
    int64_t ordinal;
    frt_status status = text_name(r, r->fields[1], "tensor", &tensor->name);
    if (!status) {
        tensor->hash = name_hash(tensor->name);
        status = text_int(r, r->fields[2], 0, "device ordinal", &ordinal);
    }
    return status ? status : read_dtype(r, r->fields[3], &tensor->dtype);
}

frt_status text_declared(TextReader *r, const Graph *graph, Slice s, const char *what,
                         const char **name, int32_t *index) {
    char *mark = r->strings_end;
    frt_status status = text_name(r, s, what, name);
    r->strings_end = mark;
    *index = status ? -1 : graph_find_tensor(r->m, graph, *name);
    return status;
}

frt_status text_place(TextReader *r, const Graph *graph, Tensor *tensor) {
    Slice offset = r->fields[PLACE];
    Slice head = {NULL, 0};
    const char *name = NULL;
    int32_t index;
    slice_cut(&offset, ':', &head);
    if (!offset.bytes) {
        return text_expr(r, head, "offset", &tensor->offset);
    }
    frt_status status = text_declared(r, graph, head, "tensor", &name, &index);
    if (status) {
        return status;
    }
    const Tensor *whole = index < 0 ? NULL : &r->m->tensors[graph->first_tensor + (uint32_t)index];
    if (!whole || whole->whole) {
        return text_fail(r, "temp `%s` lies in `%s`, which is no tensor by itself", tensor->name,
                         name);
    }
    tensor->whole = (uint32_t)index + 1;
    return text_expr(r, offset, "offset", &tensor->offset);
}

frt_status text_tensor(TextReader *r, const Graph *graph, Slice s, const char *what,
                       int32_t *index) {
    const char *name;
    frt_status status = text_declared(r, graph, s, what, &name, index);
    if (!status && *index < 0) {
        return text_fail(r, "%s `%s` is no tensor of graph `%s`", what, name, graph->name);
    }
    return status;
}

frt_status text_in_place(TextReader *r, const Graph *graph) {
    Tensor *tensors = &r->m->tensors[graph->first_tensor];
    int32_t to, from;
    frt_status status = text_tensor(r, graph, r->fields[1], "output", &to);
    if (!status) {
        status = text_tensor(r, graph, r->fields[2], "input", &from);
    }
    if (status) {
        return status;
    }
    if (tensors[to].role != FRT_OUTPUT || tensors[from].role != FRT_INPUT ||
        tensors[to].dtype != tensors[from].dtype || tensors[to].rank != tensors[from].rank ||
        tensors[to].in_place) {
        return text_fail(r, "`%s` cannot be an output in place of an input `%s`", tensors[to].name,
                         tensors[from].name);
    }
    tensors[to].in_place = (uint32_t)from + 1;
    return FRT_OK;
}
