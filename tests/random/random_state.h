/* Internal to the random program generator: the program so far, and the makers of statements. */
#ifndef FUSEC_TESTS_RANDOM_STATE_H
#define FUSEC_TESTS_RANDOM_STATE_H

#include "ir/graph.h"
#include "random/random_graph.h"
#include "random/rng.h"

typedef struct RandomValue {
    const char *name;
    Dtype dtype;
    Shape shape;
    double lo, hi; /* approximate range of its elements */
    uint32_t n_uses;
    bool is_statement;
} RandomValue;

enum { RANDOM_POOL = 6 };

typedef struct RandomState {
    Arena *arena;
    Rng rng;
    RandomGraphOptions options;
    DimTab *dims;
    Program program;
    Vec(RandomValue) values;
    DimId pool[RANDOM_POOL]; /* extents that shapes are drawn from, so that shapes match */
    Rng empties;             /* draws what has no elements, and nothing else */
    uint32_t empty_percent;  /* of the places that may have no elements */
} RandomState;

/* Whether the extent, dim or slice that is drawn next has, or may have, no elements. */
bool random_wants_empty(RandomState *s);
/* 0, or an extent that is 0 for the least value of a dim. */
DimId random_empty_extent(RandomState *s);

/* A maker adds the statements of one op and returns the number of its value, or RANDOM_NONE when
 * the op does not fit. `arg` is its first argument, of a dtype that the op takes, or RANDOM_NONE to
 * choose one of dtype `dtype`. */
enum { RANDOM_NONE = -1 };
int random_make(RandomState *s, OpId op, Dtype dtype, int arg);
int random_make_eltwise(RandomState *s, OpId op, Dtype dtype, int arg);
int random_make_cast(RandomState *s, OpId op, Dtype dtype, int arg);
/* A cast of a value of `dtype` to `to`. */
int random_make_cast_to(RandomState *s, OpId op, Dtype dtype, Dtype to);
int random_make_source(RandomState *s, OpId op, Dtype dtype, int arg);
int random_make_reduce(RandomState *s, OpId op, Dtype dtype, int arg);
int random_make_scan(RandomState *s, OpId op, Dtype dtype, int arg);
int random_make_segments(RandomState *s, OpId op, Dtype dtype, int arg);
int random_make_update(RandomState *s, OpId op, Dtype dtype, int arg);
int random_make_sort(RandomState *s, OpId op, Dtype dtype, int arg);
int random_make_argreduce(RandomState *s, OpId op, Dtype dtype, int arg);
int random_make_view(RandomState *s, OpId op, Dtype dtype, int arg);
int random_make_concat(RandomState *s, OpId op, Dtype dtype, int arg);
int random_make_matmul(RandomState *s, OpId op, Dtype dtype, int arg);
/* Softmax and product, with `arg` as the scores or as the values; `dtype`: that of the values. */
int random_make_online(RandomState *s, OpId op, Dtype dtype, int arg);
/* Attention of `arg` to new inputs, over as many keys as an extent of the pool says, in one of many
 * spellings, some of them in an `online` block. */
int random_make_attention(RandomState *s, Dtype dtype, int arg);
int random_make_composite(RandomState *s, Dtype dtype, int arg);
/* Makes a pattern of several ops, by its number. */
int random_make_pattern(RandomState *s, uint64_t number);
/* Makes rows with further readers than a row kernel, by its number. False: it did not fit. */
bool random_make_row_pattern(RandomState *s, uint64_t number);
/* A reduction over exactly these axes. */
int random_make_reduce_axes(RandomState *s, OpId op, int arg, uint32_t axes);
int random_make_segments_axis(RandomState *s, OpId op, int arg, uint32_t axis);
int random_make_sort_axis(RandomState *s, OpId op, int arg, uint32_t axis);
int random_make_argreduce_axis(RandomState *s, OpId op, int arg, uint32_t axis);
/* Makes a value, of a kind by its number, and slices of it. False: it did not fit. */
bool random_make_parts(RandomState *s, uint64_t number);
/* Makes a loop of a few steps, of a kind by its number. */
int random_make_loop(RandomState *s, uint64_t number);
/* Makes a loop of as many steps as a dim says, of a kind by its number. */
int random_make_repeated(RandomState *s, uint64_t number);
/* Makes several statements of short extents that read existing values repeatedly. */
void random_make_again(RandomState *s);

/* Values and their properties. */
RandomValue *random_value(RandomState *s, int value);
Shape random_shape(RandomState *s, uint32_t min_rank, uint32_t max_rank);
bool random_fits(RandomState *s, const Shape *shape);
/* Adds an input or param. */
int random_input(RandomState *s, Dtype dtype, const Shape *shape);
/* `arg` if given, else an existing value of that dtype and rank, or a new input. */
int random_pick(RandomState *s, Dtype dtype, uint32_t min_rank, uint32_t max_rank, int arg);
/* Adds `name = text` of the given type and range; counts a use of every value it names. */
int random_bind(RandomState *s, Dtype dtype, const Shape *shape, double lo, double hi,
                const char *text);
/* `[B, 8]` */
const char *random_shape_str(RandomState *s, const Shape *shape);
/* A literal of the dtype. */
const char *random_number(RandomState *s, Dtype dtype, double value);
/* The value's name, or `clamp(name, lo, hi)` when its range is larger; sets lo and hi to the
 * resulting range. */
const char *random_within(RandomState *s, int value, double *lo, double *hi);
/* Limit of the magnitude of values. */
double random_limit(Dtype dtype);
/* The least value: 0, or the limit with a sign. */
double random_least(Dtype dtype);
/* Whether another dtype of its width is no float. */
bool random_bitcasts(Dtype dtype);

#endif
