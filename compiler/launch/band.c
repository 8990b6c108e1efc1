/* See band.h. */
#include "launch/band.h"

#include "cost/compare.h"
#include "interp/index_eval.h"
#include "interp/scalar_eval.h"
#include "launch/trio.h"
#include "machine/tuning.h"
#include "plan/launch.h"
#include "plan/rebuild.h"
#include "schedule/gemm.h"
#include "schedule/schedule.h"
#include "template/mask.h"

#include <math.h>

enum { VALUE_PARTS = 64 }; /* of the values' rows */
enum { FIRST, END, N_ENDS };
enum { FINITE, SEEN, TILES, N_MAKERS };

/* A kernel of three in front of the launches. Its results are the first column, or INT32_MAX, and
 * the end, or 0. */
typedef struct Maker {
    Kernel kernel;
    IndexTab *indices;
    ScalarTab *scalars;
    uint32_t buffers[N_ENDS];
} Maker;

typedef struct Bander {
    Arena *arena, *scratch;
    Plan *plan;
    const Target *target;
    CostPoints points;
    Trio trio;
    Mask masks[MOST_MASKS];
    uint32_t n_masks;
    Maker makers[N_MAKERS];
    double share, most; /* as in Band, at the first of the points */
} Bander;

static DimTab *dims_of(const Bander *b) {
    return b->plan->graph->dims;
}

static const Kernel *scores_of(const Bander *b) {
    return trio_kernel(&b->trio, GEMM_ROWS_GEMM_SCORES);
}

static const Kernel *result_of(const Bander *b) {
    return trio_kernel(&b->trio, GEMM_ROWS_GEMM_RESULT);
}

static DimId n_rows(const Bander *b) {
    return kernel_axis_extent(scores_of(b), gemm_axis_m(scores_of(b)));
}

static DimId n_columns(const Bander *b) {
    return kernel_axis_extent(scores_of(b), gemm_axis_n(scores_of(b)));
}

static DimId n_tiles(const Bander *b) {
    return dim_ceil_div(dims_of(b), n_rows(b), BAND_ROWS);
}

/* Softmax. */

/* The slot of a reduction whose result it is, beside conversions; or NO_AXIS. */
static uint32_t slot_of(const ScalarTab *tab, ScalarId id) {
    const Scalar *stage = scalar_get(tab, scalar_without_casts(tab, id));
    return stage->kind == SCALAR_STAGE ? stage->slot : NO_AXIS;
}

/* The primitive or a shorter form of it; NULL: it is another scalar. */
static const Scalar *prim_of(const ScalarTab *tab, ScalarId id, PrimId prim) {
    const Scalar *scalar = scalar_get(tab, scalar_without_casts(tab, id));
    return scalar->kind == SCALAR_PRIM && prim_full(scalar->prim) == prim ? scalar : NULL;
}

static bool are_same(const ScalarTab *tab, ScalarId a, ScalarId b) {
    return scalar_without_casts(tab, a) == scalar_without_casts(tab, b);
}

/* Whether the kernel stores exp(x - max x) / sum of these powers, of a loaded x: where x is
 * -infinity it stores 0, or NaN in the whole row. */
static bool is_softmax(const Trio *t, const Kernel *kernel) {
    const ScalarTab *tab = kernel->scalars;
    if (!form_info(kernel->form)->reduces_rows || kernel->segment_axis != NO_AXIS ||
        kernel->n_reduced != 1 || kernel->row_stores.n || kernel->stages.n != 3 ||
        kernel->reduces.n != 2 || kernel->stages.data[2].stores.n != 1)
        return false;
    const Reduce *most = &kernel->reduces.data[0], *sum = &kernel->reduces.data[1];
    const Store *store = &kernel->stages.data[2].stores.data[0];
    const Scalar *quotient = prim_of(tab, store->value, PRIM_DIV);
    if (most->combine != PRIM_MAX || sum->combine != PRIM_ADD || most->is_arg || sum->divisor ||
        !quotient || !are_same(tab, quotient->args[0], sum->value) ||
        slot_of(tab, quotient->args[1]) != 1)
        return false;
    const Scalar *power = prim_of(tab, sum->value, PRIM_EXP);
    if (!power) power = prim_of(tab, sum->value, PRIM_EXP2);
    const Scalar *exponent = power ? prim_of(tab, power->args[0], PRIM_SUB) : NULL;
    return exponent && are_same(tab, exponent->args[0], most->value) &&
           slot_of(tab, exponent->args[1]) == 0 &&
           scalar_get(tab, scalar_without_casts(tab, most->value))->kind == SCALAR_LOAD &&
           trio_is_plain_store(t, kernel, store, kernel->n_parallel + 1);
}

