/* The memory plan: no two temps that live at the same time share a byte, for any value of the dims.
 */
#include "pass/memplan.h"

#include "lib/rng.h"

#include <criterion/criterion.h>

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
    int64_t workspace = eval(plan, plan->workspace_bytes, values);
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

Test(memplan, a_chain_needs_the_room_of_two) {
    Fixture f = fixture_new();
    uint32_t last = add_buffer(&f, BUFFER_INPUT, 1);
    for (int i = 0; i < 10; i++) {
        uint32_t args[2] = {last, add_buffer(&f, i < 9 ? BUFFER_TEMP : BUFFER_OUTPUT, 1)};
        add_kernel(&f, args, 2);
        last = args[1];
    }
    cr_assert(memplan_place(f.arena, f.plan));
    static const int64_t values[2] = {1000, 16};
    cr_expect(eval(f.plan, f.plan->workspace_bytes, values) == 2 * 64000);
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
    cr_expect(eval(f.plan, f.plan->workspace_bytes, values) == 280064 + 256);
    arena_free(f.arena);
}

Test(memplan, a_plan_without_temps_needs_no_workspace) {
    Fixture f = fixture_new();
    uint32_t args[2] = {add_buffer(&f, BUFFER_INPUT, 0), add_buffer(&f, BUFFER_OUTPUT, 0)};
    add_kernel(&f, args, 2);
    cr_assert(memplan_place(f.arena, f.plan));
    cr_expect(dim_equals_const(f.graph->dims, f.plan->workspace_bytes, 0));
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
    uint32_t more[3] = {args[1], args[2], 0};
    for (int i = 0; i < 3; i++) {
        more[2] = add_buffer(&f, BUFFER_TEMP, 1);
        add_kernel(&f, more, 3);
    }
    cr_expect(!memplan_place(f.arena, f.plan));
    arena_free(f.arena);
}
