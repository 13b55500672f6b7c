# SPDX-License-Identifier: GPL-2.0-or-later
#
# make                  build the programs in build/, and recordings of the
#                       simulated nodes in build/nodes/
# make deps             install the Debian packages that building, the demos and
#                       the tests need (root)
# make deps-build       those that building needs
# make deps-cluster     those that building and "make demo-cluster" need
# make deps-cockpit     those that building and "make check-cockpit" need
# make demo             the main job on a simulated node
# make demo-cluster     Slurm and OpenStack Placement with the devices of two
#                       simulated nodes (root)
# make demo-kubernetes  claims of Kubernetes on a simulated node (root)
# make demo-cockpit     the page for Cockpit on a simulated node, until Ctrl-C (root)
# make tests            build what tests run, and what tests/with-node needs
# make check            all tests (root); with VALGRIND=1 most of those of
#                       tests/bus, the daemon under valgrind
# make golden           write the golden files of tests/ anew after a sentence, a
#                       plan or a picture changed: read the difference
# make check-long       the crash sweep at every point, all that hostile callers
#                       send (TESTS=tests/bus/hostile.t: alone, on a quiet
#                       machine), 200 random jobs of Slurm, 1,000 random claims
#                       of Kubernetes, 1,000 random
#                       operations on a node and its Placement, 64 agents on one
#                       Placement (AGENTS=), one with a real Keystone, 10,000
#                       random operations (SOAK_OPERATIONS=, SOAK_SEED=), a
#                       Fabric Manager that hangs for 65 s in each of its calls
#                       (FABRIC_HANG=), every domain document with libvirt
#                       and QEMU of Debian 12, 13 and unstable (SUITES=), and
#                       CDI documents with podman
# make mutate           change the code in MUTANTS=60 places, drawn by SEED=1, one
#                       at a time: the tests must notice each (root);
#                       FILES="a.c b.c:7", UNIT=1 for unit tests alone
# make check-cockpit    the page for Cockpit in Chromium (root)
# make check-placement  the planner against exhaustive search (CASES=) and against
#                       simpler choosers (REQUESTS=)
# make check-fresh      the commands of the README and the other targets that need
#                       no second machine, in a fresh Debian with nothing but
#                       make, on a clone of the last commit (root, network);
#                       MACHINE=bookworm: fewer, in Debian 12
# make fuzz SECONDS=60  the parsers with random input, SECONDS each; FUZZ=NAME for
#                       one of tests/fuzz/fuzz-NAME.c (clang)
# make bench            speed, as ratios to a floor and to lspci (root, about two
#                       minutes); BENCH_QUICK=1: small machines, no limits;
#                       BENCH_OTHER=DIR: beside the build directory of another
#                       version
# make lint             static checks
# make install, make uninstall
#                       the daemon and passthroughctl into, or from,
#                       $(DESTDIR)$(PREFIX)
# make install-placement, make install-slurm, make install-kubernetes,
# make install-cockpit, make uninstall-...
#                       the agent for OpenStack Placement; the plugin and the
#                       service for Slurm; the driver for Kubernetes; the page
#                       for Cockpit
# make deb              Debian packages in build/: passthroughd,
#                       passthroughd-placement, passthroughd-slurm,
#                       passthroughd-kubernetes and cockpit-passthrough
# make deb-check        check them with lintian; install, start, upgrade, purge
#                       them in a fresh Debian that runs (root, network)
# make lab              the tests of tests/lab in an emulated machine with a real
#                       kernel, IOMMU, SR-IOV and libvirt (root, network);
#                       LAB="a.t b.t"
# make lab-shell        a root shell on that machine
# make clean            remove build/
#
# Knobs: DEVELOPER=1 (warnings are errors)  SANITIZE=address,undefined  BUILD=DIR
#        V=1 (show commands)  DESTDIR=  PREFIX=
#        CC= CFLAGS= LDFLAGS= are yours; ours are added.

PREFIX ?= /usr
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
# Debian's PluginDir= of slurm.conf(5)
SLURM_PLUGINDIR = $(PREFIX)/lib/$(shell $(CC) -print-multiarch)/slurm-wlm
BUILD ?= build
CFLAGS ?= -O2 -g
# That of the newest entry: "passthroughd (0.2) unstable; urgency=medium".
VERSION := $(shell sed -n '1s/^passthroughd .\([^ ]*\). .*/\1/p' conf/debian/changelog)
ifeq ($(VERSION),)
$(error conf/debian/changelog does not begin with the entry of a version)
endif

