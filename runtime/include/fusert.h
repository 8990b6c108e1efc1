/* fusert loads an artifact written by fusec and runs it, on a GPU through the CUDA driver or on the
 * CPU. This header is the specification. A function it does not declare is private.
 *
 *   frt_error err = FRT_ERROR_INIT;
 *   frt_module *module = NULL;    host only, immutable, may be shared between threads
 *   frt_program *program = NULL;  one graph on one device: code and weights
 *   frt_exec *exec = NULL;        bindings and workspace, one per thread
 *   static float x[2 * 64], p[2 * 10];
 *   frt_tensor tx = {.data = x, .dtype = FRT_F32, .rank = 2, .dims = {2, 64}};
 *   frt_tensor tp = {.data = p, .dtype = FRT_F32, .rank = 2, .dims = {2, 10}};
 *   if (frt_module_load_file("digits.o", &module, &err) ||
 *       frt_program_create(module, NULL, NULL, &program, &err) ||
 *       frt_exec_create(program, &exec, &err) ||
 *       frt_bind(exec, "x", &tx, &err) || frt_bind(exec, "p", &tp, &err) ||
 *       frt_run(exec, NULL, &err))
 *       fprintf(stderr, "%s\n", err.message);
 *   frt_exec_free(exec); frt_program_free(program); frt_module_free(module);
 *
 * Common to all functions:
 *  - Pointers passed in are borrowed for the call unless said otherwise. A returned string lives
 *    as long as its object. `free` functions accept NULL.
 *  - A status other than FRT_OK means that nothing was changed, except where said. `err` may be
 *    NULL; it is written on failure only.
 *  - A call takes at most 64 KiB of its thread's stack, and a CUDA driver what it needs. A CPU
 *    kernel takes up to 1 MiB: see frt_run.
 *  - An object retains the object it was made from, so the order of freeing does not matter.
 *  - Nothing prints, exits, aborts or installs signal handlers. The runtime reads the
 *    environment for one thing: the folder of cubins (frt_program_options.cache_dir).
 *  - An artifact is executable code. The runtime detects a damaged artifact, but not a malicious
 *    one: load only artifacts that you would be willing to run. */
#ifndef FUSERT_H
#define FUSERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FRT_API __attribute__((visibility("default")))
#else
#define FRT_API
#endif

#define FRT_VERSION_MAJOR 0
#define FRT_VERSION_MINOR 1
#define FRT_VERSION_PATCH 0
#define FRT_MAX_RANK 8
#define FRT_ALIGNMENT 256 /* bytes; of every address that the runtime allocates */

/* The version of the library in use, "0.1.0". It may be newer than this header. */
FRT_API const char *frt_version(void);

/* -- Statuses and errors -- */

typedef enum frt_status {
#define X(id, number, name, text) id = number,
#include "frt_status.def"
#undef X
    FRT_STATUS_FORCE_INT = 0x7fffffff
} frt_status;

/* "dim-range", and a clause that explains it; "unknown" for a number that is no status. */
FRT_API const char *frt_status_name(frt_status status);
FRT_API const char *frt_status_text(frt_status status);

/* Owned by the caller; nothing in it needs freeing. */
typedef struct frt_error {
    size_t struct_size; /* sizeof(frt_error), by FRT_ERROR_INIT */
    frt_status status;
    int32_t cuda;      /* CUresult behind the failure, or 0 */
    char message[512]; /* one line naming the tensor, kernel, dim or file */
} frt_error;

#define FRT_ERROR_INIT \
    { sizeof(frt_error), FRT_OK, 0, "" }

/* -- Tensors -- */

typedef enum frt_dtype {
#define X(symbol, number, name, safetensors, bytes, map) FRT_##symbol = number,
#include "frt_dtype.def"
#undef X
    FRT_DTYPE_COUNT = 14 /* of this header; a newer library may have more */
} frt_dtype;

/* "f32", and 4; NULL and 0 for a number that is no dtype. */
FRT_API const char *frt_dtype_name(frt_dtype dtype);
FRT_API size_t frt_dtype_bytes(frt_dtype dtype);

/* A contiguous row-major tensor. `data` is on the program's device (host memory on the CPU) and
 * aligned to one element. It may be NULL only where the tensor has no elements. */
