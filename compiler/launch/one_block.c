/* The longest runs of small kernels are tried first; one that is not cheaper as a launch of turns
 * is parted at the kernel that loses most. See one_block.h. */
#include "launch/one_block.h"
#include "plan/launch.h"

#include "launch/sequence.h"
#include "cost/compare.h"
#include "launch/dedup.h"
#include "launch/parallel.h"
#include "plan/must.h"
#include "schedule/one_block.h"

#include <string.h>

enum {
    MAX_TURNS = 24,
    AROUND = 8,           /* kernels, on either side of a run, that could start with one of it */
    MAX_VISITS = 1 << 20, /* elements of a kernel's loops: several microseconds of one block */
    MAX_ARG_BYTES = 1 << 20,
    MAX_SHARED_BYTES = 96 * 1024, /* what blocks of every target may have */
    MAX_STATIC_BYTES = 40 * 1024, /* of it, beside what is on chip */
    SLACK_BYTES = 1024,
    ALWAYS_BYTES = 4096, /* copied however little of it is read */
    VECTOR_BYTES = 16,
    N_SIZES = 3
};
static const uint32_t block_threads[N_SIZES] = {512, 256, 128};

typedef struct Turns {
    Arena *arena, *scratch;
    Plan *plan;
    const Target *target;
    const int64_t *dims;
    uint8_t *sizes; /* per kernel: which of block_threads it has a schedule for (bit set) */
} Turns;

static bool is_known(const Turns *t, DimId dim, int64_t most) {
    int64_t value;
    return dim_is_const(t->plan->graph->dims, dim, &value) && value <= most;
}

/* Its variants in a block of `threads`: for aligned pointers, and the same for any. */
static bool make_variants(const Plan *plan, const Kernel *kernel, uint32_t threads,
                          Variant out[2]) {
    out[0] = kernel->variants[0];
    if (out[0].n_maps || predicate_asks_extents(&out[0].predicate))
        out[0] = kernel->variants[kernel->n_variants - 1];
    if (!sched_one_block(kernel, threads, &out[0])) return false;
    out[1] = out[0];
    const PredicateTerm *aligned = predicate_term(&out[0].predicate, TERM_ALIGNED, 0);
    predicate_align(&out[1].predicate, aligned ? aligned->of : 1, kernel_own_args(plan, kernel));
    return true;
}

static bool is_small(const Turns *t, const Kernel *kernel) {
    DimTab *dims = t->plan->graph->dims;
    DimId visits = dim_mul(dims, kernel_n_rows(kernel), kernel_n_reduced(kernel));
    if (kernel->is_init || kernel->link != LAUNCH_SINGLE || !kernel->n_variants ||
        !is_known(t, visits, MAX_VISITS) || !is_known(t, kernel_n_rows(kernel), MAX_VISITS))
        return false; /* of nothing to visit there may be rows without number */
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        const Buffer *buffer = &t->plan->buffers.data[kernel->args.data[i]];
        if (!is_known(t, buffer_bytes(dims, buffer), MAX_ARG_BYTES)) return false;
    }
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        if (graph_block(t->plan->graph, kernel->nodes.data[i], BLOCK_NEVER)) return false;
    return true;
}

static uint8_t sizes_of(const Turns *t, const Kernel *kernel) {
    Variant made[2];
    uint8_t sizes = 0;
    if (!is_small(t, kernel)) return 0;
    for (uint32_t i = 0; i < N_SIZES; i++)
        if (make_variants(t->plan, kernel, block_threads[i], made)) sizes |= (uint8_t)(1u << i);
    return sizes;
}

/* A run being tried: a plan of its kernels alone. */
typedef struct Trial {
    uint32_t begin, end;
    Plan plan;
} Trial;

static Trial trial_of(const Turns *t, uint32_t begin, uint32_t end) {
    Trial trial = {.begin = begin, .end = end, .plan = *t->plan};
    uint32_t n = end - begin, n_buffers = t->plan->buffers.n;
    trial.plan.kernels.data =
        arena_copy(t->scratch, &t->plan->kernels.data[begin], n * sizeof *trial.plan.kernels.data);
    trial.plan.kernels.n = n;
    trial.plan.buffers.data =
        arena_copy(t->scratch, t->plan->buffers.data, n_buffers * sizeof *trial.plan.buffers.data);
    return trial;
}

static bool is_written(const Trial *trial, uint32_t buffer) {
    Launch launch = plan_launch(&trial->plan, 0);
    return launch_stores_to(&launch, buffer);
}

static bool is_used_outside(const Turns *t, const Trial *trial, uint32_t buffer) {
    for (uint32_t k = 0; k < t->plan->kernels.n; k++)
        if ((k < trial->begin || k >= trial->end) &&
            kernel_find_arg(&t->plan->kernels.data[k], buffer) != NO_ARG)
            return true;
    return false;
}

