/* Language models through the C interface, with the model of tests/golden/llm. */
#include <stdlib.h>

#include "check.h"

static rl_error error = RL_ERROR_INIT;

enum { MOST = 256 };

typedef struct text {
  char bytes[4 * MOST];
  size_t size;
  int32_t tokens[MOST];
  size_t n_tokens;
  size_t stop_after; /* tokens; 0: never */
  uint32_t finish;
  rl_session* session; /* that the callback tries to use */
} text;

static int32_t take(void* userdata, const rl_piece* piece) {
  text* to = userdata;
  CHECK(piece->size == sizeof *piece);
  memcpy(to->bytes + to->size, piece->text.data, piece->text.size);
  to->size += piece->text.size;
  for (uint32_t i = 0; i < piece->n_tokens; ++i) to->tokens[to->n_tokens++] = piece->tokens[i];
  to->finish = piece->finish;
  if (to->session != NULL) {
    size_t count = 0;
    CHECK_FAILS(rl_session_tokens(to->session, NULL, 0, &count, &error), RL_INVALID_STATE,
                "in use by another call");
  }
  return to->stop_after > 0 && to->n_tokens >= to->stop_after;
}

static rl_text_v1 text_of(const char* bytes) { return (rl_text_v1){bytes, strlen(bytes)}; }

static rl_generate_options greedy(rl_llm* llm, uint64_t most) {
  rl_generate_options options = {.size = sizeof options};
  CHECK_OK(rl_llm_default_options(llm, &options, &error));
  options.temperature = 0;
  options.max_tokens = most;
  options.ignores_end = 1;
  return options;
}

static size_t encode(rl_llm* llm, const char* bytes, int32_t* tokens) {
  size_t count = 0;
  CHECK_OK(rl_llm_encode(llm, text_of(bytes), RL_ADD_SPECIAL, tokens, MOST, &count, &error));
  return count;
}

static void test_tokens(rl_llm* llm) {
  rl_llm_info info = {.size = sizeof info};
  CHECK_OK(rl_llm_describe(llm, &info, &error));
  CHECK(info.vocabulary > 0 && info.context > 0 && info.has_tokenizer == 1);
  int32_t tokens[MOST];
  size_t count = 0, size = 0;
  const size_t n = encode(llm, "a lamp", tokens);
  CHECK(n > 0);
  CHECK_OK(rl_llm_encode(llm, text_of("a lamp"), RL_ADD_SPECIAL, NULL, 0, &count, &error));
  CHECK(count == n);
  CHECK_FAILS(rl_llm_encode(llm, text_of("a lamp"), RL_ADD_SPECIAL, tokens, n - 1, &count, &error),
              RL_INVALID_ARGUMENT, "there is room for");
  char bytes[64];
  CHECK_OK(rl_llm_decode(llm, tokens, n, RL_SKIP_SPECIAL, bytes, sizeof bytes, &size, &error));
  CHECK(size >= 4 && memcmp(bytes + size - 4, "lamp", 4) == 0);
  const rl_text_v1 chat =
      text_of("{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}],"
              " \"add_generation_prompt\": true}");
  if (info.has_chat_template) {
    CHECK_OK(rl_llm_encode_chat(llm, chat, tokens, MOST, &count, &error));
    CHECK(count > 0);
  }
  CHECK_FAILS(rl_llm_encode_chat(llm, text_of("{"), tokens, MOST, &count, &error),
              RL_INVALID_ARGUMENT, "");
}

