// What connects the shards of a training, as Python has it (polyleaf/peers/collectives.py).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/shard.hpp"
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

  void add_parts(std::int32_t* values, const std::vector<std::size_t>& part_begin, std::size_t n_slices) override {
    nb::gil_scoped_acquire acquire;
    nb::list parts;
    for (std::size_t rank = 0; rank + 1 < part_begin.size(); ++rank)
      parts.append(
          view<2>(values + part_begin[rank], {n_slices, (part_begin[rank + 1] - part_begin[rank]) / n_slices}));
    const auto sums = nb::cast<Matrix<std::int32_t>>(peers_.attr("scatter_sums")(parts));
    const auto own = static_cast<std::size_t>(rank_);
    expect(sums.size() == part_begin[own + 1] - part_begin[own], "peers: sums of the own part");
    std::copy_n(sums.data(), sums.size(), values + part_begin[own]);
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

  nb::object peers_;
  int rank_, size_;
};

}  // namespace polyleaf
