/* Fused against unfused against the interpreter; see pair.h. */
#include "lib/pair.h"

#include "verify/verify_fast.h"

#include <string.h>

static bool compile_one(Compiled *compiled, const char *source, const Target *target,
                        CompileMode mode, const char *what, Text *report) {
    if (compile_source(compiled, source, target, mode)) return true;
    text_printf(report, "cannot compile %s: %s", what, compiled->messages);
    return false;
}

static bool compile_both(Pair *pair, const char *source, const Target *target,
                         const Target *against, CompileMode unfused, Text *report) {
    *pair = (Pair){.target = target};
    bool is_good = compile_one(&pair->fused, source, target, COMPILE_FUSED, "fused", report);
    return compile_one(&pair->exposed, source, against, unfused, "unfused", report) && is_good;
}

bool pair_compile_against(Pair *pair, const char *source, const Target *target,
                          const Target *against, Text *report) {
    return compile_both(pair, source, target, against, COMPILE_EXPOSED, report);
}

bool pair_compile(Pair *pair, const char *source, const Target *target, Text *report) {
    return pair_compile_against(pair, source, target, target, report);
}

bool pair_compile_plain(Pair *pair, const char *source, const Target *target, const Target *against,
                        Text *report) {
    return compile_both(pair, source, target, against, COMPILE_UNFUSED, report);
}

static void close_rigs(Pair *pair) {
    if (pair->fused_rig.arena) rig_close(&pair->fused_rig);
    if (pair->exposed_rig.arena) rig_close(&pair->exposed_rig);
}

void pair_free(Pair *pair) {
    close_rigs(pair);
    compile_free(&pair->fused);
    compile_free(&pair->exposed);
}

static bool complain(Text *report, const char *what, const Rig *rig) {
    text_printf(report, "%s run: %s\n", what, rig->error);
    return false;
}

bool pair_open(Pair *pair, uint32_t graph, const RigOptions *options, Text *report) {
    close_rigs(pair);
    pair->graph = graph;
    const char *name = pair_graph(pair)->name;
    if (!rig_open(&pair->fused_rig, pair->fused.bytes, pair->fused.n_bytes, name, options))
        return complain(report, "fused", &pair->fused_rig);
    if (!rig_open(&pair->exposed_rig, pair->exposed.bytes, pair->exposed.n_bytes, name, options))
        return complain(report, "unfused", &pair->exposed_rig);
    return true;
}

bool pair_place(Pair *pair, const int64_t *symbol_values, Text *report) {
    const DimTab *dims = pair->exposed.module->dims;
    memcpy(pair->symbol_values, symbol_values, dim_n_symbols(dims) * sizeof *symbol_values);
    if (!rig_place(&pair->fused_rig, dims, symbol_values))
        return complain(report, "fused", &pair->fused_rig);
    if (!rig_place(&pair->exposed_rig, dims, symbol_values))
        return complain(report, "unfused", &pair->exposed_rig);
    return true;
}

static bool fill_list(Pair *pair, const GraphInput *list, uint32_t n, const PairData *data,
                      Rng *rng, Arena *arena, Text *report) {
    for (uint32_t i = 0; i < n; i++) {
        const char *error = NULL;
        Tensor tensor;
        if (!interp_shape(pair_graph(pair), list[i].node, pair->symbol_values, &tensor, arena,
                          &error) ||
            !tensor_new(arena, tensor.dtype, tensor.rank, tensor.dims, &tensor)) {
            text_printf(report, "input `%s`: %s\n", list[i].name, error ? error : "too large");
            return false;
        }
        if (data->special)
            data->special(data->user, pair_graph(pair), &list[i], rng, &tensor);
        else
            random_fill(rng, data->fill, &tensor);
        size_t n_wanted = (size_t)tensor_n_elems(&tensor) * dtype_bytes(tensor.dtype);
        Rig *rigs[] = {&pair->fused_rig, &pair->exposed_rig};
        for (int r = 0; r < 2; r++) {
            size_t n_bytes;
            uint8_t *bytes = rig_contents(rigs[r], list[i].name, &n_bytes);
            if (bytes && n_bytes == n_wanted)
                tensor_store(&tensor, bytes);
            else if (bytes || r == 1) {
                text_printf(report, "input `%s` is lost or of another size\n", list[i].name);
                return false;
            }
        }
    }
    return true;
}

