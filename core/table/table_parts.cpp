#include "table/table_parts.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "base/threads.hpp"
#include "rules/cut_choice.hpp"
#include "table/tile_layout.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockRows = 4096;

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

std::string feature_named(std::size_t feature) { return "feature " + std::to_string(feature); }
std::string tile_named(std::size_t tile) { return "tile " + std::to_string(tile); }

void check_categories(const ColumnCuts& column, std::size_t feature) {
  const std::vector<std::uint32_t>& categories = column.categories;
  if (!column.categorical)
    return expect(categories.empty(), feature_named(feature) + " has categories, but is numeric");
  const std::size_t n_bins = std::max<std::size_t>(categories.size(), 1);
  expect(column.cuts.size() + 1 == n_bins, feature_named(feature) + ": a bin for each category is needed");
  for (std::size_t i = 0; i < categories.size(); ++i) {
    expect(categories[i] < kMostCategories && (i == 0 || categories[i - 1] < categories[i]),
           "the categories of " + feature_named(feature) + " must ascend, below " + std::to_string(kMostCategories));
    expect(i == 0 || column.cuts[i - 1] == between(categories[i - 1], categories[i]),
           "the cuts of " + feature_named(feature) + " must lie halfway between its categories");
  }
}

// The layout of a tile that lay_out_tiles might have made.
void check_tile(const BinnedMatrix& matrix, const TilePart& part, std::size_t at, std::vector<std::uint8_t>& seen) {
  const std::string name = tile_named(at);
  const std::size_t n = part.features.size();
  expect(n > 0 && n <= (part.skips_frequent ? kMostSkippingFeatures : kTileFeatures),
         name + " has " + std::to_string(n) + " features");
  expect(part.frequent_code.size() == n, name + ": a frequent bin for each feature is needed");
  std::size_t n_slots = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t given = part.features[i];
    expect(given >= 0 && static_cast<std::size_t>(given) < matrix.features.size(),
           name + " has a feature " + std::to_string(given) + ", which does not exist");
    const auto f = static_cast<std::size_t>(given);
    expect(seen[f] == 0, feature_named(f) + " is in the tiles twice");
    seen[f] = 1;
    expect(i == 0 || part.features[i - 1] < given, "the features of " + name + " must ascend");
    expect(part.frequent_code[i] < matrix.features[f].n_bins(),
           "the frequent bin of " + feature_named(f) + " does not exist");
    const auto first = static_cast<std::size_t>(part.features.front());
    expect(kind_of_tile(matrix.features[f], part.skips_frequent) ==
               kind_of_tile(matrix.features[first], part.skips_frequent),
           feature_named(f) + " does not belong into " + name + ": bins of 8 and 16 bits, and of numbers and " +
               "categories, are apart");
    n_slots += matrix.features[f].n_bins();
  }
  expect(n == 1 || n_slots <= kTileSlots, name + " has " + std::to_string(n_slots) + " bins");
}

// Tiles of a kind side by side, with ascending features.
void check_order(const BinnedMatrix& matrix, const TilePart& before, const TilePart& part, std::size_t at) {
  const auto kind = [&](const TilePart& tile) {
    return kind_of_tile(matrix.features[static_cast<std::size_t>(tile.features.front())], tile.skips_frequent);
  };
  expect(kind(before) < kind(part) || (kind(before) == kind(part) && before.features.back() < part.features.front()),
         tile_named(at) + " is out of order");
}

// Copies rows of a tile, and returns the position of a feature with a code beyond its bins; that after the last: none.
template <class Code>
std::size_t copy_rows(const TilePart& part, std::size_t begin, std::size_t end,
                      const std::vector<std::uint32_t>& n_bins, FeatureTile& tile) {
  const std::size_t k = n_bins.size();
  const std::size_t row_bytes = k * sizeof(Code);
  std::memcpy(tile.codes.data() + begin * row_bytes, static_cast<const char*>(part.codes) + begin * row_bytes,
              (end - begin) * row_bytes);
  const Code* codes = reinterpret_cast<const Code*>(tile.codes.data());
  std::size_t bad = k;
  for (std::size_t row = begin; row < end; ++row)
    for (std::size_t position = 0; position < k; ++position)
      if (codes[row * k + position] >= n_bins[position]) bad = position;
  return bad;
}

