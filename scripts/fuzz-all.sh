#!/usr/bin/env bash
# Fuzzes every target for an equal share of SECONDS and stops at the first crash, hang or absurd allocation.
#
# usage: scripts/fuzz-all.sh SECONDS [JOBS] [TARGET...]
#
# JOBS: targets at a time (default 1). TARGET: only these. Needs a nightly compiler and cargo-fuzz. The corpus grows in
# fuzz/corpus, what fails lands in fuzz/artifacts, the logs in $FUZZ_LOGS (default fuzz/target/logs).
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -lt 1 ] || ! [[ $1 =~ ^[0-9]+$ ]]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0"
    exit 2
fi
seconds=$1
export JOBS=${2:-1}
shift $(($# < 2 ? $# : 2))
targets=("$@")
export FUZZ_LOGS=${FUZZ_LOGS:-$PWD/fuzz/target/logs}
mkdir -p "$FUZZ_LOGS"

nice cargo run --quiet -p testkit --example seed_corpus -- fuzz/corpus
nice cargo +nightly fuzz build -s none --release
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cargo +nightly fuzz list)
export SHARE=$((seconds * JOBS / ${#targets[@]}))
[ "$SHARE" -gt 0 ] || SHARE=1
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
export BINARIES=fuzz/target/$host/release

# fuzz_one TARGET: exit status 255 makes xargs stop.
fuzz_one() {
    mkdir -p "fuzz/corpus/$1" "fuzz/artifacts/$1"
    echo "$(date +%T) $1 for $SHARE s"
    nice "$BINARIES/$1" "fuzz/corpus/$1" -max_total_time="$SHARE" -timeout=20 -rss_limit_mb=1024 -malloc_limit_mb=256 -len_control=10 \
        -artifact_prefix="fuzz/artifacts/$1/" -print_final_stats=1 -reload=0 >"$FUZZ_LOGS/$1.log" 2>&1 && return
    echo "FAILED: $1, see $FUZZ_LOGS/$1.log" >&2
    tail -n 30 "$FUZZ_LOGS/$1.log" >&2
    return 255
}
export -f fuzz_one

status=0
printf '%s\n' "${targets[@]}" | xargs -P "$JOBS" -I{} bash -c 'fuzz_one {}' || status=1

echo
printf '| %-18s | %12s | %8s | %8s | %7s |\n' target executions edges features corpus
echo "|---|---|---|---|---|"
for target in "${targets[@]}"; do
    log=$FUZZ_LOGS/$target.log
    [ -e "$log" ] || continue
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    last=$(grep -aoE 'cov: [0-9]+ ft: [0-9]+ corp: [0-9]+' "$log" | tail -n 1)
    read -r _ edges _ features _ corpus <<<"$last"
    printf '| %-18s | %12s | %8s | %8s | %7s |\n' "$target" "${executions:-failed}" "${edges:-0}" "${features:-0}" "${corpus:-0}"
done
exit $status
