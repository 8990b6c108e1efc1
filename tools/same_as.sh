#!/bin/sh
# Checks that the compiler of this tree writes what the compiler of another revision writes, byte
# for byte but for the version: artifacts, messages and statuses.
#
#   same_as.sh [--quick | --examples] REVISION [N] [SEED]
#
# REVISION is one of git's, or a libfusec.so with its fusec beside it: another build of this tree,
# for example. The programs are this tree's: examples, goldens, wrong programs, bench programs, the
# workloads of bench/peers, the programs of all these in `kernel`, `fuse must` and `fuse never`
# blocks as the revision fuses them, and the graphs that the soak program draws: N random graphs and
# programs for every template. Each is compiled for every target of the revision, by default, with
# --no-fuse, --numerics=fast and --rewrite; of the random graphs only every fourth has the options.
# --quick: three targets; only the examples, the goldens and every fourth random graph have the
# options. --examples: the examples alone, by default, for four targets.
#
# SAME_AS_CACHE (build/same_as) keeps the revision's library and what it wrote, by program, so that
# other calls compile only what is new. Several trees may share it. JOBS (all processors) compile
# side by side. SAME_AS_NEW is the libfusec.so to compare, with its fusec beside it, if not this
# tree's. ONLY is a regular expression of the jobs to compare, KEY:NAME:TARGET:KIND:OPTION.
# tests/same/exceptions.txt holds the differences that are meant.
# Exit status: 0; 1 when something differs or has no result; 2 when nothing can be compared, but 0
# where --quick lacks the revision, as a shallow checkout does.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
quick='' examples=''
case ${1-} in
--quick) quick=1; shift ;;
--examples) quick=1 examples=1; shift ;;
esac
[ $# -ge 1 ] || { echo "usage: same_as.sh [--quick | --examples] REVISION [N] [SEED]" >&2; exit 2; }
revision=$1 n=${2:-2000} seed=${3:-1}
cache=${SAME_AS_CACHE:-build/same_as}
jobs=${JOBS:-$(nproc)}
new=${SAME_AS_NEW:-build/libfusec.so}
work=build/same_as/work${SAME_AS_NEW:+-$(echo "$new" | cksum | cut -d' ' -f1)}
rm -rf "$work"
mkdir -p "$cache" "$work"
begin=$(date +%s)
skipped=0

say() { echo "same-as: $*"; }

# ---- the revision's library ----

build_revision() {
    say "building the compiler of $revision; it is kept in $base"
    rm -rf "$base/tree"
    mkdir -p "$base/tree"
    git archive "$id" | tar -x -C "$base/tree"
    if ! env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C "$base/tree" -j"$jobs" CC="${CC:-gcc}" \
        build/libfusec.so build/fusec >"$base/build.log" 2>&1; then
        tail -20 "$base/build.log"
        say "the compiler of $revision cannot be built: $base/build.log"
        exit 2
    fi
    mv "$base/tree/build/fusec" "$base/fusec"
    mv "$base/tree/build/libfusec.so" "$base/libfusec.so"
    rm -rf "$base/tree"
}

if [ -f "$revision" ]; then
    id=$(sha256sum "$revision" | cut -c1-16)
    old=$(realpath "$revision")
    [ -f "${old%/*}/fusec" ] || { say "there is no fusec beside $revision" >&2; exit 2; }
elif id=$(git rev-parse --verify --quiet "$revision^{commit}"); then
    old=$cache/$id/libfusec.so
else
    say "SKIPPED: revision $revision is not in this checkout (a shallow one?): nothing was compared"
    [ -n "$quick" ] || exit 2
    exit 0
fi
base=$cache/$id
mkdir -p "$base/blocks"
exec 9>"$base/lock"
flock 9
for file in "$old" "${old%/*}/fusec"; do
    [ -f "$file" ] || build_revision
done

# ---- programs: lines `FILE NAME OPTIONS KINDS`: all or default, the kinds of artifact or any ----

programs=$work/programs
most=all
[ -z "$quick" ] || most=default
list() { # list OPTIONS FOLDER.. : those of the repository
    options=$1
    shift
    find "$@" -name '*.g' | sort | awk -v options="$options" '{ print $1, $1, options, "any" }'
}
list_all() {
    list all dsl/examples tests/golden >"$programs"
    cp "$programs" "$work/fused"
    list $most tests/explain bench >>"$programs"
    mkdir -p "$work/peers" "$work/random"
    if python3 tools/peers_sources.py "$work/peers"; then
        find "$work/peers" -name '*.g' | sort |
            awk -v options=$most '
                { name = $1; sub(/.*\//, "", name); print $1, "peers/" name, options, "any" }
            ' >>"$programs"
    else
        say "SKIPPED: the peers' workloads, which python3 prints"
        skipped=1
    fi
    [ -n "$quick" ] || cp "$programs" "$work/fused"
    list default tests/negative >>"$programs"
    build/tests/soak/soak --write "$work/random" "$n" "$seed"
    i=0
    while [ $i -lt "$n" ]; do
        name=random-$((seed + i)).g
        options=default
        [ $((i % 4)) = 0 ] && options=all
        echo "$work/random/$name random/$name $options any" >>"$programs"
        [ $((i % 10)) = 0 ] && echo "$work/random/$name random/$name default any" >>"$work/fused"
        i=$((i + 1))
    done

    # Programs for every template.
    find "$work/random" -name 'shapes-*.g' | sort | awk -v most=$most -v first="-$seed.g\$" '
        { name = $1; sub(/.*\//, "", name)
          print $1, "shapes/" name, name ~ first ? most : "default", "any" }
    ' >>"$programs"
}
if [ -n "$examples" ]; then
    list default dsl/examples >"$programs"
    : >"$work/fused"
else
    list_all
fi

# The revision's own kernels as blocks of the language; a program it refuses has none.
write_blocks() { # write_blocks KEY FILE NAME OPTIONS TARGET KIND
    blocks=$base/blocks/$1-$5
    if [ ! -f "$blocks.never.g" ]; then
        build/same_compile "$old" "$2" "$3" "$5" fused default >"$blocks.kernel.g" 2>/dev/null ||
            : >"$blocks.kernel.g"
        sed 's/^  kernel [^ ]* {$/  fuse must {/' "$blocks.kernel.g" >"$blocks.must.g"
        sed 's/^  kernel [^ ]* {$/  fuse never {/' "$blocks.kernel.g" >"$blocks.never.g"
    fi
    [ -s "$blocks.kernel.g" ] || return 0
    for block in kernel must never; do
        echo "$blocks.$block.g blocks/$(basename "$3" .g).$5.$block.g $4 $6"
    done
}

key() { # puts the hash of each program's text ahead of its line
    cut -d' ' -f1 "$1" | xargs -r sha256sum | awk '{ print substr($1, 1, 16) }' | paste -d' ' - "$1"
}
key "$work/fused" >"$work/fused.keyed"
while read -r sum file name options _; do
    [ -z "$quick" ] || options=default
    write_blocks "$sum" "$file" "$name" "$options" sm_80 ptx
    write_blocks "$sum" "$file" "$name" "$options" cpu obj
done <"$work/fused.keyed" >>"$programs"
flock -u 9

# ---- jobs: lines `KEY:NAME:TARGET:KIND:OPTION FILE` ----

build/same_compile "$old" --targets >"$work/targets"
few='sm_80|sm_90a|cpu'
[ -z "$examples" ] || few="$few|cpu-v4"
[ -z "$quick" ] || sed -i -n -E "/^($few) /p" "$work/targets"
key "$programs" | awk -v targets="$work/targets" '
    BEGIN { while ((getline line < targets) > 0) { sub(/ /, ":", line); target[++n] = line } }
    { n_options = split($4 == "all" ? "default no-fuse fast rewrite" : "default", option, " ")
      for (t = 1; t <= n; t++)
          for (o = 1; o <= n_options; o++)
              if ($5 == "any" || target[t] ~ ":" $5 "$")
                  print $1 ":" $3 ":" target[t] ":" option[o], $2 }
' | awk -v only="${ONLY-}" '$1 ~ only' >"$work/jobs"

# What the revision has not written yet. Lines go to the end of one file, whoever writes them.
[ -s "$base/results" ] ||
    echo "# job, status, bytes, hash of the artifact, hash of the messages" >"$base/results"
awk 'NR == FNR { have[$1] = 1; next } !($1 in have)' "$base/results" "$work/jobs" >"$work/missing"
if [ -s "$work/missing" ]; then
    say "$(wc -l <"$work/missing") artifacts of $revision are not in $base yet: compiling them"
    build/same_compile "$old" "$jobs" "$base/results" <"$work/missing" || true
fi
cp "$base/results" "$work/old"

# ---- the program: lines as those of artifacts; its output is the artifact ----

run='^(dsl/examples|tests/golden|tests/negative)/[^ ]*'
run_program() { # run_program FUSEC
    grep -oE "$run" "$programs" | sort -u | while read -r file; do
        for target in sm_80:ptx cpu:obj; do
            suffix=ptx status=0
            [ $target = sm_80:ptx ] || suffix=o
            "$1" "$file" --target=${target%:*} -o "$work/made.$suffix" \
                >"$work/stdout" 2>"$work/stderr" || status=$?
            cksum <"$work/stdout" >"$work/sum"
            read -r sum bytes <"$work/sum"
            echo "run:$file:$target:program $status $bytes $sum $(cksum <"$work/stderr" | cut -d' ' -f1)"
        done
    done
}
say "running both programs"
run_program "${old%/*}/fusec" >>"$work/old"
run_program "${new%/*}/fusec" >"$work/new"
sed -nE 's/^(run:([^:]*):[^ ]*) .*/\1 \2/p' "$work/old" >"$work/runs"

# ---- the new compiler, and the comparison ----

n_programs=$(cut -d' ' -f2 "$work/jobs" | sort -u | wc -l)
say "compiling $(wc -l <"$work/jobs") artifacts of $n_programs programs"
build/same_compile "$new" "$jobs" "$work/new" <"$work/jobs" || true

# The rows of what the revision does not have yet. Another build of this tree has all.
while IFS='	' read -r commit row; do
    case $commit in '#'* | '') continue ;; esac
    [ ! -f "$revision" ] || continue
    git merge-base --is-ancestor "$commit" "$id" 2>/dev/null || printf '%s\t%s\n' "$commit" "$row"
done <tests/same/exceptions.txt >"$work/exceptions"

# Lines of a pattern, a tab and a file: the programs whose text an exception names.
cut -f2 "$work/exceptions" | sed -n 's/^text://p' | while IFS= read -r pattern; do
    cut -d' ' -f2 "$work/jobs" | sort -u | xargs grep -lE "$pattern" | while read -r file; do
        printf '%s\t%s\n' "$pattern" "$file"
    done
done >"$work/texts"

# Lines `FILE NAME TARGET KIND OPTION WHAT..`, headed by `exception` or `differs`.
awk -v exceptions="$work/exceptions" -v texts="$work/texts" '
    BEGIN {
        FS = "\t"
        while ((getline < exceptions) > 0)
            if (NF >= 5) {
                program[++n] = "^(" $2 ")$"; target[n] = "^(" $3 ")$"
                text[n] = $2 ~ /^text:/ ? substr($2, 6) : ""
                covers_all[n] = $4 != "messages"
            }
        while ((getline < texts) > 0) has[$1, $2] = 1
        FS = " "
    }
    FILENAME ~ /\/old$/ { old[$1] = $2 " " $3 " " $4; old_said[$1] = $5; next }
    FILENAME ~ /\/new$/ { new[$1] = $2 " " $3 " " $4; new_said[$1] = $5; next }
    {
        what = ""
        if (!($1 in old)) what = "has no result by the revision"
        else if (!($1 in new)) what = "has no result by this tree"
        else {
            split(old[$1], a, " "); split(new[$1], b, " ")
            if (a[1] != b[1]) what = "status " a[1] " became " b[1]
            else if (a[2] != b[2]) what = "artifact of " a[2] " bytes became one of " b[2]
            else if (a[3] != b[3]) what = "bytes of the artifact"
            if (old_said[$1] != new_said[$1]) what = what (what ? ", " : "") "messages"
        }
        if (what == "") next
        split($1, id, ":")
        head = "differs"
        for (i = 1; i <= n && what !~ /no result/; i++)
            if ((text[i] ? (text[i], $2) in has : id[2] ~ program[i]) &&
                id[3] ":" id[4] ":" id[5] ~ target[i] && (covers_all[i] || what == "messages"))
                head = "exception"
        print head, $2, id[2], id[3], id[4], id[5], what
    }
' "$work/old" "$work/new" "$work/jobs" "$work/runs" >"$work/differing"

differing=$(grep -c '^differs ' "$work/differing" || true)
excepted=$(grep -c '^exception ' "$work/differing" || true)
compared=$(cat "$work/jobs" "$work/runs" | wc -l)
i=0
awk '$1 == "differs" && !shown[$3]++ && n++ < 10' "$work/differing" >"$work/first"
while read -r _ file name target kind option what; do
    i=$((i + 1))
    others=$(($(grep -c "^differs [^ ]* $name " "$work/differing") - 1))
    echo "$name for $target, $kind, $option: $what$([ $others = 0 ] || echo "; $others more of it")"
    if [ "$option" = program ]; then
        echo "    again: fusec $file --target=$target, by ${old%/*}/fusec and ${new%/*}/fusec"
        continue
    fi
    for side in old new; do
        [ $side = old ] && library=$old || library=$new
        build/same_compile "$library" "$file" "$name" "$target" "$kind" "$option" \
            >"$work/$i.$side" 2>"$work/$i.$side.messages" 9>&- || true
    done
    echo "    diff $work/$i.old $work/$i.new; diff $work/$i.old.messages $work/$i.new.messages"
    echo "    again: build/same_compile $new $file $name $target $kind $option"
done <"$work/first"
[ "$differing" = 0 ] || echo "all of them: grep ^differs $work/differing"
say "$n_programs programs, $compared artifacts and outputs compared with $revision," \
    "$differing differing, $excepted differing as tests/same/exceptions.txt says;" \
    "$skipped skipped; $(($(date +%s) - begin)) s"
[ "$differing" = 0 ] && [ "$compared" -gt 0 ]
