#include "table/binned_matrix.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/threads.hpp"
#include "table/cut_search.hpp"
#include "table/tile_layout.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kSampleRows = 2048;
constexpr std::size_t kBlockRows = 1024;
// Rows are encoded in blocks of all columns that fit a core's second-level cache.
constexpr std::size_t kEncodeBytes = std::size_t{1} << 18;
constexpr std::size_t kMostEncodeRows = 256;

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

// How many rows of a sample of evenly spaced ones are in each bin. Codes that no bin has do not count.
template <class Real>
std::vector<std::int64_t> count_sample(const MatrixView& x, const BinnedMatrix& matrix,
                                       const std::vector<CutSearch<Real>>& searches, int n_threads) {
  std::vector<std::size_t> begin(x.n_columns + 1, 0);
  for (std::size_t f = 0; f < x.n_columns; ++f) begin[f + 1] = begin[f] + matrix.features[f].n_bins();
  std::vector<std::int64_t> counts(begin.back(), 0);
  if (x.n_rows == 0) return counts;
  const std::size_t every = (x.n_rows + kSampleRows - 1) / kSampleRows;
  MatrixView sample = x;
  sample.n_rows = (x.n_rows + every - 1) / every;
  sample.row_stride *= static_cast<std::ptrdiff_t>(every);
  const std::size_t n_strips = (x.n_columns + kBlockEdge - 1) / kBlockEdge;
  const std::size_t work = sample.n_rows * x.n_columns;
  parallel_for(work < kParallelWork ? 1 : n_threads, n_strips, [&](std::size_t strip, int) {
    const std::size_t first = strip * kBlockEdge;
    const std::size_t count = std::min(kBlockEdge, x.n_columns - first);
    Buffer<Real> columns(count * sample.n_rows);
    load_block(sample, 0, sample.n_rows, first, count, columns.data(), sample.n_rows);
    std::vector<std::uint16_t> codes(sample.n_rows);
    for (std::size_t f = first; f < first + count; ++f) {
      searches[f].find(columns.data() + (f - first) * sample.n_rows, sample.n_rows, codes.data());
      for (const std::uint16_t code : codes)
        if (code < matrix.features[f].n_bins()) ++counts[begin[f] + code];
    }
  });
  return counts;
}

// Categories that training did not see get the code of missing values.
template <class Real>
void mark_unseen(const FeatureBins& bins, const Real* values, std::size_t count, std::uint16_t* codes) {
  for (std::size_t i = 0; i < count; ++i)
    if (codes[i] >= bins.categories.size() || static_cast<Real>(bins.categories[codes[i]]) != values[i])
      codes[i] = static_cast<std::uint16_t>(bins.missing_code());
}

// std::invalid_argument where a row is in none of the bins that were made for a feature.
void refuse_strangers(const FeatureBins& bins, std::size_t feature, std::size_t count, const std::uint16_t* codes) {
  if (std::all_of(codes, codes + count, [&](std::uint16_t code) { return code < bins.n_bins(); })) return;
  throw std::invalid_argument("column " + std::to_string(feature) + " holds a missing value" +
                              (bins.categorical ? " or a category without a bin" : "") +
                              ", of which its bins know nothing");
}

// Rows that the bins were made from, or others, which may be in none of them.
enum class Rows { own, other };

// Writes the codes of one block of rows.
template <class Code, class Real>
void encode_block(const BinnedMatrix& matrix, const std::vector<CutSearch<Real>>& searches, Rows rows,
                  const Real* columns, std::size_t step, std::size_t row, std::size_t count, FeatureTile& tile) {
  const std::size_t k = tile.n_features();
  Code* codes = reinterpret_cast<Code*>(tile.codes.data()) + row * k;
  std::uint16_t found[kMostEncodeRows];
  for (std::size_t position = 0; position < k; ++position) {
    const auto feature = static_cast<std::size_t>(tile.features[position]);
    searches[feature].find(columns + feature * step, count, found);
    if (rows == Rows::other) {
      const FeatureBins& bins = matrix.features[feature];
      if (bins.categorical) mark_unseen(bins, columns + feature * step, count, found);
      refuse_strangers(bins, feature, count, found);
    }
    for (std::size_t i = 0; i < count; ++i) codes[i * k + position] = static_cast<Code>(found[i]);
  }
}

template <class Real>
void encode_rows(const MatrixView& x, const std::vector<CutSearch<Real>>& searches, Rows rows, BinnedMatrix& matrix,
                 int n_threads) {
  each_block<Real>(x, n_threads, [&](std::size_t row, std::size_t count, const Real* columns, std::size_t step) {
    for (FeatureTile& tile : matrix.tiles) {
      if (tile.wide)
        encode_block<std::uint16_t>(matrix, searches, rows, columns, step, row, count, tile);
      else
        encode_block<std::uint8_t>(matrix, searches, rows, columns, step, row, count, tile);
    }
  });
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

}  // namespace

bool BinnedMatrix::has_categories() const {
  return std::any_of(tiles.begin(), tiles.end(), [](const FeatureTile& tile) { return tile.categorical; });
}

