/* Spellings of attention: a run of every one is one launch, on every kind of target, except where
 * two kernels have a better price. */
#include "lib/plans.h"
#include "plan/launch.h"
#include "template/mask.h"

#include <criterion/criterion.h>
#include <string.h>

/* The body of an online block. `q`, `k`, `v` are 16-bit [2, 8, 1024, 64]; `t` is k transposed,
 * `few` and `fewv` have 2 heads, `one` and `onev` one; `b`, `c` are biases [1024, 1024], `len` has
 * a length for each batch, `key` is a key of random numbers, `f` a factor [8, 1024, 1024]; `i` and
 * `j` number rows and keys. */
typedef struct Form {
    const char *name, *body;
} Form;

#define SCORES "s = matmul(q, t, out=f32) * 0.125; "
#define POWERS SCORES "e = exp(s - max(s, axis=3, keep=true)); "
#define TOTAL "sum(e, axis=3, keep=true)"

static const Form forms[] = {
    {"scaled by a product", SCORES "y = cast(softmax(s), bf16) @ v"},
    {"scaled by a quotient", "y = cast(softmax(matmul(q, t, out=f32) / 8), bf16) @ v"},
    {"queries scaled", "y = cast(softmax(matmul(q * 0.125, t, out=f32)), bf16) @ v"},
    {"queries scaled by no power of two",
     "y = cast(softmax(matmul(q * 0.3, t, out=f32)), bf16) @ v"},
    {"queries scaled in f32",
     "y = cast(softmax(matmul(cast(cast(q, f32) * 0.3, bf16), t, out=f32)), bf16) @ v"},
    {"keys scaled", "y = cast(softmax(matmul(q, t / 8, out=f32)), bf16) @ v"},
    {"keys scaled before they are transposed",
     "y = cast(softmax(matmul(q, transpose(k * 0.125, perm=[0, 1, 3, 2]), out=f32)), bf16) @ v"},
    {"keys stored transposed", "y = cast(softmax(matmul(q, stored, out=f32) / 8), bf16) @ v"},
    {"masked by where", SCORES "y = cast(softmax(where(j <= i, s, -inf)), bf16) @ v"},
    {"masked by adding -inf", SCORES "y = cast(softmax(s + where(j <= i, 0.0, -inf)), bf16) @ v"},
    {"masked by adding -inf in bf16",
     SCORES "y = cast(softmax(cast(where(j <= i, c, const(-inf, bf16)), f32) + s), bf16) @ v"},
    {"masked by a factor of the powers",
     POWERS "w = e * cast(j <= i, f32); y = cast(w / sum(w, axis=3, keep=true), bf16) @ v"},
    {"masked by a select of the powers",
     POWERS "w = where(j <= i, e, 0.0); y = cast(w / sum(w, axis=3, keep=true), bf16) @ v"},
    {"biased in f32", SCORES "y = cast(softmax(s + b), bf16) @ v"},
    {"biased in bf16", SCORES "y = cast(softmax(s + cast(c, f32)), bf16) @ v"},
    {"biased by distance", SCORES "y = cast(softmax(s - 0.1 * cast(i - j, f32)), bf16) @ v"},
    {"capped", SCORES "y = cast(softmax(30 * tanh(s / 30)), bf16) @ v"},
    {"chunks", SCORES "y = cast(softmax(where(i / 64 == j / 64, s, -inf)), bf16) @ v"},
    {"lengths",
     SCORES "y = cast(softmax(where(j < reshape(len, [2, 1, 1, 1]), s, -inf)), bf16) @ v"},
    {"spelled out", POWERS "y = cast(e / " TOTAL ", bf16) @ v"},
    {"divided after the product",
     POWERS "y = cast(cast(cast(e, bf16) @ v, f32) / " TOTAL ", bf16)"},
    {"multiplied by a reciprocal", POWERS "y = cast(e * (1 / " TOTAL "), bf16) @ v"},
    {"in base 2", "x = matmul(q, t, out=f32) * 0.18; e = exp2(x - max(x, axis=3, keep=true)); "
                  "y = cast(e / " TOTAL ", bf16) @ v"},
    {"a logarithm taken back", SCORES "y = cast(exp(log_softmax(s)), bf16) @ v"},
    {"without a maximum", SCORES "e = exp(s); y = cast(e / " TOTAL ", bf16) @ v"},
    {"bf16 throughout", "y = softmax(q @ t * 0.125) @ v"},
    {"einsum", "s = einsum(\"bhid,bhjd->bhij\", q, k, out=f32) * 0.125; "
               "y = einsum(\"bhij,bhjc->bhic\", cast(softmax(s), bf16), v)"},
    {"one batch axis",
     "s = matmul(reshape(q, [16, 1024, 64]), reshape(t, [16, 64, 1024]), out=f32); "
     "y = reshape(cast(softmax(s / 8), bf16) @ reshape(v, [16, 1024, 64]), "
     "[2, 8, 1024, 64])"},
    {"a batch of matrices before the softmax", SCORES
     "y = cast(reshape(softmax(reshape(s, [16, 1024, 1024])), [2, 8, 1024, 1024]), bf16) @ v"},
    {"grouped queries by a reshape",
     "s = matmul(reshape(q, [2, 2, 4, 1024, 64]), reshape(transpose(few, perm=[0, 1, 3, 2]), "
     "[2, 2, 1, 64, 1024]), out=f32) / 8; y = reshape(cast(softmax(s), bf16) @ reshape(fewv, "
     "[2, 2, 1, 1024, 64]), [2, 8, 1024, 64])"},
    {"grouped queries by an expand",
     "kk = reshape(expand(unsqueeze(few, 2), [2, 2, 4, 1024, 64]), [2, 8, 1024, 64]); "
     "vv = reshape(expand(unsqueeze(fewv, 2), [2, 2, 4, 1024, 64]), [2, 8, 1024, 64]); "
     "y = attention(q, kk, vv, is_causal=true)"},
    {"grouped queries by repeat_interleave",
     "y = attention(q, repeat_interleave(few, 4, axis=1), repeat_interleave(fewv, 4, axis=1))"},
    {"grouped queries over batch and heads",
     "kk = reshape(repeat_interleave(few, 4, axis=1), [16, 1024, 64]); "
     "vv = reshape(repeat_interleave(fewv, 4, axis=1), [16, 1024, 64]); "
     "y = reshape(attention(reshape(q, [16, 1024, 64]), kk, vv), [2, 8, 1024, 64])"},
    {"grouped queries by name", "y = attention(q, few, fewv, enable_gqa=true)"},
    {"one head of keys by name", "y = attention(q, one, onev, enable_gqa=true)"},
    {"one head of keys by an expand",
     "y = attention(q, expand(one, [2, 8, 1024, 64]), expand(onev, [2, 8, 1024, 64]))"},
    {"one head of keys by broadcasting", "y = attention(q, one, onev)"},
    {"scaled after the softmax", SCORES "y = cast(softmax(s) * 2, bf16) @ v"},
    {"a factor of each head", SCORES "y = cast(softmax(s) * f[:, :1, :1], bf16) @ v"},
    {"a factor of each key", SCORES "y = cast(softmax(s) * f, bf16) @ v"},
    {"a select of weights", SCORES "y = cast(where(f > 0.1, softmax(s) / 0.9, 0.0), bf16) @ v"},
    {"dropout", SCORES "y = cast(dropout(softmax(where(j <= i, s, -inf)), 0.1, key), bf16) @ v"},
    {"one block in another", "online { y = attention(q, k, v) }"},
    {"by name", "y = attention(q, k, v, b, is_causal=true)"},
    {"the logarithm too", SCORES "y = cast(softmax(s), bf16) @ v; l = logsumexp(s)"},
    {"the logarithm first", SCORES "x = where(j <= i, s, -inf); l = logsumexp(x) * 2; "
                                   "y = cast(softmax(x), bf16) @ v"},
    {"the logarithm spelled out",
     SCORES "m = max(s, axis=3, keep=true); e = exp(s - m); "
            "u = sum(e, axis=3, keep=true); y = cast(e / u, bf16) @ v; "
            "l = reshape(m + log(u), [2, 8, 1024])"},
    {"the logarithm by name", "y, l = attention_lse(q, few, fewv, b, is_causal=true, "
                              "enable_gqa=true)"},
};

