/* Slice stores: which slices the kernel of the whole value stores, each under a guard, and how many
 * kernels and temporaries remain. */
#include "lib/compiled.h"
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

typedef struct Case {
    const char *what, *source; /* the graph, after HEAD */
    uint32_t n_kernels, n_temps, n_guarded;
} Case;

#define HEAD "dim B in 1..65536\ndim C in 0..4096\n"
#define QKV "graph g(x: bf16[B, 64], w: bf16[64, 384]) -> "

static const Case cases[] = {
    {"halves of a matmul",
     "graph g(x: bf16[B, 64], w: bf16[64, 256]) -> (q: bf16[B, 128], k: bf16[B, 128]) {\n"
     "  q, k = split(x @ w, 2, axis=1)\n}\n",
     1, 0, 2},
    {"unequal parts, and one of rows",
     "graph g(x: f32[B, 64], w: f32[64, 100]) -> (a: f32[B, 37], b: f32[B, 63], c: f32[1, 100]) {\n"
     "  h = x @ w\n  a, b = split(h, [37, 63], axis=1)\n  c = h[0:1]\n}\n",
     1, 0, 3},
    {"parts of sizes that dims give",
     "graph g(x: f32[B + C, 64]) -> (a: f32[B, 64], b: f32[C, 64]) {\n"
     "  a, b = split(softmax(x), [B, C], axis=0)\n}\n",
     1, 0, 2},
    {"halves of rows",
     "graph g(x: f32[B, 2*C + 2]) -> (a: f32[B, C + 1], b: f32[B, C + 1]) {\n"
     "  a, b = split(softmax(x), 2, axis=1)\n}\n",
     1, 0, 2},
    {"parts of what rows are reduced to",
     "graph g(x: f32[2*B, 64]) -> (a: f32[B], b: f32[B]) {\n"
     "  a, b = split(sum(x, axis=1), 2, axis=0)\n}\n",
     1, 0, 2},
    {"a whole and parts of it that overlap, one with steps",
     "graph g(x: f32[B, 64]) -> (y: f32[B, 64], a: f32[B, 40], b: f32[B, 40], c: f32[B, 32]) {\n"
     "  y = softmax(x)\n  a = y[:, 0:40]\n  b = y[:, 24:64]\n  c = y[:, 1::2]\n}\n",
     1, 0, 3},
    {"a part's own work",
     "graph g(x: f32[B, 64], w: f32[64, 128], c: f32[64]) -> (y: f32[B, 64], b: f32[B, 64]) {\n"
     "  a, b = split(x @ w, 2, axis=1)\n  y = relu(a + c)\n}\n",
     1, 0, 2},
    {"heads of parts",
     QKV "(q: bf16[2, B, 64], k: bf16[2, 64, B], v: bf16[2, B, 64]) {\n"
         "  a, b, c = split(x @ w, 3, axis=1)\n"
         "  q = transpose(reshape(a, [B, 2, 64]), perm=[1, 0, 2]) * 0.125\n"
         "  k = transpose(reshape(b, [B, 2, 64]), perm=[1, 2, 0])\n"
         "  v = transpose(reshape(c, [B, 2, 64]), perm=[1, 0, 2])\n}\n",
     1, 0, 3},
    {"slices of a rearranged matmul",
     QKV "(q: bf16[B, 2, 64], k: bf16[B, 2, 64], v: bf16[B, 2, 64]) {\n"
         "  z = reshape(x @ w, [B, 3, 2, 64])\n  q = reshape(z[:, 0:1], [B, 2, 64])\n"
         "  k = reshape(z[:, 1:2], [B, 2, 64])\n  v = reshape(z[:, 2:3], [B, 2, 64])\n}\n",
     1, 0, 3},
    {"work behind a rearranged matmul",
     "graph g(x: f32[B, 64], w: f32[64, 128]) -> (y: f32[128, B]) {\n"
     "  y = relu(transpose(x @ w))\n}\n",
     1, 0, 0},
    {"a part of a part",
     "graph g(x: f32[B, 64], w: f32[64, 128]) -> (a: f32[B, 64], b: f32[B, 10]) {\n"
     "  h, a = split(x @ w, 2, axis=1)\n  b = relu(h[:, 16:48])[:, 3:13]\n}\n",
     1, 0, 2},
    {"pieces of a concat that are parts",
     "graph g(x: f32[B, 64], w: f32[64, 128]) -> (y: f32[B, 192]) {\n"
     "  a, b = split(x @ w, 2, axis=1)\n  y = concat([b, a, relu(b)], axis=1)\n}\n",
     1, 0, 3},
    {"a part beside an input",
     "graph g(x: f32[B, 64], w: f32[64, 128], z: f32[B, 8]) -> (y: f32[B, 10]) {\n"
     "  y = concat([z, (x @ w)[:, 1:3]], axis=1)\n}\n",
     2, 0, 1},
    {"what rows are reduced from",
     "graph g(x: f32[B, 64], r: f32[B, 64]) -> (a: f32[B, 9], y: f32[B, 64]) {\n"
     "  h = x + r\n  a = relu(h[:, 3:12])\n  y = softmax(h)\n}\n",
     2, 0, 0},
    {"a whole map and a part of it",
     "graph g(x: f32[B, 64]) -> (y: f32[B, 64], a: f32[B, 9]) {\n"
     "  y = x * 2.0\n  a = relu(y[:, 3:12])\n}\n",
     1, 0, 1},
    {"a part of what follows from a whole map",
     "graph g(x: f32[B, 64]) -> (y: f32[B, 64], a: f32[B, 9]) {\n"
     "  y = x * 2.0\n  a = relu(y)[:, 3:12]\n}\n",
     1, 0, 1},
    {"unequal parts of a map",
     "graph g(x: f32[B, 64]) -> (a: f32[B, 9], b: f32[B, 55], c: f32[B, 9]) {\n"
     "  h = x * 2.0\n  a = relu(h[:, 0:9])\n  b = h[:, 9:64]\n  c = -a\n}\n",
     1, 0, 3},
    /* The whole value has more elements than its slices. */
    {"few of the elements of a map",
     "graph g(x: f32[B, 64]) -> (a: f32[B, 9], b: f32[1, 64]) {\n"
     "  h = x * 2.0\n  a = h[:, 0:9]\n  b = h[0:1]\n}\n",
     2, 0, 0},
    {"parts of a map that rows are reduced from",
     "graph g(x: f32[B, 64]) -> (a: f32[B], b: f32[B, 55]) {\n"
     "  h = x * 2.0\n  a = sum(h[:, 0:9], axis=1)\n  b = h[:, 9:64]\n}\n",
     2, 0, 0},
    /* One domain serves both, without a guard. */
    {"halves of a map",
     "graph g(x: f32[B, 64]) -> (a: f32[B, 32], b: f32[B, 32]) {\n"
     "  a, b = split(x * 2.0, 2, axis=1)\n}\n",
     1, 0, 0},
    {"parts of an input",
     "graph g(x: f32[B, 64]) -> (a: f32[B, 9], y: f32[B, 64]) {\n"
     "  a = x[:, 3:12]\n  y = softmax(x)\n}\n",
     2, 0, 0},
    /* Both halves are needed at one place. */
    {"a gate of one matmul",
     "graph g(x: f32[B, 64], w: f32[64, 128]) -> (y: f32[B, 64]) {\n"
     "  a, b = split(x @ w, 2, axis=1)\n  y = silu(a) * b\n}\n",
     2, 1, 0},
    {"a part that the source keeps apart",
     "graph g(x: f32[B, 64], w: f32[64, 128]) -> (a: f32[B, 64], b: f32[B, 64]) {\n"
     "  h = x @ w\n  a = h[:, 0:64]\n  fuse never { b = h[:, 64:128] }\n}\n",
     2, 1, 1},
};

