// A grown tree as Python gets it.
#pragma once

#include "bindings/arrays.hpp"
#include "growth/grown_tree.hpp"

namespace polyleaf {

// `width`: values of a leaf.
inline nb::dict to_dict(GrownTree&& tree, std::size_t width) {
  nb::dict out;
  out["feature"] = to_numpy(std::move(tree.feature));
  out["bin"] = to_numpy(std::move(tree.bin));
  out["threshold"] = to_numpy(std::move(tree.threshold));
  out["missing_left"] = to_numpy(std::move(tree.missing_left));
  out["category_begin"] = to_numpy(std::move(tree.category_begin));
  out["category_bits"] = to_numpy(std::move(tree.category_bits));
  out["left"] = to_numpy(std::move(tree.left));
  out["gain"] = to_numpy(std::move(tree.gain));
  out["cover"] = to_numpy(std::move(tree.cover));
  out["count"] = to_numpy(std::move(tree.count));
  out["leaf"] = to_numpy(std::move(tree.leaf));
  out["values"] = to_numpy(std::move(tree.values), width);
  out["outputs"] = to_numpy(std::move(tree.outputs), width);
  return out;
}

// `width`: values of a leaf. `n_outputs`: those whose shares of the gain are known; 0: of none.
inline nb::dict to_dict_with_gains(GrownTree&& tree, std::size_t width, std::size_t n_outputs) {
  nb::dict shares;
  if (n_outputs > 0) {
    shares["gain_feature"] = to_numpy(std::move(tree.gain_feature));
    shares["output_gain"] = to_numpy(std::move(tree.output_gain), n_outputs);
  }
  nb::dict out = to_dict(std::move(tree), width);
  out.update(shares);
  return out;
}

}  // namespace polyleaf
