#!/bin/sh
# Times the graphs of bench/memory_cpu.g on all cores beside triad and memcpy.
#
#   sh bench/memory_cpu.sh FUSEC STREAM [TARGET]
set -u
fusec=$1
stream=$2
target=${3:-cpu-native}
here=$(cd "$(dirname "$0")" && pwd) || exit 2
rates=$("$stream") || exit 1
echo "$rates"
triad=$(echo "$rates" | awk '/triad/ { print $2 }')
copy=$(echo "$rates" | awk '/memcpy/ { print $2 }')
printf '%-16s %10s %8s %9s %10s\n' graph 'median us' GB/s 'of triad' 'of memcpy'
failed=0
for graph in $(sed -n 's/^graph \([a-z0-9_]*\).*/\1/p' "$here/memory_cpu.g"); do
    if ! report=$("$fusec" bench "$here/memory_cpu.g" --graph="$graph" --target="$target" \
        --device=cpu --runs=21 --json); then
        echo "$graph failed"
        failed=$((failed + 1))
        continue
    fi
    echo "$report" | awk -F'[:,]' -v graph="$graph" -v triad="$triad" -v copy="$copy" '
        /"median_us"/ { us = $2 } /"gb_per_s"/ { rate = $2 }
        END { printf "%-16s %10.0f %8.1f %9.2f %10.2f\n", graph, us, rate, rate / triad, rate / copy }'
done
[ $failed -eq 0 ]
