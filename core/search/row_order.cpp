#include "search/row_order.hpp"

#include <algorithm>

namespace polyleaf {
namespace {

constexpr std::size_t kBits = 64;

}  // namespace

void RowOrder::start(const PayloadLayout& layout, const FeatureTile& tile, const NodeRows& rows) {
  tile_ = &tile;
  rows_ = &rows;
  // A row counts 1: where that is its weight, too, there is nothing to sum.
  weights_ = layout.weight_channel() == layout.count_channel() ? nullptr : rows.tile(0) + layout.weight_channel();
  width_ = static_cast<std::size_t>(layout.width);
  order_.resize(tile.n_features() * rows.size());
  n_missing_.assign(tile.n_features(), 0);
  if (!tile.keeps_codes) read_cells();
}

// The codes of the rows, feature by feature, from the cells that are listed: they would be searched for one by one
// else.
void RowOrder::read_cells() {
  const std::size_t n_rows = rows_->size();
  cell_codes_.resize(tile_->n_features() * n_rows);
  for (std::size_t position = 0; position < tile_->n_features(); ++position)
    std::fill_n(cell_codes_.begin() + static_cast<std::ptrdiff_t>(position * n_rows), n_rows,
                tile_->frequent_slot[position] - tile_->slot_begin[position]);
  for (std::size_t i = 0; i < n_rows; ++i)
    each_listed(*tile_, rows_->row(i),
                [&](std::size_t position, std::uint32_t code) { cell_codes_[position * n_rows + i] = code; });
}

// By counting the rows of each group.
void RowOrder::sort(std::size_t position) {
  const std::size_t n_rows = rows_->size();
  const std::size_t n_bins = tile_->slot_begin[position + 1] - tile_->slot_begin[position];
  const std::size_t n_value_bins = tile_->value_end[position] - tile_->slot_begin[position];
  occupied_.assign((n_bins + kBits - 1) / kBits, 0);
  codes_.resize(n_rows);
  for (std::size_t i = 0; i < n_rows; ++i) {
    const std::uint32_t code =
        tile_->keeps_codes ? tile_->code(rows_->row(i), position) : cell_codes_[position * n_rows + i];
    codes_[i] = code;
    occupied_[code / kBits] |= std::uint64_t{1} << code % kBits;
  }
  if (group_of_bin_.size() < n_bins) {
    group_of_bin_.resize(n_bins);
    bin_of_group_.resize(n_bins);
  }
  std::uint32_t n_found = 0;
  for (std::size_t word = 0; word < occupied_.size(); ++word) {
    for (std::uint64_t bits = occupied_[word]; bits != 0; bits &= bits - 1) {
      const auto bin = static_cast<std::uint32_t>(word * kBits + static_cast<std::size_t>(__builtin_ctzll(bits)));
      group_of_bin_[bin] = n_found;
      bin_of_group_[n_found++] = bin;
    }
  }
  group_end_.assign(n_found + 1, 0);
  for (std::uint32_t& code : codes_) {
    code = group_of_bin_[code];
    ++group_end_[code + 1];
  }
  for (std::size_t g = 0; g < n_found; ++g) group_end_[g + 1] += group_end_[g];
  std::uint32_t* order = order_.data() + position * n_rows;
  for (std::size_t i = 0; i < n_rows; ++i) order[group_end_[codes_[i]]++] = rows_->place(i);
  sorted_ = position;
  n_groups_ = n_found;
  if (n_found > 0 && bin_of_group_[n_found - 1] >= n_value_bins) --n_groups_;  // the rows that miss the feature
  const std::uint32_t n_values = n_groups_ == 0 ? 0 : group_end_[n_groups_ - 1];
  n_missing_[position] = static_cast<std::uint32_t>(n_rows) - n_values;
}

std::int64_t RowOrder::weight(std::uint32_t begin, std::uint32_t end) const {
  if (weights_ == nullptr) return end - begin;
  const std::uint32_t* order = order_.data() + sorted_ * rows_->size();
  std::int64_t sum = 0;
  for (std::uint32_t i = begin; i < end; ++i) sum += weights_[order[i] * width_];
  return sum;
}

StepSums RowOrder::sums(std::size_t position, int output_tile) const {
  StepSums sums{};
  sums.width = static_cast<int>(width_);
  sums.payload = rows_->tile(output_tile);
  sums.order = order_.data() + position * rows_->size();
  sums.n_rows = n_rows();
  sums.n_missing = n_missing_[position];
  return sums;
}

}  // namespace polyleaf
