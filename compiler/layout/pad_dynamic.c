/* Copying operands at run time. See pad_dynamic.h. */
#include "layout/pad_dynamic.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "layout/pad.h"

#include <string.h>

enum { HALF_BYTES = 2 }; /* element size of the GEMMs that use the copy engine */

/* Whether the operand is contiguous over its batches, rows and `inner`: only then can the GEMM read
 * it in place of a copy. */
static bool is_dense(const Kernel *gemm, const OperandRows *rows, const Scalar *s) {
    IndexTab *tab = scalartab_indices(gemm->scalars);
    uint32_t k = gemm_axis_k(gemm), outer = rows->inner == k ? rows->axis : k;
    IndexId dense = index_dim(tab, dim_const(indextab_dims(tab), 0));
    uint32_t axes[MAX_AXES], n = 0;
    for (uint32_t b = 0; b < gemm_axis_m(gemm); b++)
        if (s->axes >> b & 1) axes[n++] = b;
    axes[n++] = outer;
    axes[n++] = rows->inner;
    for (uint32_t i = 0; i < n; i++) {
        dense = index_scale(tab, dense, index_axis_extent(tab, axes[i]));
        dense = index_add(tab, dense, index_axis(tab, axes[i]));
    }
    return dense == s->index;
}

/* The rule that decides whether rows are copied. Rows need no copy if their pitch is a multiple of
 * `best` elements, or of `whole` elements and they are read only a few times. A copy does not pay
 * if depth and work are small. */
typedef struct CopyRule {
    DimId extent; /* elements of a row */
    int64_t padded, best, whole;
    DimId n_reads, depth, work; /* DIM_NONE counts as large */
    int64_t small_reads, small_depth, small_work;
    int64_t elem_bytes;
} CopyRule;

static CopyRule copy_rule_of(const Packing *p, const Kernel *gemm, const OperandRows *rows) {
    IndexTab *tab = scalartab_indices(gemm->scalars);
    DimId n_rows = kernel_n_rows(gemm), depth = kernel_n_reduced(gemm);
    uint32_t m = gemm_axis_m(gemm), other = rows->axis == m ? gemm_axis_n(gemm) : m;
    int64_t extent;
    bool is_across = rows->inner == rows->axis && !dim_is_const(p->dims, rows->extent, &extent);
    return (CopyRule){.extent = rows->extent,
                      .padded = LINE_BYTES / rows->elem_bytes,
                      .best = (is_across ? SECTOR_BYTES : ACCESS_BYTES) / rows->elem_bytes,
                      .whole = ACCESS_BYTES / rows->elem_bytes,
                      .n_reads = index_axis_extent(tab, other),
                      .depth = depth,
                      .work = dim_mul(p->dims, n_rows, depth),
                      .small_reads = LAYOUT_FEW_READS,
                      .small_depth = LAYOUT_SMALL_DEPTH,
                      .small_work = LAYOUT_SMALL_WORK,
                      .elem_bytes = rows->elem_bytes};
}

/* Adds the exception that rows with a pitch of a multiple of `elems` elements are not copied. */
static Predicate *except_rows_of(DimRule *rule, const CopyRule *of, int64_t elems) {
    Predicate *unless = condition_except(&rule->copied);
    predicate_align(unless, elems * of->elem_bytes, 1);
    predicate_require_multiple(unless, of->extent, elems);
    return unless;
}

static DimRule rule_of(const CopyRule *of) {
    DimRule rule = {.extent = of->extent, .padded = of->padded};
    except_rows_of(&rule, of, of->best);
    if (of->best != of->whole && of->n_reads != DIM_NONE)
        predicate_require_range(except_rows_of(&rule, of, of->whole), of->n_reads, INT64_MIN,
                                of->small_reads);
    if (of->depth == DIM_NONE || of->work == DIM_NONE) return rule;
    Predicate *is_small = condition_except(&rule.copied);
    predicate_require_range(is_small, of->depth, INT64_MIN, of->small_depth);
    predicate_require_range(is_small, of->work, INT64_MIN, of->small_work);
    return rule;
}

