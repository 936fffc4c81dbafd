#include "leaves/shared_quantiles.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/message.hpp"
#include "base/number_keys.hpp"
#include "base/threads.hpp"
#include "leaves/renewed.hpp"
#include "rules/exact_sum.hpp"

namespace polyleaf {
namespace {

// Numbers that a shard shows of what it has between two bounds: each time, about a twentieth is left between them.
constexpr std::size_t kShown = 64;
constexpr std::uint64_t kNoKey = ~std::uint64_t{0};  // that of no number
// Of the numbers of a block of columns, in each shard.
constexpr double kBlockBytes = 1 << 28;
constexpr char kOtherQuantiles[] = "a shard looks for other quantiles than this one";
constexpr double kNumberBytes = 40;  // key, weight, cumulative weight, and the residual they are made of

// A number that some shard has between the bounds, and what those of that shard up to it weigh.
struct Shown {
  std::uint64_t key;
  ExactSum before, through;  // without it, and with it
};

// What a shard says of a quantile.
struct Report {
  std::uint64_t above;     // its first key beyond the bounds
  std::uint64_t is_whole;  // whether it shows all it has between them
  std::uint64_t n_shown;
  ExactSum below;  // the weight of what it has below them
};

// What the owner of a quantile makes of the reports.
struct Verdict {
  std::uint64_t least, most;  // the bounds of its key
  std::uint64_t is_found;
  double quantile;
};

// The distinct numbers of a shard and the weight of all up to each; those between the bounds are [begin, end).
class OwnNumbers {
 public:
  OwnNumbers() = default;
  OwnNumbers(SortedNumbers numbers, bool weighted, const SumGrid& grid) : keys_(std::move(numbers.keys)) {
    std::size_t n = 0;
    ExactSum sum;
    through_.reserve(keys_.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (weighted)
        sum.add(numbers.weights[i], grid);
      else
        sum.coarse += 1;
      if (i + 1 < keys_.size() && keys_[i + 1] == keys_[i]) continue;
      keys_[n++] = keys_[i];
      through_.push_back(sum);
    }
    keys_.resize(n);
    end_ = n;
  }

  void narrow(const Verdict& verdict) {
    begin_ = static_cast<std::size_t>(std::lower_bound(keys_.begin(), keys_.end(), verdict.least) - keys_.begin());
    end_ = static_cast<std::size_t>(std::upper_bound(keys_.begin(), keys_.end(), verdict.most) - keys_.begin());
  }

  void write(std::string& text) const {
    const std::vector<std::size_t> places = shown_places();
    const Report report{end_ < keys_.size() ? keys_[end_] : kNoKey, end_ - begin_ <= kShown ? 1u : 0u, places.size(),
                        before(begin_)};
    append(text, report);
    for (const std::size_t at : places) {
      append(text, Shown{keys_[at], before(at), through_[at]});
    }
  }

 private:
  ExactSum before(std::size_t at) const { return at == 0 ? ExactSum{} : through_[at - 1]; }

  // All of them, or some that share out the weight; the last one, and one in the middle, so that each time less is
  // left.
  std::vector<std::size_t> shown_places() const {
    std::vector<std::size_t> places;
    if (end_ - begin_ <= kShown) {
      for (std::size_t at = begin_; at < end_; ++at) places.push_back(at);
      return places;
    }
    const double low = before(begin_).value(), share = (through_[end_ - 1].value() - low) / kShown;
    const auto first = through_.begin() + static_cast<std::ptrdiff_t>(begin_);
    const auto last = through_.begin() + static_cast<std::ptrdiff_t>(end_ - 1);
    for (std::size_t k = 1; k + 1 < kShown; ++k) {
      const auto found = std::lower_bound(first, last, low + share * static_cast<double>(k),
                                          [](const ExactSum& sum, double wanted) { return sum.value() < wanted; });
      places.push_back(static_cast<std::size_t>(found - through_.begin()));
    }
    places.push_back(begin_ + (end_ - begin_) / 2);
    places.push_back(end_ - 1);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
  }

  std::vector<std::uint64_t> keys_;
  std::vector<ExactSum> through_;
  std::size_t begin_ = 0, end_ = 0;
};

// A quantile as its owner sees it: what the shards say of it.
class OwnedQuantile {
 public:
  OwnedQuantile(double level, bool weighted) : level_(level), weighted_(weighted) {}

