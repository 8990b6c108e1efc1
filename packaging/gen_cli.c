/* Prints one part of the man page or of a shell's completions, made from the program's own tables:
 * `gen_cli PART`. Kinds and targets are not printed: the completions ask the installed program for
 * them. */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

static const char passes[] =
#define PASS(sym, name, scope, run, extension, requires, leaves, modes, doc) name " "
#include "pipeline/passes.def"
    "all";

static bool has(int command, int option) {
    return cli_command_has((CliCommand)command, (OptionId)option);
}

/* Man pages. */

/* Dashes are ASCII dashes, `code` is bold. */
static void print_roff(const char *text) {
    bool is_bold = false;
    for (; *text; text++) {
        if (*text == '`') {
            is_bold = !is_bold;
            fputs(is_bold ? "\\fB" : "\\fR", stdout);
        } else if (*text == '-') {
            fputs("\\-", stdout);
        } else if (*text == '\\') {
            fputs("\\e", stdout);
        } else {
            putchar(*text);
        }
    }
}

static void print_synopsis(void) {
    for (int i = 0; i < CLI_N_COMMANDS; i++) {
        fputs(i ? ".br\n" : "", stdout);
        print_roff(cli_commands[i].use);
        puts(" [\\fIOPTION\\fR...]");
    }
}

static void print_maCLI_N_COMMANDS(void) {
    for (int i = 0; i < CLI_N_COMMANDS; i++) {
        fputs(".TP\n.B ", stdout);
        print_roff(cli_commands[i].use);
        putchar('\n');
        print_roff(cli_commands[i].doc);
        putchar('\n');
    }
}

static void print_man_options(void) {
    for (int id = 1; id < OPTION_COUNT; id++) {
        puts(".TP");
        if (cli_options[id].letter) printf("\\fB\\-%c\\fR, ", cli_options[id].letter);
        fputs("\\fB\\-\\-", stdout);
        print_roff(cli_options[id].name);
        fputs("\\fR", stdout);
        if (cli_options[id].argument) {
            fputs("=\\fI", stdout);
            print_roff(cli_options[id].argument);
            fputs("\\fR", stdout);
        }
        putchar('\n');
        print_roff(cli_options[id].doc);
        const char *separator = " (";
        for (int i = 0; i < CLI_N_COMMANDS; i++) {
            if (!has(i, id)) continue;
            printf("%s%s", separator, i ? cli_commands[i].name : "compile");
            separator = ", ";
        }
        puts(")");
    }
}

static void print_man_exits(void) {
    print_roff(cli_exit_codes);
    putchar('\n');
}

/* Completions. */

/* What may follow an option, as each shell is told it. */
typedef enum { VALUE_NONE, VALUE_ANY, VALUE_FILE, VALUE_FOLDER, VALUE_LIST, VALUE_ASK } ValueKind;

typedef struct Value {
    ValueKind kind;
    const char *text; /* LIST: words; ASK: the option that lists them */
} Value;

static Value value_of(int id) {
    static char words[64];
    const char *argument = cli_options[id].argument;
    if (!argument) return (Value){VALUE_NONE, NULL};
    if (id == OPTION_EMIT) return (Value){VALUE_ASK, "--list-emit"};
    if (id == OPTION_TARGET) return (Value){VALUE_ASK, "--list-targets"};
    if (id == OPTION_PRINT_AFTER) return (Value){VALUE_LIST, passes};
    if (id == OPTION_COLOR) return (Value){VALUE_LIST, "auto always never"};
    if (strcmp(argument, "FILE") == 0) return (Value){VALUE_FILE, NULL};
    if (strcmp(argument, "DIR") == 0) return (Value){VALUE_FOLDER, NULL};
    if (!strchr(argument, '|')) return (Value){VALUE_ANY, NULL};
    snprintf(words, sizeof words, "%s", argument);
    for (char *bar = words; (bar = strchr(bar, '|')) != NULL;) *bar = ' ';
    return (Value){VALUE_LIST, words};
}

static void print_names(void) {
    for (int i = 1; i < CLI_N_COMMANDS; i++) printf("%s%s", i > 1 ? " " : "", cli_commands[i].name);
}

static void print_bash_commands(void) {
    fputs("    local commands='", stdout);
    print_names();
    puts("'");
}

static void print_bash_values(void) {
    for (int id = 1; id < OPTION_COUNT; id++) {
        Value value = value_of(id);
        if (value.kind == VALUE_NONE) continue;
        fputs("    ", stdout);
        if (cli_options[id].letter) printf("-%c | ", cli_options[id].letter);
        printf("--%s) kind=", cli_options[id].name);
        switch (value.kind) {
        case VALUE_NONE:
        case VALUE_ANY:
            printf("any");
            break;
        case VALUE_FILE:
            printf("file");
            break;
        case VALUE_FOLDER:
            printf("folder");
            break;
        case VALUE_LIST:
            printf("words words='%s'", value.text);
            break;
        case VALUE_ASK:
            printf("words words=$(_fusec_ask \"$1\" %s)", value.text);
            break;
        }
        puts(" ;;");
    }
}

