/* Nodes, and the lists of a kernel, field by field. See words.h. */
#include "plan/words.h"

#include <string.h>

void words_put_long(Words *w, uint64_t word) {
    words_put(w, (uint32_t)word);
    words_put(w, (uint32_t)(word >> 32));
}

void words_put_double(Words *w, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    words_put_long(w, bits);
}

void words_put_text(Words *w, const char *text, size_t n_bytes) {
    words_put(w, (uint32_t)n_bytes);
    words_put_bytes(w, text, n_bytes);
}

static void put_all(Words *w, const void *words, size_t n) {
    VecU32 *key = w->key;
    while (key->capacity - key->n < n)
        key->data =
            vec_grown(w->arena, key->data, key->capacity, &key->capacity, sizeof *key->data);
    if (n) memcpy(key->data + key->n, words, n * sizeof *key->data);
    key->n += (uint32_t)n;
}

void words_put_bytes(Words *w, const void *data, size_t n_bytes) {
    size_t n_whole = n_bytes / sizeof(uint32_t), n_left = n_bytes % sizeof(uint32_t);
    put_all(w, data, n_whole);
    if (!n_left) return;
    uint32_t word = 0;
    memcpy(&word, (const char *)data + n_bytes - n_left, n_left);
    words_put(w, word);
}

void words_put_shape(Words *w, const Shape *shape) {
    words_put(w, shape->rank);
    put_all(w, shape->dims, shape->rank);
}

static void put_quantize(Words *w, const QuantizeMap *map) {
    words_put_double(w, map->scale);
    words_put_double(w, map->least);
    words_put(w, (uint32_t)map->dtype << 1 | map->rounds);
}

/* Few nodes have attributes per axis. */
static void put_per_axis(Words *w, const AxisAttrs *of) {
    static const AxisAttrs none;
    bool has_some = memcmp(of, &none, sizeof none) != 0;
    words_put(w, has_some);
    if (has_some) words_put_bytes(w, of, sizeof *of);
}

void words_put_node(Words *w, const Node *node) {
    const Attrs *attrs = &node->attrs;
    words_put(w, node->op);
    words_put(w, node->dtype);
    words_put_shape(w, &node->shape);
    words_put_double(w, attrs->number);
    words_put_long(w, (uint64_t)attrs->whole);
    words_put(w, attrs->precision);
    words_put_long(w, (uint64_t)attrs->segment_elems);
    words_put(w, (uint32_t)attrs->axis);
    words_put(w, attrs->axes);
    words_put(w, attrs->keep);
    put_quantize(w, &attrs->quantize);
    words_put_long(w, (uintptr_t)attrs->function);
    put_per_axis(w, attrs->per_axis);
}

/* The index without its offset. */
static void put_terms(Words *w, IndexId id) {
    const IndexTab *tab = scalartab_indices(w->kernel->scalars);
    IndexExpr expr = index_expr(tab, id);
    words_put(w, expr.n_terms);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        words_put(w, expr.terms[i].coefficient);
        words_put(w, atom.kind);
        if (atom.kind == ATOM_VALUE)
            words_put_scalar_id(w, atom.value);
        else
            words_put(w, atom.axis);
        words_put(w, atom.divisor);
        if (atom.kind == ATOM_DIV || atom.kind == ATOM_MOD) words_put_index(w, atom.operand);
    }
}

void words_put_index(Words *w, IndexId id) {
    words_put(w, index_expr(scalartab_indices(w->kernel->scalars), id).offset);
    put_terms(w, id);
}

void words_put_guard(Words *w, GuardId id) {
    for (GuardId g = id; g; g = guard_get(w->kernel->scalars, g).next) {
        Guard guard = guard_get(w->kernel->scalars, g);
        words_put(w, 1);
        words_put(w, guard.lo);
        words_put(w, guard.hi);
        words_put_index(w, guard.index);
    }
    words_put(w, 0);
}

static void put_place(Words *w, IndexId id) {
    DimId offset = index_expr(scalartab_indices(w->kernel->scalars), id).offset;
    words_put(w, offset == w->from ? DIM_NONE : offset);
    put_terms(w, id);
}

