/* Greedy: a kernel's moves are tried in the order of the table, each on top of those taken. When
 * all kernels had theirs, the graph is planned anew with what was taken; what that leaves of new
 * kernels gets another round. Kernels that spill come last. See choose.h. */
#include "pass/choose.h"

#include "pass/contract.h"
#include "pass/cut.h"
#include "pass/excerpt.h"
#include "pass/fuse.h"
#include "pass/launch.h"
#include "pass/sched.h"
#include "pass/share.h"
#include "pass/spread.h"

#include <math.h>

enum {
    MAX_ROUNDS = 3,
    MAX_PARTS = 32,      /* excerpts that are priced */
    MAX_CUTS = 8,        /* kernels that are tried to be cut */
    MAX_READERS = 4,     /* of a factor, for which it may be computed again */
    LONG_ROW = 4096,     /* elements, on a GPU: shorter rows stay in registers */
    LONG_COLUMN = 16,    /* shorter ones are a few loads of a thread */
    COSTLY_OPS = 8,      /* in prims: what may take long in the few units of a small product */
    FEW_SCALARS = 100,   /* too few for a thread's registers */
    MANY_REGISTERS = 200 /* of values alone, of which more may be needed than there are */
};
static const double WORTH = 0.98; /* of the price: less than that changes the plan */
static const double LOSS = 1.02;  /* of the price of kernels for each op: more is none of a plan */

/* What is asked of fusion beyond its own rules, per node. */
typedef struct Wishes {
    bool *apart, *unmerged, *store, *alone, *placed, *again;
} Wishes;

typedef struct Chooser {
    Arena *arena, *scratch;
    const Graph *graph;
    const Target *target;
    CostPoints points;
    Diags *diags;
    Wishes wishes;
    const uint32_t *op_cost; /* per op */
    Cut cut;                 /* its `again` is the wishes' */
    bool *is_settled;        /* per node: the kernel that it is the main one of had its moves */
    bool *is_asked;          /* per node: computing it in what multiplies it has been priced */
    uint32_t n_parts;
} Chooser;

/* Prices. */

Prices choose_price(Arena *arena, const Plan *plan, const Target *target,
                    const CostPoints *points) {
    Prices prices = {{0}};
    for (uint32_t i = 0; i < points->n; i++) {
        ArenaMark mark = arena_mark(arena);
        prices.us[i] = cost_us(arena, plan, card_of_target(target), points->dims[i]);
        arena_rewind(arena, mark);
    }
    return prices;
}

/* The largest ratio over the points. */
static double worst(const CostPoints *points, const Prices *a, const Prices *b) {
    double most = 0;
    for (uint32_t i = 0; i < points->n; i++) most = fmax(most, a->us[i] / b->us[i]);
    return most;
}

/* On the diagonal: corners are for what must not be lost, wherever it is. */
static double mean(const CostPoints *points, const Prices *a, const Prices *b) {
    double sum = 0;
    for (uint32_t i = 0; i < points->n_diagonal; i++) sum += log(a->us[i] / b->us[i]);
    return exp(sum / points->n_diagonal);
}

bool choose_is_better(const CostPoints *points, const Prices *now, const Prices *other,
                      const Prices *apart) {
    double loss_now = worst(points, now, apart), loss_other = worst(points, other, apart);
    if (loss_other > LOSS) return loss_other < loss_now * WORTH;
    return loss_now > LOSS || mean(points, other, now) < WORTH;
}

/* Parts. */

/* A kernel, those that make a factor for it, and others that these make it for. */
typedef struct Part {
    Excerpt excerpt;
    bool *is_spread;   /* per node of it: a contraction's factor that is not simply loaded */
    bool *is_ahead[2]; /* by side, per node of it: of a kernel that makes such a factor */
    bool *may_place;   /* per node of it: a concat that may be stored in pieces */
} Part;

/* A move sets flags for the part's nodes and says whether that changed any. */
typedef bool Move(const Part *part, Wishes *wishes);

static bool set(bool *flags, NodeId id, bool value) {
    bool changes = value && !flags[id];
    flags[id] = flags[id] || value;
    return changes;
}

static bool compute_side(const Part *part, Wishes *wishes, uint32_t side) {
    bool changes = false;
    for (NodeId id = 0; id < part->excerpt.graph->nodes.n; id++)
        changes = set(wishes->again, id, part->is_ahead[side][id]) || changes;
    return changes;
}

