/* Parts that are judged alike. See choose_state.h. */
#include "pass/choose_state.h"

#include <string.h>

static bool attrs_equal(const Attrs *a, const Attrs *b) {
    return memcmp(&a->number, &b->number, sizeof a->number) == 0 && a->precision == b->precision &&
           a->axis == b->axis && a->axes == b->axes && a->keep == b->keep &&
           memcmp(a->perm, b->perm, sizeof a->perm) == 0 &&
           memcmp(a->begin, b->begin, sizeof a->begin) == 0 &&
           memcmp(a->step, b->step, sizeof a->step) == 0;
}

static bool nodes_equal(const Node *a, const Node *b) {
    return a->op == b->op && a->dtype == b->dtype && a->n_args == b->n_args &&
           shape_equal(&a->shape, &b->shape) && attrs_equal(&a->attrs, &b->attrs) &&
           (a->n_args == 0 || memcmp(a->args, b->args, a->n_args * sizeof *a->args) == 0);
}

static bool graphs_equal(const Graph *a, const Graph *b) {
    if (a->nodes.n != b->nodes.n || a->outputs.n != b->outputs.n) return false;
    for (uint32_t i = 0; i < a->outputs.n; i++)
        if (a->outputs.data[i].node != b->outputs.data[i].node) return false;
    for (NodeId id = 0; id < a->nodes.n; id++)
        if (a->kernel_of.data[id] != b->kernel_of.data[id] ||
            !nodes_equal(graph_node(a, id), graph_node(b, id)))
            return false;
    return true;
}

static bool parts_equal(const Part *a, const Part *b) {
    if (a->kind != b->kind || !graphs_equal(a->excerpt.graph, b->excerpt.graph)) return false;
    const bool *of_a[] = {a->is_spread, a->may_place,   a->may_window,
                          a->is_late,   a->is_ahead[0], a->is_ahead[1]};
    const bool *of_b[] = {b->is_spread, b->may_place,   b->may_window,
                          b->is_late,   b->is_ahead[0], b->is_ahead[1]};
    size_t n = a->excerpt.graph->nodes.n * sizeof(bool);
    for (size_t i = 0; i < sizeof of_a / sizeof *of_a; i++)
        if (memcmp(of_a[i], of_b[i], n) != 0) return false;
    for (int i = 0; i < N_WISHES; i++)
        if (memcmp(a->wishes.all[i], b->wishes.all[i], n) != 0) return false;
    return true;
}

const Judged *choose_find_same(const Chooser *c, const Part *part) {
    for (uint32_t i = 0; i < c->judged.n; i++)
        if (parts_equal(c->judged.data[i].part, part)) return &c->judged.data[i];
    return NULL;
}
