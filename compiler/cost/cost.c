/* Predicts the time of kernels. See cost.h. Rates are the card's; the other constants are in
 * machine/tuning.def, and the figures of docs/results check them. */
#include "cost/cores.h"
#include "cost/known.h"
#include "cost/kernel/gemm.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "cost/kernel/gemm_rows_gemm.h"
#include "cost/count/prims.h"
#include "cost/count/stride.h"
#include "cost/kernel/template.h"
#include "cost/totals.h"
#include "plan/launch.h"
#include "template/map_tile.h"

#include <math.h>

/* Bytes per element along an axis shorter than a warp, where the warp continues along the axis
 * before it. */
static double wrapped_bytes(const Coster *c, const Pricing *p, IndexId address, uint32_t axis,
                            double elem_bytes) {
    double n = footprint_points(p->kernel, 1u << axis, c->values), next;
    if (axis == 0 || n < 1 || n >= WARP_THREADS) return SECTOR_BYTES;
    next = fabs(cost_axis_stride(c, p->kernel, address, axis - 1)) * elem_bytes;
    double in_line = WARP_THREADS / n; /* neighbouring elements along that axis */
    return fmin(SECTOR_BYTES, (SECTOR_BYTES + in_line * next) / in_line);
}

/* Bytes that one load or store moves between cache and processors: a sector for each element
 * without a neighbour in the same warp. */
static double access_bytes(const Coster *c, const Pricing *p, IndexId address, double points,
                           double elem_bytes) {
    uint32_t axis = kernel_lane_axis(p->kernel, &p->variant->sched);
    double stride = axis == NO_AXIS ? 0 : fabs(cost_axis_stride(c, p->kernel, address, axis));
    if (stride == 0) return points * elem_bytes / WARP_THREADS;
    return points * fmin(stride * elem_bytes, wrapped_bytes(c, p, address, axis, elem_bytes));
}

/* The weight of a map's load relative to loads of whole lines. */
static double access_weight(const Coster *c, const Pricing *p, const Scalar *load) {
    uint32_t axis = kernel_lane_axis(p->kernel, &p->variant->sched);
    if (form_info(p->kernel->form)->reduces || !c->card->has->blocks || axis == NO_AXIS) return 1;
    double elem_bytes = dtype_bytes(load->dtype);
    double stride = fabs(cost_axis_stride(c, p->kernel, load->index, axis)) * elem_bytes;
    bool is_scattered = stride >= SECTOR_BYTES &&
                        wrapped_bytes(c, p, load->index, axis, elem_bytes) >= SECTOR_BYTES;
    return is_scattered ? COST_SECTOR_SHARE : 1;
}

/* Rows for which softmax and product on a CPU reads the values once. */
static double rows_at_once(const Coster *c, const Pricing *p) {
    bool are_many = c->card->has->cores && form_info(p->kernel->form)->weighs;
    return are_many ? SCHED_CPU_ONLINE_ROWS : 1;
}

/* Bytes through the cache of all loads of the buffer marked in `live`. `weighed`: as time, in bytes
 * of whole lines. */
static double load_bytes(const Coster *c, const Pricing *p, uint32_t buffer, const bool *live,
                         bool weighed) {
    const Kernel *kernel = p->kernel;
    double elem_bytes = dtype_bytes(c->plan->buffers.data[buffer].dtype), total = 0;
    bool is_tiled = cost_gemm_has_tiles(p);
    /* Tiles load whole runs. */
    bool is_even = form_info(kernel->form)->multiplies
                       ? template_info(p->variant->sched.template)->tiles_outputs
                       : is_tiled;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *load = scalar_get(kernel->scalars, id);
        if (load->kind != SCALAR_LOAD || load->buffer != buffer || !live[id]) continue;
        uint32_t axes = index_axes(scalartab_indices(kernel->scalars), load->index);
        double points = footprint_points(kernel, axes, c->values);
        double all = p->rows * p->reduced / rows_at_once(c, p);
        if (is_tiled) points *= cost_gemm_reads(c, p, axes);
        if (!is_even && load->guard) all *= footprint_guard_share(kernel, load->guard, c->values);
        if (is_even || map_tile_stages(kernel, &p->variant->sched, load))
            total += points * elem_bytes;
        else
            total += access_bytes(c, p, load->index, all, elem_bytes) *
                     (weighed ? access_weight(c, p, load) : 1);
    }
    return total;
}

