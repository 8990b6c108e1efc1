# fusec: the compiler, its library, the runtime and their tests. `make help` lists the targets.
# Settings may be given on the command line: make CC=clang V=1

CC = gcc
CXX = g++
PREFIX = /usr/local
LLVM_MAJOR = 22
LLVM_CONFIG = llvm-config-$(LLVM_MAJOR)
FUZZ_CC = clang
FUZZ_SECONDS = 8
N = 200
SEED = 1
ULP_SECONDS = 120
# release, or asan or fuzz for the trees with the sanitizers, or clang for one made by that compiler.
CONFIG = release

WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
  -Wmissing-prototypes -Wundef -Wvla -Wwrite-strings -Wformat=2 -Werror
COMMON = -std=c11 -D_POSIX_C_SOURCE=200809L $(WARNINGS) -fPIC -fvisibility=hidden \
  -ffunction-sections -fdata-sections -MMD -MP
# Paths in debug information begin at the repository, so that two folders give the same bytes.
COMMON += '-ffile-prefix-map=$(CURDIR)=.'
# What ships is hardened; packaging/hardened.sh looks for all of it.
HARDEN = -fstack-protector-strong -fstack-clash-protection -fcf-protection=full \
  -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
HARDEN_LINK = -Wl,-z,relro,-z,now,-z,noexecstack
# A report of the sanitizers names lines, which -g1 has; more of -g and -O takes half of the build's time.
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer

ifeq ($(CONFIG),asan)
B = build/asan
CFLAGS = $(COMMON) -Og -g1 $(SANITIZE)
else ifeq ($(CONFIG),fuzz)
B = build/fuzz
CC = $(FUZZ_CC)
CFLAGS = $(COMMON) -O1 -g1 $(SANITIZE) -fsanitize=fuzzer-no-link
else ifeq ($(CONFIG),clang)
B = build/clang
CC = clang
CFLAGS = $(COMMON) $(HARDEN) -O2 -g
else
B = build
CFLAGS = $(COMMON) $(HARDEN) -O2 -g
endif
O = $(B)/obj

Q = $(if $(V),,@)
say = $(if $(V),,@echo "  $(1)$(subst $(B)/,,$@)";)

# ---- sources ----

GEN = build/gen
GEN_SRC = $(GEN)/front/parse.c $(GEN)/front/lex.c $(GEN)/front/prelude_text.c $(GEN)/report/style.c

