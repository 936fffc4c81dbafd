#include "search/histogram_search.hpp"

#include <algorithm>
#include <functional>

#include "kernels/histogram.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kChunkRows = 1024;
// Histograms that stay free for a walk down to the leaves when open nodes are taken best first.
constexpr int kReserve = 16;
// Below this share of its features, a sparse tile is visited cell by cell.
constexpr double kFewFeatures = 0.3;
// Histograms of combinations are to stay in a core's second-level cache, as those of bins do.
constexpr std::size_t kMostCombinationBytes = std::size_t{1} << 19;
// From so many additions on, a node is worth all threads at once.
constexpr std::size_t kLargeWork = 16 * kParallelWork;

}  // namespace

SlotPool::SlotPool(int size) {
  for (int slot = size - 1; slot >= 0; --slot) free_.push_back(slot);
}

int SlotPool::acquire() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (free_.empty()) return -1;
  const int slot = free_.back();
  free_.pop_back();
  return slot;
}

void SlotPool::release(int& slot) {
  if (slot < 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.insert(std::upper_bound(free_.begin(), free_.end(), slot, std::greater<int>()), slot);
  slot = -1;
}

int SlotPool::n_free() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(free_.size());
}

HistogramSearch::HistogramSearch(const BinnedMatrix& matrix, const Payload& payload, const Rules& rules,
                                 const OutputTerms& terms, const std::vector<std::uint32_t>& rows,
                                 const Options& options, Buffer<std::int32_t>& histograms)
    : matrix_(matrix),
      payload_(payload),
      rules_(rules),
      rows_(rows),
      options_(options),
      joint_(make_joint_score(payload, rules, terms, options.sparse, options.monotone)),
      finder_(matrix, payload, rules, terms, joint_.get()),
      categories_(matrix, payload, rules, terms, finder_, joint_.get()),
      histograms_(histograms),
      pool_(pool_size()),
      histogram_size_(matrix.n_slots * payload.layout.n_channels()),
      few_rows_(joint_ != nullptr ? 0 : 2 * matrix.n_slots / matrix.features.size()),
      features_(options.features, matrix.features.size()),
      positions_(matrix.tiles.size()),
      scratch_(static_cast<std::size_t>(std::max(1, options.n_threads))) {
  if (options.features.mask != nullptr)
    for (std::size_t tile = 0; tile < matrix_.tiles.size(); ++tile)
      for (std::size_t position = 0; position < matrix_.tiles[tile].n_features(); ++position)
        if (features_.in_tree(static_cast<std::size_t>(matrix_.tiles[tile].features[position])))
          positions_[tile].push_back(static_cast<std::uint32_t>(position));
  const std::size_t needed = static_cast<std::size_t>(pool_.n_free()) * histogram_size_;
  if (histograms_.size() < needed) histograms_ = Buffer<std::int32_t>(needed);
  std::size_t largest = 0;
  std::size_t combinations = 0;
  for (std::size_t tile = 0; tile < matrix_.tiles.size(); ++tile) {
    largest = std::max<std::size_t>(largest, matrix_.tiles[tile].n_slots());
    if (groups_pay(tile, rows.size()))
      combinations = std::max<std::size_t>(combinations, matrix_.tiles[tile].groups.n_slots());
  }
  // Scores that are estimated first are looked at again when all output tiles are done.
  const std::size_t n_tiles = finder_.estimates() ? static_cast<std::size_t>(payload_.layout.n_tiles) : 1;
  for (ThreadScratch& s : scratch_) {
    s.histogram = Buffer<std::int32_t>(n_tiles * largest * static_cast<std::size_t>(payload_.layout.width));
    if (payload_.layout.packed) s.packed = Buffer<std::int32_t>(largest * payload_.layout.row_size());
    s.combinations = Buffer<std::int32_t>(combinations * payload_.layout.row_size());
  }
}

