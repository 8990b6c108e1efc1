/* The memory plan: no two temps that live at the same time share a byte, for any value of the dims.
 */
#include "memory/memplan.h"
#include "memory/place.h"
#include "plan/launch.h"

#include "lib/plans.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct Fixture {
    Arena *arena;
    Graph *graph;
    Plan *plan;
    DimId extents[6];
} Fixture;

static Fixture fixture_new(void) {
    Fixture f = {.arena = arena_new(NULL)};
    DimTab *dims = dimtab_new(f.arena);
    uint32_t n = dim_declare(dims, (DimSymbol){.name = "N", .lo = 0, .hi = 100000, .multiple = 1});
    uint32_t m = dim_declare(dims, (DimSymbol){.name = "M", .lo = 1, .hi = 5000, .multiple = 8});
    f.graph = graph_new(f.arena, dims, NULL, "g");
    f.plan = arena_array(f.arena, Plan, 1);
    f.plan->graph = f.graph;
    f.extents[0] = dim_symbol(dims, n);
    f.extents[1] = dim_mul(dims, f.extents[0], dim_symbol(dims, m));
    f.extents[2] = dim_const(dims, 0);
    f.extents[3] = dim_const(dims, 1);
    f.extents[4] = dim_const(dims, 64);
    f.extents[5] = dim_const(dims, 70001);
    return f;
}

static uint32_t add_buffer(Fixture *f, BufferKind kind, uint32_t extent) {
    Buffer buffer = {.kind = kind,
                     .dtype = DT_F32,
                     .shape = {.rank = 1, .dims = {f->extents[extent]}},
                     .name = str_format(f->arena, "b%u", f->plan->buffers.n)};
    vec_push(f->arena, &f->plan->buffers, buffer);
    return f->plan->buffers.n - 1;
}

static void add_kernel(Fixture *f, const uint32_t *args, uint32_t n_args) {
    Kernel kernel = {.name = "k"};
    for (uint32_t i = 0; i < n_args; i++) vec_push(f->arena, &kernel.args, args[i]);
    vec_push(f->arena, &f->plan->kernels, kernel);
    plan_launch_singly(f->arena, f->plan);
}

/* First and last kernel that touch a buffer; false when none does. */
static bool lifetime(const Plan *plan, uint32_t buffer, uint32_t *first, uint32_t *last) {
    bool is_used = false;
    *first = *last = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        for (uint32_t i = 0; i < plan->kernels.data[k].args.n; i++) {
            if (plan->kernels.data[k].args.data[i] != buffer) continue;
            if (!is_used) *first = k;
            *last = k;
            is_used = true;
        }
    return is_used;
}

static int64_t eval(const Plan *plan, DimId dim, const int64_t *values) {
    int64_t value = -1;
    cr_assert(dim_eval(plan->graph->dims, dim, values, &value));
    return value;
}

static int64_t workspace_at(const Plan *plan, const int64_t *values) {
    int64_t value = -1;
    cr_assert(dim_eval_largest(plan->graph->dims, &plan->workspace, values, &value));
    return value;
}

static void check_pair(const Plan *plan, uint32_t a, uint32_t b, const int64_t *values) {
    const Buffer *x = &plan->buffers.data[a], *y = &plan->buffers.data[b];
    uint32_t first_a, last_a, first_b, last_b;
    if (!lifetime(plan, a, &first_a, &last_a) || !lifetime(plan, b, &first_b, &last_b)) return;
    if (last_a < first_b || last_b < first_a) return;
    int64_t at_a = eval(plan, x->offset_bytes, values), at_b = eval(plan, y->offset_bytes, values);
    int64_t n_a = eval(plan, buffer_bytes(plan->graph->dims, x), values);
    int64_t n_b = eval(plan, buffer_bytes(plan->graph->dims, y), values);
    cr_assert(at_a + n_a <= at_b || at_b + n_b <= at_a,
              "%s at [%ld, %ld) and %s at [%ld, %ld) are alive together", x->name, (long)at_a,
              (long)(at_a + n_a), y->name, (long)at_b, (long)(at_b + n_b));
}

