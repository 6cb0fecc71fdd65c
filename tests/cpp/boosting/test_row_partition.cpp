#include <algorithm>
#include <numeric>
#include <vector>

#include "spinney/boosting/histogram.h"
#include "spinney/boosting/row_partition.h"
#include "spinney/common/random.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::boosting;
using common::Row;

namespace {

// Each row has three bytes; the second is its code. Codes below the limit go left.
struct Codes {
  std::vector<std::uint8_t> codes;
  CodeSides sides;

  Codes(std::size_t n, std::size_t limit) {
    common::Stream stream(3, common::Purpose::rows, n + limit);
    codes.resize(3 * n);
    for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(stream.below(256));
    sides = {codes.data() + 1, 3, true};
    std::fill_n(sides.left.begin(), limit, std::uint8_t{1});
  }

  bool goes_left(Row row) const { return sides.left[codes[3 * row + 1]] != 0; }
};

}  // namespace

TEST(rows_are_partitioned_in_place) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{200}, std::size_t{16'384},
                              std::size_t{16'385}, std::size_t{32'768}, std::size_t{70'001}}) {
    for (const std::size_t limit :
         {std::size_t{0}, std::size_t{20}, std::size_t{200}, std::size_t{256}}) {
      const Codes codes(2 * n, limit);
      for (const bool are_all : {true, false}) {
        std::vector<Row> rows(n);
        for (std::size_t i = 0; i < n; ++i) rows[i] = static_cast<Row>(are_all ? i : 2 * i);
        std::vector<Row> expected = rows;
        const auto middle = std::stable_partition(expected.begin(), expected.end(),
                                                  [&](Row row) { return codes.goes_left(row); });
        if (are_all) std::fill(rows.begin(), rows.end(), Row{7});  // not written yet
        std::vector<Row> again = rows;
        const std::size_t n_left = partition_in_place(codes.sides, rows.data(), n, are_all, 1);
        CHECK(n_left == static_cast<std::size_t>(middle - expected.begin()));
        partition_in_place(codes.sides, again.data(), n, are_all, 3);
        CHECK(again == rows);
        if (n <= 16'384) CHECK(rows == expected);  // stable for small n
        std::sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n_left));
        std::sort(rows.begin() + static_cast<std::ptrdiff_t>(n_left), rows.end());
        CHECK(rows == expected);
      }
    }
  }
}

// Each block of rows is on one side as a whole.
TEST(sides_of_blocks_are_joined) {
  constexpr std::size_t block = 16'384;
  for (unsigned block_sides = 0; block_sides < 32; ++block_sides) {
    const std::size_t n = 5 * block - 100;
    std::vector<std::uint8_t> codes(n);
    for (std::size_t i = 0; i < n; ++i) codes[i] = (block_sides >> (i / block)) & 1;
    CodeSides sides{codes.data(), 1, true};
    sides.left[1] = 1;
    std::vector<Row> rows(n);
    const std::size_t n_left = partition_in_place(sides, rows.data(), n, true, 1);
    CHECK(n_left == static_cast<std::size_t>(std::count(codes.begin(), codes.end(), 1)));
    for (std::size_t i = 0; i < n; ++i) CHECK((codes[rows[i]] != 0) == (i < n_left));
    std::sort(rows.begin(), rows.end());
    for (std::size_t i = 0; i < n; ++i) CHECK(rows[i] == i);
  }
}

TEST(partition_to_other_memory_moves_the_sums) {
  constexpr std::size_t n = 50'000;
  const Codes codes(n, 90);
  std::vector<Row> all(n);
  std::iota(all.begin(), all.end(), Row{0});
  std::vector<Row> elsewhere(n);
  std::vector<PackedSum> sums(n);
  std::iota(sums.begin(), sums.end(), PackedSum{-5});
  std::vector<PackedSum> moved(n);
  std::vector<std::uint8_t> flags(n);
  const std::size_t n_left = partition_rows(codes.sides, {all.data(), sums.data()}, n, 2,
                                            flags.data(), {elsewhere.data(), moved.data()});
  const auto middle =
      std::stable_partition(all.begin(), all.end(), [&](Row row) { return codes.goes_left(row); });
  CHECK(n_left == static_cast<std::size_t>(middle - all.begin()));
  CHECK(all == elsewhere);
  for (std::size_t i = 0; i < n; ++i) CHECK(moved[i] == PackedSum{-5} + elsewhere[i]);
}

