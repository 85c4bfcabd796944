/* A shared library that has no backends. */
int rl_test_answer(void);
int rl_test_answer(void) { return 42; }
