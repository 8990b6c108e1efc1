/* Prints docs/OPS.md from the op table and the prelude. */
#include "ir/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

extern const char prelude_text[];

static const char *const class_titles[] = {
    [CLASS_SOURCE] = "Sources",
    [CLASS_ELTWISE] = "Elementwise",
    [CLASS_CAST] = "Casts",
    [CLASS_REDUCE] = "Reductions",
    [CLASS_ARGREDUCE] = "Reductions to an index",
    [CLASS_VIEW] = "Views",
    [CLASS_CONCAT] = "Concatenation",
    [CLASS_MATMUL] = "Contractions",
};
static const char *const class_docs[] = {
    [CLASS_SOURCE] = "Values from outside, and literals.",
    [CLASS_ELTWISE] = "One element of the result from one element of each argument; arguments "
                      "broadcast. They fuse into whatever uses them.",
    [CLASS_CAST] = "`cast(x, dtype)`: to float rounds to nearest even; float to i32 truncates, "
                   "saturates, and turns NaN into 0; to bool is `x != 0`.",
    [CLASS_REDUCE] = "`op(x, axis=k, keep=false)` over an axis, a list of axes, or all of them. "
                     "Sums and products are accumulated in an order fixed by extents, dtype and "
                     "target alone.",
    [CLASS_ARGREDUCE] = "`op(x, axis=k, keep=false)` over one axis; the first of equal elements; "
                        "the result is i32.",
    [CLASS_VIEW] = "They move no data: the kernel that uses them reads at other places. Where one "
                   "is an output itself, the kernel that makes the tensor stores it rearranged, "
                   "or what a slice leaves of it; any other view of it is a copy.",
    [CLASS_CONCAT] = "Its parts are read where they lie. One that is stored is written in parts by "
                     "the kernels that make them, or by one that joins them where that takes fewer "
                     "launches.",
    [CLASS_MATMUL] = "Matrix products. Accumulated as sums are, in an order fixed by the "
                     "matmul's own extents, dtype and target; few outputs of a long `k` on a "
                     "GPU in segments, whose sums are rounded once, together.",
};

static void print_dtypes(DtypeSet set) {
    const char *separator = "";
    for (int dtype = 0; dtype < DT_COUNT; dtype++) {
        if (!dtype_in((Dtype)dtype, set)) continue;
        printf("%s%s", separator, dtype_name((Dtype)dtype));
        separator = " ";
    }
}

static void print_signature(const OpInfo *info) {
    printf("`%s(", info->name);
    for (uint32_t i = 0; i < info->max_args; i++) {
        printf("%s%c", i ? ", " : "", 'a' + (int)i);
        if (i >= info->min_args) printf("=%g", info->default_last);
    }
    printf(")`");
}

/* The allowed error per float dtype, in units in the last place. */
static void print_tolerance(const OpInfo *info) {
    double most = info->abs_error;
    for (int dtype = 0; dtype < DT_COUNT; dtype++)
        if (info->ulp[dtype] > most) most = info->ulp[dtype];
    if (most <= 0) {
        printf("exact");
        return;
    }
    const char *separator = "";
    for (int dtype = 0; dtype < DT_COUNT; dtype++) {
        if (!dtype_in((Dtype)dtype, info->dtypes & DTS_FLOAT)) continue;
        printf("%s%s %g", separator, dtype_name((Dtype)dtype), info->ulp[dtype]);
        separator = ", ";
    }
    printf(" ULP");
    if (info->abs_error <= 0) return;
    printf(", or %g", op_abs_error(info, DT_F32));
    if (dtype_in(DT_F64, info->dtypes)) printf(" (f64 %.3g)", op_abs_error(info, DT_F64));
}

/* A bar would end the cell. */
static void print_cell(const char *text) {
    for (; *text; text++) printf(*text == '|' ? "\\|" : "%c", *text);
}

static void print_eltwise(void) {
    puts("| op | dtypes | result | error | |\n|---|---|---|---|---|");
    for (int op = 1; op < OP_COUNT; op++) {
        const OpInfo *info = op_info((OpId)op);
        if (info->cls != CLASS_ELTWISE) continue;
        printf("| ");
        print_signature(info);
        printf(" | ");
        print_dtypes(info->dtypes);
        printf(" | %s | ", info->result == RESULT_BOOL ? "bool" : "same");
        print_tolerance(info);
        printf(" | ");
        print_cell(info->doc);
        puts(" |");
    }
}

