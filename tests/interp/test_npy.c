/* .npy files: what is written is read back, and no damaged file is taken. */
#include "interp/npy.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char *file_with(Arena *arena, const char *header, size_t n_elem_bytes,
                             size_t *n_bytes) {
    Text text = {.arena = arena};
    const char length[2] = {(char)strlen(header), 0};
    text_add(&text, "\x93NUMPY\x01\x00", 8);
    text_add(&text, length, 2);
    text_puts(&text, header);
    for (size_t i = 0; i < n_elem_bytes; i++) text_add(&text, "\0", 1);
    *n_bytes = text.n_bytes;
    return text.data;
}

Test(npy, every_dtype_and_rank_comes_back) {
    Arena *arena = arena_new(NULL);
    uint8_t bytes[2 * 3 * 8];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37);
    for (int dtype = 0; dtype < DT_COUNT; dtype++) {
        for (uint32_t rank = 0; rank <= 3; rank++) {
            NpyArray array = {
                .dtype = (Dtype)dtype, .rank = rank, .dims = {2, 3, 1}, .bytes = bytes};
            array.n_bytes = dtype_bytes(array.dtype) * (rank == 0 ? 1 : rank == 1 ? 2 : 6);
            Text file = {.arena = arena};
            npy_write(&array, &file);
            NpyArray back;
            const char *error = NULL;
            cr_assert(npy_read(arena, file.data, file.n_bytes, &back, &error), "%s", error);
            cr_expect(dtype_in(array.dtype, back.dtypes) && back.rank == rank);
            cr_expect_eq(back.dtypes & ((1u << back.dtype) - 1), 0,
                         "the first of those that it may be");
            cr_expect(memcmp(back.dims, array.dims, rank * sizeof *array.dims) == 0);
            cr_assert(back.n_bytes == array.n_bytes);
            cr_expect(memcmp(back.bytes, bytes, array.n_bytes) == 0);
            cr_expect((file.n_bytes - array.n_bytes) % 64 == 0);
        }
    }
    arena_free(arena);
}

Test(npy, what_cannot_be_used_is_named) {
    static const struct {
        const char *header;
        size_t n_elem_bytes;
        const char *expected;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8, "dtype `>f4`"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", 8, "dtype `|O`"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8, "simple"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16, "Fortran"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7, "needs 8 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 9, "needs 8 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8, "no number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8,
         "no number"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 8,
         "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4, "axes"},
        {"{'descr': '<f4', 'fortran_order': False, }", 4, "lacks"},
        {"{'descr': '<f4', 'fortran_order': maybe, 'shape': (), }", 4, "fortran_order"},
        {"{'colour': 'red', }", 4, "colour"},
        {"['descr']", 4, "dictionary"},
        {"{'descr': '<f4", 4, "simple"},
    };
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n_bytes;
        const char *file = file_with(arena, cases[i].header, cases[i].n_elem_bytes, &n_bytes);
        NpyArray array;
        const char *error = "";
        cr_expect(!npy_read(arena, file, n_bytes, &array, &error), "%s", cases[i].header);
        cr_expect(strstr(error, cases[i].expected), "%s: %s", cases[i].header, error);
    }
    arena_free(arena);
}

Test(npy, versions_2_and_3_are_read) {
    static const char header[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }";
    Arena *arena = arena_new(NULL);
    for (char version = 2; version <= 3; version++) {
        const char head[12] = {'\x93', 'N', 'U', 'M', 'P', 'Y', version, 0, sizeof header - 1};
        Text text = {.arena = arena};
        text_add(&text, head, sizeof head);
        text_puts(&text, header);
        text_add(&text, "\x05\0\0\0", 4);
        NpyArray array;
        const char *error = "";
        cr_assert(npy_read(arena, text.data, text.n_bytes, &array, &error), "%s", error);
        cr_expect(array.dtype == DT_I32 && array.bytes[0] == 5);
    }
    arena_free(arena);
}

/* Exact copies on the heap, so that a sanitizer sees any byte read past the end. */
Test(npy, no_cut_or_changed_file_is_read_past_its_end) {
    Arena *arena = arena_new(NULL);
    static const uint8_t bytes[24];
    NpyArray array = {
        .dtype = DT_F64, .rank = 1, .dims = {3}, .bytes = bytes, .n_bytes = sizeof bytes};
    Text file = {.arena = arena};
    npy_write(&array, &file);
    for (size_t n = 0; n < file.n_bytes; n++) {
        char *cut = malloc(n + 1);
        memcpy(cut, file.data, n);
        const char *error = "";
        cr_expect(!npy_read(arena, cut, n, &array, &error), "cut to %zu bytes", n);
        cr_expect(error[0]);
        free(cut);
    }
    for (size_t i = 0; i < file.n_bytes * 8; i++) {
        char *changed = malloc(file.n_bytes);
        memcpy(changed, file.data, file.n_bytes);
        changed[i / 8] = (char)(changed[i / 8] ^ 1 << i % 8);
        const char *error = "";
        if (npy_read(arena, changed, file.n_bytes, &array, &error))
            cr_expect(array.n_bytes == sizeof bytes);
        free(changed);
    }
    arena_free(arena);
}