/* Whether the cache holds all concurrently processed rows. */
static bool holds_rows(const Coster *c, const Pricing *p, double footprint_bytes) {
    double at_once = c->card->n_processors * p->cost->pressure.n_blocks;
    uint32_t threads_per_row = sched_threads_per_row(&p->variant->sched);
    if (threads_per_row) at_once *= (double)p->variant->sched.threads / threads_per_row;
    double share = p->rows > at_once ? at_once / p->rows : 1;
    return footprint_bytes * share <= c->card->cache_bytes;
}

/* Bytes that the tiles of a GEMM read of the buffer after the first read. */
static double read_again(const Coster *c, const Pricing *p, uint32_t buffer, const bool *live,
                         double bytes) {
    const Kernel *kernel = p->kernel;
    if (!cost_gemm_has_tiles(p)) return 0;
    double most = 1;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *load = scalar_get(kernel->scalars, id);
        if (load->kind != SCALAR_LOAD || load->buffer != buffer || !live[id]) continue;
        uint32_t axes = index_axes(scalartab_indices(kernel->scalars), load->index);
        if (axes >> gemm_axis_k(kernel) & 1)
            most = fmax(most, cost_gemm_dram_reads(c, p, axes, bytes));
    }
    return (most - 1) * bytes;
}

/* The buffer's bytes that a later stage reads from memory again: only `fresh` ones if rows stay
 * resident or in the cache. */
static double read_anew(const Coster *c, const Pricing *p, double bytes, double fresh) {
    bool is_held = sched_row(&p->variant->sched).resident || holds_rows(c, p, bytes);
    return is_held ? fresh : bytes;
}

static double read_first(Coster *c, Pricing *p, uint32_t buffer, const bool *live, Footprint foot) {
    FootprintSeen *seen = &c->seen[buffer];
    bool is_held = cost_is_cached(c, buffer);
    if (!is_held) *seen = (FootprintSeen){.hulls = NULL};
    double fresh =
        footprint_see_loads(c->arena, c->plan, p->kernel, buffer, live, c->values, foot, seen);
    if (!is_held) return fresh + read_again(c, p, buffer, live, foot.bytes);
    p->held_bytes += foot.bytes - fresh;
    return fresh;
}

/* The share of the buffer that a kernel with a band reads or writes: the band's, if an index of the
 * buffer has both the row and the column of the band; else 1. */
static double band_share(const Kernel *kernel, uint32_t buffer) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    uint32_t both = 1u << kernel->band.axis | 1u << kernel->band.row_axis, axes = 0;
    if (!kernel->band.first) return 1;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *load = scalar_get(kernel->scalars, id);
        if (load->kind == SCALAR_LOAD && load->buffer == buffer)
            axes |= index_axes(tab, load->index);
    }
    const Store *store = kernel_find_store(kernel, buffer);
    if (store) axes |= index_axes(tab, store->address);
    return (axes & both) == both ? kernel->band.share : 1;
}

static void price_read(Coster *c, Pricing *p, uint32_t buffer, bool *const *live) {
    const Kernel *kernel = p->kernel;
    bool is_off_memory = c->plan->buffers.data[buffer].space != BUFFER_GLOBAL;
    bool is_again = false;
    for (uint32_t s = 0; s <= kernel->stages.n && !is_off_memory; s++) {
        Footprint foot = footprint_loads(c->arena, c->plan, kernel, buffer, live[s], c->values);
        if (foot.elems <= 0) continue;
        double share = band_share(kernel, buffer);
        if (is_again) {
            double fresh = footprint_see_loads(c->arena, c->plan, kernel, buffer, live[s],
                                               c->values, foot, &c->seen[buffer]);
            p->cost->read_bytes += share * read_anew(c, p, foot.bytes, fresh);
            if (sched_row(&p->variant->sched).resident) continue;
        } else {
            p->cost->read_bytes += share * read_first(c, p, buffer, live[s], foot);
        }
        double moved =
            foot.bytes > COST_SMALL_BYTES ? load_bytes(c, p, buffer, live[s], true) : foot.bytes;
        p->cost->cache_bytes += share * fmax(moved, foot.bytes);
        is_again = true;
    }
    if (is_again) c->touched[buffer] = -1;
}

