/* Function interfaces and template choice. See lower.h.
 *
 * GPU: void kernel(one global pointer per argument of every kernel, one i64 per dim symbol, one
 * per constant that the launch gives, one tensor map of 128 bytes by value per map of the launch).
 * CPU: void kernel(ptr arguments, ptr dims and constants, i64 begin, i64 end), with the arguments
 * of all kernels in the same order. */
#include "codegen/lower.h"
#include "plan/launch.h"

#include "codegen/gpu/gpu.h"
#include "codegen/template.h"
#include "template/gemm_rows_gemm.h"

#include <frt_manifest.h>
#include <string.h>

enum { MAP_ALIGN_BYTES = 64 };

static void add_nounwind(const Codegen *k, Val function) {
    static const char name[] = "nounwind";
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(k->context, kind, 0));
}

static void open_entry(Lower *lower) {
    lower->entry = LLVMAppendBasicBlockInContext(lower->k->context, lower->function, "entry");
    k_goto(lower->k, lower->entry);
}

/* Ends the entry block with a jump to the first block of the body. */
static void close_entry(Lower *lower, LLVMBasicBlockRef body) {
    k_ret_void(lower->k);
    k_goto(lower->k, lower->entry);
    k_br(lower->k, body);
}

static void add_type_or_number(const Codegen *k, Val function, uint32_t param, const char *name,
                               LLVMTypeRef type, uint64_t number) {
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, param + 1,
                            type ? LLVMCreateTypeAttribute(k->context, kind, type)
                                 : LLVMCreateEnumAttribute(k->context, kind, number));
}

static uint32_t variant_number(const Lower *lower) {
    return (uint32_t)(lower->variant - lower->kernel->variants);
}

static uint32_t n_launch_maps(const Lower *lower, const Launch *launch) {
    LaunchMap maps[MAX_LAUNCH_MAPS];
    return launch_maps(lower->plan, launch, variant_number(lower), maps);
}

/* Tensor maps are grid constants: the copy engine reads them in parameter space. They are the last
 * parameters. */
static void add_maps(Lower *lower, uint32_t n_maps) {
    const Codegen *k = lower->k;
    static const char constant[] = "nvvm.grid_constant";
    LLVMTypeRef bytes = LLVMArrayType2(k->i8, FRT_MAP_BYTES);
    lower->maps = arena_array(k->arena, Val, n_maps);
    for (uint32_t i = 0; i < n_maps; i++) {
        uint32_t param = LLVMCountParams(lower->function) - n_maps + i;
        add_type_or_number(k, lower->function, param, "byval", bytes, 0);
        add_type_or_number(k, lower->function, param, "align", NULL, MAP_ALIGN_BYTES);
        LLVMAddAttributeAtIndex(
            lower->function, param + 1,
            LLVMCreateStringAttribute(k->context, constant, sizeof constant - 1, "", 0));
        lower->maps[i] = LLVMGetParam(lower->function, param);
    }
}

/* The blocks per multiprocessor for which ptxas must leave registers; 0: no bound. Without the
 * bound, ptxas may spill a few registers to fit one more block. Moving registers between warps
 * (setmaxnreg) also needs their number at entry to be known. */
static uint32_t least_blocks(const Lower *lower, const Launch *launch) {
    uint32_t least = lower->variant->sched.min_blocks;
    if (launch_has_one_block(launch)) return 1;
    if (form_info(lower->kernel->form)->multiplies) return least ? least : 1;
    for (uint32_t k = 0; k < launch->n; k++) {
        uint32_t own =
            launch_kernel(lower->plan, launch, k)->variants[variant_number(lower)].sched.min_blocks;
        if (own < least) least = own;
    }
    return least;
}

