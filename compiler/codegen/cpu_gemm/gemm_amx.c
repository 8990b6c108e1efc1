/* CPU GEMMs by tile registers (AMX). See gemm.h.
 *
 * A tile register has 16 rows of 64 bytes. One instruction adds the product of two to a third: 16
 * rows of the left operand, whose elements lie along k, with 16 columns of the right one, which has
 * in a row 32 bits of each column: 2 steps of bf16, or 4 of i8 or u8.
 *
 *     rows    [16 or 32][k]          columns    [k / 4][16 or 32][4]
 *
 * Packed rows are so already. Packed columns are joined in place, a group of 2 or 4 steps at a
 * time. Panels in memory are joined on their way into the stack. Results of the register tile, at
 * most 2 x 2 tile registers, go to the partial results, and come from there in later blocks of k.
 */
#include "codegen/cpu_gemm/gemm.h"

enum {
    GROUP_BYTES = 4,
    N_REGISTERS = 8,
    /* The numbers of the registers: up to 4 sums, then 2 of each operand. */
    ROW_REGISTER = 4,
    COLUMN_REGISTER = 6,
    MOST_GROUP = 4,
    /* 64-bit words of a configuration: palette 1, bytes of a row, rows. */
    CONFIG_WORDS = 8,
    CONFIG_ROW_BYTES = 2,
    CONFIG_ROWS = 6
};

static void call(const Codegen *k, const char *name, Val *args, uint32_t n) {
    k_intrinsic(k, name, args, n);
}

static Val number_of(const Codegen *k, uint32_t number) {
    return k_int(k->i8, number);
}

/* A configuration in which all registers have all rows. */
void gemm_amx_begin(const Codegen *k) {
    uint64_t words[CONFIG_WORDS] = {1};
    for (uint32_t i = 0; i < N_REGISTERS; i++) {
        words[CONFIG_ROW_BYTES + i / 4] |= (uint64_t)AMX_ROW_BYTES << 16 * (i % 4);
        words[CONFIG_ROWS] |= (uint64_t)AMX_ROWS << 8 * i;
    }
    Val values[CONFIG_WORDS];
    for (uint32_t i = 0; i < CONFIG_WORDS; i++) values[i] = k_int(k->i64, (int64_t)words[i]);
    Val config = k_constant_array(k, values, CONFIG_WORDS, "tiles");
    call(k, "llvm.x86.ldtilecfg", &config, 1);
}

void gemm_amx_end(const Codegen *k) {
    call(k, "llvm.x86.tilerelease", NULL, 0);
}

/* Packing. */

/* Steps of k of 32 bits. */
static uint32_t group_of(const Gemm *gemm) {
    return GROUP_BYTES / dtype_bytes(gemm->packed);
}

/* Steps of k of a tile register. */
static uint32_t depth_of(const Gemm *gemm) {
    return AMX_ROW_BYTES / dtype_bytes(gemm->packed);
}

static Val round_up(const Codegen *k, Val n, uint32_t step) {
    return k_muli(k, k_udivi(k, k_addi(k, n, (int64_t)step - 1), step), step);
}

/* Of so many steps of a tile's columns. */
static LLVMTypeRef columns_type(const Gemm *gemm, uint32_t n_steps) {
    const Codegen *k = gemm->lower->k;
    LLVMTypeRef bits = LLVMIntTypeInContext(k->context, 8 * dtype_bytes(gemm->packed));
    return k_vector_of(bits, n_steps * gemm->tile_columns);
}

void gemm_amx_end_rows(const Gemm *gemm) {
    const Codegen *k = gemm->lower->k;
    Val zeros = LLVMConstNull(k_value_type(k, gemm->packed, depth_of(gemm)));
    Loop loop = loop_over(k, lower_index_const(gemm->lower, gemm->n_tile_rows), 1);
    Val row = gemm_packed_element(gemm, gemm->rows, k_muli(k, loop.index, gemm->row_stride));
    k_store_aligned(k, zeros, gemm_packed_element(gemm, row, gemm->n_k), dtype_bytes(gemm->packed));
    loop_end(k, &loop);
}

