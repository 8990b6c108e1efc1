/* See reroll.h. A loop is tried when its first node is to be printed, outer loops before those in
 * them. All that it finds out is noted after the last of its checks, so that a loop whose steps are
 * not alike leaves everything as it was. */
#include "ir/print/reroll.h"

#include "ir/print/step_text.h"

enum { LOOP_APART };

/* A loop that is tried. */
typedef struct Attempt {
    Reroll *r;
    uint32_t number; /* of the loop, plus 1 */
    LoopSteps *loop;
    Str index;
    const Rolled *around;
    Rolled *rolled;
    VecU32 places;      /* in the step, per node of `rolled` */
    Ref *values;        /* [n_steps] of one ref */
    uint32_t *carry_of; /* per carried value: its place in rolled->carries, plus 1 */
} Attempt;

/* The state. */

static void find_last_users(Reroll *r) {
    const Graph *graph = r->graph;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        r->args[id] = node->args;
        for (uint32_t i = 0; i < node->n_args; i++) r->last_users[node->args[i]] = id;
    }
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        r->last_users[graph->outputs.data[i].node] = NODE_NONE;
}

static void copy_loops(Reroll *r) {
    const Graph *graph = r->graph;
    r->loops = arena_copy(r->arena, graph->loops.data, graph->loops.n * sizeof *r->loops);
    for (uint32_t l = graph->loops.n; l-- > 0;) {
        LoopSteps *loop = &r->loops[l];
        size_t n = loop->n_steps ? ((size_t)loop->n_steps + 1) * loop->n_carried : 0;
        loop->carried = arena_copy(r->arena, loop->carried, n * sizeof *loop->carried);
        if (loop->first < loop->end) r->starts_at[loop->first] = l + 1;
    }
}

Reroll *reroll_new(const Graph *graph, NameSet *taken, Str *names, const char **texts,
                   Arena *arena) {
    uint32_t n = graph->nodes.n + 1;
    Reroll *r = arena_array(arena, Reroll, 1);
    *r = (Reroll){.arena = arena,
                  .graph = graph,
                  .taken = taken,
                  .names = names,
                  .texts = texts,
                  .shown = arena_array(arena, Str, n),
                  .args = arena_array(arena, Ref *, n),
                  .flags = node_flags_new(arena, graph->loops.n + 1),
                  .at = arena_array(arena, uint32_t, n),
                  .wanted = arena_array(arena, uint32_t, n),
                  .last_users = arena_array(arena, NodeId, n),
                  .starts_at = arena_array(arena, uint32_t, n)};
    find_last_users(r);
    copy_loops(r);
    return r;
}

const char *reroll_text(const Reroll *r, Ref ref) {
    uint32_t n = r->graph->nodes.n;
    return ref >= n ? r->more.data[ref - n] : r->shown[ref] ? r->shown[ref] : r->names[ref];
}

static Ref new_text(Reroll *r, Str text) {
    vec_push(r->arena, &r->more, text);
    return r->graph->nodes.n + r->more.n - 1;
}

static void set_text(Reroll *r, Ref ref, Str text) {
    r->more.data[ref - r->graph->nodes.n] = text;
}

static Str new_name(Reroll *r, Str like) {
    Str name = like;
    for (uint32_t k = 1; !graph_is_name(name) || !nameset_add(r->taken, name); k++)
        name = str_format(r->arena, "%.*s_%u", GRAPH_MAX_NAME - 11, like, k);
    return name;
}

static bool is_shown(const Reroll *r, Ref ref) {
    return ref != NODE_NONE && (ref >= r->graph->nodes.n || r->shown[ref]);
}

/* The nodes of the step. */

static NodeId node_of(const LoopSteps *loop, uint32_t step, uint32_t place) {
    return loop->nodes[(size_t)step * loop->n_nodes + place];
}

static Ref carried_of(const LoopSteps *loop, uint32_t step, uint32_t at) {
    return loop->carried[(size_t)step * loop->n_carried + at];
}

