/* See price_key.h. */
#include "cost/price_key.h"

#include "machine/machine.h"
#include "plan/launch.h"
#include "plan/words.h"

#include <math.h>
#include <string.h>

enum { MOST_WORDS = 1 << 16, MOST_NUMBERS = 64 };

typedef struct Number {
    double number;
    int64_t whole;
} Number;

typedef struct Writer {
    Words words;
    Arena *scratch;
    const Plan *plan;
    int64_t line_bytes;
    VecU32 buffers;      /* of the plan, in the order of their first use */
    Vec(Number) numbers; /* constants, in the order of their first use */
} Writer;

static void put(Writer *w, uint32_t word) {
    words_put(&w->words, word);
}

static void put_long(Writer *w, uint64_t word) {
    words_put_long(&w->words, word);
}

static void write_choice(Writer *w, const Choice *choice) {
    put(w, choice != NULL);
    if (!choice) return;
    for (uint32_t v = 0; v < N_VERSIONS; v++) put(w, choice->factors[v]);
    words_put_predicate(&w->words, &choice->condition.when);
    put(w, choice->condition.n_unless);
    for (uint32_t i = 0; i < choice->condition.n_unless; i++)
        words_put_predicate(&w->words, &choice->condition.unless[i]);
}

static void write_buffer(Writer *w, uint32_t buffer) {
    const Buffer *own = &w->plan->buffers.data[buffer];
    uint32_t at = 0;
    while (at < w->buffers.n && w->buffers.data[at] != buffer) at++;
    put(w, at);
    if (at < w->buffers.n) return;
    vec_push(w->scratch, &w->buffers, buffer);
    put(w, own->kind);
    put(w, own->space);
    put(w, own->dtype);
    put(w, own->inner);
    put(w, own->pitch);
    put(w, own->offset_bytes);
    write_choice(w, own->choice);
    if (own->choice) write_buffer(w, own->source);
    put(w, own->shape.rank);
    for (uint32_t k = 0; k < own->shape.rank; k++) put(w, own->shape.dims[k]);
}

/* Prices may ask whether a constant is zero or whether it hides an element, as masks do. */
static bool is_plain(const Scalar *s) {
    bool is_zero = s->number == 0 && s->whole == 0;
    return s->kind == SCALAR_CONST && !is_zero && fabs(s->number) < 1e300;
}

/* The place of the constant in the list, or the end if there are many. */
static uint32_t number_of(Writer *w, const Scalar *s) {
    uint32_t at = 0;
    while (at < w->numbers.n &&
           (w->numbers.data[at].number != s->number || w->numbers.data[at].whole != s->whole))
        at++;
    if (at == w->numbers.n && at < MOST_NUMBERS)
        vec_push(w->scratch, &w->numbers, ((Number){s->number, s->whole}));
    return at;
}

/* Whether the plan only reads the buffer, and all its loads have this offset. */
static bool begin_there(const Plan *plan, uint32_t buffer, DimId offset) {
    bool all = true;
    for (uint32_t k = 0; k < plan->kernels.n && all; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        const IndexTab *tab = scalartab_indices(kernel->scalars);
        all = !kernel_stores_to(kernel, buffer);
        for (ScalarId id = 1; id <= scalar_count(kernel->scalars) && all; id++) {
            const Scalar *s = scalar_get(kernel->scalars, id);
            bool is_load = s->kind == SCALAR_LOAD && s->buffer == buffer;
            all = !is_load || index_expr(tab, s->index).offset == offset;
        }
    }
    return all;
}

/* Prices do not depend on where in a buffer its loads begin, as layers read parts of one buffer, if
 * that is the beginning of a line. Returns that offset, or DIM_NONE. */
static DimId place_of(const Writer *w, const Scalar *s) {
    const IndexTab *tab = scalartab_indices(w->words.kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    if (s->kind != SCALAR_LOAD) return DIM_NONE;
    DimId offset = index_expr(tab, s->index).offset;
    bool may = !dim_equals_const(dims, offset, 0) &&
               dim_multiple(dims, offset) * dtype_bytes(s->dtype) % w->line_bytes == 0;
    return may && begin_there(w->plan, s->buffer, offset) ? offset : DIM_NONE;
}

/* Prices do not depend on the constant's value, but alike kernels may share code. So the key has
 * its number in the order of first use. */
static void write_scalar(Writer *w, const Scalar *s) {
    Scalar own = *s;
    uint32_t number = is_plain(s) ? number_of(w, s) : MOST_NUMBERS;
    if (number < MOST_NUMBERS) {
        own.number = 0;
        own.whole = number;
    }
    put(w, number < MOST_NUMBERS);
    w->words.from = place_of(w, s);
    words_put_scalar(&w->words, &own);
}

/* The fields besides those of Words that prices read. */
static void write_scalars(Writer *w) {
    const ScalarTab *scalars = w->words.kernel->scalars;
    put(w, scalar_count(scalars));
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        const Scalar *s = scalar_get(scalars, id);
        write_scalar(w, s);
        put(w, s->is_loose);
        put(w, s->axes);
        put(w, s->moved_by);
    }
}

