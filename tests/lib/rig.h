/* A test rig: one graph of an artifact with all its tensors and its workspace in one block of
 * memory, each between red zones, so that a run's every stray write is seen. Works on the host and
 * on a GPU; the block travels as a whole before and after each run. On the host what the program
 * itself allocates (params, what init steps prepare) begins as NaN and has red zones as well.
 *
 * Functions return false on failure; the reason is in `error` of the rig. One thread. */
#ifndef FUSEC_TESTS_RIG_H
#define FUSEC_TESTS_RIG_H

#include "base/str.h"
#include "ir/dim.h"

#include <fusert.h>

enum { RIG_RED_ZONE_BYTES = 4096 };

typedef struct RigTensor {
    frt_tensor_info info;
    int32_t index; /* in the graph */
    int64_t dims[FRT_MAX_RANK];
    size_t offset, n_bytes; /* in the block */
} RigTensor;

typedef struct RigOptions {
    frt_program_options program;
    bool is_unaligned; /* tensors begin at odd multiples of their element, never of 16 bytes */
    uint64_t aligned;  /* but for these (bit set, in the order of Rig.tensors) */
    /* Called before each run, when its contents are there; or NULL. */
    void (*before_run)(void *user);
    void *user;
} RigOptions;
#define RIG_OPTIONS_INIT \
    { FRT_PROGRAM_OPTIONS_INIT, false, 0, NULL, NULL }

/* From here on launches of opened programs do not overlap (frt_program_options). */
void rig_launch_in_order(void);
/* From here on rig_run repeats each run in `n` bursts without pauses, in turn with runs of other
 * inputs on the same workspace, and fails where an output has other bits than at first. */
void rig_repeat_runs(uint32_t n);

typedef struct Rig {
    RigOptions options;
    Arena *arena;
    frt_module *module;
    frt_program *program;
    frt_exec *exec;
    int32_t graph;
    int64_t dims[DIM_MAX_SYMBOLS]; /* per dim of the module */
    RigTensor *tensors;            /* all but temps; the last entry is the workspace */
    uint32_t n_tensors;
    uint8_t *before, *after; /* the block on the host, as it went and as it came back */
    void *device;
    size_t n_bytes;
    struct RigGuard *guard; /* CPU: what the program allocates, between red zones too */
    char error[600];
} Rig;

/* Loads the graph `name` (NULL: the only one). To be closed in any case. */
bool rig_open(Rig *rig, const void *artifact, size_t n_bytes, const char *name,
              const RigOptions *options);
void rig_close(Rig *rig);

/* Sets the dims, which `dims` names, and lays out and binds all tensors, without contents. May be
 * called again for other values. */
bool rig_place(Rig *rig, const DimTab *dims, const int64_t *symbol_values);
/* Where the elements of an input or param are to be written; NULL when there is none of the name.
 */
uint8_t *rig_contents(Rig *rig, const char *name, size_t *n_bytes);
/* Fills everything but inputs and params with `poison`, runs, and checks that nothing but outputs
 * and workspace was written. Params of a weights file are not touched. */
bool rig_run(Rig *rig, uint8_t poison);
/* An output's elements after a run, or an input's or param's; NULL when there is none. */
const uint8_t *rig_result(const Rig *rig, const char *name, size_t *n_bytes);

#endif
