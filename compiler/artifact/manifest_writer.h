/* What the files that write the manifest share. Each line is a directive of docs/MANIFEST.md. */
#ifndef FUSEC_ARTIFACT_MANIFEST_WRITER_H
#define FUSEC_ARTIFACT_MANIFEST_WRITER_H

#include "artifact/line.h"

/* What a graph has too many of, in an error. */
extern const char manifest_too_many[];

/* manifest_predicate.c */

/* The position of argument `arg` of kernel `k` among the arguments of the launch. */
uint32_t manifest_position_of(const Plan *plan, const Launch *launch, uint32_t k, uint32_t arg);
/* Writes a predicate that belongs to no launch. */
void manifest_put_predicate_alone(Writer *w, const Predicate *predicate);
/* Writes the predicate of variant `v`, the conjunction of those of all kernels of the launch.
 * Returns whether it is empty. */
bool manifest_put_predicate(Writer *w, const Plan *plan, const Launch *launch, uint32_t v);

/* manifest_buffer.c */

void manifest_put_kept_name(Writer *w, const Kept *value);
void manifest_put_buffer_name(Writer *w, const Buffer *buffer);
/* The store whose slice of the buffer the kernel gets a pointer to; NULL if it gets the whole
 * buffer. */
const Store *manifest_piece_of(const Kernel *kernel, uint32_t arg);
void manifest_put_piece_name(Writer *w, const Buffer *buffer, const Store *store);
/* Numbers the parts of the plan in Writer.parts; the number of one of them, and its name. */
void manifest_number_parts(Writer *w, const Plan *plan);
uint32_t manifest_part_number(Writer *w, const Kernel *kernel, uint32_t arg);
void manifest_put_part_name(Writer *w, const Buffer *buffer, uint32_t number);
/* Write the slices and the parts of the plan, and return their number. */
uint32_t manifest_write_pieces(Writer *w, const Plan *plan);
uint32_t manifest_write_parts(Writer *w, const Plan *plan);
/* Writes the buffers that the caller binds, or the buffers that the plan makes. */
void manifest_write_buffers_of(Writer *w, const Plan *plan, bool made);
void manifest_write_in_place(Writer *w, const Plan *plan);

/* manifest_launch.c */
void manifest_write_launch(Writer *w, const Plan *plan, const Launch *launch);

/* manifest.c */
void manifest_write_graph_line(Writer *w, const Graph *graph);

/* manifest_sequence.c: `plans`, one per graph of the sequence. */
void manifest_write_sequence(Writer *w, Sequence *sequence, const Plan *const *plans);

#endif
