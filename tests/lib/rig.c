/* Runs one graph between red zones; see rig.h. */
#include "lib/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RED = 0xFF }; /* makes every float NaN */

static const char workspace_name[] = ".workspace";

static bool fail(Rig *rig, const char *what, const char *why) {
    snprintf(rig->error, sizeof rig->error, "%s: %s", what, why);
    return false;
}

static bool find_graph(Rig *rig, const char *name) {
    FRT_INFO(frt_module_info, info);
    frt_module_get_info(rig->module, &info);
    for (rig->graph = 0; rig->graph < info.n_graphs; rig->graph++) {
        FRT_INFO(frt_graph_info, graph);
        frt_module_get_graph(rig->module, rig->graph, &graph);
        if (name ? strcmp(graph.name, name) == 0 : info.n_graphs == 1) return true;
    }
    return fail(rig, "no such graph", name ? name : "(the only one)");
}

static void list_tensors(Rig *rig) {
    FRT_INFO(frt_graph_info, graph);
    frt_module_get_graph(rig->module, rig->graph, &graph);
    rig->tensors = arena_array(rig->arena, RigTensor, (size_t)graph.n_tensors + 1);
    for (int32_t i = 0; i < graph.n_tensors; i++) {
        RigTensor tensor = {.info = {.struct_size = sizeof tensor.info}, .index = i};
        frt_module_get_tensor(rig->module, rig->graph, i, &tensor.info);
        if (tensor.info.role != FRT_TEMP) rig->tensors[rig->n_tensors++] = tensor;
    }
    rig->tensors[rig->n_tensors].info = (frt_tensor_info){.name = workspace_name, .role = FRT_TEMP};
}

/* The memory that the program itself allocates. */

enum { GUARD_BYTES = 256 };

/* The header of a block. RED fills the rest of GUARD_BYTES before the block, and as many bytes
 * after it. */
typedef struct Block {
    struct Block *next;
    size_t n_bytes;
} Block;

typedef struct RigGuard {
    Block *blocks;
    bool is_broken; /* a broken red zone was found when a block was freed */
} RigGuard;

