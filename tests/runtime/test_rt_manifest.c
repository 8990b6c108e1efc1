/* The manifest reader: what a good manifest says, how expressions print and evaluate, and one
 * damaged manifest for each kind of damage. Damaged text carries a right checksum, so that the
 * reader itself has to refuse it. */
#include "../fake/fake_mem.h"
#include "../fake/rt_artifact.h"

#include <criterion/criterion.h>
#include <frt_manifest.h>
#include <fusert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char good[] = "//@ fusec-artifact 1\n"
                           "//@ checksum 00000000\n"
                           "//@ compiler 0.1.0\n"
                           "//@ target cuda sm_90a\n"
                           "//@ numerics strict\n"
                           "//@ source my%20model.g\n"
                           "//@ dim B 1 65536 1\n"
                           "//@ dim %6Dax 4 4096 4\n"
                           "//@ weights digits%2D1.safetensors\n"
                           "//@ x-note anything at all\n"
                           "//@ graph digits\n"
                           "//@ input x 0 f32 B %6Dax\n"
                           "//@ param w1 0 bf16 64 128 = fc1.weight\n"
                           "//@ param b1 0 f16\n"
                           "//@ output p 0 f64 B 10 2,B,*,1,+,3,/\n"
                           "//@ temp t0 0 i32 0 B 128\n"
                           "//@ temp packed 0 bool - 64 128\n"
                           "//@ workspace B,512,*,255,+,256,/,256,*\n"
                           "//@ launch init 3 pack packed,w1 -\n"
                           "//@ x-note a launch and its variants stay together across this\n"
                           "//@ variant k_pack 32 256 0 -\n"
                           "//@ launch run 12 soft%2Bmax x,p,t0 B,%6Dax,0x7,0x8000000000000001\n"
                           "//@ variant k_fast B 256 B,4,* a0:16&m:%6Dax:8&l:B,%6Dax,*:2147483647\n"
                           "//@ map 0 128 0 %6Dax:1:16 B,2,+:%6Dax:8\n"
                           "//@ map 2 0 B,128,* 128:1:8 B:128:256 1:0:1 3:B:2 B,B,*:7:9\n"
                           "//@ variant k_slow B,%6Dax,max,7,min 128 0 -\n"
                           "//@ copy run t0 x 4\n"
                           "//@ graph other\n"
                           "//@ output y 0 f32\n"
                           "//@ launch run 1 none y -\n"
                           "//@ variant k_none 1 1 0 -\n"
                           "//@ end\n";

static const char ptx[] = ".version 7.8\n.target sm_90a\n";

static frt_status load(const char *manifest, const char *code, frt_module **module,
                       frt_error *err) {
    Artifact artifact = artifact_text(manifest, code);
    frt_status status = frt_module_load_memory(artifact.bytes, artifact.n_bytes, module, err);
    artifact_free(&artifact);
    return status;
}