ifeq ($(filter-out 0,$(MAKELEVEL))$(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.SUFFIXES:

# What installs packages goes before what needs them, and before the rest of this file looks for what is installed.
DEPS := $(filter deps deps-build deps-cluster deps-cockpit,$(MAKECMDGOALS))
ifneq ($(and $(DEPS),$(filter-out $(DEPS),$(MAKECMDGOALS))),)
GOALS := $(filter-out $(DEPS),$(MAKECMDGOALS))
.PHONY: $(DEPS) $(GOALS) goals
$(DEPS) $(GOALS): goals ; @:
goals:
	@$(MAKE) --no-print-directory $(DEPS)
	@$(MAKE) --no-print-directory $(GOALS)
else

# $(call made,TARGETS,PARTS): the rule for what goals and programs are made of, which is written down for tests/count-stale as well.
made = $(eval $(1): $(2))$(eval GRAPH += $(1): $(2);)

# Each line that a build prints has its number and the number of all, which is counted before the first one.
ifneq ($(V),1)
Q := @
say = $(eval SAID += x)@printf '[%d/%d] %s %s\n' $(words $(SAID)) $(TOTAL) $(1) $(2);
TOTAL = $(eval TOTAL := $$(shell echo '$$(GRAPH)' | tests/count-stale $(BUILD) $(or $(MAKECMDGOALS),all)))$(TOTAL)
endif

PACKAGES := libsystemd libudev libpci json-c libxml-2.0 inih smartcols libnl-3.0 numa
TEST_PACKAGES := cmocka xenlight xlutil
# Missing tools and libraries end make with a sentence, before the errors of the compiler. They are looked for when the first recipe needs
# them, and so is what pkg-config says of them: "make clean" needs none.
missing = $(shell $(if $(2),,echo | $(CC) -include stdio.h -E -x c - >/dev/null 2>&1 || { echo a C compiler; exit; };) \
            command -v pkg-config >/dev/null || { echo pkg-config; exit; }; \
            pkg-config --exists $(1) || for p in $(1); do pkg-config --exists $$p || echo $$p; done)
need = $(if $(call missing,$(1),$(2)),$(error Missing: $(call missing,$(1),$(2)). As root, "make deps-build" installs what building needs, "make deps" what the tests and demos need as well))
NEEDED = $(eval NEEDED := $$(call need,$(PACKAGES) libvirt libcurl uuid))$(NEEDED)
FUSE_NEEDED = $(eval FUSE_NEEDED := $$(call need,fuse3,test))$(FUSE_NEEDED)
TEST_NEEDED = $(eval TEST_NEEDED := $$(call need,$(TEST_PACKAGES),test))$(TEST_NEEDED)
PKG_CFLAGS = $(eval PKG_CFLAGS := $$(shell pkg-config --cflags $(PACKAGES)))$(PKG_CFLAGS)
PKG_LIBS = $(eval PKG_LIBS := $$(shell pkg-config --libs $(PACKAGES)))$(PKG_LIBS)
FUSE_CFLAGS = $(eval FUSE_CFLAGS := $$(shell pkg-config --cflags fuse3))$(FUSE_CFLAGS)
LIBVIRT_CFLAGS = $(eval LIBVIRT_CFLAGS := $$(shell pkg-config --cflags libvirt))$(LIBVIRT_CFLAGS)
LIBVIRT_LIBS = $(eval LIBVIRT_LIBS := $$(shell pkg-config --libs libvirt libxml-2.0 libsystemd json-c))$(LIBVIRT_LIBS)
ROOT_LIBS = $(eval ROOT_LIBS := $$(shell pkg-config --libs libsystemd inih libpci libxml-2.0 json-c numa))$(ROOT_LIBS)
# The driver for Kubernetes is built where its libraries are.
DRA_PACKAGES := libnghttp2 yaml-0.1
HAVE_DRA = $(eval HAVE_DRA := $$(shell pkg-config --exists $(DRA_PACKAGES) 2>/dev/null && echo yes))$(HAVE_DRA)
DRA_LIBS = $(eval DRA_LIBS := $$(shell pkg-config --libs $(DRA_PACKAGES)))$(DRA_LIBS)
AGENT_LIBS = $(eval AGENT_LIBS := $$(shell pkg-config --libs libsystemd json-c inih libcurl uuid))$(AGENT_LIBS)
SLURM_LIBS = $(eval SLURM_LIBS := $$(shell pkg-config --libs libsystemd json-c))$(SLURM_LIBS)
HOLDERS_LIBS = $(eval HOLDERS_LIBS := $$(shell pkg-config --libs libsystemd))$(HOLDERS_LIBS)
FUSE_LIBS = $(eval FUSE_LIBS := $$(shell pkg-config --libs fuse3))$(FUSE_LIBS)

WARNINGS := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wformat=2 -Wpointer-arith -Wvla -Wundef \
            -Wwrite-strings -Wno-unused-parameter -Wno-missing-field-initializers
ifeq ($(DEVELOPER),1)
WARNINGS += -Werror
endif
ifneq ($(SANITIZE),)
SANITIZE_FLAGS := -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
# Checks of buffer sizes. They take an optimizing compiler, and hide buffers from sanitizers.
ifeq ($(SANITIZE),)
FORTIFY := $(if $(filter -O1 -O2 -O3 -Os -Og,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif
ALL_CFLAGS = -std=gnu11 -Iinclude -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DVERSION='"$(VERSION)"' $(WARNINGS) $(PKG_CFLAGS) \
             -fstack-protector-strong -fPIE $(FORTIFY) $(SANITIZE_FLAGS) $(CFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now $(SANITIZE_FLAGS) $(LDFLAGS)

# The rooms in their order (src/README.md): a file uses its own room and those before it. The first ones are pure.
PURE_ROOMS := model config ledger steps guest plan
ROOMS := util $(PURE_ROOMS) host bus replay agent
LIB_SOURCES := $(sort $(foreach room,$(ROOMS),$(wildcard src/$(room)/*.c)) $(addprefix src/slurm/,cores.c cpus.c gres.c request.c))
DAEMON_SOURCES := $(sort $(wildcard src/daemon/*.c))
CTL_SOURCES := $(sort $(wildcard src/ctl/*.c))
HOLDERS_SOURCES := $(sort $(wildcard src/holders/*.c))
ENDPOINTS_SOURCES := $(sort $(wildcard src/endpoints/*.c))
ROOT_SOURCES := $(sort $(wildcard src/root/*.c))
PLACEMENT_SOURCES := $(sort $(wildcard src/placement/*.c))
DRA_SOURCES := $(sort $(wildcard src/kube/*.c))
# Of these, the pure ones.
DRA_PURE_SOURCES := $(addprefix src/kube/,messages.c slices.c claim.c)
PROVIDER_TREE_SOURCES := src/placement/tree.c src/placement/wanted.c src/placement/difference.c src/placement/claim.c src/placement/provider-name.c
VIRT_SOURCES := $(sort $(wildcard src/virt/*.c))
SLURM_SOURCES := $(filter-out src/slurm/gres.c,$(sort $(wildcard src/slurm/*.c)))
NODESIM_SOURCES := $(sort $(wildcard tests/nodesim/*.c))
NODESIM_MAIN := tests/nodesim/main.c tests/nodesim/mount.c
PRINT_NODE_MAIN := tests/nodesim/print-node.c
UNIT_SOURCES := $(filter-out $(if $(HAVE_DRA),,tests/unit/test-kube.c),$(sort $(wildcard tests/unit/test-*.c)))
UNIT_MAIN := tests/unit/main.c
FUZZ_SOURCES := $(filter-out $(if $(HAVE_DRA),,tests/fuzz/fuzz-kube-%.c),$(sort $(wildcard tests/fuzz/fuzz-*.c)))
TOOL_SOURCES := $(sort $(wildcard tests/*.c tests/bench/*.c tests/placement/*.c tests/lab/*.c))
SHIM_SOURCES := $(sort $(wildcard tests/netlink/*.c))
DYING_SOURCES := $(sort $(wildcard tests/dying/*.c))
RECORDER_SOURCES := $(sort $(wildcard tests/recorder/*.c))
CLOCK_SOURCES := $(sort $(wildcard tests/clock/*.c))
HYPERVISOR_SOURCES := $(sort $(wildcard tests/hypervisor/*.c))
NVIDIA_SOURCES := $(sort $(wildcard tests/nvidia/*.c))

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIB := $(BUILD)/libpassthrough.a
# The plugin is loaded into programs of Slurm, so all that is in it is compiled for a shared object. Built where Slurm's headers are.
PLUGIN := $(BUILD)/passthrough.so
pic = $(patsubst %.c,$(BUILD)/pic/%.o,$(1))
PLUGIN_OBJECTS := $(call pic,$(filter-out src/slurm/agent.c,$(SLURM_SOURCES)) src/bus/reply-text.c src/model/cpuset.c src/model/json-parse.c src/util/clock.c src/util/fileio.c src/util/program.c src/util/strings.c)
SLURM_AGENT_OBJECTS := $(call pic,$(addprefix src/slurm/,agent.c controller.c handout.c node.c scontrol.c))
PIC_OBJECTS := $(sort $(PLUGIN_OBJECTS) $(SLURM_AGENT_OBJECTS))
# Goals that build nothing write nothing to BUILD: the user who builds may be another one.
BUILDS := $(filter-out help clean deps deps-build deps-cluster deps-cockpit,$(or $(MAKECMDGOALS),all))
ifneq ($(BUILDS),)
$(if $(shell test ! -e $(BUILD) -o -w $(BUILD) || echo no),$(error $(BUILD) belongs to another user: run "sudo make clean", or set BUILD=))
# Empty where Slurm's headers are missing or unknown: all else is built.
SLURM_FEATURES := $(shell src/slurm/features $(BUILD) $(CC) $(CFLAGS))
endif
HAVE_SLURM := $(filter yes,$(firstword $(SLURM_FEATURES)))
SLURM_PROGRAMS := $(PLUGIN) $(BUILD)/passthroughd-slurm
DRA := $(BUILD)/passthrough-dra
NO_DRA := Kubernetes: $(DRA_PACKAGES) are not installed; passthrough-dra is not built
NO_SLURM := Slurm: $(SLURM_FEATURES); passthrough.so and passthroughd-slurm are not built

PROGRAMS := $(if $(HAVE_SLURM),$(SLURM_PROGRAMS)) $(if $(HAVE_DRA),$(DRA)) $(BUILD)/passthroughd $(BUILD)/passthroughctl $(BUILD)/passthroughd-holders $(BUILD)/passthroughd-root $(BUILD)/passthroughd-endpoints $(BUILD)/passthroughd-libvirt $(BUILD)/passthrough-placement
NODESIM := $(BUILD)/tests/nodesim
# Prints what nodesim serves, without FUSE.
PRINT_NODE := $(BUILD)/tests/print-node
SHIM := $(BUILD)/tests/netlink.so
DYING := $(BUILD)/tests/dying.so
RECORDER := $(BUILD)/tests/recorder.so
CLOCK := $(BUILD)/tests/clock.so
HYPERVISOR := $(BUILD)/tests/hypervisor.so
NVIDIA := $(patsubst %.c,$(BUILD)/%.so.1,$(NVIDIA_SOURCES))
UNIT_TESTS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(UNIT_SOURCES))
TOOLS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(TOOL_SOURCES))
FUZZ_MAIN := tests/fuzz/fuzz-main.c
FUZZ_TESTS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(filter-out tests/fuzz/fuzz-main.c,$(FUZZ_SOURCES)))
OBJECTS := $(call object,$(LIB_SOURCES) $(DAEMON_SOURCES) $(CTL_SOURCES) $(HOLDERS_SOURCES) $(ROOT_SOURCES) $(ENDPOINTS_SOURCES) $(VIRT_SOURCES) $(PLACEMENT_SOURCES) $(if $(HAVE_DRA),$(DRA_SOURCES)) $(NODESIM_SOURCES) $(UNIT_SOURCES) $(UNIT_MAIN) $(FUZZ_SOURCES) $(TOOL_SOURCES) $(SHIM_SOURCES) $(DYING_SOURCES) $(RECORDER_SOURCES) $(CLOCK_SOURCES) $(HYPERVISOR_SOURCES) $(NVIDIA_SOURCES))

# Recordings of the simulated nodes, for passthroughctl --node.
NODES := $(patsubst tests/%,$(BUILD)/%,$(wildcard tests/nodes/*.tree))

.PHONY: all help deps deps-build deps-cluster deps-cockpit demo demo-cluster demo-kubernetes demo-cockpit check check-cockpit golden mutate check-long check-placement check-fresh fuzz fuzz-programs bench lint install uninstall install-placement uninstall-placement install-slurm uninstall-slurm install-kubernetes uninstall-kubernetes install-cockpit uninstall-cockpit deb deb-check lab lab-shell clean tests no-slurm no-dra
$(call made,all,$(PROGRAMS) $(NODES) $(if $(HAVE_SLURM),,no-slurm) $(if $(HAVE_DRA),,no-dra))
no-dra:
	@rm -f $(DRA)
	@echo '$(NO_DRA)'
no-slurm:
	@rm -f $(SLURM_PROGRAMS)
	@echo '$(NO_SLURM)'
$(call made,tests,all $(NODESIM) $(SHIM) $(DYING) $(RECORDER) $(CLOCK) $(HYPERVISOR) $(NVIDIA) $(UNIT_TESTS) $(FUZZ_TESTS) $(TOOLS))

# Objects are rebuilt when a flag that matters changes.
FLAGS_STAMP := $(BUILD)/flags
FLAGS_NOW := $(CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE) $(DEVELOPER) $(VERSION)
# "make -n" does not write the file of flags.
ifneq ($(and $(BUILDS),$(if $(findstring n,$(filter-out -%,$(firstword $(MAKEFLAGS)))),,yes)),)
ifneq ($(strip $(shell cat $(FLAGS_STAMP) 2>/dev/null)),$(strip $(FLAGS_NOW)))
$(shell mkdir -p $(BUILD) && echo '$(FLAGS_NOW)' > $(FLAGS_STAMP))
endif
endif

$(FLAGS_STAMP): ;
$(OBJECTS): $(BUILD)/obj/%.o: %.c Makefile $(FLAGS_STAMP)
	@mkdir -p $(@D)$(NEEDED)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c -o $@ $<

# libvirt casts callbacks of events to another type of function, of which clang 19 warns.
$(call object,$(VIRT_SOURCES) $(HYPERVISOR_SOURCES)): EXTRA_CFLAGS = $(LIBVIRT_CFLAGS) -Wno-cast-function-type
$(call object,$(NODESIM_MAIN)): EXTRA_CFLAGS = $(FUSE_NEEDED)$(FUSE_CFLAGS)
$(call object,$(UNIT_SOURCES) $(UNIT_MAIN) $(FUZZ_SOURCES) $(TOOL_SOURCES)): EXTRA_CFLAGS = $(TEST_NEEDED)-Isrc -DSRCDIR='"$(CURDIR)"'

$(call made,$(LIB),$(call object,$(LIB_SOURCES)))
$(LIB):
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

link = $(Q)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $(1) $(PKG_LIBS) $(MORE_LIBS)

$(call made,$(BUILD)/passthroughd,$(call object,$(DAEMON_SOURCES)) $(LIB))
$(call made,$(BUILD)/passthroughctl,$(call object,$(CTL_SOURCES)) $(LIB))
$(call made,$(BUILD)/passthrough-placement,$(call object,$(PLACEMENT_SOURCES)) $(LIB))
$(BUILD)/passthrough-placement: PKG_LIBS = $(AGENT_LIBS)
$(call made,$(DRA),$(call object,$(DRA_SOURCES)) $(LIB))
$(DRA): PKG_LIBS = $(AGENT_LIBS) $(DRA_LIBS)
# These three have rights that the daemon lacks: the fewer libraries the better.
$(call made,$(BUILD)/passthroughd-holders,$(call object,$(HOLDERS_SOURCES)) $(LIB))
$(BUILD)/passthroughd-holders: PKG_LIBS = $(HOLDERS_LIBS)
$(call made,$(BUILD)/passthroughd-root,$(call object,$(ROOT_SOURCES)) $(LIB))
$(BUILD)/passthroughd-root: PKG_LIBS = $(ROOT_LIBS)
$(call made,$(BUILD)/passthroughd-endpoints,$(call object,$(ENDPOINTS_SOURCES)) $(LIB))
$(BUILD)/passthroughd-endpoints: PKG_LIBS =
# The only program that is linked with libvirt; of the others' libraries it needs few.
$(call made,$(BUILD)/passthroughd-libvirt,$(call object,$(VIRT_SOURCES)) $(LIB))
$(BUILD)/passthroughd-libvirt: PKG_LIBS = $(LIBVIRT_LIBS)
$(call made,$(NODESIM),$(call object,$(filter-out $(PRINT_NODE_MAIN),$(NODESIM_SOURCES))) $(LIB))
$(NODESIM): MORE_LIBS = $(FUSE_LIBS)
$(call made,$(PRINT_NODE),$(call object,$(filter-out $(NODESIM_MAIN),$(NODESIM_SOURCES))) $(LIB))
$(foreach t,$(NODES),$(call made,$(t),$(t:$(BUILD)/%=tests/%) $(PRINT_NODE)))
$(NODES):
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D) && $(PRINT_NODE) $< >$@
# Preloaded into programs with and without sanitizers, so it has none itself.
$(call object,$(SHIM_SOURCES) $(DYING_SOURCES) $(RECORDER_SOURCES) $(CLOCK_SOURCES) $(HYPERVISOR_SOURCES) $(NVIDIA_SOURCES)): ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARNINGS) -fPIC -fvisibility=hidden $(CFLAGS)
$(call made,$(SHIM),$(call object,$(SHIM_SOURCES)))
$(call made,$(DYING),$(call object,$(DYING_SOURCES)))
$(call made,$(RECORDER),$(call object,$(RECORDER_SOURCES)))
$(call made,$(CLOCK),$(call object,$(CLOCK_SOURCES)))
$(call made,$(HYPERVISOR),$(call object,$(HYPERVISOR_SOURCES)))
$(foreach t,$(NVIDIA),$(call made,$(t),$(t:$(BUILD)/%.so.1=$(BUILD)/obj/%.o)))
$(SHIM) $(DYING) $(RECORDER) $(CLOCK) $(HYPERVISOR) $(NVIDIA):
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) -shared -Wl,-z,now $(LDFLAGS) -o $@ $^
$(call made,$(BUILD)/tests/unit/test-provider-tree,$(call object,$(PROVIDER_TREE_SOURCES)))
$(call made,$(BUILD)/tests/unit/test-firmware,$(call object,src/virt/firmware.c))
ifneq ($(HAVE_DRA),)
$(call made,$(BUILD)/tests/unit/test-kube,$(call object,$(DRA_PURE_SOURCES)))
$(call made,$(BUILD)/tests/fuzz/fuzz-kube-claims,$(call object,$(DRA_PURE_SOURCES)))
$(call made,$(BUILD)/tests/fuzz/fuzz-kube-grpc,$(call object,$(DRA_PURE_SOURCES) src/kube/grpc.c))
$(BUILD)/tests/fuzz/fuzz-kube-grpc: PKG_LIBS = $(AGENT_LIBS) $(DRA_LIBS)
endif
$(foreach t,$(UNIT_TESTS),$(call made,$(t),$(t:$(BUILD)/%=$(BUILD)/obj/%.o) $(call object,$(UNIT_MAIN)) $(LIB)))
$(foreach t,$(TOOLS),$(call made,$(t),$(t:$(BUILD)/%=$(BUILD)/obj/%.o) $(LIB)))
$(UNIT_TESTS): MORE_LIBS = -lcmocka
$(addprefix $(BUILD)/tests/unit/,test-http test-provider-tree): PKG_LIBS = $(AGENT_LIBS)
# Xen's parser of configurations of xl.
$(BUILD)/tests/xlcfg: MORE_LIBS = -lxlutil -lxenlight
# tests/fuzz/run has libFuzzer's main instead: FUZZ_MAIN= LDFLAGS=-fsanitize=fuzzer
$(foreach t,$(FUZZ_TESTS),$(call made,$(t),$(t:$(BUILD)/%=$(BUILD)/obj/%.o) $(call object,$(FUZZ_MAIN)) $(LIB)))
$(call made,fuzz-programs,$(FUZZ_TESTS))
LINKED := $(filter-out $(PLUGIN),$(PROGRAMS)) $(NODESIM) $(PRINT_NODE) $(UNIT_TESTS) $(TOOLS) $(FUZZ_TESTS)
$(LINKED):
	$(call say,LD,$@)
	$(call link,$(filter %.o,$^) $(LIB))

$(PIC_OBJECTS): $(BUILD)/pic/%.o: %.c Makefile $(FLAGS_STAMP)
	@mkdir -p $(@D)$(NEEDED)
	$(call say,CC,$<)
	$(Q)$(CC) $(filter-out -fPIE $(SANITIZE_FLAGS),$(ALL_CFLAGS)) -fPIC -fvisibility=hidden $(filter -D%,$(SLURM_FEATURES)) -MMD -MP -c -o $@ $<
ifneq ($(HAVE_SLURM),)
$(PIC_OBJECTS): $(BUILD)/slurm-features
# The functions of Slurm are those of the program that loads it.
$(call made,$(PLUGIN),$(PLUGIN_OBJECTS))
$(PLUGIN):
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-z,relro,-z,now $(LDFLAGS) -o $@ $^ $(SLURM_LIBS)
$(call made,$(BUILD)/passthroughd-slurm,$(SLURM_AGENT_OBJECTS) $(LIB))
$(BUILD)/passthroughd-slurm: PKG_LIBS = $(SLURM_LIBS) -lslurm
else
$(SLURM_PROGRAMS): no-slurm
	@exit 1
endif

-include $(OBJECTS:.o=.d) $(PIC_OBJECTS:.o=.d)

help:
	@sed -nE '3,/^$$/s/^# ?//p' Makefile

deps:
	$(Q)tests/deps
deps-build:
	$(Q)tests/deps build
deps-cluster:
	$(Q)tests/deps cluster
deps-cockpit:
	$(Q)tests/deps cockpit

$(call made,demo,all $(NODESIM) $(SHIM))
demo:
	$(Q)BUILD=$(BUILD) tests/demo

$(call made,demo-cluster,all $(SLURM_PROGRAMS) $(NODESIM) $(SHIM))
demo-cluster:
	$(Q)BUILD=$(abspath $(BUILD)) tests/demo-cluster

$(call made,demo-kubernetes,all $(NODESIM) $(SHIM))
demo-kubernetes:
	$(Q)BUILD=$(abspath $(BUILD)) tests/demo-kubernetes

$(call made,demo-cockpit,all $(NODESIM) $(SHIM))
demo-cockpit:
	$(Q)BUILD=$(abspath $(BUILD)) tests/demo-cockpit

$(call made,check-cockpit,all $(NODESIM) $(SHIM))
check-cockpit:
	$(Q)BUILD=$(BUILD) tests/run $(or $(TESTS),$(wildcard tests/cockpit/*.t))

$(call made,check golden check-long check-placement bench,tests)
check:
	$(Q)BUILD=$(BUILD) CHECK_SANITIZE=$(SANITIZE) CHECK_VALGRIND=$(VALGRIND) tests/run $(TESTS)

golden:
	$(Q)BUILD=$(BUILD) tests/update-golden

check-long:
	$(Q)BUILD=$(BUILD) CHECK_SANITIZE=$(SANITIZE) TEST_ON_ALL_CPUS=1 SWEEP_EVERY=1 HOSTILE=full SLURM_JOBS=200 MIRROR_OPERATIONS=1000 PLACEMENT_OPERATIONS=1000 KUBE_CLAIMS=1000 KUBE_PREPARES=1000 KUBE_AWAY=3600 tests/run $(or $(TESTS),tests/bus/crash.t tests/bus/crash-attach.t tests/bus/ledger-writes.t tests/bus/mirror.t tests/bus/torn.t tests/bus/several.t tests/bus/hostile.t tests/bus/slurm-random.t tests/bus/placement-random.t tests/bus/kube-random.t tests/bus/kube-many.t tests/bus/kube-away.t tests/long/soak.t tests/long/agents.t tests/long/keystone.t tests/long/fabric.t tests/long/libvirt tests/long/podman)

mutate:
	$(Q)mkdir -p $(BUILD) && BUILD=$(BUILD) CC="$(CC)" MUTANTS=$(MUTANTS) SEED=$(SEED) FILES="$(FILES)" UNIT=$(UNIT) tests/mutate

check-placement:
	$(Q)BUILD=$(BUILD) tests/placement/run

check-fresh:
	$(Q)BUILD=$(BUILD) tests/fresh/run $(MACHINE)

bench:
	$(Q)BUILD=$(abspath $(BUILD)) tests/bench/run

fuzz:
	$(Q)+BUILD=$(BUILD) tests/fuzz/run $(or $(SECONDS),60) $(FUZZ)

lint:
	$(Q)+tests/lint

# MODE:SOURCE:DESTINATION
INSTALLED = \
	755:$(BUILD)/passthroughd:$(PREFIX)/sbin/passthroughd \
	755:$(BUILD)/passthroughctl:$(PREFIX)/bin/passthroughctl \
	755:$(BUILD)/passthroughd-holders:$(PREFIX)/libexec/passthroughd-holders \
	755:$(BUILD)/passthroughd-root:$(PREFIX)/libexec/passthroughd-root \
	755:$(BUILD)/passthroughd-endpoints:$(PREFIX)/libexec/passthroughd-endpoints \
	755:$(BUILD)/passthroughd-libvirt:$(PREFIX)/libexec/passthroughd-libvirt \
	644:$(BUILD)/passthroughd.service:$(UNITDIR)/passthroughd.service \
	644:$(BUILD)/passthroughd-holders.service:$(UNITDIR)/passthroughd-holders.service \
	644:systemd/passthroughd-holders.socket:$(UNITDIR)/passthroughd-holders.socket \
	644:$(BUILD)/passthroughd-root@.service:$(UNITDIR)/passthroughd-root@.service \
	644:systemd/passthroughd-root.socket:$(UNITDIR)/passthroughd-root.socket \
	644:$(BUILD)/passthroughd-endpoints@.service:$(UNITDIR)/passthroughd-endpoints@.service \
	644:systemd/passthroughd-endpoints.socket:$(UNITDIR)/passthroughd-endpoints.socket \
	644:$(BUILD)/passthroughd-metrics.service:$(UNITDIR)/passthroughd-metrics.service \
	644:systemd/passthroughd-metrics.timer:$(UNITDIR)/passthroughd-metrics.timer \
	644:conf/org.passthroughd1.conf:$(PREFIX)/share/dbus-1/system.d/org.passthroughd1.conf \
	644:conf/org.passthroughd1.policy:$(PREFIX)/share/polkit-1/actions/org.passthroughd1.policy \
	644:conf/org.passthroughd1.xml:$(PREFIX)/share/dbus-1/interfaces/org.passthroughd1.xml \
	644:conf/passthroughd.sysusers:$(PREFIX)/lib/sysusers.d/passthroughd.conf \
	644:conf/passthroughd.catalog:$(PREFIX)/lib/systemd/catalog/passthroughd.catalog \
	644:conf/passthroughctl.bash:$(PREFIX)/share/bash-completion/completions/passthroughctl \
	644:conf/passthroughctl.zsh:$(PREFIX)/share/zsh/vendor-completions/_passthroughctl \
	$(foreach p,$(patsubst conf/guest/%,%,$(wildcard conf/guest/lib/*/*.conf conf/guest/lib/systemd/system/*)),644:conf/guest/$(p):$(PREFIX)/share/passthroughd/guest/$(p)) \
	$(foreach p,$(filter-out man/passthrough-placement.8 man/passthrough-slurm.7 man/passthrough-dra.8,$(wildcard man/*.[1-8])),644:$(p):$(PREFIX)/share/man/man$(subst .,,$(suffix $(p)))/$(notdir $(p)))
INSTALLED_PLACEMENT = \
	755:$(BUILD)/passthrough-placement:$(PREFIX)/libexec/passthrough-placement \
	644:$(BUILD)/passthrough-placement.service:$(UNITDIR)/passthrough-placement.service \
	644:conf/passthrough-placement.sysusers:$(PREFIX)/lib/sysusers.d/passthrough-placement.conf \
	644:man/passthrough-placement.8:$(PREFIX)/share/man/man8/passthrough-placement.8
INSTALLED_SLURM = \
	644:$(PLUGIN):$(SLURM_PLUGINDIR)/passthrough.so \
	755:$(BUILD)/passthroughd-slurm:$(PREFIX)/libexec/passthroughd-slurm \
	644:$(BUILD)/passthroughd-slurm.service:$(UNITDIR)/passthroughd-slurm.service \
	644:man/passthrough-slurm.7:$(PREFIX)/share/man/man7/passthrough-slurm.7
INSTALLED_KUBERNETES = \
	755:$(DRA):$(PREFIX)/libexec/passthrough-dra \
	644:$(BUILD)/passthrough-dra.service:$(UNITDIR)/passthrough-dra.service \
	644:man/passthrough-dra.8:$(PREFIX)/share/man/man8/passthrough-dra.8
INSTALLED_COCKPIT = \
	$(foreach p,$(wildcard src/cockpit/*.*),644:$(p):$(PREFIX)/share/cockpit/passthrough/$(notdir $(p)))
CONFIG_FILE = $(SYSCONFDIR)/passthroughd/passthroughd.conf
PLACEMENT_FILE = $(SYSCONFDIR)/passthroughd/passthrough-placement.conf
DRA_FILE = $(SYSCONFDIR)/passthroughd/passthrough-dra.conf
field = $(word $(1),$(subst :, ,$(2)))
install_files = $(Q)$(foreach f,$(1),install -vDm$(call field,1,$(f)) $(call field,2,$(f)) "$$DESTDIR"$(call field,3,$(f)) &&) true
remove_files = $(Q)rm -vf $(foreach f,$(1),"$$DESTDIR"$(call field,3,$(f)))
# The configuration is the admin's: one that is there stays, also when the rest is uninstalled.
install_config = $(Q)test -e "$$DESTDIR"$(1) || install -vDm644 conf/$(notdir $(1)) "$$DESTDIR"$(1)

UNITS := $(BUILD)/passthroughd.service $(BUILD)/passthroughd-holders.service $(BUILD)/passthroughd-root@.service $(BUILD)/passthroughd-endpoints@.service $(BUILD)/passthroughd-metrics.service $(BUILD)/passthroughd-slurm.service $(BUILD)/passthrough-placement.service $(BUILD)/passthrough-dra.service
$(UNITS): $(BUILD)/%: systemd/% Makefile
	$(Q)mkdir -p $(@D)
	$(Q)sed 's,/usr/\(\(s\?bin\|libexec\)/passthrough\),$(PREFIX)/\1,' $< > $@

# Any directory will do, so the shell sees it only as a variable. The others stand in paths as words.
install uninstall install-placement uninstall-placement install-slurm uninstall-slurm install-kubernetes uninstall-kubernetes install-cockpit uninstall-cockpit: export DESTDIR := $(DESTDIR)
ifneq ($(words [$(PREFIX)] [$(SYSCONFDIR)] [$(UNITDIR)]),3)
$(error PREFIX, SYSCONFDIR and UNITDIR are one path each, without blanks)
endif

$(call made,install install-placement install-slurm install-kubernetes deb deb-check lab lab-shell,all)
install: $(UNITS)
	$(call install_files,$(INSTALLED))
	$(Q)install -vd "$$DESTDIR"$(CONFIG_FILE).d
	$(call install_config,$(CONFIG_FILE))

uninstall:
	$(call remove_files,$(INSTALLED))
	@echo "Left: $$DESTDIR"'$(SYSCONFDIR)/passthroughd, and /var/lib/passthroughd, the ledger of what is allocated.'

install-placement: $(UNITS)
	$(call install_files,$(INSTALLED_PLACEMENT))
	$(call install_config,$(PLACEMENT_FILE))

uninstall-placement:
	$(call remove_files,$(INSTALLED_PLACEMENT))
	@echo "Left: $$DESTDIR"'$(PLACEMENT_FILE).'

install-slurm: $(SLURM_PROGRAMS) $(UNITS)
	$(call install_files,$(INSTALLED_SLURM))

uninstall-slurm:
	$(call remove_files,$(INSTALLED_SLURM))

install-kubernetes: $(DRA) $(UNITS)
	$(call install_files,$(INSTALLED_KUBERNETES))
	$(call install_config,$(DRA_FILE))

uninstall-kubernetes:
	$(call remove_files,$(INSTALLED_KUBERNETES))
	@echo "Left: $$DESTDIR"'$(DRA_FILE).'

# Nothing of it is built.
install-cockpit:
	$(call install_files,$(INSTALLED_COCKPIT))

uninstall-cockpit:
	$(call remove_files,$(INSTALLED_COCKPIT))

# Binary packages of what "make install", "make install-placement" and the like install.
deb: $(UNITS)
	$(Q)+VERSION=$(VERSION) HAVE_SLURM=$(HAVE_SLURM) HAVE_DRA=$(HAVE_DRA) conf/debian/build $(BUILD)

deb-check: deb
	$(Q)+BUILD=$(BUILD) tests/deb/run

$(call made,lab lab-shell,$(UNITS) $(NODESIM) $(SHIM) $(HYPERVISOR) $(BUILD)/tests/lab/ivshmem-server $(BUILD)/tests/lab/rights)
lab lab-shell:
	$(Q)+BUILD=$(BUILD) tests/lab/build
	$(Q)BUILD=$(BUILD) $(if $(filter lab,$@),perl -Itests -S prove --harness NoSkips --verbose --timer $(if $(LAB),tests/lab/run :: $(LAB),--jobs 2 tests/lab/run-1 tests/lab/run-2 tests/lab/run-shapes tests/lab/grace),tests/lab/run --shell)

clean:
	rm -rf $(BUILD)

endif