/* Additional bytes, as time, of row stores that touch a sector per element. */
static double scattered_bytes(const Coster *c, const Pricing *p, uint32_t buffer) {
    const Kernel *kernel = p->kernel;
    uint32_t axis = kernel_lane_axis(kernel, &p->variant->sched);
    double elem_bytes = dtype_bytes(c->plan->buffers.data[buffer].dtype), total = 0;
    if (form_info(kernel->form)->multiplies || !c->card->has->blocks || axis == NO_AXIS) return 0;
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        for (uint32_t i = 0; i < kernel->stages.data[s].stores.n; i++) {
            const Store *store = &kernel->stages.data[s].stores.data[i];
            double stride = fabs(cost_axis_stride(c, kernel, store->address, axis)) * elem_bytes;
            if (store->buffer == buffer && stride >= SECTOR_BYTES)
                total += p->rows * p->reduced * (COST_STORE_SHARE * SECTOR_BYTES - elem_bytes);
        }
    return total;
}

static void price_write(Coster *c, Pricing *p, uint32_t buffer) {
    if (c->plan->buffers.data[buffer].space != BUFFER_GLOBAL) return;
    Footprint foot = footprint_stores(c->arena, c->plan, p->kernel, buffer, c->values);
    if (foot.elems <= 0) return;
    double share = band_share(p->kernel, buffer);
    p->cost->written_bytes += share * foot.bytes;
    p->cost->cache_bytes += share * foot.bytes;
    if (foot.bytes > COST_SMALL_BYTES) p->cost->cache_bytes += scattered_bytes(c, p, buffer);
    bool is_temp = c->plan->buffers.data[buffer].kind == BUFFER_TEMP;
    if (is_temp && foot.bytes <= c->card->cache_bytes) p->left_bytes += foot.bytes;
    c->touched[buffer] = -1;
    footprint_see_stores(c->arena, c->plan, p->kernel, buffer, c->values, foot, &c->seen[buffer]);
}

/* Elements gathered twice from a tensor larger than the cache are read twice, unless little passed
 * in between: positions count as distinct only within as many accesses as the cache holds. */
static void price_repeats(const Coster *c, Pricing *p, uint32_t buffer, const bool *live) {
    const Kernel *kernel = p->kernel;
    const Buffer *of = &c->plan->buffers.data[buffer];
    double tensor =
        cost_number(c, shape_n_elems(c->plan->graph->dims, &of->shape)) * dtype_bytes(of->dtype);
    bool *gathered = arena_array(c->arena, bool, scalar_count(kernel->scalars) + 1), any = false;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        gathered[id] = live[id] && s->kind == SCALAR_LOAD && s->buffer == buffer &&
                       index_is_gathered(scalartab_indices(kernel->scalars), s->index);
        any = any || gathered[id];
    }
    if (!any || tensor <= c->card->cache_bytes) return;
    double once = footprint_loads(c->arena, c->plan, kernel, buffer, gathered, c->values).bytes;
    double all = load_bytes(c, p, buffer, gathered, false);
    double n_times = fmax(1, p->cost->cache_bytes / c->card->cache_bytes);
    double read = fmin(all, n_times * tensor * -expm1(-all / n_times / tensor));
    if (read > once) p->cost->read_bytes += read - once;
}

/* Times. */

/* The time of spilled registers: written and read back once for each point of a thread. They go
 * through the processor's L1 as long as it holds them all, else through L2 or memory. From hardware
 * rates, not measured. */
static double spill_us(const Coster *c, const Pricing *p) {
    const Pressure *pressure = &p->cost->pressure;
    const Sched *sched = &p->variant->sched;
    if (!pressure->spilled) return 0;
    double elems = p->rows * (form_info(p->kernel->form)->multiplies ? 1 : p->reduced);
    double bytes = 2 * WORD_BYTES * pressure->spilled * elems / (sched->lanes ? sched->lanes : 1);
    double held = (double)WORD_BYTES * pressure->spilled * sched->threads * pressure->n_blocks;
    double own = c->card->shared_bytes - (double)pressure->shared_bytes * pressure->n_blocks;
    double near_gbs = c->card->n_processors * c->card->ghz * WARP_THREADS * WORD_BYTES;
    double gbs = held <= own                                            ? near_gbs
                 : held * c->card->n_processors <= c->card->cache_bytes ? c->card->cache_gbs
                                                                        : c->card->dram_gbs;
    return bytes / (gbs * 1e3);
}