/* Lines that a reader may ignore: told where they are there, ignored where they are not right. */
Test(rt_manifest, rewrites_are_told) {
    static const struct {
        const char *head, *launch, *rewrites;
    } cases[] = {
        {"x-rewrites on", "x-note nothing", "on"},
        {"x-rewrites off", "x-rewrite online-weights", "off"}, /* of compilers before 0.1 */
        {"x-rewrites", "x-rewrite a b", NULL},
        {"x-rewrite too-early", "x-note nothing", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[600];
        frt_module *m = NULL;
        frt_error err = FRT_ERROR_INIT;
        snprintf(text, sizeof text,
                 "//@ fusec-artifact 1\n//@ checksum 00000000\n//@ compiler 0.1.0\n"
                 "//@ target cuda sm_80\n//@ numerics strict\n//@ %s\n//@ source a.g\n"
                 "//@ graph g\n//@ output y 0 f32 4\n//@ launch run 1 k y -\n"
                 "//@ variant k 1 32 0 -\n//@ %s\n//@ end\n",
                 cases[i].head, cases[i].launch);
        cr_assert_eq(load(text, ptx, &m, &err), FRT_OK, "%s", err.message);
        FRT_INFO(frt_module_info, info);
        frt_module_get_info(m, &info);
        const char *got = info.rewrites, *wanted = cases[i].rewrites;
        cr_expect(wanted ? got && strcmp(got, wanted) == 0 : !got, "%s, %s", cases[i].head,
                  cases[i].launch);
        frt_module_free(m);
    }
}

Test(rt_manifest, a_good_manifest_is_read_whole) {
    frt_module *m = NULL;
    frt_error err = FRT_ERROR_INIT;
    cr_assert_eq(load(good, ptx, &m, &err), FRT_OK, "%s", err.message);
    FRT_INFO(frt_module_info, info);
    cr_assert_eq(frt_module_get_info(m, &info), FRT_OK);
    cr_expect(info.target == FRT_TARGET_KIND_CUDA && info.code == FRT_CODE_PTX);
    cr_expect_str_eq(info.arch, "sm_90a");
    cr_expect_str_eq(info.numerics, "strict");
    cr_expect_str_eq(info.compiler, "0.1.0");
    cr_expect_str_eq(info.source, "my model.g");
    cr_expect_str_eq(info.weights, "digits-1.safetensors");
    cr_expect_null(info.rewrites);
    cr_expect(info.n_dims == 2 && info.n_graphs == 2 && info.code_bytes == strlen(ptx));

    FRT_INFO(frt_dim_info, dim);
    cr_assert_eq(frt_module_get_dim(m, 1, &dim), FRT_OK);
    cr_expect(strcmp(dim.name, "max") == 0 && dim.lo == 4 && dim.hi == 4096 && dim.multiple == 4);
    cr_expect_eq(frt_module_get_dim(m, 2, &dim), FRT_E_INVALID_ARGUMENT);

    FRT_INFO(frt_graph_info, graph);
    cr_assert_eq(frt_module_get_graph(m, 0, &graph), FRT_OK);
    cr_expect_str_eq(graph.name, "digits");
    cr_expect(graph.n_inputs == 1 && graph.n_params == 2 && graph.n_outputs == 1 &&
              graph.n_temps == 2 && graph.n_steps == 3 && graph.n_launches == 1 &&
              graph.n_init == 1);

    FRT_INFO(frt_tensor_info, tensor);
    cr_assert_eq(frt_module_get_tensor(m, 0, 1, &tensor), FRT_OK);
    cr_expect_str_eq(tensor.weights_key, "fc1.weight");
    cr_expect(tensor.role == FRT_PARAM && tensor.dtype == FRT_BF16 && tensor.rank == 2);
    cr_assert_eq(frt_module_get_tensor(m, 0, 5, &tensor), FRT_OK);
    cr_expect(tensor.is_persistent && tensor.dtype == FRT_BOOL);
    cr_expect_eq(frt_module_get_tensor(m, 0, 6, &tensor), FRT_E_INVALID_ARGUMENT);

    FRT_INFO(frt_step_info, step);
    cr_assert_eq(frt_module_get_step(m, 0, 1, &step), FRT_OK);
    cr_expect_str_eq(step.label, "soft+max");
    cr_expect(step.kind == FRT_STEP_LAUNCH && step.phase == FRT_PHASE_RUN && step.line == 12 &&
              step.n_args == 3 && step.n_dims == 2 && step.n_numbers == 2 && step.n_variants == 2);
    cr_expect_eq(frt_module_step_arg(m, 0, 1, 2), 4);
    cr_expect_eq(frt_module_step_arg(m, 0, 1, 3), -1);
    cr_expect_eq(frt_module_step_dim(m, 0, 1, 1), 1);
    uint64_t bits[2] = {0};
    for (int32_t i = 0; i < 2; i++)
        cr_expect_eq(frt_module_step_number(m, 0, 1, i, &bits[i]), FRT_OK);
    cr_expect(bits[0] == 7 && bits[1] == UINT64_C(0x8000000000000001));
    cr_expect_eq(frt_module_step_number(m, 0, 1, 2, bits), FRT_E_INVALID_ARGUMENT);
    FRT_INFO(frt_variant_info, variant);
    cr_assert_eq(frt_module_get_variant(m, 0, 1, 0, &variant), FRT_OK);
    cr_expect(strcmp(variant.symbol, "k_fast") == 0 && variant.block == 256);
    cr_assert_eq(frt_module_get_step(m, 1, 0, &step), FRT_OK);
    cr_expect_str_eq(step.label, "none");
    frt_module_free(m);
    cr_expect_eq(fake_mem_live(), 0);
}

Test(rt_manifest, expressions_print_as_infix) {
    frt_module *m = NULL;
    char text[200];
    cr_assert_eq(load(good, ptx, &m, NULL), FRT_OK);
    frt_module_workspace_text(m, 0, text, sizeof text);
    cr_expect_str_eq(text, "(B*512+255)/256*256");
    frt_module_extent_text(m, 0, 3, 2, text, sizeof text);
    cr_expect_str_eq(text, "(2*B+1)/3");
    frt_module_grid_text(m, 0, 1, 1, text, sizeof text);
    cr_expect_str_eq(text, "min(max(B, max), 7)");
    frt_module_shared_text(m, 0, 1, 0, text, sizeof text);
    cr_expect_str_eq(text, "B*4");
    frt_module_predicate_text(m, 0, 1, 0, text, sizeof text);
    cr_expect_str_eq(
        text,
        "aligned(x, 16) and (max) % 8 == 0 and B*max <= 2147483647 and mapped(x) and mapped(t0)");
    frt_module_predicate_text(m, 0, 1, 1, text, sizeof text);
    cr_expect_str_eq(text, "always");
    cr_expect_eq(frt_module_workspace_text(m, 0, text, 6), strlen("(B*512+255)/256*256"));
    cr_expect_str_eq(text, "(B*51");
    cr_expect_eq(frt_module_workspace_text(m, 9, text, sizeof text), 0);
    frt_module_free(m);
}

/* postfix, infix, value at B = 10, max = 8; NULL infix = does not evaluate. */
static const struct {
    const char *postfix, *infix;
    int64_t value;
} expressions[] = {
    {"B,3,-,2,/", "(B-3)/2", 3},
    {"B,3,2,-,-", "B-(3-2)", 9},
    {"12,B,2,/,/", "12/(B/2)", 2},
    {"B,B,3,/,*", "B*(B/3)", 30},
    {"3,B,-,2,/,4,+", "(3-B)/2+4", 0},
    {"B,%6Dax,min,2,*", "min(B, max)*2", 16},
    {"1,2,+,B,%6Dax,+,max", "max(1+2, B+max)", 18},
    {"B,B,*,B,B,*,*,B,*,B,*,B,*,B,*,B,*,B,*,B,*,B,*,B,*,B,*,B,*,B,*,B,*,B,*,B,*,B,*", NULL, 0},
    {"B,10,B,-,/", NULL, 0},
    {"9223372036854775807,B,+", NULL, 0},
    {"0,B,-", NULL, 0},
};

Test(rt_manifest, expressions_evaluate_with_every_overflow_caught) {
    for (size_t i = 0; i < sizeof expressions / sizeof expressions[0]; i++) {
        char line[200];
        char infix[200];
        snprintf(line, sizeof line, "p 0 f64 %s", expressions[i].postfix);
        char *text = text_replace(good, "p 0 f64 B 10 2,B,*,1,+,3,/", line);
        frt_module *m = NULL;
        frt_error err = FRT_ERROR_INIT;
        cr_assert_eq(load(text, ptx, &m, &err), FRT_OK, "%s", err.message);
        int64_t dims[FRT_MAX_RANK] = {-1};
        frt_status status = frt_module_eval_shape(m, 0, 3, (const int64_t[]){10, 8}, dims, &err);
        if (expressions[i].infix) {
            frt_module_extent_text(m, 0, 3, 0, infix, sizeof infix);
            cr_expect_str_eq(infix, expressions[i].infix);
            cr_expect_eq(status, FRT_OK, "%s: %s", infix, err.message);
            cr_expect_eq(dims[0], expressions[i].value, "%s is %ld", infix, (long)dims[0]);
        } else {
            cr_expect_eq(status, FRT_E_SHAPE, "%s gave %ld", line, (long)dims[0]);
        }
        frt_module_free(m);
        free(text);
    }
}

Test(rt_manifest, dim_values_are_held_to_their_declaration) {
    frt_module *m = NULL;
    frt_error err = FRT_ERROR_INIT;
    int64_t dims[FRT_MAX_RANK];
    cr_assert_eq(load(good, ptx, &m, &err), FRT_OK);
    cr_expect_eq(frt_module_eval_shape(m, 0, 0, (const int64_t[]){0, 8}, dims, &err),
                 FRT_E_DIM_RANGE);
    cr_expect_eq(frt_module_eval_shape(m, 0, 0, (const int64_t[]){1, 6}, dims, &err),
                 FRT_E_DIM_MULTIPLE);
    cr_expect_eq(frt_module_eval_shape(m, 0, 99, (const int64_t[]){1, 8}, dims, &err),
                 FRT_E_INVALID_ARGUMENT);
    frt_module_free(m);
}

/* Replace `from` in the good manifest by `to`: the reader refuses it and says `part`. */
#define EIGHT "0x0,0x1,0x2,0x3,0x4,0x5,0x6,0x7,"
#define MANY EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT
static const struct {
    const char *from, *to, *part;
} damages[] = {
    {"//@ fusec-artifact 1", "//@ fusec-artifakt 1", "line 1: directive `fusec-artifakt`"},
    {"//@ fusec-artifact 1", "//@ compiler 0.1.0", "line 1: `compiler` is out of place"},
    {"//@ fusec-artifact 1", "//@ x-note", "line 1"},
    {"//@ checksum 00000000\n", "", "line 2: `compiler` is out of place"},
    {"checksum 00000000", "checksum 0000000", "8 lower-case hex digits"},
    {"checksum 00000000", "checksum 0000000G", "8 lower-case hex digits"},
    {"//@ compiler 0.1.0\n", "", "lacks a target, compiler"},
    {"//@ compiler 0.1.0\n", "//@ compiler 0.1.0\n//@ compiler 2\n", "a second `compiler`"},
    {"//@ compiler", "//@compiler", "does not begin with"},
    {"//@ compiler", "//@  compiler", "empty field"},
    {"0.1.0\n", "0.1.0 \n", "empty field"},
    {"0.1.0\n", "0.1.0\r\n", "byte 0x0d"},
    {"0.1.0\n", "0.1\xc3\xa9\n", "byte 0xc3"},
    {"compiler 0.1.0", "compiler 0.1.0 beta", "`compiler` has 2 fields"},
    {"target cuda sm_90a", "target vulkan sm_90a", "line 4: the target"},
    {"target cuda sm_90a", "target cuda", "`target` has 1 fields"},
    {"target cuda sm_90a", "target cpu x86-64", "does not fit the file"},
    {"numerics strict", "numerics sloppy", "line 5: numerics"},
    {"my%20model.g", "my%2model.g", "not an escaped name"},
    {"my%20model.g", "my%", "not an escaped name"},
    {"my%20model.g", "my%00model.g", "not an escaped name"},
    {"my%20model.g", "my/model.g", "not an escaped name"},
    {"dim B 1 65536 1", "dim B 2 1 1", "dim `B` has an empty range"},
    {"dim B 1 65536 1", "dim B 1 65536 0", "the multiple 0"},
    {"dim B 1 65536 1", "dim B 01 65536 1", "lower bound `01`"},
    {"dim B 1 65536 1", "dim B -1 65536 1", "lower bound `-1`"},
    {"dim B 1 65536 1", "dim B 1 9223372036854775808 1", "upper bound"},
    {"dim %6Dax", "dim B", "dim `B` is declared twice"},
    {"//@ graph other", "//@ dim C 1 2 1", "`dim` is out of place"},
    {"//@ graph digits\n", "", "`input` is out of place"},
    {"graph other", "graph digits", "graph `digits` is declared twice"},
    {"input x 0 f32", "input x 1 f32", "device ordinal"},
    {"input x 0 f32", "input x 0 f31", "dtype `f31`"},
    {"input x 0 f32 B", "input x 0 f32 C", "dim `C`, which is not declared"},
    {"input x 0 f32 B", "input x 0 f32 B,-", "an operator lacks an operand"},
    {"input x 0 f32 B", "input x 0 f32 B,1", "not one expression"},
    {"input x 0 f32 B", "input x 0 f32 B,,+", "not an escaped name"},
    {"input x 0 f32 B", "input x 0 f32 3,4,-", "negative extent"},
    {"input x 0 f32 B %6Dax", "input x 0 f32 1 2 3 4 5 6 7 8 9", "`input` has 12 fields"},
    {"param b1 0", "param w1 0", "tensor `w1` is declared twice"},
    {"temp t0 0 i32 0", "temp t0 0 i32 zero", "dim `zero`"},
    {"temp t0 0 i32 0", "temp t0 0 i32 p:zero", "dim `zero`"},
    {"temp t0 0 i32 0", "temp t0 0 i32 q:0", "lies in `q`, which is no tensor by itself"},
    {"temp t0 0 i32 0", "temp t0 0 i32 t0:0", "lies in `t0`, which is no tensor by itself"},
    {"temp t0 0 i32 0", "temp u 0 i32 p:0 1\n//@ temp t0 0 i32 u:0", "lies in `u`, which is no"},
    {"//@ workspace B,512,*,255,+,256,/,256,*", "//@ workspace 1\n//@ workspace 1",
     "a second `workspace`"},
    {"launch init 3", "launch prologue 3", "neither `init` nor `run`"},
    {"launch init 3", "launch init 9999999999", "source line"},
    {"launch init 3 pack packed,w1 -", "launch init 3 pack packed,x -",
     "neither param nor persistent"},
    {"x,p,t0", "x,p,t1", "argument `t1` is no tensor of graph `digits`"},
    {"x,p,t0", "x,,t0", "not an escaped name"},
    {"x,p,t0 B,%6Dax", "x,p,t0 B,C", "launch refers to dim `C`, which is not declared"},
    {"x,p,t0 B,%6Dax,0x7", "x,p,t0 0x7,B", "more than 64 dims, or one after a constant"},
    {"x,p,t0 B,%6Dax,0x7", "x,p,t0 B,7", "dim `7`, which is not declared"},
    {"x,p,t0 B,%6Dax,0x7", "x,p,t0 B,0x", "constant `0x` is not `0x` and up to"},
    {"x,p,t0 B,%6Dax,0x7", "x,p,t0 B,0x07", "constant `0x07` is not `0x` and up to"},
    {"x,p,t0 B,%6Dax,0x7", "x,p,t0 B,0xA", "constant `0xA` is not `0x` and up to"},
    {"x,p,t0 B,%6Dax,0x7", "x,p,t0 B,0x10000000000000000", "is not `0x` and up to"},
    {"x,p,t0 B,%6Dax,0x7", "x,p,t0 " MANY MANY MANY MANY "0x9", "more than 256 constants"},
    {"//@ variant k_pack 32 256 0 -\n", "", "no variant that always applies"},
    {"//@ variant k_slow B,%6Dax,max,7,min 128 0 -\n", "", "no variant that always applies"},
    {"k_pack 32 256 0 -\n", "k_pack 32 256 0 -\n//@ variant k 1 1 0 -\n",
     "after one that always applies"},
    {"//@ copy run t0 x 4\n", "//@ copy run t0 x 4\n//@ variant k 1 1 0 -\n",
     "a variant must follow its launch"},
    {"k_pack 32 256", "k_pack 32 0", "a block of 0"},
    {"//@ launch init 3", "//@ measures 1\n//@ launch init 3", "measures must follow a launch"},
    {"k_pack 32 256 0 -", "k_pack 32 256 0 - price:1:132:0:1", "no measures open its group"},
    {"k_pack 32 256 0 -", "k_pack 32 256 0 - wait", "fields too many"},
    {"//@ variant k_pack 32 256 0 -", "//@ measures\n//@ variant k_pack 32 256 0 - prices:1",
     "something else than its price"},
    {"//@ variant k_pack 32 256 0 -", "//@ measures\n//@ variant k_pack 32 256 0 - price:1:132:0",
     "a price lacks numbers"},
    {"//@ variant k_pack 32 256 0 -",
     "//@ measures 32\n//@ variant k_pack 32 256 0 - price:1:132:0:1", "a price lacks numbers"},
    {"//@ variant k_pack 32 256 0 -",
     "//@ measures\n//@ variant k_pack 32 256 0 - price:1:132:0:1:2", "more numbers than measures"},
    {"//@ variant k_pack 32 256 0 -",
     "//@ measures\n//@ variant k_pack 32 256 0 - price:1:132:101:1", "number of the price `101`"},
    {"//@ variant k_pack 32 256 0 -", "//@ measures\n//@ variant k_pack 32 256 0 - price:1:0:5:1",
     "waves of 0 blocks"},
    {"//@ variant k_pack 32 256 0 -",
     "//@ measures\n//@ variant k_pack 32 256 0 - price:1:132:0:1 waits", "fields too many"},
    {"k_pack 32 256 0 -", "k_pack 32 256 0 - resident:0", "a cluster of 0 blocks"},
    {"k_pack 32 256 0 -", "k_pack 32 256 0 - resident:17", "cluster `17`"},
    {"k_pack 32 256 0 -", "k_pack 32 256 0 - resident:1:0", "0 resident blocks"},
    {"k_pack 32 256 0 -", "k_pack 32 256 0 - resident:1:33", "number of resident blocks `33`"},
    {"k_pack 32 256 0 -", "k_pack 32 256 0 - resident:1:2:3", "number of resident blocks `2:3`"},
    {"k_pack 32 256 0 -", "k_pack 32 256 0 - resident", "cluster ``"},
    {"k_pack 32 256 0 -", "k_pack 32 256 0 - resident:1 waits", "fields too many"},
    {"k_pack 32 256", "k_pack 32 1025", "block `1025`"},
    {"a0:16", "a3:16", "argument of the predicate `3`"},
    {"a0:16", "c:near", "a level that is not declared"},
    {"a0:16", "c", "a level that is not declared"},
    {"sm_90a\n", "sm_90a\n//@ level near x86-64\n", "the target be a CPU"},
    {"cuda sm_90a\n", "cpu x86-64\n//@ level a x86-64\n//@ level a x86-64\n",
     "level `a` is declared twice"},
    {"cuda sm_90a\n", "cpu x86-64\n//@ level a\n", "`level` has 1 field"},
    {"//@ target cuda sm_90a\n", "//@ level a x86-64\n", "must follow the target's line"},
    {"a0:16", "a0:0", "a multiple of 0"},
    {"a0:16", "a0", "lacks its number"},
    {"a0:16", "z0:16", "predicate term `z0`"},
    {"m:%6Dax:8", "m:%6Dax", "lacks its number"},
    {"m:%6Dax:8", "m", "lacks its expression"},
    {"&m:%6Dax:8", "&&m:%6Dax:8", "predicate term ``"},
    {"//@ variant k_fast B 256 B,4,* a0:16&m:%6Dax:8&l:B,%6Dax,*:2147483647\n", "",
     "a map must follow its variant"},
    {"//@ copy run t0 x 4\n", "//@ copy run t0 x 4\n//@ map 0 0 0 1:1:4\n",
     "a map must follow its variant"},
    {"//@ variant k_slow B,%6Dax,max,7,min 128 0 -\n",
     "//@ variant k_slow 1 1 0 a0:4\n//@ map 0 0 0 4:1:4\n", "no variant that always applies"},
    {"//@ copy run t0 x 4\n", "//@ odd\n", "`odd` must follow the even steps"},
    {"//@ copy run t0 x 4\n", "//@ end-repeat\n", "`end-repeat` must follow the odd steps"},
    {"//@ copy run t0 x 4\n", "//@ repeat B\n//@ end-repeat\n", "`end-repeat` must follow the odd"},
    {"//@ copy run t0 x 4\n", "//@ repeat B\n//@ odd\n//@ odd\n", "`odd` must follow the even"},
    {"//@ copy run t0 x 4\n",
     "//@ repeat B\n//@ repeat B\n//@ repeat B\n//@ repeat B\n//@ repeat B\n",
     "more than 4 `repeat`s"},
    {"//@ copy run t0 x 4\n",
     "//@ repeat B\n//@ repeat B\n//@ odd\n//@ end-repeat\n//@ end-repeat\n",
     "`end-repeat` must follow the odd steps"},
    {"//@ copy run t0 x 4\n", "//@ repeat B\n//@ copy init packed packed 4\n",
     "a step of phase init is repeated"},
    {"//@ copy run t0 x 4\n", "//@ repeat B\n//@ odd\n", "a `repeat` has no end"},
    {"//@ end\n", "//@ repeat B\n//@ end\n", "a `repeat` has no end"},
    {"//@ copy run t0 x 4\n", "//@ repeat C\n", "dim `C`"},
    {"map 0 128", "map 3 128", "argument of the map `3`"},
    {"map 0 128", "map 0:bf16 128", "cannot become `bf16`"},
    {"map 0 128", "map 0 96", "swizzle of a map is none of"},
    {"map 0 128", "map 0 256", "swizzle `256`"},
    {"map 0 128 0", "map 0 128 C", "dim `C`"},
    {"%6Dax:1:16", "%6Dax:1", "not SIZE:STRIDE:BOX"},
    {"%6Dax:1:16", "%6Dax:1:16:2", "not SIZE:STRIDE:LOWER:UPPER:STEP"},
    {"%6Dax:1:16", "%6Dax:1:-x:2:1", "corner `x`"},
    {"%6Dax:1:16", "%6Dax:1:-1:-1:0", "windows of a map take no step"},
    {"%6Dax:1:16", "%6Dax:1:-1:-1:9", "step `9`"},
    {"%6Dax:1:16", "%6Dax:1:-1:-1:1", "windows lie along the wrong axes"},
    {"%6Dax:1:16", "%6Dax:B:16", "innermost stride of a map is not 1"},
    {"%6Dax:1:16", "%6Dax:1:64", "inner side of a map's box is 256 bytes"},
    {"%6Dax:1:16", "%6Dax:1:2", "inner side of a map's box is 8 bytes"},
    {"%6Dax:1:16", "%6Dax:1:0", "an empty box"},
    {"%6Dax:1:16", "%6Dax:1:257", "box `257`"},
    {"B,B,*:7:9", "B,B,*:7:9 1:1:1 1:1:1", "`map` has 10 fields"},
    {"map 0 128 0 %6Dax:1:16 B,2,+:%6Dax:8", "map 0 128 0", "`map` has 3 fields"},
    {"//@ temp", "//@ in-place y\n//@ temp", "`in-place` has 1 field"},
    {"//@ temp", "//@ in-place p z\n//@ temp", "input `z` is no tensor"},
    {"//@ temp", "//@ in-place z x\n//@ temp", "output `z` is no tensor"},
    {"//@ temp", "//@ in-place x p\n//@ temp", "`x` cannot be an output in place of"},
    {"//@ temp", "//@ pitch p w y\n//@ temp", "`pitch` has 3 fields"},
    {"//@ temp", "//@ pitch p w z B 8\n//@ temp", "source `z` is no tensor"},
    {"//@ temp", "//@ pitch p w x C 8\n//@ temp", "dim `C`"},
    {"//@ temp", "//@ pitch p w x B 0\n//@ temp", "a multiple of 0"},
    {"//@ temp", "//@ pitch B w x B 8\n//@ temp", "dim `B` is declared twice"},
    {"//@ temp", "//@ pitch p p x B 8\n//@ temp", "dim `p` is declared twice"},
    {"//@ temp", "//@ pitch p w x B 8 a1:16\n//@ temp", "argument of the predicate `1`"},
    {"//@ temp", "//@ pitch p w x B 8 - - - - -\n//@ temp", "`pitch` has 10 fields"},
    {"//@ temp", "//@ temp u 0 f32 0 4 = v\n//@ temp", "source `v` is no tensor"},
    {"//@ temp", "//@ temp u 0 f32 - 4 = x\n//@ temp", "a temp that the program keeps"},
    {"copy run t0 x 4", "copy run t0 x", "`copy` has 3 fields"},
    {"//@ graph other", "//@ collective sum", "directive `collective` is not known"},
    {"//@ end\n", "", "there is no `end` line"},
    {"//@ end\n", "//@ end", "directive `end.version` is not known"},
    {"//@ end\n", "//@ end now\n", "`end` has 1 fields"},
};

Test(rt_manifest, every_kind_of_damage_is_refused_by_line) {
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        char *text = text_replace(good, damages[i].from, damages[i].to);
        frt_module *m = NULL;
        frt_error err = FRT_ERROR_INIT;
        frt_status status = load(text, ptx, &m, &err);
        cr_expect_eq(status, FRT_E_ARTIFACT, "`%s` gave %s", damages[i].to,
                     frt_status_name(status));
        cr_expect(strstr(err.message, damages[i].part), "`%s`: `%s` lacks `%s`", damages[i].to,
                  err.message, damages[i].part);
        cr_expect_null(m);
        frt_module_free(m);
        free(text);
    }
    cr_expect_eq(fake_mem_live(), 0);
}

