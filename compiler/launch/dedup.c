/* Sharing code. Two kernels are equal if their texts are: axes, scalar programs with arguments by
 * position, reductions, stores and schedules. Names and places of buffers do not count, nor does
 * the offset at which a kernel starts to store in a buffer. */
#include "launch/dedup.h"
#include "plan/launch.h"

#include "plan/in_place.h"

#include <string.h>

typedef struct Writer {
    const Plan *plan;
    const Kernel *kernel;
    const bool *live;
    uint32_t *numbers; /* per live scalar: its number in the text */
    Text out;
} Writer;

/* Dims are printed by id, because they are interned over the whole module. */
static void write_index(Writer *w, IndexId id) {
    const IndexTab *tab = scalartab_indices(w->kernel->scalars);
    IndexExpr expr = index_expr(tab, id);
    text_printf(&w->out, "(%u", expr.offset);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        uint32_t value = atom.kind == ATOM_VALUE ? w->numbers[atom.value] : atom.axis;
        text_printf(&w->out, " %u:%d,%u,%u", expr.terms[i].coefficient, (int)atom.kind, value,
                    atom.divisor);
        if (atom.kind == ATOM_DIV || atom.kind == ATOM_MOD) write_index(w, atom.operand);
    }
    text_puts(&w->out, ")");
}

static void write_guard(Writer *w, GuardId id) {
    for (GuardId g = id; g; g = guard_get(w->kernel->scalars, g).next) {
        Guard guard = guard_get(w->kernel->scalars, g);
        text_printf(&w->out, "[%u %u", guard.lo, guard.hi);
        write_index(w, guard.index);
    }
}

static void write_scalar(Writer *w, const Scalar *s) {
    uint64_t number;
    memcpy(&number, &s->number, sizeof number);
    text_printf(&w->out, "%d %d %d %u %u %u %llx %lld %u %u", (int)s->kind, (int)s->dtype,
                (int)s->prim, w->numbers[s->args[0]], w->numbers[s->args[1]],
                w->numbers[s->args[2]], (unsigned long long)number, (long long)s->whole,
                s->kind == SCALAR_LOAD ? kernel_find_arg(w->kernel, s->buffer) : 0, s->slot);
    if (s->index) write_index(w, s->index);
    write_guard(w, s->guard);
    text_puts(&w->out, "\n");
}

static void write_stores(Writer *w, const Store *stores, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t arg = kernel_find_arg(w->kernel, stores[i].buffer);
        text_printf(&w->out, "store %u %d %u", arg,
                    (int)w->plan->buffers.data[stores[i].buffer].dtype,
                    w->numbers[stores[i].value]);
        write_index(w, stores[i].address);
        write_guard(w, stores[i].guard);
    }
}

static void write_reduces(Writer *w) {
    for (uint32_t i = 0; i < w->kernel->reduces.n; i++) {
        const Reduce *r = &w->kernel->reduces.data[i];
        text_printf(&w->out, "reduce %d %d %d %a %u %u %u %u %d\n", (int)r->combine, r->is_arg,
                    (int)r->acc, r->identity, w->numbers[r->value], w->numbers[r->rhs],
                    w->numbers[r->arg_index], r->divisor, (int)r->result);
    }
}

static void write_maps(Writer *w, const Variant *v) {
    for (uint32_t i = 0; i < v->n_maps; i++) {
        const TensorMap *map = &v->maps[i];
        text_printf(&w->out, "map %u %u %u", map->arg, map->swizzle_bytes, map->offset);
        for (uint32_t k = 0; k < map->rank; k++)
            text_printf(&w->out, " %u,%u,%u", map->axes[k].axis, map->axes[k].stride,
                        map->axes[k].box);
        if (map->im2col) text_puts(&w->out, " im2col"); /* the image of the operand */
        text_puts(&w->out, "\n");
    }
}

static void write_predicate(Writer *w, const Predicate *predicate) {
    for (uint32_t i = 0; i < predicate->n; i++) {
        const PredicateTerm *term = &predicate->terms[i];
        text_printf(&w->out, "term %d %u", (int)term->kind, term->dim);
        switch (term->kind) {
        case TERM_ALIGNED:
            text_printf(&w->out, " %lld %llx\n", (long long)term->of,
                        (unsigned long long)term->args);
            break;
        case TERM_MULTIPLE:
            text_printf(&w->out, " %lld\n", (long long)term->of);
            break;
        case TERM_RANGE:
            text_printf(&w->out, " %lld %lld\n", (long long)term->least, (long long)term->most);
            break;
        }
    }
}

