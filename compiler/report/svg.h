/* Prints SVG and HTML: escaping, numbers, shapes. All text of users must pass through
 * markup_escape. Numbers have a decimal point in every locale. Lengths are CSS pixels. */
#ifndef FUSEC_REPORT_SVG_H
#define FUSEC_REPORT_SVG_H

#include "report/layered.h"

#include "base/str.h"

/* Prints `text` as character data or as a value in double quotes. Control characters and invalid
 * UTF-8 become U+FFFD. */
void markup_escape(Text *out, const char *text);
/* Prints at most `digits` decimals, without trailing zeros. */
void markup_number(Text *out, double value, int digits);

/* Numbers for readers, with three significant digits: `12.6 MB`, `3.21 us`, `1.2 G`. */
const char *human_bytes(Arena *arena, double n_bytes);
const char *human_us(Arena *arena, double us);
const char *human_count(Arena *arena, double count);
/* The ratio of two numbers: `3.4 x`; `-` without a ratio. */
const char *human_ratio(Arena *arena, double before, double after);

/* The width of a label in the monospaced font of the page at `size` pixels. */
double svg_text_width(const char *text, double size);
/* A copy of at most `n_chars` characters; an ellipsis replaces the rest. */
const char *svg_shorten(Arena *arena, const char *text, uint32_t n_chars);

typedef enum { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END } SvgAnchor;

/* Begins a picture of `w` x `h`; `label` describes the picture to screen readers. */
void svg_begin(Text *out, double w, double h, const char *label);
void svg_end(Text *out);
/* Moves all shapes until svg_group_end by (`dx`, `dy`). `id` may be NULL. */
void svg_group_begin(Text *out, double dx, double dy, const char *class_name, const char *id);
void svg_group_end(Text *out);
/* `tip`: text while the pointer rests on the shape, or NULL. */
void svg_rect(Text *out, const char *class_name, double x, double y, double w, double h, double r,
              const char *tip);
void svg_circle(Text *out, const char *class_name, double x, double y, double r, const char *tip);
void svg_line(Text *out, const char *class_name, double x0, double y0, double x1, double y1);
void svg_text(Text *out, const char *class_name, SvgAnchor anchor, double x, double y,
              const char *text);
/* A smooth line through the points, vertical at both ends, with an arrow head at the last point. */
void svg_edge(Text *out, const char *class_name, double width, const LayeredPoint *points,
              uint32_t n_points, const char *tip);

#endif