typedef struct frt_tensor {
    void *data;
    frt_dtype dtype;
    int32_t rank; /* 0 to FRT_MAX_RANK */
    int64_t dims[FRT_MAX_RANK];
} frt_tensor;

/* -- Module -- */

typedef struct frt_module frt_module;

/* Read and check the artifact at `path`, or `n_bytes` at `bytes` (copied). No device is touched
 * and nothing is executed. FRT_E_FILE, _ARTIFACT, _CHECKSUM, _VERSION, _OUT_OF_MEMORY. */
FRT_API frt_status frt_module_load_file(const char *path, frt_module **module, frt_error *err);
FRT_API frt_status frt_module_load_memory(const void *bytes, size_t n_bytes, frt_module **module,
                                          frt_error *err);
FRT_API void frt_module_free(frt_module *module);

/* The contents of a module. Indices start at 0; a bad index gives FRT_E_INVALID_ARGUMENT. Set
 * `struct_size` of an info before the call (FRT_INFO does). All strings belong to the module. */
typedef enum frt_target { FRT_TARGET_KIND_CUDA = 0, FRT_TARGET_KIND_CPU = 1 } frt_target;
typedef enum frt_code {
    FRT_CODE_PTX = 0,
    FRT_CODE_CUBIN = 1,
    FRT_CODE_OBJECT = 2,       /* x86-64 ELF .o */
    FRT_CODE_SHARED_OBJECT = 3 /* x86-64 ELF .so */
} frt_code;
typedef enum frt_role { FRT_INPUT = 0, FRT_PARAM = 1, FRT_OUTPUT = 2, FRT_TEMP = 3 } frt_role;
typedef enum frt_phase { FRT_PHASE_INIT = 0, FRT_PHASE_RUN = 1 } frt_phase;
typedef enum frt_step_kind { FRT_STEP_LAUNCH = 0, FRT_STEP_COPY = 1 } frt_step_kind;

typedef struct frt_module_info {
    size_t struct_size;
    frt_target target;
    frt_code code;
    const char *arch;     /* "sm_90a", "x86-64-v3" */
    const char *numerics; /* "strict" or "fast" */
    const char *compiler; /* "0.1.0" */
    const char *source;   /* name of the source file, without its folder */
    const char *weights;  /* weights file, or NULL */
    uint32_t checksum;    /* CRC-32C */
    int32_t n_dims;       /* dims that the caller gives; dims of pitches have higher indices */
    int32_t n_graphs;
    size_t code_bytes;    /* PTX text, cubin, or the whole ELF file */
    const char *rewrites; /* "on" or "off": whether the compiler could rewrite arithmetic within an
                           * error bound; NULL: the artifact does not say */
    int32_t n_levels;     /* CPU: instruction sets that the code is for; 0: that of `arch` alone */
} frt_module_info;

/* A level of a CPU artifact: instruction sets that some of its code is for. Levels come best first,
 * and the last runs on every CPU of the artifact's `arch`. */
typedef struct frt_level_info {
    size_t struct_size;
    const char *name;     /* "cpu-v4" */
    const char *arch;     /* "x86-64-v4" */
    const char *features; /* CPU features beyond it, joined by commas, or NULL */
} frt_level_info;

typedef struct frt_dim_info {
    size_t struct_size;
    const char *name;
    int64_t lo, hi;   /* inclusive range, elements */
    int64_t multiple; /* at least 1; the value is a multiple of it */
} frt_dim_info;

typedef struct frt_graph_info {
    size_t struct_size;
    const char *name;
    int32_t n_tensors; /* of all roles, in the order of the manifest */
    int32_t n_inputs, n_params, n_outputs, n_temps;
    int32_t n_steps;    /* launches and copies, of init steps and of a run */
    int32_t n_launches; /* of a run */
    int32_t n_init;     /* init steps; they run once per program */
    int32_t n_pitches;  /* matrices that are copied to another pitch if their rows are badly
                         * aligned */
} frt_graph_info;

