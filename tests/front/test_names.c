/* The help below errors at what other libraries and languages write: front/foreign.def. */
#include "front/sema.h"

#include <criterion/criterion.h>
#include <string.h>

/* What the compiler says of `y = value` with x, a and b, f32[4, 8], and i, i32[4, 8]. */
static const char *said_of(Arena *arena, const char *value) {
    const char *head = "graph g(x: f32[4, 8], a: f32[4, 8], b: f32[4, 8], "
                       "i: i32[4, 8]) -> (z: f32[]) {\n  y = ";
    const char *source = str_format(arena, "%s%s\n  z = 1.0\n}", head, value);
    Diags diags = {.arena = arena};
    front_parse(arena, strtab_new(arena), &diags, source_new(arena, "t.g", source, strlen(source)));
    Text text = {.arena = arena};
    diag_print(&diags, &text);
    return diags.n_errors ? text_str(&text) : "";
}

Test(names, names_of_other_libraries_are_told_with_right_expressions) {
    static const struct {
        const char *theirs, *expression;
    } absent[] = {
#define ABSENT(theirs, expression) {theirs, expression},
#include "front/foreign.def"
    };
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        Arena *arena = arena_new(NULL);
        const char *told = said_of(arena, str_format(arena, "x + %s(x)", absent[i].theirs));
        cr_expect(strstr(told, "unknown op") && !strstr(told, "Did you mean"), "%s", told);
        cr_expect(strstr(told, absent[i].expression), "%s", told);
        cr_expect_str_empty(said_of(arena, absent[i].expression));
        arena_free(arena);
    }
}

/* A name that is known here, or a word that a name may stand for. */
static bool is_known(Arena *arena, const char *name) {
    const char *call = said_of(arena, str_format(arena, "%s(x)", name));
    const char *word = said_of(arena, str_format(arena, "[%s]", name));
    return !strstr(call, "unknown op") || !strstr(word, "unknown name");
}

Test(names, names_of_other_libraries_lead_to_names_that_are_known) {
    static const struct {
        const char *theirs, *ours;
    } foreign[] = {
#define FOREIGN(theirs, ours) {theirs, ours},
#include "front/foreign.def"
    };
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        Arena *arena = arena_new(NULL);
        const char *told = said_of(arena, str_format(arena, "%s(x)", foreign[i].theirs));
        cr_expect(strstr(told, str_format(arena, "Did you mean `%s`?", foreign[i].ours)), "%s",
                  told);
        cr_expect(is_known(arena, foreign[i].ours), "%s", foreign[i].ours);
        arena_free(arena);
    }
}

Test(names, calls_in_the_form_of_pytorch_are_told_with_right_ones) {
    static const struct {
        const char *theirs, *ours;
    } forms[] = {
#define FORM(theirs, ours) {theirs, ours},
#include "front/foreign.def"
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        Arena *arena = arena_new(NULL);
        const char *told = said_of(arena, forms[i].theirs);
        cr_expect(strstr(told, str_format(arena, "is `%s` here.", forms[i].ours)), "%s", told);
        cr_expect_str_empty(said_of(arena, forms[i].ours));
        arena_free(arena);
    }
}

Test(names, methods_of_functions_and_fields_are_told_with_right_expressions) {
    static const struct {
        const char *theirs, *expression;
    } methods[] = {
#define METHOD(theirs, expression) {theirs, expression},
#include "front/foreign.def"
    };
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        Arena *arena = arena_new(NULL);
        bool is_at = strncmp(methods[i].theirs, "at.", 3) == 0;
        const char *call = is_at ? str_format(arena, "x.at[0].%s(a)", methods[i].theirs + 3)
                                 : str_format(arena, "np.%s(x, i, a)", methods[i].theirs);
        const char *told = said_of(arena, call);
        cr_expect(strstr(told, str_format(arena, "fusec has no `%s`; write `%s`.",
                                          methods[i].theirs, methods[i].expression)),
                  "%s", told);
        cr_expect_str_empty(said_of(arena, methods[i].expression));
        arena_free(arena);
    }
}

