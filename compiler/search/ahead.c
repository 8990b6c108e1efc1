/* See ahead.h. */
#include "search/ahead.h"

#include "base/thread.h"
#include "machine/tuning.h"
#include "search/region_memo.h"

#include <stdlib.h>
#include <string.h>

/* A region. It is made by the caller's thread, in `made`. One of the threads improves it, with
 * arenas that leave through an escape of their own. */
typedef struct Job {
    Arena *made;
    Region region;
    Decisions *decisions;
    RegionResult *result; /* of the memo */
    Planning planning;
    Searcher searcher;
    Escape escape;
    Arena *own, *scratch, *priced, *group_trials; /* NULL: not yet */
    uint64_t work;                                /* at its end, of Planning, as is the next */
    GroupingWork grouped;
    bool improves, is_good;
} Job;

enum { MOST_JOBS = 32, MOST_THREADS = 16 };

struct RegionsAhead {
    uint32_t n_threads, n_jobs;
    Job *jobs[MOST_JOBS];
    pthread_mutex_t lock; /* guards `n_begun` */
    uint32_t n_begun;
};

RegionsAhead *regions_ahead_new(uint32_t n_threads) {
    RegionsAhead *ahead = n_threads > 1 ? calloc(1, sizeof *ahead) : NULL;
    if (!ahead) return NULL;
    ahead->n_threads = n_threads < MOST_THREADS ? n_threads : MOST_THREADS;
    pthread_mutex_init(&ahead->lock, NULL);
    return ahead;
}

/* Frees what the job does not need for its result. */
static void free_trials(Job *job) {
    arena_free(job->scratch);
    arena_free(job->priced);
    arena_free(job->group_trials);
    job->scratch = job->priced = job->group_trials = NULL;
}

static void drop_last(RegionsAhead *ahead) {
    Job *job = ahead->jobs[--ahead->n_jobs];
    free_trials(job);
    arena_free(job->own);
    arena_free(job->made);
    free(job);
}

static void drop_jobs(RegionsAhead *ahead) {
    while (ahead->n_jobs) drop_last(ahead);
    ahead->n_begun = 0;
}

void regions_ahead_free(RegionsAhead *ahead) {
    if (!ahead) return;
    drop_jobs(ahead);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}

/* Making jobs. */

static Job *add_job(RegionsAhead *ahead, const Searcher *c) {
    Job *job = ahead->n_jobs < MOST_JOBS ? calloc(1, sizeof *job) : NULL;
    if (!job) return NULL;
    job->made = arena_new(arena_escape(c->arena));
    ahead->jobs[ahead->n_jobs++] = job;
    if (job->made) return job;
    drop_last(ahead);
    return NULL;
}

static bool has_result(const RegionsAhead *ahead, const RegionResult *result) {
    bool has = result->decisions != NULL;
    for (uint32_t i = 0; i + 1 < ahead->n_jobs; i++) has = has || ahead->jobs[i]->result == result;
    return has;
}

/* Makes the kernel's region the job's. Returns false if it has none, or one whose result is known
 * or another job's. */
static bool fill_job(const RegionsAhead *ahead, Job *job, const Searcher *c, const Plan *plan,
                     const Kernel *kernel) {
    Searcher own = *c;
    own.arena = own.scratch = job->made;
    if (!search_make_region(&own, plan, kernel, false, &job->region)) return false;
    job->decisions = search_region_decisions(&own, &job->region);
    job->result = region_memo_of(&own, &job->region, job->decisions);
    return !has_result(ahead, job->result);
}

/* In the order in which search comes to them. A job's graph has dims of its own. */
static void make_jobs(RegionsAhead *ahead, const Searcher *c, const Plan *plan) {
    Searcher own = *c;
    uint32_t n_left = SEARCH_MOST_REGIONS - c->n_regions;
    Job *job = NULL;
    own.marks = node_flags_copy(c->arena, c->marks);
    for (uint32_t k = 0; k < plan->kernels.n && n_left; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        if (!search_has_candidates(&own, plan, kernel)) continue;
        node_add(own.marks, search_main_node(kernel), MARK_SETTLED);
        n_left--;
        if (!job) job = add_job(ahead, c);
        if (!job) return;
        if (fill_job(ahead, job, &own, plan, kernel)) {
            job->region.subgraph.graph = graph_for_trial(job->made, job->region.subgraph.graph);
            job = NULL;
        } else {
            arena_reset(job->made);
        }
    }
    if (job) drop_last(ahead);
}

