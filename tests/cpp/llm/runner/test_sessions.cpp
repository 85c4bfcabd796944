// Sessions: what is forked, rewound, saved and shifted goes on as the model alone would.
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "check.h"
#include "fake_runner.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

Tokens go_on(Session& session, const Tokens& prompt, const GenerateOptions& options) {
  Message message;
  auto generation = session.generate(view(prompt), options, &message);
  CHECK(generation.ok());
  return generation.ok() ? read_all(**generation) : Tokens();
}

Tokens tokens_of(Session& session) {
  Message message;
  auto tokens = session.tokens(&message);
  CHECK(tokens.ok());
  return tokens.ok() ? *tokens : Tokens();
}

Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void test_fork_and_rewind(size_t pages) {
  Setup setup({}, pages);
  Message message;
  std::unique_ptr<Session> session = setup.runner.new_session();
  const Tokens prompt = prompt_of(1, 100);
  const Tokens first = go_on(*session, prompt, greedy(50));
  Tokens text = joined(prompt, first);
  CHECK(first == setup.expected(prompt, 50) && tokens_of(*session) == text);
  auto fork = session->fork(&message);
  CHECK(fork.ok());
  const Tokens more = prompt_of(2, 30);
  CHECK(go_on(**fork, more, greedy(40)) == setup.expected(joined(text, more), 40));
  CHECK(go_on(*session, {}, greedy(40)) == setup.expected(text, 40));
  CHECK(session->rewind(60, &message).ok());
  text.resize(130);
  CHECK(tokens_of(*session) == text);
  CHECK(go_on(*session, more, greedy(40)) == setup.expected(joined(text, more), 40));
  CHECK(session->rewind(1000, &message).code() == Code::InvalidArgument);
  // Another text keeps the cache of what is equal.
  text = joined(prompt, prompt_of(9, 40));
  CHECK(session->set_tokens(view(text), &message).ok());
  CHECK(session->cached() <= 100u && (pages != 0 || session->cached() == 100u));
  CHECK(go_on(*session, {}, greedy(10)) == setup.expected(text, 10));
  fork->reset();
  session.reset();
  setup.runner.scheduler().tree().clear();
  CHECK(setup.runner.scheduler().pool().pages() == 0);
}

void test_forks_share_pages() {
  Setup setup;
  Message message;
  std::unique_ptr<Session> session = setup.runner.new_session();
  go_on(*session, prompt_of(1, 400), greedy(10));
  setup.runner.scheduler().tree().clear();
  const size_t pages = setup.runner.scheduler().pool().pages();
  std::vector<std::unique_ptr<Session>> forks;
  for (int i = 0; i < 10; ++i) forks.push_back(std::move(*session->fork(&message)));
  CHECK(setup.runner.scheduler().pool().pages() == pages);
  for (auto& fork : forks) go_on(*fork, {}, greedy(3));
  setup.runner.scheduler().tree().clear();
  CHECK(setup.runner.scheduler().pool().pages() == pages + 10);  // each wrote one page
}

void test_one_text_at_a_time() {
  Setup setup;
  Message message;
  std::unique_ptr<Session> session = setup.runner.new_session();
  auto generation = session->generate(view(prompt_of(1, 10)), greedy(20), &message);
  CHECK(session->generate(view(prompt_of(1, 10)), greedy(20), &message).status().code() ==
        Code::InvalidState);
  CHECK(session->rewind(1, &message).code() == Code::InvalidState);
  CHECK(session->fork(&message).status().code() == Code::InvalidState);
  read_all(**generation);
  CHECK(session->rewind(1, &message).ok());
}

