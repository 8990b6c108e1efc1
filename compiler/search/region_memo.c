/* See region_memo.h. A region's key is everything on which plans and prices depend, as words. Names
 * and spans are left out, and blocks are numbered in the order in which the region meets them. */
#include "search/region_memo.h"

#include "base/keytab.h"

#include <string.h>

struct RegionMemo {
    Arena *arena;
    KeyTab keys;
    Vec(RegionResult *) results; /* by key */
};

RegionMemo *region_memo_new(Arena *arena) {
    RegionMemo *memo = arena_array(arena, RegionMemo, 1);
    memo->arena = arena;
    return memo;
}

typedef struct KeyWriter {
    Arena *arena;
    VecU32 *key;
    uint32_t *block_of; /* per block of the graph: its number in the region; 0: not met */
    uint32_t n_blocks;
} KeyWriter;

static void put(KeyWriter *w, uint32_t word) {
    vec_push(w->arena, w->key, word);
}

static void put_bytes(KeyWriter *w, const void *data, size_t n_bytes) {
    for (size_t at = 0; at < n_bytes; at += sizeof(uint32_t)) {
        uint32_t word = 0;
        size_t left = n_bytes - at;
        memcpy(&word, (const char *)data + at, left < sizeof word ? left : sizeof word);
        put(w, word);
    }
}

static void put_attrs(KeyWriter *w, const Attrs *attrs) {
    const AxisAttrs *per_axis = attrs->per_axis;
    put_bytes(w, &attrs->number, sizeof attrs->number);
    put_bytes(w, &attrs->whole, sizeof attrs->whole);
    put(w, attrs->precision);
    put_bytes(w, &attrs->segment_elems, sizeof attrs->segment_elems);
    put(w, (uint32_t)attrs->axis);
    put(w, attrs->axes);
    put(w, attrs->keep);
    put_bytes(w, per_axis->perm, sizeof per_axis->perm);
    put_bytes(w, per_axis->begin, sizeof per_axis->begin);
    put_bytes(w, per_axis->step, sizeof per_axis->step);
    put_bytes(w, per_axis->dilation, sizeof per_axis->dilation);
}

static void put_block(KeyWriter *w, const Graph *graph, NodeId id) {
    uint32_t block = graph->kernel_of.n ? graph->kernel_of.data[id] : 0;
    if (block && !w->block_of[block - 1]) w->block_of[block - 1] = ++w->n_blocks;
    put(w, block ? w->block_of[block - 1] : 0);
    if (block) put(w, graph->fixed_kernels.data[block - 1].kind);
}

static void put_node(KeyWriter *w, const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    put(w, node->op);
    put(w, node->dtype);
    put(w, node->shape.rank);
    put_bytes(w, node->shape.dims, node->shape.rank * sizeof *node->shape.dims);
    put(w, node->n_args);
    put_bytes(w, node->args, node->n_args * sizeof *node->args);
    put_attrs(w, &node->attrs);
    put_block(w, graph, id);
}

static void put_graph(KeyWriter *w, const Graph *graph) {
    put(w, graph->is_fast);
    put(w, graph->inputs.n);
    for (uint32_t i = 0; i < graph->inputs.n; i++) put(w, graph->inputs.data[i].node);
    put(w, graph->params.n);
    for (uint32_t i = 0; i < graph->params.n; i++) put(w, graph->params.data[i].node);
    put(w, graph->outputs.n);
    for (uint32_t i = 0; i < graph->outputs.n; i++) {
        put(w, graph->outputs.data[i].node);
        put(w, graph->outputs.data[i].copied_by);
    }
    put(w, graph->nodes.n);
    for (NodeId id = 0; id < graph->nodes.n; id++) put_node(w, graph, id);
}

/* The cost points depend on the dims, which only gain symbols. */
static VecU32 key_of(const Searcher *c, const Region *region, const Decisions *decisions) {
    const Graph *graph = region->subgraph.graph;
    VecU32 key = {0};
    KeyWriter w = {.arena = c->scratch, .key = &key};
    w.block_of = arena_array(c->scratch, uint32_t, graph->fixed_kernels.n);
    put(&w, dim_n_symbols(c->graph->dims));
    put(&w, region->has_gemm_slices);
    put(&w, decisions->by_columns);
    put_graph(&w, graph);
    uint32_t n = graph->nodes.n;
    put_bytes(&w, region->flags.bits, n * sizeof *region->flags.bits);
    put_bytes(&w, decisions->directives.bits, n * sizeof *decisions->directives.bits);
    put_bytes(&w, decisions->side, n * sizeof *decisions->side);
    put_bytes(&w, decisions->inner, n * sizeof *decisions->inner);
    return key;
}

RegionResult *region_memo_of(const Searcher *c, const Region *region, const Decisions *decisions) {
    RegionMemo *memo = c->memo;
    VecU32 key = key_of(c, region, decisions);
    uint32_t id = keytab_intern(memo->arena, &memo->keys, &key);
    if (id > memo->results.n)
        vec_push(memo->arena, &memo->results, arena_array(memo->arena, RegionResult, 1));
    return memo->results.data[id - 1];
}

void region_memo_set(const Searcher *c, RegionResult *result, bool improves,
                     const Decisions *decisions) {
    result->improves = improves;
    result->decisions = decisions_copy(c->memo->arena, decisions);
}
