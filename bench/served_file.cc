// SPDX-License-Identifier: Apache-2.0
#include "bench/served_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "base/rng.h"
#include "base/units.h"

namespace cairn::bench {

Result<void> make_served_file(const std::string& path, uint64_t size) {
  std::ofstream file(path, std::ios::binary);
  Rng rng(1);
  std::vector<uint64_t> chunk(1_MiB / sizeof(uint64_t));
  for (uint64_t at = 0; at < size && file; at += 1_MiB) {
    for (uint64_t& word : chunk) word = rng.next();
    file.write(reinterpret_cast<const char*>(chunk.data()), 1_MiB);
  }
  file.close();
  if (!file) return fail(Errc::kIo, "write the file that is served");
  return {};
}

Result<void> write_back(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(Error::from_errno(errno, "open the file that is served"));
  const int synced = ::fsync(file);
  const int problem = errno;
  ::close(file);
  if (synced != 0) return fail(Error::from_errno(problem, "write back the file that is served"));
  return {};
}

}  // namespace cairn::bench
