#!/usr/bin/env bash
# Runs `flagstone bench` and RocksDB's db_bench with the same flags in turns (A B B A ...) and prints a Markdown table
# of the median operations per second and the median of the pairs' ratios.
#
# Usage: scripts/compare-with-db_bench.sh [PAIRS] [DIRECTORY]
# PAIRS: runs of each engine for each row (default 5). DIRECTORY: where the databases go (default: a temporary one).
# Needs db_bench (Debian package rocksdb-tools) and a release build: cargo build --release -p flagstone-cli
set -euo pipefail
cd "$(dirname "$0")/.."

pairs=${1:-5}
directory=${2:-$(mktemp -d)}
mkdir -p "$directory"
flagstone=${FLAGSTONE:-target/release/flagstone}
num=${NUM:-2000000}
reads=${READS:-500000}
command -v db_bench >/dev/null || { echo "db_bench is missing: install rocksdb-tools" >&2; exit 2; }
[ -x "$flagstone" ] || { echo "$flagstone is missing: cargo build --release -p flagstone-cli" >&2; exit 2; }

common="--key_size=16 --num=$num --bloom_bits=10 --cache_size=2147483648 --compression_type=none --threads=1"

# run ENGINE DATABASE FLAGS...: runs one engine, prints its whole output.
run() {
    local engine=$1 database=$2
    shift 2
    if [ "$engine" = flagstone ]; then
        "$flagstone" bench --db="$database" "$@" 2>/dev/null
    else
        db_bench --db="$database" "$@" 2>/dev/null
    fi
}

# ops NAME: the operations per second of the benchmark NAME in the output read.
ops() { awk -v name="$1" '$1 == name { for (i = 2; i <= NF; i++) if ($i == "ops/sec") print $(i - 1) }' | head -n 1; }

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# compare NAME SIZE FRESH FLAGS...: one row. FRESH: every run starts with an empty directory.
compare() {
    local name=$1 size=$2 fresh=$3
    shift 3
    : >"$directory/flagstone.txt"
    : >"$directory/rocksdb.txt"
    for ((pair = 0; pair < pairs; pair++)); do
        local order="flagstone rocksdb"
        ((pair % 2)) && order="rocksdb flagstone"
        for engine in $order; do
            local database=$directory/$engine-$size
            [ "$fresh" = yes ] && database=$directory/$engine-fresh && rm -rf "$database"
            run "$engine" "$database" --value_size="$size" --benchmarks="$name" "$@" | ops "$name" >>"$directory/$engine.txt"
            [ "$fresh" = yes ] && rm -rf "$database"
        done
    done
    local ratios
    ratios=$(paste "$directory/flagstone.txt" "$directory/rocksdb.txt" | awk '{ print $1 / $2 }')
    printf '| %s | %s | %.0f | %.0f | **%.2f** | %.2f - %.2f |\n' "$name" "$size" \
        "$(median <"$directory/flagstone.txt")" "$(median <"$directory/rocksdb.txt")" "$(median <<<"$ratios")" \
        "$(sort -n <<<"$ratios" | head -n 1)" "$(sort -n <<<"$ratios" | tail -n 1)"
}

echo "| benchmark | value bytes | flagstone ops/s | RocksDB ops/s | ratio (median) | lowest - highest |"
echo "|---|---|---|---|---|---|"
for size in 100 800; do
    # Each workload of writes in an empty directory; overwrite has a database of its own to overwrite.
    compare fillseq $size yes $common
    compare fillrandom $size yes $common
    for engine in flagstone rocksdb; do
        rm -rf "$directory/$engine-$size"
        run "$engine" "$directory/$engine-$size" --value_size=$size --benchmarks=fillrandom,compact $common >/dev/null
    done
    reading="$common --use_existing_db --reads=$reads"
    compare readrandom $size no $reading
    compare seekrandom $size no $reading
    compare readseq $size no $common --use_existing_db
    compare multireadrandom $size no $reading --batch_size=32
    compare readwhilewriting $size no $common --use_existing_db --duration=5
    compare overwrite $size no $common --use_existing_db
    rm -rf "$directory"/flagstone-$size "$directory"/rocksdb-$size
done
