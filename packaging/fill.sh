#!/bin/sh
# Prints TEMPLATE, each line `@part@` replaced by what the generator makes of that part, and each
# @VERSION@ by the version. fill.sh TEMPLATE VERSION GEN_CLI
set -eu
while IFS= read -r line; do
    case $line in
    @*@)
        part=${line#@}
        "$3" "${part%@}" || exit 1
        ;;
    *@VERSION@*) printf '%s%s%s\n' "${line%%@VERSION@*}" "$2" "${line#*@VERSION@}" ;;
    *) printf '%s\n' "$line" ;;
    esac
done <"$1"
