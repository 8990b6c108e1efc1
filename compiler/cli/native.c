/* Properties of this machine. A compilation takes a thread for each processor, which changes no
 * byte. Only `native`, run, verify and bench look at devices. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "cli/cli.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

/* The few driver functions needed; cuda.h 12 has the same prototypes. */
typedef struct Cuda {
    int (*init)(unsigned flags);
    int (*get)(int *device, int ordinal);
    int (*attribute)(int *value, int attribute, int device);
} Cuda;
enum { CU_MAJOR = 75, CU_MINOR = 76 };

static bool cuda_open(void *library, Cuda *cuda) {
    *(void **)&cuda->init = dlsym(library, "cuInit");
    *(void **)&cuda->get = dlsym(library, "cuDeviceGet");
    *(void **)&cuda->attribute = dlsym(library, "cuDeviceGetAttribute");
    return cuda->init && cuda->get && cuda->attribute;
}

/* 90 for compute capability 9.0. Without a GPU 0, and the reason. */
static int capability(const char **why_not) {
    Cuda cuda;
    int device, major = 0, minor = 0;
    *why_not = "there is no CUDA driver";
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 0;
    *why_not = "the CUDA driver finds no device";
    if (!cuda_open(library, &cuda) || cuda.init(0) || cuda.get(&device, 0) ||
        cuda.attribute(&major, CU_MAJOR, device) || cuda.attribute(&minor, CU_MINOR, device))
        return 0;
    return major * 10 + minor;
}

/* sm_90a runs on 9.0 only; any other target on its version and later ones. */
static bool runs_on(const Target *target, int machine) {
    if (!target->ptx_version) return false;
    char *end;
    long wanted = strtol(target->name + strlen("sm_"), &end, 10);
    return *end ? wanted == machine : wanted <= machine;
}

const Target *cli_native_gpu(const char **why_not) {
    const Target *best = NULL;
    int machine = capability(why_not);
    for (int id = 0; id < TARGET_COUNT && machine; id++)
        if (runs_on(target_get((TargetId)id), machine)) best = target_get((TargetId)id);
    if (machine && !best) *why_not = "its GPU is older than sm_80";
    return best;
}

/* The processors that this process may use. */
static uint32_t n_processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : (uint32_t)CPU_COUNT(&set);
}

DriverOptions cli_driver_options(const Cli *cli, const Target *target) {
    return (DriverOptions){.kind = driver_artifact_kind(target),
                           .target = target,
                           .includes = &cli->includes,
                           .is_fast = cli->is_fast,
                           .rewrites = cli->rewrites,
                           .n_threads = cli->n_threads ? (uint32_t)cli->n_threads : n_processors()};
}
