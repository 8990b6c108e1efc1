/* Schedules of templates: which template may compute a kernel, and the variants that each proposes.
 * A template's row stands in the file of its name. The table in template.c is made from
 * lowering/templates.def, so that a template without a row does not link. Templates of launches
 * have no row of their own. */
#ifndef FUSEC_SCHEDULE_SCHEDULER_H
#define FUSEC_SCHEDULE_SCHEDULER_H

#include "schedule/candidates.h"
#include "schedule/gemm.h"

/* A map's vectors: along its rows, and going on from row to row (template/flat.h). */
typedef struct FlatVectors {
    uint32_t row_lanes; /* of vectors along a row; 1: there are none; 0: nothing is chosen yet */
    Variant variant;    /* of flat vectors; lanes 1: they would be no better */
    bool replaces;      /* vectors along a row are of no use beside flat ones */
} FlatVectors;

/* A kernel that is being scheduled, and the variants that it has by now. */
typedef struct Scheduler {
    Arena *arena;
    const Plan *plan;
    const Target *target;
    Kernel *kernel;
    GemmLaunch launch;
    DimTab *dims;
    IndexTab *indices;
    uint32_t lane_axis; /* NO_AXIS when there is none */
    bool is_wide;       /* indices need 64 bits */
    Variant *made;      /* room for all that are proposed */
    uint32_t n_made;
    uint32_t n_before; /* variants of better levels, which are made already */
    FlatVectors flat;  /* see sched_flat */
} Scheduler;
Scheduler scheduler_new(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target);

/* Templates propose wide accesses first, then single elements, which apply always. */
typedef enum { ACCESS_WIDE, ACCESS_SINGLE } Access;

typedef struct TemplateSchedule {
    /* Whether the template computes the kernel, whose form and device are its own, in the order of
     * sums that the kernel has; NULL: it computes any. */
    bool (*may)(const Scheduler *s);
    /* Adds variants, those preferred first. */
    void (*propose)(Scheduler *s, Access access);
    /* GEMMs, in place of it: lists the variants for both accesses. The list's base always applies.
     */
    void (*list)(const Scheduler *s, Candidates *list);
    /* Turns a variant into one of a launch of one block of `threads`, a multiple of 128. It changes
     * no bit. False, or NULL: the template has no schedule for such a block. */
    bool (*in_one_block)(const Kernel *kernel, uint32_t threads, Variant *variant);
} TemplateSchedule;

#define TEMPLATE(symbol, function, ...) extern const TemplateSchedule schedule_##function;
#define LAUNCH_TEMPLATE(...)
#include "lowering/templates.def"

const TemplateSchedule *template_schedule(TemplateId id);

/* The name of the kernel's function for its variant of this number. */
Str sched_symbol(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t variant);
/* Adds a variant. Drops it if the variant before it always applies and competes with no other by
 * price, because then this one would never run. */
void sched_add(Scheduler *s, Variant variant);
/* Adds the variants that a GEMM's template lists. */
void sched_add_gemm(Scheduler *s, const TemplateSchedule *template);
/* Lists schedules for tensor cores (mma): operands of f16, bf16, f64, i8, u8, or f32 with precision
 * tf32. `is_spare`: the last variant, which always applies, serves only odd pointers and small
 * GEMMs. */
void sched_mma(const Scheduler *s, bool is_spare, Candidates *list);
/* Limits a small mma variant to the cases where it beats every wgmma tile; false: there are none.
 */
bool sched_mma_few_rows(const Scheduler *s, Variant *few);

/* The widest element among the kernel's arguments, in bytes. */
uint32_t sched_widest_bytes(const Plan *plan, const Kernel *kernel);
bool sched_computes_in_f64(const Scheduler *s);
DimId sched_lane_extent(const Scheduler *s);
DimId sched_n_segments(const Scheduler *s);

/* GPU: a schedule of single elements, one at a time. */
Sched sched_gpu(const Scheduler *s, TemplateId template);
/* Elements of one access, of any argument; of vectors along the lane axis, which a thread has
 * registers for. */
uint32_t sched_most_lanes(const Scheduler *s);
uint32_t sched_vector_lanes(const Scheduler *s, Sched sched);
/* Puts the variant, whose lanes lie along the lane axis, under conditions on pointers and, for a
 * symbolic extent, on its multiple. False: no argument is accessed in vectors. */
bool sched_make_vectors(const Scheduler *s, Variant *variant);
/* Gives the variant wide accesses, as sched_make_vectors, or leaves it single ones. False: wide
 * accesses are asked for, and no argument is accessed in vectors. */
bool sched_set_access(const Scheduler *s, Access access, Variant *variant);
bool sched_has_registers(const Scheduler *s, const Sched *sched);
/* Whether the kernel finishes a split: a few blocks reduce the segments of partial results. */
bool sched_finishes_split(const Scheduler *s);
/* Unrolls a kernel that finishes a split: a thread has as many loads in flight as a segment has
 * steps. */
void sched_unroll_finish(const Scheduler *s, Sched *sched);
/* The number of loads whose elements differ from lane to lane and that depend on one of these axes
 * (bit set; 0: any). */
uint32_t sched_n_loads(const Scheduler *s, uint32_t of_axes);
/* For a kernel that reduces segments: adds a copy of the variant that is unrolled further, for
 * grids of at most one block per processor. A thread then has more loads in flight. Adds none if
 * the kernel loads more than two tensors. */
void sched_add_unrolled(Scheduler *s, Variant variant);

/* CPU: a schedule whose lanes are a vector of 32-bit elements, or of 64-bit ones. */
Sched sched_cpu(const Scheduler *s, TemplateId template);
/* The vectors of a step of a CPU's kernel whose rows or elements lie side by side. */
uint32_t sched_cpu_unroll(const Scheduler *s, uint32_t lanes);
/* The accesses of a CPU map whose lanes are neither contiguous nor equal. */
uint32_t sched_n_strided(const Scheduler *s);
/* Work units of so many elements of the lane axis. */
DimId sched_cpu_grid(const Scheduler *s, int64_t unit);

/* Blocks of a map. */
DimId sched_map_grid(const Kernel *kernel, const Sched *sched);
/* in_one_block of maps without tiles. */
bool sched_map_in_one_block(const Kernel *kernel, uint32_t threads, Variant *variant);

/* Schedules of maps in tiles (template/map_tile.h), for maps with uncoalesced loads. Fills
 * `variants` in order of preference from `base`, which has what all of the kernel's variants have
 * in common, and returns their number; 0: the map has no tiles. If extents may be too small to fill
 * them, all have a condition, and other variants must follow. */
enum { MAP_TILE_VARIANTS = 2 };
uint32_t sched_map_tiles(Arena *arena, const Plan *plan, const Kernel *kernel, const Target *target,
                         const Variant *base, Variant *variants);

/* Whether a thread of the map on a GPU computes one element, because that takes so long. */
bool sched_is_long_map(const Scheduler *s);
const FlatVectors *sched_flat(Scheduler *s);

#endif
