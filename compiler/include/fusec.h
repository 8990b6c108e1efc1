/* libfusec: compiles the graph language, from source text in memory to artifact bytes in memory.
 * This header is the specification. A function it does not declare is private.
 *
 *   fusec_options options = FUSEC_OPTIONS_INIT;
 *   options.kind = FUSEC_PTX;
 *   fusec_result *result = NULL;
 *   if (fusec_compile(text, strlen(text), &options, &result) == FUSEC_OK) {
 *       size_t n_bytes;
 *       const void *bytes = fusec_result_bytes(result, &n_bytes);
 *       fwrite(bytes, 1, n_bytes, file);
 *   }
 *   fputs(fusec_result_messages(result), stderr);      errors and warnings, like a compiler's
 *   fusec_result_free(result);
 *
 * Common to all functions:
 *  - The result depends on the text, on what options.include gives and on the options alone: no
 * file, device, environment or locale is read. Equal input gives equal bytes.
 *  - Any number of threads may compile at the same time, each call in the thread that makes it. A
 *    call starts threads only where options.n_threads asks for them: they block all signals, take
 *    FUSEC_STACK_BYTES of stack each, and have ended when the call returns. The only global state
 * is LLVM's table of targets, which is filled once.
 *  - Nothing prints, exits or aborts, on any input. When memory is out the call fails with
 *    FUSEC_MEMORY; only LLVM's own failure to allocate, or a fault of LLVM, ends
 *    the process.
 *  - fusec_compile takes at most FUSEC_STACK_BYTES of its thread's stack, on any input. Most graphs
 *    take 0.1 MiB; a chain of thousands of ops takes 1.2.
 *  - Pointers passed in are borrowed for the call; strings returned belong to the result. */
#ifndef FUSEC_H
#define FUSEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FUSEC_API __attribute__((visibility("default")))
#else
#define FUSEC_API
#endif

#define FUSEC_VERSION "0.1.0"
#define FUSEC_STACK_BYTES (2 << 20)

/* The version of the library in use, "0.1.0". It may be newer than this header. */
FUSEC_API const char *fusec_version(void);
/* The version of LLVM in it: "22.1.8". */
FUSEC_API const char *fusec_llvm_version(void);

/* Statuses; they are also the exit codes of the program. */
typedef enum fusec_status {
    FUSEC_OK = 0,
    FUSEC_INPUT = 1,    /* the source is wrong: see the diagnostics */
    FUSEC_USAGE = 2,    /* an option is wrong */
    FUSEC_FILE = 3,     /* from the program only: a file cannot be read or written */
    FUSEC_TARGET = 4,   /* the target, or a driver for it, is not available */
    FUSEC_MISMATCH = 5, /* from the program only: verification found a difference */
    FUSEC_MEMORY = 6,   /* no memory; from the program also: no threads, or no time */
    FUSEC_INTERNAL = 70 /* an internal error of the compiler */
} fusec_status;

/* The kind of output. */
typedef enum fusec_kind {
#define FUSEC_KIND(sym, number, name, extension, device, is_binary, doc) FUSEC_##sym = number,
#include "fusec_kinds.def"
    FUSEC_KIND_COUNT = 9 /* of this header; a newer library may have more */
} fusec_kind;

/* Rewrites that change arithmetic within an error bound (docs/design/attention.md): a softmax and
 * the product that contracts its axis become one op. The result's ledger says so of each softmax,
 * or why it is left. */
typedef enum fusec_rewrites {
    FUSEC_REWRITES_DEFAULT = 0, /* off; on with fast numerics */
    FUSEC_REWRITES_ON = 1,
    FUSEC_REWRITES_OFF = 2
} fusec_rewrites;

typedef struct fusec_options {
    size_t struct_size; /* sizeof(fusec_options), by FUSEC_OPTIONS_INIT */
    fusec_kind kind;
    const char *target;      /* a name of fusec_target_name; NULL: sm_80, or cpu for OBJECT */
    const char *source_name; /* for messages; the artifact has its last component; NULL:
                              * "input.g" */
    const char *numerics;    /* "strict" or "fast"; NULL: strict */
    bool no_fuse;            /* one kernel per op */
    bool explain;            /* also make fusec_result_explanation */
    const char *weights;     /* the path of the weights file in the artifact, relative to the
                              * artifact's folder; NULL: the source's */
    fusec_rewrites rewrites;
    /* Gives the text of a file that the source includes; false: it cannot be read, which is an
     * error of the source. `path` is that in the source, behind the folder of the file that
     * includes it. The text is borrowed until fusec_compile returns. NULL: no file can be read. */
    bool (*include)(void *user, const char *path, const char **text, size_t *n_bytes);
    void *include_user;
    /* Threads that choose the plan and make the code, the caller's among them, at most 16 of them;
     * 0 and 1: only the caller's. The bytes do not depend on it. Each thread takes memory for its
     * part of the code: some 20 MiB for a CPU. */
    uint32_t n_threads;
} fusec_options;

#define FUSEC_OPTIONS_INIT                                                      \
    {                                                                           \
        sizeof(fusec_options), FUSEC_PTX, NULL, NULL, NULL, false, false, NULL, \
            FUSEC_REWRITES_DEFAULT, NULL, NULL, 0                               \
    }

/* Targets by index: the name, and a line about it; NULL past the last. */
FUSEC_API const char *fusec_target_name(size_t index);
FUSEC_API const char *fusec_target_doc(size_t index);

typedef struct fusec_result fusec_result;

/* Compiles `n_bytes` of source at `text`, which may hold any bytes. `*result` is set on success and
 * on failure; it is NULL only when memory for it is out. The caller frees it. */
FUSEC_API fusec_status fusec_compile(const char *text, size_t n_bytes, const fusec_options *options,
                                     fusec_result **result);
FUSEC_API void fusec_result_free(fusec_result *result); /* accepts NULL */

/* All functions of a result accept NULL, which stands for a result without memory. The output: text
 * (without a final NUL) or bytes, by kind; NULL and 0 after a failure. */
FUSEC_API const void *fusec_result_bytes(const fusec_result *result, size_t *n_bytes);
/* All diagnostics as text, each with its source line and a caret; "" when there are none. */
FUSEC_API const char *fusec_result_messages(const fusec_result *result);
/* The fusion ledger if options.explain, else "". */
FUSEC_API const char *fusec_result_explanation(const fusec_result *result);

typedef enum fusec_severity {
    FUSEC_ERROR = 0,
    FUSEC_WARNING = 1,
    FUSEC_NOTE = 2, /* belongs to the error or warning before it */
    FUSEC_HELP = 3
} fusec_severity;

typedef struct fusec_diagnostic {
    size_t struct_size;
    fusec_severity severity;
    const char *file;      /* as options.source_name; NULL: it concerns no text */
    uint32_t line, column; /* from 1, columns in bytes; 0: it concerns no place */
    const char *id;        /* "shape-mismatch": stable; NULL for notes, helps and errors about
                              options or memory */
    const char *message;   /* one line, lower case */
} fusec_diagnostic;

FUSEC_API size_t fusec_result_n_diagnostics(const fusec_result *result);
/* Fills `diagnostic`, whose struct_size the caller has set; false for a bad index. */
FUSEC_API bool fusec_result_diagnostic(const fusec_result *result, size_t index,
                                       fusec_diagnostic *diagnostic);

#ifdef __cplusplus
}
#endif
#endif
