/* Trials of a bisection. See bisect.h. */
#include "cli/bisect.h"

#include "verify/verify.h"

#include <inttypes.h>

typedef struct Trier {
    const BisectCase *in;
    Cli cli; /* with an arena for this trial */
    Exec exec;
    BisectTrial *trial;
    uint32_t n_plans; /* plans compiled so far in this trial */
} Trier;

static void add_probes(void *user, Arena *arena, Plan *plan, bool is_fused) {
    Trier *t = user;
    (void)is_fused;
    if (t->n_plans++ == t->in->graph) bisect_apply(t->trial, arena, plan);
}

static fusec_status compile(Driver *driver, void *user) {
    const Trier *t = user;
    fusec_status status = driver_parse(driver, t->cli.path, t->in->text, t->in->n_bytes);
    return status ? status : driver_build(driver);
}

/* Runs with the dims and inputs of the failed run. */
static fusec_status execute(Trier *t, const Driver *driver) {
    const Exec *wrong = t->in->wrong;
    fusec_status status = exec_open(&t->cli, &t->exec, driver->code.data, driver->code.n_bytes,
                                    wrong->graph_info.name);
    memset(&t->cli.dims, 0, sizeof t->cli.dims);
    for (int32_t i = 0; i < t->exec.info.n_dims && !status; i++) {
        if (!wrong->dim_is_set[i]) continue;
        CliPair pair = {.name = wrong->dims[i].name,
                        .value = str_format(t->cli.arena, "%" PRId64, wrong->dim_values[i])};
        vec_push(t->cli.arena, &t->cli.dims, pair);
    }
    if (!status) status = exec_start(&t->exec, 0, false);
    if (!status) status = exec_fill(&t->exec, t->in->data);
    return status ? status : exec_run(&t->exec);
}

static void hand_over(Trier *t) {
    Arena *arena = t->cli.arena;
    BisectTrial *trial = t->trial;
    trial->bytes = arena_array(arena, const uint8_t *const *, trial->n_probes);
    for (uint32_t i = 0; i < trial->n_probes; i++) {
        const uint8_t **bytes = arena_array(arena, const uint8_t *, trial->probes[i].scalars.n);
        for (uint32_t k = 0; k < trial->probes[i].scalars.n; k++) {
            bytes[k] = exec_find(&t->exec, probe_name(arena, i, k))->host;
        }
        trial->bytes[i] = bytes;
    }
    if (trial->shown != UINT32_MAX)
        trial->shown_bytes = exec_find(&t->exec, bisect_shown_name())->host;
    const ExecTensor *output = exec_find(&t->exec, t->in->output);
    trial->is_wrong =
        verify_bits(exec_tensor_dtype(output), output->host, t->in->right, output->n_bytes) >= 0;
}

/* Frees the results of the previous trial first. */
static bool try(void *user, BisectTrial *trial) {
    Trier *t = user;
    DriverOptions options = cli_driver_options(t->in->cli, t->in->target);
    options.apart = true; /* as the failed run: its graphs have the same numbers */
    options.hook = (DriverHook){.before = &t->in->cli->hook, .user = t, .fused = add_probes};
    Driver driver;
    exec_close(&t->exec);
    arena_free(t->cli.arena);
    t->cli = *t->in->cli;
    t->cli.arena = arena_new(&t->in->cli->escape);
    t->exec = (Exec){.cli = &t->cli};
    t->trial = trial;
    t->n_plans = 0;
    if (!t->cli.arena || !driver_init(&driver, &options)) return false;
    fusec_status status = cli_guard(&t->cli, &driver, compile, t);
    if (!status) status = execute(t, &driver);
    if (!status) hand_over(t);
    driver_free(&driver);
    return status == FUSEC_OK;
}

static uint32_t find_output(const Plan *plan, const char *name) {
    for (uint32_t i = 0; i < plan->buffers.n; i++)
        if (plan->buffers.data[i].kind == BUFFER_OUTPUT &&
            strcmp(plan->buffers.data[i].name, name) == 0)
            return i;
    return 0;
}

BisectVerdict cli_bisect(const BisectCase *wrong, Arena *arena) {
    Trier t = {.in = wrong, .exec = {.cli = wrong->cli}};
    Bisect bisect = {.plan = wrong->plan,
                     .placed = wrong->placed,
                     .buffer = find_output(wrong->plan, wrong->output),
                     .symbol_values = wrong->wrong->dim_values,
                     .expected = wrong->expected,
                     .arena = arena,
                     .run = try,
                     .user = &t};
    BisectVerdict verdict = bisect_find(&bisect);
    exec_close(&t.exec);
    arena_free(t.cli.arena);
    return verdict;
}
