/* The program: one command per run. */
#include "cli/cli.h"

static fusec_status run_command(Cli *cli) {
    switch (cli->command) {
    case CLI_COMPILE:
        return cli_compile(cli);
    case CLI_RUN:
        return cli_run(cli);
    case CLI_VERIFY:
        return cli_verify(cli);
    case CLI_BENCH:
        return cli_bench(cli);
    case CLI_INSPECT:
        return cli_inspect(cli);
    }
    return FUSEC_USAGE;
}

int main(int argc, char **argv) {
    static Cli cli; /* static, because it is read after a longjmp */
    cli_catch_signals();
    cli_prepare_heap();
    cli.arena = arena_new(&cli.escape);
    if (!cli.arena) return (int)cli_fail_memory(&cli);
    if (setjmp(cli.escape.jump)) return (int)cli_fail_memory(&cli);
    fusec_status status = cli_parse(&cli, argc, argv) ? run_command(&cli) : cli.status;
    fusec_status closed = cli_close_stdout(&cli);
    arena_free(cli.arena);
    return (int)(status ? status : closed);
}
