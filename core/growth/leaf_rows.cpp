#include "growth/leaf_rows.hpp"

namespace polyleaf {

std::vector<RowChunk> row_chunks(const std::vector<LeafRows>& leaves) {
  std::vector<RowChunk> chunks;
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf)
    for (std::size_t begin = leaves[leaf].begin; begin < leaves[leaf].end; begin += kLeafChunkRows)
      chunks.push_back({leaf, begin, std::min(leaves[leaf].end, begin + kLeafChunkRows)});
  return chunks;
}

void write_leaves(const GrowTask& task, int n_threads, const RowsInLeaves& places, const GrownTree& tree) {
  std::uint32_t* leaf_of_row = task.destination.leaf_of_row;
  const std::vector<RowChunk> chunks = row_chunks(places.leaves);
  parallel_for(task.n_rows() < kParallelGathers ? 1 : n_threads, chunks.size(), [&](std::size_t c, int) {
    const auto leaf = static_cast<std::uint32_t>(chunks[c].leaf);
    for (std::size_t i = chunks[c].begin; i < chunks[c].end; ++i) leaf_of_row[places.rows[i]] = leaf;
  });
  each_outside_sample(task, n_threads, tree,
                      [&](std::size_t row, std::size_t leaf) { leaf_of_row[row] = static_cast<std::uint32_t>(leaf); });
}

}  // namespace polyleaf
