/* Tensors: those of the caller, temps, and tensors that lie in others. See manifest_writer.h. */
#include "artifact/manifest_writer.h"

#include <frt_manifest.h>

/* Values that graphs of a sequence pass to each other are named as temps are. */
void manifest_put_kept_name(Writer *w, const Kept *value) {
    if (value->kind == KEPT_TEMP || value->kind == KEPT_RESULT) text_puts(&w->text, ".");
    line_escaped(w, value->name);
}

static const Kept *kept_at(const Writer *w, const KeptUse *use) {
    const Sequence *sequence = w->at.sequence;
    return &sequence->values.data[sequence_value(sequence, use, w->at.odd)];
}

void manifest_put_buffer_name(Writer *w, const Buffer *buffer) {
    switch (buffer->kind) {
    case BUFFER_TEMP:
    case BUFFER_PREPARED:
        text_puts(&w->text, ".");
        if (w->at.sequence) text_printf(&w->text, "sub%u.", w->at.number);
        break;
    case BUFFER_INPUT:
        if (!w->at.sequence) break;
        manifest_put_kept_name(w, kept_at(w, &w->at.sub->inputs.data[buffer->ordinal]));
        return;
    case BUFFER_OUTPUT:
        if (!w->at.sequence) break;
        manifest_put_kept_name(w, kept_at(w, &w->at.sub->outputs.data[buffer->ordinal]));
        return;
    case BUFFER_PARAM:
        break;
    }
    line_escaped(w, buffer->name);
}

/* The beginning of the names of tensors that lie in others. */
static void put_inner_prefix(Writer *w) {
    text_puts(&w->text, ".");
    if (!w->at.sequence) return;
    uint32_t depth = sequence_depth(w->at.sequence, w->at.number);
    text_printf(&w->text, "sub%u.", w->at.number);
    if (!depth) text_puts(&w->text, "even.");
    for (uint32_t d = 0; d < depth; d++) text_puts(&w->text, w->at.odd >> d & 1 ? "odd." : "even.");
}

/* The store whose slice of the buffer the kernel gets a pointer to; NULL if it gets the whole
 * buffer. */
const Store *manifest_piece_of(const Kernel *kernel, uint32_t arg) {
    return kernel_arg_begin(kernel, arg) ? kernel_find_store(kernel, kernel->args.data[arg]) : NULL;
}

void manifest_put_piece_name(Writer *w, const Buffer *buffer, const Store *store) {
    put_inner_prefix(w);
    line_escaped(w, str_format(w->text.arena, "%s.piece%u", buffer->name, store->piece));
}

static void write_piece(Writer *w, const Plan *plan, const Store *store) {
    const Buffer *buffer = &plan->buffers.data[store->buffer];
    line_begin(w, FRT_D_TEMP);
    text_puts(&w->text, " ");
    manifest_put_piece_name(w, buffer, store);
    line_int(w, 0);
    line_word(w, dtype_name(buffer->dtype));
    text_puts(&w->text, " ");
    manifest_put_buffer_name(w, buffer);
    text_puts(&w->text, ":");
    line_expr(w, dim_mul_const(w->dims, store->begin, dtype_bytes(buffer->dtype)));
    line_shape(w, &graph_node(plan->graph, store->node)->shape);
    line_end(w);
}

/* Returns the number of slices. */
uint32_t manifest_write_pieces(Writer *w, const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        for (uint32_t i = 0; i < plan->kernels.data[k].args.n; i++) {
            const Store *store = manifest_piece_of(&plan->kernels.data[k], i);
            if (!store || plan->buffers.data[store->buffer].space != BUFFER_GLOBAL) continue;
            write_piece(w, plan, store);
            n++;
        }
    return n;
}

/* The number of the part that argument `arg` is, which is added if it is new. */
uint32_t manifest_part_number(Writer *w, const Kernel *kernel, uint32_t arg) {
    const Part part = {kernel->args.data[arg], kernel_part_begin(kernel, arg)};
    for (uint32_t i = 0; i < w->parts.n; i++)
        if (w->parts.data[i].buffer == part.buffer && w->parts.data[i].begin == part.begin)
            return i;
    vec_push(w->text.arena, &w->parts, part);
    return w->parts.n - 1;
}

void manifest_put_part_name(Writer *w, const Buffer *buffer, uint32_t number) {
    put_inner_prefix(w);
    line_escaped(w, str_format(w->text.arena, "%s.part%u", buffer->name, number));
}

static void write_part(Writer *w, const Plan *plan, uint32_t number) {
    const Part *part = &w->parts.data[number];
    const Buffer *buffer = &plan->buffers.data[part->buffer];
    line_begin(w, FRT_D_TEMP);
    text_puts(&w->text, " ");
    manifest_put_part_name(w, buffer, number);
    line_int(w, 0);
    line_word(w, dtype_name(buffer->dtype));
    text_puts(&w->text, " ");
    manifest_put_buffer_name(w, buffer);
    text_puts(&w->text, ":");
    line_expr(w, dim_mul_const(w->dims, part->begin, dtype_bytes(buffer->dtype)));
    line_dim(w, dim_sub(w->dims, shape_n_elems(w->dims, &buffer->shape), part->begin));
    line_end(w);
}

