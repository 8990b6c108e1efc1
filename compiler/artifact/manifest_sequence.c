/* Graphs with loops: the launches of all graphs that they are cut into, those of steps repeated.
 * See manifest_writer.h. */
#include "artifact/manifest_writer.h"
#include "plan/launch.h"

#include <frt_manifest.h>

_Static_assert((int)MAX_LOOPS_DEEP <= (int)FRT_MAX_REPEATS_DEEP, "");

static void write_tensor(Writer *w, const char *directive, Str name, const Node *node, Str key) {
    line_begin(w, directive);
    line_name(w, name);
    line_int(w, 0);
    line_word(w, dtype_name(node->dtype));
    line_shape(w, &node->shape);
    if (key) line_word(w, "=");
    if (key) line_name(w, key);
    line_end(w);
}

static void write_interface(Writer *w, const Graph *graph) {
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        const GraphInput *input = &graph->inputs.data[i];
        write_tensor(w, FRT_D_INPUT, input->name, graph_node(graph, input->node), NULL);
    }
    for (uint32_t i = 0; i < graph->params.n; i++) {
        const GraphInput *param = &graph->params.data[i];
        write_tensor(w, FRT_D_PARAM, param->name, graph_node(graph, param->node), param->key);
    }
    for (uint32_t i = 0; i < graph->outputs.n; i++) {
        const GraphOutput *output = &graph->outputs.data[i];
        write_tensor(w, FRT_D_OUTPUT, output->name, graph_node(graph, output->node), NULL);
    }
}

static void write_kept(Writer *w, const Sequence *sequence) {
    for (uint32_t i = 0; i < sequence->values.n; i++) {
        const Kept *value = &sequence->values.data[i];
        const Node *node = graph_node(sequence->whole, value->node);
        if (value->kind != KEPT_TEMP && value->kind != KEPT_RESULT) continue;
        line_begin(w, FRT_D_TEMP);
        text_puts(&w->text, " ");
        manifest_put_kept_name(w, value);
        line_int(w, 0);
        line_word(w, dtype_name(node->dtype));
        line_dim(w, value->offset_bytes);
        line_shape(w, &node->shape);
        line_end(w);
    }
}

/* The number of subgraphs that read a carried value. */
static uint32_t count_readers(const Sequence *sequence, uint32_t value) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < sequence->graphs.n; i++) {
        const SequenceGraph *sub = &sequence->graphs.data[i];
        for (uint32_t k = 0; k < sub->inputs.n; k++)
            n += sub->inputs.data[k].loop && sub->inputs.data[k].value == value;
    }
    return n;
}

/* Per value of the sequence: the value at whose place it lies, plus 1. A step that updates what it
 * carries does so where it lies, if nothing else reads it. */
static uint32_t *in_place_values(Arena *arena, const Sequence *sequence, const Plan *const *plans) {
    uint32_t *in_place = arena_array(arena, uint32_t, sequence->values.n);
    for (uint32_t i = 0; i < sequence->graphs.n; i++) {
        const SequenceGraph *sub = &sequence->graphs.data[i];
        for (uint32_t k = 0; sub->loop && k < plans[i]->buffers.n; k++) {
            uint32_t input = plan_input_in_place(plans[i], k);
            if (input == NO_BUFFER) continue;
            KeptUse to = sub->outputs.data[plans[i]->buffers.data[k].ordinal];
            KeptUse from = sub->inputs.data[plans[i]->buffers.data[input].ordinal];
            bool is_step = to.is_next && to.loop == from.loop && to.value == from.value;
            if (is_step && count_readers(sequence, to.value) == 1)
                in_place[to.value + 1] = to.value + 1;
        }
    }
    return in_place;
}

static void begin_sub(Writer *w, const Sequence *sequence, uint32_t i, uint32_t odd) {
    w->at = (SequenceAt){sequence, &sequence->graphs.data[i], i, odd};
    w->graph = sequence->graphs.data[i].graph;
}

static void end_sub(Writer *w, const Graph *whole) {
    w->at = (SequenceAt){0};
    w->graph = whole;
}

/* Writes the launches of one phase. */
static void write_phase(Writer *w, const Plan *plan, bool is_init) {
    manifest_number_parts(w, plan);
    for (uint32_t i = 0; i < plan->launches.n && !w->failed; i++) {
        const Launch *launch = &plan->launches.data[i];
        if (launch_kernel(plan, launch, 0)->is_init == is_init)
            manifest_write_launch(w, plan, launch);
    }
}

