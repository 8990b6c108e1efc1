/* The random program generator: its programs are valid, deterministic, sane and cover the language;
 * the reducer finds the conflict; the checker sees a single wrong element. */
#include "front/sema.h"
#include "interp/interp.h"
#include "lib/check.h"
#include "ir/loop.h"
#include "random/coverage.h"
#include "random/random_data.h"
#include "random/random_graph.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { N_GRAPHS = 1500 };

/* The program's graph, or NULL with the diagnostics in `*why`. */
static Graph *parse(Arena *arena, const char *source, const char **why) {
    Diags diags = {.arena = arena};
    Text text = {.arena = arena};
    Module *module = front_parse(arena, strtab_new(arena), &diags,
                                 source_new(arena, "random.g", source, strlen(source)));
    if (!module) diag_print(&diags, &text);
    *why = text_str(&text);
    return module ? module->graphs.data[0] : NULL;
}

static const char *source_of(Arena *arena, uint64_t seed) {
    RandomGraphOptions options = random_graph_defaults();
    options.repeats = true;
    return random_graph_source(arena, seed, &options);
}

static Graph *parse_seed(Arena *arena, uint64_t seed) {
    const char *why, *source = source_of(arena, seed);
    Graph *graph = parse(arena, source, &why);
    cr_assert_not_null(graph, "seed %llu: %s%s", (unsigned long long)seed, why, source);
    return graph;
}

/* Random contents for the graph's inputs or params. */
static Tensor *random_tensors(const Graph *graph, const GraphInput *list, uint32_t n,
                              const int64_t *symbol_values, Rng *rng, Arena *arena) {
    Tensor *tensors = arena_array(arena, Tensor, n);
    for (uint32_t i = 0; i < n; i++) {
        const char *error = NULL;
        Tensor *t = &tensors[i];
        cr_assert(interp_shape(graph, list[i].node, symbol_values, t, arena, &error), "%s", error);
        cr_assert(tensor_new(arena, t->dtype, t->rank, t->dims, t));
        random_fill(rng, FILL_UNIFORM, t);
    }
    return tensors;
}

static Tensor *interpret(const Graph *graph, uint64_t seed, int64_t *symbol_values, Arena *arena) {
    Rng rng = rng_new(seed);
    random_symbol_values(&rng, graph->dims, 12, symbol_values);
    Tensor *inputs =
        random_tensors(graph, graph->inputs.data, graph->inputs.n, symbol_values, &rng, arena);
    Tensor *params =
        random_tensors(graph, graph->params.data, graph->params.n, symbol_values, &rng, arena);
    Tensor *values = arena_array(arena, Tensor, graph->nodes.n);
    const char *error = NULL;
    cr_assert(interp_graph(graph, symbol_values, inputs, params, values, arena, &error),
              "seed %llu: %s", (unsigned long long)seed, error);
    return values;
}

Test(random_graph, programs_are_valid_and_deterministic, .timeout = 60) {
    for (uint64_t seed = 0; seed < N_GRAPHS; seed++) {
        Arena *arena = arena_new(NULL);
        const char *again = source_of(arena, seed);
        cr_assert_str_eq(source_of(arena, seed), again);
        Graph *graph = parse_seed(arena, seed);
        const char *wrong = graph_verify(graph, arena);
        cr_assert_null(wrong, "seed %llu: %s", (unsigned long long)seed, wrong);
        cr_expect_geq(graph->outputs.n, 1u);
        arena_free(arena);
    }
}

