/* `--report`: the page of a compilation, and that of a measurement, for which the source is
 * compiled once for running with fusion, once without, and kept with its plans; what those expect.
 */
#ifndef FUSEC_CLI_REPORT_H
#define FUSEC_CLI_REPORT_H

#include "cli/exec.h"

/* Microseconds of every launch of a graph. */
typedef struct CliSide {
    double *us;
    uint32_t n_launches;
} CliSide;

typedef struct CliTimes {
    const char *device;
    uint32_t graph; /* of the module */
    CliSide before, after;
} CliTimes;

/* Fails where the report would take the place of the source or of the output. */
fusec_status cli_check_report(Cli *cli);
/* Fails where --card names a machine of another kind than the target's. */
fusec_status cli_check_card(Cli *cli, const Target *target);
/* The page, on the driver's arena. Under the driver's guard, after driver_build. `times` may be
 * NULL: then it is about all graphs, else about the one that was measured. */
fusec_status cli_report_text(Driver *driver, const CliTimes *times, const char **text);

/* Of one launch, at the dims of a run. */
typedef struct CliExpected {
    double n_flops; /* of its products: two for each multiplication */
    double us;      /* by the cost model */
    /* That memory or multiplying takes at the device's rates; 0: they are unknown. */
    double limit_us;
} CliExpected;

/* A source that is measured, and its page. All zero but for `cli` before it is opened. */
typedef struct CliPage {
    Cli *cli;
    Driver driver;
    bool is_open;
    const char *text; /* the source */
    size_t n_bytes;
    const Target *target;
    CliTimes times;
} CliPage;

/* Compiles the source that the command line names and opens it for running; without --report it may
 * be an artifact. Close both, after a failure too. */
fusec_status cli_page_open(CliPage *page, Exec *exec);
/* The same graph compiled without fusion. */
fusec_status cli_page_open_plain(CliPage *page, Exec *exec);
/* Writes the page about page->times at the dims that `exec` ran with. */
fusec_status cli_page_write(CliPage *page, const Exec *exec);
/* Of every launch of a run, on the cli's arena; none of an artifact. */
fusec_status cli_page_expect(CliPage *page, const Exec *exec, CliExpected **launches, uint32_t *n);
void cli_page_close(CliPage *page);

#endif
