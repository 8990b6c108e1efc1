/* Pitches, over the fake driver: matrices that are copied where rows lie badly, and read in place
 * where they do not, which is found out whenever something is bound. */
#include "../fake/rt_rig.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* y = 2 * x by way of t, the copy of x; u takes what lies behind t. Rows of 4 floats are whole; up
 * to 6 elements are not worth a copy. */
static const char pitched[] = "//@ fusec-artifact 1\n"
                              "//@ checksum 00000000\n"
                              "//@ compiler 0.1.0\n"
                              "//@ target cuda sm_90a\n"
                              "//@ numerics strict\n"
                              "//@ source m.g\n"
                              "//@ dim M 0 64 1\n"
                              "//@ dim K 0 64 1\n"
                              "//@ graph g\n"
                              "//@ input x 0 f32 M K\n"
                              "//@ output y 0 f32 M K\n"
                              "//@ pitch x.pitch x.width x K 8 a0:16&m:K:4 l:M,K,*:6\n"
                              "//@ temp t 0 f32 0 M x.width = x\n"
                              "//@ temp u 0 f32 M,x.width,*,4,* 4\n"
                              "//@ workspace M,x.width,*,4,*,16,+\n"
                              "//@ launch run 1 copy x,t M,K,x.width\n"
                              "//@ variant k_copy M,x.width,* 32 0 -\n"
                              "//@ launch run 2 twice t,u,y M,K,x.pitch\n"
                              "//@ variant k_mapped 1 32 0 -\n"
                              "//@ map 0 0 0 K:1:4 M:x.pitch:1\n"
                              "//@ variant k_twice 1 64 0 -\n"
                              "//@ end\n";

static int64_t last_pitch;

static void k_copy(void **params, unsigned grid, unsigned block) {
    const float *x = *(float **)params[0];
    float *t = *(float **)params[1];
    int64_t m = *(int64_t *)params[2], k = *(int64_t *)params[3], width = *(int64_t *)params[4];
    (void)block;
    cr_expect_eq((int64_t)grid, m * width);
    for (int64_t i = 0; i < m * width; i++)
        t[i] = i % width < k ? x[i / width * k + i % width] : 0.0f;
}

static void k_twice(void **params, unsigned grid, unsigned block) {
    const float *t = *(float **)params[0];
    float *u = *(float **)params[1], *y = *(float **)params[2];
    int64_t m = *(int64_t *)params[3], k = *(int64_t *)params[4];
    (void)grid;
    (void)block;
    last_pitch = *(int64_t *)params[5];
    memset(u, 0xff, 16);
    for (int64_t i = 0; i < m * k; i++) y[i] = t[i / k * last_pitch + i % k] * 2.0f;
}

static void k_mapped(void **params, unsigned grid, unsigned block) {
    const FakeMap *map = params[6];
    cr_expect_eq(map->data, *(void **)params[0]);
    cr_expect_eq((int64_t)map->stride_bytes[1], *(int64_t *)params[5] * 4);
    k_twice(params, grid, block);
}

static void open_rig(RtRig *rig) {
    frt_program_options options = rt_options();
    fake_cuda_reset();
    fake_cuda_add_valued_kernel("k_copy", k_copy, 5, true);
    fake_cuda_add_valued_kernel("k_mapped", k_mapped, 6, true);
    fake_cuda_add_valued_kernel("k_twice", k_twice, 6, true);
    cr_assert_eq(rt_open_program(rig, pitched, &options), FRT_OK, "%s", rig->err.message);
    cr_assert_eq(frt_exec_create(rig->program, &rig->exec, &rig->err), FRT_OK);
}

/* A place for x, `shift` floats from an aligned one, and what is to become of it. */
typedef struct Case {
    const char *what;
    int64_t m, k;
    int shift;
    bool is_copied;
    int variant; /* of the second launch */
    int64_t pitch;
    size_t n_workspace;
} Case;

static const Case cases[] = {
    {"odd rows", 3, 5, 0, true, 0, 8, 3 * 8 * 4 + 16},
    {"whole rows", 3, 8, 0, false, 0, 8, 16},
    {"whole rows that are no multiple of the copy's", 3, 4, 0, false, 0, 4, 16},
    {"whole rows at an odd address", 3, 8, 1, true, 0, 8, 3 * 8 * 4 + 16},
    {"little, odd", 2, 3, 0, false, 1, 3, 16},
    {"odd rows at an odd address", 5, 7, 3, true, 0, 8, 5 * 8 * 4 + 16},
    {"whole rows again", 4, 4, 0, false, 0, 4, 16},
    {"no rows", 0, 5, 0, false, 1, 5, 16},
};

static void bind_case(RtRig *rig, const Case *c) {
    float *at = rt_x_storage + c->shift;
    frt_tensor x = {.data = at, .dtype = FRT_F32, .rank = 2, .dims = {c->m, c->k}}, y = x;
    y.data = rt_y_storage;
    for (int64_t i = 0; i < c->m * c->k; i++) at[i] = (float)i + 0.5f;
    cr_assert_eq(frt_bind(rig->exec, "x", &x, &rig->err), FRT_OK, "%s", rig->err.message);
    cr_assert_eq(frt_bind(rig->exec, "y", &y, &rig->err), FRT_OK, "%s", rig->err.message);
}

