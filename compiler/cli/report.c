/* Builds the page of --report from a driver. See report.h. */
#include "cli/report.h"
#include "plan/launch.h"

#include "cost/kernel/gemm.h"
#include "report/report.h"

static bool is_stdout(const char *path) {
    return strcmp(path, "-") == 0;
}

fusec_status cli_check_report(Cli *cli) {
    if (!cli->report) return FUSEC_OK;
    bool goes_to_stdout = is_stdout(cli->report);
    if (goes_to_stdout && cli->command == CLI_BENCH)
        return cli_fail(cli, FUSEC_USAGE, "bench itself goes to stdout; --report=FILE.html");
    if (cli->output ? goes_to_stdout && is_stdout(cli->output)
                    : goes_to_stdout && (cli->has_kind || cli->explain))
        return cli_fail(cli, FUSEC_USAGE,
                        "the report and the output cannot both go to stdout; --report=FILE.html");
    if (goes_to_stdout) return FUSEC_OK;
    if (cli_is_same_file(cli, cli->report, cli->path))
        return cli_fail(cli, FUSEC_USAGE, "the report would replace the source %s", cli->path);
    if (cli->output && !is_stdout(cli->output) && cli_is_same_file(cli, cli->report, cli->output))
        return cli_fail(cli, FUSEC_USAGE, "the report and the output are one file: %s",
                        cli->report);
    return FUSEC_OK;
}

fusec_status cli_check_card(Cli *cli, const Target *target) {
    if (!cli->card || cli->card->device == target->device) return FUSEC_OK;
    return cli_fail(cli, FUSEC_USAGE, "--card=%s runs nothing that is made for target %s",
                    cli->card->name, target->name);
}

static ReportSide side_of(const PlanCost *cost, const CliSide *times) {
    return (ReportSide){.plan = cost->plan,
                        .cost = cost,
                        .measured_us = times ? times->us : NULL,
                        .n_measured = times ? times->n_launches : 0};
}

fusec_status cli_report_text(Driver *driver, const CliTimes *times, const char **text) {
    Arena *arena = driver->arena;
    const DriverOptions *options = &driver->options;
    uint32_t n = driver->planned->graphs.n, first = 0;
    if (times) first = driver_planned(driver, times->graph, &n);
    bool has_times = times && n == 1; /* else they are of several plans */
    ReportGraph *graphs = arena_array(arena, ReportGraph, n);
    for (uint32_t i = 0; i < n; i++) {
        LedgerInput priced;
        if (!driver_price(driver, first + i, &priced)) return FUSEC_INPUT;
        graphs[i] = (ReportGraph){side_of(priced.unfused_cost, has_times ? &times->before : NULL),
                                  side_of(priced.cost, has_times ? &times->after : NULL),
                                  ledger_new(arena, &priced)};
    }
    const char *slash = strrchr(driver->module->source->name, '/');
    Report report = {.source = slash ? slash + 1 : driver->module->source->name,
                     .target = options->target->name,
                     .compiler = FUSEC_VERSION,
                     .device = times ? times->device : NULL,
                     .card = options->card ? options->card : card_of_target(options->target),
                     .dims = cost_dims(arena, driver->module->dims, options->dims),
                     .graphs = graphs,
                     .n_graphs = n};
    Text page = {.arena = arena};
    report_print(arena, &report, &page);
    *text = text_str(&page);
    return FUSEC_OK;
}

/* Builds the page with measured times. */

static fusec_status build(Driver *driver, void *user) {
    const CliPage *page = user;
    const char *path = page->cli->path;
    fusec_status status =
        driver_parse(driver, is_stdout(path) ? "<stdin>" : path, page->text, page->n_bytes);
    return status ? status : driver_build(driver);
}

fusec_status cli_page_open(CliPage *page, Exec *exec) {
    Cli *cli = page->cli;
    char *text;
    *exec = (Exec){.cli = cli};
    fusec_status status = cli_check_report(cli);
    if (!status) status = cli_read_model(cli, &text, &page->n_bytes);
    if (!status && !cli->report && cli_is_artifact(text, page->n_bytes))
        return exec_open_artifact(cli, exec, text, page->n_bytes);
    if (!status) status = cli_check_source(cli, text, page->n_bytes);
    if (!status) status = exec_choose_target(cli, &page->target);
    if (!status) status = cli_check_card(cli, page->target);
    if (!status && cli->report) status = cli_check_place(cli, cli->report);
    if (status) return status;
    page->text = text;
    DriverOptions options = cli_driver_options(cli, page->target);
    options.no_fuse = cli->no_fuse;
    options.card = cli->card;
    page->is_open = driver_init(&page->driver, &options);
    if (!page->is_open) return cli_fail_memory(cli);
    status = cli_guard(cli, &page->driver, build, page);
    const CodeBytes *code = &page->driver.code;
    if (!status && page->target->has->blocks) registers_note(cli, &page->driver);
    return status ? status : exec_open(cli, exec, code->data, code->n_bytes, cli->graph);
}

