// SPDX-License-Identifier: Apache-2.0
// `cairn drive key new`: a key for drives that encrypt.
#include <memory>
#include <string>

#include "apps/nvme/key_maker.h"
#include "crypto/base64.h"
#include "service/integrity/encrypt.h"

namespace cairn::apps {

namespace {

class DriveKeyCommand final : public KeyMaker {
 public:
  explicit DriveKeyCommand(CLI::App& app) {
    add_options(app, "FILE");
    set_examples(app, {"cairn drive key new drive.key"});
  }

 private:
  std::string make(env::Env& env) override {
    drive::DriveKey key(drive::kDriveKeySize);
    env.fill_secret(key.mutable_bytes());
    return crypto::to_base64(key.bytes());
  }
};

}  // namespace

std::unique_ptr<Command> make_drive_key_new(CLI::App& app) {
  return std::make_unique<DriveKeyCommand>(app);
}

}  // namespace cairn::apps