typedef struct frt_tensor_info {
    size_t struct_size;
    const char *name;
    const char *weights_key; /* param: its name in the weights file, or NULL */
    frt_role role;
    frt_dtype dtype;
    int32_t rank;
    int32_t device;     /* always 0 */
    bool is_persistent; /* a temp that init steps write and the program keeps */
    int32_t stands_for; /* a temp without elements: kernels get the address of this tensor; an
                         * output: it may be bound to the address of this input, which is then
                         * updated in place; -1: none */
} frt_tensor_info;

typedef struct frt_step_info {
    size_t struct_size;
    frt_step_kind kind;
    frt_phase phase;
    const char *label; /* "copy" for a copy */
    int32_t line;      /* source line; 0 for a copy */
    int32_t n_args;    /* tensors; a copy has two, destination first */
    int32_t n_dims;    /* dims passed to the kernel */
    int32_t n_variants;
    /* 0: the step runs once. 1 and 2: it is repeated, in even and in odd iterations; of repeats
     * inside each other, of the innermost. */
    int32_t iterations;
    int32_t n_numbers; /* constants passed to the kernel after the dims */
} frt_step_info;

typedef struct frt_variant_info {
    size_t struct_size;
    const char *symbol;
    int32_t block;  /* CUDA: threads; CPU: a thread is given a multiple of so many units */
    bool waits;     /* the kernel waits at its entry for the launch before it (PDL), so it may be
                     * launched early */
    bool has_price; /* the variant has a predicted time; the cheapest applicable variant of its
                     * group runs */
    /* CUDA: a persistent grid in clusters of this many blocks; 0: an ordinary grid. */
    int32_t cluster;
    int32_t resident; /* CUDA: a persistent grid has at most this many blocks per multiprocessor */
} frt_variant_info;

/* Declares `var` with its struct_size set. */
#ifdef __cplusplus
#define FRT_INFO(Type, var) \
    Type var = Type();      \
    var.struct_size = sizeof(Type)
#else
#define FRT_INFO(Type, var) Type var = {.struct_size = sizeof(Type)}
#endif

FRT_API frt_status frt_module_get_info(const frt_module *module, frt_module_info *info);
FRT_API frt_status frt_module_get_level(const frt_module *module, int32_t level,
                                        frt_level_info *info);
FRT_API frt_status frt_module_get_dim(const frt_module *module, int32_t dim, frt_dim_info *info);
FRT_API frt_status frt_module_get_graph(const frt_module *module, int32_t graph,
                                        frt_graph_info *info);
FRT_API frt_status frt_module_get_tensor(const frt_module *module, int32_t graph, int32_t tensor,
                                         frt_tensor_info *info);
FRT_API frt_status frt_module_get_step(const frt_module *module, int32_t graph, int32_t step,
                                       frt_step_info *info);
/* The tensor index of a step's argument, and the dim index of a step's dim; -1 for a bad index. */
FRT_API int32_t frt_module_step_arg(const frt_module *module, int32_t graph, int32_t step,
                                    int32_t arg);
FRT_API int32_t frt_module_step_dim(const frt_module *module, int32_t graph, int32_t step,
                                    int32_t dim);
/* The bits of a constant of a step: of a float or an integer of 32 or 64 bits. */
FRT_API frt_status frt_module_step_number(const frt_module *module, int32_t graph, int32_t step,
                                          int32_t number, uint64_t *bits);
FRT_API frt_status frt_module_get_variant(const frt_module *module, int32_t graph, int32_t step,
                                          int32_t variant, frt_variant_info *info);

/* Infix text such as "(B*64+255)/256", with a final NUL, cut to `n_bytes`. Returns the full length
 * without the NUL, as snprintf does; 0 for a bad index. */
FRT_API size_t frt_module_extent_text(const frt_module *module, int32_t graph, int32_t tensor,
                                      int32_t axis, char *text, size_t n_bytes);
FRT_API size_t frt_module_offset_text(const frt_module *module, int32_t graph, int32_t tensor,
                                      char *text, size_t n_bytes); /* of a temp, in bytes */
FRT_API size_t frt_module_workspace_text(const frt_module *module, int32_t graph, char *text,
                                         size_t n_bytes);
FRT_API size_t frt_module_grid_text(const frt_module *module, int32_t graph, int32_t step,
                                    int32_t variant, char *text, size_t n_bytes);
