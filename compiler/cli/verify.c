/* `fusec verify` checks every graph at several sizes, with every kind of inputs, on every available
 * device. It runs three programs: the fused one, the unfused one, and the unfused one with every
 * value as an output. All three must agree to the bit, and every value of the third must be within
 * its op's bound of the reference interpreter. A wrong fused program is bisected. What --rewrite
 * made of a graph is compared with the graph as it is written, by the reference of both. With
 * --numerics=fast the fused program need not have the same bits; it is compared with the reference
 * of the whole graph, within bounds that grow from value to value (verify_fast.h). Of a graph with
 * loops each subgraph is verified by itself, a step of a loop with any carried values. */
#define _XOPEN_SOURCE 700 /* clock_gettime */
#include "cli/bisect.h"
#include "cli/exec.h"
#include "verify/verify.h"
#include "verify/verify_fast.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

typedef struct Verification {
    Cli *cli;
    const char *text;
    size_t n_bytes;
    const Target *target;
    /* All graphs: fused, unfused, and unfused with every value as an output. */
    Driver fused, unfused, probed;
    Driver written; /* of a program that --rewrite rewrites: its graphs as they are written */
    Vec(const Plan *) plans; /* of the fused program, before layout and schedule */
    uint32_t graph;          /* index in the module */
    int64_t size;            /* wanted for dims that nothing fixes */
    uint32_t n_chosen;       /* number of such dims */
    DataKind data;
    bool is_judged; /* by the interpreter: always, except the largest size with later kinds of
                     * inputs */
    VerifyCounts counts, fast_counts, written_counts;
    bool may_rewrite, is_rewritten; /* the program; some graph of it that was verified */
    uint32_t n_runs;
    struct timespec begin; /* of the command */
} Verification;

/* The programs of one graph at one size. */
typedef struct Trio {
    Verification *v;
    Arena *arena; /* memory of this size */
    Cli cli;      /* with that arena */
    Exec fused, unfused, probed;
} Trio;

/* The sizes of dims that are not given: the least, a small odd one, and one larger than a vector
 * and a warp. */
static const int64_t sizes[] = {0, 3, 33};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

/* A verification that takes longer says what it does, even to a file. */
static const double SILENT_SECONDS = 1;

/* The name of node `id` as an output; no name of the language begins with a period. */
static Str output_name(Arena *arena, NodeId id) {
    return str_format(arena, ".n%u", id);
}

/* Makes every value of every graph an output. */
static void add_probes(const Driver *driver) {
    for (uint32_t g = 0; g < driver->module->graphs.n; g++) {
        Graph *graph = driver->module->graphs.data[g];
        for (NodeId id = 0; id < graph->nodes.n; id++) {
            if (graph_node(graph, id)->op == OP_INPUT) continue;
            vec_push(driver->arena, &graph->outputs,
                     (GraphOutput){.name = output_name(driver->arena, id), .node = id});
        }
    }
}

STR_PRINTF(2, 3) static void say(const Verification *v, const char *format, ...) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds =
        (double)(now.tv_sec - v->begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - v->begin.tv_nsec);
    if (!v->cli->verbose && seconds < SILENT_SECONDS && !isatty(STDERR_FILENO)) return;
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s, %.0f s: ", v->target->name, seconds);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

static fusec_status build(Driver *driver, void *user) {
    Verification *v = user;
    const char *path = v->cli->path;
    fusec_status status =
        driver_parse(driver, strcmp(path, "-") == 0 ? "<stdin>" : path, v->text, v->n_bytes);
    if (status) return status;
    if (driver == &v->written) return FUSEC_OK;
    if (driver == &v->probed) add_probes(driver);
    return driver_build(driver);
}

/* Keeps a copy of the plan. */
static void keep_plan(void *user, Arena *arena, Plan *plan, bool is_fused) {
    Verification *v = user;
    (void)is_fused;
    Plan *kept = arena_copy(arena, plan, sizeof *plan);
    kept->kernels.data =
        arena_copy(arena, plan->kernels.data, plan->kernels.n * sizeof *plan->kernels.data);
    kept->buffers.data =
        arena_copy(arena, plan->buffers.data, plan->buffers.n * sizeof *plan->buffers.data);
    vec_push(arena, &v->plans, kept);
}

