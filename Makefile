# The front door, thin, over Meson and Ninja. `make demo` and `make test` are all that a newcomer needs.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=

.DEFAULT_GOAL := build
.PHONY: help deps build demo test test-all test-crash test-vm test-bare test-packages bench deb wheel dist install clean lint format texts why

help:
	@sed -n 's/^##  //p' Makefile

##  make             build build/fumehood (and install what the build needs)
build:
	@scripts/deps build
	@scripts/build $(BUILD)

##  make demo        build, and run a real analysis under the hood
demo:
	@scripts/deps build demo
	@scripts/build $(BUILD)
	@scripts/demo $(BUILD)

##  make test        build, and pass every test
test:
	@scripts/deps build demo test packages
	@scripts/test $(BUILD)

##  make test-all    the same with every long part: crash sweeps and virtual machines in full
test-all:
	@scripts/deps build demo test all packages
	@scripts/test $(BUILD) --all

##  make test-crash  only the crash sweeps, in full
test-crash:
	@scripts/deps build test
	@scripts/test $(BUILD) --all --only crash

##  make test-vm     only the suites in virtual machines, in full
test-vm:
	@scripts/deps build test
	@scripts/test $(BUILD) --all --only vm

##  make test-bare   demo and test once more, on a bare Debian 12 made for it (as root)
test-bare:
	@tests/bare

##  make test-packages  only what is packed, installed on bare Debians made for it (as root)
test-packages:
	@scripts/deps build test packages
	@scripts/test $(BUILD) --all --only packages

##  make deb         Debian packages, in build/dist
deb:
	@scripts/deps build packages
	@scripts/deb $(BUILD)

##  make wheel       a wheel with module, library and command, in build/dist
wheel:
	@scripts/deps build
	@scripts/wheel $(BUILD)

##  make dist        a tarball with the command, and the checksums of all that lies in build/dist
dist:
	@scripts/deps build
	@scripts/dist $(BUILD)

##  make bench       what it costs, beside bubblewrap, crun, openssl, rm and xargs: the table, docs/PERFORMANCE.md
bench:
	@scripts/deps build bench
	@scripts/build $(BUILD)
	@bench/run --build $(BUILD)

##  make lint        formatting, static analysis, direction of includes
lint:
	@scripts/deps build test
	@scripts/build $(BUILD)
	@scripts/lint $(BUILD)

##  make format      put every source file into the house's format
format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

##  make texts       write anew what is said of options, limits, verdicts and calls, out of their tables
texts:
	@scripts/build $(BUILD)
	@scripts/texts $(BUILD)/tests/texts/tables $(BUILD)/fumehood
	@scripts/api

##  make why         write docs/WHY.md anew, by running what it shows
why:
	@scripts/build $(BUILD)
	@WHY_WRITE=1 /usr/bin/python3 -m pytest tests/e2e/test_why.py -q -p no:cacheprovider --binary $(BUILD)/fumehood

##  make deps        install everything that any of these needs
deps:
	@scripts/deps build demo test all bench bare packages

##  make install     PREFIX=/usr/local DESTDIR=
install: build
	@meson configure $(BUILD) --prefix=$(abspath $(PREFIX))
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD)

##  make clean       remove everything that was built
clean:
	rm -rf $(BUILD)
