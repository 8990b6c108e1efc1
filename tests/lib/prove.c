/* Runs verify on programs with planted faults. See prove.h. */
#include "lib/prove.h"

#include "cli/cli.h"
#include "fake/fake_cuda.h"
#include "random/random_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARGS = 12 };

static void read_all(FILE *file, Proof *proof) {
    rewind(file);
    size_t n = fread(proof->said, 1, sizeof proof->said - 1, file);
    proof->said[n] = '\0';
    fclose(file);
}

/* Runs the command and captures its output. */
static void run(Proof *proof, Cli *cli) {
    FILE *said = tmpfile();
    int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    proof->status = FUSEC_INTERNAL;
    if (!said || out < 0 || err < 0) return;
    fflush(NULL);
    dup2(fileno(said), STDOUT_FILENO);
    dup2(fileno(said), STDERR_FILENO);
    proof->status = cli->command == CLI_BENCH ? cli_bench(cli) : cli_verify(cli);
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    read_all(said, proof);
}

static void run_command(Proof *proof, const char *command, const char *source, const Cli *with,
                        const char *const *options) {
    static Cli cli;
    char path[] = "/tmp/prove.XXXXXX", name[] = "fusec";
    char copies[MAX_ARGS][80];
    char *argv[MAX_ARGS + 1] = {name, copies[1], path};
    int argc = 3, file = mkstemp(path);
    *proof = (Proof){.status = FUSEC_FILE};
    if (file < 0) return;
    bool is_written = write(file, source, strlen(source)) == (ssize_t)strlen(source);
    close(file);
    snprintf(copies[1], sizeof copies[1], "%s", command);
    for (; options[argc - 3] && argc < MAX_ARGS; argc++) {
        snprintf(copies[argc], sizeof copies[argc], "%s", options[argc - 3]);
        argv[argc] = copies[argc];
    }
    optind = 0; /* restarts the option parser */
    cli = (Cli){.arena = arena_new(NULL)};
    if (is_written && cli_parse(&cli, argc, argv)) {
        cli.hook = with->hook;
        cli.cuda_lookup = with->cuda_lookup;
        run(proof, &cli);
    }
    arena_free(cli.arena);
    remove(path);
}

void prove_verify(Proof *proof, const char *source, DriverHook hook, const char *const *options) {
    run_command(proof, "verify", source, &(Cli){.hook = hook}, options);
}

void prove_command(Proof *proof, const char *command, const char *source, bool on_fake,
                   const char *const *options) {
    run_command(proof, command, source, &(Cli){.cuda_lookup = on_fake ? fake_cuda_lookup : NULL},
                options);
}

/* The op's name in the verdict; NULL: there is no verdict. */
static const char *find_verdict(const Proof *proof, const char *begin) {
    const char *verdict = strstr(proof->said, begin);
    return verdict ? strchr(verdict, '`') : NULL;
}

static bool names_op(const char *verdict, const char *op) {
    return strncmp(verdict + 1, op, strlen(op)) == 0 && verdict[1 + strlen(op)] == '`';
}

/* The first line number after this position; 0: none. */
static uint32_t named_line(const char *verdict) {
    const char *line = verdict ? strstr(verdict, "line ") : NULL;
    return line ? (uint32_t)strtoul(line + strlen("line "), NULL, 10) : 0;
}

ProofName prove_named(const Proof *proof) {
    const char *verdict = find_verdict(proof, "  first wrong: ");
    if (!verdict) verdict = find_verdict(proof, " inputs: ");
    const char *end = verdict ? strchr(verdict + 1, '`') : NULL;
    if (!end || proof->status == FUSEC_OK) return (ProofName){.op = NULL};
    return (ProofName){verdict + 1, (int)(end - verdict - 1), named_line(verdict)};
}

const char *prove_rows(FaultId id, const char *target) {
    if (!strstr(fault_info(id)->source, "dim H ")) return NULL;
    const Target *on = target_by_name(target);
    return on && on->has->blocks ? "--dim=H=32768" : "--dim=H=32";
}

bool prove_fault(Proof *proof, FaultId id, const char *target, Text *report) {
    const FaultInfo *info = fault_info(id);
    uint32_t n_planted = 0;
    const char *options[] = {str_format(report->arena, "--target=%s", target),
                             prove_rows(id, target), NULL};
    prove_verify(proof, info->source, fault_hook(id, &n_planted), options);
    const char *verdict =
        find_verdict(proof, info->place == FAULT_IN_BOTH ? " inputs: " : "  first wrong: ");
    if (n_planted && proof->status == FUSEC_MISMATCH && verdict && names_op(verdict, info->op) &&
        named_line(verdict) == info->line)
        return true;
    text_printf(report, "%s (%s; %u planted): exit code %d, and not %s of line %u but\n%s",
                info->name, info->doc, n_planted, (int)proof->status, info->op, info->line,
                proof->said);
    return false;
}

RandomProof prove_random(Proof *proof, uint64_t seed, const char *target, Text *report) {
    RandomGraphOptions graph = random_graph_defaults();
    graph.max_elems = 1 << 11;
    graph.without_empty = true; /* a mistake does not show in a tensor without elements */
    const char *source = random_graph_source(report->arena, seed, &graph);
    const char *options[] = {str_format(report->arena, "--target=%s", target),
                             "--data=random,integers", NULL};
    RandomFault fault = {.seed = seed};
    prove_verify(proof, source, fault_random_hook(&fault), options);
    if (proof->status == FUSEC_OK) return fault.n_planted ? RANDOM_UNSEEN : RANDOM_ABSENT;
    uint32_t line = named_line(find_verdict(proof, "  first wrong: "));
    for (uint32_t i = 0; i < fault.n_lines; i++)
        if (fault.lines[i] == line) return RANDOM_NAMED;
    text_printf(report, "seed %u: not line %u but\n%s%s", (unsigned)seed,
                fault.n_lines ? fault.lines[0] : 0, proof->said, source);
    return RANDOM_MISSED;
}
