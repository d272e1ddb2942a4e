// SPDX-License-Identifier: Apache-2.0
// docs/gone.md has more, and docs/guide.md#gone.
#pragma once
