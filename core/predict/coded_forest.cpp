#include "predict/coded_forest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/buffer.hpp"
#include "base/threads.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kMostWideCuts = 65535;
constexpr std::size_t kMostLeaves = 65536;       // of one tree
constexpr std::size_t kTreesTogether = 64;       // at most: their leaves are kept for a block of rows
constexpr std::size_t kTreeBytes = 640 * 1024;   // of trees that all blocks of a span go through before the next
constexpr std::size_t kSpanBytes = 1024 * 1024;  // of codes of the rows a thread takes together
constexpr std::size_t kMostSpanRows = 8192;
constexpr std::size_t kColumnsTogether = 16;  // of a table: a cache line of float32
// One step of all rows of a block down a tree costs about as much as evaluating this many splits for a vector of rows.
constexpr std::size_t kSplitsOfAStep = 48;
// A tree saves by codes what coding this many columns costs.
constexpr std::size_t kColumnsOfATree = 32;
constexpr std::size_t kStepsOfATree = 8;  // about what a row costs in one

float largest_not_above(double value) {
  const auto nearest = static_cast<float>(value);
  const bool above = static_cast<double>(nearest) > value;
  return above ? std::nextafter(nearest, -std::numeric_limits<float>::infinity()) : nearest;
}

// Whether every node but the root has one parent, which comes before it.
bool is_tree(const std::int32_t* left, std::size_t n_nodes) {
  std::vector<bool> has_parent(n_nodes, false);
  has_parent[0] = true;
  for (std::size_t i = 0; i < n_nodes; ++i) {
    if (left[i] < 0) continue;
    const auto child = static_cast<std::size_t>(left[i]);
    if (child <= i || child + 1 >= n_nodes || has_parent[child] || has_parent[child + 1]) return false;
    has_parent[child] = has_parent[child + 1] = true;
  }
  return std::all_of(has_parent.begin(), has_parent.end(), [](bool known) { return known; });
}

std::size_t whole_blocks(std::size_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

bool fits_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::i8 || dtype == DType::u8 || dtype == DType::i16 || dtype == DType::u16;
}

}  // namespace

// Places in the vectors, which may still move while they grow.
struct CodedForest::Layout {
  enum class Form : std::uint8_t { kMask, kSelect, kWalk };
  struct Place {
    std::size_t mask, select, walk, leaf_begin;
    Form form;
  };
  std::vector<std::uint32_t> column_of_feature;
  std::vector<Place> places;
};

CodedForest::CodedForest(const ForestArrays& forest) {
  Layout layout;
  if (!find_columns(forest, layout.column_of_feature)) return;
  for (std::size_t t = 0; t < forest.n_trees; ++t)
    if (!pack_tree(forest, t, layout)) return;
  for (std::size_t t = 0; t < forest.n_trees; ++t) {
    const Layout::Place& place = layout.places[t];
    trees_[t].leaf_begin = leaf_begin_.data() + place.leaf_begin;
    if (place.form == Layout::Form::kMask) {
      trees_[t].mask = mask_.data() + place.mask;
    } else if (place.form == Layout::Form::kSelect) {
      trees_[t].select = select_.data() + place.select;
    } else {
      trees_[t].walk = walk_.data() + place.walk;
      trees_[t].walk_leaf = walk_leaf_.data() + place.walk;
    }
  }
  usable_ = true;
}

