/* Sorts: a stable merge sort of one row, by one thread or by the threads of a block. */
#ifndef FUSEC_CODEGEN_SCALAR_SORT_H
#define FUSEC_CODEGEN_SCALAR_SORT_H

#include "codegen/scalar/acc.h"
#include "template/sort.h"

/* The places of a merged run that a thread merges at once, as a power of two; SORT_WHOLE: all. */
enum { SORT_WHOLE = 0 };
/* Most chunks into which it cuts these places, to merge them side by side. */
enum { SORT_MAX_CHUNKS = 2 };

typedef struct SortRow {
    Point *row; /* sets all axes but the sorted one */
    Val orders; /* pointer: memory for two orders of the row, of sort_item_dtype */
    Val second; /* index_type: elements from the first order to the second */
    Val thread; /* index_type: the thread's number among the threads of the row */
    int64_t n_threads;
    uint32_t span_log2; /* or SORT_WHOLE */
    uint32_t n_chunks;
    void (*barrier)(const Codegen *k); /* of these threads; NULL: there is one */
} SortRow;

/* Most elements of a row for which the orders are in shared memory or on the stack; 0: they are in
 * the scratch memory of the kernel. */
int64_t sort_local_elems(const Kernel *kernel, const Variant *variant);
/* Sets orders and second for row number `row` (index_type). `local`: memory for 2 *
 * sort_local_elems; NULL: the scratch memory. */
void sort_place_orders(Lower *lower, SortRow *sort, Val row, Val local);
/* Sorts the row and stores what the kernel's only stage stores. */
void sort_row(const SortRow *sort);
/* An unsigned number that has the order of the keys, and is equal for equal ones: of a key, or of
 * as many as a vector has lanes. */
Val sort_rank(const Lower *lower, Val key, uint32_t lanes);
/* Stores what the only stage stores at a place of the order, where element `number` (i32) stands.
 */
void sort_store(const Point *row, Val place, Val number);

#endif
