package dev.rushlight;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The whole surface; needs no other library. Arguments: the folder of golden programs, and one with
 * net.pte, x.bin and y.bin, what the program computes from x, and slow.pte, whose run takes long.
 */
public final class RushlightTest {
  private static int checks;

  private static void check(boolean ok, String what) {
    checks++;
    if (!ok) throw new AssertionError(what);
  }

  private static void checkFails(int code, String part, Runnable call) {
    try {
      call.run();
    } catch (RushlightException error) {
      check(
          error.code() == code && error.getMessage().contains(part),
          "got " + error.code() + ": " + error.getMessage());
      return;
    }
    throw new AssertionError("nothing was thrown; wanted: " + part);
  }

  private static void testModule(Path golden) throws Exception {
    Tensor x = Tensor.of(new float[] {1, 2, 3, 4, 5, 6}, 2, 3);
    try (Module module = Module.open(golden.resolve("add.pte"))) {
      check(module.methods().equals(List.of("forward")), "methods");
      ValueInfo info = module.inputs("forward").get(0);
      check(info.dtype == DType.FLOAT32 && Arrays.equals(info.maxSizes(), new int[] {2, 3}), "x");
      Tensor y = (Tensor) module.run("forward", x, x).get(0);
      check(Arrays.equals(y.floats(), new float[] {2, 4, 6, 8, 10, 12}), "x + x");
      checkFails(Rushlight.INVALID_ARGUMENT, "takes 2", () -> module.run("forward", x));
      checkFails(Rushlight.INVALID_ARGUMENT, "forward", () -> module.run("naïve\uD83D\uDE00"));
      checkFails(Rushlight.INVALID_ARGUMENT, "a Tensor", () -> module.run("forward", x, 3));
      checkFails(
          Rushlight.NOT_SUPPORTED,
          "size 0 is 1",
          () -> module.run("forward", x, Tensor.zeros(DType.FLOAT32, 1, 3)));
      checkFails(
          Rushlight.INVALID_ARGUMENT,
          "more than 16",
          () -> module.run("forward", x, Tensor.zeros(DType.FLOAT32, new int[20])));
      check(y.floats()[0] == 2, "outputs are the caller's");
    }
    Module closed = Module.open(golden.resolve("add.pte"));
    closed.close();
    closed.close();
    checkFails(Rushlight.INVALID_STATE, "Module is closed", () -> closed.run("forward", x, x));
    checkFails(Rushlight.ACCESS_FAILED, "no such file", () -> Module.open(Path.of("no/file")));
    byte[] bytes = Files.readAllBytes(golden.resolve("add.pte"));
    ByteBuffer direct = ByteBuffer.allocateDirect(bytes.length).put(bytes);
    try (Module module = Module.open(direct)) {
      check(((Tensor) module.run("forward", x, x).get(0)).floats()[5] == 12, "from a buffer");
    }
  }

  private static float count(Module module) {
    return ((Tensor) module.run("forward", Tensor.of(new float[] {1, 1}, 2)).get(0)).floats()[0];
  }

  private static void testState(Path golden) {
    try (Module module = Module.open(golden.resolve("counter.pte"))) {
      float first = count(module);
      byte[] saved = module.snapshot();
      float second = count(module);
      check(first != second, "it counts");
      try (Module fork = module.fork();
          Module copy = module.copy()) {
        module.restore(saved);
        check(count(module) == second && count(copy) == first, "restore, copy");
        check(count(fork) != second, "fork");
      }
      module.resetState();
      check(count(module) == first, "reset");
      checkFails(Rushlight.INVALID_ARGUMENT, "", () -> module.restore(new byte[3]));
    }
  }

  private static void testNet(Path folder) throws Exception {
    ByteBuffer read = ByteBuffer.wrap(Files.readAllBytes(folder.resolve("x.bin")));
    Tensor x = Tensor.zeros(DType.FLOAT32, 3, 6);
    x.data().put(read);
    ModuleOptions two = new ModuleOptions();
    two.threads = 2;
    try (Module module = Module.open(folder.resolve("net.pte"), two)) {
      Tensor y = (Tensor) module.run("forward", x, Tensor.zeros(DType.FLOAT32, 3, 1)).get(0);
      byte[] wanted = Files.readAllBytes(folder.resolve("y.bin"));
      check(y.data().compareTo(ByteBuffer.wrap(wanted)) == 0, "as in Python");
    }
  }

