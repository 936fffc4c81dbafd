#include "search/sorted_rows.hpp"

#include <algorithm>

namespace polyleaf {
namespace {

// The payload of a chunk is to stay in a core's second-level cache: 256 KiB of 32 channels.
constexpr std::size_t kChunkRows = 2048;
// From one feature's codes to the next: no power of two, or all of them would compete for the same lines of the cache.
constexpr std::size_t kCodesStride = kChunkRows + 64;
constexpr std::size_t kMostBins = 256;
// What pays: enough channels for one sort, and bins of several rows in a chunk.
constexpr std::size_t kLeastChannels = 160;
constexpr std::size_t kMostMeanBins = 128, kLeastRowsOfBin = 4;
// Cells whose order is kept at a time, 4 bytes each.
constexpr std::size_t kMostCells = std::size_t{1} << 22;
constexpr std::size_t kRowsAhead = 16;

}  // namespace

bool SortedRows::has_enough(const PayloadLayout& layout) {
  return !layout.packed && layout.n_channels() >= kLeastChannels;
}

bool SortedRows::pays(const FeatureTile& tile, const PayloadLayout& layout, std::size_t n_rows) {
  const std::size_t n_features = tile.n_features();
  return has_enough(layout) && !tile.wide && tile.keeps_codes && tile.n_slots() <= kMostMeanBins * n_features &&
         n_rows * n_features >= kLeastRowsOfBin * tile.n_slots() && n_rows * n_features <= kMostCells;
}

void SortedRows::take(const FeatureTile& tile, const std::vector<std::uint32_t>* positions, const std::uint32_t* rows,
                      std::size_t n_rows, std::size_t n_parts, std::uint32_t* order) {
  tile_ = &tile;
  rows_ = rows;
  n_rows_ = n_rows;
  n_parts_ = n_parts;
  n_chunks_ = n_parts * ((n_rows + n_parts * kChunkRows - 1) / (n_parts * kChunkRows));
  positions_.clear();
  n_bins_.clear();
  n_slots_ = 0;
  const std::size_t n_features = positions != nullptr ? positions->size() : tile.n_features();
  for (std::size_t i = 0; i < n_features; ++i) {
    const std::uint32_t position = positions != nullptr ? (*positions)[i] : static_cast<std::uint32_t>(i);
    positions_.push_back(position);
    n_bins_.push_back(tile.slot_begin[position + 1] - tile.slot_begin[position]);
    n_slots_ += n_bins_.back();
  }
  if (order == nullptr) own_order_.grow(n_rows * n_features);
  order_ = order != nullptr ? order : own_order_.data();
  ends_.grow(n_chunks_ * n_slots_);
}

void SortedRows::sort(std::size_t chunk, Codes& codes) {
  const std::size_t n_features = positions_.size(), step = tile_->n_features();
  const std::size_t first = begin(chunk), n = begin(chunk + 1) - first;
  const std::uint32_t* rows = rows_ + first;
  codes.grow(n_features * kCodesStride);
  for (std::size_t i = 0; i < n; ++i) {
    if (i + kRowsAhead < n) __builtin_prefetch(tile_->codes.data() + rows[i + kRowsAhead] * step);
    const std::uint8_t* of_row = tile_->codes.data() + rows[i] * step;
    for (std::size_t f = 0; f < n_features; ++f) codes[f * kCodesStride + i] = of_row[positions_[f]];
  }
  std::uint32_t* order = order_ + first * n_features;
  std::uint16_t* ends = ends_.data() + chunk * n_slots_;
  for (std::size_t f = 0; f < n_features; ++f) {
    sort(n_bins_[f], codes.data() + f * kCodesStride, rows, n, order, ends);
    order += n;
    ends += n_bins_[f];
  }
}

// By counting the rows of each bin.
void SortedRows::sort(std::size_t n_bins, const std::uint8_t* codes, const std::uint32_t* rows, std::size_t n,
                      std::uint32_t* order, std::uint16_t* ends) {
  std::uint16_t place[kMostBins + 1] = {0};
  for (std::size_t i = 0; i < n; ++i) ++place[codes[i] + 1];
  for (std::size_t bin = 0; bin < n_bins; ++bin)
    place[bin + 1] = static_cast<std::uint16_t>(place[bin + 1] + place[bin]);
  for (std::size_t i = 0; i < n; ++i) order[place[codes[i]]++] = rows[i];
  std::copy_n(place, n_bins, ends);
}

void SortedRows::add_to(std::int32_t* histogram, const PayloadRows& payload, std::size_t part) const {
  const std::size_t n_features = positions_.size(), n_here = n_chunks_ / n_parts_;
  for (std::size_t c = part * n_here; c < (part + 1) * n_here; ++c) {
    const std::size_t first = begin(c);
    SortedChunk chunk{payload, rows_ + first, begin(c + 1) - first, nullptr, nullptr, 0, nullptr};
    histogram_kernels().fetch_payload(chunk);
    chunk.order = order_ + first * n_features;
    chunk.ends = ends_.data() + c * n_slots_;
    for (std::size_t f = 0; f < n_features; ++f) {
      chunk.n_bins = n_bins_[f];
      chunk.histogram = histogram + tile_->slot_begin[positions_[f]] * static_cast<std::size_t>(payload.width);
      histogram_kernels().add_sorted(chunk);
      chunk.order += chunk.n_rows;
      chunk.ends += chunk.n_bins;
    }
  }
}

}  // namespace polyleaf
