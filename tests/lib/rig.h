/* A test rig: one graph of an artifact with all its tensors and its workspace in one block of
 * memory. Each tensor is between red zones, so every stray write of a run is detected. It works on
 * the host and on a GPU; the whole block is copied before and after each run. On the host, memory
 * that the program itself allocates (params, results of init steps) starts as NaN and has red zones
 * too.
 *
 * Functions return false on failure, with the reason in `error` of the rig. For one thread. */
#ifndef FUSEC_TESTS_RIG_H
#define FUSEC_TESTS_RIG_H

#include "base/str.h"
#include "ir/dim/dim.h"

#include <fusert.h>

enum { RIG_RED_ZONE_BYTES = 4096 };

typedef struct RigTensor {
    frt_tensor_info info;
    int32_t index; /* tensor index in the graph */
    int64_t dims[FRT_MAX_RANK];
    size_t offset, n_bytes; /* within the block */
} RigTensor;

typedef struct RigOptions {
    frt_program_options program;
    bool is_unaligned; /* tensors begin at odd multiples of their element size, never at a multiple
                        * of 16 bytes */
    uint64_t aligned;  /* except these (bit set, in the order of Rig.tensors) */
    /* Called before each run, after the contents are set; or NULL. */
    void (*before_run)(void *user);
    void *user;
} RigOptions;
#define RIG_OPTIONS_INIT \
    { FRT_PROGRAM_OPTIONS_INIT, false, 0, NULL, NULL }

/* Launches of programs opened from here on do not overlap (frt_program_options.in_order). */
void rig_launch_in_order(void);
/* From here on rig_run repeats each run in `n` bursts without pauses, alternating with runs of
 * other inputs on the same workspace. It fails if an output's bits differ from the first run's. */
void rig_repeat_runs(uint32_t n);

typedef struct Rig {
    RigOptions options;
    Arena *arena;
    frt_module *module;
    frt_program *program;
    frt_exec *exec;
    int32_t graph;
    int64_t dims[DIM_MAX_SYMBOLS]; /* per dim of the module */
    RigTensor *tensors;            /* all tensors except temps; the last entry is the workspace */
    uint32_t n_tensors;
    uint8_t *before, *after; /* the block on the host, before and after the run */
    void *device;
    size_t n_bytes;
    struct RigGuard *guard; /* CPU: allocations of the program, with red zones */
    char error[600];
} Rig;

/* Loads the graph `name` (NULL: the only one). Call rig_close in any case. */
bool rig_open(Rig *rig, const void *artifact, size_t n_bytes, const char *name,
              const RigOptions *options);
void rig_close(Rig *rig);

/* Sets the dims, whose names are in `dims`, and lays out and binds all tensors, without contents.
 * It may be called again with other values. */
bool rig_place(Rig *rig, const DimTab *dims, const int64_t *symbol_values);
/* The place for the elements of an input or param; NULL when no tensor has this name. */
uint8_t *rig_contents(Rig *rig, const char *name, size_t *n_bytes);
/* Fills everything except inputs and params with `poison`, runs, and checks that only outputs and
 * workspace were written. Params of a weights file stay as they are. */
bool rig_run(Rig *rig, uint8_t poison);
/* The elements of an output after a run, or of an input or param; NULL when no tensor has this
 * name. */
const uint8_t *rig_result(const Rig *rig, const char *name, size_t *n_bytes);

#endif