static void make_gpu_function(Lower *lower, const Launch *launch) {
    Codegen *k = lower->k;
    const GpuIsa *isa = gpu_isa(k);
    LLVMTypeRef params[MAX_KERNEL_ARGS + DIM_MAX_SYMBOLS + MAX_LAUNCH_GIVEN + MAX_LAUNCH_MAPS];
    uint32_t n = 0, n_given = launch_n_given(lower->plan, launch, launch->n),
             n_maps = n_launch_maps(lower, launch);
    for (uint32_t j = 0; j < launch->n; j++)
        for (uint32_t i = 0; i < launch_kernel(lower->plan, launch, j)->args.n; i++)
            if (lower->plan->buffers.data[launch_kernel(lower->plan, launch, j)->args.data[i]]
                    .space == BUFFER_GLOBAL)
                params[n++] = k->global_ptr;
    for (uint32_t s = 0; s < DIM_MAX_SYMBOLS; s++)
        if (launch_symbols(lower->plan, launch) >> s & 1) params[n++] = k->i64;
    for (uint32_t i = 0; i < n_given; i++) params[n++] = k->i64;
    for (uint32_t i = 0; i < n_maps; i++) params[n++] = k->ptr;
    LLVMTypeRef type = LLVMFunctionType(k->void_type, params, n, 0);
    lower->function = LLVMAddFunction(k->module, lower->variant->symbol, type);
    LLVMSetFunctionCallConv(lower->function, isa->calling_convention);
    add_nounwind(k, lower->function);
    k_add_attribute(k, lower->function, isa->threads_key,
                    str_format(k->arena, "%s%u%s", isa->before_threads,
                               lower->variant->sched.threads, isa->after_threads));
    uint32_t min_blocks = least_blocks(lower, launch);
    if (min_blocks && isa->blocks_key)
        k_add_attribute(k, lower->function, isa->blocks_key,
                        str_format(k->arena, "%u", min_blocks));
    if (lower->variant->sched.cluster > 1)
        k_add_attribute(k, lower->function, "nvvm.cluster_dim",
                        str_format(k->arena, "%u,1,1", lower->variant->sched.cluster));
}

/* The address of a buffer of the launch in the block's shared memory. */
static Val shared_base(const Lower *lower, const Launch *launch, uint32_t buffer,
                       SmemOffset *place) {
    const Codegen *k = lower->k;
    uint32_t v = variant_number(lower);
    const Sched *sched = &launch_kernel(lower->plan, launch, 0)->variants[v].sched;
    launch_smem_offset(lower->plan, launch, sched, buffer, place);
    int64_t begin = launch_shared_bytes(lower->plan, launch, v);
    return k_byte(k, gpu_shared_dynamic(k), k_i32(k, begin + place->offset_bytes));
}

/* Takes the function's parameters from `param` on as the kernel's pointers, and returns the next
 * parameter. A shared buffer gets an address in shared memory instead, unless the kernels of the
 * block pass it in registers. */
static uint32_t take_pointers(Lower *lower, const Launch *launch, uint32_t param) {
    const Kernel *kernel = lower->kernel;
    Smem *smem = arena_array(lower->k->arena, Smem, kernel->args.n);
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t buffer = kernel->args.data[i];
        if (lower->plan->buffers.data[buffer].space == BUFFER_GLOBAL) {
            lower->pointers[i] = LLVMGetParam(lower->function, param++);
            continue;
        }
        if (lower->n_together > 1) continue;
        SmemOffset place = {0, DIM_NONE};
        smem[i].base = shared_base(lower, launch, buffer, &place);
        smem[i].pitch = place.pitch;
    }
    lower->smem = smem;
    return param;
}

/* Moves past the elements before a slice of a buffer in shared memory. In global memory the runtime
 * adds this offset. */
static Val skip_begin(const Lower *lower, uint32_t arg, Val base) {
    const Codegen *k = lower->k;
    DimId begin = kernel_arg_begin(lower->kernel, arg);
    Dtype dtype = lower->plan->buffers.data[lower->kernel->args.data[arg]].dtype;
    int64_t n;
    if (!begin) return base;
    if (!dim_is_const(lower->plan->graph->dims, begin, &n))
        ice(k->arena, "kernel %s: an unknown offset in shared memory", lower->kernel->name);
    return k_byte(k, base, k_i32(k, n * dtype_bytes(dtype)));
}

