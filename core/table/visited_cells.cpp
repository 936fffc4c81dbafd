#include "table/visited_cells.hpp"

#include <algorithm>
#include <numeric>

#include "base/threads.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kMostLinesAhead = 4;  // from there on the processor sees by itself where a row goes on
constexpr std::size_t kBlockRows = 1024;
constexpr std::size_t kSampleRows = 2048;
// Combinations of the bins of a group's features.
constexpr std::size_t kMostCombinations = 256;
// Groups are to pay already in nodes of this share of the rows.
constexpr double kShareOfNode = 1.0 / 16;
// Unless they leave this share of the cells at most, they are not worth their memory.
constexpr double kMostLeft = 0.85;

// list_row(row, slots) writes the slots of a row, `most` at most, and returns their number.
template <class ListRow>
VisitedCells list_rows(std::size_t n_rows, std::size_t most, int n_threads, const ListRow& list_row) {
  VisitedCells cells;
  cells.row_begin.assign(n_rows + 1, 0);
  const std::size_t n_blocks = (n_rows + kBlockRows - 1) / kBlockRows;
  const int n_working = n_rows * most < kParallelWork ? 1 : n_threads;
  std::vector<std::vector<std::uint16_t>> pieces(n_blocks);
  parallel_for(n_working, n_blocks, [&](std::size_t block, int) {
    const std::size_t begin = block * kBlockRows;
    const std::size_t end = std::min(n_rows, begin + kBlockRows);
    std::vector<std::uint16_t> slots((end - begin) * most);
    std::size_t n = 0;
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t count = list_row(row, slots.data() + n);
      cells.row_begin[row + 1] = static_cast<std::uint32_t>(count);
      n += count;
    }
    pieces[block].assign(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(n));
  });
  std::partial_sum(cells.row_begin.begin(), cells.row_begin.end(), cells.row_begin.begin());
  cells.slots = Buffer<std::uint16_t>(cells.row_begin.back());
  parallel_for(n_working, n_blocks, [&](std::size_t block, int) {
    std::copy(pieces[block].begin(), pieces[block].end(), cells.slots.data() + cells.row_begin[block * kBlockRows]);
    pieces[block] = {};
  });
  return cells;
}

template <class Code>
VisitedCells cells_of_features(const FeatureTile& tile, std::size_t n_rows, int n_threads) {
  const std::size_t k = tile.n_features();
  const Code* codes = reinterpret_cast<const Code*>(tile.codes.data());
  return list_rows(n_rows, k, n_threads, [&](std::size_t row, std::uint16_t* slots) {
    std::size_t n = 0;
    for (std::size_t position = 0; position < k; ++position) {  // without branches on the data
      const std::uint32_t slot = tile.slot_begin[position] + codes[row * k + position];
      slots[n] = static_cast<std::uint16_t>(slot);
      n += slot != tile.frequent_slot[position] ? 1 : 0;
    }
    return n;
  });
}

VisitedCells cells_of_groups(const FeatureTile& tile, std::size_t n_rows, int n_threads) {
  const FeatureGroups& groups = tile.groups;
  const std::size_t k = tile.n_features();
  const std::size_t n_groups = groups.size();
  std::vector<std::uint32_t> n_bins(k), frequent_code(k);
  for (std::size_t position = 0; position < k; ++position) {
    n_bins[position] = tile.slot_begin[position + 1] - tile.slot_begin[position];
    frequent_code[position] = tile.frequent_slot[position] - tile.slot_begin[position];
  }
  const auto combination = [&](std::size_t group, const auto* codes) {
    std::uint32_t slot = 0;
    for (std::uint32_t position = groups.first[group]; position < groups.first[group + 1]; ++position)
      slot = slot * n_bins[position] + codes[position];
    return groups.slot_begin[group] + slot;
  };
  std::vector<std::uint32_t> frequent(n_groups, groups.n_slots());  // in a dense tile there is none
  for (std::size_t group = 0; tile.sparse && group < n_groups; ++group)
    frequent[group] = combination(group, frequent_code.data());
  return list_rows(n_rows, n_groups, n_threads, [&](std::size_t row, std::uint16_t* slots) {
    const std::uint8_t* codes = tile.codes.data() + row * k;
    std::size_t n = 0;
    for (std::size_t group = 0; group < n_groups; ++group) {
      const std::uint32_t slot = combination(group, codes);
      slots[n] = static_cast<std::uint16_t>(slot);
      n += slot != frequent[group] ? 1 : 0;
    }
    return n;
  });
}

