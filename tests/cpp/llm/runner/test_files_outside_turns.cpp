// Files of sessions are read and written while other texts go on. The linker wraps open, with which
// a store of files begins, and fsync (see CMakeLists.txt): there, another thread must have its
// turn.
#include <fcntl.h>

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <future>
#include <vector>

#include "check.h"
#include "fake_runner.h"

extern "C" {
int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...);
int __real_fsync(int file);
int __wrap_fsync(int file);
}

namespace {

rushlight::llm::Session* g_other = nullptr;  // what the other thread uses; nullptr: nothing
size_t g_turns = 0;
size_t g_flushes = 0;

void let_the_other_have_a_turn() {
  if (g_other == nullptr) return;
  // They are waited for at the end, so that a thread without a turn is a failure and no hang.
  static std::vector<std::future<size_t>> threads;
  threads.push_back(std::async(std::launch::async, [] { return g_other->cached(); }));
  if (threads.back().wait_for(std::chrono::seconds(10)) == std::future_status::ready) ++g_turns;
}

}  // namespace

int __wrap_fsync(int file) {
  ++g_flushes;
  let_the_other_have_a_turn();
  return __real_fsync(file);
}

int __wrap_open(const char* path, int flags, ...) {
  let_the_other_have_a_turn();
  if ((flags & O_CREAT) == 0) return __real_open(path, flags);
  va_list rest;
  va_start(rest, flags);
  const auto mode = va_arg(rest, mode_t);
  va_end(rest);
  return __real_open(path, flags, mode);
}

using namespace rushlight;
using namespace rushlight::test;

int main() {
  const char* const path = "test_files_outside_turns.session";
  Setup setup;
  Message message;
  std::unique_ptr<Session> session = setup.runner.new_session();
  std::unique_ptr<Session> other = setup.runner.new_session();
  auto generation = session->generate(view(prompt_of(1, 100)), greedy(5), &message);
  read_all(**generation);
  g_other = other.get();
  CHECK(session->save(path, &message).ok());
  const size_t turns = g_turns;
  CHECK(turns > g_flushes && g_flushes == 2);  // of the file and its folder
  auto restored = setup.runner.restore(path, &message);
  CHECK(restored.ok() && (*restored)->cached() == 64 && session->cached() == 104);
  CHECK(g_turns > turns);
  g_other = nullptr;
  std::remove(path);
  return check_result();
}
