/* Programs for bands: strict softmax between two products, where a mask hides most scores. Their
 * extents are known and large, since the kernels of a band take time themselves. */
#include "shapes_maker.h"

/* Of i (rows) and j (columns); `of_batch` and `of_column` are inputs. */
static const char *const masks[] = {
    "j <= i",
    "j >= i",
    "(j <= i) && (i - j < 300)",
    "j < 200",
    "(j <= i / 2) && (j > 20)",
    "(i > 500) && (j < 400)",
    "(j * 3 < i) || (j == 700)",
    "j < of_batch",
    "of_column && (j <= i)",
};
enum { N_MASKS = sizeof masks / sizeof *masks };

static const char *eights(Maker *m, int lo, int hi) {
    return str_format(m->arena, "%d", 8 * (int)rng_between(&m->rng, lo, hi));
}

const char *make_band(Maker *m) {
    const char *b = eights(m, 5, 8), *rows = number(m, 1000, 2100), *n = number(m, 1300, 2600);
    const char *depth = eights(m, 1, 16), *columns = eights(m, 1, 24);
    const char *mask = masks[rng_below(&m->rng, N_MASKS)];
    Value q = input(m, m->dtype, AXES(b, rows, depth)), k = input(m, m->dtype, AXES(b, n, depth));
    Value v = input(m, m->dtype, AXES(b, n, columns));
    Value ends = input(m, DT_I32, AXES(b)), seen = input(m, DT_BOOL, AXES(n));
    text_printf(&m->body, "  of_batch = 100 + reshape(%s %% 300, [%s, 1, 1])\n", ends.name, b);
    text_printf(&m->body, "  of_column = unsqueeze(%s, 0)\n", seen.name);
    text_printf(&m->body, "  i = iota([%s, %s], axis=0)\n  j = iota([%s, %s], axis=1)\n", rows, n,
                rows, n);
    Value s = bind(m, m->dtype, AXES(b, rows, n), "%s @ transpose(%s, [0, 2, 1])", q.name, k.name);
    if (rng_chance(&m->rng, 50)) s = bind(m, s.dtype, s.axes, "%s * 0.125", s.name);
    s = bind(m, s.dtype, s.axes,
             rng_chance(&m->rng, 30) ? "where(!(%s), -inf, %s)" : "where(%s, %s, -inf)", mask,
             s.name);
    Value y = bind(m, m->dtype, AXES(b, rows, columns), "softmax(%s, axis=2) @ %s", s.name, v.name);
    finish(m, rng_chance(&m->rng, 30) ? bind(m, y.dtype, y.axes, "relu(%s)", y.name) : y);
    return source(m);
}
