#!/bin/sh
# Every way that code comes to a GPU: PTX whose kernels are loaded when they are chosen, all of it at
# once, launches that overlap, the cache (kept, then read), both, and a cubin. Each must give the
# bits of the first. Prints how long loading and a run took.
#
#   sh bench/load_forms.sh FUSEC EXAMPLES [TARGET]     without ptxas there is no cubin
set -u
fusec=${1:?usage: load_forms.sh FUSEC EXAMPLES [TARGET]}
examples=${2:?}
target=${3:-native}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
# What the driver keeps by itself would hide what loading costs.
FUSERT_CACHE=$work/cache CUDA_CACHE_DISABLE=1
export FUSERT_CACHE CUDA_CACHE_DISABLE
passed=0 failed=0 skipped=0

form() { # form NAME ARTIFACT OUTPUT OPTIONS..: one row of the table
    name=$1 artifact=$2 output=$3
    shift 3
    if [ ! -e "$artifact" ]; then
        echo "$model $name: skipped, no ptxas"
        skipped=$((skipped + 1))
        return
    fi
    timeout 60 "$fusec" bench "$artifact" --device=cuda --runs=41 --json "$@" >"$work/json" 2>"$work/said" &&
        timeout 60 "$fusec" run "$artifact" --device=cuda --seed=1 --output="$output=@$work/now.npy" "$@" \
            >/dev/null 2>>"$work/said"
    status=$?
    [ -e "$work/$model.npy" ] || cp "$work/now.npy" "$work/$model.npy"
    bits=same
    [ $status = 0 ] && cmp -s "$work/$model.npy" "$work/now.npy" || bits=FAILED
    if [ $bits = same ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && cat "$work/said"; fi
    rm -f "$work/now.npy"
    awk -F'[:,]' -v model="$model" -v name="$name" -v bits="$bits" '
        /"load_ms"/ { load = $2 } /"kernels_loaded"/ { kernels = $2 } /"load_cached"/ { cached = $2 }
        /"median_us"/ { us = $2 }
        END { printf "%-18s %-22s %8.1f %8d %7s %10.1f  %s\n", model, name, load, kernels, cached, us, bits }' \
        "$work/json"
}

printf '%-18s %-22s %8s %8s %7s %10s  %s\n' model form 'load ms' kernels cached 'median us' bits
while read -r model output dims; do
    "$fusec" "$examples/$model.g" --target="$target" -o "$work/$model.ptx" || exit 1
    "$fusec" "$examples/$model.g" --target="$target" -o "$work/$model.cubin" 2>/dev/null
    # shellcheck disable=SC2086
    {
        form 'ptx' "$work/$model.ptx" "$output" $dims
        form 'ptx, all at once' "$work/$model.ptx" "$output" $dims --load-all
        form 'ptx, in order' "$work/$model.ptx" "$output" $dims --in-order
        form 'cache, kept' "$work/$model.ptx" "$output" $dims --cache
        form 'cache, read' "$work/$model.ptx" "$output" $dims --cache
        form 'cache, in order' "$work/$model.ptx" "$output" $dims --cache --in-order
        form 'cubin' "$work/$model.cubin" "$output" $dims
        form 'cubin, in order' "$work/$model.cubin" "$output" $dims --in-order
    }
done <<END
transformer y --dim=B=2 --dim=T=256
mlp y --dim=B=64
softmax p --dim=B=4096 --dim=C=4001
residual_layernorm y --dim=T=4096 --dim=D=4096
END
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed -gt 0 ]
