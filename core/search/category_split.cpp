#include "search/category_split.hpp"

#include <algorithm>
#include <cmath>

#include "base/order_free.hpp"
#include "base/threads.hpp"
#include "kernels/sum.hpp"
#include "rules/acceptance.hpp"
#include "rules/curvature.hpp"
#include "search/category_order.hpp"

namespace polyleaf {

CategoryTerms::CategoryTerms(const BinnedMatrix& matrix, const OutputTerms& terms) : outputs(terms) {
  if (!matrix.has_categories()) return;
  const Payload& payload = terms.payload;
  const PayloadLayout& layout = payload.layout;
  const auto d = static_cast<std::size_t>(layout.n_outputs);
  double largest = 0.0;
  for (std::size_t j = 0; j < d; ++j) {
    if (layout.hessian == HessianKind::kFull) {
      const std::size_t diagonal = triangle(j + 1) - 1;
      gradient_channel.push_back(1 + j);
      hessian_channel.push_back(1 + d + diagonal);
      hessian_unit.push_back(payload.hessian_unit[diagonal]);
      factor.push_back(payload.gradient_unit[j]);
    } else {
      const std::size_t per_tile = static_cast<std::size_t>(layout.outputs_per_tile);
      const std::size_t first = j / per_tile * static_cast<std::size_t>(layout.width);
      gradient_channel.push_back(first + j % per_tile);
      hessian_channel.push_back(terms.diagonal()
                                    ? first + static_cast<std::size_t>(layout.hessian_channel()) + j % per_tile
                                    : static_cast<std::size_t>(layout.weight_channel()));
      hessian_unit.push_back(payload.hessian_unit[terms.diagonal() ? j : 0]);
      factor.push_back(std::sqrt(terms.factor[terms.place(j)]));
    }
    largest = std::max(largest, factor.back());
  }
  if (largest > 0)
    for (double& one : factor) one /= largest;
  smoothing.assign(d, terms.rules.reg_lambda);
}

void CategoryTerms::set_root(const std::int32_t* totals, const RootMoments& moments) {
  const Payload& payload = outputs.payload;
  std::vector<double> variance(smoothing.size());
  for (std::size_t j = 0; j < smoothing.size(); ++j) {
    const double hessian = std::max(totals[hessian_channel[j]] * hessian_unit[j], 0.0);
    smoothing[j] = outputs.rules.reg_lambda + kCategorySmoothing * hessian / moments.weight;
    double gain_weight = 1.0;
    if (payload.layout.hessian != HessianKind::kFull) {
      const double unit = payload.gradient_unit[j];
      gain_weight = outputs.factor[outputs.place(j)] / (unit * unit);
    }
    variance[j] = hessian > 0 ? gain_weight * moments.squared_gradient[j] / hessian : 0.0;
  }
  noise = CategoryNoise(variance);
}

RootMoments root_moments(const Gradients& in, const std::vector<std::uint32_t>& rows, const Shard& shard,
                         int n_threads) {
  constexpr std::size_t kChunkRows = 4096;
  const auto d = static_cast<std::size_t>(in.n_outputs);
  const std::size_t n_chunks = (rows.size() + kChunkRows - 1) / kChunkRows;
  const int threads = rows.size() * d < kParallelWork ? 1 : n_threads;
  std::vector<std::vector<double>> coarse(static_cast<std::size_t>(std::max(threads, 1)), std::vector<double>(d, 0.0));
  std::vector<std::vector<double>> fine = coarse, largest = coarse;
  parallel_for(threads, n_chunks, [&](std::size_t chunk, int thread) {
    std::vector<double>& most = largest[static_cast<std::size_t>(thread)];
    for (std::size_t i = chunk * kChunkRows; i < std::min(rows.size(), (chunk + 1) * kChunkRows); ++i) {
      const float* gradient = in.gradient + rows[i] * in.gradient_stride;
      const double weight = in.weight != nullptr ? in.weight[rows[i]] : 1.0;
      for (std::size_t j = 0; j < d; ++j)
        most[j] = std::max(most[j], weight * term_of(Term::kSquare, static_cast<double>(gradient[j])));
    }
  });
  for (const std::vector<double>& other : largest)
    for (std::size_t j = 0; j < d; ++j) largest[0][j] = std::max(largest[0][j], other[j]);
  shard.largest(largest[0]);
  const std::size_t n_all = shard.add(rows.size());
  const SumGrids grids(largest[0], n_all);
  parallel_for(threads, n_chunks, [&](std::size_t chunk, int thread) {
    const std::size_t begin = chunk * kChunkRows, at = static_cast<std::size_t>(thread);
    const RowSums squares{grids.coarse.data(), grids.fine.data(), coarse[at].data(), fine[at].data()};
    sum_kernels().sum_rows({in.gradient, in.gradient_stride, in.weight, in.n_outputs}, rows.data() + begin,
                           std::min(kChunkRows, rows.size() - begin), nullptr, Term::kSquare, &squares);
  });
  for (std::size_t t = 1; t < coarse.size(); ++t)
    for (std::size_t j = 0; j < d; ++j) {
      coarse[0][j] += coarse[t][j];
      fine[0][j] += fine[t][j];
    }
  shard.add(coarse[0], fine[0]);
  RootMoments out;
  for (std::size_t j = 0; j < d; ++j) out.squared_gradient.push_back(coarse[0][j] + fine[0][j]);
  out.weight = static_cast<double>(n_all);
  if (in.weight != nullptr)
    out.weight = order_free_sum(rows.size(), [&](std::size_t i) { return in.weight[rows[i]]; }, shard, n_all);
  return out;
}

// Lists the categories that hold rows of the node.
void CategoryFinder::list(const FeatureTile& tile, const std::int32_t* histogram) {
  const auto width = static_cast<std::size_t>(outputs_.layout().width);
  const auto count_channel = static_cast<std::size_t>(outputs_.layout().count_channel());
  bins_.clear();
  begin_.assign(1, 0);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (allowed(tile, position)) {
      const std::int32_t* first = histogram + tile.slot_begin[position] * width + count_channel;
      for (std::uint32_t bin = 0; bin < bins_of(tile, position).n_value_bins; ++bin)
        if (first[bin * width] > 0) bins_.push_back(bin);
    }
    begin_.push_back(bins_.size());
  }
}

