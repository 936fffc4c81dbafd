#include "leaves/leaf_sums.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/threads.hpp"
#include "gradients/full_hessian.hpp"
#include "kernels/sum.hpp"
#include "rules/influence.hpp"

namespace polyleaf {

namespace {

constexpr std::size_t kMadeCells = std::size_t{1} << 18;  // of a block: they stay in a core's cache
constexpr std::uint32_t kNoLeaf = ~std::uint32_t{0};

}  // namespace

// Both parts of sums.
struct LeafSums::Parts {
  std::vector<double> coarse, fine;
  explicit Parts(std::size_t n) : coarse(n, 0.0), fine(n, 0.0) {}
  RowSums of(const SumGrids& grids, std::size_t first) {
    return {grids.coarse.data(), grids.fine.data(), coarse.data() + first, fine.data() + first};
  }
  void add(const Parts& other, std::size_t first) {
    for (std::size_t k = 0; k < other.coarse.size(); ++k) {
      coarse[first + k] += other.coarse[k];
      fine[first + k] += other.fine[k];
    }
  }
};

// A block of rows: their gradients, where they have to be made, and which of them are in which leaf. They are numbered
// from the first row of the block.
struct LeafSums::Block {
  std::vector<float> gradient, hessian;
  std::vector<std::uint32_t> rows;  // those of a leaf side by side, ascending
  std::vector<std::size_t> begin;   // of each leaf, and the end

  // Takes n rows, some of which may be in no leaf.
  void take(const std::uint32_t* leaf_of, std::size_t n, std::size_t n_leaves) {
    begin.assign(n_leaves + 2, 0);  // at first one place further on
    for (std::size_t row = 0; row < n; ++row)
      if (leaf_of[row] != kNoLeaf) ++begin[leaf_of[row] + 2];
    for (std::size_t leaf = 2; leaf < begin.size(); ++leaf) begin[leaf] += begin[leaf - 1];
    rows.resize(begin.back());
    for (std::size_t row = 0; row < n; ++row)
      if (leaf_of[row] != kNoLeaf) rows[begin[leaf_of[row] + 1]++] = static_cast<std::uint32_t>(row);
  }

