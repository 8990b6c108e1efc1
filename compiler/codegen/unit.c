/* See unit.h. Units lie in a ring. Counters that only grow say how many were opened, closed and
 * taken; the unit with number `i` lies in slot i modulo the ring's length. */
#include "codegen/unit.h"

#include "base/thread.h"
#include "codegen/llvm/module.h"

#include <string.h>

enum {
    MAX_THREADS = 16, /* units of that many threads fit in memory */
    /* One that a thread has prepared, and one that it made because none was idle. */
    MAX_MACHINES = 2 * MAX_THREADS,
    /* So many units lie in the ring for each thread: the large ones among them begin first. */
    UNITS_OF_THREAD = 4
};

struct UnitQueue {
    Arena *arena;
    BackOptions options;
    CodeKind kind;
    UnitFinish *finish;
    UnitTake *take;
    void *user;
    CodegenUnit *units;
    uint32_t n_units, n_opened;
    UnitPrepare *prepare; /* of threads that begin before there are units */
    pthread_t threads[MAX_THREADS];
    uint32_t n_threads, n_started;
    pthread_mutex_t lock; /* guards the members behind it, and the states of all units */
    pthread_cond_t changed;
    uint32_t n_closed, n_taken;
    struct {
        LLVMTargetMachineRef machines[MAX_MACHINES];
        uint32_t n;
    } idle[EFFORT_COUNT]; /* that no thread uses now */
    bool ends;
};

static Arena *new_arena(const Arena *arena, Escape *escape) {
    Arena *own = arena_new(escape);
    Escape *outer = arena_escape(arena);
    if (!own && outer) longjmp(outer->jump, ESCAPE_OUT_OF_MEMORY);
    if (!own) ice(arena, "out of memory");
    return own;
}

UnitQueue *unit_queue_new(Arena *arena, const BackOptions *options, CodeKind kind,
                          UnitFinish *finish, UnitTake *take, void *user) {
    UnitQueue *queue = arena_array(arena, UnitQueue, 1);
    queue->arena = arena;
    queue->options = *options;
    queue->kind = kind;
    queue->finish = finish;
    queue->take = take;
    queue->user = user;
    queue->n_threads = options->n_threads < 1             ? 1
                       : options->n_threads > MAX_THREADS ? MAX_THREADS
                                                          : options->n_threads;
    queue->n_units = queue->n_threads == 1 ? 1 : UNITS_OF_THREAD * queue->n_threads;
    queue->units = arena_array(arena, CodegenUnit, queue->n_units);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    return queue;
}

/* Frees all that the unit holds but its arenas. */
static void unit_empty(CodegenUnit *unit) {
    module_dispose(&unit->k);
    if (unit->code) LLVMDisposeMemoryBuffer(unit->code);
    if (unit->message) LLVMDisposeMessage(unit->message);
    if (unit->scratch) arena_reset(unit->scratch);
    if (unit->own) arena_reset(unit->own);
    CodegenUnit kept = {.scratch = unit->scratch, .own = unit->own};
    memcpy(unit, &kept, sizeof kept);
}

/* Finishes a unit, whose module is needed no longer. Its failures leave through its own escape,
 * whatever the thread. */
static void finish(const UnitQueue *queue, CodegenUnit *unit) {
    int reason = setjmp(unit->escape.jump);
    if (reason)
        unit->failure = (EscapeReason)reason;
    else
        queue->finish(unit, &queue->options, queue->kind);
    module_dispose(&unit->k);
}

/* The lowered unit of the most instructions that no thread has begun; NULL: there is none. */
static CodegenUnit *find_largest(const UnitQueue *queue) {
    CodegenUnit *largest = NULL;
    for (uint32_t i = queue->n_taken; i < queue->n_closed; i++) {
        CodegenUnit *unit = &queue->units[i % queue->n_units];
        bool is_larger = !largest || unit->n_instructions > largest->n_instructions;
        if (unit->state == UNIT_LOWERED && is_larger) largest = unit;
    }
    return largest;
}

/* Finishes the unit, by a machine that an earlier one left or that it makes. The lock is held
 * before and after. */
static void finish_unlocked(UnitQueue *queue, CodegenUnit *unit) {
    uint32_t *n_idle = &queue->idle[unit->effort].n;
    LLVMTargetMachineRef *idle = queue->idle[unit->effort].machines;
    unit->state = UNIT_BEGUN;
    if (*n_idle) unit->machine = idle[--*n_idle];
    pthread_mutex_unlock(&queue->lock);
    finish(queue, unit);
    pthread_mutex_lock(&queue->lock);
    if (unit->machine) idle[(*n_idle)++] = unit->machine;
    unit->state = UNIT_FINISHED;
    pthread_cond_broadcast(&queue->changed);
}

