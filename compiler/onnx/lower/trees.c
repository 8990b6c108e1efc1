/* Ensembles of decision trees of the domain ai.onnx.ml. All trees go down together, a place for
 * each row and tree, by as many steps as the deepest tree has: x: [n, features], places:
 * i32[n, trees]. Every test is written as tests `x <= value`, so that a step is a few gathers and a
 * comparison. */
#include "onnx/call/import_state.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_DEPTH = 512, MAX_TREE_NODES = 1 << 24 };

/* A test, or a leaf, which is its own next place. */
typedef struct Place {
    int64_t feature, yes, no;
    double value;
    bool is_leaf, nan_is_yes;
} Place;

/* The place of a node by those of its tree and of itself. */
typedef struct NodeKey {
    int64_t tree, node, at;
} NodeKey;

typedef struct Forest {
    Vec(Place) places;
    NodeKey *keys; /* in order, of the ops that have them */
    uint32_t n_keys;
    VecInt roots;
    int64_t n_features, n_targets;
    Dtype dtype;        /* of x and the weights: f32 or f64 */
    Str join;           /* how the trees' weights become one */
    bool has_one_class; /* the weights are of one target, whatever its number */
    double *weights;    /* [places, targets] of leaves, once the places are complete */
} Forest;

typedef enum { TEST_LEQ, TEST_LT, TEST_GTE, TEST_GT, TEST_EQ, TEST_NEQ, TEST_MEMBER } TestMode;

/* The largest number below. */
static double before(const Forest *f, double value) {
    return dtype_is_double(f->dtype) ? nextafter(value, -INFINITY)
                                     : (double)nextafterf((float)value, -INFINITY);
}

/* place `at`: x <= value. The places exist. */
static void set_test(Forest *f, int64_t at, double value, int64_t yes, int64_t no,
                     bool nan_is_yes) {
    Place *place = &f->places.data[at];
    place->value = value, place->yes = yes, place->no = no, place->nan_is_yes = nan_is_yes;
}

/* Whether x is one of n values: for each of them a test that x is not above, and one that it is
 * not below. */
static void set_member(Call *c, Forest *f, int64_t at, uint32_t n, const double *values,
                       int64_t yes, int64_t no, bool nan_is_yes) {
    Place like = f->places.data[at];
    set_test(f, at, 0, no, no, nan_is_yes);
    for (uint32_t i = 0; i < n; i++) {
        int64_t upper = i == 0 ? at : f->places.n - 1, lower = f->places.n, next = no;
        vec_push(c->im->arena, &f->places, like);
        if (i + 1 < n) next = f->places.n, vec_push(c->im->arena, &f->places, like);
        set_test(f, upper, values[i], lower, next, i == 0 && nan_is_yes);
        set_test(f, lower, before(f, values[i]), next, yes, false);
    }
}

/* The test of one mode with one value. */
static void set_mode(Call *c, Forest *f, int64_t at, TestMode mode, double value, int64_t yes,
                     int64_t no, bool nan_is_yes) {
    switch (mode) {
    case TEST_LEQ:
        set_test(f, at, value, yes, no, nan_is_yes);
        return;
    case TEST_LT:
        set_test(f, at, before(f, value), yes, no, nan_is_yes);
        return;
    case TEST_GTE:
        set_test(f, at, before(f, value), no, yes, !nan_is_yes);
        return;
    case TEST_GT:
        set_test(f, at, value, no, yes, !nan_is_yes);
        return;
    case TEST_MEMBER:
    case TEST_EQ:
        set_member(c, f, at, 1, &value, yes, no, nan_is_yes);
        return;
    /* NaN differs from the value, which is `yes` for whoever asks whether it is the value */
    case TEST_NEQ:
        set_member(c, f, at, 1, &value, no, yes, false);
        return;
    }
}

