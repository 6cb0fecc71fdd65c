#!/bin/sh
# Builds the fuzzer with clang and runs it: tests/fuzz/run.sh FOLDER [libFuzzer's options].
# What it finds beyond the corpus is kept in FOLDER.
set -e
cd "$(dirname "$0")/../.."
folder=$1
shift
mkdir -p "$folder/found"
core=cpp/spinney
if [ ! -x "$folder/fuzz_forest_state" ]; then
  ${CXX:-clang++} -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=undefined -Icpp -o "$folder/fuzz_forest_state" \
    tests/fuzz/fuzz_forest_state.cpp $core/ensemble/forest_state.cpp \
    $core/ensemble/compact_tree.cpp $core/ensemble/forest_reader.cpp $core/ensemble/quantiles.cpp \
    $core/ensemble/preorder.cpp \
    $core/boosting/block_scorer.cpp $core/table/row_block.cpp $core/table/cut_search.cpp \
    $core/common/parallel.cpp -pthread
fi
exec "$folder/fuzz_forest_state" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
  -malloc_limit_mb=512 -artifact_prefix="$folder/" "$@" "$folder/found" \
  tests/fuzz/corpus/forest_state
