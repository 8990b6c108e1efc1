/* Dims: tensor extents as interned canonical integer expressions over named symbols. Equal
 * expressions have equal ids; ids are small integers, numbered in order of creation.
 *
 * Canonical form: a constant plus a sum of coefficient * product of atoms. An atom is a symbol, or
 * a floor division of two dims that does not simplify. Every dim knows a range and a multiple,
 * which follow from the declarations of its symbols. Arithmetic that could exceed 2^62 anywhere in
 * its range gives DIM_NONE. */
#ifndef FUSEC_IR_DIM_DIM_H
#define FUSEC_IR_DIM_DIM_H

#include "base/str.h"
#include "base/vec.h"

typedef uint32_t DimId;
enum { DIM_NONE = 0, DIM_MAX_SYMBOLS = 64 };
#define DIM_LIMIT ((int64_t)1 << 62)

typedef Vec(DimId) VecDim;
typedef struct DimTab DimTab;

/* How the value of a symbol follows from other symbols at the start of a run: see
 * ir/predicate.h. */
typedef struct DimRule DimRule;

typedef struct DimSymbol {
    Str name;
    int64_t lo, hi; /* inclusive */
    int64_t multiple;
    const DimRule *rule; /* NULL: the source declares the symbol */
} DimSymbol;

DimTab *dimtab_new(Arena *arena);
/* A copy of the table with the same ids, to which dims can be added. */
DimTab *dimtab_copy(Arena *arena, const DimTab *tab);
/* Declares a symbol and returns its index, counted from 0 in order of declaration. lo >= 0,
 * multiple >= 1. */
uint32_t dim_declare(DimTab *tab, DimSymbol symbol);
uint32_t dim_n_symbols(const DimTab *tab);
const DimSymbol *dim_symbol_info(const DimTab *tab, uint32_t symbol);

DimId dim_const(DimTab *tab, int64_t value);
DimId dim_symbol(DimTab *tab, uint32_t symbol);
DimId dim_add(DimTab *tab, DimId a, DimId b);
DimId dim_sub(DimTab *tab, DimId a, DimId b);
DimId dim_mul(DimTab *tab, DimId a, DimId b);
/* Floor division. Returns DIM_NONE unless b is positive over its whole range. */
DimId dim_div(DimTab *tab, DimId a, DimId b);
DimId dim_mul_const(DimTab *tab, DimId a, int64_t factor);
/* ceil(a / step) for a constant positive step. */
DimId dim_ceil_div(DimTab *tab, DimId a, int64_t step);
/* The least multiple of `step` that is at least `a`; `a` itself if it is known to be a multiple. */
DimId dim_round_up(DimTab *tab, DimId a, int64_t step);

bool dim_is_const(const DimTab *tab, DimId dim, int64_t *value);
bool dim_equals_const(const DimTab *tab, DimId dim, int64_t value);
bool dim_is_symbol(const DimTab *tab, DimId dim, uint32_t *symbol);
int64_t dim_lo(const DimTab *tab, DimId dim);
int64_t dim_hi(const DimTab *tab, DimId dim);
/* The largest number that is known to divide every value of the dim (0 for the constant 0). */
int64_t dim_multiple(const DimTab *tab, DimId dim);
/* a / b if b divides a as a polynomial, that is, for all values; DIM_NONE otherwise. */
DimId dim_exact_div(DimTab *tab, DimId a, DimId b);
/* Whether ranges and the difference prove a <= b for all values of the symbols. */
bool dim_always_le(DimTab *tab, DimId a, DimId b);
/* The largest value of `dims`, 0 if there are none. Returns false as dim_eval does. */
bool dim_eval_largest(const DimTab *tab, const VecDim *dims, const int64_t *symbol_values,
                      int64_t *value);
/* Bit set of the symbols in the dim. A symbol that stands for a value counts as the symbols of the
 * value. */
uint64_t dim_symbols_used(const DimTab *tab, DimId dim);

/* The value for given symbol values (indexed by symbol). Returns false on overflow and division by
 * zero. */
bool dim_eval(const DimTab *tab, DimId dim, const int64_t *symbol_values, int64_t *value);
/* dim_eval as a number; 0 for DIM_NONE and if there is no value. */
double dim_number(const DimTab *tab, DimId dim, const int64_t *symbol_values);

/* 1 where value >= bound, else 0. Returns DIM_NONE if out of range. */
DimId dim_at_least(DimTab *tab, DimId value, int64_t bound);
/* A symbol that stands for a value of 0 or 1; equal values get the same symbol. A number follows
 * `name` except for the first. Returns DIM_NONE if no symbols are left. */
DimId dim_name_value(Arena *arena, DimTab *tab, const char *name, DimId value);
/* Whether the rule copies rows, if addresses are aligned; `*extent` is set to the elements of a
 * row. Returns false too if the extent has no value. */
bool dim_rule_copies(const DimTab *tab, const DimRule *rule, const int64_t *symbol_values,
                     int64_t *extent);
/* Fills in the values of symbols with rules. */
void dim_follow_rules(const DimTab *tab, int64_t *symbol_values);

/* Prints source syntax: `2*B + H*W + 1`, a division as `(B + 1) / 2`. The text parses back to the
 * same dim. */
void dim_print(const DimTab *tab, DimId dim, Text *out);
/* Prints several dims as `max(a, b)`. */
void dim_print_largest(const DimTab *tab, const VecDim *dims, Text *out);
const char *dim_str(const DimTab *tab, Arena *arena, DimId dim);

/* The structure of a dim, for code generators: a constant plus a sum of terms. */
typedef struct DimTerm {
    int64_t coefficient;
    uint32_t n_atoms;
    const uint32_t *atoms; /* a power repeats its atom */
} DimTerm;
typedef struct DimAtom {
    bool is_division;
    uint32_t symbol;          /* if not a division */
    DimId numerator, divisor; /* if a division */
} DimAtom;
int64_t dim_constant_part(const DimTab *tab, DimId dim);
uint32_t dim_n_terms(const DimTab *tab, DimId dim);
DimTerm dim_term(const DimTab *tab, DimId dim, uint32_t i);
DimAtom dim_atom(const DimTab *tab, uint32_t atom);
/* If `a` is a quotient plus a number: a / b as one division; else DIM_NONE. */
DimId dim_div_nested(DimTab *tab, DimId a, DimId b);

#endif
