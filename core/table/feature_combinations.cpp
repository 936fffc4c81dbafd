#include "table/feature_combinations.hpp"

#include "table/binned_matrix.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kSampleRows = 2048;
// Combinations of the bins of features that are summed as one.
constexpr std::size_t kMostCombinations = 256;
// They are to pay already in nodes of this share of the rows.
constexpr double kShareOfNode = 1.0 / 16;
// Unless they leave this share of the cells at most, they are not worth their memory.
constexpr double kMostLeft = 0.85;

VisitedCells list_cells(const FeatureTile& tile, const FeatureCombinations& combinations, std::size_t n_rows,
                        int n_threads) {
  const std::size_t k = tile.n_features();
  const std::size_t size = combinations.size();
  std::vector<std::uint32_t> n_bins(k), frequent_code(k);
  for (std::size_t position = 0; position < k; ++position) {
    n_bins[position] = tile.slot_begin[position + 1] - tile.slot_begin[position];
    frequent_code[position] = tile.frequent_slot[position] - tile.slot_begin[position];
  }
  const auto slot_of = [&](std::size_t at, const auto* codes) {
    std::uint32_t slot = 0;
    for (std::uint32_t position = combinations.first[at]; position < combinations.first[at + 1]; ++position)
      slot = slot * n_bins[position] + codes[position];
    return combinations.slot_begin[at] + slot;
  };
  // Left out where all features are in their frequent bins, if these are skipped.
  std::vector<std::uint32_t> frequent(size, combinations.n_slots());
  for (std::size_t at = 0; tile.skips_frequent && at < size; ++at) frequent[at] = slot_of(at, frequent_code.data());
  return list_rows(n_rows, size, n_threads, [&](std::size_t row, std::uint16_t* slots) {
    const std::uint8_t* codes = tile.codes.data() + row * k;
    std::size_t n = 0;
    for (std::size_t at = 0; at < size; ++at) {
      const std::uint32_t slot = slot_of(at, codes);
      slots[n] = static_cast<std::uint16_t>(slot);
      n += slot != frequent[at] ? 1 : 0;
    }
    return n;
  });
}

// Neighbours are combined where, by a sample of evenly spaced rows, so many have cells to be visited in both that more
// is saved than the combinations cost. (The choice affects speed only.) False: it is not worth while.
bool choose(const FeatureTile& tile, std::size_t n_rows, FeatureCombinations& chosen) {
  const std::size_t k = tile.n_features();
  const std::size_t every = (n_rows + kSampleRows - 1) / kSampleRows;
  const std::size_t n_sample = (n_rows + every - 1) / every;
  const double rows_of_one = kShareOfNode * static_cast<double>(every);  // that a row of the sample stands for
  std::vector<std::uint8_t> in_those(n_sample), in_feature(n_sample);    // whether there is a cell to be visited
  std::size_t combinations = 0;
  std::size_t n_cells = 0, n_saved = 0;
  for (std::size_t position = 0; position < k; ++position) {
    const std::size_t n_bins = tile.slot_begin[position + 1] - tile.slot_begin[position];
    const auto frequent = static_cast<std::uint8_t>(tile.frequent_slot[position] - tile.slot_begin[position]);
    std::size_t both = 0;
    for (std::size_t i = 0; i < n_sample; ++i) {
      in_feature[i] = !tile.skips_frequent || tile.codes[i * every * k + position] != frequent ? 1 : 0;
      both += in_those[i] & in_feature[i];
      n_cells += in_feature[i];
    }
    const bool joins =
        position > 0 && combinations * n_bins <= kMostCombinations &&
        static_cast<double>(both) * rows_of_one + kCombinationCost * static_cast<double>(combinations + n_bins) >=
            kCombinationCost * static_cast<double>(combinations * n_bins);
    if (joins) {
      for (std::size_t i = 0; i < n_sample; ++i) in_those[i] |= in_feature[i];
      combinations *= n_bins;
      n_saved += both;
      continue;
    }
    chosen.first.push_back(static_cast<std::uint32_t>(position));
    chosen.slot_begin.push_back(position == 0 ? 0
                                              : chosen.slot_begin.back() + static_cast<std::uint32_t>(combinations));
    combinations = n_bins;
    in_those.swap(in_feature);
  }
  chosen.first.push_back(static_cast<std::uint32_t>(k));
  chosen.slot_begin.push_back(chosen.slot_begin.back() + static_cast<std::uint32_t>(combinations));
  if (n_rows > kMostVisited / chosen.size()) return false;
  return static_cast<double>(n_cells - n_saved) <= kMostLeft * static_cast<double>(n_cells);
}

}  // namespace

FeatureCombinations combine_features(const FeatureTile& tile, std::size_t n_rows, int n_threads) {
  FeatureCombinations combinations;
  if (tile.wide || !choose(tile, n_rows, combinations)) return {};  // of wide codes, bins are many
  combinations.cells = list_cells(tile, combinations, n_rows, n_threads);
  return combinations;
}

}  // namespace polyleaf
