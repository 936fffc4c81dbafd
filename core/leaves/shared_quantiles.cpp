#include "leaves/shared_quantiles.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/number_keys.hpp"
#include "base/threads.hpp"
#include "leaves/renewed.hpp"
#include "rules/exact_sum.hpp"

namespace polyleaf {
namespace {

constexpr int kDigitBits = 8;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
constexpr int kKeyBits = 64;

// What is known of a quantile: the first bits of its key, and what all residuals below those weigh.
struct Search {
  std::uint64_t key = 0;
  ExactSum below;
  double need = 0.0;  // the least weight up to the quantile, itself included
  bool is_empty = true;
};

class SharedQuantiles {
 public:
  SharedQuantiles(const std::vector<SortedNumbers>& here, const std::vector<double>& levels, bool weighted,
                  const Shard& shard, int n_threads)
      : sorted_(here),
        levels_(levels),
        weighted_(weighted),
        shard_(shard),
        n_threads_(n_threads),
        searches_(here.size()) {}

  std::vector<double> find() {
    find_totals();
    for (int shift = kKeyBits - kDigitBits; shift >= 0; shift -= kDigitBits) find_digit(shift);
    std::vector<double> quantiles = next_numbers();
    for (std::size_t v = 0; v < quantiles.size(); ++v) quantiles[v] = quantile(v, quantiles[v]);
    return quantiles;
  }

 private:
  // How many numbers there are and grids of their weights first; then what they weigh, and the share that is needed.
  void find_totals() {
    const std::size_t n = sorted_.size();
    std::vector<double> count(n), largest(n, 1.0), parts(2 * n);
    for (std::size_t v = 0; v < n; ++v) {
      count[v] = static_cast<double>(sorted_[v].keys.size());
      if (weighted_) largest[v] = 0.0;
      for (const double weight : sorted_[v].weights) largest[v] = std::max(largest[v], weight);
    }
    shard_.add(count);
    shard_.largest(largest);
    for (std::size_t v = 0; v < n; ++v) {
      grids_.push_back(sum_grid(largest[v], count[v]));
      const ExactSum sum = weight_of(v, 0, sorted_[v].keys.size());
      parts[2 * v] = sum.coarse;
      parts[2 * v + 1] = sum.fine;
    }
    shard_.add(parts);
    for (std::size_t v = 0; v < n; ++v) {
      const double total = parts[2 * v] + parts[2 * v + 1];
      total_.push_back(total);
      Search& search = searches_[v];
      search.is_empty = count[v] == 0;
      search.need = target(v) - kRounding * total;
      if (!weighted_) search.need = std::clamp(std::ceil(search.need), 1.0, std::max(1.0, total));
    }
  }

  double target(std::size_t v) const { return levels_[v] * total_[v]; }

  ExactSum weight_of(std::size_t v, std::size_t begin, std::size_t end) const {
    ExactSum sum;
    if (!weighted_) sum.coarse = static_cast<double>(end - begin);
    for (std::size_t i = begin; weighted_ && i < end; ++i) sum.add(sorted_[v].weights[i], grids_[v]);
    return sum;
  }

  // The next digit of all keys.
  void find_digit(int shift) {
    std::vector<double> parts(2 * kDigits * sorted_.size());
    parallel_for(n_threads_, sorted_.size(), [&](std::size_t v, int) {
      const std::vector<std::uint64_t>& keys = sorted_[v].keys;
      auto at = std::lower_bound(keys.begin(), keys.end(), searches_[v].key) - keys.begin();
      for (std::size_t digit = 0; digit < kDigits; ++digit) {
        const std::uint64_t last = searches_[v].key | (digit << shift) | ((std::uint64_t{1} << shift) - 1);
        const auto end = std::upper_bound(keys.begin() + at, keys.end(), last) - keys.begin();
        const ExactSum sum = weight_of(v, static_cast<std::size_t>(at), static_cast<std::size_t>(end));
        parts[2 * (v * kDigits + digit)] = sum.coarse;
        parts[2 * (v * kDigits + digit) + 1] = sum.fine;
        at = end;
      }
    });
    shard_.add(parts);
    for (std::size_t v = 0; v < sorted_.size(); ++v) {
      Search& search = searches_[v];
      std::size_t last = kDigits;  // the last digit that any residual has: but for rounding, it reaches the target
      for (std::size_t digit = 0; digit < kDigits; ++digit)
        if (parts[2 * (v * kDigits + digit)] + parts[2 * (v * kDigits + digit) + 1] > 0) last = digit;
      for (std::size_t digit = 0; last < kDigits && digit <= last; ++digit) {
        ExactSum through = search.below;
        through.add({parts[2 * (v * kDigits + digit)], parts[2 * (v * kDigits + digit) + 1]});
        if (through.value() >= search.need || digit == last) {
          search.key |= static_cast<std::uint64_t>(digit) << shift;
          break;
        }
        search.below = through;
      }
    }
  }

