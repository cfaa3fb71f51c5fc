#!/usr/bin/env bash
# Makes databases with releases of RocksDB, as Maven serves them (org.rocksdb:rocksdbjni), and compares what Flagstone reads
# in them with what RocksDB read: as they are, and after Flagstone has verified, opened and compacted them.
#
# usage: scripts/releases.sh [--options DIRECTORY] [RELEASE...]
#
# Without RELEASE: every release from 5.0 on that the registry lists. --options writes each release's OPTIONS file to
# DIRECTORY/OPTIONS-RELEASE; fixtures/options has them from there. Needs a JDK of 11 or later, mvn, and flagstone
# (FLAGSTONE, or else target/release/flagstone). Everything else lies in WORK, by default a temporary directory.
set -euo pipefail
cd "$(dirname "$0")/.."

options=
if [ "${1:-}" = "--options" ]; then
    options=$(cd "$2" && pwd)
    shift 2
elif [ "${1:-}" = "--help" ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    exit 2
fi
flagstone=${FLAGSTONE:-target/release/flagstone}
[ -x "$flagstone" ] || { echo "$flagstone is missing: cargo build --release -p flagstone-cli" >&2; exit 2; }
work=${WORK:-}
if [ -z "$work" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work/jars"

# Every release that the registry lists, oldest first.
listed() {
    local local_repository
    local_repository=$(mvn -q -B help:evaluate -Dexpression=settings.localRepository -DforceStdout)
    mkdir -p "$work/list"
    cat >"$work/list/pom.xml" <<'POM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>flagstone</groupId>
  <artifactId>releases</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.rocksdb</groupId><artifactId>rocksdbjni</artifactId><version>[5.0,)</version></dependency>
  </dependencies>
</project>
POM
    mvn -q -B -f "$work/list/pom.xml" dependency:list-repositories >/dev/null
    sed -n 's:.*<version>\([0-9.]*\)</version>.*:\1:p' \
        "$local_repository"/org/rocksdb/rocksdbjni/maven-metadata-*.xml |
        grep -E '^([5-9]|[1-9][0-9])\.' | sort -V -u
}

# fetch RELEASE: the jar for this system alone where there is one, or else the one for all.
fetch() {
    local jar=$work/jars/rocksdbjni-$1.jar classifier
    [ -s "$jar" ] && return
    for classifier in :jar:linux64 ''; do
        rm -rf "$work/fetched"
        if mvn -q -B dependency:copy -Dartifact="org.rocksdb:rocksdbjni:$1$classifier" \
            -DoutputDirectory="$work/fetched" >"$work/jars/$1.log" 2>&1; then
            mv "$work/fetched"/*.jar "$jar"
            return
        fi
    done
    return 1
}

# make RELEASE DIRECTORY [PROPERTY]: the databases; what the release has and lacks is in DIRECTORY.made.
make() {
    rm -rf "$2"
    mkdir -p "$2"
    java -XX:ErrorFile="$work/crash" ${3:+"$3"} -cp "$work/jars/rocksdbjni-$1.jar" scripts/releases/MakeDatabases.java "$2" \
        >"$2.made" 2>&1
}

# same DATABASE EXPECTED WHEN: whether Flagstone prints what is expected.
same() {
    local error
    if ! "$flagstone" dump --db "$1" >"$work/dump" 2>"$work/error"; then
        error=$(grep -v 'warning:' "$work/error" | head -1)
        echo "    WRONG: $1 $3: ${error:-no reason was given}"
        return 1
    fi
    cmp -s "$work/dump" "$2" || { echo "    WRONG: $1 $3: other contents than $2"; return 1; }
    if grep -q 'not known' "$work/error"; then
        echo "    WRONG: $1 $3: $(head -1 "$work/error")"
        return 1
    fi
}

# compare DATABASE: what RocksDB made, as it is, and after Flagstone has written to it.
compare() {
    same "$1" "$1.expected" "as it is" || return 1
    for command in verify compact; do
        "$flagstone" "$command" --db "$1" >"$work/output" 2>"$work/error" ||
            { echo "    WRONG: $1: $command: $(tail -1 "$work/error")"; return 1; }
    done
    same "$1" "$1.expected" "compacted"
}

if [ $# -gt 0 ]; then releases=("$@"); else mapfile -t releases < <(listed); fi
right=0 wrong=0 not_served=0
for release in "${releases[@]}"; do
    if ! fetch "$release"; then
        echo "$release: not served"
        not_served=$((not_served + 1))
        continue
    fi
    directory=$work/$release
    is_right=yes
    # RocksDB 5.8 crashes when it lets go of partitioned filters.
    make "$release" "$directory" || make "$release" "$directory" -Dwithout=partitioned ||
        { tail -3 "$directory.made"; is_right=; }
    if [ -n "$options" ]; then
        cp "$(find "$directory/plain" -name 'OPTIONS-*' | sort | tail -1)" "$options/OPTIONS-$release"
    fi
    for expected in "$directory"/*.expected; do
        compare "${expected%.expected}" || is_right=
    done
    echo "$release: $([ -n "$is_right" ] && echo right || echo WRONG): $(sed -n 's/^made //p' "$directory.made" | tr '\n' ';')"
    sed -n 's/^without /    without /p' "$directory.made"
    if [ -n "$is_right" ]; then right=$((right + 1)); else wrong=$((wrong + 1)); fi
    [ -n "${WORK:-}" ] || rm -rf "$directory" "$directory.made"
done
echo "$right releases are right, $wrong wrong, $not_served not served"
[ "$wrong" = 0 ] && [ "$right" -gt 0 ]
