#include "predict/predictor.hpp"

#include <algorithm>
#include <limits>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "rules/routing.hpp"

namespace polyleaf {
namespace {

constexpr std::int32_t kMissingRight = std::int32_t{1} << 30;
constexpr std::int32_t kByCategory = std::int32_t{1} << 29;
constexpr std::size_t kStepsOfATree = 16;     // about what a row costs in one
constexpr std::size_t kBlockValues = 65536;   // of the table: what a block may hold at most
constexpr std::size_t kFewestCodedRows = 16;  // a block of codes costs the same however few rows it has
constexpr std::size_t kFewestCodedTrees = 4;
constexpr std::size_t kStepsToCode = 2;  // trees that rows go through, per node of the forest, before codes pay

// Walks side by side: each step waits for the node before it, so that one walk alone leaves the core idle.
constexpr std::size_t kTogether = 8;
constexpr int kSteps = 4;  // between looks whether all have arrived

template <class Node, class Value>
void walk(const Node** node, const Value* const* row) {
  std::int32_t open;
  do {
    for (int step = 0; step < kSteps; ++step)
      for (std::size_t k = 0; k < kTogether; ++k) {
        const auto value = static_cast<double>(row[k][node[k]->feature & ~kMissingRight]);
        const bool missing_right = (node[k]->feature & kMissingRight) != 0;
        node[k] += node[k]->left + (goes_right(value, node[k]->threshold, missing_right) ? 1 : 0);
      }
    open = 0;
    for (std::size_t k = 0; k < kTogether; ++k) open |= node[k]->left;
  } while (open != 0);
}

// The same where some splits are by categories.
template <class Node, class Value, class Set>
void walk_with_categories(const Node** node, const Value* const* row, const Set* sets) {
  std::int32_t open;
  do {
    open = 0;
    for (std::size_t k = 0; k < kTogether; ++k) {
      const std::int32_t feature = node[k]->feature;
      const auto value = static_cast<double>(row[k][feature & ~(kMissingRight | kByCategory)]);
      const bool missing_right = (feature & kMissingRight) != 0;
      bool right;
      if ((feature & kByCategory) != 0) {
        const Set& set = sets[static_cast<std::size_t>(node[k]->threshold)];
        right = !category_goes_left(has_number(set.words, set.n_words, value), !missing_right);
      } else {
        right = goes_right(value, node[k]->threshold, missing_right);
      }
      node[k] += node[k]->left + (right ? 1 : 0);
      open |= node[k]->left;
    }
  } while (open != 0);
}

bool readable_in_place(const MatrixView& x) {
  const auto size = static_cast<std::ptrdiff_t>(x.dtype == DType::f32 ? sizeof(float) : sizeof(double));
  return (x.dtype == DType::f32 || x.dtype == DType::f64) && (x.column_stride == size || x.n_columns == 1) &&
         x.row_stride % size == 0 && reinterpret_cast<std::uintptr_t>(x.data) % static_cast<std::uintptr_t>(size) == 0;
}

}  // namespace

Predictor::Predictor(const ForestArrays& in) : arrays_(in), nodes_(in.n_nodes) {
  for (std::size_t tree = 0; tree < in.n_trees; ++tree) {
    const auto begin = static_cast<std::size_t>(in.node_begin[tree]);
    const auto end = static_cast<std::size_t>(in.node_begin[tree + 1]);
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t n_words = static_cast<std::size_t>(in.category_begin[i + 1] - in.category_begin[i]);
      if (in.left[i] < 0) {  // no value goes on from a leaf: it leads to itself
        nodes_[i] = {std::numeric_limits<double>::infinity(), 0, 0};
      } else if (n_words > 0) {
        nodes_[i] = {static_cast<double>(sets_.size()),
                     in.feature[i] | kByCategory | (in.missing_left[i] != 0 ? 0 : kMissingRight),
                     in.left[i] - static_cast<std::int32_t>(i - begin)};
        sets_.push_back({in.category_bits + in.category_begin[i], n_words});
      } else {
        nodes_[i] = {in.threshold[i], in.feature[i] | (in.missing_left[i] != 0 ? 0 : kMissingRight),
                     in.left[i] - static_cast<std::int32_t>(i - begin)};
      }
    }
  }
}

const CodedForest* Predictor::coded(std::size_t n_rows, std::size_t n_trees) const {
  if (n_rows < kFewestCodedRows || n_trees < kFewestCodedTrees || !sets_.empty()) return nullptr;
  const std::size_t steps = walked_.fetch_add(n_rows * n_trees, std::memory_order_relaxed) + n_rows * n_trees;
  if (steps < kStepsToCode * nodes_.size()) return nullptr;
  std::call_once(coding_, [&] { coded_ = std::make_unique<CodedForest>(arrays_); });
  return coded_->usable() && coded_->worth_for(n_trees) ? coded_.get() : nullptr;
}

