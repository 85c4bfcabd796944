import dev.rushlight.DType;
import dev.rushlight.Module;
import dev.rushlight.ModuleOptions;
import dev.rushlight.Tensor;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;

/**
 * Runs a program with a library of kernels: Main MODEL.pte KERNELS.so TOKENS LOGITS RUNS. Tokens are
 * int64 and logits float32, as bytes in files; it prints the median time of a run in microseconds.
 */
final class Main {
  private Main() {}

  public static void main(String[] arguments) throws Exception {
    ModuleOptions options = new ModuleOptions();
    options.threads = 1;
    options.kernelLibraries = List.of(Path.of(arguments[1]));
    byte[] bytes = Files.readAllBytes(Path.of(arguments[2]));
    ByteBuffer buffer = ByteBuffer.allocateDirect(bytes.length).put(bytes);
    Tensor tokens = Tensor.wrap(DType.INT64, buffer, 1, bytes.length / 8);
    double[] times = new double[Integer.parseInt(arguments[4])];
    try (Module module = Module.open(Path.of(arguments[0]), options)) {
      Tensor logits = null;
      for (int i = 0; i < times.length; i++) {
        long begin = System.nanoTime();
        logits = (Tensor) module.run("forward", tokens).get(0);
        times[i] = (System.nanoTime() - begin) / 1e3;
      }
      try (FileChannel file =
          FileChannel.open(
              Path.of(arguments[3]), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
        file.write(logits.data());
      }
    }
    Arrays.sort(times);
    System.out.printf("%.1f%n", times[times.length / 2]);
  }
}
