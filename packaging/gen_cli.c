/* Prints one part of the man page or of a shell's completions, made from the program's own tables:
 * `fusec --help | gen_cli PART`. Options and passes come from the compiler's lists; commands and
 * exit codes from the help on standard input, because their table is private to the program. Kinds
 * and targets are not printed: the completions ask the installed program for them. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef enum {
    OPTION_NONE = 0,
#define OPTION(sym, name, letter, argument, commands, doc) OPTION_##sym,
#include "cli_options.def"
    OPTION_COUNT
} OptionId;

static const struct {
    const char *name;
    char letter;
    const char *argument, *commands, *doc;
} options[OPTION_COUNT] = {
#define OPTION(sym, name, letter, argument, commands, doc) \
    [OPTION_##sym] = {name, letter, argument, commands, doc},
#include "cli_options.def"
};

static const char passes[] =
#define PASS(sym, name, extension, doc) name " "
#include "passes.def"
    "all";

/* What the help says: the first command compiles and has no name. */
enum { MAX_COMMANDS = 16 };
static struct {
    char name[32], use[80], doc[120];
    char letter;
} commands[MAX_COMMANDS];
static int n_commands;
static char exits[512];

/* "  fusec run MODEL.g|ARTIFACT      run once": use and doc are two blanks apart. */
static bool read_command(const char *line) {
    if (strncmp(line, "  fusec ", 8) != 0 || n_commands == MAX_COMMANDS) return false;
    const char *gap = strstr(line + 2, "  ");
    size_t n_use = gap ? (size_t)(gap - line - 2) : 0;
    if (n_use == 0 || n_use >= sizeof commands[0].use) return false;
    memcpy(commands[n_commands].use, line + 2, n_use);
    snprintf(commands[n_commands].doc, sizeof commands[0].doc, "%s", gap + strspn(gap, " "));
    const char *word = line + 8;
    size_t n_word = strcspn(word, " ");
    bool is_command = *word >= 'a' && *word <= 'z' && n_word < sizeof commands[0].name;
    if (is_command) memcpy(commands[n_commands].name, word, n_word);
    n_commands++;
    return true;
}

/* "Options (C compile, R run, ...):" tells the letters, in the order of the commands. */
static void read_letters(const char *line) {
    const char *at = strchr(line, '(');
    for (int i = 0; at && i < n_commands; i++) {
        commands[i].letter = at[1] == ' ' ? at[2] : at[1];
        at = strchr(at + 1, ',');
    }
}

static bool read_help(FILE *file) {
    char line[256];
    bool in_exits = false;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (read_command(line)) continue;
        if (strncmp(line, "Options (", 9) == 0) read_letters(line);
        in_exits |= strncmp(line, "Exit codes: ", 12) == 0;
        size_t n = strlen(exits);
        if (in_exits) snprintf(exits + n, sizeof exits - n, "%s%s", n ? " " : "", line);
    }
    for (int i = 0; i < n_commands; i++)
        if (!commands[i].letter) return false;
    return n_commands > 1 && !commands[0].name[0] && exits[0];
}

static bool counts(int id, int command) {
    return strchr(options[id].commands, commands[command].letter) != NULL;
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
    for (int i = 0; i < n_commands; i++) {
        fputs(i ? ".br\n" : "", stdout);
        print_roff(commands[i].use);
        puts(" [\\fIOPTION\\fR...]");
    }
}

static void print_man_commands(void) {
    for (int i = 0; i < n_commands; i++) {
        fputs(".TP\n.B ", stdout);
        print_roff(commands[i].use);
        putchar('\n');
        print_roff(commands[i].doc);
        putchar('\n');
    }
}

static void print_man_options(void) {
    for (int id = 1; id < OPTION_COUNT; id++) {
        puts(".TP");
        if (options[id].letter) printf("\\fB\\-%c\\fR, ", options[id].letter);
        fputs("\\fB\\-\\-", stdout);
        print_roff(options[id].name);
        fputs("\\fR", stdout);
        if (options[id].argument) {
            fputs("=\\fI", stdout);
            print_roff(options[id].argument);
            fputs("\\fR", stdout);
        }
        putchar('\n');
        print_roff(options[id].doc);
        const char *separator = " (";
        for (int i = 0; i < n_commands; i++) {
            if (!counts(id, i)) continue;
            printf("%s%s", separator, i ? commands[i].name : "compile");
            separator = ", ";
        }
        puts(")");
    }
}

