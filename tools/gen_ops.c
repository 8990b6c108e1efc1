/* Prints docs/OPS.md from the op table and the prelude. */
#include "ir/op.h"

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
    [CLASS_CONTRACT] = "Contractions",
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
    [CLASS_CONTRACT] = "Matrix products. Accumulated as sums are, in an order fixed by the "
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

int main(void) {
    puts("# Ops\n\nGenerated from `compiler/ir/ops.def` and `dsl/prelude.g` by `make docs`; do not "
         "edit.\n\nEvery op computes in f32 for f16 and bf16 (else in its own dtype) and rounds "
         "once, at its end. `error` is what a result may differ from the exact one, in units in "
         "the last place of the dtype or, where a number follows, absolutely (f64 has one of its "
         "own); `exact` is "
         "correctly rounded, to the bit on every target. NaN passes through. i32 wraps.");
    for (int cls = 0; cls <= CLASS_CONTRACT; cls++) {
        printf("\n## %s\n\n%s\n\n", class_titles[cls], class_docs[cls]);
        if (cls == CLASS_ELTWISE)
            print_eltwise();
        else
            print_others((OpClass)cls);
    }
    print_composites();
    return 0;
}