static void print_bash_options(void) {
    for (int i = 0; i < CLI_N_COMMANDS; i++) {
        printf("        '%s') words='", cli_commands[i].name);
        const char *separator = "";
        for (int id = 1; id < OPTION_COUNT; id++) {
            if (!has(i, id)) continue;
            printf("%s--%s%s", separator, cli_options[id].name,
                   cli_options[id].argument ? "=" : "");
            separator = " ";
        }
        puts("' ;;");
    }
}

/* Inside single quotes; `special` characters get a backslash before them. */
static void print_quoted(const char *text, const char *special) {
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (strchr(special, *text)) putchar('\\');
        putchar(*text);
    }
}

static void print_zsh_option(int id) {
    Value value = value_of(id);
    fputs("        '", stdout);
    printf("--%s%s[", cli_options[id].name, value.kind == VALUE_NONE ? "" : "=");
    print_quoted(cli_options[id].doc, "[]:\\");
    putchar(']');
    if (value.kind != VALUE_NONE) {
        putchar(':');
        print_quoted(cli_options[id].argument, ":\\");
        putchar(':');
    }
    switch (value.kind) {
    case VALUE_NONE:
    case VALUE_ANY:
        break;
    case VALUE_FILE:
        printf("_files");
        break;
    case VALUE_FOLDER:
        printf("_files -/");
        break;
    case VALUE_LIST:
        printf("(%s)", value.text);
        break;
    case VALUE_ASK:
        printf(" _fusec_ask %s", value.text);
        break;
    }
    puts("'");
    if (!cli_options[id].letter) return;
    printf("        '-%c[", cli_options[id].letter);
    print_quoted(cli_options[id].doc, "[]:\\");
    puts(value.kind == VALUE_FILE ? "]:FILE:_files'" : "]'");
}

static void print_zsh_options(void) {
    for (int i = 0; i < CLI_N_COMMANDS; i++) {
        printf("    %s)\n        options=(\n", i ? cli_commands[i].name : "compile");
        for (int id = 1; id < OPTION_COUNT; id++)
            if (has(i, id)) print_zsh_option(id);
        puts("        )\n        ;;");
    }
}

static void print_zsh_commands(void) {
    puts("    commands=(");
    for (int i = 1; i < CLI_N_COMMANDS; i++) {
        printf("        '%s:", cli_commands[i].name);
        print_quoted(cli_commands[i].doc, ":\\");
        puts("'");
    }
    puts("    )");
}

static void print_fish_commands(void) {
    fputs("set -l commands ", stdout);
    print_names();
    putchar('\n');
    for (int i = 1; i < CLI_N_COMMANDS; i++) {
        printf("complete -c fusec -n \"not __fish_seen_subcommand_from $commands\" -a %s -d '",
               cli_commands[i].name);
        print_quoted(cli_commands[i].doc, "\\");
        puts("'");
    }
}

/* An option that compiling knows is offered unless a command that lacks it was named; any other
 * where one that has it was. */
static void print_fish_condition(int id) {
    bool compiles = has(0, id);
    int n = 0;
    for (int i = 1; i < CLI_N_COMMANDS; i++) {
        if (has(i, id) == compiles) continue;
        if (n++ == 0) printf(" -n '%s__fish_seen_subcommand_from", compiles ? "not " : "");
        printf(" %s", cli_commands[i].name);
    }
    if (n) putchar('\'');
}

static void print_fish_options(void) {
    for (int id = 1; id < OPTION_COUNT; id++) {
        Value value = value_of(id);
        printf("complete -c fusec -l %s", cli_options[id].name);
        if (cli_options[id].letter) printf(" -s %c", cli_options[id].letter);
        print_fish_condition(id);
        switch (value.kind) {
        case VALUE_NONE:
            break;
        case VALUE_ANY:
            printf(" -x");
            break;
        case VALUE_FILE:
            printf(" -r -F");
            break;
        case VALUE_FOLDER:
            printf(" -x -a '(__fish_complete_directories)'");
            break;
        case VALUE_LIST:
            printf(" -x -a '%s'", value.text);
            break;
        case VALUE_ASK:
            printf(" -x -a '(__fusec_ask %s)'", value.text);
            break;
        }
        fputs(" -d '", stdout);
        print_quoted(cli_options[id].doc, "\\");
        puts("'");
    }
}

static const struct {
    const char *name;
    void (*print)(void);
} parts[] = {
    {"synopsis", print_synopsis},           {"man-commands", print_maCLI_N_COMMANDS},
    {"man-options", print_man_options},     {"man-exits", print_man_exits},
    {"bash-commands", print_bash_commands}, {"bash-values", print_bash_values},
    {"bash-options", print_bash_options},   {"zsh-commands", print_zsh_commands},
    {"zsh-options", print_zsh_options},     {"fish-commands", print_fish_commands},
    {"fish-options", print_fish_options},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc == 2 && i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(argv[1], parts[i].name) != 0) continue;
        parts[i].print();
        return fflush(stdout) || ferror(stdout) ? 3 : 0;
    }
    fputs("use: gen_cli PART\n", stderr);
    return 2;
}
