// Part of the rows of a training. The others are elsewhere, in other threads, processes or machines, where the same
// code runs on them at the same time. Whatever hangs on all rows goes through the Shard: it adds up what the shards
// have, or finds the largest. A training with all its rows in one place is the only shard, and nothing is done there.
//
// Sums are exact, of integers or of multiples of a power of two (rules/exact_sum.hpp): how the rows are cut into shards
// changes no bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace polyleaf {

// What connects the shards. All of them call the same functions in the same order, with arrays of the same sizes.
class Peers {
 public:
  virtual ~Peers() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // In place: the sums over all shards, or the largest numbers of any.
  virtual void add(double* values, std::size_t n) = 0;
  virtual void add(std::int32_t* values, std::size_t n) = 0;
  virtual void largest(double* values, std::size_t n) = 0;
  // Memory for the parts of `add_parts`, valid until this is called again. Shards on the same machine read it there.
  virtual std::int32_t* parts(std::size_t n) = 0;
  // It has a part for each shard, from begin[rank] to begin[rank + 1], of so many slices of one length. Afterwards the
  // own part is the sum of those that all shards had for this one; the rest is left as it was.
  virtual void add_parts(const std::vector<std::size_t>& begin, std::size_t n_slices, int n_threads) = 0;
  // What each shard says, by rank.
  virtual std::vector<std::string> gather(const std::string& own) = 0;
  // What each shard says to this one, by rank; `parts` has what this one says to each.
  virtual std::vector<std::string> all_to_all(const std::vector<std::string>& parts) = 0;
};

// Rows from `begin` on, up to the next run, have the numbers from `number` on among the rows of all shards.
struct RowRun {
  std::size_t begin = 0;
  std::size_t number = 0;
};

class Shard {
 public:
  Shard() = default;  // the only one
  Shard(Peers& peers, std::size_t n_all_rows, std::vector<RowRun> runs)
      : peers_(peers.size() > 1 ? &peers : nullptr), n_all_rows_(n_all_rows), runs_(std::move(runs)) {}

  bool is_alone() const { return peers_ == nullptr; }
  Peers& peers() const { return *peers_; }
  // Rows of all shards; `here`: those of this one.
  std::size_t n_rows(std::size_t here) const { return is_alone() ? here : n_all_rows_; }

  template <class Number>
  void add(std::vector<Number>& values) const {
    if (!is_alone()) peers_->add(values.data(), values.size());
  }
  void largest(std::vector<double>& values) const {
    if (!is_alone()) peers_->largest(values.data(), values.size());
  }
  // The same of two at once.
  void add(std::vector<double>& one, std::vector<double>& other) const {
    together(one, other, [this](std::vector<double>& both) { add(both); });
  }
  void largest(std::vector<double>& one, std::vector<double>& other) const {
    together(one, other, [this](std::vector<double>& both) { largest(both); });
  }
  double largest(double value) const {
    if (!is_alone()) peers_->largest(&value, 1);
    return value;
  }
  double smallest(double value) const { return -largest(-value); }
  std::size_t add(std::size_t count) const {
    auto sum = static_cast<double>(count);  // exact up to 2^53
    if (!is_alone()) peers_->add(&sum, 1);
    return static_cast<std::size_t>(sum);
  }

  // Calls body(begin, end, shift) for pieces of rows [begin, end), whose number among all rows is theirs plus shift.
  template <class Body>
  void each_run(std::size_t begin, std::size_t end, Body&& body) const {
    if (runs_.empty()) return body(begin, end, std::size_t{0});
    auto run = std::upper_bound(runs_.begin(), runs_.end(), begin,
                                [](std::size_t row, const RowRun& one) { return row < one.begin; });
    while (begin < end) {
      const RowRun& own = *(run - 1);
      const std::size_t stop = run == runs_.end() ? end : std::min(end, run->begin);
      body(begin, stop, own.number - own.begin);
      begin = stop;
      if (run != runs_.end()) ++run;
    }
  }

 private:
  template <class Operation>
  void together(std::vector<double>& one, std::vector<double>& other, Operation&& operation) const {
    if (is_alone()) return;
    std::vector<double> both(one);
    both.insert(both.end(), other.begin(), other.end());
    operation(both);
    std::copy_n(both.begin(), one.size(), one.begin());
    std::copy_n(both.begin() + static_cast<std::ptrdiff_t>(one.size()), other.size(), other.begin());
  }

  Peers* peers_ = nullptr;
  std::size_t n_all_rows_ = 0;
  std::vector<RowRun> runs_;  // ascending, the first at 0; empty: rows have their own numbers
};

}  // namespace polyleaf
