/* Reading .safetensors: 8 bytes of little-endian header length, a JSON object of
 * {name: {dtype, shape, data_offsets}}, then the data without holes. Every number in the header
 * is checked against the file before a pointer is made of it. */
#define _DEFAULT_SOURCE
#include "exec/weights.h"

#include "host/error.h"
#include "manifest/expr.h"
#include "host/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HEADER_BYTES 100000000u

struct Weights {
    char name[256]; /* for messages */
    void *map;
    size_t n_map;
    const unsigned char *data; /* after the header */
    size_t n_data;
    json_t *root; /* owns the strings of the list */
    Weight *list; /* sorted by offset, then by address of the name */
    size_t n;
};

static const struct {
    const char *word;
    int64_t n_bytes;
} dtype_words[] = {
    {"F64", 8}, {"F32", 4}, {"F16", 2},  {"BF16", 2},    {"I64", 8},
    {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
    {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
};

const char *weights_dtype_word(frt_dtype dtype) {
    static const char *const words[FRT_DTYPE_COUNT] = {
#define X(id, number, name, safetensors, bytes) [number] = safetensors,
#include <frt_dtype.def>
#undef X
    };
    return words[dtype];
}

static frt_status bad(const Weights *w, frt_error *err, const char *tensor, const char *why) {
    return tensor ? frt_fail(err, FRT_E_WEIGHTS_BAD, "%s: tensor `%.200s` %s", w->name, tensor, why)
                  : frt_fail(err, FRT_E_WEIGHTS_BAD, "%s: %s", w->name, why);
}

/* A JSON array of at most `max` integers of at least 0. */
static bool read_numbers(const json_t *array, size_t max, int64_t *numbers, size_t *n) {
    *n = json_array_size(array);
    if (!json_is_array(array) || *n > max) {
        return false;
    }
    for (size_t i = 0; i < *n; i++) {
        const json_t *item = json_array_get(array, i);
        numbers[i] = json_integer_value(item);
        if (!json_is_integer(item) || numbers[i] < 0) {
            return false;
        }
    }
    return true;
}

/* Bytes of shape x dtype; -1 if they overflow. A dtype that is not known yields -2. */
static int64_t span_of(const Weight *weight) {
    int64_t n = -2;
    for (size_t i = 0; i < sizeof dtype_words / sizeof dtype_words[0]; i++) {
        if (strcmp(dtype_words[i].word, weight->dtype) == 0) {
            n = dtype_words[i].n_bytes;
        }
    }
    bool is_empty = false;
    for (int32_t i = 0; n > 0 && i < weight->rank; i++) {
        int64_t extent = weight->dims[i];
        is_empty = is_empty || extent == 0;
        if (!checked_mul(n, extent ? extent : 1, &n)) {
            return -1;
        }
    }
    return n > 0 && is_empty ? 0 : n;
}

static frt_status read_weight(Weights *w, const char *name, const json_t *entry, frt_error *err) {
    Weight weight = {.name = name};
    int64_t offsets[2];
    size_t n_offsets;
    size_t rank;
    if (!json_is_object(entry) || json_object_size(entry) != 3) {
        return bad(w, err, name, "is not {dtype, shape, data_offsets}");
    }
    weight.dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!weight.dtype) {
        return bad(w, err, name, "has no dtype");
    }
    if (!read_numbers(json_object_get(entry, "shape"), FRT_MAX_RANK, weight.dims, &rank)) {
        return bad(w, err, name, "has no shape of at most 8 extents");
    }
    weight.rank = (int32_t)rank;
    if (!read_numbers(json_object_get(entry, "data_offsets"), 2, offsets, &n_offsets) ||
        n_offsets != 2 || offsets[0] > offsets[1]) {
        return bad(w, err, name, "has no pair of ascending data_offsets");
    }
    if ((uint64_t)offsets[1] > w->n_data) {
        return frt_fail(err, FRT_E_WEIGHTS_BAD,
                        "%s: tensor `%.200s` ends at byte %lld of the data, but the file has %zu: "
                        "it is cut short",
                        w->name, name, (long long)offsets[1], w->n_data);
    }
    int64_t span = span_of(&weight);
    if (span != -2 && span != offsets[1] - offsets[0]) {
        return bad(w, err, name, "has data_offsets that do not fit its shape and dtype");
    }
    weight.data = w->data + offsets[0];
    weight.n_bytes = (size_t)(offsets[1] - offsets[0]);
    w->list[w->n++] = weight;
    return FRT_OK;
}

static int compare_weights(const void *a, const void *b) {
    const Weight *x = a;
    const Weight *y = b;
    if (x->data != y->data) {
        return (const char *)x->data < (const char *)y->data ? -1 : 1;
    }
    return (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

/* The tensors tile the data: no overlap, no hole, no rest. */
static frt_status check_tiling(Weights *w, frt_error *err) {
    const unsigned char *end = w->data;
    qsort(w->list, w->n, sizeof *w->list, compare_weights);
    for (size_t i = 0; i < w->n; i++) {
        const unsigned char *data = w->list[i].data;
        if (data != end) {
            return bad(w, err, w->list[i].name,
                       data < end ? "overlaps another tensor" : "follows a hole in the data");
        }
        end = data + w->list[i].n_bytes;
    }
    if (end != w->data + w->n_data) {
        return bad(w, err, NULL, "there is data after the last tensor");
    }
    return FRT_OK;
}

static frt_status read_header(Weights *w, const char *header, size_t n_header, frt_error *err) {
    json_error_t why;
    if (n_header == 0 || header[0] != '{') {
        return bad(w, err, NULL, "the header is not a JSON object");
    }
    w->root = json_loadb(header, n_header, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(w->root)) {
        return frt_fail(err, FRT_E_WEIGHTS_BAD, "%s: the header is not valid JSON: %.160s", w->name,
                        why.text);
    }
    w->list = mem_alloc(json_object_size(w->root), sizeof *w->list);
    if (!w->list) {
        return frt_fail_memory(err, json_object_size(w->root) * sizeof *w->list);
    }
    const char *name;
    json_t *entry;
    json_object_foreach(w->root, name, entry) {
        frt_status status = FRT_OK;
        if (strcmp(name, "__metadata__") != 0) {
            status = read_weight(w, name, entry, err);
        } else if (!json_is_object(entry)) {
            status = bad(w, err, NULL, "__metadata__ is not an object");
        }
        if (status) {
            return status;
        }
    }
    return check_tiling(w, err);
}

static frt_status parse(Weights *w, const void *bytes, size_t n_bytes, frt_error *err) {
    const unsigned char *p = bytes;
    uint64_t n_header = 0;
    if (n_bytes < 8) {
        return bad(w, err, NULL, "too short for a .safetensors file");
    }
    for (int i = 7; i >= 0; i--) {
        n_header = n_header << 8 | p[i];
    }
    if (n_header > MAX_HEADER_BYTES || n_header > n_bytes - 8) {
        return bad(w, err, NULL,
                   "the header's length lies outside the file: not a .safetensors "
                   "file, or cut short");
    }
    w->data = p + 8 + n_header;
    w->n_data = n_bytes - 8 - (size_t)n_header;
    return read_header(w, (const char *)p + 8, (size_t)n_header, err);
}

frt_status weights_parse(const void *bytes, size_t n_bytes, const char *name, Weights **weights,
                         frt_error *err) {
    Weights *w = mem_alloc(1, sizeof *w);
    if (!w) {
        return frt_fail_memory(err, sizeof *w);
    }
    snprintf(w->name, sizeof w->name, "%s", name);
    frt_status status = parse(w, bytes, n_bytes, err);
    if (status) {
        weights_close(w);
        return status;
    }
    *weights = w;
    return FRT_OK;
}

static frt_status map_file(int file, const char *path, void **map, size_t *n, frt_error *err) {
    struct stat info;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
        return frt_fail(err, FRT_E_FILE, "%s is no regular file", path);
    }
    if (info.st_size == 0) {
        return frt_fail(err, FRT_E_WEIGHTS_BAD, "%s is empty", path);
    }
    *n = (size_t)info.st_size;
    *map = mmap(NULL, *n, PROT_READ, MAP_PRIVATE, file, 0);
    if (*map == MAP_FAILED) {
        *map = NULL;
        return frt_fail(err, FRT_E_FILE, "cannot map %s: %s", path, strerror(errno));
    }
    return FRT_OK;
}

frt_status weights_open(const char *path, Weights **weights, frt_error *err) {
    /* A FIFO must not be waited for: it is refused like all that is no regular file. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return frt_fail(err, errno == ENOENT ? FRT_E_WEIGHTS_MISSING : FRT_E_FILE,
                        "cannot open weights file %s: %s", path, strerror(errno));
    }
    void *map = NULL;
    size_t n = 0;
    frt_status status = map_file(file, path, &map, &n, err);
    close(file);
    if (!status) {
        status = weights_parse(map, n, path, weights, err);
    }
    if (status) {
        if (map) {
            munmap(map, n);
        }
        return status;
    }
    (*weights)->map = map;
    (*weights)->n_map = n;
    return FRT_OK;
}

void weights_close(Weights *w) {
    if (!w) {
        return;
    }
    if (w->map) {
        munmap(w->map, w->n_map);
    }
    json_decref(w->root);
    mem_free(w->list);
    mem_free(w);
}

const Weight *weights_find(const Weights *w, const char *name) {
    for (size_t i = 0; i < w->n; i++) {
        if (strcmp(w->list[i].name, name) == 0) {
            return &w->list[i];
        }
    }
    return NULL;
}