/* For a kernel of a one-block launch: a shared or copied buffer has the same layout in shared
 * memory as in global memory, so only its pointer changes. Returns the pointers to global
 * memory. */
static Val *move_to_shared(Lower *lower, const Launch *launch) {
    const Kernel *kernel = lower->kernel;
    Val *in_memory = arena_array(lower->k->arena, Val, kernel->args.n);
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t buffer = kernel->args.data[i];
        bool is_copied = launch_copies(launch, buffer);
        in_memory[i] = lower->pointers[i];
        lower->may_change[i] = lower->may_change[i] || is_copied;
        if (!is_copied && !lower->smem[i].base) continue;
        SmemOffset place = {0, DIM_NONE};
        lower->pointers[i] = skip_begin(lower, i, shared_base(lower, launch, buffer, &place));
    }
    lower->smem = NULL;
    lower->is_one_block = true;
    return in_memory;
}

static uint32_t n_symbols(const Lower *lower, const Launch *launch) {
    uint32_t n = 0;
    for (uint32_t s = 0; s < DIM_MAX_SYMBOLS; s++)
        n += (launch_symbols(lower->plan, launch) >> s & 1) != 0;
    return n;
}

/* Takes an i64, or its low bits, as the constant number `slot` of the kernel. */
static void take_constant(Lower *lower, uint32_t slot, Val whole) {
    const Codegen *k = lower->k;
    const KernelParts *parts = lower->kernel->parts;
    Dtype dtype = scalar_get(parts->scalars, parts->constants.data[slot])->dtype;
    Val bits = dtype_bytes(dtype) == 8 ? whole : k_trunc(k, whole, k->i32);
    lower->given[slot] =
        dtype_is_float(dtype) ? k_bitcast(k, bits, k_value_type(k, dtype, 1)) : bits;
}

/* Takes the function's parameters from `param` on as dims, and as the constants of kernel number
 * `j` of the launch. */
static void take_numbers(Lower *lower, const Launch *launch, uint32_t j, uint32_t param) {
    for (uint32_t s = 0; s < DIM_MAX_SYMBOLS; s++)
        if (launch_symbols(lower->plan, launch) >> s & 1)
            lower->symbols[s] = LLVMGetParam(lower->function, param++);
    param += launch_n_given(lower->plan, launch, j);
    for (uint32_t i = 0; i < kernel_n_given(lower->kernel); i++)
        take_constant(lower, i, LLVMGetParam(lower->function, param + i));
}

static uint32_t n_tensor_params(const Lower *lower, const Launch *launch) {
    return LLVMCountParams(lower->function) - n_symbols(lower, launch) -
           launch_n_given(lower->plan, launch, launch->n) - n_launch_maps(lower, launch);
}

static bool uses_copy_engine(const Lower *lower) {
    return template_info(lower->variant->sched.template)->uses_copy_engine;
}

static void lower_one_block(Lower *lowers, const Launch *launch) {
    Val **in_memory = arena_array(lowers->k->arena, Val *, launch->n);
    for (uint32_t j = 0; j < launch->n; j++) in_memory[j] = move_to_shared(&lowers[j], launch);
    gpu_one_block(lowers, launch, in_memory);
}

/* Emits the kernels of a sequence one after the other. A barrier between them makes stores to
 * shared memory visible and lets the next kernel reuse shared memory. Kernels that run together are
 * one template call. So are row kernels after a wgmma GEMM, whose rows its warps process. */
static void lower_sequence(Lower *lowers, const Launch *launch) {
    Codegen *k = lowers->k;
    BlockTile tile = {.m0 = NULL};
    uint32_t n_together = lowers->n_together, n = launch->n;
    for (uint32_t j = 0; j < n && n > n_together; j++) lowers[j].tile = &tile;
    if (n > n_together && uses_copy_engine(lowers)) lowers->rows = &lowers[--n];
    for (uint32_t j = 0; j < n; j += n_together) {
        if (j) gpu_barrier(k);
        k->overlaps_quotients = form_info(launch_kernel(lowers->plan, launch, j)->form)->multiplies;
        template_emit(&lowers[j]);
    }
}