static void check_plan(const Plan *plan, const int64_t *values) {
    int64_t workspace = workspace_at(plan, values);
    cr_assert(workspace <= eval(plan, plan->peak_bytes_unshared, values));
    for (uint32_t a = 0; a < plan->buffers.n; a++) {
        const Buffer *buffer = &plan->buffers.data[a];
        uint32_t first, last;
        if (buffer->kind != BUFFER_TEMP || !lifetime(plan, a, &first, &last)) continue;
        int64_t at = eval(plan, buffer->offset_bytes, values);
        cr_assert(at % WORKSPACE_ALIGN_BYTES == 0);
        cr_assert(at + eval(plan, buffer_bytes(plan->graph->dims, buffer), values) <= workspace);
        for (uint32_t b = a + 1; b < plan->buffers.n; b++)
            if (plan->buffers.data[b].kind == BUFFER_TEMP) check_pair(plan, a, b, values);
    }
}

/* A random program: every kernel makes one or two temps from some that exist. */
static void make_random(Fixture *f, Rng *rng) {
    uint32_t n_kernels = 1 + rng_below(rng, 24);
    add_buffer(f, BUFFER_INPUT, 0);
    for (uint32_t k = 0; k < n_kernels; k++) {
        uint32_t args[6], n = 0, n_old = f->plan->buffers.n;
        for (uint32_t n_read = 1 + rng_below(rng, 3); n < n_read; n++) {
            uint32_t back = rng_below(rng, 3) ? rng_below(rng, 4) : rng_below(rng, n_old);
            args[n] = back < n_old ? n_old - 1 - back : 0;
        }
        uint32_t n_made = 1 + rng_below(rng, 2);
        for (uint32_t i = 0; i < n_made; i++)
            args[n++] =
                add_buffer(f, rng_chance(rng, 10) ? BUFFER_OUTPUT : BUFFER_TEMP, rng_below(rng, 6));
        add_kernel(f, args, n);
    }
}

Test(memplan, temps_alive_together_never_share_bytes) {
    static const int64_t values[][2] = {{0, 8}, {1, 8}, {63, 16}, {64, 8}, {99999, 4096}};
    for (uint64_t seed = 0; seed < 400; seed++) {
        Rng rng = rng_new(seed);
        Fixture f = fixture_new();
        make_random(&f, &rng);
        cr_assert(memplan_place(f.arena, f.plan), "seed %lu", (unsigned long)seed);
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) check_plan(f.plan, values[i]);
        arena_free(f.arena);
    }
}

Test(memplan, a_row_of_temporaries_needs_the_room_of_two) {
    Fixture f = fixture_new();
    uint32_t last = add_buffer(&f, BUFFER_INPUT, 1);
    for (int i = 0; i < 10; i++) {
        uint32_t args[2] = {last, add_buffer(&f, i < 9 ? BUFFER_TEMP : BUFFER_OUTPUT, 1)};
        add_kernel(&f, args, 2);
        last = args[1];
    }
    cr_assert(memplan_place(f.arena, f.plan));
    static const int64_t values[2] = {1000, 16};
    cr_expect(workspace_at(f.plan, values) == 2 * 64000);
    cr_expect(eval(f.plan, f.plan->peak_bytes_unshared, values) == 9 * 64000);
    arena_free(f.arena);
}

Test(memplan, a_small_constant_takes_the_place_of_a_larger_one) {
    Fixture f = fixture_new();
    uint32_t input = add_buffer(&f, BUFFER_INPUT, 4), large = add_buffer(&f, BUFFER_TEMP, 5);
    uint32_t middle = add_buffer(&f, BUFFER_TEMP, 4), small = add_buffer(&f, BUFFER_TEMP, 4);
    add_kernel(&f, (uint32_t[]){input, large}, 2);
    add_kernel(&f, (uint32_t[]){large, middle}, 2);
    add_kernel(&f, (uint32_t[]){middle, small}, 2);
    cr_assert(memplan_place(f.arena, f.plan));
    static const int64_t values[2] = {0, 8};
    cr_expect(f.plan->buffers.data[small].offset_bytes == f.plan->buffers.data[large].offset_bytes);
    cr_expect(workspace_at(f.plan, values) == 280064 + 256);
    arena_free(f.arena);
}