void CategoryFinder::reserve(const FeatureTile& tile) {
  const std::size_t stride = outputs_.layout().n_channels();
  sums_.assign(bins_.size() * stride + PayloadLayout::kSlack, 0);
  missing_.assign(tile.n_features() * stride + PayloadLayout::kSlack, 0);
}

void CategoryFinder::add(const FeatureTile& tile, int output_tile, const std::int32_t* histogram) {
  if (output_tile == 0) {
    list(tile, histogram);
    reserve(tile);
  }
  const auto width = static_cast<std::size_t>(outputs_.layout().width);
  const std::size_t stride = outputs_.layout().n_channels();
  const std::size_t offset = static_cast<std::size_t>(output_tile) * width;
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (!allowed(tile, position)) continue;
    const std::int32_t* first = histogram + tile.slot_begin[position] * width;
    for (std::size_t i = begin_[position]; i < begin_[position + 1]; ++i)
      std::copy_n(first + bins_[i] * width, width, sums_.data() + i * stride + offset);
    const FeatureBins& bins = bins_of(tile, position);
    if (bins.has_missing)
      std::copy_n(first + bins.missing_code() * width, width, missing_.data() + position * stride + offset);
  }
}

void CategoryFinder::list_rows(const FeatureTile& tile, const NodeRows& rows) {
  const std::size_t n_rows = rows.size();
  const PayloadLayout& layout = outputs_.layout();
  const auto width = static_cast<std::size_t>(layout.width);
  const std::size_t stride = layout.n_channels();
  bins_.clear();
  begin_.assign(1, 0);
  index_.assign(tile.n_slots(), 0);  // rows of a slot, then where its sums stand
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (allowed(tile, position)) {
      std::uint32_t* index = index_.data() + tile.slot_begin[position];
      for (std::size_t i = 0; i < n_rows; ++i) ++index[tile.code(rows.row(i), position)];
      for (std::uint32_t bin = 0; bin < bins_of(tile, position).n_value_bins; ++bin) {
        if (index[bin] == 0) continue;
        index[bin] = static_cast<std::uint32_t>(bins_.size());
        bins_.push_back(bin);
      }
    }
    begin_.push_back(bins_.size());
  }
  reserve(tile);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (!allowed(tile, position)) continue;
    const std::uint32_t* index = index_.data() + tile.slot_begin[position];
    const std::uint32_t missing_code = bins_of(tile, position).missing_code();
    for (std::size_t i = 0; i < n_rows; ++i) {
      const std::uint32_t code = tile.code(rows.row(i), position);
      std::int32_t* to =
          code == missing_code ? missing_.data() + position * stride : sums_.data() + index[code] * stride;
      for (int t = 0; t < layout.n_tiles; ++t, to += width)
        for (std::size_t c = 0; c < width; ++c) to[c] += rows.tile(t)[rows.place(i) * width + c];
    }
  }
}

