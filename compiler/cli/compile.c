/* `fusec model.g -o ...`: one compilation and its outputs. */
#include "cli/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct Compile {
    Cli *cli;
    char *text;
    size_t n_bytes;
    double seconds[PASS_COUNT];
    const char *report; /* with --report */
    fusec_status dump_status;
} Compile;

/* Sets the kind from a file's extension. */
static bool kind_by_extension(Cli *cli, const char *path) {
    const char *dot = strrchr(path, '.');
    const char *slash = strrchr(path, '/');
    if (!dot || (slash && dot < slash)) return false;
    cli->finish = cli_finish_by_extension(dot);
    if (cli->finish) cli->kind = cli->finish->kind;
    for (int kind = 0; kind < FUSEC_KIND_COUNT && !cli->finish; kind++) {
        if (strcmp(dot, kind_info((fusec_kind)kind)->extension) != 0) continue;
        cli->kind = (fusec_kind)kind;
        return true;
    }
    return cli->finish != NULL;
}

/* Determines kind, target and output path. */
static fusec_status settle(Cli *cli) {
    bool dumps = cli->print_after || cli->dump_to || cli->time_passes;
    bool prices = cli->explain || cli->report;
    if (!cli->explain && cli->json)
        return cli_fail(cli, FUSEC_USAGE, "--json counts with --explain when compiling");
    if (!prices && (cli->card || cli->dims.n))
        return cli_fail(cli, FUSEC_USAGE, "--%s counts with --explain or --report when compiling",
                        cli->card ? "card" : "dim");
    fusec_status status = cli_check_report(cli);
    if (status) return status;
    if (cli->output && strcmp(cli->output, "-") != 0 &&
        cli_is_same_file(cli, cli->output, cli->path))
        return cli_fail(cli, FUSEC_USAGE, "the output would replace the source %s", cli->path);
    if (!cli->has_kind && cli->output && !kind_by_extension(cli, cli->output)) {
        if (strcmp(cli->output, "-") != 0)
            return cli_fail(cli, FUSEC_USAGE,
                            "the extension of %s tells no kind of output; "
                            "--emit=KIND does",
                            cli->output);
        cli->kind = FUSEC_PTX;
    }
    if (!cli->has_kind && !cli->output) {
        if (!prices && !dumps)
            return cli_fail(cli, FUSEC_USAGE,
                            "nothing to make: give -o FILE, --emit=KIND, --explain or "
                            "--report=FILE.html");
        cli->kind = cli->target ? driver_artifact_kind(cli->target) : FUSEC_PTX;
        if (prices && !dumps) cli->kind = FUSEC_SCHED;
    }
    if (cli->ptxas && !(cli->finish && cli->finish->kind == FUSEC_PTX))
        return cli_fail(cli, FUSEC_USAGE, "--ptxas counts when a cubin is made");
    if (cli->has_kind && !cli->output) cli->output = "-";
    if (!cli->target) cli->target = driver_default_target(cli->kind);
    status = cli_check_card(cli, cli->target);
    if (status) return status;
    if (!driver_kind_fits(cli->kind, cli->target))
        return cli_fail(cli, FUSEC_USAGE, "%s cannot be made for target %s",
                        cli->finish ? cli->finish->name : kind_info(cli->kind)->name,
                        cli->target->name);
    return FUSEC_OK;
}

/* Dumps. */

static void dump_to_file(Compile *compile, PassId pass, const char *text) {
    Cli *cli = compile->cli;
    if (mkdir(cli->dump_to, 0777) != 0 && errno != EEXIST) {
        compile->dump_status =
            cli_fail(cli, FUSEC_FILE, "cannot make folder %s: %s", cli->dump_to, strerror(errno));
        return;
    }
    const PassInfo *info = pass_info(pass);
    const char *path = str_format(cli->arena, "%s/%02d-%s.%s", cli->dump_to, pass + 1, info->name,
                                  info->extension);
    fusec_status status = cli_write(cli, path, text, strlen(text), false);
    if (status) compile->dump_status = status;
}

static void after_pass(void *user, PassId pass, double seconds, const char *text) {
    Compile *compile = user;
    const Cli *cli = compile->cli;
    compile->seconds[pass] = seconds;
    if (!text) return;
    if (cli->print_after >> pass & 1)
        fprintf(stderr, "# after %s\n%s\n", pass_info(pass)->name, text);
    if (cli->dump_to && !compile->dump_status) dump_to_file(compile, pass, text);
}

static void print_times(const Compile *compile) {
    double total = 0;
    for (int pass = 0; pass < PASS_COUNT; pass++) {
        const PassInfo *info = pass_info((PassId)pass);
        fprintf(stderr, "%8.3f ms  %-9s %s\n", compile->seconds[pass] * 1e3, info->name, info->doc);
        total += compile->seconds[pass];
    }
    fprintf(stderr, "%8.3f ms  in all\n", total * 1e3);
}

/* The values of --dim by symbol, -1 for dims without one. NULL after a message when an option is
 * wrong. */