  void read(MessageReader& said) {
    const auto report = said.read<Report>();
    is_whole_ = is_whole_ && report.is_whole != 0;
    above_ = std::min(above_, report.above);
    below_.push_back(report.below);
    std::vector<Shown> shown(std::min<std::size_t>(report.n_shown, kShown));
    said.read(shown.data(), shown.size());
    shown_.push_back(std::move(shown));
  }

  Verdict verdict(const Verdict& before) {
    if (!knows_total_) find_need();
    Verdict out = total_ == 0 ? Verdict{0, 0, 1, 0.0} : narrowed(before);
    shown_.clear();
    below_.clear();
    is_whole_ = true;
    above_ = kNoKey;
    return out;
  }

 private:
  // The first reports have no bounds: together they are of all numbers.
  void find_need() {
    ExactSum total;
    for (const std::vector<Shown>& shown : shown_)
      if (!shown.empty()) total.add(shown.back().through);
    total_ = total.value();
    need_ = level_ * total_ - kRounding * total_;
    if (!weighted_) need_ = std::clamp(std::ceil(need_), 1.0, std::max(1.0, total_));
    knows_total_ = true;
  }

  // Along all keys that are shown, ascending: what all numbers up to a key weigh at least, and at most.
  Verdict narrowed(const Verdict& bounds) {
    std::vector<std::pair<std::uint64_t, std::size_t>> order;  // keys, and whose they are
    for (std::size_t shard = 0; shard < shown_.size(); ++shard)
      for (const Shown& one : shown_[shard]) order.emplace_back(one.key, shard);
    if (order.empty()) throw std::runtime_error("no shard has numbers between the bounds of a quantile");
    std::sort(order.begin(), order.end());
    Verdict out{bounds.least, order.back().first, 0, 0.0};
    std::vector<std::size_t> place(shown_.size(), 0);  // of the first that is not passed yet
    for (std::size_t i = 0; i < order.size();) {
      const std::uint64_t key = order[i].first;
      for (; i < order.size() && order[i].first == key; ++i) ++place[order[i].second];
      ExactSum least, most;
      for (std::size_t shard = 0; shard < shown_.size(); ++shard) {
        const std::vector<Shown>& shown = shown_[shard];
        const std::size_t at = place[shard];
        const ExactSum passed = at == 0 ? below_[shard] : shown[at - 1].through;
        least.add(passed);
        // Up to the next that is shown, unless this very key is.
        const bool exact = at == shown.size() || (at > 0 && shown[at - 1].key == key);
        most.add(exact ? passed : shown[at].before);
      }
      if (most.value() < need_) out.least = key + 1;
      if (least.value() < need_ && i < order.size()) continue;  // but for rounding, the last one reaches the target
      out.most = key;
      if (is_whole_) {
        out.is_found = 1;
        out.quantile = quantile(key, least.value(), i < order.size() ? order[i].first : above_);
      }
      break;
    }
    return out;
  }

  double quantile(std::uint64_t key, double through, std::uint64_t next) const {
    const double found = value_of<double>(key);
    if (next == kNoKey) return found;
    const double enough = level_ * total_ + kRounding * total_;
    // Of equal weights it is the place that counts: behind the one that is needed, the next may be as large.
    const bool flat = weighted_ ? through <= enough : need_ <= enough && through == need_;
    return flat ? 0.5 * (found + value_of<double>(next)) : found;
  }

  double level_;
  bool weighted_;
  bool knows_total_ = false, is_whole_ = true;
  double total_ = 0, need_ = 0;  // the least weight up to the quantile, itself included
  std::uint64_t above_ = kNoKey;
  std::vector<std::vector<Shown>> shown_;  // by shard
  std::vector<ExactSum> below_;
};

// Each shard owns every so many quantiles: the others report to it, and it tells them how far the bounds are.
class SharedQuantiles {
 public:
  SharedQuantiles(std::vector<SortedNumbers> here, const std::vector<double>& levels, bool weighted, const Shard& shard,
                  int n_threads)
      : peers_(shard.peers()),
        n_threads_(n_threads),
        own_(here.size()),
        verdicts_(here.size(), Verdict{0, kNoKey, 0, 0.0}),
        quantiles_(here.size(), 0.0) {
    const std::vector<SumGrid> grids = weighted ? weight_grids(here, shard) : std::vector<SumGrid>(here.size());
    parallel_for(n_threads_, here.size(),
                 [&](std::size_t v, int) { own_[v] = OwnNumbers(std::move(here[v]), weighted, grids[v]); });
    for (std::size_t v = 0; v < here.size(); ++v) {
      owned_.emplace_back(levels[v], weighted);
      left_.push_back(v);
    }
  }

