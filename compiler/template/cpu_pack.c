/* See cpu_pack.h. */
#include "template/cpu_pack.h"

#include "machine/machine.h"
#include "machine/tuning.h"
#include "plan/access.h"
#include "template/cpu_sweep.h"

#include <math.h>

/* Whether the address is a sum of what k adds and of what the other axes add. */
static bool is_sum(const IndexTab *tab, IndexId address, uint32_t k) {
    IndexExpr expr = index_expr(tab, address);
    uint32_t own = 1u << k;
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        uint32_t axes = index_atom(tab, expr.terms[i].atom).axes;
        if ((axes & own) && axes != own) return false;
    }
    return index_axes(tab, address) & own;
}

/* Whether the value is an element of memory whose address is such a sum. */
static bool has_sum(const Kernel *kernel, ScalarId value) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    const Scalar *load = scalar_get(kernel->scalars, value);
    return load->kind == SCALAR_LOAD && !load->guard &&
           load->dtype == kernel->reduces.data[0].acc && !index_is_gathered(tab, load->index) &&
           is_sum(tab, load->index, gemm_axis_k(kernel));
}

/* Whether n has at most as many elements as a vector has lanes. */
static bool is_narrow(const Kernel *kernel, uint32_t lanes) {
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    return dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_n(kernel))) <= lanes;
}

/* Steps of k at equal distances are packed quickly, unless rows are apart too, or each row has to
 * be found by itself for few columns. */
static bool leaves_rows(const Kernel *kernel, ScalarId value, uint32_t axis, uint32_t lanes) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    if (!has_sum(kernel, value)) return false;
    IndexId address = scalar_get(kernel->scalars, value)->index;
    DimId stride;
    if (!index_stride(tab, address, gemm_axis_k(kernel), &stride)) return true;
    int64_t apart = index_stride_const(tab, address, axis);
    bool is_along_k = index_stride_const(tab, address, gemm_axis_k(kernel)) == 1;
    if (is_along_k)
        return axis == gemm_axis_m(kernel) && is_narrow(kernel, lanes) &&
               !index_stride(tab, address, axis, &stride);
    return apart > 1 && apart <= INDEX_NEAR_STRIDE;
}

static bool leaves_columns(const Kernel *kernel, ScalarId value, uint32_t axis) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    if (!has_sum(kernel, value)) return false;
    IndexId address = scalar_get(kernel->scalars, value)->index;
    DimId stride;
    return !index_stride(tab, address, gemm_axis_k(kernel), &stride) &&
           index_lane_motion(tab, address, axis, INDEX_ANY_START) == LANES_CONTIGUOUS;
}

/* Beside strips a transposed tile would pack its rows, the weights, for each row of the image. */
static bool leaves_weights(Arena *arena, const Kernel *kernel, uint32_t lanes) {
    CpuStrips strips;
    ScalarId right = kernel->reduces.data[0].rhs;
    return leaves_rows(kernel, right, gemm_axis_n(kernel), lanes) ||
           (has_sum(kernel, right) && cpu_pack_has_strips(arena, kernel, lanes, &strips));
}

bool cpu_pack_leaves_rows(Arena *arena, const Kernel *kernel, bool is_transposed, uint32_t lanes) {
    ScalarId left = kernel->reduces.data[0].lhs;
    return is_transposed ? leaves_weights(arena, kernel, lanes)
                         : leaves_rows(kernel, left, gemm_axis_m(kernel), lanes);
}

bool cpu_pack_leaves_columns(const Kernel *kernel, bool is_transposed) {
    const Reduce *reduce = &kernel->reduces.data[0];
    return is_transposed ? leaves_columns(kernel, reduce->lhs, gemm_axis_m(kernel))
                         : leaves_columns(kernel, reduce->rhs, gemm_axis_n(kernel));
}

static CpuPack pack_singles(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis) {
    bool is_strided = kernel_is_strided(arena, kernel, value, axis);
    return (CpuPack){.way = is_strided ? PACK_STRIDED : PACK_SINGLES};
}

/* False: not in vectors. Vectors that begin at multiples of the lanes compute a place each, unless
 * `may_run`: runs of several vectors compute it once. */
static bool pack_along_k(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t lanes,
                         bool may_run, CpuPack *pack) {
    uint32_t k = kernel->first_reduced;
    bool is_smooth = kernel_is_smooth(arena, kernel, value, k, lanes);
    uint32_t least = is_smooth ? CODEGEN_LEAST_RUN_VECTORS * lanes : CODEGEN_LEAST_RUN;
    *pack = (CpuPack){.way = PACK_RUNS_OF_K};
    if (!is_smooth || may_run) pack->run = kernel_run(arena, kernel, value, k, least);
    if (is_smooth && (!pack->run || pack->run % lanes)) *pack = (CpuPack){.way = PACK_K};
    return is_smooth || pack->run > 0;
}

