package dev.rushlight;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The whole surface; needs no other library. Arguments: the folder of golden programs, and one with
 * net.pte, x.bin and y.bin, what the program computes from x.
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
    try (Module module = Module.open(folder.resolve("net.pte"), 2, 0)) {
      Tensor y = (Tensor) module.run("forward", x).get(0);
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
    try (LanguageModel model = LanguageModel.open(golden.resolve("llm/v1.pte"), 1)) {
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
    testThreads(golden);
    System.out.println(checks + " checks passed");
  }
}
