#include "spinney/table/coded_column.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"
#include "spinney/table/radix_sort.h"

namespace spinney::table {

using common::parallel_for;
using common::Row;
using common::worthwhile_threads;

namespace {

// Below this number of rows, a comparison sort is faster than a radix sort.
constexpr std::size_t radix_from = 256;

// Buffers of one thread, reused from column to column.
struct Scratch {
  std::vector<double> block;  // values of several columns, column by column
  std::vector<std::uint64_t> keys;
  std::vector<std::uint64_t> swap;
  std::vector<std::uint32_t> slots;
  std::vector<Row> count;
  std::vector<common::Code> code_of;
  std::vector<Row> stored_rows;
  std::vector<double> stored_values;
};

// A float64 as an integer with the same order; −0 equals 0.
SPINNEY_INLINE std::uint64_t ordered_bits(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
  return (bits >> 63) != 0 ? ~bits : bits | (std::uint64_t{1} << 63);
}

// The same for float32.
SPINNEY_INLINE std::uint32_t ordered_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0F);
  return (bits >> 31) != 0 ? ~bits : bits | (std::uint32_t{1} << 31);
}

struct Traits {
  bool any_missing = false;
  bool integers = true;  // all values are integers of moderate size
  bool floats = true;    // float32 represents all values exactly
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
};

SPINNEY_INLINE Traits find_traits(const double* values, std::size_t n) {
  constexpr double moderate = 1 << 24;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double low = infinity;
  double high = -infinity;
  unsigned missing = 0;
  unsigned not_integer = 0;
  unsigned not_float = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double value = values[i];
    const bool is_missing = value != value;
    const double kept = is_missing ? 0.0 : value;
    missing |= is_missing;
    low = value < low ? value : low;
    high = value > high ? value : high;
    const double near = kept > moderate ? moderate : (kept < -moderate ? -moderate : kept);
    not_integer |= static_cast<double>(static_cast<std::int32_t>(near)) != kept;
    not_float |= static_cast<double>(static_cast<float>(kept)) != kept;
  }
  return {missing != 0, not_integer == 0, not_float == 0, low, high};
}

// The output of the coders: entries in code order, without those of the implicit code.
struct Writer {
  CodedColumn& out;
  const CodingRows& sample;
  const EntryLayout& layout;

  SPINNEY_INLINE Entry entry(common::Code code, Row row) const {
    return layout.pack(code, row, sample.labels != nullptr ? sample.labels[row] : 0);
  }
  void allocate(std::size_t n) {
    out.n_entries = static_cast<Row>(n);
    out.entries = std::make_unique_for_overwrite<Entry[]>(n);
  }
};

// Counts each slot. If a value repeats, each addition waits for the previous one; with few slots,
// four separate counters avoid this.
void count_slots(const std::uint32_t* slots, std::size_t n, std::size_t n_slots,
                 std::vector<Row>& count) {
  constexpr std::size_t few = 1024;
  if (n_slots > few) {
    count.assign(n_slots, 0);
    for (std::size_t i = 0; i < n; ++i) ++count[slots[i]];
    return;
  }
  count.assign(4 * n_slots, 0);
  Row* const c = count.data();
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    ++c[slots[i]];
    ++c[n_slots + slots[i + 1]];
    ++c[2 * n_slots + slots[i + 2]];
    ++c[3 * n_slots + slots[i + 3]];
  }
  for (; i < n; ++i) ++c[slots[i]];
  for (std::size_t slot = 0; slot < n_slots; ++slot) {
    c[slot] += c[n_slots + slot] + c[2 * n_slots + slot] + c[3 * n_slots + slot];
  }
  count.resize(n_slots);
}