sources = $(foreach folder,$(1),$(wildcard compiler/$(folder)/*.c))
# Without LLVM, in the order in which folders see each other: also the part that the fast tests link.
FRONT_SRC = $(call sources,front)
CORE_SRC = $(call sources,base ir/dim ir ir/build ir/print machine interp lowering plan pipeline template \
  cost/count cost/kernel cost schedule/wgmma schedule memory fuse/inline fuse split layout launch search \
  explain report artifact verify onnx/file onnx/call onnx/lower onnx) $(FRONT_SRC)
ifeq ($(CONFIG),fuzz)
CORE_SRC = $(call sources,base ir/dim ir ir/build ir/print interp onnx/file onnx/call onnx/lower onnx) $(FRONT_SRC)
endif
BACK_SRC = $(call sources,codegen codegen/part codegen/llvm codegen/scalar codegen/math codegen/gpu codegen/gpu_gemm codegen/gpu_gemm/rows \
  codegen/cpu codegen/cpu_gemm codegen/ptx driver)
CLI_SRC = $(call sources,cli)
RT_SRC = $(wildcard runtime/src/*/*.c)

# Tests: every tests/*/test_*.c is one Criterion program. Those that use the back end, the whole
# compiler or the JIT link LLVM and are kept apart, because that costs them start-up time.
TEST_SRC = $(wildcard tests/*/test_*.c)
LLVM_TEST_SRC = $(shell grep -lE '^\#include ("(codegen|driver)/|"verify/verify\.h"|<fusec\.h>|<llvm-c|"tools/|"lib/compile|"sweep/stored)' $(TEST_SRC) /dev/null)
PLAIN_TEST_SRC = $(filter-out $(LLVM_TEST_SRC),$(TEST_SRC))
TEST_LIB_SRC = $(wildcard tests/lib/*.c tests/random/*.c tests/fake/*.c tests/tools/*.c tests/onnx/onnx_*.c tests/sweep/stored.c)
FUZZ_SRC = $(wildcard tests/fuzz/*.c)
EXAMPLES = $(wildcard dsl/examples/*.g)

objs = $(patsubst %.c,$(O)/%.o,$(patsubst $(GEN)/%.c,gen/%.c,$(1)))
tests = $(patsubst tests/%.c,$(B)/tests/%,$(1))
PLAIN_TESTS = $(call tests,$(PLAIN_TEST_SRC))
# Tests that run build/fusec, which is never built with the sanitizers, are the same with and without.
PROGRAM_TEST_SRC = $(shell grep -l '"lib/command\.h"' $(PLAIN_TEST_SRC) /dev/null)
SANITIZED_TESTS = $(call tests,$(filter-out $(PROGRAM_TEST_SRC),$(PLAIN_TEST_SRC)))
LLVM_TESTS = $(call tests,$(LLVM_TEST_SRC))
EMULATED_TESTS = $(call tests,$(shell grep -l '"emulator/emu\.h"' $(LLVM_TEST_SRC) /dev/null))

CORE_LIB = $(O)/libcore.a
BACK_LIB = $(O)/libback.a
RT_LIB = $(O)/librt.a
TEST_LIB = $(O)/libtest.a

# ---- LLVM: of --system-libs only zlib, zstd and libstdc++ are needed; their archives exist ----

LLVM_CFLAGS = -isystem $(shell $(LLVM_CONFIG) --includedir)
LLVM_STATIC = -L$(shell $(LLVM_CONFIG) --libdir) \
  $(shell $(LLVM_CONFIG) --link-static --libs x86codegen) \
  -Wl,-Bstatic -lz -lzstd -Wl,-Bdynamic -static-libstdc++ -static-libgcc -lm -ldl -lpthread
LLVM_SHARED = -L$(shell $(LLVM_CONFIG) --libdir) $(shell $(LLVM_CONFIG) --link-shared --libs)
# The program writes JSON with it; neither library needs it.
JANSSON = -Wl,-Bstatic -ljansson -Wl,-Bdynamic

# For whole runs: all processors, unless the command line says how many. Recipes begin with + so
# that they share the jobs.
AGAIN = $(MAKE) --no-print-directory $(if $(findstring j,$(filter-out --%,$(MAKEFLAGS))),,-j$(shell nproc))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: check-asan tests-built fuzzers-built all help deps test ci-checks check-unit check-llvm check-all soak ulp sweep shapes fuzz asan layers \
  format format-check docs docs-check prose wc wc-check compile-time bench-cpu install clean

all: build/fusec build/libfusec.a build/libfusec.so build/libfusert.a build/libfusert.so ## Build the compiler and both libraries

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' Makefile

# ---- objects ----

$(GEN)/front/parse.c: compiler/front/parse.y
	$(call say,BISON )mkdir -p $(@D) && bison -Wall -Werror --header=$(@:.c=.h) -o $@ $<
$(GEN)/front/parse.h: $(GEN)/front/parse.c
	@test -f $@
$(GEN)/front/lex.c: compiler/front/lex.l
	$(call say,FLEX )mkdir -p $(@D) && flex -o $@ $<
PRELUDE = $(wildcard dsl/prelude/*.g)
$(GEN)/front/prelude_text.c: $(PRELUDE) tools/embed_prelude.sh
	$(call say,GEN )mkdir -p $(@D) && sh tools/embed_prelude.sh $(PRELUDE) > $@

$(GEN)/report/style.c: compiler/report/style.css tools/embed.sh
	$(call say,GEN )mkdir -p $(@D) && sh tools/embed.sh report_style_text report_style_n_bytes $< > $@

FRONT_INC = -I$(GEN) -I$(GEN)/front -Icompiler/front
$(call objs,$(FRONT_SRC) $(GEN_SRC)): | $(GEN)/front/parse.h
$(call objs,$(FRONT_SRC)): INC = $(FRONT_INC)
$(call objs,$(BACK_SRC)): INC = $(LLVM_CFLAGS)

compile = $(call say,CC )mkdir -p $(@D) && $(CC) $(CFLAGS)

$(O)/compiler/%.o: compiler/%.c
	$(compile) $(INC) -Icompiler -Icompiler/include -Iruntime/include -c -o $@ $<
$(O)/gen/%.o: $(GEN)/%.c
	$(compile) $(FRONT_INC) -Icompiler -Iruntime/include -c -o $@ $<
$(O)/runtime/%.o: runtime/%.c
	$(compile) -Iruntime/include -Iruntime/src -c -o $@ $<
$(O)/tools/%.o: tools/%.c
	$(compile) -Icompiler -Icompiler/include -Iruntime/include -c -o $@ $<

TEST_INC = -Itests -Icompiler -Icompiler/include -Iruntime/include
$(call objs,$(wildcard tests/*/test_rt_*.c tests/*/rt_*.c tests/fake/*.c tests/fuzz/*.c)): TEST_PLUS = -Iruntime/src
$(call objs,$(LLVM_TEST_SRC) $(wildcard tests/tools/*.c)): TEST_PLUS = $(LLVM_CFLAGS)
# gcc takes a loop variable around setjmp for clobbered, whatever it is.
TEST_FLAGS = $(if $(findstring gcc,$(CC)),-Wno-clobbered)
$(O)/tests/%.o: tests/%.c
	$(compile) $(TEST_FLAGS) $(TEST_INC) -I$(GEN) $(TEST_PLUS) -c -o $@ $<

archive = $(call say,AR )rm -f $@ && ar qcsD $@
$(CORE_LIB): $(call objs,$(CORE_SRC) $(GEN_SRC))
	$(archive) $^
$(BACK_LIB): $(call objs,$(BACK_SRC))
	$(archive) $^
$(RT_LIB): $(call objs,$(RT_SRC))
	$(archive) $^
$(TEST_LIB): $(call objs,$(TEST_LIB_SRC))
	$(archive) $^

# ---- products ----

# The runtime is linked in its public form: its private names are its own.
$(B)/fusec: $(call objs,$(CLI_SRC)) $(BACK_LIB) $(CORE_LIB) $(B)/libfusert.a
	$(call say,LINK )$(CXX) -pie $(HARDEN_LINK) -o $@ $^ -Wl,--gc-sections $(JANSSON) $(LLVM_STATIC)

# One relocatable object whose only global names are the public ones.
merge = ld -r -o $@.o $(1) && objcopy --localize-hidden --wildcard --keep-global-symbol='$(2)' $@.o \
  && rm -f $@ && ar rcsD $@ $@.o && rm $@.o
# A library that exports what its version script lists. LIBRARY_LINK NAME
LIBRARY_LINK = -shared -Wl,-soname,lib$(1).so.0 -Wl,--no-undefined -Wl,--gc-sections $(HARDEN_LINK) \
  -Wl,--version-script=packaging/lib$(1).map -Wl,--no-undefined-version
# The runtime does not switch stacks; Debian's start files lack the note that says so.
SHADOW_STACK = -z shstk

$(B)/libfusert.a: $(call objs,$(RT_SRC))
	$(call say,AR )$(call merge,$^,frt_*)
build/libfusert.so: $(call objs,$(RT_SRC)) packaging/libfusert.map
	$(call say,LINK )$(CC) $(call LIBRARY_LINK,fusert) $(SHADOW_STACK) \
	  -o $@ $(filter %.o,$^) -lpthread -ldl && ln -sf $(@F) $@.0
build/libfusec.a: $(call objs,$(BACK_SRC) $(CORE_SRC) $(GEN_SRC))
	$(call say,AR )$(call merge,$^,fusec_*)
$(B)/libfusec.so: $(call objs,$(BACK_SRC) $(CORE_SRC) $(GEN_SRC)) packaging/libfusec.map
	$(call say,LINK )$(CXX) $(call LIBRARY_LINK,fusec) -Wl,--exclude-libs,ALL \
	  -o $@ $(filter %.o,$^) $(LLVM_STATIC) && ln -sf $(@F) $@.0

# ---- tests ----

# Tests of the runtime see its private parts, other tests its public form: the two halves of the
# house use some names for different things. Criterion runs every test in a process of its own.
TEST_LIBS = -lcriterion -ljansson -lm -lpthread -ldl
test_link = $(call say,LINK )mkdir -p $(@D) && $(CC) $(filter -fsanitize%,$(CFLAGS)) -o $@ $^
RT_TESTS = $(call tests,$(wildcard tests/*/test_rt_*.c))
$(RT_TESTS): $(B)/tests/%: $(O)/tests/%.o $(TEST_LIB) $(RT_LIB)
	$(test_link) $(TEST_LIBS)
