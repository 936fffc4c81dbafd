#include "search/findings.hpp"

#include <stdexcept>
#include <utility>

#include "base/message.hpp"

namespace polyleaf {

// Splits, then sums, each with the pair it is of.
std::string written(const std::vector<Findings>& found) {
  std::string splits, sums;
  std::size_t n_splits = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (std::size_t place = 0; place < found[i].splits.size(); ++place) {
      const FoundSplit& one = found[i].splits[place];
      if (one.best.chosen.feature < 0) continue;
      ++n_splits;
      append(splits, i);
      append(splits, place);
      append(splits, one.best);
      for (const auto* side : {&one.partition.left, &one.partition.right}) {
        append(splits, side->size());
        append(splits, side->data(), side->size());
      }
    }
    for (std::size_t which = 0; which < 2; ++which)
      for (const LeftSums& one : found[i].left[which]) {
        append(sums, i);
        append(sums, which);
        append(sums, one.feature);
        append(sums, one.sums.data(), one.sums.size());
      }
  }
  std::string text;
  append(text, n_splits);
  return text + splits + sums;
}

void read_findings(const std::string& text, std::size_t n_channels, std::vector<Findings>& found) {
  MessageReader reader(text, "a shard said too little of the splits it found");
  const auto expect = [](bool holds) {
    if (!holds) throw std::runtime_error("a shard speaks of another tree");
  };
  for (auto n_splits = reader.read<std::size_t>(); n_splits > 0; --n_splits) {
    const auto i = reader.read<std::size_t>(), place = reader.read<std::size_t>();
    expect(i < found.size() && place < found[i].splits.size());
    FoundSplit& one = found[i].splits[place];
    one.best = reader.read<BestCandidate>();
    for (auto* side : {&one.partition.left, &one.partition.right}) {
      side->clear();
      for (auto left = reader.read<std::size_t>(); left > 0; --left) side->push_back(reader.read<std::uint32_t>());
    }
  }
  while (!reader.at_end()) {
    const auto i = reader.read<std::size_t>(), which = reader.read<std::size_t>();
    expect(i < found.size() && which < 2);
    LeftSums one{reader.read<std::int32_t>(), std::vector<std::int32_t>(n_channels)};
    reader.read(one.sums.data(), n_channels);
    found[i].left[which].push_back(std::move(one));
  }
}

}  // namespace polyleaf
