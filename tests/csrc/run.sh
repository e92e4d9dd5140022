#!/bin/bash
# The C floor alone, without Python, under AddressSanitizer and UndefinedBehaviorSanitizer.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
csrc=$here/../../csrc
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
flags=(-std=c99 -g -O1 -Wall -Wextra -Werror -ffp-contract=off -fno-math-errno -fno-trapping-math -DHS_NO_CLONES)
flags+=(-fsanitize=address,undefined -fno-sanitize-recover=all "-I$csrc")
for check in check_special check_kernels check_tail check_saddle check_sampling check_individual check_pld check_grid_terms check_pair_terms check_saddle_terms check_smoothing_terms; do
    echo "== $check"
    "${CC:-gcc}" "${flags[@]}" "$here/$check.c" "$csrc"/*.c -o "$build/$check" -lm
    "$build/$check"
done
