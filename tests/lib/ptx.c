/* Runs ptxas and nvdisasm. See ptx.h. */
#include "lib/ptx.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASSEMBLER, DISASSEMBLER, N_TOOLS };
static const char *const tools[N_TOOLS] = {"ptxas", "nvdisasm"};

/* Whether the tool is installed; if not, says so once per test. */
static bool has_tool(int tool) {
    static bool is_said[N_TOOLS];
    char command[64];
    snprintf(command, sizeof command, "command -v %s > /dev/null 2>&1", tools[tool]);
    if (system(command) == 0) return true;
    if (!is_said[tool]) printf("SKIPPED %s is not here\n", tools[tool]);
    is_said[tool] = true;
    return false;
}

/* The output of a command. */
static const char *output_of(Arena *arena, const char *command, int *status) {
    Text text = {.arena = arena};
    char part[4096];
    FILE *pipe = popen(command, "r");
    cr_assert(pipe, "cannot run %s", command);
    for (size_t n; (n = fread(part, 1, sizeof part, pipe)) > 0;) text_add(&text, part, n);
    *status = pclose(pipe);
    return text_str(&text);
}

static void read_line(Arena *arena, const char *line, PtxReport *report, uint32_t *n_properties) {
    char name[256];
    const char *at = strstr(line, "Compiling entry function '");
    if (at && sscanf(at, "Compiling entry function '%255[^']", name) == 1)
        vec_push(arena, &report->functions, (PtxFunction){.name = str_format(arena, "%s", name)});
    report->n_remarks += strstr(line, "(C7") || strstr(line, "warning");
    if (report->functions.n == 0) return;
    PtxFunction *function = &report->functions.data[report->functions.n - 1];
    uint32_t stack, stored, loaded;
    if (sscanf(line, " %u bytes stack frame, %u bytes spill stores, %u bytes spill loads", &stack,
               &stored, &loaded) == 3) {
        function->stack_bytes += stack;
        function->spill_store_bytes += stored;
        function->spill_load_bytes += loaded;
        ++*n_properties;
    }
    at = strstr(line, "Used ");
    if (at) sscanf(at, "Used %u registers", &function->n_registers);
    at = strstr(line, " bytes smem");
    while (at && at > line && at[-1] >= '0' && at[-1] <= '9') at--;
    if (at) sscanf(at, "%u", &function->shared_bytes);
}

void ptx_read_messages(Arena *arena, const char *messages, PtxReport *report) {
    uint32_t n_properties = 0;
    *report = (PtxReport){.sass = NULL};
    for (const char *at = messages; *at;) {
        size_t n = strcspn(at, "\n");
        read_line(arena, str_format(arena, "%.*s", (int)n, at), report, &n_properties);
        at += n + (at[n] == '\n');
    }
    cr_expect(n_properties >= report->functions.n, "no word of spills:\n%s", messages);
}

bool ptx_assemble(Arena *arena, const char *ptx, size_t n_bytes, PtxOptions options,
                  PtxReport *report) {
    *report = (PtxReport){.sass = NULL};
    if (!has_tool(ASSEMBLER)) return false;
    char path[] = "/tmp/fusec-ptx-XXXXXX";
    int fd = mkstemp(path), status;
    cr_assert(fd >= 0);
    FILE *file = fdopen(fd, "wb");
    cr_assert(file && fwrite(ptx, 1, n_bytes, file) == n_bytes);
    cr_assert_eq(fclose(file), 0);
    bool has_sass = options.wants_sass && has_tool(DISASSEMBLER);
    const char *binary = has_sass ? str_format(arena, "%s.cubin", path) : "/dev/null";
    const char *command = str_format(arena, "%s -v %s%s -arch=%s -o %s %s 2>&1", tools[ASSEMBLER],
                                     options.level ? "-O" : "", options.level ? options.level : "",
                                     options.target, binary, path);
    const char *messages = output_of(arena, command, &status);
    remove(path);
    ptx_read_messages(arena, messages, report);
    cr_expect(status == 0, "refused for %s:\n%s", options.target, messages);
    if (!has_sass) return true;
    command = str_format(arena, "%s -c %s 2>&1", tools[DISASSEMBLER], binary);
    report->sass = output_of(arena, command, &status);
    remove(binary);
    cr_expect(status == 0, "not disassembled:\n%s", report->sass);
    return true;
}

bool ptx_is_in_registers(const PtxReport *report) {
    for (uint32_t i = 0; i < report->functions.n; i++) {
        const PtxFunction *function = &report->functions.data[i];
        if (function->stack_bytes || function->spill_store_bytes || function->spill_load_bytes)
            return false;
    }
    return report->functions.n > 0;
}

const char *ptx_function_text(Arena *arena, const char *ptx, const char *symbol) {
    const char *head = str_format(arena, ".entry %s(", symbol);
    const char *begin = strstr(ptx, head);
    cr_assert(begin, "no %s", head);
    const char *end = strstr(begin, "\n}");
    cr_assert(end, "%s has no end", symbol);
    return str_format(arena, "%.*s", (int)(end - begin), begin);
}

uint32_t ptx_count(const char *text, const char *what) {
    uint32_t n = 0;
    for (text = strstr(text, what); text; text = strstr(text + 1, what)) n++;
    return n;
}
