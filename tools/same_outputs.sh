#!/bin/sh
# Checks that two builds of the compiler write the same artifacts, byte for byte, for every target.
# same_outputs.sh FUSEC FUSEC SOURCE...
set -u
first=$1 second=$2
shift 2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
passed=0 failed=0

write() { # write FUSEC SOURCE TARGET FILE
    "$1" "$2" "--target=$3" -o "$4" >"$out/messages" 2>&1 && return
    echo "$2 for $3: $1 fails"
    cat "$out/messages"
    return 1
}

for source; do
    for target in sm_80 sm_90a cpu cpu-v4; do
        case $target in
        sm_*) suffix=ptx ;;
        *) suffix=o ;;
        esac
        if write "$first" "$source" $target "$out/first.$suffix" &&
            write "$second" "$source" $target "$out/second.$suffix" &&
            cmp "$out/first.$suffix" "$out/second.$suffix"; then
            passed=$((passed + 1))
        else
            echo "$source for $target: $first and $second differ"
            failed=$((failed + 1))
        fi
    done
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