/* CUDA: dynamic shared memory, bytes; CPU: the least number of units worth a thread. */
FRT_API size_t frt_module_shared_text(const frt_module *module, int32_t graph, int32_t step,
                                      int32_t variant, char *text, size_t n_bytes);
FRT_API size_t frt_module_iterations_text(const frt_module *module, int32_t graph, int32_t step,
                                          char *text, size_t n_bytes); /* as `iterations` */
FRT_API size_t frt_module_pitch_text(const frt_module *module, int32_t graph, int32_t pitch,
                                     char *text, size_t n_bytes);
FRT_API size_t frt_module_predicate_text(const frt_module *module, int32_t graph, int32_t step,
                                         int32_t variant, char *text, size_t n_bytes);

/* Extents of a tensor for given values of all n_dims dims (elements, in the module's order). Copies
 * that depend on an address are assumed to have an aligned one. `dims` receives `rank` values.
 * FRT_E_DIM_RANGE, _DIM_MULTIPLE, _SHAPE (overflow). */
FRT_API frt_status frt_module_eval_shape(const frt_module *module, int32_t graph, int32_t tensor,
                                         const int64_t *dim_values, int64_t dims[FRT_MAX_RANK],
                                         frt_error *err);

/* -- Program -- */

typedef struct frt_program frt_program;

/* Runs body(body_ctx, i) once for each i in [0, n), in any order and on any threads. It returns
 * when all calls have returned. */
typedef void (*frt_parallel_body)(void *body_ctx, int64_t i);
typedef void (*frt_parallel_for)(void *ctx, int64_t n, frt_parallel_body body, void *body_ctx);

/* Device memory (host memory on the CPU) for weights, workspaces and frt_device_alloc. `alloc`
 * returns NULL when there is no memory; addresses are FRT_ALIGNMENT-aligned. The runtime calls both
 * with the program's CUDA context current, from any thread that uses the program. */
typedef struct frt_allocator {
    void *(*alloc)(void *ctx, size_t n_bytes);
    void (*free)(void *ctx, void *data, size_t n_bytes);
    void *ctx;
} frt_allocator;

typedef struct frt_program_options {
    size_t struct_size;
    int32_t device_ordinal;        /* CUDA: which device, when cu_context is NULL */
    void *cu_context;              /* CUDA: the caller's CUcontext, which must outlive the program;
                                      NULL retains the device's primary context */
    int32_t n_threads;             /* CPU: threads with the calling one; 0 = as many as CPUs this
                                    * thread may use. CUDA: threads that compile at the same time,
                                    * at most 8; without `cache` they need a driver for CUDA 13.0 or
                                    * later */
    frt_parallel_for parallel_for; /* CPU: replaces the runtime's own threads; or NULL. The threads
                                    * that call a body need 1040 KiB of stack */
    void *parallel_ctx;
    const char *weights_path; /* replaces the artifact's weights file; or NULL */
    const char *base_dir;     /* folder of a relative weights path in the artifact; NULL = the
                               * folder that the artifact was loaded from, else the working
                               * folder */
    bool no_weights;          /* open no weights file: every param comes by frt_program_set_param */
    frt_allocator allocator;  /* all zero = the driver's memory, or aligned host memory */
    /* Resolves a driver function by its versioned name ("cuMemAlloc_v2") in place of libcuda.so.1,
     * for tests and interposers. It returns NULL for a missing function. Or NULL. */
    void *(*cuda_lookup)(void *ctx, const char *symbol);
    void *cuda_lookup_ctx;
    /* CUDA: keep the cubins that the driver makes of PTX on disk, so that the next program with the
     * same PTX, driver and kind of device loads without compiling. The driver exports linked code
     * only, which may run slower (docs/RUNTIME.md); an artifact with a cubin does not have this
     * loss. The folder is `cache_dir`; if NULL, the value of the environment variable FUSERT_CACHE,
     * else `fusert` in XDG_CACHE_HOME, else in .cache of HOME. The runtime makes the folder if
     * needed. FUSERT_CACHE=off turns all caches off. A folder that cannot be used is no error: the
     * runtime compiles as without a cache. */
    bool cache;
    const char *cache_dir;
    size_t cache_bytes;    /* size limit of the folder, beyond which the oldest files go; 0 = 256
                            * MiB */
    bool in_order;         /* CUDA: begin each kernel when the one before it has ended. Otherwise a
                            * kernel that waits at its entry (PDL) is launched while the kernel before
                            * it ends (docs/RUNTIME.md) */
    bool load_all;         /* CUDA, PTX: compile every kernel when the program is created. Otherwise
                            * the first call of frt_prepare that chooses a kernel compiles it, and most
                            * kernels are never compiled */
    const char *cpu_level; /* CPU, an artifact with levels: run the code of the level of this name,
                            * and that of lesser levels where a kernel has none of it. NULL: the
                            * best level that this CPU has. In strict numerics all levels give the
                            * same bits */
} frt_program_options;

