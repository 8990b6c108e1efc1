/* Weights in one file or several. Like a header, an index is read whole and checked before any
 * lookup, and its text is the memory of its names. */
#define _DEFAULT_SOURCE
#include "exec/shards.h"

#include "host/error.h"
#include "host/json.h"
#include "host/mem.h"
#include "host/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_INDEX_BYTES 100000000u

typedef struct Entry {
    const char *tensor;
    const char *file;
    size_t shard; /* the file among those opened */
} Entry;

struct Shards {
    const char *path; /* of the index, while it is read */
    char *text;       /* of the index; NULL: there is one file alone */
    Entry *entries;   /* sorted by tensor */
    size_t n_entries, n_room;
    Weights **files;
    size_t n_files;
};

static frt_status bad(const Shards *s, const Json *json, const char *why, frt_error *err) {
    return frt_fail(err, FRT_E_WEIGHTS_BAD, "%.200s: %s", s->path, json->wrong ? json->wrong : why);
}

static frt_status add_entry(Shards *s, const char *tensor, const char *file, frt_error *err) {
    enum { FIRST = 64 };
    if (s->n_entries == s->n_room) {
        size_t n_room = s->n_room ? 2 * s->n_room : FIRST;
        Entry *entries = mem_resize(s->entries, n_room, sizeof *entries);
        if (!entries) {
            return frt_fail_memory(err, n_room * sizeof *entries);
        }
        s->entries = entries;
        s->n_room = n_room;
    }
    s->entries[s->n_entries++] = (Entry){tensor, file, 0};
    return FRT_OK;
}

/* Reads {"tensor": "file", ..}. */
static frt_status read_map(Shards *s, Json *json, frt_error *err) {
    bool is_first = true;
    if (json_kind(json) != JSON_OBJECT) {
        return bad(s, json, "its weight_map is no object", err);
    }
    while (json_more(json, JSON_OBJECT, &is_first)) {
        const char *tensor = json_name(json);
        const char *file = tensor && json_kind(json) == JSON_STRING ? json_string(json) : NULL;
        if (!file || !*file || strchr(file, '/')) {
            return bad(s, json, "its weight_map names no file in its own folder", err);
        }
        frt_status status = add_entry(s, tensor, file, err);
        if (status) {
            return status;
        }
    }
    return json->wrong ? bad(s, json, NULL, err) : FRT_OK;
}

static frt_status read_index(Shards *s, size_t n_bytes, frt_error *err) {
    Json json = json_new(s->text, n_bytes);
    bool is_first = true, has_map = false;
    if (json_kind(&json) != JSON_OBJECT) {
        return bad(s, &json, "it is no JSON object", err);
    }
    while (json_more(&json, JSON_OBJECT, &is_first)) {
        const char *name = json_name(&json);
        bool is_map = name && strcmp(name, "weight_map") == 0;
        if (is_map && has_map) {
            return bad(s, &json, "it has two weight_maps", err);
        }
        has_map = has_map || is_map;
        frt_status status = is_map ? read_map(s, &json, err) : FRT_OK;
        if (status) {
            return status;
        }
        if (!is_map && (!name || !json_skip(&json))) {
            break;
        }
    }
    bool is_good = !json.wrong && has_map && json_is_at_end(&json);
    return is_good ? FRT_OK : bad(s, &json, "it is not {\"weight_map\": {..}}", err);
}

/* Reads the text of the index. */
static frt_status read_text(Shards *s, int file, size_t *n_bytes, frt_error *err) {
    struct stat info;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > MAX_INDEX_BYTES) {
        return frt_fail(err, FRT_E_FILE, "%.200s is no regular file of at most %u bytes", s->path,
                        MAX_INDEX_BYTES);
    }
    *n_bytes = (size_t)info.st_size;
    s->text = mem_alloc(*n_bytes + 1, 1);
    if (!s->text) {
        return frt_fail_memory(err, *n_bytes + 1);
    }
    if (read_at(file, s->text, *n_bytes, 0) != (int64_t)*n_bytes) {
        return frt_fail(err, FRT_E_FILE, "cannot read %.200s", s->path);
    }
    return FRT_OK;
}

static int compare_files(const void *a, const void *b) {
    return strcmp(((const Entry *)a)->file, ((const Entry *)b)->file);
}

static int compare_tensors(const void *a, const void *b) {
    return strcmp(((const Entry *)a)->tensor, ((const Entry *)b)->tensor);
}

