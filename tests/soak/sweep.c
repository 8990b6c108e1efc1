#include "soak.h"
void soak_sweep(Soak *soak) { soak->n_skipped++; }