Test(random_graph, loops_of_every_kind_are_drawn, .timeout = 60) {
    static const char *const kinds[] = {"{ return tanh(h) +",     "{ return exp(h - max(h,",
                                        "in 2:-1:-1 with h = ",   "{ return concat([h, ",
                                        "{ return loop k in 0:2", "{ return tanh(h * 0.5 +",
                                        "- 1:-1:-1 with h = ",    "{ return cos("};
    uint32_t n[sizeof kinds / sizeof *kinds] = {0};
    Arena *arena = arena_new(NULL);
    for (uint64_t seed = 0; seed < N_GRAPHS; seed++) {
        const char *source = source_of(arena, seed);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            n[i] += strstr(source, kinds[i]) != NULL;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        cr_expect_geq(n[i], 5u, "%u programs with `%s`", n[i], kinds[i]);
    arena_free(arena);
}

Test(random_graph, fifteen_hundred_programs_leave_no_gap, .timeout = 60) {
    Coverage coverage = {0};
    Arena *texts = arena_new(NULL);
    for (uint64_t seed = 0; seed < N_GRAPHS; seed++) {
        Arena *arena = arena_new(NULL);
        coverage_add(&coverage, parse_seed(arena, seed));
        arena_free(arena);
    }
    Text gaps = {.arena = texts};
    cr_expect_eq(coverage_n_zero_cells(&coverage, &gaps), 0u, "%s", text_str(&gaps));
    Coverage none = {0};
    cr_expect_gt(coverage_n_zero_cells(&none, NULL), 500u, "nothing covers nothing");
    arena_free(texts);
}

static bool is_matmul(const Graph *graph, NodeId id) {
    return graph_node(graph, id)->op == OP_MATMUL;
}

/* How many of the graph's matmuls have an operand in common with one that they are made of, and
 * how many values that it takes the exponentials of are a matmul's operand too. */
static void count_shared(const Graph *graph, uint32_t *n_matmuls, uint32_t *n_rows) {
    for (NodeId id = 1; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        for (uint32_t k = 0; k < 2 && is_matmul(graph, id); k++) {
            const Node *made = graph_node(graph, node->args[k]);
            *n_matmuls += made->op == OP_MATMUL && (made->args[0] == node->args[1 - k] ||
                                                    made->args[1] == node->args[1 - k]);
        }
        if (node->op != OP_EXP || graph_node(graph, node->args[0])->op != OP_SUB) continue;
        NodeId rows = graph_node(graph, node->args[0])->args[0];
        for (NodeId user = 1; user < graph->nodes.n; user++)
            *n_rows += is_matmul(graph, user) && graph_node(graph, user)->args[0] == rows;
    }
}

Test(random_graph, matmuls_share_operands_and_rows, .timeout = 60) {
    uint32_t n_matmuls = 0, n_rows = 0;
    for (uint64_t seed = 0; seed < N_GRAPHS; seed++) {
        Arena *arena = arena_new(NULL);
        count_shared(parse_seed(arena, seed), &n_matmuls, &n_rows);
        arena_free(arena);
    }
    cr_expect_geq(n_matmuls, 10, "%u matmuls of matmuls", n_matmuls);
    cr_expect_geq(n_rows, 10, "%u rows beside matmuls", n_rows);
}

enum { N_CLASSES = CLASS_MATMUL + 1 };

/* Tensors without elements that ops read, or that sources make. */
typedef struct Empties {
    uint32_t always[N_CLASSES];    /* ops of such a tensor with an extent of 0 */
    uint32_t sometimes[N_CLASSES]; /* ops of a tensor that is one for some values of the dims */
    uint32_t slices;               /* slices that leave out all elements */
} Empties;

static bool is_empty(const Graph *graph, const Shape *shape) {
    for (uint32_t k = 0; k < shape->rank; k++)
        if (dim_equals_const(graph->dims, shape->dims[k], 0)) return true;
    return false;
}

static bool may_be_empty(const Graph *graph, const Shape *shape) {
    for (uint32_t k = 0; k < shape->rank; k++)
        if (dim_lo(graph->dims, shape->dims[k]) == 0) return true;
    return false;
}

static void count_empties(const Graph *graph, Empties *count) {
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        OpClass cls = op_info(node->op)->cls;
        for (uint32_t k = 0; k < node->n_args || k == 0; k++) {
            const Shape *of =
                node->n_args ? &graph_node(graph, node->args[k])->shape : &node->shape;
            count->always[cls] += is_empty(graph, of);
            count->sometimes[cls] += !is_empty(graph, of) && may_be_empty(graph, of);
            count->slices +=
                node->op == OP_SLICE && is_empty(graph, &node->shape) && !may_be_empty(graph, of);
        }
    }
}

Test(random_graph, ops_of_every_class_meet_tensors_without_elements, .timeout = 60) {
    Empties count = {0};
    for (uint64_t seed = 0; seed < N_GRAPHS; seed++) {
        Arena *arena = arena_new(NULL);
        count_empties(parse_seed(arena, seed), &count);
        arena_free(arena);
    }
    for (int cls = 0; cls < N_CLASSES; cls++) {
        if (cls == CLASS_LOOP || cls == CLASS_SCAN_BY)
            continue; /* few programs have one, or none */
        cr_expect_geq(count.always[cls], 5u, "class %d: %u", cls, count.always[cls]);
        cr_expect_geq(count.sometimes[cls], 5u, "class %d: %u", cls, count.sometimes[cls]);
    }
    cr_expect_geq(count.slices, 10u, "%u slices", count.slices);
}