bool CodedForest::find_columns(const ForestArrays& forest, std::vector<std::uint32_t>& column_of_feature) {
  std::size_t n_features = 0;
  for (std::size_t i = 0; i < forest.n_nodes; ++i)
    if (forest.left[i] >= 0) n_features = std::max(n_features, static_cast<std::size_t>(forest.feature[i]) + 1);
  std::vector<std::size_t> begin(n_features + 1, 0);
  for (std::size_t i = 0; i < forest.n_nodes; ++i)
    if (forest.left[i] >= 0) ++begin[static_cast<std::size_t>(forest.feature[i]) + 1];
  for (std::size_t f = 0; f < n_features; ++f) begin[f + 1] += begin[f];
  std::vector<double> thresholds(begin[n_features]);
  std::vector<std::size_t> place(begin.begin(), begin.end() - 1);
  for (std::size_t i = 0; i < forest.n_nodes; ++i)
    if (forest.left[i] >= 0) thresholds[place[static_cast<std::size_t>(forest.feature[i])]++] = forest.threshold[i];

  column_of_feature.assign(n_features, 0);
  std::size_t most = 0;
  for (std::size_t f = 0; f < n_features; ++f) {
    if (begin[f] == begin[f + 1]) continue;
    const auto first = thresholds.begin() + static_cast<std::ptrdiff_t>(begin[f]);
    const auto last = thresholds.begin() + static_cast<std::ptrdiff_t>(begin[f + 1]);
    std::sort(first, last);
    const auto end = std::unique(first, last);
    column_of_feature[f] = static_cast<std::uint32_t>(columns_.size());
    columns_.push_back({f, cuts_.size(), cuts_.size() + static_cast<std::size_t>(end - first)});
    cuts_.insert(cuts_.end(), first, end);
    const std::size_t n_cuts = columns_.back().cut_end - columns_.back().cut_begin;
    most = std::max(most, n_cuts);
    encode_steps_ += 1 + std::min<std::size_t>(n_cuts / 64, 7);
  }
  float_cuts_.resize(cuts_.size());
  std::transform(cuts_.begin(), cuts_.end(), float_cuts_.begin(), largest_not_above);
  wide_ = most > kMostNarrowCuts;
  return most <= kMostWideCuts && columns_.size() <= std::numeric_limits<std::uint32_t>::max() / (2 * kBlockRows);
}

bool CodedForest::pack_tree(const ForestArrays& forest, std::size_t tree, Layout& layout) {
  const auto first = static_cast<std::size_t>(forest.node_begin[tree]);
  const std::size_t n_nodes = static_cast<std::size_t>(forest.node_begin[tree + 1]) - first;
  const std::size_t n_leaves = (n_nodes + 1) / 2;
  if (n_leaves > kMostLeaves || !is_tree(forest.left + first, n_nodes)) return false;
  std::int64_t values = std::numeric_limits<std::int64_t>::max();
  std::vector<std::uint32_t> depth(n_nodes, 0);
  for (std::size_t i = 0; i < n_nodes; ++i) {
    const std::int32_t left = forest.left[first + i];
    if (left < 0) {
      values = std::min(values, forest.value_begin[first + i]);
    } else {
      depth[static_cast<std::size_t>(left)] = depth[static_cast<std::size_t>(left) + 1] = depth[i] + 1;
    }
  }
  for (std::size_t i = 0; i < n_nodes; ++i)
    if (forest.left[first + i] < 0 &&
        forest.value_begin[first + i] - values > std::numeric_limits<std::uint32_t>::max() / 2)
      return false;

  CodedTree out{};
  out.values = forest.values + values;
  out.value_output = forest.value_output != nullptr ? forest.value_output + values : nullptr;
  out.output = static_cast<std::uint32_t>(forest.tree_output[tree]);
  out.width = static_cast<std::uint32_t>(forest.tree_width[tree]);
  trees_.push_back(out);
  const std::size_t vectors =
      kBlockRows * (wide_ ? sizeof(std::int16_t) : sizeof(std::int8_t)) / predict_kernels().vector_bytes;
  const std::size_t deepest = *std::max_element(depth.begin(), depth.end());
  const std::size_t comparisons = (n_leaves - 1) * std::max<std::size_t>(vectors, 1);
  Layout::Form form = Layout::Form::kWalk;
  if (predict_kernels().has_masks && deepest > 0 && deepest <= kMostMaskDepth)
    form = Layout::Form::kMask;
  else if (n_leaves <= kMostSelectLeaves && comparisons <= kSplitsOfAStep * deepest)
    form = Layout::Form::kSelect;
  layout.places.push_back({mask_.size(), select_.size(), walk_.size(), leaf_begin_.size(), form});
  trees_.back().depth = static_cast<std::uint32_t>(deepest);
  if (form == Layout::Form::kMask)
    pack_mask(forest, tree, layout);
  else if (form == Layout::Form::kSelect)
    pack_select(forest, tree, layout);
  else
    pack_walk(forest, tree, layout);
  tree_bytes_.push_back(n_nodes * sizeof(WalkNode) + n_leaves * out.width * sizeof(float));
  return true;
}

