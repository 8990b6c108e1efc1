/* The nearest of several names to a misspelt name. */
#include "base/nearest.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *nearest_of(const char *name, const char *first, const char *second) {
    Nearest nearest = nearest_to(name);
    nearest_try(&nearest, first);
    nearest_try(&nearest, second);
    return nearest.best ? nearest.best : "none";
}

Test(nearest, a_swap_of_neighbours_is_one_edit) {
    cr_expect_str_eq(nearest_of("rleu", "rem", "relu"), "relu");
    cr_expect_str_eq(nearest_of("sliu", "sin", "silu"), "silu");
    cr_expect_str_eq(nearest_of("asb", "add", "abs"), "abs");
    cr_expect_str_eq(nearest_of("mxa", "mul", "max"), "max");
    cr_expect_str_eq(nearest_of("smu", "sub", "sum"), "sum");
    cr_expect_str_eq(nearest_of("cocnat", "const", "concat"), "concat");
}

Test(nearest, a_third_of_the_letters_may_be_wrong) {
    cr_expect_str_eq(nearest_of("std", "add", "rem"), "none");
    cr_expect_str_eq(nearest_of("sub", "sum", "s"), "sum");
    cr_expect_str_eq(nearest_of("sofmx", "softmax", "sum"), "none");
    cr_expect_str_eq(nearest_of("sofmax", "sum", "softmax"), "softmax");
    cr_expect_str_eq(nearest_of("softmmx", "softmax", "sum"), "softmax");
    cr_expect_str_eq(nearest_of("ax", "keep", "axis"), "axis");
    cr_expect_str_eq(nearest_of("a", "b", "axis"), "none");
    cr_expect_str_eq(nearest_of("", "a", ""), "none");
}

Test(nearest, the_first_of_equally_near_names_wins) {
    cr_expect_str_eq(nearest_of("mix", "min", "max"), "min");
    cr_expect_str_eq(nearest_of("mix", "max", "min"), "max");
}

Test(nearest, names_of_48_bytes_and_more_are_near_to_none) {
    char name[64] = "", other[64] = "";
    memset(name, 'n', 47);
    memset(other, 'n', 46);
    cr_expect_str_eq(nearest_of(name, "a", other), other);
    cr_expect_str_eq(nearest_of(other, "a", name), name);
    memset(name, 'n', 60);
    cr_expect_str_eq(nearest_of(name, name, other), "none");
    cr_expect_str_eq(nearest_of(other, "a", name), "none");
}