Test(rt_manifest, versions_and_checksums_have_their_own_status) {
    frt_module *m = NULL;
    frt_error err = FRT_ERROR_INIT;
    char *newer = text_replace(good, "fusec-artifact 1", "fusec-artifact 2");
    cr_expect_eq(load(newer, ptx, &m, &err), FRT_E_VERSION);
    cr_expect(strstr(err.message, "version 2"));
    free(newer);
    Artifact artifact = artifact_text(good, ptx);
    artifact.bytes[artifact.n_bytes - 3] ^= 1;
    cr_expect_eq(frt_module_load_memory(artifact.bytes, artifact.n_bytes, &m, &err),
                 FRT_E_CHECKSUM);
    artifact_free(&artifact);
    cr_expect_eq(load(good, "", &m, &err), FRT_E_ARTIFACT);
    cr_expect(strstr(err.message, "no PTX text"));
    cr_expect_eq(load("hello", "", &m, &err), FRT_E_ARTIFACT);
    cr_expect_eq(load("", "", &m, &err), FRT_E_ARTIFACT);
    cr_expect_eq(load(good, "//@ payload 4\nabc", &m, &err), FRT_E_ARTIFACT);
    cr_expect(strstr(err.message, "payload line"));
    cr_expect_eq(load(good, "//@ payload 3\nabc", &m, &err), FRT_E_ARTIFACT);
    cr_expect(strstr(err.message, "ELF"));
}