Test(memplan, a_plan_without_temps_needs_no_workspace) {
    Fixture f = fixture_new();
    uint32_t args[2] = {add_buffer(&f, BUFFER_INPUT, 0), add_buffer(&f, BUFFER_OUTPUT, 0)};
    add_kernel(&f, args, 2);
    cr_assert(memplan_place(f.arena, f.plan));
    cr_expect_eq(f.plan->workspace.n, 0);
    arena_free(f.arena);
}

Test(memplan, a_workspace_past_the_limit_is_refused) {
    Fixture f = fixture_new();
    DimTab *dims = f.graph->dims;
    uint32_t huge =
        dim_declare(dims, (DimSymbol){.name = "H", .lo = 1, .hi = (int64_t)1 << 58, .multiple = 1});
    f.extents[0] = dim_symbol(dims, huge);
    f.extents[1] = dim_add(dims, f.extents[0], dim_const(dims, 1));
    uint32_t args[3] = {add_buffer(&f, BUFFER_INPUT, 4), add_buffer(&f, BUFFER_TEMP, 0),
                        add_buffer(&f, BUFFER_TEMP, 1)};
    add_kernel(&f, args, 3);
    cr_expect(memplan_place(f.arena, f.plan));
    uint32_t more[5] = {args[1], args[2]};
    for (int i = 2; i < 5; i++) {
        more[i] = add_buffer(&f, BUFFER_TEMP, 1);
        add_kernel(&f, more + i, 1);
    }
    cr_expect(memplan_place(f.arena, f.plan), "one place serves the three");
    add_kernel(&f, more, 5);
    cr_expect(!memplan_place(f.arena, f.plan));
    arena_free(f.arena);
}

/* Sizes that no range compares: what outgrows the others lies above them, and the rest of the
 * workspace is used again whichever is larger. */
Test(memplan, what_grows_faster_lies_above_what_grows_slower) {
    Fixture f = fixture_new();
    uint32_t input = add_buffer(&f, BUFFER_INPUT, 4), slow = add_buffer(&f, BUFFER_TEMP, 0);
    uint32_t fast = add_buffer(&f, BUFFER_TEMP, 1), end = add_buffer(&f, BUFFER_TEMP, 0);
    uint32_t more = add_buffer(&f, BUFFER_TEMP, 0), last = add_buffer(&f, BUFFER_TEMP, 0);
    add_kernel(&f, (uint32_t[]){input, slow}, 2);
    add_kernel(&f, (uint32_t[]){slow, fast}, 2);
    add_kernel(&f, (uint32_t[]){fast, end}, 2);
    add_kernel(&f, (uint32_t[]){end, more, last}, 3);
    cr_assert(memplan_place(f.arena, f.plan));
    static const int64_t values[][2] = {{64, 8}, {640, 8}, {64000, 4000}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        int64_t n = values[i][0] * 4, most = n * values[i][1] + n;
        check_plan(f.plan, values[i]);
        cr_expect_eq(workspace_at(f.plan, values[i]), most > 3 * n ? most : 3 * n);
    }
    arena_free(f.arena);
}

/* Extents that are differences, of whose products no range tells that they are not negative. */
Test(memplan, products_of_differences_lie_side_by_side) {
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, "dim H in 3..32768\ndim W in 3..32768\n"
                                        "graph g(t: f32[H, W]) -> (y: f32[H - 2, W - 2]) {\n"
                                        "  a = t[:-2, 1:-1] + t[2:, 1:-1]\n"
                                        "  b = t[1:-1, :-2] + t[1:-1, 2:]\n"
                                        "  c = t[1:-1, 1:-1] * 4.0\n  y = (a + b) * (a - c)\n}\n");
    int64_t values[2] = {3, 3};
    for (int i = 0; i < 4; i++) {
        const Card *card = card_of_target(target_get(TARGET_SM_90A));
        Plan *plan = plans_price(arena, module, 0, true, TARGET_SM_90A, card, NULL).plan;
        cr_assert_null(plan_verify_places(plan, arena));
        cr_expect_leq(workspace_at(plan, values), eval(plan, plan->peak_bytes_unshared, values));
        values[i % 2] = 1000 * i + 77;
    }
    arena_free(arena);
}

/* A decoder's block with a dim for the length takes what it takes at that length, on each target
 * (pitches apart: rows are padded to an access, which the lengths here are). */
