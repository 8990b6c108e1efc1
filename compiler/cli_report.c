/* The report's page from a driver. See cli_report.h. */
#include "cli_report.h"

#include "report/report.h"

static bool is_stdout(const char *path) {
    return strcmp(path, "-") == 0;
}

fusec_status cli_check_report(Cli *cli) {
    if (!cli->report) return FUSEC_OK;
    bool goes_to_stdout = is_stdout(cli->report);
    if (cli->output ? goes_to_stdout && is_stdout(cli->output)
                    : goes_to_stdout && (cli->has_kind || cli->explain || cli->json))
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

fusec_status cli_report_text(Driver *driver, const CliTimes *times, const char **text) {
    Arena *arena = driver->arena;
    const DriverOptions *options = &driver->options;
    uint32_t first = times ? times->graph : 0, n = times ? 1 : driver->module->graphs.n;
    ReportGraph *graphs = arena_array(arena, ReportGraph, n);
    for (uint32_t i = 0; i < n; i++) {
        ExplainInput priced;
        if (!driver_price(driver, first + i, &priced)) return FUSEC_INPUT;
        graphs[i].before = (ReportSide){priced.unfused_cost->plan, priced.unfused_cost,
                                        times ? times->before : NULL};
        graphs[i].after =
            (ReportSide){priced.cost->plan, priced.cost, times ? times->after : NULL};
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
