#include "table/cuts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "base/buffer.hpp"
#include "base/order_free.hpp"
#include "base/threads.hpp"
#include "rules/cut_choice.hpp"

namespace polyleaf {
namespace {

// Columns with at most this many distinct values are summarised by a hash table instead of a sort.
constexpr std::size_t kFewDistinct = 1024;
constexpr int kTableBits = 12;
constexpr std::size_t kTableSize = std::size_t{1} << kTableBits;

// Scratch memory of a thread for the columns it reads at once: this much for each row, or in all where rows are few.
constexpr std::size_t kPanelRowBytes = 24;
constexpr std::size_t kPanelBytes = std::size_t{1} << 22;

// All weights together are less than 2^51 units, before each is rounded to at least one.
constexpr int kUnitBits = 51;

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
  std::vector<std::uint32_t> count;  // 0: free
  std::vector<std::uint64_t> key;
  std::vector<std::int64_t> weight;
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

// Sorts the keys and adds up their weights.
template <class Real>
void summarise_many(Summary<Real>& s) {
  radix_sort(s);
  const std::size_t n = s.keys.size();
  const bool weighted = s.weighted();
  std::int64_t through = 0;
  s.n_distinct = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (weighted) through += s.weights[i];
    if (i + 1 < n && s.keys[i] == s.keys[i + 1]) continue;
    s.keys[s.n_distinct] = s.keys[i];
    if (weighted)
      s.weights[s.n_distinct] = through;
    else
      s.other[s.n_distinct] = static_cast<KeyOf<Real>>(i + 1);
    ++s.n_distinct;
  }
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
      table.weight[at] = 0;
    }
    ++count[at];
    if (weighted) table.weight[at] += s.weights[i];
  }
  std::sort(table.used.begin(), table.used.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  s.n_distinct = table.used.size();
  std::int64_t through = 0;
  for (std::size_t i = 0; i < s.n_distinct; ++i) {
    const std::size_t at = table.used[i];
    s.keys[i] = static_cast<KeyOf<Real>>(keys[at]);
    through += weighted ? table.weight[at] : count[at];
    if (weighted)
      s.weights[i] = through;
    else
      s.other[i] = static_cast<KeyOf<Real>>(through);
  }
  return true;
}

// Cuts behind the values that bins end with.
template <class Real, class Weight>
void choose_cuts(const Summary<Real>& distinct, const Weight* through, std::size_t max_bins,
                 std::vector<double>& cuts) {
  const ValueWeights<Weight> values = {through, static_cast<int>(distinct.n_distinct)};
  const int most_bins = static_cast<int>(max_bins);
  std::vector<int> heavy;
  if (values.n_values > most_bins) {
    const double share = bin_share(values, most_bins);
    for (int i = 0; i < values.n_values; ++i)
      if (weight_of(values, i, i + 1) >= share) heavy.push_back(i);
  }
  std::vector<int> n_bins(heavy.size() + 1), order(heavy.size() + 1);
  std::vector<double> remainder(heavy.size() + 1);
  std::vector<int> bin_end(std::min(distinct.n_distinct, max_bins));
  const int n_cuts = choose_bin_ends(values, most_bins, {heavy.data(), static_cast<int>(heavy.size())},
                                     {n_bins.data(), remainder.data(), order.data()}, bin_end.data());
  for (int k = 0; k < n_cuts; ++k) {
    const auto i = static_cast<std::size_t>(bin_end[static_cast<std::size_t>(k)]);
    cuts.push_back(between(distinct.value(i), distinct.value(i + 1)));
  }
}

// Reads the values that are not missing as keys, and their weights; returns whether any is missing.
template <class Real, class Value>
bool take_keys(const Value* values, std::size_t n, const std::int64_t* weight, Summary<Real>& s) {
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
void cuts_of_values(const Value* values, std::size_t n, std::size_t column, const std::int64_t* weight,
                    std::size_t max_bins, Summary<Real>& s, FewTable& table, ColumnCuts& out) {
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
    choose_cuts(s, s.weights.data(), most_bins, out.cuts);
  else
    choose_cuts(s, s.other.data(), most_bins, out.cuts);
}

bool fits_float(double value) { return static_cast<double>(static_cast<float>(value)) == value || std::isnan(value); }

template <class Value>
void column_cuts(const Value* values, std::size_t n, std::size_t column, const std::int64_t* weight,
                 std::size_t max_bins, Scratch& s, ColumnCuts& out) {
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

std::vector<std::int64_t> weight_units(const double* weight, std::size_t n) {
  const double total = order_free_sum(n, [&](std::size_t i) { return weight[i] > 0 ? weight[i] : 0.0; });
  if (!std::isfinite(total)) throw std::invalid_argument("the sum of the weights is not finite");
  int exponent;  // total < 2^exponent
  std::frexp(total, &exponent);
  std::vector<std::int64_t> units(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double exact = std::ldexp(weight[i], kUnitBits - exponent);
    units[i] = exact > 1 ? static_cast<std::int64_t>(exact + 0.5) : 1;
  }
  return units;
}

std::vector<ColumnCuts> find_cuts(const MatrixView& x, const double* weight, int max_bins,
                                  const std::uint8_t* categorical, int n_threads) {
  const auto threads = static_cast<std::size_t>(std::max(n_threads, 1));
  const std::size_t n = x.n_rows;
  std::vector<ColumnCuts> columns(x.n_columns);
  for (std::size_t c = 0; c < x.n_columns; ++c) columns[c].categorical = categorical != nullptr && categorical[c] != 0;
  std::vector<std::int64_t> units;
  if (weight != nullptr) units = weight_units(weight, n);
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
        column_cuts(block.data() + c * n, n, x.first_column + panel.first + c,
                    weight != nullptr ? units.data() : nullptr, static_cast<std::size_t>(max_bins),
                    scratch[static_cast<std::size_t>(thread)], columns[panel.first + c]);
    });
  });
  return columns;
}

}  // namespace polyleaf
