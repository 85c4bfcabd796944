// What the runtime asks of the machine it runs on: a clock, a place for log lines, a way to stop,
// and to give memory back. Each has a default (on a bare machine: a clock that stands still, no
// log, a trap, nothing given back). A program that wants others calls set_platform() once, before
// anything else of Rushlight; there are no global constructors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rushlight {

enum class LogLevel : uint8_t { Debug, Info, Warning, Error };

struct Platform {
  uint64_t (*now_ns)();                                          // monotonic; any origin
  void (*log)(LogLevel level, const char* text, size_t length);  // one line, without its end
  void (*abort)();                                               // must not return
  void (*release_pages)(void* begin, void* end);
};

// Replaces the functions that are not nullptr. Not for use while another thread runs a method.
void set_platform(const Platform& platform);

uint64_t now_ns();
void log_line(LogLevel level, const char* text, size_t length);
// For bugs of our own; nothing that comes from a file, a model or an input leads here.
[[noreturn]] void abort_program();
// Gives back the whole pages of memory of one's own: what lies there is lost, and costs no memory
// until it is touched again.
void release_pages(void* begin, void* end);

}  // namespace rushlight
