#include "search/category_split.hpp"

#include <algorithm>
#include <cmath>

#include "base/order_free.hpp"
#include "base/threads.hpp"
#include "kernels/sum.hpp"
#include "rules/curvature.hpp"
#include "search/category_order.hpp"

namespace polyleaf {

CategoryFinder::CategoryFinder(const BinnedMatrix& matrix, const Payload& payload, const Rules& rules,
                               const OutputTerms& terms, const SplitFinder& finder, const JointScore* joint)
    : matrix_(matrix), payload_(payload), rules_(rules), terms_(terms), finder_(finder), joint_(joint) {
  if (!matrix.has_categories()) return;
  const PayloadLayout& layout = payload.layout;
  const auto d = static_cast<std::size_t>(layout.n_outputs);
  double largest = 0.0;
  for (std::size_t j = 0; j < d; ++j) {
    if (layout.hessian == HessianKind::kFull) {
      const std::size_t diagonal = triangle(j + 1) - 1;
      gradient_channel_.push_back(1 + j);
      hessian_channel_.push_back(1 + d + diagonal);
      hessian_unit_.push_back(payload.hessian_unit[diagonal]);
      factor_.push_back(payload.gradient_unit[j]);
    } else {
      const std::size_t per_tile = static_cast<std::size_t>(layout.outputs_per_tile);
      const std::size_t first = j / per_tile * static_cast<std::size_t>(layout.width);
      const bool diagonal = layout.hessian == HessianKind::kDiagonal;
      gradient_channel_.push_back(first + j % per_tile);
      hessian_channel_.push_back(diagonal ? first + static_cast<std::size_t>(layout.hessian_channel()) + j % per_tile
                                          : static_cast<std::size_t>(layout.weight_channel()));
      hessian_unit_.push_back(payload.hessian_unit[diagonal ? j : 0]);
      factor_.push_back(std::sqrt(terms.factor[j / per_tile * terms.padded + j % per_tile]));
    }
    largest = std::max(largest, factor_.back());
  }
  if (largest > 0)
    for (double& factor : factor_) factor /= largest;
  smoothing_.assign(d, rules.reg_lambda);
}

void CategoryFinder::set_root(const std::int32_t* totals, const RootMoments& moments) {
  const PayloadLayout& layout = payload_.layout;
  std::vector<double> variance(smoothing_.size());
  for (std::size_t j = 0; j < smoothing_.size(); ++j) {
    const double hessian = std::max(totals[hessian_channel_[j]] * hessian_unit_[j], 0.0);
    smoothing_[j] = rules_.reg_lambda + kCategorySmoothing * hessian / moments.weight;
    double gain_weight = 1.0;
    if (layout.hessian != HessianKind::kFull) {
      const auto per_tile = static_cast<std::size_t>(layout.outputs_per_tile);
      const double unit = payload_.gradient_unit[j];
      gain_weight = terms_.factor[j / per_tile * terms_.padded + j % per_tile] / (unit * unit);
    }
    variance[j] = hessian > 0 ? gain_weight * moments.squared_gradient[j] / hessian : 0.0;
  }
  noise_ = CategoryNoise(variance);
}

RootMoments root_moments(const Gradients& in, const std::vector<std::uint32_t>& rows, int n_threads) {
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
  const SumGrids grids(largest[0], rows.size());
  parallel_for(threads, n_chunks, [&](std::size_t chunk, int thread) {
    const std::size_t begin = chunk * kChunkRows, at = static_cast<std::size_t>(thread);
    const RowSums squares{grids.coarse.data(), grids.fine.data(), coarse[at].data(), fine[at].data()};
    sum_kernels().sum_rows({in.gradient, in.gradient_stride, in.weight, in.n_outputs}, rows.data() + begin,
                           std::min(kChunkRows, rows.size() - begin), nullptr, Term::kSquare, &squares);
  });
  RootMoments out;
  for (std::size_t j = 0; j < d; ++j) {
    ExactSum sum;
    for (std::size_t t = 0; t < coarse.size(); ++t) sum.add({coarse[t][j], fine[t][j]});
    out.squared_gradient.push_back(sum.value());
  }
  out.weight = static_cast<double>(rows.size());
  if (in.weight != nullptr) out.weight = order_free_sum(rows.size(), [&](std::size_t i) { return in.weight[rows[i]]; });
  return out;
}

// Lists the categories that hold rows of the node.
void CategoryFinder::list(Scan& scan, const FeatureTile& tile, const std::int32_t* histogram) const {
  const auto width = static_cast<std::size_t>(payload_.layout.width);
  const auto count_channel = static_cast<std::size_t>(payload_.layout.count_channel());
  scan.bins.clear();
  scan.begin.assign(1, 0);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (allowed(scan, tile, position)) {
      const std::int32_t* first = histogram + tile.slot_begin[position] * width + count_channel;
      for (std::uint32_t bin = 0; bin < bins_of(tile, position).n_value_bins; ++bin)
        if (first[bin * width] > 0) scan.bins.push_back(bin);
    }
    scan.begin.push_back(scan.bins.size());
  }
}