// Calls visit(row, tree, node) for each row and each tree in [begin, end), in the order of the trees for each row.
template <class Visit>
void Predictor::each_leaf(const MatrixView& x, std::size_t begin, std::size_t end, int n_threads, Visit&& visit) const {
  const std::size_t m = x.n_columns;
  const std::size_t rows = std::max<std::size_t>(1, std::min(kBlockRows, kBlockValues / std::max<std::size_t>(m, 1)));
  if (x.n_rows * (m + (end - begin) * kStepsOfATree) < kParallelWork) n_threads = 1;

  const auto tree_of = [&](std::size_t t) { return nodes_.data() + arrays_.node_begin[t]; };
  const auto go = [&](const PackedNode** node, const auto* row) {
    sets_.empty() ? walk(node, row) : walk_with_categories(node, row, sets_.data());
  };
  const auto over_block = [&](std::size_t first, std::size_t count, auto row_at) {
    const PackedNode* node[kTogether];
    decltype(row_at(0)) row[kTogether];
    const std::size_t together = count / kTogether * kTogether;
    for (std::size_t t = begin; t < end && together > 0; ++t)
      for (std::size_t i = 0; i < together; i += kTogether) {
        for (std::size_t k = 0; k < kTogether; ++k) row[k] = row_at(i + k);
        std::fill_n(node, kTogether, tree_of(t));
        go(node, row);
        for (std::size_t k = 0; k < kTogether; ++k) visit(first + i + k, t, node[k]);
      }
    for (std::size_t i = together; i < count; ++i) {  // few rows: several trees side by side
      std::fill_n(row, kTogether, row_at(i));
      for (std::size_t t = begin; t < end; t += kTogether) {
        const std::size_t n = std::min(kTogether, end - t);
        for (std::size_t k = 0; k < kTogether; ++k) node[k] = tree_of(t + std::min(k, n - 1));
        go(node, row);
        for (std::size_t k = 0; k < n; ++k) visit(first + i, t + k, node[k]);
      }
    }
  };

  const std::size_t n_blocks = (x.n_rows + rows - 1) / rows;
  const auto count_of = [&](std::size_t block) { return std::min(rows, x.n_rows - block * rows); };
  if (readable_in_place(x)) {
    parallel_for(n_threads, n_blocks, [&](std::size_t block, int) {
      const auto in_place = [&](auto zero) {
        using Value = decltype(zero);
        over_block(block * rows, count_of(block),
                   [&](std::size_t i) { return reinterpret_cast<const Value*>(x.at(block * rows + i, 0)); });
      };
      x.dtype == DType::f32 ? in_place(float{}) : in_place(double{});
    });
    return;
  }
  std::vector<Buffer<double>> buffers;
  for (int t = 0; t < std::max(1, n_threads); ++t) buffers.emplace_back(rows * m);
  parallel_for(n_threads, n_blocks, [&](std::size_t block, int thread) {
    double* buffer = buffers[static_cast<std::size_t>(thread)].data();
    for (std::size_t column = 0; column < m; ++column)
      load_strip(x, block * rows, count_of(block), column, buffer + column, m);
    over_block(block * rows, count_of(block),
               [&](std::size_t i) { return static_cast<const double*>(buffer + i * m); });
  });
}

void Predictor::add(const MatrixView& x, std::size_t begin, std::size_t end, double* raw, std::size_t n_outputs,
                    int n_threads) const {
  if (const CodedForest* codes = coded(x.n_rows, end - begin))
    return codes->add(x, begin, end, raw, n_outputs, n_threads);
  const PredictKernels& k = predict_kernels();
  each_leaf(x, begin, end, n_threads, [&](std::size_t row, std::size_t tree, const PackedNode* node) {
    double* out = raw + row * n_outputs + arrays_.tree_output[tree];
    const auto width = static_cast<std::size_t>(arrays_.tree_width[tree]);
    const std::int64_t first = arrays_.value_begin[node - nodes_.data()];
    const float* value = arrays_.values + first;
    if (arrays_.value_output == nullptr) {
      k.add_values(value, width, out);
    } else {
      const std::int32_t* output = arrays_.value_output + first;
      for (std::size_t j = 0; j < width; ++j) out[output[j]] += static_cast<double>(value[j]);
    }
  });
}

void Predictor::apply(const MatrixView& x, std::size_t begin, std::size_t end, std::int32_t* leaves,
                      int n_threads) const {
  const std::size_t n_trees = end - begin;
  each_leaf(x, begin, end, n_threads, [&](std::size_t row, std::size_t tree, const PackedNode* node) {
    leaves[row * n_trees + (tree - begin)] = static_cast<std::int32_t>(node - nodes_.data() - arrays_.node_begin[tree]);
  });
}

}  // namespace polyleaf
