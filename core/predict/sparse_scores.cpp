#include "predict/sparse_scores.hpp"

#include <algorithm>

#include "base/threads.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kBlockRows = 64;

struct Scored {
  double score;
  std::int32_t output;
};

bool is_better(const Scored& a, const Scored& b) {
  return a.score != b.score ? a.score > b.score : a.output < b.output;
}

// The scores of one row after the other.
class RowScores {
 public:
  explicit RowScores(std::size_t n_outputs) : score_(n_outputs, 0.0), named_(n_outputs, 0) {}

  void add(const ForestArrays& forest, const LeavesOfRows& rows, std::size_t row) {
    const std::int32_t* leaf = rows.leaves + row * (rows.end - rows.begin);
    for (std::size_t tree = rows.begin; tree < rows.end; ++tree) {
      const std::int64_t node = forest.node_begin[tree] + leaf[tree - rows.begin];
      const std::int64_t first = forest.value_begin[node];
      const std::int64_t end = first + forest.tree_width[tree];
      for (std::int64_t i = first; i < end; ++i) {
        if (forest.values[i] == 0.0f) continue;
        const std::int32_t output = forest.value_output[i];
        const auto at = static_cast<std::size_t>(output);
        if (named_[at] == 0) {
          named_[at] = 1;
          outputs_.push_back(output);
        }
        score_[at] += static_cast<double>(forest.values[i]);
      }
    }
  }

  bool is_named(std::size_t output) const { return named_[output] != 0; }

  // Calls visit(output, score) for all that leaves have named, and forgets them.
  template <class Visit>
  void take(Visit&& visit) {
    for (const std::int32_t output : outputs_) {
      const auto at = static_cast<std::size_t>(output);
      visit(output, score_[at]);
      score_[at] = 0.0;
      named_[at] = 0;
    }
    outputs_.clear();
  }

  std::size_t n_positive() const {
    return static_cast<std::size_t>(std::count_if(outputs_.begin(), outputs_.end(), [&](std::int32_t output) {
      return score_[static_cast<std::size_t>(output)] > 0;
    }));
  }

 private:
  std::vector<double> score_;
  std::vector<std::uint8_t> named_;
  std::vector<std::int32_t> outputs_;
};

std::vector<RowScores> one_each(int n_threads, std::size_t n_outputs) {
  return std::vector<RowScores>(static_cast<std::size_t>(std::max(n_threads, 1)), RowScores(n_outputs));
}

}  // namespace

void best_outputs(const ForestArrays& forest, const LeavesOfRows& rows, std::size_t n_outputs, std::size_t k,
                  std::int32_t* best, int n_threads) {
  std::vector<RowScores> scores = one_each(n_threads, n_outputs);
  parallel_for(n_threads, (rows.n_rows + kBlockRows - 1) / kBlockRows, [&](std::size_t block, int thread) {
    RowScores& own = scores[static_cast<std::size_t>(thread)];
    std::vector<Scored> ranked;
    const std::size_t end = std::min(rows.n_rows, (block + 1) * kBlockRows);
    for (std::size_t row = block * kBlockRows; row < end; ++row) {
      own.add(forest, rows, row);
      ranked.clear();
      // Below k scores above 0, some that no leaf has named belong to the best: the first of them.
      if (own.n_positive() < k)
        for (std::size_t output = 0; output < n_outputs && ranked.size() < k; ++output)
          if (!own.is_named(output)) ranked.push_back({0.0, static_cast<std::int32_t>(output)});
      own.take([&](std::int32_t output, double score) { ranked.push_back({score, output}); });
      const auto last = ranked.begin() + static_cast<std::ptrdiff_t>(k);
      std::partial_sort(ranked.begin(), last, ranked.end(), is_better);
      for (std::size_t i = 0; i < k; ++i) best[row * k + i] = ranked[i].output;
    }
  });
}

OutputsOfRows outputs_above(const ForestArrays& forest, const LeavesOfRows& rows, std::size_t n_outputs,
                            double threshold, int n_threads) {
  std::vector<RowScores> scores = one_each(n_threads, n_outputs);
  std::vector<std::vector<std::int32_t>> found(rows.n_rows);
  parallel_for(n_threads, (rows.n_rows + kBlockRows - 1) / kBlockRows, [&](std::size_t block, int thread) {
    RowScores& own = scores[static_cast<std::size_t>(thread)];
    const std::size_t end = std::min(rows.n_rows, (block + 1) * kBlockRows);
    for (std::size_t row = block * kBlockRows; row < end; ++row) {
      own.add(forest, rows, row);
      own.take([&](std::int32_t output, double score) {
        if (score > threshold) found[row].push_back(output);
      });
      std::sort(found[row].begin(), found[row].end());
    }
  });
  OutputsOfRows out;
  out.row_begin.push_back(0);
  for (const std::vector<std::int32_t>& one : found) {
    out.output.insert(out.output.end(), one.begin(), one.end());
    out.row_begin.push_back(static_cast<std::int64_t>(out.output.size()));
  }
  return out;
}

}  // namespace polyleaf
