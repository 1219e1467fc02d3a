// SPDX-License-Identifier: Apache-2.0
//
// The kinds of commands and options that ddlbench has.  Pure.

#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/ddlbench/options.h"

namespace bench {

inline CLI::App* AddCommand(CLI::App& app, BenchOptions& options, BenchCommand command,
                            const std::string& name, const std::string& description) {
  CLI::App* subcommand = app.add_subcommand(name, description);
  subcommand->parse_complete_callback([&options, command] { options.command = command; });
  return subcommand;
}

template <typename Number>
void AddNumber(CLI::App* subcommand, const std::string& name, Number& number,
               const std::string& help) {
  subcommand->add_option(name, number, help)->capture_default_str()->type_name("N");
}

// Words with commas between them.
template <typename Word>
CLI::Option* AddList(CLI::App* subcommand, const std::string& name, std::vector<Word>& words,
                     const std::string& shape, const std::string& help) {
  std::string given;
  for (const Word& word : words) {
    if (!given.empty()) given += ",";
    if constexpr (std::is_integral_v<Word>) {
      given += std::to_string(word);
    } else {
      given += word;
    }
  }
  return subcommand->add_option(name, words, help)
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str(given)
      ->type_name(shape);
}

// One argument each time it is given, whatever it looks like.
inline void AddArguments(CLI::App* subcommand, const std::string& name,
                         std::vector<std::string>& words, const std::string& help) {
  subcommand->add_option(name, words, help)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("ARG");
}

}  // namespace bench
