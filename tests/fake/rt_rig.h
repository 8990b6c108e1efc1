/* A small program on the fake driver, shared by the tests of the CUDA runtime: y = x * w * 2 in two
 * init steps, a launch and a copy. */
#ifndef FUSEC_TESTS_RT_RIG_H
#define FUSEC_TESTS_RT_RIG_H

#include "fake_cuda.h"
#include "fake_mem.h"
#include "rt_artifact.h"

#include <fusert.h>
#include <stdint.h>

enum { RT_MAX_ROWS = 8 };

typedef struct RtRig {
    frt_module *module;
    frt_program *program;
    frt_exec *exec;
    float *x, *y; /* device memory of the fake driver is host memory, so these are the caller's
                   * own */
    frt_error err;
} RtRig;

extern const char rt_manifest[];
extern const char rt_ptx[];
/* The same kernels, with function marks. */
extern const char rt_cut_ptx[];
extern const float rt_weights[4];
/* Aligned as device memory is. */
extern float rt_x_storage[RT_MAX_ROWS * 8 + 4];
extern float rt_y_storage[RT_MAX_ROWS * 8];

/* Registers the kernels of rt_manifest with the fake driver. */
void rt_add_kernels(void);
frt_program_options rt_options(void);
/* Opens a program of the manifest `text` with rt_ptx, or with any code. */
frt_status rt_open_program(RtRig *rig, const char *text, const frt_program_options *options);
frt_status rt_open_code(RtRig *rig, const char *text, const char *code,
                        const frt_program_options *options);
/* Binds x and y with `rows` rows; x counts up from 0.5, y is zero. */
frt_status rt_bind(RtRig *rig, int64_t rows);
void rt_expect_y(const RtRig *rig, int64_t rows);
void rt_close_rig(RtRig *rig);
void rt_expect_nothing_held(const char *when);

#endif
