#!/bin/sh
# Times the graphs of bench/memory.g beside a device copy, on a GPU machine with PyTorch (which does
# the copy; without it the last column is missing).
#
#   sh bench/memory.sh [FUSEC] [TARGET] [FILTER]
set -u
fusec=${1:-build/fusec}
target=${2:-native}
filter=${3:-.}
here=$(cd "$(dirname "$0")" && pwd) || exit 2
copy=$(python3 - <<'PY' 2>/dev/null
import torch
n = 1 << 30
a = torch.empty(n, dtype=torch.uint8, device="cuda").random_()
b = torch.empty_like(a)
begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
times = []
for i in range(23):
    begin.record()
    b.copy_(a)
    end.record()
    torch.cuda.synchronize()
    times.append(begin.elapsed_time(end))
times = sorted(times[3:])
print(round(2 * n / (times[len(times) // 2] * 1e-3) / 1e9, 1))
PY
)
echo "device copy of 1 GiB, read and written: ${copy:-not measured} GB/s"
printf '%-18s %8s %10s %9s %8s\n' graph launches 'median us' GB/s 'of copy'
failed=0
for graph in $(sed -n 's/^graph \([a-z0-9_]*\).*/\1/p' "$here/memory.g" | grep -e "$filter"); do
    if ! timeout 120 "$fusec" bench "$here/memory.g" --graph="$graph" --target="$target" \
        --device=cuda --runs=41 --json >"/tmp/memory.$$"; then
        echo "$graph failed"
        failed=$((failed + 1))
        continue
    fi
    awk -F'[:,]' -v graph="$graph" -v copy="${copy:-0}" '
        /"launches"/ { launches = $2 } /"median_us"/ { us = $2 } /"gb_per_s"/ { rate = $2 }
        END { share = copy ? sprintf("%.3f", rate / copy) : "-"
              printf "%-18s %8d %10.1f %9.1f %8s\n", graph, launches, us, rate, share }' "/tmp/memory.$$"
done
rm -f "/tmp/memory.$$"
[ $failed -eq 0 ]