void copy_codes(const TilePart& part, std::size_t n_rows, int n_threads, FeatureTile& tile) {
  const std::size_t k = tile.n_features();
  std::vector<std::uint32_t> n_bins(k);
  for (std::size_t i = 0; i < k; ++i) n_bins[i] = tile.slot_begin[i + 1] - tile.slot_begin[i];
  std::atomic<std::size_t> bad{k};
  const std::size_t n_blocks = (n_rows + kBlockRows - 1) / kBlockRows;
  parallel_for(n_rows * k < kParallelWork ? 1 : n_threads, n_blocks, [&](std::size_t block, int) {
    const std::size_t begin = block * kBlockRows;
    const std::size_t end = std::min(n_rows, begin + kBlockRows);
    const std::size_t found = tile.wide ? copy_rows<std::uint16_t>(part, begin, end, n_bins, tile)
                                        : copy_rows<std::uint8_t>(part, begin, end, n_bins, tile);
    if (found < k) bad = found;
  });
  if (bad < k)
    throw std::invalid_argument(feature_named(static_cast<std::size_t>(tile.features[bad])) +
                                " has a code beyond its " + std::to_string(n_bins[bad]) + " bins");
}

}  // namespace

void check_columns(const std::vector<ColumnCuts>& columns) {
  for (std::size_t f = 0; f < columns.size(); ++f) {
    const std::vector<double>& cuts = columns[f].cuts;
    expect(cuts.size() < kMostDistinct,
           "at most 65,534 cuts a feature; " + feature_named(f) + " has " + std::to_string(cuts.size()));
    for (std::size_t i = 0; i < cuts.size(); ++i)
      expect(std::isfinite(cuts[i]) && (i == 0 || cuts[i - 1] < cuts[i]),
             "cuts must be finite and ascend; those of " + feature_named(f) + " do not");
    check_categories(columns[f], f);
  }
}

BinnedMatrix put_together(std::size_t n_rows, std::vector<ColumnCuts> columns, const std::vector<TilePart>& tiles,
                          int n_threads) {
  expect(!columns.empty(), "the table has no features");
  expect(n_rows <= kMostRows, "the table has more than 2^29 - 1 rows");
  check_columns(columns);
  BinnedMatrix matrix;
  take_cuts(columns, matrix);
  std::vector<std::uint8_t> seen(matrix.features.size(), 0);
  for (std::size_t at = 0; at < tiles.size(); ++at) {
    const TilePart& part = tiles[at];
    check_tile(matrix, part, at, seen);
    if (at > 0) check_order(matrix, tiles[at - 1], part, at);
    add_tile(matrix, matrix.features[static_cast<std::size_t>(part.features.front())], part.skips_frequent);
    for (std::size_t i = 0; i < part.features.size(); ++i)
      add_to_last_tile(matrix, static_cast<std::size_t>(part.features[i]), part.frequent_code[i]);
    expect(part.wide == matrix.tiles.back().wide,
           "the codes of " + tile_named(at) + " must have " + (part.wide ? "8" : "16") + " bits");
    expect(part.n_rows == n_rows && part.n_columns == part.features.size(),
           "the codes of " + tile_named(at) + " are " + std::to_string(part.n_rows) + " x " +
               std::to_string(part.n_columns) + "; " + std::to_string(n_rows) + " x " +
               std::to_string(part.features.size()) + " were expected");
  }
  const auto missing = std::find(seen.begin(), seen.end(), 0);
  expect(missing == seen.end(), feature_named(static_cast<std::size_t>(missing - seen.begin())) + " is in no tile");
  take_rooms(matrix, n_rows);
  for (std::size_t at = 0; at < tiles.size(); ++at) copy_codes(tiles[at], n_rows, n_threads, matrix.tiles[at]);
  list_cells(matrix, n_threads);
  return matrix;
}

}  // namespace polyleaf
