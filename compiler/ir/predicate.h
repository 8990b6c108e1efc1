/* Predicates: conditions on the extents and pointers of a run under which a version of a
 * computation may run. A predicate is a conjunction of terms; a predicate without terms always
 * holds. The cost model evaluates it at values of the dims, dumps print it, lowering assumes it,
 * and the manifest states it to the runtime, which evaluates it in each run. ir/predicates.def
 * lists the kinds of terms. A switch over them has no default, so that the compiler reports every
 * place that a new kind needs. */
#ifndef FUSEC_IR_PREDICATE_H
#define FUSEC_IR_PREDICATE_H

#include "ir/index.h"

typedef enum {
#define TERM(symbol) TERM_##symbol,
#include "ir/predicates.def"
} TermKind;
enum {
    N_TERM_KINDS = 0
#define TERM(symbol) +1
#include "ir/predicates.def"
};

typedef struct PredicateTerm {
    TermKind kind;
    DimId dim; /* MULTIPLE, RANGE */
    union {
        struct {
            int64_t of;    /* ALIGNED: bytes; MULTIPLE: elements; above 1 */
            uint64_t args; /* ALIGNED: nonempty bit set of the kernel's arguments */
        };
        struct {
            int64_t least, most; /* RANGE; INT64_MIN and INT64_MAX mean no bound */
        };
        Str level; /* LEVEL: Target.name, so equal levels have equal addresses */
    };
} PredicateTerm;

enum { MAX_PREDICATE_TERMS = 5 };
/* Terms are ordered by kind; terms of one kind in the order in which they were required. There is
 * at most one ALIGNED and one LEVEL term. */
typedef struct Predicate {
    PredicateTerm terms[MAX_PREDICATE_TERMS];
    uint32_t n;
} Predicate;

/* Sets the alignment in bytes that `args` need and replaces the previous one. No args or 1 byte
 * means no requirement. */
void predicate_align(Predicate *predicate, int64_t bytes, uint64_t args);
/* Requires that the machine has a level. */
void predicate_require_level(Predicate *predicate, Str level);
/* Requires that a dim is a multiple of `of`. If a multiple is required already, the larger one
 * stays. */
void predicate_require_multiple(Predicate *predicate, DimId dim, int64_t of);
/* Sets the range of a dim and replaces the range set before. */
void predicate_set_range(Predicate *predicate, DimId dim, int64_t least, int64_t most);
/* Adds the range of a dim and keeps those set before. */
void predicate_require_range(Predicate *predicate, DimId dim, int64_t least, int64_t most);
void predicate_drop(Predicate *predicate, TermKind kind);

/* The `n`th term of this kind, or NULL. */
const PredicateTerm *predicate_term(const Predicate *predicate, TermKind kind, uint32_t n);
bool predicate_terms_are_equal(const PredicateTerm *a, const PredicateTerm *b);
/* The dim of the first term of this kind; DIM_NONE if there is none. */
DimId predicate_dim(const Predicate *predicate, TermKind kind);
/* Whether some term is about an extent. */
bool predicate_asks_extents(const Predicate *predicate);
/* Whether both say the same, but for pointers. */
bool predicate_same_but_pointers(const Predicate *a, const Predicate *b);
/* The level that the predicate requires; NULL: none. */
Str predicate_level(const Predicate *predicate);

/* What the predicate guarantees: the bytes of which an argument's pointer is a multiple (1: any
 * pointer), a number of which a dim is a multiple, and the dim's upper bound. */
int64_t predicate_alignment(const Predicate *predicate, uint32_t arg);
int64_t predicate_multiple(const Predicate *predicate, DimId dim);
int64_t predicate_most(const Predicate *predicate, DimId dim);
/* Makes the table assume until further notice what the predicate says about extents. NULL: no
 * assumption. */
void predicate_assume(const Predicate *predicate, IndexTab *tab);

/* The values at which a predicate is evaluated. */
typedef struct PredicateAt {
    const DimTab *dims;
    const int64_t *values;     /* by symbol */
    const uint64_t *addresses; /* by argument; NULL: aligned as required */
} PredicateAt;
/* A term does not hold if its extent has no value because of an overflow. The machine counts as one
 * that has every level. */
bool predicate_term_holds(const PredicateTerm *term, const PredicateAt *at);
bool predicate_holds_at(const Predicate *predicate, const PredicateAt *at);
/* Whether the term holds for all values of the dims, given that the pointers of `aligned` (bit set)
 * satisfy every alignment. */
bool predicate_term_is_certain(const PredicateTerm *term, const DimTab *dims, uint64_t aligned);

/* A predicate with exceptions: the condition holds where `when` holds and no predicate of `unless`
 * holds. */
enum { MAX_UNLESS = 3 };
typedef struct Condition {
    Predicate when, unless[MAX_UNLESS];
    uint32_t n_unless;
} Condition;
/* Appends an exception without terms; the caller adds its terms. */
Predicate *condition_except(Condition *condition);
bool condition_holds_at(const Condition *condition, const PredicateAt *at);
/* 1 where the condition holds, 0 elsewhere, for conditions on extents. Returns DIM_NONE if no dim
 * expresses it. */
DimId condition_dim(DimTab *dims, const Condition *condition);

/* The value of a symbol that follows from other symbols: the value of a dim; the row pitch of a
 * matrix; or the width of its copy, 0 if no copy is made. */
struct DimRule {
    DimId value;      /* the symbol's value; DIM_NONE: a pitch or a width */
    DimId extent;     /* elements of a row */
    int64_t padded;   /* a copy's pitch is a multiple of so many elements */
    Condition copied; /* whether rows are copied; argument 0 is the matrix */
    bool is_width;    /* the width of the copy; otherwise the pitch */
};

/* `, aligned 16, 1 <= M <= 64, K mult 8` */
void predicate_print(const Predicate *predicate, const DimTab *dims, Text *out);
/* `M * N >= 512, if N > 64 or N is no multiple of 8` */
void condition_print(const Condition *condition, const DimTab *dims, Text *out);

#endif
