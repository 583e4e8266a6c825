// A short text that takes no memory but its own: for errors of code that may not allocate.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ropewalk::settings {

// It is cut where it is full, and always ends with a null character.
class Text {
 public:
  Text& operator<<(std::string_view more) noexcept {
    const std::size_t bytes = std::min(more.size(), sizeof data_ - 1 - size_);
    std::memcpy(data_ + size_, more.data(), bytes);
    size_ += bytes;
    data_[size_] = '\0';
    return *this;
  }
  Text& operator<<(std::int64_t number) noexcept {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    return *this << std::string_view(digits, static_cast<std::size_t>(end - digits));
  }

  const char* c_str() const noexcept { return data_; }
  std::string_view view() const noexcept { return {data_, size_}; }

 private:
  std::size_t size_ = 0;
  char data_[512] = "";
};

// Visits the parts of a list that commas separate, in turn; `each` returns whether to go on.
template <class Each>
void each_word(std::string_view list, Each each) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (!each(list.substr(0, comma))) return;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

}  // namespace ropewalk::settings
