/* Reading and writing .npy. See npy.h. */
#include "interp/npy.h"

#include <string.h>

/* The header: a Python dictionary literal with three known keys. */
typedef struct Header {
    Arena *arena;
    const char *at, *end;
    const char **error;
    NpyArray *array;
    bool has_descr, has_order, has_shape, is_fortran;
} Header;

STR_PRINTF(2, 3) static bool fail(Header *h, const char *format, ...) {
    va_list args;
    va_start(args, format);
    *h->error = str_vformat(h->arena, format, args);
    va_end(args);
    return false;
}

static void skip_blanks(Header *h) {
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t')) h->at++;
}

static bool take(Header *h, char c) {
    skip_blanks(h);
    if (h->at >= h->end || *h->at != c) return false;
    h->at++;
    return true;
}

static bool take_word(Header *h, const char *word) {
    size_t n = strlen(word);
    skip_blanks(h);
    if ((size_t)(h->end - h->at) < n || memcmp(h->at, word, n) != 0) return false;
    h->at += n;
    return true;
}

/* A string in either quotes, without escapes. */
static bool take_string(Header *h, const char **text) {
    skip_blanks(h);
    if (h->at >= h->end || (*h->at != '\'' && *h->at != '"')) return false;
    char quote = *h->at++;
    const char *begin = h->at;
    while (h->at < h->end && *h->at != quote) h->at++;
    if (h->at >= h->end) return false;
    *text = str_format(h->arena, "%.*s", (int)(h->at++ - begin), begin);
    return true;
}

/* Whether `descr` is one of those between blanks in `list`. */
static bool is_listed(const char *list, const char *descr) {
    for (; *list; list += strcspn(list, " "), list += *list == ' ') {
        size_t n = strcspn(list, " ");
        if (n == strlen(descr) && memcmp(list, descr, n) == 0) return true;
    }
    return false;
}

/* What is written for the dtype: the first of its descriptions. */
static const char *descr_of(Arena *arena, Dtype dtype) {
    const char *list = dtype_info(dtype)->npy;
    return str_format(arena, "%.*s", (int)strcspn(list, " "), list);
}

/* NumPy's own dtypes, then the others with their names. */
static bool fail_unknown(Header *h, const char *descr) {
    Text own = {.arena = h->arena}, others = {.arena = h->arena};
    for (Dtype dtype = (Dtype)0; dtype < DT_COUNT; dtype++) {
        const char *first = descr_of(h->arena, dtype);
        if (strchr(dtype_info(dtype)->npy, 'V'))
            text_printf(&others, ", or %s for %s", first, dtype_name(dtype));
        else
            text_printf(&own, " %s", first);
    }
    return fail(h, "dtype `%.32s` is none of%s%s", descr, text_str(&own), text_str(&others));
}

static bool read_descr(Header *h) {
    const char *descr;
    if (!take_string(h, &descr)) return fail(h, "its dtype is not a simple one");
    for (Dtype dtype = (Dtype)0; dtype < DT_COUNT; dtype++) {
        if (!is_listed(dtype_info(dtype)->npy, descr)) continue;
        if (!h->has_descr) h->array->dtype = dtype;
        h->array->dtypes |= (DtypeSet)1 << dtype;
        h->has_descr = true;
    }
    return h->has_descr || fail_unknown(h, descr);
}

static bool read_order(Header *h) {
    h->is_fortran = take_word(h, "True");
    h->has_order = h->is_fortran || take_word(h, "False");
    return h->has_order || fail(h, "fortran_order is neither True nor False");
}

static bool take_extent(Header *h, int64_t *extent) {
    *extent = 0;
    skip_blanks(h);
    const char *begin = h->at;
    for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++) {
        if (*extent > INT64_MAX / 10 - 1) return false;
        *extent = *extent * 10 + (*h->at - '0');
    }
    return h->at > begin;
}

