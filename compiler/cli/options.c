/* The tables of the command line. See options.h. */
#include "cli/options.h"

#include <string.h>

const OptionInfo cli_options[OPTION_COUNT] = {
#define OPTION(sym, name, letter, argument, commands, doc) \
    [OPTION_##sym] = {name, letter, argument, commands, doc},
#include "cli/options.def"
};

const CommandInfo cli_commands[CLI_N_COMMANDS] = {
    [CLI_COMPILE] = {"", 'C', "fusec MODEL.g|.onnx -o FILE", "compile"},
    [CLI_RUN] = {"run", 'R', "fusec run MODEL.g|.onnx|ARTIFACT", "run once"},
    [CLI_VERIFY] = {"verify", 'V', "fusec verify MODEL.g|.onnx",
                    "compare fused, unfused and reference results"},
    [CLI_BENCH] = {"bench", 'B', "fusec bench MODEL.g|.onnx|ARTIFACT", "time runs"},
    [CLI_INSPECT] = {"inspect", 'I', "fusec inspect ARTIFACT", "show what is in an artifact"},
    [CLI_IMPORT] = {"import", 'M', "fusec import MODEL.onnx -o MODEL.g",
                    "write a model as a source, its weights beside it"},
};

const char cli_exit_codes[] =
    "Exit codes: 0 good, 1 the input is wrong, 2 usage, 3 file, 4 target or driver\n"
    "unavailable, 5 results differ, 6 out of memory or time, 70 internal error.";

bool cli_command_has(CliCommand command, OptionId option) {
    return strchr(cli_options[option].commands, cli_commands[command].letter) != NULL;
}
