/* `fusec verify`: for every graph, several sizes and every device at hand, runs the fused program,
 * the unfused one, and the unfused one with every value as an output. The first two must agree to
 * the bit with each other and with the third, whose every value must be within its op's bound of
 * the reference interpreter. */
#include "cli_exec.h"
#include "verify.h"

#include <inttypes.h>
#include <stdio.h>

/* Sizes tried for dims that are not given: the least, small odd, and past a vector and a warp. */
static const int64_t sizes[] = {0, 3, 33};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

typedef struct Verification {
    Cli *cli;
    const char *text;
    size_t n_bytes;
    const Target *target;
    const char *fused, *unfused; /* artifacts of all graphs */
    size_t n_fused, n_unfused;
    uint32_t graph;    /* index */
    int64_t size;      /* wanted for dims that nothing fixes */
    uint32_t n_chosen; /* how many those were */
    VerifyCounts counts;
    uint32_t n_runs;
} Verification;

/* What node `id` is called as an output; no name of the language begins with a point. */
static Str probe_name(Arena *arena, NodeId id) {
    return str_format(arena, ".n%u", id);
}

/* Makes every value of every graph an output. */
static void add_probes(Driver *driver) {
    for (uint32_t g = 0; g < driver->module->graphs.n; g++) {
        Graph *graph = driver->module->graphs.data[g];
        for (NodeId id = 0; id < graph->nodes.n; id++) {
            if (graph_node(graph, id)->op == OP_INPUT) continue;
            vec_push(driver->arena, &graph->outputs,
                     (GraphOutput){.name = probe_name(driver->arena, id), .node = id});
        }
    }
}

static fusec_status build_probed(Driver *driver, void *user) {
    const Verification *v = user;
    const char *path = v->cli->path;
    fusec_status status =
        driver_parse(driver, strcmp(path, "-") == 0 ? "<stdin>" : path, v->text, v->n_bytes);
    if (status) return status;
    add_probes(driver);
    return driver_build(driver);
}

static fusec_status mismatch(const Verification *v, const Exec *exec, const char *what) {
    Text dims = {.arena = v->cli->arena};
    for (int32_t i = 0; i < exec->info.n_dims; i++)
        text_printf(&dims, " --dim=%s=%" PRId64, exec->dims[i].name, exec->dim_values[i]);
    cli_fail(v->cli, FUSEC_MISMATCH, "graph %s for %s: %s", exec->graph_info.name, v->target->name,
             what);
    fprintf(stderr, "  again: fusec verify %s --graph=%s --target=%s --seed=%" PRIu64 "%s\n",
            v->cli->path, exec->graph_info.name, v->target->name, v->cli->seed, text_str(&dims));
    return FUSEC_MISMATCH;
}

/* Every output of `a` that `b` has too, to the bit. */
static fusec_status compare_outputs(const Verification *v, Exec *a, Exec *b, const char *names) {
    for (uint32_t i = 0; i < a->n_tensors; i++) {
        const ExecTensor *x = &a->tensors[i];
        if (x->info.role != FRT_OUTPUT) continue;
        const ExecTensor *y = exec_find(b, x->info.name);
        Dtype dtype = DT_F32;
        dtype_by_name(frt_dtype_name(x->info.dtype), &dtype);
        if (!y || y->n_bytes != x->n_bytes)
            return cli_fail(v->cli, FUSEC_INTERNAL, "output %s is lost", x->info.name);
        int64_t at = verify_bits(dtype, x->host, y->host, x->n_bytes);
        if (at < 0) continue;
        size_t place = (size_t)at * dtype_bytes(dtype);
        return mismatch(v, a,
                        str_format(v->cli->arena,
                                   "output %s differs between %s: element %lld is %.17g and %.17g",
                                   x->info.name, names, (long long)at,
                                   dtype_load(dtype, x->host + place),
                                   dtype_load(dtype, y->host + place)));
    }
    return FUSEC_OK;
}

