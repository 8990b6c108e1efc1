/* `fusec verify` of rewritten arithmetic, which need not have the same bits. A probe stores each
 * rewritten GEMM, and its result must be within the rewrite's bound. The unfused program then runs
 * once more with these results as inputs, so all values before and after them must have the same
 * bits. */
#include "cli/verify.h"
#include "interp/index_eval.h"

#include <stdio.h>

static const char *given_name(Arena *arena, NodeId gemm) {
    return str_format(arena, ".g%u", gemm);
}

bool verify_is_rewritten(const Verification *v) {
    for (uint32_t i = 0; i < v->gemms.n; i++)
        if (v->gemms.data[i].graph == v->graph) return true;
    return false;
}

/* Compiling. */

static void list_gemms(Verification *v) {
    for (uint32_t g = 0; g < v->fused.module->graphs.n; g++) {
        const Plan *plan = v->fused.plans[g];
        uint32_t n = 0;
        for (uint32_t k = 0; k < plan->kernels.n; k++) {
            VerifyGemm gemm = {.graph = g, .n = n};
            if (!rewrite_of(plan, k, &gemm.rewrite)) continue;
            vec_push(v->fused.arena, &v->gemms, gemm);
            n++;
        }
    }
}

void verify_give_gemms(Verification *v) {
    const Driver *driver = &v->given;
    for (uint32_t i = 0; i < v->gemms.n; i++) {
        VerifyGemm *gemm = &v->gemms.data[i];
        Graph *graph = driver->module->graphs.data[gemm->graph];
        NodeId id = gemm->rewrite.gemm;
        gemm->again = graph_add(graph, *graph_node(graph, id));
        if (graph->kernel_of.n) vec_push(graph->arena, &graph->kernel_of, 0);
        Node *node = graph_node(graph, id);
        node->op = OP_INPUT;
        node->n_args = 0;
        vec_push(graph->arena, &graph->inputs,
                 (GraphInput){.name = given_name(driver->arena, id), .node = id});
    }
}

static bool find_probe(Arena *arena, const Plan *plan, VerifyGemm *gemm) {
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        if (!form_info(kernel->form)->multiplies || kernel->is_init ||
            kernel->reduces.data[0].node != gemm->rewrite.gemm)
            continue;
        for (uint32_t t = 0; t < kernel->traces.n; t++) {
            const Trace *trace = &kernel->traces.data[t];
            if (trace->node != gemm->rewrite.gemm || trace->is_loaded) continue;
            gemm->scalars = kernel->scalars;
            gemm->trace = *trace;
            return probe_place(arena, plan, k, t, &gemm->probe);
        }
    }
    return false;
}

static void put_probes(void *user, Arena *arena, Plan *plan, bool is_fused) {
    Verification *v = user;
    const DriverHook *hook = &v->cli->hook;
    Vec(Probe) probes = {.n = 0};
    if (hook->fused) hook->fused(hook->user, arena, plan, is_fused);
    for (uint32_t i = 0; i < v->gemms.n; i++) {
        VerifyGemm *gemm = &v->gemms.data[i];
        if (gemm->graph != v->n_gemms_probed) continue;
        gemm->has_probe = find_probe(arena, plan, gemm);
        if (gemm->has_probe) vec_push(arena, &probes, gemm->probe);
    }
    if (probes.n) probe_store(arena, plan, probes.data, probes.n);
    v->n_gemms_probed++;
}

static fusec_status compile(Verification *v, Driver *driver, const DriverOptions *options) {
    if (!driver_init(driver, options)) return cli_fail_memory(v->cli);
    return cli_guard(v->cli, driver, verify_build, v);
}

