#include <cmath>
#include <limits>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/rooms.hpp"
#include "table/cuts.hpp"
#include "table/infinity.hpp"
#include "table/row_hashes.hpp"
#include "table/sparse_binning.hpp"
#include "table/table_parts.hpp"
#include "table/take_rows.hpp"

namespace polyleaf {
namespace {

constexpr std::int64_t kMostUnits = std::int64_t{1} << 52;  // of all rows together

void expect_bins(std::optional<int> max_bins) {
  expect(!max_bins || (*max_bins >= 2 && *max_bins <= 65534), "max_bins must lie in 2..65534");
}

BinnedMatrix bin_table(const Table& table, const std::optional<Vector<double>>& weight, std::optional<int> max_bins,
                       int n_threads, std::size_t first_column,
                       const std::optional<Vector<std::uint8_t>>& categorical) {
  MatrixView x = view_of(table);
  x.first_column = first_column;
  const double* w = data_or_null(weight, x.n_rows, "weight: one value per row");
  const std::uint8_t* categories = data_or_null(categorical, x.n_columns, "categorical: one value per feature");
  expect(x.n_rows > 0 && x.n_columns > 0, "the table is empty");
  expect(x.n_rows <= kMostRows, "at most 2^29 - 1 rows");
  expect_bins(max_bins);
  nb::gil_scoped_release release;
  return bin_matrix(x, find_cuts(x, w, max_bins.value_or(0), categories, n_threads), n_threads);
}

// Compiled code trusts what these say.
void check_columns_of_cells(const Vector<std::int64_t>& begin, const Vector<std::int32_t>& rows, std::size_t n_rows) {
  expect(begin.shape(0) > 1 && begin.data()[0] == 0, "begin: from 0 on, one more than columns");
  const std::size_t n_columns = begin.shape(0) - 1;
  for (std::size_t c = 0; c < n_columns; ++c) expect(begin.data()[c] <= begin.data()[c + 1], "begin must not fall");
  expect(begin.data()[n_columns] == static_cast<std::int64_t>(rows.shape(0)), "begin must end with the cells");
  for (std::size_t c = 0; c < n_columns; ++c) {
    std::int64_t before = -1;
    for (std::int64_t i = begin.data()[c]; i < begin.data()[c + 1]; ++i) {
      expect(rows.data()[i] > before, "the rows of a column must ascend");
      before = rows.data()[i];
    }
    expect(before < static_cast<std::int64_t>(n_rows), "a row is out of range");
  }
}

// Keeps the arrays alive that the columns point into.
class ColumnsOfArrays {
 public:
  ColumnsOfArrays(Table values, Vector<std::int32_t> rows, Vector<std::int64_t> begin, std::size_t n_rows)
      : values_(std::move(values)), rows_(std::move(rows)), begin_(std::move(begin)) {
    columns_.values = view_of(values_);
    expect(columns_.values.n_columns == 1 && columns_.values.n_rows == rows_.shape(0),
           "values: one column, with a row per cell");
    expect(n_rows > 0 && n_rows <= kMostRows, "1 to 2^29 - 1 rows");
    check_columns_of_cells(begin_, rows_, n_rows);
    columns_.rows = rows_.data();
    columns_.begin = begin_.data();
    columns_.n_rows = n_rows;
    columns_.n_columns = begin_.shape(0) - 1;
  }

  const SparseColumns& columns() const { return columns_; }

