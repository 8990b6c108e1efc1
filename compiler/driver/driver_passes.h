/* The driver's own passes: they need the source, the back end or the ledger. See
 * pipeline/passes.def. */
#ifndef FUSEC_DRIVER_DRIVER_PASSES_H
#define FUSEC_DRIVER_DRIVER_PASSES_H

#include "driver/driver.h"

/* `user` of their Planning is the driver. */
bool parse_pass(const Planning *p);
bool check_pass(const Planning *p);
bool contract_pass(const Planning *p);
bool ledger_pass(const Planning *p);
bool legal_pass(const Planning *p);
bool lower_pass(const Planning *p);
bool manifest_pass(const Planning *p);
bool emit_pass(const Planning *p);

#endif
