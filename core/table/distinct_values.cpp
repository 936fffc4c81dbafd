#include "table/distinct_values.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "table/column_panels.hpp"

namespace polyleaf {
namespace {

// Columns with at most this many distinct values are summarised by a hash table instead of a sort.
constexpr std::size_t kFewDistinct = 1024;
constexpr int kTableBits = 12;
constexpr std::size_t kTableSize = std::size_t{1} << kTableBits;

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

// Most columns of a wide table use little of the table.
void clear(FewTable& table) {
  for (const std::size_t at : table.used) table.count[at] = 0;
  table.used.clear();
}

// True when the column has few distinct values; they are then summarised.
template <class Real>
bool summarise_few(Summary<Real>& s, FewTable& table) {
  table.count.resize(kTableSize);  // of zeros, as they are left
  table.key.resize(kTableSize);
  table.weight.resize(kTableSize);
  const bool weighted = s.weighted();
  std::uint32_t* count = table.count.data();
  std::uint64_t* keys = table.key.data();
  for (std::size_t i = 0; i < s.keys.size(); ++i) {
    const std::uint64_t key = s.keys[i];
    std::size_t at = (key * 0x9E3779B97F4A7C15ull) >> (64 - kTableBits);
    while (count[at] != 0 && keys[at] != key) at = (at + 1) & (kTableSize - 1);
    if (count[at] == 0) {
      if (table.used.size() == kFewDistinct) {
        clear(table);
        return false;
      }
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
  clear(table);
  return true;
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

bool fits_float(double value) { return static_cast<double>(static_cast<float>(value)) == value || std::isnan(value); }

}  // namespace

bool all_fit_float(const float*, std::size_t) { return true; }
bool all_fit_float(const double* values, std::size_t n) { return std::all_of(values, values + n, fits_float); }

template <class Real, class Value>
bool summarise(const Value* values, std::size_t n, const std::int64_t* weight, Summary<Real>& s, FewTable& table) {
  const bool has_missing = take_keys(values, n, weight, s);
  s.n_distinct = 0;
  if (!s.keys.empty() && !summarise_few(s, table)) summarise_many(s);
  return has_missing;
}

template bool summarise(const float*, std::size_t, const std::int64_t*, Summary<float>&, FewTable&);
template bool summarise(const float*, std::size_t, const std::int64_t*, Summary<double>&, FewTable&);
template bool summarise(const double*, std::size_t, const std::int64_t*, Summary<float>&, FewTable&);
template bool summarise(const double*, std::size_t, const std::int64_t*, Summary<double>&, FewTable&);

std::vector<ColumnSummary> summarise_columns(const MatrixView& x, const std::int64_t* units, int n_threads) {
  std::vector<ColumnSummary> columns(x.n_columns);
  std::vector<Scratch> scratch(static_cast<std::size_t>(std::max(n_threads, 1)));
  each_column(x, n_threads, [&](std::size_t c, const auto* values, int thread) {
    with_distinct(values, x.n_rows, units, scratch[static_cast<std::size_t>(thread)],
                  [&](const auto& distinct, bool has_missing) {
                    ColumnSummary& out = columns[c];
                    out.has_missing = has_missing;
                    out.values.resize(distinct.n_distinct);
                    out.weights.resize(distinct.n_distinct);
                    std::int64_t before = 0;
                    for (std::size_t i = 0; i < distinct.n_distinct; ++i) {
                      const std::int64_t through =
                          distinct.weighted() ? distinct.weights[i] : static_cast<std::int64_t>(distinct.other[i]);
                      out.values[i] = distinct.value(i);
                      out.weights[i] = through - before;
                      before = through;
                    }
                  });
  });
  return columns;
}

}  // namespace polyleaf