static bool compute_left(const Part *part, Wishes *wishes) {
    return compute_side(part, wishes, 0);
}

static bool compute_right(const Part *part, Wishes *wishes) {
    return compute_side(part, wishes, 1);
}

/* Both, if there are both. */
static bool compute_factors(const Part *part, Wishes *wishes) {
    bool has_left = compute_left(part, wishes), has_right = compute_right(part, wishes);
    return has_left && has_right;
}

static bool set_all(const Part *part, bool *flags, const bool *values) {
    bool changes = false;
    for (NodeId id = 0; id < part->excerpt.graph->nodes.n; id++)
        changes = set(flags, id, values[id]) || changes;
    return changes;
}

static bool store_factors(const Part *part, Wishes *wishes) {
    return set_all(part, wishes->store, part->is_spread);
}

static bool flag_reductions(const Graph *graph, bool *flags) {
    bool changes = false;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        OpClass cls = graph_class(graph, id);
        changes = set(flags, id, cls == CLASS_REDUCE || cls == CLASS_ARGREDUCE) || changes;
    }
    return changes;
}

static bool rows_unmerged(const Part *part, Wishes *wishes) {
    return flag_reductions(part->excerpt.graph, wishes->unmerged);
}

static bool reduce_apart(const Part *part, Wishes *wishes) {
    return flag_reductions(part->excerpt.graph, wishes->apart);
}

/* What joins tensors computes every one of them for all lanes, and takes one of the values. */
static bool store_pieces(const Part *part, Wishes *wishes) {
    return set_all(part, wishes->placed, part->may_place);
}

static bool all_alone(const Part *part, Wishes *wishes) {
    const Graph *graph = part->excerpt.graph;
    bool changes = false;
    for (NodeId id = 0; id < graph->nodes.n; id++)
        changes = set(wishes->alone, id, graph_class(graph, id) != CLASS_SOURCE) || changes;
    return changes;
}

static Move *const moves[] = {compute_factors, compute_left, compute_right, store_factors,
                              rows_unmerged,   reduce_apart, store_pieces,  all_alone};

static Wishes wishes_new(Arena *arena, uint32_t n) {
    return (Wishes){.apart = arena_array(arena, bool, n),
                    .unmerged = arena_array(arena, bool, n),
                    .store = arena_array(arena, bool, n),
                    .alone = arena_array(arena, bool, n),
                    .placed = arena_array(arena, bool, n),
                    .again = arena_array(arena, bool, n)};
}

static Wishes wishes_copy(Arena *arena, const Wishes *wishes, uint32_t n) {
    return (Wishes){.apart = arena_copy(arena, wishes->apart, n * sizeof(bool)),
                    .unmerged = arena_copy(arena, wishes->unmerged, n * sizeof(bool)),
                    .store = arena_copy(arena, wishes->store, n * sizeof(bool)),
                    .alone = arena_copy(arena, wishes->alone, n * sizeof(bool)),
                    .placed = arena_copy(arena, wishes->placed, n * sizeof(bool)),
                    .again = arena_copy(arena, wishes->again, n * sizeof(bool))};
}

/* Equal kernels start together, and fill the machine together. */
static void join_launches(const Chooser *c, Plan *plan) {
    const Plan *plans[] = {plan};
    share_classify(c->scratch, plans, 1);
    launch_join(c->arena, c->scratch, plan, c->target);
}

/* What a plan costs, and how far it takes `fuse must` blocks apart. */
typedef struct Offer {
    Prices prices;
    uint32_t n_broken;
} Offer;

/* Edges that a block wants fused and that are stored, and kernels of each block. */
static uint32_t n_broken(Arena *arena, const Plan *plan) {
    const Graph *graph = plan->graph;
    uint32_t n = contract_n_broken(plan);
    uint32_t *last = arena_array(arena, uint32_t, graph->fixed_kernels.n + (size_t)1);
    for (uint32_t i = 0; i < plan->kernels.n; i++) {
        const Kernel *kernel = &plan->kernels.data[i];
        for (uint32_t k = 0; k < kernel->nodes.n; k++) {
            uint32_t block = graph_block(graph, kernel->nodes.data[k], BLOCK_MUST);
            if (!block || last[block] == i + 1) continue;
            last[block] = i + 1;
            n++;
        }
    }
    return n;
}

