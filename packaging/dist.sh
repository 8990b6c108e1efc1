#!/bin/sh
# Makes build/fusec-VERSION-x86_64-linux.tar.gz, an installation that runs wherever it is unpacked.
# The same tree gives the same bytes. dist.sh VERSION
set -eu
name=fusec-$1-x86_64-linux
work=build/dist
rm -rf $work
sh packaging/install.sh "$1" "$work/$name" >/dev/null
rm "$work/$name/share/fusec/installed"
ln -s share/doc/fusec/LICENSE "$work/$name/LICENSE"
sh packaging/docs.sh "$1" packaging/README.md.in README.md build/package/files >"$work/$name/README.md"
sh packaging/needs.sh "$work/$name"
date=$(sed -n 's/^## \[[0-9.]*\] - \([0-9-]*\).*/\1/p' CHANGELOG.md | head -1)
tar -C $work --sort=name --owner=0 --group=0 --numeric-owner --mode=go+u-w \
    --mtime="${date:-2026-01-01} 00:00Z" -cf "$work/$name.tar" "$name"
gzip -n -6 "$work/$name.tar"
mv "$work/$name.tar.gz" "build/$name.tar.gz"
rm -rf $work
ls -sh "build/$name.tar.gz"