static fusec_status mismatch(const Trio *t, const char *what) {
    const Exec *exec = &t->fused;
    const Verification *v = t->v;
    Text dims = {.arena = t->arena};
    for (int32_t i = 0; i < exec->info.n_dims; i++)
        text_printf(&dims, " --dim=%s=%" PRId64, exec->dims[i].name, exec->dim_values[i]);
    size_t n_first = strcspn(what, "\n");
    cli_fail(v->cli, FUSEC_MISMATCH, "graph %s for %s, %s inputs: %.*s", exec->graph_info.name,
             v->target->name, data_info(v->data)->name, (int)n_first, what);
    if (what[n_first]) fputs(what + n_first + 1, stderr);
    fprintf(stderr,
            "  again: fusec verify %s --graph=%s --target=%s --data=%s --seed=%" PRIu64 "%s%s%s\n",
            v->cli->path, exec->graph_info.name, v->target->name, data_info(v->data)->name,
            v->cli->seed, text_str(&dims), v->cli->is_fast ? " --numerics=fast" : "",
            v->cli->rewrites == FUSEC_REWRITES_ON    ? " --rewrite"
            : v->cli->rewrites == FUSEC_REWRITES_OFF ? " --no-rewrite"
                                                     : "");
    return FUSEC_MISMATCH;
}

static NodeId node_of_output(const Graph *graph, const char *name) {
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        if (strcmp(graph->outputs.data[i].name, name) == 0) return graph->outputs.data[i].node;
    return NODE_NONE;
}

static void describe_output(const Plan *plan, const ExecTensor *actual, const ExecTensor *expected,
                            const char *names, Text *what) {
    Dtype dtype = exec_tensor_dtype(actual);
    int64_t at = verify_bits(dtype, actual->host, expected->host, actual->n_bytes);
    size_t place = (size_t)at * dtype_bytes(dtype);
    const Kernel *kernel = verify_kernel_of(plan, node_of_output(plan->graph, actual->info.name));
    Tensor type = {.dtype = dtype, .rank = (uint32_t)actual->info.rank};
    memcpy(type.dims, actual->dims, type.rank * sizeof *type.dims);
    text_printf(what, "output %s differs between %s: ", actual->info.name, names);
    verify_describe(&type, at, dtype_load(dtype, actual->host + place),
                    dtype_load(dtype, expected->host + place), what);
    if (kernel) text_printf(what, ", kernel %s", kernel->name);
    text_puts(what, "\n");
}

static const ExecTensor *find_difference(Exec *a, Exec *b, const ExecTensor **other) {
    for (uint32_t i = 0; i < a->n_tensors; i++) {
        const ExecTensor *x = &a->tensors[i];
        if (x->info.role != FRT_OUTPUT) continue;
        *other = exec_find(b, x->info.name);
        if (verify_bits(exec_tensor_dtype(x), x->host, (*other)->host, x->n_bytes) >= 0) return x;
    }
    return NULL;
}

static const uint8_t *const *node_bytes(const Trio *t, const Graph *graph, Exec *exec) {
    const uint8_t **bytes = arena_array(t->arena, const uint8_t *, graph->nodes.n);
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const ExecTensor *value = exec_find(exec, output_name(t->arena, id));
        if (value) bytes[id] = value->host;
    }
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        bytes[graph->inputs.data[i].node] = exec_find(exec, graph->inputs.data[i].name)->host;
    return bytes;
}

static fusec_status compare_nodes(Trio *t, const uint8_t *const *bytes) {
    Verification *v = t->v;
    Text report = {.arena = t->arena};
    if (verify_nodes(v->probed.plans[v->graph], t->probed.dim_values, bytes, v->probed.scratch,
                     &v->counts, &report))
        return FUSEC_OK;
    return mismatch(t, text_str(&report));
}

static fusec_status compare_unfused(Trio *t) {
    const ExecTensor *expected, *actual = find_difference(&t->unfused, &t->probed, &expected);
    if (!actual) return FUSEC_OK;
    Text what = {.arena = t->arena};
    describe_output(t->v->unfused.plans[t->v->graph], actual, expected,
                    "unfused and unfused with every value stored", &what);
    return mismatch(t, text_str(&what));
}