/* The steps to the deepest leaf; -1 if places lead in a circle, or nowhere. */
static int64_t depth_of(Call *c, const Forest *f) {
    bool *here = arena_array(c->im->arena, bool, f->places.n + 1), *next;
    for (uint32_t i = 0; i < f->roots.n; i++) here[f->roots.data[i]] = true;
    for (int64_t depth = 0; depth <= MAX_DEPTH; depth++, here = next) {
        bool goes_on = false;
        next = arena_array(c->im->arena, bool, f->places.n + 1);
        for (uint32_t i = 0; i < f->places.n; i++) {
            if (!here[i] || f->places.data[i].is_leaf) continue;
            next[f->places.data[i].yes] = next[f->places.data[i].no] = goes_on = true;
        }
        if (!goes_on) return depth;
    }
    return -1;
}

static bool check_forest(Call *c, const Forest *f) {
    for (uint32_t i = 0; i < f->places.n; i++) {
        const Place *p = &f->places.data[i];
        bool inside = p->yes >= 0 && p->yes < f->places.n && p->no >= 0 && p->no < f->places.n;
        if (!inside || p->feature < 0 || p->feature >= f->n_features)
            return onnx_fail(c, DIAG_BAD_ARGUMENT,
                             "node %u of its trees has no next node, or tests a feature that the "
                             "input does not have",
                             i);
    }
    return true;
}

/* The tables of places, one element a place. */

static NodeId table_of(Call *c, const Forest *f, Dtype dtype, double (*field)(const Place *)) {
    int64_t n = f->places.n;
    double *values = arena_array(c->im->arena, double, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) values[i] = field(&f->places.data[i]);
    return table_node(c, dtype, 1, &n, values);
}

static double field_feature(const Place *p) {
    return (double)p->feature;
}
static double field_value(const Place *p) {
    return p->value;
}
static double field_yes(const Place *p) {
    return (double)p->yes;
}
static double field_no(const Place *p) {
    return (double)p->no;
}
static double field_nan(const Place *p) {
    return p->nan_is_yes;
}

static bool tests_nan(const Forest *f) {
    for (uint32_t i = 0; i < f->places.n; i++)
        if (f->places.data[i].nan_is_yes) return true;
    return false;
}

/* i32[n, trees]: the leaf of each row in each tree. */
static NodeId leaves(Call *c, const Forest *f, NodeId x) {
    static const int64_t all[] = {-1};
    Builder *b = c->im->b;
    int64_t depth = depth_of(c, f), n_trees = f->roots.n;
    if (depth < 0 || n_trees == 0) {
        onnx_fail(c, DIAG_LIMIT, "its trees lead in a circle, or are deeper than %d", MAX_DEPTH);
        return NODE_NONE;
    }
    Shape places = {2, {shape_of(c, x)->dims[0], number(c, n_trees)}};
    double *first = arena_array(c->im->arena, double, (size_t)n_trees + 1);
    for (int64_t i = 0; i < n_trees; i++) first[i] = (double)f->roots.data[i];
    NodeId at = expand_to(c, table_node(c, DT_I32, 1, &n_trees, first), &places);
    NodeId feature = table_of(c, f, DT_I32, field_feature);
    NodeId value = table_of(c, f, f->dtype, field_value);
    NodeId yes = table_of(c, f, DT_I32, field_yes), no = table_of(c, f, DT_I32, field_no);
    NodeId nan = tests_nan(f) ? table_of(c, f, DT_BOOL, field_nan) : NODE_NONE;
    NodeId numbers = reshape_const(c, x, 1, all);
    NodeId row = op2n(c, OP_MUL, index_along(c, &places, 0), (double)f->n_features);
    for (int64_t i = 0; i < depth; i++) {
        NodeId place = op2(c, OP_ADD, row, build_gather(b, feature, at, 0));
        NodeId tested = build_gather(b, numbers, place, 0);
        NodeId goes = op2(c, OP_LESS_EQUAL, tested, build_gather(b, value, at, 0));
        if (nan != NODE_NONE)
            goes =
                where(c, op2(c, OP_NOT_EQUAL, tested, tested), build_gather(b, nan, at, 0), goes);
        at = where(c, goes, build_gather(b, yes, at, 0), build_gather(b, no, at, 0));
    }
    return at;
}