void words_put_scalar(Words *w, const Scalar *s) {
    words_put(w, (uint32_t)s->kind | (uint32_t)s->dtype << 8);
    words_put(w, s->prim);
    for (uint32_t i = 0; i < 3; i++) words_put_scalar_id(w, s->args[i]);
    words_put_double(w, s->number);
    words_put_long(w, (uint64_t)s->whole);
    words_put(w, s->kind == SCALAR_LOAD ? kernel_find_arg(w->kernel, s->buffer) : 0);
    words_put(w, s->slot);
    words_put(w, s->index != 0);
    if (s->index) put_place(w, s->index);
    words_put_guard(w, s->guard);
}

void words_put_stores(Words *w, const Store *stores, uint32_t n) {
    words_put(w, n);
    for (uint32_t i = 0; i < n; i++) {
        words_put(w, kernel_find_arg(w->kernel, stores[i].buffer));
        words_put_scalar_id(w, stores[i].value);
        words_put_index(w, stores[i].address);
        words_put_guard(w, stores[i].guard);
    }
}

void words_put_reduces(Words *w) {
    words_put(w, w->kernel->reduces.n);
    for (uint32_t i = 0; i < w->kernel->reduces.n; i++) {
        const Reduce *r = &w->kernel->reduces.data[i];
        words_put(w, r->combine);
        words_put(w, r->power);
        words_put(w, r->row);
        put_quantize(w, &r->quantize);
        words_put(w, r->is_arg);
        words_put(w, r->acc);
        words_put_double(w, r->identity);
        words_put_scalar_id(w, r->value);
        words_put_scalar_id(w, r->rhs);
        words_put_scalar_id(w, r->arg_index);
        words_put_scalar_id(w, r->factor);
        words_put(w, r->divisor);
        words_put(w, r->result);
    }
}

void words_put_stages(Words *w) {
    const Kernel *kernel = w->kernel;
    words_put(w, kernel->stages.n);
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const Stage *stage = &kernel->stages.data[i];
        words_put(w, stage->reduces.n);
        for (uint32_t r = 0; r < stage->reduces.n; r++) words_put(w, stage->reduces.data[r]);
        words_put_stores(w, stage->stores.data, stage->stores.n);
    }
    words_put_stores(w, kernel->row_stores.data, kernel->row_stores.n);
}

void words_put_axes(Words *w, const IndexTab *indices) {
    const Kernel *kernel = w->kernel;
    words_put(w, kernel->form);
    words_put(w, kernel->n_parallel);
    words_put(w, kernel->first_reduced);
    words_put(w, kernel->n_reduced);
    words_put(w, kernel->segment_axis);
    words_put(w, kernel->panel_columns);
    words_put_long(w, kernel->symbols);
    words_put(w, index_n_axes(indices));
    for (uint32_t k = 0; k < index_n_axes(indices); k++)
        words_put(w, index_axis_extent(indices, k));
}

void words_put_predicate(Words *w, const Predicate *predicate) {
    words_put(w, predicate->n);
    for (uint32_t i = 0; i < predicate->n; i++) {
        const PredicateTerm *term = &predicate->terms[i];
        words_put(w, term->kind);
        words_put(w, term->dim);
        switch (term->kind) {
        case TERM_ALIGNED:
            words_put_long(w, (uint64_t)term->of);
            words_put_long(w, term->args);
            break;
        case TERM_LEVEL:
            words_put_text(w, term->level, strlen(term->level));
            break;
        case TERM_MULTIPLE:
            words_put_long(w, (uint64_t)term->of);
            break;
        case TERM_RANGE:
            words_put_long(w, (uint64_t)term->least);
            words_put_long(w, (uint64_t)term->most);
            break;
        }
    }
}

void words_put_map(Words *w, const TensorMap *map) {
    words_put(w, map->arg);
    words_put(w, map->swizzle_bytes);
    words_put(w, map->rank);
    for (uint32_t k = 0; k < map->rank; k++) {
        words_put(w, map->axes[k].axis);
        words_put(w, map->axes[k].stride);
        words_put(w, map->axes[k].box);
    }
}

void words_put_row_cache(Words *w, const Variant *variant) {
    words_put(w, variant->row_cache.n);
    for (uint32_t i = 0; i < variant->row_cache.n; i++) {
        words_put_scalar_id(w, variant->row_cache.data[i].value);
        words_put(w, variant->row_cache.data[i].stage);
        words_put(w, variant->row_cache.data[i].slot);
    }
}
