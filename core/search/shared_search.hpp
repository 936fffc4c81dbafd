// The best splits of a level's nodes by histograms (search/histogram_search.hpp), where the rows are in several shards.
//
// Each shard sums the histograms of its rows. The tiles of features are shared out: a shard gets the sums of its own
// tiles from all others, searches them, and tells the others what it found, with the sums of the left side of its best
// split. So each has the best split of every node and the sums of its children, and keeps the histograms of its tiles
// alone. A level takes two exchanges: histograms, and splits.
#pragma once

#include <unordered_map>
#include <vector>

#include "base/buffer.hpp"
#include "base/shard.hpp"
#include "growth/level_search.hpp"
#include "quantize/payload.hpp"
#include "search/findings.hpp"
#include "search/histogram_builder.hpp"
#include "search/histogram_layout.hpp"
#include "search/histogram_pool.hpp"
#include "search/node_searches.hpp"
#include "search/output_terms.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

class SharedSearch : public LevelSearch {
 public:
  // `histograms` is memory kept between trees.
  SharedSearch(const BinnedMatrix& matrix, const OutputTerms& terms, const std::vector<std::uint32_t>& rows,
               const SearchOptions& options, const Shard& shard, Buffer<std::int32_t>& histograms);

  void search_root(Node& root) override;
  void search_level(const std::vector<Family>& families) override;
  void drop(Node& node) override;

 private:
  // A node whose histogram is summed from rows and, where its parent's is kept, the sibling that has the rest of it.
  struct Job {
    Node* built;
    Node* derived = nullptr;
    int parent_slot = -1;  // becomes the derived one's
  };
  using Jobs = std::vector<Job>;
  using Found = NodeSearches::Found;

  std::size_t most_histograms() const;
  bool keeps_histogram(const Node& node) const;
  void sum_families(const std::vector<Family>& families);
  void sum_left_rows(const std::vector<const Family*>& families);
  void plan(const Family& family, Jobs& jobs);
  void plan_alone(Node& node, Jobs& jobs);
  void run(const Jobs& jobs);
  void run_together(const Job* jobs, std::size_t n);
  void build(const Job* jobs, std::size_t n);
  void search(const Job& job, std::int32_t* histogram, const Team& team, Findings& found);
  void search_tile(const Job& job, const NodeSearches::Search& searched, std::int32_t* histogram, std::size_t at,
                   int thread, Found& found);
  LeftSums sum_left(const FoundSplit& found, const TileHistograms& histograms) const;
  void accept(Node& node, NodeSearches::Which which, Findings& found);
  // Calls body(i, team) for i < n: with all threads one after the other, or each by a thread of its own.
  template <class Body>
  void each(std::size_t n, Body&& body);

  const BinnedMatrix& matrix_;
  const OutputTerms& terms_;
  const Rules& rules_;
  const Shard& shard_;
  const int n_threads_;
  NodeSearches searches_;
  const HistogramBuilder builder_;
  const std::vector<HistogramLayout> layouts_;  // of the tiles of each shard
  HistogramPool pool_;                          // of the tiles of this one
  std::vector<HistogramBuilder::Scratch> scratch_;
  std::vector<std::size_t> part_begin_;  // per shard: where its part of the histograms begins
  std::int32_t* parts_ = nullptr;
  std::unordered_map<const Node*, std::vector<std::int32_t>> left_sums_;  // of nodes that can be split
};

}  // namespace polyleaf
