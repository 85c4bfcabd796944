#include "rushlight/llm/grammar/schema/formats.h"

namespace rushlight::llm::grammar {
namespace {

// Days of each month; the 29th of February in leap years only; no year 0000.
#define RL_DATE                                                                                    \
  "(?:(?:000[1-9]|00[1-9]\\d|0[1-9]\\d\\d|[1-9]\\d{3})-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|"   \
  "3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))|(?:\\d\\d(?:0[48]|[2468]" \
  "[048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29)"
#define RL_TIME \
  "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"
#define RL_BYTE "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define RL_IPV4 "(?:" RL_BYTE "\\.){3}" RL_BYTE
#define RL_H16 "[0-9A-Fa-f]{1,4}"
#define RL_LS32 "(?:" RL_H16 ":" RL_H16 "|" RL_IPV4 ")"
#define RL_LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define RL_HOST "(?:" RL_LABEL "\\.){0,8}" RL_LABEL
#define RL_ATEXT "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define RL_URI_CHAR "(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})"

struct Format {
  const char* name;
  const char* pattern;
};

constexpr Format kFormats[] = {
    {"date-time", RL_DATE "T" RL_TIME},
    {"date", RL_DATE},
    {"time", RL_TIME},
    {"duration",
     "P(?:\\d+W|(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)(?:T(?:\\d+H(?:\\d+M(?:\\d+S)?)?"
     "|"
     "\\d+M(?:\\d+S)?|\\d+S))?|T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))"},
    {"email", RL_ATEXT "(?:\\." RL_ATEXT ")*@" RL_LABEL "(?:\\." RL_LABEL "){1,8}"},
    {"hostname", RL_HOST},
    {"ipv4", RL_IPV4},
    {"ipv6",
     "(?:" RL_H16 ":){6}" RL_LS32 "|::(?:" RL_H16 ":){5}" RL_LS32 "|(?:" RL_H16 ")?::(?:" RL_H16
     ":){4}" RL_LS32 "|(?:(?:" RL_H16 ":){0,1}" RL_H16 ")?::(?:" RL_H16 ":){3}" RL_LS32
     "|(?:(?:" RL_H16 ":){0,2}" RL_H16 ")?::(?:" RL_H16 ":){2}" RL_LS32 "|(?:(?:" RL_H16
     ":){0,3}" RL_H16 ")?::" RL_H16 ":" RL_LS32 "|(?:(?:" RL_H16 ":){0,4}" RL_H16 ")?::" RL_LS32
     "|(?:(?:" RL_H16 ":){0,5}" RL_H16 ")?::" RL_H16 "|(?:(?:" RL_H16 ":){0,6}" RL_H16 ")?::"},
    {"uuid", "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"},
    {"uri", "[A-Za-z][A-Za-z0-9+.-]*:" RL_URI_CHAR "*(?:\\?(?:" RL_URI_CHAR
            "|\\?)*)?(?:#(?:" RL_URI_CHAR "|\\?)*)?"},
};

}  // namespace

const char* format_pattern(StringView name) {
  for (const Format& format : kFormats) {
    if (name == StringView(format.name)) return format.pattern;
  }
  return nullptr;
}

const char* format_names() {
  return "date-time, date, time, duration, email, hostname, ipv4, ipv6, uuid and uri";
}

}  // namespace rushlight::llm::grammar
