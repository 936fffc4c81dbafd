#include "leaves/leaf_sums.hpp"

#include <algorithm>

#include "base/threads.hpp"
#include "gradients/full_hessian.hpp"
#include "kernels/sum.hpp"

namespace polyleaf {

// Both parts of the sums of a chunk of rows.
struct LeafSums::Parts {
  std::vector<double> coarse, fine;
  explicit Parts(std::size_t n) : coarse(n, 0.0), fine(n, 0.0) {}
  RowSums of(const SumGrids& grids, std::size_t first) {
    return {grids.coarse.data(), grids.fine.data(), coarse.data() + first, fine.data() + first};
  }
};

LeafSums::LeafSums(const Gradients& gradients, const GradientBounds& bounds, const Shard& shard)
    : in_(gradients),
      shard_(shard),
      gradient_grids_(bounds.gradient, shard.n_rows(gradients.n_rows)),
      hessian_grids_(bounds.hessian, shard.n_rows(gradients.n_rows)),
      weight_grid_(sum_grid(bounds.weight, static_cast<double>(shard.n_rows(gradients.n_rows)))) {
  if (!bounds.wide) return;
  // A grid of 0 rounds nothing away: plain sums.
  for (SumGrids* grids : {&gradient_grids_, &hessian_grids_}) {
    std::fill(grids->coarse.begin(), grids->coarse.end(), 0.0);
    std::fill(grids->fine.begin(), grids->fine.end(), 0.0);
  }
  weight_grid_ = {0.0, 0.0};
}

void LeafSums::add_chunk(const std::uint32_t* rows, std::size_t n_rows, Parts& parts) const {
  const auto d = static_cast<std::size_t>(in_.n_outputs);
  const bool by_rule = in_.hessian == nullptr && in_.hessian_rule != Term::kItself;
  const RowSums gradients = parts.of(gradient_grids_, 0), hessians = parts.of(hessian_grids_, d);
  sum_kernels().sum_rows({in_.gradient, in_.gradient_stride, in_.weight, in_.n_outputs}, rows, n_rows, &gradients,
                         in_.hessian_rule, by_rule ? &hessians : nullptr);
  if (in_.hessian != nullptr)
    sum_kernels().sum_rows({in_.hessian, in_.hessian_stride, in_.weight, in_.n_outputs}, rows, n_rows, &hessians,
                           Term::kItself, nullptr);
  ExactSum weight;
  if (in_.weight == nullptr) weight.coarse = static_cast<double>(n_rows);
  for (std::size_t i = 0; in_.weight != nullptr && i < n_rows; ++i) weight.add(in_.weight[rows[i]], weight_grid_);
  parts.coarse[2 * d] = weight.coarse;
  parts.fine[2 * d] = weight.fine;
}

std::vector<double> LeafSums::sum(const RowsInLeaves& places, int n_threads) const {
  const std::vector<RowChunk> chunks = row_chunks(places.leaves);
  std::vector<Parts> parts(chunks.size(), Parts(stride()));
  parallel_for(n_threads, chunks.size(), [&](std::size_t c, int) {
    add_chunk(places.rows + chunks[c].begin, chunks[c].end - chunks[c].begin, parts[c]);
  });
  std::vector<double> total(places.leaves.size() * stride(), 0.0), fine(total);
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const std::size_t first = chunks[c].leaf * stride();
    for (std::size_t k = 0; k < stride(); ++k) {
      total[first + k] += parts[c].coarse[k];
      fine[first + k] += parts[c].fine[k];
    }
  }
  shard_.add(total, fine);
  for (std::size_t k = 0; k < total.size(); ++k) total[k] += fine[k];
  return total;
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