static void print_others(OpClass cls) {
    puts("| op | dtypes | |\n|---|---|---|");
    for (int op = 1; op < OP_COUNT; op++) {
        const OpInfo *info = op_info((OpId)op);
        if (info->cls != cls) continue;
        printf("| `%s` | ", info->name);
        print_dtypes(info->dtypes ? info->dtypes : DTS_ANY);
        printf(" | ");
        print_cell(info->doc);
        puts(" |");
    }
}

/* `def` lines of the prelude, each with the comment right above it. */
static void print_composites(void) {
    char comment[512] = "";
    puts(
        "\n## Composites\n\nWritten in the language itself, in `dsl/prelude.g`, and expanded where "
        "they are used.\n\n| function | |\n|---|---|");
    for (const char *line = prelude_text; *line;) {
        size_t n = strcspn(line, "\n");
        if (line[0] == '#') {
            size_t used = strlen(comment), skip = n > 1 ? 2 : 1;
            snprintf(comment + used, sizeof comment - used, "%s%.*s", used ? " " : "",
                     (int)(n - skip), line + skip);
        } else {
            const char *brace = memchr(line, '{', n);
            if (strncmp(line, "def ", 4) == 0 && brace)
                printf("| `%.*s` | %s |\n", (int)(brace - line - 5), line + 4, comment);
            comment[0] = '\0';
        }
        line += n + (line[n] == '\n');
    }
}

/* A power of 2 where it is one. */
static void print_bound(double bound, const char *what) {
    int exponent;
    if (bound <= 0) return;
    if (frexp(bound, &exponent) == 0.5)
        printf("2^%d%s", exponent - 1, what);
    else
        printf("%g%s", bound, what);
}

static void print_fast(void) {
    puts(
        "\n## Fast numerics\n\n`--numerics=fast` is held to wider bounds. Values of f16 and bf16 "
        "that a kernel hands from op to op stay f32, so that an op's result may be off by one more "
        "unit in its last place or be of a wider range (a `cast` and every store round); a product "
        "that only a sum or a difference takes is not rounded by itself; of f32, quotients and the "
        "functions below are approximated where the target has an instruction for them, which CPUs "
        "have not. Of f64 and of all other functions nothing is, `pow` among them: y log2(x) has "
        "no "
        "bound in f32. How far a result may be off follows from the primitives that the op is made "
        "of, `compiler/ir/prims.def`.\n\n| instead of | within, relatively | and absolutely | on a "
        "GPU |\n|---|---|---|---|");
    for (int p = 1; p < PRIM_COUNT; p++) {
        const PrimInfo *info = prim_info((PrimId)p);
        if (!*info->how) continue;
        const char *name = info->of ? prim_info(info->of)->name : info->name;
        printf("| `%.*s` | ", (int)strcspn(name, "_"), name);
        print_bound(info->relative, "");
        printf(" | ");
        print_bound(info->absolute, "");
        printf(" | %s |\n", info->how);
    }
    puts(
        "\n`div` of a constant is a product with its reciprocal. What these make of zeros, "
        "infinities, NaN and numbers outside their domain is what the others make of them. "
        "*PTX ISA*: the bound that NVIDIA's manual of the instruction states; *measured*: by the "
        "sweep of each form against its bound in `tests/codegen/test_emulated_math.c`, on an "
        "emulator "
        "whose `tanh`, `lg2`, `sqrt`, `rsqrt`, `sin`, `cos` and `div.full` are off by as much as "
        "the manual allows, while its `ex2` and `rcp` are rounded correctly. None of these was "
        "swept on a GPU in this mode yet. A cast to the dtype that a value has already is none, in "
        "either mode: to round, cast to another one and back. The named rewrites of "
        "arithmetic are allowed too, unless `--no-rewrite` takes them out.");
}

int main(void) {
    puts("# Ops\n\nGenerated from `compiler/ir/ops.def` and `dsl/prelude.g` by `make docs`; do not "
         "edit.\n\nEvery op computes in f32 for f16 and bf16 (else in its own dtype) and rounds "
         "once, at its end. `error` is what a result may differ from the exact one, in units in "
         "the last place of the dtype or, where a number follows, absolutely (f64 has one of its "
         "own); `exact` is "
         "correctly rounded, to the bit on every target. NaN passes through. i32 wraps.");
    for (int cls = 0; cls <= CLASS_MATMUL; cls++) {
        printf("\n## %s\n\n%s\n\n", class_titles[cls], class_docs[cls]);
        if (cls == CLASS_ELTWISE)
            print_eltwise();
        else
            print_others((OpClass)cls);
    }
    print_composites();
    print_fast();
    return 0;
}
