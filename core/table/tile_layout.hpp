// How the features of a table are cut into tiles: which of them stand side by side, and which tiles skip frequent bins.
// The choice affects speed only.
#pragma once

#include <cstdint>
#include <vector>

#include "table/binned_matrix.hpp"

namespace polyleaf {

// 2,048 slots of 32 four-byte channels are 256 KiB: half of a common second-level cache. A feature of more bins has a
// tile to itself.
constexpr std::uint32_t kTileSlots = 2048;
constexpr std::size_t kTileFeatures = 64;
// What a row costs besides its cells is paid once for each tile, and in tiles that skip frequent bins cells are few:
// these have many features, where they have few bins, but not so many that the threads could not share the tiles.
constexpr std::size_t kMostSkippingFeatures = 256;
// Of tiles without codes, most rows have no cell at all in few features, and each tile visits all rows: they have as
// many features, and bins, as two bytes can tell apart.
constexpr std::size_t kMostListedFeatures = 8192;
constexpr std::uint32_t kListedTileSlots = 65536;

// How a feature is kept.
struct FrequentBin {
  std::uint32_t code = 0;
  bool skipped = false;
  bool keeps_codes = true;  // false: the cells outside of the bin alone, which is then skipped
  bool left_out = false;    // it is in no tile
};

// Fills the features of a table.
void take_cuts(std::vector<ColumnCuts>& columns, BinnedMatrix& matrix);

// The most frequent bin of each feature of a table of n_rows, by how many rows of a sample are in each bin: feature
// after feature, bin after bin.
std::vector<FrequentBin> frequent_bins(const BinnedMatrix& matrix, const std::vector<std::int64_t>& counts,
                                       std::size_t n_rows);
// That of one feature.
FrequentBin frequent_bin(const std::int64_t* counts, std::size_t n_bins, std::size_t n_rows);

// Which kind of tile a feature belongs to. Kinds stand one after the other.
int kind_of_tile(const FeatureBins& bins, bool skips_frequent, bool keeps_codes = true);

// Adds a tile of no features; and, to the last tile of its kind, a feature.
void add_tile(BinnedMatrix& matrix, const FeatureBins& like, bool skips_frequent, bool keeps_codes = true);
void add_to_last_tile(BinnedMatrix& matrix, std::size_t feature, std::uint32_t frequent_code);

// The tiles of a table whose features are known, without codes, for n_rows and so many threads.
void lay_out_tiles(BinnedMatrix& matrix, const std::vector<FrequentBin>& frequent, std::size_t n_rows, int n_threads);

// Room for the codes of n_rows in tiles that are laid out and keep them. std::invalid_argument where a tile that skips
// frequent bins would have too many cells.
void take_rooms(BinnedMatrix& matrix, std::size_t n_rows);

// The cells that histograms visit, of all tiles that keep codes, once these are known.
void list_cells(BinnedMatrix& matrix, int n_threads);

}  // namespace polyleaf