// Depth-first order keeps one histogram per level, best-first order one per open node.
int HistogramSearch::pool_size() const {
  const std::size_t bytes = matrix_.n_slots * payload_.layout.n_channels() * sizeof(std::int32_t);
  const auto wanted = static_cast<std::size_t>(leaves_are_scarce(rules_) ? rules_.max_leaves : rules_.max_depth + 1);
  const std::size_t affordable = bytes == 0 ? 0 : options_.histogram_bytes / bytes;
  return static_cast<int>(std::min({wanted, affordable, rows_.size() + 1}));
}

bool HistogramSearch::has_room() const { return pool_.n_free() > std::min(rules_.max_depth, kReserve); }

// The children of a node just above the last level are leaves: nothing is subtracted from its histogram.
bool HistogramSearch::keeps_histogram(const Node& node) const {
  return may_split(node, rules_) && node.depth + 1 < rules_.max_depth && node.n_rows() > few_rows_;
}

// Additions of its histogram, and what the scan of one costs.
std::size_t HistogramSearch::work(const Node& node) const {
  return (node.n_rows() * matrix_.features.size() + 4 * matrix_.n_slots) * payload_.layout.n_channels();
}

bool HistogramSearch::is_small(const Node& node) const { return work(node) < kLargeWork; }

void HistogramSearch::search_root(Node& root) {
  const Team team{options_.n_threads, 0};
  root.totals = sum_payload(root, team);
  categories_.set_root(root.totals.data(), options_.moments);
  if (joint_ != nullptr) {
    root.leaf_outputs = joint_->outputs_of_root(root.totals.data(), scratch_[0].joint);
    joint_->bound_root(root.totals.data(), root.bounds);
  }
  features_.start(root);
  if (!may_split(root, rules_)) return;
  if (root.n_rows() <= few_rows_) return evaluate_rows(root, team);
  if (keeps_histogram(root)) root.slot = pool_.acquire();
  evaluate(&root, nullptr, -1, team);
}

void HistogramSearch::search_children(Node& parent, Node& left, Node& right, const Team& team) {
  Node& small = left.n_rows() <= right.n_rows() ? left : right;
  Node& large = left.n_rows() <= right.n_rows() ? right : left;
  const bool search = may_split(small, rules_) || may_split(large, rules_);
  if (search || joint_ != nullptr) {
    small.totals = sum_payload(small, team);
    large.totals = parent.totals;
    for (std::size_t c = 0; c < small.totals.size(); ++c) large.totals[c] -= small.totals[c];
  }
  if (joint_ != nullptr) {
    joint_->outputs_of_children(left.totals.data(), parent.totals.data(), left.leaf_outputs, right.leaf_outputs,
                                scratch_of(team.member).joint);
    joint_->bound_children(left.totals.data(), parent.totals.data(),
                           finder_.ordering_feature(parent.split.feature, parent.split.bin), parent.bounds, left.bounds,
                           right.bounds);
  }
  features_.inherit(parent, left, right);
  parent.totals = {};
  if (search)
    evaluate_children(parent, small, large, team);
  else
    drop(parent);
}

void HistogramSearch::evaluate_children(Node& parent, Node& small, Node& large, const Team& team) {
  const int parent_slot = parent.slot;
  parent.slot = -1;
  if (parent_slot >= 0 && may_split(large, rules_) && large.n_rows() > few_rows_) {
    if (keeps_histogram(small)) small.slot = pool_.acquire();
    evaluate(&small, &large, parent_slot, team);
    large.slot = parent_slot;  // now holds the larger child's histogram
    if (!keeps_histogram(large)) pool_.release(large.slot);
    return;
  }
  int unused = parent_slot;
  pool_.release(unused);
  for (Node* child : {&small, &large}) {
    if (!may_split(*child, rules_)) continue;
    if (child->n_rows() <= few_rows_) {
      evaluate_rows(*child, team);
      continue;
    }
    if (keeps_histogram(*child)) child->slot = pool_.acquire();
    evaluate(child, nullptr, -1, team);
  }
}

