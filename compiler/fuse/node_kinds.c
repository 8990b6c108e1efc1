/* See node_kinds.h. A node's look is what it is without its arguments. Its kind is its look, and
 * the looks and distances of its arguments. Both are interned as words. */
#include "fuse/node_kinds.h"

#include "ir/node_flags.h"
#include "plan/must.h"
#include "plan/words.h"

#include <math.h>

enum { MANY_READERS = 16 }; /* a layer has fewer readers of its values */

typedef enum KindFlag {
    KIND_NUMBER, /* computed from sources alone */
    KIND_GIVEN,  /* computed from inputs and sources alone, not from params */
    KIND_SHARED, /* an input, a param or a number, or computed from them, or from what is given
                  * alone, and read by many */
    KIND_TWIN,   /* of these: another has its look, and none of these lies before its last reader */
    KIND_MET,    /* of these: one of its look lies before its last reader, or it before theirs */
    KIND_PLAIN,  /* a plain literal: see is_plain */
    KIND_FIXED
} KindFlag;

typedef struct Readers {
    uint32_t n;
    NodeId last;
} Readers;

typedef struct KindFinder {
    Arena *arena;
    const Graph *graph;
    KindTab *tab;
    uint32_t *look_of; /* per node; 0: not asked for yet */
    /* Per node that reads one plain literal: the distance to the last node before it that reads the
     * literal, plus 1, or 1 if there is none. Other nodes have 0. */
    NodeId *repeats;
    NodeFlags flags; /* of KindFlag */
    VecU32 key;      /* that was looked up last */
    Words words;     /* of `key` */
} KindFinder;

static bool is_fixed(const KindFinder *kinds, NodeId id) {
    return node_has(kinds->flags, id, KIND_FIXED);
}

/* Whether all arguments have the flag. */
static bool has_all(const KindFinder *kinds, const Node *node, KindFlag flag) {
    bool all = true;
    for (uint32_t i = 0; i < node->n_args; i++)
        all = all && node_has(kinds->flags, node->args[i], flag);
    return all;
}

static uint32_t look_of(KindFinder *kinds, NodeId id) {
    if (kinds->look_of[id]) return kinds->look_of[id];
    kinds->key.n = 0;
    words_put_node(&kinds->words, graph_node(kinds->graph, id));
    kinds->look_of[id] = keytab_intern(kinds->arena, &kinds->tab->looks, &kinds->key);
    return kinds->look_of[id];
}

static Readers *find_readers(const KindFinder *kinds) {
    const Graph *graph = kinds->graph;
    Readers *readers = arena_array(kinds->arena, Readers, graph->nodes.n);
    for (NodeId id = 0; id < graph->nodes.n; id++)
        for (uint32_t i = 0; i < graph_node(graph, id)->n_args; i++) {
            readers[graph_node(graph, id)->args[i]].n++;
            readers[graph_node(graph, id)->args[i]].last = id;
        }
    return readers;
}

static void find_shared(KindFinder *kinds, const Readers *readers) {
    for (NodeId id = 0; id < kinds->graph->nodes.n; id++) {
        const Node *node = graph_node(kinds->graph, id);
        bool is_bound = graph_is_bound(kinds->graph, id);
        bool is_number = !is_bound && has_all(kinds, node, KIND_NUMBER);
        bool is_given = is_bound ? node->op == OP_INPUT : has_all(kinds, node, KIND_GIVEN);
        bool is_read =
            readers[id].n >= MANY_READERS && (is_given || has_all(kinds, node, KIND_SHARED));
        node_set(kinds->flags, id, KIND_NUMBER, is_number);
        node_set(kinds->flags, id, KIND_GIVEN, is_given);
        node_set(kinds->flags, id, KIND_SHARED, is_bound || is_number || is_read);
    }
}

static void find_twins(KindFinder *kinds, const Readers *readers) {
    VecU32 latest = {0}; /* per look: the last node that has it, plus 1 */
    for (NodeId id = 0; id < kinds->graph->nodes.n; id++) {
        if (!node_has(kinds->flags, id, KIND_SHARED)) continue;
        uint32_t look = look_of(kinds, id);
        while (latest.n <= look) vec_push(kinds->arena, &latest, 0);
        NodeId before = latest.data[look] - 1;
        latest.data[look] = id + 1;
        if (before + 1 == 0) continue;
        KindFlag flag = readers[before].last < id ? KIND_TWIN : KIND_MET;
        node_add(kinds->flags, id, flag);
        node_add(kinds->flags, before, flag);
    }
}

