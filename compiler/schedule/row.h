/* Rows on a GPU: which threads share one. Any choice gives the same sums (ReduceOrder). */
#ifndef FUSEC_SCHEDULE_ROW_H
#define FUSEC_SCHEDULE_ROW_H

#include "plan/kernel.h"

typedef struct RowUse {
    int64_t length, rows; /* at most: elements of a row, and how many there are */
    uint32_t elem_bytes;  /* of the widest argument */
    uint32_t n_loads;     /* per element, of what is each row's own */
    uint32_t n_stores;    /* per element */
    uint32_t most_steps;  /* that a thread is to have */
    uint32_t n_processors;
} RowUse;

/* Both set team, slots and threads, by lanes, and return the steps that a team takes for a row. */
/* Few threads, which keep their elements. */
int64_t sched_row_few(Sched *sched, const RowUse *use);
/* A thread for each chain that has elements, in a loop. */
int64_t sched_row_all(Sched *sched, const RowUse *use);
/* So many threads for a resident row in place of fewer; false: its slots are none that so many can
 * share. */
bool sched_row_widen(Sched *sched, uint32_t threads_per_row);

#endif
