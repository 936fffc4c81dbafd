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
nb::object sums_of_columns(const RowMatrix<Number>& values, const std::optional<Matrix<double>>& weight, bool squares,
                           int n_threads, const nb::object& peers) {
  const ConnectedShard shard(peers);
  const std::size_t n = values.shape(0), d = values.shape(1);
  expect((n > 0 || !shard.get().is_alone()) && d > 0 && (values.stride(1) == 1 || d == 1 || n == 0),
         "values: rows in one piece");
  WeightedMatrix<Number> matrix{values.data(), static_cast<std::size_t>(values.stride(0)), n, d, nullptr, 0};
  if (weight) {
    expect(weight->shape(0) == n && (weight->shape(1) == 1 || weight->shape(1) == d), "weight: of rows or of cells");
    matrix.weight = weight->data();
    matrix.weight_stride = weight->shape(1) == 1 ? 0 : d;
  }
  std::vector<double> sums;
  {
    nb::gil_scoped_release release;
    sums = column_sums(matrix, squares, n_threads, shard.get());
  }
  return to_numpy(std::move(sums));
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

nb::object quantile_of(const Vector<double>& values, const std::optional<Vector<double>>& weight, double level,
                       const nb::object& peers) {
  const ConnectedShard shard(peers);
  const double* weights = data_or_null(weight, values.shape(0), "weight: one of each");
  std::vector<double> plain;
  std::vector<WeightedResidual> weighed;
  for (std::size_t i = 0; i < values.shape(0); ++i) {
    const double value = values.data()[i] + 0.0;  // -0.0 equals 0.0: which of them comes first does not count
    if (weights == nullptr)
      plain.push_back(value);
    else if (weights[i] > 0)
      weighed.push_back({value, weights[i]});
  }
  const bool weighted = weights != nullptr;
  double found;
  {
    nb::gil_scoped_release release;
    if (shard.get().is_alone())
      found = weighted ? residual_quantile(weighed, level) : residual_quantile(plain, level);
    else
      found = shared_quantiles({weighted ? sort_numbers(weighed) : sort_numbers(plain)}, {level}, weighted, shard.get(),
                               1)[0];
  }
  return nb::cast(found);
}

}  // namespace

void bind_sums(nb::module_& m) {
  m.def("column_sums", &sums_of_columns<float>, "values"_a, "weight"_a.none(), "squares"_a, "n_threads"_a,
        "peers"_a.none() = nb::none(),
        "Per column the weighted sum of its numbers, or of their squares, in whatever order the rows are.");
  m.def("column_sums", &sums_of_columns<double>, "values"_a, "weight"_a.none(), "squares"_a, "n_threads"_a,
        "peers"_a.none() = nb::none());
  m.def("group_sums", &sums_of_groups, "values"_a.none(), "group"_a, "n_groups"_a, "peers"_a.none() = nb::none(),
        "Per group the sum of its numbers (None: of ones), in whatever order they are.");
  m.def("quantile", &quantile_of, "values"_a, "weight"_a.none(), "level"_a, "peers"_a.none() = nb::none(),
        "The weighted quantile that leaf values are renewed with; 0 without values of any weight.");
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
