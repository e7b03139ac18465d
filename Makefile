# The whole of Phalanx in a few words; CMakeLists.txt has the details.
#
#   make demo      build, run a cluster here, lose a machine, watch the job go on     make test    everything,
# ends with
#   make bench     all benches                                                                     "N passed,
# N failed"
#   make install   DESTDIR and PREFIX as usual                                        make fuzz
# FUZZ_SECONDS each
#
# What is missing is installed with apt, saying so first (deploy/install-deps); that alone needs root or sudo.
BUILD ?= build
BUILD_TYPE ?= RelWithDebInfo
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20
JOBS ?= $(shell nproc)

.PHONY: all deps demo test bench install clean fuzz sanitize

all: deps
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) -DCMAKE_INSTALL_PREFIX=$(PREFIX) > $(BUILD).configure.log 2>&1 \
	  || { cat $(BUILD).configure.log; exit 1; }
	@rm -f $(BUILD).configure.log
	@cmake --build $(BUILD) -j $(JOBS)

deps:
	@deploy/install-deps

demo: all
	@BUILD=$(BUILD) deploy/demo

test: all
	@BUILD=$(BUILD) tests/run

sanitize: deps
	@cmake -S . -B $(BUILD)-asan -G Ninja -DCMAKE_BUILD_TYPE=Debug -DPHX_SANITIZE=ON > /dev/null
	@cmake --build $(BUILD)-asan -j $(JOBS)
	@BUILD=$(BUILD)-asan QUIET_SECONDS=0 tests/run

fuzz: deps
	@BUILD=$(BUILD)-fuzz FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run

bench: all
	@BUILD=$(BUILD) bench/run all

install: all
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD)

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-fuzz