// A text that replaces the session's; refused calls leave that as it was.
void test_generate_after() {
  Setup setup;
  Message message;
  std::unique_ptr<Session> session = setup.runner.new_session();
  const Tokens prompt = prompt_of(1, 100);
  const Tokens text = joined(prompt, go_on(*session, prompt, greedy(10)));
  const Tokens other = joined(prompt, prompt_of(2, 30));
  GenerateOptions wrong = greedy(5);
  wrong.guesses = 9;
  CHECK(session->generate_after(view(other), wrong, &message).status().code() ==
        Code::InvalidArgument);
  CHECK(std::strstr(message.text(), "guesses is 9; it must be from 0 to 8") != nullptr);
  CHECK(session->generate_after(view(prompt_of(2, 600)), greedy(5), &message).status().code() ==
        Code::InvalidArgument);
  CHECK(session->generate_after({}, greedy(5), &message).status().code() == Code::InvalidArgument);
  const Tokens strange = joined(prompt, {5, 1000});
  CHECK(session->generate_after(view(strange), greedy(5), &message).status().code() ==
        Code::InvalidArgument);
  CHECK(std::strstr(message.text(), "token 101 of the prompt is 1000") != nullptr);
  CHECK(tokens_of(*session) == text && session->cached() == 109);
  auto generation = session->generate_after(view(other), greedy(10), &message);
  CHECK(generation.ok() && read_all(**generation) == setup.expected(other, 10));
  CHECK((*generation)->statistics().reused_tokens == 100);
  CHECK(tokens_of(*session) == joined(other, setup.expected(other, 10)));
}

// A session that has as many tokens as the context goes on after a shift.
void test_shift_of_a_full_session() {
  FakeOptions fake;
  fake.context = 100;
  Setup setup(fake);
  Message message;
  std::unique_ptr<Session> session = setup.runner.new_session();
  const Tokens prompt = prompt_of(1, 60), more = prompt_of(2, 10);
  go_on(*session, prompt, greedy(200));
  Tokens text = tokens_of(*session);
  CHECK(text.size() == 100);
  CHECK(session->generate(view(more), greedy(5), &message).status().code() ==
        Code::InvalidArgument);
  GenerateOptions options = greedy(5);
  options.context_full = ContextFull::Shift;
  options.keep = 20;
  // 40 of the 80 behind the first 20 are dropped.
  text.erase(text.begin() + 20, text.begin() + 60);
  text = joined(text, more);
  auto generation = session->generate(view(more), options, &message);
  CHECK(generation.ok() && read_all(**generation) == setup.expected(text, 5));
  CHECK((*generation)->statistics().reused_tokens == 20);
  CHECK((*generation)->statistics().recomputed_tokens == 40);
  // No shift makes room for a prompt that is too long by itself.
  CHECK(session->generate(view(prompt_of(3, 90)), options, &message).status().code() ==
        Code::InvalidArgument);
  CHECK(tokens_of(*session) == joined(text, setup.expected(text, 5)));
}

void test_shift() {
  FakeOptions fake;
  fake.context = 100;
  Setup setup(fake);
  const Tokens prompt = prompt_of(1, 60);
  GenerateOptions options = greedy(200);
  const Tokens stopped = generate(setup.runner, prompt, options);
  CHECK(stopped.size() == 40);
  options.context_full = ContextFull::Shift;
  options.keep = 20;
  // The same by hand: at 100 tokens, 40 of the 80 behind the first 20 are dropped.
  Tokens text = prompt, wanted;
  while (wanted.size() < 200) {
    wanted.push_back(FakeModel::next_of(fake, text));
    text.push_back(wanted.back());
    if (text.size() == 100) text.erase(text.begin() + 20, text.begin() + 60);
  }
  CHECK(generate(setup.runner, prompt, options) == wanted);
}

const char* const kPath = "test_sessions.session";

std::vector<uint8_t> read_file() {
  std::vector<uint8_t> bytes(1 << 20);
  std::FILE* file = std::fopen(kPath, "rb");
  CHECK(file != nullptr);
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  return bytes;
}

Code code_of(Span<const uint8_t> file, const SessionOrigin& origin) {
  SavedSession saved;
  Message message;
  return saved.read(file, origin, &message).code();
}

