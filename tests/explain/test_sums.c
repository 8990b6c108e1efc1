/* Numbers of the ledger that must agree, on random programs and the examples: those of the text,
 * the JSON, the page and the artifact of one program, totals with their terms, and priced bytes
 * with the bytes that the runtime asks for. */
#include "lib/compiled.h"
#include "lib/text_file.h"
#include "random/random_graph.h"
#include "report/report.h"
#include "report/svg.h"

#include <criterion/criterion.h>
#include <fusert.h>
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

enum { N_SEEDS = 24 };

/* One graph of a compiled program, priced at chosen dims. */
typedef struct Priced {
    Compiled *compiled;
    const char *name; /* of the program */
    uint32_t graph;
    LedgerInput input;
    const Ledger *ledger;
    const char *text, *page;
    const char *json;
} Priced;

#define WHERE(p) (p)->name, (p)->compiled->driver.options.target->name

static const char *page_of(const Priced *p) {
    const PlanCost *before = p->input.unfused_cost, *after = p->input.cost;
    Arena *arena = p->compiled->driver.arena;
    ReportGraph graph = {
        {.plan = before->plan, .cost = before}, {.plan = after->plan, .cost = after}, p->ledger};
    Report report = {.source = "input.g",
                     .target = p->compiled->driver.options.target->name,
                     .compiler = "0",
                     .card = after->card,
                     .dims = after->dims,
                     .graphs = &graph,
                     .n_graphs = 1};
    Text text = {.arena = arena};
    report_print(arena, &report, &text);
    return text_str(&text);
}

static fusec_status price(Driver *driver, void *user) {
    Priced *p = user;
    Text text = {.arena = driver->arena}, json_text = text;
    JsonText json = {.out = &json_text};
    if (!driver_price(driver, p->graph, &p->input)) return FUSEC_INPUT;
    p->ledger = ledger_new(driver->arena, &p->input);
    explain_print(p->ledger, &text);
    explain_json(p->ledger, &json);
    p->text = text_str(&text);
    p->json = text_str(&json_text);
    p->page = page_of(p);
    return FUSEC_OK;
}

/* What is the same but for the digits that are shown. */
static bool is_near(double a, double b) {
    return fabs(a - b) <= 1e-4 * fmax(fabs(a), fabs(b)) + 1e-9;
}

static double member(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    cr_assert(json_is_number(value), "no %s", name);
    return json_number_value(value);
}

/* Over kernels that start: the others have no share in any total. */
static double sum_of(const json_t *list, const char *name) {
    double sum = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *kernel = json_array_get(list, i);
        if (json_is_true(json_object_get(kernel, "starts"))) sum += member(kernel, name);
    }
    return sum;
}

/* Kernels of a run that start. */
static double n_kernels(const json_t *kernels) {
    double n = 0;
    for (size_t i = 0; i < json_array_size(kernels); i++)
        n += json_is_true(json_object_get(json_array_get(kernels, i), "starts"));
    return n;
}

static void expect_in(const Priced *p, const char *page, const char *wanted) {
    cr_expect(strstr(page, wanted), "%s for %s: no `%s` in\n%s", WHERE(p), wanted, page);
}

/* Launches of a run that have a kernel that starts. */
static double n_started(const json_t *kernels) {
    double n = 0, last = -1;
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const json_t *kernel = json_array_get(kernels, i);
        if (!json_is_true(json_object_get(kernel, "starts")) || member(kernel, "launch") == last)
            continue;
        last = member(kernel, "launch");
        n++;
    }
    return n;
}

/* The op at an end of an edge; "" of an input. */
static const char *op_at(const json_t *edge, const char *end) {
    const char *op = json_string_value(json_object_get(json_object_get(edge, end), "op"));
    return op ? op : "";
}

