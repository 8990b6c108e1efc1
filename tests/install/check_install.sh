#!/bin/sh
# Builds outside programs against an installation in a temporary prefix and against the release,
# unpacked in a folder with a blank in its name; then looks at man pages, completions and syntax
# files, and uninstalls. check_install.sh TARBALL
# The last line is `N passed, N failed[, N skipped]`. Run by `make check-install`.
set -u
tarball=$1
here=$(dirname "$0")
MAKE=${MAKE:-make}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
unset LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH DESTDIR

check() { # check WHAT COMMAND...
    what=$1
    shift
    if ("$@") >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $what"
    else
        failed=$((failed + 1))
        echo "FAILED  $what"
        sed 's/^/        /' "$work/log" | tail -30
    fi
}

check_with() { # check_with PROGRAM WHAT COMMAND...: skipped where there is no such program
    if command -v "$1" >/dev/null; then
        shift
        check "$@"
    else
        skipped=$((skipped + 1))
        echo "SKIPPED $2 (no $1)"
    fi
}

# ---- bytes ----

same_elsewhere() { # the runtime, built in a folder with a longer path
    mkdir -p "$work/an other/place" && cp -r Makefile packaging runtime "$work/an other/place/" &&
        CCACHE_DISABLE=1 $MAKE --no-print-directory -C "$work/an other/place" -j"$(nproc)" \
            build/libfusert.a build/libfusert.so &&
        cmp build/libfusert.a "$work/an other/place/build/libfusert.a" &&
        cmp build/libfusert.so "$work/an other/place/build/libfusert.so"
}

# docs/RUNTIME.md says how large the runtime is: right to a tenth.
size_is_true() {
    said=$(sed -nE 's/.* it is about ([0-9]+) KB stripped.*/\1/p' docs/RUNTIME.md)
    is=$(($(wc -c <"$(echo "$root"/lib/libfusert.so.*.*)") / 1000))
    echo "RUNTIME.md says $said KB, the library has $is KB"
    [ $((is * 10)) -le $((said * 11)) ] && [ $((is * 10)) -ge $((said * 9)) ]
}

# ---- outside programs; ROOT is the prefix ----

flags() { # flags ROOT PACKAGES [--static]
    PKG_CONFIG_LIBDIR="$1/lib/pkgconfig" pkg-config ${3:-} --cflags --libs $2
}

c_shared() { # c_shared ROOT
    eval "cc -std=c11 -Wall -Wextra -Werror $here/c/main.c -o '$work/c_shared' \
        $(flags "$1" 'fusec fusert')" &&
        LD_LIBRARY_PATH="$1/lib" "$work/c_shared" &&
        LD_LIBRARY_PATH="$1/lib" ldd "$work/c_shared" | grep -F "libfusec.so.0 => $1/lib/"
}

c_static() { # c_static ROOT: no shared library at all
    eval "cc -std=c11 -Wall -Wextra $here/c/main.c -static -o '$work/c_static' \
        $(flags "$1" 'fusec fusert' --static)" &&
        "$work/c_static" && ! ldd "$work/c_static"
}

c_archives() { # c_archives ROOT: the archives alone, in a shared object of the user's
    eval "cc -std=c11 -shared -fPIC $here/c/main.c -o '$work/user.so' \
        $(flags "$1" fusert --static | sed 's/-lfusert/-l:libfusert.a/') -L'$1/lib' -lfusec" &&
        ! objdump -p "$work/user.so" | grep 'NEEDED.*fusert'
}

cmake_build() { # cmake_build ROOT LANGUAGES: in a copy, because the model is changed
    rm -rf "$work/cpp" && cp -r "$here/cpp" "$work/cpp" &&
        cmake -S "$work/cpp" -B "$work/cpp/build" "-DCMAKE_PREFIX_PATH=$1" "-DLANGUAGES=$2" \
            -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror' &&
        cmake --build "$work/cpp/build" &&
        "$work/cpp/build/consumer_shared" 2 && "$work/cpp/build/consumer_static" 2 &&
        ! ldd "$work/cpp/build/consumer_static" | grep fuse
}

cmake_rebuild() { # after cmake_build: a changed model is compiled again
    sed 's/2\.0/5.0/' "$here/cpp/shift.g" >"$work/cpp/shift.g" &&
        cmake --build "$work/cpp/build" && "$work/cpp/build/consumer_shared" 5 &&
        "$work/cpp/build/consumer_static" 5
}

