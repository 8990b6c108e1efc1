/* Introspection: getters over the manifest of a module by index, readable expressions, and the
 * properties of compiled kernels. */
#include "host/error.h"
#include "host/api_export.h"
#include "exec/program.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const Graph *find_graph(const frt_module *module, int32_t graph) {
    bool is_good = module && graph >= 0 && (uint32_t)graph < module->manifest.n_graphs;
    return is_good ? &module->manifest.graphs[graph] : NULL;
}

static const Tensor *find_tensor(const frt_module *module, int32_t graph, int32_t tensor) {
    const Graph *g = find_graph(module, graph);
    bool is_good = g && tensor >= 0 && (uint32_t)tensor < g->n_tensors;
    return is_good ? &module->manifest.tensors[g->first_tensor + (uint32_t)tensor] : NULL;
}

static const Step *find_step(const frt_module *module, int32_t graph, int32_t step) {
    const Graph *g = find_graph(module, graph);
    bool is_good = g && step >= 0 && (uint32_t)step < g->n_steps;
    return is_good ? &module->manifest.steps[g->first_step + (uint32_t)step] : NULL;
}

static const Variant *find_variant(const frt_module *module, int32_t graph, int32_t step,
                                   int32_t variant) {
    const Step *s = find_step(module, graph, step);
    bool is_good = s && variant >= 0 && (uint32_t)variant < s->n_variants;
    return is_good ? &module->manifest.variants[s->first_variant + (uint32_t)variant] : NULL;
}

frt_status frt_module_get_info(const frt_module *module, frt_module_info *info) {
    if (!module || !info) {
        return FRT_E_INVALID_ARGUMENT;
    }
    const Manifest *m = &module->manifest;
    GIVE(info, (frt_module_info){.target = m->target,
                                 .code = module->code_kind,
                                 .arch = m->arch,
                                 .numerics = m->numerics,
                                 .compiler = m->compiler,
                                 .source = m->source,
                                 .weights = m->weights,
                                 .checksum = m->checksum,
                                 .n_dims = (int32_t)m->n_given_dims,
                                 .n_graphs = (int32_t)m->n_graphs,
                                 .code_bytes = module->n_code,
                                 .rewrites = m->rewrites,
                                 .n_levels = (int32_t)m->n_levels});
    return FRT_OK;
}

frt_status frt_module_get_level(const frt_module *module, int32_t level, frt_level_info *info) {
    if (!module || !info || level < 0 || (uint32_t)level >= module->manifest.n_levels) {
        return FRT_E_INVALID_ARGUMENT;
    }
    const Level *l = &module->manifest.levels[level];
    GIVE(info, (frt_level_info){.name = l->name, .arch = l->arch, .features = l->features});
    return FRT_OK;
}

frt_status frt_module_get_dim(const frt_module *module, int32_t dim, frt_dim_info *info) {
    if (!module || !info || dim < 0 || (uint32_t)dim >= module->manifest.n_dims) {
        return FRT_E_INVALID_ARGUMENT;
    }
    const Dim *d = &module->manifest.dims[dim];
    GIVE(info, (frt_dim_info){.name = d->name, .lo = d->lo, .hi = d->hi, .multiple = d->multiple});
    return FRT_OK;
}

frt_status frt_module_get_graph(const frt_module *module, int32_t graph, frt_graph_info *info) {
    const Graph *g = find_graph(module, graph);
    if (!g || !info) {
        return FRT_E_INVALID_ARGUMENT;
    }
    const Manifest *m = &module->manifest;
    int32_t n_by_role[FRT_TEMP + 1] = {0};
    int32_t n_launches = 0;
    int32_t n_init = 0;
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        n_by_role[m->tensors[g->first_tensor + i].role]++;
    }
    for (uint32_t i = 0; i < g->n_steps; i++) {
        const Step *step = &m->steps[g->first_step + i];
        n_launches += step->kind == FRT_STEP_LAUNCH && step->phase == FRT_PHASE_RUN;
        n_init += step->phase == FRT_PHASE_INIT;
    }
    GIVE(info, (frt_graph_info){.name = g->name,
                                .n_tensors = (int32_t)g->n_tensors,
                                .n_inputs = n_by_role[FRT_INPUT],
                                .n_params = n_by_role[FRT_PARAM],
                                .n_outputs = n_by_role[FRT_OUTPUT],
                                .n_temps = n_by_role[FRT_TEMP],
                                .n_steps = (int32_t)g->n_steps,
                                .n_launches = n_launches,
                                .n_init = n_init,
                                .n_pitches = (int32_t)g->n_pitches});
    return FRT_OK;
}