// Counting sort of rows by scratch.slots (small integers); the last slot means missing.
// dense_ranks: codes skip empty slots; categories keep their codes. Returns the most frequent slot,
// which is implicit if has_implicit.
std::size_t code_by_counting(Writer writer, std::size_t n_slots, bool dense_ranks,
                             bool allow_implicit, Scratch& scratch) {
  CodedColumn& out = writer.out;
  const Row n = writer.sample.n_rows;
  const std::uint32_t* slots = scratch.slots.data();
  std::vector<Row>& count = scratch.count;
  count_slots(slots, n, n_slots, count);
  const std::size_t missing_slot = n_slots - 1;
  out.has_missing = count[missing_slot] > 0;
  const auto mode =
      static_cast<std::size_t>(std::max_element(count.begin(), count.end()) - count.begin());
  out.has_implicit = allow_implicit && count[mode] > n / 2;
  writer.allocate(n - (out.has_implicit ? count[mode] : 0));
  scratch.code_of.resize(n_slots);
  common::Code code = 0;
  Row start = 0;
  for (std::size_t slot = 0; slot < n_slots; ++slot) {
    if (slot == missing_slot) out.missing_code = code;
    scratch.code_of[slot] = code;
    if (!dense_ranks || count[slot] > 0) ++code;
    const Row size = count[slot];
    count[slot] = start;  // from here on: the position of the slot's next entry
    if (!(out.has_implicit && slot == mode)) start += size;
  }
  out.implicit_code = scratch.code_of[mode];
  const std::size_t skipped = out.has_implicit ? mode : n_slots;
  for (Row i = 0; i < n; ++i) {
    const std::uint32_t slot = slots[i];
    if (slot == skipped) continue;
    out.entries[count[slot]++] = writer.entry(scratch.code_of[slot], writer.sample.rows[i]);
  }
  return mode;
}

SPINNEY_INLINE void fill_slots(const double* values, std::size_t n, double low,
                               std::uint32_t missing_slot, std::uint32_t* slots) {
  for (std::size_t i = 0; i < n; ++i) {
    const bool missing = values[i] != values[i];
    const double offset = missing ? 0.0 : values[i] - low;
    const auto slot = static_cast<std::uint32_t>(static_cast<std::int32_t>(offset));
    slots[i] = missing ? missing_slot : slot;
  }
}