  // Makes the gradients of those rows, from row `first` on, that are in leaves.
  void make(const MadeGradients& made, const std::uint32_t* leaf_of, std::size_t first, std::size_t n) {
    const auto d = static_cast<std::size_t>(made.n_outputs());
    gradient.resize(std::max(gradient.size(), n * d));
    if (made.has_hessian()) hessian.resize(gradient.size());
    for (std::size_t from = 0, to = 0; from < n; from = to + 1) {
      for (to = from; to < n && leaf_of[to] != kNoLeaf;) ++to;
      if (from < to)
        made.make(first + from, first + to, gradient.data() + from * d,
                  made.has_hessian() ? hessian.data() + from * d : nullptr);
    }
  }
};

LeafSums::LeafSums(const Gradients& gradients, const GradientBounds& bounds, const Shard& shard, bool magnitudes)
    : in_(gradients),
      shard_(shard),
      gradient_grids_(bounds.gradient, shard.n_rows(gradients.n_rows)),
      hessian_grids_(bounds.hessian, shard.n_rows(gradients.n_rows)),
      weight_grid_(sum_grid(bounds.weight, static_cast<double>(shard.n_rows(gradients.n_rows)))),
      in_order_(bounds.wide),
      magnitudes_(magnitudes) {
  if (!in_order_) return;
  // A grid of 0 rounds nothing away: plain sums.
  for (SumGrids* grids : {&gradient_grids_, &hessian_grids_}) {
    std::fill(grids->coarse.begin(), grids->coarse.end(), 0.0);
    std::fill(grids->fine.begin(), grids->fine.end(), 0.0);
  }
  weight_grid_ = {0.0, 0.0};
}

// Adds rows to the sums that begin with number `first`.
void LeafSums::add_rows(const SomeRows& some, Parts& parts, std::size_t first) const {
  const Gradients& from = some.of;
  const auto d = static_cast<std::size_t>(from.n_outputs);
  const bool by_rule = from.hessian == nullptr && from.hessian_rule != Term::kItself;
  const RowSums gradients = parts.of(gradient_grids_, first);
  const RowSums hessians = parts.of(magnitudes_ ? gradient_grids_ : hessian_grids_, first + d);
  sum_kernels().sum_rows({from.gradient, from.gradient_stride, from.weight, from.n_outputs}, some.rows, some.n_rows,
                         &gradients, magnitudes_ ? Term::kAbsolute : from.hessian_rule,
                         by_rule || magnitudes_ ? &hessians : nullptr);
  if (from.hessian != nullptr)
    sum_kernels().sum_rows({from.hessian, from.hessian_stride, from.weight, from.n_outputs}, some.rows, some.n_rows,
                           &hessians, Term::kItself, nullptr);
  ExactSum weight;
  if (from.weight == nullptr) weight.coarse = static_cast<double>(some.n_rows);
  for (std::size_t i = 0; from.weight != nullptr && i < some.n_rows; ++i)
    weight.add(from.weight[some.rows[i]], weight_grid_);
  parts.coarse[first + 2 * d] += weight.coarse;
  parts.fine[first + 2 * d] += weight.fine;
}

template <class Take, class Join>
LeafSums::Parts LeafSums::by_leaves(const RowsInLeaves& places, int n_threads, std::size_t size, Take&& take,
                                    Join&& join) const {
  const std::vector<RowChunk> chunks = row_chunks(places.leaves);
  const auto rows_of = [&](const RowChunk& chunk) {
    return SomeRows{in_, places.rows + chunk.begin, chunk.end - chunk.begin, chunk.leaf};
  };
  Parts total(places.leaves.size() * size);
  if (n_threads == 1) {  // what is added up is exact: any order gives the same bits
    for (const RowChunk& chunk : chunks) take(rows_of(chunk), total, chunk.leaf * size);
    return total;
  }
  std::vector<Parts> parts(chunks.size(), Parts(size));
  parallel_for(n_threads, chunks.size(), [&](std::size_t c, int) { take(rows_of(chunks[c]), parts[c], 0); });
  for (std::size_t c = 0; c < chunks.size(); ++c) join(total, parts[c], chunks[c].leaf * size);
  return total;
}

template <class Take, class Join>
LeafSums::Parts LeafSums::by_blocks(const RowsInLeaves& places, int n_threads, std::size_t size, Take&& take,
                                    Join&& join) const {
  const std::size_t n_leaves = places.leaves.size();
  // Rows of a leaf may have been parted by a split that the tree does not have: they need not ascend.
  std::vector<std::uint32_t> leaf_of(in_.n_rows, kNoLeaf);
  for (std::size_t leaf = 0; leaf < n_leaves; ++leaf)
    for (std::size_t i = places.leaves[leaf].begin; i < places.leaves[leaf].end; ++i)
      leaf_of[places.rows[i]] = static_cast<std::uint32_t>(leaf);
  const std::size_t block_rows = std::max<std::size_t>(1, kMadeCells / static_cast<std::size_t>(in_.n_outputs));
  const std::size_t n_blocks = (in_.n_rows + block_rows - 1) / block_rows;
  const auto team = static_cast<std::size_t>(std::max(n_threads, 1));
  std::vector<Parts> parts(team, Parts(n_leaves * size));
  std::vector<Block> blocks(team);
  parallel_for(n_threads, n_blocks, [&](std::size_t b, int thread) {
    Block& block = blocks[static_cast<std::size_t>(thread)];
    const std::size_t first = b * block_rows, n = std::min(in_.n_rows - first, block_rows);
    block.take(leaf_of.data() + first, n, n_leaves);
    Gradients some = in_;
    if (in_.weight != nullptr) some.weight = in_.weight + first;
    if (in_.made != nullptr) {
      block.make(*in_.made, leaf_of.data() + first, first, n);
      some.gradient = block.gradient.data();
      if (in_.made->has_hessian()) some.hessian = block.hessian.data();
      some.gradient_stride = some.hessian_stride = static_cast<std::size_t>(in_.n_outputs);
    } else {
      some.gradient = in_.gradient + first * in_.gradient_stride;
      if (in_.hessian != nullptr) some.hessian = in_.hessian + first * in_.hessian_stride;
    }
    for (std::size_t leaf = 0; leaf < n_leaves; ++leaf)
      if (block.begin[leaf] < block.begin[leaf + 1])
        take({some, block.rows.data() + block.begin[leaf], block.begin[leaf + 1] - block.begin[leaf], leaf},
             parts[static_cast<std::size_t>(thread)], leaf * size);
  });
  for (std::size_t thread = 1; thread < team; ++thread) join(parts[0], parts[thread], 0);
  return std::move(parts[0]);
}

template <class Take, class Join>
LeafSums::Parts LeafSums::over_rows(const RowsInLeaves& places, int n_threads, std::size_t size, Take&& take,
                                    Join&& join) const {
  if (in_.made != nullptr || in_order_) return by_blocks(places, in_order_ ? 1 : n_threads, size, take, join);
  return by_leaves(places, n_threads, size, take, join);
}

std::vector<double> LeafSums::sum(const RowsInLeaves& places, int n_threads) const {
  return over_all_shards(over_rows(
      places, n_threads, stride(),
      [this](const SomeRows& some, Parts& parts, std::size_t first) { add_rows(some, parts, first); },
      [](Parts& parts, const Parts& other, std::size_t first) { parts.add(other, first); }));
}

std::vector<double> LeafSums::largest(const RowsInLeaves& places, int n_threads) const {
  const auto d = static_cast<std::size_t>(in_.n_outputs);
  Parts most = over_rows(
      places, n_threads, d,
      [d](const SomeRows& some, Parts& parts, std::size_t first) {
        double* most_here = parts.coarse.data() + first;
        for (std::size_t i = 0; i < some.n_rows; ++i) {
          const float* g = some.of.gradient + some.rows[i] * some.of.gradient_stride;
          for (std::size_t j = 0; j < d; ++j)
            most_here[j] = std::max(most_here[j], std::fabs(static_cast<double>(g[j])));
        }
      },
      [](Parts& parts, const Parts& other, std::size_t first) {
        for (std::size_t k = 0; k < other.coarse.size(); ++k)
          parts.coarse[first + k] = std::max(parts.coarse[first + k], other.coarse[k]);
      });
  shard_.largest(most.coarse);
  return std::move(most.coarse);
}

std::vector<double> LeafSums::sum_within(const std::vector<double>& limits, const RowsInLeaves& places,
                                         int n_threads) const {
  const auto d = static_cast<std::size_t>(in_.n_outputs);
  return over_all_shards(over_rows(
      places, n_threads, d,
      [&](const SomeRows& some, Parts& parts, std::size_t first) {
        const double* limit = limits.data() + some.leaf * d;
        if (std::none_of(limit, limit + d, [](double one) { return std::isfinite(one); })) return;
        for (std::size_t i = 0; i < some.n_rows; ++i) {
          const std::size_t row = some.rows[i];
          const float* g = some.of.gradient + row * some.of.gradient_stride;
          const double weight = some.of.weight != nullptr ? some.of.weight[row] : 1.0;
          for (std::size_t j = 0; j < d; ++j)
            add_exactly(weight * within_limit(static_cast<double>(g[j]), limit[j]), gradient_grids_.coarse[j],
                        gradient_grids_.fine[j], parts.coarse[first + j], parts.fine[first + j]);
        }
      },
      [](Parts& parts, const Parts& other, std::size_t first) { parts.add(other, first); }));
}

std::vector<double> LeafSums::over_all_shards(Parts parts) const {
  shard_.add(parts.coarse, parts.fine);
  for (std::size_t k = 0; k < parts.coarse.size(); ++k) parts.coarse[k] += parts.fine[k];
  return std::move(parts.coarse);
}

std::vector<double> LeafSums::full_hessian(const RowsInLeaves& places, const LeafRows& leaf) const {
  const std::size_t size = triangle(static_cast<std::size_t>(in_.n_outputs));
  std::vector<ExactSum> sums(size);
  std::vector<double> of_row(size), out(size);
  for (std::size_t i = leaf.begin; i < leaf.end; ++i) {
    const std::size_t row = places.rows[i];
    softmax_hessian(in_.gradient + row * in_.gradient_stride, in_.label[row], in_.n_outputs, of_row.data());
    const double weight = in_.weight != nullptr ? in_.weight[row] : 1.0;
    for (std::size_t e = 0; e < size; ++e) sums[e].add(weight * of_row[e], weight_grid_);  // entries are within 1
  }
  for (std::size_t e = 0; e < size; ++e) out[e] = sums[e].value();
  return out;
}

}  // namespace polyleaf