static size_t guarded_bytes(size_t n_bytes) {
    return 2 * GUARD_BYTES + (n_bytes + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
}

static bool is_block_whole(const Block *block) {
    const uint8_t *bytes = (const uint8_t *)block;
    size_t end = guarded_bytes(block->n_bytes);
    for (size_t i = sizeof *block; i < GUARD_BYTES; i++)
        if (bytes[i] != RED) return false;
    for (size_t i = GUARD_BYTES + block->n_bytes; i < end; i++)
        if (bytes[i] != RED) return false;
    return true;
}

static void *guard_alloc(void *ctx, size_t n_bytes) {
    RigGuard *guard = ctx;
    Block *block = aligned_alloc(GUARD_BYTES, guarded_bytes(n_bytes));
    if (!block) return NULL;
    memset(block, RED, guarded_bytes(n_bytes));
    *block = (Block){guard->blocks, n_bytes};
    guard->blocks = block;
    return (uint8_t *)block + GUARD_BYTES;
}

static void guard_free(void *ctx, void *data, size_t n_bytes) {
    RigGuard *guard = ctx;
    Block *block = (Block *)((uint8_t *)data - GUARD_BYTES), **link = &guard->blocks;
    while (*link != block) link = &(*link)->next;
    *link = block->next;
    if (!is_block_whole(block) || block->n_bytes != n_bytes) guard->is_broken = true;
    free(block);
}

static bool is_guard_whole(const RigGuard *guard) {
    if (!guard) return true;
    for (const Block *block = guard->blocks; block; block = block->next)
        if (!is_block_whole(block)) return false;
    return !guard->is_broken;
}

static void guard_program(Rig *rig) {
    FRT_INFO(frt_module_info, info);
    frt_module_get_info(rig->module, &info);
    if (info.target != FRT_TARGET_KIND_CPU || rig->options.program.allocator.alloc) return;
    rig->guard = arena_array(rig->arena, RigGuard, 1);
    rig->options.program.allocator = (frt_allocator){guard_alloc, guard_free, rig->guard};
}

static bool launches_in_order;
static uint32_t n_bursts;

void rig_launch_in_order(void) {
    launches_in_order = true;
}

void rig_repeat_runs(uint32_t n) {
    n_bursts = n;
}

bool rig_open(Rig *rig, const void *artifact, size_t n_bytes, const char *name,
              const RigOptions *options) {
    frt_error error = FRT_ERROR_INIT;
    *rig = (Rig){.options = *options, .arena = arena_new(NULL)};
    if (frt_module_load_memory(artifact, n_bytes, &rig->module, &error))
        return fail(rig, "load", error.message);
    if (!find_graph(rig, name)) return false;
    list_tensors(rig);
    guard_program(rig);
    rig->options.program.in_order |= launches_in_order;
    if (frt_program_create(rig->module, name, &rig->options.program, &rig->program, &error))
        return fail(rig, "program", error.message);
    return true;
}

static void drop_block(Rig *rig) {
    frt_exec_free(rig->exec);
    if (rig->device) frt_device_free(rig->program, rig->device, rig->n_bytes);
    free(rig->before);
    free(rig->after);
    rig->exec = NULL;
    rig->device = rig->before = rig->after = NULL;
}

void rig_close(Rig *rig) {
    drop_block(rig);
    frt_program_free(rig->program);
    frt_module_free(rig->module);
    arena_free(rig->arena);
    *rig = (Rig){0};
}

static void find_dims(Rig *rig, const DimTab *dims, const int64_t *symbol_values) {
    FRT_INFO(frt_module_info, info);
    frt_module_get_info(rig->module, &info);
    for (int32_t i = 0; i < info.n_dims; i++) {
        FRT_INFO(frt_dim_info, dim);
        frt_module_get_dim(rig->module, i, &dim);
        rig->dims[i] = 0;
        for (uint32_t s = 0; s < dim_n_symbols(dims); s++)
            if (strcmp(dim_symbol_info(dims, s)->name, dim.name) == 0)
                rig->dims[i] = symbol_values[s];
    }
}

static bool set_dims(Rig *rig, frt_exec *exec) {
    FRT_INFO(frt_module_info, info);
    frt_module_get_info(rig->module, &info);
    for (int32_t i = 0; i < info.n_dims; i++) {
        FRT_INFO(frt_dim_info, dim);
        frt_error error = FRT_ERROR_INIT;
        frt_module_get_dim(rig->module, i, &dim);
        if (frt_set_dim(exec, dim.name, rig->dims[i], &error))
            return fail(rig, "dim", error.message);
    }
    return true;
}

static bool lay_out(Rig *rig) {
    frt_error error = FRT_ERROR_INIT;
    size_t end = RIG_RED_ZONE_BYTES;
    for (uint32_t i = 0; i < rig->n_tensors; i++) {
        RigTensor *tensor = &rig->tensors[i];
        if (frt_module_eval_shape(rig->module, rig->graph, tensor->index, rig->dims, tensor->dims,
                                  &error))
            return fail(rig, "shape", error.message);
        size_t elem_bytes = frt_dtype_bytes(tensor->info.dtype);
        tensor->n_bytes = elem_bytes;
        for (int32_t k = 0; k < tensor->info.rank; k++) tensor->n_bytes *= (size_t)tensor->dims[k];
        /* An element of 8 bytes starts 8 bytes past a multiple of 16. Smaller elements also start
         * at 3, 5, ... elements. */
        size_t shift = elem_bytes == 8 ? 1 : 1 + 2 * (i % (8 / elem_bytes));
        bool is_aligned = !rig->options.is_unaligned || (i < 64 && rig->options.aligned >> i & 1);
        tensor->offset = end + (is_aligned ? 0 : shift * elem_bytes);
        end = (tensor->offset + tensor->n_bytes + RIG_RED_ZONE_BYTES + 255) / 256 * 256;
    }
    RigTensor *workspace = &rig->tensors[rig->n_tensors];
    if (frt_exec_workspace_bytes(rig->exec, &workspace->n_bytes, &error))
        return fail(rig, "workspace", error.message);
    workspace->offset = end;
    rig->n_bytes = end + workspace->n_bytes + RIG_RED_ZONE_BYTES;
    return true;
}

static bool make_block(Rig *rig) {
    frt_error error = FRT_ERROR_INIT;
    rig->before = malloc(rig->n_bytes);
    rig->after = malloc(rig->n_bytes);
    if (!rig->before || !rig->after) return fail(rig, "block", "out of memory");
    memset(rig->before, RED, rig->n_bytes);
    if (frt_device_alloc(rig->program, rig->n_bytes, &rig->device, &error))
        return fail(rig, "block", error.message);
    return true;
}

/* Binds inputs and outputs to the block at `device`, and the workspace to the rig's own. A tensor
 * without elements gets no memory, so that a read of it fails. */
static bool bind_all(Rig *rig, frt_exec *exec, void *device) {
    frt_error error = FRT_ERROR_INIT;
    const RigTensor *workspace = &rig->tensors[rig->n_tensors];
    for (uint32_t i = 0; i < rig->n_tensors; i++) {
        const RigTensor *tensor = &rig->tensors[i];
        if (tensor->info.role == FRT_PARAM) continue;
        frt_tensor bound = {.data = tensor->n_bytes ? (uint8_t *)device + tensor->offset : NULL,
                            .dtype = tensor->info.dtype,
                            .rank = tensor->info.rank};
        memcpy(bound.dims, tensor->dims, sizeof bound.dims);
        if (frt_bind(exec, tensor->info.name, &bound, &error))
            return fail(rig, "bind", error.message);
    }
    if (workspace->n_bytes &&
        frt_exec_set_workspace(exec, (uint8_t *)rig->device + workspace->offset, workspace->n_bytes,
                               &error))
        return fail(rig, "workspace", error.message);
    return true;
}

/* Clears params of an earlier placing, because they would fix the dims of this one. */
static bool forget_params(Rig *rig) {
    frt_error error = FRT_ERROR_INIT;
    for (uint32_t i = 0; i < rig->n_tensors; i++) {
        const RigTensor *tensor = &rig->tensors[i];
        if (tensor->info.role == FRT_PARAM && rig->options.program.no_weights &&
            frt_program_set_param_tensor(rig->program, tensor->info.name, NULL, &error))
            return fail(rig, "param", error.message);
    }
    return true;
}

bool rig_place(Rig *rig, const DimTab *dims, const int64_t *symbol_values) {
    frt_error error = FRT_ERROR_INIT;
    drop_block(rig);
    find_dims(rig, dims, symbol_values);
    if (!forget_params(rig)) return false;
    if (frt_exec_create(rig->program, &rig->exec, &error)) return fail(rig, "exec", error.message);
    return set_dims(rig, rig->exec) && lay_out(rig) && make_block(rig) &&
           bind_all(rig, rig->exec, rig->device);
}

static const RigTensor *find_tensor(const Rig *rig, const char *name) {
    for (uint32_t i = 0; i < rig->n_tensors; i++)
        if (strcmp(rig->tensors[i].info.name, name) == 0) return &rig->tensors[i];
    return NULL;
}

uint8_t *rig_contents(Rig *rig, const char *name, size_t *n_bytes) {
    const RigTensor *tensor = find_tensor(rig, name);
    if (!tensor || tensor->info.role == FRT_OUTPUT) return NULL;
    *n_bytes = tensor->n_bytes;
    return rig->before + tensor->offset;
}

const uint8_t *rig_result(const Rig *rig, const char *name, size_t *n_bytes) {
    const RigTensor *tensor = find_tensor(rig, name);
    if (!tensor) return NULL;
    *n_bytes = tensor->n_bytes;
    return rig->after + tensor->offset;
}

static bool set_params(Rig *rig) {
    frt_error error = FRT_ERROR_INIT;
    for (uint32_t i = 0; i < rig->n_tensors; i++) {
        const RigTensor *tensor = &rig->tensors[i];
        if (tensor->info.role != FRT_PARAM || !rig->options.program.no_weights) continue;
        frt_tensor given = {.data = rig->before + tensor->offset,
                            .dtype = tensor->info.dtype,
                            .rank = tensor->info.rank};
        memcpy(given.dims, tensor->dims, sizeof given.dims);
        if (frt_program_set_param_tensor(rig->program, tensor->info.name, &given, &error))
            return fail(rig, "param", error.message);
    }
    return true;
}

/* Whether bytes [begin, end) came back unchanged; `next` is the tensor after them. */
static bool is_untouched(Rig *rig, size_t begin, size_t end, uint32_t next) {
    if (memcmp(rig->before + begin, rig->after + begin, end - begin) == 0) return true;
    while (rig->before[begin] == rig->after[begin]) begin++;
    const RigTensor *tensor = &rig->tensors[next];
    char place[160];
    if (begin >= tensor->offset)
        snprintf(place, sizeof place, "byte %zu of `%.80s` (%zu bytes)", begin - tensor->offset,
                 tensor->info.name, tensor->n_bytes);
    else
        snprintf(place, sizeof place, "%zu bytes before `%.80s`", tensor->offset - begin,
                 tensor->info.name);
    return fail(rig, "written outside outputs and workspace", place);
}

static bool check_red_zones(Rig *rig) {
    size_t begin = 0;
    for (uint32_t i = 0; i <= rig->n_tensors; i++) {
        const RigTensor *tensor = &rig->tensors[i];
        bool is_written = tensor->info.role == FRT_OUTPUT || tensor->info.role == FRT_TEMP;
        size_t end = is_written ? tensor->offset : tensor->offset + tensor->n_bytes;
        if (!is_untouched(rig, begin, end, i)) return false;
        begin = tensor->offset + tensor->n_bytes;
    }
    return is_untouched(rig, begin, rig->n_bytes, rig->n_tensors);
}

/* A second exec of the program on the same workspace, whose inputs are zeros. */
typedef struct Twin {
    frt_exec *exec;
    void *device;
    uint8_t *zeros, *expected, *result; /* host blocks like the rig's */
} Twin;

static bool outputs_differ(const Rig *rig, const uint8_t *a, const uint8_t *b) {
    for (uint32_t i = 0; i < rig->n_tensors; i++) {
        const RigTensor *tensor = &rig->tensors[i];
        if (tensor->info.role == FRT_OUTPUT &&
            memcmp(a + tensor->offset, b + tensor->offset, tensor->n_bytes) != 0)
            return true;
    }
    return false;
}

static bool open_twin(Rig *rig, Twin *twin) {
    frt_error error = FRT_ERROR_INIT;
    twin->zeros = calloc(rig->n_bytes, 1);
    twin->expected = malloc(rig->n_bytes);
    twin->result = malloc(rig->n_bytes);
    if (!twin->zeros || !twin->expected || !twin->result) return fail(rig, "twin", "out of memory");
    if (frt_device_alloc(rig->program, rig->n_bytes, &twin->device, &error) ||
        frt_exec_create(rig->program, &twin->exec, &error))
        return fail(rig, "twin", error.message);
    if (!set_dims(rig, twin->exec) || !bind_all(rig, twin->exec, twin->device)) return false;
    if (frt_copy_to_device(rig->program, twin->device, twin->zeros, rig->n_bytes, &error) ||
        frt_run(twin->exec, NULL, &error) || frt_sync(rig->program, NULL, &error) ||
        frt_copy_from_device(rig->program, twin->expected, twin->device, rig->n_bytes, &error))
        return fail(rig, "twin", error.message);
    return true;
}

static void close_twin(Rig *rig, Twin *twin) {
    frt_exec_free(twin->exec);
    if (twin->device) frt_device_free(rig->program, twin->device, rig->n_bytes);
    free(twin->zeros);
    free(twin->expected);
    free(twin->result);
}

enum { BURST_RUNS = 3 };

/* Runs both execs alternately without pauses, so that workspace contents of one are wrong for the
 * other. */
static bool run_burst(Rig *rig, Twin *twin) {
    frt_error error = FRT_ERROR_INIT;
    if (frt_copy_to_device(rig->program, rig->device, rig->before, rig->n_bytes, &error))
        return fail(rig, "repeated run", error.message);
    for (int i = 0; i < BURST_RUNS; i++)
        if (frt_run(rig->exec, NULL, &error) || frt_run(twin->exec, NULL, &error))
            return fail(rig, "repeated run", error.message);
    if (frt_sync(rig->program, NULL, &error) ||
        frt_copy_from_device(rig->program, twin->result, twin->device, rig->n_bytes, &error))
        return fail(rig, "repeated run", error.message);
    if (outputs_differ(rig, twin->expected, twin->result))
        return fail(rig, "repeated run", "other bits than the first, of zeros");
    if (frt_copy_from_device(rig->program, twin->result, rig->device, rig->n_bytes, &error))
        return fail(rig, "repeated run", error.message);
    if (outputs_differ(rig, rig->after, twin->result))
        return fail(rig, "repeated run", "other bits than the first");
    return true;
}

static bool repeat_runs(Rig *rig) {
    Twin twin = {.exec = NULL};
    bool is_good = open_twin(rig, &twin);
    for (uint32_t i = 0; is_good && i < n_bursts; i++) is_good = run_burst(rig, &twin);
    close_twin(rig, &twin);
    return is_good;
}

bool rig_run(Rig *rig, uint8_t poison) {
    frt_error error = FRT_ERROR_INIT;
    for (uint32_t i = 0; i <= rig->n_tensors; i++) {
        const RigTensor *tensor = &rig->tensors[i];
        if (tensor->info.role == FRT_OUTPUT || tensor->info.role == FRT_TEMP)
            memset(rig->before + tensor->offset, poison, tensor->n_bytes);
    }
    if (!set_params(rig)) return false;
    if (frt_prepare(rig->exec, &error) ||
        frt_copy_to_device(rig->program, rig->device, rig->before, rig->n_bytes, &error))
        return fail(rig, "run", error.message);
    if (rig->options.before_run) rig->options.before_run(rig->options.user);
    if (frt_run(rig->exec, NULL, &error) || frt_sync(rig->program, NULL, &error) ||
        frt_copy_from_device(rig->program, rig->after, rig->device, rig->n_bytes, &error))
        return fail(rig, "run", error.message);
    if (!is_guard_whole(rig->guard)) return fail(rig, "run", "written beside the program's memory");
    return check_red_zones(rig) && (!n_bursts || repeat_runs(rig));
}
