/* Predicates: what a version of a computation asks of the extents and pointers of a run. A
 * predicate is a conjunction of terms; one without terms always holds. The cost model evaluates it
 * at values of the dims, dumps print it, lowering assumes it, and the manifest states it to the
 * runtime, which evaluates it at each run. The kinds of terms are listed in ir/predicates.def; a
 * switch over them has no default, so that the compiler names every place that a new kind needs. */
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
            int64_t of;    /* ALIGNED: bytes; MULTIPLE: elements; more than 1 */
            uint64_t args; /* ALIGNED: bit set over the kernel's arguments; not empty */
        };
        struct {
            int64_t least, most; /* RANGE; INT64_MIN, INT64_MAX: no bound */
        };
    };
} PredicateTerm;

enum { MAX_PREDICATE_TERMS = 4 };
/* The terms stand in the order of their kinds, those of one kind in the order of being required.
 * There is one term of alignment at most. */
typedef struct Predicate {
    PredicateTerm terms[MAX_PREDICATE_TERMS];
    uint32_t n;
} Predicate;

/* Sets what is asked of pointers; it replaces what was asked. No args, or 1 byte: nothing. */
void predicate_align(Predicate *predicate, int64_t bytes, uint64_t args);
/* Requires a multiple of a dim, of one that is required already the larger of the two. */
void predicate_require_multiple(Predicate *predicate, DimId dim, int64_t of);
/* Sets the range that a dim must be in; it replaces the range that was set. */
void predicate_set_range(Predicate *predicate, DimId dim, int64_t least, int64_t most);
/* Adds a range to those that are set. */
void predicate_require_range(Predicate *predicate, DimId dim, int64_t least, int64_t most);
void predicate_drop(Predicate *predicate, TermKind kind);

/* The term of this kind that is number `n` among those, or NULL. */
const PredicateTerm *predicate_term(const Predicate *predicate, TermKind kind, uint32_t n);
bool predicate_terms_are_equal(const PredicateTerm *a, const PredicateTerm *b);
/* The dim of the first term of this kind; DIM_NONE: there is none. */
DimId predicate_dim(const Predicate *predicate, TermKind kind);
/* Whether some term is about extents. */
bool predicate_asks_extents(const Predicate *predicate);
bool predicate_same_extents(const Predicate *a, const Predicate *b);

/* What is known where the predicate holds: bytes that an argument's pointer is a multiple of (1:
 * any pointer), a number that a dim is a multiple of, and what it is at most. */
int64_t predicate_alignment(const Predicate *predicate, uint32_t arg);
int64_t predicate_multiple(const Predicate *predicate, DimId dim);
int64_t predicate_most(const Predicate *predicate, DimId dim);
/* From here on, until changed, the table takes for granted what the predicate says of extents.
 * NULL: nothing. */
void predicate_assume(const Predicate *predicate, IndexTab *tab);

/* Where a predicate is evaluated. */
typedef struct PredicateAt {
    const DimTab *dims;
    const int64_t *values;     /* by symbol */
    const uint64_t *addresses; /* by argument; NULL: they are as aligned as is asked */
} PredicateAt;
/* A term whose extent has no value, because it overflows, does not hold. */
bool predicate_term_holds(const PredicateTerm *term, const PredicateAt *at);
bool predicate_holds_at(const Predicate *predicate, const PredicateAt *at);
/* Whether the term holds for all values of the dims, if the pointers of `aligned` (bit set) do what
 * any term asks of them. */
bool predicate_term_is_certain(const PredicateTerm *term, const DimTab *dims, uint64_t aligned);

/* A predicate with exceptions: it holds where `when` holds and none of `unless` does. */
enum { MAX_UNLESS = 3 };
typedef struct Condition {
    Predicate when, unless[MAX_UNLESS];
    uint32_t n_unless;
} Condition;
/* Appends an exception that has no terms yet, to which the caller adds them. */
Predicate *condition_except(Condition *condition);
bool condition_holds_at(const Condition *condition, const PredicateAt *at);
/* 1 where a condition on extents holds, else 0; DIM_NONE: no dim says that. */
DimId condition_dim(DimTab *dims, const Condition *condition);

/* The value of a symbol that follows from others: that of a dim, or how far apart the rows of a
 * matrix are, or how wide a copy of it is, 0 where none is needed. */
struct DimRule {
    DimId value;      /* what the symbol stands for; DIM_NONE: it is a pitch or a width */
    DimId extent;     /* elements of a row */
    int64_t padded;   /* the pitch of a copy is a multiple of so many elements */
    Condition copied; /* where rows are copied; argument 0 is the matrix */
    bool is_width;    /* the width of the copy, else the pitch */
};

/* `, aligned 16, 1 <= M <= 64, K mult 8` */
void predicate_print(const Predicate *predicate, const DimTab *dims, Text *out);
/* `M * N >= 512, if N > 64 or N is no multiple of 8` */
void condition_print(const Condition *condition, const DimTab *dims, Text *out);

#endif