/* A kernel of the launch that writes a buffer changes it for the other kernels. */
static void note_written(Lower *lower, const Launch *launch) {
    const Kernel *kernel = lower->kernel;
    for (uint32_t i = 0; i < kernel->args.n; i++)
        lower->may_change[i] =
            lower->may_change[i] || launch_stores_to(lower->plan, launch, kernel->args.data[i]);
}

/* Sets up a Lower for kernel `k` of the launch in the same function. */
static void lower_beside(Lower *own, const Lower *lower, const Launch *launch, uint32_t k,
                         SharedTiles *tiles) {
    const Kernel *kernel = launch_kernel(lower->plan, launch, k);
    lower_init(own, lower->k, lower->plan, kernel, &kernel->variants[variant_number(lower)]);
    own->function = lower->function;
    own->entry = lower->entry;
    own->launch = launch;
    own->tiles = tiles;
    take_numbers(own, launch, k, n_tensor_params(lower, launch));
}

/* The number of leading kernels of the launch that one template call emits, so that tiles pass
 * between them in registers. */
static uint32_t count_together(const Lower *lower, const Launch *launch) {
    uint32_t n = 1;
    switch (launch->mode) {
    case LAUNCH_SINGLE:
    case LAUNCH_PARALLEL:
    case LAUNCH_ONE_BLOCK:
        return 1;
    case LAUNCH_SEQUENCE:
        while (uses_copy_engine(lower) && n < launch->n &&
               form_info(launch_kernel(lower->plan, launch, n)->form)->multiplies)
            n++;
        return n;
    case LAUNCH_GEMM_ROWS_GEMM:
        if (launch->n != GEMM_ROWS_GEMM_KERNELS)
            ice(lower->k->arena, "a gemm-rows-gemm launch of %u kernels", launch->n);
        return launch->n;
    case LAUNCH_GEMM_ONLINE:
        return launch->n;
    }
    return n;
}

/* Sets up the Lowers of the kernels of a sequence. */
static Lower *make_lowers(Lower *lower, const Launch *launch, SharedTiles *tiles) {
    uint32_t param = 0, n_together = count_together(lower, launch);
    Lower *lowers = arena_array(lower->k->arena, Lower, launch->n);
    for (uint32_t j = 0; j < launch->n; j++) {
        lower_beside(&lowers[j], lower, launch, j, tiles);
        lowers[j].n_together = n_together;
        note_written(&lowers[j], launch);
        param = take_pointers(&lowers[j], launch, param);
        lowers[j].maps = lower->maps;
    }
    return lowers;
}

/* Emits parallel kernels. Kernels with the same code share one body. With wgmma, persistent blocks
 * walk over the tiles of all kernels, and the template tells the kernels apart. */
static void lower_parallel(Lower *lower, const Launch *launch, SharedTiles *tiles) {
    uint32_t n = 0, param = 0, map = 0, v = variant_number(lower);
    uint32_t first_map = LLVMCountParams(lower->function) - n_launch_maps(lower, launch);
    Lower *bodies = arena_array(lower->k->arena, Lower, launch->n);
    for (uint32_t j = 0; j < launch->n; j++) {
        const Kernel *kernel = launch_kernel(lower->plan, launch, j);
        if (j && kernel->code == launch_kernel(lower->plan, launch, j - 1)->code) {
            bodies[n - 1].n_kernels++;
        } else {
            lower_beside(&bodies[n], lower, launch, j, tiles);
            take_pointers(&bodies[n], launch, param);
            bodies[n].maps = lower->maps + map;
            bodies[n].triggers_next = lower->triggers_next;
            bodies[n].first_param = param;
            bodies[n++].first_map = first_map + map;
        }
        param += kernel->args.n;
        map += kernel->variants[v].n_maps;
    }
    if (!uses_copy_engine(lower)) {
        gpu_parallel(lower, bodies, n);
        return;
    }
    for (uint32_t i = 0; i < n; i++) bodies[i].n_codes = n;
    template_emit(bodies);
}

