// Files of adapters: what is read, that damaged ones are refused or harmless, and that texts with
// different adapters share no pages.
//
// Usage: test_adapter ROUNDS: prints how many damaged files were loaded.
#include <cstdio>
#include <cstdlib>
#include <random>

#include "adapter_files.h"
#include "fake_runner.h"
#include "seed.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

std::shared_ptr<const Adapter> adapter_of(const AdapterFile& file) {
  Message message;
  auto adapter = Adapter::read(file.bytes(), adapter_facts(), &message);
  CHECK(adapter.ok());
  return adapter.value();
}

void test_read() {
  const AdapterFile file(adapter_entries(3));
  const std::shared_ptr<const Adapter> adapter = adapter_of(file);
  const AdapterWeights& weights = adapter->weights();
  CHECK(adapter->rank() == 3 && weights.sites.size() == 2);
  CHECK(weights.sites[0].in == 20 && weights.sites[0].out == 33 && weights.sites[0].rank == 3);
  CHECK(weights.sites[1].in == 16 && weights.sites[1].out == 7);
  const std::shared_ptr<const Adapter> again = adapter_of(file);
  CHECK(again->digest() == adapter->digest() && again->id() != adapter->id() && again->id() != 0);
  CHECK(adapter_of(AdapterFile(adapter_entries(3, 1)))->digest() != adapter->digest());
}

void check_refused(const std::vector<DataEntry>& entries, const char* reason) {
  Message message;
  const AdapterFile file(entries);
  const auto adapter = Adapter::read(file.bytes(), adapter_facts(), &message);
  CHECK(!adapter.ok() && adapter.status().code() == Code::InvalidExternalData);
  const bool as_expected = std::strstr(message.text(), reason) != nullptr;
  if (!as_expected) std::fprintf(stderr, "'%s' has no '%s'\n", message.text(), reason);
  CHECK(as_expected);
}

// Tensors whose sizes, dtypes or bytes are not those of the layers.
void test_refused_tensors() {
  const auto with = [](auto change) {
    std::vector<DataEntry> entries = adapter_entries(3);
    change(entries);
    return entries;
  };
  const char* const of_a = "lora/first/a";
  check_refused(with([](auto& e) { e[1].bytes.pop_back(); }), of_a);
  check_refused(with([](auto& e) { e[1].sizes = {3, 16}; }), of_a);
  check_refused(with([](auto& e) { e[1].sizes = {3, 32, 1}; }), of_a);
  check_refused(with([](auto& e) { e[1].sizes = {0, 32}; }), of_a);
  check_refused(with([](auto& e) { e[1].dtype = 7; }), of_a);
  check_refused(with([](auto& e) { e[1].dtype = 5; }), "lora/first/b");  // float16 beside float32
  check_refused(with([](auto& e) { e[2].sizes = {3, 4, 16}; }), "lora/first/b");
  check_refused(with([](auto& e) { e[2].sizes = {2, 3, 16}; }), "lora/first/b");
  check_refused(with([](auto& e) { e[4].has_layout = false; }), "lora/second/b");
  check_refused(with([](auto& e) { e.pop_back(); }), "lora/second/b");
  check_refused(adapter_entries(9), "has rank 9, and the program takes adapters up to rank 8");
  // Bytes that do not start at a multiple of 64.
  Message message;
  std::vector<DataEntry> entries = adapter_entries(3);
  entries[0].bytes.push_back(' ');
  const AdapterFile file(data_file_of(entries));
  CHECK(!Adapter::read(file.bytes(), adapter_facts(), &message).ok());
}

void test_damaged(int rounds) {
  const std::vector<uint8_t> good = data_file_of(adapter_entries(3), 128);
  std::mt19937 random(seed_for(1));
  int loaded = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<uint8_t> bytes = good;
    for (unsigned n = random() % 3; n > 0; --n) {
      // Mostly in the tables, which are short beside the tensors.
      const size_t most = random() % 4 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 900);
      const uint8_t values[] = {0, 1, 2, 16, 0x7f, 0x80, 0xff, static_cast<uint8_t>(random())};
      if (most > 0) bytes[random() % most] = values[random() % 8];
    }
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    const AdapterFile file(bytes);
    Message message;
    const auto adapter = Adapter::read(file.bytes(), adapter_facts(), &message);
    CHECK(adapter.ok() || !message.empty());
    if (!adapter.ok()) continue;
    ++loaded;
    // What was loaded lies within the file.
    for (const SiteWeights& site : adapter.value()->weights().sites) {
      if (site.a == nullptr) continue;
      const size_t element = site.dtype == DType::Float16 ? 2 : 4;
      const size_t of_a = site.rank * size_t{(site.in + 15) / 16 * 16} * element;
      const size_t of_b = site.rank * size_t{(site.out + 15) / 16 * 16} * element;
      CHECK(static_cast<const uint8_t*>(site.a) + of_a <= file.bytes().end());
      CHECK(static_cast<const uint8_t*>(site.b) + of_b <= file.bytes().end());
      CHECK(site.rank > 0 && site.rank <= 8);
    }
  }
  CHECK(rounds < 100 || (loaded > rounds / 20 && loaded < rounds));
  std::printf("%d of %d loaded\n", loaded, rounds);
}

// --- in a runner

