// SPDX-License-Identifier: Apache-2.0
namespace {
struct Tail {
  uint32_t checksum;
};
}  // namespace

void seal(MutableBytes to) { store(to.last(4), Tail{.checksum = 1}); }
const Tail* tail_of(Bytes bytes) { return reinterpret_cast<const Tail*>(bytes.data()); }