// Categories x outputs, category by category.
struct CategoryFinder::Vectors {
  // Up to so many outputs, X^T X is computed once.
  static constexpr std::size_t kMostProducts = 32;
  const double* x;
  std::size_t n, d;
  std::vector<double> products;

  Vectors(const double* values, std::size_t n_categories, std::size_t n_outputs)
      : x(values), n(n_categories), d(n_outputs) {
    if (d == 1 || d > kMostProducts) return;
    products.assign(d * d, 0.0);
    for (std::size_t c = 0; c < n; ++c)
      for (std::size_t i = 0; i < d; ++i)
        for (std::size_t j = 0; j < d; ++j) products[i * d + j] += x[c * d + i] * x[c * d + j];
  }

  void squares(double* out) const {
    std::fill_n(out, d, 0.0);
    for (std::size_t c = 0; c < n; ++c)
      for (std::size_t j = 0; j < d; ++j) out[j] += x[c * d + j] * x[c * d + j];
  }
  void multiply(const double* u, double* out) const {
    std::fill_n(out, d, 0.0);
    if (!products.empty()) {
      for (std::size_t i = 0; i < d; ++i)
        for (std::size_t j = 0; j < d; ++j) out[j] += products[i * d + j] * u[i];
      return;
    }
    for (std::size_t c = 0; c < n; ++c) {
      const double* of_category = x + c * d;
      double along[8] = {0};  // sums that do not wait for each other
      std::size_t j = 0;
      for (; j + 8 <= d; j += 8)
        for (std::size_t lane = 0; lane < 8; ++lane) along[lane] += of_category[j + lane] * u[j + lane];
      for (; j < d; ++j) along[j % 8] += of_category[j] * u[j];
      const double sum =
          ((along[0] + along[1]) + (along[2] + along[3])) + ((along[4] + along[5]) + (along[6] + along[7]));
      for (j = 0; j < d; ++j) out[j] += of_category[j] * sum;
    }
  }
};

// Orders n categories by their leaf values along the leading direction. What is left of a category's gradient at the
// leaf value of all of them, divided by the root of its smoothed Hessian, is its vector: the square of an entry is what
// the category would add to the score with a leaf of its own.
void CategoryFinder::put_in_order(std::size_t first, std::size_t n) {
  const std::size_t d = terms_.gradient_channel.size();
  const std::size_t stride = outputs_.layout().n_channels();
  const std::int32_t* sums = sums_.data() + first * stride;
  all_.assign(stride, 0);
  for (std::size_t c = 0; c < n; ++c)
    for (std::size_t e = 0; e < stride; ++e) all_[e] += sums[c * stride + e];
  std::vector<double> mean(d), scale(d);  // of all categories: - leaf value, root of the smoothed Hessian
  for (std::size_t j = 0; j < d; ++j) {
    const double total = all_[terms_.hessian_channel[j]] * terms_.hessian_unit[j];
    mean[j] = total > 0 ? all_[terms_.gradient_channel[j]] / total : 0.0;
    scale[j] = std::sqrt(std::max(total + terms_.smoothing[j], 0.0));
  }
  // Entries, and their quotients by the root of the smoothed Hessian: parts of the leaf value.
  vectors_.resize(n * d);
  values_.resize(n * d);
  hessian_.assign(n, 0.0);
  const bool shared = terms_.hessian_channel.front() == terms_.hessian_channel.back();  // and so is the smoothing
  for (std::size_t c = 0; c < n; ++c) {
    const std::int32_t* of_category = sums + c * stride;
    double hessian = 0.0, inverse = 0.0;
    for (std::size_t j = 0; j < d; ++j) {
      if (j == 0 || !shared) {
        hessian = of_category[terms_.hessian_channel[j]] * terms_.hessian_unit[j];
        const double denominator = hessian + terms_.smoothing[j];
        inverse = denominator > 0 ? 1 / std::sqrt(denominator) : 0.0;
        hessian_[c] += hessian;
      }
      const double rest = terms_.factor[j] * (of_category[terms_.gradient_channel[j]] - hessian * mean[j]);
      vectors_[c * d + j] = rest * inverse;
      values_[c * d + j] = rest * inverse * inverse;
    }
  }
  std::vector<double> direction = leading_direction(Vectors(vectors_.data(), n, d), d);
  for (std::size_t j = 0; j < d; ++j) direction[j] *= scale[j];
  projection_.assign(n, 0.0);
  for (std::size_t c = 0; c < n; ++c)
    for (std::size_t j = 0; j < d; ++j) projection_[c] -= direction[j] * values_[c * d + j];
  sort_positions(projection_, order_);
}

