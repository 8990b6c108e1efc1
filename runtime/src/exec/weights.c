/* Reading .safetensors: 8 bytes of little-endian header length, a JSON object of {name: {dtype,
 * shape, data_offsets}}, then the data without gaps. Every number of the header is checked against
 * the file before it becomes a pointer. */
#define _DEFAULT_SOURCE
#include "exec/weights.h"

#include "host/error.h"
#include "host/json.h"
#include "manifest/expr.h"
#include "host/mem.h"
#include "host/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HEADER_BYTES 100000000u

enum { LENGTH_BYTES = 8 }; /* size of the header length */

struct Weights {
    char name[256]; /* for messages */
    char *header;   /* the JSON text, decoded in place: the memory of the names in `list` */
    int file;       /* -1: the elements are at `data` */
    const unsigned char *data;
    uint64_t data_begin; /* for a file: offset of the first element */
    size_t n_data;
    Weight *list; /* sorted by name */
    size_t n, n_room;
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
#define X(symbol, number, name, safetensors, bytes, map) [number] = safetensors,
#include <frt_dtype.def>
#undef X
    };
    return words[dtype];
}

static frt_status bad(const Weights *w, frt_error *err, const char *tensor, const char *why) {
    return tensor ? frt_fail(err, FRT_E_WEIGHTS_BAD, "%s: tensor `%.200s` %s", w->name, tensor, why)
                  : frt_fail(err, FRT_E_WEIGHTS_BAD, "%s: %s", w->name, why);
}

/* Fails for text that is no JSON, else because of what the tensor's value is. */
static frt_status bad_value(const Weights *w, const Json *json, frt_error *err, const char *tensor,
                            const char *why) {
    if (!json->wrong) {
        return bad(w, err, tensor, why);
    }
    return frt_fail(err, FRT_E_WEIGHTS_BAD, "%s: the header is not valid JSON: %s, at byte %zu",
                    w->name, json->wrong, (size_t)(json->at - json->begin));
}

/* Reads an array of at most `max` integers, each at least 0. */
static bool read_numbers(Json *json, int32_t max, int64_t *numbers, int32_t *n) {
    bool is_first = true;
    *n = 0;
    if (json_kind(json) != JSON_ARRAY) {
        return false;
    }
    while (json_more(json, JSON_ARRAY, &is_first)) {
        if (*n == max || json_kind(json) != JSON_NUMBER || !json_integer(json, &numbers[*n]) ||
            numbers[*n] < 0) {
            return false;
        }
        ++*n;
    }
    return !json->wrong;
}

/* Bytes of a tensor of this shape and dtype; -1 if they overflow, -2 for an unknown dtype. */
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

/* The members of a tensor's value, each of which is there once. */
typedef enum Member { MEMBER_DTYPE, MEMBER_SHAPE, MEMBER_OFFSETS, N_MEMBERS } Member;

static Member member_of(const char *name) {
    static const char *const names[N_MEMBERS] = {"dtype", "shape", "data_offsets"};
    int i = 0;
    while (i < N_MEMBERS && strcmp(name, names[i]) != 0) {
        i++;
    }
    return (Member)i;
}

/* Reads one member; NULL, or what the tensor lacks. */
static const char *read_member(Json *json, Member member, Weight *weight, int64_t offsets[2]) {
    int32_t n_offsets;
    switch (member) {
    case MEMBER_DTYPE:
        weight->dtype = json_kind(json) == JSON_STRING ? json_string(json) : NULL;
        return weight->dtype ? NULL : "has no dtype";
    case MEMBER_SHAPE:
        return read_numbers(json, FRT_MAX_RANK, weight->dims, &weight->rank)
                   ? NULL
                   : "has no shape of at most 8 extents";
    case MEMBER_OFFSETS:
        return read_numbers(json, 2, offsets, &n_offsets) && n_offsets == 2 &&
                       offsets[0] <= offsets[1]
                   ? NULL
                   : "has no pair of ascending data_offsets";
    case N_MEMBERS:
        break;
    }
    return "is not {dtype, shape, data_offsets}";
}

/* Reads a tensor's value without comparing it with the file. */
static frt_status read_members(const Weights *w, Json *json, Weight *weight, int64_t offsets[2],
                               frt_error *err) {
    static const char shape[] = "is not {dtype, shape, data_offsets}";
    bool is_first = true, has[N_MEMBERS] = {false};
    if (json_kind(json) != JSON_OBJECT) {
        return bad_value(w, json, err, weight->name, shape);
    }
    while (json_more(json, JSON_OBJECT, &is_first)) {
        const char *name = json_name(json);
        Member member = name ? member_of(name) : N_MEMBERS;
        if (member == N_MEMBERS || has[member]) {
            return bad_value(w, json, err, weight->name, shape);
        }
        has[member] = true;
        const char *lacks = read_member(json, member, weight, offsets);
        if (lacks) {
            return bad_value(w, json, err, weight->name, lacks);
        }
    }
    bool has_all = has[MEMBER_DTYPE] && has[MEMBER_SHAPE] && has[MEMBER_OFFSETS];
    return json->wrong || !has_all ? bad_value(w, json, err, weight->name, shape) : FRT_OK;
}

