/* `--report`: the page of a compilation, and of a measurement. */
#ifndef FUSEC_CLI_REPORT_H
#define FUSEC_CLI_REPORT_H

#include "cli.h"

/* Microseconds per launch of one graph, without fusion and with it. */
typedef struct CliTimes {
    const char *device;
    uint32_t graph; /* of the module */
    const double *before, *after;
} CliTimes;

/* Fails where the report would take the place of the source or of the output. */
fusec_status cli_check_report(Cli *cli);
/* The page, on the driver's arena. Under the driver's guard, after driver_build. `times` may be
 * NULL: then it is about all graphs, else about the one that was measured. */
fusec_status cli_report_text(Driver *driver, const CliTimes *times, const char **text);

#endif
