// Files of sessions are read and written while other texts go on. The linker wraps fopen (see
// CMakeLists.txt), with which a store of files begins: there, another thread must have its turn.
#include <chrono>
#include <cstdio>
#include <future>
#include <vector>

#include "check.h"
#include "fake_runner.h"

extern "C" {
std::FILE* __real_fopen(const char* path, const char* mode);
std::FILE* __wrap_fopen(const char* path, const char* mode);
}

namespace {

rushlight::llm::Session* g_other = nullptr;  // what the other thread uses; nullptr: nothing
size_t g_turns = 0;

}  // namespace

std::FILE* __wrap_fopen(const char* path, const char* mode) {
  if (g_other != nullptr) {
    // They are waited for at the end, so that a thread without a turn is a failure and no hang.
    static std::vector<std::future<size_t>> threads;
    threads.push_back(std::async(std::launch::async, [] { return g_other->cached(); }));
    if (threads.back().wait_for(std::chrono::seconds(10)) == std::future_status::ready) ++g_turns;
  }
  return __real_fopen(path, mode);
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
  CHECK(turns > 0);
  auto restored = setup.runner.restore(path, &message);
  CHECK(restored.ok() && (*restored)->cached() == 64 && session->cached() == 104);
  CHECK(g_turns > turns);
  g_other = nullptr;
  std::remove(path);
  return check_result();
}