static uint32_t smem_bytes(const Trial *trial) {
    Launch launch = plan_launch(&trial->plan, 0);
    return launch_smem_place(&trial->plan, &launch, NULL, UINT32_MAX, NULL);
}

/* Shared memory that the kernels use for their own, one after the other. */
static uint32_t static_bytes(const Turns *t, const Trial *trial) {
    const Card *card = card_of_target(t->target);
    uint32_t most = 0;
    for (uint32_t k = 0; k < trial->plan.kernels.n; k++)
        for (uint32_t v = 0; v < 2; v++) {
            const Kernel *kernel = &trial->plan.kernels.data[k];
            Variant variant = kernel->variants[v];
            uint32_t own =
                pressure_of(t->scratch, &trial->plan, kernel, &variant, card).shared_bytes;
            if (own > most) most = own;
        }
    return most + most / 4 + SLACK_BYTES;
}

/* Whether kernel `k` reads most of the argument: only then is all of it worth copying. */
static bool is_worth_copying(const Turns *t, const Trial *trial, uint32_t k, uint32_t buffer) {
    const Plan *plan = &trial->plan;
    double bytes = dim_number(
        plan->graph->dims, buffer_bytes(plan->graph->dims, &plan->buffers.data[buffer]), t->dims);
    Footprint read =
        footprint_loads(t->scratch, plan, &plan->kernels.data[k], buffer, NULL, t->dims);
    return bytes <= ALWAYS_BYTES || read.bytes * 2 >= bytes;
}

static void set_copied(Trial *trial, uint32_t buffer, bool is_copied) {
    for (uint32_t k = 0; k < trial->plan.kernels.n; k++) {
        Kernel *kernel = &trial->plan.kernels.data[k];
        uint32_t i = kernel_find_arg(kernel, buffer);
        if (i == NO_ARG) continue;
        kernel->copied_args &= ~((uint64_t)1 << i);
        kernel->copied_args |= (uint64_t)is_copied << i;
    }
}

/* What only the run touches stays on chip, or there is no run; then, in the order of the turns,
 * what they read is copied as long as there is room. */
static bool fill_smem(const Turns *t, Trial *trial) {
    uint32_t own = static_bytes(t, trial);
    if (own > MAX_STATIC_BYTES) return false;
    for (uint32_t b = 0; b < trial->plan.buffers.n; b++) {
        Buffer *buffer = &trial->plan.buffers.data[b];
        buffer->is_on_chip =
            buffer->is_on_chip ||
            (buffer->kind == BUFFER_TEMP && is_written(trial, b) && !is_used_outside(t, trial, b));
    }
    if (smem_bytes(trial) + own > MAX_SHARED_BYTES) return false;
    for (uint32_t k = 0; k < trial->plan.kernels.n; k++)
        for (uint32_t i = 0; i < trial->plan.kernels.data[k].args.n; i++) {
            uint32_t buffer = trial->plan.kernels.data[k].args.data[i];
            bool is_there = trial->plan.kernels.data[k].copied_args >> i & 1;
            if (is_there || is_written(trial, buffer) || !is_worth_copying(t, trial, k, buffer))
                continue;
            set_copied(trial, buffer, true);
            if (smem_bytes(trial) + own > MAX_SHARED_BYTES) set_copied(trial, buffer, false);
        }
    return true;
}

/* Copies go 16 bytes at a time. */
static void align_copied(Trial *trial) {
    for (uint32_t k = 0; k < trial->plan.kernels.n; k++) {
        Kernel *kernel = &trial->plan.kernels.data[k];
        Predicate *predicate = &kernel->variants[0].predicate;
        const PredicateTerm *asked = predicate_term(predicate, TERM_ALIGNED, 0);
        uint64_t args = asked ? asked->args : kernel_own_args(&trial->plan, kernel);
        if (kernel->copied_args)
            predicate_align(predicate, asked ? asked->of : VECTOR_BYTES,
                            args | kernel->copied_args);
    }
}

/* One variant is enough where the first asks nothing. */
static void drop_needless(Trial *trial) {
    bool has_conditions = false;
    for (uint32_t k = 0; k < trial->plan.kernels.n; k++) {
        const Kernel *kernel = &trial->plan.kernels.data[k];
        has_conditions =
            has_conditions || variant_has_conditions(&trial->plan, kernel, &kernel->variants[0]);
    }
    for (uint32_t k = 0; k < trial->plan.kernels.n && !has_conditions; k++)
        trial->plan.kernels.data[k].n_variants = 1;
}