void test_files() {
  Setup setup;
  Message message;
  std::unique_ptr<Session> session = setup.runner.new_session();
  const Tokens prompt = prompt_of(1, 200);
  const Tokens text = joined(prompt, go_on(*session, prompt, greedy(20)));
  CHECK(session->save(kPath, &message).ok());
  for (const size_t pages : {0, 2, 4}) {  // with room for all, or for some
    Setup other({}, pages);
    auto restored = other.runner.restore(kPath, &message);
    CHECK(restored.ok() && tokens_of(**restored) == text);
    CHECK((*restored)->cached() == (pages == 0 || pages == 4 ? 192u : 128u));  // full pages
    const size_t rows = other.model->rows_total;
    if (pages != 2) CHECK(go_on(**restored, {}, greedy(5)) == setup.expected(text, 5));
    if (pages != 2) CHECK(other.model->rows_total == rows + 220 - 192 + 4);
  }
  // Any damage is found.
  const SessionOrigin origin = {42, 97, 512, setup.runner.facts().cache,
                                setup.runner.facts().page_bytes};
  std::vector<uint8_t> bytes = read_file();
  CHECK(code_of({bytes.data(), bytes.size()}, origin) == Code::Ok);
  SessionOrigin another = origin;
  another.model = 43;
  CHECK(code_of({bytes.data(), bytes.size()}, another) == Code::InvalidExternalData);
  another = origin;
  another.layout.dtype = DType::Float16;
  CHECK(code_of({bytes.data(), bytes.size()}, another) == Code::InvalidExternalData);
  for (size_t size = 0; size < bytes.size(); size += size < 100 ? 1 : 97) {
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<long>(size));
    CHECK(code_of({cut.data(), cut.size()}, origin) == Code::InvalidExternalData);
  }
  for (size_t at = 0; at < bytes.size(); at += at < 100 ? 1 : 31) {
    bytes[at] ^= 0x41;
    CHECK(code_of({bytes.data(), bytes.size()}, origin) == Code::InvalidExternalData);
    bytes[at] ^= 0x41;
  }
  CHECK(setup.runner.restore("no/such/file", &message).status().code() == Code::AccessFailed);
  CHECK(session->save("no/such/folder/file", &message).code() == Code::AccessFailed);
  std::remove(kPath);
}