cmake_refuses() { # cmake_refuses ROOT: a version that is not there
    mkdir -p "$work/newer" &&
        printf '%s\n' 'cmake_minimum_required(VERSION 3.17)' 'project(newer LANGUAGES NONE)' \
            'find_package(fusec 99 REQUIRED)' >"$work/newer/CMakeLists.txt" &&
        ! cmake -S "$work/newer" -B "$work/newer/build" "-DCMAKE_PREFIX_PATH=$1"
}

# ---- a model whose weights lie in a folder of their own; programs are started in another ----

weights_apart() { # weights_apart ROOT
    mkdir -p "$work/weights kept" "$work/started here" &&
        cp "$1"/share/fusec/examples/digits/weights.safetensors "$work/weights kept/"
}

weights_cmake() { # weights_cmake ROOT
    weights_apart "$1" && cmake -S "$here/weights" -B "$work/weights" "-DCMAKE_PREFIX_PATH=$1" \
        "-DMODEL=$1/share/fusec/examples/digits.g" \
        "-DWEIGHTS=$work/weights kept/weights.safetensors" &&
        cmake --build "$work/weights" && cd "$work/started here" && "$work/weights/digits"
}

weights_pkgconfig() { # weights_pkgconfig ROOT: the name recorded, and the error without
    weights_apart "$1" && eval "cc -std=c11 $here/weights/main.c -o '$work/read_digits' \
            $(flags "$1" fusert --static | sed 's/-lfusert/-l:libfusert.a/')" &&
        cd "$work/started here" &&
        "$1/bin/fusec" "$1/share/fusec/examples/digits.g" -o "$work/d.o" \
            "--weights=weights kept/weights.safetensors" && "$work/read_digits" "$work/d.o" &&
        "$1/bin/fusec" "$1/share/fusec/examples/digits.g" -o "$work/d.o" &&
        ! "$work/read_digits" "$work/d.o" 2>error.txt && grep 'weights_path of' error.txt &&
        "$1/bin/fusec" run "$work/d.o" --dim B=1 "--weights=$work/weights kept"
}

# ---- the release: nothing in its environment, and nothing of the project but what it brings ----

release="$work/a folder/$(basename "$tarball" .tar.gz)"
unpack() {
    mkdir -p "$work/a folder" "$work/elsewhere" && tar -C "$work/a folder" -xzf "$tarball" &&
        [ -x "$release/bin/fusec" ]
}

alone() { (cd "$work/elsewhere" && env -i PATH=/usr/bin:/bin "$release/bin/fusec" "$@"); }

release_compiles() { # every example, for both kinds of machine
    n=0
    for model in "$release"/share/fusec/examples/*.g; do
        name=$(basename "$model" .g)
        alone "$model" -o "$name.ptx" && alone "$model" -o "$name.o" || return 1
        n=$((n + 1))
    done
    [ $n -gt 0 ]
}

release_runs() { # release_runs MODEL ARGUMENTS...: from its source, and as a file that it made
    model=$release/share/fusec/examples/$1
    artifact=$work/elsewhere/$(basename "$1" .g).o
    shift
    alone "$model" -o "$artifact" && alone run "$model" --device=cpu "$@" >"$work/source.txt" &&
        alone run "$artifact" --device=cpu "$@" >"$work/artifact.txt" &&
        [ -s "$work/source.txt" ] && cmp "$work/source.txt" "$work/artifact.txt" &&
        alone verify "$model" --device=cpu "$@"
}

# digits.g with its weights, and the examples' own programs, built against the release.
release_reads_digits() {
    examples=$release/share/fusec/examples
    alone "$examples/digits.g" -o digits.o && cd "$work/elsewhere" || return 1
    for program in cpu_only count_right; do
        eval "cc -std=c11 -D_POSIX_C_SOURCE=200809L '$examples/embed/$program.c' \
            '$examples/embed/held_out.c' '$examples/embed/npy.c' -o $program \
            $(flags "$release" fusert)" || return 1
    done
    LD_LIBRARY_PATH=$release/lib ./cpu_only digits.o "$examples/digits" >right.txt &&
        alone run "$examples/digits.g" --device=cpu --input "x=@$examples/digits/images.npy" \
            --output p=@p.npy && ./count_right p.npy "$examples/digits/labels.npy" >>right.txt &&
        cat right.txt && awk '/ right: / { n++; if (!($(NF - 1) >= 97)) bad++ }
            END { exit n != 2 || bad > 0 }' right.txt
}

release_is_complete() {
    for part in LLVM jansson zlib zstd; do
        grep -qi copyright "$release/share/doc/fusec/licences/$part.txt" || return 1
    done
    cmp LICENSE "$release/LICENSE" && [ -z "$(find "$release" -xtype l)" ] &&
        ! grep -rlF "$(pwd)" "$release"
}

# Every link of every page leads to something that is there.
release_links() {
    n=0
    find "$release" -name '*.md' >"$work/pages"
    while IFS= read -r page; do
        grep -o '](\([^()]*\))' "$page" | sed 's/^](//; s/)$//; s/#.*//' |
            grep -vE '^(https?:.*)?$' | sort -u >"$work/links"
        while IFS= read -r target; do
            [ -e "${page%/*}/$target" ] || { echo "$page: there is no $target" && return 1; }
            n=$((n + 1))
        done <"$work/links"
    done <"$work/pages"
    echo "$n links" && [ $n -gt 20 ]
}