/* The time of a map or column reduction that would wait `us` for memory under full load and needs
 * at least `peak_us` of DRAM. After the first loads, a less busy DRAM answers sooner. It does not
 * apply to gathers, whose loads depend on each other. t solves t = us * (COST_IDLE_WAIT +
 * COST_BUSY_WAIT * peak_us / t). */
static double stream_us(const Coster *c, const Pricing *p, double us, double peak_us) {
    const FormInfo *form = form_info(p->kernel->form);
    bool is_stream = !form->reduces_rows && !form->multiplies;
    if (!is_stream || p->wait_us > c->card->latency_us) return us;
    double first = fmin(us, p->wait_us), rest = us - first, idle = rest * COST_IDLE_WAIT;
    return first + (idle + sqrt(idle * idle + 4 * rest * COST_BUSY_WAIT * peak_us)) / 2;
}

/* The time of DRAM traffic. Reads, from DRAM or the cache, are no faster than the loads in flight
 * allow. */
static double dram_us(const Coster *c, const Pricing *p) {
    double peak = c->card->dram_gbs * 1e3, all = p->cost->read_bytes + p->cost->written_bytes;
    peak *= single_access_share(c->card, p->kernel, &p->variant->sched);
    if (p->bytes_in_flight <= 0) return all / peak;
    double at_once = fmin(p->n_beside, c->card->n_processors * p->cost->pressure.n_blocks);
    double own = p->variant->sched.threads * p->bytes_in_flight;
    double waited = p->cost->read_bytes + p->held_bytes * COST_CACHE_WAIT - p->searched_bytes;
    if (!cost_gemm_has_tiles(p) && p->cost->n_blocks > 0) /* no more than there are blocks */
        own = fmin(own, (p->cost->read_bytes + p->held_bytes) / p->cost->n_blocks);
    double bytes = at_once * own;
    double us = bytes > 0 ? waited * p->wait_us / bytes : 0;
    double begun = p->cost->n_blocks / (c->card->n_processors * COST_BLOCKS_PER_US);
    return fmax(fmax(all / peak, begun), stream_us(c, p, us, all / peak));
}

/* Launches after the first are queued, and begin while the one before ends. Starting blocks takes
 * time, up to the number that the machine holds at once. */
static double launch_us(const Coster *c, const Pricing *p) {
    if (!c->has_begun) return c->card->launch_us;
    double room = c->card->n_processors * p->cost->pressure.n_blocks;
    double filled = fmin(1, p->n_beside / room);
    return c->card->next_us + c->card->fill_us * filled;
}

/* The time of reading rows again in later passes, in microseconds. 0 for clusters and for rows
 * after a GEMM, whose time is predicted as a whole, and for other forms. */
static double again_us(const Coster *c, const Pricing *p) {
    const Kernel *kernel = p->kernel;
    bool is_whole = form_info(kernel->form)->reduces_rows && p->variant->sched.cluster <= 1 &&
                    !cost_is_sequence_rows(c, kernel) && c->card->has->blocks;
    uint32_t n = 0;
    for (uint32_t s = 0; s < kernel->stages.n && is_whole; s++)
        n += kernel->stages.data[s].reduces.n > 0;
    return n > 1 ? (n - 1) * COST_ROW_AGAIN_US : 0;
}

/* Work is even over the columns, outside and inside the band. Blocks of a GEMM take rows of tiles:
 * where there are few, the longest ones decide. */
static void keep_band(const Coster *c, Pricing *p) {
    const Kernel *kernel = p->kernel;
    const Band *band = &kernel->band;
    const Sched *sched = &p->variant->sched;
    double share = band->share;
    if (form_info(kernel->form)->multiplies) {
        DimId n = kernel_axis_extent(kernel, gemm_axis_n(kernel));
        double units = p->rows / cost_number(c, n) / sched_tile(sched).m;
        share = fmax(share, fmin(1, band->most * c->card->n_processors / units));
    }
    p->cost->n_prims *= band->share;
    p->cost->n_flops *= band->share;
    p->cost->arithmetic_us *= share;
    p->cost->tensor_us *= share;
}

