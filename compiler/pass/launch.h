/* Joining launches: kernels of one graph that are the same but for their buffers, and of which none
 * waits for another, start as one grid (three projections of one input, say). It changes no bit of
 * any result, since blocks know nothing of one another. Requires Kernel.code; lengthens lifetimes,
 * so buffers are placed after it. Contractions by wgmma get tiles for all parts' together. */
#ifndef FUSEC_LAUNCH_H
#define FUSEC_LAUNCH_H

#include "ir/target.h"

/* Moves kernels behind the launch that they join and links them as parts. */
void launch_join(Arena *arena, Plan *plan, const Target *target);

#endif
