/* The soak program's drivers (random graphs, the sweep, random shapes, planted mistakes) and what
 * they share. */
#ifndef FUSEC_TESTS_SOAK_H
#define FUSEC_TESTS_SOAK_H

#include "lib/pair.h"
#include "random/coverage.h"
#include "random/program.h"

typedef struct Soak {
    uint64_t n, seed;
    uint64_t part, n_parts; /* of the sweep: every n_parts-th program from number `part` on */
    bool is_sweep, is_one, is_faults, is_shapes, is_attention, is_updates;
    const char *one_shape;     /* TEMPLATE:PROGRAM:SHAPE, or NULL */
    const char *only;          /* the one template that shapes are drawn for, or NULL: all */
    const Target *against;     /* of the unfused programs of shapes; NULL: the same */
    const char *given_path;    /* of a program to reduce, or NULL */
    const char *coverage_path; /* where the counts of the coverage table go, or NULL */
    uint32_t max_reduced;      /* failing graphs that are reduced */
    uint64_t seconds;          /* after which nothing more is begun; 0: no such end */
    bool is_cuda, is_small;
    bool is_ulp;
    OpId ulp_op;              /* the one op to sweep, or OP_NONE: all */
    DtypeSet ulp_dtypes;      /* to sweep */
    uint64_t n_threads;       /* that compare results of the ULP sweep; 0: one for each CPU */
    const char *found_path;   /* of the rows of errors found */
    const char *target_name;  /* as given, or NULL: all of the device's */
    const Target *targets[4]; /* to run */
    uint32_t n_targets;
    uint32_t n_passed, n_failed, n_skipped;
    PairCounts counts;
    Coverage coverage;
    Arena *arena;
} Soak;

/* Names what is being done, for the message of a watchdog or a crash, and gives it `seconds`. */
void soak_watch(const char *what, unsigned seconds);
void soak_watch_off(void);

/* Whether another program may be begun. */
bool soak_has_time(const Soak *soak);
void soak_add_counts(Soak *soak, const PairCounts *counts);

void soak_random(Soak *soak);
/* The program of that seed. */
Program soak_random_program(Arena *arena, uint64_t seed);
/* The program of that seed, without tensors that are empty for their own sake: same_as.sh compares
 * its artifacts with those of older revisions, which may refuse the others. */
Program soak_plain_program(Arena *arena, uint64_t seed);
/* The text of a file. NULL: it cannot be read, which is said. */
const char *soak_read_source(Arena *arena, const char *path);
/* False: the file cannot be written. */
bool soak_write_source(const char *source, const char *path);
/* Writes n random graphs as FOLDER/random-SEED.g, and for each template a program for every 500 of
 * them and one more, as FOLDER/shapes-TEMPLATE-NUMBER.g. False, which is said: it cannot. */
bool soak_write_sources(const Soak *soak, const char *folder);
void soak_given(Soak *soak);
void soak_sweep(Soak *soak);
void soak_faults(Soak *soak);
void soak_attention(Soak *soak);
void soak_updates(Soak *soak);
/* False: the rows of errors found cannot be written. */
bool soak_ulp(Soak *soak);
/* Times the graphs of the files, and --random=N --seed=S random ones, fused and unfused on the CPU;
 * those that fusing makes slower fail. NULL, or the argument that is no option and no file. */
const char *soak_times(Soak *soak, char **argv, int n);
bool soak_read_number(const char *text, uint64_t *number);
/* False where a template had fewer shapes than soak->n, or what was asked for is not there. */
bool soak_shapes(Soak *soak);
/* One table of the counts that several parts left; the exit status. */
int soak_merge_shapes(Soak *soak, const Target *target, char **paths, int n);

#endif
