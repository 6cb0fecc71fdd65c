#include "spinney/table/row_block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "spinney/common/check.h"
#include "spinney/common/dispatch.h"

namespace spinney::table {

namespace {

// Tests bits, so that the loop has no branches.
template <class Value, class Bits>
SPINNEY_INLINE SpecialValues find_special_kernel(const Value* values, std::size_t n) {
  constexpr Bits infinity = std::bit_cast<Bits>(std::numeric_limits<Value>::infinity()) << 1;
  Bits infinite = 0;
  Bits missing = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Bits magnitude = std::bit_cast<Bits>(values[i]) << 1;
    infinite |= magnitude == infinity ? 1U : 0U;
    missing |= magnitude > infinity ? 1U : 0U;
  }
  return {infinite != 0, missing != 0};
}

}  // namespace

SpecialValues find_special(const double* values, std::size_t n) {
  return common::dispatch<find_special_kernel<double, std::uint64_t>>(values, n);
}

SpecialValues find_special(const float* values, std::size_t n) {
  return common::dispatch<find_special_kernel<float, std::uint32_t>>(values, n);
}

RowReader::RowReader(const Table& table, std::span<const std::int32_t> n_categories)
    : table_(table) {
  if (table.n_features() != n_categories.size()) {
    throw common::InputError("X has " + std::to_string(table.n_features()) +
                             " columns, but the model was fitted with " +
                             std::to_string(n_categories.size()));
  }
  for (std::size_t f = 0; f < n_categories.size(); ++f) {
    const bool categorical = table.columns[f].kind == ColumnKind::categorical;
    if (categorical ? table.columns[f].n_categories > n_categories[f] : n_categories[f] > 0) {
      throw common::InputError("the kind or the categories of column " + std::to_string(f) +
                               " of X differ from those of the model");
    }
  }
  in_place_ = table.is_row_major();
  if (in_place_) {
    const Column& head = table.columns[0];
    stride_ = static_cast<std::size_t>(head.stride) / (head.dtype == Dtype::float64 ? 8 : 4);
  } else {
    features_.resize(table.n_features());
    for (std::size_t f = 0; f < features_.size(); ++f) features_[f] = static_cast<std::uint32_t>(f);
  }
}

std::size_t RowReader::max_rows() const {
  constexpr std::size_t rows = 16384;
  constexpr std::size_t values = 1 << 20;  // 8 MB
  if (in_place_) return rows;
  return std::clamp<std::size_t>(values / std::max<std::size_t>(table_.n_features(), 1), 8, rows);
}

template <class Value>
bool RowReader::check_values(const Value* rows, std::size_t n) const {
  const std::size_t width = table_.n_features();
  SpecialValues found;
  if (stride_ == width) {
    found = find_special(rows, n * width);
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      const SpecialValues row = find_special(rows + i * stride_, width);
      found.infinite |= row.infinite;
      found.missing |= row.missing;
    }
  }
  if (found.infinite && !table_.known_finite) throw common::InputError("Input X contains infinity");
  return found.missing;
}

template bool RowReader::check_values(const double*, std::size_t) const;
template bool RowReader::check_values(const float*, std::size_t) const;

void RowReader::copy(std::size_t first, std::size_t n, double* rows) const {
  const std::size_t width = table_.n_features();
  for (const std::uint32_t f : features_) {
    const Column& column = table_.columns[f];
    double* const to = rows + f;
    if (column.kind == ColumnKind::sparse) {
      for (std::size_t i = 0; i < n; ++i) to[i * width] = 0.0;
      const auto* end = column.rows + column.n_stored;
      const auto* at = std::lower_bound(column.rows, end, static_cast<std::int32_t>(first));
      for (; at != end && static_cast<std::size_t>(*at) < first + n; ++at) {
        to[(static_cast<std::size_t>(*at) - first) * width] =
            column.stored(static_cast<std::size_t>(at - column.rows));
      }
    } else {
      for (std::size_t i = 0; i < n; ++i) to[i * width] = column.value(first + i);
    }
    if (table_.known_finite) continue;
    for (std::size_t i = 0; i < n; ++i) {
      if (std::isinf(to[i * width])) throw common::InputError("Input X contains infinity");
    }
  }
}

}  // namespace spinney::table