static void time_kernel(const Coster *c, Pricing *p) {
    KernelCost *cost = p->cost;
    double width = fmax(1, fmin(COST_MAX_WIDTH, p->variant->sched.lanes * p->parallel));
    double wanted = COST_BUSY_WARPS / sqrt(width);
    TemplateCost template = template_cost(p->variant->sched.template, p->kernel);
    double use = template.use(c, p, wanted);
    double prims_per_us =
        c->card->n_processors * c->card->lanes * c->card->ghz * 1e3 * (use > 0 ? use : 1);
    const TemplateInfo *info = template_info(p->variant->sched.template);
    cost->memory_us = dram_us(c, p);
    /* The time of a step includes the copies of the copy engine. */
    if (!info->uses_copy_engine)
        cost->memory_us = fmax(cost->memory_us, cost->cache_bytes / (c->card->cache_gbs * 1e3));
    if (info->transposes_loads) cost->memory_us /= COST_TILE_SHARE;
    template.compute(c, p, prims_per_us);
    if (p->kernel->band.first) keep_band(c, p);
    cost->launch_us = p->begins ? launch_us(c, p) : 0;
    cost->spill_us = spill_us(c, p);
    double busy = cost->arithmetic_us + cost->tensor_us + cost->spill_us;
    double exposed = template.exposed_us(c, p, busy);
    cost->us = cost->launch_us + fmax(cost->memory_us, busy) + exposed + again_us(c, p);
    if (cost_is_sequence_rows(c, p->kernel)) cost_gemm_time_rows(c, p);
    if (cost_is_gemm_rows_gemm(c)) cost_gemm_rows_gemm_time(c, p);
}

/* Whether the kernel of a one-block launch loads from global memory itself. */
static bool waits_for_memory(const Coster *c, const Kernel *kernel) {
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (s->kind != SCALAR_LOAD || c->plan->buffers.data[s->buffer].space != BUFFER_GLOBAL)
            continue;
        if (kernel_find_arg(kernel, s->buffer) != NO_ARG && !launch_copies(c->launch, s->buffer))
            return true;
    }
    return false;
}

/* The time of a kernel in a one-block launch: one processor runs its blocks one after the other.
 * The first kernel waits for all copied tensors; other loads from global memory are waited for one
 * by one. */
static void time_in_one_block(const Coster *c, Pricing *p) {
    KernelCost *cost = p->cost;
    double warps = p->variant->sched.threads / WARP_THREADS, n_block_runs = cost->n_blocks;
    double busy = warps < COST_BUSY_WARPS ? warps / COST_BUSY_WARPS : 1;
    double prims_per_us = c->card->lanes * c->card->ghz * 1e3 * busy;
    bool waits = cost->cache_bytes > 0 && (p->begins || waits_for_memory(c, p->kernel));
    cost->launch_us = p->begins ? launch_us(c, p) : 0;
    cost->memory_us =
        cost->cache_bytes * c->card->n_processors / (c->card->cache_gbs * COST_LONE_SHARE * 1e3) +
        (waits ? c->card->latency_us : 0);
    cost->arithmetic_us = (cost->n_prims + cost->n_flops / 2 / COST_FMA_EFFICIENCY) / prims_per_us +
                          COST_ONE_BLOCK_US * n_block_runs;
    cost->us = cost->launch_us + cost->memory_us + cost->arithmetic_us;
    cost->n_blocks = 1;
}

static void settle_cache(Coster *c, const Kernel *kernel, const KernelCost *cost) {
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        double *touched = &c->touched[kernel->args.data[i]];
        if (*touched < 0) *touched = 1 + c->passed;
    }
    c->passed += cost->read_bytes + cost->written_bytes;
}

/* Each block of a launch has the registers and shared memory of the kernel that needs most. */
static Pressure most_pressure(const Coster *c, const Kernel *kernels, uint32_t n, uint32_t v) {
    Pressure most = {.n_blocks = UINT32_MAX};
    for (uint32_t k = 0; k < n; k++) {
        const Kernel *kernel = &kernels[k];
        if (k && kernel->code == kernels[k - 1].code) continue;
        Pressure own = pressure_of(c->arena, kernel, &kernel->variants[v], c->card);
        if (own.n_blocks < most.n_blocks) most = own;
    }
    return most;
}