std::vector<std::int32_t> HistogramSearch::sum_payload(const Node& node, const Team& team) const {
  const PayloadLayout& layout = payload_.layout;
  const std::size_t n_blocks = (node.n_rows() + kChunkRows - 1) / kChunkRows;
  const bool several = team.size > 1 && node.n_rows() * layout.n_channels() >= kParallelGathers;
  std::vector<std::vector<std::int32_t>> partial(
      several ? static_cast<std::size_t>(team.size) : 1,
      std::vector<std::int32_t>(layout.n_channels() + PayloadLayout::kSlack, 0));
  team.run(several, n_blocks, [&](std::size_t block, int thread) {
    const std::size_t begin = node.begin + block * kChunkRows;
    const std::size_t count = std::min(kChunkRows, node.end - begin);
    for (int t = 0; t < layout.n_tiles; ++t)
      histogram_kernels().sum_payload(
          payload_.tile(t), rows_.data() + begin, count,
          partial[several ? static_cast<std::size_t>(thread) : 0].data() + t * layout.width);
  });
  for (std::size_t other = 1; other < partial.size(); ++other)  // integers: any order gives the same bits
    for (std::size_t c = 0; c < partial[0].size(); ++c) partial[0][c] += partial[other][c];
  return std::move(partial[0]);
}

std::int32_t* HistogramSearch::kept_histogram(int slot, const FeatureTile& tile, int output_tile) {
  const std::size_t first = static_cast<std::size_t>(output_tile) * matrix_.n_slots + tile.first_slot;
  return histograms_.data() + static_cast<std::size_t>(slot) * histogram_size_ +
         first * static_cast<std::size_t>(payload_.layout.width);
}

// What was estimated before was of other nodes.
void HistogramSearch::forget_bars(const Team& team) {
  const int first = team.size == 1 ? team.member : 0;
  for (int thread = first; thread < first + team.size; ++thread)
    scratch_of(thread).built.bar = scratch_of(thread).derived.bar = 0.0f;
}

// Finds the best split of `built` from its rows and, where given, of its sibling `derived` by subtraction from the
// parent's histogram, which becomes the sibling's.
void HistogramSearch::evaluate(Node* built, Node* derived, int parent_slot, const Team& team) {
  const std::size_t n_tiles = matrix_.tiles.size();
  Found found(n_tiles);
  ThreadScratch& own = scratch_of(team.member);
  const std::uint8_t* built_mask = features_.mask(*built, own.built_features);
  const std::uint8_t* derived_mask = derived != nullptr ? features_.mask(*derived, own.derived_features) : nullptr;
  forget_bars(team);
  team.run(work(*built) >= kParallelWork, n_tiles, [&](std::size_t tile, int thread) {
    if (options_.features.mask != nullptr && positions_[tile].empty()) return;
    ThreadScratch& scratch = scratch_of(thread);
    scratch.built.feature_mask = scratch.built_categories.feature_mask = built_mask;
    scratch.derived.feature_mask = scratch.derived_categories.feature_mask = derived_mask;
    scratch.built.bounds = &built->bounds;
    scratch.derived.bounds = derived != nullptr ? &derived->bounds : nullptr;
    evaluate_tile(tile, scratch, *built, derived, parent_slot, found);
  });
  accept(*built, found, 0, own);
  if (derived != nullptr) accept(*derived, found, 1, own);
}

// Takes over the best of every second candidate: those of one node.
void HistogramSearch::accept(Node& node, Found& found, std::size_t first, ThreadScratch& scratch) {
  BestCandidate best;
  for (std::size_t at = first; at < found.best.size(); at += 2) best.merge(found.best[at]);
  const double own_score = joint_ != nullptr
                               ? joint_->node(node.totals.data(), node.leaf_outputs, node.bounds, scratch.joint)
                               : finder_.node_score(node.totals.data());
  const std::size_t involved =
      node.leaf_outputs.empty() ? static_cast<std::size_t>(payload_.layout.n_outputs) : node.leaf_outputs.size();
  accept_split(node, best.chosen, own_score, involved, rules_);
  if (node.gain > 0)
    node.partition =
        std::move(found.partitions[2 * matrix_.features[static_cast<std::size_t>(node.split.feature)].tile + first]);
}

