/* Whole plans beside their ops apart, which parts priced by themselves do not tell: what kernels
 * leave in the cache for one another, and maps that no move is known for.
 *
 * Three looks, each at what the one before left: every kernel of a plan that loses much has its
 * moves; moves of parts are taken back that do not pay in the whole; of what still loses somewhere
 * single kernels are made of their ops, then all kernels of what hangs together. See
 * search_state.h. */
#include "search/search_state.h"

#include <math.h>

enum {
    MAX_HELD_NODES = 128, /* of graphs that are looked at */
    MAX_TRIES = 64        /* of kernels made of their ops */
};
static const double LOSS = 1.02; /* of the price of kernels for each op: more is none of a plan */
static const double HELD_LOSS = 1.05; /* the same, where prices may be wrong by more */
static const double WORTH = 0.98;     /* of what is lost: less than that changes the plan */

static void without(Wishes *wishes, const bool *taken, uint32_t n) {
    bool *const flags[] = {wishes->apart,  wishes->unmerged, wishes->store,   wishes->alone,
                           wishes->placed, wishes->again,    wishes->windowed};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        for (NodeId id = 0; id < n; id++) flags[i][id] = flags[i][id] && !taken[id];
}

static void take(Chooser *c, const Wishes *wishes) {
    c->wishes = *wishes;
    c->cut.again = wishes->again;
}

/* Moves that paid for a part by itself, whose inputs come from memory, may not in the whole: where
 * it is better without them, and nowhere slower. */
static bool take_back(Chooser *c, Offer *now, const Prices *apart) {
    bool any = false;
    for (uint32_t i = 0; i < c->n_taken; i++) {
        Offer other;
        Wishes wishes = choose_copy_wishes(c->arena, &c->wishes, c->graph->nodes.n);
        without(&wishes, c->taken[i], c->graph->nodes.n);
        if (!choose_price_whole(c, &wishes, &other) || other.n_broken > now->n_broken ||
            !choose_is_worth(c, now, &other, apart) ||
            !choose_is_no_slower(&c->points, &other.prices, &now->prices))
            continue;
        take(c, &wishes);
        *now = other;
        any = true;
    }
    return any;
}

/* Whether the plan loses more than prices may be wrong by. */
static bool loses(const Chooser *c, const Prices *now, const Prices *apart) {
    bool loses = false;
    for (uint32_t i = 0; i < c->points.n; i++)
        loses = loses || now->us[i] > HELD_LOSS * apart->us[i];
    return loses;
}

/* Ops apart. */

/* What the plan is slower by than may be, over all points. Beside the sizes that dims have by
 * default, which come first, prices may be wrong by more: what is much faster at most sizes is not
 * taken apart for a few percent at one. */
static double excess(const Chooser *c, const Prices *now, const Prices *apart) {
    double sum = 0;
    for (uint32_t i = 0; i < c->points.n; i++)
        sum += fmax(0, now->us[i] / apart->us[i] - (i ? HELD_LOSS : LOSS));
    return sum;
}

static bool is_op(const Graph *graph, NodeId id) {
    return graph_class(graph, id) != CLASS_SOURCE;
}

/* The plan with these nodes, of those marked with `mark`, alone, if it loses less than the best so
 * far, or is the faster of two that lose nothing. */
static void try_alone(const Chooser *c, const uint32_t *marks, uint32_t mark, const Prices *apart,
                      Wishes *best, Offer *offer) {
    uint32_t n = c->graph->nodes.n;
    Wishes wishes = choose_copy_wishes(c->arena, &c->wishes, n);
    Offer other;
    bool changes = false;
    for (NodeId id = 0; id < n; id++) {
        if (marks[id] != mark || wishes.alone[id] || !is_op(c->graph, id)) continue;
        wishes.alone[id] = changes = true;
    }
    if (!changes || !choose_price_whole(c, &wishes, &other) || other.n_broken > offer->n_broken)
        return;
    double lost = excess(c, &offer->prices, apart), left = excess(c, &other.prices, apart);
    bool is_faster =
        left == 0 && lost == 0 && choose_mean(&c->points, &other.prices, &offer->prices) < 1;
    if (left >= lost * WORTH && !is_faster) return;
    *best = wishes;
    *offer = other;
}

