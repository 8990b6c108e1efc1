/* The command line: parsing, help, lists, messages. */
#include "cli/cli.h"

#include "cli/data.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ends parsing with an error. */
STR_PRINTF(3, 4)
static bool fail(Cli *cli, fusec_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    cli_vfail(cli, format, args);
    va_end(args);
    cli->status = status;
    return false;
}

static bool fail_unknown(Cli *cli, fusec_status status, const char *what, const char *name,
                         const char *nearest, const char *list) {
    if (nearest)
        return fail(cli, status, "there is no %s `%s`; did you mean `%s`?", what, name, nearest);
    return fail(cli, status, "there is no %s `%s`; %s lists them", what, name, list);
}

/* Help and lists. */

static void print_help(void) {
    puts("fusec compiles graphs of tensor operations into fused kernels.\n");
    for (int i = 0; i < CLI_N_COMMANDS; i++)
        printf("  %-30s %s\n", cli_commands[i].use, cli_commands[i].doc);
    puts("\nOptions (C compile, R run, V verify, B bench, I inspect, M import):");
    for (int id = 1; id < OPTION_COUNT; id++) {
        const OptionInfo *info = &cli_options[id];
        char left[40];
        int n = snprintf(left, sizeof left, "%c%c %s--%s%s%s", info->letter ? '-' : ' ',
                         info->letter ? info->letter : ' ', info->letter ? "" : " ", info->name,
                         info->argument ? "=" : "", info->argument ? info->argument : "");
        printf("  %-*s %-5s %s\n", n < 26 ? 26 : n, left, info->commands, info->doc);
    }
    printf("\n%s\n", cli_exit_codes);
}

static void list_emit(void) {
    for (int kind = 0; kind < FUSEC_KIND_COUNT; kind++) {
        const KindInfo *info = kind_info((fusec_kind)kind);
        printf("%-8s %-5s %s\n", info->name, info->extension, info->doc);
    }
    for (int i = 0; i < CLI_N_FINISHES; i++)
        printf("%-8s %-5s %s\n", cli_finishes[i].name, cli_finishes[i].extension,
               cli_finishes[i].doc);
}

static void list_targets(void) {
    const char *why_not = NULL;
    const Target *gpu = cli_native_gpu(&why_not);
    const Target *cpu = codegen_native_cpu();
    for (size_t i = 0; fusec_target_name(i); i++)
        printf("%-10s %s\n", fusec_target_name(i), fusec_target_doc(i));
    printf("%-10s this machine's CPU: %s\n", "cpu-native", cpu ? cpu->name : "none of the above");
    printf("%-10s this machine's GPU, else its CPU: ", "native");
    if (gpu)
        printf("%s\n", gpu->name);
    else
        printf("%s (no GPU: %s)\n", cpu ? cpu->name : "none of the above", why_not);
}

static void print_version(const Cli *cli) {
    printf("fusec %s\n", fusec_version());
    if (!cli->verbose) return;
    printf("LLVM %s\nruntime %s\n", fusec_llvm_version(), frt_version());
#if defined(__clang__)
    printf("built by clang %s\n", __clang_version__);
#elif defined(__GNUC__)
    printf("built by gcc %s\n", __VERSION__);
#endif
    list_targets();
}

/* Parsing. */

static const char *target_name_at(size_t index) {
    if (index < TARGET_COUNT) return fusec_target_name(index);
    return index == TARGET_COUNT ? "cpu-native" : "native";
}

static bool parse_target(Cli *cli, const char *name) {
    const char *why_not = NULL;
    bool is_native = strcmp(name, "native") == 0;
    cli->target = target_by_name(name);
    if (is_native) cli->target = cli_native_gpu(&why_not);
    if ((is_native && !cli->target) || strcmp(name, "cpu-native") == 0) {
        cli->target = codegen_native_cpu();
        if (!cli->target)
            return fail(cli, FUSEC_TARGET,
                        "this CPU is older than x86-64-v3, the least that "
                        "fusec compiles for");
    }
    if (cli->target) return true;
    return fail_unknown(cli, FUSEC_TARGET, "target", name,
                        cli_nearest(name, TARGET_COUNT + 2, target_name_at), "--list-targets");
}