/* Whether both places have one node in each step. */
static bool are_same(const LoopSteps *loop, uint32_t place, uint32_t other) {
    bool all = true;
    for (uint32_t k = 0; k < loop->n_steps; k++)
        all = all && node_of(loop, k, place) == node_of(loop, k, other);
    return all;
}

/* Whether the place has this node in each step, or (NODE_NONE) none, or the node was dropped. */
static bool is_always(const LoopSteps *loop, uint32_t place, NodeId node) {
    bool all = true;
    for (uint32_t k = 0; k < loop->n_steps; k++) {
        NodeId other = node_of(loop, k, place);
        all = all && (other == NODE_NONE || other == node);
    }
    return all;
}

/* Whether the place has nodes of one op, in two steps or more: one alone says nothing of others. */
static bool is_one_op(const Attempt *a, uint32_t place, const Node *node) {
    uint32_t n_alike = 0, n_dropped = 0;
    for (uint32_t k = 0; k < a->loop->n_steps; k++) {
        NodeId id = node_of(a->loop, k, place);
        if (id == NODE_NONE) n_dropped++;
        if (id == NODE_NONE) continue;
        const Node *other = graph_node(a->r->graph, id);
        n_alike += other->op == node->op && other->n_args == node->n_args;
    }
    return n_alike >= 2 && n_alike + n_dropped == a->loop->n_steps;
}

static bool take_node(Attempt *a, uint32_t place) {
    Reroll *r = a->r;
    const LoopSteps *loop = a->loop;
    NodeId id = node_of(loop, a->rolled->step, place);
    if (id == NODE_NONE) return is_always(loop, place, NODE_NONE);
    if (r->at[id]) return are_same(loop, r->at[id] - 1, place);
    bool is_own = id >= loop->first && id < loop->end && !r->shown[id];
    bool in_block = r->graph->kernel_of.n && r->graph->kernel_of.data[id];
    if (!is_own) return is_always(loop, place, id);
    if (in_block || !is_one_op(a, place, graph_node(r->graph, id))) return false;
    r->at[id] = place + 1;
    vec_push(r->arena, &a->rolled->nodes, id);
    vec_push(r->arena, &a->places, place);
    return true;
}

static bool take_nodes(Attempt *a) {
    for (uint32_t p = 0; p < a->loop->n_nodes; p++)
        if (!take_node(a, p)) return false;
    for (uint32_t i = 0; i < a->places.n; i++)
        if (!is_always(a->loop, a->places.data[i], a->rolled->nodes.data[i])) return true;
    return false; /* a step like all others, of which nothing is left but the first */
}

/* Refs that stand for those of all steps. a->values has one for each step, or NODE_NONE. */

static Ref place_in_step(const Attempt *a) {
    const LoopSteps *loop = a->loop;
    uint32_t step = a->rolled->step;
    Ref value = a->values[step];
    if (value >= a->r->graph->nodes.n || !a->r->at[value]) return NODE_NONE;
    uint32_t place = a->r->at[value] - 1;
    for (uint32_t k = 0; k < loop->n_steps; k++)
        if (a->values[k] != NODE_NONE && a->values[k] != node_of(loop, k, place)) return NODE_NONE;
    return value;
}

static Ref constant(const Attempt *a) {
    Ref value = a->values[a->rolled->step];
    for (uint32_t k = 0; k < a->loop->n_steps; k++)
        if (a->values[k] != NODE_NONE && a->values[k] != value) return NODE_NONE;
    return is_shown(a->r, value) ? value : NODE_NONE;
}

static Ref carry(Attempt *a) {
    const LoopSteps *loop = a->loop;
    for (uint32_t j = 0; j < loop->n_carried; j++) {
        bool is_it = true;
        for (uint32_t k = 0; k < loop->n_steps && is_it; k++)
            is_it = a->values[k] == NODE_NONE || a->values[k] == carried_of(loop, k, j);
        if (!is_it) continue;
        if (!a->carry_of[j]) {
            Ref ref = new_text(a->r, NULL); /* named when the loop is known to be one */
            vec_push(a->r->arena, &a->rolled->carries,
                     (RolledCarry){.at = j, .ref = ref, .last = NODE_NONE});
            a->carry_of[j] = a->rolled->carries.n;
        }
        return a->rolled->carries.data[a->carry_of[j] - 1].ref;
    }
    return NODE_NONE;
}

