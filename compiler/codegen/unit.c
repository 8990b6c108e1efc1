/* See unit.h. Units lie in a ring. Counters that only grow say how many were opened, closed, begun
 * and taken; the unit with number `i` lies in slot i modulo the ring's length. */
#include "codegen/unit.h"

#include "codegen/llvm/module.h"

#include <fusec.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

enum { MAX_THREADS = 16 }; /* units of that many threads fit in memory */

struct UnitLine {
    Arena *arena;
    BackOptions options;
    CodeKind kind;
    UnitFinish *finish;
    UnitTake *take;
    void *user;
    Unit *units;
    uint32_t n_units, n_opened, n_taken;
    pthread_t threads[MAX_THREADS];
    uint32_t n_threads, n_started;
    pthread_mutex_t lock; /* guards what follows, and is_finished of all units */
    pthread_cond_t changed;
    uint32_t n_closed, n_begun;
    bool ends;
};

static Arena *new_arena(const Arena *arena, Escape *escape) {
    Arena *own = arena_new(escape);
    Escape *outer = arena_escape(arena);
    if (!own && outer) longjmp(outer->jump, ESCAPE_OUT_OF_MEMORY);
    if (!own) ice(arena, "out of memory");
    return own;
}

UnitLine *unit_line_new(Arena *arena, const BackOptions *options, CodeKind kind, UnitFinish *finish,
                        UnitTake *take, void *user) {
    UnitLine *line = arena_array(arena, UnitLine, 1);
    line->arena = arena;
    line->options = *options;
    line->kind = kind;
    line->finish = finish;
    line->take = take;
    line->user = user;
    line->n_threads = options->n_threads < 1             ? 1
                      : options->n_threads > MAX_THREADS ? MAX_THREADS
                                                         : options->n_threads;
    line->n_units = line->n_threads == 1 ? 1 : 2 * line->n_threads;
    line->units = arena_array(arena, Unit, line->n_units);
    pthread_mutex_init(&line->lock, NULL);
    pthread_cond_init(&line->changed, NULL);
    return line;
}

/* Frees all that the unit holds but its arenas. */
static void unit_empty(Unit *unit) {
    module_dispose(&unit->k);
    if (unit->code) LLVMDisposeMemoryBuffer(unit->code);
    if (unit->message) LLVMDisposeMessage(unit->message);
    if (unit->scratch) arena_reset(unit->scratch);
    if (unit->own) arena_reset(unit->own);
    Arena *scratch = unit->scratch, *own = unit->own;
    memset(unit, 0, sizeof *unit);
    unit->scratch = scratch;
    unit->own = own;
}

/* Finishes a unit. Its failures leave through its own escape, whatever the thread. */
static void finish(const UnitLine *line, Unit *unit) {
    int reason = setjmp(unit->escape.jump);
    if (reason)
        unit->failure = (EscapeReason)reason;
    else
        line->finish(unit, &line->options, line->kind);
}

/* Finishes the next lowered unit. The lock is held before and after. */
static void finish_next(UnitLine *line) {
    Unit *unit = &line->units[line->n_begun++ % line->n_units];
    pthread_mutex_unlock(&line->lock);
    finish(line, unit);
    pthread_mutex_lock(&line->lock);
    unit->is_finished = true;
    pthread_cond_broadcast(&line->changed);
}

static void *work(void *argument) {
    UnitLine *line = argument;
    pthread_mutex_lock(&line->lock);
    while (!line->ends)
        if (line->n_begun < line->n_closed)
            finish_next(line);
        else
            pthread_cond_wait(&line->changed, &line->lock);
    pthread_mutex_unlock(&line->lock);
    return NULL;
}

/* Starts a thread. It takes no signals: the host's handlers run on threads of the host. Without
 * another thread the caller's finishes all units. */
static void start_thread(UnitLine *line) {
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes)) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_attr_setstacksize(&attributes, FUSEC_STACK_BYTES) == 0 &&
        pthread_create(&line->threads[line->n_started], &attributes, work, line) == 0)
        line->n_started++;
    else
        line->n_threads = line->n_started + 1;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* Waits for the oldest unit, and finishes units meanwhile. */
static Unit *wait_for_oldest(UnitLine *line) {
    Unit *unit = &line->units[line->n_taken % line->n_units];
    pthread_mutex_lock(&line->lock);
    while (!unit->is_finished)
        if (line->n_begun < line->n_closed)
            finish_next(line);
        else
            pthread_cond_wait(&line->changed, &line->lock);
    pthread_mutex_unlock(&line->lock);
    return unit;
}

static bool take_oldest(UnitLine *line) {
    Unit *unit = wait_for_oldest(line);
    line->n_taken++;
    bool ok = line->take(line->user, unit);
    unit_empty(unit);
    return ok;
}

Unit *unit_open(UnitLine *line) {
    if (line->n_opened - line->n_taken == line->n_units && !take_oldest(line)) return NULL;
    Unit *unit = &line->units[line->n_opened++ % line->n_units];
    if (!unit->scratch) unit->scratch = new_arena(line->arena, arena_escape(line->arena));
    if (!unit->own) unit->own = new_arena(line->arena, &unit->escape);
    unit->ptx.head.arena = unit->ptx.functions.arena = unit->own;
    module_init(&unit->k, unit->scratch, line->options.target, "fusec");
    return unit;
}

/* The second unit starts the first thread, since one unit alone gains nothing by threads. */
void unit_close(UnitLine *line) {
    Unit *unit = &line->units[(line->n_opened - 1) % line->n_units];
    unit->k.arena = unit->own;
    pthread_mutex_lock(&line->lock);
    line->n_closed++;
    pthread_cond_broadcast(&line->changed);
    pthread_mutex_unlock(&line->lock);
    if (line->n_closed > 1 && line->n_started + 1 < line->n_threads) start_thread(line);
}

bool unit_take_rest(UnitLine *line) {
    while (line->n_taken < line->n_opened)
        if (!take_oldest(line)) return false;
    return true;
}

void unit_line_dispose(UnitLine *line) {
    pthread_mutex_lock(&line->lock);
    line->ends = true;
    pthread_cond_broadcast(&line->changed);
    pthread_mutex_unlock(&line->lock);
    for (uint32_t i = 0; i < line->n_started; i++) pthread_join(line->threads[i], NULL);
    for (uint32_t i = 0; i < line->n_units; i++) {
        Unit *unit = &line->units[i];
        unit_empty(unit);
        if (unit->scratch) arena_free(unit->scratch);
        if (unit->own) arena_free(unit->own);
    }
    pthread_cond_destroy(&line->changed);
    pthread_mutex_destroy(&line->lock);
}