std::int32_t CodedForest::code_of(std::uint32_t column, double threshold) const {
  const auto begin = cuts_.begin() + static_cast<std::ptrdiff_t>(columns_[column].cut_begin);
  const auto end = cuts_.begin() + static_cast<std::ptrdiff_t>(columns_[column].cut_end);
  const auto cut = static_cast<std::int32_t>(std::lower_bound(begin, end, threshold) - begin);
  return cut - (wide_ ? 32768 : 128);
}

// A code as often as 32 bits hold it.
std::uint32_t CodedForest::filled(std::int32_t code) const {
  return wide_ ? static_cast<std::uint16_t>(code) * 0x00010001u : static_cast<std::uint8_t>(code) * 0x01010101u;
}

void CodedForest::pack_mask(const ForestArrays& forest, std::size_t tree, Layout& layout) {
  const auto first = static_cast<std::size_t>(forest.node_begin[tree]);
  const std::size_t n_nodes = static_cast<std::size_t>(forest.node_begin[tree + 1]) - first;
  const std::int64_t values = trees_.back().values - forest.values;
  const std::size_t n_places = std::size_t{1} << trees_.back().depth;
  std::vector<std::size_t> place(n_nodes, 1);
  leaf_begin_.resize(layout.places.back().leaf_begin + n_places);
  for (std::size_t node = 0; node < n_nodes; ++node) {
    const std::size_t i = first + node;
    if (forest.left[i] < 0) {  // all ways that begin with the one to it
      std::size_t begin = place[node], end = begin + 1;
      for (; begin < n_places; begin *= 2) end *= 2;
      std::fill(leaf_begin_.end() - static_cast<std::ptrdiff_t>(2 * n_places - begin),
                leaf_begin_.end() - static_cast<std::ptrdiff_t>(2 * n_places - end),
                static_cast<std::uint32_t>(forest.value_begin[i] - values));
      continue;
    }
    const auto left = static_cast<std::size_t>(forest.left[i]);
    place[left] = 2 * place[node];
    place[left + 1] = 2 * place[node] + 1;
    const std::uint32_t column = layout.column_of_feature[static_cast<std::size_t>(forest.feature[i])];
    mask_.push_back({column * static_cast<std::uint32_t>(kBlockRows),
                     forest.missing_left[i] != 0 ? 0 : static_cast<std::uint32_t>(kBlockRows),
                     filled(code_of(column, forest.threshold[i])), static_cast<std::uint32_t>(place[node])});
  }
  trees_.back().n_mask = static_cast<std::uint32_t>((n_nodes - 1) / 2);
}

void CodedForest::pack_select(const ForestArrays& forest, std::size_t tree, Layout& layout) {
  const auto first = static_cast<std::size_t>(forest.node_begin[tree]);
  const std::size_t n_nodes = static_cast<std::size_t>(forest.node_begin[tree + 1]) - first;
  const std::int64_t values = trees_.back().values - forest.values;
  const std::int32_t* left = forest.left + first;
  const auto is_leaf = [&](std::int32_t node) { return left[node] < 0; };
  std::vector<std::uint16_t> slot(n_nodes);
  std::size_t n_leaves = 0, n_select = 0;

  const auto slot_of = [&](std::int32_t node) {
    if (is_leaf(node)) {
      leaf_begin_.push_back(
          static_cast<std::uint32_t>(forest.value_begin[first + static_cast<std::size_t>(node)] - values));
      slot[static_cast<std::size_t>(node)] = static_cast<std::uint16_t>(n_leaves++);
    }
    return slot[static_cast<std::size_t>(node)];
  };
  const auto add = [&](std::size_t node) {
    const std::size_t i = first + node;
    const std::uint32_t column = layout.column_of_feature[static_cast<std::size_t>(forest.feature[i])];
    SelectNode out{};
    out.column = column * static_cast<std::uint32_t>(kBlockRows);
    out.right_if_missing = forest.missing_left[i] != 0 ? 0 : static_cast<std::uint32_t>(kBlockRows);
    out.cut = filled(code_of(column, forest.threshold[i]));
    out.left = slot_of(left[node]);
    out.right = slot_of(left[node] + 1);
    slot[node] = static_cast<std::uint16_t>(kMostSelectLeaves + n_select++);
    select_.push_back(out);
  };
  // Children come after their parents in the arrays.
  const auto is_pair = [&](std::size_t node) { return is_leaf(left[node]) && is_leaf(left[node] + 1); };
  for (std::size_t node = n_nodes; node-- > 0;)
    if (left[node] >= 0 && is_pair(node)) add(node);
  trees_.back().n_pairs = static_cast<std::uint32_t>(n_select);
  for (std::size_t node = n_nodes; node-- > 0;)
    if (left[node] >= 0 && !is_pair(node)) add(node);
  trees_.back().n_select = static_cast<std::uint32_t>(n_select);
  if (n_nodes == 1) slot_of(0);
}