  // The least number above each quantile; infinite: there is none. And the weight up to the quantiles.
  std::vector<double> next_numbers() {
    const std::size_t n = sorted_.size();
    std::vector<double> next(n), parts(2 * n);
    for (std::size_t v = 0; v < n; ++v) {
      const std::vector<std::uint64_t>& keys = sorted_[v].keys;
      const auto above = std::upper_bound(keys.begin(), keys.end(), searches_[v].key) - keys.begin();
      const auto place = static_cast<std::size_t>(above);
      next[v] = place < keys.size() ? -value_of<double>(keys[place]) : -std::numeric_limits<double>::infinity();
      const ExactSum sum = weight_of(v, 0, place);
      parts[2 * v] = sum.coarse;
      parts[2 * v + 1] = sum.fine;
    }
    shard_.largest(next);
    shard_.add(parts);
    for (std::size_t v = 0; v < n; ++v) {
      next[v] = -next[v];
      through_.push_back(parts[2 * v] + parts[2 * v + 1]);
    }
    return next;
  }

  double quantile(std::size_t v, double next) const {
    if (searches_[v].is_empty) return 0;
    const double found = value_of<double>(searches_[v].key);
    if (std::isinf(next)) return found;
    const double enough = target(v) + kRounding * total_[v];
    // Of equal weights it is the place that counts: behind the one that is needed, the next may be as large.
    const bool flat =
        weighted_ ? through_[v] <= enough : searches_[v].need <= enough && through_[v] == searches_[v].need;
    return flat ? 0.5 * (found + next) : found;
  }

  const std::vector<SortedNumbers>& sorted_;
  const std::vector<double>& levels_;
  const bool weighted_;
  const Shard& shard_;
  const int n_threads_;
  std::vector<Search> searches_;
  std::vector<SumGrid> grids_;
  std::vector<double> total_, through_;
};

}  // namespace

SortedNumbers sort_numbers(const std::vector<double>& numbers) {
  SortedNumbers out;
  for (const double one : numbers) out.keys.push_back(key_of(one));
  std::sort(out.keys.begin(), out.keys.end());
  return out;
}

SortedNumbers sort_numbers(std::vector<WeightedResidual>& numbers) {
  std::sort(numbers.begin(), numbers.end(),
            [](const WeightedResidual& a, const WeightedResidual& b) { return a.residual < b.residual; });
  SortedNumbers out;
  for (const WeightedResidual& one : numbers) {
    out.keys.push_back(key_of(one.residual));
    out.weights.push_back(one.weight);
  }
  return out;
}

std::vector<double> shared_quantiles(const std::vector<SortedNumbers>& here, const std::vector<double>& levels,
                                     bool weighted, const Shard& shard, int n_threads) {
  return SharedQuantiles(here, levels, weighted, shard, n_threads).find();
}

void renew_shared_leaves(const GrowTask& task, int n_threads, const RowsInLeaves& places, GrownTree& tree) {
  const std::vector<RenewedValue> values = renewed_values(task, places.leaves.size(), tree);
  const bool weighted = weighs_residuals(task);
  std::vector<SortedNumbers> here(values.size());
  std::vector<double> levels(values.size());
  parallel_for(n_threads, values.size(), [&](std::size_t v, int) {
    const LeafRows& leaf = places.leaves[values[v].leaf];
    LeafResiduals residuals;
    residuals.take(task, places.rows + leaf.begin, leaf.end - leaf.begin, &values[v].output, 1);
    here[v] = weighted ? sort_numbers(residuals.weighed[0]) : sort_numbers(residuals.plain[0]);
    levels[v] = task.renewal.level[values[v].output];
  });
  const std::vector<double> quantiles = shared_quantiles(here, levels, weighted, task.shard, n_threads);
  for (std::size_t v = 0; v < values.size(); ++v) set_renewed(task, values[v], quantiles[v], tree);
}

}  // namespace polyleaf
