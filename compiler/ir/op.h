/* The op table, expanded from ops.def: everything the compiler knows about an op. Passes read the
 * class and the traits. What views and sources need beyond that (index maps, values) is written
 * once, in ir/indexmap and fuse/inline. */
#ifndef FUSEC_IR_OP_H
#define FUSEC_IR_OP_H

#include "ir/dtype.h"
#include "ir/prim.h"
#include "ir/scalar.h"

/* The class decides how an op takes part in fusion and which fields of its row are used. */
typedef enum {
    CLASS_SOURCE,    /* no arguments: input, param, const, iota */
    CLASS_ELTWISE,   /* one output element from one element of each (broadcast) argument */
    CLASS_CAST,      /* elementwise; the node has the dtype */
    CLASS_REDUCE,    /* reduces axes of its argument by an associative combine */
    CLASS_ARGREDUCE, /* the index of the extreme element; result i32 */
    CLASS_SCAN,      /* running reductions along one axis */
    CLASS_SCAN_BY, /* running reductions along one axis by a function, of several tensors at once */
    CLASS_SORT,    /* the order of the elements along one axis; result i32 */
    CLASS_SEGMENT, /* reductions of the runs of equal numbers in a second argument, along an axis */
    CLASS_VIEW,    /* moves no data: an index map from the result to its (first) argument */
    CLASS_CONCAT,  /* several arguments side by side along one axis */
    CLASS_ONLINE,  /* softmax of rows and the product with a second argument, by a recurrence */
    CLASS_UPDATE,  /* its first argument with a part replaced, at a place known at run time */
    CLASS_LOOP,    /* a loop that is repeated at run time (ir/loop.h) */
    CLASS_MATMUL   /* matmul */
} OpClass;

typedef enum {                /* result dtype from the argument dtypes */
               RESULT_SAME,   /* all (data) arguments share one dtype; so is the result */
               RESULT_BOOL,   /* comparison */
               RESULT_SELECT, /* first argument bool, the others share the result's dtype */
               RESULT_NODE    /* the node has it: sources, cast, matmul, argmax and argmin */
} ResultRule;

enum { /* traits: claims that tests check by sampling */
       TRAIT_NONE = 0,
       TRAIT_COMMUTATIVE = 1 << 0, /* f(a, b) = f(b, a) to the bit */
       TRAIT_IDEMPOTENT = 1 << 1,  /* f(f(a)) = f(a) for unary */
       TRAIT_MONOTONE = 1 << 2,    /* never decreasing, unary */
       TRAIT_ZERO_KEEPING = 1 << 3 /* f(0) = 0 */
};

typedef enum {
    OP_NONE,
#define SOURCE(sym, ...) OP_##sym,
#define ELTWISE(sym, ...) OP_##sym,
#define CAST(sym, ...) OP_##sym,
#define REDUCE(sym, ...) OP_##sym,
#define ARGREDUCE(sym, ...) OP_##sym,
#define SCAN(sym, ...) OP_##sym,
#define SCAN_BY(sym, ...) OP_##sym,
#define SORT(sym, ...) OP_##sym,
#define SEGMENT(sym, ...) OP_##sym,
#define VIEW(sym, ...) OP_##sym,
#define CONCAT(sym, ...) OP_##sym,
#define UPDATE(sym, ...) OP_##sym,
#define LOOP(sym, ...) OP_##sym,
#define ONLINE(sym, ...) OP_##sym,
#define CONTRACT(sym, ...) OP_##sym,
#include "ir/ops.def"
    OP_COUNT
} OpId;

typedef struct OpInfo {
    const char *name; /* as users write it */
    OpClass cls;
    uint32_t min_args, max_args;
    DtypeSet dtypes; /* allowed for the (data) arguments */
    ResultRule result;
    uint32_t traits;
    double default_last; /* value of an omitted last argument when min_args < max_args (ELTWISE) */
    /* ELTWISE: the definition in double and, for bool and integers (wrapped afterwards), in int64.
     * It is independent of `body`, which computes in primitives on compute-typed operands. A
     * select's first argument is 0 or 1. */
    double (*ref)(double a, double b, double c);
    int64_t (*ref_int)(int64_t a, int64_t b, int64_t c); /* NULL: neither integers nor bool */
    /* `dtype` is the type to which the result will be rounded. */
    ScalarId (*body)(ScalarTab *tab, Dtype dtype, ScalarId a, ScalarId b, ScalarId c);
    double domain_lo, domain_hi;   /* the range from which tests sample every argument */
    double double_ulp, single_ulp; /* see op_ulp */
    double abs_error;              /* or absolute error in f32 and narrower, whichever is larger */
    /* REDUCE, ARGREDUCE, SCAN, SORT and SEGMENT */
    PrimId combine;
    double identity; /* +-inf stands for the extreme of an integer dtype */
    bool divides_by_count;
    PrimId power;    /* ONLINE: of the weights; PRIM_NONE: they are quantised quotients */
    PrimId row;      /* ONLINE: PRIM_NONE: the result is the product of the weights. Else it is the
                      * greatest value of the row; with powers it has their inverse `row` of the
                      * sum of the weights added */
    bool orders;     /* the value depends on the order of combination (sums, products) */
    const char *doc; /* one sentence, Markdown */
} OpInfo;

const OpInfo *op_info(OpId op);
/* How an ONLINE op without powers makes weights of the scores x of a row, whose greatest absolute
 * value is M, and at least `least`: scale * x / M, rounded to an integer if it `rounds`, and then
 * to `dtype`. */
typedef struct QuantizeMap {
    double scale, least; /* elements of the dtype of the scores; `least` may be -infinity */
    Dtype dtype;
    bool rounds;
} QuantizeMap;

static inline bool quantize_map_equal(const QuantizeMap *a, const QuantizeMap *b) {
    return a->scale == b->scale && a->least == b->least && a->dtype == b->dtype &&
           a->rounds == b->rounds;
}

/* Whether a matmul multiplies weights of the map's dtype and such values. */
static inline bool quantize_map_fits(const QuantizeMap *map, Dtype values) {
    DtypeSet alike = dtype_in(values, DTS_FLOAT)    ? (DtypeSet)1 << values
                     : dtype_in(values, DTS_STORED) ? DTS_STORED
                                                    : DTS_BYTE;
    return dtype_in(map->dtype, alike);
}

/* The dtype of the scores of an ONLINE op of these values, in which it computes. */
static inline Dtype online_compute(Dtype values) {
    return dtype_is_int(values) ? DT_F32 : dtype_compute(values);
}
/* The dtype of the result of an ONLINE op of these values, unless its call names another one. */
static inline Dtype online_dtype(OpId op, Dtype values) {
    return op_info(op)->row || !dtype_in(values, DTS_FLOAT) ? online_compute(values) : values;
}
/* The error allowed in a dtype, in units in the last place; 0: correctly rounded on every target. A
 * float narrower than f32 is f32's result rounded, within 1 ULP. */
double op_ulp(const OpInfo *info, Dtype dtype);
/* The absolute error allowed in a dtype. That of f64 is smaller by the ratio of the precisions of
 * f64 and f32. */
double op_abs_error(const OpInfo *info, Dtype dtype);
/* Finds an op by its spelling in the language; OP_NONE if there is none. */
OpId op_by_name(const char *name);

/* Per op: the cost of its body, as of scalar_cost; 0 for an op without a body. */
uint32_t *op_costs(Arena *arena);

#endif
