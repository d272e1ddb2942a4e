// SPDX-License-Identifier: Apache-2.0
#include "trace/lines.h"

#include <fmt/format.h>

#include <cstring>

namespace cairn::trace {

Lines::Lines(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), buffer_(2 * kLineMax) {}

Outcome<std::optional<std::string_view>> Lines::next() {
  size_t searched = taken_;
  for (;;) {
    const auto* begin = reinterpret_cast<const char*>(buffer_.data());
    const void* found = std::memchr(begin + searched, '\n', filled_ - searched);
    const bool last = found == nullptr && ended_;
    if (found != nullptr || (last && taken_ < filled_)) {
      const size_t end =
          last ? filled_ : static_cast<size_t>(static_cast<const char*>(found) - begin);
      std::string_view line(begin + taken_, end - taken_);
      taken_ = last ? filled_ : end + 1;
      ++number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      return line;
    }
    if (last) return std::nullopt;
    if (filled_ - taken_ > kLineMax) {
      return std::unexpected(
          Mistake{.line = number_ + 1,
                  .text = fmt::format("is longer than {} bytes: this is not a trace", kLineMax)});
    }
    std::memmove(buffer_.data(), buffer_.data() + taken_, filled_ - taken_);
    filled_ -= taken_;
    taken_ = 0;
    searched = filled_;
    const Outcome<size_t> got = source_->read(MutableBytes(buffer_).subspan(filled_));
    if (!got) return std::unexpected(got.error());
    ended_ = *got == 0;
    filled_ += *got;
  }
}

}  // namespace cairn::trace
