/* Sharing code. Two kernels are equal if their keys are: axes, scalar programs with arguments by
 * position, reductions, stores and schedules. Names and places of buffers do not count, nor do the
 * offset at which a kernel starts to store in a buffer, or to read from a part of it, and constants
 * that the launch gives. */
#include "launch/dedup.h"
#include "base/keytab.h"
#include "launch/part.h"
#include "plan/launch.h"
#include "template/cpu_pack.h"

#include "plan/in_place.h"
#include "plan/words.h"

#include <string.h>

struct DedupCodes {
    Arena *arena;
    bool has_pdl;
    KeyTab keys;
    VecU32 key; /* of the kernel that was looked up last */
    Text text;  /* of its schedules */
};

/* Writes a key. */
typedef struct Writer {
    Words words;
    const Plan *plan;
    Text *text; /* of schedules */
    bool has_pdl;
} Writer;

static void put(Writer *w, uint32_t word) {
    words_put(&w->words, word);
}

static void put_id(Writer *w, ScalarId id) {
    words_put_scalar_id(&w->words, id);
}

static void write_join(Writer *w, const ScanJoin *join) {
    put(w, join->n);
    for (uint32_t i = 0; i < join->n; i++) {
        put_id(w, join->elements[i]);
        put(w, join->types[i]);
        put(w, join->results[i]);
    }
    put(w, scalar_count(join->scalars));
    for (ScalarId id = 1; id <= scalar_count(join->scalars); id++) {
        const Scalar *s = scalar_get(join->scalars, id);
        const uint32_t words[] = {s->kind,    s->dtype,   s->prim, s->args[0],
                                  s->args[1], s->args[2], s->slot};
        for (uint32_t i = 0; i < sizeof words / sizeof *words; i++) put(w, words[i]);
        words_put_double(&w->words, s->number);
        words_put_long(&w->words, (uint64_t)s->whole);
    }
}

static void write_joins(Writer *w) {
    const Kernel *kernel = w->words.kernel;
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        const Reduce *r = &kernel->reduces.data[i];
        put(w, r->joined);
        put(w, r->join != NULL);
        if (r->join) write_join(w, r->join);
    }
}

static void write_bounds(Writer *w) {
    const Kernel *kernel = w->words.kernel;
    put(w, kernel->bounds.n);
    for (uint32_t i = 0; i < kernel->bounds.n; i++) {
        put_id(w, kernel->bounds.data[i].value);
        put_id(w, kernel->bounds.data[i].least);
        put_id(w, kernel->bounds.data[i].greatest);
    }
    put_id(w, kernel->tiles_taken);
    put_id(w, kernel->band.first);
    put_id(w, kernel->band.end);
    put(w, kernel->band.axis);
}

static void write_maps(Writer *w, const Variant *v) {
    put(w, v->n_maps);
    for (uint32_t i = 0; i < v->n_maps; i++) {
        words_put_map(&w->words, &v->maps[i]);
        put(w, kernel_map_offset(w->words.kernel, &v->maps[i]));
        put(w, v->maps[i].im2col != NULL); /* the image of the operand */
    }
}

/* The printed schedule has all numbers that its template reads. */
static void write_sched(Writer *w, const Sched *sched) {
    w->text->n_bytes = 0;
    sched_print(w->words.kernel, sched, w->text);
    words_put_text(&w->words, w->text->data, w->text->n_bytes);
}

static void write_variants(Writer *w) {
    const Kernel *kernel = w->words.kernel;
    put(w, kernel->n_variants);
    for (uint32_t i = 0; i < kernel->n_variants; i++) {
        const Variant *v = &kernel->variants[i];
        write_sched(w, &v->sched);
        put(w, v->grid);
        put(w, v->shared_bytes);
        put(w, v->is_persistent);
        words_put_predicate(&w->words, &v->predicate);
        write_maps(w, v);
        words_put_row_cache(&w->words, v);
    }
}

/* A launch copies whole buffers, even if loads touch only a part. */
static void write_args(Writer *w, const Launch *launch) {
    const Kernel *kernel = w->words.kernel;
    const bool *may_change = in_place_find(w->words.arena, w->plan, kernel);
    put(w, kernel->args.n);
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t arg = kernel->args.data[i];
        const Buffer *buffer = &w->plan->buffers.data[arg];
        bool is_smem = buffer->space != BUFFER_GLOBAL, is_copied = launch_copies(launch, arg);
        put(w, is_smem);
        if (is_smem) put(w, kernel_arg_begin(kernel, i));
        put(w, may_change[i]);
        put(w, w->has_pdl && kernel_arg_is_given(w->plan, kernel, i));
        put(w, is_copied);
        if (is_copied) put(w, buffer_bytes(w->plan->graph->dims, buffer));
    }
}

