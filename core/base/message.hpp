// What shards say to each other: plain values, one behind the other, as bytes. They run on machines of one kind.
#pragma once

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace polyleaf {

template <class Value>
void append(std::string& text, const Value* values, std::size_t n) {
  static_assert(std::is_trivially_copyable_v<Value>);
  if (n > 0) text.append(reinterpret_cast<const char*>(values), n * sizeof(Value));
}

template <class Value>
void append(std::string& text, const Value& value) {
  append(text, &value, 1);
}

// Reads what was appended, in the same order. `complaint` is the error where there is less.
class MessageReader {
 public:
  MessageReader(const std::string& text, const char* complaint)
      : at_(text.data()), left_(text.size()), complaint_(complaint) {}

  bool at_end() const { return left_ == 0; }

  template <class Value>
  void read(Value* values, std::size_t n) {
    static_assert(std::is_trivially_copyable_v<Value>);
    if (n > left_ / sizeof(Value)) throw std::runtime_error(complaint_);
    if (n > 0) std::memcpy(values, at_, n * sizeof(Value));
    at_ += n * sizeof(Value);
    left_ -= n * sizeof(Value);
  }

  template <class Value>
  Value read() {
    Value value;
    read(&value, 1);
    return value;
  }

 private:
  const char* at_;
  std::size_t left_;
  const char* complaint_;
};

}  // namespace polyleaf
