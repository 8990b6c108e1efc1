/* Messages of the program: errors, rendered diagnostics, colours. */
#include "base/nearest.h"
#include "cli/cli.h"

#include <stdio.h>

static const char *paint(const Cli *cli, const char *code) {
    return cli->color ? code : "";
}

void cli_vfail(const Cli *cli, const char *format, va_list args) {
    fprintf(stderr, "fusec: %serror:%s ", paint(cli, "\033[1;31m"), paint(cli, "\033[0m"));
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

fusec_status cli_fail(const Cli *cli, fusec_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    cli_vfail(cli, format, args);
    va_end(args);
    return status;
}

void cli_help(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("  help: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

void cli_help_memory(void) {
    cli_help(
        "`ulimit -v` tells this shell's limit in KiB; a container may have a limit of its own. "
        "Runs want less with smaller dims (--dim).");
}

fusec_status cli_fail_memory(const Cli *cli) {
    cli_fail(cli, FUSEC_MEMORY, "out of memory");
    cli_help_memory();
    return FUSEC_MEMORY;
}

static fusec_status fail_frt(const Cli *cli, const char *before, const char *path,
                             const frt_error *error) {
    fusec_status status = FUSEC_INPUT;
    if (error->status == FRT_E_FILE) status = FUSEC_FILE;
    if ((error->status >= FRT_E_NO_DRIVER && error->status <= FRT_E_HOST_CPU) ||
        error->status == FRT_E_DEVICE_LOST)
        status = FUSEC_TARGET;
    if (error->status == FRT_E_OUT_OF_MEMORY || error->status == FRT_E_THREADS)
        status = FUSEC_MEMORY;
    cli_fail(cli, status, "%s%s%s%s [%s]", before, path, *path ? ": " : "", error->message,
             frt_status_name(error->status));
    if (error->status == FRT_E_OUT_OF_MEMORY && error->cuda == 0) cli_help_memory();
    return status;
}

fusec_status cli_fail_frt(const Cli *cli, const frt_error *error) {
    return fail_frt(cli, "", "", error);
}

fusec_status cli_fail_load(const Cli *cli, const frt_error *error) {
    return fail_frt(cli, "cannot load ", cli->path, error);
}

/* The colour of the severity word after `file:line:col: `; NULL: the line has none. */
static const char *severity_color(const char *line, const char **word, size_t *n_word) {
    static const struct {
        const char *word, *code;
    } severities[] = {{" error: ", "\033[1;31m"},
                      {" warning: ", "\033[1;35m"},
                      {" note: ", "\033[1;36m"},
                      {" help: ", "\033[1;32m"}};
    for (size_t i = 0; i < sizeof severities / sizeof severities[0]; i++) {
        *word = strstr(line, severities[i].word);
        *n_word = strlen(severities[i].word);
        if (*word && (*word == line + 1 || (*word > line && (*word)[-1] == ':')))
            return severities[i].code;
    }
    return NULL;
}

static void print_colored(const char *line) {
    const char *word;
    size_t n_word;
    const char *code = line[0] == ' ' && line[1] == ' ' && line[2] == ' '
                           ? NULL
                           : severity_color(line, &word, &n_word);
    size_t n_blank = strspn(line, " ");
    if (code)
        fprintf(stderr, "\033[1m%.*s%s%.*s\033[0m%s\n", (int)(word - line), line, code, (int)n_word,
                word, word + n_word);
    else if (line[n_blank] == '^' && strspn(line + n_blank + 1, "~") == strlen(line + n_blank + 1))
        fprintf(stderr, "\033[1;32m%s\033[0m\n", line);
    else
        fprintf(stderr, "%s\n", line);
}

/* Prints rendered diagnostics to stderr, coloured if wanted. */
static void cli_print_messages(const Cli *cli, const char *messages) {
    if (!cli->color) {
        fputs(messages, stderr);
        return;
    }
    char *copy = str_format(cli->arena, "%s", messages);
    for (char *line = copy; *line;) {
        char *end = strchr(line, '\n');
        if (end) *end = '\0';
        print_colored(line);
        line = end ? end + 1 : line + strlen(line);
    }
}

/* A source compiled several times has the same warnings each time; they are printed once. */
static fusec_status print_diags(Driver *driver, void *user) {
    Cli *cli = user;
    Text text = {.arena = driver->arena};
    if (driver->diags.n_errors || !cli->has_warned) diag_print(&driver->diags, &text);
    cli_print_messages(cli, text_str(&text));
    cli->has_warned |= driver->diags.n_warnings > 0;
    memset(&driver->diags, 0, sizeof driver->diags);
    driver->diags.arena = driver->arena;
    return FUSEC_OK;
}

fusec_status cli_guard(Cli *cli, Driver *driver, fusec_status (*body)(Driver *, void *),
                       void *user) {
    fusec_status status = driver_guard(driver, body, user);
    if (driver->failure) {
        if (status == FUSEC_MEMORY) return cli_fail_memory(cli);
        cli_fail(cli, status, "%s", driver->failure);
        cli_help("This is a mistake in fusec; please report it with the source and the "
                 "output of `fusec --version --verbose`.");
        return status;
    }
    fusec_status printed = driver_guard(driver, print_diags, cli);
    return status ? status : printed;
}

const char *cli_nearest(const char *name, size_t n, CliNameAt name_at) {
    Nearest nearest = nearest_to(name);
    for (size_t i = 0; i < n; i++) nearest_try(&nearest, name_at(i));
    return nearest.best;
}
