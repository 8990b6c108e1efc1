/* Pieces of SVG and HTML as text: escaping, numbers, shapes. Everything that comes from users goes
 * through markup_escape. Numbers have a point, whatever the locale. Lengths are CSS pixels. */
#ifndef FUSEC_REPORT_SVG_H
#define FUSEC_REPORT_SVG_H

#include "report/layered.h"

#include "base/str.h"

/* `text` as character data or as a value in double quotes. Control characters and what is no UTF-8
 * become U+FFFD. */
void markup_escape(Text *out, const char *text);
/* At most `digits` decimals, without zeros at the end. */
void markup_number(Text *out, double value, int digits);

/* For people: `12.6 MB`, `3.21 us`, `1.2 G`; three significant digits. */
const char *human_bytes(Arena *arena, double n_bytes);
const char *human_us(Arena *arena, double us);
const char *human_count(Arena *arena, double count);
/* `3.4 x` as often as; `-` where there is no ratio. */
const char *human_ratio(Arena *arena, double before, double after);

/* Width of a label in the monospaced font of the page at `size` pixels. */
double svg_text_width(const char *text, double size);
/* A copy of at most `n_chars` characters, the last an ellipsis where any are left out. */
const char *svg_shorten(Arena *arena, const char *text, uint32_t n_chars);

typedef enum { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END } SvgAnchor;

/* A picture `w` x `h`; `label` says what it shows to who cannot see it. */
void svg_begin(Text *out, double w, double h, const char *label);
void svg_end(Text *out);
/* Moves what follows, until svg_group_end. `id` may be NULL. */
void svg_group_begin(Text *out, double dx, double dy, const char *class_name, const char *id);
void svg_group_end(Text *out);
/* `tip` is shown when the pointer rests on the shape; NULL: none. */
void svg_rect(Text *out, const char *class_name, double x, double y, double w, double h, double r,
              const char *tip);
void svg_circle(Text *out, const char *class_name, double x, double y, double r, const char *tip);
void svg_line(Text *out, const char *class_name, double x0, double y0, double x1, double y1);
void svg_text(Text *out, const char *class_name, SvgAnchor anchor, double x, double y,
              const char *text);
/* Smooth through the points, leaving and arriving vertically, with an arrow head at the end. */
void svg_edge(Text *out, const char *class_name, double width, const LayeredPoint *points,
              uint32_t n_points, const char *tip);

#endif
