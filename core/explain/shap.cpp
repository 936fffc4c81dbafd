#include "explain/shap.hpp"

#include <algorithm>
#include <cmath>

#include "base/buffer.hpp"
#include "base/threads.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;  // of sums: they stay in a core's second cache
constexpr std::size_t kMostGroups = 16;                    // of rows in a block
constexpr std::size_t kSpanBytes = std::size_t{1} << 26;   // of all spans
constexpr std::size_t kMostSpans = 64;

std::size_t n_cells(const LeafPaths& paths) {
  return std::max<std::size_t>(1, paths.features().size() * paths.expected().size());
}

// Groups of rows that go through a tree one after the other.
std::size_t groups_of_block(const LeafPaths& paths) {
  const std::size_t bytes = n_cells(paths) * kRowsTogether * sizeof(double);
  return std::clamp<std::size_t>(kBlockBytes / bytes, 1, kMostGroups);
}

std::size_t n_spans(const LeafPaths& paths, std::size_t n_rows) {
  const std::size_t rows = groups_of_block(paths) * kRowsTogether;
  const std::size_t fitting = std::clamp<std::size_t>(kSpanBytes / (n_cells(paths) * sizeof(double)), 1, kMostSpans);
  return std::min(fitting, std::max<std::size_t>(1, (n_rows + rows - 1) / rows));
}

// The memory of a thread, and what it does with it.
class Block {
 public:
  Block(const LeafPaths& paths, std::size_t groups)
      : paths_(paths),
        forest_(paths.view()),
        values_(groups * paths.features().size() * kRowsTogether),
        sums_(groups * n_cells(paths) * kRowsTogether),
        scratch_(paths.scratch_vectors() * kRowsTogether),
        weights_(paths.most_slots() * kRowsTogether) {}

  // Shapley values of rows [row, row + count) in units: groups x features x outputs x kRowsTogether.
  const double* explain(const MatrixView& x, const std::int32_t* columns, std::size_t row, std::size_t count) {
    const ExplainKernels& k = explain_kernels();
    const std::size_t n_features = paths_.features().size();
    const std::size_t groups = (count + kRowsTogether - 1) / kRowsTogether;
    const std::size_t sum_step = n_cells(paths_) * kRowsTogether, value_step = n_features * kRowsTogether;
    for (std::size_t g = 0; g < groups; ++g) {
      const std::size_t rows = std::min(kRowsTogether, count - g * kRowsTogether);
      for (std::size_t f = 0; f < n_features; ++f) {
        double* to = values_.data() + g * value_step + f * kRowsTogether;
        load_strip(x, row + g * kRowsTogether, rows, static_cast<std::size_t>(columns[f]), to);
        std::fill(to + rows, to + kRowsTogether, 0.0);
      }
    }
    std::fill_n(sums_.data(), groups * sum_step, 0.0);
    for (std::size_t tree = 0; tree < paths_.n_trees(); ++tree)
      for (std::size_t g = 0; g < groups; ++g)
        k.add_tree(forest_, forest_.trees[tree], values_.data() + g * value_step, scratch_.data(), weights_.data(),
                   sums_.data() + g * sum_step);
    return sums_.data();
  }

 private:
  const LeafPaths& paths_;
  PathForest forest_;
  Buffer<double> values_, sums_, scratch_, weights_;
};

std::vector<Block> blocks_of_threads(const LeafPaths& paths, std::size_t groups, std::size_t n_tasks, int n_threads) {
  std::vector<Block> blocks;
  const std::size_t n = std::min<std::size_t>(n_tasks, static_cast<std::size_t>(std::max(1, n_threads)));
  for (std::size_t thread = 0; thread < n; ++thread) blocks.emplace_back(paths, groups);
  return blocks;
}

}  // namespace