static bool read_shape(Header *h) {
    NpyArray *array = h->array;
    if (!take(h, '(')) return fail(h, "its shape is no tuple");
    while (!take(h, ')')) {
        if (array->rank == NPY_MAX_RANK) return fail(h, "it has more than %d axes", NPY_MAX_RANK);
        if (!take_extent(h, &array->dims[array->rank]))
            return fail(h, "an extent of its shape is no number");
        array->rank++;
        if (take(h, ',')) continue;
        if (!take(h, ')')) return fail(h, "its shape is no tuple");
        break;
    }
    return h->has_shape = true;
}

static bool read_header(Header *h) {
    const char *key;
    if (!take(h, '{')) return fail(h, "its header is no dictionary");
    while (!take(h, '}')) {
        if (!take_string(h, &key) || !take(h, ':')) return fail(h, "its header is damaged");
        bool ok = strcmp(key, "descr") == 0           ? read_descr(h)
                  : strcmp(key, "fortran_order") == 0 ? read_order(h)
                  : strcmp(key, "shape") == 0         ? read_shape(h)
                                                      : fail(h, "its header has key `%.32s`", key);
        if (!ok) return false;
        take(h, ',');
    }
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return fail(h, "its header lacks descr, fortran_order or shape");
    if (h->is_fortran && h->array->rank > 1)
        return fail(h, "it is in Fortran order; save numpy.ascontiguousarray(x)");
    return true;
}

/* Computes the bytes that the shape's elements need. */
static bool size_elements(Header *h) {
    NpyArray *array = h->array;
    uint64_t n_bytes = dtype_bytes(array->dtype);
    for (uint32_t k = 0; k < array->rank; k++) {
        uint64_t extent = (uint64_t)array->dims[k];
        if (extent && n_bytes > INT64_MAX / extent) return fail(h, "its shape is too large");
        n_bytes *= extent;
    }
    array->n_bytes = (size_t)n_bytes;
    return true;
}

bool npy_read_header(Arena *arena, const char *file, size_t n_bytes, NpyArray *array,
                     const char **error) {
    const uint8_t *bytes = (const uint8_t *)file;
    Header h = {.arena = arena, .error = error, .array = array};
    *array = (NpyArray){.rank = 0};
    if (n_bytes < 12 || memcmp(file, "\x93NUMPY", 6) != 0) return fail(&h, "it is no .npy file");
    if (bytes[6] < 1 || bytes[6] > 3)
        return fail(&h, "its format version is %u, not 1 to 3", bytes[6]);
    size_t begin = bytes[6] == 1 ? 10 : 12;
    size_t n_header = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1) n_header |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (n_header > NPY_MAX_HEADER_BYTES)
        return fail(&h, "its header has %zu bytes, more than %d", n_header, NPY_MAX_HEADER_BYTES);
    if (n_header > n_bytes - begin) return fail(&h, "it ends inside its header");
    h.at = file + begin;
    h.end = h.at + n_header;
    array->bytes = (const uint8_t *)h.end;
    return read_header(&h) && size_elements(&h);
}

bool npy_read(Arena *arena, const char *file, size_t n_bytes, NpyArray *array, const char **error) {
    if (!npy_read_header(arena, file, n_bytes, array, error)) return false;
    size_t n_left = n_bytes - (size_t)((const char *)array->bytes - file);
    if (array->n_bytes != n_left)
        *error = str_format(arena, "its shape needs %zu bytes of elements, but it has %zu",
                            array->n_bytes, n_left);
    return array->n_bytes == n_left;
}

/* The header is padded so that the elements begin at a multiple of 64. */
void npy_write(const NpyArray *array, Text *file) {
    Text header = {.arena = file->arena};
    text_printf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                descr_of(file->arena, array->dtype));
    for (uint32_t k = 0; k < array->rank; k++)
        text_printf(&header, "%s%lld%s", k ? ", " : "", (long long)array->dims[k],
                    array->rank == 1 ? "," : "");
    text_puts(&header, "), }");
    while ((10 + header.n_bytes + 1) % 64) text_puts(&header, " ");
    text_puts(&header, "\n");
    const char length[2] = {(char)(header.n_bytes & 255), (char)(header.n_bytes >> 8)};
    text_add(file, "\x93NUMPY\x01\x00", 8);
    text_add(file, length, 2);
    text_add(file, header.data, header.n_bytes);
    text_add(file, (const char *)array->bytes, array->n_bytes);
}
