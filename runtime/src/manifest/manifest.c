/* Lookups in a manifest, evaluation with error messages, and freeing. */
#include "manifest/manifest.h"

#include "host/error.h"
#include "host/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const TargetInfo *target_info(frt_target target) {
    static const TargetInfo infos[N_TARGETS] = {
#define TARGET(SYM, lower, ...) [FRT_TARGET_KIND_##SYM] = {__VA_ARGS__},
#include "manifest/targets.def"
    };
    return &infos[target];
}

void manifest_free(Manifest *m) {
    mem_free(m->dims);
    mem_free(m->graphs);
    mem_free(m->tensors);
    mem_free(m->steps);
    mem_free(m->variants);
    mem_free(m->pitches);
    mem_free(m->repeats);
    mem_free(m->terms);
    mem_free(m->maps);
    mem_free(m->tokens);
    mem_free(m->refs);
    mem_free(m->numbers);
    mem_free(m->strings);
    *m = (Manifest){0};
}

int32_t graph_find_tensor(const Manifest *m, const Graph *graph, const char *name) {
    uint32_t hash = name_hash(name);
    for (uint32_t i = 0; i < graph->n_tensors; i++) {
        const Tensor *tensor = &m->tensors[graph->first_tensor + i];
        if (tensor->hash == hash && strcmp(tensor->name, name) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

const char *role_name(frt_role role) {
    switch (role) {
    case FRT_INPUT:
        return "input";
    case FRT_PARAM:
        return "param";
    case FRT_OUTPUT:
        return "output";
    case FRT_TEMP:
        break;
    }
    return "temp";
}

const Subject the_caller = {"the caller", NULL, NO_AXIS};

void subject_print(Subject subject, char text[SUBJECT_BYTES]) {
    size_t n = (size_t)snprintf(text, SUBJECT_BYTES, "%s%s%.100s", subject.kind,
                                subject.name ? " " : "", subject.name ? subject.name : "");
    if (subject.axis != NO_AXIS && n < SUBJECT_BYTES) {
        snprintf(text + n, SUBJECT_BYTES - n, " axis %d", subject.axis);
    }
}

static frt_status fail_eval(const Manifest *m, ExprResult result, int64_t dim, Subject what,
                            frt_error *err) {
    char text[SUBJECT_BYTES];
    subject_print(what, text);
    if (result == EXPR_UNKNOWN_DIM) {
        return frt_fail(err, FRT_E_DIM_UNKNOWN,
                        "%s needs dim %s, which no bound tensor and no param fixes: bind one that "
                        "does or set the dim",
                        text, m->dims[dim].name);
    }
    return frt_fail(err, FRT_E_SHAPE, "%s is too large for these dims", text);
}

frt_status manifest_eval(const Manifest *m, Expr expr, DimValues dims, Subject what, int64_t *value,
                         frt_error *err) {
    ExprResult result = expr_eval(m->tokens, expr, dims, value);
    return result == EXPR_OK ? FRT_OK : fail_eval(m, result, *value, what, err);
}

frt_status manifest_check_dim(const Manifest *m, uint32_t dim, int64_t value, Subject by,
                              frt_error *err) {
    const Dim *d = &m->dims[dim];
    char text[SUBJECT_BYTES];
    if (value >= d->lo && value <= d->hi && value % d->multiple == 0) {
        return FRT_OK;
    }
    subject_print(by, text);
    if (value < d->lo || value > d->hi) {
        return frt_fail(err, FRT_E_DIM_RANGE,
                        "dim %s is %" PRId64 " by %s, outside its range %" PRId64 " to %" PRId64,
                        d->name, value, text, d->lo, d->hi);
    }
    return frt_fail(err, FRT_E_DIM_MULTIPLE,
                    "dim %s is %" PRId64 " by %s, which is not a multiple of %" PRId64, d->name,
                    value, text, d->multiple);
}

frt_status manifest_shape(const Manifest *m, const Tensor *tensor, DimValues dims, int64_t *extents,
                          int64_t *n_bytes, frt_error *err) {
    int64_t total = (int64_t)frt_dtype_bytes(tensor->dtype);
    bool is_empty = false;
    for (int32_t i = 0; i < tensor->rank; i++) {
        Subject what = {role_name(tensor->role), tensor->name, i};
        int64_t extent;
        frt_status status = manifest_eval(m, tensor->extents[i], dims, what, &extent, err);
        if (status) {
            return status;
        }
        if (extent < 0) {
            char text[SUBJECT_BYTES];
            subject_print(what, text);
            return frt_fail(err, FRT_E_SHAPE, "%s would be %" PRId64, text, extent);
        }
        if (extents) {
            extents[i] = extent;
        }
        is_empty = is_empty || extent == 0;
        if (!checked_mul(total, extent ? extent : 1, &total)) {
            return frt_fail(err, FRT_E_SHAPE, "%s %s has more bytes than memory can",
                            role_name(tensor->role), tensor->name);
        }
    }
    if (n_bytes) {
        *n_bytes = is_empty ? 0 : total;
    }
    return FRT_OK;
}

/* An expression that overflows makes its term false: later variants are for such sizes. */
static bool term_holds(const Manifest *m, const Term *term, uint32_t levels, void *const *args,
                       DimValues dims) {
    int64_t value = 0;
    switch (term->kind) {
    case TERM_POINTER:
        return (uintptr_t)args[term->arg] % (uintptr_t)term->number == 0;
    case TERM_LEVEL:
        return levels >> term->arg & 1;
    case TERM_MULTIPLE:
        return expr_eval(m->tokens, term->expr, dims, &value) == EXPR_OK &&
               value % term->number == 0;
    case TERM_AT_MOST:
        break;
    }
    return expr_eval(m->tokens, term->expr, dims, &value) == EXPR_OK && value <= term->number;
}

bool predicate_holds(const Manifest *m, Predicate predicate, uint32_t levels, void *const *args,
                     DimValues dims) {
    for (uint32_t i = 0; i < predicate.n_terms; i++) {
        if (!term_holds(m, &m->terms[predicate.first_term + i], levels, args, dims)) {
            return false;
        }
    }
    return true;
}

void pitch_resolve(const Manifest *m, const Pitch *pitch, void *address, int64_t *values,
                   bool *known) {
    DimValues dims = {values, known};
    int64_t extent;
    int64_t padded;
    bool is_known = expr_eval(m->tokens, pitch->extent, dims, &extent) == EXPR_OK && extent >= 0 &&
                    checked_add(extent, pitch->multiple - 1, &padded);
    bool is_copied = true;
    for (uint32_t i = 0; is_known && i < pitch->n_unless; i++) {
        is_copied = is_copied && !predicate_holds(m, pitch->unless[i], 0, &address, dims);
    }
    known[pitch->pitch] = is_known;
    known[pitch->width] = is_known;
    if (is_known) {
        padded -= padded % pitch->multiple;
        values[pitch->pitch] = is_copied ? padded : extent;
        values[pitch->width] = is_copied ? padded : 0;
    }
}
