#include "binned_matrix.hpp"

#include <algorithm>
#include <cmath>

namespace polyleaf {
namespace {

// 2,048 slots of 32 four-byte channels are 256 KiB: half of a common second-level cache.
constexpr std::uint32_t kTileSlots = 2048;
constexpr std::size_t kTileFeatures = 64;
// From this share of its most frequent bin on, visiting only the other cells of a feature pays.
constexpr double kSparseShare = 0.2;
// Where the entries of a sparse tile are counted in 32 bits.
constexpr std::size_t kMostSparseRows = (std::size_t{1} << 32) / kTileFeatures - 1;
constexpr std::size_t kSampleRows = 2048;
constexpr std::size_t kBlockRows = 1024;
constexpr std::size_t kStrip = 128;

struct Frequent {
  std::uint32_t code = 0;
  bool sparse = false;
};

// The most frequent bin, by a sample of evenly spaced rows (the choice affects speed only).
Frequent frequent_bin(const MatrixView& x, std::size_t column, const FeatureBins& bins) {
  const std::size_t n_sample = std::min(x.n_rows, kSampleRows);
  std::vector<std::uint32_t> counts(bins.n_bins(), 0);
  for (std::size_t i = 0; i < n_sample; ++i) {
    double value;
    load_strip(x, i * x.n_rows / n_sample, 1, column, &value);
    ++counts[bin_of(value, bins.cuts)];
  }
  const auto most = std::max_element(counts.begin(), counts.end());
  return {static_cast<std::uint32_t>(most - counts.begin()),
          x.n_rows <= kMostSparseRows && static_cast<double>(*most) >= kSparseShare * static_cast<double>(n_sample)};
}

void lay_out_tiles(BinnedMatrix& matrix, const std::vector<Frequent>& frequent) {
  for (const bool sparse : {false, true}) {
    for (const bool wide : {false, true}) {
      FeatureTile* tile = nullptr;
      for (std::size_t f = 0; f < matrix.features.size(); ++f) {
        FeatureBins& bins = matrix.features[f];
        if (frequent[f].sparse != sparse || (bins.n_bins() > 256) != wide) continue;
        if (tile == nullptr || tile->n_features() == kTileFeatures || tile->n_slots() + bins.n_bins() > kTileSlots) {
          tile = &matrix.tiles.emplace_back();
          tile->sparse = sparse;
          tile->wide = wide;
          tile->slot_begin.push_back(0);
        }
        bins.tile = static_cast<std::uint32_t>(matrix.tiles.size() - 1);
        bins.position = static_cast<std::uint32_t>(tile->n_features());
        tile->features.push_back(static_cast<std::int32_t>(f));
        tile->frequent_slot.push_back(tile->slot_begin.back() + frequent[f].code);
        tile->slot_begin.push_back(tile->slot_begin.back() + bins.n_bins());
      }
    }
  }
  for (FeatureTile& tile : matrix.tiles) {
    tile.first_slot = matrix.n_slots;
    matrix.n_slots += tile.n_slots();
    tile.codes = Buffer<std::uint8_t>(matrix.n_rows * tile.n_features() * (tile.wide ? 2 : 1));
  }
}

template <class Code>
void encode_block(const MatrixView& x, const BinnedMatrix& matrix, FeatureTile& tile, std::size_t begin,
                  std::size_t end) {
  const std::size_t k = tile.n_features();
  Code* codes = reinterpret_cast<Code*>(tile.codes.data());
  double strip[kStrip];
  for (std::size_t row = begin; row < end; row += kStrip) {
    const std::size_t count = std::min(kStrip, end - row);
    for (std::size_t position = 0; position < k; ++position) {
      const auto feature = static_cast<std::size_t>(tile.features[position]);
      const std::vector<double>& cuts = matrix.features[feature].cuts;
      load_strip(x, row, count, feature, strip);
      for (std::size_t i = 0; i < count; ++i)
        codes[(row + i) * k + position] = static_cast<Code>(bin_of(strip[i], cuts));
    }
  }
}

// Lists, row by row, the cells of a sparse tile that are not in their feature's most frequent bin.
void list_entries(FeatureTile& tile, std::size_t n_rows, int n_threads) {
  const std::size_t k = tile.n_features();
  const std::size_t n_blocks = (n_rows + kBlockRows - 1) / kBlockRows;
  const auto each_entry = [&](std::size_t row, auto&& visit) {
    for (std::size_t position = 0; position < k; ++position) {
      const std::uint32_t slot = tile.slot_begin[position] + tile.code(row, position);
      if (slot != tile.frequent_slot[position]) visit(slot);
    }
  };
  tile.row_begin.assign(n_rows + 1, 0);
  const auto each_block = [&](auto&& visit) {
    parallel_for(n_threads, n_blocks, [&](std::size_t block, int) {
      const std::size_t end = std::min(n_rows, (block + 1) * kBlockRows);
      for (std::size_t row = block * kBlockRows; row < end; ++row) visit(row);
    });
  };
  each_block([&](std::size_t row) {
    std::uint32_t count = 0;
    each_entry(row, [&](std::uint32_t) { ++count; });
    tile.row_begin[row + 1] = count;
  });
  for (std::size_t row = 0; row < n_rows; ++row) tile.row_begin[row + 1] += tile.row_begin[row];
  tile.entries = Buffer<std::uint16_t>(tile.row_begin[n_rows]);
  each_block([&](std::size_t row) {
    std::uint32_t at = tile.row_begin[row];
    each_entry(row, [&](std::uint32_t slot) { tile.entries[at++] = static_cast<std::uint16_t>(slot); });
  });
}

}  // namespace

std::uint32_t bin_of(double value, const std::vector<double>& cuts) {
  if (std::isnan(value)) return static_cast<std::uint32_t>(cuts.size()) + 1;
  const double* first = cuts.data();
  std::size_t size = cuts.size();
  while (size > 0) {  // the number of cuts below the value, without branches on the data
    const std::size_t half = (size + 1) / 2;
    first += first[half - 1] < value ? half : 0;
    size -= half;
  }
  return static_cast<std::uint32_t>(first - cuts.data());
}

BinnedMatrix bin_matrix(const MatrixView& x, std::vector<ColumnCuts> columns, int n_threads) {
  BinnedMatrix matrix;
  matrix.n_rows = x.n_rows;
  matrix.features.resize(x.n_columns);
  std::vector<Frequent> frequent(x.n_columns);
  parallel_for(n_threads, x.n_columns, [&](std::size_t f, int) {
    FeatureBins& bins = matrix.features[f];
    bins.cuts = std::move(columns[f].cuts);
    bins.n_value_bins = static_cast<std::uint32_t>(bins.cuts.size()) + 1;
    bins.has_missing = columns[f].has_missing;
    frequent[f] = frequent_bin(x, f, bins);
  });
  lay_out_tiles(matrix, frequent);
  const std::size_t n_blocks = (x.n_rows + kBlockRows - 1) / kBlockRows;
  parallel_for(n_threads, n_blocks, [&](std::size_t block, int) {
    const std::size_t end = std::min(x.n_rows, (block + 1) * kBlockRows);
    for (FeatureTile& tile : matrix.tiles) {
      if (tile.wide)
        encode_block<std::uint16_t>(x, matrix, tile, block * kBlockRows, end);
      else
        encode_block<std::uint8_t>(x, matrix, tile, block * kBlockRows, end);
    }
  });
  for (FeatureTile& tile : matrix.tiles)
    if (tile.sparse) list_entries(tile, matrix.n_rows, n_threads);
  return matrix;
}

}  // namespace polyleaf