void CodedForest::pack_walk(const ForestArrays& forest, std::size_t tree, Layout& layout) {
  const auto first = static_cast<std::size_t>(forest.node_begin[tree]);
  const std::size_t n_nodes = static_cast<std::size_t>(forest.node_begin[tree + 1]) - first;
  const std::int64_t values = trees_.back().values - forest.values;
  std::uint16_t n_leaves = 0;
  for (std::size_t node = 0; node < n_nodes; ++node) {
    const std::size_t i = first + node;
    WalkNode out{};
    if (forest.left[i] < 0) {
      out.cut = std::numeric_limits<std::int32_t>::max();
      leaf_begin_.push_back(static_cast<std::uint32_t>(forest.value_begin[i] - values));
      walk_leaf_.push_back(n_leaves++);
    } else {
      const std::uint32_t column = layout.column_of_feature[static_cast<std::size_t>(forest.feature[i])];
      out.column = column * static_cast<std::uint32_t>(kBlockRows);
      out.right_if_missing = forest.missing_left[i] != 0 ? 0 : static_cast<std::uint32_t>(kBlockRows);
      out.cut = code_of(column, forest.threshold[i]);
      out.left = forest.left[i] - static_cast<std::int32_t>(node);
      walk_leaf_.push_back(0);
    }
    walk_.push_back(out);
  }
}

bool CodedForest::worth_for(std::size_t n_trees) const { return n_trees * kColumnsOfATree >= encode_steps_; }

// Finds the codes of a block; says whether a value is missing. `missing`: with both copies of each column.
template <class Value>
bool CodedForest::encode_block(const MatrixView& x, std::size_t row, std::size_t count, bool missing,
                               char* codes) const {
  const PredictKernels& k = predict_kernels();
  const std::size_t bytes = kBlockRows * (wide_ ? sizeof(std::int16_t) : sizeof(std::int8_t));
  alignas(64) Value values[kColumnsTogether][kBlockRows] = {};
  bool found = false;
  for (std::size_t first = 0; first < columns_.size(); first += kColumnsTogether) {
    const std::size_t n = std::min(kColumnsTogether, columns_.size() - first);
    std::ptrdiff_t offset[kColumnsTogether + 1];  // the last: where the next columns begin
    for (std::size_t c = 0; c <= kColumnsTogether; ++c)
      offset[c] =
          static_cast<std::ptrdiff_t>(columns_[std::min(first + c, columns_.size() - 1)].feature) * x.column_stride;
    with_dtype(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      const char* source = x.at(row, 0);
      for (std::size_t i = 0; i < count; ++i, source += x.row_stride) {
        __builtin_prefetch(source + offset[kColumnsTogether]);
        for (std::size_t c = 0; c < kColumnsTogether; ++c) {  // a number known beforehand; superfluous ones repeat
          T value;
          std::memcpy(&value, source + offset[c], sizeof value);
          values[c][i] = static_cast<Value>(value);
        }
      }
    });
    for (std::size_t c = 0; c < n; ++c) {
      const Column& column = columns_[first + c];
      const std::size_t n_cuts = column.cut_end - column.cut_begin;
      char* out = codes + (first + c) * bytes * (missing ? 2 : 1);
      char* second = missing ? out + bytes : nullptr;
      if constexpr (std::is_same_v<Value, float>)
        found |= k.encode_float(values[c], float_cuts_.data() + column.cut_begin, n_cuts, wide_, out, second);
      else
        found |= k.encode_double(values[c], cuts_.data() + column.cut_begin, n_cuts, wide_, out, second);
    }
  }
  return found;
}

