/* Counts how often a row's largest probability is at its label:
 *
 *   fusec run digits.g --input x=@images.npy --output p=@p.npy
 *   count_right p.npy labels.npy                         360 of 364 right: 98.90 %
 */
#include "held_out.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    NpyFile p, labels = {0};
    if (argc != 3) return fprintf(stderr, "usage: count_right P.npy LABELS.npy\n"), 2;
    const char *path = argv[1], *error = npy_read(path, "<f4", 4, &p);
    if (!error) error = npy_read(path = argv[2], "<i4", 4, &labels);
    int64_t n = p.dims[0];
    if (!error &&
        (p.rank != 2 || p.dims[1] != N_DIGITS || labels.rank != 1 || labels.dims[0] != n || n < 1))
        error = "not one label for each row of ten probabilities";
    if (error)
        fprintf(stderr, "count_right: %s: %s\n", path, error);
    else
        held_out_print_right(p.data, labels.data, n);
    free(p.data);
    free(labels.data);
    return error != NULL;
}
