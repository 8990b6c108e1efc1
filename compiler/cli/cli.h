/* The command-line program: parsed options, messages, and file access for all commands. Memory
 * lives on one arena until exit. Every command returns an exit code (fusec_status). */
#ifndef FUSEC_CLI_CLI_H
#define FUSEC_CLI_CLI_H

#include "cli/options.h"
#include "driver/driver.h"
#include "onnx/import.h"

#include <fusert.h>

typedef struct Cli Cli;
typedef enum { DEVICE_AT_HAND, DEVICE_IS_CUDA, DEVICE_IS_CPU } CliDevice;

/* `--input name=value`. */
typedef struct CliPair {
    const char *name, *value;
} CliPair;
typedef Vec(CliPair) CliPairs;

/* A kind of output that another program makes from one of ours. */
typedef struct CliFinish {
    const char *name, *extension, *doc;
    fusec_kind kind; /* the kind of its input */
    fusec_status (*make)(Cli *cli, const char *path, const void *bytes, size_t n_bytes, char **made,
                         size_t *n_made);
} CliFinish;
enum { CLI_N_FINISHES = 2 };
extern const CliFinish cli_finishes[CLI_N_FINISHES];
/* NULL when no kind has this name or extension. */
const CliFinish *cli_finish_by_name(const char *name);
const CliFinish *cli_finish_by_extension(const char *extension);

/* The estimated registers of a kernel's threads, noted when it was compiled. */
typedef struct CliRegisters {
    const char *graph, *symbol;
    uint32_t n;
    bool is_told; /* a warning of its spills was printed */
} CliRegisters;

struct Cli {
    Escape escape;
    Arena *arena;
    CliCommand command;
    const char *path;   /* source or artifact; "-" is stdin */
    const char *output; /* NULL: none given */
    const char *report; /* NULL: none given */
    fusec_kind kind;
    bool has_kind;
    const CliFinish *finish; /* the kind that another program makes of `kind`; or NULL */
    const char *ptxas;       /* NULL: none given */
    const char *weights;     /* NULL: none given */
    const char *level;       /* NULL: none given */
    const Target *target;    /* NULL: none given */
    const Card *card;        /* NULL: none given */
    bool replay, in_order, cache, load_all;
    bool told_of_weights; /* a note was printed that the weights file is missing and params are
                           * random */
    fusec_rewrites rewrites;
    bool is_fast; /* --numerics=fast */
    bool no_fuse, explain, time_passes, json, verbose, color;
    uint32_t print_after; /* bit set of passes */
    const char *dump_to;
    CliDevice device;
    const char *graph;
    CliPairs inputs, outputs, dims;
    CliPairs constants; /* values with `@` before the name of a file */
    uint64_t seed;
    int32_t n_threads, n_runs;
    const OnnxImport *model; /* of a source that is an ONNX file: what was read; else NULL */
    Vec(CliRegisters) registers;
    IncludeReader includes;
    bool has_warned; /* the warnings of the source were printed */
    uint32_t data;   /* bit set of DataKind for verify; 0: all kinds */
    DriverHook hook; /* called in compilations of verify; for tests */
    void *(*cuda_lookup)(void *ctx, const char *symbol); /* replaces the CUDA driver; for tests */
    fusec_status status;                                 /* of parsing */
};

/* Parses the arguments. False: the program has finished, after --help, --list-..., --version or an
 * error (cli->status). */
bool cli_parse(Cli *cli, int argc, char **argv);

/* The options of an artifact that every compilation of the command takes from its line. */
DriverOptions cli_driver_options(const Cli *cli, const Target *target);

/* Parses the value of a dim as in --dim: digits only. */
bool cli_parse_dim(const char *text, int64_t *value);

fusec_status cli_compile(Cli *cli);
fusec_status cli_run(Cli *cli);
fusec_status cli_verify(Cli *cli);
fusec_status cli_bench(Cli *cli);
fusec_status cli_inspect(Cli *cli);
fusec_status cli_import(Cli *cli);

/* Whether the path is that of an ONNX model: it ends with `.onnx`. */
bool cli_is_onnx(const char *path);
/* Reads the model cli->path; sets cli->model, and `text` to its graph as a source. */
fusec_status cli_read_onnx(Cli *cli, const char *weights, char **text, size_t *n_bytes);
/* The weights file that belongs to an output, or to the model: its name with the extension
 * `.safetensors`, without the folder. */
const char *cli_weights_name(Cli *cli, const char *path);
/* Writes the weights of cli->model beside `path`, if there are any. */
fusec_status cli_write_weights(Cli *cli, const char *path);

