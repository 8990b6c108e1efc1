/* Joining launches: kernels of one graph of which none waits for another start as one grid (three
 * projections of one input, say), each with blocks of its own. It changes no bit of any result,
 * since blocks know nothing of one another. Kernels join where they can be parts of one launch
 * (launch/parallel_fit.h) and the price agrees: never where that makes them more than 2 % slower
 * than launches of their own at one of the points of cost_points, unless a `fuse must` block has
 * values of both. For GPUs: on a CPU a launch is a call. Requires Kernel.code; lengthens lifetimes,
 * so buffers are placed after it. GEMMs by wgmma get tiles for all parts' together. */
#ifndef FUSEC_LAUNCH_PARALLEL_H
#define FUSEC_LAUNCH_PARALLEL_H

#include "machine/target.h"
#include "plan/plan.h"

/* Moves kernels behind the launch that they join, links them as parts, and notes in Plan.aparts why
 * others stay by themselves. What is tried is bounded, whatever the graph. */
void parallel_kernels(Arena *arena, Arena *scratch, Plan *plan, const Target *target);

#endif
