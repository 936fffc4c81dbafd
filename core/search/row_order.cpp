#include "search/row_order.hpp"

namespace polyleaf {

void RowOrder::start(const PayloadLayout& layout, const FeatureTile& tile, const NodeRows& rows) {
  tile_ = &tile;
  rows_ = &rows;
  weights_ = rows.tile(0) + layout.weight_channel();
  width_ = static_cast<std::size_t>(layout.width);
  order_.resize(tile.n_features() * rows.size());
  n_missing_.assign(tile.n_features(), 0);
}

// By counting.
void RowOrder::sort(std::size_t position) {
  const std::size_t n_rows = rows_->size();
  const std::size_t n_bins = tile_->slot_begin[position + 1] - tile_->slot_begin[position];
  const std::size_t n_value_bins = tile_->value_end[position] - tile_->slot_begin[position];
  std::uint32_t* order = order_.data() + position * n_rows;
  bin_end_.assign(n_bins + 1, 0);
  for (std::size_t i = 0; i < n_rows; ++i) ++bin_end_[tile_->code(rows_->row(i), position) + 1];
  for (std::size_t b = 0; b < n_bins; ++b) bin_end_[b + 1] += bin_end_[b];
  for (std::size_t i = 0; i < n_rows; ++i) order[bin_end_[tile_->code(rows_->row(i), position)]++] = rows_->place(i);
  sorted_ = position;
  n_missing_[position] = static_cast<std::uint32_t>(n_rows) - bin_end_[n_value_bins - 1];
}

std::int64_t RowOrder::weight(std::uint32_t begin, std::uint32_t end) const {
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