/* Whether all variants of the kernel have a template that takes bands, and no tile of theirs has
 * rows of two tiles of a band. */
static bool may_have_band(const Kernel *kernel) {
    bool may = !kernel->parts && kernel->segment_axis == NO_AXIS && !kernel->band.first;
    for (uint32_t v = 0; v < kernel->n_variants; v++) {
        const Sched *sched = &kernel->variants[v].sched;
        uint32_t cluster = sched->cluster > 1 ? sched->cluster : 1;
        bool fits =
            form_info(kernel->form)->multiplies
                ? BAND_ROWS % (sched_tile(sched).m * cluster) == 0 && !sched_gemm(sched).tail_n
                : sched_row(sched).resident > 0;
        may = may && fits && template_info(sched->template)->takes_bands;
    }
    return may;
}

/* Moving the launches. */

/* Whether a kernel between two of the launches, which will come before the first, changes an
 * operand of the two that move. */
static bool is_between_free(const Bander *b) {
    const Plan *plan = b->plan;
    const uint32_t *at = b->trio.at;
    for (uint32_t l = at[0] + 1; l < at[2]; l++) {
        const Launch *launch = &plan->launches.data[l];
        for (uint32_t k = 0; k < launch->n && l != at[1]; k++)
            for (uint32_t i = 0; i < 2; i++) {
                const Kernel *moved = trio_kernel(&b->trio, i);
                for (uint32_t a = 0; a < moved->args.n; a++)
                    if (kernel_stores_to(launch_kernel(plan, launch, k), moved->args.data[a]))
                        return false;
            }
    }
    return true;
}

/* Whether the predicates of the masks depend on no score, so that another kernel can compute them.
 */
static bool are_apart(const Bander *b) {
    const ScalarTab *tab = scores_of(b)->scalars;
    bool are = b->n_masks > 0;
    for (uint32_t i = 0; i < b->n_masks; i++) {
        const bool *reached = scalar_reached(b->scratch, tab, b->masks[i].shows);
        for (ScalarId id = 1; id <= b->masks[i].shows; id++)
            are = are && !(reached[id] && scalar_get(tab, id)->kind == SCALAR_STAGE);
    }
    return are;
}

static bool find_trio(Bander *b, uint32_t first) {
    Trio *t = &b->trio;
    if (!trio_find(t, first, INT64_MAX, INT64_MAX, is_softmax)) return false;
    bool may = is_between_free(b);
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++)
        may = may && may_have_band(trio_kernel(t, i)) && !trio_kernel(t, i)->choice &&
              trio_kernel(t, i)->args.n + N_ENDS <= MAX_KERNEL_ARGS;
    b->n_masks =
        masks_find(scores_of(b)->scalars, scores_of(b)->row_stores.data[0].value, b->masks);
    return may && are_apart(b);
}

/* How much masks hide. */

typedef struct Place {
    Bander *b;
    int64_t axes[MAX_AXES];
    bool is_known; /* the predicate has no loads */
} Place;

static double leaf(void *user, ScalarId id, const Scalar *scalar) {
    Place *place = user;
    const Bander *b = place->b;
    (void)id;
    const IndexPoint point = {.axes = place->axes};
    if (scalar->kind == SCALAR_INDEX) {
        const IndexCode *code = index_compile(b->scratch, scalartab_indices(scores_of(b)->scalars),
                                              scalar->index, b->points.dims[0]);
        if (code) return (double)index_eval(code, &point);
    }
    place->is_known = false;
    return 0;
}

