#!/bin/sh
# Removes what install.sh put below FOLDER, and those of the folders it made that are now empty.
# uninstall.sh FOLDER
set -eu
root=${1%/}
list=$root/share/fusec/installed
[ -f "$list" ] || { echo "uninstall: there is no fusec in $root" >&2 && exit 1; }
while IFS= read -r name; do
    case $name in
    */) ;;
    *) rm -f "$root/$name" "$root/$name.new" ;;
    esac
done <"$list"
folders=$(grep '/$' "$list" | LC_ALL=C sort -r)
rm -f "$list"
printf '%s\n' "$folders" | while IFS= read -r name; do
    [ ! -d "$root/$name" ] || rmdir --ignore-fail-on-non-empty "$root/$name"
done
echo "removed fusec from $root"
