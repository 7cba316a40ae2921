# Sandbook. make [SAN=address,undefined] [CC=clang] [WERROR=1] [V=1] GOAL
#   all       the program: build/sandbook (needs `make image` once to run)
#   demo      a question about a real table, answered
#   check     every test; ends with "N passed, N failed"
#   image     the box's own root tree (cached); image-save, image-load FILE=: for a machine without a registry
#   install   DESTDIR= PREFIX=; uninstall takes it away again
#   lint fmt floors fuzz bench cover    the gates;   unit fuzzers    the test programs alone
#   clean     what was built
#   help      this

PREFIX    ?= /usr/local
BINDIR    ?= $(PREFIX)/bin
LIBDIR    ?= $(PREFIX)/lib/sandbook
DATADIR   ?= $(PREFIX)/share/sandbook
CC        ?= cc
SAN       ?=
VERSION   := 0.1.0

,         := ,
cc_name   := $(notdir $(firstword $(CC)))
tag       := $(if $(filter-out cc gcc,$(cc_name)),$(cc_name)-)
flavour   := $(tag)$(if $(SAN),san-$(subst $(,),-,$(SAN)),$(if $(COV),cov,plain))
O         := build/$(flavour)
# The keeper and what enters the boxes cannot live under a sanitizer (address space limits, seccomp): always built plain.
K         := build/$(tag)keeper

# ---- what it stands on -------------------------------------------------------------------------------------------------------
PKGS      := libcurl libcjson sqlite3 libutf8proc md4c libcrypto olm libmicrohttpd libzip
KEEPER_PKGS := libcjson libutf8proc libseccomp
QUERY_PKGS := libcjson libutf8proc sqlite3 libpq
pkg_deb    = \
             libarchive=libarchive-dev \
             libcjson=libcjson-dev \
             libcrypto=libssl-dev \
             libcurl=libcurl4-openssl-dev \
             libmicrohttpd=libmicrohttpd-dev \
             libpng=libpng-dev \
             libpq=libpq-dev \
             libseccomp=libseccomp-dev \
             libutf8proc=libutf8proc-dev \
             libwslay=libwslay-dev \
             libzip=libzip-dev \
             md4c=libmd4c-dev \
             olm=libolm-dev \
             sqlite3=libsqlite3-dev
missing   := $(strip $(foreach p,$(PKGS) libseccomp libarchive libpng libpq,$(shell pkg-config --exists $p || echo $p)) \
             $(shell echo '\#include <wslay/wslay.h>' | $(CC) -E -x c - >/dev/null 2>&1 || echo libwslay))
# These goals install what is missing, or need none of it.
goals     := $(filter-out demo check image image-save image-load fmt floors clean help,$(or $(MAKECMDGOALS),all))
ifneq ($(and $(goals),$(missing)),)
$(error missing: $(foreach m,$(missing),$m (Debian package $(patsubst $m=%,%,$(filter $m=%,$(pkg_deb))))). Run: .ci/bootstrap build)
endif

# ---- flags: the caller's first, ours after -----------------------------------------------------------------------------------
CFLAGS   ?= -O2 -g
WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wformat=2 -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes \
            -Wold-style-definition -Wpointer-arith -Wcast-qual -Wwrite-strings -Wswitch-enum -Wundef -Wvla -Wimplicit-fallthrough \
            -Wnull-dereference -Wdouble-promotion $(if $(WERROR),-Werror)
ifeq ($(findstring clang,$(cc_name)),)
WARN     += -Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wjump-misses-init -Walloca
endif
HARDEN   := -fstack-protector-strong -fstack-clash-protection -fPIE $(if $(filter x86_64,$(shell uname -m)),-fcf-protection)
FORTIFY  := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
image_hash := $(shell here=sandbox/image; . sandbox/image/lib.sh; recipe_hash)
DEFINES  := -D_GNU_SOURCE -DSANDBOOK_VERSION='"$(VERSION)"' -DBOX_IMAGE_HASH='"$(image_hash)"'
base_c   := -std=c17 $(DEFINES) $(WARN) $(HARDEN) -Iinclude -Isrc -MMD -MP
san_c    := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer,$(FORTIFY)) $(if $(COV),--coverage)
san_ld   := $(if $(SAN),-fsanitize=$(SAN)) $(if $(COV),--coverage)
lib_c     := $(shell pkg-config --cflags $(PKGS) libpq 2>/dev/null)
keeper_c  := -Isandbox -Isandbox/keeper $(shell pkg-config --cflags libseccomp 2>/dev/null)
relro    := -pie -Wl,-z,relro,-z,now,-z,noexecstack
override CFLAGS  += $(base_c)
override LDFLAGS += $(relro)
LDLIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lwslay -lm
KEEPER_LIBS := $(shell pkg-config --libs $(KEEPER_PKGS) 2>/dev/null) -lm
QUERY_LIBS := $(shell pkg-config --libs $(QUERY_PKGS) 2>/dev/null) -lm
Q         = $(if $(V),,@printf '  %-4s %s\n' $(1) $@;)