  std::vector<double> find() {
    while (!left_.empty()) {
      judge(report());
      std::vector<std::size_t> left;
      for (const std::size_t v : left_) {
        if (verdicts_[v].is_found != 0)
          quantiles_[v] = verdicts_[v].quantile;
        else
          left.push_back(v);
      }
      left_ = std::move(left);
      parallel_for(n_threads_, left_.size(), [&](std::size_t i, int) { own_[left_[i]].narrow(verdicts_[left_[i]]); });
    }
    return std::move(quantiles_);
  }

 private:
  static std::vector<SumGrid> weight_grids(const std::vector<SortedNumbers>& here, const Shard& shard) {
    std::vector<double> count(here.size()), largest(here.size());
    for (std::size_t v = 0; v < here.size(); ++v) {
      count[v] = static_cast<double>(here[v].keys.size());
      for (const double weight : here[v].weights) largest[v] = std::max(largest[v], weight);
    }
    shard.add(count);
    shard.largest(largest);
    std::vector<SumGrid> grids;
    for (std::size_t v = 0; v < here.size(); ++v) grids.push_back(sum_grid(largest[v], count[v]));
    return grids;
  }

  std::size_t owner(std::size_t v) const { return v % static_cast<std::size_t>(peers_.size()); }

  // What each shard says of the quantiles that are owned here.
  std::vector<std::string> report() const {
    std::vector<std::string> to(static_cast<std::size_t>(peers_.size()));
    for (const std::size_t v : left_) own_[v].write(to[owner(v)]);
    return peers_.all_to_all(to);
  }

  void judge(const std::vector<std::string>& said) {
    std::vector<std::size_t> mine;
    for (const std::size_t v : left_)
      if (owner(v) == static_cast<std::size_t>(peers_.rank())) mine.push_back(v);
    for (const std::string& text : said) {
      MessageReader reader(text, kOtherQuantiles);
      for (const std::size_t v : mine) owned_[v].read(reader);
    }
    std::vector<Verdict> verdicts(mine.size());
    parallel_for(n_threads_, mine.size(),
                 [&](std::size_t i, int) { verdicts[i] = owned_[mine[i]].verdict(verdicts_[mine[i]]); });
    std::string text;
    append(text, verdicts.data(), verdicts.size());
    const std::vector<std::string> all = peers_.gather(text);
    std::vector<MessageReader> readers;
    for (const std::string& one : all) readers.emplace_back(one, kOtherQuantiles);
    for (const std::size_t v : left_) verdicts_[v] = readers[owner(v)].read<Verdict>();
  }

  Peers& peers_;
  const int n_threads_;
  std::vector<OwnNumbers> own_;
  std::vector<OwnedQuantile> owned_;
  std::vector<Verdict> verdicts_;
  std::vector<double> quantiles_;
  std::vector<std::size_t> left_;
};

}  // namespace

SortedNumbers sort_numbers(const std::vector<double>& numbers) {
  SortedNumbers out;
  out.keys.reserve(numbers.size());
  for (const double one : numbers) out.keys.push_back(key_of(one));
  std::sort(out.keys.begin(), out.keys.end());
  return out;
}

SortedNumbers sort_numbers(std::vector<WeightedResidual>& numbers) {
  std::sort(numbers.begin(), numbers.end(), [](const WeightedResidual& a, const WeightedResidual& b) {
    return key_of(a.residual) < key_of(b.residual);  // which orders whatever there is
  });
  SortedNumbers out;
  out.keys.reserve(numbers.size());
  out.weights.reserve(numbers.size());
  for (const WeightedResidual& one : numbers) {
    out.keys.push_back(key_of(one.residual));
    out.weights.push_back(one.weight);
  }
  return out;
}

std::size_t columns_at_once(std::size_t n_here, const Shard& shard) {
  const double most = shard.largest(static_cast<double>(n_here));
  return static_cast<std::size_t>(std::max(1.0, kBlockBytes / (kNumberBytes * std::max(1.0, most))));
}

std::vector<double> shared_quantiles(std::vector<SortedNumbers> here, const std::vector<double>& levels, bool weighted,
                                     const Shard& shard, int n_threads) {
  return SharedQuantiles(std::move(here), levels, weighted, shard, n_threads).find();
}

}  // namespace polyleaf
