// Which side of a split a row goes to. A value goes left if it is at most the split's threshold; by bins, if its code
// is at most the split's bin. Missing values go where the split sends them, and so does a category that is not in the
// split's set.
#pragma once

#include "rules/rule.hpp"

namespace polyleaf {

// A split by codes. Missing values have the code after the last bin of values, above every bin that is split at.
struct CodeSplit {
  unsigned last_left;
  unsigned also_left;  // the code of missing values where they go left; else no other than last_left
};

POLYLEAF_RULE CodeSplit split_by_code(int bin, bool missing_left, unsigned missing_code) {
  const auto last_left = static_cast<unsigned>(bin);
  return {last_left, missing_left ? missing_code : last_left};
}

// Without a branch, here and below: the way of a row cannot be foreseen.
POLYLEAF_RULE bool goes_left(const CodeSplit& split, unsigned code) {
  return (static_cast<int>(code <= split.last_left) | static_cast<int>(code == split.also_left)) != 0;
}

// By a threshold, which a missing value is never above.
POLYLEAF_RULE bool goes_right(bool above, bool missing, bool missing_right) {
  return (static_cast<int>(above) | (static_cast<int>(missing) & static_cast<int>(missing_right))) != 0;
}

POLYLEAF_RULE bool goes_right(double value, double threshold, bool missing_right) {
  return goes_right(value > threshold, value != value, missing_right);
}

// By a code that is compared like the value it stands for: missing values have the least one, or the largest where they
// go right. Code: a number, or a vector of them.
template <class Code>
POLYLEAF_RULE auto is_right_of(const Code& code, const Code& last_left) {
  return code > last_left;
}

// A set of categories is a bit for each, in words of 32.
POLYLEAF_RULE bool has_category(const unsigned* words, unsigned long long n_words, unsigned category) {
  return category / 32 < n_words && ((words[category / 32] >> (category % 32)) & 1u) != 0;
}

// The same of a number as tables hold it; what is no whole number, NaN among them, is in no set.
POLYLEAF_RULE bool has_number(const unsigned* words, unsigned long long n_words, double value) {
  if (!(value >= 0 && value < 32.0 * static_cast<double>(n_words))) return false;
  const auto category = static_cast<unsigned>(value);
  return static_cast<double>(category) == value && has_category(words, n_words, category);
}

// The set of a split holds the categories that go where missing values do not: all others, unseen ones among them, go
// with missing values.
POLYLEAF_RULE bool category_goes_left(bool in_set, bool missing_left) { return in_set != missing_left; }

}  // namespace polyleaf