// Keys [ordered bits | position] in ascending order of value, without missing values.
template <bool floats>
std::uint64_t* sort_values(const double* values, std::size_t n, bool any_missing, Scratch& scratch,
                           std::size_t& n_sorted) {
  scratch.keys.resize(n);
  scratch.swap.resize(n);
  std::uint64_t* keys = scratch.keys.data();
  std::size_t m = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double value = values[i];
    std::uint64_t high = 0;
    if constexpr (floats) {
      high = static_cast<std::uint64_t>(ordered_bits(static_cast<float>(value))) << 32;
    } else {
      high = ordered_bits(value) & 0xffffffff00000000ULL;
    }
    keys[m] = high | i;
    m += any_missing ? value == value : 1;
  }
  n_sorted = m;
  if (m < radix_from) {
    std::sort(keys, keys + m);
  } else {
    keys = radix_sort(keys, scratch.swap.data(), m, 32, 64);
  }
  if constexpr (!floats) {
    // The keys are sorted by the upper 32 bits of the float64; sort runs that share them.
    for (std::size_t begin = 0; begin < m;) {
      std::size_t end = begin + 1;
      while (end < m && (keys[end] >> 32) == (keys[begin] >> 32)) ++end;
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
  return keys;
}

// Codes any values by sorting; values[i] belongs to rows[i].
template <bool floats>
void code_by_sorting(Writer writer, const double* values, const Row* rows, std::size_t n,
                     bool any_missing, bool allow_implicit, Scratch& scratch) {
  CodedColumn& out = writer.out;
  std::size_t m = 0;
  const std::uint64_t* keys = sort_values<floats>(values, n, any_missing, scratch, m);
  const auto value_at = [&](std::size_t p) { return values[static_cast<std::uint32_t>(keys[p])]; };
  const auto differs = [&](std::size_t p) {  // from the previous key
    if ((keys[p] >> 32) != (keys[p - 1] >> 32)) return true;
    return !floats && value_at(p) != value_at(p - 1);
  };
  // Find the most frequent value, including missing.
  std::size_t mode_begin = 0;
  std::size_t mode_end = 0;
  for (std::size_t begin = 0, p = 1; p <= m; ++p) {
    if (p < m && !differs(p)) continue;
    if (p - begin > mode_end - mode_begin) {
      mode_begin = begin;
      mode_end = p;
    }
    begin = p;
  }
  const std::size_t n_missing = n - m;
  const bool mode_missing = n_missing > mode_end - mode_begin;
  const std::size_t mode_count = mode_missing ? n_missing : mode_end - mode_begin;
  out.has_missing = n_missing > 0;
  out.has_implicit = allow_implicit && mode_count > n / 2;
  writer.allocate(n - (out.has_implicit ? mode_count : 0));
  Entry* entries = out.entries.get();
  common::Code code = 0;
  for (std::size_t p = 0; p < m; ++p) {
    if (p > 0 && differs(p)) ++code;
    if (out.has_implicit && !mode_missing && p == mode_begin) {
      out.implicit_code = code;
      out.implicit_value = value_at(p);
      p = mode_end - 1;
      continue;
    }
    *entries++ = writer.entry(code, rows[static_cast<std::uint32_t>(keys[p])]);
  }
  out.missing_code = m > 0 ? code + 1 : 0;
  if (out.has_implicit && mode_missing) {
    out.implicit_code = out.missing_code;
    out.implicit_value = std::numeric_limits<double>::quiet_NaN();
  } else if (n_missing > 0) {
    for (std::size_t i = 0; i < n; ++i) {
      if (std::isnan(values[i])) *entries++ = writer.entry(out.missing_code, rows[i]);
    }
  }
}

void code_values(Writer writer, const double* values, bool allow_implicit, Scratch& scratch) {
  const std::size_t n = writer.sample.n_rows;
  const Traits traits = common::dispatch<find_traits>(values, n);
  const double range = traits.high - traits.low;
  if (traits.integers && range >= 0 && range < 2.0 * static_cast<double>(n) + 16) {
    const std::size_t n_slots = static_cast<std::size_t>(range) + 2;
    scratch.slots.resize(n);
    common::dispatch<fill_slots>(values, n, traits.low, static_cast<std::uint32_t>(n_slots - 1),
                                 scratch.slots.data());
    const std::size_t mode = code_by_counting(writer, n_slots, true, allow_implicit, scratch);
    writer.out.implicit_value = mode == n_slots - 1 ? std::numeric_limits<double>::quiet_NaN()
                                                    : traits.low + static_cast<double>(mode);
  } else if (traits.floats) {
    code_by_sorting<true>(writer, values, writer.sample.rows, n, traits.any_missing, allow_implicit,
                          scratch);
  } else {
    code_by_sorting<false>(writer, values, writer.sample.rows, n, traits.any_missing,
                           allow_implicit, scratch);
  }
}

// Zero is always the implicit value of a sparse column.
void code_sparse(Writer writer, const Column& column, Scratch& scratch) {
  const CodingRows& sample = writer.sample;
  scratch.stored_rows.clear();
  scratch.stored_values.clear();
  Row i = 0;  // merges two ascending lists of rows
  for (std::size_t s = 0; s < column.n_stored; ++s) {
    const auto row = static_cast<Row>(column.rows[s]);
    while (i < sample.n_rows && sample.rows[i] < row) ++i;
    if (i == sample.n_rows) break;
    const double value = column.stored(s);
    if (sample.rows[i] == row && value != 0.0) {
      scratch.stored_rows.push_back(row);
      scratch.stored_values.push_back(value);
    }
  }
  const std::size_t n_stored = scratch.stored_rows.size();
  CodedColumn& out = writer.out;
  code_by_sorting<false>(writer, scratch.stored_values.data(), scratch.stored_rows.data(), n_stored,
                         true, false, scratch);
  out.has_implicit = true;
  out.implicit_value = 0.0;
  if (n_stored == sample.n_rows) return;  // no row has the value 0
  // Insert the code of zero: increment all larger codes.
  Row first = 0;
  while (first < out.n_entries && column.value(writer.layout.row(out.entries[first])) < 0.0) {
    ++first;
  }
  out.implicit_code =
      first < out.n_entries ? writer.layout.code(out.entries[first]) : out.missing_code;
  for (Row e = first; e < out.n_entries; ++e) {
    out.entries[e] += Entry{1} << writer.layout.code_shift();
  }
  ++out.missing_code;
}

// Copies columns first … first+count-1 into the block, column by column. Columns of a row-major
// matrix share cache lines, so they are read together.
void read_block(const Table& table, std::size_t first, std::size_t count, const CodingRows& sample,
                std::vector<double>& block) {
  const std::size_t n = sample.n_rows;
  block.resize(n * count);
  const Column& head = table.columns[first];
  bool side_by_side = count > 1 && head.kind == ColumnKind::numeric && head.dtype != Dtype::int32;
  const auto item = static_cast<std::ptrdiff_t>(head.dtype == Dtype::float64 ? 8 : 4);
  for (std::size_t j = 1; j < count && side_by_side; ++j) {
    const Column& column = table.columns[first + j];
    side_by_side = column.kind == head.kind && column.dtype == head.dtype &&
                   column.stride == head.stride &&
                   column.data == head.data + static_cast<std::ptrdiff_t>(j) * item;
  }
  if (!side_by_side) {
    for (std::size_t j = 0; j < count; ++j) {
      const Column& column = table.columns[first + j];
      if (column.kind != ColumnKind::categorical) {
        gather(column, sample.rows, sample.n_rows, block.data() + j * n);
      }
    }
    return;
  }
  const auto copy = [&]<class Value>(const Value*) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto* row = reinterpret_cast<const Value*>(
          head.data + static_cast<std::ptrdiff_t>(sample.rows[i]) * head.stride);
      for (std::size_t j = 0; j < count; ++j) {
        block[j * n + i] = static_cast<double>(row[j]);
      }
    }
  };
  if (head.dtype == Dtype::float64) {
    copy(static_cast<const double*>(nullptr));
  } else {
    copy(static_cast<const float*>(nullptr));
  }
}

