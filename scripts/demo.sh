#!/usr/bin/env bash
# Stores a tree of real files, reads it back and compares, and shows space and speed. Needs no network once built.
#
# usage: scripts/demo.sh [DIR]
#
# Without DIR: up to 3,000 files, of this repository's crates and of the sources of their dependencies (or of /usr/share where
# there are none). Everything is written below a temporary directory, which is removed at the end; KEEP=1 keeps it.
set -euo pipefail

if [ $# -gt 1 ] || [ "${1:-}" = "--help" ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0"
    exit 2
fi
repository=$(cd "$(dirname "$0")/.." && pwd)
sources=${CARGO_HOME:-$HOME/.cargo}/registry/src
[ -d "$sources" ] || sources=/usr/share

say() { printf '\n== %s\n' "$*"; }
# "checksum  path" of every regular file below the given directories, in the order of paths.
sums() {
    for tree in "$@"; do (cd "$tree" && find . -type f -exec sha256sum {} +); done | LC_ALL=C sort -k 2
}

# Copies up to $2 files below directory $1, without what was built there.
sample() {
    (cd "$1" && find . -name target -prune -o -type f -readable -print | LC_ALL=C sort | awk -v most="$2" 'NR <= most' |
        tar --create --files-from=-) | tar --extract --directory "$work/source"
}

say "Building (the first time takes some minutes)"
cargo build --quiet --release --manifest-path "$repository/Cargo.toml" -p flagstone-cli
target=$(cargo metadata --quiet --format-version 1 --no-deps --manifest-path "$repository/Cargo.toml" |
    sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
flagstone=$target/release/flagstone

work=$(mktemp -d)
if [ -n "${KEEP:-}" ]; then
    echo "everything stays in $work"
else
    trap 'rm -rf "$work"' EXIT
fi
db=$work/db
if [ $# = 1 ]; then
    trees=("$(cd "$1" && pwd)")
else
    mkdir "$work/source"
    sample "$repository/crates" 1500
    sample "$sources" 1500
    trees=("$work/source")
fi

say "Storing every file below ${trees[*]}"
"$flagstone" import --db "$db" "${trees[@]}"

say "Reading ten files back, one by one"
# Names with a backslash or other unprintable bytes are escaped in a scan.
"$flagstone" scan --db "$db" --keys-only | sed '/\\/d' > "$work/keys"
total=$(wc -l < "$work/keys")
awk -v total="$total" 'int(NR * 10 / total) > int((NR - 1) * 10 / total)' "$work/keys" | while IFS= read -r key; do
    for tree in "${trees[@]}"; do
        if [ -f "$tree/$key" ]; then
            "$flagstone" get --db "$db" -- "$key" | cmp - "$tree/$key"
            echo "same: $key"
            break
        fi
    done
done

say "Compacting, then writing everything out again and comparing every file"
"$flagstone" compact --db "$db"
"$flagstone" export --db "$db" "$work/out"
sums "${trees[@]}" > "$work/before"
sums "$work/out" > "$work/after"
if ! diff "$work/before" "$work/after" > "$work/differences"; then
    echo "DIFFERENT (the source may have changed meanwhile):"
    head -n 20 "$work/differences"
    exit 1
fi
echo "$(wc -l < "$work/after") files are the same, byte for byte"

say "Space: source against database, in KiB"
du -sk --apparent-size "${trees[@]}"
du -sk --apparent-size "$db"
"$flagstone" stats --db "$db"

say "Checking every byte against its checksum"
"$flagstone" check --db "$db"
"$flagstone" verify --db "$db"

if command -v ldb > /dev/null; then
    say "RocksDB's own ldb reads the same keys"
    ldb --db="$db" checkconsistency
    ldb --db="$db" --hex idump --count_only 2>/dev/null | tail -n 1
else
    say "RocksDB's ldb is not installed (Debian package rocksdb-tools): skipped"
fi
