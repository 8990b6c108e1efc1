/* The tiles of rows of masked attention: blocks of an emulated GPU walk over several groups and
 * rounds of them. */
#include "lib/command.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(online_walk, .init = command_set_up, .fini = command_tear_down, .timeout = 180);

/* 5 batches of 3 tiles of 128 rows. */
Test(online_walk, every_tile_is_taken_once) {
    static const char source[] = "dim B in 0..1000\ndim T in 0..1000\n"
                                 "graph g(q: bf16[B, T, 32], k: bf16[B, T, 32], v: bf16[B, T, 64])"
                                 " -> (o: bf16[B, T, 64]) {\n"
                                 "  o = attention(q, k, v, is_causal=true)\n}\n";
    static const char *const processors[] = {"4", "5"};
    static const char *const sizes[] = {"--dim=B=5 --dim=T=260", "--dim=B=1 --dim=T=1",
                                        "--dim=B=0 --dim=T=300", "--dim=B=3 --dim=T=0"};
    char line[200];
    write_file("a.g", source, strlen(source));
    setenv("LD_LIBRARY_PATH", "build/emulator", 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t p = 0; p < (i ? 1 : sizeof processors / sizeof *processors); p++) {
            setenv("FUSEC_EMU_PROCESSORS", processors[p], 1);
            snprintf(line, sizeof line,
                     "verify @a.g --device=cuda --target=sm_90a --data=random %s", sizes[i]);
            expect(line, 0, "1 comparison agrees");
        }
}

/* Two launches share the bounds of the numbers of documents, and so the count of tiles that have
 * been taken: the second finds it as the first did. */
Test(online_walk, blocks_take_the_next_tile_of_documents) {
    static const char source[] =
        "dim B in 0..1000\n"
        "graph g(q: bf16[B, 300, 32], k: bf16[B, 600, 32], v: bf16[B, 600, 32], ids: i32[600], "
        "own: i32[300]) -> (o: bf16[B, 300, 32]) {\n"
        "  same = unsqueeze(own, 1) == unsqueeze(ids, 0)\n"
        "  fuse must {\n    s = matmul(q, transpose(k, [0, 2, 1]), out=f32)\n"
        "    p = softmax_matmul(where(same, s, -inf), v)\n  }\n"
        "  fuse must {\n    t = matmul(p, transpose(k, [0, 2, 1]), out=f32)\n"
        "    o = softmax_matmul(where(same, t, -inf), v)\n  }\n}\n";
    static const char *const cases[][2] = {{"1", "2"}, {"2", "3"}, {"7", "1"}, {"2", "0"}};
    char line[200];
    write_file("a.g", source, strlen(source));
    setenv("LD_LIBRARY_PATH", "build/emulator", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("FUSEC_EMU_PROCESSORS", cases[i][0], 1);
        snprintf(line, sizeof line,
                 "verify @a.g --device=cuda --target=sm_90a --data=integers --dim=B=%s",
                 cases[i][1]);
        expect(line, 0, "1 comparison agrees");
    }
}

/* By mma.sync the sums of 128 rows and 128 columns are more than a kernel may declare. */
Test(online_walk, sums_in_dynamic_shared_memory) {
    static const char source[] = "graph g(s: f32[140, 150], v: bf16[150, 128]) -> "
                                 "(o: bf16[140, 128]) {\n  o = softmax_matmul(s, v)\n}\n";
    write_file("a.g", source, strlen(source));
    setenv("LD_LIBRARY_PATH", "build/emulator", 1);
    expect("verify @a.g --device=cuda --target=sm_80 --data=random", 0, "1 comparison agrees");
}

/* A block takes parts of the keys one after the other, of which a mask hides all but the first. */
Test(online_walk, tiles_of_which_no_row_sees_a_key) {
    static const char source[] =
        "graph g(q: bf16[4, 20, 32], k: bf16[4, 1500, 32], v: bf16[4, 1500, 32]) -> "
        "(o: bf16[4, 20, 32]) {\n"
        "  j = iota([20, 1500], axis=1)\n"
        "  fuse must {\n    s = matmul(q, transpose(k, [0, 2, 1]), out=f32)\n"
        "    o = softmax_matmul(where(j < 100, s, -inf), v)\n  }\n}\n";
    write_file("a.g", source, strlen(source));
    setenv("LD_LIBRARY_PATH", "build/emulator", 1);
    setenv("FUSEC_EMU_PROCESSORS", "1", 1);
    expect("verify @a.g --device=cuda --target=sm_90a --data=random", 0, "1 comparison agrees");
}

/* The factor of the scores is a power of two, which joins that of the exponents unless a mask reads
 * the score. */
Test(online_walk, masks_that_read_the_scaled_score) {
    static const char *const shown[] = {"s > 0.3", "!(abs(s) < 0.1) && (j < 100)"};
    char source[600];
    setenv("LD_LIBRARY_PATH", "build/emulator", 1);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        snprintf(
            source, sizeof source,
            "graph g(q: bf16[64, 64], k: bf16[128, 64], v: bf16[128, 64]) -> (y: bf16[64, 64]) "
            "{\n  j = iota([64, 128], axis=1)\n"
            "  s = matmul(q, transpose(k, [1, 0]), out=f32) * 0.125\n"
            "  online {\n  y = cast(softmax(where(%s, s, -inf)), bf16) @ v\n  }\n}\n",
            shown[i]);
        write_file("a.g", source, strlen(source));
        expect("verify @a.g --device=cuda --target=sm_90a --data=random", 0, "1 comparison agrees");
    }
}

/* The place of a value is what remains of its number divided by an extent that may be 0. */
Test(online_walk, values_beside_rows_that_may_be_0) {
    static const char source[] =
        "dim T in 0..40\n"
        "graph g(x: bf16[2, 0, 1], w: f32[2, 1, T, 3]) -> (y: f32[2, 1, T, 1]) {\n"
        "  v = windows(pad(x, low=[0, 2, 0], high=[0, 1, 0]), size=[3], axis=[1])\n"
        "  y = softmax2_matmul(w, v, out=f32)\n}\n";
    write_file("a.g", source, strlen(source));
    setenv("LD_LIBRARY_PATH", "build/emulator", 1);
    expect("verify @a.g --device=cuda --target=sm_90a --data=random --dim=T=0", 0,
           "1 comparison agrees");
    expect("verify @a.g --device=cuda --target=sm_90a --data=random --dim=T=7", 0,
           "1 comparison agrees");
}
