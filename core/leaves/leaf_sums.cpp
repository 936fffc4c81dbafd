#include "leaves/leaf_sums.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/threads.hpp"
#include "gradients/full_hessian.hpp"
#include "kernels/sum.hpp"

namespace polyleaf {

namespace {

constexpr std::size_t kMadeRows = 16;     // made together
constexpr std::size_t kBlockRows = 4096;  // whose scores are read together, leaf by leaf
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

// Rows that have been made; and the rows of a block, those of a leaf side by side.
struct LeafSums::Work {
  std::vector<float> gradient, hessian;
  double weight[kMadeRows];
  std::vector<std::uint32_t> rows;
  std::vector<std::size_t> begin;  // of each leaf, and the end

  // Takes rows [from, to), of which some are in no leaf.
  void take(const std::vector<std::uint32_t>& leaf_of, std::size_t from, std::size_t to, std::size_t n_leaves) {
    begin.assign(n_leaves + 2, 0);  // at first one place further on
    for (std::size_t row = from; row < to; ++row)
      if (leaf_of[row] != kNoLeaf) ++begin[leaf_of[row] + 2];
    for (std::size_t leaf = 2; leaf < begin.size(); ++leaf) begin[leaf] += begin[leaf - 1];
    rows.resize(begin.back());
    for (std::size_t row = from; row < to; ++row)
      if (leaf_of[row] != kNoLeaf) rows[begin[leaf_of[row] + 1]++] = static_cast<std::uint32_t>(row);
  }
};

LeafSums::LeafSums(const Gradients& gradients, const GradientBounds& bounds, const Shard& shard)
    : in_(gradients),
      shard_(shard),
      gradient_grids_(bounds.gradient, shard.n_rows(gradients.n_rows)),
      hessian_grids_(bounds.hessian, shard.n_rows(gradients.n_rows)),
      weight_grid_(sum_grid(bounds.weight, static_cast<double>(shard.n_rows(gradients.n_rows)))),
      in_order_(bounds.wide) {
  if (!in_order_) return;
  // A grid of 0 rounds nothing away: plain sums.
  for (SumGrids* grids : {&gradient_grids_, &hessian_grids_}) {
    std::fill(grids->coarse.begin(), grids->coarse.end(), 0.0);
    std::fill(grids->fine.begin(), grids->fine.end(), 0.0);
  }
  weight_grid_ = {0.0, 0.0};
}

// Adds rows to the sums that begin with number `first`.
void LeafSums::add_rows(const std::uint32_t* rows, std::size_t n_rows, Parts& parts, std::size_t first,
                        Work& work) const {
  if (in_.made != nullptr)
    add_made(rows, n_rows, parts, first, work);
  else
    add_stored(in_, rows, n_rows, parts, first);
  ExactSum weight;
  if (in_.weight == nullptr) weight.coarse = static_cast<double>(n_rows);
  for (std::size_t i = 0; in_.weight != nullptr && i < n_rows; ++i) weight.add(in_.weight[rows[i]], weight_grid_);
  const std::size_t at = first + stride() - 1;
  parts.coarse[at] += weight.coarse;
  parts.fine[at] += weight.fine;
}

void LeafSums::add_stored(const Gradients& from, const std::uint32_t* rows, std::size_t n_rows, Parts& parts,
                          std::size_t first) const {
  const auto d = static_cast<std::size_t>(from.n_outputs);
  const bool by_rule = from.hessian == nullptr && from.hessian_rule != Term::kItself;
  const RowSums gradients = parts.of(gradient_grids_, first), hessians = parts.of(hessian_grids_, first + d);
  sum_kernels().sum_rows({from.gradient, from.gradient_stride, from.weight, from.n_outputs}, rows, n_rows, &gradients,
                         from.hessian_rule, by_rule ? &hessians : nullptr);
  if (from.hessian != nullptr)
    sum_kernels().sum_rows({from.hessian, from.hessian_stride, from.weight, from.n_outputs}, rows, n_rows, &hessians,
                           Term::kItself, nullptr);
}

// A few rows at a time are made and then summed like stored ones.
void LeafSums::add_made(const std::uint32_t* rows, std::size_t n_rows, Parts& parts, std::size_t first,
                        Work& work) const {
  static constexpr auto kNumbers = [] {
    std::array<std::uint32_t, kMadeRows> out{};
    for (std::size_t i = 0; i < kMadeRows; ++i) out[i] = static_cast<std::uint32_t>(i);
    return out;
  }();
  const auto d = static_cast<std::size_t>(in_.n_outputs);
  const bool with_hessian = in_.made->has_hessian();
  work.gradient.resize(kMadeRows * d);
  if (with_hessian) work.hessian.resize(kMadeRows * d);
  Gradients some = in_;
  some.gradient = work.gradient.data();
  some.hessian = with_hessian ? work.hessian.data() : nullptr;
  some.gradient_stride = some.hessian_stride = d;
  if (in_.weight != nullptr) some.weight = work.weight;
  for (std::size_t from = 0; from < n_rows; from += kMadeRows) {
    const std::size_t n = std::min(kMadeRows, n_rows - from);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t row = rows[from + i];
      in_.made->make(row, row + 1, work.gradient.data() + i * d, with_hessian ? work.hessian.data() + i * d : nullptr);
      if (in_.weight != nullptr) work.weight[i] = in_.weight[row];
    }
    add_stored(some, kNumbers.data(), n, parts, first);
  }
}

LeafSums::Parts LeafSums::sum_by_leaves(const RowsInLeaves& places, int n_threads) const {
  const std::vector<RowChunk> chunks = row_chunks(places.leaves);
  const std::uint32_t* rows = places.rows;
  // Splits that the tree does not have may have parted the rows of a leaf: plain sums need an order of their own.
  std::vector<std::uint32_t> ascending;
  if (in_order_) {
    std::size_t end = 0;
    for (const LeafRows& leaf : places.leaves) end = std::max(end, leaf.end);
    ascending.assign(rows, rows + end);
    for (const LeafRows& leaf : places.leaves) std::sort(ascending.data() + leaf.begin, ascending.data() + leaf.end);
    rows = ascending.data();
  }
  std::vector<Parts> parts(chunks.size(), Parts(stride()));
  std::vector<Work> work(static_cast<std::size_t>(std::max(n_threads, 1)));
  parallel_for(n_threads, chunks.size(), [&](std::size_t c, int thread) {
    add_rows(rows + chunks[c].begin, chunks[c].end - chunks[c].begin, parts[c], 0,
             work[static_cast<std::size_t>(thread)]);
  });
  Parts total(places.leaves.size() * stride());
  for (std::size_t c = 0; c < chunks.size(); ++c) total.add(parts[c], chunks[c].leaf * stride());
  return total;
}

LeafSums::Parts LeafSums::sum_by_blocks(const RowsInLeaves& places, int n_threads) const {
  const std::size_t n_leaves = places.leaves.size(), n_blocks = (in_.n_rows + kBlockRows - 1) / kBlockRows;
  std::vector<std::uint32_t> leaf_of(in_.n_rows, kNoLeaf);
  for (std::size_t leaf = 0; leaf < n_leaves; ++leaf)
    for (std::size_t i = places.leaves[leaf].begin; i < places.leaves[leaf].end; ++i)
      leaf_of[places.rows[i]] = static_cast<std::uint32_t>(leaf);
  const std::size_t team = std::clamp<std::size_t>(static_cast<std::size_t>(std::max(n_threads, 1)), 1, n_blocks + 1);
  std::vector<Parts> parts(team, Parts(n_leaves * stride()));
  std::vector<Work> work(team);
  parallel_for(static_cast<int>(team), n_blocks, [&](std::size_t block, int member) {
    const auto thread = static_cast<std::size_t>(member);
    Work& own = work[thread];
    own.take(leaf_of, block * kBlockRows, std::min(in_.n_rows, (block + 1) * kBlockRows), n_leaves);
    for (std::size_t leaf = 0; leaf < n_leaves; ++leaf)
      if (own.begin[leaf] < own.begin[leaf + 1])
        add_rows(own.rows.data() + own.begin[leaf], own.begin[leaf + 1] - own.begin[leaf], parts[thread],
                 leaf * stride(), own);
  });
  for (std::size_t thread = 1; thread < team; ++thread) parts[0].add(parts[thread], 0);
  return std::move(parts[0]);
}

std::vector<double> LeafSums::sum(const RowsInLeaves& places, int n_threads) const {
  const bool by_blocks = in_.made != nullptr && !in_order_;
  Parts total = by_blocks ? sum_by_blocks(places, n_threads) : sum_by_leaves(places, n_threads);
  shard_.add(total.coarse);
  shard_.add(total.fine);
  for (std::size_t k = 0; k < total.coarse.size(); ++k) total.coarse[k] += total.fine[k];
  return std::move(total.coarse);
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
