# Phalanx in a few commands. Settings are in CMakePresets.json, the details in CMakeLists.txt.
#
#   make demo       builds, runs a cluster here, loses a machine, and shows the job going on
#   make demo-flow  one Python program over the devices of four workers, of which one is killed
#   make test       builds and runs everything, in about a quarter of an hour; ends with "N passed, N failed"
#   make bench      runs all benches
#   make figures    writes the figures of published papers, from the models, to FIGURES (build/figures)
#   make install    installs below PREFIX (default /usr/local); DESTDIR as usual
#   make fuzz       fuzzes each target for FUZZ_SECONDS
#   make sanitize   runs the tests with sanitizers
#   make tsan       runs the tests of the controller's threads with ThreadSanitizer
#
# Missing packages are listed and installed with apt (deploy/install-deps); only that step needs root or sudo.
BUILD ?= build
BUILD_TYPE ?= RelWithDebInfo
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20
FIGURES ?= $(BUILD)/figures
TRACE ?= ../shared/data/hbd-fault-trace.json
JOBS ?= $(shell nproc)

.PHONY: all deps configure demo demo-flow test bench figures install clean fuzz sanitize tsan

all: configure
	@cmake --build $(BUILD) -j $(JOBS)

deps:
	@deploy/install-deps

configure: deps
	@cmake --preset default -B $(BUILD) -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) -DCMAKE_INSTALL_PREFIX=$(PREFIX) > $(BUILD).configure.log 2>&1 \
	  || { cat $(BUILD).configure.log; exit 1; }
	@rm -f $(BUILD).configure.log

demo: configure
	@cmake --build $(BUILD) -j $(JOBS) --target phalanx phalanx-shim train
	@BUILD=$(BUILD) deploy/demo

demo-flow: configure
	@cmake --build $(BUILD) -j $(JOBS) --target phalanx phalanx_flow_shared
	@BUILD=$(BUILD) examples/flow/demo

test: all
	@BUILD=$(BUILD) tests/run

sanitize: deps
	@cmake --preset sanitize -B $(BUILD)-asan > /dev/null
	@cmake --build $(BUILD)-asan -j $(JOBS)
	@BUILD=$(BUILD)-asan QUIET_SECONDS=0 tests/run

# ThreadSanitizer wants the address space as older kernels had it: without randomisation (setarch -R). WITH_THREADS
# names the tests of what has threads: handshakes, records of TLS, the lease's stand-in, work beside the loop, switches,
# flow's rings, gangs and board. The tests of flow/client are left out: TSan reports races where a connection passes
# from the caller to the thread; probably it does not know epoll_pwait2, but nobody has proved that yet.
WITH_THREADS = host/(api/test_(relay|server|seats|write)|standby/test_secure|wire/|controller/|fabric/test_(desk|crew))|flow/(wire|host)/|flow/exec/test_gang
tsan: deps
	@cmake --preset tsan -B $(BUILD)-tsan > /dev/null
	@cmake --build $(BUILD)-tsan -j $(JOBS)
	@BUILD=$(BUILD)-tsan QUIET_SECONDS=0 setarch -R tests/run '$(WITH_THREADS)'

fuzz: deps
	@BUILD=$(BUILD)-fuzz FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run

bench: all
	@BUILD=$(BUILD) bench/run all

# TRACE is a history of faults (docs/models.md); without that file its figure is skipped.
figures: configure
	@cmake --build $(BUILD) -j $(JOBS) --target phalanx bench_crashloop > $(BUILD)/figures.log \
	  || { cat $(BUILD)/figures.log; exit 1; }
	@$(BUILD)/phalanx figure all --to $(FIGURES) $(if $(wildcard $(TRACE)),--trace $(TRACE))
	@$(BUILD)/bench_crashloop 5 $(FIGURES) > /dev/null

install: configure
	@cmake --build $(BUILD) -j $(JOBS) --target phalanx phalanx-shim train phalanx_shared phalanx_static \
	  phalanx_fabric_shared phalanx_fabric_static phalanx_flow_shared phalanx_flow_static phalanx_pjrt
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD)

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz
