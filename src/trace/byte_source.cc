// SPDX-License-Identifier: Apache-2.0
#include "trace/byte_source.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace cairn::trace {

namespace {

constexpr size_t kBuffer = 64UL << 10;

class Unpacked final : public ByteSource {
 public:
  explicit Unpacked(std::unique_ptr<ByteSource> packed)
      : packed_(std::move(packed)), buffer_(kBuffer) {}

  Outcome<size_t> read(MutableBytes into) override {
    if (const Outcome<void> looked = look(); !looked) return std::unexpected(looked.error());
    return is_gzip_ ? inflate(into) : pass(into);
  }

 private:
  // The first two bytes tell.
  Outcome<void> look() {
    if (looked_) return {};
    while (filled_ < 2 && !ended_) {
      if (const Outcome<void> more = fill(); !more) return more;
    }
    looked_ = true;
    is_gzip_ = filled_ >= 2 && buffer_[0] == std::byte{0x1f} && buffer_[1] == std::byte{0x8b};
    if (is_gzip_) start_member();
    return {};
  }

  // Appends to what is in the buffer.
  Outcome<void> fill() {
    const Outcome<size_t> got = packed_->read(MutableBytes(buffer_).subspan(filled_));
    if (!got) return std::unexpected(got.error());
    ended_ = *got == 0;
    filled_ += *got;
    return {};
  }
  // The buffer anew, when it was used up.
  Outcome<void> refill() {
    if (taken_ < filled_ || ended_) return {};
    taken_ = filled_ = 0;
    return fill();
  }

  Outcome<size_t> pass(MutableBytes into) {
    if (const Outcome<void> more = refill(); !more) return std::unexpected(more.error());
    const size_t count = std::min(into.size(), filled_ - taken_);
    std::memcpy(into.data(), buffer_.data() + taken_, count);
    taken_ += count;
    return count;
  }

  void start_member() {
    if (!state_) state_ = std::make_unique<inflate_state>();
    isal_inflate_init(state_.get());
    state_->crc_flag = ISAL_GZIP;
    in_member_ = true;
  }

  Outcome<size_t> inflate(MutableBytes into) {
    for (;;) {
      if (const Outcome<void> more = refill(); !more) return std::unexpected(more.error());
      if (!in_member_) {
        if (taken_ == filled_) return 0;
        start_member();
      }
      state_->next_in = reinterpret_cast<uint8_t*>(buffer_.data() + taken_);
      state_->avail_in = static_cast<uint32_t>(filled_ - taken_);
      state_->next_out = reinterpret_cast<uint8_t*>(into.data());
      const auto room = static_cast<uint32_t>(std::min<size_t>(into.size(), 1U << 30));
      state_->avail_out = room;
      const bool starved = state_->avail_in == 0;
      const int result = isal_inflate(state_.get());
      taken_ = filled_ - state_->avail_in;
      const size_t made = room - state_->avail_out;
      if (result != ISAL_DECOMP_OK) return std::unexpected(damaged());
      if (state_->block_state == ISAL_BLOCK_FINISH) {
        in_member_ = false;
      } else if (made == 0 && starved && ended_) {
        return std::unexpected(damaged());
      }
      if (made > 0) return made;
    }
  }

  static Mistake damaged() {
    return {.text = "is not a whole gzip file: unpack it by hand to see where it breaks"};
  }

  std::unique_ptr<ByteSource> packed_;
  std::vector<std::byte> buffer_;
  std::unique_ptr<inflate_state> state_;
  size_t taken_ = 0;
  size_t filled_ = 0;
  bool looked_ = false;
  bool ended_ = false;
  bool is_gzip_ = false;
  bool in_member_ = false;
};

}  // namespace

Outcome<size_t> TextSource::read(MutableBytes into) {
  const size_t count = std::min(into.size(), text_.size() - taken_);
  std::memcpy(into.data(), text_.data() + taken_, count);
  taken_ += count;
  return count;
}

std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> packed) {
  return std::make_unique<Unpacked>(std::move(packed));
}

}  // namespace cairn::trace
