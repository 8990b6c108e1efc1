#!/bin/sh
# Checks that flags of a graph's nodes stand in NodeFlags (ir/node_flags.h): no declaration whose comment says `per
# node` is a pointer to bool or to integers of a byte, and no such array has as many elements as a graph has nodes.
# tools/node_flags.txt lists the exceptions.
set -eu
cd "$(dirname "$0")/.."

# Each exception is a line `FILE NAME why`, and there are no others.
find compiler -name '*.[chly]' ! -path compiler/ir/node_flags.h | sort | xargs awk -v byte='(bool|u?int8_t|(unsigned )?char)' '
    BEGIN {
        while ((getline line < "tools/node_flags.txt") > 0)
            if (split(line, word) > 1 && word[1] !~ /^#/) allowed[word[1] " " word[2]] = 1
    }
    function report(name) {
        used[FILENAME " " name] = 1
        if (FILENAME " " name in allowed) return
        print FILENAME ":" FNR ": " name
        bad = 1
    }
    FNR == 1 { comment = statement = ""; split("", counts) }
    /^}/ { split("", counts) } # counts: the variables of this function that hold a number of nodes

    # A comment stands before the declaration or behind it.
    /^ *\/\*/ { comment = "" }
    comment_open || /^ *\/\*/ { comment = comment $0; comment_open = !/\*\//; next }
    {
        behind = match($0, /\/\*.*/) ? substr($0, RSTART) : ""
        code = behind ? substr($0, 1, RSTART - 1) : $0
        if ((comment behind) ~ /[Pp]er node/ && match(code, byte " \\*[a-z_]+ *(=|,|;|\\()")) {
            name = substr(code, RSTART, RLENGTH)
            gsub(/.*\*| *(=|,|;|\()$/, "", name)
            report(name)
        }
        comment = ""
        comment_open = behind && behind !~ /\*\//
        if (comment_open) comment = behind

        statement = statement " " code
        if (code !~ /[;{}] *$/) next
        for (rest = statement; match(rest, /[a-z_]+ = [^;,]*[gG]raph->nodes\.n/); rest = substr(rest, RSTART + RLENGTH)) {
            name = substr(rest, RSTART, RLENGTH)
            if (name !~ /\(/) { sub(/ = .*/, "", name); counts[name] = 1 }
        }
        for (rest = statement; match(rest, "[a-z_]+ = arena_array\\([^,]*, " byte ", [^),]*"); rest = substr(rest, RSTART + RLENGTH)) {
            name = size = substr(rest, RSTART, RLENGTH)
            sub(/ = .*/, "", name)
            sub(".*, " byte ", ", "", size)
            sub(/ \+ .*/, "", size)
            if (size ~ /[gG]raph->nodes\.n$/ || size in counts) report(name)
        }
        statement = ""
    }
    END {
        for (key in allowed) if (!(key in used)) { print key ": an exception that is not needed"; bad = 1 }
        if (bad) print "    a flag of a node is a bit of NodeFlags (ir/node_flags.h)"
        exit bad
    }'
echo 'node-flags: good'