/* The live scalars. Loads and stores of them get numbers as they come. */
static void write_scalars(Writer *w, const ScalarTab *scalars, const bool *live,
                          uint32_t *numbers) {
    uint32_t n = 0;
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) n += live[id];
    put(w, n);
    n = 0;
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        if (!live[id]) continue;
        numbers[id] = ++n;
        words_put_scalar(&w->words, scalar_get(scalars, id));
    }
}

static void write_store_dtypes(Writer *w, const Store *stores, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) put(w, w->plan->buffers.data[stores[i].buffer].dtype);
}

/* Writes the key of a kernel. The key and the text are those of the kernel before, whose memory
 * they use. */
static void write_kernel(Writer *w, const Launch *launch, const Kernel *kernel) {
    Arena *arena = w->words.arena;
    const ScalarTab *scalars = kernel->parts ? kernel->parts->scalars : kernel->scalars;
    uint32_t *numbers = arena_array(arena, uint32_t, scalar_count(scalars) + 1);
    w->words.key->n = 0;
    w->words.kernel = kernel;
    w->words.numbers = numbers;
    words_put_axes(&w->words, scalartab_indices(scalars));
    write_args(w, launch);
    write_scalars(w, scalars, kernel_live_scalars(arena, kernel), numbers);
    words_put_reduces(&w->words);
    write_joins(w);
    words_put_stages(&w->words);
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        write_store_dtypes(w, kernel->stages.data[i].stores.data, kernel->stages.data[i].stores.n);
    write_store_dtypes(w, kernel->row_stores.data, kernel->row_stores.n);
    write_bounds(w);
    write_variants(w);
}

DedupCodes *dedup_codes_new(Arena *arena, bool has_pdl) {
    DedupCodes *codes = arena_array(arena, DedupCodes, 1);
    *codes = (DedupCodes){.arena = arena, .has_pdl = has_pdl, .text.arena = arena};
    return codes;
}

uint32_t dedup_code(DedupCodes *codes, const Plan *plan, const Launch *launch,
                    const Kernel *kernel) {
    Writer w = {.words = {.arena = codes->arena, .key = &codes->key},
                .plan = plan,
                .text = &codes->text,
                .has_pdl = codes->has_pdl};
    write_kernel(&w, launch, kernel);
    return keytab_intern(codes->arena, &codes->keys, &codes->key);
}

void dedup_classify(Arena *arena, bool has_pdl, const Plan *const *plans, uint32_t n_plans) {
    DedupCodes *codes = dedup_codes_new(arena, has_pdl);
    for (uint32_t p = 0; p < n_plans; p++)
        for (uint32_t l = 0; l < plans[p]->launches.n; l++) {
            const Launch *launch = &plans[p]->launches.data[l];
            for (uint32_t k = 0; k < launch->n; k++) {
                Kernel *kernel = &plans[p]->kernels.data[launch->first + k];
                kernel->code = dedup_code(codes, plans[p], launch, kernel);
            }
        }
}

/* A launch of one of the plans. */
typedef struct Owner {
    const Plan *plan;
    const Launch *launch;
} Owner;

static const Kernel *kernel_of(const Owner *a, uint32_t k) {
    return launch_kernel(a->plan, a->launch, k);
}

/* Whether the kernels pass buffers to each other in the same way, which their codes do not tell. */
static bool passes_alike(const Owner *a, const Owner *b) {
    for (uint32_t k = 0; k < a->launch->n && launch_shares_blocks(a->launch); k++)
        for (uint32_t i = 0; i < kernel_of(a, k)->args.n; i++) {
            LaunchArg of = {k, i}, in_a = launch_first_use(a->plan, a->launch, of),
                      in_b = launch_first_use(b->plan, b->launch, of);
            if (in_a.kernel != in_b.kernel || in_a.arg != in_b.arg) return false;
        }
    return true;
}

