/* Plans as text, for --emit=sched: buffers, then each kernel with its axes, scalar programs (one
 * line per value, in order) and variants. */
#include "plan/launch.h"

static const char *const buffer_kinds[] = {[BUFFER_INPUT] = "input",
                                           [BUFFER_PARAM] = "param",
                                           [BUFFER_OUTPUT] = "output",
                                           [BUFFER_TEMP] = "temp",
                                           [BUFFER_PREPARED] = "prepared"};

typedef struct Printer {
    const Plan *plan;
    const Kernel *kernel;
    const ScalarTab *scalars;
    const IndexTab *indices;
    DimTab *dims;
    Text *out;
} Printer;

static void print_buffer(const Printer *p, const Buffer *buffer) {
    text_printf(p->out, "  %s %s: %s", buffer_kinds[buffer->kind], buffer->name,
                dtype_name(buffer->dtype));
    shape_print(p->dims, &buffer->shape, p->out);
    if (buffer->pitch) {
        text_puts(p->out, ", pitch ");
        dim_print(p->dims, buffer->pitch, p->out);
    }
    if (buffer->kind == BUFFER_TEMP) {
        text_puts(p->out, " at ");
        dim_print(p->dims, buffer->offset_bytes, p->out);
    }
    if (buffer->kind == BUFFER_PREPARED) {
        text_puts(p->out, ", ");
        dim_print(p->dims, buffer_bytes(p->dims, buffer), p->out);
        text_puts(p->out, " bytes");
    }
    text_puts(p->out, "\n");
}

static void print_place(const Printer *p, uint32_t buffer, IndexId address) {
    text_printf(p->out, "%s[", p->plan->buffers.data[buffer].name);
    index_print(p->indices, address, p->out);
    text_puts(p->out, "]");
}

static void print_guard(const Printer *p, GuardId id) {
    for (; id; id = guard_get(p->scalars, id).next) {
        Guard guard = guard_get(p->scalars, id);
        dim_print(p->dims, guard.lo, p->out);
        text_puts(p->out, " <= ");
        index_print(p->indices, guard.index, p->out);
        text_puts(p->out, " < ");
        dim_print(p->dims, guard.hi, p->out);
        if (guard.next) text_puts(p->out, " && ");
    }
}

static void print_args(const Printer *p, const Scalar *s) {
    for (int i = 0; i < 3 && s->args[i]; i++)
        text_printf(p->out, "%ss%u", i ? ", " : "", s->args[i]);
}

static void print_scalar(const Printer *p, ScalarId id) {
    const Scalar *s = scalar_get(p->scalars, id);
    text_printf(p->out, "  s%u: %s = ", id, dtype_name(s->dtype));
    switch (s->kind) {
    case SCALAR_CONST:
        if (dtype_is_int(s->dtype))
            text_printf(p->out, "%lld", (long long)s->whole);
        else
            text_printf(p->out, "%.17g", s->number);
        break;
    case SCALAR_GIVEN:
        text_printf(p->out, "given %u", s->slot);
        break;
    case SCALAR_LOAD:
        print_place(p, s->buffer, s->index);
        if (s->guard) text_puts(p->out, " where ");
        print_guard(p, s->guard);
        break;
    case SCALAR_INDEX:
        index_print(p->indices, s->index, p->out);
        break;
    case SCALAR_INSIDE:
        print_guard(p, s->guard);
        break;
    case SCALAR_STAGE:
        text_printf(p->out, "r%u", s->slot);
        break;
    case SCALAR_EXTREME:
        text_printf(p->out, "extreme of r%u", s->slot);
        break;
    case SCALAR_PRIM:
        text_printf(p->out, "%s(", prim_info(s->prim)->name);
        print_args(p, s);
        text_puts(p->out, ")");
        break;
    case SCALAR_CVT:
        text_printf(p->out, "cvt(s%u)", s->args[0]);
        break;
    case SCALAR_BITCAST:
        text_printf(p->out, "bitcast(s%u)", s->args[0]);
        break;
    }
    text_puts(p->out, "\n");
}

/* `r0` and so on are the values of the part before, then those of the part behind it. */
static void print_join(const Printer *p, uint32_t slot, const Reduce *reduce) {
    const ScanJoin *join = reduce->join;
    text_printf(p->out, "    r%u: %s = scan(", slot, dtype_name(reduce->result));
    for (uint32_t i = 0; i < join->n; i++)
        text_printf(p->out, "%ss%u", i ? ", " : "", join->elements[i]);
    text_puts(p->out, ") by ");
    scalar_print(join->scalars, join->results[reduce->joined], p->out);
    text_printf(p->out, " in %s\n", dtype_name(reduce->acc));
}

