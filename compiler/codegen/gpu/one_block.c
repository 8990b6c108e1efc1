/* Launches of turns. See gpu.h and plan/kernel.h.
 *
 * What the turns read and nobody writes is copied to shared memory first, all of it at once, so
 * that memory is waited for once; each turn begins when its own part is there. Between turns, and
 * between the blocks that the one block stands for, a barrier lets all threads see what was left
 * and use the same shared memory again. */
#include "codegen/gpu/gpu.h"
#include "plan/launch.h"

#include <string.h>

enum { COPY_BYTES = 16, LEAST_COPY_BYTES = 4, MAX_ROUNDS = 8 };

typedef struct Copy {
    Unit *unit;
    LLVMValueRef function, thread;
    LLVMValueRef from, to; /* ptr addrspace(1) and (3) */
    uint32_t threads;
} Copy;

/* Piece `i` (i32), of `bytes`: without waiting, where the machine can. */
static void copy_piece(const Copy *copy, LLVMValueRef i, uint32_t bytes) {
    Unit *unit = copy->unit;
    LLVMTypeRef type = LLVMIntTypeInContext(unit->context, bytes * 8);
    LLVMValueRef at[2];
    at[0] = LLVMBuildGEP2(unit->builder, type, copy->to, &i, 1, "");
    at[1] = LLVMBuildGEP2(unit->builder, type, copy->from, &i, 1, "");
    if (bytes >= LEAST_COPY_BYTES) {
        const char *name = str_format(unit->arena, "llvm.nvvm.cp.async.ca.shared.global.%u", bytes);
        unit_intrinsic(unit, name, NULL, 0, at, 2);
        return;
    }
    LLVMValueRef value = LLVMBuildLoad2(unit->builder, type, at[1], "");
    LLVMSetAlignment(value, bytes);
    LLVMSetAlignment(LLVMBuildStore(unit->builder, value, at[0]), bytes);
}

static LLVMValueRef piece_from(const Copy *copy, uint32_t first) {
    return LLVMBuildAdd(copy->unit->builder, copy->thread, unit_i32(copy->unit, first), "");
}

/* Pieces [first, first + n), dealt out to the threads: without a loop where they are few. */
static void copy_pieces(const Copy *copy, uint32_t first, uint32_t n, uint32_t bytes) {
    uint32_t n_rounds = n / copy->threads, end = first + n_rounds * copy->threads;
    if (n_rounds > MAX_ROUNDS) {
        Loop loop = loop_begin(copy->unit, copy->function, piece_from(copy, first),
                               unit_i32(copy->unit, end), unit_i32(copy->unit, copy->threads));
        copy_piece(copy, loop.index, bytes);
        loop_end(copy->unit, &loop);
    } else {
        for (uint32_t at = first; at < end; at += copy->threads)
            copy_piece(copy, piece_from(copy, at), bytes);
    }
    if (end == first + n) return;
    LLVMValueRef left = unit_i32(copy->unit, (int64_t)first + n - end);
    LLVMValueRef has_piece = LLVMBuildICmp(copy->unit->builder, LLVMIntULT, copy->thread, left, "");
    If rest = if_begin(copy->unit, copy->function, has_piece);
    copy_piece(copy, piece_from(copy, end), bytes);
    if_end(copy->unit, &rest);
}

static int64_t arg_bytes(const Lower *turn, uint32_t i) {
    const Buffer *buffer = &turn->plan->buffers.data[turn->kernel->args.data[i]];
    return dim_hi(lower_dims(turn), buffer_bytes(lower_dims(turn), buffer));
}

static bool is_aligned_arg(const Lower *turn, uint32_t i) {
    return turn->variant->align_bytes >= COPY_BYTES && (turn->variant->align_args >> i & 1);
}

static void copy_arg(const Lower *turn, uint32_t i, LLVMValueRef from) {
    const Buffer *buffer = &turn->plan->buffers.data[turn->kernel->args.data[i]];
    int64_t n_bytes = arg_bytes(turn, i);
    uint32_t elem_bytes = dtype_bytes(buffer->dtype), bytes = elem_bytes;
    bool is_aligned = is_aligned_arg(turn, i);
    Copy copy = {.unit = turn->unit,
                 .function = turn->function,
                 .thread = gpu_thread(turn->unit),
                 .from = from,
                 .to = turn->pointers[i],
                 .threads = turn->variant->sched.threads};
    if (is_aligned) bytes = COPY_BYTES;
    uint32_t n_whole = (uint32_t)(n_bytes / bytes);
    copy_pieces(&copy, 0, n_whole, bytes);
    uint32_t first = n_whole * bytes / elem_bytes, n = (uint32_t)(n_bytes / elem_bytes);
    copy_pieces(&copy, first, n - first, elem_bytes);
}