static bool is_shown(Place *place, int64_t row, int64_t column) {
    const Bander *b = place->b;
    const Kernel *scores = scores_of(b);
    const ScalarEnv env = {.leaf = leaf, .user = place, .rounds = true};
    bool shown = true;
    place->axes[gemm_axis_m(scores)] = row;
    place->axes[gemm_axis_n(scores)] = column;
    for (uint32_t i = 0; i < b->n_masks; i++) {
        double holds = scalar_eval(scores->scalars, b->masks[i].shows, &env);
        shown = shown && (holds != 0) != b->masks[i].is_negated;
    }
    return shown;
}

/* Sets the shares of the columns from the first to the last that rows see, by rows and columns at
 * equal distances. Masks that are loaded are taken to show three quarters. */
static void estimate(Bander *b) {
    enum { SAMPLES = 32 };
    Place place = {.b = b, .is_known = true};
    int64_t rows = (int64_t)dim_number(dims_of(b), n_rows(b), b->points.dims[0]);
    int64_t columns = (int64_t)dim_number(dims_of(b), n_columns(b), b->points.dims[0]);
    double all = 0, most = 0;
    for (int64_t r = 0; r < SAMPLES && place.is_known; r++) {
        int64_t first = SAMPLES, end = 0;
        for (int64_t c = 0; c < SAMPLES; c++)
            if (is_shown(&place, rows * r / SAMPLES, columns * c / SAMPLES)) {
                first = first < c ? first : c;
                end = c + 1;
            }
        double own = end > first ? (double)(end - first) / SAMPLES : 0;
        all += own;
        most = fmax(most, own);
    }
    b->share = place.is_known ? all / SAMPLES : 0.75;
    b->most = place.is_known ? most : 1;
}

/* The kernels that make the band. */

static Maker new_maker(const Bander *b, const char *suffix) {
    Maker maker = {.indices = indextab_new(b->arena, dims_of(b))};
    maker.scalars = scalartab_new(b->arena, maker.indices);
    maker.kernel = (Kernel){.name = str_format(b->arena, "%s_%s", result_of(b)->name, suffix),
                            .span = result_of(b)->span,
                            .form = FORM_ROW,
                            .segment_axis = NO_AXIS,
                            .scalars = maker.scalars};
    return maker;
}

/* Ends the parallel axes, and begins the one stage. */
static void begin_reduced(const Bander *b, Maker *maker, uint32_t n_parallel, uint32_t n_reduced) {
    vec_push(b->arena, &maker->kernel.stages, (Stage){.reduces = {0}});
    maker->kernel.n_parallel = maker->kernel.first_reduced = n_parallel;
    maker->kernel.n_reduced = n_reduced;
}

static ScalarId reduce(const Bander *b, Maker *maker, OpId op, ScalarId value) {
    NodeId node = result_of(b)->reduces.data[0].node;
    return kernel_reduce(b->arena, &maker->kernel, node, op, value);
}

/* The least of the first columns and the greatest of the ends, in their place. */
static void reduce_ends(const Bander *b, Maker *maker, ScalarId *ends) {
    ends[FIRST] = reduce(b, maker, OP_MIN, ends[FIRST]);
    ends[END] = reduce(b, maker, OP_MAX, ends[END]);
}

/* Stores the ends once for each row, and schedules the kernel. */
static void store_ends(Bander *b, Maker *maker, const ScalarId *ends) {
    Kernel *kernel = &maker->kernel;
    NodeId node = result_of(b)->reduces.data[0].node;
    for (uint32_t i = 0; i < N_ENDS; i++)
        maker->buffers[i] = plan_store_rows(b->arena, b->plan, kernel, node, ends[i]);
    kernel_note_interface(b->arena, kernel);
    sched_kernel(b->arena, b->plan, kernel, b->target);
}

static ScalarId choose(ScalarTab *tab, ScalarId condition, ScalarId yes, int64_t no) {
    return scalar_prim(tab, PRIM_SELECT, condition, yes, scalar_const_int(tab, DT_I32, no));
}

