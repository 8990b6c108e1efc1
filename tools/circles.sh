#!/bin/sh
# Checks the calls between files by the objects' symbol tables: no two folders of compiler/ or of runtime/src call each
# other, not even through others, and at most 8 files inside a folder do. circles.sh OBJECTS, a folder of them.
set -eu
cd "$(dirname "$0")/.."
objects=$1
[ -d "$objects/compiler/base" ] || { echo "circles: $objects holds no objects"; exit 1; }
find compiler runtime/src -name '*.c' | while read -r source; do
    object=$objects/${source%.c}.o
    [ ! -f "$object" ] || echo "$object" # an object of a file that is gone may lie there too
done | xargs nm -A | awk -v root="$objects/" '
function folder(file) { sub("/[^/]*$", "", file); return file }
# reach[a, b]: a calls b, perhaps through others. Of each pair that is mutual both are on one circle.
function close_over(n, name, reach,    i, j, k) {
    for (k = 1; k <= n; k++)
        for (i = 1; i <= n; i++)
            if ((name[i], name[k]) in reach)
                for (j = 1; j <= n; j++) if ((name[k], name[j]) in reach) reach[name[i], name[j]] = 1
}
{
    file = $1
    sub(/:.*/, "", file)
    if (index(file, root) == 1) file = substr(file, length(root) + 1)
    sub(/\.o$/, "", file)
    if (!(file in seen)) { seen[file] = 1; files[++n_files] = file }
    kind = $(NF - 1)
    if (kind ~ /^[TDBRCV]$/) defined[$NF] = file
    else if (kind == "U") { n_used++; user[n_used] = file; used[n_used] = $NF }
}
END {
    for (u = 1; u <= n_used; u++) {
        if (!(used[u] in defined)) continue
        from = user[u]; to = defined[used[u]]
        a = folder(from); b = folder(to)
        if (from == to) continue
        if (a == b) { inside[from, to] = 1; continue }
        calls[a, b] = 1
        if (!((a, b) in example)) example[a, b] = from " calls " used[u]
    }
    for (i = 1; i <= n_files; i++) {
        f = folder(files[i])
        if (!(f in has)) { has[f] = 1; folders[++n_folders] = f }
    }
    close_over(n_folders, folders, calls)
    for (i = 1; i <= n_folders; i++)
        for (j = 1; j < i; j++)
            if ((folders[i], folders[j]) in calls && (folders[j], folders[i]) in calls) {
                printf "%s and %s call each other: %s; %s\n", folders[i], folders[j],
                    example[folders[i], folders[j]], example[folders[j], folders[i]]
                bad = 1
            }
    for (i = 1; i <= n_folders; i++) {
        n = 0
        for (j = 1; j <= n_files; j++) if (folder(files[j]) == folders[i]) own[++n] = files[j]
        close_over(n, own, inside)
        for (j = 1; j <= n; j++) {
            circle = own[j]; size = 1
            for (k = 1; k <= n; k++)
                if (k != j && (own[j], own[k]) in inside && (own[k], own[j]) in inside) { size++; circle = circle " " own[k] }
            if (size > largest) largest = size
            if (size > 8) { printf "%s: a call circle of %d files: %s\n", folders[i], size, circle; bad = 1; break }
        }
    }
    if (!bad) printf "circles: none between %d folders, at most %d files in one inside\n", n_folders, largest
    exit bad
}'
