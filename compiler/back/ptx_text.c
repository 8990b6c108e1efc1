/* See ptx_text.h. LLVM writes a line `// .globl NAME` before each function, and after the first of
 * them what the module declares. */
#include "back/ptx_text.h"

#include <frt_manifest.h>
#include <string.h>

static const char head_end[] = "\n.address_size ";
static const char function_end[] = "\n\t// .globl\t";
static const char entry[] = "\n.visible .entry ";
static const char external[] = ".extern ";

static size_t line_bytes(const char *line) {
    return strcspn(line, "\n") + 1;
}

/* Whether a declaration's symbol, which its brackets follow, is not found in `functions`: what one
 * function uses is declared inside it, what none reaches is left over before all. */
static bool is_left_over(PtxText *ptx, const char *declaration, const char *functions) {
    const char *end = strchr(declaration, '['), *begin = end;
    while (begin && begin > declaration && begin[-1] != ' ') begin--;
    return begin &&
           !strstr(functions, str_format(ptx->head.arena, "%.*s", (int)(end - begin), begin));
}

/* Keeps what stands between `from` and `end` and is neither blank nor a comment. */
static void add_declarations(PtxText *ptx, const char *from, const char *end) {
    for (const char *line = from; line < end; line += line_bytes(line)) {
        const char *text = line + strspn(line, " \t");
        if (*text == '\n' || strncmp(text, "//", 2) == 0) continue;
        const char *own = str_format(ptx->head.arena, "%.*s", (int)line_bytes(line), line);
        bool is_external = strncmp(own, external, sizeof external - 1) == 0;
        if (!is_external && is_left_over(ptx, own, end)) continue;
        if (!is_external) ice(ptx->head.arena, "a module of PTX declares %s", own);
        if (!strstr(text_str(&ptx->head), own)) text_puts(&ptx->head, own);
    }
}

void ptx_add_module(PtxText *ptx, const char *module) {
    const char *at = strstr(module, head_end), *begin;
    if (!at) ice(ptx->head.arena, "a module of PTX has no head");
    at += 1 + line_bytes(at + 1);
    if (!ptx->head.n_bytes) text_add(&ptx->head, module, (size_t)(at - module));
    while ((begin = strstr(at, entry))) {
        const char *name = begin + sizeof entry - 1, *end = strstr(name, function_end);
        if (!end) end = name + strlen(name);
        add_declarations(ptx, at, begin + 1);
        text_printf(&ptx->functions, "\n" FRT_MANIFEST_PREFIX FRT_D_FUNCTION " %.*s\n",
                    (int)strcspn(name, "("), name);
        text_add(&ptx->functions, begin + 1, (size_t)(end - begin - 1));
        at = end;
    }
}