static fusec_status compare_fused(Trio *t, const uint8_t *const *bytes) {
    const Verification *v = t->v;
    const ExecTensor *expected, *actual = find_difference(&t->fused, &t->unfused, &expected);
    if (!actual) return FUSEC_OK;
    Text what = {.arena = t->arena};
    describe_output(v->fused.plans[v->graph], actual, expected, "fused and unfused", &what);
    BisectCase wrong = {.cli = v->cli,
                        .text = v->text,
                        .n_bytes = v->n_bytes,
                        .target = v->target,
                        .plan = v->plans.data[v->graph],
                        .placed = v->fused.plans[v->graph],
                        .graph = v->graph,
                        .wrong = &t->fused,
                        .data = v->data,
                        .output = actual->info.name,
                        .right = expected->host,
                        .expected = bytes};
    BisectVerdict verdict = cli_bisect(&wrong, t->arena);
    text_puts(&what, verdict.kind == BISECT_FAILED ? "  could not be bisected\n" : verdict.text);
    if (verdict.n_trials)
        text_printf(&what,
                    "  %u values were looked at, in %u run%s; what is fused stayed as it was\n",
                    verdict.n_values, verdict.n_trials, verdict.n_trials == 1 ? "" : "s");
    return mismatch(t, text_str(&what));
}

/* For fast programs: compares the fused program's outputs with the reference of the whole graph. */
static fusec_status compare_fast(Trio *t, const uint8_t *const *bytes) {
    Verification *v = t->v;
    const Plan *plan = v->fused.plans[v->graph];
    const char *error = NULL;
    Arena *arena = arena_new(&v->probed.escape);
    if (!arena) return cli_fail_memory(v->cli);
    Text report = {.arena = t->arena};
    FastReference reference;
    bool ok = true;
    if (!verify_fast_reference(plan->graph, t->probed.dim_values, bytes, arena, &reference,
                               &error)) {
        v->counts.n_skipped++;
        arena_free(arena);
        return FUSEC_OK;
    }
    for (uint32_t i = 0; i < plan->graph->outputs.n && ok; i++) {
        const GraphOutput *output = &plan->graph->outputs.data[i];
        ok = verify_fast_value(&reference, plan, output->node,
                               exec_find(&t->fused, output->name)->host, arena, &v->fast_counts,
                               &report);
    }
    arena_free(arena);
    return ok ? FUSEC_OK : mismatch(t, text_str(&report));
}

/* The reference of a graph on the elements of inputs and params that the last run had. */
static bool reference_of(Trio *t, const Graph *graph, Arena *arena, FastReference *reference) {
    const uint8_t **bytes = arena_array(arena, const uint8_t *, graph->nodes.n);
    const char *error = NULL;
    for (uint32_t i = 0; i < graph->inputs.n + graph->params.n; i++) {
        const GraphInput *bound =
            i < graph->inputs.n ? &graph->inputs.data[i] : &graph->params.data[i - graph->inputs.n];
        const ExecTensor *tensor = exec_find(&t->fused, bound->name);
        if (tensor) bytes[bound->node] = tensor->host;
    }
    return verify_fast_reference(graph, t->fused.dim_values, bytes, arena, reference, &error);
}

static bool has_rewritten(const Graph *graph) {
    for (uint32_t i = 0; i < graph->softmaxes.n; i++)
        if (!graph->softmaxes.data[i].why_left) return true;
    return false;
}

/* Compares what --rewrite made of the graph with the graph as it is written. */
static fusec_status compare_written(Trio *t) {
    Verification *v = t->v;
    const Graph *graph = v->fused.module->graphs.data[v->graph];
    if (!v->written.module || !has_rewritten(graph)) return FUSEC_OK;
    Arena *arena = arena_new(&v->probed.escape);
    if (!arena) return cli_fail_memory(v->cli);
    Text report = {.arena = t->arena};
    FastReference rewritten, written;
    bool ok = true;
    v->is_rewritten = true;
    if (!reference_of(t, graph, arena, &rewritten) ||
        !reference_of(t, v->written.module->graphs.data[v->graph], arena, &written))
        v->counts.n_skipped++;
    else
        ok = verify_rewritten(&rewritten, &written, &v->written_counts, &report);
    arena_free(arena);
    return ok ? FUSEC_OK : mismatch(t, text_str(&report));
}