  private static List<Integer> generate(LanguageModel model, Session session, GenerateOptions o) {
    List<Integer> all = new ArrayList<>();
    TextListener listener =
        (choice, text, tokens) -> {
          for (int token : tokens) all.add(token);
          return true;
        };
    int[] prompt = model.encode("the lamp was");
    if (session != null) {
      session.generate(prompt, o, listener);
    } else {
      model.generate(prompt, o, listener);
    }
    return all;
  }

  private static void testLanguageModel(Path golden) throws Exception {
    try (LanguageModel model = LanguageModel.open(golden.resolve("llm/v1.pte"), oneThread())) {
      String text = "the naïve lamp \uD83D\uDE00";
      check(model.decode(model.encode(text)).contains("lamp"), "decode");
      GenerateOptions options = model.defaults();
      options.temperature = 0;
      options.maxTokens = 8;
      options.ignoresEnd = true;
      List<Integer> wanted = generate(model, null, options);
      check(wanted.size() == 8, "tokens");
      Path file = Files.createTempFile("session", ".bin");
      try (Session session = model.session()) {
        check(generate(model, session, options).equals(wanted), "in a session");
        check(session.tokens().length == model.encode("the lamp was").length + 8, "its tokens");
        session.save(file);
        try (Session fork = session.fork();
            Session again = model.restore(file)) {
          fork.rewind(8);
          check(Arrays.equals(session.tokens(), again.tokens()), "restored");
          check(fork.tokens().length + 8 == session.tokens().length, "rewound");
        }
        checkFails(Rushlight.INVALID_ARGUMENT, "", () -> session.rewind(10_000));
      }
      Files.delete(file);
      int[] told = {0};
      model.generate(model.encode("a"), options, (choice, piece, tokens) -> ++told[0] < 2);
      check(told[0] == 2, "the listener stops it");
      try {
        model.generate(
            model.encode("a"),
            options,
            (choice, piece, tokens) -> {
              throw new IllegalStateException("mine");
            });
        throw new AssertionError("the listener's exception is lost");
      } catch (IllegalStateException error) {
        check(error.getMessage().equals("mine"), "the listener's exception");
      }
      check(model.embed("a lamp", "a light").length == 2, "embed");
      options.topP = 9;
      checkFails(
          Rushlight.INVALID_ARGUMENT, "top_p", () -> model.generate(new int[] {5}, options, null));
    }
  }

  private static LanguageModelOptions oneThread() {
    LanguageModelOptions options = new LanguageModelOptions();
    options.threads = 1;
    options.cache = LanguageModelOptions.Cache.FLOAT32;
    return options;
  }

  private static float[] runTwice(Path folder, List<Path> libraries) {
    ModuleOptions options = new ModuleOptions();
    options.kernelLibraries = libraries;
    try (Module module = Module.open(folder.resolve("twice.pte"), options)) {
      Tensor x = Tensor.of(new float[] {0, 1, 2, 3, 4, 5}, 2, 3);
      return ((Tensor) module.run("forward", x).get(0)).floats();
    }
  }

  /** Each line of the table has a part of the error, and libraries. */
  private static void testBadKernels(Path folder) throws Exception {
    List<String> cases = Files.readAllLines(folder.resolve("bad_kernels.tsv"));
    check(cases.size() >= 7, "there are cases");
    List<Path> last = List.of();
    for (String line : cases) {
      String[] parts = line.split("\t", -1);
      List<Path> libraries = new ArrayList<>();
      for (String path : parts[1].split(";")) if (!path.isEmpty()) libraries.add(Path.of(path));
      boolean failed = false;
      try {
        runTwice(folder, libraries);
      } catch (RushlightException error) {
        failed = true;
        check(error.getMessage().contains(parts[0]), "got: " + error.getMessage());
      }
      check(failed, "nothing was thrown; wanted: " + parts[0]);
      last = libraries;
    }
    float[] y = runTwice(folder, last.subList(0, 1)); // the good one of two of one name
    check(Arrays.equals(y, new float[] {0, 2, 4, 6, 8, 10}), "after bad ones");
  }

