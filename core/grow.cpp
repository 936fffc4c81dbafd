#include "grow.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>

#include "kernels.hpp"
#include "leaves.hpp"
#include "partition.hpp"
#include "split.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kChunkRows = 1024;

struct Node {
  std::size_t begin = 0;  // its rows
  std::size_t end = 0;
  int depth = 0;
  int slot = -1;  // where its histogram is kept; -1: nowhere
  int left = -1;  // indices of the visited children
  int right = -1;
  Candidate split;
  double gain = 0.0;  // of the best split; 0: not to be split
  double path_minimum = std::numeric_limits<double>::infinity();
  std::vector<std::int32_t> totals;

  std::size_t n_rows() const { return end - begin; }
};

// A fixed number of histograms, the lowest free one first.
class SlotPool {
 public:
  explicit SlotPool(int size) {
    for (int slot = size - 1; slot >= 0; --slot) free_.push_back(slot);
  }
  int acquire() {
    if (free_.empty()) return -1;
    const int slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void release(int& slot) {
    if (slot >= 0) free_.insert(std::upper_bound(free_.begin(), free_.end(), slot, std::greater<int>()), slot);
    slot = -1;
  }
  int n_free() const { return static_cast<int>(free_.size()); }

 private:
  std::vector<int> free_;  // descending
};

struct ThreadScratch {
  Buffer<std::int32_t> first, second;
  SplitFinder::Scan first_scan, second_scan;
};

class Growth {
 public:
  Growth(const GrowTask& task, const GrowSettings& settings, const Payload& payload, Buffer<std::int32_t>& histograms,
         std::vector<std::uint32_t>& rows, std::vector<std::uint32_t>& spare)
      : task_(task),
        settings_(settings),
        rules_(settings.rules),
        matrix_(*task.matrix),
        payload_(payload),
        terms_(payload, rules_, task.gain_weight, task.unit),
        finder_(matrix_, payload, rules_, terms_, task.feature_mask),
        histograms_(histograms),
        rows_(rows),
        spare_(spare),
        pool_(pool_size()) {
    histogram_size_ = matrix_.n_slots * payload_.layout.n_channels();
    const std::size_t needed = static_cast<std::size_t>(pool_.n_free()) * histogram_size_;
    if (histograms_.size() < needed) histograms_ = Buffer<std::int32_t>(needed);
    std::size_t largest = 0;
    for (const FeatureTile& tile : matrix_.tiles) largest = std::max<std::size_t>(largest, tile.n_slots());
    scratch_.resize(static_cast<std::size_t>(std::max(1, settings.n_threads)));
    for (ThreadScratch& s : scratch_) {
      s.first = Buffer<std::int32_t>(largest * static_cast<std::size_t>(payload_.layout.width));
      s.second = Buffer<std::int32_t>(largest * static_cast<std::size_t>(payload_.layout.width));
    }
  }

  GrownTree run() {
    visit();
    return replay();
  }

 private:
  // ---- visiting -------------------------------------------------------------------------------------------------
  bool leaves_are_scarce() const {
    return rules_.max_depth > 30 ||
           static_cast<std::int64_t>(rules_.max_leaves) < (std::int64_t{1} << rules_.max_depth);
  }

  // Depth-first order keeps one histogram per level, best-first order one per open node.
  int pool_size() const {
    const std::size_t bytes = matrix_.n_slots * payload_.layout.n_channels() * sizeof(std::int32_t);
    const auto wanted = static_cast<std::size_t>(leaves_are_scarce() ? rules_.max_leaves : rules_.max_depth + 1);
    const std::size_t rows_bound = task_.n_rows + 1;
    const std::size_t affordable = bytes == 0 ? 0 : settings_.histogram_bytes / bytes;
    return static_cast<int>(std::min({wanted, affordable, rows_bound}));
  }

