#include "table/tile_layout.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/threads.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kLeastSkippingFeatures = 32;
// From this share of its most frequent bin on, visiting only the other cells of a feature pays.
constexpr double kLeastSkipped = 0.2;
constexpr std::size_t kMostSkippingRows = kMostVisited / kTileFeatures;
constexpr int kKinds = 16;

std::size_t features_of_skipping_tiles(std::size_t n_features, std::size_t most, std::size_t n_rows, int n_threads) {
  const std::size_t shared = std::min(2 * static_cast<std::size_t>(n_threads), n_features / kLeastSkippingFeatures);
  const std::size_t n_tiles = std::max({std::size_t{1}, shared, (n_features + most - 1) / most});
  return std::min((n_features + n_tiles - 1) / n_tiles, kMostVisited / std::max<std::size_t>(1, n_rows));
}

}  // namespace

void take_cuts(std::vector<ColumnCuts>& columns, BinnedMatrix& matrix) {
  matrix.features.resize(columns.size());
  for (std::size_t f = 0; f < columns.size(); ++f) {
    FeatureBins& bins = matrix.features[f];
    bins.cuts = std::move(columns[f].cuts);
    bins.n_value_bins = static_cast<std::uint32_t>(bins.cuts.size()) + 1;
    bins.has_missing = columns[f].has_missing;
    bins.categorical = columns[f].categorical;
    bins.categories = std::move(columns[f].categories);
    matrix.n_slots += bins.n_bins();
  }
}

std::vector<FrequentBin> frequent_bins(const BinnedMatrix& matrix, const std::vector<std::int64_t>& counts,
                                       std::size_t n_rows) {
  std::vector<FrequentBin> frequent(matrix.features.size());
  const std::int64_t* first = counts.data();
  for (std::size_t f = 0; f < frequent.size(); ++f) {
    const std::size_t n_bins = matrix.features[f].n_bins();
    frequent[f] = frequent_bin(first, n_bins, n_rows);
    first += n_bins;
  }
  return frequent;
}

FrequentBin frequent_bin(const std::int64_t* counts, std::size_t n_bins, std::size_t n_rows) {
  const std::int64_t* most = std::max_element(counts, counts + n_bins);
  double n_sample = 0;
  for (std::size_t bin = 0; bin < n_bins; ++bin) n_sample += static_cast<double>(counts[bin]);
  FrequentBin frequent;
  frequent.code = static_cast<std::uint32_t>(most - counts);
  frequent.skipped = *most > 0 && n_rows <= kMostSkippingRows && static_cast<double>(*most) >= kLeastSkipped * n_sample;
  return frequent;
}

int kind_of_tile(const FeatureBins& bins, bool skips_frequent, bool keeps_codes) {
  return (keeps_codes ? 0 : 8) + (bins.categorical ? 4 : 0) + (skips_frequent ? 2 : 0) + (bins.n_bins() > 256 ? 1 : 0);
}

void add_tile(BinnedMatrix& matrix, const FeatureBins& like, bool skips_frequent, bool keeps_codes) {
  FeatureTile& tile = matrix.tiles.emplace_back();
  tile.skips_frequent = skips_frequent;
  tile.keeps_codes = keeps_codes;
  tile.wide = like.n_bins() > 256;
  tile.categorical = like.categorical;
  tile.slot_begin.push_back(0);
  if (matrix.tiles.size() > 1) {
    const FeatureTile& before = matrix.tiles[matrix.tiles.size() - 2];
    tile.first_slot = before.first_slot + before.n_slots();
    tile.first_feature = before.first_feature + before.n_features();
  }
}

void add_to_last_tile(BinnedMatrix& matrix, std::size_t feature, std::uint32_t frequent_code) {
  FeatureTile& tile = matrix.tiles.back();
  FeatureBins& bins = matrix.features[feature];
  const std::uint32_t begin = tile.slot_begin.back();
  bins.tile = static_cast<std::uint32_t>(matrix.tiles.size() - 1);
  bins.position = static_cast<std::uint32_t>(tile.n_features());
  tile.features.push_back(static_cast<std::int32_t>(feature));
  tile.frequent_slot.push_back(begin + frequent_code);
  tile.value_end.push_back(begin + bins.n_value_bins);
  tile.slot_begin.push_back(begin + bins.n_bins());
}

void lay_out_tiles(BinnedMatrix& matrix, const std::vector<FrequentBin>& frequent, std::size_t n_rows, int n_threads) {
  std::vector<std::vector<std::size_t>> features_of_kind(kKinds);
  for (std::size_t f = 0; f < matrix.features.size(); ++f) {
    if (frequent[f].left_out) continue;
    const int kind = kind_of_tile(matrix.features[f], frequent[f].skipped, frequent[f].keeps_codes);
    features_of_kind[static_cast<std::size_t>(kind)].push_back(f);
  }
  for (const std::vector<std::size_t>& features : features_of_kind) {
    if (features.empty()) continue;
    const bool skips = frequent[features.front()].skipped;
    const bool keeps_codes = frequent[features.front()].keeps_codes;
    const std::size_t most_skipping = keeps_codes ? kMostSkippingFeatures : kMostListedFeatures;
    const std::size_t most =
        skips ? features_of_skipping_tiles(features.size(), most_skipping, n_rows, n_threads) : kTileFeatures;
    const std::uint32_t most_slots = keeps_codes ? kTileSlots : kListedTileSlots;
    const std::size_t first_tile = matrix.tiles.size();
    for (const std::size_t f : features) {
      const FeatureBins& bins = matrix.features[f];
      if (matrix.tiles.size() == first_tile || matrix.tiles.back().n_features() == most ||
          matrix.tiles.back().n_slots() + bins.n_bins() > most_slots)
        add_tile(matrix, bins, skips, keeps_codes);
      add_to_last_tile(matrix, f, frequent[f].code);
    }
  }
}

void take_rooms(BinnedMatrix& matrix, std::size_t n_rows) {
  for (FeatureTile& tile : matrix.tiles) {
    if (tile.skips_frequent && n_rows > kMostVisited / tile.n_features())
      throw std::invalid_argument(std::to_string(n_rows) + " rows of a tile of " + std::to_string(tile.n_features()) +
                                  " features that skips frequent bins are more than 2^32 - 1 cells");
    if (tile.keeps_codes) tile.codes = Buffer<std::uint8_t>(n_rows * tile.n_features() * (tile.wide ? 2 : 1));
  }
  matrix.n_rows = n_rows;
}

void list_cells(BinnedMatrix& matrix, int n_threads) {
  if (matrix.n_rows == 0) return;
  const auto list = [&](FeatureTile& tile, int of_tile) {
    if (!tile.keeps_codes) return;
    tile.cells = list_visited_cells(tile, matrix.n_rows, of_tile);
    tile.combinations = combine_features(tile, matrix.n_rows, of_tile);
  };
  // Threads take tiles, or blocks of rows where tiles are few.
  const std::size_t n_tiles = matrix.tiles.size();
  if (n_tiles < static_cast<std::size_t>(std::max(n_threads, 1))) {
    for (FeatureTile& tile : matrix.tiles) list(tile, n_threads);
    return;
  }
  const bool worthwhile = matrix.n_rows * matrix.features.size() >= kParallelWork;
  parallel_for(worthwhile ? n_threads : 1, n_tiles, [&](std::size_t at, int) { list(matrix.tiles[at], 1); });
}

}  // namespace polyleaf
