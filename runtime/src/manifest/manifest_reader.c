/* The manifest's grammar: one function per directive, and one table that orders them. These checks
 * let the rest of the runtime index without checks of its own. docs/MANIFEST.md has the grammar in
 * prose. */
#include "host/error.h"
#include "manifest/manifest_text.h"
#include "host/mem.h"

#include <string.h>

/* A directive may follow only directives of its own stage or an earlier one. */
typedef enum Stage {
    STAGE_START,
    STAGE_VERSION,
    STAGE_CHECKSUM,
    STAGE_HEAD,
    STAGE_GRAPH,
    STAGE_END
} Stage;

typedef struct Reader {
    TextReader text;
    Stage stage;
    uint32_t dims_capacity, graphs_capacity, tensors_capacity, steps_capacity;
    uint32_t variants_capacity, pitches_capacity, maps_capacity, refs_capacity, numbers_capacity;
    bool awaits_variant; /* the last line was a launch or one of its variants */
    RepeatState repeat;
    bool is_certain; /* the last variant has no predicate and no map */
    Price group;     /* the last group of variants with prices: its number and its measures */
    bool is_group;   /* the last line other than a map belongs to the group */
} Reader;

static frt_status read_version(Reader *reader) {
    TextReader *r = &reader->text;
    int64_t version;
    frt_status status = text_int(r, r->fields[1], INT32_MAX, "version", &version);
    if (!status && version != FRT_MANIFEST_VERSION) {
        return frt_fail(r->err, FRT_E_VERSION,
                        "the artifact has format version %lld, this runtime reads version %d",
                        (long long)version, FRT_MANIFEST_VERSION);
    }
    return status;
}

