/* Whether a group can be a kernel: a trial of inlining, unless the memo knows its result. See
 * group_state.h. */
#include "fuse/group_state.h"
#include "fuse/op_kernels.h"
#include "machine/tuning.h"

#include <string.h>

/* A kernel computes all elements of its GEMM slice, whoever stores them, with all the inputs of the
 * elementwise work on the matmul. */
static void add_gemm_slice(const Grouper *p, Group *group) {
    for (uint32_t i = 0; i < group->targets.n; i++)
        if (group->targets.data[i].node + 1 == group->gemm_slice) return;
    if (!group->gemm_slice) return;
    StoreTarget target = {.node = group->gemm_slice - 1, .output = OUTPUT_NONE};
    vec_push(p->arena, &group->targets, target);
}

static double count_prims(const Kernel *kernel) {
    double n = 0;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        n += s->kind == SCALAR_PRIM ? prim_info(s->prim)->cost : 1;
    }
    return n;
}

static VecU32 list_of(NodeId *nodes, uint32_t n) {
    return (VecU32){nodes, n, n};
}

/* The trial of the group that grows, if the group is one: a root by itself is no beginning. It is
 * tried apart, so that the trial keeps the group that the root may join. */
static InlineTrial *growing_of(const Grouper *p, const Group *group) {
    bool is_alone = group->reduces.n + group->targets.n == 1;
    return p->memo && !is_alone ? group_memo_growing(p->memo) : NULL;
}

/* inline_try. The trial has the nodes and facts that the trial before it does not have. */
static bool try_growing(const Grouper *p, const InlineInput *input, Group *group,
                        const Kernel **kernel, GroupTrial *trial, uint32_t *n_scalars) {
    TrialNodes own;
    bool ok = inline_try(growing_of(p, group), input, group, kernel, &own, &trial->failure);
    uint32_t n_asked = own.n_asked - own.n_asked_before;
    trial->asked = (AskedFacts){own.asked + own.n_asked_before, n_asked, n_asked};
    if (ok)
        trial->nodes =
            list_of(own.visited + own.n_visited_before, own.n_visited - own.n_visited_before);
    trial->from = own.continues ? group_memo_grown(p->memo) : NULL;
    *n_scalars = own.n_scalars;
    p->work->n_steps += own.n_asked + own.n_visited;
    return ok;
}

static bool try_alone(const Grouper *p, const InlineInput *input, Group *group, Kernel *kernel,
                      GroupTrial *trial, uint32_t *n_scalars) {
    bool ok = inline_group(p->arena, input, group, kernel, &trial->failure);
    *n_scalars = scalar_count(kernel->scalars);
    if (input->asked) trial->asked = *input->asked;
    p->work->n_steps += trial->asked.n;
    if (ok) trial->nodes = list_of(kernel->nodes.data, kernel->nodes.n);
    return ok;
}

static GroupTrial try_inlining(const Grouper *p, const InlineInput *input, Group *group,
                               uint32_t *n_scalars) {
    Kernel own = {.name = NULL};
    const Kernel *kernel = &own;
    GroupTrial trial = {.ok = false};
    if (!(growing_of(p, group) ? try_growing(p, input, group, &kernel, &trial, n_scalars)
                               : try_alone(p, input, group, &own, &trial, n_scalars)))
        return trial;
    trial.ok = true;
    trial.prims = p->has_cores ? count_prims(kernel) : 0;
    trial.has_passes = group->has_passes;
    trial.has_inner = group->has_inner;
    trial.loads = list_of(group->loads.data, group->loads.n);
    return trial;
}

static void count_nodes(const Grouper *p, FoundTrial found, uint32_t *makers) {
    for (const GroupTrial *trial = found.trial; trial; trial = trial->from) {
        p->work->n_steps += trial->nodes.n;
        for (uint32_t i = 0; i < trial->nodes.n; i++)
            makers[group_memo_node(found, trial->nodes.data[i])]++;
    }
}

/* The group's loads, ascending: an input between two layers keeps its place. */
static uint32_t find_loads(const Grouper *p, FoundTrial found) {
    uint32_t n = found.trial->loads.n;
    p->work->n_steps += n;
    for (uint32_t i = 0; i < n; i++)
        p->loads[i] = group_memo_node(found, found.trial->loads.data[i]);
    if (found.distance) graph_sort_nodes(p->loads, n);
    return n;
}

/* The result of a trial that the memo has, or of a new one. */
static FoundTrial find_trial(const Grouper *p, const InlineInput *input, const Group *group,
                             GroupTrial *own) {
    FoundTrial held = {group->trial, group->distance};
    GroupKey key = {.entry = NULL};
    FoundTrial found = {.trial = NULL};
    if (p->memo) key = group_memo_key(p->memo, input, group);
    if (p->memo) found = group_memo_trial(p->memo, key, input, held);
    if (found.trial) return found;
    Group attempted = group_copy(p->arena, group);
    uint32_t n_scalars;
    *own = try_inlining(p, input, &attempted, &n_scalars);
    p->work->n_scalars += n_scalars;
    bool is_growing = growing_of(p, group) != NULL;
    return (FoundTrial){p->memo ? group_memo_set(p->memo, key, own, is_growing) : own, 0};
}

bool group_attempt(const Grouper *p, Group *group, uint32_t index, InlineFailure *failure,
                   uint32_t *makers) {
    if (makers && group_memo_is_tried(group)) {
        count_nodes(p, (FoundTrial){group->trial, group->distance}, makers);
        return true;
    }
    ArenaMark mark = arena_mark(p->arena);
    AskedFacts asked = {0};
    InlineInput input = {.graph = p->graph,
                         .marks = p->marks,
                         .group_of = p->g->group_of,
                         .group = index,
                         .flags = p->flags,
                         .decisions = p->decisions,
                         .max_scalars = FUSE_MOST_SCALARS,
                         .asked = p->memo ? &asked : NULL};
    if (p->off && op_kernels_are_for(&input, group)) {
        op_kernels_note_loads(p->arena, p->graph, group);
        return true;
    }
    Group attempted = group->gemm_slice ? group_copy(p->arena, group) : *group;
    add_gemm_slice(p, &attempted);
    GroupTrial own;
    FoundTrial found = find_trial(p, &input, &attempted, &own);
    GroupTrial trial = *found.trial;
    uint32_t n_loads = find_loads(p, found);
    if (makers) count_nodes(p, found, makers);
    arena_rewind(p->arena, mark);
    *failure = trial.failure;
    if (failure->reason && failure->node != NODE_NONE)
        failure->node = group_memo_node(found, failure->node);
    if (!trial.ok) return false;
    group->prims = trial.prims;
    group->has_passes = trial.has_passes;
    group->has_inner = trial.has_inner;
    group->trial = p->memo ? found.trial : NULL;
    group->distance = found.distance;
    group->loads.n = group->loads.capacity = n_loads;
    group->loads.data = arena_copy(p->arena, p->loads, n_loads * sizeof *p->loads);
    return true;
}
