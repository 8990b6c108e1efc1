/* Prints docs/OPS.md from the op table, the errors found, the built-in functions and the prelude.
 */
#include "front/prelude.h"
#include "ir/op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const class_titles[] = {
    [CLASS_SOURCE] = "Sources",
    [CLASS_ELTWISE] = "Elementwise",
    [CLASS_CAST] = "Casts",
    [CLASS_REDUCE] = "Reductions",
    [CLASS_ARGREDUCE] = "Reductions to an index",
    [CLASS_SCAN] = "Scans",
    [CLASS_SCAN_BY] = "Scans by a function",
    [CLASS_SORT] = "Sorts",
    [CLASS_SEGMENT] = "Segments",
    [CLASS_UPDATE] = "Updates",
    [CLASS_VIEW] = "Views",
    [CLASS_CONCAT] = "Concatenation",
    [CLASS_LOOP] = "Loops repeated at run time",
    [CLASS_ONLINE] = "Softmax and product",
    [CLASS_MATMUL] = "Matrix products",
};
static const char *const class_docs[] = {
    [CLASS_SOURCE] = "Values from outside, and literals.",
    [CLASS_ELTWISE] = "One element of the result from one element of each argument; arguments "
                      "broadcast. They fuse into whatever uses them.",
    [CLASS_CAST] =
        "`cast(x, dtype)`: to float rounds to nearest even, once; float to an integer truncates, "
        "saturates, and turns NaN into 0; to bool is `x != 0`.",
    [CLASS_REDUCE] = "`op(x, axis=k, keep=false)` over an axis, a list of axes, or all of them. "
                     "Sums and products are accumulated in an order fixed by extents, dtype and "
                     "target alone. Here and in the next four tables bool counts as the i32 "
                     "numbers 0 and 1, where the op takes integers. The result is then bool of a "
                     "largest or smallest element, else i32.",
    [CLASS_ARGREDUCE] = "`op(x, axis=k, keep=false)` over one axis; the first of equal elements; "
                        "the result is i32. Without an axis, or with `axis=none`, all elements "
                        "count, in row-major order.",
    [CLASS_SCAN] =
        "`op(x, axis=k)` along one axis; for a tensor of rank 1 `axis` may be left out. A running "
        "sum or "
        "product has one order, on every target: runs of 16 elements, groups of 16 runs and tiles "
        "of 16 "
        "groups are each accumulated in ascending order, from the first element of the run, group "
        "or "
        "tile. An element is `((tiles before + groups before) + runs before) + own run`.",
    [CLASS_SCAN_BY] =
        "What `scan` makes of tensors of one shape and a function whose ops are all elementwise, "
        "as printed graphs have it. The order is that of the scans above. The function joins what "
        "comes before with what follows, and never sees an identity.",
    [CLASS_SORT] = "`op(x, axis=k)` along one axis, by default the last. "
                   "Equal elements keep their order, -0 and +0 are equal, and NaN comes behind all "
                   "numbers, in descending order before them. A merge sort, n log n work.",
    [CLASS_SEGMENT] =
        "`op(x, ids, n, axis=0)` has n segments along the axis. `ids` has the shape of `x`, i32 or "
        "i64, and says of each element in which segment it is; along the axis it ascends, so that "
        "a segment is a run, which two binary searches find. Elements below 0 or from n on are in "
        "none. A segment is combined in ascending order on every target. Where `ids` does not "
        "ascend, a segment is what lies between the places at which the searches end. "
        "`segment_sum` and its kin sort first.",
    [CLASS_UPDATE] =
        "The result is `x` with a part replaced. `update` has the rank and dtype of `x`; `starts` "
        "is "
        "i32 or i64, a tensor with a number for each axis or a list of scalars and integers. As in "
        "JAX, a place outside is clamped. A kernel stores the part alone. What is around it is "
        "copied from `x`, or is there already: where nothing reads `x` any more, and where an "
        "output is bound to the address of the input that it updates "
        "([in place](design/updates.md)).",
    [CLASS_LOOP] =
        "What `loop` makes of a number of steps that is a dim, as printed graphs have it. What "
        "depends on a `loop_carry` is computed in every step, and read by its loop alone; "
        "everything else is computed once. The results of a loop have the same lists.",
    [CLASS_VIEW] = "A view moves no data: the kernel that uses it reads at other places. If a view "
                   "is an output, the kernel that makes the tensor stores it rearranged, or the "
                   "part that a slice leaves. Any other view that is an output is a copy.",
    [CLASS_CONCAT] =
        "Its operands are read where they lie. If a concat is stored, the kernels that "
        "make its operands store them in place, or one kernel joins them where that "
        "takes fewer launches.",
    [CLASS_ONLINE] =
        "`op(x, v)` of scores `x [.., m, n]` and values `v [.., n, c]` gives `[.., m, c]`; leading "
        "axes broadcast. The scores have the dtype in which values are multiplied: f32, of f64 "
        "values f64. A score of -inf hides its key; a row in which all keys are hidden, or with a "
        "NaN, is NaN. 128 keys at a time are weighed, rounded to the dtype of `v` and multiplied; "
        "what was summed before is rescaled, and all is divided by the sum of the weights at the "
        "end. A block of which a row's keys are all hidden adds nothing to the row, whatever `v` "
        "holds. [Attention](design/attention.md) has the recurrence and its bound. An "
        "`online { ... }` block makes this op of a softmax and a product.",
    [CLASS_MATMUL] =
        "Their sums have an order fixed by the matmul's own extents, "
        "dtype and target. On a GPU, few outputs of a long `k` are summed in segments, "
        "whose sums are rounded once, together. With `out=` the result is the accumulator: tensor "
        "cores cut off bits of it that a rounding would hide, so its bound is twice that of a "
        "sum. 8-bit floats are multiplied exactly. Tensor cores of `sm_89` and `sm_90a` add their "
        "products for 128 elements of `k` at a time, and these sums are added in f32. An "
        "instruction "
        "adds 32 products to a sum. It cuts each of these numbers, and the new sum, off at 2^-13 "
        "of "
        "the largest, so the bound grows by 36 * 2^-13 of the largest for each instruction. It "
        "does "
        "not grow if no bit is lost, as with small integers. Other targets convert to f16 or f32 "
        "and "
        "add in f32; the bound is the same.",
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

/* Bounds of functions of the prelude. */
static const OpInfo functions[] = {
#define FUNCTION(nm, definition, d, s, abs) \
    {.name = #nm, .dtypes = DTS_FLOAT, .double_ulp = (d), .single_ulp = (s), .abs_error = (abs)},
#include "../tests/ulp/functions.def"
};

/* The allowed error per float dtype, in units in the last place. */
static void print_tolerance(const OpInfo *info) {
    double most = info->abs_error;
    for (int dtype = 0; dtype < DT_COUNT; dtype++)
        if (op_ulp(info, (Dtype)dtype) > most) most = op_ulp(info, (Dtype)dtype);
    if (most <= 0) {
        printf("exact");
        return;
    }
    const char *separator = "";
    for (int dtype = 0; dtype < DT_COUNT; dtype++) {
        if (!dtype_in((Dtype)dtype, info->dtypes & DTS_FLOAT)) continue;
        printf("%s%s %g", separator, dtype_name((Dtype)dtype), op_ulp(info, (Dtype)dtype));
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

/* Errors found. */

typedef struct Found {
    const char *op, *dtype, *target;
    double ulp, absolute;
    uint64_t n_values;
} Found;

static const Found founds[] = {
#define ULP(op, dtype, target, ulp, absolute, at, n_values, digest, date) \
    {#op, #dtype, #target, ulp, absolute, n_values},
#include "../tests/ulp/found.def"
};
enum { N_FOUNDS = sizeof founds / sizeof *founds };

static const Found *found_of(const char *op, Dtype dtype, const char *target) {
    for (size_t i = 0; i < N_FOUNDS; i++)
        if (strcmp(founds[i].op, op) == 0 && strcmp(founds[i].target, target) == 0 &&
            strcmp(founds[i].dtype, dtype_name(dtype)) == 0)
            return &founds[i];
    return NULL;
}

static void print_found(const Found *found, Dtype dtype) {
    if (!found || found->n_values == 0) {
        printf(" | not swept");
        return;
    }
    printf(" | ");
    if (found->ulp > 0) printf("%.2f", found->ulp);
    if (found->absolute > 0) printf("%s%.2g", found->ulp > 0 ? " or " : "within ", found->absolute);
    if (found->ulp <= 0 && found->absolute <= 0) printf("0");
    double percent = 100 * ldexp((double)found->n_values, -8 * (int)dtype_bytes(dtype));
    if (!dtype_is_double(dtype) && percent < 100) printf(" (%.1f %% of the values)", percent);
}

static void print_errors_found(void) {
    puts("\n## Errors found\n\nThe largest error of each unary op that is not exact, in ULP. "
         "Results "
         "within the absolute bound of an op do not count. A number after *or* or *within* is the "
         "largest absolute error that only this bound allows. f32, f16 and bf16 are swept over all "
         "their values, f64 over 67 million samples. All results of exact unary ops are correctly "
         "rounded. `make ulp` repeats the sweep. [found.def](../tests/ulp/found.def) has the "
         "argument, the number of values and the date of each row.\n\n| op | target | f64 | f32 | "
         "f16 | bf16 |\n|---|---|---|---|---|---|");
    static const char *const targets[] = {"cpu", "sm_90a"};
    for (int op = 1; op < OP_COUNT; op++) {
        const OpInfo *info = op_info((OpId)op);
        if (info->cls != CLASS_ELTWISE || info->min_args != 1 || info->single_ulp <= 0) continue;
        for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
            printf("| `%s` | %s", info->name, targets[t]);
            for (Dtype dtype = (Dtype)0; dtype < DT_COUNT; dtype++)
                if (dtype_in(dtype, info->dtypes))
                    print_found(found_of(info->name, dtype, targets[t]), dtype);
            puts(" |");
        }
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

/* The classes whose ops need a template of kernels of their own. */
static const OpClass own_kernels[] = {CLASS_SCAN,    CLASS_SCAN_BY, CLASS_SORT,
                                      CLASS_SEGMENT, CLASS_UPDATE,  CLASS_ONLINE};
enum { N_OWN_KERNELS = sizeof own_kernels / sizeof *own_kernels };
_Static_assert(N_OWN_KERNELS <= 12, "a function of the prelude says most, without a new kernel");

/* The dtypes: what their numbers are, and what files call them. */
static void print_dtype_table(void) {
    puts("\n## Dtypes\n\nA float is rounded to nearest, ties to even. A number past the largest "
         "becomes infinity, or the largest where the dtype has no infinity, and NaN stays NaN. "
         "`f8e4m3` and `f8e5m2` are the formats of OCP, E4M3 and E5M2. "
         "PyTorch's cast to `float8_e4m3fn` gives NaN past the largest instead. Both are for "
         "storage: they are cast, moved, compared for equality, selected and multiplied by "
         "`matmul`, and other ops want a cast first. A float that is cast to an integer truncates "
         "and saturates, NaN gives 0, and an "
         "integer cast to an integer keeps its low bits, as in C and PyTorch where they define it. "
         "Arithmetic on integers wraps to the dtype, sums and products of many elements and "
         "matmuls too: `sum` of u8 is u8, so cast first for more. The first word for `.npy` is "
         "written, each is read.\n\n| "
         "dtype | bytes | computed in | significant bits | bits of exponent | "
         "largest | a float past it | in `.npy` | in safetensors |\n"
         "|---|---|---|---|---|---|---|---|---|");
    static const char *const safetensors[DT_COUNT] = {
#define X(symbol, number, name, word, bytes, map) [number] = word,
#include <frt_dtype.def>
#undef X
    };
    for (Dtype dtype = (Dtype)0; dtype < DT_COUNT; dtype++) {
        const DtypeInfo *info = dtype_info(dtype);
        printf("| %s | %u | %s | %u | ", dtype_name(dtype), dtype_bytes(dtype),
               dtype_name(info->compute), info->n_digits);
        if (dtype_is_float(dtype))
            printf("%u | %g | %s | ", info->n_exponent_bits, dtype_max(dtype),
                   info->has_infinity ? "infinity" : "the largest");
        else
            printf("| %.0f | %s | ", ldexp(1, (int)info->n_digits) - 1,
                   dtype_is_bool(dtype) ? "true" : "the largest");
        printf("`");
        print_cell(info->npy);
        printf("` | `%s` |\n", safetensors[dtype]);
    }
}

/* Bounds of the other functions of the prelude: the text of their column, for a name or several. */
static const struct {
    const char *names, *column;
} bounds[] = {
#define EXACT(names) {names, "exact"},
#define PART(names) {names, "part"},
#define WITHIN(name, number) {#name, "within " #number},
#define RELATIVE(name, number) {#name, #number " eps"},
#define BOUND(name, n, s) {#name, "n = `" n "`, S = `" s "`"},
#define PRODUCT(names) {names, "products"},
#define TERMS(names) {names, "terms"},
#include "../tests/sweep/bounds.def"
};

static bool has_word(const char *words, const char *word, size_t n) {
    for (const char *at = words; *at; at += at[0] == ' ') {
        size_t n_here = strcspn(at, " ");
        if (n_here == n && strncmp(at, word, n) == 0) return true;
        at += n_here;
    }
    return false;
}

/* The bound of the function whose name `text` begins with. */
static void print_bound_of(const char *text) {
    size_t n = strcspn(text, "(");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strlen(functions[i].name) == n && strncmp(functions[i].name, text, n) == 0) {
            print_tolerance(&functions[i]);
            return;
        }
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (has_word(bounds[i].names, text, n)) printf("%s", bounds[i].column);
}

static bool is_part(const char *name) {
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (has_word(bounds[i].names, name, strlen(name)))
            return strcmp(bounds[i].column, "part") == 0;
    return false;
}

/* The bytes of `name(parameters)`, whose defaults may be calls. */
static size_t head_bytes(const char *text) {
    size_t n = strcspn(text, "("), depth = 0;
    for (; text[n]; n++) {
        depth += text[n] == '(';
        depth -= text[n] == ')';
        if (depth == 0) return n + 1;
    }
    return n;
}

/* `def` lines of one file of the prelude, each with the comment right above it, below the title
 * that the file's first line holds. */
static void print_theme(const PreludeFile *file) {
    char comment[1024] = "";
    size_t n_title = strcspn(file->text, "\n");
    printf("\n### %.*s\n\n| function | error | |\n|---|---|---|\n", (int)n_title - 2,
           file->text + 2);
    for (const char *line = file->text + n_title + 1; *line;) {
        size_t n = strcspn(line, "\n");
        if (line[0] == '#') {
            size_t used = strlen(comment), skip = n > 1 ? 2 : 1;
            snprintf(comment + used, sizeof comment - used, "%s%.*s", used ? " " : "",
                     (int)(n - skip), line + skip);
        } else {
            if (strncmp(line, "def ", 4) == 0) {
                printf("| `%.*s` | ", (int)head_bytes(line + 4), line + 4);
                print_bound_of(line + 4);
                printf(" | ");
                print_cell(comment);
                puts(" |");
            }
            comment[0] = '\0';
        }
        line += n + (line[n] == '\n');
    }
}

/* Rows of calls.def that are no ops. */
static void print_builtin(const char *name, uint32_t n_required, const char *error, const char *doc,
                          uint32_t n_params, const char *const *params) {
    printf("| `%s(", name);
    for (uint32_t k = 0; k < n_params; k++)
        printf("%s%s%s", k == n_required ? "[" : "", k ? ", " : "", params[k]);
    printf("%s)` | %s | ", n_params > n_required ? "]" : "", error);
    print_cell(doc);
    puts(" |");
}

static void print_builtins(void) {
    puts("\n### Built-in functions\n\nThese are known to the compiler, but are no ops: they make "
         "ops, or say what is known while compiling. What stands in brackets may be left "
         "out.\n\n| function | error | |\n|---|---|---|");
#define BUILTIN(handler, name, n_required, error, doc, ...)                     \
    print_builtin(name, n_required, error, doc,                                 \
                  sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *), \
                  (const char *const[]){__VA_ARGS__});
#include "front/calls.def"
}

/* What functions of the prelude have otherwise than PyTorch. */
static void print_names(void) {
    puts("`axis` is an axis, a list of axes, or none for all of them. A "
         "parameter without a default must be given.\n"
         "\n"
         "Names, arguments and defaults are PyTorch's, with these "
         "exceptions.\n"
         "\n"
         "* `dim` is `axis`, and `keepdim` is `keep`. Tensors are `x`, or "
         "`a` and `b`.\n"
         "* By position some arguments stand elsewhere, so give them by "
         "name. `interpolate(x, scale_factor, mode, size)` has the factor "
         "second, and `norm(x, axis, keep, p)` the axis. `reduction` is "
         "third in `nll_loss` and `cross_entropy`, fourth after `delta` in "
         "`huber_loss`, and fifth after `margin` in `triplet_margin_loss`. "
         "`ceil_mode` of average pools stands behind `count_include_pad`.\n"
         "* Norms have `gamma` and `beta` for `weight` and `bias`, `mean` "
         "and `variance` for `running_mean` and `running_var`, and `groups` "
         "for `num_groups`. `axis` stands in place of `normalized_shape`. "
         "`rmsnorm` has `eps=1e-5`, where PyTorch takes the eps of the "
         "dtype.\n"
         "* `var` and `std` have `correction=0`, where PyTorch has 1. "
         "`softmax`, `log_softmax` and `logsumexp` go along the last axis "
         "without an axis.\n"
         "* `median` and `take_along_dim` go along the last axis, where "
         "PyTorch without an axis takes all elements; `axis=none` does so.\n"
         "* `max(x, axis=k)`, `cummax` and `median` give values alone. "
         "Indices are i32 where PyTorch's are i64: of `argmax`, `topk`, "
         "`sort`, `searchsorted`, `one_hot` and pools. `histc` and `histogram` count in i32, "
         "PyTorch's in floats. Sums of integers "
         "have the dtype of `x`, and those of bool are i32. `arange` of "
         "integers is i32, and `full` of an integer f32.\n"
         "* `split(x, n)` gives n equal parts, as `chunk` does. `gather` "
         "takes rows, and `take_along_dim` an element for each place. "
         "`flip` and `roll` have `axis` for `dims`, and `roll` has `shift`. "
         "`histc` needs its bounds, and `bincount(x, n)` the number of its "
         "results.\n"
         "* Random functions have a `key` and a `stream`. `dropout` acts as "
         "in training.\n"
         "* A scatter leaves out indices that are outside, and a gather "
         "clamps them.");
}

static void print_composites(void) {
    puts("\n## Composites\n\nWritten in the language itself, in `dsl/prelude`, and expanded where "
         "they are used. Each computes in f32 for f16 and bf16 and rounds once, at its end, unless "
         "it says otherwise. `error` of a function of one number is its bound as of an op: `make "
         "test` tries all values of f16 and bf16, and samples of f32 and f64, on a CPU. The other "
         "bounds are those of the [sweep](../tests/sweep/bounds.def). Integers are exact. Of "
         "floats, with y the exact result:\n\n"
         "* `exact`: elements are moved or counted, or rounded once. `part`: other functions are "
         "made of it.\n"
         "* `8 eps`: at most 8 eps \\|y\\|. eps is the distance from 1 to the next float of the "
         "dtype, and eps' that of the dtype in which it is computed.\n"
         "* n and S: at most 4 eps \\|y\\| + 2 (sqrt(n) + 8) eps' S. n terms are summed, and S "
         "is their size. It is the largest element of the expression of NumPy, over the arguments. "
         "`R(v)` is the largest, the sum or the mean of v, as `reduction` says. N is the number of "
         "rows that `reduction=\"sum\"` adds, else 1. C is the extent of the classes, axis 1. P is "
         "C for targets of probabilities, else 1. `most(v)` is 1 without the argument. `wide` is "
         "eps / eps'.\n"
         "* `terms`: the same, with the number of terms and the sum of their absolute values.\n"
         "* `products`: the same and eps S more, with the number of products of a result, and as S "
         "the function of the absolute values.\n"
         "* `steps`: as often `products` as `einsum` rounds. Of m operands that is at most 2 m - 1 "
         "times: each joins what is before it, and may be summed before.\n");
    print_names();
    print_builtins();
    for (uint32_t i = 0; i < prelude_n_files; i++) print_theme(&prelude_files[i]);
}

/* Functions of the prelude that call ops of a class, themselves or by others: a bool for each of
 * prelude_defs. */
typedef struct Callers {
    OpClass cls;
    bool *calls;
} Callers;

static size_t name_bytes(const char *text) {
    return strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789");
}

static bool is_word(const char *name, const char *text, size_t n) {
    return strlen(name) == n && strncmp(name, text, n) == 0;
}

static bool calls_class(const Callers *callers, const char *text, size_t n) {
    if (callers->cls == CLASS_ONLINE && is_word("online", text, n)) return true;
    for (int op = 1; op < OP_COUNT; op++)
        if (op_info((OpId)op)->cls == callers->cls && is_word(op_info((OpId)op)->name, text, n))
            return true;
    for (uint32_t k = 0; k < prelude_n_defs; k++)
        if (is_word(prelude_defs[k].name, text, n)) return callers->calls[k];
    return false;
}

/* Whether the text of a def names such an op or function where a call or a block begins. */
static bool def_calls(const Callers *callers, const PreludeDef *def) {
    const char *at = prelude_files[def->file].text + def->span.begin;
    const char *end = prelude_files[def->file].text + def->span.end;
    for (at = strchr(at, '('); at < end; at++) {
        size_t n = name_bytes(at);
        if (*at == '#') at += strcspn(at, "\n");
        if (!n) continue;
        bool begins = at[n] == '(' || strncmp(at + n, " {", 2) == 0;
        if (begins && calls_class(callers, at, n)) return true;
        at += n - 1;
    }
    return false;
}

static void find_callers(Callers *callers) {
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (uint32_t k = 0; k < prelude_n_defs; k++) {
            if (callers->calls[k] || !def_calls(callers, &prelude_defs[k])) continue;
            callers->calls[k] = is_new = true;
        }
    }
}

/* The functions that are no part of others alone. */
static void print_callers(OpClass cls) {
    Callers callers = {cls, calloc(prelude_n_defs, sizeof(bool))};
    if (!callers.calls) exit(1);
    find_callers(&callers);
    for (uint32_t k = 0; k < prelude_n_defs; k++)
        if (callers.calls[k] && !is_part(prelude_defs[k].name))
            printf(" `%s`", prelude_defs[k].name);
    free(callers.calls);
}

static void print_own_kernels(void) {
    printf("\n## Kernels of their own\n\nElementwise ops, casts, reductions, views, concats and "
           "matrix products have the kernels that a compiler of tensors needs. Beside these there "
           "are %d kinds of kernels. The ops of a kind differ in what they combine by alone. Every "
           "other function, but for the built-in ones, is written in the language, over these ops. "
           "A program's own `def` hides "
           "any op and any function of its name.\n\n"
           "| | kind | its ops | functions over them |\n|---|---|---|---|\n",
           N_OWN_KERNELS);
    for (int i = 0; i < N_OWN_KERNELS; i++) {
        printf("| %d | %s |", i + 1, class_titles[own_kernels[i]]);
        for (int op = 1; op < OP_COUNT; op++)
            if (op_info((OpId)op)->cls == own_kernels[i]) printf(" `%s`", op_info((OpId)op)->name);
        printf(" |");
        print_callers(own_kernels[i]);
        puts(" |");
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
    puts("\n## Fast numerics\n\n`--numerics=fast` is held to wider bounds.\n\n* Values of f16 and "
         "bf16 stay f32 from op to op inside a kernel. So an op's result may be off by one more "
         "unit "
         "in its last place, or have a wider range. A `cast` and every store round.\n* A product "
         "that only a sum or a difference takes is not rounded by itself.\n* Quotients of f32 and "
         "the functions below are approximated where the target has an instruction for them. CPUs "
         "have none.\n* Products of bf16 may take subnormal numbers for zeros, as elements and as "
         "sums. "
         "A CPU's tile registers do.\n* Nothing of f64 is approximated, nor any other function. "
         "`pow` is none of "
         "them, since y log2(x) has no bound in f32.\n\nThe bound of an op follows from its "
         "primitives, `compiler/ir/prims.def`.\n\n| instead of | within, relatively | and "
         "absolutely | on a GPU |\n|---|---|---|---|");
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
    puts("\n`div` of a constant is a product with its reciprocal. The fast functions treat zeros, "
         "infinities, NaN and numbers outside their domain as the strict ones do. *PTX ISA* is the "
         "bound that NVIDIA's manual of the instruction states. *Measured* is the sweep of each "
         "form "
         "against its bound in `tests/codegen/test_emulated_math.c`, on an emulator. Its `tanh`, "
         "`lg2`, `sqrt`, `rsqrt`, `sin`, `cos` and `div.full` are off by as much as the manual "
         "allows; its `ex2` and `rcp` are rounded correctly. No GPU has swept this mode yet.\n\nA "
         "cast to the dtype that a value has already does nothing, in either mode: to round, cast "
         "to "
         "another dtype and back. The mode includes `--rewrite`, unless `--no-rewrite` forbids "
         "it.");
}

int main(void) {
    puts(
        "# Ops\n\nGenerated from `compiler/ir/ops.def`, `tests/ulp/found.def`, "
        "`tests/ulp/functions.def` and `dsl/prelude` "
        "by `make docs`; do not "
        "edit.\n\nEvery op computes in f32 for f16 and bf16 (else in its own dtype) and rounds "
        "once, at its end. `error` is the largest difference from the exact result, in units in "
        "the last place of the dtype. A number that follows is an absolute difference (f64 has one "
        "of its own). `exact` is correctly rounded, to the bit on every target. NaN passes "
        "through. Integers wrap to their dtype, whatever they are computed in.");
    for (int cls = 0; cls <= CLASS_MATMUL; cls++) {
        printf("\n## %s\n\n%s\n\n", class_titles[cls], class_docs[cls]);
        if (cls == CLASS_ELTWISE)
            print_eltwise(), print_errors_found();
        else
            print_others((OpClass)cls);
    }
    print_own_kernels();
    print_dtype_table();
    print_composites();
    print_fast();
    return 0;
}