/* Of the part planned with these wishes; NULL: one kernel for each op. False: it cannot be. */
static bool price_part(const Chooser *c, const Part *part, const Wishes *wishes, Offer *offer) {
    Diags ignored = {.arena = c->arena};
    FuseOptions options = {.off = !wishes, .pads_rows = c->target->device == DEVICE_GPU};
    if (wishes) {
        options.apart = wishes->apart;
        options.unmerged = wishes->unmerged;
        options.store = wishes->store;
        options.alone = wishes->alone;
        options.placed = wishes->placed;
        options.again = wishes->again;
    }
    arena_reset(c->scratch);
    Plan *plan = fuse_graph(c->arena, c->scratch, part->excerpt.graph, options, &ignored);
    if (!plan) return false;
    arena_reset(c->scratch);
    offer->n_broken = n_broken(c->scratch, plan);
    if (wishes) spread_plan(c->arena, plan, c->target);
    sched_plan(c->arena, plan, c->target);
    arena_reset(c->scratch);
    if (wishes && c->target->device == DEVICE_GPU) join_launches(c, plan);
    arena_reset(c->scratch);
    offer->prices = choose_price(c->scratch, plan, c->target, &c->points);
    return true;
}

/* The part's wishes after all moves that pay; false: none does. */
static bool improve(const Chooser *c, const Part *part, Wishes *wishes) {
    uint32_t n = part->excerpt.graph->nodes.n;
    Offer now, apart, other;
    if (!price_part(c, part, wishes, &now) || !price_part(c, part, NULL, &apart)) return false;
    bool improves = false;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        Wishes moved = wishes_copy(c->arena, wishes, n);
        bool is_last = moves[i] == all_alone;
        if (is_last && worst(&c->points, &now.prices, &apart.prices) <= LOSS) continue;
        if (!moves[i](part, &moved) || !price_part(c, part, &moved, &other) ||
            other.n_broken > now.n_broken ||
            !choose_is_better(&c->points, &now.prices, &other.prices, &apart.prices))
            continue;
        *wishes = moved;
        now = other;
        improves = true;
    }
    return improves;
}

/* Which kernels have moves. */

static double most_reduced(const Chooser *c, const Kernel *kernel) {
    double most = 0;
    for (uint32_t i = 0; i < c->points.n; i++)
        most = fmax(most, dim_number(c->graph->dims, kernel_n_reduced(kernel), c->points.dims[i]));
    return most;
}

/* Several passes over rows that are read anew by each, or over columns by few blocks, which one
 * pass that stores as it goes keeps from being split too. */
static bool has_long_passes(const Chooser *c, const Kernel *kernel) {
    bool is_row = kernel->form == FORM_ROW, is_column = kernel->form == FORM_COLUMN;
    bool is_whole = kernel->stages.n > 1 || kernel->stages.data[0].stores.n > 0;
    int least = is_column ? LONG_COLUMN : c->target->device == DEVICE_GPU ? LONG_ROW : 0;
    return (is_row || is_column) && is_whole && most_reduced(c, kernel) > least;
}

/* The arguments (bit set) that the value is computed from, within its stage. */
static uint64_t loads_below(const Chooser *c, const Kernel *kernel, ScalarId value) {
    const bool *is_part = scalar_reached(c->scratch, kernel->scalars, value);
    uint64_t loads = 0;
    for (ScalarId id = 1; id <= value; id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (is_part[id] && s->kind == SCALAR_LOAD)
            loads |= (uint64_t)1 << kernel_find_arg(kernel, s->buffer);
    }
    return loads;
}

/* Whether reductions over tensors that have nothing in common share the kernel's first pass. */
static bool has_merged_rows(const Chooser *c, const Kernel *kernel) {
    const Stage *first = &kernel->stages.data[0];
    for (uint32_t i = 0; i < first->reduces.n && kernel->form == FORM_ROW; i++)
        for (uint32_t k = 0; k < i; k++) {
            const Reduce *one = &kernel->reduces.data[first->reduces.data[i]];
            const Reduce *other = &kernel->reduces.data[first->reduces.data[k]];
            if (!(loads_below(c, kernel, one->value) & loads_below(c, kernel, other->value)))
                return true;
        }
    return false;
}

/* Whether the factor is an element of a tensor at a place that axes alone determine. */
static bool is_plain_load(const Kernel *kernel, ScalarId factor) {
    const Scalar *s = scalar_get(kernel->scalars, gemm_unrounded(kernel, factor));
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    if (s->kind != SCALAR_LOAD || s->guard) return false;
    IndexExpr expr = index_expr(tab, s->index);
    for (uint32_t i = 0; i < expr.n_terms; i++)
        if (index_atom(tab, expr.terms[i].atom).kind != ATOM_AXIS) return false;
    return true;
}

