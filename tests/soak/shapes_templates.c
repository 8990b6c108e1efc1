/* Which templates a run used, and how many shapes each has met. See shapes.h. */
#include "plan/launch.h"
#include "shapes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NOTHING, CLUSTER, F8, WGMMA, N_NEEDS };
enum { WARP = 32 };

/* A kernel of a launch that took place. */
typedef struct Used {
    const Plan *plan;
    const Launch *launch;
    const Kernel *kernel;
    const Variant *variant;
    const int64_t *symbol_values;
    GemmEngine opens;                         /* the engine of the launch's first kernel */
    bool is_one_block, is_parallel, is_mixed; /* is_mixed: kernels of several codes */
} Used;

static bool is_row_form(const Used *u) {
    return u->kernel->form == FORM_ROW && u->kernel->segment_axis == NO_AXIS;
}

static bool is_engine(const Used *u, GemmEngine engine) {
    return u->kernel->form == FORM_GEMM && sched_engine(&u->variant->sched) == engine;
}

static bool is_map(const Used *u) {
    return u->kernel->form == FORM_MAP;
}

static bool is_map_tile(const Used *u) {
    return is_map(u) && u->variant->sched.template == TEMPLATE_GPU_MAP_TILE;
}

static bool is_map_flat(const Used *u) {
    return u->variant->sched.template == TEMPLATE_GPU_MAP_FLAT;
}

static bool is_row(const Used *u) {
    return is_row_form(u);
}

static bool is_row_warp(const Used *u) {
    return is_row_form(u) && sched_row(&u->variant->sched).resident &&
           sched_row(&u->variant->sched).threads_per_row <= WARP;
}

static bool is_row_slots(const Used *u) {
    return is_row_form(u) && sched_row(&u->variant->sched).slots > 1 &&
           u->variant->sched.lanes == 1;
}

static bool is_row_cluster(const Used *u) {
    return is_row_form(u) && u->variant->sched.cluster > 1;
}

static bool is_row_block(const Used *u) {
    return is_row_form(u) && sched_row(&u->variant->sched).resident &&
           sched_row(&u->variant->sched).threads_per_row > WARP && !is_row_cluster(u);
}

static bool is_row_loop(const Used *u) {
    return is_row_form(u) && !sched_row(&u->variant->sched).resident;
}

static bool is_row_segments(const Used *u) {
    return u->kernel->form == FORM_ROW && u->kernel->segment_axis != NO_AXIS;
}

static bool is_column(const Used *u) {
    return u->kernel->form == FORM_COLUMN && u->kernel->segment_axis == NO_AXIS;
}

static bool is_column_segments(const Used *u) {
    return u->kernel->form == FORM_COLUMN && u->kernel->segment_axis != NO_AXIS;
}

static bool is_gemv_cluster(const Used *u) {
    return is_engine(u, GEMM_GEMV) && u->variant->sched.cluster > 1;
}

static bool is_gemv_k(const Used *u) {
    return is_engine(u, GEMM_GEMV) && u->variant->sched.gemv.lanes_along_k;
}

static bool is_gemv_n(const Used *u) {
    return is_engine(u, GEMM_GEMV) && !u->variant->sched.gemv.lanes_along_k;
}

static bool is_simt(const Used *u) {
    return is_engine(u, GEMM_FMA);
}

static bool is_mma(const Used *u) {
    return is_engine(u, GEMM_MMA);
}

static bool is_dual_gemm(const Used *u) {
    return is_engine(u, GEMM_WGMMA) && u->variant->sched.gemm.n_gemms > 1;
}

static bool is_wgmma(const Used *u) {
    return is_engine(u, GEMM_WGMMA) && !is_dual_gemm(u);
}

static bool is_f8(const Used *u) {
    return u->kernel->form == FORM_GEMM && dtype_in(gemm_operand_dtype(u->kernel), DTS_STORED);
}

static bool is_f8_mma(const Used *u) {
    return is_f8(u) && is_mma(u);
}

static bool is_f8_wgmma(const Used *u) {
    return is_f8(u) && is_engine(u, GEMM_WGMMA);
}

static bool is_wgmma_tail(const Used *u) {
    return is_engine(u, GEMM_WGMMA) && u->variant->sched.gemm.tail_n > 0;
}

static bool is_wgmma_store(const Used *u) {
    return is_engine(u, GEMM_WGMMA) && u->variant->sched.gemm.store_warps > 0;
}

static bool is_im2col(const Used *u) {
    return is_engine(u, GEMM_WGMMA) && u->variant->maps[0].im2col;
}

static bool is_split_k(const Used *u) {
    return u->kernel->form == FORM_GEMM && u->kernel->segment_axis != NO_AXIS;
}