static frt_status open_file(Shards *s, const char *name, frt_error *err) {
    const char *slash = strrchr(s->path, '/');
    size_t n_folder = slash ? (size_t)(slash - s->path) + 1 : 0;
    size_t n = n_folder + strlen(name) + 1;
    char *path = mem_alloc(n, 1);
    if (!path) {
        return frt_fail_memory(err, n);
    }
    snprintf(path, n, "%.*s%s", (int)n_folder, s->path, name);
    frt_status status = weights_open(path, &s->files[s->n_files], err);
    s->n_files += !status;
    mem_free(path);
    return status == FRT_E_WEIGHTS_MISSING ? FRT_E_FILE : status; /* the index is not missing */
}

/* Opens each file once, and sorts the entries for shards_find. */
static frt_status open_files(Shards *s, frt_error *err) {
    s->files = mem_alloc(s->n_entries + 1, sizeof *s->files);
    if (!s->files) {
        return frt_fail_memory(err, s->n_entries * sizeof *s->files);
    }
    if (s->n_entries > 0) qsort(s->entries, s->n_entries, sizeof *s->entries, compare_files);
    for (size_t i = 0; i < s->n_entries; i++) {
        bool is_new = i == 0 || compare_files(&s->entries[i - 1], &s->entries[i]) != 0;
        frt_status status = is_new ? open_file(s, s->entries[i].file, err) : FRT_OK;
        if (status) {
            return status;
        }
        s->entries[i].shard = s->n_files - 1;
    }
    if (s->n_entries > 0) qsort(s->entries, s->n_entries, sizeof *s->entries, compare_tensors);
    for (size_t i = 1; i < s->n_entries; i++) {
        if (compare_tensors(&s->entries[i - 1], &s->entries[i]) == 0) {
            return frt_fail(err, FRT_E_WEIGHTS_BAD, "%.200s: tensor `%.200s` is there twice",
                            s->path, s->entries[i].tensor);
        }
    }
    return FRT_OK;
}

static frt_status open_index(Shards *s, frt_error *err) {
    size_t n_bytes = 0;
    int file = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return frt_fail(err, errno == ENOENT ? FRT_E_WEIGHTS_MISSING : FRT_E_FILE,
                        "cannot open weights file %.200s: %s", s->path, strerror(errno));
    }
    frt_status status = read_text(s, file, &n_bytes, err);
    close(file);
    if (!status) {
        status = read_index(s, n_bytes, err);
    }
    return status ? status : open_files(s, err);
}

static frt_status open_alone(Shards *s, frt_error *err) {
    s->files = mem_alloc(1, sizeof *s->files);
    if (!s->files) {
        return frt_fail_memory(err, sizeof *s->files);
    }
    frt_status status = weights_open(s->path, &s->files[0], err);
    s->n_files += !status;
    return status;
}

frt_status shards_open(const char *path, Shards **shards, frt_error *err) {
    static const char ending[] = ".json";
    size_t n = strlen(path);
    bool is_index = n >= sizeof ending && strcmp(path + n + 1 - sizeof ending, ending) == 0;
    Shards *s = mem_alloc(1, sizeof *s);
    if (!s) {
        return frt_fail_memory(err, sizeof *s);
    }
    s->path = path;
    frt_status status = is_index ? open_index(s, err) : open_alone(s, err);
    if (status) {
        shards_close(s);
        return status;
    }
    *shards = s;
    return FRT_OK;
}

void shards_close(Shards *s) {
    if (!s) {
        return;
    }
    for (size_t i = 0; i < s->n_files; i++) {
        weights_close(s->files[i]);
    }
    mem_free(s->files);
    mem_free(s->entries);
    mem_free(s->text);
    mem_free(s);
}

frt_status shards_find(const Shards *s, const char *name, const Weights **file,
                       const Weight **weight, frt_error *err) {
    const Entry key = {.tensor = name};
    const Entry *entry = NULL;
    *weight = NULL;
    if (s->n_entries > 0) {
        entry = bsearch(&key, s->entries, s->n_entries, sizeof key, compare_tensors);
    }
    if (s->text && !entry) {
        return FRT_OK;
    }
    *file = s->files[entry ? entry->shard : 0];
    *weight = weights_find(*file, name);
    return *weight || !entry ? FRT_OK
                             : frt_fail(err, FRT_E_WEIGHTS_BAD,
                                        "tensor `%.200s` is not in %.200s, where the "
                                        "index has it",
                                        name, entry->file);
}
