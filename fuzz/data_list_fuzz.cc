// SPDX-License-Identifier: Apache-2.0
// Any data pointer over any memory: a list of pieces that add up, or a refusal; and every list
// ends.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "input.h"
#include "nvme/controller/pci_registers.h"
#include "nvme/format/data_list.h"
#include "nvme/format/limits.h"

namespace cairn::nvme {
namespace {

// The input again and again, so that lists may lead anywhere; every seventh page is missing.
class Memory final : public HostMemory {
 public:
  explicit Memory(Bytes bytes) : bytes_(bytes) {}
  bool read(uint64_t address, MutableBytes into) const override {
    if (address / 4096 % 7 == 6 || bytes_.empty()) return false;
    for (std::byte& byte : into) byte = bytes_[address++ % bytes_.size()];
    return true;
  }

 private:
  Bytes bytes_;
};

void find_any(fuzz::Input input) {
  const auto sqe = input.value<Sqe>();
  const DataShape shape{
      .bytes = input.value<uint32_t>() % kTransferBytesMax + 1,
      .page_size = kPageSizeMin << input.value<uint8_t>() % (PciRegisters::kPageSizeMax + 1)};
  const Memory memory(input.take(8192));
  std::vector<HostPiece> pieces;
  const Status status = find_data(sqe, shape, memory, pieces);
  if (!status.ok()) {
    CHECK(status.do_not_retry());
    return;
  }
  uint64_t bytes = 0;
  for (const HostPiece& piece : pieces) {
    CHECK(piece.length > 0);
    bytes += piece.length;
  }
  CHECK(bytes == shape.bytes);
  CHECK(pieces.size() <= kTransferBytesMax / 4096 + 1 || sqe.psdt() != Psdt::kPrp);
  CHECK(pieces.size() <= kSglDescriptorsMax);
}

}  // namespace
}  // namespace cairn::nvme

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  cairn::nvme::find_any(cairn::fuzz::Input(std::as_bytes(std::span(bytes, size))));
  return 0;
}
