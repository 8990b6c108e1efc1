/* See sequence.h. Subgraphs are made from the last to the first, because one has to store what
 * later ones read. */
#include "ir/sequence.h"

#include "ir/node_flags.h"

#include <string.h>

enum { PLACE_BYTES = 256 }; /* of which a value's place is a multiple */

/* What is known of a node of the whole graph. */
enum {
    NODE_FROM_PARAMS, /* it follows from params and literals */
    NODE_CHEAP,       /* elementwise from literals and counts alone */
    NODE_FREE         /* each subgraph that reads it computes it */
};

typedef struct Cutter {
    Arena *arena;
    const Graph *whole;
    Sequence *sequence;
    GraphLoops loops;
    VecU32 *inside;  /* per loop, plus 1: the loops directly inside it; 0: those in no other */
    uint32_t *order; /* per loop: its place among these */
    NodeFlags flags;
    uint32_t *level;    /* per node: the number of loops that have run before it is computed, of
                         * those in the step that it is computed in */
    uint32_t *value_of; /* per node: the value that it is, plus 1; 0: it is none yet */
    NodeFlags needed;   /* of the subgraph that is being made: NODE_NEEDED */
    NodeId *copy_of;    /* its node, per node that it needs */
    uint32_t n_names;
} Cutter;

/* Of a subgraph: it has the node. */
enum { NODE_NEEDED };

/* A subgraph while it is made. */
typedef struct Making {
    Cutter *c;
    SequenceGraph *sub;
    uint32_t level;   /* of nodes that are computed in it */
    uint32_t loop;    /* it is of a step of this loop, plus 1; 0: of none */
    NodeFlags needed; /* the cutter's */
    NodeId *copy_of;  /* the cutter's */
} Making;

/* Levels. */

static void find_inside(Cutter *c) {
    uint32_t n = c->loops.loops.n;
    c->inside = arena_array(c->arena, VecU32, n + 1);
    c->order = arena_array(c->arena, uint32_t, n);
    for (uint32_t l = 0; l < n; l++) {
        VecU32 *inside = &c->inside[c->loops.loops.data[l].parent];
        c->order[l] = inside->n;
        vec_push(c->arena, inside, l);
    }
}

/* Nodes of a block are computed in one place: where the last of them can be. */
static bool level_blocks(Cutter *c) {
    const Graph *graph = c->whole;
    uint32_t *most = arena_array(c->arena, uint32_t, graph->fixed_kernels.n + 1);
    bool changes = false;
    for (NodeId id = 0; id < graph->kernel_of.n; id++)
        if (most[graph->kernel_of.data[id]] < c->level[id])
            most[graph->kernel_of.data[id]] = c->level[id];
    for (NodeId id = 0; id < graph->kernel_of.n; id++) {
        uint32_t block = graph->kernel_of.data[id];
        if (!block || c->level[id] == most[block]) continue;
        c->level[id] = most[block];
        changes = true;
    }
    return changes;
}

static uint32_t level_of(const Cutter *c, NodeId id) {
    const Node *node = graph_node(c->whole, id);
    uint32_t level = c->level[id];
    if (node->op == OP_LOOP_CARRY) return level;
    if (node->op == OP_LOOP_RESULT) {
        uint32_t after = c->order[c->loops.of[node->args[0]] - 1] + 1;
        return level < after ? after : level;
    }
    for (uint32_t i = 0; i < node->n_args; i++)
        if (c->loops.of[node->args[i]] == c->loops.of[id] && level < c->level[node->args[i]])
            level = c->level[node->args[i]];
    return level;
}

static void find_levels(Cutter *c) {
    do {
        for (NodeId id = 0; id < c->whole->nodes.n; id++) c->level[id] = level_of(c, id);
    } while (level_blocks(c));
}

static bool all_have(const Cutter *c, const Node *node, unsigned flag) {
    bool all = true;
    for (uint32_t i = 0; i < node->n_args; i++)
        all = all && node_has(c->flags, node->args[i], flag);
    return all;
}

