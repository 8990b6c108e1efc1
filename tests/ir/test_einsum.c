/* Einsum beside the sum that its equation states, term by term: chosen equations, and random ones
 * of one to four operands. */
#include "interp/interp.h"
#include "ir/build/build.h"
#include "random/random_data.h"

#include <criterion/criterion.h>
#include <math.h>

enum { MAX_OPERANDS = 4, N_LETTERS = 5 };

/* An equation over the letters a to e, of these extents. Axes of 1 stretch where they are marked by
 * a capital letter. */
static const int64_t extents[N_LETTERS] = {2, 3, 4, 2, 3};

typedef struct Terms {
    uint32_t n;
    const char *letters[MAX_OPERANDS];
    const char *result;
} Terms;

static int letter_of(char c) {
    return (c | 32) - 'a';
}

static int64_t extent_of(char c) {
    return c >= 'a' ? extents[letter_of(c)] : 1;
}

/* The element of an operand at the values of the letters. */
static double element(const Tensor *x, const char *letters, const int64_t *at) {
    int64_t index = 0;
    for (const char *c = letters; *c; c++)
        index = index * extent_of(*c) + (*c >= 'a' ? at[letter_of(*c)] : 0);
    return x->data[index];
}

/* Adds the products over all values of the letters to the elements of the result. */
static void sum_up(const Terms *t, const Tensor *xs, double *sums) {
    bool stands[N_LETTERS] = {false};
    for (uint32_t i = 0; i < t->n; i++)
        for (const char *c = t->letters[i]; *c; c++)
            if (*c >= 'a') stands[letter_of(*c)] = true;
    int64_t at[N_LETTERS] = {0};
    for (bool goes_on = true; goes_on;) {
        double product = 1;
        int64_t index = 0;
        for (uint32_t i = 0; i < t->n; i++) product *= element(&xs[i], t->letters[i], at);
        for (const char *c = t->result; *c; c++)
            index = index * extents[letter_of(*c)] + at[letter_of(*c)];
        sums[index] += product;
        goes_on = false;
        for (int k = 0; k < N_LETTERS && !goes_on; k++) {
            at[k] = stands[k] && at[k] + 1 < extents[k] ? at[k] + 1 : 0;
            goes_on = at[k] != 0;
        }
    }
}

static const char *equation_of(Arena *arena, const Terms *t) {
    Text text = {.arena = arena};
    for (uint32_t i = 0; i < t->n; i++) {
        text_puts(&text, i ? "," : "");
        for (const char *c = t->letters[i]; *c; c++) text_printf(&text, "%c", *c | 32);
    }
    text_printf(&text, "->%s", t->result);
    return text_str(&text);
}

static void check_einsum(const char *equation, const Terms *t, Rng *rng) {
    Arena *arena = arena_new(NULL);
    const char *error = NULL;
    Module *module = module_new(arena, strtab_new(arena), source_new(arena, "none", "", 0));
    Builder *b = build_new(arena, module->dims, source_new(arena, "none", "", 0), "g");
    Tensor inputs[MAX_OPERANDS];
    NodeId xs[MAX_OPERANDS];
    for (uint32_t i = 0; i < t->n; i++) {
        DimId dims[MAX_RANK];
        int64_t numbers[MAX_RANK];
        uint32_t rank = 0;
        for (const char *c = t->letters[i]; *c; c++) numbers[rank++] = extent_of(*c);
        for (uint32_t k = 0; k < rank; k++) dims[k] = dim_const(b->dims, numbers[k]);
        xs[i] = build_input(b, str_format(arena, "x%u", i), DT_F64, (DimList){rank, dims});
        cr_assert(tensor_new(arena, DT_F64, rank, numbers, &inputs[i]));
        random_fill(rng, FILL_UNIFORM, &inputs[i]);
    }
    NodeId y = build_einsum(b, equation, t->n, xs, PRECISION_FULL, NULL);
    BuildError built;
    cr_assert(!build_take_error(b, &built), "%s: %s", equation, built.message);
    build_output(b, "y", y, 0);
    const Graph *graph = build_finish(b);
    cr_assert(graph, "%s", equation);
    Tensor *values = arena_array(arena, Tensor, graph->nodes.n);
    cr_assert(interp_graph(graph, NULL, inputs, NULL, values, arena, &error), "%s", error);
    const Tensor *got = &values[graph->outputs.data[0].node];
    int64_t n = tensor_n_elems(got), n_wanted = 1;
    for (const char *c = t->result; *c; c++) n_wanted *= extents[letter_of(*c)];
    cr_assert_eq(n, n_wanted, "%s", equation);
    double *sums = arena_array(arena, double, (size_t)n);
    sum_up(t, inputs, sums);
    for (int64_t i = 0; i < n; i++)
        cr_expect(fabs(got->data[i] - sums[i]) <= 1e-10 * fmax(1, fabs(sums[i])),
                  "%s, element %lld: %g, want %g", equation, (long long)i, got->data[i], sums[i]);
    arena_free(arena);
}

