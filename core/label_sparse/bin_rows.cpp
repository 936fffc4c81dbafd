#include "label_sparse/bin_rows.hpp"

namespace polyleaf {

// each(i, visit) calls visit(slot) for the slots of row i.
template <class Each>
void BinRows::list_slots(std::size_t n, Each&& each) {
  listed_.assign(tile_->n_slots(), 0);
  for (std::size_t i = 0; i < n; ++i) each(i, [&](std::uint32_t slot) { ++listed_[slot]; });
  end_.resize(tile_->n_slots());
  std::size_t total = 0;  // rows x features of a tile may be more than 2^32
  for (std::uint32_t slot = 0; slot < tile_->n_slots(); ++slot) {
    end_[slot] = total;
    total += listed_[slot];
  }
  n_listed_ = total;
  if (rows_.size() < total) rows_.resize(total);
  for (std::size_t i = 0; i < n; ++i)
    each(i, [&](std::uint32_t slot) { rows_[end_[slot]++] = static_cast<std::uint32_t>(i); });
}

void BinRows::list(const FeatureTile& tile, const std::uint32_t* rows, std::size_t n) {
  tile_ = &tile;
  // The order of categories needs the rows of all.
  skips_ = tile.skips_frequent && !tile.categorical;
  const std::size_t n_features = tile.n_features();
  if (skips_) {
    list_slots(n, [&](std::size_t i, auto&& visit) {
      const std::size_t row = rows[i];
      for (std::uint32_t at = tile.cells.row_begin[row]; at < tile.cells.row_begin[row + 1]; ++at)
        visit(tile.cells.slots[at]);
    });
  } else {
    list_slots(n, [&](std::size_t i, auto&& visit) {
      for (std::size_t position = 0; position < n_features; ++position)
        visit(tile.slot_begin[position] + tile.code(rows[i], position));
    });
  }
  count_ = listed_;
  for (std::size_t position = 0; skips_ && position < n_features; ++position) {
    std::uint32_t others = 0;
    for (std::uint32_t slot = tile.slot_begin[position]; slot < tile.slot_begin[position + 1]; ++slot)
      others += listed_[slot];
    count_[tile.frequent_slot[position]] = static_cast<std::uint32_t>(n) - others;
  }
}

}  // namespace polyleaf