void HistogramSearch::evaluate_rows(Node& node, const Team& team) {
  Found found(matrix_.tiles.size());
  ThreadScratch& own = scratch_of(team.member);
  const std::uint8_t* mask = features_.mask(node, own.built_features);
  own.rows.take(payload_, rows_.data() + node.begin, node.n_rows());
  forget_bars(team);
  const std::size_t gathers = node.n_rows() * matrix_.features.size() * payload_.layout.n_channels();
  team.run(gathers >= kParallelGathers, matrix_.tiles.size(), [&](std::size_t at, int thread) {
    const FeatureTile& tile = matrix_.tiles[at];
    if (tile.categorical) {
      CategoryFinder::Scan& scan = scratch_of(thread).built_categories;
      scan.feature_mask = mask;
      categories_.add_rows(scan, tile, own.rows);
      found.best[2 * at] = categories_.best(scan, tile, node.totals.data(), found.partitions[2 * at]);
      return;
    }
    SplitFinder::Scan& scan = scratch_of(thread).built;
    scan.feature_mask = mask;
    finder_.begin_rows(scan, tile, own.rows, node.totals.data());
    for (int t = 0; t < payload_.layout.n_tiles; ++t) finder_.add(scan, tile, t, nullptr, node.totals.data());
    found.best[2 * at] = finder_.best(scan, tile, node.totals.data(), {});
  });
  accept(node, found, 0, own);
}

void HistogramSearch::evaluate_tile(std::size_t at, ThreadScratch& scratch, const Node& built, const Node* derived,
                                    int parent_slot, Found& found) {
  const FeatureTile& tile = matrix_.tiles[at];
  const PayloadLayout& layout = payload_.layout;
  const bool scan_built = may_split(built, rules_);
  const std::size_t size = tile.n_slots() * static_cast<std::size_t>(layout.width);
  const std::size_t kept_stride = matrix_.n_slots * static_cast<std::size_t>(layout.width);
  const bool keeps = built.slot >= 0;
  std::int32_t* first = keeps ? kept_histogram(built.slot, tile, 0) : scratch.histogram.data();
  const std::size_t stride = keeps ? kept_stride : finder_.estimates() ? size : 0;
  for (int t = 0; t < layout.n_tiles; ++t) {
    std::int32_t* histogram = first + static_cast<std::size_t>(t) * stride;
    build_histogram(at, t, built, scratch, histogram);
    if (scan_built && tile.categorical)
      categories_.add(scratch.built_categories, tile, t, histogram);
    else if (scan_built)
      finder_.add(scratch.built, tile, t, histogram, built.totals.data());
    if (derived == nullptr) continue;
    std::int32_t* parent = kept_histogram(parent_slot, tile, t);
    histogram_kernels().subtract(parent, histogram, size);
    if (tile.categorical)
      categories_.add(scratch.derived_categories, tile, t, parent);
    else
      finder_.add(scratch.derived, tile, t, parent, derived->totals.data());
  }
  BestCandidate* best = &found.best[2 * at];
  if (tile.categorical) {
    CategoryPartition* partitions = &found.partitions[2 * at];
    if (scan_built) best[0] = categories_.best(scratch.built_categories, tile, built.totals.data(), partitions[0]);
    if (derived != nullptr)
      best[1] = categories_.best(scratch.derived_categories, tile, derived->totals.data(), partitions[1]);
    return;
  }
  if (scan_built) best[0] = finder_.best(scratch.built, tile, built.totals.data(), {first, stride});
  if (derived != nullptr)
    best[1] = finder_.best(scratch.derived, tile, derived->totals.data(),
                           {kept_histogram(parent_slot, tile, 0), kept_stride});
}