Test(random_graph, coverage_of_two_halves_adds_up) {
    Coverage parts[2] = {0}, whole = {0}, sum = {0};
    Arena *texts = arena_new(NULL);
    Text wanted = {.arena = texts}, merged = {.arena = texts};
    for (uint64_t seed = 0; seed < 40; seed++) {
        Arena *arena = arena_new(NULL);
        const Graph *graph = parse_seed(arena, seed);
        coverage_add(&parts[seed >= 15], graph);
        coverage_add(&whole, graph);
        arena_free(arena);
    }
    for (int i = 0; i < 2; i++) {
        Text line = {.arena = texts};
        coverage_write(&parts[i], &line);
        cr_assert(coverage_merge(&sum, text_str(&line)), "%s", text_str(&line));
    }
    coverage_print(&whole, &wanted);
    coverage_print(&sum, &merged);
    cr_expect_str_eq(text_str(&merged), text_str(&wanted));
    cr_expect_eq(memcmp(&sum, &whole, sizeof sum), 0, "a count that no table shows");
    static const char *const bad[] = {"", "coverage", "coverage 3 1 2 3\n", "1 2 3\n"};
    for (int i = 0; i < 4; i++) {
        cr_expect_not(coverage_merge(&sum, bad[i]), "%s", bad[i]);
        cr_expect_eq(memcmp(&sum, &whole, sizeof sum), 0, "%s changed it", bad[i]);
    }
    Text line = {.arena = texts};
    coverage_write(&whole, &line);
    *strrchr(line.data, ' ') = '\0';
    cr_expect_not(coverage_merge(&sum, text_str(&line)), "a number is missing");
    arena_free(texts);
}

Test(random_graph, values_are_mostly_finite, .timeout = 120) {
    int64_t n_elems = 0, n_finite = 0, symbols[DIM_MAX_SYMBOLS];
    for (uint64_t seed = 0; seed < N_GRAPHS; seed++) {
        Arena *arena = arena_new(NULL);
        Graph *graph = parse_seed(arena, seed);
        Tensor *values = interpret(graph, seed, symbols, arena);
        for (uint32_t i = 0; i < graph->outputs.n; i++) {
            const Tensor *out = &values[graph->outputs.data[i].node];
            for (int64_t k = 0; k < tensor_n_elems(out); k++)
                n_finite += isfinite(out->data[k]) != 0;
            n_elems += tensor_n_elems(out);
        }
        arena_free(arena);
    }
    cr_expect_gt(n_elems, 100000);
    cr_expect_gt((double)n_finite, 0.98 * (double)n_elems);
}

Test(random_graph, options_leave_things_out) {
    RandomGraphOptions options = random_graph_defaults();
    options.without_matmul = options.without_params = options.without_symbols = true;
    for (uint64_t seed = 0; seed < 60; seed++) {
        Arena *arena = arena_new(NULL);
        const char *why, *source = random_graph_source(arena, seed, &options);
        Graph *graph = parse(arena, source, &why);
        cr_assert_not_null(graph, "%s", why);
        cr_expect_eq(graph->params.n, 0u);
        cr_expect_eq(dim_n_symbols(graph->dims), 0u);
        for (NodeId id = 0; id < graph->nodes.n; id++)
            cr_expect_neq(op_info(graph_node(graph, id)->op)->cls, CLASS_MATMUL);
        arena_free(arena);
    }
}

Test(random_graph, exposed_programs_output_every_computed_node) {
    for (uint64_t seed = 0; seed < 20; seed++) {
        Arena *arena = arena_new(NULL);
        Graph *graph = parse_seed(arena, seed);
        check_expose_nodes(graph, strtab_new(arena));
        const char *wrong = graph_verify(graph, arena);
        cr_assert_null(wrong, "%s", wrong);
        bool *is_output = arena_array(arena, bool, graph->nodes.n);
        for (uint32_t i = 0; i < graph->outputs.n; i++)
            is_output[graph->outputs.data[i].node] = true;
        const GraphLoops loops = loops_find(arena, graph);
        for (NodeId id = 0; id < graph->nodes.n; id++)
            cr_expect(is_output[id] || loops.of[id] || !graph_node(graph, id)->n_args);
        arena_free(arena);
    }
}

