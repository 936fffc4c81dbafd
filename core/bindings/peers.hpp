// What connects the shards of a training, as Python has it (polyleaf/peers/collectives.py).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/shard.hpp"
#include "base/threads.hpp"
#include "bindings/arrays.hpp"

namespace polyleaf {

// Calls the methods of a Python object, with arrays that it changes in place. Made and destroyed with the GIL held.
class PythonPeers : public Peers {
 public:
  explicit PythonPeers(nb::object peers)
      : peers_(std::move(peers)), rank_(nb::cast<int>(peers_.attr("rank"))), size_(nb::cast<int>(peers_.attr("size"))) {
    expect(size_ >= 1 && rank_ >= 0 && rank_ < size_, "peers: a rank is from 0 to the number of shards less 1");
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void add(double* values, std::size_t n) override { call("add", values, n); }
  void add(std::int32_t* values, std::size_t n) override { call("add", values, n); }
  void largest(double* values, std::size_t n) override { call("largest", values, n); }

  std::int32_t* parts(std::size_t n) override {
    nb::gil_scoped_acquire acquire;
    memory_ = {};  // given back first
    memory_ = nb::cast<OutVector<std::int32_t>>(peers_.attr("memory")(n));
    expect(memory_.shape(0) >= n, "peers: memory for all parts");
    expect(reinterpret_cast<std::uintptr_t>(memory_.data()) % 64 == 0, "peers: memory where whole vectors begin");
    return memory_.data();
  }

  void add_parts(const std::vector<std::size_t>& begin, std::size_t n_slices, int n_threads) override {
    const auto own = static_cast<std::size_t>(rank_);
    const std::size_t size = begin[own + 1] - begin[own];
    nb::gil_scoped_acquire acquire;
    nb::list parts;
    for (std::size_t rank = 0; rank + 1 < begin.size(); ++rank)
      parts.append(view<2>(memory_.data() + begin[rank], {n_slices, (begin[rank + 1] - begin[rank]) / n_slices}));
    std::vector<Matrix<std::int32_t>> received;  // keep their memory
    for (const nb::handle one : peers_.attr("exchange_parts")(parts, n_threads)) {
      received.push_back(nb::cast<Matrix<std::int32_t>>(one));
      expect(received.back().size() == size, "peers: the own part of each shard");
    }
    nb::gil_scoped_release release;
    std::vector<const std::int32_t*> others;
    for (const auto& one : received) others.push_back(one.data());
    add_arrays(memory_.data() + begin[own], others, size, n_threads);
  }

  std::vector<std::string> gather(const std::string& own) override {
    nb::gil_scoped_acquire acquire;
    return texts(peers_.attr("all_gather")(nb::bytes(own.data(), own.size())));
  }

  std::vector<std::string> all_to_all(const std::vector<std::string>& parts) override {
    nb::gil_scoped_acquire acquire;
    nb::list said;
    for (const std::string& part : parts) said.append(nb::bytes(part.data(), part.size()));
    return texts(peers_.attr("all_to_all")(said));
  }

 private:
  std::vector<std::string> texts(const nb::object& received) const {
    std::vector<std::string> out;
    for (const nb::handle one : received) {
      const nb::bytes text(one);  // of whatever has a buffer
      out.emplace_back(text.c_str(), text.size());
    }
    expect(out.size() == static_cast<std::size_t>(size_), "peers: a message of each shard");
    return out;
  }

  template <int N, class Number>
  static nb::object view(Number* values, const std::size_t (&shape)[N]) {
    return nb::cast(nb::ndarray<nb::numpy, Number, nb::ndim<N>>(values, N, shape, nb::handle()),
                    nb::rv_policy::reference);
  }

  template <class Number>
  void call(const char* name, Number* values, std::size_t n) {
    nb::gil_scoped_acquire acquire;
    peers_.attr(name)(view<1>(values, {n}));
  }

  // To `sums` those of other arrays, of `n` numbers each.
  static void add_arrays(std::int32_t* sums, const std::vector<const std::int32_t*>& others, std::size_t n,
                         int n_threads) {
    constexpr std::size_t kBlock = std::size_t{1} << 14;  // stays in a core's cache while all others are added
    const bool several = n * others.size() >= kParallelWork;
    parallel_for(several ? n_threads : 1, (n + kBlock - 1) / kBlock, [&](std::size_t block, int) {
      const std::size_t begin = block * kBlock, end = std::min(n, begin + kBlock);
      for (const std::int32_t* other : others)
        for (std::size_t i = begin; i < end; ++i) sums[i] += other[i];
    });
  }

  nb::object peers_;
  OutVector<std::int32_t> memory_;
  int rank_, size_;
};

}  // namespace polyleaf
