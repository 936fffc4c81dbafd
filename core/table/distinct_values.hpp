// The distinct values of a column, and the weight of each.
#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix_view.hpp"
#include "base/number_keys.hpp"

namespace polyleaf {

// The values of a column as keys, then its distinct values, ascending, with the weight of each together with those
// before it.
template <class Real>
struct Summary {
  using Key = KeyOf<Real>;
  std::vector<Key> keys, other;
  std::vector<std::int64_t> weights, other_weights;  // empty: every row weighs 1, and the counts stand in `other`
  std::size_t n_distinct = 0;

  bool weighted() const { return !weights.empty(); }
  double value(std::size_t i) const { return value_of<Real>(keys[i]); }
};

// A hash table of the distinct values.
struct FewTable {
  std::vector<std::uint32_t> count;  // 0: free, as all are between columns
  std::vector<std::uint64_t> key;
  std::vector<std::int64_t> weight;
  std::vector<std::size_t> used;
};

struct alignas(128) Scratch {  // threads do not share lines of memory
  Summary<float> narrow;
  Summary<double> wide;
  FewTable table;
};

// Half as many digits to sort by where float64 holds float32 values or small integers.
bool all_fit_float(const float* values, std::size_t n);
bool all_fit_float(const double* values, std::size_t n);

// Finds the distinct values of a column of n; returns whether any is missing. `weight` may be null: every row then
// weighs 1.
template <class Real, class Value>
bool summarise(const Value* values, std::size_t n, const std::int64_t* weight, Summary<Real>& s, FewTable& table);

// Calls visit(summary, has_missing) with the distinct values of a column of n.
template <class Value, class Visit>
void with_distinct(const Value* values, std::size_t n, const std::int64_t* weight, Scratch& scratch, Visit&& visit) {
  if (all_fit_float(values, n)) {
    const bool has_missing = summarise(values, n, weight, scratch.narrow, scratch.table);
    visit(scratch.narrow, has_missing);
  } else {
    const bool has_missing = summarise(values, n, weight, scratch.wide, scratch.table);
    visit(scratch.wide, has_missing);
  }
}

// What is known of a column of some rows, and adds up with that of others.
struct ColumnSummary {
  std::vector<double> values;  // distinct, ascending
  std::vector<std::int64_t> weights;
  bool has_missing = false;
};

// Of each column. `units` are the weights of the rows as whole numbers (weight_units); null: each weighs 1.
std::vector<ColumnSummary> summarise_columns(const MatrixView& x, const std::int64_t* units, int n_threads);

}  // namespace polyleaf
