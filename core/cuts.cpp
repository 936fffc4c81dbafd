#include "cuts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "threads.hpp"

namespace polyleaf {
namespace {

// Columns with at most this many distinct values are summarised by a hash table instead of a sort.
constexpr std::size_t kFewDistinct = 1024;
constexpr int kTableBits = 12;
constexpr std::size_t kTableSize = std::size_t{1} << kTableBits;

// Scratch memory of a thread for the columns it reads at once: this much for each row, or in all where rows are few.
constexpr std::size_t kPanelRowBytes = 24;
constexpr std::size_t kPanelBytes = std::size_t{1} << 22;

// Unsigned integers in the order of the numbers of type Real.
template <class Real>
using KeyOf = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;

template <class Real>
KeyOf<Real> key_of(Real value) {
  using Key = KeyOf<Real>;
  value += Real{0};  // -0.0 becomes 0.0
  Key bits;
  std::memcpy(&bits, &value, sizeof bits);
  constexpr int kSign = 8 * sizeof(Key) - 1;
  return bits ^ ((Key{0} - (bits >> kSign)) | (Key{1} << kSign));
}

template <class Real>
double value_of(KeyOf<Real> key) {
  using Key = KeyOf<Real>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  const Key bits = (key & kSign) != 0 ? key & ~kSign : ~key;
  Real value;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<double>(value);
}

// The values of a column as keys, then its distinct values, ascending, with the weight of each.
template <class Real>
struct Summary {
  using Key = KeyOf<Real>;
  std::vector<Key> keys, other;
  std::vector<double> weights, other_weights;  // empty: every row weighs 1, and the counts stand in `other`
  std::size_t n_distinct = 0;

