#include "rushlight/llm/template/builtins/clock.h"

#include <cstdio>
#include <ctime>

namespace rushlight::llm {
namespace {

constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                   "May",       "June",     "July",     "August",
                                   "September", "October",  "November", "December"};
constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};

std::tm time_of(int64_t seconds) {
  std::tm time = {};
  const bool is_now = seconds < 0;
  const std::time_t moment = is_now ? std::time(nullptr) : static_cast<std::time_t>(seconds);
#if defined(_WIN32)
  is_now ? localtime_s(&time, &moment) : gmtime_s(&time, &moment);
#else
  is_now ? localtime_r(&moment, &time) : gmtime_r(&moment, &time);
#endif
  return time;
}

std::string digits(int number, int width, bool plain, char fill = '0') {
  char text[16];
  std::snprintf(text, sizeof text,
                plain         ? "%d"
                : fill == ' ' ? "%*d"
                              : "%0*d",
                plain ? number : width, number);
  return text;
}

// What one directive stands for; empty if it is not known. `plain`: without leading zeros ("%-d").
std::string directive(const std::tm& time, char name, bool plain) {
  const int hour = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
  switch (name) {
    case 'Y':
      return digits(time.tm_year + 1900, 4, plain);
    case 'y':
      return digits(time.tm_year % 100, 2, plain);
    case 'm':
      return digits(time.tm_mon + 1, 2, plain);
    case 'd':
      return digits(time.tm_mday, 2, plain);
    case 'e':
      return digits(time.tm_mday, 2, plain, ' ');
    case 'H':
      return digits(time.tm_hour, 2, plain);
    case 'I':
      return digits(hour, 2, plain);
    case 'M':
      return digits(time.tm_min, 2, plain);
    case 'S':
      return digits(time.tm_sec, 2, plain);
    case 'j':
      return digits(time.tm_yday + 1, 3, plain);
    case 'u':
      return digits(time.tm_wday == 0 ? 7 : time.tm_wday, 1, plain);
    case 'w':
      return digits(time.tm_wday, 1, plain);
    case 'p':
      return time.tm_hour < 12 ? "AM" : "PM";
    case 'B':
      return kMonths[time.tm_mon];
    case 'b':
    case 'h':
      return std::string(kMonths[time.tm_mon]).substr(0, 3);
    case 'A':
      return kDays[time.tm_wday];
    case 'a':
      return std::string(kDays[time.tm_wday]).substr(0, 3);
    case '%':
      return "%";
    case 'n':
      return "\n";
    case 't':
      return "\t";
    default:
      return "";
  }
}

}  // namespace

bool format_time(StringView format, int64_t seconds, std::string* out) {
  const std::tm time = time_of(seconds);
  const std::string text(format.data(), format.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out->push_back(text[i]);
      continue;
    }
    const bool plain = i + 1 < text.size() && text[i + 1] == '-';
    const size_t at = i + (plain ? 2 : 1);
    const char name = at < text.size() ? text[at] : '\0';
    if (name == 'F' || name == 'T' || name == 'D' || name == 'R') {
      const char* full = name == 'F'   ? "%Y-%m-%d"
                         : name == 'T' ? "%H:%M:%S"
                         : name == 'D' ? "%m/%d/%y"
                                       : "%H:%M";
      format_time(full, seconds, out);
    } else {
      const std::string part = directive(time, name, plain);
      if (part.empty()) {
        *out = text.substr(i, at + 1 - i);
        return false;
      }
      out->append(part);
    }
    i = at;
  }
  return true;
}

}  // namespace rushlight::llm
