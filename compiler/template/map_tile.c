/* See map_tile.h. */
#include "template/map_tile.h"
#include "machine/tuning.h"
#include "machine/machine.h"

enum { NEAR_BYTES = 16 }; /* between elements that count as lying along an axis, at most */

/* The elements between neighbours along the axis; 0: not a known constant. */
static int64_t known_stride(const Kernel *kernel, IndexId index, uint32_t axis) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    DimId stride;
    int64_t value;
    bool is_known = index_stride(tab, index, axis, &stride) && stride != DIM_NONE &&
                    dim_is_const(indextab_dims(tab), stride, &value);
    return !is_known ? 0 : value < 0 ? -value : value;
}

/* Whether neighbours along the axis may be contiguous in memory, perhaps through a remainder. */
static bool may_be_near(const Kernel *kernel, const Scalar *load, uint32_t axis) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    const DimTab *dims = indextab_dims(tab);
    IndexExpr expr = index_expr(tab, load->index);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        int64_t value;
        if (!(atom.axes >> axis & 1) || !dim_is_const(dims, expr.terms[i].coefficient, &value))
            continue;
        if (value * dtype_bytes(load->dtype) < SECTOR_BYTES &&
            -value * dtype_bytes(load->dtype) < SECTOR_BYTES)
            return true;
    }
    return false;
}

static bool is_staged(const Kernel *kernel, const Scalar *load, uint32_t in, uint32_t out) {
    int64_t stride = known_stride(kernel, load->index, in);
    return load->kind == SCALAR_LOAD && !load->guard && (load->axes >> out & 1) && stride > 0 &&
           stride * dtype_bytes(load->dtype) <= NEAR_BYTES &&
           !index_is_gathered(scalartab_indices(kernel->scalars), load->index) &&
           !may_be_near(kernel, load, out);
}

uint32_t map_tile_staged(Arena *arena, const Kernel *kernel, uint32_t in, uint32_t out,
                         ScalarId *staged, uint32_t most) {
    const bool *live = kernel_live_scalars(arena, kernel);
    uint32_t n = 0;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (!live[id] || s->kind != SCALAR_LOAD || !is_staged(kernel, s, in, out)) continue;
        if (n < most) staged[n] = id;
        n++;
    }
    return n;
}

static uint32_t out_axis(const Kernel *kernel, const Sched *sched) {
    return kernel_lane_axis(kernel, sched);
}

bool map_tile_stages(const Kernel *kernel, const Sched *sched, const Scalar *load) {
    return template_info(sched->template)->transposes_loads &&
           is_staged(kernel, load, sched->map_tile.axis_in, out_axis(kernel, sched));
}

static uint32_t registers_of(const Sched *sched, const Scalar *load) {
    uint32_t n = map_tile_elems(sched), bytes = dtype_bytes(load->dtype);
    return bytes == 2 ? (n + 1) / 2 : bytes > WORD_BYTES ? n * bytes / WORD_BYTES : n;
}

MapTileHeld map_tile_held(Arena *arena, const Kernel *kernel, const Sched *sched) {
    const bool *live = kernel_live_scalars(arena, kernel);
    uint32_t out = out_axis(kernel, sched);
    MapTileHeld held = {0};
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (!live[id] || s->kind != SCALAR_LOAD) continue;
        if (is_staged(kernel, s, sched->map_tile.axis_in, out))
            held.staged += registers_of(sched, s);
        else if (s->axes >> sched->map_tile.axis_in & 1)
            held.ahead += registers_of(sched, s);
    }
    if (held.ahead > SCHED_TILE_AHEAD_REGISTERS) held.ahead = 0;
    return held;
}

bool map_tile_loads_ahead(Arena *arena, const Kernel *kernel, const Sched *sched) {
    return map_tile_held(arena, kernel, sched).ahead > 0;
}

uint32_t map_tile_bytes(Arena *arena, const Kernel *kernel, const Sched *sched) {
    ScalarId staged[MAP_TILE_MAX_STAGED];
    uint32_t bytes = 0, n = map_tile_staged(arena, kernel, sched->map_tile.axis_in,
                                            out_axis(kernel, sched), staged, MAP_TILE_MAX_STAGED);
    for (uint32_t i = 0; i < n && i < MAP_TILE_MAX_STAGED; i++)
        bytes += sched->map_tile.tile_m * sched->map_tile.tile_n *
                 dtype_bytes(scalar_get(kernel->scalars, staged[i])->dtype);
    return bytes;
}

/* The swizzle. A warp that reads touches tile_n / lanes rows, `lanes` apart, which need different
 * banks as far as the words of its columns leave some. A warp that writes touches neighbouring
 * rows. */
MapTilePlace map_tile_place(const Sched *sched, uint32_t elem_bytes) {
    uint32_t word = elem_bytes < WORD_BYTES ? WORD_BYTES : elem_bytes;
    uint32_t n_banks = LINE_BYTES / word, n_rows = sched->map_tile.tile_n / sched->lanes;
    MapTilePlace place = {.elem_bytes = elem_bytes,
                          .word_elems = word / elem_bytes,
                          .lanes = sched->lanes,
                          .twist_step = n_rows < n_banks ? n_banks / n_rows : 1};
    place.row_words = sched->map_tile.tile_m / place.word_elems;
    if (place.row_words == 0) place.row_words = 1;
    return place;
}

uint32_t map_tile_offset(const MapTilePlace *place, uint32_t row, uint32_t column) {
    uint32_t word_bytes = place->word_elems * place->elem_bytes;
    uint32_t twist = (row / place->lanes * place->twist_step) ^ (row % place->lanes);
    uint32_t word = (column / place->word_elems) ^ (twist & (place->row_words - 1));
    return (row * place->row_words + word) * word_bytes +
           column % place->word_elems * place->elem_bytes;
}