fusec_status cli_page_open_plain(CliPage *page, Exec *exec) {
    Cli *cli = page->cli;
    const char *artifact;
    size_t n_bytes;
    *exec = (Exec){.cli = cli};
    fusec_status status =
        exec_compile(cli, page->text, page->n_bytes, page->target, true, &artifact, &n_bytes);
    return status ? status : exec_open(cli, exec, artifact, n_bytes, cli->graph);
}

static fusec_status make_text(Driver *driver, void *user) {
    const CliPage *page = user;
    const char *text;
    fusec_status status = cli_report_text(driver, &page->times, &text);
    return status ? status : cli_write(page->cli, page->cli->report, text, strlen(text), false);
}

/* Sets the dims of the run. Dims that the runtime computes follow from the others. */
static void set_dims(CliPage *page, const Exec *exec) {
    const DimTab *dims = page->driver.module->dims;
    int64_t *values = arena_array(page->cli->arena, int64_t, DIM_MAX_SYMBOLS);
    for (uint32_t i = 0; i < dim_n_symbols(dims); i++) {
        values[i] = -1;
        for (int32_t k = 0; k < exec->info.n_dims; k++)
            if (strcmp(exec->dims[k].name, dim_symbol_info(dims, i)->name) == 0)
                values[i] = exec->dim_values[k];
    }
    page->driver.options.dims = values;
}

fusec_status cli_page_write(CliPage *page, const Exec *exec) {
    set_dims(page, exec);
    return cli_guard(page->cli, &page->driver, make_text, page);
}

/* The predictions for launches. */

typedef struct Expecting {
    const CliPage *page;
    const Exec *exec;
    const Card *card; /* of the device; NULL: no row of cards.def has its name */
    CliExpected *launches;
    uint32_t n;
} Expecting;

static void add_kernel(const Expecting *e, const PlanCost *cost, uint32_t k, CliExpected *sum) {
    const Kernel *kernel = &cost->plan->kernels.data[k];
    const KernelCost *own = &cost->kernels[k];
    sum->us += own->us;
    sum->n_flops += own->n_flops;
    if (!e->card) return;
    GemmEngine engine = sched_engine(&kernel->variants[own->variant].sched);
    double memory = (own->read_bytes + own->written_bytes) / (e->card->dram_gbs * 1e3);
    double work =
        own->n_flops > 0 ? own->n_flops / (cost_gemm_peak(e->card, kernel, engine) * 1e6) : 0;
    sum->limit_us += memory > work ? memory : work;
}

/* Adds the launches of a plan. */
static void expect_plan(Expecting *e, const Plan *plan, const PlanCost *cost) {
    for (uint32_t i = 0; i < plan->launches.n; i++) {
        const Launch *launch = &plan->launches.data[i];
        if (launch->first < cost->n_init) continue;
        for (uint32_t k = 0; k < launch->n; k++)
            add_kernel(e, cost, launch->first + k, &e->launches[e->n]);
        e->n++;
    }
}

static fusec_status expect(Driver *driver, void *user) {
    Expecting *e = user;
    const Card *card = e->card ? e->card : card_of_target(driver->options.target);
    Card cores = *card;
    if (!e->card && card->has->cores)
        cores = card_with_processors(card, frt_program_n_threads(e->exec->program));
    const int64_t *dims = cost_dims(driver->arena, driver->module->dims, driver->options.dims);
    uint32_t n, n_launches = 0, first = driver_planned(driver, (uint32_t)e->exec->graph, &n);
    for (uint32_t i = first; i < first + n; i++) n_launches += 2 * driver->plans[i]->launches.n;
    e->launches = arena_array(e->page->cli->arena, CliExpected, n_launches);
    for (uint32_t i = first; i < first + n; i++) {
        const PlanCost *cost = cost_plan(driver->arena, driver->plans[i], &cores, dims);
        expect_plan(e, driver->plans[i], cost);
        if (driver_is_repeated(driver, i)) expect_plan(e, driver->plans[i], cost);
    }
    return FUSEC_OK;
}

fusec_status cli_page_expect(CliPage *page, const Exec *exec, CliExpected **launches, uint32_t *n) {
    const Card *card = page->cli->card;
    *n = 0;
    if (!page->is_open) return FUSEC_OK;
    Expecting e = {page, exec, card ? card : card_by_device(frt_device_name(exec->program)), NULL,
                   0};
    set_dims(page, exec);
    fusec_status status = cli_guard(page->cli, &page->driver, expect, &e);
    *launches = e.launches;
    *n = e.n;
    return status;
}

void cli_page_close(CliPage *page) {
    if (page->is_open) driver_free(&page->driver);
}
