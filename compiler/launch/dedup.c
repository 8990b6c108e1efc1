/* Sharing code. Two kernels are equal if their keys are: axes, scalar programs with arguments by
 * position, reductions, stores and schedules. Names and places of buffers do not count, nor do the
 * offset at which a kernel starts to store in a buffer, or to read from a part of it, and constants
 * that the launch gives. */
#include "launch/dedup.h"
#include "base/keytab.h"
#include "launch/part.h"
#include "plan/launch.h"

#include "plan/in_place.h"

#include <string.h>

/* Writes a key. Lists begin with their length, so that no key is the beginning of another. */
typedef struct Writer {
    Arena *arena;
    const Plan *plan;
    const Kernel *kernel;
    bool has_pdl;
    const bool *live;
    uint32_t *numbers; /* per live scalar: its number in the key */
    VecU32 key;
} Writer;

static void put(Writer *w, uint32_t word) {
    vec_push(w->arena, &w->key, word);
}

static void put_long(Writer *w, uint64_t word) {
    put(w, (uint32_t)word);
    put(w, (uint32_t)(word >> 32));
}

static void put_double(Writer *w, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_long(w, bits);
}

/* Dims are written by id, because they are interned over the whole module. */
static void write_index(Writer *w, IndexId id) {
    const IndexTab *tab = scalartab_indices(w->kernel->scalars);
    IndexExpr expr = index_expr(tab, id);
    put(w, expr.offset);
    put(w, expr.n_terms);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        put(w, expr.terms[i].coefficient);
        put(w, atom.kind);
        put(w, atom.kind == ATOM_VALUE ? w->numbers[atom.value] : atom.axis);
        put(w, atom.divisor);
        if (atom.kind == ATOM_DIV || atom.kind == ATOM_MOD) write_index(w, atom.operand);
    }
}

static void write_guard(Writer *w, GuardId id) {
    for (GuardId g = id; g; g = guard_get(w->kernel->scalars, g).next) {
        Guard guard = guard_get(w->kernel->scalars, g);
        put(w, 1);
        put(w, guard.lo);
        put(w, guard.hi);
        write_index(w, guard.index);
    }
    put(w, 0);
}

static void write_scalar(Writer *w, const Scalar *s) {
    put(w, s->kind);
    put(w, s->dtype);
    put(w, s->prim);
    for (uint32_t i = 0; i < 3; i++) put(w, w->numbers[s->args[i]]);
    put_double(w, s->number);
    put_long(w, (uint64_t)s->whole);
    put(w, s->kind == SCALAR_LOAD ? kernel_find_arg(w->kernel, s->buffer) : 0);
    put(w, s->slot);
    put(w, s->index != 0);
    if (s->index) write_index(w, s->index);
    write_guard(w, s->guard);
}

static void write_stores(Writer *w, const Store *stores, uint32_t n) {
    put(w, n);
    for (uint32_t i = 0; i < n; i++) {
        put(w, kernel_find_arg(w->kernel, stores[i].buffer));
        put(w, w->plan->buffers.data[stores[i].buffer].dtype);
        put(w, w->numbers[stores[i].value]);
        write_index(w, stores[i].address);
        write_guard(w, stores[i].guard);
    }
}

static void write_join(Writer *w, const ScanJoin *join) {
    put(w, join->n);
    for (uint32_t i = 0; i < join->n; i++) {
        put(w, w->numbers[join->elements[i]]);
        put(w, join->types[i]);
        put(w, join->results[i]);
    }
    put(w, scalar_count(join->scalars));
    for (ScalarId id = 1; id <= scalar_count(join->scalars); id++) {
        const Scalar *s = scalar_get(join->scalars, id);
        const uint32_t words[] = {s->kind,    s->dtype,   s->prim, s->args[0],
                                  s->args[1], s->args[2], s->slot};
        for (uint32_t i = 0; i < sizeof words / sizeof *words; i++) put(w, words[i]);
        put_double(w, s->number);
        put_long(w, (uint64_t)s->whole);
    }
}

static void write_reduces(Writer *w) {
    put(w, w->kernel->reduces.n);
    for (uint32_t i = 0; i < w->kernel->reduces.n; i++) {
        const Reduce *r = &w->kernel->reduces.data[i];
        put(w, r->combine);
        put(w, r->power);
        put(w, r->is_arg);
        put(w, r->acc);
        put_double(w, r->identity);
        put(w, w->numbers[r->value]);
        put(w, w->numbers[r->rhs]);
        put(w, w->numbers[r->arg_index]);
        put(w, r->divisor);
        put(w, r->result);
        put(w, r->joined);
        put(w, r->join != NULL);
        if (r->join) write_join(w, r->join);
    }
}

static void write_bounds(Writer *w) {
    put(w, w->kernel->bounds.n);
    for (uint32_t i = 0; i < w->kernel->bounds.n; i++) {
        const Bounds *bounds = &w->kernel->bounds.data[i];
        put(w, w->numbers[bounds->value]);
        put(w, w->numbers[bounds->least]);
        put(w, w->numbers[bounds->greatest]);
    }
    put(w, w->numbers[w->kernel->tiles_taken]);
}

static void write_maps(Writer *w, const Variant *v) {
    put(w, v->n_maps);
    for (uint32_t i = 0; i < v->n_maps; i++) {
        const TensorMap *map = &v->maps[i];
        put(w, map->arg);
        put(w, map->swizzle_bytes);
        put(w, kernel_map_offset(w->kernel, map));
        put(w, map->rank);
        for (uint32_t k = 0; k < map->rank; k++) {
            put(w, map->axes[k].axis);
            put(w, map->axes[k].stride);
            put(w, map->axes[k].box);
        }
        put(w, map->im2col != NULL); /* the image of the operand */
    }
}

