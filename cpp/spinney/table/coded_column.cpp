#include "spinney/table/coded_column.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "spinney/table/radix_sort.h"

namespace spinney {
namespace {

// A float64 as an integer with the same order; both zeros are one value.
std::uint64_t ordered_bits(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
  return (bits >> 63) != 0 ? ~bits : bits | (std::uint64_t{1} << 63);
}

// The same for values that float32 holds, in half the bits (three radix passes instead of a sort
// of 64-bit keys).
std::uint32_t ordered_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0F);
  return (bits >> 31) != 0 ? ~bits : bits | (std::uint32_t{1} << 31);
}

// Rows with their values in ascending order. values[i] belongs to rows[i]; keys carry i.
struct Sorted {
  const std::uint64_t* keys;  // low 32 bits: position i
  std::size_t n;
};

// Sorts positions 0 … n-1 of values (no NaN among them) by value, ties by position.
Sorted sort_values(const std::vector<double>& values, const std::vector<std::uint32_t>& positions,
                   CodingScratch& scratch) {
  const std::size_t n = positions.size();
  scratch.keys.resize(std::max<std::size_t>(n, 1));
  scratch.swap.resize(std::max<std::size_t>(n, 1));
  bool fits_float32 = true;
  for (const std::uint32_t i : positions) {
    const double value = values[i];
    fits_float32 &= static_cast<double>(static_cast<float>(value)) == value;
  }
  if (fits_float32) {
    for (std::size_t p = 0; p < n; ++p) {
      const std::uint32_t i = positions[p];
      scratch.keys[p] =
          (static_cast<std::uint64_t>(ordered_bits(static_cast<float>(values[i]))) << 32) | i;
    }
  } else {
    for (std::size_t p = 0; p < n; ++p) {
      const std::uint32_t i = positions[p];
      scratch.keys[p] = (ordered_bits(values[i]) & 0xffffffff00000000ULL) | i;
    }
  }
  if (n == 0) return {scratch.keys.data(), 0};
  std::uint64_t* keys = radix_sort(scratch.keys.data(), scratch.swap.data(), n, 32, 64);
  if (!fits_float32) {
    // Ordered so far by the upper 32 bits of the float64: finish the runs that share them.
    for (std::size_t begin = 0; begin < n;) {
      std::size_t end = begin + 1;
      while (end < n && (keys[end] >> 32) == (keys[begin] >> 32)) ++end;
      if (end - begin > 1) {
        std::sort(keys + begin, keys + end, [&](std::uint64_t a, std::uint64_t b) {
          const double value_a = values[static_cast<std::uint32_t>(a)];
          const double value_b = values[static_cast<std::uint32_t>(b)];
          return value_a < value_b || (value_a == value_b && a < b);
        });
      }
      begin = end;
    }
  }
  return {keys, n};
}

// Writes entries for the rows in code order, leaving out the implicit code.
class EntryWriter {
 public:
  EntryWriter(CodedColumn& out, const CodingRows& sample, const EntryLayout& layout)
      : out_(out), sample_(sample), layout_(layout) {}

  void reserve(Row n) { out_.entries = std::make_unique_for_overwrite<Entry[]>(n); }

  void add(Code code, Row row) {
    const std::uint32_t label = sample_.labels != nullptr ? sample_.labels[row] : 0;
    out_.entries[out_.n_entries++] = layout_.pack(code, row, label);
  }

 private:
  CodedColumn& out_;
  const CodingRows& sample_;
  const EntryLayout& layout_;
};

CodedColumn code_categorical(const Column& column, const CodingRows& sample,
                             const EntryLayout& layout, bool allow_implicit) {
  CodedColumn out;
  out.categorical = true;
  out.missing_code = static_cast<Code>(column.n_categories);
  const auto code_of = [&](Row row) {
    const std::int32_t code = column.category(row);
    return code < 0 ? out.missing_code : static_cast<Code>(code);
  };
  std::vector<Row> count(static_cast<std::size_t>(out.missing_code) + 1);
  for (Row i = 0; i < sample.n_rows; ++i) ++count[code_of(sample.rows[i])];
  out.has_missing = count[out.missing_code] > 0;
  const auto mode = static_cast<Code>(std::max_element(count.begin(), count.end()) - count.begin());
  out.has_implicit = allow_implicit && count[mode] > sample.n_rows / 2;
  out.implicit_code = mode;
  // Counting sort, straight into place.
  const Row n_listed = sample.n_rows - (out.has_implicit ? count[mode] : 0);
  out.entries = std::make_unique_for_overwrite<Entry[]>(n_listed);
  std::vector<Row> start(count.size());
  Row at = 0;
  for (std::size_t code = 0; code < count.size(); ++code) {
    start[code] = at;
    if (!(out.has_implicit && code == mode)) at += count[code];
  }
  for (Row i = 0; i < sample.n_rows; ++i) {
    const Row row = sample.rows[i];
    const Code code = code_of(row);
    if (out.has_implicit && code == mode) continue;
    const std::uint32_t label = sample.labels != nullptr ? sample.labels[row] : 0;
    out.entries[start[code]++] = layout.pack(code, row, label);
  }
  out.n_entries = n_listed;
  return out;
}

