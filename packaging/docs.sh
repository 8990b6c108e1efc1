#!/bin/sh
# Prints a page as it is installed: links lead to where their files are below the prefix, or are
# plain text where a file is not installed, and commands name the files as they are called there. In
# README.md.in a line `@intro@`, `@program@` or `@SECTION@` is that part of README.md.
# docs.sh VERSION PAGE WHERE FILES: WHERE is the page's place below the prefix, FILES what files.sh
# prints.
set -eu
version=$1 page=$2 where=$3 files=$4
awk -v version="$version" -v page="$page" -v where="$where" '
function folder(path) { return sub(/[^\/]*$/, "", path) ? path : "" }
# Without `name/..` and `./`.
function plain(path,   n, parts, kept, i, out) {
    n = split(path, parts, "/")
    for (i = 1; i <= n; i++) {
        if (parts[i] == "." || parts[i] == "") continue
        if (parts[i] == ".." && kept > 0) kept--
        else stack[++kept] = parts[i]
    }
    for (i = 1; i <= kept; i++) out = out (i > 1 ? "/" : "") stack[i]
    return out
}
# From the folder of the page to `path`, both below the prefix.
function from_here(path,   here) {
    here = folder(where)
    while (here != "" && index(path, here) != 1) {
        sub(/[^\/]*\/$/, "", here)
    }
    path = substr(path, length(here) + 1)
    here = substr(folder(where), length(here) + 1)
    while (here != "") { path = "../" path; sub(/[^\/]*\/$/, "", here) }
    return path
}
function link(text, target,   anchor, source) {
    if (target ~ /^(https?:|#)/) return "[" text "](" target ")"
    anchor = target
    if (!sub(/^[^#]*/, "", anchor)) anchor = ""
    sub(/#.*/, "", target)
    source = plain(folder(root) target)
    if (!(source in place)) return text
    return "[" text "](" from_here(place[source]) anchor ")"
}
function links(line,   out, part, at) {
    while (match(line, /\[[^][]*\]\([^()]*\)/)) {
        part = substr(line, RSTART, RLENGTH)
        out = out substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + RLENGTH)
        at = index(part, "](")
        out = out link(substr(part, 2, at - 2), substr(part, at + 2, length(part) - at - 2))
    }
    return out line
}
function put(line) {
    gsub(/@VERSION@/, version, line)
    line = links(line)
    gsub(/build\/fusec /, "bin/fusec ", line)
    gsub(/dsl\/examples/, "share/fusec/examples", line)
    print line
}
function put_part(name,   line, is_in, is_code) {
    while ((getline line < "README.md") > 0) {
        if (name == "program") {
            if (line == "```c") is_in = is_code = 1
            if (is_in) print line
            if (is_in && line == "```") is_in = 0
            continue
        }
        if (name == "intro" ? line ~ /^Two commands/ : is_in && line ~ /^## /) is_in = 0
        if (name == "intro" ? line ~ /^# / : line == "## " name) is_in = 1
        if (is_in && line !~ /^# /) put(line)
    }
    close("README.md")
}
BEGIN { root = page ~ /^packaging\// ? "" : page }
FILENAME != page {
    split($0, field, "\t")
    place[field[2]] = field[3]
    for (path = field[2]; sub(/\/[^\/]*$/, "", path);) { # folders, by their first file
        place_of = field[3]
        n = split(substr(field[2], length(path) + 2), rest, "/")
        while (n-- > 0) sub(/\/[^\/]*$/, "", place_of)
        if (!(path in place)) place[path] = place_of
    }
    next
}
/^@[A-Za-z ]*@$/ { put_part(substr($0, 2, length($0) - 2)); next }
{ put($0) }' "$files" "$page"
