/* The largest of several dims. See dim.h. */
#include "ir/dim/dim.h"

bool dim_eval_largest(const DimTab *tab, const VecDim *dims, const int64_t *values,
                      int64_t *value) {
    int64_t own;
    *value = 0;
    for (uint32_t i = 0; i < dims->n; i++) {
        if (!dim_eval(tab, dims->data[i], values, &own)) return false;
        if (i == 0 || own > *value) *value = own;
    }
    return true;
}

void dim_print_largest(const DimTab *tab, const VecDim *dims, Text *out) {
    if (dims->n == 0) text_puts(out, "0");
    if (dims->n > 1) text_puts(out, "max(");
    for (uint32_t i = 0; i < dims->n; i++) {
        if (i) text_puts(out, ", ");
        dim_print(tab, dims->data[i], out);
    }
    if (dims->n > 1) text_puts(out, ")");
}
