// Monotone constraints: as a feature grows, the raw score of an output may only rise, or only fall.
//
// The values of two siblings are the best ones in the right order: each one's own, or the pooled value on both sides
// where their own would violate the order. Half-way between the two lies the bound that parts their subtrees: whatever
// is split below, everything on the one side stays below everything on the other. Gains are those of the values that
// the leaves will have.
#pragma once

#include <cstdint>
#include <memory>

#include "quantize/payload.hpp"
#include "rules/scoring.hpp"
#include "search/joint_score.hpp"

namespace polyleaf {

// `sign`: features x outputs; 1: rising, -1: falling, 0: free.
std::unique_ptr<JointScore> make_monotone_score(const OutputTerms& terms, const std::int8_t* sign);

}  // namespace polyleaf