  void visit() {
    nodes_.emplace_back();
    nodes_[0].end = task_.n_rows;
    nodes_[0].totals = sum_payload(nodes_[0]);
    if (wants_split(nodes_[0])) {
      if (keeps_histogram(nodes_[0])) nodes_[0].slot = pool_.acquire();
      evaluate(&nodes_[0], nullptr, -1);
      settle(0, std::numeric_limits<double>::infinity());
    }
    while (!open_.empty()) {
      const int index = take_open();
      if (hopeless(nodes_[static_cast<std::size_t>(index)]))
        pool_.release(nodes_[static_cast<std::size_t>(index)].slot);
      else
        expand(index);
    }
  }

  bool wants_split(const Node& node) const {
    return node.depth < rules_.max_depth && node.n_rows() >= 2 * static_cast<std::size_t>(rules_.min_samples_leaf) &&
           rules_.max_leaves > 1;
  }

  // The children of a node just above the last level are leaves: nothing is subtracted from its histogram.
  bool keeps_histogram(const Node& node) const { return wants_split(node) && node.depth + 1 < rules_.max_depth; }

  int take_open() {
    auto chosen = open_.end() - 1;  // depth first
    const int reserve = std::min(rules_.max_depth, 16);
    if (leaves_are_scarce() && pool_.n_free() > reserve) {
      chosen = std::max_element(open_.begin(), open_.end(), [&](int a, int b) {
        return nodes_[static_cast<std::size_t>(a)].path_minimum < nodes_[static_cast<std::size_t>(b)].path_minimum;
      });
    }
    const int index = *chosen;
    open_.erase(chosen);
    return index;
  }

  bool hopeless(const Node& node) const {
    return best_minima_.size() + 1 == static_cast<std::size_t>(rules_.max_leaves) &&
           node.path_minimum < best_minima_.top();
  }

  // Takes note of an evaluated node: open if it can be split, else a leaf.
  void settle(int index, double parent_minimum) {
    Node& node = nodes_[static_cast<std::size_t>(index)];
    if (node.gain <= 0) {
      pool_.release(node.slot);
      return;
    }
    node.path_minimum = std::min(parent_minimum, node.gain);
    best_minima_.push(node.path_minimum);
    if (best_minima_.size() + 1 > static_cast<std::size_t>(rules_.max_leaves)) best_minima_.pop();
    open_.push_back(index);
  }

  void expand(int index) {
    const auto at = static_cast<std::size_t>(index);
    const std::size_t begin = nodes_[at].begin;
    const std::size_t n = nodes_[at].n_rows();
    const std::size_t n_left =
        partition_rows(matrix_, nodes_[at].split, rows_.data() + begin, n, spare_.data() + begin, settings_.n_threads);
    const int left = static_cast<int>(nodes_.size());
    const int right = left + 1;
    nodes_.resize(nodes_.size() + 2);
    Node& parent = nodes_[at];
    parent.left = left;
    parent.right = right;
    Node& l = nodes_[static_cast<std::size_t>(left)];
    Node& r = nodes_[static_cast<std::size_t>(right)];
    l.depth = r.depth = parent.depth + 1;
    l.begin = begin;
    l.end = r.begin = begin + n_left;
    r.end = begin + n;
    Node& small = l.n_rows() <= r.n_rows() ? l : r;
    Node& large = l.n_rows() <= r.n_rows() ? r : l;
    if (!wants_split(small) && !wants_split(large)) {
      pool_.release(parent.slot);
    } else {
      small.totals = sum_payload(small);
      large.totals = std::move(parent.totals);
      for (std::size_t c = 0; c < small.totals.size(); ++c) large.totals[c] -= small.totals[c];
      evaluate_children(parent, small, large);
    }
    const bool left_first = l.gain >= r.gain;  // depth first takes the last one pushed
    settle(left_first ? right : left, parent.path_minimum);
    settle(left_first ? left : right, parent.path_minimum);
  }