/* The JSON's totals and their terms. */
static void check_json(const Priced *p, const json_t *root) {
    const json_t *totals = json_object_get(root, "totals"), *edges = json_object_get(root, "edges");
    const json_t *run = json_object_get(root, "kernels");
    const json_t *init = json_object_get(root, "init_kernels");
    double bytes = member(totals, "bytes"), least = member(totals, "least_bytes");
    /* The ops of an edge run in an init step or in each run. */
    double most = member(totals, "unfused_us") + member(totals, "init_us");
    /* What a run's first launch, which the two ops may be, takes longer than others. */
    double first_us = p->input.cost->card->launch_us - p->input.cost->card->next_us;
    cr_expect(is_near(sum_of(run, "us"), member(totals, "us")), "%s for %s: times", WHERE(p));
    cr_expect(is_near(sum_of(run, "read_bytes") + sum_of(run, "written_bytes"), bytes),
              "%s for %s: bytes", WHERE(p));
    cr_expect_eq(n_started(run), member(totals, "launches"), "%s for %s: launches", WHERE(p));
    cr_expect(is_near(sum_of(init, "us"), member(totals, "init_us")), "%s for %s: init", WHERE(p));
    cr_expect_leq(least, bytes * (1 + 1e-9), "%s for %s: below the floor", WHERE(p));
    cr_expect_leq(bytes, member(totals, "unfused_bytes") * (1 + 1e-9),
                  "%s for %s: more bytes than without fusion", WHERE(p));
    for (size_t i = 0; i < json_array_size(edges); i++) {
        const json_t *edge = json_array_get(edges, i);
        double apart = member(edge, "unfused_us");
        cr_expect_leq(apart, 2 * most * (1 + 1e-4), "%s for %s: edge %zu", WHERE(p), i);
        /* Segments compute the numbers of elements again at each step of a search, and a sort has
         * no vectors, so such an edge by itself may lose; the plan as a whole decides. */
        bool searches = strncmp(op_at(edge, "to"), "sorted_segment", 14) == 0;
        bool sorts = strncmp(op_at(edge, "from"), "argsort", 7) == 0;
        /* A reshape may join axes between which a transpose by itself goes in tiles; of few
         * elements that is less than waking cores. */
        bool joins = strcmp(op_at(edge, "from"), "transpose") == 0 &&
                     strcmp(op_at(edge, "to"), "reshape") == 0;
        double excess = joins ? 0.2 : 1e-4;
        double more_us = first_us + (joins ? p->input.cost->card->fill_us : 0);
        if (json_is_number(json_object_get(edge, "fused_us")) && !searches && !sorts)
            cr_expect_leq(member(edge, "fused_us"), apart * (1 + excess) + more_us,
                          "%s for %s: edge %zu", WHERE(p), i);
        /* What an init step makes is in no total of a run. */
        cr_expect_leq(member(edge, "saved_bytes"),
                      member(totals, "unfused_bytes") * 2 + member(edge, "bytes"),
                      "%s for %s: edge %zu", WHERE(p), i);
    }
}

/* The same totals wherever they are shown. */
static void check_texts(const Priced *p, const json_t *root) {
    Arena *arena = p->compiled->driver.arena;
    const json_t *totals = json_object_get(root, "totals");
    double kernels = n_kernels(json_object_get(root, "kernels"));
    double launches = member(totals, "launches"), before = member(totals, "unfused_launches");
    double bytes = member(totals, "bytes"), unfused = member(totals, "unfused_bytes");
    expect_in(
        p, p->text,
        str_format(arena, "  %-34s %.0f (%.0f without fusion)\n", "launches", launches, before));
    expect_in(p, p->text,
              str_format(arena, "  %-34s %.0f bytes (%.0f without fusion)\n",
                         "of that past the cache, in DRAM", bytes, unfused));
    expect_in(p, p->text,
              str_format(arena, "  %-34s %.0f bytes (%.0f without fusion)\n", "peak of all tensors",
                         member(totals, "peak_bytes"), member(totals, "unfused_peak_bytes")));
    expect_in(p, p->page,
              str_format(arena, "<s>%.0f \xE2\x86\x92 </s>%.0f</p><small>%.0f kernel", before,
                         launches, kernels));
    expect_in(p, p->page,
              str_format(arena, "<s>%s \xE2\x86\x92 </s>%s</p>", human_bytes(arena, unfused),
                         human_bytes(arena, bytes)));
    expect_in(p, p->page,
              str_format(arena, "<h4>least possible</h4><p>%s</p>",
                         human_bytes(arena, member(totals, "least_bytes"))));
}

/* What the runtime counts, and asks for at the same dims. */
static void check_runtime(const Priced *p, const json_t *totals) {
    const PlanCost *cost = p->input.cost;
    const DimTab *dims = cost->plan->graph->dims;
    bool is_cpu = p->compiled->driver.options.target->device == DEVICE_CPU;
    frt_error err = FRT_ERROR_INIT;
    frt_module *module = NULL;
    frt_program *program = NULL;
    frt_exec *exec = NULL;
    frt_graph_info info = {.struct_size = sizeof info};
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.no_weights = true;
    cr_assert_eq(frt_module_load_memory(p->compiled->bytes, p->compiled->n_bytes, &module, &err), 0,
                 "%s", err.message);
    cr_assert_eq(frt_module_get_graph(module, (int32_t)p->graph, &info), 0);
    /* Copies of rows that lie badly are launches where there is something to copy; of kernels and
     * those that stand for them at other extents, either start. */
    bool may_idle = info.n_pitches > 0;
    for (uint32_t k = 0; k < cost->plan->kernels.n; k++)
        may_idle = may_idle || cost->plan->kernels.data[k].choice;
    cr_expect(may_idle || (double)info.n_launches == member(totals, "launches"),
              "%s for %s: %d launches", WHERE(p), info.n_launches);
    cr_expect_eq((uint32_t)info.n_init, cost->n_init_steps, "%s for %s", WHERE(p));
    size_t n_bytes = 0;
    if (is_cpu) {
        cr_assert_eq(frt_program_create(module, info.name, &options, &program, &err), 0, "%s",
                     err.message);
        cr_assert_eq(frt_exec_create(program, &exec, &err), 0, "%s", err.message);
        for (uint32_t i = 0; i < dim_n_symbols(dims); i++) {
            const DimSymbol *symbol = dim_symbol_info(dims, i);
            if (!symbol->rule) frt_set_dim(exec, symbol->name, cost->dims[i], &err);
        }
        cr_assert_eq(frt_exec_workspace_bytes(exec, &n_bytes, &err), 0, "%s for %s: %s", WHERE(p),
                     err.message);
        cr_expect_eq((double)n_bytes, member(totals, "workspace_bytes"), "%s for %s: %zu bytes",
                     WHERE(p), n_bytes);
    }
    frt_exec_free(exec), frt_program_free(program), frt_module_free(module);
}