/* `name.what`, with a number appended if that symbol exists. Names in the source contain no dot. */
static Str symbol_name(const Packing *p, Str name, const char *what) {
    Str own = str_format(p->arena, "%s.%s", name, what);
    for (uint32_t i = 0, n = 2; i < dim_n_symbols(p->dims); i++) {
        if (strcmp(dim_symbol_info(p->dims, i)->name, own) != 0) continue;
        own = str_format(p->arena, "%s.%s%u", name, what, n++);
        i = UINT32_MAX;
    }
    return own;
}

static uint32_t declare(const Packing *p, uint32_t source, const DimRule *rule, bool is_width) {
    int64_t most = dim_hi(p->dims, rule->extent);
    DimRule *own = arena_copy(p->arena, rule, sizeof *rule);
    own->is_width = is_width;
    Str name = symbol_name(p, p->plan->buffers.data[source].name, is_width ? "width" : "pitch");
    DimSymbol symbol = {.name = name,
                        .lo = is_width ? 0 : dim_lo(p->dims, rule->extent),
                        .hi = (most + rule->padded - 1) / rule->padded * rule->padded,
                        .multiple = is_width ? rule->padded : 1,
                        .rule = own};
    return dim_declare(p->dims, symbol);
}

/* If several GEMMs read the same rows, the rule of the first one decides. */
static const DynamicPitch *find_pitch(const Packing *p, uint32_t source, const DimRule *rule) {
    for (uint32_t i = 0; i < p->plan->dynamic_pitches.n; i++) {
        const DynamicPitch *pitch = &p->plan->dynamic_pitches.data[i];
        if (pitch->source == source &&
            dim_symbol_info(p->dims, pitch->pitch)->rule->extent == rule->extent)
            return pitch;
    }
    return NULL;
}

static const DynamicPitch *add_pitch(Packing *p, uint32_t source, const DimRule *rule) {
    const DynamicPitch *found = find_pitch(p, source, rule);
    if (found || dim_n_symbols(p->dims) + 2 > DIM_MAX_SYMBOLS) return found;
    const Choice choice = {.condition = rule->copied};
    DynamicPitch pitch = {.source = source, .choice = arena_copy(p->arena, &choice, sizeof choice)};
    pitch.pitch = declare(p, source, rule, false);
    pitch.width = declare(p, source, rule, true);
    vec_push(p->arena, &p->plan->dynamic_pitches, pitch);
    return &p->plan->dynamic_pitches.data[p->plan->dynamic_pitches.n - 1];
}

static bool is_const(const Packing *p, DimId dim) {
    int64_t value;
    return dim != DIM_NONE && dim_is_const(p->dims, dim, &value);
}

/* A `work` of 0 (a GEMM without outputs) makes the product of its extents constant, so depth and
 * reads are tested too. */
static bool is_known(const Packing *p, const CopyRule *rule) {
    bool are_reads_known = rule->n_reads == DIM_NONE || is_const(p, rule->n_reads);
    return is_const(p, rule->extent) && is_const(p, rule->work) && is_const(p, rule->depth) &&
           are_reads_known;
}

/* Whether the operand may need a copy at some extents and can be copied. */
static bool may_copy(const Packing *p, const Kernel *gemm, const Target *target, bool is_left) {
    OperandRows rows = gemm_operand_rows(gemm, is_left);
    const Scalar *s = scalar_get(gemm->scalars, *gemm_operand(gemm, is_left));
    CopyRule rule = copy_rule_of(p, gemm, &rows);
    BufferKind kind = p->plan->buffers.data[s->buffer].kind;
    int64_t extent;
    if (!target->has_wgmma) {
        rule.small_depth = LAYOUT_WAITING_DEPTH;
        rule.small_work = LAYOUT_WAITING_WORK;
    }
    if (kind != BUFFER_INPUT && kind != BUFFER_OUTPUT) return false;
    const DimRule own = rule_of(&rule);
    if (is_known(p, &rule)) return dim_rule_copies(p->dims, &own, NULL, &extent);
    bool is_large = dim_hi(p->dims, rule.depth) > rule.small_depth || rule.work == DIM_NONE ||
                    dim_hi(p->dims, rule.work) > rule.small_work;
    return target->has_wgmma && is_large && is_dense(gemm, &rows, s);
}