static bool is_copied(const Launch *launch, uint32_t k, uint32_t i) {
    return (launch->kernels[k].copied_args >> i & 1) &&
           !launch_comes_again(launch, (LaunchArg){k, i});
}

/* By one thread: it takes no branch, so that the wait behind it is everybody's. */
static void prefetch_arg(const Lower *turn, uint32_t i, LLVMValueRef asks) {
    const Unit *unit = turn->unit;
    int64_t n_bytes = arg_bytes(turn, i) / COPY_BYTES * COPY_BYTES;
    if (!is_aligned_arg(turn, i) || n_bytes == 0) return;
    static const char list[] = "l,r,~{memory}";
    const char *text = str_format(unit->arena,
                                  "{\n\t.reg .pred asks;\n\tsetp.ne.b32 asks, $1, 0;\n\t@asks "
                                  "cp.async.bulk.prefetch.L2.global [$0], %u;\n\t}",
                                  (unsigned)n_bytes);
    LLVMValueRef args[2] = {turn->pointers[i], asks};
    LLVMTypeRef types[2] = {unit->global_ptr, unit->i32};
    LLVMTypeRef type = LLVMFunctionType(unit->void_type, types, 2, 0);
    LLVMValueRef code = LLVMGetInlineAsm(type, text, strlen(text), list, sizeof list - 1, 1, 0,
                                         LLVMInlineAsmDialectATT, 0);
    LLVMBuildCall2(unit->builder, type, code, args, 2, "");
}

void gpu_one_block_prefetch(const Lower *turns, const Launch *launch) {
    const Unit *unit = turns->unit;
    LLVMValueRef zero = unit_i32(unit, 0);
    LLVMValueRef is_first = LLVMBuildICmp(unit->builder, LLVMIntEQ, gpu_thread(unit), zero, "");
    LLVMValueRef asks = LLVMBuildZExt(unit->builder, is_first, unit->i32, "");
    for (uint32_t k = 0; k < launch->n; k++)
        for (uint32_t i = 0; i < launch->kernels[k].args.n; i++)
            if (is_copied(launch, k, i)) prefetch_arg(&turns[k], i, asks);
}

/* Of turn `k`, as a group of copies. */
static void begin_copies(const Lower *turns, const Launch *launch, uint32_t k,
                         LLVMValueRef *pointers) {
    for (uint32_t i = 0; i < launch->kernels[k].args.n; i++)
        if (is_copied(launch, k, i)) copy_arg(&turns[k], i, pointers[i]);
    unit_intrinsic(turns->unit, "llvm.nvvm.cp.async.commit.group", NULL, 0, NULL, 0);
}

static void wait_for_copies(const Unit *unit, uint32_t n_later) {
    LLVMValueRef n = unit_i32(unit, n_later);
    unit_intrinsic(unit, "llvm.nvvm.cp.async.wait.group", NULL, 0, &n, 1);
}

/* All blocks of the kernel's grid. */
static void take_turn(Lower *turn, GpuTemplate *template) {
    Unit *unit = turn->unit;
    int64_t n;
    if (!dim_is_const(lower_dims(turn), turn->variant->grid, &n))
        ice(unit->arena, "turn %s of unknown length", turn->kernel->name);
    turn->block = unit_i32(unit, 0);
    if (n == 1) {
        template(turn);
        return;
    }
    Loop loop = loop_begin(unit, turn->function, turn->block, unit_i32(unit, n), unit_i32(unit, 1));
    turn->block = loop.index;
    template(turn);
    gpu_barrier(unit);
    loop_end(unit, &loop);
}

void gpu_one_block(Lower *turns, const Launch *launch, LLVMValueRef *const *pointers,
                   GpuTemplate *const *templates) {
    Unit *unit = turns->unit;
    SharedPool pool = {.array = NULL};
    gpu_pool_begin(unit, &pool);
    for (uint32_t k = 0; k < launch->n; k++) begin_copies(turns, launch, k, pointers[k]);
    for (uint32_t k = 0; k < launch->n; k++) {
        wait_for_copies(unit, launch->n - 1 - k);
        gpu_barrier(unit);
        pool.n_used = 0;
        unit->math.overlaps_quotients = launch->kernels[k].form == FORM_GEMM;
        take_turn(&turns[k], templates[launch->kernels[k].form]);
    }
    gpu_pool_end(unit);
}
