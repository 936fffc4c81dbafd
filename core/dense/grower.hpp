// Trees by histograms over all outputs, whose gradients are dense arrays.
#pragma once

#include <cstdint>

#include "base/buffer.hpp"
#include "growth/contract.hpp"
#include "growth/grow_tree.hpp"
#include "quantize/payload.hpp"

namespace polyleaf {

// Keeps its work space from round to round.
class DenseGrower : public Grower {
 public:
  GrownTree grow(const GrowTask& task, const GrowSettings& settings) override;

 private:
  Payload payload_;
  Buffer<std::int32_t> histograms_;
  TreeGrowth growth_;
};

}  // namespace polyleaf