void manifest_number_parts(Writer *w, const Plan *plan) {
    w->parts.n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        for (uint32_t i = 0; i < plan->kernels.data[k].args.n; i++)
            if (kernel_part_begin(&plan->kernels.data[k], i))
                manifest_part_number(w, &plan->kernels.data[k], i);
}

/* Returns the number of parts. */
uint32_t manifest_write_parts(Writer *w, const Plan *plan) {
    manifest_number_parts(w, plan);
    for (uint32_t i = 0; i < w->parts.n; i++) write_part(w, plan, i);
    return w->parts.n;
}

/* The temps of a subgraph lie behind the values that subgraphs pass to each other. */
static DimId workspace_offset(const Writer *w, DimId offset) {
    return w->at.sequence ? dim_add(w->dims, w->at.sequence->n_bytes, offset) : offset;
}

static void write_buffer(Writer *w, const Plan *plan, const Buffer *buffer) {
    static const char *const directives[] = {[BUFFER_INPUT] = FRT_D_INPUT,
                                             [BUFFER_PARAM] = FRT_D_PARAM,
                                             [BUFFER_OUTPUT] = FRT_D_OUTPUT,
                                             [BUFFER_TEMP] = FRT_D_TEMP,
                                             [BUFFER_PREPARED] = FRT_D_TEMP};
    line_begin(w, directives[buffer->kind]);
    text_puts(&w->text, " ");
    manifest_put_buffer_name(w, buffer);
    line_int(w, 0); /* the device ordinal */
    line_word(w, dtype_name(buffer->dtype));
    if (buffer->kind == BUFFER_TEMP) line_dim(w, workspace_offset(w, buffer->offset_bytes));
    if (buffer->kind == BUFFER_PREPARED) line_word(w, FRT_NONE);
    Shape layout = buffer_layout(buffer);
    line_shape(w, &layout);
    if (buffer->kind == BUFFER_PARAM || buffer->choice) line_word(w, "=");
    if (buffer->kind == BUFFER_PARAM) line_name(w, w->graph->params.data[buffer->ordinal].key);
    if (buffer->choice) text_puts(&w->text, " ");
    if (buffer->choice) manifest_put_buffer_name(w, &plan->buffers.data[buffer->source]);
    line_end(w);
}

/* The predicates under which no padded copy is made: the rows are aligned already, or the copy
 * would cost more than it saves. */
static void write_pitch(Writer *w, const Plan *plan, const DynamicPitch *pitch) {
    const DimSymbol *symbol = dim_symbol_info(w->dims, pitch->pitch);
    const DimRule *rule = symbol->rule;
    const Buffer *source = &plan->buffers.data[pitch->source];
    line_begin(w, FRT_D_PITCH);
    line_name(w, symbol->name);
    line_name(w, dim_symbol_info(w->dims, pitch->width)->name);
    text_puts(&w->text, " ");
    manifest_put_buffer_name(w, source);
    line_dim(w, rule->extent);
    line_int(w, rule->padded);
    const Condition *copied = &pitch->choice->condition;
    for (uint32_t i = 0; i < copied->n_unless; i++)
        manifest_put_predicate_alone(w, &copied->unless[i]);
    line_end(w);
}

/* For human readers: the runtime computes it from the shape. */
static void write_prepared_bytes(Writer *w, const Buffer *buffer) {
    line_begin(w, FRT_X_BYTES);
    text_puts(&w->text, " ");
    manifest_put_buffer_name(w, buffer);
    line_dim(w, buffer_bytes(w->dims, buffer));
    line_end(w);
}

void manifest_write_in_place(Writer *w, const Plan *plan) {
    for (uint32_t i = 0; i < plan->buffers.n; i++) {
        const Buffer *buffer = &plan->buffers.data[i];
        uint32_t input = plan_input_in_place(plan, i);
        if (input == NO_BUFFER) continue;
        line_begin(w, FRT_D_IN_PLACE);
        line_name(w, buffer->name);
        line_name(w, plan->buffers.data[input].name);
        line_end(w);
    }
}

/* Writes the buffers that the caller binds, or the buffers that the plan makes. */
void manifest_write_buffers_of(Writer *w, const Plan *plan, bool made) {
    for (uint32_t i = 0; made && i < plan->dynamic_pitches.n; i++)
        write_pitch(w, plan, &plan->dynamic_pitches.data[i]);
    for (uint32_t i = 0; i < plan->buffers.n; i++) {
        const Buffer *buffer = &plan->buffers.data[i];
        bool is_made = buffer->kind == BUFFER_TEMP || buffer->kind == BUFFER_PREPARED;
        if (buffer->space != BUFFER_GLOBAL || is_made != made) continue;
        write_buffer(w, plan, buffer);
        if (buffer->kind == BUFFER_PREPARED) write_prepared_bytes(w, buffer);
    }
}