/* Whether the factor is computed in the kernel, and whether that is dearer has not been asked yet
 * with all that multiply it. */
static bool is_spread(const Chooser *c, const Kernel *kernel, uint32_t side) {
    const Reduce *reduce = &kernel->reduces.data[0];
    NodeId factor = graph_node(c->graph, reduce->node)->args[side];
    while (graph_class(c->graph, factor) == CLASS_VIEW)
        factor = graph_node(c->graph, factor)->args[0];
    return !c->is_asked[factor] && !is_plain_load(kernel, side ? reduce->factor : reduce->value);
}

static const Scalar *factor_of(const Kernel *kernel, uint32_t side) {
    const Reduce *reduce = &kernel->reduces.data[0];
    ScalarId factor = side ? reduce->factor : reduce->value;
    return scalar_get(kernel->scalars, gemm_unrounded(kernel, factor));
}

/* Whether the contraction reads the buffer as a factor. */
static bool multiplies(const Kernel *kernel, uint32_t buffer) {
    bool is_factor = false;
    for (uint32_t side = 0; side < 2 && kernel->form == FORM_CONTRACT; side++) {
        const Scalar *load = factor_of(kernel, side);
        is_factor = is_factor || (load->kind == SCALAR_LOAD && load->buffer == buffer);
    }
    return is_factor;
}

/* A map whose results only contractions read, as factors. */
typedef struct Maker {
    const Kernel *kernel; /* NULL: there is none */
    const Kernel *readers[MAX_READERS];
    uint32_t n_readers;
} Maker;

/* False: something else reads it, or too many do. */
static bool add_readers(const Plan *plan, Maker *maker, uint32_t buffer) {
    for (const Kernel *k = maker->kernel + 1; k < plan->kernels.data + plan->kernels.n; k++) {
        if (kernel_find_arg(k, buffer) == NO_ARG) continue;
        if (!multiplies(k, buffer)) return false;
        bool is_known = false;
        for (uint32_t i = 0; i < maker->n_readers; i++)
            is_known = is_known || maker->readers[i] == k;
        if (is_known) continue;
        if (maker->n_readers == MAX_READERS) return false;
        maker->readers[maker->n_readers++] = k;
    }
    return true;
}

/* What makes this factor of the contraction for it and its like alone. */
static Maker maker_of_factor(const Plan *plan, const Kernel *kernel, uint32_t side) {
    const Maker none = {.kernel = NULL};
    const Scalar *load = factor_of(kernel, side);
    Maker maker = none;
    if (load->kind != SCALAR_LOAD || plan->buffers.data[load->buffer].kind != BUFFER_TEMP)
        return none;
    for (const Kernel *k = plan->kernels.data; k < kernel && !maker.kernel; k++)
        if (k->form == FORM_MAP && !k->is_init && kernel_stores_to(k, load->buffer))
            maker.kernel = k;
    for (uint32_t i = 0; maker.kernel && i < maker.kernel->args.n; i++) {
        uint32_t buffer = maker.kernel->args.data[i];
        if (!kernel_stores_to(maker.kernel, buffer)) continue;
        if (plan->buffers.data[buffer].kind != BUFFER_TEMP || !add_readers(plan, &maker, buffer))
            return none;
    }
    return maker;
}

/* Whether to compute it in the contractions has been priced: with the first of them. */
static bool is_asked(const Plan *plan, const Chooser *c, const Maker *maker) {
    for (uint32_t i = 0; i < maker->kernel->args.n; i++) {
        uint32_t buffer = maker->kernel->args.data[i];
        if (kernel_stores_to(maker->kernel, buffer))
            return c->is_asked[plan->buffers.data[buffer].node];
    }
    return false;
}

/* Whether the units of a product on a CPU, which may be few, have other work that is worth more. */
static bool has_costly_stores(const Chooser *c, const Kernel *kernel) {
    bool is_costly = false;
    for (uint32_t i = 0; i < kernel->nodes.n; i++) {
        const Node *node = graph_node(c->graph, kernel->nodes.data[i]);
        bool is_rounded = node->dtype == DT_BF16 && op_info(node->op)->cls == CLASS_ELTWISE;
        is_costly = is_costly || is_rounded || c->op_cost[node->op] >= COSTLY_OPS;
    }
    return is_costly && c->target->device == DEVICE_CPU;
}

