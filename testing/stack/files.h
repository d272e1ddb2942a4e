// SPDX-License-Identifier: Apache-2.0
// Leaves for tests whose services name files.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "crypto/base64.h"
#include "service/integrity/encrypt.h"
#include "stack/services.h"
#include "stack/stack.h"
#include "testing/drive/modelled.h"

namespace cairn::drive {

// Sources, whose modelled drives are all a small_ssd(), and files that are in memory.
class LeavesWithFiles final : public SourceLeaves {
 public:
  explicit LeavesWithFiles(std::map<std::string, std::string> files)
      : SourceLeaves(parse_small), files_(std::move(files)) {}
  std::expected<FileContent, std::string> read_file(const std::string& path) override {
    const auto found = files_.find(path);
    if (found == files_.end()) return std::unexpected("there is no file '" + path + "'");
    return FileContent(as_bytes(found->second));
  }
  bool may_format() const override { return formats; }
  bool formats = false;

 private:
  static std::expected<Spec, std::string> parse_small(std::string_view text) {
    std::expected<Spec, std::string> spec = Spec::parse(text);
    if (spec) spec->flash = std::make_shared<const flash::Parameters>(small_ssd());
    return spec;
  }

  std::map<std::string, std::string> files_;
};

// A drive under the service, with its data in a file `name`; the service has 4 MiB or more of it.
inline std::string testing_leaf(const Service& service, const std::string& name) {
  if (service.leaf_only == "flash:") return "flash:profile=small,file=" + name + ",size=8M";
  return "file:" + name + ",size=4M";
}

// The text of a key file, another for each number.
inline std::string testing_key(uint8_t number) {
  std::vector<std::byte> key(kDriveKeySize, std::byte{number});
  key[0] = std::byte{0xa5};
  return crypto::to_base64(key);
}

}  // namespace cairn::drive
