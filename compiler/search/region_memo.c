/* See region_memo.h. A region's key is everything on which plans and prices depend, as words. Names
 * and spans are left out, and blocks are numbered in the order in which the region meets them. */
#include "search/region_memo.h"

#include "base/keytab.h"
#include "plan/words.h"

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
    Words words;
    uint32_t *block_of; /* per block of the graph: its number in the region; 0: not met */
    uint32_t n_blocks;
} KeyWriter;

static void put(KeyWriter *w, uint32_t word) {
    words_put(&w->words, word);
}

static void put_bytes(KeyWriter *w, const void *data, size_t n_bytes) {
    words_put_bytes(&w->words, data, n_bytes);
}

static void put_block(KeyWriter *w, const Graph *graph, NodeId id) {
    uint32_t block = graph->kernel_of.n ? graph->kernel_of.data[id] : 0;
    if (block && !w->block_of[block - 1]) w->block_of[block - 1] = ++w->n_blocks;
    put(w, block ? w->block_of[block - 1] : 0);
    if (block) put(w, graph->fixed_kernels.data[block - 1].kind);
}

static void put_node(KeyWriter *w, const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    words_put_node(&w->words, node);
    put(w, node->n_args);
    put_bytes(w, node->args, node->n_args * sizeof *node->args);
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
    KeyWriter w = {.words = {.arena = c->scratch, .key = &key}};
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

bool region_memo_count(const Searcher *c, RegionResult *result) {
    const Planning *p = c->planning;
    if (!result->work || !p->work || !p->grouped) return true;
    uint64_t work = *p->work;
    GroupingWork grouped = *p->grouped;
    *p->work += result->work;
    p->grouped->n_scalars += result->grouped.n_scalars;
    p->grouped->n_steps += result->grouped.n_steps;
    result->work = 0;
    if (!search_is_spent(c)) return true;
    *p->work = work;
    *p->grouped = grouped;
    return false;
}

void region_memo_set(const Searcher *c, RegionResult *result, bool improves,
                     const Decisions *decisions) {
    result->improves = improves;
    result->decisions = decisions_copy(c->memo->arena, decisions);
}
