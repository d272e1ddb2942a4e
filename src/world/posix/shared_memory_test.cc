// SPDX-License-Identifier: Apache-2.0
#include "world/posix/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "world/posix/fd.h"
#include "world/posix/tear_guard.h"

namespace cairn::posix {
namespace {

constexpr uint64_t kPage = 4096;
using Mapped = std::unique_ptr<env::SharedMemory>;

// What a peer that may shrink it sends.
Fd unsealed(uint64_t size) {
  Fd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  return fd;
}
Mapped map(const Fd& fd, const env::SharedRange& range) {
  Result<Mapped> mapped = map_memory_file(fd.get(), range);
  EXPECT_TRUE(mapped.has_value()) << mapped.error().text();
  return mapped ? std::move(*mapped) : nullptr;
}
bool is_zero(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

TEST(SharedMemory, IsTheSameForAllWhoMapIt) {
  const Result<Fd> fd = make_memory_file(2 * kPage);
  ASSERT_TRUE(fd.has_value());
  const Mapped all = map(*fd, {.size = 2 * kPage});
  const Mapped second = map(*fd, {.offset = kPage, .size = 100, .writable = false});
  EXPECT_TRUE(is_zero(all->bytes()));
  EXPECT_EQ(second->bytes().size(), 100u);
  all->bytes()[kPage + 5] = std::byte{7};
  EXPECT_EQ(second->bytes()[5], std::byte{7});
}

TEST(SharedMemory, OursCannotBeMadeSmaller) {
  const Result<Fd> fd = make_memory_file(kPage);
  ASSERT_TRUE(fd.has_value());
  EXPECT_NE(::ftruncate(fd->get(), 0), 0);
  EXPECT_NE(::ftruncate(fd->get(), 2 * kPage), 0);
  EXPECT_EQ(make_memory_file(0).error(), Errc::kInvalid);
  EXPECT_EQ(make_memory_file(UINT64_MAX).error(), Errc::kLimit);
}

TEST(SharedMemory, RangesLieInIt) {
  const Fd fd = unsealed(4 * kPage);
  for (const env::SharedRange& range : std::vector<env::SharedRange>{
           {.size = 0},
           {.size = 4 * kPage + 1},
           {.offset = 1, .size = 1},
           {.offset = kPage, .size = 4 * kPage},
           {.offset = 4 * kPage, .size = 1},
           {.offset = kPage, .size = UINT64_MAX},
           {.offset = UINT64_MAX - kPage + 1, .size = kPage},
           {.offset = uint64_t{1} << 63, .size = kPage},
       }) {
    const Result<Mapped> mapped = map_memory_file(fd.get(), range);
    ASSERT_FALSE(mapped.has_value()) << range.offset << " " << range.size;
    EXPECT_EQ(mapped.error(), Errc::kInvalid);
  }
  EXPECT_TRUE(map(fd, {.offset = 3 * kPage, .size = kPage})->is_whole());
}

TEST(SharedMemory, WhatIsNoMemoryIsRefused) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const Fd reading(pipe[0]);
  const Fd writing(pipe[1]);
  const Fd zero(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  const Fd folder(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd event(::eventfd(0, EFD_CLOEXEC));
  const Fd stream(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Fd process(::open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  for (const Fd* fd : {&reading, &writing, &zero, &folder, &event, &stream, &process}) {
    const Result<Mapped> mapped = map_memory_file(fd->get(), {.size = kPage});
    ASSERT_FALSE(mapped.has_value()) << fd->get();
    EXPECT_EQ(mapped.error(), Errc::kInvalid) << mapped.error().text();
  }
}

TEST(SharedMemory, WhatMayNotBeWrittenIsDeniedToWriters) {
  std::string path = "/tmp/cairn-shared-XXXXXX";
  const Fd file(::mkstemp(path.data()));
  ASSERT_TRUE(file.is_open());
  const Fd reading(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ::unlink(path.c_str());
  ASSERT_EQ(::ftruncate(file.get(), kPage), 0);
  EXPECT_EQ(map_memory_file(reading.get(), {.size = kPage}).error(), Errc::kDenied);
  const Mapped seen = map(reading, {.size = kPage, .writable = false});
  map(file, {.size = kPage})->bytes()[9] = std::byte{1};
  EXPECT_EQ(seen->bytes()[9], std::byte{1});

  const Fd sealed = unsealed(kPage);
  ASSERT_EQ(::fcntl(sealed.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(map_memory_file(sealed.get(), {.size = kPage}).error(), Errc::kDenied);
}

TEST(SharedMemory, ATornPartReadsAsZeroesAndTakesWrites) {
  const Fd fd = unsealed(4 * kPage);
  const Fd unharmed = unsealed(kPage);
  const Mapped torn = map(fd, {.size = 4 * kPage});
  const Mapped read_only = map(fd, {.size = 4 * kPage, .writable = false});
  const Mapped other = map(unharmed, {.size = kPage});
  std::ranges::fill(torn->bytes(), std::byte{1});
  std::ranges::fill(other->bytes(), std::byte{2});
  ASSERT_EQ(::ftruncate(fd.get(), kPage), 0);

  EXPECT_EQ(torn->bytes()[kPage - 1], std::byte{1});
  EXPECT_TRUE(torn->is_whole()) << "nobody has noticed";
  torn->bytes()[2 * kPage + 3] = std::byte{5};
  EXPECT_FALSE(torn->is_whole());
  EXPECT_EQ(torn->bytes()[2 * kPage + 3], std::byte{5});
  EXPECT_TRUE(is_zero(torn->bytes().subspan(3 * kPage)));
  EXPECT_TRUE(is_zero(torn->bytes().subspan(kPage, kPage)));
  EXPECT_EQ(torn->bytes()[0], std::byte{1});

  EXPECT_TRUE(read_only->is_whole());
  EXPECT_TRUE(is_zero(read_only->bytes().subspan(kPage)));
  EXPECT_FALSE(read_only->is_whole());
  EXPECT_TRUE(other->is_whole());
  EXPECT_EQ(other->bytes()[kPage - 1], std::byte{2});
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_END), static_cast<off_t>(kPage)) << "nothing was written";
}

TEST(SharedMemory, ANewMappingOfATornFileIsWhole) {
  const Fd fd = unsealed(2 * kPage);
  for (int round = 0; round < 3; ++round) {
    const Mapped mapped = map(fd, {.size = 2 * kPage});
    ASSERT_EQ(::ftruncate(fd.get(), 0), 0);
    mapped->bytes()[0] = std::byte{1};
    EXPECT_FALSE(mapped->is_whole());
    ASSERT_EQ(::ftruncate(fd.get(), 2 * kPage), 0);
    EXPECT_TRUE(map(fd, {.size = kPage})->is_whole());
  }
}

TEST(SharedMemory, ACallOfTheKernelFailsInATornPart) {
  const Fd fd = unsealed(2 * kPage);
  const Mapped mapped = map(fd, {.size = 2 * kPage});
  ASSERT_EQ(::ftruncate(fd.get(), 0), 0);
  const Fd zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(::read(zero.get(), mapped->bytes().data(), kPage), -1);
  EXPECT_EQ(errno, EFAULT);
}

// A file that is mapped by others than us, for instance a library's.
void touch_beyond_a_file() {
  const Fd fd = unsealed(kPage);
  const Mapped guarded = map(fd, {.size = kPage});
  void* foreign = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (::ftruncate(fd.get(), 0) != 0) return;
  std::exit(*static_cast<volatile char*>(foreign));
}

TEST(SharedMemoryDeathTest, AnyOtherBusErrorEndsTheProcess) {
  EXPECT_EXIT(touch_beyond_a_file(), testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        const Fd fd = unsealed(kPage);
        const Mapped guarded = map(fd, {.size = kPage});
        (void)::kill(::getpid(), SIGBUS);
        std::exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST(SharedMemory, TheNumberOfMappingsIsLimited) {
  const Fd fd = unsealed(kPage);
  std::vector<TearGuard> guards;
  std::byte bytes[1];
  while (guards.size() < TearGuard::kGuardsMax) {
    Result<TearGuard> guard = TearGuard::make({.bytes = bytes});
    if (!guard) break;
    guards.push_back(std::move(*guard));
  }
  const Result<Mapped> mapped = map_memory_file(fd.get(), {.size = kPage});
  ASSERT_FALSE(mapped.has_value());
  EXPECT_EQ(mapped.error(), Errc::kLimit);
  guards.pop_back();
  EXPECT_TRUE(map(fd, {.size = kPage})->is_whole());
}

}  // namespace
}  // namespace cairn::posix
