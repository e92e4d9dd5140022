#!/bin/bash
# The C floor alone, without Python. HS_CHECKS: "bounds" (default) for AddressSanitizer and UndefinedBehaviorSanitizer, or
# "memory" for clang's MemorySanitizer, which finds values that are read before they are written.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
csrc=$here/../../csrc
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
flags=(-std=c99 -g -O1 -Wall -Wextra -Werror -ffp-contract=off -fno-math-errno -fno-trapping-math -DHS_NO_CLONES "-I$csrc")
case ${HS_CHECKS:-bounds} in
    bounds) cc=${CC:-gcc} flags+=(-fsanitize=address,undefined -fno-sanitize-recover=all) ;;
    memory) cc=${CC:-clang} flags+=(-fsanitize=memory -fno-omit-frame-pointer) ;; # status 1, too few cases for a count, is judged under "bounds": cases differ between compilers
    *) echo "HS_CHECKS must be bounds or memory, got $HS_CHECKS" >&2 && exit 2 ;;
esac
printf '%s\0' "$csrc"/*.c | xargs -0 -n 1 -P "$(nproc)" bash -c '"$@" -o "$0/$(basename "${!#}" .c).o"' "$build" "$cc" "${flags[@]}" -c
for path in "$here"/check_*.c; do
    check=$(basename "$path" .c)
    echo "== $check"
    "$cc" "${flags[@]}" "$path" "$build"/*.o -o "$build/$check" -lm
    status=0
    MSAN_OPTIONS=exit_code=77 "$build/$check" || status=$?
    if [ "$status" -gt 1 ] || { [ "$status" -eq 1 ] && [ "${HS_CHECKS:-bounds}" = bounds ]; }; then exit "$status"; fi
done