static void lower_gpu(Lower *lower, const Launch *launch) {
    Codegen *k = lower->k;
    SharedTiles tiles = {.dynamic_bytes =
                             launch_shared_bytes(lower->plan, launch, variant_number(lower))};
    make_gpu_function(lower, launch);
    open_entry(lower);
    uint32_t n_tensors = n_tensor_params(lower, launch);
    take_numbers(lower, launch, 0, n_tensors);
    add_maps(lower, n_launch_maps(lower, launch));
    bool is_beside = launch->n > 1 && !launch_shares_blocks(launch);
    Lower *lowers = is_beside ? NULL : make_lowers(lower, launch, &tiles);
    gpu_begin(lowers ? lowers : lower, launch);
    LLVMBasicBlockRef body = k_block(k, "body");
    k_goto(k, body);
    if (!lowers)
        lower_parallel(lower, launch, &tiles);
    else if (launch_has_one_block(launch))
        lower_one_block(lowers, launch);
    else
        lower_sequence(lowers, launch);
    close_entry(lower, body);
}

static Val load_slot(const Codegen *k, Val array, LLVMTypeRef type, uint32_t index) {
    Val at = k_int(k->i64, index);
    Val slot = k_gep(k, type, array, at);
    return k_load(k, type, slot);
}

/* `+avx512vnni,+...` */
static const char *llvm_features(const Codegen *k) {
    Text text = {.arena = k->arena};
    for (const char *list = k->target->features; *list; list += *list == ',') {
        int n = (int)strcspn(list, ",");
        text_printf(&text, "%s+%.*s", text.n_bytes ? "," : "", n, list);
        list += n;
    }
    return text_str(&text);
}

static void make_cpu_function(Lower *lower) {
    Codegen *k = lower->k;
    LLVMTypeRef params[4] = {k->ptr, k->ptr, k->i64, k->i64};
    LLVMTypeRef type = LLVMFunctionType(k->void_type, params, 4, 0);
    lower->function = LLVMAddFunction(k->module, lower->variant->symbol, type);
    k->n_stack_bytes = 0;
    add_nounwind(k, lower->function);
    k_add_attribute(k, lower->function, "target-cpu", k->target->machine);
    if (k->target->features)
        k_add_attribute(k, lower->function, "target-features", llvm_features(k));
    k_add_attribute(k, lower->function, "no-builtins", "");
}

static void load_symbols(Lower *lower, const Launch *launch) {
    const Codegen *k = lower->k;
    uint32_t n = 0;
    for (uint32_t s = 0; s < DIM_MAX_SYMBOLS; s++)
        if (launch_symbols(lower->plan, launch) >> s & 1)
            lower->symbols[s] = load_slot(k, LLVMGetParam(lower->function, 1), k->i64, n++);
}

/* Loads the constants of kernel number `j` of the launch. */
static void load_constants(Lower *lower, const Launch *launch, uint32_t j) {
    const Codegen *k = lower->k;
    uint32_t first = n_symbols(lower, launch) + launch_n_given(lower->plan, launch, j);
    for (uint32_t i = 0; i < kernel_n_given(lower->kernel); i++)
        take_constant(lower, i, load_slot(k, LLVMGetParam(lower->function, 1), k->i64, first + i));
}

/* Loads the kernel's pointers from `slot` on, and returns the next slot. A shared buffer has no
 * pointer here: it passes in registers, or the template allocates it. */
static uint32_t load_pointers(Lower *lower, uint32_t slot) {
    const Codegen *k = lower->k;
    for (uint32_t i = 0; i < lower->kernel->args.n; i++)
        if (lower->plan->buffers.data[lower->kernel->args.data[i]].space == BUFFER_GLOBAL)
            lower->pointers[i] = load_slot(k, LLVMGetParam(lower->function, 0), k->ptr, slot++);
    return slot;
}

/* The index of the row kernel that follows on GEMMs of the launch; the number of kernels: there is
 * none. */