/* Outside the guard an address may be below the begin of the slice. */
static void count_guarded(void *user, const Store *store) {
    *(uint32_t *)user += store->guard != GUARD_NONE;
    cr_expect(!store->guard || store->begin == DIM_NONE);
}

static uint32_t n_guarded(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        kernel_each_store(&plan->kernels.data[k], count_guarded, &n);
    return n;
}

static uint32_t n_temps(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t b = 0; b < plan->buffers.n; b++) n += plan->buffers.data[b].kind == BUFFER_TEMP;
    return n;
}

static void expect(const Case *c, TargetId target) {
    Arena *arena = arena_new(NULL);
    const char *source = str_format(arena, HEAD "%s", c->source);
    Module *module = plans_parse(arena, source);
    const Plan *plan =
        plans_price(arena, module, 0, false, target, card_of_target(target_get(target)), NULL).plan;
    cr_assert(plan, "%s", c->what);
    cr_expect(plan->kernels.n == c->n_kernels && n_temps(plan) == c->n_temps &&
                  n_guarded(plan) == c->n_guarded,
              "%s on %s: %u kernels, %u temps, %u guarded stores", c->what,
              target_get(target)->name, plan->kernels.n, n_temps(plan), n_guarded(plan));
    arena_free(arena);
}

Test(slice_store, slices_are_stored_by_the_kernel_of_the_whole) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect(&cases[i], TARGET_CPU);
        expect(&cases[i], TARGET_SM_90A);
    }
}

Test(slice_store, a_dump_is_the_same_plan) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        const char *source = str_format(arena, HEAD "%s", cases[i].source);
        for (int round = 0; round < 2; round++) {
            Module *module = plans_parse(arena, source);
            Plan *plan = plans_fuse(arena, module, 0, false);
            cr_expect(plan->kernels.n == cases[i].n_kernels &&
                          n_guarded(plan) == cases[i].n_guarded,
                      "%s, round %d: %u kernels, %u guarded stores\n%s", cases[i].what, round,
                      plan->kernels.n, n_guarded(plan), source);
            Text text = {.arena = arena};
            module->graphs.data[0] = explain_fused_graph(arena, strtab_new(arena), plan);
            module_print(module, &text);
            source = text_str(&text);
        }
        arena_free(arena);
    }
}

