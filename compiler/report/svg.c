/* Prints markup. See svg.h. */
#include "report/svg.h"

#include <math.h>

static const double GLYPH_WIDTH = 0.605; /* width of a character in a monospaced font of size 1 */
static const double LEAST_SCALE = 0.6;   /* least scale of a picture; a larger picture scrolls */

/* Text. */

/* The bytes of the character at `s`, or 0 if it is invalid UTF-8 or not allowed in markup. */
static uint32_t character_bytes(const unsigned char *s) {
    if (s[0] < 0x80) return s[0] >= 0x20 && s[0] != 0x7F ? 1 : 0;
    uint32_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4) return 0;
    uint32_t code = s[0] & (0xFFu >> (n + 1));
    for (uint32_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool is_surrogate = code >= 0xD800 && code < 0xE000;
    bool is_forbidden = (code & 0xFFFE) == 0xFFFE || code < 0xA0;
    return code < least[n] || code > 0x10FFFF || is_surrogate || is_forbidden ? 0 : n;
}

void markup_escape(Text *out, const char *text) {
    while (*text) {
        uint32_t n = character_bytes((const unsigned char *)text);
        switch (*text) {
        case '<':
            text_puts(out, "&lt;");
            break;
        case '>':
            text_puts(out, "&gt;");
            break;
        case '&':
            text_puts(out, "&amp;");
            break;
        case '"':
            text_puts(out, "&quot;");
            break;
        case '\'':
            text_puts(out, "&#39;");
            break;
        case '\n':
            text_puts(out, "&#10;");
            break;
        default:
            if (n)
                text_add(out, text, n);
            else
                text_puts(out, "\xEF\xBF\xBD");
        }
        text += n ? n : 1;
    }
}

void markup_number(Text *out, double value, int digits) {
    static const int64_t powers[] = {1, 10, 100, 1000, 10000};
    double scaled = round(fabs(value) * (double)powers[digits]);
    if (!(scaled < 1e15)) scaled = 1e15;
    int64_t whole = (int64_t)scaled, part = whole % powers[digits];
    text_printf(out, "%s%lld", value < 0 && whole ? "-" : "", (long long)(whole / powers[digits]));
    if (!part) return;
    for (; part % 10 == 0; part /= 10) digits--;
    text_printf(out, ".%0*lld", digits, (long long)part);
}

