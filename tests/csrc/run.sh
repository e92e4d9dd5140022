#!/bin/bash
# The C floor alone, without Python. HS_CHECKS: "bounds" (default) for AddressSanitizer and UndefinedBehaviorSanitizer, "memory" for
# clang's MemorySanitizer, which finds values that are read before they are written, or "noise" for rounding made worse on purpose
# (noise.h), under which the claims that check_*_terms.c and check_transform.c look at have to hold as well. HS_FEW= runs all cases of
# check_*_terms.c, as tests/test_terms.py does without sanitizers and noise; else one in HS_FEW of them, 8, and of the slowest one in 32.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
csrc=$here/../../csrc
export build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
flags=(-std=c99 -ffp-contract=off -fno-math-errno -fno-trapping-math -DHS_NO_CLONES "-I$csrc")
sources=("$csrc"/*.c "$csrc"/*/*.c) checks=("$here"/check_*.c) kinds=("") cc=${CC:-gcc}
export HS_FEW=${HS_FEW-8} slow=' check_bulk_terms check_counts_terms check_fit_terms check_hyperbola_terms check_line_terms check_mixed_terms check_rates_terms check_smoothing_terms '
case ${HS_CHECKS:-bounds} in
    bounds) flags+=(-g1 -O1 -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all) ;;
    memory) cc=${CC:-clang} flags+=(-g -O1 -Wall -Wextra -Werror -fsanitize=memory -fno-omit-frame-pointer) ;;
    noise)
        flags+=(-O1 -w -frounding-math -D_POSIX_C_SOURCE=200809L -include "$here/noise.h")
        sources+=("$here/noise.c") checks=("$here"/check_*_terms.c "$here/check_transform.c") kinds=(40 21 32) ;;
    *) echo "HS_CHECKS must be bounds, memory or noise, got $HS_CHECKS" >&2 && exit 2 ;;
esac
each() { xargs -0 -P "${HS_JOBS:-$(nproc)}" "$@"; } # HS_JOBS: processes at a time
printf '%s\0' "${sources[@]}" | each -n 1 bash -c '"$@" -o "$build/$(basename "${!#}" .c).o"' - "$cc" "${flags[@]}" -c
printf '%s\0' "${checks[@]}" | each -n 1 bash -c 'read -r -a cc <<< "$0" && "${cc[@]}" "$@" "$build"/*.o -o "$build/$(basename "${!#}" .c)" -lm' "$cc" "${flags[@]}"
run() {
    local said status=0
    if [[ -n $HS_FEW && $slow = *" $1 "* ]]; then HS_FEW=$((4 * HS_FEW)); fi
    said=$(HS_NOISE_KIND=$2 "$build/$1" 2>&1) || status=$?
    printf '== %s %s\n%s\n' "$1" "$2" "$said"
    [ $status -eq 0 ] || exit 255
}
export -f run
for check in "${checks[@]}"; do for kind in "${kinds[@]}"; do printf '%s\0%s\0' "$(basename "$check" .c)" "$kind"; done; done | each -n 2 bash -c 'run "$@"' -