static void write_places(Writer *w, const Store *stores, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        put(w, stores[i].begin);
        put(w, stores[i].piece);
        put(w, stores[i].is_scratch);
    }
}

static void write_stages(Writer *w) {
    const Kernel *kernel = w->words.kernel;
    words_put_stages(&w->words);
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        write_places(w, kernel->stages.data[i].stores.data, kernel->stages.data[i].stores.n);
    write_places(w, kernel->row_stores.data, kernel->row_stores.n);
}

static void write_reduces(Writer *w) {
    const Kernel *kernel = w->words.kernel;
    words_put_reduces(&w->words);
    for (uint32_t i = 0; i < kernel->reduces.n; i++) put(w, kernel->reduces.data[i].precision);
}

static void write_price(Writer *w, const Price *price) {
    put(w, price->group);
    if (!price->group) return;
    put(w, price->blocks);
    put_long(w, (uint64_t)price->per_wave);
    put_long(w, (uint64_t)price->percent);
    put_long(w, (uint64_t)price->fixed);
    put(w, price->n_measures);
    for (uint32_t i = 0; i < price->n_measures; i++) {
        put_long(w, (uint64_t)price->weights[i]);
        put(w, price->measures[i]);
    }
}

static void write_maps(Writer *w, const Variant *v) {
    put(w, v->n_maps);
    for (uint32_t i = 0; i < v->n_maps; i++) {
        words_put_map(&w->words, &v->maps[i]);
        put(w, v->maps[i].is_tf32);
        put(w, v->maps[i].offset);
    }
}

static void write_variant(Writer *w, const Variant *v) {
    uint32_t words[(sizeof v->sched + 3) / 4] = {0};
    memcpy(words, &v->sched, sizeof v->sched);
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++) put(w, words[i]);
    put(w, v->grid);
    put(w, v->is_persistent);
    put(w, v->shared_bytes);
    put(w, v->kept_shared_bytes);
    write_maps(w, v);
    words_put_predicate(&w->words, &v->predicate);
    write_price(w, &v->price);
    words_put_row_cache(&w->words, v);
}

static void write_kernel(Writer *w, const Kernel *kernel) {
    w->words.kernel = kernel;
    put(w, kernel->is_init);
    write_choice(w, kernel->choice);
    put(w, kernel->version);
    words_put_axes(&w->words, scalartab_indices(kernel->scalars));
    put(w, kernel->args.n);
    for (uint32_t i = 0; i < kernel->args.n; i++) write_buffer(w, kernel->args.data[i]);
    write_scalars(w);
    write_reduces(w);
    write_stages(w);
    put(w, kernel->n_variants);
    for (uint32_t v = 0; v < kernel->n_variants; v++) write_variant(w, &kernel->variants[v]);
}

static bool has_images(const Kernel *kernel) {
    bool has = false;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        for (uint32_t i = 0; i < kernel->variants[v].n_maps; i++)
            has = has || kernel->variants[v].maps[i].im2col;
    return has;
}

static bool has_joins(const Kernel *kernel) {
    bool has = false;
    for (uint32_t i = 0; i < kernel->reduces.n; i++) has = has || kernel->reduces.data[i].join;
    return has;
}

/* Whether the key has everything of the kernel. */
static bool may_be_known(const Kernel *kernel) {
    return !kernel->parts && !kernel->bounds.n && !kernel->band.first && !kernel_updates(kernel) &&
           !form_info(kernel->form)->divides && !has_images(kernel) && !has_joins(kernel);
}

static void write_launch(Writer *w, const Launch *launch) {
    put(w, launch->mode);
    put(w, launch->n);
    for (uint32_t k = 0; k < launch->n; k++) write_kernel(w, launch_kernel(w->plan, launch, k));
    put(w, launch->copied.n);
    for (uint32_t i = 0; i < launch->copied.n; i++) write_buffer(w, launch->copied.data[i]);
}

/* Whether neighbours in a launch have the same code, which their content does not tell if the codes
 * are of another time. */
static void write_codes(Writer *w) {
    const Plan *plan = w->plan;
    for (uint32_t k = 1; k < plan->kernels.n; k++)
        put(w, plan->kernels.data[k].code == plan->kernels.data[k - 1].code);
}

bool price_key_write(Arena *arena, VecU32 *key, Arena *scratch, const Plan *plan,
                     const Target *target) {
    Writer w = {.words = {.arena = arena, .key = key},
                .scratch = scratch,
                .plan = plan,
                .line_bytes = target->has->cores ? CPU_LINE_BYTES : LINE_BYTES};
    ArenaMark mark = arena_mark(scratch);
    bool may = true;
    for (uint32_t k = 0; k < plan->kernels.n && may; k++)
        may = may_be_known(&plan->kernels.data[k]);
    for (uint32_t i = 0; i < plan->launches.n && may; i++) {
        write_launch(&w, &plan->launches.data[i]);
        may = key->n <= MOST_WORDS;
    }
    if (may) write_codes(&w);
    arena_rewind(scratch, mark);
    return may;
}
