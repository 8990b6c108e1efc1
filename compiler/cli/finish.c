/* Kinds of output that another program makes: a shared object by the system's cc, a cubin by ptxas.
 * Each is an artifact with a checksum of its own. */
#include "cli/cli.h"

#include <frt_manifest.h>

#include <stdio.h>
#include <stdlib.h>

static fusec_status make_shared(Cli *cli, const char *path, const void *bytes, size_t n_bytes,
                                char **made, size_t *n_made) {
    static const char *const arguments[] = {"cc",     "-shared", "-nostdlib", "-o",
                                            CLI_MADE, CLI_INPUT, NULL};
    int exit_code;
    fusec_status status =
        cli_run_tool(cli, path, arguments, bytes, n_bytes, &exit_code, made, n_made);
    if (!status && exit_code)
        return cli_fail(cli, FUSEC_TARGET,
                        "cannot link %s: `cc -shared` failed; a shared object "
                        "needs the system's C compiler",
                        path);
    return status;
}

/* Bytes of the manifest's lines up to and including `end`. */
static size_t manifest_bytes(const char *artifact) {
    static const char end[] = "\n" FRT_MANIFEST_PREFIX FRT_D_END "\n";
    const char *at = strstr(artifact, end);
    return at ? (size_t)(at - artifact) + sizeof end - 1 : 0;
}

/* Joins the manifest, the payload line and the cubin. */
static fusec_status wrap_cubin(Cli *cli, const char *ptx, char **made, size_t *n_made) {
    const char *line =
        str_format(cli->arena, "%s%s %zu\n", FRT_MANIFEST_PREFIX, FRT_D_PAYLOAD, *n_made);
    size_t n_manifest = manifest_bytes(ptx), n_line = strlen(line);
    char *artifact = arena_alloc(cli->arena, n_manifest + n_line + *n_made);
    memcpy(artifact, ptx, n_manifest);
    memcpy(artifact + n_manifest, line, n_line);
    memcpy(artifact + n_manifest + n_line, *made, *n_made);
    *made = artifact;
    *n_made += n_manifest + n_line;
    return n_manifest ? FUSEC_OK : cli_fail(cli, FUSEC_INTERNAL, "the PTX has no manifest");
}

static fusec_status make_cubin(Cli *cli, const char *path, const void *bytes, size_t n_bytes,
                               char **made, size_t *n_made) {
    const char *named = getenv("FUSEC_PTXAS");
    const char *program = cli->ptxas ? cli->ptxas : named && *named ? named : "ptxas";
    const char *arch = str_format(cli->arena, "-arch=%s", cli->target->machine);
    const char *const arguments[] = {program, arch, "-o", CLI_MADE, CLI_INPUT, NULL};
    const char *ptx = str_format(cli->arena, "%.*s", (int)n_bytes, (const char *)bytes);
    int exit_code;
    fusec_status status =
        cli_run_tool(cli, path, arguments, bytes, n_bytes, &exit_code, made, n_made);
    if (status) return status;
    if (exit_code == CLI_NO_TOOL)
        return cli_fail(cli, FUSEC_TARGET,
                        "cannot make %s: there is no `%s`; it comes with the CUDA toolkit, and "
                        "--ptxas=FILE or FUSEC_PTXAS says where it is",
                        path, program);
    bool is_cubin = !exit_code && *n_made > 4 && memcmp(*made, "\177ELF", 4) == 0;
    if (!is_cubin)
        return cli_fail(cli, FUSEC_TARGET, "cannot make %s: `%s %s` failed", path, program, arch);
    return wrap_cubin(cli, ptx, made, n_made);
}

const CliFinish cli_finishes[CLI_N_FINISHES] = {
    {"so", ".so", "the object as a shared object (needs cc)", FUSEC_OBJECT, make_shared},
    {"cubin", ".cubin", "the PTX assembled for its target alone (needs ptxas)", FUSEC_PTX,
     make_cubin},
};

const CliFinish *cli_finish_by_name(const char *name) {
    for (int i = 0; i < CLI_N_FINISHES; i++)
        if (strcmp(name, cli_finishes[i].name) == 0) return &cli_finishes[i];
    return NULL;
}

const CliFinish *cli_finish_by_extension(const char *extension) {
    for (int i = 0; i < CLI_N_FINISHES; i++)
        if (strcmp(extension, cli_finishes[i].extension) == 0) return &cli_finishes[i];
    return NULL;
}

fusec_status cli_write_finished(Cli *cli, const char *path, const void *bytes, size_t n_bytes) {
    char *made = NULL;
    size_t n_made = 0;
    fusec_status status = cli->finish->make(cli, path, bytes, n_bytes, &made, &n_made);
    if (status) return status;
    if (!driver_seal(made, n_made))
        return cli_fail(cli, FUSEC_INTERNAL, "%s came without its manifest", path);
    return cli_write(cli, path, made, n_made, true);
}