TEST(sums_stored_by_row_equal_those_of_a_list) {
  constexpr std::size_t n = 40'000;
  constexpr std::size_t n_blocks = (n + loss::row_block - 1) / loss::row_block;
  common::Stream stream(9, common::Purpose::rows, 1);
  std::vector<float> first(n);
  std::vector<float> second(n);
  std::vector<double> weights(n);
  for (std::size_t i = 0; i < n; ++i) {
    first[i] = static_cast<float>(stream.uniform() - 0.5);
    second[i] = static_cast<float>(stream.uniform());
    weights[i] = stream.uniform() + 0.1;
  }
  std::vector<Row> some;
  for (std::size_t i = 0; i < n; ++i) {
    if (stream.below(3) > 0) some.push_back(static_cast<Row>(i));
  }
  std::vector<Row> all(n);
  std::iota(all.begin(), all.end(), Row{0});
  std::vector<double> times(n);
  for (std::size_t i = 0; i < n; ++i) times[i] = static_cast<double>(stream.below(4));
  const RowWeights none;
  for (const RowWeights& of_rows :
       {none, RowWeights{weights.data(), false}, RowWeights{times.data(), true, true}}) {
    for (const std::vector<Row>* const rows : {&all, &some}) {
      const std::size_t n_rows = rows->size();
      std::vector<PackedSum> listed(n_rows);
      const PackedScale scale = pack_gradients({first.data(), second.data()}, of_rows, rows->data(),
                                               n_rows, false, 2, {}, listed.data());
      std::vector<PackedSum> expected(n);
      for (std::size_t i = 0; i < n_rows; ++i) expected[(*rows)[i]] = listed[i];

      std::vector<float> own_first = first;  // pack_at_rows sets other rows to zero
      std::vector<float> own_second = second;
      std::vector<PackedSum> placed(n);
      const PackedScale same = pack_at_rows({own_first.data(), own_second.data()}, of_rows,
                                            rows->data(), n_rows, n, false, 2, {}, placed.data());
      CHECK(placed == expected);
      CHECK(same.gradient == scale.gradient && same.hessian == scale.hessian);

      common::LargeArray<PackedSum> memory(n_blocks * loss::row_block);
      const loss::Derivatives blocks{reinterpret_cast<float*>(memory.data()), nullptr, true};
      for (std::size_t begin = 0; begin < n; begin += loss::row_block) {
        const std::size_t count = std::min(loss::row_block, n - begin);
        std::copy_n(first.data() + begin, count, blocks.from(begin).gradient);
        std::copy_n(second.data() + begin, count, blocks.from(begin).hessian);
      }
      pack_at_rows(blocks, of_rows, rows->data(), n_rows, n, false, 2, {}, memory.data());
      CHECK(std::equal(expected.begin(), expected.end(), memory.data()));
    }
  }
}

TEST(integer_weights_equal_repeated_rows) {
  constexpr std::size_t n = 20'000;
  common::Stream stream(10, common::Purpose::rows, 1);
  std::vector<float> first(n);
  std::vector<float> second(n);
  std::vector<double> times(n);
  std::vector<float> repeated_first;
  std::vector<float> repeated_second;
  std::vector<Row> of_row;
  for (std::size_t i = 0; i < n; ++i) {
    first[i] = static_cast<float>(stream.uniform() - 0.5);
    second[i] = static_cast<float>(stream.uniform());
    times[i] = static_cast<double>(stream.below(4));
    if (times[i] == 0) first[i] = second[i] = 9;  // larger than any value with weight
    for (int k = 0; k < static_cast<int>(times[i]); ++k) {
      repeated_first.push_back(first[i]);
      repeated_second.push_back(second[i]);
      of_row.push_back(static_cast<Row>(i));
    }
  }
  const std::size_t n_repeated = of_row.size();
  const Workers workers{nullptr, n_repeated};
  std::vector<PackedSum> weighted(n);
  const PackedScale scale =
      pack_gradients({first.data(), second.data()}, {times.data(), true, true}, nullptr, n, false,
                     2, workers, weighted.data());
  std::vector<PackedSum> repeated(n_repeated);
  const PackedScale same = pack_gradients({repeated_first.data(), repeated_second.data()}, {},
                                          nullptr, n_repeated, false, 2, workers, repeated.data());
  CHECK(same.gradient == scale.gradient && same.hessian == scale.hessian);
  CHECK(same.most == scale.most);
  CHECK(same.largest_gradient == scale.largest_gradient);
  std::vector<PackedSum> sums(n);
  for (std::size_t i = 0; i < n_repeated; ++i) sums[of_row[i]] += repeated[i];
  CHECK(sums == weighted);
}