static void print_weighing(const Printer *p, const Reduce *reduce) {
    const QuantizeMap *map = &reduce->quantize;
    if (!reduce->power) {
        text_printf(p->out, " over the greatest, from %g, times %g", map->least, map->scale);
        text_printf(p->out, "%s to %s", map->rounds ? ", rounded" : "", dtype_name(map->dtype));
    } else {
        text_printf(p->out, " by %s", prim_info(reduce->power)->name);
    }
    if (reduce->row)
        text_printf(p->out, " of the %s, its %s", reduce->power ? "sum" : "row",
                    prim_info(reduce->row)->name);
}

static void print_reduce(const Printer *p, uint32_t slot) {
    const Reduce *reduce = &p->kernel->reduces.data[slot];
    if (reduce->join) {
        print_join(p, slot, reduce);
        return;
    }
    text_printf(p->out, "    r%u: %s = %s%s(s%u", slot, dtype_name(reduce->result),
                reduce->is_arg ? "arg-" : "", prim_info(reduce->combine)->name, reduce->value);
    bool has_segments = form_info(p->kernel->form)->divides;
    if (has_segments) text_printf(p->out, " where s%u == s%u", reduce->rhs, reduce->arg_index);
    if (form_info(p->kernel->form)->weighs) print_weighing(p, reduce);
    if (form_info(p->kernel->form)->weighs && reduce->count)
        text_printf(p->out, " s%u times", reduce->count);
    if (reduce->factor) text_printf(p->out, " * s%u", reduce->factor);
    if (reduce->rhs && !has_segments) text_printf(p->out, " * s%u", reduce->rhs);
    if (reduce->is_arg) text_printf(p->out, ", s%u", reduce->arg_index);
    text_printf(p->out, ") in %s", dtype_name(reduce->acc));
    if (reduce->divisor != DIM_NONE) {
        text_puts(p->out, " / ");
        dim_print(p->dims, reduce->divisor, p->out);
    }
    text_puts(p->out, "\n");
}

static void print_stores(const Printer *p, const Store *stores, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        text_puts(p->out, "    ");
        IndexId address = stores[i].address;
        if (stores[i].begin)
            address =
                index_add_dim(scalartab_indices(p->kernel->scalars), address, stores[i].begin);
        print_place(p, stores[i].buffer, address);
        text_printf(p->out, " = s%u", stores[i].value);
        if (stores[i].guard) text_puts(p->out, " where ");
        print_guard(p, stores[i].guard);
        text_puts(p->out, "\n");
    }
}

static bool is_reduced(const Kernel *kernel, uint32_t axis) {
    return axis >= kernel->first_reduced && axis < kernel->first_reduced + kernel->n_reduced;
}

static void print_axes(const Printer *p) {
    text_puts(p->out, "  axes");
    for (uint32_t axis = 0; axis < index_n_axes(p->indices); axis++) {
        const char *role = axis == p->kernel->segment_axis ? "segment"
                           : axis < p->kernel->n_parallel  ? "parallel"
                           : is_reduced(p->kernel, axis)   ? "reduced"
                                                           : NULL;
        if (!role) continue;
        text_printf(p->out, " i%u: %s ", axis, role);
        dim_print(p->dims, index_axis_extent(p->indices, axis), p->out);
        text_puts(p->out, ";");
    }
    text_puts(p->out, "\n");
}

static void print_maps(const Printer *p, const Variant *v) {
    for (uint32_t i = 0; i < v->n_maps; i++) {
        const TensorMap *map = &v->maps[i];
        const Buffer *buffer = &p->plan->buffers.data[p->kernel->args.data[map->arg]];
        text_printf(p->out, "    tensor map of %s:", buffer->name);
        for (uint32_t k = 0; k < map->rank; k++) {
            text_printf(p->out, "%s i%u in steps of ", k ? "," : "", map->axes[k].axis);
            dim_print(p->dims, map->axes[k].stride, p->out);
            text_printf(p->out, " by %u", map->axes[k].box);
        }
        if (map->im2col)
            text_printf(p->out, ", windows of %u taps along %u axes", map->im2col->n_taps,
                        map->im2col->n_spatial);
        text_puts(p->out, "\n");
    }
}

