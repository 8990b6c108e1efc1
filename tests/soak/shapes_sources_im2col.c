/* Programs for windows over images: products of taps side by side, which convolutions are. */
#include "shapes_maker.h"

/* Along one axis of the image. */
typedef struct Side {
    int n_taps, apart, step, low, high; /* apart: from tap to tap; low, high: padded */
    int n, size;                        /* windows; the image's pixels */
} Side;

static int below(Maker *m, int n) {
    return (int)rng_below(&m->rng, (uint32_t)n);
}

static Side drawn_side(Maker *m, int most) {
    Side s = {.n_taps = 1 + below(m, 3), .apart = 1 + below(m, 2), .step = 1 + below(m, 2)};
    int reach = (s.n_taps - 1) * s.apart;
    bool is_padded = rng_chance(&m->rng, 70);
    s.low = is_padded ? below(m, reach + 1) : 0;
    s.high = is_padded ? below(m, reach + 1) : 0;
    s.n = reach / s.step + 1 + below(m, most);
    s.size = (s.n - 1) * s.step + reach + 1 - s.low - s.high;
    return s;
}

/* Of a product of one tap: pixels apart, few of them and an odd number in all. Others are no
 * windows, but the rows of a product by themselves. */
static Side lone_tap(Maker *m) {
    int n = 2 + below(m, 20);
    return (Side){.n_taps = 1, .apart = 1, .step = 2, .n = n, .size = 2 * n - 1};
}

static Value padded(Maker *m, Value image, const Side *sides, uint32_t n_sides) {
    Text low = {.arena = m->arena}, high = {.arena = m->arena};
    Axes axes = image.axes;
    bool any = false;
    for (uint32_t i = 0; i < n_sides; i++) {
        any = any || sides[i].low || sides[i].high;
        text_printf(&low, ", %d", sides[i].low);
        text_printf(&high, ", %d", sides[i].high);
        axes.of[i + 1] = str_format(m->arena, "%d", sides[i].size + sides[i].low + sides[i].high);
    }
    if (!any) return image;
    return bind(m, image.dtype, axes, "pad(%s, low=[0%s, 0], high=[0%s, 0], value=0)", image.name,
                text_str(&low), text_str(&high));
}

/* The pixels of tap `number` of all windows. */
static const char *tap_of(Maker *m, Value image, const Side *sides, uint32_t n_sides, int number) {
    Text text = {.arena = m->arena};
    text_printf(&text, "%s[:", image.name);
    for (uint32_t i = 0; i < n_sides; i++) {
        int begin = number % sides[i].n_taps * sides[i].apart;
        number /= sides[i].n_taps;
        text_printf(&text, ", %d:%d:%d", begin, begin + (sides[i].n - 1) * sides[i].step + 1,
                    sides[i].step);
    }
    text_puts(&text, "]");
    return text_str(&text);
}

static Value windows(Maker *m, Value image, const Side *sides, uint32_t n_sides, int n_taps,
                     const char *k) {
    Text taps = {.arena = m->arena};
    Axes axes = image.axes;
    for (int t = 0; t < n_taps; t++)
        text_printf(&taps, "%s%s", t ? ", " : "", tap_of(m, image, sides, n_sides, t));
    for (uint32_t i = 0; i < n_sides; i++) axes.of[i + 1] = str_format(m->arena, "%d", sides[i].n);
    axes.of[axes.n - 1] = k;
    return bind(m, image.dtype, axes, "concat([%s], axis=%u)", text_str(&taps), axes.n - 1);
}

/* The same windows as one view, with taps in row-major order. */
static Value windows_view(Maker *m, Value image, const Side *sides, uint32_t n_sides,
                          const char *k) {
    Text lists[6] = {{0}};
    Axes axes = image.axes;
    for (uint32_t i = 0; i < n_sides; i++) {
        const Side *s = &sides[i];
        const int numbers[6] = {s->n_taps, (int)i + 1, s->step, s->apart, s->low, s->high};
        axes.of[i + 1] = str_format(m->arena, "%d", s->n);
        for (int l = 0; l < 6; l++) {
            lists[l].arena = m->arena;
            text_printf(&lists[l], "%s%d", i ? ", " : "", numbers[l]);
        }
    }
    axes.of[axes.n - 1] = k;
    Text shape = {.arena = m->arena};
    for (uint32_t a = 0; a < axes.n; a++) text_printf(&shape, "%s%s", a ? ", " : "", axes.of[a]);
    return bind(m, image.dtype, axes,
                "reshape(windows(%s, size=[%s], axis=[%s], stride=[%s], dilation=[%s], low=[%s], "
                "high=[%s]), [%s])",
                image.name, text_str(&lists[0]), text_str(&lists[1]), text_str(&lists[2]),
                text_str(&lists[3]), text_str(&lists[4]), text_str(&lists[5]), text_str(&shape));
}