# The commands of its README, as printed, in a copy; each is one line.
release_commands() {
    cp -r "$release" "$work/copy" && cd "$work/copy" || return 1
    awk '/^```/ { inside = $0 == "```sh"; next } inside' README.md >"$work/commands"
    [ "$(wc -l <"$work/commands")" -ge 5 ] && cat "$work/commands" &&
        env -i PATH=/usr/bin:/bin sh -e "$work/commands" >"$work/said" && cat "$work/said" &&
        grep -q '^7: 100.0 %' "$work/said" && ! grep -nE '(^|[ `])make( |`|$)' README.md |
        grep -v 'source tree'
}

# ---- texts ----

options() { "$root/bin/fusec" --help | grep -oE -- '--[a-z-]+' | sort -u; }

names_options() { # names_options FILE PREFIX: the file names each option, written PREFIXname
    for option in $(options); do
        name=$(printf '%s' "${option#--}" | sed "s/-/$3/g")
        grep -qF -- "$2$name" "$1" || { echo "$option is not in $1" && return 1; }
    done
}

bash_completes() { # bash_completes WANTED WORD...: the last word is completed to the words wanted
    bash -s "$root" "$@" <<'SCRIPT'
. "$1/share/bash-completion/completions/fusec"
compopt() { :; }
wanted=$2
PATH=$1/bin:$PATH
COMP_WORDS=("${@:3}") COMP_CWORD=$(($# - 3))
_fusec fusec "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
echo "${COMPREPLY[*]}"
[ "${COMPREPLY[*]}" = "$wanted" ]
SCRIPT
}

fish_completes() { # fish_completes WANTED LINE: what it offers first
    PATH=$root/bin:$PATH fish --no-config -c \
        "source $root/share/fish/vendor_completions.d/fusec.fish; complete -C '$2'" >"$work/fish" &&
        cut -f1 "$work/fish" | head -1 | grep -xe "$1"
}

man_is_clean() { # man_is_clean PAGE
    LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -l "$1" >"$work/page" 2>"$work/warnings" &&
        ! grep . "$work/warnings" && grep -q . "$work/page"
}

# The words of the language, from the lexer and the table of dtypes.
language_words() {
    sed -n 's/^"\([a-z]*\)"  *{ TOKEN.*/\1/p' compiler/front/lex.l
    sed -n 's/^X([A-Z0-9]*, [0-9]*, "\([a-z0-9]*\)".*/\1/p' runtime/include/frt_dtype.def
}

knows_words() { # knows_words FILE
    [ "$(language_words | wc -l)" -gt 10 ] || return 1
    for word in $(language_words); do
        grep -qw "$word" "$1" || { echo "$word is not in $1" && return 1; }
    done
}

is_json() { # is_json FILE
    printf 'file(READ "%s" text)\nstring(JSON n LENGTH "${text}")\n' "$1" >"$work/json.cmake" &&
        cmake -P "$work/json.cmake"
}

# ---- removal ----

staged() { # DESTDIR goes before PREFIX and into no file
    $MAKE --no-print-directory install PREFIX=/opt/fusec "DESTDIR=$work/stage" &&
        [ -x "$work/stage/opt/fusec/bin/fusec" ] && ! grep -rIlF "$work/stage" "$work/stage"
}

removed() { # what was there before stays, whatever was installed goes
    echo mine >"$root/share/fusec/examples/mine.g" && mkdir -p "$root/bin" "$root/etc" &&
        $MAKE --no-print-directory uninstall "PREFIX=$root" DESTDIR= &&
        [ "$(cd "$root" && find . ! -type d)" = ./share/fusec/examples/mine.g ] &&
        [ -d "$root/etc" ] && [ ! -d "$root/lib" ]
}

removed_whole() {
    $MAKE --no-print-directory uninstall PREFIX=/opt/fusec "DESTDIR=$work/stage" &&
        [ -z "$(find "$work/stage/opt/fusec" -mindepth 1)" ] &&
        ! $MAKE --no-print-directory uninstall PREFIX=/opt/fusec "DESTDIR=$work/stage"
}

root=$work/prefix
check 'install' $MAKE --no-print-directory install "PREFIX=$root" DESTDIR=
check 'install again over it' $MAKE --no-print-directory install "PREFIX=$root" DESTDIR=
check 'install to a staging folder' staged
check 'the program and the libraries need a C library only' sh packaging/needs.sh "$root"
check 'the program and the libraries are hardened' \
    sh packaging/hardened.sh "$root" build/libfusec.a
check 'two folders give the same bytes' same_elsewhere
check 'the manual tells the size of the runtime' size_is_true
check 'C with pkg-config, shared' c_shared "$root"
check 'C with pkg-config --static' c_static "$root"
check 'C, the runtime inside a shared object' c_archives "$root"
check 'C++ with CMake and a compiled model' cmake_build "$root" CXX
check 'CMake compiles a changed model again' cmake_rebuild
check 'CMake refuses another version' cmake_refuses "$root"
check 'C with CMake, a model and weights of another folder' weights_cmake "$root"
check 'C with pkg-config, the same' weights_pkgconfig "$root"

check 'unpack the release' unpack
check 'the release needs a C library only' sh packaging/needs.sh "$release"
check 'the release is hardened' sh packaging/hardened.sh "$release" build/libfusec.a
check 'the release carries the notices, and no path of its build' release_is_complete
check 'no link of the release is broken' release_links
check 'the commands of its README work as printed' release_commands
check 'the release compiles every example' release_compiles
check 'the release runs pointwise.g' release_runs pointwise.g --dim N=5
check 'the release runs softmax.g' release_runs softmax.g --dim B=3 --dim C=7
check 'the release reads digits, embedded and by command' release_reads_digits
check 'the release, C with pkg-config, shared' c_shared "$release"
check 'the release, C with pkg-config --static' c_static "$release"
check 'the release, C++ with CMake and a compiled model' cmake_build "$release" 'C;CXX'

share=$root/share
check 'the man page names every option' names_options "$share/man/man1/fusec.1" '\fB\-\-' '\\-'
check 'bash completion names every option' \
    names_options "$share/bash-completion/completions/fusec" -- -
check 'zsh completion names every option' names_options "$share/zsh/site-functions/_fusec" -- -
check 'fish completion names every option' \
    names_options "$share/fish/vendor_completions.d/fusec.fish" '-l ' -
check 'bash completes a command' bash_completes verify fusec ver
check 'bash completes an option' bash_completes '--list-emit --list-targets' fusec --lis
check 'bash completes the option of a command' bash_completes '--runs=' fusec bench model.g --ru
check 'bash offers no option that a command lacks' bash_completes '' fusec inspect --em
check 'bash completes a kind' bash_completes ptx fusec model.g --emit = pt
check 'bash completes a target' bash_completes 'sm_90 sm_90a' fusec model.g --target = sm_90
check_with zsh 'zsh reads its completion' zsh -n "$share/zsh/site-functions/_fusec"
check_with fish 'fish reads its completion' \
    fish --no-config -n "$share/fish/vendor_completions.d/fusec.fish"
check_with fish 'fish completes an option' fish_completes --device 'fusec run --dev'
check_with fish 'fish completes a kind' fish_completes --emit=ptx 'fusec model.g --emit=pt'
check_with man 'fusec(1) is clean' man_is_clean "$share/man/man1/fusec.1"
check_with man 'fusec(5) is clean' man_is_clean "$share/man/man5/fusec.5"
check 'the syntax for vim knows every word' knows_words editors/vim/syntax/fusec.vim
check 'the syntax for VS Code knows every word' \
    knows_words editors/vscode/syntaxes/fusec.tmLanguage.json
for json in editors/vscode/*.json editors/vscode/syntaxes/*.json; do
    check "$json is JSON" is_json "$json"
done
check 'uninstall leaves what is not ours' removed
check 'uninstall from a staging folder, once' removed_whole

[ $skipped = 0 ] && echo "$passed passed, $failed failed" ||
    echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed -gt 0 ]