// Algorithm 1 for all features of the tile.
void HistogramSearch::build_histogram(std::size_t at, int output_tile, const Node& node, ThreadScratch& scratch,
                                      std::int32_t* histogram) const {
  const FeatureTile& tile = matrix_.tiles[at];
  const std::vector<std::uint32_t>& positions = positions_[at];
  // Entries are those of all features of a tile: for few of them, each cell is cheaper to look at.
  const bool few = options_.features.mask != nullptr && positions.size() < kFewFeatures * tile.n_features();
  const bool by_group = !few && groups_pay(at, node.n_rows());
  const bool by_cell = by_group || (tile.sparse && !few);
  const PayloadLayout& layout = payload_.layout;
  std::int32_t* sums = layout.packed ? scratch.packed.data() : histogram;
  AccumulateTile job{};
  job.payload = payload_.tile(output_tile);
  job.histogram = by_group ? scratch.combinations.data() : sums;
  std::fill_n(job.histogram, (by_group ? tile.groups.n_slots() : tile.n_slots()) * layout.row_size(), 0);
  job.rows = rows_.data() + node.begin;
  job.n_rows = node.n_rows();
  job.codes = tile.codes.data();
  job.wide = tile.wide;
  job.n_features = tile.n_features();
  job.slot_begin = tile.slot_begin.data();
  if (options_.features.mask != nullptr) {
    job.positions = positions.data();
    job.n_positions = positions.size();
  }
  if (by_cell) {
    const VisitedCells& cells = by_group ? tile.groups.cells : tile.cells;
    job.row_begin = cells.row_begin.data();
    job.cells = cells.slots.data();
    job.cell_lines = cells.lines();
  }
  histogram_kernels().accumulate(job);
  if (by_group) {
    const FeatureGroups& groups = tile.groups;
    histogram_kernels().sum_groups({job.histogram, layout.width, layout.packed, groups.size(), groups.first.data(),
                                    groups.slot_begin.data(), tile.slot_begin.data(), sums});
  }
  if (layout.packed) histogram_kernels().unpack(sums, nullptr, tile.n_slots(), histogram);
  if (by_cell && tile.sparse) complete_frequent_bins(tile, node.totals.data() + output_tile * layout.width, histogram);
}

// Whether a histogram of combinations is the shorter way, with what they cost: each is cleared, and added to the bins
// of its features.
bool HistogramSearch::groups_pay(std::size_t at, std::size_t n_rows) const {
  const FeatureTile& tile = matrix_.tiles[at];
  const FeatureGroups& groups = tile.groups;
  if (groups.cells.empty()) return false;
  if (groups.n_slots() * payload_.layout.row_size() * sizeof(std::int32_t) > kMostCombinationBytes) return false;
  const std::size_t n_features = options_.features.mask != nullptr ? positions_[at].size() : tile.n_features();
  const std::size_t n_cells = tile.sparse ? tile.cells.slots.size() : matrix_.n_rows * n_features;
  const double saved = static_cast<double>(n_cells) - static_cast<double>(groups.cells.slots.size());
  return saved * static_cast<double>(n_rows) >
         kCombinationCost * static_cast<double>(groups.n_slots()) * static_cast<double>(matrix_.n_rows);
}

void HistogramSearch::complete_frequent_bins(const FeatureTile& tile, const std::int32_t* totals,
                                             std::int32_t* histogram) const {
  const auto width = static_cast<std::size_t>(payload_.layout.width);
  for (std::size_t position = 0; position < tile.n_features(); ++position) {
    const std::uint32_t first = tile.slot_begin[position];
    // Of the frequent bin itself not all rows were visited.
    histogram_kernels().rest_of_bins(totals, histogram + first * width, tile.slot_begin[position + 1] - first,
                                     payload_.layout.width, histogram + tile.frequent_slot[position] * width);
  }
}

}  // namespace polyleaf
