// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/big_drive.h"

#include <optional>
#include <utility>

#include "drive/modelled_drive.h"
#include "model/flash/scale.h"

namespace cairn::bench::leapio {

namespace {

class PartOfDrive final : public drive::Source {
 public:
  PartOfDrive(std::unique_ptr<drive::Source> data, std::unique_ptr<drive::ModelledMedium> medium)
      : data_(std::move(data)), medium_(std::move(medium)) {}

  Result<std::unique_ptr<drive::Drive>> open(env::Env& env) override {
    Result<std::unique_ptr<drive::Drive>> below = data_->open(env);
    if (!below) return below;
    return drive::ModelledDrive::make(env, std::move(*below), *medium_);
  }
  const drive::ModelledMedium* modelled() const override { return medium_.get(); }

 private:
  std::unique_ptr<drive::Source> data_;
  std::unique_ptr<drive::ModelledMedium> medium_;
};

}  // namespace

Result<std::unique_ptr<drive::Source>> make_part(env::Env& env, const Part& part) {
  const std::optional<flash::Parameters> scaled = flash::scaled_to(*part.drive, part.drive_bytes);
  if (!scaled) return fail(Errc::kInvalid, "the profile's drive is smaller than the scene's");
  drive::Spec memory;
  memory.size = part.bytes;
  Result<std::unique_ptr<drive::Source>> data = drive::Source::make(env, memory);
  if (!data) return data;
  Result<std::unique_ptr<drive::ModelledMedium>> medium =
      drive::ModelledMedium::make(env, *scaled, {.occupancy = part.occupancy, .written = {}});
  if (!medium) return fail(medium.error());
  return std::make_unique<PartOfDrive>(std::move(*data), std::move(*medium));
}

}  // namespace cairn::bench::leapio