/* Finishes the unit, or waits for a change where it is NULL. The lock is held before and after. */
static void finish_or_wait(UnitQueue *queue, CodegenUnit *unit) {
    if (unit)
        finish_unlocked(queue, unit);
    else
        pthread_cond_wait(&queue->changed, &queue->lock);
}

static void *work(void *argument) {
    UnitQueue *queue = argument;
    pthread_mutex_lock(&queue->lock);
    while (!queue->ends) finish_or_wait(queue, find_largest(queue));
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

static void *prepare_and_work(void *argument) {
    UnitQueue *queue = argument;
    LLVMTargetMachineRef machine = queue->prepare(&queue->options);
    pthread_mutex_lock(&queue->lock);
    if (machine) queue->idle[EFFORT_BEST].machines[queue->idle[EFFORT_BEST].n++] = machine;
    pthread_mutex_unlock(&queue->lock);
    return work(queue);
}

/* Starts a thread. Without another thread the caller's finishes all units. */
static void start_thread(UnitQueue *queue, void *(*body)(void *)) {
    if (thread_start(&queue->threads[queue->n_started], body, queue))
        queue->n_started++;
    else
        queue->n_threads = queue->n_started + 1;
}

void unit_queue_prepare(UnitQueue *queue, UnitPrepare *prepare, uint32_t most) {
    queue->prepare = prepare;
    while (queue->n_started < most && queue->n_started + 1 < queue->n_threads)
        start_thread(queue, prepare_and_work);
}

/* Waits for the oldest unit, and finishes units meanwhile. More are lowered where the ring has
 * room, so a full ring's oldest unit is the first of them. */
static CodegenUnit *wait_for_oldest(UnitQueue *queue, bool is_full) {
    CodegenUnit *unit = &queue->units[queue->n_taken % queue->n_units];
    pthread_mutex_lock(&queue->lock);
    while (unit->state != UNIT_FINISHED)
        finish_or_wait(queue, is_full && unit->state == UNIT_LOWERED ? unit : find_largest(queue));
    queue->n_taken++;
    pthread_mutex_unlock(&queue->lock);
    return unit;
}

static bool take_oldest(UnitQueue *queue, bool is_full) {
    CodegenUnit *unit = wait_for_oldest(queue, is_full);
    bool ok = queue->take(queue->user, unit);
    unit_empty(unit);
    return ok;
}

CodegenUnit *unit_open(UnitQueue *queue) {
    bool is_full = queue->n_opened - queue->n_taken == queue->n_units;
    if (is_full && !take_oldest(queue, true)) return NULL;
    CodegenUnit *unit = &queue->units[queue->n_opened++ % queue->n_units];
    if (!unit->scratch) unit->scratch = new_arena(queue->arena, arena_escape(queue->arena));
    if (!unit->own) unit->own = new_arena(queue->arena, &unit->escape);
    unit->ptx.head.arena = unit->ptx.functions.arena = unit->own;
    module_init(&unit->k, unit->scratch, queue->options.target, "fusec");
    return unit;
}

/* The second unit starts the first thread, since one unit alone gains nothing by threads. */
void unit_close(UnitQueue *queue, uint32_t n_instructions, UnitEffort effort) {
    CodegenUnit *unit = &queue->units[(queue->n_opened - 1) % queue->n_units];
    unit->k.arena = unit->own;
    unit->n_instructions = n_instructions;
    unit->effort = effort;
    pthread_mutex_lock(&queue->lock);
    unit->state = UNIT_LOWERED;
    queue->n_closed++;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    if (queue->n_closed > 1 && queue->n_started + 1 < queue->n_threads) start_thread(queue, work);
}

bool unit_take_rest(UnitQueue *queue) {
    while (queue->n_taken < queue->n_opened)
        if (!take_oldest(queue, false)) return false;
    return true;
}

void unit_queue_dispose(UnitQueue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->ends = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    for (uint32_t i = 0; i < queue->n_started; i++) pthread_join(queue->threads[i], NULL);
    for (uint32_t i = 0; i < queue->n_units; i++) {
        CodegenUnit *unit = &queue->units[i];
        unit_empty(unit);
        if (unit->scratch) arena_free(unit->scratch);
        if (unit->own) arena_free(unit->own);
    }
    for (uint32_t e = 0; e < EFFORT_COUNT; e++)
        for (uint32_t i = 0; i < queue->idle[e].n; i++)
            LLVMDisposeTargetMachine(queue->idle[e].machines[i]);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
}