 private:
  Table values_;
  Vector<std::int32_t> rows_;
  Vector<std::int64_t> begin_;
  SparseColumns columns_;
};

BinnedMatrix bin_cells(const ColumnsOfArrays& cells, const std::optional<Vector<double>>& weight,
                       std::optional<int> max_bins, int n_threads, std::int64_t least_rows, bool keeps_codes) {
  SparseBinning options;
  options.weight = data_or_null(weight, cells.columns().n_rows, "weight: one value per row");
  expect_bins(max_bins);
  expect(least_rows >= 0, "least_rows must not be negative");
  options.max_bins = max_bins.value_or(0);
  options.least_rows = least_rows;
  options.keeps_codes = keeps_codes;
  options.n_threads = n_threads;
  nb::gil_scoped_release release;
  return bin_sparse(cells.columns(), options);
}

nb::object combinations_of_features(const BinnedMatrix& matrix) {
  std::vector<std::int32_t> combination_of(matrix.features.size(), -1);
  std::int32_t number = 0;
  for (const FeatureTile& tile : matrix.tiles) {
    const FeatureCombinations& combinations = tile.combinations;
    if (combinations.cells.empty()) continue;
    for (std::size_t at = 0; at < combinations.size(); ++at, ++number)
      for (std::uint32_t position = combinations.first[at]; position < combinations.first[at + 1]; ++position)
        combination_of[static_cast<std::size_t>(tile.features[position])] = number;
  }
  return to_numpy(std::move(combination_of));
}

template <class T>
std::vector<T> copied(const Vector<T>& array) {
  return std::vector<T>(array.data(), array.data() + array.shape(0));
}

BinnedMatrix make_table_of_cuts(const nb::list& cuts, const Vector<std::uint8_t>& has_missing,
                                const std::optional<nb::list>& categories,
                                const std::optional<Vector<std::int64_t>>& counts, std::size_t n_rows, int n_threads) {
  const std::size_t m = has_missing.shape(0);
  expect(m > 0 && cuts.size() == m, "cuts and has_missing: one each per feature");
  expect(!categories || categories->size() == m, "categories: an array or None per feature");
  std::vector<ColumnCuts> columns(m);
  for (std::size_t f = 0; f < m; ++f) {
    columns[f].cuts = copied(nb::cast<Vector<double>>(cuts[f]));
    columns[f].has_missing = has_missing.data()[f] != 0;
    columns[f].categorical = categories && !(*categories)[f].is_none();
    if (columns[f].categorical) columns[f].categories = copied(nb::cast<Vector<std::uint32_t>>((*categories)[f]));
  }
  check_columns(columns);
  if (!counts) return table_of_cuts(std::move(columns), nullptr, n_rows, n_threads);
  const std::vector<std::int64_t> counted = copied(*counts);
  for (const std::int64_t count : counted) expect(count >= 0, "counts must not be negative");
  return table_of_cuts(std::move(columns), &counted, n_rows, n_threads);
}

nb::object sample_counts(const BinnedMatrix& matrix, const Table& table, int n_threads) {
  const MatrixView x = view_of(table);
  expect(x.n_columns == matrix.features.size(), "the table has another number of columns");
  std::vector<std::int64_t> counts;
  {
    nb::gil_scoped_release release;
    counts = count_sample(x, matrix, n_threads);
  }
  return to_numpy(std::move(counts));
}

BinnedMatrix bin_others(const BinnedMatrix& matrix, const Table& table, int n_threads) {
  const MatrixView x = view_of(table);
  expect(x.n_columns == matrix.features.size(), "the table has another number of columns");
  expect(x.n_rows <= kMostRows, "at most 2^29 - 1 rows");
  nb::gil_scoped_release release;
  return bin_like(x, matrix, n_threads);
}

nb::list summaries(const Table& table, const std::optional<Vector<std::int64_t>>& units, int n_threads) {
  const MatrixView x = view_of(table);
  expect(x.n_rows <= kMostRows, "at most 2^29 - 1 rows");
  const std::int64_t* given = data_or_null(units, x.n_rows, "units: one per row");
  std::vector<ColumnSummary> columns;
  {
    nb::gil_scoped_release release;
    columns = summarise_columns(x, given, n_threads);
  }
  nb::list out;
  for (ColumnSummary& column : columns)
    out.append(
        nb::make_tuple(to_numpy(std::move(column.values)), to_numpy(std::move(column.weights)), column.has_missing));
  return out;
}

nb::object cuts_of_values(const Vector<double>& values, const Vector<std::int64_t>& weights,
                          std::optional<int> max_bins, bool categorical, std::size_t column) {
  const std::size_t n = values.shape(0);
  expect(weights.shape(0) == n, "weights: one per value");
  expect(n <= static_cast<std::size_t>(std::numeric_limits<int>::max()), "at most 2^31 - 1 values");
  expect_bins(max_bins);
  ColumnSummary summary;
  summary.values = copied(values);
  summary.weights = copied(weights);
  std::int64_t left = kMostUnits;
  for (std::size_t i = 0; i < n; ++i) {
    expect(std::isfinite(summary.values[i]) && (i == 0 || summary.values[i - 1] < summary.values[i]),
           "values must be finite and ascend");
    expect(summary.weights[i] >= 1 && summary.weights[i] < left,
           "weights must be whole numbers from 1 on, together less than 2^52");
    left -= summary.weights[i];
  }
  CutMemory memory;
  ColumnCuts cuts = cuts_of_summary(summary, max_bins.value_or(0), categorical, column, memory);
  return nb::make_tuple(to_numpy(std::move(cuts.cuts)), to_numpy(std::move(cuts.categories)));
}

BinnedMatrix join_parts(const nb::list& parts, int n_threads) {
  std::vector<BinnedMatrix> owned;
  for (nb::handle part : parts) owned.push_back(std::move(nb::cast<BinnedMatrix&>(part)));
  expect(!owned.empty(), "nothing to join");
  for (const BinnedMatrix& part : owned) expect(part.is_whole(), "a part does not have all codes");
  for (const BinnedMatrix& part : owned) expect(part.n_rows == owned.front().n_rows, "parts of different rows");
  nb::gil_scoped_release release;
  return join_columns(std::move(owned), n_threads);
}

nb::object encode_table(const Table& table, const BinnedMatrix& matrix, int n_threads) {
  const MatrixView x = view_of(table);
  expect(x.n_columns == matrix.features.size(), "the table has another number of columns");
  std::vector<std::uint16_t> codes;
  {
    nb::gil_scoped_release release;
    codes = encode(x, matrix, n_threads);
  }
  return to_numpy(std::move(codes), x.n_columns);
}

nb::object training_codes(const BinnedMatrix& matrix) {
  const std::size_t m = matrix.features.size();
  std::vector<std::uint16_t> codes(matrix.n_rows * m);
  for (std::size_t row = 0; row < matrix.n_rows; ++row)
    for (std::size_t f = 0; f < m; ++f) codes[row * m + f] = static_cast<std::uint16_t>(matrix.code(row, f));
  return to_numpy(std::move(codes), m);
}

nb::object codes_side_by_side(const BinnedMatrix& matrix, std::size_t size, int n_threads) {
  expect(size > 0 && size <= 256, "size must lie in 1..256");
  const std::size_t n_parts = (matrix.features.size() + size - 1) / size;
  std::vector<std::uint8_t> codes;
  {
    nb::gil_scoped_release release;
    codes = interleaved_codes(matrix, size, n_threads);
  }
  return to_numpy(std::move(codes), size).attr("reshape")(n_parts, matrix.n_rows, size);
}

nb::object units_of_weights(const Vector<double>& weight, std::optional<double> total) {
  const std::size_t n = weight.shape(0);
  const double own = weight_total(weight.data(), n);
  // A little less than all weights is what sums in another order may come to.
  expect(!total || *total >= 0.99 * own, "the total is less than the sum of the weights");
  return to_numpy(weight_units(weight.data(), n, std::isfinite(own) ? total.value_or(own) : own));
}

nb::object hashes_of_rows(const BinnedMatrix& matrix, int n_threads) {
  std::vector<std::uint64_t> hashes;
  {
    nb::gil_scoped_release release;
    hashes = row_hashes(matrix, n_threads);
  }
  return to_numpy(std::move(hashes));
}

BinnedMatrix take(const BinnedMatrix& matrix, const Vector<std::uint32_t>& rows, int n_threads) {
  const std::uint32_t* taken = checked_rows(rows, matrix, true);
  nb::gil_scoped_release release;
  return take_rows(matrix, taken, rows.shape(0), n_threads);
}

}  // namespace

void bind_table(nb::module_& m) {
  nb::class_<BinnedMatrix>(m, "BinnedMatrix", "The training table as bin codes.")
      .def_prop_ro("n_rows", [](const BinnedMatrix& b) { return b.n_rows; })
      .def_prop_ro("n_features", [](const BinnedMatrix& b) { return b.features.size(); })
      .def(
          "cuts",
          [](const BinnedMatrix& b, std::size_t f) {
            expect(f < b.features.size(), "feature out of range");
            return to_numpy(std::vector<double>(b.features[f].cuts));
          },
          "feature"_a)
      .def(
          "has_missing",
          [](const BinnedMatrix& b, std::size_t f) {
            expect(f < b.features.size(), "feature out of range");
            return b.features[f].has_missing;
          },
          "feature"_a)
      .def(
          "categories",
          [](const BinnedMatrix& b, std::size_t f) {
            expect(f < b.features.size(), "feature out of range");
            return to_numpy(std::vector<std::uint32_t>(b.features[f].categories));
          },
          "feature"_a, "The category of each bin; none of a numeric feature.")
      .def_prop_ro(
          "is_whole", [](const BinnedMatrix& b) { return b.is_whole(); },
          "Whether the codes of all features are kept, one for each row.")
      .def_prop_ro(
          "n_in_tiles", [](const BinnedMatrix& b) { return b.n_in_tiles(); },
          "Features that are kept; the others have one bin, and cannot be split.")
      .def_prop_ro(
          "n_listing_cells", [](const BinnedMatrix& b) { return b.n_listing_cells(); },
          "Features of which the cells outside of the most frequent bin are listed feature by feature.")
      .def("codes", &training_codes, "Codes of the training rows, rows x features; missing is the last bin.")
      .def("feature_combinations", &combinations_of_features,
           "Per feature, the number of the combination of neighbours that histograms may sum as one; -1: none.")
      .def(
          "encode", [](const BinnedMatrix& b, const Table& x, int n_threads) { return encode_table(x, b, n_threads); },
          "table"_a, "n_threads"_a, "Codes of other rows by the same cut points.")
      .def("sample_counts", &sample_counts, "table"_a, "n_threads"_a,
           "How many rows of a sample of a table are in each bin, feature after feature.")
      .def("bin_like", &bin_others, "table"_a, "n_threads"_a, "Other rows with these bins and tiles.")
      .def("row_hashes", &hashes_of_rows, "n_threads"_a, "A hash of the codes of each row.")
      .def("take", &take, "rows"_a, "n_threads"_a, "Some rows, in this order, as a table of their own.");
  m.def("bin_table", &bin_table, "table"_a, "weight"_a.none(), "max_bins"_a.none(), "n_threads"_a, "first_column"_a = 0,
        "categorical"_a.none() = nb::none());
  nb::class_<ColumnsOfArrays>(m, "SparseColumns",
                              "A table of which cells that are not stored are zeros, by its columns: the values of the "
                              "cells, their rows, and where those of each column begin.")
      .def(nb::init<Table, Vector<std::int32_t>, Vector<std::int64_t>, std::size_t>(), "values"_a, "rows"_a, "begin"_a,
           "n_rows"_a);
  m.def("bin_sparse", &bin_cells, "columns"_a, "weight"_a.none(), "max_bins"_a.none(), "n_threads"_a,
        "least_rows"_a = 0, "keeps_codes"_a = true,
        "Columns that no split leaves `least_rows` rows of on both sides are left out. Without codes, of columns with "
        "few cells outside of their most frequent bin these alone are kept.");
  m.def("table_of_cuts", &make_table_of_cuts, "cuts"_a, "has_missing"_a, "categories"_a.none() = nb::none(),
        "counts"_a.none() = nb::none(), "n_rows"_a = 0, "n_threads"_a = 1,
        "A table of no rows with these cut points, and the tiles that a table with such counts of bins would have.");
  m.def("summarise_columns", &summaries, "table"_a, "units"_a.none(), "n_threads"_a,
        "Per column its distinct values, ascending, their weights or counts, and whether any is missing.");
  m.def("cuts_of_values", &cuts_of_values, "values"_a, "weights"_a, "max_bins"_a.none(), "categorical"_a = false,
        "column"_a = 0, "Cut points, and categories, of a column with these distinct values.");
  m.def("interleaved_codes", &codes_side_by_side, "matrix"_a, "size"_a, "n_threads"_a,
        "Codes of the training rows: parts of neighbouring features x rows x features of a part.");
  m.def("weight_units", &units_of_weights, "weight"_a, "total"_a.none() = nb::none(),
        "Weights as whole numbers, as the cuts see them. The total of all rows, where these are only some.");
  m.def("join_columns", &join_parts, "parts"_a, "n_threads"_a, "Tables of the same rows side by side; empties them.");
  m.def(
      "has_infinity",
      [](const Table& table, int n_threads) {
        const MatrixView x = view_of(table);
        nb::gil_scoped_release release;
        return has_infinity(x, n_threads);
      },
      "table"_a, "n_threads"_a);
}

}  // namespace polyleaf
