// SPDX-License-Identifier: Apache-2.0
//
// The style sheet of the HTML report: light, dark and print.  Nothing in it is fetched.

#pragma once

namespace bench {

extern const char kHtmlStyle[];

}  // namespace bench