static void print_man_exits(void) {
    print_roff(exits);
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
    const char *argument = options[id].argument;
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
    for (int i = 1; i < n_commands; i++) printf("%s%s", i > 1 ? " " : "", commands[i].name);
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
        if (options[id].letter) printf("-%c | ", options[id].letter);
        printf("--%s) kind=", options[id].name);
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
    for (int i = 0; i < n_commands; i++) {
        printf("        '%s') words='", commands[i].name);
        const char *separator = "";
        for (int id = 1; id < OPTION_COUNT; id++) {
            if (!counts(id, i)) continue;
            printf("%s--%s%s", separator, options[id].name, options[id].argument ? "=" : "");
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
    printf("--%s%s[", options[id].name, value.kind == VALUE_NONE ? "" : "=");
    print_quoted(options[id].doc, "[]:\\");
    putchar(']');
    if (value.kind != VALUE_NONE) {
        putchar(':');
        print_quoted(options[id].argument, ":\\");
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
    if (!options[id].letter) return;
    printf("        '-%c[", options[id].letter);
    print_quoted(options[id].doc, "[]:\\");
    puts(value.kind == VALUE_FILE ? "]:FILE:_files'" : "]'");
}

static void print_zsh_options(void) {
    for (int i = 0; i < n_commands; i++) {
        printf("    %s)\n        options=(\n", i ? commands[i].name : "compile");
        for (int id = 1; id < OPTION_COUNT; id++)
            if (counts(id, i)) print_zsh_option(id);
        puts("        )\n        ;;");
    }
}

static void print_zsh_commands(void) {
    puts("    commands=(");
    for (int i = 1; i < n_commands; i++) {
        printf("        '%s:", commands[i].name);
        print_quoted(commands[i].doc, ":\\");
        puts("'");
    }
    puts("    )");
}

static void print_fish_commands(void) {
    fputs("set -l commands ", stdout);
    print_names();
    putchar('\n');
    for (int i = 1; i < n_commands; i++) {
        printf("complete -c fusec -n \"not __fish_seen_subcommand_from $commands\" -a %s -d '",
               commands[i].name);
        print_quoted(commands[i].doc, "\\");
        puts("'");
    }
}

/* An option that compiling knows is offered unless a command that lacks it was named; any other
 * where one that has it was. */
static void print_fish_condition(int id) {
    bool compiles = counts(id, 0);
    int n = 0;
    for (int i = 1; i < n_commands; i++) {
        if (counts(id, i) == compiles) continue;
        if (n++ == 0) printf(" -n '%s__fish_seen_subcommand_from", compiles ? "not " : "");
        printf(" %s", commands[i].name);
    }
    if (n) putchar('\'');
}

static void print_fish_options(void) {
    for (int id = 1; id < OPTION_COUNT; id++) {
        Value value = value_of(id);
        printf("complete -c fusec -l %s", options[id].name);
        if (options[id].letter) printf(" -s %c", options[id].letter);
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
        print_quoted(options[id].doc, "\\");
        puts("'");
    }
}

static const struct {
    const char *name;
    void (*print)(void);
} parts[] = {
    {"synopsis", print_synopsis},           {"man-commands", print_man_commands},
    {"man-options", print_man_options},     {"man-exits", print_man_exits},
    {"bash-commands", print_bash_commands}, {"bash-values", print_bash_values},
    {"bash-options", print_bash_options},   {"zsh-commands", print_zsh_commands},
    {"zsh-options", print_zsh_options},     {"fish-commands", print_fish_commands},
    {"fish-options", print_fish_options},
};

int main(int argc, char **argv) {
    if (argc == 2 && !read_help(stdin)) {
        fputs("gen_cli: the help on standard input has another form than expected\n", stderr);
        return 1;
    }
    for (size_t i = 0; argc == 2 && i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(argv[1], parts[i].name) != 0) continue;
        parts[i].print();
        return fflush(stdout) || ferror(stdout) ? 3 : 0;
    }
    fputs("use: fusec --help | gen_cli PART\n", stderr);
    return 2;
}