/* Reserves room for one more tensor in the list. */
static frt_status grow_list(Weights *w, frt_error *err) {
    enum { FIRST = 64 };
    if (w->n < w->n_room) {
        return FRT_OK;
    }
    size_t n_room = w->n_room ? 2 * w->n_room : FIRST;
    Weight *list = mem_resize(w->list, n_room, sizeof *list);
    if (!list) {
        return frt_fail_memory(err, n_room * sizeof *list);
    }
    w->list = list;
    w->n_room = n_room;
    return FRT_OK;
}

static frt_status read_weight(Weights *w, Json *json, const char *name, frt_error *err) {
    Weight weight = {.name = name};
    int64_t offsets[2] = {0, 0};
    frt_status status = read_members(w, json, &weight, offsets, err);
    if (!status) {
        status = grow_list(w, err);
    }
    if (status) {
        return status;
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
    weight.offset = (uint64_t)offsets[0];
    weight.n_bytes = (size_t)(offsets[1] - offsets[0]);
    w->list[w->n++] = weight;
    return FRT_OK;
}

static int compare_weights(const void *a, const void *b) {
    const Weight *x = a;
    const Weight *y = b;
    if (x->offset != y->offset) {
        return x->offset < y->offset ? -1 : 1;
    }
    return (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

/* Checks that the tensors tile the data: no overlap, no gap, no rest. */
static frt_status check_tiling(Weights *w, frt_error *err) {
    uint64_t end = 0;
    if (w->n > 0) qsort(w->list, w->n, sizeof *w->list, compare_weights); /* else list is NULL */
    for (size_t i = 0; i < w->n; i++) {
        uint64_t offset = w->list[i].offset;
        if (offset != end) {
            return bad(w, err, w->list[i].name,
                       offset < end ? "overlaps another tensor" : "follows a hole in the data");
        }
        end = offset + w->list[i].n_bytes;
    }
    if (end != w->n_data) {
        return bad(w, err, NULL, "there is data after the last tensor");
    }
    return FRT_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const Weight *)a)->name, ((const Weight *)b)->name);
}

/* Sorts the list for weights_find. */
static frt_status sort_names(Weights *w, frt_error *err) {
    if (w->n > 0) qsort(w->list, w->n, sizeof *w->list, compare_names);
    for (size_t i = 1; i < w->n; i++) {
        if (compare_names(&w->list[i - 1], &w->list[i]) == 0) {
            return bad(w, err, w->list[i].name, "is there twice: a duplicate name");
        }
    }
    return FRT_OK;
}

static frt_status skip_metadata(const Weights *w, Json *json, frt_error *err) {
    bool is_object = json_kind(json) == JSON_OBJECT;
    return is_object && json_skip(json)
               ? FRT_OK
               : bad_value(w, json, err, NULL, "__metadata__ is not an object");
}

/* Reads the `n_header` bytes at w->header, which stay the memory of all names. */
static frt_status read_header(Weights *w, size_t n_header, frt_error *err) {
    Json json = json_new(w->header, n_header);
    bool is_first = true;
    if (n_header == 0 || w->header[0] != '{') {
        return bad(w, err, NULL, "the header is not a JSON object");
    }
    while (json_more(&json, JSON_OBJECT, &is_first)) {
        const char *name = json_name(&json);
        if (!name) {
            break;
        }
        frt_status status = strcmp(name, "__metadata__") == 0 ? skip_metadata(w, &json, err)
                                                              : read_weight(w, &json, name, err);
        if (status) {
            return status;
        }
    }
    if (json.wrong || !json_is_at_end(&json)) {
        json.wrong = json.wrong ? json.wrong : "text follows the object";
        return bad_value(w, &json, err, NULL, NULL);
    }
    frt_status status = check_tiling(w, err);
    return status ? status : sort_names(w, err);
}

/* Reads the header length from the first 8 of the file's `n_bytes` bytes. */
static frt_status read_length(Weights *w, const unsigned char *p, uint64_t n_bytes,
                              size_t *n_header, frt_error *err) {
    uint64_t n = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) {
        n = n << 8 | p[i];
    }
    if (n > MAX_HEADER_BYTES || n > n_bytes - LENGTH_BYTES) {
        return bad(w, err, NULL,
                   "the header's length lies outside the file: not a .safetensors "
                   "file, or cut short");
    }
    *n_header = (size_t)n;
    w->data_begin = LENGTH_BYTES + n;
    w->n_data = (size_t)(n_bytes - w->data_begin);
    return FRT_OK;
}