static void find_free(Cutter *c) {
    for (NodeId id = 0; id < c->whole->nodes.n; id++) {
        const Node *node = graph_node(c->whole, id);
        OpClass cls = op_info(node->op)->cls;
        bool is_source = cls == CLASS_SOURCE, is_view = cls == CLASS_VIEW;
        bool is_simple = is_view || cls == CLASS_ELTWISE || cls == CLASS_CAST;
        bool in_block = c->whole->kernel_of.n && c->whole->kernel_of.data[id];
        if (node->op == OP_LOOP_RESULT) node_add(c->flags, id, NODE_FREE);
        if (cls == CLASS_LOOP || in_block || c->loops.of[id]) continue;
        if (is_source ? node->op == OP_PARAM || node->op == OP_CONST
                      : all_have(c, node, NODE_FROM_PARAMS))
            node_add(c->flags, id, NODE_FROM_PARAMS);
        if (is_source ? node->op == OP_CONST || node->op == OP_IOTA
                      : is_simple && all_have(c, node, NODE_CHEAP))
            node_add(c->flags, id, NODE_CHEAP);
        if (is_source || node_has(c->flags, id, NODE_FROM_PARAMS) ||
            node_has(c->flags, id, NODE_CHEAP) || (is_view && all_have(c, node, NODE_FREE)))
            node_add(c->flags, id, NODE_FREE);
    }
}

/* Names and values. */

static bool is_taken(const Cutter *c, const char *name) {
    const Graph *graph = c->whole;
    for (NodeId id = 0; id < graph->nodes.n; id++)
        if (graph_node(graph, id)->name && strcmp(graph_node(graph, id)->name, name) == 0)
            return true;
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        if (strcmp(graph->outputs.data[i].name, name) == 0) return true;
    for (uint32_t i = 0; i < dim_n_symbols(graph->dims); i++)
        if (strcmp(dim_symbol_info(graph->dims, i)->name, name) == 0) return true;
    return false;
}

/* A name that no other value has. */
static Str new_name(Cutter *c) {
    Str name;
    do name = str_format(c->arena, "kept%u", c->n_names++);
    while (is_taken(c, name));
    return name;
}

static uint32_t add_value(Cutter *c, Kept value) {
    value.offset_bytes = dim_const(c->whole->dims, 0);
    vec_push(c->arena, &c->sequence->values, value);
    return c->sequence->values.n - 1;
}

static uint32_t add_temp(Cutter *c, NodeId node) {
    return add_value(c, (Kept){.kind = KEPT_TEMP, .node = node, .name = new_name(c)});
}

/* The value of a node that another subgraph computes, or that the caller gives. */
static uint32_t value_of(Cutter *c, NodeId id) {
    if (!c->value_of[id]) c->value_of[id] = add_temp(c, id) + 1;
    return c->value_of[id] - 1;
}

static void add_given(Cutter *c) {
    for (uint32_t i = 0; i < c->whole->inputs.n; i++) {
        const GraphInput *input = &c->whole->inputs.data[i];
        Kept value = {.kind = KEPT_INPUT, .node = input->node, .name = input->name};
        c->value_of[input->node] = add_value(c, value) + 1;
    }
}

/* The two places of each carried value, and the results. */
static void add_carried(Cutter *c) {
    for (uint32_t l = 0; l < c->loops.loops.n; l++) {
        const GraphLoop *loop = &c->loops.loops.data[l];
        for (uint32_t i = 0; i < loop->n_carried; i++) {
            c->value_of[loop->carries[i]] = add_temp(c, loop->carries[i]) + 1;
            add_temp(c, loop->carries[i]); /* the odd place is the next value */
        }
    }
    for (NodeId id = 0; id < c->whole->nodes.n; id++) {
        const Node *node = graph_node(c->whole, id);
        if (node->op != OP_LOOP_RESULT) continue;
        uint32_t even = c->value_of[node->args[loop_at(node)]] - 1;
        Kept value = {.kind = KEPT_RESULT, .node = id, .name = new_name(c)};
        value.even = even;
        value.odd = even + 1;
        value.count = loop_count(node);
        c->value_of[id] = add_value(c, value) + 1;
    }
}

/* Making a subgraph. */

/* Whether the subgraph reads the node from memory. */
static bool is_given(const Making *m, NodeId id) {
    const Cutter *c = m->c;
    const Node *node = graph_node(c->whole, id);
    if (node->op == OP_INPUT || node->op == OP_LOOP_RESULT || node->op == OP_LOOP_CARRY)
        return true;
    if (node_has(c->flags, id, NODE_FREE)) return false;
    return c->loops.of[id] != m->loop || c->level[id] != m->level;
}

