// Reads the sums of a feature's steps one after the other, wherever they stand; for files that are compiled once per
// instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/row_vector.hpp"
#include "kernels/steps.hpp"

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

class StepReader {
 public:
  // `row`: the first of the rows to be read.
  explicit StepReader(const StepSums& from, std::uint32_t row = 0)
      : from_(from), width_(static_cast<std::size_t>(from.width)), row_(row) {}

  // Calls add(vector) for the vectors that make up the next step.
  template <class Add>
  void next(const Step& step, Add&& add) {
    if (from_.histogram != nullptr) return add(from_.histogram + step.slot * width_);
    each_row(step, add);
  }
  // Whether steps are made of rows, and then: calls add(vector) for each row up to the end of a step.
  bool reads_rows() const { return from_.histogram == nullptr; }
  template <class Add>
  void each_row(const Step& last, Add&& add) {
    for (; row_ < last.rows_end; ++row_) add(from_.payload + from_.order[row_] * width_);
  }
  template <class Add>
  void missing(Add&& add) const {
    if (from_.histogram == nullptr)
      for (std::uint32_t i = from_.n_rows - from_.n_missing; i < from_.n_rows; ++i)
        add(from_.payload + from_.order[i] * width_);
    else if (from_.missing != nullptr)
      add(from_.missing);
  }

  // Adds the vectors of the next step to sums.
  void add_next(const Step& step, std::int32_t* sums) {
    if (from_.histogram != nullptr) {
      const std::int32_t* bin = from_.histogram + step.slot * width_;
      for (std::size_t c = 0; c < width_; ++c) sums[c] += bin[c];
      return;
    }
    sum_rows_of_payload(from_.payload, from_.width, from_.order + row_, step.rows_end - row_, sums);
    row_ = step.rows_end;
  }
  // Of missing values: a vector of the histogram, or their sums in `room`, which holds zeros.
  const std::int32_t* missing_sums(std::int32_t* room) const {
    if (from_.histogram != nullptr) return from_.missing;
    sum_rows_of_payload(from_.payload, from_.width, from_.order + (from_.n_rows - from_.n_missing), from_.n_missing,
                        room);
    return room;
  }

 private:
  const StepSums& from_;
  const std::size_t width_;
  std::uint32_t row_;
};

}  // namespace
}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