template <class Number>
void shap_values(const LeafPaths& paths, const MatrixView& x, const std::int32_t* columns, const ShapTarget& target,
                 Number* out, int n_threads) {
  const std::size_t n_features = paths.features().size(), n_outputs = paths.expected().size();
  // Few rows: smaller blocks, so that all threads have some.
  const std::size_t all_groups = (x.n_rows + kRowsTogether - 1) / kRowsTogether;
  const std::size_t share = all_groups / static_cast<std::size_t>(std::max(1, n_threads));
  const std::size_t groups = std::min(groups_of_block(paths), std::max<std::size_t>(1, share));
  const std::size_t rows = groups * kRowsTogether, n_blocks = (x.n_rows + rows - 1) / rows;
  std::vector<Block> blocks = blocks_of_threads(paths, groups, n_blocks, n_threads);
  parallel_for(n_threads, n_blocks, [&](std::size_t block, int thread) {
    const std::size_t count = std::min(rows, x.n_rows - block * rows);
    const double* sums = blocks[static_cast<std::size_t>(thread)].explain(x, columns, block * rows, count);
    for (std::size_t i = 0; i < count; ++i) {
      const double* of_group = sums + i / kRowsTogether * n_cells(paths) * kRowsTogether + i % kRowsTogether;
      for (std::size_t f = 0; f < n_features; ++f) {
        const auto feature = static_cast<std::size_t>(paths.features()[f]);
        Number* to = out + ((block * rows + i) * target.n_features + feature) * n_outputs;
        const double* from = of_group + f * n_outputs * kRowsTogether;
        for (std::size_t k = 0; k < n_outputs; ++k)
          to[target.column_of_output[k]] = static_cast<Number>(from[k * kRowsTogether] * target.unit[k]);
      }
    }
  });
}

template void shap_values<float>(const LeafPaths&, const MatrixView&, const std::int32_t*, const ShapTarget&, float*,
                                 int);
template void shap_values<double>(const LeafPaths&, const MatrixView&, const std::int32_t*, const ShapTarget&, double*,
                                  int);

void add_absolute(const LeafPaths& paths, const MatrixView& x, const std::int32_t* columns, const ShapTarget& target,
                  double* sums, int n_threads) {
  const std::size_t n_features = paths.features().size(), n_outputs = paths.expected().size();
  const std::size_t cells = n_features * n_outputs, groups = groups_of_block(paths), rows = groups * kRowsTogether;
  const std::size_t spans = n_spans(paths, x.n_rows), n_blocks = (x.n_rows + rows - 1) / rows;
  std::vector<double> of_spans(spans * cells, 0.0);
  std::vector<Block> blocks = blocks_of_threads(paths, groups, spans, n_threads);
  parallel_for(n_threads, spans, [&](std::size_t span, int thread) {
    double* own = of_spans.data() + span * cells;
    for (std::size_t block = n_blocks * span / spans; block < n_blocks * (span + 1) / spans; ++block) {
      const std::size_t count = std::min(rows, x.n_rows - block * rows);
      const double* found = blocks[static_cast<std::size_t>(thread)].explain(x, columns, block * rows, count);
      for (std::size_t g = 0; g * kRowsTogether < count; ++g) {
        const std::size_t lanes = std::min(kRowsTogether, count - g * kRowsTogether);
        const double* of_group = found + g * n_cells(paths) * kRowsTogether;
        for (std::size_t cell = 0; cell < cells; ++cell)
          for (std::size_t lane = 0; lane < lanes; ++lane) own[cell] += std::abs(of_group[cell * kRowsTogether + lane]);
      }
    }
  });
  for (std::size_t span = 0; span < spans; ++span)
    for (std::size_t f = 0; f < n_features; ++f)
      for (std::size_t k = 0; k < n_outputs; ++k) {
        const auto feature = static_cast<std::size_t>(paths.features()[f]);
        const auto column = static_cast<std::size_t>(target.column_of_output[k]);
        sums[feature * n_outputs + column] += of_spans[span * cells + f * n_outputs + k] * target.unit[k];
      }
}

std::size_t bytes_of_block(const LeafPaths& paths) {
  const std::size_t per_group = n_cells(paths) + paths.features().size();
  const std::size_t vectors = groups_of_block(paths) * per_group + paths.scratch_vectors() + paths.most_slots();
  return vectors * kRowsTogether * sizeof(double);
}

std::size_t bytes_of_spans(const LeafPaths& paths, std::size_t n_rows) {
  return n_spans(paths, n_rows) * n_cells(paths) * sizeof(double);
}

}  // namespace polyleaf