static const int64_t *given_dims(const Compile *compile, const DimTab *dims) {
    Cli *cli = compile->cli;
    int64_t *values = arena_array(cli->arena, int64_t, DIM_MAX_SYMBOLS);
    for (uint32_t i = 0; i < DIM_MAX_SYMBOLS; i++) values[i] = -1;
    for (uint32_t i = 0; i < cli->dims.n; i++) {
        CliPair pair = cli->dims.data[i];
        uint32_t found = 0;
        while (found < dim_n_symbols(dims) &&
               strcmp(dim_symbol_info(dims, found)->name, pair.name) != 0)
            found++;
        if (found == dim_n_symbols(dims) || dim_symbol_info(dims, found)->rule) {
            cli_fail(cli, FUSEC_INPUT, "there is no dim `%s`", pair.name);
            return NULL;
        }
        const DimSymbol *symbol = dim_symbol_info(dims, found);
        int64_t value;
        if (!cli_parse_dim(pair.value, &value) || value < symbol->lo || value > symbol->hi ||
            value % symbol->multiple) {
            const char *multiple =
                symbol->multiple > 1
                    ? str_format(cli->arena, " and is a multiple of %" PRId64, symbol->multiple)
                    : "";
            cli_fail(cli, FUSEC_INPUT, "dim %s cannot be %s: it lies in %" PRId64 "..%" PRId64 "%s",
                     pair.name, pair.value, symbol->lo, symbol->hi, multiple);
            return NULL;
        }
        values[found] = value;
    }
    return values;
}

static fusec_status compile_text(Driver *driver, void *user) {
    Compile *compile = user;
    const char *path = compile->cli->path;
    fusec_status status = driver_parse(driver, strcmp(path, "-") == 0 ? "<stdin>" : path,
                                       compile->text, compile->n_bytes);
    if (status) return status;
    driver->options.dims = given_dims(compile, driver->module->dims);
    if (!driver->options.dims) return FUSEC_INPUT;
    status = driver_build(driver);
    if (!status && compile->cli->report) status = cli_report_text(driver, NULL, &compile->report);
    return status;
}

/* What the weights of a model are named after: an artifact that is written to a file, else the
 * model. */
static const char *written_beside(const Cli *cli) {
    bool is_artifact =
        cli->finish || (cli->target && cli->kind == driver_artifact_kind(cli->target));
    bool is_file = cli->output && strcmp(cli->output, "-") != 0;
    return is_artifact && is_file && !cli->weights ? cli->output : cli->path;
}

static void tell_levels(const Cli *cli) {
    uint32_t n = target_n_levels(cli->target);
    fprintf(stderr, "fusec: %s is for ", cli->output);
    for (uint32_t i = 0; i < n; i++)
        fprintf(stderr, "%s%s",
                i == 0      ? ""
                : i + 1 < n ? ", "
                            : " and ",
                target_level(cli->target, i)->name);
    fprintf(stderr, "\n");
}

static fusec_status write_results(const Compile *compile, const Driver *driver) {
    Cli *cli = compile->cli;
    if (cli->explain) {
        bool is_taken = cli->output && strcmp(cli->output, "-") == 0;
        fputs(driver->ledger, is_taken ? stderr : stdout);
    }
    if (cli->report) {
        fusec_status status =
            cli_write(cli, cli->report, compile->report, strlen(compile->report), false);
        if (status) return status;
    }
    if (!cli->output) return FUSEC_OK;
    if (cli->verbose) tell_levels(cli);
    const CodeBytes *code = &driver->code;
    if (cli->model && written_beside(cli) == cli->output) {
        fusec_status status = cli_write_weights(cli, cli->output);
        if (status) return status;
    }
    if (cli->finish) return cli_write_finished(cli, cli->output, code->data, code->n_bytes);
    return cli_write(cli, cli->output, code->data, code->n_bytes, kind_info(cli->kind)->is_binary);
}

fusec_status cli_compile(Cli *cli) {
    Compile compile = {.cli = cli};
    fusec_status status = settle(cli);
    if (!status && cli_is_onnx(cli->path))
        status = cli_read_onnx(cli, cli_weights_name(cli, written_beside(cli)), &compile.text,
                               &compile.n_bytes);
    else if (!status)
        status = cli_read_source(cli, &compile.text, &compile.n_bytes);
    if (status) return status;
    DriverOptions options = cli_driver_options(cli, cli->target);
    options.kind = cli->kind;
    options.no_fuse = cli->no_fuse;
    options.weights = cli->weights;
    options.explain = cli->explain && !cli->json;
    options.explain_json = cli->explain && cli->json;
    options.plans = cli->report != NULL;
    options.card = cli->card;
    if (cli->print_after || cli->dump_to || cli->time_passes)
        options.watch = (DriverWatch){.user = &compile,
                                      .wants_text = cli->dump_to ? UINT32_MAX : cli->print_after,
                                      .after = after_pass};
    Driver driver;
    if (!driver_init(&driver, &options)) return cli_fail_memory(cli);
    status = cli_guard(cli, &driver, compile_text, &compile);
    if (!status) status = compile.dump_status;
    if (!status && cli->time_passes) print_times(&compile);
    if (!status) status = write_results(&compile, &driver);
    driver_free(&driver);
    return status;
}