static const char *node_name(const Graph *graph, NodeId node) {
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        if (graph->outputs.data[i].node == node) return graph->outputs.data[i].name;
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        if (graph->inputs.data[i].node == node) return graph->inputs.data[i].name;
    for (uint32_t i = 0; i < graph->params.n; i++)
        if (graph->params.data[i].node == node) return graph->params.data[i].name;
    return NULL;
}

static FetchStatus fetch(void *user, NodeId node, const Tensor *type, const uint8_t **bytes) {
    const Pair *pair = user;
    const Graph *graph = pair_graph(pair);
    const char *name = node_name(graph, node);
    size_t n_bytes;
    if (!name) return FETCH_ABSENT;
    *bytes = rig_result(&pair->exposed_rig, name, &n_bytes);
    if (!*bytes) return FETCH_FAILED;
    /* The program keeps params outside the block, unless they are outputs. */
    bool is_param = graph_node(graph, node)->op == OP_PARAM;
    const uint8_t *given = rig_contents((Rig *)&pair->exposed_rig, name, &n_bytes);
    if (is_param && given) *bytes = given;
    return n_bytes == (size_t)tensor_n_elems(type) * dtype_bytes(type->dtype) ? FETCH_OK
                                                                              : FETCH_FAILED;
}

static bool compare_output(const Pair *pair, const GraphOutput *output, Arena *arena,
                           Text *report) {
    const Graph *graph = pair_graph(pair);
    size_t n_fused = 0, n_exposed = 0;
    const uint8_t *fused = rig_result(&pair->fused_rig, output->name, &n_fused);
    const uint8_t *exposed = rig_result(&pair->exposed_rig, output->name, &n_exposed);
    const char *error = NULL;
    Tensor a, b;
    if (!interp_shape(graph, output->node, pair->symbol_values, &a, arena, &error) || !fused ||
        !exposed || n_fused != n_exposed ||
        n_fused != (size_t)tensor_n_elems(&a) * dtype_bytes(a.dtype) ||
        !tensor_new(arena, a.dtype, a.rank, a.dims, &a) ||
        !tensor_new(arena, a.dtype, a.rank, a.dims, &b)) {
        text_printf(report, "output `%s` is lost or of another size\n", output->name);
        return false;
    }
    tensor_load(&a, exposed);
    tensor_load(&b, fused);
    Comparison comparison;
    if (compare_within(&a, &b, NULL, &comparison)) return true;
    const Node *node = graph_node(graph, output->node);
    text_printf(report, "fused differs from unfused: output `%s`, node %u `%s` %s: ", output->name,
                output->node, op_info(node->op)->name, tensor_type_str(&a, arena));
    compare_print(&comparison, &a, report);
    text_puts(report, "\n");
    return false;
}

