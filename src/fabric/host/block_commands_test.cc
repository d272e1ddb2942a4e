// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/block_commands.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "base/bytes.h"
#include "nvme/format/dsm_format.h"
#include "nvme/format/io_format.h"

namespace cairn::fabric {
namespace {

using drive::Request;
using nvme::BlockFields;
using nvme::IoOpcode;
using Kind = Request::Kind;

// Commands of 24 blocks, of which 16 are written as one.
NamespaceInfo all_of_it() {
  NamespaceInfo info;
  info.nsid = 7;
  info.geometry.blocks = 1000;
  info.geometry.block_size = 512;
  info.geometry.atomic_blocks = 16;
  info.command_blocks = 24;
  info.compare_write_blocks = 4;
  info.zeroes_blocks = 100;
  info.discard_blocks = 300;
  info.can_compare = true;
  info.zeroes_can_deallocate = true;
  info.deallocated_reads_zero = true;
  return info;
}

Request request_of(Kind kind, uint64_t lba, uint64_t blocks) {
  return {.kind = kind, .lba = Lba(lba), .blocks = blocks};
}

std::optional<Errc> refusal(const NamespaceInfo& info, const Request& request) {
  const Result<void> possible = BlockCommands(info).can_do(request);
  if (possible) return std::nullopt;
  return possible.error().code();
}

// The sizes of the commands that a request becomes.
std::vector<uint64_t> cuts(const NamespaceInfo& info, const Request& request) {
  const BlockCommands commands(info);
  std::vector<uint64_t> sizes;
  for (uint64_t done = 0; done < request.blocks; done += sizes.back()) {
    sizes.push_back(commands.next_blocks(request, done));
    if (sizes.back() == 0) break;
  }
  return sizes;
}

TEST(BlockCommands, WhatTheTargetHasNoCommandForIsRefused) {
  const NamespaceInfo none;
  EXPECT_EQ(refusal(none, request_of(Kind::kRead, 0, 1)), std::nullopt);
  EXPECT_EQ(refusal(none, request_of(Kind::kWrite, 0, 1)), std::nullopt);
  EXPECT_EQ(refusal(none, request_of(Kind::kFlush, 0, 0)), std::nullopt);
  for (const Kind kind :
       {Kind::kCompare, Kind::kCompareAndWrite, Kind::kWriteZeroes, Kind::kDiscard}) {
    EXPECT_EQ(refusal(none, request_of(kind, 0, 1)), Errc::kUnsupported);
    EXPECT_EQ(refusal(all_of_it(), request_of(kind, 0, 1)), std::nullopt);
  }
  EXPECT_EQ(refusal(all_of_it(), request_of(Kind::kCompareAndWrite, 0, 4)), std::nullopt);
  EXPECT_EQ(refusal(all_of_it(), request_of(Kind::kCompareAndWrite, 0, 5)), Errc::kInvalid);
}

TEST(BlockCommands, DiscardedBlocksReadAsZeroesOrItIsRefused) {
  const auto opcode = [](const NamespaceInfo& info) {
    return BlockCommands(info).make(request_of(Kind::kDiscard, 0, 8), 0, 8).sqe.io_opcode();
  };
  NamespaceInfo info = all_of_it();
  EXPECT_EQ(opcode(info), IoOpcode::kDatasetManagement);
  EXPECT_EQ(cuts(info, request_of(Kind::kDiscard, 0, 700)), (std::vector<uint64_t>{300, 300, 100}));
  info.deallocated_reads_zero = false;
  EXPECT_EQ(opcode(info), IoOpcode::kWriteZeroes);
  EXPECT_EQ(cuts(info, request_of(Kind::kDiscard, 0, 250)), (std::vector<uint64_t>{100, 100, 50}));
  info.zeroes_blocks = 0;
  EXPECT_EQ(refusal(info, request_of(Kind::kDiscard, 0, 8)), Errc::kUnsupported);
}

TEST(BlockCommands, CutsFallWhereTheAtomicSizeIsAMultiple) {
  const NamespaceInfo info = all_of_it();
  // As long as it fits it is one command, wherever it lies.
  EXPECT_EQ(cuts(info, request_of(Kind::kWrite, 5, 24)), (std::vector<uint64_t>{24}));
  EXPECT_EQ(cuts(info, request_of(Kind::kWrite, 0, 40)), (std::vector<uint64_t>{16, 16, 8}));
  EXPECT_EQ(cuts(info, request_of(Kind::kRead, 5, 40)), (std::vector<uint64_t>{11, 16, 13}));
}

TEST(BlockCommands, APartHasItsPlaceAndItsBytes) {
  const NamespaceInfo info = all_of_it();
  Request request = request_of(Kind::kWrite, 5, 40);
  request.durable = true;
  const BlockCommand command = BlockCommands(info).make(request, 11, 16);
  EXPECT_EQ(command.sqe.io_opcode(), IoOpcode::kWrite);
  EXPECT_EQ(command.sqe.nsid, 7U);
  const BlockFields fields = BlockFields::decode(command.sqe);
  EXPECT_EQ(fields.start, Lba(16));
  EXPECT_EQ(fields.blocks, 16U);
  EXPECT_TRUE(fields.force_unit_access);
  EXPECT_EQ(command.data, BlockCommand::Data::kRequest);
  EXPECT_EQ(command.skip, 11U * 512);
  EXPECT_EQ(command.length, 16U * 512);
}

TEST(BlockCommands, AReadIsNeverForcedToTheMedium) {
  const NamespaceInfo info = all_of_it();
  Request request = request_of(Kind::kRead, 0, 1);
  request.durable = true;
  const BlockCommand command = BlockCommands(info).make(request, 0, 1);
  EXPECT_FALSE(BlockFields::decode(command.sqe).force_unit_access);
}

TEST(BlockCommands, ZeroesGiveSpaceBackUnlessItIsToBeKept) {
  NamespaceInfo info = all_of_it();
  Request request = request_of(Kind::kWriteZeroes, 3, 50);
  request.keep_space = false;
  const auto deallocates = [&] {
    const BlockCommand command = BlockCommands(info).make(request, 0, 50);
    EXPECT_EQ(command.data, BlockCommand::Data::kNone);
    return BlockFields::decode(command.sqe).deallocate;
  };
  EXPECT_TRUE(deallocates());
  request.keep_space = true;
  EXPECT_FALSE(deallocates());
  request.keep_space = false;
  info.zeroes_can_deallocate = false;
  EXPECT_FALSE(deallocates());
}

TEST(BlockCommands, ADeallocationHasItsRangeAsData) {
  const NamespaceInfo info = all_of_it();
  const BlockCommand command = BlockCommands(info).make(request_of(Kind::kDiscard, 10, 30), 20, 10);
  EXPECT_EQ(command.data, BlockCommand::Data::kRange);
  EXPECT_EQ(command.length, 16U);
  const auto range = load<nvme::DsmRange>(command.range);
  EXPECT_EQ(range.start, 30U);
  EXPECT_EQ(range.blocks, 10U);
}

TEST(BlockCommands, AFlushIsOfTheWholeNamespace) {
  const NamespaceInfo info = all_of_it();
  const BlockCommand command = BlockCommands(info).make(request_of(Kind::kFlush, 0, 0), 0, 0);
  EXPECT_EQ(command.sqe.io_opcode(), IoOpcode::kFlush);
  EXPECT_EQ(command.sqe.nsid, 7U);
  EXPECT_EQ(command.data, BlockCommand::Data::kNone);
}

}  // namespace
}  // namespace cairn::fabric