// Neighbours become a group where, by a sample of evenly spaced rows, so many have cells to be visited in both that
// more is saved than the combinations cost. (The choice affects speed only.) False: it is not worth while.
bool form_groups(FeatureTile& tile, std::size_t n_rows) {
  const std::size_t k = tile.n_features();
  const std::size_t every = (n_rows + kSampleRows - 1) / kSampleRows;
  const std::size_t n_sample = (n_rows + every - 1) / every;
  const double rows_of_one = kShareOfNode * static_cast<double>(every);  // that a row of the sample stands for
  std::vector<std::uint8_t> in_group(n_sample), in_feature(n_sample);    // whether there is a cell to be visited
  FeatureGroups& groups = tile.groups;
  std::size_t combinations = 0;
  std::size_t n_cells = 0, n_saved = 0;
  for (std::size_t position = 0; position < k; ++position) {
    const std::size_t n_bins = tile.slot_begin[position + 1] - tile.slot_begin[position];
    const auto frequent = static_cast<std::uint8_t>(tile.frequent_slot[position] - tile.slot_begin[position]);
    std::size_t both = 0;
    for (std::size_t i = 0; i < n_sample; ++i) {
      in_feature[i] = !tile.sparse || tile.codes[i * every * k + position] != frequent ? 1 : 0;
      both += in_group[i] & in_feature[i];
      n_cells += in_feature[i];
    }
    const bool joins =
        position > 0 && combinations * n_bins <= kMostCombinations &&
        static_cast<double>(both) * rows_of_one + kCombinationCost * static_cast<double>(combinations + n_bins) >=
            kCombinationCost * static_cast<double>(combinations * n_bins);
    if (joins) {
      for (std::size_t i = 0; i < n_sample; ++i) in_group[i] |= in_feature[i];
      combinations *= n_bins;
      n_saved += both;
      continue;
    }
    groups.first.push_back(static_cast<std::uint32_t>(position));
    groups.slot_begin.push_back(position == 0 ? 0
                                              : groups.slot_begin.back() + static_cast<std::uint32_t>(combinations));
    combinations = n_bins;
    in_group.swap(in_feature);
  }
  groups.first.push_back(static_cast<std::uint32_t>(k));
  groups.slot_begin.push_back(groups.slot_begin.back() + static_cast<std::uint32_t>(combinations));
  if (n_rows > kMostVisited / groups.size()) return false;
  return static_cast<double>(n_cells - n_saved) <= kMostLeft * static_cast<double>(n_cells);
}

}  // namespace

std::size_t VisitedCells::lines() const {
  const std::size_t rows = row_begin.size() - 1;
  const std::size_t twice_the_mean = 2 * slots.size() * sizeof(std::uint16_t) / std::max<std::size_t>(1, rows);
  return std::min(twice_the_mean / kLineBytes + 1, kMostLinesAhead);
}

void list_visited_cells(BinnedMatrix& matrix, int n_threads) {
  for (FeatureTile& tile : matrix.tiles) {
    if (tile.sparse)
      tile.cells = tile.wide ? cells_of_features<std::uint16_t>(tile, matrix.n_rows, n_threads)
                             : cells_of_features<std::uint8_t>(tile, matrix.n_rows, n_threads);
    if (tile.wide) continue;  // bins are many
    if (form_groups(tile, matrix.n_rows))
      tile.groups.cells = cells_of_groups(tile, matrix.n_rows, n_threads);
    else
      tile.groups = {};
  }
}

}  // namespace polyleaf