/* Sets the copy's layout. Returns false if no symbols are left to express when it is made. */
static bool find_request(Packing *p, const Kernel *gemm, bool is_left, PackRequest *request) {
    OperandRows rows = gemm_operand_rows(gemm, is_left);
    uint32_t source = scalar_get(gemm->scalars, *gemm_operand(gemm, is_left))->buffer;
    CopyRule rule = copy_rule_of(p, gemm, &rows);
    *request = (PackRequest){
        .is_left = is_left, .phase = PACK_RUN, .axis = rows.axis, .inner = rows.inner};
    if (is_known(p, &rule)) {
        request->pitch = request->stored = dim_round_up(p->dims, rule.extent, rule.padded);
        return true;
    }
    const DimRule own = rule_of(&rule);
    const DynamicPitch *pitch = add_pitch(p, source, &own);
    if (!pitch) return false;
    request->pitch = dim_symbol(p->dims, pitch->pitch);
    request->stored = dim_symbol(p->dims, pitch->width);
    request->choice = pitch->choice;
    request->source = source;
    return true;
}

bool pad_dynamic_copy_operands(Packing *p, uint32_t gemm, const Target *target) {
    const Kernel *kernel = &p->plan->kernels.data[gemm];
    PackRequest requests[2];
    bool wants[2];
    for (int is_left = 0; is_left < 2; is_left++) {
        OperandRows rows = gemm_operand_rows(kernel, is_left);
        if (!rows.is_plain || rows.elem_bytes != HALF_BYTES) return false;
        wants[is_left] = !rows.fit;
        if (!rows.fit && !may_copy(p, kernel, target, is_left)) return false;
    }
    for (int is_left = 0; is_left < 2; is_left++)
        if (wants[is_left] && !find_request(p, kernel, is_left, &requests[is_left])) return false;
    for (int is_left = 0; is_left < 2; is_left++)
        if (wants[is_left] && !pack_operand(p, gemm, requests[is_left])) return false;
    return wants[0] || wants[1];
}

static void note_stored(void *user, const Store *store) {
    bool *is_stored = user;
    is_stored[store->buffer] = true;
}

static bool stores_any(const Kernel *kernel, const VecU32 *buffers) {
    bool any = false;
    for (uint32_t i = 0; i < buffers->n && !any; i++)
        any = kernel_stores_to(kernel, buffers->data[i]);
    return any;
}

/* The place behind the last of the first `n` kernels of the order that stores what the reader only
 * reads. `is_stored`: per buffer, by any kernel. */
static uint32_t place_behind(Arena *arena, const Plan *plan, const uint32_t *order, uint32_t n,
                             const Kernel *reader, const bool *is_stored) {
    VecU32 reads = {0};
    for (uint32_t i = 0; i < reader->args.n; i++)
        if (is_stored[reader->args.data[i]] && kernel_only_reads(reader, reader->args.data[i]))
            vec_push(arena, &reads, reader->args.data[i]);
    if (!reads.n) return 0;
    while (n > 0 && !stores_any(&plan->kernels.data[order[n - 1]], &reads)) n--;
    return n;
}

void pad_dynamic_place_copies(Arena *arena, Plan *plan, uint32_t first) {
    ArenaMark mark = arena_mark(arena);
    uint32_t n = plan->kernels.n, last = n - 1;
    uint32_t *order = arena_array(arena, uint32_t, n);
    bool *is_stored = arena_array(arena, bool, plan->buffers.n);
    const Kernel *kernels = arena_copy(arena, plan->kernels.data, n * sizeof *kernels);
    for (uint32_t k = 0; k < n; k++) {
        order[k] = k;
        kernel_each_store(&kernels[k], note_stored, is_stored);
    }
    for (uint32_t i = first; i < n; i++) {
        uint32_t moved = order[last];
        uint32_t to = place_behind(arena, plan, order, last, &kernels[moved], is_stored);
        memmove(&order[to + 1], &order[to], (last - to) * sizeof *order);
        order[to] = moved;
    }
    for (uint32_t k = 0; k < n; k++) plan->kernels.data[k] = kernels[order[k]];
    arena_rewind(arena, mark);
}