// All trees over a span of rows: some trees over all its blocks, then the next, so that both stay in the caches.
template <class Value>
void CodedForest::add_span(const MatrixView& x, std::size_t row, std::size_t n_rows, std::size_t begin, std::size_t end,
                           double* raw, std::size_t n_outputs) const {
  const PredictKernels& k = predict_kernels();
  const std::size_t n_blocks = whole_blocks(n_rows);
  const std::size_t block_bytes = 2 * columns_.size() * kBlockRows * (wide_ ? 2 : 1);
  Buffer<char> codes(n_blocks * block_bytes), slots(slot_bytes(wide_));
  Buffer<std::uint16_t> leaves(kTreesTogether * kBlockRows);
  k.prepare_slots(wide_, slots.data());
  std::vector<CodedBlock> blocks(n_blocks);
  bool missing = false;
  for (std::size_t b = 0; b < n_blocks; ++b) {
    const std::size_t first = b * kBlockRows;
    const std::size_t count = std::min(kBlockRows, n_rows - first);
    char* of_block = codes.data() + b * block_bytes;
    const bool found = encode_block<Value>(x, row + first, count, missing, of_block);
    if (found && !missing) {
      missing = true;  // most likely in the blocks that follow, too
      encode_block<Value>(x, row + first, count, missing, of_block);
    }
    blocks[b] = {of_block, wide_, missing};
  }
  for (std::size_t tree = begin; tree < end;) {
    std::size_t tree_end = tree + 1;
    for (std::size_t bytes = tree_bytes_[tree]; tree_end < end && tree_end - tree < kTreesTogether; ++tree_end)
      if ((bytes += tree_bytes_[tree_end]) > kTreeBytes) break;
    for (std::size_t b = 0; b < n_blocks; ++b) {
      for (std::size_t t = tree; t < tree_end; ++t)
        k.find_leaves(trees_[t], blocks[b], slots.data(), leaves.data() + (t - tree) * kBlockRows);
      const std::size_t first = b * kBlockRows;
      k.add_leaves({&trees_[tree], tree_end - tree, leaves.data(), std::min(kBlockRows, n_rows - first),
                    raw + (row + first) * n_outputs, n_outputs});
    }
    tree = tree_end;
  }
}

void CodedForest::add(const MatrixView& x, std::size_t begin, std::size_t end, double* raw, std::size_t n_outputs,
                      int n_threads) const {
  const std::size_t block_bytes = std::max<std::size_t>(1, columns_.size() * kBlockRows * (wide_ ? 2 : 1));
  const std::size_t n_blocks = whole_blocks(x.n_rows);
  if (x.n_rows * (columns_.size() + (end - begin) * kStepsOfATree) < kParallelWork) n_threads = 1;
  const std::size_t most = std::max<std::size_t>(1, std::min(kMostSpanRows / kBlockRows, kSpanBytes / block_bytes));
  // Spans of equal size, the same number for each thread.
  const auto threads = static_cast<std::size_t>(std::max(1, n_threads));
  const std::size_t per_thread = (n_blocks + most * threads - 1) / (most * threads);
  const std::size_t n_spans = std::min(n_blocks, per_thread * threads);
  parallel_for(n_threads, n_spans, [&](std::size_t span, int) {
    const std::size_t first = n_blocks * span / n_spans * kBlockRows;
    const std::size_t last = std::min(x.n_rows, n_blocks * (span + 1) / n_spans * kBlockRows);
    if (fits_float(x.dtype))
      add_span<float>(x, first, last - first, begin, end, raw, n_outputs);
    else
      add_span<double>(x, first, last - first, begin, end, raw, n_outputs);
  });
}

}  // namespace polyleaf