/* The reducer, looking for a program in which a transposed value meets an exponential. */

static bool has_culprits(void *user, const char *source) {
    (*(int *)user)++;
    Arena *arena = arena_new(NULL);
    const char *why;
    Graph *graph = parse(arena, source, &why);
    bool has_transpose = false, has_sum = false;
    for (NodeId id = 0; graph && id < graph->nodes.n; id++) {
        has_transpose = has_transpose || graph_node(graph, id)->op == OP_TRANSPOSE;
        has_sum = has_sum || graph_node(graph, id)->op == OP_SUM;
    }
    arena_free(arena);
    return has_transpose && has_sum;
}

Test(random_graph, the_reducer_leaves_the_ops_that_fail, .timeout = 60) {
    int n_reduced = 0, n_trials = 0;
    for (uint64_t seed = 40; n_reduced < 3 && seed < 140; seed++) {
        Arena *arena = arena_new(NULL);
        Program program = random_program(arena, seed, NULL);
        if (program.statements.n > 10 && has_culprits(&n_trials, program_print(&program))) {
            Program least = program_reduce(&program, has_culprits, &n_trials);
            cr_expect(has_culprits(&n_trials, program_print(&least)));
            cr_expect_leq(least.statements.n, 5u, "%s", program_print(&least));
            cr_expect_leq(least.outputs.n, 2u, "%s", program_print(&least));
            n_reduced++;
        }
        arena_free(arena);
    }
    cr_expect_eq(n_reduced, 3);
}

/* The checker, on a run that is the interpreter's own but for what is spoilt. */

typedef struct FakeRun {
    const Graph *graph;
    Tensor *values;
    Arena *arena;
    NodeId spoilt; /* its element `element` has a bit flipped that matters to zeros too */
    int64_t element;
    NodeId absent;
} FakeRun;

static FetchStatus fake_fetch(void *user, NodeId node, const Tensor *type, const uint8_t **bytes) {
    FakeRun *run = user;
    if (node == run->absent) return FETCH_ABSENT;
    uint32_t size = dtype_bytes(type->dtype);
    uint8_t *stored = arena_array(run->arena, uint8_t, (size_t)tensor_n_elems(type) * size + 1);
    tensor_store(&run->values[node], stored);
    if (node == run->spoilt)
        stored[run->element * size + size - 1] ^= type->dtype == DT_BOOL ? 1 : 0x40;
    *bytes = stored;
    return FETCH_OK;
}

Test(random_graph, the_checker_passes_the_interpreter_and_sees_one_wrong_element, .timeout = 120) {
    for (uint64_t seed = 0; seed < 40; seed++) {
        Arena *arena = arena_new(NULL);
        int64_t symbols[DIM_MAX_SYMBOLS];
        Graph *graph = parse_seed(arena, seed);
        FakeRun run = {graph,    interpret(graph, seed, symbols, arena), arena, NODE_NONE, 0,
                       NODE_NONE};
        CheckCounts counts;
        Text report = {.arena = arena};
        bool ok = check_graph(graph, symbols, fake_fetch, &run, arena, &counts, &report);
        cr_assert(ok, "seed %llu: %s", (unsigned long long)seed, text_str(&report));
        cr_expect(counts.n_skipped == 0 || graph_has_loops(graph));
        FakeRun other = run;
        cr_expect(check_same_outputs(graph, symbols, fake_fetch, &run, &other, arena, &report));
        NodeId out = graph->outputs.data[0].node;
        int64_t n = tensor_n_elems(&run.values[out]);
        OpClass cls = graph_class(graph, out);
        if (n == 0 || cls == CLASS_SOURCE || cls == CLASS_LOOP ||
            !isfinite(run.values[out].data[n - 1])) {
            arena_free(arena);
            continue;
        }
        other.spoilt = out;
        other.element = n - 1;
        ok = check_graph(graph, symbols, fake_fetch, &other, arena, &counts, &report);
        cr_expect(!ok, "seed %llu: a wrong element passed", (unsigned long long)seed);
        cr_expect_not(check_same_outputs(graph, symbols, fake_fetch, &run, &other, arena, &report));
        run.absent = out;
        cr_expect(check_graph(graph, symbols, fake_fetch, &run, arena, &counts, &report) ||
                  counts.n_checked == 0);
        cr_expect_geq(counts.n_skipped, 1u, "seed %llu", (unsigned long long)seed);
        arena_free(arena);
    }
}