/* Values from before the loop, one for each step. */
static Ref item(Attempt *a) {
    const LoopSteps *loop = a->loop;
    Rolled *rolled = a->rolled;
    const char **texts = arena_array(a->r->arena, const char *, loop->n_steps);
    Text list = {.arena = a->r->arena}, one = {.arena = a->r->arena};
    for (uint32_t k = 0; k < loop->n_steps; k++) {
        if (!is_shown(a->r, a->values[k])) return NODE_NONE;
        texts[k] = reroll_text(a->r, a->values[k]);
        text_printf(&list, "%s%s", k ? ", " : "[", texts[k]);
    }
    text_puts(&list, "]");
    const char *joined = step_text(a->r->arena, loop, a->index, loop->n_steps, NULL, texts);
    if (joined) {
        step_text_print(joined, &one);
        return new_text(a->r, text_str(&one));
    }
    for (uint32_t i = 0; i < rolled->items.n; i++)
        if (strcmp(rolled->items.data[i].text, text_str(&list)) == 0)
            return rolled->items.data[i].ref;
    RolledItems items = {.text = text_str(&list), .ref = new_text(a->r, NULL)};
    vec_push(a->r->arena, &rolled->items, items);
    return items.ref;
}

static Ref resolve(Attempt *a) {
    Ref ref = place_in_step(a);
    if (ref == NODE_NONE) ref = constant(a);
    if (ref == NODE_NONE) ref = carry(a);
    return ref == NODE_NONE ? item(a) : ref;
}

/* Arguments and texts. */

static bool find_args(Attempt *a, uint32_t i) {
    const Node *node = graph_node(a->r->graph, a->rolled->nodes.data[i]);
    a->rolled->args[i] = arena_array(a->r->arena, Ref, node->n_args);
    for (uint32_t s = 0; s < node->n_args; s++) {
        for (uint32_t k = 0; k < a->loop->n_steps; k++) {
            NodeId id = node_of(a->loop, k, a->places.data[i]);
            a->values[k] = id == NODE_NONE ? id : a->r->args[id][s];
        }
        a->rolled->args[i][s] = resolve(a);
        if (a->rolled->args[i][s] == NODE_NONE) return false;
    }
    return true;
}

/* A key may have braces of its own, which mean something else in a loop. */
static bool may_be_in_loop(const Attempt *a, NodeId id) {
    const Graph *graph = a->r->graph;
    if (graph_node(graph, id)->op != OP_PARAM) return true;
    for (uint32_t i = 0; i < graph->params.n; i++)
        if (graph->params.data[i].node == id) return !strpbrk(graph->params.data[i].key, "{}");
    return true;
}

static bool find_text(Attempt *a, uint32_t i) {
    const LoopSteps *loop = a->loop;
    uint32_t *steps = arena_array(a->r->arena, uint32_t, loop->n_steps), n = 0;
    const char **texts = arena_array(a->r->arena, const char *, loop->n_steps);
    for (uint32_t k = 0; k < loop->n_steps; k++) {
        NodeId id = node_of(loop, k, a->places.data[i]);
        if (id == NODE_NONE) continue;
        texts[n] = a->r->texts[id];
        steps[n++] = k;
    }
    a->rolled->texts[i] = step_text(a->r->arena, loop, a->index, n, steps, texts);
    return a->rolled->texts[i] && may_be_in_loop(a, a->rolled->nodes.data[i]);
}

static bool find_statements(Attempt *a) {
    uint32_t n = a->rolled->nodes.n;
    a->rolled->args = arena_array(a->r->arena, Ref *, n);
    a->rolled->texts = arena_array(a->r->arena, const char *, n);
    for (uint32_t i = 0; i < n; i++)
        if (!find_args(a, i) || !find_text(a, i)) return false;
    return true;
}