static bool make_turns(const Turns *t, Trial *trial, uint32_t threads) {
    uint32_t n_args = 0;
    Kernel *kernels = trial->plan.kernels.data;
    const char *symbol = kernels[0].variants[0].symbol;
    for (uint32_t k = 0; k < trial->plan.kernels.n; k++) {
        Variant made[2];
        make_variants(&trial->plan, &kernels[k], threads, made);
        memcpy(kernels[k].variants, made, sizeof made);
        kernels[k].n_variants = 2;
        kernels[k].link = k ? LAUNCH_ONE_BLOCK : LAUNCH_SINGLE;
        n_args += kernels[k].args.n;
    }
    if (n_args > MAX_KERNEL_ARGS || !fill_smem(t, trial)) return false;
    align_copied(trial);
    drop_needless(trial);
    uint32_t bytes = smem_bytes(trial);
    for (uint32_t v = 0; v < kernels[0].n_variants; v++) {
        kernels[0].variants[v].smem_bytes = bytes;
        kernels[0].variants[v].symbol = v ? str_format(t->arena, "%s_v%u", symbol, v) : symbol;
    }
    return true;
}

/* Takes what each kernel gains, in microseconds, for what it loses; returns the sum. */
static double compare(const Turns *t, const Trial *before, const Trial *after, uint32_t *worst) {
    const Card *card = card_of_target(t->target);
    const PlanCost *apart = cost_plan(t->scratch, &before->plan, card, t->dims);
    const PlanCost *turns = cost_plan(t->scratch, &after->plan, card, t->dims);
    double most = 0;
    *worst = 0;
    for (uint32_t k = 0; k < before->plan.kernels.n; k++) {
        double loss = turns->kernels[k].us - turns->kernels[k].launch_us - apart->kernels[k].us;
        if (k && loss <= most) continue;
        most = loss;
        *worst = k;
    }
    return apart->us - turns->us;
}

/* The run's launch in place of its kernels in the plan, of which the kernels are those from `first`
 * on. */
static void put_run(Plan *plan, uint32_t first, const Trial *run) {
    memcpy(&plan->kernels.data[run->begin - first], run->plan.kernels.data,
           run->plan.kernels.n * sizeof *run->plan.kernels.data);
    for (uint32_t b = 0; b < plan->buffers.n; b++)
        plan->buffers.data[b].is_on_chip = run->plan.buffers.data[b].is_on_chip;
}

/* What is around the run, with it as a launch (`run`) or as it is, once the rest is chained and
 * joined: kernels that need not wait for each other have blocks for all processors in launches of
 * parts, not one, and may find their like outside the run. `*n_broken`: edges of the plan that
 * `fuse must` blocks want fused and that are not. */
static const PlanCost *price_around(const Turns *t, const Trial *own, const Trial *run,
                                    uint32_t *n_broken) {
    const Kernel *kernels = t->plan->kernels.data;
    uint32_t first = own->begin, end = own->end + AROUND, least = plan_n_init(t->plan);
    first = first > least + AROUND ? first - AROUND : least;
    while (first > least && kernels[first].link != LAUNCH_SINGLE) first--;
    if (end > t->plan->kernels.n) end = t->plan->kernels.n;
    Trial all = trial_of(t, first, end);
    if (run) put_run(&all.plan, first, run);
    const Plan *plan = &all.plan;
    if (!plan->graph->fixed_kernels.n) all.plan.edges.n = 0;
    all.plan.edges.data =
        arena_copy(t->scratch, plan->edges.data, plan->edges.n * sizeof *plan->edges.data);
    sequence_kernels(t->arena, t->scratch, &all.plan, t->target);
    *n_broken = must_n_broken(plan);
    dedup_classify(t->scratch, &plan, 1);
    parallel_kernels(t->arena, t->scratch, &all.plan, t->target);
    return cost_plan(t->scratch, plan, card_of_target(t->target), t->dims);
}

static bool pays_around(const Turns *t, const Trial *before, const Trial *run) {
    uint32_t n_broken, n_broken_apart;
    const PlanCost *with = price_around(t, before, run, &n_broken);
    const PlanCost *without = price_around(t, before, NULL, &n_broken_apart);
    uint32_t n_saved =
        without->n_launches > with->n_launches ? without->n_launches - with->n_launches : 0;
    return n_broken <= n_broken_apart && with->us < prices_tie_us(without->us, n_saved);
}

/* Whether the run became a launch; otherwise what is before *stop is to be tried, and what is from
 * *next on: there is no room for the last kernel, or one that loses is left out. */
static bool try_run(Turns *t, uint32_t begin, uint32_t end, uint8_t sizes, uint32_t *stop,
                    uint32_t *next) {
    ArenaMark mark = arena_mark(t->scratch);
    Trial before = trial_of(t, begin, end), after = trial_of(t, begin, end);
    uint32_t size = 0, worst;
    while (!(sizes >> size & 1)) size++;
    *stop = *next = end - 1;
    bool is_taken = false;
    if (make_turns(t, &after, block_threads[size])) {
        is_taken = compare(t, &before, &after, &worst) > 0 && pays_around(t, &before, &after);
        *stop = begin + worst;
        *next = *stop + 1;
        if (is_taken) {
            put_run(t->plan, 0, &after);
            sequence_mark_edges(t->plan);
        }
    }
    arena_rewind(t->scratch, mark);
    return is_taken;
}