/* Well-formed beginnings of absurd size: refused, and quickly. */
Test(rt_manifest, bounds_are_enforced, .timeout = 20) {
    static const struct {
        const char *before, *repeat, *part;
        int n;
    } floods[] = {
        {"//@ dim B", "//@ dim D%d 1 1 1\n", "more than 64 dims", 70},
        {"//@ graph digits", "//@ graph g%d\n", "more than 64 graphs", 70},
        {"//@ input x", "//@ input i%d 0 f32 1\n", "more than 16384 tensors", 20000},
        {"//@ graph digits", "//@ x-%d\n", "too long", 70000},
        {"//@ map 0 128", "//@ map 0 0 0 %d:1:4\n", "more than 16 maps", 17},
    };
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++) {
        size_t n_bytes = (size_t)floods[i].n * 40 + 1;
        char *flood = malloc(n_bytes + 40);
        cr_assert_not_null(flood);
        size_t n = 0;
        for (int k = 0; k < floods[i].n; k++) {
            char number[16];
            snprintf(number, sizeof number, "%d", k);
            char *line = text_replace(floods[i].repeat, "%d", number);
            n += (size_t)snprintf(flood + n, n_bytes - n, "%s", line);
            free(line);
        }
        snprintf(flood + n, 40, "%s", floods[i].before);
        char *text = text_replace(good, floods[i].before, flood);
        frt_module *m = NULL;
        frt_error err = FRT_ERROR_INIT;
        cr_expect_eq(load(text, ptx, &m, &err), FRT_E_ARTIFACT);
        cr_expect(strstr(err.message, floods[i].part), "%s", err.message);
        free(text);
        free(flood);
    }
    char deep[400] = "input x 0 f32 B";
    for (int k = 0; k < 40; k++) {
        strcat(deep, ",B");
    }
    char *text = text_replace(good, "input x 0 f32 B", deep);
    frt_error err = FRT_ERROR_INIT;
    frt_module *m = NULL;
    cr_expect_eq(load(text, ptx, &m, &err), FRT_E_ARTIFACT);
    cr_expect(strstr(err.message, "too long an expression"), "%s", err.message);
    free(text);
}