/* Carried values: what a step returns for one may be another one, which is then carried too. */
static bool find_next(Attempt *a) {
    for (uint32_t i = 0; i < a->rolled->carries.n; i++) {
        uint32_t at = a->rolled->carries.data[i].at;
        Ref first = carried_of(a->loop, 0, at);
        for (uint32_t k = 0; k < a->loop->n_steps; k++)
            a->values[k] = carried_of(a->loop, k + 1, at);
        Ref next = resolve(a);
        if (next == NODE_NONE || !is_shown(a->r, first)) return false;
        a->rolled->carries.data[i].first = first;
        a->rolled->carries.data[i].next = next;
    }
    return true;
}

/* Results. */

static void want(Attempt *a, Ref ref) {
    if (ref >= a->loop->first && ref < a->loop->end) a->r->wanted[ref] = a->number;
}

/* Finds the nodes of the loop that something outside of it reads. */
static void find_wanted(Attempt *a) {
    const Reroll *r = a->r;
    const LoopSteps *loop = a->loop;
    const Rolled *around = a->around;
    for (NodeId id = loop->first; !around && id < loop->end; id++)
        if (r->last_users[id] >= loop->end) want(a, id);
    for (uint32_t i = 0; around && i < around->nodes.n; i++) {
        NodeId id = around->nodes.data[i];
        uint32_t n_args = graph_node(r->graph, id)->n_args;
        for (uint32_t s = 0; (id < loop->first || id >= loop->end) && s < n_args; s++)
            want(a, r->args[id][s]);
    }
    for (uint32_t i = 0; around && i < around->carries.n; i++)
        want(a, around->carries.data[i].next);
    for (uint32_t i = 0; around && i < around->lists.n; i++) want(a, around->lists.data[i].node);
}

static void add_result(Attempt *a, NodeId node, uint32_t list, uint32_t step) {
    vec_push(a->r->arena, &a->rolled->results, (RolledResult){node, list, step});
    a->r->wanted[node] = 0;
}

static void find_lasts(Attempt *a) {
    for (uint32_t i = 0; i < a->rolled->carries.n; i++) {
        RolledCarry *carry = &a->rolled->carries.data[i];
        Ref last = carried_of(a->loop, a->loop->n_steps, carry->at);
        if (last >= a->r->graph->nodes.n || a->r->wanted[last] != a->number) continue;
        carry->last = last;
        a->r->wanted[last] = 0;
    }
}

static uint32_t list_of(const Attempt *a, NodeId node) {
    uint32_t i = 0, n = a->rolled->lists.n;
    while (i < n && a->rolled->lists.data[i].node != node) i++;
    return i;
}

static void take_lists(Attempt *a) {
    Arena *arena = a->r->arena;
    for (uint32_t k = 0; k < a->loop->n_steps; k++)
        for (uint32_t i = 0; i < a->places.n; i++) {
            NodeId id = node_of(a->loop, k, a->places.data[i]), node = a->rolled->nodes.data[i];
            if (id == NODE_NONE || a->r->wanted[id] != a->number) continue;
            uint32_t list = list_of(a, node);
            if (list == a->rolled->lists.n)
                vec_push(arena, &a->rolled->lists, (RolledList){.node = node});
            add_result(a, id, list, k);
        }
}

/* What is carried is an item where there is a list of it anyway. Outputs keep their names. */
static void take_lasts(Attempt *a) {
    uint32_t last_step = a->loop->n_steps - 1;
    for (uint32_t i = 0; i < a->rolled->carries.n; i++) {
        RolledCarry *carry = &a->rolled->carries.data[i];
        uint32_t list = carry->next == NODE_NONE ? a->rolled->lists.n : list_of(a, carry->next);
        bool is_item = carry->last != NODE_NONE && list < a->rolled->lists.n &&
                       a->r->last_users[carry->last] != NODE_NONE;
        if (carry->last == NODE_NONE) continue;
        add_result(a, carry->last, is_item ? list : NODE_NONE, last_step);
        if (is_item) carry->last = NODE_NONE;
    }
}

