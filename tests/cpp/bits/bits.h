// Hashes of fits and predictions. `spinney_bits` prints one line per fit, "name hash". Two builds
// agree to the bit if they print the same lines; tests/compare_bits.py compares them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <type_traits>
#include <vector>

#include "spinney/criterion/criterion.h"
#include "spinney/forest/tree.h"
#include "spinney/table/table.h"

namespace bits {

inline constexpr int n_threads = 2;

// FNV-1a of 64 bits. All NaN are equal: processors differ in the sign of the NaN they compute.
class Hash {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  void add(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      const auto wide = static_cast<double>(value);
      add_bits(std::isnan(wide) ? 0x7ff8000000000000ULL : std::bit_cast<std::uint64_t>(wide));
    } else {
      add_bits(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
    }
  }
  template <class T>
    requires requires(const T& values) { values.begin(); }
  void add(const T& values) {
    add(values.size());
    for (const auto value : values) add(value);
  }
  std::uint64_t value() const { return hash_; }

 private:
  void add_bits(std::uint64_t bits) {
    for (int i = 0; i < 8; ++i) hash_ = (hash_ ^ (bits >> (8 * i) & 0xff)) * 0x100000001b3ULL;
  }

  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

// Prints the hash of the values that `fit` returns or adds to the hash.
template <class Fit>
void print(const std::string& name, const Fit& fit) {
  std::cout << name << ' ';
  try {
    Hash hash;
    fit(hash);
    std::cout << std::hex << hash.value() << std::dec << '\n';
  } catch (const std::exception& error) {
    std::cout << "error: " << error.what() << '\n';
  }
}

void add_tree(Hash& hash, const spinney::forest::Tree& tree);

// Rows of numbers with ties and missing values, a column of few values and a categorical column,
// and targets of all kinds.
struct Data {
  std::size_t n_rows;
  std::size_t n_numbers = 7;           // numeric columns; the categorical column follows
  std::vector<double> x;               // row-major
  std::vector<float> narrow;           // the same in float32
  std::vector<std::int32_t> category;  // of 9, -1 if missing
  std::vector<std::uint32_t> labels;   // three classes
  std::vector<double> classes;         // the same as numbers
  std::vector<double> sides;           // two classes
  std::vector<double> y;               // any sign
  std::vector<double> positive;
  std::vector<double> two;        // [output][row]
  std::vector<double> weights;    // whole numbers
  std::vector<double> fractions;  // weights that are not whole numbers

  Data(std::size_t n, std::uint64_t seed, bool with_missing);

  spinney::table::Table table() const;
  spinney::table::Table narrow_table() const;  // float32, no categories
  std::vector<std::int32_t> n_categories() const;
  spinney::criterion::Targets targets(spinney::criterion::CriterionKind kind) const;
};

// Fixed data for all fits: training rows and other rows for predictions.
const Data& train();
const Data& test();
// Without missing values.
const Data& train_complete();
const Data& test_complete();

void print_elementary();
void print_trees();
void print_forests();
void print_boosting();
void print_multiway();
void print_neighbors();
void print_distances();
void print_linear();
void print_mixture();
void print_explain();

}  // namespace bits