Test(memplan, a_symbolic_length_costs_no_memory) {
    static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90A, TARGET_CPU};
    static const int64_t values[][2] = {{2, 64}, {16, 1024}, {256, 2048}};
    for (size_t i = 0; i < 3 * sizeof values / sizeof *values; i++) {
        Arena *arena = arena_new(NULL);
        TargetId target = targets[i % 3];
        const int64_t *at = values[i / 3];
        double bytes[2];
        for (int is_static = 0; is_static < 2; is_static++) {
            const char *dims =
                is_static ? str_format(arena, "dim B = %d\ndim T = %d\n", (int)at[0], (int)at[1])
                          : "dim B in 1..256\ndim T in 1..4096\n";
            const char *source =
                str_format(arena,
                           "%sgraph g(q: bf16[B, T, 256], w: bf16[256, 256], u: bf16[256, 768],\n"
                           "        d: bf16[768, 256]) -> (y: bf16[B, T, 256]) {\n"
                           "  k = q @ w\n"
                           "  h = softmax(k @ transpose(q + 1, perm=[0, 2, 1])) @ k @ w\n"
                           "  y = h + gelu(h @ u) @ d\n}\n",
                           dims);
            Module *module = plans_parse(arena, source);
            bytes[is_static] =
                plans_price(arena, module, 0, false, target, card_of_target(target_get(target)),
                            is_static ? NULL : at)
                    .cost->workspace_bytes;
        }
        cr_expect_leq(bytes[0], bytes[1] * 1.001, "target %zu, T = %d: %.0f bytes, not %.0f", i % 3,
                      (int)at[1], bytes[0], bytes[1]);
        arena_free(arena);
    }
}

/* Sizes each of which is proven to be above the next, though the last and the first of such a
 * chain, with roundings of several extents and a copy's width in them, cannot be compared at once.
 */
Test(memplan, sizes_that_only_others_relate_give_an_offset) {
    static const char source[] =
        "dim M in 1..65536\n"
        "graph g(x: f16[M, 100], b: f16[100], w: f16[16, 100], v: f16[100, 16], i: i32[M],\n"
        "        e: f16[50, 100]) -> (a5: f16[M, 100], a9: f16[M, 100], a6: f16[M, 16]) {\n"
        " a2 = where(cast(x, f32) > 0.0, x, x)\n a3 = x @ v\n a4 = rmsnorm(x, b)\n"
        " a5 = a4 + sum(a4)\n a6 = a2 @ v\n a8 = a3 @ w\n a9 = gather(e, i) + a8\n}\n";
    static const int64_t values[] = {1, 63, 1024, 65536};
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        int64_t at[DIM_MAX_SYMBOLS] = {values[i]};
        for (int k = 1; k < DIM_MAX_SYMBOLS; k++) at[k] = -1;
        PricedPlan apart = plans_price(arena, plans_parse(arena, source), 0, true, TARGET_SM_90A,
                                       card_get(CARD_H200), at);
        cr_assert(apart.plan, "no place");
        cr_expect_null(plan_verify_places(apart.plan, arena));
        cr_expect(apart.cost->workspace_bytes <= 1800.0 * (double)values[i] + 8192);
    }
    arena_free(arena);
}

/* What becomes of `b`, which is made of `a` in a kernel of its own. */
typedef struct InPlace {
    const char *what, *params, *body; /* of f32[64, 64] each, result `y` */
    bool is_in_place;
} InPlace;