static Beside price_beside(const Coster *c) {
    const Kernel *kernels = launch_kernel(c->plan, c->launch, 0);
    uint32_t n = c->launch->n;
    if (n == 1 || launch_shares_blocks(c->launch)) return (Beside){.is_any = false};
    Beside beside = {.is_any = true, .variant = variant_taken(c->plan, kernels, n, c->values)};
    beside.most = most_pressure(c, kernels, n, beside.variant);
    for (uint32_t k = 0; k < n; k++)
        beside.n_blocks += cost_number(c, kernels[k].variants[beside.variant].grid);
    return beside;
}

/* Moves to the launch of the kernel. */
static void begin_launch(Coster *c, uint32_t kernel) {
    const Launch *end = c->plan->launches.data + c->plan->launches.n;
    bool is_next = c->launch && c->launch + 1 < end && launch_has(c->launch + 1, kernel);
    c->launch = is_next ? c->launch + 1 : plan_launch_of(c->plan, kernel);
    c->beside = price_beside(c);
    c->launch_begun = false;
}

/* The elements that a result reduces; of segments the mean, since each element is in one. */
static double reduced_elems(const Coster *c, const Kernel *kernel) {
    double all = cost_number(c, kernel_n_reduced(kernel));
    if (!form_info(kernel->form)->divides) return all;
    const Node *node = graph_node(c->plan->graph, kernel->reduces.data[0].node);
    uint32_t axis = 0;
    while (!(node->attrs.axes >> axis & 1)) axis++;
    return all / fmax(1, cost_number(c, node->shape.dims[axis]));
}

/* Whether only searches read the buffer. */
static bool is_searched(const Kernel *kernel, uint32_t buffer, const bool *searched) {
    bool is_only = searched != NULL;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars) && is_only; id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        is_only = searched[id] || s->kind != SCALAR_LOAD || s->buffer != buffer;
    }
    return is_only;
}

static void price_reads(Coster *c, Pricing *p, bool *const *live) {
    const Kernel *kernel = p->kernel;
    const bool *searched = cost_searched_loads(c, kernel);
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t buffer = kernel->args.data[i];
        double read = p->cost->read_bytes, held = p->held_bytes;
        price_read(c, p, buffer, live);
        if (is_searched(kernel, buffer, searched))
            p->searched_bytes +=
                p->cost->read_bytes - read + (p->held_bytes - held) * COST_CACHE_WAIT;
    }
}

/* Predicts a kernel that starts. */
static void price_anew(Coster *c, Pricing *p) {
    const Kernel *kernel = p->kernel;
    bool **live = arena_array(c->arena, bool *, kernel->stages.n + 1);
    for (uint32_t s = 0; s <= kernel->stages.n; s++)
        live[s] = stage_live_scalars(c->arena, kernel, p->variant->row_cache, s);
    price_reads(c, p, live);
    for (uint32_t i = 0; i < kernel->args.n; i++) price_write(c, p, kernel->args.data[i]);
    for (uint32_t i = 0; i < kernel->args.n; i++)
        price_repeats(c, p, kernel->args.data[i], live[0]);
    TemplateCost template = template_cost(p->variant->sched.template, kernel);
    template.count(c, p, live);
    p->parallel =
        form_info(kernel->form)->multiplies ? 1 : parallel_prims(c->arena, c->card, kernel, live);
    p->wait_us = c->card->latency_us;
    template.load(c, p, live);
    if (launch_has_one_block(c->launch))
        time_in_one_block(c, p);
    else if (c->card->has->cores)
        cores_time_kernel(c, p);
    else
        time_kernel(c, p);
}

