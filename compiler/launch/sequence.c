/* Greedy: each GEMM takes the first kernel that can continue it, if the price agrees. See
 * sequence.h. */
#include "launch/sequence.h"
#include "plan/launch.h"

#include "launch/sequence_state.h"
#include "launch/gemm_rows_gemm.h"
#include "plan/access.h"

#include <string.h>

static const Store *row_store_to(const Kernel *kernel, uint32_t buffer) {
    for (uint32_t i = 0; i < kernel->row_stores.n; i++)
        if (kernel->row_stores.data[i].buffer == buffer) return &kernel->row_stores.data[i];
    return NULL;
}

/* Whether the kernel multiplies what is in the buffer: a block fetches operands for all of its tile
 * before the first element of what it makes is there. Of an axis of k of one element the index does
 * not tell. */
static bool is_factor(Arena *scratch, const Kernel *kernel, uint32_t buffer) {
    if (kernel->form != FORM_GEMM) return false;
    ArenaMark mark = arena_mark(scratch);
    const bool *is_reduced = kernel_reduced_scalars(scratch, kernel);
    bool is = false;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        is = is || (is_reduced[id] && s->kind == SCALAR_LOAD && s->buffer == buffer);
    }
    arena_rewind(scratch, mark);
    return is;
}

/* Whether all loads of the buffer are where the kernel's own loops stand. */
static bool reads_in_place(const Sequence *c, const Kernel *kernel, uint32_t buffer) {
    uint32_t n = kernel->n_parallel + (kernel->form == FORM_ROW ? kernel->n_reduced : 0);
    AccessAxes axes = access_first_axes(n);
    return access_reads(c->plan, kernel, &axes, buffer) && !is_factor(c->scratch, kernel, buffer);
}

bool sequence_is_apart(const Plan *plan, const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        if (graph_block(plan->graph, kernel->nodes.data[i], BLOCK_NEVER)) return true;
    return false;
}

bool sequence_is_private(const Sequence *c, uint32_t buffer) {
    if (c->plan->buffers.data[buffer].kind != BUFFER_TEMP) return false;
    for (uint32_t k = 0; k < c->plan->kernels.n; k++) {
        bool is_inside = k >= c->first && k < c->first + c->launch.n;
        if (!is_inside && k != c->next &&
            kernel_find_arg(&c->plan->kernels.data[k], buffer) != NO_ARG)
            return false;
    }
    return true;
}

/* Whether a block of the reader takes of the buffer just what the same block of the launch made. */
static bool passes(const Sequence *c, uint32_t buffer) {
    const Kernel *reader = &c->plan->kernels.data[c->next];
    NodeId node = c->plan->buffers.data[buffer].node;
    if (sequence_is_apart(c->plan, reader) || graph_block(c->plan->graph, node, BLOCK_NEVER))
        return false;
    for (uint32_t k = 0; k < c->launch.n; k++) {
        const Kernel *kernel = &c->launch.kernels[k];
        const Store *store = row_store_to(kernel, buffer);
        if (!store) continue;
        AccessAxes axes = access_first_axes(kernel->n_parallel);
        return !store->piece && !store->guard && kernel->form == FORM_GEMM && axes.n > 0 &&
               store->address == access_address(kernel, &axes, &c->plan->buffers.data[buffer]) &&
               reads_in_place(c, reader, buffer);
    }
    return false;
}

/* Whether the reader takes anything of what the launch makes: most kernels of a large graph do not,
 * and to ask for all that they take would be long. */
static bool goes_on(const Sequence *c) {
    const Kernel *reader = &c->plan->kernels.data[c->next];
    for (uint32_t i = 0; i < reader->args.n; i++)
        if (launch_stores_to(&c->launch, reader->args.data[i])) return true;
    return false;
}

/* Whether what the reader takes is there: made before the launch, or by the same blocks. At least
 * one buffer must be the latter. */
