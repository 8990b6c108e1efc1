#!/bin/sh
# Checks that no number of a card stands outside its table, and that no number which was chosen stands outside
# machine/tuning.def or machine/tiles.def: the files of these folders define no real constant and no tile shape
# of their own.
set -eu
cd "$(dirname "$0")/.."
failed=0

# forbid WHY PATTERN FOLDER..: no line there matches.
forbid() {
    why=$1 pattern=$2
    shift 2
    found=$(grep -rnE --include='*.[chly]' --include='*.def' "$pattern" "$@" || true)
    [ -z "$found" ] && return
    printf '%s\n    %s\n' "$found" "$why"
    failed=1
}

forbid 'the processors of a card are a column of machine/cards.def' '\b132\b' \
    $(find compiler -name '*.[chly]' -o -name '*.def' | grep -v machine/cards.def)
forbid 'shared memory of a card is a column of machine/cards.def' '\b(48|99|163|227) \* 1024|\b(99|163|227) << 10' \
    $(find compiler -name '*.[chly]' | grep -v machine/machine.h)
forbid 'facts of machines stand in machine/machine.h' \
    '\b(WARP|WARP_THREADS|SECTOR_BYTES|LINE_BYTES|ACCESS_BYTES|VECTOR_BYTES) = [0-9]' \
    $(find compiler -name '*.[chly]' | grep -v machine/machine.h)
forbid 'a number that was chosen is a row of machine/tuning.def' '^(static const (double|float) [A-Z]|#define [A-Z_]+ [0-9.]+)' \
    compiler/cost compiler/search compiler/split compiler/layout compiler/fuse compiler/explain compiler/memory
forbid 'a tile shape is a row of machine/tiles.def' '\{+[0-9]+, *[0-9]+' compiler/schedule

[ $failed = 0 ] && echo 'constants: good'
exit $failed