/* [n, targets]: the weights of the leaves, joined over the trees. */
static NodeId joined_weights(Call *c, const Forest *f, NodeId x) {
    if (!check_forest(c, f)) return NODE_NONE;
    NodeId at = leaves(c, f, x);
    int64_t dims[2] = {f->places.n, f->n_targets};
    if (at == NODE_NONE) return at;
    OpId op = strcmp(f->join, "MIN") == 0 ? OP_MIN : strcmp(f->join, "MAX") == 0 ? OP_MAX : OP_SUM;
    NodeId table = table_node(c, f->dtype, 2, dims, f->weights);
    NodeId y = reduce(c, op, build_gather(c->im->b, table, at, 0), 1u << 1, false);
    return strcmp(f->join, "AVERAGE") == 0 ? op2n(c, OP_DIV, y, (double)f->roots.n) : y;
}

/* Joins one weight to a leaf's. Sums begin at 0, which leaves without a weight keep. */
static void join_weight(Forest *f, int64_t at, int64_t target, double weight) {
    double *w = &f->weights[at * f->n_targets + target];
    if (strcmp(f->join, "MIN") == 0)
        *w = fmin(*w, weight);
    else if (strcmp(f->join, "MAX") == 0)
        *w = fmax(*w, weight);
    else
        *w += weight;
}

static bool begin_weights(Call *c, Forest *f) {
    static const char *const joins[] = {"SUM", "AVERAGE", "MIN", "MAX"};
    size_t n = (size_t)f->places.n * (size_t)f->n_targets, k = 0;
    double most = dtype_is_double(f->dtype) ? DBL_MAX : (double)FLT_MAX;
    while (k < 4 && strcmp(f->join, joins[k]) != 0) k++;
    if (k == 4)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "there is no aggregate_function `%s`", f->join);
    if (f->places.n && n / f->places.n != (size_t)f->n_targets) n = SIZE_MAX;
    if (n > MAX_TREE_NODES) return onnx_fail(c, DIAG_LIMIT, "its trees have too many leaves");
    f->weights = arena_array(c->im->arena, double, n + 1);
    for (size_t i = 0; k >= 2 && i < n; i++) f->weights[i] = k == 2 ? most : -most;
    return true;
}

/* Attributes. */

/* The numbers of an attribute, or of the tensor that newer opsets have instead; n of them, or none
 * if `may_lack`. */
static bool numbers_attr(Call *c, const char *name, uint32_t n, bool may_lack,
                         const double **values) {
    const OnnxAttr *attr = find_attr(c, name);
    const OnnxAttr *wide = find_attr(c, str_format(c->im->arena, "%s_as_tensor", name));
    const OnnxAttr *given = wide && wide->tensor ? wide : attr;
    bool is_tensor = given && !given->floats.n && given->tensor;
    uint32_t n_given = is_tensor ? (uint32_t)given->tensor->n_elems : given ? given->floats.n : 0;
    *values = is_tensor ? tensor_numbers(c->im, given->tensor) : given ? given->floats.data : NULL;
    if (!*values) n_given = 0;
    if (n_given == n || (may_lack && !n_given)) return true;
    return onnx_fail(c, DIAG_WRONG_COUNT, "its attribute `%s` needs %u numbers, not %u", name, n,
                     n_given);
}

static bool ints_attr(Call *c, const char *name, uint32_t n, const int64_t **values) {
    const VecInt *list;
    uint32_t n_given = attr_ints(c, name, &list) ? list->n : 0;
    *values = n_given ? list->data : NULL;
    return n_given == n ||
           onnx_fail(c, DIAG_WRONG_COUNT, "its attribute `%s` needs %u integers, not %u", name, n,
                     n_given);
}

static int compare_keys(const void *a, const void *b) {
    const NodeKey *x = a, *y = b;
    if (x->tree != y->tree) return x->tree < y->tree ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* -1: there is none */
static int64_t find_node(const Forest *f, int64_t tree, int64_t node) {
    NodeKey wanted = {tree, node, 0};
    const NodeKey *found = bsearch(&wanted, f->keys, f->n_keys, sizeof wanted, compare_keys);
    return found ? found->at : -1;
}

static bool mode_by_name(Call *c, Str name, TestMode *mode) {
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                        "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *mode = (TestMode)i;
            return true;
        }
    return onnx_fail(c, DIAG_BAD_ARGUMENT, "there is no mode `%s` of nodes", name);
}