/* Compares the fused run's outputs with the interpreter within the bounds of a fast graph. */
static bool compare_fast(const Pair *pair, PairCounts *counts, Arena *arena, Text *report) {
    const Plan *plan = pair->fused.driver.plans[pair->graph];
    const Graph *graph = plan->graph;
    const uint8_t **bytes = arena_array(arena, const uint8_t *, graph->nodes.n);
    const GraphInput *lists[] = {graph->inputs.data, graph->params.data};
    uint32_t counts_of[] = {graph->inputs.n, graph->params.n};
    size_t n_bytes;
    for (int l = 0; l < 2; l++)
        for (uint32_t i = 0; i < counts_of[l]; i++)
            bytes[lists[l][i].node] =
                rig_contents((Rig *)&pair->exposed_rig, lists[l][i].name, &n_bytes);
    FastReference reference;
    const char *error = NULL;
    bool has_loops = graph->cut_from != NULL; /* a plan is of one subgraph */
    if (has_loops || !verify_fast_reference(plan->graph, pair->symbol_values, bytes, arena,
                                            &reference, &error)) {
        counts->n_skipped++;
        return true;
    }
    bool is_right = true;
    VerifyCounts judged = {0};
    for (uint32_t i = 0; i < graph->outputs.n; i++) {
        const GraphOutput *output = &graph->outputs.data[i];
        const uint8_t *fused = rig_result(&pair->fused_rig, output->name, &n_bytes);
        is_right =
            verify_fast_value(&reference, plan, output->node, fused, arena, &judged, report) &&
            is_right;
    }
    counts->n_fast += (uint64_t)judged.n_elems;
    counts->n_fast_any += (uint64_t)judged.n_any;
    return is_right;
}

static bool run_both(Pair *pair, Text *report) {
    if (!rig_run(&pair->fused_rig, 0xFF)) return complain(report, "fused", &pair->fused_rig);
    if (!rig_run(&pair->exposed_rig, 0xA5)) return complain(report, "unfused", &pair->exposed_rig);
    return true;
}

/* Whether the graph computes anything. */
static bool has_work(const Graph *graph) {
    for (NodeId id = 0; id < graph->nodes.n; id++)
        if (op_info(graph_node(graph, id)->op)->cls != CLASS_SOURCE) return true;
    return false;
}

static bool judge(Pair *pair, const PairData *data, PairCounts *counts, Arena *arena,
                  Text *report) {
    const Graph *fused = pair->fused.module->graphs.data[pair->graph];
    bool is_right = true;
    /* The exposed outputs come after the graph's own. */
    for (uint32_t i = 0; i < fused->outputs.n && !fused->is_fast; i++)
        is_right =
            compare_output(pair, &pair_graph(pair)->outputs.data[i], arena, report) && is_right;
    if (fused->is_fast && !data->without_reference)
        is_right = compare_fast(pair, counts, arena, report);
    counts->n_runs++;
    FRT_INFO(frt_init_info, init);
    counts->n_prepared +=
        frt_program_get_init(pair->fused_rig.program, &init) == FRT_OK && init.n_steps > 0;
    if (data->without_reference || !has_work(pair_graph(pair))) return is_right;
    CheckCounts checked = {0};
    is_right =
        check_graph(pair_graph(pair), pair->symbol_values, fetch, pair, arena, &checked, report) &&
        is_right;
    counts->n_nodes += checked.n_checked;
    counts->n_skipped += checked.n_skipped;
    counts->n_elems += (uint64_t)checked.n_elems;
    counts->n_finite += (uint64_t)checked.n_finite;
    counts->n_any += (uint64_t)checked.n_any;
    return is_right;
}

bool pair_run(Pair *pair, const PairData *data, PairCounts *counts, Text *report) {
    Arena *arena = arena_new(NULL);
    Rng rng = rng_new(data->seed);
    const Graph *graph = pair_graph(pair);
    bool is_right =
        fill_list(pair, graph->inputs.data, graph->inputs.n, data, &rng, arena, report) &&
        fill_list(pair, graph->params.data, graph->params.n, data, &rng, arena, report) &&
        run_both(pair, report) && judge(pair, data, counts, arena, report);
    arena_free(arena);
    return is_right;
}

bool pair_is_right(const char *source, const Target *target, const RigOptions *options,
                   const int64_t *extents, uint64_t seed, Text *report) {
    Pair pair;
    PairCounts counts = {0};
    PairData data = {.fill = FILL_UNIFORM, .seed = seed};
    bool is_right = pair_compile(&pair, source, target, report) &&
                    pair_open(&pair, 0, options, report) && pair_place(&pair, extents, report) &&
                    pair_run(&pair, &data, &counts, report);
    pair_free(&pair);
    return is_right;
}
