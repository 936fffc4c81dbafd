#include "label_sparse/feature_search.hpp"

#include <algorithm>

#include "kernels/label_bound.hpp"
#include "label_sparse/categories.hpp"
#include "rules/acceptance.hpp"

namespace polyleaf {
namespace {

// The gradients of so many rows are on their way from memory: rows in the order of their bins stand anywhere in it.
constexpr std::ptrdiff_t kRowsAhead = 3;

}  // namespace

void FeatureSearch::start(const NodeLabels& node, const std::uint32_t* rows, double enough) {
  node_ = &node;
  rows_ = rows;
  bar_ = enough;
  places_.clear();
  sums_.assign(node.size() + kLabelLane, 0);
  scores_.start(node);
}

LabelSplit FeatureSearch::best(const FeatureTile& tile, const std::uint8_t* mask) {
  LabelSplit found;
  const auto allowed = [&](std::int32_t feature) { return mask == nullptr || mask[feature] != 0; };
  if (std::none_of(tile.features.begin(), tile.features.end(), allowed)) return found;
  tile_ = &tile;
  bin_rows_.list(tile, rows_, node_->n_rows());
  for (position_ = 0; position_ < tile.n_features(); ++position_) {
    if (!allowed(tile.features[position_])) continue;
    list_bins(tile, position_);
    if (bins_.size() + (missing_.count > 0 ? 1 : 0) < 2) continue;
    by_chance_ = tile.categorical ? put_in_order() : 0.0;
    const bool few = tile.value_end[position_] - tile.slot_begin[position_] <= kMostOneAgainstRest;
    if (tile.categorical && few)
      search_one_against_rest(found);
    else
      search_ordered(found);
  }
  return found;
}

FeatureSearch::Amount FeatureSearch::amount(std::uint32_t slot) const {
  Amount sum{bin_rows_.count(slot), 0};
  if (!gradients_.weighted) return {sum.count, static_cast<std::int64_t>(sum.count)};
  for (const std::uint32_t* row = bin_rows_.begin(slot); row < bin_rows_.end(slot); ++row)
    sum.weight += node_->weight_of(*row);
  return sum;
}

void FeatureSearch::list_bins(const FeatureTile& tile, std::size_t position) {
  bins_.clear();
  missing_ = {};
  const std::uint32_t unlisted = bin_rows_.unlisted(position);
  std::int64_t rest = node_->weight();
  const auto weigh = [&](std::uint32_t slot) {
    const Amount found = amount(slot);
    rest -= slot == unlisted ? 0 : found.weight;
    return found;
  };
  for (std::uint32_t slot = tile.slot_begin[position]; slot < tile.value_end[position]; ++slot)
    if (bin_rows_.count(slot) > 0) bins_.push_back({slot, weigh(slot), {}});
  if (tile.has_missing(position)) missing_ = weigh(tile.value_end[position]);
  if (unlisted != kNoSlot) {
    for (Bin& bin : bins_)
      if (bin.slot == unlisted) bin.own.weight = rest;
    if (unlisted == tile.value_end[position]) missing_.weight = rest;
  }
  sum_up();
}

void FeatureSearch::sum_up() {
  Amount through;
  for (Bin& bin : bins_) bin.through = through = through + bin.own;
}

template <class Change>
void FeatureSearch::each_cell(std::uint32_t slot, Change&& change) {
  const std::uint32_t* const end = bin_rows_.end(slot);
  for (const std::uint32_t* row = bin_rows_.begin(slot); row < end; ++row) {
    if (row + kRowsAhead < bin_rows_.last()) node_->fetch(row[kRowsAhead]);
    for (std::uint32_t at = node_->begin(*row); at < node_->end(*row); ++at) change(node_->cell(at));
  }
}

void FeatureSearch::clear_sums() { std::fill(sums_.begin(), sums_.end(), 0); }

void FeatureSearch::add(std::uint32_t slot) {
  std::int32_t* sums = sums_.data();
  if (slot != bin_rows_.unlisted(position_))
    return each_cell(slot, [sums](const NodeCell& cell) { sums[cell.label] += cell.value; });
  // All that no other bin has.
  for (std::size_t label = 0; label < node_->size(); ++label) sums[label] += node_->totals()[label];
  for (std::uint32_t other = tile_->slot_begin[position_]; other < tile_->slot_begin[position_ + 1]; ++other)
    each_cell(other, [sums](const NodeCell& cell) { sums[cell.label] -= cell.value; });
}

void FeatureSearch::search_ordered(LabelSplit& found) {
  for (const bool with_missing : {false, true}) {
    if (with_missing && missing_.count == 0) continue;
    search_from(Side::kLeft, with_missing, found);
    search_from(Side::kRight, with_missing, found);
  }
  if (!tile_->categorical || found.best.chosen.feature != tile_->features[position_]) return;
  std::vector<std::uint32_t> order;
  for (const Bin& bin : bins_) order.push_back(bin.slot - tile_->slot_begin[position_]);
  found.partition.set(order, 0, static_cast<std::size_t>(found.best.chosen.bin) + 1,
                      [](std::uint32_t bin) { return bin; });
}

void FeatureSearch::search_from(Side side, bool with_missing, LabelSplit& found) {
  const std::size_t n = bins_.size();
  if (n == 0) return;
  // Where the two sides meet: a bin that need not be visited.
  std::size_t most = 0;
  for (std::size_t b = 0; b < n; ++b) {
    if (bins_[b].slot == bin_rows_.unlisted(position_)) {
      most = b;
      break;
    }
    if (bins_[b].own.count > bins_[most].own.count) most = b;
  }
  const auto less = [&](std::size_t cut) { return cut + 1 < n ? by_chance_ : 0.0; };  // not of missing against the rest
  const std::size_t n_cuts = side == Side::kLeft ? most : n - most;
  if (n_cuts == 0 || (n_cuts == 1 && side == Side::kRight && !with_missing)) return;
  clear_sums();
  if (with_missing) add(tile_->value_end[position_]);
  if (side == Side::kLeft) {
    for (std::size_t cut = 0; cut < most; ++cut) {
      add(bins_[cut].slot);
      offer(cut, with_missing, bins_[cut].through, side, less(cut), found);
    }
  } else {
    for (std::size_t cut = n; cut-- > most;) {
      if (cut + 1 < n) add(bins_[cut + 1].slot);
      offer(cut, missing_.count > 0 && !with_missing, bins_[cut].through, side, less(cut), found);
    }
  }
}

// Of few categories, each against the others; the last place is that of missing values against the rest.
void FeatureSearch::search_one_against_rest(LabelSplit& found) {
  for (std::size_t place = 0; place < bins_.size(); ++place) {
    for (const bool missing_left : {false, true}) {
      if (missing_left && missing_.count == 0) continue;
      clear_sums();
      add(bins_[place].slot);
      if (missing_left) add(tile_->value_end[position_]);
      offer(place, missing_left, bins_[place].own, Side::kLeft, 0.0, found);
    }
  }
  if (missing_.count > 0 && bins_.size() > 1) {  // of one category, that is its place already
    clear_sums();
    add(tile_->value_end[position_]);
    offer(bins_.size(), false, bins_.back().through, Side::kRight, 0.0, found);
  }
  if (found.best.chosen.feature != tile_->features[position_]) return;
  const auto place = static_cast<std::size_t>(found.best.chosen.bin);
  std::vector<std::uint32_t> order;
  for (const Bin& bin : bins_) order.push_back(bin.slot - tile_->slot_begin[position_]);
  found.partition.set(order, place < order.size() ? place : 0, place + 1, [](std::uint32_t bin) { return bin; });
}

void FeatureSearch::offer(std::size_t place, bool missing_left, const Amount& left, Side side, double less,
                          LabelSplit& found) {
  const Amount whole{node_->n_rows(), node_->weight()};
  const Amount to_left = missing_left ? left + missing_ : left;
  const auto weight = [&](std::int64_t in_units) { return static_cast<double>(in_units) * gradients_.weight_unit; };
  if (!large_enough(static_cast<std::int64_t>(to_left.count), static_cast<std::int64_t>(whole.count),
                    rules_.min_samples_leaf) ||
      !heavy_enough(weight(to_left.weight), weight(whole.weight), rules_.min_child_weight))
    return;
  Candidate candidate;
  const std::int64_t of_side = side == Side::kLeft ? to_left.weight : whole.weight - to_left.weight;
  candidate.score = scores_.score(sums_.data(), of_side, bar_ + less) - less;
  if (candidate.score < 0 || !reaches(candidate.score, bar_)) return;
  bar_ = std::max(bar_, candidate.score);
  candidate.feature = tile_->features[position_];
  candidate.bin =
      tile_->categorical ? static_cast<int>(place) : static_cast<int>(bins_[place].slot - tile_->slot_begin[position_]);
  candidate.missing_left = missing_left;
  candidate.missing_seen = missing_.count > 0;
  found.best.offer(candidate);
}

double FeatureSearch::put_in_order() {
  if (places_.empty()) places_ = node_->places();
  std::vector<double> factor(node_->size());
  for (std::size_t label = 0; label < node_->size(); ++label)
    factor[places_[label]] = gradients_.factor[static_cast<std::size_t>(node_->output(label))];
  SparseCategories categories;
  categories.factor = factor.data();
  categories.n_outputs = node_->size();
  categories.reg_lambda = rules_.reg_lambda;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> touched;  // place, label
  clear_sums();
  for (const Bin& bin : bins_) {
    touched.clear();
    each_cell(bin.slot, [&](const NodeCell& cell) {
      touched.emplace_back(places_[cell.label], cell.label);
      sums_[cell.label] += cell.value;
    });
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (const auto& [place, label] : touched) {
      categories.output.push_back(static_cast<std::int32_t>(place));
      categories.gradient.push_back(sums_[label]);
      sums_[label] = 0;
    }
    categories.begin.push_back(categories.output.size());
    categories.hessian.push_back(static_cast<double>(bin.own.weight) * gradients_.weight_unit);
  }
  std::vector<std::uint32_t> order;
  polyleaf::put_in_order(categories, order);
  std::vector<Bin> ordered;
  for (const std::uint32_t at : order) ordered.push_back(bins_[at]);
  bins_.swap(ordered);
  sum_up();
  return noise_.score(categories.hessian);
}

}  // namespace polyleaf
