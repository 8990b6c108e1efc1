/* `fusec verify` on programs that are compiled wrong on purpose: each planted mistake is found, and
 * its op and line are named. */
#include "bisect.h"
#include "cli.h"
#include "driver.h"
#include "lib/faults.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TEXT = 1 << 14 };

typedef struct Outcome {
    fusec_status status;
    char said[MAX_TEXT]; /* on stderr */
} Outcome;

static void read_all(FILE *file, char *text) {
    rewind(file);
    size_t n = fread(text, 1, MAX_TEXT - 1, file);
    text[n] = '\0';
    fclose(file);
}

/* `fusec verify` of the source as the program's main has it, with a hook. */
static Outcome verify(const char *source, DriverHook hook, const char *data) {
    static Cli cli;
    Outcome outcome;
    char path[] = "/tmp/test_prove.XXXXXX", name[] = "fusec", command[] = "verify";
    char target[] = "--target=cpu", kinds[64];
    char *argv[] = {name, command, path, target, kinds, NULL};
    int file = mkstemp(path);
    snprintf(kinds, sizeof kinds, "--data=%s", data);
    cr_assert(file >= 0 && write(file, source, strlen(source)) == (ssize_t)strlen(source));
    close(file);
    optind = 0; /* the parser starts anew */
    cli = (Cli){.arena = arena_new(NULL)};
    cr_assert(cli_parse(&cli, 5, argv));
    cli.hook = hook;
    FILE *said = tmpfile();
    cr_assert(said);
    fflush(stderr);
    int kept = dup(STDERR_FILENO);
    dup2(fileno(said), STDERR_FILENO);
    outcome.status = cli_verify(&cli);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    read_all(said, outcome.said);
    arena_free(cli.arena);
    remove(path);
    return outcome;
}

static void check_fault(FaultId id) {
    const FaultInfo *info = fault_info(id);
    uint32_t n_planted = 0;
    char op[64], line[32];
    Outcome outcome =
        verify(info->source, fault_hook(id, &n_planted), "random,ramps,integers,special");
    snprintf(op, sizeof op, "`%s`", info->op);
    snprintf(line, sizeof line, "line %u", info->line);
    if (getenv("FAULTS_SHOW"))
        fprintf(stderr, "== %s: %s\n%s", info->name, info->doc, outcome.said);
    cr_expect(n_planted > 0, "%s: nothing was planted", info->name);
    cr_expect(outcome.status == FUSEC_MISMATCH, "%s: exit code %d\n%s", info->name,
              (int)outcome.status, outcome.said);
    /* The verdict is one line; the op that is named first in it is the one. */
    const char *verdict = strstr(outcome.said, info->hits_unfused ? "inputs: " : "first wrong: ");
    cr_expect(verdict, "%s: no verdict in\n%s", info->name, outcome.said);
    if (!verdict) return;
    verdict = strchr(verdict, '`');
    cr_expect(verdict && strncmp(verdict, op, strlen(op)) == 0, "%s: not %s in\n%s", info->name, op,
              outcome.said);
    const char *named = verdict ? strstr(verdict, "line ") : NULL;
    cr_expect(named && strncmp(named, line, strlen(line)) == 0 &&
                  strchr(",:;", named[strlen(line)]),
              "%s: not %s in\n%s", info->name, line, outcome.said);
}

Test(prove, every_planted_mistake_is_named) {
    for (int id = getenv("FAULTS_FROM") ? atoi(getenv("FAULTS_FROM")) : 0; id < FAULT_COUNT; id++) check_fault((FaultId)id);
    cr_expect(FAULT_COUNT >= 20);
}

Test(prove, programs_without_mistakes_agree) {
    for (int id = 0; id < FAULT_COUNT; id++) {
        Outcome outcome =
            verify(fault_info((FaultId)id)->source, (DriverHook){0}, "integers,special");
        cr_expect(outcome.status == FUSEC_OK, "%s: %s", fault_info((FaultId)id)->name,
                  outcome.said);
    }
}
