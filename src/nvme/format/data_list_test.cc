// SPDX-License-Identifier: Apache-2.0
#include "nvme/format/data_list.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "nvme/format/pci_format.h"

namespace cairn::nvme {
namespace {

// One range of memory, at an address of its own; what lies elsewhere cannot be read.
class Memory final : public HostMemory {
 public:
  static constexpr uint64_t kBase = 0x10'0000;
  explicit Memory(size_t size) : bytes_(size) {}
  bool read(uint64_t address, MutableBytes into) const override {
    if (address < kBase || address - kBase > bytes_.size()) return false;
    const Bytes rest = Bytes(bytes_).subspan(address - kBase);
    if (rest.size() < into.size()) return false;
    std::memcpy(into.data(), rest.data(), into.size());
    return true;
  }
  template <class T>
  void put(uint64_t address, const T& value) {
    store(MutableBytes(bytes_).subspan(address - kBase), value);
  }

 private:
  std::vector<std::byte> bytes_;
};

class DataList : public ::testing::Test {
 protected:
  Memory memory{0x10000};
  std::vector<HostPiece> pieces;

  Status prp(uint64_t first, uint64_t second, size_t bytes, uint32_t page_size = 4096) {
    Sqe sqe;
    PrpPair{.first = first, .second = second}.encode(sqe);
    return find_data(sqe, {.bytes = bytes, .page_size = page_size}, memory, pieces);
  }
  Status sgl(const SglDescriptor& descriptor, size_t bytes, Psdt psdt = Psdt::kSgl) {
    Sqe sqe;
    sqe.set_psdt(psdt);
    sqe.sgl1 = descriptor;
    return find_data(sqe, {.bytes = bytes}, memory, pieces);
  }
  static SglDescriptor segment(uint64_t address, uint32_t length, SglId id = SglId::kSegment) {
    SglDescriptor descriptor;
    descriptor.address = address;
    descriptor.length = length;
    descriptor.id = id;
    return descriptor;
  }
  // Entries of a PRP list: pages that do not follow each other.
  void put_list(uint64_t at, size_t count, uint64_t first_page = 0x100) {
    for (size_t i = 0; i < count; ++i) memory.put(at + 8 * i, Le64((first_page + 2 * i) * 4096));
  }
};

constexpr uint64_t kBase = Memory::kBase;
using Pieces = std::vector<HostPiece>;

TEST_F(DataList, OnePageNeedsOnePrp) {
  EXPECT_TRUE(prp(0x5000, 0xdead, 4096).ok()) << "the second is not looked at";
  EXPECT_EQ(pieces, (Pieces{{0x5000, 4096}}));
  EXPECT_TRUE(prp(0x5e00, 0, 512).ok());
  EXPECT_EQ(pieces, (Pieces{{0x5e00, 512}}));
}

TEST_F(DataList, TwoPagesAreNamedByTwoPrps) {
  EXPECT_TRUE(prp(0x5004, 0x9000, 4096).ok());
  EXPECT_EQ(pieces, (Pieces{{0x5004, 4092}, {0x9000, 4}}));
  EXPECT_TRUE(prp(0x5000, 0x6000, 8192).ok());
  EXPECT_EQ(pieces, (Pieces{{0x5000, 8192}})) << "neighbours are one piece";
}

TEST_F(DataList, MisalignedPrpsAreRefused) {
  const Status invalid = final_status(StatusCode::kPrpOffsetInvalid);
  EXPECT_EQ(prp(0x5002, 0, 512), invalid) << "no whole dword";
  EXPECT_EQ(prp(0x5000, 0x6008, 8192), invalid) << "a second page begins where it begins";
  EXPECT_EQ(prp(0x5000, kBase + 4, 3 * 4096), invalid) << "a list of no whole entries";
  put_list(kBase, 2);
  memory.put(kBase + 8, Le64(0x9004));
  EXPECT_EQ(prp(0x5000, kBase, 3 * 4096), invalid) << "an entry of a list";
}

TEST_F(DataList, ListsMayBeginInsideTheirPage) {
  put_list(kBase + 0x808, 2);
  EXPECT_TRUE(prp(0x5800, kBase + 0x808, 2 * 4096 + 512).ok());
  EXPECT_EQ(pieces, (Pieces{{0x5800, 2048}, {0x100000, 4096}, {0x102000, 2560}}));
}

TEST_F(DataList, ListThatJustFillsItsPageHasNoChain) {
  put_list(kBase + 0xff0, 2);
  EXPECT_TRUE(prp(0x5000, kBase + 0xff0, 3 * 4096).ok());
  EXPECT_EQ(pieces, (Pieces{{0x5000, 4096}, {0x100000, 4096}, {0x102000, 4096}}));
}

TEST_F(DataList, LastEntryOfAFullPageLeadsToTheNext) {
  put_list(kBase + 0xff0, 1);
  memory.put(kBase + 0xff8, Le64(kBase + 0x2000));
  put_list(kBase + 0x2000, 2, 0x200);
  EXPECT_TRUE(prp(0x5000, kBase + 0xff0, 4 * 4096).ok());
  EXPECT_EQ(pieces, (Pieces{{0x5000, 4096}, {0x100000, 4096}, {0x200000, 4096}, {0x202000, 4096}}));
  // Also when it is the only one.
  memory.put(kBase + 0xff8, Le64(kBase + 0x2000));
  EXPECT_TRUE(prp(0x5000, kBase + 0xff8, 3 * 4096).ok());
  EXPECT_EQ(pieces, (Pieces{{0x5000, 4096}, {0x200000, 4096}, {0x202000, 4096}}));
  memory.put(kBase + 0xff8, Le64(kBase + 0x2008));
  EXPECT_EQ(prp(0x5000, kBase + 0xff8, 3 * 4096), final_status(StatusCode::kPrpOffsetInvalid));
}

TEST_F(DataList, LongListsAreReadWhole) {
  put_list(kBase, 256);
  EXPECT_TRUE(prp(0x5000, kBase, 257 * 4096).ok());
  ASSERT_EQ(pieces.size(), 257u);
  for (size_t i = 0; i < 256; ++i) {
    EXPECT_EQ(pieces[i + 1], (HostPiece{(0x100 + 2 * i) * 4096, 4096}));
  }
}

TEST_F(DataList, ListsOutsideMemoryAreTransferErrors) {
  const Status error = final_status(StatusCode::kDataTransferError);
  EXPECT_EQ(prp(0x5000, 0x7000, 3 * 4096), error);
  EXPECT_EQ(prp(0x5000, kBase + 0xfff8, 3 * 4096), error) << "the chain leads to address 0";
  EXPECT_EQ(prp(0x5000, UINT64_MAX - 7, 3 * 4096), error);
}

TEST_F(DataList, LargePagesAreWholePieces) {
  EXPECT_TRUE(prp(0x18000, 0x40000, 65536, 65536).ok());
  EXPECT_EQ(pieces, (Pieces{{0x18000, 32768}, {0x40000, 32768}}));
  EXPECT_EQ(prp(0x10000, 0x41000, 2 * 65536, 65536), final_status(StatusCode::kPrpOffsetInvalid));
}

TEST_F(DataList, PieceAtTheLastAddressIsNotJoined) {
  EXPECT_TRUE(prp(UINT64_MAX - 4095, 0, 8192).ok());
  EXPECT_EQ(pieces, (Pieces{{UINT64_MAX - 4095, 4096}, {0, 4096}}));
}

TEST_F(DataList, DataBlockIsOnePiece) {
  EXPECT_TRUE(sgl(SglDescriptor::data(0x5001, 1024), 1024).ok()) << "no alignment is asked for";
  EXPECT_EQ(pieces, (Pieces{{0x5001, 1024}}));
  EXPECT_TRUE(sgl(SglDescriptor::data(0x5001, 1024), 1024, Psdt::kSglMetadataSgl).ok());
  EXPECT_EQ(sgl(SglDescriptor::data(0x5000, 1024), 512),
            final_status(StatusCode::kDataSglLengthInvalid));
  EXPECT_EQ(sgl(SglDescriptor::data(0x5000, 512), 1024),
            final_status(StatusCode::kDataSglLengthInvalid));
  EXPECT_EQ(sgl(SglDescriptor::data(0x5000, 512), 512, Psdt::kReserved),
            final_status(StatusCode::kInvalidField));
}

TEST_F(DataList, SglMayBeLongerWhereThatIsAllowed) {
  memory.put(kBase, SglDescriptor::data(0x5000, 512));
  memory.put(kBase + 16, SglDescriptor::data(0x7000, 512));
  Sqe sqe;
  sqe.set_psdt(Psdt::kSgl);
  sqe.sgl1 = segment(kBase, 32, SglId::kLastSegment);
  EXPECT_TRUE(find_data(sqe, {.bytes = 600, .may_be_longer = true}, memory, pieces).ok());
  EXPECT_EQ(pieces, (Pieces{{0x5000, 512}, {0x7000, 88}}));
  EXPECT_TRUE(find_data(sqe, {.bytes = 512, .may_be_longer = true}, memory, pieces).ok());
  EXPECT_EQ(pieces, (Pieces{{0x5000, 512}}));
  EXPECT_EQ(find_data(sqe, {.bytes = 1025, .may_be_longer = true}, memory, pieces),
            final_status(StatusCode::kDataSglLengthInvalid));
}

TEST_F(DataList, OtherDescriptorsAreRefused) {
  for (const int id : {0x01, 0x10, 0x40, 0x4f, 0x5a, 0x21, 0x31, 0xf0}) {
    EXPECT_EQ(sgl(segment(kBase, 16, SglId(id)), 16),
              final_status(StatusCode::kSglDescriptorTypeInvalid))
        << id;
  }
}

TEST_F(DataList, SegmentsLeadOnUntilTheLast) {
  memory.put(kBase, SglDescriptor::data(0x5000, 512));
  memory.put(kBase + 16, SglDescriptor::data(0x7000, 0));
  memory.put(kBase + 32, segment(kBase + 0x1000, 32, SglId::kLastSegment));
  memory.put(kBase + 0x1000, SglDescriptor::data(0x5200, 100));
  memory.put(kBase + 0x1010, SglDescriptor::data(0x9000, 412));
  EXPECT_TRUE(sgl(segment(kBase, 48), 1024).ok());
  EXPECT_EQ(pieces, (Pieces{{0x5000, 612}, {0x9000, 412}}));
}

TEST_F(DataList, BadSegmentsAreRefused) {
  const Status invalid = final_status(StatusCode::kInvalidSglSegment);
  EXPECT_EQ(sgl(segment(kBase, 0), 16), invalid) << "empty";
  EXPECT_EQ(sgl(segment(kBase, 24), 16), invalid) << "half a descriptor";
  memory.put(kBase, SglDescriptor::data(0x5000, 16));
  EXPECT_EQ(sgl(segment(kBase, 16), 16), invalid) << "not the last one, yet it leads nowhere";
  memory.put(kBase, segment(kBase, 16, SglId::kLastSegment));
  EXPECT_EQ(sgl(segment(kBase, 16, SglId::kLastSegment), 16), invalid) << "the last one leads on";
  EXPECT_EQ(sgl(segment(0x5000, 16, SglId::kLastSegment), 16),
            final_status(StatusCode::kDataTransferError));
}

TEST_F(DataList, SegmentsThatNeverEndAreCounted) {
  memory.put(kBase, segment(kBase, 16));
  EXPECT_EQ(sgl(segment(kBase, 16), 16), final_status(StatusCode::kInvalidSglCount));
  EXPECT_EQ(sgl(segment(kBase, 0xffff'fff0, SglId::kLastSegment), 16),
            final_status(StatusCode::kInvalidSglCount));
}

}  // namespace
}  // namespace cairn::nvme
