// Trees by histograms over all outputs, whose gradients are dense arrays.
#pragma once

#include <cstdint>

#include "growth/contract.hpp"
#include "growth/grow_tree.hpp"
#include "quantize/payload.hpp"
#include "search/histogram_search.hpp"

namespace polyleaf {

// Keeps its work space from round to round.
class DenseGrower : public Grower {
 public:
  GrownTree grow(const GrowTask& task, const GrowSettings& settings) override;
  // A tree whose splits stand, on all rows of the table: leaf values, covers and counts are those of the task. Neither
  // the task's sample nor its constraints, nor what splits are found on, is asked for.
  GrownTree refill(const GrowTask& task, const GrowSettings& settings, GrownTree tree);

 private:
  Payload payload_;
  HistogramMemory histograms_;
  TreeGrowth growth_;
};

}  // namespace polyleaf