static frt_status read_checksum(Reader *reader) {
    TextReader *r = &reader->text;
    Slice digits = r->fields[1];
    uint32_t value = 0;
    for (size_t i = 0; i < digits.n; i++) {
        char c = digits.bytes[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                                                : 16;
        if (digit > 15 || digits.n != FRT_CHECKSUM_DIGITS) {
            return text_fail(r, "the checksum is not 8 lower-case hex digits");
        }
        value = value << 4 | digit;
    }
    r->m->checksum = value;
    r->m->checksum_at = (size_t)(digits.bytes - r->text);
    return FRT_OK;
}

static frt_status set_once(TextReader *r, const char **slot, const char *value) {
    if (*slot) {
        return text_fail(r, "a second `%.*s` line", (int)r->fields[0].n, r->fields[0].bytes);
    }
    *slot = value;
    return FRT_OK;
}

static frt_status read_compiler(Reader *reader) {
    TextReader *r = &reader->text;
    return set_once(r, &r->m->compiler, text_word(r, r->fields[1]));
}

static frt_status read_target(Reader *reader) {
    return text_target(&reader->text);
}

static frt_status read_level(Reader *reader) {
    return text_level(&reader->text);
}

static frt_status read_numerics(Reader *reader) {
    TextReader *r = &reader->text;
    if (!slice_is(r->fields[1], FRT_NUMERICS_STRICT) &&
        !slice_is(r->fields[1], FRT_NUMERICS_FAST)) {
        return text_fail(r, "numerics are neither `strict` nor `fast`");
    }
    return set_once(r, &r->m->numerics, text_word(r, r->fields[1]));
}

static frt_status read_source(Reader *reader) {
    TextReader *r = &reader->text;
    const char *name;
    frt_status status = text_name(r, r->fields[1], "source", &name);
    return status ? status : set_once(r, &r->m->source, name);
}

static frt_status read_weights(Reader *reader) {
    TextReader *r = &reader->text;
    const char *name;
    frt_status status = text_name(r, r->fields[1], "weights file", &name);
    return status ? status : set_once(r, &r->m->weights, name);
}

static frt_status add_dim(Reader *reader, Dim dim) {
    TextReader *r = &reader->text;
    Manifest *m = r->m;
    dim.hash = name_hash(dim.name);
    if (text_find_dim(r, dim.name) >= 0) {
        return text_fail(r, "dim `%s` is declared twice", dim.name);
    }
    if (m->n_dims == FRT_MAX_DIMS) {
        return text_fail(r, "more than %d dims", FRT_MAX_DIMS);
    }
    if (GROW(r, m->dims, reader->dims_capacity, m->n_dims)) {
        return FRT_E_OUT_OF_MEMORY;
    }
    m->dim_names[m->n_dims] = dim.name;
    m->dims[m->n_dims++] = dim;
    return FRT_OK;
}

static frt_status read_dim(Reader *reader) {
    TextReader *r = &reader->text;
    Dim dim = {0};
    frt_status status = text_name(r, r->fields[1], "dim", &dim.name);
    if (!status) {
        status = text_int(r, r->fields[2], INT64_MAX, "lower bound", &dim.lo);
    }
    if (!status) {
        status = text_int(r, r->fields[3], INT64_MAX, "upper bound", &dim.hi);
    }
    if (!status) {
        status = text_int(r, r->fields[4], INT64_MAX, "multiple", &dim.multiple);
    }
    if (status) {
        return status;
    }
    if (dim.lo > dim.hi || dim.multiple < 1) {
        return text_fail(r, "dim `%s` has an empty range or the multiple 0", dim.name);
    }
    status = add_dim(reader, dim);
    r->m->n_given_dims = r->m->n_dims;
    return status;
}

static frt_status read_graph(Reader *reader) {
    TextReader *r = &reader->text;
    Manifest *m = r->m;
    Graph graph = {
        .first_tensor = m->n_tensors, .first_step = m->n_steps, .first_pitch = m->n_pitches};
    graph.first_repeat = m->n_repeats;
    frt_status status = text_name(r, r->fields[1], "graph", &graph.name);
    if (status) {
        return status;
    }
    if (m->n_graphs == FRT_MAX_GRAPHS) {
        return text_fail(r, "more than %d graphs", FRT_MAX_GRAPHS);
    }
    for (uint32_t i = 0; i < m->n_graphs; i++) {
        if (strcmp(m->graphs[i].name, graph.name) == 0) {
            return text_fail(r, "graph `%s` is declared twice", graph.name);
        }
    }
    if (GROW(r, m->graphs, reader->graphs_capacity, m->n_graphs)) {
        return FRT_E_OUT_OF_MEMORY;
    }
    m->graphs[m->n_graphs++] = graph;
    return FRT_OK;
}

static Graph *current_graph(Reader *reader) {
    Manifest *m = reader->text.m;
    return &m->graphs[m->n_graphs - 1];
}

static frt_status add_tensor(Reader *reader, const Tensor *tensor) {
    TextReader *r = &reader->text;
    Manifest *m = r->m;
    Graph *graph = current_graph(reader);
    if (graph_find_tensor(m, graph, tensor->name) >= 0) {
        return text_fail(r, "tensor `%s` is declared twice", tensor->name);
    }
    if (graph->n_tensors == FRT_MAX_TENSORS) {
        return text_fail(r, "graph `%s` has more than %d tensors", graph->name, FRT_MAX_TENSORS);
    }
    if (GROW(r, m->tensors, reader->tensors_capacity, m->n_tensors)) {
        return FRT_E_OUT_OF_MEMORY;
    }
    m->tensors[m->n_tensors++] = *tensor;
    graph->n_tensors++;
    return FRT_OK;
}

static frt_status read_bound_tensor(Reader *reader, frt_role role) {
    TextReader *r = &reader->text;
    Tensor tensor = {.role = role};
    frt_status status = text_tensor_head(r, &tensor);
    if (!status) {
        status = text_extents(r, &tensor, 4, r->n_fields);
    }
    return status ? status : add_tensor(reader, &tensor);
}

static frt_status read_input(Reader *reader) {
    return read_bound_tensor(reader, FRT_INPUT);
}

static frt_status read_output(Reader *reader) {
    return read_bound_tensor(reader, FRT_OUTPUT);
}

static frt_status read_param(Reader *reader) {
    TextReader *r = &reader->text;
    Tensor tensor = {.role = FRT_PARAM};
    uint32_t end = r->n_fields;
    frt_status status = text_tensor_head(r, &tensor);
    if (!status && end >= 6 && slice_is(r->fields[end - 2], "=")) {
        end -= 2;
        status = text_name(r, r->fields[end + 1], "weights key", &tensor.key);
    }
    if (!status) {
        status = text_extents(r, &tensor, 4, end);
    }
    return status ? status : add_tensor(reader, &tensor);
}

static frt_status read_temp(Reader *reader) {
    TextReader *r = &reader->text;
    Tensor tensor = {.role = FRT_TEMP, .stands_for = -1};
    uint32_t end = r->n_fields;
    frt_status status = text_tensor_head(r, &tensor);
    if (!status && end >= 7 && slice_is(r->fields[end - 2], "=")) {
        end -= 2;
        status =
            text_tensor(r, current_graph(reader), r->fields[end + 1], "source", &tensor.stands_for);
    }
    if (!status && slice_is(r->fields[4], FRT_NONE)) {
        tensor.is_persistent = true;
    } else if (!status) {
        status = text_place(r, current_graph(reader), &tensor);
    }
    if (!status) {
        status = text_extents(r, &tensor, 5, end);
    }
    if (!status && tensor.is_persistent && tensor.stands_for >= 0) {
        return text_fail(r, "a temp that the program keeps is `%s` itself", tensor.name);
    }
    return status ? status : add_tensor(reader, &tensor);
}

/* Adds a dim of a pitch, which no caller gives. */
static frt_status add_pitch_dim(Reader *reader, Slice s, uint32_t *index) {
    Dim dim = {.hi = INT64_MAX, .multiple = 1};
    frt_status status = text_name(&reader->text, s, "dim", &dim.name);
    *index = reader->text.m->n_dims;
    return status ? status : add_dim(reader, dim);
}

static frt_status read_pitch(Reader *reader) {
    TextReader *r = &reader->text;
    Manifest *m = r->m;
    Pitch pitch = {0};
    frt_status status =
        text_tensor(r, current_graph(reader), r->fields[3], "source", &pitch.source);
    if (!status) {
        status = text_expr(r, r->fields[4], "extent", &pitch.extent);
    }
    if (!status) {
        status = text_int(r, r->fields[5], INT32_MAX, "multiple", &pitch.multiple);
    }
    if (!status && pitch.multiple < 1) {
        return text_fail(r, "a pitch is to be a multiple of 0");
    }
    for (uint32_t i = 6; !status && i < r->n_fields; i++) {
        status = text_predicate(r, r->fields[i], 1, &pitch.unless[pitch.n_unless++]);
    }
    if (!status) {
        status = add_pitch_dim(reader, r->fields[1], &pitch.pitch);
    }
    if (!status) {
        status = add_pitch_dim(reader, r->fields[2], &pitch.width);
    }
    if (!status && GROW(r, m->pitches, reader->pitches_capacity, m->n_pitches)) {
        return FRT_E_OUT_OF_MEMORY;
    }
    if (!status) {
        m->pitches[m->n_pitches++] = pitch;
        current_graph(reader)->n_pitches++;
    }
    return status;
}

static frt_status read_in_place(Reader *reader) {
    return text_in_place(&reader->text, current_graph(reader));
}

static frt_status read_workspace(Reader *reader) {
    TextReader *r = &reader->text;
    Graph *graph = current_graph(reader);
    if (graph->has_workspace) {
        return text_fail(r, "a second `workspace` line");
    }
    graph->has_workspace = true;
    return text_expr(r, r->fields[1], "workspace", &graph->workspace);
}

static frt_status read_phase(TextReader *r, frt_phase *phase) {
    if (slice_is(r->fields[1], FRT_PHASE_INIT_NAME)) {
        *phase = FRT_PHASE_INIT;
    } else if (slice_is(r->fields[1], FRT_PHASE_RUN_NAME)) {
        *phase = FRT_PHASE_RUN;
    } else {
        return text_fail(r, "the phase is neither `init` nor `run`");
    }
    return FRT_OK;
}

static frt_status add_ref(Reader *reader, uint32_t ref) {
    TextReader *r = &reader->text;
    Manifest *m = r->m;
    if (m->n_refs == FRT_MAX_REFS) {
        return text_fail(r, "more than %d launch arguments", FRT_MAX_REFS);
    }
    if (GROW(r, m->refs, reader->refs_capacity, m->n_refs)) {
        return FRT_E_OUT_OF_MEMORY;
    }
    m->refs[m->n_refs++] = ref;
    return FRT_OK;
}

/* Reads one tensor argument of a step. Init steps run once per program, before anything is bound,
 * so they may use params and persistent temps only. */
static frt_status add_arg(Reader *reader, Slice s, Step *step) {
    TextReader *r = &reader->text;
    int32_t index;
    frt_status status = text_tensor(&reader->text, current_graph(reader), s, "argument", &index);
    if (status) {
        return status;
    }
    const Tensor *tensors = &r->m->tensors[current_graph(reader)->first_tensor];
    const Tensor *tensor = &tensors[index];
    const Tensor *whole = tensor->whole ? &tensors[tensor->whole - 1] : tensor;
    if (step->phase == FRT_PHASE_INIT && whole->role != FRT_PARAM && !whole->is_persistent) {
        return text_fail(r, "init step uses `%s`, neither param nor persistent temp", tensor->name);
    }
    if (step->n_args == FRT_MAX_ARGS) {
        return text_fail(r, "more than %d arguments", FRT_MAX_ARGS);
    }
    step->n_args++;
    return add_ref(reader, (uint32_t)index);
}

static frt_status read_args(Reader *reader, Slice list, Step *step) {
    Slice piece;
    frt_status status = FRT_OK;
    bool has_any = !slice_is(list, FRT_NONE);
    step->first_arg = reader->text.m->n_refs;
    while (!status && has_any && slice_cut(&list, ',', &piece)) {
        status = add_arg(reader, piece, step);
    }
    return status;
}

static frt_status add_step_dim(Reader *reader, Slice s, Step *step) {
    TextReader *r = &reader->text;
    int32_t dim;
    frt_status status = text_dim(r, s, "launch", &dim);
    if (!status && (step->n_dims == FRT_MAX_DIMS || step->n_numbers > 0)) {
        return text_fail(r, "more than %d dims, or one after a constant", FRT_MAX_DIMS);
    }
    step->n_dims++;
    return status ? status : add_ref(reader, (uint32_t)dim);
}

static frt_status add_step_number(Reader *reader, Slice s, Step *step) {
    TextReader *r = &reader->text;
    Manifest *m = r->m;
    if (step->n_numbers == FRT_MAX_NUMBERS || m->n_numbers == FRT_MAX_REFS) {
        return text_fail(r, "more than %d constants", FRT_MAX_NUMBERS);
    }
    if (GROW(r, m->numbers, reader->numbers_capacity, m->n_numbers)) {
        return FRT_E_OUT_OF_MEMORY;
    }
    step->n_numbers++;
    return text_bits(r, s, "constant", &m->numbers[m->n_numbers++]);
}

/* Reads dims, then constants. A name does not begin with a digit. */
static frt_status read_numbers(Reader *reader, Slice list, Step *step) {
    Slice piece;
    frt_status status = FRT_OK;
    bool has_any = !slice_is(list, FRT_NONE);
    step->first_dim = reader->text.m->n_refs;
    step->first_number = reader->text.m->n_numbers;
    while (!status && has_any && slice_cut(&list, ',', &piece)) {
        bool is_number = piece.n > 0 && piece.bytes[0] == '0';
        status =
            is_number ? add_step_number(reader, piece, step) : add_step_dim(reader, piece, step);
    }
    return status;
}

static frt_status add_step(Reader *reader, const Step *step) {
    TextReader *r = &reader->text;
    Manifest *m = r->m;
    if (reader->repeat.n_open && step->phase != FRT_PHASE_RUN) {
        return text_fail(r, "a step of phase " FRT_PHASE_INIT_NAME " is repeated");
    }
    if (GROW(r, m->steps, reader->steps_capacity, m->n_steps)) {
        return FRT_E_OUT_OF_MEMORY;
    }
    m->steps[m->n_steps++] = *step;
    current_graph(reader)->n_steps++;
    return FRT_OK;
}

static frt_status read_launch(Reader *reader) {
    TextReader *r = &reader->text;
    Step step = {.kind = FRT_STEP_LAUNCH, .first_variant = r->m->n_variants};
    int64_t line;
    frt_status status = read_phase(r, &step.phase);
    if (!status) {
        status = text_int(r, r->fields[2], INT32_MAX, "source line", &line);
    }
    if (!status) {
        step.line = (int32_t)line;
        status = text_name(r, r->fields[3], "label", &step.label);
    }
    if (!status) {
        status = read_args(reader, r->fields[4], &step);
    }
    if (!status) {
        status = read_numbers(reader, r->fields[5], &step);
    }
    if (!status) {
        status = add_step(reader, &step);
    }
    reader->awaits_variant = true;
    reader->is_group = false;
    reader->is_certain = false;
    return status;
}

static frt_status read_copy(Reader *reader) {
    TextReader *r = &reader->text;
    Step step = {.kind = FRT_STEP_COPY,
                 .label = FRT_D_COPY,
                 .first_arg = r->m->n_refs,
                 .first_variant = r->m->n_variants};
    frt_status status = read_phase(r, &step.phase);
    if (!status) {
        status = add_arg(reader, r->fields[2], &step);
    }
    if (!status) {
        status = add_arg(reader, r->fields[3], &step);
    }
    if (!status) {
        status = text_expr(r, r->fields[4], "bytes", &step.n_bytes);
    }
    return status ? status : add_step(reader, &step);
}

static frt_status read_repeat(Reader *reader) {
    return text_repeat(&reader->text, current_graph(reader), &reader->repeat);
}

/* Begins a group of variants with prices. */
static frt_status read_measures(Reader *reader) {
    TextReader *r = &reader->text;
    if (!reader->awaits_variant) {
        return text_fail(r, "measures must follow a launch or one of its variants");
    }
    reader->is_group = true;
    reader->group = (Price){.group = reader->group.group + 1};
    return text_measures(r, &reader->group);
}

/* Reads the fields after the predicate; a price is the last. */
static frt_status read_options(Reader *reader, Variant *variant) {
    TextReader *r = &reader->text;
    uint32_t next = 6;
    frt_status status =
        target_info(r->m->target)->has_launches ? text_launch_options(r, variant, &next) : FRT_OK;
    if (!status && next < r->n_fields && (!reader->is_group || next + 1 < r->n_fields)) {
        return text_fail(r, "a variant has fields too many, or no measures open its group");
    }
    reader->is_group = next < r->n_fields;
    variant->price = reader->is_group ? reader->group : (Price){.group = 0};
    return status || !reader->is_group ? status : text_price(r, r->fields[next], &variant->price);
}

static frt_status read_variant(Reader *reader) {
    TextReader *r = &reader->text;
    Manifest *m = r->m;
    if (!reader->awaits_variant) {
        return text_fail(r, "a variant must follow its launch");
    }
    Step *step = &m->steps[m->n_steps - 1];
    if (reader->is_certain || step->n_variants == FRT_MAX_VARIANTS) {
        return text_fail(r, "a variant after one that always applies, or more than %d",
                         FRT_MAX_VARIANTS);
    }
    Variant variant = {.first_map = m->n_maps};
    int64_t block = 0;
    frt_status status = text_name(r, r->fields[1], "kernel", &variant.symbol);
    if (!status) {
        status = text_expr(r, r->fields[2], "grid", &variant.grid);
    }
    if (!status) {
        status = text_int(r, r->fields[3], target_info(m->target)->most_block, "block", &block);
    }
    if (!status && block < 1) {
        return text_fail(r, "a block of 0");
    }
    if (!status) {
        variant.block = (int32_t)block;
        status = text_expr(r, r->fields[4], "shared memory", &variant.shared);
    }
    if (!status) {
        status = text_predicate(r, r->fields[5], step->n_args, &variant.when);
    }
    if (!status) {
        status = read_options(reader, &variant);
    }
    if (!status && GROW(r, m->variants, reader->variants_capacity, m->n_variants)) {
        return FRT_E_OUT_OF_MEMORY;
    }
    if (!status) {
        m->variants[m->n_variants++] = variant;
        step->n_variants++;
        reader->is_certain = variant.when.n_terms == 0;
    }
    return status;
}

/* A map belongs to the variant before it. The variant then applies only where the map can be
 * made. */
static frt_status read_map(Reader *reader) {
    TextReader *r = &reader->text;
    Manifest *m = r->m;
    Step *step = m->n_steps ? &m->steps[m->n_steps - 1] : NULL;
    if (!reader->awaits_variant || step->n_variants == 0) {
        return text_fail(r, "a map must follow its variant");
    }
    Variant *variant = &m->variants[m->n_variants - 1];
    Map map;
    if (variant->n_maps == FRT_MAX_MAPS) {
        return text_fail(r, "more than %d maps of one variant", FRT_MAX_MAPS);
    }
    frt_status status = text_map(r, (int64_t)step->n_args - 1, &map);
    if (!status) {
        uint32_t tensor = current_graph(reader)->first_tensor + m->refs[step->first_arg + map.arg];
        status = text_check_map(r, &map, m->tensors[tensor].dtype);
    }
    if (!status && GROW(r, m->maps, reader->maps_capacity, m->n_maps)) {
        return FRT_E_OUT_OF_MEMORY;
    }
    if (!status) {
        m->maps[m->n_maps++] = map;
        variant->n_maps++;
        reader->is_certain = false;
    }
    return status;
}

static frt_status read_end(Reader *reader) {
    TextReader *r = &reader->text;
    const Manifest *m = r->m;
    if (!m->arch || !m->compiler || !m->numerics || !m->source || m->n_graphs == 0) {
        return text_fail(r, "the manifest lacks a target, compiler, numerics, source or graph");
    }
    return FRT_OK;
}

static const struct {
    const char *word;
    uint32_t min_fields, max_fields; /* including the directive */
    Stage from, to;                  /* allowed in [from, to] */
    Stage next;
    frt_status (*read)(Reader *reader);
} directives[] = {
    {FRT_D_ARTIFACT, 2, 2, STAGE_START, STAGE_START, STAGE_VERSION, read_version},
    {FRT_D_CHECKSUM, 2, 2, STAGE_VERSION, STAGE_VERSION, STAGE_CHECKSUM, read_checksum},
    {FRT_D_COMPILER, 2, 2, STAGE_CHECKSUM, STAGE_HEAD, STAGE_HEAD, read_compiler},
    {FRT_D_TARGET, 3, 4, STAGE_CHECKSUM, STAGE_HEAD, STAGE_HEAD, read_target},
    {FRT_D_LEVEL, 3, 4, STAGE_CHECKSUM, STAGE_HEAD, STAGE_HEAD, read_level},
    {FRT_D_NUMERICS, 2, 2, STAGE_CHECKSUM, STAGE_HEAD, STAGE_HEAD, read_numerics},
    {FRT_D_SOURCE, 2, 2, STAGE_CHECKSUM, STAGE_HEAD, STAGE_HEAD, read_source},
    {FRT_D_DIM, 5, 5, STAGE_CHECKSUM, STAGE_HEAD, STAGE_HEAD, read_dim},
    {FRT_D_WEIGHTS, 2, 2, STAGE_CHECKSUM, STAGE_HEAD, STAGE_HEAD, read_weights},
    {FRT_D_GRAPH, 2, 2, STAGE_HEAD, STAGE_GRAPH, STAGE_GRAPH, read_graph},
    {FRT_D_INPUT, 4, 4 + FRT_MAX_RANK, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_input},
    {FRT_D_PARAM, 4, 6 + FRT_MAX_RANK, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_param},
    {FRT_D_OUTPUT, 4, 4 + FRT_MAX_RANK, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_output},
    {FRT_D_TEMP, 5, 7 + FRT_MAX_RANK, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_temp},
    {FRT_D_PITCH, 6, 6 + FRT_MAX_UNLESS, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_pitch},
    {FRT_D_IN_PLACE, 3, 3, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_in_place},
    {FRT_D_WORKSPACE, 2, 2, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_workspace},
    {FRT_D_LAUNCH, 6, 6, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_launch},
    {FRT_D_MEASURES, 1, 1 + FRT_MAX_MEASURES, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_measures},
    {FRT_D_VARIANT, 6, 9, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_variant},
    {FRT_D_MAP, 5, 4 + FRT_MAX_MAP_RANK, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_map},
    {FRT_D_COPY, 5, 5, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_copy},
    {FRT_D_REPEAT, 2, 2, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_repeat},
    {FRT_D_ODD, 1, 1, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_repeat},
    {FRT_D_END_REPEAT, 1, 1, STAGE_GRAPH, STAGE_GRAPH, STAGE_GRAPH, read_repeat},
    {FRT_D_END, 1, 1, STAGE_GRAPH, STAGE_GRAPH, STAGE_END, read_end},
};

/* Extension lines, which a reader may ignore; one is kept for inspection. A malformed one is
 * ignored too. */
static void read_extension(Reader *reader) {
    TextReader *r = &reader->text;
    Manifest *m = r->m;
    if (r->n_fields == 2 && slice_is(r->fields[0], FRT_X_REWRITES)) {
        m->rewrites = text_word(r, r->fields[1]);
    }
}

static bool is_extension(Slice word) {
    size_t n = strlen(FRT_EXTENSION_PREFIX);
    return word.n > n && memcmp(word.bytes, FRT_EXTENSION_PREFIX, n) == 0;
}

/* Whether the last variant of the last launch has no predicate. */
static bool ends_without_predicate(const Manifest *m) {
    return m->steps[m->n_steps - 1].n_variants && m->variants[m->n_variants - 1].when.n_terms == 0;
}

static frt_status read_directive(Reader *reader) {
    TextReader *r = &reader->text;
    Slice word = r->fields[0];
    if (reader->stage >= STAGE_CHECKSUM && is_extension(word)) {
        read_extension(reader);
        return FRT_OK;
    }
    if (reader->repeat.n_open && (slice_is(word, FRT_D_GRAPH) || slice_is(word, FRT_D_END))) {
        return text_fail(r, "a `repeat` has no end");
    }
    bool is_launchs = slice_is(word, FRT_D_VARIANT) || slice_is(word, FRT_D_MAP) ||
                      slice_is(word, FRT_D_MEASURES);
    if (reader->awaits_variant && !is_launchs) {
        if (!ends_without_predicate(r->m)) {
            return text_fail(r, "the launch before this line has no variant that always applies");
        }
        reader->awaits_variant = false;
    }
    for (size_t i = 0; i < sizeof directives / sizeof directives[0]; i++) {
        if (!slice_is(word, directives[i].word)) {
            continue;
        }
        if (reader->stage < directives[i].from || reader->stage > directives[i].to) {
            return text_fail(r, "`%s` is out of place", directives[i].word);
        }
        if (r->n_fields < directives[i].min_fields || r->n_fields > directives[i].max_fields) {
            return text_fail(r, "`%s` has %u fields", directives[i].word, r->n_fields - 1);
        }
        reader->stage = directives[i].next;
        return directives[i].read(reader);
    }
    return text_fail(r, "directive `%.*s` is not known", (int)(word.n < 40 ? word.n : 40),
                     word.bytes);
}

frt_status manifest_read(const char *text, size_t n_bytes, Manifest *manifest, frt_error *err) {
    *manifest = (Manifest){0};
    size_t n_max = n_bytes < FRT_MAX_TEXT_BYTES ? n_bytes : FRT_MAX_TEXT_BYTES;
    /* A name is no longer than its field and the separator after it. */
    size_t n_strings = n_max + FRT_MAX_LINE_BYTES + 1;
    manifest->strings = mem_alloc(n_strings, 1);
    if (!manifest->strings) {
        return frt_fail_memory(err, n_strings);
    }
    Reader reader = {.text = {.m = manifest,
                              .text = text,
                              .n_bytes = n_bytes,
                              .strings_end = manifest->strings,
                              .err = err}};
    while (reader.stage != STAGE_END) {
        frt_status status = text_next_line(&reader.text);
        if (!status) {
            status = read_directive(&reader);
        }
        if (status) {
            return status;
        }
    }
    manifest->n_text = reader.text.at;
    return FRT_OK;
}