static void write_variants(Writer *w) {
    for (uint32_t i = 0; i < w->kernel->n_variants; i++) {
        const Variant *v = &w->kernel->variants[i];
        text_puts(&w->out, "variant ");
        sched_print(w->kernel, &v->sched, &w->out);
        text_printf(&w->out, " %u %u %d\n", v->grid, v->shared_bytes, v->is_persistent);
        write_predicate(w, &v->predicate);
        write_maps(w, v);
        for (uint32_t k = 0; k < v->row_cache.n; k++) {
            const CachedValue *keep = &v->row_cache.data[k];
            text_printf(&w->out, "keep %u %u %u\n", w->numbers[keep->value], keep->stage,
                        keep->slot);
        }
    }
}

/* A launch copies whole buffers, even if loads touch only a part. */
static void write_copied(Writer *w, const Launch *launch) {
    for (uint32_t i = 0; i < w->kernel->args.n; i++) {
        const Buffer *buffer = &w->plan->buffers.data[w->kernel->args.data[i]];
        if (launch_copies(launch, w->kernel->args.data[i]))
            text_printf(&w->out, "copied %u %u\n", i, buffer_bytes(w->plan->graph->dims, buffer));
    }
}

static const char *kernel_text(Arena *arena, const Plan *plan, const Launch *launch, uint32_t at) {
    const Kernel *kernel = launch_kernel(plan, launch, at);
    const ScalarTab *scalars = kernel->scalars;
    const IndexTab *tab = scalartab_indices(scalars);
    Writer w = {.plan = plan, .kernel = kernel, .out = {.arena = arena}};
    w.live = kernel_live_scalars(arena, kernel);
    w.numbers = arena_array(arena, uint32_t, scalar_count(scalars) + 1);
    text_printf(&w.out, "%d %u %u %u %u %u %u %llx\n", (int)kernel->form, kernel->n_parallel,
                kernel->first_reduced, kernel->n_reduced, kernel->segment_axis,
                kernel->panel_columns, kernel->args.n, (unsigned long long)kernel->symbols);
    for (uint32_t k = 0; k < index_n_axes(tab); k++)
        text_printf(&w.out, "axis %u\n", index_axis_extent(tab, k));
    for (uint32_t i = 0; i < kernel->args.n; i++)
        if (plan->buffers.data[kernel->args.data[i]].space != BUFFER_GLOBAL)
            text_printf(&w.out, "smem %u from %u\n", i, kernel_arg_begin(kernel, i));
    for (uint32_t i = 0; i < kernel->args.n; i++)
        if (in_place_may_any(arena, plan, kernel, kernel->args.data[i]))
            text_printf(&w.out, "changes %u\n", i);
    write_copied(&w, launch);
    uint32_t n = 0;
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        if (!w.live[id]) continue;
        w.numbers[id] = ++n;
        write_scalar(&w, scalar_get(scalars, id));
    }
    write_reduces(&w);
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const Stage *stage = &kernel->stages.data[i];
        text_puts(&w.out, "stage");
        for (uint32_t r = 0; r < stage->reduces.n; r++)
            text_printf(&w.out, " %u", stage->reduces.data[r]);
        write_stores(&w, stage->stores.data, stage->stores.n);
    }
    text_puts(&w.out, "row");
    write_stores(&w, kernel->row_stores.data, kernel->row_stores.n);
    write_variants(&w);
    return text_str(&w.out);
}

typedef struct Seen {
    const char *text;
    uint64_t hash;
} Seen;
typedef Vec(Seen) VecSeen;

/* The number of the first text that equals this one. */
static uint32_t number_of(Arena *arena, VecSeen *seen, const char *text) {
    Seen own = {.text = text, .hash = hash_bytes(STR_HASH_SEED, text, strlen(text))};
    uint32_t i = 0;
    while (i < seen->n &&
           (seen->data[i].hash != own.hash || strcmp(seen->data[i].text, own.text) != 0))
        i++;
    if (i == seen->n) vec_push(arena, seen, own);
    return i;
}

void dedup_classify(Arena *arena, const Plan *const *plans, uint32_t n_plans) {
    VecSeen seen = {0};
    for (uint32_t p = 0; p < n_plans; p++)
        for (uint32_t i = 0; i < plans[p]->launches.n; i++) {
            const Launch *launch = &plans[p]->launches.data[i];
            for (uint32_t k = 0; k < launch->n; k++)
                plans[p]->kernels.data[launch->first + k].code =
                    number_of(arena, &seen, kernel_text(arena, plans[p], launch, k));
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
    dedup_functions(p->scratch, plans, p->n_units);
    return true;
}