Test(rt_manifest, out_of_memory_while_reading_is_a_status) {
    Artifact artifact = artifact_text(good, ptx);
    for (long n = 1; n < 100; n++) {
        frt_module *m = NULL;
        frt_error err = FRT_ERROR_INIT;
        fake_mem_fail_at(n, 1);
        frt_status status = frt_module_load_memory(artifact.bytes, artifact.n_bytes, &m, &err);
        int failed = fake_mem_failed();
        fake_mem_fail_at(0, 0);
        cr_expect_eq(status, failed ? FRT_E_OUT_OF_MEMORY : FRT_OK, "allocation %ld: %s", n,
                     err.message);
        frt_module_free(m);
        cr_expect_eq(fake_mem_live(), 0);
        if (!failed) {
            cr_expect_gt(n, 8);
            break;
        }
    }
    artifact_free(&artifact);
}

Test(rt_manifest, every_status_and_dtype_has_a_name) {
    for (int i = 0; i <= FRT_E_THREADS; i++) {
        cr_expect_str_neq(frt_status_name((frt_status)i), "unknown");
        cr_expect_gt(strlen(frt_status_text((frt_status)i)), 0);
    }
    cr_expect_str_eq(frt_status_name((frt_status)999), "unknown");
    cr_expect_str_eq(frt_dtype_name(FRT_BF16), "bf16");
    cr_expect_eq(frt_dtype_bytes(FRT_BOOL), 1);
    cr_expect_null(frt_dtype_name(FRT_DTYPE_COUNT));
    cr_expect_str_eq(frt_version(), "0.1.0");
}