static bool find_results(Attempt *a) {
    find_wanted(a);
    find_lasts(a);
    take_lists(a);
    take_lasts(a);
    for (NodeId id = a->loop->first; id < a->loop->end; id++)
        if (a->r->wanted[id] == a->number) return false;
    return a->rolled->results.n > 0;
}

/* Loops in the loop. What they carry are refs of a step too. */

/* Whether loop `l` is in a step of loop `outer`, perhaps in another loop of it. */
static bool is_inside(const Reroll *r, uint32_t l, uint32_t outer, uint32_t *step) {
    for (; r->loops[l].parent; l = r->loops[l].parent - 1)
        if (r->loops[l].parent == outer) {
            *step = r->loops[l].in_step;
            return true;
        }
    return false;
}

static void set_apart(Reroll *r, uint32_t l) {
    node_add(r->flags, l, LOOP_APART);
}

static void resolve_carried(Attempt *a, const VecU32 *inside, uint32_t n, uint32_t m) {
    Reroll *r = a->r;
    LoopSteps *inner = &r->loops[inside->data[m]];
    bool are_alike = true;
    for (uint32_t k = 0; k < a->loop->n_steps; k++) {
        const LoopSteps *other = &r->loops[inside->data[k * n + m]];
        are_alike =
            are_alike && other->n_steps == inner->n_steps && other->n_carried == inner->n_carried;
    }
    bool has_refs = are_alike && inner->n_steps;
    size_t n_refs = has_refs ? ((size_t)inner->n_steps + 1) * inner->n_carried : 0;
    if (!are_alike) set_apart(r, inside->data[m]);
    for (size_t e = 0; e < n_refs; e++) {
        bool is_dropped = true;
        for (uint32_t k = 0; k < a->loop->n_steps; k++) {
            a->values[k] = r->loops[inside->data[k * n + m]].carried[e];
            is_dropped = is_dropped && a->values[k] == NODE_NONE;
        }
        Ref ref = is_dropped ? NODE_NONE : resolve(a);
        if (ref == NODE_NONE && !is_dropped) set_apart(r, inside->data[m]);
        inner->carried[e] = ref;
    }
}

/* Readies the loops in the step that is printed, which is the first one: only its loops have all
 * their nodes. */
static void resolve_inside(Attempt *a) {
    Reroll *r = a->r;
    VecU32 inside = {0};
    uint32_t step, n_steps = a->loop->n_steps;
    for (uint32_t l = a->number; l < r->graph->loops.n; l++) {
        if (!is_inside(r, l, a->number, &step)) break;
        vec_push(r->arena, &inside, l);
        if (a->rolled->step) set_apart(r, l);
    }
    uint32_t n = inside.n / n_steps;
    bool are_alike = n * n_steps == inside.n;
    for (uint32_t i = 0; i < inside.n && are_alike; i++)
        are_alike = is_inside(r, inside.data[i], a->number, &step) && step == i / n;
    for (uint32_t i = 0; i < inside.n && !are_alike; i++) set_apart(r, inside.data[i]);
    for (uint32_t m = 0; m < n && are_alike && !a->rolled->step; m++)
        resolve_carried(a, &inside, n, m);
}

/* The whole. */

/* Gives the nodes the statements of the step in place of those around the loop, or the reverse. */
static void swap_statements(Reroll *r, const Rolled *rolled) {
    for (uint32_t i = 0; i < rolled->nodes.n; i++) {
        NodeId id = rolled->nodes.data[i];
        Ref *args = r->args[id];
        const char *text = r->texts[id];
        r->args[id] = rolled->args[i];
        r->texts[id] = rolled->texts[i];
        rolled->args[i] = args;
        rolled->texts[i] = text;
    }
}

static void note(Attempt *a) {
    Reroll *r = a->r;
    Rolled *rolled = a->rolled;
    swap_statements(r, rolled);
    for (uint32_t i = 0; i < rolled->carries.n; i++) {
        const RolledCarry *carry = &rolled->carries.data[i];
        set_text(r, carry->ref, new_name(r, a->loop->names[carry->at]));
    }
    for (uint32_t i = 0; i < rolled->items.n; i++) {
        RolledItems *items = &rolled->items.data[i];
        const char *at = step_number(r->arena, a->loop, a->index);
        items->name = new_name(r, "items");
        set_text(r, items->ref, str_format(r->arena, "%s[%s]", items->name, at));
    }
    for (uint32_t i = 0; i < rolled->lists.n; i++) {
        RolledList *list = &rolled->lists.data[i];
        list->name = new_name(r, str_format(r->arena, "%ss", r->names[list->node]));
    }
}