static bool is_online(const Used *u) {
    return u->kernel->form == FORM_ONLINE;
}

static bool is_naive(const Used *u) {
    return is_engine(u, GEMM_NAIVE);
}

static bool is_taps(const Used *u) {
    return u->variant->sched.template == TEMPLATE_CPU_TAPS;
}

static bool is_strips(const Used *u) {
    return u->variant->sched.template == TEMPLATE_CPU_GEMM &&
           sched_cpu_gemm_params(&u->variant->sched).has_strips;
}

static bool is_panels(const Used *u) {
    return u->kernel->form == FORM_GEMM && u->kernel->panel_columns > 0;
}

static bool is_tiled(const Used *u) {
    return is_engine(u, GEMM_FMA) && sched_cpu_gemm_params(&u->variant->sched).is_blocked;
}

static bool is_streamed(const Used *u) {
    return u->variant->sched.template == TEMPLATE_CPU_GEMM &&
           !u->variant->sched.cpu_gemm.is_blocked;
}

static bool is_parallel(const Used *u) {
    return u->is_parallel;
}

static bool is_parallel_mixed(const Used *u) {
    return u->is_mixed;
}

static bool is_wgmma_parallel(const Used *u) {
    return u->is_mixed && is_wgmma(u);
}

static bool is_wgmma_parallel_store(const Used *u) {
    return u->is_mixed && is_wgmma_store(u);
}

static bool is_continuing(const Used *u) {
    return u->launch->mode == LAUNCH_SEQUENCE && u->kernel != launch_kernel(u->plan, u->launch, 0);
}

static bool is_sequence_rows(const Used *u) {
    return is_continuing(u) && u->kernel->form == FORM_ROW;
}

static bool is_sequence_wide(const Used *u) {
    int64_t n;
    const DimTab *dims = u->plan->graph->dims;
    bool is_known = dim_is_const(dims, kernel_n_reduced(u->kernel), &n);
    return is_sequence_rows(u) && u->opens != GEMM_WGMMA && !(is_known && n <= 64);
}

static bool is_sequence_wgmma(const Used *u) {
    return is_sequence_rows(u) && u->opens == GEMM_WGMMA;
}

static bool is_sequence_product(const Used *u) {
    return is_continuing(u) && u->kernel->form == FORM_GEMM && !is_engine(u, GEMM_WGMMA);
}

static bool is_gemm_rows_gemm(const Used *u) {
    return u->launch->mode == LAUNCH_GEMM_ROWS_GEMM && u->kernel->form == FORM_ROW;
}

static bool is_gemm_online(const Used *u) {
    return u->launch->mode == LAUNCH_GEMM_ONLINE && u->kernel->form == FORM_ONLINE;
}

static bool is_band(const Used *u) {
    return u->kernel->band.first && u->kernel->form == FORM_ROW;
}

static bool is_one_block(const Used *u) {
    return u->is_one_block;
}

/* Whether it fills a copy that stands for an input, and the copy has elements. */
static bool is_copy(const Used *u) {
    const DimTab *dims = u->plan->graph->dims;
    for (uint32_t i = 0; i < u->kernel->args.n; i++) {
        const Buffer *buffer = &u->plan->buffers.data[u->kernel->args.data[i]];
        int64_t n_bytes = 0;
        if (buffer->kind != BUFFER_TEMP || !buffer->choice ||
            !kernel_stores_to(u->kernel, u->kernel->args.data[i]))
            continue;
        DimId bytes = buffer_bytes(u->plan->graph->dims, buffer);
        if (dim_eval(dims, bytes, u->symbol_values, &n_bytes) && n_bytes > 0) return true;
    }
    return false;
}

static bool is_init(const Used *u) {
    return u->kernel->is_init && !kernel_lays_out(u->plan, u->kernel);
}

static bool is_layout(const Used *u) {
    return u->kernel->is_init && kernel_lays_out(u->plan, u->kernel);
}

static bool is_in_place(const Used *u) {
    for (uint32_t i = 0; i < u->kernel->args.n; i++) {
        uint32_t buffer = u->kernel->args.data[i];
        if (u->plan->buffers.data[buffer].in_place_of && kernel_stores_to(u->kernel, buffer))
            return true;
    }
    return false;
}

static void note_concat_in_place(void *user, const Store *store) {
    *(bool *)user |= store->piece != 0;
}

static bool is_concat_in_place(const Used *u) {
    bool has_pieces = false;
    kernel_each_store(u->kernel, note_concat_in_place, &has_pieces);
    return has_pieces;
}

/* The list. */