# ---- sources: a folder says where a file belongs; nothing is listed twice -----------------------------------------------------
lib_src   := $(filter-out src/cli/%,$(wildcard src/*/*.c src/*/*/*.c src/*/*/*/*.c))
keeper_dirs := sandbox/keeper $(patsubst %/,%,$(wildcard sandbox/keeper/*/))
# Tests see every folder's own headers.
test_inc  := -Isandbox $(addprefix -I,$(keeper_dirs)) $(patsubst %/,-I%,$(sort $(dir $(lib_src))))
main_src  := src/main.c $(wildcard src/cli/*.c)
base_src  := $(wildcard src/base/*.c)
keeper_src := $(wildcard $(addsuffix /*.c,$(keeper_dirs)))
# What needs libcrypto is the daemon's.
keeper_base := $(filter-out $(addprefix src/base/,digest.c map.c secret_file.c),$(base_src))
helper    := unpack picture
unit_src  := $(wildcard tests/unit/test_*.c)
fuzz_src  := $(wildcard tests/fuzz/fuzz_*.c)
lib_obj   := $(lib_src:%.c=$O/%.o)
keeper_lib_obj := $(patsubst %.c,$O/%.o,$(filter-out sandbox/keeper/box.c,$(keeper_src)))
unit      := $(unit_src:tests/unit/%.c=$O/unit/%)
fuzz      := $(fuzz_src:tests/fuzz/%.c=build/fuzz/%)
prompts   := $(shell find prompts -type f 2>/dev/null)
kernel    := $(shell find sandbox/inside/kernel -name '*.py' 2>/dev/null)

all: build/sandbook
# Always: the link names the flavour that was asked for last. (Without FORCE a link that is new enough would hide that the
# other flavour was never built, since .SECONDARY lets make leave out what is only on the way.)
build/sandbook: $O/sandbook $O/sandbook-box $O/sandbook-query $O/box $O/prompts FORCE
	@ln -sfn $(flavour)/sandbook $@

$O/sandbook: $(main_src:%.c=$O/%.o) $O/libsandbook.a
	$(call Q,LD)$(CC) $(LDFLAGS) $(san_ld) -o $@ $^ $(LDLIBS)
$O/libsandbook.a: $(lib_obj)
	$(call Q,AR)rm -f $@ && $(AR) rcs $@ $^
$O/libkeeper.a: $(keeper_lib_obj)
	$(call Q,AR)rm -f $@ && $(AR) rcs $@ $^
$O/prompts: $(prompts) Makefile
	@mkdir -p $(@D) && ln -sfn ../../prompts $@
$O/sandbook-box: $K/sandbook-box
	@mkdir -p $(@D) && ln -sfn ../../$< $@
$O/sandbook-query: $K/sandbook-query
	@mkdir -p $(@D) && ln -sfn ../../$< $@
$O/box: $K/box/.laid
	@mkdir -p $(@D) && ln -sfn ../../$K/box $@
# The program knows which image it was built for.
$O/src/box/native_paths.o: $(wildcard sandbox/image/* sandbox/image/etc/* sandbox/image/patches/*)
$O/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(CFLAGS) $(san_c) $(lib_c) $(if $(filter sandbox/%,$<),$(keeper_c)) -c -o $@ $<

# ---- the keeper, and what it mounts into every box at /opt/sandbook -----------------------------------------------------------
$K/sandbook-box: $(keeper_src:%.c=$K/%.o) $(keeper_base:%.c=$K/%.o)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $^ $(KEEPER_LIBS)
# Asks databases, one question a process (src/tool/sql.h); the only program that knows libpq.
$K/sandbook-query: $K/src/query.o $(patsubst %.c,$K/%.o,$(wildcard src/tool/sql_*.c) $(keeper_base))
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $^ $(QUERY_LIBS)
$K/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(CFLAGS) $(FORTIFY) $(lib_c) $(if $(filter sandbox/%,$<),$(keeper_c)) -c -o $@ $<
# Raw system calls only: they run against the image's C library, or none.
free_c    := -std=c17 -D_GNU_SOURCE -O2 -g $(WARN) -ffreestanding -fno-stack-protector -fno-builtin -nostdlib -Iinclude -Isandbox
# clang takes a static program as it is, and calls the option unused.
no_pie    := $(if $(findstring clang,$(cc_name)),,-no-pie)
$K/inside/lock.so: sandbox/inside/lock.c sandbox/inside/arena.c $(wildcard sandbox/*.h sandbox/inside/*.h) Makefile
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(free_c) -fPIC -shared -Wl,-z,relro,-z,now,-z,noexecstack -o $@ $(filter %.c,$^)
$K/inside/init: sandbox/inside/init.c $(wildcard sandbox/*.h sandbox/inside/*.h) Makefile
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(free_c) -static -fno-pie $(no_pie) -Wl,-z,noexecstack -o $@ $<
# Linked for sandbox/inside/helper/closure, which lays them with their own loader: the image's C library is another one.
helper_ld := -Wl,-rpath,/opt/sandbook/lib -Wl,--disable-new-dtags
$K/inside/unpack: sandbox/inside/helper/unpack.c Makefile
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(CFLAGS) $(FORTIFY) $(LDFLAGS) $(helper_ld) -o $@ $< $(shell pkg-config --cflags --libs libarchive libutf8proc)
$K/inside/picture: sandbox/inside/helper/picture.c Makefile
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(CFLAGS) $(FORTIFY) $(LDFLAGS) $(helper_ld) -o $@ $< $(shell pkg-config --cflags --libs libpng)
$K/box/.laid: $(helper:%=$K/inside/%) $K/inside/lock.so $K/inside/init sandbox/inside/zygote.py $(kernel) sandbox/inside/helper/closure Makefile
	$(call Q,LAY)rm -rf $K/box.new && mkdir -p $K/box.new && sandbox/inside/helper/closure $K/box.new $(helper:%=$K/inside/%) && \
	  cp $K/inside/lock.so $K/inside/init sandbox/inside/zygote.py $K/box.new/ && \
	  (cd sandbox/inside && cp --parents $(kernel:sandbox/inside/%=%) $(CURDIR)/$K/box.new/) && \
	  touch $K/box.new/.laid && rm -rf $K/box && mv $K/box.new $K/box

# ---- the image ---------------------------------------------------------------------------------------------------------------
image:
	@.ci/bootstrap image
	@sandbox/image/build
image-save:
	@sandbox/image/save $(or $(FILE),$(error usage: make image-save FILE=box-image.tar.zst))
image-load:
	@sandbox/image/load $(or $(FILE),$(error usage: make image-load FILE=box-image.tar.zst))

# The comment at the head of this file.
help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

# ---- what people run -----------------------------------------------------------------------------------------------------------
demo:
	@.ci/bootstrap build
	@.ci/bootstrap image
	@$(MAKE) --no-print-directory all
	@sandbox/image/build >/dev/null
	@tests/demo
check:
	@.ci/bootstrap check
	@tests/check

unit: $(unit)
build/unit.list: FORCE
	@mkdir -p build && printf '%s\n' $(unit) > $@
$O/unit/%: $O/tests/unit/%.o $O/libkeeper.a $O/libsandbook.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) $(san_ld) -o $@ $^ $(LDLIBS) $(KEEPER_LIBS) $(QUERY_LIBS) -lcmocka
$O/tests/unit/%.o: override CFLAGS += $(test_inc)

# ---- gates -------------------------------------------------------------------------------------------------------------------
fuzz_c    := -g -O2 -std=c17 $(DEFINES) -Iinclude -Isrc $(test_inc) -MMD -MP $(lib_c) \
             -fno-sanitize-recover=all
fuzz_obj  := $(patsubst %.c,build/fuzz/obj/%.o,$(lib_src) $(filter-out sandbox/keeper/box.c,$(keeper_src)))
build/fuzz/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call Q,FUZZ)clang $(fuzz_c) -fsanitize=fuzzer-no-link,address,undefined -c -o $@ $<
# Lengths and ranges of bytes: what their comparisons tell a fuzzer is not worth a quarter of all its time.
$(patsubst %,build/fuzz/obj/src/base/%.o,base err str utf8): fuzz_c += -fno-sanitize-coverage=trace-cmp
build/fuzz/lib.a: $(fuzz_obj)
	$(call Q,AR)rm -f $@ && $(AR) rcs $@ $^
build/fuzz/%: tests/fuzz/%.c build/fuzz/lib.a Makefile
	@mkdir -p $(@D)
	$(call Q,FUZZ)clang $(fuzz_c) -Itests/fuzz -fsanitize=fuzzer,address,undefined $< build/fuzz/lib.a -o $@ $(LDLIBS) $(KEEPER_LIBS) $(QUERY_LIBS)
fuzzers: $(fuzz)
fuzz: $(fuzz)
	@tests/fuzz/run $(or $(FUZZ_S),20) $(fuzz)
floors:
	@tests/floors.py && tests/docs.py
lint: floors
	@tests/lint
fmt:
	clang-format -i $(lib_src) $(main_src) src/query.c $(wildcard include/*.h src/*/*.h src/*/*/*.h src/*/*/*/*.h sandbox/*.h sandbox/*/*.[ch] sandbox/*/*/*.[ch] tests/unit/*.[ch] tests/fuzz/*.[ch])
bench: all
	@.ci/bootstrap bench
	@tests/bench/run; a=$$?; tests/bench/agent; b=$$?; tests/bench/slack; c=$$?; tests/bench/matrix && exit $$((a | b | c))
cover:
	$(MAKE) COV=1 CFLAGS='-O0 -g' unit && for t in $(unit:$O/%=build/$(tag)cov/%); do $$t >/dev/null 2>&1 || exit 1; done; gcovr -r . build/$(tag)cov

# ---- installing --------------------------------------------------------------------------------------------------------------
# Nothing that an operator may have changed is touched: the configuration in /etc is his. AppArmor's profile and the units are laid
# below DATADIR and UNITDIR; docs/sandbox.md says when they are needed.
UNITDIR   ?= $(if $(filter /usr /usr/local,$(PREFIX)),/etc/systemd/system,$(PREFIX)/lib/systemd/system)
MANDIR    ?= $(PREFIX)/share/man/man1
DOCDIR    ?= $(PREFIX)/share/doc/sandbook
IMAGE     ?= /var/cache/sandbook/image-$(image_hash)/root
units     := sandbook.service sandbook-box.socket sandbook-box@.service
filled     = sed -e 's|@BINDIR@|$(BINDIR)|g; s|@LIBDIR@|$(LIBDIR)|g; s|@DATADIR@|$(DATADIR)|g; s|@DOCDIR@|$(DOCDIR)|g; s|@IMAGE@|$(IMAGE)|g'
put        = install -D -m
install: all
	$(put) 755 $O/sandbook $(DESTDIR)$(BINDIR)/sandbook
	$(put) 755 $K/sandbook-box $(DESTDIR)$(LIBDIR)/sandbook-box
	$(put) 755 $K/sandbook-query $(DESTDIR)$(LIBDIR)/sandbook-query
	rm -rf $(DESTDIR)$(LIBDIR)/box $(DESTDIR)$(DATADIR)/prompts
	mkdir -p $(DESTDIR)$(LIBDIR)/box $(DESTDIR)$(DATADIR)/prompts $(DESTDIR)$(DOCDIR) $(DESTDIR)$(UNITDIR)
	cp -R $K/box/. $(DESTDIR)$(LIBDIR)/box/
	cp -R prompts/. $(DESTDIR)$(DATADIR)/prompts/
	chmod -R u=rwX,go=rX $(DESTDIR)$(LIBDIR)/box $(DESTDIR)$(DATADIR)/prompts
	$(put) 644 config/sandbook.conf $(DESTDIR)$(DATADIR)/sandbook.conf
	$(filled) config/apparmor/sandbook > $(DESTDIR)$(DATADIR)/apparmor-sandbook
	$(filled) config/systemd/sandbook-user.service > $(DESTDIR)$(DATADIR)/sandbook-user.service
	for unit in $(units); do $(filled) config/systemd/$$unit > $(DESTDIR)$(UNITDIR)/$$unit || exit 1; done
	$(put) 644 docs/man/sandbook.1 $(DESTDIR)$(MANDIR)/sandbook.1
	install -m 644 LICENSE $(wildcard docs/*.md) $(DESTDIR)$(DOCDIR)/
	$(put) 644 docs/images/answer.png $(DESTDIR)$(DOCDIR)/images/answer.png
	sed 's|](docs/|](|g' README.md > $(DESTDIR)$(DOCDIR)/README.md
	chmod 644 $(DESTDIR)$(DOCDIR)/README.md $(DESTDIR)$(DATADIR)/apparmor-sandbook $(DESTDIR)$(DATADIR)/sandbook-user.service $(addprefix $(DESTDIR)$(UNITDIR)/,$(units))
# With the same DESTDIR and PREFIX. Configuration, data and image stay.
uninstall:
	rm -rf $(DESTDIR)$(LIBDIR) $(DESTDIR)$(DATADIR) $(DESTDIR)$(DOCDIR)
	rm -f $(DESTDIR)$(BINDIR)/sandbook $(DESTDIR)$(MANDIR)/sandbook.1 $(addprefix $(DESTDIR)$(UNITDIR)/,$(units))
clean:
	rm -rf build

FORCE:
.SECONDARY:
.DELETE_ON_ERROR:
.PHONY: all help image image-save image-load demo check unit fuzz fuzzers floors lint fmt bench cover install uninstall clean FORCE
-include $(shell find build -name '*.d' 2>/dev/null)
