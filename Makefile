# The short front door: every target is one script, for people who would rather read than type.
# `make` runs the main job, `make test` all tests; both set up what they need in this tree.

all: build  ## the halo-exchange bandwidth table of Boyle et al. 2017, on this machine (default)
	@.venv/bin/ropewalk bench comms -n 2 --mpi mpich

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

setup:  ## .venv with what building and running takes
	@scripts/setup run

build: setup  ## the libraries, the benchmark programs and the Python package
	@scripts/build run

test:  ## all tests
	@scripts/test

format:  ## clang-format and ruff over the tree
	@scripts/setup lint && scripts/lint format --fix

lint:  ## formatting, ruff, types, layers and sizes, without changing anything
	@scripts/setup run lint && scripts/lint format && scripts/lint ruff && scripts/lint types && \
	  scripts/lint house

tidy:  ## clang-tidy on all but the tests
	@scripts/setup run lint && scripts/lint tidy

asan:  ## unit tests under the address and undefined-behaviour sanitizers
	@scripts/setup run test && scripts/sanitize asan

tsan:  ## unit tests under the thread sanitizer
	@scripts/setup run test && scripts/sanitize tsan

PREFIX ?= /usr/local
install: build  ## libraries, headers and benchmark programs into PREFIX (default /usr/local)
	@for part in development programs; do PATH="$$PWD/.venv/bin:$$PATH" \
	  cmake --install build/release --prefix "$(PREFIX)" --component $$part || exit 1; done

clean:  ## removes what was built; .venv stays
	rm -rf build

.PHONY: all help setup build test format lint tidy asan tsan install clean
