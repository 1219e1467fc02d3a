// SPDX-License-Identifier: Apache-2.0
//
// The site file that ddlrun --tune writes: the one that the job had, with what was found to be
// better instead of what it said, and the figures as comments.  Pure.

#pragma once

#include <string>
#include <vector>

#include "launcher/cli/site_config.h"
#include "launcher/tune/trials.h"

namespace launcher {

struct TunedSite {
  std::vector<std::string> head;     // of the file, each a comment: what was measured, when, where
  std::vector<KnobResult> results;   // in the order in which they were tried
  std::vector<std::string> remarks;  // at the end: slow links, start-up
};

// What the results have chosen, together.
Change ChosenBy(const std::vector<KnobResult>& results);

// `old_text` is that of the file of `site`, "" for none; its comments stay.  Throws
// LaunchError(EX_CONFIG) where its form is none to which keys can be added: all in braces.
std::string TunedSiteText(const TunedSite& tuned, const SiteConfig& site,
                          const std::string& old_text);

// Throws LaunchError(EX_CONFIG) as TunedSiteText does, before anything is measured.
void CheckCanBeTuned(const SiteConfig& site, const std::string& old_text);

}  // namespace launcher
