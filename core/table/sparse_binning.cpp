#include "table/sparse_binning.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "rules/acceptance.hpp"
#include "table/cut_search.hpp"
#include "table/cuts.hpp"
#include "table/tile_layout.hpp"

namespace polyleaf {
namespace {

// Cells outside of its most frequent bin are all that is kept of a feature where they are no more than one of so many:
// a listed cell takes two bytes, and finding a code among them longer than reading it.
constexpr std::size_t kRowsPerListed = 16;
constexpr std::size_t kColumnsTogether = 64;  // are binned by one thread

// The units of the rows' weights, and their sum. Of no weights: none, and the number of rows.
struct Units {
  std::vector<std::int64_t> of_row;
  std::int64_t total = 0;

  Units(const double* weight, std::size_t n_rows) : total(static_cast<std::int64_t>(n_rows)) {
    if (weight == nullptr) return;
    of_row = weight_units(weight, n_rows, weight_total(weight, n_rows));
    total = std::accumulate(of_row.begin(), of_row.end(), std::int64_t{0});
  }
};

// What is found out column by column.
struct CodedColumns {
  std::vector<ColumnCuts> cuts;
  std::vector<FrequentBin> kept;
  std::vector<std::uint16_t> zero_code;
  Buffer<std::uint16_t> codes;  // of the stored cells

  explicit CodedColumns(const SparseColumns& x)
      : cuts(x.n_columns), kept(x.n_columns), zero_code(x.n_columns, 0), codes(x.values.n_rows) {}
};

// Work space of one thread.
template <class Real>
struct ColumnScratch {
  Scratch distinct;
  ColumnSummary summary;
  CutMemory cuts;
  CutSearch<Real> search;
  Buffer<Real> values;
  Buffer<std::uint16_t> codes;
  std::vector<std::int64_t> units;
  std::vector<std::int64_t> counts;

  void reserve(std::size_t size) {
    if (values.size() >= size) return;
    values = Buffer<Real>(2 * size);
    codes = Buffer<std::uint16_t>(2 * size);
  }
};

// Distinct values and their weights, with the zeros that are not stored.
template <class Distinct>
void take_summary(const Distinct& distinct, std::int64_t zero_weight, ColumnSummary& out) {
  out.values.clear();
  out.weights.clear();
  std::int64_t before = 0;
  for (std::size_t i = 0; i < distinct.n_distinct; ++i) {
    const std::int64_t through =
        distinct.weighted() ? distinct.weights[i] : static_cast<std::int64_t>(distinct.other[i]);
    out.values.push_back(distinct.value(i));
    out.weights.push_back(through - before);
    before = through;
  }
  if (zero_weight == 0) return;
  const auto at = std::lower_bound(out.values.begin(), out.values.end(), 0.0);
  const auto weight = out.weights.begin() + (at - out.values.begin());
  if (at != out.values.end() && *at == 0.0) {
    *weight += zero_weight;
  } else {
    out.weights.insert(weight, zero_weight);
    out.values.insert(at, 0.0);
  }
}

// Whether any split leaves enough rows on both sides, with missing values on either.
bool can_split(const std::vector<std::int64_t>& counts, const ColumnCuts& cuts, std::int64_t n_rows,
               std::int64_t least) {
  const std::size_t n_value_bins = cuts.cuts.size() + 1;
  const std::int64_t missing = cuts.has_missing ? counts[n_value_bins] : 0;
  std::int64_t left = 0;
  for (std::size_t bin = 0; bin < n_value_bins; ++bin) {
    left += counts[bin];
    if (large_enough(left, n_rows, least) || large_enough(left + missing, n_rows, least)) return true;
  }
  return false;
}

template <class Real>
class ColumnCoder {
 public:
  ColumnCoder(const SparseColumns& x, const SparseBinning& options, const Units& units, CodedColumns& out)
      : x_(x), options_(options), units_(units), out_(out) {}

