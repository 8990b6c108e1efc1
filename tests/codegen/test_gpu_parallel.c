/* Parts of other codes in one launch, as schedules, manifest and code: which start together, under
 * what conditions, in what grid, and that the assembler takes them as it takes them apart. Results
 * are checked where there is a GPU, by soak. */
#include "lib/compiled.h"
#include "plan/launch.h"

#include <criterion/criterion.h>
#include <fusert.h>
#include <stdio.h>
#include <string.h>

typedef struct Program {
    Compiled compiled;
    Launch launch; /* the first */
} Program;

static Program compile(const char *source, TargetId target) {
    Program p = {.compiled = compiled_new(source, target)};
    p.launch = *plan_launch_of(p.compiled.plan, 0);
    return p;
}

/* No spill, and nothing that the assembler moved or serialised; true where there is none to ask. */
static bool assembles_well(const Program *p, PtxReport *report) {
    *report = (PtxReport){.n_remarks = 0};
    if (!compiled_assemble(&p->compiled, (PtxOptions){0}, report)) return true;
    return ptx_is_in_registers(report) && report->n_remarks == 0;
}

static bool loads(const Program *p) {
    frt_module *module = NULL;
    frt_error error = FRT_ERROR_INIT;
    frt_module_load_memory(p->compiled.bytes, p->compiled.n_bytes, &module, &error);
    bool is_good = module != NULL;
    cr_expect(is_good, "%s", error.message);
    frt_module_free(module);
    return is_good;
}

/* What parts of a launch must have in common, variant by variant. */
static void expect_agreement(const Program *p, const char *source) {
    const Kernel *first = launch_kernel(p->compiled.plan, &p->launch, 0);
    for (uint32_t k = 1; k < p->launch.n; k++) {
        const Kernel *part = launch_kernel(p->compiled.plan, &p->launch, k);
        cr_assert(p->launch.mode == LAUNCH_PARALLEL && part->form == first->form &&
                      part->n_variants == first->n_variants,
                  "%s", source);
        for (uint32_t v = 0; v < first->n_variants; v++) {
            const Sched *a = &first->variants[v].sched, *b = &part->variants[v].sched;
            cr_expect(a->threads == b->threads && a->cluster == b->cluster, "%u of %s", v, source);
            if (first->form != FORM_GEMM) continue;
            cr_expect(sched_engine(a) == sched_engine(b), "%u of %s", v, source);
            bool has_same_tiles = a->gemm.tile_m == b->gemm.tile_m &&
                                  a->gemm.tile_n == b->gemm.tile_n &&
                                  a->gemm.stages == b->gemm.stages && a->is_wide == b->is_wide;
            cr_expect(sched_engine(a) != GEMM_WGMMA || has_same_tiles, "%u of %s", v, source);
        }
        const Variant *last = &part->variants[part->n_variants - 1];
        cr_expect(!variant_has_conditions(p->compiled.plan, part, last), "%s", source);
    }
}

typedef struct Case {
    const char *source;
    uint32_t n_parts, n_launches;
} Case;

/* Each in one grid, for both kinds of tensor cores, for ordinary units, rows and maps. */
static const Case cases[] = {
    {"dim B in 1..4096\n"
     "graph gqa(x: bf16[B, 1024], a: bf16[1024, 1024], b: bf16[1024, 256], c: bf16[1024, 256])"
     " -> (q: bf16[B, 1024], k: bf16[B, 256], v: bf16[B, 256]) {\n"
     "  q = x @ a\n  k = x @ b\n  v = x @ c\n}\n",
     3, 1},
    {"dim B in 1..4096\ngraph own(x: bf16[B, 512], a: bf16[512, 512], b: bf16[512, 512], c: "
     "bf16[512, 512], d: bf16[512]) -> (q: bf16[B, 512], k: bf16[B, 512], v: bf16[B, 512]) {\n"
     "  q = x @ a + d\n  k = gelu(x @ b)\n  v = x @ c\n}\n",
     3, 1},
    /* Other depths and batches. */
    {"graph deep(x: f16[1024, 512], a: f16[512, 512], z: f16[4, 256, 1024], c: f16[4, 1024, 256])"
     " -> (q: f16[1024, 512], k: f16[4, 256, 256]) {\n  q = x @ a\n  k = tanh(z @ c)\n}\n",
     2, 1},
    {"dim B in 1..256\ngraph plain(x: f32[B, 512], a: f32[512, 512], b: f32[512, 128])"
     " -> (q: f32[B, 512], k: f32[B, 128]) {\n  q = x @ a\n  k = relu(x @ b)\n}\n",
     2, 1},
    {"graph row(x: f32[4096], a: f32[4096, 4096], b: f32[4096, 2048])"
     " -> (q: f32[4096], k: f32[2048]) {\n  q = x @ a\n  k = x @ b\n}\n",
     2, 1},
    {"dim B in 1..65536\ngraph rows(x: f32[B, 4096], z: f32[B, 4096])"
     " -> (p: f32[B, 4096], q: f32[B]) {\n  p = softmax(x)\n  q = max(z, axis=1)\n}\n",
     2, 1},
    {"dim B in 1..1024\ngraph maps(x: f32[B], y: f32[B], z: f32[B])"
     " -> (p: f32[B], q: f32[B], r: f32[B]) {\n  p = exp(x)\n  q = tanh(y)\n  r = sqrt(z)\n}\n",
     3, 1},
    /* One block would run them one after the other, which takes longer. */
    {"graph known(x: f32[4096], y: f32[4096], z: f32[4096])"
     " -> (p: f32[4096], q: f32[4096], r: f32[4096]) {\n"
     "  p = exp(x)\n  q = tanh(y)\n  r = sqrt(z)\n}\n",
     3, 1},
    {"dim B in 1..65536\ngraph columns(x: f32[B, 512], z: f32[B, 200])"
     " -> (p: f32[512], q: f32[200]) {\n  p = sum(x, axis=0)\n  q = max(z * 2.0, axis=0)\n}\n",
     2, 2},
};

