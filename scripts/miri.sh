#!/usr/bin/env bash
# Runs the memtable, the slab and the block cache, where the engine's own unsafe code is, and a brief life
# of a whole database under Miri, which finds undefined behaviour, data races and what only a weak order of memory brings about.
#
#     rustup toolchain install nightly --component miri
#     scripts/miri.sh [SEEDS] [SEEDS OF WHOLE DATABASES]
#
# Each seed is another interleaving of the threads; how long it takes grows with both numbers.
# LZ4's bindings, the other unsafe code, call C and are out of Miri's reach.
set -euo pipefail
cd "$(dirname "$0")/.."

races=${1:-64}
lives=${2:-24}
# Casts of integers to pointers are parking_lot's and arc-swap's; the clock of the machine is asked for the date.
export MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-disable-isolation"
miri() { cargo +nightly miri test --quiet --locked -p flagstone "$@"; }

echo "the memtable's tests and those of the slab and its pieces, once"
# Range deletions and the filter are safe code, and their tests are made for thousands of keys.
miri --lib -- memtable:: base::slab base::shared_piece --skip short_races \
    --skip memtable::range_deletes --skip memtable::tests::filters
echo "owners of a piece that let go of it at once, and threads that take pieces, $races interleavings"
MIRIFLAGS="$MIRIFLAGS -Zmiri-many-seeds=0..$races" \
    miri --lib -- base::shared_piece::tests::the_last base::shared_piece::tests::one_fills base::slab::tests::many_threads
echo "writers that insert side by side, $races interleavings"
MIRIFLAGS="$MIRIFLAGS -Zmiri-many-seeds=0..$races" miri --lib -- db::writing::pipeline::insertions
echo "one or two writers and two readers of a memtable, $races interleavings"
MIRIFLAGS="$MIRIFLAGS -Zmiri-many-seeds=0..$races" miri --lib -- memtable::tests::concurrent::short_races
echo "the block cache, $races interleavings"
miri --lib -- cache::tests::threads cache::tests::a_table_that_grows
MIRIFLAGS="$MIRIFLAGS -Zmiri-many-seeds=0..$races" miri --lib -- cache::tests::short_races
echo "the life of a database, $lives interleavings"
MIRIFLAGS="$MIRIFLAGS -Zmiri-many-seeds=0..$lives" miri --test brief_life