static const char *kind_name_at(size_t index) {
    return index < FUSEC_KIND_COUNT ? kind_info((fusec_kind)index)->name
                                    : cli_finishes[index - FUSEC_KIND_COUNT].name;
}

/* The kind whose files have the extension `name`, without its dot; else the nearest kind. */
static const char *meant_kind(Cli *cli, const char *name) {
    const char *extension = str_format(cli->arena, ".%s", name);
    for (int kind = 0; kind < FUSEC_KIND_COUNT; kind++)
        if (strcmp(extension, kind_info((fusec_kind)kind)->extension) == 0)
            return kind_info((fusec_kind)kind)->name;
    return cli_nearest(name, FUSEC_KIND_COUNT + CLI_N_FINISHES, kind_name_at);
}

static bool parse_emit(Cli *cli, const char *name) {
    cli->has_kind = true;
    cli->finish = cli_finish_by_name(name);
    if (cli->finish) cli->kind = cli->finish->kind;
    if (cli->finish) return true;
    for (int kind = 0; kind < FUSEC_KIND_COUNT; kind++) {
        cli->kind = (fusec_kind)kind;
        if (strcmp(name, kind_info(cli->kind)->name) == 0) return true;
    }
    return fail_unknown(cli, FUSEC_USAGE, "kind of output", name, meant_kind(cli, name),
                        "--list-emit");
}

static const char *pass_name_at(size_t index) {
    return index < PASS_COUNT ? pass_info((PassId)index)->name : "all";
}

static bool parse_print_after(Cli *cli, const char *name) {
    for (int pass = 0; pass < PASS_COUNT; pass++)
        if (strcmp(name, "all") == 0 || strcmp(name, pass_info((PassId)pass)->name) == 0)
            cli->print_after |= 1u << pass;
    if (cli->print_after) return true;
    return fail_unknown(cli, FUSEC_USAGE, "pass", name,
                        cli_nearest(name, PASS_COUNT + 1, pass_name_at), "--time-passes");
}

static bool parse_pair(Cli *cli, OptionId id, CliPairs *pairs, const char *text) {
    const char *equals = strchr(text, '=');
    bool is_file = id != OPTION_DIM && id != OPTION_CONSTANT;
    if (!equals || equals == text || (id != OPTION_CONSTANT && !equals[1]) ||
        (is_file && (equals[1] != '@' || !equals[2])))
        return fail(cli, FUSEC_USAGE, "--%s wants %s, not `%s`", cli_options[id].name,
                    cli_options[id].argument, text);
    CliPair pair = {.name = str_format(cli->arena, "%.*s", (int)(equals - text), text),
                    .value = equals + 1 + is_file};
    for (uint32_t i = 0; i < pairs->n && id != OPTION_OUTPUT; i++)
        if (strcmp(pairs->data[i].name, pair.name) == 0)
            return fail(cli, FUSEC_USAGE, "--%s gives %s twice", cli_options[id].name, pair.name);
    vec_push(cli->arena, pairs, pair);
    return true;
}

bool cli_parse_dim(const char *text, int64_t *value) {
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return !errno && *text && text[strspn(text, "0123456789")] == '\0';
}

static bool parse_count(Cli *cli, OptionId id, const char *text, int64_t min, int64_t max,
                        int64_t *count) {
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || *end || end == text || number < min || number > max)
        return fail(cli, FUSEC_USAGE, "--%s wants a number from %lld to %lld, not `%s`",
                    cli_options[id].name, (long long)min, (long long)max, text);
    *count = number;
    return true;
}