static void write_word_line(Writer *w, const char *directive) {
    line_begin(w, directive);
    line_end(w);
}

/* Whether the subgraph is of a step of loop - 1, or of a loop inside. */
static bool is_in_loop(const Sequence *sequence, uint32_t i, uint32_t loop) {
    uint32_t at = i < sequence->graphs.n ? sequence->graphs.data[i].loop : 0;
    while (at && at != loop) at = sequence->loops.data[at - 1].parent;
    return i < sequence->graphs.n && at == loop;
}

/* The loop around the subgraph, plus 1, that is directly inside loop - 1, or (0) in no other one.
 */
static uint32_t loop_inside(const Sequence *sequence, uint32_t i, uint32_t loop) {
    uint32_t at = sequence->graphs.data[i].loop;
    while (sequence->loops.data[at - 1].parent != loop) at = sequence->loops.data[at - 1].parent;
    return at;
}

/* Writes the launches of the run from subgraph `i` on, as far as they are in loop - 1, or (0) all.
 * Those of loops inside are repeated. Returns the subgraph that follows. */
static uint32_t write_steps(Writer *w, const Sequence *sequence, const Plan *const *plans,
                            uint32_t i, uint32_t loop, uint32_t odd) {
    while (is_in_loop(sequence, i, loop)) {
        begin_sub(w, sequence, i, odd);
        if (sequence->graphs.data[i].loop == loop) {
            write_phase(w, plans[i++], false);
            continue;
        }
        uint32_t inner = loop_inside(sequence, i, loop);
        const SequenceLoop *repeated = &sequence->loops.data[inner - 1];
        line_begin(w, FRT_D_REPEAT);
        line_dim(w, repeated->count);
        line_end(w);
        write_steps(w, sequence, plans, i, inner, odd);
        write_word_line(w, FRT_D_ODD);
        i = write_steps(w, sequence, plans, i, inner, odd | 1u << repeated->depth);
        write_word_line(w, FRT_D_END_REPEAT);
    }
    return i;
}

/* The workspace holds what subgraphs pass to each other, and behind it the temps of one of them at
 * a time. */
static void write_shared_workspace(Writer *w, const Sequence *sequence, const Plan *const *plans) {
    VecDim ends = {0};
    vec_push(w->text.arena, &ends, sequence->n_bytes);
    for (uint32_t i = 0; i < sequence->graphs.n; i++)
        for (uint32_t k = 0; k < plans[i]->workspace.n; k++)
            vec_push(w->text.arena, &ends,
                     dim_add(w->dims, sequence->n_bytes, plans[i]->workspace.data[k]));
    line_begin(w, FRT_D_WORKSPACE);
    text_puts(&w->text, " ");
    line_largest(w, ends.data, ends.n);
    line_end(w);
}

/* Writes the tensors that are inside others; of values that loops carry, one for each of their
 * places. Returns their number. */
static uint32_t write_inner(Writer *w, const Sequence *sequence, uint32_t i, const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t odd = 0; odd < 1u << sequence_depth(sequence, i); odd++) {
        begin_sub(w, sequence, i, odd);
        n += manifest_write_pieces(w, plan) + manifest_write_parts(w, plan);
    }
    return n;
}

void manifest_write_sequence(Writer *w, Sequence *sequence, const Plan *const *plans) {
    const Graph *whole = sequence->whole;
    uint32_t n_tensors = sequence->values.n + whole->params.n;
    manifest_write_graph_line(w, whole);
    if (!sequence_place(sequence, in_place_values(w->text.arena, sequence, plans))) {
        w->failed = true;
        diag_report(w->diags, DIAG_DIM_OVERFLOW, whole->source, whole->span,
                    "the workspace of graph `%s` could pass 2^62 bytes", whole->name);
        return;
    }
    write_interface(w, whole);
    write_kept(w, sequence);
    for (uint32_t i = 0; i < sequence->graphs.n; i++) {
        begin_sub(w, sequence, i, 0);
        manifest_write_buffers_of(w, plans[i], true);
        n_tensors += plans[i]->buffers.n + write_inner(w, sequence, i, plans[i]);
    }
    if (n_tensors > FRT_MAX_TENSORS) line_fail_limit(w, manifest_too_many, FRT_MAX_TENSORS);
    write_shared_workspace(w, sequence, plans);
    for (uint32_t i = 0; i < sequence->graphs.n; i++) {
        begin_sub(w, sequence, i, 0);
        write_phase(w, plans[i], true);
    }
    write_steps(w, sequence, plans, 0, 0, 0);
    end_sub(w, NULL);
}
