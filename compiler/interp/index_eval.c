/* Evaluation of index expressions. See index_eval.h. */
#include "interp/index_eval.h"

#include "base/arith.h"

typedef struct CodeTerm {
    int64_t coefficient;
    IndexAtomKind kind;
    uint32_t number; /* the axis, or the gathered scalar */
    const IndexCode *operand;
    int64_t divisor;
} CodeTerm;

struct IndexCode {
    int64_t offset;
    uint32_t n_terms;
    CodeTerm *terms;
};

static bool compile_term(Arena *arena, const IndexTab *tab, IndexTerm term,
                         const int64_t *symbol_values, CodeTerm *code) {
    const DimTab *dims = indextab_dims(tab);
    IndexAtom atom = index_atom(tab, term.atom);
    *code = (CodeTerm){.kind = atom.kind, .number = atom.axis};
    if (!dim_eval(dims, term.coefficient, symbol_values, &code->coefficient)) return false;
    if (atom.kind == ATOM_VALUE) code->number = atom.value;
    if (atom.kind != ATOM_DIV && atom.kind != ATOM_MOD) return true;
    code->operand = index_compile(arena, tab, atom.operand, symbol_values);
    return code->operand && dim_eval(dims, atom.divisor, symbol_values, &code->divisor);
}

const IndexCode *index_compile(Arena *arena, const IndexTab *tab, IndexId id,
                               const int64_t *symbol_values) {
    IndexExpr expr = index_expr(tab, id);
    IndexCode *code = arena_array(arena, IndexCode, 1);
    code->n_terms = expr.n_terms;
    code->terms = arena_array(arena, CodeTerm, expr.n_terms);
    if (!dim_eval(indextab_dims(tab), expr.offset, symbol_values, &code->offset)) return NULL;
    for (uint32_t i = 0; i < expr.n_terms; i++)
        if (!compile_term(arena, tab, expr.terms[i], symbol_values, &code->terms[i])) return NULL;
    return code;
}

static int64_t eval_atom(const CodeTerm *term, const IndexPoint *point) {
    switch (term->kind) {
    case ATOM_AXIS:
        return point->axes[term->number];
    case ATOM_VALUE:
        return point->value_at(point->user, term->number);
    case ATOM_DIV:
    case ATOM_MOD:
        break;
    }
    int64_t operand = index_eval(term->operand, point);
    /* A divisor of 0 occurs only in loops that never run. */
    int64_t quotient = term->divisor ? floor_div(operand, term->divisor) : 0;
    return term->kind == ATOM_DIV ? quotient : operand - quotient * term->divisor;
}

int64_t index_eval(const IndexCode *code, const IndexPoint *point) {
    int64_t sum = code->offset;
    for (uint32_t i = 0; i < code->n_terms; i++)
        sum += code->terms[i].coefficient * eval_atom(&code->terms[i], point);
    return sum;
}
