#!/bin/sh
# Lengths of files and functions. wc.sh [--check]: with it, fails on a hand-written file of more than
# 700 lines or a function of more than 60; without it, shows the distribution too.
set -eu
cd "$(dirname "$0")/.."
files=$(find compiler runtime tests tools -name '*.[chly]' | LC_ALL=C sort)
# shellcheck disable=SC2086
awk -v check="${1:-}" '
function folder(path) { n = split(path, part, "/"); return n > 2 ? part[1] "/" part[2] : part[1] }
function note_function(name, length_) {
    lengths[++n_functions] = length_
    if (length_ > 60) { printf "%s: function of %d lines: %s\n", FILENAME, length_, name; bad = 1 }
}
function end_file() {
    if (last == "") return
    by_folder[folder(last)] += n_lines
    if (n_lines > 700) { printf "%s: %d lines\n", last, n_lines; bad = 1 }
}
FNR == 1 { end_file(); last = FILENAME; start = 0 }
{ n_lines = FNR }
# A function begins at the margin and ends with a brace at the margin; its head has parentheses.
/^[A-Za-z_].*\(/ && !/;[[:space:]]*$/ && !/^(typedef|struct|enum|union|#)/ {
    if (!start) { head = $0; head_at = FNR }
}
/^\{/ && head_at { start = head_at }
/[^=] \{[[:space:]]*$/ && head_at && !start && (/^[A-Za-z_].*\(/ || /^[[:space:]].*\)[[:space:]]*\{/) {
    start = head_at
}
/^[};]/ { if (start && /^\}/) note_function(head, FNR - start + 1); start = 0; head_at = 0 }
/^[^ \t{}].*;[[:space:]]*$/ { if (!start) head_at = 0 }
END {
    end_file()
    if (check != "--check") {
        for (f in by_folder) printf "%7d lines  %s\n", by_folder[f], f | "LC_ALL=C sort -k3"
        close("LC_ALL=C sort -k3")
        for (i = 1; i <= n_functions; i++) count[lengths[i]]++
        seen = 0
        for (l = 1; l <= 400; l++) {
            seen += count[l]
            if (!median && seen * 2 >= n_functions) median = l
            if (!tenth && seen * 10 >= n_functions * 9) tenth = l
        }
        printf "%d functions, median %d lines, nine of ten at most %d\n", n_functions, median, tenth
    }
    exit bad
}' $files