  private static void testOptions(Path golden, Path folder) throws Exception {
    ModuleOptions options = new ModuleOptions();
    options.kernelLibraries = List.of(folder.resolve("none.so"));
    checkFails(
        Rushlight.ACCESS_FAILED, "none.so", () -> Module.open(golden.resolve("add.pte"), options));
    options.kernelLibraries = List.of();
    options.backendLibraries = List.of(folder.resolve("none.so"));
    checkFails(
        Rushlight.ACCESS_FAILED, "none.so", () -> Module.open(golden.resolve("add.pte"), options));
    ModuleOptions small = new ModuleOptions();
    small.memoryLimit = 16;
    small.reportsFailures = true;
    Tensor x = Tensor.zeros(DType.FLOAT32, 2, 3);
    try (Module module = Module.open(golden.resolve("add.pte"), small)) {
      checkFails(Rushlight.OUT_OF_RESOURCES, "", () -> module.run("forward", x, x));
      check(module.failureReport().length > 100, "a report");
    }
    try (Module module = Module.open(golden.resolve("add.pte"))) {
      checkFails(Rushlight.INVALID_STATE, "not reported", module::failureReport);
      check(module.relations("forward").isEmpty(), "no relations");
      check(module.memoryInUse() == 0, "nothing is loaded");
      module.load("forward");
      check(module.memoryInUse() > 0, "loaded");
      module.unload("forward");
      check(module.memoryInUse() == 0, "unloaded");
    }
    try (Module module = Module.open(folder.resolve("net.pte"))) {
      check(
          module.relations("forward").equals(List.of("size 0 of input 'y' == size 0 of input 'x'")),
          "relations");
    }
  }

  private static void testMemoryAndTraces(Path golden, Path folder) throws Exception {
    Tensor x = Tensor.of(new float[] {1, 2, 3, 4, 5, 6}, 2, 3);
    ByteBuffer memory = ByteBuffer.allocateDirect(24);
    Path trace = folder.resolve("java.etdp");
    try (Module module = Module.open(golden.resolve("add.pte"))) {
      checkFails(Rushlight.INVALID_STATE, "nothing was traced", () -> module.saveTrace(trace));
      module.startTrace(TraceValues.ALL, 0, 0);
      module.setOutput("forward", 0, memory);
      Tensor y = (Tensor) module.run("forward", x, x).get(0);
      check(y.floats()[5] == 12, "in memory of the caller");
      module.run("forward", y, y);
      check(y.floats()[5] == 24, "the next run writes there, too");
      module.setOutput("forward", 0, null);
      module.run("forward", y, y);
      check(y.floats()[5] == 24, "no longer");
      module.stopTrace();
      module.saveTrace(trace);
      check(Files.size(trace) > 500, "a trace");
      check(Files.size(folder.resolve("java.etdp.values")) > 70, "its values");
      checkFails(
          Rushlight.INVALID_ARGUMENT,
          "bytes",
          () -> module.setOutput("forward", 0, ByteBuffer.allocateDirect(4)));
    }
  }

  private static void testGrammars(Path golden, Path folder) throws Exception {
    try (LanguageModel model = LanguageModel.open(golden.resolve("llm/v1.pte"))) {
      check(model.context() > 0 && model.vocabularySize() > 0 && model.hidden() > 0, "facts");
      check(model.hasTokenizer() && model.cacheLimit() > model.cacheBytes(), "facts");
      GenerateOptions options = model.defaults();
      options.seed = 3;
      options.logprobs = true;
      StringBuilder text = new StringBuilder();
      int[] counts = {0, 0};
      TextListener listener =
          new TextListener() {
            @Override
            public boolean piece(int choice, String part, int[] tokens) {
              throw new AssertionError("without probabilities");
            }

            @Override
            public boolean piece(int choice, String part, int[] tokens, float[] logprobs) {
              text.append(part);
              counts[0] += tokens.length;
              counts[1] += logprobs == null ? 0 : logprobs.length;
              return true;
            }
          };
      model.startTrace(TraceValues.NONE, 0, 0);
      try (Grammar grammar = model.grammarFromRegex("[a-c]{4}(x|yz)")) {
        options.grammar = grammar;
        Statistics told = model.generate(model.encode("the"), options, listener);
        check(text.toString().matches("[a-c]{4}(x|yz)"), "by the grammar: " + text);
        check(told.finish == Statistics.Finish.STOP, "ended by the grammar: " + told.finish);
        check(told.outputTokens >= counts[0] && counts[0] == counts[1], "counts");
        check(told.nanos >= told.firstTokenNanos && told.firstTokenNanos > 0, "times");
      }
      checkFails(
          Rushlight.INVALID_STATE,
          "Grammar is closed",
          () -> model.generate(model.encode("the"), options, null));
      String schema = "{\"type\":\"object\",\"properties\":{\"n\":{\"enum\":[1,22]}},"
          + "\"required\":[\"n\"],\"additionalProperties\":false}";
      text.setLength(0);
      try (Grammar grammar = model.grammarFromJsonSchema(schema)) {
        options.grammar = grammar;
        model.generate(model.encode("the"), options, listener);
      }
      check(text.toString().matches("\\{\\s*\"n\"\\s*:\\s*(1|22)\\s*\\}"), "JSON: " + text);
      checkFails(Rushlight.INVALID_ARGUMENT, "", () -> model.grammarFromRegex("("));
      checkFails(Rushlight.ACCESS_FAILED, "none", () -> model.adapter(folder.resolve("none")));
      model.stopTrace();
      model.saveTrace(folder.resolve("llm.etdp"));
      check(Files.size(folder.resolve("llm.etdp")) > 500, "a trace");
      GenerateOptions one = model.defaults();
      one.temperature = 0;
      one.ignoresEnd = true;
      one.maxTokens = 4;
      List<Integer> tokens = generate(model, null, one);
      one.stopTokens = new int[] {tokens.get(1)};
      check(generate(model, null, one).size() <= 2, "stopped by a token");
    }
  }