$(filter-out $(RT_TESTS) %/test_emulator %/test_choice,$(PLAIN_TESTS)): $(B)/tests/%: $(O)/tests/%.o $(TEST_LIB) $(CORE_LIB) $(B)/libfusert.a
	$(test_link) $(TEST_LIBS)
$(filter-out $(RT_TESTS) %/test_prove %/test_shapes %/test_cpu_amx $(EMULATED_TESTS),$(LLVM_TESTS)): $(B)/tests/%: $(O)/tests/%.o $(TEST_LIB) $(BACK_LIB) $(CORE_LIB) $(B)/libfusert.a
	$(test_link) $(LLVM_SHARED) $(TEST_LIBS)

# Compares the compiler's predicates with the runtime's.
$(B)/tests/plan/test_choice: $(call objs,tests/plan/test_choice.c tests/plan/rt_predicate.c) $(TEST_LIB) $(CORE_LIB) $(RT_LIB)
	$(test_link) $(TEST_LIBS)

# Tells the runtime that the machine has tile registers.
$(B)/tests/e2e/test_cpu_amx: $(B)/tests/%: $(O)/tests/%.o $(TEST_LIB) $(BACK_LIB) $(CORE_LIB) $(RT_LIB)
	$(test_link) $(LLVM_SHARED) $(TEST_LIBS) -Wl,--wrap=port_cpu_has

