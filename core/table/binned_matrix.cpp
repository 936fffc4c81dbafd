#include "table/binned_matrix.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/threads.hpp"
#include "table/cut_search.hpp"

namespace polyleaf {
namespace {

// 2,048 slots of 32 four-byte channels are 256 KiB: half of a common second-level cache.
constexpr std::uint32_t kTileSlots = 2048;
constexpr std::size_t kTileFeatures = 64;
// What a row costs besides its cells is paid once for each tile, and in tiles that skip frequent bins cells are few:
// these have many features, where they have few bins, but not so many that the threads could not share the tiles.
constexpr std::size_t kMostSkippingFeatures = 256;
constexpr std::size_t kLeastSkippingFeatures = 32;
// From this share of its most frequent bin on, visiting only the other cells of a feature pays.
constexpr double kLeastSkipped = 0.2;
constexpr std::size_t kMostSkippingRows = kMostVisited / kTileFeatures;
constexpr std::size_t kSampleRows = 2048;
constexpr std::size_t kBlockRows = 1024;
// Rows are encoded in blocks of all columns that fit a core's second-level cache.
constexpr std::size_t kEncodeBytes = std::size_t{1} << 18;
constexpr std::size_t kMostEncodeRows = 256;

struct Frequent {
  std::uint32_t code = 0;
  bool skipped = false;
};

template <class Real>
std::vector<CutSearch<Real>> make_searches(const BinnedMatrix& matrix, int n_threads) {
  std::vector<CutSearch<Real>> searches(matrix.features.size());
  parallel_for(matrix.n_slots < kParallelWork ? 1 : n_threads, searches.size(),
               [&](std::size_t f, int) { searches[f] = CutSearch<Real>(matrix.features[f].cuts); });
  return searches;
}

std::size_t rows_of_a_block(std::size_t n_columns, std::size_t real_bytes) {
  const std::size_t rows = kEncodeBytes / (n_columns * real_bytes) / kBlockEdge * kBlockEdge;
  return std::clamp(rows, kBlockEdge, kMostEncodeRows);
}

// Calls visit(row, count, columns, step) for blocks of rows: the values of column f are columns[f * step], ...
template <class Real, class Visit>
void each_block(const MatrixView& x, int n_threads, Visit&& visit) {
  const std::size_t step = rows_of_a_block(x.n_columns, sizeof(Real));
  std::vector<Buffer<Real>> scratch(static_cast<std::size_t>(std::max(n_threads, 1)));
  parallel_for(n_threads, (x.n_rows + step - 1) / step, [&](std::size_t block, int thread) {
    Buffer<Real>& columns = scratch[static_cast<std::size_t>(thread)];
    if (columns.size() == 0) columns = Buffer<Real>(x.n_columns * step);
    const std::size_t row = block * step;
    const std::size_t count = std::min(step, x.n_rows - row);
    load_block(x, row, count, 0, x.n_columns, columns.data(), step);
    visit(row, count, columns.data(), step);
  });
}

// The most frequent bin of each feature, by a sample of evenly spaced rows (the choice affects speed only).
template <class Real>
std::vector<Frequent> frequent_bins(const MatrixView& x, const BinnedMatrix& matrix,
                                    const std::vector<CutSearch<Real>>& searches, int n_threads) {
  const std::size_t every = (x.n_rows + kSampleRows - 1) / kSampleRows;
  MatrixView sample = x;
  sample.n_rows = (x.n_rows + every - 1) / every;
  sample.row_stride *= static_cast<std::ptrdiff_t>(every);
  std::vector<Frequent> frequent(x.n_columns);
  const std::size_t n_strips = (x.n_columns + kBlockEdge - 1) / kBlockEdge;
  const std::size_t work = sample.n_rows * x.n_columns;
  parallel_for(work < kParallelWork ? 1 : n_threads, n_strips, [&](std::size_t strip, int) {
    const std::size_t first = strip * kBlockEdge;
    const std::size_t count = std::min(kBlockEdge, x.n_columns - first);
    Buffer<Real> columns(count * sample.n_rows);
    load_block(sample, 0, sample.n_rows, first, count, columns.data(), sample.n_rows);
    std::vector<std::uint16_t> codes(sample.n_rows);
    std::vector<std::uint32_t> counts;
    for (std::size_t f = first; f < first + count; ++f) {
      searches[f].find(columns.data() + (f - first) * sample.n_rows, sample.n_rows, codes.data());
      counts.assign(matrix.features[f].n_bins(), 0);
      for (const std::uint16_t code : codes) ++counts[code];
      const auto most = std::max_element(counts.begin(), counts.end());
      frequent[f].code = static_cast<std::uint32_t>(most - counts.begin());
      frequent[f].skipped = x.n_rows <= kMostSkippingRows &&
                            static_cast<double>(*most) >= kLeastSkipped * static_cast<double>(sample.n_rows);
    }
  });
  return frequent;
}

std::size_t features_of_skipping_tiles(std::size_t n_features, std::size_t n_rows, int n_threads) {
  const std::size_t shared = std::min(2 * static_cast<std::size_t>(n_threads), n_features / kLeastSkippingFeatures);
  const std::size_t n_tiles =
      std::max({std::size_t{1}, shared, (n_features + kMostSkippingFeatures - 1) / kMostSkippingFeatures});
  return std::min((n_features + n_tiles - 1) / n_tiles, kMostVisited / std::max<std::size_t>(1, n_rows));
}

void lay_out_tiles(BinnedMatrix& matrix, const std::vector<Frequent>& frequent, int n_threads) {
  for (int kind = 0; kind < 8; ++kind) {
    const bool categorical = (kind & 4) != 0;
    const bool skips = (kind & 2) != 0;
    const bool wide = (kind & 1) != 0;
    std::vector<std::size_t> features;
    for (std::size_t f = 0; f < matrix.features.size(); ++f) {
      const FeatureBins& bins = matrix.features[f];
      if (bins.categorical == categorical && frequent[f].skipped == skips && (bins.n_bins() > 256) == wide)
        features.push_back(f);
    }
    const std::size_t most =
        skips ? features_of_skipping_tiles(features.size(), matrix.n_rows, n_threads) : kTileFeatures;
    FeatureTile* tile = nullptr;
    for (const std::size_t f : features) {
      FeatureBins& bins = matrix.features[f];
      if (tile == nullptr || tile->n_features() == most || tile->n_slots() + bins.n_bins() > kTileSlots) {
        tile = &matrix.tiles.emplace_back();
        tile->skips_frequent = skips;
        tile->wide = wide;
        tile->categorical = categorical;
        tile->slot_begin.push_back(0);
      }
      bins.tile = static_cast<std::uint32_t>(matrix.tiles.size() - 1);
      bins.position = static_cast<std::uint32_t>(tile->n_features());
      tile->features.push_back(static_cast<std::int32_t>(f));
      tile->frequent_slot.push_back(tile->slot_begin.back() + frequent[f].code);
      tile->value_end.push_back(tile->slot_begin.back() + bins.n_value_bins);
      tile->slot_begin.push_back(tile->slot_begin.back() + bins.n_bins());
    }
  }
  std::size_t first_slot = 0;
  for (FeatureTile& tile : matrix.tiles) {
    tile.first_slot = first_slot;
    first_slot += tile.n_slots();
    tile.codes = Buffer<std::uint8_t>(matrix.n_rows * tile.n_features() * (tile.wide ? 2 : 1));
  }
}

// Writes the codes of one block of rows.
template <class Code, class Real>
void encode_block(const std::vector<CutSearch<Real>>& searches, const Real* columns, std::size_t step, std::size_t row,
                  std::size_t count, FeatureTile& tile) {
  const std::size_t k = tile.n_features();
  Code* codes = reinterpret_cast<Code*>(tile.codes.data()) + row * k;
  std::uint16_t found[kMostEncodeRows];
  for (std::size_t position = 0; position < k; ++position) {
    const auto feature = static_cast<std::size_t>(tile.features[position]);
    searches[feature].find(columns + feature * step, count, found);
    for (std::size_t i = 0; i < count; ++i) codes[i * k + position] = static_cast<Code>(found[i]);
  }
}

template <class Real>
void encode_rows(const MatrixView& x, const std::vector<CutSearch<Real>>& searches, BinnedMatrix& matrix,
                 int n_threads) {
  each_block<Real>(x, n_threads, [&](std::size_t row, std::size_t count, const Real* columns, std::size_t step) {
    for (FeatureTile& tile : matrix.tiles) {
      if (tile.wide)
        encode_block<std::uint16_t>(searches, columns, step, row, count, tile);
      else
        encode_block<std::uint8_t>(searches, columns, step, row, count, tile);
    }
  });
}

// The cells that histograms visit, of all tiles.
void list_cells(BinnedMatrix& matrix, int n_threads) {
  for (FeatureTile& tile : matrix.tiles) {
    tile.cells = list_visited_cells(tile, matrix.n_rows, n_threads);
    tile.combinations = combine_features(tile, matrix.n_rows, n_threads);
  }
}

// Where a column's codes are to be copied from.
struct CodeSource {
  FeatureTile* tile = nullptr;
  std::size_t position = 0;
};

// Copies rows [begin, end) of a tile's columns.
template <class Code>
void copy_codes(const std::vector<CodeSource>& sources, std::size_t begin, std::size_t end, FeatureTile& tile) {
  const std::size_t k = tile.n_features();
  Code* to = reinterpret_cast<Code*>(tile.codes.data());
  for (std::size_t position = 0; position < k; ++position) {
    const CodeSource& source = sources[static_cast<std::size_t>(tile.features[position])];
    const std::size_t step = source.tile->n_features();
    const Code* from = reinterpret_cast<const Code*>(source.tile->codes.data()) + source.position;
    for (std::size_t row = begin; row < end; ++row) to[row * k + position] = from[row * step];
  }
}

// Categories that training did not see get the code of missing values.
template <class Real>
void mark_unseen(const FeatureBins& bins, const Real* values, std::size_t count, std::uint16_t* codes) {
  for (std::size_t i = 0; i < count; ++i)
    if (codes[i] >= bins.categories.size() || static_cast<Real>(bins.categories[codes[i]]) != values[i])
      codes[i] = static_cast<std::uint16_t>(bins.missing_code());
}

// Fills the features of a table.
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

}  // namespace

bool BinnedMatrix::has_categories() const {
  return std::any_of(features.begin(), features.end(), [](const FeatureBins& bins) { return bins.categorical; });
}

BinnedMatrix bin_matrix(const MatrixView& x, std::vector<ColumnCuts> columns, int n_threads) {
  BinnedMatrix matrix;
  matrix.n_rows = x.n_rows;
  take_cuts(columns, matrix);
  with_real(x.dtype, [&](auto zero) {
    using Real = decltype(zero);
    const std::vector<CutSearch<Real>> searches = make_searches<Real>(matrix, n_threads);
    lay_out_tiles(matrix, frequent_bins(x, matrix, searches, n_threads), n_threads);
    encode_rows(x, searches, matrix, n_threads);
  });
  list_cells(matrix, n_threads);
  return matrix;
}

BinnedMatrix table_of_cuts(std::vector<ColumnCuts> columns) {
  BinnedMatrix matrix;
  take_cuts(columns, matrix);
  lay_out_tiles(matrix, std::vector<Frequent>(matrix.features.size()), 1);
  return matrix;
}

BinnedMatrix join_columns(std::vector<BinnedMatrix> parts, int n_threads) {
  BinnedMatrix joined;
  joined.n_rows = parts.front().n_rows;
  std::vector<Frequent> frequent;
  std::vector<CodeSource> sources;
  for (BinnedMatrix& part : parts) {
    for (FeatureBins& bins : part.features) {
      FeatureTile& tile = part.tiles[bins.tile];
      const std::size_t position = bins.position;
      frequent.push_back({tile.frequent_slot[position] - tile.slot_begin[position], tile.skips_frequent});
      sources.push_back({&tile, position});
      joined.n_slots += bins.n_bins();
      joined.features.push_back(std::move(bins));
    }
    for (FeatureTile& tile : part.tiles) {  // listed anew
      tile.cells = {};
      tile.combinations = {};
    }
  }
  lay_out_tiles(joined, frequent, n_threads);
  const std::size_t n_blocks = (joined.n_rows + kBlockRows - 1) / kBlockRows;
  for (FeatureTile& tile : joined.tiles) {
    const std::size_t work = joined.n_rows * tile.n_features();
    parallel_for(work < kParallelWork ? 1 : n_threads, n_blocks, [&](std::size_t block, int) {
      const std::size_t begin = block * kBlockRows;
      const std::size_t end = std::min(joined.n_rows, begin + kBlockRows);
      if (tile.wide)
        copy_codes<std::uint16_t>(sources, begin, end, tile);
      else
        copy_codes<std::uint8_t>(sources, begin, end, tile);
    });
    // Tiles of a kind are copied in the order of their features: this was the last look at the tiles that end here.
    for (const std::int32_t feature : tile.features) {
      const CodeSource& source = sources[static_cast<std::size_t>(feature)];
      if (source.position + 1 == source.tile->n_features()) source.tile->codes = Buffer<std::uint8_t>();
    }
  }
  list_cells(joined, n_threads);
  return joined;
}

std::vector<std::uint16_t> encode(const MatrixView& x, const BinnedMatrix& matrix, int n_threads) {
  const std::size_t m = x.n_columns;
  std::vector<std::uint16_t> codes(x.n_rows * m);
  with_real(x.dtype, [&](auto zero) {
    using Real = decltype(zero);
    const std::vector<CutSearch<Real>> searches = make_searches<Real>(matrix, n_threads);
    each_block<Real>(x, n_threads, [&](std::size_t row, std::size_t count, const Real* columns, std::size_t step) {
      std::uint16_t found[kMostEncodeRows];
      for (std::size_t f = 0; f < m; ++f) {
        searches[f].find(columns + f * step, count, found);
        if (matrix.features[f].categorical) mark_unseen(matrix.features[f], columns + f * step, count, found);
        for (std::size_t i = 0; i < count; ++i) codes[(row + i) * m + f] = found[i];
      }
    });
  });
  return codes;
}

std::vector<std::uint8_t> interleaved_codes(const BinnedMatrix& matrix, std::size_t size, int n_threads) {
  const std::size_t m = matrix.features.size();
  const std::size_t n = matrix.n_rows;
  for (std::size_t f = 0; f < m; ++f)
    if (matrix.tiles[matrix.features[f].tile].wide)
      throw std::invalid_argument("feature " + std::to_string(f) + " has " +
                                  std::to_string(matrix.features[f].n_bins()) + " bins; at most 256 fit 8 bits");
  std::vector<std::uint8_t> codes((m + size - 1) / size * n * size);
  const std::size_t n_blocks = (n + kMostEncodeRows - 1) / kMostEncodeRows;
  parallel_for(n * m < kParallelWork ? 1 : n_threads, n_blocks, [&](std::size_t block, int) {
    const std::size_t begin = block * kMostEncodeRows;
    const std::size_t end = std::min(n, begin + kMostEncodeRows);
    for (std::size_t f = 0; f < m; ++f) {
      const FeatureTile& tile = matrix.tiles[matrix.features[f].tile];
      const std::size_t step = tile.n_features();
      const std::uint8_t* from = tile.codes.data() + matrix.features[f].position;
      std::uint8_t* to = codes.data() + f / size * n * size + f % size;
      for (std::size_t row = begin; row < end; ++row) to[row * size] = from[row * step];
    }
  });
  return codes;
}

}  // namespace polyleaf