double CategoryFinder::score(const std::int32_t* left, double enough) {
  // Categories have no order, but their leaves keep within the bounds of splits above.
  if (joint_ != nullptr) return joint_->children(left, node_.totals, {-1, node_.bounds}, enough, scratch_);
  return outputs_.side_terms(left, node_.totals, scratch_.left, scratch_.right);
}

BestCandidate CategoryFinder::best_of_feature(const FeatureTile& tile, std::size_t position, double enough) {
  const std::size_t stride = outputs_.layout().n_channels();
  const auto count_channel = static_cast<std::size_t>(outputs_.layout().count_channel());
  const std::size_t first = begin_[position];
  const std::size_t n = begin_[position + 1] - first;
  const bool one_against_rest = bins_of(tile, position).n_value_bins <= kMostOneAgainstRest;
  put_in_order(first, n);  // few ones too: which of two goes left does not hang on their numbers
  const std::int32_t* missing = missing_.data() + position * stride;
  const bool missing_seen = missing[count_channel] > 0;
  const std::int64_t n_rows = outputs_.count(node_.totals);
  const double by_chance = one_against_rest ? 0.0 : terms_.noise.score(hessian_);
  BestCandidate best;
  const auto offer = [&](const std::int32_t* left, std::size_t place, bool missing_left) {
    const double less = place + 1 < n ? by_chance : 0.0;  // missing against the rest is not found by the order
    const std::int64_t n_left = left[count_channel];
    if (!large_enough(n_left, n_rows, outputs_.rules.min_samples_leaf)) return;
    if (outputs_.rules.min_child_weight > 0 && !outputs_.heavy_enough(outputs_.mean_hessian(left), node_.totals))
      return;
    Candidate candidate;
    candidate.score = score(left, std::max(enough, best.highest) + less) - less;
    if (!(candidate.score >= 0)) return;
    candidate.feature = tile.features[position];
    candidate.bin = static_cast<int>(place);
    candidate.missing_left = missing_left;
    candidate.missing_seen = missing_seen;
    best.offer(candidate);
  };
  left_.assign(stride + PayloadLayout::kSlack, 0);
  with_missing_.assign(stride + PayloadLayout::kSlack, 0);
  for (std::size_t place = 0; place < n; ++place) {
    const std::int32_t* category = sums_.data() + (first + order_[place]) * stride;
    for (std::size_t c = 0; c < stride; ++c) left_[c] = one_against_rest ? category[c] : left_[c] + category[c];
    offer(left_.data(), place, false);
    if (!missing_seen) continue;
    for (std::size_t c = 0; c < stride; ++c) with_missing_[c] = left_[c] + missing[c];
    offer(with_missing_.data(), place, true);
  }
  if (one_against_rest && missing_seen && n > 1) {  // missing against the rest
    for (std::size_t c = 0; c < stride; ++c) left_[c] = node_.totals[c] - missing[c];
    offer(left_.data(), n, false);
  }
  return best;
}

FoundSplit CategoryFinder::best(const FeatureTile& tile, const TileHistograms&) {
  FoundSplit found;
  BestCandidate& best = found.best;
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    const std::size_t first = begin_[position];
    if (first == begin_[position + 1]) continue;
    best.merge(best_of_feature(tile, position, best.highest));
    if (best.chosen.feature != tile.features[position]) continue;
    const bool one_against_rest = bins_of(tile, position).n_value_bins <= kMostOneAgainstRest;
    const auto place = static_cast<std::size_t>(best.chosen.bin);
    const bool all = place == order_.size();
    found.partition.set(order_, one_against_rest && !all ? place : 0, place + 1,
                        [&](std::uint32_t i) { return bins_[first + i]; });
  }
  return found;
}

FoundSplit CategoryFinder::search_rows(const FeatureTile& tile, const NodeRows& rows) {
  list_rows(tile, rows);
  return best(tile, {});
}

}  // namespace polyleaf