  void evaluate_children(Node& parent, Node& small, Node& large) {
    const int parent_slot = parent.slot;
    parent.slot = -1;
    if (parent_slot >= 0 && wants_split(large)) {
      if (keeps_histogram(small)) small.slot = pool_.acquire();
      evaluate(&small, &large, parent_slot);
      large.slot = parent_slot;  // now holds the larger child's histogram
      if (!keeps_histogram(large)) pool_.release(large.slot);
      return;
    }
    int unused = parent_slot;
    pool_.release(unused);
    for (Node* child : {&small, &large}) {
      if (!wants_split(*child)) continue;
      if (keeps_histogram(*child)) child->slot = pool_.acquire();
      evaluate(child, nullptr, -1);
    }
  }

  std::vector<std::int32_t> sum_payload(const Node& node) const {
    const PayloadLayout& layout = payload_.layout;
    const std::size_t n_blocks = (node.n_rows() + kChunkRows - 1) / kChunkRows;
    const int threads = node.n_rows() * layout.n_channels() < kParallelWork ? 1 : settings_.n_threads;
    std::vector<std::vector<std::int32_t>> partial(static_cast<std::size_t>(std::max(threads, 1)),
                                                   std::vector<std::int32_t>(layout.n_channels(), 0));
    parallel_for(threads, n_blocks, [&](std::size_t block, int thread) {
      const std::size_t begin = node.begin + block * kChunkRows;
      const std::size_t count = std::min(kChunkRows, node.end - begin);
      for (int t = 0; t < layout.n_tiles; ++t)
        kernels().sum_payload(payload_.tile(t), layout.width, rows_.data() + begin, count,
                              partial[static_cast<std::size_t>(thread)].data() + t * layout.width);
    });
    for (std::size_t other = 1; other < partial.size(); ++other)  // integers: any order gives the same bits
      for (std::size_t c = 0; c < partial[0].size(); ++c) partial[0][c] += partial[other][c];
    return std::move(partial[0]);
  }

  // ---- histograms and splits ------------------------------------------------------------------------------------
  std::int32_t* kept_histogram(int slot, const FeatureTile& tile, int output_tile) {
    const std::size_t first = static_cast<std::size_t>(output_tile) * matrix_.n_slots + tile.first_slot;
    return histograms_.data() + static_cast<std::size_t>(slot) * histogram_size_ +
           first * static_cast<std::size_t>(payload_.layout.width);
  }

  // Finds the best split of `built` from its rows and, where given, of its sibling `derived` by subtraction from the
  // parent's histogram, which becomes the sibling's.
  void evaluate(Node* built, Node* derived, int parent_slot) {
    const std::size_t n_tiles = matrix_.tiles.size();
    std::vector<Candidate> found(2 * n_tiles);
    const std::size_t work =
        (built->n_rows() * matrix_.features.size() + 4 * matrix_.n_slots) * payload_.layout.n_channels();
    parallel_for(work < kParallelWork ? 1 : settings_.n_threads, n_tiles, [&](std::size_t tile, int thread) {
      evaluate_tile(matrix_.tiles[tile], scratch_[static_cast<std::size_t>(thread)], *built, derived, parent_slot,
                    &found[2 * tile]);
    });
    for (int which = 0; which < 2; ++which) {
      Node* node = which == 0 ? built : derived;
      if (node == nullptr) continue;
      for (std::size_t tile = 0; tile < n_tiles; ++tile)
        if (better(found[2 * tile + static_cast<std::size_t>(which)], node->split))
          node->split = found[2 * tile + static_cast<std::size_t>(which)];
      if (node->split.feature < 0) continue;
      const double gain = split_gain(node->split.score, finder_.node_score(node->totals.data()));
      if (gain / payload_.layout.n_outputs > rules_.min_split_gain)
        node->gain = std::min(gain, std::numeric_limits<double>::max());
    }
  }