/* Whether a map joins tensors: its lanes may go one by one where those of each tensor would not. */
static bool joins_tensors(const Chooser *c, const Kernel *kernel) {
    if (kernel->form != FORM_MAP || kernel->nodes.n < 2) return false;
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        if (graph_class(c->graph, kernel->nodes.data[i]) == CLASS_CONCAT) return true;
    return false;
}

/* The node that stands for the kernel: its reduction, or what it stores. */
static NodeId main_node(const Kernel *kernel) {
    return kernel->reduces.n ? kernel->reduces.data[0].node
                             : kernel->stages.data[0].stores.data[0].node;
}

static bool has_moves(const Chooser *c, const Plan *plan, const Kernel *kernel) {
    if (kernel->is_init || kernel->segment_axis != NO_AXIS || c->is_settled[main_node(kernel)])
        return false;
    if (kernel->form != FORM_CONTRACT)
        return has_long_passes(c, kernel) || has_merged_rows(c, kernel) || joins_tensors(c, kernel);
    for (uint32_t side = 0; side < 2; side++) {
        Maker maker = maker_of_factor(plan, kernel, side);
        if (is_spread(c, kernel, side) || (maker.kernel && !is_asked(plan, c, &maker))) return true;
    }
    return has_costly_stores(c, kernel);
}

/* Making parts. */

static void mark_stored(void *user, const Store *store) {
    bool *out = user;
    out[store->node] = true;
}

/* False: the source says which kernel some of it is. */
static bool add_nodes(const Graph *graph, const Kernel *kernel, bool *in) {
    for (uint32_t i = 0; i < kernel->nodes.n; i++) {
        NodeId id = kernel->nodes.data[i];
        if (graph_block(graph, id, BLOCK_KERNEL)) return false;
        in[id] = graph_class(graph, id) != CLASS_SOURCE;
    }
    return true;
}

/* A part while it is made: per node of the graph. */
typedef struct Draft {
    const Chooser *c;
    const Plan *plan;
    bool *in, *out, *spread, *ahead[2];
} Draft;

static bool add_product(Draft *d, const Kernel *kernel) {
    kernel_each_store(kernel, mark_stored, d->out);
    return add_nodes(d->c->graph, kernel, d->in);
}

static bool add_maker(Draft *d, const Maker *maker, uint32_t side) {
    for (uint32_t i = 0; i < maker->kernel->nodes.n; i++)
        d->c->is_asked[maker->kernel->nodes.data[i]] = true;
    return add_nodes(d->c->graph, maker->kernel, d->in) &&
           add_nodes(d->c->graph, maker->kernel, d->ahead[side]);
}

/* What makes this factor, with all that reads what it makes, and what makes their other factors for
 * them alone. */
static bool add_factor(Draft *d, const Kernel *kernel, uint32_t side) {
    const Chooser *c = d->c;
    Maker maker = maker_of_factor(d->plan, kernel, side);
    NodeId factor = graph_node(c->graph, kernel->reduces.data[0].node)->args[side];
    d->spread[factor] = is_spread(c, kernel, side);
    if (!maker.kernel || is_asked(d->plan, c, &maker)) return true;
    if (!add_maker(d, &maker, side)) return false;
    for (uint32_t i = 0; i < maker.n_readers; i++) {
        const Kernel *reader = maker.readers[i];
        if (!add_product(d, reader)) return false;
        for (uint32_t own = 0; own < 2 && reader != kernel; own++) {
            Maker other = maker_of_factor(d->plan, reader, own);
            bool is_own = other.kernel && other.n_readers == 1 && !is_asked(d->plan, c, &other);
            if (is_own && !add_maker(d, &other, own)) return false;
        }
    }
    return true;
}

/* Copies are in no block of a dump, which leaves one of a concat at most to fusion's own rules. A
 * concat in a `fuse must` block is to be of one kernel. */
static bool may_place(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    uint32_t n_copies = 0;
    for (uint32_t i = 0; i < node->n_args; i++) n_copies += graph_is_bound(graph, node->args[i]);
    return graph_class(graph, id) == CLASS_CONCAT && n_copies <= 1 &&
           !graph_block(graph, id, BLOCK_MUST);
}