/* Each layer has a twin for itself. The arguments of a fixed node are fixed. */
static void find_fixed(KindFinder *kinds) {
    const Graph *graph = kinds->graph;
    const Readers *readers = find_readers(kinds);
    find_shared(kinds, readers);
    find_twins(kinds, readers);
    for (NodeId id = graph->nodes.n; id-- > 0;) {
        bool is_apart =
            node_has(kinds->flags, id, KIND_TWIN) && !node_has(kinds->flags, id, KIND_MET);
        bool is_of_layer = readers[id].n == 1 || (readers[id].n < MANY_READERS && is_apart);
        if (node_has(kinds->flags, id, KIND_SHARED) && !is_of_layer)
            node_add(kinds->flags, id, KIND_FIXED);
        for (uint32_t i = 0; is_fixed(kinds, id) && i < graph_node(graph, id)->n_args; i++)
            node_add(kinds->flags, graph_node(graph, id)->args[i], KIND_FIXED);
    }
}

/* Whether inlining does not depend on the value of a literal that no folded primitive reads: it is
 * no neutral number of a primitive. */
static bool is_plain(const Node *node) {
    if (!dtype_is_float(node->dtype)) return false;
    double size = fabs(dtype_round(node->dtype, node->attrs.number));
    return size != 1 && size > 1e-4 && size < 1e4;
}

static void find_plain(KindFinder *kinds) {
    const Graph *graph = kinds->graph;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        node_set(kinds->flags, id, KIND_PLAIN, graph_is_literal(graph, id) && is_plain(node));
        bool may_fold =
            graph_class(graph, id) != CLASS_ELTWISE || node_has(kinds->flags, id, KIND_NUMBER);
        for (uint32_t i = 0; i < node->n_args && may_fold; i++)
            node_drop(kinds->flags, node->args[i], KIND_PLAIN);
    }
    for (NodeId id = 0; id < graph->nodes.n; id++)
        if (node_has(kinds->flags, id, KIND_PLAIN)) node_add(kinds->flags, id, KIND_FIXED);
}

static void find_repeats(KindFinder *kinds) {
    const Graph *graph = kinds->graph;
    NodeId *last = arena_array(kinds->arena, NodeId, graph->nodes.n);
    kinds->repeats = arena_array(kinds->arena, NodeId, graph->nodes.n);
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        uint32_t n = 0;
        for (uint32_t i = 0; i < node->n_args; i++) {
            NodeId arg = node->args[i];
            if (!node_has(kinds->flags, arg, KIND_PLAIN)) continue;
            kinds->repeats[id] = last[arg] ? id - last[arg] + 1 : 1;
            last[arg] = id;
            n++;
        }
        if (n > 1) kinds->repeats[id] = 0;
    }
}

NodeKinds *node_kinds_new(Arena *arena, KindTab *tab, const Graph *graph) {
    NodeKinds *all = arena_array(arena, NodeKinds, 1);
    KindFinder *kinds = arena_array(arena, KindFinder, 1);
    kinds->arena = arena;
    kinds->graph = graph;
    kinds->tab = tab;
    kinds->words = (Words){.arena = arena, .key = &kinds->key};
    kinds->look_of = arena_array(arena, uint32_t, graph->nodes.n);
    kinds->flags = node_flags_new(arena, graph->nodes.n);
    find_fixed(kinds);
    find_plain(kinds);
    find_repeats(kinds);
    all->of = arena_array(arena, uint32_t, graph->nodes.n);
    all->finder = kinds;
    return all;
}

bool node_is_fixed(const NodeKinds *kinds, NodeId id) {
    return is_fixed(kinds->finder, id);
}

uint32_t node_look(const NodeKinds *kinds, NodeId id) {
    return look_of(kinds->finder, id);
}

static uint32_t find_kind(KindFinder *kinds, NodeId id) {
    const Graph *graph = kinds->graph;
    const Node *node = graph_node(graph, id);
    uint32_t look = look_of(kinds, id);
    bool is_own = is_fixed(kinds, id);
    for (uint32_t i = 0; i < node->n_args; i++) look_of(kinds, node->args[i]);
    kinds->key.n = 0;
    words_put(&kinds->words, look);
    words_put(&kinds->words, is_own);
    words_put(&kinds->words, is_own ? id : node->n_args);
    for (uint32_t i = 0; i < node->n_args; i++) {
        NodeId arg = node->args[i];
        if (kinds->repeats[id] && node_has(kinds->flags, arg, KIND_PLAIN)) { /* no look is 0 */
            words_put(&kinds->words, 0);
            words_put(&kinds->words, graph_node(graph, arg)->dtype);
            words_put_shape(&kinds->words, &graph_node(graph, arg)->shape);
            words_put(&kinds->words, kinds->repeats[id]);
            continue;
        }
        words_put(&kinds->words, look_of(kinds, arg));
        words_put(&kinds->words, is_fixed(kinds, arg));
        words_put(&kinds->words, is_fixed(kinds, arg) ? arg : id - arg);
        words_put(&kinds->words, must_shares(graph, arg, id));
    }
    return keytab_intern(kinds->arena, &kinds->tab->kinds, &kinds->key);
}

void node_kind_find(NodeKinds *kinds, NodeId id) {
    kinds->of[id] = find_kind(kinds->finder, id);
}