  bool weighted() const { return !weights.empty(); }
  double value(std::size_t i) const { return value_of<Real>(keys[i]); }
};

// A hash table of the distinct values.
struct FewTable {
  std::vector<std::uint32_t> count;  // 0: free
  std::vector<std::uint64_t> key;
  std::vector<double> weight;
  std::vector<std::size_t> used;
};

struct alignas(128) Scratch {  // threads do not share lines of memory
  Summary<float> narrow;
  Summary<double> wide;
  FewTable table;
};

// Stable least-significant-digit sort of the keys, the weights (if any) along with them.
template <class Real>
void radix_sort(Summary<Real>& s) {
  using Key = KeyOf<Real>;
  constexpr int kDigitBits = 11;
  constexpr std::size_t kBuckets = std::size_t{1} << kDigitBits;
  constexpr int kPasses = (8 * static_cast<int>(sizeof(Key)) + kDigitBits - 1) / kDigitBits;
  const std::size_t n = s.keys.size();
  const bool weighted = s.weighted();
  if (weighted) s.other_weights.resize(n);
  std::array<std::array<std::uint32_t, kBuckets>, kPasses> counts{};
  for (const Key key : s.keys)
    for (int pass = 0; pass < kPasses; ++pass) ++counts[pass][(key >> (pass * kDigitBits)) & (kBuckets - 1)];
  for (int pass = 0; pass < kPasses; ++pass) {
    auto& count = counts[pass];
    const int shift = pass * kDigitBits;
    if (count[(s.keys[0] >> shift) & (kBuckets - 1)] == n) continue;  // all keys share this digit
    std::uint32_t start = 0;
    for (auto& c : count) {
      const std::uint32_t size = c;
      c = start;
      start += size;
    }
    const Key* from = s.keys.data();
    Key* other = s.other.data();
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t to = count[(from[i] >> shift) & (kBuckets - 1)]++;
      other[to] = from[i];
      if (weighted) s.other_weights[to] = s.weights[i];
    }
    s.keys.swap(s.other);
    if (weighted) s.weights.swap(s.other_weights);
  }
}

// Sorts the keys and adds up the weights of equal ones, in the order of the rows.
template <class Real>
void summarise_many(Summary<Real>& s) {
  radix_sort(s);
  const std::size_t n = s.keys.size();
  const bool weighted = s.weighted();
  std::size_t last = 0;
  std::size_t begin = 0;  // of the run of equal keys
  for (std::size_t i = 1; i <= n; ++i) {
    if (i < n && s.keys[i] == s.keys[i - 1]) {
      if (weighted) s.weights[last] += s.weights[i];
      continue;
    }
    if (!weighted) s.other[last] = static_cast<KeyOf<Real>>(i - begin);
    if (i == n) break;
    begin = i;
    s.keys[++last] = s.keys[i];
    if (weighted) s.weights[last] = s.weights[i];
  }
  s.n_distinct = last + 1;
}

// True when the column has few distinct values; they are then summarised.
template <class Real>
bool summarise_few(Summary<Real>& s, FewTable& table) {
  table.count.assign(kTableSize, 0);
  table.key.resize(kTableSize);
  table.weight.resize(kTableSize);
  table.used.clear();
  const bool weighted = s.weighted();
  std::uint32_t* count = table.count.data();
  std::uint64_t* keys = table.key.data();
  for (std::size_t i = 0; i < s.keys.size(); ++i) {
    const std::uint64_t key = s.keys[i];
    std::size_t at = (key * 0x9E3779B97F4A7C15ull) >> (64 - kTableBits);
    while (count[at] != 0 && keys[at] != key) at = (at + 1) & (kTableSize - 1);
    if (count[at] == 0) {
      if (table.used.size() == kFewDistinct) return false;
      table.used.push_back(at);
      keys[at] = key;
      table.weight[at] = 0.0;
    }
    ++count[at];
    if (weighted) table.weight[at] += s.weights[i];
  }
  std::sort(table.used.begin(), table.used.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  s.n_distinct = table.used.size();
  for (std::size_t i = 0; i < s.n_distinct; ++i) {
    const std::size_t at = table.used[i];
    s.keys[i] = static_cast<KeyOf<Real>>(keys[at]);
    if (weighted)
      s.weights[i] = table.weight[at];
    else
      s.other[i] = count[at];
  }
  return true;
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
// `weights` are those of the distinct values, and Sum a type that adds them without error or as float64 does.
template <class Sum, class Real, class Weight>
void choose_cuts(const Summary<Real>& distinct, const Weight* weights, std::size_t max_bins,
                 std::vector<double>& cuts) {
  const std::size_t n = distinct.n_distinct;
  const auto cut_after = [&](std::size_t i) { cuts.push_back(between(distinct.value(i), distinct.value(i + 1))); };
  if (n <= max_bins) {
    for (std::size_t i = 0; i + 1 < n; ++i) cut_after(i);
    return;
  }
  Sum total{0};
  for (std::size_t i = 0; i < n; ++i) total += static_cast<Sum>(weights[i]);
  const double share = static_cast<double>(total) / static_cast<double>(max_bins);
  std::vector<LightRun> runs;  // a heavy value stands between each two
  std::size_t begin = 0;
  Sum run_weight{0};
  for (std::size_t i = 0; i < n; ++i) {
    if (static_cast<double>(weights[i]) >= share) {
      runs.push_back({begin, i, static_cast<double>(run_weight), 0});
      begin = i + 1;
      run_weight = Sum{0};
    } else {
      run_weight += static_cast<Sum>(weights[i]);
    }
  }
  runs.push_back({begin, n, static_cast<double>(run_weight), 0});
  share_bins(runs, max_bins - (runs.size() - 1));
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const LightRun& run = runs[r];
    double left = run.weight;
    std::size_t bins_left = run.n_bins;
    Sum filled{0};
    double target = bins_left > 0 ? left / static_cast<double>(bins_left) : 0.0;
    for (std::size_t i = run.begin; i + 1 < run.end && bins_left > 1; ++i) {
      filled += static_cast<Sum>(weights[i]);
      // Close the bin where that comes nearer to its share than taking the next value in.
      if (static_cast<double>(filled) < target &&
          static_cast<double>(filled) + 0.5 * static_cast<double>(weights[i + 1]) <= target)
        continue;
      cut_after(i);
      left -= static_cast<double>(filled);
      filled = Sum{0};
      --bins_left;
      target = left / static_cast<double>(bins_left);
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

// Reads the values that are not missing as keys, and their weights; returns whether any is missing.
template <class Real, class Value>
bool take_keys(const Value* values, std::size_t n, const double* weight, Summary<Real>& s) {
  s.keys.resize(n);
  s.other.resize(n);
  s.weights.clear();
  if (weight != nullptr) s.weights.assign(weight, weight + n);
  std::size_t n_missing = 0;
  for (std::size_t i = 0; i < n; ++i) n_missing += std::isnan(values[i]) ? 1 : 0;
  if (n_missing == 0) {
    for (std::size_t i = 0; i < n; ++i) s.keys[i] = key_of(static_cast<Real>(values[i]));
    return false;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (std::isnan(values[i])) continue;
    s.keys[kept] = key_of(static_cast<Real>(values[i]));
    if (weight != nullptr) s.weights[kept] = weight[i];
    ++kept;
  }
  s.keys.resize(kept);
  s.other.resize(kept);
  if (weight != nullptr) s.weights.resize(kept);
  return true;
}

// The distinct values as categories, with cuts between them.
template <class Real>
void take_categories(const Summary<Real>& distinct, std::size_t column, ColumnCuts& out) {
  for (std::size_t i = 0; i < distinct.n_distinct; ++i) {
    const double value = distinct.value(i);
    if (!(value >= 0 && value < static_cast<double>(kMostCategories) && value == std::floor(value)))
      throw std::invalid_argument("column " + std::to_string(column) + " holds " + std::to_string(value) +
                                  ", which is no category: they are whole numbers from 0 to " +
                                  std::to_string(kMostCategories - 1));
    out.categories.push_back(static_cast<std::uint32_t>(value));
    if (i > 0) out.cuts.push_back(between(distinct.value(i - 1), value));
  }
}

template <class Real, class Value>
void cuts_of_values(const Value* values, std::size_t n, std::size_t column, const double* weight, std::size_t max_bins,
                    Summary<Real>& s, FewTable& table, ColumnCuts& out) {
  out.has_missing = take_keys(values, n, weight, s);
  if (s.keys.empty()) return;
  if (!summarise_few(s, table)) summarise_many(s);
  if (out.categorical) return take_categories(s, column, out);
  if (max_bins == 0 && s.n_distinct > kMostDistinct)
    throw std::invalid_argument("max_bins=None gives each distinct value a bin; column " + std::to_string(column) +
                                " has " + std::to_string(s.n_distinct) + " of them, at most " +
                                std::to_string(kMostDistinct) + " are allowed");
  const std::size_t most_bins = max_bins == 0 ? kMostDistinct : max_bins;
  if (s.weighted())
    choose_cuts<double>(s, s.weights.data(), most_bins, out.cuts);
  else
    choose_cuts<std::uint64_t>(s, s.other.data(), most_bins, out.cuts);
}

bool fits_float(double value) { return static_cast<double>(static_cast<float>(value)) == value || std::isnan(value); }

template <class Value>
void column_cuts(const Value* values, std::size_t n, std::size_t column, const double* weight, std::size_t max_bins,
                 Scratch& s, ColumnCuts& out) {
  // Half as many digits to sort by where float64 holds float32 values or small integers.
  if (std::is_same_v<Value, float> || std::all_of(values, values + n, [](Value v) { return fits_float(v); }))
    cuts_of_values(values, n, column, weight, max_bins, s.narrow, s.table, out);
  else
    cuts_of_values(values, n, column, weight, max_bins, s.wide, s.table, out);
}

// Columns that one thread reads from the table at once: neighbours share lines of memory where rows lie side by side.
struct Panel {
  std::size_t first;
  std::size_t count;
};

// Panels that fit the scratch memory of a thread, smaller ones towards the end so that no thread is left alone with
// much to do.
std::vector<Panel> cut_into_panels(std::size_t n_columns, std::size_t most, std::size_t n_threads) {
  std::vector<Panel> panels;
  for (std::size_t first = 0; first < n_columns; first += panels.back().count)
    panels.push_back({first, std::clamp<std::size_t>((n_columns - first) / (2 * n_threads), 1, most)});
  return panels;
}

}  // namespace

std::vector<ColumnCuts> find_cuts(const MatrixView& x, const double* weight, int max_bins,
                                  const std::uint8_t* categorical, int n_threads) {
  const auto threads = static_cast<std::size_t>(std::max(n_threads, 1));
  const std::size_t n = x.n_rows;
  std::vector<ColumnCuts> columns(x.n_columns);
  for (std::size_t c = 0; c < x.n_columns; ++c) columns[c].categorical = categorical != nullptr && categorical[c] != 0;
  std::vector<Scratch> scratch(threads);
  with_real(x.dtype, [&](auto zero) {
    using Value = decltype(zero);
    const std::size_t most = std::max(kPanelRowBytes, kPanelBytes / n) / sizeof(Value);
    const std::vector<Panel> panels = cut_into_panels(x.n_columns, most, threads);
    std::vector<Buffer<Value>> values(threads);
    parallel_for(n_threads, panels.size(), [&](std::size_t at, int thread) {
      const Panel& panel = panels[at];
      Buffer<Value>& block = values[static_cast<std::size_t>(thread)];
      if (block.size() < panel.count * n) block = Buffer<Value>(panel.count * n);
      load_block(x, 0, n, panel.first, panel.count, block.data(), n);
      for (std::size_t c = 0; c < panel.count; ++c)
        column_cuts(block.data() + c * n, n, x.first_column + panel.first + c, weight,
                    static_cast<std::size_t>(max_bins), scratch[static_cast<std::size_t>(thread)],
                    columns[panel.first + c]);
    });
  });
  return columns;
}

}  // namespace polyleaf