/* On sm_80 the price of two kernels is better. */
static const char *const two_by_mma[] = {"capped", "bf16 throughout"};

static uint32_t n_wanted(const Form *form, TargetId target) {
    bool is_two = false;
    for (size_t i = 0; i < sizeof two_by_mma / sizeof *two_by_mma; i++)
        is_two = is_two || (target == TARGET_SM_80 && strcmp(form->name, two_by_mma[i]) == 0);
    return is_two ? 2 : 1;
}

static const char *source_of(Arena *arena, const Form *form) {
    return str_format(
        arena,
        "graph g(q: bf16[2, 8, 1024, 64], k: bf16[2, 8, 1024, 64], v: bf16[2, 8, 1024, 64], "
        "few: bf16[2, 2, 1024, 64], fewv: bf16[2, 2, 1024, 64], one: bf16[2, 1, 1024, 64], "
        "onev: bf16[2, 1, 1024, 64], stored: bf16[2, 8, 64, 1024], b: f32[1024, 1024], "
        "c: bf16[1024, 1024], f: f32[8, 1024, 1024], len: i32[2], key: u32[2]) -> "
        "(y: bf16[2, 8, 1024, 64]%s) {\n"
        "  t = transpose(k, perm=[0, 1, 3, 2])\n  i = iota([1024, 1024], axis=0)\n"
        "  j = iota([1024, 1024], axis=1)\n  online {\n  %s\n  }\n}\n",
        strstr(form->name, "the logarithm") ? ", l: f32[2, 8, 1024]" : "", form->body);
}