void code_column(const Column& column, Writer writer, const double* values, bool allow_implicit,
                 Scratch& scratch) {
  if (column.kind == ColumnKind::categorical) {
    writer.out.categorical = true;
    const Row n = writer.sample.n_rows;
    scratch.slots.resize(n);
    for (Row i = 0; i < n; ++i) {
      const std::int32_t code = column.category(writer.sample.rows[i]);
      scratch.slots[i] = static_cast<std::uint32_t>(code < 0 ? column.n_categories : code);
    }
    const auto n_slots = static_cast<std::size_t>(column.n_categories) + 1;
    code_by_counting(writer, n_slots, false, allow_implicit, scratch);
  } else if (column.kind == ColumnKind::sparse && allow_implicit) {
    code_sparse(writer, column, scratch);
  } else {
    code_values(writer, values, allow_implicit, scratch);
  }
}

}  // namespace

std::size_t largest_code(const Table& table) {
  std::size_t largest = table.n_rows;
  for (const Column& column : table.columns) {
    if (column.kind == ColumnKind::categorical) {
      largest = std::max(largest, static_cast<std::size_t>(column.n_categories));
    }
  }
  return largest;
}

void code_columns(const Table& table, const CodingRows& sample, const EntryLayout& layout,
                  bool allow_implicit, int n_threads,
                  const std::function<void(std::size_t, CodedColumn&)>& consume) {
  const std::size_t n_features = table.n_features();
  const double work = 25.0 * static_cast<double>(sample.n_rows) * static_cast<double>(n_features);
  n_threads = worthwhile_threads(work, n_threads);
  // Eight columns: a cache line of float64. The block has at most 16 MB.
  const std::size_t fits = std::size_t{2'000'000} / std::max<std::size_t>(sample.n_rows, 1);
  const std::size_t share =
      (n_features + static_cast<std::size_t>(n_threads) - 1) / static_cast<std::size_t>(n_threads);
  const std::size_t width = std::clamp<std::size_t>(std::min(fits, share), 1, 8);
  const std::size_t n_blocks = (n_features + width - 1) / width;
  std::vector<Scratch> scratch(static_cast<std::size_t>(n_threads));
  parallel_for(n_blocks, n_threads, [&](std::size_t block, int worker) {
    Scratch& own = scratch[static_cast<std::size_t>(worker)];
    const std::size_t first = block * width;
    const std::size_t count = std::min(width, n_features - first);
    const bool reads_values = !(table.columns[first].kind == ColumnKind::sparse && allow_implicit);
    if (reads_values) read_block(table, first, count, sample, own.block);
    for (std::size_t j = 0; j < count; ++j) {
      CodedColumn column;
      code_column(table.columns[first + j], Writer{column, sample, layout},
                  own.block.data() + (reads_values ? j * sample.n_rows : 0), allow_implicit, own);
      consume(first + j, column);
    }
  });
}

std::vector<CodedColumn> code_table(const Table& table, const CodingRows& sample,
                                    const EntryLayout& layout, bool allow_implicit, int n_threads) {
  std::vector<CodedColumn> columns(table.n_features());
  code_columns(
      table, sample, layout, allow_implicit, n_threads,
      [&](std::size_t feature, CodedColumn& column) { columns[feature] = std::move(column); });
  return columns;
}

}  // namespace spinney::table
