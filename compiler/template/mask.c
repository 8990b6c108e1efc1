/* See mask.h. */
#include "template/mask.h"

#include <math.h>

static bool is_hidden(const Scalar *arm) {
    return arm->kind == SCALAR_CONST && dtype_is_float(arm->dtype) && arm->number == -INFINITY;
}

uint32_t masks_find(const ScalarTab *tab, ScalarId root, Mask *masks) {
    uint32_t n = 0;
    while (root && n < MOST_MASKS) {
        root = scalar_without_casts(tab, root);
        const Scalar *select = scalar_get(tab, root);
        if (select->kind != SCALAR_PRIM || select->prim != PRIM_SELECT) return n;
        bool hides_first = is_hidden(scalar_get(tab, scalar_without_casts(tab, select->args[1])));
        bool hides_second = is_hidden(scalar_get(tab, scalar_without_casts(tab, select->args[2])));
        if (hides_first == hides_second) return n;
        masks[n++] = (Mask){.select = root,
                            .shows = select->args[0],
                            .score = select->args[hides_first ? 2 : 1],
                            .is_negated = hides_first};
        root = masks[n - 1].score;
    }
    return n;
}

ScoreProgram score_program(const Kernel *scores, const Kernel *online) {
    const Reduce *reduce = &online->reduces.data[0];
    ScalarId exponent = reduce->power ? reduce->lhs : SCALAR_NONE;
    if (!scores)
        return (ScoreProgram){.kernel = online,
                              .row_axis = gemm_axis_m(online),
                              .key_axis = gemm_axis_k(online),
                              .root = exponent};
    if (exponent) exponent = scalar_without_casts(online->scalars, exponent);
    bool is_score = exponent && scalar_get(online->scalars, exponent)->kind == SCALAR_LOAD;
    return (ScoreProgram){.kernel = scores,
                          .row_axis = gemm_axis_m(scores),
                          .key_axis = gemm_axis_n(scores),
                          .root = is_score ? scores->row_stores.data[0].value : SCALAR_NONE};
}

static MaskPart part_of_bool(const ScalarTab *tab, const Scalar *scalar) {
    if (scalar->kind != SCALAR_PRIM) return MASK_VALUE;
    switch ((int)scalar->prim) {
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_NOT:
    case PRIM_BITAND:
    case PRIM_BITOR:
        return MASK_JOINED;
    case PRIM_LT:
    case PRIM_LE:
    case PRIM_EQ:
    case PRIM_NE:
        return dtype_in(scalar_get(tab, scalar->args[0])->dtype, DTS_INDEX) ? MASK_JOINED
                                                                            : MASK_VALUE;
    default:
        return MASK_VALUE;
    }
}

/* Whether the conversion keeps the values of an integer of indices. */
static bool is_wider(const ScalarTab *tab, const Scalar *cvt) {
    Dtype from = scalar_get(tab, cvt->args[0])->dtype;
    return dtype_in(from, DTS_INDEX) && dtype_bytes(from) <= dtype_bytes(cvt->dtype);
}

MaskPart mask_part(const ScalarTab *tab, ScalarId id) {
    const Scalar *scalar = scalar_get(tab, id);
    if (dtype_is_bool(scalar->dtype)) return part_of_bool(tab, scalar);
    if (!dtype_in(scalar->dtype, DTS_INDEX)) return MASK_UNKNOWN;
    switch (scalar->kind) {
    case SCALAR_CONST:
    case SCALAR_INDEX:
        return MASK_NUMBER;
    case SCALAR_PRIM:
        return scalar->prim == PRIM_ADD || scalar->prim == PRIM_SUB ? MASK_SUM : MASK_VALUE;
    case SCALAR_CVT:
        return is_wider(tab, scalar) ? MASK_WIDER : MASK_VALUE;
    case SCALAR_GIVEN:
    case SCALAR_LOAD:
    case SCALAR_INSIDE:
    case SCALAR_STAGE:
    case SCALAR_EXTREME:
    case SCALAR_BITCAST:
        return MASK_VALUE;
    }
    return MASK_UNKNOWN;
}

void mask_each_value(const ScalarTab *tab, ScalarId id, MaskVisitor *visit, void *user) {
    const Scalar *scalar = scalar_get(tab, id);
    switch (mask_part(tab, id)) {
    case MASK_NUMBER:
    case MASK_UNKNOWN:
        return;
    case MASK_VALUE:
        visit(user, id);
        return;
    case MASK_WIDER:
    case MASK_SUM:
    case MASK_JOINED:
        for (uint32_t i = 0; i < 3 && scalar->args[i]; i++)
            mask_each_value(tab, scalar->args[i], visit, user);
    }
}