static const struct {
    const char *equation;
    Terms terms;
} cases[] = {
    {"ij,jk->ik", {2, {"ab", "bc"}, "ac"}},
    {"ij,jk", {2, {"ab", "bc"}, "ac"}},
    {"jk,ij->ki", {2, {"bc", "ab"}, "ca"}},
    {" bij , bkj -> bik ", {2, {"abc", "aec"}, "abe"}},
    {"ii", {1, {"bb"}, ""}},
    {"ii->i", {1, {"bb"}, "b"}},
    {"iji->ji", {1, {"bab"}, "ab"}},
    {"jiijij->ij", {1, {"abbaba"}, "ba"}},
    {"ij->", {1, {"ab"}, ""}},
    {"ba", {1, {"ba"}, "ab"}},
    {"Zy", {1, {"ab"}, "ab"}}, /* capital letters come first */
    {"i,i->", {2, {"b", "b"}, ""}},
    {"i,j->ij", {2, {"a", "b"}, "ab"}},
    {"ij,->ji", {2, {"ab", ""}, "ba"}},
    {"ij,ij->ij", {2, {"ab", "ab"}, "ab"}},
    {"ij,k->j", {2, {"ab", "c"}, "b"}},
    {"ij,ij->j", {2, {"aB", "ab"}, "b"}},
    {"ij,jk->ik", {2, {"aB", "bc"}, "ac"}},
    {"ij,jk->ik", {2, {"ab", "Bc"}, "ac"}},
    {"bij,bjk->bik", {2, {"Abc", "ace"}, "abe"}},
    {"bhqd,bhkd->bhqk", {2, {"abcd", "abed"}, "abce"}},
    {"bhsd,hde->bhse", {2, {"abcd", "bde"}, "abce"}},
    {"kij,ljm->kilm", {2, {"abc", "dce"}, "abde"}},
    {"...ij,...jk->...ik", {2, {"abcd", "bde"}, "abce"}},
    {"...i,...i", {2, {"abc", "c"}, "ab"}},
    {"i...->...", {1, {"abc"}, "bc"}},
    {"i...j->ji...", {1, {"abc"}, "cab"}},
    {"ij,jk,kl->il", {3, {"ab", "bc", "ce"}, "ae"}},
    {"ij,jk,kl,li->", {4, {"ab", "bc", "cd", "da"}, ""}},
};

Test(einsum, equations_are_sums_of_products) {
    Rng rng = rng_new(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_einsum(cases[i].equation, &cases[i].terms, &rng);
}

/* Draws letters, of which some stand twice, and some axes of 1. */
static Terms random_terms(Arena *arena, Rng *rng) {
    Terms t = {.n = 1 + (uint32_t)rng_below(rng, MAX_OPERANDS)};
    uint32_t drawn = 0, n_result = 0;
    for (uint32_t i = 0; i < t.n; i++) {
        uint32_t rank = (uint32_t)rng_below(rng, 5), own = 0;
        char *letters = arena_array(arena, char, rank + 1);
        for (uint32_t k = 0; k < rank; k++) {
            int letter = (int)rng_below(rng, N_LETTERS);
            bool is_first = !(own >> letter & 1), is_one = is_first && rng_below(rng, 8) == 0;
            own |= 1u << letter;
            letters[k] = (char)((is_one ? 'A' : 'a') + letter);
        }
        for (uint32_t k = 0; k < rank; k++) /* a diagonal has one extent */
            for (uint32_t l = 0; l < rank; l++)
                if (l != k && (letters[l] | 32) == (letters[k] | 32))
                    letters[k] |= 32, letters[l] |= 32;
        for (uint32_t k = 0; k < rank; k++)
            if (letters[k] >= 'a') drawn |= 1u << letter_of(letters[k]);
        t.letters[i] = letters;
    }
    char *result = arena_array(arena, char, N_LETTERS + 1);
    for (int letter = 0; letter < N_LETTERS; letter++) {
        if (!(drawn >> letter & 1) || rng_below(rng, 2)) continue;
        uint32_t at = (uint32_t)rng_below(rng, n_result + 1);
        memmove(result + at + 1, result + at, n_result++ - at);
        result[at] = (char)('a' + letter);
    }
    t.result = result;
    return t;
}

Test(einsum, random_equations_are_sums_of_products) {
    Arena *arena = arena_new(NULL);
    Rng rng = rng_new(7);
    for (int i = 0; i < 2000; i++) {
        Terms t = random_terms(arena, &rng);
        check_einsum(equation_of(arena, &t), &t, &rng);
    }
    arena_free(arena);
}