// A disk that is full: what was saved before stays, and nothing else is left beside it.
void test_a_disk_that_fills() {
  Setup setup;
  Message message;
  std::unique_ptr<Session> session = setup.runner.new_session();
  const Tokens text = joined(prompt_of(1, 200), go_on(*session, prompt_of(1, 200), greedy(3)));
  CHECK(session->save(kPath, &message).ok());
  const std::vector<uint8_t> before = read_file();
  go_on(*session, prompt_of(2, 100), greedy(3));
  rlimit limit;
  CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const rlimit small = {1500, limit.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK(session->save(kPath, &message).code() == Code::AccessFailed);
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  CHECK(std::strstr(message.text(), "cannot save the session to 'test_sessions") != nullptr);
  CHECK(std::strstr(message.text(), "File too large") != nullptr);
  CHECK(read_file() == before);
  CHECK(setup.runner.restore(kPath, &message).ok() && session->save(kPath, &message).ok());
  CHECK(read_file().size() > before.size());
  std::remove(kPath);
}

// A file has nothing of what was taken back, though it is still in the page.
void test_files_have_the_text_alone() {
  Setup setup;
  Message message;
  std::unique_ptr<Session> session = setup.runner.new_session();
  const Tokens taken_back = prompt_of(5, 20);
  go_on(*session, joined(prompt_of(1, 150), taken_back), greedy(3));
  CHECK(session->rewind(22, &message).ok() && session->cached() == 151);
  CHECK(session->save(kPath, &message).ok());
  const std::vector<uint8_t> bytes = read_file();
  const auto* begin = reinterpret_cast<const uint8_t*>(taken_back.data() + 1);
  const auto* end = reinterpret_cast<const uint8_t*>(taken_back.data() + 20);
  CHECK(std::search(bytes.begin(), bytes.end(), begin, end) == bytes.end());
  Setup other;
  auto restored = other.runner.restore(kPath, &message);
  CHECK(restored.ok() && tokens_of(**restored) == tokens_of(*session));
  std::remove(kPath);
}

// Pages from a file are no other text's: a file may say anything of its tokens.
void test_pages_of_files_are_not_shared() {
  Setup setup;
  Message message;
  const Tokens prompt = prompt_of(1, 200);
  {
    std::unique_ptr<Session> session = setup.runner.new_session();
    go_on(*session, prompt, greedy(5));
    CHECK(session->save(kPath, &message).ok());
  }
  Setup other;
  PrefixTree& tree = other.runner.scheduler().tree();
  {
    auto restored = other.runner.restore(kPath, &message);
    CHECK(restored.ok());
    go_on(**restored, prompt_of(2, 100), greedy(5));
    auto fork = (*restored)->fork(&message);
    CHECK(fork.ok());
    go_on(**fork, {}, greedy(5));
    CHECK(tree.pages() == 0);
  }
  CHECK(tree.pages() == 0);
  auto generation = other.runner.generate(view(prompt), greedy(5), &message);
  CHECK(read_all(**generation) == other.expected(prompt, 5));
  CHECK((*generation)->statistics().reused_tokens == 0);
  // What the model computes anew is shared again.
  auto restored = other.runner.restore(kPath, &message);
  CHECK((*restored)->rewind(tokens_of(**restored).size(), &message).ok());
  const size_t pages = tree.pages();
  go_on(**restored, prompt_of(3, 100), greedy(5));
  CHECK(tree.pages() == pages + 2);
  std::remove(kPath);
}

// "ab" is held back until it is clear that no "abc" follows.
void test_text_output() {
  const std::vector<std::string> stops = {"abc", "\xC3\xA9!"};
  TextOutput output;
  std::string out;
  const auto push = [&](const char* bytes) {
    out.clear();
    return output.push(bytes, &out);
  };
  output.open(&stops);
  CHECK(!push("xab") && out == "x");
  CHECK(!push("ab") && out == "ab");
  CHECK(!push("d\xC3") && out == "abd");
  CHECK(!push("\xA9") && out.empty());
  CHECK(!push("?\xF0\x9F\x98") && out == "\xC3\xA9?");
  CHECK(!push("\x80z\xFF") && out == "\xF0\x9F\x98\x80z\xEF\xBF\xBD");
  CHECK(push("yabcz") && out == "y" && *output.stop() == "abc");
  output.open(&stops);
  CHECK(!push("a\xE2\x82") && out == "a");
  output.finish(&out);
  CHECK(out == "a\xEF\xBF\xBD" && output.stop() == nullptr);
}

// A stop string ends the text before it, and the session has the tokens before it.
void test_stop_strings() {
  FakeOptions fake;
  Setup setup(fake);
  const Tokens prompt = prompt_of(3, 10);
  const Tokens wanted = setup.expected(prompt, 40);
  std::string text;
  for (const int32_t token : wanted) text += static_cast<char>(token);
  GenerateOptions options = greedy(40);
  options.stop = {text.substr(20, 3)};
  const size_t at = text.find(options.stop[0]);
  Message message;
  std::unique_ptr<Session> session = setup.runner.new_session();
  auto generation = session->generate(view(prompt), options, &message);
  std::string got;
  Piece piece;
  while ((*generation)->next(&piece)) got.append(piece.text.data(), piece.text.size());
  CHECK(got == text.substr(0, at) && piece.finish == Finish::Stop);
  CHECK((*generation)->stopped_by(0) == StringView(options.stop[0].data(), 3));
  std::string kept;
  for (const int32_t token : tokens_of(*session)) kept += static_cast<char>(token);
  CHECK(kept.substr(prompt.size()) == text.substr(0, at));
}

// A stop string that is the text of a special token, which is no part of the text otherwise.
void test_stop_at_a_special_token() {
  Setup setup;
  Message message;
  GenerateOptions options = greedy(40);
  const Tokens prompt = prompt_of(3, 10);
  Tokens wanted = setup.expected(prompt, 400);
  const auto end = std::find(wanted.begin(), wanted.end(), 0);
  CHECK(end != wanted.end());  // or choose another prompt
  wanted.erase(end, wanted.end());
  options.max_tokens = 400;
  options.stop = {"never", "<end>"};
  for (const bool special : {false, true}) {
    options.special = special;
    std::unique_ptr<Session> session = setup.runner.new_session();
    auto generation = session->generate(view(prompt), options, &message);
    CHECK(generation.ok() && read_all(**generation) == wanted);
    CHECK((*generation)->stopped_by(0) == "<end>");
    CHECK(tokens_of(*session) == joined(prompt, wanted));
  }
}

// Guesses change how many steps there are, not the text.
void test_speculation(float temperature, size_t most_steps) {
  FakeOptions fake;
  fake.vocabulary = 30;
  fake.memory = 2;  // the text soon repeats
  fake.spread = temperature > 0 ? 100.0f : 3.0f;
  Setup setup(fake);
  GenerateOptions options = greedy(300);
  options.sampling.temperature = temperature;
  options.sampling.seed = 11;
  options.guesses = 0;
  const Tokens prompt = prompt_of(4, 20, 30);
  const Tokens plain = generate(setup.runner, prompt, options);
  const size_t steps = setup.model->steps;
  options.guesses = 8;
  Message message;
  auto generation = setup.runner.generate(view(prompt), options, &message);
  CHECK(read_all(**generation) == plain);
  const Statistics figures = (*generation)->statistics();
  CHECK(setup.model->steps - steps <= most_steps);
  CHECK(steps - (setup.model->steps - steps) <= figures.accepted_tokens);
  CHECK(figures.accepted_tokens <= figures.guessed_tokens);
}

// A text that fits is not refused because its guesses do not.
void test_guesses_without_pages() {
  FakeOptions fake;
  fake.vocabulary = 30;
  fake.memory = 2;
  Setup setup(fake, 2);
  const Tokens prompt = prompt_of(4, 20, 30);
  Message message;
  auto generation = setup.runner.generate(view(prompt), greedy(2 * kPageTokens - 20), &message);
  CHECK(read_all(**generation) == setup.expected(prompt, 2 * kPageTokens - 20));
  CHECK((*generation)->status(&message).ok());
  CHECK((*generation)->statistics().accepted_tokens > 20);
}

// Where guesses are wrong, few are made.
void test_speculation_gives_up() {
  FakeOptions fake;
  fake.vocabulary = 3;
  fake.spread = 0.0f;
  Setup setup(fake);
  GenerateOptions options = greedy(400);
  options.sampling.temperature = 1.0f;
  options.sampling.seed = 2;
  Message message;
  auto generation = setup.runner.generate(view(prompt_of(4, 20, 3)), options, &message);
  CHECK(read_all(**generation).size() == 400);
  CHECK((*generation)->statistics().guessed_tokens < 250);
}

}  // namespace

int main() {
  test_fork_and_rewind(0);
  test_fork_and_rewind(5);
  test_forks_share_pages();
  test_one_text_at_a_time();
  test_generate_after();
  test_shift();
  test_shift_of_a_full_session();
  test_files();
  test_a_disk_that_fills();
  test_files_have_the_text_alone();
  test_pages_of_files_are_not_shared();
  test_text_output();
  test_stop_strings();
  test_stop_at_a_special_token();
  test_speculation(0.0f, 100);
  test_speculation(1.0f, 280);
  test_guesses_without_pages();
  test_speculation_gives_up();
  return check_result();
}