static void part_run(Turns *t, uint32_t begin, uint32_t end) {
    while (end - begin > 1) {
        uint32_t last = begin, stop, next;
        uint8_t sizes = t->sizes[begin];
        while (last < end && last - begin < MAX_TURNS && (sizes & t->sizes[last]))
            sizes &= t->sizes[last++];
        if (last - begin < 2) {
            begin = last > begin ? last : begin + 1;
            continue;
        }
        if (try_run(t, begin, last, sizes, &stop, &next)) {
            begin = last;
            continue;
        }
        part_run(t, begin, stop);
        begin = next;
    }
}

/* Edges of `fuse must` blocks that stay stored once the rest is chained, with the run as a launch
 * or (NULL) without: flags, per node, their producers and consumers. */
static uint32_t find_broken(const Turns *t, const Trial *run, bool *is_end) {
    Trial all = trial_of(t, 0, t->plan->kernels.n);
    all.plan.edges.data =
        arena_copy(t->scratch, t->plan->edges.data, t->plan->edges.n * sizeof *t->plan->edges.data);
    if (run) put_run(&all.plan, 0, run);
    sequence_mark_edges(&all.plan);
    sequence_kernels(t->arena, t->scratch, &all.plan, t->target);
    for (uint32_t i = 0; i < all.plan.edges.n; i++) {
        const Edge *edge = &all.plan.edges.data[i];
        if (is_end && must_breaks(&all.plan, edge))
            is_end[edge->producer] = is_end[edge->consumer] = true;
    }
    return must_n_broken(&all.plan);
}

/* The kernels from the first to the last that make such values of the block. */
static void find_hull(const Turns *t, uint32_t block, const bool *is_end, uint32_t *begin,
                      uint32_t *end) {
    *begin = t->plan->kernels.n;
    *end = 0;
    for (uint32_t k = plan_n_init(t->plan); k < t->plan->kernels.n; k++) {
        const Kernel *kernel = &t->plan->kernels.data[k];
        for (uint32_t i = 0; i < kernel->nodes.n; i++) {
            NodeId id = kernel->nodes.data[i];
            if (!is_end[id] || graph_block(t->plan->graph, id, BLOCK_MUST) != block) continue;
            if (k < *begin) *begin = k;
            *end = k + 1;
        }
    }
}

/* Turns that keep a block of the source, whatever they cost. */
static void keep_block(Turns *t, uint32_t block, const bool *is_end, uint32_t *n_broken) {
    uint32_t begin, end, size = 0;
    uint8_t sizes = UINT8_MAX;
    find_hull(t, block, is_end, &begin, &end);
    if (end < begin + 2 || end - begin > MAX_TURNS) return;
    for (uint32_t k = begin; k < end; k++) sizes &= plan_launch(t->plan, k).n > 1 ? 0 : t->sizes[k];
    Trial run = trial_of(t, begin, end);
    if (!sizes) return;
    while (!(sizes >> size & 1)) size++;
    if (!make_turns(t, &run, block_threads[size])) return;
    uint32_t n_left = find_broken(t, &run, NULL);
    if (n_left >= *n_broken) return;
    *n_broken = n_left;
    put_run(t->plan, 0, &run);
    sequence_mark_edges(t->plan);
}

static void keep_blocks(Turns *t) {
    const Graph *graph = t->plan->graph;
    if (!must_n_broken(t->plan)) return;
    ArenaMark mark = arena_mark(t->scratch);
    bool *is_end = arena_array(t->scratch, bool, graph->nodes.n);
    uint32_t n_broken = find_broken(t, NULL, is_end);
    for (uint32_t b = 1; b <= graph->fixed_kernels.n && n_broken; b++)
        if (graph->fixed_kernels.data[b - 1].kind == BLOCK_MUST)
            keep_block(t, b, is_end, &n_broken);
    arena_rewind(t->scratch, mark);
}

void one_block_kernels(Arena *arena, Arena *scratch, Plan *plan, const Target *target) {
    Turns t = {.arena = arena, .scratch = scratch, .plan = plan, .target = target};
    t.dims = cost_dims(arena, plan->graph->dims, NULL);
    t.sizes = arena_array(arena, uint8_t, plan->kernels.n);
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        t.sizes[k] = sizes_of(&t, &plan->kernels.data[k]);
    part_run(&t, plan_n_init(plan), plan->kernels.n);
    keep_blocks(&t);
}
