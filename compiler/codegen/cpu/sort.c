/* CPU sorts: a unit is a row (codegen/scalar/sort.h). Short rows have their orders on the stack. */
#include "codegen/cpu/cpu.h"
#include "codegen/scalar/sort.h"

void emit_cpu_sort(Lower *lower) {
    const Codegen *k = lower->k;
    Point point = point_new(lower, 1);
    int64_t n_local = sort_local_elems(lower->kernel, lower->variant);
    uint32_t n_words = sort_item_bytes(lower->kernel, true) / dtype_bytes(DT_I64);
    Val local = n_local ? cpu_memory_new(lower, DT_I64, n_words * (2 * n_local + 1)) : NULL;
    SortRow sort = {.row = &point,
                    .thread = lower_index_const(lower, 0),
                    .n_threads = 1,
                    .span_log2 = SORT_WHOLE,
                    .n_chunks = 2};
    Loop units = cpu_unit_loop(lower, lower->units_begin, lower->units_end, 1);
    lower_split(lower, units.index, 0, lower->kernel->n_parallel, &point);
    sort_place_orders(lower, &sort, units.index, local);
    sort_row(&sort);
    loop_end(k, &units);
}
