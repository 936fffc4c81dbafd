#include <algorithm>
#include <vector>

#include "base/order_free.hpp"
#include "bindings/arrays.hpp"
#include "bindings/peers.hpp"
#include "bindings/rooms.hpp"
#include "leaves/shared_quantiles.hpp"
#include "quantize/bounds.hpp"

namespace polyleaf {
namespace {

// The shards that a Python object connects; None: there is one.
class ConnectedShard {
 public:
  explicit ConnectedShard(const nb::object& peers) {
    if (peers.is_none()) return;
    peers_ = std::make_unique<PythonPeers>(peers);
    shard_ = Shard(*peers_, 0, {});
  }
  const Shard& get() const { return shard_; }

 private:
  std::unique_ptr<PythonPeers> peers_;
  Shard shard_;
};

template <class Number>
WeightedMatrix<Number> checked_matrix(const RowMatrix<Number>& values, const std::optional<Matrix<double>>& weight,
                                      const Shard& shard) {
  const std::size_t n = values.shape(0), d = values.shape(1);
  expect((n > 0 || !shard.is_alone()) && d > 0 && (values.stride(1) == 1 || d == 1 || n == 0),
         "values: rows in one piece");
  WeightedMatrix<Number> matrix{values.data(), static_cast<std::size_t>(values.stride(0)), n, d, nullptr, 0};
  if (weight) {
    expect(weight->shape(0) == n && (weight->shape(1) == 1 || weight->shape(1) == d), "weight: of rows or of cells");
    matrix.weight = weight->data();
    matrix.weight_stride = weight->shape(1) == 1 ? 0 : d;
  }
  return matrix;
}

template <class Number>
nb::object sums_of_columns(const RowMatrix<Number>& values, const std::optional<Matrix<double>>& weight, bool squares,
                           int n_threads, const nb::object& peers) {
  const ConnectedShard shard(peers);
  const WeightedMatrix<Number> matrix = checked_matrix(values, weight, shard.get());
  std::vector<double> sums;
  {
    nb::gil_scoped_release release;
    sums = column_sums(matrix, squares, n_threads, shard.get());
  }
  return to_numpy(std::move(sums));
}

nb::object means_of_columns(const RowMatrix<double>& values, const std::optional<Matrix<double>>& weight,
                            const nb::object& peers) {
  const ConnectedShard shard(peers);
  const WeightedMatrix<double> matrix = checked_matrix(values, weight, shard.get());
  std::vector<double> means;
  {
    nb::gil_scoped_release release;
    means = column_means(matrix, shard.get());
  }
  return to_numpy(std::move(means));
}

nb::object sums_of_groups(const std::optional<Vector<double>>& values, const Vector<std::int32_t>& group,
                          std::size_t n_groups, const nb::object& peers) {
  const ConnectedShard shard(peers);
  const std::size_t n = group.shape(0);
  for (std::size_t i = 0; i < n; ++i)
    expect(group.data()[i] >= 0 && static_cast<std::size_t>(group.data()[i]) < n_groups, "a group is out of range");
  const double* numbers = data_or_null(values, n, "values: one of each");
  std::vector<double> sums;
  {
    nb::gil_scoped_release release;
    sums = group_sums(numbers, group.data(), n, n_groups, shard.get());
  }
  return to_numpy(std::move(sums));
}

// The numbers of one column, with weights where there are any; those of weight 0 are left out.
struct ColumnNumbers {
  std::vector<double> plain;
  std::vector<WeightedResidual> weighed;

  ColumnNumbers(const Matrix<double>& values, const std::optional<Matrix<double>>& weight, std::size_t j) {
    const std::size_t n = values.shape(0), d = values.shape(1), n_weights = weight ? weight->shape(1) : 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double value = values.data()[i * d + j] + 0.0;  // -0.0 equals 0.0: which of them comes first does not count
      if (!weight) {
        plain.push_back(value);
        continue;
      }
      const double one = weight->data()[n_weights == 1 ? i : i * d + j];
      if (one > 0) weighed.push_back({value, one});
    }
  }
};

nb::object quantiles_of(const Matrix<double>& values, const std::optional<Matrix<double>>& weight,
                        const Vector<double>& levels, const nb::object& peers) {
  const ConnectedShard connected(peers);
  const Shard& shard = connected.get();
  const std::size_t n = values.shape(0), d = values.shape(1);
  expect(levels.shape(0) == d, "levels: one of each column");
  expect(!weight || (weight->shape(0) == n && (weight->shape(1) == 1 || weight->shape(1) == d)),
         "weight: of rows or of cells");
  std::vector<double> found;
  {
    nb::gil_scoped_release release;
    const std::size_t step = shard.is_alone() ? 1 : columns_at_once(n, shard);
    for (std::size_t first = 0; first < d; first += step) {
      std::vector<SortedNumbers> here;
      std::vector<double> wanted;
      for (std::size_t j = first; j < std::min(d, first + step); ++j) {
        ColumnNumbers column(values, weight, j);
        const double level = levels.data()[j];
        if (shard.is_alone()) {
          found.push_back(weight ? residual_quantile(column.weighed, level) : residual_quantile(column.plain, level));
          continue;
        }
        here.push_back(weight ? sort_numbers(column.weighed) : sort_numbers(column.plain));
        wanted.push_back(level);
      }
      if (shard.is_alone()) continue;
      const std::vector<double> some = shared_quantiles(std::move(here), wanted, weight.has_value(), shard, 1);
      found.insert(found.end(), some.begin(), some.end());
    }
  }
  return to_numpy(std::move(found));
}

}  // namespace

void bind_sums(nb::module_& m) {
  m.def("column_sums", &sums_of_columns<float>, "values"_a, "weight"_a.none(), "squares"_a, "n_threads"_a,
        "peers"_a.none() = nb::none(),
        "Per column the weighted sum of its numbers, or of their squares, in whatever order the rows are.");
  m.def("column_sums", &sums_of_columns<double>, "values"_a, "weight"_a.none(), "squares"_a, "n_threads"_a,
        "peers"_a.none() = nb::none());
  m.def("column_means", &means_of_columns, "values"_a, "weight"_a.none(), "peers"_a.none() = nb::none(),
        "Per column the weighted mean of its numbers, in whatever order the rows are; 0 without any weight.");
  m.def("group_sums", &sums_of_groups, "values"_a.none(), "group"_a, "n_groups"_a, "peers"_a.none() = nb::none(),
        "Per group the sum of its numbers (None: of ones), in whatever order they are.");
  m.def("quantiles", &quantiles_of, "values"_a, "weight"_a.none(), "levels"_a, "peers"_a.none() = nb::none(),
        "Per column the weighted quantile that leaf values are renewed with; 0 without values of any weight.");
  m.def(
      "sum_grid",
      [](double largest, double n_terms) {
        const SumGrid grid = sum_grid(largest, n_terms);
        return nb::make_tuple(grid.coarse, grid.fine);
      },
      "largest"_a, "n_terms"_a, "The grids of sums of so many numbers up to this magnitude.");
  m.def(
      "span_widely", [](const Vector<double>& weight) { return span_widely(weight.data(), weight.shape(0)); },
      "weight"_a, "Whether some weights are so much larger than others that sums of leaves are plain ones.");
}

}  // namespace polyleaf
