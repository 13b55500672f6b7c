# SPDX-License-Identifier: GPL-2.0-or-later
#
# make                     build passthroughd and passthroughctl in build/
# make deps                install the Debian 12 packages that building, running and testing need (root)
# make demo                the main job on a simulated node
# make check               all tests
# make lint                static checks
# make install             into $(DESTDIR)$(PREFIX)
#
# Knobs: DEVELOPER=1 (warnings are errors)  SANITIZE=address,undefined  BUILD=DIR  V=1 (show commands)  DESTDIR=  PREFIX=
#        CC= CFLAGS= LDFLAGS= are yours; ours are added.

PREFIX ?= /usr
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
BUILD ?= build
CFLAGS ?= -O2 -g
VERSION := 0.1

ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.SUFFIXES:

ifneq ($(V),1)
Q := @
say = @printf '  %-5s %s\n' $(1) $(2);
endif

PACKAGES := libsystemd libpci json-c libxml-2.0 inih smartcols
# Asked for when a recipe first needs it, not when this file is read: "make deps" may just have installed it.
PKG_CFLAGS = $(eval PKG_CFLAGS := $$(shell pkg-config --cflags $(PACKAGES)))$(PKG_CFLAGS)
PKG_LIBS = $(eval PKG_LIBS := $$(shell pkg-config --libs $(PACKAGES)))$(PKG_LIBS)
FUSE_CFLAGS = $(eval FUSE_CFLAGS := $$(shell pkg-config --cflags fuse3))$(FUSE_CFLAGS)
FUSE_LIBS = $(eval FUSE_LIBS := $$(shell pkg-config --libs fuse3))$(FUSE_LIBS)

WARNINGS := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wformat=2 -Wpointer-arith -Wvla -Wundef \
            -Wwrite-strings -Wno-unused-parameter -Wno-missing-field-initializers
ifeq ($(DEVELOPER),1)
WARNINGS += -Werror
endif
ifneq ($(SANITIZE),)
SANITIZE_FLAGS := -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
ALL_CFLAGS = -std=gnu11 -Iinclude -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DVERSION='"$(VERSION)"' $(WARNINGS) $(PKG_CFLAGS) \
             -fstack-protector-strong -fPIE $(SANITIZE_FLAGS) $(CFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now $(SANITIZE_FLAGS) $(LDFLAGS)

LIB_SOURCES := $(sort $(wildcard src/util/*.c src/core/*.c src/host/*.c src/bus/*.c))
DAEMON_SOURCES := $(sort $(wildcard src/daemon/*.c))
CTL_SOURCES := $(sort $(wildcard src/ctl/*.c))
NODESIM_SOURCES := $(sort $(wildcard tests/nodesim/*.c))
UNIT_SOURCES := $(sort $(wildcard tests/unit/test-*.c))
TOOL_SOURCES := $(sort $(wildcard tests/*.c))

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIB := $(BUILD)/libpassthrough.a
PROGRAMS := $(BUILD)/passthroughd $(BUILD)/passthroughctl
NODESIM := $(BUILD)/tests/nodesim
UNIT_TESTS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(UNIT_SOURCES))
TOOLS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(TOOL_SOURCES))
OBJECTS := $(call object,$(LIB_SOURCES) $(DAEMON_SOURCES) $(CTL_SOURCES) $(NODESIM_SOURCES) $(UNIT_SOURCES) $(TOOL_SOURCES))

.PHONY: all deps demo check lint install clean tests
all: $(PROGRAMS)
tests: all $(NODESIM) $(UNIT_TESTS) $(TOOLS)

# Objects are rebuilt when a flag that matters changes.
FLAGS_STAMP := $(BUILD)/flags
FLAGS_NOW := $(CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE) $(DEVELOPER) $(VERSION)
ifneq ($(strip $(shell cat $(FLAGS_STAMP) 2>/dev/null)),$(strip $(FLAGS_NOW)))
$(shell mkdir -p $(BUILD) && echo '$(FLAGS_NOW)' > $(FLAGS_STAMP))
endif

$(OBJECTS): $(BUILD)/obj/%.o: %.c Makefile $(FLAGS_STAMP) | $(filter deps,$(MAKECMDGOALS))
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c -o $@ $<

$(call object,$(NODESIM_SOURCES)): EXTRA_CFLAGS = $(FUSE_CFLAGS)
$(call object,$(UNIT_SOURCES) $(TOOL_SOURCES)): EXTRA_CFLAGS = -DSRCDIR='"$(CURDIR)"'

$(LIB): $(call object,$(LIB_SOURCES))
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

link = $(Q)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $(1) $(PKG_LIBS) $(2)

$(BUILD)/passthroughd: $(call object,$(DAEMON_SOURCES)) $(LIB)
	$(call say,LD,$@)
	$(call link,$^)
$(BUILD)/passthroughctl: $(call object,$(CTL_SOURCES)) $(LIB)
	$(call say,LD,$@)
	$(call link,$^)
$(NODESIM): $(call object,$(NODESIM_SOURCES))
	$(call say,LD,$@)
	$(call link,$^,$(FUSE_LIBS))
$(UNIT_TESTS) $(TOOLS): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(LIB)
	$(call say,LD,$@)
	$(call link,$^,$(if $(findstring /unit/,$@),-lcmocka))

-include $(OBJECTS:.o=.d)

deps:
	$(Q)tests/deps

demo: $(PROGRAMS) $(NODESIM) | $(filter deps,$(MAKECMDGOALS))
	$(Q)BUILD=$(BUILD) tests/demo

check: tests | $(filter deps,$(MAKECMDGOALS))
	$(Q)BUILD=$(BUILD) CHECK_SANITIZE=$(SANITIZE) tests/run $(TESTS)

lint: | $(filter deps,$(MAKECMDGOALS))
	$(Q)tests/lint

install: all
	install -Dm755 $(BUILD)/passthroughd $(DESTDIR)$(PREFIX)/sbin/passthroughd
	install -Dm755 $(BUILD)/passthroughctl $(DESTDIR)$(PREFIX)/bin/passthroughctl
	test -e $(DESTDIR)$(SYSCONFDIR)/passthroughd/passthroughd.conf || \
		install -Dm644 conf/passthroughd.conf $(DESTDIR)$(SYSCONFDIR)/passthroughd/passthroughd.conf
	install -Dm644 conf/org.passthroughd1.conf $(DESTDIR)$(PREFIX)/share/dbus-1/system.d/org.passthroughd1.conf
	install -Dm644 conf/org.passthroughd1.service $(DESTDIR)$(PREFIX)/share/dbus-1/system-services/org.passthroughd1.service
	install -Dm644 conf/org.passthroughd1.xml $(DESTDIR)$(PREFIX)/share/dbus-1/interfaces/org.passthroughd1.xml
	install -d $(DESTDIR)$(UNITDIR)
	sed 's,/usr/\(s\?bin\)/,$(PREFIX)/\1/,' systemd/passthroughd.service > $(DESTDIR)$(UNITDIR)/passthroughd.service
	install -Dm644 -t $(DESTDIR)$(PREFIX)/share/man/man8 man/passthroughd.8
	install -Dm644 -t $(DESTDIR)$(PREFIX)/share/man/man1 man/passthroughctl.1
	install -Dm644 -t $(DESTDIR)$(PREFIX)/share/man/man5 man/passthroughd.conf.5 man/org.passthroughd1.5

clean:
	rm -rf $(BUILD)