static bool has_operands(const Sequence *c) {
    const Kernel *kernels = c->plan->kernels.data, *reader = &kernels[c->next];
    uint32_t n_passed = 0;
    for (uint32_t i = 0; i < reader->args.n; i++) {
        uint32_t buffer = reader->args.data[i];
        for (uint32_t k = c->first; k < c->next; k++) {
            if (!kernel_stores_to(&kernels[k], buffer)) continue;
            bool is_inside = k < c->first + c->launch.n;
            if (!is_inside || !passes(c, buffer)) return false;
            n_passed++;
        }
    }
    return n_passed > 0;
}

void sequence_set_on_chip(Sequence *c, uint32_t buffer, bool is_on_chip) {
    if (launch_stores_to(&c->launch, buffer) && sequence_is_private(c, buffer))
        c->plan->buffers.data[buffer].is_on_chip = is_on_chip;
}

/* Of the edges over which the last kernel of the launch takes what those before it made. */
static void set_passed_edges(Plan *plan, const Launch *launch, EdgeVerdict verdict,
                             ReasonId reason) {
    Launch before = {.kernels = launch->kernels, .n = launch->n - 1};
    const Kernel *reader = &launch->kernels[before.n];
    for (uint32_t i = 0; i < reader->args.n; i++) {
        uint32_t buffer = reader->args.data[i];
        const Buffer *passed = &plan->buffers.data[buffer];
        if (!launch_stores_to(&before, buffer)) continue;
        for (uint32_t e = 0; e < plan->edges.n; e++) {
            Edge *edge = &plan->edges.data[e];
            if (edge->producer != passed->node || edge->verdict != EDGE_STORED ||
                edge->consumer == NODE_NONE || !vec_has(&reader->nodes, edge->consumer))
                continue;
            edge->verdict = verdict;
            edge->reason = reason;
        }
    }
}

/* What passes through memory from one turn of a launch to a later one. */
static void mark_turns(Plan *plan) {
    for (uint32_t first = 0; first < plan->kernels.n; first += plan_launch(plan, first).n) {
        Launch launch = plan_launch(plan, first);
        if (!plan_is_one_block(plan, first)) continue;
        for (uint32_t n = launch.n; n > 1; n--) {
            Launch begun = {.kernels = launch.kernels, .n = n};
            set_passed_edges(plan, &begun, EDGE_FUSED, REASON_SAME_BLOCK);
        }
    }
}

void sequence_mark_edges(Plan *plan) {
    mark_turns(plan);
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        Edge *edge = &plan->edges.data[i];
        bool is_stored = edge->verdict == EDGE_STORED || edge->reason == REASON_SAME_BLOCK;
        if (!is_stored || edge->consumer == NODE_NONE) continue;
        /* A user in a `fuse never` block that the value makes no difference to reads none of it. */
        if (graph_block(plan->graph, edge->consumer, BLOCK_NEVER)) continue;
        for (uint32_t b = 0; b < plan->buffers.n; b++) {
            const Buffer *buffer = &plan->buffers.data[b];
            if (!buffer->is_on_chip || buffer->node != edge->producer) continue;
            edge->verdict = EDGE_FUSED;
            edge->reason = REASON_ON_CHIP;
        }
    }
}

/* Moves the reader to the end of the launch and takes what passes on chip out of memory. */
static void link(Sequence *c) {
    Kernel *kernels = c->plan->kernels.data, moved = kernels[c->next];
    uint32_t end = c->first + c->launch.n;
    moved.link = LAUNCH_SEQUENCE;
    for (uint32_t i = 0; i < moved.args.n && c->has_chip; i++)
        sequence_set_on_chip(c, moved.args.data[i], true);
    memmove(&kernels[end + 1], &kernels[end], (c->next - end) * sizeof *kernels);
    kernels[end] = moved;
    c->launch = plan_launch(c->plan, c->first);
}

static bool has_room(const Sequence *c) {
    uint32_t n_args = c->plan->kernels.data[c->next].args.n;
    for (uint32_t k = 0; k < c->launch.n; k++) n_args += c->launch.kernels[k].args.n;
    return n_args <= MAX_KERNEL_ARGS;
}