FakeOptions adapting() {
  FakeOptions options;
  options.adapters = adapter_facts();
  return options;
}

GenerateOptions with(std::shared_ptr<const Adapter> adapter, size_t count) {
  GenerateOptions options = greedy(count);
  options.adapter = std::move(adapter);
  return options;
}

// Texts that begin alike and have different adapters, one after the other and together.
void test_pages_are_not_shared_between_adapters() {
  const AdapterFile files[] = {AdapterFile(adapter_entries(1)), AdapterFile(adapter_entries(2))};
  const std::shared_ptr<const Adapter> adapters[] = {nullptr, adapter_of(files[0]),
                                                     adapter_of(files[1])};
  const Tokens prompt = prompt_of(1, 150);
  Tokens wanted[3];
  for (size_t i = 0; i < 3; ++i) {
    Setup alone(adapting());
    wanted[i] = generate(alone.runner, prompt, with(adapters[i], 20));
  }
  CHECK(wanted[0] != wanted[1] && wanted[1] != wanted[2] && wanted[0] != wanted[2]);
  Setup setup(adapting());
  for (size_t round = 0; round < 2; ++round) {
    for (size_t i = 0; i < 3; ++i) {
      CHECK(generate(setup.runner, prompt, with(adapters[i], 20)) == wanted[i]);
    }
  }
  Setup together(adapting());
  Message message;
  std::unique_ptr<Generation> generations[6];
  for (size_t i = 0; i < 6; ++i) {
    auto made = together.runner.generate(view(prompt), with(adapters[i % 3], 20), &message);
    CHECK(made.ok());
    generations[i] = std::move(made.value());
  }
  for (size_t i = 0; i < 6; ++i) CHECK(read_all(*generations[i]) == wanted[i % 3]);
  // The second text with an adapter used the prompt of the first one.
  CHECK(generations[3]->statistics().reused_tokens > 100);
  CHECK(generations[1]->statistics().reused_tokens == 0);
}

// A new adapter never has the pages of one that is gone, though it may lie at its address.
void test_pages_do_not_outlive_their_adapter() {
  Setup setup(adapting());
  const Tokens prompt = prompt_of(2, 100);
  for (int32_t rank = 1; rank <= 8; ++rank) {
    const AdapterFile file(adapter_entries(rank));
    Setup alone(adapting());
    const Tokens wanted = generate(alone.runner, prompt, with(adapter_of(file), 10));
    CHECK(generate(setup.runner, prompt, with(adapter_of(file), 10)) == wanted);
  }
}

void test_sessions() {
  const AdapterFile files[] = {AdapterFile(adapter_entries(1)), AdapterFile(adapter_entries(2))};
  const auto first = adapter_of(files[0]), second = adapter_of(files[1]);
  Setup setup(adapting());
  Message message;
  std::unique_ptr<Session> session = setup.runner.new_session();
  CHECK(session->adapter() == nullptr && session->set_adapter(first, &message).ok());
  const Tokens prompt = prompt_of(3, 80);
  auto generation = session->generate(view(prompt), greedy(6), &message);
  CHECK(session->set_adapter(second, &message).code() == Code::InvalidState);  // it is busy
  const Tokens made = read_all(**generation);
  generation.value().reset();
  CHECK(session->set_adapter(first, &message).ok());  // no change
  CHECK(session->set_adapter(second, &message).code() == Code::InvalidState);
  CHECK(std::strstr(message.text(), "86 tokens") != nullptr);
  CHECK(!session->generate({}, with(second, 3), &message).ok());
  auto fork = session->fork(&message);
  CHECK(fork.ok() && (*fork)->adapter() == first);
  CHECK((*fork)->rewind(86, &message).ok() && (*fork)->set_adapter(second, &message).ok());
  auto other = (*fork)->generate(view(prompt), greedy(6), &message);
  CHECK(read_all(**other) != made);
  CHECK(session->rewind(6, &message).ok());
  auto again = session->generate({}, with(first, 6), &message);
  CHECK(again.ok() && read_all(**again) == made);
}

// Runners whose programs take other adapters, or none.
void test_other_runners() {
  const AdapterFile file(adapter_entries(4));
  const auto adapter = adapter_of(file);
  FakeOptions options = adapting();
  const auto check = [&](Code code) {
    Setup setup(options);
    Message message;
    const Tokens prompt = prompt_of(4, 5);
    CHECK(setup.runner.generate(view(prompt), with(adapter, 3), &message).status().code() == code);
    CHECK(setup.runner.new_session()->set_adapter(adapter, &message).code() == code);
    CHECK(setup.runner.restore("none", adapter, &message).status().code() ==
          (code == Code::Ok ? Code::AccessFailed : code));
  };
  check(Code::Ok);
  options.adapters.rank = 3;
  check(Code::InvalidExternalData);
  options.adapters = adapter_facts();
  options.adapters.base = "another";
  check(Code::InvalidExternalData);
  options.adapters = {};
  check(Code::NotSupported);
}

}  // namespace

int main(int argc, char** argv) {
  test_read();
  test_refused_tensors();
  test_damaged(argc > 1 ? std::atoi(argv[1]) : 200);
  test_pages_are_not_shared_between_adapters();
  test_pages_do_not_outlive_their_adapter();
  test_sessions();
  test_other_runners();
  return check_result();
}