static const LoweringInfo infos[] = {
#define LOWERING(sym, name, gpu, cpu, dtypes, family, needs, seed, doc) {name, doc, dtypes, seed},
#include "lowerings.def"
};

static const struct {
    bool on[2]; /* by DeviceClass */
    int needs;
    bool (*is)(const Used *used);
} rules[] = {
#define LOWERING(sym, name, gpu, cpu, dtypes, family, needs, seed, doc) \
    {{cpu, gpu}, needs, is_##sym},
#include "lowerings.def"
};

const LoweringInfo *lowering_info(LoweringId id) {
    return &infos[id];
}

LoweringId lowering_by_name(const char *name, size_t n_bytes) {
    LoweringId id = 0;
    while (id < LOWERING_COUNT &&
           (strlen(infos[id].name) != n_bytes || memcmp(infos[id].name, name, n_bytes) != 0))
        id++;
    return id;
}

bool lowering_is_on(LoweringId id, const Target *target) {
    const bool has[N_NEEDS] = {true, target->max_cluster > 1, target->f8_ptx_version != NULL,
                               target->has_wgmma};
    return rules[id].on[target->device] && has[rules[id].needs];
}

/* What the kernel reads first: of a product its lhs. */
static Dtype dtype_of(const Used *u) {
    for (uint32_t i = 0; i < u->kernel->args.n; i++)
        if (kernel_only_reads(u->kernel, u->kernel->args.data[i]))
            return u->plan->buffers.data[u->kernel->args.data[i]].dtype;
    return u->plan->buffers.data[u->kernel->args.data[0]].dtype;
}

/* The symbols' values, with those that follow from others. */
static Used used_at(const Plan *plan, const int64_t *symbol_values, int64_t *values) {
    const DimTab *dims = plan->graph->dims;
    for (uint32_t s = 0; s < dim_n_symbols(dims); s++)
        values[s] = dim_symbol_info(dims, s)->rule ? 0 : symbol_values[s];
    dim_follow_rules(dims, values);
    return (Used){.plan = plan, .symbol_values = values};
}

static void note_launch(const Target *target, const Launch *launch, uint32_t v, Used *used,
                        LoweringUse *use) {
    const Plan *plan = used->plan;
    used->launch = launch;
    used->is_one_block = launch->mode == LAUNCH_ONE_BLOCK;
    used->is_parallel = launch->mode == LAUNCH_PARALLEL;
    used->is_mixed = false;
    used->opens = sched_engine(&launch_kernel(plan, launch, 0)->variants[v].sched);
    for (uint32_t k = 1; k < launch->n && used->is_parallel; k++)
        used->is_mixed = used->is_mixed || launch_kernel(plan, launch, k)->code !=
                                               launch_kernel(plan, launch, 0)->code;
    for (uint32_t k = 0; k < launch->n; k++) {
        used->kernel = launch_kernel(plan, launch, k);
        used->variant = &used->kernel->variants[v];
        Dtype dtype = dtype_of(used);
        for (LoweringId id = 0; id < LOWERING_COUNT; id++)
            if (lowering_is_on(id, target) && rules[id].is(used))
                use->variants[id][dtype] |= (uint8_t)(1u << v);
    }
}

void lowering_note_plan(const Plan *plan, const Target *target, const int64_t *symbol_values,
                        LoweringUse *use) {
    int64_t values[DIM_MAX_SYMBOLS];
    Used used = used_at(plan, symbol_values, values);
    for (uint32_t i = 0; i < plan->launches.n; i++) {
        const Launch *launch = &plan->launches.data[i];
        for (uint32_t v = 0; v < launch_kernel(plan, launch, 0)->n_variants; v++)
            note_launch(target, launch, v, &used, use);
    }
}

void lowering_note_use(const Plan *plan, const Target *target, const Rig *rig,
                       const int64_t *symbol_values, LoweringUse *use) {
    int64_t values[DIM_MAX_SYMBOLS];
    Used used = used_at(plan, symbol_values, values);
    for (uint32_t i = 0; i < plan->launches.n; i++) {
        const Launch *launch = &plan->launches.data[i];
        /* Init steps are run by the program: which of their variants did, it does not say. */
        int32_t v =
            launch_kernel(plan, launch, 0)->is_init ? 0 : frt_exec_variant(rig->exec, (int32_t)i);
        if (v >= 0) note_launch(target, launch, (uint32_t)v, &used, use);
    }
}

/* Counting. */

static uint64_t hash_seen(const ShapeSeen *seen) {
    uint64_t key[] = {seen->shape, seen->id, seen->dtype, seen->variant};
    return hash_bytes(STR_HASH_SEED, key, sizeof key);
}

static uint32_t *find_slot(const ShapeCount *count, const ShapeSeen *seen) {
    uint64_t at = hash_seen(seen);
    for (;; at++) {
        uint32_t *slot = &count->slots[at & (count->n_slots - 1)];
        const ShapeSeen *there = *slot ? &count->seen.data[*slot - 1] : NULL;
        if (!there || (there->shape == seen->shape && there->id == seen->id &&
                       there->dtype == seen->dtype && there->variant == seen->variant))
            return slot;
    }
}

static void grow(ShapeCount *count) {
    if (2 * (count->seen.n + 1) < count->n_slots) return;
    count->n_slots = count->n_slots ? 2 * count->n_slots : 1024;
    count->slots = arena_array(count->arena, uint32_t, count->n_slots);
    for (uint32_t i = 0; i < count->seen.n; i++) *find_slot(count, &count->seen.data[i]) = i + 1;
}

/* False: it was there. */
static bool add_seen(ShapeCount *count, ShapeSeen seen) {
    grow(count);
    uint32_t *slot = find_slot(count, &seen);
    if (*slot) return false;
    vec_push(count->arena, &count->seen, seen);
    *slot = count->seen.n;
    return true;
}

static void add_one(ShapeCount *count, ShapeSeen seen) {
    if (add_seen(count, seen)) count->by[seen.id][seen.dtype][seen.variant]++;
    seen.variant = MAX_VARIANTS;
    if (add_seen(count, seen)) count->n[seen.id]++;
}

void shape_count_add(ShapeCount *count, const LoweringUse *use, uint64_t shape) {
    for (uint32_t id = 0; id < LOWERING_COUNT; id++)
        for (uint32_t d = 0; d < DT_COUNT; d++)
            for (uint32_t v = 0; v < MAX_VARIANTS; v++)
                if (use->variants[id][d] >> v & 1)
                    add_one(count, (ShapeSeen){shape, (uint8_t)id, (uint8_t)d, (uint8_t)v});
}

static void print_template(const ShapeCount *count, LoweringId id, Text *out) {
    text_printf(out, "  %-20s %6u ", infos[id].name, count->n[id]);
    for (Dtype d = 0; d < DT_COUNT; d++) {
        bool is_begun = false;
        for (uint32_t v = 0; v < MAX_VARIANTS; v++) {
            if (!count->by[id][d][v]) continue;
            if (!is_begun) text_printf(out, "  %s", dtype_name(d));
            is_begun = true;
            text_printf(out, " v%u:%u", v, count->by[id][d][v]);
        }
    }
    if (count->is_too_large[id]) text_puts(out, " too large");
    text_puts(out, "\n");
}

static bool lacks_shapes(const ShapeCount *count, LoweringId id, uint32_t wanted) {
    return count->n[id] < wanted && !count->is_too_large[id];
}

uint32_t shape_count_print(const ShapeCount *count, const Target *target, uint32_t wanted,
                           Text *out) {
    uint32_t n_short = 0;
    text_printf(out, "%s: shapes by template; of each dtype by the variant that ran\n",
                target->name);
    for (LoweringId id = 0; id < LOWERING_COUNT; id++) {
        if (!lowering_is_on(id, target)) continue;
        print_template(count, id, out);
        n_short += lacks_shapes(count, id, wanted);
    }
    for (LoweringId id = 0; id < LOWERING_COUNT; id++)
        if (lowering_is_on(id, target) && lacks_shapes(count, id, wanted))
            text_printf(out, "FAILED coverage of %s: %u shapes of %u\n", infos[id].name,
                        count->n[id], wanted);
    return n_short;
}

void shape_count_write(const ShapeCount *count, Text *out) {
    for (uint32_t i = 0; i < count->seen.n; i++) {
        const ShapeSeen *seen = &count->seen.data[i];
        if (seen->variant < MAX_VARIANTS)
            text_printf(out, "%s %u %u %" PRIu64 "\n", infos[seen->id].name, seen->dtype,
                        seen->variant, seen->shape);
    }
}

bool shape_count_read(ShapeCount *count, const char *line) {
    unsigned dtype, variant;
    uint64_t shape;
    LoweringId id = lowering_by_name(line, strcspn(line, " "));
    if (id == LOWERING_COUNT ||
        sscanf(line + strlen(infos[id].name), "%u %u %" SCNu64, &dtype, &variant, &shape) != 3 ||
        dtype >= DT_COUNT || variant >= MAX_VARIANTS)
        return false;
    add_one(count, (ShapeSeen){shape, (uint8_t)id, (uint8_t)dtype, (uint8_t)variant});
    return true;
}
