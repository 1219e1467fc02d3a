// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/tail.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

}  // namespace
}  // namespace launcher
