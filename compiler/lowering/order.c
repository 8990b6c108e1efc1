/* The tables of forms and engines, and the order of sums. See order.h. */
#include "lowering/order.h"

static const FormInfo forms[] = {
#define FORM(symbol, name, title, chains, segment, ...) \
    [FORM_##symbol] = {name, title, chains, segment, __VA_ARGS__},
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

ReduceOrder reduce_order(KernelForm form, DeviceClass device) {
    uint32_t own = forms[form].n_chains;
    return (ReduceOrder){.n_chains = own ? own : device_traits[device].row_chains,
                         .segment_elems = forms[form].segment_elems};
}

uint32_t gemv_n_chains(const DimTab *dims, DimId k) {
    enum { MAX_CHAINS = 1024 };
    int64_t most = dim_hi(dims, k);
    uint32_t n = 1;
    while (n < MAX_CHAINS && n < most) n *= 2;
    return n;
}