# Runs verify in its own process, with mistakes planted.
PROVE_TEST = $(B)/tests/selftest/test_prove
$(PROVE_TEST): | $(B)/tests/soak/soak
$(PROVE_TEST): $(O)/tests/selftest/test_prove.o $(filter-out %/fusec.o,$(call objs,$(CLI_SRC))) \
  $(TEST_LIB) $(BACK_LIB) $(CORE_LIB) $(B)/libfusert.a
	$(test_link) $(LLVM_SHARED) $(TEST_LIBS)

# Runs soak with mistakes planted, and looks into the programs that it draws.
SHAPES_TEST = $(B)/tests/selftest/test_shapes
$(SHAPES_TEST): | $(B)/tests/soak/soak
$(SHAPES_TEST): $(O)/tests/selftest/test_shapes.o $(O)/tests/soak/shapes_sources.o \
  $(O)/tests/soak/shapes_sources_map.o $(O)/tests/soak/shapes_sources_im2col.o \
  $(O)/tests/soak/shapes_sources_band.o \
  $(O)/tests/soak/shapes_templates.o $(TEST_LIB) $(BACK_LIB) $(CORE_LIB) $(B)/libfusert.a
	$(test_link) $(LLVM_SHARED) $(TEST_LIBS)

# What stands for the driver where there is no GPU. Of its tests it is a part.
.PHONY: emulator
EMULATOR = build/emulator/libcuda.so.1
EMULATOR_OBJ = $(call objs,$(wildcard tests/emulator/*.c))
$(EMULATOR_OBJ): TEST_PLUS = -Iruntime/src -O3 -mavx2 -mfma
build/emulator/libcuda.so.1: $(EMULATOR_OBJ) $(call objs,$(call sources,base) compiler/ir/dtype.c \
  compiler/interp/tensor.c tests/fake/fake_map.c)
	$(call say,LINK )mkdir -p $(@D) && $(CC) -shared -o $@ $^ -lm -lpthread
emulator: $(EMULATOR) ## Build an emulator of GPUs: LD_LIBRARY_PATH=build/emulator build/fusec run ..
EMULATOR_TEST = $(B)/tests/selftest/test_emulator
$(EMULATOR_TEST): $(O)/tests/selftest/test_emulator.o $(EMULATOR_OBJ) $(TEST_LIB) $(CORE_LIB)
	$(test_link) $(TEST_LIBS)

$(EMULATED_TESTS): $(B)/tests/%: $(O)/tests/%.o $(EMULATOR_OBJ) $(TEST_LIB) $(BACK_LIB) $(CORE_LIB) $(B)/libfusert.a
	$(test_link) $(LLVM_SHARED) $(TEST_LIBS)

$(B)/tests/driver/test_lib_memory: TEST_LIBS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=pthread_create

# The program that compares generated graphs is no Criterion suite.
SOAK_OBJ = $(call objs,$(wildcard tests/soak/*.c))
$(SOAK_OBJ): TEST_PLUS = $(LLVM_CFLAGS)
$(B)/tests/selftest/test_reduce: | $(B)/tests/soak/soak # which it runs
$(B)/tests/soak/soak: $(SOAK_OBJ) $(filter-out %/fusec.o,$(call objs,$(CLI_SRC))) $(TEST_LIB) $(BACK_LIB) $(CORE_LIB) $(B)/libfusert.a
	$(test_link) $(LLVM_SHARED) -ljansson -lm -lpthread -ldl
# fusec and soak as one program with LLVM inside, for a GPU machine: bench/gpu_check.sh.
.PHONY: gpu-kit
$(O)/kit/%.o: $(O)/compiler/cli/%.o
	@mkdir -p $(@D) && objcopy --redefine-sym main=$*_main $< $@
$(O)/kit/%.o: $(O)/tests/soak/%.o
	@mkdir -p $(@D) && objcopy --redefine-sym main=$*_main $< $@
KIT_OBJ = $(filter-out %/fusec.o %/soak.o,$(call objs,$(CLI_SRC)) $(SOAK_OBJ)) \
  $(O)/kit/fusec.o $(O)/kit/soak.o $(O)/tests/kit/kit.o
$(B)/kit/kit: $(KIT_OBJ) $(TEST_LIB) $(BACK_LIB) $(CORE_LIB) $(B)/libfusert.a
	$(call say,LINK )mkdir -p $(@D) && $(CXX) -s -o $@ $^ -Wl,--gc-sections $(JANSSON) $(LLVM_STATIC)
gpu-kit: $(B)/kit/kit ## Fill build/kit with what bench/gpu_check.sh takes to a GPU machine
	$(Q)mkdir -p $(B)/kit/examples $(B)/kit/bench
	$(Q)cp $(EXAMPLES) $(B)/kit/examples/ && cp bench/*.g bench/*.sh $(B)/kit/bench/
	$(Q)cp tests/ulp/found.def $(B)/kit/
	$(Q)du -sh $(B)/kit
# What a GPU machine needs to time fusec beside its peers, and the example with a context of its own.
.PHONY: peers-kit
PEERS_KIT = $(B)/peers-kit
EMBED = dsl/examples/embed
$(PEERS_KIT)/own_context: $(EMBED)/own_context.c $(EMBED)/held_out.c $(EMBED)/npy.c $(B)/libfusert.a
	$(call say,LINK )mkdir -p $(@D) && $(CC) -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -Iruntime/include \
	  -o $@ $^ -lm -ldl -lpthread
peers-kit: all $(PEERS_KIT)/own_context ## Fill build/peers-kit with what bench/peers takes to a GPU machine
	$(Q)mkdir -p $(PEERS_KIT)/lib && cp bench/peers/*.py bench/gemm_torch.py bench/convolutions.py dsl/examples/resnet50.g $(PEERS_KIT)/
	$(Q)mkdir -p $(PEERS_KIT)/fusec && cp python/fusec/*.py $(PEERS_KIT)/fusec/
	$(Q)strip -o $(PEERS_KIT)/lib/libfusec.so build/libfusec.so
	$(Q)strip -o $(PEERS_KIT)/lib/libfusert.so build/libfusert.so
	$(Q)build/fusec dsl/examples/digits.g -o $(PEERS_KIT)/digits.ptx
	$(Q)cp dsl/examples/digits/*.npy dsl/examples/digits/*.safetensors $(PEERS_KIT)/
	$(Q)du -sh $(PEERS_KIT)
SOAK = $(if $(wildcard tests/soak/soak.c),$(B)/tests/soak/soak)

deps: ## Install the Debian packages that are missing
	@LLVM_MAJOR=$(LLVM_MAJOR) sh tools/deps.sh

check-unit: $(PLAIN_TESTS) build/fusec ## Run the tests that need no LLVM
	@sh tools/run_tests.sh $(PLAIN_TESTS)

check-llvm: $(LLVM_TESTS) ## Run the tests that link LLVM
	@sh tools/run_tests.sh $(LLVM_TESTS)

asan: build/fusec ## Run the tests that need no LLVM under the address and undefined behaviour sanitizers
	+@$(AGAIN) CONFIG=asan check-asan
check-asan: $(SANITIZED_TESTS)
	@sh tools/run_tests.sh $(SANITIZED_TESTS)

soak: $(B)/tests/soak/soak ulp ## Compare N random graphs fused, unfused and interpreted (N=500 SEED=1 ARGS=--device=cuda), and errors of unary ops
	$(Q)$< $(N) $(SEED) $(ARGS)
ulp: $(B)/tests/soak/soak ## Go on with the sweep of all values of unary ops, on all cores (ULP_SECONDS=120)
	$(Q)$< --ulp --seconds=$(ULP_SECONDS) $(filter --device=% --target=%,$(ARGS))
shapes: $(B)/tests/soak/soak ## Compare N random shapes of every template (N=500 SEED=1 ARGS=--device=cuda)
	$(Q)$< --shapes $(N) $(SEED) $(ARGS)
sweep: $(B)/tests/soak/soak ## Compare every op with every dtype and shape, then as sweep-torch does
	$(Q)$< --sweep $(ARGS)
	+@$(AGAIN) sweep-torch
# Where it was interrupted, a second call goes on. For a GPU: python3 tests/sweep/sweep.py build --target=sm_90a --cases=50
.PHONY: sweep-torch
CASES = 500
sweep-torch: build/libfusec.so build/libfusert.so build/torch-env/bin/python ## Compare CASES=500 random cases of every op and prelude function with NumPy and PyTorch on the CPU, write docs/results/sweep.md and tests/sweep/stored.bin
	@build/torch-env/bin/python tests/sweep/sweep.py build --cases=$(CASES) --state=build/sweep.json \
	  --page=docs/results/sweep.md --store=tests/sweep/stored.bin

.PHONY: hostile
hostile: $(B)/tests/cli/test_hostile build/fusec ## Compile every kind of source that is made to take long, and print a table of seconds and memory
	$(Q)HOSTILE=1 $< --filter 'hostile/every*'
.PHONY: hostile-random
hostile-random: $(B)/tests/cli/test_hostile_random build/fusec ## Compile N random sources that are made to take long, and print the seconds of each (N=200 SEED=1)
	$(Q)HOSTILE_N=$(N) HOSTILE_SEED=$(SEED) $<

# The first #include tells which half of the house a fuzzer is for.
FUZZERS = $(patsubst tests/fuzz/%.c,build/fuzz/%,$(FUZZ_SRC))
RT_FUZZERS = $(patsubst tests/fuzz/%.c,build/fuzz/%,$(shell grep -lE 'runtime/src|fusert' $(FUZZ_SRC) /dev/null))
ifeq ($(CONFIG),fuzz)
fuzz_link = $(call say,LINK )$(CC) -fsanitize=fuzzer,address,undefined -o $@ $^ -lm -lpthread -ldl
$(RT_FUZZERS): build/fuzz/%: $(O)/tests/fuzz/%.o $(RT_LIB)
	$(fuzz_link)
$(filter-out $(RT_FUZZERS),$(FUZZERS)): build/fuzz/%: $(O)/tests/fuzz/%.o $(CORE_LIB)
	$(fuzz_link)
endif
fuzzers-built: $(FUZZERS)
fuzz: ## Run each fuzzer for FUZZ_SECONDS
	+@$(AGAIN) CONFIG=fuzz fuzzers-built
	@sh tools/run_fuzz.sh $(FUZZ_SECONDS) $(FUZZERS)

build/stream: bench/stream.c
	$(call say,CC )$(CC) $(COMMON) -O3 -march=native -o $@ $< -lpthread
bench-cpu: build/fusec build/stream ## Time memory-bound graphs on all cores beside triad and memcpy
	@sh bench/memory_cpu.sh build/fusec build/stream

FUSION_SOURCES = bench/memory_cpu.g $(filter-out %/transformer.g %/llama.g,$(EXAMPLES))
.PHONY: bench-fusion
bench-fusion: $(B)/tests/soak/soak ## Time examples, drawn convolutions and random graphs on the CPU, fused beside unfused (N=300 SEED=1 THREADS=1)
	$(Q)python3 bench/convolutions.py build/convolutions 100 $(or $(SEED),1)
	$(Q)$< --times --random=$(or $(N),300) --seed=$(or $(SEED),1) --threads=$(or $(THREADS),1) \
	  $(FUSION_SOURCES) build/convolutions/*.g

build/openblas: bench/openblas.c build/libfusert.a
	$(call say,CC )$(CC) $(COMMON) -O3 -march=native -Iruntime/include -o $@ $^ -lm -lpthread -ldl
.PHONY: bench-openblas
bench-openblas: ## Time f32 matrix products on THREADS cores beside OpenBLAS, which it installs (THREADS="1 2")
	@LLVM_MAJOR=$(LLVM_MAJOR) sh tools/deps.sh libopenblas0-pthread
	+@$(AGAIN) build/fusec build/openblas
	@sh bench/openblas.sh build/fusec build/openblas $(THREADS)

build/time_runs: $(O)/tools/time_runs.o
	$(call say,LINK )$(CC) -o $@ $^
compile-time: build/fusec build/time_runs ## Check how long every example takes to compile, to PTX and for a CPU
	@sh tools/compile_time.sh 20 build/time_runs build/fusec $(EXAMPLES)

# The package that makes the tests is installed beside the build, not in the system.
.PHONY: onnx-node-tests onnx-networks onnx-exports
build/onnx-env/bin/python:
	$(Q)python3 -m venv build/onnx-env && build/onnx-env/bin/pip install -q -r tests/onnx/requirements.txt
onnx-node-tests: build/fusec build/onnx-env/bin/python ## Run ONNX's node tests on the CPU and write docs/results/onnx-node-tests.md
	@build/onnx-env/bin/python tests/onnx/node_tests.py $< --page docs/results/onnx-node-tests.md --store tests/onnx/node_cases.bin
onnx-networks: build/fusec build/onnx-env/bin/python ## Run the models of the package onnx on the CPU and write docs/results/onnx-networks.md
	@build/onnx-env/bin/python tests/onnx/network_tests.py $< --page docs/results/onnx-networks.md
build/export-env/bin/python:
	$(Q)python3 -m venv build/export-env && build/export-env/bin/pip install -q -r tests/onnx/export_requirements.txt
onnx-exports: build/fusec build/export-env/bin/python ## Compare networks of PyTorch and scikit-learn, exported to ONNX, with onnxruntime on the CPU and write docs/results/onnx-exports.md and tests/models
	@build/export-env/bin/python tests/onnx/export_tests.py $< --page docs/results/onnx-exports.md --store tests/models

.PHONY: timm-tests
MODULES = 60
timm-tests: build/fusec build/export-env/bin/python ## Take MODULES=60 networks drawn from timm in by ONNX and from PyTorch, on the CPU, and write docs/results/timm.md
	@build/export-env/bin/python tests/onnx/timm_tests.py $< --modules=$(MODULES) --state build/timm.json --page docs/results/timm.md

.PHONY: torch-tests
build/torch-env/bin/python:
	$(Q)python3 -m venv build/torch-env && build/torch-env/bin/pip install -q -r tests/torch/requirements.txt
torch-tests: build/fusec build/torch-env/bin/python ## Compare translated PyTorch ops and networks with PyTorch on the CPU and write docs/results/torch*.md and tests/torch/stored
	@build/torch-env/bin/python tests/torch/torch_tests.py $< --page docs/results/torch.md --ops docs/results/torch-ops.md \
	  --guide docs/PYTORCH.md --store tests/torch/stored

check-all: all dist build/time_runs $(PLAIN_TESTS) $(LLVM_TESTS) $(SOAK) $(EMULATOR)
	+@$(AGAIN) CONFIG=asan tests-built
	+@$(AGAIN) CONFIG=fuzz fuzzers-built
	@sh tools/test_all.sh "$(PLAIN_TESTS) $(LLVM_TESTS)" \
	  "$(patsubst build/%,build/asan/%,$(SANITIZED_TESTS))" "$(SOAK)" "$(N) $(SEED)" \
	  "$(FUZZ_SECONDS)" "$(FUZZERS)" "$(TARBALL)" $(EMULATOR)
tests-built: $(SANITIZED_TESTS)

test: ## Install what is missing, build everything, run every test
	@$(MAKE) --no-print-directory deps
	+@$(AGAIN) check-all

# ---- checks of the source itself ----

ci-checks: layers circles constants enums node-flags emission format-check docs-check prose wc-check abi same-check same-as-quick ## Check includes, constants, enumerators, flags of nodes, order of emission, format, generated docs, lengths, interfaces, that clang and the revision of same-as write the same

.PHONY: same-check clang-built
clang-built: $(B)/fusec $(B)/libfusec.so
same-check: build/same_compile build/libfusec.so build/fusec ## Check that a build by clang writes the same artifacts, byte for byte
	+@$(AGAIN) CONFIG=clang clang-built
	@SAME_AS_NEW=build/clang/libfusec.so $(SAME_AS) --examples build/libfusec.so

# The revision's library and this tree's are loaded by the same program, through fusec.h alone.
.PHONY: same-as same-as-quick
REV = bf1796cc
SAME_AS = CC="$(CC)" sh tools/same_as.sh
build/same_compile: $(O)/tools/same_compile.o
	$(call say,LINK )$(CC) -o $@ $^ -ldl
SAME_BUILT = build/same_compile build/libfusec.so build/fusec $(B)/tests/soak/soak
same-as: $(SAME_BUILT) ## Check that artifacts are those of a git revision, byte for byte (REV=bf1796cc N=2000 SEED=1)
	@$(SAME_AS) $(REV) $(if $(filter command%,$(origin N)),$(N),2000) $(SEED)
same-as-quick: $(SAME_BUILT) ## The same in a few minutes: 100 random graphs, three targets
	@$(SAME_AS) --quick $(REV) 100 $(SEED)

.PHONY: abi
abi: build/libfusert.so build/libfusec.so ## Check that programs built with the last tag still run
	@LLVM_MAJOR=$(LLVM_MAJOR) CC="$(CC)" sh tools/abi.sh
layers: ## Check who includes whom
	@sh tools/layers.sh
constants: ## Check that numbers of cards, and numbers that were chosen, stand in their tables
	@sh tools/constants.sh
enums: ## Check that files ask for traits, and compare no enumerator of another folder's list
	@sh tools/enums.sh
node-flags: ## Check that flags of a graph's nodes stand in NodeFlags
	@sh tools/node_flags.sh
emission: ## Check that no call has two arguments that emit instructions
	@sh tools/emission.sh

.PHONY: circles emission
circles: build/fusec build/libfusert.so ## Check that no folders call each other, and few files in a circle
	@sh tools/circles.sh $(O)

C_FILES = $(shell find compiler runtime tests tools -name '*.[ch]')
format: ## Format the C sources in place
	$(Q)clang-format -i $(C_FILES)
format-check: ## Check the format of the C sources
	@clang-format --dry-run -Werror $(C_FILES)

build/gen_ops: $(O)/tools/gen_ops.o $(CORE_LIB)
	$(call say,LINK )$(CC) -o $@ $^ -lm
build/gen_passes: $(O)/tools/gen_passes.o $(CORE_LIB)
	$(call say,LINK )$(CC) -o $@ $^ -lm
build/gen_tuning: $(O)/tools/gen_tuning.o
	$(call say,LINK )$(CC) -o $@ $^
build/gen_onnx: $(O)/tools/gen_onnx.o $(CORE_LIB)
	$(call say,LINK )$(CC) -o $@ $^ -lm
# Pages that are made of tables of the source: docs/OPS.md is what build/gen_ops prints.
GENERATED = ops passes tuning onnx
page = docs/$(shell echo $(1) | tr a-z A-Z).md
docs: $(GENERATED:%=build/gen_%) ## Generate the pages of docs that are made of tables of the source
	$(Q)$(foreach g,$(GENERATED),build/gen_$(g) > build/$(g).md && mv build/$(g).md $(call page,$(g)) &&) true
docs-check: $(GENERATED:%=build/gen_%) ## Check that these are current
	@$(foreach g,$(GENERATED),build/gen_$(g) | diff -u $(call page,$(g)) - || { echo "$(call page,$(g)) is stale: make docs"; exit 1; };)

prose: ## Check sentences, words and the glossary of the documentation
	@sh tools/prose.sh

wc: ## Show lengths of files and functions
	@sh tools/wc.sh
wc-check: ## Check that no file passes 700 lines and no function 60
	@sh tools/wc.sh --check

# ---- install and release ----

VERSION = $(shell sed -n 's/^\#define FUSEC_VERSION "\(.*\)"/\1/p' compiler/include/fusec.h)
TARBALL = build/fusec-$(VERSION)-x86_64-linux.tar.gz
$(O)/packaging/%.o: packaging/%.c
	$(compile) -Icompiler -Iruntime/include -c -o $@ $<
build/gen_cli: $(O)/packaging/gen_cli.o $(O)/compiler/cli/options.o
	$(call say,LINK )$(CC) -o $@ $^
.PHONY: package uninstall dist check-install
package: all build/gen_cli
	$(Q)CC="$(CC)" LIBRARY_LINK="$(call LIBRARY_LINK,fusert) $(SHADOW_STACK)" \
	  sh packaging/package.sh $(VERSION) $(LLVM_MAJOR) "$(shell $(LLVM_CONFIG) --libdir)" \
	  "$(shell $(LLVM_CONFIG) --link-static --libs x86codegen)"
install: package ## Install below PREFIX (and DESTDIR)
	@sh packaging/install.sh $(VERSION) "$(DESTDIR)$(PREFIX)"
uninstall: ## Remove what install put below PREFIX (and DESTDIR)
	@sh packaging/uninstall.sh "$(DESTDIR)$(PREFIX)"
dist: package ## Make the release: one tarball that runs wherever it is unpacked
	@sh packaging/dist.sh $(VERSION)
check-install: dist ## Build outside programs against an installation and against the release
	@sh tests/install/check_install.sh $(TARBALL)

.PHONY: demo
demo: ## Install what is missing, build, and run the digits example
	@$(MAKE) --no-print-directory deps
	+@$(AGAIN) build/fusec build/libfusert.a
	@CC="$(CC)" sh tools/demo.sh

clean: ## Remove everything that was built
	rm -rf build

-include $(shell find $(O) -name '*.d' 2>/dev/null)
