// The training table as bin codes, cut into tiles of features whose histograms fit a core's cache.
//
// Five features: of 3 bins, of 2 and one for missing values (m), of 4, of 300, and of 2. The codes of a row of a tile
// stand side by side; features of more than 256 bins are in tiles of their own, with codes of 16 bits:
//
//             tile 0                          tile 1 (wide)
//   features    0    1    2    4                3
//   row 0     | 2  | 0  | 3  | 1  |           | 270 |
//   row 1     | 0  | m  | 1  | 0  |           |  12 |
//   ...
//
// A bin is a slot of its tile. A histogram of a tile has the sums of a payload's rows for each slot:
//
//   slots     | 0 1 2 | 3 4 5 | 6 7 8 9 | 10 11 |     | 0 1 2 ... 299 |
//   feature       0      1  m      2        4                 3
//   slot_begin  0       3       6         10      12    0               300
//   first_slot  0                                       12
//
// A tile of a sparse table may keep the cells outside of frequent bins alone (visited_cells.hpp), and a feature that
// cannot be split may be in no tile at all (sparse_binning.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "base/matrix_view.hpp"
#include "table/cuts.hpp"
#include "table/feature_cells.hpp"
#include "table/feature_combinations.hpp"
#include "table/visited_cells.hpp"

namespace polyleaf {

constexpr std::size_t kMostRows = 0x1fffffff;   // of a table
constexpr std::uint32_t kNoTile = 0xffffffffu;  // of a feature that is in none

// A few features side by side. A bin of a feature is a slot of the tile: slot = slot_begin[position] + code.
struct TileLayout {
  std::vector<std::int32_t> features;        // which columns of the table
  std::vector<std::uint32_t> slot_begin;     // one more than features
  std::vector<std::uint32_t> value_end;      // per feature: the slot after its values; the missing bin's, if it has one
  std::size_t first_slot = 0;                // of this tile among the slots of all tiles
  std::size_t first_feature = 0;             // likewise, among the features in tiles
  bool wide = false;                         // 16-bit codes instead of 8-bit ones
  bool categorical = false;                  // its features are all categorical, or none is
  bool skips_frequent = false;               // histograms visit the cells outside of frequent bins only
  bool keeps_codes = true;                   // false: there are those cells alone
  std::vector<std::uint32_t> frequent_slot;  // per feature: that of its most frequent bin

  std::size_t n_features() const { return features.size(); }
  std::uint32_t n_slots() const { return slot_begin.back(); }
  bool has_missing(std::size_t position) const { return value_end[position] < slot_begin[position + 1]; }
};

struct FeatureTile : TileLayout {
  Buffer<std::uint8_t> codes;        // rows x features, row by row, where it keeps them
  VisitedCells cells;                // where it skips frequent bins
  FeatureCells feature_cells;        // the same ones, of a tile without codes, where that pays
  FeatureCombinations combinations;  // of neighbouring features, where that pays

  std::uint32_t code(std::size_t row, std::size_t position) const {
    if (!keeps_codes) return cells.code(row, slot_begin[position], slot_begin[position + 1], frequent_slot[position]);
    const std::size_t cell = row * features.size() + position;
    return wide ? reinterpret_cast<const std::uint16_t*>(codes.data())[cell] : codes[cell];
  }
};

// Calls visit(position, code) for the cells of a row that are listed, in the order of the features.
template <class Visit>
void each_listed(const FeatureTile& tile, std::size_t row, Visit&& visit) {
  std::size_t position = 0;
  for (std::uint32_t at = tile.cells.row_begin[row]; at < tile.cells.row_begin[row + 1]; ++at) {
    const std::uint32_t slot = tile.cells.slots[at];
    const auto after =
        std::upper_bound(tile.slot_begin.begin() + static_cast<std::ptrdiff_t>(position), tile.slot_begin.end(), slot);
    position = static_cast<std::size_t>(after - tile.slot_begin.begin()) - 1;
    visit(position, slot - tile.slot_begin[position]);
  }
}

struct FeatureBins {
  std::vector<double> cuts;
  std::uint32_t n_value_bins = 1;  // cuts + 1; the code after them is the missing bin
  bool has_missing = false;
  bool categorical = false;
  std::vector<std::uint32_t> categories;  // of a categorical feature: the category of each bin
  std::uint32_t tile = kNoTile;           // which then has one bin with all rows
  std::uint32_t position = 0;

  std::uint32_t n_bins() const { return n_value_bins + (has_missing ? 1u : 0u); }
  std::uint32_t missing_code() const { return n_value_bins; }
};

struct BinnedMatrix {
  std::size_t n_rows = 0;
  std::size_t n_slots = 0;
  std::vector<FeatureBins> features;
  std::vector<FeatureTile> tiles;

  BinnedMatrix() = default;
  BinnedMatrix(BinnedMatrix&&) = default;
  BinnedMatrix& operator=(BinnedMatrix&&) = default;

  bool has_categories() const;
  // Whether all features are in tiles that keep codes.
  bool is_whole() const;
  // Whether all tiles keep codes.
  bool keeps_all_codes() const;
  // Features that are in tiles.
  std::size_t n_in_tiles() const;
  // Those of which cells are listed feature by feature.
  std::size_t n_listing_cells() const;
  std::uint32_t code(std::size_t row, std::size_t feature) const {
    const FeatureBins& bins = features[feature];
    return bins.tile == kNoTile ? 0 : tiles[bins.tile].code(row, bins.position);
  }
};

BinnedMatrix bin_matrix(const MatrixView& x, std::vector<ColumnCuts> columns, int n_threads);

// A table of no rows with these cut points: its thresholds, and the bins of other rows. Its tiles are those of a table
// of n_rows of which `counts` tells how many rows of a sample are in each bin, feature after feature; null: it is not
// known.
BinnedMatrix table_of_cuts(std::vector<ColumnCuts> columns, const std::vector<std::int64_t>* counts, std::size_t n_rows,
                           int n_threads);

// Such counts, of a sample of evenly spaced rows of a table with as many columns.
std::vector<std::int64_t> count_sample(const MatrixView& x, const BinnedMatrix& matrix, int n_threads);

// Other rows with the bins and the tiles of a table. std::invalid_argument for a missing value or a category of which
// its bins know nothing.
BinnedMatrix bin_like(const MatrixView& x, const BinnedMatrix& layout, int n_threads);

// The tables side by side as one, with the layout of a table that was binned as a whole. Their rows are the same; their
// memory is given back as they are copied.
BinnedMatrix join_columns(std::vector<BinnedMatrix> parts, int n_threads);

// The bins of other rows, rows x features. The bin of a value is the first b with value <= cuts[b]; NaN has the code
// after the last bin, also in a column where training saw none; so has a category that training did not see.
std::vector<std::uint16_t> encode(const MatrixView& x, const BinnedMatrix& matrix, int n_threads);

// The training rows' codes, `size` neighbouring features of a row side by side: parts x rows x size, with zeros where
// the last part has fewer features. std::invalid_argument where a code takes 16 bits.
std::vector<std::uint8_t> interleaved_codes(const BinnedMatrix& matrix, std::size_t size, int n_threads);

}  // namespace polyleaf
