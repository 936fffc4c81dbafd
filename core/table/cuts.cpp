#include "table/cuts.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "base/order_free.hpp"
#include "rules/cut_choice.hpp"
#include "table/column_panels.hpp"

namespace polyleaf {
namespace {

// All weights together are less than 2^51 units, before each is rounded to at least one.
constexpr int kUnitBits = 51;

// Distinct values of a column, ascending: value(i), and the weight of the first i + 1 of them together.
template <class Value, class Weight>
struct WeightedValues {
  const Value& value;
  const Weight* through;
  std::size_t count;
};

// Cuts behind the values that bins end with.
template <class Value, class Weight>
void choose_cuts(const WeightedValues<Value, Weight>& distinct, std::size_t max_bins, CutMemory& memory,
                 std::vector<double>& cuts) {
  const ValueWeights<Weight> values = {distinct.through, static_cast<int>(distinct.count)};
  const int most_bins = static_cast<int>(max_bins);
  std::vector<int>& heavy = memory.heavy;
  heavy.clear();
  if (values.n_values > most_bins) {
    const double share = bin_share(values, most_bins);
    for (int i = 0; i < values.n_values; ++i)
      if (weight_of(values, i, i + 1) >= share) heavy.push_back(i);
  }
  memory.n_bins.resize(heavy.size() + 1);
  memory.order.resize(heavy.size() + 1);
  memory.remainder.resize(heavy.size() + 1);
  std::vector<int>& bin_end = memory.bin_end;
  bin_end.resize(std::min(distinct.count, max_bins));
  const int n_cuts =
      choose_bin_ends(values, most_bins, {heavy.data(), static_cast<int>(heavy.size())},
                      {memory.n_bins.data(), memory.remainder.data(), memory.order.data()}, bin_end.data());
  cuts.reserve(static_cast<std::size_t>(n_cuts));
  for (int k = 0; k < n_cuts; ++k) {
    const auto i = static_cast<std::size_t>(bin_end[static_cast<std::size_t>(k)]);
    cuts.push_back(between(distinct.value(i), distinct.value(i + 1)));
  }
}

// The distinct values as categories, with cuts between them.
template <class Value, class Weight>
void take_categories(const WeightedValues<Value, Weight>& distinct, std::size_t column, ColumnCuts& out) {
  for (std::size_t i = 0; i < distinct.count; ++i) {
    const double value = distinct.value(i);
    if (!(value >= 0 && value < static_cast<double>(kMostCategories) && value == std::floor(value)))
      throw std::invalid_argument("column " + std::to_string(column) + " holds " + std::to_string(value) +
                                  ", which is no category: they are whole numbers from 0 to " +
                                  std::to_string(kMostCategories - 1));
    out.categories.push_back(static_cast<std::uint32_t>(value));
    if (i > 0) out.cuts.push_back(between(distinct.value(i - 1), value));
  }
}

// Fills the cuts and categories of a column; 0 bins: one for each value.
template <class Value, class Weight>
void cuts_between(const WeightedValues<Value, Weight>& distinct, std::size_t column, std::size_t max_bins,
                  CutMemory& memory, ColumnCuts& out) {
  if (distinct.count == 0) return;
  if (out.categorical) return take_categories(distinct, column, out);
  if (max_bins == 0 && distinct.count > kMostDistinct)
    throw std::invalid_argument("max_bins=None gives each distinct value a bin; column " + std::to_string(column) +
                                " has " + std::to_string(distinct.count) + " of them, at most " +
                                std::to_string(kMostDistinct) + " are allowed");
  choose_cuts(distinct, max_bins == 0 ? kMostDistinct : max_bins, memory, out.cuts);
}

}  // namespace

double weight_total(const double* weight, std::size_t n) {
  return order_free_sum(n, [&](std::size_t i) { return weight[i] > 0 ? weight[i] : 0.0; });
}

std::vector<std::int64_t> weight_units(const double* weight, std::size_t n, double total) {
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
  const std::size_t n = x.n_rows;
  std::vector<ColumnCuts> columns(x.n_columns);
  for (std::size_t c = 0; c < x.n_columns; ++c) columns[c].categorical = categorical != nullptr && categorical[c] != 0;
  std::vector<std::int64_t> units;
  if (weight != nullptr) units = weight_units(weight, n, weight_total(weight, n));
  std::vector<Scratch> scratch(static_cast<std::size_t>(std::max(n_threads, 1)));
  std::vector<CutMemory> memory(scratch.size());
  each_column(x, n_threads, [&](std::size_t c, const auto* values, int thread) {
    with_distinct(values, n, weight != nullptr ? units.data() : nullptr, scratch[static_cast<std::size_t>(thread)],
                  [&](const auto& distinct, bool has_missing) {
                    columns[c].has_missing = has_missing;
                    const auto value = [&](std::size_t i) { return distinct.value(i); };
                    const auto choose = [&](const auto* through) {
                      const WeightedValues<decltype(value), std::decay_t<decltype(*through)>> weighted = {
                          value, through, distinct.n_distinct};
                      cuts_between(weighted, x.first_column + c, static_cast<std::size_t>(max_bins),
                                   memory[static_cast<std::size_t>(thread)], columns[c]);
                    };
                    distinct.weighted() ? choose(distinct.weights.data()) : choose(distinct.other.data());
                  });
  });
  return columns;
}

ColumnCuts cuts_of_summary(const ColumnSummary& summary, int max_bins, bool categorical, std::size_t column,
                           CutMemory& memory) {
  ColumnCuts out;
  out.has_missing = summary.has_missing;
  out.categorical = categorical;
  std::vector<std::int64_t>& through = memory.through;
  through.resize(summary.weights.size());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < through.size(); ++i) through[i] = sum += summary.weights[i];
  const auto value = [&](std::size_t i) { return summary.values[i]; };
  const WeightedValues<decltype(value), std::int64_t> weighted = {value, through.data(), through.size()};
  cuts_between(weighted, column, static_cast<std::size_t>(max_bins), memory, out);
  return out;
}

}  // namespace polyleaf
