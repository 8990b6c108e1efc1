/* Watching the passes: each is called once, in the order of passes.def, and leaves a dump. */
#include "driver/driver.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct Watched {
    int last;
    const char *texts[PASS_COUNT];
} Watched;

static void note(void *user, PassId pass, double seconds, const char *text) {
    Watched *watched = user;
    cr_expect((int)pass > watched->last && seconds >= 0, "%s", pass_info(pass)->name);
    watched->last = (int)pass;
    watched->texts[pass] = text;
}

static const char source[] = "graph g(x: bf16[64, 96], w: bf16[96, 32]) -> (y: bf16[64, 32]) {\n"
                             "  y = softmax(relu(x @ w))\n}\n";

static fusec_status build(Driver *driver, void *user) {
    (void)user;
    fusec_status status = driver_parse(driver, "test.g", source, strlen(source));
    return status ? status : driver_build(driver);
}

/* What is in each pass's dump; NULL: the pass does not run. */
static const struct {
    const char *fused, *unfused;
} parts[PASS_COUNT] = {
    [PASS_PARSE] = {"call `softmax`", "call `softmax`"},
    [PASS_CHECK] = {"graph g", "graph g"},
    [PASS_SPLIT_K] = {"graph g", "graph g"},
    [PASS_DECIDE] = {"graph g", NULL},
    [PASS_FUSE] = {"kernel ", "kernel "},
    [PASS_SPLIT] = {"kernel ", "kernel "},
    [PASS_HOIST] = {"kernel ", "kernel "},
    [PASS_DISPATCH] = {"kernel ", NULL},
    [PASS_LAYOUT] = {"kernel ", "kernel "},
    [PASS_SCHEDULE] = {"variant", "variant"},
    [PASS_LAUNCH] = {"variant", "variant"},
    [PASS_BOUNDS] = {"variant", NULL},
    [PASS_BAND] = {"variant", NULL},
    [PASS_DEDUP] = {"variant", "variant"},
    [PASS_CONTRACT] = {"variant", NULL},
    [PASS_PLACE] = {"variant", "variant"},
    [PASS_LEDGER] = {"totals:", "totals:"},
    [PASS_LEGAL] = {"variant", "variant"},
    [PASS_LOWER] = {"define ", "define "},
    [PASS_MANIFEST] = {"graph", "graph"},
    [PASS_EMIT] = {".entry ", ".entry "},
};

Test(passes, each_is_watched_in_order_and_leaves_a_dump) {
    for (int is_fused = 0; is_fused < 2; is_fused++) {
        Watched watched = {.last = -1};
        DriverOptions options = {
            .kind = FUSEC_PTX,
            .target = target_get(TARGET_SM_80),
            .no_fuse = !is_fused,
            .explain = true,
            .checks_llvm = true,
            .watch = {.user = &watched, .wants_text = UINT32_MAX, .after = note}};
        Driver driver;
        cr_assert(driver_init(&driver, &options));
        cr_assert_eq(driver_guard(&driver, build, NULL), FUSEC_OK, "%s", driver.failure);
        for (int pass = 0; pass < PASS_COUNT; pass++) {
            const char *part = is_fused ? parts[pass].fused : parts[pass].unfused;
            const char *text = watched.texts[pass], *name = pass_info((PassId)pass)->name;
            cr_expect_eq(!part, !text, "%s", name);
            cr_expect(!part || (text && strstr(text, part)), "%s: %s", name, text);
        }
        driver_free(&driver);
    }
}
