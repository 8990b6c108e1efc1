/* Params and init steps on the fake driver: when values are wanted, replaced, and used. */
#include "../fake/rt_rig.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(rt_params, params_are_wanted_checked_and_replaceable) {
    RtRig rig;
    frt_program_options options = rt_options();
    fake_cuda_reset();
    rt_add_kernels();
    cr_assert_eq(rt_open_program(&rig, rt_manifest, &options), FRT_OK);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(rt_bind(&rig, 3), FRT_OK);
    cr_expect_eq(frt_run(rig.exec, NULL, &rig.err), FRT_E_WEIGHTS_MISSING);
    cr_expect(strstr(rig.err.message, "param w has no values"));
    cr_expect_eq(frt_program_set_param(rig.program, "w", rt_weights, 12, &rig.err),
                 FRT_E_WEIGHTS_MISMATCH);
    cr_expect(strstr(rig.err.message, "param w has 16 bytes, but 12"));
    cr_expect_eq(frt_program_set_param(rig.program, "x", rt_weights, 16, &rig.err),
                 FRT_E_UNKNOWN_NAME);
    cr_expect_eq(frt_program_set_param(rig.program, "w", NULL, 16, &rig.err), FRT_E_NULL);
    cr_assert_eq(frt_program_set_param(rig.program, "w", rt_weights, 16, &rig.err), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    rt_expect_y(&rig, 3);
    static const float ones[4] = {1, 1, 1, 1};
    cr_assert_eq(frt_program_set_param(rig.program, "w", ones, 16, &rig.err), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    cr_expect(rig.y[3] == 7.0f, "init steps ran again: %g", (double)rig.y[3]);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after params");
}

/* Sets w twice, the second time longer: it moves, and so does what init steps made of it. */
static frt_status grow_param(RtRig *rig, const char *text) {
    static const float longer[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    frt_program_options options = rt_options();
    frt_tensor w = {.data = (void *)(uintptr_t)longer, .dtype = FRT_F32, .rank = 1, .dims = {4}};
    frt_status status = rt_open_program(rig, text, &options);
    for (int64_t n = 4; n <= 8 && !status; n += 4) {
        w.dims[0] = n;
        status = frt_program_set_param_tensor(rig->program, "w", &w, &rig->err);
        if (!status && !rig->exec) {
            status = frt_exec_create(rig->program, &rig->exec, &rig->err);
        }
        if (!status) {
            status = rt_bind(rig, 3);
        }
        if (!status) {
            status = frt_run(rig->exec, NULL, &rig->err);
        }
    }
    return status;
}

Test(rt_params, a_param_of_another_shape_moves_with_what_init_steps_made) {
    RtRig rig;
    char *with_dim = text_replace(rt_manifest, "//@ graph g", "//@ dim N 4 8 4\n//@ graph g");
    char *with_param = text_replace(with_dim, "param w 0 f32 4", "param w 0 f32 N");
    char *text = text_replace(with_param, "packed 0 f32 - 4", "packed 0 f32 - N");
    bool has_failed = true;
    rt_add_kernels();
    for (long n = 0; has_failed; n++) { /* call 0: none fails */
        fake_cuda_reset();
        fake_cuda.fail_at = n;
        fake_cuda.fail_code = 2; /* out of memory */
        frt_status status = grow_param(&rig, text);
        has_failed = n == 0 || fake_cuda.has_failed;
        if (status == FRT_OK) {
            int64_t value = 0;
            rt_expect_y(&rig, 3);
            cr_expect_eq(frt_program_get_dim(rig.program, 1, &value), FRT_OK);
            cr_expect_eq(value, 8);
            cr_expect_eq(fake_cuda.n_blocks, 4, "scratch, param, persistent temp, workspace");
        }
        cr_assert(n > 0 || status == FRT_OK, "%s", rig.err.message);
        rt_close_rig(&rig);
        rt_expect_nothing_held("after a longer param");
    }
    free(with_dim);
    free(with_param);
    free(text);
}

Test(rt_params, init_steps_run_once_for_a_program_and_after_a_change) {
    RtRig rig;
    frt_program_options options = rt_options();
    FRT_INFO(frt_init_info, init);
    fake_cuda_reset();
    rt_add_kernels();
    cr_assert_eq(rt_open_program(&rig, rt_manifest, &options), FRT_OK);
    cr_assert_eq(frt_program_get_init(rig.program, &init), FRT_OK);
    cr_expect(init.n_steps == 2 && init.n_runs == 0 && init.kept_bytes == 0, "w has no values");
    cr_assert_eq(frt_program_set_param(rig.program, "w", rt_weights, 16, &rig.err), FRT_OK);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(rt_bind(&rig, 3), FRT_OK);
    cr_assert_eq(frt_prepare(rig.exec, &rig.err), FRT_OK);
    long n_blocks = fake_cuda.n_blocks;
    frt_exec *other = NULL;
    cr_assert_eq(frt_exec_create(rig.program, &other, &rig.err), FRT_OK);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    }
    cr_assert_eq(frt_program_get_init(rig.program, &init), FRT_OK);
    cr_expect(init.n_runs == 1 && init.kept_bytes == 16 && init.passing_bytes == 16);
    cr_expect(init.ms >= 0.0 && init.struct_size == sizeof init);
    cr_assert_eq(frt_program_set_param(rig.program, "w", rt_weights, 16, &rig.err), FRT_OK);
    fake_cuda.n_calls = 0;
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    cr_expect_eq(fake_cuda_count("cuMemAlloc"), 1, "what passes between the init steps");
    cr_expect_eq(fake_cuda_count("cuMemFree"), 1);
    cr_expect_eq(fake_cuda_count("cuCtxSynchronize"), 1, "the run comes after them");
    rt_expect_y(&rig, 3);
    cr_assert_eq(frt_program_get_init(rig.program, &init), FRT_OK);
    cr_expect(init.n_runs == 2 && init.kept_bytes == 16);
    cr_expect_eq(fake_cuda.n_blocks, n_blocks);
    frt_exec_free(other);
    rt_close_rig(&rig);
    rt_expect_nothing_held("after init steps");
    cr_expect_eq(frt_program_get_init(NULL, &init), FRT_E_INVALID_ARGUMENT);
}
