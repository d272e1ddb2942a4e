// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/blk_request.h"

#include <gtest/gtest.h>

#include <memory>

namespace cairn::door::vhost_user {
namespace {

class HeapMemory final : public env::SharedMemory {
 public:
  HeapMemory() : room_(4096) { bytes_ = room_; }

 private:
  std::vector<std::byte> room_;
};

class BlkRequestTest : public testing::Test {
 protected:
  // Two regions that follow each other, and nothing behind them.
  BlkRequestTest() {
    for (const uint64_t address : {4096, 8192}) {
      auto memory = std::make_unique<HeapMemory>();
      (address == 4096 ? low_ : high_) = memory->bytes();
      EXPECT_TRUE(memory_.add(address, std::move(memory)).has_value());
    }
    store(low_, BlkHeader{.type = 1, .reserved = 0, .sector = 99});
  }
  Result<void> read(std::vector<Segment> segments) {
    return read_request({.id = 0, .entries = 1, .note = 0, .segments = std::move(segments)},
                        memory_, request_);
  }

  GuestMemory memory_;
  MutableBytes low_;
  MutableBytes high_;
  BlkRequest request_;
};

TEST_F(BlkRequestTest, SegmentsMeanNothing) {
  ASSERT_TRUE(read({{4096, 5, false}, {4101, 11 + 512, false}, {8192, 1, true}}).has_value());
  EXPECT_EQ(request_.type, 1u);
  EXPECT_EQ(request_.sector, 99u);
  ASSERT_EQ(request_.data.size(), 1u);
  EXPECT_EQ(request_.data[0].data(), low_.data() + 16);
  EXPECT_EQ(request_.data_size, 512u);
  EXPECT_EQ(request_.status, high_.data());
  ASSERT_TRUE(read({{4096, 16, false}, {8192, 513, true}}).has_value());
  EXPECT_EQ(request_.data_size, 512u);
  EXPECT_EQ(request_.status, high_.data() + 512);
  ASSERT_TRUE(read({{4096, 16, false}, {8192, 512, true}, {9000, 0, true}, {5000, 1, true}}));
  EXPECT_EQ(request_.status, low_.data() + 5000 - 4096);
}

TEST_F(BlkRequestTest, DataMayCrossRegions) {
  ASSERT_TRUE(read({{4096, 16, false}, {8192 - 512, 1024, true}, {4200, 1, true}}).has_value());
  ASSERT_EQ(request_.data.size(), 2u);
  EXPECT_EQ(request_.data[0].size(), 512u);
  EXPECT_EQ(request_.data[1].data(), high_.data());
  EXPECT_EQ(request_.places[1].address, 8192u);
}

TEST_F(BlkRequestTest, WithoutAStatusNobodyCanBeTold) {
  EXPECT_EQ(read({{4096, 16, false}}).error(), Errc::kInvalid);
  EXPECT_EQ(read({}).error(), Errc::kInvalid);
  EXPECT_EQ(read({{4096, 16, false}, {12288, 1, true}}).error(), Errc::kInvalid);
  EXPECT_EQ(read({{4096, 16, false}, {UINT64_MAX, 5, true}}).error(), Errc::kInvalid);
}

TEST_F(BlkRequestTest, WhatIsNoRequestIsToldSo) {
  EXPECT_EQ(read({{4096, 15, false}, {8192, 1, true}}).error(), Errc::kUnreachable);
  EXPECT_EQ(read({{4096, 16, false}, {12287, 512, true}, {8192, 1, true}}).error(),
            Errc::kUnreachable);
  EXPECT_EQ(read({{8192, 16, true}, {4096, 16, false}, {8200, 1, true}}).error(),
            Errc::kUnreachable);
  EXPECT_EQ(read({{12288, 16, false}, {8192, 1, true}}).error(), Errc::kUnreachable);
}

}  // namespace
}  // namespace cairn::door::vhost_user