CodedColumn code_numeric(const Column& column, const CodingRows& sample, const EntryLayout& layout,
                         bool allow_implicit, CodingScratch& scratch) {
  CodedColumn out;
  // Stored values of the sample; for a sparse column the zeros are counted, not stored.
  std::vector<std::uint32_t> positions;
  std::vector<Row> missing;
  std::vector<Row> stored_rows;
  const bool keep_zeros_apart = column.kind == ColumnKind::sparse && allow_implicit;
  scratch.values.clear();
  const auto take = [&](Row row, double value) {
    if (std::isnan(value)) {
      missing.push_back(row);
    } else {
      positions.push_back(static_cast<std::uint32_t>(scratch.values.size()));
    }
    scratch.values.push_back(value);
    stored_rows.push_back(row);
  };
  if (keep_zeros_apart) {
    // Both lists ascend: walk them together.
    Row i = 0;
    for (std::size_t s = 0; s < column.n_stored; ++s) {
      const auto row = static_cast<Row>(column.rows[s]);
      while (i < sample.n_rows && sample.rows[i] < row) ++i;
      if (i == sample.n_rows) break;
      const double value = column.stored(s);
      if (sample.rows[i] == row && value != 0.0) take(row, value);
    }
  } else {
    scratch.values.reserve(sample.n_rows);
    stored_rows.reserve(sample.n_rows);
    positions.reserve(sample.n_rows);
    for (Row i = 0; i < sample.n_rows; ++i) take(sample.rows[i], column.value(sample.rows[i]));
  }
  const std::vector<double>& values = scratch.values;
  const Sorted sorted = sort_values(values, positions, scratch);
  const auto value_at = [&](std::size_t p) {
    return values[static_cast<std::uint32_t>(sorted.keys[p])];
  };

  // The most frequent value, missing included.
  double mode_value = 0;
  Row mode_count = 0;
  bool mode_missing = false;
  if (keep_zeros_apart) {
    mode_count = sample.n_rows - static_cast<Row>(values.size());
    out.has_implicit = true;
  } else {
    for (std::size_t begin = 0; begin < sorted.n;) {
      std::size_t end = begin + 1;
      while (end < sorted.n && value_at(end) == value_at(begin)) ++end;
      if (end - begin > mode_count) {
        mode_count = static_cast<Row>(end - begin);
        mode_value = value_at(begin);
      }
      begin = end;
    }
    if (missing.size() > mode_count) {
      mode_count = static_cast<Row>(missing.size());
      mode_missing = true;
    }
    out.has_implicit = allow_implicit && mode_count > sample.n_rows / 2;
  }
  out.has_missing = !missing.empty();
  const bool skip_mode = out.has_implicit && !mode_missing;

  EntryWriter writer(out, sample, layout);
  writer.reserve(static_cast<Row>(
      sorted.n + missing.size() - (out.has_implicit && !keep_zeros_apart ? mode_count : 0)));
  Code code = 0;
  bool mode_placed = !(keep_zeros_apart && mode_count > 0);
  for (std::size_t begin = 0; begin < sorted.n;) {
    const double value = value_at(begin);
    std::size_t end = begin + 1;
    while (end < sorted.n && value_at(end) == value) ++end;
    if (!mode_placed && value > 0.0) {  // the zeros of a sparse column come here
      out.implicit_code = code++;
      mode_placed = true;
    }
    if (skip_mode && !keep_zeros_apart && value == mode_value) {
      out.implicit_code = code;
    } else {
      for (std::size_t p = begin; p < end; ++p) {
        writer.add(code, stored_rows[static_cast<std::uint32_t>(sorted.keys[p])]);
      }
    }
    ++code;
    begin = end;
  }
  if (!mode_placed) out.implicit_code = code++;
  out.missing_code = code;
  if (out.has_implicit && mode_missing) {
    out.implicit_code = out.missing_code;
    out.implicit_value = std::numeric_limits<double>::quiet_NaN();
  } else {
    out.implicit_value = mode_value;
    for (const Row row : missing) writer.add(out.missing_code, row);
  }
  return out;
}

}  // namespace

CodedColumn code_column(const Column& column, const CodingRows& sample, const EntryLayout& layout,
                        bool allow_implicit, CodingScratch& scratch) {
  if (column.kind == ColumnKind::categorical) {
    return code_categorical(column, sample, layout, allow_implicit);
  }
  return code_numeric(column, sample, layout, allow_implicit, scratch);
}

}  // namespace spinney
