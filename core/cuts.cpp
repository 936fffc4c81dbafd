#include "cuts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>

#include "threads.hpp"

namespace polyleaf {
namespace {

struct WeightedValue {
  double value;
  double weight;
};

// Columns with at most this many distinct values are summarised by a hash table instead of a sort.
constexpr std::size_t kFewDistinct = 1024;
constexpr std::size_t kTableSize = 4096;

std::uint64_t bits_of(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// A key of unsigned integers in the order of the numbers.
std::uint64_t ordered_key(double value) {
  const std::uint64_t bits = bits_of(value);
  return (bits >> 63) != 0 ? ~bits : bits | (std::uint64_t{1} << 63);
}

double value_of_key(std::uint64_t key) {
  const std::uint64_t bits = (key >> 63) != 0 ? key & ~(std::uint64_t{1} << 63) : ~key;
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::uint32_t ordered_key32(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return (bits >> 31) != 0 ? ~bits : bits | (std::uint32_t{1} << 31);
}

float value_of_key32(std::uint32_t key) {
  const std::uint32_t bits = (key >> 31) != 0 ? key & ~(std::uint32_t{1} << 31) : ~key;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

struct Scratch {
  std::vector<double> values;
  std::vector<double> weights;
  std::vector<std::uint64_t> keys64, other64;
  std::vector<std::uint32_t> keys32, other32;
  std::vector<double> other_weights;
  std::vector<WeightedValue> distinct;
  std::vector<std::uint64_t> table_key;
  std::vector<double> table_weight;
  std::vector<std::uint8_t> table_used;
};

// Stable least-significant-digit sort of the keys, the weights (if any) along with them.
template <class Key>
void radix_sort(std::vector<Key>& keys, std::vector<Key>& other, std::vector<double>& weights,
                std::vector<double>& other_weights) {
  constexpr int kDigitBits = 11;
  constexpr std::size_t kBuckets = std::size_t{1} << kDigitBits;
  constexpr int kPasses = (8 * static_cast<int>(sizeof(Key)) + kDigitBits - 1) / kDigitBits;
  const std::size_t n = keys.size();
  const bool weighted = !weights.empty();
  other.resize(n);
  if (weighted) other_weights.resize(n);
  std::array<std::array<std::uint32_t, kBuckets>, kPasses> counts{};
  for (const Key key : keys)
    for (int pass = 0; pass < kPasses; ++pass) ++counts[pass][(key >> (pass * kDigitBits)) & (kBuckets - 1)];
  for (int pass = 0; pass < kPasses; ++pass) {
    auto& count = counts[pass];
    const int shift = pass * kDigitBits;
    if (count[(keys[0] >> shift) & (kBuckets - 1)] == n) continue;  // all keys share this digit
    std::uint32_t start = 0;
    for (auto& c : count) {
      const std::uint32_t size = c;
      c = start;
      start += size;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t to = count[(keys[i] >> shift) & (kBuckets - 1)]++;
      other[to] = keys[i];
      if (weighted) other_weights[to] = weights[i];
    }
    keys.swap(other);
    if (weighted) weights.swap(other_weights);
  }
}

template <class Key, class ValueOf>
void collect_runs(const std::vector<Key>& keys, const std::vector<double>& weights, ValueOf value_of,
                  std::vector<WeightedValue>& distinct) {
  const bool weighted = !weights.empty();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double weight = weighted ? weights[i] : 1.0;
    if (i > 0 && keys[i] == keys[i - 1])
      distinct.back().weight += weight;
    else
      distinct.push_back({static_cast<double>(value_of(keys[i])), weight});
  }
}

// True when the column has few distinct values; they are then in s.distinct, ascending.
bool summarise_few(Scratch& s) {
  s.table_key.resize(kTableSize);
  s.table_weight.resize(kTableSize);
  s.table_used.assign(kTableSize, 0);
  const bool weighted = !s.weights.empty();
  std::size_t n_distinct = 0;
  for (std::size_t i = 0; i < s.values.size(); ++i) {
    const std::uint64_t key = bits_of(s.values[i]);
    std::size_t at = (key * 0x9E3779B97F4A7C15ull) >> 52;
    while (s.table_used[at] != 0 && s.table_key[at] != key) at = (at + 1) & (kTableSize - 1);
    if (s.table_used[at] == 0) {
      if (++n_distinct > kFewDistinct) return false;
      s.table_used[at] = 1;
      s.table_key[at] = key;
      s.table_weight[at] = 0.0;
    }
    s.table_weight[at] += weighted ? s.weights[i] : 1.0;
  }
  for (std::size_t at = 0; at < kTableSize; ++at) {
    if (s.table_used[at] == 0) continue;
    double value;
    std::memcpy(&value, &s.table_key[at], sizeof value);
    s.distinct.push_back({value, s.table_weight[at]});
  }
  std::sort(s.distinct.begin(), s.distinct.end(),
            [](const WeightedValue& a, const WeightedValue& b) { return a.value < b.value; });
  return true;
}

void summarise_many(Scratch& s) {
  const bool narrow = std::all_of(s.values.begin(), s.values.end(),
                                  [](double v) { return static_cast<double>(static_cast<float>(v)) == v; });
  if (narrow) {
    s.keys32.resize(s.values.size());
    for (std::size_t i = 0; i < s.values.size(); ++i) s.keys32[i] = ordered_key32(static_cast<float>(s.values[i]));
    radix_sort(s.keys32, s.other32, s.weights, s.other_weights);
    collect_runs(s.keys32, s.weights, value_of_key32, s.distinct);
  } else {
    s.keys64.resize(s.values.size());
    for (std::size_t i = 0; i < s.values.size(); ++i) s.keys64[i] = ordered_key(s.values[i]);
    radix_sort(s.keys64, s.other64, s.weights, s.other_weights);
    collect_runs(s.keys64, s.weights, value_of_key, s.distinct);
  }
}

// A threshold t with low <= t < high, halfway between where the grid of floating-point numbers allows.
double between(double low, double high) {
  const double middle = low / 2 + high / 2;
  return middle >= low && middle < high ? middle : low;
}

// Values that follow each other and are not heavy, to be cut into n_bins bins of about equal weight.
struct LightRun {
  std::size_t begin;
  std::size_t end;
  double weight;
  std::size_t n_bins;
};

// Gives each run its share of the bins by weight, the largest remainders first, and none more than it has values.
void share_bins(std::vector<LightRun>& runs, std::size_t n_bins) {
  double total = 0.0;
  for (const LightRun& run : runs) total += run.weight;
  if (total <= 0) return;
  std::vector<double> remainder(runs.size());
  std::size_t given = 0;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const double quota = runs[r].weight / total * static_cast<double>(n_bins);
    runs[r].n_bins = std::min(static_cast<std::size_t>(quota), runs[r].end - runs[r].begin);
    remainder[r] = quota - static_cast<double>(runs[r].n_bins);
    given += runs[r].n_bins;
  }
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainder[a] > remainder[b]; });
  for (bool more = true; more && given < n_bins;) {
    more = false;
    for (const std::size_t r : order) {
      if (given == n_bins || runs[r].n_bins == runs[r].end - runs[r].begin) continue;
      ++runs[r].n_bins;
      ++given;
      more = true;
    }
  }
}

// Bins of about equal weight. A value that alone weighs a bin's share is heavy and gets a bin of its own, and the runs
// of light values between heavy ones share what is left; a run too light for a bin joins the heavy value next to it.
void choose_cuts(const std::vector<WeightedValue>& distinct, std::size_t max_bins, std::vector<double>& cuts) {
  const std::size_t n = distinct.size();
  const auto cut_after = [&](std::size_t i) { cuts.push_back(between(distinct[i].value, distinct[i + 1].value)); };
  if (n <= max_bins) {
    for (std::size_t i = 0; i + 1 < n; ++i) cut_after(i);
    return;
  }
  double total = 0.0;
  for (const auto& d : distinct) total += d.weight;
  const double share = total / static_cast<double>(max_bins);
  std::vector<LightRun> runs(1, {0, 0, 0.0, 0});  // a heavy value stands between each two
  for (std::size_t i = 0; i < n; ++i) {
    if (distinct[i].weight >= share) {
      runs.push_back({i + 1, i + 1, 0.0, 0});
    } else {
      runs.back().end = i + 1;
      runs.back().weight += distinct[i].weight;
    }
  }
  share_bins(runs, max_bins - (runs.size() - 1));
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const LightRun& run = runs[r];
    double left = run.weight;
    std::size_t bins_left = run.n_bins;
    double filled = 0.0;
    for (std::size_t i = run.begin; i + 1 < run.end && bins_left > 1; ++i) {
      filled += distinct[i].weight;
      const double target = left / static_cast<double>(bins_left);
      // Close the bin where that comes nearer to its share than taking the next value in.
      if (filled < target && filled + 0.5 * distinct[i + 1].weight <= target) continue;
      cut_after(i);
      left -= filled;
      filled = 0.0;
      --bins_left;
    }
    const bool last = r + 1 == runs.size();
    const bool joins_the_next = run.begin < run.end && run.n_bins == 0;
    if (last) continue;
    const std::size_t heavy = run.end;  // the heavy value after the run
    if (heavy > 0 && !joins_the_next) cut_after(heavy - 1);
    const LightRun& next = runs[r + 1];
    const bool next_has_a_bin = next.n_bins > 0 || (r + 2 < runs.size() && next.begin < next.end);
    if (heavy + 1 < n && next_has_a_bin) cut_after(heavy);
  }
}