CpuPack cpu_pack_rows(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                      uint32_t lanes, bool must) {
    CpuPack pack;
    bool is_transposed = axis != gemm_axis_m(kernel);
    if (!must && cpu_pack_leaves_rows(arena, kernel, is_transposed, lanes))
        return (CpuPack){.way = PACK_NONE};
    if (pack_along_k(arena, kernel, value, lanes, true, &pack)) return pack;
    if (kernel_is_smooth(arena, kernel, value, axis, INDEX_ANY_START))
        return (CpuPack){.way = PACK_OWN_AXIS};
    return pack_singles(arena, kernel, value, kernel->first_reduced);
}

CpuPack cpu_pack_columns(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                         uint32_t lanes, bool must) {
    CpuPack pack;
    if (!must && leaves_columns(kernel, value, axis)) return (CpuPack){.way = PACK_NONE};
    if (lanes == 1 || kernel_is_smooth(arena, kernel, value, axis, lanes))
        return (CpuPack){.way = PACK_OWN_AXIS};
    if (pack_along_k(arena, kernel, value, lanes, false, &pack)) return pack;
    return pack_singles(arena, kernel, value, axis);
}

double cpu_pack_step_clocks(uint32_t rows, uint32_t vectors) {
    enum { WAIT = 4 };
    uint32_t products = rows * vectors, loads = rows + 2 * vectors + 1;
    double clocks = (products > loads ? products : loads) / 2.0;
    return clocks > WAIT ? clocks : WAIT;
}

/* The clocks of a step of k of all windows, as vectors beside so few columns. A tile may have the
 * columns of several taps, at most `n_taps`, or vectors of several rows of the image. */
static double narrow_clocks(uint32_t columns, uint32_t vectors, uint32_t lanes, uint32_t n_taps) {
    enum { WIDE_LANES = 16, CHAINS = 8 };
    uint32_t n_registers = lanes == WIDE_LANES ? 32 : 16;
    double least = vectors * cpu_pack_step_clocks(columns, 1);
    for (uint32_t taps = 1; taps <= n_taps; taps++)
        for (uint32_t n = 1; n <= vectors; n++) {
            uint32_t rows = taps * columns, beside = n_taps == 1 ? CHAINS / (rows * n) : 1;
            if (beside < 1 || n < vectors) beside = 1;
            if ((rows + 1) * n * beside + 1 >= n_registers) break;
            double clocks = cpu_pack_step_clocks(rows, n * beside) / (taps * beside);
            least = fmin(least, (vectors + n - 1) / n * clocks);
        }
    return least;
}

/* Whether strips of a lhs that has runs of k, of which a transposed tile has full lanes, take less
 * time than a tile of few columns, whose lanes are mostly empty. There each window loads an element
 * for one multiply-add, which comes from afar if no other window has it. */
static bool has_strips_of_runs(Arena *arena, const Kernel *kernel, uint32_t lanes,
                               CpuStrips *strips) {
    enum { CLOCKS = 16, OWN = 9, FAR = 4 }; /* parts of a clock */
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    int64_t windows = dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_m(kernel)));
    int64_t columns = dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_n(kernel)));
    int64_t vectors = (windows + lanes - 1) / lanes;
    CpuSweep sweep;
    if (columns >= lanes || !has_sum(kernel, kernel->reduces.data[0].rhs) ||
        !cpu_strips_of_runs(arena, kernel, strips))
        return false;
    double again = (double)strips->n / (double)strips->n_taps;
    bool sweeps = cpu_sweep_find(arena, kernel, strips, &sweep);
    if (sweeps) again *= (double)sweep.across.n / (double)sweep.across.n_taps;
    int64_t element = strips->is_turned ? SCHED_CPU_TURNED_CLOCKS : SCHED_CPU_STRIP_CLOCKS;
    double packed = again * (double)(element * vectors * lanes);
    double own = (OWN + FAR * again) * (double)windows;
    double clocks =
        narrow_clocks((uint32_t)columns, (uint32_t)vectors, lanes, sweeps ? sweep.n_most : 1);
    return packed + CLOCKS * clocks < own;
}

/* Whether a tile that reads windows in place waits for memory: it has few columns for each element,
 * or the lines of all rows of the image leave the first-level cache, from where each tile of
 * columns reads them again. */
static bool waits_in_place(const Kernel *kernel, uint32_t lanes, const CpuStrips *strips) {
    int64_t elem_bytes = dtype_bytes(kernel->reduces.data[0].acc);
    int64_t row_elems = SCHED_CPU_POINTER_ROWS * strips->stride + strips->n_taps;
    int64_t row_bytes = row_elems * elem_bytes + CPU_LINE_BYTES;
    return is_narrow(kernel, lanes - 1) ||
           strips->depth / strips->n_taps * row_bytes > SCHED_CPU_NEAR_BYTES;
}