static ScalarId add_number(ScalarTab *tab, ScalarId a, int64_t b) {
    return scalar_prim(tab, PRIM_ADD, a, scalar_const_int(tab, DT_I32, b), SCALAR_NONE);
}

/* The greatest multiple of a power of two up to `a`. */
static ScalarId multiple(ScalarTab *tab, ScalarId a, int64_t of) {
    return scalar_prim(tab, PRIM_BITAND, a, scalar_const_int(tab, DT_I32, -of), SCALAR_NONE);
}

static Rebuild rebuild_to(const Bander *b, const Kernel *from, const Maker *to) {
    return (Rebuild){.arena = b->arena,
                     .from = from->scalars,
                     .to = to->scalars,
                     .buffer = NO_BUFFER,
                     .instead = NO_BUFFER};
}

/* Adds to the maker the batch axes of the matmul on which the values depend. Returns their bit
 * set. */
static uint32_t add_batch_axes(Maker *maker, const Kernel *gemm, uint32_t axes, Rebuild *rebuild) {
    uint32_t batches = axes & ((1u << gemm_axis_m(gemm)) - 1);
    for (uint32_t axis = 0; axis < gemm_axis_m(gemm); axis++)
        if (batches >> axis & 1)
            rebuild->axes[axis] = index_axis(
                maker->indices, index_new_axis(maker->indices, kernel_axis_extent(gemm, axis)));
    return batches;
}

/* The smaller of the position, an i32, and the last one. */
static IndexId not_past(Maker *maker, IndexId at, DimId extent) {
    DimTab *dims = indextab_dims(maker->indices);
    IndexId end = index_dim(maker->indices, dim_sub(dims, extent, dim_const(dims, 1)));
    ScalarId last = scalar_index(maker->scalars, end);
    ScalarId clamped = scalar_clamp_index(maker->scalars, scalar_index(maker->scalars, at), last);
    return scalar_as_index(maker->scalars, clamped, extent);
}

/* finite [batches, VALUE_PARTS]: the rows of the values, of each part of them, if one is not
 * finite: then the greatest magnitude is not. Returns the batch axes. */
static uint32_t make_finite(Bander *b) {
    Maker maker = new_maker(b, "finite");
    const Kernel *gemm = result_of(b);
    ScalarId rhs = gemm->reduces.data[0].rhs;
    Rebuild rebuild = rebuild_to(b, gemm, &maker);
    DimTab *dims = dims_of(b);
    DimId length = dim_ceil_div(dims, n_columns(b), VALUE_PARTS);
    uint32_t batches = add_batch_axes(&maker, gemm, scalar_get(gemm->scalars, rhs)->axes, &rebuild);
    uint32_t part = index_new_axis(maker.indices, dim_const(dims, VALUE_PARTS));
    uint32_t in_part = index_new_axis(maker.indices, length);
    DimId n = kernel_axis_extent(gemm, gemm_axis_n(gemm));
    uint32_t column = index_new_axis(maker.indices, n);
    begin_reduced(b, &maker, in_part, 2);
    IndexId first = index_scale(maker.indices, index_axis(maker.indices, part), length);
    IndexId row = index_add(maker.indices, first, index_axis(maker.indices, in_part));
    if (dim_multiple(dims, n_columns(b)) % VALUE_PARTS) row = not_past(&maker, row, n_columns(b));
    rebuild.axes[gemm_axis_k(gemm)] = row;
    rebuild.axes[gemm_axis_n(gemm)] = index_axis(maker.indices, column);
    ScalarId value = scalar_cvt(maker.scalars, rebuild_scalar(&rebuild, rhs), DT_F32);
    value = scalar_prim(maker.scalars, PRIM_ABS, value, SCALAR_NONE, SCALAR_NONE);
    value = reduce(b, &maker, OP_MAX, value);
    ScalarId infinity = scalar_const(maker.scalars, DT_F32, INFINITY), ends[N_ENDS];
    ScalarId is_finite = scalar_prim(maker.scalars, PRIM_LT, value, infinity, SCALAR_NONE);
    ScalarId counts = scalar_prim(maker.scalars, PRIM_NOT, is_finite, SCALAR_NONE, SCALAR_NONE);
    ScalarId begin = scalar_index(maker.scalars, first);
    ScalarId after = scalar_index(maker.scalars, index_add_dim(maker.indices, first, length));
    ends[FIRST] = choose(maker.scalars, counts, begin, INT32_MAX);
    ends[END] = choose(maker.scalars, counts, after, 0);
    store_ends(b, &maker, ends);
    b->makers[FINITE] = maker;
    return batches;
}