static const Rolled *try_step(Attempt *a, uint32_t step) {
    Arena *arena = a->r->arena;
    a->rolled = arena_array(arena, Rolled, 1);
    *a->rolled = (Rolled){.loop = a->loop, .index = a->index, .step = step};
    a->places.n = 0;
    a->values = arena_array(arena, Ref, a->loop->n_steps);
    a->carry_of = arena_array(arena, uint32_t, a->loop->n_carried + 1);
    bool ok = take_nodes(a) && find_statements(a) && find_next(a) && find_results(a);
    if (ok) resolve_inside(a);
    if (ok) note(a);
    for (uint32_t i = 0; i < a->rolled->nodes.n; i++) a->r->at[a->rolled->nodes.data[i]] = 0;
    return ok ? a->rolled : NULL;
}

/* The first step whose nodes can stand for those of all, if it is one of a few. */
static const Rolled *try_loop(Reroll *r, uint32_t l, const Rolled *around) {
    LoopSteps *loop = &r->loops[l];
    if (loop->n_steps < 2) return NULL;
    Attempt a = {.r = r, .number = l + 1, .loop = loop, .around = around};
    a.index = new_name(r, loop->index);
    const Rolled *rolled = try_step(&a, 0);
    if (!rolled) rolled = try_step(&a, loop->n_steps - 1);
    return rolled;
}

/* Whether the loop is in the step that is printed, and in no other loop that may be printed. */
static bool is_next(const Reroll *r, uint32_t l, const Rolled *around) {
    for (; r->loops[l].parent; l = r->loops[l].parent - 1) {
        uint32_t outer = r->loops[l].parent - 1;
        if (around && &r->loops[outer] == around->loop) return r->loops[l].in_step == around->step;
        if (!node_has(r->flags, outer, LOOP_APART)) return false;
    }
    return !around;
}

const Rolled *reroll_at(Reroll *r, NodeId id, const Rolled *around) {
    uint32_t n = r->graph->loops.n;
    for (uint32_t l = r->starts_at[id]; l && l <= n && r->loops[l - 1].first == id; l++) {
        bool is_empty = r->loops[l - 1].end == id;
        if (is_empty || node_has(r->flags, l - 1, LOOP_APART) || !is_next(r, l - 1, around))
            continue;
        const Rolled *rolled = try_loop(r, l - 1, around);
        if (rolled) return rolled;
        set_apart(r, l - 1);
    }
    return NULL;
}

void reroll_close(Reroll *r, const Rolled *rolled) {
    swap_statements(r, rolled);
    for (uint32_t i = 0; i < rolled->nodes.n; i++) r->shown[rolled->nodes.data[i]] = NULL;
    for (uint32_t i = 0; i < rolled->results.n; i++) {
        const RolledResult *result = &rolled->results.data[i];
        Str name = result->list == NODE_NONE ? NULL : rolled->lists.data[result->list].name;
        r->shown[result->node] =
            name ? str_format(r->arena, "%s[%u]", name, result->step) : r->names[result->node];
    }
}

void reroll_name_param(Reroll *r, NodeId id) {
    Text name = {.arena = r->arena};
    const char *key = strchr(r->texts[id], '"') + 1;
    if (*key >= '0' && *key <= '9') text_puts(&name, "_");
    for (; *key != '"'; key++) {
        bool is_word = (*key >= '0' && *key <= '9') || graph_is_identifier((char[]){*key, 0});
        if (!strchr("{}", *key)) text_printf(&name, "%c", is_word ? *key : '_');
    }
    if (strcmp(r->names[id], text_str(&name)) != 0) r->names[id] = new_name(r, text_str(&name));
}
