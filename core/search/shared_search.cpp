#include "search/shared_search.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/histogram.hpp"

namespace polyleaf {
namespace {

// Histograms that are exchanged at once take no more than this, or are one.
constexpr std::size_t kExchangedBytes = std::size_t{64} << 20;

// The tiles of each shard, next to each other, such that all have about as many bins.
std::vector<HistogramLayout> share_tiles(const BinnedMatrix& matrix, const PayloadLayout& layout, int n_shards) {
  std::vector<HistogramLayout> layouts;
  std::size_t tile = 0, slots = 0;
  for (int rank = 0; rank < n_shards; ++rank) {
    const std::size_t first = tile;
    const std::size_t enough = matrix.n_slots * static_cast<std::size_t>(rank + 1) / static_cast<std::size_t>(n_shards);
    // A tile is of the shard in whose share its middle is.
    while (tile < matrix.tiles.size() && 2 * slots + matrix.tiles[tile].n_slots() <= 2 * enough)
      slots += matrix.tiles[tile++].n_slots();
    if (rank == n_shards - 1) tile = matrix.tiles.size();
    layouts.emplace_back(matrix, layout, first, tile);
  }
  return layouts;
}

std::size_t largest_size(const std::vector<HistogramLayout>& layouts) {
  std::size_t largest = 0;
  for (const HistogramLayout& one : layouts) largest = std::max(largest, one.size());
  return largest;
}

}  // namespace

SharedSearch::SharedSearch(const BinnedMatrix& matrix, const OutputTerms& terms, const std::vector<std::uint32_t>& rows,
                           const SearchOptions& options, const Shard& shard, Buffer<std::int32_t>& histograms)
    : matrix_(matrix),
      terms_(terms),
      rules_(terms.rules),
      shard_(shard),
      n_threads_(std::max(1, options.n_threads)),
      searches_(matrix, terms, options),
      builder_(matrix, terms.payload, rows, options.features.mask),
      layouts_(share_tiles(matrix, terms.layout(), shard.peers().size())),
      pool_(matrix, layouts_[static_cast<std::size_t>(shard.peers().rank())],
            std::min(most_histograms(), affordable_histograms(largest_size(layouts_), options.histogram_bytes)),
            histograms),
      scratch_(static_cast<std::size_t>(n_threads_)) {
  for (HistogramBuilder::Scratch& one : scratch_) builder_.fit(one);
}

// Those of a level whose children are to be searched, too. The same for all shards.
std::size_t SharedSearch::most_histograms() const {
  constexpr int kDeep = 20;
  const int wanted = rules_.max_depth > kDeep ? rules_.max_leaves : std::min(rules_.max_leaves, 1 << rules_.max_depth);
  return static_cast<std::size_t>(wanted);
}

bool SharedSearch::keeps_histogram(const Node& node) const {
  return may_split(node, rules_) && node.depth + 1 < rules_.max_depth;
}

template <class Body>
void SharedSearch::each(std::size_t n, Body&& body) {
  if (n < static_cast<std::size_t>(n_threads_)) {
    for (std::size_t i = 0; i < n; ++i) body(i, Team{n_threads_, 0});
    return;
  }
  parallel_for(n_threads_, n, [&](std::size_t i, int thread) { body(i, Team{1, thread}); });
}

void SharedSearch::search_root(Node& root) {
  root.totals = builder_.sum_rows(root, {n_threads_, 0});
  shard_.add(root.totals);
  root.n_rows = static_cast<std::size_t>(root.totals[static_cast<std::size_t>(terms_.layout().count_channel())]);
  searches_.plant(root);
  Jobs jobs;
  plan_alone(root, jobs);
  run(jobs);
}

void SharedSearch::search_level(const std::vector<Family>& families) {
  sum_families(families);
  Jobs jobs;
  for (const Family& family : families) {
    searches_.branch(family.parent, family.left, family.right, 0);
    family.parent.totals = {};
    plan(family, jobs);
  }
  run(jobs);
}

void SharedSearch::drop(Node& node) {
  pool_.release(node.slot);
  left_sums_.erase(&node);
}

// Sums and numbers of the rows of all children.
void SharedSearch::sum_families(const std::vector<Family>& families) {
  std::vector<const Family*> unknown;
  for (const Family& family : families)
    if (left_sums_.count(&family.parent) == 0) unknown.push_back(&family);
  if (!unknown.empty()) sum_left_rows(unknown);
  const std::size_t n = terms_.layout().n_channels();
  const auto count = static_cast<std::size_t>(terms_.layout().count_channel());
  for (const Family& family : families) {
    const auto known = left_sums_.find(&family.parent);
    family.left.totals = std::move(known->second);
    left_sums_.erase(known);
    family.left.totals.resize(n + PayloadLayout::kSlack, 0);
    family.right.totals = family.parent.totals;
    for (std::size_t c = 0; c < n; ++c) family.right.totals[c] -= family.left.totals[c];
    family.left.n_rows = static_cast<std::size_t>(family.left.totals[count]);
    family.right.n_rows = family.parent.n_rows - family.left.n_rows;
  }
}

// The best of all splits is not always one that a shard took for its best: where several are as good as equal, that
// hangs on the highest of all.
void SharedSearch::sum_left_rows(const std::vector<const Family*>& families) {
  const std::size_t n = terms_.layout().n_channels();
  std::vector<std::int32_t> sums(families.size() * n);
  each(families.size(), [&](std::size_t i, const Team& team) {
    const std::vector<std::int32_t> own = builder_.sum_rows(families[i]->left, team);
    std::copy_n(own.begin(), n, sums.begin() + static_cast<std::ptrdiff_t>(i * n));
  });
  shard_.add(sums);
  for (std::size_t i = 0; i < families.size(); ++i)
    left_sums_[&families[i]->parent].assign(sums.begin() + static_cast<std::ptrdiff_t>(i * n),
                                            sums.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
}

// What is to be summed for the children of a node.
void SharedSearch::plan(const Family& family, Jobs& jobs) {
  const bool left_is_small = family.left.n_rows <= family.right.n_rows;
  Node& small = left_is_small ? family.left : family.right;
  Node& large = left_is_small ? family.right : family.left;
  int parent_slot = family.parent.slot;
  family.parent.slot = -1;
  if (parent_slot >= 0 && may_split(large, rules_)) {
    if (keeps_histogram(small)) small.slot = pool_.acquire();
    jobs.push_back({&small, &large, parent_slot});
    return;
  }
  pool_.release(parent_slot);
  plan_alone(small, jobs);
  plan_alone(large, jobs);
}

void SharedSearch::plan_alone(Node& node, Jobs& jobs) {
  if (!may_split(node, rules_)) return;
  if (keeps_histogram(node)) node.slot = pool_.acquire();
  jobs.push_back({&node});
}

void SharedSearch::run(const Jobs& jobs) {
  std::size_t size = 0;
  for (const HistogramLayout& one : layouts_) size += one.size();
  const std::size_t most = std::max<std::size_t>(1, affordable_histograms(size, kExchangedBytes));
  for (std::size_t first = 0; first < jobs.size(); first += most)
    run_together(jobs.data() + first, std::min(most, jobs.size() - first));
}

void SharedSearch::run_together(const Job* jobs, std::size_t n) {
  build(jobs, n);
  shard_.peers().add_parts(part_begin_, n, n_threads_);
  const auto rank = static_cast<std::size_t>(shard_.peers().rank());
  Found nothing;
  searches_.find_nothing(nothing);
  std::vector<Findings> found(n, {nothing, {}});
  each(n, [&](std::size_t i, const Team& team) {
    search(jobs[i], parts_ + part_begin_[rank] + i * layouts_[rank].size(), team, found[i]);
  });
  const std::string own = written(found);
  for (Findings& one : found)
    for (std::vector<LeftSums>& sums : one.left) sums.clear();  // come back with those of the others
  for (const std::string& text : shard_.peers().gather(own)) read_findings(text, terms_.layout().n_channels(), found);
  for (std::size_t i = 0; i < n; ++i) {
    const Job& job = jobs[i];
    if (may_split(*job.built, rules_)) accept(*job.built, NodeSearches::kBuilt, found[i]);
    if (job.derived == nullptr) continue;
    accept(*job.derived, NodeSearches::kDerived, found[i]);
    job.derived->slot = job.parent_slot;  // now holds the larger child's histogram
    if (!keeps_histogram(*job.derived)) pool_.release(job.derived->slot);
  }
}

void SharedSearch::accept(Node& node, NodeSearches::Which which, Findings& found) {
  searches_.accept(node, which, found.splits, 0);
  if (node.gain <= 0) return;
  for (LeftSums& one : found.left[which])
    if (one.feature == node.split.feature) left_sums_[&node] = std::move(one.sums);
}

// Sums the rows here, for all shards.
void SharedSearch::build(const Job* jobs, std::size_t n) {
  part_begin_.assign(1, 0);
  for (const HistogramLayout& one : layouts_) part_begin_.push_back(part_begin_.back() + n * one.size());
  parts_ = shard_.peers().parts(part_begin_.back());
  std::vector<std::size_t> owner(matrix_.tiles.size());
  for (std::size_t rank = 0; rank < layouts_.size(); ++rank)
    for (std::size_t at = layouts_[rank].first_tile(); at < layouts_[rank].last_tile(); ++at) owner[at] = rank;
  // A thread takes one tile of features and of channels at a time: where a histogram is large, few nodes come together.
  const std::size_t n_tiles = matrix_.tiles.size(), n_parts = static_cast<std::size_t>(terms_.layout().n_tiles);
  parallel_for(n_threads_, n * n_tiles * n_parts, [&](std::size_t task, int thread) {
    const std::size_t i = task / n_parts / n_tiles, at = task / n_parts % n_tiles;
    const int t = static_cast<int>(task % n_parts);
    const HistogramLayout& layout = layouts_[owner[at]];
    std::int32_t* histogram = parts_ + part_begin_[owner[at]] + i * layout.size() + layout.offset(matrix_, at, t);
    const std::size_t size = matrix_.tiles[at].n_slots() * static_cast<std::size_t>(terms_.layout().width);
    const bool built = builder_.uses(at) && jobs[i].built->n_here() > 0;
    std::fill(histogram, histogram + size + HistogramLayout::kMargin, 0);  // what is not built is also sent
    if (built)
      builder_.build(at, t, rows_of(*jobs[i].built), {}, scratch_[static_cast<std::size_t>(thread)], histogram);
  });
}

void SharedSearch::search(const Job& job, std::int32_t* histogram, const Team& team, Findings& found) {
  const HistogramLayout& own = layouts_[static_cast<std::size_t>(shard_.peers().rank())];
  if (own.first_tile() == own.last_tile()) return;
  const Node* built = may_split(*job.built, rules_) ? job.built : nullptr;
  const NodeSearches::Search searched = searches_.start(built, job.derived, team.member);
  team.run(own.size() >= kParallelWork / 4, own.last_tile() - own.first_tile(), [&](std::size_t tile, int thread) {
    const std::size_t at = own.first_tile() + tile;
    if (builder_.uses(at)) search_tile(job, searched, histogram, at, thread, found.splits);
  });
  for (const auto which : {NodeSearches::kBuilt, NodeSearches::kDerived}) {
    BestCandidate best;
    for (std::size_t at = which; at < found.splits.size(); at += 2) best.merge(found.splits[at].best);
    if (best.chosen.feature < 0) continue;
    const std::size_t at = matrix_.features[static_cast<std::size_t>(best.chosen.feature)].tile;
    const TileHistograms of_built{histogram + own.offset(matrix_, at, 0), own.stride()};
    found.left[which].push_back(sum_left(
        found.splits[2 * at + which],
        which == NodeSearches::kBuilt ? of_built : TileHistograms{pool_.at(job.parent_slot, at, 0), pool_.stride()}));
  }
}

LeftSums SharedSearch::sum_left(const FoundSplit& found, const TileHistograms& histograms) const {
  const Candidate& split = found.best.chosen;
  const FeatureBins& bins = matrix_.features[static_cast<std::size_t>(split.feature)];
  const std::size_t first = matrix_.tiles[bins.tile].slot_begin[bins.position];
  const auto width = static_cast<std::size_t>(terms_.layout().width);
  LeftSums out{split.feature, std::vector<std::int32_t>(terms_.layout().n_channels(), 0)};
  const auto add = [&](std::uint32_t code) {
    for (int t = 0; t < terms_.layout().n_tiles; ++t) {
      const std::int32_t* sums = histograms.of(t) + (first + code) * width;
      std::int32_t* to = out.sums.data() + static_cast<std::size_t>(t) * width;
      for (std::size_t c = 0; c < width; ++c) to[c] += sums[c];
    }
  };
  if (bins.categorical) {
    for (const std::uint32_t code : found.partition.left)
      if (code != bins.missing_code()) add(code);
  } else {
    for (std::uint32_t code = 0; code <= static_cast<std::uint32_t>(split.bin); ++code) add(code);
  }
  if (split.missing_left && bins.has_missing) add(bins.missing_code());
  return out;
}

void SharedSearch::search_tile(const Job& job, const NodeSearches::Search& searched, std::int32_t* histogram,
                               std::size_t at, int thread, Found& found) {
  const HistogramLayout& own = layouts_[static_cast<std::size_t>(shard_.peers().rank())];
  const FeatureTile& tile = matrix_.tiles[at];
  const std::size_t size = tile.n_slots() * static_cast<std::size_t>(terms_.layout().width);
  const bool search_built = may_split(*job.built, rules_);
  TileSearch& built = searches_.join(searched, NodeSearches::kBuilt, thread, tile);
  TileSearch& derived = searches_.join(searched, NodeSearches::kDerived, thread, tile);
  for (int t = 0; t < terms_.layout().n_tiles; ++t) {
    std::int32_t* sums = histogram + own.offset(matrix_, at, t);
    builder_.complete(at, t, *job.built, sums);
    if (job.built->slot >= 0) std::copy_n(sums, size, pool_.at(job.built->slot, at, t));
    if (search_built) built.add(tile, t, sums);
    if (job.derived == nullptr) continue;
    std::int32_t* parent = pool_.at(job.parent_slot, at, t);
    histogram_kernels().subtract(parent, sums, size);
    derived.add(tile, t, parent);
  }
  if (search_built) found[2 * at] = built.best(tile, {histogram + own.offset(matrix_, at, 0), own.stride()});
  if (job.derived != nullptr)
    found[2 * at + 1] = derived.best(tile, {pool_.at(job.parent_slot, at, 0), pool_.stride()});
}

}  // namespace polyleaf
