#!/bin/sh
# Checks that what is known of an enumerator stands in its table: outside the folder that owns the list no file
# compares an enumerator of it by == or !=, and no switch over the list has a default, which would hide a new
# enumerator from the compiler. tools/enums.txt lists the exceptions. Enumerators of public headers have numbers.
set -eu
cd "$(dirname "$0")/.."
failed=0

# compared FOLDER PREFIX LIST: `FILE ENUMERATOR`, once for each comparison outside the folder. The list is a table, or
# a header with the enum.
compared() {
    names=$(sed -nE -e 's/^[A-Z_]+\(([A-Z0-9_]+),.*/\1/p' -e "s/^    $2([A-Z0-9_]+)[ ,].*/\\1/p" "$3" | paste -sd '|')
    find compiler runtime/src -name '*.[chly]' ! -path "$1/*" | sort | xargs awk -v name="$2($names)" '
        {
            line = $0
            while (match(line, "(==|!=) *" name "[^A-Z0-9_]|(^|[^A-Z0-9_])" name " *(==|!=)")) {
                found = substr(line, RSTART, RLENGTH)
                gsub(/[^A-Z0-9_]/, "", found)
                print FILENAME, found
                line = substr(line, RSTART + RLENGTH)
            }
        }
        /switch \(/ { seen = "" }
        match($0, "case " name ":") { seen = substr($0, RSTART + 5, RLENGTH - 6) }
        /default:/ && seen { print FILENAME, seen }'
}

found=$({
    compared compiler/lowering TEMPLATE_ compiler/lowering/templates.def
    compared compiler/lowering FORM_ compiler/lowering/forms.def
    compared compiler/lowering GEMM_ compiler/lowering/engines.def
    compared compiler/plan LAUNCH_ compiler/plan/launch_modes.def
    compared compiler/plan BLOCKS_ compiler/plan/plan.h
    compared compiler/machine DEVICE_ compiler/machine/devices.def
    compared compiler/ir DT_ compiler/ir/dtype.def
    compared runtime/src/manifest FRT_TARGET_KIND_ runtime/src/manifest/targets.def
} | sort | uniq -c | awk '{ print $2, $3, $1 }')

# Each exception is a line `FILE ENUMERATOR COUNT why`, and there are no others.
printf '%s\n' "$found" | awk '
    /^#|^$/ { next }
    FILENAME == "tools/enums.txt" { allowed[$1 " " $2] = $3; next }
    { n[$1 " " $2] = $3 }
    END {
        for (key in n) if (n[key] > allowed[key]) { print key ": compared " n[key] " times"; bad = 1 }
        for (key in allowed) if (n[key] < allowed[key]) { print key ": an exception that is not needed"; bad = 1 }
        if (bad) print "    a table says what is known of an enumerator: ask for a trait of it"
        exit bad
    }' tools/enums.txt - || failed=1

# The enumerators of public headers have explicit numbers, also those that a list expands to.
for header in compiler/include/*.h runtime/include/*.h; do
    implicit=$(sed -E 's/^#define [A-Za-z_]+\([^)]*\)//; /^#/d' "$header" | tr '\n' ' ' |
        sed -E 's@/\*([^*]|\*+[^*/])*\*+/@@g' | grep -oE '\<enum( [a-z_]+)? *\{[^}]*\}' |
        sed 's/.*{//; s/}.*//' | tr ',' '\n' | grep -E '[A-Za-z]' | grep -v '=' || true)
    [ -z "$implicit" ] && continue
    echo "$header: no number for" $implicit
    failed=1
done

[ $failed = 0 ] && echo 'enums: good'
exit $failed