/* Takes fractions, because most sources compile within a second. */
static bool parse_time_limit(Cli *cli, const char *text) {
    enum { MOST_SECONDS = 1000000 };
    const double least = 0.001;
    char *end;
    double seconds = strtod(text, &end);
    bool is_decimal = *text && text[strspn(text, "0123456789.")] == '\0' && !*end;
    if (!is_decimal || seconds < least || seconds > MOST_SECONDS)
        return fail(cli, FUSEC_USAGE, "--time-limit wants seconds from %g to %d, not `%s`", least,
                    MOST_SECONDS, text);
    cli_limit_time(seconds);
    return true;
}

static const char *data_name_at(size_t index) {
    return data_info((DataKind)index)->name;
}

/* Parses comma-separated names. */
static bool parse_data(Cli *cli, const char *names) {
    while (*names) {
        const char *name = str_format(cli->arena, "%.*s", (int)strcspn(names, ","), names);
        uint32_t kind = 0;
        while (kind < DATA_COUNT && strcmp(name, data_name_at(kind)) != 0) kind++;
        if (kind == DATA_COUNT)
            return fail_unknown(cli, FUSEC_USAGE, "kind of data", name,
                                cli_nearest(name, DATA_COUNT, data_name_at), "--help");
        cli->data |= 1u << kind;
        names += strlen(name);
        names += *names == ',';
    }
    return cli->data || fail(cli, FUSEC_USAGE, "--data wants names, as in --data=ramps,special");
}

static bool parse_color(Cli *cli, const char *when) {
    cli->color = strcmp(when, "always") == 0;
    if (cli->color || strcmp(when, "never") == 0) return true;
    if (strcmp(when, "auto") != 0)
        return fail(cli, FUSEC_USAGE, "--color wants auto, always or never, not `%s`", when);
    const char *none = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
    const char *wanted = getenv("CLICOLOR");
    if (none && *none) return true;
    if (force && *force && strcmp(force, "0") != 0)
        cli->color = true;
    else
        cli->color = isatty(STDERR_FILENO) && !(wanted && strcmp(wanted, "0") == 0);
    return true;
}

static bool parse_device(Cli *cli, const char *name) {
    cli->device = strcmp(name, "cuda") == 0 ? DEVICE_IS_CUDA : DEVICE_IS_CPU;
    if (cli->device == DEVICE_IS_CUDA || strcmp(name, "cpu") == 0) return true;
    return fail(cli, FUSEC_USAGE, "--device wants cuda or cpu, not `%s`", name);
}

static bool parse_once(Cli *cli, OptionId id, const char **slot, const char *value) {
    if (*slot) return fail(cli, FUSEC_USAGE, "--%s is given twice", cli_options[id].name);
    *slot = value;
    return true;
}

static bool parse_weights(Cli *cli, const char *path) {
    bool is_folder = *path && path[strlen(path) - 1] == '/';
    if (!*path || (is_folder && cli->command == CLI_COMPILE))
        return fail(cli, FUSEC_USAGE, "--weights wants a file%s, not `%s`",
                    cli->command == CLI_COMPILE ? "'s name" : " or a folder", path);
    return parse_once(cli, OPTION_WEIGHTS, &cli->weights, path);
}

/* Handles an option without an argument; false for options that only print. */
static bool parse_flag(Cli *cli, OptionId id) {
    if (id == OPTION_LIST_EMIT) list_emit();
    if (id == OPTION_LIST_TARGETS) list_targets();
    if (id == OPTION_HELP) print_help();
    if (id == OPTION_VERSION) print_version(cli);
    if (id == OPTION_NO_FUSE) return cli->no_fuse = true;
    if (id == OPTION_REWRITE || id == OPTION_NO_REWRITE) {
        cli->rewrites = id == OPTION_REWRITE ? FUSEC_REWRITES_ON : FUSEC_REWRITES_OFF;
        return true;
    }
    if (id == OPTION_EXPLAIN) return cli->explain = true;
    if (id == OPTION_TIME_PASSES) return cli->time_passes = true;
    if (id == OPTION_JSON) return cli->json = true;
    if (id == OPTION_REPLAY) return cli->replay = true;
    if (id == OPTION_IN_ORDER) return cli->in_order = true;
    if (id == OPTION_CACHE) return cli->cache = true;
    if (id == OPTION_LOAD_ALL) return cli->load_all = true;
    return id == OPTION_VERBOSE; /* look_ahead has handled --verbose */
}

