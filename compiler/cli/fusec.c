/* The program: one command per run. */
#include "cli/cli.h"
#include "driver/driver.h"

#include <pthread.h>
#include <sys/resource.h>

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
    case CLI_IMPORT:
        return cli_import(cli);
    }
    return FUSEC_USAGE;
}

static int run_program(int argc, char **argv) {
    static Cli cli; /* static, because it is read after a longjmp */
    cli.arena = arena_new(&cli.escape);
    if (!cli.arena) return (int)cli_fail_memory(&cli);
    if (setjmp(cli.escape.jump)) return (int)cli_fail_memory(&cli);
    fusec_status status = cli_parse(&cli, argc, argv) ? run_command(&cli) : cli.status;
    fusec_status closed = cli_close_stdout(&cli);
    arena_free(cli.arena);
    return (int)(status ? status : closed);
}

/* The stack that commands may take: a compilation, and kernels on the CPU. */
enum { STACK_BYTES = 2 * FUSEC_STACK_BYTES };

typedef struct Arguments {
    int argc;
    char **argv;
    int exit_code;
} Arguments;

static void *run_arguments(void *user) {
    Arguments *arguments = user;
    arguments->exit_code = run_program(arguments->argc, arguments->argv);
    return NULL;
}

/* Runs the program in a thread that has the stack, whatever the shell's limit. */
static int run_in_thread(int argc, char **argv) {
    static const Cli no_options;
    Arguments arguments = {.argc = argc, .argv = argv};
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) || pthread_attr_setstacksize(&attributes, STACK_BYTES) ||
        pthread_create(&thread, &attributes, run_arguments, &arguments))
        return (int)cli_fail_memory(&no_options);
    pthread_join(thread, NULL);
    return arguments.exit_code;
}

int main(int argc, char **argv) {
    struct rlimit stack;
    cli_catch_signals();
    driver_on_fault(cli_on_fault);
    cli_prepare_heap();
    bool is_small = getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < STACK_BYTES;
    return is_small ? run_in_thread(argc, argv) : run_program(argc, argv);
}
