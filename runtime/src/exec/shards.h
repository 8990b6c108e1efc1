/* The weights of a model: one .safetensors file, or several with an index of which has what, a JSON
 * file {"metadata": {..}, "weight_map": {"tensor": "file", ..}} in their folder. */
#ifndef FRT_SHARDS_H
#define FRT_SHARDS_H

#include "exec/weights.h"

typedef struct Shards Shards;

/* A path that ends in .json is an index. All files are opened, and their headers checked. FRT_E_*
 * as weights_open. */
frt_status shards_open(const char *path, Shards **shards, frt_error *err);
void shards_close(Shards *shards);

/* The tensor and the file that has it; *weight is NULL if there is none of this name.
 * FRT_E_WEIGHTS_BAD: the file that the index names lacks it. */
frt_status shards_find(const Shards *shards, const char *name, const Weights **file,
                       const Weight **weight, frt_error *err);

#endif