static void print_gemm(const GemmSched *s, Text *out) {
    text_printf(out, ", tile %u x %u x %u, warps %u x %u, stages %u", s->tile_m, s->tile_n,
                s->tile_k, s->warps_m, s->warps_n, s->stages);
    if (s->tail_n) text_printf(out, ", last tiles %u wide", s->tail_n);
    if (s->store_warps) text_printf(out, ", %u warps store", s->store_warps);
    if (s->by_groups) text_puts(out, ", warpgroups multiply");
    if (s->n_gemms > 1) text_printf(out, ", %u GEMMs at once", s->n_gemms);
}

static void print_cpu_gemm(const CpuGemmSched *s, Text *out) {
    text_printf(out, ", tile %u x %u x %u, unit %u x %u, registers %u x %u, %s", s->tile_m,
                s->tile_n, s->tile_k, s->unit_m, s->unit_n, s->register_m, s->register_n,
                s->is_blocked ? "blocked" : "streamed");
    if (s->has_strips) text_puts(out, ", strips");
    if (s->sweeps) text_puts(out, ", sweep");
    if (s->more_batches) text_printf(out, " of %u batches", s->more_batches + 1);
    if (s->has_amx) text_puts(out, ", tile registers");
    if (s->is_transposed) text_puts(out, ", transposed");
}

static void print_gemv(const GemvSched *s, Text *out) {
    text_printf(out, ", tile %u x %u, threads along k %u, slots %u", s->tile_m, s->tile_n,
                s->threads_along_k, s->slots);
    text_printf(out, ", lanes along %s, for %u processors", s->lanes_along_k ? "k" : "the outputs",
                s->n_processors);
}

static void print_params(const Kernel *kernel, const Sched *s, Text *out) {
    switch (template_info(s->template)->params) {
    case SCHED_NONE:
        break;
    case SCHED_MAP_TILE:
        text_printf(out, ", tile %u of i%u x %u of i%u, lanes in %u", s->map_tile.tile_m,
                    s->map_tile.axis_in, s->map_tile.tile_n, kernel_lane_axis(kernel, s),
                    s->map_tile.lanes_in);
        break;
    case SCHED_ROW:
        text_printf(out, ", threads per row %u, slots %u", s->row.threads_per_row, s->row.slots);
        if (s->row.resident) text_printf(out, ", resident %u", s->row.resident);
        break;
    case SCHED_COLUMN:
        text_printf(out, ", threads along columns %u", s->column.threads_along);
        break;
    case SCHED_GEMM:
        print_gemm(&s->gemm, out);
        break;
    case SCHED_GEMV:
        print_gemv(&s->gemv, out);
        break;
    case SCHED_CPU_MAP:
        text_printf(out, ", unit %lld", (long long)s->cpu_map.chunk_elems);
        if (s->cpu_map.lanes_out) text_printf(out, ", lanes out %u", s->cpu_map.lanes_out);
        break;
    case SCHED_CPU_COLUMN:
        text_printf(out, ", unit %lld", (long long)s->cpu_column.chunk_elems);
        break;
    case SCHED_CPU_GEMM:
        print_cpu_gemm(&s->cpu_gemm, out);
        break;
    case SCHED_CPU_TAPS:
        text_printf(out, ", along i%u, units of %u of i%u", kernel_lane_axis(kernel, s),
                    s->cpu_taps.chunk, s->cpu_taps.walked);
        if (s->cpu_taps.has_planes) text_puts(out, ", planes");
        if (s->cpu_taps.whole != kernel_lane_axis(kernel, s))
            text_printf(out, " of vectors along i%u", s->cpu_taps.whole);
        break;
    }
}

void sched_print(const Kernel *kernel, const Sched *s, Text *out) {
    text_printf(out, "%s, lanes %u", template_info(s->template)->name, s->lanes);
    if (s->unroll > 1) text_printf(out, ", unroll %u", s->unroll);
    if (s->threads > 1) text_printf(out, ", threads %u", s->threads);
    print_params(kernel, s, out);
    if (s->cluster > 1) text_printf(out, ", cluster %u", s->cluster);
    if (s->min_blocks) text_printf(out, ", blocks a processor %u", s->min_blocks);
    if (s->is_wide) text_puts(out, ", wide");
    if (s->pairs_bf16) text_puts(out, ", bf16 in pairs");
}