/* Whether the source wants what is in the part and what is not in one kernel. */
static bool breaks_block(const Graph *graph, const bool *in) {
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        uint32_t block = graph_block(graph, id, BLOCK_MUST);
        for (uint32_t i = 0; block && i < node->n_args; i++)
            if (in[id] != in[node->args[i]] &&
                graph_block(graph, node->args[i], BLOCK_MUST) == block)
                return true;
    }
    return false;
}

static bool make_part(const Chooser *c, const Plan *plan, const Kernel *kernel, Part *part) {
    const Graph *graph = c->graph;
    uint32_t n = graph->nodes.n;
    Draft d = {.c = c, .plan = plan};
    bool **all[] = {&d.in, &d.out, &d.spread, &d.ahead[0], &d.ahead[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = arena_array(c->scratch, bool, n);
    for (uint32_t side = 0; side < 2 && kernel->form == FORM_CONTRACT; side++)
        if (!add_factor(&d, kernel, side)) return false;
    if (!add_product(&d, kernel) || breaks_block(graph, d.in)) return false;
    part->excerpt = excerpt_of(c->arena, graph, d.in, d.out);
    uint32_t n_copies = part->excerpt.graph->nodes.n;
    part->is_spread = arena_array(c->arena, bool, n_copies);
    part->may_place = arena_array(c->arena, bool, n_copies);
    for (uint32_t side = 0; side < 2; side++)
        part->is_ahead[side] = arena_array(c->arena, bool, n_copies);
    for (NodeId id = 0; id < n_copies; id++) {
        NodeId of = part->excerpt.of[id];
        part->is_spread[id] = d.in[of] && d.spread[of];
        part->may_place[id] = d.in[of] && may_place(graph, of);
        for (uint32_t side = 0; side < 2; side++) part->is_ahead[side][id] = d.ahead[side][of];
    }
    return true;
}

static void copy_flags(bool *to, const bool *from, const NodeId *places, uint32_t n, bool back) {
    for (uint32_t i = 0; i < n; i++) {
        if (back)
            to[places[i]] = from[i];
        else
            to[i] = from[places[i]];
    }
}

/* Between the graph's wishes and those of an excerpt. */
static void copy_wishes(Wishes *to, const Wishes *from, const Excerpt *excerpt, bool back) {
    uint32_t n = excerpt->graph->nodes.n;
    copy_flags(to->apart, from->apart, excerpt->of, n, back);
    copy_flags(to->unmerged, from->unmerged, excerpt->of, n, back);
    copy_flags(to->store, from->store, excerpt->of, n, back);
    copy_flags(to->alone, from->alone, excerpt->of, n, back);
    copy_flags(to->placed, from->placed, excerpt->of, n, back);
    copy_flags(to->again, from->again, excerpt->of, n, back);
}

/* Whether moves of the kernel pay; then they are among the wishes. */
static bool improve_kernel(Chooser *c, const Plan *plan, const Kernel *kernel) {
    Part part;
    c->is_settled[main_node(kernel)] = true;
    c->n_parts++;
    arena_reset(c->scratch);
    if (!make_part(c, plan, kernel, &part)) return false;
    Wishes wishes = wishes_new(c->arena, part.excerpt.graph->nodes.n);
    copy_wishes(&wishes, &c->wishes, &part.excerpt, false);
    if (!improve(c, &part, &wishes)) return false;
    copy_wishes(&c->wishes, &wishes, &part.excerpt, true);
    return true;
}

/* Whole plans. */

static Plan *make_plan(Chooser *c) {
    FuseOptions options = {.pads_rows = c->target->device == DEVICE_GPU,
                           .apart = c->wishes.apart,
                           .unmerged = c->wishes.unmerged,
                           .store = c->wishes.store,
                           .alone = c->wishes.alone,
                           .placed = c->wishes.placed,
                           .cut = c->cut.store,
                           .again = c->cut.again,
                           .part = c->cut.part};
    arena_reset(c->scratch);
    Plan *plan = fuse_graph(c->arena, c->scratch, c->graph, options, c->diags);
    if (plan) spread_plan(c->arena, plan, c->target);
    arena_reset(c->scratch);
    return plan;
}

static Plan *try_moves(Chooser *c, Plan *plan) {
    bool changes = true;
    for (int round = 0; plan && changes && round < MAX_ROUNDS; round++) {
        changes = false;
        for (uint32_t k = 0; k < plan->kernels.n && c->n_parts < MAX_PARTS; k++)
            if (has_moves(c, plan, &plan->kernels.data[k]))
                changes = improve_kernel(c, plan, &plan->kernels.data[k]) || changes;
        if (changes) plan = make_plan(c);
    }
    return plan;
}

/* Cuts. */

/* The plan is scheduled for this alone, without layouts, which prices do not hang on. On the
 * scratch arena. */
static const PlanCost *price(Chooser *c, Plan *plan) {
    arena_reset(c->scratch);
    sched_plan(c->arena, plan, c->target);
    return cost_plan(c->scratch, plan, card_of_target(c->target), c->points.dims[0]);
}

static Cut cut_copy(Arena *arena, const Cut *cut, uint32_t n_nodes) {
    return (Cut){.store = arena_copy(arena, cut->store, n_nodes * sizeof *cut->store),
                 .again = arena_copy(arena, cut->again, n_nodes * sizeof *cut->again),
                 .part = arena_copy(arena, cut->part, n_nodes * sizeof *cut->part)};
}

/* The same plan with a kernel cut in two that needs this many registers, by whichever aim is the
 * cheapest, if that is cheaper than the plan; else NULL. */
static Plan *cut_apart(Chooser *c, const Plan *plan, double us, uint32_t kernel,
                       uint32_t registers) {
    Cut before = c->cut, best_cut = before;
    Plan *best = NULL;
    double best_us = us * WORTH;
    for (int aim = 0; aim < CUT_AIM_COUNT; aim++) {
        c->cut = cut_copy(c->arena, &before, c->graph->nodes.n);
        arena_reset(c->scratch);
        if (!cut_kernel(c->scratch, c->graph, &plan->kernels.data[kernel],
                        card_of_target(c->target), registers, c->points.dims[0], (CutAim)aim,
                        &c->cut))
            continue;
        Plan *other = make_plan(c);
        double other_us = other ? price(c, other)->us : 0;
        if (!other || other_us >= best_us) continue;
        best = other, best_us = other_us, best_cut = c->cut;
    }
    c->cut = best_cut;
    return best;
}

/* Whether a look at the kernel's registers is worth it. */
static bool may_spill(Chooser *c, const Kernel *kernel) {
    return c->target->device == DEVICE_GPU && !kernel->is_init &&
           scalar_count(kernel->scalars) > FEW_SCALARS &&
           pressure_live(c->scratch, kernel) > MANY_REGISTERS;
}

static Plan *cut_kernels(Chooser *c, Plan *plan) {
    for (uint32_t k = 0, n_tries = 0; plan && k < plan->kernels.n && n_tries < MAX_CUTS; k++) {
        if (!may_spill(c, &plan->kernels.data[k])) continue;
        n_tries++;
        const PlanCost *cost = price(c, plan);
        Pressure pressure = cost->kernels[k].pressure;
        Plan *better = pressure.spills ? cut_apart(c, plan, cost->us, k, pressure.registers) : NULL;
        if (!better) continue;
        plan = better;
        k = UINT32_MAX; /* from the start again */
    }
    return plan;
}

/* A factor is stored by rule; where the price agreed, that is why. */
static void say_priced(const Chooser *c, Plan *plan) {
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        Edge *edge = &plan->edges.data[i];
        if (edge->reason == REASON_FACTOR && c->is_asked[edge->producer])
            edge->reason = REASON_SLOWER;
    }
}

Plan *choose_plan(Arena *arena, Arena *scratch, const Graph *graph, const Target *target,
                  Diags *diags) {
    uint32_t n = graph->nodes.n;
    Chooser c = {.arena = arena,
                 .scratch = scratch,
                 .graph = graph,
                 .target = target,
                 .points = cost_points(arena, graph->dims, target->device),
                 .diags = diags,
                 .wishes = wishes_new(arena, n),
                 .op_cost = op_costs(arena),
                 .is_settled = arena_array(arena, bool, n),
                 .is_asked = arena_array(arena, bool, n)};
    c.cut = (Cut){.store = arena_array(arena, bool, n),
                  .again = c.wishes.again,
                  .part = arena_array(arena, uint32_t, n)};
    Plan *plan = cut_kernels(&c, try_moves(&c, make_plan(&c)));
    if (plan) say_priced(&c, plan);
    for (uint32_t k = 0; plan && k < plan->kernels.n; k++) plan->kernels.data[k].n_variants = 0;
    arena_reset(scratch);
    return plan;
}
