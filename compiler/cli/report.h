/* `--report`: the page of a compilation or of a measurement. For a measurement the source is
 * compiled three times: for running with and without fusion, and for its plans and predictions. */
#ifndef FUSEC_CLI_REPORT_H
#define FUSEC_CLI_REPORT_H

#include "cli/exec.h"

/* The microseconds of every launch of a graph. */
typedef struct CliSide {
    double *us;
    uint32_t n_launches;
} CliSide;

typedef struct CliTimes {
    const char *device;
    uint32_t graph; /* index in the module */
    CliSide before, after;
} CliTimes;

/* Reports an error if the page would overwrite the source or the output. */
fusec_status cli_check_report(Cli *cli);
/* Reports an error if --card names a machine of another device class than the target's. */
fusec_status cli_check_card(Cli *cli, const Target *target);
/* The page, on the driver's arena. Call it under the driver's guard, after driver_build. `times`
 * NULL: the page covers all graphs, else the measured one. */
fusec_status cli_report_text(Driver *driver, const CliTimes *times, const char **text);

/* The prediction of one launch at the dims of a run. */
typedef struct CliExpected {
    double n_flops; /* of its GEMMs: two per multiply-add */
    double us;      /* by the cost model */
    /* The time that memory traffic or multiply-adds take at the device's rates; 0: the rates are
     * unknown. */
    double limit_us;
} CliExpected;

/* A source that is measured, and its page. All zero except `cli` before it is opened. */
typedef struct CliPage {
    Cli *cli;
    Driver driver;
    bool is_open;
    const char *text; /* the source */
    size_t n_bytes;
    const Target *target;
    CliTimes times;
} CliPage;

/* Compiles the source of the command line and opens it for running; without --report it may be an
 * artifact. Close both, even after a failure. */
fusec_status cli_page_open(CliPage *page, Exec *exec);
/* Opens the same graph compiled without fusion. */
fusec_status cli_page_open_plain(CliPage *page, Exec *exec);
/* Writes the page about page->times at the dims of `exec`. */
fusec_status cli_page_write(CliPage *page, const Exec *exec);
/* The predictions for every launch of a run, on the cli's arena; an artifact has none. */
fusec_status cli_page_expect(CliPage *page, const Exec *exec, CliExpected **launches, uint32_t *n);
void cli_page_close(CliPage *page);

#endif