static uint32_t find_rows(const Plan *plan, const Launch *launch) {
    uint32_t rows = 1;
    while (rows < launch->n && !form_info(launch_kernel(plan, launch, rows)->form)->reduces_rows)
        rows++;
    return rows;
}

/* Sets up the Lowers of the kernels of the launch, which one template call emits. */
static Lower *make_cpu_lowers(const Lower *lower, const Launch *launch) {
    uint32_t slot = 0, v = variant_number(lower), rows = find_rows(lower->plan, launch);
    Lower *lowers = arena_array(lower->k->arena, Lower, launch->n);
    for (uint32_t j = 0; j < launch->n; j++) {
        const Kernel *kernel = launch_kernel(lower->plan, launch, j);
        lower_init(&lowers[j], lower->k, lower->plan, kernel, &kernel->variants[v]);
        lowers[j].launch = launch;
        lowers[j].function = lower->function;
        lowers[j].entry = lower->entry;
        memcpy(lowers[j].symbols, lower->symbols, sizeof lower->symbols);
        load_constants(&lowers[j], launch, j);
        lowers[j].n_together = rows;
        note_written(&lowers[j], launch);
        slot = load_pointers(&lowers[j], slot);
    }
    if (rows < launch->n) lowers->rows = &lowers[rows];
    if (rows + 1 < launch->n) lowers->behind_rows = &lowers[rows + 1];
    return lowers;
}

static void lower_cpu(Lower *lower, const Launch *launch) {
    Codegen *k = lower->k;
    make_cpu_function(lower);
    open_entry(lower);
    load_symbols(lower, launch);
    Lower *lowers = make_cpu_lowers(lower, launch);
    LLVMBasicBlockRef body = k_block(k, "body");
    k_goto(k, body);
    lowers->units_begin = LLVMGetParam(lower->function, 2);
    lowers->units_end = LLVMGetParam(lower->function, 3);
    template_emit(lowers);
    close_entry(lower, body);
}

/* While a variant is lowered, its predicate's conditions on extents count as known facts. */
static void assume(const Plan *plan, const Launch *launch, uint32_t v, bool holds) {
    for (uint32_t k = 0; k < launch->n; k++) {
        const Kernel *kernel = launch_kernel(plan, launch, k);
        predicate_assume(holds ? &kernel->variants[v].predicate : NULL,
                         scalartab_indices(kernel->scalars));
    }
}

/* Emits the code of the variant's level. */
static Val lower_variant(Codegen *k, const Plan *plan, const Launch *launch, uint32_t v) {
    Lower lower;
    const Variant *variant = &launch_kernel(plan, launch, 0)->variants[v];
    Str level = predicate_level(&variant->predicate);
    const Target *whole = k->target;
    k->target = level ? target_by_name(level) : target_level(whole, target_n_levels(whole) - 1);
    k->symbol = variant->symbol;
    lower_init(&lower, k, plan, launch_kernel(plan, launch, 0), variant);
    lower.launch = launch;
    assume(plan, launch, v, true);
    if (k->target->has->blocks)
        lower_gpu(&lower, launch);
    else
        lower_cpu(&lower, launch);
    assume(plan, launch, v, false);
    k->target = whole;
    return lower.function;
}

uint32_t lower_n_functions(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->launches.n; i++) {
        const Kernel *kernel = launch_kernel(plan, &plan->launches.data[i], 0);
        for (uint32_t v = 0; v < kernel->n_variants; v++) n += !kernel->variants[v].is_shared;
    }
    return n;
}

Val lower_function(Codegen *k, const Plan *plan, uint32_t function) {
    uint32_t n_left = function;
    for (uint32_t i = 0; i < plan->launches.n; i++) {
        const Launch *launch = &plan->launches.data[i];
        const Kernel *kernel = launch_kernel(plan, launch, 0);
        for (uint32_t v = 0; v < kernel->n_variants; v++)
            if (!kernel->variants[v].is_shared && n_left-- == 0)
                return lower_variant(k, plan, launch, v);
    }
    ice(k->arena, "a plan has no function %u", function);
}
