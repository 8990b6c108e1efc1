/* Kernels that may be launched while the one before them ends: each waits before it touches memory,
 * and the artifact says so. */
#include "lib/compile.h"
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <glob.h>

static const char let_in[] = "griddepcontrol.launch_dependents;";
static const char wait[] = "griddepcontrol.wait;";

/* What may not stand before the wait: anything that goes to memory beside the parameters, and
 * anything by which the wait could be passed by. */
static const char *const early[] = {"\n$",       "bra",   "ld.global", "st.global", "ld.shared",
                                    "st.shared", "atom",  "red.",      "cp.",       "prefetch",
                                    "bar.",      "fence", "mbarrier"};

/* Returns the number of kernels in the PTX. */
static uint32_t check_kernels(const char *ptx, bool waits, const char *name) {
    uint32_t n = 0;
    for (const char *at = ptx; (at = strstr(at, ".entry ")); n++) {
        const char *body = strstr(at, "\n{"), *end = strstr(at, "\n}");
        cr_assert(body && end, "%s: kernel %u has no body", name, n);
        const char *begin = strstr(body, let_in), *waited = strstr(body, wait);
        cr_expect_eq(begin && begin < end, waits, "%s: %.40s", name, at);
        cr_expect_eq(waited && waited < end, waits, "%s: %.40s", name, at);
        if (waits && begin && waited) {
            cr_expect(waited < begin, "%s lets others in before it waited: %.40s", name, at);
            for (size_t i = 0; i < sizeof early / sizeof early[0]; i++) {
                const char *found = strstr(body, early[i]);
                cr_expect(!found || found > waited, "%s: `%s` before the wait of %.40s", name,
                          early[i], at);
            }
            const char *again = strstr(waited + 1, wait);
            cr_expect(!again || again > end, "%s: waits twice: %.40s", name, at);
        }
        at = end;
    }
    return n;
}

static void check_manifest(const char *artifact, bool waits, const char *name) {
    const char *line = artifact;
    for (; (line = strstr(line, "\n//@ variant ")); line++) {
        const char *end = strchr(line + 1, '\n');
        bool says = end && strncmp(end - 6, " waits", 6) == 0;
        cr_expect_eq(says, waits, "%s: %.60s", name, line + 1);
    }
}

static void check_source(const char *source, const char *name) {
    static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90, TARGET_SM_90A};
    for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
        const Target *target = target_get(targets[t]);
        for (int mode = 0; mode < 2; mode++) {
            Compiled compiled;
            CompileMode how = mode ? COMPILE_UNFUSED : COMPILE_FUSED;
            cr_assert(compile_source(&compiled, source, target, how), "%s: %s", name,
                      compiled.messages);
            uint32_t n = check_kernels(compiled.bytes, target->has_overlap, name);
            cr_expect_gt(n, 0, "%s has no kernels", name);
            check_manifest(compiled.bytes, target->has_overlap, name);
            compile_free(&compiled);
        }
    }
}

Test(overlap, every_kernel_waits_before_it_touches_memory, .timeout = 300) {
    glob_t files;
    cr_assert_eq(glob("dsl/examples/*.g", 0, NULL, &files), 0);
    cr_assert_gt(files.gl_pathc, 5);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        Arena *arena = arena_new(NULL);
        size_t n_bytes;
        const char *source = text_file_read(arena, files.gl_pathv[i], &n_bytes);
        cr_assert(source, "%s", files.gl_pathv[i]);
        check_source(source, files.gl_pathv[i]);
        arena_free(arena);
    }
    globfree(&files);
}

/* Loads of what never changes are the ones that compilers move; here are little else but those,
 * in kernels of one block of code. */
Test(overlap, loads_stay_behind_the_wait, .timeout = 60) {
    check_source("dim N in 1..1048576\n"
                 "graph g(a: f32[N], b: f32[N], c: f32[N]) -> (y: f32[N], z: f32[N]) {\n"
                 "  y = a * b + c\n"
                 "  z = a + b * c\n"
                 "}\n",
                 "map");
    check_source("graph g(a: f32[4]) -> (y: f32[4]) {\n  y = a + a\n}\n", "small");
}
