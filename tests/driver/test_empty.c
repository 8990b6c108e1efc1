/* Tensors without elements: whatever is empty, every target has an artifact, and the runtime's
 * reader takes it. Results of such programs are compared by the soak. */
#include <criterion/criterion.h>
#include <fusec.h>
#include <fusert.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SOURCE = 1024 };

static void check(const char *source) {
    for (size_t i = 0; fusec_target_name(i); i++) {
        fusec_options options = FUSEC_OPTIONS_INIT;
        options.target = fusec_target_name(i);
        options.kind = strncmp(options.target, "sm_", 3) == 0 ? FUSEC_PTX : FUSEC_OBJECT;
        for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
            fusec_result *result = NULL;
            options.no_fuse = no_fuse;
            cr_assert(fusec_compile(source, strlen(source), &options, &result) == FUSEC_OK,
                      "%s:\n%s\n%s", options.target, source, fusec_result_messages(result));
            size_t n_bytes = 0;
            const char *bytes = fusec_result_bytes(result, &n_bytes);
            frt_error error = FRT_ERROR_INIT;
            frt_module *module = NULL;
            cr_expect(frt_module_load_memory(bytes, n_bytes, &module, &error) == FRT_OK,
                      "%s:\n%s\n%s", options.target, source, error.message);
            frt_module_free(module);
            fusec_result_free(result);
        }
    }
}

/* A slice of a reduction that has no elements, beside another reader of the reduction's input. */
Test(empty, slices_of_reductions) {
    static const struct {
        const char *axes;
        int extents[3]; /* of x: f32[16, 3, 8], folded along `axes` */
    } folds[] = {
        {"[0, -2]", {1, 1, 8}}, {"2", {16, 3, 1}}, {"[1, 2]", {16, 1, 1}}, {"0", {1, 3, 8}}};
    static const struct {
        const char *range;
        int extent;
    } ranges[] = {{"0:0", 0}, {"0:0:2", 0}, {"1:1:4", 0}, {"0:1", 1}};
    enum { N_FOLDS = sizeof folds / sizeof *folds, N_RANGES = sizeof ranges / sizeof *ranges };
    for (int f = 0; f < N_FOLDS; f++)
        for (int code = 0; code < N_RANGES * N_RANGES * N_RANGES; code++) {
            int a = code % N_RANGES, b = code / N_RANGES % N_RANGES, c = code / N_RANGES / N_RANGES;
            if ((code + f) % 4) continue; /* a quarter of them: each range at each axis */
            char source[MAX_SOURCE];
            snprintf(source, sizeof source,
                     "graph g(x: f32[16, 3, 8]) -> (y: f32[16, 3, 8], z: f32[%d, %d, %d]) {\n"
                     "  m = max(x, axis=%s, keep=true)\n"
                     "  y = x - mean(x, axis=1, keep=true)\n"
                     "  z = m[%s, %s, %s]\n}\n",
                     ranges[a].extent, ranges[b].extent, ranges[c].extent, folds[f].axes,
                     ranges[a].range, ranges[b].range, ranges[c].range);
            check(source);
        }
}

/* Products of which some extent is 0, by tensor cores where there are any. */
Test(empty, matmuls) {
    static const char *const shapes[][3] = {{"0, 4096, 4096", "4096, 4096", "0, 4096, 4096"},
                                            {"0, 4096", "4096, 4096", "0, 4096"},
                                            {"4096, 0", "0, 4096", "4096, 4096"},
                                            {"4096, 4096", "4096, 0", "4096, 0"},
                                            {"0, 3, 512, 512", "512, 512", "0, 3, 512, 512"},
                                            {"3, 0, 512, 512", "512, 512", "3, 0, 512, 512"},
                                            {"3, 0, 512, 512", "3, 0, 512, 512", "3, 0, 512, 512"}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char source[MAX_SOURCE];
        snprintf(source, sizeof source,
                 "graph g(x: bf16[%s], w: bf16[%s]) -> (y: bf16[%s]) {\n  y = relu(x @ w)\n}\n",
                 shapes[i][0], shapes[i][1], shapes[i][2]);
        check(source);
    }
}
