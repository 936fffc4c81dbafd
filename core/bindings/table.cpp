#include <cmath>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/rooms.hpp"
#include "table/cuts.hpp"
#include "table/infinity.hpp"
#include "table/take_rows.hpp"

namespace polyleaf {
namespace {

BinnedMatrix bin_table(const Table& table, const std::optional<Vector<double>>& weight, std::optional<int> max_bins,
                       int n_threads, std::size_t first_column,
                       const std::optional<Vector<std::uint8_t>>& categorical) {
  MatrixView x = view_of(table);
  x.first_column = first_column;
  const double* w = data_or_null(weight, x.n_rows, "weight: one value per row");
  const std::uint8_t* categories = data_or_null(categorical, x.n_columns, "categorical: one value per feature");
  expect(x.n_rows > 0 && x.n_columns > 0, "the table is empty");
  expect(x.n_rows <= 0x1fffffff, "at most 2^29 - 1 rows");
  expect(!max_bins || (*max_bins >= 2 && *max_bins <= 65534), "max_bins must lie in 2..65534");
  nb::gil_scoped_release release;
  return bin_matrix(x, find_cuts(x, w, max_bins.value_or(0), categories, n_threads), n_threads);
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

BinnedMatrix make_table_of_cuts(const nb::list& cuts, const Vector<std::uint8_t>& has_missing) {
  const std::size_t m = has_missing.shape(0);
  expect(m > 0 && cuts.size() == m, "cuts and has_missing: one each per feature");
  std::vector<ColumnCuts> columns(m);
  for (std::size_t f = 0; f < m; ++f) {
    const auto given = nb::cast<Vector<double>>(cuts[f]);
    const double* first = given.data();
    columns[f].cuts.assign(first, first + given.shape(0));
    columns[f].has_missing = has_missing.data()[f] != 0;
    expect(given.shape(0) < kMostDistinct, "at most 65,534 cuts a feature");
    for (std::size_t i = 0; i < given.shape(0); ++i)
      expect(std::isfinite(first[i]) && (i == 0 || first[i - 1] < first[i]), "cuts must be finite and ascend");
  }
  return table_of_cuts(std::move(columns));
}

BinnedMatrix join_parts(const nb::list& parts, int n_threads) {
  std::vector<BinnedMatrix> owned;
  for (nb::handle part : parts) owned.push_back(std::move(nb::cast<BinnedMatrix&>(part)));
  expect(!owned.empty(), "nothing to join");
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

nb::object units_of_weights(const Vector<double>& weight) {
  return to_numpy(weight_units(weight.data(), weight.shape(0)));
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
      .def("codes", &training_codes, "Codes of the training rows, rows x features; missing is the last bin.")
      .def("feature_combinations", &combinations_of_features,
           "Per feature, the number of the combination of neighbours that histograms may sum as one; -1: none.")
      .def(
          "encode", [](const BinnedMatrix& b, const Table& x, int n_threads) { return encode_table(x, b, n_threads); },
          "table"_a, "n_threads"_a, "Codes of other rows by the same cut points.")
      .def("take", &take, "rows"_a, "n_threads"_a, "Some rows, in this order, as a table of their own.");
  m.def("bin_table", &bin_table, "table"_a, "weight"_a.none(), "max_bins"_a.none(), "n_threads"_a, "first_column"_a = 0,
        "categorical"_a.none() = nb::none());
  m.def("table_of_cuts", &make_table_of_cuts, "cuts"_a, "has_missing"_a, "A table of no rows with these cut points.");
  m.def("interleaved_codes", &codes_side_by_side, "matrix"_a, "size"_a, "n_threads"_a,
        "Codes of the training rows: parts of neighbouring features x rows x features of a part.");
  m.def("weight_units", &units_of_weights, "weight"_a, "Weights as whole numbers, as the cuts see them.");
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