static fusec_status start(Trio *t, Exec *exec, const Driver *driver) {
    Verification *v = t->v;
    const char *name = driver->module->graphs.data[v->graph]->name;
    fusec_status status = exec_open(&t->cli, exec, driver->code.data, driver->code.n_bytes, name);
    if (!status) status = exec_start(exec, v->size, false);
    v->n_chosen = exec->n_chosen;
    return status;
}

static fusec_status run(const Trio *t, Exec *exec) {
    fusec_status status = exec_fill(exec, t->v->data);
    return status ? status : exec_run(exec);
}

/* Outputs that may lie at the address of an input, at that address: the results are those of the
 * run before. Of several outputs that may lie at one address, one does so in each run. */

/* The input whose address the output may have; NULL: none. */
static ExecTensor *input_of(Exec *exec, const ExecTensor *tensor) {
    for (uint32_t i = 0; tensor->info.role == FRT_OUTPUT && i < exec->n_tensors; i++)
        if (exec->tensors[i].index == tensor->info.stands_for) return &exec->tensors[i];
    return NULL;
}

/* The run in which the output lies there: that many outputs before it have the same input. */
static uint32_t round_of(const Exec *exec, uint32_t tensor) {
    uint32_t round = 0;
    for (uint32_t i = 0; i < tensor; i++)
        round += exec->tensors[i].info.role == FRT_OUTPUT &&
                 exec->tensors[i].info.stands_for == exec->tensors[tensor].info.stands_for;
    return round;
}

static fusec_status bind_at(Exec *exec, ExecTensor *tensor, void *device) {
    frt_error error = FRT_ERROR_INIT;
    frt_tensor bound = {.data = device, .dtype = tensor->info.dtype, .rank = tensor->info.rank};
    memcpy(bound.dims, tensor->dims, sizeof bound.dims);
    if (frt_bind(exec->exec, tensor->info.name, &bound, &error))
        return cli_fail_frt(exec->cli, &error);
    tensor->device = device;
    return FUSEC_OK;
}

/* Runs with the outputs at the addresses of their inputs; `apart` has the outputs' own ones. */
static fusec_status run_in_place(const Trio *t, Exec *exec, uint32_t round, void **apart) {
    fusec_status status = exec_fill(exec, t->v->data);
    for (uint32_t i = 0; i < exec->n_tensors && !status; i++) {
        const ExecTensor *input = input_of(exec, &exec->tensors[i]);
        if (!input || round_of(exec, i) != round) continue;
        apart[i] = exec->tensors[i].device;
        status = bind_at(exec, &exec->tensors[i], input->device);
    }
    if (!status) status = exec_run(exec);
    for (uint32_t i = 0; i < exec->n_tensors; i++) {
        if (!apart[i]) continue;
        fusec_status back = bind_at(exec, &exec->tensors[i], apart[i]);
        if (!status) status = back;
        apart[i] = NULL;
    }
    return status;
}

/* How many runs it takes until each such output has been there. */
static uint32_t count_rounds(Exec *exec) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < exec->n_tensors; i++)
        if (input_of(exec, &exec->tensors[i]) && round_of(exec, i) >= n) n = round_of(exec, i) + 1;
    return n;
}

static fusec_status compare_outputs(Trio *t, Exec *exec, uint8_t *const *before) {
    for (uint32_t i = 0; i < exec->n_tensors; i++) {
        ExecTensor expected = exec->tensors[i];
        expected.host = before[i];
        if (!before[i] || verify_bits(exec_tensor_dtype(&expected), exec->tensors[i].host,
                                      expected.host, expected.n_bytes) < 0)
            continue;
        Text what = {.arena = t->arena};
        describe_output(t->v->fused.plans[t->v->graph], &exec->tensors[i], &expected,
                        "in place of its input and apart from it", &what);
        return mismatch(t, text_str(&what));
    }
    return FUSEC_OK;
}