static void expect_run(RtRig *rig, const Case *c, const char *how) {
    memset(rt_y_storage, 0, sizeof rt_y_storage);
    fake_cuda.n_launches = 0;
    last_pitch = -1;
    cr_assert_eq(frt_run(rig->exec, NULL, &rig->err), FRT_OK, "%s: %s", c->what, rig->err.message);
    for (int64_t i = 0; i < c->m * c->k; i++)
        cr_assert_eq(rt_y_storage[i], ((float)i + 0.5f) * 2.0f, "%s, %s: y[%ld]", c->what, how,
                     (long)i);
    cr_expect_eq(last_pitch, c->pitch, "%s, %s: a pitch of %ld", c->what, how, (long)last_pitch);
    cr_expect_eq(frt_exec_variant(rig->exec, 1), c->variant, "%s, %s", c->what, how);
}

/* One exec goes through all of them, so that each follows another kind. */
Test(rt_pitch, rows_are_copied_where_they_lie_badly) {
    RtRig rig;
    open_rig(&rig);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i];
        size_t n_bytes = 0;
        bind_case(&rig, c);
        expect_run(&rig, c, "launched");
        cr_expect_eq(fake_cuda.n_launches, c->is_copied ? 2 : 1, "%s", c->what);
        cr_assert_eq(frt_exec_workspace_bytes(rig.exec, &n_bytes, &rig.err), FRT_OK);
        cr_expect_eq(n_bytes, c->n_workspace, "%s: %zu bytes", c->what, n_bytes);
    }
    rt_close_rig(&rig);
    rt_expect_nothing_held("after pitches");
}

/* A graph of a run with a copy has another shape than one without. */
Test(rt_pitch, a_kept_graph_follows_what_is_bound) {
    RtRig rig;
    open_rig(&rig);
    cr_assert_eq(frt_exec_keep_graph(rig.exec, true, &rig.err), FRT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bind_case(&rig, &cases[i]);
        for (int again = 0; again < 2; again++) expect_run(&rig, &cases[i], "as a graph");
    }
    rt_close_rig(&rig);
    rt_expect_nothing_held("after kept graphs");
}

/* Where x will lie is not known before it is bound: then there is room for the copy. */
Test(rt_pitch, a_callers_workspace_is_asked_for_in_advance) {
    static _Alignas(256) char workspace[256];
    RtRig rig;
    size_t n_bytes = 0;
    open_rig(&rig);
    cr_assert_eq(frt_set_dim(rig.exec, "M", 3, &rig.err), FRT_OK);
    cr_assert_eq(frt_set_dim(rig.exec, "K", 8, &rig.err), FRT_OK);
    cr_assert_eq(frt_exec_workspace_bytes(rig.exec, &n_bytes, &rig.err), FRT_OK);
    cr_expect_eq(n_bytes, 3 * 8 * 4 + 16);
    cr_assert_eq(frt_exec_set_workspace(rig.exec, workspace, 16, &rig.err), FRT_OK);
    bind_case(&rig, &cases[1]);
    expect_run(&rig, &cases[1], "in 16 bytes");
    bind_case(&rig, &cases[3]);
    cr_expect_eq(frt_run(rig.exec, NULL, &rig.err), FRT_E_WORKSPACE, "an odd address");
    cr_assert_eq(frt_exec_set_workspace(rig.exec, workspace, n_bytes, &rig.err), FRT_OK);
    expect_run(&rig, &cases[3], "in as many as were asked for");
    rt_close_rig(&rig);
    rt_expect_nothing_held("after the caller's workspace");
}

/* The two dims of a pitch are the runtime's own. */
Test(rt_pitch, nobody_gives_a_pitch) {
    static const int64_t values[2] = {3, 5};
    RtRig rig;
    int64_t value, shape[FRT_MAX_RANK] = {0};
    char text[128];
    FRT_INFO(frt_module_info, info);
    FRT_INFO(frt_dim_info, dim);
    open_rig(&rig);
    cr_assert_eq(frt_module_get_info(rig.module, &info), FRT_OK);
    cr_expect_eq(info.n_dims, 2);
    cr_expect_eq(frt_set_dim(rig.exec, "x.pitch", 8, &rig.err), FRT_E_UNKNOWN_NAME);
    cr_expect_eq(frt_program_get_dim(rig.program, 2, &value), FRT_E_INVALID_ARGUMENT);
    cr_expect_eq(frt_module_get_dim(rig.module, frt_module_step_dim(rig.module, 0, 0, 2), &dim),
                 FRT_OK);
    cr_expect_str_eq(dim.name, "x.width", "what a kernel is given has a name");
    cr_assert_eq(frt_module_eval_shape(rig.module, 0, 2, values, shape, &rig.err), FRT_OK, "%s",
                 rig.err.message);
    cr_expect(shape[0] == 3 && shape[1] == 8);
    for (int32_t i = 0; i < 4; i++) {
        FRT_INFO(frt_tensor_info, tensor);
        cr_assert_eq(frt_module_get_tensor(rig.module, 0, i, &tensor), FRT_OK);
        cr_expect_eq(tensor.stands_for, i == 2 ? 0 : -1, "%s", tensor.name);
    }
    cr_assert_gt(frt_module_pitch_text(rig.module, 0, 0, text, sizeof text), 0);
    cr_expect_str_eq(text, "x.pitch and x.width: K up to a multiple of 8, unless aligned(x, 16) "
                           "and (K) % 4 == 0 or M*K <= 6");
    cr_expect_eq(frt_module_pitch_text(rig.module, 0, 1, text, sizeof text), 0);
    cr_assert_gt(frt_module_extent_text(rig.module, 0, 2, 1, text, sizeof text), 0);
    cr_expect_str_eq(text, "x.width");
    rt_close_rig(&rig);
    rt_expect_nothing_held("after asking");
}