frt_status frt_module_get_tensor(const frt_module *module, int32_t graph, int32_t tensor,
                                 frt_tensor_info *info) {
    const Tensor *t = find_tensor(module, graph, tensor);
    if (!t || !info) {
        return FRT_E_INVALID_ARGUMENT;
    }
    GIVE(info, (frt_tensor_info){.name = t->name,
                                 .weights_key = t->key,
                                 .role = t->role,
                                 .dtype = t->dtype,
                                 .rank = t->rank,
                                 .is_persistent = t->is_persistent,
                                 .stands_for = t->role == FRT_TEMP ? t->stands_for
                                                                   : (int32_t)t->in_place - 1});
    return FRT_OK;
}

/* The innermost repeat that the step belongs to, or NULL. */
static const Repeat *find_repeat(const frt_module *module, int32_t graph, int32_t step) {
    const Graph *g = find_graph(module, graph);
    const Repeat *found = NULL;
    for (uint32_t i = 0; i < g->n_repeats; i++) {
        const Repeat *repeat = &module->manifest.repeats[g->first_repeat + i];
        if ((uint32_t)step >= repeat->first && (uint32_t)step < repeat->end) {
            found = repeat; /* one that begins later is inside */
        }
    }
    return found;
}

frt_status frt_module_get_step(const frt_module *module, int32_t graph, int32_t step,
                               frt_step_info *info) {
    const Step *s = find_step(module, graph, step);
    if (!s || !info) {
        return FRT_E_INVALID_ARGUMENT;
    }
    const Repeat *repeat = find_repeat(module, graph, step);
    int32_t iterations = !repeat ? 0 : (uint32_t)step < repeat->odd ? 1 : 2;
    GIVE(info, (frt_step_info){.kind = s->kind,
                               .phase = s->phase,
                               .label = s->label,
                               .line = s->line,
                               .n_args = (int32_t)s->n_args,
                               .n_dims = (int32_t)s->n_dims,
                               .n_variants = (int32_t)s->n_variants,
                               .iterations = iterations,
                               .n_numbers = (int32_t)s->n_numbers});
    return FRT_OK;
}

int32_t frt_module_step_arg(const frt_module *module, int32_t graph, int32_t step, int32_t arg) {
    const Step *s = find_step(module, graph, step);
    bool is_good = s && arg >= 0 && (uint32_t)arg < s->n_args;
    return is_good ? (int32_t)module->manifest.refs[s->first_arg + (uint32_t)arg] : -1;
}

int32_t frt_module_step_dim(const frt_module *module, int32_t graph, int32_t step, int32_t dim) {
    const Step *s = find_step(module, graph, step);
    bool is_good = s && dim >= 0 && (uint32_t)dim < s->n_dims;
    return is_good ? (int32_t)module->manifest.refs[s->first_dim + (uint32_t)dim] : -1;
}

frt_status frt_module_step_number(const frt_module *module, int32_t graph, int32_t step,
                                  int32_t number, uint64_t *bits) {
    const Step *s = find_step(module, graph, step);
    if (!s || number < 0 || (uint32_t)number >= s->n_numbers || !bits) {
        return FRT_E_INVALID_ARGUMENT;
    }
    *bits = module->manifest.numbers[s->first_number + (uint32_t)number];
    return FRT_OK;
}

frt_status frt_module_get_variant(const frt_module *module, int32_t graph, int32_t step,
                                  int32_t variant, frt_variant_info *info) {
    const Variant *v = find_variant(module, graph, step, variant);
    if (!v || !info) {
        return FRT_E_INVALID_ARGUMENT;
    }
    GIVE(info, (frt_variant_info){.symbol = v->symbol,
                                  .block = v->block,
                                  .waits = v->waits,
                                  .has_price = v->price.group > 0,
                                  .cluster = v->cluster,
                                  .resident = v->resident});
    return FRT_OK;
}