Test(names, words_of_python_are_told_how_it_is_written) {
    static const struct {
        const char *word, *help;
    } words[] = {
#define WORD(word, help) {word, help},
#include "front/foreign.def"
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        Arena *arena = arena_new(NULL);
        const char *before = said_of(arena, str_format(arena, "x\n  %s a", words[i].word));
        const char *alone = said_of(arena, str_format(arena, "x\n  %s", words[i].word));
        cr_expect(strstr(before, str_format(arena, "unexpected `a`: %s", words[i].help)), "%s",
                  before);
        cr_expect(strstr(alone, words[i].help), "%s", alone);
        arena_free(arena);
    }
}

Test(names, words_that_begin_statements_elsewhere_are_told_how_it_is_written) {
    static const struct {
        const char *help, *words;
    } rows[] = {
#define STATEMENT(help, words) {help, words},
#include "front/foreign.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *arena = arena_new(NULL);
        for (const char *at = rows[i].words; *at;) {
            int n = (int)strcspn(at, " ");
            const char *told = said_of(arena, str_format(arena, "x\n  %.*s a", n, at));
            cr_expect(strstr(told, str_format(arena, "unexpected `a`: %s", rows[i].help)), "%s",
                      told);
            cr_expect(!strstr(said_of(arena, str_format(arena, "x + %.*s a", n, at)), rows[i].help),
                      "%.*s", n, at);
            at += n + (at[n] == ' ');
        }
        arena_free(arena);
    }
}

Test(names, names_that_no_function_has_are_told_with_the_reason) {
    static const struct {
        const char *why, *theirs;
    } missing[] = {
#define MISSING(why, theirs) {why, theirs},
#include "front/foreign.def"
    };
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        Arena *arena = arena_new(NULL);
        for (const char *at = missing[i].theirs; *at;) {
            int n = (int)strcspn(at, " ");
            const char *told = said_of(arena, str_format(arena, "%.*s(x)", n, at));
            const char *help = str_format(arena, "fusec has no `%.*s`: %s.", n, at, missing[i].why);
            cr_expect(strstr(told, help), "%s", told);
            at += n + (at[n] == ' ');
        }
        arena_free(arena);
    }
}

static void expect_told(const char *const (*cases)[2], size_t n) {
    for (size_t i = 0; i < n; i++) {
        Arena *arena = arena_new(NULL);
        const char *told = said_of(arena, cases[i][0]);
        cr_expect(strstr(told, cases[i][1]), "%s: %s", cases[i][0], told);
        arena_free(arena);
    }
}

Test(names, signs_of_other_languages_are_told_as_they_are_written_here) {
    static const char *const cases[][2] = {
        {"i >>> 2", "`>>` of unsigned integers puts zeros in front"},
        {"x <> a", "write `!=`"},
        {"x === a", "write `==`"},
        {"x !== a", "write `!=`"},
        {"x => a", "write `>=`"},
        {"x > 0 ? x : a", "a choice is `a if c else b`, of elements `where(c, a, b)`"},
        {"x\n  w := x", "a name is bound by `=`"},
        {"x\n  x++", "bind a name to the result"},
        {"x |> relu", "write f(x)"},
        {"x .* a", "operators work on elements"},
        {"x'", "transpose(x)"},
        {".5 * x", "a digit on both sides of its point"},
        {"1. * x", "a digit on both sides of its point"},
        {"1.0f * x", "a number has no letters behind it"},
        {"x /* all */", "a comment begins with `#`"},
        {"x + \\\n  a", "inside brackets"},
        {"x\n  if i:", "a choice is `a if c else b`"},
        {"x\n  np.add.at(x, i, a)", "a statement binds a name"},
        {"x\n  x[0] = a", "a statement binds a name"},
        {"x\n  w: f32[4] = x", "a name has no type here"},
        {"x\n  def f(q): return q", "a `def` stands outside of graphs"},
        {"x, a", "several values are a list"},
        {"{x}", "a list stands in square brackets"},
        {"x as f32", "another dtype is `cast(x, f32)`"},
        {"x in a", "`any(x == a)`"},
        {"cast(x, fp8)", "Did you mean `f8e4m3`?"},
        {"cast(x, int4)", "the narrowest dtypes have 8 bits"},
        {"cast(x, \"f16\")", "a name without quotes"},
        {"lax.switch(i, x, a)", "write `where(i == 0, x, where(i == 1, a, b))`"},
        {"lax.scan(f, x, a)", "write `loop t in 0:4 with s = x[0] { return s + a[t] }`"},
        {"lax.dynamic_slice_in_dim(x, 0, 2)", "write `dynamic_slice("},
        {"popcount(i)", "write `sum(unsqueeze(i, -1) >> iota([32]) & 1, axis=-1)`"},
        {"lax.no_such_function(x)", "Functions have no module in front."},
        {"sqrtf(x)", "Did you mean `sqrt`?"},
    };
    expect_told(cases, sizeof cases / sizeof cases[0]);
}