static void print_price(const Printer *p, const Price *price) {
    text_printf(p->out, ", price %u: ", price->group);
    dim_print(p->dims, price->blocks, p->out);
    text_printf(p->out, " blocks, %lld %%, %lld", (long long)price->percent,
                (long long)price->fixed);
    for (uint32_t i = 0; i < price->n_measures; i++) {
        text_printf(p->out, " + %lld * (", (long long)price->weights[i]);
        dim_print(p->dims, price->measures[i], p->out);
        text_puts(p->out, ")");
    }
}

static void print_variant(const Printer *p, const Variant *v) {
    text_printf(p->out, "  variant %s: ", v->symbol ? v->symbol : "?");
    sched_print(p->kernel, &v->sched, p->out);
    text_puts(p->out, ", grid ");
    dim_print(p->dims, v->grid, p->out);
    if (v->shared_bytes) text_printf(p->out, ", shared %u", v->shared_bytes);
    if (v->kept_shared_bytes) text_printf(p->out, ", kept shared %u", v->kept_shared_bytes);
    predicate_print(&v->predicate, p->dims, p->out);
    if (v->price.group) print_price(p, &v->price);
    if (v->is_persistent) text_puts(p->out, ", persistent");
    for (uint32_t i = 0; i < v->row_cache.n; i++)
        text_printf(p->out, "%s s%u", i ? "," : ", row cache", v->row_cache.data[i].value);
    text_puts(p->out, "\n");
    print_maps(p, v);
}

static void print_kernel(Printer *p, uint32_t at) {
    const Kernel *kernel = &p->plan->kernels.data[at];
    p->kernel = kernel;
    p->scalars = kernel->scalars;
    p->indices = scalartab_indices(kernel->scalars);
    text_printf(p->out, "\n%skernel %s: %s, arguments (", kernel->is_init ? "init " : "",
                kernel->name, form_info(kernel->form)->name);
    for (uint32_t i = 0; i < kernel->args.n; i++)
        text_printf(p->out, "%s%s", i ? ", " : "",
                    p->plan->buffers.data[kernel->args.data[i]].name);
    text_puts(p->out, ")");
    if (kernel->panel_columns) text_printf(p->out, ", panels of %u", kernel->panel_columns);
    text_puts(p->out, kernel_launch_info(p->plan, at)->text);
    text_puts(p->out, "\n");
    print_axes(p);
    bool *live = kernel_live_scalars(p->out->arena, kernel);
    for (ScalarId id = 1; id <= scalar_count(p->scalars); id++)
        if (live[id]) print_scalar(p, id);
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const Stage *stage = &kernel->stages.data[i];
        text_printf(p->out, "  stage %u\n", i);
        for (uint32_t k = 0; k < stage->reduces.n; k++) print_reduce(p, stage->reduces.data[k]);
        print_stores(p, stage->stores.data, stage->stores.n);
    }
    if (kernel->row_stores.n)
        text_puts(p->out, form_info(kernel->form)->multiplies || form_info(kernel->form)->weighs
                              ? "  per output\n"
                              : "  per row\n");
    print_stores(p, kernel->row_stores.data, kernel->row_stores.n);
    for (uint32_t i = 0; i < kernel->bounds.n; i++) {
        const Bounds *bounds = &kernel->bounds.data[i];
        text_printf(p->out, "  bounds of s%u: s%u, s%u\n", bounds->value, bounds->least,
                    bounds->greatest);
    }
    if (kernel->tiles_taken) text_printf(p->out, "  tiles taken: s%u\n", kernel->tiles_taken);
    if (kernel->band.first)
        text_printf(p->out, "  band along i%u: s%u to s%u\n", kernel->band.axis, kernel->band.first,
                    kernel->band.end);
    for (uint32_t i = 0; i < kernel->n_variants; i++) print_variant(p, &kernel->variants[i]);
}

void plan_print(const Plan *plan, Text *out) {
    Printer p = {.plan = plan, .dims = plan->graph->dims, .out = out};
    text_printf(out, "plan %s: workspace ", plan->graph->name);
    dim_print_largest(p.dims, &plan->workspace, out);
    text_puts(out, " bytes\n");
    for (uint32_t i = 0; i < plan->buffers.n; i++) print_buffer(&p, &plan->buffers.data[i]);
    for (uint32_t i = 0; i < plan->kernels.n; i++) print_kernel(&p, i);
}