#define FRT_PROGRAM_OPTIONS_INIT                                                \
    {                                                                           \
        sizeof(frt_program_options), 0, NULL, 0, NULL, NULL, NULL, NULL, false, \
            {NULL, NULL, NULL}, NULL, NULL, false, NULL, 0, false, false, NULL  \
    }

/* Put one graph of `module` on a device: check that the device can run it, load the weights file if
 * there is one, and run the init steps once all params are there. An object or a cubin is loaded
 * here as a whole. PTX takes long to compile, so only the kernels of init steps are compiled here,
 * unless options->load_all.
 *   graph    its name; NULL when the module has only one
 *   options  NULL = defaults
 * Blocking. Retains `module`. Any status. */
FRT_API frt_status frt_program_create(frt_module *module, const char *graph,
                                      const frt_program_options *options, frt_program **program,
                                      frt_error *err);
FRT_API void frt_program_free(frt_program *program);

/* Copy `n_bytes` of row-major elements from host address `data` into a param, replacing its values.
 * Its extents must be constant or follow from params given before. Init steps run again at the next
 * frt_prepare (or frt_run), once for all execs. Blocking; no exec of the program may be running.
 * FRT_E_UNKNOWN_NAME, _NULL, _WEIGHTS_MISMATCH (size), _DIM_UNKNOWN (no param fixes the extents
 * yet: give the shape, as below), _OUT_OF_MEMORY, _DRIVER, _DEVICE_LOST. */
FRT_API frt_status frt_program_set_param(frt_program *program, const char *name, const void *data,
                                         size_t n_bytes, frt_error *err);
/* frt_program_set_param with dtype and shape. `tensor->data` is a host address of any alignment. An
 * extent that is a bare dim fixes the dim, for all execs of the program, until the param is
 * replaced; it must agree with all other params. So does a multiple of a dim, `2*B+1`, if no bare
 * extent does. An extent that depends on the dims of inputs is
 * checked when an exec is prepared. `tensor` NULL removes the param's values and the dims that it
 * alone fixes. Also FRT_E_DTYPE, _SHAPE (of this param or, by its dims, of an earlier one),
 * _DIM_CONFLICT, _DIM_RANGE, _DIM_MULTIPLE. */
FRT_API frt_status frt_program_set_param_tensor(frt_program *program, const char *name,
                                                const frt_tensor *tensor, frt_error *err);

/* Value of dim `dim` of the module (elements) if a param fixes it. FRT_E_DIM_UNKNOWN if none does,
 * FRT_E_INVALID_ARGUMENT for a bad index. Do not call it while a param is being set. */
FRT_API frt_status frt_program_get_dim(const frt_program *program, int32_t dim, int64_t *value);

/* The result of the device's own compiler for one kernel. On the CPU all are 0. */
typedef struct frt_kernel_info {
    size_t struct_size;
    int32_t n_registers;  /* per thread */
    int32_t local_bytes;  /* per thread, in device memory: spilled registers and arrays */
    int32_t shared_bytes; /* per block, static; a launch may add dynamic bytes */
} frt_kernel_info;

/* The kernel of a variant of a step of the program's graph, with the indices of its module. It
 * loads the kernel if needed. FRT_E_INVALID_ARGUMENT, _CODE, _ARCH, _DRIVER, _DRIVER_OLD,
 * _OUT_OF_MEMORY, _DEVICE_LOST. Thread-safe. */
FRT_API frt_status frt_program_get_kernel(frt_program *program, int32_t step, int32_t variant,
                                          frt_kernel_info *info, frt_error *err);