void CategoryFinder::reserve(Scan& scan, const FeatureTile& tile) const {
  const std::size_t stride = payload_.layout.n_channels();
  scan.sums.assign(scan.bins.size() * stride + PayloadLayout::kSlack, 0);
  scan.missing.assign(tile.n_features() * stride + PayloadLayout::kSlack, 0);
}

void CategoryFinder::add(Scan& scan, const FeatureTile& tile, int output_tile, const std::int32_t* histogram) const {
  if (output_tile == 0) {
    list(scan, tile, histogram);
    reserve(scan, tile);
  }
  const auto width = static_cast<std::size_t>(payload_.layout.width);
  const std::size_t stride = payload_.layout.n_channels();
  const std::size_t offset = static_cast<std::size_t>(output_tile) * width;
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (!allowed(scan, tile, position)) continue;
    const std::int32_t* first = histogram + tile.slot_begin[position] * width;
    for (std::size_t i = scan.begin[position]; i < scan.begin[position + 1]; ++i)
      std::copy_n(first + scan.bins[i] * width, width, scan.sums.data() + i * stride + offset);
    const FeatureBins& bins = bins_of(tile, position);
    if (bins.has_missing)
      std::copy_n(first + bins.missing_code() * width, width, scan.missing.data() + position * stride + offset);
  }
}

