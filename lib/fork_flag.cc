// SPDX-License-Identifier: Apache-2.0
#include "lib/fork_flag.h"

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace cairn::capi {

namespace {

constexpr size_t kPageSize = 4096;

}  // namespace

ForkFlag ForkFlag::make() {
  ForkFlag flag;
  void* page =
      ::mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return flag;
  if (::madvise(page, kPageSize, MADV_WIPEONFORK) != 0) {
    ::munmap(page, kPageSize);
    return flag;
  }
  flag.page_.reset(new (page) bool(true));
  return flag;
}

void ForkFlag::Unmap::operator()(bool* page) const { ::munmap(page, kPageSize); }

}  // namespace cairn::capi