/* The probes must not change which GEMMs are rewritten. */
static fusec_status check_probes(const Verification *v) {
    for (uint32_t i = 0; i < v->gemms.n; i++) {
        const VerifyGemm *gemm = &v->gemms.data[i];
        const Plan *plan = v->gemms_probed.plans[gemm->graph];
        if (!gemm->has_probe || rewrite_count(plan) != rewrite_count(v->fused.plans[gemm->graph]))
            return cli_fail(v->cli, FUSEC_INTERNAL,
                            "graph %s cannot be verified: with its rewritten matmuls stored it is "
                            "another program",
                            plan->graph->name);
    }
    return FUSEC_OK;
}

/* Makes the GPU's plans only. If the source demands a fusion that a GPU cannot do, there are
 * none. */
static fusec_status plan_elsewhere(Verification *v, DriverOptions options) {
    Driver *driver = &v->elsewhere;
    options.kind = FUSEC_SCHED;
    options.target = driver_default_target(FUSEC_PTX);
    options.no_fuse = false;
    options.hook = v->cli->hook;
    if (!driver_init(driver, &options)) return cli_fail_memory(v->cli);
    fusec_status status = driver_guard(driver, verify_build, v);
    if (!status) return FUSEC_OK;
    if (status != FUSEC_INPUT)
        cli_fail(v->cli, status, "%s", driver->failure ? driver->failure : "no plan");
    driver_free(driver);
    *driver = (Driver){.plans = NULL};
    return status == FUSEC_INPUT ? FUSEC_OK : status;
}

fusec_status verify_compile_rewritten(Verification *v, const DriverOptions *like) {
    DriverOptions options = *like;
    fusec_status status = FUSEC_OK;
    list_gemms(v);
    options.no_fuse = false;
    if (v->target->device != driver_default_target(FUSEC_PTX)->device && driver_rewrites(&options))
        status = plan_elsewhere(v, options);
    if (status || !v->gemms.n) return status;
    options.hook = (DriverHook){.user = v, .fused = put_probes, .placed = verify_pass_on};
    v->n_gemms_probed = 0;
    status = compile(v, &v->gemms_probed, &options);
    if (!status) status = check_probes(v);
    options.no_fuse = true;
    options.hook = v->cli->hook;
    return status ? status : compile(v, &v->given, &options);
}

/* Running. */

fusec_status verify_start_rewritten(Trio *t) {
    fusec_status status = verify_start(t, &t->gemms_probed, &t->v->gemms_probed);
    return status ? status : verify_start(t, &t->given, &t->v->given);
}

/* The symbol values of the graph from the dims of a run. */
static const int64_t *symbol_values(const Trio *t, const Exec *exec) {
    int64_t *values = arena_array(t->arena, int64_t, DIM_MAX_SYMBOLS);
    for (int32_t i = 0; i < exec->info.n_dims && i < DIM_MAX_SYMBOLS; i++)
        values[i] = exec->dim_values[i];
    return values;
}

/* The elements of a GEMM from those of its probe, and which of them exist. */
typedef struct Unprobed {
    uint8_t *bytes;
    bool *is_there;
} Unprobed;

typedef struct Walker {
    const IndexCode *coords[MAX_RANK];
    int64_t extents[MAX_AXES], axes[MAX_AXES]; /* of the kernel */
    Tensor type;
} Walker;

static bool walker_init(const Trio *t, const VerifyGemm *gemm, Walker *w) {
    const IndexTab *tab = scalartab_indices(gemm->scalars);
    const Graph *graph = t->v->gemms_probed.module->graphs.data[gemm->graph];
    const int64_t *values = symbol_values(t, &t->gemms_probed);
    const char *error = NULL;
    *w = (Walker){.axes = {0}};
    if (!interp_shape(graph, gemm->rewrite.gemm, values, &w->type, t->arena, &error)) return false;
    for (uint32_t k = 0; k < w->type.rank; k++) {
        w->coords[k] = index_compile(t->arena, tab, gemm->trace.coords[k], values);
        if (!w->coords[k]) return false;
    }
    for (uint32_t k = 0; k < gemm->probe.n_axes; k++) {
        DimId extent = index_axis_extent(tab, gemm->probe.axes[k]);
        if (!dim_eval(graph->dims, extent, values, &w->extents[gemm->probe.axes[k]])) return false;
    }
    return true;
}