/* The columns of steps of k, of 32 bits in all, joined column by column. */
static Val join(const Gemm *gemm, Val *steps) {
    const Codegen *k = gemm->lower->k;
    uint32_t n = gemm->tile_columns;
    for (uint32_t n_steps = group_of(gemm); n_steps > 1; n_steps /= 2) {
        uint32_t width = group_of(gemm) / n_steps; /* elements of a column in a vector */
        Val *order = arena_array(k->arena, Val, (size_t)2 * n * width);
        for (uint32_t i = 0; i < 2 * n * width; i++) {
            uint32_t column = i / (2 * width), in_column = i % (2 * width);
            uint32_t vector = in_column / width, element = in_column % width;
            order[i] = k_i32(k, vector * n * width + column * width + element);
        }
        Val mask = LLVMConstVector(order, 2 * n * width);
        for (uint32_t i = 0; i < n_steps / 2; i++)
            steps[i] = k_shuffle(k, steps[2 * i], steps[2 * i + 1], mask);
    }
    return steps[0];
}

/* Joins groups [first, end) of a panel: `from` has steps `pitch` elements apart, from step 0 on. */
static void join_groups(const Gemm *gemm, Val from, uint32_t pitch, Val to, Val first, Val end) {
    const Codegen *k = gemm->lower->k;
    uint32_t n = group_of(gemm), bytes = dtype_bytes(gemm->packed);
    Loop loop = loop_begin(k, first, end, 1);
    Val at = gemm_packed_element(gemm, from, k_muli(k, loop.index, (int64_t)n * pitch));
    Val steps[MOST_GROUP];
    for (uint32_t i = 0; i < n; i++) {
        Val step = gemm_packed_element(gemm, at, lower_index_const(gemm->lower, i * pitch));
        steps[i] = k_load_aligned(k, columns_type(gemm, 1), step, bytes);
    }
    Val group =
        gemm_packed_element(gemm, to, k_muli(k, loop.index, (int64_t)n * gemm->tile_columns));
    k_store_aligned(k, join(gemm, steps), group, bytes);
    loop_end(k, &loop);
}

/* Zeros from step n_k of the panel on, to the end of a tile; then joins from group `first` on. */
static void end_panel(const Gemm *gemm, Val panel, Val first) {
    const Codegen *k = gemm->lower->k;
    Val end = round_up(k, gemm->n_k, depth_of(gemm));
    Loop loop = loop_begin(k, gemm->n_k, end, 1);
    Val step = gemm_packed_element(gemm, panel, k_muli(k, loop.index, gemm->tile_columns));
    k_store_aligned(k, LLVMConstNull(columns_type(gemm, 1)), step, dtype_bytes(gemm->packed));
    loop_end(k, &loop);
    join_groups(gemm, panel, gemm->tile_columns, panel, first, k_udivi(k, end, group_of(gemm)));
}

static Val panel_of(const Gemm *gemm, Val column) {
    return gemm_packed_element(gemm, gemm->columns,
                               k_muli(gemm->lower->k, column, gemm->panel_depth));
}

static Loop each_tile(const Gemm *gemm) {
    return loop_begin(gemm->lower->k, lower_index_const(gemm->lower, 0), gemm->n_columns,
                      gemm->tile_columns);
}

void gemm_amx_join_columns(const Gemm *gemm) {
    Loop loop = each_tile(gemm);
    end_panel(gemm, panel_of(gemm, loop.index), lower_index_const(gemm->lower, 0));
    loop_end(gemm->lower->k, &loop);
}

void gemm_amx_take_panels(Gemm *gemm) {
    const Codegen *k = gemm->lower->k;
    Val memory = gemm_find_panels(gemm);
    Val n_whole = k_udivi(k, gemm->n_k, group_of(gemm));
    Loop loop = each_tile(gemm);
    Val from = gemm_packed_element(gemm, memory, gemm_tile_begin(gemm, loop.index));
    Val to = panel_of(gemm, loop.index);
    join_groups(gemm, from, gemm->panel_columns, to, lower_index_const(gemm->lower, 0), n_whole);
    Loop rest = loop_begin(k, k_muli(k, n_whole, group_of(gemm)), gemm->n_k, 1);
    Val step = gemm_packed_element(gemm, from, k_muli(k, rest.index, gemm->panel_columns));
    Val values = k_load_aligned(k, columns_type(gemm, 1), step, dtype_bytes(gemm->packed));
    step = gemm_packed_element(gemm, to, k_muli(k, rest.index, gemm->tile_columns));
    k_store_aligned(k, values, step, dtype_bytes(gemm->packed));
    loop_end(k, &rest);
    end_panel(gemm, to, n_whole);
    loop_end(k, &loop);
}

/* Multiplying. */

