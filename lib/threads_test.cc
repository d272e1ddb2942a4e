// SPDX-License-Identifier: Apache-2.0
// Many threads on one handle, and many handles: under the sanitizers too, where libcairn itself is
// not built.
#include <cairn.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBlock = 4096;

class Opened {
 public:
  explicit Opened(const char* name, cairn_options options = {}) {
    options.size = sizeof options;
    EXPECT_EQ(cairn_open(name, &options, &drive_), 0) << cairn_error_text();
  }
  ~Opened() { cairn_close(drive_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  operator cairn_drive*() { return drive_; }

 private:
  cairn_drive* drive_ = nullptr;
};

void write_and_compare(cairn_drive* drive, uint64_t first, uint64_t count) {
  std::vector<char> data(kBlock);
  for (uint64_t block = first; block < first + count; ++block) {
    data.assign(kBlock, static_cast<char>(block));
    EXPECT_EQ(cairn_write(drive, block * kBlock, data.data(), kBlock), 0);
    EXPECT_EQ(cairn_compare(drive, block * kBlock, data.data(), kBlock), 0);
  }
}

TEST(CApi, ThreadsShareAHandle) {
  for (const uint32_t io : {CAIRN_IO_AUTO, CAIRN_IO_EPOLL}) {
    Opened drive("limit(stripe(mem:size=2M, mem:size=2M), iops=1000000)", {.io = io});
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 4; ++i) {
      threads.emplace_back([&drive, i] { write_and_compare(drive, i * 100, 100); });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(CApi, OneSubmitsWhileAnotherWaits) {
  constexpr int kRequests = 2000;
  Opened drive("mem:size=1M", {.depth = 16});
  std::thread submitter([&drive] {
    cairn_request request{.kind = CAIRN_FLUSH};
    for (int done = 0; done < kRequests;) {
      const int taken = cairn_submit(drive, &request, 1);
      if (taken == -EAGAIN) {
        std::this_thread::yield();
        continue;
      }
      ASSERT_EQ(taken, 1);
      ++done;
    }
  });
  int completed = 0;
  std::array<cairn_completion, 8> into;
  while (completed < kRequests) {
    const int count = cairn_wait(drive, into.data(), into.size(), -1);
    ASSERT_GT(count, 0);
    for (int i = 0; i < count; ++i) EXPECT_EQ(into[static_cast<size_t>(i)].result, 0);
    completed += count;
  }
  submitter.join();
}

TEST(CApi, AProcessHasManyDrives) {
  std::vector<std::unique_ptr<Opened>> drives;
  for (int i = 0; i < 8; ++i) drives.push_back(std::make_unique<Opened>("mem:size=1M"));
  for (const auto& drive : drives) write_and_compare(*drive, 0, 4);
}

TEST(CApi, ClosingWaitsForWhatIsUnderWay) {
  std::vector<char> data(kBlock, 7);
  {
    Opened drive("limit(mem:size=1M, iops=200, burst_ms=1)");
    iovec piece{.iov_base = data.data(), .iov_len = kBlock};
    const cairn_request request{.kind = CAIRN_WRITE, .iov = &piece, .iov_count = 1};
    for (int i = 0; i < 10; ++i) ASSERT_EQ(cairn_submit(drive, &request, 1), 1);
  }
  data.assign(kBlock, 0);  // nobody reads it any more, or a sanitizer says so
}

TEST(CApi, ErrorsAreOfTheirThread) {
  cairn_drive* drive = nullptr;
  EXPECT_EQ(cairn_open("nonsense", nullptr, &drive), -EINVAL);
  const std::string mine = cairn_error_text();
  std::thread([] { EXPECT_STREQ(cairn_error_text(), ""); }).join();
  EXPECT_EQ(cairn_error_text(), mine);
  EXPECT_NE(mine, "");
}

}  // namespace
