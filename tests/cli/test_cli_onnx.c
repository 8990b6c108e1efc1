/* ONNX models on the command line. */
#include "interp/npy.h"
#include "lib/command.h"
#include "onnx/onnx_bytes.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(cli_onnx, .init = command_set_up, .fini = command_tear_down, .timeout = 60);

enum { FLOAT = 1, INT64 = 7 };

/* m.onnx: y = the sum of x over axes, an input; axes.npy: [1] */
static void write_model(void) {
    static const char *const dims[] = {"2", "3"}, *const count[] = {"1"};
    static const int64_t axes = 1;
    Arena *arena = arena_new(NULL);
    OnnxWriter w = onnx_writer(arena);
    Text file = {.arena = arena};
    NpyArray array = {.dtype = DT_I64, .rank = 1, .dims = {1}, .n_bytes = sizeof axes};
    array.bytes = (const uint8_t *)&axes;
    npy_write(&array, &file);
    onnx_write_input(&w, "x", FLOAT, 2, dims);
    onnx_write_input(&w, "axes", INT64, 1, count);
    onnx_write_node(&w, "ReduceSum", "x axes", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    Text model = onnx_write_model(&w, 13);
    write_file("m.onnx", model.data, model.n_bytes);
    write_file("axes.npy", file.data, file.n_bytes);
    arena_free(arena);
}

Test(cli_onnx, a_constant_is_a_list_or_a_file) {
    char text[MAX_TEXT];
    write_model();
    expect("@m.onnx -o @m.ptx", 1, "give it as a constant: --constant=axes=VALUES");
    expect("import @m.onnx -o @m.g --constant=axes=1", 0, "");
    read_file(path_of("m.g"), text);
    cr_expect(strstr(text, "y = sum(x, axis=[1], keep=true)"), "%s", text);
    expect("import @m.onnx -o @n.g --constant=axes=@axes.npy", 0, "");
    read_file(path_of("n.g"), text);
    cr_expect(strstr(text, "y = sum(x, axis=[1], keep=true)"), "%s", text);
    expect("run @m.onnx --device=cpu --constant=axes=-1", 0, "y");
    expect("@m.onnx -o @m.ptx --constant=axes=1", 0, "");
}

Test(cli_onnx, a_model_is_timed_and_verified_like_a_source) {
    char text[MAX_TEXT];
    write_model();
    expect("bench @m.onnx --device=cpu --runs=2 --constant=axes=1", 0, "graph    ");
    expect("verify @m.onnx --device=cpu --constant=axes=1", 0, "agree");
    expect("bench @m.onnx --device=cpu --runs=2 --constant=axes=1 --report=@m.html", 0, "");
    read_file(path_of("m.html"), text);
    cr_expect(strstr(text, "<html"), "%.200s", text);
}

Test(cli_onnx, wrong_constants_are_told) {
    write_model();
    expect("import @m.onnx -o @m.g --constant=axes", 2, "wants x=1,2|@FILE");
    expect("import @m.onnx -o @m.g --constant=axes=1 --constant=axes=2", 2, "gives axes twice");
    expect("import @m.onnx -o @m.g --constant=axes=@none.npy", 3, "none.npy");
    expect("import @m.onnx -o @m.g --constant=axis=1", 1, "the model has no input of this name");
    expect("@good.g -o @m.ptx --constant=x=1", 2, "--constant is for inputs of ONNX models");
    expect("import @m.onnx -o @m.g --constant=axes=a", 1, "is no list of numbers");
}

/* m.onnx: y = relu(x), of f32[batch size, H] */
static void write_dims(void) {
    static const char *const dims[] = {"batch size", "H"};
    Arena *arena = arena_new(NULL);
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", FLOAT, 2, dims);
    onnx_write_node(&w, "Relu", "x", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    Text model = onnx_write_model(&w, 13);
    write_file("m.onnx", model.data, model.n_bytes);
    arena_free(arena);
}

static void expect_source(const char *options, const char *part) {
    char text[MAX_TEXT], line[MAX_TEXT];
    snprintf(line, sizeof line, "import @m.onnx -o @m.g %s", options);
    expect(line, 0, "");
    read_file(path_of("m.g"), text);
    cr_expect(strstr(text, part), "no `%s` in %s", part, text);
}

Test(cli_onnx, an_import_takes_values_of_dims) {
    write_dims();
    expect_source("", "dim H in 1..65536\n");
    expect_source("--dim=H=224", "x: f32[batch_size, 224]");
    expect_source("--dim=H=64..100000", "dim H in 64..100000\n");
    expect_source("--dim=H=33..1000:32", "dim H_32 in 2..31\n");
    expect_source("--dim=H=33..1000:32", "x: f32[batch_size, 32*H_32]");
    expect_source("--dim=batch_size=1 --dim=H=0..7", "x: f32[1, H]");
    expect("import @m.onnx -o @m.g --dim=h=4", 1, "the model has no dim of this name");
    expect("import @m.onnx -o @m.g --dim=H=4..2", 2, "wants a number, or a range as 64..1024");
    expect("import @m.onnx -o @m.g --dim=H=4..", 2, "wants a number, or a range as 64..1024");
    expect("import @m.onnx -o @m.g --dim=H=4..8:", 2, "wants a number, or a range");
    expect("import @m.onnx -o @m.g --dim=H=4..7:8", 1, "`H_8` ranges over 1..0, which is empty");
    expect("@m.onnx -o @m.ptx --explain --dim=H=64..1024", 1, "64..1024");
}

/* m.onnx: y = x + w, with weights at a location; m.data: such weights */
static void write_external(const char *location) {
    static const char *const dims[] = {"2"};
    static const float weights[2] = {1, 2};
    Arena *arena = arena_new(NULL);
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", FLOAT, 1, dims);
    onnx_write_external(&w, "w", 2, location);
    onnx_write_node(&w, "Add", "x w", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    Text model = onnx_write_model(&w, 13);
    write_file("m.onnx", model.data, model.n_bytes);
    write_file("m.data", (const char *)weights, sizeof weights);
    arena_free(arena);
}

Test(cli_onnx, no_output_replaces_the_model_or_its_data) {
    write_external("m.data");
    expect("import @m.onnx -o @m.onnx", 2, "the output would replace the source");
    expect("import @m.onnx -o @m.data", 2, "an output would replace");
    expect("import @m.onnx -o @n.safetensors", 2, "is the name of the weights beside it");
    expect("@m.onnx --emit=ptx -o @n.safetensors", 2, "is the name of the weights beside it");
    expect("import @m.onnx -o @m.g", 0, "");
}

Test(cli_onnx, data_outside_of_the_folder_are_told) {
    static const char *const places[] = {"/m.data", "../m.data"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        write_external(places[i]);
        expect("import @m.onnx -o @m.g", 1, "must lie in the model's folder, or below");
    }
}

/* A link of the model's folder may lead to a file of it, and a model may be a link itself, into a
 * folder that has the data, too; else a link would copy any file of the machine. */
Test(cli_onnx, links_do_not_lead_out_of_the_folder) {
    write_external("m.data");
    cr_assert_eq(mkdir(path_of("in"), 0700), 0);
    cr_assert_eq(rename(path_of("m.onnx"), path_of("in/m.onnx")), 0);
    cr_assert_eq(symlink("../m.data", path_of("in/m.data")), 0);
    expect("import @in/m.onnx -o @m.g", 1, "leads out of the folder of");
    cr_assert_eq(symlink("in/m.onnx", path_of("m.onnx")), 0);
    expect("import @m.onnx -o @m.g", 0, "");
    cr_assert_eq(unlink(path_of("in/m.data")), 0);
    cr_assert_eq(rename(path_of("m.data"), path_of("in/n.data")), 0);
    cr_assert_eq(symlink("n.data", path_of("in/m.data")), 0);
    expect("import @in/m.onnx -o @m.g", 0, "");
    cr_assert_eq(symlink("in/m.data", path_of("m.data")), 0);
    expect("import @m.onnx -o @m.g", 0, "");
}
