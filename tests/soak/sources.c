/* Writes the programs that are drawn, so that other programs can be given them: tools/same_as.sh.
 */
#include "shapes.h"
#include "soak.h"

#include <inttypes.h>
#include <stdio.h>

enum { GRAPHS_FOR_A_SHAPE = 500 };

bool soak_write_source(const char *source, const char *path) {
    FILE *file = fopen(path, "w");
    bool is_written = file && fputs(source, file) >= 0;
    if (file && fclose(file)) is_written = false;
    return is_written;
}

static bool write_or_say(const char *source, const char *path) {
    bool is_written = soak_write_source(source, path);
    if (!is_written) fprintf(stderr, "soak: cannot write %s\n", path);
    return is_written;
}

static bool write_random(const char *folder, uint64_t seed) {
    Arena *arena = arena_new(NULL);
    Program program = soak_plain_program(arena, seed);
    const char *path = str_format(arena, "%s/random-%" PRIu64 ".g", folder, seed);
    bool is_written = write_or_say(program_print(&program), path);
    arena_free(arena);
    return is_written;
}

static bool write_shape(const char *folder, LoweringId id, uint64_t number) {
    Arena *arena = arena_new(NULL);
    const char *name = lowering_info(id)->name;
    const char *path = str_format(arena, "%s/shapes-%s-%" PRIu64 ".g", folder, name, number);
    bool is_written = write_or_say(lowering_source(arena, id, number), path);
    arena_free(arena);
    return is_written;
}

bool soak_write_sources(const Soak *soak, const char *folder) {
    bool is_written = true;
    for (uint64_t i = 0; i < soak->n && is_written; i++)
        is_written = write_random(folder, soak->seed + i);
    for (int id = 0; id < LOWERING_COUNT; id++)
        for (uint64_t i = 0; i <= soak->n / GRAPHS_FOR_A_SHAPE && is_written; i++)
            is_written = write_shape(folder, (LoweringId)id, soak->seed + i);
    return is_written;
}