void CategoryFinder::add_rows(Scan& scan, const FeatureTile& tile, const NodeRows& rows) const {
  const std::size_t n_rows = rows.size();
  const PayloadLayout& layout = payload_.layout;
  const auto width = static_cast<std::size_t>(layout.width);
  const std::size_t stride = layout.n_channels();
  scan.bins.clear();
  scan.begin.assign(1, 0);
  scan.index.assign(tile.n_slots(), 0);  // rows of a slot, then where its sums stand
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (allowed(scan, tile, position)) {
      std::uint32_t* index = scan.index.data() + tile.slot_begin[position];
      for (std::size_t i = 0; i < n_rows; ++i) ++index[tile.code(rows.row(i), position)];
      for (std::uint32_t bin = 0; bin < bins_of(tile, position).n_value_bins; ++bin) {
        if (index[bin] == 0) continue;
        index[bin] = static_cast<std::uint32_t>(scan.bins.size());
        scan.bins.push_back(bin);
      }
    }
    scan.begin.push_back(scan.bins.size());
  }
  reserve(scan, tile);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    if (!allowed(scan, tile, position)) continue;
    const std::uint32_t* index = scan.index.data() + tile.slot_begin[position];
    const std::uint32_t missing_code = bins_of(tile, position).missing_code();
    for (std::size_t i = 0; i < n_rows; ++i) {
      const std::uint32_t code = tile.code(rows.row(i), position);
      std::int32_t* to =
          code == missing_code ? scan.missing.data() + position * stride : scan.sums.data() + index[code] * stride;
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
void CategoryFinder::put_in_order(Scan& scan, std::size_t first, std::size_t n) const {
  const std::size_t d = gradient_channel_.size();
  const std::size_t stride = payload_.layout.n_channels();
  const std::int32_t* sums = scan.sums.data() + first * stride;
  scan.all.assign(stride, 0);
  for (std::size_t c = 0; c < n; ++c)
    for (std::size_t e = 0; e < stride; ++e) scan.all[e] += sums[c * stride + e];
  std::vector<double> mean(d), scale(d);  // of all categories: - leaf value, root of the smoothed Hessian
  for (std::size_t j = 0; j < d; ++j) {
    const double total = scan.all[hessian_channel_[j]] * hessian_unit_[j];
    mean[j] = total > 0 ? scan.all[gradient_channel_[j]] / total : 0.0;
    scale[j] = std::sqrt(std::max(total + smoothing_[j], 0.0));
  }
  // Entries, and their quotients by the root of the smoothed Hessian: parts of the leaf value.
  scan.vectors.resize(n * d);
  scan.values.resize(n * d);
  scan.hessian.assign(n, 0.0);
  const bool shared = hessian_channel_.front() == hessian_channel_.back();  // and so is the smoothing
  for (std::size_t c = 0; c < n; ++c) {
    const std::int32_t* of_category = sums + c * stride;
    double hessian = 0.0, inverse = 0.0;
    for (std::size_t j = 0; j < d; ++j) {
      if (j == 0 || !shared) {
        hessian = of_category[hessian_channel_[j]] * hessian_unit_[j];
        const double denominator = hessian + smoothing_[j];
        inverse = denominator > 0 ? 1 / std::sqrt(denominator) : 0.0;
        scan.hessian[c] += hessian;
      }
      const double rest = factor_[j] * (of_category[gradient_channel_[j]] - hessian * mean[j]);
      scan.vectors[c * d + j] = rest * inverse;
      scan.values[c * d + j] = rest * inverse * inverse;
    }
  }
  std::vector<double> direction = leading_direction(Vectors(scan.vectors.data(), n, d), d);
  for (std::size_t j = 0; j < d; ++j) direction[j] *= scale[j];
  scan.projection.assign(n, 0.0);
  for (std::size_t c = 0; c < n; ++c)
    for (std::size_t j = 0; j < d; ++j) scan.projection[c] -= direction[j] * scan.values[c * d + j];
  sort_positions(scan.projection, scan.order);
}

double CategoryFinder::score(Scan& scan, const std::int32_t* left, const std::int32_t* totals, double enough) const {
  // Bounds have no say: monotone constraints do not go with categories.
  if (joint_ != nullptr) return joint_->children(left, totals, {-1, nullptr}, enough, scan.scratch);
  return output_terms(payload_, rules_, terms_, left, totals, scan.scratch);
}

BestCandidate CategoryFinder::best_of_feature(Scan& scan, const FeatureTile& tile, std::size_t position,
                                              const std::int32_t* totals, double enough) const {
  const std::size_t stride = payload_.layout.n_channels();
  const auto count_channel = static_cast<std::size_t>(payload_.layout.count_channel());
  const std::size_t first = scan.begin[position];
  const std::size_t n = scan.begin[position + 1] - first;
  const bool one_against_rest = bins_of(tile, position).n_value_bins <= kMostOneAgainstRest;
  put_in_order(scan, first, n);  // few ones too: which of two goes left does not hang on their numbers
  const std::int32_t* missing = scan.missing.data() + position * stride;
  const bool missing_seen = missing[count_channel] > 0;
  const std::int64_t n_rows = finder_.node_count(totals);
  const double by_chance = one_against_rest ? 0.0 : noise_.score(scan.hessian);
  BestCandidate best;
  const auto offer = [&](const std::int32_t* left, std::size_t place, bool missing_left) {
    const double less = place + 1 < n ? by_chance : 0.0;  // missing against the rest is not found by the order
    const std::int64_t n_left = left[count_channel];
    if (n_left < rules_.min_samples_leaf || n_rows - n_left < rules_.min_samples_leaf) return;
    if (rules_.min_child_weight > 0 && !finder_.heavy_enough(finder_.mean_hessian(left), totals)) return;
    Candidate candidate;
    candidate.score = score(scan, left, totals, std::max(enough, best.highest) + less) - less;
    if (!(candidate.score >= 0)) return;
    candidate.feature = tile.features[position];
    candidate.bin = static_cast<int>(place);
    candidate.missing_left = missing_left;
    candidate.missing_seen = missing_seen;
    best.offer(candidate);
  };
  scan.left.assign(stride + PayloadLayout::kSlack, 0);
  scan.with_missing.assign(stride + PayloadLayout::kSlack, 0);
  for (std::size_t place = 0; place < n; ++place) {
    const std::int32_t* category = scan.sums.data() + (first + scan.order[place]) * stride;
    for (std::size_t c = 0; c < stride; ++c) scan.left[c] = one_against_rest ? category[c] : scan.left[c] + category[c];
    offer(scan.left.data(), place, false);
    if (!missing_seen) continue;
    for (std::size_t c = 0; c < stride; ++c) scan.with_missing[c] = scan.left[c] + missing[c];
    offer(scan.with_missing.data(), place, true);
  }
  if (one_against_rest && missing_seen && n > 1) {  // missing against the rest
    for (std::size_t c = 0; c < stride; ++c) scan.left[c] = totals[c] - missing[c];
    offer(scan.left.data(), n, false);
  }
  return best;
}

BestCandidate CategoryFinder::best(Scan& scan, const FeatureTile& tile, const std::int32_t* totals,
                                   CategoryPartition& partition) const {
  BestCandidate best;
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    const std::size_t first = scan.begin[position];
    if (first == scan.begin[position + 1]) continue;
    best.merge(best_of_feature(scan, tile, position, totals, best.highest));
    if (best.chosen.feature != tile.features[position]) continue;
    const bool one_against_rest = bins_of(tile, position).n_value_bins <= kMostOneAgainstRest;
    const auto place = static_cast<std::size_t>(best.chosen.bin);
    const bool all = place == scan.order.size();
    partition.set(scan.order, one_against_rest && !all ? place : 0, place + 1,
                  [&](std::uint32_t i) { return scan.bins[first + i]; });
  }
  return best;
}

}  // namespace polyleaf
