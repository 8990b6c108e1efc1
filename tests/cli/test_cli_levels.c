/* The program and code for several levels of a CPU: which there are, which runs, and another one
 * where that is asked for. */
#include "lib/command.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(cli_levels, .init = command_set_up, .fini = command_tear_down, .timeout = 60);

Test(cli_levels, levels_are_named_and_asked_for) {
    expect("@good.g --target=cpu-multi -o @m.o --verbose", 0, "");
    cr_expect(strstr(run.err, "m.o is for cpu-amx, cpu-vnni, cpu-v4 and cpu"), "%s", run.err);
    expect("inspect @m.o", 0, "object for x86-64-v3, ");
    cr_expect(strstr(run.out,
                     "level cpu-amx: x86-64-v4 with avx512vnni,amx-tile,amx-int8,amx-bf16\n"
                     "level cpu-vnni: x86-64-v4 with avx512vnni\nlevel cpu-v4: x86-64-v4\nlevel "
                     "cpu: x86-64-v3\n"),
              "%s", run.out);
    cr_expect(strstr(run.out, " if level cpu-v4"), "%s", run.out);
    expect("run @m.o --level=cpu", 0, "");
    cr_expect(strstr(run.err, "fusec: ran code for cpu\n"), "%s", run.err);
    expect("bench @m.o --level=cpu --runs=5", 0, "target   x86-64-v3, level cpu, strict");
    expect("bench @good.g --target=cpu-multi --level=cpu --runs=5 --json", 0, "\"level\": \"cpu\"");
    expect("verify @good.g --target=cpu-multi --level=cpu --data=ramps --dim=B=5", 0,
           ": 1 comparison");
    expect("run @m.o --level=sm_80", 1, "the artifact has no level sm_80, its best is cpu-amx");
    expect("@good.g --target=cpu -o @p.o", 0, "");
    expect("run @p.o --level=cpu", 1, "no level cpu: it has code for one CPU");
    expect("run @p.o --verbose", 0, "");
    cr_expect(strstr(run.err, "fusec: ran code for x86-64-v3\n"), "%s", run.err);
}
