/* The soak program's reduction and its table of planted mistakes, as docs/DEBUGGING.md shows them.
 */
#include "lib/compile.h"
#include "lib/text_file.h"
#include "random/program.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the command says, in a directory of its own, where it may leave files. */
static const char *said_by(Arena *arena, const char *arguments) {
    char root[4096], place[] = "/tmp/reduce.XXXXXX", bytes[4096];
    Text text = {.arena = arena};
    cr_assert(getcwd(root, sizeof root) && mkdtemp(place));
    FILE *pipe = popen(
        str_format(arena, "cd %s && %s/build/tests/soak/soak %s 2>&1", place, root, arguments),
        "r");
    cr_assert(pipe);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, pipe)) > 0;) text_add(&text, bytes, n);
    pclose(pipe);
    cr_assert_eq(system(str_format(arena, "rm -r %s", place)), 0);
    return text_str(&text);
}

Test(reduce, the_manual_shows_what_happens, .timeout = 120) {
    static const char begin[] = "```\nbuild/tests/soak/soak ";
    Arena *arena = arena_new(NULL);
    const char *page = text_file_read(arena, "docs/DEBUGGING.md", NULL);
    do page = strstr(page + 1, begin);
    while (page && !strstr(page, "  reduced:\n"));
    cr_assert(page);
    const char *arguments = page + sizeof begin - 1, *end = strchr(arguments, '\n');
    const char *shown = strstr(end, "  reduced:\n"), *behind = strstr(shown, "...\n");
    cr_assert(shown && behind);
    const char *said = said_by(arena, str_format(arena, "%.*s", (int)(end - arguments), arguments));
    const char *wanted = str_format(arena, "%.*s", (int)(behind - shown), shown);
    cr_expect(strstr(said, wanted), "no\n%s in\n%s", wanted, said);
    arena_free(arena);
}

Test(reduce, a_given_program_comes_down_to_the_op, .timeout = 120) {
    Arena *arena = arena_new(NULL);
    char path[] = "/tmp/given.XXXXXX";
    static const char source[] = "dim B in 1..4096\n"
                                 "def soft(x) = softmax(x * 2.0)\n"
                                 "graph g(x: f32[B, 64], z: f32[64]) -> (y: f32[B, 64]) {\n"
                                 "  fuse must { a = soft(x) }\n  y = tanh(a + z)\n}\n";
    int file = mkstemp(path);
    cr_assert(file >= 0 && write(file, source, sizeof source - 1) == (ssize_t)sizeof source - 1);
    close(file);
    const char *right = said_by(arena, str_format(arena, "--reduce=%s --target=cpu", path));
    cr_expect(strstr(right, "graph 0, cpu: does not fail"), "%s", right);
    const char *said = said_by(
        arena, str_format(arena, "--reduce=%s --target=cpu --plant=swapped_operands", path));
    const char *reduced = strstr(said, "  reduced:\n");
    cr_assert(reduced, "%s", said);
    cr_expect(strstr(reduced, " = sub(") && !strstr(reduced, "exp(") && !strstr(reduced, "tanh"),
              "%s", said);
    cr_expect(strstr(reduced, "kept: soak-given-0-cpu.g"), "%s", said);
    remove(path);
    arena_free(arena);
}

Test(reduce, what_is_given_may_be_no_program, .timeout = 120) {
    Arena *arena = arena_new(NULL);
    char path[] = "/tmp/given.XXXXXX";
    static const char source[] = "graph g(x: f32[4]) -> (y: f32[4]) {\n  y = x +\n}\n";
    int file = mkstemp(path);
    cr_assert(file >= 0 && write(file, source, sizeof source - 1) == (ssize_t)sizeof source - 1);
    close(file);
    const char *wrong = said_by(arena, str_format(arena, "--reduce=%s --target=cpu", path));
    cr_expect(strstr(wrong, "is no program:") && strstr(wrong, "2:10: error:"), "%s", wrong);
    remove(path);
    const char *none = said_by(arena, str_format(arena, "--reduce=%s --target=cpu", path));
    cr_expect(strstr(none, "cannot read") && strstr(none, "No such file"), "%s", none);
    const char *folder = said_by(arena, "--reduce=/tmp --target=cpu");
    cr_expect(strstr(folder, "cannot read /tmp: Is a directory"), "%s", folder);
    arena_free(arena);
}

Test(reduce, mistakes_are_told_in_a_table, .timeout = 120) {
    Arena *arena = arena_new(NULL);
    const char *said = said_by(arena, "--faults 2 24 --target=cpu");
    static const char *const rows[] = {
        "fault              op         line           for cpu\n",
        "swapped_operands   sub           3  named    sub has its operands swapped\n",
        "random 24          -             -  skipped  the mistake changes no output\n",
        "random 25          not_equal    21  named    one more than it should be\n"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect(strstr(said, rows[i]), "no `%s` in\n%s", rows[i], said);
    arena_free(arena);
}

/* The statements are the graph's ops, and make the same graph. */
Test(reduce, a_graph_as_a_program_is_the_same_graph) {
    static const char source[] =
        "dim B in 2..64 mult 2\n"
        "graph g(x: bf16[B, 64], k: i32[B]) -> (y: bf16[B, 64], z: i32[B]) {\n"
        "  param w: bf16[64, 64] = \"w\"\n"
        "  fuse must { a = softmax(x * 0.5) }\n"
        "  y = a @ w\n  z = k + 1\n}\n";
    Compiled compiled, again;
    cr_assert(compile_source(&compiled, source, target_get(TARGET_CPU), COMPILE_FUSED));
    Arena *arena = compiled.driver.arena;
    const Graph *graph = compiled.module->graphs.data[0];
    Program program = program_of_graph(arena, graph);
    const char *text = program_print(&program);
    cr_assert(compile_source(&again, text, target_get(TARGET_CPU), COMPILE_FUSED), "%s\n%s",
              again.messages, text);
    const Graph *made = again.module->graphs.data[0];
    cr_assert_eq(made->nodes.n, graph->nodes.n, "%s", text);
    for (NodeId id = 0; id < graph->nodes.n; id++)
        cr_expect_eq(graph_node(made, id)->op, graph_node(graph, id)->op, "node %u of\n%s", id,
                     text);
    compile_free(&again);
    compile_free(&compiled);
}
