#!/bin/sh
# Builds envelope.wasm beside envelope.c; with an argument, into that file instead. The same compiler makes the same
# bytes. Needs clang with its wasm32 target and lld; on Debian: apt-get install clang-19 lld-19
set -eu
cd "$(dirname "$0")"
clang=${CLANG:-}
if [ -z "$clang" ]; then
	for clang in clang-19 clang; do
		command -v "$clang" >/dev/null 2>&1 && break
	done
fi
"$clang" --target=wasm32 -std=c11 -O2 -Wall -Wextra -Werror -ffreestanding -nostdlib -mbulk-memory -msimd128 \
	-Wl,--no-entry -Wl,--strip-all -Wl,--stack-first -Wl,-z,stack-size=32768 \
	-o "${1:-envelope.wasm}" envelope.c