static const InPlace in_place[] = {
    {"element by element", "x", "fuse never { a = exp(x)\n b = tanh(a)\n y = b + x }", true},
    {"twice at one place", "x", "fuse never { a = exp(x)\n b = a * a\n y = b + x }", true},
    {"of one size in bytes", "x",
     "fuse never { a = exp(x)\n b = cast(a, i32)\n c = cast(b, f32)\n y = c + x }", true},
    {"a matmul's epilogue", "x, w",
     "fuse never { a = exp(x) }\n b = x @ w + a\n"
     " fuse never { y = tanh(b) }",
     true},
    {"shifted", "x",
     "fuse never { a = exp(x) }\n b = a + pad(a[1:, :], low=[0, 0], high=[1, 0])\n"
     " fuse never { y = tanh(b) }",
     false},
    {"transposed", "x",
     "fuse never { a = exp(x) }\n b = tanh(transpose(a, perm=[1, 0]))\n fuse never { y = -b }",
     false},
    {"one row for all", "x",
     "fuse never { a = exp(x) }\n b = tanh(a + a[0:1, :])\n"
     " fuse never { y = -b }",
     false},
    {"a factor that the epilogue reads too", "x",
     "fuse never { a = exp(reshape(x, [4096, 1])) }\n b = (a @ x[0:1, 0:1]) * a\n"
     " fuse never { y = reshape(-b, [64, 64]) }",
     false},
    {"a row that is read again where it is stored", "x",
     "fuse never { a = exp(x) }\n b = a / sum(a, axis=1, keep=true)\n fuse never { y = -b }", true},
    {"rows in several passes", "x",
     "fuse never { a = exp(x) }\n b = softmax(a)\n"
     " fuse never { y = -b }",
     true},
    {"rows of which the same pass makes something else", "x",
     "fuse never { a = exp(x) }\n fuse must { b = softmax(a)\n c = a * 2.0 + b }\n"
     " fuse never { y = b * c }",
     true},
    {"columns", "x",
     "fuse never { a = exp(x) }\n b = a - max(a, axis=0, keep=true)\n"
     " fuse never { y = -b }",
     true},
    {"a row that a later pass reads", "x",
     "fuse never { a = exp(x) }\n fuse must { b = tanh(a)\n m = max(b, axis=1, keep=true)\n"
     " c = x - a * m }\n fuse never { y = b * c }",
     false},
    {"in the last pass, for something else", "x",
     "fuse never { a = exp(x) }\n fuse must { m = max(a, axis=1, keep=true)\n b = x - m\n"
     " c = x * a + m }\n fuse never { y = b * c }",
     false},
    {"a row of another", "x",
     "fuse never { a = exp(x) }\n b = concat([a[32:, :], a[:32, :]], axis=0) - max(a, axis=1, "
     "keep=true)\n"
     " fuse never { y = -b }",
     false},
    {"another row too", "x",
     "fuse never { a = exp(x) }\n b = a + a[0:1, :] - max(a, axis=1, keep=true)\n"
     " fuse never { y = -b }",
     false},
    {"a row and a column", "x",
     "fuse never { a = exp(x) }\n b = transpose(a, perm=[1, 0]) - max(a, axis=1, keep=true)\n"
     " fuse never { y = -b }",
     false},
    {"a matmul's operand", "x, w", "fuse never { a = exp(x)\n b = a @ w\n y = -b }", false},
    {"operand and epilogue", "x, w",
     "fuse never { a = exp(x) }\n b = a @ w + a\n"
     " fuse never { y = -b }",
     false},
    {"of another size", "x",
     "fuse never { a = exp(x)\n b = cast(a, bf16)\n c = cast(b, f32)\n y = c + x }", false},
    {"needed later", "x", "fuse never { a = exp(x)\n b = tanh(a)\n y = b + a }", false},
    {"gathered by itself", "x",
     "fuse never { a = cast(x, i32)\n b = gather(a, a[0, :], axis=0)\n"
     " y = cast(b, f32) }",
     false},
    {"of an input", "x", "fuse never { b = tanh(x)\n y = -b }", false},
};

/* The temp that holds the named value, or NULL. */
static const Buffer *temp_of(const Plan *plan, const char *name) {
    for (uint32_t b = 0; b < plan->buffers.n; b++) {
        const Buffer *buffer = &plan->buffers.data[b];
        const char *own = graph_node(plan->graph, buffer->node)->name;
        if (buffer->kind == BUFFER_TEMP && own && strcmp(own, name) == 0) return buffer;
    }
    return NULL;
}

static PricedPlan placed(Arena *arena, const InPlace *of, TargetId target) {
    bool has_factor = strchr(of->params, 'w') != NULL;
    const char *source =
        str_format(arena, "graph g(x: f32[64, 64]%s) -> (y: f32[64, 64]) {\n %s\n}\n",
                   has_factor ? ", w: f32[64, 64]" : "", of->body);
    Module *module = plans_parse(arena, source);
    PricedPlan priced =
        plans_price(arena, module, 0, false, target, card_of_target(target_get(target)), NULL);
    cr_assert(priced.plan, "%s", source);
    return priced;
}