static fusec_status compare_in_place(Trio *t, Exec *exec) {
    uint32_t n = exec->n_tensors, n_rounds = count_rounds(exec);
    if (!n_rounds) return FUSEC_OK;
    uint8_t **before = arena_array(t->arena, uint8_t *, n);
    void **apart = arena_array(t->arena, void *, n);
    for (uint32_t i = 0; i < n; i++)
        if (exec->tensors[i].info.role == FRT_OUTPUT)
            before[i] = arena_copy(t->arena, exec->tensors[i].host, exec->tensors[i].n_bytes);
    fusec_status status = FUSEC_OK;
    for (uint32_t round = 0; round < n_rounds && !status; round++) {
        status = run_in_place(t, exec, round, apart);
        if (!status) status = compare_outputs(t, exec, before);
    }
    return status;
}

/* The unfused program is checked first, because it is the reference of the fused one. The
 * interpreter is slow, so the largest size is interpreted with one kind of inputs only. */
static fusec_status verify_data(Trio *t) {
    fusec_status status = run(t, &t->fused);
    if (!status) status = registers_warn(&t->fused);
    if (!status) status = run(t, &t->unfused);
    if (!status) status = run(t, &t->probed);
    if (status) return status;
    const Graph *graph = t->v->probed.module->graphs.data[t->v->graph];
    const uint8_t *const *bytes = node_bytes(t, graph, &t->probed);
    if (t->v->is_judged) status = compare_nodes(t, bytes);
    if (!status) status = compare_unfused(t);
    if (!status && t->v->is_judged) status = compare_written(t);
    if (!status && t->v->cli->is_fast && t->v->is_judged) status = compare_fast(t, bytes);
    if (!status && !t->v->cli->is_fast) status = compare_fused(t, bytes);
    if (!status) status = compare_in_place(t, &t->fused);
    t->v->n_runs++;
    return status;
}

/* Checks one graph at one size, with all kinds of inputs. */
static fusec_status verify_size(Trio *t) {
    Verification *v = t->v;
    fusec_status status = start(t, &t->fused, &v->fused);
    if (!status) status = registers_warn(&t->fused);
    if (!status) status = start(t, &t->unfused, &v->unfused);
    if (!status) status = start(t, &t->probed, &v->probed);
    for (uint32_t kind = 0; kind < DATA_COUNT && !status; kind++) {
        v->data = (DataKind)kind;
        if (v->cli->data && !(v->cli->data >> kind & 1)) continue;
        say(v, "graph %s, %s inputs, dims that nothing fixes at least %" PRId64 "%s",
            t->fused.graph_info.name, data_info(v->data)->name, v->size,
            v->is_judged ? ", with the reference" : "");
        status = verify_data(t);
        v->is_judged = v->is_judged && v->size != sizes[N_SIZES - 1];
    }
    return status;
}

static fusec_status verify_once(Driver *driver, void *user) {
    Verification *v = user;
    Trio t = {.v = v, .cli = *v->cli, .arena = arena_new(&driver->escape)};
    if (!t.arena) return cli_fail_memory(v->cli);
    t.cli.arena = t.arena;
    t.fused.cli = t.unfused.cli = t.probed.cli = &t.cli;
    fusec_status status = verify_size(&t);
    exec_close(&t.fused);
    exec_close(&t.unfused);
    exec_close(&t.probed);
    v->cli->told_of_weights = t.cli.told_of_weights;
    arena_free(t.arena);
    return status;
}

/* Whether `name` is the graph, or the graph with loops that it was cut from. */
static bool is_called(const Graph *graph, const char *name) {
    return strcmp(graph->name, name) == 0 ||
           (graph->cut_from && strcmp(graph->cut_from, name) == 0);
}

static fusec_status verify_graphs(Verification *v) {
    const Module *module = v->probed.module;
    bool is_found = false;
    for (v->graph = 0; v->graph < module->graphs.n; v->graph++) {
        if (v->cli->graph && !is_called(module->graphs.data[v->graph], v->cli->graph)) continue;
        is_found = true;
        v->n_chosen = 1;
        for (uint32_t i = 0; i < N_SIZES && v->n_chosen > 0; i++) {
            v->size = sizes[i];
            v->is_judged = true;
            fusec_status status = cli_guard(v->cli, &v->probed, verify_once, v);
            if (status) return status;
        }
    }
    return is_found ? FUSEC_OK
                    : cli_fail(v->cli, FUSEC_INPUT, "there is no graph `%s`", v->cli->graph);
}