static size_t print_expr(const frt_module *module, Expr expr, char *text, size_t n_bytes) {
    const Manifest *m = &module->manifest;
    return expr_print(m->tokens, expr, m->dim_names, text, n_bytes);
}

size_t frt_module_extent_text(const frt_module *module, int32_t graph, int32_t tensor, int32_t axis,
                              char *text, size_t n_bytes) {
    const Tensor *t = find_tensor(module, graph, tensor);
    bool is_good = t && axis >= 0 && axis < t->rank;
    return is_good ? print_expr(module, t->extents[axis], text, n_bytes) : 0;
}

size_t frt_module_offset_text(const frt_module *module, int32_t graph, int32_t tensor, char *text,
                              size_t n_bytes) {
    const Tensor *t = find_tensor(module, graph, tensor);
    bool is_good = t && t->role == FRT_TEMP && !t->is_persistent;
    return is_good ? print_expr(module, t->offset, text, n_bytes) : 0;
}

size_t frt_module_workspace_text(const frt_module *module, int32_t graph, char *text,
                                 size_t n_bytes) {
    const Graph *g = find_graph(module, graph);
    if (g && !g->has_workspace) {
        return (size_t)snprintf(text, n_bytes, "0");
    }
    return g ? print_expr(module, g->workspace, text, n_bytes) : 0;
}

size_t frt_module_iterations_text(const frt_module *module, int32_t graph, int32_t step, char *text,
                                  size_t n_bytes) {
    const Repeat *repeat = find_step(module, graph, step) ? find_repeat(module, graph, step) : NULL;
    return repeat ? print_expr(module, repeat->count, text, n_bytes) : 0;
}

size_t frt_module_grid_text(const frt_module *module, int32_t graph, int32_t step, int32_t variant,
                            char *text, size_t n_bytes) {
    const Variant *v = find_variant(module, graph, step, variant);
    return v ? print_expr(module, v->grid, text, n_bytes) : 0;
}

size_t frt_module_shared_text(const frt_module *module, int32_t graph, int32_t step,
                              int32_t variant, char *text, size_t n_bytes) {
    const Variant *v = find_variant(module, graph, step, variant);
    return v ? print_expr(module, v->shared, text, n_bytes) : 0;
}

static const char *arg_name(const frt_module *module, int32_t graph, const Step *step,
                            uint32_t arg) {
    const Manifest *m = &module->manifest;
    return m->tensors[m->graphs[graph].first_tensor + m->refs[step->first_arg + arg]].name;
}

/* Appends to a text of `n` characters that is cut to `n_bytes`. Returns the new length. */
static size_t append(char *text, size_t n_bytes, size_t n, const char *format, ...)
    FRT_PRINTF(4, 5);

static size_t append(char *text, size_t n_bytes, size_t n, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int more =
        vsnprintf(n < n_bytes ? text + n : NULL, n < n_bytes ? n_bytes - n : 0, format, args);
    va_end(args);
    return n + (more > 0 ? (size_t)more : 0);
}

/* Prints a term of a predicate over argument `tensor`. */
static size_t put_term(const frt_module *module, const Term *term, const char *tensor, char *text,
                       size_t n_bytes, size_t n) {
    char expr[512];
    if (term->kind == TERM_POINTER) {
        return append(text, n_bytes, n, "aligned(%s, %" PRId64 ")", tensor, term->number);
    }
    if (term->kind == TERM_LEVEL) {
        return append(text, n_bytes, n, "level %s", module->manifest.levels[term->arg].name);
    }
    print_expr(module, term->expr, expr, sizeof expr);
    if (term->kind == TERM_MULTIPLE) {
        return append(text, n_bytes, n, "(%s) %% %" PRId64 " == 0", expr, term->number);
    }
    return append(text, n_bytes, n, "%s <= %" PRId64, expr, term->number);
}

