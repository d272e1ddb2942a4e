// SPDX-License-Identifier: Apache-2.0
// std::unique_ptr<EVP_MD, With<EVP_MD_free>>: objects of a C library, freed its way.
#pragma once

namespace cairn::crypto {

template <auto Free>
struct With {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

}  // namespace cairn::crypto