static void price_kernel(Coster *c, uint32_t index) {
    const Kernel *kernel = &c->plan->kernels.data[index];
    KernelCost *cost = &c->out->kernels[index];
    if (!c->launch || !launch_has(c->launch, index)) begin_launch(c, index);
    bool is_parallel = c->beside.is_any, is_sequenced = cost_continues_sequence(c, kernel);
    cost->variant = is_parallel    ? c->beside.variant
                    : is_sequenced ? cost[-1].variant
                                   : variant_taken(c->plan, kernel, 1, c->values);
    Pricing p = {.kernel = kernel, .variant = &kernel->variants[cost->variant], .cost = cost};
    p.rows = cost_number(c, kernel_n_rows(kernel));
    p.reduced = reduced_elems(c, kernel);
    cost->n_blocks = cost_number(c, p.variant->grid);
    p.n_beside = is_parallel ? c->beside.n_blocks : cost->n_blocks;
    cost->starts = kernel_starts(c->plan, kernel, c->values);
    p.begins = cost->starts && !c->launch_begun;
    c->launch_begun = c->launch_begun || p.begins;
    c->out->n_launches += p.begins;
    if (p.variant->is_persistent)
        cost->n_blocks = fmin(cost->n_blocks,
                              (double)c->card->n_processors * fmax(1, p.variant->sched.min_blocks));
    cost->pressure = known_pressure(c, kernel, p.variant);
    const Pressure *most = is_parallel ? &c->beside.most : is_sequenced ? &cost[-1].pressure : NULL;
    if (most && (is_parallel || most->n_blocks < cost->pressure.n_blocks)) {
        cost->pressure.n_blocks = most->n_blocks;
        cost->pressure.occupancy = most->occupancy;
    }
    if (kernel->choice && !cost->starts) return;
    KnownState state = known_state(c, &p);
    if (!known_price(c, &p, &state)) {
        price_anew(c, &p);
        known_note(c, &p, &state);
    }
    c->has_begun = c->has_begun || p.begins;
    settle_cache(c, kernel, cost);
}

/* Only the kernels' arguments are cleared: a trial has few kernels of a plan with many buffers. */
static void empty_cache(Coster *c) {
    c->passed = 0;
    for (uint32_t k = 0; k < c->plan->kernels.n; k++) {
        const Kernel *kernel = &c->plan->kernels.data[k];
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            c->touched[kernel->args.data[i]] = 0;
            c->seen[kernel->args.data[i]] = (FootprintSeen){.hulls = NULL};
        }
    }
}

static void make_cache(Coster *c) {
    size_t n = c->plan->buffers.n;
    c->touched = arena_extend(c->arena, NULL, 0, n * sizeof *c->touched);
    c->seen = arena_extend(c->arena, NULL, 0, n * sizeof *c->seen);
}

/* A run finds nothing of the init steps in the cache. */
static void price_init(Coster *c) {
    PlanCost *out = c->out;
    out->n_init = plan_n_init(c->plan);
    make_cache(c);
    empty_cache(c);
    for (uint32_t k = 0; k < out->n_init; k++) {
        price_kernel(c, k);
        out->init_bytes += out->kernels[k].read_bytes + out->kernels[k].written_bytes;
        out->init_us += out->kernels[k].us;
    }
    out->n_init_steps = out->n_launches;
    out->n_launches = 0;
    c->has_begun = false;
    if (out->n_init) empty_cache(c);
}

PlanCost *cost_kernels(Arena *arena, const Plan *plan, const Card *card, const int64_t *dims) {
    PlanCost *out = arena_array(arena, PlanCost, 1);
    dims = cost_dims(arena, plan->graph->dims, dims); /* includes symbols that the plan added */
    *out = (PlanCost){.plan = plan, .card = card, .dims = dims};
    out->kernels = arena_array(arena, KernelCost, plan->kernels.n);
    Coster c = {.arena = arena,
                .out = out,
                .plan = plan,
                .card = card,
                .dims = plan->graph->dims,
                .values = dims};
    if (card->has->cores) c.working_bytes = cores_working_bytes(&c);
    price_init(&c);
    for (uint32_t k = out->n_init; k < plan->kernels.n; k++) {
        price_kernel(&c, k);
        out->read_bytes += out->kernels[k].read_bytes;
        out->written_bytes += out->kernels[k].written_bytes;
        out->us += out->kernels[k].us;
    }
    return out;
}

double cost_us(Arena *arena, const Plan *plan, const Card *card, const int64_t *dims) {
    return cost_kernels(arena, plan, card, dims)->us;
}

PlanCost *cost_plan(Arena *arena, const Plan *plan, const Card *card, const int64_t *dims) {
    PlanCost *out = cost_kernels(arena, plan, card, dims);
    cost_totals(arena, out);
    return out;
}