/* As long as that makes it lose less: the ops of one of the marked sets apart, of the set that
 * helps most. */
static bool part_sets(Chooser *c, const uint32_t *marks, uint32_t n_sets, const Prices *apart,
                      Offer *now) {
    bool any = false;
    for (uint32_t n_tries = 0; n_tries < MAX_TRIES && excess(c, &now->prices, apart) > 0;) {
        Wishes best = c->wishes;
        Offer offer = *now;
        for (uint32_t mark = 1; mark <= n_sets && n_tries < MAX_TRIES; mark++, n_tries++)
            try_alone(c, marks, mark, apart, &best, &offer);
        if (best.alone == c->wishes.alone) break;
        take(c, &best);
        *now = offer;
        any = true;
    }
    return any;
}

/* Of a kernel that has some of a `fuse must` block nothing is parted. */
static bool is_wanted(const Graph *graph, const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        if (graph_block(graph, kernel->nodes.data[i], BLOCK_MUST)) return true;
    return false;
}

/* Marks the ops of each kernel of every run. What several compute is the first one's. */
static uint32_t mark_kernels(const Plan *plan, uint32_t *marks) {
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        bool may_part = !kernel->is_init && !is_wanted(plan->graph, kernel);
        for (uint32_t i = 0; i < kernel->nodes.n && may_part; i++)
            if (!marks[kernel->nodes.data[i]]) marks[kernel->nodes.data[i]] = k + 1;
    }
    return plan->kernels.n;
}

/* Marks the ops that hang together, by values that are no inputs. */
static uint32_t mark_components(const Graph *graph, uint32_t *marks) {
    uint32_t n = graph->nodes.n, n_sets = 0;
    for (NodeId id = 0; id < n; id++) {
        const Node *node = graph_node(graph, id);
        if (!is_op(graph, id)) continue;
        marks[id] = ++n_sets;
        for (uint32_t i = 0; i < node->n_args; i++) {
            uint32_t other = marks[node->args[i]], own = marks[id];
            for (NodeId k = 0; k <= id && other && other != own; k++)
                if (marks[k] == other) marks[k] = own;
        }
    }
    return n_sets;
}

/* Ops apart where the plan loses: of single kernels, else of all that hangs together, else of the
 * whole. */
static bool part_losers(Chooser *c, const Plan *plan, const Prices *apart, Offer *now) {
    uint32_t n = c->graph->nodes.n;
    if (excess(c, &now->prices, apart) == 0) return false;
    uint32_t *kernels = arena_array(c->arena, uint32_t, n);
    uint32_t *components = arena_array(c->arena, uint32_t, n);
    uint32_t *whole = arena_array(c->arena, uint32_t, n);
    uint32_t n_kernels = mark_kernels(plan, kernels);
    uint32_t n_components = mark_components(c->graph, components);
    for (NodeId id = 0; id < n; id++) {
        whole[id] = kernels[id] != 0;
        components[id] = kernels[id] ? components[id] : 0;
    }
    bool any = part_sets(c, kernels, n_kernels, apart, now);
    any = part_sets(c, components, n_components, apart, now) || any;
    return part_sets(c, whole, 1, apart, now) || any;
}

Plan *choose_hold(Chooser *c, Plan *plan) {
    Prices apart;
    Offer now;
    bool is_large = c->graph->nodes.n > MAX_HELD_NODES;
    if (!plan || is_large || !choose_price_whole(c, &c->wishes, &now)) return plan;
    arena_reset(c->scratch);
    if (!choose_price_ops(c->arena, c->scratch, c->graph, c->target, &c->points, &apart))
        return plan;
    if (loses(c, &now.prices, &apart)) {
        c->asks_all = true;
        plan = choose_try_moves(c, plan);
        if (!plan || !choose_price_whole(c, &c->wishes, &now)) return plan;
    } else if (take_back(c, &now, &apart)) {
        plan = choose_make_plan(c);
    }
    return plan && part_losers(c, plan, &apart, &now) ? choose_make_plan(c) : plan;
}
