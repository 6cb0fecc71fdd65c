#include "spinney/distance/edit_distance.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace spinney::distance {

namespace {

constexpr std::size_t word_length = 64;

// The positions of each character in a pattern of at most 64 characters, as bits of a word. The
// first 256 code points have a direct table. Other characters have a hash table that is at most
// half full, so every search ends at a free slot.
class PositionBits {
 public:
  explicit PositionBits(Characters pattern) {
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      const std::uint64_t bit = std::uint64_t{1} << i;
      if (pattern[i] < common_.size()) {
        common_[pattern[i]] |= bit;
        continue;
      }
      if (!has_rare_) rare_.fill({});
      has_rare_ = true;
      Slot& slot = rare_[find(pattern[i])];
      slot.character = pattern[i];
      slot.bits |= bit;
    }
  }

  std::uint64_t of(std::uint32_t character) const {
    if (character < common_.size()) return common_[character];
    return has_rare_ ? rare_[find(character)].bits : 0;
  }

 private:
  struct Slot {
    std::uint32_t character = 0;
    std::uint64_t bits = 0;
  };

  std::size_t find(std::uint32_t character) const {
    std::size_t slot = (character * 0x9e3779b1u) >> 25;
    while (rare_[slot].bits != 0 && rare_[slot].character != character) {
      slot = (slot + 1) % rare_.size();
    }
    return slot;
  }

  std::array<std::uint64_t, 256> common_{};
  std::array<Slot, 2 * word_length> rare_;  // filled only if has_rare_
  bool has_rare_ = false;
};

// Bit-parallel algorithm of Myers (1999) in Hyyrö's form: two words hold the vertical differences
// of one column of the table.
std::int64_t by_words(const PositionBits& positions, std::size_t length, Characters text) {
  const std::uint64_t last = std::uint64_t{1} << (length - 1);
  std::uint64_t up = ~std::uint64_t{0}, down = 0;
  auto distance = static_cast<std::int64_t>(length);
  for (const std::uint32_t character : text) {
    const std::uint64_t match = positions.of(character);
    const std::uint64_t zero = (((match & up) + up) ^ up) | match | down;
    std::uint64_t rises = down | ~(zero | up);
    std::uint64_t falls = up & zero;
    distance += (rises & last) != 0;
    distance -= (falls & last) != 0;
    rises = (rises << 1) | 1;
    falls <<= 1;
    up = falls | ~(zero | rises);
    down = rises & zero;
  }
  return distance;
}

// Dynamic programming over all cells of the table.
std::int64_t by_cells(Characters pattern, Characters text) {
  std::vector<std::int64_t> column(pattern.size() + 1);
  std::iota(column.begin(), column.end(), std::int64_t{0});
  for (std::size_t j = 0; j < text.size(); ++j) {
    std::int64_t diagonal = std::exchange(column[0], static_cast<std::int64_t>(j) + 1);
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      const std::int64_t replaced = diagonal + (pattern[i] != text[j]);
      diagonal = column[i + 1];
      column[i + 1] = std::min({replaced, diagonal + 1, column[i] + 1});
    }
  }
  return column.back();
}

}  // namespace

std::int64_t edit_distance(Characters a, Characters b) {
  if (a.size() > b.size()) std::swap(a, b);
  std::size_t same = 0;
  while (same < a.size() && a[same] == b[same]) ++same;
  a = a.subspan(same);
  b = b.subspan(same);
  while (!a.empty() && a.back() == b.back()) {
    a = a.first(a.size() - 1);
    b = b.first(b.size() - 1);
  }
  if (a.empty()) return static_cast<std::int64_t>(b.size());
  return a.size() <= word_length ? by_words(PositionBits(a), a.size(), b) : by_cells(a, b);
}

class EditPattern::PositionBits : public distance::PositionBits {
  using distance::PositionBits::PositionBits;
};

EditPattern::EditPattern(Characters pattern) : pattern_(pattern) {
  if (!pattern.empty() && pattern.size() <= word_length) {
    position_bits_ = std::make_unique<const PositionBits>(pattern);
  }
}

EditPattern::~EditPattern() = default;

std::int64_t EditPattern::distance(Characters text) const {
  return position_bits_ ? by_words(*position_bits_, pattern_.size(), text)
                        : edit_distance(pattern_, text);
}

std::int64_t hamming_distance(Characters a, Characters b) {
  if (a.size() > b.size()) std::swap(a, b);
  std::size_t distance = b.size() - a.size();
  for (std::size_t i = 0; i < a.size(); ++i) distance += a[i] != b[i];
  return static_cast<std::int64_t>(distance);
}

}  // namespace spinney::distance