/* The node's element at the current point; -1: none. */
static int64_t element_at(const Walker *w) {
    IndexPoint point = {.axes = w->axes};
    int64_t element = 0;
    for (uint32_t k = 0; k < w->type.rank; k++) {
        int64_t at = index_eval(w->coords[k], &point);
        if (at < 0 || at >= w->type.dims[k]) return -1;
        element = element * w->type.dims[k] + at;
    }
    return element;
}

static void step(Walker *w, const Probe *probe) {
    for (uint32_t k = probe->n_axes; k-- > 0;) {
        uint32_t axis = probe->axes[k];
        if (++w->axes[axis] < w->extents[axis]) return;
        w->axes[axis] = 0;
    }
}

static bool untap(Trio *t, const VerifyGemm *gemm, Unprobed *out) {
    Walker w;
    const ExecTensor *probe = exec_find(&t->gemms_probed, probe_name(t->arena, gemm->n, 0));
    if (!probe || !walker_init(t, gemm, &w)) return false;
    size_t size = dtype_bytes(w.type.dtype), n = (size_t)tensor_n_elems(&w.type);
    *out = (Unprobed){arena_array(t->arena, uint8_t, n * size + 1),
                      arena_array(t->arena, bool, n + 1)};
    for (size_t i = 0; i * size < probe->n_bytes; i++, step(&w, &gemm->probe)) {
        int64_t element = element_at(&w);
        if (element < 0) continue;
        memcpy(out->bytes + (size_t)element * size, probe->host + i * size, size);
        out->is_there[element] = true;
    }
    return true;
}

static fusec_status differs(const Trio *t, const ExecTensor *actual, const ExecTensor *expected,
                            const char *names) {
    Text what = {.arena = t->arena};
    verify_describe_output(t->v->fused.plans[t->v->graph], actual, expected, names, &what);
    text_puts(&what,
              "  what is rewritten is within its bound; without --rewrite the op is named\n");
    return verify_mismatch(t, text_str(&what));
}

/* Adds the first wrong element, and whether the plan or its code is wrong. */
static void add_verdict(const RewriteCase *c, bool is_evaluated, Arena *scratch, Text *what) {
    RewriteCounts ignored = {0};
    Text unread = {.arena = what->arena};
    RewriteValue evaluated = {.actual = NULL};
    text_puts(what, "  first wrong: ");
    verify_name_node(c->plan->graph, c->rewrite.gemm, what);
    text_printf(what, ", in kernel %s: ", c->plan->kernels.data[c->rewrite.result].name);
    if (is_evaluated || !verify_rewrite(c, &evaluated, scratch, &ignored, &unread))
        text_puts(what, "how its arithmetic is rewritten; what it is made of is right\n");
    else
        text_puts(what, "the plan, evaluated on the host, is within the bound, its code is not\n");
}

static fusec_status judge(const Trio *t, const RewriteCase *c, const RewriteValue *value,
                          RewriteCounts *counts) {
    Text what = {.arena = t->arena};
    Arena *scratch = t->v->probed.scratch;
    if (verify_rewrite(c, value, scratch, counts, &what)) return FUSEC_OK;
    add_verdict(c, !value->actual, scratch, &what);
    return verify_mismatch(t, text_str(&what));
}

static fusec_status give(Trio *t, const VerifyGemm *gemm, const Unprobed *value) {
    frt_error error = FRT_ERROR_INIT;
    const ExecTensor *input = exec_find(&t->given, given_name(t->arena, gemm->rewrite.gemm));
    memcpy(input->host, value->bytes, input->n_bytes);
    return frt_copy_to_device(t->given.program, input->device, input->host, input->n_bytes, &error)
               ? cli_fail_frt(&t->cli, &error)
               : FUSEC_OK;
}

