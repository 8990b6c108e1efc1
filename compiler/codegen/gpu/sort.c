/* GPU sorts: a block sorts a row (codegen/scalar/sort.h). Short rows have their orders in shared
 * memory. */
#include "codegen/gpu/gpu.h"
#include "codegen/scalar/sort.h"

void emit_gpu_sort(Lower *lower) {
    const Codegen *k = lower->k;
    Point point = point_new(lower, 1);
    int64_t n_local = sort_local_elems(lower->kernel, lower->variant);
    int64_t most = variant_row_elems(lower->kernel, lower->variant);
    SortRow sort = {.row = &point,
                    .thread = gpu_index(lower, gpu_thread(k)),
                    .n_threads = lower->variant->sched.threads,
                    .span_log2 = sort_span_log2(most),
                    .n_chunks = 1,
                    .barrier = gpu_barrier};
    Val row = gpu_block(lower);
    lower_split(lower, row, 0, lower->kernel->n_parallel, &point);
    sort_place_orders(lower, &sort, row,
                      n_local ? gpu_shared(k, k->i32, (uint32_t)(2 * n_local), "orders") : NULL);
    sort_row(&sort);
}