static bool parse_number(Cli *cli, OptionId id, const char *value) {
    int64_t count = 0;
    int64_t max = id == OPTION_SEED ? INT64_MAX : id == OPTION_THREADS ? 4096 : 1000000;
    bool has_none = id == OPTION_SEED || id == OPTION_THREADS;
    if (!parse_count(cli, id, value, !has_none, max, &count)) return false;
    if (id == OPTION_SEED) cli->seed = (uint64_t)count;
    if (id == OPTION_THREADS) cli->n_threads = (int32_t)count;
    if (id == OPTION_RUNS) cli->n_runs = (int32_t)count;
    return true;
}

static bool parse_numerics(Cli *cli, const char *mode) {
    return driver_numerics_by_name(mode, &cli->is_fast) ||
           fail(cli, FUSEC_USAGE, "--numerics wants strict or fast, not `%s`", mode);
}

static const char *card_name_at(size_t index) {
    return card_get((CardId)index)->name;
}

static bool parse_card(Cli *cli, const char *name) {
    cli->card = card_by_name(name);
    if (cli->card) return true;
    const char *nearest = cli_nearest(name, CARD_COUNT, card_name_at);
    return fail(cli, FUSEC_USAGE, "there is no card `%s`; %s%s%s", name,
                nearest ? "did you mean `" : "there are h200, a100, gpu and cpu",
                nearest ? nearest : "", nearest ? "`?" : "");
}

static bool parse_valued(Cli *cli, OptionId id, const char *value) {
    if (id == OPTION_OUTPUT_FILE) return parse_once(cli, id, &cli->output, value);
    if (id == OPTION_REPORT) return parse_once(cli, id, &cli->report, value);
    if (id == OPTION_PTXAS) return parse_once(cli, id, &cli->ptxas, value);
    if (id == OPTION_WEIGHTS) return parse_weights(cli, value);
    if (id == OPTION_DUMP_TO) return parse_once(cli, id, &cli->dump_to, value);
    if (id == OPTION_LEVEL) return parse_once(cli, id, &cli->level, value);
    if (id == OPTION_GRAPH) return parse_once(cli, id, &cli->graph, value);
    if (id == OPTION_EMIT) return parse_emit(cli, value);
    if (id == OPTION_TARGET) return parse_target(cli, value);
    if (id == OPTION_CARD) return parse_card(cli, value);
    if (id == OPTION_NUMERICS) return parse_numerics(cli, value);
    if (id == OPTION_PRINT_AFTER) return parse_print_after(cli, value);
    if (id == OPTION_DEVICE) return parse_device(cli, value);
    if (id == OPTION_INPUT) return parse_pair(cli, id, &cli->inputs, value);
    if (id == OPTION_CONSTANT) return parse_pair(cli, id, &cli->constants, value);
    if (id == OPTION_OUTPUT) return parse_pair(cli, id, &cli->outputs, value);
    if (id == OPTION_DATA) return parse_data(cli, value);
    if (id == OPTION_DIM) return parse_pair(cli, id, &cli->dims, value);
    if (id == OPTION_COLOR) return parse_color(cli, value);
    if (id == OPTION_TIME_LIMIT) return parse_time_limit(cli, value);
    return parse_number(cli, id, value);
}

/* What getopt gives for an option without a letter, less the option's id. */
enum { FIRST_LONG = 256 };

static OptionId option_by_letter(int letter) {
    for (int id = 1; id < OPTION_COUNT; id++)
        if (cli_options[id].letter && cli_options[id].letter == letter) return (OptionId)id;
    return OPTION_NONE;
}

static const char *option_name_at(size_t index) {
    return cli_options[index + 1].name;
}

/* `error` is getopt's: `:` or `?`. `word` is the word that getopt has read last; a letter may stand
 * in the word after it. */