static frt_status make_header(Weights *w, size_t n_header, frt_error *err) {
    w->header = mem_alloc(n_header, 1);
    return w->header ? FRT_OK : frt_fail_memory(err, n_header);
}

static frt_status parse(Weights *w, const void *bytes, size_t n_bytes, frt_error *err) {
    const unsigned char *p = bytes;
    size_t n_header;
    if (n_bytes < LENGTH_BYTES) {
        return bad(w, err, NULL, "too short for a .safetensors file");
    }
    frt_status status = read_length(w, p, n_bytes, &n_header, err);
    if (status) {
        return status;
    }
    w->data = p + w->data_begin;
    status = make_header(w, n_header, err);
    if (status) {
        return status;
    }
    memcpy(w->header, p + LENGTH_BYTES, n_header);
    return read_header(w, n_header, err);
}

static frt_status new_weights(const char *name, Weights **weights, frt_error *err) {
    Weights *w = *weights = mem_alloc(1, sizeof *w);
    if (!w) {
        return frt_fail_memory(err, sizeof *w);
    }
    w->file = -1;
    snprintf(w->name, sizeof w->name, "%s", name);
    return FRT_OK;
}

/* Returns the weights in *weights, or closes them on an error. */
static frt_status give(Weights *w, frt_status status, Weights **weights) {
    if (status) {
        weights_close(w);
        return status;
    }
    *weights = w;
    return FRT_OK;
}

frt_status weights_parse(const void *bytes, size_t n_bytes, const char *name, Weights **weights,
                         frt_error *err) {
    Weights *w;
    frt_status status = new_weights(name, &w, err);
    return status ? status : give(w, parse(w, bytes, n_bytes, err), weights);
}

/* Reads bytes [at, at + n) of the file, all of them. */
static frt_status read_file(const Weights *w, uint64_t at, void *to, size_t n, frt_error *err) {
    int64_t got = read_at(w->file, to, n, at);
    if (got < 0) {
        return frt_fail(err, FRT_E_FILE, "cannot read %s: %s", w->name, strerror(errno));
    }
    return (size_t)got < n ? bad(w, err, NULL, "was cut short while it was read") : FRT_OK;
}

static frt_status parse_file(Weights *w, const char *path, frt_error *err) {
    struct stat info;
    unsigned char length[LENGTH_BYTES];
    size_t n_header = 0;
    if (fstat(w->file, &info) != 0 || !S_ISREG(info.st_mode)) {
        return frt_fail(err, FRT_E_FILE, "%s is no regular file", path);
    }
    if (info.st_size == 0) {
        return frt_fail(err, FRT_E_WEIGHTS_BAD, "%s is empty", path);
    }
    if (info.st_size < LENGTH_BYTES) {
        return bad(w, err, NULL, "too short for a .safetensors file");
    }
    frt_status status = read_file(w, 0, length, sizeof length, err);
    if (!status) {
        status = read_length(w, length, (uint64_t)info.st_size, &n_header, err);
    }
    if (status) {
        return status;
    }
    status = make_header(w, n_header, err);
    if (!status) {
        status = read_file(w, LENGTH_BYTES, w->header, n_header, err);
    }
    return status ? status : read_header(w, n_header, err);
}

frt_status weights_open(const char *path, Weights **weights, frt_error *err) {
    /* O_NONBLOCK, because opening a FIFO would wait. It is refused like every file that is not
     * regular. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return frt_fail(err, errno == ENOENT ? FRT_E_WEIGHTS_MISSING : FRT_E_FILE,
                        "cannot open weights file %s: %s", path, strerror(errno));
    }
    Weights *w;
    frt_status status = new_weights(path, &w, err);
    if (status) {
        close(file);
        return status;
    }
    w->file = file;
    return give(w, parse_file(w, path, err), weights);
}

frt_status weights_read(const Weights *w, const Weight *weight, size_t at, void *to, size_t n,
                        frt_error *err) {
    if (w->file >= 0) {
        return read_file(w, w->data_begin + weight->offset + at, to, n, err);
    }
    memcpy(to, w->data + weight->offset + at, n);
    return FRT_OK;
}

void weights_close(Weights *w) {
    if (!w) {
        return;
    }
    if (w->file >= 0) {
        close(w->file);
    }
    mem_free(w->list);
    mem_free(w->header);
    mem_free(w);
}

const Weight *weights_find(const Weights *w, const char *name) {
    Weight key = {.name = name};
    return w->n ? bsearch(&key, w->list, w->n, sizeof key, compare_names) : NULL;
}