/* Reads the graphs of a program that may be rewritten as they are written. */
static fusec_status read_written(Verification *v, DriverOptions options) {
    v->may_rewrite = driver_rewrites(&options);
    if (!v->may_rewrite) return FUSEC_OK;
    options.rewrites = FUSEC_REWRITES_OFF;
    if (!driver_init(&v->written, &options)) return cli_fail_memory(v->cli);
    return cli_guard(v->cli, &v->written, build, v);
}

static fusec_status compile_all(Verification *v) {
    DriverOptions options = cli_driver_options(v->cli, v->target);
    options.apart = true;
    options.checks_llvm = true;
    Driver *drivers[] = {&v->fused, &v->unfused, &v->probed};
    static const char *const forms[] = {"fused", "one kernel per op",
                                        "one kernel per op, every value stored"};
    for (int i = 0; i < 3; i++) {
        bool is_fused = drivers[i] == &v->fused;
        DriverHook keeping = {.before = &v->cli->hook, .user = v, .fused = keep_plan};
        options.no_fuse = !is_fused;
        say(v, "compiling: %s", forms[i]);
        options.hook = is_fused ? keeping : v->cli->hook;
        if (!driver_init(drivers[i], &options)) return cli_fail_memory(v->cli);
        fusec_status status = cli_guard(v->cli, drivers[i], build, v);
        if (status) return status;
        if (is_fused && v->target->has->blocks) registers_note(v->cli, drivers[i]);
    }
    return read_written(v, options);
}

static fusec_status verify_target(Verification *v) {
    v->counts = v->fast_counts = v->written_counts = (VerifyCounts){0};
    v->n_runs = 0;
    v->fused = v->unfused = v->probed = v->written = (Driver){0};
    memset(&v->plans, 0, sizeof v->plans);
    fusec_status status = compile_all(v);
    if (!status) status = verify_graphs(v);
    driver_free(&v->fused);
    driver_free(&v->unfused);
    driver_free(&v->probed);
    driver_free(&v->written);
    if (status) return status;
    printf("%s: %u comparison%s; %u nodes, %" PRId64 " elements within their bounds",
           v->target->name, v->n_runs, v->n_runs == 1 ? " agrees" : "s agree", v->counts.n_nodes,
           v->counts.n_elems);
    if (v->counts.n_skipped) printf("; %u nodes too large for the reference", v->counts.n_skipped);
    printf("\n");
    if (v->cli->is_fast)
        printf("  fast: %u outputs of fused programs, %" PRId64 " elements within what their "
               "graph's bounds add up to, of %" PRId64 " any number would be\n",
               v->fast_counts.n_nodes, v->fast_counts.n_elems, v->fast_counts.n_any);
    if (v->is_rewritten)
        printf("  rewritten: %u outputs, %" PRId64 " elements within what the bounds of both forms "
               "add up to, of %" PRId64 " any number would be\n",
               v->written_counts.n_nodes, v->written_counts.n_elems, v->written_counts.n_any);
    else if (v->may_rewrite)
        printf("  nothing is rewritten\n");
    return FUSEC_OK;
}

/* The CPU and, if there is one, the GPU; or the device that the options name. */
static fusec_status choose_targets(const Cli *cli, const Target *targets[2], uint32_t *n) {
    const char *why_not = NULL;
    *n = 1;
    if (cli->target || cli->device != DEVICE_AT_HAND) return exec_choose_target(cli, &targets[0]);
    targets[0] = codegen_native_cpu();
    if (!targets[0]) *n = 0;
    const Target *gpu = cli_native_gpu(&why_not);
    if (gpu)
        targets[(*n)++] = gpu;
    else
        printf("cuda: skipped, %s\n", why_not);
    return *n ? FUSEC_OK : cli_fail(cli, FUSEC_TARGET, "there is no device to verify on");
}

fusec_status cli_verify(Cli *cli) {
    Verification v = {.cli = cli};
    clock_gettime(CLOCK_MONOTONIC, &v.begin);
    const Target *targets[2] = {NULL};
    uint32_t n_targets;
    char *text;
    fusec_status status = cli_read_source(cli, &text, &v.n_bytes);
    if (!status) status = choose_targets(cli, targets, &n_targets);
    if (status) return status;
    v.text = text;
    for (uint32_t i = 0; i < n_targets && !status; i++) {
        v.target = targets[i];
        status = verify_target(&v);
    }
    return status;
}
