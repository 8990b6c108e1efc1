/* Dims as source text. See dim.h. */
#include "ir/dim/dim.h"

static void print_factor(const DimTab *tab, DimAtom atom, Text *out) {
    if (!atom.is_division) {
        text_puts(out, dim_symbol_info(tab, atom.symbol)->name);
        return;
    }
    text_puts(out, "((");
    dim_print(tab, atom.numerator, out);
    text_puts(out, ") / (");
    dim_print(tab, atom.divisor, out);
    text_puts(out, "))");
}

void dim_print(const DimTab *tab, DimId dim, Text *out) {
    if (!dim) {
        text_puts(out, "?");
        return;
    }
    int64_t constant = dim_constant_part(tab, dim);
    uint32_t n_terms = dim_n_terms(tab, dim);
    for (uint32_t i = 0; i < n_terms; i++) {
        DimTerm term = dim_term(tab, dim, i);
        int64_t c = term.coefficient;
        if (i)
            text_puts(out, c < 0 ? " - " : " + ");
        else if (c < 0)
            text_puts(out, "-");
        int64_t magnitude = c < 0 ? -c : c;
        if (magnitude != 1) text_printf(out, "%lld*", (long long)magnitude);
        for (uint32_t k = 0; k < term.n_atoms; k++) {
            if (k) text_puts(out, "*");
            print_factor(tab, dim_atom(tab, term.atoms[k]), out);
        }
    }
    if (!n_terms)
        text_printf(out, "%lld", (long long)constant);
    else if (constant)
        text_printf(out, " %c %lld", constant < 0 ? '-' : '+',
                    (long long)(constant < 0 ? -constant : constant));
}

const char *dim_str(const DimTab *tab, Arena *arena, DimId dim) {
    Text text = {.arena = arena};
    dim_print(tab, dim, &text);
    return text_str(&text);
}