Test(names, what_other_languages_write_is_told_as_it_is_written_here) {
    static const char *const cases[][2] = {
        {"torch.relu(x)", "write `relu`"},
        {"F.relu(x)", "write `relu`"},
        {"torch.nn.functional.layer_norm(x)", "write `layernorm`"},
        {"np.unique(x)", "fusec has no `unique`: the extents of its result would depend"},
        {"torch.square(x)", "write `x * x`"},
        {"x.sum()", "write `sum(x, ..)`"},
        {"x.mean(dim=1)", "write `mean(x, ..)`"},
        {"x[0].view(8)", "write `reshape(x, ..)`"},
        {"x.float()", "write `cast(x, f32)`"},
        {"x.size(0)", "write `x.shape`"},
        {"x.add_(a)", "write `add(x, ..)`"},
        {"x.T", "write `transpose(x)`"},
        {"x.ndim", "write `rank(x)`"},
        {"x.dtype", "write `dtype(x)`"},
        {"x.grad", "there are no gradients"},
        {"torch.float32", "write `f32`"},
        {"cast(x, float32)", "Did you mean `f32`?"},
        {"where(x > 0, True, False)", "Did you mean `true`?"},
        {"x * pi", "3.14159"},
        {"x ** 2", "`**` is no operator"},
        {"sum(x, axis=(0, 1))", "a list stands in brackets, as in `[0, 1]`"},
        {"zeros((4, 8))", "a list stands in brackets"},
        {"f32(x)", "write `cast(x, f32)`"},
        {"float(x)", "write `cast(x, f32)`"},
        {"np.float32(x)", "write `cast(x, f32)`"},
        {"x.bool()", "write `cast(x, bool)`"},
        {"np.interp(x, a, b)", "`interpolated` of docs/ORDER.md"},
        {"x[None]", "Write unsqueeze(x, 0)"},
        {"x[:, None]", "Write unsqueeze(x, 1)"},
        {"x += a", "bind a name to the result"},
        {"nn.ReLU()(x)", "a call gives no function"},
        {"x * np.inf", "`inf` and `nan` have no module in front"},
        {"x // a", "`//` is no operator"},
        {"x > 0 and a > 0", "the operator is `&&`"},
        {"LeakyRelu(x)", "Did you mean `leaky_relu`?"},
        {"Softmax(x)", "Did you mean `softmax`?"},
        {"relu_(x)", "Did you mean `relu`?"},
        {"transpose_copy(x)", "Did you mean `transpose`?"},
        {"numel(x)", "write `n_elements(x.shape)`"},
        {"gru(x)", "a recurrence is a `loop`"},
        {"sum(x, keepdim=true)", "Did you mean `keep`?"},
        {"std(x, unbiased=true)", "Did you mean `correction`?"},
    };
    expect_told(cases, sizeof cases / sizeof cases[0]);
}