static bool are_same(const Owner *a, const Owner *b) {
    bool same = a->launch->n == b->launch->n && a->launch->mode == b->launch->mode &&
                kernel_of(a, 0)->n_variants == kernel_of(b, 0)->n_variants;
    for (uint32_t k = 0; k < a->launch->n && same; k++)
        same = kernel_of(a, k)->code == kernel_of(b, k)->code;
    return same && passes_alike(a, b);
}

/* Whether each term of `whole` is one of `part`, and the others of that are ranges. */
static bool adds_ranges(const Predicate *part, const Predicate *whole) {
    uint32_t n_common = 0;
    for (uint32_t i = 0; i < part->n; i++) {
        bool is_common = false;
        for (uint32_t j = 0; j < whole->n && !is_common; j++)
            is_common = predicate_terms_are_equal(&part->terms[i], &whole->terms[j]);
        n_common += is_common;
        if (!is_common && part->terms[i].kind != TERM_RANGE) return false;
    }
    return n_common == whole->n;
}

static bool have_same_sched(Arena *arena, const Kernel *kernel, const Sched *a, const Sched *b) {
    Text of_a = {.arena = arena}, of_b = {.arena = arena};
    sched_print(kernel, a, &of_a);
    sched_print(kernel, b, &of_b);
    return strcmp(text_str(&of_a), text_str(&of_b)) == 0;
}

/* Whether results of the kernel may be stored turned, which takes units of all columns, and the
 * schedules have units of different columns. */
static bool turn_otherwise(const Kernel *kernel, const Sched *a, const Sched *b) {
    bool is_across = a->cpu_gemm.is_transposed;
    bool has_same = is_across ? a->cpu_gemm.unit_m == b->cpu_gemm.unit_m
                              : a->cpu_gemm.unit_n == b->cpu_gemm.unit_n;
    uint32_t axis = is_across ? gemm_axis_m(kernel) : gemm_axis_n(kernel);
    return !has_same && cpu_pack_stores_apart(kernel, axis, a->lanes);
}

/* Whether the code of variant `v` + 1 serves variant `v` too. */
static bool serves_variant(Arena *arena, const Owner *own, uint32_t v) {
    for (uint32_t k = 0; k < own->launch->n; k++) {
        const Kernel *kernel = kernel_of(own, k);
        const Variant *few = &kernel->variants[v], *all = few + 1;
        bool differ = sched_differ_in_units(&few->sched, &all->sched) &&
                      !turn_otherwise(kernel, &few->sched, &all->sched);
        if (!adds_ranges(&few->predicate, &all->predicate) ||
            !(differ || (k > 0 && have_same_sched(arena, kernel, &few->sched, &all->sched))))
            return false;
    }
    return true;
}

/* Variants that differ in their work units alone have one function, which asks for the extents. */
static void share_variants(Arena *arena, const Owner *own) {
    const Kernel *kernel = kernel_of(own, 0);
    for (uint32_t v = 0; v + 1 < kernel->n_variants; v++) {
        bool is_taken = v > 0 && kernel->variants[v - 1].is_shared;
        if (is_taken || !serves_variant(arena, own, v)) continue;
        kernel->variants[v].symbol = kernel->variants[v + 1].symbol;
        kernel->variants[v].is_shared = true;
    }
}

void dedup_functions(Arena *arena, const Plan *const *plans, uint32_t n_plans) {
    Vec(Owner) owners = {0}; /* the first of each kind owns the function */
    for (uint32_t p = 0; p < n_plans; p++)
        for (uint32_t l = 0; l < plans[p]->launches.n; l++) {
            const Owner own = {plans[p], &plans[p]->launches.data[l]}, *twin = NULL;
            const Kernel *kernel = kernel_of(&own, 0);
            for (uint32_t i = 0; i < owners.n && !twin; i++)
                if (are_same(&owners.data[i], &own)) twin = &owners.data[i];
            for (uint32_t v = 0; twin && v < kernel->n_variants; v++) {
                kernel->variants[v].symbol = kernel_of(twin, 0)->variants[v].symbol;
                kernel->variants[v].is_shared = true;
            }
            if (twin) continue;
            share_variants(arena, &own);
            vec_push(arena, &owners, own);
        }
}

bool dedup_pass(const Planning *p) {
    const Plan **plans = arena_array(p->scratch, const Plan *, p->n_units);
    for (uint32_t i = 0; i < p->n_units; i++) plans[i] = p->units[i].plan;
    parts_classify(p, plans, p->n_units);
    dedup_functions(p->scratch, plans, p->n_units);
    return true;
}