static void need(Making *m, NodeId root) {
    node_add(m->needed, root, NODE_NEEDED);
    for (NodeId id = root + 1; id-- > 0;) {
        const Node *node = graph_node(m->c->whole, id);
        if (!node_has(m->needed, id, NODE_NEEDED) || is_given(m, id)) continue;
        for (uint32_t i = 0; i < node->n_args; i++) node_add(m->needed, node->args[i], NODE_NEEDED);
    }
}

static void copy_given(Making *m, NodeId id) {
    Cutter *c = m->c;
    Arena *arena = c->arena;
    Graph *to = m->sub->graph;
    Node node = *graph_node(c->whole, id);
    uint32_t value = value_of(c, id);
    Str name = c->sequence->values.data[value].name;
    node.op = OP_INPUT;
    node.n_args = 0;
    node.name = name;
    node.attrs = (Attrs){0};
    m->copy_of[id] = graph_add(to, node);
    vec_push(arena, &to->kernel_of, 0);
    vec_push(arena, &to->inputs,
             (GraphInput){.name = name, .node = m->copy_of[id], .key = "", .span = node.span});
    bool is_carry = graph_node(c->whole, id)->op == OP_LOOP_CARRY;
    KeptUse use = {.value = value, .loop = is_carry ? c->loops.of[id] : 0};
    vec_push(arena, &m->sub->inputs, use);
}

static void copy_computed(Making *m, NodeId id) {
    Cutter *c = m->c;
    Graph *to = m->sub->graph;
    Node node = *graph_node(c->whole, id);
    NodeId *args = arena_array(c->arena, NodeId, node.n_args);
    for (uint32_t i = 0; i < node.n_args; i++) args[i] = m->copy_of[node.args[i]];
    node.args = args;
    m->copy_of[id] = graph_add(to, node);
    vec_push(c->arena, &to->kernel_of, c->whole->kernel_of.n ? c->whole->kernel_of.data[id] : 0);
    for (uint32_t i = 0; node.op == OP_PARAM && i < c->whole->params.n; i++) {
        GraphInput param = c->whole->params.data[i];
        if (param.node != id) continue;
        param.node = m->copy_of[id];
        vec_push(c->arena, &to->params, param);
    }
}

static void copy_needed(Making *m) {
    for (NodeId id = 0; id < m->c->whole->nodes.n; id++) {
        if (!node_has(m->needed, id, NODE_NEEDED)) continue;
        if (is_given(m, id))
            copy_given(m, id);
        else
            copy_computed(m, id);
    }
}

/* Makes a node an output of the subgraph. */
static GraphOutput *give(Making *m, NodeId id, KeptUse use) {
    const Cutter *c = m->c;
    Graph *graph = m->sub->graph;
    GraphOutput output = {.name = c->sequence->values.data[use.value + use.is_next].name,
                          .node = m->copy_of[id],
                          .span = graph_node(c->whole, id)->span};
    vec_push(c->arena, &graph->outputs, output);
    vec_push(c->arena, &m->sub->outputs, use);
    return &graph->outputs.data[graph->outputs.n - 1];
}

static Making begin_sub(Cutter *c, SequenceGraph *sub, uint32_t level, uint32_t loop) {
    const Graph *whole = c->whole;
    node_flags_drop(c->needed, NODE_NEEDED);
    sub->graph = graph_new(c->arena, whole->dims, whole->source, whole->name);
    sub->graph->cut_from = whole->name;
    sub->graph->span = whole->span;
    sub->graph->is_fast = whole->is_fast;
    for (uint32_t i = 0; i < whole->fixed_kernels.n; i++)
        vec_push(c->arena, &sub->graph->fixed_kernels, whole->fixed_kernels.data[i]);
    return (Making){.c = c,
                    .sub = sub,
                    .level = level,
                    .loop = loop,
                    .needed = c->needed,
                    .copy_of = c->copy_of};
}

/* Whether later subgraphs read the node, which this one computes. */
static bool is_kept(const Making *m, NodeId id) {
    const Cutter *c = m->c;
    return c->value_of[id] && !is_given(m, id) && !node_has(c->flags, id, NODE_FREE);
}

/* Whether the subgraph stores the node as the next value of what its loop carries: the last one of
 * the step does, unless an earlier one computes it. */
