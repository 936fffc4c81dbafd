#include "search/histogram_builder.hpp"

#include <algorithm>

namespace polyleaf {
namespace {

constexpr std::size_t kChunkRows = 1024;
// Below this share of its features, a tile is visited code by code, whatever cells were listed of all of them.
constexpr double kFewFeatures = 0.3;
// Histograms of combinations are to stay in a core's second-level cache, as those of bins do.
constexpr std::size_t kMostCombinationBytes = std::size_t{1} << 19;
// A cell that is taken by itself costs as much as so many bins that are cleared, completed and subtracted.
constexpr double kCellCost = 8.0;

}  // namespace

HistogramBuilder::HistogramBuilder(const BinnedMatrix& matrix, const Payload& payload,
                                   const std::vector<std::uint32_t>& rows, const std::uint8_t* feature_mask)
    : matrix_(matrix),
      payload_(payload),
      rows_(rows),
      all_rows_(rows.size() == payload.n_rows || payload.is_cleared),
      all_features_(feature_mask == nullptr),
      positions_(matrix.tiles.size()),
      used_(matrix.tiles.size()) {
  for (std::size_t at = 0; at < matrix_.tiles.size(); ++at) {
    const FeatureTile& tile = matrix_.tiles[at];
    if (all_features_) {
      used_[at].push_back({0, tile.n_features(), 0, tile.n_slots()});
      continue;
    }
    std::vector<std::uint32_t>& positions = positions_[at];
    positions.resize(tile.n_features());
    std::size_t n = 0;
    for (std::size_t position = 0; position < tile.n_features(); ++position) {  // without branches on the data
      positions[n] = static_cast<std::uint32_t>(position);
      n += feature_mask[tile.features[position]] != 0 ? 1 : 0;
    }
    positions.resize(n);
    for (const std::uint32_t position : positions) {
      if (used_[at].empty() || used_[at].back().end != position)
        used_[at].push_back({position, position, tile.slot_begin[position], tile.slot_begin[position]});
      used_[at].back().end = position + 1;
      used_[at].back().last_slot = tile.slot_begin[position + 1];
    }
  }
}

template <class Body>
void HistogramBuilder::each_position(std::size_t at, Body&& body) const {
  if (!all_features_) {
    for (const std::uint32_t position : positions_[at]) body(position);
    return;
  }
  for (std::size_t position = 0; position < matrix_.tiles[at].n_features(); ++position) body(position);
}

bool HistogramBuilder::has_few_cells(std::size_t at, std::size_t n_rows) const {
  const FeatureTile& tile = matrix_.tiles[at];
  if (tile.keeps_codes) return false;
  const double share = static_cast<double>(n_rows) / static_cast<double>(matrix_.n_rows);
  return kCellCost * share * static_cast<double>(tile.cells.slots.size()) <= static_cast<double>(tile.n_slots());
}

bool HistogramBuilder::goes_by_features(std::size_t n_rows) const {
  for (std::size_t at = 0; at < matrix_.tiles.size(); ++at)
    if (choose(at, n_rows) != Visit::kFeatureCells) return false;
  return true;
}

void HistogramBuilder::fit(Scratch& scratch) const {
  const PayloadLayout& layout = payload_.layout;
  std::size_t bins = 0;
  std::size_t combinations = 0;
  for (std::size_t at = 0; at < matrix_.tiles.size(); ++at) {
    const FeatureTile& tile = matrix_.tiles[at];
    bins = std::max<std::size_t>(bins, tile.n_slots());
    if (combinations_pay(at, rows_.size()))
      combinations = std::max<std::size_t>(combinations, tile.combinations.n_slots());
  }
  scratch.packed.grow(layout.packed ? bins * layout.row_size() : 0);
  scratch.combinations.grow(combinations * layout.row_size());
}

std::vector<std::int32_t> HistogramBuilder::sum_rows(const Node& node, const Team& team) const {
  const PayloadLayout& layout = payload_.layout;
  const std::size_t n_blocks = (node.n_here() + kChunkRows - 1) / kChunkRows;
  const bool several = team.most_threads() > 1 && node.n_here() * layout.n_channels() >= kParallelGathers;
  // Those of one thread after the other.
  const std::size_t size = layout.n_channels() + PayloadLayout::kSlack;
  const std::size_t n_parts = several ? static_cast<std::size_t>(team.most_threads()) : 1;
  std::vector<std::int32_t> sums(n_parts * size, 0);
  team.run(several, n_blocks, [&](std::size_t block, int thread) {
    const std::size_t begin = node.begin + block * kChunkRows;
    const std::size_t count = std::min(kChunkRows, node.end - begin);
    std::int32_t* part = sums.data() + (several ? static_cast<std::size_t>(thread) * size : 0);
    for (int t = 0; t < layout.n_tiles; ++t)
      histogram_kernels().sum_payload(payload_.tile(t), rows_.data() + begin, count, part + t * layout.width);
  });
  for (std::size_t other = 1; other < n_parts; ++other)  // integers: any order gives the same bits
    for (std::size_t c = 0; c < size; ++c) sums[c] += sums[other * size + c];
  if (n_parts == 1) return sums;
  return {sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(size)};
}

bool HistogramBuilder::take_to_sort(std::size_t at, const RowRange& range, std::size_t n_parts, std::uint32_t* order,
                                    SortedRows& sorted) const {
  const FeatureTile& tile = matrix_.tiles[at];
  if (choose(at, range.size() / n_parts) != Visit::kCodes ||
      !SortedRows::pays(tile, payload_.layout, range.size() / n_parts))
    return false;
  sorted.take(tile, all_features_ ? nullptr : &positions_[at], rows_.data() + range.begin, range.size(), n_parts,
              order);
  return true;
}

void HistogramBuilder::build(std::size_t at, int output_tile, const RowRange& range, const SortedPart& sorted,
                             Scratch& scratch, std::int32_t* histogram) const {
  const FeatureTile& tile = matrix_.tiles[at];
  const PayloadLayout& layout = payload_.layout;
  std::int32_t* sums = layout.packed ? scratch.packed.data() : histogram;
  RowsToAdd rows{payload_.tile(output_tile), rows_.data() + range.begin, range.size(), sums};
  const Visit visit = choose(at, range.size());
  if (visit == Visit::kCombinations) {
    const FeatureCombinations& combinations = tile.combinations;
    rows.histogram = scratch.combinations.data();
    std::fill_n(rows.histogram, combinations.n_slots() * layout.row_size(), 0);
    histogram_kernels().add_cells(rows, combinations.cells.view());
    histogram_kernels().sum_combinations({rows.histogram, layout.width, layout.packed, combinations.size(),
                                          combinations.first.data(), combinations.slot_begin.data(),
                                          tile.slot_begin.data(), sums});
  } else if (visit == Visit::kFeatureCells) {
    add_feature_cells(at, rows);
  } else if (visit == Visit::kCodes && !layout.packed) {
    each_used(at, [&](std::size_t first, std::size_t count) { std::fill_n(histogram + first, count, 0); });
    sorted.rows != nullptr ? sorted.rows->add_to(histogram, rows.payload, sorted.part) : add_codes(at, rows);
  } else {
    std::fill_n(sums, tile.n_slots() * layout.row_size(), 0);
    visit == Visit::kCells ? histogram_kernels().add_cells(rows, tile.cells.view()) : add_codes(at, rows);
  }
  if (!layout.packed) return;
  for (const UsedRange& range : used_[at])
    histogram_kernels().unpack(sums + range.first_slot * layout.row_size(), nullptr, range.last_slot - range.first_slot,
                               histogram + range.first_slot * static_cast<std::size_t>(layout.width));
}

HistogramBuilder::Visit HistogramBuilder::choose(std::size_t at, std::size_t n_rows) const {
  const FeatureTile& tile = matrix_.tiles[at];
  if (!tile.keeps_codes)
    return all_rows_ && n_rows == rows_.size() && !tile.feature_cells.empty() ? Visit::kFeatureCells : Visit::kCells;
  if (!all_features_ && positions_[at].size() < kFewFeatures * tile.n_features()) return Visit::kCodes;
  if (combinations_pay(at, n_rows)) return Visit::kCombinations;
  return tile.skips_frequent ? Visit::kCells : Visit::kCodes;
}

// Whether a histogram of combinations is the shorter way, with what they cost: each is cleared, and added to the bins
// of its features.
bool HistogramBuilder::combinations_pay(std::size_t at, std::size_t n_rows) const {
  const FeatureTile& tile = matrix_.tiles[at];
  const FeatureCombinations& combinations = tile.combinations;
  if (combinations.cells.empty()) return false;
  if (combinations.n_slots() * payload_.layout.row_size() * sizeof(std::int32_t) > kMostCombinationBytes) return false;
  const std::size_t n_features = all_features_ ? tile.n_features() : positions_[at].size();
  const std::size_t n_cells = tile.skips_frequent ? tile.cells.slots.size() : matrix_.n_rows * n_features;
  const double saved = static_cast<double>(n_cells) - static_cast<double>(combinations.cells.slots.size());
  return saved * static_cast<double>(n_rows) >
         kCombinationCost * static_cast<double>(combinations.n_slots()) * static_cast<double>(matrix_.n_rows);
}

// Of the features that the tree may use.
void HistogramBuilder::add_feature_cells(std::size_t at, const RowsToAdd& rows) const {
  const FeatureCells& cells = matrix_.tiles[at].feature_cells;
  const std::size_t size = payload_.layout.row_size();
  for (const UsedRange& range : used_[at]) {
    std::fill_n(rows.histogram + range.first_slot * size, (range.last_slot - range.first_slot) * size, 0);
    const std::size_t first = cells.begin[range.begin], n = cells.begin[range.end] - first;
    histogram_kernels().add_each({rows.payload, cells.rows.data() + first, n, rows.histogram},
                                 {cells.slots.data() + first, cells.rows.size() - first - n});
  }
}

void HistogramBuilder::add_codes(std::size_t at, const RowsToAdd& rows) const {
  const FeatureTile& tile = matrix_.tiles[at];
  TileCodes codes{tile.codes.data(), tile.wide, tile.n_features(), tile.slot_begin.data(), nullptr, 0};
  if (!all_features_) {
    codes.positions = positions_[at].data();
    codes.n_positions = positions_[at].size();
  }
  histogram_kernels().add_codes(rows, codes);
}

void HistogramBuilder::complete(std::size_t at, int output_tile, const Node& node, std::int32_t* histogram) const {
  const FeatureTile& tile = matrix_.tiles[at];
  if (!tile.skips_frequent) return;
  const auto width = static_cast<std::size_t>(payload_.layout.width);
  const std::int32_t* totals = node.totals.data() + static_cast<std::size_t>(output_tile) * width;
  each_position(at, [&](std::size_t position) {
    const std::uint32_t first = tile.slot_begin[position];
    // Of the frequent bin itself not all rows were visited.
    histogram_kernels().rest_of_bins(totals, histogram + first * width, tile.slot_begin[position + 1] - first,
                                     payload_.layout.width, histogram + tile.frequent_slot[position] * width);
  });
}

// As if all of them were in the frequent bins; then the cells that are listed are taken from their bins instead.
void HistogramBuilder::take_out(std::size_t at, int output_tile, const NodeRows& rows, const Node& node,
                                std::int32_t* histogram) const {
  const FeatureTile& tile = matrix_.tiles[at];
  const auto width = static_cast<std::size_t>(payload_.layout.width);
  const std::uint32_t* positions = all_features_ ? nullptr : positions_[at].data();
  const std::size_t n_positions = all_features_ ? tile.n_features() : positions_[at].size();
  histogram_kernels().subtract_from({node.totals.data() + static_cast<std::size_t>(output_tile) * width,
                                     payload_.layout.width, tile.frequent_slot.data(), positions, n_positions,
                                     histogram});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int32_t* row = rows.tile(output_tile) + rows.place(i) * width;
    each_listed(tile, rows.row(i), [&](std::size_t position, std::uint32_t code) {
      std::int32_t* bin = histogram + (tile.slot_begin[position] + code) * width;
      std::int32_t* frequent = histogram + tile.frequent_slot[position] * width;
      for (std::size_t c = 0; c < width; ++c) {
        bin[c] -= row[c];
        frequent[c] += row[c];
      }
    });
  }
}

}  // namespace polyleaf