static void check_graph(Priced *p) {
    json_error_t error;
    cr_assert_eq(driver_guard(&p->compiled->driver, price, p), FUSEC_OK, "%s for %s", WHERE(p));
    json_t *root = json_loads(p->json, 0, &error);
    cr_assert(root, "line %d: %s", error.line, error.text);
    check_json(p, root);
    check_texts(p, root);
    check_runtime(p, json_object_get(root, "totals"));
    json_decref(root);
}

static void check_program(const char *source, const char *name) {
    static const TargetId targets[] = {TARGET_SM_90A, TARGET_CPU};
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        Compiled compiled = compiled_new(source, targets[t]);
        for (uint32_t g = 0; g < compiled.module->graphs.n; g++) {
            Priced priced = {.compiled = &compiled, .name = name, .graph = g};
            check_graph(&priced);
        }
        compile_free(&compiled);
    }
}

Test(sums, of_random_programs, .timeout = 240) {
    RandomGraphOptions options = random_graph_defaults();
    options.without_empty = true; /* they cost nothing */
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        Arena *arena = arena_new(NULL);
        check_program(random_graph_source(arena, seed, &options),
                      str_format(arena, "seed %llu", (unsigned long long)seed));
        arena_free(arena);
    }
}

Test(sums, of_the_examples, .timeout = 240) {
    Arena *arena = arena_new(NULL);
    glob_t paths;
    cr_assert_eq(glob("dsl/examples/*.g", 0, NULL, &paths), 0);
    for (size_t i = 0; i < paths.gl_pathc; i++)
        check_program(text_file_read(arena, paths.gl_pathv[i], NULL), paths.gl_pathv[i]);
    globfree(&paths);
    arena_free(arena);
}

/* Matmuls whose operands are copied if their rows are badly aligned. The floor counts every input
 * and every output once, copied or not, in the expression and in the number. */
typedef struct Product {
    const char *inputs, *body;
} Product;

static const Product products[] = {
    {"x: bf16[M, K], r: bf16[M, N], w: bf16[K, N], b: bf16[N]", "y = gelu(x @ w + b) + r"},
    {"x: bf16[M, K], v: bf16[K, N], w: bf16[K, N]", "y = silu(x @ v) * (x @ w)"},
    {"x: bf16[M, K], w: bf16[K, N], s: bf16[K]", "y = (x * s) @ w"},
};
enum { N_PRODUCTS = sizeof products / sizeof *products };

static double tensors_bytes(const Priced *p) {
    const Plan *plan = p->input.cost->plan;
    double bytes = 0;
    for (uint32_t b = 0; b < plan->buffers.n; b++) {
        const Buffer *buffer = &plan->buffers.data[b];
        if (buffer->kind == BUFFER_INPUT || buffer->kind == BUFFER_OUTPUT)
            bytes += dim_number(plan->graph->dims, buffer_bytes(plan->graph->dims, buffer),
                                p->input.cost->dims);
    }
    return bytes;
}

static void check_floor(const char *source, int64_t extent, int64_t n_columns) {
    Compiled compiled = compiled_new(source, TARGET_SM_90A);
    int64_t dims[DIM_MAX_SYMBOLS] = {extent, n_columns, extent};
    for (uint32_t i = 3; i < DIM_MAX_SYMBOLS; i++) dims[i] = -1;
    compiled.driver.options.dims = dims;
    Priced p = {.compiled = &compiled, .name = source};
    check_graph(&p);
    double least = tensors_bytes(&p);
    cr_expect_eq(p.input.cost->least_bytes, least, "%lld in\n%s\n%.0f bytes, not %.0f",
                 (long long)extent, source, p.input.cost->least_bytes, least);
    bool is_copied = n_columns % 8 != 0;
    const char *read = is_copied ? " (a copy of w)" : " w (its copy t";
    cr_expect(strstr(p.text, read), "%lld: no `%s` in\n%s", (long long)extent, read, p.text);
    compile_free(&compiled);
}

Test(sums, the_floor_of_matmuls_that_may_copy_their_operands, .timeout = 120) {
    Arena *arena = arena_new(NULL);
    for (uint32_t i = 0; i < N_PRODUCTS; i++) {
        const char *source = str_format(arena,
                                        "dim M in 1..65536\ndim N in 1..65536\ndim K in 1..65536\n"
                                        "graph g(%s) -> (y: bf16[M, N]) {\n  %s\n}\n",
                                        products[i].inputs, products[i].body);
        check_floor(source, 1024, 1024);
        check_floor(source, 1021, 1021);
        check_floor(source, 1024, 1021); /* of a launch of two copies the second starts alone */
        check_floor(source, 1021, 1024);
    }
    arena_free(arena);
}