static bool stores_next(const Making *m, NodeId id) {
    const Cutter *c = m->c;
    OpClass cls = graph_class(c->whole, id);
    bool is_computed = c->loops.of[id] == m->loop && cls != CLASS_LOOP;
    return m->level == (is_computed ? c->level[id] : c->inside[m->loop].n);
}

/* What the subgraph stores for other subgraphs and for the caller. */
static void need_stored(Making *m, const GraphLoop *own, const GraphLoop *following) {
    const Graph *whole = m->c->whole;
    for (uint32_t i = 0; own && i < own->n_carried; i++)
        if (stores_next(m, own->next[i])) need(m, own->next[i]);
    for (uint32_t i = 0; following && i < following->n_carried; i++)
        need(m, graph_node(whole, following->carries[i])->args[0]);
    for (uint32_t i = 0; !own && i < whole->outputs.n; i++)
        if (m->c->level[whole->outputs.data[i].node] == m->level)
            need(m, whole->outputs.data[i].node);
    for (NodeId id = 0; id < whole->nodes.n; id++)
        if (is_kept(m, id)) need(m, id);
}

static void give_outputs(Making *m) {
    Cutter *c = m->c;
    for (uint32_t i = 0; i < c->whole->outputs.n; i++) {
        const GraphOutput *output = &c->whole->outputs.data[i];
        if (c->level[output->node] != m->level) continue;
        Kept value = {.kind = KEPT_OUTPUT, .node = output->node, .name = output->name};
        KeptUse use = {.value = add_value(c, value)};
        give(m, output->node, use)->copied_by = output->copied_by;
    }
}

static void give_stored(Making *m, const GraphLoop *own, const GraphLoop *following) {
    const Cutter *c = m->c;
    for (uint32_t i = 0; own && i < own->n_carried; i++) {
        KeptUse use = {c->value_of[own->carries[i]] - 1, m->loop, true};
        if (stores_next(m, own->next[i])) give(m, own->next[i], use);
    }
    for (uint32_t i = 0; following && i < following->n_carried; i++) {
        KeptUse use = {.value = c->value_of[following->carries[i]] - 1};
        give(m, graph_node(c->whole, following->carries[i])->args[0], use);
    }
    if (!own) give_outputs(m);
    for (NodeId id = 0; id < c->whole->nodes.n; id++)
        if (is_kept(m, id)) give(m, id, (KeptUse){.value = c->value_of[id] - 1});
}

/* Makes a subgraph of a step of loop `loop - 1`; of the graph around all loops where `loop` is 0.
 * `level` loops inside it have run before the subgraph. */
static void make_sub(Cutter *c, SequenceGraph *sub, uint32_t loop, uint32_t level) {
    const VecU32 *inside = &c->inside[loop];
    const GraphLoop *own = loop ? &c->loops.loops.data[loop - 1] : NULL;
    const GraphLoop *following =
        level < inside->n ? &c->loops.loops.data[inside->data[level]] : NULL;
    Making m = begin_sub(c, sub, level, loop);
    sub->loop = loop;
    need_stored(&m, own, following);
    copy_needed(&m);
    give_stored(&m, own, following);
}

/* The whole. */

static bool has_name(const Str *taken, uint32_t n_taken, const char *name) {
    for (uint32_t i = 0; i < n_taken; i++)
        if (strcmp(taken[i], name) == 0) return true;
    return false;
}

/* The subgraphs that compute something, with names. */
static void take_subs(Cutter *c, SequenceGraph *subs, uint32_t n, const Str *taken,
                      uint32_t n_taken) {
    uint32_t number = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!subs[i].graph->outputs.n) continue;
        do subs[i].graph->name = str_format(c->arena, "%s_sub%u", c->whole->name, number++);
        while (has_name(taken, n_taken, subs[i].graph->name));
        vec_push(c->arena, &c->sequence->graphs, subs[i]);
    }
}

static void add_loops(Cutter *c) {
    uint32_t n = c->loops.loops.n;
    SequenceLoop *loops = arena_array(c->arena, SequenceLoop, n);
    for (uint32_t l = n; l-- > 0;) {
        const GraphLoop *loop = &c->loops.loops.data[l];
        loops[l] = (SequenceLoop){.count = loop->count, .parent = loop->parent};
        if (loop->parent) loops[l].depth = loops[loop->parent - 1].depth + 1;
    }
    for (uint32_t l = 0; l < n; l++) vec_push(c->arena, &c->sequence->loops, loops[l]);
}