  /** Calls {@code cancel} until {@code body} has ended. */
  private static void whileCancelled(Runnable cancel, Runnable body) throws Exception {
    AtomicBoolean isOver = new AtomicBoolean();
    Thread other =
        new Thread(
            () -> {
              while (!isOver.get()) {
                cancel.run();
                Thread.yield();
              }
            });
    other.start();
    try {
      body.run();
    } finally {
      isOver.set(true);
      other.join();
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  private static void testCancels(Path golden, Path folder) throws Exception {
    ModuleOptions options = new ModuleOptions();
    options.maxInstructions = 100_000_000;
    try (Module module = Module.open(folder.resolve("slow.pte"), options)) {
      Tensor x = Tensor.zeros(DType.FLOAT32, 2);
      module.load("forward");
      module.cancel(); // of no run: nothing
      whileCancelled(
          module::cancel,
          () -> checkFails(Rushlight.CANCELLED, "cancelled", () -> module.run("forward", x)));
    }
    try (LanguageModel model = LanguageModel.open(golden.resolve("llm/v1.pte"));
        Session session = model.session()) {
      GenerateOptions endless = model.defaults();
      endless.ignoresEnd = true;
      CountDownLatch began = new CountDownLatch(1);
      CountDownLatch cancelled = new CountDownLatch(1);
      Thread other =
          new Thread(
              () -> {
                await(began);
                session.cancel();
                cancelled.countDown();
              });
      other.start();
      TextListener listener =
          (choice, text, tokens) -> {
            began.countDown();
            await(cancelled);
            return true;
          };
      Statistics told = session.generate(model.encode("the"), endless, listener);
      other.join();
      check(told.finish == Statistics.Finish.CANCELLED, "cancelled: " + told.finish);
      session.setTokens(new int[] {5, 6});
      check(session.tokens().length == 2, "and usable");
    }
  }

  private static void testThreads(Path golden) throws Exception {
    try (Module module = Module.open(golden.resolve("counter.pte"))) {
      List<Thread> threads = new ArrayList<>();
      List<Throwable> failures = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        Module copy = module.copy();
        Thread thread =
            new Thread(
                () -> {
                  for (int k = 0; k < 50; k++) count(copy);
                  copy.close();
                });
        thread.setUncaughtExceptionHandler((t, error) -> failures.add(error));
        threads.add(thread);
        thread.start();
      }
      for (Thread thread : threads) thread.join();
      check(failures.isEmpty(), "threads: " + failures);
    }
  }

  /** Runs all tests. */
  public static void main(String[] arguments) throws Exception {
    Path golden = Path.of(arguments[0]);
    check(!Rushlight.version().isEmpty(), "version");
    testModule(golden);
    testState(golden);
    testNet(Path.of(arguments[1]));
    testLanguageModel(golden);
    testBadKernels(Path.of(arguments[1]));
    testOptions(golden, Path.of(arguments[1]));
    testMemoryAndTraces(golden, Path.of(arguments[1]));
    testGrammars(golden, Path.of(arguments[1]));
    testCancels(golden, Path.of(arguments[1]));
    testThreads(golden);
    System.out.println(checks + " checks passed");
  }
}