bool cpu_pack_has_strips(Arena *arena, const Kernel *kernel, uint32_t lanes, CpuStrips *strips) {
    const Reduce *reduce = &kernel->reduces.data[0];
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    uint32_t m = gemm_axis_m(kernel), n = gemm_axis_n(kernel);
    CpuPack pack;
    if (lanes == 1) return false;
    if (pack_along_k(arena, kernel, reduce->lhs, lanes, true, &pack))
        return has_strips_of_runs(arena, kernel, lanes, strips);
    bool is_narrow = dim_hi(dims, kernel_axis_extent(kernel, n)) < lanes;
    if (is_narrow && leaves_columns(kernel, reduce->lhs, m)) return false;
    if (!cpu_strips_find(arena, kernel, strips))
        return has_strips_of_runs(arena, kernel, lanes, strips);
    if (strips->n_taps > 1 && !waits_in_place(kernel, lanes, strips) &&
        leaves_rows(kernel, reduce->lhs, m, lanes))
        return false;
    pack = cpu_pack_columns(arena, kernel, reduce->rhs, n, lanes, false);
    bool is_along_k = pack.way == PACK_K || pack.way == PACK_RUNS_OF_K;
    int64_t step = cpu_strips_step(strips);
    return !is_along_k || step == 1 || step % lanes == 0;
}

/* Whether a transposed tile takes less time: its lanes are more often full, but it may pack the
 * weights again for each row of the image. */
static bool strips_transpose(int64_t n_rows, int64_t n_columns, int64_t lanes, bool packs) {
    int64_t own = n_columns * ((n_rows + lanes - 1) / lanes);
    if (packs && 2 * n_columns >= lanes) /* fewer are not prepared in either case */
        own += SCHED_CPU_STRIP_WEIGHT_PRODUCTS;
    return n_columns < lanes && own < n_rows;
}

/* Whether vectors along n would be stored element by element, and vectors along m would not. */
static bool stores_lie_along_m(const Kernel *kernel, uint32_t lanes) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    bool lie = kernel->row_stores.n > 0;
    for (uint32_t i = 0; i < kernel->row_stores.n && lie; i++) {
        IndexId address = kernel->row_stores.data[i].address;
        lie = !kernel->row_stores.data[i].guard &&
              index_lane_motion(tab, address, gemm_axis_n(kernel), lanes) == LANES_VARYING &&
              index_lane_motion(tab, address, gemm_axis_m(kernel), INDEX_ANY_START) ==
                  LANES_CONTIGUOUS;
    }
    return lie;
}

/* Whether the stores take longer than what a transposed tile packs again: k is short. */
static bool has_short_k(const Kernel *kernel) {
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    return dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_k(kernel))) <= SCHED_CPU_STORED_DEPTH;
}

bool cpu_pack_transposes(Arena *arena, const Kernel *kernel, uint32_t lanes) {
    CpuStrips strips;
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    uint32_t m = gemm_axis_m(kernel);
    int64_t n_rows = dim_hi(dims, kernel_axis_extent(kernel, m));
    int64_t n_columns = dim_hi(dims, kernel_axis_extent(kernel, gemm_axis_n(kernel)));
    bool has_strips = cpu_pack_has_strips(arena, kernel, lanes, &strips);
    bool is_smooth =
        has_strips || kernel_is_smooth(arena, kernel, kernel->reduces.data[0].lhs, m, lanes);
    if (is_smooth && n_rows >= lanes && has_short_k(kernel) && stores_lie_along_m(kernel, lanes))
        return true;
    if (has_strips && strips.has_runs) return true;
    if (has_strips)
        return strips_transpose(n_rows, n_columns, lanes, !leaves_weights(arena, kernel, lanes));
    ScalarId left = kernel->reduces.data[0].lhs;
    CpuPack pack;
    bool needs_vectors = leaves_columns(kernel, left, m) || !leaves_rows(kernel, left, m, lanes);
    bool has_runs = pack_along_k(arena, kernel, left, lanes, true, &pack) && pack.run;
    needs_vectors = needs_vectors && !has_runs;
    return n_columns < lanes && n_rows > n_columns && needs_vectors;
}

bool cpu_pack_stores_apart(const Kernel *kernel, uint32_t axis, uint32_t lanes) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    for (uint32_t i = 0; i < kernel->row_stores.n; i++)
        if (index_lane_motion(tab, kernel->row_stores.data[i].address, axis, lanes) !=
            LANES_VARYING)
            return false;
    return true;
}

bool cpu_pack_weaves(Arena *arena, const Kernel *kernel, uint32_t lanes, StoreWeave *weave) {
    if (!kernel_store_weave(arena, kernel, gemm_axis_m(kernel), gemm_axis_n(kernel), weave))
        return false;
    uint32_t vectors = (weave->run + lanes - 1) / lanes;
    return weave->run == INDEX_ANY_START || 3 * weave->run >= 2 * vectors * lanes;
}
