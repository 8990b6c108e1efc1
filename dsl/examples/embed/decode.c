/* Decodes tokens one by one, on the CPU, with a cache of keys and values that each step updates in
 * place: one array is bound to the step's input and to its output. At the end the whole model reads
 * all tokens at once, and must say the same of the next one.
 *
 *   fusec dsl/examples/llama_decode.g -o step.o
 *   fusec dsl/examples/llama.g -o whole.o
 *   decode step.o whole.o
 *
 * There is no weights file: the program makes weights up, the same ones for both. */
#include <fusert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_TOKENS = 24, N_PLACES = 32, N_LAYERS = 32, N_HEADS = 2, N_CHANNELS = 16, N_WORDS = 256 };

typedef uint16_t bf16; /* the upper half of a float */
typedef bf16 Cache[N_LAYERS][1][N_HEADS][N_PLACES][N_CHANNELS];

typedef struct Model {
    frt_module *module;
    frt_program *program;
    frt_exec *exec;
} Model;

static bf16 narrow(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bf16)(bits >> 16);
}

static float widen(bf16 value) {
    uint32_t bits = (uint32_t)value << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* Weights that depend on the param's name alone: ones for a norm, and for a matrix [outputs,
 * inputs] numbers below 1 / sqrt(inputs). */
static void make_up(const char *name, bf16 *to, int64_t n, int32_t rank, int64_t n_inputs) {
    uint32_t state = 1;
    for (; *name; name++) state = (state ^ (uint8_t)*name) * 16777619u;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        float unit = (float)(state >> 8) / 8388608.0F - 1; /* from -1 to 1 */
        to[i] = narrow(rank == 1 ? 1 : 2 * unit / sqrtf((float)n_inputs));
    }
}

static frt_status set_param(const Model *model, int32_t index, frt_error *err) {
    const int64_t dims[] = {1, N_PLACES}; /* extents of params depend on none */
    int64_t shape[FRT_MAX_RANK], n = 1;
    FRT_INFO(frt_tensor_info, tensor);
    frt_status status = frt_module_get_tensor(model->module, 0, index, &tensor);
    if (status || tensor.role != FRT_PARAM) return status;
    status = frt_module_eval_shape(model->module, 0, index, dims, shape, err);
    for (int32_t k = 0; k < tensor.rank && !status; k++) n *= shape[k];
    bf16 *data = malloc((size_t)n * sizeof *data);
    if (!data) return FRT_E_OUT_OF_MEMORY;
    if (!status) make_up(tensor.name, data, n, tensor.rank, shape[tensor.rank - 1]);
    if (!status)
        status = frt_program_set_param(model->program, tensor.name, data, (size_t)n * sizeof *data,
                                       err);
    free(data);
    return status;
}

static frt_status model_open(Model *model, const char *path, frt_error *err) {
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    FRT_INFO(frt_graph_info, graph);
    options.no_weights = true;
    frt_status status = frt_module_load_file(path, &model->module, err);
    if (!status) status = frt_program_create(model->module, NULL, &options, &model->program, err);
    if (!status) status = frt_module_get_graph(model->module, 0, &graph);
    for (int32_t i = 0; i < graph.n_inputs + graph.n_params + graph.n_outputs && !status; i++)
        status = set_param(model, i, err);
    if (!status) status = frt_exec_create(model->program, &model->exec, err);
    return status;
}

static void model_close(Model *model) {
    frt_exec_free(model->exec);
    frt_program_free(model->program);
    frt_module_free(model->module);
}

static int32_t most_likely(const bf16 *logits) {
    int32_t best = 0;
    for (int32_t i = 1; i < N_WORDS; i++)
        if (widen(logits[i]) > widen(logits[best])) best = i;
    return best;
}

/* Decodes from the first token on; the logits of the last step stay. */
static frt_status decode(const Model *step, int32_t *tokens, bf16 *logits, frt_error *err) {
    static Cache keys, values;
    int32_t at = 0, token = tokens[0];
    frt_tensor t_token = {&token, FRT_I32, 1, {1}}, t_at = {&at, FRT_I32, 0, {0}};
    frt_tensor t_keys = {keys, FRT_BF16, 5, {N_LAYERS, 1, N_HEADS, N_PLACES, N_CHANNELS}};
    frt_tensor t_values = t_keys, t_logits = {logits, FRT_BF16, 2, {1, N_WORDS}};
    t_values.data = values;
    frt_status status = frt_bind(step->exec, "tokens", &t_token, err);
    if (!status) status = frt_bind(step->exec, "at", &t_at, err);
    if (!status) status = frt_bind(step->exec, "keys", &t_keys, err);
    if (!status) status = frt_bind(step->exec, "new_keys", &t_keys, err);
    if (!status) status = frt_bind(step->exec, "values", &t_values, err);
    if (!status) status = frt_bind(step->exec, "new_values", &t_values, err);
    if (!status) status = frt_bind(step->exec, "logits", &t_logits, err);
    for (; at < N_TOKENS && !status; at++) {
        tokens[at] = token;
        status = frt_run(step->exec, NULL, err);
        token = most_likely(logits);
    }
    return status;
}

static frt_status read_whole(const Model *whole, int32_t *tokens, bf16 *logits, frt_error *err) {
    frt_tensor t_tokens = {tokens, FRT_I32, 2, {1, N_TOKENS}};
    frt_tensor t_logits = {logits, FRT_BF16, 2, {1, N_WORDS}};
    frt_status status = frt_bind(whole->exec, "tokens", &t_tokens, err);
    if (!status) status = frt_bind(whole->exec, "logits", &t_logits, err);
    return status ? status : frt_run(whole->exec, NULL, err);
}

/* The largest difference of two logits, relative to the largest logit: both are sums in bf16, added
 * up in other orders. */
static float difference(const bf16 *a, const bf16 *b) {
    float most = 0, largest = 0;
    for (int i = 0; i < N_WORDS; i++) {
        most = fmaxf(most, fabsf(widen(a[i]) - widen(b[i])));
        largest = fmaxf(largest, fabsf(widen(b[i])));
    }
    return most / largest;
}

int main(int argc, char **argv) {
    static bf16 by_steps[N_WORDS], at_once[N_WORDS];
    int32_t tokens[N_TOKENS] = {1};
    Model step = {NULL, NULL, NULL}, whole = {NULL, NULL, NULL};
    frt_error err = FRT_ERROR_INIT;
    if (argc != 3) return fprintf(stderr, "usage: decode step.o whole.o\n"), 2;
    frt_status status = model_open(&step, argv[1], &err);
    if (!status) status = model_open(&whole, argv[2], &err);
    if (!status) status = decode(&step, tokens, by_steps, &err);
    if (!status) status = read_whole(&whole, tokens, at_once, &err);
    model_close(&step);
    model_close(&whole);
    if (status) return fprintf(stderr, "decode: %s\n", err.message), 1;
    for (int i = 0; i < N_TOKENS; i++) printf("%d ", tokens[i]);
    float apart = difference(by_steps, at_once);
    printf("\n%d tokens; step by step and at once the logits are %.1f %% apart\n", N_TOKENS,
           100 * (double)apart);
    return apart > 0.05F;
}