/* The nodes of the ops of before opset 5, whose trees and nodes have numbers of their own. */
static bool read_nodes(Call *c, Forest *f) {
    const OnnxAttr *modes = find_attr(c, "nodes_modes");
    uint32_t n = modes ? modes->strings.n : 0;
    const int64_t *trees, *ids, *features, *yes, *no, *nan = NULL;
    const double *values;
    if (n == 0) return onnx_fail(c, DIAG_BAD_ARGUMENT, "its trees have no nodes");
    if (!ints_attr(c, "nodes_treeids", n, &trees) || !ints_attr(c, "nodes_nodeids", n, &ids) ||
        !ints_attr(c, "nodes_featureids", n, &features) ||
        !ints_attr(c, "nodes_truenodeids", n, &yes) ||
        !ints_attr(c, "nodes_falsenodeids", n, &no) ||
        !numbers_attr(c, "nodes_values", n, false, &values))
        return false;
    if (find_attr(c, "nodes_missing_value_tracks_true") &&
        !ints_attr(c, "nodes_missing_value_tracks_true", n, &nan))
        return false;
    f->n_keys = n;
    f->keys = arena_array(c->im->arena, NodeKey, n);
    bool *is_child = arena_array(c->im->arena, bool, n);
    for (uint32_t i = 0; i < n; i++) {
        f->keys[i] = (NodeKey){trees[i], ids[i], i};
        Place leaf = {.yes = i, .no = i, .is_leaf = strcmp(modes->strings.data[i], "LEAF") == 0};
        if (!leaf.is_leaf) leaf.feature = features[i];
        vec_push(c->im->arena, &f->places, leaf);
    }
    qsort(f->keys, n, sizeof *f->keys, compare_keys);
    for (uint32_t i = 0; i < n; i++) {
        TestMode mode = TEST_LEQ;
        if (f->places.data[i].is_leaf) continue;
        int64_t to_yes = find_node(f, trees[i], yes[i]);
        int64_t to_no = find_node(f, trees[i], no[i]);
        if (to_yes < 0 || to_no < 0)
            return onnx_fail(c, DIAG_BAD_ARGUMENT, "node %u of its trees has no next node", i);
        if (!mode_by_name(c, modes->strings.data[i], &mode)) return false;
        is_child[to_yes] = is_child[to_no] = true;
        set_mode(c, f, i, mode, values[i], to_yes, to_no, nan && nan[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        if (!is_child[i]) vec_push(c->im->arena, &f->roots, (int64_t)i);
    return true;
}

/* The weights of the leaves; `what` is "class" or "target", as in the attributes' names. */
static bool read_weights(Call *c, Forest *f, const char *what) {
    Arena *arena = c->im->arena;
    const VecInt *targets;
    const int64_t *trees, *nodes;
    const double *weights;
    if (!attr_ints(c, str_format(arena, "%s_ids", what), &targets))
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "it needs the attribute `%s_ids`", what);
    uint32_t n = targets->n;
    if (!ints_attr(c, str_format(arena, "%s_treeids", what), n, &trees) ||
        !ints_attr(c, str_format(arena, "%s_nodeids", what), n, &nodes) ||
        !numbers_attr(c, str_format(arena, "%s_weights", what), n, false, &weights) ||
        !begin_weights(c, f))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        int64_t at = find_node(f, trees[i], nodes[i]);
        int64_t target = f->has_one_class ? 0 : targets->data[i];
        if (at < 0 || target < 0 || target >= f->n_targets)
            return onnx_fail(c, DIAG_BAD_ARGUMENT, "weight %u belongs to no leaf and target", i);
        join_weight(f, at, target, weights[i]);
    }
    return true;
}

/* x as f64 if it is, else as f32: [n, features]. */
static NodeId forest_input(Call *c, Forest *f) {
    NodeId x = onnx_ml_rows(c, &f->n_features);
    f->dtype = x == NODE_NONE ? DT_F32 : dtype_of(c, x);
    return x;
}

/* The op of opset 5 and later, whose nodes and leaves are two lists. */

/* The values of the nodes that ask for members: after each of them a NaN. */
static bool read_members(Call *c, const double **values, uint32_t *n) {
    const OnnxAttr *attr = find_attr(c, "membership_values");
    *n = attr && attr->tensor ? (uint32_t)attr->tensor->n_elems : 0;
    *values = *n ? tensor_numbers(c->im, attr->tensor) : NULL;
    return !*n || *values ||
           onnx_fail(c, DIAG_BAD_ARGUMENT, "its membership_values cannot be read");
}

static uint32_t n_tensor(const Call *c, const char *name) {
    const OnnxAttr *attr = find_attr(c, name);
    return attr && attr->tensor ? (uint32_t)attr->tensor->n_elems : 0;
}

/* Places are the nodes, then the leaves. */
static bool read_tests(Call *c, Forest *f, uint32_t n, uint32_t n_leaves) {
    const int64_t *features, *yes, *no, *yes_leaf, *no_leaf, *nan = NULL;
    const double *modes, *values, *members;
    uint32_t n_members, m = 0;
    if (!ints_attr(c, "nodes_featureids", n, &features) ||
        !ints_attr(c, "nodes_truenodeids", n, &yes) ||
        !ints_attr(c, "nodes_falsenodeids", n, &no) ||
        !ints_attr(c, "nodes_trueleafs", n, &yes_leaf) ||
        !ints_attr(c, "nodes_falseleafs", n, &no_leaf) ||
        !numbers_attr(c, "nodes_modes", n, false, &modes) ||
        !numbers_attr(c, "nodes_splits", n, false, &values) ||
        !read_members(c, &members, &n_members) ||
        (find_attr(c, "nodes_missing_value_tracks_true") &&
         !ints_attr(c, "nodes_missing_value_tracks_true", n, &nan)))
        return false;
    for (uint32_t i = 0; i < n + n_leaves; i++)
        vec_push(c->im->arena, &f->places,
                 (Place){.yes = i, .no = i, .is_leaf = i >= n, .feature = i < n ? features[i] : 0});
    for (uint32_t i = 0; i < n; i++) {
        int64_t to_yes = yes[i] + (yes_leaf[i] ? n : 0), to_no = no[i] + (no_leaf[i] ? n : 0);
        if (modes[i] == TEST_MEMBER) {
            uint32_t first = m;
            while (m < n_members && !isnan(members[m])) m++;
            set_member(c, f, i, m - first, members + first, to_yes, to_no, nan && nan[i]);
            m++;
        } else if (modes[i] >= 0 && modes[i] < TEST_MEMBER)
            set_mode(c, f, i, (TestMode)modes[i], values[i], to_yes, to_no, nan && nan[i]);
        else
            return onnx_fail(c, DIAG_BAD_ARGUMENT, "there is no mode %g of nodes", modes[i]);
    }
    return true;
}

bool onnx_ml_tree_ensemble(Call *c) {
    static const char *const joins[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    int64_t join = attr_int(c, "aggregate_function", 1);
    const VecInt *targets, *roots;
    const double *weights;
    Forest f = {.n_targets = attr_int(c, "n_targets", 1),
                .join = join >= 0 && join < 4 ? joins[join] : "?"};
    NodeId x = forest_input(c, &f);
    uint32_t n = n_tensor(c, "nodes_modes");
    if (x == NODE_NONE) return false;
    if (!attr_ints(c, "leaf_targetids", &targets) || !attr_ints(c, "tree_roots", &roots) || !n ||
        f.n_targets < 1 || f.n_targets > MAX_TREE_NODES)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "it needs nodes, leaves, roots and targets");
    if (attr_int(c, "post_transform", 0) != 0)
        return onnx_fail(c, DIAG_NO_LOWERING, "its post_transform is not supported");
    if (!numbers_attr(c, "leaf_weights", targets->n, false, &weights) ||
        !read_tests(c, &f, n, targets->n) || !begin_weights(c, &f))
        return false;
    for (uint32_t i = 0; i < roots->n; i++) {
        if (roots->data[i] < 0 || roots->data[i] >= n)
            return onnx_fail(c, DIAG_BAD_ARGUMENT, "root %u of its trees is no node", i);
        vec_push(c->im->arena, &f.roots, roots->data[i]);
    }
    for (uint32_t i = 0; i < targets->n; i++) {
        if (targets->data[i] < 0 || targets->data[i] >= f.n_targets)
            return onnx_fail(c, DIAG_BAD_ARGUMENT, "leaf %u belongs to no target", i);
        join_weight(&f, (int64_t)n + i, targets->data[i], weights[i]);
    }
    return output(c, 0, joined_weights(c, &f, x));
}

/* The ops before opset 5. */

/* Scores with the attribute `base_values` added, if there is one. */
static NodeId with_base(Call *c, const Forest *f, NodeId scores) {
    const double *base;
    int64_t n = f->n_targets;
    if (!find_attr(c, "base_values") && !find_attr(c, "base_values_as_tensor")) return scores;
    if (scores == NODE_NONE || !numbers_attr(c, "base_values", (uint32_t)n, true, &base))
        return NODE_NONE;
    return base ? op2(c, OP_ADD, scores, table_node(c, f->dtype, 1, &n, base)) : scores;
}

bool onnx_ml_tree_regressor(Call *c) {
    Forest f = {.n_targets = attr_int(c, "n_targets", 1),
                .join = attr_string(c, "aggregate_function", "SUM")};
    NodeId x = forest_input(c, &f);
    if (x == NODE_NONE) return false;
    if (f.n_targets < 1 || f.n_targets > MAX_TREE_NODES)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "it has %lld targets", (long long)f.n_targets);
    if (!read_nodes(c, &f)) return false;
    if (!read_weights(c, &f, "target")) return false;
    NodeId y = onnx_ml_transformed(c, with_base(c, &f, joined_weights(c, &f, x)));
    return output(c, 0, cast_to(c, y, DT_F32));
}