static fusec_status judge_gemm(Trio *t, const VerifyGemm *gemm, const Unprobed *unprobed) {
    Verification *v = t->v;
    const Graph *graph = v->given.module->graphs.data[v->graph];
    const uint8_t *const *bytes = verify_node_bytes(t, graph, &t->given);
    RewriteValue value = {unprobed->bytes, unprobed->is_there, bytes[gemm->again]};
    RewriteCase c;
    if (!rewrite_open(v->fused.plans[v->graph], &gemm->rewrite, symbol_values(t, &t->fused), bytes,
                      t->arena, &c))
        return cli_fail(v->cli, FUSEC_INTERNAL,
                        "graph %s: what is rewritten is made of what was "
                        "not kept",
                        graph->name);
    return judge(t, &c, &value, &v->rewritten);
}

fusec_status verify_rewritten(Trio *t) {
    Verification *v = t->v;
    const ExecTensor *expected;
    Unprobed *values = arena_array(t->arena, Unprobed, v->gemms.n);
    fusec_status status = verify_run(t, &t->gemms_probed);
    if (!status) status = exec_fill(&t->given, v->data);
    for (uint32_t i = 0; i < v->gemms.n && !status; i++) {
        const VerifyGemm *gemm = &v->gemms.data[i];
        if (gemm->graph != v->graph) continue;
        if (!untap(t, gemm, &values[i]))
            return cli_fail(v->cli, FUSEC_INTERNAL, "a rewritten matmul was not stored");
        status = give(t, gemm, &values[i]);
    }
    if (!status) status = exec_run(&t->given);
    for (uint32_t i = 0; i < v->gemms.n && !status; i++)
        if (v->gemms.data[i].graph == v->graph)
            status = judge_gemm(t, &v->gemms.data[i], &values[i]);
    if (status) return status;
    const ExecTensor *actual = verify_difference(&t->fused, &t->gemms_probed, &expected);
    if (actual) return differs(t, actual, expected, "rewritten and rewritten with matmuls stored");
    actual = verify_difference(&t->fused, &t->given, &expected);
    return actual ? differs(t, actual, expected, "fused and unfused, given what is rewritten")
                  : FUSEC_OK;
}

fusec_status verify_elsewhere(Trio *t, const uint8_t *const *bytes) {
    Verification *v = t->v;
    const Plan *plan = v->elsewhere.plans ? v->elsewhere.plans[v->graph] : NULL;
    fusec_status status = FUSEC_OK;
    for (uint32_t k = 0; plan && k < plan->kernels.n && !status; k++) {
        Rewrite rewrite;
        RewriteCase c;
        if (!rewrite_of(plan, k, &rewrite)) continue;
        RewriteValue value = {.plain = bytes[rewrite.gemm]};
        if (rewrite_open(plan, &rewrite, symbol_values(t, &t->probed), bytes, t->arena, &c))
            status = judge(t, &c, &value, &v->elsewhere_counts);
        else
            v->elsewhere_counts.is_unknown = true;
    }
    return status;
}

static void print_counts(const RewriteCounts *counts, const char *how) {
    printf("  %s: %lld rows, %lld elements within the bound, at most %.0f %% of it%s\n", how,
           (long long)counts->n_rows, (long long)counts->n_elems, 100 * counts->worst,
           counts->is_unknown ? "; some could not be evaluated" : "");
}

void verify_print_rewritten(const Verification *v) {
    DriverOptions options = {.rewrites = v->cli->rewrites};
    bool is_elsewhere = v->elsewhere_counts.n_rows || v->elsewhere_counts.is_unknown;
    if (v->rewritten.n_rows) print_counts(&v->rewritten, "rewritten: " ONLINE_NAME);
    if (is_elsewhere)
        print_counts(&v->elsewhere_counts,
                     str_format(v->cli->arena, "%s for %s, evaluated here", ONLINE_NAME,
                                driver_default_target(FUSEC_PTX)->name));
    if (driver_rewrites(&options) && !v->rewritten.n_rows && !is_elsewhere)
        printf("  nothing is rewritten\n");
}