static void test_generate(rl_llm* llm) {
  int32_t prompt[MOST];
  const size_t n = encode(llm, "a lamp", prompt);
  rl_generate_options options = greedy(llm, 8);
  text first = {.size = 0}, second = {.size = 0}, cut = {.stop_after = 3};
  rl_statistics statistics = {.size = sizeof statistics};
  CHECK_OK(rl_llm_generate(llm, prompt, n, &options, take, &first, &statistics, &error));
  CHECK(first.n_tokens == 8 && first.finish == RL_FINISH_LENGTH);
  CHECK(statistics.output_tokens == 8 && statistics.prompt_tokens == n);
  CHECK(statistics.finish == RL_FINISH_LENGTH);
  CHECK_OK(rl_llm_generate(llm, prompt, n, &options, take, &cut, &statistics, &error));
  CHECK(cut.n_tokens < 8 && statistics.finish == RL_FINISH_CANCELLED);

  rl_session *session = NULL, *copy = NULL;
  CHECK_OK(rl_session_open(llm, &session, &error));
  options.max_tokens = 4;
  second.session = session;
  CHECK_OK(rl_session_generate(session, prompt, n, &options, take, &second, NULL, &error));
  CHECK_OK(rl_session_fork(session, &copy, &error));
  CHECK_OK(rl_session_generate(session, NULL, 0, &options, take, &second, NULL, &error));
  CHECK(second.n_tokens == 8 && memcmp(first.tokens, second.tokens, 8 * sizeof(int32_t)) == 0);
  second.n_tokens = second.size = 0;
  second.session = copy;
  CHECK_OK(rl_session_generate(copy, NULL, 0, &options, take, &second, NULL, &error));
  CHECK(memcmp(first.tokens + 4, second.tokens, 4 * sizeof(int32_t)) == 0);

  int32_t tokens[MOST];
  size_t count = 0;
  CHECK_OK(rl_session_rewind(copy, 4, &error));
  CHECK_OK(rl_session_tokens(copy, tokens, MOST, &count, &error));
  CHECK(count == n + 4 && memcmp(tokens, prompt, n * sizeof(int32_t)) == 0);
  CHECK_FAILS(rl_session_rewind(copy, count + 1, &error), RL_INVALID_ARGUMENT, "");
  CHECK_OK(rl_session_set_tokens(copy, prompt, n, &error));
  CHECK_OK(rl_session_tokens(copy, NULL, 0, &count, &error));
  CHECK(count == n);

  CHECK_OK(rl_session_save(session, "test_c_llm.session", &error));
  CHECK_OK(rl_session_close(copy, &error));
  CHECK_OK(rl_session_restore(llm, "test_c_llm.session", NULL, &copy, &error));
  CHECK_OK(rl_session_tokens(copy, NULL, 0, &count, &error));
  CHECK(count == n + 8);
  CHECK_OK(rl_session_close(copy, &error));
  CHECK_FAILS(rl_session_generate(copy, NULL, 0, &options, NULL, NULL, NULL, &error),
              RL_INVALID_STATE, "handle of the session is not open");
  CHECK_FAILS(rl_session_generate((rl_session*)llm, NULL, 0, &options, NULL, NULL, NULL, &error),
              RL_INVALID_STATE, "that of a language model, not of a session");
  CHECK_OK(rl_session_close(session, &error));
  remove("test_c_llm.session");
}

static void test_options(rl_llm* llm) {
  int32_t prompt[MOST];
  const size_t n = encode(llm, "a lamp", prompt);
  rl_generate_options options = greedy(llm, 6);
  rl_grammar* grammar = NULL;
  CHECK_OK(rl_grammar_from_regex(llm, text_of("[ab]{3}"), &grammar, &error));
  options.grammar = grammar;
  options.ignores_end = 0;
  text said = {.size = 0};
  CHECK_OK(rl_llm_generate(llm, prompt, n, &options, take, &said, NULL, &error));
  CHECK(said.size == 3 && strspn(said.bytes, "ab") == 3);
  CHECK_FAILS(rl_grammar_from_regex(llm, text_of("("), &grammar, &error), RL_INVALID_ARGUMENT, "");
  CHECK_FAILS(rl_grammar_from_json_schema(llm, text_of("{\"type\": 3}"), &grammar, &error),
              RL_INVALID_ARGUMENT, "");
  CHECK_OK(rl_grammar_close(options.grammar, &error));
  CHECK_FAILS(rl_llm_generate(llm, prompt, n, &options, take, &said, NULL, &error),
              RL_INVALID_STATE, "handle of the grammar is not open");
  options.grammar = NULL;
  options.top_p = 7;
  CHECK_FAILS(rl_llm_generate(llm, prompt, n, &options, take, &said, NULL, &error),
              RL_INVALID_ARGUMENT, "top_p");
  const int32_t wrong[] = {-5};
  CHECK_FAILS(rl_llm_generate(llm, wrong, 1, NULL, take, &said, NULL, &error), RL_INVALID_ARGUMENT,
              "-5");
  rl_adapter* adapter = NULL;
  CHECK_FAILS(rl_adapter_open(llm, "no/such/file", &adapter, &error), RL_ACCESS_FAILED, "");
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  rl_llm* llm = NULL;
  rl_llm_options options = {.size = sizeof options, .threads = 1};
  CHECK_OK(rl_llm_open(golden(argv[1], "llm/v1"), &options, &llm, &error));
  if (llm == NULL) return 1;
  test_tokens(llm);
  test_generate(llm);
  test_options(llm);
  rl_session* session = NULL;
  CHECK_OK(rl_session_open(llm, &session, &error));
  CHECK_OK(rl_llm_close(llm, &error));
  size_t count = 1;
  CHECK_OK(rl_session_tokens(session, NULL, 0, &count, &error)); /* the model lives on */
  CHECK(count == 0);
  CHECK_OK(rl_session_close(session, &error));
  CHECK_FAILS(rl_llm_open(golden(argv[1], "add"), NULL, &llm, &error), RL_NOT_SUPPORTED, "");
  return g_failures == 0 ? 0 : 1;
}