/* Prints a value with three significant digits. */
static const char *three_digits(Arena *arena, double value, const char *unit) {
    Text text = {.arena = arena};
    double size = fabs(value);
    markup_number(&text, value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
    text_puts(&text, unit);
    return text_str(&text);
}

static const char *scaled_text(Arena *arena, double value, const char *const *units, int n) {
    int unit = 0;
    while (unit + 1 < n && fabs(value) >= 999.5) {
        value /= 1000;
        unit++;
    }
    return three_digits(arena, value, units[unit]);
}

const char *human_bytes(Arena *arena, double n_bytes) {
    static const char *const units[] = {" B", " kB", " MB", " GB", " TB", " PB", " EB"};
    return scaled_text(arena, n_bytes, units, 7);
}

const char *human_us(Arena *arena, double us) {
    static const char *const units[] = {" \xC2\xB5s", " ms", " s"};
    return scaled_text(arena, us, units, 3);
}

const char *human_count(Arena *arena, double count) {
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
    return scaled_text(arena, count, units, 7);
}

const char *human_ratio(Arena *arena, double before, double after) {
    return after > 0 ? three_digits(arena, before / after, "\xC3\x97") : "-";
}

double svg_text_width(const char *text, double size) {
    uint32_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n * size * GLYPH_WIDTH;
}

const char *svg_shorten(Arena *arena, const char *text, uint32_t n_chars) {
    uint32_t n = 0, cut = 0;
    for (uint32_t i = 0; text[i]; i++) {
        if (((unsigned char)text[i] & 0xC0) == 0x80) continue;
        n++;
        if (n == n_chars) cut = i;
    }
    return n <= n_chars ? text : str_format(arena, "%.*s\xE2\x80\xA6", (int)cut, text);
}

/* Shapes. */

static void put_attribute(Text *out, const char *name, double value) {
    text_printf(out, " %s=\"", name);
    markup_number(out, value, 1);
    text_puts(out, "\"");
}

static void put_end(Text *out, const char *element, const char *tip) {
    if (!tip) {
        text_puts(out, "/>\n");
        return;
    }
    text_puts(out, "><title>");
    markup_escape(out, tip);
    text_printf(out, "</title></%s>\n", element);
}

void svg_begin(Text *out, double w, double h, const char *label) {
    text_puts(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"");
    put_attribute(out, "width", ceil(w));
    put_attribute(out, "height", ceil(h));
    text_puts(out, " viewBox=\"0 0 ");
    markup_number(out, ceil(w), 0);
    text_puts(out, " ");
    markup_number(out, ceil(h), 0);
    text_puts(out, "\" aria-label=\"");
    markup_escape(out, label);
    text_puts(out, "\" style=\"min-width:");
    markup_number(out, ceil(LEAST_SCALE * w), 0);
    text_puts(out, "px\">\n");
}

void svg_end(Text *out) {
    text_puts(out, "</svg>\n");
}

void svg_group_begin(Text *out, double dx, double dy, const char *class_name, const char *id) {
    text_printf(out, "<g class=\"%s\" transform=\"translate(", class_name);
    markup_number(out, dx, 1);
    text_puts(out, " ");
    markup_number(out, dy, 1);
    text_puts(out, ")\"");
    if (id) text_printf(out, " id=\"%s\"", id);
    text_puts(out, ">\n");
}

void svg_group_end(Text *out) {
    text_puts(out, "</g>\n");
}

void svg_rect(Text *out, const char *class_name, double x, double y, double w, double h, double r,
              const char *tip) {
    text_printf(out, "<rect class=\"%s\"", class_name);
    put_attribute(out, "x", x);
    put_attribute(out, "y", y);
    put_attribute(out, "width", w);
    put_attribute(out, "height", h);
    put_attribute(out, "rx", r);
    put_end(out, "rect", tip);
}

void svg_circle(Text *out, const char *class_name, double x, double y, double r, const char *tip) {
    text_printf(out, "<circle class=\"%s\"", class_name);
    put_attribute(out, "cx", x);
    put_attribute(out, "cy", y);
    put_attribute(out, "r", r);
    put_end(out, "circle", tip);
}

void svg_line(Text *out, const char *class_name, double x0, double y0, double x1, double y1) {
    text_printf(out, "<line class=\"%s\"", class_name);
    put_attribute(out, "x1", x0);
    put_attribute(out, "y1", y0);
    put_attribute(out, "x2", x1);
    put_attribute(out, "y2", y1);
    put_end(out, "line", NULL);
}

void svg_text(Text *out, const char *class_name, SvgAnchor anchor, double x, double y,
              const char *text) {
    static const char *const anchors[] = {"start", "middle", "end"};
    text_printf(out, "<text class=\"%s\" text-anchor=\"%s\"", class_name, anchors[anchor]);
    put_attribute(out, "x", x);
    put_attribute(out, "y", y);
    text_puts(out, ">");
    markup_escape(out, text);
    text_puts(out, "</text>\n");
}

static void put_point(Text *out, double x, double y) {
    text_puts(out, " ");
    markup_number(out, x, 1);
    text_puts(out, " ");
    markup_number(out, y, 1);
}

void svg_edge(Text *out, const char *class_name, double width, const LayeredPoint *points,
              uint32_t n_points, const char *tip) {
    if (n_points < 2) return;
    /* The line ends where the arrow head begins. */
    double head = 3.5 + width, half = 2 + 0.7 * width;
    LayeredPoint tail = points[n_points - 1];
    text_printf(out, "<g class=\"edge %s\"><path", class_name);
    put_attribute(out, "stroke-width", width);
    text_puts(out, " d=\"M");
    put_point(out, points[0].x, points[0].y);
    for (uint32_t i = 1; i < n_points; i++) {
        LayeredPoint a = points[i - 1], b = points[i];
        if (i == n_points - 1) b.y -= head;
        double bend = (b.y - a.y) / 2;
        text_puts(out, fabs(a.x - b.x) < 0.05 ? " L" : " C");
        if (fabs(a.x - b.x) >= 0.05) {
            put_point(out, a.x, a.y + bend);
            put_point(out, b.x, b.y - bend);
        }
        put_point(out, b.x, b.y);
    }
    text_puts(out, "\"/><path class=\"head\" d=\"M");
    put_point(out, tail.x, tail.y);
    text_puts(out, " L");
    put_point(out, tail.x - half, tail.y - head - 0.5);
    text_puts(out, " L");
    put_point(out, tail.x + half, tail.y - head - 0.5);
    text_puts(out, " Z\"/>");
    if (tip) {
        text_puts(out, "<title>");
        markup_escape(out, tip);
        text_puts(out, "</title>");
    }
    text_puts(out, "</g>\n");
}
