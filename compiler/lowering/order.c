/* The order of summation of every template. See order.h. */
#include "lowering/order.h"

static const FormInfo forms[] = {
#define FORM(symbol, ...) [FORM_##symbol] = {__VA_ARGS__},
#include "lowering/forms.def"
};

const FormInfo *form_info(KernelForm form) {
    return &forms[form];
}

static const EngineInfo engines[] = {
#define ENGINE(symbol, ...) [GEMM_##symbol] = {__VA_ARGS__},
#include "lowering/engines.def"
};

const EngineInfo *engine_info(GemmEngine engine) {
    return &engines[engine];
}

/* Rows: on a GPU enough chains that 256 threads hold a vector of four each, on a CPU 64, which fill
 * its registers. Columns: few chains, since the columns themselves fill the machine, and short
 * segments, to have more of them. */
ReduceOrder reduce_order(KernelForm form, DeviceClass device) {
    if (form == FORM_COLUMN) return (ReduceOrder){.n_chains = 8, .segment_elems = 256};
    return (ReduceOrder){.n_chains = device == DEVICE_GPU ? 1024 : 64, .segment_elems = 16384};
}

uint32_t gemv_n_chains(const DimTab *dims, DimId k) {
    enum { MAX_CHAINS = 1024 };
    int64_t most = dim_hi(dims, k);
    uint32_t n = 1;
    while (n < MAX_CHAINS && n < most) n *= 2;
    return n;
}