/* Prints `fusec: error: ...` and returns `status`. */
STR_PRINTF(3, 4)
fusec_status cli_fail(const Cli *cli, fusec_status status, const char *format, ...);
/* Flushes stdout; an error if not everything could be written. */
fusec_status cli_close_stdout(const Cli *cli);
STR_PRINTF(2, 0) void cli_vfail(const Cli *cli, const char *format, va_list args);
/* Prints that memory is out; returns FUSEC_MEMORY. */
fusec_status cli_fail_memory(const Cli *cli);
/* Prints help about the limit of memory. */
void cli_help_memory(void);
/* Prints a sentence of help after an error. */
STR_PRINTF(1, 2) void cli_help(const char *format, ...);
/* cli_fail for a failure of the runtime. */
fusec_status cli_fail_frt(const Cli *cli, const frt_error *error);
/* cli_fail for an artifact, cli->path, that cannot be loaded. */
fusec_status cli_fail_load(const Cli *cli, const frt_error *error);
/* Runs `body` in the driver and prints its diagnostics. */
fusec_status cli_guard(Cli *cli, Driver *driver, fusec_status (*body)(Driver *, void *),
                       void *user);

/* The kind of content to read, which bounds its size. */
typedef enum { READ_SOURCE, READ_ARTIFACT, READ_EITHER } CliRead;
/* Reads a file; `-` is stdin. It does not wait for a pipe without a writer. */
fusec_status cli_read(Cli *cli, const char *path, CliRead what, char **bytes, size_t *n_bytes);
/* Opens a file for reading; `-` is stdin. It does not wait for a pipe without a writer. */
fusec_status cli_open(Cli *cli, const char *path, int *file);
/* Reports an error if a pipe has ended without a byte. */
fusec_status cli_check_pipe(const Cli *cli, const char *path, int file, size_t n_bytes);
/* Reads a file that a source includes; `user` is the Cli. */
bool cli_read_include(void *user, const char *path, const char **text, size_t *n_bytes);
bool cli_is_artifact(const char *bytes, size_t n_bytes);
/* Reports an error if the bytes of cli->path are an artifact or not text. */
fusec_status cli_check_source(const Cli *cli, const char *bytes, size_t n_bytes);
/* Reads the source of the command line, or the source that its ONNX model is imported as. */
fusec_status cli_read_source(Cli *cli, char **bytes, size_t *n_bytes);
/* Like cli_read_source, or reads an artifact. */
fusec_status cli_read_model(Cli *cli, char **bytes, size_t *n_bytes);
/* Whether two paths name one file, so that writing to one changes the other. The files need not
 * exist. */
bool cli_is_same_file(Cli *cli, const char *a, const char *b);
/* Checks that a file can be written at the path, before anything is compiled. Leaves no file. */
fusec_status cli_check_place(Cli *cli, const char *path);
/* Writes a file completely or not at all: writes a new file beside `path`, which then takes its
 * name and its mode. It follows a symbolic link, even to a missing file. `-` is stdout; binary
 * output does not go to a terminal. */
fusec_status cli_write(Cli *cli, const char *path, const void *bytes, size_t n_bytes,
                       bool is_binary);
typedef struct CliBytes {
    const void *bytes;
    size_t n_bytes;
} CliBytes;
/* The same for a regular file that is the parts, one after the other. */
fusec_status cli_write_parts(Cli *cli, const char *path, uint32_t n_parts, const CliBytes *parts);
/* Runs cli->finish on the artifact and writes the result to `path`. FUSEC_TARGET if its program is
 * missing. */
fusec_status cli_write_finished(Cli *cli, const char *path, const void *bytes, size_t n_bytes);
/* Runs a program on a file with `input` beside `path`, with its output on stderr, and returns the
 * contents of the file that it makes. `arguments` are at most 7; the first is the program, the last
 * is followed by NULL. CLI_INPUT and CLI_MADE stand for the two files. With an exit code other than
 * 0 there is no result; CLI_NO_TOOL: the program does not exist. */
enum { CLI_NO_TOOL = 127 };
#define CLI_INPUT "@input"
#define CLI_MADE "@made"
fusec_status cli_run_tool(Cli *cli, const char *path, const char *const *arguments,
                          const void *input, size_t n_input, int *exit_code, char **made,
                          size_t *n_made);
/* Installs handlers that remove temporary files on a signal. Call it once, at the start. */
void cli_catch_signals(void);
/* Ends the program with FUSEC_INTERNAL and LLVM's reason; removes temporary files. */
void cli_on_fault(const char *why);
/* Ends the program with an error after this time, and removes temporary files. */
void cli_limit_time(double seconds);
/* Prepares malloc for the memory of compilations; once, at the start. */
void cli_prepare_heap(void);

/* The nearest of `n` names to `name`; NULL when none is near. */
typedef const char *(*CliNameAt)(size_t index);
const char *cli_nearest(const char *name, size_t n, CliNameAt name_at);

/* The target that `native` means on this machine. NULL, and the reason, without a usable GPU. */
const Target *cli_native_gpu(const char **why_not);

#endif