bool sequence_has_user(const Graph *graph, const Kernel *kernel, NodeId value, uint32_t block) {
    for (uint32_t i = 0; i < kernel->nodes.n; i++) {
        NodeId id = kernel->nodes.data[i];
        const Node *node = graph_node(graph, id);
        for (uint32_t k = 0; k < node->n_args; k++)
            if (node->args[k] == value && graph_block(graph, id, BLOCK_MUST) == block) return true;
    }
    return false;
}

/* Whether a contract of the source asks for what passes to the last kernel. */
static bool is_contract(const Sequence *c) {
    const Graph *graph = c->plan->graph;
    const Kernel *reader = &c->launch.kernels[c->launch.n - 1];
    for (uint32_t i = 0; i < reader->args.n; i++) {
        uint32_t buffer = reader->args.data[i];
        NodeId node = c->plan->buffers.data[buffer].node;
        uint32_t block = graph_block(graph, node, BLOCK_MUST);
        if (block && launch_stores_to(&c->launch, buffer) &&
            sequence_has_user(graph, reader, node, block))
            return true;
    }
    return false;
}

/* What was to pass on chip to the last kernel goes through memory. */
static void leave_chip(Sequence *c) {
    const Kernel *reader = &c->launch.kernels[c->launch.n - 1];
    for (uint32_t i = 0; i < reader->args.n; i++)
        c->plan->buffers.data[reader->args.data[i]].is_on_chip = false;
}

/* Puts back the kernels from `first` to `next`. */
static void put_back(Sequence *c, const Kernel *saved) {
    memcpy(&c->plan->kernels.data[c->first], saved, (c->next - c->first + 1) * sizeof *saved);
    c->launch = plan_launch(c->plan, c->first);
}

static bool try_continue(Sequence *c) {
    const Kernel *reader = &c->plan->kernels.data[c->next];
    if (!goes_on(c) || reader->link != LAUNCH_SINGLE || reader->when != DIM_NONE ||
        plan_launch(c->plan, c->next).n > 1 || reader->is_init != c->launch.kernels->is_init ||
        !has_operands(c) || !has_room(c))
        return false;
    Kernel *saved = arena_copy(c->scratch, &c->plan->kernels.data[c->first],
                               (c->next - c->first + 1) * sizeof *saved);
    bool is_rows = sequence_has_rows(c), is_gpu = c->target->device == DEVICE_GPU;
    if (is_rows ? !sequence_continue_rows(c) : !sequence_continue_gemms(c)) {
        put_back(c, saved);
        return false;
    }
    c->has_chip = (!is_rows || sequence_passes_rows(c)) && (!is_gpu || sequence_fits(c));
    Prices apart = sequence_price_apart(c, saved);
    link(c);
    if (is_gpu) sequence_set_smem_bytes(c);
    if (!is_contract(c) && !sequence_pays(c, &apart)) {
        set_passed_edges(c->plan, &c->launch, EDGE_STORED, REASON_SLOWER);
        leave_chip(c);
        put_back(c, saved);
        return false;
    }
    set_passed_edges(c->plan, &c->launch, EDGE_FUSED, REASON_SAME_BLOCK);
    sequence_mark_edges(c->plan);
    return true;
}

void sequence_kernels(Arena *arena, Arena *scratch, Plan *plan, const Target *target) {
    CostPoints points = cost_points(arena, plan->graph->dims, target->device);
    gemm_rows_gemm_kernels(arena, scratch, plan, target, &points);
    sequence_mark_edges(plan);
    for (uint32_t first = 0; first < plan->kernels.n; first++) {
        Launch launch = plan_launch(plan, first);
        if (plan_is_one_block(plan, first) || plan->kernels.data[first].link != LAUNCH_SINGLE ||
            launch_is_gemm_rows_gemm(&launch) || !sequence_is_tiled(&plan->kernels.data[first]))
            continue;
        ArenaMark mark = arena_mark(scratch);
        Sequence c = {.arena = arena,
                      .scratch = scratch,
                      .plan = plan,
                      .target = target,
                      .dims = plan->graph->dims,
                      .points = points,
                      .first = first,
                      .launch = launch};
        for (c.next = first + c.launch.n; c.next < plan->kernels.n; c.next++)
            if (try_continue(&c)) c.next = first + c.launch.n - 1;
        arena_rewind(scratch, mark);
    }
}
