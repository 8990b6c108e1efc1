/* Tuning constants, expanded from tuning.def: integers are enumerators, so that arrays may have
 * them as bounds. */
#ifndef FUSEC_MACHINE_TUNING_H
#define FUSEC_MACHINE_TUNING_H

#define TUNING_FAMILY(title, about)
#define TUNING_INT(sym, value, ...) enum { sym = value };
#define TUNING_REAL(sym, value, ...) static const double sym = value;
#include "machine/tuning.def"

#endif
