// One opened program: the C++ module, the bytes it lies in, its lock, and a runner per method.
// Python objects share it; it goes with the last of them.
//
// Threads. Methods of a module share arenas and state, so one call runs at a time: it holds the
// module's lock. Who waits for the lock lets go of the GIL first, and the GIL is let go while a
// method runs, so the two cannot wait for each other.
//
// Forks. A module that another thread ran when the process was forked is made anew in the child, as
// clone() makes one, when it is used there first; what that thread was doing is never touched
// again. Only its state is lost, and is to be set before it runs.
#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "arrays/lent.h"
#include "failure.h"
#include "method/runner.h"
#include "program/session_lock.h"
#include "program/session_trace.h"
#include "rushlight/module/module.h"

namespace rushlight::python {

struct Source {
  nb::object path;  // bytes for the file system, or None
  nb::object data;  // a bytes object, or None
};

// The options for backends of one load, with the memory that they lie in.
class OptionStore {
 public:
  // From [(backend, method or "", [(key, bool | int | str)])]. Throws a Failure if a limit is
  // broken.
  static std::shared_ptr<const OptionStore> of(nb::list options);
  const BackendOptionsMap& map() const { return map_; }

 private:
  StringView keep(const std::string& text);

  std::deque<std::string> texts_;
  std::deque<std::vector<BackendOption>> lists_;
  BackendOptionsMap map_;
};

struct SessionOptions {
  uint64_t memory_limit = 0;
  TraceOptions trace;
  size_t threads = 0;
  bool check_backends = checks_backends_by_default();
  bool map = true;
  bool guard = false;
  std::vector<std::string> kernels;  // paths of libraries
  std::string failure_report;        // the path for reports of failures; empty: there are none
};

// A session's report of failures, and the path of its file, which Python writes.
struct SessionReport {
  std::string path;
  FailureReport report;

  // Moves what was reported since the last call into `failure`.
  void take(Failure& failure);
};

class Session {
 public:
  // Opens a program and, if there is one, its data file. Throws a Failure.
  static std::shared_ptr<Session> open(const Source& program, const Source& external,
                                       const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The same program with arenas and state of its own.
  std::shared_ptr<Session> clone();
  // Likewise, with the state of this one.
  std::shared_ptr<Session> fork();

  // The runner of a method, which is loaded if it was not. Throws a Failure that lists all that is
  // missing. It lives as long as the session.
  MethodRunner& runner(const std::string& method);
  // For methods that are loaded from now on. Needs the lock.
  void set_backend_options(std::shared_ptr<const OptionStore> options);
  // nullptr if it is not loaded. Needs the lock.
  const Method* loaded_method(const std::string& method) const;

  // Frees everything; calls that come later fail. Waits for one that runs.
  void close();

  // Throws a Failure once the session is closed, and if a guarded file has changed.
  Module& module();
  // nullptr if nothing is traced. Needs the lock.
  SessionTrace* trace() { return trace_.get(); }
  // nullptr if failures are not reported. Needs the lock.
  SessionReport* report() { return report_.get(); }

  // The program's bytes, for as long as somebody holds this. Needs the lock.
  std::shared_ptr<const void> program_memory();
  // A backend kept what was lent to it for a call that runs on this thread: until it is back, the
  // module's memory stays as it is, and with it, from hold() on, what the call was given.
  void lend(Loan loan) { loans_.push_back(std::move(loan)); }
  void hold(std::vector<Argument>& arguments);
  // Throws a Failure if the module must not run: something is lent, or the state is lost.
  void check_ready();
  void check_state() const;
  // All state was given a content.
  void state_is_set() { is_state_lost_ = false; }

 private:
  friend class Turn;

  Session() : lock_(*this) {}
  void make_anew();
  bool is_lent();
  void bury();
  static std::vector<std::unique_ptr<Session>>& graves();
  static void sweep();
  ModuleOptions options(const SessionOptions& from);
  std::shared_ptr<Session> copy(Status (*open)(Module& from, Module& to), bool with_state);
  // `method`: what was asked for; empty if it was no one method.
  [[noreturn]] static void fail_load(const Module& module, Status status, SessionReport* report,
                                     std::string method = {});

  // The module is destroyed first: it points into the others.
  nb::object program_bytes_;
  nb::object external_bytes_;
  // Replaced options stay, because loaded methods may refer to them.
  std::vector<std::shared_ptr<const OptionStore>> backend_options_;
  std::unique_ptr<SessionTrace> trace_;
  std::unique_ptr<SessionReport> report_;
  std::unique_ptr<Module> module_;
  std::vector<std::unique_ptr<MethodRunner>> runners_;
  std::shared_ptr<const void> program_memory_;
  std::vector<std::vector<Argument>> held_;
  std::vector<Loan> loans_;
  bool is_state_lost_ = false;
  SessionLock lock_;
};

// Holds the session's lock. Made with the GIL held; throws a Failure if this thread has the lock
// already (a finaliser that calls the module whose results are being made), or if it is closed.
class Turn {
 public:
  enum class For { Use, Closing };  // who closes takes the module as it is

  explicit Turn(Session& session, For purpose = For::Use);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Session& session_;
};

}  // namespace rushlight::python