/* "aligned(x, 16) and K % 4 == 0 and B*64 <= 2147483647 and mapped(w)"; "always" for no terms. */
size_t frt_module_predicate_text(const frt_module *module, int32_t graph, int32_t step,
                                 int32_t variant, char *text, size_t n_bytes) {
    const Variant *v = find_variant(module, graph, step, variant);
    const Step *s = find_step(module, graph, step);
    size_t n = 0;
    if (!v) {
        return 0;
    }
    for (uint32_t i = 0; i < v->when.n_terms; i++) {
        const Term *term = &module->manifest.terms[v->when.first_term + i];
        bool is_pointer = term->kind == TERM_POINTER;
        const char *name = is_pointer ? arg_name(module, graph, s, term->arg) : NULL;
        n = append(text, n_bytes, n, "%s", n ? " and " : "");
        n = put_term(module, term, name, text, n_bytes, n);
    }
    for (uint32_t i = 0; i < v->n_maps; i++) {
        const Map *map = &module->manifest.maps[v->first_map + i];
        n = append(text, n_bytes, n, "%smapped(%s)", n ? " and " : "",
                   arg_name(module, graph, s, map->arg));
    }
    return n ? n : append(text, n_bytes, n, "always");
}

/* "x.pitch and x.width: K up to a multiple of 64, unless aligned(x, 16) and (K) % 8 == 0 or K <= 4"
 */
size_t frt_module_pitch_text(const frt_module *module, int32_t graph, int32_t pitch, char *text,
                             size_t n_bytes) {
    const Graph *g = find_graph(module, graph);
    if (!g || pitch < 0 || (uint32_t)pitch >= g->n_pitches) {
        return 0;
    }
    const Manifest *m = &module->manifest;
    const Pitch *p = &m->pitches[g->first_pitch + (uint32_t)pitch];
    char extent[512];
    print_expr(module, p->extent, extent, sizeof extent);
    size_t n = append(text, n_bytes, 0, "%s and %s: %s up to a multiple of %" PRId64,
                      m->dim_names[p->pitch], m->dim_names[p->width], extent, p->multiple);
    for (uint32_t i = 0; i < p->n_unless; i++) {
        n = append(text, n_bytes, n, i ? " or " : ", unless ");
        for (uint32_t k = 0; k < p->unless[i].n_terms; k++) {
            const Term *term = &m->terms[p->unless[i].first_term + k];
            n = append(text, n_bytes, n, "%s", k ? " and " : "");
            n = put_term(module, term, m->tensors[g->first_tensor + (uint32_t)p->source].name, text,
                         n_bytes, n);
        }
    }
    return n;
}

frt_status frt_module_eval_shape(const frt_module *module, int32_t graph, int32_t tensor,
                                 const int64_t *dim_values, int64_t dims[FRT_MAX_RANK],
                                 frt_error *err) {
    const Tensor *t = find_tensor(module, graph, tensor);
    if (!t || !dims || (!dim_values && module->manifest.n_given_dims > 0)) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no such tensor, or no dim values");
    }
    const Manifest *m = &module->manifest;
    const Graph *g = find_graph(module, graph);
    int64_t values[FRT_MAX_DIMS];
    bool known[FRT_MAX_DIMS] = {false};
    for (uint32_t i = 0; i < m->n_given_dims; i++) {
        frt_status status = manifest_check_dim(m, i, dim_values[i], the_caller, err);
        if (status) {
            return status;
        }
        values[i] = dim_values[i];
        known[i] = true;
    }
    for (uint32_t i = 0; i < g->n_pitches; i++) {
        pitch_resolve(m, &m->pitches[g->first_pitch + i], NULL, values, known);
    }
    return manifest_shape(m, t, (DimValues){values, known}, dims, NULL, err);
}

frt_status frt_program_get_kernel(frt_program *program, int32_t step, int32_t variant,
                                  frt_kernel_info *info, frt_error *err) {
    const Variant *wanted =
        program ? find_variant(program->module, program->graph_index, step, variant) : NULL;
    if (!wanted || !info) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT,
                        "no program, no place for the answer, or no step %d with a variant %d",
                        (int)step, (int)variant);
    }
    const Manifest *m = program->m;
    uint32_t first = m->steps[program->graph->first_step].first_variant;
    uint32_t index = (uint32_t)(wanted - m->variants) - first;
    Device *device = &program->device;
    frt_kernel_info found = {0};
    DeviceScope scope;
    frt_status status = device->ops->enter(device, &scope, err);
    if (status) {
        return status;
    }
    status = kernels_need(program->kernels, &index, 1, err);
    if (!status) {
        status = device->ops->describe(device, kernels_get(program->kernels, index), &found, err);
    }
    device->ops->leave(device, &scope);
    if (!status) {
        GIVE(info, found);
    }
    return status;
}