  void evaluate_tile(const FeatureTile& tile, ThreadScratch& scratch, const Node& built, const Node* derived,
                     int parent_slot, Candidate* found) {
    const PayloadLayout& layout = payload_.layout;
    const bool scan_built = wants_split(built);
    for (int t = 0; t < layout.n_tiles; ++t) {
      std::int32_t* histogram = built.slot >= 0 ? kept_histogram(built.slot, tile, t) : scratch.first.data();
      build_histogram(tile, t, built, histogram);
      if (scan_built) scan(scratch.first_scan, tile, t, histogram, built);
      if (derived == nullptr) continue;
      std::int32_t* parent = kept_histogram(parent_slot, tile, t);
      kernels().subtract(parent, histogram, tile.n_slots() * static_cast<std::size_t>(layout.width));
      scan(scratch.second_scan, tile, t, parent, *derived);
    }
    if (scan_built) found[0] = finder_.best(scratch.first_scan, tile, built.totals.data());
    if (derived != nullptr) found[1] = finder_.best(scratch.second_scan, tile, derived->totals.data());
  }

  void scan(SplitFinder::Scan& scan, const FeatureTile& tile, int output_tile, const std::int32_t* histogram,
            const Node& node) const {
    if (output_tile == 0) finder_.begin(scan, tile, histogram, node.totals.data());
    finder_.add(scan, tile, output_tile, histogram, node.totals.data());
  }

  // Algorithm 1 for all features of the tile.
  void build_histogram(const FeatureTile& tile, int output_tile, const Node& node, std::int32_t* histogram) const {
    const auto width = static_cast<std::size_t>(payload_.layout.width);
    std::fill_n(histogram, tile.n_slots() * width, 0);
    AccumulateTile job{};
    job.payload = payload_.tile(output_tile);
    job.width = payload_.layout.width;
    job.rows = rows_.data() + node.begin;
    job.n_rows = node.n_rows();
    job.codes = tile.codes.data();
    job.wide = tile.wide;
    job.n_features = tile.n_features();
    job.slot_begin = tile.slot_begin.data();
    if (tile.sparse) {
      job.row_begin = tile.row_begin.data();
      job.entries = tile.entries.data();
    }
    job.histogram = histogram;
    kernels().accumulate(job);
    if (tile.sparse) complete_frequent_bins(tile, node.totals.data() + output_tile * payload_.layout.width, histogram);
  }

  void complete_frequent_bins(const FeatureTile& tile, const std::int32_t* totals, std::int32_t* histogram) const {
    const auto width = static_cast<std::size_t>(payload_.layout.width);
    std::int32_t rest[PayloadLayout::kMaxWidth];
    for (std::size_t position = 0; position < tile.n_features(); ++position) {
      std::copy(totals, totals + width, rest);
      for (std::uint32_t slot = tile.slot_begin[position]; slot < tile.slot_begin[position + 1]; ++slot)
        kernels().subtract(rest, histogram + slot * width, width);  // the frequent bin itself is still 0
      std::copy(rest, rest + width, histogram + tile.frequent_slot[position] * width);
    }
  }

  // ---- the tree ---------------------------------------------------------------------------------------------------
  // Best-first growth on the gains found; ties go to the node created first.
  GrownTree replay() {
    struct Entry {
      double gain;
      int created;
      int visited;
    };
    const auto later = [](const Entry& a, const Entry& b) {
      return a.gain != b.gain ? a.gain < b.gain : a.created > b.created;
    };
    std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
    GrownTree tree;
    std::vector<int> visited;  // of each node of the tree
    const auto create = [&](int index) {
      const Node& node = nodes_[static_cast<std::size_t>(index)];
      if (node.left >= 0) queue.push({node.gain, static_cast<int>(visited.size()), index});
      visited.push_back(index);
    };
    create(0);
    std::vector<int> first_child(1, -1);
    for (int n_leaves = 1; !queue.empty() && n_leaves < rules_.max_leaves; ++n_leaves) {
      const Entry entry = queue.top();
      queue.pop();
      first_child[static_cast<std::size_t>(entry.created)] = static_cast<int>(visited.size());
      create(nodes_[static_cast<std::size_t>(entry.visited)].left);
      create(nodes_[static_cast<std::size_t>(entry.visited)].right);
      first_child.resize(visited.size(), -1);
    }
    fill_nodes(tree, visited, first_child);
    std::vector<LeafRows> leaves;
    for (std::size_t i = 0; i < visited.size(); ++i) {
      const Node& node = nodes_[static_cast<std::size_t>(visited[i])];
      if (tree.leaf[i] >= 0) leaves.push_back({i, node.begin, node.end});
    }
    fill_leaves(task_, settings_, rows_.data(), leaves, tree);
    finish_nodes(tree, visited);
    if (task_.raw != nullptr) add_to_raw(task_, settings_, rows_.data(), leaves, tree);
    return tree;
  }