Test(gpu_parallel, kernels_of_other_code_start_together, .timeout = 300) {
    static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90A};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i / 2];
        TargetId target = targets[i % 2];
        Program p = compile(c->source, target);
        PtxReport report;
        uint32_t n_launches = p.compiled.plan->launches.n;
        cr_expect(p.launch.n == c->n_parts && n_launches == c->n_launches,
                  "%u parts, %u launches for %s of\n%s", p.launch.n, n_launches,
                  target_get(target)->name, c->source);
        expect_agreement(&p, c->source);
        cr_expect(assembles_well(&p, &report), "%s", c->source);
        cr_expect(loads(&p));
        compile_free(&p.compiled);
    }
}

/* Of parts with conditions of their own, all must hold; the grid is all of theirs. */
Test(gpu_parallel, conditions_and_blocks_add_up) {
    Program p = compile("dim B in 1..1024\ndim T in 1..1024\n"
                        "graph g(x: f32[8, B], b: f32[B], y: f32[8, T], t: f32[T])"
                        " -> (p: f32[8, B], q: f32[8, T]) {\n"
                        "  p = exp(x) + b\n  q = tanh(y) + t\n}\n",
                        TARGET_SM_80);
    static const char *const lines[] = {
        " 8,B,*,1016,+,1024,/,8,T,*,1016,+,1024,/,+ 256 0 "
        "a0:16&a1:16&a2:16&a3:16&a4:16&a5:16&m:B:4&m:T:4\n",
        " 8,B,*,1016,+,1024,/,8,T,*,1016,+,1024,/,+ 256 0 a0:16&a2:16&a3:16&a5:16\n",
        " 8,B,*,248,+,256,/,8,T,*,248,+,256,/,+ 256 0 -\n"};
    cr_assert_eq(p.launch.n, 2);
    cr_expect_eq(launch_kernel(p.compiled.plan, &p.launch, 0)->n_variants, 3);
    for (int i = 0; i < 3; i++)
        cr_expect(strstr(p.compiled.bytes, lines[i]), "no `%s` in\n%.2000s", lines[i],
                  p.compiled.bytes);
    compile_free(&p.compiled);
}

/* A block runs one body: the bodies' arrays lie in one place. */
Test(gpu_parallel, bodies_share_their_arrays) {
    static const char *const sources[] = {
        "graph g(x: f32[8192, 8192]) -> (p: f32[8192]) {\n  p = max(x, axis=1)\n}\n",
        "graph g(x: f32[8192, 8192], z: f32[8192, 8192]) -> (p: f32[8192], q: f32[8192]) {\n"
        "  p = max(x, axis=1)\n  q = sum(z, axis=1)\n}\n"};
    uint32_t bytes[2] = {0};
    for (int i = 0; i < 2; i++) {
        Program p = compile(sources[i], TARGET_SM_80);
        PtxReport report;
        cr_assert_eq(p.launch.n, i + 1);
        cr_expect(assembles_well(&p, &report));
        for (uint32_t f = 0; f < report.functions.n; f++)
            if (report.functions.data[f].shared_bytes > bytes[i])
                bytes[i] = report.functions.data[f].shared_bytes;
        compile_free(&p.compiled);
    }
    cr_expect_eq(bytes[0], bytes[1], "%u and %u", bytes[0], bytes[1]);
}

/* Their grids, by which blocks find their part, hang on whether they start. */
Test(gpu_parallel, kernels_may_start_at_some_extents_only) {
    const char *source =
        "dim R in 1..64\ndim C in 1..1048576\n"
        "graph g(x: i32[R, C], a: i32[1, C], b: i32[R, 1], z: i32[R, C], w: i32[R, C])"
        " -> (y: bool[R, C], i: i32[R], m: i32[R], u: i32[R, C]) {\n"
        "  v = where(x > a, x, b); y = v < z; i = argmax(v, axis=1); m = min(v, axis=1)\n"
        "  u = v * max(abs(w), axis=1, keep=true)\n}";
    static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90A};
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        Program p = compile(source, targets[t]);
        const Plan *plan = p.compiled.plan;
        bool has_parts = false;
        for (uint32_t k = 0; k < plan->kernels.n; k++)
            has_parts = has_parts || (plan_launch_of(plan, k)->mode == LAUNCH_PARALLEL &&
                                      plan->kernels.data[k].choice);
        cr_expect(has_parts && loads(&p), "%s", target_get(targets[t])->name);
        compile_free(&p.compiled);
    }
}