bool BinnedMatrix::is_whole() const { return n_in_tiles() == features.size() && keeps_all_codes(); }

bool BinnedMatrix::keeps_all_codes() const {
  return std::all_of(tiles.begin(), tiles.end(), [](const FeatureTile& tile) { return tile.keeps_codes; });
}

std::size_t BinnedMatrix::n_in_tiles() const {
  std::size_t n = 0;
  for (const FeatureTile& tile : tiles) n += tile.n_features();
  return n;
}

std::size_t BinnedMatrix::n_listing_cells() const {
  std::size_t n = 0;
  for (const FeatureTile& tile : tiles) n += tile.feature_cells.empty() ? 0 : tile.n_features();
  return n;
}

BinnedMatrix bin_matrix(const MatrixView& x, std::vector<ColumnCuts> columns, int n_threads) {
  BinnedMatrix matrix;
  take_cuts(columns, matrix);
  with_real(x.dtype, [&](auto zero) {
    using Real = decltype(zero);
    const std::vector<CutSearch<Real>> searches = make_searches<Real>(matrix, n_threads);
    const std::vector<std::int64_t> counts = count_sample(x, matrix, searches, n_threads);
    lay_out_tiles(matrix, frequent_bins(matrix, counts, x.n_rows), x.n_rows, n_threads);
    take_rooms(matrix, x.n_rows);
    encode_rows(x, searches, Rows::own, matrix, n_threads);
  });
  list_cells(matrix, n_threads);
  return matrix;
}

std::vector<std::int64_t> count_sample(const MatrixView& x, const BinnedMatrix& matrix, int n_threads) {
  return with_real(x.dtype, [&](auto zero) {
    using Real = decltype(zero);
    return count_sample(x, matrix, make_searches<Real>(matrix, n_threads), n_threads);
  });
}

BinnedMatrix bin_like(const MatrixView& x, const BinnedMatrix& layout, int n_threads) {
  BinnedMatrix matrix;
  matrix.n_slots = layout.n_slots;
  matrix.features = layout.features;
  for (const FeatureTile& tile : layout.tiles) {
    static_cast<TileLayout&>(matrix.tiles.emplace_back()) = tile;
    matrix.tiles.back().keeps_codes = true;
  }
  take_rooms(matrix, x.n_rows);
  with_real(x.dtype, [&](auto zero) {
    using Real = decltype(zero);
    encode_rows(x, make_searches<Real>(matrix, n_threads), Rows::other, matrix, n_threads);
  });
  list_cells(matrix, n_threads);
  return matrix;
}

BinnedMatrix table_of_cuts(std::vector<ColumnCuts> columns, const std::vector<std::int64_t>* counts, std::size_t n_rows,
                           int n_threads) {
  BinnedMatrix matrix;
  take_cuts(columns, matrix);
  if (counts != nullptr && counts->size() != matrix.n_slots)
    throw std::invalid_argument("counts: one for each bin of each feature, " + std::to_string(matrix.n_slots) +
                                " in all");
  const std::vector<FrequentBin> none(matrix.features.size());
  lay_out_tiles(matrix, counts == nullptr ? none : frequent_bins(matrix, *counts, n_rows), n_rows, n_threads);
  return matrix;
}

BinnedMatrix join_columns(std::vector<BinnedMatrix> parts, int n_threads) {
  BinnedMatrix joined;
  const std::size_t n_rows = parts.front().n_rows;
  std::vector<FrequentBin> frequent;
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
  lay_out_tiles(joined, frequent, n_rows, n_threads);
  take_rooms(joined, n_rows);
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
    if (matrix.features[f].n_bins() > 256)
      throw std::invalid_argument("feature " + std::to_string(f) + " has " +
                                  std::to_string(matrix.features[f].n_bins()) + " bins; at most 256 fit 8 bits");
  std::vector<std::uint8_t> codes((m + size - 1) / size * n * size);
  const std::size_t n_blocks = (n + kMostEncodeRows - 1) / kMostEncodeRows;
  parallel_for(n * m < kParallelWork ? 1 : n_threads, n_blocks, [&](std::size_t block, int) {
    const std::size_t begin = block * kMostEncodeRows;
    const std::size_t end = std::min(n, begin + kMostEncodeRows);
    for (std::size_t f = 0; f < m; ++f) {
      const std::uint32_t at = matrix.features[f].tile;
      if (at == kNoTile) continue;  // zeros
      const FeatureTile& tile = matrix.tiles[at];
      std::uint8_t* to = codes.data() + f / size * n * size + f % size;
      if (!tile.keeps_codes) {
        for (std::size_t row = begin; row < end; ++row)
          to[row * size] = static_cast<std::uint8_t>(tile.code(row, matrix.features[f].position));
        continue;
      }
      const std::size_t step = tile.n_features();
      const std::uint8_t* from = tile.codes.data() + matrix.features[f].position;
      for (std::size_t row = begin; row < end; ++row) to[row * size] = from[row * step];
    }
  });
  return codes;
}

}  // namespace polyleaf