  void code(std::size_t column, ColumnScratch<Real>& s) const {
    // All zeros are on one side of a split, and of the stored cells there are too few for the other.
    if (static_cast<std::int64_t>(x_.size(column)) < options_.least_rows) return leave_out(column);
    load(column, s);
    out_.cuts[column] = cuts_of(column, s);
    find_codes(column, s);
    const auto n_rows = static_cast<std::int64_t>(x_.n_rows);
    if (options_.least_rows > 0 && !can_split(s.counts, out_.cuts[column], n_rows, options_.least_rows))
      return leave_out(column);
    out_.kept[column] = kept_as(column, s.counts);
  }

 private:
  void leave_out(std::size_t column) const {
    out_.cuts[column] = {};
    out_.kept[column].left_out = true;
  }

  std::size_t first(std::size_t column) const { return static_cast<std::size_t>(x_.begin[column]); }

  // The values, and a zero behind them.
  void load(std::size_t column, ColumnScratch<Real>& s) const {
    const std::size_t n = x_.size(column);
    s.reserve(n + 1);
    load_block(x_.values, first(column), n, 0, 1, s.values.data(), n);
    s.values[n] = Real{0};
  }

  ColumnCuts cuts_of(std::size_t column, ColumnScratch<Real>& s) const {
    const std::size_t n = x_.size(column);
    const bool weighted = !units_.of_row.empty();
    std::int64_t zero_weight = units_.total - static_cast<std::int64_t>(n);
    if (weighted) {
      s.units.resize(n);
      zero_weight = units_.total;
      for (std::size_t i = 0; i < n; ++i) {
        s.units[i] = units_.of_row[static_cast<std::size_t>(x_.rows[first(column) + i])];
        zero_weight -= s.units[i];
      }
    }
    with_distinct(s.values.data(), n, weighted ? s.units.data() : nullptr, s.distinct,
                  [&](const auto& distinct, bool has_missing) {
                    take_summary(distinct, zero_weight, s.summary);
                    s.summary.has_missing = has_missing;
                  });
    return cuts_of_summary(s.summary, options_.max_bins, false, column, s.cuts);
  }

  void find_codes(std::size_t column, ColumnScratch<Real>& s) const {
    const ColumnCuts& cuts = out_.cuts[column];
    const std::size_t n = x_.size(column);
    s.search.take(cuts.cuts);
    s.search.find(s.values.data(), n + 1, s.codes.data());
    std::copy(s.codes.data(), s.codes.data() + n, out_.codes.data() + first(column));
    out_.zero_code[column] = s.codes[n];
    s.counts.assign(cuts.cuts.size() + 1 + (cuts.has_missing ? 1 : 0), 0);
    for (std::size_t i = 0; i < n; ++i) ++s.counts[s.codes[i]];
    s.counts[s.codes[n]] += static_cast<std::int64_t>(x_.n_rows - n);
  }

  FrequentBin kept_as(std::size_t column, const std::vector<std::int64_t>& counts) const {
    FrequentBin kept = frequent_bin(counts.data(), counts.size(), x_.n_rows);
    const bool zeros_are_skipped = kept.code == out_.zero_code[column] || x_.size(column) == x_.n_rows;
    const std::size_t n_listed = x_.n_rows - static_cast<std::size_t>(counts[kept.code]);
    kept.keeps_codes =
        options_.keeps_codes || !kept.skipped || !zeros_are_skipped || n_listed * kRowsPerListed > x_.n_rows;
    return kept;
  }

