/* Joins the two files to one set, and checks that they belong together. */
#include "held_out.h"

#include <stdio.h>
#include <stdlib.h>

static const char *join(const char *folder, const char *name, char *path, size_t n_bytes) {
    int length = snprintf(path, n_bytes, "%s/%s", folder, name);
    return length < 0 || (size_t)length >= n_bytes ? "the folder's name is too long" : NULL;
}

const char *held_out_read(const char *folder, HeldOut *held_out) {
    char images[512], labels[512];
    *held_out = (HeldOut){0};
    const char *error = join(folder, "images.npy", images, sizeof images);
    if (!error) error = join(folder, "labels.npy", labels, sizeof labels);
    if (!error)
        error = join(folder, "weights.safetensors", held_out->weights_path,
                     sizeof held_out->weights_path);
    if (error) return error;
    if (npy_read(images, "<f4", 4, &held_out->images)) return "images.npy cannot be read as f32";
    if (npy_read(labels, "<i4", 4, &held_out->labels)) return "labels.npy cannot be read as i32";
    int64_t n = held_out->images.dims[0];
    if (held_out->images.rank != 2 || held_out->images.dims[1] != N_PIXELS || n < 1 ||
        held_out->labels.rank != 1 || held_out->labels.dims[0] != n)
        return "images.npy and labels.npy are not one label for each image of 64 pixels";
    held_out->n = n;
    held_out->p = calloc((size_t)n * N_DIGITS, sizeof *held_out->p);
    return held_out->p ? NULL : "out of memory";
}

void held_out_free(HeldOut *held_out) {
    free(held_out->images.data);
    free(held_out->labels.data);
    free(held_out->p);
}

void held_out_print_right(const float *p, const int32_t *labels, int64_t n) {
    int64_t n_right = 0;
    for (int64_t i = 0; i < n; i++, p += N_DIGITS) {
        int best = 0;
        for (int k = 1; k < N_DIGITS; k++)
            if (p[k] > p[best]) best = k;
        n_right += best == labels[i] && p[best] > 0; /* a row of NaN is not right */
    }
    printf("%lld of %lld right: %.2f %%\n", (long long)n_right, (long long)n,
           100.0 * (double)n_right / (double)n);
}