/* Makes all subgraphs of a step of loop `loop - 1`, or of the graph around all loops (0), the last
 * subgraph first. The subgraphs end before subs[end]. Returns the place of the first one. */
static uint32_t make_subs(Cutter *c, SequenceGraph *subs, uint32_t end, uint32_t loop) {
    const VecU32 *inside = &c->inside[loop];
    for (uint32_t level = inside->n + 1; level-- > 0;) {
        make_sub(c, &subs[--end], loop, level);
        if (level) end = make_subs(c, subs, end, inside->data[level - 1] + 1);
    }
    return end;
}

Sequence *sequence_cut(Arena *arena, const Graph *whole, const Str *taken, uint32_t n_taken) {
    uint32_t n = whole->nodes.n;
    Sequence *sequence = arena_array(arena, Sequence, 1);
    Cutter c = {.arena = arena,
                .whole = whole,
                .sequence = sequence,
                .loops = loops_find(arena, whole),
                .flags = node_flags_new(arena, n),
                .level = arena_array(arena, uint32_t, n),
                .value_of = arena_array(arena, uint32_t, n),
                .needed = node_flags_new(arena, n),
                .copy_of = arena_array(arena, NodeId, n)};
    sequence->whole = whole;
    add_loops(&c);
    find_inside(&c);
    find_levels(&c);
    find_free(&c);
    add_given(&c);
    add_carried(&c);
    uint32_t n_subs = 2 * c.loops.loops.n + 1; /* each loop is between two */
    SequenceGraph *subs = arena_array(arena, SequenceGraph, n_subs);
    make_subs(&c, subs, n_subs, 0);
    take_subs(&c, subs, n_subs, taken, n_taken);
    return sequence;
}

uint32_t sequence_value(const Sequence *sequence, const KeptUse *use, uint32_t odd) {
    bool is_odd = use->loop && odd >> sequence->loops.data[use->loop - 1].depth & 1;
    return use->value + (is_odd != use->is_next);
}

uint32_t sequence_depth(const Sequence *sequence, uint32_t graph) {
    uint32_t loop = sequence->graphs.data[graph].loop;
    return loop ? sequence->loops.data[loop - 1].depth + 1 : 0;
}

static DimId bytes_of(const Sequence *s, const Kept *value) {
    DimTab *dims = s->whole->dims;
    const Node *node = graph_node(s->whole, value->node);
    DimId n = shape_n_elems(dims, &node->shape);
    if (n) n = dim_mul_const(dims, n, dtype_bytes(node->dtype));
    return n ? dim_round_up(dims, n, PLACE_BYTES) : DIM_NONE;
}

/* even + (count mod 2) * (odd - even) */
static DimId place_result(const Sequence *s, const Kept *value) {
    DimTab *dims = s->whole->dims;
    DimId even = s->values.data[value->even].offset_bytes;
    DimId apart = dim_sub(dims, s->values.data[value->odd].offset_bytes, even);
    DimId half = dim_div(dims, value->count, dim_const(dims, 2));
    DimId rest = half ? dim_sub(dims, value->count, dim_mul_const(dims, half, 2)) : DIM_NONE;
    DimId beyond = apart && rest ? dim_mul(dims, rest, apart) : DIM_NONE;
    return beyond ? dim_add(dims, even, beyond) : DIM_NONE;
}

bool sequence_place(Sequence *s, const uint32_t *in_place) {
    DimTab *dims = s->whole->dims;
    DimId end = dim_const(dims, 0);
    for (uint32_t i = 0; i < s->values.n; i++) {
        Kept *value = &s->values.data[i];
        if (value->kind != KEPT_TEMP) continue;
        value->offset_bytes = in_place[i] ? s->values.data[in_place[i] - 1].offset_bytes : end;
        if (in_place[i]) continue;
        DimId bytes = bytes_of(s, value);
        end = bytes ? dim_add(dims, end, bytes) : DIM_NONE;
        if (!end) return false;
    }
    for (uint32_t i = 0; i < s->values.n; i++) {
        Kept *value = &s->values.data[i];
        if (value->kind != KEPT_RESULT) continue;
        value->offset_bytes = place_result(s, value);
        if (!value->offset_bytes) return false;
    }
    s->n_bytes = end;
    return true;
}