static const char *multiply_name(const Gemm *gemm) {
    bool has_unsigned_rows = dtype_is_unsigned(gemm->row.dtype);
    if (dtype_is_bfloat(gemm->packed)) return "llvm.x86.tdpbf16ps";
    if (dtype_is_unsigned(gemm->column.dtype))
        return has_unsigned_rows ? "llvm.x86.tdpbuud" : "llvm.x86.tdpbsud";
    return has_unsigned_rows ? "llvm.x86.tdpbusd" : "llvm.x86.tdpbssd";
}

static uint32_t n_across(const Gemm *gemm) {
    return gemm->tile_columns / AMX_ROWS;
}

static uint32_t n_down(const Gemm *gemm) {
    return gemm->n_tile_rows / AMX_ROWS;
}

/* Loads or stores a register; `pitch` is the number of bytes from one row to the next. */
static void access(const Codegen *k, const char *name, uint32_t number, Val pointer, Val pitch) {
    Val args[3] = {number_of(k, number), pointer, pitch};
    call(k, name, args, 3);
}

static void each_sum(const Gemm *gemm, const char *name, Val partials) {
    const Codegen *k = gemm->lower->k;
    Val pitch = k_int(k->i64, (int64_t)gemm->units.block_columns * dtype_bytes(gemm->acc));
    for (uint32_t r = 0; r < n_down(gemm); r++)
        for (uint32_t c = 0; c < n_across(gemm); c++) {
            uint32_t at = (r * gemm->units.block_columns + c) * AMX_ROWS;
            Val first = gemm_element(gemm, partials, lower_index_const(gemm->lower, at));
            access(k, name, r * n_across(gemm) + c, first, pitch);
        }
}

static void zero_sums(const Gemm *gemm) {
    const Codegen *k = gemm->lower->k;
    for (uint32_t i = 0; i < n_down(gemm) * n_across(gemm); i++) {
        Val number = number_of(k, i);
        call(k, "llvm.x86.tilezero", &number, 1);
    }
}

/* One step of the loop: a register's depth of k. */
static void multiply_step(const Gemm *gemm, Val rows, Val columns) {
    const Codegen *k = gemm->lower->k;
    Val row_pitch = k_int(k->i64, (int64_t)gemm->row_stride * dtype_bytes(gemm->packed));
    Val column_pitch = k_int(k->i64, (int64_t)gemm->tile_columns * GROUP_BYTES);
    for (uint32_t c = 0; c < n_across(gemm); c++)
        access(k, "llvm.x86.tileloadd64", COLUMN_REGISTER + c,
               k_byte(k, columns, k_int(k->i64, (int64_t)c * AMX_ROW_BYTES)), column_pitch);
    for (uint32_t r = 0; r < n_down(gemm); r++) {
        int64_t at = (int64_t)r * AMX_ROWS * gemm->row_stride;
        access(k, "llvm.x86.tileloadd64", ROW_REGISTER + r,
               gemm_packed_element(gemm, rows, k_int(k->i64, at)), row_pitch);
        for (uint32_t c = 0; c < n_across(gemm); c++) {
            Val args[3] = {number_of(k, r * n_across(gemm) + c), number_of(k, ROW_REGISTER + r),
                           number_of(k, COLUMN_REGISTER + c)};
            call(k, multiply_name(gemm), args, 3);
        }
    }
}

static void multiply_tile(const Gemm *gemm, Val column) {
    const Codegen *k = gemm->lower->k;
    Val at = k_muli(k, gemm->partials_row, gemm->units.block_columns);
    Val partials = gemm_element(gemm, gemm->partials, k_add(k, at, column));
    Val panel = panel_of(gemm, column);
    zero_sums(gemm);
    if (!gemm_has_one_k_block(gemm)) {
        If later = if_begin(k, k_nei(k, gemm->k_begin, 0));
        each_sum(gemm, "llvm.x86.tileloadd64", partials);
        if_end(k, &later);
    }
    Loop loop = loop_over(k, gemm->n_k, depth_of(gemm));
    Val columns = gemm_packed_element(gemm, panel, k_muli(k, loop.index, gemm->tile_columns));
    multiply_step(gemm, gemm_packed_element(gemm, gemm->rows, loop.index), columns);
    loop_end(k, &loop);
    each_sum(gemm, "llvm.x86.tilestored64", partials);
}

void gemm_amx_tiles(const Gemm *gemm) {
    Loop loop = each_tile(gemm);
    multiply_tile(gemm, loop.index);
    loop_end(gemm->lower->k, &loop);
}
