// A task of the growth contract as Python puts it together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/peers.hpp"
#include "growth/contract.hpp"

namespace polyleaf {

// Keeps the arrays alive that its task points into. What has to fit the table is checked where it is set; what has to
// go together, where a grower takes the task.
class TaskOfArrays {
 public:
  using Scores = nb::ndarray<double, nb::ndim<2>, nb::device::cpu>;

  // The matrix must outlive the task.
  TaskOfArrays(const BinnedMatrix& matrix, std::optional<Vector<double>> weight);

  void set_leaf_gradients(RowMatrix<float> gradient, std::optional<RowMatrix<float>> hessian,
                          const std::string& hessian_rule, Vector<double> unit,
                          std::optional<Vector<std::int32_t>> label);
  // The same of gradients that are not stored. Both they and what they are made of must outlive the task.
  void set_made_gradients(const MadeGradients& made, const std::string& hessian_rule, Vector<double> unit);
  void set_split_gradients(RowMatrix<float> gradient, std::optional<RowMatrix<float>> hessian,
                           std::optional<Vector<float>> curvature, Vector<double> gain_weight, Vector<double> unit);
  // The rows of the table are one of several shards. `n_all_rows`: in all of them; `runs`: which numbers those here
  // have among these (RowRun). To be set first.
  void set_shard(nb::object peers, std::size_t n_all_rows, Matrix<std::int64_t> runs);
  // With weights of their own while splits are found, leaf values come from all rows.
  void set_sample(Vector<std::uint32_t> rows, std::optional<Vector<double>> weight);
  void set_features(std::optional<Vector<std::uint8_t>> mask, double level_share, double node_share, std::uint64_t key);
  void set_interactions(Vector<std::int64_t> group_begin, Vector<std::int32_t> group_feature);
  void set_monotone(Matrix<std::int8_t> sign);
  void set_renewal(Vector<double> level, Matrix<double> y, Vector<std::int32_t> column,
                   std::optional<RowMatrix<double>> cell_weight);
  void set_raw(Scores raw);
  void set_leaf_of_row(OutVector<std::uint32_t> leaf_of_row);
  void set_learning_rate(double learning_rate) { task_.learning_rate = learning_rate; }
  void set_output_gains(bool wanted) { task_.output_gains = wanted; }

  // For a grower that takes dense gradients.
  const GrowTask& dense(const GrowSettings& settings) const;
  // The same where the splits stand.
  const GrowTask& of_leaves(const GrowSettings& settings) const;
  // For a grower that has the gradients of labels of so many rows and outputs.
  const GrowTask& label_sparse(const GrowSettings& settings, std::size_t n_rows, std::size_t n_outputs) const;

 private:
  template <class Array>
  auto keep(Array array) {
    auto* data = array.data();
    kept_.push_back(std::make_shared<Array>(std::move(array)));
    return data;
  }
  template <class T>
  const T* keep_rows(RowMatrix<T> array, std::size_t n_outputs, const char* name, std::size_t& stride);
  template <class T>
  const T* keep_vector(Vector<T> array, std::size_t size, const char* message);
  void set_gradients(RowMatrix<float> gradient, std::optional<RowMatrix<float>> hessian, Gradients& out);

  const BinnedMatrix& matrix_;
  GrowTask task_;
  std::unique_ptr<PythonPeers> peers_;                                // those of the task
  int raw_outputs_ = 0, monotone_outputs_ = 0, renewed_outputs_ = 0;  // that those arrays have
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace polyleaf
