#!/bin/sh
# Runs tests side by side, one per processor (or JOBS), and sums their results.
#
#   run_tests.sh [PROGRAM...] <JOBS      lines `BUILD NAME COMMAND...`, if there is no PROGRAM
#
# BUILD/logs receives a log per program, shown when it fails. A Criterion program is read by its
# summary line, any other by its last line `N passed, N failed[, N skipped]`. A Criterion test that
# could not run here prints one line `SKIPPED why` and passes; it is counted as skipped. A program
# without tests fails, and so does one that leaves a sanitizer's report. With TALLY set, the counts
# and the logs' names are appended to that file too, and no sum is printed.
set -u

field() { # field LOG WORD: the number after WORD in Criterion's last summary line
    grep -a 'Synthesis:' "$1" | tail -1 | sed 's/\x1b\[[0-9;]*m//g' |
        sed -n "s/.*$2: \([0-9]*\).*/\1/p"
}

count_words() { # count_words LOG WORD: the number before WORD in the last line that has it
    grep -aE '^[0-9]+ passed, [0-9]+ failed' "$1" | tail -1 | tr ',' '\n' |
        awk -v word="$2" '$2 == word { print $1 }'
}

run_one() { # run_one BUILD NAME COMMAND...: prints a line, and appends the counts to COUNTS
    logs=$1/logs name=$2
    shift 2
    mkdir -p "$logs"
    log=$logs/$name.log
    rm -f "$log" "$logs/$name.san".*
    started=$(date +%s)
    LSAN_OPTIONS=suppressions=tools/lsan.supp:print_suppressions=0 ASAN_OPTIONS=log_path=$logs/$name.san UBSAN_OPTIONS=print_stacktrace=1 \
        timeout 900 "$@" >"$log" 2>&1 </dev/null
    status=$?
    tested=$(field "$log" Tested)
    if [ -n "$tested" ]; then
        good=$(field "$log" Passing)
        bad=$((tested - good))
        skip=$(grep -ac '^SKIPPED ' "$log")
        [ "$skip" -le "$good" ] || skip=$good
        good=$((good - skip))
    else
        good=$(count_words "$log" passed)
        bad=$(count_words "$log" failed)
        skip=$(count_words "$log" skipped)
    fi
    good=${good:-0} bad=${bad:-0} skip=${skip:-0}
    why=
    [ $((good + bad + skip)) -gt 0 ] || { bad=1 why=' (no test ran)'; }
    [ $status = 0 ] || [ "$bad" -gt 0 ] || { bad=1 why=" (exit status $status)"; }
    for report in "$logs/$name.san".*; do
        [ -e "$report" ] || continue
        cat "$report" >>"$log"
        [ "$bad" -gt 0 ] || { bad=1 why=' (sanitizer report)'; }
    done
    exec 9>>"$COUNTS"
    flock 9
    [ "$bad" = 0 ] || tail -n 60 "$log"
    printf '%-34s %5d passed, %d failed%s%s  %ds\n' "$(basename "${logs%/logs}")/$name" "$good" \
        "$bad" "$([ "$skip" = 0 ] || echo ", $skip skipped")" "$why" $(($(date +%s) - started))
    echo "$good $bad $skip $log" >&9
}

# The script calls itself for each line.
if [ "${COUNTS:-}" ]; then
    # shellcheck disable=SC2086
    run_one $1
    exit 0
fi
COUNTS=$(mktemp)
export COUNTS
trap 'rm -f "$COUNTS"' EXIT
if [ $# -gt 0 ]; then
    for program; do echo "${program%%/tests/*} $(basename "$program") $program"; done
else
    cat
fi | CRITERION_JOBS=1 xargs -P "${JOBS:-$(nproc)}" -d '\n' -n 1 sh "$0"
[ -z "${TALLY:-}" ] || cat "$COUNTS" >>"$TALLY"
awk -v is_quiet="${TALLY:-}" '
    { passed += $1; failed += $2; skipped += $3 }
    END {
        if (!is_quiet)
            printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
        exit failed > 0 || passed + skipped == 0
    }' "$COUNTS"