static fusec_status compare_nodes(Driver *driver, Verification *v, Exec *probe) {
    const Graph *graph = driver->module->graphs.data[v->graph];
    Arena *arena = v->cli->arena;
    const uint8_t **bytes = arena_array(arena, const uint8_t *, graph->nodes.n);
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const ExecTensor *value = exec_find(probe, probe_name(arena, id));
        if (value) bytes[id] = value->host;
    }
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        bytes[graph->inputs.data[i].node] = exec_find(probe, graph->inputs.data[i].name)->host;
    Text report = {.arena = arena};
    if (verify_nodes(graph, probe->dim_values, bytes, driver->scratch, &v->counts, &report))
        return FUSEC_OK;
    size_t n_first = strcspn(report.data, "\n");
    const char *first = str_format(arena, "%.*s", (int)n_first, report.data);
    fusec_status status = mismatch(v, probe, first);
    fputs(report.data + n_first + (report.data[n_first] == '\n'), stderr);
    return status;
}

static fusec_status start(Verification *v, Exec *exec, const char *artifact, size_t n_bytes,
                          const char *graph) {
    fusec_status status = exec_open(v->cli, exec, artifact, n_bytes, graph);
    if (!status) status = exec_start(exec, v->size, false);
    v->n_chosen = exec->n_chosen;
    return status ? status : exec_run(exec);
}

/* One graph at one size. */
static fusec_status verify_once(Driver *driver, void *user) {
    Verification *v = user;
    const char *graph = driver->module->graphs.data[v->graph]->name;
    Exec fused = {.cli = v->cli}, unfused = fused, probe = fused;
    fusec_status status = start(v, &fused, v->fused, v->n_fused, graph);
    if (!status) status = registers_warn(&fused);
    if (!status) status = start(v, &unfused, v->unfused, v->n_unfused, graph);
    if (!status) status = start(v, &probe, driver->code.data, driver->code.n_bytes, graph);
    if (!status) status = compare_outputs(v, &fused, &unfused, "fused and unfused");
    if (!status) status = compare_outputs(v, &unfused, &probe, "unfused and unfused with probes");
    if (!status) status = compare_nodes(driver, v, &probe);
    v->n_runs++;
    exec_close(&fused);
    exec_close(&unfused);
    exec_close(&probe);
    return status;
}

static fusec_status verify_graphs(Driver *driver, Verification *v) {
    const Module *module = driver->module;
    bool is_found = false;
    for (v->graph = 0; v->graph < module->graphs.n; v->graph++) {
        if (v->cli->graph && strcmp(v->cli->graph, module->graphs.data[v->graph]->name) != 0)
            continue;
        is_found = true;
        v->n_chosen = 1;
        for (uint32_t i = 0; i < N_SIZES && v->n_chosen > 0; i++) {
            v->size = sizes[i];
            fusec_status status = cli_guard(v->cli, driver, verify_once, v);
            if (status) return status;
        }
    }
    return is_found ? FUSEC_OK
                    : cli_fail(v->cli, FUSEC_INPUT, "there is no graph `%s`", v->cli->graph);
}

static fusec_status verify_target(Verification *v) {
    Cli *cli = v->cli;
    DriverOptions options = {.kind = v->target->device == DEVICE_GPU ? FUSEC_PTX : FUSEC_OBJECT,
                             .target = v->target,
                             .numerics = "strict",
                             .no_fuse = true};
    Driver driver;
    fusec_status status =
        exec_compile(cli, v->text, v->n_bytes, v->target, false, &v->fused, &v->n_fused);
    if (!status)
        status =
            exec_compile(cli, v->text, v->n_bytes, v->target, true, &v->unfused, &v->n_unfused);
    if (status) return status;
    if (!driver_init(&driver, &options)) return cli_fail(cli, FUSEC_INTERNAL, "out of memory");
    status = cli_guard(cli, &driver, build_probed, v);
    v->counts = (VerifyCounts){0};
    v->n_runs = 0;
    if (!status) status = verify_graphs(&driver, v);
    driver_free(&driver);
    if (status) return status;
    printf("%s: %u comparison%s; %u nodes, %" PRId64 " elements within their bounds",
           v->target->name, v->n_runs, v->n_runs == 1 ? " agrees" : "s agree", v->counts.n_nodes,
           v->counts.n_elems);
    if (v->counts.n_skipped) printf("; %u nodes too large for the reference", v->counts.n_skipped);
    printf("\n");
    return FUSEC_OK;
}

/* The CPU and, where there is one, the GPU; or just what was asked for. */
static fusec_status choose_targets(const Cli *cli, const Target *targets[2], uint32_t *n) {
    const char *why_not = NULL;
    *n = 1;
    if (cli->target || cli->device != DEVICE_AT_HAND) return exec_choose_target(cli, &targets[0]);
    targets[0] = back_native_cpu();
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
