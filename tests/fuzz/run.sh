#!/bin/sh
# Builds a fuzzer with clang and runs it: tests/fuzz/run.sh TARGET FOLDER [libFuzzer's options].
# TARGET is forest_state or hnsw_state. FOLDER keeps the new inputs and the findings.
set -e
cd "$(dirname "$0")/../.."
target=$1
folder=$2
shift 2
core=cpp/spinney
case $target in
  forest_state)
    sources="$core/forest/*.cpp $core/serving/forest_reader.cpp $core/serving/quantiles.cpp \
      $core/serving/block_*.cpp $core/table/row_block.cpp \
      $core/table/cut_search.cpp" ;;
  hnsw_state)
    sources="$core/neighbors/hnsw*.cpp $core/neighbors/vector_*.cpp" ;;
  *)
    echo "unknown target $target; expected forest_state or hnsw_state" >&2
    exit 2 ;;
esac
mkdir -p "$folder/found"
if [ ! -x "$folder/fuzz_$target" ]; then
  # shellcheck disable=SC2086
  ${CXX:-clang++} -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=undefined -Icpp -Itests/fuzz -o "$folder/fuzz_$target" \
    "tests/fuzz/fuzz_$target.cpp" $sources $core/common/*.cpp -pthread
fi
exec "$folder/fuzz_$target" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
  -malloc_limit_mb=512 -artifact_prefix="$folder/" "$@" "$folder/found" \
  "tests/fuzz/corpus/$target"
