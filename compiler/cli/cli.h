/* The command line program's parts: what the user asked for, and how it talks to the user.
 * Memory lives until exit, on one arena. Every command returns an exit code (fusec_status). */
#ifndef FUSEC_CLI_CLI_H
#define FUSEC_CLI_CLI_H

#include "cli/options.h"
#include "driver/driver.h"

#include <fusert.h>

typedef struct Cli Cli;
typedef enum { DEVICE_AT_HAND, DEVICE_IS_CUDA, DEVICE_IS_CPU } CliDevice;

/* `--input name=value`. */
typedef struct CliPair {
    const char *name, *value;
} CliPair;
typedef Vec(CliPair) CliPairs;

/* A kind of output that another program makes of one of ours. */
typedef struct CliFinish {
    const char *name, *extension, *doc;
    fusec_kind kind; /* what it is made of */
    fusec_status (*make)(Cli *cli, const char *path, const void *bytes, size_t n_bytes, char **made,
                         size_t *n_made);
} CliFinish;
enum { CLI_N_FINISHES = 2 };
extern const CliFinish cli_finishes[CLI_N_FINISHES];
/* NULL when there is none of this name or extension. */
const CliFinish *cli_finish_by_name(const char *name);
const CliFinish *cli_finish_by_extension(const char *extension);

/* What a thread of a launch's kernel was estimated to need when it was compiled. */
typedef struct CliRegisters {
    const char *graph, *symbol;
    uint32_t n;
    bool is_told; /* that it spills */
} CliRegisters;

struct Cli {
    Escape escape;
    Arena *arena;
    CliCommand command;
    const char *path;   /* the source or artifact; "-" is stdin */
    const char *output; /* NULL: none given */
    const char *report; /* the same */
    fusec_kind kind;
    bool has_kind;
    const CliFinish *finish; /* what is made of the kind by another program, or NULL */
    const char *ptxas;       /* NULL: none given */
    const char *weights;     /* the same */
    const Target *target;    /* the same */
    const Card *card;        /* the same */
    bool replay, in_order, cache, load_all;
    bool told_of_weights; /* that they are not there, and random ones serve */
    fusec_rewrites rewrites;
    bool is_fast; /* --numerics=fast */
    bool no_fuse, explain, time_passes, json, verbose, color;
    uint32_t print_after; /* bit set of passes */
    const char *dump_to;
    CliDevice device;
    const char *graph;
    CliPairs inputs, outputs, dims;
    uint64_t seed;
    int32_t n_threads, n_runs;
    Vec(CliRegisters) registers;
    bool has_warned; /* the source's warnings are printed */
    uint32_t data;   /* bit set of DataKind for verify; 0: all */
    DriverHook hook; /* of what verify compiles; for tests of verify */
    void *(*cuda_lookup)(void *ctx, const char *symbol); /* another driver; for tests */
    fusec_status status;                                 /* of parsing */
};

/* Parses; false when nothing is left to do (after --help, --list-..., --version or an error, with
 * cli->status). */
bool cli_parse(Cli *cli, int argc, char **argv);

/* The value of a dim as --dim gives it: digits alone. */
bool cli_parse_dim(const char *text, int64_t *value);

fusec_status cli_compile(Cli *cli);
fusec_status cli_run(Cli *cli);
fusec_status cli_verify(Cli *cli);
fusec_status cli_bench(Cli *cli);
fusec_status cli_inspect(Cli *cli);

/* Prints `fusec: error: ...` and returns `status`. */
STR_PRINTF(3, 4)
fusec_status cli_fail(const Cli *cli, fusec_status status, const char *format, ...);
/* Whether all that was printed has gone out; else an error. */
fusec_status cli_close_stdout(const Cli *cli);
STR_PRINTF(2, 0) void cli_vfail(const Cli *cli, const char *format, va_list args);
/* Prints that memory is out; FUSEC_MEMORY. */
fusec_status cli_fail_memory(const Cli *cli);
/* What limits memory. */
void cli_help_memory(void);
/* What to do about the error before it: a sentence. */
STR_PRINTF(1, 2) void cli_help(const char *format, ...);
/* The same as cli_fail for a failure of the runtime. */
fusec_status cli_fail_frt(const Cli *cli, const frt_error *error);
/* The same for an artifact that cannot be loaded: cli->path. */
fusec_status cli_fail_load(const Cli *cli, const frt_error *error);
/* Runs `body` in the driver and prints what it reports. */
fusec_status cli_guard(Cli *cli, Driver *driver, fusec_status (*body)(Driver *, void *),
                       void *user);

/* What is to be read, which bounds its size: a source, an artifact, either of them, other data. */
typedef enum { READ_SOURCE, READ_ARTIFACT, READ_EITHER, READ_DATA } CliRead;
/* `-` is stdin. A pipe that nothing writes to is not waited for. */
fusec_status cli_read(Cli *cli, const char *path, CliRead what, char **bytes, size_t *n_bytes);
bool cli_is_artifact(const char *bytes, size_t n_bytes);
/* Says so if the bytes of cli->path are an artifact or no text. */
fusec_status cli_check_source(const Cli *cli, const char *bytes, size_t n_bytes);
fusec_status cli_read_source(Cli *cli, char **bytes, size_t *n_bytes);
/* Whether writing to one path would change the other, of files that need not exist. */
bool cli_is_same_file(Cli *cli, const char *a, const char *b);
/* Whether there is a place to write a file of that name to, before anything is made; leaves none.
 */
fusec_status cli_check_place(Cli *cli, const char *path);
/* Writes all or nothing: to a new file beside `path` that then takes its name and its mode. A link
 * is followed, also to where nothing is yet. `-` is stdout, to which binary output goes only when
 * it is no terminal. */
fusec_status cli_write(Cli *cli, const char *path, const void *bytes, size_t n_bytes,
                       bool is_binary);
/* Puts what cli->finish makes of the artifact at `path`. FUSEC_TARGET without its program. */
fusec_status cli_write_finished(Cli *cli, const char *path, const void *bytes, size_t n_bytes);
/* Runs a program, its output going to stderr, on a file of `input` beside `path`, and returns what
 * is in the file that it makes. `arguments` are at most 7, begin with the program and end in NULL;
 * CLI_INPUT and CLI_MADE stand for the files. When the exit code is not 0, and CLI_NO_TOOL says
 * that there is no such program, nothing is made. */
enum { CLI_NO_TOOL = 127 };
#define CLI_INPUT "@input"
#define CLI_MADE "@made"
fusec_status cli_run_tool(Cli *cli, const char *path, const char *const *arguments,
                          const void *input, size_t n_input, int *exit_code, char **made,
                          size_t *n_made);
/* Removes what an interrupted write would leave; once, at the start. */
void cli_catch_signals(void);

/* The name among `n` that is nearest to `name`, or NULL when none is near. */
typedef const char *(*CliNameAt)(size_t index);
const char *cli_nearest(const char *name, size_t n, CliNameAt name_at);

/* What `native` means here: NULL for cuda without a usable GPU, and why. */
const Target *cli_native_gpu(const char **why_not);

#endif