/* Each job has a share of the work that is left. */
static void begin_job(Job *job, const Searcher *c, uint32_t n_jobs) {
    job->planning = *c->planning;
    job->planning.work = &job->work;
    job->planning.grouped = &job->grouped;
    job->planning.ahead = NULL;
    job->searcher = *c;
    job->searcher.planning = &job->planning;
    job->work = 0;
    job->grouped = (GroupingWork){0};
    if (c->most_work)
        job->searcher.most_work =
            (c->most_work - *c->planning->work - c->planning->grouped->n_scalars) / n_jobs + 1;
}

/* On any thread. */

static bool open_arenas(Job *job) {
    job->own = arena_new(&job->escape);
    job->scratch = arena_new(&job->escape);
    job->priced = arena_new(&job->escape);
    job->group_trials = arena_new(&job->escape);
    return job->own && job->scratch && job->priced && job->group_trials;
}

static void improve(Job *job) {
    Searcher *c = &job->searcher;
    c->arena = job->own;
    c->scratch = job->scratch;
    c->priced = job->priced;
    c->clean = arena_mark(job->scratch);
    job->planning.group_trials = job->group_trials;
    job->improves = search_improve(c, &job->region, &job->decisions);
    job->is_good = !search_is_spent(c);
}

/* A job that fails is no good: the caller's thread does it again, and fails by itself. */
static void run_job(Job *job) {
    if (open_arenas(job) && setjmp(job->escape.jump) == 0) improve(job);
    free_trials(job);
}

static Job *next_job(RegionsAhead *ahead) {
    pthread_mutex_lock(&ahead->lock);
    Job *job = ahead->n_begun < ahead->n_jobs ? ahead->jobs[ahead->n_begun++] : NULL;
    pthread_mutex_unlock(&ahead->lock);
    return job;
}

static void *run_jobs(void *argument) {
    RegionsAhead *ahead = argument;
    Job *job;
    while ((job = next_job(ahead))) run_job(job);
    return NULL;
}

static int by_size(const void *a, const void *b) {
    uint32_t one = (*(Job *const *)a)->region.subgraph.graph->nodes.n,
             other = (*(Job *const *)b)->region.subgraph.graph->nodes.n;
    return (one < other) - (one > other);
}

/* The largest regions begin first. */
static void run_all(RegionsAhead *ahead) {
    pthread_t threads[MOST_THREADS];
    uint32_t n = 0;
    qsort(ahead->jobs, ahead->n_jobs, sizeof *ahead->jobs, by_size);
    while (n + 1 < ahead->n_threads && n + 1 < ahead->n_jobs &&
           thread_start(&threads[n], run_jobs, ahead))
        n++;
    run_jobs(ahead);
    for (uint32_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

void search_ahead(const Searcher *c, const Plan *plan) {
    const Planning *p = c->planning;
    RegionsAhead *ahead = p->ahead;
    if (!ahead || !p->work || !p->grouped || search_is_spent(c)) return;
    drop_jobs(ahead); /* of a compilation that has failed */
    make_jobs(ahead, c, plan);
    for (uint32_t i = 0; i < ahead->n_jobs; i++) begin_job(ahead->jobs[i], c, ahead->n_jobs);
    if (ahead->n_jobs > 1) run_all(ahead);
    for (uint32_t i = 0; i < ahead->n_jobs; i++) {
        const Job *job = ahead->jobs[i];
        if (!job->is_good) continue;
        region_memo_set(c, job->result, job->improves, job->decisions);
        job->result->work = job->work;
        job->result->grouped = job->grouped;
    }
    drop_jobs(ahead);
}