/* The work of the init steps, which compute tensors from the params once for all runs. */
typedef struct frt_init_info {
    size_t struct_size;
    int32_t n_steps;      /* of the graph, as frt_graph_info.n_init */
    int32_t n_runs;       /* number of times they have run; 0 while a param lacks its values */
    size_t kept_bytes;    /* device memory held for the runs */
    size_t passing_bytes; /* more device memory that was held while they ran the last time */
    double ms;            /* of the last time, from the first launch until the last had finished */
} frt_init_info;
FRT_API frt_status frt_program_get_init(frt_program *program, frt_init_info *info);

/* How the code came to the device so far. On the CPU nothing is compiled or cached. */
typedef struct frt_load_info {
    size_t struct_size;
    double ms;         /* time from the artifact's code to loaded kernels */
    bool is_compiled;  /* the driver compiled some of the code from PTX */
    bool is_cached;    /* all code was read from the cache, or stored in it */
    int32_t n_kernels; /* the variants of the steps of the graph */
    int32_t n_loaded;  /* loaded kernels among them */
} frt_load_info;
/* Waits while another thread loads. Thread-safe. */
FRT_API frt_status frt_program_get_load(const frt_program *program, frt_load_info *info);

FRT_API const frt_module *frt_program_module(const frt_program *program);
FRT_API int32_t frt_program_graph(const frt_program *program);   /* its index in the module */
FRT_API const char *frt_device_name(const frt_program *program); /* "NVIDIA H200", "AMD EPYC" */

/* Further properties of a CUDA device; on the CPU all are 0. */
typedef struct frt_device_info {
    size_t struct_size;
    int32_t driver_version;     /* the CUDA version of the driver: 13000 is 13.0 */
    int32_t compute_capability; /* 90 is 9.0 */
    int32_t n_processors;       /* multiprocessors */
    int32_t clock_mhz;          /* highest clock of the multiprocessors */
} frt_device_info;
FRT_API frt_status frt_program_get_device(const frt_program *program, frt_device_info *info);
FRT_API int32_t frt_program_n_threads(const frt_program *program); /* 1 on CUDA */
/* The name of the best level whose code runs, "cpu-v4"; NULL: the artifact has no levels. */
FRT_API const char *frt_program_level(const frt_program *program);

/* Device memory and blocking copies, for tools and examples. A copy waits for all earlier work of
 * the device context, in every stream, and is complete when the call returns. Sizes are in bytes
 * and may be 0. Thread-safe. */
FRT_API frt_status frt_device_alloc(frt_program *program, size_t n_bytes, void **data,
                                    frt_error *err);
FRT_API void frt_device_free(frt_program *program, void *data, size_t n_bytes);
FRT_API frt_status frt_copy_to_device(frt_program *program, void *device, const void *host,
                                      size_t n_bytes, frt_error *err);
FRT_API frt_status frt_copy_from_device(frt_program *program, void *host, const void *device,
                                        size_t n_bytes, frt_error *err);
/* Wait for `stream` (a CUstream; NULL = the legacy default stream) and report errors of its
 * kernels. Returns at once on the CPU. */
FRT_API frt_status frt_sync(frt_program *program, void *stream, frt_error *err);

/* -- Exec: use one from one thread at a time; execs of one program may run at the same time -- */

typedef struct frt_exec frt_exec;

/* Retains `program`. FRT_E_OUT_OF_MEMORY. */
FRT_API frt_status frt_exec_create(frt_program *program, frt_exec **exec, frt_error *err);
FRT_API void frt_exec_free(frt_exec *exec); /* waits for the device if the exec owns its
                                             * workspace */

/* Bind an input or output. `tensor` is copied; its data is borrowed until it is replaced or the
 * exec is freed. An output may share memory with no other bound tensor, but for an input whose
 * place it may take (frt_tensor_info.stands_for), at the same address. The call makes those checks
 * that need no other tensor. FRT_E_UNKNOWN_NAME, _NULL, _DTYPE, _SHAPE, _ALIGNMENT. */
FRT_API frt_status frt_bind(frt_exec *exec, const char *name, const frt_tensor *tensor,
                            frt_error *err);