static bool fail_option(Cli *cli, int error, const char *word) {
    bool is_letter = optopt != 0 && optopt < FIRST_LONG;
    if (is_letter) word = str_format(cli->arena, "-%c", optopt);
    if (error == ':') return fail(cli, FUSEC_USAGE, "`%s` lacks its argument", word);
    if (is_letter)
        return fail(cli, FUSEC_USAGE, "there is no option `%s`; fusec --help lists them", word);
    char *name = str_format(cli->arena, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    const char *nearest = cli_nearest(name, OPTION_COUNT - 1, option_name_at);
    for (int id = 1; id < OPTION_COUNT; id++)
        if (strcmp(name, cli_options[id].name) == 0)
            return fail(cli, FUSEC_USAGE, "--%s takes no argument", name);
    if (nearest)
        return fail(cli, FUSEC_USAGE, "there is no option `--%s`; did you mean `--%s`?", name,
                    nearest);
    return fail(cli, FUSEC_USAGE, "there is no option `--%s`; fusec --help lists them", name);
}

/* --verbose changes --version even if it comes later. */
static void look_ahead(Cli *cli, int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--verbose") == 0 || strcmp(argv[i], "-v") == 0) cli->verbose = true;
}

static CliCommand parse_command(int *argc, char ***argv) {
    for (int i = 1; *argc > 1 && i < CLI_N_COMMANDS; i++) {
        if (strcmp((*argv)[1], cli_commands[i].name) != 0) continue;
        --*argc;
        ++*argv;
        return (CliCommand)i;
    }
    return CLI_COMPILE;
}

static bool parse_options(Cli *cli, int argc, char **argv) {
    struct option longs[OPTION_COUNT] = {{0}};
    for (int id = 1; id < OPTION_COUNT; id++)
        longs[id - 1] = (struct option){.name = cli_options[id].name,
                                        .has_arg = cli_options[id].argument != NULL,
                                        .val = FIRST_LONG + id};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":o:hv", longs, NULL)) != -1;) {
        if (c == '?' || c == ':') return fail_option(cli, c, argv[optind - 1]);
        OptionId id = c >= FIRST_LONG ? (OptionId)(c - FIRST_LONG) : option_by_letter(c);
        if (!cli_command_has(cli->command, id))
            return fail(cli, FUSEC_USAGE, "--%s is no option of fusec %s", cli_options[id].name,
                        cli->command ? cli_commands[cli->command].name : "when it compiles");
        bool goes_on = optarg ? parse_valued(cli, id, optarg) : parse_flag(cli, id);
        if (!goes_on) return false;
    }
    return true;
}

static const char *command_name_at(size_t index) {
    return cli_commands[index + 1].name;
}

/* A word without a period or slash that is no file is reported as an unknown command. */
static bool check_word(Cli *cli, const char *word) {
    if (cli->command != CLI_COMPILE || strpbrk(word, "./") || strcmp(word, "-") == 0 ||
        access(word, F_OK) == 0)
        return true;
    return fail_unknown(cli, FUSEC_USAGE, "command or file", word,
                        cli_nearest(word, CLI_N_COMMANDS - 1, command_name_at), "fusec --help");
}

bool cli_parse(Cli *cli, int argc, char **argv) {
    cli->seed = 1;
    cli->includes = (IncludeReader){cli_read_include, cli};
    parse_color(cli, "auto");
    look_ahead(cli, argc, argv);
    cli->command = parse_command(&argc, &argv);
    if (!parse_options(cli, argc, argv)) return false;
    if (argc > optind && !check_word(cli, argv[optind])) return false;
    if (argc - optind != 1)
        return fail(cli, FUSEC_USAGE,
                    argc == optind ? "no input file; use: %s" : "more than one input file; use: %s",
                    cli_commands[cli->command].use);
    cli->path = argv[optind];
    return !cli->constants.n || cli_is_onnx(cli->path) ||
           fail(cli, FUSEC_USAGE, "--constant is for inputs of ONNX models, which %s is not",
                cli->path);
}
