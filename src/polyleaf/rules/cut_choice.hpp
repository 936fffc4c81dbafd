// Which distinct values of a column a bin ends with. One rule for every device: no container, no standard header; the
// caller gives the memory.
#pragma once

#include "rules/rule.hpp"

namespace polyleaf {

// A threshold t with low <= t < high, halfway between where the grid of floating-point numbers allows.
POLYLEAF_RULE double between(double low, double high) {
  const double middle = low / 2 + high / 2;
  return middle >= low && middle < high ? middle : low;
}

// A column's distinct values, ascending: through[i] is the weight of the first i + 1 of them together. Each weighs a
// whole number of at least 1, and all together less than 2^52: sums and their halves are exact in float64.
template <class Weight>
struct ValueWeights {
  const Weight* through;
  int n_values;
};

// Of values [begin, end).
template <class Weight>
POLYLEAF_RULE double weight_of(const ValueWeights<Weight>& values, int begin, int end) {
  if (begin == end) return 0;
  return static_cast<double>(values.through[end - 1] - (begin > 0 ? values.through[begin - 1] : 0));
}

// A value of at least this weight is heavy: it has a bin of its own. There are at most max_bins such values.
template <class Weight>
POLYLEAF_RULE double bin_share(const ValueWeights<Weight>& values, int max_bins) {
  return weight_of(values, 0, values.n_values) / max_bins;
}

// The heavy values, ascending. Run r of light values, which may be empty, stands before heavy value r, the last run
// behind them all.
struct HeavyValues {
  const int* position;
  int count;
};

// What the choice needs of memory: an element of each for a run.
struct RunMemory {
  int* n_bins;
  double* remainder;
  int* order;
};

POLYLEAF_RULE int run_begin(const HeavyValues& heavy, int run) { return run > 0 ? heavy.position[run - 1] + 1 : 0; }

POLYLEAF_RULE int run_end(const HeavyValues& heavy, int run, int n_values) {
  return run < heavy.count ? heavy.position[run] : n_values;
}

POLYLEAF_RULE bool has_larger_remainder(const RunMemory& runs, int a, int b) {
  return runs.remainder[a] > runs.remainder[b] || (runs.remainder[a] == runs.remainder[b] && a < b);
}

// Moves order[at] down the heap of `size` runs, the smallest remainder on top.
POLYLEAF_RULE void sift_down(const RunMemory& runs, int at, int size) {
  const int run = runs.order[at];
  for (int child = 2 * at + 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && has_larger_remainder(runs, runs.order[child], runs.order[child + 1])) ++child;
    if (!has_larger_remainder(runs, run, runs.order[child])) break;
    runs.order[at] = runs.order[child];
    at = child;
  }
  runs.order[at] = run;
}

// Puts the largest remainders first, the first of equal ones first: a heap sort.
POLYLEAF_RULE void order_runs(const RunMemory& runs, int n_runs) {
  for (int r = 0; r < n_runs; ++r) runs.order[r] = r;
  for (int at = n_runs / 2 - 1; at >= 0; --at) sift_down(runs, at, n_runs);
  for (int size = n_runs - 1; size > 0; --size) {
    const int smallest = runs.order[0];
    runs.order[0] = runs.order[size];
    runs.order[size] = smallest;
    sift_down(runs, 0, size);
  }
}

// Gives each run its share of the bins by weight, the largest remainders first, and none more than it has values.
template <class Weight>
POLYLEAF_RULE void share_bins(const ValueWeights<Weight>& values, const HeavyValues& heavy, int n_bins,
                              const RunMemory& runs) {
  const int n_runs = heavy.count + 1;
  double total = 0;
  for (int r = 0; r < n_runs; ++r) {
    runs.n_bins[r] = 0;
    total += weight_of(values, run_begin(heavy, r), run_end(heavy, r, values.n_values));
  }
  if (total == 0) return;
  int given = 0;
  for (int r = 0; r < n_runs; ++r) {
    const int begin = run_begin(heavy, r), end = run_end(heavy, r, values.n_values);
    const double quota = weight_of(values, begin, end) / total * n_bins;
    runs.n_bins[r] = quota < end - begin ? static_cast<int>(quota) : end - begin;
    runs.remainder[r] = quota - runs.n_bins[r];
    given += runs.n_bins[r];
  }
  order_runs(runs, n_runs);
  for (bool more = true; more && given < n_bins;) {
    more = false;
    for (int k = 0; k < n_runs && given < n_bins; ++k) {
      const int r = runs.order[k];
      if (runs.n_bins[r] == run_end(heavy, r, values.n_values) - run_begin(heavy, r)) continue;
      ++runs.n_bins[r];
      ++given;
      more = true;
    }
  }
}

// Whether a bin that begins with value `begin` comes nearer to its share by ending with `last` than by taking the next
// value in.
template <class Weight>
POLYLEAF_RULE bool is_full(const ValueWeights<Weight>& values, int begin, int last, double share) {
  return weight_of(values, begin, last + 1) + 0.5 * weight_of(values, last + 1, last + 2) > share;
}

// The first value a bin that begins with `begin` is full with; end - 1 where none before it is. What is_full compares
// grows strictly from value to value, as each weighs something, and is exact: a search in steps that double, then
// by halves, finds the value that a walk would.
template <class Weight>
POLYLEAF_RULE int last_of_bin(const ValueWeights<Weight>& values, int begin, int end, double share) {
  int low = begin, high = end - 1;
  for (int step = 1; low + step < high; step *= 2) {
    if (is_full(values, begin, low + step - 1, share)) {
      high = low + step - 1;
      break;
    }
    low += step;
  }
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (is_full(values, begin, middle, share))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// Bins of about equal weight. A heavy value gets a bin of its own, and the runs of light values between heavy ones
// share what is left; a run too light for a bin joins the heavy value next to it. Where all values fit, each has a bin.
// Writes, ascending, the values that a bin but the last ends with; returns how many there are, at most max_bins - 1.
template <class Weight>
POLYLEAF_RULE int choose_bin_ends(const ValueWeights<Weight>& values, int max_bins, const HeavyValues& heavy,
                                  const RunMemory& runs, int* bin_end) {
  const int n = values.n_values;
  int n_ends = 0;
  if (n <= max_bins) {
    for (; n_ends + 1 < n; ++n_ends) bin_end[n_ends] = n_ends;
    return n_ends;
  }
  share_bins(values, heavy, max_bins - heavy.count, runs);
  for (int r = 0; r <= heavy.count; ++r) {
    const int first = run_begin(heavy, r), end = run_end(heavy, r, n);
    int begin = first;
    double left = weight_of(values, first, end);
    for (int bins_left = runs.n_bins[r]; bins_left > 1; --bins_left) {
      const int last = last_of_bin(values, begin, end, left / bins_left);
      if (last + 1 == end) break;
      bin_end[n_ends++] = last;
      left -= weight_of(values, begin, last + 1);
      begin = last + 1;
    }
    if (r == heavy.count) break;
    const bool joins_the_heavy_value = first < end && runs.n_bins[r] == 0;
    if (end > 0 && !joins_the_heavy_value) bin_end[n_ends++] = end - 1;
    const bool next_is_empty = run_begin(heavy, r + 1) == run_end(heavy, r + 1, n);
    const bool next_has_a_bin = runs.n_bins[r + 1] > 0 || (r + 1 < heavy.count && !next_is_empty);
    if (end + 1 < n && next_has_a_bin) bin_end[n_ends++] = end;
  }
  return n_ends;
}

}  // namespace polyleaf