  const SparseColumns& x_;
  const SparseBinning& options_;
  const Units& units_;
  CodedColumns& out_;
};

CodedColumns code_columns(const SparseColumns& x, const SparseBinning& options) {
  CodedColumns out(x);
  const Units units(options.weight, x.n_rows);
  with_real(x.values.dtype, [&](auto zero) {
    using Real = decltype(zero);
    const ColumnCoder<Real> coder(x, options, units, out);
    std::vector<ColumnScratch<Real>> scratch(static_cast<std::size_t>(std::max(options.n_threads, 1)));
    const std::size_t n_pieces = (x.n_columns + kColumnsTogether - 1) / kColumnsTogether;
    parallel_for(options.n_threads, n_pieces, [&](std::size_t piece, int thread) {
      const std::size_t end = std::min(x.n_columns, (piece + 1) * kColumnsTogether);
      for (std::size_t column = piece * kColumnsTogether; column < end; ++column)
        coder.code(column, scratch[static_cast<std::size_t>(thread)]);
    });
  });
  return out;
}

// Calls visit(row, slot) for the stored cells outside of frequent bins, feature after feature.
template <class Visit>
void each_cell_to_list(const SparseColumns& x, const CodedColumns& coded, const FeatureTile& tile, Visit&& visit) {
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    const auto column = static_cast<std::size_t>(tile.features[position]);
    const auto end = static_cast<std::size_t>(x.begin[column + 1]);
    for (auto cell = static_cast<std::size_t>(x.begin[column]); cell < end; ++cell) {
      const std::uint32_t slot = tile.slot_begin[position] + coded.codes[cell];
      if (slot != tile.frequent_slot[position]) visit(static_cast<std::size_t>(x.rows[cell]), slot);
    }
  }
}

void fill_cells(const SparseColumns& x, const CodedColumns& coded, FeatureTile& tile) {
  std::vector<std::uint32_t>& row_begin = tile.cells.row_begin;
  row_begin.assign(x.n_rows + 1, 0);
  each_cell_to_list(x, coded, tile, [&](std::size_t row, std::uint32_t) { ++row_begin[row + 1]; });
  std::partial_sum(row_begin.begin(), row_begin.end(), row_begin.begin());
  tile.cells.slots = Buffer<std::uint16_t>(row_begin.back());
  std::vector<std::uint32_t> next(row_begin.begin(), row_begin.end() - 1);
  each_cell_to_list(x, coded, tile, [&](std::size_t row, std::uint32_t slot) {
    tile.cells.slots[next[row]++] = static_cast<std::uint16_t>(slot);
  });
}

template <class Code>
void fill_codes(const SparseColumns& x, const CodedColumns& coded, FeatureTile& tile) {
  const std::size_t k = tile.n_features();
  Code* codes = reinterpret_cast<Code*>(tile.codes.data());
  std::vector<Code> zeros(k);
  for (std::size_t position = 0; position < k; ++position)
    zeros[position] = static_cast<Code>(coded.zero_code[static_cast<std::size_t>(tile.features[position])]);
  for (std::size_t row = 0; row < x.n_rows; ++row) std::copy(zeros.begin(), zeros.end(), codes + row * k);
  for (std::size_t position = 0; position < k; ++position) {
    const auto column = static_cast<std::size_t>(tile.features[position]);
    const auto end = static_cast<std::size_t>(x.begin[column + 1]);
    for (auto cell = static_cast<std::size_t>(x.begin[column]); cell < end; ++cell)
      codes[static_cast<std::size_t>(x.rows[cell]) * k + position] = static_cast<Code>(coded.codes[cell]);
  }
}

}  // namespace

BinnedMatrix bin_sparse(const SparseColumns& x, const SparseBinning& options) {
  CodedColumns coded = code_columns(x, options);
  BinnedMatrix matrix;
  take_cuts(coded.cuts, matrix);
  lay_out_tiles(matrix, coded.kept, x.n_rows, options.n_threads);
  matrix.n_slots = matrix.tiles.empty() ? 0 : matrix.tiles.back().first_slot + matrix.tiles.back().n_slots();
  take_rooms(matrix, x.n_rows);
  parallel_for(options.n_threads, matrix.tiles.size(), [&](std::size_t at, int) {
    FeatureTile& tile = matrix.tiles[at];
    if (!tile.keeps_codes) {
      fill_cells(x, coded, tile);
      tile.feature_cells = list_by_features(tile);
      return;
    }
    tile.wide ? fill_codes<std::uint16_t>(x, coded, tile) : fill_codes<std::uint8_t>(x, coded, tile);
  });
  list_cells(matrix, options.n_threads);
  return matrix;
}

}  // namespace polyleaf