  void fill_nodes(GrownTree& tree, const std::vector<int>& visited, const std::vector<int>& first_child) const {
    int n_leaves = 0;
    for (std::size_t i = 0; i < visited.size(); ++i) {
      const Node& node = nodes_[static_cast<std::size_t>(visited[i])];
      const bool is_leaf = first_child[i] < 0;
      tree.left.push_back(first_child[i]);
      tree.count.push_back(static_cast<std::int64_t>(node.n_rows()));
      tree.leaf.push_back(is_leaf ? n_leaves++ : -1);
      tree.feature.push_back(is_leaf ? -1 : node.split.feature);
      tree.bin.push_back(is_leaf ? -1 : node.split.bin);
      tree.gain.push_back(is_leaf ? 0.0 : node.gain);
      tree.missing_left.push_back(!is_leaf && node.split.missing_left ? 1 : 0);
      double threshold = 0.0;
      if (!is_leaf) {
        const auto& cuts = matrix_.features[static_cast<std::size_t>(node.split.feature)].cuts;
        const auto bin = static_cast<std::size_t>(node.split.bin);
        // After the last cut only missing values go right.
        threshold = bin < cuts.size() ? cuts[bin] : std::numeric_limits<double>::infinity();
      }
      tree.threshold.push_back(threshold);
    }
  }

  // Covers of the inner nodes, and the side of missing values where a split saw none: the heavier child.
  void finish_nodes(GrownTree& tree, const std::vector<int>& visited) const {
    for (std::size_t i = visited.size(); i-- > 0;) {
      if (tree.left[i] < 0) continue;
      const auto left = static_cast<std::size_t>(tree.left[i]);
      tree.cover[i] = tree.cover[left] + tree.cover[left + 1];
      if (!nodes_[static_cast<std::size_t>(visited[i])].split.missing_seen)
        tree.missing_left[i] = tree.cover[left] >= tree.cover[left + 1] ? 1 : 0;
    }
  }

  const GrowTask& task_;
  const GrowSettings& settings_;
  const Rules& rules_;
  const BinnedMatrix& matrix_;
  const Payload& payload_;
  const OutputTerms terms_;
  const SplitFinder finder_;
  Buffer<std::int32_t>& histograms_;
  std::vector<std::uint32_t>& rows_;
  std::vector<std::uint32_t>& spare_;
  SlotPool pool_;
  std::size_t histogram_size_ = 0;
  std::vector<ThreadScratch> scratch_;
  std::vector<Node> nodes_;
  std::vector<int> open_;
  std::priority_queue<double, std::vector<double>, std::greater<double>> best_minima_;
};

}  // namespace

GrownTree TreeGrower::grow(const GrowTask& task, const GrowSettings& settings) {
  quantize(task.gradients, settings.n_threads, payload_);
  rows_.resize(task.n_rows);
  spare_.resize(task.n_rows);
  if (task.rows != nullptr)
    std::copy(task.rows, task.rows + task.n_rows, rows_.begin());
  else
    std::iota(rows_.begin(), rows_.end(), 0u);
  return Growth(task, settings, payload_, histograms_, rows_, spare_).run();
}

}  // namespace polyleaf