/* Two classes of which the leaves score the second alone, score: [n, 1]. Probabilities, which are
 * not negative, decide at 1/2, and other scores at 0. */
static bool output_second_class(Call *c, NodeId score, bool are_probabilities,
                                const VecInt *labels) {
    if (score == NODE_NONE) return false;
    bool is_logistic = strcmp(attr_string(c, "post_transform", "NONE"), "LOGISTIC") == 0;
    NodeId first = op1(c, OP_NEG, score);
    if (are_probabilities && !is_logistic) first = op2n(c, OP_ADD, first, 1);
    NodeId is_second = op2n(c, OP_GREATER, at_index(c, score, 1, 0), are_probabilities ? 0.5 : 0);
    int64_t n = 2;
    NodeId table =
        table_node(c, DT_I64, 1, &n, (double[]){(double)labels->data[0], (double)labels->data[1]});
    NodeId scores = onnx_ml_transformed(c, concat(c, first, score, 1));
    return output(c, 0, build_gather(c->im->b, table, cast_to(c, is_second, DT_I32), 0)) &&
           output(c, 1, cast_to(c, scores, DT_F32));
}

static bool have_one_class(Call *c) {
    const VecInt *ids;
    if (!attr_ints(c, "class_ids", &ids)) return false;
    for (uint32_t i = 1; i < ids->n; i++)
        if (ids->data[i] != ids->data[0]) return false;
    return ids->n > 0;
}

bool onnx_ml_tree_classifier(Call *c) {
    const VecInt *labels;
    Forest f = {.join = "SUM"};
    NodeId x = forest_input(c, &f);
    if (x == NODE_NONE || !onnx_ml_labels(c, "classlabels_int64s", &labels) || !read_nodes(c, &f))
        return false;
    f.has_one_class = labels->n == 2 && have_one_class(c);
    f.n_targets = f.has_one_class ? 1 : labels->n;
    if (!read_weights(c, &f, "class")) return false;
    NodeId scores = with_base(c, &f, joined_weights(c, &f, x));
    if (!f.has_one_class) return onnx_ml_output_classes(c, scores, labels);
    bool are_probabilities = true;
    for (uint32_t i = 0; i < f.places.n; i++) are_probabilities &= f.weights[i] >= 0;
    return output_second_class(c, scores, are_probabilities, labels);
}
