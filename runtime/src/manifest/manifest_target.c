/* The target's line and the levels after it. */
#include "manifest/manifest_text.h"

#include <string.h>

frt_status text_target(TextReader *r) {
    int kind = 0;
    while (kind < N_TARGETS && (!slice_is(r->fields[1], target_info((frt_target)kind)->word) ||
                                r->n_fields > target_info((frt_target)kind)->most_fields)) {
        kind++;
    }
    if (kind == N_TARGETS) {
        return text_fail(r, "the target is neither `cuda ARCH` nor `cpu ARCH [FEATURES]`");
    }
    if (r->m->arch) {
        return text_fail(r, "a second `target` line");
    }
    r->m->target = (frt_target)kind;
    r->m->arch = text_word(r, r->fields[2]);
    r->m->features = r->n_fields == 4 ? text_word(r, r->fields[3]) : NULL;
    return FRT_OK;
}

frt_status text_level(TextReader *r) {
    Manifest *m = r->m;
    if (!m->arch || target_info(m->target)->has_launches) {
        return text_fail(r, "a level must follow the target's line, and the target be a CPU");
    }
    if (m->n_levels == FRT_MAX_LEVELS) {
        return text_fail(r, "more than %d levels", FRT_MAX_LEVELS);
    }
    Level level = {text_word(r, r->fields[1]), text_word(r, r->fields[2]), NULL};
    if (r->n_fields == 4) {
        level.features = text_word(r, r->fields[3]);
    }
    for (uint32_t i = 0; i < m->n_levels; i++) {
        if (strcmp(m->levels[i].name, level.name) == 0) {
            return text_fail(r, "level `%s` is declared twice", level.name);
        }
    }
    m->levels[m->n_levels++] = level;
    return FRT_OK;
}
