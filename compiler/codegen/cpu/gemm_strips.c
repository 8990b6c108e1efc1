/* The strips of a CPU GEMM. See template/cpu_strips.h, strips.h and gemm.h.
 *
 * Strip s of the tap row (outer, inner) is at ((outer * n + s) * run + inner) * strip_pitch. Its
 * element i is that of its first tap at the i-th neighbour along m. */
#include "codegen/cpu/gemm.h"
#include "codegen/cpu/strips.h"

static int64_t strips_of_block(const Gemm *gemm, const CpuStrips *strips) {
    int64_t n_outer = gemm->depth / cpu_strips_step(strips);
    return (n_outer < 1 ? 1 : n_outer) * strips->n * strips->run;
}

int64_t gemm_strips_elems(const Gemm *gemm, const CpuStrips *strips) {
    return strips_of_block(gemm, strips) * gemm->strip_pitch;
}

Val gemm_strip_offsets(const Gemm *gemm, const CpuStrips *strips) {
    const Codegen *k = gemm->lower->k;
    int64_t n = gemm->depth < strips->depth ? gemm->depth : strips->depth;
    Val *values = arena_array(k->arena, Val, (size_t)n);
    for (int64_t at = 0; at < n; at++) {
        int64_t inner = at % strips->run, tap = at / strips->run % strips->n_taps;
        int64_t outer = at / cpu_strips_step(strips);
        int64_t strip = (outer * strips->n + strips->strip_of[tap]) * strips->run + inner;
        values[at] = k_int(k->i64, strip * gemm->strip_pitch + strips->shift_of[tap]);
    }
    return k_constant_array(k, values, (uint32_t)n, "strips");
}

/* Steps of k between a row of the image and the one that is prefetched. */
static int64_t steps_ahead(const Gemm *gemm, const CpuStrips *strips) {
    enum { VECTORS = 64 };
    int64_t n_rows = strips_of_block(gemm, strips) / strips->run;
    int64_t n = n_rows * (gemm->strip_pitch / gemm->lanes);
    return n < VECTORS ? VECTORS / n : 1;
}

void gemm_pack_strips(const Gemm *gemm, const GemmOperand *operand) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    const CpuStrips *strips = operand->strips;
    bool is_row = operand == &gemm->row;
    Val begin = is_row ? gemm->row_begin : gemm->column_begin;
    Val n = is_row ? k_sub(k, gemm->row_end, begin) : gemm->n_columns;
    int64_t room = is_row ? gemm->units.block_rows : gemm->units.block_columns, extent;
    if (dim_hi(lower_dims(lower), operand->extent) <= room) begin = lower_index_const(lower, 0);
    if (dim_is_const(lower_dims(lower), operand->extent, &extent) && extent <= room)
        n = lower_index_const(lower, extent);
    Val n_outer = k_udivi(k, gemm->n_k, cpu_strips_step(strips));
    Loop inner = loop_over(k, lower_index_const(lower, strips->is_turned ? 1 : strips->run), 1);
    Loop outer = loop_over(k, n_outer, 1);
    Val number = k_muli(k, outer.index, strips->n * strips->run);
    Val memory = k_muli(k, k_add(k, number, inner.index), gemm->strip_pitch);
    StripRow row = {.lower = lower,
                    .strips = strips,
                    .value = operand->value,
                    .acc = gemm->acc,
                    .axis = operand->axis,
                    .lanes = gemm->lanes,
                    .outside = strips->outside,
                    .inside = strips->inside,
                    .point = point_inside(&gemm->point),
                    .begin = begin,
                    .n = n,
                    .memory = gemm_element(gemm, is_row ? gemm->rows : gemm->columns, memory),
                    .pitch = gemm->strip_pitch,
                    .step = (uint32_t)strips->run * gemm->strip_pitch,
                    .steps_ahead = steps_ahead(gemm, strips)};
    Val at_k = k_add(k, k_muli(k, outer.index, cpu_strips_step(strips)), inner.index);
    row.point.axis[gemm->k_axis] = k_add(k, gemm->k_begin, at_k);
    (strips->is_turned ? strips_pack_turned : strips_pack_row)(&row);
    loop_end(k, &outer);
    loop_end(k, &inner);
}