const char *make_im2col(Maker *m) {
    uint32_t n_sides = 1 + rng_below(&m->rng, 2);
    Side sides[2];
    int n_taps = 1, depth = 128 / (int)dtype_bytes(m->dtype),
        n_channels = depth * (1 + below(m, 2));
    Axes axes = {{"B"}, n_sides + 2};
    dim(m, "B", 1, 9, 1);
    for (uint32_t i = 0; i < n_sides; i++) {
        sides[i] = drawn_side(m, n_sides == 1 ? 120 : 12);
        if (i + 1 == n_sides && n_taps == 1 && sides[i].n_taps == 1) sides[i] = lone_tap(m);
        n_taps *= sides[i].n_taps;
        axes.of[i + 1] = str_format(m->arena, "%d", sides[i].size);
    }
    axes.of[axes.n - 1] = str_format(m->arena, "%d", n_channels);
    const char *k = str_format(m->arena, "%d", n_taps * n_channels);
    const char *n = str_format(m->arena, "%d", 8 * (1 + below(m, 30)));
    Value image = input(m, m->dtype, axes);
    bool is_transposed = m->dtype == DT_F32 || rng_chance(&m->rng, 30);
    Value w = input(m, m->dtype, is_transposed ? AXES(n, k) : AXES(k, n));
    text_puts(&m->body, "  fuse must {\n");
    Value c = n_taps == 1 || rng_chance(&m->rng, 50)
                  ? windows_view(m, image, sides, n_sides, k)
                  : windows(m, padded(m, image, sides, n_sides), sides, n_sides, n_taps, k);
    axes = c.axes;
    axes.of[axes.n - 1] = n;
    Value y =
        bind(m, c.dtype, axes, is_transposed ? "matmul(%s, transpose(%s)%s)" : "matmul(%s, %s%s)",
             c.name, w.name, m->dtype == DT_F32 ? ", precision=\"tf32\"" : "");
    text_puts(&m->body, "  }\n");
    finish(m, chain(m, y, rng_below(&m->rng, 3)));
    return source(m);
}

/* An axis of an image whose padding may be wider than the windows. */
static Side wide_side(Maker *m, int most_taps, int most) {
    Side s = {.n_taps = 1 + below(m, most_taps), .apart = 1 + below(m, 2), .step = 1 + below(m, 3)};
    int reach = (s.n_taps - 1) * s.apart, widest = rng_chance(&m->rng, 30) ? 40 : reach;
    s.size = 1 + below(m, most);
    s.low = below(m, widest + 1);
    s.high = below(m, (rng_chance(&m->rng, 50) ? widest : reach) + 1);
    if (s.size + s.low + s.high <= 2 * reach) s.size = 2 * reach + 1;
    s.n = (s.size + s.low + s.high - reach - 1) / s.step + 1;
    return s;
}

/* Convolutions of images, channels first or last. */
const char *make_strips(Maker *m) {
    const Side rows = wide_side(m, 3, 4), columns = wide_side(m, 6, 30);
    bool is_last = rng_chance(&m->rng, 10);
    const char *channels = number(m, 1, 9), *n = number(m, 1, is_last ? 3 : 24);
    const char *pixels[] = {str_format(m->arena, "%d", rows.size),
                            str_format(m->arena, "%d", columns.size)};
    const char *taps[] = {str_format(m->arena, "%d", rows.n_taps),
                          str_format(m->arena, "%d", columns.n_taps)};
    const char *out[] = {str_format(m->arena, "%d", rows.n), str_format(m->arena, "%d", columns.n)};
    const char *value = rng_chance(&m->rng, 30) ? "1" : "0";
    dim(m, "B", 1, 3, 1);
    Value image = input(m, m->dtype,
                        is_last ? AXES("B", pixels[0], pixels[1], channels)
                                : AXES("B", channels, pixels[0], pixels[1]));
    Value w =
        input(m, m->dtype,
              is_last ? AXES(taps[0], taps[1], channels, n) : AXES(n, channels, taps[0], taps[1]));
    Axes axes = is_last ? AXES("B", out[0], out[1], n) : AXES("B", n, out[0], out[1]);
    const char *first = is_last ? "0" : "0, 0", *last = is_last ? ", 0" : "";
    text_puts(&m->body, "  fuse must {\n");
    Value y = bind(m, m->dtype, axes,
                   "%s(pad(%s, low=[%s, %d, %d%s], high=[%s, %d, %d%s], value=%s), %s, "
                   "stride=[%d, %d], dilation=[%d, %d])",
                   is_last ? "conv2d_nhwc" : "conv2d", image.name, first, rows.low, columns.low,
                   last, first, rows.high, columns.high, last, value, w.name, rows.step,
                   columns.step, rows.apart, columns.apart);
    text_puts(&m->body, "  }\n");
    finish(m, chain(m, y, rng_below(&m->rng, 3)));
    return source(m);
}

/* Convolutions of each channel by itself, channels first or last. */
const char *make_taps(Maker *m) {
    bool is_last = rng_chance(&m->rng, 50);
    int taps = 1 + below(m, 4), stride = 1 + below(m, 5), apart = 1 + below(m, 2);
    int reach = (taps - 1) * apart, padding = below(m, reach / 2 + 1);
    int n = 1 + below(m, is_last ? 6 : 24 / stride),
        size = (n - 1) * stride + reach + 1 - 2 * padding;
    if (size < 1) n += 1 + (1 - size) / stride, size = (n - 1) * stride + reach + 1 - 2 * padding;
    const char *channels = number(m, 1, is_last ? 24 : 4), *k = str_format(m->arena, "%d", taps);
    const char *pixels = str_format(m->arena, "%d", size);
    const char *out = str_format(m->arena, "%d", n);
    dim(m, "B", 1, 3, 1);
    Axes first = AXES("B", channels, pixels, pixels), last = AXES("B", pixels, pixels, channels);
    Value image = input(m, m->dtype, is_last ? last : first);
    Value w = input(m, m->dtype, is_last ? AXES(k, k, "1", channels) : AXES(channels, "1", k, k));
    Axes axes = is_last ? AXES("B", out, out, channels) : AXES("B", channels, out, out);
    text_puts(&m->body, "  fuse must {\n");
    Value y = bind(m, m->dtype, axes, "%s(%s, %s, stride=%d, padding=%d, dilation=%d, groups=%s)",
                   is_last ? "conv2d_nhwc" : "conv2d", image.name, w.name, stride, padding, apart,
                   channels);
    text_puts(&m->body, "  }\n");
    finish(m, chain(m, y, rng_below(&m->rng, 3)));
    return source(m);
}
