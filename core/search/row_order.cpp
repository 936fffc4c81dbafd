#include "search/row_order.hpp"

#include <algorithm>

namespace polyleaf {
namespace {

constexpr std::size_t kBits = 64;

}  // namespace

void RowOrder::start(const PayloadLayout& layout, const FeatureTile& tile, const NodeRows& rows, std::int64_t least) {
  tile_ = &tile;
  rows_ = &rows;
  // A row counts 1: where that is its weight, too, there is nothing to sum.
  weights_ = layout.weight_channel() == layout.count_channel() ? nullptr : rows.tile(0) + layout.weight_channel();
  width_ = static_cast<std::size_t>(layout.width);
  n_missing_.assign(tile.n_features(), 0);
  const std::size_t n_sorted = tile.keeps_codes ? tile.n_features() : count_cells(least);
  if (order_.size() < n_sorted * rows.size()) order_.resize(n_sorted * rows.size());
  if (!tile.keeps_codes && n_sorted > 0) read_cells(least, n_sorted);
}

// How many features have enough cells.
std::size_t RowOrder::count_cells(std::int64_t least) {
  const std::size_t n_rows = rows_->size();
  n_listed_.assign(tile_->n_features(), 0);
  most_listed_ = 0;
  for (std::size_t i = 0; i < n_rows; ++i)
    each_listed(*tile_, rows_->row(i), [&](std::size_t position, std::uint32_t) {
      most_listed_ = std::max(most_listed_, ++n_listed_[position]);
    });
  part_.assign(tile_->n_features(), 0);
  std::size_t n_sorted = 0;
  if (!has_any_outside(least)) return n_sorted;
  for (std::size_t position = 0; position < tile_->n_features(); ++position)
    if (has_outside(position, least)) part_[position] = static_cast<std::uint32_t>(n_sorted++);
  return n_sorted;
}

// The codes of the rows, feature by feature, from the cells that are listed: they would be searched for one by one
// else.
void RowOrder::read_cells(std::int64_t least, std::size_t n_sorted) {
  const std::size_t n_rows = rows_->size();
  if (cell_codes_.size() < n_sorted * n_rows) cell_codes_.resize(n_sorted * n_rows);
  for (std::size_t position = 0; position < tile_->n_features(); ++position)
    if (has_outside(position, least))
      std::fill_n(cell_codes_.begin() + static_cast<std::ptrdiff_t>(part(position)), n_rows,
                  tile_->frequent_slot[position] - tile_->slot_begin[position]);
  for (std::size_t i = 0; i < n_rows; ++i)
    each_listed(*tile_, rows_->row(i), [&](std::size_t position, std::uint32_t code) {
      if (has_outside(position, least)) cell_codes_[part(position) + i] = code;
    });
}

// Calls body with what reads the code of the i-th row.
template <class Body>
void RowOrder::with_codes(std::size_t position, Body&& body) const {
  if (!tile_->keeps_codes) {
    const std::uint32_t* codes = cell_codes_.data() + part(position);
    return body([=](std::size_t i) { return codes[i]; });
  }
  const std::size_t step = tile_->n_features();
  const NodeRows& rows = *rows_;
  if (tile_->wide) {
    const auto* codes = reinterpret_cast<const std::uint16_t*>(tile_->codes.data()) + position;
    return body([=, &rows](std::size_t i) { return std::uint32_t{codes[rows.row(i) * step]}; });
  }
  const std::uint8_t* codes = tile_->codes.data() + position;
  body([=, &rows](std::size_t i) { return std::uint32_t{codes[rows.row(i) * step]}; });
}

// By counting the rows of each bin.
void RowOrder::sort(std::size_t position) {
  const std::size_t n_rows = rows_->size();
  const std::size_t n_bins = tile_->slot_begin[position + 1] - tile_->slot_begin[position];
  const std::size_t n_value_bins = tile_->value_end[position] - tile_->slot_begin[position];
  if (codes_.size() < n_rows) codes_.resize(n_rows);
  if (count_.size() < n_bins) {
    count_.assign(n_bins, 0);
    bin_of_group_.resize(n_bins);
    group_end_.resize(n_bins);
  }
  count_codes(position, n_bins);
  find_groups(n_bins);
  const std::uint32_t* codes = codes_.data();
  std::uint32_t* count = count_.data();
  std::uint32_t* order = order_.data() + part(position);
  for (std::size_t i = 0; i < n_rows; ++i) order[count[codes[i]]++] = rows_->place(i);
  std::fill_n(count, n_groups_ > 0 ? bin_of_group_[n_groups_ - 1] + 1 : 0, 0);
  sorted_ = position;
  if (n_groups_ > 0 && bin_of_group_[n_groups_ - 1] >= n_value_bins) --n_groups_;  // the rows that miss the feature
  const std::uint32_t n_values = n_groups_ == 0 ? 0 : group_end_[n_groups_ - 1];
  n_missing_[position] = static_cast<std::uint32_t>(n_rows) - n_values;
}

// Where bins are fewer than rows, all of them are looked at later; else those that hold rows are marked.
void RowOrder::count_codes(std::size_t position, std::size_t n_bins) {
  const std::size_t n_rows = rows_->size();
  std::uint32_t *codes = codes_.data(), *count = count_.data();
  if (n_bins <= n_rows)
    return with_codes(position, [=](auto&& code_of) {
      for (std::size_t i = 0; i < n_rows; ++i) ++count[codes[i] = code_of(i)];
    });
  occupied_.assign((n_bins + kBits - 1) / kBits, 0);
  std::uint64_t* occupied = occupied_.data();
  with_codes(position, [=](auto&& code_of) {
    for (std::size_t i = 0; i < n_rows; ++i) {
      const std::uint32_t code = code_of(i);
      codes[i] = code;
      ++count[code];
      occupied[code / kBits] |= std::uint64_t{1} << code % kBits;
    }
  });
}

// The bins that hold rows, and where those begin, in the place of how many they are.
void RowOrder::find_groups(std::size_t n_bins) {
  const std::size_t n_rows = rows_->size();
  std::uint32_t *count = count_.data(), *bins = bin_of_group_.data(), *ends = group_end_.data();
  std::uint32_t begin = 0;
  std::size_t n_groups = 0;
  const auto look_at = [&](std::uint32_t bin) {  // without branches on the data
    const std::uint32_t n_here = count[bin];
    count[bin] = begin;
    begin += n_here;
    bins[n_groups] = bin;
    ends[n_groups] = begin;
    n_groups += n_here > 0 ? 1 : 0;
  };
  if (n_bins <= n_rows) {
    for (std::uint32_t bin = 0; begin < n_rows; ++bin) look_at(bin);
  } else {
    for (std::size_t word = 0; word < occupied_.size(); ++word)
      for (std::uint64_t bits = occupied_[word]; bits != 0; bits &= bits - 1)
        look_at(static_cast<std::uint32_t>(word * kBits + static_cast<std::size_t>(__builtin_ctzll(bits))));
  }
  n_groups_ = n_groups;
}

std::int64_t RowOrder::weight(std::uint32_t begin, std::uint32_t end) const {
  if (weights_ == nullptr) return end - begin;
  const std::uint32_t* order = order_.data() + part(sorted_);
  std::int64_t sum = 0;
  for (std::uint32_t i = begin; i < end; ++i) sum += weights_[order[i] * width_];
  return sum;
}

StepSums RowOrder::sums(std::size_t position, int output_tile) const {
  StepSums sums{};
  sums.width = static_cast<int>(width_);
  sums.payload = rows_->tile(output_tile);
  sums.order = order_.data() + part(position);
  sums.n_rows = n_rows();
  sums.n_missing = n_missing_[position];
  return sums;
}

}  // namespace polyleaf
