/* Row kernels on a GPU: the number of threads per row. Every choice gives the same sums
 * (ReduceOrder). */
#ifndef FUSEC_SCHEDULE_ROW_H
#define FUSEC_SCHEDULE_ROW_H

#include "plan/kernel.h"

typedef struct RowUse {
    int64_t length, rows; /* upper bounds of elements per row and of rows */
    uint32_t elem_bytes;  /* of the widest argument */
    uint32_t n_loads;     /* per element; tensors with elements of each row */
    uint32_t n_stores;    /* per element */
    uint32_t most_steps;  /* limit per thread */
    uint32_t n_processors;
} RowUse;

/* Both set threads_per_row, slots and threads for the given lanes, and return the steps per row. */
/* Few threads, with resident elements. */
int64_t sched_row_few(Sched *sched, const RowUse *use);
/* One thread for each chain that has elements, in a loop. */
int64_t sched_row_all(Sched *sched, const RowUse *use);
/* Gives a resident row more threads. False: its slots cannot be shared by so many. */
bool sched_row_widen(Sched *sched, uint32_t threads_per_row);

#endif
