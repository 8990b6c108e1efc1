#!/bin/sh
# Installs what files.sh lists below FOLDER. install.sh VERSION FOLDER
# FOLDER/share/fusec/installed receives every file and folder that was made, for uninstall.sh. One
# that is there from an earlier version is added to, so that nothing is forgotten.
set -eu
version=$1 root=${2%/}
[ "$root" ] || { echo "install: PREFIX is empty" >&2 && exit 1; }
list=share/fusec/installed
tab=$(printf '\t')
made=$(mktemp)

# Whatever stops an installation, what it has made is known.
record() {
    if [ -s "$made" ]; then
        awk '!seen[$0]++' "$made" >"$root/$list.new" && mv -f "$root/$list.new" "$root/$list"
    fi
    rm -f "$made"
}
trap record EXIT
trap 'exit 1' HUP INT TERM

make_folder() { # make_folder PATH: and those above it, each recorded with a slash at its end
    [ ! -d "$root/$1" ] || return 0
    case $1 in */*) make_folder "${1%/*}" ;; esac
    install -d "$root/$1"
    echo "$1/" >>"$made"
}

# Copied under another name first: a program that is running is replaced, not written to.
put() { # put MODE SOURCE DESTINATION HOW
    install -m "$1" "$2" "$root/$3.new"
    case $4 in
    program) strip "$root/$3.new" ;;
    library) strip --strip-unneeded "$root/$3.new" ;;
    esac
    mv -f "$root/$3.new" "$root/$3"
}

install -d "$root"
make_folder "${list%/*}"
[ ! -f "$root/$list" ] || cat "$root/$list" >>"$made"
sh packaging/files.sh "$version" >build/package/files
while IFS=$tab read -r how what where; do
    make_folder "${where%/*}"
    echo "$where" >>"$made"
    case $how in
    link) ln -sfn "$what" "$root/$where" ;;
    program | library) put 755 "$what" "$where" "$how" ;;
    file) put 644 "$what" "$where" "$how" ;;
    page)
        sh packaging/docs.sh "$version" "$what" "$where" build/package/files >build/package/page
        put 644 build/package/page "$where" "$how"
        ;;
    *) echo "install: $where: no such way as $how" >&2 && exit 1 ;;
    esac
done <build/package/files
echo "installed fusec $version in $root"
