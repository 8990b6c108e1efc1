/* The name that a misspelt name stands for, for "did you mean". The caller tries candidates one
 * after the other; of equally near candidates the first wins. An edit inserts, erases or replaces a
 * letter, or swaps two neighbours. A candidate is near when a third of the letters, or one letter,
 * is edited; an abbreviation counts as one edit. */
#ifndef FUSEC_BASE_NEAREST_H
#define FUSEC_BASE_NEAREST_H

typedef struct Nearest {
    const char *name;
    const char *best; /* the nearest candidate so far; NULL: none is near */
    unsigned limit;   /* edits that a better candidate stays below */
} Nearest;

/* Both strings are borrowed for as long as the result is used. */
Nearest nearest_to(const char *name);
void nearest_try(Nearest *nearest, const char *candidate);

#endif