void column_cuts(const MatrixView& x, std::size_t column, const double* weight, std::size_t max_bins, Scratch& s,
                 ColumnCuts& out) {
  const std::size_t n = x.n_rows;
  s.values.resize(n);
  load_strip(x, 0, n, column, s.values.data());
  s.weights.clear();
  if (weight != nullptr) s.weights.assign(weight, weight + n);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (std::isnan(s.values[i])) continue;
    s.values[kept] = s.values[i] + 0.0;  // -0.0 becomes 0.0
    if (weight != nullptr) s.weights[kept] = s.weights[i];
    ++kept;
  }
  out.has_missing = kept < n;
  s.values.resize(kept);
  if (weight != nullptr) s.weights.resize(kept);
  s.distinct.clear();
  if (kept == 0) return;
  if (!summarise_few(s)) summarise_many(s);
  if (max_bins == 0 && s.distinct.size() > kMostDistinct)
    throw std::invalid_argument("max_bins=None gives each distinct value a bin; column " + std::to_string(column) +
                                " has " + std::to_string(s.distinct.size()) + " of them, at most " +
                                std::to_string(kMostDistinct) + " are allowed");
  choose_cuts(s.distinct, max_bins == 0 ? kMostDistinct : max_bins, out.cuts);
}

}  // namespace

std::vector<ColumnCuts> find_cuts(const MatrixView& x, const double* weight, int max_bins, int n_threads) {
  std::vector<ColumnCuts> columns(x.n_columns);
  std::vector<Scratch> scratch(static_cast<std::size_t>(std::max(n_threads, 1)));
  parallel_for(n_threads, x.n_columns, [&](std::size_t column, int thread) {
    column_cuts(x, column, weight, static_cast<std::size_t>(max_bins), scratch[static_cast<std::size_t>(thread)],
                columns[column]);
  });
  return columns;
}

}  // namespace polyleaf
