// SPDX-License-Identifier: Apache-2.0
#include "trace/reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <isa-l/igzip_lib.h>
#include <malloc.h>

#include <cstring>

namespace cairn::trace {
namespace {

// A trace that is made while it is read: nobody ever holds it.
class MadeSource final : public ByteSource {
 public:
  explicit MadeSource(uint64_t requests) : requests_(requests) {}

  Outcome<size_t> read(MutableBytes into) override {
    if (rest_.empty() && made_ < requests_) {
      rest_ = fmt::format("{} 0 {} 8 {}\n", made_ * 100, made_ * 8 % 100'000, made_ % 2);
      ++made_;
    }
    const size_t count = std::min(into.size(), rest_.size());
    std::memcpy(into.data(), rest_.data(), count);
    rest_.erase(0, count);
    return count;
  }

 private:
  uint64_t requests_;
  uint64_t made_ = 0;
  std::string rest_;
};

std::string packed(const std::string& text) {
  std::string out(text.size() + 1024, '\0');
  isal_zstream stream;
  isal_deflate_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uint32_t>(text.size());
  stream.next_out = reinterpret_cast<uint8_t*>(out.data());
  stream.avail_out = static_cast<uint32_t>(out.size());
  isal_deflate(&stream);
  out.resize(stream.total_out);
  return out;
}

Outcome<Reader> open_text(std::string text, const ReaderOptions& options = {}) {
  return Reader::open(std::make_unique<TextSource>(std::move(text)), options);
}

std::string arrivals(Outcome<Reader> reader) {
  std::string out;
  while (reader) {
    const auto next = reader->next();
    if (!next) return out + next.error().about("t");
    if (!*next) return out;
    out += fmt::format("{} ", (*next)->arrival);
  }
  return reader.error().about("t");
}

TEST(TraceReader, ATraceOfAnySizeTakesTheMemoryOfItsWindow) {
  constexpr uint64_t kRequests = 1'000'000;  // 18 MB of text, 48 MB of records
  Outcome<Reader> reader = Reader::open(std::make_unique<MadeSource>(kRequests), {.reorder = 1024});
  ASSERT_TRUE(reader);
  ASSERT_TRUE(reader->next());
  const size_t before = mallinfo2().uordblks;
  uint64_t count = 1;
  for (;;) {
    const auto next = reader->next();
    ASSERT_TRUE(next);
    if (!*next) break;
    ++count;
  }
  EXPECT_EQ(count, kRequests);
  EXPECT_LT(mallinfo2().uordblks, before + (1UL << 20));
}

TEST(TraceReader, RequestsComeInOrderOfArrival) {
  EXPECT_EQ(arrivals(open_text("10 0 0 8 1\n40 0 0 8 1\n20 0 0 8 1\n30 0 0 8 1\n")), "0 10 20 30 ");
  EXPECT_EQ(arrivals(open_text("10 0 0 8 1\n", {.from_zero = false})), "10 ");
}

TEST(TraceReader, ARequestTooFarBehindItsPlaceIsToldWithItsLine) {
  EXPECT_EQ(arrivals(open_text("10 0 0 8 1\n40 0 0 8 1\n50 0 0 8 1\n20 0 0 8 1\n", {.reorder = 2})),
            "0 30 t, line 4: arrives before requests that stand more than 2 lines above it; sort "
            "the trace by time");
}

TEST(TraceReader, PackedTracesAreUnpackedMemberByMember) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += fmt::format("{} 0 {} 8 1\n", i, i * 7919 % 65536);
  const std::string first = text.substr(0, 300'000);
  const std::string whole = packed(first) + packed(text.substr(300'000));
  EXPECT_EQ(arrivals(open_text(whole)), arrivals(open_text(text)));
}

TEST(TraceReader, APackedTraceThatBreaksOffIsTold) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += fmt::format("{} 0 {} 8 1\n", i, i * 7919 % 65536);
  std::string half = packed(text);
  half.resize(half.size() / 2);
  EXPECT_TRUE(arrivals(open_text(half)).contains("is not a whole gzip file"));
}

TEST(TraceReader, ALineWithoutEndIsNotATrace) {
  EXPECT_TRUE(arrivals(open_text(std::string(1 << 20, 'x'))).contains("longer than 65536 bytes"));
}

}  // namespace
}  // namespace cairn::trace
