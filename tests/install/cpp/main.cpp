// An outside program in C++ with a model that CMake compiled and linked into it: shift.g adds a
// number to its input. main EXPECTED succeeds when that is the number.
#include "again.h"
#include "shift.h"

#include <fusec.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

static float run(frt_module *module, std::string &why) {
    frt_error err = FRT_ERROR_INIT;
    frt_program *program = nullptr;
    frt_exec *exec = nullptr;
    std::vector<float> x(3, 1.0f), y(3);
    frt_tensor tx = {x.data(), FRT_F32, 1, {3}};
    frt_tensor ty = {y.data(), FRT_F32, 1, {3}};
    if (frt_program_create(module, nullptr, nullptr, &program, &err) ||
        frt_exec_create(program, &exec, &err) || frt_bind(exec, "x", &tx, &err) ||
        frt_bind(exec, "y", &ty, &err) || frt_run(exec, nullptr, &err))
        why = err.message;
    frt_exec_free(exec);
    frt_program_free(program);
    return y[2] - x[2];
}

int main(int argc, char **argv) {
    frt_error err = FRT_ERROR_INIT;
    frt_module *module = nullptr, *ptx = nullptr;
    std::string why;
    if (argc != 2 || shift_load(&module, &err) || again_load(&ptx, &err)) {
        std::printf("cannot load the models: %s\n", err.message);
        return 1;
    }
    float difference = run(module, why);
    FRT_INFO(frt_module_info, info);
    bool is_ptx = frt_module_get_info(ptx, &info) == FRT_OK && info.code == FRT_CODE_PTX;
    frt_module_free(module);
    frt_module_free(ptx);
    std::printf("%g %s %s\n", static_cast<double>(difference), is_ptx ? "ptx" : "no ptx",
                why.c_str());
    bool same = std::strcmp(fusec_version(), FUSEC_VERSION) == 0;
    return why.empty() && is_ptx && same && difference == std::strtof(argv[1], nullptr) ? 0 : 1;
}