Test(memplan, a_temp_goes_over_what_it_alone_is_made_of) {
    static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90A, TARGET_CPU};
    for (size_t i = 0; i < 3 * sizeof in_place / sizeof *in_place; i++) {
        Arena *arena = arena_new(NULL);
        const InPlace *of = &in_place[i / 3];
        Plan *plan = placed(arena, of, targets[i % 3]).plan;
        const Buffer *a = temp_of(plan, "a"), *b = temp_of(plan, "b");
        cr_assert_null(plan_verify_places(plan, arena), "%s", of->what);
        if (a && a->space == BUFFER_GLOBAL && b && b->space == BUFFER_GLOBAL) {
            bool is_over = b->in_place_of && &plan->buffers.data[b->in_place_of - 1] == a;
            cr_expect_eq(is_over, of->is_in_place, "%s, target %zu", of->what, i % 3);
            cr_expect_eq(a->offset_bytes == b->offset_bytes, is_over, "%s", of->what);
        } else {
            cr_expect(!of->is_in_place, "%s, target %zu: not stored", of->what, i % 3);
        }
        arena_free(arena);
    }
}

/* Scalars that no store needs stay in a kernel's table, and may load the old value elsewhere. */
Test(memplan, loads_that_no_store_needs_do_not_count) {
    Arena *arena = arena_new(NULL);
    Text text = {.arena = arena};
    text_puts(&text, "graph g(x: f32[64]) -> (y: f32[64]) {\nv0 = x\n");
    for (int i = 1; i <= 24; i++)
        text_printf(&text, "v%d = concat([v%d[32:] + 1, v%d[:32]], axis=0)\n", i, i - 1, i - 1);
    text_puts(&text, "y = v24\n}\n");
    const Card *card = card_of_target(target_get(TARGET_CPU));
    PricedPlan priced =
        plans_price(arena, plans_parse(arena, text_str(&text)), 0, false, TARGET_CPU, card, NULL);
    cr_assert(priced.plan);
    cr_expect_null(plan_verify_places(priced.plan, arena));
    arena_free(arena);
}

/* The proof does not rest on what the placer thought. */
Test(memplan, a_wrong_place_is_found) {
    for (size_t i = 0; i < sizeof in_place / sizeof *in_place; i++) {
        Arena *arena = arena_new(NULL);
        const InPlace *of = &in_place[i];
        Plan *plan = placed(arena, of, TARGET_CPU).plan;
        const Buffer *a = temp_of(plan, "a"), *b = temp_of(plan, "b");
        bool has_both = a && b && !of->is_in_place;
        if (has_both) ((Buffer *)b)->offset_bytes = a->offset_bytes;
        cr_expect_eq(plan_verify_places(plan, arena) != NULL, has_both, "%s", of->what);
        arena_free(arena);
    }
}

/* Three thousand rooms, each needed by a third of the launches: an item has hundreds of places to
 * try, and hundreds of others that it must not meet there. */
Test(memplan, many_long_lives_take_little_time, .timeout = 10) {
    enum { N_ROOMS = 3000 };
    Arena *arena = arena_new(NULL);
    DimTab *dims = dimtab_new(arena);
    VecRoom rooms = {0};
    VecDim ends = {0};
    for (uint32_t i = 0; i < N_ROOMS; i++)
        vec_push(arena, &rooms,
                 (Room){.bytes = dim_const(dims, 256 * (1 + i % 3)),
                        .first = i,
                        .last = i + N_ROOMS / 3});
    cr_assert(place_buffers(arena, dims, &rooms, &ends));
    for (uint32_t i = 0; i < N_ROOMS; i++)
        for (uint32_t k = i + 1; k < N_ROOMS && k <= rooms.data[i].last; k++) {
            const Room *a = &rooms.data[i], *b = &rooms.data[k];
            DimId past_a = dim_add(dims, a->offset, a->bytes);
            DimId past_b = dim_add(dims, b->offset, b->bytes);
            cr_assert(dim_always_le(dims, past_a, b->offset) ||
                          dim_always_le(dims, past_b, a->offset),
                      "rooms %u and %u", i, k);
        }
    arena_free(arena);
}