/* seen [batches, rows]: the columns that a row sees. Returns the batch axes. */
static uint32_t make_seen(Bander *b) {
    Maker maker = new_maker(b, "seen");
    const Kernel *gemm = scores_of(b);
    Rebuild rebuild = rebuild_to(b, gemm, &maker);
    uint32_t axes = 0;
    for (uint32_t i = 0; i < b->n_masks; i++)
        axes |= scalar_get(gemm->scalars, b->masks[i].shows)->axes;
    uint32_t batches = add_batch_axes(&maker, gemm, axes, &rebuild);
    uint32_t row = index_new_axis(maker.indices, n_rows(b));
    uint32_t column = index_new_axis(maker.indices, n_columns(b));
    begin_reduced(b, &maker, column, 1);
    rebuild.axes[gemm_axis_m(gemm)] = index_axis(maker.indices, row);
    rebuild.axes[gemm_axis_n(gemm)] = index_axis(maker.indices, column);
    ScalarId seen = scalar_const_int(maker.scalars, DT_BOOL, 1), ends[N_ENDS];
    for (uint32_t i = 0; i < b->n_masks; i++) {
        ScalarId shows = rebuild_scalar(&rebuild, b->masks[i].shows);
        if (b->masks[i].is_negated)
            shows = scalar_prim(maker.scalars, PRIM_NOT, shows, SCALAR_NONE, SCALAR_NONE);
        seen = i ? scalar_prim(maker.scalars, PRIM_AND, seen, shows, SCALAR_NONE) : shows;
    }
    IndexId at = index_axis(maker.indices, column);
    ScalarId own = scalar_index(maker.scalars, at);
    ends[FIRST] = choose(maker.scalars, seen, own, INT32_MAX);
    ends[END] = choose(maker.scalars, seen, own, -1);
    reduce_ends(b, &maker, ends);
    ends[END] = add_number(maker.scalars, ends[END], 1);
    store_ends(b, &maker, ends);
    b->makers[SEEN] = maker;
    return batches;
}

/* The row-major position of the batch axes `batches` (a bit set) of the matmul, if `batch` is that
 * of all of them. */
static IndexId batch_place(const Bander *b, IndexTab *tab, const Kernel *gemm, uint32_t batches,
                           IndexId batch) {
    DimTab *dims = dims_of(b);
    IndexId at = index_dim(tab, dim_const(dims, 0));
    for (uint32_t axis = 0; axis < gemm_axis_m(gemm); axis++) {
        DimId inner = dim_const(dims, 1), extent = kernel_axis_extent(gemm, axis);
        if (!(batches >> axis & 1)) continue;
        for (uint32_t i = axis + 1; i < gemm_axis_m(gemm); i++)
            inner = dim_mul(dims, inner, kernel_axis_extent(gemm, i));
        IndexId own = index_mod(tab, index_div(tab, batch, inner), extent);
        at = index_add(tab, index_scale(tab, at, extent), own);
    }
    return at;
}

static ScalarId load_end(const Maker *maker, const Maker *from, uint32_t i, IndexId at) {
    return scalar_load(maker->scalars, DT_I32, from->buffers[i], at, GUARD_NONE);
}

/* The ends as multiples, and at least one step. */
static void round_ends(const Bander *b, ScalarTab *tab, ScalarId *ends) {
    uint32_t n_chains = reduce_order(FORM_ROW, b->target->device).n_chains;
    ScalarId any = scalar_prim(tab, PRIM_LT, ends[FIRST], ends[END], SCALAR_NONE);
    ScalarId end = multiple(tab, add_number(tab, ends[END], BAND_STEP - 1), BAND_STEP);
    ends[FIRST] = choose(tab, any, multiple(tab, ends[FIRST], n_chains), 0);
    ends[END] = choose(tab, any, end, BAND_STEP);
}