/* Slices are in the block of their whole value, and stores tell their offsets. */
Test(slice_store, slices_are_printed_with_their_whole) {
    static const char source[] =
        "graph g(x: f32[8, 4], w: f32[4, 6]) -> (a: f32[4, 8], b: f32[8, 2]) {\n"
        "  p, b = split(x @ w, [4, 2], axis=1)\n  a = transpose(-p)\n}\n";
    static const char fused[] =
        "graph g(x: f32[8, 4], w: f32[4, 6]) -> (a: f32[4, 8], b: f32[8, 2]) {\n"
        "  kernel g_0_a_l3 {\n"
        "    v2 = matmul(x, w)\n"
        "    p = slice(v2, begin=[0, 0], shape=[8, 4])\n"
        "    b = slice(v2, begin=[0, 4], shape=[8, 2])\n"
        "    v5 = neg(p)\n"
        "    a = transpose(v5, perm=[1, 0])\n"
        "  }\n"
        "}\n";
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, source);
    Plan *plan = plans_fuse(arena, module, 0, false);
    Text stores = {.arena = arena}, blocks = {.arena = arena};
    plan_print(plan, &stores);
    cr_expect(strstr(text_str(&stores), "    b[-4 + (2)*i0 + i1] = s3 where 4 <= i1 < 6\n"
                                        "    a[i0 + (8)*i1] = s5 where 0 <= i1 < 4\n"),
              "%s", text_str(&stores));
    module->graphs.data[0] = explain_fused_graph(arena, strtab_new(arena), plan);
    module_print(module, &blocks);
    cr_expect_str_eq(text_str(&blocks), fused);
    arena_free(arena);
}

/* A guard that leaves out too much, or too little, is seen. */
Test(slice_store, a_plan_with_a_wrong_guard_is_refused) {
    Arena *arena = arena_new(NULL);
    const char *source = str_format(arena, HEAD "%s", cases[1].source);
    Module *module = plans_parse(arena, source);
    Plan *plan = plans_fuse(arena, module, 0, false);
    cr_expect_null(plan_verify(plan, arena));
    Kernel *kernel = &plan->kernels.data[0];
    Store *store = &kernel->row_stores.data[0];
    DimTab *dims = plan->graph->dims;
    GuardId right = store->guard;
    Guard guard = guard_get(kernel->scalars, right);
    for (int64_t more = -1; more <= 1; more += 2) {
        DimId hi = dim_add(dims, guard.hi, dim_const(dims, more));
        store->guard = guard_and(kernel->scalars, GUARD_NONE, guard.index, guard.lo, hi);
        const char *fault = plan_verify(plan, arena);
        cr_expect(fault && strstr(fault, "leaves out the wrong places"), "%s",
                  fault ? fault : "nothing");
    }
    arena_free(arena);
}

/* Kernels that differ in a guard alone are not the same code. */
Test(slice_store, kernels_with_different_guards_share_no_function) {
    static const char source[] =
        "graph g(x: f32[64, 64], z: f32[64, 64]) -> (a: f32[64], b: f32[64], p: f32[64, 16],"
        " q: f32[64, 16]) {\n"
        "  s = softmax(x)\n  t = softmax(z)\n  p = s[:, 0:16]\n  q = t[:, 16:32]\n"
        "  a = sum(s * 2.0, axis=1)\n  b = sum(t * 2.0, axis=1)\n}\n";
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, source);
    const Plan *plan =
        plans_price(arena, module, 0, false, TARGET_SM_90A, card_get(CARD_H200), NULL).plan;
    cr_expect_eq(n_guarded(plan), 2u);
    for (uint32_t k = 1; k < plan->kernels.n; k++)
        cr_expect(!plan->kernels.data[k].variants[0].is_shared, "%s", plan->kernels.data[k].name);
    arena_free(arena);
}

/* Vector stores are as wide as the alignment of the slice's rows allows. */
Test(slice_store, borders_do_not_make_stores_narrow) {
    static const struct {
        int first;
        const char *wide, *wider;
    } splits[] = {{64, "st.global.v4.b32", NULL},
                  {60, "st.global.v4.b32", NULL},
                  {62, "st.global.v2.b32", "st.global.v4.b32"},
                  {61, "st.global.b32", "st.global.v2.b32"}};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        Arena *arena = arena_new(NULL);
        const char *source = str_format(
            arena,
            "graph g(x: f32[1024, 64], w: f32[64, 128]) -> (a: f32[1024, %d], b: f32[1024, %d]) {\n"
            "  a, b = split(x @ w, [%d, %d], axis=1)\n}\n",
            splits[i].first, 128 - splits[i].first, splits[i].first, 128 - splits[i].first);
        Compiled compiled = compiled_new(source, TARGET_SM_90A);
        const char *code = (const char *)compiled.bytes;
        cr_expect(strstr(code, splits[i].wide), "%d: no %s", splits[i].first, splits[i].wide);
        cr_expect(!splits[i].wider || !strstr(code, splits[i].wider), "%d: %s", splits[i].first,
                  splits[i].wider);
        compile_free(&compiled);
        arena_free(arena);
    }
}