/* All that a score goes through is in the program of the matmul, where masks are looked for. */
static void check_scores(const Plan *plan, const Form *form) {
    for (uint32_t l = 0; l < plan->launches.n; l++) {
        const Launch *launch = &plan->launches.data[l];
        if (!launch_is_tiled(launch)) continue;
        const Kernel *kernels = &plan->kernels.data[launch->first];
        for (uint32_t k = 1; k < launch->n; k++)
            if (form_info(kernels[k].form)->weighs)
                cr_expect(score_program(&kernels[k - 1], &kernels[k]).root != SCALAR_NONE, "%s",
                          form->name);
    }
}

static void check(TargetId target) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        Arena *arena = arena_new(NULL);
        const Plan *plan = plans_price(arena, plans_parse(arena, source_of(arena, &forms[i])), 0,
                                       false, target, card_of_target(target_get(target)), NULL)
                               .plan;
        uint32_t n = plan->launches.n - plan_n_init(plan), want = n_wanted(&forms[i], target);
        cr_expect_eq(n, want, "%s, %s: %u launches, not %u", target_get(target)->name,
                     forms[i].name, n, want);
        check_scores(plan, &forms[i]);
        arena_free(arena);
    }
}

Test(online_forms, are_one_launch_by_wgmma, .timeout = 120) {
    check(TARGET_SM_90A);
}

Test(online_forms, are_one_launch_by_mma, .timeout = 120) {
    check(TARGET_SM_80);
}

Test(online_forms, are_one_launch_on_a_cpu, .timeout = 120) {
    check(TARGET_CPU);
}

/* Of `m` rows of 8 heads, for 2 heads of keys or one. All single rows have the program of the first
 * form above them without a name. */
static const Form row_forms[] = {
    {"", "y = attention(q, one, onev, enable_gqa=true)"},
    {"broadcasting", "y = attention(q, one, onev)"},
    {"an expand",
     "y = attention(q, expand(one, [2, 8, 4096, 64]), expand(onev, [2, 8, 4096, 64]))"},
    {"rows", "y = reshape(attention(reshape(q, [2, 1, 8, 64]), one, onev), [2, 8, 1, 64])"},
    {"", "y = attention(q, few, fewv, enable_gqa=true)"},
    {"groups on an axis of their own",
     "y = reshape(attention(reshape(q, [2, 2, 4, 1, 64]), unsqueeze(few, 2), unsqueeze(fewv, 2)), "
     "[2, 8, 1, 64])"},
    {"repeats", "y = attention(q, repeat_interleave(few, 4, axis=1), "
                "repeat_interleave(fewv, 4, axis=1))"},
};

static PricedPlan price_row_form(Arena *arena, int m, const char *body) {
    const char *source = str_format(
        arena,
        "graph g(q: bf16[2, 8, %d, 64], few: bf16[2, 2, 4096, 64], fewv: bf16[2, 2, 4096, 64], "
        "one: bf16[2, 1, 4096, 64], onev: bf16[2, 1, 4096, 64], b: bool[%d, 4096]) -> "
        "(y: bf16[2, 8, %d, 64]) {\n  %s\n}\n",
        m, m, m, body);
    const Target *target = target_get(TARGET_SM_90A);
    return plans_price(arena, plans_parse(arena, source), 0, false, TARGET_SM_90A,
                       card_of_target(target), NULL);
}

Test(online_forms, single_rows_that_share_keys_are_rows_of_one_matrix) {
    Arena *arena = arena_new(NULL);
    const PlanCost *named = NULL;
    for (size_t i = 0; i < sizeof row_forms / sizeof *row_forms; i++) {
        PricedPlan own = price_row_form(arena, 1, row_forms[i].body);
        if (!*row_forms[i].name) {
            cr_assert_eq(own.plan->launches.n - plan_n_init(own.plan), 2);
            named = own.cost;
        }
        cr_expect(own.cost->us == named->us, "%s: %g us, not %g", row_forms[i].name, own.cost->us,
                  named->us);
    }
    arena_free(arena);
}

/* Up to 32 rows together. More have matrices of their own, or none of them would have parts of the
 * keys. */
Test(online_forms, few_rows_that_share_keys_are_rows_of_one_matrix) {
    static const struct {
        const char *body;
        int m, n_rows;
    } cases[] = {
        {"y = attention(q, one, onev, enable_gqa=true)", 4, 32},
        {"y = attention(q, one, onev)", 3, 24},
        {"y = attention(q, few, fewv, mask=b, enable_gqa=true)", 8, 32},
        {"y = attention(q, repeat_interleave(few, 4, axis=1), repeat_interleave(fewv, 4, axis=1))",
         2, 8},
        {"y = attention(q, one, onev, enable_gqa=true)", 5, 5},
        {"y = attention(q, few, fewv, enable_gqa=true)", 9, 9},
    };
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PricedPlan own = price_row_form(arena, cases[i].m, cases[i].body);
        const Kernel *scores = &own.plan->kernels.data[0];
        DimId rows = kernel_axis_extent(scores, gemm_axis_m(scores));
        cr_expect_eq(own.plan->launches.n - plan_n_init(own.plan), 2);
        cr_expect(dim_equals_const(own.plan->graph->dims, rows, cases[i].n_rows), "%s, %d rows",
                  cases[i].body, cases[i].m);
    }
    arena_free(arena);
}