/* band [batches, tiles]: of both. Column r of a tile is its row r, and part r / 4 of the values. */
static void make_tiles(Bander *b, uint32_t finite_batches, uint32_t seen_batches) {
    static const PrimId prims[N_ENDS] = {[FIRST] = PRIM_MIN, [END] = PRIM_MAX};
    Maker maker = new_maker(b, "band");
    IndexTab *tab = maker.indices;
    DimTab *dims = dims_of(b);
    uint32_t batch = index_new_axis(tab, gemm_n_batches(scores_of(b)));
    uint32_t tile = index_new_axis(tab, n_tiles(b));
    uint32_t in_tile = index_new_axis(tab, dim_const(dims, BAND_ROWS));
    begin_reduced(b, &maker, in_tile, 1);
    IndexId row = index_scale(tab, index_axis(tab, tile), dim_const(dims, BAND_ROWS));
    row = index_add(tab, row, index_axis(tab, in_tile));
    if (dim_multiple(dims, n_rows(b)) % BAND_ROWS) row = not_past(&maker, row, n_rows(b));
    IndexId seen = batch_place(b, tab, scores_of(b), seen_batches, index_axis(tab, batch));
    seen = index_add(tab, index_scale(tab, seen, n_rows(b)), row);
    IndexId part = batch_place(b, tab, result_of(b), finite_batches, index_axis(tab, batch));
    part = index_scale(tab, part, dim_const(dims, VALUE_PARTS));
    IndexId own = index_axis(tab, in_tile);
    part = index_add(tab, part, index_div(tab, own, dim_const(dims, BAND_ROWS / VALUE_PARTS)));
    ScalarId ends[N_ENDS];
    for (uint32_t i = 0; i < N_ENDS; i++) {
        ScalarId of_row = load_end(&maker, &b->makers[SEEN], i, seen);
        ScalarId of_part = load_end(&maker, &b->makers[FINITE], i, part);
        ends[i] = scalar_prim(maker.scalars, prims[i], of_row, of_part, SCALAR_NONE);
    }
    reduce_ends(b, &maker, ends);
    round_ends(b, maker.scalars, ends);
    store_ends(b, &maker, ends);
    b->makers[TILES] = maker;
}

/* The three launches. */

/* Gives the kernel the band. `row`: of all rows of all batches. */
static void set_band(const Bander *b, Kernel *kernel, uint32_t axis, uint32_t row_axis,
                     IndexId batch, IndexId row) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = dims_of(b);
    IndexId at = index_scale(tab, batch, n_tiles(b));
    at = index_add(tab, at, index_div(tab, row, dim_const(dims, BAND_ROWS)));
    VecU32 args = {0};
    kernel->band = (Band){.axis = axis,
                          .row_axis = row_axis,
                          .n_rows = n_rows(b),
                          .share = b->share,
                          .most = b->most};
    ScalarId ends[N_ENDS];
    for (uint32_t i = 0; i < kernel->args.n; i++) vec_push(b->arena, &args, kernel->args.data[i]);
    for (uint32_t i = 0; i < N_ENDS; i++) {
        uint32_t buffer = b->makers[TILES].buffers[i];
        ends[i] = scalar_load(kernel->scalars, DT_I32, buffer, at, GUARD_NONE);
        vec_push(b->arena, &args, buffer);
    }
    kernel->band.first = ends[FIRST], kernel->band.end = ends[END];
    kernel->args.data = args.data, kernel->args.n = args.n;
    kernel->args.capacity = args.capacity;
}

static void set_matmul_band(const Bander *b, Kernel *kernel, uint32_t axis) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    uint32_t m = gemm_axis_m(kernel);
    IndexId batch = m ? index_row_major(tab, m) : index_dim(tab, dim_const(dims_of(b), 0));
    set_band(b, kernel, axis, m, batch, index_axis(tab, m));
}

