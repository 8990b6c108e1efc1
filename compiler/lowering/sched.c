/* See sched.h. */
#include "lowering/sched.h"

GemmTile sched_tile(const Sched *sched) {
    switch (template_info(sched->template)->params) {
    case SCHED_GEMM:
        return (GemmTile){sched->gemm.tile_m, sched->gemm.tile_n, sched->gemm.tile_k};
    case SCHED_CPU_GEMM:
        return (GemmTile){sched->cpu_gemm.tile_m, sched->cpu_gemm.tile_n, sched->cpu_gemm.tile_k};
    case SCHED_GEMV:
        return (GemmTile){.m = sched->gemv.tile_m, .n = sched->gemv.tile_n};
    case SCHED_NONE:
    case SCHED_MAP_TILE:
    case SCHED_ROW:
    case SCHED_COLUMN:
    case SCHED_CPU_MAP:
    case SCHED_CPU_COLUMN:
    case SCHED_CPU_TAPS:
        break;
    }
    return (GemmTile){0};
}

bool sched_differ_in_units(const Sched *a, const Sched *b) {
    CpuGemmSched of_a = sched_cpu_gemm_params(a), of_b = sched_cpu_gemm_params(b);
    bool is_across = of_a.is_transposed;
    uint32_t rows = is_across ? of_a.tile_n : of_a.tile_m,
             columns = is_across ? of_a.tile_m : of_a.tile_n;
    return a->template == TEMPLATE_CPU_GEMM && b->template == TEMPLATE_CPU_GEMM &&
           of_a.is_blocked && of_b.is_blocked && !of_a.has_strips && !of_b.has_strips &&
           of_b.is_transposed == is_across && of_a.has_amx == of_b.has_amx &&
           of_a.tile_k == of_b.tile_k && of_a.register_m == of_b.register_m &&
           of_a.register_n == of_b.register_n && rows <= (is_across ? of_b.tile_n : of_b.tile_m) &&
           columns == (is_across ? of_b.tile_m : of_b.tile_n) && a->lanes == b->lanes &&
           a->unroll == b->unroll;
}

uint32_t sched_lanes_out(const Sched *sched) {
    switch (template_info(sched->template)->params) {
    case SCHED_MAP_TILE:
        return sched->map_tile.lanes_out;
    case SCHED_CPU_MAP:
        return sched->cpu_map.lanes_out;
    case SCHED_CPU_TAPS:
        return sched->cpu_taps.lanes_out;
    case SCHED_NONE:
    case SCHED_ROW:
    case SCHED_COLUMN:
    case SCHED_GEMM:
    case SCHED_GEMV:
    case SCHED_CPU_COLUMN:
    case SCHED_CPU_GEMM:
        break;
    }
    return 0;
}

int64_t sched_chunk_elems(const Sched *sched) {
    switch (template_info(sched->template)->params) {
    case SCHED_CPU_MAP:
        return sched->cpu_map.chunk_elems;
    case SCHED_CPU_COLUMN:
        return sched->cpu_column.chunk_elems;
    case SCHED_NONE:
    case SCHED_MAP_TILE:
    case SCHED_ROW:
    case SCHED_COLUMN:
    case SCHED_GEMM:
    case SCHED_GEMV:
    case SCHED_CPU_GEMM:
    case SCHED_CPU_TAPS:
        break;
    }
    return 0;
}

uint32_t sched_threads_per_row(const Sched *sched) {
    switch (template_info(sched->template)->params) {
    case SCHED_ROW:
        return sched->row.threads_per_row;
    case SCHED_COLUMN:
        return sched->column.threads_along;
    case SCHED_GEMV:
        return sched->gemv.threads_along_k;
    case SCHED_NONE:
    case SCHED_MAP_TILE:
    case SCHED_GEMM:
    case SCHED_CPU_MAP:
    case SCHED_CPU_COLUMN:
    case SCHED_CPU_GEMM:
    case SCHED_CPU_TAPS:
        break;
    }
    return 0;
}