/* Fix a dim that no input fixes; a bound tensor must agree with it. Value 0 or more, in
 * elements. Stays until set again. FRT_E_UNKNOWN_NAME, _DIM_RANGE, _DIM_MULTIPLE. */
FRT_API frt_status frt_set_dim(frt_exec *exec, const char *name, int64_t value, frt_error *err);

/* The shape of an output, input or temp under the current bindings and dims: `dims` receives
 * `*rank` extents in elements. FRT_E_UNKNOWN_NAME, _DIM_*, _SHAPE. */
FRT_API frt_status frt_output_shape(frt_exec *exec, const char *name, int64_t dims[FRT_MAX_RANK],
                                    int32_t *rank, frt_error *err);

/* CUDA: keep the prepared run as a CUDA graph that the exec owns, so that frt_run makes one driver
 * call for any number of steps. frt_prepare makes the graph, and updates it after a change of
 * bindings or dims. frt_run into a stream that is being captured enqueues the steps instead. Off by
 * default. On the CPU it changes nothing. FRT_E_DRIVER_OLD (the driver has no such graphs). */
FRT_API frt_status frt_exec_keep_graph(frt_exec *exec, bool keep, frt_error *err);

/* Resolve dims, check every tensor, size the workspace, choose variants, and load their kernels if
 * no exec of the program has needed them before. Compiling a kernel takes the driver milliseconds
 * to seconds and may wait for running kernels; afterwards all execs have it. Allocates if the
 * workspace must grow or a graph is kept. Runs outstanding init steps (blocking). On failure the
 * exec is as usable as before, and loaded kernels stay loaded. All FRT_E_ statuses from UNBOUND to
 * WORKSPACE, _OUT_OF_MEMORY, _LAUNCH, _CODE (a kernel that the driver refuses), _ARCH, _DRIVER_OLD,
 * _DRIVER. */
FRT_API frt_status frt_prepare(frt_exec *exec, frt_error *err);

/* Bytes of workspace needed for the current bindings and dims. While a tensor is unbound, they
 * suffice for any address it may get. */
FRT_API frt_status frt_exec_workspace_bytes(frt_exec *exec, size_t *n_bytes, frt_error *err);
/* Use the caller's device memory (borrowed, FRT_ALIGNMENT-aligned) as workspace from now on. NULL
 * and 0 return to the exec's own. FRT_E_ALIGNMENT, _NULL. */
FRT_API frt_status frt_exec_set_workspace(frt_exec *exec, void *data, size_t n_bytes,
                                          frt_error *err);

/* Run the graph, and prepare it first if bindings, dims or params have changed.
 *   stream  CUDA: a CUstream of the program's context (NULL = the legacy default stream). The run
 *           is enqueued there and nowhere else, with no synchronisation. A prepared run
 *           allocates nothing and may be captured into a graph. Ignored on the CPU, where the
 *           run is finished on return.
 * On the CPU, where the calling thread has less than 1040 KiB of stack left, each launch runs on
 * a thread of its own and costs the start of one. Stacks of coroutines count as too small.
 * FRT_E_LAUNCH (this run was refused; outputs are undefined), _THREADS, _DEVICE_LOST (the context
 * is gone; every later call says so), and the statuses of frt_prepare. The caller's floating-point
 * state and current CUDA context are as before. */
FRT_API frt_status frt_run(frt_exec *exec, void *stream, frt_error *err);

/* The variant of a step that the last frt_prepare chose; -1 for copies and before preparation. */
FRT_API int32_t frt_exec_variant(const frt_exec *exec, int32_t step);

/* Time `n` runs back to back, by events on CUDA and by the clock on the CPU. `ms` receives n times
 * in milliseconds. Blocking. */
FRT_API frt_status frt_time_runs(frt_exec *exec, void *stream, int32_t n, float *ms,
                                 frt_error *err);
/* Run `n` times with a time stamp between steps. `ms` receives the median milliseconds of each of
 * the graph's n_steps steps (0 for init steps). Steps do not overlap here. Blocking. */
FRT_API frt_status frt_time_launches(frt_exec *exec, void *stream, int32_t n, float *ms,
                                     frt_error *err);

#ifdef __cplusplus
}
#endif
#endif