/* Copies of the kernels, with the band. */
static void set_bands(const Bander *b, Kernel *kernels) {
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++) kernels[i] = *trio_kernel(&b->trio, i);
    Kernel *rows = &kernels[GEMM_ROWS_GEMM_ROWS];
    IndexTab *tab = scalartab_indices(rows->scalars);
    IndexId row = index_row_major(tab, rows->n_parallel);
    set_matmul_band(b, &kernels[GEMM_ROWS_GEMM_SCORES], gemm_axis_n(scores_of(b)));
    set_matmul_band(b, &kernels[GEMM_ROWS_GEMM_RESULT], gemm_axis_k(result_of(b)));
    set_band(b, rows, rows->first_reduced, rows->n_parallel - 1, index_div(tab, row, n_rows(b)),
             index_mod(tab, row, n_rows(b)));
}

/* The kernels as a plan of their own. */
static Plan plan_of(const Bander *b, const Kernel *kernels, uint32_t n) {
    Plan plan = *b->plan;
    plan.kernels.data = arena_copy(b->scratch, kernels, n * sizeof *kernels);
    plan.kernels.n = plan.kernels.capacity = n;
    plan_launch_singly(b->scratch, &plan);
    return plan;
}

static bool pays(const Bander *b, const Kernel *with, uint32_t n_with, const Kernel *without) {
    Plan banded = plan_of(b, with, n_with), whole = plan_of(b, without, GEMM_ROWS_GEMM_KERNELS);
    for (uint32_t i = 0; i < b->points.n; i++) {
        double us = cost_us(b->scratch, &banded, card_of_target(b->target), b->points.dims[i]);
        us += LAUNCH_BAND_US;
        if (!price_is_worth(
                us, cost_us(b->scratch, &whole, card_of_target(b->target), b->points.dims[i])))
            return false;
    }
    return true;
}

/* Puts the kernels in the place of the last of the three launches. */
static void keep(Bander *b, const Kernel *all) {
    const uint32_t *at = b->trio.at;
    Plan *plan = b->plan;
    plan_move_launch(b->scratch, plan, at[GEMM_ROWS_GEMM_ROWS], at[GEMM_ROWS_GEMM_RESULT]);
    plan_move_launch(b->scratch, plan, at[GEMM_ROWS_GEMM_SCORES], at[GEMM_ROWS_GEMM_RESULT] - 1);
    uint32_t first = at[GEMM_ROWS_GEMM_RESULT] - 2;
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++)
        plan->kernels.data[plan->launches.data[first + i].first] = all[N_MAKERS + i];
    for (uint32_t i = N_MAKERS; i-- > 0;) plan_insert_launch(b->arena, plan, first, &all[i]);
}

static bool try_band(Bander *b) {
    Kernel all[N_MAKERS + GEMM_ROWS_GEMM_KERNELS], own[GEMM_ROWS_GEMM_KERNELS];
    uint32_t n_buffers = b->plan->buffers.n;
    estimate(b);
    uint32_t finite = make_finite(b), seen = make_seen(b);
    make_tiles(b, finite, seen);
    for (uint32_t i = 0; i < N_MAKERS; i++) all[i] = b->makers[i].kernel;
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++) own[i] = *trio_kernel(&b->trio, i);
    set_bands(b, all + N_MAKERS);
    if (pays(b, all, N_MAKERS + GEMM_ROWS_GEMM_KERNELS, own)) {
        keep(b, all);
        return true;
    }
    b->plan->buffers.n = n_buffers;
    return false;
}

bool band_pass(const Planning *p, PlanUnit *unit) {
    Plan *plan = unit->plan;
    if (!p->target->has->launches || !p->target->has_wgmma) return true;
    Bander b = {.arena = p->arena, .scratch = p->scratch, .plan = plan, .target = p->target};
    b.points = cost_points(p->arena, dims_of(&b), p->target->has);
    b.trio = (Trio){.plan = plan, .target = p->target, .scratch = p->scratch, .dims = dims_of(&b)};
    b.trio.n_users = plan_count_users(p->arena, plan);
    for (uint32_t l = 0; l < plan->launches.n; l++)
        if (find_trio(&b, l) && try_band(&b)) b.trio.n_users = plan_count_users(p->arena, plan);
    return true;
}
