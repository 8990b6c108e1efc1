/* The tables of the command line: commands, options, exit codes. The parser and the help use them.
 * So does the generator of the man page and the completions, which links only this file. */
#ifndef FUSEC_CLI_OPTIONS_H
#define FUSEC_CLI_OPTIONS_H

#include <stdbool.h>

typedef enum {
    OPTION_NONE = 0,
#define OPTION(sym, name, letter, argument, commands, doc) OPTION_##sym,
#include "cli/options.def"
    OPTION_COUNT
} OptionId;

typedef struct OptionInfo {
    const char *name;
    char letter;          /* 0: none */
    const char *argument; /* NULL: takes none */
    const char *commands, *doc;
} OptionInfo;

/* Indexed by OptionId; the first row is empty. */
extern const OptionInfo cli_options[OPTION_COUNT];

typedef enum { CLI_COMPILE, CLI_RUN, CLI_VERIFY, CLI_BENCH, CLI_INSPECT, CLI_IMPORT } CliCommand;
enum { CLI_N_COMMANDS = CLI_IMPORT + 1 };

typedef struct CommandInfo {
    const char *name; /* "" for compilation */
    char letter;      /* in OptionInfo.commands */
    const char *use, *doc;
} CommandInfo;

extern const CommandInfo cli_commands[CLI_N_COMMANDS];
bool cli_command_has(CliCommand command, OptionId option);

extern const char cli_exit_codes[]; /* text of several lines */

#endif
