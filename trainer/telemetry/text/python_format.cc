// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/text/python_format.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/number.h"

namespace trainer {
namespace {

// `digits` d1 d2 ... with the decimal point behind the first, times 10^exponent.
std::string Layout(const std::string& digits, int exponent) {
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {  // float.__repr__'s limits of positional notation
    std::string text = digits.substr(0, 1);
    if (count > 1) text.append(".").append(digits, 1);
    const std::string power = std::to_string(std::abs(exponent));
    text.append(exponent < 0 ? "e-" : "e+");
    if (power.size() < 2) text.append("0");
    return text.append(power);
  }
  const auto zeros = [](int number) { return std::string(static_cast<std::size_t>(number), '0'); };
  if (exponent < 0) return "0." + zeros(-exponent - 1) + digits;
  if (exponent >= count - 1) return digits + zeros(exponent - count + 1) + ".0";
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  return digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string JsonText(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/true,
                                   nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string PythonFloat(double value) {
  if (std::isnan(value)) return "nan";
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return sign + "inf";
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof text, std::fabs(value), std::chars_format::scientific).ptr;
  const std::string scientific(text, end);  // "3.651e+02", "5e-324"
  const std::size_t power = scientific.find('e');
  std::string digits = scientific.substr(0, power);
  if (digits.size() > 1) digits.erase(1, 1);
  const std::size_t exponent = power + (scientific[power + 1] == '+' ? 2 : 1);
  return sign + Layout(digits, support::WholeNumber<int>(scientific.substr(exponent)).value());
}

std::string PythonString(const LogValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return std::to_string(*number);
  if (const auto* real = std::get_if<double>(&value)) return PythonFloat(*real);
  return std::get<std::string>(value);
}

std::string PythonJson(const LogValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&value)) return JsonText(*text);
  if (const auto* real = std::get_if<double>(&value)) {
    if (std::isnan(*real)) return "NaN";
    if (std::isinf(*real)) return *real < 0 ? "-Infinity" : "Infinity";
  }
  return PythonString(value);
}

std::string PythonJson(const LogFields& fields) {
  std::string text = "{";
  for (const auto& [key, value] : fields) {
    if (text.size() > 1) text += ", ";
    text.append(JsonText(key)).append(": ").append(PythonJson(value));
  }
  return text + "}";
}

}  // namespace trainer
