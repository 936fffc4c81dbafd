// Leaves from gradients that are dense arrays: values, renewed ones, bounds, and what each output gains.
#pragma once

#include <vector>

#include "growth/contract.hpp"
#include "growth/leaf_filler.hpp"
#include "quantize/bounds.hpp"
#include "quantize/payload.hpp"

namespace polyleaf {

class DenseLeafFiller : public LeafFiller {
 public:
  // `bounds`: of the leaves' gradients. `payload`: what the splits were found on; the bounds of its nodes are in its
  // units.
  DenseLeafFiller(const GrowTask& task, const GrowSettings& settings, const GradientBounds& bounds,
                  const Payload& payload)
      : task_(task), settings_(settings), bounds_(bounds), payload_(payload) {}

  void fill(const Order& order, const RowsInLeaves& places, GrownTree& tree) override;
  // Values and covers alone, which hang on no other node. Returns the sums they are made of (LeafSums::sum).
  std::vector<double> fill_values(const RowsInLeaves& places, GrownTree& tree);

 private:
  const GrowTask& task_;
  const GrowSettings& settings_;
  const GradientBounds& bounds_;
  const Payload& payload_;
};

}  // namespace polyleaf
