#!/bin/bash
# The C floor alone, without Python, under AddressSanitizer and UndefinedBehaviorSanitizer.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
csrc=$here/../../csrc
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
flags=(-std=c99 -g -O1 -Wall -Wextra -Werror -ffp-contract=off -fno-math-errno -fno-trapping-math -DHS_NO_CLONES)
flags+=(-fsanitize=address,undefined -fno-sanitize-recover=all "-I$csrc")
for path in "$here"/check_*.c; do
    check=$(basename "$path" .c)
    echo "== $check"
    "${CC:-gcc}" "${flags[@]}" "$path" "$csrc"/*.c -o "$build/$check" -lm
    "$build/$check"
done
