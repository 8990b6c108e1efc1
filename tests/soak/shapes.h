/* Random shapes for every template: which there are, programs drawn for each, and what a run used.
 */
#ifndef FUSEC_TESTS_SHAPES_H
#define FUSEC_TESTS_SHAPES_H

#include "lib/compile.h"
#include "lib/rig.h"
#include "random/rng.h"

enum {
    DTS_PLAIN = DTS_NUM | DTS_BOOL,
    DTS_HALF = 1 << DT_F16 | 1 << DT_BF16,
    DTS_FAST = DTS_HALF | 1 << DT_F32,
    DTS_BYTES = 1 << DT_I8 | 1 << DT_U8,
    DTS_MMA = DTS_FLOAT | DTS_BYTES,
    DTS_WGMMA = DTS_FAST | DTS_BYTES,
    DTS_SIMT = 1 << DT_F32 | 1 << DT_I32
};

typedef enum {
#define LOWERING(sym, name, gpu, cpu, dtypes, family, needs, seed, doc) LOWERING_##sym,
#include "lowerings.def"
    LOWERING_COUNT
} LoweringId;

typedef struct LoweringInfo {
    const char *name, *doc;
    unsigned dtypes; /* that programs are drawn with */
    uint64_t seed;   /* of the drawn programs */
} LoweringInfo;
const LoweringInfo *lowering_info(LoweringId id);
/* LOWERING_COUNT when there is none of this name. */
LoweringId lowering_by_name(const char *name, size_t n_bytes);
/* Whether the target has kernels of it. */
bool lowering_is_on(LoweringId id, const Target *target);

/* A program for the template, by `number`: the same for the same number anywhere. */
const char *lowering_source(Arena *arena, LoweringId id, uint64_t number);

/* What runs used: bit sets of variants. */
typedef struct LoweringUse {
    uint8_t variants[LOWERING_COUNT][DT_COUNT];
} LoweringUse;
/* Adds all that the plan has, at these values. */
void lowering_note_plan(const Plan *plan, const Target *target, const int64_t *symbol_values,
                        LoweringUse *use);
/* Adds what the last run of the plan's artifact used. */
/* `symbol_values` as the rig was placed with. */
void lowering_note_use(const Plan *plan, const Target *target, const Rig *rig,
                       const int64_t *symbol_values, LoweringUse *use);

/* Mistakes, for tests of all this: `stored_beyond` and `left_unwritten` in the memory of outputs,
 * `unsteady` runs, and `wrong_op_anywhere`, in each program another. False: there is none of this
 * name. */
bool shapes_plant(const char *name);
/* Before the program of this number is compiled. */
void shapes_plant_program(uint64_t number);
/* Whether its plan has a wrong op. */
bool shapes_is_planted(void);
bool shapes_are_unsteady(void);

/* Shapes met so far, each counted once. */
typedef struct ShapeSeen {
    uint64_t shape;
    uint8_t id, dtype, variant; /* LoweringId; variant MAX_VARIANTS: any of them */
} ShapeSeen;
typedef struct ShapeCount {
    Arena *arena;
    Vec(ShapeSeen) seen;
    uint32_t *slots; /* a hash set of `seen`, numbers from 1 */
    uint32_t n_slots;
    uint32_t n[LOWERING_COUNT];
    uint32_t by[LOWERING_COUNT][DT_COUNT][MAX_VARIANTS];
    bool is_too_large[LOWERING_COUNT]; /* for an emulator: none is wanted */
} ShapeCount;
/* `shape`: a hash of the extents. */
void shape_count_add(ShapeCount *count, const LoweringUse *use, uint64_t shape);
/* A line for each template, dtype and variant; returns how many of the target's templates have
 * fewer shapes than `wanted`. */
uint32_t shape_count_print(const ShapeCount *count, const Target *target, uint32_t wanted,
                           Text *out);
/* Each shape as a line, for shape_count_read to join with others'. */
void shape_count_write(const ShapeCount *count, Text *out);
bool shape_count_read(ShapeCount *count, const char *line);

#endif