static void put_text(Writer *w, const char *text, size_t n_bytes) {
    put(w, (uint32_t)n_bytes);
    for (size_t i = 0; i < n_bytes; i++) put(w, (unsigned char)text[i]);
}

static void write_predicate(Writer *w, const Predicate *predicate) {
    put(w, predicate->n);
    for (uint32_t i = 0; i < predicate->n; i++) {
        const PredicateTerm *term = &predicate->terms[i];
        put(w, term->kind);
        put(w, term->dim);
        switch (term->kind) {
        case TERM_ALIGNED:
            put_long(w, (uint64_t)term->of);
            put_long(w, term->args);
            break;
        case TERM_LEVEL:
            put_text(w, term->level, strlen(term->level));
            break;
        case TERM_MULTIPLE:
            put_long(w, (uint64_t)term->of);
            break;
        case TERM_RANGE:
            put_long(w, (uint64_t)term->least);
            put_long(w, (uint64_t)term->most);
            break;
        }
    }
}

/* The printed schedule has all numbers that its template reads. */
static void write_sched(Writer *w, const Sched *sched) {
    Text text = {.arena = w->arena};
    sched_print(w->kernel, sched, &text);
    put_text(w, text.data, text.n_bytes);
}

static void write_variants(Writer *w) {
    put(w, w->kernel->n_variants);
    for (uint32_t i = 0; i < w->kernel->n_variants; i++) {
        const Variant *v = &w->kernel->variants[i];
        write_sched(w, &v->sched);
        put(w, v->grid);
        put(w, v->shared_bytes);
        put(w, v->is_persistent);
        write_predicate(w, &v->predicate);
        write_maps(w, v);
        put(w, v->row_cache.n);
        for (uint32_t k = 0; k < v->row_cache.n; k++) {
            const CachedValue *keep = &v->row_cache.data[k];
            put(w, w->numbers[keep->value]);
            put(w, keep->stage);
            put(w, keep->slot);
        }
    }
}

/* A launch copies whole buffers, even if loads touch only a part. */
static void write_args(Writer *w, const Launch *launch) {
    const Kernel *kernel = w->kernel;
    put(w, kernel->args.n);
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t arg = kernel->args.data[i];
        const Buffer *buffer = &w->plan->buffers.data[arg];
        bool is_smem = buffer->space != BUFFER_GLOBAL, is_copied = launch_copies(launch, arg);
        put(w, is_smem);
        if (is_smem) put(w, kernel_arg_begin(kernel, i));
        put(w, in_place_may_any(w->arena, w->plan, kernel, arg));
        put(w, w->has_pdl && kernel_arg_is_given(w->plan, kernel, i));
        put(w, is_copied);
        if (is_copied) put(w, buffer_bytes(w->plan->graph->dims, buffer));
    }
}

static VecU32 kernel_key(Arena *arena, bool has_pdl, const Plan *plan, const Launch *launch,
                         uint32_t at) {
    const Kernel *kernel = launch_kernel(plan, launch, at);
    const ScalarTab *scalars = kernel->parts ? kernel->parts->scalars : kernel->scalars;
    const IndexTab *tab = scalartab_indices(scalars);
    Writer w = {.arena = arena, .plan = plan, .kernel = kernel, .has_pdl = has_pdl};
    w.live = kernel_live_scalars(arena, kernel);
    w.numbers = arena_array(arena, uint32_t, scalar_count(scalars) + 1);
    put(&w, kernel->form);
    put(&w, kernel->n_parallel);
    put(&w, kernel->first_reduced);
    put(&w, kernel->n_reduced);
    put(&w, kernel->segment_axis);
    put(&w, kernel->panel_columns);
    put_long(&w, kernel->symbols);
    put(&w, index_n_axes(tab));
    for (uint32_t k = 0; k < index_n_axes(tab); k++) put(&w, index_axis_extent(tab, k));
    write_args(&w, launch);
    uint32_t n = 0;
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) n += w.live[id];
    put(&w, n);
    n = 0;
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        if (!w.live[id]) continue;
        w.numbers[id] = ++n;
        write_scalar(&w, scalar_get(scalars, id));
    }
    write_reduces(&w);
    put(&w, kernel->stages.n);
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const Stage *stage = &kernel->stages.data[i];
        put(&w, stage->reduces.n);
        for (uint32_t r = 0; r < stage->reduces.n; r++) put(&w, stage->reduces.data[r]);
        write_stores(&w, stage->stores.data, stage->stores.n);
    }
    write_stores(&w, kernel->row_stores.data, kernel->row_stores.n);
    write_bounds(&w);
    write_variants(&w);
    return w.key;
}

void dedup_classify(Arena *arena, bool has_pdl, const Plan *const *plans, uint32_t n_plans) {
    KeyTab keys = {0};
    for (uint32_t p = 0; p < n_plans; p++)
        for (uint32_t i = 0; i < plans[p]->launches.n; i++) {
            const Launch *launch = &plans[p]->launches.data[i];
            for (uint32_t k = 0; k < launch->n; k++) {
                VecU32 key = kernel_key(arena, has_pdl, plans[p], launch, k);
                plans[p]->kernels.data[launch->first + k].code = keytab_intern(arena, &keys, &key);
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
            if (!twin) vec_push(arena, &owners, own);
        }
}

bool dedup_pass(const Planning *p) {
    const Plan **plans = arena_array(p->scratch, const Plan *, p->n_units);
    for (uint32_t i = 0; i < p->n_units; i++) plans[i] = p->units[i].plan;
    parts_classify(p, plans, p->n_units);
    dedup_functions(p->scratch, plans, p->n_units);
    return true;
}
